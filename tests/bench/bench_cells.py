"""Prints what a cell costs over its primitives, with 300 candidates in the workspace.

Run: python tests/bench/bench_cells.py [COLLECTION]

The cost is the time of `run` less the seconds spent in the five operations; half of it is the type check and
the saving of the state, which grows with the characters that the variables hold. The last lines give the
memory of host and workers after many cells.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import searchops as so
from searchops.cells import CellRunner
from searchops.engines.lucene import LuceneIndex
from searchops.scorers.lexical import Lexical
from searchops.substrate import Substrate
from searchops.workspace import Workspace

CANDIDATES = 300
CELLS = {
    "look at nothing": "len(pool)",
    "look at all ids": "ids = [c.docno for c in pool]\nids[:5]",
    "filter by a lambda": "kept = filter(pool, lambda c: 'a' in c.title)\nlen(kept)",
    "filter by text": "kept = filter(pool, 'title contains \"a\"')\nlen(kept)",
    "rerank": "best = rerank(pool)\n[c.docno for c in best]",
    "filter, rerank, extract": "rows = extract(rerank(filter(pool, lambda c: 'a' in c.title)), 'who')\n"
    "{'ids': [r['passage_id'] for r in rows], 'notes': [r['note'][:1600] for r in rows[:3]]}",
    "an error": "x = 1 / 0",
}


def fill(runner: CellRunner, queries: list[str]) -> None:
    """Retrieves until the pool holds enough."""
    runner.run("pool = []")
    for start in range(0, len(queries), 10):
        some = queries[start : start + 10]
        shown = runner.run(
            f"for q in {some!r}:\n    pool = dedupe(pool, retrieve(q))\npool = pool[:{CANDIDATES}]\nlen(pool)"
        )
        if shown.observation.startswith(str(CANDIDATES)):
            return
    raise SystemExit(f"the collection gives fewer than {CANDIDATES} candidates")


def overhead_ms(runner: CellRunner, code: str, rounds: int = 101) -> tuple[float, float]:
    """Median and best milliseconds of a cell over its primitives."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        result = runner.run(code)
        times.append(1000 * (time.perf_counter() - start - result.costs.seconds))
    return statistics.median(times), min(times)


def memory_mb() -> dict[str, float]:
    """Resident memory of this process and of the workers it started."""
    found: dict[str, float] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if int(lines["PPid"]) == int(Path("/proc/self").readlink().name) and "VmRSS" in lines:
            found[f"worker {status.parent.name}"] = int(lines["VmRSS"].split()[0]) / 1024
    own = Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]
    return {"host": int(own) / 1024, **found}


def main() -> None:
    """One line a cell, then memory."""
    collection = so.load(sys.argv[1] if len(sys.argv) > 1 else "pydocs")
    with tempfile.TemporaryDirectory() as folder:
        engine = LuceneIndex.build(collection, Path(folder) / "index")
        titles = [str(title) for title in collection.documents["title"].head(4000).tolist()[::40]]
        with CellRunner(Substrate(Workspace("1", "who?"), engine, Lexical())) as runner:
            fill(runner, titles)
            held = sum(len(candidate.record["text"]) for candidate in runner.workspace.candidates.values())
            print(f"{CANDIDATES} candidates, {held / 1000:,.0f} thousand characters")
            for name, code in CELLS.items():
                median, best = overhead_ms(runner, code)
                print(f"{name:26} median {median:6.2f} ms   best {best:6.2f} ms")
            print("memory, MB:", {name: round(size) for name, size in memory_mb().items()})
        for n in range(100):
            with CellRunner(Substrate(Workspace(str(n), "who?"), engine, Lexical())) as runner:
                fill(runner, titles)
                for _ in range(50):
                    runner.run(CELLS["filter, rerank, extract"])
            if n % 25 == 24:
                print(f"after {n + 1} questions, MB:", {name: round(size) for name, size in memory_mb().items()})


if __name__ == "__main__":
    main()
