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
from tests.peers.hips_source import environment, hips_source
from tests.peers.run_program import IMPORTS, NUMPYS, rewritten

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
# Where a rule of the program makes an array of what is traced, which NumPy's own np.full cannot.
BY_NAMES = {"define_gradient"}

# Programs as beginners of PyTorch write them, in torch_programs/.
PYTORCHS = {
    "polynomial_by_hand": "a fit with gradients written out",
    "polynomial_by_autograd": "the fit by `backward()`",
    "legendre_function": "a `torch.autograd.Function`",
    "two_layers": "a network, by hand and by autograd",
    "dynamic_graph": "a graph that changes from step to step",
    "optimizer": "`torch.optim` and `nn.functional`",
}


def program_of(name: str) -> Path:
    if name in PYTORCHS:
        return HERE / "torch_programs" / f"{name}.py"
    return hips_source() / "examples" / f"{name}.py"


def run(name: str, own: bool, seconds: float = 0) -> tuple[dict[str, Any], list[float]]:
    """Run a program on pullback, or on its `own` library; return its numbers and seconds."""
    if own:
        library = "torch" if name in PYTORCHS else "autograd"
        variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        variables |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    else:
        library = "names" if name in BY_NAMES else "pullback"
        variables = environment() | {"SCIPY_ARRAY_API": "1"}
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.npz"
        done = subprocess.run(
            [sys.executable, RUNNER, program_of(name), library, str(STEPS), str(seconds), results],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        with np.load(results) as values:
            return dict(values), json.loads(done.stdout)


def edits(name: str) -> tuple[int, list[str]]:
    """Return how many import lines are changed, and the modules that are names over pullback."""
    rules = IMPORTS if name in BY_NAMES else [*NUMPYS, *IMPORTS]
    before = program_of(name).read_text().splitlines()
    after = rewritten("\n".join(before), rules).splitlines()
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert all(re.match(r"(from|import) ", a) for a, _ in changed)
    left = [re.match(r"(?:from|import) (autograd[\w.]*)", line) for line in after]
    return len(changed), sorted({found[1] for found in left if found})


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
    lines = []
    for name, what in names.items():
        count, left = edits(name)
        modules = ", ".join(f"`{module}`" for module in left) or "none"
        row = [f"`{name}`", what, str(count), *([modules] if names is EXAMPLES else [])]
        lines.append(f"| {' | '.join([*row, f'{ratios[name]:.2f}'])} |")
    return lines


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
