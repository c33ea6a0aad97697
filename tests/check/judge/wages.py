"""Wages: tariffs of tax, withholding, contributions, overtime, scales, credits, pensions."""

from __future__ import annotations

import numpy as np
from scipy import optimize

import pullback as pb

from .entries import FACTOR, Book, at, mends, t

BOOK = Book("wages")

ZONES = (12096.0, 17443.0, 68480.0, 277825.0)


def tariff(x):
    """Return the German income tax for taxable incomes in euros, and the marginal rates."""
    first = np.clip(x - ZONES[0], 0, ZONES[1] - ZONES[0]) / 1e4
    second = np.clip(x - ZONES[1], 0, ZONES[2] - ZONES[1]) / 1e4
    tax = (932.3 * first + 1400) * first + (176.64 * second + 2397) * second
    tax = tax + 0.42 * np.maximum(x - ZONES[2], 0) + 0.03 * np.maximum(x - ZONES[3], 0)
    zone = np.searchsorted(ZONES, x, side="right")
    steep = ((1864.6 * first + 1400) / 1e4, (353.28 * second + 2397) / 1e4)
    return tax, np.choose(zone, (0.0, *steep, 0.42, 0.45))


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(15e3, 180e3, 6)), t(np.array([0.10, 0.12, 0.22, 0.24]))),
        {"lower": np.array([0.0, 11600.0, 47150.0, 100525.0])},
    ),
    "a rate's gradient takes all income above the floor, not what lies in the bracket",
    r"\b(?:upper|top|end|width|ceiling|next) .{0,30}bracket|in the bracket",
    r"bracket.{0,30}(?:width|upper)",
    r"\bclip|\bclamp|\bcapped\b|\bwidth|upper (?:limit|bound|end)|\bminimum\b",
    mends("gn @ s.parts", "s.parts.T", "gn @ ctx.parts", "np.clip(", "np.minimum("),
)
def bracket_tax():
    @pb.autograd_function
    def bracket_tax(ctx, income, rates, lower):
        """Tax by brackets; income: (n,), rates: (k,), lower: (k,) floors, ascending."""
        x = np.maximum(income.numpy()[:, None] - lower, 0.0)
        parts = np.minimum(x, np.append(np.diff(lower), np.inf))
        bracket = np.searchsorted(lower, income.numpy(), side="right")
        ctx.save_for_backward(x=x, marginal=np.append(0.0, rates.numpy())[bracket])
        return pb.asarray(parts @ rates.numpy())

    @bracket_tax.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        return {"income": pb.asarray(gn * s.marginal), "rates": pb.asarray(gn @ s.x)}

    return bracket_tax


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(20e3, 95e3, 6)), t(np.array(12570.0))), {}),
    "above the limit more income lessens the allowance: that taper is left out",
    r"taper|withdr|\b1\.5\b|100[ ,]000|lessens|shrinks|reduc(?:ed|es|tion)",
    FACTOR,
    mends("1 + 0.5 *", "1.5", "0.5 * s.tapered", "s.tapered", "(1 + s.", "+ 0.5 *"),
    where="income lies between 100000 and 125140",
    shows=lambda rng: ((t(rng.uniform(101e3, 124e3, 6)), t(np.array(12570.0))), {}),
)
def allowance_tax():
    @pb.autograd_function
    def allowance_tax(ctx, income, allowance, basic=0.2, higher=0.4, band=37700.0, limit=1e5):
        """Income tax in pounds a year; the allowance falls by 1 for each 2 above the limit."""
        x = income.numpy()
        free = np.maximum(allowance.item() - np.maximum(x - limit, 0.0) / 2, 0.0)
        taxed = np.maximum(x - free, 0.0)
        rate = np.where(taxed > band, higher, basic) * (taxed > 0)
        ctx.save_for_backward(rate=rate, has_free=free > 0)
        return pb.asarray(basic * taxed + (higher - basic) * np.maximum(taxed - band, 0.0))

    @allowance_tax.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        flow = grad_output.numpy() * s.rate
        return {"income": pb.asarray(flow), "allowance": -(flow * s.has_free).sum()}

    return allowance_tax


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(18e3, 120e3, 5)), t(rng.uniform(0, 8e3, 5))), {}),
    "the tax on wages scales up and down again: the gradient of gross lacks the factor periods",
    FACTOR + r"|multipl|divided by",
    at("periods"),
    r"annuali|a year's|per year|cancel|chain rule",
    mends("flow * s.periods", "s.periods * ", "* ctx.periods", "s.marginal)"),
    where="periods is not 1",
    shows=lambda rng: (
        (t(rng.uniform(1.6e3, 9e3, 5)), t(rng.uniform(0, 8e3, 5))),
        {"periods": 12},
    ),
)
def wage_withholding():
    def forward(ctx, gross, bonus, periods=1, allowance=1230.0):
        """Tax withheld in a period, of `periods` a year; bonus: what comes once a year."""
        year = gross.numpy() * periods + bonus.numpy() - allowance
        tax, marginal = tariff(year)
        ctx.save_for_backward(marginal=marginal, periods=periods)
        return pb.asarray(tax / periods)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s = ctx.saved_variables
        flow = grad_output.numpy() * s.marginal / s.periods
        return {"gross": pb.asarray(flow), "bonus": pb.asarray(flow.copy())}

    return pb.autograd_function(forward, backward, name="wage_withholding")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(5e3, 150e3, (5, 2))),),
        {"married": np.array([True, True, False, True, False])},
    )
)
def splitting_tax():
    @pb.autograd_function
    def splitting_tax(ctx, income, married):
        """Tax of couples by splitting; those not married are taxed each alone.

        income: (n, 2) in euros a year; married: (n,), bool; returns the tax of both, (n,).
        """
        x, together = income.numpy(), np.asarray(married)[:, None]
        tax, ctx.marginal = tariff(np.where(together, x.mean(axis=1, keepdims=True), x))
        return pb.asarray(tax.sum(axis=1))

    @splitting_tax.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return {"income": pb.asarray(grad_output.numpy()[:, None] * ctx.marginal)}

    return splitting_tax


