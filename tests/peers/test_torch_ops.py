"""Every built-in operation beside torch: values, gradients and second derivatives in float64.

A row is a program written once and run on both libraries, through Tensor methods (PyTorch's names
on both sides) or through functions that both spell alike.
"""

import numpy as np
import pytest
import torch

import pullback as pb

pytestmark = pytest.mark.peers


def draw(*shape, low=-2.0, high=2.0):
    """Say how to draw an input; drawn in `inputs_of`, so that a row is the same in any order."""
    return (shape, low, high)


def inputs_of(name, specs):
    rng = np.random.default_rng(sum(map(ord, name)))
    return [
        spec if isinstance(spec, np.ndarray) else rng.uniform(spec[1], spec[2], spec[0])
        for spec in specs
    ]


V, M, T = draw(4), draw(2, 3), draw(2, 3, 4)
P, PM = draw(4, low=0.3, high=3.0), draw(2, 3, low=0.3, high=3.0)

# id: (program of the library and its tensors, inputs)
ARITHMETIC = {
    "add": (lambda lib, x, y: x + y, (M, M)),
    "add broadcast": (lambda lib, x, y: x + y, (M, draw(3))),
    "add both broadcast": (lambda lib, x, y: x + y, (draw(2, 1), draw(1, 3))),
    "add 0-d": (lambda lib, x, y: x + y, (M, draw())),
    "add scalar": (lambda lib, x: (x + 2) * (3.5 + x), (M,)),
    "sub": (lambda lib, x, y: x - y * y, (M, draw(3))),
    "sub scalar": (lambda lib, x: (x - 2) * (1.5 - x), (M,)),
    "mul": (lambda lib, x, y: x * y, (M, M)),
    "mul broadcast": (lambda lib, x, y: x * y, (draw(2, 1, 4), draw(3, 1))),
    "mul scalar": (lambda lib, x: 3 * x * x * 0.5, (M,)),
    "div": (lambda lib, x, y: x / y, (M, PM)),
    "div broadcast": (lambda lib, x, y: x / y, (draw(3), PM)),
    "div scalar": (lambda lib, x: x / 4 + 1.5 / x, (PM,)),
    "neg": (lambda lib, x: -x * x, (M,)),
    "pow": (lambda lib, x, y: x**y, (P, V)),
    "pow broadcast": (lambda lib, x, y: x.pow(y), (PM, draw(3))),
    "pow 2": (lambda lib, x: x.pow(2), (M,)),
    "pow 3": (lambda lib, x: x**3, (M,)),
    "pow 0": (lambda lib, x: x**0 * x, (M,)),
    "pow -1.5": (lambda lib, x: x**-1.5, (PM,)),
    "pow of scalar": (lambda lib, x: 2.5**x, (M,)),
    "expression": (lambda lib, x, y: (x * y - x / y) ** 2 / (1 + x * x), (PM, PM)),
}

UNARY = {
    name: (lambda lib, x, name=name: getattr(x, name)() * x, (spec,))
    for name, spec in {
        "exp": M,
        "log": PM,
        "sqrt": PM,
        "abs": M,
        "sign": M,
        "tanh": M,
        "sigmoid": M,
        "sin": M,
        "cos": M,
        "relu": M,
    }.items()
} | {
    f"{name} of 0": (
        lambda lib, x, name=name: getattr(x, name)() * x,
        (np.array([0.0, 1.0, -1.0]),),
    )
    for name in ("abs", "sign", "relu", "tanh")
}

