"""How the benchmarks measure: one thread, turns in alternating order, the collector on or off.

The clock is the processor's time of this process: a machine that does other work as well does not
slow it down. To be imported before numpy and torch, which read the number of their threads when
they are imported. Knows nothing of what is measured.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import importlib.metadata
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time as clock
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

# Says how many seconds one execution took, by its own clock: what is not to be measured stays
# outside.
Timer = Callable[[], float]
# Of each row, pullback's figure by that of each peer: below 1 pullback is faster, or smaller. A
# name is that of the peer, after what was measured and a colon where that is several things.
Ratios = dict[str, dict[str, float | None]]

RECORDS = Path(__file__).parents[1] / "docs" / "recorded" / "bench"  # docs/benchmarks.md shows them
PEERS = {
    "torch": "PyTorch",
    "torch_gc_off": "PyTorch, gc off",
    "autograd": "HIPS autograd",
    "jax": "JAX",
    "jax.jit": "JAX, compiled",
    "numpy": "NumPy",
}
LIBRARIES = ("pullback", "numpy", "scipy", "torch", "autograd", "jax")


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
    made.add_argument("--record", action="store_true", help=f"write the ratios into {RECORDS}")
    return made


def run(
    measure: Callable[[argparse.Namespace], Any],
    options: argparse.Namespace,
    show: Callable[[Any, argparse.Namespace], None],
    ratios: Callable[[Any], Ratios],
) -> None:
    """Print the figures that `measure` finds, as JSON or as the table that `show` prints.

    `ratios` says which of them are pullback's by a peer's, for the record.
    """
    if options.record and getattr(options, "only", None):
        sys.exit("--record: a record is of all programs, not of --only some")
    pin()
    found = measured(measure, options)
    if options.json:  # several processes print what they find: nothing is recorded by each
        print(json.dumps(found, indent=2))
        return
    show(found, options)
    if options.record:
        record(Path(sys.argv[0]).stem, options, ratios(found))


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


def by_peer(figures: dict[str, Any], measured: str = "") -> dict[str, float | None]:
    """Return those of some figures that are ratios to a peer, by the names of the record."""
    return {measured + title: figures[peer] for peer, title in PEERS.items() if peer in figures}


def record(name: str, options: argparse.Namespace, ratios: Ratios) -> None:
    """Write the ratios of a benchmark, with the day, the machine and what ran there, in a file."""
    facts = {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {library: importlib.metadata.version(library) for library in LIBRARIES},
        "rounds": options.rounds,
        "processes": options.processes,
    }
    rows = {
        row: {peer: float(f"{value:.4g}") for peer, value in columns.items() if value is not None}
        for row, columns in ratios.items()
    }
    RECORDS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(facts | {"ratios": rows}, indent=1, ensure_ascii=False)
    (RECORDS / f"{name}.json").write_text(text + "\n")


def processor() -> str:
    """Return the name of the processor, of Linux or as the platform has it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


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


def ratios_of_compared(results: list[dict[str, Any]], peer: str) -> Ratios:
    columns = ("time", "memory")
    return {r["name"]: {f"{column}: {peer}": r[column] for column in columns} for r in results}


def show_compared(title: str, results: list[dict[str, Any]]) -> None:
    """Print rows of `compared` as a table."""
    print(f"{title:48}{'ms':>10}{'ratio':>8}{'MB':>8}{'ratio':>8}")
    for name, ms, time, mb, memory in (result.values() for result in results):
        print(f"{name:48}{ms:10.1f}{time:8.2f}{mb:8.1f}{memory:8.2f}")


def shown(value: float | None, width: int = 9, digits: int = 2) -> str:
    """Return a figure for a table, `-` where there is none."""
    return f"{'-' if value is None else format(value, f'.{digits}f'):>{width}}"
