"""Twenty steps of every optimizer beside torch's, over grids of options."""

import itertools

import numpy as np
import pytest
import torch

import pullback as pb

pytestmark = pytest.mark.peers

STEPS = 20


def grid(**choices):
    return [
        dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())
    ]


SGD = [
    options
    for options in grid(
        lr=[0.01, 0.1],
        momentum=[0, 0.5, 0.9],
        dampening=[0, 0.3],
        weight_decay=[0, 0.1],
        nesterov=[False, True],
        maximize=[False, True],
    )
    if not (options["nesterov"] and (options["momentum"] == 0 or options["dampening"] != 0))
]

ADAM = grid(
    lr=[0.01, 0.3],
    betas=[(0.9, 0.999), (0.5, 0.5), (0.0, 0.9)],
    eps=[1e-8, 0.1],
    weight_decay=[0, 0.1],
    amsgrad=[False, True],
    maximize=[False, True],
)


def trajectory(lib, optimizer_class, options, dtype="float64"):
    """Fit a small softened regression whose curvature changes on the way."""
    rng = np.random.default_rng(7)
    x = lib.tensor(rng.normal(size=(6, 3)).astype(dtype))
    y = lib.tensor(rng.normal(size=(6, 2)).astype(dtype))
    weight = lib.tensor(rng.normal(size=(3, 2)).astype(dtype), requires_grad=True)
    bias = lib.tensor(rng.normal(size=2).astype(dtype), requires_grad=True)
    groups = [{"params": [weight]}, {"params": [bias], "lr": options["lr"] / 2}]
    optimizer = optimizer_class(groups, **options)
    points = []
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=step % 3 != 0)
        ((x.mm(weight) + bias).tanh() - y).pow(2).mean().backward()
        if step == 5:
            bias.grad = None  # one step without a gradient for one parameter
        optimizer.step()
        points.append([*weight.detach().numpy().ravel().tolist(), *bias.detach().tolist()])
    return np.array(points)


@pytest.mark.parametrize("options", SGD, ids=str)
def test_sgd_takes_the_steps_of_torch(options):
    ours = trajectory(pb, pb.optim.SGD, options)
    theirs = trajectory(torch, torch.optim.SGD, options)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("options", ADAM, ids=str)
def test_adam_takes_the_steps_of_torch(options):
    ours = trajectory(pb, pb.optim.Adam, options)
    theirs = trajectory(torch, torch.optim.Adam, options)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "options"),
    [("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}), ("Adam", {"lr": 0.05})],
)
def test_single_precision_stays_close_to_torch(name, options):
    ours = trajectory(pb, getattr(pb.optim, name), options, "float32")
    theirs = trajectory(torch, getattr(torch.optim, name), options, "float32")
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("amsgrad", [False, True])
def test_adam_on_a_complex_parameter_takes_the_steps_of_torch(amsgrad):
    def run(lib, optimizer_class):
        z = lib.tensor(np.array([2.0 - 3.0j, 0.5 + 1.0j]), requires_grad=True)
        optimizer = optimizer_class([z], lr=0.1, weight_decay=0.1, amsgrad=amsgrad)
        points = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            (z.real.pow(2) + 3 * z.imag.pow(2) * z.real).sum().backward()
            optimizer.step()
            points.append(z.detach().numpy().copy())
        return np.array(points)

    ours, theirs = run(pb, pb.optim.Adam), run(torch, torch.optim.Adam)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": -0.1}),
        ("SGD", {"momentum": -0.1}),
        ("SGD", {"weight_decay": -0.1}),
        ("SGD", {"nesterov": True}),
        ("SGD", {"nesterov": True, "momentum": 0.5, "dampening": 0.5}),
        ("Adam", {"lr": -0.1}),
        ("Adam", {"eps": -0.1}),
        ("Adam", {"weight_decay": -0.1}),
        ("Adam", {"betas": (-0.1, 0.5)}),
        ("Adam", {"betas": (0.5, 1.0)}),
    ],
    ids=str,
)
def test_both_refuse_the_same_options(name, options):
    for lib, message in ((pb, "must be|needs"), (torch, "Invalid|requires")):
        with pytest.raises(ValueError, match=message):
            getattr(lib.optim, name)([lib.tensor([1.0], requires_grad=True)], **options)
