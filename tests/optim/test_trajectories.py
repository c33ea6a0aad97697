"""SGD and Adam against a transcription of their formulas in NumPy, on a quadratic."""

import itertools

import numpy as np
import pytest

import pullback as pb

START = np.array([3.0, -2.0, 0.5])
CURVATURE = np.array([1.0, 0.25, 4.0])
TARGET = np.array([1.0, 1.0, -1.0])
STEPS = 25


def gradient(p):
    """The gradient of sum(CURVATURE / 2 * (p - TARGET)**2)."""
    return CURVATURE * (p - TARGET)


def trajectory(make_optimizer):
    p = pb.tensor(START, requires_grad=True)
    optimizer = make_optimizer([p])
    curvature, target = pb.tensor(CURVATURE), pb.tensor(TARGET)
    points = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        (curvature / 2 * (p - target).pow(2)).sum().backward()
        optimizer.step()
        points.append(p.detach().numpy().copy())
    return np.array(points)


def sgd_in_numpy(lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
    p, velocity, points = START.copy(), None, []
    for _ in range(STEPS):
        g = (-1.0 if maximize else 1.0) * gradient(p) + weight_decay * p
        if momentum:
            velocity = g if velocity is None else momentum * velocity + (1.0 - dampening) * g
            g = g + momentum * velocity if nesterov else velocity
        p = p - lr * g
        points.append(p)
    return np.array(points)


def adam_in_numpy(
    lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False
):
    p, m, v, v_max, points = START.copy(), np.zeros(3), np.zeros(3), np.zeros(3), []
    for t in range(1, STEPS + 1):
        g = (-1.0 if maximize else 1.0) * gradient(p) + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        v_max = np.maximum(v_max, v)
        v_hat = (v_max if amsgrad else v) / (1 - betas[1] ** t)
        p = p - lr * (m / (1 - betas[0] ** t)) / (np.sqrt(v_hat) + eps)
        points.append(p)
    return np.array(points)


SGD_OPTIONS = [
    {"lr": 0.1},
    {"lr": 0.0},
    {"lr": 0.1, "momentum": 0.9},
    {"lr": 0.1, "momentum": 0.9, "dampening": 0.5},
    {"lr": 0.1, "weight_decay": 0.2},
    {"lr": 0.05, "momentum": 0.8, "nesterov": True},
    {"lr": 0.01, "maximize": True},
    {"lr": 0.02, "momentum": 0.5, "dampening": 0.1, "weight_decay": 0.3, "maximize": True},
    {"lr": 0.05, "momentum": 0.8, "weight_decay": 0.1, "nesterov": True},
]

ADAM_OPTIONS = [
    {"lr": lr, "betas": betas, "eps": eps, "weight_decay": decay, "amsgrad": ams, "maximize": up}
    for (lr, betas, eps), decay, ams, up in itertools.product(
        [(0.1, (0.9, 0.999), 1e-8), (0.3, (0.5, 0.8), 1e-2), (0.05, (0.0, 0.0), 1e-3)],
        [0.0, 0.3],
        [False, True],
        [False, True],
    )
]


@pytest.mark.parametrize("options", SGD_OPTIONS, ids=str)
def test_sgd_follows_its_formula(options):
    ours = trajectory(lambda params: pb.optim.SGD(params, **options))
    np.testing.assert_allclose(ours, sgd_in_numpy(**options), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("options", ADAM_OPTIONS, ids=str)
def test_adam_follows_its_formula(options):
    ours = trajectory(lambda params: pb.optim.Adam(params, **options))
    np.testing.assert_allclose(ours, adam_in_numpy(**options), rtol=1e-11, atol=1e-13)


def test_sgd_with_momentum_by_hand():
    # f = w**2 / 2 at w = 1, lr 0.5, momentum 0.5:
    # buffers 1, 1, 0.5 + 0 = 0.5, then 0.25 - 0.25 = 0; w = 0.5, 0, -0.25, -0.25.
    w = pb.tensor(1.0, requires_grad=True)
    optimizer = pb.optim.SGD([w], lr=0.5, momentum=0.5)
    seen = []
    for _ in range(4):
        optimizer.zero_grad()
        (w * w / 2).backward()
        optimizer.step()
        seen.append(w.item())
    assert seen == [0.5, 0.0, -0.25, -0.25]


def test_the_first_step_of_adam_has_the_length_of_the_learning_rate():
    w = pb.tensor([100.0, -1e-3, 5.0], dtype=pb.float64, requires_grad=True)
    optimizer = pb.optim.Adam([w], lr=0.125, eps=0.0)
    (w * w).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(w.detach().numpy(), [99.875, 0.124, 4.875], rtol=1e-12)


def test_sgd_descends_on_a_complex_parameter():
    # The gradient of |z|**2 is 2 z: each step multiplies z by 1 - 2 * 0.25.
    z = pb.tensor([2.0 + 4.0j], dtype=pb.complex128, requires_grad=True)
    optimizer = pb.optim.SGD([z], lr=0.25)
    for expected in (1.0 + 2.0j, 0.5 + 1.0j):
        optimizer.zero_grad()
        z.abs().pow(2).sum().backward()
        optimizer.step()
        np.testing.assert_allclose(z.detach().numpy(), [expected], rtol=1e-14)


@pytest.mark.parametrize("amsgrad", [False, True])
def test_adam_treats_a_complex_parameter_as_its_real_and_imaginary_part(amsgrad):
    z = pb.tensor([2.0 - 3.0j, 0.5 + 1.0j], dtype=pb.complex128, requires_grad=True)
    x = pb.tensor([[2.0, -3.0], [0.5, 1.0]], dtype=pb.float64, requires_grad=True)
    of_z = pb.optim.Adam([z], lr=0.1, amsgrad=amsgrad)
    of_x = pb.optim.Adam([x], lr=0.1, amsgrad=amsgrad)
    for _ in range(10):
        of_z.zero_grad()
        of_x.zero_grad()
        (z.real.pow(2) + 3 * z.imag.pow(2)).sum().backward()
        (x[:, 0].pow(2) + 3 * x[:, 1].pow(2)).sum().backward()
        of_z.step()
        of_x.step()
    both = z.detach().numpy()
    parts = x.detach().numpy()
    np.testing.assert_allclose(both.real, parts[:, 0], rtol=1e-13)
    np.testing.assert_allclose(both.imag, parts[:, 1], rtol=1e-13)
    assert abs(both[0]) < 3.0


@pytest.mark.parametrize("optimizer_class", [pb.optim.SGD, pb.optim.Adam])
def test_a_step_keeps_the_dtype_of_the_parameter(optimizer_class):
    for dtype in (pb.float16, pb.float32, pb.float64):
        w = pb.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
        (w * w).sum().backward()
        optimizer_class([w], lr=0.25, weight_decay=0.5).step()
        assert w.dtype == dtype
        assert w.is_leaf
        assert w.requires_grad
