"""Checks of trees that were read from a file: scikit-learn follows their indices without looking where they lead."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import TREE_LEAF, Tree

from sosbands._arguments import is_count
from sosbands._types import AnyArray, IntArray
from sosbands.exceptions import ModelFileError

BITSET_WORDS = 8  # of 32 bits: one bit for each of 256 categories
MAX_BINS = 256
OWN_TREES = {BaseDecisionTree: "tree_", BaseHistGradientBoosting: "_predictors"}  # where models of trees keep them
NOT_FOLLOWED = (type, ModuleType, FunctionType, BuiltinFunctionType, str, bytes, int, float)


def check_trees(model: Any, *, trusts_preprocessors: bool = False) -> None:
    """Raise a ModelFileError if a tree anywhere in a model could lead scikit-learn out of an array.

    Every tree must belong to an estimator of scikit-learn that checks the columns of what it predicts for, and have no
    feature beyond them, no child but a later node, and each node but the first as the child of exactly one.

    Parameters
    ----------
    model : object
        As it was read.
    trusts_preprocessors : bool
        Whether boosting models may have preprocessors, whose columns nobody checks (those of categories do).
    """
    for each in _parts(model):
        if isinstance(each, BaseDecisionTree):
            _check_decision_tree(each)
        elif isinstance(each, BaseGradientBoosting):
            _check_stages(each)
        elif isinstance(each, BaseHistGradientBoosting):
            _check_histogram_boosting(each, trusts_preprocessors)
        _demand(not isinstance(each, (Tree, TreePredictor)), "a tree that belongs to no model of trees")


def _parts(model: Any) -> Iterator[Any]:
    """Everything that a model consists of, itself included, but the trees of models of trees.

    Classes, functions and modules are only named by a file, and not followed.
    """
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, NOT_FOLLOWED):
            continue
        seen.add(id(each))
        yield each
        waiting += _held(each)


def _held(each: Any) -> list[Any]:
    """What an object refers to."""
    for kind, trees in OWN_TREES.items():
        if isinstance(each, kind):
            return [value for name, value in vars(each).items() if name != trees]
    if isinstance(each, np.ndarray) and each.dtype.hasobject:  # which the garbage collector cannot see into
        return [*gc.get_referents(each), *each.astype(object).ravel().tolist()]
    return gc.get_referents(each)


def _check_decision_tree(model: Any) -> None:
    tree = vars(model).get(OWN_TREES[BaseDecisionTree])
    if tree is None:
        return  # not fitted
    _demand(type(tree) is Tree, f"a tree_ that is a {type(tree).__name__}")
    _demand(_columns(model) == tree.n_features, "a tree for other columns than its model checks")
    # the counts first, as reading the arrays of nodes relies on them
    _demand(1 <= tree.node_count == tree.capacity, "a tree with another number of nodes than it says")
    _demand(tree.n_outputs >= 1 and tree.max_n_classes >= 1, "a tree without values")
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    leaf = left == TREE_LEAF
    _demand(np.array_equal(leaf, right == TREE_LEAF), "a tree with half a leaf")
    _check_nodes(left, right, leaf, feature, tree.n_features)
    _demand(_depth(left, right, leaf) <= tree.max_depth, "a tree deeper than it says")


def _check_stages(model: Any) -> None:
    """Gradient boosting, which gives rows to its trees without letting them look."""
    stages = vars(model).get("estimators_")
    if stages is None:
        return
    trees = np.asarray(stages, dtype=object).ravel().tolist()
    fine = all(isinstance(each, BaseDecisionTree) and _columns(each) == _columns(model) for each in trees)
    _demand(fine, "gradient boosting with trees for other columns")


def _check_histogram_boosting(model: Any, trusts_preprocessors: bool) -> None:
    given = vars(model)
    stages = given.get(OWN_TREES[BaseHistGradientBoosting])
    if stages is None:
        return  # not fitted
    fine = isinstance(stages, list) and all(isinstance(stage, list) for stage in stages)
    _demand(fine and not given.get("_in_fit"), "a boosting model in the middle of its fit")
    preprocessed = given.get("_preprocessor") is not None
    _demand(trusts_preprocessors or not preprocessed, "a boosting model with a preprocessor, whose columns are unknown")
    categorical = _categorical_columns(given.get("_bin_mapper"))
    _demand(preprocessed or _columns(model) == len(categorical), "boosting bins of other columns than its model checks")
    for stage in stages:
        for tree in stage:
            _check_predictor(tree, categorical)


def _categorical_columns(mapper: Any) -> AnyArray:
    """Which columns the bins of a boosting model take for categories."""
    given: dict[str, Any] = vars(mapper) if hasattr(mapper, "__dict__") else {}
    flags: Any = given.get("is_categorical_")
    thresholds: Any = given.get("bin_thresholds_")
    fine = type(flags) is np.ndarray and flags.ndim == 1 and flags.dtype in (np.uint8, np.bool_)
    _demand(fine and isinstance(thresholds, list) and len(thresholds) == len(flags), "boosting bins without columns")
    sizes_fine = all(type(each) is np.ndarray and each.ndim == 1 and len(each) < MAX_BINS for each in thresholds)
    _demand(sizes_fine, "boosting bins with too many thresholds")
    return np.asarray(flags, dtype=bool)


def _check_predictor(tree: Any, categorical: AnyArray) -> None:
    """One tree of histogram gradient boosting."""
    _demand(type(tree) is TreePredictor, f"a boosting tree that is a {type(tree).__name__}")
    nodes, given = tree.nodes, vars(tree)
    fine = type(nodes) is np.ndarray and nodes.ndim == 1 and len(nodes) >= 1 and nodes.dtype == PREDICTOR_RECORD_DTYPE
    _demand(fine, "a boosting tree whose nodes are none")
    leaf = nodes["is_leaf"] != 0
    left, right = (nodes[side].astype(np.int64) for side in ("left", "right"))
    _check_nodes(left, right, leaf, nodes["feature_idx"], len(categorical))
    splits = ~leaf & (nodes["is_categorical"] != 0)
    _demand(categorical[nodes["feature_idx"][splits]].all(), "a boosting tree with categories of a column of numbers")
    for name in ("raw_left_cat_bitsets", "binned_left_cat_bitsets"):
        bits = given.get(name)
        fine = type(bits) is np.ndarray and bits.ndim == 2 and bits.shape[1] == BITSET_WORDS
        _demand(fine and (nodes["bitset_idx"][splits] < len(bits)).all(), "a boosting tree with too few categories")


def _check_nodes(left: IntArray, right: IntArray, leaf: AnyArray, feature: IntArray, n_features: int) -> None:
    """Inner nodes split a column that there is, and have two children of their own among the later nodes."""
    inner = np.flatnonzero(~leaf)
    split = feature[inner]
    _demand(((split >= 0) & (split < n_features)).all(), "a tree that splits a column that does not exist")
    children = np.concatenate([left[inner], right[inner]])
    later = (children > np.concatenate([inner, inner])) & (children < len(leaf))
    _demand(later.all(), "a tree with a child that is no later node")
    once = np.array_equal(np.sort(children), np.arange(1, len(leaf)))
    _demand(once, "a tree with a node that is no child, or that of several")


def _depth(left: IntArray, right: IntArray, leaf: AnyArray) -> int:
    """Depth of the deepest node, once every node is known to be the child of one."""
    depth, level = 0, np.zeros(1, dtype=int)
    while len(level := level[~leaf[level]]):
        depth, level = depth + 1, np.concatenate([left[level], right[level]])
    return depth


def _columns(model: Any) -> int:
    """The columns that an estimator checks its rows to have; -1 if it does not check."""
    number: Any = vars(model).get("n_features_in_")
    return int(number) if is_count(number) else -1


def _demand(fine: Any, found: str) -> None:
    if not fine:
        raise ModelFileError(f"it holds {found}")
