"""Trains the head of one encoder on kept vectors. The same seed gives the same head.

    python train.py --encoder bge-small-en-v1.5 --vectors VECTORS --out HEAD PAIRS.tsv...

After each epoch HEAD/state.npz holds all that the next one needs: a stopped run goes on there.
The head is the running mean of the weights; HEAD/head.npz has it, with the idf table and the
standardisation.
"""

from __future__ import annotations

import os

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import argparse
import queue
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

import head
from batches import IDF_UNIT, Standard, Texts, in_buckets, padded
from measure import auc, recall_at
from pairs import Pair, read_pairs, read_some
from vectors import Vectors

SMOOTHING = 0.02
# Kinds whose labels are wrong more often: this share of the label goes to the other side.
DOUBT = {"qqp": 0.04, "near": 0.08, "followed": 0.06}
AVERAGE = 0.998
SAMPLE = 50_000
USUAL = 16


def idf_table(texts: Texts, numbers: np.ndarray, vocabulary: int) -> np.ndarray:
    """log((texts + 1) / (texts with the token + 1)) by token id, f16."""
    seen = np.zeros(vocabulary)
    for number in numbers:
        start, length = texts.start[number], texts.length[number]
        seen[np.unique(texts.vectors.ids[start : start + length])] += 1
    return np.log((len(numbers) + 1) / (seen + 1)).astype(np.float16)


def standards(texts: Texts, random: np.random.Generator) -> tuple[Standard, np.ndarray, np.ndarray]:
    """Mean and spread of tokens and sentences, and the first axes of each."""

    def of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mean, spread = rows.mean(0), rows.std(0) + 1e-4
        _, axes = np.linalg.eigh(np.cov(((rows - mean) / spread).T))
        return mean, spread, axes[:, ::-1][:, : head.WIDTH].astype(np.float32)

    hidden = texts.vectors.hidden
    tokens = hidden[np.sort(random.integers(len(hidden), size=SAMPLE))].astype(np.float32)
    token_mean, token_spread, token_axes = of(tokens)
    sentence_mean, sentence_spread, sentence_axes = of(texts.sentence[:SAMPLE])
    standard = Standard(token_mean, token_spread, sentence_mean, sentence_spread)
    return standard, token_axes, sentence_axes


class Data:
    """Training or development pairs of one encoder, ready to be drawn in batches."""

    def __init__(self, texts: Texts, pairs: list[Pair], trusted: bool = False) -> None:
        self.texts = texts
        self.one, self.two = texts.rows(pairs)
        self.label = np.array([pair.label for pair in pairs], np.float32)
        doubts = {} if trusted else DOUBT
        doubt = np.array([doubts.get(pair.kind, SMOOTHING) for pair in pairs], np.float32)
        self.target = self.label * (1 - 2 * doubt) + doubt
        self.lengths = np.maximum(texts.length[self.one], texts.length[self.two])

    def batches(
        self, size: int, standard: Standard, idf: np.ndarray, random: np.random.Generator | None
    ) -> Iterator[tuple[np.ndarray, tuple]]:
        """The numbers of a batch's pairs, and its arrays: both texts, target, weight.

        The next batches are made in another thread meanwhile.
        """
        ready: queue.Queue = queue.Queue(4)

        def make() -> None:
            for members, length in in_buckets(self.lengths, size, random):
                full = padded(members, size)
                weight = (np.arange(size) < len(members)).astype(np.float32)
                one = self.texts.batch(self.one[full], length, standard, idf)
                two = self.texts.batch(self.two[full], length, standard, idf)
                ready.put((members, (one, two, self.target[full], weight)))
            ready.put(None)

        threading.Thread(target=make, daemon=True).start()
        while (batch := ready.get()) is not None:
            yield batch


def logits(params: head.Params, data: Data, standard: Standard, idf: np.ndarray) -> np.ndarray:
    """The logit of each pair, in order."""
    result = np.empty(len(data.label), np.float32)
    for members, (one, two, _, _) in data.batches(64, standard, idf, None):
        result[members] = np.asarray(judge(params, one, two))[: len(members)]
    return result


