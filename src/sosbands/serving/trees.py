"""Tree ensembles of scikit-learn as arrays of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sosbands._types import AnyArray, Array
from sosbands.serving.program import Program


@dataclass(frozen=True, eq=False)
class Nodes:
    """All nodes of one tree; a leaf leads to itself.

    Attributes
    ----------
    feature, left, right : ndarrays of int
        Column that a node looks at, and where it leads if this is at most `threshold`, and otherwise.
    threshold, value : ndarrays of float
    """

    feature: AnyArray
    left: AnyArray
    right: AnyArray
    threshold: Array
    value: Array

    @classmethod
    def of_tree(cls, tree: Any) -> Nodes:
        """Those of a `Tree` of scikit-learn."""
        leaf = tree.children_left < 0
        return cls._of(leaf, tree.feature, tree.children_left, tree.children_right, tree.threshold, tree.value[:, 0, 0])

    @classmethod
    def of_predictor(cls, predictor: Any) -> Nodes:
        """Those of a tree of histogram boosting."""
        nodes = predictor.nodes
        feature, left, right = (nodes[name].astype(np.int64) for name in ("feature_idx", "left", "right"))
        return cls._of(nodes["is_leaf"].astype(bool), feature, left, right, nodes["num_threshold"], nodes["value"])

    @classmethod
    def _of(cls, leaf: AnyArray, feature: Any, left: Any, right: Any, threshold: Any, value: Any) -> Nodes:
        own = np.arange(len(leaf))
        return cls(
            np.where(leaf, 0, feature),
            np.where(leaf, own, left),
            np.where(leaf, own, right),
            np.where(leaf, 0.0, threshold),
            np.where(leaf, value, 0.0),
        )

    @property
    def depth(self) -> int:
        """Steps from the root to the deepest leaf."""
        reached, depth = np.zeros(1, dtype=np.int64), 0
        while True:
            inner = reached[self.left[reached] != reached]
            if not len(inner):
                return depth
            reached, depth = np.concatenate([self.left[inner], self.right[inner]]), depth + 1


def add_trees(program: Program, value: str, trees: Sequence[Nodes], *, each: bool = False, factor: float = 1.0) -> str:
    """What the leaves of a row say, times a factor: of each tree (n, number of trees), or in all (n, 1)."""
    roots = np.cumsum([0, *(len(tree.feature) for tree in trees)])[:-1]
    places = [(tree.feature, tree.left + root, tree.right + root) for tree, root in zip(trees, roots, strict=True)]
    nodes = np.concatenate([np.stack(place) for place in places], axis=1).astype(np.int32)
    numbers = np.concatenate([np.stack([tree.threshold, factor * tree.value]) for tree in trees], axis=1)
    depth = max(tree.depth for tree in trees)
    return program.add("trees", value, nodes, numbers, roots.astype(np.int32), depth=depth, each=each)
