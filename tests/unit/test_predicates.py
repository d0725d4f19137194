"""The filter language: what predicates mean, how they are written, what they refuse."""

from __future__ import annotations

import copy
import datetime as dt
import enum
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from searchops.errors import FrameError, SpecError
from searchops.predicates import Field, Predicate, as_predicate, check_limits, field, parse
from searchops.predicates.columns import Table
from searchops.predicates.leaves import Compare, IsIn
from searchops.predicates.logic import And, Not

MISSING = [None, float("nan"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), Decimal("NaN"), Decimal("sNaN")]


def kept(text: str, records: list[dict[str, Any]]) -> list[int]:
    return [number for number, keep in enumerate(parse(text).mask(records)) if keep]


# What a comparison means


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("year == 2019", [1]),
        ("year != 2019", [0, 2]),
        ("year < 2019", [0]),
        ("year <= 2019", [0, 1]),
        ("year > 2019", [2]),
        ("year >= 2019", [1, 2]),
        ("year >= 2018.5", [1, 2]),
        ("year in [2018, 2020.0]", [0, 2]),
        ("year not in [2018]", [1, 2]),
    ],
)
def test_numbers_compare_whether_whole_or_not(text: str, expected: list[int]) -> None:
    assert kept(text, [{"year": 2018}, {"year": 2019.0}, {"year": 2020}]) == expected


def test_text_compares_by_code_point_and_case_counts() -> None:
    records = [{"lang": "de"}, {"lang": "DE"}, {"lang": "en"}]
    assert kept("lang == 'de'", records) == [0]
    assert kept("lang < 'e'", records) == [0, 1]
    assert kept("lang contains 'E'", records) == [1]


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("text", ["year == 1", "year != 1", "year < 1", "year >= 1", "year in [1, 2]"])
def test_a_comparison_with_a_missing_value_is_false(text: str, missing: Any) -> None:
    assert kept(text, [{"year": missing}, {}]) == []


def test_a_column_absent_from_one_record_is_missing_there() -> None:
    records = [{"year": 2020}, {"docno": "d2"}]
    assert kept("year >= 2019", records) == [0]
    assert kept("exists(year)", records) == [0]
    assert kept("not exists(year)", records) == [1]


def test_the_negation_of_a_false_comparison_with_a_missing_value_is_true() -> None:
    records = [{"year": 2020}, {"year": 2010}, {"year": None}]
    assert kept("not year >= 2019", records) == [1, 2]
    assert kept("exists(year) and not year >= 2019", records) == [1]
    assert kept("year < 2019", records) == [1]


def test_empty_text_and_zero_and_false_and_an_empty_list_are_values() -> None:
    assert kept("exists(x)", [{"x": ""}, {"x": 0}, {"x": False}, {"x": []}, {"x": None}]) == [0, 1, 2, 3]


def test_truth_values_are_not_numbers() -> None:
    flags = [{"open": True}, {"open": False}, {"open": np.True_}, {"open": None}]
    assert kept("open == true", flags) == [0, 2]
    assert kept("open != true", flags) == [1]
    assert kept("open in [true, 1]", flags) == [0, 2]
    with pytest.raises(FrameError, match="needs a number in column 'open'; found bool in 3 of 4"):
        parse("open == 1").mask(flags)
    with pytest.raises(SpecError, match="Use == or !="):
        field("open") >= True  # noqa: B015


def test_a_list_of_both_kinds_keeps_one_and_true_apart() -> None:
    records = [{"x": 1}, {"x": True}, {"x": 0}, {"x": False}]
    assert kept("x in [1, false]", records) == [0, 3]


@pytest.mark.parametrize("value", [np.int64(3), np.float32(3), np.longdouble(3), Decimal(3), Fraction(3), np.uint8(3)])
def test_numbers_of_other_libraries_compare_as_numbers(value: Any) -> None:
    assert kept("x == 3", [{"x": value}]) == [0]
    assert kept("x in [2, 3]", [{"x": value}]) == [0]
    assert kept("x > 2.5 and x < 3.5", [{"x": value}]) == [0]


