"""LBFGS, schedules and what they refuse."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, ArgumentTypeError

S = pb.optim.lr_scheduler


def optimizer(**options):
    return pb.optim.SGD([pb.zeros(1, requires_grad=True)], lr=1.0, **options)


def valley(w, optimizer):
    def closure():
        optimizer.zero_grad()
        loss = (w[0] - 1) ** 2 + 10 * (w[1] - w[0] ** 2) ** 2
        loss.backward()
        return loss

    return closure


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_finds_the_bottom_of_a_valley(search):
    w = pb.tensor([3.0, -2.0], dtype="float64", requires_grad=True)
    steps = pb.optim.LBFGS([w], lr=0.5 if search is None else 1.0, line_search_fn=search)
    for _ in range(10):
        steps.step(valley(w, steps))
    np.testing.assert_allclose(w.tolist(), [1.0, 1.0], atol=1e-4)


def test_lbfgs_of_complex_numbers():
    w = pb.tensor([3.0 - 2.0j], requires_grad=True)
    steps = pb.optim.LBFGS([w])

    def closure():
        steps.zero_grad()
        loss = (abs(w - (1 + 1j)) ** 2).sum()
        loss.backward()
        return loss

    steps.step(closure)
    np.testing.assert_allclose(w.tolist(), [1 + 1j], atol=1e-6)


def test_lbfgs_refuses():
    w = pb.zeros(1, requires_grad=True)
    with pytest.raises(ArgumentError, match="one parameter group required, got 2"):
        pb.optim.LBFGS([{"params": [w]}, {"params": [pb.zeros(1, requires_grad=True)]}])
    with pytest.raises(ArgumentError, match="line_search_fn of 'strong_wolfe' or None required"):
        pb.optim.LBFGS([w], line_search_fn="armijo")
    with pytest.raises(ArgumentTypeError, match="step needs a closure"):
        pb.optim.LBFGS([w]).step()


WRONG = {
    "LambdaLR: one function, or one for each of 1 groups, required, got 2": lambda: S.LambdaLR(
        optimizer(), [abs, abs]
    ),
    "CosineAnnealingWarmRestarts: a positive int required in T_mult, got 1.5": lambda: (
        S.CosineAnnealingWarmRestarts(optimizer(), 2, 1.5)
    ),
    "CosineAnnealingWarmRestarts: an epoch of at least 0 required, got -1": lambda: (
        S.CosineAnnealingWarmRestarts(optimizer(), 2).step(-1)
    ),
    "OneCycleLR: give total_steps, or epochs and steps_per_epoch": lambda: S.OneCycleLR(
        optimizer(momentum=0.9), 1.0
    ),
    "OneCycleLR: an anneal_strategy of 'cos' or 'linear' required": lambda: S.OneCycleLR(
        optimizer(momentum=0.9), 1.0, 10, anneal_strategy="sin"
    ),
    "OneCycleLR: an optimizer with momentum or betas": lambda: S.OneCycleLR(
        pb.optim.Adagrad([pb.zeros(1, requires_grad=True)]), 1.0, 10
    ),
    "SequentialLR: 0 milestones for 1 schedulers required, got 1": lambda: S.SequentialLR(
        (o := optimizer()), [S.StepLR(o, 1)], [1]
    ),
    "SequentialLR: schedulers of this optimizer required": lambda: S.SequentialLR(
        optimizer(), [S.StepLR(optimizer(), 1)], []
    ),
    "ReduceLROnPlateau: a factor below 1 required, got 2": lambda: S.ReduceLROnPlateau(
        optimizer(), factor=2
    ),
    "ReduceLROnPlateau: mode 'min' or 'max' and": lambda: S.ReduceLROnPlateau(
        optimizer(), mode="least"
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_a_schedule_refuses(text):
    with pytest.raises(ArgumentError, match=text):
        WRONG[text]()


def test_one_cycle_ends_after_its_steps():
    schedule = S.OneCycleLR(optimizer(momentum=0.9), 1.0, total_steps=2)
    schedule.step()
    schedule.step()
    with pytest.raises(ArgumentError, match="at most 2 steps required, got 4"):
        schedule.step()


def test_cosine_annealing_warm_restarts_goes_on_from_a_state_within_an_epoch():
    first, second = (S.CosineAnnealingWarmRestarts(optimizer(), 2, 2) for _ in range(2))
    first.step(3.25)
    second.load_state_dict(first.state_dict())
    for schedule in (first, second):
        schedule.step()
    assert first.get_last_lr() == second.get_last_lr()
    assert first.get_last_lr()[0] == pytest.approx((1 + np.cos(np.pi * 2.25 / 4)) / 2)


def test_a_schedule_goes_on_from_its_state():
    first = S.SequentialLR(
        o := optimizer(), [S.LinearLR(o, 0.1, total_iters=3), S.ExponentialLR(o, 0.5)], [3]
    )
    for _ in range(4):
        first.step()
    second = S.SequentialLR(
        o := optimizer(), [S.LinearLR(o, 0.1, total_iters=3), S.ExponentialLR(o, 0.5)], [3]
    )
    second.load_state_dict(first.state_dict())
    first.step()
    second.step()
    assert first.get_last_lr() == second.get_last_lr() == [0.25]
    assert "schedulers" not in first.state_dict()


def test_step_of_an_epoch_sets_the_rate_of_that_epoch():
    optimizer = pb.optim.SGD([pb.ones(1, requires_grad=True)], lr=1.0)
    scheduler = pb.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.1)
    scheduler.step(3)
    assert (scheduler.last_epoch, scheduler.get_last_lr()) == (3, [0.1])
    scheduler.step()
    assert scheduler.get_last_lr() == [pytest.approx(0.01)]
    plateau = pb.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    plateau.step(1.0, epoch=5)
    assert plateau.last_epoch == 5
