"""What each primitive does to rows, by hand-made examples."""

import pandas as pd
import pytest

from searchops.errors import FrameError, SpecError
from searchops.primitives import Dedupe, Extract, Filter, Rerank, Retrieve
from searchops.primitives.extract import clip
from searchops.scorers.base import Scorer
from searchops.scorers.lexical import Lexical
from searchops.splitting import Sentences, Words


class Lengths(Scorer):
    """Longer texts are better."""

    def score(self, pairs):
        return [float(len(text)) for _, text in pairs]


class Seen(Scorer):
    """Remembers what it was asked."""

    def __init__(self):
        self.pairs = []

    def score(self, pairs):
        self.pairs.extend(pairs)
        return [0.0] * len(pairs)


class Broken(Scorer):
    def score(self, pairs):
        return [float("nan")] * len(pairs)


def row(docno, text="some text", **more):
    return {"qid": "1", "query": "q", "docno": docno, "text": text, "score": 1.0, "rank": 0, **more}


# -- retrieve ----------------------------------------------------------------------------------


def test_retrieve_gives_at_most_k_in_rank_order(tiny_index, tiny_collection):
    out = Retrieve(tiny_index, k=2)(tiny_collection.topics)
    assert out.groupby("qid").size().to_dict() == {"1": 2, "2": 2}
    assert out[out["qid"] == "1"]["rank"].tolist() == [0, 1]
    assert out[out["qid"] == "1"].iloc[0]["docno"] == "lakes/1"
    assert out["source_query"].tolist() == out["query"].tolist()


def test_retrieve_brings_the_documents_columns(tiny_index):
    hit = Retrieve(tiny_index, k=1).search("Nile river Cairo").iloc[0]
    assert (hit["docno"], hit["title"], hit["year"]) == ("rivers%p1", "Nile", 2013)
    assert hit["text"].startswith("The Nile flows")


def test_each_query_of_a_task_is_searched_on_its_own(tiny_index):
    both = Retrieve(tiny_index, k=2)([{"qid": "1", "query": "Nile"}, {"qid": "1", "query": "seal"}])
    assert [r["source_query"] for r in both] == ["Nile", "Nile", "seal", "seal"]
    assert [r["rank"] for r in both] == [0, 1, 0, 1]


def test_a_cutoff_asks_the_engine_for_less(tiny_index):
    assert Retrieve(tiny_index, k=20) % 5 == Retrieve(tiny_index, k=5)
    assert Retrieve(tiny_index, k=3) % 5 == Retrieve(tiny_index, k=3)


@pytest.mark.parametrize("query", ["", "   ", "?!.,;", "\x00", "zzzunheardof"])
def test_a_query_that_matches_nothing_gives_no_rows(tiny_index, query):
    out = Retrieve(tiny_index).search(query)
    assert len(out) == 0
    assert "docno" in out.columns


def test_a_query_of_ten_thousand_words_is_answered(tiny_index):
    query = " ".join(f"word{n}" for n in range(10_000)) + " Baikal"
    assert "lakes/1" in set(Retrieve(tiny_index).search(query)["docno"])


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "10", None])
def test_k_must_be_a_whole_number_above_zero(tiny_index, k):
    with pytest.raises(FrameError, match="k must be a whole number of at least 1"):
        Retrieve(tiny_index, k=k)


def test_retrieve_refuses_what_is_no_index():
    with pytest.raises(FrameError, match="an index with search"):
        Retrieve("path/to/index")


def test_retrieve_refuses_documents_and_queries_that_are_no_text(tiny_index):
    with pytest.raises(FrameError, match="queries are needed; found documents"):
        Retrieve(tiny_index)([{"qid": "1", "query": "q", "docno": "d"}])
    with pytest.raises(FrameError, match="query that is text"):
        Retrieve(tiny_index)(pd.DataFrame({"qid": ["1"], "query": [float("nan")]}))


# -- filter and dedupe -------------------------------------------------------------------------


def test_filter_keeps_order_scores_and_ranks():
    rows = [row("a", year=2020, rank=0), row("b", year=2018, rank=1), row("c", year=2021, rank=2)]
    out = Filter("year >= 2019")(rows)
    assert [(r["docno"], r["rank"]) for r in out] == [("a", 0), ("c", 2)]


def test_filter_says_which_columns_there_are():
    with pytest.raises(FrameError, match="year"):
        Filter("yaer >= 2019")([row("a", year=2020)])
    with pytest.raises(SpecError):
        Filter("year >=")


def test_text_and_object_predicates_are_one():
    from searchops.predicates import field

    assert Filter("year >= 2019") == Filter(field("year") >= 2019)


def test_dedupe_keeps_first_occurrences_by_key():
    rows = [
        row("a", passage_id="a%p0"),
        row("a", passage_id="a%p1"),
        row("b", passage_id="b%p0"),
        row("a", passage_id="a%p0"),
    ]
    assert [r["passage_id"] for r in Dedupe("docno")(rows)] == ["a%p0", "b%p0"]
    assert [r["passage_id"] for r in Dedupe("passage_id")(rows)] == ["a%p0", "a%p1", "b%p0"]
    with pytest.raises(FrameError, match="docno or passage_id"):
        Dedupe("title")
    with pytest.raises(FrameError, match="'passage_id' is needed"):
        Dedupe("passage_id")([row("a")])


# -- rerank ------------------------------------------------------------------------------------


def test_rerank_scores_against_the_stored_source_query():
    seen = Seen()
    Rerank(seen)([row("a", title="T", source_query="found by this"), row("b")])
    assert seen.pairs == [("found by this", "T some text"), ("q", "some text")]


