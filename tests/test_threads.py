"""One thread around small computations, in every room that has them, and what a fork meanwhile leaves of it."""

import os
import signal
import sys
from threading import Event, Lock, Thread
from types import ModuleType

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from sosbands import SoSBandRegressor, _threads
from sosbands._threads import MANY_ROWS, ONE_THREAD, cached_property, few_threads
from sosbands.point_models import GaussianProcess, gaussian_process
from sosbands.tuning import automatic, search


def threads(api):
    """Of the libraries that this package computes with; that of scs, a solver of CVXPY, has one thread only."""
    pools = [pool for pool in threadpool_info() if "scs.libs" not in pool["filepath"]]
    return {pool["num_threads"] for pool in pools if pool["user_api"] == api}


@pytest.fixture
def two_threads():
    with threadpool_limits(2):
        if threads("blas") != {2}:
            pytest.skip("the BLAS library in use has no threads")
        yield


@pytest.fixture
def two_threads_for_any_thread():
    """Set by threads that end: one that lives would keep the right to change them (threadpoolctl 3.8 and newer)."""
    before = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}

    def set_to(limits):
        thread = Thread(target=threadpool_limits, args=(limits,))
        thread.start()
        thread.join()

    set_to(2)
    if threads("blas") != {2}:
        pytest.skip("the BLAS library in use has no threads")
    yield
    set_to(before)


def rows(n=60):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 2))
    return X, X[:, 0] + (0.1 + np.abs(X[:, 1])) * rng.standard_normal(n)


@pytest.mark.usefixtures("two_threads")
def test_the_process_and_the_tuning_run_on_one_blas_thread(monkeypatch):
    seen = {}

    def watched(module, name):
        inner = getattr(module, name)

        def outer(*args, **kwargs):
            seen.setdefault(name, set()).update(threads("blas"))
            return inner(*args, **kwargs)

        monkeypatch.setattr(module, name, outer)

    watched(gaussian_process, "MarginalLikelihood")
    watched(gaussian_process, "matern52")
    watched(automatic, "sign_flip_test")
    watched(search, "learn_band_sequence")
    X, y = rows()
    SoSBandRegressor(GaussianProcess(), random_state=0).fit(X, y).predict_interval(X[:5])
    assert seen == dict.fromkeys(["MarginalLikelihood", "matern52", "sign_flip_test", "learn_band_sequence"], {1})
    assert threads("blas") == {2}


class Watching(LinearRegression):
    """Notes how many OpenMP threads it may use."""

    def fit(self, X, y):
        self.fit_threads_ = threads("openmp")
        return super().fit(X, y)

    def predict(self, X):
        self.predict_threads_ = threads("openmp")
        return super().predict(X)


@pytest.mark.usefixtures("two_threads")
def test_a_model_of_few_rows_has_one_openmp_thread_and_no_limit_after():
    X, y = rows()
    model = SoSBandRegressor(Watching(), base_scale="none", random_state=0).fit(X, y)
    model.predict_interval(X)
    assert model.estimator_.fit_threads_ == model.estimator_.predict_threads_ == {1}
    assert threads("openmp") == {2}
    with few_threads(MANY_ROWS):
        assert threads("openmp") == {2}


@pytest.mark.usefixtures("two_threads")
def test_limits_of_threads_that_overlap_leave_each_other_alone():
    """The end of the one must not set the threads of the other back to what they were at its own beginning."""
    with few_threads(blas=True):
        ONE_THREAD.__enter__()
        assert (threads("blas"), threads("openmp")) == ({1}, {1})
    assert (threads("blas"), threads("openmp")) == ({1}, {2})
    with few_threads(blas=True):
        ONE_THREAD.__exit__(None, None, None)
        assert (threads("blas"), threads("openmp")) == ({2}, {1})
    assert (threads("blas"), threads("openmp")) == ({2}, {2})


@pytest.mark.usefixtures("two_threads_for_any_thread")
def test_the_last_of_two_threads_restores_what_the_first_has_limited():
    inside, other_inside, outside, enough = Event(), Event(), Event(), Event()

    def first():
        with ONE_THREAD:
            inside.set()
            other_inside.wait(30)
        outside.set()
        enough.wait(30)  # it lives on, and must not keep the right to set them

    thread = Thread(target=first)
    thread.start()
    inside.wait(30)
    with ONE_THREAD:
        other_inside.set()
        outside.wait(30)
        assert threads("blas") == {1}
    assert threads("blas") == {2}
    enough.set()
    thread.join()


