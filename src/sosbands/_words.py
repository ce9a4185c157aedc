"""Words that several rooms put together."""


def many(count: int, noun: str) -> str:
    """Such as "1 row" and "2 rows"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def share_of(part: int, count: int, noun: str) -> str:
    """Such as "1 of 3 rows is" and "2 of 3 rows are"."""
    return f"{part} of {many(count, noun)} {'is' if part == 1 else 'are'}"
