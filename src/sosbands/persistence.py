"""Saving and loading of fitted models in a file that runs no code when it is read (skops)."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sosbands.exceptions import ModelFileError, UntrustedTypesError

FORMAT = 1
_GP = "sklearn.gaussian_process.kernels."
# Types that files may hold besides those that skops knows to be harmless: ours and scikit-learn's kernels, by name.
TRUSTED = (
    "sosbands.conformal.calibration.Calibration",
    "sosbands.estimator.SoSBandRegressor",
    "sosbands.gaussian_process.GaussianProcess",
    "sosbands.kernels.features.KernelFeatures",
    "sosbands.kernels.stationary.StationaryKernel",
    "sosbands.point_models.SmoothingSplineRegressor",
    "sosbands.sos.SoSFunction",
    *(
        _GP + name
        for name in (
            "CompoundKernel",
            "ConstantKernel",
            "DotProduct",
            "Exponentiation",
            "ExpSineSquared",
            "Hyperparameter",
            "Matern",
            "Product",
            "RBF",
            "RationalQuadratic",
            "Sum",
            "WhiteKernel",
        )
    ),
)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; the file appears whole or not at all."""
    import skops.io

    from sosbands import __version__

    _refuse_functions(model)
    target = Path(path)
    content = {"format": FORMAT, "sosbands": __version__, "model": model}
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            skops.io.dump(content, file)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load(path: str | os.PathLike[str], trusted: Sequence[str] = ()) -> Any:
    """Read a model written by :meth:`SoSBandRegressor.save`.

    Parameters
    ----------
    path : path
    trusted : sequence of str
        Full names of further types that the file may hold, such as those of a forest. Name only types that you know:
        reading them may run their code.
    """
    import skops.io

    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"path={os.fspath(path)!r}: no such file")
    if isinstance(trusted, str):
        raise ValueError(f"trusted={trusted!r}: expected a sequence of names")
    try:
        with zipfile.ZipFile(file) as archive:
            damaged = archive.testzip()
            names = archive.namelist()
        if damaged is not None or "schema.json" not in names:
            raise ModelFileError(f"path={os.fspath(path)!r}: not a model file of sosbands")
        untrusted = sorted(set(skops.io.get_untrusted_types(file=file)) - set(TRUSTED) - set(trusted))
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ModelFileError(f"path={os.fspath(path)!r}: not a model file of sosbands, or cut short") from error
    if untrusted:
        raise UntrustedTypesError(
            f"path={os.fspath(path)!r} holds types that are not trusted: {untrusted}. If you know where the file comes "
            f"from, accept them by sosbands.load({os.fspath(path)!r}, trusted={untrusted!r})"
        )
    content = skops.io.load(file, trusted=[*TRUSTED, *trusted])
    if not isinstance(content, dict) or {"format", "sosbands", "model"} - set(content):
        raise ModelFileError(f"path={os.fspath(path)!r}: not a model file of sosbands")
    if content["format"] > FORMAT:
        raise ModelFileError(
            f"path={os.fspath(path)!r} was written by sosbands {content['sosbands']} in format {content['format']}; "
            f"this version reads formats up to {FORMAT}: upgrade sosbands"
        )
    return content["model"]


def _refuse_functions(model: Any) -> None:
    """A function has no portable form: pickle would store a reference to code that the reader may not have."""
    for name in ("estimator", "kernel"):
        value = getattr(model, name, None)
        if callable(value) and not hasattr(value, "get_params"):
            raise ValueError(
                f"{name}={value!r} is a function and cannot be saved safely: use an estimator or kernel object, "
                "or pickle the model"
            )
