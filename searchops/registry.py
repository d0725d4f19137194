"""Names that pipeline files may use, and what they stand for; loaded at first use.

A file names a stage, never a Python path: what it can reach is what is registered here, by searchops
itself or by installed packages through entry points (groups `searchops.stages`, `searchops.scorers`, …).
"""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final

from searchops.errors import SpecError, did_you_mean

__all__ = ["KINDS", "lookup", "name_of", "names", "register"]

KINDS: Final = ("stage", "fusion", "scorer", "splitter", "engine", "model", "part", "agent", "dataset")
"""What can be registered. A `part` is a settings object that an argument's type already calls for."""

_NAME = re.compile(r"[a-z][a-z0-9_]*(?:-[a-z0-9_]+)*")

_BUILT_IN: Final[dict[str, dict[str, str]]] = {
    "stage": {
        "retrieve": "searchops.primitives:Retrieve",
        "filter": "searchops.primitives:Filter",
        "rerank": "searchops.primitives:Rerank",
        "extract": "searchops.primitives:Extract",
        "dedupe": "searchops.primitives:Dedupe",
        "union": "searchops.fusion:Union",
        "rewrite": "searchops.fusion:Rewrite",
        "cutoff": "pyterrier._ops:RankCutoff",
    },
    "fusion": {"rrf": "searchops.fusion:RRF"},
    "scorer": {
        "lexical": "searchops.scorers.lexical:Lexical",
        "biencoder": "searchops.scorers.biencoder:BiEncoder",
        "crossencoder": "searchops.scorers.crossencoder:CrossEncoder",
        "chat": "searchops.scorers.chat:Chat",
    },
    "splitter": {
        "sentences": "searchops.splitting:Sentences",
        "words": "searchops.splitting:Words",
        "given": "searchops.splitting:Given",
    },
    "engine": {
        "lucene": "searchops.engines.lucene:LuceneIndex",
        "dense": "searchops.engines.dense:DenseIndex",
    },
    "model": {
        "openai": "searchops.models:OpenAIModel",
        "keyword": "searchops.agents.keyword:KeywordPolicy",
    },
    "agent": {
        "query": "searchops.agents:QueryAgent",
        "tool": "searchops.agents:ToolAgent",
        "program": "searchops.agents:ProgramAgent",
    },
    "part": {
        "budget": "searchops.agents.budget:Budget",
        "funnel": "searchops.substrate:Funnel",
        "limits": "searchops.cells:Limits",
        "analyzer": "searchops.scorers.statistics:Analyzer",
        "encoder": "searchops.scorers.encoder:Encoder",
        "prices": "searchops.models:Prices",
    },
}

_ALIASES: Final[dict[str, dict[str, str]]] = {
    "scorer": {"bi-encoder": "biencoder", "cross-encoder": "crossencoder"},
}


@dataclass
class _Table:
    """The names of one kind, each with a class or its "module:attribute"."""

    kind: str
    targets: dict[str, Any] = field(default_factory=dict)
    searched: bool = False


_tables: dict[str, _Table] = {kind: _Table(kind, dict(_BUILT_IN.get(kind, {}))) for kind in KINDS}
_lock = threading.RLock()


def register(kind: str, name: str, target: Any) -> None:
    """Makes a class usable in pipeline files under a name.

    Args:
        kind: One of `KINDS`.
        name: Lowercase words; what files will say.
        target: The class, or "package.module:Class", imported when a file first names it.

    Raises:
        SpecError: The kind is unknown, the name is malformed, or it stands for something else already.

    Example:
        >>> register("splitter", "runs-of-words", "searchops.splitting:Words")
        >>> lookup("splitter", "runs-of-words").__name__
        'Words'
    """
    table = _table(kind)
    if not _NAME.fullmatch(name):
        raise SpecError("a name of lowercase letters, digits, - and _ is needed", repr(name), where="register")
    with _lock:
        taken = name in _ALIASES.get(kind, {}) or table.targets.get(name, target) != target
        if taken:
            raise SpecError(f"a {kind} name that is not taken is needed", repr(name), where="register")
        table.targets[name] = target


def names(kind: str) -> list[str]:
    """The registered names of a kind, sorted; entry points are looked for once.

    Example:
        >>> names("fusion")
        ['rrf']
    """
    return sorted(_searched(kind).targets)


def lookup(kind: str, name: str) -> Any:
    """The class that a name stands for.

    Raises:
        SpecError: No such name; the text says which is nearest.

    Example:
        >>> lookup("splitter", "words").__name__
        'Words'
    """
    table = _searched(kind)
    name = _ALIASES.get(kind, {}).get(name, name)
    if name not in table.targets:
        raise SpecError(f"unknown {kind} {name!r}; {did_you_mean(name, table.targets)}")
    target = table.targets[name]
    try:
        return _resolved(target)
    except (ImportError, AttributeError) as error:
        raise SpecError(f"the {kind} {name!r} needs {target!r}, which cannot be imported", str(error)) from error


def name_of(kind: str, cls: type) -> str | None:
    """The name of a class, or None where it has none.

    Example:
        >>> from searchops.splitting import Words
        >>> name_of("splitter", Words), name_of("splitter", int)
        ('words', None)
    """
    for name, target in _searched(kind).targets.items():
        # Only a target of the same class name is worth importing.
        if isinstance(target, str) and target.rpartition(":")[2] != cls.__name__:
            continue
        with suppress(ImportError, AttributeError):
            if _resolved(target) is cls:
                return name
    return None


def _table(kind: str) -> _Table:
    if kind not in _tables:
        raise SpecError(f"unknown kind {kind!r}; {did_you_mean(kind, KINDS)}", where="registry")
    return _tables[kind]


def _searched(kind: str) -> _Table:
    table = _table(kind)
    with _lock:
        if not table.searched:
            table.searched = True
            for point in entry_points(group=f"searchops.{kind}s"):
                # Installed packages add names; they do not replace ours.
                if _NAME.fullmatch(point.name):
                    table.targets.setdefault(point.name, point.value)
    return table


def _resolved(target: Any) -> Any:
    """The class behind "module:attribute"; anything else is the class itself."""
    if not isinstance(target, str):
        return target
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
