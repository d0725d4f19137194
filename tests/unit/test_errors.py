"""Errors say where, what is needed, what was found and what to do."""

import pickle

import pytest

from searchops import errors
from searchops.errors import DataError, SearchopsError, SpecError, did_you_mean


def test_the_text_is_where_needed_found_and_what_to_do():
    error = SpecError("a whole number is needed", "'ten'", where="p.yaml:8:27", hint="Write k: 10.")
    assert str(error) == "p.yaml:8:27: a whole number is needed; found 'ten'. Write k: 10."


def test_missing_parts_leave_no_stray_punctuation():
    assert str(DataError("a file is needed")) == "a file is needed"
    assert str(DataError("a file is needed", hint="Make one.")) == "a file is needed. Make one."


def test_the_parts_are_attributes_and_survive_a_process_pool():
    error = pickle.loads(pickle.dumps(DataError("a", "b", where="c", hint="d")))
    assert type(error) is DataError
    assert (error.needed, error.found, error.where, error.hint) == ("a", "b", "c", "d")
    assert str(error) == "c: a; found b. d"


def test_every_error_is_a_searchops_error():
    classes = [getattr(errors, name) for name in errors.__all__ if name[0].isupper()]
    assert len(classes) == 6
    assert all(issubclass(cls, SearchopsError) for cls in classes)


@pytest.mark.parametrize(("name", "text"), [("retreive", "did you mean 'retrieve'?"), ("q", "known: filter, retrieve")])
def test_did_you_mean_names_the_nearest_or_all(name, text):
    assert did_you_mean(name, ["retrieve", "filter"]) == text
