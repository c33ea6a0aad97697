"""Auctions: bids and shading, reserves, revenue, smoothed allocations, learning of values."""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

import pullback as pb

from .entries import FACTOR, IGNORED, TIES, Book, at, mends, t

BOOK = Book("auctions")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(1, 5, (3, 4))), t(rng.uniform(0.5, 1.5, 4))), {}),
    "backward takes the incoming gradient for ones: it ignores it for the boosts",
    IGNORED,
    mends("gn[:, None] * s.shares", "(gn[:, None]", "gn @ s.shares", "s.shares * gn[:, None]"),
)
def softmax_welfare():
    @pb.autograd_function
    def softmax_welfare(ctx, bids, boosts, temperature=0.5):
        """Soft maximum of boosted bids: (rounds, bidders), by round."""
        scored = bids.numpy() + boosts.numpy()
        shares = special.softmax(scored / temperature, axis=1)
        ctx.save_for_backward(shares=shares)
        return pb.asarray(temperature * special.logsumexp(scored / temperature, axis=1))

    @softmax_welfare.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        return {
            "bids": pb.asarray(gn[:, None] * s.shares),
            "boosts": pb.asarray(s.shares.sum(axis=0)),
        }

    return softmax_welfare


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.2, 0.9, 5)), t(0.1), t(1.3)), {"rivals": 3}),
    "the exponent of the rivals' distribution: (rivals - 1) is used as the factor, not rivals",
    FACTOR + r"|multipl|exponent|\bpower\b",
    mends(
        "s.rivals * s.k",
        "s.k * s.rivals",
        "rivals * F",
        "s.rivals * s.F",
        "s.rivals / s.b",
        "s.rivals * chance",
    ),
)
def first_price_profit():
    @pb.autograd_function
    def first_price_profit(ctx, bid, cost, shape, rivals=2):
        """Expected profit of bids below a value of 1, against rivals with F(b) = b^shape."""
        b, c, k = bid.numpy(), cost.item(), shape.item()
        chance = b ** (k * rivals)
        ctx.save_for_backward(b=b, margin=1 - c - b, k=k, chance=chance, rivals=rivals)
        return pb.asarray((1 - c - b) * chance)

    @first_price_profit.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_chance = gn * s.margin
        by_bid = by_chance * s.k * (s.rivals - 1) * s.chance / s.b - gn * s.chance
        return {
            "bid": pb.asarray(by_bid),
            "cost": -(gn @ s.chance),
            "shape": by_chance @ (s.chance * s.rivals * np.log(s.b)),
        }

    return first_price_profit


def lots(low):
    def given(rng):
        bids = np.array([[5.0, 3.0, 1.0], [2.5, 6.0, 4.0], [1.2, 0.7, 3.9]])
        return (t(bids + rng.uniform(-0.1, 0.1, (3, 3))), t(low + 0.1 * rng.random(3))), {}

    return given


