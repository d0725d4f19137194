"""Five stages on one query, on lists through Pipeline against the same five as pandas transformers.

python tests/bench/bench_pipeline.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pyterrier as pt

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from ratios import paired  # noqa: E402

from searchops.primitives import Dedupe, Extract, Filter, Rerank, Retrieve  # noqa: E402
from searchops.scorers.base import Scorer  # noqa: E402
from searchops.splitting import Words  # noqa: E402

N, K = 1000, 20
DOCUMENTS = [
    {"docno": f"d{n}", "title": f"t{n}", "text": f"word{n} " * 30, "year": 2000 + n % 25, "length": n % 97}
    for n in range(N)
]
BY_DOCNO = {document["docno"]: document for document in DOCUMENTS}


class Index:
    """The same engine for both: a fixed list of hits, so that only the pipelines are timed."""

    columns = ("docno", "title", "text", "year", "length")

    def __len__(self):
        return N

    def search(self, query, k):
        return [(f"d{n}", float(k - n)) for n in range(k)]

    def search_many(self, queries, k):
        return [self.search(query, k) for query in queries]

    def fetch(self, docnos):
        return [BY_DOCNO[docno] for docno in docnos]

    def statistics(self, analyzer):
        raise LookupError


class Length(Scorer):
    """A scorer that costs next to nothing."""

    def score(self, pairs):
        return [float(len(text)) for _, text in pairs]


class PandasRetrieve(pt.Transformer):
    """What a pandas-only retriever does: a frame of hits merged with the topics."""

    def transform(self, inp):
        rows = [
            {"qid": qid, **BY_DOCNO[docno], "score": score}
            for qid, query in zip(inp["qid"], inp["query"], strict=True)
            for docno, score in Index().search(query, K)
        ]
        return pt.model.add_ranks(inp.merge(pd.DataFrame(rows), on="qid"))


class PandasFilter(pt.Transformer):
    def transform(self, inp):
        return inp[inp["year"] >= 2000]


class PandasRerank(pt.Transformer):
    def transform(self, inp):
        out = inp.assign(score=inp["text"].str.len().astype(float))
        out = pt.model.add_ranks(out)
        return out[out["rank"] < 10].sort_values(["qid", "rank"])


class PandasExtract(pt.Transformer):
    def transform(self, inp):
        out = inp.groupby("qid").head(10).copy()
        out["passage_id"] = out["docno"] + "%p0"
        out["start"], out["end"] = 0, out["text"].str.len()
        out["passage_score"] = out["text"].str.len().astype(float)
        out["note"] = out["quote"] = out["text"]
        return out


class PandasDedupe(pt.Transformer):
    def transform(self, inp):
        return inp.drop_duplicates(["qid", "passage_id"])


ours = (
    Retrieve(Index(), k=K)
    >> Filter("year >= 2000")
    >> Rerank(Length(), k=10)
    >> Extract(Length(), k=10, splitter=Words(150))
    >> Dedupe("passage_id")
)
theirs = PandasRetrieve() >> PandasFilter() >> PandasRerank() >> PandasExtract() >> PandasDedupe()
QUERY = [{"qid": "1", "query": "a query"}]
FRAME = pd.DataFrame(QUERY)

if __name__ == "__main__":
    assert {r["docno"] for r in ours(QUERY)} == set(theirs(FRAME)["docno"])
    mine, peer, ratio = paired(lambda: ours(QUERY), lambda: theirs(FRAME), pairs=31, repeat=20)
    print(f"five stages, one query: lists {mine * 1e3:.3f} ms, pandas {peer * 1e3:.3f} ms, {1 / ratio:.1f} x faster")
    mine, peer, ratio = paired(lambda: ours(FRAME), lambda: theirs(FRAME), pairs=31, repeat=20)
    print(f"the same, DataFrame in and out: {mine * 1e3:.3f} ms, pandas {peer * 1e3:.3f} ms, {1 / ratio:.1f} x faster")
