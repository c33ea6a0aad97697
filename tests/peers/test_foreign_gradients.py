"""A call of autograd_function with arrays that carry gradients in torch, JAX or HIPS autograd."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import GraphError

autograd = pytest.importorskip("autograd")
dask_array = pytest.importorskip("dask.array")
jax = pytest.importorskip("jax")
mygrad = pytest.importorskip("mygrad")
torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
]


@pb.autograd_function
def square(ctx, x, others=()):
    ctx.save_for_backward(x=x)
    return x * x


@square.backward
def _(ctx, grad_output):
    return {"x": 2.0 * grad_output * ctx.saved_variables.x}


ONES = torch.ones(2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: square(torch.ones(2, requires_grad=True)),
        lambda: square(torch.ones(2, requires_grad=True) * 2),
        lambda: square(torch.nn.Parameter(ONES)),
        lambda: square(pb.tensor([1.0]), [torch.nn.Parameter(ONES)]),
        lambda: torch.func.grad(lambda x: square(x).sum())(ONES),
        lambda: torch.func.jvp(square, (ONES,), (ONES,)),
        lambda: torch.func.grad(lambda x: torch.func.vmap(square)(x).sum())(ONES),
        lambda: pb.exp(torch.nn.Parameter(ONES)),
        lambda: pb.asarray(torch.nn.Parameter(ONES)),
        lambda: pb.tensor(torch.nn.Parameter(ONES)),
    ],
)
def test_torch_tensors_with_a_gradient_are_refused(call):
    with pytest.raises(GraphError, match=r"requires grad\n.*pb.asarray\(t.detach\(\)\)"):
        call()


@pytest.mark.parametrize("transform", [jax.grad, jax.jit, jax.vmap])
def test_jax_tracers_are_refused(transform):
    with pytest.raises(GraphError, match=r"JAX tracer\n.*outside of jax.jit"):
        transform(lambda x: square(x).sum())(jax.numpy.ones(2))


def test_values_that_hips_autograd_and_mygrad_trace_are_refused():
    with pytest.raises(GraphError, match="HIPS autograd"):
        autograd.grad(lambda x: square(x).sum())(np.ones(2))
    with pytest.raises(GraphError, match=r"pb.asarray\(t.data\)"):
        square(mygrad.tensor([1.0]))


def test_arrays_without_a_gradient_arrive_as_they_are():
    arrays = (ONES, jax.numpy.ones(2), dask_array.ones(2), mygrad.tensor([1.0], constant=True))
    for array in arrays:
        assert type(square(array)) is type(array)
    assert torch.func.vmap(square)(ONES).tolist() == [1.0, 1.0]


def test_the_way_that_the_error_names_gives_the_gradient():
    x = pb.asarray(torch.ones(2, requires_grad=True).detach()).requires_grad_()
    square(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
