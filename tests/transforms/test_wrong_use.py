"""Every mistake with every transform: an error of pullback's own that names the transform.

A mistake is a function, an argument or a setting; each is made with each transform it concerns.
"""

import dataclasses
import re

import numpy as np
import pytest

import pullback as pb

X, V = np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, -1.0])


def checkpointed(f):
    def call(x):
        tracked = pb.tensor(x, requires_grad=True) if isinstance(x, np.ndarray) else x
        return pb.checkpoint(f)(tracked)

    return call


# Each takes a function, and then an argument; settings go to the transform.
CALLS = {
    "grad": lambda f, x=X, **s: pb.grad(f, **s)(x),
    "value_and_grad": lambda f, x=X, **s: pb.value_and_grad(f, **s)(x),
    "elementwise_grad": lambda f, x=X, **s: pb.elementwise_grad(f, **s)(x),
    "vjp": lambda f, x=X, **s: pb.vjp(f, x, **s),
    "jvp": lambda f, x=X, v=V, **s: pb.jvp(
        f, (x,), (v if isinstance(x, np.ndarray) else None,), **s
    ),
    "linearize": lambda f, x=X, **s: pb.linearize(f, x, **s),
    "jacobian": lambda f, x=X, **s: pb.jacobian(f, **s)(x),
    "jacrev": lambda f, x=X, **s: pb.jacrev(f, **s)(x),
    "jacfwd": lambda f, x=X, **s: pb.jacfwd(f, **s)(x),
    "hessian": lambda f, x=X, **s: pb.hessian(f, **s)(x),
    "hvp": lambda f, x=X, v=V, **s: pb.hvp(f, **s)(x, v),
    "vhp": lambda f, x=X, v=V, **s: pb.vhp(f, **s)(x, v),
    "checkpoint": lambda f, x=X: checkpointed(f)(x),
}
SCALAR = {"grad", "value_and_grad", "hvp", "vhp"}  # of a scalar function
GRADIENT = SCALAR | {"elementwise_grad"}
DIFFERENTIATING = CALLS.keys() - {"checkpoint"}
WITH_ARGNUM = DIFFERENTIATING - {"vjp", "jvp", "linearize"}
WITH_AUX = DIFFERENTIATING - {"elementwise_grad", "linearize", "hvp", "vhp"}
FORWARD = {"jvp", "jacfwd", "hvp"}


def square(x):
    return (x * x).sum()


def of(transforms, *mistakes):
    """Return a case for each transform and each mistake: (name of the call, how, kind, words)."""
    return [
        pytest.param(transform, *mistake[1:], id=f"{transform}: {mistake[0]}")
        for mistake in mistakes
        for transform in sorted(transforms)
    ]


def check(transform, call, kind, words):
    with pytest.raises(kind, match=f"(?s){words}") as raised:
        call()
    error = raised.value
    assert isinstance(error, pb.AutogradError)
    assert str(error).startswith((f"{transform}: ", "vjp_fn: ", "jvp_fn: "))


# ---- the function --------------------------------------------------------------------------------
RESULTS = [
    *of(CALLS, ("no function", 3.0, TypeError, "a function required, got float")),
    *of(
        DIFFERENTIATING,
        ("nothing", lambda x: None, TypeError, "a result of .* required, got None.*return"),
        ("text", lambda x: "a", TypeError, "does not depend on argument 0.*must be a Tensor"),
        ("a number that left", lambda x: 2, TypeError, "does not depend on argument 0"),
        ("an empty dict", lambda x: {}, TypeError, "does not depend on argument 0.*got dict"),
        ("an integer tensor", lambda x: (x > 0).sum(), TypeError, "floating-point.*got int64"),
    ),
    *of(
        SCALAR,
        ("no scalar", lambda x: x * 2, RuntimeError, r"a scalar result .*shape \(3,\).*sum\(\)"),
    ),
    *of(
        GRADIENT,
        ("complex numbers", lambda x: (x * 1j).sum(), TypeError, "real floating-point result"),
        ("a pair", lambda x: (x.sum(), x), TypeError, "must be a Tensor, got tuple.*has_aux"),
    ),
]


@pytest.mark.parametrize(("transform", "fun", "kind", "words"), RESULTS)
def test_functions_that_have_no_derivative(transform, fun, kind, words):
    check(transform, lambda: CALLS[transform](fun), kind, words)


@pytest.mark.parametrize("transform", sorted(WITH_AUX))
def test_has_aux_wants_a_pair(transform):
    for result in (lambda x: square(x), lambda x: (square(x), 1, 2)):
        words = "a pair .* required with has_aux=True, got"
        call = lambda f=result: CALLS[transform](f, has_aux=True)  # noqa: E731
        check(transform, call, TypeError, words)


