"""The words of the command that is being run, for messages that say what to type."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextvars import ContextVar

_words: ContextVar[tuple[str, ...]] = ContextVar("words", default=())


def remember(words: Sequence[str]) -> None:
    """Keep the words after the name of the program."""
    _words.set(tuple(words))


def command_with(further: str) -> str:
    """The same command with further options, as one types it."""
    return f"sosbands {shlex.join(_words.get())} {further}"
