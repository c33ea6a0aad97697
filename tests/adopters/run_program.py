"""Runs one program of another library's user: prints its numbers and the seconds of five runs.

    python run_program.py MODULE ROUNDS

Prints a JSON object for each name of the module's `FITS`, or for the one ``run()``.
"""

import importlib
import json
import sys
import time

import numpy as np


def numbers(value):
    """Return what `run` gave as lists of real numbers."""
    parts = value if isinstance(value, tuple) else (value,)
    arrays = [np.atleast_1d(np.asarray(part)).ravel() for part in parts]
    return [float(x) for a in arrays for x in (a.view(float) if np.iscomplexobj(a) else a)]


def main(name, rounds):
    module = importlib.import_module(name)
    for fit in getattr(module, "FITS", {"": ()}):
        seconds = []
        for _ in range(rounds + 1):  # the first loads and compiles
            begun = time.process_time()
            value = module.run(fit) if fit else module.run()
            seconds.append(time.process_time() - begun)
        print(json.dumps({"name": fit, "values": numbers(value), "seconds": seconds[1:]}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
