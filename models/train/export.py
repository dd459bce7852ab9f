"""Writes a trained head as two ONNX graphs, and checks them against the training code.

    python export.py --head HEAD --encoder models/ENCODER --out models/verifier/ENCODER

`project.onnx`: hidden [L, 384] f32 -> projected [L, 128] f32, whose values are exact in f16.
`compare.onnx`: a [La, 128] f32, a_ids [La] i64, b [Lb, 128] f32, b_ids [Lb] i64 -> logit [1] f32.
Both take a text as the encoder does: special tokens, prefix and all. Row 0 of `projected` stands
for the whole text; the graph of the comparison leaves the other rows without meaning out.
`reference.json` holds texts, token ids and logits for tests elsewhere.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import onnxruntime as ort
from onnx import TensorProto

import head
from batches import BEFORE, IDF_UNIT, MEAN, Standard
from graph import Graph, Value
from vectors import Encoder

WEIGHTS = (
    "token token_in token_in_bias token_out token_bias sentence sentence_bias sharpness same_token "
    "distance compare compare_bias window window_bias ask answer ask_own answer_own second "
    "second_bias attention decide decide_bias logit logit_bias scalar_mean scalar_spread"
).split()
# What graph and training code may differ by: f16 rounds some values of a row the other way.
WIDEST = 6e-3


class Head:
    """A trained head, with the weights as the graphs hold them."""

    def __init__(self, folder: Path) -> None:
        stored = np.load(folder / "head.npz")
        self.encoder = str(stored["encoder"])
        self.note = f"encoder {self.encoder}, seed {stored['seed']}, {stored['pairs']} pairs"
        self.idf = stored["idf"]
        self.weights = {
            name: np.asarray(stored[name], np.float32) for name in WEIGHTS if name in stored
        }
        self.standard = Standard(
            stored["token_mean"], stored["token_spread"],
            stored["sentence_mean"], stored["sentence_spread"],
        )  # fmt: skip
        calibration = folder / "calibration.json"
        self.scale, self.shift = 1.0, 0.0
        if calibration.exists():
            values = json.loads(calibration.read_text())
            self.scale, self.shift = values["scale"], values["shift"]


def write_project(given: Head, path: Path) -> None:
    """Standardisation goes into the weights; the layer norm has no weights of its own."""
    graph = Graph()
    hidden = graph.input("hidden")

    def projection(rows: Value, name: str, mean: np.ndarray, spread: np.ndarray) -> Value:
        weight = given.weights[name] / spread[:, None]
        bias = -(mean / spread) @ given.weights[name]
        if f"{name}_bias" in given.weights:
            bias = bias + given.weights[f"{name}_bias"]
        return rows @ graph.constant(weight.astype(np.float32), name) + graph.constant(
            bias.astype(np.float32), f"{name}_bias"
        )

    standard = given.standard
    whole = hidden.mean(0, keep=1) if MEAN[given.encoder] else hidden.part(0, 1)
    first = projection(whole, "sentence", standard.sentence_mean, standard.sentence_spread)
    tokens = hidden.part(1, 2**31)
    rest = projection(tokens, "token", standard.token_mean, standard.token_spread)
    if "token_in" in given.weights:
        bent = projection(tokens, "token_in", standard.token_mean, standard.token_spread)
        bent = graph.op("Relu", bent) @ graph.constant(given.weights["token_out"], "token_out")
        rest = rest + bent
    rows = graph.op("Concat", first, rest, axis=0)
    ones, zeros = np.ones(head.WIDTH, np.float32), np.zeros(head.WIDTH, np.float32)
    scale, bias = graph.constant(ones, "ones"), graph.constant(zeros, "zeros")
    rows = graph.op("LayerNormalization", rows, scale, bias, axis=-1, epsilon=1e-5)
    half = graph.op("Cast", rows, to=TensorProto.FLOAT16)
    graph.op("Cast", half, to=TensorProto.FLOAT, name="projected")
    graph.save(
        path,
        {"hidden": (TensorProto.FLOAT, ["length", 384])},
        {"projected": ["length", head.WIDTH]},
        given.note,
    )


def weighted(weights: Value, numbers: Value) -> Value:
    """[n, m] times [m]. Not a matrix product: ONNX Runtime 1.32 fuses a transposed matrix and a
    vector into one that is wrong.
    """
    return (weights * numbers.row()).sum(1)


class Comparison:
    """The graph of `head.forward` for one pair, without padding."""

    def __init__(self, given: Head) -> None:
        self.graph = graph = Graph()
        self.before = BEFORE[given.encoder]
        kept = {
            name: graph.weight(value, name)
            for name, value in given.weights.items()
            if value.ndim == 2 and not name.startswith(("token", "sentence", "logit"))
        }
        exact = {
            name: graph.constant(given.weights[name], name)
            for name in given.weights
            if name not in kept and not name.startswith(("token", "sentence", "logit"))
        }
        exact["logit"] = graph.constant(given.weights["logit"] * np.float32(given.scale), "logit_w")
        bias = given.weights["logit_bias"] * np.float32(given.scale) + np.float32(given.shift)
        exact["logit_bias"] = graph.constant(bias, "logit_b")
        self.weight = kept | exact
        self.idf = graph.constant(given.idf, "idf")

    def side(self, name: str) -> tuple[Value, Value, Value, Value, Value]:
        """Sentence row, token rows, ids, position and idf of one text."""
        graph = self.graph
        rows, ids = graph.input(name), graph.input(f"{name}_ids").part(self.before, -1)
        body = rows.part(self.before, -1)
        count = graph.op("Squeeze", graph.op("Shape", ids), graph.integers([0]))
        zero, one = graph.constant(np.int64(0)), graph.constant(np.int64(1))
        position = graph.floats(graph.op("Range", zero, count, one)) / graph.floats(count)
        idf = graph.floats(graph.op("Gather", self.idf, ids, axis=0)) / IDF_UNIT
        return rows.part(0, 1), body, ids, position, idf

    def features(
        self, position: Value, other_position: Value, idf: Value,
        cosine: Value, same: Value, attention: Value,
    ) -> tuple[Value, dict[str, Value], dict[str, Value]]:  # fmt: skip
        """As `head.token_features`: columns per token, scalars of the side, sums of the side."""
        graph = self.graph
        exact, best = same.largest(1), cosine.largest(1)
        offset = position - weighted(attention, other_position)
        gap = graph.op("Abs", position.column() - other_position.row())
        near = same * graph.op("Exp", gap * -head.NEARBY)
        partner = weighted(near, other_position) / (near.sum(1) + 1e-6)
        order = (position.column() - position.row()) * (partner.column() - partner.row())
        passed = graph.floats(graph.op("Less", order, -1e-5)) * exact.column() * exact.row()
        inverted = passed.sum(1) / graph.op("Max", exact.sum(), 1.0)
        both = same.part(0, -1, (0, 1)) * same.part(1, 2**31, (0, 1))
        right = graph.op("Pad", both, graph.integers([0, 0, 1, 1])).largest(1)
        left = graph.op("Pad", both, graph.integers([1, 1, 0, 0])).largest(1)
        lone = 1.0 - exact
        unmatched = lone * idf
        columns = [exact, idf - 1.0, position, unmatched, offset, attention.largest(1), best,
                   inverted, left, right]  # fmt: skip
        table = graph.op("Concat", *(value.column() for value in columns), axis=1)
        weight = idf.sum()
        scalars = {
            "best": best.mean(),
            "worst": best.smallest(),
            "weighted": (best * idf).sum() / weight,
            "unmatched": graph.op("Log", lone.sum() + 1.0),
            "unmatched_idf": graph.op("Log", unmatched.sum() + 1.0),
            "rarest": unmatched.largest(),
            "loneliest": graph.op("Min", (best + exact * 9.0).smallest(), 1.0),
            "odd": ((1.0 - best) * idf).largest(),
            "inverted": inverted.mean(),
            "beside": right.mean(),
        }
        sums = {"count": graph.floats(graph.op("Size", idf)), "weight": weight}
        sums |= {"exact": exact.sum(), "exact_idf": (exact * idf).sum()}
        return table, scalars, sums

    def looked(self, own: Value, aligned: Value, table: Value) -> Value:
        graph, weight = self.graph, self.weight
        gap = graph.op("Abs", own - aligned)
        rows = graph.op("Concat", own, aligned, gap, own * aligned, table, axis=1)
        rows = graph.op("Relu", rows @ weight["compare"] + weight["compare_bias"])
        wide = graph.op("Pad", rows, graph.integers([1, 0, 1, 0]))
        window = graph.op("Concat", wide.part(0, -2), rows, wide.part(2, 2**31), axis=1)
        return graph.op("Relu", window @ weight["window"] + weight["window_bias"])

    def attended(self, name: str, seen: Value, other: Value) -> Value:
        asked, answer = seen @ self.weight[f"ask{name}"], other @ self.weight[f"answer{name}"]
        score = (asked @ answer.turned) * float(1 / np.sqrt(head.ASKED))
        return self.graph.op("Softmax", score, axis=1) @ other

    def pooled(self, seen: Value, other: Value) -> Value:
        graph, weight = self.graph, self.weight
        if "second" in weight:
            looks = seen, self.attended("", seen, other), self.attended("_own", seen, seen)
            second = graph.op("Concat", *looks, axis=1) @ weight["second"] + weight["second_bias"]
            seen = seen + graph.op("Relu", second)
        share = graph.op("Softmax", seen @ weight["attention"], axis=0)
        parts = seen.mean(0), seen.largest(0), (seen * share).sum(0)
        return graph.op("Concat", *parts, axis=0)

    def scalars(self, firsts: tuple, bodies: tuple, same: Value, a: tuple, b: tuple) -> Value:
        graph = self.graph
        means = [body.mean(0) for body in bodies]
        norms = graph.op("Sqrt", (means[0] * means[0]).sum() * (means[1] * means[1]).sum()) + 1e-6
        (_, found_a, sums_a), (_, found_b, sums_b) = a, b
        shorter = graph.op("Min", sums_a["count"], sums_b["count"])
        longer = graph.op("Max", sums_a["count"], sums_b["count"])
        values = [
            (firsts[0] * firsts[1]).sum() / float(head.WIDTH),
            (means[0] * means[1]).sum() / norms,
            (sums_a["exact"] + sums_b["exact"]) / (sums_a["count"] + sums_b["count"]),
            (sums_a["exact_idf"] + sums_b["exact_idf"]) / (sums_a["weight"] + sums_b["weight"]),
            same.part(0, 1, (0, 1)).sum(),
            same.part(-1, 2**31, (0, 1)).sum(),
            shorter / longer,
            graph.op("Log", longer - shorter + 1.0),
            graph.op("Log", longer),
        ]
        for name in found_a:
            values.append(graph.op("Min", found_a[name], found_b[name]))
            values.append(graph.op("Max", found_a[name], found_b[name]))
        return graph.op("Concat", *(value.row() for value in values), axis=0)

    def write(self, path: Path, note: str) -> None:
        graph, weight = self.graph, self.weight
        first_a, body_a, ids_a, position_a, idf_a = self.side("a")
        first_b, body_b, ids_b, position_b, idf_b = self.side("b")
        same = graph.floats(graph.op("Equal", ids_a.column(), ids_b.row()))
        product = body_a @ body_b.turned
        gap = graph.op("Abs", position_a.column() - position_b.row())
        score = product * (weight["sharpness"] / float(np.sqrt(head.WIDTH)))
        score = score + weight["same_token"] * same - weight["distance"] * gap
        to_b = graph.op("Softmax", score, axis=1)
        to_a = graph.op("Softmax", score.turned, axis=1)
        cosine = product / float(head.WIDTH)
        a = self.features(position_a, position_b, idf_a, cosine, same, to_b)
        b = self.features(position_b, position_a, idf_b, cosine.turned, same.turned, to_a)
        seen_a = self.looked(body_a, to_b @ body_b, a[0])
        seen_b = self.looked(body_b, to_a @ body_a, b[0])
        pool_a, pool_b = self.pooled(seen_a, seen_b), self.pooled(seen_b, seen_a)
        raw = self.scalars((first_a, first_b), (body_a, body_b), same, a, b)
        scaled = (raw - weight["scalar_mean"]) / weight["scalar_spread"]
        scaled = graph.op("Clip", scaled, -head.CLIP, head.CLIP)
        apart = graph.op("Abs", pool_a - pool_b)
        joined = graph.op("Concat", pool_a + pool_b, apart, scaled, axis=0)
        decided = graph.op("Relu", joined @ weight["decide"] + weight["decide_bias"])
        graph.op("Add", decided @ weight["logit"], weight["logit_bias"], name="logit")
        rows, ids = TensorProto.FLOAT, TensorProto.INT64
        inputs = {
            "a": (rows, ["a_length", head.WIDTH]),
            "a_ids": (ids, ["a_length"]),
            "b": (rows, ["b_length", head.WIDTH]),
            "b_ids": (ids, ["b_length"]),
        }
        graph.save(path, inputs, {"logit": [1]}, note)


def session(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class Graphs:
    """Both graphs beside their encoder, as a server runs them."""

    def __init__(self, folder: Path, encoder: Path) -> None:
        self.project = session(folder / "project.onnx")
        self.compare = session(folder / "compare.onnx")
        self.encoder = Encoder(encoder, 512)
        self.times: dict[str, list[float]] = {"project": [], "compare": []}

    def text(self, text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hidden state, projected rows and ids."""
        ids = self.encoder.ids([text])
        hidden = self.encoder.hidden(ids)[0]
        began = time.perf_counter()
        rows = self.project.run(None, {"hidden": hidden})[0]
        self.times["project"].append(time.perf_counter() - began)
        return hidden, rows, np.array(ids[0], np.int64)

    def logit(self, a: tuple, b: tuple) -> float:
        feeds = {"a": a[1], "a_ids": a[2], "b": b[1], "b_ids": b[2]}
        began = time.perf_counter()
        value = self.compare.run(None, feeds)[0][0]
        self.times["compare"].append(time.perf_counter() - began)
        return float(value)


