"""An index folder is whole or it is not there."""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from searchops.engines.folder import (
    FORMAT_VERSION,
    MANIFEST,
    Manifest,
    building,
    library_versions,
    read_manifest,
    reusable,
)
from searchops.errors import DataError

KILLED_BUILD = """
import sys, time
from searchops.engines.folder import Manifest, building
with building(sys.argv[1], Manifest("lucene", "aa", 1, {})) as folder:
    (folder / "half").write_text("half of it")
    print("building", flush=True)
    time.sleep(60)
"""


def names(folder):
    """What is in a folder."""
    return sorted(path.name for path in folder.iterdir())


def manifest(data_hash="aa", **settings):
    return Manifest("lucene", data_hash, 3, settings or {"analyzer": "porter"}, library_versions("pandas"))


def build(path, wanted=None, content="words", **options):
    with building(path, wanted or manifest(), **options) as folder:
        (folder / "documents").write_text(content)


@pytest.fixture
def killed(tmp_path):
    """The parent folder after a build in it was killed with SIGKILL."""
    child = subprocess.Popen([sys.executable, "-c", KILLED_BUILD, tmp_path / "ix"], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"building\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    return tmp_path


def test_what_was_built_opens_with_its_manifest(tmp_path):
    wanted = manifest()
    with building(tmp_path / "deep" / "ix", wanted) as folder:
        assert folder.parent == tmp_path / "deep"
        wanted.facts["empty_texts"] = 2
    found = read_manifest(tmp_path / "deep" / "ix", kind="lucene", analyzer="porter", mu=None)
    assert found == wanted
    assert (found.facts, found.versions, found.format_version) == (
        {"empty_texts": 2},
        library_versions("pandas"),
        FORMAT_VERSION,
    )
    assert names(tmp_path / "deep") == ["ix"]


def test_settings_are_compared_as_the_disk_holds_them(tmp_path):
    build(tmp_path / "ix", manifest(fields=("title", "text")))
    assert read_manifest(tmp_path / "ix", kind="lucene", fields=("title", "text")) == manifest(fields=["title", "text"])


def test_the_name_is_not_there_before_the_build_ends(tmp_path):
    with building(tmp_path / "ix", manifest()):
        assert not (tmp_path / "ix").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "a manifest.json is needed"),
        ("{", "readable JSON"),
        ("[]", "no kind"),
        ('{"format_version": 1}', "data_hash"),
        ('{"format_version": 99}', "format version 99"),
    ],
)
def test_a_folder_without_a_usable_manifest_says_what_is_wrong(tmp_path, content, words):
    (tmp_path / "ix").mkdir()
    if content is not None:
        (tmp_path / "ix" / MANIFEST).write_text(content)
    with pytest.raises(DataError) as error:
        read_manifest(tmp_path / "ix", kind="lucene")
    assert words in str(error.value) or words in str(error.value).replace("index folder with ", "")
    assert str(tmp_path / "ix") in str(error.value)


def test_a_manifest_in_another_encoding_is_a_data_error(tmp_path):
    (tmp_path / "ix").mkdir()
    (tmp_path / "ix" / MANIFEST).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="readable JSON"):
        read_manifest(tmp_path / "ix", kind="lucene")


def test_no_folder_and_a_file_in_its_place_are_told_apart(tmp_path):
    with pytest.raises(DataError, match="nothing at that path"):
        read_manifest(tmp_path / "ix", kind="lucene")
    (tmp_path / "ix").write_text("")
    with pytest.raises(DataError, match="found a file"):
        read_manifest(tmp_path / "ix", kind="lucene")


def test_another_kind_and_other_settings_show_what_is_wanted_and_what_is_there(tmp_path):
    build(tmp_path / "ix")
    with pytest.raises(DataError, match="'dense' is needed; found kind 'lucene'"):
        read_manifest(tmp_path / "ix", kind="dense")
    with pytest.raises(DataError, match=r"analyzer='krovetz' is needed; found .*analyzer='porter'"):
        read_manifest(tmp_path / "ix", kind="lucene", analyzer="krovetz")
    with pytest.raises(DataError, match="stemmer=None"):
        read_manifest(tmp_path / "ix", kind="lucene", stemmer="x")


def fail_half_way(path):
    with building(path, manifest()) as folder:
        (folder / "half").write_text("half")
        raise KeyError("mine")


