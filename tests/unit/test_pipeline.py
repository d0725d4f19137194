"""Pipelines with other people's transformers in them, and PyTerrier's own operators and experiments."""

from collections.abc import Callable

import ir_measures
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP, P, R, nDCG
from pyterrier._ops import Compose

from searchops import recorder
from searchops.corpus import Collection
from searchops.engines.lucene import LuceneIndex
from searchops.errors import FrameError
from searchops.experiments.comparison import Recorded
from searchops.fusion import RRF, Rewrite, Union
from searchops.pipeline import Pipeline, normalise
from searchops.primitives import Dedupe, Extract, Filter, Rerank, Retrieve
from searchops.scorers.lexical import Lexical


class Fixed(pt.Transformer):
    """Gives the same frame whatever it gets: an operand by its value."""

    def __init__(self, frame):
        self.frame = frame

    def transform(self, inp):
        return self.frame.copy()


class ByLength(pt.Transformer):
    """Somebody else's reranker: short texts first."""

    def transform(self, inp):
        return pt.model.add_ranks(inp.assign(score=[-float(len(text)) for text in inp["text"]]))


class Crash(pt.Transformer):
    """Fails on what it does not like."""

    def __init__(self, error: Callable[[pd.DataFrame], bool]):
        self.error = error

    def transform(self, inp):
        if self.error(inp):
            raise ValueError("boom")
        return inp


class TakeApart(pt.Transformer):
    """Makes a task of each word of a query."""

    def transform(self, inp):
        rows = [
            {"qid": f"{qid}-{n}", "query": word}
            for qid, query in zip(inp["qid"], inp["query"], strict=True)
            for n, word in enumerate(query.split())
        ]
        return pd.DataFrame(rows)


def same(left, right):
    """Equal frames but for the order of columns and dtype of texts."""
    pd.testing.assert_frame_equal(
        left.reset_index(drop=True), right[list(left.columns)].reset_index(drop=True), check_dtype=False
    )
    assert set(left.columns) == set(right.columns)


@pytest.fixture
def topics(tiny_collection):
    return tiny_collection.topics


# -- composition -------------------------------------------------------------------------------


def test_a_stage_on_the_left_builds_a_pipeline_and_one_on_the_right_a_plain_composition(tiny_index):
    assert type(Retrieve(tiny_index) >> ByLength()) is Pipeline
    assert type(ByLength() >> Dedupe()) is Compose
    assert type((ByLength() >> Dedupe()) >> Dedupe()) is Compose
    assert type(Dedupe() >> (ByLength() >> Dedupe())) is Pipeline
    assert type(Dedupe() >> (Dedupe() >> Dedupe())) is Pipeline


def test_however_it_is_bracketed_it_is_one_flat_pipeline_equal_to_the_plain_composition(tiny_index):
    a, b, c, d = Retrieve(tiny_index), ByLength(), Filter("year > 2011"), Dedupe()
    pipes = [a >> b >> c >> d, (a >> b) >> (c >> d), a >> (b >> c >> d), Pipeline(a, b >> c, d), a >> (b >> (c >> d))]
    for pipe in pipes:
        assert list(pipe) == [a, b, c, d]
        assert pipe == pipes[0] == Compose(a, b, c, d)
        assert hash(pipe) == hash(pipes[0])
        assert repr(pipe) == repr(pipes[0])


def test_whatever_of_ours_receives_a_plain_composition_makes_a_pipeline_of_it(tiny_index, topics):
    upper = pt.apply.query(lambda row: row["query"].upper())
    plain = upper >> Retrieve(tiny_index, k=5) >> Rerank(Lexical(), k=3)
    assert type(plain) is Compose
    received = [
        normalise(plain),
        Pipeline(plain),
        Rewrite("{query}") >> plain,
        Union(plain).branches[0],
        RRF(plain).branches[0],
        Recorded(plain).system,
    ]
    assert {type(pipe) for pipe in received} == {Pipeline}
    expected = Retrieve(tiny_index, k=5)(upper(topics))
    expected = Rerank(Lexical(tiny_index), k=3)(expected)
    for pipe in (received[0], received[1], received[-1]):
        same(pipe(topics), expected)


