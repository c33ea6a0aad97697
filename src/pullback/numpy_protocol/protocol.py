"""NumPy's two protocols on Tensor: ``np.sin(t)``, ``array + t``, ``np.linalg.solve(a, t)``.

Owns finding the counterpart of a function that NumPy hands over, and refusing what has none. The
table is built from the operations at first use. Invariant: no tensor leaves the graph; what would
have to be an array raises if a gradient is asked for.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import operator
import sys
from collections.abc import Callable, Iterable
from numbers import Number
from typing import Any, NoReturn

import numpy as np

from pullback import hints, special
from pullback.arrays import is_array
from pullback.core.function.namespace import TENSOR_XP
from pullback.core.graph.modes import STATE
from pullback.core.tensor.tensor import Tensor
from pullback.errors import (
    ArgumentTypeError,
    AutogradError,
    BatchedValueError,
    GraphError,
    ShapeError,
    compose,
)
from pullback.numpy_protocol import (  # noqa: F401  (each lists its counterparts)
    choosing,
    computing,
    products,
    reducing,
    shaping,
    ufunc_methods,
)
from pullback.numpy_protocol.arguments import (
    ADAPTERS,
    as_tensor,
    beside,
    numpy_dtype,
    operand,
    tensors_in,
    values_of,
)
from pullback.numpy_protocol.renamings import parameters_of, renamed
from pullback.numpy_protocol.table import ARRAYS_LIKE, NO_COUNTERPART, OF_VALUES, REDUCING
from pullback.ops.declare import NUMPY, by_sample, detach_results
from pullback.ops.functions.data_types import astype
from pullback.ops.functions.manipulation import reshape

# Arguments that change no value of a result: how memory is laid out, how it is computed.
_LAYOUT = "assume_unique casting copy hermitian kind optimize order overwrite_input stable subok"
_IGNORED = frozenset(_LAYOUT.split())


class NumPyMethods:
    """What makes NumPy's functions take a Tensor."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        if method == "__call__" and not settings:
            if len(inputs) == 1:
                return ufunc_counterpart(ufunc)(self)
            if not all(map(_is_known, inputs)):
                return NotImplemented
            call, cls = ufunc_counterpart(ufunc), self.__class__
            if hasattr(call, "primitive"):  # which copies an array itself where it keeps one
                return call(*[x if x.__class__ is np.ndarray else operand(x, cls) for x in inputs])  # type: ignore[arg-type]
            return call(*[operand(x, cls) for x in inputs])  # type: ignore[arg-type]
        return _call_ufunc(ufunc, method, inputs, settings)

    def __array_function__(
        self, function: Any, types: Iterable[type], args: Any, settings: dict[str, Any]
    ) -> Any:
        if not all(map(is_known_type, types)):
            return NotImplemented
        try:
            return counterpart(function)(self, args, settings)
        except BatchedValueError as error:
            return by_sample(error, function, args, settings)

    @property
    def _mask(self: Any) -> NoReturn:
        """Refuse what np.ma would do: it takes the array out of whatever has an attribute _data."""
        if not self.requires_grad or not STATE.get().grad:
            raise AttributeError("_mask")
        required = "tensors that do not require grad required beside masked arrays"
        hint = "fill the masked array first: m.filled(0)"
        raise GraphError(compose("np.ma", required, "one that does", ("t", self), hint=hint))


def _is_known(value: Any) -> bool:
    """Return whether an operand of a ufunc is ours to handle."""
    ours = isinstance(value, (Tensor, Number, list, tuple, np.generic)) or is_array(value)
    return ours or hasattr(value, "__pandas_priority__")


@functools.lru_cache(maxsize=256)
def is_known_type(kind: type) -> bool:
    """Return whether a function of NumPy's on arrays of a class is ours to handle."""
    return issubclass(kind, (Tensor, np.ndarray)) or hasattr(kind, "__array_namespace__")


# -- ufuncs ----------------------------------------------------------------------------------------
@functools.cache
def ufunc_counterpart(ufunc: np.ufunc) -> Callable[..., Any]:
    """Return the function of tensors that a ufunc stands for."""
    name = ufunc.__name__
    if name in ADAPTERS:
        return ADAPTERS[name]
    if name in OF_VALUES:
        return functools.partial(_run_on_values, ufunc)
    result: Callable[..., Any] | None = None
    if getattr(np, name, None) is ufunc:
        result = renamed(name) if name in NUMPY else getattr(TENSOR_XP, name, None)
    elif getattr(sys.modules.get("scipy.special"), name, None) is ufunc:
        result = getattr(special, name, None)  # a name may mean something else there
        name = f"scipy.special.{name}"
    elif name.endswith(" (vectorized)"):
        name = "frompyfunc"
    elif name.startswith("_"):  # SciPy's own functions call it
        name = f"scipy.special.{name[1:]}"
    return functools.partial(_refuse, name) if result is None else result


