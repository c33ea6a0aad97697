"""An error where a tensor would become an array names what has a gradient instead."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.sparse.linalg
import scipy.spatial
import scipy.spatial.transform
import scipy.special
import scipy.stats

import pullback as pb

X = np.array([0.3, 0.5, 0.9, 0.4])
A = np.array([[3.0, 1.0, 0.5], [1.0, 2.0, 0.3], [0.5, 0.3, 1.5]])
S = scipy.sparse.csr_array(A)
LU = scipy.sparse.linalg.splu(scipy.sparse.csc_array(A))
JOINED = "np.stack([...]) or pb.asarray([...])"


def assigned(x):
    b = np.zeros(4)
    b[:] = x
    return b


# What was typed: what the text must say.
NUMPY = {
    "np.array of a list": (lambda x: np.array([x[0], 2 * x[1]]), JOINED),
    "np.array of nested lists": (lambda x: np.array([[x[0]], [x[1]]]), JOINED),
    "np.asarray": (lambda x: np.asarray(x), JOINED),
    "np.sum of a list": (lambda x: np.sum([x[0], x[1]]), JOINED),
    "np.max of a list": (lambda x: np.max([x[0], x[1]]), JOINED),
    "np.mean of a list": (lambda x: np.mean([x[0], x[1]]), JOINED),
    "np.linalg.norm of a list": (lambda x: np.linalg.norm([x[0], x[1]]), JOINED),
    "np.linalg.det of lists": (lambda x: np.linalg.det([[x[0], x[1]], [x[1], x[0]]]), JOINED),
    "np.exp of a list": (lambda x: np.exp([x[0], x[1]]), JOINED),
    "np.full": (lambda x: np.full(3, x), "t * np.ones(shape)"),
    "np.fromiter": (lambda x: np.fromiter((v for v in [x[0]]), float), "np.stack(list(values))"),
    "np.r_": (lambda x: np.r_[[x[0], x[1]], 1.0], "np.concatenate, np.stack or pb.asarray"),
    "assignment to an array": (assigned, "pb.zeros(shape) or np.zeros_like(t)"),
    "np.random.normal": (lambda x: np.random.normal(x), "loc + scale * np.random.normal(size=n)"),
    "a generator's normal": (lambda x: np.random.default_rng(0).normal(loc=x), "loc + scale * np"),
    "np.vectorize": (lambda x: np.vectorize(lambda v: v * 2)(x), "np.stack([f(x) for x in t])"),
    "np.ma": (lambda x: np.ma.masked_where(X > 0.4, x), "np.where(mask, values, t)"),
}

SCIPY = {
    "linalg.eigh": (lambda x: scipy.linalg.eigh(x[:3] * A), "np.linalg.eigh, which has a gradient"),
    "linalg.toeplitz": (lambda x: scipy.linalg.toeplitz(x), "np.concatenate([r[:0:-1], c])["),
    "optimize.fsolve": (lambda x: scipy.optimize.fsolve(lambda y: y - x, X), "pb.implicit.root"),
    "optimize.minimize": (
        lambda x: scipy.optimize.minimize(lambda y: ((y - x) ** 2).sum(), X),
        "pb.implicit.argmin",
    ),
    "optimize.curve_fit": (
        lambda x: scipy.optimize.curve_fit(lambda t, a: a * t, X, x),
        "pb.optimize.least_squares",
    ),
    "sparse @ t": (lambda x: S @ x[:3], "pb.interop.scipy.sparse.csr_array(A) @ t"),
    "sparse.dot": (lambda x: S.dot(x[:3]), "pb.interop.scipy.sparse.csr_array(A) @ t"),
    "t @ sparse": (lambda x: x[:3] @ S, "pb.interop.scipy.sparse.csr_array(A.T) @ t"),
    "sparse * t": (lambda x: S * x[0], "pb.interop.scipy.sparse.csr_array((A.data * t"),
    "sparse.csr_matrix": (
        lambda x: scipy.sparse.csr_matrix((x, ([0, 1, 2, 2], [0, 1, 2, 0]))),
        "pb.interop.scipy.sparse.csr_array((values",
    ),
    "sparse.linalg.splu": (lambda x: LU.solve(x[:3]), "pb.interop.scipy.sparse.linalg.spsolve"),
    "sparse.linalg.factorized": (
        lambda x: scipy.sparse.linalg.factorized(scipy.sparse.csc_array(A))(x[:3]),
        "pb.interop.scipy.sparse.linalg.spsolve",
    ),
    "sparse.linalg.cg": (lambda x: scipy.sparse.linalg.cg(S, x[:3]), "pb.implicit.linear_solve"),
    "sparse.diags_array": (lambda x: scipy.sparse.diags_array(x), "scipy.sparse.coo_array"),
    "spatial.cdist": (
        lambda x: scipy.spatial.distance.cdist(x[:, None], x[:, None]),
        "pb.cdist, which has a gradient",
    ),
    "spatial.Delaunay": (lambda x: scipy.spatial.Delaunay(x[:3] * A), "simplices, vertices"),
    "fft.dct": (lambda x: scipy.fft.dct(x), "scipy.fft.dct(np.eye(n), axis=0) @ t"),
    "fft.irfft": (lambda x: scipy.fft.irfft(x), "np.fft.irfft, which has a gradient"),
    "signal.lfilter": (lambda x: scipy.signal.lfilter([1.0], [1.0, 0.5], x), "np.eye(n), axis=0"),
    "signal.find_peaks": (lambda x: scipy.signal.find_peaks(x), "t[indices]"),
    "ndimage.gaussian_filter": (
        lambda x: scipy.ndimage.gaussian_filter(x, 1.0),
        "pb.nn.functional.conv2d",
    ),
    "interpolate.RegularGridInterpolator": (
        lambda x: scipy.interpolate.RegularGridInterpolator((X.cumsum(),), x),
        "pb.nn.functional.grid_sample",
    ),
    "interpolate.UnivariateSpline": (
        lambda x: scipy.interpolate.UnivariateSpline(X.cumsum(), x),
        "pb.interop.scipy.interpolate.CubicSpline",
    ),
    "stats.skew": (lambda x: scipy.stats.skew(x), "SCIPY_ARRAY_API=1"),
    "stats.norm.ppf": (lambda x: scipy.stats.norm.ppf(x), "loc + scale * pb.special.ndtri(q)"),
    "stats.vonmises": (lambda x: scipy.stats.vonmises.logpdf(x, 2.0), "its formula, in np and pb"),
    "stats.rankdata": (lambda x: scipy.stats.kendalltau(x, X), "have no derivative"),
    "special.lambertw": (lambda x: scipy.special.lambertw(x), "scipy.special.lambertw: a function"),
    "special.spherical_jn": (lambda x: scipy.special.spherical_jn(2, x), "pb.special.jv(n + 0.5"),
    "special.airy": (lambda x: scipy.special.airy(x), "by pb.autograd_function"),
    "special.ellipk": (lambda x: scipy.special.ellipk(x), "pb.interop.scipy.integrate.quad"),
}


def written(x, write):
    b = X.copy()
    write(b, x)
    return b


class Box:
    """What NumPy reads as an array."""

    def __array__(self, dtype=None, copy=None):
        return X


OF_LISTS = {
    "kron": lambda x: np.kron(np.eye(2), [[x[0], x[1]]]),
    "diag": lambda x: np.diag([x[0], x[1]]),
    "triu": lambda x: np.triu([[x[0], x[1]], [x[1], x[0]]]),
    "vander": lambda x: np.vander([x[0], x[1]]),
    "tile": lambda x: np.tile([x[0], x[1]], 2),
    "cov": lambda x: np.cov([x[0], x[1]]),
    "interp": lambda x: np.interp(0.5, [0, 1], [x[0], x[1]]),
}
OTHERS = {
    "np.histogram of weights": (
        lambda x: np.histogram(X, bins=3, weights=x)[0],
        "np.bincount(np.digitize(x, edges) - 1, weights=t)",
    ),
    "np.frompyfunc": (lambda x: np.frompyfunc(lambda v: v * 2, 1, 1)(x), "np.stack([f(x) for x i"),
    "np.add with where and out": (
        lambda x: written(x, lambda b, x: np.add(b, x, where=b > 0.4, out=b)),
        "make the array a tensor, a = pb.asarray(a), whose changes are recorded",
    ),
    "np.add.at": (
        lambda x: written(x, lambda b, x: np.add.at(b, [0, 1, 1, 2], x)),
        "pb.index_add(",
    ),
    "np.nan_to_num of an array": (
        lambda x: np.nan_to_num(np.array([np.nan, 1.0]), nan=x[0]),
        "np.where(np.isnan(a), t, a)",
    ),
    "Rotation.from_euler": (
        lambda x: scipy.spatial.transform.Rotation.from_euler("xyz", x[:3]).as_matrix(),
        "np.sin, np.cos and np.stack",
    ),
    "an object with __array__": (lambda x: Box() * x, "pb.asarray(np.asarray(y))"),
}


@pytest.mark.parametrize("name", OF_LISTS)
def test_a_function_of_a_list_of_tracked_values_names_what_makes_one_tensor(name):
    text = text_of(OF_LISTS[name])
    assert JOINED in text
    assert "sizes" not in text


@pytest.mark.parametrize("name", OTHERS)
def test_what_an_array_cannot_hold_is_an_error_that_names_what_can(name):
    call, expected = OTHERS[name]
    assert expected in text_of(call)


def test_a_result_that_wraps_a_tensor_names_its_data():
    class Labelled:
        def __init__(self, data):
            self.data = data

    with pytest.raises(TypeError, match=r"got Labelled\nhint: return .*: result\.data$"):
        pb.grad(Labelled)(X)


def test_an_error_in_a_function_that_no_module_names_is_the_librarys_own():
    functions = {"": lambda x: np.diag([x[0], x[1]])}
    assert JOINED in text_of(lambda x: functions[""](x))


def text_of(call):
    """Return what an error within `pb.grad` says, its notes included."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 (SciPy raises errors of its own)
        pb.grad(lambda x: np.sum(call(x)))(X)
    return "\n".join((str(caught.value), *getattr(caught.value, "__notes__", ())))


