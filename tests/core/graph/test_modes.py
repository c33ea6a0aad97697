"""Grad modes as blocks and as decorators."""

import functools
import inspect

import pytest
from tests.core.graph.grad_modes import every_decorator, every_off
from tests.tensors import leaf

import pullback as pb
from pullback.errors import ArgumentTypeError

on = pb.is_grad_enabled


pytestmark = pytest.mark.usefixtures("modes_as_they_were")


# -- blocks ----------------------------------------------------------------------------------------
@pytest.mark.case("G01")
@every_off
def test_no_grad_as_a_block_records_nothing_and_ends(off):
    x = leaf()
    with off():
        assert not on()
        y = x * 2.0
        z = x[None].t().sum()
        f = pb.autograd_function(lambda ctx, x: x * 2.0)(x)
    assert on()
    for t in (y, z, f):
        assert not t.requires_grad
        assert t.grad_fn is None
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        y.backward()
    assert y.item() == 2.0
    assert x.grad is None
    assert x.requires_grad


@pytest.mark.case("G01")
def test_no_grad_and_enable_grad_nest():
    x, states = leaf(), []

    def note():
        assert (x * 1.0).requires_grad is on()
        states.append(on())

    with pb.no_grad():
        note()
        with pb.enable_grad():
            note()
            with pb.no_grad(), pb.set_grad_enabled(True):
                note()
            note()
            with pb.inference_mode():
                note()
            note()
        note()
    assert states == [False, True, True, True, False, True, False]


@pytest.mark.case("G01")
def test_no_grad_object_can_be_used_again_and_inside_itself():
    block = pb.no_grad()
    for _ in range(2):
        with block:
            assert not on()
            with pb.enable_grad():
                with block:
                    assert not on()
                assert on()
            assert not on()
        assert on()


@pytest.mark.case("G01")
def test_no_grad_lets_a_new_leaf_require_grad():
    with pb.no_grad():
        w = pb.ones(2, requires_grad=True)
        v = (w * 2.0).requires_grad_()
    assert w.requires_grad
    (w * v).sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]
    assert v.grad.tolist() == [1.0, 1.0]


def test_no_grad_allows_a_change_of_a_leaf_in_place():
    w = leaf([1.0, 2.0])
    with pb.no_grad():
        w.sub_(1.0)
        w[0] = 5.0
    assert w.tolist() == [5.0, 1.0]
    assert w.is_leaf
    assert w.requires_grad


@pytest.mark.case("G03")
def test_set_grad_enabled_acts_at_once_until_it_is_called_again():
    x = leaf()
    pb.set_grad_enabled(False)
    assert not on()
    assert not (x * 2.0).requires_grad
    pb.set_grad_enabled(True)
    assert on()
    assert (x * 2.0).requires_grad


@pytest.mark.case("G03")
def test_set_grad_enabled_called_inside_a_block_lasts_until_the_block_ends():
    with pb.set_grad_enabled(False):
        pb.set_grad_enabled(True)
        assert on()
        pb.set_grad_enabled(False)
        assert not on()
        pb.set_grad_enabled(True)
    assert on()
    with pb.no_grad():
        pb.set_grad_enabled(True)
        assert leaf().exp().requires_grad
    assert on()
    with pb.set_grad_enabled(True):
        pb.set_grad_enabled(False)
        assert not leaf().exp().requires_grad
    assert on()


@pytest.mark.case("G03")
def test_set_grad_enabled_as_a_block_restores_the_mode_before_it():
    with pb.no_grad():
        with pb.set_grad_enabled(True):
            assert on()
        assert not on()


@pytest.mark.case("G03")
def test_set_grad_enabled_made_before_its_block_restores_the_mode_before_both():
    block = pb.set_grad_enabled(False)
    assert not on()
    with block:
        assert not on()
    assert on()


@pytest.mark.parametrize("flag", [1, 0, pb.tensor(1.0) > 2.0], ids=["1", "0", "tensor"])
def test_set_grad_enabled_takes_anything_true_or_false(flag):
    with pb.set_grad_enabled(flag):
        assert on() is bool(flag)


def test_is_inference_mode_enabled_in_inference_mode_and_when_it_is_switched_off():
    with pb.inference_mode():
        assert pb.is_inference_mode_enabled()
        with pb.inference_mode(False):
            assert not pb.is_inference_mode_enabled()
            assert on()
        assert not on()
    assert not pb.is_inference_mode_enabled()
    with pb.inference_mode(False):
        assert leaf().exp().requires_grad


