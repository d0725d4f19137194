"""No passage is lost silently: what a trace says of random pipelines, against their rows."""

import pandas as pd
import pyterrier as pt
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from searchops import recorder
from searchops.accounting import delivery, funnel
from searchops.frames import ranked
from searchops.fusion import RRF, Rewrite, Union
from searchops.pipeline import Pipeline
from searchops.primitives import Dedupe, Extract, Filter, Rerank
from searchops.scorers.lexical import Lexical
from searchops.scorers.statistics import Analyzer, TermStatistics
from searchops.splitting import Sentences, Words

WORDS = ["lake", "deep", "river", "seal", "cold", "north"]
LEXICAL = Lexical(TermStatistics.from_texts(["lake deep", "river", "lake cold seal"], Analyzer()))


class Shortest(pt.Transformer):
    """Somebody else's reranker: the shortest text of each task first, at most two."""

    def transform(self, inp):
        ordered = pt.model.add_ranks(inp.assign(score=[-float(len(text)) for text in inp["text"]]))
        return ordered[ordered["rank"] < 2]


sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(
    lambda words: " ".join(words).capitalize() + "."
)
texts = st.lists(sentences, max_size=4).map(" ".join)
scores = st.sampled_from([0.0, 0.5, 0.5, 1.0, 2.0])


@st.composite
def candidates(draw):
    """Rows of one or two tasks, in rank order; a task's documents are its own."""
    rows = []
    for qid in draw(st.sampled_from([["1"], ["1", "2"]])):
        found = draw(st.lists(st.tuples(texts, scores, st.integers(2000, 2003)), min_size=1, max_size=5))
        group = [
            {
                "qid": qid,
                "query": draw(st.sampled_from(WORDS)),
                "docno": f"{qid}/d{n}",
                "text": text,
                "year": year,
                "score": s,
            }
            for n, (text, s, year) in enumerate(found)
        ]
        rows += ranked({**row, "query": group[0]["query"]} for row in group)
    return rows


ks = st.integers(1, 4)
anywhere = st.one_of(
    st.integers(2000, 2003).map(lambda year: Filter(f"year >= {year}")),
    st.builds(Rerank, st.just(LEXICAL), st.none() | ks, fields=st.just(("text",))),
    st.just(Dedupe("docno")),
    st.just(Rewrite("{query} lake")),
    st.just(Shortest()),
    ks.map(pt.RankCutoff),
)
extracts = st.builds(
    Extract,
    st.just(LEXICAL),
    st.none() | ks,
    splitter=st.sampled_from([Sentences(), Sentences(2, 1), Words(3), Words(4, 2)]),
    per_document=st.none() | st.integers(1, 3),
    depth=st.none() | ks,
)
branches = st.lists(anywhere, min_size=1, max_size=2).map(lambda stages: Pipeline(*stages))
fusions = st.one_of(
    st.lists(branches, min_size=1, max_size=3).map(lambda b: Union(*b)),
    st.builds(lambda b, k: RRF(*b, k=k), st.lists(branches, min_size=1, max_size=3), st.none() | ks),
)
before = st.lists(anywhere | fusions, max_size=3)
pipelines = st.builds(
    lambda head, extract, tail: Pipeline(*head, extract, *tail),
    before,
    extracts,
    st.lists(anywhere | extracts, max_size=2),
)


@st.composite
def labels(draw, rows):
    """Spans, passages and documents; some of a document that is no candidate."""
    found = []
    for row in [*rows, {**rows[0], "docno": "elsewhere", "text": "Nowhere to be seen."}]:
        length = len(row["text"])
        if length and draw(st.booleans()):
            start = draw(st.integers(0, length - 1))
            end = draw(st.integers(start + 1, length))
            found.append({"qid": row["qid"], "docno": row["docno"], "start": start, "end": end, "passage_id": None})
        if draw(st.integers(0, 3)) == 0:
            number = draw(st.integers(0, 2))
            found.append({"qid": row["qid"], "docno": None, "passage_id": f"{row['docno']}%p{number}"})
        if draw(st.integers(0, 3)) == 0:
            found.append({"qid": row["qid"], "docno": row["docno"], "passage_id": None})
    found.append({"qid": "1", "docno": "elsewhere", "start": 0, "end": 3, "passage_id": None})
    return pd.DataFrame(found, columns=["qid", "docno", "start", "end", "passage_id"]).drop_duplicates(
        ignore_index=True
    )


