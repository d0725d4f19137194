"""Laws of cutting and packing passages for a prompt."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from searchops.scorers.notes import exact_quote
from searchops.scorers.windows import batches, numbered, pieces

passages = st.lists(st.text(max_size=400) | st.text('"\\\x00é ', min_size=200, max_size=900), max_size=12)
rooms = st.integers(250, 2_000)


@given(passages, rooms)
def test_pieces_of_half_the_room_pack_within_it_and_lose_nothing(texts: list[str], room: int) -> None:
    pool = pieces(texts, room // 2)
    packed = batches(pool, room)
    assert [piece for batch in packed for piece in batch] == pool
    assert {piece.passage for piece in pool} == set(range(len(texts)))
    shell = len(numbered({}, []))
    assert all(len(numbered({}, batch)) - shell <= room for batch in packed)
    # Every batch but the last holds two or more, so rounds of winners come to an end.
    assert all(len(batch) >= 2 for batch in packed[:-1])


@given(st.integers(0, 3_000), st.integers(125, 600))
def test_the_pieces_of_a_passage_cover_every_character_in_order(n_characters: int, limit: int) -> None:
    # Characters that are all different tell where each piece was cut.
    text = "".join(chr(0x4E00 + n) for n in range(n_characters))
    pool = pieces([text], limit)
    covered = ""
    for piece in pool:
        start = text.index(piece.text)
        assert start <= len(covered) or not text
        covered = text[: start + len(piece.text)]
    assert covered == text
    assert len(set(pool)) == len(pool)


@given(st.text(max_size=60), st.integers(0, 60), st.integers(0, 60), st.sampled_from([" ", "\n", "\t \n"]))
def test_any_slice_is_an_exact_quote_whatever_its_white_space(text: str, start: int, end: int, gap: str) -> None:
    words = text[start:end].split()
    found = exact_quote(gap.join(words), text)
    if words:
        assert found is not None
        assert found in text
        assert found.split() == words
    else:
        assert found is None
