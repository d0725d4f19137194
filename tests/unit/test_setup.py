"""What is installed is what is there; what CI runs is what README says."""

import configparser
import re
import tomllib

import pytest

import searchops
from searchops.spec import read_spec
from tests.conftest import REPO

CONFIG = configparser.ConfigParser()
CONFIG.read(REPO / "setup.cfg", encoding="utf-8")


def listed(section, option):
    return [line.strip() for line in CONFIG[section][option].splitlines() if line.strip()]


def test_every_package_on_disk_is_installed():
    on_disk = {
        ".".join(folder.relative_to(REPO).parts)
        for folder in [REPO / "searchops", *(REPO / "searchops").rglob("*")]
        if folder.is_dir() and any(folder.glob("*.py"))
    }
    packages = listed("options", "packages")
    assert {name for name in packages if name.split(".")[0] == "searchops"} == on_disk
    assert all((REPO / name.replace(".", "/") / "__init__.py").exists() for name in on_disk)
    assert len(packages) == len(set(packages))


def test_files_that_are_no_python_are_installed_too():
    patterns = {line.split("=")[0].strip(): line.split("=")[1] for line in listed_pairs("options.package_data")}
    installed = {
        file
        for package, globs in patterns.items()
        for glob in globs.split(",")
        for file in (REPO / package.replace(".", "/")).glob(glob.strip())
    }
    others = {f for f in (REPO / "searchops").rglob("*") if f.is_file() and f.suffix not in (".py", ".pyc")}
    assert others
    assert others <= installed


def test_the_embedded_collection_is_installed():
    where = dict(line.split(" = ") for line in listed("options", "package_dir"))
    for name in listed("options", "packages"):
        if name.startswith("searchops_data"):
            folder = REPO / name.replace("searchops_data", where["searchops_data"]).replace(".", "/")
            assert folder.is_dir(), folder
    patterns = CONFIG["options.package_data"]["searchops_data.pydocs"].split(",")
    for file in (REPO / "data/pydocs").iterdir():
        if file.suffix not in (".py", ".pyc") and file.is_file():
            assert any(file.match(pattern.strip()) for pattern in patterns), file


def listed_pairs(section):
    return [f"{name}={value}" for name, value in CONFIG[section].items()]


def test_the_version_is_one():
    assert CONFIG["metadata"]["version"] == searchops.__version__


def test_the_command_is_the_one_that_is_installed():
    assert listed("options.entry_points", "console_scripts") == ["searchops = searchops.cli:main"]


def test_pythons_are_those_of_the_classifiers():
    assert CONFIG["options"]["python_requires"] == ">=3.11"
    named = re.findall(r"Python :: (3\.\d+)", CONFIG["metadata"]["classifiers"])
    assert named == ["3.11", "3.12", "3.13"]
    target = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["ruff"]["target-version"]
    assert target == "py311"


def test_the_floors_hold_every_module():
    floors = set(re.findall(r"\w+", CONFIG["importlinter:contract:floors"]["layers"]))
    top = [path for path in (REPO / "searchops").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    assert {path.stem for path in top} - {"__init__"} == floors


def test_constraints_pin_what_is_required():
    pins = [line for line in (REPO / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert pins
    assert all(re.fullmatch(r"[\w.\-]+(==|<)[\w.+]+(\s*;.*)?", pin) for pin in pins), pins
    assert "torch==2.13.0" in pins


def test_ci_runs_readmes_test_line():
    readme = (REPO / "README.md").read_text(encoding="utf-8")
    between = re.search(r"<!-- test line -->\n```\w*\n(.+?)\n```\n<!-- end -->", readme, re.DOTALL)[1]
    assert len(between.splitlines()) == 1
    install, _, test = between.partition(" && pytest")
    assert "[test]" in install
    assert "-c constraints.txt" in install
    assert test.strip() == ""
    ci = (REPO / ".ci/run").read_text(encoding="utf-8")
    taken = re.search(r"sed -n '(.+?)' README\.md", ci)[1]
    assert taken == "/<!-- test line -->/,/<!-- end -->/p"
    assert 'eval "$install"' in ci
    assert re.search(r"^step \"pytest\" pytest\b", ci, re.MULTILINE)


@pytest.mark.parametrize("file", sorted((REPO / "pipelines").glob("*.yaml")), ids=lambda file: file.stem)
def test_every_shipped_pipeline_file_is_right(file):
    from searchops.metrics import parse_measure

    spec = read_spec(file)
    assert spec.collection
    for measure in spec.measures:
        parse_measure(measure)
