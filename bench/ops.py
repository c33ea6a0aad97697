"""What each element-wise operation and reduction costs beside bare NumPy, and beside PyTorch.

Drawn from the registry, on 10^2, 10^4 and 10^6 float64 elements, one thread on one CPU. Each round
times every program of a call one after the other, in alternating order; figures are medians over
the rounds, of differences and of ratios within a round.

    python bench/ops.py [--only exp,sum] [--rounds N] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import textwrap
from typing import Any

import _timing
import numpy as np
import torch
from _ops_calls import Call, Program, Programs, chosen

torch.set_num_threads(1)

SIZES = (10**2, 10**4, 10**6)
OVERHEAD_US, SLOWDOWN = 0.7, 1.1  # the targets
ROUND = 4e-4  # seconds that a program runs in one round, at least once


def times_of(programs: dict[str, Program], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each program in each round."""
    timers = {}
    for name, program in programs.items():
        program()  # once unmeasured: caches, lazy set-up
        once = _timing.timed(program, 3)()
        timers[name] = _timing.timed(program, max(1, min(2000, round(ROUND / once))))
    return _timing.interleaved(timers, rounds)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    rounds = options.rounds = 5 if options.quick else max(2, options.rounds)
    calls, skipped = chosen({name for name in options.only.split(",") if name})
    with np.errstate(all="ignore"):
        rows = [measure_call(theme, call, rounds) for theme, call in calls]
    return {"rows": rows, "skipped": skipped}


def measure_call(theme: str, call: Call, rounds: int) -> dict[str, Any]:
    row: dict[str, Any] = {"theme": theme, "name": call.label, "kind": call.kind, "sizes": {}}
    for n in SIZES:
        made = Programs(call, n)
        times = times_of(made.programs, rounds if n < 10**6 else max(5, rounds // 2))
        if n == SIZES[0]:
            pairs = zip(times["ours"], times["bare"], strict=True)
            row["overhead_us"] = (
                statistics.median(a - b for a, b in pairs) * 1e6 / max(made.nodes, 1)
            )
            row["recorded"] = made.nodes
        row["sizes"][title(n)] = {
            "us": {name: statistics.median(values) * 1e6 for name, values in times.items()},
            "backward_by_numpy": _timing.ratio(times, "ours_backward", "bare_backward"),
            "forward_by_torch": _timing.ratio(times, "ours", "torch"),
            "backward_by_torch": _timing.ratio(times, "ours_backward", "torch_backward"),
        }
    return row


# -- the report -----------------------------------------------------------------------------------
COLUMNS = {
    "backward_by_numpy": ("forward and backward", "NumPy"),
    "forward_by_torch": ("forward", "PyTorch"),
    "backward_by_torch": ("forward and backward", "PyTorch"),
}


def title(n: int) -> str:
    return f"1e{len(str(n)) - 1}"


def ratios(found: dict[str, Any]) -> _timing.Ratios:
    return {
        row["name"]: {
            f"{what}, {size}: {peer}": figures[column]
            for column, (what, peer) in COLUMNS.items()
            for size, figures in row["sizes"].items()
        }
        for row in found["rows"]
    }


def slowdown(row: dict[str, Any]) -> float:
    """Return forward and backward by NumPy's at the largest size, 0 where there is none."""
    return row["sizes"][title(SIZES[-1])]["backward_by_numpy"] or 0.0


def print_row(row: dict[str, Any]) -> None:
    ratios = [row["sizes"][title(n)][column] for column in COLUMNS for n in SIZES]
    cells = "".join(f"{'' if r is None else f'{r:.2f}':>8}" for r in ratios)
    missed = " overhead" * (row["overhead_us"] > OVERHEAD_US) + " slower" * (
        slowdown(row) > SLOWDOWN
    )
    print(f"  {row['name']:26}{row['overhead_us']:8.2f}{cells} {missed}")


def print_rows(rows: list[dict[str, Any]]) -> None:
    titles = ("recording", "f+b by NumPy", "forward by torch", "f+b by torch")
    print(f"\n{'':28}{titles[0]:>10}" + "".join(f"{head:>22}  " for head in titles[1:]))
    print(f"{'':28}{'us':>8}" + "".join(f"{title(n):>8}" for n in SIZES) * 3)
    rows = sorted(rows, key=lambda row: (row["theme"], slowdown(row), row["overhead_us"]))
    theme = None
    for row in rows:
        if row["theme"] != theme:
            theme = row["theme"]
            print(theme)
        print_row(row)


def print_summary(rows: list[dict[str, Any]], skipped: dict[str, str]) -> None:
    differentiated = [row for row in rows if slowdown(row)]
    slow = [row for row in differentiated if slowdown(row) > SLOWDOWN]
    recording = [row for row in rows if row["recorded"]]
    heavy = [row for row in recording if row["overhead_us"] > OVERHEAD_US]
    plain = [row for row in rows if not row["recorded"] and row["overhead_us"] > OVERHEAD_US]
    print(
        f"\nrecording at most {OVERHEAD_US} us an operation: "
        f"{len(recording) - len(heavy)} of {len(recording)}"
        f"\nforward and backward at most {SLOWDOWN} times NumPy's at 1e6: "
        f"{len(differentiated) - len(slow)} of {len(differentiated)}"
    )
    for head, key, missing in (
        ("recording above the target", lambda row: row["overhead_us"], heavy),
        ("calls without a derivative that cost more", lambda row: row["overhead_us"], plain),
        ("forward and backward above the target", slowdown, slow),
    ):
        named = [f"{row['name']} {key(row):.2f}" for row in sorted(missing, key=key)]
        print(f"{head}: {', '.join(named) or 'none'}")
    for column in ("forward_by_torch", "backward_by_torch"):
        for n in SIZES:
            found = [r for row in rows if (r := row["sizes"][title(n)][column]) is not None]
            if found:
                faster = sum(r <= 1 for r in found)
                print(
                    f"{COLUMNS[column][0]} at {n} beside torch: as fast or faster in {faster} of "
                    f"{len(found)}, median ratio {statistics.median(found):.2f}"
                )
    print(f"not timed, {len(skipped)}:")
    for reason in sorted(set(skipped.values())):
        names = [name for name in sorted(skipped) if skipped[name] == reason]
        print(textwrap.fill(f"{reason}: {', '.join(names)}", 100, subsequent_indent="    "))


def print_table(found: dict[str, Any], options: argparse.Namespace) -> None:
    rows = found["rows"]
    print(
        f"pullback beside numpy {np.__version__} and torch {torch.__version__}, Python "
        f"{sys.version.split()[0]}; one thread, one CPU, {options.rounds} rounds, {len(rows)} "
        "calls.\n"
        "recording: a tracked call less the same kernel on arrays, in microseconds, 1e2 elements;\n"
        "f+b: forward and backward, by the same NumPy calls without the library (each gradient in\n"
        "memory of its own, as .grad is), and by torch's.\n"
        "* made of other operations: recording is per operation, beside the call that records "
        "nothing."
    )
    print_rows(rows)
    print_summary(rows, found["skipped"])


def main() -> None:
    parser = _timing.parser(__doc__, rounds=21)
    parser.add_argument("--quick", action="store_true", help="5 rounds: a first impression")
    parser.add_argument("--only", default="", help="names of operations, separated by commas")
    _timing.run(measure, parser.parse_args(), print_table, ratios)


if __name__ == "__main__":
    main()
