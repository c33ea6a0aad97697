"""One or more calls of every function of NumPy that has a counterpart for Tensors.

A call is a shape, or several, and what to do with arrays of those shapes: the same program runs on
NumPy's arrays and on tensors.
"""

import operator
import warnings
from typing import Any, NamedTuple

import numpy as np


class Call(NamedTuple):
    """A program on arrays of these shapes, with samples between `low` and `high`."""

    run: Any
    shapes: tuple[tuple[int, ...], ...]
    low: float = 0.5
    high: float = 2.0
    kind: str = "f"


def on(*shapes, low=0.5, high=2.0, kind="f"):
    """Return what makes calls with samples of these shapes."""
    return lambda run: Call(run, shapes, low, high, kind)


vector, matrix, square, cube = on((5,)), on((3, 4)), on((3, 3)), on((2, 3, 4))
pair, tall, scalar = on((4,), (4,)), on((3, 4), (4,)), on(())
wide = on((3, 4), low=-2.0, high=2.0)
numbers = on((3, 4), kind="c")
unit = on((3, 4), low=-0.9, high=0.9)

EVEN = np.array([[True, False, True, False]] * 3)
MASK = np.array([[True, False, True, False], [False, True, True, False], [True, True, False, True]])
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.4])
INDICES_2 = np.array([2, 0, 2, 4])
INDICES = np.array([2, 0, 2])
QUANTILE_METHODS = (
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf"),
    *("hazen", "weibull", "linear", "median_unbiased", "normal_unbiased"),
    *("lower", "higher", "midpoint", "nearest"),
)
STATISTICS = ("maximum", "mean", "median", "minimum")
windows = np.lib.stride_tricks.sliding_window_view
CORNERS = (slice(None), slice(None, 2))


def calling(name, prepare=lambda x: x, **settings):
    """Return what calls NumPy's function of that name, with settings, on prepared arrays."""
    function = operator.attrgetter(name)(np)
    return lambda *xs: function(*map(prepare, xs), **settings)


def functions(*names):
    """Return names of NumPy's functions, each with the function."""
    return [(name, getattr(np, name)) for name in names]


def written(function, target, *args, **settings):
    """Return a copy of an array that a function wrote into."""
    target = np.copy(target)
    function(target, *args, **settings)
    return target


def definite(x):
    """Return a symmetric positive definite matrix."""
    return np.matmul(x, np.matrix_transpose(x)) + 3 * np.eye(3)


def with_nan(x):
    """Return `x` with NaN in some places."""
    return np.where(EVEN, np.nan, x)


