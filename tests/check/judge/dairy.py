"""Dairy: lactation, herds, grazing, milk quality and payment, tanks, heat treatment, powders."""

from __future__ import annotations

import numpy as np
from scipy import optimize

import pullback as pb

from .entries import FACTOR, MISSING, STATE, Book, at, mends, t

BOOK = Book("dairy")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(68, 76, 7)), t(np.array(6.7))),
        {"seconds": np.array([2.0, 3.0, 5.0, 8.0, 5.0, 3.0, 2.0])},
    ),
    "backward differentiates a power of ten as if it were exp: the factor log(10) is missing",
    FACTOR + r"|multipl|divided by",
    r"\blog\(10|\bln ?\(?10|2\.302|0\.434|natural|power of (?:ten|10)",
    mends("np.log(10", "math.log(10", "2.302585"),
)
def pasteurisation_units():
    @pb.autograd_function
    def pasteurisation_units(ctx, temperature, z, seconds, reference=72.0):
        """Seconds at the reference temperature that would kill as much as the whole treatment."""
        T, slope = temperature.numpy(), z.item()
        if slope <= 0:
            raise ValueError("z must be positive")
        above = (T - reference) / slope
        lethal = seconds * 10.0**above
        ctx.save_for_backward(above=above, lethal=lethal, z=slope)
        return pb.asarray(np.array(lethal.sum()))

    @pasteurisation_units.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        by_above = grad_output.item() * s.lethal
        return {
            "temperature": pb.asarray(by_above / s.z),
            "z": -(by_above @ s.above) / s.z,
        }

    return pasteurisation_units


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(400, 2500, 5)), t(rng.uniform(3.2, 5.0, (5, 3)))),
        {"prices": np.array([6.0, 8.5, 0.3]), "base": 32.0},
    ),
    "a farm's volume changes the mean of the whole tank: the term of the total is missing",
    MISSING,
    r"\b(?:mean|average|total|denominator|quotient|normali[sz])",
    mends("- s.mean", "- ctx.mean", "farms - mean", "(F - mean)", "farms.numpy() - mean"),
)
def tanker_price():
    @pb.autograd_function
    def tanker_price(ctx, volume, content, prices, base=0.0):
        """Price per 100 litres of a tanker that has collected from several farms.

        volume: (farms,) in litres; content: (farms, k) in percent of fat, protein and so on;
        prices: (k,) per percent; base: paid for any milk.
        """
        v, farms = volume.numpy(), content.numpy()
        total = v.sum()
        if not total > 0:
            raise ValueError("the tanker is empty")
        mean = v @ farms / total
        ctx.save_for_backward(v=v, farms=farms, total=total)
        ctx.prices = prices
        return pb.asarray(np.array(base + mean @ prices))

    @tanker_price.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        v, farms, total = ctx.saved_variables
        by_mean = grad_output.item() * ctx.prices
        return {
            "volume": pb.asarray(farms @ by_mean / total),
            "content": pb.asarray(np.outer(v / total, by_mean)),
        }

    return tanker_price


def milkings(**settings):
    def given(rng):
        milk, warm = rng.uniform(300, 900, 6), rng.uniform(30, 36, 6)
        return (t(milk), t(warm), t(np.array(0.35))), settings

    return given


