"""The gradient checker on arrays of other libraries: they are checked where they live."""

import numpy as np
import pytest

import pullback as pb
from pullback.check import check_op

pytestmark = pytest.mark.peers


def cube(factor):
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x * x

    def backward(ctx, g):
        return {"x": factor * ctx.saved_variables.x**2 * g}

    return pb.autograd_function(forward, backward, name="cube")


@pytest.fixture(params=["jax.numpy", "array_api_strict"])
def library(request):
    module = pytest.importorskip(request.param)
    if request.param == "jax.numpy":
        import jax

        jax.config.update("jax_enable_x64", True)
    return module


def test_a_right_operation_passes_on_arrays_of_the_library(library):
    x = pb.asarray(library.asarray([0.5, -1.0, 2.0]))
    names = [part.name for part in pb.check.PARTS]  # of what is named nothing is left out
    report = check_op(cube(3.0), x, only=names)
    assert {part.status for part in report.parts} <= {"passed", "not applicable"}


def test_a_wrong_one_is_caught_there(library):
    x = pb.asarray(library.asarray([0.5, -1.0, 2.0]))
    report = check_op(cube(2.0), x, raise_exception=False)
    assert report.failures[0].cause.name == "factor"
    assert "0.667" in str(report)


def test_a_library_that_was_imported_is_tried_with_arrays_of_numpy(library):
    report = check_op(cube(3.0), np.array([0.5, -1.0, 2.0]), only=["libraries"])
    assert report.parts[-1].status == "passed"


def test_an_operation_goes_from_one_library_to_another_and_back():
    jnp = pytest.importorskip("jax.numpy")  # its dtypes are NumPy's
    op, ones = cube(3.0), np.ones(3, np.float32)
    for array in (ones, jnp.asarray(ones), ones):
        x = pb.asarray(array).requires_grad_()
        op(x).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0, 3.0]
