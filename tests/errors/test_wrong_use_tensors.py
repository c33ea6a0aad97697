"""What a user gets wrong with tensors, backward, hooks and modes, and what pullback says about it.

Rows as in `test_wrong_use`: the mistake, the built-in error, the words of the message.
"""

import copy
import pickle

import numpy as np
import pytest

import pullback as pb

CHANGED = (
    "one of the variables needed for gradient computation has been modified by an inplace operation"
)
SECOND = ("backward through the graph a second time", "retain_graph=True")


def twice(build):
    """Run backward through what `build` makes of the leaf, two times over."""

    def mistake(leaf):
        y = build(leaf)
        pb.autograd.grad(y, [leaf])
        pb.autograd.grad(y, [leaf])

    return mistake


def backward(build, *gradient, **settings):
    return lambda leaf: build(leaf).backward(*gradient, **settings)


def grad(outputs, inputs, **settings):
    return lambda leaf: pb.autograd.grad(outputs(leaf), inputs(leaf), **settings)


def under_no_grad(leaf):
    with pb.no_grad():
        y = (leaf * 2).sum()
    y.backward()


def one_root_without_a_graph(leaf):
    pb.autograd.backward([leaf.sum(), pb.tensor(1.0)])


# Running backward --------------------------------------------------------------------------------

ENGINE = {
    "second backward": (twice(lambda x: (x * x).sum()), RuntimeError, SECOND),
    "second backward where nothing was saved": (twice(lambda x: x[0] + 1), RuntimeError, SECOND),
    "no gradient for a vector": (
        backward(lambda x: x * 2),
        RuntimeError,
        ("grad can be implicitly created only for scalar outputs", "(3,)"),
    ),
    "no gradient for a vector, by grad": (
        grad(lambda x: x * 2, lambda x: [x]),
        RuntimeError,
        ("grad can be implicitly created only for scalar outputs", "(3,)"),
    ),
    "no gradient for a complex scalar": (
        backward(lambda x: (x * 1j).sum()),
        RuntimeError,
        ("only for real scalar outputs", "complex64"),
    ),
    "root without a graph": (
        lambda leaf: pb.tensor(1.0).backward(),
        RuntimeError,
        ("does not require grad and does not have a grad_fn",),
    ),
    "root made under no_grad": (
        under_no_grad,
        RuntimeError,
        ("does not require grad and does not have a grad_fn",),
    ),
    "one root without a graph": (
        one_root_without_a_graph,
        RuntimeError,
        ("does not require grad and does not have a grad_fn", "1"),
    ),
    "gradient of another shape": (
        backward(lambda x: x * 2, pb.ones(2)),
        RuntimeError,
        (
            "Mismatch in shape: grad_output[0] has a shape of (2,)",
            "output[0] has a shape of (3,)",
        ),
    ),
    "complex gradient of a real root": (
        backward(lambda x: x * 2, pb.ones(3, dtype=pb.complex64)),
        RuntimeError,
        ("complex64", "float32"),
    ),
    "gradient that is no tensor": (
        backward(lambda x: x * 2, 1.0),
        TypeError,
        ("backward", "gradient", "float"),
    ),
    "too few gradients": (
        grad(lambda x: [x * 2, x * 3], lambda x: [x], grad_outputs=[pb.ones(3)]),
        RuntimeError,
        ("2", "1", "grad_outputs"),
    ),
    "unused input": (
        grad(lambda x: x.sum(), lambda x: [pb.ones(2, requires_grad=True)]),
        RuntimeError,
        ("not have been used in the graph", "allow_unused=True"),
    ),
    "input that requires no grad": (
        grad(lambda x: x.sum(), lambda x: [pb.ones(2)]),
        RuntimeError,
        ("One of the differentiated Tensors does not require grad",),
    ),
    "input that is no tensor": (
        grad(lambda x: x.sum(), lambda x: [2.0]),
        TypeError,
        ("inputs", "float"),
    ),
    "no inputs of grad": (
        grad(lambda x: x.sum(), lambda x: []),
        RuntimeError,
        ("inputs", "cannot be empty"),
    ),
    "no inputs of backward": (
        backward(lambda x: x.sum(), inputs=[]),
        RuntimeError,
        ("inputs", "cannot be empty"),
    ),
    "materialize_grads without allow_unused": (
        grad(lambda x: x.sum(), lambda x: [x], allow_unused=False, materialize_grads=True),
        ValueError,
        ("materialize_grads", "allow_unused"),
    ),
}


# Leaves, requires_grad and .grad -----------------------------------------------------------------

INEXACT = "only Tensors of floating point and complex dtype can require gradients"


def set_grad(value):
    def mistake(leaf):
        leaf.grad = value(leaf)

    return mistake


