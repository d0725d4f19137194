"""Laws of the filter language."""

from __future__ import annotations

import contextlib
import copy
import operator
import pickle
from typing import Any

import pandas as pd
import regex
from hypothesis import given
from hypothesis import strategies as st

from searchops.errors import SpecError
from searchops.predicates import Predicate, field, parse

COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
any_text = st.text(st.characters(), max_size=20)  # lone surrogates and control characters too
names = st.one_of(
    st.sampled_from(["year", "meta.year", "in", "NOT", "publication year", "`", "a\\", "é", "1st", "a."]),
    st.text(st.characters(), min_size=1, max_size=10),
)
numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
scalars = st.one_of(st.booleans(), numbers, any_text)
patterns = st.one_of(
    st.sampled_from([r"\d+", r"^a|b$", r"\\", r"[\]'\"]", "(?i)x", r"\x2e\u002e", "\n\\n", r"\.\'", ""]),
    any_text.map(regex.escape),
)


def comparison(name: str, compare: Any, value: Any) -> Predicate:
    made: Predicate = compare(field(name), value)
    return made


leaves = st.one_of(
    st.builds(comparison, names, st.sampled_from(COMPARISONS), st.one_of(numbers, any_text)),
    st.builds(comparison, names, st.sampled_from(COMPARISONS[:2]), st.booleans()),
    st.builds(lambda name, values: field(name).isin(values), names, st.lists(scalars, max_size=5)),
    st.builds(lambda name, value: field(name).contains(value), names, scalars),
    st.builds(lambda name, pattern: field(name).matches(pattern), names, patterns),
    st.builds(lambda name: field(name).exists(), names),
)


def trees(leaf: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    def grown(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        return st.one_of(
            st.builds(operator.and_, inner, inner),
            st.builds(operator.or_, inner, inner),
            st.builds(operator.invert, inner),
        )

    return st.recursive(leaf, grown, max_leaves=12)


predicates = trees(leaves)


@given(predicates)
def test_the_text_form_reads_back_as_the_same_predicate(predicate: Predicate) -> None:
    twin = parse(str(predicate))
    assert twin == predicate
    assert hash(twin) == hash(predicate)
    assert repr(twin) == repr(predicate)
    assert (twin.fields, twin.leaves, twin.depth) == (predicate.fields, predicate.leaves, predicate.depth)


@given(predicates)
def test_the_python_form_evaluates_to_the_same_predicate(predicate: Predicate) -> None:
    assert eval(repr(predicate), {"field": field}) == predicate


@given(predicates)
def test_copies_are_equal(predicate: Predicate) -> None:
    assert pickle.loads(pickle.dumps(predicate)) == predicate
    assert copy.deepcopy(predicate) == predicate


@given(st.one_of(any_text, predicates.map(str)), st.data())
def test_damaged_text_is_read_or_refused_with_a_place(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    damaged = text[:at] + data.draw(any_text) + text[data.draw(st.integers(at, len(text))) :]
    try:
        predicate = parse(damaged)
    except SpecError as error:
        place = regex.fullmatch(r"filter:(\d+):(\d+)", error.where)
        assert place is not None
        line, column = int(place[1]), int(place[2])
        assert column <= len(damaged.split("\n")[line - 1]) + 1
    else:
        assert parse(str(predicate)) == predicate


WORDS = """
    a b.c `d` and or not in contains matches exists true null ( ) [ ] , == != < >= = & 1 -2.5 1e3
    'x' '' "y" '('
"""
tokens = st.sampled_from(WORDS.split())


@given(st.lists(tokens, max_size=30).map(" ".join))
def test_any_order_of_words_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(SpecError):
        assert isinstance(parse(text), Predicate)


# Meaning, against pandas

years = st.one_of(st.none(), st.just(float("nan")), st.integers(2015, 2022), st.floats(2015, 2022))
langs = st.one_of(st.none(), st.just(float("nan")), st.sampled_from(["de", "en", "fr", "", "d", "EN"]))
rows = st.lists(st.fixed_dictionaries({}, optional={"year": years, "lang": langs}), min_size=1, max_size=12)
known = ["year", "lang"]
simple = trees(
    st.one_of(
        st.builds(comparison, st.just("year"), st.sampled_from(COMPARISONS), st.integers(2015, 2022)),
        st.builds(comparison, st.just("lang"), st.sampled_from(COMPARISONS), st.sampled_from(["de", "en", "e"])),
        st.builds(lambda v: field("year").isin(v), st.lists(st.integers(2015, 2022), max_size=3)),
        st.builds(lambda v: field("lang").isin(v), st.lists(st.sampled_from(["de", "en", "x"]), max_size=3)),
        st.builds(lambda v: field("lang").contains(v), st.sampled_from(["d", "e", "EN", ""])),
        st.builds(lambda v: field("lang").matches(v), st.sampled_from(["^d", "n$", "(?i)en", ""])),
        st.builds(lambda n: field(n).exists(), st.sampled_from(known)),
    )
)


@given(rows, st.sampled_from(COMPARISONS), st.integers(2015, 2022))
def test_number_comparisons_agree_with_pandas(records: list[dict[str, Any]], compare: Any, year: int) -> None:
    column = pd.Series([record.get("year") for record in records], dtype="float64")
    expected = compare(column, year) & column.notna()
    assert comparison("year", compare, year).mask(records, columns=known) == expected.tolist()


@given(rows, st.sampled_from(COMPARISONS), st.sampled_from(["de", "en", "e", ""]))
def test_text_comparisons_agree_with_pandas(records: list[dict[str, Any]], compare: Any, lang: str) -> None:
    column = pd.Series([record.get("lang") for record in records], dtype="string")
    expected = compare(column, lang).fillna(False)
    assert comparison("lang", compare, lang).mask(records, columns=known) == expected.tolist()
    found = column.str.contains(lang, regex=False).fillna(False)
    assert field("lang").contains(lang).mask(records, columns=known) == found.tolist()
    listed = column.isin([lang, "fr"])
    assert field("lang").isin([lang, "fr"]).mask(records, columns=known) == listed.tolist()


@given(rows, simple, simple)
def test_the_logic_is_two_valued(records: list[dict[str, Any]], p: Predicate, q: Predicate) -> None:
    def mask(predicate: Predicate) -> list[bool]:
        return predicate.mask(records, columns=known)

    in_p, in_q = mask(p), mask(q)
    assert mask(p & q) == [a and b for a, b in zip(in_p, in_q, strict=True)]
    assert mask(p | q) == [a or b for a, b in zip(in_p, in_q, strict=True)]
    assert mask(~p) == [not a for a in in_p]
    assert mask(~(p & q)) == mask(~p | ~q)
    assert mask(~(p | q)) == mask(~p & ~q)
    assert all(type(answer) is bool for answer in in_p)


@given(rows, simple)
def test_all_records_together_are_answered_as_each_alone(records: list[dict[str, Any]], predicate: Predicate) -> None:
    before = copy.deepcopy(records)
    assert predicate.mask(records, columns=known) == [predicate(record) for record in records]
    assert repr(records) == repr(before)


@given(rows, simple)
def test_only_the_fields_it_names_matter(records: list[dict[str, Any]], predicate: Predicate) -> None:
    fewer = [{name: value for name, value in record.items() if name in predicate.fields} for record in records]
    assert predicate.mask(fewer, columns=known) == predicate.mask(records, columns=known)
