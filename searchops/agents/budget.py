"""What one question may cost, and how the model is asked."""

from __future__ import annotations

from dataclasses import dataclass

from searchops.errors import SpecError

__all__ = ["Budget"]


@dataclass(frozen=True)
class Budget:
    """Limits of one question and settings of every model call.

    Attributes:
        decisions: Replies of the model that may act; the finalizer is not one of them.
        repairs: How often the model is asked again after a malformed reply, for each decision.
        max_tokens: The most tokens a reply may have.
        temperature: Of every call.
        finalizer_chars: The most characters of the finalizer's system and user text together.

    Raises:
        SpecError: A number is out of range.

    Source: PSA, 4.1 (50 decisions), A.2 (16,000 characters), A.3 (temperature 0, 4,096 tokens), B.3 (repairs).

    Example:
        >>> Budget(decisions=10).max_tokens
        4096
    """

    decisions: int = 50
    repairs: int = 2
    max_tokens: int = 4096
    temperature: float = 0.0
    finalizer_chars: int = 16_000

    def __post_init__(self) -> None:
        lowest = {"decisions": 1, "repairs": 0, "max_tokens": 1, "finalizer_chars": 2000}
        for name, low in lowest.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise SpecError(f"{name} must be a whole number of at least {low}", repr(value), where="budget")
        if isinstance(self.temperature, bool) or not isinstance(self.temperature, (int, float)):
            raise SpecError("temperature must be a number", repr(self.temperature), where="budget")
