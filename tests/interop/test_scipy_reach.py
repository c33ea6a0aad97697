"""What a user's own ``import scipy`` reaches with a gradient; errors name what to use instead."""

import contextlib
import doctest
import importlib
import inspect
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.sparse.linalg
import scipy.special
import scipy.stats
from tests.interop._reach import IMPORTED, INSTEAD
from tests.scipy_support.test_document import TEXT

import pullback as pb
from pullback.hints.scipy_functions import BRIDGED


@pytest.mark.parametrize("name", list(IMPORTED))
def test_a_function_of_scipys_own_takes_tensors(name):
    call, values = IMPORTED[name]
    leaf = pb.tensor(np.array(values), requires_grad=True)
    result = call(leaf)
    np.testing.assert_allclose(result.detach().numpy(), call(np.array(values)), rtol=1e-12)
    (g,) = pb.autograd.grad(result.sum(), leaf, create_graph=True)
    step = np.array([1e-6, 2e-6, -1e-6])
    expected = (call(np.array(values) + step) - call(np.array(values) - step)).sum() / 2
    assert (g * pb.asarray(step)).sum().item() == pytest.approx(expected, rel=1e-6)
    assert g.requires_grad


# It asks for a plain number, which is a warning.
WARNED = {"integrate.quad"}


@pytest.mark.parametrize("name", [name for name in INSTEAD if name not in WARNED])
def test_an_error_of_scipys_own_names_what_to_use(name):
    leaf = pb.tensor(np.eye(3) + 0.1, requires_grad=True)
    with pytest.raises(pb.AutogradError) as caught:
        INSTEAD[name](scipy, leaf)
    of_matrix = re.fullmatch(r"sparse\.\w+_array", name)
    product = "pb.interop.scipy.sparse.csr_array(A) @ t"
    told = product if of_matrix else f"pullback.interop.scipy.{name}, which has a gradient"
    assert told in str(caught.value)


@pytest.mark.parametrize("name", list(WARNED))
def test_a_warning_within_scipys_own_names_what_to_use(name):
    leaf = pb.tensor(np.eye(3) + 0.1, requires_grad=True)
    with pytest.warns(pb.UntrackedTensorWarning, match=f"interop.scipy.{name}, which has a grad"):
        INSTEAD[name](scipy, leaf)


@pytest.mark.parametrize("name", list(INSTEAD))
def test_what_an_error_names_takes_the_same_call_and_has_a_gradient(name):
    leaf = pb.tensor(np.eye(3) + 0.1, requires_grad=True)
    result = INSTEAD[name](pb.interop.scipy, leaf)
    result = result[0] if isinstance(result, tuple) else getattr(result, "y", result)
    assert pb.autograd.grad(result.sum(), leaf)[0].shape == (3, 3)


MODULES = [
    *(
        "special",
        "linalg",
        "stats",
        "integrate",
        "initial_values",
        "interpolate",
        "sampled",
        "sparse.matrices",
        "sparse.linalg",
    )
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_print_what_they_show(name):
    module = importlib.import_module(f"pullback.interop.scipy.{name}")
    assert doctest.testmod(module).failed == 0


def test_without_scipy_an_error_names_the_extra():
    program = """
import sys
sys.modules["scipy"] = None
import pullback as pb
try:
    pb.interop.scipy
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pullback.interop.scipy: SciPy required" in done.stdout, done.stderr
    assert "pip install 'pullback[scipy]'" in done.stdout


def test_a_bridge_that_is_not_there_is_an_error_that_lists_those_that_are():
    with pytest.raises(AttributeError, match=r"no attribute 'torch'; it has: \['scipy'\]"):
        _ = pb.interop.torch


def test_an_error_elsewhere_names_nothing_of_scipys():
    with pytest.raises(pb.AutogradError) as caught:
        np.asarray(pb.tensor([1.0], requires_grad=True))
    assert "scipy" not in str(caught.value)


def test_the_names_that_errors_know_are_those_that_are_there():
    ours = pb.interop.scipy
    found = set()
    for module in ("integrate", "interpolate", "linalg", "sparse", "special"):
        space = getattr(ours, module)
        own = {n for n in space.__all__ if not inspect.ismodule(getattr(space, n))}
        found |= {f"{module}.{name}" for name in own - set(pb.special.__all__)}
    found |= {f"sparse.linalg.{name}" for name in ours.sparse.linalg.__all__}
    for name in ours.stats.__all__:
        for method in ("pdf", "logpdf", "pmf", "logpmf", "cdf", "sf", "logcdf", "logsf"):
            with contextlib.suppress(AttributeError):
                getattr(getattr(ours.stats, name), method)
                found.add(f"stats.{name}.{method}")
    assert found - {"sparse.SparseMatrix"} == BRIDGED


def test_the_document_lists_them():
    section = TEXT.partition("\n## From your own import")[2].partition("\n## ")[0]
    for name in IMPORTED:
        assert f"`{name.removeprefix('special.')}`" in section
    for name in BRIDGED:
        module, _, rest = name.partition(".")
        first = rest.rpartition(".")[0] if module == "stats" else rest
        assert f"`{first}`" in section, name