@BOOK.wrong(
    milkings(),
    "a collection empties the tank, but the volume's gradient is carried on to the milk before it",
    STATE,
    at("collected"),
    r"\bcollect(?:s|ion|ions|ed at)\b|\bempt(?:y|ies|ied)\b|\bcarr(?:y|ied|ies)|\breset",
    r"\bbefore\b|\bearlier\b|\bprevious\b|(?:should|must|expected)(?: be)? (?:0|zero)\b",
    mends("in ctx.collected", "in s.collected", "k in collected: to_volume", "to_volume = 0"),
    where="the tank has been collected",
    shows=milkings(collected=(3,)),
)
def tank_temperature():
    @pb.autograd_function
    def tank_temperature(ctx, milk, warm, cooling, collected=(), hours=12.0, target=3.5):
        """Temperature of a bulk tank at the end of the time after each milking.

        milk: (n,) litres; warm: (n,) their temperature; cooling: per hour;
        collected: the milkings before which the tank was emptied.
        """
        m, T, decay = milk.numpy(), target, np.exp(-cooling.item() * hours)
        if (m <= 0).any():
            raise ValueError("each milking must bring milk")
        volume, steps, out = 0.0, [], np.empty_like(m)
        for k in range(len(m)):
            if k in collected:
                volume = 0.0
            mixed = (volume * T + m[k] * warm.numpy()[k]) / (volume + m[k])
            steps.append((volume, T, mixed))
            volume += m[k]
            T = out[k] = target + (mixed - target) * decay
        ctx.save_for_backward(milk=milk, warm=warm)
        ctx.steps, ctx.decay, ctx.hours, ctx.target = steps, decay, hours, target
        return pb.asarray(out)

    @tank_temperature.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        m, warm = (x.numpy() for x in ctx.saved_variables)
        by_milk, by_warm = np.zeros_like(m), np.zeros_like(m)
        to_T = to_volume = by_decay = 0.0
        for k in reversed(range(len(m))):
            volume, before, mixed = ctx.steps[k]
            to_T += grad_output.numpy()[k]
            by_decay += to_T * (mixed - ctx.target)
            share = to_T * ctx.decay / (volume + m[k])
            by_milk[k] = to_volume + share * (warm[k] - mixed)
            by_warm[k] = share * m[k]
            to_volume += share * (before - mixed)
            to_T = share * volume
        return {
            "milk": pb.asarray(by_milk),
            "warm": pb.asarray(by_warm),
            "cooling": -by_decay * ctx.decay * ctx.hours,
        }

    return tank_temperature


@BOOK.right(
    lambda rng: (
        (
            t(np.array([14.0, 18.0, 20.0]) * rng.uniform(0.9, 1.1, 3)),
            t(np.array([0.15, 0.18, 0.2])),
            t(np.array([0.0022, 0.0031, 0.0038])),
        ),
        {
            "days": np.array([5, 40, 120, 305, 60, 200, 90]),
            "parity": np.array([1, 1, 2, 5, 3, 2, 1]),
        },
    )
)
def wood_curve():
    @pb.autograd_function
    def wood_curve(ctx, scale, rise, fall, days, parity):
        """Milk of cows on test days by Wood's curve, a d^b exp(-c d).

        scale, rise, fall: (groups,) for first, second, ... and later lactations;
        days: (cows,) in milk, from 1; parity: (cows,) integers from 1.
        """
        if (days < 1).any() or (parity < 1).any():
            raise ValueError("days in milk and parities count from 1")
        group = np.minimum(parity, len(scale)) - 1
        b, c = rise.numpy()[group], fall.numpy()[group]
        shape = days**b * np.exp(-c * days)
        ctx.save_for_backward(shape=shape, milk=scale.numpy()[group] * shape, group=group)
        ctx.days, ctx.groups = days, len(scale)
        return pb.asarray(scale.numpy()[group] * shape)

    @wood_curve.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()

        def gathered(values):
            out = np.zeros(ctx.groups, values.dtype)
            np.add.at(out, s.group, values)
            return pb.asarray(out)

        return {
            "scale": gathered(gn * s.shape),
            "rise": gathered(gn * s.milk * np.log(ctx.days)),
            "fall": gathered(-gn * s.milk * ctx.days),
        }

    return wood_curve


CELLS = np.array([0.0, 150.0, 250.0, 400.0, 750.0])
BONUS = np.array([1.2, 1.2, 0.0, -2.5, -6.0])


@BOOK.right(
    lambda rng: (
        (t(np.array([90.0, 190.0, 320.0, 520.0, 1400.0]) * rng.uniform(0.95, 1.05, 5)),),
        {"milk": np.array([30.0, 22.0, 41.0, 18.0, 25.0])},
    )
)
def cell_count_bonus():
    @pb.autograd_function
    def cell_count_bonus(ctx, cells, milk=None):
        """Bonus or malus for the cells (1000 per ml), by a table that is flat at both its ends."""
        c = cells.numpy()
        part = np.clip(np.searchsorted(CELLS, c, side="right") - 1, 0, len(CELLS) - 2)
        slope = (np.diff(BONUS) / np.diff(CELLS))[part]
        weight = np.ones_like(c) if milk is None else milk / milk.sum()
        ctx.slope = weight * np.where((c >= CELLS[0]) & (c < CELLS[-1]), slope, 0.0)
        return pb.asarray(weight * np.interp(c, CELLS, BONUS))

    @cell_count_bonus.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return {"cells": pb.asarray(grad_output.numpy() * ctx.slope)}

    return cell_count_bonus


