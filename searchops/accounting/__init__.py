"""Each supporting passage followed through a recorded run: available, delivered, or lost, and where.

Reads records and evidence labels; runs nothing. Source: PSA, 2.1 and B.2 (available, delivered;
immediate, recovered, never), in the terms of this project's stages.
"""

from searchops.accounting.agents import answered_tasks, shown_parts
from searchops.accounting.following import lives
from searchops.accounting.life import IMMEDIATE, NEVER, NOT_RETRIEVED, RECOVERED, UNAVAILABLE, Life
from searchops.accounting.tables import delivery, funnel
from searchops.accounting.ways import why

__all__ = [
    "IMMEDIATE",
    "NEVER",
    "NOT_RETRIEVED",
    "RECOVERED",
    "UNAVAILABLE",
    "Life",
    "answered_tasks",
    "delivery",
    "funnel",
    "lives",
    "shown_parts",
    "why",
]
