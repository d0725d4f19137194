"""The commands of `searchops`: each checks its arguments, calls one function and prints what it gives."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from searchops import __version__
from searchops.cli import printing
from searchops.errors import SpecError

app = typer.Typer(
    name="searchops",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Retrieval pipelines for search agents, with the evidence followed through every stage.",
)

File = Annotated[Path, typer.Argument(help="A pipeline file (YAML).", metavar="FILE")]
RunFolder = Annotated[Path, typer.Argument(help="A run's folder.", metavar="DIR")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars, no notes.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Override a variable: --set vars.k=5.", metavar="vars.NAME=VALUE")
]


@app.command()
def run(
    file: File,
    sets: Settings = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the record.", metavar="DIR")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Start anew where a run is there already.")] = False,
    half: Annotated[
        int | None, typer.Option(min=1, max=2, help="Run over half of the questions: choose on 1, report on 2.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run a pipeline file: build what is missing, run, measure, record and report.

    The same command goes on where an interrupted run stopped.

    Example: searchops run pipelines/quickstart.yaml --set vars.k=5
    """
    from searchops.experiments.running import run_spec
    from searchops.report import write_report
    from searchops.spec import read_spec

    spec = read_spec(file, sets or ())
    shows = not quiet and sys.stderr.isatty()
    result = run_spec(spec, out, replace=replace, half=half, progress=_bar if shows else None)
    report = write_report(result.folder)
    if as_json:
        printing.print_json(
            {
                "folder": str(result.folder),
                "report": str(report),
                "reused": result.reused,
                "means": printing.records(result.means()),
                "failed": printing.failed(result),
            }
        )
    else:
        printing.print_result(result, report, quiet=quiet)
    if result.failed:
        raise typer.Exit(1)


@app.command()
def validate(
    files: Annotated[list[Path], typer.Argument(help="Pipeline files.", metavar="FILE…")],
    sets: Settings = None,
) -> None:
    """Check pipeline files without running anything; every problem is named at once.

    Example: searchops validate pipelines/*.yaml
    """
    from searchops.spec import read_spec

    wrong = 0
    for file in files:
        try:
            spec = read_spec(file, sets or ())
            _check_measures(spec)
        except SpecError as error:
            wrong += 1
            print(error, file=sys.stderr)
        else:
            print(f"{file}: fine ({len(spec.pipelines)} pipeline{'s'[: len(spec.pipelines) != 1]})")
    if wrong:
        raise typer.Exit(2)


@app.command()
def schema() -> None:
    """Print the JSON Schema of pipeline files, for editors.

    Example: searchops schema > searchops.schema.json
    """
    from searchops.spec import json_schema

    printing.print_json(json_schema())


@app.command()
def why(
    folder: RunFolder,
    qid: Annotated[str, typer.Argument(help="The question's id.", metavar="QID")],
    what: Annotated[str, typer.Argument(help="docno, docno%pN or docno:START-END.", metavar="WHAT")],
    pipeline: Annotated[str | None, typer.Option(help="Name or number, where the run has several.")] = None,
    as_json: AsJson = False,
) -> None:
    """Tell a passage's whole life: its rank at each stage, and where it was dropped.

    Example: searchops why runs/quickstart pd001 topic/calls:120-180
    """
    from searchops import accounting
    from searchops.records import Run

    read = Run.open(folder)
    table = accounting.why(read, qid, what, pipeline=_pipeline_number(read, pipeline))
    if as_json:
        printing.print_json(printing.records(table))
        return
    rows = [
        [
            row["stage"],
            row["label"],
            row["side"],
            f"{row['present']:.0%}",
            printing.whole(row["rank"]),
            printing.decimal(row["score"]),
            str(row["passages"]),
        ]
        for row in table.to_dict("records")
    ]
    printing.print_table(f"{what} for {qid}", ["", "stage", "side", "covered", "rank", "score", "rows"], rows)
    print(printing.verdict(table))


@app.command()
def report(
    folder: RunFolder,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file to write.", metavar="FILE")] = None,
) -> None:
    """Write a run's one-file HTML report.

    Example: searchops report runs/quickstart
    """
    from searchops.report import write_report

    print(write_report(folder, out))


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question.", metavar="QUESTION")],
    agent: Annotated[str, typer.Option(help="query, tool or program.")] = "query",
    collection: Annotated[str, typer.Option(help="pydocs, a folder, or irds:NAME.")] = "pydocs",
    model: Annotated[
        str, typer.Option(help="An endpoint's model; keyword searches by rules, with no model.")
    ] = "keyword",
    base_url: Annotated[str | None, typer.Option(help="The endpoint, with its /v1.", metavar="URL")] = None,
    decisions: Annotated[int | None, typer.Option(min=1, help="Most decisions.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of a record.", metavar="DIR")] = None,
    as_json: AsJson = False,
) -> None:
    """Put a question to a search agent. Without a model it shows evidence, not an answer.

    Example: searchops ask "What does json.loads raise on bad input?" --agent program
    """
    from searchops.experiments.asking import ask as put

    asked = put(question, agent, collection, model=model, base_url=base_url, decisions=decisions, out=out)
    if as_json:
        printing.print_json({**asked.answer, "is_answer": asked.is_answer, "evidence": asked.evidence})
    else:
        printing.print_asked(asked)
    if not asked.answer["qanswer"]:
        raise typer.Exit(1)


@app.command()
def export(
    folder: RunFolder,
    to: Annotated[str, typer.Option("--to", help="browsecomp-plus, cells or trec.", metavar="FORMAT")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file or folder to write.", metavar="PATH")
    ] = None,
) -> None:
    """Write a run for other tools: TREC runs, BrowseComp-Plus run files, an agent's cells.

    Example: searchops export runs/quickstart --to trec
    """
    from searchops.exports import export as write

    files = write(folder, to, out)
    print(files[0] if len(files) == 1 else f"{len(files)} files in {files[0].parent}" if files else "nothing to write")


@app.command()
def compare(
    folders: Annotated[list[Path], typer.Argument(help="Folders of agent runs.", metavar="DIR…")],
    baseline: Annotated[str, typer.Option(help="The agent that the others are compared with.")] = "query",
) -> None:
    """Compare recorded agents in the layout of the paper's Table 1, with paired intervals.

    Example: searchops compare runs/agents
    """
    from searchops.experiments.table1 import table1

    print(table1(folders, baseline=baseline).markdown())


def _show_version(asked: bool) -> None:
    if asked:
        print("searchops", __version__)
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _check_measures(spec: Any) -> None:
    from searchops.metrics import parse_measure

    for place, name in enumerate(spec.measures):
        try:
            parse_measure(name)
        except SpecError as error:
            raise SpecError(error.needed, error.found, where=spec.where("measures", place), hint=error.hint) from error


def _pipeline_number(read: Any, asked: str | None) -> int | None:
    if asked is None:
        return None
    names = {name: int(number) for number, name in read.meta.get("names", {}).items()}
    if asked in names:
        return names[asked]
    if asked.isdigit():
        return int(asked)
    raise SpecError(
        "a pipeline of the run is needed", repr(asked), where="--pipeline", hint="It has: " + ", ".join(names)
    )


def _bar(items: Sequence[Any], name: str) -> Iterator[Any]:
    from tqdm import tqdm

    yield from tqdm(items, desc=name, unit="batch", leave=False)
