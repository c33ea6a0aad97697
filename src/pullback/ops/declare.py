"""Declaring an operation: one place for its forward, its gradient rules and its samples.

Owns the registry of declarations, which feeds the tests and the documentation, the making of the
public function, and the list of Tensor's methods that are such functions. Rules are read by
core/function/primitive.py: their parameter names say what is saved.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from pullback.arrays import is_array, join, library_of
from pullback.core.function.backward_codegen import prepare
from pullback.core.function.call_codegen import exported, inplace_call, public_call
from pullback.core.function.dispatch import merge_axis_args, mixed, own_word, unlike_pytorch
from pullback.core.function.namespace import TENSOR_XP
from pullback.core.function.primitive import Primitive
from pullback.core.tensor.tensor import TENSOR_CLASSES, Tensor, as_array
from pullback.core.tensor.views import MAY_COPY, READ_ONLY, detach_from_base
from pullback.errors import ERROR_CONTEXT, ArgumentTypeError, BatchedValueError, DTypeError, compose
from pullback.hints import explain_call

__all__ = [
    "MAY_COPY",
    "METHODS",
    "NUMPY",
    "READ_ONLY",
    "REGISTRY",
    "Composition",
    "Declaration",
    "Operation",
    "Primitive",
    "composition",
    "detach_results",
    "elementwise",
    "inplace",
    "named_by_errors",
    "needs_one_library",
    "needs_order",
    "needs_tensor",
    "op_for",
    "operation",
    "refuse_positions",
    "register_xp",
    "standard",
    "worded",
    "wrapper_of",
]


Function = Callable[..., Any]
Reference = Function | str | None
F = TypeVar("F", bound=Function)


class Operation(Protocol):
    """The public function of a declared operation."""

    __name__: str
    primitive: Primitive

    def __call__(self, *arrays: Any, **settings: Any) -> Tensor:
        """Run the operation on tensors, and record it where one requires grad."""
        ...


class Domain(NamedTuple):
    """Where samples of an input are drawn: uniformly from [low, high], less what is excluded.

    Attributes
    ----------
    low, high : float
        The interval.
    away : tuple of float
        Kinks and poles that samples keep a distance of 0.1 from.
    complex : bool
        Whether complex samples are meaningful too.
    kind : str
        ``"f"`` floating samples, ``"c"`` complex ones only, ``"i"`` integers, ``"b"`` bools.
    step : float
        If not 0, samples are multiples of it, so that equal ones occur.
    within : callable, optional
        ``within(x)`` of a tensor: brings any sample to where the operation is defined, for
        instance to a symmetric matrix; derivatives are taken through it.
    """

    low: float
    high: float
    away: tuple[float, ...] = ()
    complex: bool = False
    kind: str = "f"
    step: float = 0.0
    within: Callable[..., Any] | None = None


class Sample(NamedTuple):
    """One call to test: the shapes of the arrays, and the settings."""

    shapes: tuple[tuple[int, ...], ...]
    settings: dict[str, Any]


def _sample(*shapes: tuple[int, ...]) -> Sample:
    return Sample(shapes, {})


# Of an element-wise operation, by its number of inputs.
ELEMENTWISE = {
    1: (_sample((3, 4)), _sample(()), _sample((0, 3)), _sample((1,))),
    2: (
        _sample((3, 4), (3, 4)),
        _sample((3, 4), (4,)),
        _sample((3, 1), (1, 4)),
        _sample((), (2, 3)),
        _sample((), ()),
        _sample((0, 3), (1, 3)),
    ),
    3: (_sample((3, 4), (3, 4), (3, 4)), _sample((3, 1), (4,), ()), _sample((), (), ())),
}


@dataclass
class Declaration:
    """Everything known of one operation.

    Attributes
    ----------
    primitive : Primitive or Composition
        Forward, rules and what they save.
    public : callable
        The function users call.
    call : callable
        How tests call it: arrays positional, settings by keyword.
    names : tuple of str
        Its names in ``pullback``.
    domain : dict
        Where to sample each input.
    samples : tuple of Sample
        Calls to test.
    distinct : bool
        Whether one input's samples must all differ (order statistics).
    observed : callable, optional
        ``observed(*results)``: what of the results is determined, where a sign, a phase or an
        order is free; derivatives are taken of it.
    reference : str or callable, optional
        Its value on NumPy arrays, as for `elementwise`.
    result_dtype : str or tuple of str
        The dtype of the result, or of each: ``"same"`` as that of the inputs, ``"real"`` or
        ``"complex"`` of the same precision, or the name of one.
    scalars : bool
        Whether it takes tensors of 0 dimensions, so that samples have some.
    """

    primitive: Any
    public: Function
    call: Function
    names: tuple[str, ...]
    domain: dict[str, Domain]
    samples: tuple[Sample, ...]
    distinct: bool = False
    observed: Function | None = None
    reference: Reference = None
    result_dtype: str | tuple[str, ...] = "same"
    scalars: bool = True


REGISTRY: dict[str, Declaration] = {}

# What a declaration hands on to its primitive.
_code = Primitive.__init__.__code__
_FLAGS = frozenset(_code.co_varnames[_code.co_argcount :][: _code.co_kwonlyargcount])

# From the name of a method to its function; a name that ends in "_" is its in-place form.
METHODS: dict[str, Function] = {}

# From the name below `np` of a function of NumPy's to ours, and to the names of its parameters.
NUMPY: dict[str, tuple[Function, str]] = {}


def needs_order(op: str, *arrays: Any) -> None:
    """Raise where an operation of real numbers got complex ones, which have no order."""
    for i, array in enumerate(arrays):
        if library_of(array).dtype(array).is_complex:
            came = str(array.dtype).rpartition(".")[2]
            name = "xy"[i] if len(arrays) > 1 else "x"
            hint = "take real, imag or abs of it"
            raise DTypeError(compose(op, "real numbers required", came, (name, array), hint=hint))


def needs_tensor(op: str, x: Any, name: str = "x") -> None:
    """Raise where a function that looks at a shape first got no array."""
    if x.__class__ is not Tensor and not isinstance(x, Tensor) and not is_array(x):
        required = f"a Tensor or an array required as '{name}'"
        hint = "make a tensor of it with pullback.tensor"
        raise ArgumentTypeError(compose(op, required, type(x).__name__, hint=hint))


def needs_one_library(op: str, *named: tuple[str, Any]) -> None:
    """Raise where tensors, each with the name the caller knows it by, are of several libraries."""
    arrays = [x.data_array() if isinstance(x, Tensor) else x for _, x in named]
    if arrays and join(map(library_of, arrays)) is None:
        raise mixed(op, named)


def standard(name: str, *, ordered: bool = False) -> Function:
    """Return the forward that calls the array library's function of that name.

    `ordered`: the function compares numbers, so complex ones are refused.
    """

    def forward(xp: Any, *arrays: Any) -> Any:
        if ordered:
            needs_order(name, *arrays)
        return getattr(xp, name)(*arrays)

    forward.xp_name = name  # type: ignore[attr-defined]
    return forward


def elementwise(
    names: str,
    forward: Function | None = None,
    *,
    domain: Domain | dict[str, Domain] | None = None,
    doc: str = "",
    inputs: tuple[str, ...] | None = None,
    broadcasts: bool = True,
    samples: tuple[Sample, ...] | None = None,
    reference: Reference = None,
    result_dtype: str = "same",
    scalars: bool = True,
    methods: str = "",
    numpy: str = "",
    **rules_and_flags: Any,
) -> Primitive:
    """Declare an operation that works element by element, with broadcasting.

    Parameters
    ----------
    names : str
        The node's name and, separated by spaces, the public names where they differ.
    forward : callable, optional
        ``forward(xp, x, ...)``; by default the array library's function of the last of the names.
    domain : Domain or dict
        Where tests sample the inputs.
    doc : str
        The first line of the public docstring.
    inputs, broadcasts
        As for `Primitive`; the inputs are those that have rules, or one called x.
    samples : tuple of Sample, optional
        Calls to test, where the usual shapes do not fit.
    reference : str or callable, optional
        The value on NumPy arrays that tests compare with, where that is not NumPy's or
        `scipy.special`'s function of the same name: the name of a function, for instance
        ``"math.erf"``, or a formula, ``lambda np, x: np.exp(x) - 1``. Of its parameters, ``np``,
        ``scipy`` and ``math`` come first and are these modules. A function of `math`, or one that
        uses it, is called for each number. Longer ones are in the tests, by name.
    result_dtype, scalars
        As for `Declaration`.
    methods : str
        The methods it is on Tensor, separated by spaces; those whose names end in ``_`` work in
        place.
    numpy : str
        NumPy's functions that it stands for: their names below ``np``, of ufuncs those alone, of
        others a colon and NumPy's parameters too, ``"diff: a=x n axis"`` with ``theirs=ours`` where
        names differ; several such with semicolons between. See numpy_protocol/renamings.py.
    **rules_and_flags
        The gradient rule of each input, and what else `Primitive` takes.
    """
    rules = {name: rule for name, rule in rules_and_flags.items() if name not in _FLAGS}
    flags = {name: value for name, value in rules_and_flags.items() if name in _FLAGS}
    inputs = inputs or tuple(rules) or ("x",)
    flags["broadcasts"], flags["elementwise"] = broadcasts and len(inputs) > 1, broadcasts
    forward = forward or standard(names.split()[-1])
    primitive, names_ = _primitive(names, forward, inputs, {}, rules, **flags)
    call = public_call(primitive, inputs, out=len(inputs) < 3)
    domains = _domains(domain, inputs, Domain(-2, 2))
    samples = samples or ELEMENTWISE[len(inputs)]
    tested = (False, None, reference, result_dtype, scalars)
    _register(primitive, call, names_, doc, domains, samples, (methods, numpy), *tested)
    return primitive


def operation(
    names: str,
    forward: Function,
    *,
    samples: Sequence[Sample] = (),
    domain: Domain | dict[str, Domain] | None = None,
    distinct: bool = False,
    observed: Function | None = None,
    doc: str = "",
    vjp_all: Function | None = None,
    rules: dict[str, Function | None] | None = None,
    reference: Reference = None,
    result_dtype: str | tuple[str, ...] = "same",
    scalars: bool = True,
    methods: str = "",
    numpy: str = "",
    **flags: Any,
) -> Primitive:
    """Declare an operation of any shape; arrays positional, settings keyword-only.

    Parameters
    ----------
    names, forward, domain, doc
        As for `elementwise`; the inputs and settings are read off forward's signature.
    samples : sequence of Sample
        Calls to test.
    distinct, observed, result_dtype, scalars
        As for `Declaration`.
    vjp_all : callable, optional
        One rule that returns the gradients of all inputs.
    rules : dict
        The gradient rule of each input.
    reference, methods, numpy
        As for `elementwise`.
    **flags
        As for `Primitive`.
    """
    inputs, settings, variadic = _parameters(forward)
    primitive, names_ = _primitive(
        names,
        forward,
        () if variadic else inputs,
        settings,
        rules or {},
        vjp_all=vjp_all,
        variadic=variadic,
        **flags,
    )
    call = public_call(primitive, inputs)
    domains = _domains(domain, inputs, Domain(-2, 2, complex=True))
    tested = (distinct, observed, reference, result_dtype, scalars)
    _register(primitive, call, names_, doc, domains, tuple(samples), (methods, numpy), *tested)
    return primitive


def _domains(
    domain: Domain | dict[str, Domain] | None, inputs: tuple[str, ...], default: Domain
) -> dict[str, Domain]:
    """Return the domain of each input, of which one may have been given for all."""
    return domain if isinstance(domain, dict) else dict.fromkeys(inputs, domain or default)


def _parameters(forward: Function) -> tuple[tuple[str, ...], dict[str, Any], bool]:
    """Return forward's arrays, its settings with their defaults, and whether it is variadic.

    Read off the code, since `inspect.signature` takes long for all operations together.
    """
    code = forward.__code__
    count, end = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    variadic = bool(code.co_flags & inspect.CO_VARARGS)
    inputs = code.co_varnames[1:count] + code.co_varnames[end : end + variadic]
    defaults = dict.fromkeys(code.co_varnames[count:end], inspect.Parameter.empty)
    return inputs, {**defaults, **(forward.__kwdefaults__ or {})}, variadic


def _primitive(
    names: str,
    forward: Function,
    inputs: tuple[str, ...],
    settings: dict[str, Any],
    rules: dict[str, Function | None],
    **flags: Any,
) -> tuple[Primitive, tuple[str, ...]]:
    first, *others = names.split()
    op = Primitive(first, forward, inputs, settings, rules, **flags)
    prepare(op)
    return op, (*others, first)


def _register(
    op: Primitive,
    public: FunctionType,
    names: tuple[str, ...],
    doc: str,
    domain: dict[str, Domain],
    samples: tuple[Sample, ...],
    other_names: tuple[str, str],
    *tested: Any,
) -> None:
    operation = cast(Operation, exported(op, names, doc, public))
    REGISTRY[op.name] = Declaration(op, operation, operation, names, domain, samples, *tested)
    _stands_for(operation, *other_names)
    for name in names:
        setattr(TENSOR_XP, name, operation)


def _stands_for(function: Function, methods: str, numpy: str) -> None:
    """List the methods, and NumPy's functions, that a function stands for."""
    METHODS.update(dict.fromkeys(methods.split(), function))
    for renaming in numpy.split(";"):
        names, _, parameters = renaming.partition(":")
        NUMPY.update(dict.fromkeys(names.split(), (function, parameters)))


