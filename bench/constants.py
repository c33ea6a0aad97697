"""Programs with large NumPy constants: time and memory of a gradient, beside HIPS autograd.

A graph keeps a snapshot of a NumPy array that backward reads, see docs/memory.md; HIPS
autograd keeps the caller's array itself. One thread on one CPU. The gradients are compared first;
then the two take turns, in alternating order. The ratio of times is the median within a round. The
memory is the largest that a process of its own had which computed one gradient.

    python bench/constants.py [--rounds N] [--json]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _timing
import numpy as np

RNG = np.random.default_rng(0)


def products(xp: Any) -> tuple[Callable[[Any], Any], Any]:
    """Return the sum of x times a constant of a million elements, 40 times, and x."""
    constant = RNG.uniform(0.9, 1.1, 1_000_000)

    def f(x: Any) -> Any:
        for _ in range(40):
            x = x * constant
        return xp.sum(x)

    return f, RNG.uniform(0.5, 1.5, 1_000_000)


def waves(xp: Any) -> tuple[Callable[[Any], Any], Any]:
    """Return the energy at probes after 600 steps of an electromagnetic wave, and 1 / permittivity.

    Finite differences in time and space (FDTD) on 100x100 cells, with absorbing borders: the
    factors of the three fields are constants.
    """
    border = np.minimum(np.arange(100), np.arange(100)[::-1]).clip(max=10) / 10
    keep = 1 - 0.3 * (1 - np.minimum.outer(border, border)) ** 2
    keep_x, keep_y, step_x, step_y = keep.copy(), keep.copy(), 0.5 * keep, 0.5 * keep
    source, probe = np.zeros((100, 100)), np.zeros((100, 100))
    source[50, 30] = probe[40:60, 70] = 1.0

    def f(inverse: Any) -> Any:
        e, hx, hy = (np.zeros((100, 100)) for _ in range(3))
        for step in range(600):
            hx = keep_x * hx - step_x * (xp.roll(e, -1, 1) - e)
            hy = keep_y * hy + step_y * (xp.roll(e, -1, 0) - e)
            curl = (hy - xp.roll(hy, 1, 0)) - (hx - xp.roll(hx, 1, 1))
            e = keep * e + inverse * curl + source * np.sin(0.1 * step)
        return xp.sum(probe * e * e)

    return f, RNG.uniform(0.3, 0.5, (100, 100))


PROGRAMS = {
    "40 products with one constant of 10^6 elements": products,
    "FDTD, 100x100 cells, 600 steps": waves,
}
LIBRARIES = ("pullback", "autograd")


def gradient(name: str, library: str) -> Callable[[], Any]:
    """Return what computes the gradient of a program with a library."""
    global RNG
    RNG = np.random.default_rng(0)
    if library == "pullback":
        import pullback

        grad, xp = pullback.grad, np
    else:
        import autograd
        import autograd.numpy

        grad, xp = autograd.grad, autograd.numpy
    f, x = PROGRAMS[name](xp)
    of = grad(f)
    return lambda: of(x)


def most_memory() -> float:
    """Return the largest memory that this process had, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise SystemExit("constants: the system does not say how much memory a process had")


def memory_of(name: str, library: str) -> float:
    """Return the largest memory, in MB, of a process that computes one gradient."""
    command = [sys.executable, __file__, "--memory", name, library]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    results = []
    for name in PROGRAMS:
        compute = {library: gradient(name, library) for library in LIBRARIES}
        ours, theirs = (compute[library]() for library in LIBRARIES)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
        timers = {library: _timing.timed(body, 1) for library, body in compute.items()}
        times = _timing.interleaved(timers, options.rounds)
        memory = {library: memory_of(name, library) for library in LIBRARIES}
        results.append(_timing.compared(name, times, memory, *LIBRARIES))
    return results


def main() -> None:
    options = _timing.parser(__doc__, rounds=9)
    options.add_argument("--memory", nargs=2, metavar=("PROGRAM", "LIBRARY"))
    given = options.parse_args()
    if given.memory:
        gradient(*given.memory)()
        print(most_memory())
        return
    _timing.run(
        measure,
        given,
        lambda found, _: _timing.show_compared("gradient, beside HIPS autograd", found),
        lambda found: _timing.ratios_of_compared(found, "HIPS autograd"),
    )


if __name__ == "__main__":
    main()
