"""Whole programs on array-api-strict arrays: the numbers of NumPy, and no array of it anywhere.

array-api-strict has the functions of the Array API standard and nothing else, so a program that
runs on it uses nothing that only NumPy has. Every array that a program saves, computes, passes to
a rule or accumulates is checked to be an array of that library.
"""

import functools

import array_api_strict
import numpy as np
import pytest
from tests.operations import linear_backward, linear_forward

import pullback as pb
from pullback.errors import DeviceError

STRICT = type(array_api_strict.asarray(0.0))


class Maker:
    """Makes the tensors of a program on one library, and looks at every array that it can see."""

    def __init__(self, library):
        self.library = library
        self.kind = STRICT if library is array_api_strict else np.ndarray
        self.seen = 0

    def array(self, values):
        return self.library.asarray(np.asarray(values))

    def __call__(self, values):
        return pb.asarray(self.array(values))

    def leaf(self, values):
        return self(np.asarray(values, dtype=np.float64)).requires_grad_()

    def random(self, *shape, seed=0):
        return np.random.default_rng(seed).normal(size=shape)

    def look(self, tensor):
        assert type(tensor.data_array()) is self.kind
        if tensor.grad_fn is None and tensor.grad is not None:
            assert type(tensor.grad.data_array()) is self.kind
        self.seen += 1
        return tensor

    def watched(self, forward, backward):
        """Return the operation, with all that goes into and out of forward and backward seen."""

        @functools.wraps(forward)
        def looking_forward(ctx, *args):
            for a in args:
                if isinstance(a, pb.Tensor):
                    self.look(a)
            return self.look(forward(ctx, *args))

        def looking_backward(ctx, grad_output):
            self.look(grad_output)
            for value in ctx.saved_tensors:
                if value is not None:
                    self.look(value)
            return backward(ctx, grad_output)

        return pb.autograd_function(looking_forward, looking_backward)


PROGRAMS = {}


def program(run):
    PROGRAMS[run.__name__] = run
    return run


# -- the programs of the reference -----------------------------------------------------------------
def linear_of(make):
    return make.watched(linear_forward, linear_backward)


@program
def linear_without_bias(make):
    x, w = make.leaf([[1.0, 2.0], [3.0, 4.0]]), make.leaf([[2.0, 3.0]])
    y = linear_of(make)(x, w, None)
    y.backward(make([[1.0], [10.0]]))
    return [y, x.grad, w.grad]


@program
def linear_with_bias(make):
    x, w, b = make(make.random(4, 3)), make.leaf(make.random(2, 3)), make.leaf([0.5, -0.5])
    y = linear_of(make)(x, w, b)
    (y * y).mean().backward()
    return [y, w.grad, b.grad]


@program
def mul_constant(make):
    def forward(ctx, tensor, constant):
        ctx.save_for_backward(constant=constant)
        return tensor * constant

    op = make.watched(forward, lambda ctx, g: {"tensor": g * ctx.saved_variables.constant})
    x = make.leaf([1.0])
    o = op(x, 2)
    o.backward()
    return [o, x.grad]


@program
def exp2(make):
    def forward(ctx, i):
        result = i.exp()
        ctx.save_for_backward(result=result)
        return result

    op = make.watched(forward, lambda ctx, g: {"i": g * ctx.saved_variable.result})
    x = make.leaf([0.0, 1.0, -2.0])
    y = op(x)
    y.sum().backward()
    return [y, x.grad]


def my_relu_of(make):
    def forward(ctx, input):
        ctx.save_for_backward(input=input)
        return input.clamp(min=0)

    def backward(ctx, grad_output):
        grad_input = grad_output.clone()
        mask = ctx.saved_variables.input < 0
        grad_input[mask] = 0
        return {"input": grad_input}

    return make.watched(forward, backward)


@program
def my_relu(make):
    x = make.leaf([[-1.0, 2.0], [0.0, -3.0]])
    y = my_relu_of(make)(x)
    y.backward(make([[1.0, 10.0], [100.0, 1000.0]]))
    return [y, x.grad]


