"""The mix: 33 operations on small arrays, and an operation of the user's own, beside PyTorch.

x of 56 elements, M of 8x8, float64, both requiring grad, so that arithmetic costs next to nothing
and what is left is the library. One thread on one CPU; values and gradients are compared first, the
two libraries take turns in alternating order, and each figure is the median over the rounds of
pullback's time by torch's.

    python bench/mix.py [--rounds N] [--processes N] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

import _timing
import numpy as np
import torch

import pullback as pb

torch.set_num_threads(1)

# Each is the same text in both libraries.
MIX = (
    "x * x",
    "x + 1",
    "x[:14]",
    "x[3]",
    "M[2]",
    "lib.cat((x, x, x, x))",
    "x.sigmoid()",
    "x.tanh()",
    "x.sum()",
    "M.mean(1)",
    "M @ M",
    "M.t()",
    "M.reshape(64)",
    "M.softmax(1)",
    "M.logsumexp(1)",
    "lib.where(mask, x, y)",
    "x.relu()",
    "x.clamp(min=0)",
    "x ** 2",
    "(x * x).sum().sqrt()",
    "lib.stack((x, y))",
    "M[:, None]",
    "lib.einsum('ij,jk->ik', M, M)",
    "x.max()",
    "x[[1, 2, 5]]",
    "M.var(1)",
    "lib.layer_norm(M, (8,))",
    "lib.linalg.solve(M, v)",
    "x.cumsum(0)",
    "M + M[0]",
    "x.exp()",
    "y.log()",
    "M / M",
)
NAMES = "lib, x, y, M, v, mask"
LEAVES = ("x", "y", "M", "v")
RESULTS = 20  # of one operation, before one backward over all
CHAIN = 1000  # calls of the user's operation
ROUND = 1.5e-3  # seconds that one timing takes, about
TOLERANCE = 1e-12

Loop = Callable[..., Any]


def arguments(lib: Any) -> list[Any]:
    """Return what the expressions name: `lib` and its tensors, those of `LEAVES` tracked."""
    rng = np.random.default_rng(0)
    arrays = {
        "x": rng.normal(size=56),
        "y": rng.uniform(0.5, 1.5, size=56),
        "M": rng.uniform(0.5, 1.5, size=(8, 8)) + 8 * np.eye(8),
        "v": rng.normal(size=8),
    }
    tensors = [lib.tensor(array, requires_grad=True) for array in arrays.values()]
    return [lib, *tensors, lib.tensor(arrays["x"] > 0)]


def compiled(expression: str) -> tuple[Loop, Loop]:
    """Return a loop that calls the operation and drops the result, and one that keeps results.

    Compiled, so that no call of a function is measured but the operation's.
    """
    source = (
        f"def drop(repeats, {NAMES}):\n    for _ in repeats:\n        {expression}\n"
        f"def keep(repeats, {NAMES}):\n    return [{expression} for _ in repeats]\n"
    )
    made: dict[str, Loop] = {}
    exec(source, made)
    return made["drop"], made["keep"]


def compare(expression: str, keep: Loop) -> None:
    """Exit where the value of the operation or one of its gradients is not torch's."""
    found = []
    for lib in (pb, torch):
        given = arguments(lib)
        (result,) = keep(range(1), *given)
        lib.autograd.backward([result], [lib.ones_like(result)])
        grads = [leaf.grad for leaf in given[1:-1] if leaf.grad is not None]
        found.append([value.detach().numpy() for value in (result, *grads)])
    ours, theirs = found
    if len(ours) != len(theirs) or not all(
        a.shape == b.shape and np.allclose(a, b, TOLERANCE, TOLERANCE)
        for a, b in zip(ours, theirs, strict=False)
    ):
        sys.exit(f"{expression}: pullback's value or gradient is not torch's: not timed")


def recording(lib: Any, drop: Loop) -> _timing.Timer:
    given = arguments(lib)

    def body(repeats: int) -> float:
        return _timing.timed(lambda: drop(range(repeats), *given), 1)()

    body(3)
    repeats = max(10, round(ROUND / (body(10) / 10)))
    return lambda: body(repeats) / repeats


def backward(lib: Any, keep: Loop) -> _timing.Timer:
    """Return a timer of 20 results of the operation and one backward over all of them."""
    given, steps = arguments(lib), range(RESULTS)
    ones = [lib.ones_like(result).detach() for result in keep(steps, *given)]

    def body() -> None:
        lib.autograd.backward(keep(steps, *given), ones)

    def run() -> float:
        total = 0.0
        for _ in range(repeats):
            for leaf in given[1:-1]:
                leaf.grad = None
            total += once()
        return total / repeats

    once, repeats = _timing.timed(body, 1), 1
    run()
    repeats = max(3, round(ROUND / run()))
    return run


# -- an operation of the user's own ----------------------------------------------------------------


