"""NumPy's arrays, scalars and functions beside Tensors: nothing loses its history."""

import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.numpy_protocol.protocol import _Call


@pytest.fixture
def t():
    return pb.tensor(np.array([1.0, 2.0, 4.0]), requires_grad=True)


A = np.array([3.0, 5.0, 7.0])

OPERATORS = {
    "+": (lambda x, y: x + y, [1.0, 1.0, 1.0]),
    "-": (lambda x, y: x - y, [-1.0, -1.0, -1.0]),
    "*": (lambda x, y: x * y, [3.0, 5.0, 7.0]),
    "/": (lambda x, y: x / y, [-3.0, -1.25, -0.4375]),
    "**": (lambda x, y: x**y, [3.0**1 * np.log(3), 25 * np.log(5), 7.0**4 * np.log(7)]),
    "%": (lambda x, y: x % y, [-3.0, -2.0, -1.0]),
    "@": (lambda x, y: x @ y, [3.0, 5.0, 7.0]),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_with_an_array_on_the_left_is_recorded(name, t):
    run, gradient = OPERATORS[name]
    result = run(A, t)
    assert isinstance(result, pb.Tensor)
    np.testing.assert_allclose(result.detach().numpy(), run(A, t.detach().numpy()))
    np.testing.assert_allclose(pb.autograd.grad(result.sum(), t)[0].numpy(), gradient)


@pytest.mark.parametrize("scalar", [np.float64(3), np.float32(3), np.int64(3), np.array(3.0)])
def test_a_numpy_scalar_on_the_left_is_recorded_and_widens_nothing(scalar):
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    result = scalar * x
    assert result.dtype is pb.float32
    assert result.tolist() == [3.0, 6.0]
    assert pb.autograd.grad(result.sum(), x)[0].tolist() == [3.0, 3.0]


def test_comparisons_logic_and_divmod_from_the_left(t):
    assert np.greater(A, t).tolist() == [True, True, True]
    assert (np.array([1.0, 5.0, 4.0]) == t).tolist() == [True, False, True]
    assert (np.array([True, False, True]) & (t > 1)).tolist() == [False, False, True]
    whole, rest = divmod(A, t)
    assert (whole.tolist(), rest.tolist()) == ([3.0, 2.0, 1.0], [0.0, 1.0, 3.0])


def test_a_larger_array_broadcasts_the_tensor(t):
    result = np.ones((2, 3)) * t
    assert pb.autograd.grad(result.sum(), t)[0].tolist() == [2.0, 2.0, 2.0]


def test_an_array_changed_after_the_call_does_not_change_the_gradient(t):
    a = A.copy()
    result = np.multiply(a, t)
    a[:] = 0
    assert pb.autograd.grad(result.sum(), t)[0].tolist() == [3.0, 5.0, 7.0]


def test_lists_and_lists_of_tensors_are_operands(t):
    assert np.add([1, 2, 3], t).tolist() == [2.0, 4.0, 7.0]
    result = np.add(t, [t[0], t[1], 1.0])
    assert pb.autograd.grad(result.sum(), t)[0].tolist() == [2.0, 2.0, 1.0]


def test_what_numpy_cannot_hand_over_is_left_to_the_other_operand(t):
    class Other:
        def __array_ufunc__(self, *args, **kwargs):
            return "mine"

        def __array_function__(self, function, types, args, kwargs):
            return "mine too"

    assert np.add(t, Other()) == "mine"
    assert np.concatenate([t, Other()]) == "mine too"
    with pytest.raises(TypeError):
        np.add(t, "text")


# -- what an array would have to hold --------------------------------------------------------------
def test_adding_a_tensor_to_an_array_in_place_raises(t):
    a = A.copy()
    with pytest.raises(RuntimeError, match=r"np\.add: a Tensor to write to required, since") as e:
        a += t
    assert "array: shape (3,), dtype float64" in str(e.value)
    assert "hint: write `result = a + t` for `a += t`, or make the array a tensor" in str(e.value)
    assert a.tolist() == [3.0, 5.0, 7.0]


def test_without_history_or_without_recording_an_array_is_written_to(t):
    a = A.copy()
    b = a
    a += t.detach()
    assert a is b
    assert b.tolist() == [4.0, 7.0, 11.0]
    with pb.no_grad():
        b -= t
    assert b.tolist() == [3.0, 5.0, 7.0]
    np.copyto(a, t.detach())
    np.fill_diagonal(eye := np.zeros((3, 3)), t.detach())
    assert (a.tolist(), np.trace(eye)) == ([1.0, 2.0, 4.0], 7.0)
    out = np.zeros(())
    assert np.sum(t.detach(), out=out) is out
    assert out == 7.0


WRITES = pytest.mark.parametrize(
    "write",
    [
        lambda a, t: np.add(a, t, out=a),
        lambda a, t: np.add.at(a, [0, 1, 2], t),
        lambda a, t: np.cumsum(t, out=a),
        lambda a, t: np.cumsum(t, None, None, a),
        lambda a, t: np.copyto(a, t),
        lambda a, t: np.add.accumulate(t, out=a),
        lambda a, t: np.full(3, t[0]),
        lambda a, t: np.asarray(t),
        lambda a, t: np.array([t, t]),
        lambda a, t: np.array([t[0], 1.0]),
        lambda a, t: a.__setitem__(slice(None), t),
        lambda a, t: np.fill_diagonal(np.eye(3), t),
        lambda a, t: np.ma.masked_array(a) + t,
        lambda a, t: np.ma.divide(t, np.ma.masked_array(a)),
        lambda a, t: np.ma.masked_array(a).__imul__(t),
        lambda a, t: np.ma.sin(t),
    ],
)


@WRITES
def test_history_never_ends_in_an_array(write, t):
    a = A.copy()
    with pytest.raises(pb.errors.GraphError):
        write(a, t)
    assert a.tolist() == [3.0, 5.0, 7.0]


@WRITES
def test_a_tangent_never_ends_in_an_array(write):
    a = A.copy()

    def run(x):
        write(a, x)
        return x

    masked = (TypeError, AttributeError)  # masked arrays refuse it themselves
    with pytest.raises((pb.errors.GraphError, *masked)):
        pb.jvp(run, (np.array([1.0, 2.0, 4.0]),), (np.ones(3),))
    assert a.tolist() == [3.0, 5.0, 7.0]


def test_a_masked_array_takes_tensors_without_history(t):
    masked = np.ma.masked_array(A, [True, False, False])
    assert (masked + t.detach()).tolist() == [None, 7.0, 11.0]


def test_the_ways_to_make_one_tensor_of_several(t):
    assert np.stack([t, t]).shape == pb.stack([t, t]).shape == (2, 3)
    assert np.stack([t[0], t[1]]).requires_grad
    assert np.array([t, t], like=t).requires_grad


def test_out_is_a_tensor(t):
    target = pb.zeros(3, dtype=pb.float64)
    assert np.add(A, t.detach(), out=target) is target
    assert target.tolist() == [4.0, 7.0, 11.0]
    assert np.cumsum(t.detach(), out=target).tolist() == [1.0, 3.0, 7.0]
    whole, rest = pb.zeros(3, dtype=pb.float64), pb.zeros(3, dtype=pb.float64)
    assert np.modf(t.detach() / 4, out=(rest, whole)) == (rest, whole)
    assert (rest.tolist(), whole.tolist()) == ([0.25, 0.5, 0.0], [0.0, 0.0, 1.0])
    with pytest.raises(ValueError, match=r"np\.add: out= of shape \(3,\), dtype float64 required"):
        np.add(A, t.detach(), out=pb.zeros(2, dtype=pb.float64))


def test_out_is_a_tensor_that_joins_the_graph(t):
    target = pb.zeros(3, dtype=pb.float64)
    assert np.multiply(A, t, out=target) is target
    assert np.log(target, where=target > 3, out=target) is target
    np.testing.assert_allclose(target.detach().numpy(), [3.0, np.log(10.0), np.log(28.0)])
    assert pb.autograd.grad(target.sum(), t)[0].tolist() == [3.0, 0.5, 0.25]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        np.add(A, 1.0, out=t)


def test_a_reduction_of_nothing_is_the_identity():
    assert np.logaddexp.reduce(pb.zeros((0, 2))).tolist() == [-np.inf, -np.inf]


def test_elements_that_where_leaves_out_cannot_spoil_a_gradient():
    x = pb.tensor(np.array([0.0, 2.0]), requires_grad=True)
    np.log(x, where=x > 0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.5]


def test_copyto_and_fill_diagonal_write_into_a_tensor_recorded(t):
    target = pb.zeros(3, dtype=pb.float64)
    np.copyto(target, t)
    np.copyto(target, 9.0 * t, where=np.array([True, False, False]))
    assert target.tolist() == [9.0, 2.0, 4.0]
    assert pb.autograd.grad(target.sum(), t)[0].tolist() == [9.0, 1.0, 1.0]
    matrix = pb.zeros((3, 3), dtype=pb.float64)
    np.fill_diagonal(matrix, t)
    np.fill_diagonal(other := pb.ones((2, 2)), 5.0)
    assert other.tolist() == [[5.0, 1.0], [1.0, 5.0]]
    assert pb.autograd.grad(matrix.sum(), t)[0].tolist() == [1.0, 1.0, 1.0]


WRITES = {
    "fill_diagonal, wrapped": (np.zeros((7, 2)), lambda a: np.fill_diagonal(a, 7.0, wrap=True)),
    "put, no axes": (np.array(1.0), lambda a: np.put(a, 0, 3.0)),
    "put, clipped": (np.ones(3), lambda a: np.put(a, [0, 9], [5.0, 6.0], mode="clip")),
    "put, twice in one place": (np.ones(3), lambda a: np.put(a, [1, 1], [5.0, 6.0])),
    "put_along_axis, flat": (
        np.ones((2, 2)),
        lambda a: np.put_along_axis(a, np.array([1, 2]), 9.0, None),
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_put_and_fill_diagonal_write_into_a_tensor_where_numpy_does(name):
    array, write = WRITES[name]
    target, expected = pb.tensor(array), array.copy()
    write(target)
    write(expected)
    np.testing.assert_array_equal(target.numpy(), expected)


REFUSED_WRITES = {
    "Cannot insert from an empty array": (3, lambda a: np.place(a, np.ones(3, bool), [])),
    "mask and data must be the same size": (3, lambda a: np.putmask(a, [True], 5.0)),
    "must be of equal length": ((2, 3, 4), lambda a: np.fill_diagonal(a, 7.0)),
}


@pytest.mark.parametrize("message", REFUSED_WRITES)
def test_what_place_putmask_and_fill_diagonal_cannot_write_numpy_refuses(message):
    shape, write = REFUSED_WRITES[message]
    for ones in (np.ones(shape), pb.ones(shape)):
        with pytest.raises(ValueError, match=message):
            write(ones)
        assert (ones == 1).all()


def test_outer_is_a_method_of_every_ufunc(t):
    result = np.subtract.outer(A, t)
    np.testing.assert_array_equal(result.detach().numpy(), np.subtract.outer(A, t.detach().numpy()))
    assert pb.autograd.grad(result.sum(), t)[0].tolist() == [-3.0, -3.0, -3.0]
    assert np.power.outer(t, 2).tolist() == [1.0, 4.0, 16.0]


# -- settings of a call ----------------------------------------------------------------------------
def test_dtypes_are_numpys_float_is_float64():
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    assert np.sum(x, dtype=float).dtype is pb.float64
    assert np.add(x, x, dtype=np.float64).dtype is pb.float64
    assert np.mean(pb.tensor([1, 2])).dtype is pb.float64
    assert np.zeros_like(x, dtype=int).dtype is pb.int64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: np.matmul(t, t, axes=[0, 0, 0]), r"np\.matmul: .* required, got axes"),
        (lambda t: np.max(t, where=t > 1), r"np\.max: initial= with where= required, got none"),
        (lambda t: np.pad(t, 1, mode="odd"), r"np\.pad: mode 'constant', .* required, got 'odd'"),
        (lambda t: np.pad(t, 1, "edge", end_values=t[0]), r"np\.pad: no setting required in mode"),
        (
            lambda t: np.pad(t, 3, "reflect", reflect_type="odd"),
            r"np\.pad: reflect_type 'even', or",
        ),
        (lambda t: np.subtract.reduce(t[:0]), r"np\.subtract\.reduce: elements, or initial=, req"),
        (
            lambda t: np.hypot.reduce(t, where=t > 1),
            r"np\.hypot\.reduce: a call without where= req",
        ),
        (lambda t: np.gradient(t[:2], edge_order=2), r"np\.gradient: at least 3 elements"),
        (
            lambda t: np.gradient(t, edge_order=3),
            r"np\.gradient: one .* edge_order 1 or 2",
        ),
        (
            lambda t: np.lib.stride_tricks.sliding_window_view(t, (1, 1)),
            r"np\.sliding_window_view: a window of 1 axes required, got 2",
        ),
        (lambda t: np.split(t, 2), r"np\.split: a number of parts that divides the length 3"),
        (lambda t: np.vsplit(t, 1), r"np\.vsplit: at least 2 dimensions required, got 1"),
        (lambda t: np.select([t > 1], [t, t]), r"np\.select: as many choices as conditions, got"),
        (lambda t: np.piecewise(t, [t > 1], []), r"np\.piecewise: 1 or one more functions requir"),
        (lambda t: np.diff(t, n=-1), r"np\.diff: an order 'n' of at least 0 required"),
        (lambda t: np.gradient(t, 1.0, 2.0), r"np\.gradient: one spacing an axis and"),
        (
            lambda t: np.gradient(t[:1]),
            r"np\.gradient: at least 2 elements",
        ),
        (lambda t: np.convolve(t, t[:0]), r"np\.convolve: two vectors required"),
        (lambda t: np.diag(t[0]), r"np\.diag: a vector or a matrix required"),
        (lambda t: np.trim_zeros(t[None]), r"np\.trim_zeros: one axis required, got 2"),
        (lambda t: np.linalg.norm(t[None, None], 2), r"np\.linalg\.norm: an axis of vectors or tw"),
        (lambda t: np.linalg.eigh(t[:, None], "X"), r"np\.linalg\.eigh: UPLO 'L' or 'U' required"),
        (lambda t: np.average(t, weights=t[:2]), r"np\.average: weights of the shape of a, or of"),
    ],
)
def test_what_a_counterpart_cannot_do_is_said(call, message, t):
    with pytest.raises(pb.AutogradError, match=message):
        call(t)


