"""models/split_weights.py against small models written here, byte by byte; no onnx package."""

import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

SCRIPT = Path(__file__).resolve().parents[2] / "models" / "split_weights.py"


def load_script():
    spec = importlib.util.spec_from_file_location("split_weights", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.object(sys, "dont_write_bytecode", True):
        spec.loader.exec_module(module)
    return module


script = load_script()
text, number = script.bytes_field, script.number_field

INT8 = 3  # TensorProto.DataType
DIMS, DATA_TYPE, FLOAT_DATA, NAME, RAW_DATA, EXTERNAL_DATA, LOCATION = 1, 2, 4, 8, 9, 13, 14
NODE, GRAPH_NAME, INITIALIZER, IR_VERSION, GRAPH, METADATA = 1, 2, 5, 1, 7, 14

BEFORE = number(IR_VERSION, 6)
AFTER = text(METADATA, b"metadata") + b"\x7d1234" + b"\x81\x01" + b"12345678"  # and fixed-width fields 15 and 16
NODES = text(NODE, b"a node") + text(GRAPH_NAME, b"graph")


def tensor(name, weights, location=b""):
    head = number(DIMS, len(weights)) + number(DATA_TYPE, INT8) + text(NAME, name)
    return head + text(RAW_DATA, weights) + location


def moved(name, offset, length):
    head = number(DIMS, length) + number(DATA_TYPE, INT8) + text(NAME, name)
    place = [(b"location", b"model.onnx_data"), (b"offset", b"%d" % offset), (b"length", b"%d" % length)]
    return head + b"".join(text(EXTERNAL_DATA, text(1, k) + text(2, v)) for k, v in place) + number(LOCATION, 1)


def model(*tensors):
    return BEFORE + text(GRAPH, NODES + b"".join(text(INITIALIZER, t) for t in tensors)) + AFTER


class SplitTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def run_script(self, content):
        source, output = self.folder / "input", self.folder / "output"
        source.write_bytes(content)
        output.mkdir()
        command = [sys.executable, "-S", SCRIPT, source, output]
        return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=30), output

    def split(self, content):
        """The graph and the data that are made of a model."""
        done, output = self.run_script(content)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return (output / "model.onnx").read_bytes(), (output / "model.onnx_data").read_bytes()

    def test_moves_large_tensors_and_keeps_every_other_byte(self):
        first, small, second = b"\x01" * 1025, b"\x02" * 1023, b"\x03" * 1024
        floats = number(DATA_TYPE, 1) + text(FLOAT_DATA, b"\x04" * 4096)
        inline = number(LOCATION, 0)
        graph, data = self.split(
            model(tensor(b"first", first, inline), tensor(b"small", small, inline), floats, tensor(b"second", second))
        )
        expected = [moved(b"first", 0, 1025), tensor(b"small", small, inline), floats, moved(b"second", 1088, 1024)]
        self.assertEqual(graph, model(*expected))
        self.assertEqual(data, first + bytes(63) + second)

    def test_a_model_without_weights_stays_as_it_is(self):
        self.assertEqual(self.split(model()), (model(), b""))

    def test_numbers_of_every_length(self):
        for value in (0, 1, 127, 128, 300, 1 << 35, (1 << 64) - 1):
            encoded = script.varint(value)
            self.assertEqual(script.read_varint(encoded, 0), (value, len(encoded)))
        self.assertEqual(script.varint(300), b"\xac\x02")  # the example of the encoding's own documentation

    def test_what_is_not_a_model_is_one_sentence(self):
        for content in (model(tensor(b"first", bytes(2000)))[:-3], b"\x3a", b"\x0b", b"\x3a\x09cut"):
            with self.subTest(content=content[:8]):
                done, output = self.run_script(content)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, "^.*input is not an ONNX model: [^\n]*\n$")
                self.assertFalse((output / "model.onnx").exists())
                (output / "model.onnx_data").unlink()
                output.rmdir()


if __name__ == "__main__":
    unittest.main()
