"""An index that is only named: what pipelines are checked with before anything is built or opened."""

from __future__ import annotations

from typing import Any, NoReturn

from searchops.errors import FrameError

__all__ = ["PlannedIndex"]


class PlannedIndex:
    """An index that a file names and nobody has opened: it can be composed, not searched."""

    columns: tuple[str, ...] = ("docno",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlannedIndex) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"PlannedIndex({self.name!r})"

    def __len__(self) -> int:
        return 0

    def search(self, *_: Any) -> NoReturn:
        """Refuses, as all that an open index does: this one was not opened."""
        raise FrameError("an index that is open is needed", repr(self), where="Retrieve")

    search_many = fetch = statistics = search