@BOOK.wrong(
    lots(0.2),
    "where the reserve is above the second bid it is the price, but the second bid gets the "
    "gradient",
    r"\breserves?\b.{0,50}(?:above|binds?|binding|price|branch|exceed|no gradient|zero|all 0)",
    r"\bbranch|\bbinds?\b|\bbinding\b|\bmaximum\b|\bnp\.where\b|\bcondition",
    mends(
        "r > second",
        "second < r",
        "s.reserve > s.second",
        "s.second < s.reserve",
        "reserve >= ",
        "second >= ",
    ),
    where="reserve above the second bid",
    shows=lots(3.5),
)
def reserve_price_revenue():
    @pb.autograd_function
    def reserve_price_revenue(ctx, bids, reserve):
        """Revenue of lots: (lots, bidders) sold at the second bid or the reserve: (lots,)."""
        b, r = bids.numpy(), reserve.numpy()
        order = np.argsort(-b, axis=1, kind="stable")
        rows = np.arange(len(b))
        first, second = b[rows, order[:, 0]], b[rows, order[:, 1]]
        sold = first >= r
        ctx.rows, ctx.runner_up, ctx.sold, ctx.shape = rows, order[:, 1], sold, b.shape
        return pb.asarray(np.where(sold, np.maximum(second, r), 0.0))

    @reserve_price_revenue.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad = np.zeros(ctx.shape)
        grad[ctx.rows, ctx.runner_up] = g.numpy() * ctx.sold
        return {"bids": pb.asarray(grad), "reserve": pb.asarray(np.zeros(ctx.shape[0]))}

    return reserve_price_revenue


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(1, 3, 4)), t(rng.uniform(0.1, 0.9, 4))), {}),
    "the chain rule through the discount of later slots is left out, as if all were the first slot",
    at("slot"),
    r"discount|\bpositions?\b|first slot|chain rule|visib|" + FACTOR,
    mends("* ctx.weight", "ctx.weight *", "s.weight"),
    where="slot other than 0",
    shows=lambda rng: ((t(rng.uniform(1, 3, 4)), t(rng.uniform(0.1, 0.9, 4))), {"slot": 2}),
)
def sponsored_value():
    @pb.autograd_function
    def sponsored_value(ctx, bid, quality, slot=0, decay=0.7):
        """Expected payment of adverts by slot; clicks decay with the slot, softly capped."""
        weight = decay**slot
        clicks = np.tanh(quality.numpy() * weight)
        ctx.save_for_backward(bid=bid, clicks=clicks)
        return pb.asarray(bid.numpy() * clicks)

    @sponsored_value.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_quality = s.bid.numpy() * (1 - s.clicks**2)
        return {
            "bid": pb.asarray(gn * s.clicks),
            "quality": pb.asarray(gn * by_quality),
        }

    return sponsored_value


def lot_values(bids):
    def given(rng):
        return (t(np.array(bids)), t(rng.uniform(0.4, 0.9, 4))), {}

    return given


@BOOK.wrong(
    lot_values([4.0, 2.0, 3.0, 1.0]),
    "bidders that are tied share the lot, but each gets the whole gradient of its value",
    TIES,
    r"\bshared?\b.{0,40}(?:gradient|divid|among|between)|divid\w+|\bcount\b|number of winners",
    mends("/ ctx.winners.sum()", "/ ctx.count", "ctx.winners / ctx.winners.sum()"),
    where="ties",
    shows=lot_values([4.0, 2.0, 4.0, 1.0]),
)
def fair_allocation():
    def forward(ctx, bids, value):
        """Welfare of a lot split evenly among the highest bids; bids only decide who wins."""
        b = bids.numpy()
        winners = b == b.max()
        ctx.winners = winners
        return pb.asarray(np.array(value.numpy()[winners].mean())), pb.asarray(np.array(b.sum()))

    @pb.once_differentiable
    def backward(ctx, g_welfare, g_total):
        return {
            "bids": pb.asarray(np.full(len(ctx.winners), g_total.item())),
            "value": pb.asarray(g_welfare.item() * ctx.winners),
        }

    return pb.autograd_function(forward, backward, name="fair_allocation")


