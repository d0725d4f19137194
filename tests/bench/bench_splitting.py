"""Prints how many MB of text a CPU second the splitters cut, on real collections.

Run: python tests/bench/bench_splitting.py [FOLDER OF COLLECTIONS]
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from searchops.splitting import Sentences, Splitter, Words

COLLECTIONS = ("hotpotqa", "2wikimultihopqa", "scifact", "longdocs")
SPLITTERS = (Sentences(), Sentences(3, 1), Words(), Words(150, 75))


def seconds(splitter: Splitter, texts: list[str], rounds: int = 5) -> float:
    """CPU seconds, the best of some rounds: other work on the machine shall not count."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        for text in texts:
            splitter.spans({"docno": "d", "text": text})
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """One line a collection, and one for all texts as one document."""
    default = os.environ.get("SEARCHOPS_DATA") or Path(__file__).parents[3] / "shared" / "data"
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(default)
    found = {
        name: [json.loads(line)["text"] for line in (root / name / "corpus.jsonl").open(encoding="utf-8")]
        for name in COLLECTIONS
        if (root / name / "corpus.jsonl").is_file()
    }
    found["concatenated"] = ["\n\n".join(text for texts in found.values() for text in texts)]
    for name, texts in found.items():
        megabytes = sum(len(text.encode()) for text in texts) / 1e6
        for splitter in SPLITTERS:
            rate = megabytes / seconds(splitter, texts)
            print(f"{name:16} {megabytes:6.1f} MB  {rate:6.1f} MB/s  {splitter!r}")


if __name__ == "__main__":
    main()