@pytest.mark.parametrize("transform", sorted(CALLS))
def test_an_exception_of_the_function_reaches_the_caller(transform):
    def failing(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        CALLS[transform](failing)
    assert pb.is_grad_enabled()


@pytest.mark.parametrize("transform", sorted(CALLS))
def test_leaving_the_graph_is_an_error(transform):
    with pytest.raises(RuntimeError, match=r"(?s)numpy: .*detach\(\)"):
        CALLS[transform](lambda x: square(pb.asarray(np.asarray(x))))


# ---- the argument --------------------------------------------------------------------------------
ARGUMENTS = of(
    DIFFERENTIATING,
    ("integers alone", np.arange(3), TypeError, "floating-point numbers .* int64.*write 2.0 for 2"),
    ("an integer", 2, TypeError, "floating-point numbers required in argument 0.*int 2"),
    ("bools", X > 0, TypeError, "floating-point numbers required in argument 0.*bool"),
    ("none", None, TypeError, "floating-point numbers required in argument 0, got NoneType"),
    ("text", "abc", TypeError, "floating-point numbers required in argument 0, got str"),
    ("a set", {1.0}, TypeError, "floating-point numbers required in argument 0, got set"),
    ("text inside", {"a": "b"}, TypeError, r"required in argument 0\['a'\], got str"),
    ("integers inside", [1, {"k": 2}], TypeError, r"floating-point numbers .* argument 0\[0\]"),
)


@pytest.mark.parametrize(("transform", "argument", "kind", "words"), ARGUMENTS)
def test_arguments_that_have_no_derivative(transform, argument, kind, words):
    check(transform, lambda: CALLS[transform](square, argument), kind, words)


SETTINGS = of(
    WITH_ARGNUM,
    ("a name that is not there", {"argnum": "y"}, ValueError, "an argument named 'y' required"),
    ("a misspelt name", {"argnum": "xs"}, ValueError, "a function of x.*did you mean 'x'"),
    (
        "a position too far",
        {"argnum": 3},
        ValueError,
        "argnum=3 names.*hint: positions are 0 to 0, and",
    ),
    ("a negative one", {"argnum": -2}, ValueError, "argnum=-2 names required, got 1 positional"),
    ("the same twice", {"argnum": (0, "x")}, ValueError, "each argument once in argnum required"),
    ("a fraction", {"argnum": 0.5}, TypeError, "argnum of positions or names .* float 0.5"),
    ("a bool", {"argnum": True}, TypeError, "argnum of positions or names required, got bool"),
    ("both spellings", {"argnum": 1, "argnums": 1}, ValueError, "argnum or argnums required"),
)


@pytest.mark.parametrize(("transform", "settings", "kind", "words"), SETTINGS)
def test_arguments_that_are_not_there(transform, settings, kind, words):
    def call():
        return CALLS[transform](lambda x: square(x), **settings)

    check(transform, call, kind, words)


@pytest.mark.parametrize("transform", sorted(WITH_ARGNUM - {"hvp", "vhp"}))
def test_a_call_without_arguments(transform):
    made = getattr(pb, transform)(square)
    check(transform, made, ValueError, "argnum=0 names required, got 0 positional arguments")


def test_calls_that_lack_their_arguments():
    check("vjp", lambda: pb.vjp(square), ValueError, "the arguments of square required, got none")
    check("jvp", lambda: pb.jvp(square, (), ()), ValueError, "the arguments of square required")
    check("jvp", lambda: pb.jvp(square, X, V), TypeError, "a tuple of the arguments required as pr")
    check("linearize", lambda: pb.linearize(square), ValueError, "the arguments of square required")
    for product in (pb.hvp, pb.vhp):
        for arguments in ((), (X,)):
            words = "the arguments of square and then a vector required"
            call = lambda p=product, a=arguments: p(square)(*a)  # noqa: E731
            check(product.__name__, call, ValueError, words)


def test_a_mode_that_is_none():
    words = "mode 'reverse', 'forward' or None required, got 'backward'"
    check("jacobian", lambda: pb.jacobian(square, mode="backward"), ValueError, words)


# ---- vectors -------------------------------------------------------------------------------------
# Each takes a container x, and a vector for it, or for a result like it.
def like(p):
    return {"a": p["a"] * 2, "b": p["b"] * 3}


def total(p):
    return (p["a"] ** 2).sum() + (p["b"] ** 2).sum()


P = {"a": X, "b": np.ones(2, np.float32), "n": 2}
VECTORS = {
    "vjp": lambda v: pb.vjp(like, P)[1](v),
    "jvp": lambda v: pb.jvp(like, (P,), (v,)),
    "linearize": lambda v: pb.linearize(like, P)[1](v),
    "hvp": lambda v: pb.hvp(total)(P, v),
    "vhp": lambda v: pb.vhp(total)(P, v),
}
N = {"n": None}
MISTAKES = [
    ("another shape", {"a": V[:2], "b": V[:2]}, ValueError, r"the shape \(3,\) required in .*'a'"),
    ("a scalar", {"a": 1.0, "b": V[:2]}, ValueError, r"the shape \(3,\) required in .*'a'"),
    ("other names", {"a": V, "c": V[:2]}, ValueError, "the structure dict of a, b.*got dict of"),
    ("a missing name", {"a": V}, ValueError, "the structure dict of a, b.*got dict of a"),
    ("a bare array", V, ValueError, "the structure dict of a, b.* required in .*, got ndarray"),
    ("a list", [V, V[:2]], ValueError, "the structure dict of a, b.* required"),
    ("a container for an array", {"a": [V], "b": V[:2]}, ValueError, "the structure .* required"),
    ("integers", {"a": np.arange(3), "b": V[:2]}, TypeError, "real floating-point .*int64"),
    ("complex numbers", {"a": V * 1j, "b": V[:2]}, TypeError, "real floating-point .*complex128"),
    ("text", {"a": "v", "b": V[:2]}, TypeError, "a Tensor, an array or a number required in"),
]


@pytest.mark.parametrize(("transform", "vector", "kind", "words"), of(VECTORS, *MISTAKES))
def test_vectors_that_do_not_fit(transform, vector, kind, words):
    if transform != "vjp" and isinstance(vector, dict):
        vector = {**vector, "n": None}
    check(transform, lambda: VECTORS[transform](vector), kind, words)


@pytest.mark.parametrize("transform", ["jvp", "linearize", "hvp"])
def test_an_integer_has_no_direction(transform):
    vector = {"a": V, "b": V[:2], "n": 1.0}
    words = r"None required in .*'n'\], which belongs to what has no derivative"
    check(transform, lambda: VECTORS[transform](vector), TypeError, words)


@dataclasses.dataclass
class Model:
    w: object
    b: object


def test_containers_of_another_kind_fit_if_their_names_do():
    # A dict of a dataclass's fields has its structure; the result is in that of the argument.
    product = pb.hvp(lambda m: (m.w**2).sum() * m.b)
    found = product(Model(X, 2.0), {"w": V, "b": None})
    np.testing.assert_array_equal(found.w, 4 * V)
    with pytest.raises(ValueError, match="the structure Model of w, b required in the vector, got"):
        product(Model(X, 2.0), {"w": V})


# ---- side effects --------------------------------------------------------------------------------
WRITES = {
    "an element": lambda outside, x: outside.__setitem__(0, x[0]),
    "all": lambda outside, x: outside.__setitem__(..., x),
    "a view": lambda outside, x: outside[1:].__setitem__(0, x[0]),
    "a sum in place": lambda outside, x: outside.add_(x),
    "a copy in place": lambda outside, x: outside.copy_(x),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("transform", sorted(CALLS))
def test_what_depends_on_the_argument_is_not_written_to_a_tensor_from_outside(transform, write):
    outside = pb.zeros(3, dtype=pb.float64)

    def f(x):
        WRITES[write](outside, x)
        return (x * outside).sum()

    words = "from outside.*(make the tensor inside|detach)"
    with pytest.raises(RuntimeError, match=f"(?s){words}") as raised:
        CALLS[transform](f)
    assert isinstance(raised.value, pb.AutogradError)
    assert not outside.requires_grad


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("transform", sorted(DIFFERENTIATING))
def test_a_detached_value_may_be_written(transform, write):
    outside = pb.zeros(3, dtype=pb.float64)

    def f(x):
        WRITES[write](outside, x.detach())
        return square(x)

    CALLS[transform](f)
    assert outside.abs().sum() > 0
    assert not outside.requires_grad


@pytest.mark.parametrize("transform", sorted(CALLS))
def test_a_tensor_of_the_function_may_be_written_and_kept(transform):
    kept = []

    def f(x):
        own = pb.zeros(3, dtype=pb.float64)
        own[1:] = x[:2] * 3
        again = x * 0
        again[0] = own[1]
        kept.append(own)
        return (own * again).sum()

    CALLS[transform](f)
    assert kept


def test_the_value_of_an_enclosing_function_may_be_written_in_an_inner_one():
    def outer(x):
        buffer = pb.zeros((), dtype=pb.float64)

        def inner(y):
            buffer.copy_(x * 2)  # it depends on x, whose tensor this is, and not on y
            return y * buffer

        return pb.grad(inner)(3.0)

    assert pb.grad(outer)(1.0) == 2.0


def test_the_inner_value_is_refused_in_a_tensor_of_the_enclosing_function():
    def outer(x):
        buffer = pb.zeros((), dtype=pb.float64)
        return x * pb.grad(lambda y: buffer.copy_(y) * y * 1.0)(3.0)

    with pytest.raises(
        pb.errors.InplaceError, match=re.escape("values that depend on no argument")
    ):
        pb.grad(outer)(1.0)


def test_a_running_mean_is_kept_in_every_mode():
    mean = pb.zeros((), dtype=pb.float64)

    def f(x):
        mean.lerp_(x.detach().mean(), 0.5)
        return ((x - mean) ** 2).sum()

    for transform in ("grad", "jvp", "hessian"):
        mean.zero_()
        CALLS[transform](f)
        assert float(mean) > 0
