"""ReAct transcripts read as trajectories, and as runs that the evidence measures apply to."""

from __future__ import annotations

import pandas as pd
import pytest

from searchops.corpus import Collection
from searchops.errors import DataError, FrameError
from searchops.metrics import evidence_values
from searchops.records import Run
from searchops.trajectories import Step, react_run, read_react, trajectory_values

LOG = """
########################################
BEGIN TRIAL 1
Trial summary: Correct: 1, Incorrect: 1, Halted: 0
#######################################
------------- BEGIN CORRECT AGENTS -------------

Question: Who wrote Emma?
Thought 1: I need to search Emma.
Action 1: Search[Emma]
Observation 1: Emma is a novel.
It is by Jane Austen.
Thought 5: not a step of its own
Thought 2: Jane Austen wrote it.
Action 2: Finish[Jane Austen]
Observation 2: Answer is CORRECT
Correct answer: Jane Austen

------------- BEGIN INCORRECT AGENTS -----------

Question: How long is the Nile?
Thought 1: I search.
Action 1: Search["Nil"]
Observation 1: Could not find ["Nil"]. Similar: ['Nile']
Thought 2: Again.
Action 2: Search[nil]
Observation 2: Could not find [nil]. Similar: ['Nile']
Thought 3: I look up.
Action 3: Lookup[length]
Observation 3: No Results
Thought 4: I guess.
Action 4: Finish[5 km]
Observation 4: Answer is INCORRECT
Correct answer: 6,650 km

------------- BEGIN HALTED AGENTS --------------
"""


@pytest.fixture
def log(tmp_path):
    def write(text=LOG):
        file = tmp_path / "log.txt"
        file.write_text(text, encoding="utf-8")
        return file

    return write


@pytest.fixture(scope="module")
def books():
    documents = pd.DataFrame(
        [("d1", "Emma", "Emma is a novel. It is by Jane Austen."), ("d2", "Nile", "The Nile is long.")],
        columns=["docno", "title", "text"],
    )
    topics = pd.DataFrame([{"qid": "q1", "query": "Who wrote  Emma?"}, {"qid": "q2", "query": "How long is the Nile?"}])
    evidence = pd.DataFrame(
        [
            {"qid": "q1", "docno": "d1", "start": 17, "end": 38, "text": "It is by Jane Austen."},
            {"qid": "q2", "docno": "d2", "start": 0, "end": 17, "text": "The Nile is long."},
        ]
    )
    return Collection(name="books", documents=documents, topics=topics, qrels=None, evidence=evidence)


def test_a_transcript_is_its_questions_steps_and_ends(log):
    first, second = read_react(log())
    assert (first.trial, first.question, first.outcome, first.reference) == (
        1,
        "Who wrote Emma?",
        "correct",
        "Jane Austen",
    )
    assert first.steps[0] == Step(
        "I need to search Emma.",
        "Search",
        "Emma",
        "Emma is a novel.\nIt is by Jane Austen.\nThought 5: not a step of its own",
    )
    assert [step.action for step in second.steps] == ["Search", "Search", "Lookup", "Finish"]
    assert (first.answer, second.answer) == ("Jane Austen", "5 km")
    assert second.queries == ['"Nil"', "nil"]


def test_figures_count_searches_misses_and_repetitions(log):
    frame = trajectory_values(read_react(log()))
    wide = frame.pivot_table(index="question", columns="measure", values="value")
    assert wide.loc["How long is the Nile?"].to_dict() == {
        "success": 0, "steps": 4, "searches": 2, "lookups": 1, "not_found": 2, "repeated_searches": 1,
        "observation_chars": 41 + 39 + 10,
    }  # fmt: skip
    assert wide.loc["Who wrote Emma?", "success"] == 1


def test_a_wrong_answer_in_the_last_step_that_is_listed_as_halted_too_is_one_trajectory(log):
    question = LOG[LOG.index("Question: How") : LOG.index("------------- BEGIN HALTED")]
    found = read_react(log(LOG + "\n" + question))
    assert [told.outcome for told in found] == ["correct", "incorrect"]


def test_a_trajectory_that_stops_without_an_answer_has_none(log):
    text = LOG.replace("BEGIN CORRECT", "BEGIN HALTED").replace("Correct: 1,", "Correct: 0,")
    text = text.replace(
        "Action 2: Finish[Jane Austen]\nObservation 2: Answer is CORRECT\n", "Action 2: Search[Austen]\n"
    )
    told = read_react(log(text))[0]
    assert (told.outcome, told.answer, told.steps[-1].observation) == ("halted", "", "")


