"""A run of an agent that is killed again and again, in a process of its own.

    python -m tests.killed_run FOLDER KIND N_PARALLEL N_KILLS SEED

It forks a child that records the run, kills it with SIGKILL behind a random number of further answers and a
random while, and so on; then it lets one come to its end. It prints the answers that stood in the record
before each kill, as JSON. An index in plain Python keeps the processes free of threads that a fork would lose.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

from searchops.agents import Budget
from searchops.errors import DataError
from searchops.models import Reply
from searchops.recorder import record
from searchops.scorers.lexical import Lexical
from tests.agent_scripts import AGENTS, searching

N_QUESTIONS = 40
WORDS = [
    "alder",
    "birch",
    "cedar",
    "elder",
    "fir",
    "hazel",
    "ivy",
    "juniper",
    "larch",
    "maple",
    "oak",
    "pine",
    "rowan",
    "spruce",
    "willow",
    "yew",
]


class WordIndex:
    """Documents that share words with a query, those that share most first."""

    columns = ("docno", "title", "text")

    def __init__(self) -> None:
        rng = random.Random(1)
        self.texts = {f"d{n}": ". ".join(" ".join(rng.choices(WORDS, k=6)) for _ in range(4)) + "." for n in range(60)}

    def __repr__(self) -> str:
        return "WordIndex()"

    def __len__(self) -> int:
        return len(self.texts)

    def search(self, query: str, k: int) -> list[tuple[str, float]]:
        asked = set(query.split())
        scores = {docno: float(sum(word in text for word in asked)) for docno, text in self.texts.items()}
        return sorted(((d, s) for d, s in scores.items() if s), key=lambda hit: (-hit[1], hit[0]))[:k]

    def search_many(self, queries: Any, k: int) -> list[list[tuple[str, float]]]:
        return [self.search(query, k) for query in queries]

    def fetch(self, docnos: Any) -> list[dict[str, Any]]:
        return [{"docno": docno, "title": docno, "text": self.texts[docno]} for docno in docnos]

    def statistics(self, analyzer: Any) -> Any:
        raise DataError("statistics are needed", "none kept", where="WordIndex")


class Policy:
    """Searches for the question's words, one decision each, then answers with them."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"Policy({self.kind!r})"

    def complete(self, messages: Any, *, tools: Any = (), **settings: Any) -> Reply:
        question = messages[1].content
        script = [turn for word in question.split() for turn in searching(self.kind, word)]
        n = sum(message.role == "assistant" for message in messages)
        time.sleep(0.001)
        return Reply(tool_calls=tuple(script[n])) if n < len(script) else Reply(f"about {question}")


def questions() -> pd.DataFrame:
    """The questions of the run."""
    rng = random.Random(2)
    return pd.DataFrame([{"qid": str(n), "query": " ".join(rng.sample(WORDS, 2))} for n in range(N_QUESTIONS)])


def run(folder: Path, kind: str, n_parallel: int) -> None:
    """Starts the run, or goes on with it."""
    agent = AGENTS[kind](Policy(kind), WordIndex(), Lexical("candidates"), n_parallel=n_parallel,
                         budget=Budget(decisions=20))  # fmt: skip
    with record(folder, mode="resume" if (folder / "run.json").exists() else "new"):
        agent(questions())


def answered(folder: Path) -> int:
    file = folder / "answers.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def forked(folder: Path, kind: str, n_parallel: int) -> int:
    child = os.fork()
    if child == 0:
        try:
            run(folder, kind, n_parallel)
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    return child


def killed(folder: Path, kind: str, n_parallel: int, rng: random.Random) -> int:
    """Kills a child at a random moment; returns how many answers there were."""
    child = forked(folder, kind, n_parallel)
    wanted = answered(folder) + rng.randint(0, 2)
    while answered(folder) < wanted and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.0005)
    time.sleep(rng.random() * 0.02)
    try:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):
        pass
    return answered(folder)


def main() -> None:
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    n_parallel, n_kills, seed = map(int, sys.argv[3:6])
    rng = random.Random(seed)
    moments = [killed(folder, kind, n_parallel, rng) for _ in range(n_kills)]
    _, status = os.waitpid(forked(folder, kind, n_parallel), 0)
    print(json.dumps(moments))
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
