"""Optional packages, imported when a command needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sosbands.cli import INSTALL


def need(module: str) -> Any:
    """A package of the extra ``sosbands[cli]``, or an ImportError that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError(f"reading and writing tables needs {package}, which is not installed: {INSTALL}") from error
