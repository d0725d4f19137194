"""Program cells: an agent's restricted Python over the five primitives, in a sandbox.

What is not protected: see `README.md`, "Cells". Source: PSA, 3 and A.2; POST.
"""

from searchops.cells.limits import Limits
from searchops.cells.runner import CellFunction, CellResult, CellRunner

__all__ = ["CellFunction", "CellResult", "CellRunner", "Limits"]
