"""Advertising: carry-over, saturation, reach, attribution, click rates, bids, budgets, uplift."""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

import pullback as pb

from .entries import FACTOR, MASK, MISSING, Book, mends, t

BOOK = Book("advertising")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0, 90, 9)), t(0.4 + 0.3 * rng.random())), {"before": 20.0}),
    "the new spend is weighted with 1 - decay: that term of the decay's gradient is missing",
    MISSING,
    r"1 - (?:the )?decay|weight of (?:the )?(?:new )?spend|chain rule|product rule|both places",
    mends("- spend[k]", "- s.spend[k]", "- x[k]", "- ctx.spend[k]", "-x[k]"),
)
def carried_over():
    @pb.autograd_function
    def carried_over(ctx, spend, decay, before=0.0):
        """Effect of spend by week: (n,), which decays by a part (scalar, 0 to 1) each week."""
        x, keep, level = spend.numpy(), decay.item(), before
        out, earlier = np.empty_like(x), np.empty_like(x)
        for k in range(len(x)):
            earlier[k] = level
            level = out[k] = (1 - keep) * x[k] + keep * level
        ctx.save_for_backward(x=x, earlier=earlier, keep=keep)
        return pb.asarray(out)

    @carried_over.backward
    @pb.once_differentiable
    def _(ctx, g):
        x, earlier, keep = ctx.saved_variables
        by_spend, by_decay, carried = np.empty_like(x), 0.0, 0.0
        for k in reversed(range(len(x))):
            carried += g.numpy()[k]
            by_spend[k] = (1 - keep) * carried
            by_decay += carried * earlier[k]
            carried *= keep
        return {"spend": pb.asarray(by_spend), "decay": by_decay}

    return carried_over


def impressions(**settings):
    def given(rng):
        return (t(rng.normal(-2, 1.5, 8)), (rng.random(8) < 0.3).astype(float)), settings

    return given


@BOOK.wrong(
    impressions(),
    "backward divides by all rows, not by those that the mask leaves: wrong by a factor",
    FACTOR + r"|\bdivid",
    MASK,
    r"\bseen\b.{0,40}(?:count|number|sum)|(?:count|number) of .{0,20}(?:seen|rows)|\bmean\b",
    mends("ctx.seen.sum()", "ctx.count", "np.count_nonzero(", "used.sum()", "ctx.n "),
    where="some rows are masked",
    shows=impressions(seen=np.array([1, 1, 0, 1, 0, 0, 1, 1], bool)),
)
def click_loss():
    class ClickLoss(pb.Function):
        """Mean logistic loss of the impressions that were seen."""

        @staticmethod
        def forward(ctx, logit, clicked, seen=None, smoothing=0.0):
            z = logit.numpy()
            ctx.seen = np.ones(len(z), bool) if seen is None else seen
            target = clicked * (1 - smoothing) + smoothing / 2
            ctx.excess = special.expit(z) - target
            return pb.asarray(np.array((np.logaddexp(0, z) - target * z)[ctx.seen].mean()))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            flow = g.item() / len(ctx.excess)
            return pb.asarray(flow * np.where(ctx.seen, ctx.excess, 0.0)), None, None, None

    return ClickLoss.apply


def bidders(low, high):
    return lambda rng: (
        (t(rng.uniform(0.01, 0.05, 6)), t(rng.uniform(low, high, 6)), t(1.1)),
        {"highest": 2.5},
    )


@BOOK.wrong(
    bidders(20, 40),
    "a bid held at the highest does not change, but it gets a gradient as if nothing held it",
    r"\bcapp?(?:ed)?\b|clip|clamp|\bheld\b|saturat|minimum\b|np\.minimum|\blimit",
    r"(?:should|must|ought to) be (?:0|zero)|\bnon-?zero\b|\bvanish",
    mends("free", "< ctx.highest", "<= ctx.highest", "raw <", "< highest", "<= highest"),
    where="bids reach the highest",
    shows=bidders(60, 220),
)
def paced_bids():
    @pb.autograd_function
    def paced_bids(ctx, rate, value, pace, highest=5.0):
        r, v, m = rate.numpy(), value.numpy(), pace.item()
        ctx.save_for_backward(r=r, v=v, m=m)
        return pb.asarray(np.minimum(m * r * v, highest))

    @paced_bids.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        return {
            "rate": pb.asarray(gn * s.m * s.v),
            "value": pb.asarray(gn * s.m * s.r),
            "pace": gn @ (s.r * s.v),
        }

    return paced_bids


