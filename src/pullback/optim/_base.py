"""The base of every optimizer: parameter groups, their checks, the state of each parameter.

Must not know any update rule. Invariants: a parameter is in exactly one group; every group has a
value for every option; `state` is keyed by the parameter itself and holds an entry only for
parameters that a step has changed.
"""

from __future__ import annotations

import copy
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any, ClassVar, Self

from pullback.core.graph.modes import enable_grad, no_grad
from pullback.core.tensor.printing import mimebundle
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, compose, nearest
from pullback.hints import Answering, option_of

Params = Iterable[Tensor] | Iterable[dict[str, Any]]
_WAY = "write model.parameters()"


def refuse_unknown(cls: type, options: Mapping[str, Any]) -> None:
    """Raise for an option that the constructor of a class does not have."""
    names = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    if any(p.kind is p.VAR_KEYWORD for p in names.values()):
        return
    for name in options.keys() - names.keys():
        near = nearest(name, names, 0.75)
        hint = option_of(name) or (f"did you mean {near!r}?" if near else None)
        required = f"the options are {', '.join([*names][2:])}"
        raise ArgumentTypeError(compose(cls.__name__, required, repr(name), hint=hint))


class Optimizer(Answering, ABC):
    """The base of all optimizers; a subclass supplies `_check` and `_update`.

    Parameters
    ----------
    params : iterable of Tensor, or iterable of dict
        The leaves to optimize, or parameter groups: dicts with the key ``"params"`` and options
        that override `defaults` for these parameters.
    defaults : dict
        The value of every option for groups that do not set it.

    Raises
    ------
    TypeError
        `params` is one tensor, or holds something that is neither a tensor nor a group.
    ValueError
        There are no parameters, a parameter is not a leaf or is given twice, or an option has
        a wrong value.

    Examples
    --------
    >>> import pullback as pb
    >>> class SignDescent(pb.optim.Optimizer):
    ...     def __init__(self, params, lr=0.1):
    ...         super().__init__(params, {"lr": lr})
    ...
    ...     def _check(self, group):
    ...         self._check_at_least_zero(group, "lr")
    ...
    ...     def _update(self, param, grad, group):
    ...         param -= group["lr"] * grad.sign()
    >>> w = pb.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = SignDescent([w])
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    _kind = "Optimizer"
    # The state entries that are arrays of the parameter's shape, and so are cast when loaded.
    _state_names: ClassVar[tuple[str, ...]] = ()

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Look at the options' names, before Python refuses one without a hint."""
        refuse_unknown(cls, options)
        return super().__new__(cls)

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self.state: dict[Tensor, dict[str, Any]] = {}
        if isinstance(params, Tensor):
            raise self._type_error(
                "params must be an iterable of tensors or of parameter groups",
                "one tensor",
                hint="write [tensor]",
            )
        entries = self._listed(params)
        if not entries:
            raise self._value_error("params must hold at least one parameter", "none")
        if isinstance(entries[0], dict):
            for group in entries:
                self.add_param_group(group)
        else:
            self.add_param_group({"params": entries})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own.

        Parameters
        ----------
        param_group : dict
            ``"params"`` (a tensor or an ordered iterable of tensors) and any options; options that
            it lacks are taken from the defaults. The dict itself is not changed.

        Raises
        ------
        TypeError
            The group is not a dict, ``"params"`` is a set, or a parameter is not a tensor.
        ValueError
            ``"params"`` is missing, a parameter is not a leaf or is already optimized, an option
            is misspelt or has a wrong value.

        Examples
        --------
        >>> import pullback as pb
        >>> w, b = pb.tensor([1.0], requires_grad=True), pb.tensor([0.0], requires_grad=True)
        >>> optimizer = pb.optim.SGD([w], lr=0.1)
        >>> optimizer.add_param_group({"params": b, "lr": 0.5})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.5]
        """
        if not isinstance(param_group, dict):
            raise self._type_error("a parameter group must be a dict", type(param_group).__name__)
        self._check_names(param_group)
        group = {**self.defaults, **param_group}
        group["params"] = self._parameters(group["params"])
        self._check(group)
        self.param_groups.append(group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss and its gradients again. It is called first, with recording on.

        Returns
        -------
        object
            The result of `closure`, or None without a closure.

        Examples
        --------
        >>> import pullback as pb
        >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
        >>> optimizer = pb.optim.SGD([w], lr=0.25)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([0.5000, 1.0000], requires_grad=True)
        """
        loss = None
        if closure is not None:
            if not callable(closure):
                required = "step takes a function that computes the loss"
                raise self._type_error(required, type(closure).__name__)
            loss = enable_grad(closure)()
        self._update_all()
        return loss

    @no_grad
    def _update_all(self) -> None:
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    self._update(param, param.grad, group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters.

        Parameters
        ----------
        set_to_none : bool
            True sets the gradients to None; a step does not change a parameter without a gradient.
            False fills them with zeros in place; a step then still applies momentum and decay.
        """
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    if param.grad.requires_grad:  # made with create_graph; zeros depend on nothing
                        param.grad.detach_()
                    param.grad.zero_()

    def state_dict(self) -> dict[str, Any]:
        """Return the options and the state, with parameters replaced by their index.

        Returns
        -------
        dict
            ``"state"``, from a parameter's index to its state, and ``"param_groups"``. The
            tensors are not copies: a later step changes them.

        Examples
        --------
        >>> import pullback as pb
        >>> w = pb.tensor([1.0], requires_grad=True)
        >>> optimizer = pb.optim.SGD([w], lr=0.1, momentum=0.9)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> optimizer.state_dict()["state"]
        {0: {'momentum_buffer': tensor([2.])}}
        """
        number = {id(p): i for i, p in enumerate(self._all_parameters())}
        return {
            "state": {number[id(param)]: dict(entry) for param, entry in self.state.items()},
            "param_groups": [
                {**group, "params": [number[id(p)] for p in group["params"]]}
                for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load the options and the state of an optimizer of the same class and group sizes.

        Parameters
        ----------
        state_dict : mapping
            The result of `state_dict`. It is copied; state tensors are cast to the dtype and
            device of their parameter.

        Raises
        ------
        ValueError
            The groups differ from this optimizer's in number or in size, or a state's shapes from
            those of its parameter: all differences are listed, and nothing is loaded.

        Examples
        --------
        >>> import pullback as pb
        >>> w = pb.tensor([1.0], requires_grad=True)
        >>> optimizer = pb.optim.SGD([w], lr=0.5)
        >>> optimizer.load_state_dict(pb.optim.SGD([w], lr=0.1).state_dict())
        >>> optimizer.param_groups[0]["lr"]
        0.1
        """
        saved_groups = state_dict["param_groups"]
        sizes = [len(group["params"]) for group in self.param_groups]
        saved_sizes = [len(group["params"]) for group in saved_groups]
        if sizes != saved_sizes:
            raise self._value_error(
                f"load_state_dict needs parameter groups of the sizes {sizes}", str(saved_sizes)
            )
        numbers = [i for group in saved_groups for i in group["params"]]
        param_of = dict(zip(numbers, self._all_parameters(), strict=True))
        self._check_shapes(param_of, state_dict["state"])
        self.state = {
            param_of[i]: self._loaded(param_of[i], entry)
            for i, entry in state_dict["state"].items()
        }
        self.param_groups = [
            {
                **copy.deepcopy({k: v for k, v in saved.items() if k != "params"}),
                "params": group["params"],
            }
            for group, saved in zip(self.param_groups, saved_groups, strict=True)
        ]

    def __repr__(self) -> str:
        lines = []
        for i, group in enumerate(self.param_groups):
            options = ", ".join(f"{k}={v!r}" for k, v in group.items() if k != "params")
            lines.append(f"  group {i}: {len(group['params'])} parameters, {options}\n")
        return f"{type(self).__name__}(\n{''.join(lines)})"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return what a notebook shows."""
        return mimebundle(repr(self))

    # -- for subclasses -----------------------------------------------------------------------
    @abstractmethod
    def _update(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """Change `param` in place, given its gradient; called with recording off."""

    @abstractmethod
    def _check(self, group: Mapping[str, Any]) -> None:
        """Raise if an option of `group` has a wrong value."""

    @staticmethod
    def _penalized(param: Tensor, grad: Tensor, group: Mapping[str, Any]) -> Tensor:
        """Return the gradient of what is minimized: turned around, and with the L2 penalty's."""
        grad = -grad if group.get("maximize") else grad
        decay = group.get("weight_decay", 0)
        return grad + decay * param if decay != 0 else grad

    def _check_at_least_zero(self, group: Mapping[str, Any], *names: str) -> None:
        for name in names:
            value = group[name]
            if not isinstance(value, Real):
                raise self._type_error(f"{name} must be a number", type(value).__name__)
            if math.isnan(value) or value < 0:
                raise self._value_error(f"{name} must be at least 0", str(value))

    def _value_error(self, required: str, came: str, hint: str | None = None) -> ArgumentError:
        return ArgumentError(compose(type(self).__name__, required, came, hint=hint))

    def _type_error(self, required: str, came: str, hint: str | None = None) -> ArgumentTypeError:
        return ArgumentTypeError(compose(type(self).__name__, required, came, hint=hint))

    # -- private ------------------------------------------------------------------------------
    def _all_parameters(self) -> list[Tensor]:
        return [param for group in self.param_groups for param in group["params"]]

    def _check_names(self, group: Mapping[str, Any]) -> None:
        # A group may have other keys of the user's ("name", "initial_lr"): only a key that looks
        # like a misspelt option is refused.
        if "params" not in group:
            raise self._value_error(
                "a parameter group needs the key 'params'", f"the keys {sorted(group)}"
            )
        for name in group.keys() - self.defaults.keys() - {"params"}:
            if near := nearest(name, self.defaults, 0.75):
                raise self._value_error(
                    f"the options of a parameter group are {sorted(self.defaults)}",
                    repr(name),
                    hint=f"did you mean {near!r}?",
                )

    def _listed(self, params: Any) -> list[Any]:
        """Return what is to hold parameters or groups as a list."""
        if not isinstance(params, Iterable):
            required = "params must be an iterable of tensors or of parameter groups"
            raise self._type_error(required, type(params).__name__, hint=_WAY)
        return list(params)

    def _parameters(self, params: Any) -> list[Tensor]:
        """Return the group's parameters as a list, each of them checked."""
        if isinstance(params, (set, frozenset)):
            raise self._type_error(
                "the parameters of a group must have an order", "a set", hint="use a list"
            )
        result: list[Tensor] = [params] if isinstance(params, Tensor) else self._listed(params)
        seen = {id(param) for param in self._all_parameters()}
        for i, param in enumerate(result):
            if not isinstance(param, Tensor):
                is_of_module = isinstance(param, (tuple, str)) or hasattr(param, "parameters")
                hint = _WAY if is_of_module else None
                required = f"parameter {i} of the group must be a tensor"
                raise self._type_error(required, type(param).__name__, hint=hint)
            if param.grad_fn is not None:
                raise self._value_error(
                    f"parameter {i} of the group must be a leaf",
                    f"the result of {param.grad_fn.name()}",
                    hint="optimize the leaf it was computed from, or call detach() and "
                    "requires_grad_() on it",
                )
            if id(param) in seen:
                raise self._value_error(
                    "a parameter must be in one group, once", f"parameter {i} a second time"
                )
            seen.add(id(param))
        return result

    def _check_shapes(self, param_of: Mapping[int, Tensor], state: Mapping[int, Any]) -> None:
        """Raise with a list of all states that do not fit a parameter."""
        differences = [
            f"a state of parameter {i}, which is not there" for i in state.keys() - param_of.keys()
        ]
        for i, param in param_of.items():
            wanted, entry = tuple(param.shape), state.get(i, {})
            for name in self._state_names:
                shape = tuple(entry[name].shape) if name in entry else wanted
                if shape != wanted:
                    differences.append(f"{name} of parameter {i}: {shape} for {wanted}")
        if differences:
            required = "load_state_dict needs a state of the parameters' shapes"
            raise self._value_error(required, "\n  " + "\n  ".join(differences))

    def _loaded(self, param: Tensor, entry: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: value.detach().clone().to(dtype=param.dtype, device=param.device)
            if name in self._state_names
            else copy.deepcopy(value)
            for name, value in entry.items()
        }
