"""An exception as entries of a row, without anything that names the machine or its user."""

from __future__ import annotations

import os
import re
import socket
import traceback
from pathlib import Path

MESSAGE_LIMIT = 500
# Absolute paths of two or more parts; after a word, a dot or a slash it is a fraction, a relative path or an address.
_PATH = re.compile(r"(?<![\w./~])/(?:[^\s/'\"<>:,;()]+/)+[^\s/'\"<>:,;()]*|\b[A-Za-z]:[\\/][^\s'\"<>|,;()]*")
NO_FAILURE: dict[str, str | None] = {"error_type": None, "error": None, "error_place": None}


def failure(error: BaseException) -> dict[str, str | None]:
    """Type, message and innermost place of an exception."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name}" if frames else None
    return {"error_type": type(error).__name__, "error": anonymous(str(error)), "error_place": place}


def anonymous(text: str) -> str:
    """The text, shortened, with absolute paths reduced to file names and without host name and home directory."""
    for known in {os.path.expanduser("~"), os.getcwd()} - {"~", "/", ""}:
        text = text.replace(known, "/-")  # they may hold spaces, which would end the match of a path
    text = _PATH.sub(lambda match: _short(match.group()), text).replace("/-", "<path>")
    host = socket.gethostname()
    if host and host != "localhost":
        text = re.sub(rf"(?<!\w){re.escape(host)}(?!\w)", "<host>", text)
    return text if len(text) <= MESSAGE_LIMIT else text[:MESSAGE_LIMIT] + " [...]"


def _short(path: str) -> str:
    name = re.split(r"[\\/]", path)[-1]
    return f"<path>/{name}" if "." in name.strip(".") else "<path>"