def _call_ufunc(ufunc: Any, method: str, inputs: Any, settings: dict[str, Any]) -> Any:
    """Call a ufunc or one of its methods, with what NumPy may add to a call."""
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    out = settings.pop("out", ())
    if not all(map(_is_known, (*inputs, *(x for x in out if x is not None)))):
        return NotImplemented
    writes = method == "at" and not isinstance(inputs[0], Tensor)
    if writes or any(isinstance(x, np.ndarray) for x in out):
        function, array = operator.attrgetter(method)(ufunc), out[0] if out else inputs[0]
        settings = {**settings, "out": out} if out else settings
        return choosing.run_into_array(f"np.{name}", function, array, inputs, settings)
    settings = {key: value for key, value in settings.items() if key not in _IGNORED}
    if method not in ("__call__", "outer"):
        return _into_tensors(name, _call_method(ufunc, method, inputs, settings), out)
    call = ufunc_counterpart(ufunc)
    dtype, where = settings.pop("dtype", None), settings.pop("where", True)
    if settings:
        hint = "call it without"
        required = "a call without other settings required"
        raise ArgumentTypeError(compose(f"np.{name}", required, ", ".join(settings), hint=hint))
    arrays = [operand(x) if dtype is None else _cast(x, dtype) for x in inputs]
    if method == "outer":
        left, right = map(as_tensor, arrays)
        arrays = [reshape(left, left.shape + (1,) * right.ndim), right]
    if where is not True:
        return ufunc_methods.chosen(call, arrays, where, out[0] if out else None)
    return _into_tensors(name, call(*arrays), out)


def _call_method(ufunc: Any, method: str, inputs: Any, settings: dict[str, Any]) -> Any:
    """Call ``reduce``, ``accumulate``, ``reduceat`` or ``at``: of an operation, or step by step."""
    if method == "reduceat":
        reduce = functools.partial(_call_ufunc, ufunc, "reduce")
        return ufunc_methods.reduced_at(
            lambda x, axis: reduce((x,), {"axis": axis}), *inputs, **settings
        )
    if (ufunc.__name__, method) in REDUCING:
        function = getattr(np, REDUCING[ufunc.__name__, method])
        return counterpart(function)(None, inputs, {"axis": 0, **settings})
    call = ufunc_counterpart(ufunc)
    if settings.get("dtype") is not None:
        inputs = (_cast(inputs[0], settings["dtype"]), *inputs[1:])
    settings = {key: x for key, x in settings.items() if key != "dtype"}
    if settings.pop("where", True) is not True:
        hint = "np.where(mask, t, identity) chooses before"
        required = "a call without where= required"
        raise ArgumentTypeError(
            compose(f"np.{ufunc.__name__}.{method}", required, "one", hint=hint)
        )
    return ufunc_methods.STEPWISE[method](ufunc, call, *inputs, **settings)


def _cast(x: Any, dtype: Any) -> Any:
    return astype(as_tensor(x), numpy_dtype(dtype), copy=False)


def _into_tensors(name: str, result: Any, out: Any) -> Any:
    """Write results into the tensors given as ``out``, if there are any; recorded, as any write."""
    out = out if isinstance(out, tuple) else (out,)
    if all(target is None for target in out):
        return result
    several = isinstance(result, tuple)
    pairs = zip(result if several else (result,), out, strict=True)
    written = tuple(x if target is None else _into_tensor(name, x, target) for x, target in pairs)
    return written if several else written[0]


def _into_tensor(name: str, result: Any, target: Any) -> Any:
    if result.shape != target.shape or result.dtype is not target.dtype:
        required = f"out= of shape {result.shape}, dtype {result.dtype.name} required"
        raise ShapeError(compose(f"np.{name}", required, "another", ("out", target)))
    target[...] = result
    return target


# -- functions -------------------------------------------------------------------------------------
@functools.cache
def counterpart(function: Any) -> Callable[..., Any]:
    """Return ``call(like, args, settings)`` for a function of NumPy's."""
    name = names().get(function, "")
    if name in ARRAYS_LIKE:
        return functools.partial(_make_like, name, function)
    if name in OF_VALUES:
        return lambda like, args, settings: _run_on_values(function, *args, **settings)
    if name in ADAPTERS:
        return _Call(f"np.{name}", function, ADAPTERS[name])
    if name in NUMPY:
        return _Call(f"np.{name}", function, renamed(name), NUMPY[name][0].__name__)
    label = name or f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
    return lambda like, args, settings: _refuse(label, *args, **settings)


@functools.cache
def names() -> dict[Any, str]:
    """Return the names below ``np`` of the functions that NumPy lets others take over."""
    result = {}
    for name in [*ADAPTERS, *NUMPY, *OF_VALUES, *ARRAYS_LIKE, *NO_COUNTERPART]:
        with contextlib.suppress(AttributeError):  # some are of one version of NumPy alone
            result[operator.attrgetter(name)(np)] = name
    return result