def augmented(leaf):
    leaf += 1


def set_item(leaf):
    leaf[0] = 5.0


LEAF = "leaf Variable that requires grad"

LEAVES = {
    "integers that require grad": (
        lambda leaf: pb.tensor([1, 2], requires_grad=True),
        RuntimeError,
        (INEXACT, "int64"),
    ),
    "booleans that require grad": (
        lambda leaf: pb.tensor([True]).requires_grad_(),
        RuntimeError,
        (INEXACT, "bool"),
    ),
    "requires_grad off on a result": (
        lambda leaf: (leaf * 2).requires_grad_(False),
        RuntimeError,
        ("you can only change requires_grad flags of leaf variables", "detach()"),
    ),
    "add_ on a leaf": (lambda leaf: leaf.add_(1), RuntimeError, ("add_", LEAF, "no_grad")),
    "+= on a leaf": (augmented, RuntimeError, (LEAF, "no_grad")),
    "assignment into a leaf": (set_item, RuntimeError, (LEAF, "no_grad")),
    "copy_ into a leaf": (
        lambda leaf: leaf.copy_(pb.zeros(3)),
        RuntimeError,
        ("copy_", LEAF, "no_grad"),
    ),
    "in place on a view of a leaf": (
        lambda leaf: leaf[1:].mul_(2),
        RuntimeError,
        ("mul_", "a view of a leaf Variable that requires grad", "in-place operation"),
    ),
    ".grad that is no tensor": (set_grad(lambda x: 1.0), TypeError, ("grad", "float")),
    ".grad of another shape": (
        set_grad(lambda x: pb.zeros(2)),
        RuntimeError,
        ("grad", "(3,)", "(2,)"),
    ),
    ".grad of another dtype": (
        set_grad(lambda x: pb.zeros(3, dtype=pb.float64)),
        RuntimeError,
        ("grad", "float32", "float64"),
    ),
    ".grad that is the tensor itself": (set_grad(lambda x: x), RuntimeError, ("grad", "itself")),
    "numpy() of a leaf": (lambda leaf: leaf.numpy(), RuntimeError, ("numpy", "detach()")),
    "np.asarray of a result": (
        lambda leaf: np.asarray(leaf * 2),
        RuntimeError,
        ("detach()",),
    ),
    "deepcopy of a result": (
        lambda leaf: copy.deepcopy(leaf * 2),
        RuntimeError,
        ("detach()",),
    ),
    "copy of a result": (lambda leaf: copy.copy(leaf * 2), RuntimeError, ("detach()",)),
    "pickle of a result": (
        lambda leaf: pickle.dumps(leaf * 2),
        RuntimeError,
        ("detach()",),
    ),
}


# In place and views ------------------------------------------------------------------------------


def changed_between(save, change):
    def mistake(leaf):
        x = leaf.clone()
        y = save(x)
        change(x)
        y.sum().backward()

    return mistake


def changed_result(leaf):
    y = (leaf * 1).exp()
    y.mul_(2)
    y.sum().backward()


def view_made_under_no_grad(leaf):
    x = leaf.clone()
    with pb.no_grad():
        view = x[1:]
    view.mul_(2)


INPLACE = {
    "saved input changed": (
        changed_between(lambda x: x * x, lambda x: x.add_(1)),
        RuntimeError,
        (CHANGED, "is at version 1; expected version 0", "Mul"),
    ),
    "saved output changed": (changed_result, RuntimeError, (CHANGED, "Exp", "version 1")),
    "saved input changed through detach": (
        changed_between(lambda x: x**2, lambda x: x.detach().add_(1)),
        RuntimeError,
        (CHANGED, "Pow", "version 1"),
    ),
    "saved input changed under no_grad": (
        changed_between(lambda x: x.sin(), lambda x: pb.no_grad()(x.zero_)()),
        RuntimeError,
        (CHANGED, "Sin", "version 1"),
    ),
    "saved input detached": (
        changed_between(lambda x: x.sin(), lambda x: x.detach_()),
        RuntimeError,
        ("Sin", "saved tensor that has been detached"),
    ),
    "one of several views changed": (
        lambda leaf: leaf.clone().unbind()[0].mul_(2),
        RuntimeError,
        ("mul_", "output of a function that returns multiple views"),
    ),
    "view made under no_grad": (
        view_made_under_no_grad,
        RuntimeError,
        ("A view was created in no_grad mode and is being modified inplace",),
    ),
    "detach_ of a view": (
        lambda leaf: leaf.clone()[1:].detach_(),
        RuntimeError,
        ("view", "detach()"),
    ),
    "in place beyond the shape": (
        lambda leaf: pb.zeros(3).add_(pb.ones(2, 3)),
        RuntimeError,
        ("add_", "(3,)", "(2, 3)"),
    ),
    "in place beyond the dtype": (
        lambda leaf: pb.tensor([1, 2, 3]).add_(leaf),
        RuntimeError,
        ("add_", "int64", "float32"),
    ),
}