COMPARING = {
    "maximum": (lambda lib, x, y: lib.maximum(x, y) * x, (M, M)),
    "minimum": (lambda lib, x, y: lib.minimum(x, y) * x, (M, draw(3))),
    "maximum at ties": (
        lambda lib, x, y: lib.maximum(x, y) * x * y,
        (np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])),
    ),
    "minimum at ties": (
        lambda lib, x, y: lib.minimum(x, y) * x * y,
        (np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])),
    ),
    "clamp": (lambda lib, x: x.clamp(min=-0.5, max=0.5) * x, (M,)),
    "clamp min": (lambda lib, x: x.clamp(min=0) * x, (M,)),
    "clamp max": (lambda lib, x: x.clamp(max=0.25) * x, (M,)),
    "clamp at the bounds": (
        lambda lib, x: x.clamp(-1, 1) * x,
        (np.array([-2.0, -1.0, 0.0, 1.0, 2.0]),),
    ),
    "where": (lambda lib, x, y: lib.where(x > y, x * y, y**3), (M, M)),
    "where broadcast": (lambda lib, x, y: lib.where(x > 0, x, y) * x, (M, draw(3))),
    "where scalar": (lambda lib, x: lib.where(x > 0, x * x, 0.5), (M,)),
    "comparisons as masks": (
        lambda lib, x, y: (
            x * (x < y) + y * (x >= y) + x * x * (x != y) + y * (x <= 0.5) * (y > 0.5) * (x == x)
        ),
        (M, M),
    ),
    "masked_fill": (lambda lib, x: x.masked_fill(x < 0, 7.0) * x, (M,)),
    "softmax": (lambda lib, x: x.softmax(dim=-1), (T,)),
    "softmax first dim": (lambda lib, x: x.softmax(dim=0), (M,)),
    "log_softmax": (lambda lib, x: x.log_softmax(dim=1), (T,)),
    "softmax of large numbers": (lambda lib, x: (1000 * x).softmax(dim=-1), (M,)),
    "log_softmax of large numbers": (lambda lib, x: (1000 * x).log_softmax(dim=-1), (M,)),
}

REDUCING = {
    "sum": (lambda lib, x: (x * x).sum(), (T,)),
    "sum dim": (lambda lib, x: (x * x).sum(dim=1), (T,)),
    "sum dims keepdim": (lambda lib, x: (x * x).sum(dim=(0, 2), keepdim=True) * x, (T,)),
    "mean": (lambda lib, x: (x * x).mean(), (T,)),
    "mean dim": (lambda lib, x: (x * x).mean(dim=-1), (T,)),
    "mean dims keepdim": (lambda lib, x: x - x.mean(dim=(0, 1), keepdim=True) * x, (T,)),
    "prod": (lambda lib, x: x.prod(), (M,)),
    "prod dim": (lambda lib, x: x.prod(dim=1), (T,)),
    "prod with a zero": (lambda lib, x: x.prod(), (np.array([2.0, 0.0, 3.0]),)),
    "prod with two zeros": (lambda lib, x: x.prod(), (np.array([2.0, 0.0, 3.0, 0.0]),)),
    "max": (lambda lib, x: x.max() * x, (M,)),
    "max dim": (lambda lib, x: x.max(dim=1).values ** 2, (T,)),
    "max dim keepdim": (lambda lib, x: x.max(dim=0, keepdim=True)[0] * x, (M,)),
    "max with ties": (lambda lib, x: x.max() ** 2, (np.array([1.0, 0.0, 1.0, 0.0, 1.0]),)),
    "min": (lambda lib, x: x.min() * x, (M,)),
    "min dim": (lambda lib, x: x.min(dim=-1).values ** 2, (T,)),
    "min with ties": (lambda lib, x: x.min() ** 2, (np.array([1.0, 0.0, 1.0, 0.0, 1.0]),)),
    "var": (lambda lib, x: x.var(), (M,)),
    "var dim": (lambda lib, x: x.var(dim=1), (T,)),
    "var biased": (lambda lib, x: x.var(dim=0, correction=0, keepdim=True), (M,)),
    "std": (lambda lib, x: x.std(), (M,)),
    "std dim": (lambda lib, x: x.std(dim=-1), (T,)),
    "cumsum": (lambda lib, x: x.cumsum(dim=1) ** 2, (T,)),
    "layer norm": (
        lambda lib, x, w, b: (
            (x - x.mean(dim=-1, keepdim=True))
            / (x.var(dim=-1, correction=0, keepdim=True) + 1e-5).sqrt()
            * w
            + b
        ),
        (M, draw(3), draw(3)),
    ),
}