@program
def two_layer_net(make):
    relu = my_relu_of(make)
    x, y = make(make.random(8, 20)), make(make.random(8, 3, seed=1))
    w1, w2 = make.leaf(make.random(20, 10, seed=2)), make.leaf(make.random(10, 3, seed=3))
    losses = []
    for _ in range(20):
        loss = (relu(x.mm(w1)).mm(w2) - y).pow(2).sum()
        loss.backward()
        losses.append(loss)
        with pb.no_grad():
            w1.sub_(1e-4 * w1.grad)
            w2.sub_(1e-4 * w2.grad)
            w1.grad.zero_()
            w2.grad.zero_()
    assert losses[-1].item() < losses[0].item()
    return [*losses, w1, w2, w1.grad]


# -- networks and optimizers -----------------------------------------------------------------------
def layer_norm(x, gain, shift):
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / (x.var(dim=-1, keepdim=True, unbiased=False) + 1e-5).sqrt() * gain + shift


def classifier(make, optimizer, steps=8):
    x, labels = make(make.random(12, 5)), make(np.arange(12) % 3)
    w1, w2 = make.leaf(make.random(5, 6, seed=1)), make.leaf(make.random(6, 3, seed=2))
    gain, shift = make.leaf(np.ones(6)), make.leaf(np.zeros(6))
    leaves = [w1, w2, gain, shift]
    steps_of = optimizer(leaves)
    losses = []
    for _ in range(steps):
        h = layer_norm(x @ w1, gain, shift).tanh()
        log_p = (h @ w2).log_softmax(dim=1)
        loss = -log_p[make(np.arange(12)), labels].mean()
        steps_of.zero_grad()
        loss.backward()
        steps_of.step()
        losses.append(loss)
    assert losses[-1].item() < losses[0].item()
    return [*losses, *leaves, *[t.grad for t in leaves], (h @ w2).softmax(dim=1)]


@program
def softmax_layer_norm_adam(make):
    return classifier(make, lambda leaves: pb.optim.Adam(leaves, lr=0.05, weight_decay=0.01))


@program
def softmax_layer_norm_amsgrad(make):
    return classifier(make, lambda leaves: pb.optim.Adam(leaves, lr=0.05, amsgrad=True))


@program
def softmax_layer_norm_sgd(make):
    return classifier(
        make, lambda leaves: pb.optim.SGD(leaves, lr=0.1, momentum=0.9, nesterov=True)
    )


# -- views and changes in place --------------------------------------------------------------------
@program
def views(make):
    x = make.leaf(make.random(4, 6))
    base = x * 2.0
    rows = base[1:3].t().reshape(2, 6).transpose(0, 1)
    first, second = base.chunk(2, dim=1)
    parts = base.unbind(0)
    loss = (rows**2).sum() + (first * second).sum() + parts[0].exp().sum()
    loss = loss + base.unsqueeze(0).expand(3, 4, 6).sum() + base[:, 2].squeeze().sum()
    loss = loss + base.diagonal().pow(3).sum() + base[..., None, ::2].mean()
    loss.backward()
    return [loss, rows, first, parts[3], x.grad]


@program
def changes_in_place(make):
    x, z = make.leaf(make.random(3, 4)), make.leaf(make.random(4))
    y = x * 1.0
    row = y[1]
    y.mul_(3.0)
    row.add_(z)
    row.sin_()
    y[0] = z * 2.0
    y[:, 1] = 0.5
    y[2, 1:3].sub_(1.0)
    y.t()[3].neg_()
    copied = make(np.zeros((3, 4)))
    copied.copy_(y)
    copied += x
    copied.masked_fill_(copied > 2.0, 2.0)
    copied[copied < -1.0] = -1.0
    copied.clamp_(max=1.5)
    loss = (copied * copied).sum() + row.sum()
    loss.backward()
    return [y, row, copied, loss, x.grad, z.grad]


@program
def every_kind_of_view_changed_in_place(make):
    x = make.leaf(make.random(3, 3))
    y = x * 1.0
    for k, view in enumerate(
        (y[1], y[:, ::2], y.t(), y.reshape(9), y.unsqueeze(0), y[None].squeeze(), y.diagonal())
    ):
        view.mul_(1.0 + 0.1 * k)
    z = x.to(pb.complex128) * (1.0 + 1.0j)
    real, imag = z.real, z.imag
    z.copy_(pb.complex(real * 2.0, imag + 1.0))
    loss = (y * y).sum() + (z * z.conj()).real.sum() + (real * imag).sum()
    loss.backward()
    return [y, z, loss, x.grad]