@BOOK.right(
    lambda rng: (
        (t(rng.gamma(1.0, 30, 10)), t(2.2 + rng.random()), t(1.3 + rng.random())),
        {"lags": 6},
    )
)
def delayed_effect():
    @pb.autograd_function
    def delayed_effect(ctx, spend, scale, shape, lags=13):
        """Spend spread over the weeks after it, by a Weibull distribution cut after `lags`.

        spend: (weeks,); scale (in weeks) and shape: positive scalars.
        """
        x, a, k = spend.numpy(), scale.item(), shape.item()
        edges = np.arange(lags + 1.0)
        z = (edges / a) ** k
        above = np.exp(-z)
        logs = np.log(edges / a, out=np.zeros(lags + 1), where=edges > 0)
        part = above[:-1] - above[1:]
        share = part / part.sum()
        ctx.save_for_backward(x=x, share=share, total=part.sum())
        ctx.by_scale, ctx.by_shape = np.diff(-above * z * k / a), np.diff(above * z * logs)
        return pb.asarray(np.convolve(x, share)[: len(x)])

    @delayed_effect.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        x, share, total = ctx.saved_variables
        gn, n = grad_output.numpy(), len(x)
        by_share = np.array([gn[j:] @ x[: max(n - j, 0)] for j in range(len(share))])
        by_part = (by_share - by_share @ share) / total
        return {
            "spend": pb.asarray(np.convolve(gn[::-1], share)[:n][::-1].copy()),
            "scale": by_part @ ctx.by_scale,
            "shape": by_part @ ctx.by_shape,
        }

    return delayed_effect


@BOOK.right(
    lambda rng: (
        (t(np.array([0.0, 12, 55, 90, 400]) * rng.uniform(0.9, 1, 5)), t(70.0), t(1.8), t(3.5)),
        {},
    )
)
def hill_response():
    def forward(ctx, spend, half, slope, top):
        x, k, s = np.maximum(spend.numpy(), 0.0), half.item(), slope.item()
        if k <= 0 or s < 1:
            raise ValueError("half must be positive, slope at least 1")
        power = (x / k) ** s
        y = power / (1 + power)
        logs = np.log(x / k, out=np.zeros_like(x), where=x > 0)
        by_x = (spend.numpy() >= 0) * s / k * (x / k) ** (s - 1) / (1 + power) ** 2
        ctx.save_for_backward(y=y, logs=logs, by_x=by_x)
        ctx.k, ctx.s, ctx.top = k, s, top.item()
        return pb.asarray(ctx.top * y)

    @pb.once_differentiable
    def backward(ctx, g):
        y, logs, by_x = ctx.saved_variables
        gn, bend = g.numpy(), y * (1 - y)
        return {
            "spend": pb.asarray(gn * ctx.top * by_x),
            "half": -ctx.top * ctx.s / ctx.k * (gn @ bend),
            "slope": ctx.top * (gn @ (bend * logs)),
            "top": gn @ y,
        }

    return pb.autograd_function(forward, backward, name="hill_response")


