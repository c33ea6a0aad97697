"""The seam itself: each method on NumPy and on a library that has nothing but the standard."""

import array_api_strict
import numpy as np
import pytest

from pullback.arrays import DTYPES, NUMPY, library_of
from pullback.errors import DTypeError, ShapeError, TensorIndexError

FLOAT32, FLOAT64, INT64 = DTYPES["float32"], DTYPES["float64"], DTYPES["int64"]


def grid(library, *shape):
    """Return the numbers from 0, in a shape."""
    return library.from_numpy(np.arange(float(np.prod(shape))).reshape(shape))


def values(array):
    return library_of(array).to_numpy(array).tolist()


class Frozen(type(library_of(array_api_strict.ones(1)))):
    """The standard's library with writing taken away, as JAX and Dask have it."""

    mutable = False


# ---------------------------------------------------------------------- making


@pytest.mark.parametrize("name", [name for name in DTYPES if name != "float16"])
def test_native_dtypes_and_back(library, name):
    array = library.zeros((2,), DTYPES[name])
    assert array.dtype == library.native(DTYPES[name])
    assert library.dtype(array) is DTYPES[name]


def test_a_dtype_that_the_library_lacks():
    strict = library_of(array_api_strict.ones(1))
    text = "a dtype that array_api_strict has required, got float16\nhint: convert"
    with pytest.raises(DTypeError, match=text):
        strict.native(DTYPES["float16"])
    assert NUMPY.native(DTYPES["float16"]) == np.float16


def test_asarray_of_lists_and_numbers(library):
    assert values(library.asarray([[1, 2], [3, 4]], FLOAT32)) == [[1.0, 2.0], [3.0, 4.0]]
    assert library.dtype(library.asarray(1.5, FLOAT32)) is FLOAT32
    assert library.dtype(library.asarray([1, 2])) is INT64


def test_asarray_copies_only_when_told_to(library):
    a = grid(library, 3)
    library.assign(library.asarray(a, copy=True), 0, 7.0)
    assert values(a) == [0.0, 1.0, 2.0]
    library.assign(library.asarray(a), 0, 7.0)
    assert values(a) == [7.0, 1.0, 2.0]


def test_zeros_and_full(library):
    assert values(library.zeros((2, 1), FLOAT32)) == [[0.0], [0.0]]
    assert values(library.full((2,), 1.5, FLOAT64)) == [1.5, 1.5]
    assert library.full((2,), 1, FLOAT32).dtype == library.native(FLOAT32)


def test_numpy_round_trip_of_every_kind(library):
    for name in ("bool", "int8", "uint64", "float64", "complex64"):
        array = np.ones((2, 3), name)
        back = library.to_numpy(library.from_numpy(array))
        assert back.dtype == array.dtype
        assert back.tolist() == array.tolist()


def test_a_result_is_tidied_into_an_array(library):
    total = library.tidy(library.xp.sum(grid(library, 3)))
    assert library.has(total)
    assert total.shape == ()
    assert float(total) == 3.0
    assert library.tidy(total) is total


# ---------------------------------------------------------------------- devices


def test_numpy_lives_on_the_cpu():
    assert NUMPY.device(np.ones(1)) == "cpu"
    assert NUMPY.native_device("cpu") is None
    assert NUMPY.same_device(np.ones(1), np.ones(2))


def test_devices_of_the_standard_are_told_apart():
    strict = library_of(array_api_strict.ones(1))
    there = array_api_strict.ones(2, device=strict.native_device("array_api_strict:device1"))
    here = array_api_strict.ones(2)
    assert strict.device(there) == "array_api_strict:device1"
    assert strict.device(here) == "array_api_strict:CPU_DEVICE"
    assert strict.same_device(there, there)
    assert not strict.same_device(there, here)


def test_work_on_a_device_stays_there():
    strict = library_of(array_api_strict.ones(1))
    device = strict.native_device("array_api_strict:device1")
    a = strict.zeros((2, 3), FLOAT64, device)
    assert strict.getitem(a, ([0, 1], [0, 2])).device == device
    assert strict.add_at(a, ([0, 0],), 1.0).device == device
    assert strict.full((1,), 2.0, FLOAT64, device).device == device
    assert strict.generator(0, device).normal((2,), FLOAT64).device == device
    with strict.activate(device):
        assert values(a) == [[2.0, 2.0, 2.0], [0.0, 0.0, 0.0]]


# ---------------------------------------------------------------------- memory


