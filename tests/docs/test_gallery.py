"""The programs of the gallery run without a warning, and what they compute is what they say."""

import ast
import shutil
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
PROGRAMS = sorted(path.stem.removeprefix("plot_") for path in GALLERY.glob("plot_*.py"))


def close(actual, expected, **tolerances):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), **tolerances)


def sparse_solver(v):
    def reading(wind):
        return v["solve"](v["transport"](wind), v["sources"].detach())[v["sensor"]].item()

    wind, step = v["wind"].detach(), 1e-4
    for i, slope in enumerate(v["wind"].grad.tolist()):
        ahead, behind = wind.clone(), wind.clone()
        ahead[i] += step
        behind[i] -= step
        close((reading(ahead) - reading(behind)) / (2 * step), slope, rtol=1e-5)
    close(v["total"], reading(wind))


def gaussian_process(v):
    assert -v["result"].fun > -v["loss"](v["start"]) + 40
    assert 0.1 < np.exp(v["result"].x["noise"]) < 0.2


def kepler_orbit(v):
    assert v["sizes"][0] > 20 * v["sizes"][1]
    close(*v["gradients"], rtol=1e-12)
    close(v["states"][-1, :2], v["target"], atol=1e-8)
    close(v["energy"], v["energy"][0], rtol=1e-7)


def censored_survival(v):
    assert 0.45 < np.mean(~v["event"]) < 0.55
    assert v["low"] < 1.5 < v["high"]
    assert v["alone"] < 0.8 * v["mean"]


def tomography(v):
    size = np.linalg.norm(v["phantom"])
    least, smooth = (np.linalg.norm(x - v["phantom"]) / size for x in v["results"].values())
    assert smooth < 0.6 * least
    assert smooth < 0.2


def wave_inversion(v):
    assert v["errors"][1] < 0.4 * v["errors"][0]
    assert v["result"].fun < 0.1 * v["loss"](v["start"])


def heat_design(v):
    assert v["history"][-1] < 0.12 * v["history"][0]
    close(v["density"].mean(), v["share"], rtol=1e-4)


def fixed_point(v):
    close(v["susceptibility"][v["far"]], v["weiss"], rtol=1e-3)
    close(v["susceptibility"], v["differences"], rtol=1e-5)


def scipy_optimisers(v):
    for result in v["results"].values():
        close(result.fun, v["lowest"], rtol=1e-6)
    assert abs(v["eigenvalues"][:6]).max() < 1e-5 < 1.0 < v["eigenvalues"][6]


def compiled_kernel(v):
    close(v["result"].x["decay"], 0.95, atol=0.01)
    close(v["estimate"].sum(), v["spikes"].sum(), rtol=0.15)


def finding_a_nan(v):
    assert [bool(np.isnan(n.grad_norm)) for n in reversed(v["nodes"])] == [False] * 4 + [True] * 2
    error = v["anomaly"]
    assert (error.phase, error.operation, error.index) == ("backward", "distance", (0, 0, 0))
    close(v["aligned"], v["centred"], atol=1e-3)


def halving_memory(v):
    assert v["before"] > 1.45 * v["own"]
    assert 2 * v["in_backward"].min() < v["own"]
    for plain, again in zip(v["expected"], v["gradients"], strict=True):
        close(again, plain, rtol=1e-6)


STATEMENTS = [
    sparse_solver,
    gaussian_process,
    kepler_orbit,
    censored_survival,
    tomography,
    wave_inversion,
    heat_design,
    fixed_point,
    scipy_optimisers,
    compiled_kernel,
    finding_a_nan,
    halving_memory,
]


@pytest.fixture
def pyplot():
    """Return a pyplot that opens no window, without figures before and after."""
    with mpl.rc_context():
        mpl.use("Agg")
        from matplotlib import pyplot

        pyplot.close("all")
        yield pyplot
        pyplot.close("all")


def cell_ends(text):
    """Return the lines at which cells of a program begin, and one behind the last line."""
    lines = text.splitlines()
    return [n for n, line in enumerate(lines, 1) if line.startswith("# %%")] + [len(lines) + 1]


def run(program):
    """Run a program as the gallery does, and return its variables.

    The gallery prints the value of an expression at the end of a cell: none is there by accident.
    """
    path = GALLERY / f"plot_{program}.py"
    text = path.read_text()
    statements, ends = ast.parse(text).body, cell_ends(text)
    variables = {"__name__": "__main__", "__file__": str(path)}
    for statement, following in zip(statements, [*statements[1:], None], strict=True):
        end = next(line for line in ends if line > statement.lineno)
        is_last = following is None or following.lineno > end
        if is_last and isinstance(statement, ast.Expr):
            value = eval(compile(ast.Expression(statement.value), str(path), "eval"), variables)
            assert statement is statements[0] or value is None, f"line {statement.lineno}"
        else:
            exec(compile(ast.Module([statement], []), str(path), "exec"), variables)
    return variables


def test_every_program_of_the_gallery_has_its_statements_here():
    assert sorted(states.__name__ for states in STATEMENTS) == PROGRAMS


@pytest.mark.parametrize("states", STATEMENTS, ids=lambda states: states.__name__)
def test_a_program_of_the_gallery_computes_what_it_says(states, pyplot):
    variables = run(states.__name__)
    assert variables["report"].ok
    assert pyplot.get_fignums()
    for number in pyplot.get_fignums():
        pyplot.figure(number).canvas.draw()
    states(variables)


def test_the_compiled_kernel_has_the_same_results_without_a_compiler(monkeypatch, pyplot):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    variables = run("compiled_kernel")
    assert variables["library"] is None
    assert variables["report"].ok
    compiled_kernel(variables)
