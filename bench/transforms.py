"""Derivatives of functions: pullback beside HIPS autograd, torch.func and JAX.

One thread on one CPU. Each function is written once, against a namespace: NumPy's own for pullback,
which takes a NumPy program as it stands. The values of all are compared first. Then the peers take
turns, in alternating order; the figures are medians over the rounds. JAX is timed as it is called,
and once more compiled (`jax.jit`), which takes seconds before the first call.

    python bench/transforms.py [--only jacobian,hvp] [--rounds N] [--processes N] [--json]
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import _timing
import autograd
import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import torch

import pullback as pb

torch.set_num_threads(1)
jax.config.update("jax_enable_x64", True)

Function = Callable[..., Any]
PEERS = ("pullback", "autograd", "torch", "jax", "jax.jit")
_NAMESPACES = {"pullback": np, "autograd": anp, "torch": torch, "jax": jnp, "jax.jit": jnp}


@dataclass(frozen=True)
class Task:
    """What is timed: a function written against a namespace, and its derivative for each peer."""

    name: str
    write: Callable[[Any], Function]
    arrays: tuple[np.ndarray, ...]
    derivative: dict[str, Callable[[Function], Function]]
    repeats: int


# -- functions -------------------------------------------------------------------------------------
def network(xp: Any) -> Function:
    """Return two layers of 50, as a function of the input."""

    def f(x: Any, w: Any, v: Any) -> Any:
        return xp.tanh(v @ xp.tanh(w @ x))

    return f


def layer(xp: Any) -> Function:
    """Return one wide layer, as a function of the input."""
    return lambda x, w: xp.tanh(w @ x)


def layer_sum(xp: Any) -> Function:
    """Return the sum of one wide layer."""
    return lambda x, w: xp.sum(xp.tanh(w @ x))


def solution(xp: Any) -> Function:
    """Return the solution of a linear system, as a function of its right-hand side."""
    return lambda x, w: xp.tanh(xp.linalg.solve(w, x))


def likelihood(xp: Any) -> Function:
    """Return the loss of a logistic regression."""

    def f(w: Any, x: Any, y: Any) -> Any:
        z = x @ w
        return xp.sum(xp.log(1 + xp.exp(z)) - y * z) + 0.5 * xp.sum(w * w)

    return f


def mixture(xp: Any) -> Function:
    """Return the loss of a mixture of Gaussians with diagonal covariances."""

    def f(mu: Any, x: Any, alpha: Any, q: Any) -> Any:
        whitened = (x[:, None, :] - mu) * xp.exp(q)
        beta = alpha + xp.sum(q, -1) - 0.5 * xp.sum(whitened * whitened, -1)
        return -xp.sum(xp.log(xp.sum(xp.exp(beta), -1)))

    return f


def sample_loss(xp: Any) -> Function:
    """Return the squared error of one sample, as a function of the weights."""

    def f(w: Any, v: Any, x: Any, y: Any) -> Any:
        error = v @ xp.tanh(w @ x) - y
        return xp.sum(error * error)

    return f


def fluid(xp: Any) -> Function:
    """Return how far smoke is from a picture after five steps, HIPS autograd's fluidsim.py.

    As a function of the horizontal velocities where it begins.
    """
    roll = (lambda x, k, axis: torch.roll(x, k, (axis,))) if xp is torch else xp.roll

    def projected(vx: Any, vy: Any) -> Any:
        h = 1.0 / vx.shape[0]
        div = roll(vx, -1, axis=0) - roll(vx, 1, axis=0)
        div = -0.5 * h * (div + roll(vy, -1, axis=1) - roll(vy, 1, axis=1))
        p = xp.zeros_like(div)
        for _ in range(10):
            p = div + roll(p, 1, axis=0) + roll(p, -1, axis=0) + roll(p, 1, axis=1)
            p = (p + roll(p, -1, axis=1)) / 4.0
        vx = vx - 0.5 * (roll(p, -1, axis=0) - roll(p, 1, axis=0)) / h
        return vx, vy - 0.5 * (roll(p, -1, axis=1) - roll(p, 1, axis=1)) / h

    def carried(f: Any, vx: Any, vy: Any, rows: Any, columns: Any) -> Any:
        n, m = f.shape
        x, y = (rows - vx).reshape(-1), (columns - vy).reshape(-1)
        left, top = whole(x), whole(y)
        right, low = x - left, y - top
        here, there = left % n, (left + 1) % n
        above, below = top % m, (top + 1) % m
        near = (1 - low) * f[here, above] + low * f[here, below]
        far = (1 - low) * f[there, above] + low * f[there, below]
        return ((1 - right) * near + right * far).reshape(n, m)

    def loss(vx: Any, vy: Any, smoke: Any, target: Any, rows: Any, columns: Any) -> Any:
        for _ in range(5):
            moved = carried(vx, vx, vy, rows, columns), carried(vy, vx, vy, rows, columns)
            vx, vy = projected(*moved)
            smoke = carried(smoke, vx, vy, rows, columns)
        return ((smoke - target) ** 2).mean()

    return loss


def whole(x: Any) -> Any:
    """Return the largest integers below numbers, which no gradient follows."""
    if isinstance(x, torch.Tensor):
        return x.detach().floor().long()
    if isinstance(x, jax.Array):
        return jnp.floor(x).astype(int)
    if isinstance(x, pb.Tensor):
        x = x.detach().numpy()
    return np.floor(getattr(x, "_value", x)).astype(int)


def recurrent(xp: Any) -> Function:
    """Return the loss of a network that predicts the next character, HIPS autograd's rnn.py.

    As a function of the recurrent weights.
    """
    join = torch.cat if xp is torch else xp.concatenate

    def loss(change: Any, predict: Any, start: Any, ones: Any, texts: Any) -> Any:
        hidden, total = start, 0.0
        for t in range(texts.shape[0] - 1):
            hidden = xp.tanh(join([texts[t], hidden, ones], 1) @ change)
            out = join([hidden, ones], 1) @ predict
            likely = xp.log(xp.exp(out).sum(1)) - (out * texts[t + 1]).sum(1)
            total = total + likely.sum()
        return total

    return loss


# -- derivatives -----------------------------------------------------------------------------------
def compiled(make: Callable[[Function], Function]) -> Callable[[Function], Function]:
    return lambda f: jax.jit(make(f))


def with_jit(ways: dict[str, Callable[[Function], Function]]) -> dict[str, Any]:
    return ways | {"jax.jit": compiled(ways["jax"])}


def torch_hvp(f: Function) -> Function:
    def product(x: Any, *rest: Any) -> Any:
        *fixed, v = rest
        gradient = torch.func.grad(lambda x: f(x, *fixed))
        return torch.func.jvp(gradient, (x,), (v,))[1]

    return product


def jax_hvp(f: Function) -> Function:
    def product(x: Any, *rest: Any) -> Any:
        *fixed, v = rest
        return jax.jvp(jax.grad(lambda x: f(x, *fixed)), (x,), (v,))[1]

    return product


def by_loop(f: Function) -> Function:
    """Return the gradients of each sample as HIPS autograd's users take them."""
    gradient = autograd.grad(f)
    return lambda w, v, xs, ys: anp.stack(
        [gradient(w, v, x, y) for x, y in zip(xs, ys, strict=True)]
    )


