"""Where the words of a command go: results to stdout, notes to stderr, or everything into one JSON object."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sosbands._extras import need
from sosbands._files import written
from sosbands._progress import Patience, heard_by
from sosbands._words import many

WIDEST = 100  # characters of a line of prose
QUIET = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning)  # for developers


@dataclass
class Output:
    """What one command says."""

    as_json: bool = False  # one JSON object on stdout, which also holds the notes, and nothing else anywhere
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


Step = Callable[[str], None]


def on_terminal() -> bool:
    """Whether somebody may be watching stderr."""
    return sys.stderr.isatty()


@contextmanager
def stages(label: str, *, shown: bool) -> Iterator[Step]:
    """Yields a function that says what is done now; what models say while they learn is shown in the same way."""
    last = label
    if not shown:
        yield lambda _: None
    elif on_terminal():
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        with _display(SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()) as bar:
            task = bar.add_task(label, total=None)

            def tell(line: str) -> None:
                bar.update(task, description=f"{label}: {line}")

            with heard_by(tell):
                yield tell
    else:

        def tell_line(line: str) -> None:
            nonlocal last
            last = line
            _print(line, patience.seconds)
            patience.heard()

        waiting = Patience(lambda seconds: _print(f"still at work after: {last}", seconds))
        with waiting as patience, heard_by(tell_line):
            yield tell_line


@contextmanager
def counted(label: str, total: int | None, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar of rows; yields a function that counts more of them. `total` may be unknown."""
    done = 0
    if not shown:
        yield lambda _: None
    elif on_terminal():
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        text, rows = TextColumn("{task.description}", markup=False), TextColumn("{task.completed:,.0f} rows")
        with _display(text, BarColumn(), rows, TimeElapsedColumn() if total is None else TimeRemainingColumn()) as bar:
            task = bar.add_task(label, total=total)
            yield lambda rows: bar.update(task, advance=rows)
    else:

        def advance(rows: int) -> None:
            nonlocal done
            done += rows

        of_all = "" if total is None else f" of {total}"
        _print(label if total is None else f"{label}: {many(total, 'row')}", 0)
        with Patience(lambda seconds: _print(f"{label}: {done}{of_all} rows done", seconds)):
            yield advance


def _print(line: str, seconds: float) -> None:
    print(f"[{seconds:.0f} s] {line}", file=sys.stderr, flush=True)


def _display(*columns: Any) -> Any:
    from rich.console import Console
    from rich.progress import Progress

    # Rich need not touch stdout, which may hold results.
    return Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)


def save_figure(path: Path, size: tuple[float, float], draw: Callable[[Any], Any]) -> None:
    """A picture; the file appears whole or not at all."""
    figure = need("matplotlib.figure").Figure(figsize=size, layout="constrained")
    draw(figure)
    with written(path) as partial:
        figure.savefig(partial, dpi=150)
