"""Runs one example program in a process of its own, and keeps what it computed.

    python run_program.py PROGRAM LIBRARY STEPS SECONDS RESULTS.npz

LIBRARY is the one that the program is written for, or "pullback": then its import lines are changed
as `NUMPYS` and `IMPORTS` say, and nothing else; or "names": then `autograd.numpy` stays, as HIPS
autograd's names over pullback. Plots are not drawn, downloaded data are replaced by small random
ones, and optimizers end after STEPS steps, for both libraries alike. The program is run once, and
again for about SECONDS of the processor; prints how many each run took.
"""

import contextlib
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

NUMPYS = [
    (r"import autograd\.numpy(\.\w+)? as", r"import numpy\1 as"),
    (r"from autograd\.numpy\.linalg import", "from numpy.linalg import"),
]
IMPORTS = [
    (r"from autograd import", "from pullback import"),
    (r"from autograd\.scipy\.special import", "from scipy.special import"),
    (r"import torch$", "import pullback as torch"),
    (r"import torch\.nn\.functional", "import pullback.nn.functional"),
]
NUMBER = re.compile(r"(?<![\w.])-?\d+\.?\d*(?:e[-+]?\d+)?")
LOG = re.compile(r"^(?:from|import) .*$", re.MULTILINE)


def rewritten(source, rules):
    """Return a program with other import lines."""

    def line(match):
        text = match[0]
        for pattern, replacement in rules:
            text = re.sub(pattern, replacement, text)
        return text

    return LOG.sub(line, source)


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


def main(program, library, steps, limit, results):
    sys.path.insert(0, str(program.parent))
    stand_ins()
    if library == "torch":
        optimizers = None
    else:
        from autograd.misc import optimizers
    at_most(steps, optimizers)
    rules = {"pullback": [*NUMPYS, *IMPORTS], "names": IMPORTS}.get(library, [])
    code = compile(rewritten(program.read_text(), rules), str(program), "exec")
    seconds = []
    while not seconds or (limit and len(seconds) < 3) or sum(seconds[1:]) < limit:
        np.random.seed(0)
        random.seed(0)
        module = types.ModuleType("__main__")
        module.__file__ = str(program)
        printed = io.StringIO()
        begun = time.process_time()
        with contextlib.redirect_stdout(printed), mock.patch("os.system"):
            exec(code, module.__dict__)
        seconds.append(time.process_time() - begun)
    found = {name: numbers_in(v) for name, v in vars(module).items() if not name.startswith("__")}
    found["printed"] = [float(n) for n in NUMBER.findall(printed.getvalue())]
    np.savez(results, **{name: np.array(v) for name, v in found.items() if v})
    print(json.dumps(seconds))


if __name__ == "__main__":
    program, library, steps, limit, results = sys.argv[1:]
    main(Path(program), library, int(steps), float(limit), results)
