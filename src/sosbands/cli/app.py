"""The commands as one program: errors as messages, exit codes, and what is the same for all of them."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from threading import current_thread, main_thread
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from sosbands._extras import __version__

PLAIN: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None}  # the same on a terminal and in a file
STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM)  # exit codes after a signal
EXPECTED = (ValueError, OSError, ImportError, MemoryError)  # their messages are written for users


class Commands(TyperGroup):
    """Loads a command when it is asked for; turns exceptions into a line on stderr and an exit code.

    The option --debug may stand anywhere.
    """

    debug = False
    functions: dict[str, str]  # of the commands, by name

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments before the command."""
        _words.set(tuple(args))
        end = args.index("--") if "--" in args else len(args)
        self.debug = "--debug" in args[:end]
        left = [arg for arg in args[:end] if arg != "--debug"] + args[end:]
        return super().parse_args(ctx, left)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name, in place of the one that only stands in the list."""
        name, listed, rest = super().resolve_command(ctx, args)
        if listed is None:
            return name, None, rest
        module, _, function = self.functions[str(listed.name)].rpartition(".")
        alone = typer.Typer(**PLAIN)
        alone.command()(getattr(import_module(module), function))
        return name, typer.main.get_command(alone), rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, Stopped) as error:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(getattr(error, "exit_code", 130)) from None
        except BrokenPipeError:
            raise
        except Exception as error:
            if hasattr(error, "exit_code"):  # typer's own: usage errors and exits
                raise
            if self.debug:
                traceback.print_exc()
            text = str(error) or type(error).__name__
            if isinstance(error, OSError) and error.strerror:
                text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
            elif not isinstance(error, EXPECTED):
                text = f"{type(error).__name__}: {text} (run with --debug to see where)"
            print(f"error: {text}", file=sys.stderr)
            raise typer.Exit(1) from None


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


def options(
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[  # noqa: ARG001
        bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere on the line.")
    ] = False,
) -> None:
    """Prediction intervals around any regression model, with guaranteed coverage.

    \b
    Example:
      sosbands fit train.csv --target y -o y.model
      sosbands predict y.model new.csv -o intervals.csv
    """  # noqa: D301


def make_app(name: str, callback: Callable[..., None], commands: dict[str, str]) -> typer.Typer:
    """A program of functions such as "sosbands.cli.fit.fit", with their lines in the list of commands.

    `callback` has its own options and its help. A module is imported when its command is run, because most of the time
    of a short command is that of its imports.
    """

    class TheseCommands(Commands):
        functions = {path.rpartition(".")[2]: path for path in commands}

    app = typer.Typer(
        name=name, cls=TheseCommands, callback=callback, no_args_is_help=True, pretty_exceptions_enable=False, **PLAIN
    )
    for path, short in commands.items():
        app.command(path.rpartition(".")[2], short_help=short)(lambda: None)
    return app


_words: ContextVar[tuple[str, ...]] = ContextVar("words", default=())  # after the name of the program


def command_with(further: str) -> str:
    """The same command with further options, as one types it."""
    return f"sosbands {shlex.join(_words.get())} {further}"


class Stopped(BaseException):
    """A signal asked to stop. No KeyboardInterrupt, which tuning takes as "enough, use the best so far"."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def stop_on_signals() -> None:
    """Raise `Stopped` on Ctrl-C and on a request to end, so that temporary files are removed."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _stop)


@contextmanager
def choice_ends_early() -> Iterator[None]:
    """Let the first Ctrl-C be a KeyboardInterrupt, which ends the choice of bands with the best so far.

    Anywhere else in the block it ends the command, as a second one does everywhere. `compare` has no such block: a
    choice that was cut short would count as a result of the method.
    """
    if current_thread() is not main_thread():  # which alone may handle signals
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def first(_: int, __: Any) -> None:
        signal.signal(signal.SIGINT, _stop)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(number: int, _: Any) -> None:
    raise Stopped(number)


SHORT = {
    "sosbands.cli.pages.demo": "See it work, on data that ships with scikit-learn.",
    "sosbands.cli.fit.fit": "Learn a model with intervals from a table.",
    "sosbands.cli.predict.predict": "Write intervals for the rows of a table.",
    "sosbands.cli.evaluate.evaluate": "Measure intervals on rows with a known target.",
    "sosbands.cli.monitor.monitor": "Follow a model along rows in their order: has anything changed?",
    "sosbands.cli.monitor.recalibrate": "Add calibration rows to a model.",
    "sosbands.cli.compare.compare": "Compare methods on repeated splits of a table.",
    "sosbands.cli.pages.explore": "Write an interactive HTML page about a table.",
    "sosbands.cli.pages.card": "Write a printable HTML page about a model.",
    "sosbands.cli.predict.export": "Write a model as ONNX, or for NumPy alone.",
}
app = make_app("sosbands", options, SHORT)


def run() -> NoReturn:
    """Run the program with the arguments of the process."""
    stop_on_signals()
    try:
        app(prog_name="sosbands")
    except SystemExit as ended:
        if ended.code not in STOPPED:
            raise
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(ended.code))  # an orderly exit may be aborted by threads of pyarrow that still read ahead
    sys.exit(0)