def forking(test):
    with_threads = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    return pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")(with_threads(test))


def forked(work):
    """Whether work is done well in a forked child, to be asked later; a deadlock ends the child by a signal."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if work() else 1)
    return lambda: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Slow:
    """Its property takes until it is let go."""

    def __init__(self, started=None, go=None):
        self.started, self.go, self.computed = started, go, 0

    @cached_property
    def value(self):
        self.computed += 1
        if self.started is not None:
            self.started.set()
            self.go.wait(30)
        return 7


def computes_on_one_thread():
    with ONE_THREAD:
        value = threads("blas")
    return value == {1} and not ONE_THREAD._inside


@forking
@pytest.mark.parametrize("what", ["property", "one thread", "its lock"])
def test_a_child_forked_while_another_thread_computes_computes_too(what):
    """A lock, of a property as functools has it before Python 3.12 or of ONE_THREAD, or a count would stay behind."""
    begun, done = Event(), Event()

    def compute():
        if what == "property":
            return Slow(begun, done).value
        with ONE_THREAD._lock if what == "its lock" else ONE_THREAD:
            begun.set()
            return done.wait(30)

    thread = Thread(target=compute)
    thread.start()
    assert begun.wait(30)
    well = forked((lambda: Slow().value == 7) if what == "property" else computes_on_one_thread)
    done.set()
    thread.join()
    assert well()
    assert not ONE_THREAD._inside
    slow = Slow()
    assert (slow.value, slow.value, slow.computed) == (7, 7, 1)
    assert isinstance(Slow.value, cached_property)


@forking
def test_a_child_forked_inside_leaves_it_as_it_should():
    def leaves():
        inside = sum(ONE_THREAD._inside.values())
        ONE_THREAD.__exit__(None, None, None)
        return inside == 1 and not ONE_THREAD._inside

    with ONE_THREAD:
        well = forked(leaves)
    assert well()


@pytest.fixture
def searches(monkeypatch):
    """How often libraries are searched, each time under a lock, as that of the loader; a search may be told to wait."""

    class Searches:
        def __init__(self):
            self.count, self.loader, self.begun, self.end = 0, Lock(), Event(), Event()
            self.end.set()

        def imported(self):
            """From now on there is one more module."""
            monkeypatch.setitem(sys.modules, f"a_module_{len(sys.modules)}", ModuleType("a_module"))

    state = Searches()

    class Searching(ThreadpoolController):
        def __init__(self):
            with state.loader:
                state.count += 1
                state.begun.set()
                state.end.wait(1)
                super().__init__()

    monkeypatch.setattr(_threads, "ThreadpoolController", Searching)
    return state


def test_libraries_are_searched_again_after_imports_only(searches):
    counts = []
    for imports in (True, False, False, True, False):
        if imports:
            searches.imported()
        with few_threads(), ONE_THREAD:
            assert threads("openmp") <= {1}
        counts.append(searches.count)
    assert counts == [1, 1, 1, 2, 2]


@forking
def test_a_child_is_not_forked_while_another_thread_searches_libraries(searches):
    """It would wait for ever for the lock of the loader, which the other thread has."""
    searches.imported()
    searches.end.clear()

    def compute():
        with few_threads():
            pass

    def searches_too():
        searches.imported()
        with few_threads():
            limited = threads("openmp") <= {1}
        searches.imported()
        other = Thread(target=compute, daemon=True)  # one that does not own what the thread that forked has
        other.start()
        other.join(10)
        return limited and not other.is_alive()

    thread = Thread(target=compute)
    thread.start()
    assert searches.begun.wait(30)
    well = forked(searches_too)
    thread.join()
    assert well()
    searches.imported()
    with few_threads():  # the parent may search again, too
        assert searches.count == 2


def test_a_fork_that_was_not_waited_for_frees_no_lock_of_another_thread(monkeypatch):
    """Ctrl-C may end the waiting; Python then forks all the same, and says that an exception was ignored."""

    class Interrupted:
        def acquire(self):
            raise KeyboardInterrupt

        def release(self):
            raise RuntimeError("cannot release un-acquired lock")

    libraries = _threads._ThreadLibraries()
    lock = libraries._lock
    monkeypatch.setattr(libraries, "_lock", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        libraries.before_fork()
    libraries.after_fork_in_parent()
    monkeypatch.setattr(libraries, "_lock", lock)
    libraries.before_fork()
    libraries.after_fork_in_parent()
    with pytest.raises(RuntimeError, match="release"):
        lock.release()