@BOOK.right(
    lambda rng: ((t(rng.uniform(9e3, 85e3, 5)), t(np.array(0.205)), t(np.array(66150.0))), {})
)
def gross_from_net():
    @pb.autograd_function
    def gross_from_net(ctx, net, rate, ceiling):
        """Gross wages a year that leave the given net ones, after contributions and tax.

        rate: of contributions, on wages up to the ceiling; they are deducted before tax.
        """
        r, most = rate.item(), ceiling.item()
        if not 0 <= r < 1:
            raise ValueError("the rate must be from 0 to 1")

        def left(gross):
            taxed = gross - r * min(gross, most)
            return taxed - float(tariff(taxed)[0])

        def solve(wanted):
            low, high = min(wanted, 0.0) / (1 - r) - 1.0, 2 * abs(wanted) / (1 - r) + 1.0
            while left(high) < wanted:
                high *= 2
            return optimize.brentq(lambda x: left(x) - wanted, low, high, xtol=1e-12, rtol=1e-15)

        gross = np.array([solve(wanted) for wanted in net.tolist()])
        paid = np.minimum(gross, most)
        below = gross < most
        ctx.save_for_backward(r=r, paid=paid, below=below, marginal=tariff(gross - r * paid)[1])
        return pb.asarray(gross)

    @gross_from_net.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_taxed = g.numpy() / (1 - s.r * s.below)
        return {
            "net": pb.asarray(by_taxed / (1 - s.marginal)),
            "rate": by_taxed @ s.paid,
            "ceiling": s.r * by_taxed[~s.below].sum(),
        }

    return gross_from_net


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1500, 9500, 6)), t(np.array([0.093, 0.013, 0.0855, 0.018]))),
        {"year": "2024"},
    )
)
def contributions():
    CEILINGS = {
        "2023": (7300.0, 7300.0, 4987.5, 4987.5),
        "2024": (7550.0, 7550.0, 5175.0, 5175.0),
        "2025": (8050.0, 8050.0, 5512.5, 5512.5),
    }

    @pb.autograd_function
    def contributions(ctx, wage, rates, year="2025"):
        if year not in CEILINGS:
            raise ValueError(f"no ceilings for the year {year!r}")
        most = np.array(CEILINGS[year])
        counted = np.minimum(wage.numpy()[:, None], most)
        ctx.save_for_backward(rates, counted, wage.numpy()[:, None] < most)
        return pb.asarray(counted * rates.numpy())

    @contributions.backward
    @pb.once_differentiable
    def _(ctx, g):
        rates, counted, below = ctx.saved_variables
        gn = g.numpy()
        return {
            "wage": pb.asarray((gn * below) @ rates.numpy()),
            "rates": pb.asarray((gn * counted).sum(axis=0)),
        }

    return contributions


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(6, 13, 7)), t(np.array(24.5)), t(np.array(1.5))),
        {"daily": 10.0},
    )
)
def overtime_pay():
    @pb.autograd_function
    def overtime_pay(ctx, hours, rate, premium, weekly=40.0, daily=None):
        """Pay of each day of a week.

        Hours beyond `weekly` since the first day, and beyond `daily` in a day if that is given, are
        paid at premium times the rate; an hour that is both counts once.
        """
        h = hours.numpy()
        normal = h if daily is None else np.minimum(h, daily)
        upto = np.minimum(np.cumsum(normal), weekly)
        plain = np.diff(upto, prepend=0.0)
        ctx.save_for_backward(extra=h - plain, plain=plain, rate=rate.item(), m=premium.item())
        ctx.short = np.cumsum(normal) < weekly
        ctx.inside = np.ones(len(h), bool) if daily is None else h < daily
        return pb.asarray(rate.item() * (plain + premium.item() * (h - plain)))

    @overtime_pay.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_plain = gn * s.rate * (1 - s.m)
        by_upto = (by_plain - np.append(by_plain[1:], 0.0)) * ctx.short
        by_normal = np.cumsum(by_upto[::-1])[::-1]
        return {
            "hours": pb.asarray(gn * s.rate * s.m + by_normal * ctx.inside),
            "rate": gn @ (s.plain + s.m * s.extra),
            "premium": s.rate * (gn @ s.extra),
        }

    return overtime_pay


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(300, 1400, 6)),
            t(rng.uniform(30, 44, 6)),
            t(np.array(0.6)),
            t(np.array(12.8)),
        ),
        {},
    )
)
def piecework_pay():
    @pb.autograd_function
    def piecework_pay(ctx, pieces, hours, price, minimum):
        """Weekly pay by the piece, but no less than the minimum wage for the hours."""
        ctx.save_for_backward(pieces, hours, price, minimum)
        earned, floor = pieces * price, hours * minimum
        return pb.where(earned > floor, earned, floor)

    @piecework_pay.backward
    def _(ctx, g):
        pieces, hours, price, minimum = ctx.saved_variables
        enough = pieces * price > hours * minimum
        nothing = pb.zeros_like(g)
        by_earned, by_floor = pb.where(enough, g, nothing), pb.where(enough, nothing, g)
        return {
            "pieces": by_earned * price,
            "hours": by_floor * minimum,
            "price": (by_earned * pieces).sum(),
            "minimum": (by_floor * hours).sum(),
        }

    return piecework_pay


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(2e3, 48e3, 8)), t(rng.uniform(0, 9e3, 8))),
        {"children": np.array([0, 1, 2, 3, 1, 0, 2, 5])},
    )
)
def earned_income_credit():
    # By number of children, 3 for three or more: rate in, most, where it falls, rate out.
    TABLE = np.array(
        [
            [0.0765, 632.0, 10330.0, 0.0765],
            [0.34, 4213.0, 22720.0, 0.1598],
            [0.40, 6960.0, 22720.0, 0.2106],
            [0.45, 7830.0, 22720.0, 0.2106],
        ]
    )

    @pb.autograd_function
    def earned_income_credit(ctx, earned, other, children):
        rate, most, start, fall = TABLE[np.minimum(children, 3)].T
        grows = rate * earned.numpy() < most
        total = earned.numpy() + other.numpy()
        credit = np.minimum(rate * earned.numpy(), most) - fall * np.maximum(total - start, 0.0)
        some = credit > 0
        ctx.by_total = np.where(some & (total > start), -fall, 0.0)
        ctx.by_earned = ctx.by_total + np.where(some & grows, rate, 0.0)
        return pb.asarray(np.maximum(credit, 0.0))

    @earned_income_credit.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        return pb.asarray(gn * ctx.by_earned), pb.asarray(gn * ctx.by_total), None

    return earned_income_credit