MATRICES = {
    "mm": (lambda lib, x, y: x.mm(y), (draw(2, 3), draw(3, 4))),
    "matmul": (lambda lib, x, y: x @ y, (draw(2, 3), draw(3, 4))),
    "matmul vector": (lambda lib, x, y: x.matmul(y), (draw(2, 3), draw(3))),
    "vector matmul": (lambda lib, x, y: x @ y, (draw(3), draw(3, 2))),
    "vector matmul vector": (lambda lib, x, y: lib.matmul(x, y), (draw(3), draw(3))),
    "matmul batch": (lambda lib, x, y: x @ y, (draw(5, 2, 3), draw(5, 3, 4))),
    "matmul broadcast batch": (lambda lib, x, y: x @ y, (draw(5, 1, 2, 3), draw(6, 3, 4))),
    "matmul batch by matrix": (lambda lib, x, y: x @ y, (draw(5, 2, 3), draw(3, 4))),
    "matmul batch by vector": (lambda lib, x, y: x @ y, (draw(5, 2, 3), draw(3))),
    "matmul vector by batch": (lambda lib, x, y: x @ y, (draw(3), draw(5, 3, 2))),
    "t": (lambda lib, x: x.t() ** 2, (M,)),
    "T mm": (lambda lib, x, y: x.t().mm(y), (draw(3, 2), draw(3, 4))),
    "transpose": (lambda lib, x: x.transpose(0, 2) ** 2, (T,)),
    "permute": (lambda lib, x: x.permute(2, 0, 1) ** 2, (T,)),
}

SHAPES = {
    "reshape": (lambda lib, x: x.reshape(4, -1) ** 2, (T,)),
    "reshape of a transpose": (lambda lib, x: x.transpose(0, 1).reshape(-1) ** 2, (T,)),
    "view": (lambda lib, x: x.view(6, 4) ** 2, (T,)),
    "flatten": (lambda lib, x: x.flatten() ** 2, (T,)),
    "flatten from 1": (lambda lib, x: x.flatten(1) ** 2, (T,)),
    "unsqueeze": (lambda lib, x: x.unsqueeze(1) ** 2, (M,)),
    "squeeze": (lambda lib, x: x.squeeze() ** 2, (draw(1, 3, 1),)),
    "squeeze dim": (lambda lib, x: x.squeeze(0) ** 2, (draw(1, 3, 1),)),
    "expand": (lambda lib, x: x.expand(4, 2, 3) ** 2, (draw(2, 1),)),
    "expand keeping": (lambda lib, x: x.expand(-1, 3) ** 2, (draw(2, 1),)),
    "expand_as": (lambda lib, x, y: x.expand_as(y) * y, (draw(3), M)),
    "broadcast_to": (lambda lib, x: lib.broadcast_to(x, (2, 3)) ** 2, (draw(2, 1),)),
    "cat": (lambda lib, x, y: lib.cat([x, y, x]) ** 2, (M, draw(1, 3))),
    "cat dim 1": (lambda lib, x, y: lib.cat((x, y), dim=1) ** 2, (M, draw(2, 2))),
    "stack": (lambda lib, x, y: lib.stack([x, y, x * y]) ** 2, (M, M)),
    "split": (lambda lib, x: [p**2 for p in x.split(2)], (draw(5, 2),)),
    "split sizes": (lambda lib, x: x.split([1, 3], dim=1)[1] ** 2, (draw(2, 4),)),
    "chunk": (lambda lib, x: [p**3 for p in x.chunk(3)], (draw(7),)),
    "unbind": (lambda lib, x: x.unbind(0)[0] * x.unbind(0)[1], (M,)),
    "unbind dim 1": (lambda lib, x: x.unbind(dim=1)[2] ** 2, (M,)),
    "clone": (lambda lib, x: x.clone() * x, (M,)),
    "detach": (lambda lib, x: x.detach() * x, (M,)),
    "to": (lambda lib, x: (x * x).to(lib.float32).to(lib.float64), (np.array([0.5, 1.5]),)),
    "to same": (lambda lib, x: x.to(lib.float64) ** 2, (M,)),
}