def test_an_exception_in_the_block_leaves_nothing(tmp_path):
    with pytest.raises(KeyError, match="mine"):
        fail_half_way(tmp_path / "ix")
    assert names(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_leaves_nothing_and_names_the_path(tmp_path):
    with pytest.raises(DataError, match="room on the disk") as error, building(tmp_path / "ix", manifest()):
        Path("/dev/full").write_text("words")
    assert str(tmp_path / "ix") in str(error.value)
    assert error.value.__cause__.errno == errno.ENOSPC
    assert names(tmp_path) == []


def test_other_errors_of_the_block_are_not_taken_for_the_disks(tmp_path):
    with pytest.raises(FileNotFoundError), building(tmp_path / "ix", manifest()):
        (tmp_path / "no such source").read_text()


def test_a_place_that_cannot_be_written_is_a_data_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="can be written"):
        build(tmp_path / "file" / "ix")


def test_a_killed_build_leaves_no_folder_that_opens(killed):
    assert len(names(killed)) == 1
    with pytest.raises(DataError, match="nothing at that path"):
        read_manifest(killed / "ix", kind="lucene")
    (left,) = killed.iterdir()
    with pytest.raises(DataError, match=MANIFEST):
        read_manifest(left, kind="lucene")


def test_the_next_build_clears_what_a_killed_one_left(killed):
    build(killed / "ix")
    assert names(killed) == ["ix"]


def test_what_another_builder_is_still_writing_is_not_cleared(tmp_path):
    with building(tmp_path / "ix", manifest()) as first:
        build(tmp_path / "ix", content="second")
        assert first.is_dir()
    assert (tmp_path / "ix" / "documents").read_text() == "second"
    assert names(tmp_path) == ["ix"]


def test_many_builders_of_one_index_leave_one_whole_folder(tmp_path):
    failures = []

    def race():
        try:
            for _ in range(5):
                build(tmp_path / "ix")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert names(tmp_path) == ["ix"]
    assert read_manifest(tmp_path / "ix", kind="lucene") == manifest()


def test_the_same_build_is_reused_and_another_one_is_an_error(tmp_path):
    assert not reusable(tmp_path / "ix", manifest())
    build(tmp_path / "ix")
    assert reusable(tmp_path / "ix", manifest())
    for other in (manifest("bb"), manifest(analyzer="none")):
        with pytest.raises(DataError, match="overwrite=True") as error:
            reusable(tmp_path / "ix", other)
        assert "porter" in str(error.value)
        with pytest.raises(DataError, match="overwrite=True"):
            build(tmp_path / "ix", other)
    assert (tmp_path / "ix" / "documents").read_text() == "words"


def test_overwrite_replaces_another_index_and_leaves_nothing_beside_it(tmp_path):
    build(tmp_path / "ix")
    build(tmp_path / "ix", manifest("bb"), content="new", overwrite=True)
    assert read_manifest(tmp_path / "ix", kind="lucene").data_hash == "bb"
    assert (tmp_path / "ix" / "documents").read_text() == "new"
    assert names(tmp_path) == ["ix"]


def test_overwrite_replaces_an_index_with_a_damaged_manifest(tmp_path):
    build(tmp_path / "ix")
    (tmp_path / "ix" / MANIFEST).write_text("{")
    with pytest.raises(DataError, match="readable JSON"):
        build(tmp_path / "ix")
    build(tmp_path / "ix", overwrite=True)
    assert read_manifest(tmp_path / "ix", kind="lucene") == manifest()


def test_what_is_no_index_is_never_overwritten(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("more work")
    for path in (home, tmp_path / "file"):
        with pytest.raises(DataError, match="never overwritten"):
            build(path, overwrite=True)
    assert (home / "thesis.tex").read_text() == "years of work"


def test_an_empty_folder_is_a_free_path(tmp_path):
    (tmp_path / "ix").mkdir()
    build(tmp_path / "ix")
    assert read_manifest(tmp_path / "ix", kind="lucene") == manifest()


def test_a_link_to_a_folder_keeps_pointing_to_the_index(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "ix").symlink_to(tmp_path / "disk", target_is_directory=True)
    build(tmp_path / "ix")
    assert (tmp_path / "ix").is_symlink()
    assert read_manifest(Path(tmp_path / "ix"), kind="lucene") == manifest()


def test_the_manifest_is_json_that_people_can_read(tmp_path):
    build(tmp_path / "ix", manifest(analyzer="größe"))
    text = (tmp_path / "ix" / MANIFEST).read_text("utf-8")
    assert json.loads(text)["n_documents"] == 3
    assert "größe" in text
