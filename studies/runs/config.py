"""Config: how large an experiment is, where its rows are kept, and how they are computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from sosbands.comparison import run_tasks
from sosbands.comparison.describe import canonical, read_axes
from sosbands.comparison.runner import TaskFunction
from sosbands.comparison.store import flat
from studies.runs.packed_store import adopt, read_stored

PRESETS = ("quick", "paper")
Rows = list[dict[str, Any]]
Value = TypeVar("Value")


@dataclass(frozen=True)
class Config:
    """What `compute` needs to know.

    Attributes
    ----------
    folder : Path
        Rows are kept in ``folder/preset/run.jsonl.gz``, one file per run; entries may share a run.
    preset : {"quick", "paper"}
        "paper" has the paper's sizes and repetitions, "quick" small ones that show that everything works.
    n_jobs : int, optional
        Processes.
    retry_failed : bool
        Run again what failed before.
    other_code : str
        As in `run_tasks`.
    compute_missing : bool
        Otherwise rows that are not stored are left out.
    verbose : int
        As in `run_tasks`.
    """

    folder: Path
    preset: str = "quick"
    n_jobs: int | None = None
    retry_failed: bool = False
    other_code: str = "refuse"
    compute_missing: bool = True
    verbose: int = 0

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise ValueError(f"preset={self.preset!r}: expected one of {list(PRESETS)}")

    def pick(self, *, quick: Value, paper: Value) -> Value:
        """The value for the preset."""
        return paper if self.preset == "paper" else quick

    def alone(self) -> Config:
        """The same with one process, for what is timed."""
        return replace(self, n_jobs=1)

    def run(
        self,
        name: str,
        function: TaskFunction,
        tasks: Iterable[Mapping[str, Any]],
        *,
        seed_axes: Sequence[str] | None = None,
    ) -> Rows:
        """Rows of the tasks of a run, those that are stored from the store; each new one is stored at once.

        Parameters
        ----------
        name : str
            Of the file.
        function, tasks, seed_axes
            As in `run_tasks`.
        """
        path = self.folder / self.preset / f"{name}.jsonl.gz"
        if not self.compute_missing:
            records = read_stored(path).records
            keys = [canonical(read_axes(task)) for task in tasks]
            return [flat(records[key]) for key in keys if key in records]
        path.parent.mkdir(parents=True, exist_ok=True)
        adopt(path)
        return run_tasks(
            function,
            tasks,
            seed_axes=seed_axes,
            store=path,
            n_jobs=self.n_jobs,
            retry_failed=self.retry_failed,
            other_code=self.other_code,
            verbose=self.verbose,
            label=name,
        )