@BOOK.right(lambda rng: ((t(rng.uniform(80, 900, 8)),), {"window": 3}))
def rolling_cell_count():
    @pb.autograd_function
    def rolling_cell_count(ctx, cells, window=3):
        counts = cells.numpy()
        if window < 1 or (counts <= 0).any():
            raise ValueError("counts and window must be positive")
        logs = np.concatenate([[0.0], np.cumsum(np.log(counts))])
        last = np.arange(1, len(counts) + 1)
        first = np.maximum(last - window, 0)
        mean = np.exp((logs[last] - logs[first]) / (last - first))
        ctx.save_for_backward(counts=counts, mean=mean, first=first, last=last)
        return pb.asarray(mean.copy())

    @rolling_cell_count.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        counts, mean, first, last = ctx.saved_variables
        by_log = grad_output.numpy() * mean / (last - first)
        change = np.zeros(len(counts) + 1)
        np.add.at(change, first, by_log)
        np.subtract.at(change, last, by_log)
        return {"cells": pb.asarray(np.cumsum(change)[:-1] / counts)}

    return rolling_cell_count


@BOOK.right(
    lambda rng: (
        (
            t(np.array([-60.0, -80.0, -55.0, -20.0, 30.0, 65.0]) + rng.normal(0, 3, 6)),
            t(np.array(1.9)),
        ),
        {"energy": 140.0},
    )
)
def body_condition():
    @pb.autograd_function
    def body_condition(ctx, balance, start, energy=150.0, week=7):
        """Condition score after each week; it stays between 1 and 5.

        balance: (weeks,) mean energy balance in MJ a day; energy: MJ for a tenth of a score.
        """
        score, free, out = start.item(), [], []
        for b in balance.numpy():
            score += 0.1 * week * b / energy
            free.append(1.0 <= score <= 5.0)
            score = min(max(score, 1.0), 5.0)
            out.append(score)
        ctx.free, ctx.slope = free, 0.1 * week / energy
        return pb.asarray(np.array(out))

    @body_condition.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, carried = grad_output.numpy(), 0.0
        by_balance = np.zeros_like(gn)
        for k in range(len(gn) - 1, -1, -1):
            carried = (carried + gn[k]) * ctx.free[k]
            by_balance[k] = carried * ctx.slope
        return {"balance": pb.asarray(by_balance), "start": carried}

    return body_condition


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(500, 3000, 5)), t(np.array([4.4, 3.9, 3.2, 5.1, 3.6]))),
        {"target": 3.5, "cream": 38.0},
    )
)
def standardise():
    class Standardise(pb.Function):
        @staticmethod
        def forward(ctx, milk, fat, target=3.5, cream=40.0, skim=0.05):
            """Milk and cream in kg after fat is brought down to the target; lean milk is left."""
            if not skim < target < cream:
                raise ValueError("the target lies between skimmed milk and cream")
            m, f = milk.numpy(), fat.numpy()
            rich = f > target
            part = np.where(rich, (f - target) / (cream - target), 0.0)
            ctx.save_for_backward(m=m, part=part)
            ctx.slope = rich / (cream - target)
            return pb.asarray(m * (1 - part)), pb.asarray(m * part)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_milk, g_cream):
            m, part = ctx.saved_variables
            more = g_cream.numpy() - g_milk.numpy()
            by_milk = g_milk.numpy() + more * part
            return pb.asarray(by_milk), pb.asarray(more * m * ctx.slope), None, None, None

    return Standardise.apply


