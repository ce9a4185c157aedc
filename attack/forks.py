"""Forks while other threads compute: child and parent end, both with the numbers of a quiet process, bit by bit.

What can go wrong: a lock that a thread held at the fork is never freed in the child; a limit of BLAS threads that a
thread had set is never lifted, or is lifted too early; a library of threads waits for threads that no longer exist.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
import warnings
from collections.abc import Callable
from threading import Event, Thread

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

from sosbands import GaussianProcess, SoSBandRegressor, learn_bands
from sosbands.bands import BandSettings
from sosbands.baselines import SplitCP
from sosbands.regressors import PAPER_SETTINGS

FULL = 150
QUICK = 7
FORKS = 4  # of an attempt
PATIENCE = 50  # seconds after which a child counts as hanging
SAME, OTHER, FAILED = 0, 3, 4  # how a child ends
FIXED = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 1.0, "bands": BandSettings(rank=20)}


# ---------------------------------------------------------------- work, which gives its numbers as bytes


def _solved(solver: str, n: int, seed: int) -> bytes:
    rng = np.random.default_rng([3, seed])
    X, r = rng.standard_normal((n, 2)), rng.exponential(size=n) - 1
    bands = learn_bands(X, r, solver=solver, symmetry_penalty=0.5)
    return b"".join(array.tobytes() for array in (bands.dual.gamma_lo, bands.dual.gamma_up, bands.upper(X)))


def _fitted(model: Callable[[], SoSBandRegressor | SplitCP], seed: int) -> bytes:
    rng = np.random.default_rng([4, seed])
    X = rng.uniform(-1, 1, (60, 2))
    y = X[:, 0] + (0.1 + np.abs(X[:, 1])) * rng.standard_normal(60)
    return model().fit(X, y).predict_interval(X).tobytes()


WORK: dict[str, Callable[[int], bytes]] = {
    "newton": lambda seed: _solved("newton", 30, seed),
    "subspace": lambda seed: _solved("subspace", 120, seed),
    "lbfgs": lambda seed: _solved("lbfgs", 30, seed),
    "bands": lambda seed: _fitted(lambda: SoSBandRegressor(LinearRegression(), random_state=0, **FIXED), seed),
    "process": lambda seed: _fitted(lambda: SoSBandRegressor(GaussianProcess(), random_state=0, **FIXED), seed),
    "boosting": lambda seed: _fitted(lambda: SplitCP(HistGradientBoostingRegressor(max_iter=5), random_state=0), seed),
}


def digest(work: str, seed: int) -> str:
    """Fingerprint of the numbers of one piece of work."""
    return hashlib.sha256(WORK[work](seed)).hexdigest()


# ---------------------------------------------------------------- one attempt


def attempt(number: int) -> str:
    """Threads that compute, forks at random moments, and one more computation in every child and thread."""
    warnings.simplefilter("ignore")  # which catch_warnings in several threads would not survive
    rng = np.random.default_rng([61, number])
    names = list(WORK)
    busy = [names[(number + k) % len(names)] for k in range(int(rng.integers(1, 4)))]
    mine = names[number % len(names)]
    set_blas_threads(int(rng.integers(1, 3)))
    expected = {work: digest(work, number) for work in {*busy, mine}}
    threads = [Computing(work, number) for work in busy]
    try:
        pauses = rng.uniform(0, 0.05, FORKS)
        endings = [fork_and_compute(mine, number, expected[mine], pause) for pause in pauses]
    finally:
        for thread in threads:
            thread.finish()
    for ending in endings:
        assert ending != -signal.SIGALRM, f"the child hangs: {mine} while threads compute {busy}"
        assert ending != OTHER, f"the child has other numbers: {mine} while threads compute {busy}"
        assert ending == SAME, f"the child ended with {ending}: {mine} while threads compute {busy}"
    for thread in threads:
        assert thread.seen == {expected[thread.work]}, f"a thread of the parent: {thread.work}, {thread.seen}"
    return f"{mine}, identical"


def set_blas_threads(most: int) -> None:
    """By a thread that ends at once: the one that sets them has to itself, while it lives, the right to change them."""
    thread = Thread(target=threadpool_limits, args=(most, "blas"))
    thread.start()
    thread.join()


class Computing(Thread):
    """A thread that does its work again and again until it is told to finish."""

    def __init__(self, work: str, seed: int) -> None:
        super().__init__(daemon=True)
        self.work, self.work_seed = work, seed
        self.seen: set[str] = set()
        self._enough = Event()
        self.start()

    def run(self) -> None:
        """Fingerprints and errors, as a set."""
        while not self._enough.is_set() or not self.seen:
            try:
                self.seen.add(digest(self.work, self.work_seed))
            except Exception as error:
                self.seen.add(f"{type(error).__name__}: {error}")
                return

    def finish(self) -> None:
        """Let it end its work; a thread that never does is told by the limit of the attempt."""
        self._enough.set()
        self.join()


def fork_and_compute(work: str, seed: int, expected: str, pause: float) -> int:
    """How a child ends that computes the same: an exit code, or a signal as a negative number."""
    time.sleep(pause)
    child = os.fork()
    if child == 0:
        ending = FAILED
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(PATIENCE)
            ending = SAME if digest(work, seed) == expected else OTHER
        finally:
            os._exit(ending)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