def test_a_plain_composition_cannot_bind_statistics_and_says_what_to_write(tiny_index, topics):
    plain = pt.Transformer.identity() >> Retrieve(tiny_index, k=5) >> Rerank(Lexical())
    with pytest.raises(FrameError, match=r"Lexical\(index\)"):
        plain(topics)
    given = pt.Transformer.identity() >> Retrieve(tiny_index, k=5) >> Rerank(Lexical(tiny_index))
    same(given(topics), Pipeline(plain)(topics))


@pytest.mark.parametrize("stages", [(), ("retrieve",), (Dedupe,), (lambda rows: rows,)])
def test_a_pipeline_is_made_of_transformers(stages):
    with pytest.raises(FrameError, match="Pipeline: (at least one stage|a pipeline's stages must be transformers)"):
        Pipeline(*stages)


# -- PyTerrier's operators ---------------------------------------------------------------------

OURS = {
    "stage": lambda index: Retrieve(index, k=3),
    "pipeline": lambda index: Retrieve(index, k=6) >> Filter("year >= 2011") >> Rerank(Lexical(), k=4),
    "fusion": lambda index: RRF(Retrieve(index, k=2), Rewrite("{query} seal river") >> Retrieve(index, k=3)),
    "foreign": lambda index: pt.apply.query(lambda row: "Nile seal") >> Retrieve(index, k=4) >> ByLength(),
}
BINARY = {
    "|": lambda left, right: left | right,
    "&": lambda left, right: left & right,
    "+": lambda left, right: left + right,
    "^": lambda left, right: left ^ right,
}


@pytest.mark.parametrize("right", OURS)
@pytest.mark.parametrize("left", OURS)
@pytest.mark.parametrize("operator", BINARY)
def test_operators_do_to_our_pipelines_what_they_do_to_their_frames(operator, left, right, tiny_index, topics):
    one, two = OURS[left](tiny_index), OURS[right](tiny_index)
    apply = BINARY[operator]
    expected = apply(Fixed(one(topics)), Fixed(two(topics)))(topics)
    combined = apply(one, two)
    assert len(expected)
    same(combined(topics), expected)
    # The operator's result goes on through stages of ours, traced.
    with recorder.record() as run:
        behind = Pipeline(combined, Dedupe())(topics)
    assert behind["docno"].tolist() == Dedupe()(expected)["docno"].tolist()
    events = run.run().events
    assert events[events["stage"] == "0"]["n_out"].sum() == len(expected)


@pytest.mark.parametrize("name", OURS)
def test_scores_are_multiplied_and_ranks_cut_as_pyterrier_does(name, tiny_index, topics):
    ours = OURS[name](tiny_index)
    frame = ours(topics)
    same((ours * 2)(topics), (Fixed(frame) * 2)(topics))
    same((0.5 * ours)(topics), (0.5 * Fixed(frame))(topics))
    same((ours * -1)(topics), (Fixed(frame) * -1)(topics))
    same((ours % 2)(topics), (Fixed(frame) % 2)(topics))


def test_features_are_put_side_by_side(tiny_index, topics):
    candidates = Retrieve(tiny_index, k=4)
    frame = candidates(topics)
    lexical = Rerank(Lexical(tiny_index), k=None)
    for ours, given in (
        (lexical ** ByLength(), Fixed(lexical(frame)) ** Fixed(ByLength()(frame))),
        (ByLength() ** lexical, Fixed(ByLength()(frame)) ** Fixed(lexical(frame))),
    ):
        expected = given(frame)
        made = (candidates >> ours)(topics)
        assert [list(f) for f in made["features"]] == [list(f) for f in expected["features"]]
        assert {len(f) for f in made["features"]} == {2}
        same(made.drop(columns="features"), expected.drop(columns="features"))


def test_compiling_fuses_a_cutoff_into_the_stage_before_it(tiny_index, topics):
    pipe = (Retrieve(tiny_index, k=20) >> Filter("year >= 2011") >> Rerank(Lexical(), k=10)) % 2
    compiled = pipe.compile()
    assert type(compiled) is Pipeline
    assert compiled == Retrieve(tiny_index, k=20) >> Filter("year >= 2011") >> Rerank(Lexical(), k=2)
    same(compiled(topics), pipe(topics))
    kept = ((Retrieve(tiny_index, k=20) >> ByLength()) % 2).compile()
    assert len(kept) == 3  # a foreign reranker needs all of its candidates
    assert Pipeline(Retrieve(tiny_index, k=20), pt.RankCutoff(2)).compile() == Retrieve(tiny_index, k=2)