@BOOK.right(lambda rng: ((t(rng.uniform(0.4, 6, 4)), t(0.9)), {"contacts": 3}))
def effective_reach():
    @pb.autograd_function
    def effective_reach(ctx, mean, spread, contacts=1):
        """Part of the people with so many contacts at least (negative binomial)."""
        m, k = mean.numpy(), spread.item()
        p, harmonic = (k / (k + m)) ** k, 0.0
        below, by_m, by_k = np.zeros_like(m), np.zeros_like(m), np.zeros_like(m)
        for r in range(contacts):
            share = (k + r) / (k + m)
            below += p
            by_m = -p * share  # the sum so far telescopes
            by_k += p * (harmonic + np.log(k / (k + m)) + 1 - share)
            harmonic += 1 / (k + r)
            p = p * share * m / (r + 1)
        ctx.by_m, ctx.by_k = -by_m, -by_k
        return pb.asarray(1 - below)

    @effective_reach.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"mean": pb.asarray(g.numpy() * ctx.by_m), "spread": g.numpy() @ ctx.by_k}

    return effective_reach


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 4, 6)), t(rng.uniform(0.3, 1.2, 6)), t(np.array(0.6))),
        {"slots": 3},
    )
)
def click_prices():
    @pb.autograd_function
    def click_prices(ctx, bid, quality, reserve, slots=4):
        """Prices of a click: what keeps each ad ahead of the next one; 0 for ads not shown.

        bid, quality: (ads,), positive; reserve: the least bid times quality, scalar.
        """
        b, q = bid.numpy(), quality.numpy()
        score = b * q
        order = np.argsort(-score, kind="stable")
        order = order[score[order] >= reserve.item()]
        shown, chasers = order[:slots], order[1 : slots + 1]
        level = np.full(len(shown), reserve.item())
        level[: len(chasers)] = score[chasers]
        price = np.zeros_like(b)
        price[shown] = level / q[shown]
        ctx.save_for_backward(b=b, q=q, shown=shown, chasers=chasers, price=price.copy())
        return pb.asarray(price)

    @click_prices.backward
    @pb.once_differentiable
    def _(ctx, g):
        b, q, shown, chasers, price = ctx.saved_variables
        by_level = g.numpy()[shown] / q[shown]
        by_score = np.zeros_like(b)
        by_score[chasers] = by_level[: len(chasers)]
        by_quality = by_score * b - g.numpy() * price / q
        return {
            "bid": pb.asarray(by_score * q),
            "quality": pb.asarray(by_quality),
            "reserve": by_level[len(chasers) :].sum(),
        }

    return click_prices


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.02, 0.2, (4, 4))), t(rng.uniform(0.02, 0.1, 4))),
        {"start": np.array([0.4, 0.3, 0.2, 0.1])},
    )
)
def removal_shares():
    @pb.autograd_function
    def removal_shares(ctx, moves, converts, start):
        """Credit of each channel: its share in what is lost when a channel is taken away.

        moves: (channels, channels), from row to column; converts: (channels,); each row and its
        conversion sum to less than 1.
        """
        Q, r = moves.numpy(), converts.numpy()
        n, runs = len(r), []
        for gone in [None, *range(n)]:
            keep = np.arange(n) != (-1 if gone is None else gone)
            A = np.eye(n) - Q * keep * keep[:, None]
            after = np.linalg.solve(A, r * keep)
            runs.append((after, np.linalg.solve(A.T, start * keep)))
        total, *without = (start @ after for after, _ in runs)
        lost = 1 - np.array(without) / total
        ctx.runs, ctx.total, ctx.lost = runs, total, lost
        return pb.asarray(lost / lost.sum())

    @removal_shares.backward
    @pb.once_differentiable
    def _(ctx, g):
        lost, total = ctx.lost, ctx.total
        by_lost = (g.numpy() - g.numpy() @ lost / lost.sum()) / lost.sum()
        flows = np.append(by_lost @ (1 - lost), -by_lost) / total
        by_moves, by_converts = 0.0, 0.0
        for flow, (after, before) in zip(flows, ctx.runs, strict=True):
            by_moves = by_moves + flow * np.outer(before, after)
            by_converts = by_converts + flow * before
        return pb.asarray(by_moves), pb.asarray(by_converts), None

    return removal_shares


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 0.8, 11)), t(np.array(-3.1)), rng.integers(0, 10**6, (7, 3))),
        {"keep": 0.1},
    )
)
def hashed_click_rate():
    @pb.autograd_function
    def hashed_click_rate(ctx, weights, bias, ids, keep=1.0):
        """Click rates from weights of hashed ids: (rows, fields); undoes sampling of non-clicks."""
        fields = np.arange(ids.shape[1])
        slot = (ids * 2654435761 + 97 * fields) % len(weights)
        z = bias.item() + weights.numpy()[slot].sum(axis=1) + np.log(keep)
        p = special.expit(z)
        ctx.slot, ctx.size, ctx.slope = slot, len(weights), p * special.expit(-z)
        return pb.asarray(p)

    @hashed_click_rate.backward
    @pb.once_differentiable
    def _(ctx, g):
        flow = g.numpy() * ctx.slope
        by_weights = np.zeros(ctx.size)
        np.add.at(by_weights, ctx.slot, flow[:, None])
        return pb.asarray(by_weights), flow.sum(), None, None

    return hashed_click_rate


