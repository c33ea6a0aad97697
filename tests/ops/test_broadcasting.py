"""Properties of broadcasting and of shapes, on drawn shapes."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import pullback as pb

MANY = {"max_dims": 4, "max_side": 3, "min_side": 0}
SHAPES = hnp.array_shapes(min_dims=0, **MANY)


def drawn(shape, seed):
    """Return numbers from 0.5 to 2 that differ from call to call with another seed."""
    return np.asarray(np.random.default_rng(seed).uniform(0.5, 2.0, shape))


def reduced(g, shape):
    """Sum `g` down to `shape`, one axis after the other."""
    while g.ndim > len(shape):
        g = g.sum(axis=0)
    for axis, n in enumerate(shape):
        if n == 1 and g.shape[axis] != 1:
            g = g.sum(axis=axis, keepdims=True)
    return g


def leaves(arrays):
    return [pb.tensor(a, requires_grad=True) for a in arrays]


# name: (function of tensors, the same of arrays, the derivatives as arrays)
BINARY = {
    "add": (pb.add, np.add, lambda x, y: (x * 0 + y * 0 + 1, x * 0 + y * 0 + 1)),
    "subtract": (pb.subtract, np.subtract, lambda x, y: (x * 0 + y * 0 + 1, x * 0 + y * 0 - 1)),
    "multiply": (pb.multiply, np.multiply, lambda x, y: (y + 0 * x, x + 0 * y)),
    "divide": (pb.divide, np.divide, lambda x, y: (1 / y + 0 * x, -x / y**2)),
    "pow": (pb.pow, np.power, lambda x, y: (y * x ** (y - 1), x**y * np.log(x))),
    "maximum": (pb.maximum, np.maximum, lambda x, y: ((x > y) * 1.0, (y > x) * 1.0)),
}


@pytest.mark.parametrize("name", BINARY)
@given(hnp.mutually_broadcastable_shapes(num_shapes=2, **MANY))
def test_two_shapes_broadcast_as_in_numpy_and_gradients_are_summed_back(name, shapes):
    ours, theirs, derivatives = BINARY[name]
    x, y = drawn(shapes.input_shapes[0], 1), drawn(shapes.input_shapes[1], 2)
    seed = drawn(shapes.result_shape, 3)
    tensors = leaves([x, y])
    result = ours(*tensors)
    assert result.shape == shapes.result_shape
    np.testing.assert_allclose(result.detach().numpy(), theirs(x, y), rtol=1e-12)
    for create_graph in (False, True):
        found = pb.autograd.grad(
            result, tensors, pb.asarray(seed), retain_graph=True, create_graph=create_graph
        )
        for g, array, slope in zip(found, (x, y), derivatives(x, y), strict=True):
            assert g.shape == array.shape
            expected = reduced(np.asarray(seed * slope), array.shape)
            np.testing.assert_allclose(g.detach().numpy(), expected, rtol=1e-9, atol=1e-12)


@given(hnp.mutually_broadcastable_shapes(num_shapes=3, **MANY))
def test_three_shapes_broadcast_in_where(shapes):
    condition = drawn(shapes.input_shapes[0], 1) > 1.25
    x, y = drawn(shapes.input_shapes[1], 2), drawn(shapes.input_shapes[2], 3)
    seed = drawn(shapes.result_shape, 4)
    tensors = leaves([x, y])
    result = pb.where(pb.tensor(condition), *tensors)
    np.testing.assert_array_equal(result.detach().numpy(), np.where(condition, x, y))
    found = pb.autograd.grad(result, tensors, pb.asarray(seed))
    for g, array, taken in zip(found, (x, y), (condition, ~condition), strict=True):
        expected = reduced(np.asarray(seed * taken), array.shape)
        assert g.shape == array.shape
        np.testing.assert_allclose(g.numpy(), expected, rtol=1e-12)


@given(SHAPES, SHAPES)
def test_shapes_that_do_not_broadcast_are_refused_and_named(one, two):
    try:
        shape = np.broadcast_shapes(one, two)
    except ValueError:
        with pytest.raises(ValueError, match="add: ") as caught:
            pb.zeros(one) + pb.zeros(two)
        assert f"x: shape {one}, dtype float32" in str(caught.value)
        assert f"y: shape {two}, dtype float32" in str(caught.value)
    else:
        assert (pb.zeros(one) + pb.zeros(two)).shape == shape


@given(hnp.mutually_broadcastable_shapes(num_shapes=1, base_shape=(2, 1, 3), **MANY), st.data())
def test_an_in_place_operation_takes_what_broadcasts_to_its_shape(shapes, data):
    x = drawn(shapes.result_shape, 1)
    y = drawn(shapes.input_shapes[0], 2)
    changes = {"add_": np.add, "mul_": np.multiply, "div_": np.divide, "pow_": np.power}
    name = data.draw(st.sampled_from(sorted(changes)))
    tensors = leaves([x, y])
    target = tensors[0].clone()
    getattr(target, name)(tensors[1])
    np.testing.assert_allclose(target.detach().numpy(), changes[name](x, y), rtol=1e-12)
    outside = getattr(pb.Tensor, name[:-1])(*tensors)
    ours = pb.autograd.grad(target.sum(), tensors)
    theirs = pb.autograd.grad(outside.sum(), tensors)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


@given(hnp.mutually_broadcastable_shapes(num_shapes=1, **MANY))
def test_broadcast_to_and_sum_to_size_are_each_others_gradient(shapes):
    small, large = shapes.input_shapes[0], shapes.result_shape
    x, seed = drawn(small, 1), drawn(large, 2)
    (tensor,) = leaves([x])
    wide = pb.broadcast_to(tensor, large)
    np.testing.assert_array_equal(wide.detach().numpy(), np.broadcast_to(x, large))
    (g,) = pb.autograd.grad(wide, tensor, pb.asarray(seed))
    np.testing.assert_allclose(g.numpy(), reduced(seed, small), rtol=1e-12)
    np.testing.assert_allclose(
        pb.sum_to_size(pb.asarray(seed), small).numpy(), reduced(seed, small), rtol=1e-12
    )
    (narrow,) = leaves([seed])
    (back,) = pb.autograd.grad(pb.sum_to_size(narrow, small), narrow, pb.asarray(x))
    np.testing.assert_array_equal(back.numpy(), np.broadcast_to(x, large))


MATRICES = hnp.mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=2, max_side=3)


@given(MATRICES)
def test_matrix_products_follow_numpy_for_vectors_and_stacks(shapes):
    x, y = drawn(shapes.input_shapes[0], 1), drawn(shapes.input_shapes[1], 2)
    tensors = leaves([x, y])
    result = pb.matmul(*tensors)
    assert result.shape == shapes.result_shape
    np.testing.assert_allclose(result.detach().numpy(), np.matmul(x, y), rtol=1e-12)
    seed = drawn(shapes.result_shape, 3)
    found = pb.autograd.grad(result, tensors, pb.asarray(seed))
    # The product is linear in each factor: its slope along a direction is the product with it.
    for position, (g, array) in enumerate(zip(found, (x, y), strict=True)):
        direction = drawn(array.shape, 4)
        factors = [x, y]
        factors[position] = direction
        assert g.shape == array.shape
        expected = np.sum(seed * np.matmul(*factors))
        assert np.sum(g.numpy() * direction) == pytest.approx(expected, rel=1e-9)


@given(SHAPES.filter(lambda shape: 0 not in shape), st.data())
def test_reductions_over_any_axes_follow_numpy(shape, data):
    axes = data.draw(
        st.none() | st.lists(st.integers(0, max(len(shape) - 1, 0)), unique=True).map(tuple)
        if shape
        else st.none()
    )
    keep = data.draw(st.booleans())
    x = drawn(shape, 1)
    (tensor,) = leaves([x])
    for name, slope in {"sum": 1.0, "mean": None, "max": None, "prod": None}.items():
        result = getattr(pb, name)(tensor, axis=axes, keepdims=keep)
        expected = getattr(np, name)(x, axis=axes, keepdims=keep)
        assert result.shape == expected.shape
        np.testing.assert_allclose(result.detach().numpy(), expected, rtol=1e-12)
        (g,) = pb.autograd.grad(result.sum(), tensor)
        assert g.shape == shape
        # Each is homogeneous: sum(x * gradient) = degree * value.
        count = x.size / max(expected.size, 1)
        degree = count if name == "prod" else 1
        np.testing.assert_allclose(np.sum(g.numpy() * x), degree * np.sum(expected), rtol=1e-9)
        if slope is not None:
            assert g.tolist() == np.full(shape, slope).tolist()


@given(SHAPES.filter(lambda shape: len(shape) > 0), st.data())
def test_a_basic_index_reads_a_view_and_its_gradient_marks_what_it_read(shape, data):
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
    x = drawn(shape, 1)
    (tensor,) = leaves([x])
    result = tensor[index]
    np.testing.assert_array_equal(result.detach().numpy(), x[index])
    seed = drawn(result.shape, 2)
    (g,) = pb.autograd.grad(result, tensor, pb.asarray(seed))
    expected = np.zeros(shape)
    expected[index] = seed
    np.testing.assert_array_equal(g.numpy(), expected)


@given(SHAPES.filter(lambda shape: len(shape) > 0 and 0 not in shape), st.data())
def test_an_index_of_integers_counts_what_it_reads_twice(shape, data):
    index = data.draw(hnp.integer_array_indices(shape))
    x = drawn(shape, 1)
    (tensor,) = leaves([x])
    result = tensor[index]
    np.testing.assert_array_equal(result.detach().numpy(), x[index])
    (g,) = pb.autograd.grad(result.sum(), tensor)
    counts = np.zeros(shape)
    np.add.at(counts, index, 1.0)
    np.testing.assert_array_equal(g.numpy(), counts)


@given(SHAPES, st.data())
def test_moving_axes_and_elements_about_comes_back_in_the_gradient(shape, data):
    order = data.draw(st.permutations(range(len(shape))))
    x = drawn(shape, 1)
    (tensor,) = leaves([x])
    moved = pb.permute_dims(tensor, order)
    np.testing.assert_array_equal(moved.detach().numpy(), x.transpose(order))
    flat = moved.reshape(-1) if x.size else moved.reshape(0)
    seed = drawn(flat.shape, 2)
    (g,) = pb.autograd.grad(flat, tensor, pb.asarray(seed))
    expected = seed.reshape(moved.shape).transpose(np.argsort(order))
    np.testing.assert_array_equal(g.numpy(), expected)