INDEXING = {
    "integer": (lambda lib, x: x[1] ** 2, (T,)),
    "negative": (lambda lib, x: x[-1, -2] ** 2, (T,)),
    "slice": (lambda lib, x: x[:, 1:3] ** 2, (T,)),
    "step": (lambda lib, x: x[::2, ::3] ** 2, (draw(5, 7),)),
    "ellipsis": (lambda lib, x: x[..., 1] ** 2, (T,)),
    "none": (lambda lib, x: x[:, None] ** 2, (M,)),
    "list": (lambda lib, x: x[[1, 0, 1]] ** 2, (M,)),
    "two lists": (lambda lib, x: x[[0, 1, 1], [2, 2, 0]] ** 2, (M,)),
    "repeated": (lambda lib, x: x[lib.tensor([0, 0, 2, 0])] ** 2, (V,)),
    "index matrix": (lambda lib, x: x[lib.tensor([[1, 2], [0, 0]])] ** 2, (draw(3, 2),)),
    "mixed": (lambda lib, x: x[:, [2, 0], 1:3] ** 2, (T,)),
    "integer and list": (lambda lib, x: x[1, :, [3, 0]] ** 2, (T,)),
    "mask": (lambda lib, x: x[x > 0] ** 2, (M,)),
    "mask of rows": (lambda lib, x: x[lib.tensor([True, False])] ** 2, (M,)),
}


def assigned(assign):
    """Make a program that changes a copy of its first input in place."""

    def program(lib, x, *others):
        y = x * 2
        assign(lib, y, *others)
        return y * y

    return program


def setter(index):
    def assign(lib, y, value):
        y[index] = value

    return assign


def set_constant(lib, y):
    y[0, 1:] = 7.0


def set_mask(lib, y):
    y[y.detach() < 0] = 0


def chain_of_views(lib, y, value):
    row = y[0]
    row[1:].mul_(value)
    y.t()[2].add_(1)


ASSIGNING = {
    "set integer": (assigned(setter(0)), (M, draw(3))),
    "set slice": (assigned(setter((slice(None), 1))), (M, draw(2))),
    "set broadcast": (assigned(setter(slice(None))), (M, draw(3))),
    "set list": (assigned(setter([1, 0])), (M, M)),
    "set scalar tensor": (assigned(setter((1, 2))), (M, draw())),
    "set constant": (assigned(set_constant), (M,)),
    "set mask": (assigned(set_mask), (M,)),
    "set through views": (assigned(chain_of_views), (M, draw(2))),
    "add_": (assigned(lambda lib, y, z: y.add_(z)), (M, draw(3))),
    "sub_": (assigned(lambda lib, y, z: y.sub_(z * z)), (M, M)),
    "mul_": (assigned(lambda lib, y, z: y.mul_(z)), (M, draw(3))),
    "div_": (assigned(lambda lib, y, z: y.div_(z)), (M, PM)),
    "exp_": (assigned(lambda lib, y: y.exp_()), (M,)),
    "sqrt_": (assigned(lambda lib, y: y.sqrt_()), (PM,)),
    "tanh_": (assigned(lambda lib, y: y.tanh_()), (M,)),
    "sigmoid_": (assigned(lambda lib, y: y.sigmoid_()), (M,)),
    "relu_": (assigned(lambda lib, y: y.relu_()), (M,)),
    "clamp_": (assigned(lambda lib, y: y.clamp_(min=-0.5)), (M,)),
    "pow_": (assigned(lambda lib, y: y.pow_(3)), (M,)),
    "neg_": (assigned(lambda lib, y: y.neg_()), (M,)),
    "zero_": (assigned(lambda lib, y: y.zero_()), (M,)),
    "fill_": (assigned(lambda lib, y: y.fill_(3.0)), (M,)),
    "masked_fill_": (assigned(lambda lib, y: y.masked_fill_(y.detach() > 0, 1.5)), (M,)),
    "copy_": (assigned(lambda lib, y, z: y.copy_(z)), (M, draw(3))),
    "copy_ into a view": (assigned(lambda lib, y, z: y[:, 0].copy_(z)), (M, draw(2))),
}

ROWS = ARITHMETIC | UNARY | COMPARING | REDUCING | MATRICES | SHAPES | INDEXING | ASSIGNING


