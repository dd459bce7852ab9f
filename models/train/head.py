"""The pair verifier: a head over an encoder's token vectors, as a pure function.

A text is a row of projected tokens [length, 128] whose first row stands for the whole text. Two
texts are aligned softly both ways; every token is compared with what it was aligned with and looked
at with its neighbours; the pooled comparisons and some scalars of the pair give one logit. Swapping
the two texts gives the same logit.

Everything is computed from the projected tokens and the token ids, so that a stored question needs
nothing else; the arithmetic here and in `export.py` must stay the same, which `export.py` checks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

WIDTH = 128
COMPARED = 128
# The large shape only: hidden units of the projection, width of the second look's questions.
PROJECTED = 192
ASKED = 64
TOKEN_FEATURES = 10
SCALARS = 29
MASKED = -1e4
CLIP = 5.0
NEARBY = 8.0

Params = dict[str, Any]


class Text(NamedTuple):
    """A batch of texts, padded: the sentence vector, and the tokens without special ones."""

    first: jax.Array  # [batch, 384], standardised
    body: jax.Array  # [batch, length, 384], standardised
    ids: jax.Array  # [batch, length], negative where padded
    idf: jax.Array  # [batch, length], 1 is usual
    mask: jax.Array  # [batch, length]


class Side(NamedTuple):
    """One text as the comparison sees it."""

    rows: jax.Array
    position: jax.Array
    idf: jax.Array
    mask: jax.Array


def init(
    seed: int, token_axes: np.ndarray, sentence_axes: np.ndarray, small: bool = False
) -> Params:
    """Weights from a seed. The axes [384, 128] start the projections (principal components).

    The large shape bends the projection and looks at both texts a second time; the small one
    does neither, which `forward` sees by what is not there.
    """
    keys = iter(jax.random.split(jax.random.PRNGKey(seed), 8 if small else 16))
    windowed, decided = (80, 96) if small else (96, 128)

    def dense(rows: int, columns: int, scale: float | None = None) -> jax.Array:
        return jax.random.normal(next(keys), (rows, columns)) * (scale or np.sqrt(2 / rows))

    def large(**more: Callable[[], jax.Array]) -> Params:
        return {} if small else {name: make() for name, make in more.items()}

    asking = 0.3 / np.sqrt(windowed)
    return {
        "token": jnp.asarray(token_axes),
        "token_bias": jnp.zeros(WIDTH),
        **large(
            token_in=lambda: dense(token_axes.shape[0], PROJECTED),
            token_in_bias=lambda: jnp.zeros(PROJECTED),
            token_out=lambda: dense(PROJECTED, WIDTH, 0.02),
        ),
        "sentence": jnp.asarray(sentence_axes),
        "sentence_bias": jnp.zeros(WIDTH),
        "sharpness": jnp.float32(2.0),
        "same_token": jnp.float32(2.0),
        "distance": jnp.float32(1.0),
        "compare": dense(4 * WIDTH + TOKEN_FEATURES, COMPARED),
        "compare_bias": jnp.zeros(COMPARED),
        "window": dense(3 * COMPARED, windowed),
        "window_bias": jnp.zeros(windowed),
        "attention": dense(windowed, 1),
        **large(
            ask=lambda: dense(windowed, ASKED, asking),
            answer=lambda: dense(windowed, ASKED, asking),
            ask_own=lambda: dense(windowed, ASKED, asking),
            answer_own=lambda: dense(windowed, ASKED, asking),
            second=lambda: dense(3 * windowed, windowed),
            second_bias=lambda: jnp.zeros(windowed),
        ),
        "decide": dense(6 * windowed + SCALARS, decided),
        "decide_bias": jnp.zeros(decided),
        "logit": dense(decided, 1, 0.1),
        "logit_bias": jnp.zeros(1),
        # Not trained: mean and spread of the scalars, set from a sample before training.
        "scalar_mean": jnp.zeros(SCALARS),
        "scalar_spread": jnp.ones(SCALARS),
    }


def normalised(rows: jax.Array) -> jax.Array:
    mean = rows.mean(-1, keepdims=True)
    variance = ((rows - mean) ** 2).mean(-1, keepdims=True)
    return (rows - mean) / jnp.sqrt(variance + 1e-5)


def halved(rows: jax.Array) -> jax.Array:
    """Rounded to f16, as rows are stored; the gradient passes as if they were not."""
    return rows + jax.lax.stop_gradient(rows.astype(jnp.float16).astype(jnp.float32) - rows)


def dropped(key: jax.Array | None, rows: jax.Array, rate: float) -> jax.Array:
    """Dropout of whole channels of a text."""
    if key is None:
        return rows
    shape = (rows.shape[0], *(1,) * (rows.ndim - 2), rows.shape[-1])
    return rows * jax.random.bernoulli(key, 1 - rate, shape) / (1 - rate)


def project(params: Params, text: Text, key: jax.Array | None, rate: float, half: bool) -> tuple:
    """The sentence row and the token rows of a text."""
    keys = (None, None) if key is None else jax.random.split(key)
    first = dropped(keys[0], text.first, rate) @ params["sentence"] + params["sentence_bias"]
    given = dropped(keys[1], text.body, rate)
    body = given @ params["token"]
    if "token_in" in params:
        bent = jax.nn.relu(given @ params["token_in"] + params["token_in_bias"])
        body = body + bent @ params["token_out"]
    body = body + params["token_bias"]
    rows = normalised(first), normalised(body)
    return tuple(halved(row) for row in rows) if half else rows


def token_features(
    side: Side, other: Side, cosine: jax.Array, same: jax.Array, attention: jax.Array
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """What a token shows beside its vector. `cosine`, `same`, `attention`: [batch, own, other]."""
    mask = side.mask
    exact = same.max(-1)
    best = (cosine + MASKED * (1 - other.mask)[:, None, :]).max(-1)
    offset = side.position - jnp.einsum("bij,bj->bi", attention, other.position)
    # Where the same token stands in the other text, and how many tokens passed each other.
    gap = jnp.abs(side.position[:, :, None] - other.position[:, None, :])
    near = same * jnp.exp(-NEARBY * gap)
    partner = jnp.einsum("bij,bj->bi", near, other.position) / (near.sum(-1) + 1e-6)
    own_order = side.position[:, :, None] - side.position[:, None, :]
    partner_order = partner[:, :, None] - partner[:, None, :]
    passed = (own_order * partner_order < -1e-5) * exact[:, :, None] * exact[:, None, :]
    inverted = passed.sum(-1) / jnp.maximum(exact.sum(-1, keepdims=True), 1)
    # Whether the neighbours stand beside the same token in the other text, too.
    both = same[:, :-1, :-1] * same[:, 1:, 1:]
    right = jnp.pad(both, ((0, 0), (0, 1), (0, 1))).max(-1)
    left = jnp.pad(both, ((0, 0), (1, 0), (1, 0))).max(-1)
    unmatched = (1 - exact) * side.idf * mask
    features = [exact, side.idf - 1, side.position, unmatched, offset, attention.max(-1), best,
                inverted, left, right]  # fmt: skip
    count = mask.sum(-1)
    weight = (side.idf * mask).sum(-1)
    lone = mask * (1 - exact)
    scalars = {
        "best": (best * mask).sum(-1) / count,
        "worst": (best + 9 * (1 - mask)).min(-1),
        "weighted": (best * side.idf * mask).sum(-1) / weight,
        "unmatched": jnp.log1p(lone.sum(-1)),
        "unmatched_idf": jnp.log1p(unmatched.sum(-1)),
        "rarest": unmatched.max(-1),
        "loneliest": jnp.minimum((best + 9 * (1 - lone)).min(-1), 1),
        "odd": ((1 - best) * side.idf * mask).max(-1),
        "inverted": (inverted * mask).sum(-1) / count,
        "beside": (right * mask).sum(-1) / count,
    }
    whole = {"count": count, "weight": weight, "exact": exact.sum(-1)}
    whole["exact_idf"] = (exact * side.idf * mask).sum(-1)
    return jnp.stack(features, -1) * mask[..., None], scalars | {"whole": whole}


def scalars(firsts: tuple, sides: tuple, found: tuple, same: jax.Array) -> jax.Array:
    """[batch, SCALARS]: what describes the pair as a whole; symmetric."""
    (a, b), (first_a, first_b) = sides, firsts
    mean_a = (a.rows * a.mask[..., None]).sum(1) / a.mask.sum(-1)[:, None]
    mean_b = (b.rows * b.mask[..., None]).sum(1) / b.mask.sum(-1)[:, None]
    norms = jnp.sqrt((mean_a**2).sum(-1) * (mean_b**2).sum(-1)) + 1e-6
    whole_a, whole_b = found[0]["whole"], found[1]["whole"]

    def share(part: str, of: str) -> jax.Array:
        return (whole_a[part] + whole_b[part]) / (whole_a[of] + whole_b[of])

    shorter = jnp.minimum(whole_a["count"], whole_b["count"])
    longer = jnp.maximum(whole_a["count"], whole_b["count"])
    last = jnp.einsum("bij,bi,bj->b", same, is_last(a.mask), is_last(b.mask))
    values = [
        (first_a * first_b).sum(-1) / WIDTH,
        (mean_a * mean_b).sum(-1) / norms,
        share("exact", "count"),
        share("exact_idf", "weight"),
        same[:, 0, 0],
        last,
        shorter / longer,
        jnp.log1p(longer - shorter),
        jnp.log(longer),
    ]
    for name in found[0]:
        if name != "whole":
            values.append(jnp.minimum(found[0][name], found[1][name]))
            values.append(jnp.maximum(found[0][name], found[1][name]))
    return jnp.stack(values, -1)


def is_last(mask: jax.Array) -> jax.Array:
    return mask - jnp.pad(mask[:, 1:], ((0, 0), (0, 1)))


def looked(
    params: Params, side: Side, aligned: jax.Array, features: jax.Array, key: Any, rate: float
) -> jax.Array:
    """One text's comparisons, token by token, each seen with its neighbours."""
    own, mask = side.rows, side.mask[..., None]
    compared = [own, aligned, jnp.abs(own - aligned), own * aligned, features]
    rows = jnp.concatenate(compared, -1) @ params["compare"] + params["compare_bias"]
    rows = dropped(key, jax.nn.relu(rows) * mask, rate)
    before = jnp.pad(rows[:, :-1], ((0, 0), (1, 0), (0, 0)))
    after = jnp.pad(rows[:, 1:], ((0, 0), (0, 1), (0, 0)))
    window = jnp.concatenate([before, rows, after], -1) @ params["window"] + params["window_bias"]
    return jax.nn.relu(window) * mask


