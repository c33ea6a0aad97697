"""The names that random programs may use in both libraries: operations of one's own, and tools.

Owns what is written once in the words of both, and where the two spell it differently.
"""

import copy
import pickle
import warnings

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

import pullback as pb


class Log:
    """What hooks were called with, in order."""

    def __init__(self):
        self.events = []

    def __call__(self, label, *grads):
        self.events.append((label, *[None if g is None else number(g) for g in grads]))


def number(t):
    """Return one number that says which gradient came: its elements weighted by their places."""
    values = np.asarray(t.detach().numpy()).ravel()
    return round(float(values @ np.arange(1, values.size + 1)), 6)


def is_tensor(value):
    return isinstance(value, (torch.Tensor, pb.Tensor))


def memory_of(t):
    """Return what says whether two of torch's tensors share their memory."""
    try:
        return t.untyped_storage().data_ptr() or id(t)
    except RuntimeError:  # zeros that take no memory
        return id(t)


# -- operations of one's own, in the words of both libraries --------------------------------------
def operations(lib):
    """Return classes of operations, by name."""
    if lib is torch:
        from torch.autograd import Function
        from torch.autograd.function import once_differentiable
    else:
        Function, once_differentiable = pb.Function, pb.once_differentiable

    class Sine(Function):  # saves its input and its output; what is added to the rule is nothing
        @staticmethod
        def forward(ctx, x):
            y = x.sin()
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * (x.cos() + y - x.sin())

    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class Viewing(Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(x.shape)

        @staticmethod
        def backward(ctx, g):
            return g * 3

    class Doubled(Function):  # in place
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class DoubledSaved(Function):  # in place, and its output saved
        @staticmethod
        def forward(ctx, x):
            x.tanh_()
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * (1 - y * y)

    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * g * x

    class Counting(Function):  # asks what needs a gradient
        @staticmethod
        def forward(ctx, x):
            ctx.factor = 3.0 if ctx.needs_input_grad[0] else 5.0
            return x * ctx.factor

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor

    class ViaItem(Function):  # a result that is smaller, a rule that gives a view
        @staticmethod
        def forward(ctx, x):
            ctx.shape = x.shape
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return g.expand(ctx.shape)

    class CloneInPlace(Function):  # works in place on what is its own
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone().mul_(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g.clone().mul_(2).mul_(x)

    class Product(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            ctx.shapes = x.shape, y.shape
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            needs = ctx.needs_input_grad
            grad_x = reduced(g * y, ctx.shapes[0]) if needs[0] else None
            return grad_x, reduced(g * x, ctx.shapes[1]) if needs[1] else None

    class NoneForSecond(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            ctx.shape = x.shape
            return x * y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return reduced(g * y, ctx.shape), None

    class DirtyFirst(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.shape = y.shape
            x.add_(y)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g, reduced(g * 1, ctx.shape)

    class BothSame(Function):  # two arguments, the second returned as it came
        @staticmethod
        def forward(ctx, x, y):
            ctx.shape = x.shape
            return y

        @staticmethod
        def backward(ctx, g):
            return None, g * 2

    class Pair(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x, x.sin()

        @staticmethod
        def backward(ctx, g, h):
            (x,) = ctx.saved_tensors
            return 2 * g * x + h * x.cos()

    class PairMarked(Function):
        @staticmethod
        def forward(ctx, x):
            y, z = x * 3, x.floor()
            ctx.mark_non_differentiable(z)
            ctx.save_for_backward(z)
            return y, z

        @staticmethod
        def backward(ctx, g, h):
            return g * 3 + h * 7

    class PairUnmaterialized(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 5

        @staticmethod
        def backward(ctx, g, h):
            if g is None:
                return h if h is None else h * 5
            return g * 2 if h is None else g * 2 + h * 5

    class PairDirty(Function):  # one output is the input changed, the other what it was before
        @staticmethod
        def forward(ctx, x):
            before = x.clone()
            x.mul_(3)
            ctx.mark_dirty(x)
            return x, before

        @staticmethod
        def backward(ctx, g, h):
            return g * 3 + h

    class Setup(Function):  # forward and what it saves are written apart
        @staticmethod
        def forward(x, factor=2.0):
            return x * x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.factor = inputs if len(inputs) > 1 else (*inputs, 2.0)
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return (2 * g * x * ctx.factor, None)[: len(ctx.needs_input_grad)]

    class Named(Function):  # gradients by name, in any order, where there are names
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x.sin() * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            grad_x, grad_y = reduced(g * y * x.cos(), x.shape), reduced(g * x.sin(), y.shape)
            return (grad_x, grad_y) if lib is torch else {"y": grad_y, "x": grad_x}

    class Inner(Function):  # differentiates within its rule
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with lib.enable_grad():
                y = x.detach().requires_grad_()
                (slope,) = lib.autograd.grad(y.exp().sum(), y)
            return g * slope

    class PairNone(Function):
        @staticmethod
        def forward(ctx, x):
            return x + 1, x * 2

        @staticmethod
        def backward(ctx, g, h):
            return None

    return {k: v for k, v in locals().items() if isinstance(v, type) and v is not Function}


def reduced(g, shape):
    """Return a gradient summed to the shape of what was broadcast."""
    while len(g.shape) > len(shape):
        g = g.sum(0)
    for axis, length in enumerate(shape):
        if length == 1 and g.shape[axis] != 1:
            g = g.sum(axis, keepdim=True)
    return g


DIRTY = ("Doubled", "DoubledSaved", "DirtyFirst", "PairDirty")
OPERATIONS = {lib: operations(lib) for lib in (torch, pb)}


def namespace(lib, log):
    """Return the names that a program begins with."""
    modules = {"lib": lib, "array": np.array, "copy": copy, "pickle": pickle, "log": log}
    return {**modules, **OPERATIONS[lib], **TOOLS[lib]}


# -- what lets torch do as pullback does -----------------------------------------------------------
def gradients_in(names):
    """Return the gradients that the tensors among these have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [(t, t.grad) for t in names.values() if is_tensor(t)]
    return [(t, g) for t, g in found if g is not None]


def apart(names, before, given):
    """Give gradients that a pass made memory of their own: those of tensors, and those `given`."""
    for t, g in gradients_in(names):
        if not any(g is old for _, old in before):
            t.grad = own(g)
    for name in given:
        if is_tensor(names[name]):
            names[name] = own(names[name])


def unexpanded(t):
    """Return a tensor of which no two elements share their memory."""
    return own(t) if any(n > 1 and s == 0 for n, s in zip(t.shape, t.stride(), strict=True)) else t


def hook_of_gain(t, hook):
    """Register a hook of a leaf that is called where the leaf gained a gradient."""
    came = []
    t.register_hook(lambda g: came.append(g is not None))
    return t.register_post_accumulate_grad_hook(
        lambda t: hook(t) if came.pop() and t.requires_grad else None
    )


def versions_in(names):
    """Return the tensors among these with their memory and versions."""
    tensors = [t for t in names.values() if is_tensor(t) and not t.is_inference()]
    return [(t, memory_of(t), t._version) for t in tensors]


def refuse_changed_views(*tensors):
    """Raise where torch's process would end: at a hook of a view whose memory changed."""
    if any(t._is_view() and t._version for t in tensors):
        raise RuntimeError("torch cannot be asked")


def count_together(before):
    """Count a change of memory for all the tensors of it."""
    changed = {memory for t, memory, version in before if t._version > version}
    for t, memory, version in before:
        if memory in changed and t._version == version:
            torch.autograd.graph.increment_version(t)


def detach_names(names, t):
    """Let the names of a tensor be of one that is detached."""
    detached = t.detach()
    names.update({name: detached for name, value in names.items() if value is t})


def no_view_of_copy(result, t):
    """Return a result that is a view only if it is one of `t`."""
    return result if memory_of(result) == memory_of(t) else result.clone()


def unseen(t):
    """Take from a leaf what shows that a gradient came: its hooks, and the gradient to add to."""
    if t._is_view() or not t.is_leaf:
        return
    t.grad = None
    if t._post_accumulate_grad_hooks is not None:
        t._post_accumulate_grad_hooks.clear()


def own(t):
    """Return a copy, which is a leaf where `t` is."""
    return t.detach().clone().requires_grad_(t.requires_grad) if t.is_leaf else t.clone()


# -- what is spelled differently ------------------------------------------------------------------
def saved(t):
    """Return what a pack hook keeps: a copy, so that what is changed later is no matter."""
    return t.detach().clone()


def same(value):
    return value


def tools(lib):
    """Return functions and contexts, by name."""
    graph = torch.autograd.graph if lib is torch else pb

    def inner(g):
        """Differentiate another graph, as a hook may, and return `g` times the slope."""
        with lib.enable_grad():
            x = lib.tensor(np.array([1.5, 2.0]), requires_grad=True)
            (x * x).sum().backward()
        return g * float(x.grad[1])

    def again(function, *args):
        """Run a function that keeps its arguments only."""
        if lib is torch:
            return checkpoint(function, *args, use_reentrant=False)
        return pb.checkpoint(function)(*args)

    return {
        "gradients_in": gradients_in,
        "apart": apart,
        "unexpanded": unexpanded,
        "hook_of_gain": hook_of_gain,
        "unseen": unseen,
        "versions_in": versions_in,
        "count_together": count_together,
        "refuse_changed_views": refuse_changed_views,
        "no_view_of_copy": no_view_of_copy,
        "detach_names": detach_names,
        "inner": inner,
        "again": again,
        "group": graph.register_multi_grad_hook,
        "copied": lambda: graph.saved_tensors_hooks(saved, same),
        "watched": lambda: lib.autograd.detect_anomaly(check_nan=False),
    }


TOOLS = {lib: tools(lib) for lib in (torch, pb)}
