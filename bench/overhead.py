"""What recording and differentiating costs: pullback beside PyTorch, in one run.

One thread on one CPU, arrays of 4 float32 elements, so that arithmetic costs nothing and what is
left is the library. Each round times every program on both sides one after the other, in
alternating order; the verdict is on the median of the per-round ratios.

    python bench/overhead.py [--rounds N] [--json]
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import _timing
import numpy as np
import torch

import pullback as pb

torch.set_num_threads(1)

CHAIN = 1000
BATCH = 200
IMPORT_LIMIT = 0.15

# A program prepares its data and returns a timer of one execution.
Tensors = Callable[..., Any]


# -- the programs, each the same on both sides ----------------------------------------------------


def recorded_multiply(make: Tensors, lib: Any, both: bool = False) -> _timing.Timer:
    x = make([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    y = make([1.0, 0.5, 2.0, 1.0], requires_grad=both)
    return _timing.timed(lambda: x * y, 2000)


def multiply_chain(make: Tensors, lib: Any) -> _timing.Timer:
    x = make([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    factor, ones = make([1.0, 0.999, 1.001, -1.0]), make([1.0] * 4)

    def body() -> None:
        y = x
        for _ in range(CHAIN):
            y = y * factor
        y.backward(ones)
        x.grad = None

    return _timing.timed(body, 5)


def custom_chain(
    make: Tensors, lib: Any, both: bool = False, in_numpy: bool = False
) -> _timing.Timer:
    x = make([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    factor, ones = make([1.0, 0.999, 1.001, -1.0], requires_grad=both), make([1.0] * 4)
    op = numpy_multiply(lib) if in_numpy else custom_multiply(lib, both)

    def body() -> None:
        y = x
        for _ in range(CHAIN):
            y = op(y, factor)
        y.backward(ones)
        x.grad = factor.grad = None

    return _timing.timed(body, 3)


def custom_multiply(lib: Any, both: bool) -> Callable[..., Any]:
    """Return x * y as the user's own operation, with the gradient of `y` or without."""
    if lib is pb:

        @pb.autograd_function
        def multiply(ctx, x, y):
            ctx.save_for_backward(x=x, y=y)
            return x * y

        @multiply.backward
        def _(ctx, grad_output):
            s = ctx.saved_variables
            return {"x": grad_output * s.y, "y": grad_output * s.x if both else None}

        return multiply

    class Multiply(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad_output):
            x, y = ctx.saved_tensors
            return grad_output * y, grad_output * x if both else None

    return Multiply.apply