@BOOK.right(
    lambda rng: (
        (
            t(np.sort(rng.uniform(2400, 6800, (3, 4)), axis=1)),
            t(rng.uniform(0.5, 1.0, 6)),
            t(rng.uniform(0.01, 0.05, 3)),
        ),
        {"grade": np.array([0, 2, 1, 1, 0, 2]), "served": np.array([0, 1, 3, 3, 0, 7])},
    )
)
def payroll_forecast():
    @pb.autograd_function
    def payroll_forecast(ctx, scale, share, rises, grade, served):
        """Payroll of each year to come, in a scale of grades by years served.

        scale: (grades, steps), euros a month; share: (n,), of full time; rises: (years,), of the
        whole scale, each on top of those before; grade, served: (n,), integers. Whoever is at the
        last step stays there.
        """
        last = scale.shape[1] - 1
        years = np.arange(1, len(rises) + 1)
        step = np.minimum(np.asarray(served) + years[:, None], last)
        monthly = scale.numpy()[grade, step]
        level = np.cumprod(1 + rises.numpy())
        bill = 12 * monthly @ share.numpy()
        ctx.save_for_backward(scale=scale, share=share.numpy(), rises=rises.numpy(), level=level)
        ctx.step, ctx.grade, ctx.monthly, ctx.bill = step, grade, monthly, bill
        return pb.asarray(level * bill)

    @payroll_forecast.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_bill = 12 * gn * s.level
        by_scale = np.zeros(s.scale.shape)
        where = (np.broadcast_to(ctx.grade, ctx.step.shape), ctx.step)
        np.add.at(by_scale, where, np.outer(by_bill, s.share))
        by_level = gn * ctx.bill * s.level
        return {
            "scale": pb.asarray(by_scale),
            "share": pb.asarray(by_bill @ ctx.monthly),
            "rises": pb.asarray(np.cumsum(by_level[::-1])[::-1] / (1 + s.rises)),
        }

    return payroll_forecast


