"""All that is wrong with a file, gathered and reported at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NoReturn

from searchops.errors import SearchopsError, SpecError

__all__ = ["Problems", "SpecErrors", "shown"]

MOST: Final = 50
_LONGEST: Final = 60


class SpecErrors(SpecError):  # noqa: N818  (it is several)
    """Every problem of one file; the text has a line for each.

    Attributes:
        errors: The problems, in the order of the file.

    Example:
        >>> first = SpecError("unknown key 'pipline'; did you mean 'pipeline'?", where="p.yaml:3:1")
        >>> print(SpecErrors([first, SpecError("a pipeline is needed", where="p.yaml:1:1")]))
        p.yaml:3:1: unknown key 'pipline'; did you mean 'pipeline'?
        p.yaml:1:1: a pipeline is needed
    """

    def __init__(self, errors: Iterable[SpecError]) -> None:
        self.errors = tuple(errors)
        first = self.errors[0]
        super().__init__(first.needed, first.found, where=first.where, hint=first.hint)

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))

    def __reduce__(self) -> tuple[object, ...]:
        return (SpecErrors, (self.errors,))


class Problems:
    """Gathers problems while a file is read on.

    Example:
        >>> problems = Problems()
        >>> problems.add("p.yaml:2:4", "k must be a whole number", "'ten'")
        >>> problems.stop_if_any()
        Traceback (most recent call last):
        searchops.spec.problems.SpecErrors: p.yaml:2:4: k must be a whole number; found 'ten'
    """

    def __init__(self) -> None:
        self.found: list[SpecError] = []

    def __len__(self) -> int:
        return len(self.found)

    def add(self, where: object, needed: str, found: str = "", hint: str = "") -> None:
        """Notes a problem.

        Raises:
            SpecErrors: There are too many to be worth reading on.
        """
        error = SpecError(needed, found, where=str(where), hint=hint)
        if error.args not in [known.args for known in self.found]:
            self.found.append(error)
        self.stop_if_full()

    def add_error(self, where: object, label: str, error: SearchopsError) -> None:
        """Notes what a constructor or parser refused, at the place where the file asks for it."""
        inner = f"{error.where}: " if error.where and not error.where[0].isupper() else ""
        head = "" if inner.startswith(f"{label}:") else f"{label}: "
        self.add(where, head + inner + error.needed, error.found, error.hint)

    def refuse(self, where: object, needed: str, found: str = "", hint: str = "") -> NoReturn:
        """Notes a problem behind which nothing can be read, and stops.

        Raises:
            SpecErrors: Always.
        """
        self.found.append(SpecError(needed, found, where=str(where), hint=hint))
        self._stop()

    def stop_if_any(self) -> None:
        """Stops where something was noted.

        Raises:
            SpecErrors: With all that was noted.
        """
        if self.found:
            self._stop()

    def stop_if_full(self) -> None:
        """Stops where more would not be worth reading.

        Raises:
            SpecErrors: With all that was noted.
        """
        if len(self.found) >= MOST:
            self._stop()

    def _stop(self) -> NoReturn:
        raise SpecErrors(self.found) from None


def shown(value: Any) -> str:
    """A value of a file, as an error shows it: short, and never the end of memory.

    Example:
        >>> shown("ten"), shown({"a": 1}), shown([1, 2]), shown(None)
        ("'ten'", 'a mapping', 'a list', 'nothing')
    """
    if value is None:
        return "nothing"
    if isinstance(value, (dict, list, tuple)):
        return ("a mapping" if value else "an empty mapping") if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        # A text out of the environment is shown as its reference, never by its characters.
        value = getattr(value, "reference", value)
        return repr(value if len(value) <= _LONGEST else value[: _LONGEST - 1] + "…")
    if isinstance(value, (bool, int, float)):
        if isinstance(value, int) and abs(value) >= 10**_LONGEST:
            return "a number of more than 60 digits"
        return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return type(value).__name__.lower()