@pytest.mark.parametrize(
    ("old", "new", "row", "needed"),
    [
        ("BEGIN TRIAL 1", "TRIAL", None, "BEGIN TRIAL n"),
        ("Incorrect: 1", "Incorrect: 2", 3, "Trial summary"),
        ("Trial summary: Correct", "Summary: Correct", 3, "Trial summary"),
        ("------------- BEGIN CORRECT AGENTS -------------", "", 8, "a group of agents"),
        ("Thought 1: I need", "I need", 9, "Thought 1"),
        ("Action 1: Search[Emma]", "Action 1: Search Emma", 10, "such as Search"),
        ("Correct answer: 6,650 km", "", 21, "Correct answer"),
        ("How long is the Nile?", "Who wrote Emma?", 21, "once a trial"),
        ("Action 4: Finish[5 km]\nObservation 4: Answer is INCORRECT\n", "", 31, "an action behind every thought"),
    ],
)
def test_a_damaged_log_is_refused_with_file_and_row(log, old, new, row, needed):
    file = log(LOG.replace(old, new, 1))
    with pytest.raises(DataError, match=needed) as caught:
        read_react(file)
    assert caught.value.where == (str(file) if row is None else f"{file}:{row}")


def test_a_log_that_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(DataError, match="readable transcript"):
        read_react(tmp_path / "none.txt")


def test_delivered_labels_are_those_whose_text_stands_in_an_observation(log, books):
    run = react_run(read_react(log()), books)
    values = evidence_values(run, books.evidence, ["Retrieved", "Delivered", "Delivered/Available"])
    wide = values.pivot_table(index="qid", columns="measure", values="value", dropna=False)
    assert wide.loc["q1", ["Retrieved", "Delivered"]].tolist() == [1.0, 1.0]
    assert wide.loc["q2", ["Retrieved", "Delivered"]].tolist() == [0.0, 0.0]
    assert wide["Delivered/Available"].isna().all()


def test_a_run_says_nothing_of_what_the_log_does_not_tell(log, books):
    answers = react_run(read_react(log()), books).answers.set_index("qid")
    assert answers.loc["q2", ["decisions", "retrieval_requests", "returned_documents"]].tolist() == [4, 2, 0]
    assert answers.loc["q1", "qanswer"] == "Jane Austen"
    assert answers.loc["q1", "success"]
    assert (
        answers[["final_step_tokens", "total_tokens", "rerank_pairs", "extract_calls", "seconds"]].isna().all(axis=None)
    )


def test_a_run_on_disk_is_the_run_in_memory(log, books, tmp_path):
    told = read_react(log())
    react_run(told, books, tmp_path / "run")
    read = Run.open(tmp_path / "run")
    assert read.meta["names"] == {"0": "trial 1"}
    assert read.answers.drop(columns=["decisions_end"]).equals(
        react_run(told, books).answers.drop(columns=["decisions_end"])
    )


def test_questions_must_be_the_collections(log, books):
    told = read_react(log(LOG.replace("Who wrote Emma?", "Who wrote Persuasion?")))
    with pytest.raises(DataError, match="a question of the collection"):
        react_run(told, books)
    with pytest.raises(DataError, match="once a trial"):
        react_run([told[1], told[1]], books)
    with pytest.raises(FrameError, match="topics"):
        react_run(told, Collection(name="x", documents=books.documents, topics=None, qrels=None, evidence=None))


def test_the_reflexion_logs_agree_with_their_own_summaries(shared_data):
    """The counts are those that each trial's summary line and its `Answer is` lines give (awk over the file)."""
    folder = shared_data("agent_traces")
    found = read_react(folder / "reflexion_hotpotqa_ReAct_base_100_questions_5_trials.txt")
    assert len(found) == 500
    by_trial = pd.crosstab([told.trial for told in found], [told.outcome for told in found])
    assert by_trial["correct"].tolist() == [34, 34, 34, 34, 34]
    assert by_trial["incorrect"].tolist() == [56, 57, 56, 57, 56]
    actions = [step.action for told in found for step in told.steps]
    assert sum(bool(told.answer) for told in found) <= actions.count("Finish") + 1
    assert set(actions) == {"Search", "Lookup", "Finish"}


def test_the_reflexion_logs_are_over_questions_of_hotpotqa(shared_data):
    import searchops as so

    folder = shared_data("agent_traces")
    found = read_react(folder / "reflexion_hotpotqa_ReAct_base_100_questions_5_trials.txt")
    collection = so.load(shared_data("hotpotqa"))
    first = [told for told in found if told.trial == 1]
    values = evidence_values(react_run(first, collection), collection.evidence, ["Delivered"])
    assert len(values) == 100
    assert 0 < values["value"].mean() < 1
