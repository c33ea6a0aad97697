"""Whole programs, forward and gradient: pullback beside PyTorch, HIPS autograd and plain NumPy.

One thread on one CPU. The values of all peers are compared first, with those published where there
are any; a program whose values differ is not timed. Then the peers take turns, in alternating
order, and the figures are medians: of pullback's time, and of its ratios to each peer within a
round.

    python bench/programs.py [--only lstm,gmm] [--rounds N] [--processes N] [--json]
                             [--lstm-data FILE | --lstm-characters N]
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
from pathlib import Path
from typing import Any, NoReturn

import _timing
import numpy as np
import torch
from _programs import CHARACTERS, Program, Values, programs

torch.set_num_threads(1)

KNOWN = {"rel_tol": 1e-9, "abs_tol": 1e-12}  # how far a value may be from a published one


def values_of(program: Program, peer: str) -> Values:
    """Return what the peer's last step gave, as arrays."""
    step = program.peers[peer]()
    for _ in range(program.steps):
        result = step()
    return [np.array(as_numpy(value)) for value in result]


def as_numpy(value: Any) -> Any:
    return value.detach().numpy() if hasattr(value, "detach") else value


def compare(program: Program) -> None:
    """Exit where a peer's values are neither the published ones nor torch's."""
    values = {peer: values_of(program, peer) for peer in program.peers}
    for peer, got in values.items():
        for i, (ours, theirs) in enumerate(zip(got, values["torch"], strict=True)):
            if ours.shape != theirs.shape:
                refuse(program, f"value {i} of {peer} has shape {ours.shape}, not {theirs.shape}")
            away = float(np.abs(ours - theirs).max() / max(1e-30, np.abs(theirs).max()))
            if not away <= program.tolerance:
                refuse(program, f"value {i} of {peer} is {away:.1e} away from torch's")
        known = program.reference(got) if program.reference else {}
        for name, (value, reference) in known.items():
            if not math.isclose(value, reference, **KNOWN):
                refuse(program, f"{name} of {peer} is {value!r}, known is {reference!r}")


def refuse(program: Program, reason: str) -> NoReturn:
    sys.exit(f"{program.name}: {reason}: not timed")


def timer(program: Program, peer: str) -> _timing.Timer:
    """Return a timer of one step; every timing begins with data of its own."""

    def run() -> float:
        step = program.peers[peer]()
        if program.repeats > 1:
            step()
        return _timing.timed(step, program.repeats)()

    return run


def measure_one(program: Program, rounds: int) -> dict[str, Any]:
    compare(program)
    timers = {peer: timer(program, peer) for peer in program.peers}
    times = _timing.interleaved(timers, rounds)
    both = {peer: timers[peer] for peer in ("pullback", "torch")}
    without = _timing.interleaved(both, rounds, gc_on=False)
    return {
        "name": program.name,
        "pullback_ms": statistics.median(times["pullback"]) * 1e3,
        "torch": _timing.ratio(times, "pullback", "torch"),
        "torch_gc_off": _timing.ratio(without, "pullback", "torch"),
        "autograd": _timing.ratio(times, "pullback", "autograd"),
        "numpy": _timing.ratio(times, "pullback", "numpy"),
    }


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    every = programs(options.lstm_data or options.lstm_characters)
    only = options.only.split(",") if options.only else [p.name.split(",")[0] for p in every]
    unknown = set(only) - {p.name.split(",")[0] for p in every}
    if unknown:
        sys.exit(f"no such program: {', '.join(sorted(unknown))}")
    return [measure_one(p, options.rounds) for p in every if p.name.split(",")[0] in only]


def print_table(results: list[dict[str, Any]], options: argparse.Namespace) -> None:
    data = "its published file" if options.lstm_data else "drawn data"
    print(
        f"Forward and gradient, or a training step: pullback beside torch {torch.__version__}, "
        f"autograd and numpy {np.__version__};\none thread, {options.rounds} rounds, "
        f"{options.processes} process(es); lstm on {data}. Ratios: pullback's time by the peer's."
    )
    print(f"\n{'':22}{'pullback':>10}{'/torch':>10}{'/torch':>10}{'/HIPS':>10}{'/NumPy':>10}")
    print(f"{'program':22}{'ms':>10}{'gc on':>10}{'gc off':>10}{'gc on':>10}{'gc on':>10}")
    for r in results:
        columns = (r["torch"], r["torch_gc_off"], r["autograd"], r["numpy"])
        print(
            f"{r['name']:22}{_timing.shown(r['pullback_ms'], 10, 3)}"
            + "".join(_timing.shown(value, 10) for value in columns)
        )


def ratios(results: list[dict[str, Any]]) -> _timing.Ratios:
    return {r["name"]: _timing.by_peer(r) for r in results}


def main() -> None:
    parser = _timing.parser(__doc__, rounds=9)
    parser.add_argument("--only", metavar="NAMES", help="some programs, separated by commas")
    file = os.environ.get("LSTM_DATA")
    parser.add_argument(
        "--lstm-data",
        type=Path,
        default=Path(file) if file else None,
        metavar="FILE",
        help="ADBench's lstm_l2_c1024.txt (default: $LSTM_DATA, else drawn in the same sizes)",
    )
    parser.add_argument(
        "--lstm-characters",
        type=int,
        default=CHARACTERS,
        metavar="N",
        help="without a file: to draw",
    )
    options = parser.parse_args()
    _timing.run(measure, options, print_table, ratios)


if __name__ == "__main__":
    main()
