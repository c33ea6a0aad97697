"""The search for wrong gradients with Hypothesis: examples that strategies draw, then smaller ones.

The only module beside strategies.py that needs Hypothesis, which is imported when it is asked for.
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

# How often a search runs the check: shrinking ends there.
MOST_CHECKS = 120


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
    """Say whether a value is a strategy of Hypothesis."""
    module = sys.modules.get("hypothesis.strategies")
    return module is not None and isinstance(value, module.SearchStrategy)


def strategy_of(inputs: Sequence[Any]) -> SearchStrategy[Any]:
    """Return one strategy for the arguments: of one that draws them all, or of one for each."""
    if len(inputs) == 1:
        return inputs[0]  # type: ignore[no-any-return]
    st = hypothesis_for("check_op").strategies
    each = [value if is_strategy(value) else st.just(value) for value in inputs]
    return st.tuples(*each)  # type: ignore[no-any-return]


def search(
    strategy: SearchStrategy[Any], right: Callable[[Inputs], bool], seed: int, examples: int
) -> Inputs | None:
    """Return the smallest inputs found that are not right, None if all examples are.

    Parameters
    ----------
    strategy : SearchStrategy
        Draws a tuple of arguments, a dict of them by name, or the one argument.
    right : callable
        Runs the check; not called twice for the same values.
    seed, examples : int
        Where the examples come from, and how many there are.
    """
    hypothesis = hypothesis_for("check_op")
    known: dict[Any, bool] = {}
    wrong: list[Inputs] = []

    def every_example(drawn: Any) -> None:
        inputs = as_inputs(drawn)
        key = repr(_key(inputs))
        if key not in known:
            known[key] = len(known) >= MOST_CHECKS or right(inputs)
        if not known[key]:
            wrong.append(inputs)
            raise _WrongError

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
    except _WrongError:
        return wrong[-1]  # Hypothesis ends with the smallest
    except hypothesis.errors.Unsatisfiable:
        raise ArgumentError(
            "check_op: a strategy that draws an example is required, got one whose filters "
            "refuse all"
        ) from None
    return None


class _WrongError(Exception):
    """An example is not right."""


def as_inputs(drawn: Any) -> Inputs:
    """Return what a strategy drew as the arguments of a call."""
    if isinstance(drawn, dict):
        return Inputs((), drawn)
    return Inputs(tuple(drawn), {}) if isinstance(drawn, (tuple, list)) else Inputs((drawn,), {})


def _key(inputs: Inputs) -> list[Any]:
    """Return what tells two calls apart."""
    found: list[Any] = []
    for value in (*inputs.args, *sorted(inputs.kwargs.items())):
        array = value.data_array() if isinstance(value, Tensor) else value
        if isinstance(array, np.ndarray):
            found.append((array.shape, array.strides, array.dtype.str, array.tobytes()))
        else:
            found.append(value)
    return found
