"""A YAML 1.2 document as nodes: strict, bounded, and with the line and column of everything.

Parser events are read instead of built documents: nothing is ever constructed from a tag, duplicate
keys are seen, and what grows without bound is refused while it grows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from searchops.errors import SpecError
from searchops.spec.nodes import MAX_DEPTH, MAX_NODES, Node, Place
from searchops.spec.problems import Problems, shown
from searchops.spec.scalars import resolve

__all__ = ["MAX_BYTES", "read_document", "read_text"]

MAX_BYTES: Final = 1_000_000
_MAX_ALIASED: Final = 1_000
_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def read_text(path: str | Path, problems: Problems) -> str:
    """The text of a file.

    Raises:
        SpecErrors: It is not there, too large, or no UTF-8 text.
    """
    file = Path(path)
    source = str(path) if str(path).isprintable() else shown(str(path))
    try:
        if not file.is_file():
            found = "a folder" if file.is_dir() else "none"
            problems.refuse(source, "a pipeline file is needed", found)
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        problems.refuse(source, "a file that can be read is needed", str(error)[:200])
    if len(raw) > MAX_BYTES:
        problems.refuse(source, f"a file of at most {MAX_BYTES:,} bytes is needed", "a larger one")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        problems.refuse(f"{source}:{line}", "a file in UTF-8 is needed", f"byte 0x{raw[error.start]:02x}")


def read_document(text: str, source: str, problems: Problems) -> Node:
    """The one document of a text.

    Raises:
        SpecErrors: It is no YAML 1.2, empty, or larger or deeper than any pipeline.

    Example:
        >>> node = read_document("pipeline: [dedupe]", "p.yaml", Problems())
        >>> str(node.value["pipeline"].value[0].place)
        'p.yaml:1:12'
    """
    if len(text) > MAX_BYTES:
        problems.refuse(source, f"a text of at most {MAX_BYTES:,} characters is needed", f"{len(text):,}")
    bad = _UNPRINTABLE.search(text)
    if bad:
        line, column = text.count("\n", 0, bad.start()) + 1, bad.start() - text.rfind("\n", 0, bad.start())
        problems.refuse(Place(source, line, column), "printable text is needed", f"U+{ord(bad[0]):04X}")
    reading = _Reading(text, source, problems)
    try:
        return reading.document()
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(source, mark.line + 1, mark.column + 1) if mark else Place(source)
        hint = "Indent with spaces." if "'\\t'" in str(error.problem) else ""
        problems.refuse(place, f"YAML is needed ({_short(error.problem or error.context)})", hint=hint)
    except (YAMLError, ValueError, AttributeError, IndexError, KeyError, TypeError, RecursionError) as error:
        # The parser's own slips on malformed input.
        problems.refuse(source, f"YAML is needed ({_short(error)})")


class _Reading:
    def __init__(self, text: str, source: str, problems: Problems) -> None:
        self.source = source
        self.problems = problems
        self.events: Iterator[Any] = iter(YAML(typ="safe", pure=True).parse(text))
        self.anchors: dict[str, tuple[Node, int]] = {}
        self.n_nodes = 0

    def document(self) -> Node:
        root: Node | None = None
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                if event.version not in (None, (1, 2)) or event.tags:
                    self.problems.refuse(self._place(event), "YAML 1.2 without tags is needed", "another directive")
            elif isinstance(event, (ScalarEvent, MappingStartEvent, SequenceStartEvent, AliasEvent)):
                if root is not None:
                    self.problems.refuse(self._place(event), "one document a file is needed", "a second one")
                root = self._node(event, 0)
        if root is None or root.value is None:
            self.problems.refuse(self.source, "a pipeline file is needed", "an empty one",
                                 "Start with version: 1, collection: and pipeline:.")  # fmt: skip
        return root

    def _place(self, event: Any, straight: int | None = None) -> Place:
        return Place(self.source, event.start_mark.line + 1, event.start_mark.column + 1, straight)

    def _node(self, event: Any, depth: int) -> Node:
        place = self._place(event)
        if isinstance(event, AliasEvent):
            return self._alias(event, place)
        before = self.n_nodes
        self._count(1, place)
        if depth > MAX_DEPTH:
            self.problems.refuse(place, f"at most {MAX_DEPTH} levels of nesting are needed", "more")
        if event.ctag is not None:
            self.problems.add(place, f"tags are not used here: remove {_short(event.ctag)}")
        if isinstance(event, ScalarEvent):
            node = self._scalar(event)
        elif isinstance(event, SequenceStartEvent):
            node = self._sequence(place, depth)
        else:
            node = self._mapping(place, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = (node, self.n_nodes - before)
        return node

    def _count(self, n: int, place: Place) -> None:
        self.n_nodes += n
        if self.n_nodes > MAX_NODES:
            self.problems.refuse(place, f"at most {MAX_NODES:,} values are needed", "more (aliases count as copies)")

    def _alias(self, event: Any, place: Place) -> Node:
        known = self.anchors.get(event.anchor)
        if known is None:
            self.problems.refuse(place, f"an anchor {shown(event.anchor)} before its alias is needed", "none")
        node, size = known
        if size > _MAX_ALIASED:
            self.problems.refuse(place, f"an alias of at most {_MAX_ALIASED:,} values is needed", f"{size:,}")
        self._count(size, place)
        return node

    def _scalar(self, event: Any) -> Node:
        text: str = event.value
        one_line = event.start_mark.line == event.end_mark.line
        written = event.end_mark.column - event.start_mark.column
        quotes = 0 if event.style is None else 1
        straight = quotes if one_line and written == len(text) + 2 * quotes else None
        place = self._place(event, straight)
        if not event.implicit[0]:
            return Node(text, place, text=text)
        try:
            return Node(resolve(text), place, text=text, plain=True)
        except SpecError as error:
            self.problems.add(place, error.needed, error.found)
            return Node(None, place, text=text, plain=True, broken=True)

    def _sequence(self, place: Place, depth: int) -> Node:
        items = []
        while not isinstance(event := next(self.events), SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return Node(items, place)

    def _mapping(self, place: Place, depth: int) -> Node:
        entries: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        while not isinstance(event := next(self.events), MappingEndEvent):
            key = self._node(event, depth + 1)
            value = self._node(next(self.events), depth + 1)
            if value.value is None and not value.text:
                value = value.moved(key.place)  # what is not there has no place of its own
            # `1: x` and `true: x` name nothing here, but a name written without quotes may look like one.
            name = key.value if isinstance(key.value, str) else key.text
            if isinstance(key.value, (list, dict)) or not name:
                self.problems.add(key.place, "a key that is text is needed", shown(key.value))
            elif name in entries:
                self.problems.add(key.place, f"duplicate key {shown(name)}", f"it first at line {keys[name].line}")
            else:
                entries[name], keys[name] = value, key.place
        return Node(entries, place, keys)


def _short(text: object) -> str:
    words = " ".join(str(text).split())
    return words if len(words) <= 120 else words[:119] + "…"
