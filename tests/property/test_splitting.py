"""Laws of splitting, on any text: nothing is lost, order is kept, windows overlap as asked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from searchops.splitting import Given, Sentences, Splitter, Words, parse_passage_id, passages

PIECES = ["Dr", "U.S.", "e.g", "A", "end", "12", "3.5", ".", "!", "?", "。", '"', ")", "[1]", "…"]
SPACES = [" ", "  ", "\n", "\n\n", "\t", "\u00a0", "\u2028", "\r\n", "\x1c", "- ", "1. "]
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from([*PIECES, *SPACES]), max_size=60).map("".join),
    st.lists(st.sampled_from(["longerword", "word.", "Word", *SPACES]), max_size=80).map("".join),
)
SIZES = st.integers(1, 6).flatmap(lambda size: st.tuples(st.just(size), st.none() | st.integers(1, size)))
SPLITTERS: st.SearchStrategy[Splitter] = st.one_of(
    st.builds(lambda window, chars: Sentences(*window, max_chars=chars), SIZES, st.integers(1, 50)),
    st.builds(lambda window: Words(*window), SIZES),
)


@given(TEXTS, SPLITTERS)
def test_every_character_is_in_a_passage_and_passages_come_in_order(text: str, splitter: Splitter) -> None:
    spans = splitter.spans({"docno": "d", "text": text})
    covered = {position for start, end in spans for position in range(start, end)}
    assert covered == set(range(len(text)))
    assert spans == sorted(set(spans))
    assert [end for _, end in spans] == sorted({end for _, end in spans})
    assert all(start < end for start, end in spans)


@given(TEXTS, st.sampled_from([Sentences(), Sentences(max_chars=7), Words(3), Words(1)]))
def test_passages_without_overlap_join_to_the_text_again(text: str, splitter: Splitter) -> None:
    rows = passages({"docno": "d", "text": text}, splitter)
    assert "".join(row["text"] for row in rows) == text
    assert all(row["text"] == text[row["start"] : row["end"]] for row in rows)


@given(TEXTS, SIZES)
def test_windows_of_words_hold_the_words_that_splitting_by_hand_gives(
    text: str, window: tuple[int, int | None]
) -> None:
    size, stride = window
    words = text.split()
    step = stride or size
    n_windows = 1 + max(0, -(-(len(words) - size) // step)) if text else 0
    expected = [words[i * step : i * step + size] for i in range(n_windows)]
    got = [text[start:end].split() for start, end in Words(size, stride).spans({"docno": "d", "text": text})]
    if max(map(len, words), default=0) <= 100:
        assert got == expected


@given(TEXTS, SIZES)
def test_windows_of_sentences_are_runs_of_single_sentences(text: str, window: tuple[int, int | None]) -> None:
    size, stride = window
    single = Sentences().spans({"docno": "d", "text": text})
    step = stride or size
    for number, (start, end) in enumerate(Sentences(size, stride).spans({"docno": "d", "text": text})):
        run = single[number * step : number * step + size]
        assert (start, end) == (run[0][0], run[-1][1])


@given(TEXTS, st.integers(1, 40))
def test_no_sentence_is_longer_than_the_cap(text: str, max_chars: int) -> None:
    spans = Sentences(max_chars=max_chars).spans({"docno": "d", "text": text})
    assert all(end - start <= max_chars for start, end in spans)


@given(TEXTS, st.data())
def test_given_spans_cover_the_text_and_contain_what_was_given(text: str, data: st.DataObject) -> None:
    offsets = st.integers(0, len(text))
    pairs = data.draw(st.lists(st.tuples(offsets, offsets).map(lambda pair: tuple(sorted(pair))), max_size=8))
    stored = sorted(pairs)
    spans = Given().spans({"docno": "d", "text": text, "spans": [list(pair) for pair in stored]})
    assert {p for start, end in spans for p in range(start, end)} == set(range(len(text)))
    for low, high in stored:
        assert low == high or any(start <= low and high <= end for start, end in spans)


@given(st.text(min_size=1), st.integers(0, 10**9))
def test_a_passage_id_parses_back_to_its_docno_and_number(docno: str, number: int) -> None:
    assert parse_passage_id(f"{docno}%p{number}") == (docno, number)