@BOOK.right(
    lambda rng: (
        (
            t(rng.gamma(1.0, 12, 9)),
            np.round(rng.random(9), 1),
            np.array([1, 0, 1, 1, 0, 0, 1, 0, 1]),
        ),
        {},
    )
)
def uplift_curve():
    class Uplift(pb.Function):
        @staticmethod
        def forward(ctx, revenue, score, treated):
            order = np.argsort(-score, kind="stable")
            y, w = revenue.numpy()[order], treated[order]
            ratio = np.cumsum(w) / np.maximum(np.cumsum(1 - w), 1)
            ctx.order, ctx.w, ctx.ratio = order, w, ratio
            return pb.asarray(np.cumsum(y * w) - np.cumsum(y * (1 - w)) * ratio)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            gn, grad = g.numpy(), np.empty(len(ctx.order))
            treated, others = (np.cumsum(v[::-1])[::-1] for v in (gn, gn * ctx.ratio))
            grad[ctx.order] = np.where(ctx.w == 1, treated, -others)
            return pb.asarray(grad), None, None

    return Uplift.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(20, 90, 5)), t(np.array([5.0, 9, 14, 60, 95])), t(np.array(55.0))),
        {},
    )
)
def best_split():
    def forward(ctx, gain, half, budget):
        """Split a budget so that sum(gain * log(1 + spend / half)) is largest."""
        a, b, B = gain.numpy(), half.numpy(), budget.item()
        if B <= 0 or (a <= 0).any() or (b <= 0).any():
            raise ValueError("gain, half and budget must be positive")
        order = np.argsort(-a / b)
        rates = np.cumsum(a[order]) / (B + np.cumsum(b[order]))
        used = order[: np.flatnonzero(a[order] / b[order] > rates).max() + 1]
        total, room = a[used].sum(), B + b[used].sum()
        spend = np.zeros_like(a)
        spend[used] = a[used] * room / total - b[used]
        ctx.save_for_backward(a=a, used=used, total=total, room=room)
        return pb.asarray(spend)

    @pb.once_differentiable
    def backward(ctx, g):
        a, used, total, room = ctx.saved_variables
        gn, by_gain, by_half = g.numpy()[used], np.zeros_like(a), np.zeros_like(a)
        mean = gn @ a[used] / total
        by_gain[used], by_half[used] = (gn - mean) * room / total, mean - gn
        return {"gain": pb.asarray(by_gain), "half": pb.asarray(by_half), "budget": mean}

    return pb.autograd_function(forward, backward, name="best_split")


@BOOK.right(
    lambda rng: (
        (t(np.array([1.0, 2.5, 4, 7, 12]) + 0.1 * rng.random(5)), t(0.8)),
        {"cap": 6},
    )
)
def repeated_contacts():
    @pb.autograd_function
    def repeated_contacts(ctx, contacts, wear, cap=None):
        """Effect of contacts, each `wear` times the one before; wear above 0, 1 for no wear."""
        n, c = contacts.numpy(), wear.item()
        if c <= 0:
            raise ValueError("wear must be positive")
        m = n if cap is None else np.minimum(n, cap)
        d = c - 1
        if abs(d) < 1e-4:
            two = m * (m - 1) / 2
            three, four = two * (m - 2) / 3, two * (m - 2) * (m - 3) / 12
            out, by_wear = m + two * d + three * d**2, two + 2 * three * d + 3 * four * d**2
        else:
            out = (c**m - 1) / d
            by_wear = (m * c ** (m - 1) - out) / d
        by_m = c**m * (np.log(c) / d if d else 1.0)
        ctx.by_contacts = by_m if cap is None else by_m * (n < cap)
        ctx.by_wear = by_wear
        return pb.asarray(out.copy())

    @repeated_contacts.backward
    @pb.once_differentiable
    def _(ctx, g):
        return pb.asarray(g.numpy() * ctx.by_contacts), g.numpy() @ ctx.by_wear, None

    return repeated_contacts


def conversions(rng):
    converted = np.array([1, 0, 0, 1, 0, 1, 0], bool)
    return (
        t(rng.normal(-1, 1, 7)),
        t(rng.normal(-1.5, 0.5, 7)),
        rng.gamma(1.5, 3, 7),
        converted,
    ), {"reduction": "sum"}


