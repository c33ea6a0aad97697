"""Histories die by reference counting alone: every test runs with the garbage collector off.

A test looks at a graph through weak references to its nodes, and ends with `gc.collect()`, which
says how many objects only the collector could free: there must be none.
"""

import functools
import gc
import sys
import tracemalloc
import warnings
import weakref

import numpy as np
import pytest

import pullback as pb


@pytest.fixture(autouse=True)
def no_collector():
    """Run with the collector off; what is older than the test is no business of it."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


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


# -- graphs -----------------------------------------------------------------------------------------
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


def inplace_twins(x):
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
    "in place": inplace_twins,
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
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())


@every_graph
def test_a_graph_dies_when_its_result_is_dropped_before_backward(graph):
    x = leaf()
    root = graph(x)
    nodes = nodes_of(root)
    assert len(alive(nodes)) >= 2
    del root
    assert alive(nodes) == []
    assert gc.collect() == 0


@every_graph
def test_a_graph_dies_when_its_result_is_dropped_after_backward(graph):
    x = leaf()
    root = graph(x)
    nodes = nodes_of(root)
    root.backward()
    assert x.grad.shape == (4,)
    del root
    assert alive(nodes) == []
    assert gc.collect() == 0


@every_graph
def test_a_graph_dies_after_a_backward_that_retained_it(graph):
    x = leaf()
    root = graph(x)
    nodes = nodes_of(root)
    root.backward(retain_graph=True)
    root.backward()
    del root
    assert alive(nodes) == []
    assert gc.collect() == 0


TWICE_DIFFERENTIABLE = [
    name
    for name in GRAPHS
    # An intermediate of forward, or an array that a hook gave back, is refused in a recorded pass.
    if name not in {"intermediate saved", "intermediate stored", "closure stored", "packed"}
]


@pytest.mark.parametrize("name", TWICE_DIFFERENTIABLE)
def test_a_recorded_backward_dies_with_its_gradient(name):
    x = leaf()
    root = GRAPHS[name](x)
    (first,) = pb.autograd.grad(root, x, create_graph=True)
    nodes = nodes_of(root)
    if first.grad_fn is not None:
        nodes += nodes_of(first)
        (second,) = pb.autograd.grad(first.sum(), x, allow_unused=True, create_graph=True)
        del second
    del root, first
    assert alive(nodes) == []
    assert gc.collect() == 0


@every_graph
def test_repeating_a_graph_leaves_as_many_objects_as_before(graph):
    x = leaf()

    def step():
        graph(x).backward()
        x.grad = None

    for _ in range(3):
        step()
    before = len(gc.get_objects())
    for _ in range(30):
        step()
    assert len(gc.get_objects()) - before < 10


# -- what backward releases -------------------------------------------------------------------------
def array_of(tensor):
    """Return a weak reference to the memory of a tensor."""
    return weakref.ref(tensor.detach().numpy())


def test_backward_releases_saved_arrays_though_the_result_lives():
    x = leaf()
    y = x * 2.0
    saved = array_of(y)
    root = y.exp().sin().sum()
    del y
    root.backward()
    assert saved() is None
    assert root.grad_fn is not None


def test_a_retained_graph_keeps_its_saved_arrays():
    x = leaf()
    y = x * 2.0
    saved = array_of(y)
    root = (y * y).sum()
    del y
    root.backward(retain_graph=True)
    assert saved() is not None
    root.backward()
    assert saved() is None


def _saves_at(ctx, x, how):
    value = x * 2.0
    WATCHED[:] = [array_of(value)]
    if how == "by name":
        ctx.save_for_backward(value=value)
    elif how == "by position":
        ctx.save_for_backward(value)
    else:
        ctx.value = value
    return x * 1.0


WATCHED = []
saves_at = pb.autograd_function(_saves_at, lambda ctx, grad_output: {"x": grad_output})


@pytest.mark.parametrize("how", ["by name", "by position", "as an attribute"])
def test_backward_releases_what_ctx_saved(how):
    x = leaf()
    root = saves_at(x, how).sum()
    assert WATCHED[0]() is not None
    root.backward()
    assert WATCHED[0]() is None
    assert root.grad_fn is not None


@pytest.mark.parametrize("how", ["by name", "by position", "as an attribute"])
def test_dropping_the_result_releases_what_ctx_saved(how):
    x = leaf()
    root = saves_at(x, how).sum()
    assert WATCHED[0]() is not None
    del root
    assert WATCHED[0]() is None


def test_operations_keep_nothing_alive_that_their_gradient_does_not_need():
    x = leaf()
    y = x * 2.0
    memory = array_of(y)
    z = (y + 3.0) * 2.0
    del y
    assert memory() is None
    z.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0, 4.0]


def test_a_custom_operation_that_saves_nothing_keeps_no_array_alive():
    @pb.autograd_function
    def triple(ctx, x):
        return x * 3.0

    @triple.backward
    def _(ctx, grad_output):
        return {"x": grad_output * 3.0}

    x = leaf()
    y = x * 2.0
    memory = array_of(y)
    z = triple(y)
    result = array_of(z)
    root = z.sum()
    del y, z
    assert memory() is None
    assert result() is None
    root.backward()
    assert x.grad.tolist() == [6.0, 6.0, 6.0, 6.0]


def test_saving_an_input_keeps_its_array_but_not_its_tensor():
    x = leaf()
    y = x * 2.0
    tensor, memory = weakref.ref(y), array_of(y)
    root = SavesInput.apply(y).sum()
    del y
    assert tensor() is None
    assert memory() is not None
    root.backward()
    assert memory() is None
    assert x.grad.tolist() == [4.0, 12.0, 20.0, 28.0]


def test_saving_a_result_does_not_keep_its_tensor():
    x = leaf()
    y = SavesOutput.apply(x * 0.0)
    tensor = weakref.ref(y)
    root = (y + 1.0).sum()
    del y
    assert tensor() is None
    root.backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0, 0.0]


def test_a_leaf_dies_though_a_graph_of_it_lives():
    x = leaf()
    reference = weakref.ref(x)
    root = (x * 2.0).sum()
    del x
    assert reference() is None
    root.backward()


def test_under_no_grad_a_custom_operation_keeps_no_context():
    contexts = []

    @pb.autograd_function
    def watched(ctx, x):
        ctx.save_for_backward(x=x)
        contexts.append(weakref.ref(ctx))
        return x * 2.0

    x = leaf()
    with pb.no_grad():
        y = watched(x)
    assert contexts[0]() is None
    assert y.tolist() == [1.0, 3.0, 5.0, 7.0]


def test_an_operation_on_untracked_tensors_keeps_no_context():
    contexts = []

    @pb.autograd_function
    def watched(ctx, x):
        ctx.save_for_backward(x=x)
        contexts.append(weakref.ref(ctx))
        return x * 2.0

    y = watched(pb.tensor([1.0]))
    assert contexts[0]() is None
    assert y.tolist() == [2.0]


def test_a_dropped_handle_or_hook_leaves_nothing():
    x = leaf()
    before = len(gc.get_objects())
    for _ in range(50):
        handle = x.register_hook(lambda g: None)
        handle.remove()
    del handle
    assert len(gc.get_objects()) - before < 10


def test_only_a_hook_that_captures_its_own_tensor_makes_a_cycle_and_gc_frees_it():
    def graph(x):
        y = x * 2.0
        y.register_hook(lambda g: g * y.detach())
        y.sum().backward()
        return nodes_of(y)

    nodes = graph(leaf())
    assert alive(nodes) == ["MulBackward"]
    assert gc.collect() > 0
    assert alive(nodes) == []


def test_retain_grad_does_not_keep_the_tensor():
    x = leaf()
    y = x * 2.0
    y.retain_grad()
    reference = weakref.ref(y)
    z = y * 0.5
    del y
    assert reference() is None
    z.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0, 1.0]


def test_a_view_keeps_its_base_only_as_long_as_it_lives():
    x = leaf()
    base = x * 2.0
    memory, tensor = array_of(base), weakref.ref(base)
    view = base[1:3]
    del base
    assert memory() is not None
    view.mul_(2.0)
    view.sum().backward()
    assert x.grad.tolist() == [0.0, 4.0, 4.0, 0.0]
    del view
    assert tensor() is None
    assert memory() is None
    assert gc.collect() == 0


# -- errors -----------------------------------------------------------------------------------------
class FailsInForward(pb.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x=x, double=x * 2.0)
        raise ValueError("forward failed")

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class FailsInBackward(pb.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return x * 2.0

    @staticmethod
    def backward(ctx, grad_output):
        kept = ctx.saved_variables.x * grad_output
        raise ValueError(f"backward failed for {kept.shape}")


class ReturnsNonsense(pb.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, grad_output):
        return {"y": grad_output}


class ForgetsMarkDirty(pb.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2.0)
        return x * 1.0

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


def second_backward(y):
    root = (y * y).sum()
    root.backward()
    root.backward()


def changed_in_place(y):
    root = y.exp().sin()
    z = y.exp()
    w = (z * 2.0).sum()
    z.add_(1.0)
    (w + root.sum()).backward()


def nan_found(y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pb.detect_anomaly(), np.errstate(all="ignore"):
            ((y * 0.0).sqrt() * 0.0).sum().backward()


def raising_hook(y):
    z = y.exp()

    def hook(grad):
        raise ValueError("hook failed")

    z.register_hook(hook)
    z.sum().backward()


def failing_pack(y):
    def pack(t):
        raise ValueError("pack failed")

    with pb.saved_tensors_hooks(pack, lambda t: t):
        y.exp()


def failing_unpack(y):
    def unpack(t):
        raise ValueError("unpack failed")

    with pb.saved_tensors_hooks(lambda t: t, unpack):
        z = y.exp()
    z.sum().backward()


def kernel_raises(y):
    with np.errstate(all="raise"):
        (y * 0.0).log()


def kernel_of_two_raises(y):
    with np.errstate(all="raise"):
        y / (y * 0.0)


MISTAKES = {
    "forward raises": (lambda y: FailsInForward.apply(y), ValueError),
    "backward raises": (lambda y: FailsInBackward.apply(y).sum().backward(), ValueError),
    "recorded backward raises": (
        lambda y: FailsInBackward.apply(y).sum().backward(inputs=[y], retain_graph=True),
        ValueError,
    ),
    "nonsense returned": (
        lambda y: ReturnsNonsense.apply(y).sum().backward(),
        pb.errors.GradientError,
    ),
    "mark_dirty forgotten": (lambda y: ForgetsMarkDirty.apply(y), pb.errors.InplaceError),
    "second backward": (second_backward, pb.errors.ReleasedError),
    "saved value changed": (changed_in_place, pb.errors.InplaceError),
    "shapes do not fit": (lambda y: y + pb.ones(7, dtype=pb.float64), pb.errors.ShapeError),
    "matrices do not fit": (
        lambda y: y.reshape(2, 2) @ pb.ones(3, 3, dtype=pb.float64),
        pb.errors.ShapeError,
    ),
    "index out of range": (lambda y: y[9], pb.errors.TensorIndexError),
    "wrong argument": (lambda y: y + "text", TypeError),
    "no scalar": (lambda y: y.backward(), pb.errors.GraphError),
    "unused input": (
        lambda y: pb.autograd.grad(y.sum(), leaf()),
        pb.errors.GraphError,
    ),
    "nan found": (nan_found, pb.errors.GradientError),
    "hook raises": (raising_hook, ValueError),
    "pack raises": (failing_pack, ValueError),
    "unpack raises": (failing_unpack, ValueError),
    "kernel raises": (kernel_raises, FloatingPointError),
    "kernel of two raises": (kernel_of_two_raises, FloatingPointError),
}


every_mistake = pytest.mark.parametrize(
    ("mistake", "expected"), MISTAKES.values(), ids=MISTAKES.keys()
)


def chain_of(error):
    """Return the error, what it was raised from, and so on, each once."""
    found = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


@every_mistake
def test_an_error_that_was_handled_keeps_no_graph_alive(mistake, expected):
    x = leaf()
    y = x * 2.0
    tensor, nodes = weakref.ref(y), nodes_of(y)
    caught = None
    try:
        mistake(y)
    except expected as error:
        caught = type(error)
    assert caught is not None
    del y
    assert tensor() is None
    assert alive(nodes) == []
    assert gc.collect() == 0


@every_mistake
def test_an_error_that_is_kept_without_its_traceback_keeps_no_graph_alive(mistake, expected):
    x = leaf()
    y = x * 2.0
    tensor, nodes = weakref.ref(y), nodes_of(y)
    kept = None
    try:
        mistake(y)
    except expected as error:
        kept = error
    for error in chain_of(kept):
        error.__traceback__ = None
    del y
    assert isinstance(kept, expected)
    assert tensor() is None
    assert alive(nodes) == []


# -- training ---------------------------------------------------------------------------------------
def _linear_forward(ctx, input, weight, bias=None):
    ctx.save_for_backward(input=input, weight=weight, bias=bias)
    output = input.mm(weight.t())
    if bias is not None:
        output = output + bias.unsqueeze(0).expand_as(output)
    return output


def _linear_backward(ctx, grad_output):
    s = ctx.saved_variables
    grads = {"input": None, "weight": None, "bias": None}
    if ctx.needs_input_grad.input:
        grads["input"] = grad_output.mm(s.weight)
    if ctx.needs_input_grad.weight:
        grads["weight"] = grad_output.t().mm(s.input)
    if s.bias is not None and ctx.needs_input_grad.bias:
        grads["bias"] = grad_output.sum(dim=0)
    return grads


linear = pb.autograd_function(_linear_forward, _linear_backward)


def trainer():
    """Return a function that makes so many steps of gradient descent and returns the loss."""
    pb.manual_seed(0)
    x = pb.randn(8, 3)
    target = x.mm(pb.tensor([[1.0], [-2.0], [0.5]])) + 3.0
    weight = pb.randn(1, 3, requires_grad=True)
    bias = pb.zeros(1, requires_grad=True)

    def train(steps):
        for _ in range(steps):
            loss = (linear(x, weight, bias) - target).pow(2).mean()
            loss.backward()
            with pb.no_grad():
                weight.sub_(0.05 * weight.grad)
                bias.sub_(0.05 * bias.grad)
                weight.grad = None
                bias.grad.zero_()
        return loss.item()

    return train


def test_ten_thousand_training_steps_leave_objects_and_memory_blocks_flat():
    train = trainer()
    train(500)
    objects, blocks = len(gc.get_objects()), sys.getallocatedblocks()
    loss = train(9_500)
    assert len(gc.get_objects()) - objects < 10
    assert sys.getallocatedblocks() - blocks < 500
    assert gc.collect() == 0
    assert loss < 1e-8


def traced_growth(warm_up, steps):
    """Return by how many bytes memory, and its peak, grew over the steps after the warm-up."""
    train = trainer()
    tracemalloc.start()
    try:
        train(warm_up)
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        train(steps)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return after - before, peak - before


def test_training_steps_leave_not_a_byte_each():
    growth, peak = traced_growth(warm_up=200, steps=1_500)
    assert growth < 1_500
    assert peak < 100_000


@pytest.mark.stress
def test_ten_thousand_training_steps_leave_not_a_byte_each():
    growth, peak = traced_growth(warm_up=200, steps=10_000)
    assert growth < 10_000
    assert peak < 100_000
