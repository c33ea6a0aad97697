"""Every setting of NumPy's functions that may hold a tensor is tracked or refused.

A program takes a tracked number `t` and an array `w`, which is NumPy's or a tensor. Its derivative
is that of differences, or it raises; a table lists one program for each parameter of each function.
"""

import inspect
import warnings

import numpy as np
import pytest
from tests.numpy_protocol._document import MAPPED
from tests.numpy_protocol.test_table import SPACES

import pullback as pb

# Parameters that choose what is done, or are arrays: _calls.py has those.
_CHOICES = """
    a array ar arr ary m val x p y b v xp fp x1 x2 ar1 ar2 arrays arys tup xi operands A prototype f
    args axis axes axis1 axis2 axisa axisb axisc source destination dtype out keepdims order kind
    mode copy casting subok device shape newshape new_shape indexing sparse UPLO full_matrices
    compute_uv hermitian overwrite_input method returned rowvar bias endpoint retstep increasing
    return_index return_inverse return_counts return_indices equal_nan sorted stable assume_unique
    optimize include_initial upper deg trim edge_order norm s n dst src condition condlist
    funclist func func1d choicelist indices obj varargs like writeable wrap filt kwargs kw reps
    window_shape z ind choices a1 a2 vals mask values descending
"""
CHOICES = frozenset(_CHOICES.split())
W = np.array([0.7, 1.1, 1.9, 2.4])
M = np.arange(12.0).reshape(3, 4) ** 1.3 + 1
AT = 1.3


def several(t):
    return np.stack([t, t * t, t, 2 * t])


def hole(w, value):
    return np.where([True, False, False, False], value, w)


def filled(write, w):
    """Return a copy of an array after it was written to."""
    copy = w * 1
    write(copy)
    return copy


def named(names):
    """Return names of NumPy's functions, each with the function."""
    return [(name, getattr(np, name)) for name in names.split()]


