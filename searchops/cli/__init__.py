"""The `searchops` command. Exit codes: 0 fine, 1 the run failed, 2 a file or argument is wrong."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import typer

from searchops.cli.commands import app
from searchops.errors import DataError, FrameError, SearchopsError, SpecError

INTERRUPTED = 130


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