def wrapper_of(
    of: Primitive, call: Function | None = None, *, methods: str = "", numpy: str = ""
) -> Callable[[F], F]:
    """Make a function the public one of an operation: what users and recorded rules call.

    Parameters
    ----------
    of : Primitive
        What it calls, after looking at its arguments.
    call : callable, optional
        How tests call the function, which is handed over first, where that is not arrays
        positional, settings by keyword.
    methods, numpy : str
        As for `elementwise`.
    """

    def decorate(function: F) -> F:
        declaration = REGISTRY[of.name]
        named_by_errors(function, declaration.names)
        declaration.public = function = worded(function)
        declaration.call = functools.partial(call, function) if call else function
        function.primitive = of  # type: ignore[attr-defined]
        setattr(TENSOR_XP, function.__name__, function)
        _stands_for(function, methods, numpy)
        return function

    return decorate


def named_by_errors(function: Function, names: tuple[str, ...] = ()) -> None:
    """Let errors that are raised while `function` runs name it and its arguments."""
    code = function.__code__
    if "_more" in code.co_varnames:  # it is there for the sake of an error
        signature = inspect.signature(function)
        shown = [p for p in signature.parameters.values() if p.name != "_more"]
        function.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    count = code.co_argcount + code.co_kwonlyargcount
    parameters = code.co_varnames[: count + bool(code.co_flags & inspect.CO_VARARGS)]

    def read(variables: dict[str, Any]) -> tuple[tuple[str, ...], list[tuple[str, Any]]]:
        inputs: list[tuple[str, Any]] = []
        for name in parameters:
            value = variables.get(name)
            if isinstance(value, (tuple, list)):
                inputs += [(f"{name}[{i}]", part) for i, part in enumerate(value)]
            else:
                inputs.append(("x" if name == "self" else name, value))
        return (function.__name__, *names), inputs

    ERROR_CONTEXT[code] = read


