"""render: the page as one text; write_page: straight from rows to a file."""

from __future__ import annotations

import base64
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

SCRIPTS = ("lookup.js", "drawing.js", "charts.js", "words.js", "page.js")  # one script, in this order


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
    style, script = _file("page.css"), "\n".join(_file(name) for name in SCRIPTS)
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'"
    parts = {
        "title": html.escape(data.title),
        "policy": html.escape(policy, quote=True).replace("&#x27;", "'"),
        "style": style,
        "script": script,
        "data": _json(payload(data)),
    }
    page = _file("page.html")
    before, *pieces = page.split("{{")
    filled = (piece.partition("}}") for piece in pieces)  # one pass: what is filled in is not looked at again
    return before + "".join(parts[name] + rest for name, _, rest in filled)


def _file(name: str) -> str:
    return resources.files("sosbands.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(value: Any) -> str:
    """JSON that cannot end the element it stands in, whatever its strings hold."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # ASCII only
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
