"""The surface of the package: what it offers, and what importing it costs."""

import ast
import inspect
import pkgutil
import subprocess
import sys

import pytest

import searchops
from tests.conftest import REPO

HEAVY = ("torch", "transformers", "faiss", "openai", "matplotlib", "jnius", "sentence_transformers", "pyserini")
SHORT = 25
"""Lines of a docstring that needs no example."""


def ruff_order(names):
    """RUF022: constants, then classes, then the rest, each sorted."""
    return sorted(names, key=lambda name: (0 if name.isupper() else 1 if name[0].isupper() else 2, name))


def test_all_is_sorted_complete_and_true():
    assert searchops.__all__ == ruff_order(searchops.__all__)
    assert len(set(searchops.__all__)) == len(searchops.__all__)
    tree = ast.parse((REPO / "searchops/__init__.py").read_text(encoding="utf-8"))
    # Those in the block for type checkers are imported at first use.
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported = {alias.asname or alias.name for node in imports for alias in node.names}
    assert imported == set(searchops.__all__)
    for name in searchops.__all__:
        assert getattr(searchops, name) is not None


def test_nothing_else_is_public():
    submodules = {module.name for module in pkgutil.iter_modules(searchops.__path__)}
    public = {name for name in vars(searchops) if not name.startswith("_")}
    assert public - submodules <= set(searchops.__all__)
    assert set(searchops.__all__) <= set(dir(searchops))
    with pytest.raises(AttributeError, match="no attribute 'QueryAgnet'"):
        searchops.QueryAgnet


def test_no_exported_name_is_a_submodules():
    submodules = {module.name for module in pkgutil.iter_modules(searchops.__path__)}
    assert {"fusion", "metrics", "pipeline"} <= submodules
    assert not submodules & set(searchops.__all__)
    for module in submodules:  # importing a submodule would replace the name
        assert not hasattr(searchops, module) or inspect.ismodule(getattr(searchops, module))


def test_no_submodule_is_called_like_a_module_of_the_standard_library():
    submodules = {module.name for module in pkgutil.iter_modules(searchops.__path__)}
    assert not submodules & set(sys.stdlib_module_names)


def test_the_names_that_others_build_on_are_there():
    fixed = {
        "load", "LuceneIndex", "DenseIndex", "Retrieve", "Filter", "Rerank", "Extract", "Dedupe", "Lexical", "record",
        "delivery", "Experiment", "Delivered", "Available", "Retrieved", "field",
    }  # fmt: skip
    assert fixed <= set(searchops.__all__)


def test_importing_loads_nothing_heavy_and_starts_no_java():
    code = f"import sys, searchops; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", searchops.__all__)
def test_what_is_exported_says_what_it_is(name):
    thing = getattr(searchops, name)
    doc = inspect.getdoc(thing)
    assert doc, name
    assert ">>>" in doc or len(doc.splitlines()) <= SHORT
    if inspect.isclass(thing):
        assert vars(thing)["__doc__"]  # its own, not a base class's