@pytest.mark.parametrize(
    "value",
    [
        dt.date(2020, 1, 31),
        dt.datetime(2020, 1, 31),
        pd.Timestamp("2020-01-31"),
        np.datetime64("2020-01-31"),
        np.datetime64("2020-01-31T00:00:00.000000000"),
        pd.Timestamp("2020-01-31T02:00", tz="Europe/Helsinki"),
        np.str_("2020-01-31"),
    ],
)
def test_dates_compare_as_iso_text(value: Any) -> None:
    assert kept("day == '2020-01-31'", [{"day": value}]) == [0]
    assert kept("day >= '2020-01-31' and day < '2020-02'", [{"day": value}]) == [0]
    assert kept("day <= '2020-01-30'", [{"day": value}]) == []


def test_times_keep_their_order_as_text() -> None:
    times = ["2020-01-31", "2020-01-31T00:00:00.000001", "2020-01-31T13:00", "2020-02-01"]
    records = [{"at": pd.Timestamp(time)} for time in times]
    assert kept("at > '2020-01-31'", records) == [1, 2, 3]
    assert kept("at <= '2020-01-31T13:00:00'", records) == [0, 1, 2]


def test_dates_may_be_values_of_a_predicate() -> None:
    assert (field("day") >= dt.date(2020, 1, 31)) == (field("day") >= "2020-01-31")
    assert (field("day") >= pd.Timestamp("2020-01-31")).text == "day >= '2020-01-31'"


def test_contains_asks_for_a_part_of_a_text_or_an_element_of_a_list() -> None:
    records: list[dict[str, Any]] = [
        {"tags": ["py", "db"]},
        {"tags": ("db",)},
        {"tags": np.array(["py"])},
        {"tags": {"pyx"}},
        {"tags": "happy"},
        {"tags": None},
        {"tags": []},
    ]
    assert kept("tags contains 'py'", records) == [0, 2, 4]
    assert kept("n contains 2", [{"n": [1, 2.0]}, {"n": [3, None]}, {}]) == [0]


def test_matches_finds_the_pattern_anywhere_in_the_text() -> None:
    records = [{"t": "Python 3.11"}, {"t": "python"}, {"t": None}, {"t": "cython 3x11"}]
    assert kept(r"t matches '\d\.\d'", records) == [0]
    assert kept(r"t matches '(?i)^py'", records) == [0, 1]
    assert kept(r"t matches '\bpython\b'", records) == [1]