def derivatives(lib, program, arrays):
    """Return outputs, first derivatives of a weighted sum of them, and its second derivatives."""
    leaves = [lib.tensor(array, requires_grad=True) for array in arrays]
    outputs = program(lib, *leaves)
    outputs = list(outputs) if isinstance(outputs, list) else [outputs]
    settings = {"create_graph": True, "materialize_grads": True}
    total = weighted_sum(lib, outputs)
    first = lib.autograd.grad(total, leaves, **settings)
    total = weighted_sum(lib, first)
    second = (
        lib.autograd.grad(total, leaves, **settings)
        if total.requires_grad
        else [lib.zeros_like(leaf) for leaf in leaves]
    )
    return [[t.detach().numpy() for t in group] for group in (outputs, first, second)]


def weighted_sum(lib, tensors):
    total = 0
    for number, tensor in enumerate(tensors, start=1):
        weights = np.cos(np.arange(tensor.numel()) + number).reshape(tuple(tensor.shape))
        total = total + (tensor * lib.tensor(weights)).sum()
    return total


@pytest.mark.parametrize("name", ROWS)
def test_values_gradients_and_second_derivatives_agree_with_torch(name):
    program, specs = ROWS[name]
    arrays = inputs_of(name, specs)
    ours = derivatives(pb, program, arrays)
    theirs = derivatives(torch, program, arrays)
    for what, our_group, their_group in zip(
        ("value", "gradient", "second derivative"), ours, theirs, strict=True
    ):
        assert len(our_group) == len(their_group)
        for number, (a, b) in enumerate(zip(our_group, their_group, strict=True)):
            assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{what} {number}"
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=f"{what} {number}")


# -- what has a value but no gradient -------------------------------------------------------------

PLAIN = {
    "comparisons": lambda lib, x, y: [x < y, x <= y, x > y, x >= y, x == y, x != y],
    "comparisons with scalars": lambda lib, x, y: [x < 0, x >= 0.5, x < 1, y == 2],
    "logic": lambda lib, x, y: [(x > 0) & (y > 0), (x > 0) | (y > 0), ~(x > 0)],
    "argmax": lambda lib, x, y: [x.argmax(), x.argmax(dim=1), y.argmax(dim=0, keepdim=True)],
    "max indices": lambda lib, x, y: [x.max(dim=1).indices, x.min(dim=0).indices],
    "casts": lambda lib, x, y: [x.to(lib.int64), x.to(lib.float32), (x > 0).to(lib.float64)],
    "integer sum": lambda lib, x, y: [x.to(lib.int32).sum(), (x > 0).sum(), (x > 0).sum(dim=0)],
    "like": lambda lib, x, y: [lib.zeros_like(x), lib.ones_like(y), lib.full_like(x, 3)],
    "created": lambda lib, x, y: [
        lib.zeros(2, 3),
        lib.ones((2, 3), dtype=lib.float64),
        lib.full((2,), 1.5),
        lib.arange(5),
        lib.arange(1, 7, 2),
        lib.arange(3.0),
        lib.eye(3),
        lib.linspace(0, 1, 5),
        lib.tensor([1.5, 2.5]),
        lib.tensor([1, 2]),
        lib.tensor([True, False]),
        lib.tensor(3.5),
    ],
    "promotion": lambda lib, x, y: [
        lib.tensor([1, 2]) * 2,
        lib.tensor([1, 2]) * 2.5,
        lib.tensor([1, 2]) / 2,
        lib.tensor([1.5]) * 2,
        lib.tensor([1.5]) * lib.tensor([2], dtype=lib.float64),
        lib.tensor([1.5]) * lib.tensor(2, dtype=lib.float64),
        lib.tensor([True]) + lib.tensor([1]),
        lib.tensor([1], dtype=lib.int8) + lib.tensor([1], dtype=lib.uint8),
        lib.tensor([1, 2]).sum(),
        lib.tensor([True, True]).sum(),
        lib.tensor([1, 2]).exp(),
        lib.tensor([4, 2]) > 2.5,
    ],
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_values_and_dtypes_agree_with_torch(name):
    arrays = inputs_of(name, (M, M))
    ours = PLAIN[name](pb, *map(pb.tensor, arrays))
    theirs = PLAIN[name](torch, *map(torch.tensor, arrays))
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        a, b = a.numpy(), b.numpy()
        assert (a.shape, a.dtype) == (b.shape, b.dtype), number
        np.testing.assert_allclose(a, b, rtol=1e-6, err_msg=str(number))
