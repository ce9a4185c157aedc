"""Saving and loading of fitted models: what is in a file, and how failures are called."""

from __future__ import annotations

import math
import operator
import os
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from sosbands._files import check_place, written
from sosbands.exceptions import ModelFileError, UntrustedTypesError
from sosbands.saving.archive import FORMAT, TRUSTED, allowed, check_archive, closed, is_own, read_archive, read_facts
from sosbands.saving.trees import PACKED, Allowance, demand, made_of, packed_part, unpack_parts

LEVEL = 1  # of compression: higher ones take longer and win little, as most bytes are digits
PREPROCESSED = "functools.partial"  # in the preprocessor of boosting with categories, whose columns nobody can check
KEYS = (str, int, float, np.number)  # of dictionaries
NOT_FOLLOWED = (bool, int, float, str, bytes, type(None), type, ModuleType, FunctionType, MethodType)


def save(model: Any, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a fitted model; the file appears whole or not at all.

    Parameters
    ----------
    model : interval regressor
        Fitted. Its method `save` does the same.
    path : path
        A new file, or one to be replaced.

    Returns
    -------
    tuple of str
        Full names of the types that `load` must be told to trust.
    """
    bands = getattr(model, "bands", None)
    for name, owner, method in (("estimator", model, "fit"), ("kernel", bands, "diag")):
        given = getattr(owner, name, None)
        if callable(given) and not hasattr(given, method):  # pickle would store a reference to code
            raise ValueError(
                f"{name}={given!r} is a function and cannot be saved, because a file cannot hold its code: use an "
                f"{name} object, or pickle the model for readers who have the function"
            )
    check_place(path)
    archive, types = dumped(model)
    with written(path) as partial:
        partial.write_bytes(closed(archive))
    return types


def load(path: str | os.PathLike[str], trusted: Sequence[str] = ()) -> Any:
    """Read a model written by :meth:`SoSBandRegressor.save`.

    Nothing is built before every type in the file is known to be harmless or is named in `trusted`.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str
        Full names of further types that the file may hold, such as a regressor of your own. Name only types that you
        know: reading them may run their code.

    Raises
    ------
    UntrustedTypesError
        If the file holds types that are neither known to be harmless nor named in `trusted`; it lists them.
    ModelFileError
        If the file is damaged, not a model file, written in another format, or asks for more memory than its size
        justifies.
    """
    shown = f"path={os.fspath(path)!r}"
    if isinstance(trusted, (str, bool)) or not all(isinstance(name, str) for name in trusted):
        raise ValueError(f"trusted={trusted!r}: expected a sequence of full type names")
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"{shown}: no such file")
    try:
        facts = read_facts(file)
    except (ModelFileError, OSError) as error:
        raise ModelFileError(f"{shown}: not a model file of sosbands, or cut short ({error})") from error
    written_in, version = facts.get("format"), facts.get("sosbands")
    if type(written_in) is not int or written_in < 1:
        raise ModelFileError(f"{shown}: not a model file of sosbands, its format is {written_in!r:.40}")
    if written_in != FORMAT:
        raise ModelFileError(
            f"{shown} was written by sosbands {version!s:.40} in format {written_in}; this version reads format "
            f"{FORMAT}: upgrade sosbands"
        )
    import skops.io  # here, because it imports all of scikit-learn
    from skops.io.exceptions import UntrustedTypesFoundException

    try:
        archive = read_archive(file, facts)
        known = {*TRUSTED, *check_archive(archive), *trusted}
        try:
            model = skops.io.loads(archive, trusted=sorted(known))
        except UntrustedTypesFoundException:
            untrusted = sorted(set(skops.io.get_untrusted_types(data=archive)) - known)
            raise UntrustedTypesError(
                f"{shown} holds types that are not trusted: {untrusted}. If you know where the file comes from, accept "
                f"them by sosbands.load({os.fspath(path)!r}, trusted={[*trusted, *untrusted]!r})",
                untrusted,
            ) from None
        _unpack(model, Allowance(allowed(archive)), trusts_preprocessors=PREPROCESSED in trusted)
    except UntrustedTypesError:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{shown}: the model in it is damaged or forged: {error}") from error
    except Exception as error:  # whatever a damaged or forged file makes zipfile, skops and numpy raise
        raise ModelFileError(f"{shown}: the model in it cannot be read ({type(error).__name__}: {error})") from error
    if not hasattr(model, "predict_interval"):
        raise ModelFileError(f"{shown}: holds a {type(model).__name__}, expected a model that predicts intervals")
    return model


def dumped(model: Any) -> tuple[bytes, tuple[str, ...]]:
    """The archive of a model or of a part of one, known to be one that can be read; the types that nobody knows."""
    import skops.io

    try:
        trees = Allowance(math.inf)
        ready = _packed(model, trees)
        archive = skops.io.dumps(ready, compression=zipfile.ZIP_DEFLATED, compresslevel=LEVEL)
        try:
            demand(trees.taken <= allowed(archive), "more than its size allows")
            check_archive(archive)
        except ModelFileError:  # so much in so few bytes could be a trap
            archive = skops.io.dumps(ready)
            check_archive(archive)
        types = skops.io.get_untrusted_types(data=archive)
    except Exception as error:  # whatever skops raises of types that it cannot take apart
        reason = str(error) if isinstance(error, ModelFileError) else f"{type(error).__name__}: {error}"
        raise ValueError(
            f"the {type(model).__name__} cannot be saved, because no file can hold it: {reason}"
        ) from error
    lost = [full for full in types if not hasattr(sys.modules.get(full.rpartition(".")[0]), full.rpartition(".")[2])]
    if lost:
        raise ValueError(
            f"the model holds {lost}, which cannot be saved, because a file stores functions and classes by name and "
            "these cannot be found by theirs: define them at the top level of a module"
        )
    return archive, tuple(name for name in types if name not in TRUSTED and not is_own(name))


# ---------------------------------------------------------------- a model as files hold it, and back


def _packed(model: Any, allowance: Allowance) -> Any:
    """The model with copies of what holds trees, one object for a whole forest, without what else files do not keep."""
    seen: dict[int, tuple[Any, Any]] = {}  # with the values, so that no later one has the identity of one

    def ready(value: Any) -> Any:
        if isinstance(value, NOT_FOLLOWED):
            return value
        if id(value) not in seen:
            seen[id(value)] = value, copied(value)
        return seen[id(value)][1]

    def copied(value: Any) -> Any:
        kind = type(value)
        if kind in (list, tuple, dict) or (kind is np.ndarray and value.dtype == object):
            if kind is dict and not all(isinstance(key, KEYS) and not isinstance(key, bool) for key in value):
                raise ValueError("a dictionary with keys that are neither texts nor numbers")  # skops reads others
            old = list(value.values() if kind is dict else value.ravel() if kind is np.ndarray else value)
            items = [ready(each) for each in old]
            if all(map(operator.is_, items, old)):
                return value
            if kind is np.ndarray:
                return np.fromiter(items, dtype=object, count=len(items)).reshape(value.shape)
            return dict(zip(value, items, strict=True)) if kind is dict else kind(items)
        if not hasattr(value, "__dict__"):
            return value
        names = [field.name for field in fields(value)] if _is_own_dataclass(value) else vars(value)
        parts = {}
        for name in names:  # of a dataclass the fields, without what it has derived from them
            part = vars(value)[name]
            found = packed_part(value, name, part, allowance)
            parts[name] = ready(part) if found is None else found
        unchanged = len(parts) == len(vars(value)) and all(parts[name] is vars(value)[name] for name in parts)
        return value if unchanged else made_of(kind, parts)

    return ready(model)


def _unpack(model: Any, allowance: Allowance, *, trusts_preprocessors: bool) -> None:
    """Put trees into the places where a file has others; complain about dataclasses that are not whole."""
    seen: dict[int, Any] = {}
    waiting = [model]
    while waiting:
        each = waiting.pop()
        if isinstance(each, NOT_FOLLOWED) or id(each) in seen:
            continue
        demand(not isinstance(each, PACKED), "a tree that belongs to no model of trees")
        seen[id(each)] = each
        given = vars(each) if hasattr(each, "__dict__") else {}
        if given:
            unpack_parts(each, allowance, trusts_preprocessors=trusts_preprocessors)
        if _is_own_dataclass(each):
            lacking = [field.name for field in fields(each) if field.name not in given]
            demand(not lacking, f"a {type(each).__name__} without {', '.join(lacking)}")
            type(each)(**{field.name: given[field.name] for field in fields(each) if field.init})  # checks them
        waiting += [*given.values(), *(each.values() if isinstance(each, dict) else ())]
        if isinstance(each, (list, tuple, set)):
            waiting += each
        elif isinstance(each, np.ndarray) and each.dtype == object:
            waiting += each.ravel().tolist()


def _is_own_dataclass(value: Any) -> bool:
    return is_dataclass(value) and is_own(f"{type(value).__module__}.{type(value).__qualname__}")
