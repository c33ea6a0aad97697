"""One wrong rule for each explanation, and what is said of it."""

import numpy as np
import pytest
from tests.check._explain import SEEDS, evidence

import pullback as pb
from pullback.check import check_op
from pullback.check.explain import cause_of, diagnose

X = np.array([0.4, -1.3, 2.1, 0.7, -0.2, 1.6])
W = np.array([1.2, 0.7, -0.4, 0.9, 1.5, -0.8])
ROWS = np.random.default_rng(3).normal(size=(4, 5))
SQUARE = np.random.default_rng(4).normal(size=(4, 4))
MASK = np.array([True, False, True, True, False, False])


def op_of(forward, backward, name="op"):
    """Return an operation by functions of arrays; ``backward(g, *args)`` gives ``x``'s gradient."""

    def saving(ctx, x, y=None, k=2.0):
        ctx.args = (x.numpy().copy(), None if y is None else np.asarray(y), k)
        out = forward(*ctx.args)
        return tuple(map(pb.asarray, out)) if isinstance(out, tuple) else pb.asarray(out)

    @pb.once_differentiable
    def rule(ctx, *grads):
        g = grads[0].numpy() if len(grads) == 1 else [g.numpy() for g in grads]
        with np.errstate(all="ignore"):
            return {"x": pb.asarray(np.asarray(backward(g, *ctx.args)))}

    return pb.autograd_function(saving, rule, name=name)


def found(op, x, *args, seed=0):
    return cause_of(evidence(op, pb.tensor(x, requires_grad=True), *args, seed=seed), 0)


def reverse_cumsum(a):
    return np.cumsum(a[::-1])[::-1]


def log_softmax(x):
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def windows(x):
    return np.array([x[max(0, k - 2) : k + 1].mean() for k in range(len(x))])


def by_whole_windows(g, x, y, k):
    grad = np.zeros_like(x)
    for n in range(len(x)):
        grad[max(0, n - 2) : n + 1] += g[n] / 3
    return grad


def norm_as_constant(g, x, y, k):
    norm = np.linalg.norm(x)
    return np.arange(24.0).reshape(6, 4) @ g * (1 - np.tanh(x / norm) ** 2) / norm


def exchanged_weights(g, x, y, k):
    order, grad = np.argsort(x), np.zeros_like(x)
    grad[order[2]], grad[order[3]] = 0.7 * g, 0.3 * g
    return grad


TIMES = np.arange(6)
WINDOW = np.hamming(6)
PERMUTATION = np.array([2, 0, 3, 1, 5, 4])
COUNTS = np.array([3, 1, 4, 2])

