"""The filter language: conditions on records, as Python objects and as text.

    (field("year") >= 2019) & ~field("lang").isin(["de"])
    "year >= 2019 and not lang in ['de']"

What holds everywhere:

- A missing value (None, NaN, NaT, or no such column in this record) makes every comparison false, `!=`
  too; `exists` asks. The logic has two values: `not` of a false comparison is true.
- A column that no record has is an error, in `exists` too, so a misspelt name never passes.
- Only like kinds compare: text, numbers (int and float alike), truth values. Dates are ISO text. A column
  that holds another kind, anywhere, is an error.
- A dot is part of a column's name. Text counts case.
- Text, patterns and trees are bounded in size, and patterns in time, so text from a model is safe to read.
"""

from searchops.predicates.builder import Field, as_predicate, field
from searchops.predicates.grammar import parse
from searchops.predicates.logic import Predicate, check_limits

__all__ = ["Field", "Predicate", "as_predicate", "check_limits", "field", "parse"]
