"""Calls of the smaller modules: cluster, constants, fft, integrate, interpolate, optimize ..."""

import numpy as np
from scipy.cluster import hierarchy
from scipy.stats import qmc
from tests.scipy_support._calls import beside, call, space, table

pair = call((3,), (3,))
points = call((5, 2))
TREE = hierarchy.linkage(np.array([[0.0, 0], [0, 1.5], [4, 4], [4, 5], [9, 1.0]]))
DISTANCES = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10])


def tree(x, of=TREE):
    """Return a tree whose heights carry the gradient."""
    z = beside(x, of)
    return space(x).concat([z[:, :2], z[:, 2:3] * x, z[:, 3:]], axis=1)


def on_tree(*more, **settings):
    """Return a call on a tree."""

    def run(f, x):
        others = (beside(x, m) if isinstance(m, np.ndarray) else m for m in more)
        return f(tree(x), *others, **settings)

    return call((), run=run)


HIERARCHY = table(
    "cluster.hierarchy",
    {
        "average centroid complete median single ward weighted linkage": call((10,)),
        "cophenet leaves_list maxdists num_obs_linkage inconsistent": on_tree(),
        "is_monotonic is_valid_linkage to_mlab_linkage": on_tree(),
        "to_tree": call((), run=lambda f, x: [f(tree(x)).dist]),
        "dendrogram": on_tree(no_plot=True),
        "correspond": on_tree(DISTANCES),
        "fcluster": on_tree(2.0),
        "fclusterdata": call((5, 2), t=1.0),
        "from_mlab_linkage": call((), run=lambda f, x: f(tree(x, hierarchy.to_mlab_linkage(TREE)))),
        "is_isomorphic": call((4,), (4,)),
        "is_valid_im": call((), run=lambda f, x: f(tree(x, hierarchy.inconsistent(TREE)))),
        "leaders": on_tree(np.array([1, 1, 2, 2, 3], dtype=np.int32)),
        "maxRstat": on_tree(hierarchy.inconsistent(TREE), 1),
        "maxinconsts": on_tree(hierarchy.inconsistent(TREE)),
        "optimal_leaf_ordering": on_tree(DISTANCES),
    },
)
VQ = table(
    "cluster.vq",
    {
        "whiten": points,
        "vq": call((5, 2), (2, 2)),
        "kmeans kmeans2": call((6, 2), (2, 2)),
    },
)
CONSTANTS = table(
    "constants",
    {
        "convert_temperature": call((3,), old_scale="Celsius", new_scale="Fahrenheit"),
        "lambda2nu nu2lambda": call((3,)),
    },
)


def fields(*names):
    """Return what reads these fields of a result."""
    return lambda result: [result[name] for name in names]


DIFFERENTIATE = table(
    "differentiate",
    {
        "derivative": call(
            (3,),
            (),
            run=lambda f, x, a: fields("df")(f(lambda x, a: a * space(x).exp(x), x, args=(a,))),
        ),
        "jacobian": call((3,), run=lambda f, x: fields("df")(f(lambda x: space(x).exp(x), x))),
        "hessian": call(
            (2,), run=lambda f, x: fields("ddf")(f(lambda x: x[0] ** 3 * x[1] ** 2, x))
        ),
    },
)
wave = call((4,), low=-2.0)
plane = call((3, 4), low=-2.0)
COMPLEX = {"kind": "c"}
FFT = table(
    "fft",
    {
        "fft ifft": [wave, call((4,), kind="c"), call((3, 4), n=5, axis=0, norm="ortho")],
        "rfft ihfft": [wave, call((5,), n=4)],
        "irfft hfft": call((4,), kind="c"),
        "fft2 ifft2 fftn ifftn": [plane, call((3, 4), kind="c")],
        "rfft2 rfftn ihfft2 ihfftn": plane,
        "irfft2 irfftn hfft2 hfftn": call((3, 4), kind="c"),
        "fftshift ifftshift": [plane, call((5,))],
        "fftfreq rfftfreq": call((), run=lambda f, x: f(5, 0.5, xp=space(x))),
        "dct idct dst idst": [wave, call((4,), type=3, norm="ortho")],
        "dctn idctn dstn idstn": plane,
        "fht ifht": call((8,), dln=0.1, mu=0.5),
    },
)


def cubature(f, a, x, y):
    return f(lambda t, a: space(t).exp(-a * t[:, 0]), x * 0, x + y, args=(a,)).estimate


def nsum(f, a):
    result = f(lambda k, a: 1 / (k + a) ** 2, beside(a, 1.0), beside(a, np.inf), args=(a,))
    return result["sum"]


def qmc_quad(f, a, x):
    def bell(t):
        xp = space(t)
        return xp.exp(-a * xp.sum(t * t, axis=0))

    result = f(bell, x * 0, x, n_points=16, qrng=qmc.Halton(2, rng=3))
    return result.integral, result.standard_error


