"""Layers of networks: norms, attention, positions, gates, pooling and recurrent cells."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import (
    FACTOR,
    IGNORED,
    MISSING,
    REPEATED,
    Book,
    at,
    t,
)

BOOK = Book("layers")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(5, 8))), t(1 + 0.3 * rng.normal(size=8))), {"eps": 1e-6}),
    "the weight is missing in the term through the root mean square",
    MISSING,
    r"\bterm\b|root.mean.square|\brms\b|\bnormali[sz]er",
    r"\b(?:without|lacks|needs|forgets) (?:the |its )?`?weight",
)
def rms_norm():
    @pb.autograd_function
    def rms_norm(ctx, x: pb.Tensor, weight: pb.Tensor, eps: float = 1e-6) -> pb.Tensor:
        """Divide each row of x: (n, d) by its root mean square; weight: (d,)."""
        xn = x.numpy()
        inverse = 1 / np.sqrt(np.mean(xn * xn, axis=-1, keepdims=True) + eps)
        hat = xn * inverse
        ctx.save_for_backward(hat=hat, inverse=inverse, weight=weight)
        return pb.asarray(hat * weight.numpy())

    @rms_norm.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        along = np.mean(g * s.hat, axis=-1, keepdims=True)
        return {
            "x": pb.asarray((g * s.weight.numpy() - s.hat * along) * s.inverse),
            "weight": pb.asarray((g * s.hat).sum(axis=0)),
        }

    return rms_norm


def heads(rng):
    q, k, v = (t(rng.normal(size=(2, 5, 4))) for _ in range(3))
    return (q, k, v), {}


@BOOK.wrong(
    heads,
    "the keys' gradient lacks the factor 1 / sqrt(d)",
    FACTOR,
    r"sqrt|square root",
)
def causal_attention():
    class CausalAttention(pb.Function):
        @staticmethod
        def forward(ctx, q, k, v):
            qn, kn, vn = q.numpy(), k.numpy(), v.numpy()
            n, d = qn.shape[-2:]
            scores = qn @ np.swapaxes(kn, -1, -2) / np.sqrt(d)
            scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            weights /= weights.sum(axis=-1, keepdims=True)
            ctx.save_for_backward(q=q, k=k, v=v, weights=weights)
            return pb.asarray(weights @ vn)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, g = ctx.saved_variables, grad_output.numpy()
            w = s.weights
            grad_w = g @ np.swapaxes(s.v.numpy(), -1, -2)
            grad_s = w * (grad_w - (grad_w * w).sum(axis=-1, keepdims=True))
            scale = 1 / np.sqrt(s.q.shape[-1])
            return {
                "q": pb.asarray(grad_s @ s.k.numpy() * scale),
                "k": pb.asarray(np.swapaxes(grad_s, -1, -2) @ s.q.numpy()),
                "v": pb.asarray(np.swapaxes(w, -1, -2) @ g),
            }

    return CausalAttention.apply


@BOOK.right(
    lambda rng: (
        (*heads(rng)[0], np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)),
        {"dropout": 0.25, "seed": 11},
    )
)
def padded_attention():
    @pb.autograd_function
    def padded_attention(ctx, q, k, v, key_mask, dropout: float = 0.0, seed: int = 0):
        """Attend to the keys where key_mask: (b, m) is true; the output and the weights.

        q: (b, n, d), k: (b, m, d), v: (b, m, e). Where no key is left the weights are 0.
        """
        qn, kn = q.numpy(), k.numpy()
        scores = qn @ kn.swapaxes(1, 2) / qn.shape[-1] ** 0.5
        e = np.exp(scores - scores.max(axis=-1, keepdims=True)) * key_mask[:, None, :]
        total = e.sum(axis=-1, keepdims=True)
        weights = np.divide(e, total, out=np.zeros_like(e), where=total > 0)
        kept = np.random.default_rng(seed).random(weights.shape) >= dropout
        keep = (kept / (1 - dropout)).astype(qn.dtype)
        ctx.save_for_backward(q=q, k=k, v=v, weights=weights, keep=keep)
        return pb.asarray((weights * keep) @ v.numpy()), pb.asarray(weights)

    @padded_attention.backward
    @pb.once_differentiable
    def _(ctx, g_out, g_weights):
        s, g = ctx.saved_variables, g_out.numpy()
        grad_w = (g @ s.v.numpy().swapaxes(1, 2)) * s.keep + g_weights.numpy()
        along = (grad_w * s.weights).sum(axis=-1, keepdims=True)
        grad_s = s.weights * (grad_w - along) / s.q.shape[-1] ** 0.5
        return {
            "q": pb.asarray(grad_s @ s.k.numpy()),
            "k": pb.asarray(grad_s.swapaxes(1, 2) @ s.q.numpy()),
            "v": pb.asarray((s.weights * s.keep).swapaxes(1, 2) @ g),
        }

    return padded_attention


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 6, 6))), t(rng.normal(size=7))), {"max_distance": 3}),
    "pairs at the same distance share an entry of the table; of repeated ones only the last counts",
    REPEATED,
    r"accumulat|\bnp\.add\.at|\bonly the last\b|\bshared?\b",
)
def relative_bias():
    @pb.autograd_function
    def relative_bias(ctx, scores, table, max_distance):
        """Add table[j - i], the distance clipped, to scores: (heads, n, n)."""
        n = scores.shape[-1]
        distance = np.arange(n)[None, :] - np.arange(n)[:, None]
        index = np.clip(distance, -max_distance, max_distance) + max_distance
        ctx.index, ctx.size = index, table.shape
        return scores + pb.asarray(table.numpy()[index])

    @relative_bias.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad = np.zeros(ctx.size)
        grad[ctx.index] += g.numpy().sum(axis=0)
        return {"scores": g, "table": pb.asarray(grad)}

    return relative_bias


@BOOK.right(
    lambda rng: ((t(rng.normal(size=(2, 5, 6))), np.array([0, 1, 2, 7, 8])), {"base": 100.0})
)
def rotary_positions():
    def rotated(x, positions, base, sense=1):
        d = x.shape[-1]
        angle = positions[:, None] * base ** (-np.arange(0, d, 2) / d)
        cos, sin = (pb.asarray(f(sense * angle)).to(x.dtype) for f in (np.cos, np.sin))
        even, odd = x[..., 0::2], x[..., 1::2]
        pair = pb.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
        return pair.reshape(x.shape)

    @pb.autograd_function
    def rotary_positions(ctx, x, positions, base=10000.0):
        """Turn neighbouring features by an angle that grows with the position; x: (b, n, 2k)."""
        if x.shape[-1] % 2:
            raise ValueError(f"rotary_positions: {x.shape[-1]} features do not make pairs")
        ctx.positions, ctx.base = positions, base
        return rotated(x, positions, base)

    @rotary_positions.backward
    def _(ctx, g):
        return {"x": rotated(g, ctx.positions, ctx.base, sense=-1)}

    return rotary_positions


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.normal(size=(3, 4))),
            t(rng.normal(size=(3, 2))),
            t(rng.normal(size=(3, 2))),
            t(0.5 * rng.normal(size=(8, 6))),
            t(rng.normal(size=8)),
        ),
        {},
    ),
    "the gradient that arrives at the second output, the new cell, is not used: it is ignored",
    r"second output|outputs? 1\b|output \[?1\]?|grad_cell|\bcell'?s? (?:output|gradient)|new cell",
    IGNORED,
)
def lstm_cell():
    @pb.autograd_function
    def lstm_cell(ctx, x, h, c, weight, bias):
        """One step; weight: (4k, d + k) in the order input, forget, candidate, output."""
        xh = np.concatenate([x.numpy(), h.numpy()], axis=1)
        a = xh @ weight.numpy().T + bias.numpy()
        k = c.shape[1]
        i, f, o = (sigmoid(a[:, j * k : (j + 1) * k]) for j in (0, 1, 3))
        u = np.tanh(a[:, 2 * k : 3 * k])
        new = f * c.numpy() + i * u
        ctx.save_for_backward(xh=xh, weight=weight, c=c, parts=(i, f, u, o), new=np.tanh(new))
        return pb.asarray(o * np.tanh(new)), pb.asarray(new)

    @lstm_cell.backward
    @pb.once_differentiable
    def _(ctx, grad_hidden, grad_cell):
        s, g = ctx.saved_variables, grad_hidden.numpy()
        i, f, u, o = s.parts
        gc = g * o * (1 - s.new**2)
        ga = np.concatenate(
            [
                gc * u * i * (1 - i),
                gc * s.c.numpy() * f * (1 - f),
                gc * i * (1 - u**2),
                g * s.new * o * (1 - o),
            ],
            axis=1,
        )
        g_xh = ga @ s.weight.numpy()
        d = g_xh.shape[1] - s.c.shape[1]
        parts = g_xh[:, :d], g_xh[:, d:], gc * f, ga.T @ s.xh, ga.sum(axis=0)
        return tuple(pb.asarray(part.copy()) for part in parts)

    return lstm_cell


@BOOK.right(
    lambda rng: (
        (
            t(rng.normal(size=(6, 2, 3))),
            t(rng.normal(size=(6, 2, 3))),
            t(rng.normal(size=(2, 3))),
        ),
        {"lengths": np.array([6, 4])},
    )
)
def gated_scan():
    @pb.autograd_function
    def gated_scan(ctx, inputs, gates, h0, lengths=None):
        """h[t] = a[t] h[t-1] + (1 - a[t]) inputs[t] with a = sigmoid(gates).

        inputs and gates: (time, b, d), h0: (b, d). From lengths: (b,) on the state stays. All
        states and the last one.
        """
        x, a = inputs.numpy(), sigmoid(gates.numpy())
        states = np.empty((len(x) + 1, *h0.shape), x.dtype)
        states[0] = h0.numpy()
        live = np.ones(x.shape[:2], bool)
        if lengths is not None:
            live = np.arange(len(x))[:, None] < lengths
        for k in range(len(x)):
            new = a[k] * states[k] + (1 - a[k]) * x[k]
            states[k + 1] = np.where(live[k, :, None], new, states[k])
        ctx.save_for_backward(x=inputs, a=a, states=states, live=live[..., None])
        return pb.asarray(states[1:].copy()), pb.asarray(states[-1].copy())

    @gated_scan.backward
    @pb.once_differentiable
    def _(ctx, g_states, g_last):
        s, g = ctx.saved_variables, g_states.numpy()
        x, carry = s.x.numpy(), g_last.numpy()
        gx, ga = np.zeros_like(x), np.zeros_like(x)
        for k in range(len(x) - 1, -1, -1):
            carry = carry + g[k]
            new = np.where(s.live[k], carry, 0)
            gx[k] = new * (1 - s.a[k])
            ga[k] = new * (s.states[k] - x[k]) * s.a[k] * (1 - s.a[k])
            carry = np.where(s.live[k], carry * s.a[k], carry)
        return {"inputs": pb.asarray(gx), "gates": pb.asarray(ga), "h0": pb.asarray(carry)}

    return gated_scan


POOLED = {"size": 3, "stride": 2, "padding": 1}


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(2, 7))),), dict(POOLED)),
    "a window at the border is divided by its full size also where the padding does not count",
    at("count_include_pad"),
    r"\bborders?\b|\bedges?\b|\bpadded\b|\b(?:first|last|outer) (?:element|window|column|place)",
    FACTOR,
    where="count_include_pad=False with padding",
    shows=lambda rng: ((t(rng.normal(size=(2, 7))),), {**POOLED, "count_include_pad": False}),
)
def average_pool():
    def windows(n, size, stride, padding):
        for first in range(-padding, n + padding - size + 1, stride):
            yield slice(max(first, 0), min(first + size, n))

    @pb.autograd_function
    def average_pool(ctx, x, size=2, stride=2, padding=0, count_include_pad=True):
        """Mean of windows along the last axis; x: (b, n); zeros are put before and after."""
        xn, columns = x.numpy(), []
        for part in windows(xn.shape[-1], size, stride, padding):
            count = size if count_include_pad else part.stop - part.start
            columns.append(xn[:, part].sum(axis=-1) / count)
        ctx.save_for_backward(shape=xn.shape, settings=(size, stride, padding))
        return pb.asarray(np.stack(columns, axis=-1))

    @average_pool.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        grad = np.zeros(s.shape)
        for i, part in enumerate(windows(s.shape[-1], *s.settings)):
            grad[:, part] += g[:, i : i + 1] / s.settings[0]
        return {"x": pb.asarray(grad)}

    return average_pool


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.normal(size=(4, 3)))), {}),
    "the derivative of sigmoid(beta * gate) lacks the factor beta, which is 1 by default",
    at("beta"),
    FACTOR,
    where="beta other than 1",
    shows=lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.normal(size=(4, 3)))), {"beta": 1.7}),
)
def swish_gate():
    def forward(ctx, value, gate, beta=1.0):
        open_ = (gate * beta).sigmoid()
        ctx.save_for_backward(value=value, gate=gate, beta=beta)
        return value * gate * open_

    def backward(ctx, g):
        s = ctx.saved_variables
        open_ = (s.gate * s.beta).sigmoid()
        slope = open_ + s.gate * open_ * (1 - open_)
        return {"value": g * s.gate * open_, "gate": g * s.value * slope}

    return pb.autograd_function(forward, backward, name="swish_gate")


@BOOK.right(
    lambda rng: (
        (t(3 + rng.normal(size=(2, 6, 2, 3))), t(1 + rng.random(6)), t(rng.normal(size=6))),
        {"groups": 3},
    )
)
def group_norm():
    class GroupNorm(pb.Function):
        @staticmethod
        def forward(ctx, x, weight, bias, groups, eps=1e-5):
            """x: (n, c, h, w); the channels are normalised in `groups` groups of c / groups."""
            n, c = x.shape[:2]
            if c % groups:
                raise ValueError(f"group_norm: {c} channels do not make {groups} groups")
            rows = x.numpy().reshape(n, groups, -1)
            std = np.sqrt(rows.var(axis=-1, keepdims=True) + eps)
            hat = (rows - rows.mean(axis=-1, keepdims=True)) / std
            ctx.save_for_backward(hat=hat, std=std, weight=weight)
            scale, offset = (p.numpy()[:, None, None] for p in (weight, bias))
            return pb.asarray(hat.reshape(x.shape) * scale + offset)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, g = ctx.saved_variables, grad_output.numpy()
            hat = s.hat.reshape(g.shape)
            gh = (g * s.weight.numpy()[:, None, None]).reshape(s.hat.shape)
            along = (gh * s.hat).mean(axis=-1, keepdims=True)
            gx = (gh - gh.mean(axis=-1, keepdims=True) - s.hat * along) / s.std
            parts = gx.reshape(g.shape), (g * hat).sum(axis=(0, 2, 3)), g.sum(axis=(0, 2, 3))
            return (*map(pb.asarray, parts), None, None)

    return GroupNorm.apply


@BOOK.right(lambda rng: ((t(rng.normal(size=(4, 6))),), {}))
def sparsemax():
    @pb.autograd_function
    def sparsemax(ctx, scores: pb.Tensor) -> pb.Tensor:
        """Project each row of scores: (n, k) onto the probabilities."""
        z = scores.numpy()
        falling = -np.sort(-z, axis=1)
        surplus = np.cumsum(falling, axis=1) - 1
        size = (falling * np.arange(1, z.shape[1] + 1) > surplus).sum(axis=1, keepdims=True)
        threshold = np.take_along_axis(surplus, size - 1, axis=1) / size
        out = pb.asarray(np.maximum(z - threshold, 0).astype(z.dtype))
        ctx.save_for_backward(out=out)
        return out

    @sparsemax.backward
    def _(ctx, g):
        support = (ctx.saved_variables.out > 0).to(g.dtype)
        mean = (g * support).sum(dim=1, keepdim=True) / support.sum(dim=1, keepdim=True)
        return {"scores": (g - mean) * support}

    return sparsemax
