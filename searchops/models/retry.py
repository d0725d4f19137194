"""When a failed request is worth another attempt, and after how long."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

__all__ = ["Backoff", "is_transient", "retry_after_s"]

# What a provider answers when the account is empty: a 429 that no waiting mends.
_LASTING_CODES = ("insufficient_quota", "billing_hard_limit_reached")


def is_transient(status: int, code: str | None = None) -> bool:
    """Whether an HTTP status tells of something that goes away by itself.

    Source: ROUTE (retry only what recovers by itself); 409 is what gateways answer for a held lock.

    Example:
        >>> [is_transient(status) for status in (408, 409, 429, 500, 503, 400, 401, 403, 404)]
        [True, True, True, True, True, False, False, False, False]
        >>> is_transient(429, "insufficient_quota")
        False
    """
    return (status in (408, 409, 429) or status >= 500) and code not in _LASTING_CODES


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a Retry-After header asks for; None where it says nothing that can be read.

    Args:
        headers: The headers of the response, looked up in lower case.
        now: Seconds since the epoch.

    Source: RFC 9110, 10.2.3: seconds or an HTTP date.

    Example:
        >>> retry_after_s({"retry-after": "7"}, 0.0)
        7.0
        >>> retry_after_s({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 45.0)
        15.0
        >>> retry_after_s({"retry-after": "soon"}, 0.0) is None
        True
    """
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        seconds = _until(text, now)
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _until(text: str, now: float) -> float:
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return math.nan
    # An HTTP date is in GMT, also where it forgets to say so.
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff with jitter.

    Args:
        base_s: The mean first wait; each further one is twice as long.
        max_wait_s: The longest wait; a server that asks for more is not asked again.
    """

    base_s: float
    max_wait_s: float

    def wait_s(self, attempt: int, asked_s: float | None, rng: random.Random) -> float | None:
        """Seconds to wait after failed attempt `attempt` (from 0); None means: give up.

        What the server asked for is the least; the jitter on top keeps many callers from coming
        back in one instant.

        Example:
            >>> backoff = Backoff(base_s=1.0, max_wait_s=60.0)
            >>> 4.0 <= backoff.wait_s(3, None, random.Random(0)) <= 12.0
            True
            >>> backoff.wait_s(0, 61.0, random.Random(0)) is None
            True
        """
        if asked_s is not None:
            return None if asked_s > self.max_wait_s else asked_s + rng.uniform(0, self.base_s)
        doubled: float = self.base_s * 2 ** min(attempt, 32)
        return min(doubled * rng.uniform(0.5, 1.5), self.max_wait_s)
