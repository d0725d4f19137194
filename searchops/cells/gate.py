"""What is looked at before a cell runs: its length and its syntax tree.

The gate gives early and helpful refusals and keeps a cell away from the prelude's own names. It is no
security border: that is the sandbox, and the host, which checks whatever a cell sends it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from searchops.cells.limits import Limits
from searchops.errors import ToolError, did_you_mean

PREFIX: Final = "_so_"
OUTPUT: Final = f"{PREFIX}output"
PRIMITIVES: Final = ("retrieve", "filter", "rerank", "extract", "dedupe")
RESERVED: Final = frozenset({*PRIMITIVES, "Candidate", "getattr", "setattr"})
MODULES: Final = (
    "base64", "bisect", "collections", "copy", "datetime", "decimal", "functools", "hashlib",
    "itertools", "json", "math", "random", "re", "typing", "unicodedata",
)  # fmt: skip
# Names of Python that a cell has not got; saying so here costs no retrieval.
ABSENT: Final = frozenset(
    {
        "__import__", "breakpoint", "callable", "classmethod", "compile", "delattr", "dir", "eval", "exec", "exit",
        "globals", "help", "input", "locals", "memoryview", "object", "open", "property", "quit", "staticmethod",
        "super", "vars",
    }
)  # fmt: skip
_ABSENT_SYNTAX: Final[dict[type[ast.AST], str]] = {
    ast.ClassDef: "classes are not available; use a dict or a function",
    ast.Delete: "del is not available; assign another value",
    ast.Yield: "yield is not available; build a list",
    ast.YieldFrom: "yield is not available; build a list",
    ast.Await: "await is not available; a cell runs from top to bottom",
    ast.AsyncFunctionDef: "async is not available; a cell runs from top to bottom",
    ast.AsyncFor: "async is not available; a cell runs from top to bottom",
    ast.AsyncWith: "async is not available; a cell runs from top to bottom",
    ast.With: "with is not available; there are no files",
}
_CHAIN: Final = re.compile(r"(?:(?:[-+~(\[{]|\bnot\b|\blambda\b[^:\n]{0,40}:)[ \t]*){80}")


@dataclass(frozen=True)
class Program:
    """A cell that passed.

    Attributes:
        source: Its text, with plain line ends.
        runnable: The same, with the final expression bound to a name the epilogue reads.
        ends_in: "expression", "assignment" or "statement".
        bound: Names it may bind at the top, in order.
        used: All names in it.
    """

    source: str
    runnable: str
    ends_in: str
    bound: tuple[str, ...]
    used: frozenset[str]


def examine(code: object, limits: Limits, reserved: frozenset[str] = RESERVED) -> Program:
    r"""Reads a cell and refuses what cannot run.

    Raises:
        ToolError: The cell is no text, empty, too long, too nested, no Python, or uses what there is not.

    Example:
        >>> examine("a = 1\na + 1", Limits()).runnable
        'a = 1\n_so_output = a + 1'
    """
    source = _text(code, limits)
    tree = _parse(source, limits)
    bound: dict[str, None] = {}
    used: set[str] = set()
    for node in _walk(tree, limits.nesting):
        problem = _problem(node, reserved)
        if problem:
            raise ToolError(problem, where=f"line {getattr(node, 'lineno', 1)}")
        used.update(_names(node))
    for name in _top_names(tree):
        bound[name] = None
    last = tree.body[-1]
    return Program(source, _bind_last(source, last), _ending(last), tuple(bound), frozenset(used))


def _text(code: object, limits: Limits) -> str:
    if not isinstance(code, str):
        raise ToolError("a cell is the text of a Python program", type(code).__name__)
    if len(code) > limits.chars:
        raise ToolError(
            f"a cell of at most {limits.chars:,} characters is needed",
            f"{len(code):,}",
            hint="Do it in several cells; variables stay.",
        )
    return re.sub(r"\r\n?", "\n", code.encode("utf-8", "replace").decode())


def _parse(source: str, limits: Limits) -> ast.Module:
    # A long chain of prefixes could exhaust the parser's stack, which no exception reports.
    if _CHAIN.search(source):
        raise _too_nested(limits)
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        line = f"line {error.lineno or 1}"
        raise ToolError(
            f"a Python program is needed: {error.msg}", where=line, hint=_quote(source, error.lineno)
        ) from None
    except (RecursionError, MemoryError):
        raise _too_nested(limits) from None
    except ValueError as error:
        raise ToolError(f"a Python program is needed: {error}") from None
    if not tree.body:
        raise ToolError("the cell is empty", hint="End it with an expression: its value is what you see.")
    return tree


def _quote(source: str, line: int | None) -> str:
    lines = source.split("\n")
    return f"In: {lines[line - 1].strip()[:80]}" if line and line <= len(lines) else ""


def _too_nested(limits: Limits) -> ToolError:
    return ToolError(f"a program nested at most {limits.nesting} deep is needed", hint="Use intermediate variables.")


def _walk(tree: ast.AST, most: int) -> Iterator[ast.AST]:
    """All nodes, without recursion of its own.

    Raises:
        ToolError: The tree is deeper than `most`.
    """
    level, depth = [tree], 0
    while level:
        yield from level
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
        if depth > most and level:
            raise _too_nested(Limits(nesting=most))


def _problem(node: ast.AST, reserved: frozenset[str]) -> str:
    absent = _ABSENT_SYNTAX.get(type(node))
    if absent:
        return absent
    check = _CHECKS.get(type(node))
    if check and (found := check(node)):
        return found
    if isinstance(node, ast.arg):
        return _private(node.arg)
    for name in _bindings(node):
        if found := _private(name):
            return found
        if name in reserved:
            return f"{name} is a name of the runtime and cannot be bound; choose another name"
    return ""


def _private(name: str) -> str:
    if name.startswith(PREFIX) or (name.startswith("__") and name.endswith("__")):
        return f"names such as {name[:40]} are not available"
    return ""


def _check_name(node: ast.Name) -> str:
    if node.id in ABSENT and isinstance(node.ctx, ast.Load):
        return f"{node.id}() is not available in a cell"
    return _private(node.id)


def _check_attribute(node: ast.Attribute) -> str:
    if not isinstance(node.ctx, ast.Load):
        return f"attributes cannot be set (.{node.attr[:40]}): candidates are read-only; build a dict"
    return _private(node.attr)


def _check_keyword(node: ast.keyword) -> str:
    return _private(node.arg) if node.arg else ""


def _check_match(node: ast.MatchClass) -> str:
    return next((found for name in node.kwd_attrs if (found := _private(name))), "")


def _check_import(node: ast.Import) -> str:
    return next((found for alias in node.names if (found := _module(alias.name))), "")


def _check_import_from(node: ast.ImportFrom) -> str:
    if node.level or any(alias.name == "*" for alias in node.names):
        return "import names one by one from a module: from re import findall"
    return _module(node.module or "") or next((p for alias in node.names if (p := _private(alias.name))), "")


def _module(name: str) -> str:
    if name in MODULES:
        return ""
    return f"module {name[:40]!r} does not import here; these do: {', '.join(MODULES)}"


_CHECKS: Final[dict[type[ast.AST], Callable[..., str]]] = {
    ast.Name: _check_name,
    ast.Attribute: _check_attribute,
    ast.keyword: _check_keyword,
    ast.MatchClass: _check_match,
    ast.Import: _check_import,
    ast.ImportFrom: _check_import_from,
}


def _bindings(node: ast.AST) -> list[str]:
    """Names that this node itself binds."""
    if isinstance(node, ast.Name):
        return [node.id] if isinstance(node.ctx, ast.Store) else []
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return list(node.names)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    found = getattr(node, "name", None) if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) else None
    found = node.rest if isinstance(node, ast.MatchMapping) else found
    return [found] if isinstance(found, str) else []


def _names(node: ast.AST) -> list[str]:
    return [node.id] if isinstance(node, ast.Name) else _bindings(node)


def _top_names(tree: ast.Module) -> Iterator[str]:
    """Names bound outside functions, comprehensions and lambdas, and those functions call global."""
    stack: list[tuple[ast.AST, bool]] = [(node, True) for node in reversed(tree.body)]
    while stack:
        node, outside = stack.pop()
        if isinstance(node, ast.Global) or (outside and not isinstance(node, ast.arg)):
            yield from (name for name in _bindings(node) if not isinstance(node, ast.Nonlocal))
        inner = outside and not isinstance(node, (ast.FunctionDef, ast.Lambda))
        stack.extend((child, inner) for child in reversed(_children(node)))


def _children(node: ast.AST) -> list[ast.AST]:
    """The parts of a node that bind where it stands: of a comprehension all but its own targets."""
    children: list[ast.AST] = []
    for child in ast.iter_child_nodes(node):
        children.extend([child.iter, *child.ifs] if isinstance(child, ast.comprehension) else [child])
    return children


def _ending(last: ast.stmt) -> str:
    if isinstance(last, ast.Expr):
        return "expression"
    return "assignment" if isinstance(last, (ast.Assign, ast.AugAssign, ast.AnnAssign)) else "statement"


def _bind_last(source: str, last: ast.stmt) -> str:
    """The source with its final expression bound to a name; every line keeps its number."""
    if not isinstance(last, ast.Expr):
        return source
    lines = source.split("\n")
    line = lines[last.lineno - 1].encode()
    place = last.col_offset
    lines[last.lineno - 1] = (line[:place] + f"{OUTPUT} = ".encode() + line[place:]).decode()
    return "\n".join(lines)


def guess(name: str, known: Iterator[str] | list[str]) -> str:
    """`did you mean`, as a sentence, or nothing where no name is near."""
    text = did_you_mean(name, known)
    return f" Did {text[4:]}" if text.startswith("did ") else ""
