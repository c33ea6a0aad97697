"""Programs and packages that use HIPS autograd, on pullback with other imports alone.

    python -m tests.adopters.run [NAME ...]

For each: its source distribution and what it needs come by pip into a temporary folder; its imports
are changed on a copy (see hips_source.py). A suite's tests that pass with HIPS autograd are to
pass; a program's numbers are to be HIPS autograd's to 1e-8, and its times are printed beside them,
medians of 15 in alternating runs. Exits 1 where that does not hold.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tests.peers.hips_source import rewritten_copy

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
PIP = [sys.executable, "-m", "pip"]
TOLERANCE = 1e-8
# Tests that hold of HIPS autograd alone, with the reason.
KNOWN = {
    "test_a_family_without_forward_rules_uses_reverse_once": "(betainc has a forward rule here)"
}
ROUNDS = 3  # of runs with one library and the other, so that a busy moment meets both


class Adopter(NamedTuple):
    """A package of an index, what it needs beside NumPy and SciPy, and what is run of it."""

    package: str
    folder: str  # in its source distribution, what is imported
    needs: tuple[str, ...] = ()
    tests: str = ""  # its own tests, in that folder; else the program of the adopter's name


SURVIVAL = ("autograd-gamma==0.5.0", "pandas", "formulaic", "interface-meta", "narwhals", "wrapt")
SURVIVAL += ("python-dateutil", "six", "typing_extensions", "matplotlib", "numdifftools")
ADOPTERS = {
    "autograd_gamma_gradient": Adopter("autograd-gamma==0.5.0", "autograd_gamma"),
    "ceviche_gradient": Adopter("ceviche==0.1.3", "ceviche", ("matplotlib",)),
    "grcwa_gradient": Adopter("grcwa==0.1.2", "grcwa"),
    "lifelines_fits": Adopter("lifelines==0.30.3", "lifelines", SURVIVAL),
    "surpyval": Adopter("surpyval==0.25", "surpyval", SURVIVAL, tests="tests/univariate"),
}


def fetch(adopter: Adopter, folder: Path) -> tuple[Path, Path]:
    """Return the folders of the program with HIPS autograd's imports and with pullback's."""
    own = folder / "own"
    shutil.copytree(HERE / "programs", own)
    for package in (adopter.package, *adopter.needs):
        is_wheel = package != adopter.package and not package.startswith("autograd")
        form = ["--only-binary" if is_wheel else "--no-binary", ":all:"]
        install = ["install", "--quiet", "--no-deps", "--target"]
        target = folder / "needs" if is_wheel else own
        subprocess.run([*PIP, *install, target, *form, package], check=True)
    return own, rewritten_copy(own, folder / "changed")


def python(arguments: list[Any], folder: Path, program: Path) -> str:
    """Return what a run of Python prints."""
    path = [SOURCE, program, folder / "needs"]
    variables = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    variables["PYTHONPATH"] = os.pathsep.join(map(str, path))
    command = [sys.executable, "-W", "ignore", *arguments]
    done = subprocess.run(
        command, cwd=program, env=os.environ | variables, capture_output=True, text=True
    )
    return done.stdout + done.stderr


def fits(name: str, folder: Path, trees: tuple[Path, Path]) -> bool:
    """Compare the numbers and times of a program on both libraries."""
    runs: list[list[Any]] = [[], []]
    for program, found in zip(trees * ROUNDS, runs * ROUNDS, strict=True):  # one and the other
        printed = python([HERE / "run_program.py", name, "5"], folder, program)
        rows = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
        if not rows:
            print(printed[-2000:])
            return False
        found.append(rows)
    ratios, good = [], True
    for own, changed in zip(*(list(zip(*found, strict=True)) for found in runs), strict=True):
        a, b = np.array(own[0]["values"]), np.array(changed[0]["values"])
        error = np.max(np.abs(a - b)) / np.max(np.abs(a))
        times = [
            statistics.median(t for run in each for t in run["seconds"]) for each in (own, changed)
        ]
        ratios.append(times[1] / times[0])
        print(f"{name} {own[0]['name']:18s} error {error:.0e}, time {ratios[-1]:.2f}", flush=True)
        good = good and error < TOLERANCE
    print(f"{name}: geometric mean of the times {statistics.geometric_mean(ratios):.2f}")
    return good


def suite(name: str, folder: Path, trees: tuple[Path, Path]) -> bool:
    """Compare which tests pass on both libraries."""
    tests = f"{ADOPTERS[name].folder}/{ADOPTERS[name].tests}"
    outcomes = []
    for program in trees:
        options = ["-q", "--tb=no", "-rA", "-p", "no:cacheprovider"]
        printed = python(["-m", "pytest", *options, tests], folder, program)
        outcomes.append(set(re.findall(r"^PASSED (\S+)", printed, re.MULTILINE)))
    own, changed = outcomes
    print(f"{name}: {len(own)} tests pass with HIPS autograd, {len(own & changed)} of them here")
    for test in sorted(own - changed):
        print(f"  fails: {test} {KNOWN.get(test.rpartition('::')[2], '')}")
    return bool(own) and all(test.rpartition("::")[2] in KNOWN for test in own - changed)


def main(names: list[str]) -> int:
    good = True
    for name in names or ADOPTERS:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            trees = fetch(ADOPTERS[name], folder)
            good = (suite if ADOPTERS[name].tests else fits)(name, folder, trees) and good
    return not good


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
