"""What every stage keeps to, whatever it does."""

import copy
import pickle
import socket

import pandas as pd
import pyterrier as pt
import pytest

from searchops import recorder
from searchops.errors import FrameError
from searchops.frames import groups_to_records, to_groups
from searchops.fusion import RRF, Rewrite, Union
from searchops.pipeline import Pipeline
from searchops.primitives import Dedupe, Extract, Filter, Rerank, Retrieve
from searchops.scorers.lexical import Lexical
from searchops.splitting import Sentences

STAGES = {
    "retrieve": lambda index: Retrieve(index, k=5),
    "filter": lambda index: Filter("year >= 2012 and not lang in ['de']"),
    "rerank": lambda index: Rerank(Lexical(index), k=3),
    "rerank all": lambda index: Rerank(Lexical(index), k=None),
    "extract": lambda index: Extract(Lexical(index), k=3),
    "extract best": lambda index: Extract(Lexical(index), k=4, per_document=None, depth=5, size=20),
    "dedupe": lambda index: Dedupe("docno"),
    "union": lambda index: Union(Retrieve(index, k=2), Rewrite("{query} river") >> Retrieve(index, k=2)),
    "rrf": lambda index: RRF(Retrieve(index, k=4), Rewrite("{query} lake") >> Retrieve(index, k=4), k=5),
    "rewrite": lambda index: Rewrite("{query} lake"),
    "pipeline": lambda index: Retrieve(index, k=8) >> Rerank(Lexical(), k=5) >> Extract(Lexical()),
}
FROM_QUERIES = {"retrieve", "union", "rrf", "rewrite", "pipeline"}


@pytest.fixture(params=STAGES)
def name(request):
    return request.param


@pytest.fixture
def stage(name, tiny_index):
    return STAGES[name](tiny_index)


@pytest.fixture
def frame(name, tiny_collection, tiny_index):
    """What the stage reads: topics, or what a retrieve stage made of them."""
    topics = tiny_collection.topics
    return topics if name in FROM_QUERIES else Retrieve(tiny_index, k=8)(topics)


def test_the_input_is_never_changed(stage, frame):
    before = frame.copy(deep=True)
    records = frame.to_dict("records")
    kept = copy.deepcopy(records)
    stage(frame)
    stage(records)
    pd.testing.assert_frame_equal(frame, before)
    assert records == kept


def test_frames_and_lists_give_the_same_rows(stage, frame):
    from_frame = stage(frame).to_dict("records")
    from_list = stage(frame.to_dict("records"))
    assert from_frame == from_list
    assert from_list


def test_a_batch_of_tasks_gives_what_each_task_gives_alone(stage, frame):
    together = stage(frame.to_dict("records"))
    alone = [row for group in to_groups(frame.to_dict("records")) for row in stage(group.rows)]
    assert together == alone


def test_zero_rows_give_zero_rows_with_the_promised_columns(stage, frame):
    out = stage(frame.iloc[:0])
    assert len(out) == 0
    assert list(out.columns) == stage.transform_outputs(list(frame.columns))
    assert stage([]) == []


def test_the_promised_columns_are_the_columns(stage, frame):
    assert set(stage(frame).columns) == set(stage.transform_outputs(list(frame.columns)))


def test_equal_arguments_make_equal_stages(name, tiny_index):
    one, two = STAGES[name](tiny_index), STAGES[name](tiny_index)
    assert one == two
    assert hash(one) == hash(two)
    assert repr(one) == repr(two)
    assert one != Dedupe("passage_id")


@pytest.mark.parametrize("one", sorted(set(STAGES) - {"pipeline"}))  # a composition has stages, no arguments
def test_pyterrier_can_take_it_apart_and_build_it_again(one, tiny_index):
    stage = STAGES[one](tiny_index)
    assert pt.inspect.transformer_apply_attributes(stage) == stage


def test_it_is_drawn_without_the_network(stage, monkeypatch):
    def no_network(*args, **kwargs):
        raise AssertionError("a picture must not open a socket")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(pt.documentation, "_cached_objects_inv", None)
    for drawn in (pt.schematic.draw(stage), pt.schematic.draw(stage >> pt.apply.generic(lambda frame: frame))):
        assert "pts-transformer" in drawn


def test_inspection_runs_nothing(stage, frame):
    with recorder.record() as run:
        pt.inspect.transformer_inputs(stage)
        pt.inspect.transformer_outputs(stage, list(frame.columns))
        pt.schematic.transformer_schematic(stage)
    assert len(run.run().events) == 0


def test_recording_changes_no_row(stage, frame):
    plain = stage(frame)
    with recorder.record() as run:
        traced = stage(frame)
    pd.testing.assert_frame_equal(plain, traced)
    assert len(run.run().events) > 0


def test_what_goes_in_and_comes_out_is_counted(stage, frame):
    with recorder.record() as run:
        out = stage(frame)
    events = run.run().events
    last = events[~events["stage"].str.contains(".", regex=False)].groupby("qid").tail(1)
    assert last["n_out"].sum() == len(out)
    first = events[events["stage"].str.split(".").str[-1] == "0"].groupby("qid").head(1)
    assert first["n_in"].sum() == len(frame)


def test_a_missing_column_is_named(stage, frame):
    needed = stage[0].needs[-1] if isinstance(stage, Pipeline) else stage.needs[-1]
    with pytest.raises(FrameError, match=needed):
        stage(frame.drop(columns=[needed]))


def test_it_survives_pickling(stage, frame):
    again = pickle.loads(pickle.dumps(stage))
    assert again == stage
    assert again(frame.to_dict("records")) == stage(frame.to_dict("records"))


def test_a_task_left_without_rows_does_not_disturb_the_others(stage, frame):
    both = stage(frame)
    one = frame[frame["qid"] == "2"]
    pd.testing.assert_frame_equal(stage(one), both[both["qid"] == "2"].reset_index(drop=True), check_dtype=False)


def test_groups_come_out_in_the_order_they_went_in(stage, frame):
    turned = pd.concat([frame[frame["qid"] == "2"], frame[frame["qid"] == "1"]], ignore_index=True)
    assert list(stage(turned)["qid"].drop_duplicates()) == ["2", "1"]


class TestRetrieveByPyTerriersOwnSuite(pt.testing.TransformerTestCase):
    """PyTerrier's published test case, on a stage that needs no index."""

    @staticmethod
    def get_transformer():
        return Filter("year >= 2019")


class TestExtractByPyTerriersOwnSuite(pt.testing.TransformerTestCase):
    """The same for a stage with arguments that are objects."""

    @staticmethod
    def get_transformer():
        return Extract(Lexical(), k=3, splitter=Sentences(2))


class TestPipelineByPyTerriersOwnSuite(pt.testing.TransformerTestCase):
    """The same for a composition."""

    @staticmethod
    def get_transformer():
        return Filter("year >= 2019") >> Rerank(Lexical()) >> Extract(Lexical()) >> Dedupe("passage_id")


def test_records_of_groups_are_the_rows():
    rows = [{"qid": "1", "query": "a"}, {"qid": "2", "query": "b"}]
    assert groups_to_records(to_groups(rows)) == rows