@BOOK.right(lambda rng: ((t(rng.uniform(0.3, 1, 6)), t(0.25), t(1.4)), {}))
def shaded_bids():
    @pb.autograd_function
    def shaded_bids(ctx, value, reserve, shape, rivals=3):
        """Equilibrium bids of a first-price auction with F(v) = v^shape and a reserve."""
        v, r = value.numpy(), reserve.item()
        if (v < r).any():
            raise ValueError("values lie above the reserve")
        m = rivals * shape.item()
        ratio = (r / v) ** m
        ctx.v, ctx.r, ctx.m, ctx.rivals, ctx.ratio = v, r, m, rivals, ratio
        return pb.asarray((m * v + r * ratio) / (m + 1))

    @shaded_bids.backward
    @pb.once_differentiable
    def _(ctx, g):
        v, r, m, gn = ctx.v, ctx.r, ctx.m, g.numpy()
        by_m = (v + r * ctx.ratio * np.log(r / v)) / (m + 1) - (m * v + r * ctx.ratio) / (
            m + 1
        ) ** 2
        return {
            "value": pb.asarray(gn * m * (1 - r / v * ctx.ratio) / (m + 1)),
            "reserve": gn @ ctx.ratio,
            "shape": gn @ by_m * ctx.rivals,
        }

    return shaded_bids


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 2, (4, 3))), t(rng.uniform(1, 4, 4))),
        {"rounds": 500},
    )
)
def market_clearing_prices():
    @pb.autograd_function
    def market_clearing_prices(ctx, weights, budgets, rounds=200, tol=1e-14):
        """Equilibrium prices of a Fisher market with CES 1/2 buyers, by tatonnement."""
        a, m = weights.numpy(), budgets.numpy()
        p = np.full(a.shape[1], m.sum() / a.shape[1])
        for _ in range(rounds):
            spend = a**2 / p
            share = spend / spend.sum(axis=1, keepdims=True)
            new = np.sqrt(p * (m @ share))
            done = np.abs(new - p).max() < tol * p.max()
            p = new
            if done:
                break
        spend = a**2 / p
        ctx.share = spend / spend.sum(axis=1, keepdims=True)
        ctx.a, ctx.m, ctx.p = a, m, p
        return pb.asarray(p.copy())

    @market_clearing_prices.backward
    @pb.once_differentiable
    def _(ctx, g):
        share, m, p = ctx.share, ctx.m, ctx.p
        # p = m @ share(a, p); share falls with log p as a softmax does
        by_log = np.diag(m @ share) - share.T @ (m[:, None] * share)
        z = np.linalg.solve((np.eye(len(p)) + by_log / p).T, g.numpy())
        centred = share * (z - (share @ z)[:, None])
        return {
            "weights": pb.asarray(2 * m[:, None] * centred / ctx.a),
            "budgets": pb.asarray(share @ z),
        }

    return market_clearing_prices


@BOOK.right(lambda rng: ((t(rng.normal(1, 0.3, 5)), t(rng.normal(1, 0.3, 5))), {}))
def regret():
    @pb.autograd_function
    def regret(ctx, utility_true, utility_best):
        """Positive part of what another bid would have gained."""
        gain = utility_best - utility_true
        ctx.save_for_backward(positive=gain > 0)
        return gain.clamp(min=0)

    @regret.backward
    def _(ctx, g):
        kept = g * ctx.saved_variables.positive
        return {"utility_true": -kept, "utility_best": kept}

    return regret


@BOOK.right(
    lambda rng: ((t(rng.permutation(8) + rng.random(8)), t(0.8)), {"units": 3}),
)
def rejected_bid_price():
    @pb.autograd_function
    def rejected_bid_price(ctx, bids, markdown, units=2):
        """Revenue of some units sold at the highest rejected bid, marked down; and the price."""
        b = bids.numpy()
        if not 0 < units < len(b):
            raise ValueError("there must be more bids than units")
        marginal = np.argpartition(-b, units)[units]
        ctx.marginal, ctx.n, ctx.units = marginal, len(b), units
        ctx.down, ctx.top = markdown.item(), b[marginal]
        price = ctx.down * ctx.top
        return pb.asarray(np.array(units * price)), pb.asarray(np.array(price))

    @rejected_bid_price.backward
    @pb.once_differentiable
    def _(ctx, g_revenue, g_price):
        by_price = ctx.units * g_revenue.item() + g_price.item()
        grad = np.zeros(ctx.n)
        grad[ctx.marginal] = by_price * ctx.down
        return {"bids": pb.asarray(grad), "markdown": by_price * ctx.top}

    return rejected_bid_price


