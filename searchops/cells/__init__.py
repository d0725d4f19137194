"""Program cells: an agent's restricted Python over the five primitives, in a sandbox.

Programs run in Monty's worker processes, never in this one. Not protected: what a document's text makes a
model do; what a program does to its own variables; the time the primitives take; the host's own functions
that cells are given; and, should Monty itself have a memory-safety bug, the rights of the user, for which a
worker can be put behind bubblewrap (`MONTY_BIN`, see README.md).

Source: PSA, 3 and A.2; POST.
"""

from searchops.cells.limits import Limits
from searchops.cells.runner import CellFunction, CellResult, CellRunner

__all__ = ["CellFunction", "CellResult", "CellRunner", "Limits"]
