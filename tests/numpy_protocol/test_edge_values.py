"""Functions of NumPy's on tensors at edge values: zeros of both signs, huge, tiny, inf, NaN.

The values are NumPy's; gradients there are given as numbers.
"""

import warnings

import numpy as np
import pytest
from tests.numpy_protocol._document import UFUNCS

import pullback as pb
from pullback.numpy_protocol.table import NO_COUNTERPART

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # NumPy warns at poles, as here
    pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="values of NumPy 2.4"),
]

inf, nan = np.inf, np.nan
EDGES = np.array(
    [0.0, 1.0, 0.5, 1.5, 2.0, 3.0, 0.3, 64.0, 1e17, 1e300, 1e-300, 5e-324, 1e-8, 720.0, inf, nan]
)
EDGES = np.concatenate([EDGES, -EDGES])
# Their formulas differ from NumPy's, by rounding alone.
ROUNDED = {"degrees", "rad2deg", "float_power", "logaddexp2"}
ELEMENTWISE = [
    name
    for name in UFUNCS
    if name not in NO_COUNTERPART and not getattr(np, name).signature and name != "ldexp"
]


def is_same(ours, theirs):
    """Return whether floats are equal, NaN to NaN and signed zeros included."""
    equal = (ours == theirs) & (np.signbit(ours) == np.signbit(theirs))
    return bool(np.all(np.where(np.isnan(theirs), np.isnan(ours), equal)))


def host(result):
    return result.numpy() if isinstance(result, pb.Tensor) else result


