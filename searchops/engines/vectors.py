"""The files that hold an index's vectors: written block by block, opened memory-mapped."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from searchops.engines.folder import Manifest
from searchops.engines.inner_product import Exact, Graph, Half, Nearest
from searchops.errors import DataError, SpecError, did_you_mean, sentence

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["opened", "settings", "write"]

DTYPES = ("float32", "float16")
_ROWS = "vectors.npy"
_FAISS = "vectors.faiss"
_GRAPH = {"m": 32, "ef_construction": 200}


def settings(dtype: str, hnsw: bool | dict[str, int]) -> dict[str, Any]:
    """What a manifest says of the vectors.

    Raises:
        SpecError: No such dtype or graph setting.

    Example:
        >>> settings("float32", {"m": 16})
        {'dtype': 'float32', 'hnsw': {'m': 16, 'ef_construction': 200}}
    """
    if dtype not in DTYPES:
        hint = sentence(did_you_mean(str(dtype), DTYPES))
        raise SpecError("a known dtype is needed", repr(dtype), where="DenseIndex.build", hint=hint)
    if hnsw is False or hnsw is None:
        return {"dtype": dtype, "hnsw": None}
    given = {} if hnsw is True else dict(hnsw)
    for name, value in given.items():
        if name not in _GRAPH:
            hint = sentence(did_you_mean(str(name), _GRAPH))
            raise SpecError("a known graph setting is needed", repr(name), where="hnsw", hint=hint)
        if not isinstance(value, int) or value < 2:
            raise SpecError(f"{name} must be a whole number of at least 2", repr(value), where="hnsw")
    return {"dtype": dtype, "hnsw": {**_GRAPH, **given}}


def write(folder: Path, manifest: Manifest, blocks: Iterator[npt.NDArray[np.float32]], dimensions: int) -> None:
    """Writes all blocks in the form that the manifest's settings ask for."""
    manifest.facts["dimensions"] = dimensions
    half, graph = manifest.settings["dtype"] == "float16", manifest.settings["hnsw"]
    if not half and graph is None:
        _write_rows(folder / _ROWS, (manifest.n_documents, dimensions), blocks)
        return
    index = _empty_index(dimensions, half, graph)
    for block in blocks:
        index.add(block)
    _faiss().write_index(index, str(folder / _FAISS))


def _faiss() -> Any:
    return importlib.import_module("faiss")  # its type stubs name only a part of it


def _write_rows(file: Path, shape: tuple[int, int], blocks: Iterator[npt.NDArray[np.float32]]) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with file.open("wb") as out:  # not by a mapped file: on a full disk that kills the process
        np.lib.format.write_array_header_1_0(out, header)
        for block in blocks:
            out.write(np.ascontiguousarray(block, "<f4").tobytes())


def _empty_index(dimensions: int, half: bool, graph: dict[str, int] | None) -> Any:
    faiss = _faiss()
    product, fp16 = faiss.METRIC_INNER_PRODUCT, faiss.ScalarQuantizer.QT_fp16
    if graph is None:
        return faiss.IndexScalarQuantizer(dimensions, fp16, product)
    if half:
        index = faiss.IndexHNSWSQ(dimensions, fp16, graph["m"], product)
        index.is_trained = True  # float16 has nothing to learn from data
    else:
        index = faiss.IndexHNSWFlat(dimensions, graph["m"], product)
    index.hnsw.efConstruction = graph["ef_construction"]
    return index


def opened(folder: Path, manifest: Manifest, ef_search: int) -> Nearest:
    """What searches the vectors of a folder.

    Raises:
        DataError: The file is missing, damaged or not of the manifest's size.
    """
    wanted = (manifest.n_documents, manifest.facts.get("dimensions"))
    if not manifest.n_documents:
        return Exact(np.empty((0, 1), np.float32))  # an empty file cannot be mapped
    half, graph = manifest.settings["dtype"] == "float16", manifest.settings["hnsw"]
    if not half and graph is None:
        rows = _read(folder / _ROWS, wanted)
        return Exact(rows)
    index = _read(folder / _FAISS, wanted)
    return Half(index, index.d) if graph is None else Graph(index, ef_search)


def _read(file: Path, wanted: tuple[int, Any]) -> Any:
    try:
        if file.suffix == ".npy":
            found = np.load(file, mmap_mode="r", allow_pickle=False)
            shape = found.shape
        else:
            faiss = _faiss()
            found = faiss.read_index(str(file), faiss.IO_FLAG_MMAP_IFC)
            shape = (found.ntotal, found.d)
        if shape != wanted:
            raise ValueError(f"vectors of shape {shape}, not {wanted}")
    except (OSError, ValueError, RuntimeError, EOFError) as error:
        raise DataError(
            "a whole file of vectors is needed",
            str(error).splitlines()[0] if str(error) else type(error).__name__,
            where=str(file),
            hint="It is damaged: build the index anew with overwrite=True.",
        ) from error
    return found