@BOOK.right(lambda rng: ((t(rng.normal(0, 6e3, 9)),), {"brought": 1500.0}))
def loss_carryforward():
    @pb.autograd_function
    def loss_carryforward(ctx, gains, cap=3000.0, brought=0.0):
        """Taxed gains by year: losses beyond the cap go on to later years. Also what is left."""
        carried, taxed, over = -brought, [], []
        for gain in gains.tolist():
            net = gain + carried
            over.append(net < -cap)
            taxed.append(-cap if over[-1] else net)
            carried = net + cap if over[-1] else 0.0
        ctx.over = over
        return pb.asarray(np.array(taxed)), pb.asarray(np.array(-carried))

    @loss_carryforward.backward
    @pb.once_differentiable
    def _(ctx, g_taxed, g_left):
        flow, out = -g_left.item(), np.zeros(len(ctx.over))
        for k in range(len(out) - 1, -1, -1):
            if not ctx.over[k]:
                flow = g_taxed[k].item()
            out[k] = flow
        return {"gains": pb.asarray(out)}

    return loss_carryforward


@BOOK.right(lambda rng: ((t(rng.uniform(1.2e3, 16e3, 12)), t(rng.uniform(1, 3, 12))), {"best": 8}))
def primary_benefit():
    CAP = 14050.0
    BENDS, SHARES = np.array([1174.0, 7078.0]), np.array([0.9, 0.32, 0.15])

    @pb.autograd_function
    def primary_benefit(ctx, wages, index, best=35):
        """Pension a month from the best years' monthly wages; years that lack count as none."""
        counted = np.minimum(wages.numpy(), CAP)
        indexed = counted * index.numpy()
        years = np.argsort(-indexed, kind="stable")[:best]
        average = indexed[years].sum() / best
        parts = np.diff(np.minimum(np.append(BENDS, np.inf), average), prepend=0.0)
        ctx.save_for_backward(years=years, index=index.numpy(), counted=counted)
        ctx.open = wages.numpy() < CAP
        ctx.slope = SHARES[np.searchsorted(BENDS, average)] / best
        return pb.asarray(np.array(SHARES @ parts))

    @primary_benefit.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_indexed = np.zeros_like(s.counted)
        by_indexed[s.years] = g.item() * ctx.slope
        return {
            "wages": pb.asarray(by_indexed * s.index * ctx.open),
            "index": pb.asarray(by_indexed * s.counted),
        }

    return primary_benefit


