"""What a search must not do, and where it finds nothing."""

import collections
import ctypes
import functools
import math
import random
import warnings

import numpy as np
import pytest
import scipy.linalg
from tests.check._repair import change

import pullback as pb
from pullback.check import check_op, repair
from pullback.check.repair.reached import why_untried

X = np.array([0.3, 1.2, -0.7, 0.5])


def sine(ctx, x):
    ctx.save_for_backward(x=x)
    return pb.sin(x)


def wrong(ctx, g):
    return g * pb.sin(ctx.saved_variables.x)


def state():
    """Return what a search may disturb."""
    numbers = np.random.get_state()[1].tolist(), random.getstate()
    codes = wrong.__code__, sine.__code__, dict(vars(wrong))
    return list(warnings.filters), np.geterr(), pb.is_grad_enabled(), numbers, codes


@pytest.mark.parametrize("interrupted", [False, True])
def test_modes_warnings_random_numbers_and_the_operation_are_as_they_were(interrupted, monkeypatch):
    def backward(ctx, g):
        return wrong(ctx, g) + 0 * np.random.random() + 0 * random.random()

    def interrupt(self, edit):
        raise KeyboardInterrupt

    op = pb.autograd_function(sine, backward)
    report = check_op(op, X, only=["first"], raise_exception=False)
    with pb.no_grad():
        before = state()
        if interrupted:
            monkeypatch.setattr("pullback.check.repair.trials.Trials.mended_by", interrupt)
            with pytest.raises(KeyboardInterrupt):
                str(report)
        else:
            assert "of `wrong`: with `" in report.repair
        assert state() == before
    assert (op.forward, op.given_rule) == (sine, backward)


def test_arrays_that_a_change_puts_in_the_place_of_new_ones_are_as_they_were():
    weights = np.array([0.5, 2.0, 1.5, -1.0])

    @pb.once_differentiable
    def backward(ctx, g):
        found = np.zeros(4)
        for k in range(4):
            found[k] = np.sin(7.7 * g.numpy()[k]) + np.exp(weights[k])
        return {"x": pb.asarray(found)}

    change(lambda ctx, x: x * pb.asarray(weights), backward, X)
    assert weights.tolist() == [0.5, 2.0, 1.5, -1.0]


def test_a_mistake_that_is_no_small_one_has_no_change():
    noise = np.array([0.123, -4.56, 7.89, 0.321])
    assert change(sine, lambda ctx, g: pb.asarray(noise**3), X) == ""


def test_a_fast_check_has_no_change():
    assert change(sine, wrong, X, fast=True) == ""


def test_a_rule_without_source_has_no_change():
    names = {"pb": pb}
    exec("def rule(ctx, g):\n    return g * pb.sin(ctx.saved_variables.x)", names)
    assert change(sine, names["rule"], X) == ""


def test_what_is_written_to_and_names_that_are_compared_stay():
    def backward(ctx, g):
        found = 2 * g.clone()
        found[:2] = found[:2] * 3
        return {"x": found}

    assert ".T[" not in change(lambda ctx, x: 2 * x, backward, X)

    def by_name(ctx, g):
        name = "cosine"
        return {"x": (3 if name == "cosine" else 2) * g}

    found = change(lambda ctx, x: 2 * x, by_name, X)
    assert found.count("if name == 'cosine' else") == 2  # before and after


# ---- compiled code -------------------------------------------------------------------------------
class Library:
    """A compiled function as an attribute of an object, as ctypes and f2py have them."""

    sine = ctypes.pythonapi.PyNumber_Float


def kernel(x):
    return LIBRARY.sine(x)


def through_a_table(x):
    return TABLE["sine"](x)


def imported_here(x):
    import ctypes.util as c

    return c.find_library(x)


def lent_memory(x):
    return np.lib.stride_tricks.as_strided(x, (2, 2), (8, 8))


@pb.autograd_function
def operation(ctx, x):
    return kernel(x)


LIBRARY = Library()
TABLE = {"sine": functools.partial(ctypes.pythonapi.PyNumber_Float)}
COMPILED = [kernel, through_a_table, imported_here, lent_memory, operation]


@pytest.mark.parametrize("called", COMPILED, ids=lambda f: getattr(f, "name", f.__name__))
def test_no_change_is_tried_where_code_reaches_a_compiled_function(called, monkeypatch):
    monkeypatch.setattr(repair, "Search", lambda *_: pytest.fail("a search"))

    def backward(ctx, g):
        return -g if g is not None else called(g)

    text = change(sine, backward, X)
    assert "no repair was tried: " in text
    assert "changed arguments can crash" in text


def test_the_compiled_function_is_named_as_it_is_written():
    said = "`LIBRARY.sine` is compiled code, which changed arguments can crash"
    assert why_untried([("rule", kernel)], "numpy") == said


@pytest.mark.parametrize(
    "called",
    [np.sum, scipy.linalg.solve, math.sin, pb.exp, pb.grad(wrong), np.vectorize(wrong), sine,
     np.random.default_rng(0), functools.lru_cache(wrong), collections.namedtuple("P", "a b")],
)  # fmt: skip
def test_libraries_that_check_their_arguments_may_be_called(called):
    def through(x):
        return called(x)

    assert why_untried([("rule", through)], "numpy") == ""


def test_a_loop_that_a_change_makes_endless_does_not_hang():
    def backward(ctx, g):
        i, total = 0, 0 * g
        while i < 3:
            total = total + g * pb.cos(ctx.saved_variables.x)
            i = i + 1
        return total

    assert change(sine, backward, X)


def test_a_rule_that_draws_numbers():
    def backward(ctx, g):
        return -g * pb.cos(ctx.saved_variables.x) * np.random.default_rng().uniform(1, 2)

    assert change(sine, backward, X) == ""


def test_a_search_that_is_out_of_time_tries_no_change(monkeypatch):
    monkeypatch.setattr(repair, "SECONDS", 0.0)
    assert change(sine, wrong, X) == ""
