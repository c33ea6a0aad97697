"""Calling a module with other tensors in the place of its parameters, for transforms."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from pullback.core.graph.node import belongs_to_transform
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, GraphError, compose, nearest
from pullback.nn.walking import Part, walk


def functional_call(
    module: Any,
    parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = (),
    kwargs: Any = None,
) -> Any:
    """Call a module with tensors in the place of its parameters and buffers, as in torch.func.

    So a module becomes a function of its parameters, of which every transform takes derivatives.

    Parameters
    ----------
    module : Module or callable object
        As it was when the call ends, whether or not that raises.
    parameters : dict of str to Tensor, or tuple or list of dict
        By dotted names, as `named_parameters` gives them; what is left out stays. A tensor that the
        module holds twice is replaced in both places. Several dicts, such as of parameters and of
        buffers, have no name in common.
    args : tuple or object
        Its arguments, or the one that it has.
    kwargs : dict, optional

    Returns
    -------
    object
        What the call gives.

    Raises
    ------
    ArgumentTypeError
        If `module` is not callable, or `parameters` no mapping, nor a tuple or list of them.
    ArgumentError
        If the module has no tensor of a name, or holds it in a tuple, or two dicts have the name.

    Examples
    --------
    Gradients of each sample:

    >>> import numpy as np, pullback as pb
    >>> model = pb.nn.Linear(2, 1)
    >>> def loss(parameters, x, y):
    ...     return (pb.nn.functional_call(model, parameters, x) - y).square().sum()
    >>> parameters = dict(model.named_parameters())
    >>> x, y = np.ones((5, 2)), np.zeros((5, 1))
    >>> grads = pb.vmap(pb.grad(loss), in_axes=(None, 0, 0))(parameters, x, y)
    >>> {name: tuple(g.shape) for name, g in grads.items()}
    {'weight': (5, 1, 2), 'bias': (5, 1)}
    """
    values = _joined(module, parameters)
    places: dict[str, Part] = {}
    names: dict[int, list[str]] = {}  # of a tensor, by its id
    for part in walk(module, repeats=True):
        if isinstance(part.value, Tensor):
            places[part.name] = part
            names.setdefault(id(part.value), []).append(part.name)
    chosen: list[tuple[Part, Any]] = []
    for name, value in values.items():
        if name not in places:
            near = nearest(name, places)
            hint = f"did you mean '{near}'?" if near else "use the names of named_parameters()"
            required = f"names of tensors in {type(module).__name__} required"
            raise ArgumentError(compose("functional_call", required, repr(name), hint=hint))
        for each in names[id(places[name].value)]:  # tied ones
            if isinstance(places[each].owner, tuple):
                required = f"a tensor that can be replaced required for '{each}'"
                hint = "hold it in a list, a dict or an attribute"
                raise ArgumentError(
                    compose("functional_call", required, "one in a tuple", hint=hint)
                )
            chosen.append((places[each], value))
    arguments = args if isinstance(args, tuple) else (args,)
    try:
        for part, value in chosen:
            _put(part, value)
        return module(*arguments, **(kwargs or {}))
    finally:
        for part, _ in chosen:
            _put(part, part.value)


def _joined(module: Any, parameters: Any) -> dict[str, Any]:
    """Return one dict of the tensors by their names, after a look at what a call is given."""
    given = list(parameters) if isinstance(parameters, (list, tuple)) else [parameters]
    strange = [type(each).__name__ for each in given if not isinstance(each, Mapping)]
    if not callable(module) or strange:
        required = "a callable module and a dict of tensors by their names, or several, required"
        came = f"{type(module).__name__} and {(strange or [type(parameters).__name__])[0]}"
        raise ArgumentTypeError(compose("functional_call", required, came))
    result: dict[str, Any] = {}
    for each in given:
        for name in each:
            if name in result:
                required = "each name in one of the dicts of parameters required"
                hint = "take it out of all but one of them"
                came = f"{name!r} in two"
                raise ArgumentError(compose("functional_call", required, came, hint=hint))
        result.update(each)
    return result


def _put(part: Part, value: Any) -> None:
    """Put a tensor where a part was found."""
    if isinstance(part.owner, (list, MutableMapping)):
        part.owner[part.key] = value
    else:
        object.__setattr__(part.owner, part.key, value)


def refuse_tracked(op: str, values: Mapping[str, Tensor]) -> None:
    """Raise for what a transform differentiates by, which would get zeros without a word."""
    for name, tensor in values.items():
        if tensor.requires_grad and belongs_to_transform(tensor._node):
            required = "values without gradient required, as they are copied"
            came = f"{name!r} that a transform differentiates by"
            hint = "pb.nn.functional_call(module, parameters, x) computes with them"
            raise GraphError(compose(op, required, came, hint=hint))
