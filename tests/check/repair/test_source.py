"""The definition of a function, found in its file, and functions that run with a change."""

import ast
import functools
import inspect

import numpy as np
import pytest

import pullback as pb
from pullback.check.repair.source import (
    Rewritten,
    quotation,
    source_of,
    with_helpers,
)


def logged(function):
    @functools.wraps(function)
    def run(*args, **kwargs):
        return function(*args, **kwargs)

    return run


@logged
@logged
def decorated(x: int) -> int:
    return x + 1


def closed(free, unused=0):
    def inner(x, default=4, *, only=5):
        return x + free + default + only

    inner.mark = "own"
    return inner


plus, minus = (lambda x: x + 1), 3
both = (lambda x: x + 1, lambda x: x - 1)  # which are not told apart


@pytest.mark.parametrize("function", [decorated, closed(2), plus])
def test_a_function_made_of_its_source_does_the_same(function):
    source = source_of(function)
    made = source.made(source.tree, {})
    assert made(7) == function(7)
    assert (made.__kwdefaults__, vars(made)) == (
        function.__kwdefaults__,
        vars(inspect.unwrap(function)),
    )


@pytest.mark.parametrize("other", [len, np.sin, 3, functools.partial(decorated, 1), both[0]])
def test_what_is_no_function_or_one_of_two_in_a_line_has_no_source(other):
    assert source_of(other) is None


def wide(x, y):
    first = x + y
    second = x - y
    return [first * 1000000001, second * 1000000002, first * 1000000003, second * 1000000004, 1, 2]


def test_a_quotation_is_the_widest_expression_that_is_not_too_long():
    tree = source_of(wide).tree
    change = tree.body[0].value
    new = ast.parse("x * y", mode="eval").body
    assert quotation(tree, [(change, new)]) == ("first = x + y", "first = x * y")


# -- functions that run changed --------------------------------------------------------------------
def nested(n):
    count = n

    def more(k=1):
        nonlocal count
        count += k
        return lambda m: m * count + k

    return more()(2), more(k=3)(1), count


def matched(n):
    match (n, [n, n + 1]):
        case (0, [0, *rest]):
            return rest
        case (int(k), [_, m]) if k < 3:
            return k + m
        case _:
            return -n


def outcome(function, *args):
    try:
        return repr(function(*args))
    except Exception as error:
        return repr(error)


def rewritten(function):
    return Rewritten(with_helpers(source_of(function)))


@pytest.mark.parametrize("n", [0, 2, 9])
@pytest.mark.parametrize("function", [nested, matched])
def test_a_rewritten_function_returns_or_raises_what_the_original_does(function, n):
    found = rewritten(function)
    with found.noting():
        assert outcome(found.calls[function], n) == outcome(function, n)


def factorial(n):
    return n * factorial(n - 1) if n else 1


def twice_factorial(n):
    return 2 * factorial(n)


def test_a_helper_that_calls_itself_is_rewritten_once():
    found = rewritten(twice_factorial)
    assert list(found.sources) == [twice_factorial, factorial]
    assert found.calls[twice_factorial](5) == 240
    with found.noting() as noted:
        found.calls[twice_factorial](2)
    value = found.sources[factorial].tree.body[0].value
    assert noted.seen[value].count == 3
    assert factorial(5) == 120


@functools.cache
def cached(n):
    return n + 1


def uses_cached(n):
    return cached(n) + np.sin(0.0) + pb.autograd.__class__(n)  # of another file


def test_helpers_of_other_files_or_wrapped_ones_are_left_as_they_are():
    assert [s.function for s in with_helpers(source_of(uses_cached))] == [uses_cached]
