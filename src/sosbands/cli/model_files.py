"""Model files on the command line: the types they hold are accepted with --trust."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sosbands import load
from sosbands.cli.command_line import command_with
from sosbands.cli.given_models import importable_here
from sosbands.exceptions import UntrustedTypesError

# Trees need no trust, as each is checked when it is read (but boosting with categories does); old scripts name them.
SHORT_NAMES = {
    "sklearn.tree._tree.Tree": "forest",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor": "boosting",
}


def load_model(path: Path, trust: Sequence[str]) -> Any:
    """Read a model; types that are not trusted give an error with the command line that accepts them."""
    types = {short: full for full, short in SHORT_NAMES.items()}
    if trust:
        importable_here()  # where a regressor of the user's may be defined
    try:
        return load(path, trusted=[types.get(name, name) for name in trust])
    except UntrustedTypesError as error:
        raise UntrustedTypesError(
            f"{path} holds {', '.join(error.types)}, and reading it could run code. If you know where the file comes "
            f"from, type\n  {command_with(trust_options(error.types))}",
            error.types,
        ) from error
    except FileNotFoundError as error:
        raise ValueError(f"model {path}: no such file") from error


def types_to_trust(path: Path) -> list[str]:
    """The types that readers of this file must accept."""
    try:
        load(path)
    except UntrustedTypesError as error:
        return list(error.types)
    return []


def trust_options(types: Sequence[str]) -> str:
    """The options that accept these types."""
    return " ".join(f"--trust {SHORT_NAMES.get(name, name)}" for name in types)
