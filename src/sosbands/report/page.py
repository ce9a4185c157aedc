"""render: the page as one text; write_page: straight from rows to a file."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from sosbands._files import check_place, written
from sosbands.report.data import Exploration
from sosbands.report.exploration import explore
from sosbands.report.payload import payload

SCRIPTS = ("lookup.js", "drawing.js", "charts.js", "words.js", "explain.js", "page.js")  # one script, in this order


def write_page(
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
    target_name: str | None = None,
    estimator: Any = None,
    confidence_level: float | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
    title: str | None = None,
) -> Path:
    """Fit bands to the rows and write the interactive page; the file appears whole or not at all.

    Parameters
    ----------
    path : path
        File to write, in a directory that exists.
    X, y, feature_names, target_name, estimator, confidence_level, random_state, n_jobs, verbose, title
        As in :func:`explore`.

    Returns
    -------
    Path
        The file.
    """
    check_place(path)
    data = explore(
        X,
        y,
        feature_names=feature_names,
        target_name=target_name,
        estimator=estimator,
        confidence_level=confidence_level,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
        title=title,
    )
    with written(path) as partial:
        partial.write_text(render(data), encoding="utf-8")
    return Path(path)


def render(data: Exploration) -> str:
    """The page, with its data, style and script inside; it asks nothing of the network.

    Its content security policy allows this one script and this one style sheet, by their hashes, and nothing else.
    """
    style, script = page_file("page.css"), "\n".join(page_file(name) for name in SCRIPTS)
    parts = {
        "title": html.escape(data.title),
        "policy": policy_of(style, script),
        "style": style,
        "script": script,
        "data": _packed(payload(data)),
    }
    return filled_in("page.html", parts)


def filled_in(name: str, parts: dict[str, str]) -> str:
    """A template of this room with its places filled in, in one pass: what is filled in is not looked at again."""
    before, *pieces = page_file(name).split("{{")
    filled = (piece.partition("}}") for piece in pieces)
    return before + "".join(parts[place] + rest for place, _, rest in filled)


def policy_of(style: str, script: str | None = None) -> str:
    """A content security policy that allows this style sheet and this script, by their hashes, and nothing else."""
    scripts = "" if script is None else f" script-src {_hash(script)};"
    policy = f"default-src 'none'; style-src {_hash(style)};{scripts} base-uri 'none'"
    return html.escape(policy, quote=True).replace("&#x27;", "'")


def page_file(name: str) -> str:
    """The text of a file of this room."""
    return resources.files("sosbands.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _packed(value: Any) -> str:
    """JSON in gzip in base64: no string in it can end the element it stands in."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
