"""Objects of other packages in a model file: an archive of skops, looked through before skops reads it.

skops builds no object of a type that is not trusted. The rest is ours: an archive that asks for much more memory or
time than its size justifies, and trees and generators whose numbers would lead scikit-learn or numpy astray.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sosbands.exceptions import UntrustedTypesError
from sosbands.saving.foreign_archive import check_archive
from sosbands.saving.loaded_trees import check_trees

_GP = "sklearn.gaussian_process.kernels."
PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
TREES = ("sklearn.tree._tree.Tree", PREDICTOR)
FUNCTION_PARTS = "functools.partial"  # in the preprocessor of boosting with categories, which nobody can check
# Types that files may hold besides those that skops knows to be harmless: estimators of this package inside of others,
# and scikit-learn's kernels, by name. Trees are harmless once `check_trees` has seen them.
TRUSTED = (
    "numpy.dtype",  # of scikit-learn's imputers
    "sklearn.compose._column_transformer._RemainderColsList",  # a list of columns, in scikit-learn 1.6
    *TREES,
    "sosbands.point_models.blend.ModelBlend",
    "sosbands.point_models.gaussian_process.GaussianProcess",
    "sosbands.point_models.smoothing_spline.SmoothingSplineRegressor",
    "sosbands.point_models.table_columns.TableColumns",
    "sosbands.tables.encoder.TableEncoder",
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


def packed(objects: list[Any]) -> bytes:
    """These objects as an archive of skops."""
    import skops.io

    data: bytes = skops.io.dumps(objects)
    return data


def types_in(data: bytes) -> list[str]:
    """Full names of the types that skops does not know to be harmless."""
    import skops.io

    found: list[str] = skops.io.get_untrusted_types(data=data)
    return found


def unpacked(data: bytes, trusted: Sequence[str]) -> list[Any]:
    """The objects, if every type of them is known or trusted."""
    import skops.io

    check_archive(data)
    held = set(types_in(data))
    known = set(TRUSTED) - ({PREDICTOR} if FUNCTION_PARTS in held else set())
    untrusted = sorted(held - known - set(trusted))
    if untrusted:
        raise UntrustedTypesError(str(untrusted), untrusted)
    objects: list[Any] = skops.io.loads(data, trusted=[*TRUSTED, *trusted])
    check_trees(objects, trusts_preprocessors=PREDICTOR in trusted)
    return objects