@BOOK.right(conversions)
def delayed_conversion():
    @pb.autograd_function
    def delayed_conversion(ctx, logit, log_rate, days, converted, reduction="mean"):
        """Loss of a model in which conversions come late.

        logit, log_rate: (n,); days: (n,), from the click to the conversion, or until now;
        reduction: "mean", "sum" or "none".
        """
        z, ll = logit.numpy(), log_rate.numpy()
        gone = np.exp(ll) * days
        late = np.logaddexp(0, z) - np.logaddexp(0, z - gone)
        each = np.where(converted, np.logaddexp(0, -z) - ll + gone, late)
        waiting = special.expit(z - gone)
        ctx.by_z = special.expit(z) - np.where(converted, 1.0, waiting)
        ctx.by_rate = np.where(converted, gone - 1, gone * waiting)
        ctx.scale = 1 / len(z) if reduction == "mean" else 1.0
        if reduction == "none":
            return pb.asarray(each)
        if reduction not in ("mean", "sum"):
            raise ValueError(f"unknown reduction {reduction!r}")
        return pb.asarray(np.array(each.sum() * ctx.scale))

    @delayed_conversion.backward
    @pb.once_differentiable
    def _(ctx, g):
        flow = g.numpy() * ctx.scale
        return {"logit": pb.asarray(flow * ctx.by_z), "log_rate": pb.asarray(flow * ctx.by_rate)}

    return delayed_conversion


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(2, 9, 4)), t(rng.normal(0.8, 0.4, 4)), t(rng.uniform(0.3, 0.9, 4))),
        {},
    )
)
def bids_below_value():
    def mills(b, mu, sigma):
        u = (np.log(b) - mu) / sigma
        return u, np.exp(special.log_ndtr(u) + u**2 / 2) * np.sqrt(2 * np.pi)

    def slope(b, v, mu, sigma):
        return v - b - b * sigma * mills(b, mu, sigma)[1]

    @pb.autograd_function
    def bids_below_value(ctx, value, mu, sigma):
        """Best bids where the winner pays his bid; the others' highest is log-normal."""
        sets = [*zip(value.numpy(), mu.numpy(), sigma.numpy(), strict=True)]
        bids = [optimize.brentq(slope, 1e-6 * s[0], s[0], s, xtol=1e-14, rtol=1e-14) for s in sets]
        ctx.save_for_backward(mu=mu, sigma=sigma, bid=np.array(bids))
        return pb.asarray(np.array(bids))

    @bids_below_value.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, b = ctx.saved_variables, ctx.saved_variables.bid
        u, ratio = mills(b, s.mu.numpy(), s.sigma.numpy())
        rise = 1 + u * ratio
        flow = grad_output.numpy() / (1 + s.sigma.numpy() * ratio + rise)
        return {
            "value": pb.asarray(flow),
            "mu": pb.asarray(flow * b * rise),
            "sigma": pb.asarray(flow * b * (u * rise - ratio)),
        }

    return bids_below_value


PATHS = [[0, 2, 2, 1], [3], [1, 0], [2, 3, 1, 1, 0]]


@BOOK.right(lambda rng: ((t(rng.uniform(20, 400, 4)), PATHS), {"mode": "position"}))
def touch_credit():
    @pb.autograd_function
    def touch_credit(ctx, value, paths, mode="linear", channels=None, half=2.0):
        size = 1 + max(map(max, paths)) if channels is None else channels
        ctx.shares = np.zeros((len(paths), size))
        for row, path in zip(ctx.shares, paths, strict=True):
            n, weight = len(path), np.zeros(len(path))
            if mode in ("first", "last"):
                weight[0 if mode == "first" else -1] = 1
            elif mode == "linear" or (mode == "position" and n < 3):
                weight[:] = 1
            elif mode == "position":
                weight[:] = 0.2 / (n - 2)
                weight[[0, -1]] = 0.4
            elif mode == "decay":
                weight = 0.5 ** (np.arange(n)[::-1] / half)
            else:
                raise ValueError(f"no mode {mode!r}")
            np.add.at(row, path, weight / weight.sum())
        return pb.asarray(value.numpy() @ ctx.shares)

    @touch_credit.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"value": pb.asarray(ctx.shares @ g.numpy())}

    return touch_credit
