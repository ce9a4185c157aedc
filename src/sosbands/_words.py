"""Words that several rooms put together."""

from collections.abc import Iterable


def many(count: int, noun: str) -> str:
    """Such as "1 row" and "2 rows"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(names: Iterable[object], most: int = 8) -> str:
    """Names in quotes, the first few of many."""
    shown = [repr(name) for name in names]
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")


def share_of(part: int, count: int, noun: str) -> str:
    """Such as "1 of 3 rows is" and "2 of 3 rows are"."""
    return f"{part} of {many(count, noun)} {'is' if part == 1 else 'are'}"
