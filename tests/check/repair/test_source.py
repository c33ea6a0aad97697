"""The definition of a function, found in its file."""

import ast
import functools
import linecache

import numpy as np
import pytest
from tests.check._repair import defined

from pullback.check.repair.source import quotation, replaced, source_of


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

    def method(self, x):
        return x + 3


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


def test_a_file_that_is_no_python_has_no_source():
    function = defined("def f(x):\n    return x\n", "f")
    text = "def f(x:\n    return x\n# another\n"
    file = function.__code__.co_filename
    linecache.cache[file] = (1, None, text.splitlines(keepends=True), file)
    assert source_of(function) is None


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