# -- other people's transformers in the middle -------------------------------------------------


def test_a_foreign_stage_gets_the_whole_batch_at_once_as_a_frame(tiny_index, topics):
    seen = []
    watch = pt.apply.generic(lambda frame: (seen.append(frame.copy()), frame)[1], transform_outputs=lambda c: c)
    out = (Retrieve(tiny_index, k=3) >> watch >> Dedupe())(topics)
    assert len(seen) == 1
    same(seen[0], Retrieve(tiny_index, k=3)(topics))
    same(out, seen[0])


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_failing_foreign_stage_is_recorded_with_its_error_for_every_task(place, tiny_index, topics):
    stages = [Retrieve(tiny_index, k=3), Dedupe(), Dedupe()]
    stages.insert(place, Crash(lambda frame: True))
    with recorder.record() as run, pytest.raises(ValueError, match="^boom$"):
        Pipeline(*stages)(topics)
    events = run.run().events
    assert events.groupby("qid").size().to_dict() == {"1": place + 1, "2": place + 1}
    last = events[events["stage"] == str(place)]
    assert last["error"].tolist() == ["ValueError: boom"] * 2
    assert last["n_out"].tolist() == [0, 0]
    assert events[events["stage"] != str(place)]["error"].isna().all()


def test_a_foreign_stage_that_loses_the_qid_is_named_and_recorded(tiny_index, topics):
    pipe = Retrieve(tiny_index, k=3) >> pt.apply.generic(lambda frame: frame.drop(columns="qid")) >> Dedupe()
    with recorder.record() as run, pytest.raises(FrameError, match="a column 'qid' is needed; found columns query"):
        pipe(topics)
    assert run.run().events["error"].notna().tolist() == [False, False, True, True]


def test_a_foreign_stage_may_make_tasks_of_its_own(tiny_index):
    pipe = Pipeline(TakeApart(), Retrieve(tiny_index, k=1))
    with recorder.record() as run:
        out = pipe([{"qid": "7", "query": "Cairo seal"}])
    assert [(row["qid"], row["query"], row["docno"]) for row in out] == [
        ("7-0", "Cairo", "cities/1"),
        ("7-1", "seal", "seals"),
    ]
    events = run.run().events
    assert events[["stage", "qid", "n_out"]].values.tolist() == [
        ["0", "7", 0], ["0", "7-0", 1], ["0", "7-1", 1], ["1", "7", 0], ["1", "7-0", 1], ["1", "7-1", 1],
    ]  # fmt: skip


def test_zero_rows_in_the_middle_do_not_reach_a_foreign_stage_that_fails_on_them(tiny_index, topics):
    fails = Crash(lambda frame: len(frame) == 0)
    pipe = Retrieve(tiny_index, k=3) >> Filter("year > 3000") >> fails >> Extract(Lexical())
    out = pipe(topics)
    assert len(out) == 0
    assert {"qid", "docno", "text", "passage_id", "note"} <= set(out.columns)
    assert pipe(topics.to_dict("records")) == []
    assert list(pipe(topics.iloc[:0]).columns) == list(out.columns)


def test_a_task_without_rows_stays_a_task_for_the_stages_behind(tiny_index, topics):
    pipe = Retrieve(tiny_index, k=3) >> Filter("title == 'Cairo'") >> ByLength() >> Dedupe()
    with recorder.record() as run:
        out = pipe(topics)
    assert set(out["qid"]) == {"2"}
    events = run.run().events
    assert events.groupby("stage")["qid"].apply(list).tolist() == [["1", "2"]] * 4
    assert events[events["qid"] == "1"]["n_out"].tolist() == [3, 0, 0, 0]


def test_an_attribute_called_engine_of_a_foreign_stage_is_none_of_our_business(tiny_index, topics):
    foreign = ByLength()
    foreign.engine = "turbo"
    pipe = Retrieve(tiny_index, k=5) >> foreign >> Rerank(Lexical(), k=3)
    same(pipe(topics), (Retrieve(tiny_index, k=5) >> Rerank(Lexical(), k=3))(topics))
    assert pipe.engine is tiny_index