def test_and_or_not_bind_as_usual() -> None:
    records = [{"a": a, "b": b, "c": c} for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    texts = {
        "a == 1 or b == 1 and c == 1": lambda a, b, c: a or (b and c),
        "(a == 1 or b == 1) and c == 1": lambda a, b, c: (a or b) and c,
        "not a == 1 and b == 1 or c == 1": lambda a, b, c: (not a and b) or c,
        "not (a == 1 and b == 1) or c == 1": lambda a, b, c: not (a and b) or c,
        "not not a == 1": lambda a, b, c: a,
    }
    for text, truth in texts.items():
        assert parse(text).mask(records) == [bool(truth(r["a"], r["b"], r["c"])) for r in records], text


def test_no_records_give_no_answers_and_nothing_is_checked() -> None:
    assert parse("anything == 1").mask([]) == []


def test_a_predicate_called_with_one_record_takes_an_absent_column_as_missing() -> None:
    predicate = parse("year >= 2019 or not exists(lang)")
    assert predicate({"year": 2020, "lang": "de"}) is True
    assert predicate({"lang": "de"}) is False
    assert predicate({}) is True


def test_a_dotted_name_is_the_name_of_a_column() -> None:
    assert kept("meta.year == 1", [{"meta.year": 1}, {"meta.year": 2}]) == [0]
    assert kept("`publication year` == 1 and `in` == 1", [{"publication year": 1, "in": 1}]) == [0]


# What it refuses to evaluate


def test_an_unknown_column_is_an_error_that_names_the_columns_there_are() -> None:
    with pytest.raises(FrameError) as caught:
        parse("yaer >= 2019").mask([{"docno": "d1", "Year": 2019, "year": 2020}])
    assert str(caught.value) == (
        "filter: a column 'yaer' is needed for yaer >= 2019; found columns Year, docno, year. Did you mean 'year'?"
    )


@pytest.mark.parametrize("text", ["x == 1", "x in ['a']", "x contains 'a'", "x matches 'a'", "exists(x)"])
@pytest.mark.parametrize("around", ["{}", "not {}", "docno == 'd' or {}", "docno == 'e' and {}"])
def test_an_unknown_column_is_an_error_wherever_it_stands(text: str, around: str) -> None:
    with pytest.raises(FrameError, match="a column 'x' is needed"):
        parse(around.format(text)).mask([{"docno": "d"}])


def test_an_error_about_a_wide_table_shows_forty_columns() -> None:
    record = {f"c{number:03}": 1 for number in range(100)}
    with pytest.raises(FrameError, match=r"c039, …$"):
        parse("zzz == 1").mask([record])


def test_columns_known_elsewhere_are_missing_here_and_no_error() -> None:
    assert parse("year >= 2019").mask([{"docno": "d"}], columns=["year"]) == [False]
    assert parse("not exists(year)").mask([{"docno": "d"}], columns=["year"]) == [True]


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("x >= 1", ["2", 3], "needs a number in column 'x'; found text in 1 of 2, such as '2'"),
        ("x >= 1", [3, "2"], "quote the value: x >= '1'"),
        ("x == 'a'", [3, None], "needs text in column 'x'; found number in 1 of 2, such as 3"),
        ("x == true", [1], "needs true or false in column 'x'; found number"),
        ("x != 'a'", [["a"]], "found list in 1 of 1"),
        ("x in [1]", ["1"], "needs a number in column 'x'; found text"),
        ("x in [1, 'a']", [True], "needs text or a number in column 'x'; found bool"),
        ("x contains 'a'", [1], "needs text or a list in column 'x'; found number"),
        ("x contains 1", ["1"], "needs a list in column 'x'; found text"),
        ("x contains 1", [["1", 1]], "needs a number in column 'x'; found text in 1 of 2"),
        ("x contains 1", [[[1]]], "found list in 1 of 1"),
        ("x matches 'a'", [1], "needs text in column 'x'; found number"),
        ("x matches 'a'", [["a"]], "found list"),
        ("x == 1", [{"a": 1}], "found dict in 1 of 1, such as {'a': 1}"),
        ("x == 1", [b"1"], "found bytes"),
        ("x == 1", [1j], "found complex"),
        ("x == 1", [np.timedelta64(1, "ns")], "found Timedelta"),
        ("x == 1", [{"a": 1}, "t"], "found dict in 1 of 2, such as {'a': 1}; text in 1 of 2, such as 't'"),
    ],
)
def test_mixed_kinds_are_an_error_that_counts_what_was_found(text: str, values: list[Any], message: str) -> None:
    with pytest.raises(FrameError) as caught:
        parse(text).mask([{"x": value} for value in values])
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["a == 1 and x == 1", "x == 1 and a == 1", "a == 0 or x == 1", "not x == 1"])
def test_mixed_kinds_are_an_error_whatever_the_order_of_the_parts(text: str) -> None:
    with pytest.raises(FrameError, match="column 'x'"):
        parse(text).mask([{"a": 0, "x": "text"}])


def test_none_of_a_list_is_false_whatever_the_column_holds() -> None:
    assert kept("x in []", [{"x": 1}, {"x": "a"}, {"x": None}, {"x": [1]}]) == []
    assert kept("not x in []", [{"x": 1}, {"x": [1]}]) == [0, 1]


def test_a_pattern_that_takes_too_long_on_one_text_is_an_error_that_names_both() -> None:
    with pytest.raises(FrameError) as caught:
        parse("text matches '(a|aa)+$'").mask([{"docno": "d7", "text": "a" * 5000 + "!"}])
    assert "the pattern '(a|aa)+$' must be quick; found no answer within 0.25 s on docno 'd7'" in str(caught.value)
    with pytest.raises(FrameError, match="on record 1"):
        parse("text matches '(a|aa)+$'").mask([{"text": "b"}, {"text": "a" * 5000 + "!"}])


def test_the_time_for_patterns_is_for_all_records_together() -> None:
    with pytest.raises(FrameError, match="found more than 0 s over 2 records"):
        parse("text matches 'a'").mask([{"text": "a"}, {"text": "b"}], timeout_s=0)


def test_a_pattern_is_not_asked_where_the_answer_is_already_known() -> None:
    records = [{"lang": "en", "text": "a" * 5000 + "!"}, {"lang": "de", "text": "aaa"}]
    assert kept("lang == 'de' and text matches '(a|aa)+$'", records) == [1]
    assert kept("lang == 'en' or text matches '(a|aa)+$'", records) == [0, 1]
    assert kept("not (lang == 'en' or text matches '(a|aa)+$')", records) == []


