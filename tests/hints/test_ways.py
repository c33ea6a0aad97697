"""What errors name instead of a function of NumPy's or SciPy's exists, and computes the same."""

import ast
import functools
import importlib
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.spatial.distance
import scipy.special
import scipy.stats

import pullback as pb
from pullback.hints import table, way_out
from pullback.hints.scipy_functions import WITH_SWITCH

SOURCE = Path(pb.__file__).parent
NAME = re.compile(r"(?<![\w.])(?:pb|pullback|np|scipy)(?:\.[A-Za-z_]\w*)+")
ROOTS = {"pb": pb, "pullback": pb, "np": np, "scipy": scipy}


def names_in(path):
    """Return the dotted names in the texts of a file that are no docstrings."""
    tree = ast.parse(path.read_text())
    alone = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    constants = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in alone)
    texts = (n.value for n in constants if isinstance(n.value, str) and " " in n.value)
    return {name for text in texts for name in NAME.findall(text)}


@functools.cache
def exists(name):
    root, *rest = name.split(".")
    value, module = ROOTS[root], ROOTS[root].__name__
    for part in rest:
        module = f"{module}.{part}"
        try:
            value = getattr(value, part)
        except AttributeError:
            try:  # a module that is not exported
                value = importlib.import_module(module)
            except ImportError:
                return False
    return True


def test_every_name_in_a_text_of_the_package_exists():
    found = {name: path for path in SOURCE.rglob("*.py") for name in names_in(path)}
    assert len(found) > 200
    assert not exists("np.zeta")
    assert {name: path for name, path in found.items() if not exists(name)} == {}


X = np.array([0.3, 0.5, 0.9])
Y = np.array([0.7, 0.2, 0.4])
A = np.array([[3.0, 1.0, 0.5], [1.0, 2.0, 0.3], [0.5, 0.3, 1.5]])
B = np.array([[1.0, 0.2, 0.0], [0.2, 2.0, 0.1], [0.0, 0.1, 1.0]])

