"""A rewritten function does what the original does."""

import ast
import contextlib
import functools
from types import CellType

import numpy as np
import pytest

import pullback as pb
from pullback.check.repair.sites import Rewritten, TooLongError
from pullback.check.repair.source import replaced, source_of

TOTAL = 10


def comprehensions(n):
    pairs = {i: [j for j in range(i) if j % 2] for i in range(n)}
    return pairs, {i * i for i in range(n)}, sum(i for i in range(n) if i)


def texts(n):
    """Not a value."""
    return f"{n!r:>{4 + 2}} {n + 1}", f"{'a' * n}", "é" * 2, b"x" * n


def stars(*args, key=2, **more):
    first, *rest = [*args, key]
    return dict(more, first=first, rest=rest), max(*args, key)


def slices(n):
    x = np.arange(12.0).reshape(3, 4)
    y = x[1:, ::-1].copy()
    y[0, :-1] += n
    y[-1] = x[0, ..., None][:, 0]
    return y.sum(), x[:, [0, 2]][1].tolist()


def walrus(n):
    if (half := n // 2) > 1:
        return half
    return [last := i for i in range(n)], n and last


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


def global_names(n):
    global TOTAL
    TOTAL += n
    before, TOTAL = TOTAL, 10
    return before


def loops(n):
    found = []
    while n > 0:
        n -= 1
        if n == 7:
            break
        for i in range(n):
            if i == 2:
                continue
            found.append(i)
        else:
            found.append("for")
    else:
        found.append("while")
    return found


def generated(n):
    def numbers():
        got = yield n
        yield from range(n)
        yield got

    return list(numbers())


def matched(n):
    match (n, [n, n + 1]):
        case (0, [0, *rest]):
            return rest
        case (int(k), [_, m]) if k < 3:
            return k + m
        case _:
            return -n


def chained(n):
    a = b = [0, 1, 2]
    a[1] += n
    del b[0]
    return a, 0 < n <= 3 < 9, not n, n if n > 1 else -n, (n and 2) or 3, n is None, ~n, +n, 2**-n


def raising(n):
    if n > 4:
        raise RuntimeError("too many")
    if n > 1:
        raise ValueError(f"not {n}")
    return [1, 2][n + 1]


def arrays(n):
    x = pb.tensor([1.0, 2.0]) * n
    return (x.numpy().T @ np.ones(2)).item(), np.linalg.norm(x.numpy(), ord=2), x.shape[0]


def sorted_by(n):
    return sorted(range(n), key=lambda i: -i), list(map(str, range(n))), super


def annotated(n: int) -> "list[int]":
    x: int = n + 1
    y: int
    y = x * 2
    return [x, y]


def classes(n):
    class Pair:
        first = n + 1

        def second(self):
            return self.first * 2

    return Pair().second()


def matched_classes(point):
    match {"key": point}:
        case {"key": int(k)}:
            return k
    return None


CORPUS = (
    comprehensions, texts, stars, slices, walrus, nested, tried, global_names, loops, generated,
    matched, chained, raising, arrays, sorted_by, annotated, classes, matched_classes,
)  # fmt: skip


def outcome(function, *args):
    try:
        return repr(function(*args))
    except Exception as error:
        return repr(error)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("function", CORPUS, ids=lambda f: f.__name__)
def test_a_rewritten_function_returns_or_raises_what_the_original_does(function, n):
    rewritten = Rewritten(source_of(function))
    with rewritten.noting():
        assert outcome(rewritten.called(), n) == outcome(function, n)


def doubled(x):
    return x * 2


def site(rewritten, kind, function=None):
    """Return the number of the first expression of a kind."""
    return next(
        k
        for k, (source, node) in enumerate(rewritten.sites)
        if type(node) is kind and function in (None, source.function)
    )


def test_another_value_holds_as_long_as_its_block():
    rewritten = Rewritten(source_of(doubled))
    with rewritten.with_values({site(rewritten, ast.BinOp): lambda value: value + 0.5}):
        assert rewritten.called()(3) == 6.5
    assert rewritten.called()(3) == 6


def test_another_definition_may_use_more_names_and_holds_as_long_as_its_block():
    source = source_of(doubled)
    rewritten = Rewritten(source)
    new = ast.parse("x * factor", mode="eval").body
    tree = replaced(source.tree, [(source.tree.body[0].value, new)])
    with rewritten.with_tree(source, tree, {"factor": CellType(5)}):
        assert rewritten.called()(3) == 15
    assert rewritten.called()(3) == 6


def test_a_change_ends_with_an_exception_too():
    rewritten = Rewritten(source_of(doubled))
    with pytest.raises(KeyError), rewritten.with_values({0: lambda value: {}[value]}):
        rewritten.called()(3)
    assert rewritten.called()(3) == 6


def zeroed(x):
    found = x * 2
    found[0] = 0
    return found


def test_what_an_expression_had_is_known_though_it_is_written_to_afterwards():
    rewritten = Rewritten(source_of(zeroed))
    with rewritten.noting() as seen:
        rewritten.called()(np.ones(2))
    assert seen[site(rewritten, ast.BinOp)].value.tolist() == [2, 2]
    assert rewritten.names_in(seen, rewritten.source)["found"].tolist() == [0, 2]


def test_arrays_that_come_in_the_place_of_a_value_are_copies():
    array = np.ones(2)
    rewritten = Rewritten(source_of(doubled))
    with rewritten.with_values({0: lambda value: array}):
        rewritten.called()(3)[:] = 7
    assert array.tolist() == [1, 1]


def counted(n):
    i = 0
    while i < n:
        i = i + 1
    return i


def test_a_loop_that_a_change_makes_endless_ends():
    rewritten = Rewritten(source_of(counted))
    k = site(rewritten, ast.Compare)
    with pytest.raises(TooLongError), rewritten.with_values({k: lambda value: True}):
        rewritten.called()(3)


def factorial(n):
    return n * factorial(n - 1) if n else 1


def twice_factorial(n):
    return 2 * factorial(n)


def test_a_helper_that_calls_itself_is_rewritten_once():
    rewritten = Rewritten(source_of(twice_factorial))
    assert list(rewritten.sources) == [twice_factorial, factorial]
    assert rewritten.called()(5) == 240
    with rewritten.noting() as seen:
        rewritten.called()(2)
    assert seen[site(rewritten, ast.IfExp, factorial)].count == 3
    assert factorial(5) == 120


@functools.cache
def cached(n):
    return n + 1


def uses_cached(n):
    return cached(n) + np.sin(0.0) + outside(n)


outside = pb.autograd.__class__  # of another file


def test_helpers_of_other_files_or_wrapped_ones_are_left_as_they_are():
    assert list(Rewritten(source_of(uses_cached)).sources) == [uses_cached]
