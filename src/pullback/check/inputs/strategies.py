"""Strategies of Hypothesis for tensors and for whole argument lists, and the search with them.

Hypothesis is imported when the first strategy is made. Values are multiples of 1/16: exact in every
dtype, with zeros, ties and negative values among them; they shrink to small whole numbers.
"""

from __future__ import annotations

import importlib
import itertools
import random
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.check.inputs.arguments import Inputs, bounds, draw, shape_of
from pullback.check.inputs.shape_text import KINDS, ArgumentSpec, parse
from pullback.check.properties.arrays import layouts_of
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ArgumentTypeError
from pullback.extras import optional

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_MAX_SIDE = 5
MAX_CHECKS = 120  # of a search: shrinking ends there


def tensors(
    shape: Any = None,
    dtype: Any = ("float64", "float32"),
    elements: SearchStrategy[Any] | None = None,
    *,
    requires_grad: bool = True,
    layouts: bool = True,
) -> SearchStrategy[Tensor]:
    """Return a Hypothesis strategy that draws tensors.

    Parameters
    ----------
    shape : int, tuple of int, str, or strategy, optional
        The shape; in a text such as ``"(n, n, 2)"`` the symbols are drawn between 1 and 5. By
        default any of up to three such axes.
    dtype : str, DType, sequence of them, or strategy, optional
        By default float64 or float32.
    elements : strategy, optional
        Draws one element, cast to the dtype. By default multiples of 1/16 up to 8.
    requires_grad : bool, default True
        Whether the tensor requires grad, where its dtype can.
    layouts : bool, default True
        Whether memory may also be transposed, sliced, reversed, misaligned, read-only, or repeat
        the first elements along an axis.

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
    if not isinstance(dtype, st.SearchStrategy):
        kinds = dtype if isinstance(dtype, (list, tuple)) else [dtype]
        dtype = st.sampled_from([_dtype(kind) for kind in kinds])

    def tensors(draw: Any, shape: Any, dtype: Any) -> Tensor:
        size, kind = draw(shape), draw(dtype)
        each = _elements(st, kind) if elements is None else elements
        return _tensor(draw, st, _arrays(kind, size, each), layouts, requires_grad)

    strategy: SearchStrategy[Tensor] = st.composite(tensors)(_shapes(st, shape), dtype.map(_dtype))
    return strategy


def arguments(
    text: str, *, max_side: int = _MAX_SIDE, requires_grad: bool = True, layouts: bool = True
) -> SearchStrategy[tuple[Any, ...]]:
    """Return a Hypothesis strategy that draws all arguments of a call.

    Parameters
    ----------
    text : str
        Describes them, as for `check_op`: ``"x: (n, d), index: (k,) int in [0, n), scale: 0.5"``.
    max_side : int, default 5
        The largest size of a symbol; the smallest is 1.
    requires_grad, layouts : bool
        As for `tensors`.

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

    # Hypothesis shows this name and these arguments.
    def arguments(draw: Any, text: str) -> tuple[Any, ...]:
        sizes = draw(_sizes(st, described, max_side))
        return tuple(
            d.value
            if d.shape is None
            else _tensor(draw, st, _described(st, d, sizes), layouts, requires_grad)
            for d in described
        )

    strategy: SearchStrategy[tuple[Any, ...]] = st.composite(arguments)(text)
    return strategy


# -- parts of a strategy ---------------------------------------------------------------------------
def _dtype(dtype: Any) -> np.dtype[Any]:
    name = str(getattr(dtype, "name", dtype)).rpartition(".")[2]
    if name not in KINDS:
        raise ArgumentError(
            f"tensors: a dtype is required, got {dtype!r}; the dtypes are: {', '.join(KINDS)}"
        )
    return np.dtype(KINDS[name])


def _shapes(st: Any, shape: Any) -> Any:
    """Return a strategy for shapes, those of a text or of a tuple as it is written in one."""
    if isinstance(shape, st.SearchStrategy):
        return shape
    if shape is None:
        return st.lists(st.integers(1, _MAX_SIDE), max_size=3).map(tuple)
    written = (shape,) if isinstance(shape, int) else shape
    described = parse("tensors", f"shape: {written}")
    if described[0].shape is None:
        raise ArgumentTypeError(
            "tensors: shape must be an int, a tuple of them, a text such as '(n, n)' or a "
            f"strategy, got {shape!r}"
        )
    return _sizes(st, described, _MAX_SIDE).map(lambda sizes: shape_of(described[0], sizes))


