"""The definition of a function, found in its file, and functions that run with a change."""

import ast
import contextlib
import functools

import numpy as np
import pytest

import pullback as pb
from pullback.check.repair.source import (
    Rewritten,
    TooLongError,
    quotation,
    replaced,
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


class Holder:
    @staticmethod
    def static(x):
        return x + 2


def closed(free, unused=0):
    def inner(x, default=4, *, only=5):
        return x + free + default + only

    inner.mark = "own"
    return inner


plus, minus = (lambda x: x + 1), 3
both = (lambda x: x + 1, lambda x: x - 1)


def remade(function):
    source = source_of(function)
    return source.made(source.tree, {})


@pytest.mark.parametrize("function", [decorated, Holder.static, closed(2), plus])
def test_a_function_made_of_its_source_does_the_same(function):
    assert remade(function)(7) == function(7)


def test_decorators_are_left_out():
    tree = source_of(decorated).tree
    assert ast.unparse(tree) == "def decorated(x: int) -> int:\n    return x + 1"


def test_defaults_and_attributes_are_kept():
    made = remade(closed(2))
    assert made(1, 1, only=1) == 5
    assert made.mark == "own"
    assert made.__kwdefaults__ == {"only": 5}


def test_two_lambdas_in_a_line_are_not_told_apart():
    assert source_of(both[0]) is None


@pytest.mark.parametrize("other", [len, np.sin, 3, functools.partial(decorated, 1), Holder])
def test_what_is_no_function_has_no_source(other):
    assert source_of(other) is None


def test_a_function_without_file_has_no_source():
    names = {}
    exec("def f(x):\n    return x", names)
    assert source_of(names["f"]) is None


def wide(x, y):
    first = x + y
    second = x - y
    return [first * 1000000001, second * 1000000002, first * 1000000003, second * 1000000004, 1, 2]


def nodes(kind):
    tree = source_of(wide).tree
    return tree, [node for node in ast.walk(tree) if isinstance(node, kind)]


def test_a_quotation_is_the_widest_expression_that_is_not_too_long():
    tree, found = nodes(ast.BinOp)
    change = next(node for node in found if ast.unparse(node) == "x + y")
    new = ast.parse("x * y", mode="eval").body
    assert quotation(tree, [(change, new)]) == ("first = x + y", "first = x * y")


def test_a_replaced_expression_leaves_the_tree_as_it_was():
    tree, found = nodes(ast.BinOp)
    before = ast.dump(tree)
    changed = replaced(tree, [(found[0], ast.Constant(0))])
    assert ast.dump(tree) == before
    assert "first = 0" in ast.unparse(changed)


# -- functions that run changed --------------------------------------------------------------------
def comprehensions(n):
    pairs = {i: [j for j in range(i) if j % 2] for i in range(n)}
    return pairs, {i * i for i in range(n)}, sum(i for i in range(n) if i)


def texts(n):
    """Not a value."""
    return f"{n!r:>{4 + 2}} {n + 1}", f"{'a' * n}", "é" * 2, b"x" * n


def stars(*args, key=2, **more):
    first, *rest = [*args, key]
    return dict(more, first=first, rest=rest), max(*args, key)


def nested(n):
    count = n

    def more(k=1):
        nonlocal count
        count += k
        return lambda m: m * count + k

    return more()(2), more(k=3)(1), count


def tried(n):
    found = []
    try:
        found.append(10 / n)
    except ZeroDivisionError as error:
        found.append(str(error))
    else:
        found.append("else")
    finally:
        found.append("finally")
    with contextlib.suppress(KeyError), contextlib.nullcontext(n) as same:
        found.append(same)
        {}["missing"]
    return found


def matched(n):
    match (n, [n, n + 1]):
        case (0, [0, *rest]):
            return rest
        case (int(k), [_, m]) if k < 3:
            return k + m
        case _:
            return -n


def arrays(n):
    x = pb.tensor([1.0, 2.0]) * n
    return (x.numpy().T @ np.ones(2)).item(), np.linalg.norm(x.numpy(), ord=2), x.shape[0]


CORPUS = (comprehensions, texts, stars, nested, tried, matched, arrays)


def outcome(function, *args):
    try:
        return repr(function(*args))
    except Exception as error:
        return repr(error)


def rewritten(function):
    sources = with_helpers(source_of(function))
    return Rewritten(sources), sources[0]


@pytest.mark.parametrize("n", [0, 2, 9])
@pytest.mark.parametrize("function", CORPUS, ids=lambda f: f.__name__)
def test_a_rewritten_function_returns_or_raises_what_the_original_does(function, n):
    found, _ = rewritten(function)
    with found.noting():
        assert outcome(found.calls[function], n) == outcome(function, n)


def doubled(x):
    return x * 2


def test_another_definition_may_use_more_names_and_holds_as_long_as_its_block():
    found, source = rewritten(doubled)
    new = ast.parse("x * factor", mode="eval").body
    with found.changed(source, [(source.tree.body[0].value, new)], {"factor": 5}):
        assert found.calls[doubled](3) == 15
    assert found.calls[doubled](3) == 6
    assert doubled(3) == 6


def zeroed(x):
    found = x * 2
    found[0] = 0
    return found


def test_what_an_expression_had_is_known_though_it_is_written_to_afterwards():
    found, source = rewritten(zeroed)
    with found.noting() as noted:
        found.calls[zeroed](np.ones(2))
    assert noted.seen[source.tree.body[0].value].value.tolist() == [2, 2]
    assert noted.names[source]["found"].tolist() == [0, 2]


def counted(n):
    i = 0
    while i < n:
        i = i + 1
    return i


def test_a_loop_that_a_change_makes_endless_ends():
    found, source = rewritten(counted)
    test = source.tree.body[1].test
    with pytest.raises(TooLongError), found.changed(source, [(test, ast.Constant(True))], {}):
        found.calls[counted](3)


def factorial(n):
    return n * factorial(n - 1) if n else 1


def twice_factorial(n):
    return 2 * factorial(n)


def test_a_helper_that_calls_itself_is_rewritten_once():
    found, _ = rewritten(twice_factorial)
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
    return cached(n) + np.sin(0.0) + outside(n)


outside = pb.autograd.__class__  # of another file


def test_helpers_of_other_files_or_wrapped_ones_are_left_as_they_are():
    assert [s.function for s in with_helpers(source_of(uses_cached))] == [uses_cached]