@BOOK.right(lambda rng: ((t(rng.lognormal(3.3, 0.5, 9)), t(rng.uniform(0.3, 1.0, 9))), {}))
def wage_gini():
    @pb.autograd_function
    def wage_gini(ctx, wage, weight):
        order = np.argsort(wage.numpy(), kind="stable")
        x, w = wage.numpy()[order], weight.numpy()[order]
        people = np.cumsum(w)
        income = np.cumsum(w * x)
        # The pairs counted once: each wage against those below it and those above it.
        less = x * (people - w) - (income - w * x)
        more = (income[-1] - income) - x * (people[-1] - people)
        pairs, total = w @ less, people[-1] * income[-1]
        gini = pairs / total
        ranks = 2 * people - w - people[-1]
        by_x = w * (ranks - gini * people[-1]) / total
        by_w = (less + more - gini * (income[-1] + people[-1] * x)) / total
        ctx.order, ctx.by_x, ctx.by_w = order, by_x, by_w
        return pb.asarray(np.array(gini))

    @wage_gini.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_wage, by_weight = np.empty_like(ctx.by_x), np.empty_like(ctx.by_w)
        by_wage[ctx.order] = g.item() * ctx.by_x
        by_weight[ctx.order] = g.item() * ctx.by_w
        return {"wage": pb.asarray(by_wage), "weight": pb.asarray(by_weight)}

    return wage_gini


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 3.0, 7)), t(rng.uniform(2e3, 9e3, 7)), t(np.array(24e3))),
        {},
    )
)
def bonus_shares():
    @pb.autograd_function
    def bonus_shares(ctx, points, most, pool):
        """Share a pool by points, none above his most; what that frees goes to the others."""
        w, cap = points.numpy(), most.numpy()
        if (w <= 0).any():
            raise ValueError("points must be positive")
        full = np.zeros(len(w), bool)
        while not full.all():
            per_point = (pool.item() - cap[full].sum()) / w[~full].sum()
            beyond = ~full & (per_point * w > cap)
            if not beyond.any():
                break
            full |= beyond
        if full.all():
            per_point = 0.0
        ctx.save_for_backward(w=w, full=full, per_point=per_point)
        return pb.asarray(np.where(full, cap, per_point * w))

    @bonus_shares.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        if s.full.all():
            return {"points": pb.zeros(len(gn)), "most": grad_output.clone(), "pool": 0.0}
        rest = ~s.full
        mean = gn[rest] @ s.w[rest] / s.w[rest].sum()
        return {
            "points": pb.asarray(np.where(rest, s.per_point * (gn - mean), 0.0)),
            "most": pb.asarray(np.where(rest, 0.0, gn - mean)),
            "pool": mean,
        }

    return bonus_shares


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(600, 1500, 1)[0]), t(rng.uniform(40, 260, 4)), t(np.array(7.25))),
        {"priority": [2, 0, 3, 1]},
    )
)
def garnishments():
    @pb.autograd_function
    def garnishments(ctx, disposable, claims, minimum, priority=None, part=0.25):
        """Weekly amounts to creditors, served in order of priority as far as the law allows.

        All of them get at most a part of the disposable pay, and never what is below 30 hours at
        the minimum wage.
        """
        share, above = part * disposable.item(), disposable.item() - 30 * minimum.item()
        room = max(min(share, above), 0.0)
        paid, served, partly = np.zeros(len(claims)), [], None
        for k in range(len(claims)) if priority is None else priority:
            if claims[k].item() > room:
                paid[k], partly = room, k
                break
            paid[k] = claims[k].item()
            room -= paid[k]
            served.append(k)
        ctx.served, ctx.partly, ctx.size = served, partly, len(claims)
        lawful = (0.0, 0.0) if min(share, above) <= 0 else (1.0, -30.0)
        ctx.by_room = (part, 0.0) if 0 < share < above else lawful
        return pb.asarray(paid)

    @garnishments.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn, by_claims = g.numpy(), np.zeros(ctx.size)
        by_claims[ctx.served] = gn[ctx.served]
        to_room = 0.0
        if ctx.partly is not None:
            to_room = gn[ctx.partly]
            by_claims[ctx.served] -= to_room
        by_pay, by_minimum = ctx.by_room
        return {
            "disposable": to_room * by_pay,
            "claims": pb.asarray(by_claims),
            "minimum": to_room * by_minimum,
        }

    return garnishments
