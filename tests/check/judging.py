"""How the checker does on operations that it was never tuned against.

``python -m tests.check.judging`` prints counts alone: who reads which entries it fails on cannot
judge with them any more. The entries of some fields were read since, and are counted apart;
``--names`` prints which of these are not judged as they should be.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import re
import statistics
import time
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from tests.check.judge import RIGHT, WRONG

from pullback.check import check_op
from pullback.errors import AutogradError

# The fields whose entries were read while the checker was worked on.
READ = (
    "acoustics",
    "actuarial",
    "advertising",
    "agriculture",
    "alignment",
    "antennas",
    "archaeology",
    "astronomy",
    "auctions",
    "audio",
    "ballistics",
    "batteries",
    "beekeeping",
    "bioinformatics",
    "biomechanics",
    "breweries",
    "cartography",
    "ceramics",
    "chemistry",
    "chemometrics",
    "circuits",
    "climate",
    "colour",
    "control",
    "cosmology",
    "cranes",
    "credit",
    "crystallography",
    "dams",
    "dosimetry",
    "ecology",
    "economics",
    "education",
    "elections",
    "elevators",
    "epidemics",
    "finance",
    "finite_elements",
    "fire_safety",
    "fisheries",
    "fluids",
    "forecasting",
    "forestry",
    "genetics",
    "geodesy",
    "geometry",
    "glaciers",
    "gliding",
    "graphs",
    "hearing",
    "horticulture",
    "hydrology",
    "images",
    "insurance_claims",
    "interpolation",
    "kernels",
    "lasers",
    "layers",
    "logistics",
    "losses",
    "magnetics",
    "manufacturing",
    "markets",
    "materials",
    "meteorology",
    "metrology",
    "microscopy",
    "molecules",
    "music",
    "navigation",
    "neuroscience",
    "nuclear",
    "oceanography",
    "ophthalmology",
    "optics",
    "orbits",
    "perfumery",
    "pharmacology",
    "photogrammetry",
    "photography",
    "photovoltaics",
    "physics",
    "pipelines",
    "plasma",
    "populations",
    "power_grids",
    "pricing",
    "printing",
    "probability",
    "psychology",
    "puzzles",
    "quantum",
    "queueing",
    "radar",
    "railways",
    "ranking",
    "rearranging",
    "recommending",
    "refrigeration",
    "reinsurance",
    "rendering",
    "robotics",
    "sailing",
    "search_engines",
    "seismology",
    "sequences",
    "signal",
    "soils",
    "solvers",
    "sparse",
    "spectroscopy",
    "speech",
    "sports",
    "state",
    "statistics",
    "structures",
    "surveys",
    "survival",
    "tables",
    "text",
    "textiles",
    "thermodynamics",
    "tomography",
    "traffic",
    "transport",
    "typography",
    "vehicles",
    "veterinary",
    "volcanology",
    "watchmaking",
    "water_networks",
    "wind_turbines",
)


@dataclasses.dataclass
class Verdict:
    """What the checker said of one entry."""

    name: str
    outcome: str  # "right", "wrong", "not checked" or "crashed"
    named: bool  # in words
    mended: bool  # by a change of the source that makes the gradient right
    seconds: float  # of the processor
    text: str


def verdict(case: Any, inputs: str) -> Verdict:
    """Check one entry on the inputs that a user would give, on guessed ones, or where it shows."""
    args, kwargs = (), {}
    if inputs != "guessed":
        draw = case.shows if inputs == "showing" and case.shows else case.given
        args, kwargs = draw(np.random.default_rng(0))
    start, mended = time.process_time(), False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = check_op(case.op(), *args, kwargs=kwargs or None, raise_exception=False)
        outcome, text = report.outcome, "\n".join(map(str, report.failures or report.unchecked))
        mended = any(failure.mending for failure in report.failures)
    except AutogradError as error:
        outcome, text = "not checked", str(error)
    except Exception as error:
        outcome, text = "crashed", f"{type(error).__name__}: {error}"
    named = any(re.search(said, text, re.IGNORECASE) for said in case.said)
    return Verdict(case.name, outcome, named, mended, time.process_time() - start, text)


def summary(cases: Iterable[Any], inputs: str) -> list[Verdict]:
    """Print the counts for a list of entries, and return the verdicts."""
    found = [verdict(case, inputs) for case in cases]
    counts = collections.Counter(v.outcome for v in found)
    wrong = [v for v in found if v.outcome == "wrong"]
    named, either = sum(v.named for v in wrong), sum(v.named or v.mended for v in wrong)
    times = [v.seconds for v in found]
    outcomes = ", ".join(f"{counts[o]} {o}" for o in ("wrong", "right", "not checked", "crashed"))
    print(
        f"  {inputs:8} {len(found):4}: {outcomes}; {named} named in words, {either} or mended; "
        f"median {statistics.median(times):.2f} s, longest {max(times):.1f} s"
    )
    return found


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", action="store_true", help="print what is not as it should be")
    options = parser.parse_args()
    for half, read in (("never read", False), ("read since", True)):
        for cases, right in ((WRONG, "wrong"), (RIGHT, "right")):
            chosen = [case for case in cases if (case.field in READ) is read]
            print(f"{right} ones, {half}{'' if chosen else ': none'}")
            for inputs in (
                ()
                if not chosen
                else ("given", "guessed", *(["showing"] if right == "wrong" else []))
            ):
                found = summary(chosen, inputs)
                if options.names and read:
                    print_missed(found, right)


def print_missed(found: Iterable[Verdict], right: str) -> None:
    """Print the verdicts that are not as they should be."""
    for v in found:
        if v.outcome != right or (right == "wrong" and not v.named):
            print(f"    {v.name}: {v.outcome}{'' if v.named else ', not named'}")
            print("      " + v.text.replace("\n", "\n      "))


if __name__ == "__main__":
    main()
