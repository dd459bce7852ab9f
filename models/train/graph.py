"""A little notation for ONNX graphs: values with arithmetic, instead of lists of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR = 8


@dataclass(frozen=True)
class Value:
    """A tensor of a graph by name."""

    graph: Graph
    name: str

    def __add__(self, other: Value | float) -> Value:
        return self.graph.op("Add", self, other)

    def __sub__(self, other: Value | float) -> Value:
        return self.graph.op("Sub", self, other)

    def __rsub__(self, other: float) -> Value:
        return self.graph.op("Sub", other, self)

    def __mul__(self, other: Value | float) -> Value:
        return self.graph.op("Mul", self, other)

    def __truediv__(self, other: Value | float) -> Value:
        return self.graph.op("Div", self, other)

    def __matmul__(self, other: Value) -> Value:
        return self.graph.op("MatMul", self, other)

    @property
    def turned(self) -> Value:
        return self.graph.op("Transpose", self, perm=[1, 0])

    def column(self) -> Value:
        """[n] as [n, 1]."""
        return self.graph.op("Unsqueeze", self, self.graph.integers([1]))

    def row(self) -> Value:
        """[n] as [1, n]."""
        return self.graph.op("Unsqueeze", self, self.graph.integers([0]))

    def largest(self, axis: int | None = None) -> Value:
        return self.graph.op("ReduceMax", self, **reduced(axis))

    def smallest(self, axis: int | None = None) -> Value:
        return self.graph.op("ReduceMin", self, **reduced(axis))

    def mean(self, axis: int | None = None, keep: int = 0) -> Value:
        return self.graph.op("ReduceMean", self, **reduced(axis, keep))

    def sum(self, axis: int | None = None) -> Value:
        axes = [] if axis is None else [self.graph.integers([axis])]
        return self.graph.op("ReduceSum", self, *axes, keepdims=0)

    def part(self, start: int, end: int, axes: tuple[int, ...] = (0,)) -> Value:
        """From `start` up to `end` (negative: from the end) along each of the axes."""
        numbers = ([value] * len(axes) for value in (start, end))
        cuts = [self.graph.integers(number) for number in numbers]
        return self.graph.op("Slice", self, *cuts, self.graph.integers(list(axes)))


def reduced(axis: int | None, keep: int = 0) -> dict[str, Any]:
    return {"keepdims": keep} if axis is None else {"axes": [axis], "keepdims": keep}


class Graph:
    """Nodes and constants as they are written down."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def op(self, kind: str, *inputs: Value | float, name: str | None = None, **more: Any) -> Value:
        name = name or f"{kind}_{len(self.nodes)}"
        names = [(x if isinstance(x, Value) else self.constant(np.float32(x))).name for x in inputs]
        self.nodes.append(helper.make_node(kind, names, [name], **more))
        return Value(self, name)

    def input(self, name: str) -> Value:
        return Value(self, name)

    def constant(self, array: np.ndarray | np.float32, name: str | None = None) -> Value:
        array = np.asarray(array)
        name = name or f"c_{array.dtype}_{array.shape}_{array.tobytes().hex()[:64]}"
        self.constants.setdefault(name, numpy_helper.from_array(array, name))
        return Value(self, name)

    def integers(self, values: list[int]) -> Value:
        return self.constant(np.array(values, np.int64))

    def weight(self, array: np.ndarray, name: str) -> Value:
        """A weight kept as f16; ONNX Runtime widens it once, when the graph is loaded."""
        stored = self.constant(np.asarray(array, np.float16), name)
        return self.op("Cast", stored, to=TensorProto.FLOAT)

    def floats(self, value: Value) -> Value:
        return self.op("Cast", value, to=TensorProto.FLOAT)

    def save(
        self, path: Path, inputs: dict[str, tuple[int, list]], outputs: dict[str, list], note: str
    ) -> None:
        """Writes the graph: inputs with type and shape, outputs (f32) with shape."""
        graph = helper.make_graph(
            self.nodes,
            path.stem,
            [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in inputs.items()],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
            list(self.constants.values()),
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = IR
        model.doc_string = note
        model.producer_name = "models/train/export.py"
        onnx.checker.check_model(model)
        onnx.save(model, str(path))
