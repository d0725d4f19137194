"""Encodes the texts of a collection block by block, so that a killed build goes on where it was."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from searchops.errors import DataError
from searchops.scorers.encoder import Encoder

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float32]

__all__ = ["EncodedBlocks", "kept_blocks"]

BLOCK_TEXTS = 256
"""Texts a block: sorted by length inside; a kill costs at most one."""

_MARK = ".encoded-"


class EncodedBlocks:
    """The vectors of documents, one file a block; a block that is there is not encoded again.

    Args:
        folder: Where the files are kept.
        encoder: What makes vectors.
        titles: One a document.
        texts: One a document; a document is encoded as its title, a blank and its text.

    Source: BEIR (Thakur et al. 2021) for title and text as one.
    """

    def __init__(self, folder: Path, encoder: Encoder, titles: Sequence[str], texts: Sequence[str]) -> None:
        self._folder = folder
        self._encoder = encoder
        self._titles = titles
        self._texts = texts
        self.n_truncated = 0

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self._texts)

    def __iter__(self) -> Iterator[Floats]:
        """The vectors of each block, in order; counts the documents that were cut."""
        for first in range(0, len(self), BLOCK_TEXTS):
            part = slice(first, first + BLOCK_TEXTS)
            pairs = zip(self._titles[part], self._texts[part], strict=True)
            documents = [f"{title or ''} {text or ''}".strip() for title, text in pairs]
            vectors, n_truncated = self._block(first // BLOCK_TEXTS, documents)
            self.n_truncated += n_truncated
            yield vectors

    def _block(self, number: int, documents: list[str]) -> tuple[Floats, int]:
        file = self._folder / f"{number:08d}.npz"
        if file.exists():
            return self._read(file, len(documents))
        vectors = self._encoder.encode_documents(documents)
        n_truncated = self._encoder.count_truncated(documents)
        unfinished = file.with_suffix(".part")
        with unfinished.open("wb") as out:
            np.savez(out, vectors=vectors, n_truncated=n_truncated)
            out.flush()
            os.fsync(out.fileno())
        unfinished.replace(file)
        return vectors, n_truncated

    def _read(self, file: Path, n_documents: int) -> tuple[Floats, int]:
        try:
            with np.load(file, allow_pickle=False) as kept:
                vectors: Floats = kept["vectors"]
                n_truncated = int(kept["n_truncated"])
            if len(vectors) != n_documents:
                raise ValueError(f"{len(vectors)} vectors for {n_documents} documents")
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise DataError(
                "a whole block of vectors of the build before is needed",
                str(error),
                where=str(file),
                hint="Delete the file and build again; only it is encoded anew.",
            ) from error
        return vectors, n_truncated


@contextmanager
def kept_blocks(target: Path, identity: Any) -> Iterator[Path]:
    """A folder beside `target` for the blocks of one build; it stays until a build succeeds.

    Its name tells it from those of other data or settings, and it has no manifest, so no reader opens
    it. A second build of the same waits for the first.

    Args:
        target: The folder of the index to be.
        identity: What the vectors depend on, as JSON knows it.
    """
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    folder = target.with_name(f".{target.name}{_MARK}{digest}")
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        _lock(lock, fcntl.LOCK_EX)
        folder.mkdir(exist_ok=True)  # the build waited for may have cleared it
        yield folder
        shutil.rmtree(folder, ignore_errors=True)
        _clear_abandoned(target)
    finally:
        os.close(lock)


def _lock(descriptor: int, how: int) -> bool:
    """Whether the lock was taken; where a file system has none, two builds do the same work."""
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        return False
    return True


def _clear_abandoned(target: Path) -> None:
    """Drops what builds of other data or settings left at the same place, unless one still runs."""
    for folder in target.parent.iterdir():
        if not folder.name.startswith(f".{target.name}{_MARK}"):
            continue
        with suppress(OSError):
            lock = os.open(folder, os.O_RDONLY)
            try:
                if _lock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    shutil.rmtree(folder)
            finally:
                os.close(lock)
