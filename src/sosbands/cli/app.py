"""The commands as one program: errors as messages, exit codes, and what is the same for all of them."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from sosbands import __version__
from sosbands.cli.compare import compare
from sosbands.cli.demo import demo
from sosbands.cli.evaluate import evaluate
from sosbands.cli.explore import explore
from sosbands.cli.fit import fit
from sosbands.cli.interruption import Stopped, stop_on_signals
from sosbands.cli.predict import predict

EXPECTED = (ValueError, OSError, ImportError, MemoryError)  # their messages are written for users


class Commands(TyperGroup):
    """Turns exceptions into a line on stderr and an exit code; takes --debug anywhere."""

    debug = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments before the command."""
        end = args.index("--") if "--" in args else len(args)
        self.debug = "--debug" in args[:end]
        left = [arg for arg in args[:end] if arg != "--debug"] + args[end:]
        return super().parse_args(ctx, left)

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


def make_app(name: str, callback: Callable[..., None], commands: dict[Callable[..., None], str]) -> typer.Typer:
    """A program of these commands, each with its line in the list of them."""
    app = typer.Typer(
        name=name,
        cls=Commands,
        callback=callback,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,  # plain text: the same on a terminal and in a file
        pretty_exceptions_enable=False,
    )
    for command, short in commands.items():
        app.command(short_help=short)(command)
    return app


SHORT: dict[Callable[..., None], str] = {
    demo: "See it work, on data that ships with scikit-learn.",
    fit: "Learn a model with intervals from a table.",
    predict: "Write intervals for the rows of a table.",
    evaluate: "Measure intervals on rows with a known target.",
    compare: "Compare methods on repeated splits of a table.",
    explore: "Write an interactive HTML page about a table.",
}
app = make_app("sosbands", options, SHORT)


def run() -> NoReturn:
    """Run the program with the arguments of the process."""
    stop_on_signals()
    app(prog_name="sosbands")
    sys.exit(0)