def test_arguments_about_memory_change_nothing(t):
    assert np.sort(t, kind="stable").tolist() == [1.0, 2.0, 4.0]
    assert np.zeros_like(t, order="F", subok=False).tolist() == [0.0, 0.0, 0.0]
    assert np.add(t, 1, casting="same_kind", order="C").tolist() == [2.0, 3.0, 5.0]
    assert np.median(t, overwrite_input=True).item() == 2.0


# -- what has no gradient --------------------------------------------------------------------------
def test_answers_about_values_are_numpys():
    x = np.array([[1.0, np.nan], [0.0, -np.inf]])
    t = pb.tensor(x, requires_grad=True)
    assert np.array_equal(t, x, equal_nan=True) is True
    assert np.allclose(t, x, equal_nan=True) is True
    assert np.isclose(t, x).tolist() == np.isclose(x, x).tolist()
    assert [i.tolist() for i in np.nonzero(t)] == [[0, 0, 1], [0, 1, 1]]
    assert np.isneginf(t).tolist() == [[False, False], [False, True]]
    assert np.result_type(t, np.float32) == np.float64
    assert np.array_repr(t) == repr(x)
    assert np.count_nonzero(t) == 3
    assert not np.iscomplexobj(t)
    assert np.argpartition(t[:, 0], 0).dtype is pb.int64