class Composition:
    """What the registry knows of a function that is made of operations; as for `Primitive`."""

    vjp_all, variadic, xp_name, holomorphic = None, False, None, False

    def __init__(
        self,
        name: str,
        inputs: tuple[str, ...],
        constants: tuple[str, ...],
        multi: bool,
        **more: Any,
    ) -> None:
        self.name, self.inputs, self.multi = name, inputs, multi
        self.differentiable: bool = more.get("differentiable", True)
        self.view: bool = more.get("view", False)
        # Its derivative is that of what it is made of.
        self.declared = {n: None if n in constants else True for n in inputs if self.differentiable}


def composition(
    *samples: Sample,
    domain: Domain | dict[str, Domain] | None = None,
    constants: tuple[str, ...] = (),
    multi: bool = False,
    view: bool = False,
    differentiable: bool = True,
    distinct: bool = False,
    observed: Function | None = None,
    call: Function | None = None,
    reference: Reference = None,
    result_dtype: str | tuple[str, ...] = "same",
    scalars: bool = True,
    methods: str = "",
    numpy: str = "",
) -> Callable[[F], F]:
    """Declare a public function that is made of operations and needs no rule of its own.

    Parameters
    ----------
    *samples : Sample
        Calls to test; the leading parameters are the arrays, as many as the first has shapes.
    domain
        As for `elementwise`.
    constants : tuple of str
        The arrays that have no gradient: indices, masks.
    multi, view, differentiable
        Whether there are several results; whether they show the memory of an argument, if they
        can; whether a gradient is defined at all. The results of all others are no views: they
        are made tensors of their own where the last step took a view of what was computed.
    distinct, observed, result_dtype, scalars
        As for `Declaration`.
    call : callable, optional
        How tests call it, which is handed over first, where that is not arrays positional,
        settings by keyword.
    reference, methods, numpy
        As for `elementwise`.
    """
    tested = (distinct, observed, reference, result_dtype, scalars)

    def decorate(function: F) -> F:
        name, first = function.__name__, 1 if call else 0
        arrays = slice(first, first + len(samples[0].shapes) if samples else first)
        inputs = (call or function).__code__.co_varnames[arrays]
        named_by_errors(function)
        op = Composition(name, inputs, constants, multi, differentiable=differentiable, view=view)
        function = cast(F, (worded if view else _of_own_results)(function))
        called = functools.partial(call, function) if call else function
        domains = _domains(domain, inputs, Domain(-2, 2, complex=True))
        REGISTRY[name] = Declaration(op, function, called, (name,), domains, samples, *tested)
        function.primitive = op  # type: ignore[attr-defined]
        setattr(TENSOR_XP, name, function)
        _stands_for(function, methods, numpy)
        return function

    return decorate