def test_time_left_only_shrinks() -> None:
    table = Table([], timeout_s=5)
    first = table.seconds_left()
    assert first == 5
    assert table.seconds_left() < first


# How predicates are built in Python


def test_python_and_text_forms_are_the_same_predicate() -> None:
    built = (field("year") >= 2019) & ~field("lang").isin(["de"])
    assert built == parse("year >= 2019 and not lang in ['de']")
    assert str(built) == "year >= 2019 and not lang in ['de']"
    assert repr(built) == "(field('year') >= 2019) & ~field('lang').isin(['de'])"


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (field("a") == "x", "a == 'x'"),
        (field("a") != 1, "a != 1"),
        (field("a") < 1.5, "a < 1.5"),
        (field("a") <= -1, "a <= -1"),
        (field("a") > 1e300, "a > 1e+300"),
        (field("a").contains("x"), "a contains 'x'"),
        (field("a").contains(True), "a contains true"),
        (field("a").matches(r"\d"), r"a matches '\\d'"),
        (field("a").exists(), "exists(a)"),
        (~field("a").exists(), "not exists(a)"),
        ((field("a") == 1) | (field("b") == 1), "a == 1 or b == 1"),
        (~((field("a") == 1) | (field("b") == 1)), "not (a == 1 or b == 1)"),
        (field("a").isin(np.array([1, 2])), "a in [1, 2]"),
        (field("a").isin({"z", "b", "m"}), "a in ['b', 'm', 'z']"),
        (field("a").isin(n for n in (2, 1, 2)), "a in [2, 1]"),
        (field("a").isin([1, True, 1.0]), "a in [1, true, 1.0]"),
        (field("it`s") == "it's\n\x00\u200b\U000e0001", r"`it\`s` == 'it\'s\n\u0000\u200b\U000e0001'"),
    ],
)
def test_each_python_form_has_its_text(built: Predicate, text: str) -> None:
    assert str(built) == text
    assert parse(text) == built
    assert eval(repr(built), {"field": field}) == built


def test_values_of_enumerations_are_their_plain_values() -> None:
    class Lang(str, enum.Enum):  # noqa: UP042
        DE = "de"

    class Level(enum.IntEnum):
        HIGH = 3

    assert str(field("lang") == Lang.DE) == "lang == 'de'"
    assert str(field("level") == Level.HIGH) == "level == 3"
    assert kept("lang == 'de' and level == 3", [{"lang": Lang.DE, "level": Level.HIGH}]) == [0]


def test_nested_conjunctions_are_one() -> None:
    a, b, c = (field(name) == 1 for name in "abc")
    assert (a & b) & c == a & (b & c) == parse("a == 1 and (b == 1 and c == 1)")
    assert (a | b) | c == a | (b | c)
    assert (a & b) | c != a & (b | c)


def test_equal_predicates_have_equal_hashes_and_different_values_differ() -> None:
    assert len({field("a") == 1, field("a") == 1, parse("a==1")}) == 1
    assert len({field("a") == 1, field("a") == 1.0, field("a") == True, field("a") == "1"}) == 4  # noqa: E712
    assert (field("a") == 1) != "a == 1"


def test_predicates_know_their_fields_leaves_and_depth() -> None:
    predicate = parse("(a == 1 or not b == 2 or a in [3]) and exists(c)")
    assert predicate.fields == frozenset({"a", "b", "c"})
    assert predicate.leaves == 4
    assert predicate.depth == 4
    assert parse("a == 1").depth == 1
    assert parse("not a == 1").depth == 2


def test_predicates_survive_pickling_and_copying() -> None:
    predicate = parse("(a == 1 or not b matches '^x') and exists(c) and d in ['e'] and f contains 2")
    for twin in (pickle.loads(pickle.dumps(predicate)), copy.deepcopy(predicate), copy.copy(predicate)):
        assert twin == predicate
        assert twin({"a": 1, "c": 1, "d": "e", "f": [2]}) is True
    assert pickle.loads(pickle.dumps(field("a"))).name == "a"


def test_predicates_cannot_be_changed() -> None:
    predicate: Any = field("a") == 1
    with pytest.raises(AttributeError):
        predicate.value = 2
    with pytest.raises(AttributeError):
        (predicate & predicate).parts = ()
    with pytest.raises(AttributeError):
        (~predicate).part = predicate