def _sizes(st: Any, described: Sequence[ArgumentSpec], most: int) -> Any:
    """Return a strategy for the sizes of the symbols."""
    symbols = dict.fromkeys(name for d in described for name in d.symbols)
    return st.fixed_dictionaries(dict.fromkeys(symbols, st.integers(1, most)))


def _elements(st: Any, dtype: np.dtype[Any]) -> Any:
    """Return a strategy for one element of a dtype."""
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind in "iu":
        return st.integers(0 if dtype.kind == "u" else -8, 8)
    real = st.integers(-8, 8).map(float) | st.integers(-128, 128).map(lambda k: k / 16)
    return st.builds(complex, real, real) if dtype.kind == "c" else real


def _arrays(dtype: np.dtype[Any], shape: tuple[int, ...], elements: Any) -> Any:
    """Return a strategy for arrays whose elements are cast."""
    arrays = importlib.import_module("hypothesis.extra.numpy").arrays
    return arrays(object, shape, elements=elements).map(lambda array: array.astype(dtype))


def _described(st: Any, d: ArgumentSpec, sizes: dict[str, int]) -> Any:
    """Return a strategy for an array that a text describes."""
    shape, dtype, between = shape_of(d, sizes), np.dtype(d.dtype), bounds(d, sizes)
    whole = dtype.kind in "iu"
    if d.domain or (between and not whole):  # elements that shrink would leave the set
        return st.integers(0, 2**16).map(lambda seed: draw(d, sizes, np.random.default_rng(seed)))
    low, high = map(int, between or (0, min([*sizes.values(), 4]) - 1))
    return _arrays(dtype, shape, st.integers(low, high) if whole else _elements(st, dtype))


def _tensor(draw: Any, st: Any, arrays: Any, layouts: bool, requires_grad: bool) -> Tensor:
    """Draw a tensor, perhaps in another layout."""
    array = draw(arrays)
    others = layouts_of(array) if layouts else {}
    layout = draw(st.sampled_from(["", *others]))
    if layout:
        importlib.import_module("hypothesis").note(f"memory layout: {layout}")
    tensor = box(others.get(layout, array))
    return tensor.requires_grad_() if requires_grad and tensor.dtype.is_inexact else tensor


# -- the search ------------------------------------------------------------------------------------
def hypothesis_for(api: str) -> Any:
    """Import Hypothesis for a function of the public API."""
    optional(api, "hypothesis.extra.numpy", "Hypothesis", "test")
    return importlib.import_module("hypothesis")


def is_strategy(value: Any) -> bool:
    """Return whether a value is a strategy of Hypothesis."""
    module = sys.modules.get("hypothesis.strategies")
    return module is not None and isinstance(value, module.SearchStrategy)


def search(
    inputs: Sequence[Any], passes: Callable[[Inputs], bool], seed: int, examples: int
) -> Inputs | None:
    """Return the smallest inputs found that fail the check, None if all examples pass.

    The inputs are one strategy that draws a tuple of arguments, a dict of them by name, or the one
    argument; or a strategy or a value for each argument.
    """
    hypothesis = hypothesis_for("check_op")
    st, errors, found = hypothesis.strategies, hypothesis.errors, list[Inputs]()
    each = [value if is_strategy(value) else st.just(value) for value in inputs]
    strategy, checks = each[0] if len(each) == 1 else st.tuples(*each), itertools.count()
    phases = (hypothesis.Phase.generate, hypothesis.Phase.shrink)
    options = {"max_examples": examples, "database": None, "deadline": None, "phases": phases}

    def fails(drawn: Any) -> bool:
        call = as_inputs(drawn)
        if next(checks) >= MAX_CHECKS or passes(call):
            return False
        found.append(call)
        return True

    settings = hypothesis.settings(**options)
    try:
        hypothesis.find(strategy, fails, settings=settings, random=random.Random(seed))
    except errors.Unsatisfiable:
        raise ArgumentError(
            "check_op: a strategy that draws an example is required, got one whose filters "
            "refuse all"
        ) from None
    except (errors.NoSuchExample, errors.Flaky):  # once no more is checked
        pass
    return found[-1] if found else None


def as_inputs(drawn: Any) -> Inputs:
    """Return a drawn example as the arguments of a call."""
    if isinstance(drawn, dict):
        return Inputs((), drawn)
    return Inputs(tuple(drawn), {}) if isinstance(drawn, (tuple, list)) else Inputs((drawn,), {})
