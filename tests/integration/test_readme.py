"""What README says is what happens: its commands and its Python are run as they stand."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest

from tests.conftest import REPO

README = (REPO / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]
# Setting up and the test run itself are what CI does around these tests; measurements are run by hand.
COMMANDS = [
    line
    for language, text in BLOCKS
    if language == "bash" and "SEARCHOPS_DATA" not in text
    for line in text.strip().splitlines()
    if line.startswith("searchops ")
]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder with the pipelines in it, where the quick start has been run."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "pipelines").symlink_to(REPO / "pipelines")
    assert "searchops run pipelines/quickstart.yaml" in README
    done = searchops("searchops run pipelines/quickstart.yaml", folder)
    assert done.returncode == 0, done.stderr
    return folder


def searchops(line, folder):
    arguments = [str(p) for word in shlex.split(line)[1:] for p in sorted(glob(folder, word))]
    code = "from searchops.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def glob(folder, word):
    return [p.relative_to(folder) for p in folder.glob(word)] if "*" in word else [word]


def test_there_is_something_to_run():
    assert len(COMMANDS) >= 5
    assert PYTHON


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_runs_and_prints(line, workplace):
    done = searchops(line, workplace)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "Traceback" not in done.stderr


def test_the_first_run_shows_quality_beside_the_funnel(workplace):
    done = searchops("searchops run pipelines/quickstart.yaml", workplace)
    for shown in ("nDCG@10", "Delivered/Available", "labels out", "report.html"):
        assert shown in done.stdout
    assert (workplace / "runs/quickstart/report.html").stat().st_size > 10_000


def test_the_picture_on_top_is_the_quick_starts_funnel(workplace):
    """The numbers of the first screen, on the Python they were made with."""
    from searchops.accounting import funnel
    from searchops.datasets import load
    from searchops.records import Run

    if sys.version_info[:2] != (3, 11):
        pytest.skip("the embedded collection differs a little between Pythons; README shows 3.11's")
    table = funnel(Run.open(workplace / "runs/quickstart"), load("pydocs").evidence)
    numbers = [str(table.loc[0, "labels_in"]), *map(str, table["labels_out"])]
    drawn = re.search(r"```text\n(.*?)```", README, re.DOTALL)[1]
    assert re.findall(r"\d+", drawn.splitlines()[1])[: len(numbers)] == numbers


@pytest.mark.parametrize("text", PYTHON)
def test_the_python_runs_as_it_stands(text, tmp_path):
    code = text + "\nprint('ran to its end')\n"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.rstrip().endswith("ran to its end"), done.stderr


def test_every_pipeline_file_is_named_or_shown():
    shown = README.lower()
    for file in (REPO / "pipelines").glob("*.yaml"):
        words = file.stem.replace("_", " ").lower()
        assert words.split()[0] in shown
