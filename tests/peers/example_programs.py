"""Other libraries' example programs on pullback: which they are, and what is changed in them.

    python -m tests.peers.example_programs

measures them beside the library that they were written for, in turns, and writes the tables of
docs/programs.md.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tests.peers.hips_source import COMPAT, IMPORTS, hips_source, rewritten, rewritten_copy

HERE = Path(__file__).parent
RUNNER = HERE / "run_program.py"
PAGE = HERE.parents[1] / "docs" / "programs.md"
STEPS = 3

# The examples of HIPS autograd 1.9.1 that are run, and what they do.
EXAMPLES = {
    "bayesian_neural_net": "variational inference of a network's weights",
    "black_box_svi": "black-box stochastic variational inference",
    "convnet": "a convolutional network",
    "deep_gaussian_process": "two Gaussian processes in a row",
    "define_gradient": "an operation with a rule of its own",
    "fixed_points": "second derivatives through a fixed point",
    "fluidsim/fluidsim": "a fluid steered to an image",
    "gaussian_process": "regression with a Gaussian process",
    "generative_adversarial_net": "two networks against each other",
    "gmm": "a mixture of Gaussians by Newton-CG",
    "gplvm": "a Gaussian process with latent inputs",
    "ica": "independent components",
    "logistic_regression": "gradient descent, gradients checked",
    "lstm": "a recurrent network with gates",
    "mixture_variational_inference": "a mixture as variational distribution",
    "natural_gradient_black_box_svi": "natural gradients",
    "negative_binomial_maxlike": "Newton's method on second derivatives",
    "neural_net": "a perceptron that classifies",
    "neural_net_regression": "a perceptron that fits a curve",
    "ode_net": "gradients through an ODE solver",
    "rnn": "a recurrent network",
    "rosenbrock": "scipy.optimize.minimize",
    "sinusoid": "a Taylor series, derived twice",
    "tanh": "four derivatives, element by element",
    "variational_autoencoder": "a variational autoencoder",
}
LEFT_OUT = {
    "bayesian_optimization": "HIPS autograd itself stops at a singular matrix in it",
    "dot_graph": "is about HIPS autograd's own nodes",
    "fluidsim/wing": "takes a minute a run",
    "hmm_em": "takes minutes to converge",
    "print_trace": "is about HIPS autograd's own nodes",
    "rkhs": "is about HIPS autograd's own boxes",
}

# Programs as beginners of PyTorch write them, in torch_programs/.
PYTORCHS = {
    "polynomial_by_hand": "a fit with gradients written out",
    "polynomial_by_autograd": "the fit by `backward()`",
    "legendre_function": "a `torch.autograd.Function`",
    "two_layers": "a network, by hand and by autograd",
    "dynamic_graph": "a graph that changes from step to step",
    "optimizer": "`torch.optim` and `nn.functional`",
}


TORCH = [
    (r"^import torch$", "import pullback as torch"),
    (r"^import torch\.nn\.functional", "import pullback.nn.functional"),
]


def folder_of(name: str) -> Path:
    return HERE / "torch_programs" if name in PYTORCHS else hips_source() / "examples"


def program_of(name: str) -> Path:
    return folder_of(name) / f"{name}.py"


def run(name: str, own: bool, seconds: float = 0) -> tuple[dict[str, Any], list[float]]:
    """Run a program on pullback, or on its `own` library; return its numbers and seconds."""
    libraries = ("torch", "pullback") if name in PYTORCHS else ("autograd", COMPAT)
    variables = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    variables["PYTHONPATH"] = str(HERE.parents[1] / "src")
    with tempfile.TemporaryDirectory() as folder:
        programs, results = folder_of(name), Path(folder) / "results.npz"
        if not own:
            rules = TORCH if name in PYTORCHS else IMPORTS
            programs = rewritten_copy(programs, Path(folder) / "programs", rules)
        settings = [libraries[not own], str(STEPS), str(seconds), results]
        done = subprocess.run(
            [sys.executable, RUNNER, program_of(name), programs / f"{name}.py", *settings],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        with np.load(results) as values:
            return dict(values), json.loads(done.stdout)


def edits(name: str) -> int:
    """Return how many import lines are changed; no other is."""
    before = program_of(name).read_text()
    after = rewritten(before, TORCH if name in PYTORCHS else IMPORTS)
    pairs = zip(before.splitlines(), after.splitlines(), strict=True)
    changed = [a for a, b in pairs if a != b]
    assert all(re.match(r" *(from|import) ", line) for line in changed)
    return len(changed)


def ratio(name: str, rounds: int = 3, seconds: float = 1.5) -> float:
    """Return pullback's time by the own library's: the median of rounds, in which both take turns.

    The first run of each process, in which modules are loaded, does not count.
    """
    found = []
    for k in range(rounds):
        best = {own: min(run(name, own, seconds)[1][1:]) for own in (k % 2 == 0, k % 2 != 0)}
        found.append(best[False] / best[True])
    return statistics.median(found)


def rows(names: dict[str, str], ratios: dict[str, float]) -> list[str]:
    return [
        f"| `{name}` | {what} | {edits(name)} | {ratios[name]:.2f} |"
        for name, what in names.items()
    ]


def main() -> None:
    names = {**EXAMPLES, **PYTORCHS}
    ratios = {}
    for name in names:
        ratios[name] = ratio(name)
        print(f"{name:34s} {ratios[name]:.2f}", flush=True)
    text = PAGE.read_text()
    for table in (EXAMPLES, PYTORCHS):
        first = next(iter(table))
        pattern = rf"^\| `{re.escape(first)}` (?:.|\n)*?\n(?=\n)"
        text = re.sub(
            pattern, "\n".join(rows(table, ratios)).replace("\\", r"\\") + "\n", text, flags=re.M
        )
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
