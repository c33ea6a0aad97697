"""Plain numbers of what a transform differentiates: float(), item(), tolist() and math warn."""

import inspect
import math
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback import UntrackedTensorWarning

X, V = np.array([1.0, 2.0]), np.array([1.0, 0.0])


def into_an_array(x):
    c = np.zeros(2)
    c[0] = x[0] * x[0]
    return c[0] * x[1]


def twice_on_a_line(x):
    return sum(float(x[0]) * x[1] for _ in range(3))


ENDING = {
    "array": into_an_array,
    "math": lambda x: math.sin(x[0]) * x[1],
    "float": lambda x: float(x[0]) * x[1],
    "complex": lambda x: complex(x[0]).real * x[1],
    "numpy float": lambda x: np.float64(x[0]) * x[1],
    "item": lambda x: x[0].item() * x[1],
    "item of an index": lambda x: x.item(0) * x[1],
    "tolist": lambda x: x.tolist()[0] * x[1],
    "several": twice_on_a_line,
    "in a branch": lambda x: x[1] * (1.0 if x[0] < 0 else float(x[0])),
}
TRANSFORMS = {
    "grad": lambda f: pb.grad(f)(X),
    "value_and_grad": lambda f: pb.value_and_grad(f)(X),
    "elementwise_grad": lambda f: pb.elementwise_grad(f)(X),
    "vjp": lambda f: pb.vjp(f, X),
    "jvp": lambda f: pb.jvp(f, (X,), (V,)),
    "linearize": lambda f: pb.linearize(f, X),
    "jacobian": lambda f: pb.jacobian(f)(X),
    "jacrev": lambda f: pb.jacrev(f)(X),
    "jacfwd": lambda f: pb.jacfwd(f)(X),
    "hessian": lambda f: pb.hessian(lambda x: f(x) * x[0])(X),
    "hvp": lambda f: pb.hvp(f)(X, V),
    "vhp": lambda f: pb.vhp(f)(X, V),
    "grad of jvp": lambda f: pb.grad(lambda x: pb.jvp(f, (x,), (V,))[1] * x[0])(X),
    "jvp of grad": lambda f: pb.jvp(pb.grad(f), (X,), (V,)),
    "vmap of what is shared": lambda f: pb.grad(
        lambda w: np.sum(pb.vmap(lambda w, x: f(w) * x, (None, 0))(w, X))
    )(X),
    "checkpoint": lambda f: pb.checkpoint(f)(pb.tensor(X, requires_grad=True)).backward(),
}


@pytest.mark.parametrize("transform", list(TRANSFORMS))
@pytest.mark.parametrize("ending", list(ENDING))
def test_a_plain_number_in_a_transform_warns_once_at_its_line(ending, transform):
    f = ENDING[ending]
    if (ending, transform) == ("item of an index", "checkpoint"):
        f = ENDING["item"]  # plain tensors have PyTorch's item
    lines, first = inspect.getsourcelines(f)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TRANSFORMS[transform](f)
    [warning] = caught
    assert warning.category is UntrackedTensorWarning
    assert warning.filename == __file__
    assert first <= warning.lineno < first + len(lines)
    text = str(warning.message)
    assert text.startswith(("float: ", "complex: ", "item: ", "tolist: "))
    assert "np.sin for math.sin" in text
    assert "detach()" in text


SILENT = {
    "comparison": lambda x: x[1] * 2.0 if x[0] < 3 and bool(x[1]) and max(x) > 0 else x[0],
    "detached": lambda x: x.detach()[0].item() * x[1] + float(x[0].detach()) * x[1],
    "integer": lambda x: int(x[0]) * x[1] * [1.0, 2.0][np.argmax(x)],
    "text": lambda x: x[1] * len(f"{x[0]:.3f} {x}"),
    "constant": lambda x: np.ones(2).item(0) * x[1] * pb.ones(()).item() * np.zeros_like(x).item(0),
}


@pytest.mark.parametrize("transform", [n for n in TRANSFORMS if n != "checkpoint"])
@pytest.mark.parametrize("f", SILENT.values(), ids=SILENT)
def test_a_look_at_a_value_in_a_transform_is_silent(f, transform):
    TRANSFORMS[transform](f)


def test_a_number_in_a_transform_of_what_eager_code_tracks_is_silent():
    w = pb.tensor([2.0, 3.0], requires_grad=True)
    losses = []

    def f(x):
        loss = (w * w).sum() if x > 0 else w.sum()
        losses.append(loss.item())
        return x * x

    assert pb.grad(f)(3.0) == 6.0
    assert pb.jvp(f, (3.0,), (1.0,)) == (9.0, 6.0)
    assert losses == [13.0, 13.0]
    assert (w * w).sum().item() == 13.0


def test_a_number_of_an_outer_transforms_value_warns_in_an_inner_one():
    with pytest.warns(UntrackedTensorWarning, match="^item: "):
        assert pb.grad(lambda x: pb.grad(lambda y: y * x.item())(2.0) * x)(3.0) == 3.0
    with pytest.warns(UntrackedTensorWarning, match="^float: a tensor in forward mode "):
        found = pb.jvp(lambda x: pb.grad(lambda y: y * float(x))(2.0) * x, (3.0,), (1.0,))
    assert found == (9.0, 3.0)
    with pytest.warns(UntrackedTensorWarning, match="^item: "):
        pb.grad(lambda x: pb.jvp(lambda y: y * x.item(), (2.0,), (x,))[1])(3.0)


def test_a_number_under_no_grad_in_a_transform_is_silent():
    def f(x):
        with pb.no_grad():
            scale = float(x)
        return scale * x

    assert pb.grad(f)(2.0) == 2.0
    assert pb.jvp(f, (2.0,), (1.0,)) == (4.0, 2.0)


def test_a_number_in_a_rule_warns_where_the_rule_is_differentiated():
    @pb.autograd_function
    def square(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x

    @square.backward
    def _(ctx, g):
        return g * 2 * ctx.saved_variables.x.item()

    assert pb.grad(square)(3.0) == 6.0
    for second in (pb.grad(pb.grad(square)), pb.hessian(square)):
        with pytest.warns(UntrackedTensorWarning, match="^item: "):
            second(3.0)


def test_a_warning_as_an_error_leaves_everything_as_it_was():
    x = pb.tensor(3.0, requires_grad=True)
    for run in (lambda f: pb.grad(f)(x), lambda f: pb.jvp(f, (x,), (1.0,))):
        for f in (lambda x: x.item() * x, lambda x: math.exp(x) * x):
            with pytest.raises(UntrackedTensorWarning):
                run(f)
    assert x.grad is None
    assert pb.is_grad_enabled()
    assert x.item() == 3.0


@pytest.mark.parametrize(
    "use",
    [
        lambda x: pb.full((2,), x),
        lambda x: pb.linspace(0.0, x, 3),
        lambda x: pb.arange(x),
        np.from_dlpack,
        np.asarray,
    ],
)
@pytest.mark.parametrize("transform", [pb.grad, pb.jacfwd])
def test_where_a_derivative_would_be_lost_altogether_both_modes_raise(transform, use):
    with pytest.raises(pb.AutogradError, match="detach"):
        transform(lambda x: x * np.sum(use(x)))(2.0)