@st.composite
def cases(draw):
    rows = draw(candidates())
    return rows, draw(pipelines), draw(labels(rows))


def covered(label, rows):
    """Whether the rows hold the label, character by character."""
    docno = label.docno if isinstance(label.docno, str) else label.passage_id.rpartition("%p")[0]
    mine = [row for row in rows if row["qid"] == label.qid and row["docno"] == docno]
    if not mine or any("passage_id" not in row for row in mine):
        return bool(mine)
    if isinstance(label.passage_id, str):
        return any(row["passage_id"] == label.passage_id for row in mine)
    if pd.isna(label.start):
        return True
    return set(range(int(label.start), int(label.end))) <= {n for row in mine for n in range(row["start"], row["end"])}


def check(rows, pipe, evidence):
    with recorder.record() as run:
        out = pipe(rows)
    read = run.run()
    table = funnel(read, evidence)
    top = table[~table["stage"].str.contains(".", regex=False)].reset_index(drop=True)
    tasks = evidence[evidence["qid"].isin({row["qid"] for row in rows})]

    # Rows: each stage's counts are those of the stages run one by one.
    assert len(top) == len(pipe)
    step = rows
    for place, stage in enumerate(pipe):
        n_tasks = top.loc[place, "tasks"]
        assert round(top.loc[place, "n_in"] * n_tasks) == len(step)
        step = Pipeline(stage)(step) if step else []
        assert round(top.loc[place, "n_out"] * n_tasks) == len(step)
        # Labels: those that come out are those that the rows hold.
        assert top.loc[place, "labels_out"] == sum(covered(label, step) for label in tasks.itertuples())
    assert step == out

    # No label is lost but at a stage that says so.
    assert top.loc[0, "labels_in"] == len(tasks)
    assert top["labels_in"].tolist()[1:] == top["labels_out"].tolist()[:-1]
    assert (top["lost"] >= 0).all()
    assert len(tasks) == top["labels_out"].iloc[-1] + top["lost"].sum()

    # Delivered is what the rows at the end hold; the others are lost at one of the stages.
    found = delivery(read, evidence)
    assert found["delivered"].tolist() == [covered(label, out) for label in tasks.itertuples()]
    names = {"not retrieved", *top["label"]}
    assert all(place in names for place in found.loc[~found["delivered"], "lost_at"])
    assert (found.loc[found["delivered"], "lost_at"] == "").all()
    assert (found["outcome"] == "unavailable").tolist() == (~found["available"]).tolist()
    lost = found[~found["delivered"] & (found["lost_at"] != "not retrieved")]
    per_stage = top.groupby("label")["lost"].sum()
    for name, count in lost.groupby("lost_at").size().items():
        assert count <= per_stage[name]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_a_trace_loses_no_passage_silently(case):
    check(*case)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_recording_and_the_form_of_the_input_change_no_row(case):
    rows, pipe, _ = case
    plain = pipe(rows)
    with recorder.record():
        assert pipe(rows) == plain
    tasks = [[row for row in rows if row["qid"] == qid] for qid in ("1", "2")]
    assert [row for task in tasks if task for row in pipe(task)] == plain
    frame = pipe(pd.DataFrame(rows))
    assert frame["docno"].tolist() == [row["docno"] for row in plain]
    assert frame["score"].tolist() == [row["score"] for row in plain]