@pytest.mark.parametrize(
    "use",
    [
        lambda: bool(field("a") == 1),
        lambda: not field("a").exists(),
        lambda: (field("a") == 1) and (field("b") == 2),
        lambda: 1 < field("a") < 3,
    ],
)
def test_a_predicate_has_no_truth_value(use: Any) -> None:
    with pytest.raises(SpecError, match=r"Combine with & \| ~"):
        use()


@pytest.mark.parametrize(
    "use",
    [
        lambda: bool(field("a")),
        lambda: field("a") & field("b"),
        lambda: field("a") == 1 & field("b") == 2,
        lambda: 1 | field("b"),
        lambda: ~field("a"),
        lambda: as_predicate(field("a")),  # type: ignore[arg-type]
    ],
)
def test_a_field_alone_is_no_predicate(use: Any) -> None:
    with pytest.raises(SpecError, match="parentheses around each comparison"):
        use()


def test_predicates_combine_with_predicates_only() -> None:
    predicate: Any = field("a") == 1
    for combine in (lambda: predicate & "b == 1", lambda: predicate | True):
        with pytest.raises(TypeError):
            combine()
    with pytest.raises(SpecError, match="'and' joins predicates; found str"):
        And((predicate, "b == 1"))  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="joins two predicates or more"):
        And((predicate,))
    with pytest.raises(SpecError, match="Write ~p"):
        Not(~predicate)
    assert ~~predicate is predicate


@pytest.mark.parametrize("value", [*MISSING, object(), b"x", [1], {"a": 1}, 1j, Decimal(1), 10**400, float("inf")])
def test_values_that_records_are_not_compared_with_are_refused(value: Any) -> None:
    for build in (field("a").__eq__, field("a").contains, lambda v: field("a").isin([v])):
        with pytest.raises(SpecError):
            build(value)


@pytest.mark.parametrize("values", ["de", b"de", 5, None])
def test_isin_needs_a_list(values: Any) -> None:
    with pytest.raises(SpecError, match="needs a list of values"):
        field("a").isin(values)


@pytest.mark.parametrize("name", ["", "x" * 201, 5, None])
def test_a_field_needs_a_name(name: Any) -> None:
    with pytest.raises(SpecError, match="a column name of 1 to 200 characters"):
        field(name)
    with pytest.raises(SpecError, match="a column name"):
        IsIn(name, (1,))


def test_arguments_of_other_types_are_refused() -> None:
    with pytest.raises(SpecError, match="a pattern in quotes"):
        field("a").matches(5)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="one of == !="):
        Compare("a", "=~", 1)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="a predicate or its text form"):
        parse(5)  # type: ignore[arg-type]


def test_a_field_shows_its_python_form() -> None:
    assert repr(field("a")) == "field('a')"
    assert isinstance(field("a"), Field)


def test_as_predicate_takes_both_forms() -> None:
    predicate = parse("a == 1")
    assert as_predicate(predicate) is predicate
    assert as_predicate(" a==1 ") == predicate


