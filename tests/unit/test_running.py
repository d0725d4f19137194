"""Pipeline files run in this process: what they measure, and how they go on."""

import errno
import json

import ir_measures
import pandas as pd
import pyarrow.parquet as pq
import pytest
from ir_measures import AP, nDCG

from searchops import recorder, registry
from searchops.errors import DataError, SpecError
from searchops.experiments import running
from searchops.experiments.results import MEASURES_FILE, done_tasks, failures, final_rows, read_values
from searchops.experiments.running import run_spec
from searchops.metrics import evidence_values, parse_measure
from searchops.records import Run
from searchops.spec import read_spec
from searchops.trec import read_run
from tests.shelf import Gate, Shelf

PLAIN = """\
pipeline:
  - retrieve: 5
  - gate
  - extract: {scorer: {lexical: {statistics: candidates}}, k: 5}
measures: [nDCG@5, AP, Retrieved, Available, Delivered, Delivered/Available]
"""
ONE_ROW = PLAIN.replace("retrieve: 5", "retrieve: 1")
BATCH = 4
N_TASKS = 2 * BATCH + 3


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(running, "BATCH", BATCH)
    monkeypatch.setitem(registry._tables["engine"].targets, "shelf", Shelf)
    monkeypatch.setitem(registry._tables["stage"].targets, "gate", Gate)
    for name in ("NOTES", "WAIT_AT", "FAIL_ON"):
        monkeypatch.delenv(f"SEARCHOPS_TEST_{name}", raising=False)


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """A collection of one document and one question a subject, and a document that all share."""
    data = tmp_path / "data"
    data.mkdir()
    texts = {f"d{n}": f"Subject {n} is called thing{n}. Its colour is c{n}." for n in range(N_TASKS)}
    texts["common"] = "A colour is what everything has."
    write_lines(data / "corpus.jsonl", [{"docno": d, "title": d, "text": t, "n": len(t)} for d, t in texts.items()])
    write_lines(data / "topics.jsonl", [{"qid": f"q{n}", "query": f"thing{n}. subject colour"} for n in range(N_TASKS)])
    (data / "qrels.txt").write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(N_TASKS)))
    labels = []
    for n in range(N_TASKS):
        for quote in (f"Subject {n} is called thing{n}.", f"Its colour is c{n}."):
            start = texts[f"d{n}"].index(quote)
            labels.append({"qid": f"q{n}", "docno": f"d{n}", "start": start, "end": start + len(quote), "text": quote})
    write_lines(data / "evidence.jsonl", labels)
    return data


@pytest.fixture
def spec_of(folder, tmp_path):
    def make(body=PLAIN, name="p.yaml"):
        file = tmp_path / name
        file.write_text(f"version: 1\ncollection: {json.dumps(str(folder))}\nindex: shelf\n{body}", encoding="utf-8")
        return read_spec(file)

    return make


def contents(folder):
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


# -- one run -----------------------------------------------------------------------------------


def test_values_are_those_of_the_pipeline_run_by_hand(spec_of, tmp_path):
    spec = spec_of()
    result = run_spec(spec, tmp_path / "out")
    assert not result.failed
    assert not result.reused
    values = result.values.set_index(["qid", "measure"])["value"]
    # By hand, all tasks are alike: the document is found first, one of its two sentences is delivered.
    by_measure = result.values.groupby("measure")["value"]
    assert by_measure.count().to_dict() == dict.fromkeys(spec.measures, N_TASKS)
    assert by_measure.unique().map(list).to_dict() == {
        "nDCG@5": [1.0], "AP": [1.0], "Retrieved": [1.0], "Available": [1.0], "Delivered": [0.5],
        "Delivered/Available": [0.5],
    }  # fmt: skip
    collection = result.collection
    pipe = spec.build(lambda wanted: Shelf.build(collection, tmp_path / "shelf"))["p"]
    with recorder.record() as run:
        out = pipe(collection.topics)
    for row in evidence_values(run, collection.evidence).itertuples():
        assert values[row.qid, row.measure] == row.value
    ranking = out.drop_duplicates(["qid", "docno"]).rename(columns={"qid": "query_id", "docno": "doc_id"})
    judged = collection.qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    for found in ir_measures.iter_calc([nDCG @ 5, AP], judged, ranking):
        assert values[found.query_id, str(found.measure)] == found.value
    means = result.means().set_index("measure")
    assert means.loc["Delivered", ["mean", "low", "high", "tasks", "missing"]].tolist() == [0.5, 0.5, 0.5, N_TASKS, 0]