# -- decorated functions ---------------------------------------------------------------------------
@pytest.mark.case("G01")
@every_decorator
def test_no_grad_decorates_a_function_which_keeps_its_name(decorate):
    @decorate
    def f(x, *, scale=2.0):
        """Return x * scale."""
        assert not on()
        return x * scale

    y = f(leaf(3.0), scale=4.0)
    assert (y.item(), y.requires_grad) == (12.0, False)
    assert (f.__name__, f.__doc__) == ("f", "Return x * scale.")
    assert list(inspect.signature(f).parameters) == ["x", "scale"]
    assert on()


def test_no_grad_as_a_decorator_calls_or_changes_nothing():
    calls = []
    for decorate in (pb.no_grad, pb.no_grad(), pb.enable_grad):
        decorate(lambda: calls.append(1))
        assert on()
    pb.set_grad_enabled(False)(lambda: calls.append(1))
    assert on()
    assert calls == []


@pytest.mark.case("G03")
def test_enable_grad_and_set_grad_enabled_decorate_too():
    @pb.enable_grad
    def records(x):
        return (x * 2.0).requires_grad

    @pb.enable_grad()
    def records_with_parentheses(x):
        return (x * 2.0).requires_grad

    @pb.set_grad_enabled(True)
    def records_too(x):
        return (x * 2.0).requires_grad

    @pb.set_grad_enabled(False)
    def does_not(x):
        return (x * 2.0).requires_grad

    with pb.no_grad():
        assert (records(leaf()), records_with_parentheses(leaf())) == (True, True)
        assert (records_too(leaf()), does_not(leaf())) == (True, False)
        assert not on()
    assert not does_not(leaf())


@every_decorator
def test_no_grad_decorates_methods_classmethods_and_recursion(decorate):
    class Model:
        factor = 3.0

        @decorate
        def method(self, x):
            return x * self.factor

        @classmethod
        @decorate
        def of_class(cls, x):
            return x * cls.factor

        @staticmethod
        @decorate
        def of_none(x):
            return x * 3.0

    @decorate
    def countdown(n):
        assert not on()
        return 0 if n == 0 else 1 + countdown(n - 1)

    for f in (Model().method, Model.of_class, Model.of_none):
        y = f(leaf(2.0))
        assert (y.item(), y.requires_grad) == (6.0, False)
    assert countdown(5) == 5


def test_no_grad_decorates_a_partial_and_a_callable_object():
    class Doubles:
        def __call__(self, x):
            return x * 2.0

    for f in (functools.partial(pb.multiply, 2.0), Doubles()):
        assert not pb.no_grad()(f)(leaf()).requires_grad


@pytest.mark.parametrize("decorate", [pb.no_grad(), pb.enable_grad()])
def test_no_grad_decorates_callables_alone(decorate):
    with pytest.raises(ArgumentTypeError, match=r"must be callable, got int"):
        decorate(3)


def test_set_grad_enabled_object_can_be_used_again():
    switch = pb.set_grad_enabled(False)
    with switch:
        assert not pb.is_grad_enabled()
    assert pb.is_grad_enabled()
    with switch:
        assert not pb.is_grad_enabled()
    assert pb.is_grad_enabled()
    assert switch(pb.is_grad_enabled)() is False
    assert pb.is_grad_enabled()


MODES = {
    "no_grad": pb.no_grad,
    "enable_grad": pb.enable_grad,
    "inference_mode": pb.inference_mode,
    "set_grad_enabled": lambda: pb.set_grad_enabled(False),
}


@pytest.mark.case("G04")
@pytest.mark.parametrize("enter", MODES.values(), ids=MODES.keys())
@pytest.mark.parametrize("outer", [True, False])
def test_grad_mode_is_restored_when_a_block_or_a_function_is_left_by_an_error(enter, outer):
    with pb.set_grad_enabled(outer):
        with pytest.raises(KeyError, match="left"), enter():
            raise KeyError("left")
        assert pb.is_grad_enabled() is outer

        @enter()
        def fail():
            raise KeyError("left")

        with pytest.raises(KeyError, match="left"):
            fail()
        assert pb.is_grad_enabled() is outer
    assert pb.is_grad_enabled() is True
