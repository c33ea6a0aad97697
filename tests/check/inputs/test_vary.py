"""Calls with other settings and values than the user's, which show what these hide."""

import enum
from typing import Literal

import numpy as np
import pytest

import pullback as pb
from pullback.check import check_op
from pullback.check.inputs.arguments import Inputs
from pullback.check.inputs.settings import other_settings
from pullback.check.inputs.vary import changed, vary

X = np.array([[0.4, -1.3, 2.1], [1.7, 0.2, -0.6]])


def settings(fn, *args, **kwargs):
    """Return what is different in the calls with one other setting."""
    return [change.what for change in other_settings(fn, Inputs(args, kwargs))]


def drawn(*args, fn=None, bounded=()):
    """Return the arguments of the calls that are drawn."""
    fn = fn or (lambda *args: args[0] * 1.0)
    inputs = Inputs(args, {}, bounded=frozenset(bounded))
    found = [changed(inputs, changes).args for changes in vary(fn, inputs)]
    assert len(found) > 10
    return found


def operation(forward, rule):
    return pb.autograd_function(forward, rule, name="tried")


# -- settings --------------------------------------------------------------------------------------
class Kind(enum.Enum):
    ADD, MULTIPLY = 1, 2


def how(x, way="sum"):
    return x if way == "sum" else x.exp() if way == "stretched" else None


def turned(x, way="plain"):
    return x * WAYS[way]


WAYS = {"plain": 1.0, "turned": -1.0}


def close(x, spacing=1.0):
    return x / spacing if 0.7 < spacing < 1.3 else None


def longer(x, n=None):
    return x if n is None or n <= len(x) else pb.concatenate([x, x]) * n


def correlated(x, matrix=None):
    return x if matrix is None else x @ pb.asarray(matrix) @ x


def full(x, clause=None):
    return x * 2.0 if clause == "full" else x


def mode(x, near: Literal["near", "far"] = "near"):
    return x + len(near)


@pytest.mark.parametrize(
    ("fn", "args", "expected"),
    [
        (lambda x, axis=-1: x.sum(axis), (X,), ["`axis` = 1", "`axis` = 0", "`axis` = -2"]),
        (lambda x, axis: x.cumsum(axis), (X, 1), ["`axis` = -1", "`axis` = 0", "`axis` = -2"]),
        (lambda x, axes=(0, 1): x.permute(axes), (X,), ["`axes` = (1, 0)"]),
        (lambda x, keep=False: x.sum(0, keepdim=keep), (X,), ["`keep` = True"]),
        (lambda x, by=2.0: x * by, (X, 5.0), ["`by` = 7.5"]),
        (lambda x, by=0.0: x * by, (X,), ["`by` = 0.35"]),
        (lambda x, n=2: x * n, (X,), ["`n` = 3", "`n` = 1", "`n` = -2"]),
        (lambda x, n=(): x * (1 + sum(n)), (X,), ["`n` = (0,)", "`n` = (1,)", "`n` = (0, 1)"]),
        (lambda x, way="log": x.log() if way == "log" else x, (abs(X),), ["`way` = 'other'"]),
        (lambda x, way="plain": -x if way == "plain" else x.log(), (X,), ["`way` = 'other'"]),
        (lambda x, kind=Kind.ADD: x * kind.value, (X,), [f"`kind` = {Kind.MULTIPLY!r}"]),
        (mode, (X,), ["`near` = 'far'"]),
        (how, (X,), ["`way` = 'stretched'"]),
        (turned, (X,), ["`way` = 'turned'"]),
        (close, (X,), ["`spacing` = 0.85"]),
        (longer, (X,), ["`n` given"]),
        (full, (X,), ["`clause` given"]),
        (lambda x, n=0: x * (n or 2), (X,), ["`n` = 1", "`n` = 3", "`n` = -1"]),
        (lambda x, b=None: x if b is None else x + b, (X,), ["`b` given"]),
        (lambda x, b=None: x if b is None else x + b, (X, X), ["`b` left out"]),
        (correlated, (X[0],), ["`matrix` given"]),
        (lambda x, k=None: x if k is None else x[k], (X,), ["`k` given"]),
        (lambda x, pair=[0.5, 2.0]: x * pair[0], (X,), ["`pair` = [0.75, 1.6]"]),
    ],
)  # fmt: skip
def test_a_setting_is_varied_by_its_type(fn, args, expected):
    assert [what.partition(" in place")[0] for what in settings(fn, *args)][: len(expected)] == (
        expected
    )


def test_a_step_and_a_count_are_not_varied_to_negative_numbers():
    for fn in (lambda x, n=2: x[::n], lambda x, n=2: x * 2.0 ** len(range(n))):
        assert [what[:7] for what in settings(fn, X)] == ["`n` = 3", "`n` = 1"]


