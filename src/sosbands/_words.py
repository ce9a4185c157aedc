"""Words that several rooms put together."""


def many(count: int, noun: str) -> str:
    """Such as "1 row" and "2 rows"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
