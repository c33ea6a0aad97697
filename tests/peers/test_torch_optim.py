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


OTHERS = {
    "AdamW": grid(
        lr=[0.05], weight_decay=[0.01, 0.3], amsgrad=[False, True], maximize=[False, True]
    ),
    "RMSprop": grid(lr=[0.02], alpha=[0.5, 0.99], momentum=[0, 0.5], centered=[False, True]),
    "Adagrad": grid(
        lr=[0.3], lr_decay=[0, 0.1], initial_accumulator_value=[0, 0.2], weight_decay=[0, 0.1]
    ),
}


@pytest.mark.parametrize(
    ("name", "options"), [(name, o) for name, grids in OTHERS.items() for o in grids], ids=str
)
def test_adamw_rmsprop_and_adagrad_take_the_steps_of_torch(name, options):
    ours = trajectory(pb, getattr(pb.optim, name), options)
    theirs = trajectory(torch, getattr(torch.optim, name), options)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "Adagrad"])
def test_complex_parameters_take_the_steps_of_torch(name):
    rng = np.random.default_rng(3)
    start, target = rng.normal(size=(2, 4)) + 1j * rng.normal(size=(2, 4))
    found = []
    for lib in (pb, torch):
        w, goal = lib.tensor(start, requires_grad=True), lib.tensor(target)
        optimizer = getattr(lib.optim, name)([w], lr=0.1)
        for _ in range(STEPS):
            optimizer.zero_grad()
            (abs(w - goal) ** 2).sum().backward()
            optimizer.step()
        found.append(w.detach().numpy())
    np.testing.assert_allclose(*found, rtol=1e-9)


@pytest.mark.parametrize(
    "options", grid(lr=[0.3, 1.0], max_iter=[3, 20], history_size=[2, 100]), ids=str
)
def test_lbfgs_without_a_line_search_takes_the_steps_of_torch(options):
    found = []
    for lib in (pb, torch):
        w = lib.tensor(np.array([0.3, 0.8, -0.5]), requires_grad=True)
        optimizer = lib.optim.LBFGS([w], **options)

        def closure(w=w, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (w**4).sum() + (w[0] - w[1]) ** 2 + (w[2] + 1) ** 2
            loss.backward()
            return loss

        for _ in range(5):
            optimizer.step(closure)
        found.append(w.detach().numpy())
    np.testing.assert_allclose(*found, rtol=1e-8, atol=1e-10)


# -- schedules -------------------------------------------------------------------------------------
SCHEDULES = {
    "StepLR": lambda s, o: s.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 7, 7], 0.3),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 1 / (1 + e), lambda e: 0.5**e]),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.2, 0.9, 8),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.2, 8),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 12, 1e-3),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4, eta_min=1e-3),
    "CosineAnnealingWarmRestarts, longer": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, [0.02, 0.03], total_steps=40),
    "OneCycleLR of three phases": lambda s, o: s.OneCycleLR(
        o,
        0.02,
        epochs=8,
        steps_per_epoch=5,
        three_phase=True,
        anneal_strategy="linear",
        final_div_factor=10,
    ),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, total_iters=5), s.ExponentialLR(o, 0.9)], [5]
    ),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(
        o, factor=0.5, patience=1, cooldown=2, min_lr=[1e-4, 0.02]
    ),
    "ReduceLROnPlateau, max": lambda s, o: s.ReduceLROnPlateau(
        o, mode="max", factor=0.5, patience=0, threshold=0.2, threshold_mode="abs"
    ),
}


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_lr_scheduler_gives_the_rates_of_torch(name, optimizer):
    measures = np.random.default_rng(1).normal(size=40).cumsum()
    found = []
    for lib in (pb, torch):
        groups = [{"params": [lib.zeros(1, requires_grad=True)], "lr": lr} for lr in (0.1, 0.05)]
        chosen = {"momentum": 0.9} if optimizer == "SGD" else {}
        stepper = getattr(lib.optim, optimizer)(groups, **chosen)
        schedule = SCHEDULES[name](lib.optim.lr_scheduler, stepper)
        rates = []
        for measure in measures[:39]:
            rates.append([g["lr"] for g in stepper.param_groups])
            rates.append([g.get("momentum", g.get("betas", [0])) for g in stepper.param_groups])
            stepper.step()
            schedule.step(*([measure] if "Plateau" in name else []))
        found.append([np.hstack([np.ravel(r) for r in row]) for row in rates])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("factor", [1, 3])
def test_cosine_annealing_warm_restarts_within_epochs_has_the_rates_of_torch(factor):
    found = []
    for lib in (pb, torch):
        stepper = lib.optim.SGD([lib.zeros(1, requires_grad=True)], lr=0.1)
        schedule = lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(stepper, 2, factor, 1e-3)
        rates = []
        for step in [*np.arange(0, 9, 0.25).tolist(), None, None, 1.75, None]:
            schedule.step(step)
            rates.append(schedule.get_last_lr())
        found.append(rates)
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)


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
