"""Vector-Jacobian and Jacobian-vector products."""

from __future__ import annotations

import functools

import numpy as np

import pullback as pb
from autograd.extend import primitive
from autograd.spaces import VSpace, vspace

primitive_vjps = {}


def constant_too(fun):
    """Return `fun` for transforms, which refuse a result without a derivative."""

    @functools.wraps(fun)
    def called(*args, **kwargs):
        out = fun(*args, **kwargs)
        if isinstance(out, pb.Tensor):
            return out if out.dtype.is_inexact else out.to(pb.float64)
        number = isinstance(out, (int, float, complex, np.generic, np.ndarray))
        return pb.asarray(np.asarray(out, np.result_type(out, 1.0))) if number else out

    return called


def make_vjp(fun, x):
    out, pull = pb.vjp(constant_too(fun), x)
    outs, ins = VSpace(out), VSpace(x)
    # HIPS autograd's gradients of complex numbers are the conjugates of PyTorch's.
    return (lambda g: ins.covector(pull(outs.covector(g))[0])), out


def make_jvp(fun, x):
    return lambda v: pb.jvp(constant_too(fun), (x,), (v,))