# -- values ----------------------------------------------------------------------------------------
def in_order(x, *rest):
    return x.cumsum(-1) if x.ndim else x * 1.0


SPD = np.array([[2.0, 1.0, 0.2], [1.0, 3.0, -0.4], [0.2, -0.4, 1.5]])


@pytest.mark.parametrize(
    ("array", "holds"),
    [
        (np.array([0.3, 0.5, 0.2]), lambda p: np.isclose(p.sum(), 1.0) and (p >= 0).all()),
        (np.array([-1.0, 0.5, 2.0, 2.5]), lambda a: (np.diff(a) > 0).all()),
        (SPD, lambda a: np.allclose(a, a.T) and (np.linalg.eigvalsh(a) > 0).all()),
        (np.array([0.3, 0.9, 0.0]), lambda a: ((a >= 0) & (a <= 1)).all()),
        (np.array([3.0, 0.7, 1.9]), lambda a: (a > 0).all()),
        (np.array([2, 0, 5, 5]), lambda k: k.min() >= 0 and k.max() <= 5),
        (np.array([0, 0, 2, 5]), lambda k: (np.diff(k) >= 0).all()),
        (np.array([2, 0, 1]), lambda k: sorted(k) == [0, 1, 2]),
        (np.array([[0, 1], [3, 2]]), lambda k: (k[:, 0] != k[:, 1]).all()),
        (np.array([True, True, False]), lambda m: m.any() and not m.all()),
        (np.array(2.0), lambda a: 0.02 < a < 40.0),
        (np.array([[0.0, 1j], [-1j, 2.0]]), lambda a: np.allclose(a, a.conj().T)),
    ],
    ids=str,
)
def test_what_an_array_is_it_stays(array, holds):
    floats = array if array.dtype.kind in "fc" else np.ones((3, 2))
    others = () if floats is array else (array,)
    assert all(holds(args[-1]) for args in drawn(floats, *others, fn=in_order))


@pytest.mark.parametrize(
    ("fn", "array", "both"),
    [
        (lambda x: x * 1.0, [3.0, 0.7, 1.9], False),
        (lambda x: x.abs(), [3.0, 0.7, 1.9], True),
        (lambda x: x.abs().log(), [3.0, 0.7, 1.9], False),
        (lambda x: x * 1.0, [-3.0, -0.7, -1.9], True),
        (lambda x: (-x).log(), [-3.0, -0.7, -1.9], False),
    ],
)
def test_values_of_one_sign_get_the_other_where_forward_shows_that_it_is_meant(fn, array, both):
    signs = {s for (x,) in drawn(np.array(array), fn=fn) for s in np.sign(x).tolist()}
    assert (len(signs) > 1) == both


def test_values_that_rise_by_chance_get_another_order():
    rising, other = np.array([0.4, 1.3, 2.1, 4.0]), np.array([0.3, 0.2, 0.9, 0.1])
    calls = drawn(rising, other, fn=lambda x, y: x * y)
    assert any((np.diff(x) < 0).any() for x, _ in calls)


def test_single_numbers_become_equal():
    calls = drawn(np.array(1.3), np.array(4.2), fn=lambda x, y: x * y)
    assert any(x == y for x, y in calls)


def test_a_matrix_that_is_orthogonal_and_symmetric_gets_others_that_are_orthogonal():
    calls = [m for _, m in drawn(X, np.diag([-1.0, -1.0, 1.0]), fn=lambda x, m: x @ m)]
    assert all(np.allclose(m @ m.T, np.eye(3)) for m in calls)
    assert not all(np.allclose(m, m.T) for m in calls)


def test_values_that_have_bounds_keep_them():
    arrays = [x for (x,) in drawn(X[0] + 2.0, fn=lambda x: x * 1.0, bounded=["x"])]
    assert all(x.min() >= 0.7 and x.max() <= 4.1 for x in arrays)


def test_values_stay_within_the_table_that_they_are_looked_up_in():
    calls = drawn(X, np.array([-2.0, 0.0, 1.0, 4.0]), fn=lambda x, knots: x * in_order(knots).sum())
    for x, knots in calls:
        assert knots[0] <= x.min() <= x.max() <= knots[-1]


@pytest.mark.parametrize("parts", [([1, 0, 1], [0, 2, 3]), ([0, 0, 1], [0, 1, 1])])
def test_the_parts_of_a_sparse_matrix_stay(parts):
    for _, *others in drawn(X[0], *map(np.array, parts)):
        assert np.array_equal(others, parts)


