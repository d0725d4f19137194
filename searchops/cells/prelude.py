"""What stands in the sandbox before a cell: candidates, primitives and the way a value is shown.

The texts here run inside Monty, on values that never leave it. What crosses to the host is row numbers,
arguments and finished text. Private names have a prefix that the gate keeps from cells.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from searchops.cells.gate import ABSENT, PREFIX, RESERVED
from searchops.frames import Record
from searchops.predicates.values import plain

_LEADING: Final = ("docno", "title", "text")
_TYPES: Final = {
    "docno": "str", "title": "str", "text": "str", "score": "float", "rank": "int", "source_query": "str",
    "passage_id": "str", "start": "int", "end": "int", "passage_score": "float", "instruction": "str",
    "note": "str", "quote": "str", "branch_score": "float",
}  # fmt: skip
_NEVER_FIELDS: Final = frozenset({"qid", "query", "get", "keys", *ABSENT, *RESERVED})

# First, so that what follows may give these names a new meaning.
_ALIASES: Final = """
from dataclasses import dataclass as _so_dataclass
_so_getattr, _so_isinstance, _so_len, _so_str, _so_repr = getattr, isinstance, len, str, repr
_so_type, _so_list_type, _so_dict, _so_tuple, _so_set = type, list, dict, tuple, set
_so_frozenset, _so_bool, _so_int, _so_float, _so_enumerate, _so_sum = frozenset, bool, int, float, enumerate, sum
_so_output = None
"""

_CODE: Final = """
def getattr(value, name, *default):
    if not _so_isinstance(name, _so_str) or name.startswith("_"):
        raise AttributeError("names that begin with _ are not available")
    return _so_getattr(value, name, *default)

def setattr(*args):
    raise AttributeError("attributes cannot be set: candidates are read-only; build a dict")

def _so_listed(who, candidates):
    if _so_isinstance(candidates, _so_list_type):
        return candidates
    if _so_isinstance(candidates, (_so_str, _so_dict, Candidate)) or candidates is None:
        raise TypeError(f"{who}: a list of candidates is needed; found {_so_type(candidates).__name__}")
    return [candidate for candidate in candidates]

def _so_rows(who, candidates):
    rows = [candidate._so_row for candidate in candidates if _so_isinstance(candidate, Candidate)]
    if _so_len(rows) == _so_len(candidates):
        return rows
    for place, candidate in _so_enumerate(candidates):
        if not _so_isinstance(candidate, Candidate):
            more = f". Write {who}(*lists)" if who == "dedupe" and _so_isinstance(candidate, _so_list_type) else ""
            raise TypeError(f"{who}: candidates that a primitive returned are needed; item {place} is a "
                            f"{_so_type(candidate).__name__}{more}")

def _so_again(candidates, row):
    values = row[1:]
    if row[0] is not None:
        values[_so_text_place] = candidates[row[0]].text
    return Candidate(*values)

def retrieve(query, k=20):
    return [Candidate(*values) for values in _so_call("retrieve", query, k)]

def filter(candidates, predicate):
    candidates = _so_listed("filter", candidates)
    rows = _so_rows("filter", candidates)
    if not _so_isinstance(predicate, _so_str):
        if _so_isinstance(predicate, (_so_int, _so_float, _so_list_type, _so_dict, Candidate)) or predicate is None:
            raise TypeError("filter: a predicate is a lambda, a function or a text such as 'year >= 2019'; found "
                            + _so_type(predicate).__name__)
        predicate = [True if predicate(candidate) else False for candidate in candidates]
    return [candidates[place] for place in _so_call("filter", rows, predicate)]

def rerank(candidates, k=10):
    candidates = _so_listed("rerank", candidates)
    rows = _so_rows("rerank", candidates)
    return [_so_again(candidates, row) for row in _so_call("rerank", rows, k)]

def extract(candidates, instruction=None, k=10, size=None, schema=None):
    rows = _so_rows("extract", _so_listed("extract", candidates))
    return [_so_again(None, row) for row in _so_call("extract", rows, instruction, k, size, schema)]

