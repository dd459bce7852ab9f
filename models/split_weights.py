#!/usr/bin/env python3
"""Moves the weights of an ONNX model out of its graph, into a file of their own. Not one number changes.

    split_weights.py model.onnx FOLDER      writes FOLDER/model.onnx and FOLDER/model.onnx_data

Why. Refrain hands ONNX Runtime the graph as bytes, so weights inside it are read, copied and kept. A data file beside
the graph is mapped instead: a tensor costs the pages in use, and one that is repacked on loading costs no second copy.

Why without the onnx package. Splitting needs three levels of nested messages and no arithmetic. Read by hand it takes
the standard library alone, so English needs nothing but pip, and every field that is not a weight is copied as it
stands: the same input gives the same bytes on every machine, whatever the version of Python.

The encoding is that of protocol buffers (protobuf.dev/programming-guides/encoding): a message is a row of fields, a
field is a varint (number << 3 | wire type) and a value. The field numbers are those of onnx.proto.
"""

import sys
from pathlib import Path

MODEL_GRAPH, GRAPH_INITIALIZER = 7, 5
TENSOR_RAW_DATA, TENSOR_EXTERNAL_DATA, TENSOR_DATA_LOCATION = 9, 13, 14
ENTRY_KEY, ENTRY_VALUE = 1, 2
EXTERNAL = 1  # TensorProto.DataLocation

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5
FIXED = {FIXED_64: 8, FIXED_32: 4}

EXTERNAL_FROM = 1024  # smaller tensors stay in the graph, where shape inference wants to read them
ALIGNMENT = 64
DATA_FILE = "model.onnx_data"


def read_varint(data, at):
    """The number at `at`, and where the next byte is."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def fields(message):
    """Each field of a message: its number, its content if it has a length (else None), and all its bytes."""
    at = 0
    while at < len(message):
        start = at
        key, at = read_varint(message, at)
        number, wire_type = key >> 3, key & 7
        content = None
        if wire_type == VARINT:
            _, at = read_varint(message, at)
        elif wire_type == BYTES:
            length, at = read_varint(message, at)
            content = message[at : at + length]
            at += length
        elif wire_type in FIXED:
            at += FIXED[wire_type]
        else:
            raise ValueError(f"wire type {wire_type}")
        if at > len(message):
            raise IndexError("a field goes on after the end")
        yield number, content, message[start:at]


def number_field(number, value):
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number, content):
    return b"".join((varint(number << 3 | BYTES), varint(len(content)), content))


def rewrite(message, number, change):
    """The message with `change` made to the content of its fields of this number, and all others as they are."""
    return b"".join(
        bytes_field(number, change(content)) if found == number and content is not None else whole
        for found, content, whole in fields(message)
    )


def split(model, data_file):
    """The model's graph alone; its weights go to the data file, in the graph's order."""

    def move(tensor):
        parts = list(fields(tensor))
        weights = next((content for number, content, _ in parts if number == TENSOR_RAW_DATA), b"")
        if len(weights) < EXTERNAL_FROM:
            return tensor
        data_file.write(bytes(-data_file.tell() % ALIGNMENT))
        place = {"location": DATA_FILE, "offset": str(data_file.tell()), "length": str(len(weights))}
        data_file.write(weights)
        kept = [whole for number, _, whole in parts if number not in (TENSOR_RAW_DATA, TENSOR_DATA_LOCATION)]
        entries = [
            bytes_field(ENTRY_KEY, key.encode()) + bytes_field(ENTRY_VALUE, value.encode())
            for key, value in place.items()
        ]
        external = [bytes_field(TENSOR_EXTERNAL_DATA, entry) for entry in entries]
        return b"".join([*kept, *external, number_field(TENSOR_DATA_LOCATION, EXTERNAL)])

    return rewrite(model, MODEL_GRAPH, lambda graph: rewrite(graph, GRAPH_INITIALIZER, move))


def main(source, folder):
    model = memoryview(Path(source).read_bytes())
    try:
        with open(Path(folder, DATA_FILE), "wb") as data_file:
            graph = split(model, data_file)
    except (ValueError, IndexError) as error:
        raise SystemExit(f"{source} is not an ONNX model: {error}") from None
    Path(folder, "model.onnx").write_bytes(graph)


if __name__ == "__main__":
    main(*sys.argv[1:])