@BOOK.right(lambda rng: ((t(rng.normal(size=6)), t(0.2), t(0.7)), {"won": np.arange(6) % 2}))
def win_likelihood():
    class WinLikelihood(pb.Function):
        """Negative log likelihood of wins under lognormal rivals; log_bid: (n,), won: 0 or 1."""

        @staticmethod
        def forward(log_bid, location, spread, won):
            sign = 2 * np.asarray(won) - 1
            z = sign * (log_bid.numpy() - location.item()) / spread.item()
            return pb.asarray(np.array(-special.log_ndtr(z).sum()))

        @staticmethod
        def setup_context(ctx, inputs, output):
            log_bid, location, spread, won = inputs
            ctx.sign = 2 * np.asarray(won) - 1
            ctx.u = (log_bid.numpy() - location.item()) / spread.item()
            ctx.spread = spread.item()

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            z = ctx.sign * ctx.u
            hazard = np.exp(-0.5 * z**2 - special.log_ndtr(z)) / np.sqrt(2 * np.pi)
            by_u = -g.item() * ctx.sign * hazard / ctx.spread
            return {
                "log_bid": pb.asarray(by_u),
                "location": -by_u.sum(),
                "spread": -(by_u @ ctx.u),
            }

    return WinLikelihood.apply


@BOOK.right(lambda rng: ((t(rng.uniform(1, 2, 3)), t(rng.uniform(0.5, 1.5, 3))), {}))
def optimal_reserve():
    def virtual(r, scale, shape):
        return r - scale / shape * (r / scale) ** (1 - shape)

    @pb.autograd_function
    def optimal_reserve(ctx, scale, excess):
        """Myerson's reserve for Weibull values of shape 1 + excess, by Brent's method."""
        s, k = scale.numpy(), 1 + excess.numpy()
        found = [
            optimize.brentq(virtual, 1e-3 * a, 10 * a, args=(a, b), xtol=1e-14, rtol=1e-14)
            for a, b in zip(s, k, strict=True)
        ]
        ctx.s, ctx.k = s, k
        return pb.asarray(np.array(found))

    @optimal_reserve.backward
    @pb.once_differentiable
    def _(ctx, g):
        # the root is scale * shape^(-1 / shape), which the search need not know
        k, gn = ctx.k, g.numpy()
        unit = k ** (-1 / k)
        return {
            "scale": pb.asarray(gn * unit),
            "excess": pb.asarray(gn * ctx.s * unit * (np.log(k) - 1) / k**2),
        }

    return optimal_reserve


@BOOK.right(lambda rng: ((t(rng.uniform(1, 4, (2, 5))),), {"paid": np.array([0, 3, 3, 1])}))
def settle_payments():
    @pb.autograd_function
    def settle_payments(ctx, offers, paid, fee=0.05):
        """Offers of the listed lots, less the fee; a lot may be listed more than once."""
        index = np.asarray(paid, dtype=np.intp)
        ctx.index, ctx.shape, ctx.keep = index, offers.shape, 1 - fee
        return pb.asarray(ctx.keep * offers.numpy()[:, index])

    @settle_payments.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad = np.zeros(ctx.shape)
        np.add.at(grad, (slice(None), ctx.index), ctx.keep * g.numpy())
        return {"offers": pb.asarray(grad)}

    return settle_payments


@BOOK.right(lambda rng: ((t(rng.uniform(2, 5, 5)), t(rng.uniform(0.1, 0.5, 5)), 3.3), {}))
def descending_clock():
    @pb.autograd_function
    def descending_clock(ctx, start, step, stop, sharpness=4.0):
        """Soft chance that each Dutch clock has gone below `stop` after three ticks."""
        height = (start - 3 * step - stop) * sharpness
        chance = 1 / (1 + height.exp())
        ctx.save_for_backward(start=start, step=step)
        ctx.stop, ctx.sharpness = stop, sharpness
        return chance

    @descending_clock.backward
    def _(ctx, g):
        start, step = ctx.saved_variables
        height = (start - 3 * step - ctx.stop) * ctx.sharpness
        up, down = 1 / (1 + (-height).exp()), 1 / (1 + height.exp())
        by_height = -g * up * down * ctx.sharpness
        return {"start": by_height, "step": -3 * by_height}

    return descending_clock
