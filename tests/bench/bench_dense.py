"""Exact search at 1M x 384 float32 against faiss IndexFlatIP: medians of alternating pairs, as ratios.

    python tests/bench/bench_dense.py [rows]

Bars: one query no slower than faiss (ratio >= 1), 64 queries at least 4 times faster, the same ids. faiss
runs with its default BLAS threshold, and for 64 queries also with 1000, which suits a batch of that size.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from searchops.engines.inner_product import Exact, Half
from searchops.engines.vectors import _write_rows

DIMENSIONS = 384


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = work()
    return (time.perf_counter() - start) * 1e3, found


def compare(name: str, ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int) -> None:
    ours(), theirs()
    pairs, shared, wanted = [], 0, 0
    for _ in range(rounds):
        a, found = timed(ours)
        b, (_, ids) = timed(theirs)
        pairs.append((a, b))
    for one, row in zip(found, ids, strict=True):
        shared += len(set(one.rows.tolist()) & set(row.tolist()))
        wanted += len(row)
    a, b = np.median(np.array(pairs), axis=0)
    ratio = np.median([b / a for a, b in pairs])
    print(f"{name:44s} ours {a:8.1f} ms   faiss {b:8.1f} ms   ratio {ratio:5.2f}   same ids {shared / wanted:.5f}")


def main(n_rows: int) -> None:
    rng = np.random.default_rng(0)
    queries = unit(rng.standard_normal((64, DIMENSIONS), dtype=np.float32))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vectors.npy"
        blocks = (unit(rng.standard_normal((min(65_536, n_rows - first), DIMENSIONS), dtype=np.float32))
                  for first in range(0, n_rows, 65_536))  # fmt: skip
        _write_rows(file, (n_rows, DIMENSIONS), blocks)
        rows = np.load(file, mmap_mode="r")
        flat = faiss.IndexFlatIP(DIMENSIONS)
        flat.add(np.asarray(rows))
        exact = Exact(rows)
        default = faiss.cvar.distance_compute_blas_threshold
        print(f"{n_rows:,} x {DIMENSIONS}, k=100, faiss {faiss.__version__}, BLAS threshold {default}")
        compare("1 query, float32", lambda: exact(queries[:1], 100), lambda: flat.search(queries[:1], 100), 15)
        compare("64 queries, float32", lambda: exact(queries, 100), lambda: flat.search(queries, 100), 5)
        faiss.cvar.distance_compute_blas_threshold = 1000
        compare("64 queries, float32, BLAS threshold 1000", lambda: exact(queries, 100),
                lambda: flat.search(queries, 100), 5)  # fmt: skip
        faiss.cvar.distance_compute_blas_threshold = default
        store = faiss.IndexScalarQuantizer(DIMENSIONS, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
        store.add(np.asarray(rows))
        half = Half(store, DIMENSIONS)
        compare("1 query, float16", lambda: half(queries[:1], 100), lambda: flat.search(queries[:1], 100), 15)
        compare("64 queries, float16", lambda: half(queries, 100), lambda: flat.search(queries, 100), 3)


def unit(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


if __name__ == "__main__":
    main(int(sys.argv[1].replace("_", "")) if len(sys.argv) > 1 else 1_000_000)
