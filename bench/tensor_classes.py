"""What recording costs on tensors with NumPy's methods, beside plain tensors.

The operations of `mix.py`, those that NumPy code adds (an array beside a tensor, NumPy's own
functions), and an operation of the user's own; one thread on one CPU, the classes in alternating
order. Each ratio is the median over the rounds; values are compared first.

    python bench/tensor_classes.py [--rounds N] [--processes N] [--json]
"""

from __future__ import annotations

import argparse
import statistics
import sys
from types import SimpleNamespace
from typing import Any

import _timing
import mix
import numpy as np

import pullback as pb
from pullback.numpy_protocol.tensor import NumPyTensor

WITH_NUMPY = (
    "x * lib.array",
    "lib.array * x",
    "lib.np.sin(x)",
    "lib.np.sum(x)",
    "lib.np.dot(M, v)",
    "lib.own(x, y)",
)
IN_NUMPY = {"M.var(1)": "M.var(1, ddof=1)"}  # the same number by NumPy's method
CLASSES = {"plain": pb.Tensor, "numpy": NumPyTensor}


class Recording:
    """One operation, called on tensors of a class."""

    def __init__(self, expression: str, cls: type[pb.Tensor]) -> None:
        text = IN_NUMPY.get(expression, expression) if cls is NumPyTensor else expression
        self.loops = mix.Loops(text)
        names = {name: getattr(pb, name) for name in pb.__all__}
        own = mix.own_pullback(False)
        lib = SimpleNamespace(**names, np=np, array=np.linspace(1.0, 2.0, 56), own=own)
        given = mix.arguments(pb)[1:]
        for tensor in given:
            tensor.__class__ = cls
        self.given = [lib, *given]

    def record(self, repeats: int) -> float:
        start = _timing.clock()
        self.loops.drop(range(repeats), *self.given)
        return _timing.clock() - start

    def value(self) -> Any:
        return self.loops.keep(range(1), *self.given)[0].detach().numpy()


def measure(options: argparse.Namespace) -> dict[str, Any]:
    rows = []
    for expression in (*mix.MIX, *WITH_NUMPY):
        made = {name: Recording(expression, cls) for name, cls in CLASSES.items()}
        if not np.allclose(made["plain"].value(), made["numpy"].value(), *mix.TOLERANCES):
            sys.exit(f"{expression}: the classes give other values: not timed")
        timers = {name: mix.recording(each) for name, each in made.items()}
        times = _timing.interleaved(timers, options.rounds)
        us = statistics.median(times["plain"]) * 1e6
        rows.append({"name": expression, "us": us, "ratio": _timing.ratio(times, "numpy", "plain")})
    return {"rows": rows}


def main() -> None:
    _timing.run(measure, _timing.parser(__doc__, rounds=21).parse_args(), print_table, ratios)


def print_table(found: dict[str, Any], _: argparse.Namespace) -> None:
    print(f"{'recorded on tensors with NumPy methods':34}{'plain us':>9}{'ratio':>8}")
    for row in found["rows"]:
        print(f"{row['name']:34}{row['us']:9.2f}{_timing.shown(row['ratio'], 8)}")
    every = [row["ratio"] for row in found["rows"]]
    print(f"{'geometric mean':43}{_timing.shown(_timing.geometric_mean(every), 8)}")
    print(f"{'worst':43}{_timing.shown(max(every), 8)}")


def ratios(found: dict[str, Any]) -> _timing.Ratios:
    return {row["name"]: {"plain tensors": row["ratio"]} for row in found["rows"]}


if __name__ == "__main__":
    main()
