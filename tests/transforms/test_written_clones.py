"""vmap and forward mode: writing what depends on the arguments to what the function made itself."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import DeviceError

A = np.array([1.0, 2.0, 3.0])
W = pb.tensor(A)
X = np.array([10.0, 20.0])


def _first(w, x):
    w[0] = x * x
    return w


def _view(w, x):
    part = w[1:]
    part[0] = x * x
    return w


def _added(w, x):
    w += x
    return w


def _at_a_batched_index(w, x):
    w[(x * 0.0).long() + 1] = 5.0
    return w


def _recursive(w, x):
    def again(n):
        return w if n == 0 else again(n - 1)

    w[0] = x
    return again(2)


MADE = {
    "clone": lambda w: w.clone(),
    "detached clone": lambda w: w.detach().clone(),
    "np.copy": np.copy,
    "product": lambda w: w * 1.0,
    "concat": lambda w: pb.concat([w, w])[:3],
    "cast": lambda w: w.to(pb.float32).to(pb.float64),
    "asarray": lambda w: pb.asarray(w.detach().numpy(), copy=True),
    "reshaped clone": lambda w: w.reshape(3, 1).clone().reshape(3),
}
WRITES = {
    "setitem": _first,
    "view": _view,
    "add": _added,
    "mul_": lambda w, x: w.mul_(x),
    "index_add_": lambda w, x: w.index_add_(0, pb.tensor([0, 0]), pb.stack([x, x])),
    "copy_": lambda w, x: w.copy_(x.broadcast_to((3,))),
    "index": _at_a_batched_index,
    "cycle": _recursive,
    "setitem of a reshaped view": lambda w, x: _first(w.reshape(3, 1), x),
    "setitem of a slice": lambda w, x: _first(w[1:], x),
}


@pytest.mark.parametrize("write", list(WRITES))
@pytest.mark.parametrize("made", ["clone", "product", "detached clone", "np.copy", "asarray"])
def test_vmap_writes_to_what_the_function_made_of_an_outer_tensor(made, write):
    def f(x):
        return WRITES[write](MADE[made](W), x)

    found = pb.vmap(f)(pb.tensor(X))
    expected = [f(x).tolist() for x in pb.tensor(X)]
    assert found.tolist() == expected
    assert W.tolist() == [1.0, 2.0, 3.0]
    assert pb.vmap(f, chunk_size=1)(pb.tensor(X)).tolist() == expected


@pytest.mark.parametrize("made", list(MADE))
def test_forward_mode_writes_to_what_the_function_made_of_an_outer_tensor(made):
    def f(x):
        return _first(MADE[made](W), x) * x

    np.testing.assert_allclose(pb.jacfwd(f)(2.0), [12.0, 2.0, 3.0])
    np.testing.assert_allclose(pb.jvp(f, (2.0,), (0.5,))[1], [6.0, 1.0, 1.5])
    np.testing.assert_allclose(pb.hessian(lambda x: pb.sum(f(x)))(2.0), 12.0)
    np.testing.assert_allclose(pb.jacrev(f)(2.0), [12.0, 2.0, 3.0])


@pytest.mark.parametrize("write", ["setitem", "view", "add", "mul_"])
def test_gradients_of_a_written_clone_of_a_tracked_tensor_are_those_of_a_loop(write):
    def total(w):
        return sum(pb.sum(WRITES[write](w.clone(), x * w[1]) ** 2) for x in X)

    def batched(w):
        return pb.sum(pb.vmap(lambda x: pb.sum(WRITES[write](w.clone(), x * w[1]) ** 2))(X))

    np.testing.assert_allclose(pb.grad(batched)(A), pb.grad(total)(A))
    np.testing.assert_allclose(pb.jvp(pb.grad(batched), (A,), (A,))[1], pb.hvp(total)(A, A))
    leaf = pb.tensor(A, requires_grad=True)
    batched(leaf).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), pb.grad(total)(A))


def _keep(x, kept=[]):  # noqa: B006  (it outlives the call)
    kept.append(_first(W.clone(), x))
    return kept[-1]


def _outside(x):
    return _first(W, x)


def _view_of_outside(x):
    part = W[1:]
    part[0] = x
    return x


def _alias_of_outside(x):
    return _first(W.detach(), x)


def _array_of_outside(x):
    return _first(pb.asarray(A), x)


@pytest.mark.parametrize(
    "f", [_keep, _outside, _view_of_outside, _alias_of_outside, _array_of_outside]
)
@pytest.mark.parametrize("transform", [lambda f: pb.vmap(f)(X), lambda f: pb.jacfwd(f)(2.0)])
def test_what_outlives_the_function_is_not_written_to_and_stays_as_it_was(f, transform):
    with pytest.raises(DeviceError, match="cannot be written to a tensor from outside"):
        transform(f)
    assert W.tolist() == A.tolist() == [1.0, 2.0, 3.0]
    assert not W.requires_grad
    assert (W * 2).tolist() == [2.0, 4.0, 6.0]


def test_an_inner_vmap_does_not_write_to_what_the_outer_ones_function_made():
    def f(x):
        w = W.clone()
        return pb.vmap(lambda y: _first(w, y))(pb.tensor(X)) * x

    with pytest.raises(DeviceError, match="cannot be written to a tensor from outside"):
        pb.vmap(f)(X)


@pytest.mark.parametrize(
    ("made", "error"), [(lambda: W.clone(), ArithmeticError), (lambda: W, DeviceError)]
)
def test_a_function_that_raises_after_a_write_leaves_outer_tensors_as_they_were(made, error):
    def f(x):
        w = _first(made(), x)
        raise ArithmeticError(f"later, after {w.shape}")

    for transform in (lambda: pb.vmap(f)(X), lambda: pb.jvp(f, (2.0,), (1.0,))):
        with pytest.raises(error):
            transform()
        assert W.tolist() == [1.0, 2.0, 3.0]