@program
def second_derivatives_through_a_view_changed_in_place(make):
    x = make.leaf(make.random(2, 3))
    y = x * 1.0
    y[0].mul_(x[1])
    y[:, 1] = x[:, 0] * 2.0
    (first,) = pb.autograd.grad((y * y).sum(), x, create_graph=True)
    (second,) = pb.autograd.grad((first * first).sum(), x)
    return [y, first, second]


@program
def changes_in_place_of_an_untracked_base(make):
    x = make.leaf([1.0, 2.0])
    base = make(np.zeros((2, 2)))
    other = base[1]
    base[0] = x
    other.copy_(x * 3.0)
    base.add_(1.0)
    (base * base).sum().backward()
    return [base, other, x.grad]


@program
def indexing(make):
    x = make.leaf(make.random(5, 4))
    rows = make(np.asarray([0, 3, 3]))
    picked = x[rows]
    masked = x[x > 0.5]
    loss = (picked**2).sum() + masked.sum() + x[-1, 1] * x[2, 2] + x[1:, ...][:, ::2].sum()
    loss.backward()
    return [picked, masked, loss, x.grad]


# -- the engine ------------------------------------------------------------------------------------
@program
def joining_and_choosing(make):
    x, y = make.leaf(make.random(2, 3)), make.leaf(make.random(2, 3, seed=1))
    joined = pb.concat([x, y, x * y], axis=0)
    stacked = pb.stack([x, y.exp()], axis=1)
    chosen = pb.where(x > y, x.sin(), y.cos())
    extremes = pb.maximum(x, y).sum() + pb.minimum(x, y).prod() + x.max() - y.min()
    loss = joined.var() + stacked.std() + chosen.sum() + extremes + x.cumsum(0)[1].sum()
    loss.backward()
    return [joined, stacked, chosen, loss, x.grad, y.grad]


