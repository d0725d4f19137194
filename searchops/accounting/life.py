"""One label's life in a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from searchops.labels import Label

IMMEDIATE, RECOVERED, NEVER, UNAVAILABLE = "immediate", "recovered", "never", "unavailable"
NOT_RETRIEVED: Final = "not retrieved"


@dataclass
class Life:
    """One label's life in a run.

    Attributes:
        label: The evidence label.
        retrieved: Its document came out of a retrieve stage.
        available: An extract event scored passages that cover it.
        selected: An extract event kept passages that cover it.
        delivered: It was still there at the end of the pipeline; for an agent, an observation showed it.
        outcome: immediate, recovered or never; unavailable if it was never available.
        lost_at: Label of the stage that dropped it; "" if it was delivered.
        referenced: An observation of an agent named its document, and none showed the label.
        delivered_at: The decision of the agent by which it was shown.
        present: Share covered by event and side, for the events that saw its document.
    """

    label: Label
    retrieved: bool = False
    available: bool = False
    selected: bool = False
    delivered: bool = False
    outcome: str = UNAVAILABLE
    lost_at: str = ""
    referenced: bool = False
    delivered_at: int | None = None
    present: dict[tuple[int, str], float] = field(default_factory=dict)
