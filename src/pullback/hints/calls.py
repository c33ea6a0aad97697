"""How functions are called: other libraries name arguments otherwise, or have more of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from pullback.hints.names import MODULES, space_of

__all__ = ["call_of", "option_of"]

_SIZES = {"size", "shape", "sizes", "dim", "dims"}

# Options that other libraries have and we have not: PyTorch's and JAX's.
_OPTIONS = {
    "decoupled_weight_decay": "pb.optim.AdamW",
    **dict.fromkeys(
        ("foreach", "fused", "capturable", "differentiable"),
        "leave it out: a step is computed in one way",
    ),
    "verbose": "print(scheduler.get_last_lr())",
    **dict.fromkeys(("size_average", "reduce"), "reduction='mean', 'sum' or 'none'"),
    "only_inputs": "leave it out: the inputs alone get a gradient",
    "grad_variables": "grad_tensors takes them",
    "create_graph": "leave it out: the gradient of a gradient is pb.grad(pb.grad(f))",
    **dict.fromkeys(
        ("vectorize", "strategy", "reduce_axes"), "leave it out: there is one way to compute"
    ),
    "allow_int": "integers have no derivative: x.astype(float)",
    "holomorphic": "leave it out; the conjugate of the gradient of the real part is the derivative",
    **dict.fromkeys(
        ("axis_name", "spmd_axis_name"), "axes have no names: sum over the axis outside of vmap"
    ),
    "batch_size": "size=32",
    "shuffle": "seed=0, or another number",
    **dict.fromkeys(
        ("num_workers", "pin_memory", "collate_fn"), "leave it out: batches are slices"
    ),
    "map_location": "leave it out: what is filled stays where it is; x.to(device) moves a tensor",
    "weights_only": "leave it out: files hold no code",
    "axis_size": "leave it out: the arguments that are mapped have it",
    **dict.fromkeys(("wrt", "argnames"), "argnum takes positions and names of arguments"),
    **dict.fromkeys(
        ("nondiff_argnums", "nondiff_argnames"),
        "leave it out: arguments that are no tensors have no gradient",
    ),
}


def option_of(name: str) -> str:
    """Return what does the work of an option that is not taken; "" if unknown."""
    return _OPTIONS.get(name, "")


def call_of(function: Callable[..., Any], keywords: Iterable[str]) -> str:
    """Return what does the work of a keyword that is not taken, or all that is."""
    name, signature = _public_name(function), inspect.signature(function)
    parameters = signature.parameters
    unknown = [key for key in keywords if key not in parameters]
    for way in filter(None, map(option_of, unknown)):
        return way
    named = {key for key, p in parameters.items() if p.kind is not p.VAR_POSITIONAL}
    if "shape" in parameters and _SIZES.intersection(keywords) - named:
        return f"sizes come first: {name}((2, 3){', 1.0' if 'fill_value' in parameters else ''})"
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters.values()]
    return f"{name}{inspect.Signature(bare)}"


def _public_name(function: Callable[..., Any]) -> str:
    """Return the name under which users reach a function, as they write it."""
    name, own = function.__name__, inspect.unwrap(function)
    for module in MODULES:
        public = vars(space_of(module)).get(name)
        if callable(public) and inspect.unwrap(public) is own:
            return ".".join(filter(None, ("pb", module, name)))
    return name
