"""Statistics: covariances, regression, robust estimates, densities, moments, copulas, weights."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import (
    FACTOR,
    FLOAT32,
    MISSING,
    SWAPPED,
    UNSORTED,
    Book,
    t,
)

BOOK = Book("statistics")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(6, 3))), t(0.3)), {}),
    "forward divides by n - 1, backward by n: the gradient of x is too small by that factor",
    FACTOR,
    r"n ?- ?1|number of (samples|rows)|\bddof|degrees? of freedom|\bBessel|\bunbiased",
)
def shrunk_covariance():
    @pb.autograd_function
    def shrunk_covariance(ctx, x, amount):
        """Sample covariance of x: (n, d), drawn towards its mean variance times the identity."""
        centred = x.numpy() - x.numpy().mean(axis=0)
        S = centred.T @ centred / (len(centred) - 1)
        aim = np.trace(S) / len(S) * np.eye(len(S))
        ctx.save_for_backward(centred=centred, amount=amount, apart=aim - S)
        return pb.asarray(S + amount.item() * (aim - S))

    @shrunk_covariance.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, G = ctx.saved_variables, g.numpy()
        a = s.amount.item()
        by_S = (1 - a) * G + a * np.trace(G) / len(G) * np.eye(len(G))
        return {
            "x": pb.asarray(s.centred @ (by_S + by_S.T) / len(s.centred)),
            "amount": (G * s.apart).sum(),
        }

    return shrunk_covariance


def cloud(d):
    def given(rng):
        return (t(rng.normal(size=(4, d))), t(rng.normal(size=(7, d))), t(0.8)), {}

    return given


@BOOK.wrong(
    cloud(1),
    "the normaliser is bandwidth^-d, its gradient is that of bandwidth^-1: the factor d is left "
    "out where there is more than one dimension",
    FACTOR,
    r"\bdimension|\bnormalis|\bnumber of columns|more than one column|\bd (>|other)",
    where="more than one dimension",
    shows=cloud(3),
)
def gaussian_kde():
    @pb.autograd_function
    def gaussian_kde(ctx, points: pb.Tensor, data: pb.Tensor, bandwidth: pb.Tensor) -> pb.Tensor:
        """Density at points: (m, d) estimated from data: (n, d)."""
        h, d = bandwidth.item(), points.shape[1]
        z = (points.numpy()[:, None] - data.numpy()) / h
        square = (z * z).sum(axis=2)
        share = np.exp(-0.5 * square) / (len(data) * (2 * np.pi) ** (d / 2) * h**d)
        ctx.save_for_backward(z=z, square=square, share=share, h=h)
        return pb.asarray(share.sum(axis=1))

    @gaussian_kde.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        flow = g.numpy()[:, None] * s.share / s.h
        pull = flow[:, :, None] * s.z
        return {
            "points": pb.asarray(-pull.sum(axis=1)),
            "data": pb.asarray(pull.sum(axis=0)),
            "bandwidth": (flow * (s.square - 1)).sum(),
        }

    return gaussian_kde


@BOOK.wrong(
    lambda rng: ((t(rng.gumbel(size=9)),), {}),
    "the gradient stays in sorted order; it is not put back into the order of the sample",
    UNSORTED,
    r"order of (the )?(sample|input|x)|\bargsort\b|\bput back",
)
def l_moments():
    @pb.autograd_function
    def l_moments(ctx, sample):
        """The first three L-moments of a sample: (n,)."""
        n, i = len(sample), np.arange(len(sample))
        first = i / (n - 1)
        second = first * (i - 1) / (n - 2)
        ctx.weights = np.stack([np.ones(n), 2 * first - 1, 6 * second - 6 * first + 1]) / n
        order = np.argsort(sample.numpy(), kind="stable")
        return pb.asarray(ctx.weights @ sample.numpy()[order])

    @l_moments.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"sample": pb.asarray(g.numpy() @ ctx.weights)}

    return l_moments


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=4)), t(rng.normal(size=4)), t(0.5 + rng.random(4))), {}),
    "the square of the mean is taken for a constant in the variance's gradient: its term is "
    "missing",
    MISSING,
    r"\bconstant\b|square of the mean|\bmean\b.{0,30}\b(squared?|depends)|\bterm\b",
)
def mixture_moments():
    @pb.autograd_function
    def mixture_moments(ctx, logits, means, variances):
        """Mean and variance of a mixture with weights softmax(logits)."""
        w = np.exp(logits.numpy() - logits.numpy().max())
        w /= w.sum()
        m = means.numpy()
        mean, raw = w @ m, variances.numpy() + m * m
        ctx.save_for_backward(means=means, w=w, raw=raw)
        return pb.asarray(np.asarray(mean)), pb.asarray(np.asarray(w @ raw - mean**2))

    @mixture_moments.backward
    @pb.once_differentiable
    def _(ctx, g_mean, g_variance):
        s, gm, gv = ctx.saved_variables, g_mean.item(), g_variance.item()
        m = s.means.numpy()
        by_w = gm * m + gv * s.raw
        return {
            "logits": pb.asarray(s.w * (by_w - s.w @ by_w)),
            "means": pb.asarray(s.w * (gm + 2 * gv * m)),
            "variances": pb.asarray(gv * s.w),
        }

    return mixture_moments


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.1, 0.9, 6)), t(rng.uniform(0.1, 0.9, 6)), t(1.6)), {}),
    "the power of the first margin was copied into the gradient of the second, which needs its own",
    SWAPPED,
    r"\bcop(y|ied)\b|other margin|\bwrong (margin|variable|argument)",
    r"`?first`?.{0,60}(in place of|instead of|where it needs).{0,30}`?second`?",
)
def clayton_density():
    @pb.autograd_function
    def clayton_density(ctx, first, second, theta):
        """Log density of Clayton's copula; first and second: (n,) in (0, 1), theta > 0."""
        u, v, a = first.numpy(), second.numpy(), theta.item()
        base = u**-a + v**-a - 1
        ctx.save_for_backward(first=first, second=second, theta=theta, base=base)
        both = np.log(u) + np.log(v)
        return pb.asarray(np.log1p(a) - (1 + a) * both - (2 + 1 / a) * np.log(base))

    @clayton_density.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        u, v, a = s.first.numpy(), s.second.numpy(), s.theta.item()
        by_base = (2 + 1 / a) / s.base
        powers = u**-a * np.log(u) + v**-a * np.log(v)
        by_theta = 1 / (1 + a) - np.log(u * v) + np.log(s.base) / a**2 + by_base * powers
        return {
            "first": pb.asarray(gn * (by_base * a * u ** (-a - 1) - (1 + a) / u)),
            "second": pb.asarray(gn * (by_base * a * u ** (-a - 1) - (1 + a) / v)),
            "theta": gn @ by_theta,
        }

    return clayton_density


