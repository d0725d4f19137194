"""What one cell may use."""

from __future__ import annotations

from dataclasses import dataclass

from searchops.errors import SpecError


@dataclass(frozen=True)
class Limits:
    """Limits of one cell; the next cell starts with all of them fresh.

    Attributes:
        seconds: Computing time inside the sandbox (the time primitives take is theirs).
        memory_mb: Memory of the sandbox, with everything the variables hold.
        calls: Primitive calls.
        recursion: Depth of function calls.
        chars: Length of the program.
        nesting: Depth of its syntax tree.
        variables: Names that may be left over.
        observation_chars: A safety limit on what is shown; reaching it is announced in the text.
        printed_chars: The same for what is printed.

    Raises:
        SpecError: A limit is not above 0.
    """

    seconds: float = 5.0
    memory_mb: int = 256
    calls: int = 40
    recursion: int = 200
    chars: int = 20_000
    nesting: int = 60
    variables: int = 500
    observation_chars: int = 200_000
    printed_chars: int = 50_000

    def __post_init__(self) -> None:
        """Refuses limits that would allow nothing."""
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
                raise SpecError(f"{name} must be a number above 0", repr(value), where="Limits")
