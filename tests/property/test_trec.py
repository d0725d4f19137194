"""What is written to TREC files is what is read from them; PyTerrier and ir_measures read it alike."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ir_measures
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from searchops.trec import read_qrels, read_run, write_qrels, write_run

IDS = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Z")), min_size=1, max_size=8).filter(
    lambda text: len(text.split()) == 1 and not text.startswith(("#", "\ufeff"))
)
SCORES = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, 0.1 + 0.2, 5e-324])
RUNS = st.lists(st.tuples(IDS, IDS, SCORES), unique_by=lambda row: row[:2], max_size=20)


@contextmanager
def _path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "file"


@given(RUNS)
def test_a_run_reads_back_with_every_score_exact_and_in_trec_evals_order(
    rows: list[tuple[str, str, float]],
) -> None:
    with _path() as path:
        write_run(pd.DataFrame(rows, columns=["qid", "docno", "score"]), path)
        got = read_run(path)
    back = zip(got["qid"], got["docno"], map(float.hex, got["score"]), strict=True)
    assert set(back) == {(qid, docno, score.hex()) for qid, docno, score in rows}
    assert list(dict.fromkeys(got["qid"])) == list(dict.fromkeys(qid for qid, _, _ in rows))
    for qid, part in got.groupby("qid"):
        mine = sorted((row for row in rows if row[0] == qid), key=lambda row: (row[2], row[1]), reverse=True)
        assert part["docno"].tolist() == [docno for _, docno, _ in mine]
        assert part["rank"].tolist() == list(range(len(mine)))


@given(RUNS)
def test_writing_what_was_read_gives_the_same_bytes(rows: list[tuple[str, str, float]]) -> None:
    with _path() as path:
        write_run(pd.DataFrame(rows, columns=["qid", "docno", "score"]), path)
        first = path.read_bytes()
        write_run(read_run(path), path)
        assert path.read_bytes() == first


@given(RUNS)
def test_ir_measures_reads_the_same_run(rows: list[tuple[str, str, float]]) -> None:
    with _path() as path:
        write_run(pd.DataFrame(rows, columns=["qid", "docno", "score"]), path)
        theirs = [(row.query_id, row.doc_id, row.score) for row in ir_measures.read_trec_run(str(path))]
        ours = list(read_run(path)[["qid", "docno", "score"]].itertuples(index=False, name=None))
    assert theirs == ours


@given(st.lists(st.tuples(IDS, IDS, st.integers(-5, 5)), unique_by=lambda row: row[:2], max_size=20))
def test_qrels_read_back_as_they_were(rows: list[tuple[str, str, int]]) -> None:
    with _path() as path:
        write_qrels(pd.DataFrame(rows, columns=["qid", "docno", "label"]), path)
        got = read_qrels(path)
    assert list(got.itertuples(index=False, name=None)) == rows
