"""The mix: 33 small operations and one of the user's own, beside PyTorch, HIPS autograd, NumPy.

x of 56 elements, M of 8x8, float64, both requiring grad, so that arithmetic costs next to nothing
and what is left is the library. One thread on one CPU; values and gradients are compared first, the
libraries take turns in alternating order, and each figure is the median over the rounds of
pullback's time by the peer's. NumPy computes the values only.

    python bench/mix.py [--rounds N] [--processes N] [--json]
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import _timing
import autograd.numpy as anp
import autograd.scipy.special
import numpy as np
import scipy.special
import torch
from autograd.builtins import tuple as anp_tuple
from autograd.core import make_vjp

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
# In HIPS autograd and in NumPy, where that is another text; None where it is no single function.
IN_NUMPY = {
    "lib.cat((x, x, x, x))": "lib.concatenate((x, x, x, x))",
    "x.sigmoid()": "lib.expit(x)",
    "x.tanh()": "lib.tanh(x)",
    "x.sum()": "lib.sum(x)",
    "M.mean(1)": "lib.mean(M, 1)",
    "M.t()": "M.T",
    "M.softmax(1)": None,
    "M.logsumexp(1)": "lib.logsumexp(M, 1)",
    "x.relu()": "lib.maximum(x, 0)",
    "x.clamp(min=0)": "lib.maximum(x, 0)",
    "(x * x).sum().sqrt()": "lib.sqrt(lib.sum(x * x))",
    "x.max()": "lib.max(x)",
    "M.var(1)": "lib.var(M, 1, ddof=1)",
    "lib.layer_norm(M, (8,))": None,
    "x.cumsum(0)": "lib.cumsum(x, 0)",
    "x.exp()": "lib.exp(x)",
    "y.log()": "lib.log(y)",
}
NAMES = "lib, x, y, M, v, mask"
RESULTS = 20  # of one operation, before one backward over all
CHAIN = 1000  # calls of the user's operation
ROUND = 1.5e-3  # seconds that one timing takes, about
TOLERANCES = 1e-12, 1e-12  # relative, absolute


def namespace(numpy: Any, special: Any) -> Any:
    """Return NumPy's functions and the special ones under one name."""
    names = (
        "concatenate cumsum einsum exp linalg log max maximum mean sqrt stack sum tanh var where"
    )
    found = {name: getattr(numpy, name) for name in names.split()}
    return SimpleNamespace(**found, expit=special.expit, logsumexp=special.logsumexp)