def test_files_get_the_values(tmp_path, t):
    np.save(tmp_path / "t.npy", t)
    assert np.load(tmp_path / "t.npy").tolist() == [1.0, 2.0, 4.0]
    np.savez(tmp_path / "t.npz", first=t)
    assert np.load(tmp_path / "t.npz")["first"].tolist() == [1.0, 2.0, 4.0]


MAKERS = {
    "zeros": ((2,), {}),
    "ones": ((2,), {"dtype": np.float32}),
    "eye": ((2,), {}),
    "full": ((2, 3.0), {}),
    "arange": ((3,), {}),
    "identity": ((2,), {}),
    "tri": ((2,), {}),
    "asarray": (([1, 2],), {"dtype": float}),
    "fromiter": (([1.0, 2.0],), {"dtype": float}),
    "fromfunction": ((lambda i: i + 1.0, (2,)), {}),
}


@pytest.mark.parametrize("name", MAKERS)
def test_like_a_tensor_makes_a_tensor(name, t):
    args, settings = MAKERS[name]
    make = getattr(np, name)
    made, expected = make(*args, like=t, **settings), make(*args, **settings)
    assert isinstance(made, pb.Tensor)
    assert made.numpy().dtype == expected.dtype
    np.testing.assert_array_equal(made.numpy(), expected)


