"""Which of NumPy's functions have a counterpart of another kind, and why some have none.

Names are those below ``np``. The counterparts that are functions of ours are named where those are
declared, see renamings.py; those that need more are in the modules beside this one. What is named
nowhere has none either.
"""

from __future__ import annotations

# The functions that reduce as the method `reduce` of a ufunc does, and that run as `accumulate`.
REDUCING = {
    ("add", "reduce"): "sum",
    ("multiply", "reduce"): "prod",
    ("maximum", "reduce"): "max",
    ("minimum", "reduce"): "min",
    ("logical_and", "reduce"): "all",
    ("logical_or", "reduce"): "any",
    ("add", "accumulate"): "cumsum",
    ("multiply", "accumulate"): "cumprod",
}

# Functions whose results have no gradient (bools, integers, dtypes, text, files): NumPy's own
# are run on the values, and arrays come back as tensors.
_OF_VALUES = """
    allclose argpartition argwhere array2string array_equal array_equiv array_repr array_str
    bitwise_count can_cast common_type count_nonzero diag_indices_from digitize einsum_path
    flatnonzero gcd isclose iscomplex isin isneginf isposinf isreal ix_ lcm lexsort
    linalg.matrix_rank may_share_memory min_scalar_type nanargmax nanargmin nonzero packbits
    ravel_multi_index result_type save savetxt savez savez_compressed searchsorted shares_memory
    signbit tril_indices_from triu_indices_from unpackbits unravel_index
"""
OF_VALUES = frozenset(_OF_VALUES.split())

# Functions that make arrays, with ``like=`` a tensor.
_ARRAYS_LIKE = """
    arange array asanyarray asarray ascontiguousarray asfortranarray empty eye frombuffer fromfile
    fromfunction fromiter fromstring full genfromtxt identity loadtxt ones require tri zeros
"""
ARRAYS_LIKE = frozenset(_ARRAYS_LIKE.split())

_DATES = "tensors hold numbers, no dates"
_COUNTS = (
    "counts jump where an element crosses an edge, and have no gradient; for weights=t, "
    "np.bincount(np.digitize(x, edges) - 1, weights=t)"
)
_POLYNOMIALS = "np.polyval and np.vander have one; write the others with them"

NO_COUNTERPART = {
    "busday_count": _DATES,
    "busday_offset": _DATES,
    "datetime_as_string": _DATES,
    "histogram": _COUNTS,
    "histogram2d": _COUNTS,
    "histogram_bin_edges": _COUNTS,
    "histogramdd": _COUNTS,
    "is_busday": _DATES,
    "poly": _POLYNOMIALS,
    "polydiv": _POLYNOMIALS,
    "polyfit": "solve np.vander(x, n) by np.linalg.pinv",
    "roots": "roots are the eigenvalues of the companion matrix: np.linalg.eigvals",
    "linalg.lstsq": "np.linalg.pinv(a) @ b is the same solution",
    "frexp": "its exponent jumps; np.log2 is smooth",
    "spacing": "it jumps at powers of two",
    "isnat": _DATES,
}
