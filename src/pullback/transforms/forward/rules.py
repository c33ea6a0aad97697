"""The tangents of operations: how results change along the vectors that their inputs change by.

The rules are those of reverse mode. Of an element-wise operation a rule multiplies with the
derivative, so it is applied to the vector. Where a rule does not ask for its own input or the
result, the operation is linear in that input, and is applied to the vector itself. The derivative
of any other operation is the transpose of what its backward does: see `pushed`.

All runs on tensors where something is recorded, or wrapped further in; on the default library's own
arrays else, which is quicker. A vector may be smaller than its input, which it is broadcast to, and
so may a tangent be: what is repeated is computed once.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from pullback.arrays import NUMPY, dtype_of, ndarray
from pullback.core.function.dispatch import UNFIT, kernel_of
from pullback.core.function.namespace import TENSOR_XP
from pullback.core.function.primitive import Primitive, parameters
from pullback.core.function.record import asked_for
from pullback.core.tensor.ownership import can_add_in_place
from pullback.core.tensor.tensor import Tensor
from pullback.transforms.forward.pushforward import pushed
from pullback.transforms.wrapped import is_numbers, is_part, results_in, results_of, to_tensor

Pairs = Sequence[tuple[Any, Any]]


def derived_on_parts(
    op: Primitive, values: Sequence[Any], along: Sequence[Any], settings: dict[str, Any]
) -> Pairs:
    """Return the results of an operation on parts of arrays, each with its tangent: tensors."""
    tensors = [to_tensor(v) if is_part(v) else v for v in values]
    vectors = [None if v is None else to_tensor(v) for v in along]
    pairs = derived(TENSOR_XP, op, tensors, vectors, settings)
    if pairs is not None:
        return pairs
    vectors = [
        None
        if v is None or (i in op.nondifferentiable_inputs and not op.variadic)
        else _broadcast(TENSOR_XP, v, t)
        for i, (t, v) in enumerate(zip(tensors, vectors, strict=True))
    ]
    return pushed(lambda *given: results_of(op, given, settings), tensors, vectors)


def derived(
    xp: Any, op: Primitive, values: Sequence[Any], along: Sequence[Any], settings: dict[str, Any]
) -> Pairs | None:
    """Return the results of an operation, each with its tangent, None for one that is zero.

    None where no rule gives a tangent, but the transpose of a backward pass. `along` has the vector
    that each input changes by, None for one that stays; `xp` is the namespace of all of them.
    """
    masks = (
        () if op.variadic else op.nondifferentiable_inputs
    )  # whose gradient is structurally zero
    vectors = {i: v for i, v in enumerate(along) if v is not None and i not in masks}
    if not vectors or not op.differentiable:
        return [(out, None) for out in results_in(xp, op, values, settings)]
    if op.elementwise and _multiplies(op, vectors, values):
        (out,) = results_in(xp, op, values, settings)
        if _is_complex(out) == (True in [_is_complex(v) for v in vectors.values()]):
            tangent, dtype = _products(xp, op, vectors, values, out, settings), out.dtype
            if tangent.dtype is not dtype:
                is_tensor = xp is TENSOR_XP
                tangent = tangent.to(dtype) if is_tensor else NUMPY.tidy(tangent).astype(dtype)
            return [(out, tangent)]
    whole = {i: _broadcast(xp, v, values[i]) for i, v in vectors.items()}
    rows = _linear(xp, op, values, whole, settings)
    if rows is None:
        return None
    outs = results_in(xp, op, values, settings)
    return [
        (out, _sum(list(terms)) if dtype_of(out.dtype).is_inexact else None)
        for out, terms in zip(outs, zip(*rows, strict=True), strict=True)
    ]


def _is_complex(value: Any) -> bool:
    return dtype_of(value.dtype).is_complex if is_numbers(value) else isinstance(value, complex)


def _broadcast(xp: Any, vector: Any, like: Any) -> Any:
    return vector if vector.shape == like.shape else xp.broadcast_to(vector, like.shape)


def _sum(terms: list[Any]) -> Any:
    """Return the sum of the terms of a tangent, in the memory of one that only the list holds."""
    while len(terms) > 1:
        if can_add_in_place(terms[0], terms[1]):
            terms[0] += terms[1]
        elif can_add_in_place(terms[1], terms[0]):
            terms[1] += terms[0]
            terms[0] = terms[1]
        else:
            terms[0] = terms[0] + terms[1]
        del terms[1]
    return terms[0]


# -- plain real arrays, the usual case -------------------------------------------------------------
def quickly(array_class: Any, op: Primitive, arrays: Sequence[Any], settings: Any) -> Any:
    """Return the result of an operation for which `is_quick`, of the class `array_class`.

    None where anything but plain arrays of one real dtype takes part, for the general way.
    """
    kernel, floats = op.kernels.get(ndarray) or kernel_of(op, ndarray)
    values: list[Any] = []
    vectors, dtype, run = {}, None, None
    for i, a in enumerate(arrays):
        if a.__class__ is array_class:
            value, tangent = a.value, a.tangent
            if value.__class__ is not ndarray:
                return None
            if value.dtype is not dtype:
                if dtype is not None or value.dtype not in floats:
                    return None
                dtype = value.dtype
            if tangent is not None:
                own = a.running
                is_other = own is not run and (run is not None or own.ended)
                if is_other or tangent.__class__ is not ndarray or op.rules[i] is None:
                    return None
                vectors[i], run = tangent, own
            values.append(value)
        elif a.__class__ is float or a.__class__ is int:
            values.append(a)
        else:
            return None
    try:
        out = kernel(*values, **settings)
    except UNFIT:
        return None
    if out.__class__ is not ndarray:
        out = NUMPY.tidy(out)
    if not vectors:
        return array_class(out)
    if out.dtype is not dtype:
        return None
    if op.elementwise:
        tangent = _products(NUMPY.xp, op, vectors, values, out, settings)
    else:
        tangent = kernel(_broadcast(NUMPY.xp, vectors[0], values[0]), **settings)
    return array_class(out, tangent if tangent.__class__ is ndarray else NUMPY.tidy(tangent), run)


@functools.cache
def is_quick(op: Primitive) -> bool:
    """Return whether an operation is element-wise, or of one input and linear."""
    if op.multi or op.variadic or not op.differentiable or "index" in op.settings:
        return False
    return op.elementwise or (len(op.inputs) == 1 and _is_linear(op, 0))


# -- operations that multiply with their derivative ------------------------------------------------
def _multiplies(op: Primitive, vectors: dict[int, Any], values: Sequence[Any]) -> bool:
    """Return whether the rules of an element-wise operation multiply with its derivative."""
    if None in [op.rules[i] for i in vectors]:
        return False
    return op.holomorphic or True not in [_is_complex(v) for v in values]


def _products(
    xp: Any,
    op: Primitive,
    vectors: dict[int, Any],
    values: Sequence[Any],
    out: Any,
    settings: dict[str, Any],
) -> Any:
    """Return the sum of the rules, with the vectors for the gradient."""
    known = {"xp": xp, op.results[0]: out, **dict(zip(op.inputs, values, strict=True))}
    if op.symmetric and len(vectors) == 2:
        (x, v), (y, w) = zip(values, vectors.values(), strict=True)
        vectors = {0: v + v} if x is y and v is w else vectors
    terms = []
    for i, known["g"] in vectors.items():
        rule: Any = op.rules[i]
        arguments = [
            known[name] if name in known else _described(op, name, values, settings)
            for name in parameters(rule)
        ]
        terms.append(rule(*arguments))
    return terms[0] if len(terms) == 1 else _sum(terms)


def _described(op: Primitive, name: str, values: Sequence[Any], settings: dict[str, Any]) -> Any:
    """Return a setting, or the shape or dtype of an input, that a rule asks for."""
    tensors = [to_tensor(v) if is_numbers(v) else v for v in values]
    return asked_for(op, name, tensors, (), settings)


# -- operations that are linear --------------------------------------------------------------------
def _linear(
    xp: Any, op: Primitive, values: Sequence[Any], vectors: dict[int, Any], settings: dict[str, Any]
) -> list[Sequence[Any]] | None:
    """Return the results of an operation on the vectors, which are added up to the tangents.

    None where it is not linear in an input.
    """
    if op.variadic and op.tensor_slots:
        return None
    if op.variadic or (len(vectors) > 1 and _is_linear_in_all(op)):
        along = [vectors[i] if i in vectors else _zero(xp, v) for i, v in enumerate(values)]
        return [results_in(xp, op, along, settings)]
    for i in vectors:
        if not _is_linear(op, i):
            return None
    rows, left = [], dict(vectors)
    while left:
        i = max(left, key=lambda i: len(_fixed(op, i)))
        rows.append(_applied(xp, op, i, left, values, settings))
    return rows


def _is_linear(op: Primitive, i: int) -> bool:
    """Return whether an operation is linear in an input, when those its rule needs are fixed.

    A setting `value` is put where nothing of the input is: then it is linear but for a constant.
    """
    if op.vjp_all is not None or op.rules[i] is None or "value" in op.settings or op.elementwise:
        return False
    return not {op.inputs[i], *op.results} & {*parameters(op.rules[i])}


@functools.cache
def _is_linear_in_all(op: Primitive) -> bool:
    """Return whether an operation is linear in all its inputs together: no rule asks for one."""
    inputs = range(len(op.inputs))
    return not op.nondifferentiable_inputs and all(
        _is_linear(op, i) and not {*op.inputs} & {*parameters(op.rules[i])} for i in inputs
    )


@functools.cache
def _fixed(op: Primitive, i: int) -> frozenset[str]:
    """Return the names of the inputs that are factors of input `i`: its rule asks for them."""
    return frozenset(op.inputs) & {*parameters(op.rules[i])}


def _applied(
    xp: Any,
    op: Primitive,
    i: int,
    vectors: dict[int, Any],
    values: Sequence[Any],
    settings: dict[str, Any],
) -> Sequence[Any]:
    """Return the part of input `i` in each tangent: the operation on the vector, which is used up.

    So is the vector of any other input that is only added, as a bias is.
    """
    fixed = _fixed(op, i)
    along = {
        j: vectors.pop(j)
        for j in tuple(vectors)
        if j == i or not (op.inputs[j] in fixed or _fixed(op, j))
    }
    arguments = [
        along[j]
        if j in along
        else v
        if op.inputs[j] in fixed or j in op.nondifferentiable_inputs
        else _zero(xp, v)
        for j, v in enumerate(values)
    ]
    result: Sequence[Any] = results_in(xp, op, arguments, settings)
    return result


def _zero(xp: Any, value: Any) -> Any:
    if not is_numbers(value):
        return 0
    return xp.zeros_like(value.detach() if isinstance(value, Tensor) else value)
