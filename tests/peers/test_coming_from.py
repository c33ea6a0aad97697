"""The tables of the pages "Coming from": their side gives what ours does."""

import numpy as np
import pytest
from tests.docs._rows_hips_autograd import CONVENTIONS, HIPS_AUTOGRAD, OWN_OPERATION
from tests.docs._rows_jax import JAX
from tests.docs._rows_pytorch import PYTORCH
from tests.docs.coming_from import A, X, assert_same, cubes, hips_names, rows, run, square

pytestmark = pytest.mark.peers


@pytest.mark.parametrize(("theirs", "ours"), rows("from-jax.md"))
def test_the_row_of_coming_from_runs_on_jax(theirs, ours):
    jax = pytest.importorskip("jax")
    program, _, wanted = JAX[theirs]
    x, v, a = (jax.numpy.asarray(value) for value in (X, np.ones(3), A))
    assert_same(run(program, theirs, jax=jax, x=x, v=v, a=a, f=square, s=cubes), wanted)


@pytest.mark.filterwarnings("ignore:.torch.jit.script", "ignore:Attempted to insert")  # in PyTorch
@pytest.mark.parametrize(("theirs", "ours"), rows("from-pytorch.md"))
def test_the_row_of_coming_from_runs_on_pytorch(theirs, ours):
    torch = pytest.importorskip("torch")
    program, _, wanted = PYTORCH[theirs]
    x, v, a = torch.tensor(X), torch.ones(3, dtype=torch.float64), torch.tensor(A)
    names = {"x": x, "v": v, "a": a, "f": square, "s": cubes}
    assert_same(run(program, theirs, torch=torch, np=np, **names), wanted)


@pytest.mark.parametrize("statement", HIPS_AUTOGRAD)
def test_the_import_of_compat_autograd_runs_on_hips_autograd(statement):
    autograd = pytest.importorskip("autograd")
    theirs = next(right for left, right, *_ in rows("compat.md") if left == f"`{statement}`")
    expression, wanted = HIPS_AUTOGRAD[statement]
    names = {"numpy": np, "grad": autograd.grad}
    assert_same(run(f"$0\nresult = {expression}", theirs, **names), wanted)


@pytest.mark.parametrize("left", CONVENTIONS)
def test_the_conventions_of_compat_autograd_are_those_of_hips_autograd(left):
    autograd = pytest.importorskip("autograd")
    cell = next(row for row in rows("compat.md") if row[0] == left)[1]
    program, wanted, *_ = CONVENTIONS[left]
    assert_same(run(program, f"{left} {cell}", **hips_names(autograd)), wanted)


@pytest.mark.parametrize("left", OWN_OPERATION)
def test_the_row_of_an_own_operation_runs_on_hips_autograd(left):
    autograd = pytest.importorskip("autograd")
    theirs, _, wanted = OWN_OPERATION[left]
    assert_same(run(theirs, left, **hips_names(autograd)), wanted)
