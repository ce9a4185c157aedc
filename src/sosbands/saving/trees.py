"""Decision trees in model files: the nodes of all trees of a forest as a few plain arrays, checked before use.

A forest of scikit-learn is hundreds of objects that are alike but for their nodes and seeds; in a file one object
stands for all of them. scikit-learn follows nodes without looking where they lead, so no tree is made before all its
nodes are known to stay within its arrays. As files hold no tree in another form, each belongs to a model that checks
the columns of what it predicts for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import NODE_DTYPE, TREE_LEAF, Tree

from sosbands._arguments import is_count
from sosbands._types import AnyArray, IntArray
from sosbands.exceptions import ModelFileError

TREE, TREES, STAGES = "tree_", "estimators_", "_predictors"  # where models of trees keep them
COLUMNS = "n_features_in_"  # what they check rows to have
BITS = np.dtype((np.uint32, 8))  # one bit for each of 256 categories
MAX_BINS = 256
TREE_BYTES = 2000  # of memory that a tree takes besides its nodes
PLAIN = (bool, int, float, str, type(None))


def demand(fine: Any, found: str) -> None:
    """Raise a ModelFileError unless this holds."""
    if not fine:
        raise ModelFileError(f"it holds {found}")


@dataclass
class Allowance:
    """How much memory the trees of a file may ask for, and how much they have."""

    most: float
    taken: int = 0

    def take(self, size: int) -> None:
        """Complain if this is more than what is left."""
        self.taken += size
        demand(self.taken <= self.most, "more than its size allows")


@dataclass(frozen=True)
class Records:
    """Arrays of one type, one after the other: a column for each field, of the smallest type that holds it exactly."""

    lengths: IntArray
    columns: dict[str, AnyArray]

    @classmethod
    def of(cls, arrays: list[AnyArray], allowance: Allowance) -> Records:
        """Of these arrays; those without fields are one column."""
        whole, lengths = np.concatenate(arrays), np.array([len(each) for each in arrays])
        allowance.take(whole.nbytes)
        return cls(lengths, {name: _narrowed(whole[name] if name else whole) for name in whole.dtype.names or ("",)})

    def read(self, dtype: Any, number: int, allowance: Allowance) -> AnyArray:
        """So many arrays of this type, as one; none is empty if it has fields."""
        kind, lengths = np.dtype(dtype), self.lengths
        fine = type(lengths) is np.ndarray and lengths.shape == (number,) and lengths.dtype == np.int64
        demand(fine and number and lengths.min() >= (kind.names is not None), "trees whose nodes are none")
        n = sum(lengths.tolist())
        allowance.take(n * kind.itemsize)
        demand(self.columns.keys() == set(kind.names or ("",)), "trees of another version of scikit-learn")
        made = np.zeros(n, dtype=kind)
        for name, column in self.columns.items():
            part = made[name] if name else made
            fine = type(column) is np.ndarray and column.shape == part.shape and np.can_cast(column.dtype, part.dtype)
            demand(fine, f"trees whose {name or 'arrays'} are of another size or type")
            part[...] = column
        return made

    def parts(self, whole: AnyArray) -> list[AnyArray]:
        """The arrays, each with memory of its own."""
        return [part.copy() for part in np.split(whole, np.cumsum(self.lengths)[:-1])]


@dataclass(frozen=True)
class PackedTrees:
    """Trees with the same columns and outputs: that of a model, or those of a forest."""

    n_features: int
    n_classes: IntArray
    nodes: Records
    values: Records

    @classmethod
    def of(cls, trees: list[Tree], allowance: Allowance) -> PackedTrees | None:
        """None if they differ in columns or outputs."""
        (n_features, n_classes, _), *others = [tree.__reduce__()[1] for tree in trees]
        if any(n != n_features or not np.array_equal(classes, n_classes) for n, classes, _ in others):
            return None
        states = [tree.__getstate__() for tree in trees]
        allowance.take(len(trees) * TREE_BYTES)
        parts = (Records.of([state[name] for state in states], allowance) for name in ("nodes", "values"))
        return cls(int(n_features), n_classes, *parts)

    def made(self, columns: set[Any], number: int, allowance: Allowance) -> list[Tree]:
        """So many trees, of models that check their rows to have these columns."""
        fine = is_count(self.n_features) and self.n_features >= 1 and columns == {self.n_features}
        demand(fine, "a tree for other columns than its model checks")
        classes: AnyArray = self.n_classes
        fine = type(classes) is np.ndarray and classes.ndim == 1 and classes.dtype == np.int64 and classes.size > 0
        demand(fine and classes.min() >= 1, "a tree without values")
        allowance.take(number * TREE_BYTES)
        nodes = self.nodes.read(NODE_DTYPE, number, allowance)
        values = self.values.read((np.float64, (classes.size, int(classes.max()))), number, allowance)
        fine = np.array_equal(self.nodes.lengths, self.values.lengths)
        demand(fine, "a tree with another number of values than nodes")
        left, right = nodes["left_child"], nodes["right_child"]
        leaf = left == TREE_LEAF
        demand(np.array_equal(leaf, right == TREE_LEAF), "a tree with half a leaf")
        depths = _depths(nodes["feature"], left, right, leaf, self.nodes.lengths, self.n_features)
        trees = []
        for depth, own, value in zip(depths.tolist(), *map(self.nodes.parts, (nodes, values)), strict=True):
            trees.append(Tree(self.n_features, classes, classes.size))
            trees[-1].__setstate__({"max_depth": depth, "node_count": len(own), "nodes": own, "values": value})
        return trees


@dataclass(frozen=True)
class PackedForest:
    """A list of models, or an array of this shape: a model with what they have in common, the rest, and their trees."""

    alike: BaseDecisionTree
    varying: dict[str, list[Any]]
    number: int
    shape: tuple[int, ...] | None
    trees: PackedTrees

    @classmethod
    def of(cls, models: list[Any] | AnyArray, allowance: Allowance) -> PackedForest | None:
        """None if they are no fitted trees of one kind."""
        shape, listed = (None, models) if isinstance(models, list) else (models.shape, models.ravel().tolist())
        if not listed or not all(type(each) is type(listed[0]) and _holds_tree(each) for each in listed):
            return None
        trees = PackedTrees.of([each.tree_ for each in listed], allowance)
        states, first = [*map(vars, listed)], vars(listed[0])
        if trees is None or any(state.keys() != first.keys() for state in states):
            return None
        alike = {name for name in first if all(_same(state[name], first[name]) for state in states)}
        varying = {name: [state[name] for state in states] for name in first if name not in {*alike, TREE}}
        common = made_of(type(listed[0]), {name: first[name] for name in first if name in alike - {TREE}})
        return cls(common, varying, len(listed), shape, trees)

    def made(self, allowance: Allowance) -> Any:
        """The models."""
        demand(isinstance(self.alike, BaseDecisionTree), "a tree that belongs to no model of trees")
        common, names = vars(self.alike), list(self.varying)
        columns = {*self.varying.get(COLUMNS, [common.get(COLUMNS)])}
        trees = self.trees.made(columns, self.number, allowance)
        models = [
            made_of(type(self.alike), {**common, **dict(zip(names, own, strict=True)), TREE: tree})
            for tree, *own in zip(trees, *self.varying.values(), strict=True)
        ]
        return models if self.shape is None else np.fromiter(models, dtype=object).reshape(self.shape)


@dataclass(frozen=True)
class PackedStages:
    """The trees of histogram gradient boosting, so many in each stage, and which categories go left at their splits."""

    stages: list[int]
    nodes: Records
    raw_bits: Records
    binned_bits: Records

    @classmethod
    def of(cls, stages: list[list[TreePredictor]], allowance: Allowance) -> PackedStages:
        """Of a fitted model."""
        trees = [vars(tree) for stage in stages for tree in stage]
        allowance.take(len(trees) * TREE_BYTES)
        names = ("nodes", "raw_left_cat_bitsets", "binned_left_cat_bitsets")
        parts = (Records.of([tree[name] for tree in trees], allowance) for name in names)
        return cls([len(stage) for stage in stages], *parts)

    def made(self, model: Any, allowance: Allowance, *, trusts_preprocessors: bool) -> list[list[TreePredictor]]:
        """The stages of this model, whose bins say which columns there are."""
        demand(all(map(is_count, self.stages)), "boosting with other stages")
        given, number = vars(model), sum(self.stages)
        preprocessed, bins = given.get("_preprocessor") is not None, vars(given["_bin_mapper"])
        fine = trusts_preprocessors or not preprocessed
        demand(fine, "a boosting model with a preprocessor, whose columns are unknown")
        demand(not given.get("_in_fit"), "a boosting model in the middle of its fit")
        flags, thresholds = bins["is_categorical_"], bins["bin_thresholds_"]
        fine = type(flags) is np.ndarray and flags.ndim == 1 and flags.dtype in (np.uint8, np.bool_)
        demand(fine and type(thresholds) is list and len(thresholds) == len(flags), "boosting bins without columns")
        fine = all(type(each) is np.ndarray and each.ndim == 1 and len(each) < MAX_BINS for each in thresholds)
        demand(fine, "boosting bins with too many thresholds")
        fine = preprocessed or given.get(COLUMNS) == len(flags)
        demand(fine, "boosting bins of other columns than its model checks")
        categorical = np.asarray(flags, dtype=bool)
        allowance.take(number * TREE_BYTES)
        nodes = self.nodes.read(PREDICTOR_RECORD_DTYPE, number, allowance)
        leaf, feature = nodes["is_leaf"] != 0, nodes["feature_idx"]
        left, right = (nodes[name].astype(np.int64) for name in ("left", "right"))
        _depths(feature, left, right, leaf, self.nodes.lengths, len(categorical))
        splits = ~leaf & (nodes["is_categorical"] != 0)
        demand(categorical[feature[splits]].all(), "a boosting tree with categories of a column of numbers")
        parts = [self.nodes.parts(nodes)]
        for bits in (self.binned_bits, self.raw_bits):
            parts.append(bits.parts(bits.read(BITS, number, allowance)))
            enough = nodes["bitset_idx"] < np.repeat(bits.lengths, self.nodes.lengths)
            demand(enough[splits].all(), "a boosting tree with too few categories")
        trees = iter([TreePredictor(*tree) for tree in zip(*parts, strict=True)])
        return [[next(trees) for _ in range(n)] for n in self.stages]


PACKED = (PackedTrees, PackedForest, PackedStages)


def packed_part(owner: Any, name: str, part: Any, allowance: Allowance) -> Any:
    """What stands for an attribute that holds trees; None for others."""
    if name == TREE and _holds_tree(owner):
        return PackedTrees.of([part], allowance)
    if name == TREES and isinstance(part, (list, np.ndarray)):
        return PackedForest.of(part, allowance)
    if name == STAGES and isinstance(owner, BaseHistGradientBoosting) and part and all(part):
        return PackedStages.of(part, allowance)
    return None


def unpack_parts(owner: Any, allowance: Allowance, *, trusts_preprocessors: bool) -> None:
    """Put trees into the attributes of an object that stand for some, if it is one that trees belong to."""
    given = vars(owner)
    if isinstance(owner, OneHotEncoder):
        _check_encoder(given)
    for name, part in given.items():
        if isinstance(part, PackedTrees) and name == TREE and isinstance(owner, BaseDecisionTree):
            given[name] = part.made({given.get(COLUMNS)}, 1, allowance)[0]
        elif isinstance(part, PackedForest) and name == TREES:
            given[name] = part.made(allowance)
        elif isinstance(part, PackedStages) and name == STAGES and isinstance(owner, BaseHistGradientBoosting):
            given[name] = part.made(owner, allowance, trusts_preprocessors=trusts_preprocessors)
    if isinstance(owner, BaseGradientBoosting) and TREES in given:
        # which gives rows to its trees without letting them look, and lets them write into as many columns
        stages = np.asarray(given[TREES], dtype=object)
        fine = all(_holds_tree(tree) and vars(tree).get(COLUMNS) == given.get(COLUMNS) for tree in stages.ravel())
        demand(fine, "gradient boosting with trees for other columns")
        each = 1 if isinstance(owner, RegressorMixin) else stages.shape[-1]
        fine = stages.ndim == 2 and stages.shape[1] == each == given.get("n_trees_per_iteration_", each)
        demand(fine, "gradient boosting with other stages")


def _check_encoder(given: dict[str, Any]) -> None:
    """Complain about codes of categories beyond the columns of an encoder: it writes there without looking."""
    categories = given.get("categories_", [])
    mappings = given.get("_default_to_infrequent_mappings") if given.get("_infrequent_enabled") else None
    drops, columns = given.get("_drop_idx_after_grouping"), given.get("_n_features_outs", [])
    demand(isinstance(categories, list) and len(columns) == len(categories), "an encoder with other categories")
    for k, known in enumerate(categories):
        codes = len(known)
        demand(known.dtype.kind in "OUS" or np.sort(known).tobytes() == known.tobytes(), "categories out of order")
        if mappings is not None and mappings[k] is not None:
            demand(len(mappings[k]) == codes and mappings[k].min() >= 0, "an encoder with other categories")
            codes = int(mappings[k].max()) + 1
        if drops is not None and drops[k] is not None:
            demand(0 <= drops[k] < codes, "an encoder without the category that it leaves out")
            codes -= 1
        demand(columns[k] == codes, "an encoder with categories beyond its columns")


def made_of(kind: type, state: dict[str, Any]) -> Any:
    """An object with these attributes."""
    made: Any = object.__new__(kind)
    made.__dict__.update(state)
    return made


def _holds_tree(model: Any) -> bool:
    return isinstance(model, BaseDecisionTree) and type(vars(model).get(TREE)) is Tree


def _depths(
    feature: IntArray, left: IntArray, right: IntArray, leaf: AnyArray, lengths: IntArray, n_features: int
) -> IntArray:
    """Depth of each tree; inner nodes must have a column, and two children of their own among the later nodes."""
    split = feature[~leaf]
    demand(((split >= 0) & (split < n_features)).all(), "a tree that splits a column that does not exist")
    first = np.cumsum(lengths) - lengths
    start, end = np.repeat(first, lengths), np.repeat(first + lengths, lengths)
    inner = np.flatnonzero(~leaf)
    children, parents = np.concatenate([left[inner] + start[inner], right[inner] + start[inner]]), np.tile(inner, 2)
    fine = (children > parents) & (children < end[parents])
    demand(fine.all(), "a tree with a child that is no later node")
    times, once = np.bincount(children, minlength=len(leaf)), np.ones(len(leaf), dtype=int)
    once[first] = 0
    demand(np.array_equal(times, once), "a tree with a node that is no child, or that of several")
    # Jumps to the parent, to its parent's parent and so on, each twice as far: few rounds, whatever the depth.
    above = np.arange(len(leaf))
    above[children] = parents
    depth = times
    while (more := depth[above]).any():
        depth, above = depth + more, above[above]
    found: IntArray = np.maximum.reduceat(depth, first)
    return found


def _narrowed(values: AnyArray) -> AnyArray:
    """The same values in the smallest type that holds them exactly."""
    values = np.ascontiguousarray(values)
    if not values.size or values.dtype.kind not in "iuf":
        return values
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            single = values.astype(np.float32)
        return single if single.astype(values.dtype).tobytes() == values.tobytes() else values
    return values.astype(np.result_type(*map(np.min_scalar_type, (values.min(), values.max()))))


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and isinstance(one, PLAIN) and one == other)
