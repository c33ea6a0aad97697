"""Nothing that a transform makes outlives it, or is left to the garbage collector."""

import gc

import numpy as np
import pytest

import pullback as pb

X = np.arange(3.0)


@pb.autograd_function
def cube(ctx, x):
    ctx.save_for_backward(x=x)
    return x**3


@cube.backward
def _(ctx, grad_output):
    return {"x": grad_output * 3 * ctx.saved_variables.x**2}


def total(x):
    return np.sum(cube(x) * np.sin(x))


CALLS = {
    "grad": lambda: pb.grad(total)(X),
    "vjp": lambda: pb.vjp(cube, X)[1](X),
    "jvp": lambda: pb.jvp(cube, (X,), (X,)),
    "jvp of an operation without a rule for tangents": lambda: pb.jvp(
        lambda x: pb.softmax(x, dim=0), (X,), (X,)
    ),
    "linearize": lambda: pb.linearize(cube, X)[1](X),
    "jacobian": lambda: pb.jacobian(cube)(X),
    "jacfwd": lambda: pb.jacfwd(cube)(X),
    "hessian": lambda: pb.hessian(total)(X),
    "hvp": lambda: pb.hvp(total)(X, X),
    "vhp": lambda: pb.vhp(total)(X, X),
    "grad of jvp": lambda: pb.grad(lambda x: np.sum(pb.jvp(cube, (x,), (x,))[1]))(X),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_call_leaves_nothing_behind(call):
    call()  # what is made once
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(20):
            call()
        assert len(gc.get_objects()) - before < 20
        assert gc.collect() == 0
    finally:
        gc.enable()
