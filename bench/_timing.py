"""How the benchmarks measure: one thread, turns in alternating order, the collector on or off.

The clock is the processor's time of this process: a machine that does other work as well does not
slow it down. To be imported before numpy and torch, which read the number of their threads when
they are imported. Knows nothing of what is measured.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import process_time as clock
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

# Says how many seconds one execution took, by its own clock: what is not to be measured stays
# outside.
Timer = Callable[[], float]


def pin() -> None:
    """Keep this process, and those it starts, on one CPU."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def timed(body: Callable[[], Any], repeats: int) -> Timer:
    """Return a timer of one execution of `body`, measured over `repeats`."""

    def run() -> float:
        start = clock()
        for _ in range(repeats):
            body()
        return (clock() - start) / repeats

    return run


@contextmanager
def collector(on: bool) -> Iterator[Callable[[], None]]:
    """Give what is to be called before each timing, with the garbage collector on or off.

    On, the collector is left as Python starts it. Off, it runs between the timings, so that none
    finds the garbage of another; what was there before is frozen, or each run would walk all of
    torch.
    """
    if on:
        yield lambda: None
        return
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield lambda: gc.collect() and None
    finally:
        gc.enable()
        gc.unfreeze()


def interleaved(
    timers: dict[str, Timer], rounds: int, gc_on: bool = True
) -> dict[str, list[float]]:
    """Return the seconds of each timer in each round, one after the other in alternating order."""
    times: dict[str, list[float]] = {name: [] for name in timers}
    with collector(gc_on) as before:
        for number in range(rounds):
            for name in timers if number % 2 else reversed(timers):
                before()
                times[name].append(timers[name]())
    return times


def ratio(times: dict[str, list[float]], ours: str, theirs: str) -> float | None:
    """Return the median over the rounds of ours by theirs, None where one was not measured."""
    if not times.get(ours) or not times.get(theirs):
        return None
    return statistics.median(a / b for a, b in zip(times[ours], times[theirs], strict=True))


def geometric_mean(values: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


# -- command lines ---------------------------------------------------------------------------------


def parser(doc: str, rounds: int) -> argparse.ArgumentParser:
    """Return a parser of the options that every benchmark has."""
    made = argparse.ArgumentParser(description=doc.splitlines()[0])
    made.add_argument("--rounds", type=int, default=rounds, help=f"default: {rounds}")
    made.add_argument(
        "--processes", type=int, default=1, metavar="N", help="medians of N processes (default: 1)"
    )
    made.add_argument("--json", action="store_true", help="print the figures as JSON")
    return made


def run(
    measure: Callable[[argparse.Namespace], Any],
    options: argparse.Namespace,
    show: Callable[[Any, argparse.Namespace], None],
) -> None:
    """Print the figures that `measure` finds, as JSON or as the table that `show` prints."""
    pin()
    found = measured(measure, options)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        show(found, options)


def measured(measure: Callable[[argparse.Namespace], Any], options: argparse.Namespace) -> Any:
    """Return the figures that `measure` finds, of several processes their medians."""
    if options.processes <= 1:
        return measure(options)
    command = [sys.executable, *sys.argv, "--processes", "1", "--json"]
    runs = []
    for _ in range(options.processes):
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        runs.append(json.loads(done.stdout))
    return medians(runs)


def medians(runs: list[Any]) -> Any:
    """Return the first of some results of one shape, with every float the median of all."""
    first = runs[0]
    if isinstance(first, dict):
        return {key: medians([run[key] for run in runs]) for key in first}
    if isinstance(first, list):
        return [medians(list(values)) for values in zip(*runs, strict=True)]
    return statistics.median(runs) if isinstance(first, float) else first


def compared(
    name: str, times: dict[str, list[float]], memory: dict[str, float], ours: str, theirs: str
) -> dict[str, Any]:
    """Return a row of `show_compared`: times in seconds and memory in MB, by what was measured."""
    return {
        "name": name,
        f"{ours}_ms": statistics.median(times[ours]) * 1e3,
        "time": ratio(times, ours, theirs),
        f"{ours}_mb": memory[ours],
        "memory": memory[ours] / memory[theirs],
    }


def show_compared(title: str, results: list[dict[str, Any]]) -> None:
    """Print rows of `compared` as a table."""
    print(f"{title:48}{'ms':>10}{'ratio':>8}{'MB':>8}{'ratio':>8}")
    for name, ms, time, mb, memory in (result.values() for result in results):
        print(f"{name:48}{ms:10.1f}{time:8.2f}{mb:8.1f}{memory:8.2f}")


def shown(value: float | None, width: int = 9, digits: int = 2) -> str:
    """Return a figure for a table, `-` where there is none."""
    return f"{'-' if value is None else format(value, f'.{digits}f'):>{width}}"