# Hooks and modes ---------------------------------------------------------------------------------


def hooked(hook):
    def mistake(leaf):
        y = leaf * 2
        y.register_hook(hook)
        y.sum().backward()

    return mistake


def returning_post_hook(leaf):
    other = pb.ones(2, requires_grad=True)
    other.register_post_accumulate_grad_hook(lambda t: t)
    other.sum().backward()


def pack_in_place(leaf):
    with pb.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
        x = leaf.clone()
        x * x


HOOKS = {
    "hook returns a number": (hooked(lambda g: 2.0), TypeError, ("hook", "float")),
    "hook returns a string": (hooked(lambda g: "twice"), TypeError, ("hook", "str")),
    "hook returns another shape": (
        hooked(lambda g: g.sum()),
        RuntimeError,
        ("hook", "(3,)", "()"),
    ),
    "hook returns a tuple": (hooked(lambda g: (g,)), TypeError, ("hook", "tuple")),
    "hook that cannot be called": (
        lambda leaf: (leaf * 2).register_hook(3),
        TypeError,
        ("register_hook", "int"),
    ),
    "hook where no gradient comes": (
        lambda leaf: pb.ones(2).register_hook(lambda g: g),
        RuntimeError,
        ("hook", "require"),
    ),
    "retain_grad where no gradient comes": (
        lambda leaf: pb.ones(2).retain_grad(),
        RuntimeError,
        ("retain_grad", "require"),
    ),
    "post-accumulate hook on a result": (
        lambda leaf: (leaf * 2).register_post_accumulate_grad_hook(lambda t: None),
        RuntimeError,
        ("cannot be registered on non-leaf",),
    ),
    "post-accumulate hook returns": (
        returning_post_hook,
        RuntimeError,
        ("hooks should return None",),
    ),
    "unknown mode of a multi-grad hook": (
        lambda leaf: pb.register_multi_grad_hook([leaf], lambda g: None, mode="some"),
        ValueError,
        ("mode", "'all'", "'any'", "'some'"),
    ),
    "pack hook works in place": (
        pack_in_place,
        RuntimeError,
        ("pack hook is modifying its input in place",),
    ),
}


# Tensors and their operations --------------------------------------------------------------------

TENSORS = {
    "ragged data": (
        lambda leaf: pb.tensor([[1.0], [1.0, 2.0]]),
        ValueError,
        ("tensor", "data"),
    ),
    "unknown dtype": (
        lambda leaf: pb.tensor([1.0], dtype="float99"),
        TypeError,
        ("float99", "float64"),
    ),
    "unknown device": (
        lambda leaf: pb.tensor([1.0], device="gpu"),
        ValueError,
        ("gpu", "cpu", "cuda"),
    ),
    "operand of a wrong kind": (
        lambda leaf: pb.maximum(leaf, "3"),
        TypeError,
        ("maximum", "str"),
    ),
}

GROUPS = (ENGINE, LEAVES, INPLACE, HOOKS, TENSORS)
MISTAKES = {name: row for group in GROUPS for name, row in group.items()}


@pytest.mark.case(
    "B02",
    "B03",
    "B07",
    "B08",
    "B09",
    "B15",
    "B16",
    "H01",
    "H04",
    "H10",
    "L01",
    "L03",
    "L04",
    "ND4",
    "S03",
    "S08",
    "S10",
    "V02",
    "V05",
    "V06",
    "VW6",
    "VW7",
    "VW8",
    "VW11",
)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_with_tensors_is_refused(refused, name):
    mistake, builtin, parts = MISTAKES[name]
    refused(mistake, builtin, *parts)


@pytest.mark.case("RG2")
def test_reading_the_gradient_of_a_result_warns():
    leaf = pb.tensor([1.0], requires_grad=True)
    y = leaf * 2
    y.sum().backward()
    with pytest.warns(UserWarning, match="retain_grad") as caught:
        assert y.grad is None
    assert len(caught) == 1
    assert leaf.grad.tolist() == [2.0]


@pytest.mark.parametrize("mode", [pb.no_grad, pb.inference_mode, pb.enable_grad])
def test_a_mode_ends_with_the_error_that_leaves_it(mode):
    leaf = pb.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(pb.AutogradError), mode():
        leaf.mm(leaf)
    assert pb.is_grad_enabled()
    assert (leaf * 2).requires_grad
