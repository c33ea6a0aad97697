"""Operations of one's own, with rules in HIPS autograd's words."""

from __future__ import annotations

import functools
import itertools

import numpy as np

import pullback as pb
from autograd.spaces import VSpace, vspace


class Primitive:
    """A function of arrays whose derivative is what `defvjp` says."""

    def __init__(self, fun):
        functools.update_wrapper(self, fun, updated=())
        self.fun = fun
        self.rules = None
        self.op = pb.autograd_function(
            self._forward, self._backward, name=self._name, traverse=True
        )

    @property
    def _name(self):
        return getattr(self.fun, "__name__", "primitive")

    def __call__(self, *args, **kwargs):
        run = self.op if _tensors_in((args, kwargs)) else self.fun
        return run(*args, **kwargs)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def _forward(self, ctx, *args, **kwargs):
        out = pb.asarray(self.fun(*_arrays(args), **_arrays(kwargs)))
        ctx.save_for_backward(out, *args)
        ctx.kwargs = kwargs
        return out

    def _backward(self, ctx, g):
        out, *args = ctx.saved_variables
        wanted = [i for i, arg in enumerate(args) if ctx.needs_input_grad[i]]
        if self.rules is None:
            raise NotImplementedError(f"VJP of {self._name} wrt argnums {wanted} not defined")
        pull = self.rules(wanted, out, args, ctx.kwargs)
        # The rule's gradients of complex numbers are the conjugates of pullback's.
        found = dict(zip(wanted, map(_conjugate, pull(_conjugate(g))), strict=True))
        return tuple(found.get(i) for i in range(len(args) + len(ctx.kwargs)))


def _conjugate(g):
    if isinstance(g, (list, tuple)):
        return type(g)([_conjugate(item) for item in g])
    return np.conj(g) if g is not None and np.iscomplexobj(g) else g


def _tensors_in(value):
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return isinstance(value, pb.Tensor)
    return any(map(_tensors_in, value))


def _arrays(value):
    if isinstance(value, dict):
        return {key: _arrays(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_arrays(item) for item in value])
    return value.numpy() if isinstance(value, pb.Tensor) else value


def primitive(fun):
    return Primitive(fun)


def notrace_primitive(fun):
    return fun


def defvjp_argnums(fun, maker):
    fun.rules = maker


def defvjp_argnum(fun, maker):
    def rules(argnums, out, args, kwargs):
        pulls = [maker(i, out, args, kwargs) for i in argnums]
        return lambda g: [pull(g) for pull in pulls]

    fun.rules = rules


def defvjp(fun, *makers, argnums=None):
    table = dict(zip(argnums or itertools.count(), makers, strict=False))

    def rules(wanted, out, args, kwargs):
        missing = [i for i in wanted if i not in table]
        if missing:
            raise NotImplementedError(f"VJP of {fun._name} wrt argnums {missing} not defined")
        pulls = [table[i] and table[i](out, *args, **kwargs) for i in wanted]
        return lambda g: [None if pull is None else pull(g) for pull in pulls]

    fun.rules = rules


def defjvp(fun, *makers, argnums=None):
    """Forward mode is the transpose of the rule."""


defjvp_argnum = defjvp_argnums = defjvp