def attended(params: Params, name: str, seen: jax.Array, other: jax.Array, mask: Any) -> jax.Array:
    """What each token of `seen` finds among the tokens of `other`."""
    asked, answer = seen @ params[f"ask{name}"], other @ params[f"answer{name}"]
    score = jnp.einsum("bid,bjd->bij", asked, answer) / np.sqrt(ASKED)
    return jax.nn.softmax(score + MASKED * (1 - mask)[:, None, :], 2) @ other


def pooled(
    params: Params, side: Side, other_side: Side, seen: jax.Array, other: jax.Array, key: Any,
    rate: float,
) -> jax.Array:  # fmt: skip
    """One text, in the large shape after a second look at both: mean, largest and attended."""
    mask = side.mask[..., None]
    if "second" in params:
        parts = [
            seen,
            attended(params, "", seen, other, other_side.mask),
            attended(params, "_own", seen, seen, side.mask),
        ]
        second = jnp.concatenate(parts, -1) @ params["second"] + params["second_bias"]
        seen = seen + dropped(key, jax.nn.relu(second) * mask, rate)
    weights = jax.nn.softmax((seen @ params["attention"]) + MASKED * (1 - mask), 1)
    return jnp.concatenate([seen.sum(1) / mask.sum(1), seen.max(1), (seen * weights).sum(1)], -1)


