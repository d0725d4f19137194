"""trec_eval's own expected outputs, reproduced from files that our readers read.

Source: trec_eval after 9.0.8, Makefile (quicktest) and test/; CACM: Anserini's regression page, P@30.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import ir_measures
import pandas as pd
import pytest
import pytrec_eval

from searchops.errors import DataError
from searchops.trec import read_qrels, read_run

NOT_COMPUTED = {"runid", "relstring", "relstring_20", "rbp", "rbp_resid", "unj_5", "unj_10", "unj_20"}
"""Measures that pytrec_eval does not offer."""

Outputs = dict[tuple[str, str], str]
SharedData = Callable[[str], Path]


def _expected(path: Path) -> Outputs:
    lines = (line.split("\t") for line in path.read_text().splitlines())
    return {(measure.strip(), qid): value for measure, qid, value in lines}


def _nested(frame: pd.DataFrame, column: str) -> dict[str, dict[str, Any]]:
    nested: dict[str, dict[str, Any]] = {}
    for qid, docno, value in zip(frame["qid"], frame["docno"], frame[column].tolist(), strict=True):
        nested.setdefault(qid, {})[docno] = value
    return nested


def _trec_eval(
    qrels: pd.DataFrame, run: pd.DataFrame, *, level: int = 1, complete: bool = False, measures: Any = None
) -> dict[tuple[str, str], float]:
    """Values by (measure, qid), with `all`; `complete` counts questions the run lacks, as -c does."""
    judged = _nested(qrels, "label")
    names = measures or pytrec_eval.supported_measures - {"runid", "relstring"}
    found = pytrec_eval.RelevanceEvaluator(judged, names, relevance_level=level).evaluate(_nested(run, "score"))
    for qid in judged.keys() - found.keys() if complete else ():
        found[qid] = dict.fromkeys(next(iter(found.values())), 0.0)
        found[qid] |= dict.fromkeys(("gm_map", "gm_bpref"), -11.512925464970229)  # log of trec_eval's floor
        found[qid]["num_rel"] = sum(label >= level for label in judged[qid].values())
        found[qid]["num_q"] = 1.0
    for qid, row in found.items() if measures is None else ():
        relevant = {docno for docno, label in judged[qid].items() if label >= level}
        row |= _interpolated(run.loc[run["qid"] == qid, "docno"].tolist(), relevant)
    values = {(measure, qid): value for qid, row in found.items() for measure, value in row.items()}
    for measure in next(iter(found.values())):
        column = [row[measure] for row in found.values()]
        values[measure, "all"] = pytrec_eval.compute_aggregated_measure(measure, column)
    return values


def _interpolated(docnos: list[str], relevant: set[str]) -> dict[str, float]:
    """Interpolated precision with recall cut-offs rounded to the nearest number of documents.

    trec_eval rounds so since 9.0.8; the older code in pytrec_eval rounds up.
    """
    hits = list(accumulate(docno in relevant for docno in docnos))
    precisions = [(n_hits, n_hits / rank) for rank, n_hits in enumerate(hits, start=1)]
    values = {
        f"iprec_at_recall_{tenth / 10:.2f}": max(
            (precision for n_hits, precision in precisions if n_hits >= int(tenth / 10 * len(relevant) + 0.5)),
            default=0.0,
        )
        for tenth in range(11)
    }
    return values | {"11pt_avg": sum(values.values()) / 11}


def _agree(expected: Outputs, values: dict[tuple[str, str], float]) -> None:
    left_out = {measure for measure, _ in expected} - {measure for measure, _ in values}
    assert left_out <= NOT_COMPUTED
    compared = {key: text for key, text in expected.items() if key in values}
    assert len(compared) >= 0.92 * len(expected)
    rendered = {key: f"{values[key]:.4f}" if "." in text else f"{values[key]:.0f}" for key, text in compared.items()}
    assert rendered == compared


@pytest.mark.parametrize(
    ("output", "qrels", "run", "options"),
    [
        ("out.test", "qrels.test", "results.test", {}),
        ("out.test", "qrels.test.with-comments", "results.test", {}),
        ("out.test.a", "qrels.test", "results.test", {}),
        ("out.test.aq", "qrels.test", "results.test", {}),
        ("out.test.aqc", "qrels.test", "results.trunc", {"complete": True}),
        ("out.test.aqcM", "qrels.test", "results.trunc", {"complete": True, "depth": 100}),
        ("out.test.aql", "qrels.rel_level", "results.test", {"level": 2}),
        ("out.comment.test", "qrels.comment.test", "results.comment.test", {}),
    ],
)
def test_trec_evals_expected_outputs_come_out_of_files_that_we_read(
    output: str, qrels: str, run: str, options: dict[str, Any], shared_data: SharedData
) -> None:
    folder = shared_data("trec_eval")
    judged, retrieved = read_qrels(folder / qrels), read_run(folder / run)
    retrieved = retrieved[retrieved["rank"] < options.pop("depth", len(retrieved))]
    _agree(_expected(folder / output), _trec_eval(judged, retrieved, **options))


def test_measures_with_parameters_come_out_too(shared_data: SharedData) -> None:
    folder = shared_data("trec_eval")
    measures = {"P.3,5,7", "recall.20,2000", "ndcg_cut.10,20,23", "success.2,5,20"}
    values = _trec_eval(read_qrels(folder / "qrels.test"), read_run(folder / "results.test"), measures=measures)
    expected = _expected(folder / "out.test.meas_params")
    shared = {key: text for key, text in expected.items() if key in values}
    assert len(shared) == 4 * 11
    assert {key: f"{values[key]:.4f}" for key in shared} == shared


def test_z_scores_against_published_means_come_out(shared_data: SharedData) -> None:
    folder = shared_data("trec_eval")
    values = _trec_eval(read_qrels(folder / "qrels.test"), read_run(folder / "results.test"))
    expected = _expected(folder / "out.test.aqZ")
    compared = 0
    for line in (folder / "zscores_file").read_text().splitlines():
        qid, measure, mean, deviation = line.split()
        key = (f"Z{measure}", qid)
        if (measure, qid) in values and float(deviation):
            z = (values[measure, qid] - float(mean)) / float(deviation)
            assert float(expected[key]) == pytest.approx(z, abs=1e-4)
            compared += 1
    assert compared > 150


def test_the_published_precision_of_anserinis_bm25_on_cacm_comes_out(shared_data: SharedData) -> None:
    raw = shared_data("cacm") / "raw"
    names = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
    qrels = read_qrels(raw / "qrels.cacm.txt").rename(columns=names)
    run = read_run(raw / "run.anserini-bm25.txt").rename(columns=names)
    precision = ir_measures.P @ 30
    assert round(ir_measures.calc_aggregate([precision], qrels, run)[precision], 4) == 0.1942


def test_a_file_with_the_judgements_of_several_groups_is_no_qrels_file(shared_data: SharedData) -> None:
    path = shared_data("trec_eval") / "qrels.comments.123"
    with pytest.raises(DataError) as caught:
        read_qrels(path)
    assert str(caught.value).startswith(f"{path}:3685: every entry once is needed; found docno 'CR93E-10279'")