# -- what goes in ------------------------------------------------------------------------------


def test_frames_lists_and_generators_go_in(tiny_index, topics):
    pipe = Retrieve(tiny_index, k=5) >> ByLength() >> Rerank(Lexical(), k=3)
    frame = pipe(topics)
    records = topics.to_dict("records")
    assert isinstance(pipe(records), list)
    assert pipe(records) == frame.to_dict("records")
    assert list(pipe(row for row in records)) == pipe(records)
    assert list(pipe.transform_iter(iter(records))) == pipe(records)
    assert pipe.search("Nile Cairo")["qid"].unique().tolist() == ["1"]


def test_whole_number_qids_become_text_once_at_the_border(tiny_index, topics):
    pipe = Retrieve(tiny_index, k=5) >> ByLength() >> Dedupe()
    same(pipe(topics.assign(qid=[1, 2])), pipe(topics))
    assert pipe(topics.assign(qid=[1, 2]).to_dict("records")) == pipe(topics.to_dict("records"))
    with pytest.raises(FrameError, match="a qid that is text or a whole number"):
        pipe([{"qid": None, "query": "q"}])


# -- collection statistics ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def other_index(tmp_path_factory):
    documents = pd.DataFrame(
        [{"docno": f"o{n}", "title": "", "text": "Cairo Nile lake " + "seal " * n} for n in range(6)]
    )
    return LuceneIndex.build(Collection("other", documents), tmp_path_factory.mktemp("other") / "index")


def test_one_stage_in_two_pipelines_scores_with_each_pipelines_own_index(tiny_index, other_index, topics):
    shared = Rerank(Lexical(), k=None)
    tiny, other = Retrieve(tiny_index, k=5) >> shared, Retrieve(other_index, k=5) >> shared
    expected = {
        index: Rerank(Lexical(index), k=None)(Retrieve(index, k=5)(topics)) for index in (tiny_index, other_index)
    }
    for pipe, index in ((tiny, tiny_index), (other, other_index), (tiny, tiny_index)):
        same(pipe(topics), expected[index])
    rows = Retrieve(tiny_index, k=5)(topics)
    assert not Rerank(Lexical(other_index), k=None)(rows).equals(Rerank(Lexical(tiny_index), k=None)(rows))


def test_a_stage_of_two_pipelines_used_alone_asks_which_index_is_meant(tiny_index, other_index, topics):
    shared, extract = Rerank(Lexical()), Extract(Lexical("candidates"))
    rows = Retrieve(tiny_index, k=5)(topics)
    same((Retrieve(tiny_index, k=5) >> shared)(topics), shared(rows))
    Pipeline(Retrieve(other_index), shared, extract)
    Pipeline(Retrieve(tiny_index), extract)
    with pytest.raises(FrameError, match=r"one index .*found 2 pipelines over different indexes\. .*Lexical\(index\)"):
        shared(rows)
    assert len(extract(rows))  # its scorer needs no index


def test_the_nearest_retrieve_stage_before_it_gives_the_statistics(tiny_index, other_index, topics):
    branch = Retrieve(other_index, k=3) >> Rerank(Lexical(), k=None)
    out = Union(Retrieve(tiny_index, k=3), branch)(topics)
    expected = Rerank(Lexical(other_index), k=None)(Retrieve(other_index, k=3)(topics))
    mine = out[out["docno"].str.match(r"o\d")]
    assert mine["score"].tolist() == expected["score"].tolist()


# -- PyTerrier's experiments -------------------------------------------------------------------

MEASURES = [nDCG @ 5, AP, P @ 1, R @ 3]


@pytest.fixture
def systems(tiny_index):
    first = Retrieve(tiny_index, k=6)
    return [first, first >> Rerank(Lexical(), k=5), first >> Filter("year != 2010") >> ByLength()]


NAMES = ["bm25", "lexical", "length"]


