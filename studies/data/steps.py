"""The named steps from a raw table to the data of an experiment; each can be switched off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from studies.data.table import Table


class Step(Protocol):
    """A named change of a table, with the reason for it."""

    name: ClassVar[str]

    @property
    def reason(self) -> str:
        """Why the step is taken, in one line."""
        ...

    def apply(self, table: Table) -> Table:
        """The changed table; the given one is left as it is."""
        ...


@dataclass(frozen=True)
class DropIncompleteRows:
    """Remove rows with a missing value."""

    name: ClassVar[str] = "drop-incomplete-rows"
    reason: str

    def apply(self, table: Table) -> Table:
        """Rows without NaN."""
        return table.keep_rows(~(np.isnan(table.X).any(axis=1) | np.isnan(table.y)))


@dataclass(frozen=True)
class DropCappedTarget:
    """Remove rows whose target was cut off at `cap`: their true value is unknown."""

    name: ClassVar[str] = "drop-capped-target"
    cap: float
    reason: str

    def apply(self, table: Table) -> Table:
        """Rows with a target below the cap."""
        return table.keep_rows(table.y < self.cap)


@dataclass(frozen=True)
class SelectFeatures:
    """Remove the named features, each with its own reason."""

    name: ClassVar[str] = "select-features"
    dropped: Mapping[str, str]
    reason: str

    def apply(self, table: Table) -> Table:
        """Table without the dropped features."""
        return table.keep_features(tuple(name for name in table.features if name not in self.dropped))


@dataclass(frozen=True)
class LogTarget:
    """Replace the target by its natural logarithm."""

    name: ClassVar[str] = "log-target"
    reason: str

    def apply(self, table: Table) -> Table:
        """Table with the logarithm of the target."""
        return replace(table, y=np.log(table.y), target=f"log({table.target})")