GRADIENT = {
    "pullback": pb.grad,
    "autograd": autograd.grad,
    "torch": torch.func.grad,
    "jax": jax.grad,
}
JACOBIAN = {
    "pullback": pb.jacobian,
    "autograd": autograd.jacobian,
    "torch": torch.func.jacrev,
    "jax": jax.jacrev,
}
HESSIAN = {
    "pullback": pb.hessian,
    "autograd": autograd.hessian,
    "torch": torch.func.hessian,
    "jax": jax.hessian,
}
HVP = {
    "pullback": pb.hvp,
    "autograd": autograd.hessian_vector_product,
    "torch": torch_hvp,
    "jax": jax_hvp,
}
AXES = (None, None, 0, 0)
SAMPLES = {
    "autograd": by_loop,
    "torch": lambda f: torch.func.vmap(torch.func.grad(f), in_dims=AXES),
    "jax": lambda f: jax.vmap(jax.grad(f), in_axes=AXES),
}
if hasattr(pb, "vmap"):
    SAMPLES["pullback"] = lambda f: pb.vmap(pb.grad(f), in_axes=AXES)


def tasks() -> list[Task]:
    rng = np.random.default_rng(11)

    def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
        return scale * rng.normal(size=shape)

    layers = (normal(50), normal(50, 50, scale=0.2), normal(50, 50, scale=0.2))
    data = (normal(20, scale=0.3), normal(200, 20), rng.integers(0, 2, 200).astype(float))
    clusters = (normal(25, 10), normal(1000, 10), normal(25), normal(25, 10, scale=0.1))
    weights = (normal(32, 10), normal(4, 32))
    samples = (normal(64, 10), normal(64, 4))
    places = [a.astype(float) for a in np.mgrid[0:40, 0:40]]
    smoke = (normal(40, 40), normal(40, 40), normal(40, 40), normal(40, 40), *places)
    texts = np.eye(128)[rng.integers(0, 128, (30, 7))]
    cells = (normal(169, 40, scale=0.1), normal(41, 128, scale=0.1), np.zeros((7, 40)))
    found = [
        Task("fluidsim", fluid, smoke, with_jit(GRADIENT), 1),
        Task("rnn", recurrent, (*cells, np.ones((7, 1)), texts), with_jit(GRADIENT), 1),
        Task("jacobian", network, layers, with_jit(JACOBIAN), 5),
        Task("jac-1500", layer, (normal(1500), normal(1500, 1500, scale=1e-3)), JACOBIAN, 1),
        Task(
            "jac-solve",
            solution,
            (normal(300), np.eye(300) + normal(300, 300, scale=1e-2)),
            JACOBIAN,
            1,
        ),
        Task("grad-4000", layer_sum, (normal(4000), normal(4000, 4000, scale=1e-3)), GRADIENT, 1),
        Task("hessian", likelihood, data, with_jit(HESSIAN), 5),
        Task("hvp", mixture, (*clusters, normal(25, 10)), with_jit(HVP), 1),
    ]
    if "pullback" in SAMPLES:
        found.append(Task("samples", sample_loss, (*weights, *samples), with_jit(SAMPLES), 3))
    return found