def test_the_folder_holds_what_a_report_needs(spec_of, tmp_path):
    result = run_spec(spec_of(), tmp_path / "out")
    meta = json.loads((tmp_path / "out/run.json").read_text())
    assert meta["status"] == "finished"
    assert meta["names"] == {"0": "p"}
    assert "retrieve: 5" in meta["spec"]
    assert len((tmp_path / "out/topics.jsonl").read_text().splitlines()) == N_TASKS
    assert len((tmp_path / "out/evidence.jsonl").read_text().splitlines()) == 2 * N_TASKS
    pd.testing.assert_frame_equal(read_values(tmp_path / "out"), result.values)
    run = read_run(tmp_path / "out/run.trec")
    assert run.groupby("qid").size().sum() == len(final_rows(Run.open(tmp_path / "out"), 0))


def test_a_run_goes_in_batches_that_are_each_on_disk_whole(spec_of, tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCHOPS_TEST_NOTES", str(tmp_path / "notes"))
    result = run_spec(spec_of(), tmp_path / "out")
    batches = [line.split() for line in (tmp_path / "notes").read_text().splitlines()]
    assert [len(batch) for batch in batches] == [BATCH, BATCH, 3]
    parts = sorted((result.folder / "events").glob("*.parquet"))
    assert [pq.read_table(part).column("qid").unique().to_pylist() for part in parts] == batches


def test_several_pipelines_are_measured_under_their_names(spec_of, tmp_path):
    body = """\
pipelines:
  wide: retrieve(k=5) >> extract(scorer=lexical(statistics="candidates"), k=5)
  narrow: retrieve(k=1)
measures: [AP, Retrieved, Available, Delivered]
"""
    result = run_spec(spec_of(body), tmp_path / "out")
    means = result.means().set_index(["name", "measure"])["mean"]
    assert [means["wide", m] for m in ("AP", "Retrieved", "Available", "Delivered")] == [1.0, 1.0, 1.0, 0.5]
    assert [means["narrow", m] for m in ("AP", "Retrieved")] == [1.0, 1.0]
    assert means["narrow"][["Available", "Delivered"]].isna().all()  # it reads no passages
    assert {file.name for file in (tmp_path / "out").glob("*.trec")} == {"run-0-wide.trec", "run-1-narrow.trec"}


def test_ids_with_white_space_have_a_place_in_a_trec_run(folder, spec_of, tmp_path):
    for name in ("corpus.jsonl", "evidence.jsonl"):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace('"d0"', '"d 0"').replace('"q0"', '"q\\t0"'))
    (folder / "topics.jsonl").write_text((folder / "topics.jsonl").read_text().replace('"q0"', '"q\\t0"'))
    result = run_spec(spec_of(PLAIN.replace("nDCG@5, AP, ", "")), tmp_path / "out")
    assert ("q%090", "d%200") in set(map(tuple, read_run(tmp_path / "out/run.trec")[["qid", "docno"]].to_numpy()))
    values = result.values.set_index(["qid", "measure"])["value"]
    assert values["q\t0", "Delivered"] == 0.5


# -- runs that are there already ---------------------------------------------------------------


