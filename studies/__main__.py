"""``python -m studies``: the paper's figures and tables, and the solver against the paper's recipe."""

from __future__ import annotations

from typing import Annotated

import typer

from sosbands.cli.app import make_app, stop_on_signals


def options(
    debug: Annotated[  # noqa: ARG001
        bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere on the line.")
    ] = False,
) -> None:
    """Studies of the paper, in a checkout of the repository.

    \b
    Example:
      python -m studies reproduce penalty-bands --preset quick -o results
    """  # noqa: D301


app = make_app(
    "studies",
    options,
    {
        "studies.reproduce.reproduce": "Compute and draw the paper's figures and tables.",
        "studies.bench.bench": "Measure the solver against the paper's recipe.",
    },
)

if __name__ == "__main__":
    stop_on_signals()
    app(prog_name="python -m studies")