def fix(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # since NumPy 2.5
        return np.fix(x)


UFUNCS = {
    **{
        name: [wide(getattr(np, name))]
        for name in (
            *("absolute", "cbrt", "ceil", "cos", "cosh", "deg2rad", "degrees", "exp", "exp2"),
            *("expm1", "fabs", "floor", "isfinite", "isinf", "isnan", "logical_not", "negative"),
            *("positive", "rad2deg", "radians", "rint", "sign", "signbit", "sin", "sinh"),
            *("square", "tanh", "trunc", "modf"),
        )
    },
    **{
        name: [unit(getattr(np, name))] for name in ("arcsin", "arctanh", "arccos", "arctan", "tan")
    },
    **{
        name: [matrix(getattr(np, name))]
        for name in ("arcsinh", "log", "log10", "log1p", "log2", "reciprocal", "sqrt")
    },
    "arccosh": [on((4,), low=1.5, high=3.0)(np.arccosh)],
    **{
        name: [tall(getattr(np, name))]
        for name in (
            *("add", "arctan2", "copysign", "divide", "divmod", "equal", "float_power", "fmax"),
            *("floor_divide", "fmin", "fmod", "greater", "greater_equal", "hypot", "less"),
            *("less_equal", "logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor"),
            *("maximum", "minimum", "multiply", "nextafter", "not_equal", "power", "remainder"),
            *("subtract", "vecdot"),
        )
    },
    "conjugate": [numbers(np.conjugate)],
    "heaviside": [wide(lambda x: np.heaviside(x, 0.5))],
    "ldexp": [wide(lambda x: np.ldexp(x, 3))],
    "matmul": [on((3, 4), (4, 2))(np.matmul)],
}
if np.lib.NumpyVersion(np.__version__) >= "2.2.0":
    UFUNCS["matvec"] = [on((2, 3, 4), (4,))(np.matvec)]
    UFUNCS["vecmat"] = [on((3,), (2, 3, 4))(np.vecmat)]
INTEGERS = {
    name: [tall(calling(name, lambda x: np.astype(2 * x, int)))]
    for name, f in functions("bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm", "left_shift")
}

NAN_SETTINGS = {
    **{name: {"initial": 1.1} for name in ("nansum", "nanprod", "nanmax", "nanmin")},
    **{name: {"ddof": 1} for name in ("nanvar", "nanstd")},
    "nanmean": {},
}
REDUCTIONS = {
    "all": [matrix(lambda x: np.all(x > 1, axis=1)), matrix(lambda x: np.all(x > 9, where=~EVEN))],
    "any": [matrix(lambda x: np.any(x > 1, axis=1)), matrix(lambda x: np.any(x < 9, where=EVEN))],
    **{
        name: [
            matrix(getattr(np, name)),
            cube(calling(name, axis=(0, 2), keepdims=True)),
            matrix(calling(name, axis=0, initial=1.1, where=EVEN)),
            on((0, 3))(calling(name, axis=0, initial=1.5)),
            *(
                on((3, 4), (), low=low)(lambda x, t, f=f: f(x, axis=0, initial=t))
                for low in (0.5, 1.9)
            ),
            on((0, 2), ())(lambda x, t, f=f: f(x, axis=0, initial=t)),
        ]
        for name, f in functions("sum", "prod", "max", "min")
    },
    **{
        name: [matrix(getattr(np, name)), cube(calling(name, axis=1))]
        for name in ("ptp", "argmax", "argmin", "median", "count_nonzero")
    },
    **{
        name: [
            matrix(getattr(np, name)),
            cube(calling(name, axis=1)),
            numbers(calling(name, axis=1, where=MASK, ddof=1)),
            on((3, 4), (3, 1))(lambda x, m, f=f: f(x, 1, mean=m, keepdims=True)),
        ]
        for name, f in functions("var", "std")
    },
    "mean": [matrix(np.mean), matrix(lambda x: np.mean(x, 0, where=MASK))],
    "average": [
        matrix(np.average),
        matrix(lambda x: np.average(x, axis=1, weights=WEIGHTS, returned=True)),
        tall(lambda x, y: np.average(x, weights=x * y, keepdims=True)),
    ],
    "fix": [wide(fix)],
    "cumsum": [
        matrix(lambda x: np.cumsum(x, dtype=complex)),
        matrix(np.cumsum),
        matrix(lambda x: np.cumsum(x, axis=1)),
    ],
    "cumprod": [matrix(np.cumprod), matrix(lambda x: np.cumprod(x, axis=0))],
    "cumulative_sum": [matrix(lambda x: np.cumulative_sum(x, axis=1, include_initial=True))],
    "cumulative_prod": [vector(np.cumulative_prod)],
    **{
        name: [
            matrix(calling(name, with_nan)),
            matrix(calling(name, with_nan, axis=1)),
            *(
                [matrix(calling(name, with_nan, axis=1, where=~EVEN | MASK, **more))]
                if (more := NAN_SETTINGS.get(name)) is not None
                else []
            ),
        ]
        for name in (
            *("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"),
            *("nancumsum", "nancumprod", "nanargmax", "nanargmin"),
        )
    },
    **{
        f"{name}quantile": [
            *(
                matrix(lambda x, f=f, m=m: f(with_nan(x), [0.0, 0.31, 0.77, 1.0], axis=1, method=m))
                if name
                else cube(lambda x, f=f, m=m: f(x, [0.0, 0.31, 0.77, 1.0], axis=(0, 2), method=m))
                for m in QUANTILE_METHODS
            ),
            on((6,), (2,), low=0.2, high=0.8)(getattr(np, f"{name}quantile")),
            matrix(lambda x, f=f: f(x, 0.3, keepdims=True)),
        ]
        for name, f in (("", np.quantile), ("nan", np.nanquantile))
    },
    "nanmedian": [matrix(lambda x: np.nanmedian(with_nan(x), axis=1))],
    "nanpercentile": [matrix(lambda x: np.nanpercentile(with_nan(x), [[10, 55.0]]))],
    "percentile": [matrix(lambda x: np.percentile(x, [10, 55.0], axis=1))],
    "trapezoid": [
        vector(np.trapezoid),
        pair(lambda y, x: np.trapezoid(y, np.cumsum(x))),
        on((3, 4), (3, 4))(lambda y, x: np.trapezoid(y, x, axis=0)),
        on((3, 4), (3,))(lambda y, x: np.trapezoid(y, np.cumsum(x), axis=0)),
    ],
    "bincount": [
        on((4,))(lambda w: np.bincount(INDICES_2, w)),
        on((4,))(lambda w: np.bincount(INDICES_2, weights=w, minlength=7)),
        matrix(lambda x: np.bincount(np.astype(x[0] > 1, int))),
    ],
    "ediff1d": [vector(np.ediff1d), matrix(lambda x: np.ediff1d(x, to_end=[1.0], to_begin=2.0))],
    "diff": [
        matrix(np.diff),
        matrix(lambda x: np.diff(x, n=2, axis=0)),
        tall(lambda x, y: np.diff(x, axis=0, prepend=y[None], append=0.0)),
        matrix(lambda x: np.diff(x > 1)),
    ],
}

SHAPES = {
    "shape": [matrix(np.shape)],
    "ndim": [matrix(np.ndim)],
    "size": [matrix(np.size), matrix(lambda x: np.size(x, 1))],
    "iscomplexobj": [matrix(np.iscomplexobj), numbers(np.iscomplexobj)],
    "isrealobj": [matrix(np.isrealobj)],
    "reshape": [matrix(lambda x: np.reshape(x, (2, -1))), matrix(lambda x: np.reshape(x, 12, "F"))],
    "ravel": [matrix(np.ravel), matrix(lambda x: np.ravel(x, order="F"))],
    "transpose": [cube(np.transpose), cube(lambda x: np.transpose(x, (1, 2, 0)))],
    "matrix_transpose": [cube(np.matrix_transpose)],
    "swapaxes": [cube(lambda x: np.swapaxes(x, 0, -1))],
    "moveaxis": [cube(lambda x: np.moveaxis(x, 0, -1))],
    "rollaxis": [cube(lambda x: np.rollaxis(x, 2)), cube(lambda x: np.rollaxis(x, 0, 3))],
    "expand_dims": [matrix(lambda x: np.expand_dims(x, (0, -1)))],
    "squeeze": [on((1, 3, 1))(np.squeeze), on((1, 3))(lambda x: np.squeeze(x, axis=0))],
    "flip": [matrix(np.flip), matrix(lambda x: np.flip(x, 1))],
    "flipud": [matrix(np.flipud)],
    "fliplr": [matrix(np.fliplr)],
    "rot90": [cube(lambda x, k=k: np.rot90(x, k, axes=(1, 2))) for k in range(4)],
    "roll": [matrix(lambda x: np.roll(x, 2)), matrix(lambda x: np.roll(x, (1, -1), axis=(0, 1)))],
    "resize": [on((0,))(lambda x: np.resize(x, 3)), matrix(lambda x: np.resize(x, (5, 3)))],
    "tile": [vector(lambda x: np.tile(x, 2)), matrix(lambda x: np.tile(x, (2, 1, 2)))],
    "repeat": [matrix(lambda x: np.repeat(x, 2)), matrix(lambda x: np.repeat(x, [1, 0, 2], 0))],
    "broadcast_to": [vector(lambda x: np.broadcast_to(x, (2, 5)))],
    "broadcast_arrays": [tall(lambda x, y: tuple(np.broadcast_arrays(x, y)))],
    "meshgrid": [pair(np.meshgrid), pair(lambda x, y: np.meshgrid(x, y, indexing="ij"))],
    **{
        f"atleast_{n}d": [c(getattr(np, f"atleast_{n}d")) for c in (scalar, vector, matrix, tall)]
        for n in (1, 2, 3)
    },
    "concatenate": [
        pair(lambda x, y: np.concatenate([x, y])),
        tall(lambda x, y: np.concatenate((x, [y]), axis=0)),
        tall(lambda x, y: np.concatenate((x, y), axis=None)),
    ],
    "stack": [pair(lambda x, y: np.stack([x, y], axis=1)), matrix(lambda x: np.stack(x, axis=1))],
    "hstack": [pair(lambda x, y: np.hstack([x, y])), matrix(lambda x: np.hstack([x, x]))],
    "vstack": [tall(lambda x, y: np.vstack([x, y]))],
    "dstack": [pair(lambda x, y: np.dstack([x, y]))],
    "column_stack": [pair(lambda x, y: np.column_stack([x, y]))],
    "append": [tall(lambda x, y: np.append(x, y)), pair(lambda x, y: np.append(x, y, axis=0))],
    "block": [
        on((2, 2), (2, 1))(lambda x, y: np.block([[x, y], [np.ones((1, 2)), np.zeros((1, 1))]])),
        pair(lambda x, y: np.block([x, y])),
        cube(lambda x: np.block([[x, x], [x, x]])),
        matrix(np.block),
    ],
    "split": [matrix(lambda x: np.split(x, 2, axis=1)), matrix(lambda x: np.split(x, [1, 1]))],
    "array_split": [vector(lambda x: np.array_split(x, 3))],
    "hsplit": [matrix(lambda x: np.hsplit(x, 2)), vector(lambda x: np.hsplit(x, [2]))],
    "vsplit": [matrix(lambda x: np.vsplit(x, 3))],
    "dsplit": [cube(lambda x: np.dsplit(x, 2))],
    "unstack": [matrix(lambda x: np.unstack(x, axis=1))],
    "astype": [matrix(lambda x: np.astype(x, complex))],
    "copy": [matrix(np.copy)],
    "zeros_like": [matrix(np.zeros_like), matrix(lambda x: np.zeros_like(x, dtype=int))],
    "ones_like": [matrix(lambda x: np.ones_like(x, shape=(2,)))],
    "empty_like": [matrix(lambda x: np.shape(np.empty_like(x)))],
    "full_like": [matrix(lambda x: np.full_like(x, 3.0)), matrix(lambda x: np.full_like(x, x[0]))],
    "pad": [
        matrix(lambda x: np.pad(x, 1)),
        matrix(lambda x: np.pad(x, ((1, 2), (0, 1)), constant_values=((1, 2), (3, 4)))),
        *(
            [matrix(lambda x: np.pad(x, {-1: (2, 1)}))]
            if np.lib.NumpyVersion(np.__version__) >= "2.4.0"
            else []
        ),
        *(
            matrix(lambda x, mode=mode: np.pad(x, ((2, 1), (5, 0)), mode=mode))
            for mode in ("edge", "reflect", "symmetric", "wrap", *STATISTICS, "linear_ramp")
        ),
        *(
            matrix(lambda x, mode=mode: np.pad(x, (2, 1), mode=mode, stat_length=((1, 2), (3, 1))))
            for mode in STATISTICS
        ),
        *(
            matrix(lambda x, mode=mode: np.pad(x, (2, 1), mode=mode, reflect_type="odd"))
            for mode in ("reflect", "symmetric")
        ),
        on((3, 4), ())(lambda x, t: np.pad(x, 1, constant_values=t)),
        on((3, 4), (2, 2))(lambda x, t: np.pad(x, (2, 1), constant_values=t)),
        on((3, 4), (2, 2))(lambda x, t: np.pad(x, (2, 3), "linear_ramp", end_values=t)),
        matrix(lambda x: np.pad(np.astype(5 * x, int), 1, constant_values=2.7)),
        *(
            matrix(lambda x, mode=mode: np.pad(np.astype(5 * x, int), 3, mode=mode))
            for mode in ("mean", "linear_ramp", "maximum")
        ),
    ],
    "lib.stride_tricks.sliding_window_view": [
        vector(lambda x: windows(x, 3)),
        cube(lambda x: windows(x, (2, 2), axis=(0, 2))),
        matrix(lambda x: windows(x, (2, 3))),
        vector(lambda x: windows(x, (2, 2), axis=(0, 0))),
    ],
    "tril": [matrix(lambda x: np.tril(x, 1)), cube(np.tril)],
    "triu": [matrix(lambda x: np.triu(x, -1))],
    "apply_along_axis": [
        cube(lambda x: np.apply_along_axis(np.sum, 1, x)),
        cube(lambda x: np.apply_along_axis(lambda v, k: v[:2] * k, 0, x, k=3)),
    ],
    "apply_over_axes": [cube(lambda x: np.apply_over_axes(np.sum, x, [0, 2]))],
}

CHOICES = {
    "choose": [
        tall(lambda x, y: np.choose(INDICES_2[:1], [x, y, 3 * x])),
        pair(lambda x, y: np.choose(np.array([0, 1, 1, 0]), [x, y])),
        pair(lambda x, y: np.choose(np.array([[-1], [5]]), np.stack([x, y]), mode="clip")),
    ],
    "put": [
        on((3, 4), (2,))(lambda x, y: written(np.put, x, [0, 7, 2], y)),
        matrix(lambda x: written(np.put, x, [-1, 13], 5.0, mode="wrap")),
        matrix(lambda x: written(np.put, x, [], [])),
    ],
    "putmask": [
        tall(lambda x, y: written(np.putmask, x, x > 1, y)),
        matrix(lambda x: written(np.putmask, x, MASK, 2 * x)),
    ],
    "place": [on((3, 4), (2,))(lambda x, y: written(np.place, x, MASK, y))],
    "put_along_axis": [
        on((3, 4), (3, 1))(lambda x, y: written(np.put_along_axis, x, INDICES[:, None], y, 1)),
        matrix(lambda x: written(np.put_along_axis, x, INDICES, 3.0, None)),
    ],
    "where": [
        tall(lambda x, y: np.where(x > 1, x, y)),
        matrix(lambda x: np.where(EVEN, x, 0)),
        matrix(lambda x: np.where([1, 0, 1, 0], 2.0, x)),
        matrix(lambda x: np.where(x > 1)),
        matrix(lambda x: np.where(x > 1, 3.0, 2.0)),
    ],
    "select": [tall(lambda x, y: np.select([x > 1.5, x > 1], [x, y], 7.0))],
    "piecewise": [
        matrix(lambda x: np.piecewise(x, [x < 1, x > 1.5], [np.square, 3.0, lambda v: 2 * v])),
        vector(lambda x: np.piecewise(x, x < 1, [lambda v, k: k * v, 0.0], 4)),
    ],
    "extract": [matrix(lambda x: np.extract(EVEN, x))],
    "compress": [matrix(lambda x: np.compress([True, False, True], x, axis=0))],
    "take": [matrix(lambda x: np.take(x, INDICES)), matrix(lambda x: np.take(x, INDICES, axis=1))],
    "take_along_axis": [
        matrix(lambda x: np.take_along_axis(x, np.argsort(x, axis=1), axis=1)),
        matrix(lambda x: np.take_along_axis(x, np.array([[0, 2, 1, 1]]), axis=0)),
        matrix(lambda x: np.take_along_axis(x, INDICES, axis=None)),
    ],
    "delete": [vector(lambda x: np.delete(x, [1, 3])), matrix(lambda x: np.delete(x, 1, axis=1))],
    "insert": [
        vector(lambda x: np.insert(x, 2, 9.0)),
        vector(lambda x: np.insert(x, [1, 3], [8.0, 9.0])),
        tall(lambda x, y: np.insert(x, 1, y, axis=0)),
        on((3, 4), (3,))(lambda x, y: np.insert(x, 1, y, axis=1)),
        on((3, 4), (3, 1))(lambda x, y: np.insert(x, [1], y, axis=1)),
        vector(lambda x: np.insert(x, slice(0, 2), 9.0)),
    ],
    "sort": [
        matrix(np.sort),
        matrix(lambda x: np.sort(x, axis=0)),
        matrix(lambda x: np.sort(x, None)),
    ],
    "argsort": [matrix(np.argsort), matrix(lambda x: np.argsort(x, axis=None))],
    "partition": [matrix(lambda x: np.partition(x, 1)[:, 1])],
    "sort_complex": [vector(np.sort_complex), on((4,), kind="c")(np.sort_complex)],
    "trim_zeros": [
        vector(lambda x: np.trim_zeros(np.zeros_like(x))),
        vector(lambda x: np.trim_zeros(np.append(x, 0.0), "f")),
        vector(lambda x: np.trim_zeros(np.where(x > 1, x, 0.0))),
    ],
    "unique": [
        vector(lambda x: np.unique(np.concatenate([x, x]))),
        vector(lambda x: np.unique(np.append(x, x), True, True, True)),
        matrix(lambda x: np.unique(np.concatenate([x, x]), axis=0)),
    ],
    "unique_values": [vector(lambda x: np.sort(np.unique_values(x)))],
    "unique_all": [vector(np.unique_all)],
    "unique_counts": [vector(np.unique_counts)],
    "unique_inverse": [vector(np.unique_inverse)],
    "union1d": [pair(np.union1d)],
    "intersect1d": [pair(lambda x, y: np.intersect1d(x, np.append(y, x[:2])))],
    "setdiff1d": [pair(lambda x, y: np.setdiff1d(x, np.append(y, x[:2])))],
    "setxor1d": [pair(lambda x, y: np.setxor1d(x, np.append(y, x[:2])))],
}

COMPUTING = {
    "around": [wide(np.around), wide(lambda x: np.round(x, 1))],
    "clip": [
        wide(lambda x: np.clip(x, -1, 1)),
        tall(lambda x, y: np.clip(x, a_min=y, a_max=None)),
        wide(lambda x: np.clip(x, min=-1.0, max=0.5)),
        wide(np.clip),
    ],
    "angle": [numbers(np.angle), wide(lambda x: np.angle(x, deg=True))],
    "real": [numbers(np.real), matrix(np.real)],
    "imag": [numbers(np.imag), matrix(np.imag)],
    "real_if_close": [matrix(lambda x: np.real_if_close(x + 0j)), numbers(np.real_if_close)],
    "sinc": [wide(np.sinc), on((2,), low=-1e-3, high=1e-3)(np.sinc)],
    "nan_to_num": [matrix(lambda x: np.nan_to_num(with_nan(x), nan=2.0))],
    "unwrap": [vector(lambda x: np.unwrap(np.cumsum(3 * x)))],
    "i0": [wide(np.i0)],
    "linspace": [
        pair(lambda x, y: np.linspace(x, y, 3)),
        scalar(lambda x: np.linspace(0.0, x, 4, endpoint=False, retstep=True)),
        pair(lambda x, y: np.linspace(x, y, 3, axis=-1)),
        scalar(lambda x: np.linspace(x, 3.0, 1)),
    ],
    "logspace": [
        pair(lambda x, y: np.logspace(x, y, 3)),
        scalar(lambda x: np.logspace(0, x, 3, base=2.0)),
    ],
    "geomspace": [pair(lambda x, y: np.geomspace(x, y, 3))],
    "interp": [
        on((6,), (4,), (4,), low=0.1)(lambda x, xp, fp: np.interp(3 * x, np.cumsum(xp), fp)),
        vector(lambda x: np.interp(x, [0.8, 1.2], [3.0, 5.0], left=-1.0, right=-2.0)),
        vector(lambda x: np.interp(x, [1.0], [5.0])),
        vector(lambda x: np.interp(5 * x, [3.2, 0.1, 2.4], [3.0, 5.0, 4.0], period=2.5)),
        on((3,), (4,), (), low=2.0, high=2.4)(
            lambda x, fp, p: np.interp(x + 3, [0.3, 1.0, 1.5, 1.9], fp, period=p)
        ),
        on((3,), (), ())(lambda x, a, b: np.interp(x, [1.1, 1.2], [3, 5], left=a, right=b)),
    ],
    "gradient": [
        vector(np.gradient),
        matrix(np.gradient),
        on((4, 4), (4,))(lambda f, x: np.gradient(f, np.cumsum(x), axis=0)),
        matrix(lambda x: np.gradient(x, 0.5, 2.0)),
        matrix(lambda x: np.gradient(x, edge_order=2)),
        on((4, 4), (4,), ())(lambda f, x, h: np.gradient(f, np.cumsum(x), h, edge_order=2)),
    ],
    "polyval": [on((3,), (4,))(np.polyval)],
    "vander": [vector(lambda x: np.vander(x, 3)), vector(lambda x: np.vander(x, increasing=True))],
}

PRODUCTS = {
    "dot": [
        pair(np.dot),
        tall(np.dot),
        on((3, 4), (4, 2))(np.dot),
        on((2, 3), (4, 3, 2))(np.dot),
        on((), (3,))(np.dot),
        pair(lambda x, y: np.dot([1.0, 2.0, 3.0, 4.0], y) * x),
    ],
    "inner": [pair(np.inner), on((2, 3), (4, 3))(np.inner), on((), (3,))(np.inner)],
    "outer": [pair(np.outer), tall(np.outer)],
    "vdot": [on((3,), (3,), kind="c")(np.vdot), on((2, 2), (2, 2))(np.vdot)],
    "tensordot": [
        on((2, 3, 4), (3, 4, 2))(np.tensordot),
        on((2, 3), (4, 3))(lambda x, y: np.tensordot(x, y, axes=(1, 1))),
        on((2, 3), (4, 3))(lambda x, y: np.tensordot(x, y, axes=([1], [1]))),
    ],
    "kron": [pair(np.kron), on((2, 2), (3,))(np.kron)],
    "einsum": [
        on((2, 3), (3, 4))(lambda x, y: np.einsum("ij,jk->ik", x, y)),
        on((2, 3), (3, 4))(lambda x, y: np.einsum("ij,jk", x, y, optimize=True)),
        on((2, 3), (3, 4))(lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [2, 0])),
        on((2, 3), (3, 4))(lambda x, y: np.einsum(x, [0, 1], y, [1, 2])),
        on((2, 3, 3))(lambda x: np.einsum(x, [..., 30, 30], [...])),
    ],
    "convolve": [
        on((n,), (m,))(lambda x, y, mode=mode: np.convolve(x, y, mode))
        for mode in ("full", "same", "valid")
        for n, m in ((5, 3), (5, 2), (3, 5), (2, 5))
    ],
    "polymul": [on((4,), (2,))(np.polymul), vector(lambda x: np.polymul([1.0, 2.0], x))],
    "polyadd": [on((4,), (2,))(np.polyadd)],
    "polysub": [on((2,), (4,))(np.polysub)],
    "polyder": [vector(np.polyder), vector(lambda x: np.polyder(x, 2))],
    "polyint": [vector(np.polyint), on((4,), (2,))(lambda x, k: np.polyint(x, 2, k))],
    "correlate": [
        on((n,), (m,), kind=kind)(lambda x, y, mode=mode: np.correlate(x, y, mode))
        for mode in ("full", "same", "valid")
        for n, m, kind in ((5, 3, "f"), (5, 2, "c"), (3, 5, "f"), (2, 5, "f"))
    ],
    "cross": [
        on((2, 3), (2, 3))(np.cross),
        on((3, 2), (3, 2))(lambda x, y: np.cross(x, y, axis=0)),
        on((3, 2), (2, 3))(lambda x, y: np.cross(x, y, axisa=0, axisc=0)),
    ],
    "cov": [
        matrix(np.cov),
        vector(np.cov),
        pair(np.cov),
        matrix(lambda x: np.cov(x, rowvar=False, bias=True)),
        numbers(np.cov),
        tall(lambda x, w: np.cov(x, aweights=w)),
        tall(lambda x, w: np.cov(x, x[0] * x, aweights=w, fweights=[1, 2, 1, 3], ddof=0)),
    ],
    "corrcoef": [matrix(np.corrcoef), pair(np.corrcoef), vector(np.corrcoef)],
    "diagonal": [matrix(np.diagonal), cube(lambda x: np.diagonal(x, 1, 0, 2))],
    "trace": [matrix(np.trace), cube(lambda x: np.trace(x, -1, 1, 2))],
    "diag": [
        vector(np.diag),
        vector(lambda x: np.diag(x, 2)),
        vector(lambda x: np.diag(x, -1)),
        matrix(np.diag),
        matrix(lambda x: np.diag(x, 1)),
    ],
    "diagflat": [on((2, 2))(lambda x: np.diagflat(x, 1))],
}

