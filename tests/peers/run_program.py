"""Runs one example program in a process of its own, and keeps what it computed.

    python run_program.py PROGRAM CODE LIBRARY STEPS SECONDS RESULTS.npz

CODE is the program with the imports of LIBRARY, beside those that it imports itself; where the
library has HIPS autograd's modules, the optimizers end after STEPS steps. Plots are not drawn, and
downloaded data are replaced by small random ones, for both libraries alike. The program is run
once, and again for about SECONDS of the processor; prints how many each run took.
"""

import contextlib
import importlib
import io
import json
import random
import re
import sys
import time
import types
from pathlib import Path
from unittest import mock

import numpy as np

NUMBER = re.compile(r"(?<![\w.])-?\d+\.?\d*(?:e[-+]?\d+)?")


# -- what stands for plots, data and long runs -----------------------------------------------------
def image(path):
    """Return an image of 40 by 40 pixels, of colours or of one."""
    pixels = np.random.RandomState(1).rand(40, 40)
    return np.stack([pixels[::2, ::2]] * 3, axis=2) if "init_smoke" in str(path) else pixels


def digits():
    rs = np.random.RandomState(0)
    images = rs.randint(0, 256, (60, 28, 28)).astype(np.uint8)
    labels = rs.randint(0, 10, 60).astype(np.uint8)
    return images[:50], labels[:50], images[50:], labels[50:]


class Seeded(np.random.RandomState):
    """Draws the same numbers in every run."""

    def __init__(self, seed=0):
        super().__init__(seed)


def stand_ins():
    """Put modules in place of those that draw and download."""
    plots = mock.MagicMock()
    plots.imread = image
    for name in ("matplotlib", "matplotlib.pyplot", "matplotlib.cm", "matplotlib.image"):
        sys.modules[name] = plots
    plots.pyplot = plots
    np.random.RandomState = Seeded
    data = types.ModuleType("data_mnist")
    data.mnist = digits
    sys.modules["data_mnist"] = data


def at_most(steps, optimizers):
    """Let optimizers end after some steps."""
    import scipy.optimize

    minimize = scipy.optimize.minimize

    def few(*args, options=None, **settings):
        options = {**(options or {}), "maxiter": steps, "disp": False}
        return minimize(*args, options=options, **settings)

    scipy.optimize.minimize = few
    for name in ("adam", "sgd", "rmsprop") if optimizers is not None else ():
        whole = getattr(optimizers, name)

        def short(*args, num_iters=None, whole=whole, **settings):
            return whole(*args, num_iters=steps, **settings)

        setattr(optimizers, name, short)


# -- what it computed ------------------------------------------------------------------------------
def numbers_in(value):
    """Return the numbers in arrays, containers and tensors, one after the other."""
    if hasattr(value, "grad_fn"):
        value = value.detach().numpy()
    if isinstance(value, dict):
        return [n for key in sorted(value, key=str) for n in numbers_in(value[key])]
    if isinstance(value, (list, tuple)):
        return [n for item in value for n in numbers_in(item)]
    if isinstance(value, (bool, int, float, np.generic, np.ndarray)):
        array = np.asarray(value)
        return array.astype(float).ravel().tolist() if array.dtype.kind in "biuf" else []
    return []


def main(program, code, library, steps, limit, results):
    sys.path.insert(0, str(code.parent))
    stand_ins()
    has_optimizers = library.endswith("autograd")
    at_most(
        steps, importlib.import_module(f"{library}.misc.optimizers") if has_optimizers else None
    )
    compiled = compile(code.read_text(), str(program), "exec")
    seconds = []
    while not seconds or (limit and len(seconds) < 3) or sum(seconds[1:]) < limit:
        np.random.seed(0)
        random.seed(0)
        module = types.ModuleType("__main__")
        module.__file__ = str(program)  # some read their own text
        printed = io.StringIO()
        begun = time.process_time()
        with contextlib.redirect_stdout(printed), mock.patch("os.system"):
            exec(compiled, module.__dict__)
        seconds.append(time.process_time() - begun)
    found = {name: numbers_in(v) for name, v in vars(module).items() if not name.startswith("__")}
    found["printed"] = [float(n) for n in NUMBER.findall(printed.getvalue())]
    np.savez(results, **{name: np.array(v) for name, v in found.items() if v})
    print(json.dumps(seconds))


if __name__ == "__main__":
    program, code, library, steps, limit, results = sys.argv[1:]
    main(Path(program), Path(code), library, int(steps), float(limit), results)