def test_rerank_sets_score_and_rank_and_cuts():
    out = Rerank(Lengths(), k=2)([row("a", "x"), row("b", "xxx"), row("c", "xx")])
    assert [(r["docno"], r["score"], r["rank"]) for r in out] == [("b", 3.0, 0), ("c", 2.0, 1)]


def test_branches_are_ranked_apart_and_merged_round_robin():
    rows = [
        row("a", "xx", source_query="one"),
        row("b", "xxxx", source_query="one"),
        row("c", "x", source_query="two"),
        row("b", "xxxx", source_query="two"),
        row("d", "xxx", source_query="two"),
    ]
    # one: b, a. two: b, d, c. Round-robin: b (one), b (two: seen), a, d, c.
    out = Rerank(Lengths(), k=3)(rows)
    assert [(r["docno"], r["rank"], r["score"]) for r in out] == [("b", 0, 1.0), ("a", 1, 0.5), ("d", 2, 1 / 3)]
    assert [r["branch_score"] for r in out] == [4.0, 2.0, 3.0]
    assert out[0]["source_query"] == "one"


def test_a_nan_from_a_scorer_is_refused_by_name():
    with pytest.raises(FrameError, match="nan for docno 'a'"):
        Rerank(Broken())([row("a")])
    with pytest.raises(FrameError, match="nan for a%p0"):
        Extract(Broken())([row("a")])


def test_rerank_refuses_what_is_no_scorer_or_no_text():
    with pytest.raises(FrameError, match=r"Write Lexical\(\)\."):
        Rerank(Lexical)
    with pytest.raises(FrameError, match="a scorer is needed"):
        Rerank("bm25")
    with pytest.raises(FrameError, match="one of the columns title, text"):
        Rerank(Lengths())([{"qid": "1", "query": "q", "docno": "a", "score": 1.0}])
    with pytest.raises(FrameError, match="text is needed; found int"):
        Rerank(Lengths())([row("a", 7)])


def test_unbound_lexical_says_how_to_give_it_statistics():
    with pytest.raises(FrameError, match="Lexical"):
        Rerank(Lexical())([row("a")])


# -- extract -----------------------------------------------------------------------------------

TEXT = "Short one. This sentence is the longest of all. Medium size here."


def test_extract_keeps_the_best_passage_of_each_document_in_document_order():
    out = Extract(Lengths(), k=10)([row("b", TEXT, rank=0), row("a", "Only one.", rank=1)])
    assert [r["passage_id"] for r in out] == ["b%p1", "a%p0"]
    assert out[0]["text"].strip() == "This sentence is the longest of all."
    assert TEXT[out[0]["start"] : out[0]["end"]] == out[0]["text"] == out[0]["quote"] == out[0]["note"]
    assert (out[0]["score"], out[0]["rank"]) == (1.0, 0)
    assert out[0]["passage_score"] == len(out[0]["text"])


def test_extract_reads_only_as_many_documents_as_fill_k():
    rows = [row(f"d{n}", TEXT) for n in range(5)]
    assert [r["docno"] for r in Extract(Lengths(), k=3)(rows)] == ["d0", "d1", "d2"]
    two = Extract(Lengths(), k=4, per_document=2)(rows)
    assert [r["passage_id"] for r in two] == ["d0%p1", "d0%p2", "d1%p1", "d1%p2"]
    assert [r["docno"] for r in Extract(Lengths(), k=2, depth=4)(rows)] == ["d0", "d1"]


def test_extract_over_all_documents_takes_the_best_anywhere():
    rows = [row("a", "x. yy."), row("b", TEXT)]
    out = Extract(Lengths(), k=2, per_document=None)(rows)
    assert [r["passage_id"] for r in out] == ["b%p1", "b%p2"]


def test_extract_asks_with_the_instruction_and_the_context_fields():
    seen = Seen()
    Extract(seen, instruction="dates only", fields=("title",), splitter=Words(2))(
        [row("a", "one two three", title="T")]
    )
    assert seen.pairs == [("q\ndates only", "T one two "), ("q\ndates only", "T three")]


def test_rows_that_are_passages_stay_the_passages_they_are():
    once = Extract(Lengths(), k=2, per_document=2)([row("a", TEXT)])
    again = Extract(Lengths(), k=1)(once)
    assert [r["passage_id"] for r in again] == ["a%p1"]
    assert again[0]["start"] == once[0]["start"]


def test_a_document_without_text_gives_no_passage():
    assert Extract(Lengths())([row("a", "")]) == []
    assert Extract(Lengths())([row("a", None)]) == []
    assert Extract(Lengths())(pd.DataFrame([row("a", float("nan")), row("b", "Here.")]))["docno"].tolist() == ["b"]


def test_a_text_of_five_megabytes_is_split_and_scored():
    text = "Nothing to see in this sentence. " * 160_000
    out = Extract(Lengths())(
        [row("a", text + "But this one here is certainly the longest sentence of the whole text.")]
    )
    assert out[0]["text"].startswith("But this one")


def test_a_note_is_clipped_at_a_word_and_the_quote_is_whole():
    out = Extract(Lengths(), size=12, splitter=Sentences(3))([row("a", TEXT)])
    assert out[0]["note"] == "Short one.…"
    assert out[0]["quote"] == TEXT


@pytest.mark.parametrize(("text", "size", "out"), [("abc", 3, "abc"), ("abcdef", 4, "abc…"), ("ab cdef", 6, "ab cd…")])
def test_clip_says_that_it_clipped(text, size, out):
    assert clip(text, size) == out


@pytest.mark.parametrize("bad", [{"k": 0}, {"per_document": 0}, {"depth": -1}, {"size": 0}, {"schema": {"a": "str"}}])
def test_extract_refuses_arguments_out_of_range(bad):
    with pytest.raises(FrameError, match="Extract"):
        Extract(Lengths(), **bad)