def readings(offset):
    return lambda rng: ((t(offset + rng.normal(size=8)), t(0.5 + rng.random(8))), {})


@BOOK.wrong(
    readings(1.0),
    "the weights' gradient expands the square, so in float32 large values cancel",
    FLOAT32,
    r"\bcancel|\bround",
    where="float32",
    shows=readings(3000.0),
)
def weighted_spread():
    @pb.autograd_function
    def weighted_spread(ctx, values, weights):
        """Weighted variance of values: (n,)."""
        x, w = values.numpy(), weights.numpy()
        share = w / w.sum()
        mean = share @ x
        spread = share @ (x - mean) ** 2
        ctx.save_for_backward(values=values, share=share, mean=mean, spread=spread, total=w.sum())
        return pb.asarray(np.asarray(spread))

    @weighted_spread.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        x, gn = s.values.numpy(), g.numpy()
        by_weights = (x**2 - 2 * s.mean * x + s.mean**2 - s.spread) / s.total
        return {
            "values": pb.asarray(2 * gn * s.share * (x - s.mean)),
            "weights": pb.asarray(gn * by_weights),
        }

    return weighted_spread


@BOOK.right(
    lambda rng: (
        (t(np.append(rng.normal(size=7), 15.0)), t(1.2)),
        {"weights": t(0.5 + rng.random(8))},
    )
)
def robust_location():
    @pb.autograd_function
    def robust_location(ctx, sample, scale, weights=None, tol=1e-14):
        """The place where the pseudo-Huber loss of sample: (n,) is least."""
        x, c = sample.numpy(), scale.item()
        w = np.ones_like(x) if weights is None else weights.numpy()
        place = np.median(x)
        for _ in range(500):
            bent = w / np.sqrt(1 + ((x - place) / c) ** 2)
            step = bent @ (x - place) / bent.sum()
            place += step
            if abs(step) <= tol * max(1.0, abs(place)):
                break
        r = x - place
        ctx.r, ctx.c, ctx.w = r, c, w
        return pb.asarray(np.asarray(place))

    @robust_location.backward
    @pb.once_differentiable
    def _(ctx, g):
        root = np.sqrt(1 + (ctx.r / ctx.c) ** 2)
        curve = ctx.w / root**3
        flow = g.item() / curve.sum()
        return {
            "sample": pb.asarray(flow * curve),
            "scale": flow * (curve * ctx.r**3).sum() / ctx.c**3,
            "weights": pb.asarray(flow * ctx.r / root),
        }

    return robust_location


