"""The five search primitives. Source: PSA, Table 2."""

from searchops.primitives.dedupe import Dedupe
from searchops.primitives.extract import Extract
from searchops.primitives.filter import Filter
from searchops.primitives.rerank import Rerank
from searchops.primitives.retrieve import Retrieve

__all__ = ["Dedupe", "Extract", "Filter", "Rerank", "Retrieve"]