# -- measuring -------------------------------------------------------------------------------------
def prepared(task: Task, peer: str) -> Callable[[], Any]:
    """Return the call of one peer, with its own arrays."""
    own = {"torch": torch.tensor, "jax": jnp.asarray, "jax.jit": jnp.asarray}.get(peer, np.array)
    arrays = [own(a) for a in task.arrays]
    derivative = task.derivative[peer](task.write(_NAMESPACES[peer]))

    def call() -> Any:
        found = derivative(*arrays)
        return found.block_until_ready() if peer.startswith("jax") else found

    return call


def measure_one(task: Task, rounds: int) -> dict[str, Any]:
    calls = {peer: prepared(task, peer) for peer in PEERS if peer in task.derivative}
    expected = np.asarray(calls["torch"]())
    for peer, call in calls.items():
        got = np.asarray(call())
        away = float(np.abs(got - expected).max() / np.abs(expected).max())
        if got.shape != expected.shape or not away < 1e-9:
            sys.exit(f"{task.name}: {peer} is {away:.1e} away from torch: not timed")
    timers = {peer: _timing.timed(call, task.repeats) for peer, call in calls.items()}
    times = _timing.interleaved(timers, rounds)
    ratios = {peer: _timing.ratio(times, "pullback", peer) for peer in calls if peer != "pullback"}
    return {"name": task.name, "ms": statistics.median(times["pullback"]) * 1e3, **ratios}


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    every = tasks()
    only = options.only.split(",") if options.only else [task.name for task in every]
    unknown = set(only) - {task.name for task in every}
    if unknown:
        sys.exit(f"no such task: {', '.join(sorted(unknown))}")
    return [measure_one(task, options.rounds) for task in every if task.name in only]


def main() -> None:
    parser = _timing.parser(__doc__, rounds=15)
    parser.add_argument("--only", metavar="NAMES", help="some tasks, separated by commas")
    _timing.run(measure, parser.parse_args(), print_table, ratios)


def print_table(results: list[dict[str, Any]], options: argparse.Namespace) -> None:
    print(f"{'':12}{'pullback ms':>12}" + "".join(f"{'/' + peer:>12}" for peer in PEERS[1:]))
    for r in results:
        columns = "".join(_timing.shown(r.get(peer), 12) for peer in PEERS[1:])
        print(f"{r['name']:12}{_timing.shown(r['ms'], 12, 3)}{columns}")


def ratios(results: list[dict[str, Any]]) -> _timing.Ratios:
    return {r["name"]: _timing.by_peer(r) for r in results}


if __name__ == "__main__":
    main()