INTEGRATE = table(
    "integrate",
    {
        "trapezoid cumulative_trapezoid": [
            call((5,)),
            call((3, 5), (5,), run=lambda f, y, x: f(y, x=space(x).cumulative_sum(x))),
        ],
        "cumulative_simpson": [
            call((5,)),
            call((5,), (5,), run=lambda f, y, x: f(y, x=space(x).cumulative_sum(x))),
        ],
        "romb": call((5,)),
        "cubature": call((), (1,), (1,), run=cubature),
        "nsum": call((), run=nsum),
        "qmc_quad": call((), (2,), run=qmc_quad),
        "tanhsinh": [
            call(
                (),
                run=lambda f, a: fields("integral")(
                    f(lambda t, a: space(t).exp(-a * t), beside(a, 0.0), beside(a, 1.0), args=(a,))
                ),
            ),
            call(
                (),
                (),
                run=lambda f, a, b: fields("integral")(f(lambda t: space(t).exp(-t), a, a + b)),
            ),
        ],
    },
)


KNOTS = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
WHERE = np.array([0.5, 2.2, 3.7])
curve = call((8,), (3,), run=lambda f, y, x: f(beside(y, KNOTS), y)(x))
INTERPOLATE = table(
    "interpolate",
    {
        "Akima1DInterpolator CubicSpline PchipInterpolator": curve,
        "make_interp_spline make_smoothing_spline make_splrep": curve,
        "CubicHermiteSpline": call(
            (8,), (8,), (3,), run=lambda f, y, d, x: f(beside(y, KNOTS), y, d)(x)
        ),
        "make_lsq_spline": call(
            (8,),
            (3,),
            run=lambda f, y, x: f(beside(y, KNOTS), y, beside(y, [0.0, 0, 0, 0, 3.5, 7, 7, 7, 7]))(
                x
            ),
        ),
        "BSpline": call((4,), (3,), run=lambda f, c, x: f(beside(c, np.arange(8.0)), c, 3)(x)),
        "NdBSpline": call(
            (4, 4),
            (3, 2),
            run=lambda f, c, x: f((beside(c, np.arange(8.0)), beside(c, np.arange(8.0))), c, 3)(
                x + 3
            ),
        ),
        "BPoly PPoly": call((3, 2), (3,), run=lambda f, c, x: f(c, beside(c, [0.0, 1.0, 2.0]))(x)),
        "RBFInterpolator": call((6, 2), (6,), (3, 2), run=lambda f, y, d, x: f(y, d)(x)),
        "RegularGridInterpolator": call(
            (3, 4),
            (3, 2),
            run=lambda f, v, x: f((beside(v, [0.0, 1, 2]), beside(v, [0.0, 1, 2, 3])), v)(x),
        ),
        "generate_knots": call((8,), run=lambda f, y: list(f(beside(y, KNOTS), y, s=0.1))),
        "make_splprep": call((2, 8), run=lambda f, x: f(x)[0](beside(x, [0.2, 0.5]))),
    },
)
LINALG = table(
    "linalg",
    {
        "block_diag": call((2, 2), (1, 3)),
        "fiedler": call((4,)),
        "orthogonal_procrustes": call((4, 3), (4, 3)),
    },
)
OPTIMIZE = table(
    "optimize",
    {
        "rosen rosen_der rosen_hess": call((4,)),
        "rosen_hess_prod": call((4,), (4,)),
    },
)


def cubic(x, a):
    """A function with one root and one minimum in the intervals used."""
    return x**3 - a


def bowl(x, a):
    return (x - a) ** 2 + x**4


ELEMENTWISE = table(
    "optimize.elementwise",
    {
        "bracket_root": call(
            (3,),
            run=lambda f, a: fields("bracket", "f_bracket")(f(cubic, a * 0, a * 0 + 1, args=(a,))),
        ),
        "find_root": call(
            (3,), run=lambda f, a: fields("x", "f_x")(f(cubic, (a * 0, a * 0 + 3), args=(a,)))
        ),
        "bracket_minimum": call(
            (3,), run=lambda f, a: fields("bracket", "f_bracket")(f(bowl, a * 0, args=(a,)))
        ),
        "find_minimum": call(
            (3,),
            run=lambda f, a: fields("x", "f_x")(
                f(bowl, (a * 0 - 1, a * 0 + 0.4, a * 0 + 4), args=(a,))
            ),
        ),
    },
)
CALLS = {
    **HIERARCHY,
    **VQ,
    **CONSTANTS,
    **DIFFERENTIATE,
    **FFT,
    **INTEGRATE,
    **INTERPOLATE,
    **LINALG,
    **OPTIMIZE,
    **ELEMENTWISE,
}
