"""Where the words of a command go: results to stdout, notes to stderr, or everything into one JSON object."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sosbands._words import listed as listed

WIDEST = 100  # characters of a line of prose
QUIET = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning)  # for developers


@dataclass
class Output:
    """What one command says.

    Parameters
    ----------
    as_json : bool
        One JSON object on stdout, which also holds the notes, and nothing else anywhere.
    """

    as_json: bool = False
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Something the user should know that is not the result; said once."""
        if text in self.notes:
            return
        self.notes.append(text)
        if not self.as_json:
            print(f"note: {text}", file=sys.stderr, flush=True)

    def result(self, text: str, data: Mapping[str, Any]) -> None:
        """The result, for a reader or for a program."""
        if self.as_json:
            print(json.dumps(plain({**data, "notes": self.notes}), indent=2, allow_nan=False), flush=True)
        else:
            print(text, flush=True)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Turn warnings into notes."""

        def show(message: Any, *_: Any, **__: Any) -> None:
            self.note(" ".join(str(message).split()))

        with warnings.catch_warnings():
            warnings.resetwarnings()
            for category in QUIET:
                warnings.simplefilter("ignore", category)
            warnings.showwarning = show
            yield


def plain(value: Any) -> Any:
    """What JSON can hold: infinite numbers become "inf" and "-inf", NaN becomes null."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def wrapped(text: str) -> str:
    """Paragraphs, one per line of the text, wrapped to the terminal and at most 100 characters wide."""
    width = min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns)
    folding = textwrap.TextWrapper(width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
    return "\n".join(folding.fill(line) for line in text.splitlines())


def percent(share: float) -> str:
    """Such as "90 %"."""
    return f"{100 * share:.6g} %"


def short(value: float) -> str:
    """Four digits, with an exponent only where there would be many zeros."""
    if isinstance(value, int) or not math.isfinite(value) or not 1e-4 <= abs(value) < 1e9:
        return f"{value}" if isinstance(value, int) else f"{value:.4g}"
    return f"{float(f'{value:.4g}'):.10g}"


def decimals_for(distances: Any, digits: int, *, otherwise: Any = 1.0) -> int:
    """Decimals with which the median of the positive finite distances has so many digits, at least 0.

    Numbers around 1e6 that differ by 1e-3 need more than those that differ by 1e5. `otherwise` counts where no
    distance does.
    """
    for values in (np.ravel(distances), np.ravel(otherwise), np.ones(1)):
        usable = values[np.isfinite(values) & (values > 0)]
        if len(usable):
            return max(0, digits - 1 - math.floor(math.log10(float(np.median(usable)))))
    raise AssertionError("the last of them is usable")
