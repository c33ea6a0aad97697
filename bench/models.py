"""The training of the examples' models to their stated loss: pullback beside PyTorch.

One thread on one CPU. Both libraries begin with the same values and see the same data; ten steps
of one take turns with ten of the other, in alternating order, until the training is complete. The
losses of the first step are compared, and both must reach the loss that the example states.
Ratios are of the time of all steps.

    python bench/models.py [--only transformer] [--rounds N] [--processes N] [--json]
"""

from __future__ import annotations

import argparse
import math
import operator
import statistics
import sys
from collections.abc import Callable
from typing import Any

import _timing
import numpy as np
import torch
from _models import SEED, TRAININGS, Training, stepper

import pullback as pb

torch.set_num_threads(1)

TURN = 10  # steps
PARTS = ("forward", "backward", "update")


def train(training: Training, rounds: int) -> dict[str, Any]:
    """Train in both libraries, so often; return medians of the turns, and the last losses."""
    times: dict[str, list[np.ndarray]] = {"pullback": [], "torch": []}
    for number in range(rounds):
        pb.manual_seed(SEED + number)
        torch.manual_seed(SEED + number)
        steps = {lib: stepper(training, lib, model) for lib, model in training.models().items()}
        losses: dict[Any, list[float]] = {lib: [] for lib in steps}
        for turn in range(0, training.steps, TURN):
            for lib in steps if turn // TURN % 2 else reversed(steps):
                done = [steps[lib]() for _ in range(min(TURN, training.steps - turn))]
                losses[lib] += [loss for loss, _ in done]
                times[lib.__name__].append(np.sum([np.diff(marks) for _, marks in done], axis=0))
        compare(training, losses)

    def ratio(seconds: Callable[[np.ndarray], float]) -> float | None:
        of_turns = {name: [*map(seconds, turns)] for name, turns in times.items()}
        return _timing.ratio(of_turns, "pullback", "torch")

    last = {lib: statistics.fmean(values[-training.averaged :]) for lib, values in losses.items()}
    return {
        "name": training.name,
        "seconds": float(np.sum(times["pullback"])) / rounds,
        "torch_seconds": float(np.sum(times["torch"])) / rounds,
        "ratio": ratio(np.sum),
        **{part: ratio(operator.itemgetter(i)) for i, part in enumerate(PARTS)},
        "loss": last[pb],
        "torch_loss": last[torch],
        "required_loss": training.required_loss,
    }


def compare(training: Training, losses: dict[Any, list[float]]) -> None:
    """Exit where the first losses differ, or a last one is above what the example states."""
    first, theirs = (values[0] for values in losses.values())
    if not math.isclose(first, theirs, rel_tol=training.tolerance):
        sys.exit(f"{training.name}: the first loss is {first}, torch's is {theirs}")
    for lib, values in losses.items():
        last = statistics.fmean(values[-training.averaged :])
        if not last <= training.required_loss:
            sys.exit(f"{training.name}: the last loss in {lib.__name__} is {last}")


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    names = [training.name for training in TRAININGS]
    only = options.only.split(",") if options.only else names
    if unknown := set(only) - set(names):
        sys.exit(f"no such training: {', '.join(sorted(unknown))}")
    return [train(t, options.rounds) for t in TRAININGS if t.name in only]


def print_table(results: list[dict[str, Any]], options: argparse.Namespace) -> None:
    print(
        f"Trainings: pullback beside torch {torch.__version__}, numpy {np.__version__}; one "
        f"thread, {options.rounds} round(s), {options.processes} process(es).\n"
        "Ratios: pullback's time by torch's, of whole steps and of their parts, medians.\n"
    )
    heads = ("s", "torch's", "ratio", *PARTS, "loss", "torch's", "stated")
    print(f"{'training':14}" + "".join(f"{head:>10}" for head in heads))
    for r in results:
        figures = (r["seconds"], r["torch_seconds"], r["ratio"], *(r[part] for part in PARTS))
        losses = (r["loss"], r["torch_loss"], r["required_loss"])
        print(f"{r['name']:14}" + "".join(_timing.shown(x, 10) for x in (*figures, *losses)))


def ratios(results: list[dict[str, Any]]) -> _timing.Ratios:
    parts = {"whole steps": "ratio"} | {part: part for part in PARTS}
    return {
        r["name"]: {f"{title}: PyTorch": r[key] for title, key in parts.items()} for r in results
    }


def main() -> None:
    parser = _timing.parser(__doc__, rounds=1)
    parser.add_argument("--only", metavar="NAMES", help="some trainings, separated by commas")
    options = parser.parse_args()
    _timing.run(measure, options, print_table, ratios)


if __name__ == "__main__":
    main()