def expected_values(systems, topics, qrels):
    """Measures of every task by ir_measures, from the systems' own results."""
    rows = []
    for name, system in zip(NAMES, systems, strict=True):
        run = system(topics).rename(columns={"qid": "query_id", "docno": "doc_id"})
        judged = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
        for found in ir_measures.iter_calc(MEASURES, judged, run):
            rows.append({"name": name, "qid": found.query_id, "measure": str(found.measure), "value": found.value})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    "options",
    [
        {}, {"batch_size": 1}, {"filter_by_qrels": True}, {"verbose": False}, {"plan": "tree", "verbose": False},
        {"precompute_prefix": True}, {"validate": "error"}, {"baseline": 0, "correction": "bonferroni"},
        {"round": 2}, {"save_dir": True}, {"highlight": None},
    ],
    ids=lambda options: "-".join(options) or "plain",
)  # fmt: skip
def test_experiments_of_pyterrier_run_our_pipelines_with_every_option(
    options, systems, topics, tiny_collection, tmp_path
):
    qrels = tiny_collection.qrels
    if options.get("save_dir"):
        options = {"save_dir": str(tmp_path)}
    if "filter_by_qrels" in options:
        topics = pd.concat([topics, pd.DataFrame([{"qid": "3", "query": "not judged"}])], ignore_index=True)
    table = pt.Experiment(systems, topics, qrels, MEASURES, names=NAMES, **options).set_index("name")
    expected = expected_values(systems, topics, qrels)
    means = expected.groupby(["name", "measure"])["value"].mean()
    for name in NAMES:
        for measure in MEASURES:
            wanted = round(means[name, str(measure)], options.get("round", 15))
            assert table.loc[name, str(measure)] == pytest.approx(wanted, abs=1e-12)
    if "save_dir" in options:
        saved = pt.io.read_results(str(tmp_path / "lexical.res.gz"))
        assert saved["docno"].tolist() == systems[1](topics)["docno"].tolist()
    if "baseline" in options:
        for name in NAMES[1:]:
            values = expected[expected["measure"] == "AP"].set_index(["name", "qid"])["value"]
            assert table.loc[name, "AP +"] == sum(values[name, qid] > values["bm25", qid] for qid in ("1", "2"))
        assert "AP p-value corrected" in table.columns


def test_values_of_every_task_and_judged_tasks_that_were_not_asked(systems, topics, tiny_collection):
    qrels = pd.concat([tiny_collection.qrels, pd.DataFrame([{"qid": "9", "docno": "seals", "label": 1}])])
    table = pt.Experiment(systems, topics, qrels, MEASURES, names=NAMES, perquery=True)
    expected = expected_values(systems, topics, tiny_collection.qrels)
    keys = ["name", "qid", "measure"]
    merged = table.astype({"measure": str}).merge(expected, on=keys)
    assert len(merged) == len(expected) == len(table)
    assert merged["value_x"].tolist() == pytest.approx(merged["value_y"].tolist(), abs=1e-12)
    whole = pt.Experiment(systems, topics, qrels, [AP], names=NAMES, filter_by_topics=False).set_index("name")
    asked = pt.Experiment(systems, topics, qrels, [AP], names=NAMES).set_index("name")
    assert whole["AP"].tolist() == pytest.approx((asked["AP"] * 2 / 3).tolist())


def test_a_grid_scan_sets_the_cutoffs_of_stages_in_a_pipeline(tiny_index, topics, tiny_collection):
    retrieve, rerank = Retrieve(tiny_index, k=20), Rerank(Lexical(), k=10)
    table = pt.GridScan(
        retrieve >> rerank, {retrieve: {"k": [2, 6]}, rerank: {"k": [1, 5]}}, topics, tiny_collection.qrels, ["num_ret"]
    )
    got = {(row["tran_0_k"], row["tran_1_k"]): row["num_ret"] for _, row in table.iterrows()}
    sizes = {(n, k): len((Retrieve(tiny_index, k=n) >> Rerank(Lexical(), k=k))(topics)) for n in (2, 6) for k in (1, 5)}
    assert got == sizes
    assert len(set(sizes.values())) == 3


def test_a_parameter_set_on_a_stage_is_seen_by_the_pipeline_it_stands_in(tiny_index, other_index, topics):
    rerank = Rerank(Lexical(), k=2)
    pipe = Retrieve(tiny_index, k=6) >> rerank
    assert "k=2" in repr(pipe)
    rerank.set_parameter("k", 4)
    rerank.set_parameter("scorer", Lexical(other_index))
    assert "k=4" in repr(pipe)
    assert rerank.get_parameter("k") == 4
    same(pipe(topics), (Retrieve(tiny_index, k=6) >> Rerank(Lexical(other_index), k=4))(topics))