LINALG = {
    "linalg.cholesky": [
        square(lambda x: np.linalg.cholesky(definite(x))),
        square(lambda x: np.linalg.cholesky(definite(x), upper=True)),
    ],
    "linalg.cond": [
        *(square(lambda x, p=p: np.linalg.cond(definite(x), p)) for p in (None, -2, "fro", 1)),
    ],
    "linalg.cross": [on((2, 3), (2, 3))(np.linalg.cross)],
    "linalg.det": [square(lambda x: np.linalg.det(definite(x)))],
    "linalg.diagonal": [cube(lambda x: np.linalg.diagonal(x, offset=1))],
    "linalg.eig": [square(lambda x: np.linalg.eig(definite(x))[0])],
    "linalg.eigvals": [square(lambda x: np.linalg.eigvals(definite(x)))],
    "linalg.eigh": [
        square(lambda x: np.linalg.eigh(definite(x)).eigenvalues),
        square(lambda x: np.linalg.eigh(definite(x), UPLO="U")[0]),
        square(lambda x: np.linalg.eigh(definite(x), "U")[0]),
    ],
    "linalg.eigvalsh": [
        square(lambda x: np.linalg.eigvalsh(definite(x))),
        square(lambda x: np.linalg.eigvalsh(definite(x), "U")),
    ],
    "linalg.inv": [square(lambda x: np.linalg.inv(definite(x)))],
    "linalg.matmul": [on((2, 3), (3, 2))(np.linalg.matmul)],
    "linalg.matrix_norm": [matrix(lambda x: np.linalg.matrix_norm(x, keepdims=True))],
    "linalg.matrix_power": [square(lambda x: np.linalg.matrix_power(x, 3))],
    "linalg.matrix_rank": [matrix(np.linalg.matrix_rank)],
    "linalg.matrix_transpose": [cube(np.linalg.matrix_transpose)],
    "linalg.multi_dot": [on((2, 3), (3, 4), (4,))(lambda *xs: np.linalg.multi_dot(xs))],
    "linalg.norm": [
        vector(np.linalg.norm),
        cube(np.linalg.norm),
        vector(lambda x: np.linalg.norm(x, 1)),
        matrix(lambda x: np.linalg.norm(x, "nuc")),
        matrix(lambda x: np.linalg.norm(x, axis=1, keepdims=True)),
        cube(lambda x: np.linalg.norm(x, np.inf, axis=(2, 0))),
        cube(lambda x: np.linalg.norm(x, axis=(0, 2), keepdims=True)),
        matrix(lambda x: np.linalg.norm(x, keepdims=True)),
    ],
    "linalg.outer": [pair(np.linalg.outer)],
    "linalg.pinv": [matrix(np.linalg.pinv), matrix(lambda x: np.linalg.pinv(x, rcond=1e-12))],
    "linalg.qr": [
        on((4, 3))(lambda x: np.abs(np.linalg.qr(x).R)),
        on((4, 3))(lambda x: np.abs(np.linalg.qr(x, mode="r"))),
    ],
    "linalg.slogdet": [square(lambda x: np.linalg.slogdet(definite(x)).logabsdet)],
    "linalg.solve": [on((3, 3), (3,))(lambda x, b: np.linalg.solve(definite(x), b))],
    "linalg.svd": [
        matrix(lambda x: np.linalg.svd(x, compute_uv=False)),
        matrix(lambda x: np.linalg.svd(x, full_matrices=False).S),
    ],
    "linalg.svdvals": [matrix(np.linalg.svdvals)],
    "linalg.tensordot": [on((2, 3), (3, 2))(lambda x, y: np.linalg.tensordot(x, y, axes=1))],
    "linalg.tensorinv": [
        on((4, 2, 2))(lambda x: np.linalg.tensorinv(x + np.eye(4).reshape(4, 2, 2), ind=1))
    ],
    "linalg.tensorsolve": [
        on((2, 2, 2, 2), (2, 2))(
            lambda a, b: np.linalg.tensorsolve(a + 4 * np.eye(4).reshape(2, 2, 2, 2), b)
        ),
        on((2, 2, 2, 2), (2, 2))(
            lambda a, b: np.linalg.tensorsolve(
                np.moveaxis(a + 4 * np.eye(4).reshape(2, 2, 2, 2), -1, 0), b, axes=(0,)
            )
        ),
    ],
    "linalg.trace": [cube(lambda x: np.linalg.trace(x, offset=1))],
    "linalg.vecdot": [on((3,), (3,), kind="c")(np.linalg.vecdot)],
    "linalg.vector_norm": [cube(lambda x: np.linalg.vector_norm(x, axis=(0, 1), ord=3))],
}

