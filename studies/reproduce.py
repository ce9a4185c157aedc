"""``python -m studies reproduce``: the figures and tables of the paper, and some beyond it, by name."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from sosbands._files import check_folder, check_place, written
from sosbands._words import many
from sosbands.cli import options
from sosbands.cli.app import Stopped
from sosbands.cli.output import Output, on_terminal
from sosbands.comparison import TextTable
from sosbands.comparison.describe import fingerprint
from studies import ENTRIES, Config, Entry
from studies.runs.config import PRESETS, Rows

EVERYTHING = "all"
DPI = 150
SUFFIXES = (".png", ".md", ".csv")
NOT_HERE = ("ImportError", "ModuleNotFoundError", "DatasetNotFoundError")  # a package or data


def _name(text: str | None) -> str | None:
    return options.one_of([EVERYTHING, *(entry.name for entry in ENTRIES)])(text)


def reproduce(  # noqa: PLR0913
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", callback=_name, help="A name that --list gives, or all.")
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="Print the names, where they come from, and stop.")] = False,
    preset: Annotated[
        str,
        typer.Option(
            "--preset",
            metavar="PRESET",
            callback=options.one_of(PRESETS),
            help="quick: small, to see it work; paper: the paper's sizes and repetitions.",
        ),
    ] = "quick",
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for rows and results; it is made.")
    ] = Path("results/reproduction"),
    stored: Annotated[bool, typer.Option("--stored", help="Draw what is stored, compute nothing.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run again what failed before.")] = False,
    other_code: str = options.OTHER_CODE,
    jobs: int | None = options.JOBS,
) -> None:
    """Compute a figure or table of the paper, and draw it: NAME.png, or NAME.md and NAME.csv, in FOLDER/PRESET.

    Every finished row is kept there, so that the same command continues after Ctrl-C and a second time only draws. Real
    data are read from the folder that the environment variable SOSBANDS_DATA names.

    \b
    Example:
      python -m studies reproduce penalty-bands --preset quick -o results
    """  # noqa: D301
    if show_list:
        names = [{"name": entry.name, "source": entry.source, "title": entry.title} for entry in ENTRIES]
        print(repr(TextTable(names)))
        return
    if name is None:
        raise typer.BadParameter(f"NAME is missing: expected {EVERYTHING}, or a name that --list gives")
    check_folder(output)
    check_folder(output / preset)
    config = Config(
        output,
        preset,
        n_jobs=jobs,
        retry_failed=retry_failed,
        other_code=other_code,
        compute_missing=not stored,
        verbose=int(on_terminal()),
    )
    says = Output()
    try:
        if name == EVERYTHING:
            _run_all(config, says)
        else:
            _run(next(entry for entry in ENTRIES if entry.name == name), config, says)
    except (KeyboardInterrupt, Stopped):
        print(f"finished rows are kept in {output / preset}: the same command continues", file=sys.stderr)
        raise


ROWS_KEY = "Rows"  # of the text in an image: which rows it shows


class _NothingToDraw(ValueError):
    """No row of an entry is stored, or all of them failed."""


def _run_all(config: Config, says: Output) -> None:
    """One entry after the other; those that cannot be had are told, and the others go on."""
    lacking = []
    for entry in ENTRIES:
        try:
            _run(entry, config, says)
        except Exception as error:
            kind = "" if isinstance(error, _NothingToDraw | ImportError) else f"{type(error).__name__}: "
            says.note(f"{entry.name} is left out: {kind}{error}")
            lacking.append(entry.name)
    if lacking:
        found = f"{len(ENTRIES) - len(lacking)} of {len(ENTRIES)} written"
        raise ValueError(f"{found}, not {', '.join(lacking)}: see the notes above")


def _run(entry: Entry, config: Config, says: Output) -> None:
    """Compute, draw and write an entry, and say what was done."""
    clock = perf_counter()
    _check_places(entry, config.folder / config.preset)
    with says.listening():
        rows = entry.compute(config)
        failed = _checked(rows, config)
        drawn = entry.draw(rows)
        counted = f"{many(len(rows), 'row')}, {failed} failed"
        paths = _write(entry, drawn, rows, config.folder / config.preset, f"Preset {config.preset}: {counted}.")
    lines = [f"{entry.name}: {entry.title}", f"{counted}, {perf_counter() - clock:.1f} s"]
    if isinstance(drawn, TextTable):
        lines += ["", repr(drawn), ""]
    says.result("\n".join([*lines, *map(str, paths)]) + "\n", {})
    if failed:
        says.note(f"{entry.name}: {_told(rows)}")


def _check_places(entry: Entry, folder: Path) -> None:
    """Complain about results that cannot be written, before rows are computed."""
    for suffix in SUFFIXES if folder.is_dir() else ():
        check_place((folder / entry.name).with_suffix(suffix), "output")


def _checked(rows: Rows, config: Config) -> int:
    """Number of rows that failed; an error if no other is left."""
    if not rows:
        raise _NothingToDraw(f"nothing is stored in {config.folder / config.preset}")
    failed = sum(row["error_type"] is not None for row in rows)
    if failed == len(rows):
        raise _NothingToDraw(f"every row failed, {_told(rows)}")
    return failed


def _told(rows: Rows) -> str:
    """How often each kind of error occurred, with the first message of each, and what can be done."""
    failed = [row for row in rows if row["error_type"] is not None]
    messages = {row["error_type"]: row["error"].removesuffix(".") for row in reversed(failed)}
    counts = Counter(row["error_type"] for row in failed)
    told = [f"{many(count, 'row')} with {kind}: {messages[kind]}" for kind, count in counts.most_common()]
    if any(row["error_type"] in NOT_HERE for row in failed):
        told.append("when what is missing is there, add --retry-failed")
    return "; ".join(told)


def _write(entry: Entry, drawn: Any, rows: Rows, folder: Path, counted: str) -> list[Path]:
    """Write a figure or a table; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / entry.name
    if not isinstance(drawn, TextTable):
        image = path.with_suffix(".png")
        with written(image) as partial:
            drawn.savefig(partial, dpi=DPI, metadata={ROWS_KEY: fingerprint(rows)})
        return [image]
    text, cells = path.with_suffix(".md"), path.with_suffix(".csv")
    with written(text) as partial:
        head = f"# {entry.title}\n\n{_sentence(entry.source)} {counted}"
        partial.write_text(f"{head}\n\n{drawn.to_markdown()}\n", encoding="utf-8")
    with written(cells) as partial, open(partial, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, drawn.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(drawn)
    return [text, cells]


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + ("" if text.endswith("?") else ".")
