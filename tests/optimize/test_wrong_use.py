"""Mistakes in calls of the optimisers, and the words that their messages must contain."""

import re

import numpy as np
import pytest
from scipy import optimize

import pullback as pb
from pullback.optimize import least_squares, minimize, root

TWO = np.zeros(2)


def square(x):
    return (x * x).sum()


def constrained(constraint):
    return lambda: minimize(square, TWO, constraints=constraint)


def equal(fun, **rest):
    return constrained({"type": "eq", "fun": fun, **rest})


RESULTS = {
    "nothing": (lambda x: None, TypeError, "minimize: a result of .* required, got None"),
    "text": (lambda x: "a", TypeError, "must be a Tensor, got str"),
    "a pair": (
        lambda x: (x.sum(), x),
        TypeError,
        "the value alone required.*place of pb.value_and",
    ),
    "several": (lambda x: x * x, RuntimeError, r"minimize: a scalar result .* got shape \(2,\)"),
    "complex": (lambda x: (x * 1j).sum(), TypeError, "real floating-point result .* complex128"),
    "nan": (lambda x: float("nan"), ValueError, "a finite value of .* at x0 required, got nan"),
    "infinite": (lambda x: float("inf"), ValueError, "a finite value of .* at x0 required, got"),
}


@pytest.mark.parametrize("case", RESULTS)
@pytest.mark.parametrize("method", ["BFGS", "Powell", "trust-exact", "trust-constr"])
def test_what_the_function_must_not_return(case, method):
    fun, kind, text = RESULTS[case]
    with pytest.raises(kind, match=f"(?s){text}") as raised:
        minimize(fun, TWO, method=method)
    assert isinstance(raised.value, pb.AutogradError)


def test_a_number_depends_on_nothing_but_is_a_value():
    with pytest.raises(TypeError, match="does not depend on argument 0: it must be a Tensor, got"):
        minimize(lambda x: 3.0, TWO)
    assert minimize(lambda x: 3, TWO, method="Nelder-Mead").fun == 3


X0 = {
    "an array of integers": (np.array([1, 2]), TypeError, "floating-point numbers required"),
    "integers": ([1, 2], TypeError, r"argument 'x0'\[0\], got int"),
    "complex numbers": (TWO + 0j, TypeError, "real numbers required in x0, got complex128"),
    "no numbers": (np.zeros(0), TypeError, "numbers required in x0, got none"),
    "nothing": ({}, TypeError, "numbers required in x0, got none"),
    "none": (None, TypeError, "floating-point numbers required in argument 'x0', got NoneType"),
    "text": ({"a": "b", "c": 1.0}, TypeError, r"required in argument 'x0'\['a'\], got str"),
}


@pytest.mark.parametrize("case", X0)
@pytest.mark.parametrize("call", [minimize, root, least_squares])
def test_where_a_search_cannot_start(case, call):
    start, kind, text = X0[case]
    with pytest.raises(kind, match=text) as raised:
        call(square, start)
    assert isinstance(raised.value, pb.AutogradError)
    assert str(raised.value).startswith(f"{call.__name__}: ")


def test_an_integer_beside_floats_warns_that_it_stays():
    text = r"minimize: x0\[0\] is the integer 1, which stays as it is\.\nhint: write 1\.0"
    with pytest.warns(UserWarning, match=text):
        found = minimize(lambda x: x[0] ** 2 + x[1] ** 2, [1, 2.0])
    assert found.x[0] == 1
    with pytest.warns(UserWarning, match=r"x0\['a'\]\[1\] is the integer 3"):
        minimize(lambda x: x["a"][0] ** 2, {"a": (1.0, 3)})


def test_a_list_for_a_vector_is_explained():
    with pytest.raises(TypeError) as raised:
        minimize(square, [1.0, 2.0])
    note = "hint: argument 0 of square is a list of numbers: write np.array([1.0, 2.0])"
    assert note in raised.value.__notes__[0]


@pytest.mark.parametrize(
    ("call", "method", "near"),
    [
        (minimize, "LBFGS", "L-BFGS-B"),
        (minimize, "trust_exact", "trust-exact"),
        (root, "hybrid", "hybr"),
    ],
)
def test_a_misspelt_method_names_the_nearest(call, method, near):
    with pytest.raises(ValueError, match=f"Unknown solver {method}") as raised:
        call(square if call is minimize else lambda x: x, TWO, method=method)
    assert raised.value.__notes__ == [f"hint: did you mean '{near}'?"]


def test_scipys_warnings_show_the_line_of_the_user():
    calls = {
        "cannot handle bounds": lambda: minimize(square, TWO, method="BFGS", bounds=[(0, 1)] * 2),
        "Unknown solver options: maxit": lambda: minimize(square, TWO, options={"maxit": 3}),
        "Unknown solver options: tol": lambda: root(lambda x: x - 1, TWO, options={"tol": 3}),
    }
    for text, call in calls.items():
        with pytest.warns(Warning, match=text) as caught:
            call()
        assert [warning.filename for warning in caught] == [__file__]