def parts(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_ufunc_has_numpys_values_bit_for_bit_at_edges(name, dtype):
    ufunc = getattr(np, name)
    arrays = [EDGES.astype(dtype)]
    if ufunc.nin == 2:
        arrays = [x.ravel() for x in np.meshgrid(arrays[0], arrays[0])]
    try:
        expected = parts(ufunc(*arrays))
    except TypeError:  # of integers alone
        return
    for ours, theirs in zip(parts(ufunc(*map(pb.asarray, arrays))), expected, strict=True):
        assert host(ours).dtype == theirs.dtype
        if name in ROUNDED:
            rtol = 1e-13 if dtype is np.float64 else 1e-6
            np.testing.assert_allclose(host(ours), theirs, rtol=rtol)
        elif theirs.dtype.kind == "f":
            assert is_same(host(ours), theirs)
        else:
            assert np.array_equal(host(ours), theirs)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ldexp_scales_by_powers_that_no_float_holds(dtype):
    numbers, powers = np.meshgrid(EDGES.astype(dtype), [0, 1, -3, -149, -1074, 1023, 2000, 10**6])
    result = np.ldexp(pb.asarray(numbers), pb.asarray(powers))
    assert is_same(result.numpy(), np.ldexp(numbers, powers))


SAMPLES = {
    "floats": np.array([3.0, -0.0, 0.5, 2.0, nan, -1.5]),
    "infinities": np.array([inf, 1.0, 2.0, -inf, 0.0, 0.5]),
    "float32": np.array([1.5, -2.5, 0.25, 3], np.float32),
    "integers": np.array([3, 1, 2, 7, -4]),
    "unsigned": np.array([250, 3, 7], np.uint8),
    "complex": np.array([1 + 2j, -0.0 - 1j, 0.5j, 2 - 0.5j]),
    "complex NaN": np.array([1 + 2j, complex(nan, 0), 3 + 1j]),
    "huge": np.array([1e300, 1e17, -1e300, 1e-300]),
    "empty": np.zeros(0),
    "zeros": np.array([0.0, -0.0, 0.0]),
    "matrix": np.array([[1.5, nan, 0.5], [2.0, -3.0, 4.0]]),
    "NaN rows": np.array([[nan, nan], [1.0, nan]]),
    "number": np.array(2.5),
}
FUNCTIONS = {
    **{
        name: getattr(np, name)
        for name in (
            *("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nancumsum"),
            *("cumsum", "median", "diff", "trapezoid", "unique", "vander", "nan_to_num", "angle"),
            *("round", "cov", "unwrap"),
        )
    },
    "corrcoef": lambda x: np.corrcoef(x, x * x),
    "kron": lambda x: np.kron(x, [[1, 2]]),
    "quantile": lambda x: np.quantile(x, [0.0, 0.3, 1.0]),
    "round to 2": lambda x: np.round(x, 2),
    "linspace": lambda x: np.linspace(x, 3, 4),
    "linspace from 3": lambda x: np.linspace(3, x, 4, endpoint=False),
    "linspace of integers": lambda x: np.linspace(0, x, 4, dtype=int),
    "logspace": lambda x: np.logspace(x, 1, 3),
    "logspace of bases": lambda x: np.logspace(0, 1, 4, base=x),
    "clip": lambda x: np.clip(x, 0, 1),
}
# Elsewhere pullback says no, or something else by its own rules.
OTHERS = {
    *((name, kind) for name in ("median", "quantile") for kind in ("complex", "complex NaN")),
    *((name, kind) for name in ("nanmax", "nanmin", "clip") for kind in ("complex", "complex NaN")),
    ("nanstd", "huge"),  # NumPy's squares overflow
    ("corrcoef", "huge"),  # likewise
}


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_numpys_values_at_edges(name, kind):
    if (name, kind) in OTHERS:
        return
    try:
        expected = parts(FUNCTIONS[name](SAMPLES[kind].copy()))
    except (TypeError, ValueError, IndexError):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error", pb.errors.UntrackedTensorWarning)
        results = parts(FUNCTIONS[name](pb.asarray(SAMPLES[kind].copy())))
    for ours, theirs in zip(results, expected, strict=True):
        ours = host(ours)
        assert np.shape(ours) == np.shape(theirs)
        single = ours.dtype.itemsize == 4 or ours.dtype == np.complex64
        limits = {"rtol": 1e-6, "atol": 1e-7} if single else {"rtol": 1e-14}
        np.testing.assert_allclose(ours, theirs, **limits)


# -- gradients -------------------------------------------------------------------------------------
def slope(f, *numbers):
    leaves = [pb.tensor(np.array(x), requires_grad=True) for x in numbers]
    return [g.item() for g in pb.autograd.grad(f(*leaves), leaves)]


def test_fmod_of_a_large_number_is_exact_with_its_gradient():
    result = np.fmod(pb.tensor(np.array([1e17])), 0.3)
    assert result.tolist() == [0.2007434154171886] == np.fmod([1e17], 0.3).tolist()
    assert slope(np.fmod, 7.5, 2.0) == [1.0, -3.0]
    assert slope(np.fmod, -7.5, 2.0) == [1.0, 3.0]


def test_cbrt_is_numpys_with_gradients_on_both_sides_of_0():
    values = np.array([64.0, -64.0, 27.0])  # not exact on every processor
    assert np.cbrt(pb.tensor(values)).tolist() == np.cbrt(values).tolist()
    assert np.signbit(np.cbrt(pb.tensor(np.array(-0.0))).numpy())
    assert slope(np.cbrt, 8.0) == slope(np.cbrt, -8.0) == pytest.approx([1 / 12])
    assert slope(np.cbrt, 0.0) == [inf]


def test_modf_of_infinity_has_no_fraction():
    fraction, whole = np.modf(pb.tensor(np.array([inf, -inf, -2.0, 2.5])))
    assert is_same(fraction.numpy(), np.array([0.0, -0.0, -0.0, 0.5]))
    assert whole.tolist() == [inf, -inf, -2.0, 2.0]
    assert slope(lambda x: np.modf(x)[0], 2.5) == [1.0]


def test_ldexp_multiplies_the_gradient_by_the_power():
    assert slope(lambda x: np.ldexp(x, 3), 1.5) == [8.0]
    assert slope(lambda x: np.ldexp(x, -1), 0.0) == [0.5]


def test_nanvar_of_complex_numbers_is_real_with_a_gradient():
    z = pb.tensor(np.array([1 + 2j, complex(nan, 0), 3 + 1j]), requires_grad=True)
    result = np.nanvar(z)
    assert result.item() == 1.25
    result.backward()
    np.testing.assert_allclose(z.grad.numpy(), [-1 + 0.5j, 0, 1 - 0.5j])


def test_linspace_of_integers_rounds_down_as_numpy():
    t = pb.tensor([-4.0, 7.0])
    assert np.linspace(0, t, 4, dtype=int).tolist() == [[0, 0], [-2, 2], [-3, 4], [-4, 7]]
    unsigned = pb.asarray(np.array([250], np.uint8))
    np.testing.assert_allclose(np.linspace(unsigned, 1, 4).numpy()[:, 0], [250, 167, 84, 1])


def test_logspace_computes_in_the_precision_of_its_base():
    t = pb.tensor(np.array(2.0), requires_grad=True)
    result = np.logspace(0, 1, 4, base=t)
    assert result.dtype is pb.float64
    np.testing.assert_allclose(result.detach().numpy(), np.logspace(0, 1, 4, base=2.0), rtol=1e-15)
    ahead, behind = (np.logspace(0, 1, 4, base=2.0 + h).sum() for h in (1e-6, -1e-6))
    assert pb.autograd.grad(result.sum(), t)[0].item() == pytest.approx((ahead - behind) / 2e-6)


def test_geomspace_goes_through_negative_numbers():
    assert slope(lambda a, b: np.geomspace(a, b, 3)[1], -1.0, -4.0) == pytest.approx([1.0, 0.25])