# How text is read


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a==1", "a == 1"),
        ("((a == 1))", "a == 1"),
        ("a == 1\n  AND b == 2", "a == 1 and b == 2"),
        ("NOT a IN ('x', \"y\",)", "not a in ['x', 'y']"),
        ("a not in [1]", "not a in [1]"),
        ("a Not Contains 'x'", "not a contains 'x'"),
        ("a not matches 'x'", "not a matches 'x'"),
        ("a exists", "exists(a)"),
        ("a not exists", "not exists(a)"),
        ("not not not a exists", "not exists(a)"),
        ("a == TRUE or b != False", "a == true or b != false"),
        ("a == +5 and b == -.5 and c == 5. and d == 1e2", "a == 5 and b == -0.5 and c == 5.0 and d == 100.0"),
        ('a == "it\'s \\"x\\""', "a == 'it\\'s \"x\"'"),
        (r"a == '\x41\u00e9\U0001F600\t'", r"a == 'Aé😀\t'"),
        ("`a` == 1", "a == 1"),
        (r"`a\`b` == 1", r"`a\`b` == 1"),
        ("größe > 1", "größe > 1"),
        ("a == 1 or b == 1 and c == 1", "a == 1 or (b == 1 and c == 1)"),
        ("a==''", "a == ''"),
    ],
)
def test_text_is_read_and_written_in_one_canonical_form(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical
    assert str(parse(canonical)) == canonical


@pytest.mark.parametrize(
    ("written", "pattern"),
    [
        (r"'\d+\.\d'", r"\d+\.\d"),
        (r"'\\d+\\.'", r"\d+\."),
        (r"'\x2e\u002e'", r"\x2e\u002e"),
        (r"'it\'s'", "it's"),
        (r"'\n\u00e9'", "\n\u00e9"),
    ],
)
def test_escapes_of_a_regular_expression_are_left_to_it(written: str, pattern: str) -> None:
    assert parse(f"a matches {written}") == field("a").matches(pattern)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("year and x", "f:1:6: needs a comparison after 'year'; found 'and'. Write year >= 2019."),
        ("", "f:1:1: needs a condition; found the end. Write year >= 2019."),
        ("a == 1 and", "f:1:11: needs a field; found the end. Write year >= 2019."),
        ("a == 1 b", "f:1:8: needs 'and', 'or' or the end; found 'b'"),
        ("a ==\n  and", "f:2:3: needs a value; found 'and'. Write year >= 2019."),
        ("a = 1", "f:1:3: needs a comparison after 'a'; found '='. Write == for equality."),
        ("a == 1 && b", "f:1:8: needs 'and', 'or' or the end; found '&&'. Write and."),
        ("!a", "f:1:1: needs a field; found '!'. Write not."),
        ("(a == 1", "f:1:8: needs 'and', 'or' or ')'; found the end"),
        ("2019 <= year", "f:1:1: needs a field; found '2019'. Write the field first: year >= 2019."),
        ("lang == de", ("f:1:9: needs a value; found 'de'. Quote a text, as in lang == 'de'; "
         "fields are not compared with each other.")),
        ("a contians 'b'", "f:1:3: needs a comparison after 'a'; found 'contians'. Did you mean 'contains'?"),
        ("a not == 1", ("f:1:7: needs in, contains, matches or exists after 'not'; found '=='. "
         "Write not before the field: not year == 2019.")),
        ("in == 1", "f:1:1: needs a field; found 'in'. Put backquotes around a column of that name: `in`."),
        ("exists year", "f:1:8: needs '(' after 'exists'; found 'year'. Write exists(year)."),
        ("exists(year", "f:1:12: needs ')'; found the end. Write exists(year)."),
        ("a == null", ("f:1:6: needs a value; found 'null'. A comparison with null is always false; "
         "write exists(year) or not exists(year).")),
        ("a in 'x'", "f:1:6: needs a list after 'in'; found 'x'. Write in ['de', 'fr']."),
        ("a in ['x' 'y']", "f:1:11: needs ',' or ']'; found 'y'"),
        ("a in ('x']", "f:1:10: needs ',' or ')'; found ']'"),
        ("a matches b", "f:1:11: needs a pattern in quotes; found 'b'. Write title matches '^A'."),
        ("a matches '('", ("f:1:11: matches needs a valid regular expression; found missing ) at position 1. "
         "The pattern is '('.")),
        ("a == 'x", "f:1:6: needs a closing '; found the end. Write \\ before a quote inside."),
        ("day >= 2020-01-31", ("f:1:8: needs a number; found '2020-01-31'. "
         "Quote a text or date: '2020-01-31'.")),
        ("a == 1e999", "f:1:6: a comparison needs a number between -1e308 and 1e308; found a larger one"),
        ("a == \u2018x\u2019", ("f:1:6: needs a field, a value, a comparison or a parenthesis; "
         "found '\\u2018'. Use the straight quotes ' and \".")),
        ("a == 'C:\\data'", ("f:1:6: a text needs the escapes "
         "\\\\ \\' \\\" \\n \\t \\r \\xHH \\uHHHH; found '\\d'. "
         "Write \\\\ for one backslash.")),
        ("a < true", "f:1:1: < needs a number or text; found true. Use == or !=."),
    ],
)  # fmt: skip
def test_errors_say_where_what_is_needed_what_was_found_and_what_to_do(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse(text, where="f")
    # A quoted text in a message stands between its own quotes.
    assert str(caught.value).replace("found ''x''", "found 'x'") == message


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "needs a valid regular expression; found missing ) at position 1"),
        ("(" * 120 + ")" * 120 + "*+?*", "needs a valid regular expression; found multiple repeat"),
        ("(?a)(?u)x", "needs a valid regular expression; found ASCII, LOCALE and UNICODE flags"),
        ("a" * 257, "needs a pattern of at most 256 characters; found 257 characters"),
        ("a{1001}", "needs repeat counts of at most 1,000; found {1001}"),
        ("a{2,4294967294}", "needs repeat counts of at most 1,000; found {2,4294967294}"),
        ("(?:a{200}){100}", "needs repeat counts whose product is at most 10,000; found 20,000"),
        ("(a|(?1))*", "needs a pattern without recursion; found (?1"),
        ("a(?R)", "needs a pattern without recursion; found (?R"),
        ("(?x) a b", "needs a pattern without verbose mode; found (?x"),
    ],
)
def test_a_pattern_that_is_wrong_or_too_expensive_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(SpecError) as caught:
        field("a").matches(pattern)
    assert "matches " + reason in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"\{5000\}", "{5000}"),
        (r"\(?x", "x"),
        (r"[(]?R", "R"),
        (r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}", "2020-01-31T13:05"),
        (r"(?:a{0,1000}){1,1000}", "aaa"),
        (r"(?<year>\d{4})(?(year)-|x)", "2020-"),
        (r"(?i:PYTHON)(?=x)", "pythonx"),
        (r"\p{Lu}{2}", "ÄÖ"),
    ],
)
def test_usual_patterns_are_no_attack(pattern: str, text: str) -> None:
    assert field("t").matches(pattern)({"t": text}) is True