P = {"a": np.zeros(3), "n": 2}
BOUNDS = {
    "for a name that is not there": ({"aa": (0, 1)}, "got 'aa'\nhint: did you mean 'a'"),
    "no pair": ({"a": 1}, r"a pair (low, high) required in bounds['a'], got 1"),
    "of another shape": ({"a": (0, np.ones(2))}, "numbers of the shape (3,)"),
    "of text": ({"a": ("x", 2)}, "required in bounds['a'], got 'x'"),
    "of what stays": ({"n": (0, 1)}, "None required in bounds['n'], which stays"),
    "too few": ([(0, 1)] * 2, "in a dict of a, n required as bounds, got a list of 2"),
    "for nothing": ([], "in a dict of a, n required as bounds, got a list of 0"),
    "a number": (5, "in a dict of a, n required as bounds, got int"),
}


@pytest.mark.parametrize("case", BOUNDS)
def test_bounds_that_do_not_fit(case):
    bounds, text = BOUNDS[case]
    with pytest.raises(ValueError, match=re.escape(text)) as raised:
        minimize(lambda p: square(p["a"]), P, bounds=bounds)
    assert isinstance(raised.value, pb.AutogradError)


CALLS = {
    "no function": (lambda: minimize(3, TWO), TypeError, "minimize: a function required, got int"),
    "no method": (lambda: minimize(square, TWO, method=3), TypeError, "the name of a method or a"),
    "unknown method": (lambda: minimize(square, TWO, method="no"), ValueError, "Unknown solver"),
    "no callback": (lambda: minimize(square, TWO, callback=3), TypeError, "required as callback"),
    "pairs for another size": (
        lambda: minimize(square, np.zeros(4), bounds=[(0, 1)] * 3),
        *(ValueError, r"4 pairs \(low, high\) required in bounds, one for each .* of x0, got 3"),
    ),
    "two pairs": (
        lambda: minimize(square, np.zeros(4), bounds=[(0, 1)] * 2),
        *(ValueError, r"4 pairs \(low, high\) required in bounds"),
    ),
    "Bounds for another size": (
        lambda: minimize(square, np.zeros(4), bounds=optimize.Bounds([0] * 3, 1)),
        *(ValueError, r"numbers of the shape \(4,\)"),
    ),
    "a gradient": (lambda: minimize(square, TWO, jac=True), TypeError, "no jac .* filled in"),
    "a Hessian": (
        lambda: minimize(square, TWO, hess=pb.hessian(square)),
        *(TypeError, "minimize: no hess required, .*leave it out"),
    ),
    "products": (lambda: minimize(square, TWO, hessp=pb.hvp(square)), TypeError, "no hessp requi"),
    "a Jacobian of root": (lambda: root(square, TWO, jac=True), TypeError, "root: no jac required"),
    "a constraint of another type": (
        constrained({"type": "ineqq", "fun": square}),
        *(ValueError, "'eq' or 'ineq' required as the type .* got 'ineqq'"),
    ),
    "a constraint of no kind": (constrained([3]), TypeError, "required in constraints, got int"),
    "a constraint without a type": (constrained({"fun": square}), ValueError, "got one of 'fun'"),
    "a constraint without function": (equal(3), TypeError, "a function required, got int"),
    "a constraint of nothing": (equal(lambda x: None), TypeError, "a result of .* got None"),
    "a constraint of a constant": (equal(lambda x: 3.0), TypeError, "does not depend on argument"),
    "a short jacobian": (
        equal(square, jac=lambda x: np.zeros(3)),
        *(ValueError, "derivatives by 2 numbers required from jac of a constraint, got 3"),
    ),
    "a root of nothing": (lambda: root(lambda x: None, TWO), TypeError, "root: a result of"),
    "fewer equations": (
        lambda: root(lambda x: x[:1], TWO),
        *(ValueError, r"as many results of .* as numbers in x0, 2, required, got 1"),
    ),
    "complex equations": (lambda: root(lambda x: x * 1j, TWO), TypeError, "root: a real"),
    "text in a result": (lambda: root(lambda x: [x, "b"], TWO), TypeError, "got str"),
    "no equations": (lambda: root(lambda x: [], TWO), TypeError, "numbers required in the result"),
    "no residuals": (lambda: least_squares(lambda x: None, TWO), TypeError, "a result of .* None"),
    "a jacobian": (
        lambda: least_squares(lambda x: x, TWO, jac="3-point"),
        *(TypeError, "least_squares: no jac required, which is filled in"),
    ),
    "half a bound": (
        lambda: least_squares(lambda x: x, TWO, bounds=(0,)),
        *(ValueError, r"a pair \(low, high\) required in bounds"),
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_mistake_is_explained(case):
    call, kind, text = CALLS[case]
    with pytest.raises(kind, match=f"(?s){text}"):
        call()


def test_no_derivative_is_lost_in_silence():
    def solution(theta):
        return minimize(lambda x: ((x - theta) ** 2).sum(), TWO).x.sum()

    with pytest.warns(pb.UntrackedTensorWarning), pytest.raises(TypeError, match="does not depend"):
        pb.grad(solution)(np.ones(2))
    with pytest.raises(RuntimeError, match="forward mode"):
        pb.jvp(solution, (np.ones(2),), (np.ones(2),))