def test_numpy_owns_what_is_no_view():
    a = np.ones((2, 3))
    assert NUMPY.owns(a)
    assert NUMPY.owns(NUMPY.tidy(np.float64(1)))
    for view in (a[0], a.T, a.reshape(3, 2), np.broadcast_to(a, (4, 2, 3)), a.view()):
        assert not NUMPY.owns(view)
    assert not NUMPY.owns(np.frombuffer(b"12345678"))


def test_ownership_is_denied_where_it_is_unknown():
    a = array_api_strict.ones(2)
    assert not library_of(a).owns(a)


def test_results_that_show_the_memory_they_came_from(library):
    a = grid(library, 2, 3)
    row = library.getitem(a, 1)
    assert library.shares(row, a)
    assert library.shares(library.getitem(row, slice(1, None)), row)
    assert library.shares(library.xp.permute_dims(a, (1, 0)), a)
    assert not library.shares(library.copy(a), a)
    assert not library.shares(library.getitem(a, [0, 1]), a)


def test_every_result_counts_as_a_view_where_nothing_can_be_written():
    a = array_api_strict.ones(2)
    assert Frozen("frozen", array_api_strict).shares(a + 1.0, a)


def test_writing_to_a_readonly_array_cannot_reach_the_original(library):
    a = grid(library, 3)
    guarded = library.readonly(a)
    assert values(guarded) == [0.0, 1.0, 2.0]
    if library is NUMPY:
        with pytest.raises(ValueError, match="read-only"):
            guarded[0] = 9.0
        assert a.flags.writeable
    else:
        guarded[0] = 9.0
    assert values(a) == [0.0, 1.0, 2.0]


def test_readonly_is_free_where_nothing_can_be_written():
    a = array_api_strict.ones(2)
    assert Frozen("frozen", array_api_strict).readonly(a) is a


def test_what_can_be_written_in_place():
    a = np.ones((2, 3))
    assert NUMPY.is_writeable(a)
    assert NUMPY.is_writeable(a.T)
    assert NUMPY.is_writeable(a[:, 1])
    assert not NUMPY.is_writeable(NUMPY.readonly(a))
    repeated = np.lib.stride_tricks.as_strided(a, (4, 3), (0, 8))
    assert repeated.flags.writeable
    assert not NUMPY.is_writeable(repeated)
    strict = array_api_strict.ones(2)
    assert library_of(strict).is_writeable(strict)
    assert not Frozen("frozen", array_api_strict).is_writeable(strict)


def test_copy_shares_nothing(library):
    a = grid(library, 3)
    library.assign(library.copy(a), 0, 7.0)
    assert values(a) == [0.0, 1.0, 2.0]


def test_astype_copies_only_to_change_the_dtype_or_when_told_to(library):
    a = grid(library, 3)
    assert library.astype(a, FLOAT64) is a
    assert library.astype(a, FLOAT64, copy=True) is not a
    narrow = library.astype(a, FLOAT32)
    assert library.dtype(narrow) is FLOAT32
    assert values(narrow) == [0.0, 1.0, 2.0]


# ---------------------------------------------------------------------- shapes


def test_reshape_shares_memory_where_it_can(library):
    a = grid(library, 2, 3)
    flat, shares = library.reshape(a, (6,))
    assert shares
    library.assign(flat, 0, 9.0)
    assert values(a)[0][0] == 9.0
    rows, shares = library.reshape(library.xp.permute_dims(a, (1, 0))[:, 1:], (3,))
    assert shares
    assert values(rows) == [3.0, 4.0, 5.0]


def test_reshape_copies_where_it_must(library):
    turned = library.xp.permute_dims(grid(library, 2, 3), (1, 0))
    flat, shares = library.reshape(turned, (6,))
    assert not shares
    assert values(flat) == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]


@pytest.mark.parametrize("turn", [False, True])
def test_reshape_to_another_size(library, turn):
    a = grid(library, 2, 3)
    a = library.xp.permute_dims(a, (1, 0)) if turn else a
    text = r"^reshape: a shape of 6 elements required, got \(4,\)\n  input: shape \(\d, \d\), dtype"
    with pytest.raises(ShapeError, match=text):
        library.reshape(a, (4,))


def test_broadcast_to(library):
    assert values(library.broadcast_to(grid(library, 2), (2, 2))) == [[0.0, 1.0], [0.0, 1.0]]
    text = r"a shape that broadcasts to \(3,\) required, got \(2,\)\n  input: shape \(2,\), dtype f"
    with pytest.raises(ShapeError, match=text):
        library.broadcast_to(grid(library, 2), (3,))


