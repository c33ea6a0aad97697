"""Grad mode: no_grad, enable_grad, set_grad_enabled, inference_mode (cases G01 to G05)."""

import asyncio
import threading

import pytest

import pullback as pb


def leaf(data):
    """Return a float64 leaf that requires grad."""
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


# --- G01: results, context manager, decorator, nesting ---------------------------------------


def test_G01_results_under_no_grad_have_no_history():
    x = leaf([1.0, 2.0])
    y = pb.tensor([4.0, 4.0], dtype=pb.float64)
    with pb.no_grad():
        w = x + y
    assert w.requires_grad is False
    assert w.grad_fn is None
    assert w.tolist() == [5.0, 6.0]
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        w.backward(pb.ones(2, dtype=pb.float64))
    assert x.grad is None
    assert x.requires_grad is True


def test_G01_as_a_decorator_with_and_without_parentheses():
    @pb.no_grad()
    def with_parentheses(x):
        """Double x."""
        return x * 2

    @pb.no_grad
    def without_parentheses(x):
        """Triple x."""
        return x * 3

    x = leaf([1.0])
    assert with_parentheses(x).requires_grad is False
    assert without_parentheses(x).requires_grad is False
    assert without_parentheses(x).tolist() == [3.0]
    assert with_parentheses.__name__ == "with_parentheses"
    assert without_parentheses.__doc__ == "Triple x."
    assert pb.is_grad_enabled() is True
    assert (x * 2).requires_grad is True


@pytest.mark.parametrize("form", ["bare", "call"])
def test_G01_enable_grad_as_a_decorator(form):
    decorate = pb.enable_grad if form == "bare" else pb.enable_grad()

    @decorate
    def double(x):
        return x * 2

    x = leaf([1.0])
    with pb.no_grad():
        assert double(x).requires_grad is True
        assert pb.is_grad_enabled() is False


def test_G01_a_decorated_function_may_call_itself():
    @pb.no_grad()
    def count_down(n):
        assert pb.is_grad_enabled() is False
        return 0 if n == 0 else count_down(n - 1)

    assert count_down(5) == 0
    assert pb.is_grad_enabled() is True


def test_G01_one_context_object_may_be_entered_repeatedly():
    off = pb.no_grad()
    with off:
        with off:
            assert pb.is_grad_enabled() is False
        assert pb.is_grad_enabled() is False
    assert pb.is_grad_enabled() is True


def test_G01_nested_use_restores_the_outer_state():
    x = leaf([1.0])
    assert pb.is_grad_enabled() is True
    with pb.no_grad():
        assert pb.is_grad_enabled() is False
        with pb.no_grad():
            assert (x * 1).requires_grad is False
        assert pb.is_grad_enabled() is False
        with pb.enable_grad():
            assert (x * 1).requires_grad is True
            with pb.no_grad():
                assert (x * 1).requires_grad is False
            assert (x * 1).requires_grad is True
        assert (x * 1).requires_grad is False
    assert (x * 1).requires_grad is True


def test_G01_a_leaf_made_under_no_grad_keeps_its_flag():
    with pb.no_grad():
        x = leaf([2.0])
    assert x.requires_grad is True
    (x * x).backward()
    assert x.grad.tolist() == [4.0]


def test_G01_inference_mode_records_nothing():
    x = leaf([1.0])
    with pb.inference_mode():
        assert pb.is_grad_enabled() is False
        assert (x * 2).requires_grad is False

    @pb.inference_mode()
    def called(x):
        return x * 2

    @pb.inference_mode
    def bare(x):
        return x * 2

    assert called(x).requires_grad is False
    assert bare(x).requires_grad is False
    assert pb.is_grad_enabled() is True


# --- G02: generators and coroutines ----------------------------------------------------------


@pytest.mark.parametrize("form", ["bare", "call"])
def test_G02_a_generator_has_the_mode_only_while_its_body_runs(form):
    decorate = pb.no_grad if form == "bare" else pb.no_grad()

    @decorate
    def generator():
        for i in range(5):
            assert pb.is_grad_enabled() is False
            yield i

    assert pb.is_grad_enabled() is True
    seen = []
    for i in generator():
        assert pb.is_grad_enabled() is True
        seen.append(i)
    assert seen == [0, 1, 2, 3, 4]
    with pb.enable_grad():
        for _ in generator():
            assert pb.is_grad_enabled() is True
    with pb.no_grad():
        for _ in generator():
            assert pb.is_grad_enabled() is False
    with pb.set_grad_enabled(False):
        for _ in generator():
            assert pb.is_grad_enabled() is False
    assert pb.is_grad_enabled() is True


