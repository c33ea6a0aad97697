"""What a user gets wrong with ctx, and what pullback says about it.

Rows as in `test_wrong_use`: the mistake, the built-in error, the words of the message.
"""

import pytest

import pullback as pb


def identity(ctx, g):
    return g


def with_ctx(in_forward=lambda ctx, x: None, in_backward=lambda ctx: None, result=lambda x: x * 2):
    """Call an operation `probe(x)` that misuses its ctx, on a copy of the leaf, and run it."""

    def probe(ctx, x):
        ctx.save_for_backward(weight=x)
        in_forward(ctx, x)
        return result(x)

    def backward(ctx, g):
        in_backward(ctx)
        return {"x": 2 * g}

    def mistake(leaf):
        pb.autograd_function(probe, backward)(leaf.clone()).sum().backward()

    return mistake


def change_saved(leaf):
    """Save the argument of `probe` in ctx, change it afterwards, and run backward."""

    def probe(ctx, x):
        ctx.save_for_backward(weight=x)
        return x * 2

    x = leaf.clone()
    y = pb.autograd_function(probe, lambda ctx, g: {"x": g * ctx.saved_variables.weight})(x)
    x.add_(1)
    y.sum().backward()


def add_one_unannounced(ctx, x):
    x.add_(1)


def mark_leaf_dirty(leaf):
    def probe(ctx, x):
        ctx.mark_dirty(x)
        return x.add_(1)

    pb.autograd_function(probe, identity)(leaf)


def mark_dirty_without_returning(ctx, x):
    ctx.mark_dirty(x)
    x.add_(1)


def dirty_view_among_two_outputs(leaf):
    def probe(ctx, x):
        ctx.mark_dirty(x)
        return x.add_(1), x * 2

    pb.autograd_function(probe, lambda ctx, g, h: {"x": g + h})(leaf.clone()[:2])


def change_returned_view(leaf):
    def probe(ctx, x):
        return x[:2]

    op = pb.autograd_function(probe, lambda ctx, g: {"x": pb.cat([g, pb.zeros(1)])})
    op(leaf.clone()).mul_(2)


CHANGED = (
    "one of the variables needed for gradient computation has been modified by an inplace operation"
)

CONTEXT = {
    "misspelt saved value": (
        with_ctx(in_backward=lambda ctx: ctx.saved_variables.wieght),
        AttributeError,
        ("probe", "wieght", "did you mean", "weight"),
    ),
    "misspelt saved key": (
        with_ctx(in_backward=lambda ctx: ctx.saved_variables["wieght"]),
        KeyError,
        ("probe", "wieght", "did you mean", "weight"),
    ),
    "saved position out of range": (
        with_ctx(in_backward=lambda ctx: ctx.saved_variables[1]),
        IndexError,
        ("probe", "1"),
    ),
    "misspelt needs_input_grad": (
        with_ctx(in_forward=lambda ctx, x: ctx.needs_input_grad.inputs),
        AttributeError,
        ("probe", "inputs", "x"),
    ),
    "needs_input_grad out of range": (
        with_ctx(in_backward=lambda ctx: ctx.needs_input_grad[3]),
        IndexError,
        ("probe", "3"),
    ),
    "saved value changed": (
        change_saved,
        RuntimeError,
        (CHANGED, "probe", "weight", "version 1", "version 0"),
    ),
    "forward changes its input": (
        with_ctx(in_forward=add_one_unannounced),
        RuntimeError,
        ("probe", "x", "mark_dirty"),
    ),
    "forward changes a leaf": (
        mark_leaf_dirty,
        RuntimeError,
        ("probe", "leaf Variable that requires grad"),
    ),
    "dirty input not returned": (
        with_ctx(in_forward=mark_dirty_without_returning),
        RuntimeError,
        ("probe", "x", "return"),
    ),
    "dirty view among several outputs": (
        dirty_view_among_two_outputs,
        RuntimeError,
        ("probe", "view"),
    ),
    "view returned by forward changed in place": (
        change_returned_view,
        RuntimeError,
        ("view was created inside a custom Function", "clone"),
    ),
}


@pytest.mark.case("MD2", "MD3", "MD4", "VW9")
@pytest.mark.parametrize("name", CONTEXT)
def test_a_mistake_with_ctx_is_refused(refused, name):
    mistake, builtin, parts = CONTEXT[name]
    refused(mistake, builtin, *parts)
