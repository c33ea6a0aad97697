"""What `pb.checkpoint` costs, and what it saves: 20 calls of a function, with and without.

One thread on one CPU. The gradients are compared first; then the two take turns, in alternating
order. The ratio of times is the median within a round. The memory is the peak that `tracemalloc`
counts in one gradient.

    python bench/checkpoint.py [--rounds N] [--processes N] [--json]
"""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable
from typing import Any

import _timing

import pullback as pb


def scalars(x: Any) -> Any:
    """Do 1000 operations on a scalar."""
    for _ in range(250):
        x = (x * 1.0001).sin() * x + 0.1
    return x


def arrays(x: Any) -> Any:
    """Do 20 operations on an array."""
    for _ in range(10):
        x = (x * x).sin()
    return x


# The function, and the number of elements of its argument.
PROGRAMS = {
    "1000 operations on a scalar": (scalars, 1),
    "20 operations on 10^5 elements": (arrays, 100_000),
}


def gradient(function: Callable[[Any], Any], size: int) -> Callable[[], Any]:
    """Return what computes the gradient of 20 calls of a function, one after the other."""
    start = pb.linspace(0.5, 0.9, size, dtype="float64")

    def compute() -> Any:
        x = y = start.clone().requires_grad_()
        for _ in range(20):
            y = function(y)
        y.sum().backward()
        return x.grad

    return compute


def peak(compute: Callable[[], Any]) -> float:
    """Return the largest memory, in MB, that one gradient needs."""
    tracemalloc.start()
    compute()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 1e6


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    results = []
    for name, (function, size) in PROGRAMS.items():
        compute = {
            "with": gradient(pb.checkpoint(function), size),
            "without": gradient(function, size),
        }
        assert compute["with"]().tolist() == compute["without"]().tolist()
        timers = {way: _timing.timed(body, 1) for way, body in compute.items()}
        times = _timing.interleaved(timers, options.rounds)
        memory = {way: peak(body) for way, body in compute.items()}
        results.append(_timing.compared(name, times, memory, "with", "without"))
    return results


def main() -> None:
    _timing.run(
        measure,
        _timing.parser(__doc__, rounds=9).parse_args(),
        lambda found, _: _timing.show_compared("20 calls in pb.checkpoint", found),
        lambda found: _timing.ratios_of_compared(found, "without"),
    )


if __name__ == "__main__":
    main()
