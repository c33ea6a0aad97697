"""Pricing: demand, discounts, markdowns, revenue management, choice models, indices, offers."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import MISSING, REPEATED, Book, at, mends, t

BOOK = Book("pricing")


def orders(rng):
    quantity = np.array([40.0, 130.0, 260.0, 620.0]) + rng.uniform(0, 20, 4)
    return t(quantity), t(np.array([12.9, 11.4, 10.2, 9.1])), np.array([100.0, 250.0, 500.0])


@BOOK.wrong(
    lambda rng: (orders(rng), {}),
    "with all-units discounts the whole order goes to one rate, but the gradient of the rates is "
    "that of the incremental ones",
    at("mode"),
    r"all.units|whole (?:order|quantity|amount)|one rate|single rate",
    r"\bper block\b|\beach block|in (?:the|its) (?:own )?block|\bbrackets?\b",
    mends("np.bincount(s.block", "np.add.at(by_rates", "s.mode ==", "ctx.mode ==", "ctx.mode !="),
    where="mode is all-units",
    shows=lambda rng: (orders(rng), {"mode": "all-units"}),
)
def quantity_discount():
    @pb.autograd_function
    def quantity_discount(ctx, quantity, rates, breaks, mode="incremental"):
        """Cost of orders of some quantity: (n,).

        rates: (k,) price per piece in each block; breaks: (k - 1,) where the next block begins.
        mode: "incremental" (a rate counts for the pieces in its block) or "all-units" (the rate
        of the last block reached counts for the whole order).
        """
        q, r = quantity.numpy(), rates.numpy()
        if mode not in ("incremental", "all-units"):
            raise ValueError(f"unknown mode {mode!r}")
        lower = np.concatenate([[0.0], breaks])
        width = np.diff(np.append(lower, np.inf))
        pieces = np.clip(q[:, None] - lower, 0.0, width)
        block = np.digitize(q, breaks)
        ctx.save_for_backward(pieces=pieces, rate=r[block])
        return pb.asarray(pieces @ r if mode == "incremental" else q * r[block])

    @quantity_discount.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        return {"quantity": pb.asarray(gn * s.rate), "rates": pb.asarray(gn @ s.pieces)}

    return quantity_discount


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(3, 6, 4)), t(rng.uniform(2, 4, 4)), t(0.7)), {"size": 2500.0}),
    "what a price does to the shares of the other products is missing: only the own one is counted",
    MISSING,
    r"\bcross|other products?|other shares?|off.diagonal|\bown\b|jacobian|softmax|substitut",
    mends("(p - s.mean)", "(p - s.q @ p)", "(p - p @ s.q)", "- s.q * (", "(p - (s.q * p).sum())"),
)
def logit_revenue():
    class LogitRevenue(pb.Function):
        """Revenue from customers who choose one product or none by a logit model."""

        @staticmethod
        def forward(ctx, price, quality, sensitivity, size=1000.0):
            p, b = price.numpy(), sensitivity.item()
            utility = quality.numpy() - b * p
            top = max(utility.max(), 0.0)
            weight = np.exp(utility - top)
            q = weight / (np.exp(-top) + weight.sum())
            ctx.save_for_backward(price=price, q=q)
            ctx.b, ctx.size = b, size
            return pb.asarray(np.array(size * (p @ q)))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, flow = ctx.saved_variables, grad_output.item() * ctx.size
            p = s.price.numpy()
            by_utility = flow * s.q * (1 - s.q) * p
            by_price = flow * s.q - ctx.b * by_utility
            return pb.asarray(by_price), pb.asarray(by_utility), -(by_utility @ p), None

    return LogitRevenue.apply


def basket(rng, article):
    return (t(rng.uniform(0.8, 25, 6)), t(rng.uniform(1, 5, 4)), np.array(article)), {"vat": 0.19}


@BOOK.wrong(
    lambda rng: basket(rng, [4, 0, 2, 5]),
    "an article that comes more than once in the basket keeps the gradient of its last line only",
    REPEATED,
    r"add\.at|bincount|accumulat|\bscatter|last (?:line|occurrence|one)|overwrit",
    mends("np.add.at(", "np.bincount("),
    where="an article comes more than once",
    shows=lambda rng: basket(rng, [4, 0, 4, 4]),
)
def basket_lines():
    def forward(ctx, price, amount, article, vat=0.0):
        each = price.numpy()[article]
        ctx.save_for_backward(each=each, amount=amount)
        ctx.article, ctx.gross, ctx.size = article.copy(), 1 + vat, len(price.numpy())
        return pb.asarray(each * amount.numpy() * (1 + vat))

    @pb.once_differentiable
    def backward(ctx, g):
        s, gn = ctx.saved_variables, g.numpy() * ctx.gross
        by_price = np.zeros(ctx.size)
        by_price[ctx.article] += gn * s.amount.numpy()
        return {"price": pb.asarray(by_price), "amount": pb.asarray(gn * s.each)}

    return pb.autograd_function(forward, backward, name="basket_lines")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([19.9, 24.9, 17.5, 17.5, 29.9, 22.0]) + rng.uniform(-0.4, 0.4, 6)),
            t(210.0),
            t(21.0),
            t(0.65),
        ),
        {},
    )
)
def reference_demand():
    @pb.autograd_function
    def reference_demand(ctx, price, base, start, memory, slope=4.0, gain=1.5, loss=3.5):
        """Sales by week of customers who remember former prices.

        price: (n,); base: sales at no price; start: the price remembered at first; memory: 0 to 1.
        A price above the one remembered costs `loss` sales per unit; one below brings `gain`.
        """
        p, r, m = price.numpy(), start.item(), memory.item()
        remembered, weights, raw = np.empty_like(p), np.empty_like(p), np.empty_like(p)
        for k in range(len(p)):
            remembered[k] = r
            weights[k] = gain if r > p[k] else loss
            raw[k] = base.item() - slope * p[k] + weights[k] * (r - p[k])
            r = m * r + (1 - m) * p[k]
        ctx.save_for_backward(gap=remembered - p, weights=weights, sold=raw > 0)
        ctx.m, ctx.slope = m, slope
        return pb.asarray(np.maximum(raw, 0.0))

    @reference_demand.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, m = ctx.saved_variables, ctx.m
        flow = g.numpy() * s.sold
        by_price = -flow * (ctx.slope + s.weights)
        to_r = by_memory = 0.0
        for k in reversed(range(len(flow))):
            by_memory += to_r * s.gap[k]
            by_price[k] += (1 - m) * to_r
            to_r = m * to_r + flow[k] * s.weights[k]
        return {
            "price": pb.asarray(by_price),
            "base": flow.sum(),
            "start": to_r,
            "memory": by_memory,
        }

    return reference_demand


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(30, 45, 3)), t(rng.uniform(12, 20, 3)), t(rng.uniform(2, 8, 3))),
        {"mean": np.array([900.0, 140.0, 60.0]), "spread": np.array([210.0, 55.0, 12.0])},
    )
)
def newsvendor_order():
    @pb.autograd_function
    def newsvendor_order(ctx, price, cost, salvage, mean, spread):
        """Best order for one season with normal demand; salvage < cost < price, all (n,)."""
        p, c, v = price.numpy(), cost.numpy(), salvage.numpy()
        if not ((v < c) & (c < p)).all():
            raise ValueError("cost must lie between salvage and price")
        z = special.ndtri((p - c) / (p - v))
        ctx.rate = spread * np.sqrt(2 * np.pi) * np.exp(z**2 / 2) / (p - v)
        ctx.save_for_backward(over=(c - v) / (p - v), under=(p - c) / (p - v))
        return pb.asarray(mean + spread * z)

    @newsvendor_order.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, flow = ctx.saved_variables, g.numpy() * ctx.rate
        return {
            "price": pb.asarray(flow * s.over),
            "cost": pb.asarray(-flow),
            "salvage": pb.asarray(flow * s.under),
        }

    return newsvendor_order


@BOOK.right(
    lambda rng: (
        (
            t(np.array([620.0, 380.0, 350.0, 190.0]) + rng.uniform(-5, 5, 4)),
            t(np.array([22.0, 35.0, 41.0, 80.0])),
            t(np.array([8.0, 11.0, 14.0, 23.0])),
        ),
        {},
    )
)
def protection_levels():
    def later(x):
        return np.cumsum(x[::-1])[::-1]

    @pb.autograd_function
    def protection_levels(ctx, fares, mean, spread):
        """Seats kept from each lower class for all those above it, by the EMSR-b rule."""
        f, D, sd = fares.numpy(), mean.numpy(), spread.numpy()
        if min(f.min(), D.min(), sd.min()) <= 0:
            raise ValueError("fares, means and spreads must be positive")
        demand = np.cumsum(D)[:-1]
        average = np.cumsum(f * D)[:-1] / demand
        joint = np.sqrt(np.cumsum(sd**2)[:-1])
        ratio = np.minimum(f[1:] / average, 1.0)
        z = np.where(ratio < 1, special.ndtri(np.maximum(1 - ratio, 1e-300)), 0.0)
        level = np.where(ratio < 1, np.maximum(demand + joint * z, 0.0), 0.0)
        ctx.save_for_backward(fares, mean, spread, demand, average, joint, ratio, z, level > 0)
        return pb.asarray(level)

    @protection_levels.backward
    @pb.once_differentiable
    def _(ctx, g):
        fares, mean, spread, demand, average, joint, ratio, z, kept = ctx.saved_variables
        f, D, sd = fares.numpy(), mean.numpy(), spread.numpy()
        flow = np.where(kept, g.numpy(), 0.0)
        density = np.exp(-(np.where(kept, z, 0.0) ** 2) / 2) / np.sqrt(2 * np.pi)
        to_ratio = -flow * joint / density
        to_average = -to_ratio * ratio / average
        by_f, by_D, by_sd = np.zeros_like(f), np.zeros_like(D), np.zeros_like(sd)
        by_f[1:] = to_ratio / average
        by_f[:-1] += D[:-1] * later(to_average / demand)
        by_D[:-1] = f[:-1] * later(to_average / demand)
        by_D[:-1] += later(flow - to_average * average / demand)
        by_sd[:-1] = sd[:-1] * later(flow * z / joint)
        return tuple(map(pb.asarray, (by_f, by_D, by_sd)))

    return protection_levels


@BOOK.right(
    lambda rng: (
        (t(np.array([-4.0, 2.5, 9.0, 40.0])), t(rng.uniform(2, 30, 4)), t(0.35)),
        {},
    )
)
def logit_best_price():
    def forward(ctx, quality, cost, sensitivity):
        """Price with the highest profit of one product against buying nothing, logit demand."""
        a, c, b = quality.numpy(), cost.numpy(), sensitivity.item()
        if b <= 0:
            raise ValueError("sensitivity must be positive")
        # omega e^omega = e^(a - b c - 1), without the overflow
        omega = special.wrightomega(a - b * c - 1)
        markup = (1 + omega) / b
        ctx.save_for_backward(cost=cost, share=omega / (1 + omega), markup=markup)
        ctx.b = b
        return pb.asarray(c + markup)

    @pb.once_differentiable
    def backward(ctx, g):
        s, gn, b = ctx.saved_variables, g.numpy(), ctx.b
        return {
            "quality": pb.asarray(gn * s.share / b),
            "cost": pb.asarray(gn * (1 - s.share)),
            "sensitivity": -(gn @ (s.markup + s.share * s.cost.numpy())) / b,
        }

    return pb.autograd_function(forward, backward, name="logit_best_price")


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(700, 1100, 3)),
            t(np.array([[40.0, -9.0, -4.0], [-7.0, 33.0, -6.0], [-2.0, -11.0, 52.0]])),
            t(rng.uniform(6, 11, 3)),
        ),
        {},
    )
)
def rival_prices():
    @pb.autograd_function
    def rival_prices(ctx, potential, slopes, cost):
        """Prices at which no rival gains by another price; demand is potential - slopes @ price."""
        B, c = slopes.numpy(), cost.numpy()
        own = np.diag(B)
        M = B + np.diag(own)
        p = np.linalg.solve(M, potential.numpy() + own * c)
        ctx.save_for_backward(M=M, p=p, cost=cost, own=own.copy())
        return pb.asarray(p.copy())

    @rival_prices.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        z = np.linalg.solve(s.M.T, g.numpy())
        by_slopes = -np.outer(z, s.p) + np.diag(z * (s.cost.numpy() - s.p))
        return {
            "potential": pb.asarray(z),
            "slopes": pb.asarray(by_slopes),
            "cost": pb.asarray(s.own * z),
        }

    return rival_prices


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(1, 40, 5)),
            t(rng.uniform(1, 40, 5)),
            t(rng.uniform(100, 900, 5)),
            t(rng.uniform(100, 900, 5)),
        ),
        {"kind": "fisher"},
    )
)
def price_index():
    POWERS = {"laspeyres": (1.0, 0.0), "paasche": (0.0, 1.0), "fisher": (0.5, 0.5)}

    @pb.autograd_function
    def price_index(ctx, old_price, new_price, old_volume, new_volume, kind="laspeyres"):
        p0, p1 = old_price.numpy(), new_price.numpy()
        volumes = old_volume.numpy(), new_volume.numpy()
        index, before, after = 1.0, [], []
        for q, power in zip(volumes, POWERS[kind], strict=True):
            before.append(p0 @ q)
            after.append(p1 @ q)
            index *= (after[-1] / before[-1]) ** power
        ctx.save_for_backward(old_price, new_price, old_volume, new_volume)
        ctx.kind, ctx.index, ctx.before, ctx.after = kind, index, before, after
        return pb.asarray(np.array(index))

    @price_index.backward
    @pb.once_differentiable
    def _(ctx, g):
        p0, p1, *volumes = (v.numpy() for v in ctx.saved_variables)
        by_old, by_new, by_volume = np.zeros_like(p0), np.zeros_like(p1), []
        for k, power in enumerate(POWERS[ctx.kind]):
            weight = g.item() * ctx.index * power
            by_old -= weight * volumes[k] / ctx.before[k]
            by_new += weight * volumes[k] / ctx.after[k]
            by_volume.append(weight * (p1 / ctx.after[k] - p0 / ctx.before[k]))
        return (*map(pb.asarray, (by_old, by_new, *by_volume)), None)

    return price_index


@BOOK.right(
    lambda rng: ((t(rng.uniform(80, 400, 4)), t(np.array([0.12, 0.0, 0.05, 1.0, 0.02]))), {})
)
def discount_chain():
    class DiscountChain(pb.Function):
        """Prices: (n, k) after each of k discounts, which are taken one after the other."""

        @staticmethod
        def forward(ctx, listed, discounts):
            kept = 1 - discounts.numpy()
            after = listed.numpy()[:, None] * np.cumprod(kept)
            before = np.column_stack([listed.numpy(), after[:, :-1]])
            ctx.save_for_backward(kept=kept, before=before)
            return pb.asarray(after)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s, gn = ctx.saved_variables, g.numpy()
            to_price, by_discounts = np.zeros(len(gn)), np.zeros_like(s.kept)
            # backwards step by step: a discount of 100 % forbids dividing the product by it
            for k in range(len(s.kept))[::-1]:
                to_price = to_price + gn[:, k]
                by_discounts[k] = -(to_price @ s.before[:, k])
                to_price = to_price * s.kept[k]
            return pb.asarray(to_price), pb.asarray(by_discounts)

    return DiscountChain.apply


@BOOK.right(
    lambda rng: (
        (
            t(np.array([49.0, 39.0, 35.0, 29.0, 19.0]) + rng.uniform(-0.5, 0.5, 5)),
            t(np.array([120.0, 95.0, 80.0, 60.0, 45.0])),
            t(1.9),
            t(470.0),
        ),
        {"full": 59.0},
    )
)
def clearance_sales():
    @pb.autograd_function
    def clearance_sales(ctx, price, base, elasticity, stock, full=1.0):
        """Pieces sold by week until there are no more; also what is left in the end."""
        p, e, left = price.numpy(), elasticity.item(), stock.item()
        if (p <= 0).any():
            raise ValueError("prices must be positive")
        pull = (p / full) ** -e
        demand = base.numpy() * pull
        sold, short = np.empty_like(p), np.zeros(len(p), bool)
        for k, wanted in enumerate(demand):
            short[k] = wanted > left
            sold[k] = left if short[k] else wanted
            left = left - sold[k]
        ctx.save_for_backward(price=price, pull=pull, demand=demand, short=short, e=e, full=full)
        return pb.asarray(sold), pb.asarray(np.array(left))

    @clearance_sales.backward
    @pb.once_differentiable
    def _(ctx, g_sold, g_left):
        s, to_left, p = ctx.saved_variables, g_left.item(), ctx.saved_variables.price.numpy()
        by_demand = np.zeros_like(p)
        for k in reversed(range(len(p))):
            if s.short[k]:
                to_left = g_sold.numpy()[k]
            else:
                by_demand[k] = g_sold.numpy()[k] - to_left
        return {
            "price": pb.asarray(-by_demand * s.demand * s.e / p),
            "base": pb.asarray(by_demand * s.pull),
            "elasticity": -(by_demand * s.demand) @ np.log(p / s.full),
            "stock": to_left,
        }

    return clearance_sales


@BOOK.right(
    lambda rng: ((t(rng.uniform(90, 300, 4)), t(np.array([0.0, 0.55, 0.83, 0.97]))), {"years": 6})
)
def lifetime_value():
    @pb.autograd_function
    def lifetime_value(ctx, margin, retention, interest=0.1, years=None):
        """Present value of customers; margin: (n,) a year, retention: (n,) from year to year.

        years: whole number of yearly margins that count, the first of them at once; None: all.
        """
        m, x = margin.numpy(), retention.numpy() / (1 + interest)
        if years is None:
            if (np.abs(x) >= 1).any():
                raise ValueError("the sum over all years has no limit")
            terms, slope = 1 / (1 - x), 1 / (1 - x) ** 2
        else:
            year = np.arange(1, years)
            terms = (x[:, None] ** np.arange(years)).sum(axis=1)
            slope = (year * x[:, None] ** (year - 1)).sum(axis=1)
        ctx.save_for_backward(terms=terms, slope=m * slope / (1 + interest))
        return pb.asarray(m * terms)

    @lifetime_value.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        return {"margin": pb.asarray(gn * s.terms), "retention": pb.asarray(gn * s.slope)}

    return lifetime_value


@BOOK.right(
    lambda rng: (
        (
            t(np.array([79.0, 99.0, 129.0, 169.0]) + rng.uniform(-1, 1, 4)),
            t(np.array([0.62, 0.47, 0.31, 0.15]) + rng.uniform(-0.01, 0.01, 4)),
        ),
        {"rooms": 4, "periods": 9},
    )
)
def room_values():
    def forward(ctx, prices, chance, rooms, periods):
        """Expected revenue with 0 to `rooms` free rooms, and the best price of each to begin with.

        prices: (k,) that may be asked; chance: (k,) that a period brings a guest at such a price.
        """
        p, c = prices.numpy(), chance.numpy()
        value, steps = np.zeros(rooms + 1), []
        best = np.zeros(rooms, int)
        for _ in range(periods):
            gain = p[:, None] + value[:-1] - value[1:]
            best = (c[:, None] * gain).argmax(axis=0)
            gain = gain[best, np.arange(rooms)]
            steps.append((best, gain, c[best] * (gain > 0)))
            value[1:] = value[1:] + steps[-1][2] * gain
        ctx.steps, ctx.size = steps, len(p)
        return pb.asarray(value), pb.asarray(best.copy())

    @pb.once_differentiable
    def backward(ctx, g_value, g_best):
        to_value = g_value.numpy().copy()
        by_price, by_chance = np.zeros(ctx.size), np.zeros(ctx.size)
        for best, gain, rate in reversed(ctx.steps):
            flow = to_value[1:].copy()
            np.add.at(by_price, best, flow * rate)
            np.add.at(by_chance, best, flow * np.maximum(gain, 0.0))
            to_value[1:] -= flow * rate
            to_value[:-1] += flow * rate
        return {"prices": pb.asarray(by_price), "chance": pb.asarray(by_chance)}

    return pb.autograd_function(forward, backward, name="room_values")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(2, 30, 9)),),
        {"take": 3, "pay": 2, "eligible": np.array([1, 1, 0, 1, 1, 1, 0, 1, 1], bool)},
    )
)
def multibuy_total():
    @pb.autograd_function
    def multibuy_total(ctx, prices, take=3, pay=2, eligible=None):
        """Total of a basket and what the offer saves; of each full group the cheapest are free."""
        p = prices.numpy()
        chosen = np.arange(len(p)) if eligible is None else np.flatnonzero(eligible)
        dearest_first = chosen[np.argsort(-p[chosen], kind="stable")]
        place = np.arange(len(chosen))
        full = place < len(chosen) // take * take
        free = np.zeros(len(p), bool)
        free[dearest_first[full & (place % take >= pay)]] = True
        ctx.free = free
        return pb.asarray(np.array(p[~free].sum())), pb.asarray(np.array(p[free].sum()))

    @multibuy_total.backward
    @pb.once_differentiable
    def _(ctx, g_total, g_saved):
        return {"prices": pb.asarray(np.where(ctx.free, g_saved.item(), g_total.item()))}

    return multibuy_total


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(12, 30, 4)), t(rng.uniform(6, 11, 4)), t(rng.uniform(3e3, 9e3, 4)), t(1.8)),
        {},
    )
)
def elastic_profit():
    @pb.autograd_function
    def elastic_profit(ctx, price, cost, scale, elasticity):
        ctx.save_for_backward(price=price, cost=cost, scale=scale, elasticity=elasticity)
        return (price - cost) * scale * (-elasticity * price.log()).exp()

    @elastic_profit.backward
    def _(ctx, g):
        s = ctx.saved_variables
        margin = s.price - s.cost
        pull = (-s.elasticity * s.price.log()).exp()
        sales = s.scale * pull
        return {
            "price": g * sales * (1 - s.elasticity * margin / s.price),
            "cost": -g * sales,
            "scale": g * margin * pull,
            "elasticity": -(g * margin * sales * s.price.log()).sum(),
        }

    return elastic_profit
