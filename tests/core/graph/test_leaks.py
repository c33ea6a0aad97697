"""Graphs are freed by reference counting alone: every test runs with the garbage collector off.

A test looks at a graph through weak references to its nodes, and ends with `gc.collect()`, which
says how many objects only the collector could free: there must be none.
"""

import gc
import weakref

import numpy as np
import pytest
from tests.core.graph.sample_graphs import GRAPHS, SavesInput, SavesOutput, alive, leaf, nodes_of

import pullback as pb

pytestmark = pytest.mark.usefixtures("no_collector")

every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())


@pytest.mark.case("DG3")
@every_graph
def test_a_graph_is_freed_when_its_result_is_dropped_before_backward(graph):
    x = leaf()
    root = graph(x)
    nodes = nodes_of(root)
    assert len(alive(nodes)) >= 2
    del root
    assert alive(nodes) == []
    assert gc.collect() == 0


@pytest.mark.case("DG3", "S05", "DG4")
@every_graph
def test_a_graph_is_freed_when_its_result_is_dropped_after_backward(graph):
    x = leaf()
    root = graph(x)
    nodes = nodes_of(root)
    root.backward()
    assert x.grad.shape == (4,)
    del root
    assert alive(nodes) == []
    assert gc.collect() == 0


@pytest.mark.case("DG3")
@every_graph
def test_a_graph_is_freed_after_a_backward_that_retained_it(graph):
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


@pytest.mark.case("DG3")
@pytest.mark.parametrize("name", TWICE_DIFFERENTIABLE)
def test_a_recorded_backward_is_freed_with_its_gradient(name):
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


# -- what backward releases
def array_of(tensor):
    """Return a weak reference to the memory of a tensor."""
    return weakref.ref(tensor.detach().numpy())


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


@pytest.mark.case("S11")
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


def capture_own_tensor(y):
    y.register_hook(lambda g: g * y.detach())


def capture_own_node(y):
    own = y.grad_fn

    def hook(grad_inputs, grad_outputs):
        assert own.name() == "MulBackward"

    own.register_hook(hook)


@pytest.mark.case("DG3")
@pytest.mark.parametrize("register", [capture_own_tensor, capture_own_node])
def test_only_a_hook_that_captures_what_it_hangs_on_makes_a_cycle_and_gc_frees_it(register):
    def graph(x):
        y = x * 2.0
        register(y)
        y.sum().backward()
        return nodes_of(y)

    nodes = graph(leaf())
    assert alive(nodes) == ["MulBackward"]
    assert gc.collect() > 0
    assert alive(nodes) == []


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


@pytest.mark.case("DG3")
def test_a_leaf_that_nobody_holds_is_freed_at_once():
    x = leaf([1.0])
    out = x * x
    out.backward(retain_graph=True)
    alive = weakref.ref(x)
    accumulator = out.grad_fn.next_functions[0][0]
    assert accumulator.variable is x
    del x  # a graph does not keep its leaves alive: nobody could see their gradient
    assert alive() is None
    assert accumulator.variable is None
    out.backward()


@pytest.mark.case("DG3")
def test_a_saved_value_is_released_right_after_backward():
    array = np.array([2.0, 3.0])
    x, other = leaf([1.0, 1.0]), pb.asarray(array)
    out = (x * other).sum()
    saved = weakref.ref(array)
    del array, other
    assert saved() is not None
    out.backward(retain_graph=True)
    assert saved() is not None
    out.backward()
    assert saved() is None
    assert x.grad.tolist() == [4.0, 6.0]


@pytest.mark.case("DG4")
def test_the_collector_may_run_inside_a_destructor():
    class CollectOnDelete:
        def __call__(self, grad_inputs, grad_outputs):
            return None

        def __del__(self):
            gc.collect()

    for _ in range(10):
        x = leaf([1.0])
        y = SavesInput.apply(x)
        y.grad_fn.register_hook(CollectOnDelete())
        y.backward()
        del y
        assert x.grad.tolist() == [2.0]


@pytest.mark.case("S12")
@pytest.mark.parametrize("run_backward", [False, True])
def test_cycle_through_the_context_is_left_to_the_collector(run_backward):
    @pb.autograd_function
    def tagged(ctx, x, meta):
        out = x.clone()
        ctx.meta = meta
        ctx.save_for_backward(out=out)
        return out

    @tagged.backward
    def _(ctx, grad_output):
        assert ctx.meta["foo"].item() == 3.14
        return {"x": grad_output * ctx.saved_variables.out}

    def make():
        a, meta = leaf(3.14), {}
        out = tagged(a, meta)
        meta["foo"] = out
        if run_backward:
            out.sum().backward()
            assert a.grad.item() == 3.14
        return weakref.ref(out)

    ref = make()
    # A backward that does not retain the graph lets go of ctx, and so breaks the cycle at once.
    assert (ref() is None) is run_backward
    gc.collect()
    assert ref() is None
