"""Forward mode on every operation: the transpose of its backward, one and two deep."""

import numpy as np
import pytest
from tests.ops import _cases
from tests.ops._cases import mostly

import pullback as pb

SMOOTH = [case for case in _cases.cases(differentiable=True) if case.wanted]
FIRST = [case for case in SMOOTH if case.number == 0]


def of_wanted(case, arrays):
    """Return the operation as a function of the inputs that have a gradient."""

    def call(*wanted):
        inputs = [pb.asarray(a) for a in arrays]
        for i, tensor in zip(case.wanted, wanted, strict=True):
            inputs[i] = tensor
        return [out for out in case.call(inputs) if out.dtype.is_inexact]

    return call, [pb.asarray(arrays[i]) for i in case.wanted]


def numbers(tensors):
    return [t.numpy() for t in tensors]


def paired(xs, ys):
    return sum(np.vdot(x, y).real for x, y in zip(xs, ys, strict=True))


def drawn(case, arrays):
    return [_cases.random_like(a, case.rng()) for a in arrays]


@mostly(SMOOTH)
def test_the_derivative_along_a_vector_is_the_transpose_of_backward(case):
    function, given = of_wanted(case, case.arrays())
    vectors = drawn(case, given_arrays := numbers(given))
    plain, vjp_fn = pb.vjp(function, *given)
    cotangents = drawn(case, numbers(plain))
    out, found = pb.jvp(function, given, vectors)
    for ours, theirs in zip(out, plain, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12, atol=1e-13)
    products = paired(numbers(found), cotangents)
    transposed = paired(numbers(vjp_fn(cotangents)), vectors)
    np.testing.assert_allclose(products, transposed, rtol=1e-9, atol=1e-10)
    assert [v.shape for v in given_arrays] == [v.shape for v in vectors]


@pytest.mark.parametrize("case", FIRST, ids=str)
def test_second_derivatives_are_the_same_in_every_order(case):
    function, given = of_wanted(case, case.arrays())
    vectors = drawn(case, numbers(given))
    plain = function(*given)
    cotangents = [pb.asarray(c) for c in drawn(case, numbers(plain))]

    def weighted(*args):
        pairs = zip(function(*args), cotangents, strict=True)
        return sum(
            (pb.conj(c) * out).sum().real if c.is_complex() else (c * out).sum() for out, c in pairs
        )

    every = tuple(range(len(given)))

    def along(*args):
        return pb.jvp(weighted, args, vectors)[1]

    found = {
        "reverse over reverse": pb.vhp(weighted, every)(*given, vectors),
        "forward over reverse": pb.hvp(weighted, every)(*given, vectors),
        "reverse over forward": pb.grad(along, every)(*given),
    }
    twice = pb.jvp(along, given, vectors)[1].numpy()
    expected = numbers(found["reverse over reverse"])
    for way in ("forward over reverse", "reverse over forward"):
        for ours, theirs in zip(numbers(found[way]), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9, err_msg=way)
    np.testing.assert_allclose(twice, paired(expected, vectors), rtol=1e-8, atol=1e-9)
