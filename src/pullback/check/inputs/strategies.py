"""Strategies of Hypothesis for tensors and for whole argument lists, and the search with them.

Hypothesis is imported when the first strategy is made. Values are multiples of 1/16: exact in every
dtype, with zeros, ties and negative values among them; they shrink to small whole numbers.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.check.inputs.arguments import Inputs
from pullback.check.inputs.drawing import bounds, draw, shape_of
from pullback.check.inputs.shape_text import KINDS, ArgumentSpec, Interval, parse
from pullback.check.properties.arrays import (
    expanded,
    fortran,
    inside,
    ordered,
    read_only,
    reversed_,
    stepped,
)
from pullback.check.values import Array
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ArgumentTypeError, MissingExtraError

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "C": inside,
    "Fortran": fortran,
    "swapped": ordered(-2, -1),
    "sliced": stepped,
    "reversed": reversed_,
    "broadcast": expanded((0,)),
    "read-only": read_only,
}
_BY_ELEMENTS = ("positive", "unit", "distinct")
# The most checks of a search: shrinking ends there.
MAX_CHECKS = 120
_LEAST_AXES = {"swapped": 2, "sliced": 1, "reversed": 1, "broadcast": 1}  # else it is plain


def tensors(
    shape: Any = None,
    dtype: Any = None,
    elements: SearchStrategy[Any] | None = None,
    *,
    min_dims: int = 0,
    max_dims: int = 3,
    min_side: int = 1,
    max_side: int = 5,
    requires_grad: bool = True,
    layouts: bool = True,
    special: bool = False,
) -> SearchStrategy[Tensor]:
    """Return a Hypothesis strategy that draws tensors.

    Parameters
    ----------
    shape : int, tuple of int, str, or strategy, optional
        The shape; in a text such as ``"(n, n, 2)"`` the symbols are drawn between the sides. By
        default any within the limits below.
    dtype : str, DType, sequence of them, or strategy, optional
        By default float64 or float32.
    elements : strategy, optional
        Draws one element, cast to the dtype. By default multiples of 1/16 up to 8.
    min_dims, max_dims, min_side, max_side : int
        Limits of a shape that is drawn.
    requires_grad : bool, default True
        Whether the tensor requires grad, where its dtype can.
    layouts : bool, default True
        Whether memory may also be in Fortran order, with swapped axes, sliced with an offset,
        reversed, broadcast along the first axis, or read-only.
    special : bool, default False
        Whether there may be tiny and huge values: the dtype's precision and its reciprocal.

    Returns
    -------
    hypothesis.strategies.SearchStrategy

    Raises
    ------
    MissingExtraError
        If Hypothesis is not installed.
    ArgumentError
        If the text is not a shape, or the dtype is not valid.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> from hypothesis import given
    >>> @given(pb.check.tensors("(n, n)", dtype="float64", requires_grad=False))
    ... def the_trace_is_linear(x):
    ...     assert np.isclose(float(pb.trace(2.0 * x)), 2.0 * float(pb.trace(x)))
    >>> the_trace_is_linear()
    """
    st = hypothesis_for("tensors").strategies
    wide = _dtypes(st, ("float64", "float32") if dtype is None else dtype)
    shapes = _shapes(st, shape, (min_dims, max_dims), (min_side, max_side))

    def tensors(draw: Any, shape: Any, dtype: Any) -> Tensor:
        size, kind = draw(shape), draw(dtype)
        each = _elements(st, kind, special) if elements is None else elements
        array = np.asarray(draw(_arrays(kind, size, each)))
        return _tensor(array, _layout(draw, st, layouts), requires_grad)

    strategy: SearchStrategy[Tensor] = st.composite(tensors)(shapes, wide)
    return strategy


def arguments(
    text: str,
    *,
    max_side: int = 5,
    requires_grad: bool = True,
    layouts: bool = True,
    special: bool = False,
) -> SearchStrategy[tuple[Any, ...]]:
    """Return a Hypothesis strategy that draws all arguments of a call.

    Parameters
    ----------
    text : str
        Describes them, as for `check_op`: ``"x: (n, d), index: (k,) int in [0, n), scale: 0.5"``.
    max_side : int, default 5
        The largest size of a symbol; the smallest is 1.
    requires_grad, layouts, special : bool
        As for `tensors`; `special` where the text names no interval.

    Returns
    -------
    hypothesis.strategies.SearchStrategy
        Draws tuples in the order of the text.

    Raises
    ------
    MissingExtraError
        If Hypothesis is not installed.
    ArgumentError
        If the text is not such a description; the message says where.

    Examples
    --------
    >>> import pullback as pb
    >>> from hypothesis import given
    >>> @given(pb.check.arguments("x: (n, d), w: (m, d)"))
    ... def shapes_of_a_product(drawn):
    ...     x, w = drawn
    ...     assert (x @ w.T).shape == (x.shape[0], w.shape[0])
    >>> shapes_of_a_product()
    """
    st = hypothesis_for("arguments").strategies
    described = parse("arguments", text)
    symbols = list(dict.fromkeys(name for d in described for name in d.symbols))

    # Hypothesis shows this name and these arguments.
    def arguments(draw: Any, text: str) -> tuple[Any, ...]:
        sizes = {name: draw(st.integers(1, max_side)) for name in symbols}
        found: list[Any] = []
        for d in described:
            if d.shape is None:
                found.append(d.value)
            else:
                array = draw(_described(st, d, sizes, special))
                found.append(_tensor(array, _layout(draw, st, layouts), requires_grad))
        return tuple(found)

    strategy: SearchStrategy[tuple[Any, ...]] = st.composite(arguments)(text)
    return strategy


# -- parts of a strategy ---------------------------------------------------------------------------
def _arrays(dtype: np.dtype[Any], shape: tuple[int, ...], elements: Any) -> Any:
    """Return a strategy for arrays, drawn in double precision and cast."""
    wide = {"f": np.float64, "c": np.complex128, "b": np.bool_}.get(dtype.kind, np.int64)
    drawn = importlib.import_module("hypothesis.extra.numpy").arrays(wide, shape, elements=elements)
    return drawn.map(lambda array: array.astype(dtype))


def _dtypes(st: Any, dtype: Any) -> Any:
    """Return a strategy for dtypes of NumPy."""
    if isinstance(dtype, st.SearchStrategy):
        return dtype.map(_dtype)
    several = isinstance(dtype, Sequence) and not isinstance(dtype, str)
    return st.sampled_from([_dtype(d) for d in (dtype if several else [dtype])])


def _dtype(dtype: Any) -> np.dtype[Any]:
    name = str(getattr(dtype, "name", dtype)).rpartition(".")[2]
    if name not in KINDS:
        raise ArgumentError(
            f"tensors: a dtype is required, got {dtype!r}; the dtypes are: {', '.join(KINDS)}"
        )
    return np.dtype(KINDS[name])


def _shapes(st: Any, shape: Any, dims: tuple[int, int], sides: tuple[int, int]) -> Any:
    """Return a strategy for shapes."""
    if isinstance(shape, st.SearchStrategy):
        return shape
    if shape is None:
        made = importlib.import_module("hypothesis.extra.numpy").array_shapes
        return made(min_dims=dims[0], max_dims=dims[1], min_side=sides[0], max_side=sides[1])
    if isinstance(shape, str):
        (described,) = parse("tensors", f"shape: {shape}")
        sizes = st.fixed_dictionaries({name: st.integers(*sides) for name in described.symbols})
        return sizes.map(lambda found: shape_of(described, found))
    if isinstance(shape, int) or (
        isinstance(shape, tuple) and all(isinstance(n, int) for n in shape)
    ):
        return st.just((shape,) if isinstance(shape, int) else shape)
    raise ArgumentTypeError(
        "tensors: shape must be an int, a tuple of them, a text such as '(n, n)' or a strategy, "
        f"got {shape!r}"
    )


def _elements(st: Any, dtype: np.dtype[Any], special: bool) -> Any:
    """Return a strategy for one element of a dtype."""
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind in "iu":
        return st.integers(0 if dtype.kind == "u" else -8, 8)
    drawn = st.integers(-8, 8).map(float) | st.integers(-128, 128).map(lambda k: k / 16)
    if special:
        eps = float(np.finfo(dtype).eps)
        drawn = drawn | st.sampled_from([0.0, 1.0, -1.0, eps, -eps, 1 / eps, -1 / eps])
    return st.builds(complex, drawn, drawn) if dtype.kind == "c" else drawn


def _described(st: Any, d: ArgumentSpec, sizes: dict[str, int], special: bool) -> Any:
    """Return a strategy for an array that a text describes."""
    shape, dtype, between = shape_of(d, sizes), np.dtype(d.dtype), bounds(d, sizes)
    if d.domain and d.domain not in _BY_ELEMENTS:  # elements that shrink would leave the set
        seeds = st.integers(0, 2**16)
        return seeds.map(lambda seed: draw(d, sizes, np.random.default_rng(seed)))
    whole = dtype.kind in "iu"
    if dtype.kind == "b" or not (whole or between or d.domain == "distinct"):
        return _arrays(dtype, shape, _elements(st, dtype, special))
    default = (0, min([*sizes.values(), 4]) - 1) if whole else (-2.0, 2.0)
    low, high = between or default
    if d.domain == "distinct":
        return _distinct(st, shape, dtype, low, high, bool(d.interval))
    if whole:
        return _arrays(dtype, shape, st.integers(int(low), int(high)))
    interval = d.interval or Interval("", "")
    steps = st.integers(int(interval.without_low), 16 - interval.without_high)
    each = steps.map(lambda k: low + (high - low) * k / 16)
    return _arrays(dtype, shape, st.builds(complex, each, each) if dtype.kind == "c" else each)


def _distinct(
    st: Any, shape: tuple[int, ...], dtype: np.dtype[Any], low: float, high: float, bounded: bool
) -> Any:
    """Return a strategy for arrays of which no two elements are equal."""
    count = int(np.prod(shape))
    if dtype.kind not in "iu":
        steps = st.permutations(range(count)).map(lambda order: (np.array(order) + 0.5) / count)
        return steps.map(lambda t: np.asarray(low + (high - low) * t, dtype).reshape(shape))
    most = int(high) if bounded else max(int(high), int(low) + count - 1)
    if most - low + 1 < count:
        return st.nothing()
    chosen = st.permutations(range(int(low), most + 1))
    return chosen.map(lambda order: np.array(order[:count], dtype).reshape(shape))


def _layout(draw: Any, st: Any, layouts: bool) -> str:
    if not layouts:
        return "C"
    layout = str(draw(st.sampled_from(tuple(LAYOUTS))))
    if layout != "C":
        importlib.import_module("hypothesis").note(f"memory layout: {layout}")
    return layout


def _tensor(array: Array, layout: str, requires_grad: bool) -> Tensor:
    tensor = box(in_layout(array, layout))
    return tensor.requires_grad_() if requires_grad and tensor.dtype.is_inexact else tensor


def in_layout(array: Array, layout: str) -> Array:
    """Return an array with the same values in another layout; broadcast repeats the first row.

    Examples
    --------
    >>> in_layout(np.arange(6.0).reshape(2, 3), "swapped").strides
    (8, 16)
    """
    return LAYOUTS["C" if array.ndim < _LEAST_AXES.get(layout, 0) else layout](array)


# -- the search ------------------------------------------------------------------------------------
def hypothesis_for(api: str) -> Any:
    """Import Hypothesis for a function of the public API."""
    try:
        hypothesis = importlib.import_module("hypothesis")
        importlib.import_module("hypothesis.extra.numpy")
    except ImportError:
        raise MissingExtraError(
            f"{api}: Hypothesis is required.\nhint: pip install 'pullback[test]'"
        ) from None
    return hypothesis


def is_strategy(value: Any) -> bool:
    """Return whether a value is a strategy of Hypothesis."""
    module = sys.modules.get("hypothesis.strategies")
    return module is not None and isinstance(value, module.SearchStrategy)


def strategy_of(inputs: Sequence[Any]) -> SearchStrategy[Any]:
    """Return one strategy for all arguments, made of one for all or one for each."""
    if len(inputs) == 1:
        return inputs[0]  # type: ignore[no-any-return]
    st = hypothesis_for("check_op").strategies
    each = [value if is_strategy(value) else st.just(value) for value in inputs]
    return st.tuples(*each)  # type: ignore[no-any-return]


def search(
    strategy: SearchStrategy[Any], passes: Callable[[Inputs], bool], seed: int, examples: int
) -> Inputs | None:
    """Return the smallest inputs found that fail the check, None if all examples pass.

    Parameters
    ----------
    strategy : SearchStrategy
        Draws a tuple of arguments, a dict of them by name, or the one argument.
    passes : callable
        Runs the check, and returns whether it passed; called once for the same values.
    seed, examples : int
        The seed of the examples, and their number.
    """
    hypothesis = hypothesis_for("check_op")
    known: dict[Any, bool] = {}
    failing: list[Inputs] = []

    def every_example(drawn: Any) -> None:
        inputs = as_inputs(drawn)
        key = repr(_key(inputs))
        if key not in known:
            known[key] = len(known) >= MAX_CHECKS or passes(inputs)
        if not known[key]:
            failing.append(inputs)
            raise _FailingError

    settings = hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    try:
        hypothesis.seed(seed)(settings(hypothesis.given(strategy)(every_example)))()
    except _FailingError:
        return failing[-1]  # Hypothesis ends with the smallest
    except hypothesis.errors.Unsatisfiable:
        raise ArgumentError(
            "check_op: a strategy that draws an example is required, got one whose filters "
            "refuse all"
        ) from None
    return None


class _FailingError(Exception):
    """An example fails the check."""


def as_inputs(drawn: Any) -> Inputs:
    """Return a drawn example as the arguments of a call."""
    if isinstance(drawn, dict):
        return Inputs((), drawn)
    return Inputs(tuple(drawn), {}) if isinstance(drawn, (tuple, list)) else Inputs((drawn,), {})


def _key(inputs: Inputs) -> list[Any]:
    """Return a key that is equal for equal calls."""
    found: list[Any] = []
    for value in (*inputs.args, *sorted(inputs.kwargs.items())):
        array = value.data_array() if isinstance(value, Tensor) else value
        if isinstance(array, np.ndarray):
            found.append((array.shape, array.strides, array.dtype.str, array.tobytes()))
        else:
            found.append(value)
    return found
