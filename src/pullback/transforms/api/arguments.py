"""Which arguments of a call are differentiated, and the tensors that the function gets for them.

Owns the callable that a transform makes of a function, with its name, documentation and pickling;
the reading of `argnum`, containers of arguments, and the types that can be differentiated. Must not
know what is computed. Invariants: arguments are never changed; a tensor that requires grad stays
part of the graph, through a clone.
"""

from __future__ import annotations

import functools
import inspect
import reprlib
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, NamedTuple

from pullback import hints
from pullback.arrays import NUMPY, is_array, library_of, ndarray
from pullback.core.custom.pytree import flatten, paths_of, unflatten
from pullback.core.function.dispatch import wrap_in
from pullback.core.tensor.tensor import Tensor, box, new_leaf
from pullback.core.tensor.versions import shared_counter
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    AutogradError,
    DTypeError,
    GraphError,
    compose,
    nearest,
)
from pullback.nn.walking import walk
from pullback.numpy_protocol.tensor import NumPyTensor
from pullback.ops.functions.creation import asarray
from pullback.ops.primitives.conversion import clone
from pullback.transforms.levels import WRAPPING, depends_on_outer_level, run_recorded
from pullback.transforms.wrapped import numpy_scalar

Argnum = int | str | Sequence[int | str]


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _argnum_of(api: str, argnum: Argnum, argnums: Argnum | None) -> Argnum:
    """Return what `argnum`, or its synonym `argnums`, says."""
    for given in (argnum, argnums):
        if is_array(given) or isinstance(given, (Tensor, float)):
            raise _no_argnum(api, given, f"to differentiate at it, write {api}(f)(x)")
    if argnums is None:
        return argnum
    if argnum != 0:
        came = f"argnum={argnum!r} and argnums={argnums!r}"
        raise ArgumentError(compose(api, "argnum or argnums required, which mean the same", came))
    return argnums


class Input(NamedTuple):
    """One leaf of a differentiated argument: the original, and the tensor that replaces it."""

    given: Any
    tensor: Tensor
    leaf: Tensor  # what the gradient is of, in case the function changes the tensor in place


