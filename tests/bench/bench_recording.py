"""What recording costs: rows a second and bytes a row, memory, and the share of a real pipeline's time.

python tests/bench/bench_recording.py [FOLDER OF hotpotqa]
"""

from __future__ import annotations

import os
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from ratios import paired  # noqa: E402

import searchops as so  # noqa: E402
from searchops.recorder import Recorder  # noqa: E402
from searchops.records import Event  # noqa: E402

ROWS, PER_EVENT = 4_150_000, 50


def many_rows() -> None:
    """4.15 million candidate rows with random ids and full-entropy scores, handed over and written."""
    rng = random.Random(0)
    docnos = [f"{rng.getrandbits(64):016x}" for _ in range(100_000)]
    batches = [
        [
            {"docno": docno, "score": rng.random() * 30, "rank": n}
            for n, docno in enumerate(rng.sample(docnos, PER_EVENT))
        ]
        for _ in range(500)
    ]
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start, cpu = time.perf_counter(), time.process_time()
        recorder = Recorder(Path(folder) / "run", "new", {})
        for n in range(ROWS // PER_EVENT):
            event = Event(
                str(n // 5), "a query", 0, str(n % 5), "rerank k=50", "rerank", "Rerank", "0", -1, 50, 50, 0.0
            )
            recorder.add(event, batches[n % 500])
            recorder.checkpoint(force=False)
        recorder.close(status="finished")
        wall, used = time.perf_counter() - start, time.process_time() - cpu
        size = sum(f.stat().st_size for f in (Path(folder) / "run" / "candidates").iterdir())
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(
            f"{ROWS:,} rows: {wall:.2f} s ({wall / ROWS * 1e6:.2f} µs a row; {used:.2f} s CPU), "
            f"{size / 1e6:.1f} MB ({size / ROWS:.2f} bytes a row), peak memory +{grown:.0f} MB"
        )


def share_of_a_pipeline(folder: str) -> None:
    """A Lucene pipeline over HotpotQA, recorded and not."""
    collection = so.load(folder)
    with tempfile.TemporaryDirectory() as home:
        index = so.LuceneIndex.build(collection, Path(home) / "ix", progress=False)
        pipe = (
            so.Retrieve(index, k=20) >> so.Rerank(so.Lexical(), k=10) >> so.Extract(so.Lexical(), k=10) >> so.Dedupe()
        )
        topics = collection.topics

        def plain() -> None:
            pipe(topics)

        n = 0

        def recorded() -> None:
            nonlocal n
            n += 1
            with so.record(Path(home) / f"run{n}"):
                pipe(topics)

        mine, peer, ratio = paired(recorded, plain, pairs=25)
        print(
            f"{len(topics)} questions of {collection.name}: recorded {mine:.3f} s, not {peer:.3f} s, "
            f"+{(ratio - 1) * 100:.1f} %"
        )


if __name__ == "__main__":
    many_rows()
    share_of_a_pipeline(
        sys.argv[1] if len(sys.argv) > 1 else os.environ.get("SEARCHOPS_DATA", "../shared/data") + "/hotpotqa"
    )