def trained_logit(given: Head, a: tuple, b: tuple) -> float:
    """The same by the training code."""

    def text(hidden: np.ndarray, ids: np.ndarray) -> head.Text:
        before, standard = BEFORE[given.encoder], given.standard
        hidden = hidden.astype(np.float32)
        first = hidden.mean(0) if MEAN[given.encoder] else hidden[0]
        body = (hidden[before:-1] - standard.token_mean) / standard.token_spread
        body_ids = ids[before:-1]
        return head.Text(
            jnp.asarray((first - standard.sentence_mean) / standard.sentence_spread)[None],
            jnp.asarray(body)[None],
            jnp.asarray(body_ids)[None],
            jnp.asarray(given.idf[body_ids].astype(np.float32) / IDF_UNIT)[None],
            jnp.ones((1, len(body_ids))),
        )

    value, _ = head.forward(given.weights, text(a[0], a[2]), text(b[0], b[2]))
    return float(value[0]) * given.scale + given.shift


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--head", type=Path, required=True)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()

    given = Head(arguments.head)
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_project(given, arguments.out / "project.onnx")
    Comparison(given).write(arguments.out / "compare.onnx", given.note)
    graphs = Graphs(arguments.out, arguments.encoder)
    questions = json.loads((Path(__file__).parent / "reference_questions.json").read_text())
    reference, widest = [], 0.0
    for one, two in questions[given.encoder]:
        a, b = graphs.text(one), graphs.text(two)
        logit, turned = graphs.logit(a, b), graphs.logit(b, a)
        trained = trained_logit(given, a, b)
        widest = max(widest, abs(logit - trained), abs(logit - turned))
        print(f"{logit:8.4f} {trained:8.4f} {turned:8.4f}  {one} | {two}")
        reference.append(
            {"a": one, "b": two, "a_ids": a[2].tolist(), "b_ids": b[2].tolist(), "logit": logit}
        )
    (arguments.out / "reference.json").write_text(
        json.dumps(reference, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    for name in ("project.onnx", "compare.onnx", "reference.json"):
        content = (arguments.out / name).read_bytes()
        print(f"{len(content):9,} bytes {hashlib.sha256(content).hexdigest()} {name}")
    for name, times in graphs.times.items():
        usual, slow = np.percentile(times, [50, 90]) * 1000
        print(f"{name}: {usual:.3f} ms, nine of ten {slow:.3f} ms")
    print(f"widest difference {widest:.5f}")
    if widest > WIDEST:
        raise SystemExit("the graphs do not compute what was trained")


if __name__ == "__main__":
    main()