def test_a_caret_stands_under_the_place_as_a_note() -> None:
    with pytest.raises(SpecError) as caught:
        parse("a == 1\nand\tb = 2\nor c == 3")
    assert caught.value.where == "filter:2:7"
    assert caught.value.__notes__ == ["    and?b = 2\n          ^"]


def test_the_caret_line_of_a_long_text_shows_the_place_only() -> None:
    with pytest.raises(SpecError) as caught:
        parse("a == 1 and " * 500 + "b = 2" + " and a == 1" * 500)
    line, caret = caught.value.__notes__[0].split("\n")
    assert line[caret.index("^")] == "="
    assert len(line) < 100


# Limits


def test_agents_have_at_most_eight_leaves_and_depth_three() -> None:
    check_limits(parse(" and ".join(["a == 1"] * 8)))
    check_limits(parse("(a == 1 or b == 1) and c == 1"))
    with pytest.raises(SpecError, match="leaves at most 8 is needed; found leaves 9 in a == 1 and"):
        check_limits(parse(" and ".join(["a == 1"] * 9)))
    with pytest.raises(SpecError, match="depth at most 3 is needed; found depth 4"):
        check_limits(parse("(a == 1 or not b == 1) and c == 1"))
    check_limits(parse("(a == 1 or not b == 1) and c == 1"), depth=4)


def test_a_predicate_too_large_to_be_read_back_cannot_be_built() -> None:
    with pytest.raises(SpecError, match="at most 100,000 characters"):
        field("a").isin(range(50_000))
    with pytest.raises(SpecError, match="at most 1,000 conditions"):
        And((field("a") == 1,) * 1001)
    deep = field("a") == 1
    for _ in range(24):
        deep = ~(deep & (field("b") == 2))
    assert parse(str(deep)) == deep
    with pytest.raises(SpecError, match="at most 50 levels"):
        ~(deep & deep) & deep


def test_text_that_is_too_long_or_nested_too_deep_is_refused() -> None:
    with pytest.raises(SpecError, match="f: a text of at most 100,000 characters is needed; found 100,001"):
        parse(" " * 100_001, where="f")
    with pytest.raises(SpecError, match="filter:1:51: needs at most 50 levels of nesting; found more"):
        parse("(" * 51)
    with pytest.raises(SpecError, match="filter:1:6: needs a number of at most 400 digits"):
        parse("a == " + "9" * 401)
    with pytest.raises(SpecError, match="filter:1:6: a comparison needs a number between"):
        parse("a == " + "9" * 400)


def test_long_lists_and_texts_within_the_limits_are_read() -> None:
    predicate = field("docno").isin([f"doc{number}" for number in range(5000)])
    assert parse(str(predicate)) == predicate
    assert (field("a") == "x" * 10_000).leaves == 1
    with pytest.raises(SpecError, match="at most 10,000 characters"):
        field("a") == "x" * 10_001  # noqa: B015