@jax.jit
def judge(params: head.Params, one: head.Text, two: head.Text) -> jax.Array:
    return head.forward(params, one, two)[0]


@jax.jit
def scalars_of(params: head.Params, one: head.Text, two: head.Text) -> jax.Array:
    return head.forward(params, one, two)[1]


def loss(params: head.Params, batch: tuple, key: jax.Array, rate: float) -> jax.Array:
    one, two, target, weight = batch
    logit, _ = head.forward(params, one, two, key, rate)
    each = optax.sigmoid_binary_cross_entropy(logit, target)
    return (weight * each).sum() / weight.sum()


def optimiser(rate: float, steps: int) -> optax.GradientTransformation:
    warm = min(200, steps // 10)
    schedule = optax.warmup_cosine_decay_schedule(0, rate, warm, steps, rate * 0.02)
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=0.02))


def scalar_moments(params: head.Params, data: Data, standard: Standard, idf: np.ndarray) -> tuple:
    """Mean and spread of the scalars over some batches of usual length, before training."""
    raw = []
    for members, length in in_buckets(data.lengths, 64, np.random.default_rng(0)):
        if length == USUAL and len(members) == 64 and len(raw) < 40:
            one = data.texts.batch(data.one[members], length, standard, idf)
            two = data.texts.batch(data.two[members], length, standard, idf)
            raw.append(np.asarray(scalars_of(params, one, two)))
    rows = np.concatenate(raw)
    return jnp.asarray(rows.mean(0)), jnp.asarray(rows.std(0) + 1e-3)


def part_of(pair: Pair, parts: int) -> int:
    """Which of the parts a pair is in, the same for all pairs of its first question."""
    return zlib.crc32(pair.a.encode()) % parts


def learn_from(data: Data, pairs: list[Pair], folders: list[Path], mix: float) -> None:
    """Mixes into the targets what heads say that have not seen the pair: labels are noisy."""
    said: dict[tuple[str, str], list[float]] = {}
    for folder in folders:
        with np.load(folder / "left.npz") as stored:
            for a, b, logit in zip(stored["a"], stored["b"], stored["logit"], strict=True):
                said.setdefault((str(a), str(b)), []).append(float(logit))
    for number, pair in enumerate(pairs):
        if pair.texts in said:
            chance = 1 / (1 + np.exp(-np.mean(said[pair.texts])))
            data.target[number] = (1 - mix) * data.target[number] + mix * chance


def save(path: Path, tree: object) -> None:
    leaves = jax.tree.leaves(tree)
    partial = path.with_suffix(".tmp")
    with partial.open("wb") as file:
        np.savez(file, **{f"{number:04}": np.asarray(leaf) for number, leaf in enumerate(leaves)})
    partial.rename(path)


