"""The source that is written for an operation: `pullback.source`."""

from __future__ import annotations

import inspect
from typing import Any

from pullback.core.custom.define import Function
from pullback.core.custom.operation import CustomOp
from pullback.core.function.backward_codegen import backward_source
from pullback.core.function.codegen import source_of
from pullback.core.function.primitive import Primitive
from pullback.errors import ArgumentTypeError, compose


class Source(str):
    """The text of a program, which Python's prompt shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def source(op: Any) -> Source:
    r"""Return the Python source that is written for an operation: its call and its backward.

    What a call does is written out, from the declaration of a built-in operation or from the
    signature of yours: how it looks at its arguments, runs forward and records the node. What
    forward saves is known, and written, after the first call. Of a function that is composed of
    others it is the function's own source.

    Parameters
    ----------
    op : callable
        A built-in operation, one of `autograd_function`, a `Function` class, or a function.

    Returns
    -------
    str
        Python's prompt shows it as it is.

    Raises
    ------
    ArgumentTypeError
        If it is none of these.

    Examples
    --------
    >>> import pullback as pb
    >>> print(pb.source(pb.exp).split("\n\n")[1])
    def exp_backward(node, g, wanted, recorded):
        x_edge = node.i0
        out_saved = node.i1
        out_counter = node.i2
        out_version = node.i3
        if (
            recorded
            or node.released
            or g.__class__ is not ndarray
            or out_saved.__class__ not in ARRAYS
        ):
            g, (x_edge, out_saved, out_counter, out_version), xp = prepared(op, node, g, recorded)
        else:
            xp = numpy
        if out_counter is ITSELF:
            out_counter = node
        if out_counter is not None and out_counter.version != out_version:
            raise stale(node, out_counter.version, out_version)
        return (rule_0(g, out_saved),)
    <BLANKLINE>
    """
    primitive = getattr(op, "primitive", None)
    custom = op._op if isinstance(op, type) and issubclass(op, Function) else op
    if isinstance(primitive, Primitive):
        own = [] if op is primitive.public else [inspect.getsource(op)]
        texts = [*own, source_of(primitive.public), backward_source(primitive)]
    elif isinstance(custom, CustomOp):
        texts = [source_of(type(custom).__call__), source_of(custom.written_backward())]
    elif inspect.isfunction(op):
        texts = [inspect.getsource(op)]
    else:
        came = getattr(op, "__name__", type(op).__name__)
        raise ArgumentTypeError(compose("source", "an operation or a function required", came))
    return Source("\n".join(filter(None, texts)))
