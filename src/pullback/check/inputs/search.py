"""The search for wrong gradients with Hypothesis: examples drawn by strategies, then shrunk.

Only this module and strategies.py need Hypothesis, which is imported on first use.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.check.inputs.arguments import Inputs
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, MissingExtraError

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

# The most checks of a search: shrinking ends there.
MAX_CHECKS = 120


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
