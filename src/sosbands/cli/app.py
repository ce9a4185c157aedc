"""The commands as one program: errors as messages, exit codes, and what is the same for all of them."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from sosbands._version import __version__
from sosbands.cli.command_line import remember
from sosbands.cli.interruption import Stopped, stop_on_signals

PLAIN: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None}  # the same on a terminal and in a file
EXPECTED = (ValueError, OSError, ImportError, MemoryError)  # their messages are written for users


class Commands(TyperGroup):
    """Loads a command when it is asked for; turns exceptions into a line on stderr and an exit code.

    The option --debug may stand anywhere.
    """

    debug = False
    modules: dict[str, str]  # of the commands, by name

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments before the command."""
        remember(args)
        end = args.index("--") if "--" in args else len(args)
        self.debug = "--debug" in args[:end]
        left = [arg for arg in args[:end] if arg != "--debug"] + args[end:]
        return super().parse_args(ctx, left)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name, in place of the one that only stands in the list."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and _command(self.modules[str(listed.name)]), rest

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
            print(f"error: {_message(error)}", file=sys.stderr)
            raise typer.Exit(1) from None


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    text = str(error) or type(error).__name__
    if isinstance(error, EXPECTED):
        return text
    return f"{type(error).__name__}: {text} (run with --debug to see where)"


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
    """A program of commands.

    Parameters
    ----------
    name : str
        Of the program.
    callback : callable
        Its own options, and its help.
    commands : dict of str to str
        Modules, each with a function of its own name, and their lines in the list of commands. A module is imported
        when its command is run, because most of the time of a short command is that of its imports.
    """

    class TheseCommands(Commands):
        modules = {module.rpartition(".")[2]: module for module in commands}

    app = typer.Typer(
        name=name, cls=TheseCommands, callback=callback, no_args_is_help=True, pretty_exceptions_enable=False, **PLAIN
    )
    for module, short in commands.items():
        app.command(module.rpartition(".")[2], short_help=short)(lambda: None)
    return app


def _command(module: str) -> Any:
    """The command that a module defines."""
    alone = typer.Typer(**PLAIN)
    alone.command()(getattr(import_module(module), module.rpartition(".")[2]))
    return typer.main.get_command(alone)


SHORT = {
    "sosbands.cli.demo": "See it work, on data that ships with scikit-learn.",
    "sosbands.cli.fit": "Learn a model with intervals from a table.",
    "sosbands.cli.predict": "Write intervals for the rows of a table.",
    "sosbands.cli.evaluate": "Measure intervals on rows with a known target.",
    "sosbands.cli.monitor": "Follow a model along rows in their order: has anything changed?",
    "sosbands.cli.recalibrate": "Add calibration rows to a model.",
    "sosbands.cli.compare": "Compare methods on repeated splits of a table.",
    "sosbands.cli.explore": "Write an interactive HTML page about a table.",
    "sosbands.cli.card": "Write a printable HTML page about a model.",
    "sosbands.cli.export": "Write a model as ONNX, or for NumPy alone.",
}
app = make_app("sosbands", options, SHORT)


def run() -> NoReturn:
    """Run the program with the arguments of the process."""
    stop_on_signals()
    app(prog_name="sosbands")
    sys.exit(0)
