"""A program as an ONNX graph, in double precision from end to end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from sosbands._extras import need
from sosbands._types import AnyArray
from sosbands.exceptions import ExportError
from sosbands.serving.program import FOREIGN, INTEGERS, NUMBERS, TEXTS, Program, Step
from sosbands.serving.scorer import SINGLE

OPSETS = {"": 18, "ai.onnx.ml": 3}  # trees have thresholds in double precision from the latter on
EXACT_INTEGERS = 2**24  # up to which single precision holds whole numbers
IR_VERSION = 9
LOWEST = float(np.finfo(np.float64).min)
SCALINGS = ("multiply", "divide")
PLAIN = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "maximum": "Max",
    "minimum": "Min",
    "sqrt": "Sqrt",
    "exp": "Exp",
    "log": "Log",
    "product": "MatMul",
}


def onnx_bytes(program: Program) -> bytes:
    """The file of a program: inputs and outputs by their names, facts as its metadata."""
    graph = _Graph(program)
    for step in program.steps:
        graph.write(step)
    return graph.finished()


class _Graph:
    """Nodes and constants of the graph that is being written."""

    def __init__(self, program: Program) -> None:
        self.onnx, self.helper = need("onnx"), need("onnx.helper")
        self.program = program
        self.made_by = {step.output: step for step in program.steps}
        self.nodes: list[Any] = []
        self.constants: dict[str, AnyArray] = {}

    def write(self, step: Step) -> None:
        """The nodes of one step."""
        if step.operation in PLAIN:
            inputs = [self.apart(name) if self.fuses(step, name) else self.value(name) for name in step.arguments]
            self.node(PLAIN[step.operation], inputs, step.output)
        elif step.operation == FOREIGN:
            self.foreign(step)
        else:
            WRITERS[step.operation](self, step)

    def fuses(self, step: Step, name: str) -> bool:
        """Whether onnxruntime would make one node of this step and the one before, with a factor in single precision.

        It does so with a matrix product and a multiplication by one constant, in either order.
        """
        before = self.made_by.get(name)
        pair = {step.operation, before.operation} if before else set()
        if before is None or "product" not in pair or pair - {"product", *SCALINGS}:
            return False
        scaling = before if step.operation == "product" else step
        sizes = [self.program.constants[each].size for each in scaling.arguments if each in self.program.constants]
        return 1 in sizes

    def apart(self, name: str) -> str:
        """The same value, by a node that keeps its neighbours from being fused."""
        return self.node("Max", [self.value(name), self.constant(LOWEST, np.float64)])

    def value(self, name: str) -> str:
        """A value or constant by name; a constant is written when it is first asked for."""
        if name in self.program.constants:
            self.constants[name] = self.program.constants[name]
        return name

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """A constant that belongs to one node."""
        name = f"/n{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype=dtype)
        return name

    def node(self, kind: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        """One node of the graph."""
        output = f"/i{len(self.nodes)}" if output is None else output
        domain = "ai.onnx.ml" if kind in ("TreeEnsembleRegressor", "LabelEncoder") else ""
        self.nodes.append(self.helper.make_node(kind, inputs, [output], name=output, domain=domain, **attributes))
        return output

    def foreign(self, step: Step) -> None:
        """The graph that skl2onnx makes of an object, its names apart from all others."""
        fitted, columns = self.program.foreign[step.output]
        made = converted(fitted, columns)
        prefixed = need("onnx.compose").add_prefix(made, f"{step.output}/").graph
        (given,), output = prefixed.input, prefixed.output[0].name
        self.node("Identity", [step.arguments[0]], given.name)
        self.nodes += prefixed.node
        self.constants |= {each.name: need("onnx.numpy_helper").to_array(each) for each in prefixed.initializer}
        double = self.node("Cast", [output], to=self.onnx.TensorProto.DOUBLE)
        self.node("Reshape", [double, self.constant([0, -1])], step.output)

    def finished(self) -> bytes:
        """The whole model, checked by onnx."""
        types = self.onnx.TensorProto
        kinds = {NUMBERS: types.DOUBLE, TEXTS: types.STRING, INTEGERS: types.INT64}
        describe = self.helper.make_tensor_value_info
        inputs = [describe(each.name, kinds[each.kind], ["n", each.columns]) for each in self.program.inputs.values()]
        k = len(self.program.facts["confidence_level"])
        outputs = []
        for name, value in self.program.outputs.items():
            self.node("Identity", [value], name)
            outputs.append(describe(name, types.DOUBLE, ["n", k if name in ("lower", "upper") else 1]))
        arrays = [need("onnx.numpy_helper").from_array(values, name) for name, values in self.constants.items()]
        graph = self.helper.make_graph(self.nodes, "sosbands", inputs, outputs, arrays)
        opsets = [self.helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        model = self.helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="sosbands")
        self.helper.set_model_props(model, {name: json.dumps(fact) for name, fact in self.program.facts.items()})
        found: bytes = model.SerializeToString()
        return found


def converted(fitted: Any, columns: int) -> Any:
    """What skl2onnx makes of a fitted object of numbers."""
    skl2onnx = need("skl2onnx")
    types = need("skl2onnx.common.data_types")
    try:
        return skl2onnx.to_onnx(
            fitted,
            initial_types=[("x", types.DoubleTensorType([None, columns]))],
            target_opset=OPSETS,
        )
    except Exception as error:  # of many types, in skl2onnx and in what it asks of the object
        said = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
        raise ExportError(
            f"skl2onnx cannot convert a {type(fitted).__name__} ({said}); if it is the point model, bands_only=True "
            "makes its prediction an input"
        ) from error


def _rows(graph: _Graph, step: Step) -> None:
    axes = graph.constant([1])
    graph.node({"sum": "ReduceSum", "mean": "ReduceMean"}[step.operation], [step.arguments[0], axes], step.output)


def _join(graph: _Graph, step: Step) -> None:
    graph.node("Concat", list(step.arguments), step.output, axis=1)


def _columns(graph: _Graph, step: Step) -> None:
    places = [graph.constant([value]) for value in (step.options["start"], step.options["end"], 1)]
    graph.node("Slice", [step.arguments[0], *places], step.output)


def _fill(graph: _Graph, step: Step) -> None:
    x, other = (graph.value(name) for name in step.arguments)
    graph.node("Where", [graph.node("IsNaN", [x]), other, x], step.output)


def _missing(graph: _Graph, step: Step) -> None:
    graph.node("Cast", [graph.node("IsNaN", [step.arguments[0]])], step.output, to=graph.onnx.TensorProto.DOUBLE)


def _if_greater(graph: _Graph, step: Step) -> None:
    a, b, then, otherwise = (graph.value(name) for name in step.arguments)
    graph.node("Where", [graph.node("Greater", [a, b]), then, otherwise], step.output)


def _single(graph: _Graph, step: Step) -> None:
    types = graph.onnx.TensorProto
    limits = [graph.constant(value, np.float64) for value in (-SINGLE, SINGLE)]
    rounded = graph.node("Cast", [graph.node("Clip", [step.arguments[0], *limits])], to=types.FLOAT)
    graph.node("Cast", [rounded], step.output, to=types.DOUBLE)


def _distances(graph: _Graph, step: Step) -> None:
    x, landmarks = (graph.value(name) for name in step.arguments)
    spread = graph.node("Unsqueeze", [x, graph.constant([1])])
    apart = graph.node("Sub", [spread, graph.node("Unsqueeze", [landmarks, graph.constant([0])])])
    graph.node("ReduceSum", [graph.node("Mul", [apart, apart]), graph.constant([2])], step.output, keepdims=0)


def _lookup(graph: _Graph, step: Step) -> None:
    given, keys, table = step.arguments
    known = graph.program.constants[keys]
    named = {"keys_strings": known.tolist()} if known.dtype.kind == "U" else {"keys_int64s": known.tolist()}
    code = graph.node("LabelEncoder", [given], **named, values_int64s=list(range(len(known))), default_int64=len(known))
    graph.node("Gather", [graph.value(table), graph.node("Reshape", [code, graph.constant([-1])])], step.output, axis=0)


def _trees(graph: _Graph, step: Step) -> None:
    x, nodes, splits, roots = step.arguments
    constants = graph.program.constants
    attributes = tree_attributes(constants[nodes], constants[splits][0], constants[roots].ravel())
    as_tensor = need("onnx.numpy_helper").from_array
    attributes |= {name: as_tensor(attributes[name], name) for name in attributes if name.endswith("_as_tensor")}
    numbers = graph.node("TreeEnsembleRegressor", [x], **attributes)
    places = graph.node("Cast", [numbers], to=graph.onnx.TensorProto.INT64)
    values = graph.constant(constants[splits][1], np.float64)
    found = graph.node("Gather", [values, places], step.output if step.options["each"] else None, axis=0)
    if not step.options["each"]:
        graph.node("ReduceSum", [found, graph.constant([1])], step.output)


def tree_attributes(nodes: AnyArray, threshold: AnyArray, roots: AnyArray) -> dict[str, Any]:
    """The attributes of a `TreeEnsembleRegressor` whose targets, one for each tree, are the numbers of the leaves.

    Its thresholds are in double precision, its output never is: it holds whole numbers, by which the values of the
    leaves are looked up. `TreeEnsemble` of ai.onnx.ml 5 has double precision throughout, but onnxruntime 1.21 to 1.23
    give other values for some ensembles.
    """
    feature, left, right = nodes.astype(np.int64)
    own = np.arange(len(feature))
    if len(own) > EXACT_INTEGERS:
        raise ExportError(f"trees of {len(own)} nodes: expected at most {EXACT_INTEGERS}, whose numbers are exact")
    leaf = left == own
    tree = np.searchsorted(roots, own, side="right") - 1
    first = roots[tree]
    return {
        "n_targets": len(roots),
        "aggregate_function": "SUM",
        "post_transform": "NONE",
        "nodes_treeids": tree.tolist(),
        "nodes_nodeids": (own - first).tolist(),
        "nodes_featureids": feature.tolist(),
        "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_values_as_tensor": threshold,
        "nodes_truenodeids": np.where(leaf, 0, left - first).tolist(),
        "nodes_falsenodeids": np.where(leaf, 0, right - first).tolist(),
        "target_treeids": tree[leaf].tolist(),
        "target_nodeids": (own - first)[leaf].tolist(),
        "target_ids": tree[leaf].tolist(),
        "target_weights_as_tensor": own[leaf].astype(np.float64),
    }


WRITERS: dict[str, Callable[[_Graph, Step], None]] = {
    "sum": _rows,
    "mean": _rows,
    "join": _join,
    "columns": _columns,
    "fill": _fill,
    "missing": _missing,
    "if_greater": _if_greater,
    "single": _single,
    "distances": _distances,
    "lookup": _lookup,
    "label_lookup": _lookup,
    "trees": _trees,
}
