"""Finance: discounting, curves, option prices, portfolios, drawdowns, risk over sorted losses."""

from __future__ import annotations

import math

import numpy as np

import pullback as pb

from .entries import (
    FACTOR,
    FLOAT32,
    MISSING,
    Book,
    at,
    spd,
    t,
)

BOOK = Book("finance")


@BOOK.wrong(
    lambda rng: (
        (t(5 + rng.random(6)), t(0.12 + 0.1 * rng.random()), np.arange(1, 7) / 2),
        {},
    ),
    "the rate's gradient lacks the factor 1 / (1 + rate), as if interest were continuous",
    FACTOR,
    r"1 ?\+ ?`?(?:rate|r)\b|\bpower rule\b|\bexponent|\bcontinuous",
)
def present_value():
    @pb.autograd_function
    def present_value(ctx, cashflows: pb.Tensor, rate: pb.Tensor, times: np.ndarray) -> pb.Tensor:
        """Value today of cashflows: (n,) paid at times: (n,) in years, at a yearly rate."""
        discount = (1 + rate.item()) ** -times
        ctx.save_for_backward(cashflows=cashflows, discount=discount, times=times)
        return pb.asarray((cashflows.numpy() * discount).sum())

    @present_value.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.item()
        return {
            "cashflows": pb.asarray(g * s.discount),
            "rate": pb.asarray(-g * (s.times * s.cashflows.numpy() * s.discount).sum()),
        }

    return present_value


def normal_cdf(x):
    return np.array([0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x])


def options(rng):
    return (t(90 + 20 * rng.random(5)), t(90 + 20 * rng.random(5)), t(0.15 + 0.2 * rng.random(5)))


@BOOK.wrong(
    lambda rng: (options(rng), {"rate": 0.03, "expiry": 0.75}),
    'with kind="put" the gradients by spot and strike are still the call\'s',
    at("kind"),
    r"\bcall's\b|\bof (?:a|the) call\b|\bparity\b",
    where='kind="put"',
    shows=lambda rng: (options(rng), {"rate": 0.03, "expiry": 0.75, "kind": "put"}),
)
def black_scholes():
    @pb.autograd_function
    def black_scholes(ctx, spot, strike, volatility, rate=0.0, expiry=1.0, kind="call"):
        """Prices of European options; spot, strike and volatility: (n,)."""
        s, k, sigma = (v.numpy() for v in (spot, strike, volatility))
        width = sigma * math.sqrt(expiry)
        d1 = (np.log(s / k) + rate * expiry) / width + width / 2
        d2, discount = d1 - width, math.exp(-rate * expiry)
        sign = {"call": 1, "put": -1}[kind]
        ctx.save_for_backward(spot=s, d1=d1, d2=d2, discount=discount, expiry=expiry)
        return pb.asarray(sign * (s * normal_cdf(sign * d1) - discount * k * normal_cdf(sign * d2)))

    @black_scholes.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        density = np.exp(-(s.d1**2) / 2) / math.sqrt(2 * math.pi)
        return {
            "spot": pb.asarray(g * normal_cdf(s.d1)),
            "strike": pb.asarray(-g * s.discount * normal_cdf(s.d2)),
            "volatility": pb.asarray(g * s.spot * density * math.sqrt(s.expiry)),
        }

    return black_scholes


def binomial_tree(spot, sigma, dt, rate):
    """Return the prices after i steps as a function of i, the step upwards and its chance."""
    up = np.exp(sigma * math.sqrt(dt))
    chance = (math.exp(rate * dt) - 1 / up) / (up - 1 / up)
    return lambda i: spot * up ** heights(i, spot.dtype), up, chance


def heights(i, dtype):
    return (2 * np.arange(i + 1)[:, None] - i).astype(dtype)


