"""Saving and loading of fitted models in a file that runs no code when it is read (skops)."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from sosbands._files import check_place, written
from sosbands._version import __version__
from sosbands.exceptions import ModelFileError, UntrustedTypesError
from sosbands.regressors.base import SplitRegressor
from sosbands.regressors.loaded_trees import check_trees

FORMAT = 3  # 1 named types by where they stood before the rooms of 0.2; 2 had no base scale and no noise features
HEADER = "sosbands.json"  # member of the archive that says what it is, readable without reading the model
_GP = "sklearn.gaussian_process.kernels."
REGRESSORS = ("sosbands.regressors.", "sosbands.baselines.")  # where this package defines its interval regressors
# Types that files may hold besides those that skops knows to be harmless and the interval regressors of this package:
# what these consist of and scikit-learn's kernels, by name. Trees are harmless once `check_trees` has seen them.
PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
TREES = ("sklearn.tree._tree.Tree", PREDICTOR)
FUNCTION_PARTS = "functools.partial"  # in the preprocessor of boosting with categories, which nobody can check
TRUSTED = (
    "numpy.dtype",  # of scikit-learn's imputers
    *TREES,
    "sosbands.conformal.calibration.Calibration",
    "sosbands.point_models.blend.ModelBlend",
    "sosbands.point_models.gaussian_process.GaussianProcess",
    "sosbands.kernels.features.KernelFeatures",
    "sosbands.kernels.stationary.StationaryKernel",
    "sosbands.point_models.smoothing_spline.SmoothingSplineRegressor",
    "sosbands.point_models.table_columns.TableColumns",
    "sosbands.bands.sos.SoSFunction",
    "sosbands.stats.independence.TestResult",
    "sosbands.tables.encoder.TableEncoder",
    "sosbands.tuning.report.TuningReport",
    "sosbands.tuning.rules.Rules",
    "sosbands.tuning.views.NoiseView",
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

    _refuse_functions(model)
    check_place(path)
    with written(path) as partial:
        skops.io.dump(model, partial)
        _refuse_nameless(skops.io.get_untrusted_types(file=partial))
        _write_header(partial)


def load(path: str | os.PathLike[str], trusted: Sequence[str] = ()) -> Any:
    """Read a model written by :meth:`SoSBandRegressor.save`.

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
        If the file is damaged, not a model file, written in an older or newer format, or holds a tree whose nodes lead
        out of it.
    """
    import skops.io

    shown = f"path={os.fspath(path)!r}"
    if isinstance(trusted, (str, bool)) or not all(isinstance(name, str) for name in trusted):
        raise ValueError(f"trusted={trusted!r}: expected a sequence of full type names")
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"{shown}: no such file")
    _check_header(file, shown)
    try:
        held = set(skops.io.get_untrusted_types(file=file))
        ours = regressor_types(held)
        untrusted = sorted(held - _known(held) - ours - set(trusted))
        model = None if untrusted else skops.io.load(file, trusted=[*TRUSTED, *sorted(ours), *trusted])
        check_trees(model, trusts_preprocessors=PREDICTOR in trusted)
    except ModelFileError as error:
        raise ModelFileError(f"{shown}: the model in it is damaged or forged, {error}") from error
    except Exception as error:  # whatever a damaged or forged file makes skops raise
        raise ModelFileError(f"{shown}: the model in it cannot be read ({type(error).__name__}: {error})") from error
    if untrusted:
        raise UntrustedTypesError(
            f"{shown} holds types that are not trusted: {untrusted}. If you know where the file comes from, accept "
            f"them by sosbands.load({os.fspath(path)!r}, trusted={untrusted!r})",
            untrusted,
        )
    if not hasattr(model, "predict_interval"):
        raise ModelFileError(f"{shown}: holds a {type(model).__name__}, expected a model that predicts intervals")
    return model


def check_savable(part: Any) -> None:
    """Complain about a part of a model that no file can hold, before the model is learnt."""
    import skops.io

    try:
        types = skops.io.get_untrusted_types(data=skops.io.dumps(part))
    except Exception as error:  # whatever skops raises of types that it cannot take apart
        raise ValueError(f"{type(part).__name__} cannot be saved ({type(error).__name__}: {error})") from error
    _refuse_nameless(types)


def _known(held: set[str]) -> set[str]:
    """The types that are trusted beside these: boosting beside functions may have a preprocessor, and is not."""
    return set(TRUSTED) - ({PREDICTOR} if FUNCTION_PARTS in held else set())


def regressor_types(names: Iterable[str]) -> set[str]:
    """Of these types, the interval regressors of this package, with the types that these declare as their parts."""
    own = [cls for name in names if name.startswith(REGRESSORS) and (cls := _regressor(name)) is not None]
    return {f"{each.__module__}.{each.__qualname__}" for cls in own for each in (cls, *cls._saved_parts)}


def _regressor(name: str) -> type[SplitRegressor] | None:
    """The interval regressor with this full name; None if there is none, or its module only knows it from another."""
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError:
        return None
    return (
        found if isinstance(found, type) and issubclass(found, SplitRegressor) and found.__module__ == module else None
    )


def _write_header(file: Path) -> None:
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(HEADER, json.dumps({"format": FORMAT, "sosbands": __version__}))


def _check_header(file: Path, shown: str) -> None:
    """Complain about files that are not ours, damaged, or of another format, before anything else of them is read."""
    try:
        with zipfile.ZipFile(file) as archive:
            header = json.loads(archive.read(HEADER))
            written_in, version = int(header["format"]), str(header["sosbands"])
            damaged = archive.testzip()
    except (zipfile.BadZipFile, EOFError, OSError, LookupError, TypeError, ValueError, NotImplementedError) as error:
        raise ModelFileError(f"{shown}: not a model file of sosbands, or cut short ({error})") from error
    if damaged is not None:
        raise ModelFileError(f"{shown}: damaged, the checksum of {damaged} is wrong")
    if written_in < FORMAT:
        raise ModelFileError(
            f"{shown} was written by sosbands {version} in format {written_in}, which this version does not read "
            f"(it reads format {FORMAT}): fit the model again, or use it with sosbands {version}"
        )
    if written_in > FORMAT:
        raise ModelFileError(
            f"{shown} was written by sosbands {version} in format {written_in}; this version reads formats up to "
            f"{FORMAT}: upgrade sosbands"
        )


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