SETTINGS = {
    **{
        (name, "initial"): lambda t, w, f=f, s=shift: f(w, initial=t + s)
        for names, shift in (("sum prod nansum nanprod", 0), ("max nanmax", 5), ("min nanmin", -5))
        for name, f in named(names)
    },
    **{
        (name, "where"): lambda t, w, f=f: f(w, where=w > t)
        for name, f in named("sum prod any all mean var std nansum nanprod nanmean nanvar nanstd")
    },
    **{
        (name, "where"): lambda t, w, f=f, s=shift: f(w, where=w > t, initial=s * t)
        for names, shift in (("max nanmax", 3), ("min nanmin", -1))
        for name, f in named(names)
    },
    **{
        (name, key): lambda t, w, f=f, key=key: f(w, **{key: t})
        for name, f in named("var std nanvar nanstd")
        for key in ("mean", "ddof", "correction")
    },
    ("average", "weights"): lambda t, w: np.average(w, weights=several(t)),
    ("quantile", "q"): lambda t, w: np.quantile(w, t / 4),
    ("percentile", "q"): lambda t, w: np.percentile(w, [10, 40]) * np.percentile(w, t * 20),
    ("nanquantile", "q"): lambda t, w: np.nanquantile(hole(w, np.nan), t / 4, method="hazen"),
    ("nanpercentile", "q"): lambda t, w: np.nanpercentile(w, np.stack([t * 20, t])),
    **{
        (name, "weights"): lambda t, w, f=f: f(w, 0.4, weights=several(t), method="inverted_cdf")
        for name, f in named("quantile percentile nanquantile nanpercentile")
    },
    ("clip", "a_min"): lambda t, w: np.clip(w, t, None),
    ("clip", "a_max"): lambda t, w: np.clip(w, 0.0, t),
    ("clip", "min"): lambda t, w: np.clip(w, min=t),
    ("clip", "max"): lambda t, w: np.clip(w, max=t),
    ("nan_to_num", "nan"): lambda t, w: np.nan_to_num(hole(w, np.nan), nan=t),
    ("nan_to_num", "posinf"): lambda t, w: np.nan_to_num(hole(w, np.inf), posinf=t),
    ("nan_to_num", "neginf"): lambda t, w: np.nan_to_num(hole(w, -np.inf), neginf=t),
    ("round", "decimals"): lambda t, w: np.round(w, t),
    ("linspace", "start"): lambda t, w: np.linspace(t, w, 3),
    ("linspace", "stop"): lambda t, w: np.linspace(w, t, 3, endpoint=False),
    ("linspace", "num"): lambda t, w: np.linspace(w, 1, t),
    ("logspace", "start"): lambda t, w: np.logspace(t, w, 3),
    ("logspace", "stop"): lambda t, w: np.logspace(w, t, 3),
    ("logspace", "base"): lambda t, w: np.logspace(0, w, 3, base=t),
    ("logspace", "num"): lambda t, w: np.logspace(w, 1, t),
    ("geomspace", "start"): lambda t, w: np.geomspace(t, w, 3),
    ("geomspace", "stop"): lambda t, w: np.geomspace(w, t, 3),
    ("geomspace", "num"): lambda t, w: np.geomspace(w, 1, t),
    ("full_like", "fill_value"): lambda t, w: np.full_like(w, t),
    ("interp", "left"): lambda t, w: np.interp(w, [1.0, 2.0], [3.0, 4.0], left=t),
    ("interp", "right"): lambda t, w: np.interp(w, [1.0, 2.0], [3.0, 4.0], right=t),
    ("interp", "period"): lambda t, w: np.interp(w, [0.1, 0.5, 0.9], [3.0, 4.0, 5.0], period=t),
    ("pad", "constant_values"): lambda t, w: np.pad(w, 1, constant_values=(t, 2 * t)),
    ("pad", "end_values"): lambda t, w: np.pad(w, 2, "linear_ramp", end_values=t),
    ("pad", "stat_length"): lambda t, w: np.pad(w, 2, "mean", stat_length=t),
    ("pad", "pad_width"): lambda t, w: np.pad(w, t),
    ("gradient", "varargs"): lambda t, w: np.gradient(w, t),
    ("trapezoid", "dx"): lambda t, w: np.trapezoid(w, dx=t),
    ("trapezoid", "x"): lambda t, w: np.trapezoid(w, np.cumsum(several(t))),
    ("diff", "prepend"): lambda t, w: np.diff(w, prepend=t),
    ("diff", "append"): lambda t, w: np.diff(w, append=t),
    ("ediff1d", "to_end"): lambda t, w: np.ediff1d(w, to_end=t),
    ("ediff1d", "to_begin"): lambda t, w: np.ediff1d(w, to_begin=t),
    ("cov", "ddof"): lambda t, w: np.cov(w, ddof=t),
    ("cov", "aweights"): lambda t, w: np.cov(w, aweights=several(t)),
    ("cov", "fweights"): lambda t, w: np.cov(w, fweights=several(t)),
    ("select", "default"): lambda t, w: np.select([w > 1], [w], t),
    ("piecewise", "value"): lambda t, w: np.piecewise(w, [w > 1], [t, 0.0]),
    ("piecewise", "args"): lambda t, w: np.piecewise(w, [w > 1], [lambda x, k: x * k, 0.0], t),
    ("apply_along_axis", "args"): lambda t, w: np.apply_along_axis(lambda v, k: v * k, 0, w, t),
    ("insert", "values"): lambda t, w: np.insert(w, 1, t),
    ("append", "values"): lambda t, w: np.append(w, t),
    ("delete", "obj"): lambda t, w: np.delete(w, t),
    ("polyint", "k"): lambda t, w: np.polyint(w, k=t),
    ("copyto", "where"): lambda t, w: filled(lambda a: np.copyto(a, t, where=a > 1), w),
    ("fill_diagonal", "val"): lambda t, w: filled(
        lambda a: np.fill_diagonal(a, t), np.multiply.outer(w, w)
    ),
    ("bincount", "weights"): lambda t, w: np.bincount([0, 2, 0, 1], weights=several(t) * w),
    ("bincount", "minlength"): lambda t, w: np.bincount([0, 2, 0, 1], w, minlength=t),
    ("unwrap", "period"): lambda t, w: np.unwrap(3 * w, period=t),
    ("unwrap", "discont"): lambda t, w: np.unwrap(3 * w, discont=t),
    ("repeat", "repeats"): lambda t, w: np.repeat(w, t),
    ("roll", "shift"): lambda t, w: np.roll(w, t),
    ("rollaxis", "start"): lambda t, w: np.rollaxis(w, 0, t),
    ("rot90", "k"): lambda t, w: np.rot90(np.multiply.outer(w, w), t),
    ("partition", "kth"): lambda t, w: np.partition(w, t),
    ("vander", "N"): lambda t, w: np.vander(w, t),
    ("real_if_close", "tol"): lambda t, w: np.real_if_close(w + 0j, tol=t),
    **{
        (name, "offset"): lambda t, w, name=name: _of(name)(np.multiply.outer(w, w), offset=t)
        for name in ("diagonal", "trace", "linalg.diagonal", "linalg.trace")
    },
    **{
        (name, "k"): lambda t, w, f=f: f(np.multiply.outer(w, w), k=t)
        for name, f in named("diag diagflat tril triu")
    },
    **{
        (name, "indices_or_sections"): lambda t, w, f=f: f(w, t)
        for name, f in named("split array_split hsplit vsplit dsplit")
    },
    ("linalg.norm", "ord"): lambda t, w: np.linalg.norm(w, ord=t),
    ("linalg.vector_norm", "ord"): lambda t, w: np.linalg.vector_norm(w, ord=t),
    ("linalg.matrix_norm", "ord"): lambda t, w: np.linalg.matrix_norm(M * w, ord=t),
    ("linalg.cond", "p"): lambda t, w: np.linalg.cond(M[:, :3] * w[:3], p=t),
    ("linalg.pinv", "rcond"): lambda t, w: np.linalg.pinv(M * w, rcond=t / 1e6),
    ("linalg.pinv", "rtol"): lambda t, w: np.linalg.pinv(M * w, rtol=t / 1e6),
    # of ndarray, of ufuncs, and others that have no counterpart
    ("ndarray.sum", "initial"): lambda t, w: np.asarray(w).sum(initial=t),
    ("ufunc.reduce", "initial"): lambda t, w: np.hypot.reduce(w * pb.asarray(W), initial=t),
    ("ufunc", "where"): lambda t, w: np.multiply(w, t, where=W > 1, out=w * 0),
    ("ufunc.at", "b"): lambda t, w: filled(lambda a: np.add.at(a, [0, 0, 2], t), w),
    ("full", "fill_value"): lambda t, w: np.full(3, t),
    ("arange", "step"): lambda t, w: np.arange(0, 3, t),
    ("polyval", "p"): lambda t, w: np.polyval([1.0, t], w),
    ("histogram", "weights"): lambda t, w: np.histogram(w, weights=several(t)),
}
# NumPy's own, where it takes integers alone: since 2.5 some warn first.
REFUSING_NUMBERS = (DeprecationWarning, IndexError, TypeError, ValueError)
REFUSING = (pb.AutogradError, *REFUSING_NUMBERS)


