"""Two questions side by side against one after the other, where the model is the bottleneck.

python -m tests.bench.bench_agents    (a loopback endpoint that answers after 50 ms)
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import searchops as so
from searchops.agents import QueryAgent
from searchops.models import OpenAIModel
from tests.bench.ratios import paired
from tests.loopback_openai import Answer, LoopbackOpenAI, calls, says

DELAY_S, SEARCHES, QUESTIONS = 0.05, 6, 8


def policy(body: dict) -> Answer:
    """Some searches, then an answer; every reply takes its time."""
    searched = sum(message["role"] == "tool" for message in body["messages"])
    question = next(message["content"] for message in body["messages"] if message["role"] == "user")
    if searched >= SEARCHES:
        return says("done", delay_s=DELAY_S)
    query = json.dumps({"query": f"{question.split()[searched % len(question.split())]} {question[:60]}"})
    return Answer(calls(("search", query)).body, delay_s=DELAY_S)


def main() -> None:
    """Prints how much faster two questions at once are."""
    collection = so.load(os.environ.get("SEARCHOPS_DATA", "../shared/data") + "/hotpotqa")
    topics = collection.topics.head(QUESTIONS)
    with tempfile.TemporaryDirectory() as home, LoopbackOpenAI(policy) as server:
        index = so.LuceneIndex.build(collection, Path(home) / "ix", progress=False)
        model = OpenAIModel("loopback-1", server.url, api_key_env=None, max_concurrency=2)
        one, two = (QueryAgent(model, index, n_parallel=n) for n in (1, 2))
        mine, peer, ratio = paired(lambda: two(topics), lambda: one(topics), pairs=5)
        print(f"{QUESTIONS} questions: two at once {mine:.2f} s, one at once {peer:.2f} s, {1 / ratio:.2f} x as fast")


if __name__ == "__main__":
    main()
