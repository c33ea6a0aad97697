import numpy as np
import pytest

import pullback as pb
from pullback.check.comparison import wrong_at
from pullback.check.report import Options, Report
from pullback.check.session import Session
from pullback.check.subject import BackwardError, Subject


def wrong(forward, backward, *args, base=None, seed=0):
    """Return the arguments whose gradient counts as wrong."""
    op = pb.autograd_function(forward, pb.once_differentiable(backward))
    subject = Subject(op, args)
    subject.base = None if base is None else Subject(op, (base,))
    return wrong_at(Session(subject, Options(seed=seed), Report("", 0)))


# -- the first look --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("gradients", "expected"),
    [
        (lambda x, y, g: (1e6 * g + 0 * x, 2 * y * g), []),
        (lambda x, y, g: (1e6 * g + 0 * x, 2.02 * y * g), [1]),
        (lambda x, y, g: (1e6 * g + 0 * x, None), [1]),
        (lambda x, y, g: (1e6 * g + 0 * x, 1e-9 * y * g), [1]),
        (lambda x, y, g: (1.00001e6 * g + 0 * x, 2 * y * g), [0]),
        (lambda x, y, g: (None, 2 * y * g), [0]),
        (lambda x, y, g: (np.nan * x, None), [1]),
    ],
    ids=["right", "small", "small and left out", "all but left out", "large", "left out", "NaN"],
)
def test_a_wrong_gradient_of_one_argument_is_not_hidden_by_a_large_one_of_another(
    gradients, expected
):
    def forward(ctx, x, y):
        ctx.save_for_backward(x=x, y=y)
        return 1e6 * x.sum() + (y * y).sum()

    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return dict(zip(("x", "y"), gradients(x, y, grad_output), strict=True))

    assert wrong(forward, backward, np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.7])) == expected


def test_wrong_at_warns_of_nothing_where_terms_overflow():
    def forward(ctx, x):
        ctx.save_for_backward(y=(y := (20 * x).exp()))
        return y

    def backward(ctx, grad_output):
        return {"x": 20 * ctx.saved_variables.y * grad_output}

    assert wrong(forward, backward, np.array([35.3, 1.0])) == []  # 20 exp(706) x is too large


def test_mistakes_in_what_two_arguments_have_in_common_do_not_cancel():
    def forward(ctx, x, a, b):
        ctx.save_for_backward(x=x, a=a, b=b)
        return x * (a / b)

    def backward(ctx, grad_output):  # the first element is left out of the ratio's gradient
        x, a, b = ctx.saved_tensors
        by_ratio = (grad_output * x)[1:].sum()
        return {"x": grad_output * a / b, "a": by_ratio / b, "b": -by_ratio * a / b**2}

    call = (np.array([1.0, -2.0, 0.5]), np.array(3.0), np.array(0.7))
    assert all(wrong(forward, backward, *call, seed=seed) == [1, 2] for seed in range(20))


# -- what counts -----------------------------------------------------------------------------------
def saved(fn):
    """Return a forward of NumPy arrays that keeps them."""

    def forward(ctx, *args):
        ctx.x = args[0].numpy()
        return pb.asarray(np.asarray(fn(*(a.numpy() for a in args))))

    return forward


def rule(fn):
    """Return a backward of one argument, of its value and the output gradient."""

    def backward(ctx, g):
        with np.errstate(all="ignore"):
            return pb.asarray(fn(ctx.x, g.numpy()) * np.ones(ctx.x.shape))

    return backward


def of_sort(x, g):
    return g[np.argsort(np.argsort(x, kind="stable"))]


TIED, PLAIN = np.array([1.5, 0.2, 1.5]), np.array([1.5, 0.2, -0.7])


def raises_at_ties(x, g):
    if np.unique(x).size < x.size:
        raise np.linalg.LinAlgError("Singular matrix")
    return 2 * g * (x - x.mean())