FFT = {
    **{
        f"fft.{name}": [
            vector(getattr(np.fft, name)),
            matrix(calling(f"fft.{name}", n=6, axis=0, norm="ortho")),
        ]
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    },
    **{
        f"fft.{name}": [cube(getattr(np.fft, name))]
        for name in (
            *("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"),
            *("fftshift", "ifftshift"),
        )
    },
}

# Methods of ufuncs: of those that have an operation for them, and of others.
METHODS = {
    **{
        f"{name}.reduce": [
            matrix(lambda x, f=f: f.reduce(x)),
            cube(lambda x, f=f: f.reduce(x, axis=1, keepdims=True)),
        ]
        for name, f in functions(
            "subtract", "divide", "logaddexp", "hypot", "power", "fmin", "arctan2"
        )
    },
    "add.reduce": [cube(lambda x: np.add.reduce(x, axis=(0, 2), where=x > 1))],
    "hypot.reduce of axes": [cube(lambda x: np.hypot.reduce(x, axis=(0, 2)))],
    "hypot.reduce from": [cube(lambda x: np.hypot.reduce(x, axis=2, initial=1.1))],
    **{
        f"{name}.accumulate": [
            matrix(lambda x, f=f: f.accumulate(x)),
            cube(lambda x, f=f: f.accumulate(x, axis=-1)),
        ]
        for name, f in functions("maximum", "minimum", "logaddexp", "subtract", "divide", "fmax")
    },
    **{
        f"{name}.reduceat": [
            on((6,))(lambda x, f=f: f.reduceat(x, [0, 4, 1, 5])),
            cube(lambda x, f=f: f.reduceat(x, [0, 2], axis=2)),
        ]
        for name, f in functions("add", "multiply", "maximum", "logaddexp")
    },
    **{
        f"{name}.at": [
            on((4,), (5,))(lambda x, y, f=f: written(f.at, x, [3, 0, 3, -1, 1], y)),
            on((3, 4), (2, 4))(lambda x, y, f=f: written(f.at, x, [1, 1], y)),
            on((3, 4), (2,))(lambda x, y, f=f: written(f.at, x, ([1, 1], [2, 2]), y)),
        ]
        for name, f in functions("add", "subtract", "multiply", "maximum", "power")
    },
    "negative.at": [vector(lambda x: written(np.negative.at, x, [0, 0, 1]))],
    "where": [
        matrix(lambda x: np.log(x, where=EVEN, out=np.zeros_like(x))),
        tall(lambda x, y: np.multiply(x, y, where=MASK, out=np.copy(x))),
        tall(lambda x, y: np.divide(x, y, out=np.zeros_like(x))),
        vector(lambda x: np.add(x, [1, 2, 3, 4, 5], where=False, out=2 * x)),
    ],
}


CALLS = {**REDUCTIONS, **SHAPES, **CHOICES, **COMPUTING, **PRODUCTS, **LINALG, **FFT}
