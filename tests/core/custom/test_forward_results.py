"""What `autograd_function`'s forward may return, in tuples and lists: the quick path and the other.

A list of a class of one's own is always taken by the general path, tuples and lists by written
lines where they can be: all must agree in results, gradients, and what a change in place reaches.
"""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import pullback as pb


class OwnList(list):
    """Taken by the general path."""


def results_of(x):
    """Return everything that a forward of one tensor of 3 elements may return."""
    array = x.numpy()
    made, tensor = array * 2.0, pb.asarray(array * 3.0)
    return {
        "array": array * 1.5,
        "number": (array * 1.5).sum(),
        "argument": x,
        "its array": array,
        "array with a view": made,
        "view": made[1:],
        "tensor": tensor,
        "view of the tensor": tensor[1:],
        "complex": array * 1j,
        "mask": array > 1.5,
        "float": 1.5,
        "int": 7,
        "None": None,
        "dict": {"steps": 1},
    }


NAMES = list(results_of(pb.ones(3)))


def operation(names, container):
    def forward(ctx, x):
        found = results_of(x)
        return container(found[name] for name in names)

    def backward(ctx, *grads):
        grads = [g for g in grads if isinstance(g, pb.Tensor) and g.dtype.is_inexact]
        return {"x": sum((g.numpy().real.sum() for g in grads), np.zeros(3))}

    return pb.autograd_function(forward, backward)


def shown(results, x):
    """Return what a caller sees of results."""
    return [
        (r.dtype.name, r.requires_grad, r.is_leaf, r._base is None, r is x, r.tolist())
        if isinstance(r, pb.Tensor)
        else (type(r).__name__, r if isinstance(r, dict) else np.asarray(r).tolist())
        for r in results
    ]


def seen(op, tracked):
    """Return results, gradients, and all values once the first result was changed in place."""
    x = pb.tensor([1.0, 2.0, 3.0], dtype=pb.float64, requires_grad=tracked)
    try:
        results = op(x)
        before, gradients = shown(results, x), None
        outs = [r for r in results if isinstance(r, pb.Tensor) and r.requires_grad]
        if outs:
            seeds = [pb.ones_like(out) for out in outs]
            gradients = pb.autograd.grad(outs, x, grad_outputs=seeds, allow_unused=True)[0]
        changed = [r for r in results if isinstance(r, pb.Tensor) and r is not x]
        with pb.no_grad():
            for r in changed[:1]:
                r.copy_(pb.zeros_like(r))
        return before, gradients, shown(results, x), x.tolist()
    except pb.AutogradError as error:
        return str(error)


def same(a, b):
    gradients = a[1], b[1]
    if all(isinstance(g, pb.Tensor) for g in gradients):
        return gradients[0].tolist() == gradients[1].tolist() and a[:1] + a[2:] == b[:1] + b[2:]
    return a == b


@pytest.mark.filterwarnings("ignore::pullback.errors.UntrackedTensorWarning")
@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("first", NAMES)
def test_tuples_and_lists_of_results_are_what_the_general_path_makes_of_them(first, tracked):
    for names in [(first,), *itertools.product([first], NAMES)]:
        general = seen(operation(names, OwnList), tracked)
        for container in (tuple, list):
            op = operation(names, container)
            for _ in range(2):  # the second call is written anew
                assert same(seen(op, tracked), general), names


@pytest.mark.parametrize("container", [tuple, list])
def test_results_and_gradients_of_several_outputs(container):
    op = pb.autograd_function(
        lambda ctx, x: (ctx.save_for_backward(x=x), container([x.numpy() ** 2, 5, x * 3.0]))[1],
        lambda ctx, g, _, h: {"x": 2 * ctx.saved_variables.x.numpy() * g.numpy() + 3 * h.numpy()},
    )
    for _ in range(2):
        x = pb.tensor([1.0, 2.0], dtype=pb.float64, requires_grad=True)
        squares, steps, triples = results = op(x)
        assert type(results) is container
        assert (squares.tolist(), steps, triples.tolist()) == ([1.0, 4.0], 5, [3.0, 6.0])
        (squares.sum() + 10 * triples.sum()).backward()
        assert x.grad.tolist() == [32.0, 34.0]
        x.grad = None
        op(x)[0].sum().backward()  # the gradient of the other is zeros
        assert x.grad.tolist() == [2.0, 4.0]


class Slots:
    __slots__ = ("u",)

    def __init__(self, u):
        self.u = u


@pytest.mark.parametrize("make", [Slots, lambda u: SimpleNamespace(u=u, steps=3)])
def test_tensors_in_an_object_that_forward_returns_are_warned_of(make):
    op = pb.autograd_function(lambda ctx, x: make(2 * x), lambda ctx, g: 2 * g)
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    with pytest.warns(pb.errors.UntrackedTensorWarning, match="a (Slots|SimpleNamespace), so no"):
        assert not op(x).u.requires_grad
