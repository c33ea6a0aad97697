"""Derivatives against central differences, along random directions."""

import numpy as np

import pullback as pb

STEP = 1e-5


def check_derivatives(f, *arrays, rtol=1e-6, second=True, forward=True):
    """Compare the derivatives of a function of arrays, of any result, with differences.

    The first derivative of a weighted sum of results, that of it in turn, and the tangent.
    """
    rng = np.random.default_rng(3)
    arrays = [np.asarray(a, float) if np.asarray(a).dtype.kind != "c" else a for a in arrays]
    directions = [_direction(rng, a) for a in arrays]
    shape = np.shape(pb.asarray(f(*map(pb.tensor, arrays))).detach())
    weights = rng.uniform(0.5, 1.5, shape)

    def number(*given):
        result = pb.asarray(f(*given))
        parts = pb.real(result) + 0.5 * pb.imag(result) if result.is_complex() else result
        return (parts * pb.asarray(weights)).sum()

    def slope(*given):
        leaves = [x if isinstance(x, pb.Tensor) else pb.tensor(x) for x in given]
        leaves = [x.detach().requires_grad_() for x in leaves]
        found = pb.autograd.grad(number(*leaves), leaves, create_graph=True, allow_unused=True)
        pairs = zip(found, directions, strict=True)
        terms = [pb.real(pb.conj(g) * pb.asarray(v)).sum() for g, v in pairs if g is not None]
        return sum(terms), leaves

    def moved(h):
        return [pb.tensor(a + h * v) for a, v in zip(arrays, directions, strict=True)]

    ahead, behind = moved(STEP), moved(-STEP)
    first, leaves = slope(*arrays)
    expected = (number(*ahead) - number(*behind)).item() / (2 * STEP)
    scale = 1 + abs(expected)
    assert abs(first.item() - expected) <= rtol * scale, (first.item(), expected)
    if forward:
        _, tangent = pb.jvp(number, tuple(moved(0)), tuple(map(pb.tensor, directions)))
        assert abs(tangent.item() - expected) <= rtol * scale, (tangent.item(), expected)
    if second and first.requires_grad:
        found = pb.autograd.grad(first, leaves, allow_unused=True)
        pairs = zip(found, directions, strict=True)
        mine = sum(
            pb.real(pb.conj(g) * pb.asarray(v)).sum().item() for g, v in pairs if g is not None
        )
        expected = (slope(*ahead)[0] - slope(*behind)[0]).item() / (2 * STEP)
        assert abs(mine - expected) <= 10 * rtol * (1 + abs(expected)), (mine, expected)


def _direction(rng, a):
    v = rng.normal(size=np.shape(a))
    return v + 1j * rng.normal(size=np.shape(a)) if np.asarray(a).dtype.kind == "c" else v