@pytest.mark.parametrize(
    ("fn", "gradient", "x"),
    [
        (np.abs, lambda x, g: g * np.sign(x), np.array([0.0, 1.2])),
        (np.abs, lambda x, g: 7 * g, np.zeros(2)),
        (np.max, lambda x, g: g * (np.arange(3) == 0), TIED),
        (np.max, lambda x, g: g * np.array([0.3, 0.0, 0.7]), TIED),
        (np.median, lambda x, g: g * (np.arange(3) == 1), np.ones(3)),
        (np.sort, of_sort, np.array([1.0, 1.0, -1.0, 1.0, 0.0])),
        (np.std, lambda x, g: g * np.nan, np.ones(3)),
        (lambda x: 1 / (1 + np.exp(-x)), lambda x, g: g * np.nan, np.full(2, -800.0)),
        (lambda x: 1 - np.cos(x) ** 2, lambda x, g: 2.0 * x * g * 1.0001, np.array([1e-6, 3e-6])),
        (lambda x: ((x - x.mean()) ** 2).sum(), raises_at_ties, np.ones(3)),
        (np.sqrt, lambda x, g: g * np.inf, np.zeros(2)),
        (lambda x: np.log(np.exp(x / 9).sum()) * 9, lambda x, g: g * np.nan, 1e3 * PLAIN),
    ],
    ids=["kink", "at a kink alone", "either of two", "both in part", "median of equal ones",
         "sort of equal ones", "no deviation", "saturated", "rounding", "raised at ties alone",
         "edge", "NaN all around"],
)  # fmt: skip
def test_without_a_derivative_beyond_noise_nothing_counts(fn, gradient, x):
    with np.errstate(all="ignore"):
        assert not any(wrong(saved(fn), rule(gradient), x, seed=seed) for seed in range(6))


@pytest.mark.parametrize(
    ("fn", "gradient", "x"),
    [
        (lambda x: x**2, lambda x, g: 2.001 * x * g, PLAIN),
        (np.abs, lambda x, g: g, np.array([0.0, -1.2])),
        (np.max, lambda x, g: g * (x == x.max()), TIED),
        (np.sinc, lambda x, g: g * (np.cos(np.pi * x) - np.sinc(x)) / x, np.array([0.0, 0.4])),
        (lambda x: 1e-9 * x, lambda x, g: 1.1e-9 * g, PLAIN),
    ],
    ids=["factor", "beside a kink", "both of two", "a hole", "small outputs"],
)
def test_what_is_wrong_where_forward_is_smooth_counts(fn, gradient, x):
    assert len(wrong(saved(fn), rule(gradient), x)) == 1


def test_a_gradient_that_is_right_but_for_a_phase_does_not_count():
    def forward(ctx, x):
        ctx.x = x.numpy()
        ctx.out = np.exp(1j * ctx.x) * (1 + ctx.x**2)
        return pb.asarray(ctx.out * np.exp(1j * ctx.x**3))

    def backward(ctx, g, factor=1.0):  # of the size alone
        turned = g.numpy() * np.exp(-1j * ctx.x**3)
        by = np.real(np.conj(np.exp(1j * ctx.x)) * turned) * 2 * ctx.x
        return {"x": pb.asarray(factor * by)}

    assert wrong(forward, backward, PLAIN) == []
    assert wrong(forward, lambda ctx, g: backward(ctx, g, 1.1), PLAIN) == [0]


def test_backward_that_raises_counts_where_it_raises_at_nearby_points_too():
    def backward(ctx, g):
        raise ValueError("never")

    with pytest.raises(BackwardError, match="never"):
        wrong(saved(np.sin), backward, PLAIN)


def test_what_is_nothing_beside_the_outputs_of_the_users_call_does_not_count():
    fn, gradient = (lambda x: 1e-20 * x), (lambda x, g: 1.5e-20 * g)
    assert wrong(saved(fn), rule(gradient), PLAIN, base=1e20 * PLAIN) == []
    assert wrong(saved(fn), rule(gradient), PLAIN) != []


def test_round_numbers_of_equal_values_do_not_look_like_low_precision():
    x = np.array([[0.3, 1481.25, 1481.25]])
    session = Session(Subject(lambda t: pb.softmax(t, -1), (x,)), Options(), Report("", 0))
    assert session.eps == 2.0**-52