def _of_own_results(function: Function) -> Function:
    """Return the function with results that are views of no tensor but its arguments.

    Where it looks at a value of which each sample of a batch has its own, it is called for each.
    """

    @functools.wraps(function)
    def call(*args: Any, **settings: Any) -> Any:
        renamed = None
        try:
            result = function(*args, **settings)
        except BatchedValueError as error:
            return by_sample(error, call, args, settings)
        except TypeError as error:
            renamed = _in_own_words(function, error, args, settings)
        if renamed is not None:
            return call(*args, **renamed)
        if result.__class__ not in TENSOR_CLASSES:
            detach_results(
                result if isinstance(result, (tuple, list)) else (result,), args, settings
            )
        elif result._base is not None:
            detach_results((result,), args, settings)
        return result

    return call


def _names_of(function: Function) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def worded(function: F) -> F:
    """Return the function with PyTorch's words for settings taken as its own, if it has any."""
    names = _names_of(function)
    if "dim" in names or not (function.__code__.co_kwonlyargcount or own_word("dim", names)):
        return function

    @functools.wraps(function)
    def call(*args: Any, **settings: Any) -> Any:
        try:
            return function(*args, **settings)
        except TypeError as error:
            renamed = _in_own_words(function, error, args, settings)
        return function(*args, **renamed)

    return cast(F, call)