@BOOK.right(lambda rng: ((t(rng.normal(size=(9, 3))), t(rng.normal(size=9))), {}))
def least_squares_fit():
    @pb.autograd_function
    def least_squares_fit(ctx, design, response):
        """Coefficients, residuals and residual variance of a regression; design: (n, p)."""
        X, y = design.numpy(), response.numpy()
        Q, R = np.linalg.qr(X)
        coef = np.linalg.solve(R, Q.T @ y)
        rest = y - X @ coef
        ctx.R, ctx.coef, ctx.rest = R, coef, rest
        ctx.save_for_backward(design=design)
        variance = rest @ rest / (len(y) - len(coef))
        return pb.asarray(coef.copy()), pb.asarray(rest.copy()), pb.asarray(np.asarray(variance))

    @least_squares_fit.backward
    @pb.once_differentiable
    def _(ctx, g_coef, g_rest, g_variance):
        X = ctx.saved_variables.design.numpy()
        n, p = X.shape
        by_rest = g_rest.numpy() + 2 * g_variance.item() * ctx.rest / (n - p)
        by_coef = g_coef.numpy() - X.T @ by_rest
        lam = np.linalg.solve(ctx.R, np.linalg.solve(ctx.R.T, by_coef))
        by_fit = X @ lam
        by_X = np.outer(ctx.rest, lam) - np.outer(by_fit + by_rest, ctx.coef)
        return {"design": pb.asarray(by_X), "response": pb.asarray(by_rest + by_fit)}

    return least_squares_fit


@BOOK.right(lambda rng: ((t(rng.normal(size=(6, 2))), t(rng.normal(size=(6, 3)))), {}))
def distance_correlation():
    def centred(x):
        d = x[:, None] - x
        a = np.sqrt((d * d).sum(axis=2))
        return d, a, a - a.mean(axis=0) - a.mean(axis=1)[:, None] + a.mean()

    @pb.autograd_function
    def distance_correlation(ctx, x, y):
        """Squared distance correlation of paired samples x: (n, p) and y: (n, q)."""
        sides = [centred(v.numpy()) for v in (x, y)]
        A, B = sides[0][2], sides[1][2]
        own = (A * A).sum(), (B * B).sum()
        ctx.sides, ctx.own = sides, own
        ctx.value = (A * B).sum() / np.sqrt(own[0] * own[1])
        return pb.asarray(np.asarray(ctx.value))

    @distance_correlation.backward
    @pb.once_differentiable
    def _(ctx, g):
        root, grads = np.sqrt(ctx.own[0] * ctx.own[1]), []
        for k in (0, 1):
            d, a, A = ctx.sides[k]
            by_a = ctx.sides[1 - k][2] / root - ctx.value * A / ctx.own[k]
            pull = np.divide(by_a, a, out=np.zeros_like(a), where=a > 0)
            grads.append(pb.asarray(2 * g.item() * (pull[:, :, None] * d).sum(axis=1)))
        return tuple(grads)

    return distance_correlation


@BOOK.right(lambda rng: ((t(np.concatenate([rng.normal(size=4), [35.0, -35.0, 0.4]])),), {}))
def stick_breaking():
    @pb.autograd_function
    def stick_breaking(ctx, breaks: pb.Tensor) -> pb.Tensor:
        """Logarithms of n + 1 mixture weights; each break takes sigmoid(break) of what is left."""
        ctx.save_for_backward(breaks=breaks)
        none = pb.zeros(1, dtype=breaks.dtype)
        taken = pb.concat([-softplus(-breaks), none])
        left = pb.concat([none, pb.cumulative_sum(-softplus(breaks))])
        return taken + left

    def softplus(v):
        return pb.logaddexp(v, pb.zeros_like(v))

    @stick_breaking.backward
    def _(ctx, g):
        v = ctx.saved_variables.breaks
        later = pb.flip(pb.cumulative_sum(pb.flip(g, axis=0)), axis=0)[1:]
        return {"breaks": g[:-1] * pb.exp(-softplus(v)) - later * pb.exp(-softplus(-v))}

    return stick_breaking


@BOOK.right(lambda rng: ((t(rng.normal(size=(8, 3)) @ rng.normal(size=(3, 3))),), {"eps": 1e-3}))
def cholesky_whiten():
    @pb.autograd_function
    def cholesky_whiten(ctx, x, eps=1e-6):
        """Centre x: (n, d) and divide it by the Cholesky factor of its covariance."""
        xc = x.numpy() - x.numpy().mean(axis=0)
        S = xc.T @ xc / (len(xc) - 1) + eps * np.eye(xc.shape[1])
        L = np.linalg.cholesky(S)
        y = np.linalg.solve(L, xc.T).T
        ctx.save_for_backward(xc=xc, L=L, y=y.copy())
        return pb.asarray(y)

    @cholesky_whiten.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_xc = np.linalg.solve(s.L.T, g.numpy().T).T
        inner = np.tril(s.L.T @ -np.tril(by_xc.T @ s.y))
        inner[np.diag_indices_from(inner)] /= 2
        by_S = np.linalg.solve(s.L.T, np.linalg.solve(s.L.T, inner.T).T)
        by_xc += s.xc @ (by_S + by_S.T) / (len(s.xc) - 1)
        return {"x": pb.asarray(by_xc - by_xc.mean(axis=0))}

    return cholesky_whiten
