"""The command line: one file per command, and what they share.

``sosbands`` and ``python -m sosbands`` call `main`. Importing this room loads neither typer nor pandas; `main` does.
"""

from __future__ import annotations

import sys
from typing import NoReturn

INSTALL = "pip install typer rich pandas pyarrow"
__all__ = ["INSTALL", "main"]


def main() -> NoReturn:
    """Run the command that the arguments of the process name, and end with its exit code.

    0: done. 1: failed, with a message on stderr. 2: the command line itself is wrong. 130: Ctrl-C.
    """
    try:
        from sosbands.cli.app import run
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "sosbands":
            raise
        print(f"error: the command line needs {error.name}, which is not installed: {INSTALL}", file=sys.stderr)
        sys.exit(1)
    run()