def forward(
    params: Params,
    one: Text,
    two: Text,
    key: jax.Array | None = None,
    rate: float = 0.15,
    half: bool = True,
) -> tuple[jax.Array, jax.Array]:
    """Logits [batch] and raw scalars [batch, SCALARS]. A key turns dropout on."""
    parts = 7 if "second" in params else 5
    keys = [None] * 7 if key is None else [*jax.random.split(key, parts), None, None]
    first_a, body_a = project(params, one, keys[0], rate, half)
    first_b, body_b = project(params, two, keys[1], rate, half)
    a, b = (
        Side(body, jnp.arange(text.ids.shape[1])[None] / text.mask.sum(-1, keepdims=True),
             text.idf, text.mask)
        for text, body in ((one, body_a), (two, body_b))
    )  # fmt: skip
    same = (one.ids[:, :, None] == two.ids[:, None, :]) * (a.mask[:, :, None] * b.mask[:, None, :])
    product = jnp.einsum("bid,bjd->bij", a.rows, b.rows)
    gap = jnp.abs(a.position[:, :, None] - b.position[:, None, :])
    score = product * (params["sharpness"] / np.sqrt(WIDTH))
    score = score + params["same_token"] * same - params["distance"] * gap
    to_b = jax.nn.softmax(score + MASKED * (1 - b.mask)[:, None, :], 2)
    to_a = jax.nn.softmax(score + MASKED * (1 - a.mask)[:, :, None], 1).swapaxes(1, 2)
    cosine, turned = product / WIDTH, same.swapaxes(1, 2)
    features_a, found_a = token_features(a, b, cosine, same, to_b)
    features_b, found_b = token_features(b, a, cosine.swapaxes(1, 2), turned, to_a)
    seen_a = looked(params, a, to_b @ b.rows, features_a, keys[2], rate)
    seen_b = looked(params, b, to_a @ a.rows, features_b, keys[3], rate)
    pool_a = pooled(params, a, b, seen_a, seen_b, keys[5], rate)
    pool_b = pooled(params, b, a, seen_b, seen_a, keys[6], rate)
    raw = scalars((first_a, first_b), (a, b), (found_a, found_b), same)
    fixed = jax.lax.stop_gradient((params["scalar_mean"], params["scalar_spread"]))
    scaled = jnp.clip((raw - fixed[0]) / fixed[1], -CLIP, CLIP)
    joined = jnp.concatenate([pool_a + pool_b, jnp.abs(pool_a - pool_b), scaled], -1)
    decided = jax.nn.relu(joined @ params["decide"] + params["decide_bias"])
    decided = dropped(keys[4], decided, rate)
    return (decided @ params["logit"] + params["logit_bias"])[:, 0], raw