def _of(name):
    prefix, _, short = name.rpartition(".")
    return getattr(SPACES[f"{prefix}." if prefix else ""], short)


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="compiled functions do not tell theirs"
)
def test_every_parameter_is_a_choice_or_in_the_table():
    other_name = {"amax": "max", "amin": "min", "around": "round"}
    missing = [
        (name, parameter)
        for name in sorted(MAPPED - {"i0"})
        if not isinstance(_of(name), np.ufunc) and not name.startswith("fft.")
        for parameter in inspect.signature(_of(name)).parameters
        if parameter not in CHOICES and (other_name.get(name, name), parameter) not in SETTINGS
    ]
    assert missing == []


def total(result):
    """Return a weighted sum of what a program returns."""
    results = result if isinstance(result, (tuple, list)) else [result]
    parts = [
        (r * pb.asarray(np.arange(1.0, np.size(r) + 1).reshape(np.shape(r)))).sum()
        for r in map(pb.asarray, results)
        if r.dtype.kind in "fc"
    ]
    return sum(parts[1:], parts[0]) if parts else pb.zeros((), dtype=pb.float64)


def difference(program):
    ahead, behind = (total(program(np.float64(AT + h), W.copy())).item() for h in (1e-6, -1e-6))
    return (ahead - behind) / 2e-6