class Arguments:
    """The arguments of one call of `fun`, and those among them to differentiate with respect to.

    Errors name the transform `api`; the signature of `fun` gives names their positions.
    """

    def __init__(
        self,
        api: str,
        fun: Callable[..., Any],
        argnum: Argnum,
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> None:
        self.api, self.fun, self._args, self._kwargs = api, fun, args, kwargs
        self.several = isinstance(argnum, (tuple, list))
        wanted: Sequence[Any] = argnum if self.several else (argnum,)  # type: ignore[assignment]
        self._keys: list[int | str] = []
        values = []
        for key in wanted:
            if key.__class__ is not int or not 0 <= key < len(args):
                key = _key_of(api, fun, key, args, kwargs)
            self._keys.append(key)
            values.append(kwargs[key] if isinstance(key, str) else args[key])
        if len(set(self._keys)) != len(values):
            required = "each argument once in argnum required"
            raise ArgumentError(compose(api, required, str(tuple(wanted))))
        self.leaves, self.structure = flatten(tuple(values) if self.several else values[0])

    @property
    def names(self) -> list[str]:
        """What errors call the arguments to differentiate with respect to."""
        return [f"argument {key!r}" for key in self._keys]

    def sources(self) -> list[Tensor | None]:
        """Return each leaf of the differentiated arguments as a tensor; None for an integer."""
        result, is_any = [], False
        for i, leaf in enumerate(self.leaves):
            source = leaf if isinstance(leaf, Tensor) else tensor_for(leaf)
            if source is None and leaf is not None:
                constant = "give what is constant in another argument, or close over it"
                hint = _way_for_module(self.api, leaf) or constant
                required = f"floating-point numbers required in {self.path(i)}"
                raise ArgumentTypeError(compose(self.api, required, type(leaf).__name__, hint=hint))
            if source is not None and not source.dtype.is_inexact:
                source = None
            result.append(source)
            is_any = is_any or source is not None
        if result and not is_any:
            raise _no_derivative(self.api, self.path(0), self.leaves[0])
        return result

    def path(self, i: int) -> str:
        """Return where a leaf is, as Python would reach it, for errors."""
        structures = [self.structure]
        if self.several:
            structures = self.structure.items  # type: ignore[union-attr]
        pairs = zip(self.names, structures, strict=True)
        return [path for name, inner in pairs for path in paths_of(name, inner)][i]

    def inputs(self, level: int) -> list[Input | None]:
        """Return what replaces each leaf of the differentiated arguments; None: nothing does."""
        return [
            None if source is None else _input(leaf, source, level)
            for leaf, source in zip(self.leaves, self.sources(), strict=True)
        ]

    def copy_arrays(self) -> None:
        """Copy the arrays among the leaves: what is recorded is used after the caller has them."""
        self.leaves = [library_of(x).copy(x) if is_array(x) else x for x in self.leaves]

    def call(self, tensors: Sequence[Tensor | None]) -> Any:
        """Call the function with `tensors` for the leaves that have one."""
        standing: list[Any] = []
        for leaf, tensor in zip(self.leaves, tensors, strict=True):
            if tensor is None:  # integers: a tensor for an array
                standing.append(tensor_for(leaf) if is_array(leaf) else leaf)
            else:
                standing.append(tensor)
        values = unflatten(self.structure, standing)
        args, kwargs = list(self._args), dict(self._kwargs)
        for key, value in zip(self._keys, values if self.several else (values,), strict=True):
            if isinstance(key, str):
                kwargs[key] = value
            else:
                args[key] = value
        try:
            return self.fun(*args, **kwargs)
        except Exception as error:
            if not isinstance(error, AutogradError):
                hints.explain(error, Tensor)
            if isinstance(error, (TypeError, AttributeError, GraphError)):
                self._explain_lists(error)
            raise

    def _explain_lists(self, error: Exception) -> None:
        """Add a note to an error that a list of numbers for a vector may have caused."""
        for name, key in zip(self.names, self._keys, strict=True):
            given = self._kwargs[key] if isinstance(key, str) else self._args[key]
            if (
                given.__class__ in (list, tuple)
                and given
                and all(isinstance(x, (int, float, complex)) for x in given)
            ):
                what = f"{name} of {name_of(self.fun)} is a {type(given).__name__} of numbers"
                vector = f"np.array({reprlib.repr(given)})"
                error.add_note(f"hint: {what}: write {vector} for a vector")


def all_arguments(api: str, fun: Callable[..., Any], primals: Any) -> Arguments:
    """Return the arguments of a call by position, to differentiate with respect to all of them."""
    if not callable(fun):
        raise ArgumentTypeError(compose(api, "a function required", type(fun).__name__))
    if not isinstance(primals, (tuple, list)):
        required = "a tuple of the arguments required as primals"
        raise ArgumentTypeError(compose(api, required, type(primals).__name__))
    if not primals:
        raise ArgumentError(compose(api, f"the arguments of {name_of(fun)} required", "none"))
    return Arguments(api, fun, tuple(range(len(primals))), primals, {})


# -- positions and names ---------------------------------------------------------------------------
def _no_argnum(api: str, came: Any, hint: str | None = None) -> ArgumentTypeError:
    shown = f"{type(came).__name__} {reprlib.repr(came)}"
    return ArgumentTypeError(
        compose(api, "argnum of positions or names required", shown, hint=hint)
    )


def _key_of(
    api: str, fun: Callable[..., Any], wanted: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> int | str:
    """Return the index of an argument that was given by position, the name of any other."""
    if isinstance(wanted, str):
        return wanted if wanted in kwargs else _named(api, fun, wanted, args, kwargs)
    if not hasattr(wanted, "__index__") or isinstance(wanted, bool):
        raise _no_argnum(api, wanted)
    count = len(args)
    if not -count <= wanted < count:
        required = f"the positional argument that argnum={wanted} names required"
        hint = "argnum takes the name of an argument that is given by keyword"
        hint = f"positions are 0 to {count - 1}, and {hint}" if count else hint
        raise ArgumentError(compose(api, required, f"{count} positional arguments", hint=hint))
    return int(wanted) % count


def _named(
    api: str, fun: Callable[..., Any], name: str, args: Sequence[Any], kwargs: dict[str, Any]
) -> int:
    """Return the position of the argument that goes to the parameter `name`."""
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):  # some functions written in C have no signature
        parameters = []
    positional = [p.name for p in parameters if p.kind in _BY_POSITION]
    if name in positional[: len(args)]:
        return positional.index(name)
    named = [p.name for p in parameters]
    required = f"an argument named {name!r} required, as argnum says"
    if name in named:
        raise ArgumentError(compose(api, required, "none in this call", hint="give it in the call"))
    names = list(dict.fromkeys([*named, *kwargs]))
    near = nearest(name, names)
    came = f"a function of {', '.join(names)}" if names else "a function without named parameters"
    hint = f"did you mean {near!r}?" if near else "argnum takes a position as well"
    raise ArgumentError(compose(api, required, came, hint=hint))


# -- leaves ----------------------------------------------------------------------------------------
def tensor_for(given: Any) -> Tensor | None:
    """Return the tensor that a function gets for an argument: the one place where it is made.

    A tensor stays as it is. For an array of NumPy's and a number it is one with NumPy's methods, on
    the same memory; for an array of another library a plain one. None: nothing of the kind.
    """
    if isinstance(given, Tensor):
        return given
    if given.__class__ is ndarray and given.dtype in NUMPY.quick_dtypes:
        return box(given, cls=NumPyTensor)
    if is_array(given):
        library = library_of(given)
        library.dtype(given)  # raises for text, objects, dates
        return box(library.asarray(given), cls=class_for(given))
    if isinstance(given, (int, float, complex, numpy_scalar)):
        return box(NUMPY.asarray(given), cls=class_for(given))
    return None


def class_for(given: Any) -> type[Tensor]:
    """Return the class of the tensors that belong to an argument, and to its derivative."""
    if isinstance(given, Tensor):
        return given.__class__
    return Tensor if is_array(given) and library_of(given) is not NUMPY else NumPyTensor


# How a transform is called of a function of a module's parameters, if not by what it returns.
_CALLS = {"jvp": "({}, ({}, X), tangents)", "linearize": "({}, {}, X)", "vjp": "({}, {}, X)"}


def _way_for_module(api: str, given: Any) -> str:
    """Return how a transform differentiates by what a module holds; "" for another object."""
    if not any(isinstance(part.value, Tensor) for part in walk(given)):
        return ""
    function = "lambda parameters, X: ... pb.nn.functional_call(model, parameters, X) ..."
    named = "model" if hasattr(given, "named_parameters") else "pb.nn"
    values = f"dict({named}.named_parameters({'' if named == 'model' else 'model'}))"
    return f"write pb.{api}{_CALLS.get(api, '({})({}, X)').format(function, values)}"


def _input(given: Any, source: Tensor, level: int) -> Input:
    """Return the tensor that replaces a leaf, a new leaf or a clone in the graph."""
    if source._base is not None:
        source.data_array()
    running = WRAPPING.get()
    if running and running[-1].library.level > library_of(source._data).level:
        source = wrap_in(source, running[-1].library)
    if depends_on_outer_level(level, (source,)):
        tensor = run_recorded(level, clone, source)
        tensor._node.levels |= 1 << level
        counter = shared_counter(tensor)
    else:
        counter = shared_counter(source)
        tensor = new_leaf(source._data, level, counter, source.__class__)
    return Input(given, tensor, box(tensor._data, tensor._node, counter))


def _no_derivative(api: str, name: str, given: Any) -> Exception:
    required = f"floating-point numbers required in {name}"
    if given is None:
        hint = "give a number, an array or a tensor"
        return ArgumentTypeError(compose(api, required, "NoneType", hint=hint))
    source = given if isinstance(given, Tensor) or is_array(given) else NUMPY.asarray(given)
    came = f"{type(given).__name__} of dtype {asarray(source).dtype.name}"
    hint = "only floating-point and complex numbers have a gradient: write 2.0 for 2"
    return DTypeError(compose(api, required, came, (name, given), hint=hint))


# -- transformed -----------------------------------------------------------------------------------
Function = Callable[..., Any]


class Transformed:
    """What a transform makes of a function: pickled and copied as the call that made it."""

    def __init__(self, transform: Callable[..., Any], fun: Function, **settings: Any) -> None:
        api = transform.__name__
        if not callable(fun):
            raise ArgumentTypeError(compose(api, "a function required", type(fun).__name__))
        self.__name__ = self.__qualname__ = api  # where the function has no name
        functools.update_wrapper(self, fun)
        if "argnum" in settings:
            argnums = settings.pop("argnums", None)
            settings["argnum"] = _argnum_of(api, settings["argnum"], argnums)
        self._transform, self._fun, self._settings = transform, fun, settings
        self._api, self._argnum = api, settings.get("argnum", 0)
        self._has_aux = settings.get("has_aux", False)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Compute the transform at these arguments."""
        raise NotImplementedError

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the method of an instance: in the body of a class this is one, like a function."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        return functools.partial(self._transform, **self._settings), (self._fun,)

    def __repr__(self) -> str:
        shown = repr(self._fun) if isinstance(self._fun, Transformed) else name_of(self._fun)
        parameters = inspect.signature(self._transform).parameters
        settings = (
            f", {name}={value!r}"
            for name, value in self._settings.items()
            if value != getattr(parameters.get(name), "default", None)
        )
        return f"{self._api}({shown}{''.join(settings)})"


def name_of(fun: Function) -> str:
    """Return the name of a function as messages have it."""
    return str(getattr(fun, "__qualname__", None) or getattr(fun, "__name__", None) or repr(fun))
