"""How functions that make tensors are called: other libraries name the arguments otherwise."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["call_of", "option_of"]

_SIZES = {"size", "shape", "sizes", "dim", "dims"}


# Options of PyTorch's optimizers, schedules and layers that ours have not.
_OPTIONS = {
    "decoupled_weight_decay": "pb.optim.AdamW",
    **dict.fromkeys(
        ("foreach", "fused", "capturable", "differentiable"),
        "leave it out: a step is computed in one way",
    ),
    "verbose": "print(scheduler.get_last_lr())",
    **dict.fromkeys(("size_average", "reduce"), "reduction='mean', 'sum' or 'none'"),
    "inplace": "leave it out: the result is a new tensor",
}


def option_of(name: str) -> str:
    """Return what does the work of an option that is not taken; "" if unknown."""
    return _OPTIONS.get(name, "")


def call_of(function: Callable[..., Any], keywords: Iterable[str]) -> str:
    """Return where sizes go, if a keyword that is not taken is meant for them; else all that is."""
    name, signature = function.__name__, inspect.signature(function)
    parameters = signature.parameters
    named = {key for key, p in parameters.items() if p.kind is not p.VAR_POSITIONAL}
    if "shape" in parameters and _SIZES.intersection(keywords) - named:
        return f"sizes come first: pb.{name}((2, 3){', 1.0' if 'fill_value' in parameters else ''})"
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters.values()]
    return f"pb.{name}{inspect.Signature(bare)}"
