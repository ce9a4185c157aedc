"""What a model computes, as a list of steps on arrays of rows: written once, read by NumPy and written as ONNX."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sosbands._types import AnyArray
from sosbands.exceptions import ExportError

NUMBERS, TEXTS, INTEGERS = "numbers", "texts", "integers"
FOREIGN = "foreign"  # the operation of an object of another library, which NumPy alone cannot do


@dataclass(frozen=True)
class Input:
    """An array that a program is given."""

    name: str
    kind: str  # NUMBERS, TEXTS or INTEGERS
    columns: int


@dataclass(frozen=True)
class Step:
    """One operation: its name in `sosbands.serving.scorer.OPERATIONS`, the value it makes, and of what."""

    operation: str
    output: str
    arguments: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Program:
    """Steps from inputs to outputs; every value is an array (n, k), every constant one that goes with these."""

    inputs: dict[str, Input] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    constants: dict[str, AnyArray] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)  # names for users, and of the values
    # fitted objects of other libraries by the value that they make, and how many columns they see
    foreign: dict[str, tuple[Any, int]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)  # what users of the file should know, as plain data

    def input(self, name: str, kind: str, columns: int) -> str:
        """A further input; its value has its name."""
        if name in self.inputs:
            raise ExportError(f"X has a column {name!r}, the name of another input: expected another name")
        self.inputs[name] = Input(name, kind, columns)
        return name

    def constant(self, value: Any) -> str:
        """A constant: a number, a row of numbers, a matrix, or an array of keys."""
        array = np.asarray(value)
        if array.dtype.kind not in "iuU":
            array = np.atleast_2d(array.astype(np.float64))
        name = f"/c{len(self.constants)}"
        self.constants[name] = array
        return name

    def add(self, operation: str, *arguments: Any, **options: Any) -> str:
        """A further step of values, given by name, and of constants; the name of what it makes."""
        output = f"/v{len(self.steps)}"
        names = tuple(each if isinstance(each, str) else self.constant(each) for each in arguments)
        self.steps.append(Step(operation, output, names, options))
        return output

    def alien(self, fitted: Any, argument: str, columns: int) -> str:
        """A step of an object of another library."""
        output = self.add(FOREIGN, argument)
        self.foreign[output] = (fitted, columns)
        return output

    def joined(self, values: list[str]) -> str:
        """Values side by side."""
        return values[0] if len(values) == 1 else self.add("join", *values)

    def part(self, value: str, start: int, end: int) -> str:
        """Some columns of a value, from `start` up to `end`."""
        return self.add("columns", value, start=start, end=end)

    def standardised(self, value: str, center: Any, scale: Any) -> str:
        """``(value - center) / scale``."""
        return self.add("divide", self.add("subtract", value, center), scale)

    def squares(self, value: str) -> str:
        """The sum of the squares of each row, (n, 1)."""
        return self.add("sum", self.add("multiply", value, value))

    def pruned(self) -> Program:
        """The same without steps and constants that no output needs."""
        needed, steps = set(self.outputs.values()), []
        for step in reversed(self.steps):
            if step.output in needed:
                needed |= set(step.arguments)
                steps.append(step)
        constants = {name: value for name, value in self.constants.items() if name in needed}
        foreign = {name: found for name, found in self.foreign.items() if name in needed}
        return replace(self, steps=steps[::-1], constants=constants, foreign=foreign)
