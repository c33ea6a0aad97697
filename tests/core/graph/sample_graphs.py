"""Programs of every kind that record a graph, and the means to watch it being freed.

Each of `GRAPHS` takes a leaf with four elements and returns a scalar that depends on it.
"""

import functools
import warnings
import weakref

import numpy as np

import pullback as pb


def leaf(data=(0.5, 1.5, 2.5, 3.5)):
    return pb.tensor(np.array(data, dtype=np.float64), requires_grad=True)


def nodes_of(*tensors):
    """Return weak references to every node that `tensors` lead to, the leaves' own excepted."""
    found = []
    seen = set()
    waiting = [t.grad_fn for t in tensors]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen or node.name() == "AccumulateGrad":
            continue
        seen.add(node)
        found.append(weakref.ref(node))
        waiting += [n for n, _ in node.next_functions]
    return found


def alive(references):
    """Return the names of the nodes that still live."""
    return [node.name() for node in (r() for r in references) if node is not None]


class SavesInput(pb.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return {"x": 2.0 * ctx.saved_variables.x * grad_output}


class SavesOutput(pb.Function):
    @staticmethod
    def forward(ctx, x):
        out = x.exp()
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        (out,) = ctx.saved_tensors
        return out * grad_output


class SetsUpContext(pb.Function):
    @staticmethod
    def forward(x, scale):
        return x * x * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.scale = inputs
        ctx.save_for_backward(x=x, out=output)

    @staticmethod
    def backward(ctx, grad_output):
        x, _ = ctx.saved_variables
        return {"x": 2.0 * x * ctx.scale * grad_output}


def _cube_forward(ctx, x):
    square = x * x
    ctx.save_for_backward(square=square)
    return square * x


def _cube_backward(ctx, grad_output):
    return {"x": 3.0 * ctx.saved_variables.square * grad_output}


saves_intermediate = pb.autograd_function(_cube_forward, _cube_backward)


@pb.autograd_function
def stores_input(ctx, x):
    ctx.kept = x
    ctx.note = {"anything": [1, 2]}
    return x * 3.0


@stores_input.backward
def _(ctx, grad_output):
    assert ctx.kept.shape == grad_output.shape
    return {"x": grad_output * 3.0}


@pb.autograd_function
def stores_output(ctx, x):
    ctx.out = x.exp()
    return ctx.out


@stores_output.backward
def _(ctx, grad_output):
    return {"x": grad_output * ctx.out}


@pb.autograd_function
def stores_intermediate(ctx, x):
    ctx.double = x * 2.0
    return ctx.double * x


@stores_intermediate.backward
def _(ctx, grad_output):
    return {"x": grad_output * ctx.double * 2.0}


@pb.autograd_function
def keeps_ctx_in_closure(ctx, x):
    ctx.save_for_backward(x=x)
    out = x.sin()
    ctx.derivative = lambda: x.cos()
    return out


@keeps_ctx_in_closure.backward
def _(ctx, grad_output):
    return {"x": grad_output * ctx.derivative()}


@pb.autograd_function
def two_results(ctx, x):
    ctx.save_for_backward(x=x)
    return {"square": x * x, "cube": x * x * x}


@two_results.backward
def _(ctx, square, cube):
    x = ctx.saved_variables.x
    return {"x": 2.0 * x * square + 3.0 * x * x * cube}


@pb.autograd_function
def saves_both_results(ctx, x):
    s, c = x.sin(), x.cos()
    ctx.save_for_backward(s=s, c=c)
    return s, c


@saves_both_results.backward
def _(ctx, grads):
    v = ctx.saved_variables
    return {"x": grads[0] * v.c - grads[1] * v.s}


@pb.autograd_function
def same(ctx, x):
    ctx.save_for_backward(x)
    return x


@same.backward
def _(ctx, grad_output):
    return {"x": grad_output}


@pb.autograd_function
def twice_the_same(ctx, x):
    out = x * 2.0
    ctx.save_for_backward(out)
    return out, out


@twice_the_same.backward
def _(ctx, a, b):
    return {"x": 2.0 * a + 2.0 * b}


@pb.autograd_function
def double_in_place(ctx, x):
    x.mul_(2.0)
    ctx.mark_dirty(x)
    ctx.save_for_backward(x=x)
    return x


@double_in_place.backward
def _(ctx, grad_output):
    return {"x": grad_output * 2.0}


@pb.autograd_function
def with_mask(ctx, x):
    mask, half = x > 1.0, x * 0.5
    ctx.mark_non_differentiable(half)
    ctx.save_for_backward(mask=mask, half=half)
    return x * mask, mask, half


@with_mask.backward
def _(ctx, grad_output, mask, half):
    return {"x": grad_output * ctx.saved_variables.mask}


@functools.partial(pb.autograd_function, traverse=True)
def total(ctx, xs):
    ctx.save_for_backward(*xs)
    return functools.reduce(lambda a, b: a + b, xs)


@total.backward
def _(ctx, grad_output):
    return {"xs": [grad_output for _ in ctx.saved_variables]}


def inplace_view(x):
    y = x.clone()
    z = y[1:]
    z.mul_(3.0)
    z.exp_()
    return y.sum() + z.sum()


def inplace(x):
    y = x * 1.0
    y += 1.0
    y *= x
    y[0] = x[3]
    y[1:3] = 2.0
    return y.tanh_().sum()


def view_of_view(x):
    y = (x * 2.0).reshape(2, 2)
    rows = y.t().transpose(0, 1)[0].unsqueeze(0).expand(3, 2)
    first, second = y.unbind(0)
    return rows.sum() + (first * second).sum()


def retained(x):
    y = x * 2.0
    y.retain_grad()
    z = y.exp()
    z.retain_grad()
    return z.sum()


def hooked(x):
    y = x * 2.0
    y.register_hook(lambda g: g * 2.0)
    z = y.exp()
    z.grad_fn.register_hook(lambda grad_inputs, grad_outputs: None)
    z.grad_fn.register_prehook(lambda grad_outputs: None)
    z.grad_fn.metadata["note"] = "anything"
    return z.sum()


def hooked_as_a_group(x):
    y = x * 2.0
    z = y.exp()
    pb.register_multi_grad_hook((y, z), lambda grads: None)
    pb.register_multi_grad_hook((y, z), lambda grad: None, mode="any")
    return z.sum()


def packed(x):
    with pb.saved_tensors_hooks(lambda t: t.numpy().copy(), pb.asarray):
        return saves_intermediate(SavesOutput.apply(x * 0.1)).log().sum()


def packed_by_tensor(x):
    with pb.saved_tensors_hooks(lambda t: (t, "packed"), lambda pair: pair[0]):
        return (SavesInput.apply(x).exp() * stores_output(x)).sum()


def anomalous(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mode = pb.detect_anomaly()
    with mode:
        return (SavesInput.apply(x * x).exp() * 0.5).sum()


def joined(x):
    parts = pb.concat([x, pb.stack([x[0], x[1]]), x * 2.0], axis=0)
    return pb.where(parts > 1.0, parts, parts * 0.5).max()


def network(x):
    w = leaf(np.linspace(-1.0, 1.0, 12).reshape(4, 3))
    h = pb.relu(x.reshape(1, 4) @ w)
    p = pb.softmax(h, axis=1)
    return -(pb.log_softmax(h, axis=1) * p).sum() + h.var() + (h - h.mean()).pow(2).sum()


GRAPHS = {
    "chain": lambda x: (x * 2.0).exp().log().sin().sum(),
    "shared": lambda x: ((x * x + x.sin() * x) / (x + 1.0)).sum(),
    "saved result": lambda x: (x.exp() * x.sigmoid() * x.tanh() * x.sqrt()).sum(),
    "softmax": network,
    "index": lambda x: (x[[0, 0, 1]] * x[x > 1.0][:3] * x[1]).sum(),
    "joined": joined,
    "several results": lambda x: (lambda a, b: a * a + b)(*(x * 2.0).chunk(2)).sum(),
    "one of several results": lambda x: (x * 2.0).split(1)[2].exp().sum(),
    "views": view_of_view,
    "in place": inplace,
    "in place on a view": inplace_view,
    "input saved": lambda x: SavesInput.apply(SavesInput.apply(x)).sum(),
    "result saved": lambda x: SavesOutput.apply(SavesOutput.apply(x * 0.1)).sum(),
    "intermediate saved": lambda x: saves_intermediate(x).sum(),
    "context set up": lambda x: SetsUpContext.apply(x, 3.0).sum(),
    "input stored": lambda x: stores_input(x).sum(),
    "result stored": lambda x: stores_output(x).sum(),
    "intermediate stored": lambda x: stores_intermediate(x).sum(),
    "closure stored": lambda x: keeps_ctx_in_closure(x).sum(),
    "dict returned": lambda x: (lambda d: d["square"] * d["cube"])(two_results(x)).sum(),
    "one of a dict used": lambda x: two_results(x)["cube"].sum(),
    "results saved": lambda x: (lambda s, c: s * c)(*saves_both_results(x)).sum(),
    "input returned": lambda x: (same(x) * x).sum(),
    "same returned twice": lambda x: (lambda a, b: a * b)(*twice_the_same(x)).sum(),
    "marked dirty": lambda x: double_in_place(x * 1.0).sum(),
    "marked dirty view": lambda x: (lambda y: double_in_place(y[1:]).sum() + y.sum())(x * 1.0),
    "not differentiable": lambda x: with_mask(x)[0].sum(),
    "traversed": lambda x: total([x, x * 2.0, x.exp()]).sum(),
    "retained": retained,
    "hooked": hooked,
    "hooked as a group": hooked_as_a_group,
    "packed": packed,
    "packed as a tensor": packed_by_tensor,
    "anomaly mode": anomalous,
}