def dedupe(*collections, key="docno"):
    lists, flat = [], []
    for collection in collections:
        collection = _so_listed("dedupe", collection)
        lists.append(_so_rows("dedupe", collection))
        flat.extend(collection)
    return [flat[place] for place in _so_call("dedupe", lists, key)]

def _so_measure(value):
    kind = _so_type(value).__name__
    if _so_isinstance(value, (_so_list_type, _so_tuple)) and value:
        if _so_isinstance(value[0], Candidate) and _so_isinstance(value[-1], Candidate):
            kind = kind + "[Candidate]"
    if _so_isinstance(value, (_so_str, _so_list_type, _so_tuple, _so_dict, _so_set, _so_frozenset)):
        return (kind, _so_len(value))
    return (kind, None)

def _so_card(value):
    card = {}
    for name in _so_card_fields:
        found = _so_getattr(value, name)
        if found is not None and found != "":
            card[name] = found
    if value.passage_id is not None:
        for name in _so_of_document:
            card.pop(name, None)
        if card.get("quote") == value.note:
            card.pop("quote")
    return card

def _so_inline(values):
    total = 0
    for value in values:
        if _so_isinstance(value, _so_str):
            total += _so_len(value) + 4
            if _so_len(value) > 80 or "\\n" in value or "'" in value or "\\\\" in value:
                return False
        elif value is None or _so_isinstance(value, (_so_int, _so_float, _so_bool)):
            total += 8
        else:
            return False
    return total <= 2000

class _SoPaper:
    def __init__(self, room):
        self.room = room
        self.parts = []

    def put(self, text):
        if self.room > 0:
            self.parts.append(text if _so_len(text) <= self.room else text[:self.room])
        self.room -= _so_len(text)

    def write(self, head, value, indent, depth):
        if self.room <= 0:
            return
        if _so_isinstance(value, Candidate):
            value = _so_card(value)
        if _so_isinstance(value, _so_dict) and value:
            self.block(head, [(_so_str(key) + ":", item) for key, item in value.items()], indent, depth)
        elif _so_isinstance(value, (_so_list_type, _so_tuple, _so_set, _so_frozenset)) and value:
            items = [item for item in value]
            if _so_inline(items):
                shown = ", ".join([_so_repr(item) for item in items])
                self.put(indent + head + "[" + shown + "]\\n")
            else:
                self.block(head, [("-", item) for item in items], indent, depth)
        else:
            text = value if _so_isinstance(value, _so_str) else _so_repr(value)
            self.put(indent + head + text.rstrip().replace("\\n", "\\n" + indent + "  ") + "\\n")

    def block(self, head, entries, indent, depth):
        if depth >= 12:
            self.put(indent + head + "(nested deeper than 12 levels: not shown)\\n")
            return
        name = head.rstrip()
        inner = indent if name in ("", "-") else indent + "  "
        if name not in ("", "-"):
            self.put(indent + name + "\\n")
        lead = "- " if name == "-" else ""
        for mark, item in entries:
            self.write(lead + mark + " ", item, inner, depth + 1)
            if lead == "- ":
                lead = "  "

def _so_show(value, room):
    if _so_isinstance(value, _so_str):
        return (value[:room], _so_len(value) - room)
    paper = _SoPaper(room)
    paper.write("", value, "", 0)
    return ("".join(paper.parts).rstrip("\\n"), -paper.room)

def _so_report(value, room, named):
    text, beyond = _so_show(value, room)
    return (text, beyond, value is None, [(name, *_so_measure(held)) for name, held in named])