# Forward of x, y and k; its wrong rule; further arguments; the cause, and words of its text.
CASES = {
    "one output negated": (
        lambda x, y, k: (np.sin(x), np.cos(x)),
        lambda g, x, y, k: g[0] * np.cos(x) + g[1] * np.sin(x),
        (X,),
        "sign",
        "has the wrong sign in what comes from output 1",
    ),
    "mean of grad_output": (
        lambda x, y, k: np.sin(x),
        lambda g, x, y, k: g.mean() * np.cos(x),
        (X,),
        "nonlinear",
        "sees only the mean of grad_output",
    ),
    "grad_output rolled": (
        lambda x, y, k: np.sin(x) * y,
        lambda g, x, y, k: np.roll(g, 1) * np.cos(x) * y,
        (X, W),
        "misplaced",
        "grad_output is used as if it were rolled by 1 along axis 0",
    ),
    "grad_output permuted": (
        lambda x, y, k: np.sin(x) * y,
        lambda g, x, y, k: g[PERMUTATION] * np.cos(x) * y,
        (X, W),
        "misplaced",
        "grad_output is used as if it were permuted, in the order [1 3 0 2 5 4]",
    ),
    "the order once more": (
        lambda x, y, k: x[PERMUTATION],
        lambda g, x, y, k: g[PERMUTATION],
        (X,),
        "transposed",
        "in the same order, or shifted the same way, once more",
    ),
    "cumsum from the wrong end": (
        lambda x, y, k: np.sum(np.cumsum(x) ** 3),
        lambda g, x, y, k: g * np.cumsum(3 * np.cumsum(x) ** 2),
        (X,),
        "misplaced",
        "a running sum (cumsum) starts from the first element along axis 0, the wrong end",
    ),
    "weights exchanged": (
        lambda x, y, k: 0.3 * np.sort(x)[2] + 0.7 * np.sort(x)[3],
        exchanged_weights,
        (np.array([0.4, 0.3, 2.1, 0.7, -0.2, 1.6, 5.0]),),
        "misplaced",
        "are permuted (exchanged)",
    ),
    "a setting ignored": (
        lambda x, y, k: np.exp(k * x) + x,
        lambda g, x, y, k: g * (2.0 * np.exp(2.0 * x) + 1),
        (X, None, 3.0),
        "other-value",
        "the gradient is that with `k` = 2.0, not 3.0",
    ),
    "a mask inverted": (
        lambda x, y, k: np.where(y, np.sin(x), x),
        lambda g, x, y, k: g * np.where(y, 1.0, np.cos(x)),
        (X, MASK),
        "other-value",
        "`y` is used as if it were the inverse mask",
    ),
    "at the output": (
        lambda x, y, k: np.sinh(x),
        lambda g, x, y, k: g * np.cosh(np.sinh(x)),
        (X,),
        "other-value",
        "the derivative is taken at the output instead of `x`",
    ),
    "formula of the output": (
        lambda x, y, k: np.log1p(np.exp(x)) + 1,
        lambda g, x, y, k: g * (1 - np.exp(1 - x)),
        (X,),
        "other-value",
        "the formula for the output is applied to `x` itself",
    ),
    "eps left out": (
        lambda x, y, k: x / np.sqrt((x * x).mean() + k),
        lambda g, x, y, k: (
            g / np.sqrt((x * x).mean()) - x * (g * x).mean() / np.sqrt((x * x).mean()) ** 3
        ),
        (X, None, 1e-4),
        "other-value",
        "the gradient is that with `k` = 0.0, not 0.0001",
    ),
    "a factor missing": (
        lambda x, y, k: x * x,
        lambda g, x, y, k: g,
        (X,),
        "extra-factor",
        "the factor 2 * `x` is missing from the gradient of `x`",
    ),
    "weights left out": (
        lambda x, y, k: np.cumsum(y * x),
        lambda g, x, y, k: reverse_cumsum(g),
        (X, W),
        "extra-factor",
        "`y` is used as if it were one everywhere",
    ),
    "a norm left out": (
        lambda x, y, k: np.sqrt((x**2).sum(axis=1)),
        lambda g, x, y, k: g[:, None] * x,
        (ROWS,),
        "extra-factor",
        "has the factor the norm of `x` along axis 1 too many",
    ),
    "the index left out": (
        lambda x, y, k: np.sin(x * TIMES),
        lambda g, x, y, k: g * np.cos(x * TIMES),
        (X,),
        "extra-factor",
        "there it lacks the factor the index (from 0) along axis 0",
    ),
    "weights of the index": (
        lambda x, y, k: np.cumsum(np.sin(x) * WINDOW),
        lambda g, x, y, k: reverse_cumsum(g) * np.cos(x),
        (X,),
        "extra-factor",
        "off by a factor of its own, 1.1 to 12.5, the same at other values of `x`",
    ),
    "another count": (
        lambda x, y, k: windows(x),
        by_whole_windows,
        (X,),
        "extra-factor",
        "where the index along axis 0 is less than 2 has the factor 0.3333 * the index (from 1)",
    ),
    "only the diagonal": (
        lambda x, y, k: np.cumsum(np.sin(x)),
        lambda g, x, y, k: g * np.cos(x),
        (X,),
        "diagonal",
        "the terms that couple the elements are missing",
    ),
    "the last element left out": (
        lambda x, y, k: SQUARE @ np.sin(x),
        lambda g, x, y, k: SQUARE[:-1].T @ g[:-1] * np.cos(x),
        (X[:4],),
        "missing-term",
        "elements of the output where the index along axis 0 is the last is missing",
    ),
    "all but the diagonal": (
        lambda x, y, k: SQUARE @ x,
        lambda g, x, y, k: (SQUARE - np.diag(np.diag(SQUARE))).T @ g,
        (X[:4],),
        "missing-term",
        "elements of the output at the same index is missing",
    ),
    "an end of a range": (
        lambda x, y, k: np.sum(x**2 * (np.arange(5) < y[:, None])),
        lambda g, x, y, k: g * 2 * x * (np.arange(5) < y[:, None] - 1),
        (ROWS, COUNTS),
        "elements",
        "where the index along axis 1 == y - 1 (off by one?); there it is zero",
    ),
    "a hidden line": (
        lambda x, y, k: np.where(y.any(axis=1), np.where(y, x, 0.0).sum(axis=1), x.sum(axis=1)),
        lambda g, x, y, k: g[:, None] * y * np.where(y.any(axis=1, keepdims=True), 1.0, np.nan),
        (ROWS, np.arange(20).reshape(4, 5) % 3 + [[0], [0], [2], [0]] < [[2], [2], [0], [2]]),
        "nan",
        "all where y is false everywhere along axis 1",
    ),
    "a normalisation taken for a constant": (
        lambda x, y, k: log_softmax(x)[:, :3] ** 2,
        lambda g, x, y, k: np.pad(2 * g * log_softmax(x)[:, :3], ((0, 0), (0, 2))) * np.cos(x),
        (ROWS,),
        "missing-term",
        "do not change when all columns of `x` are moved alike",
    ),
    "a norm taken for a constant": (
        lambda x, y, k: np.tanh(x / np.linalg.norm(x)) @ np.arange(24.0).reshape(6, 4),
        norm_as_constant,
        (X,),
        "missing-term",
        "do not change when `x` is scaled",
    ),
    "a term constant along an axis": (
        lambda x, y, k: (x * np.log(np.abs(x))).sum(axis=1),
        lambda g, x, y, k: g[:, None] * np.log(np.abs(x)),
        (ROWS,),
        "missing-term",
        "constant along axis 1",
    ),
    "a known term": (
        lambda x, y, k: np.sum(np.sin(x) * y**2 + x * y),
        lambda g, x, y, k: g * np.cos(x) * y**2,
        (X, W),
        "missing-term",
        "a multiple of `y` along axis 0",
    ),
    "right for symmetric matrices": (
        lambda x, y, k: y @ (y @ x) + x**2,
        lambda g, x, y, k: y.T @ (y @ g) + 2 * x * g,
        (X[:4], SQUARE),
        "missing-term",
        "it is right if `y` is symmetric",
    ),
    "a slope kept from an earlier call": (
        lambda x, y, k: np.sin(x) * x,
        lambda g, x, y, k: g * np.cos(np.cumsum(X)) * X,
        (X,),
        "state",
        "does not change when the values do",
    ),
    "a part of one number's gradient": (
        lambda x, y, k: np.exp(x) + np.sin(x**3),
        lambda g, x, y, k: g * np.exp(x),
        (np.array(0.7),),
        "missing-term",
        "a part of the gradient of `x` is missing",
    ),
    "the gradient of another function": (
        lambda x, y, k: np.sin(x @ SQUARE @ x) + (x @ x) ** 2,
        lambda g, x, y, k: (
            g * (np.cos(x @ SQUARE @ x) * (SQUARE + SQUARE.T) @ x + np.exp(x) * np.exp(x).sum())
        ),
        (X[:4],),
        "missing-term",
        "is the gradient of a function, but of another one",
    ),
    "the gradient of no function": (
        lambda x, y, k: np.sin(x @ SQUARE @ x) + (x @ x) ** 2,
        lambda g, x, y, k: (
            g * (np.cos(x @ SQUARE @ x) * (SQUARE + SQUARE.T) @ x + np.exp(x) * (SQUARE @ x))
        ),
        (X[:4],),
        "missing-term",
        "no function has the gradient that backward returns",
    ),
    "imprecise": (
        lambda x, y, k: np.exp(x),
        lambda g, x, y, k: g * (np.exp(x + 0.02) - np.exp(x - 0.02)) / 0.04,
        (X,),
        "precision",
        "is right to 7e-5 only",
    ),
    "float32 inside": (
        lambda x, y, k: np.exp(x),
        lambda g, x, y, k: g * np.exp(x.astype(np.float32)),
        (X,),
        "precision",
        "float32",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_rule_is_explained(case):
    forward, rule, args, name, words = CASES[case]
    cause = found(op_of(forward, rule), *args)
    assert (cause.name, words in cause.text) == (name, True), cause.text


@SEEDS
def test_sums_over_the_wrong_axis_are_named(seed):
    op = op_of(lambda x, y, k: y * x, lambda g, x, y, k: (g * y).mean(axis=0))
    cause = found(op, X[:5], ROWS, seed=seed)
    assert cause.text == "`x` has the mean over axis 0 instead of the sum"


@pytest.mark.parametrize("factor", [1.005, 0.995, 1.1])
def test_a_factor_near_one_is_no_lack_of_precision(factor):
    op = op_of(lambda x, y, k: np.exp(x), lambda g, x, y, k: g * np.exp(x) * factor)
    assert found(op, X).name == "factor"


def test_two_numbers_have_a_ratio_but_no_factor():
    def forward(ctx, x, scale):
        ctx.save_for_backward(x=x, scale=scale)
        return (x * scale).sin().sum()

    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return {"x": g * scale * (x * scale).cos(), "scale": g * (x * scale).cos().sum()}

    op = pb.autograd_function(forward, backward, name="op")
    assert cause_of(evidence(op, X, np.array(0.7)), 1).name != "factor"


# -- several arguments -----------------------------------------------------------------------------
def mixture(rule):
    """Return gate * a + (1 - gate) * b with another gradient of the gate."""

    def forward(ctx, gate, a, b):
        ctx.save_for_backward(gate=gate, a=a, b=b)
        return gate * a.cumsum(0) + (1 - gate) * b.cumsum(0)

    def backward(ctx, g):
        s = ctx.saved_variables
        back = [(g * w).flip(0).cumsum(0).flip(0) for w in (s.gate, 1 - s.gate)]
        return {"gate": rule(g, s), "a": back[0], "b": back[1]}

    return pb.autograd_function(forward, backward, name="mixture")


def test_what_a_gradient_ignores_is_named():
    args = [np.random.default_rng(k).uniform(0.2, 0.8, 4) for k in range(3)]
    cause = cause_of(evidence(mixture(lambda g, s: g * s.a.cumsum(0)), *args), 0)
    assert cause.name == "missing-term"
    assert "it does not change with `b`, though it should" in cause.text


def test_what_alone_a_gradient_changes_wrongly_with_is_named():
    args = [np.random.default_rng(k).uniform(0.2, 0.8, 4) for k in range(3)]
    op = mixture(lambda g, s: g * (s.a.cumsum(0) - s.b.cumsum(0) * s.b.sin()))
    cause = cause_of(evidence(op, *args), 0)
    assert "it changes as it should with `a`, but not with `b`" in cause.text


def test_the_only_argument_that_a_factor_changes_with_is_named():
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x * w).sin()

    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return {"x": g * w * (x * w).cos(), "w": g * (x.exp() + x.sin()) * (x * w).cos()}

    op = pb.autograd_function(forward, backward, name="op")
    cause = cause_of(evidence(op, X, W), 1)
    assert cause.text == "`w` is off by a factor that changes with `x`, not with `w`"


def test_the_term_of_a_normalising_constant_is_named():
    def forward(ctx, x, sigma):
        ctx.save_for_backward(x=x, sigma=sigma)
        return -0.5 * ((x / sigma) ** 2).sum() - len(x) * pb.log(sigma)

    def backward(ctx, g):
        x, sigma = ctx.saved_tensors
        return {"x": -g * x / sigma**2, "sigma": g * (x**2).sum() / sigma**3}

    op = pb.autograd_function(forward, backward, name="op")
    assert cause_of(evidence(op, X, np.array(1.5)), 1).text == (
        "the term -6 * grad_output / `sigma` is missing from `sigma` (or its opposite is too many)"
    )


@pytest.mark.parametrize("low", [5.0, 4.0])
def test_two_arguments_that_have_each_others_gradient_at_some_elements_are_named(low):
    def forward(ctx, x, y):
        least, most = np.minimum(x.numpy(), y.numpy()), np.maximum(x.numpy(), y.numpy())
        return pb.asarray(low * least + 2.0 * most)

    @pb.once_differentiable
    def backward(ctx, g):  # as if all of x were below y
        return {"x": pb.asarray(2.0 * g.numpy()), "y": pb.asarray(5.0 * g.numpy())}

    op = pb.autograd_function(forward, backward)
    causes = diagnose(evidence(op, X, X[::-1] - 0.1), [0, 1])
    if low == 5.0:
        ((i, cause),) = causes
        text = "the gradients of `x` and `y` are swapped at 3 of 6 elements, all where x < y"
        assert (i, cause.text) == (0, text)
    assert (len(causes) == 1) == (low == 5.0)


def test_two_arguments_that_backward_takes_for_each_other_are_named():
    def forward(ctx, x, left, right):
        ctx.save_for_backward(left=left, right=right)
        return left @ x @ right

    def backward(ctx, g):
        s = ctx.saved_variables
        return {"x": s.right.T @ g @ s.left.T}

    x, left, right = (
        pb.tensor(np.random.default_rng(k).normal(size=(3, 3)), requires_grad=k == 0)
        for k in range(3)
    )
    cause = cause_of(evidence(pb.autograd_function(forward, backward), x, left, right), 0)
    assert cause.text == "`x`: `left` and `right` are used as if they were exchanged"


# -- sizes, and the check as a whole ---------------------------------------------------------------
def text_of(op, x):
    report = check_op(op, pb.tensor(x, requires_grad=True), raise_exception=False)
    assert report.failures[0].cause.name == "size"
    return str(report)


def test_what_is_wrong_at_another_length_is_said():
    op = op_of(
        lambda x, y, k: np.fft.fftshift(x) ** 2,
        lambda g, x, y, k: np.fft.fftshift(2 * g * np.fft.fftshift(x)),
    )
    assert "right for axis 0 of length 6 but wrong for length 7: `x` is rolled" in text_of(op, X)


def test_a_rule_that_is_right_for_sorted_values_says_so_at_another_size():
    op = op_of(lambda x, y, k: np.sort(x) ** 2, lambda g, x, y, k: 2 * g * np.sort(x))
    assert "it is right if `x` is sorted" in text_of(op, np.sort(X))


def test_a_search_that_fails_loses_no_wrong_gradient(monkeypatch):
    def fails(evidence, wrong):
        raise IndexError("of the checker")

    monkeypatch.setattr("pullback.check.properties.first.diagnose", fails)
    op = pb.autograd_function(lambda ctx, x: x * 2.0, lambda ctx, g: {"x": g * 3.0}, name="tripled")
    report = check_op(op, np.ones(3), raise_exception=False)
    (failure,) = report.failures
    assert failure.cause.text.startswith("the gradient of `x` is wrong")
    assert "the checker's mistake: IndexError('of the checker')" in failure.cause.hint