def test_a_finished_run_is_measured_again_but_not_run(spec_of, tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCHOPS_TEST_NOTES", str(tmp_path / "notes"))
    first = run_spec(spec_of(), tmp_path / "out")
    noted = (tmp_path / "notes").read_text()
    again = run_spec(spec_of(PLAIN.replace("nDCG@5", "P@1")), tmp_path / "out")
    assert again.reused
    assert (tmp_path / "notes").read_text() == noted
    assert set(again.values["measure"]) == set(first.values["measure"]) - {"nDCG@5"} | {"P@1"}
    assert again.means().set_index("measure").loc["P@1", "mean"] == 1.0


def test_replace_runs_it_again_and_leaves_nothing_of_the_old_run(spec_of, tmp_path):
    run_spec(spec_of(), tmp_path / "out")
    result = run_spec(spec_of(PLAIN.replace("retrieve: 5", "retrieve: 2")), tmp_path / "out", replace=True)
    events = Run.open(result.folder).events
    assert not result.reused
    assert (events.groupby("qid").size() == 3).all()
    assert events[events["kind"] == "retrieve"]["n_out"].max() == 2


@pytest.mark.parametrize("changed", ["config", "data_hash", "topics_hash"])
def test_the_folder_of_another_run_is_refused_and_not_touched(changed, folder, spec_of, tmp_path):
    run_spec(spec_of(), tmp_path / "out")
    before = contents(tmp_path / "out")
    body = PLAIN
    if changed == "config":
        body = PLAIN.replace("retrieve: 5", "retrieve: 6")
    elif changed == "data_hash":
        (folder / "corpus.jsonl").write_text((folder / "corpus.jsonl").read_text().replace("everything", "it all"))
    else:
        (folder / "topics.jsonl").write_text((folder / "topics.jsonl").read_text().replace("thing3.", "thing4."))
    with pytest.raises(DataError, match=rf"a folder for this run is needed.*other {changed}.*--replace"):
        run_spec(spec_of(body), tmp_path / "out")
    assert contents(tmp_path / "out") == before


def test_a_folder_that_holds_something_else_is_refused_and_not_touched(spec_of, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/thesis.tex").write_text("years of work")
    for replace in (False, True):
        with pytest.raises(DataError, match=r"run's folder \(with run.json\) is needed"):
            run_spec(spec_of(), tmp_path / "thesis", replace=replace)
    assert [file.name for file in (tmp_path / "thesis").iterdir()] == ["thesis.tex"]


# -- tasks that fail ---------------------------------------------------------------------------


def test_a_failing_task_is_recorded_and_costs_no_other(spec_of, tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCHOPS_TEST_FAIL_ON", "thing2. thing6.")
    result = run_spec(spec_of(ONE_ROW), tmp_path / "out")
    told = "ValueError: cannot stand ['thing2.', 'thing6.']"
    assert result.failed == {("p", "q2"): told, ("p", "q6"): told}
    assert set(result.values["qid"]) == {f"q{n}" for n in range(N_TASKS)} - {"q2", "q6"}
    assert result.values.groupby("measure").size().unique().tolist() == [N_TASKS - 2]
    events = Run.open(result.folder).events
    assert events[events["error"].notna()][["qid", "stage", "n_out"]].values.tolist() == [
        ["q2", "1", 0], ["q6", "1", 0],
    ]  # fmt: skip


def test_the_same_command_tries_again_what_failed_and_nothing_else(spec_of, tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCHOPS_TEST_FAIL_ON", "thing2. thing6.")
    run_spec(spec_of(ONE_ROW), tmp_path / "out")
    monkeypatch.setenv("SEARCHOPS_TEST_NOTES", str(tmp_path / "notes"))
    monkeypatch.setenv("SEARCHOPS_TEST_FAIL_ON", "thing6.")
    again = run_spec(spec_of(ONE_ROW), tmp_path / "out")
    assert set((tmp_path / "notes").read_text().split()) == {"q2", "q6"}
    assert set(again.failed) == {("p", "q6")}
    monkeypatch.delenv("SEARCHOPS_TEST_FAIL_ON")
    mended = run_spec(spec_of(ONE_ROW), tmp_path / "out")
    assert not mended.failed
    assert not mended.reused
    assert failures(Run.open(tmp_path / "out")) == {}
    whole = run_spec(spec_of(ONE_ROW), tmp_path / "whole")
    keys = ["qid", "measure"]
    pd.testing.assert_frame_equal(
        mended.values.sort_values(keys, ignore_index=True), whole.values.sort_values(keys, ignore_index=True)
    )


def test_a_pipeline_that_fails_for_every_task_fails_at_once_with_its_own_error(spec_of, tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCHOPS_TEST_FAIL_ON", "a")
    monkeypatch.setenv("SEARCHOPS_TEST_NOTES", str(tmp_path / "notes"))
    with pytest.raises(ValueError, match="cannot stand"):
        run_spec(spec_of(), tmp_path / "out")
    assert json.loads((tmp_path / "out/run.json").read_text())["status"] == "failed"
    assert len(set((tmp_path / "notes").read_text().split())) == BATCH  # the other batches were not tried
    monkeypatch.delenv("SEARCHOPS_TEST_FAIL_ON")
    assert not run_spec(spec_of(), tmp_path / "out").failed


def test_an_interrupt_while_the_tasks_of_a_failed_batch_run_alone_loses_none(spec_of, tmp_path, monkeypatch):
    stops = [True]

    class Interrupted(Gate):
        def process(self, groups):
            if len(groups) == 1 and stops:
                raise KeyboardInterrupt
            return super().process(groups)

    monkeypatch.setitem(registry._tables["stage"].targets, "gate", Interrupted)
    monkeypatch.setenv("SEARCHOPS_TEST_FAIL_ON", "thing2.")
    with pytest.raises(KeyboardInterrupt):
        run_spec(spec_of(ONE_ROW), tmp_path / "out")
    monkeypatch.delenv("SEARCHOPS_TEST_FAIL_ON")
    stops.clear()
    result = run_spec(spec_of(ONE_ROW), tmp_path / "out")
    assert not result.failed
    delivered = result.values[result.values["measure"] == "Delivered"]["value"]
    assert delivered.tolist() == [0.5] * N_TASKS


def test_mixed_types_in_a_column_fail_the_tasks_that_meet_them(folder, spec_of, tmp_path):
    documents = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    documents[5]["n"] = "long"
    write_lines(folder / "corpus.jsonl", documents)
    result = run_spec(spec_of(ONE_ROW.replace("- gate", "- filter: n >= 10")), tmp_path / "out")
    assert list(result.failed) == [("p", "q5")]
    assert "'n'" in result.failed["p", "q5"]
    assert result.values["qid"].nunique() == N_TASKS - 1


def test_a_full_disk_ends_the_run_with_a_clear_error_and_the_same_command_goes_on(spec_of, tmp_path, monkeypatch):
    write, written = pq.write_table, []

    def full_after_three(table, where, **options):
        written.append(where)
        if len(written) > 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(table, where, **options)

    monkeypatch.setattr(pq, "write_table", full_after_three)
    with pytest.raises(DataError, match="room and leave to write the record.*No space left on device.*resume"):
        run_spec(spec_of(), tmp_path / "out")
    assert Run.open(tmp_path / "out").events["qid"].nunique() == BATCH
    assert not (tmp_path / "out" / MEASURES_FILE).exists()
    monkeypatch.setattr(pq, "write_table", write)
    monkeypatch.setenv("SEARCHOPS_TEST_NOTES", str(tmp_path / "notes"))
    resumed = run_spec(spec_of(), tmp_path / "out")
    assert len((tmp_path / "notes").read_text().split()) == N_TASKS - BATCH
    whole = run_spec(spec_of(), tmp_path / "whole")
    pd.testing.assert_frame_equal(resumed.values, whole.values)
    assert (tmp_path / "out" / MEASURES_FILE).read_bytes() == (tmp_path / "whole" / MEASURES_FILE).read_bytes()


# -- results out of a record -------------------------------------------------------------------


def test_done_tasks_are_those_that_came_through_the_last_stage(spec_of, tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCHOPS_TEST_FAIL_ON", "thing2.")
    run_spec(spec_of(ONE_ROW), tmp_path / "out")
    run = Run.open(tmp_path / "out")
    assert done_tasks(run) == {(0, f"q{n}") for n in range(N_TASKS) if n != 2}
    assert set(failures(run)) == {(0, "q2")}
    with recorder.record() as empty:
        pass
    assert done_tasks(empty.run()) == set()
    assert failures(empty.run()) == {}


def test_a_retrieval_measure_of_a_pipeline_without_scores_is_refused(spec_of, tmp_path, monkeypatch):
    class Unscored(Gate):
        def kernel(self, rows):
            return [{name: value for name, value in row.items() if name != "score"} for row in rows]

    monkeypatch.setitem(registry._tables["stage"].targets, "gate", Unscored)
    body = PLAIN.replace("  - extract: {scorer: {lexical: {statistics: candidates}}, k: 5}\n", "")
    with pytest.raises(SpecError, match="a pipeline that scores its results is needed by nDCG@5, AP"):
        run_spec(spec_of(body), tmp_path / "out")


# -- files that ask for what there is not ------------------------------------------------------


@pytest.mark.parametrize(
    ("missing", "error", "message"),
    [
        ("evidence.jsonl", SpecError, r"p\.yaml:8:\d+: a collection with evidence labels is needed by Retrieved"),
        ("qrels.txt", SpecError, r"p\.yaml:8:\d+: a collection with qrels is needed by nDCG@5"),
        ("topics.jsonl", SpecError, r"p\.yaml:2:\d+: a collection with topics is needed"),
        ("corpus.jsonl", DataError, r"data: a folder with corpus\.jsonl is needed"),
    ],
)
def test_what_a_collection_lacks_is_said_where_the_file_asks_for_it(missing, error, message, folder, spec_of, tmp_path):
    (folder / missing).unlink()
    with pytest.raises(error, match=message):
        run_spec(spec_of(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_topics_at_all_is_a_clear_error(folder, spec_of, tmp_path):
    (folder / "topics.jsonl").write_text("\n")
    with pytest.raises((SpecError, DataError), match="topics"):
        run_spec(spec_of(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_measures_that_nobody_asked_for_are_left_out_where_labels_are_missing(folder, spec_of, tmp_path):
    (folder / "evidence.jsonl").unlink()
    body = PLAIN[: PLAIN.index("measures")]
    result = run_spec(spec_of(body), tmp_path / "out")
    assert set(result.values["measure"]) == {"nDCG@10", "R@100"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            PLAIN.replace("AP", "Deliverd"),
            r"p\.yaml:8:\d+: a measure is needed; found 'Deliverd'. Did you mean 'Delivered'",
        ),
        (PLAIN.replace("AP", "EvidenceRecall"), r"p\.yaml:8:\d+: EvidenceRecall needs stage"),
    ],
)
def test_a_measure_that_is_none_is_named_with_its_place(body, message, spec_of, tmp_path):
    with pytest.raises(SpecError, match=message):
        run_spec(spec_of(body), tmp_path / "out")


def test_a_stage_that_a_measure_names_must_be_there(spec_of, tmp_path):
    with pytest.raises(SpecError, match=r"a stage of the pipeline is needed; found 'rerank'"):
        run_spec(spec_of(PLAIN.replace("AP", "EvidenceRecall(stage='rerank')")), tmp_path / "out")
    assert parse_measure("EvidenceRecall(stage='gate')")


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("{shelf: {colour: red}}", "shelf: unknown field 'colour'; known: path"),
        (
            "{lucene: {analyser: english}}",
            "lucene: unknown field 'analyser'; did you mean 'analyzer'?",
        ),
    ],
)
def test_unknown_settings_of_an_index_are_named(index, message, spec_of, tmp_path):
    body = spec_of().text.replace("index: shelf", f"index: {index}")
    (tmp_path / "q.yaml").write_text(body)
    with pytest.raises(SpecError) as caught:
        run_spec(read_spec(tmp_path / "q.yaml"), tmp_path / "out")
    assert message in str(caught.value)
    assert "q.yaml:3:" in str(caught.value)


def test_an_index_is_kept_by_its_data_and_settings(folder, spec_of, tmp_path, monkeypatch):
    built = []
    build = Shelf.build.__func__

    class Counting(Shelf):
        @classmethod
        def build(cls, collection, path, *, progress=True):
            built.append(str(path))
            return build(cls, collection, path, progress=progress)

    monkeypatch.setitem(registry._tables["engine"].targets, "shelf", Counting)
    run_spec(spec_of(), tmp_path / "one")
    run_spec(spec_of(PLAIN.replace("retrieve: 5", "retrieve: 4")), tmp_path / "two")
    (folder / "corpus.jsonl").write_text((folder / "corpus.jsonl").read_text().replace("everything", "it all"))
    run_spec(spec_of(), tmp_path / "three")
    assert built[0] == built[1] != built[2]
    own = spec_of().text.replace("index: shelf", f"index: {{shelf: {{path: {json.dumps(str(tmp_path / 'ix'))}}}}}")
    (tmp_path / "own.yaml").write_text(own)
    run_spec(read_spec(tmp_path / "own.yaml"), tmp_path / "four")
    assert built[3] == str(tmp_path / "ix")