@program
def broadcasting_and_numbers(make):
    x, s, row = make.leaf(make.random(3, 4)), make.leaf(2.0), make.leaf(make.random(1, 4, seed=1))
    loss = ((2.0 - x) * s / (1.5 + row * row) ** 2 + x // 1.0 + abs(-x) + x * True).sum()
    loss = loss + (s * make.array([1.0, 2.0])).sum() + (s + make.array([[1], [2]])).sum()
    loss.backward()
    return [loss, x.grad, s.grad, row.grad]


@program
def second_derivatives(make):
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x * x

    cube = make.watched(forward, lambda ctx, g: (3.0 * ctx.saved_variables.x**2 * g,))
    x = make.leaf([1.0, 2.0, -3.0])
    y = (cube(x) * x.exp()).sum()
    (first,) = pb.autograd.grad(y, x, create_graph=True)
    (second,) = pb.autograd.grad((first * first).sum(), x, create_graph=True)
    (third,) = pb.autograd.grad(second.sum(), x)
    return [y, first, second, third]


@program
def several_results(make):
    @pb.autograd_function
    def parts(ctx, x):
        ctx.save_for_backward(x=x)
        return {"sine": x.sin(), "rank": x.argmax(), "positive": x > 0.0, "unused": x * 2.0}

    @parts.backward
    def _(ctx, sine, rank, positive, unused):
        for g in (sine, rank, positive, unused):
            make.look(g)
        return {"x": sine * ctx.saved_variables.x.cos() + 2.0 * unused}

    x = make.leaf([0.5, -1.0])
    result = parts(x)
    result["sine"].sum().backward()
    return [*result.values(), x.grad]


@program
def plain_arrays_and_numbers_returned(make):
    pair = pb.autograd_function(
        lambda ctx, x, s: x * s,
        lambda ctx, g: {"x": make.array([3.0, 4.0]), "s": 5.0},
    )
    x, s = make.leaf([1.0, 2.0]), make.leaf(2.0)
    y = pair(x, s)
    y.sum().backward()
    return [y, x.grad, s.grad]


@program
def hooks_and_retained_gradients(make):
    x = make.leaf(make.random(3))
    y = x * 2.0
    y.retain_grad()
    y.register_hook(lambda g: make.look(g) * 10.0)
    z = y.exp()
    z.grad_fn.register_prehook(lambda grads: tuple(make.look(g) * 2.0 for g in grads))
    z.grad_fn.register_hook(lambda ins, outs: tuple(make.look(g) for g in ins))
    after = []
    x.register_post_accumulate_grad_hook(lambda leaf: after.append(make.look(leaf).grad.clone()))
    z.sum().backward()
    return [y.grad, x.grad, *after]


@program
def accumulated_and_materialised(make):
    x, unused = make.leaf(make.random(3)), make.leaf(make.random(2, 2))
    for _ in range(3):
        (x * x).sum().backward()
    zeros = pb.autograd.grad(x.sum(), unused, materialize_grads=True)
    y = x * 3.0
    y.sum().backward(inputs=[y, x])
    batch = make(np.eye(3))
    jacobian = pb.autograd.grad(x**2, x, batch, is_grads_batched=True)
    return [x.grad, *zeros, y.grad, *jacobian]


@program
def complex_numbers(make):
    z = make(np.asarray([1.0 + 2.0j, -0.5 + 0.25j])).requires_grad_()
    y = (z * z.exp() * (2.0 - 1.0j)).sum()
    size = (z * z.conj()).real.sum() + y.imag
    size.backward()
    return [y, size, z.grad]


@program
def other_dtypes(make):
    x = make(np.asarray([1.0, 2.0], dtype=np.float32)).requires_grad_()
    n = make(np.asarray([3, 4]))
    y = x.to(pb.float64) * n.to(pb.float64) + (n > 3).to(pb.float64)
    y.sum().backward()
    assert x.grad.dtype is pb.float32
    return [y, x.grad, n * 2, n.sum()]


def results_on(library, name, packed):
    """Return a program's results, every array that it saves seen where `packed`."""
    make = Maker(library)
    if packed:
        with pb.saved_tensors_hooks(lambda t: make.look(t).clone(), make.look):
            results = PROGRAMS[name](make)
    else:
        results = PROGRAMS[name](make)
    for t in results:
        make.look(t)
    return [np.asarray(t.tolist()) for t in results]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_numbers_of_numpy_on_strict_arrays_only(name, packed):
    numpy, strict = (results_on(library, name, packed) for library in (np, array_api_strict))
    for a, b in zip(numpy, strict, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-14)


# -- the seam --------------------------------------------------------------------------------------
def test_strict_arrays_are_wrapped_without_copying():
    array = array_api_strict.asarray([1.0, 2.0])
    x = pb.asarray(array)
    array[0] = 5.0
    assert x.tolist() == [5.0, 2.0]
    x.mul_(2.0)
    assert float(array[1]) == 4.0


def test_a_strict_and_a_numpy_tensor_do_not_mix():
    make = Maker(array_api_strict)
    strict, numpy = make.leaf([1.0, 2.0]), pb.tensor([1.0, 2.0], dtype=pb.float64)
    with pytest.raises(DeviceError, match=r"mul.*: .*one array library"):
        strict * numpy
    with pytest.raises(DeviceError, match=r"cat: .*one array library"):
        pb.concat([numpy, strict], axis=0)
    with pytest.raises(DeviceError):
        strict.detach().add_(numpy)


def test_a_gradient_of_another_library_is_an_error():
    make = Maker(array_api_strict)
    x = make.leaf([1.0, 2.0])
    op = pb.autograd_function(lambda ctx, x: x * 2.0, lambda ctx, g: {"x": np.ones(2)})
    with pytest.raises(pb.AutogradError, match=r"'x'.*array_api_strict|'x'.*numpy"):
        op(x).sum().backward()
    with pytest.raises(pb.AutogradError):
        (x * 2.0).backward(pb.ones(2, dtype=pb.float64))
    with pytest.raises((pb.AutogradError, RuntimeError), match="device"):
        x.grad = pb.ones(2, dtype=pb.float64)


def test_new_tensors_like_a_strict_one_are_strict():
    x = Maker(array_api_strict).leaf([[1.0, 2.0]])
    for t in (pb.zeros_like(x), pb.ones_like(x), pb.full_like(x, 3.0), pb.empty_like(x)):
        assert type(t.data_array()) is STRICT
        assert (t.shape, t.dtype) == ((1, 2), pb.float64)


def test_printing_and_conversion_of_strict_tensors():
    x = Maker(array_api_strict).leaf([1.0, 2.0])
    assert repr(x * 2.0).startswith("tensor([2., 4.]")
    assert x[1].item() == 2.0
    assert float(x[0].detach()) == 1.0
    assert len(x) == 2
    assert [t.item() for t in x.unbind(0)] == [1.0, 2.0]
    assert x.detach().numpy().tolist() == [1.0, 2.0]
