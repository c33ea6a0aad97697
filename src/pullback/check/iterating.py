"""Whether a function approximates its result: by iterating until it is close enough, or by steps.

The rule of such a function is often the derivative of the exact result, as by the implicit function
theorem; it then differs from the differences by as much as forward differs from the exact result.
Found in the source, since it does not show in the values.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import cached_property
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

# Functions of SciPy and NumPy that iterate, or that approximate an integral or a trajectory.
_SOLVERS = re.compile(
    r"bicg\w*|bisect|brent[hq]|cg|[dn]?quad\w*|tplquad|fixed_quad|(leg|lag|herm)gauss|eigsh?|svds"
    r"|lobpcg|fixed_point|fmin\w*|fminbound|fsolve|l?gmres|minres|qmr|ls[mq]r|least_squares|nnls"
    r"|minimize\w*|differential_evolution|newton\w*|ridder|toms748|root|root_scalar|odeint|ode"
    r"|solve_(bvp|ivp)"
)
# Those that approximate one from samples: by a sum, as exact elsewhere as it is here.
_SUMS = re.compile("cumulative_trapezoid|romb|simpson|trapz|trapezoid")
_GUARD = re.compile(r"errstate|nan_to_num|[!=]= ?0(\.0)?\b|isfinite|isnan")
_DEEPEST = 3  # how many calls deep the helpers of a function are read


def iterates(fn: Callable[..., Any]) -> bool:
    """Return whether the source of a function, or of one it calls, shows an approximation.

    Examples
    --------
    >>> from scipy.optimize import brentq
    >>> iterates(lambda a: brentq(lambda x: x**3 - a, 0.0, 2.0))
    True
    """
    return any(found.ends or found.repeats for found in _sources(fn))


def converges(fn: Callable[..., Any]) -> bool:
    """Return whether a function, or one it calls, ends once something holds.

    A loop of a fixed number of steps is a function like others, only perhaps not the one that is
    meant; one that ends when it is close enough may end too early elsewhere.

    Examples
    --------
    >>> from scipy.optimize import brentq
    >>> converges(lambda a: brentq(lambda x: x**3 - a, 0.0, 2.0))
    True
    """
    return any(found.ends for found in _sources(fn))


class _Source:
    """The source of a function, and what it shows, looked up once."""

    def __init__(self, tree: ast.AST) -> None:
        self.tree = tree

    @cached_property
    def names(self) -> dict[str, None]:
        """The names in it, in order."""
        return {node.id: None for node in ast.walk(self.tree) if isinstance(node, ast.Name)}

    @cached_property
    def ends(self) -> bool:
        """Whether it ends once something holds."""
        return any(_ends(node) or _calls_one_of(_SOLVERS, node) for node in ast.walk(self.tree))

    @cached_property
    def repeats(self) -> bool:
        """Whether it repeats one step a number of times, or sums samples of an integrand."""
        nodes = ast.walk(self.tree)
        return any(repeats(node) or _calls_one_of(_SUMS, node) for node in nodes)

    @cached_property
    def text(self) -> str:
        """The source as Python writes it, without comments."""
        return ast.unparse(self.tree)


_SOURCES: WeakKeyDictionary[Any, _Source | None] = WeakKeyDictionary()  # parsed once each


def _source(fn: Any) -> _Source | None:
    """Return the source of a function; None if it has none, or is part of a line."""
    try:
        if fn in _SOURCES:
            return _SOURCES[fn]
    except TypeError:  # one that cannot be looked up
        pass
    tree = _parsed(fn)
    found = None if tree is None else _Source(tree)
    with contextlib.suppress(TypeError):  # one that can only be held
        _SOURCES[fn] = found
    return found


def tree_of(fn: Any) -> ast.AST | None:
    """Return the source of a function as a tree; None if it has none, or is part of a line.

    The tree is shared: it must not be changed.
    """
    found = _source(fn)
    return None if found is None else found.tree


def _parsed(fn: Any) -> ast.AST | None:
    try:
        found = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(fn))))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    if getattr(fn, "__name__", "") != "<lambda>":
        return found
    # What stands around a function without a name is the caller's.
    inside = [node for node in ast.walk(found) if isinstance(node, ast.Lambda)]
    own = inside if len(inside) == 1 else [n for n in inside if _does(n) == fn.__code__.co_code]
    return own[0] if own else found


def _does(node: ast.Lambda) -> bytes:
    """Return the instructions of a function without a name that has no free variables."""
    made = compile(ast.fix_missing_locations(ast.Expression(node)), "", "eval")
    return next(c.co_code for c in made.co_consts if isinstance(c, CodeType))


def text_of(fn: Any) -> str:
    """Return the source of an operation's forward and backward; what there is of them."""
    parts = (getattr(fn, "forward", fn), getattr(fn, "given_rule", None))
    sources = [_source(part) for part in parts if part is not None]
    return "\n".join(source.text for source in sources if source is not None)


def said_of(fn: Any) -> str:
    """Return what the docstrings of an operation and of its forward say."""
    return f"{inspect.getdoc(fn) or ''}\n{inspect.getdoc(getattr(fn, 'forward', fn)) or ''}"


def guards(fn: Any, backward: bool = False) -> bool:
    """Return whether forward takes care of divisions by 0 and the like: it is meant for zeros.

    Parameters
    ----------
    fn : callable
    backward : bool, default False
        Whether it is enough that backward does.
    """
    source = _source(getattr(fn, "forward", fn))
    text = text_of(fn) if backward else "" if source is None else source.text
    return _GUARD.search(text) is not None


def trees_of(fn: Any) -> list[ast.AST]:
    """Return the source of a function and of the functions it calls by name."""
    return [source.tree for source in _with_helpers(fn, _DEEPEST, set())]


def _sources(fn: Any) -> Iterator[_Source]:
    """Yield the source of forward and of the functions it calls by name."""
    return _with_helpers(getattr(fn, "forward", fn), _DEEPEST, set())


def _with_helpers(fn: Any, depth: int, seen: set[int]) -> Iterator[_Source]:
    fn = inspect.unwrap(getattr(fn, "py_func", fn)) if callable(fn) else fn
    fn = getattr(fn, "__func__", fn)
    if depth == 0 or not inspect.isfunction(fn) or id(fn) in seen:
        return
    seen.add(id(fn))
    source = _source(fn)
    if source is None:
        return
    yield source
    closed = inspect.getclosurevars(fn).nonlocals
    for name in source.names:
        yield from _with_helpers(closed.get(name, fn.__globals__.get(name)), depth - 1, seen)


def _ends(node: ast.AST) -> bool:
    """Return whether a loop ends once something holds."""
    if isinstance(node, ast.While):
        return True
    return isinstance(node, ast.For) and any(isinstance(n, ast.Break) for n in _within(node))


def repeats(node: ast.AST) -> bool:
    """Return whether a statement is a loop that repeats one step a number of times."""
    if not isinstance(node, ast.For):
        return False
    used = {found.id for found in _within(node) if isinstance(found, ast.Name)}
    targets = {found.id for found in ast.walk(node.target) if isinstance(found, ast.Name)}
    return not targets & used


def _within(loop: ast.For) -> list[ast.AST]:
    return [found for statement in loop.body for found in ast.walk(statement)]


def _calls_one_of(names: re.Pattern[str], node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    name = node.func.id if isinstance(node.func, ast.Name) else name
    return names.fullmatch(name) is not None