def test_second_derivatives_go_through_numpys_functions(t):
    (g,) = pb.autograd.grad(np.sum(np.exp(np.sin(t)) * np.log(t)), t, create_graph=True)
    (h,) = pb.autograd.grad(np.sum(g), t)
    x = t.detach().numpy()
    slope = np.exp(np.sin(x))
    first = slope * np.cos(x)
    second = slope * (np.cos(x) ** 2 - np.sin(x))
    expected = second * np.log(x) + 2 * first / x - slope / x**2
    np.testing.assert_allclose(h.numpy(), expected, rtol=1e-12)


def test_edges_of_functions_with_a_formula_of_their_own():
    x = pb.tensor(np.array([0.0]), requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert pb.autograd.grad(np.cbrt(x).sum(), x)[0].tolist() == [np.inf]
    (first,) = pb.autograd.grad(np.sinc(x).sum(), x, create_graph=True)
    assert first.tolist() == [0.0]
    np.testing.assert_allclose(pb.autograd.grad(first.sum(), x)[0].item(), -(np.pi**2) / 3)


def test_functions_run_on_the_tensors_own_library():
    strict = pytest.importorskip("array_api_strict")
    x = pb.asarray(strict.asarray([1.0, 4.0])).requires_grad_()
    result = np.sqrt(x) + np.sum(x)
    assert "array_api_strict" in result.device
    assert result.tolist() == [6.0, 7.0]
    assert np.argwhere(x > 2).tolist() == [[1]]
    assert pb.autograd.grad(result.sum(), x)[0].tolist() == [2.5, 2.25]


def test_correlations_stay_within_one():
    ranks = np.array([[1.0, 2, 3, 4], [2, 1, 4, 3], [1, 3, 2, 4], [4, 2, 1, 3]])
    assert np.max(np.abs(np.corrcoef(pb.tensor(ranks)).numpy())) == 1.0


# -- functions that do not tell what they take ----------------------------------------------------
def test_a_function_without_a_signature_takes_what_its_counterpart_takes():
    call = _Call("np.f", max, lambda a, b=1: (a, b))
    assert call(None, (5,), {"b": 2}) == (5, 2)
    assert call(None, (5, 3), {}) == (5, 3)
    with pytest.raises(TypeError, match=r"^np\.f: at most 2 arguments by position required, got 3"):
        call(None, (5, 3, 4), {})