def _in_own_words(
    function: Function, error: TypeError, args: Sequence[Any], settings: dict[str, Any]
) -> dict[str, Any]:
    """Return settings that came by PyTorch's names for axes under a function's own.

    Raises an error that names the keywords if settings came by position, and any other as it is.
    """
    code, trace, names = function.__code__, error.__traceback__, _names_of(function)
    keywords = {key: own_word(key, names) for key in settings.keys() - {*names}}
    more = args[code.co_argcount :] if code.co_kwonlyargcount else ()
    ran = trace is None or trace.tb_next is not None
    if ran or not all(keywords.values()) or not (keywords or more):
        if not ran:
            explain_call(error, function, settings)
        raise error
    refuse_positions(function, more, **{k: settings[k] for k in keywords})
    for key, name in keywords.items():
        settings[name] = merge_axis_args(function.__name__, settings.pop(key), settings.get(name))
    return settings


def refuse_positions(function: Function, more: Sequence[Any], **keywords: Any) -> None:
    """Raise, and name the keywords, if settings of a function came by position."""
    if more:
        kinds = [(p.name, p.kind) for p in inspect.signature(function).parameters.values()]
        inputs = [n for n, kind in kinds if kind is not inspect.Parameter.KEYWORD_ONLY]
        settings = [n for n, kind in kinds if kind is inspect.Parameter.KEYWORD_ONLY]
        raise unlike_pytorch(function.__name__, inputs, settings, more, **keywords)