@BOOK.right(
    lambda rng: (
        (t(np.array(0.9) * rng.uniform(0.9, 1.1)), t(np.array(1.6)), t(np.array(6.65))),
        {"hours": np.linspace(0.0, 9.0, 10)},
    )
)
def yoghurt_ph():
    @pb.autograd_function
    def yoghurt_ph(ctx, rate, lag, start, hours, floor=4.3, stop=None):
        """pH of yoghurt by a Gompertz curve; at hour `stop` it is cooled and stays as it is."""
        at_work = hours if stop is None else np.minimum(hours, stop)
        r, lagging = rate.item(), lag.item()
        drop = start.item() - floor
        if drop <= 0:
            raise ValueError("milk starts above the final pH")
        # beyond 700 exp overflows, and nothing has begun yet
        inner = np.exp(np.minimum(r * np.e / drop * (lagging - at_work) + 1, 700.0))
        done = np.exp(-inner)
        by_exponent = done * inner * drop
        ctx.by_rate = by_exponent * np.e / drop * (lagging - at_work)
        ctx.by_lag = by_exponent * r * np.e / drop
        ctx.by_start = 1 - done - by_exponent * r * np.e / drop**2 * (lagging - at_work)
        return pb.asarray(start.item() - drop * done)

    @yoghurt_ph.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        return {"rate": gn @ ctx.by_rate, "lag": gn @ ctx.by_lag, "start": gn @ ctx.by_start}

    return yoghurt_ph


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(4, 8, 4)),
            t(rng.uniform(72, 78, 4)),
            t(rng.uniform(1.5, 4.0, 4)),
        ),
        {"area": 22.0, "transfer": 3.1, "fouling": 0.02},
    )
)
def regenerator():
    def forward(ctx, cold, hot, flow, area, transfer, fouling=0.0):
        """Raw milk out, treated milk out; the plates foul from run to run."""
        m, apart = flow.numpy(), hot.numpy() - cold.numpy()
        if (m <= 0).any():
            raise ValueError("flow must be positive")
        runs = np.arange(len(m))
        clean = transfer / (1 + fouling * runs * transfer)
        units = clean * area / (m * 3.9)
        reached = units / (1 + units)
        ctx.reached, ctx.by_flow = reached, -apart * units / (1 + units) ** 2 / m
        gain = reached * apart
        return pb.asarray(cold.numpy() + gain), pb.asarray(hot.numpy() - gain)

    @pb.once_differentiable
    def backward(ctx, g_raw, g_treated):
        raw, treated = g_raw.numpy(), g_treated.numpy()
        by_gain = raw - treated
        return {
            "cold": pb.asarray(raw - by_gain * ctx.reached),
            "hot": pb.asarray(treated + by_gain * ctx.reached),
            "flow": pb.asarray(by_gain * ctx.by_flow),
        }

    return pb.autograd_function(forward, backward, name="regenerator")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1700, 2900, 4)), t(rng.uniform(0.03, 0.06, 4))),
        {"visits": [0, 1, 2, 3, 0, 2, 0], "intake": 600.0},
    )
)
def paddock_rotation():
    @pb.autograd_function
    def paddock_rotation(ctx, grass, growth, visits, intake=500.0, residual=1500.0, ceiling=4500.0):
        """Grass eaten day by day and left on each paddock in the end, in kg of dry matter per ha.

        grass, growth: (paddocks,); visits: the paddock of each day. Cows leave the residual.
        """
        G, r = grass.numpy().copy(), growth.numpy()
        days, eaten = [], np.zeros(len(visits), G.dtype)
        for k, paddock in enumerate(visits):
            days.append(G.copy())
            G += r * G * (1 - G / ceiling)
            short = G[paddock] - residual < intake
            eaten[k] = max(G[paddock] - residual, 0.0) if short else intake
            days[-1] = (days[-1], short, eaten[k] > 0)
            G[paddock] -= eaten[k]
        ctx.days, ctx.visits, ctx.growth, ctx.ceiling = days, list(visits), r, ceiling
        return pb.asarray(eaten), pb.asarray(G)

    @paddock_rotation.backward
    @pb.once_differentiable
    def _(ctx, g_eaten, g_left):
        carried = g_left.numpy().copy()
        by_growth = np.zeros_like(carried)
        for k in reversed(range(len(ctx.days))):
            G, short, some = ctx.days[k]
            if short and some:
                carried[ctx.visits[k]] = g_eaten.numpy()[k]
            by_growth += carried * G * (1 - G / ctx.ceiling)
            carried *= 1 + ctx.growth * (1 - 2 * G / ctx.ceiling)
        return {"grass": pb.asarray(carried), "growth": pb.asarray(by_growth)}

    return paddock_rotation