# The name below scipy: the arguments of the function, those that the way names.
FORMULAS = {
    "linalg.toeplitz": ((X, Y[:2]), {"c": X, "r": Y[:2], "m": 3, "n": 2}),
    "linalg.circulant": ((X,), {"c": X, "n": 3}),
    "linalg.hankel": ((X, Y[:2]), {"c": X, "r": Y[:2], "m": 3, "n": 2}),
    "linalg.khatri_rao": ((A, B), {"a": A, "b": B, "n": 3}),
    "linalg.solve_continuous_lyapunov": ((A, B), {"a": A, "q": B}),
    "linalg.solve_discrete_lyapunov": ((A / 9, B), {"a": A / 9, "q": B, "n": 3}),
    "linalg.fractional_matrix_power": ((A, 0.4), {"a": A, "p": 0.4}),
    "special.cosm1": ((X,), {"t": X}),
    "special.powm1": ((X, Y), {"x": X, "y": Y}),
    "special.exprel": ((X,), {"t": X}),
    "special.binom": ((X + 3, Y + 1), {"n": X + 3, "k": Y + 1}),
    "special.perm": ((X + 3, Y + 1), {"n": X + 3, "k": Y + 1}),
    "special.factorial": ((np.array([3.0, 4.0]),), {"n": np.array([3.0, 4.0])}),
    "special.poch": ((X, Y), {"z": X, "m": Y}),
    "special.huber": ((0.4, X), {"d": 0.4, "r": X}),
    "special.pseudo_huber": ((0.4, X), {"d": 0.4, "r": X}),
    "special.rel_entr": ((X, Y), {"x": X, "y": Y}),
    "special.kl_div": ((X, Y), {"x": X, "y": Y}),
    "special.log_expit": ((X,), {"t": X}),
    "special.zetac": ((X + 2,), {"t": X + 2}),
    "special.diric": ((X, 5), {"t": X, "n": 5}),
    "special.ndtri_exp": ((-X,), {"t": -X}),
    "special.nrdtrimn": ((X, 2.0, 1.0), {"p": X, "std": 2.0, "x": 1.0}),
    "special.nrdtrisd": ((0.5, X[::2], 1.0), {"mean": 0.5, "p": X[::2], "x": 1.0}),
    "special.chdtr": ((3.0, X), {"v": 3.0, "x": X}),
    "special.chdtrc": ((3.0, X), {"v": 3.0, "x": X}),
    "special.chdtri": ((3.0, X), {"v": 3.0, "p": X}),
    "special.gdtrc": ((2.0, 3.0, X), {"a": 2.0, "b": 3.0, "x": X}),
    "special.pdtr": ((2.0, X), {"k": 2.0, "m": X}),
    "special.pdtrc": ((2.0, X), {"k": 2.0, "m": X}),
    "special.bdtr": ((2.0, 5, X), {"k": 2.0, "n": 5, "p": X}),
    "special.bdtrc": ((2.0, 5, X), {"k": 2.0, "n": 5, "p": X}),
    "special.bdtri": ((2.0, 5, X), {"k": 2.0, "n": 5, "y": X}),
    "special.nbdtr": ((2, 5, X), {"k": 2, "n": 5, "p": X}),
    "special.nbdtrc": ((2, 5, X), {"k": 2, "n": 5, "p": X}),
    "special.nbdtri": ((2, 5, X), {"k": 2, "n": 5, "y": X}),
    "special.betainccinv": ((2.0, 3.0, X), {"a": 2.0, "b": 3.0, "y": X}),
    **{f"special.spherical_{kind}n": ((2, X), {"n": 2, "z": X}) for kind in "jyik"},
    "special.hyp0f1": ((1.5, X), {"v": pb.asarray(np.array(1.5)), "z": X}),
    "special.eval_legendre": ((3, X), {"n": 3, "t": X}),
    "special.eval_genlaguerre": ((3, 0.5, X), {"n": 3, "alpha": 0.5, "t": X}),
    "special.eval_jacobi": ((3, 0.5, 1.5, X), {"n": 3, "a": 0.5, "b": 1.5, "t": X}),
    "stats.wasserstein_distance": ((X, Y), {"u": X, "v": Y}),
    "stats.zscore": ((X,), {"t": X}),
    "stats.gmean": ((X,), {"t": X}),
    "stats.hmean": ((X,), {"t": X}),
    "stats.pmean": ((X, 3.0), {"t": X, "p": 3.0}),
    "stats.moment": ((X, 3), {"t": X, "order": 3}),
    "stats.skew": ((X,), {"t": X}),
    "stats.kurtosis": ((X,), {"t": X}),
    "stats.sem": ((X,), {"t": X, "n": 3}),
    "spatial.distance.euclidean": ((X, Y), {"u": X, "v": Y}),
    "spatial.distance.sqeuclidean": ((X, Y), {"u": X, "v": Y}),
    "spatial.distance.cityblock": ((X, Y), {"u": X, "v": Y}),
    "spatial.distance.chebyshev": ((X, Y), {"u": X, "v": Y}),
    "spatial.distance.minkowski": ((X, Y, 3.0), {"u": X, "v": Y, "p": 3.0}),
    "spatial.distance.cosine": ((X, Y), {"u": X, "v": Y}),
    "spatial.distance.correlation": ((X, Y), {"u": X, "v": Y}),
    "spatial.distance.mahalanobis": ((X, Y, A), {"u": X, "v": Y, "VI": A}),
    "spatial.distance.seuclidean": ((X, Y, X + 1), {"u": X, "v": Y, "V": X + 1}),
    "spatial.distance.braycurtis": ((X, Y), {"u": X, "v": Y}),
    "spatial.distance.canberra": ((X, Y), {"u": X, "v": Y}),
}
# The shapes of a distribution, by position and by the names of the way.
PPF = {
    "norm": ((), {}),
    "lognorm": ((0.7,), {"s": 0.7}),
    "t": ((3.0,), {"df": 3.0}),
    "gamma": ((2.0,), {"a": 2.0}),
    "chi2": ((3.0,), {"df": 3.0}),
    "invgamma": ((2.0,), {"a": 2.0}),
    "beta": ((2.0, 3.0), {"a": 2.0, "b": 3.0}),
    "expon": ((), {}),
    "uniform": ((), {}),
    "logistic": ((), {}),
    "cauchy": ((), {}),
    "laplace": ((), {}),
    "pareto": ((2.0,), {"b": 2.0}),
    "weibull_min": ((2.0,), {"c": 2.0}),
    "halfnorm": ((), {}),
}


