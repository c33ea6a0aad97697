"""Reading and writing through indices (cases IX1 and IX2)."""

import numpy as np
import pytest

import pullback as pb
from pullback import Tensor


def leaf(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def const(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64)


def square_leaf() -> Tensor:
    return leaf(np.arange(1.0, 17.0).reshape(4, 4))


def test_IX1_repeated_rows_are_counted() -> None:
    y = square_leaf()
    rows = y[pb.tensor([1, 1, 3, 2, 1, 2])]
    assert tuple(rows.shape) == (6, 4)
    assert rows[2].tolist() == [13.0, 14.0, 15.0, 16.0]
    rows.sum().backward()
    assert y.grad.tolist() == [[0.0] * 4, [3.0] * 4, [2.0] * 4, [1.0] * 4]


def test_IX1_repeated_elements_are_counted() -> None:
    y = square_leaf()
    y[[[1, 2], [0, 0]], [[0, 1], [1, 1]]].sum().backward()
    assert y.grad.tolist() == [
        [0.0, 2.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0],
    ]


INDICES = {
    "int": 2,
    "negative int": -1,
    "two ints": (1, 3),
    "slice": slice(1, 3),
    "stepped slice": slice(None, None, 2),
    "int and slice": (0, slice(1, None)),
    "two slices": (slice(0, 4, 3), slice(3, None)),
    "empty slice": slice(2, 2),
    "ellipsis": ...,
    "ellipsis then int": (..., 1),
    "new axis": (None, 1),
    "mask": np.arange(16).reshape(4, 4) % 3 == 0,
    "row mask": np.array([True, False, True, False]),
    "list of rows": [0, 0, 3],
    "array": np.array([[3, 1], [1, 1]]),
    "array then slice": (np.array([1, 1, 2]), slice(1, 3)),
    "slice then array": (slice(None), np.array([0, 0, 2])),
    "slice then negative array": (slice(1, 3), np.array([-1, 2, -1])),
    "int and array": (2, np.array([0, 0, 1])),
    "broadcast arrays": (np.array([[0], [2]]), np.array([1, 1, 3])),
    "mask and int": (np.array([True, False, True, False]), 2),
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES.keys())
def test_IX1_gradient_counts_how_often_each_element_is_selected(index: object) -> None:
    y = square_leaf()
    picked = y[index]
    expected = y.detach().numpy()[index]
    assert picked.detach().numpy().shape == expected.shape
    np.testing.assert_array_equal(picked.detach().numpy(), expected)
    picked.sum().backward()
    counts = np.bincount(np.arange(16).reshape(4, 4)[index].ravel(), minlength=16).reshape(4, 4)
    np.testing.assert_array_equal(y.grad.numpy(), counts.astype(np.float64))


def test_IX1_boolean_tensor_as_index() -> None:
    y = leaf([1.0, -2.0, 3.0])
    (y[y > 0] * const([10.0, 20.0])).sum().backward()
    assert y.grad.tolist() == [10.0, 0.0, 20.0]


def test_IX1_indexing_is_differentiable_twice() -> None:
    y = leaf([1.0, 2.0, 3.0])
    (first,) = pb.autograd.grad((y[[0, 0, 2]] ** 3).sum(), y, create_graph=True)
    assert first.tolist() == [6.0, 0.0, 27.0]
    (second,) = pb.autograd.grad(first.sum(), y)
    assert second.tolist() == [12.0, 0.0, 18.0]


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES.keys())
def test_IX2_writing_a_constant_cuts_the_gradient_there(index: object) -> None:
    x = square_leaf()
    y = x + 2
    before = y._version
    y[index] = 2
    assert y._version > before
    values = np.arange(3.0, 19.0).reshape(4, 4)
    values[index] = 2.0
    np.testing.assert_array_equal(y.detach().numpy(), values)
    y.sum().backward()
    kept = np.ones((4, 4))
    kept[index] = 0.0
    np.testing.assert_array_equal(x.grad.numpy(), kept)


@pytest.mark.parametrize("key", ["int", "slice", "ellipsis", "mask", "two ints", "new axis"])
def test_IX2_written_leaf_gets_one_for_each_element(key: str) -> None:
    index = INDICES[key]
    x = square_leaf()
    y = x + 2
    value = leaf(np.full(y.detach().numpy()[index].shape, 5.0))
    y[index] = value
    y.sum().backward()
    np.testing.assert_array_equal(value.grad.numpy(), np.ones(tuple(value.shape)))
    kept = np.ones((4, 4))
    kept[index] = 0.0
    np.testing.assert_array_equal(x.grad.numpy(), kept)


def test_IX2_written_gradients_keep_their_positions() -> None:
    x, value = leaf([1.0, 2.0, 3.0, 4.0]), leaf([10.0, 20.0])
    y = x + 2
    y[pb.tensor([3, 0])] = value
    assert y.tolist() == [20.0, 4.0, 5.0, 10.0]
    (y * const([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert value.grad.tolist() == [4.0, 1.0]
    assert x.grad.tolist() == [0.0, 2.0, 3.0, 0.0]


@pytest.mark.parametrize(
    ("index", "value", "gradient"),
    [
        ((slice(None), 0), [7.0], [4.0]),
        (slice(0, 2), 7.0, 8.0),
        (slice(1, 4), [1.0, 2.0, 3.0, 4.0], [3.0, 3.0, 3.0, 3.0]),
        (slice(0, 2), [[1.0], [2.0]], [[4.0], [4.0]]),
        ([0, 2], [[1.0, 2.0, 3.0, 4.0]], [[2.0, 2.0, 2.0, 2.0]]),
        (np.eye(4, dtype=bool), 7.0, 4.0),
    ],
)
def test_IX2_broadcast_value_gets_the_summed_gradient_in_its_own_shape(
    index: object, value: object, gradient: object
) -> None:
    x, written = square_leaf(), leaf(value)
    y = x + 2
    y[index] = written
    y.sum().backward()
    assert written.grad.shape == written.shape
    assert written.grad.tolist() == gradient
    kept = np.ones((4, 4))
    kept[index] = 0.0
    np.testing.assert_array_equal(x.grad.numpy(), kept)