def load(path: Path, like: object) -> object:
    with np.load(path) as stored:
        leaves = [jnp.asarray(stored[name]) for name in sorted(stored.files)]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("pairs", nargs="+", help="FILE, or FILE:N for its first N pairs")
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--vocabulary", type=int, required=True, help="token ids of the encoder")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dev", type=Path, nargs="*", default=[])
    parser.add_argument("--dev-vectors", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--until", type=int, help="stop after this epoch of the schedule")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--dropout", type=float, default=0.15)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--small", action="store_true", help="the small shape of the head")
    parser.add_argument("--trust", action="store_true", help="all labels alike, whatever the kind")
    parser.add_argument(
        "--fold", help="K:N: leave out the K-th of N parts, and judge it at the end"
    )
    parser.add_argument(
        "--soft", type=Path, nargs="*", default=[], help="heads of folds to learn from"
    )
    parser.add_argument(
        "--mix", type=float, default=0.5, help="how much they count beside the label"
    )
    arguments = parser.parse_args()

    arguments.out.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(arguments.out.parent / "compiled"))
    random = np.random.default_rng(arguments.seed)
    texts = Texts(Vectors(arguments.vectors), arguments.encoder)
    pairs = [pair for file in arguments.pairs for pair in read_some(file)]
    kept, left = pairs, []
    if arguments.fold:
        which, parts = (int(number) for number in arguments.fold.split(":"))
        kept = [pair for pair in pairs if part_of(pair, parts) != which]
        left = [pair for pair in pairs if part_of(pair, parts) == which]
    data = Data(texts, kept, arguments.trust)
    if arguments.soft:
        learn_from(data, kept, arguments.soft, arguments.mix)
    used = np.unique(np.concatenate([data.one, data.two]))
    idf = idf_table(texts, used, arguments.vocabulary)
    standard, token_axes, sentence_axes = standards(texts, random)
    dev = {}
    if arguments.dev:
        dev_texts = Texts(Vectors(arguments.dev_vectors), arguments.encoder)
        dev = {file.stem: Data(dev_texts, read_pairs(file)) for file in arguments.dev}

    steps = sum(1 for _ in in_buckets(data.lengths, arguments.batch)) * arguments.epochs
    optimise = optimiser(arguments.rate, steps)
    params = head.init(arguments.seed, token_axes, sentence_axes, arguments.small)
    moments = scalar_moments(params, data, standard, idf)
    params["scalar_mean"], params["scalar_spread"] = moments
    state = (params, optimise.init(params), params, jnp.int32(0))
    resumed = arguments.out / "state.npz"
    if resumed.exists():
        state = load(resumed, state)

    @jax.jit
    def step(state: tuple, batch: tuple, key: jax.Array) -> tuple:
        params, memory, mean, epoch = state
        value, gradient = jax.value_and_grad(loss)(params, batch, key, arguments.dropout)
        change, memory = optimise.update(gradient, memory, params)
        params = optax.apply_updates(params, change)
        # Weight decay must not touch what is not trained.
        params["scalar_mean"], params["scalar_spread"] = moments
        mean = jax.tree.map(lambda old, new: old * AVERAGE + new * (1 - AVERAGE), mean, params)
        return (params, memory, mean, epoch), value

    print(f"{len(pairs)} pairs, {len(used)} texts, {steps} steps", flush=True)
    for epoch in range(int(state[3]), arguments.until or arguments.epochs):
        began, losses = time.monotonic(), []
        order = np.random.default_rng((arguments.seed, epoch))
        keys = jax.random.split(jax.random.PRNGKey(arguments.seed * 1000 + epoch), steps)
        batches = data.batches(arguments.batch, standard, idf, order)
        for number, (_, batch) in enumerate(batches):
            state, value = step(state, batch, keys[number])
            if epoch == 0 and number == 200:
                state = (state[0], state[1], state[0], state[3])
            losses.append(value)
            if number % 100 == 99:
                recent = np.mean([float(value) for value in losses[-100:]])
                took = time.monotonic() - began
                print(f"step {number + 1}: loss {recent:.4f}, {took:.0f} s", flush=True)
        state = (*state[:3], jnp.int32(epoch + 1))
        save(resumed, state)
        weights = {name: np.asarray(value) for name, value in state[2].items()}
        np.savez(
            arguments.out / "head.npz", idf=idf, encoder=arguments.encoder, seed=arguments.seed,
            pairs=len(pairs), idf_unit=IDF_UNIT, **vars(standard), **weights,
        )  # fmt: skip
        line = f"epoch {epoch + 1}: loss {np.mean([float(value) for value in losses]):.4f}"
        line += f", {time.monotonic() - began:.0f} s"
        for name, part in dev.items():
            score = logits(state[2], part, standard, idf)
            line += f"; {name} {auc(part.label, score):.4f}"
            line += f" {recall_at(part.label, score, 0.01):.3f}"
            line += f" {recall_at(part.label, score, 0.05):.3f}"
        print(line, flush=True)
    if left:
        logit = logits(state[2], Data(texts, left), standard, idf)
        a, b = [pair.a for pair in left], [pair.b for pair in left]
        np.savez(arguments.out / "left.npz", a=a, b=b, logit=logit)


if __name__ == "__main__":
    main()