@pytest.mark.parametrize("name", NUMPY)
def test_what_was_typed_of_numpy_is_an_error_that_names_what_keeps_the_gradient(name):
    call, expected = NUMPY[name]
    assert expected in text_of(call)


@pytest.mark.parametrize("name", SCIPY)
def test_what_was_typed_of_scipy_is_an_error_that_names_what_has_a_gradient(name):
    call, expected = SCIPY[name]
    assert expected in text_of(call)


@pytest.mark.parametrize("name", ["sparse @ t", "linalg.eigh", "signal.find_peaks", "fft.dct"])
def test_forward_mode_names_the_same(name):
    call, expected = SCIPY[name]
    with pytest.raises(pb.AutogradError) as caught:
        pb.jvp(lambda x: np.sum(call(x)), (X,), (X,))
    assert expected in str(caught.value)
    assert str(caught.value).endswith("tensor.detach().numpy()")


def test_numpy_of_a_tensor_that_requires_grad_names_detach_as_pytorch_does():
    with pytest.raises(pb.AutogradError, match=r"hint: use tensor\.detach\(\)\.numpy\(\) instead"):
        pb.tensor([1.0], requires_grad=True).numpy()


def test_an_error_of_scipys_own_that_no_tensor_caused_has_no_note():
    def f(x):
        scipy.interpolate.CubicSpline(X, X)  # not increasing
        return x.sum()

    with pytest.raises(ValueError, match="increasing") as caught:
        pb.grad(f)(X)
    assert not hasattr(caught.value, "__notes__")


def test_a_function_that_calls_the_differentiated_one_is_not_named():
    def outer(x):
        return pb.grad(lambda y: np.sum(np.array([y[0], y[1]])))(x)

    with pytest.raises(pb.AutogradError) as caught:
        scipy.optimize.minimize(lambda x: x.sum(), X, jac=outer)
    assert "argmin" not in str(caught.value)


def test_the_tables_are_read_when_an_error_needs_them():
    program = "import sys, pullback; print([m for m in sys.modules if 'pullback.hints.' in m])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