def test_G02_an_enabling_generator_in_a_disabled_consumer():
    @pb.enable_grad()
    def generator():
        for i in range(3):
            assert pb.is_grad_enabled() is True
            yield i

    with pb.no_grad():
        seen = []
        for i in generator():
            assert pb.is_grad_enabled() is False
            seen.append(i)
    assert seen == [0, 1, 2]
    assert pb.is_grad_enabled() is True


def test_G02_send():
    @pb.no_grad()
    def echo():
        received = None
        while True:
            assert pb.is_grad_enabled() is False
            received = yield received
            assert pb.is_grad_enabled() is False

    running = echo()
    assert next(running) is None
    assert pb.is_grad_enabled() is True
    assert running.send(7) == 7
    assert pb.is_grad_enabled() is True
    with pb.no_grad():
        assert running.send("seven") == "seven"
        assert pb.is_grad_enabled() is False
    assert pb.is_grad_enabled() is True
    running.close()


def test_G02_throw_benign_and_fatal():
    class BenignError(Exception):
        pass

    class FatalError(Exception):
        pass

    @pb.no_grad()
    def generator():
        handled = 0
        while True:
            assert pb.is_grad_enabled() is False
            try:
                yield handled
            except BenignError:
                assert pb.is_grad_enabled() is False
                handled += 1

    running = generator()
    assert next(running) == 0
    assert running.throw(BenignError()) == 1
    assert pb.is_grad_enabled() is True
    assert running.throw(BenignError()) == 2
    assert pb.is_grad_enabled() is True
    with pytest.raises(FatalError):
        running.throw(FatalError())
    assert pb.is_grad_enabled() is True
    with pytest.raises(StopIteration):
        next(running)


def test_G02_close_runs_the_cleanup_with_the_mode():
    modes = []

    @pb.no_grad()
    def generator():
        try:
            while True:
                yield 1
        finally:
            modes.append(pb.is_grad_enabled())

    running = generator()
    assert next(running) == 1
    running.close()
    assert modes == [False]
    assert pb.is_grad_enabled() is True


def test_G02_the_value_returned_by_a_generator_is_kept():
    @pb.no_grad()
    def generator():
        yield 1
        return "done"

    def consumer():
        return (yield from generator())

    running = consumer()
    assert next(running) == 1
    with pytest.raises(StopIteration) as stopped:
        next(running)
    assert stopped.value.value == "done"
    assert pb.is_grad_enabled() is True


def test_G02_a_decorated_coroutine_has_the_mode_only_while_it_runs():
    @pb.no_grad()
    async def body(x):
        assert pb.is_grad_enabled() is False
        await asyncio.sleep(0)
        assert pb.is_grad_enabled() is False
        return x * 2

    async def program():
        x = leaf([1.0])
        result = await body(x)
        assert pb.is_grad_enabled() is True
        assert (x * 1).requires_grad is True
        return result

    assert asyncio.run(program()).requires_grad is False
    assert pb.is_grad_enabled() is True


def test_G02_a_coroutine_is_left_by_an_error_with_the_mode_restored():
    @pb.no_grad
    async def body():
        await asyncio.sleep(0)
        raise KeyError("inside")

    async def program():
        with pytest.raises(KeyError, match="inside"):
            await body()
        return pb.is_grad_enabled()

    assert asyncio.run(program()) is True


def test_G02_a_decorated_async_generator():
    @pb.no_grad()
    async def generator():
        for i in range(3):
            assert pb.is_grad_enabled() is False
            await asyncio.sleep(0)
            assert pb.is_grad_enabled() is False
            yield i

    async def program():
        seen = []
        async for i in generator():
            assert pb.is_grad_enabled() is True
            seen.append(i)
        return seen

    assert asyncio.run(program()) == [0, 1, 2]
    assert pb.is_grad_enabled() is True


# --- G03: set_grad_enabled -------------------------------------------------------------------


def test_G03_as_a_context_manager():
    x = leaf([1.0])
    with pb.set_grad_enabled(False):
        assert (x * 2).requires_grad is False
    with pb.set_grad_enabled(True):
        assert (x * 2).requires_grad is True
    assert (x * 2).requires_grad is True


