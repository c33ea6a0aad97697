"""How long the gradient checker takes on typical operations, whole and fast.

Targets: 2 s for a whole check, 0.2 s for a fast one. Beside it PyTorch's gradcheck and
gradgradcheck of the same forward and backward, where torch is installed: other work (first and
second derivatives only), so the ratio says only what order of time a user is used to.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import warnings
from functools import partial
from typing import Any

import _timing
import numpy as np

import pullback as pb

RNG = np.random.default_rng(0)
X, W, B = RNG.normal(size=(4, 3)), RNG.normal(size=(2, 3)), RNG.normal(size=2)


def square(ctx, x):
    ctx.save_for_backward(x)
    return x * x


def square_backward(ctx, g):
    (x,) = ctx.saved_tensors
    return 2 * x * g


def softmax(ctx, x):
    y = x.softmax(-1)
    ctx.save_for_backward(y)
    return y


def softmax_backward(ctx, g):
    (y,) = ctx.saved_tensors
    return y * (g - (g * y).sum(-1, keepdim=True))


def linear(ctx, x, weight, bias):
    ctx.save_for_backward(x, weight)
    return x.mm(weight.t()) + bias


def linear_backward(ctx, g):
    x, weight = ctx.saved_tensors
    return g.mm(weight), g.t().mm(x), g.sum(0)


def attention(ctx, q, k, v):
    ctx.save_for_backward(q, k, v)
    return (q @ k.transpose(-1, -2)).softmax(-1) @ v


def attention_backward(ctx, g):
    q, k, v = ctx.saved_tensors
    weights = (q @ k.transpose(-1, -2)).softmax(-1)
    inner = g @ v.transpose(-1, -2)
    scores = weights * (inner - (inner * weights).sum(-1, keepdim=True))
    return scores @ k, scores.transpose(-1, -2) @ q, weights.transpose(-1, -2) @ g


PROGRAMS = {
    "square (4, 3)": (square, square_backward, (X,)),
    "softmax (4, 3)": (softmax, softmax_backward, (X,)),
    "linear (4, 3) by (2, 3)": (linear, linear_backward, (X, W, B)),
    "attention, 3 of (4, 3)": (attention, attention_backward, (X, X + 1, X * 0.5)),
}


def torch_check(forward, backward, arrays):
    """Return a call of PyTorch's gradcheck and gradgradcheck, None where torch is missing."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    function = type(forward.__name__, (torch.autograd.Function,), members).apply
    inputs = tuple(torch.from_numpy(a.copy()).requires_grad_() for a in arrays)

    def run():
        torch.autograd.gradcheck(function, inputs)
        torch.autograd.gradgradcheck(function, inputs)

    return run


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    warnings.simplefilter("ignore")
    rows = []
    for name, (forward, backward, arrays) in PROGRAMS.items():
        op = pb.autograd_function(forward, backward)
        calls = {
            "whole": partial(pb.check.check_op, op, *arrays),
            "fast": partial(pb.check.check_op, op, *arrays, fast=True),
            "torch": torch_check(forward, backward, arrays),
        }
        timers = {way: _timing.timed(call, 1) for way, call in calls.items() if call}
        times = _timing.interleaved(timers, options.rounds)
        seconds = {way: statistics.median(found) for way, found in times.items()}
        ratios = {
            f"{way}_by_torch": _timing.ratio(times, way, "torch") for way in ("whole", "fast")
        }
        rows.append({"name": name, "torch": None, **seconds, **ratios})
    return rows


def print_table(rows: list[dict[str, Any]], _: argparse.Namespace) -> None:
    print(f"{'seconds':26}{'whole':>9}{'fast':>9}{'torch':>9}")
    for row in rows:
        figures = (_timing.shown(row[key], 9, 3) for key in ("whole", "fast", "torch"))
        print(f"{row['name']:26}{''.join(figures)}")


def ratios(rows: list[dict[str, Any]]) -> _timing.Ratios:
    return {
        row["name"]: {f"{way}: PyTorch": row[f"{way}_by_torch"] for way in ("whole", "fast")}
        for row in rows
    }


def main() -> None:
    _timing.run(measure, _timing.parser(__doc__, rounds=7).parse_args(), print_table, ratios)


if __name__ == "__main__":
    main()