@BOOK.right(lambda rng: ((t(rng.uniform(0.2, 4.5, (3, 9))),), {"width": 4}))
def peak_flow():
    @pb.autograd_function
    def peak_flow(ctx, flow, width=3):
        """Highest mean flow over `width` samples of each milking, and where it begins."""
        curves = flow.numpy()
        if not 1 <= width <= curves.shape[-1]:
            raise ValueError("the window must fit the curve")
        means = np.lib.stride_tricks.sliding_window_view(curves, width, axis=-1).mean(axis=-1)
        begin = means.argmax(axis=-1)
        ctx.begin, ctx.width, ctx.shape = begin, width, curves.shape
        return pb.asarray(means.max(axis=-1)), pb.asarray(begin)

    @peak_flow.backward
    @pb.once_differentiable
    def _(ctx, g_peak, g_begin):
        after = np.arange(ctx.shape[-1]) - ctx.begin[..., None]
        inside = (after >= 0) & (after < ctx.width)
        return {"flow": pb.asarray(inside * (g_peak.numpy() / ctx.width)[..., None])}

    return peak_flow


@BOOK.right(
    lambda rng: (
        (t(np.array([0.74, 0.7, 0.62, 0.5, 0.0])), t(rng.uniform(7000, 9800, 6))),
        {},
    )
)
def herd_yield():
    @pb.autograd_function
    def herd_yield(ctx, stay, milk):
        """Mean milk of a herd of constant size.

        stay: (n,) the part of the cows that go on to the next lactation, which may be 0;
        milk: (n + 1,) kg per lactation.
        """
        s, kg = stay.numpy(), milk.numpy()
        if len(kg) != len(s) + 1:
            raise ValueError("milk needs one lactation more than stay")
        alive = np.concatenate([[1.0], np.cumprod(s)])
        mean = alive @ kg / alive.sum()
        ctx.save_for_backward(s=s, alive=alive, apart=kg - mean)
        return pb.asarray(np.array(mean))

    @herd_yield.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, alive, apart = ctx.saved_variables
        scale = grad_output.item() / alive.sum()
        by_stay, later = np.zeros_like(s), 0.0
        for k in range(len(s) - 1, -1, -1):
            later = apart[k + 1] + (s[k + 1] * later if k + 1 < len(s) else 0.0)
            by_stay[k] = alive[k] * later
        return {"stay": pb.asarray(scale * by_stay), "milk": pb.asarray(scale * alive)}

    return herd_yield


@BOOK.right(
    lambda rng: ((t(rng.uniform(0.02, 0.12, 5)), t(np.array(0.055))), {"C": 9.0, "k": 0.95})
)
def powder_activity():
    def sorbed(a, m0, C, k):
        return m0 * C * k * a / ((1 - k * a) * (1 - k * a + C * k * a))

    @pb.autograd_function
    def powder_activity(ctx, moisture, monolayer, C=10.0, k=0.9):
        m, m0 = moisture.numpy(), monolayer.item()
        if m0 <= 0 or (m <= 0).any() or not (0 < k <= 1 and C > 0):
            raise ValueError("moisture, monolayer, C and k must be positive and k at most 1")
        top = 1 / k - 1e-9
        a = np.array(
            [
                optimize.brentq(lambda x, w=w: sorbed(x, m0, C, k) - w, 0.0, top, xtol=1e-15)
                for w in m.astype(float)
            ]
        )
        by_log = 1 / a + k / (1 - k * a) - k * (C - 1) / (1 - k * a + C * k * a)
        ctx.save_for_backward(by_moisture=1 / (m * by_log), by_monolayer=-1 / (m0 * by_log))
        return pb.asarray(a)

    @powder_activity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        return {"moisture": pb.asarray(gn * s.by_moisture), "monolayer": gn @ s.by_monolayer}

    return powder_activity