@pytest.mark.parametrize("kind", ["array", "tensor"])
@pytest.mark.parametrize("setting", SETTINGS, ids="-".join)
def test_a_tracked_setting_has_its_derivative_or_is_refused(setting, kind):
    program = SETTINGS[setting]
    w = W.copy() if kind == "array" else pb.asarray(W.copy())
    t = pb.tensor(np.array(AT), requires_grad=True)
    try:
        result = total(program(t, w))
    except REFUSING:
        return
    try:
        expected = difference(program)
    except REFUSING_NUMBERS:
        return
    (found,) = pb.autograd.grad(result, t) if result.requires_grad else (pb.zeros(()),)
    assert found.item() == pytest.approx(expected, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("kind", ["array", "tensor"])
@pytest.mark.parametrize("setting", SETTINGS, ids="-".join)
def test_a_setting_with_a_tangent_has_its_derivative_or_is_refused(setting, kind):
    program = SETTINGS[setting]
    w = W.copy() if kind == "array" else pb.asarray(W.copy())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pb.errors.UntrackedTensorWarning)
            _, found = pb.jvp(lambda t: total(program(t, w)), (np.float64(AT),), (1.0,))
    except (*REFUSING, pb.errors.UntrackedTensorWarning):
        return
    try:
        expected = difference(program)
    except REFUSING_NUMBERS:
        return
    assert float(found) == pytest.approx(expected, rel=1e-5, abs=1e-7)


TRACKED = [
    *(
        ("sum", "initial"),
        ("max", "initial"),
        ("var", "mean"),
        ("quantile", "q"),
        ("clip", "a_min"),
    ),
    *(("nan_to_num", "nan"), ("logspace", "base"), ("geomspace", "start"), ("interp", "left")),
    *(("interp", "period"), ("pad", "constant_values"), ("pad", "end_values"), ("cov", "aweights")),
    *(("gradient", "varargs"), ("bincount", "weights"), ("unwrap", "period"), ("ufunc", "where")),
    *(("full_like", "fill_value"), ("trapezoid", "dx"), ("ufunc.at", "b"), ("select", "default")),
]


@pytest.mark.parametrize("setting", TRACKED, ids="-".join)
def test_a_setting_beside_a_tensor_is_in_the_graph(setting):
    t = pb.tensor(np.array(AT), requires_grad=True)
    assert total(SETTINGS[setting](t, pb.asarray(W.copy()))).requires_grad


BESIDE_ARRAYS = [
    (lambda t: np.sum(W, initial=t), "sum"),
    (lambda t: np.min(W, initial=t), "min"),
    (lambda t: W.sum(initial=t), "sum"),
    (lambda t: np.interp(W, [1.0, 2.0], [3.0, 4.0], left=t), "interp"),
]


@pytest.mark.parametrize(("call", "name"), BESIDE_ARRAYS)
def test_a_setting_beside_an_array_is_an_error_that_names_the_way(call, name):
    t = pb.tensor(np.array(0.5), requires_grad=True)
    with pytest.raises((pb.errors.GraphError, ValueError)) as caught:
        call(t)
    error = caught.value.__cause__ or caught.value  # NumPy may say something of its own
    assert str(error).startswith(f"np.{name}: numbers as settings beside arrays required")
    assert "pb.asarray(a)" in str(error)
    call(t.detach())
    with pb.no_grad():
        call(t)
