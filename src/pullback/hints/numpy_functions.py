"""What has a gradient where NumPy asks for an array, and so no function of ours is asked.

Names are those below ``numpy``; the rows are read as those for SciPy. Functions that NumPy hands
over to tensors have their reasons in `pullback.numpy_protocol.table`.
"""

from __future__ import annotations

__all__ = ["WAYS"]

WAYS = {
    "": r"""
array asarray asanyarray ascontiguousarray asfortranarray asarray_chkfinite asmatrix matrix bmat
    require: np.stack([...]) or pb.asarray([...]), which keep the graph of tracked values in a
    list; NumPy's functions take a tensor itself
full: t * np.ones(shape), or np.stack of what has several elements
full_like: t * np.ones_like(x)
zeros ones empty eye identity arange indices tri tril_indices triu_indices diag_indices bartlett
    blackman hamming hanning: sizes that are plain numbers: t.shape, or t.item() of a whole number
kaiser: np.i0(beta * np.sqrt(1 - x ** 2)) / np.i0(beta) with x = np.linspace(-1, 1, n)
fromiter frombuffer fromstring: np.stack(list(values))
fromfunction: the function of np.indices(shape), which are constants
vectorize frompyfunc: array operations of np in the function, or np.stack([f(x) for x in t])
nan_to_num: np.where(np.isnan(a), t, a)
add.at: pb.index_add(pb.asarray(a), 0, i, t), or a + np.bincount(i, weights=t)
subtract.at: pb.index_add(pb.asarray(a), 0, i, -t)
nditer ndenumerate nested_iters broadcast: for i in np.ndindex(t.shape), with t[i]
from_dlpack: pb.asarray, or t itself
ndarray.__setitem__: pb.zeros(shape) or np.zeros_like(t) instead of the array, whose assignments
    are recorded; or np.stack([...])
r_ c_ __getitem__: np.concatenate, np.stack or pb.asarray([...])
putmask place put copyto: np.where(mask, values, t), or t[mask] = values of a tensor
poly1d: np.polyval(coefficients, t)
is_busday busday_count busday_offset: dates, which tensors do not hold
format_float_positional format_float_scientific base_repr binary_repr: str(t), or t.item()
issubdtype can_cast promote_types mintypecode dtype: t.dtype
piecewise: np.where or np.select
float64 float32 float16 longdouble complex128 complex64 int64 int32 double: pb.astype(t, dtype),
    or t itself; np.stack([...]) of several
""",
    "fft": r"""
fftfreq rfftfreq: frequencies of a plain number d, divided by t
""",
    "polynomial": r"""
Polynomial Chebyshev Legendre Hermite HermiteE Laguerre: np.polyval(coefficients[::-1], t), or
    np.vander
polyval polyfit polymul polyadd polysub polyder polyint polyvander polyroots:
    np.polyval(coefficients[::-1], t), np.vander or np.convolve
chebval legval hermval hermeval lagval chebfit legfit hermfit lagfit: np.polyval of the
    coefficients that cheb2poly and the like give
""",
    "random": r"""
normal standard_normal lognormal multivariate_normal: draws by their parameters: loc + scale *
    np.random.normal(size=n)
uniform random rand: low + (high - low) * np.random.uniform(size=n)
exponential laplace logistic gumbel weibull pareto rayleigh gamma standard_gamma beta chisquare
    standard_t vonmises wald triangular power dirichlet: draws by their parameters: the inverse of
    their distribution function, in np, of np.random.uniform(size=n)
poisson binomial bernoulli geometric negative_binomial multinomial choice integers hypergeometric
    zipf logseries: draws of whole numbers, which have no derivative by a parameter;
    pb.surrogate.straight_through defines one
""",
    "ma": r"""
masked_where masked_array array masked_equal masked_invalid masked_less masked_greater
    masked_inside masked_outside masked_values MaskedArray: np.where(mask, values, t), or t[~mask]
mean sum average: np.mean(t[~mask])
""",
    "lib.stride_tricks": r"""
sliding_window_view as_strided: t[np.arange(n - k + 1)[:, None] + np.arange(k)]
""",
    "lib.scimath": r"""
sqrt log log2 log10 power arccos arcsin arctanh logn: np.sqrt and the like of t + 0j
""",
    "testing": r"""
assert_allclose assert_array_almost_equal assert_almost_equal assert_array_equal assert_equal
    assert_array_less: np.allclose, or t.detach() in the assertion
""",
}
