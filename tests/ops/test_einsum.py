"""einsum and tensordot: every form of equation, its gradients, and what is refused."""

import tracemalloc

import numpy as np
import pytest

import pullback as pb
from pullback.ops.primitives.products import contract_p

EQUATIONS = [
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ij,jk->ki", [(2, 3), (3, 4)]),
    ("ij , jk -> ik", [(2, 3), (3, 4)]),
    ("ba,b", [(3, 2), (3,)]),
    ("BA,aB->Aa", [(2, 3), (3, 2)]),
    ("ij->ij", [(2, 3)]),
    ("ij->ji", [(2, 3)]),
    ("ji", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ij->j", [(2, 3)]),
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("iii->i", [(2, 2, 2)]),
    ("iij->j", [(3, 3, 2)]),
    ("ijij->ji", [(2, 3, 2, 3)]),
    ("ii,ii->i", [(2, 2), (2, 2)]),
    ("i,i", [(3,), (3,)]),
    ("i,i->i", [(3,), (3,)]),
    ("i,j->ij", [(3,), (2,)]),
    ("i,j->", [(3,), (2,)]),
    (",i->i", [(), (3,)]),
    (",", [(), ()]),
    ("->", [()]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]),
    ("bij,bkj->bki", [(2, 3, 4), (2, 2, 4)]),
    ("bij,jk->ibk", [(2, 3, 4), (4, 2)]),
    ("ijkl,lkm->jim", [(2, 3, 2, 2), (2, 2, 3)]),
    ("...ij->...ji", [(2, 2, 3)]),
    ("...ij,...jk->...ik", [(2, 1, 2, 3), (4, 3, 2)]),
    ("i...,i...", [(2, 3), (2, 3)]),
    ("...,...", [(2, 3), (3,)]),
    ("...,i->i...", [(), (2,)]),
    ("ij,ij->ij", [(2, 3), (1, 3)]),
    ("ijk,jk->i", [(2, 1, 3), (4, 3)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
    ("ij,jk,kl", [(2, 3), (3, 4), (4, 2)]),
    ("a,ab,abc->c", [(2,), (2, 3), (2, 3, 2)]),
    ("i,j,k->kji", [(2,), (3,), (2,)]),
    ("ab,bc,cd,da->", [(2, 3), (3, 2), (2, 3), (3, 2)]),
    ("i,ij,jk,kl,lm,m->", [(2,), (2, 2), (2, 3), (3, 2), (2, 2), (2,)]),
    ("ij,jk->ik", [(0, 3), (3, 2)]),
    ("ij,jk->ik", [(2, 0), (0, 2)]),
]


def drawn(shapes, dtype, seed=0):
    rng = np.random.default_rng(seed)
    arrays = [np.asarray(rng.standard_normal(shape)) for shape in shapes]
    if dtype is complex:
        arrays = [a + 1j * np.asarray(rng.standard_normal(a.shape)) for a in arrays]
    return arrays


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_an_equation_means_what_it_means_to_numpy(equation, shapes, dtype):
    arrays = drawn(shapes, dtype)
    ours = pb.einsum(equation, *map(pb.asarray, arrays))
    theirs = np.einsum(equation, *arrays)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_the_derivative_in_one_operand_is_the_equation_with_the_change_in_its_place(
    equation, shapes, dtype
):
    arrays, changes = drawn(shapes, dtype), drawn(shapes, dtype, seed=1)
    leaves = [pb.tensor(a, requires_grad=True) for a in arrays]
    result = pb.einsum(equation, *leaves)
    (seed,) = drawn([result.shape], dtype, seed=2)
    gradients = pb.autograd.grad(result, leaves, pb.asarray(seed))
    for i, (gradient, change) in enumerate(zip(gradients, changes, strict=True)):
        along = np.einsum(equation, *arrays[:i], change, *arrays[i + 1 :])
        expected = np.sum(np.conj(seed) * along).real
        ours = np.sum(np.conj(gradient.numpy()) * change).real
        np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-12)


def test_the_axes_of_an_ellipsis_are_summed_over_where_the_output_leaves_them_out():
    # as in PyTorch; NumPy refuses it
    x, y = drawn([(2, 3, 2), (3, 2)], float)
    ours = pb.einsum("b...,...->b", pb.asarray(x), pb.asarray(y))
    np.testing.assert_allclose(ours.numpy(), np.sum(x * y, axis=(1, 2)), rtol=1e-12)
    assert pb.einsum("...i->i", pb.ones((2, 3))).tolist() == [2.0, 2.0, 2.0]


def test_several_operands_are_contracted_in_a_good_order():
    # From left to right the first product would have 1000 x 1000 elements, 4 MB.
    operands = [pb.ones(shape) for shape in ((1000, 1), (1, 1000), (1000, 1))]
    pb.einsum("ij,jk,kl->il", *operands)
    tracemalloc.start()
    result = pb.einsum("ij,jk,kl->il", *operands)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result[0, 0].item() == 1000.0
    assert peak < 1_000_000


def test_an_equation_of_one_operand_that_changes_nothing_is_a_view():
    x = pb.tensor([[1.0, 2.0], [3.0, 4.0]])
    diagonal = pb.einsum("ii->i", x)
    diagonal += 10
    assert x.tolist() == [[11.0, 2.0], [3.0, 14.0]]


def test_dtypes_are_brought_together():
    x, y = pb.ones((2, 2), dtype="float32"), pb.ones((2, 2), dtype="float64")
    assert pb.einsum("ij,jk->ik", x, y).dtype is pb.float64
    whole = pb.einsum("ij,jk->ik", pb.ones((2, 2), dtype="int64"), pb.ones((2, 2), dtype="int64"))
    assert whole.dtype is pb.int64
    assert whole.tolist() == [[2, 2], [2, 2]]


def ones(*shapes):
    return [pb.ones(shape) for shape in shapes]


REFUSED = {
    "too few operands": ("ij,jk", ones((2, 2)), ("2 subscripts", "got 1")),
    "too many operands": ("ij", ones((2, 2), (2, 2)), ("1 subscripts", "got 2")),
    "too few subscripts": ("i", ones((2, 3)), ("operand 0", "2", "'i'")),
    "too many subscripts": ("ijk", ones((2, 3)), ("operand 0", "2", "'ijk'")),
    "no letter": ("i1", ones((2, 3)), ("letters", "'1'")),
    "two dots": ("i..", ones((2, 3)), ("letters", "'.'")),
    "two arrows": ("ij->i->j", ones((2, 3)), ("letters", "'-'")),
    "different lengths": ("ij,jk", ones((2, 3), (2, 3)), ("'j'", "3 and 2", "operands[1]")),
    "different further lengths": ("...,...", ones((2,), (3,)), ("'...'", "2 and 3")),
    "no square": ("ii", ones((2, 3)), ("'i'", "2 and 3")),
    "unknown in the output": ("ij->k", ones((2, 3)), ("output", "'k'")),
    "twice in the output": ("ij->ii", ones((2, 3)), ("output", "'i' twice")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_by_name(name):
    equation, operands, words = REFUSED[name]
    with pytest.raises(pb.errors.ShapeError) as caught:
        pb.einsum(equation, *operands)
    assert f"einsum: {equation!r}" in str(caught.value)
    assert [word for word in words if word not in str(caught.value)] == []


def test_more_than_52_subscripts_are_refused():
    many, letters = pb.ones((1,) * 27), "abcdefghijklmnopqrstuvwxyz"
    with pytest.raises(pb.errors.ArgumentError, match="at most 52 different subscripts"):
        pb.einsum(f"{letters}...,{letters.upper()}...,...", many, many, pb.ones((1,)))


TENSORDOT = {
    "too many axes": (3, pb.errors.ArgumentError, "from 0 to 2"),
    "negative": (-1, pb.errors.ArgumentError, "from 0 to 2"),
    "one sequence": ((0,), pb.errors.ArgumentTypeError, "two sequences"),
    "no axes": ("ab", pb.errors.ArgumentTypeError, "axis must be an integer"),
    "different numbers": (((0, 1), (0,)), pb.errors.ArgumentError, "as many different axes"),
    "the same twice": (((0, 0), (0, 1)), pb.errors.ArgumentError, "as many different axes"),
    "different lengths": (((0,), (1,)), pb.errors.ShapeError, "axis 0 of x1 and axis 1 of x2"),
    "out of range": (((5,), (1,)), pb.errors.TensorIndexError, r"\[-2, 1\]"),
}


@pytest.mark.parametrize("name", TENSORDOT)
def test_axes_of_tensordot_that_do_not_fit_are_refused(name):
    axes, error, words = TENSORDOT[name]
    with pytest.raises(error, match=words):
        pb.linalg.tensordot(pb.ones((2, 3)), pb.ones((2, 4)), axes=axes)


def test_axes_of_tensordot_may_be_positional_or_called_dims():
    x, y = pb.ones((2, 3)), pb.ones((3, 4))
    assert pb.tensordot(x, x, 2).item() == 6.0
    assert pb.tensordot(x, x).item() == 6.0
    assert pb.tensordot(x, y, dims=([1], [0])).shape == pb.tensordot(x, y, 1).shape == (2, 4)
    with pytest.raises(pb.errors.ArgumentError, match="tensordot: give dim or axis, not both"):
        pb.tensordot(x, y, 1, dims=1)


def test_a_contraction_needs_a_label_for_each_axis():
    labels = (("b", "i", "j"), ("b", "k"), ("k", "j", "b", "i"))
    with pytest.raises(pb.errors.ShapeError, match="a label required for each axis of 'x'"):
        contract_p.public(0.75, pb.ones((2, 4)), labels=labels)
