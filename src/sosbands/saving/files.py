"""Saving and loading of fitted models: what is in a file, which formats are read, and how failures are called."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sosbands._files import check_place, written
from sosbands._types import AnyArray
from sosbands._version import __version__
from sosbands.exceptions import ModelFileError, UntrustedTypesError
from sosbands.saving import container, foreign
from sosbands.saving.foreign_archive import check_archive
from sosbands.saving.own_types import type_named, users_type
from sosbands.saving.plain import Reader, Writer

FORMAT = 4  # up to 3 a file was an archive of skops; see docs/saving.md for the rule for older files
MODEL = "model"  # the array of bytes that is the JSON text of the objects
FOREIGN = "point-model"  # the one that is an archive of skops with the objects of other packages


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; the file appears whole or not at all.

    Parameters
    ----------
    model : interval regressor
        Fitted. Its method `save` does the same.
    path : path
        A new file, or one to be replaced.
    """
    _refuse_functions(model)
    check_place(path)
    writer = Writer()
    writer.written(model)
    arrays: dict[str, AnyArray] = {f"arrays/{name}": array for name, array in writer.arrays.items()}
    arrays[MODEL] = _bytes(json.dumps(writer.objects, allow_nan=False).encode())
    if writer.foreign:
        arrays[FOREIGN] = _bytes(foreign.packed(writer.foreign))
    _check_readable(arrays, writer.foreign)
    with written(path) as partial:
        container.write(partial, arrays, {"format": str(FORMAT), "sosbands": __version__})


def load(path: str | os.PathLike[str], trusted: Sequence[str] = ()) -> Any:
    """Read a model written by :meth:`SoSBandRegressor.save`.

    What this package made is plain data and runs no code. A point model of another package, and a preprocessor, are
    read by skops, once every type in them is known to be harmless or is named in `trusted`.

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
        If the file is damaged, not a model file, written in an older or newer format, asks for more memory than its
        size justifies, or holds parts that do not go together.
    """
    shown = f"path={os.fspath(path)!r}"
    if isinstance(trusted, (str, bool)) or not all(isinstance(name, str) for name in trusted):
        raise ValueError(f"trusted={trusted!r}: expected a sequence of full type names")
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"{shown}: no such file")
    _check_format(file, shown)
    try:
        model = _read(container.read_arrays(file), trusted)
    except UntrustedTypesError as error:
        untrusted = list(error.types)
        raise UntrustedTypesError(
            f"{shown} holds types that are not trusted: {untrusted}. If you know where the file comes from, accept "
            f"them by sosbands.load({os.fspath(path)!r}, trusted={[*trusted, *untrusted]!r})",
            untrusted,
        ) from None
    except container.CutShortError as error:
        raise ModelFileError(f"{shown}: not a model file of sosbands, or cut short ({error})") from error
    except ModelFileError as error:
        raise ModelFileError(f"{shown}: the model in it is damaged or forged: {error}") from error
    except Exception as error:  # whatever a damaged or forged file makes safetensors, skops and numpy raise
        raise ModelFileError(f"{shown}: the model in it cannot be read ({type(error).__name__}: {error})") from error
    if not hasattr(model, "predict_interval"):
        raise ModelFileError(f"{shown}: holds a {type(model).__name__}, expected a model that predicts intervals")
    return model


def check_savable(part: Any) -> None:
    """Complain about a part of a model that no file can hold, before the model is learnt."""
    writer = Writer()
    try:
        writer.written(part)
        data = foreign.packed(writer.foreign)
    except Exception as error:  # whatever skops raises of types that it cannot take apart
        raise ValueError(f"{type(part).__name__} cannot be saved ({type(error).__name__}: {error})") from error
    _refuse_nameless(foreign.types_in(data))


def _read(arrays: dict[str, AnyArray], trusted: Sequence[str]) -> Any:
    if MODEL not in arrays:
        raise ModelFileError("no model")
    objects = container.parsed(arrays.pop(MODEL).tobytes(), "the model")
    archive = arrays.pop(FOREIGN, None)
    others = [] if archive is None else foreign.unpacked(archive.tobytes(), trusted)
    named = {name.removeprefix("arrays/"): array for name, array in arrays.items()}
    return Reader(named, others, lambda name: _type(name, trusted)).model(objects)


def _type(name: str, trusted: Sequence[str]) -> tuple[type, bool]:
    """The class of this name, and whether it is a user's."""
    found, users = type_named(name), "." in name
    if users and name not in trusted:
        raise UntrustedTypesError(name, [name])
    if users:
        found = users_type(name)
    if found is None:
        raise ModelFileError(f"an object of unknown type {name!r:.60}")
    return found, users


def _check_format(file: Path, shown: str) -> None:
    """Complain about files that are not ours or of another format, before anything else of them is read."""
    try:
        facts = container.read_facts(file)
    except (ModelFileError, OSError) as error:
        raise ModelFileError(f"{shown}: not a model file of sosbands, or cut short ({error})") from error
    written_in, version = facts.get("format", ""), facts.get("sosbands", "")
    if not (written_in.isdecimal() and written_in.isascii() and 1 <= len(written_in) < 10 and int(written_in) > 0):
        raise ModelFileError(f"{shown}: not a model file of sosbands, its format is {written_in!r:.40}")
    if int(written_in) < FORMAT:
        raise ModelFileError(
            f"{shown} was written by sosbands {version:.40} in format {written_in}, which this version does not read "
            f"(it reads format {FORMAT}): fit the model again, or use it with sosbands {version:.40}"
        )
    if int(written_in) > FORMAT:
        raise ModelFileError(
            f"{shown} was written by sosbands {version:.40} in format {written_in}; this version reads formats up to "
            f"{FORMAT}: upgrade sosbands"
        )


def _check_readable(arrays: dict[str, AnyArray], others: list[Any]) -> None:
    """Complain about a model that could not be read again, before a file is written."""
    named = {name.removeprefix("arrays/"): array for name, array in arrays.items()}
    try:
        if others:
            data = arrays[FOREIGN].tobytes()
            check_archive(data)
            _refuse_nameless(foreign.types_in(data))
        objects = container.parsed(arrays[MODEL].tobytes(), "the model")
        Reader(named, others, lambda name: _type(name, [name])).model(objects)
    except ModelFileError as error:
        raise ValueError(f"the model cannot be saved, because no file can hold it: {error}") from error


def _bytes(data: bytes) -> AnyArray:
    return np.frombuffer(data, dtype=np.uint8)


def _refuse_functions(model: Any) -> None:
    """A function has no portable form: pickle would store a reference to code that the reader may not have."""
    for name, method in (("estimator", "fit"), ("kernel", "diag")):
        value = getattr(model, name, None)
        if callable(value) and not hasattr(value, method):
            raise ValueError(
                f"{name}={value!r} is a function and cannot be saved, because a file cannot hold its code: use an "
                f"{name} object, or pickle the model for readers who have the function"
            )


def _refuse_nameless(types: Sequence[str]) -> None:
    """Functions and classes are stored by name, so lambdas and local ones could not be found again."""
    lost = [full for full in types if not hasattr(sys.modules.get(full.rpartition(".")[0]), full.rpartition(".")[2])]
    if lost:
        raise ValueError(
            f"the model holds {lost}, which cannot be saved, because a file stores functions and classes by name and "
            "these cannot be found by theirs: define them at the top level of a module"
        )
