"""How much of Python a recorded call takes: calls, source files, objects tracked by the collector.

Counts, not times: they are the same in every run. Of each call, from the call to its recorded
result: how many Python functions are called, in how many source files, and how many objects that
the garbage collector tracks one result leaves alive, beside those of the same call in PyTorch.

    python bench/objects.py [--json]
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import _timing
import numpy as np
import torch
from mix import own_pullback, own_torch

import pullback as pb

HERE = str(Path(__file__).parent)
RESULTS = 1000  # recorded and kept to count the objects of one

Call = Callable[[], Any]


def calls(lib: Any) -> dict[str, Call]:
    """Return the calls that are counted, in `lib`; torch's take no keywords of one's own."""
    rng = np.random.default_rng(0)
    x, y = (lib.tensor(rng.normal(size=56), requires_grad=True) for _ in range(2))
    whole = lib.tensor(np.arange(56))
    own = own_pullback if lib is pb else own_torch
    op, with_default = own(default=False), own(default=True)
    every = {
        "x * y": lambda: x * y,
        "x * integers": lambda: x * whole,
        "x.sum()": lambda: x.sum(),
        "x[:14]": lambda: x[:14],
        "cat of 4": lambda: lib.cat((x, y, x, y)),
        "user, positional": lambda: op(x, y),
        "user, by keyword": lambda: op(x=x, w=y),
        "user, default left out": lambda: with_default(x, y),
    }
    if lib is torch:
        del every["user, by keyword"]
    return every


def entered(call: Call) -> tuple[int, list[str]]:
    """Return how many Python functions `call` calls, and the source files that they are of.

    Those of this folder, the call itself and a user's forward, are not counted; what forward calls
    is.
    """
    for _ in range(3):
        call()  # caches, lazy set-up
    files: list[str] = []

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and not frame.f_code.co_filename.startswith(HERE):
            files.append(frame.f_code.co_filename)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(files), sorted(set(files))


def tracked(call: Call) -> float:
    """Return how many objects that the collector tracks one recorded result leaves alive."""
    kept: list[Any] = [None] * RESULTS
    call()
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for i in range(RESULTS):
            kept[i] = call()
        return (len(gc.get_objects()) - before) / RESULTS
    finally:
        gc.enable()


def count(_: argparse.Namespace) -> list[dict[str, Any]]:
    theirs = calls(torch)
    rows = []
    for name, call in calls(pb).items():
        functions, files = entered(call)
        rows.append(
            {
                "name": name,
                "functions": functions,
                "files": len(files),
                "objects": tracked(call),
                "torch_objects": tracked(theirs[name]) if name in theirs else None,
            }
        )
    return rows


def main() -> None:
    _timing.run(count, _timing.parser(__doc__, rounds=1).parse_args(), print_table, ratios)


def print_table(rows: list[dict[str, Any]], _: argparse.Namespace) -> None:
    print("From the call to its recorded result; objects are those the garbage collector tracks.\n")
    print(f"{'':24}{'functions':>11}{'files':>8}{'objects':>10}{'torch':>8}")
    for r in rows:
        torch_objects = "-" if r["torch_objects"] is None else f"{r['torch_objects']:.1f}"
        print(
            f"{r['name']:24}{r['functions']:11}{r['files']:8}{r['objects']:10.1f}{torch_objects:>8}"
        )


def ratios(rows: list[dict[str, Any]]) -> _timing.Ratios:
    return {
        r["name"]: {"objects: PyTorch": r["objects"] / r["torch_objects"]}
        for r in rows
        if r["torch_objects"] is not None
    }


if __name__ == "__main__":
    main()