def by_sample(
    error: BatchedValueError, function: Function, args: Sequence[Any], settings: dict[str, Any]
) -> Any:
    """Call a function that asked for one value of a batch for each sample by itself."""
    result = NotImplemented if error.each is None else error.each(function, args, settings)
    if result is NotImplemented:
        raise error
    return result


def sampled(function: F) -> F:
    """Let a function of a function, ``f(x, *theta)``, be called for each sample of a batch.

    The samples are those of its arguments: what `f` closes over cannot be taken apart.
    """

    @functools.wraps(function)
    def call(*args: Any, **settings: Any) -> Any:
        try:
            return function(*args, **settings)
        except BatchedValueError as error:
            try:
                return by_sample(error, call, args, settings)
            except BatchedValueError as raised:
                if raised is not error and raised.each is not None:
                    raise
                raise _closed_over(function.__name__) from raised

    return cast(F, call)


def _closed_over(name: str) -> BatchedValueError:
    required = "what differs between the samples of vmap required among the arguments"
    came = "a function that closes over it"
    hint = f"hand it over as theta: {name}(f, ..., a), where f takes a as its last argument"
    return BatchedValueError(compose(name, required, came, hint=hint))


def detach_results(results: Sequence[Any], args: Sequence[Any], settings: dict[str, Any]) -> None:
    """Make results that are views of a tensor that no argument shows tensors of their own."""
    views = [r for r in results if isinstance(r, Tensor) and r._base is not None]
    if not views:
        return
    seen: set[int] = {id(r) for r in results}
    for value in (*args, *settings.values()):
        for x in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(x, Tensor):
                seen.add(id(x if x._base is None else x._base))
    for view in views:
        if id(view._base) not in seen:
            detach_from_base(view)


def op_for(xp: Any, op: Primitive) -> Function:
    """Return an operation for arguments of the namespace `xp`: tensors, or bare arrays."""
    if xp is TENSOR_XP:
        return op.public
    if xp.__class__ is not ModuleType and (call := getattr(xp, "operation", None)) is not None:
        return call(op)  # type: ignore[no-any-return]
    forward = op.forward
    return lambda *arrays, **settings: forward(xp, *map(_bare, arrays), **settings)


def _bare(value: Any) -> Any:
    """Return an array for a result of bare arithmetic; a whole number that a rule wrote stays."""
    return value if value.__class__ is int else as_array(value)


def register_xp(*functions: Function, space: str = "") -> None:
    """Let recorded rules call these functions as ``xp.<name>``, or ``xp.<space>.<name>``."""
    if space and not isinstance(vars(TENSOR_XP).get(space), SimpleNamespace):
        setattr(TENSOR_XP, space, SimpleNamespace())
    namespace = getattr(TENSOR_XP, space) if space else TENSOR_XP
    for function in functions:
        setattr(namespace, function.__name__, function)


@functools.cache
def inplace(op: Primitive) -> Callable[..., Tensor]:
    """Return the in-place form of an operation, a method."""
    call = inplace_call(op)
    call.__doc__ = f"Do `{op.public.__name__}` in place and return this tensor."
    return call
