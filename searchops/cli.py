"""The `searchops` command. Exit codes: 0 fine, 1 the run failed, 2 a file or argument is wrong."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from searchops import __version__
from searchops.errors import DataError, FrameError, SearchopsError, SpecError

WIDTH = 100
INTERRUPTED = 130
EVIDENCE_SHOWN = 10

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
        _print_json(
            {
                "folder": str(result.folder),
                "report": str(report),
                "reused": result.reused,
                "means": _records(result.means()),
                "failed": _failed(result),
            }
        )
    else:
        _print_result(result, report, quiet=quiet)
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

    _print_json(json_schema())


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
        _print_json(_records(table))
        return
    rows = [
        [
            row["stage"],
            row["label"],
            row["side"],
            f"{row['present']:.0%}",
            _whole(row["rank"]),
            _number(row["score"]),
            str(row["passages"]),
        ]
        for row in table.to_dict("records")
    ]
    _print_table(f"{what} for {qid}", ["", "stage", "side", "covered", "rank", "score", "rows"], rows)
    print(_verdict(table))


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
        _print_json({**asked.answer, "is_answer": asked.is_answer, "evidence": asked.evidence})
    else:
        _print_asked(asked)
    if not asked.answer["qanswer"]:
        raise typer.Exit(1)


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


def main() -> NoReturn:
    """Runs the command; errors are one line on stderr, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # Half a surrogate pair out of somebody's data must not stop a message.
        getattr(stream, "reconfigure", dict)(errors="backslashreplace")
    try:
        _invoke()
        sys.stdout.flush()
        code = 0
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else 1
    except typer.Exit as done:
        code = done.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe is gone; nothing more can be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except SearchopsError as error:
        print(f"searchops: {error}" if not isinstance(error, SpecError) else error, file=sys.stderr)
        code = 2 if isinstance(error, (SpecError, DataError, FrameError)) else 1
    except OSError as error:
        print(f"searchops: {error}", file=sys.stderr)
        code = 1
    except Exception as error:
        code = _usage_error(error)
    if code == INTERRUPTED:
        print("interrupted; the same command goes on where it stopped", file=sys.stderr)
    sys.exit(code)


def _invoke() -> None:
    if "_SEARCHOPS_COMPLETE" in os.environ:
        app()  # the shell asks for completions
    # Not app(): it makes an exit code of its own out of a closed pipe.
    command = typer.main.get_command(app)
    with command.make_context("searchops", sys.argv[1:]) as context:
        command.invoke(context)


def _usage_error(error: Exception) -> int:
    """A wrong command line is told in a line; anything else is a defect and keeps its traceback."""
    show = getattr(error, "format_message", None)
    if show is None:
        raise error
    print(f"searchops: {show()} See searchops --help.", file=sys.stderr)
    return 2


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


def _print_result(result: Any, report_file: Path, *, quiet: bool) -> None:
    from searchops.accounting import funnel
    from searchops.records import Run

    if not quiet:
        for note in result.collection.notes:
            print(f"note: {note}", file=sys.stderr)
        if result.reused:
            print("note: this run was complete already; --replace runs it again", file=sys.stderr)
    means = result.means()
    for name in result.names:
        mine = means[means["name"] == name]
        rows = [
            [
                row["measure"],
                _number(row["mean"]),
                f"{_number(row['low'])} – {_number(row['high'])}",
                str(row["tasks"]),
                str(row["missing"] or ""),
            ]
            for row in mine.to_dict("records")
        ]
        _print_table(f"{name}: measures", ["measure", "mean", "95 % interval", "tasks", "no value"], rows)
    read = Run.open(result.folder)
    for name, number in result.names.items():
        table = funnel(read, result.collection.evidence, pipeline=number)
        _print_table(f"{name}: what each stage kept", *_funnel_rows(table))
    for (name, qid), text in list(result.failed.items())[:10]:
        print(f"failed: {name}, {qid}: {text}", file=sys.stderr)
    if len(result.failed) > 10:
        print(f"failed: {len(result.failed) - 10} more", file=sys.stderr)
    print(f"record  {result.folder}\nreport  {report_file}")


def _print_asked(asked: Any) -> None:
    answer = asked.answer
    if asked.is_answer:
        print(answer["qanswer"] or f"no answer: {answer['error'] or answer['stop_reason']}")
    else:
        print("Evidence, not an answer: no model was named, so words were searched for by rules.")
    print()
    for item in asked.evidence[:EVIDENCE_SHOWN]:
        print(f"[{item['passage_id']}] {item['title']}\n  " + " ".join(item["note"].split()))
    if len(asked.evidence) > EVIDENCE_SHOWN:
        print(f"and {len(asked.evidence) - EVIDENCE_SHOWN} more passages (--json shows all)")
    costs = ("decisions", "retrieval_requests", "extract_calls", "total_tokens")
    print("\n" + ", ".join(f"{_whole(answer[name])} {name.replace('_', ' ')}" for name in costs))


def _funnel_rows(table: Any) -> tuple[list[str], list[list[str]]]:
    heads = ["", "stage", "rows in", "rows out", "ms a task"]
    labelled = "labels_in" in table.columns
    rows = []
    for row in table.to_dict("records"):
        cells = [
            row["stage"],
            row["label"],
            f"{row['n_in']:.1f}",
            f"{row['n_out']:.1f}",
            f"{row['seconds'] * 1000:.2f}",
        ]
        if labelled:
            cells += [str(row["labels_in"]), str(row["labels_out"]), str(row["lost"] or "")]
        rows.append(cells)
    return heads + (["labels in", "labels out", "lost"] if labelled else []), rows


def _print_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place < 2 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    wide = Console().width if sys.stdout.isatty() else WIDTH
    console = Console(width=min(wide, WIDTH), markup=False, highlight=False, emoji=False)
    console.print(table)
    console.print()


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=1, ensure_ascii=False, default=str))


def _records(frame: Any) -> list[dict[str, Any]]:
    """Rows as plain values: NaN becomes null, which JSON has."""
    return [
        {name: None if value != value else value for name, value in row.items()} for row in frame.to_dict("records")
    ]


def _failed(result: Any) -> list[dict[str, str]]:
    return [{"name": name, "qid": qid, "error": text} for (name, qid), text in result.failed.items()]


def _number(value: Any) -> str:
    if value is None or value != value:
        return "–"
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:,.0f}"


def _whole(value: Any) -> str:
    return "–" if value is None or value != value else str(int(value))


def _verdict(table: Any) -> str:
    lost_at = table.attrs.get("lost_at")
    if lost_at is not None:
        return f"Lost: {lost_at}." if lost_at else "An observation showed it."
    alive = [row for row in table.to_dict("records") if row["side"] == "out" and "." not in row["stage"]]
    kept = [row for row in alive if row["present"] >= 1.0]
    if not kept:
        return "It never came out of any stage whole."
    after = alive[alive.index(kept[-1]) + 1 :]
    return f"Dropped by {after[0]['label']}." if after else "It is there at the end."