@BOOK.right(
    lambda rng: (
        (t(90 + 20 * rng.random(3)), t(0.2 + 0.2 * rng.random(3))),
        {"strike": 100.0, "rate": 0.05, "expiry": 0.5, "steps": 12},
    )
)
def american_put():
    def forward(ctx, spot, volatility, strike=100.0, rate=0.0, expiry=1.0, steps=50):
        """Prices on a binomial tree; spot and volatility: (n,), one option each."""
        dt = expiry / steps
        prices, _, p = binomial_tree(spot.numpy(), volatility.numpy(), dt, rate)
        value = np.maximum(strike - prices(steps), 0)
        values, exercised, discount = [value], [value > 0], math.exp(-rate * dt)
        for i in range(steps - 1, -1, -1):
            kept = discount * (p * value[1:] + (1 - p) * value[:-1])
            exercised.append(strike - prices(i) > kept)
            value = np.where(exercised[-1], strike - prices(i), kept)
            values.append(value)
        ctx.save_for_backward(spot=spot, volatility=volatility)
        ctx.path, ctx.dt, ctx.rate = list(zip(values, exercised, strict=True))[::-1], dt, rate
        return pb.asarray(value[0].copy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, root, discount = ctx.saved_variables, math.sqrt(ctx.dt), math.exp(-ctx.rate * ctx.dt)
        spot = s.spot.numpy()
        prices, up, p = binomial_tree(spot, s.volatility.numpy(), ctx.dt, ctx.rate)
        g, by_price, by_log_up = grad_output.numpy()[None, :], 0.0, 0.0
        by_chance = np.zeros_like(spot)
        for i, (_, exercised) in enumerate(ctx.path):
            paid = np.where(exercised, -g * prices(i), 0)
            by_price = by_price + paid.sum(axis=0)
            by_log_up = by_log_up + (paid * heights(i, spot.dtype)).sum(axis=0)
            if i + 1 < len(ctx.path):
                kept, later = discount * np.where(exercised, 0, g), ctx.path[i + 1][0]
                by_chance = by_chance + (kept * (later[1:] - later[:-1])).sum(axis=0)
                g = np.pad(p * kept, ((1, 0), (0, 0))) + np.pad((1 - p) * kept, ((0, 1), (0, 0)))
        down, growth = 1 / up, math.exp(ctx.rate * ctx.dt)
        slope = (down * (up - down) - (growth - down) * (up + down)) / (up - down) ** 2
        sigma = root * (by_log_up + by_chance * slope)
        return {"spot": pb.asarray(by_price / spot), "volatility": pb.asarray(sigma)}

    return pb.autograd_function(forward, backward, name="american_put")


@BOOK.wrong(
    lambda rng: ((t(0.1 + rng.random(4)), t(0.04 * spd(rng, 4))), {}),
    "the volatility in the denominator is taken for a constant: its term is missing",
    MISSING,
    r"\bdenominator\b|\bvolatility\b|\bconstant\b|\bquotient\b",
)
def risk_contributions():
    @pb.autograd_function
    def risk_contributions(ctx, weights, covariance):
        """What each asset adds to the deviation of the portfolio; they sum up to it."""
        w, C = weights.numpy(), covariance.numpy()
        sigma = np.sqrt(w @ C @ w)
        ctx.save_for_backward(w=weights, C=covariance, sigma=sigma)
        return pb.asarray(w * (C @ w) / sigma)

    @risk_contributions.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        w, C = s.w.numpy(), s.C.numpy()
        return {
            "weights": pb.asarray((g * (C @ w) + C.T @ (g * w)) / s.sigma),
            "covariance": pb.asarray(np.outer(g * w, w) / s.sigma),
        }

    return risk_contributions


@BOOK.wrong(
    lambda rng: ((t(100 * np.exp(np.cumsum(0.03 * rng.normal(size=12)))),), {}),
    "only the trough gets a gradient; the term of the peak before it is missing",
    MISSING,
    r"\bpeaks?\b|\brunning max|\bhighest\b|\bearlier\b|\bdenominator\b",
)
def worst_drawdown():
    @pb.autograd_function
    def worst_drawdown(ctx, prices):
        """Largest loss from a peak, as a fraction of it; prices: (n,), positive."""
        p = prices.numpy()
        peaks = np.maximum.accumulate(p)
        loss = 1 - p / peaks
        ctx.at = int(loss.argmax())
        ctx.save_for_backward(prices=prices, peaks=peaks)
        return pb.asarray(loss[ctx.at])

    @worst_drawdown.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        grad = np.zeros(s.prices.shape)
        grad[ctx.at] = -grad_output.item() / s.peaks[ctx.at]
        return {"prices": pb.asarray(grad)}

    return worst_drawdown


@BOOK.wrong(
    lambda rng: ((t(0.01 + 0.02 * rng.normal(size=(2, 8))),), {"risk_free": 0.001}),
    "the deviation is divided by n - 1, its derivative by n: off by that factor",
    FACTOR,
    r"\bn ?- ?1\b|ddof|Bessel|degrees? of freedom|\bunbiased\b",
)
def sharpe_ratio():
    class SharpeRatio(pb.Function):
        @staticmethod
        def forward(ctx, returns, risk_free=0.0, periods=12):
            """Yearly ratio of mean to deviation, from returns: (b, n) by period."""
            excess = returns.numpy() - risk_free
            mean, std = excess.mean(axis=1), excess.std(axis=1, ddof=1)
            ctx.save_for_backward(excess=excess, mean=mean, std=std)
            ctx.scale = math.sqrt(periods)
            return pb.asarray(ctx.scale * mean / std)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, g = ctx.saved_variables, ctx.scale * grad_output.numpy()
            n = s.excess.shape[1]
            centred = s.excess - s.mean[:, None]
            by_std = centred / (n * s.std[:, None])
            grad = 1 / n / s.std[:, None] - (s.mean / s.std**2)[:, None] * by_std
            return {"returns": pb.asarray(g[:, None] * grad)}

    return SharpeRatio.apply


@BOOK.wrong(
    lambda rng: ((t(1e-4 + 2e-4 * rng.random(4)),), {}),
    "forward uses expm1, backward subtracts nearly equal numbers, which cancel in float32",
    FLOAT32,
    r"cancel|expm1|\bround(?:ing|ed)\b",
    where="float32",
)
def annuity_value():
    @pb.autograd_function
    def annuity_value(ctx, rate: pb.Tensor, payments: int = 360) -> pb.Tensor:
        """Value of payments of 1 at the end of each period; rate: (n,), by period."""
        r = rate.numpy()
        ctx.save_for_backward(rate=rate, payments=payments)
        return pb.asarray(-np.expm1(-payments * np.log1p(r)) / r)

    @annuity_value.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        r, n = ctx.saved_variables.rate.numpy(), ctx.saved_variables.payments
        discount = (1 + r) ** -n
        slope = (n * r * discount / (1 + r) - (1 - discount)) / r**2
        return {"rate": pb.asarray(grad_output.numpy() * slope)}

    return annuity_value


@BOOK.right(
    lambda rng: (
        (t([0.04, -0.02, 0.015] + 0.005 * rng.normal(size=3)), t(1.5 + rng.random())),
        {"maturities": t([0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0])},
    )
)
def nelson_siegel():
    def loadings(x):
        fall = (-x).exp()
        level = -(-x).expm1() / x
        return level, level - fall, fall

    @pb.autograd_function
    def nelson_siegel(ctx, betas: pb.Tensor, tau: pb.Tensor, maturities: pb.Tensor):
        """Yields at the maturities: (n,), above 0, for level, slope and curvature in betas."""
        ctx.save_for_backward(betas=betas, tau=tau, maturities=maturities)
        slope, curvature, _ = loadings(maturities / tau)
        return betas[0] + betas[1] * slope + betas[2] * curvature

    @nelson_siegel.backward
    def _(ctx, g):
        s = ctx.saved_variables
        x = s.maturities / s.tau
        slope, curvature, fall = loadings(x)
        bend = -curvature / x
        by_x = g * (s.betas[1] * bend + s.betas[2] * (bend + fall))
        return {
            "betas": pb.stack([g.sum(), (g * slope).sum(), (g * curvature).sum()]),
            "tau": -(by_x * x).sum() / s.tau,
            "maturities": by_x / s.tau,
        }

    return nelson_siegel


@BOOK.right(lambda rng: ((t(rng.standard_t(4, size=(2, 23))),), {"level": 0.85}))
def expected_shortfall():
    @pb.autograd_function
    def expected_shortfall(ctx, losses: pb.Tensor, level: float = 0.95):
        """Value at risk and mean of the worst losses: (b, n), a fraction 1 - level of them.

        The loss at the boundary counts with the part of it that belongs to the tail.
        """
        x = losses.numpy()
        tail = (1 - level) * x.shape[1]
        falling = np.argsort(-x, axis=1, kind="stable")
        share = np.clip(tail - np.arange(x.shape[1]), 0, 1) / tail
        edge = min(math.ceil(tail), x.shape[1]) - 1
        ranked = np.take_along_axis(x, falling, axis=1)
        ctx.falling, ctx.share, ctx.edge = falling, share.astype(x.dtype), edge
        return pb.asarray(ranked[:, edge].copy()), pb.asarray(ranked @ ctx.share)

    @expected_shortfall.backward
    @pb.once_differentiable
    def _(ctx, g_value, g_shortfall):
        ranked = g_shortfall.numpy()[:, None] * ctx.share
        ranked[:, ctx.edge] += g_value.numpy()
        grad = np.zeros_like(ranked)
        np.put_along_axis(grad, ctx.falling, ranked, axis=1)
        return {"losses": pb.asarray(grad)}

    return expected_shortfall


@BOOK.right(lambda rng: ((t(0.05 + 0.03 * rng.normal(size=4)), t(0.1 * spd(rng, 4)), t(3.0)), {}))
def efficient_weights():
    @pb.autograd_function
    def efficient_weights(ctx, mean, covariance, aversion):
        """Weights that sum to 1 and balance mean against risk, and the budget's price."""
        n = len(mean)
        system = np.ones((n + 1, n + 1), mean.numpy().dtype)
        system[:n, :n] = aversion.item() * covariance.numpy()
        system[n, n] = 0
        answer = np.linalg.solve(system, np.append(mean.numpy(), 1).astype(system.dtype))
        ctx.save_for_backward(covariance=covariance, aversion=aversion)
        ctx.system, ctx.weights = system, answer[:n].copy()
        return pb.asarray(answer[:n].copy()), pb.asarray(answer[n])

    @efficient_weights.backward
    @pb.once_differentiable
    def _(ctx, g_weights, g_price):
        s = ctx.saved_variables
        g = np.append(g_weights.numpy(), g_price.item()).astype(ctx.system.dtype)
        by_mean = np.linalg.solve(ctx.system.T, g)[:-1]
        outer = -np.outer(by_mean, ctx.weights)
        return {
            "mean": pb.asarray(by_mean.copy()),
            "covariance": pb.asarray(s.aversion.item() * outer),
            "aversion": pb.asarray((outer * s.covariance.numpy()).sum()),
        }

    return efficient_weights


@BOOK.right(
    lambda rng: (
        (t(95 + 10 * rng.random(3)), t(np.array([2, 2, 2, 102]) + rng.random((3, 4)))),
        {"times": t(np.arange(1, 5) / 2)},
    )
)
def yield_to_maturity():
    class YieldToMaturity(pb.Function):
        @staticmethod
        def forward(ctx, price, cashflows, times):
            """Solve price = sum(cashflows exp(-y times)) for y: (b,); cashflows: (b, n)."""
            p, c, years = price.numpy(), cashflows.numpy(), times.numpy()
            y = np.zeros_like(p)
            for _ in range(100):
                parts = c * np.exp(-y[:, None] * years)
                step = (parts.sum(axis=1) - p) / (parts * years).sum(axis=1)
                y = (y + step).astype(p.dtype)
                if np.abs(step).max() <= 32 * np.finfo(p.dtype).eps:
                    break
            else:
                raise ArithmeticError("yield_to_maturity: Newton's method did not converge")
            result = pb.asarray(y)
            ctx.save_for_backward(y=result, cashflows=cashflows, times=times)
            return result

        @staticmethod
        def backward(ctx, g):
            s = ctx.saved_variables
            y = s.y.unsqueeze(1)
            fall = (-y * s.times).exp()
            by_price = (-g / (s.cashflows * s.times * fall).sum(dim=1)).unsqueeze(1)
            return {
                "price": by_price.squeeze(1),
                "cashflows": -by_price * fall,
                "times": (by_price * y * s.cashflows * fall).sum(dim=0),
            }

    return YieldToMaturity.apply