def own_pullback(default: bool) -> Callable[..., Any]:
    def forward(ctx, x, w):
        ctx.save_for_backward(x=x, w=w)
        return x * w

    def forward_default(ctx, x, w, scale=1.0):
        ctx.save_for_backward(x=x, w=w)
        return x * w

    def rule(ctx, grad_output):
        saved = ctx.saved_variables
        return {"x": grad_output * saved.w, "w": grad_output * saved.x}

    return pb.autograd_function(forward_default if default else forward, rule, name="own")


def own_torch(default: bool) -> Callable[..., Any]:
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, grad_output):
            x, w = ctx.saved_tensors
            return grad_output * w, grad_output * x

    class OwnDefault(Own):
        @staticmethod
        def forward(ctx, x, w, scale=1.0):
            ctx.save_for_backward(x, w)
            return x * w

    return (OwnDefault if default else Own).apply


def own_chain(lib: Any, how: str) -> tuple[_timing.Timer, list[Any]]:
    """Return a timer of one call of a chain and its backward, and the chain's leaves."""
    default = how == "default left out"
    op = own_pullback(default) if lib is pb else own_torch(default)
    x, w = lib.tensor([1.0, 2.0, 3.0, 4.0]), lib.tensor([1.0, 0.999, 1.001, -1.0])
    ones = lib.ones_like(x)
    leaves = [x.requires_grad_(), w.requires_grad_()]
    by_keyword = how == "by keyword" and lib is pb  # torch's apply takes none

    def run() -> float:
        x.grad = w.grad = None
        return once() / CHAIN

    def body() -> None:
        y = x
        if by_keyword:
            for _ in range(CHAIN):
                y = op(x=y, w=w)
        else:
            for _ in range(CHAIN):
                y = op(y, w)
        y.backward(ones)

    once = _timing.timed(body, 1)
    return run, leaves


# -- measuring -------------------------------------------------------------------------------------


def pair(ours: _timing.Timer, theirs: _timing.Timer, rounds: int) -> dict[str, Any]:
    """Return the ratios of two timers, with the garbage collector on and off."""
    timers = {"pullback": ours, "torch": theirs}
    times = _timing.interleaved(timers, rounds)
    without = _timing.interleaved(timers, rounds, gc_on=False)
    return {
        "us": sorted(times["pullback"])[rounds // 2] * 1e6,
        "ratio": _timing.ratio(times, "pullback", "torch"),
        "gc_off": _timing.ratio(without, "pullback", "torch"),
    }


def measure(options: argparse.Namespace) -> dict[str, Any]:
    rows = []
    for expression in MIX:
        drop, keep = compiled(expression)
        compare(expression, keep)
        rows.append(
            {
                "name": expression,
                "recording": pair(recording(pb, drop), recording(torch, drop), options.rounds),
                "backward": pair(backward(pb, keep), backward(torch, keep), options.rounds),
            }
        )
    own = []
    for how in ("positional", "by keyword", "default left out"):
        (ours, our_leaves), (theirs, their_leaves) = own_chain(pb, how), own_chain(torch, how)
        ours(), theirs()
        for a, b in zip(our_leaves, their_leaves, strict=True):
            if not np.allclose(a.grad.numpy(), b.grad.numpy(), 1e-5, 1e-6):
                sys.exit(f"the user's operation, {how}: a gradient is not torch's: not timed")
        own.append({"name": how, "chain": pair(ours, theirs, options.rounds)})
    return {"mix": rows, "own": own}


def print_table(found: dict[str, Any], options: argparse.Namespace) -> None:
    print(
        f"The mix, pullback beside torch {torch.__version__}, numpy {np.__version__}; one thread, "
        f"{options.rounds} rounds, {options.processes} process(es).\n"
        "Ratios: pullback's time by torch's, with the garbage collector on, and off."
    )
    print(f"\n{'':32}{'recording':>9}{'':18}{RESULTS:4} results and one backward")
    heads = f"{'us':>9}{'gc on':>9}{'gc off':>9}"
    print(f"{'':32}{heads}{heads}")
    kinds = ("recording", "backward")
    for row in found["mix"]:
        print(f"{row['name']:32}" + "".join(cells(row[kind]) for kind in kinds))
    columns = [
        [row[kind][column] for row in found["mix"]]
        for kind in kinds
        for column in ("ratio", "gc_off")
    ]
    for title, choose in (("geometric mean", _timing.geometric_mean), ("worst", max)):
        a, b, c, d = (_timing.shown(choose(column)) for column in columns)
        print(f"{title:32}{'':9}{a}{b}{'':9}{c}{d}")
    a, b, c, d = (MIX[column.index(max(column))] for column in columns)
    print(f"worst: recording {a} (gc off: {b}); one backward {c} (gc off: {d})")
    print(f"\n{'a user operation':32}{heads}   one of a chain of {CHAIN}, forward and backward")
    for row in found["own"]:
        print(f"{row['name']:32}{cells(row['chain'])}")


def cells(figures: dict[str, Any]) -> str:
    return "".join(_timing.shown(figures[key]) for key in ("us", "ratio", "gc_off"))


def main() -> None:
    options = _timing.parser(__doc__, rounds=21).parse_args()
    _timing.pin()
    found = _timing.measured(measure, options)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print_table(found, options)


if __name__ == "__main__":
    main()