def arrays() -> tuple[np.ndarray, ...]:
    """Return x, y, M and v."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=56), rng.uniform(0.5, 1.5, size=56)
    return x, y, rng.uniform(0.5, 1.5, size=(8, 8)) + 8 * np.eye(8), rng.normal(size=8)


def arguments(lib: Any) -> list[Any]:
    """Return what the expressions name: `lib`, four tracked tensors and a mask."""
    tensors = [lib.tensor(array, requires_grad=True) for array in arrays()]
    return [lib, *tensors, (tensors[0] > 0).detach()]


class Loops:
    """An operation compiled: a loop that calls it and drops the result, one that keeps results.

    Compiled, so that no call of a function is measured but the operation's.
    """

    def __init__(self, expression: str) -> None:
        source = (
            f"def drop(repeats, {NAMES}):\n    for _ in repeats:\n        {expression}\n"
            f"def keep(repeats, {NAMES}):\n    return [{expression} for _ in repeats]\n"
        )
        made: dict[str, Any] = {}
        exec(source, made)
        self.drop, self.keep = made["drop"], made["keep"]


class Tensors:
    """The mix in a library of tensors: pullback or torch."""

    def __init__(self, lib: Any, loops: Loops) -> None:
        self.autograd, self.loops = lib.autograd, loops
        self.given = arguments(lib)
        self.ones = [lib.ones_like(result) for result in self.keep()]
        self.ones = [one.detach() for one in self.ones]

    def keep(self) -> list[Any]:
        return self.loops.keep(range(RESULTS), *self.given)

    def record(self, repeats: int) -> float:
        start = _timing.clock()
        self.loops.drop(range(repeats), *self.given)
        return _timing.clock() - start

    def backward(self) -> float:
        for leaf in self.given[1:-1]:
            leaf.grad = None
        start = _timing.clock()
        self.autograd.backward(self.keep(), self.ones)
        return _timing.clock() - start

    def values(self) -> list[np.ndarray]:
        """Return the result and the gradients of 20 of it, zeros where there is none."""
        self.backward()
        leaves = self.given[1:-1]
        grads = [np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in leaves]
        return [self.keep()[0].detach().numpy(), *grads]


class Boxes:
    """The mix in HIPS autograd, where operations are recorded inside of a traced function."""

    def __init__(self, loops: Loops) -> None:
        self.loops, self.lib = loops, namespace(anp, autograd.scipy.special)
        self.arrays, self.mask = arrays(), arrays()[0] > 0
        self.spent = 0.0
        self.ones = tuple(np.ones_like(result) for result in self.keep(self.arrays))

    def keep(self, given: Any) -> Any:
        x, y, M, v = given
        return anp_tuple(self.loops.keep(range(RESULTS), self.lib, x, y, M, v, self.mask))

    def record(self, repeats: int) -> float:
        def traced(given):
            x, y, M, v = given
            start = _timing.clock()
            self.loops.drop(range(repeats), self.lib, x, y, M, v, self.mask)
            self.spent = _timing.clock() - start
            return anp.sum(x)

        make_vjp(traced, self.arrays)
        return self.spent

    def backward(self) -> float:
        start = _timing.clock()
        self.gradients()
        return _timing.clock() - start

    def gradients(self) -> Any:
        vjp, _ = make_vjp(self.keep, self.arrays)
        return vjp(self.ones)

    def values(self) -> list[np.ndarray]:
        return [self.keep(self.arrays)[0], *self.gradients()]


class Arrays:
    """The mix in NumPy, which records nothing."""

    def __init__(self, loops: Loops) -> None:
        self.loops = loops
        self.given = [namespace(np, scipy.special), *arrays(), arrays()[0] > 0]

    def record(self, repeats: int) -> float:
        start = _timing.clock()
        self.loops.drop(range(repeats), *self.given)
        return _timing.clock() - start

    def values(self) -> list[np.ndarray]:
        return self.loops.keep(range(1), *self.given)


def peers(expression: str) -> dict[str, Any]:
    """Return the operation in each library that has it, compared with torch's."""
    loops = Loops(expression)
    made: dict[str, Any] = {"pullback": Tensors(pb, loops), "torch": Tensors(torch, loops)}
    text = IN_NUMPY.get(expression, expression)
    if text is not None:
        loops = Loops(text)
        made |= {"autograd": Boxes(loops), "numpy": Arrays(loops)}
    expected = made["torch"].values()
    for name, peer in made.items():
        for ours, theirs in zip(peer.values(), expected, strict=False):  # NumPy has no gradients
            if np.shape(ours) != theirs.shape or not np.allclose(ours, theirs, *TOLERANCES):
                sys.exit(f"{expression}: {name}'s value or gradient is not torch's: not timed")
    return made


def recording(peer: Any) -> _timing.Timer:
    """Return a timer of one call."""
    peer.record(3)
    repeats = max(10, round(ROUND / (peer.record(10) / 10)))
    return lambda: peer.record(repeats) / repeats


def backward(peer: Any) -> _timing.Timer:
    """Return a timer of 20 results of the operation and one backward over all of them."""
    peer.backward()
    repeats = max(3, round(ROUND / peer.backward()))
    return lambda: sum(peer.backward() for _ in range(repeats)) / repeats


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


def ratios(timers: dict[str, _timing.Timer], rounds: int) -> dict[str, Any]:
    """Return pullback's time and its ratios to the peers, to torch with the collector off too."""
    times = _timing.interleaved(timers, rounds)
    two = {name: timers[name] for name in ("pullback", "torch")}
    without = _timing.interleaved(two, rounds, gc_on=False)
    return {
        "us": statistics.median(times["pullback"]) * 1e6,
        "torch": _timing.ratio(times, "pullback", "torch"),
        "torch_gc_off": _timing.ratio(without, "pullback", "torch"),
        "autograd": _timing.ratio(times, "pullback", "autograd"),
        "numpy": _timing.ratio(times, "pullback", "numpy"),
    }


