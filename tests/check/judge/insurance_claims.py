"""Insurance claims: payments, reserves, shares, recoveries, frequency, settlement, triage."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import FACTOR, SHIFT, Book, at, mends, t

BOOK = Book("insurance_claims")

PAID = np.array(
    [
        [3_210.0, 5_480.0, 6_530.0, 6_890.0, 7_020.0],
        [3_450.0, 5_900.0, 6_870.0, 7_310.0, 0.0],
        [2_980.0, 5_320.0, 6_480.0, 0.0, 0.0],
        [3_770.0, 6_610.0, 0.0, 0.0, 0.0],
        [3_640.0, 0.0, 0.0, 0.0, 0.0],
    ]
)


@BOOK.wrong(
    lambda rng: ((t(PAID * rng.uniform(0.98, 1.02, (5, 5))),), {}),
    "a factor's denominator leaves out the latest year, one row fewer than backward takes",
    SHIFT,
    r"\blatest\b|\bdiagonal\b|denominator|one row|extra row|too many (?:rows|years)",
    r"not known|last known|one (?:more|fewer)|\bn - 1 - j\b",
    mends("grad[: n - 1 - j, j] -=", "grad[: n - j - 1, j] -="),
)
def triangle_reserves():
    @pb.autograd_function
    def triangle_reserves(ctx, paid, tail=1.0):
        """Reserve of each accident year.

        paid: (n, n) cumulative payments in thousands by accident year and development year;
        only the entries with i + j < n are read.
        """
        C = paid.numpy()
        n = len(C)
        below = np.array([C[: n - 1 - j, j].sum() for j in range(n - 1)])
        f = np.array([C[: n - 1 - j, j + 1].sum() for j in range(n - 1)]) / below
        to_go = np.append(np.cumprod(f[::-1])[::-1], 1.0)[::-1] * tail
        latest = C[np.arange(n), n - 1 - np.arange(n)]
        ctx.save_for_backward(f=f, below=below, to_go=to_go, latest=latest)
        return pb.asarray(latest * (to_go - 1))

    @triangle_reserves.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        n = len(gn)
        grad = np.zeros((n, n))
        grad[np.arange(n), n - 1 - np.arange(n)] = gn * (s.to_go - 1)
        ultimate = gn * s.latest * s.to_go
        for j in range(n - 1):
            by_f = ultimate[n - 1 - j :].sum() / s.f[j]
            grad[: n - 1 - j, j + 1] += by_f / s.below[j]
            grad[: n - j, j] -= by_f * s.f[j] / s.below[j]
        return {"paid": pb.asarray(grad)}

    return triangle_reserves


def damage(**settings):
    def given(rng):
        losses = np.array([120.0, 900.0, 2_400.0, 8_700.0, 31_000.0]) * rng.uniform(0.95, 1.05, 5)
        return (t(losses), t(np.array(500.0))), settings

    return given


@BOOK.wrong(
    damage(share=0.8),
    'with kind "franchise" nothing is taken off, yet the deductible keeps its gradient of -1',
    at("kind"),
    r"franchise|taken off|subtract",
    mends('ctx.kind == "excess"', 'ctx.kind != "franchise"', 'ctx.kind == "franchise"'),
    where="kind is franchise",
    shows=damage(share=0.8, kind="franchise"),
)
def policy_payment():
    @pb.autograd_function
    def policy_payment(ctx, loss, deductible, share=1.0, limit=None, kind="excess"):
        """What a policy pays of losses; a franchise is paid in full once it is exceeded."""
        x, d = loss.numpy(), deductible.item()
        over = x > d
        due = share * np.where(over, x - d if kind == "excess" else x, 0.0)
        ctx.free = over if limit is None else over & (due < limit)
        ctx.share, ctx.kind = share, kind
        return pb.asarray(due if limit is None else np.minimum(due, limit))

    @policy_payment.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_loss = ctx.share * g.numpy() * ctx.free
        return {"loss": pb.asarray(by_loss), "deductible": -by_loss.sum()}

    return policy_payment


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(200, 2500, 6)), t(np.array(0.045)), t(np.array(0.02))),
        {"first": 1},
    ),
    "payments fall in the middle of a year, but inflation's gradient has the factor k, not k + 0.5",
    FACTOR,
    SHIFT,
    r"\bmiddle\b|mid.?year|half a year|\b0\.5\b",
    mends("s.year * s.worth", "s.worth * s.year", "s.year / s.up", "s.year * gn"),
)
def inflated_runoff():
    def forward(ctx, payments, inflation, interest, first=0):
        year = first + np.arange(payments.shape[0]) + 0.5
        up, down = 1 + inflation.item(), 1 + interest.item()
        worth = (up / down) ** year
        ctx.save_for_backward(payments=payments, year=year, up=up, down=down, worth=worth)
        ctx.first = first
        return pb.asarray(payments.numpy() * worth)

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        gn = g.numpy()
        flow = gn * s.payments.numpy() * s.worth
        k = ctx.first + np.arange(gn.size)
        return {
            "payments": pb.asarray(gn * s.worth),
            "inflation": (flow * k).sum() / s.up,
            "interest": -(flow * s.year).sum() / s.down,
        }

    return pb.autograd_function(forward, backward, name="inflated_runoff")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([4e3, 52e3, 18e3, 210e3, 300.0]) * rng.uniform(0.9, 1.1, 5)),
            t(np.array([250e3, 180e3, 300e3, 190e3, 120e3])),
            t(np.array([240e3, 310e3, 420e3, 205e3, 260e3])),
        ),
        {"clause": 0.85, "deductible": 500.0},
    )
)
def average_clause():
    @pb.autograd_function
    def average_clause(ctx, loss, insured, value, clause=1.0, deductible=0.0):
        """Payments where a building may be insured below its value.

        Whoever insures less than `clause` of the value bears a part of each loss. The sum
        insured is the most that is paid.
        """
        x, s = loss.numpy(), insured.numpy()
        need = clause * value.numpy()
        under = s < need
        part = np.where(under, s / need, 1.0)
        due = x * part - deductible
        capped, none = due > s, due <= 0
        ctx.save_for_backward(x=x, need=need, part=part, value=value.numpy())
        ctx.under, ctx.capped, ctx.open = under, capped, ~capped & ~none
        return pb.asarray(np.where(capped, s, np.maximum(due, 0.0)))

    @average_clause.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_due = gn * ctx.open
        by_part = by_due * s.x * ctx.under
        return {
            "loss": pb.asarray(by_due * s.part),
            "insured": pb.asarray(by_part / s.need + gn * ctx.capped),
            "value": pb.asarray(-by_part * s.part / s.value),
        }

    return average_clause


@BOOK.right(
    lambda rng: (
        (t(rng.gamma(0.7, 9000, 8)), t(np.array(12_500.0))),
        {"day": np.array([214, 9, 301, 77, 77, 150, 340, 30]), "most": 25_000.0},
    )
)
def aggregate_retention():
    @pb.autograd_function
    def aggregate_retention(ctx, loss, retention, day, most=np.inf):
        """Payment for each claim of a year, once the claims before it have used the retention.

        Claims are taken by day, those of one day as listed; in all no more than `most` is paid.
        """
        order = np.argsort(day, kind="stable")
        beyond = np.cumsum(loss.numpy()[order]) - retention.item()
        total = np.clip(beyond, 0.0, most)
        paid = np.empty_like(total)
        paid[order] = np.diff(total, prepend=0.0)
        ctx.order, ctx.moves = order, (beyond > 0) & (beyond < most)
        return pb.asarray(paid)

    @aggregate_retention.backward
    @pb.once_differentiable
    def _(ctx, g):
        in_order = g.numpy()[ctx.order]
        by_total = ctx.moves * (in_order - np.append(in_order[1:], 0.0))
        by_loss = np.empty_like(by_total)
        by_loss[ctx.order] = np.cumsum(by_total[::-1])[::-1]
        return {"loss": pb.asarray(by_loss), "retention": -by_total.sum()}

    return aggregate_retention


@BOOK.right(
    lambda rng: (
        (t(np.array(-2.3)), t(rng.normal(0, 0.3, 3)), t(rng.normal(0, 0.2, 2))),
        {
            "claims": np.array([0, 1, 0, 2, 0, 0, 1, 0]),
            "exposure": rng.uniform(0.2, 1.0, 8),
            "region": np.array([0, 1, 3, 2, 2, 0, 1, 3]),
            "car": np.array([2, 1, 0, 0, 1, 2, 2, 1]),
        },
    )
)
def frequency_deviance():
    @pb.autograd_function
    def frequency_deviance(ctx, base, by_region, by_car, *, claims, exposure, region, car):
        """Poisson deviance of claim numbers; category 0 of each rating factor is the reference.

        by_region and by_car: (categories - 1,), what the others add to the logarithm.
        """
        R, K = (np.append(0.0, v.numpy()) for v in (by_region, by_car))
        mean = np.asarray(exposure) * np.exp(base.item() + R[region] + K[car])
        deviance = 2 * (special.xlogy(claims, claims / mean) - claims + mean).sum()
        ctx.slope = 2 * (mean - claims)
        ctx.rated = ((region, R.size), (car, K.size))
        return pb.asarray(np.asarray(deviance))

    @frequency_deviance.backward
    @pb.once_differentiable
    def _(ctx, g):
        slope = g.item() * ctx.slope
        region, car = (np.bincount(of, slope, n)[1:] for of, n in ctx.rated)
        return {
            "base": slope.sum(),
            "by_region": pb.asarray(region),
            "by_car": pb.asarray(car),
        }

    return frequency_deviance


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(800, 4200, 5)),
            t(rng.uniform(4000, 6000, 5)),
            t(np.array([1.62, 1.21, 1.08, 1.03])),
            t(np.array(0.71)),
        ),
        {"age": np.array([4, 3, 2, 1, 0])},
    )
)
def expected_ultimate():
    @pb.autograd_function
    def expected_ultimate(ctx, reported, premium, factors, ratio, age):
        """Ultimate claims by Bornhuetter and Ferguson.

        factors: (m,) from one development year to the next; age: ints, 0 for the newest year;
        years of age m and more are complete.
        """
        f = factors.numpy()
        to_go = np.append(np.cumprod(f[::-1])[::-1], 1.0)
        k = np.minimum(age, f.size)
        grown = 1 / to_go[k]
        prior = premium.numpy() * ratio.item()
        ctx.save_for_backward(f=f, k=k, grown=grown, prior=prior, premium=premium.numpy())
        ctx.ratio = ratio.item()
        return pb.asarray(reported.numpy() + prior * (1 - grown))

    @expected_ultimate.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        missing = gn * (1 - s.grown)
        by_start = np.bincount(s.k, gn * s.prior * s.grown, s.f.size + 1)
        return {
            "reported": pb.asarray(gn.copy()),
            "premium": pb.asarray(missing * ctx.ratio),
            "factors": pb.asarray(np.cumsum(by_start)[:-1] / s.f),
            "ratio": missing @ s.premium,
        }

    return expected_ultimate


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(900, 3900, 6)), t(rng.uniform(4000, 6000, 6)), t(np.array(0.75))),
        {"developed": np.array([1.0, 0.98, 0.93, 0.81, 0.6, 0.25])},
    )
)
def cape_cod_ratios():
    def forward(ctx, reported, premium, decay, developed):
        """Expected loss ratio of each year from all years; decay: 0 (own year) to 1 (all alike)."""
        years = np.arange(len(developed))
        lag = np.abs(years[:, None] - years)
        d, used = decay.item(), premium.numpy() * developed
        weight = d**lag
        ratios = weight @ reported.numpy() / (weight @ used)
        ctx.save_for_backward(weight, weight @ used, ratios)
        by_decay = lag * d ** np.maximum(lag - 1, 0)
        ctx.by_decay = (by_decay @ reported.numpy() - ratios * (by_decay @ used)) / (weight @ used)
        ctx.developed = developed
        return pb.asarray(ratios.copy())

    @pb.once_differentiable
    def backward(ctx, g):
        weight, below, ratios = ctx.saved_variables
        share = g.numpy() / below
        return (
            pb.asarray(share @ weight),
            pb.asarray(-(share * ratios) @ weight * ctx.developed),
            g.numpy() @ ctx.by_decay,
            None,
        )

    return pb.autograd_function(forward, backward, name="cape_cod_ratios")


@BOOK.right(
    lambda rng: (
        (t(np.array(47_000.0)), t(np.array([20e3, 75e3, 40e3]) * rng.uniform(0.9, 1.1, 3))),
        {"rule": "liability"},
    )
)
def double_insurance():
    @pb.autograd_function
    def double_insurance(ctx, loss, limits, rule="liability"):
        """What each of several insurers of one thing pays.

        rule: "liability" shares by what each would pay alone, "limits" by the limits.
        """
        x, top = loss.item(), limits.numpy()
        if x <= 0:
            raise ValueError("there is no loss to share")
        alone = np.minimum(x, top)
        keys = {"liability": alone, "limits": top}[rule]
        total, due = keys.sum(), min(x, top.sum())
        ctx.save_for_backward(keys / total, total)
        ctx.due, ctx.below = due, x < top.sum()
        ctx.capped = top <= x if rule == "liability" else np.ones(top.shape, bool)
        return pb.asarray(due * keys / total)

    @double_insurance.backward
    @pb.once_differentiable
    def _(ctx, g):
        part, total = ctx.saved_variables
        gn = g.numpy()
        by_due = gn @ part
        by_keys = ctx.due * (gn - by_due) / total
        by_limits = np.where(ctx.capped, by_keys, 0.0)
        by_loss = by_keys[~ctx.capped].sum()
        if ctx.below:
            by_loss += by_due
        else:
            by_limits += by_due
        return {"loss": by_loss, "limits": pb.asarray(by_limits)}

    return double_insurance


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1500, 90_000, 6)), t(np.array([0.0, 0.2, 0.35, 0.45, 0.55, 0.9]))),
        {"rule": "half", "fee": 0.25},
    )
)
def recovery():
    BAR = {"pure": 1.0, "half": 0.5, "slight": 0.1}

    @pb.autograd_function
    def recovery(ctx, damages, fault, rule="pure", fee=0.0, floor=400.0):
        # nothing comes back where the insured's own fault exceeds the bar of the rule
        x, own = damages.numpy(), fault.numpy()
        gross = np.where(own <= BAR[rule], x * (1 - own), 0.0)
        net = gross - np.maximum(fee * gross, floor)
        worth = net > 0
        kept = np.where(fee * gross > floor, 1 - fee, 1.0) * worth
        ctx.save_for_backward(x, own, kept * (own <= BAR[rule]))
        return pb.asarray(np.where(worth, net, 0.0))

    @recovery.backward
    @pb.once_differentiable
    def _(ctx, g):
        x, own, kept = ctx.saved_variables
        flow = g.numpy() * kept
        return {"damages": pb.asarray(flow * (1 - own)), "fault": pb.asarray(-flow * x)}

    return recovery


# Years of life, and the least part of the price that is paid.
CONTENTS = {"carpet": (10, 0.1), "laptop": (4, 0.0), "sofa": (15, 0.2), "jewellery": (None, 1.0)}


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(300, 2500, 6)), t(np.array([0.4, 3.1, 14.2, 6.5, 5.5, 22.0]))),
        {"items": ["laptop", "carpet", "sofa", "sofa", "laptop", "jewellery"], "new_for": 1.0},
    )
)
def contents_settlement():
    @pb.autograd_function
    def contents_settlement(ctx, price, age, items, new_for=0.0):
        """Payment for lost goods; for `new_for` years the full price, then less by their age."""
        years = age.numpy()
        life, least = np.array(
            [(np.inf if a is None else a, b) for a, b in map(CONTENTS.get, items)], dtype=float
        ).T
        part = 1 - years / life
        full = years <= new_for
        falling = ~full & (part > least)
        part = np.where(full, 1.0, np.maximum(part, least))
        ctx.save_for_backward(part=part, slope=-price.numpy() * falling / life)
        return pb.asarray(price.numpy() * part)

    @contents_settlement.backward
    @pb.once_differentiable
    def _(ctx, g):
        part, slope = ctx.saved_variables
        return {"price": pb.asarray(g.numpy() * part), "age": pb.asarray(g.numpy() * slope)}

    return contents_settlement


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(2, 60, (4, 4))),
            t(np.array([120.0, 35.0, 8.0, 0.0])),
            t(np.array([45.0, 310.0, 1450.0, 0.0])),
        ),
        {"months": 5, "interest": 0.002},
    )
)
def open_claims_cost():
    @pb.autograd_function
    def open_claims_cost(ctx, moves, opened, cost, months=12, interest=0.0):
        """Present value of the cost of each month until claims are closed.

        moves: (k, k) observed numbers of claims from state to state; the last state, closed, is
        never left. opened: (k,) claims now; cost: (k,) per claim and month.
        """
        total = moves.numpy().sum(axis=1, keepdims=True)
        total[-1] = 1.0  # its row is not used and may be empty
        P = moves.numpy() / total
        P[-1] = np.eye(len(P))[-1]
        stages = [opened.numpy()]
        for _ in range(months - 1):
            stages.append(stages[-1] @ P)
        stages = np.stack(stages)
        discount = (1 + interest) ** -np.arange(months)
        ctx.save_for_backward(P=P, total=total, stages=stages, discount=discount)
        ctx.cost = cost.numpy()
        return pb.asarray(discount * (stages @ ctx.cost))

    @open_claims_cost.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        flow = g.numpy() * s.discount
        by_P, to_stage = np.zeros_like(s.P), flow[-1] * ctx.cost
        for k in range(len(flow) - 2, -1, -1):
            by_P += np.outer(s.stages[k], to_stage)
            to_stage = s.P @ to_stage + flow[k] * ctx.cost
        by_moves = (by_P - (by_P * s.P).sum(axis=1, keepdims=True)) / s.total
        by_moves[-1] = 0.0
        return {
            "moves": pb.asarray(by_moves),
            "opened": pb.asarray(to_stage),
            "cost": pb.asarray(flow @ s.stages),
        }

    return open_claims_cost


@BOOK.right(
    lambda rng: (
        (
            t(np.array([3200.0, 9800.0, 6400.0, 12500.0])),
            t(np.array([15500.0, 10400.0, 6900.0, 13100.0])),
            t(rng.uniform(0.08, 0.3, 4)),
        ),
        {"days": np.array([6, 14, 9, 21]), "hire": 38.0, "threshold": 0.9},
    )
)
def repair_or_write_off():
    @pb.autograd_function
    def repair_or_write_off(ctx, repair, value, salvage, days=0, hire=0.0, threshold=1.0):
        """Cost of motor claims: that of the cheaper way, and which cars are written off.

        A car is written off, too, if its repair costs more than `threshold` of its value.
        salvage: part of the value for which the wreck sells; days: in the garage.
        """
        r, v, s = repair.numpy(), value.numpy(), salvage.numpy()
        mend, scrap = r + np.asarray(days) * hire, v * (1 - s)
        off = (mend > scrap) | (r > threshold * v)
        ctx.save_for_backward(off=off, v=v, s=s)
        return pb.asarray(np.where(off, scrap, mend)), pb.asarray(off.astype(np.int64))

    @repair_or_write_off.backward
    @pb.once_differentiable
    def _(ctx, g_cost, g_off):
        off, v, s = ctx.saved_variables
        gn = g_cost.numpy()
        return {
            "repair": pb.asarray(np.where(off, 0.0, gn)),
            "value": pb.asarray(np.where(off, gn * (1 - s), 0.0)),
            "salvage": pb.asarray(np.where(off, -gn * v, 0.0)),
        }

    return repair_or_write_off


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 3, 9)),),
        {
            "months": np.array([2, 5, 5, 7, 11, 11, 14, 20, 26]),
            "closed": np.array([1, 1, 0, 1, 1, 1, 0, 1, 1], bool),
            "at": np.array([1, 5, 12, 24, 36]),
        },
    )
)
def still_open():
    @pb.autograd_function
    def still_open(ctx, weight, months, closed, at):
        w, when = weight.numpy(), np.unique(months[closed])
        if (w <= 0).any():
            raise ValueError("weights must be positive")
        at_risk = months >= when[:, None]
        ends = closed & (months == when[:, None])
        exposed = at_risk @ w
        hazard = (ends @ w) / exposed
        curve = np.append(1.0, np.cumprod(1 - hazard))
        ctx.place = np.searchsorted(when, at, side="right")
        ctx.save_for_backward(hazard, curve, (ends - at_risk * hazard[:, None]) / exposed[:, None])
        return pb.asarray(curve[ctx.place])

    @still_open.backward
    @pb.once_differentiable
    def _(ctx, g):
        hazard, curve, by_weight = ctx.saved_variables
        to_curve = np.bincount(ctx.place, g.numpy(), curve.size)
        by_hazard, later = np.zeros_like(hazard), 0.0
        for k in reversed(range(hazard.size)):
            later += to_curve[k + 1]
            by_hazard[k] = -later * curve[k]
            later *= 1 - hazard[k]
        return {"weight": pb.asarray(by_hazard @ by_weight)}

    return still_open


@BOOK.right(
    lambda rng: (
        (
            t(rng.normal(0, 0.8, 3)),
            t(np.array(-1.2)),
            t(rng.uniform(500, 30_000, 10)),
        ),
        {"features": rng.normal(size=(10, 3)), "officers": 3, "cost": 180.0},
    )
)
def fraud_triage():
    @pb.autograd_function
    def fraud_triage(ctx, weights, bias, amount, features, officers=5, cost=0.0, most=0.95):
        """Expected saving from the claims that are looked into, and which these are.

        Those with the largest saving are taken, at most `officers` and only where it is positive;
        the probability of fraud is never taken for more than `most`.
        """
        logistic = special.expit(features @ weights.numpy() + bias.item())
        p = np.minimum(logistic, most)
        saving = p * amount.numpy() - cost
        taken = np.argsort(-saving, kind="stable")[:officers]
        taken = taken[saving[taken] > 0]
        slope = np.where(logistic < most, p * (1 - p), 0.0) * amount.numpy()
        ctx.save_for_backward(features[taken], slope[taken], p[taken], taken)
        ctx.n = p.size
        return pb.asarray(np.asarray(saving[taken].sum())), pb.asarray(taken.copy())

    @fraud_triage.backward
    @pb.once_differentiable
    def _(ctx, g_saving, g_taken):
        features, slope, p, taken = ctx.saved_variables
        by_amount = np.zeros(ctx.n)
        by_amount[taken] = g_saving.item() * p
        return {
            "weights": pb.asarray(g_saving.item() * (slope @ features)),
            "bias": g_saving.item() * slope.sum(),
            "amount": pb.asarray(by_amount),
        }

    return fraud_triage