class _Call:
    """A call of a counterpart with NumPy's arguments, less those that change nothing."""

    def __init__(
        self, name: str, function: Any, counterpart: Callable[..., Any], ours: str = ""
    ) -> None:
        self.name, self.function, self.counterpart = name, function, counterpart
        self.ours = ours or name.rpartition(".")[2]  # what errors call it
        own = inspect.signature(counterpart).parameters
        self.open_ended = any(p.kind is p.VAR_KEYWORD for p in own.values())
        self.accepts = frozenset(own)
        parameters = [*(parameters_of(function) or own).values()]
        self.names = _by_position(parameters)
        self.defaults = {p.name: p.default for p in parameters}
        self.variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        pairs = zip(self.names, _by_position(own.values()), strict=False)
        same = itertools.takewhile(lambda pair: pair[0] == pair[1] not in ("dtype", "out"), pairs)
        self.alike = len(list(same))  # arguments by position mean the same to both

    def __call__(self, like: Any, args: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        try:
            return self._run(args, settings)
        except AutogradError as error:
            text = str(error)
            if text.startswith(f"{self.ours}: "):
                error.args = (self.name + text.removeprefix(self.ours),)
            raise

    def _run(self, args: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        if not settings and len(args) <= self.alike:
            result = self.counterpart(*args)
            detach_results(
                result if isinstance(result, (tuple, list)) else (result,), args, settings
            )
            return result
        passed = dict(settings)
        if not self.variadic:
            if len(args) > len(self.names):
                required = f"at most {len(self.names)} arguments by position required"
                raise ArgumentTypeError(compose(self.name, required, str(len(args))))
            passed.update(zip(self.names, args, strict=False))
            args = ()
        out = passed.pop("out", None)
        refused = [] if self.open_ended else [n for n in passed if n not in self.accepts]
        for name in refused:
            self._check_lacking(name, passed.pop(name))
        if passed.get("dtype") is not None:
            passed["dtype"] = numpy_dtype(passed["dtype"])
        if out is not None:
            return self._write(args, passed, out)
        result = self.counterpart(*args, **passed)
        detach_results(result if isinstance(result, (tuple, list)) else (result,), args, passed)
        return result

    def _check_lacking(self, name: str, value: Any) -> None:
        """Raise for a setting that the counterpart lacks, where it would change a value."""
        # The order of a sort names fields.
        is_layout = name in _IGNORED and (name != "order" or value in ("C", "F", "A", "K"))
        default = self.defaults.get(name)
        is_equal = isinstance(value, (bool, int, float, str)) and value == default
        if not (is_layout or is_equal or value is None or value is default):
            required = f"a call without {name}= required"
            hint = f"for Tensors it takes {', '.join(sorted(self.accepts))}"
            raise ArgumentTypeError(compose(self.name, required, repr(value), hint=hint))

    def _write(self, args: tuple[Any, ...], passed: dict[str, Any], out: Any) -> Any:
        if isinstance(out, Tensor):
            result = self.counterpart(*args, **passed)
            return _into_tensors(self.name.removeprefix("np."), result, out)
        settings = {**passed, "out": out}
        return choosing.run_into_array(self.name, self.function, out, args, settings)


def _by_position(parameters: Iterable[inspect.Parameter]) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in kinds]


def _run_on_values(function: Any, *args: Any, **settings: Any) -> Any:
    """Run NumPy's own function on the values; arrays come back as tensors."""
    result = function(*values_of(args), **values_of(settings))
    return beside(result, tensors_in((args, settings))[0])


def _make_like(name: str, function: Any, like: Tensor, args: Any, settings: Any) -> Any:
    """Make an array as NumPy does, as a tensor where `like` is."""
    if name in ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require"):
        x, *more = args
        dtype = more[0] if more else settings.get("dtype")
        tensor = as_tensor(x)
        return tensor if dtype is None else astype(tensor, numpy_dtype(dtype), copy=False)
    return beside(function(*args, **settings), like)


def _refuse(name: str, *args: Any, **settings: Any) -> NoReturn:
    """Raise for a function that has no counterpart."""
    label = name if name.startswith("scipy.") else f"np.{name}"
    reason = NO_COUNTERPART.get(name) or hints.way_out(label.replace("np.", "numpy.", 1))
    if not reason and label.startswith("scipy."):
        reason = "an operation of yours around it, by pb.autograd_function"
    values = f"for the values alone, without gradient: {label}(t.detach().numpy(), ...)"
    inputs = [(f"tensor {i}", x) for i, x in enumerate(tensors_in((args, settings))[:3])]
    required = "a function that has a counterpart for Tensors required"
    hint = f"{reason}; {values}" if reason else values
    raise ArgumentTypeError(compose(label, required, "one that has none", *inputs, hint=hint))