def numpy_multiply(lib: Any) -> Callable[..., Any]:
    """Return x * y as the user's own operation written with NumPy, with the gradient of `x`."""
    if lib is pb:

        @pb.autograd_function
        def multiply(ctx, x, y):
            ctx.save_for_backward(y=y)
            return x.numpy() * y.numpy()

        @multiply.backward
        @pb.once_differentiable
        def _(ctx, grad_output):
            return {"x": grad_output.numpy() * ctx.saved_variables.y.numpy()}

        return multiply

    class Multiply(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return torch.from_numpy(x.numpy() * y.numpy())

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return torch.from_numpy(grad_output.numpy() * y.numpy()), None

    return Multiply.apply


def one_op_backward(make: Tensors, lib: Any) -> _timing.Timer:
    factor, ones = make([1.0, 0.5, 2.0, 1.0]), make([1.0] * 4)

    def run() -> float:
        leaves = [make([1.0, 2.0, 3.0, 4.0], requires_grad=True) for _ in range(BATCH)]
        results = [leaf * factor for leaf in leaves]
        gc.collect(0)  # else what was allocated before decides whether it runs in what is timed
        start = _timing.clock()
        for result in results:
            result.backward(ones)
        return (_timing.clock() - start) / BATCH

    return run


def gradient_step(make: Tensors, lib: Any) -> _timing.Timer:
    rng = np.random.default_rng(0)

    def values(*shape: int) -> Any:
        return make(rng.normal(size=shape).astype(np.float32))

    x, y = values(8, 8), values(8, 1)
    w1, b1, w2, b2 = weights = [values(8, 16), values(16), values(16, 1), values(1)]
    for weight in weights:
        weight.requires_grad_()

    def body() -> None:
        hidden = (x.mm(w1) + b1).relu()
        loss = (hidden.mm(w2) + b2 - y).pow(2).mean()
        loss.backward()
        with lib.no_grad():
            for weight in weights:
                weight.sub_(1e-4 * weight.grad)
                weight.grad = None

    return _timing.timed(body, 100)


def training_step(make: Tensors, lib: Any) -> _timing.Timer:
    """Return the timer of a step as a newcomer writes it: a network 8-8-16-1, an optimizer."""
    rng = np.random.default_rng(0)

    def values(*shape: int) -> Any:
        return make(rng.normal(size=shape).astype(np.float32))

    x, y = values(8, 8), values(8, 1)
    layers = [(values(n, m), values(m)) for n, m in ((8, 8), (8, 16), (16, 1))]
    weights = [weight.requires_grad_() for layer in layers for weight in layer]
    optimizer = lib.optim.SGD(weights, lr=1e-4)

    def body() -> None:
        hidden = x
        for w, b in layers[:-1]:
            hidden = (hidden @ w + b).relu()
        w, b = layers[-1]
        loss = (hidden @ w + b - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return _timing.timed(body, 100)


# -- measuring ------------------------------------------------------------------------------------


@dataclass
class Row:
    """One program: what it must reach, and the seconds of each round on both sides."""

    name: str
    target: float | None
    program: Callable[..., _timing.Timer]
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    def ratios(self) -> list[float]:
        return [a / b for a, b in zip(self.ours, self.theirs, strict=True)]

    def summary(self) -> dict[str, Any]:
        low, ratio, high = statistics.quantiles(self.ratios(), n=4, method="inclusive")
        return {
            "name": self.name,
            "pullback_us": statistics.median(self.ours) * 1e6,
            "torch_us": statistics.median(self.theirs) * 1e6,
            "ratio": ratio,
            "ratio_quartiles": [low, high],
            "target": self.target,
        }


def rows() -> list[Row]:
    return [
        Row("recorded multiply, one operand tracked", 0.65, recorded_multiply),
        Row(
            "the same, both operands tracked", None, lambda m, lib: recorded_multiply(m, lib, True)
        ),
        Row("1000 multiplies, forward + backward", 0.65, multiply_chain),
        Row("1000 custom ops, two saved by name", 0.40, custom_chain),
        Row("the same, both arguments tracked", None, lambda m, lib: custom_chain(m, lib, True)),
        Row("1000 custom ops in NumPy", None, lambda m, lib: custom_chain(m, lib, in_numpy=True)),
        Row("backward of one multiply", 0.35, one_op_backward),
        Row("gradient step, batch 8, 8-16-1", 0.60, gradient_step),
        Row("training step, batch 8, 8-8-16-1, SGD", 0.60, training_step),
    ]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    rounds = max(2, options.rounds)  # quartiles need two
    return {"rows": measure_rows(rounds), "import": measure_imports(min(rounds, 9))}


def measure_rows(rounds: int) -> list[dict[str, Any]]:
    table = rows()
    timers = [(row, row.program(pb.tensor, pb), row.program(torch.tensor, torch)) for row in table]
    for _, ours, theirs in timers:  # once unmeasured: caches, lazy set-up
        ours()
        theirs()
    for number in range(rounds):
        for row, ours, theirs in timers:
            pair = [(ours, row.ours), (theirs, row.theirs)]
            for timer, times in pair if number % 2 else reversed(pair):
                times.append(timer())
    return [row.summary() for row in table]


def import_seconds(statement: str, rounds: int) -> float:
    """Return the median seconds that `statement` takes in a fresh interpreter."""
    program = (
        "from time import perf_counter; start = perf_counter()\n"
        f"{statement}\n"
        "print(perf_counter() - start)"
    )
    # Bytecode is kept between imports, as it is where nobody switches that off.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(rounds + 1):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        times.append(float(done.stdout))
    return statistics.median(times[1:])  # the first may still be compiling


def measure_imports(rounds: int) -> dict[str, Any]:
    return {
        "pullback_s": import_seconds("import pullback", rounds),
        "of_which_numpy_s": import_seconds("import numpy", rounds),
        "torch_s": import_seconds("import torch", min(rounds, 3)),
        "target_s": IMPORT_LIMIT,
    }


def verdict(figure: float, target: float | None) -> str:
    return "" if target is None else "reached" if figure <= target else "MISSED"


def print_table(found: dict[str, Any], options: argparse.Namespace) -> None:
    imports = found["import"]
    print(
        f"pullback beside torch {torch.__version__}, numpy {np.__version__}, "
        f"Python {sys.version.split()[0]}; one thread, one CPU, {options.rounds} rounds, "
        "4-element float32 arrays."
    )
    print("Times are medians in microseconds, and noise of this machine: only ratios carry over.")
    print(f"\n{'':40}{'pullback':>10}{'torch':>10}{'ratio':>8}{'quartiles':>15}{'target':>8}")
    for r in found["rows"]:
        low, high = r["ratio_quartiles"]
        target = "" if r["target"] is None else f"{r['target']:.2f}"
        print(
            f"{r['name']:40}{r['pullback_us']:10.2f}{r['torch_us']:10.2f}{r['ratio']:8.3f}"
            f"{f'{low:.3f}-{high:.3f}':>15}{target:>8}  {verdict(r['ratio'], r['target'])}"
        )
    print(
        f"\nimport pullback: {imports['pullback_s']:.3f} s in a fresh interpreter, of which numpy "
        f"alone {imports['of_which_numpy_s']:.3f} s; target {imports['target_s']} s "
        f"{verdict(imports['pullback_s'], imports['target_s'])}; "
        f"import torch: {imports['torch_s']:.3f} s"
    )


def ratios(found: dict[str, Any]) -> _timing.Ratios:
    imports = found["import"]
    rows = {r["name"]: {"PyTorch": r["ratio"]} for r in found["rows"]}
    return rows | {"import": {"PyTorch": imports["pullback_s"] / imports["torch_s"]}}


def main() -> None:
    _timing.run(measure, _timing.parser(__doc__, rounds=21).parse_args(), print_table, ratios)


if __name__ == "__main__":
    main()
