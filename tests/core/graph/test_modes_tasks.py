"""Grad modes in generators, coroutines, tasks and threads."""

import asyncio
import contextvars
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.core.graph.grad_modes import every_decorator, every_off
from tests.tensors import leaf

import pullback as pb
from pullback.errors import ArgumentTypeError

on = pb.is_grad_enabled


pytestmark = pytest.mark.usefixtures("modes_as_they_were")


# -- generators ------------------------------------------------------------------------------------
@pytest.mark.case("G02")
@every_decorator
def test_no_grad_decorates_a_generator_whose_consumer_keeps_its_own_mode(decorate):
    inside, outside = [], []

    @decorate
    def numbers(n):
        for i in range(n):
            inside.append(on())
            yield i
        inside.append(on())
        return "result"

    generator = numbers(3)
    assert on()
    for _ in range(3):
        next(generator)
        outside.append(on())
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "result"
    assert inside == [False] * 4
    assert outside == [True] * 3


@pytest.mark.case("G02")
def test_a_consumer_may_change_its_mode_between_steps():
    @pb.no_grad
    def numbers():
        for i in range(4):
            assert not on()
            yield i

    generator = numbers()
    next(generator)
    with pb.no_grad():
        next(generator)
        assert not on()
        with pb.enable_grad():
            next(generator)
            assert on()
    next(generator)
    assert on()


@pytest.mark.case("G02")
def test_two_generators_interleave():
    @pb.no_grad
    def off():
        while True:
            yield on()

    @pb.enable_grad
    def recording():
        while True:
            yield on()

    a, b = off(), recording()
    with pb.no_grad():
        states = [next(a), next(b), on(), next(a), next(b), on()]
    assert states == [False, True, False, False, True, False]


@pytest.mark.case("G02")
def test_values_are_sent_into_a_generator():
    @pb.no_grad
    def echo():
        received = []
        while len(received) < 3:
            received.append((yield on()))
            assert not on()
        return received

    generator = echo()
    assert next(generator) is False
    assert generator.send("a") is False
    assert generator.send("b") is False
    with pytest.raises(StopIteration) as stop:
        generator.send("c")
    assert stop.value.value == ["a", "b", "c"]


@pytest.mark.case("G02")
def test_exceptions_are_thrown_into_a_generator():
    @pb.no_grad
    def stubborn():
        caught = 0
        while True:
            try:
                yield caught, on()
            except KeyError:
                caught += 1
                assert not on()

    generator = stubborn()
    assert next(generator) == (0, False)
    assert generator.throw(KeyError("benign")) == (1, False)
    assert on()
    with pytest.raises(ValueError, match="fatal"):
        generator.throw(ValueError("fatal"))
    assert on()
    with pytest.raises(StopIteration):
        next(generator)


@pytest.mark.case("G02")
def test_a_generator_is_closed_in_its_mode():
    ended = []

    @pb.no_grad
    def numbers():
        try:
            yield 1
        finally:
            ended.append(on())

    generator = numbers()
    next(generator)
    generator.close()
    assert ended == [False]
    generator.close()
    assert on()


def test_a_generator_that_is_dropped_half_way_leaves_the_mode_alone():
    @pb.no_grad
    def numbers():
        yield 1
        yield 2

    generator = numbers()
    next(generator)
    del generator
    assert on()


def test_a_generator_that_raises_leaves_the_mode_alone():
    @pb.no_grad
    def fails():
        yield 1
        raise ValueError("inside")

    generator = fails()
    next(generator)
    with pytest.raises(ValueError, match="inside"):
        next(generator)
    assert on()


def test_a_decorated_generator_function_is_still_one():
    @pb.no_grad
    def numbers():
        yield 1

    assert inspect.isgeneratorfunction(numbers)
    assert list(numbers()) == [1]


def test_yield_from_a_decorated_generator():
    @pb.no_grad
    def inner():
        got = yield on()
        return got

    def outer():
        result = yield from inner()
        yield result, on()

    generator = outer()
    assert next(generator) is False
    assert generator.send("sent") == ("sent", True)


# -- coroutines and tasks --------------------------------------------------------------------------
@pytest.mark.case("G02")
def test_no_grad_decorates_a_coroutine_whose_caller_keeps_its_own_mode():
    @pb.no_grad
    async def slow(x):
        first = on()
        await asyncio.sleep(0)
        return first, on(), (x * 2.0).requires_grad

    async def main():
        task = asyncio.ensure_future(slow(leaf()))
        await asyncio.sleep(0)
        here = on()
        return here, await task, await slow(leaf()), on()

    assert asyncio.run(main()) == (True, (False,) * 3, (False,) * 3, True)


