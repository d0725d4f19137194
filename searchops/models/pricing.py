"""What tokens cost, where the user says what they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from searchops.errors import SpecError, did_you_mean, sentence
from searchops.models.protocol import Usage

__all__ = ["Prices"]


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens. No price is built in: they change, and records stay.

    Args:
        input: Of tokens read.
        output: Of tokens written, reasoning included.
        cached: Of tokens read from the provider's cache; None charges them like others.

    Raises:
        SpecError: A price is no finite number of at least 0.

    Example:
        >>> Prices(input=2.0, output=8.0, cached=0.5).cost_usd(Usage(1_000_000, 500_000, 400_000))
        5.4
    """

    input: float
    output: float
    cached: float | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached"):
            price = getattr(self, name)
            if name == "cached" and price is None:
                continue
            if isinstance(price, bool) or not isinstance(price, (int, float)) or not 0 <= price < math.inf:
                raise SpecError("a price of at least 0 is needed", repr(price), where=f"prices.{name}")

    @classmethod
    def of(cls, prices: Prices | Mapping[str, Any] | None) -> Prices | None:
        """Prices from a mapping of a file; None and Prices stay what they are.

        Raises:
            SpecError: A name is unknown or missing.

        Example:
            >>> Prices.of({"input": 1, "output": 2})
            Prices(input=1, output=2, cached=None)
        """
        if prices is None or isinstance(prices, Prices):
            return prices
        known = ("input", "output", "cached")
        for name in prices:
            if name not in known:
                hint = sentence(did_you_mean(name, known))
                raise SpecError("a known price is needed", repr(name), where="prices", hint=hint)
        for name in known[:2]:
            if name not in prices:
                raise SpecError(f"a price for {name!r} is needed", "none", where="prices")
        return cls(**prices)

    def cost_usd(self, usage: Usage) -> float:
        """The price of one call."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.input_tokens - usage.cached_tokens
        parts = (fresh * self.input, usage.cached_tokens * cached, usage.output_tokens * self.output)
        return sum(parts) / 1_000_000