"""


@dataclass(frozen=True)
class Fields:
    """The fields of a candidate over one collection, in order."""

    names: tuple[str, ...]

    @classmethod
    def over(cls, columns: Iterable[str]) -> Fields:
        """The standard fields, with the document columns that are usable as names.

        Example:
            >>> Fields.over(["docno", "text", "year", "a b"]).names[:5]
            ('docno', 'title', 'text', 'year', 'score')
        """
        usable = [name for name in columns if _is_field(name)]
        return cls(tuple(dict.fromkeys([*_LEADING, *usable, *_TYPES])))

    def values(self, row: Record, number: int, *, with_text: bool = True) -> list[Any]:
        """A row as the sandbox takes it: plain values in the order of the fields, then its number."""
        values = [_plain(row.get(name)) for name in self.names]
        if not with_text:
            values[_LEADING.index("text")] = None
        return [*values, number]

    def prelude(self) -> tuple[str, str]:
        """The texts to run in a new session, one after the other."""
        shown = [name for name in self.names if name not in ("start", "end", "instruction", "rank")]
        fields = "\n".join(f"    {name}: {_TYPES.get(name, 'object')}" for name in self.names)
        setting = (
            f"_so_fields = {self.names!r}\n_so_card_fields = {tuple(_order(shown))!r}\n"
            f"_so_text_place = {_LEADING.index('text')}\n"
            "_so_of_document = ('text', 'source_query', 'branch_score')\n"
        )
        return _ALIASES, f"{setting}{_CANDIDATE.replace('FIELDS', fields.lstrip())}{_CODE}"

    def stubs(self, functions: Sequence[str] = ()) -> str:
        """The same for the type checker, with the signatures of further functions."""
        fields = "\n".join(f"    {name}: {_TYPES.get(name, 'Any')}" for name in self.names)
        return "\n".join([_STUBS.replace("FIELDS", fields.lstrip()), *functions])


_CANDIDATE: Final = """
@_so_dataclass(frozen=True)
class Candidate:
    FIELDS
    _so_row: int

    def __getitem__(self, name):
        if name not in _so_fields:
            raise KeyError(name)
        return _so_getattr(self, name)

    def __contains__(self, name):
        return name in _so_fields

    def __repr__(self):
        return _so_show(self, 1000000)[0]

    def get(self, name, default=None):
        return self[name] if name in _so_fields else default

    def keys(self):
        return [name for name in _so_fields]
"""

_STUBS: Final = """
from typing import Any, Callable, Iterable, Literal
class Candidate:
    FIELDS
    def __getitem__(self, name: str) -> Any: ...
    def __contains__(self, name: object) -> bool: ...
    def get(self, name: str, default: Any = None) -> Any: ...
    def keys(self) -> list[str]: ...
def retrieve(query: str, k: int = 20) -> list[Candidate]: ...
def filter(candidates: Iterable[Candidate], predicate: Callable[[Candidate], Any] | str) -> list[Candidate]: ...
def rerank(candidates: Iterable[Candidate], k: int = 10) -> list[Candidate]: ...
def extract(candidates: Iterable[Candidate], instruction: str | None = None, k: int = 10,
            size: int | None = None, schema: dict[str, Any] | None = None) -> list[Candidate]: ...
def dedupe(*collections: Iterable[Candidate], key: str = "docno") -> list[Candidate]: ...
# Names that run but that the checker's own builtins leave out.
def getattr(value: Any, name: str, *default: Any) -> Any: ...
def setattr(value: Any, name: str, to: Any) -> None: ...
def hasattr(value: Any, name: str) -> bool: ...
def map(function: Callable[..., Any], *values: Iterable[Any]) -> list[Any]: ...
def format(value: Any, spec: str = "") -> str: ...
class ImportError(Exception): ...
class ModuleNotFoundError(Exception): ...
class PermissionError(Exception): ...
class FileNotFoundError(Exception): ...
class UnicodeDecodeError(ValueError): ...
class UnicodeEncodeError(ValueError): ...
class UnboundLocalError(Exception): ...
def searchops_any() -> Any: ...
def searchops_candidates() -> list[Candidate]: ...
"""


def _is_field(name: str) -> bool:
    return (
        name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_") and name not in _NEVER_FIELDS
    )


def _order(names: Sequence[str]) -> list[str]:
    """Ids and titles first, texts last."""
    last = ("text", "note", "quote")
    first = ("docno", "passage_id", "title")
    middle = [name for name in names if name not in first and name not in last]
    return [*first, *middle, *last]


def _plain(value: Any) -> Any:
    if value is None or type(value) in (str, int, float, bool):
        return None if value != value else value
    found = plain(value)
    if found is None or isinstance(found, (str, int, float, bool)):
        return found
    return [_plain(item) for item in found] if isinstance(found, (list, tuple)) else str(found)


assert PREFIX == "_so_"  # the texts above are written with it