def test_a_decorated_coroutine_function_is_still_one():
    @pb.no_grad()
    async def f():
        return on()

    assert inspect.iscoroutinefunction(f)
    assert asyncio.run(f()) is False


@pytest.mark.case("G02")
def test_an_exception_in_a_coroutine_reaches_its_caller_with_the_mode_restored():
    @pb.no_grad
    async def fails():
        await asyncio.sleep(0)
        raise ValueError("inside")

    async def main():
        with pytest.raises(ValueError, match="inside"):
            await fails()
        return on()

    assert asyncio.run(main())


def test_a_cancelled_coroutine_ends_in_its_mode():
    ended = []

    @pb.no_grad
    async def waits():
        try:
            await asyncio.sleep(60.0)
        finally:
            ended.append(on())

    async def main():
        task = asyncio.ensure_future(waits())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return on()

    assert asyncio.run(main())
    assert ended == [False]


@pytest.mark.case("G02")
@every_decorator
def test_no_grad_refuses_an_asynchronous_generator_with_the_way_out(decorate):
    async def numbers(n):
        for i in range(n):
            yield i

    with pytest.raises(ArgumentTypeError) as caught:
        decorate(numbers)
    assert str(caught.value) == (
        "a mode cannot decorate an async generator function, got "
        f"{numbers.__qualname__}.\n"
        "hint: open the mode inside it, around the code between two yields."
    )
    assert on()


def test_a_mode_opened_inside_an_asynchronous_generator_leaves_its_consumer_alone():
    inside = []

    async def numbers(n):
        for i in range(n):
            with pb.no_grad():
                inside.append(on())
                await asyncio.sleep(0)
                inside.append(on())
            yield i

    async def main():
        return [(i, on()) async for i in numbers(3)]

    assert asyncio.run(main()) == [(0, True), (1, True), (2, True)]
    assert inside == [False] * 6


@pytest.mark.case("G05")
def test_tasks_do_not_see_each_others_modes():
    async def worker(off, turns):
        states = []
        with pb.set_grad_enabled(not off):
            for _ in range(turns):
                states.append(on())
                await asyncio.sleep(0)
                states.append((leaf() * 2.0).requires_grad)
        states.append(on())
        return states

    async def main():
        return await asyncio.gather(*[worker(i % 2 == 0, 5) for i in range(6)])

    for i, states in enumerate(asyncio.run(main())):
        assert states == [i % 2 == 1] * 10 + [True]


def test_a_task_starts_in_the_mode_of_its_creator_and_keeps_it():
    async def child():
        await asyncio.sleep(0)
        return on()

    async def main():
        with pb.no_grad():
            task = asyncio.ensure_future(child())
        return await task, on()

    assert asyncio.run(main()) == (False, True)


def test_a_change_in_a_task_ends_with_it():
    async def child():
        pb.set_grad_enabled(False)
        return on()

    async def main():
        return await asyncio.ensure_future(child()), on()

    assert asyncio.run(main()) == (False, True)


def test_backward_in_tasks():
    async def work(value):
        x = leaf(value)
        y = x * x
        await asyncio.sleep(0)
        y.backward()
        await asyncio.sleep(0)
        return x.grad.item()

    async def main():
        return await asyncio.gather(*[work(float(i)) for i in range(5)])

    assert asyncio.run(main()) == [0.0, 2.0, 4.0, 6.0, 8.0]


# -- threads ---------------------------------------------------------------------------------------
def in_thread(fn):
    """Return what `fn` gives in a new thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(fn()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.case("G05")
@every_off
def test_a_new_thread_starts_recording_whatever_its_creator_does(off):
    with off():
        assert in_thread(on) is True
        assert in_thread(lambda: leaf().exp().requires_grad) is True
        assert not on()


@pytest.mark.case("G05")
def test_a_mode_set_in_a_thread_stays_there():
    def switch_off():
        pb.set_grad_enabled(False)
        return on()

    assert in_thread(switch_off) is False
    assert on()


def test_threads_of_a_pool_do_not_see_each_others_modes():
    barrier = threading.Barrier(4, timeout=30)

    def worker(i):
        with pb.set_grad_enabled(i % 2 == 0):
            barrier.wait()
            states = [on(), (leaf() * 2.0).requires_grad]
            barrier.wait()
        return [*states, on()]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(worker, range(4)))
    assert results == [[True] * 3, [False, False, True]] * 2


def test_a_copied_context_carries_the_mode():
    with pb.no_grad():
        context = contextvars.copy_context()
    assert context.run(on) is False
    assert on()
