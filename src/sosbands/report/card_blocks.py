"""What a card consists of: sections with words, facts and tables, and their HTML. Every text is escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

BAR = 150.0  # width of the picture of a share, in pixels


@dataclass(frozen=True)
class Bar:
    """A share with its sampling error, drawn from `start` to 1 with a mark at the level."""

    share: float
    ends: tuple[float, float]
    level: float
    start: float


@dataclass(frozen=True)
class Table:
    """Cells are texts, or pictures of a share."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | Bar, ...], ...]


@dataclass(frozen=True)
class Section:
    """One part of a card, from top to bottom: warnings, facts (name and value), words, tables, points of a list."""

    title: str
    words: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()
    points: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def html(self) -> str:
        """The section as HTML."""
        parts = [f'<p class="warning">{text_html(text)}</p>' for text in self.warnings]
        if self.facts:
            pairs = (f"<div><dt>{text_html(name)}</dt><dd>{text_html(value)}</dd></div>" for name, value in self.facts)
            parts.append(f"<dl>{''.join(pairs)}</dl>")
        parts += [f"<p>{text_html(text)}</p>" for text in self.words]
        parts += [_table(table) for table in self.tables]
        if self.points:
            parts.append(f"<ul>{''.join(f'<li>{text_html(text)}</li>' for text in self.points)}</ul>")
        return f"<section><h2>{text_html(self.title)}</h2>{''.join(parts)}</section>"


def text_html(text: str) -> str:
    """Escaped, with no line break between a number and its per cent sign."""
    return escape(text).replace(" %", "&nbsp;%")


def percent(share: float) -> str:
    """Such as "91.3 %"."""
    return f"{100 * share:.1f} %"


def level_words(level: float) -> str:
    """Such as "90 %", with as many digits as it has."""
    return f"{100 * level:.6g} %"


def number(value: float) -> str:
    """Four digits, without an exponent where that is short."""
    return f"{float(f'{value:.4g}'):.10g}" if 1e-4 <= abs(value) < 1e9 or value == 0 else f"{value:.4g}"


def start_of(lows: Sequence[float]) -> float:
    """Where pictures of shares begin: the lowest end, rounded down to a tenth below it."""
    return max(0.0, int(10 * min(lows, default=0.5) - 1e-9) / 10)


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{text_html(name)}</th>' for name in table.header)
    rows = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in table.rows)
    caption = f"<caption>{text_html(table.caption)}</caption>" if table.caption else ""
    return f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(cell: str | Bar) -> str:
    return f"<td>{_bar(cell) if isinstance(cell, Bar) else text_html(cell)}</td>"


def _bar(bar: Bar) -> str:
    def at(share: float) -> str:
        return f"{4 + (BAR - 8) * (share - bar.start) / max(1 - bar.start, 1e-9):.1f}"

    low, high = bar.ends
    kind = "apart" if high < bar.level else "near"
    words = escape(f"{percent(bar.share)}, 95 % of {percent(low)} to {percent(high)}", quote=True)
    return (
        f'<svg class="bar" width="{BAR:g}" height="16" viewBox="0 0 {BAR:g} 16" '
        f'preserveAspectRatio="none" role="img" aria-label="{words}">'
        f'<line class="axis" x1="{at(bar.start)}" x2="{at(1.0)}" y1="8" y2="8"/>'
        f'<line class="level" x1="{at(bar.level)}" x2="{at(bar.level)}" y1="1" y2="15"/>'
        f'<line class="{kind}" x1="{at(low)}" x2="{at(high)}" y1="8" y2="8"/>'
        f'<circle class="{kind}" cx="{at(bar.share)}" cy="8" r="3.5"/></svg>'
    )