def test_zeros_and_equal_values_are_drawn_and_of_zeros_one_in_a_call():
    calls = drawn(X, X[::-1] * 1.5)
    zeros = [[bool((a == 0).any()) for a in args] for args in calls]
    assert any(any(each) for each in zeros)
    assert not any(all(each) for each in zeros)
    assert any(np.unique(a).size < a.size for args in calls for a in args)


def test_rows_of_a_table_of_indices_get_one_in_common():
    tables = [table for _, table in drawn(X, np.array([[0, 1], [3, 2]]))]
    assert any(np.unique(table).size < table.size for table in tables)


def test_a_draw_repeats_with_its_seed():
    def texts(seed):
        every = vary(np.sin, Inputs((X,), {}), seed)
        return [change.what for changes in every for change in changes]

    assert texts(1) == texts(1) != texts(2)
    assert "a zero in `x`" in texts(1)


def test_what_shows_a_mistake_is_shrunk_to_as_few_differences_as_show_it():
    def forward(ctx, x, y, gain=1.0, shift=0.0):
        return x * gain + y + shift

    report = check_op(operation(forward, lambda ctx, g: {"x": g, "y": g}), X, X + 1.0,
                      raise_exception=False)  # fmt: skip
    assert {f.situation for f in report.failures} == {"with `gain` = 0.35 in place of 1.0"}


# -- what is caught there --------------------------------------------------------------------------
def without_its_own(x):
    return pb.where(x == 0, 0.0, x.prod() / x)


WRONG = {
    "for another axis": (
        lambda ctx, x, axis=-1: (ctx.save_for_backward(x=x, axis=axis), x.cumsum(axis))[1],
        lambda ctx, g: {"x": g.flip(-1).cumsum(-1).flip(-1)},
        (X,),
        "with `axis` = 0 in place of -1",
    ),
    "at 0": (
        lambda ctx, x: (ctx.save_for_backward(x=x), x.prod())[1],
        lambda ctx, g: {"x": without_its_own(ctx.saved_variables.x) * g},
        (np.array([0.1, 1.4, 0.9, -2.0]),),
        "a zero in",
    ),
    "for large values": (
        lambda ctx, x: (ctx.save_for_backward(x=x), x * x)[1],
        lambda ctx, g: {"x": g * 2.0 * ctx.saved_variables.x.clip(-3.0, 3.0)},
        (np.array([0.3, -1.2, 1.1]),),
        "of `x`",
    ),
    "where a mask hides something": (
        lambda ctx, x, mask: (ctx.save_for_backward(x=x, mask=mask), x * x * mask)[1],
        lambda ctx, g: {"x": g * 2.0 * ctx.saved_variables.x},
        (np.array([0.3, -1.2, 1.1, 0.7]), np.ones(4, bool)),
        "with other values of `mask`",
    ),
    "for repeated indices": (
        lambda ctx, table, index: (ctx.save_for_backward(i=index, t=table), table[index])[1],
        lambda ctx, g: {
            "table": pb.zeros_like(ctx.saved_variables.t).index_put((ctx.saved_variables.i,), g)
        },
        (np.array([0.3, -1.2, 1.1, 0.7]), np.array([2, 0])),
        "with other values of `index`",
    ),
}


@pytest.mark.parametrize("where", WRONG)
def test_a_rule_that_is_wrong_only_there_is_caught_on_plain_inputs(where):
    forward, rule, inputs, situation = WRONG[where]
    with np.errstate(all="ignore"):
        report = check_op(operation(forward, rule), *inputs, raise_exception=False)
    assert situation in report.failures[0].situation


def test_a_fast_check_leaves_variations_out():
    forward, rule, inputs, _ = WRONG["for another axis"]
    assert check_op(operation(forward, rule), *inputs, fast=True).outcome == "right"


# -- what accuses nothing --------------------------------------------------------------------------
def test_values_at_which_forward_never_ends_are_left_out():
    def forward(ctx, x):
        y = x.numpy() * 0.0 + 2.0
        while abs(y * y - x.numpy()).max() > 1e-13 * abs(x.numpy()).max():
            y = (y + x.numpy() / y) / 2
        ctx.y = y
        return pb.asarray(y)

    op = operation(forward, pb.once_differentiable(lambda ctx, g: {"x": g / pb.asarray(2 * ctx.y)}))
    assert check_op(op, np.array([0.7, 2.0])).ok


def test_a_setting_passed_by_keyword_is_varied():
    forward, rule, inputs, situation = WRONG["for another axis"]
    options = {"kwargs": {"axis": -1}, "only": ["first"], "raise_exception": False}
    report = check_op(operation(forward, rule), *inputs, **options)
    assert [f.situation for f in report.failures] == [situation]