def measure(options: argparse.Namespace) -> dict[str, Any]:
    rows = []
    for expression in MIX:
        made = peers(expression)
        record = {name: recording(peer) for name, peer in made.items()}
        made.pop("numpy", None)
        both = {name: backward(peer) for name, peer in made.items()}
        rows.append(
            {
                "name": expression,
                "recording": ratios(record, options.rounds),
                "backward": ratios(both, options.rounds),
            }
        )
    own = []
    for how in ("positional", "by keyword", "default left out"):
        (ours, our_leaves), (theirs, their_leaves) = own_chain(pb, how), own_chain(torch, how)
        ours(), theirs()
        for a, b in zip(our_leaves, their_leaves, strict=True):
            if not np.allclose(a.grad.numpy(), b.grad.numpy(), 1e-5, 1e-6):
                sys.exit(f"the user's operation, {how}: a gradient is not torch's: not timed")
        own.append(
            {"name": how, "chain": ratios({"pullback": ours, "torch": theirs}, options.rounds)}
        )
    return {"mix": rows, "own": own}


RECORDING = ("us", "torch", "torch_gc_off", "autograd", "numpy")
BACKWARD = RECORDING[:-1]


def print_table(found: dict[str, Any], options: argparse.Namespace) -> None:
    print(
        f"The mix, pullback beside torch {torch.__version__}, autograd and numpy {np.__version__}; "
        f"one thread, {options.rounds} rounds, {options.processes} process(es).\n"
        "Ratios: pullback's time by the peer's, with the garbage collector on; * off."
    )
    heads = [f"{head:>8}" for head in ("us", "/torch", "/torch*", "/HIPS", "/NumPy")]
    print(f"\n{'':30}{'recording':>10}{'':32}{RESULTS:4} results and one backward")
    print(f"{'':30}{''.join(heads)}  {''.join(heads[:-1])}")
    for row in found["mix"]:
        left, right = cells(row["recording"], RECORDING), cells(row["backward"], BACKWARD)
        print(f"{row['name']:30}{left}  {right}")
    figures = [
        [row[kind][key] for row in found["mix"]]
        for kind, keys in (("recording", RECORDING), ("backward", BACKWARD))
        for key in keys[1:3]
    ]
    for title, choose in (("geometric mean", _timing.geometric_mean), ("worst", max)):
        a, b, c, d = (_timing.shown(choose(column), 8) for column in figures)
        print(f"{title:30}{'':8}{a}{b}{'':26}{c}{d}")
    a, b, c, d = (MIX[column.index(max(column))] for column in figures)
    print(f"worst: recording {a} (*: {b}); one backward {c} (*: {d})")
    print(f"\n{'a user operation':30}{''.join(heads[:3])}   one of {CHAIN}, forward and backward")
    for row in found["own"]:
        print(f"{row['name']:30}{cells(row['chain'], RECORDING[:3])}")


def ratios_of_peers(found: dict[str, Any]) -> _timing.Ratios:
    """Return the ratios of each operation, recorded and with a backward, and of a user's."""
    both = "forward and backward: "
    mix = {
        row["name"]: _timing.by_peer(row["recording"], "recording: ")
        | _timing.by_peer(row["backward"], both)
        for row in found["mix"]
    }
    own = {
        f"a user operation, {row['name']}": _timing.by_peer(row["chain"], both)
        for row in found["own"]
    }
    return mix | own


def cells(figures: dict[str, Any], keys: Iterable[str]) -> str:
    return "".join(_timing.shown(figures[key], 8) for key in keys)


def main() -> None:
    options = _timing.parser(__doc__, rounds=21).parse_args()
    _timing.run(measure, options, print_table, ratios_of_peers)


if __name__ == "__main__":
    main()
