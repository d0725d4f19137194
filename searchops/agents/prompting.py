"""Prompts: files of the package, or the user's own, known by the hash of their text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from string import Template

from searchops.errors import SpecError

__all__ = ["Prompt", "load_prompt"]


@dataclass(frozen=True)
class Prompt:
    """A prompt's text and where it is from.

    Attributes:
        source: The user's file, or the name of the package's.
        text: Its text; `$name` stands for a value.
    """

    source: str
    text: str

    @property
    def sha256(self) -> str:
        """The hash of the text, by which a record names the version."""
        return sha256(self.text.encode()).hexdigest()

    def filled(self, values: Mapping[str, object]) -> str:
        """The text with its values; a `$` that names none stays.

        Example:
            >>> Prompt("mine", "At most $decisions decisions, $5 each.").filled({"decisions": 50})
            'At most 50 decisions, $5 each.'
        """
        return Template(self.text).safe_substitute(values).strip()


def load_prompt(name: str, path: str | None = None) -> Prompt:
    """A prompt of the package by name, or the one in the user's file.

    Raises:
        SpecError: The file cannot be read, or is empty.

    Example:
        >>> load_prompt("query").source
        'query.md'
    """
    if path is None:
        return _packaged(name)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError("a prompt file that can be read is needed", str(error), where=path) from error
    if not text.strip():
        raise SpecError("a prompt is needed", "an empty file", where=path)
    return Prompt(path, text)


@cache
def _packaged(name: str) -> Prompt:
    file = files("searchops.agents").joinpath("prompts", f"{name}.md")
    return Prompt(f"{name}.md", file.read_text(encoding="utf-8"))
