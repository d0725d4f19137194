"""Docstrings of a tree of Python source files, read with `ast`: nothing of the tree is imported.

A document is a module, class, function or method that has a docstring. Its docno is its full dotted
name where it is defined (`json.dumps`, `collections.OrderedDict.move_to_end`).
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from searchops.frames import Record

__all__ = ["Walk", "module_name", "read_docstrings", "source_files"]

SKIPPED_FOLDERS = frozenset(
    ("__pycache__", "dist-packages", "ensurepip", "idlelib", "lib2to3", "lib-dynload")
) | frozenset(("pydoc_data", "site-packages", "test", "tests", "turtledemo"))
"""Tests, bundled packages, applications and build output: not the library that people call."""

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_Documented: TypeAlias = ast.Module | ast.ClassDef | _Function


class Walk(NamedTuple):
    """What a walk over source files gave.

    Attributes:
        documents: One record a docstring, in the order of the files and of the lines in them.
        unparsable: Files, relative to the root, that are not Python this interpreter reads.
        repeated: How many definitions were left out since their name was documented before.
    """

    documents: list[Record]
    unparsable: list[str]
    repeated: int


def source_files(root: Path) -> list[Path]:
    """The Python files below a folder that belong to the library, sorted by their path's parts.

    Raises:
        OSError: The root cannot be listed.

    Example:
        >>> import sysconfig
        >>> any(p.name == "dis.py" for p in source_files(Path(sysconfig.get_path("stdlib"))))
        True
    """
    found: list[Path] = []
    folders = [root]
    while folders:
        for entry in folders.pop().iterdir():
            if entry.is_dir():
                if entry.name not in SKIPPED_FOLDERS and entry.name.isidentifier():
                    folders.append(entry)
            elif entry.suffix == ".py" and entry.stem.isidentifier():
                found.append(entry)
    return sorted(found, key=lambda path: path.relative_to(root).parts)


def module_name(relative: Path) -> str:
    """The dotted name of the module that a file holds.

    Example:
        >>> module_name(Path("json/__init__.py")), module_name(Path("json/decoder.py"))
        ('json', 'json.decoder')
    """
    parts = [*relative.parts[:-1], relative.stem]
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def read_docstrings(root: Path, files: Iterable[Path]) -> Walk:
    r"""Reads the docstrings of files below a root.

    The first documented definition of a name wins (a property's getter before its setter, the
    branch of an `if` that stands first), whatever platform the branch is for.

    Example:
        >>> import tempfile
        >>> root = Path(tempfile.mkdtemp())
        >>> _ = (root / "m.py").write_text("def f(x, *, y=1):\n    'Adds.'\n")
        >>> [document] = read_docstrings(root, [root / "m.py"]).documents
        >>> document["docno"], document["title"], document["text"]
        ('m.f', 'm.f(x, *, y=1)', 'Adds.')
    """
    documents: dict[str, Record] = {}
    unparsable: list[str] = []
    repeated = 0
    for path in files:
        relative = path.relative_to(root)
        tree = _parsed(path)
        if tree is None:
            unparsable.append(relative.as_posix())
            continue
        for document in _documents(tree, module_name(relative)):
            repeated += document["docno"] in documents
            documents.setdefault(document["docno"], document)
    return Walk(list(documents.values()), unparsable, repeated)


def _parsed(path: Path) -> ast.Module | None:
    try:
        with warnings.catch_warnings():  # invalid escapes in the source are not the reader's business
            warnings.simplefilter("ignore")
            return ast.parse(path.read_bytes(), filename=str(path))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _documents(tree: ast.Module, module: str) -> Iterator[Record]:
    module_document = _document(tree, module, module, "module")
    if module_document:
        yield module_document
    yield from _members(tree.body, module, module, in_class=False)


def _members(body: Iterable[ast.stmt], prefix: str, module: str, *, in_class: bool) -> Iterator[Record]:
    for node in _definitions(body):
        name = f"{prefix}.{node.name}"
        if isinstance(node, ast.ClassDef):
            document = _document(node, name, module, "class")
        else:
            document = _document(node, name, module, "method" if in_class else "function")
        if document:
            yield document
        if isinstance(node, ast.ClassDef):
            yield from _members(node.body, name, module, in_class=True)


def _definitions(body: Iterable[ast.stmt]) -> Iterator[ast.ClassDef | _Function]:
    """The definitions of one level; those under `if`, `try` and `with` belong to the same level."""
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            for block in ("body", "handlers", "orelse", "finalbody"):
                for part in getattr(node, block, ()):
                    inner = part.body if isinstance(part, ast.ExceptHandler) else [part]
                    yield from _definitions(inner)


def _document(node: _Documented, name: str, module: str, kind: str) -> Record | None:
    text = (ast.get_docstring(node) or "").strip()
    if not text:
        return None
    names = name.removeprefix(module).split(".")[1:]
    return {
        "docno": name,
        "title": _title(node, name),
        "text": text,
        "kind": kind,
        "module": module,
        "package": module.partition(".")[0],
        "public": not any(_is_private(part) for part in [*module.split("."), *names]),
        "line": getattr(node, "lineno", 1),
        "n_chars": len(text),
    }


def _title(node: _Documented, name: str) -> str:
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(map(ast.unparse, node.bases))
        return f"class {name}({bases})" if bases else f"class {name}"
    if isinstance(node, ast.Module):
        return name
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{prefix}{name}({ast.unparse(node.args)})"


def _is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))