def evaluated(way, given):
    """Return the value of the formula that a way begins with."""
    text = re.split(", with | for ", way)[0]
    return eval(text, {"np": np, "pb": pb, "scipy": scipy, **given})


def function_of(name):
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(f"scipy.{module}"), function)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_gives_what_scipys_function_gives_and_has_a_gradient(name):
    args, given = FORMULAS[name]
    tracked = {
        k: pb.tensor(v, requires_grad=True) if isinstance(v, np.ndarray) else v
        for k, v in given.items()
    }
    result = evaluated(table.ways("scipy")[name], tracked)
    assert result.requires_grad
    np.testing.assert_allclose(result.detach().numpy(), function_of(name)(*args), rtol=1e-8)


@pytest.mark.parametrize("name", PPF)
def test_a_formula_of_a_distributions_quantiles_gives_what_scipy_gives(name):
    args, given = PPF[name]
    q = pb.tensor(np.array([0.2, 0.6, 0.9]), requires_grad=True)
    way = table.ways("scipy")[f"stats.{name}.ppf"]
    result = evaluated(way, {"q": q, "loc": 0.0, "scale": 1.0, **given})
    assert result.requires_grad
    expected = getattr(scipy.stats, name).ppf(q.detach().numpy(), *args)
    np.testing.assert_allclose(result.detach().numpy(), expected, rtol=1e-8)


def test_a_linear_function_is_a_product_with_a_constant():
    t = pb.tensor(np.array([0.3, 0.5, 0.9, 0.4]), requires_grad=True)
    x = t.detach().numpy()
    product = scipy.fft.dct(np.eye(4), axis=0) @ t
    np.testing.assert_allclose(product.detach().numpy(), scipy.fft.dct(x))
    product = scipy.signal.lfilter([1.0, 0.5], [1.0, -0.3], np.eye(4), axis=0) @ t
    np.testing.assert_allclose(
        product.detach().numpy(), scipy.signal.lfilter([1.0, 0.5], [1.0, -0.3], x)
    )
    assert product.requires_grad


def test_what_takes_tensors_with_the_switch_is_what_the_document_lists():
    text = (Path(__file__).parents[2] / "docs" / "scipy.md").read_text()
    listed = text.partition("### With a gradient")[2].partition("\n### ")[0]
    for module, names in WITH_SWITCH.items():
        if module == "spatial.transform":
            continue
        row = re.search(rf"\*\*{re.escape(module)}\*\*: (.*?)(?:\n\n|\Z)", listed, re.DOTALL)[1]
        there = set(re.findall(r"`(\w+)`", row))
        assert set(names.split()) <= there
        missing = there - set(names.split()) - set(pb.interop.scipy.special.__all__)
        assert {n for n in missing if not way_out(f"scipy.{module}.{n}")} == set()


def test_an_error_names_the_switch_unless_it_is_set(monkeypatch):
    monkeypatch.delenv("SCIPY_ARRAY_API", raising=False)
    assert "scipy.stats.kurtosis with SCIPY_ARRAY_API=1" in way_out("scipy.stats.kurtosis")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    assert "SCIPY_ARRAY_API" not in way_out("scipy.stats.kurtosis")
