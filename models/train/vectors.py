"""Token vectors of an encoder for every text of some pair files, kept on disk.

    python vectors.py --encoder models/bge-small-en-v1.5 --out VECTORS PAIRS.tsv...

Texts that VECTORS already holds are left out, so a stopped run goes on where it was, and a new
pair file costs only its new texts. A shard holds whole sequences, as the encoder saw them:
special tokens, prefix and all. Texts of more than `--window` tokens are cut.

The encoders quantise activations by the largest one in the batch, so a text's vectors depend
a little on its neighbours. Serving is one text at a time: measure with `--batch 1`. Training does
not mind, and equal lengths share a batch there.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import onnxruntime as ort
from tokenizers import Tokenizer

from pairs import read_some

SHARD = 2000
PREFIX = {"bge-small-en-v1.5": "", "multilingual-e5-small": "query: "}


class Encoder:
    """An encoder's folder, run as the server runs it: one thread, no padding."""

    def __init__(self, folder: Path, window: int) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = ort.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self.inputs = {value.name for value in self.session.get_inputs()}
        self.output = self.session.get_outputs()[0].name
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(window)
        self.prefix = PREFIX[folder.name]

    def ids(self, texts: list[str]) -> list[list[int]]:
        """The token ids of each text, special tokens included."""
        batch = self.tokenizer.encode_batch([self.prefix + text for text in texts])
        return [tokens.ids for tokens in batch]

    def hidden(self, ids: list[list[int]]) -> np.ndarray:
        """The last hidden state of sequences of one length: [texts, tokens, 384], f32."""
        tokens = np.array(ids, np.int64)
        feeds = {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}
        if "token_type_ids" in self.inputs:
            feeds["token_type_ids"] = np.zeros_like(tokens)
        return self.session.run([self.output], feeds)[0]


class Vectors:
    """All shards of a folder: token ids and vectors of text `i` lie at `start[i]`, `length[i]`."""

    def __init__(self, folder: Path) -> None:
        shards = sorted(folder.glob("*.npz"))
        if not shards:
            raise SystemExit(f"{folder} holds no vectors: run vectors.py first")
        parts = [np.load(shard) for shard in shards]
        self.ids = np.concatenate([part["ids"] for part in parts])
        self.hidden = np.concatenate([part["hidden"] for part in parts])
        self.length = np.concatenate([part["length"] for part in parts]).astype(np.int64)
        self.start = np.cumsum(self.length) - self.length
        texts = [text for shard in shards for text in read_texts(shard)]
        self.index = {text: number for number, text in enumerate(texts)}


def read_texts(shard: Path) -> list[str]:
    """The texts of a shard, in order."""
    return json.loads(shard.with_suffix(".json").read_text(encoding="utf-8"))


def encode(encoder: Encoder, texts: list[str], batch: int) -> dict[str, np.ndarray]:
    """Ids and vectors of the texts, one sequence after another."""
    ids = encoder.ids(texts)
    hidden: list[np.ndarray] = [np.empty(0)] * len(texts)
    order = sorted(range(len(texts)), key=lambda number: len(ids[number]))
    at = 0
    while at < len(order):
        end = at + 1
        while end < len(order) and end - at < batch and len(ids[order[end]]) == len(ids[order[at]]):
            end += 1
        members = order[at:end]
        rows = encoder.hidden([ids[number] for number in members])
        for row, number in zip(rows, members, strict=True):
            hidden[number] = row.astype(np.float16)
        at = end
    return {
        "ids": np.concatenate([np.array(row, np.int32) for row in ids]),
        "hidden": np.concatenate(hidden),
        "length": np.array([len(row) for row in ids], np.int32),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("pairs", nargs="+", help="FILE, or FILE:N for its first N pairs")
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--window", type=int, default=80)
    arguments = parser.parse_args()

    arguments.out.mkdir(parents=True, exist_ok=True)
    known = {text for shard in arguments.out.glob("*.npz") for text in read_texts(shard)}
    number = len(list(arguments.out.glob("*.npz")))
    sides = (side for file in arguments.pairs for pair in read_some(file) for side in pair.texts)
    texts = [text for text in dict.fromkeys(sides) if text not in known]
    encoder = Encoder(arguments.encoder, arguments.window)
    began = time.monotonic()
    for at in range(0, len(texts), SHARD):
        part = texts[at : at + SHARD]
        shard = arguments.out / f"{number:04}.npz"
        number += 1
        arrays = encode(encoder, part, arguments.batch)
        shard.with_suffix(".json").write_text(
            json.dumps(part, ensure_ascii=False), encoding="utf-8"
        )
        partial = shard.with_suffix(".tmp")
        with partial.open("wb") as file:
            np.savez(file, **arrays)
        partial.rename(shard)
        each = (time.monotonic() - began) / (at + len(part)) * 1000
        print(f"{at + len(part)} of {len(texts)} texts, {each:.2f} ms each", flush=True)


if __name__ == "__main__":
    main()