def test_G03_a_plain_call_lasts_until_the_enclosing_block_ends():
    x = leaf([1.0])
    with pb.set_grad_enabled(False):
        assert (x * 2).requires_grad is False
        pb.set_grad_enabled(True)
        assert (x * 2).requires_grad is True
    assert pb.is_grad_enabled() is True
    with pb.set_grad_enabled(True):
        pb.set_grad_enabled(False)
        assert (x * 2).requires_grad is False
    assert pb.is_grad_enabled() is True


def test_G03_a_plain_call_outside_any_block():
    x = leaf([1.0])
    pb.set_grad_enabled(False)
    try:
        assert pb.is_grad_enabled() is False
        assert (x * 2).requires_grad is False
    finally:
        pb.set_grad_enabled(True)
    assert (x * 2).requires_grad is True


def test_G03_as_a_decorator():
    @pb.set_grad_enabled(False)
    def double(x):
        return x * 2

    assert pb.is_grad_enabled() is True
    assert double(leaf([1.0])).requires_grad is False
    assert pb.is_grad_enabled() is True


# --- G04: restored after nested engine calls and errors --------------------------------------


@pytest.mark.parametrize("create_graph", [False, True])
def test_G04_restored_after_a_nested_engine_call(create_graph):
    modes = []

    class Nested(pb.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad_output):
            before = pb.is_grad_enabled()
            with pb.enable_grad():
                inner = leaf([1.0, 2.0, 3.0])
                (grad,) = pb.autograd.grad(inner**3, inner, grad_outputs=grad_output)
                during = pb.is_grad_enabled()
            modes.append((before, during, pb.is_grad_enabled()))
            return grad

    x = leaf([5.0, 5.0, 5.0])
    (grad,) = pb.autograd.grad(Nested.apply(x).sum(), x, create_graph=create_graph)
    assert grad.tolist() == [3.0, 12.0, 27.0]
    assert modes == [(create_graph, True, create_graph)]
    assert pb.is_grad_enabled() is True


def test_G04_backward_under_no_grad_leaves_the_mode_off():
    x = leaf([2.0])
    y = x * x
    with pb.no_grad():
        y.backward()
        assert pb.is_grad_enabled() is False
    assert x.grad.tolist() == [4.0]


def test_G04_create_graph_records_even_under_no_grad():
    x = leaf([2.0])
    y = x**3
    with pb.no_grad():
        (first,) = pb.autograd.grad(y, x, create_graph=True)
        assert first.requires_grad is True
        assert pb.is_grad_enabled() is False
    (second,) = pb.autograd.grad(first, x)
    assert second.tolist() == [12.0]


@pytest.mark.parametrize("enter", [pb.no_grad, pb.enable_grad, pb.inference_mode])
@pytest.mark.parametrize("outer", [True, False])
def test_G04_restored_when_the_block_is_left_by_an_error(enter, outer):
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


@pytest.mark.parametrize("create_graph", [False, True])
def test_G04_restored_when_backward_fails(create_graph):
    class Fail(pb.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad_output):
            pb.set_grad_enabled(not create_graph)
            raise KeyError("in backward")

    x = leaf([1.0])
    with pytest.raises(KeyError, match="in backward"):
        pb.autograd.grad(Fail.apply(x), x, create_graph=create_graph)
    assert pb.is_grad_enabled() is True


# --- G05: per thread and per task ------------------------------------------------------------


def test_G05_the_mode_is_per_thread():
    x = leaf([1.0])
    seen = {}

    def work():
        seen["started"] = pb.is_grad_enabled()
        seen["recorded"] = (x * 2).requires_grad
        pb.set_grad_enabled(False)
        seen["after"] = pb.is_grad_enabled()

    with pb.no_grad():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert pb.is_grad_enabled() is False
    assert seen == {"started": True, "recorded": True, "after": False}
    assert pb.is_grad_enabled() is True


def test_G05_the_mode_is_per_task():
    async def off(barrier):
        with pb.no_grad():
            await barrier.wait()
            await asyncio.sleep(0)
            return pb.is_grad_enabled()

    async def on(barrier):
        await barrier.wait()
        await asyncio.sleep(0)
        return pb.is_grad_enabled()

    async def program():
        barrier = asyncio.Barrier(2)
        return await asyncio.gather(off(barrier), on(barrier))

    assert asyncio.run(program()) == [False, True]