# ---------------------------------------------------------------------- randomness


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_floating_draws_have_their_dtype_and_their_moments(dtype):
    source = NUMPY.generator(1)
    normal = source.normal((20000,), DTYPES[dtype])
    assert normal.dtype == np.dtype(dtype)
    wide = normal.astype(complex)
    assert abs(wide.mean()) < 0.03
    assert abs((wide * wide.conj()).real.mean() - 1) < 0.03
    uniform = source.uniform((20000,), DTYPES[dtype])
    assert uniform.dtype == np.dtype(dtype)
    for part in (uniform.real, uniform.imag) if DTYPES[dtype].is_complex else (uniform,):
        assert part.min() >= 0
        assert part.max() < 1
        assert abs(part.astype(float).mean() - 0.5) < 0.02


def test_same_seed_same_numbers(library):
    for draw in (
        lambda source: source.normal((3,), FLOAT32),
        lambda source: source.uniform((2, 2), FLOAT64),
        lambda source: source.integers(-5, 5, (9,), INT64),
        lambda source: source.permutation(9, INT64),
    ):
        assert values(draw(library.generator(3))) == values(draw(library.generator(3)))
        assert values(draw(library.generator(3))) != values(draw(library.generator(4)))


def test_a_state_can_be_gone_back_to(library):
    source = library.generator(5)
    state = source.get_state()
    first = values(source.normal((4,), FLOAT64))
    assert values(source.normal((4,), FLOAT64)) != first
    source.set_state(state)
    assert values(source.normal((4,), FLOAT64)) == first


def test_without_a_seed_two_sources_differ():
    draws = [NUMPY.generator().uniform((4,), FLOAT64).tolist() for _ in range(2)]
    assert draws[0] != draws[1]


def test_draws_without_dimensions_are_arrays(library):
    for drawn in (
        library.generator(0).normal((), FLOAT32),
        library.generator(0).uniform((), DTYPES["complex64"]),
        library.generator(0).integers(0, 9, (), INT64),
    ):
        assert library.has(drawn)
        assert drawn.shape == ()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32"])
def test_integers_lie_between_their_bounds(library, dtype):
    high = 2 if dtype == "bool" else 4
    drawn = library.generator(0).integers(0, high, (200,), DTYPES[dtype])
    assert library.dtype(drawn) is DTYPES[dtype]
    assert sorted(set(library.to_numpy(drawn).astype(int).tolist())) == list(range(high))


def test_a_permutation_has_each_number_once(library):
    drawn = library.generator(0).permutation(50, DTYPES["int32"])
    assert library.dtype(drawn) is DTYPES["int32"]
    assert sorted(values(drawn)) == list(range(50))
    assert values(drawn) != list(range(50))


@pytest.mark.parametrize(
    ("low", "high", "dtype", "required"),
    [
        (3, 3, "int64", "low < high required, got low=3, high=3"),
        (-1, 3, "uint8", "bounds that uint8 holds required, got low=-1, high=3"),
        (0, 129, "int8", "bounds that int8 holds required, got low=0, high=129"),
        (0, 3, "bool", "bounds that bool holds required, got low=0, high=3"),
    ],
)
def test_integers_with_impossible_bounds(low, high, dtype, required):
    with pytest.raises(ValueError, match=rf"^integers: {required}$"):
        NUMPY.generator(0).integers(low, high, (2,), DTYPES[dtype])


def test_what_cannot_be_drawn():
    with pytest.raises(
        DTypeError, match=r"^normal: a floating or complex dtype required, got int8$"
    ):
        NUMPY.generator(0).normal((2,), DTYPES["int8"])
    with pytest.raises(
        DTypeError, match=r"^uniform: a floating or complex dtype required, got bool"
    ):
        NUMPY.generator(0).uniform((2,), DTYPES["bool"])
    with pytest.raises(ValueError, match=r"^generator: a seed of 0 or more required, got -1$"):
        NUMPY.generator(-1)


# ---------------------------------------------------------------------- without mutation


def test_writing_gives_a_new_array_where_nothing_can_be_written():
    frozen = Frozen("frozen", array_api_strict)
    a = array_api_strict.zeros(3)
    assert values(frozen.assign(a, 1, 5.0)) == [0.0, 5.0, 0.0]
    assert values(frozen.assign(a, slice(1, None), a[1:] + 2.0)) == [0.0, 2.0, 2.0]
    assert values(frozen.add_at(a, ([2, 2],), 1.0)) == [0.0, 0.0, 2.0]
    assert values(a) == [0.0, 0.0, 0.0]
    with pytest.raises(TensorIndexError, match="index 3 is out of bounds"):
        frozen.assign(a, 3, 1.0)
