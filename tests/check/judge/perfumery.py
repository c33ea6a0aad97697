"""Perfumery: headspace, odour strength, dry-down, formulas, panels, limits, maceration, prices."""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

import pullback as pb

from .entries import FACTOR, MISSING, REPEATED, Book, mends, t

BOOK = Book("perfumery")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(1, 12, 5)), t(rng.uniform(0.7, 4, 5))),
        {
            "molar_mass": np.array([136.2, 154.3, 196.3, 156.3, 222.4]),
            "saturation": np.array([190.0, 21.0, 9.3, 7.1, 0.05]),
        },
    ),
    "more of one material thins out the others: the term through the sum of moles is missing",
    MISSING,
    r"\bsum of|\btotal\b|normali[sz]|\bdilut|mole fraction|\bdiagonal\b|off.diagonal|couple",
    mends("- by_fraction @", "by_fraction -", "(by_fraction * s.fraction).sum()", "- gn @"),
)
def headspace_pressure():
    @pb.autograd_function
    def headspace_pressure(ctx, grams, activity, molar_mass, saturation):
        """Partial pressures in Pa over a blend: (n,) each.

        grams and activity coefficients: (n,); molar_mass in g/mol, saturation pressure in Pa.
        """
        moles = grams.numpy() / molar_mass
        total = moles.sum()
        fraction = moles / total
        ctx.save_for_backward(fraction=fraction, activity=activity.numpy(), total=total)
        ctx.mass, ctx.saturation = molar_mass, saturation
        return pb.asarray(fraction * activity.numpy() * saturation)

    @headspace_pressure.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_fraction = gn * s.activity * ctx.saturation
        return {
            "grams": pb.asarray(by_fraction / s.total / ctx.mass),
            "activity": pb.asarray(gn * s.fraction * ctx.saturation),
        }

    return headspace_pressure


def formula(lines):
    return lambda rng: (
        (t(rng.uniform(0.5, 20, 6)), t(rng.uniform(40, 900, 7))),
        {"material": np.array(lines)},
    )


@BOOK.wrong(
    formula([4, 0, 6, 2, 3, 1]),
    "a material on more than one line of the formula keeps the gradient of its last line only",
    REPEATED,
    r"add\.at|bincount|accumulat|last (?:line|one)|\bonly\b.{0,30}\blast\b|several|two lines",
    mends("np.add.at", "np.bincount"),
    where="a material is used twice",
    shows=formula([4, 0, 6, 0, 3, 4]),
)
def odour_value_lines():
    @pb.autograd_function
    def odour_value_lines(ctx, parts, strength, material, total=100.0):
        """Odour value of each line of a formula; strength: one number for each material."""
        share = parts.numpy() / total
        each = strength.numpy()[material]
        ctx.save_for_backward(share=share, each=each)
        ctx.material, ctx.total, ctx.n = material, total, strength.shape[0]
        return pb.asarray(share * each)

    @odour_value_lines.backward
    @pb.once_differentiable
    def _(ctx, g):
        share, each = ctx.saved_variables
        grad_strength = np.zeros(ctx.n)
        grad_strength[ctx.material] += g.numpy() * share
        return {
            "parts": pb.asarray(g.numpy() * each / ctx.total),
            "strength": pb.asarray(grad_strength),
        }

    return odour_value_lines


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(2, 400, 6)), t(rng.uniform(15, 80, 6)), t(np.array(0.72))),
        {"ceiling": 9.5},
    ),
    "the steepness has the logarithm to base 10 where the natural one belongs, a factor ln 10",
    FACTOR,
    r"log10|base 10|natural log|ln ?\(?10|2\.30",
    mends("np.log(c / k)", "np.log(c) - np.log(k)", "-np.log(k / c)"),
)
def hill_intensity():
    def forward(ctx, concentration, middle, steepness, ceiling=10.0):
        c, k, n = concentration.numpy(), middle.numpy(), steepness.item()
        part = 1 / (1 + (k / c) ** n)
        ctx.save_for_backward(c=c, k=k, n=n, part=part)
        ctx.ceiling = ceiling
        return pb.asarray(ceiling * part)

    @pb.once_differentiable
    def backward(ctx, g):
        c, k, n, part = ctx.saved_variables
        flow = g.numpy() * ctx.ceiling * part * (1 - part)
        return {
            "concentration": pb.asarray(flow * n / c),
            "middle": pb.asarray(-flow * n / k),
            "steepness": (flow * np.log10(c / k)).sum(),
        }

    return pb.autograd_function(forward, backward, name="hill_intensity")


@BOOK.right(
    lambda rng: (
        (t(np.array(31.5)), t(rng.uniform(0.02, 0.3, 4))),
        {"names": ["limonene", "linalool", "hedione", "limonene"], "unit": "Pa"},
    )
)
def vapour_over_blend():
    ANTOINE = {  # log10 of mmHg, degrees Celsius
        "limonene": (6.81591, 1446.45, 208.2),
        "linalool": (6.92, 1596.0, 186.6),
        "hedione": (7.13, 2310.0, 171.0),
        "ethanol": (8.2133, 1652.05, 231.48),
    }
    UNITS = {"mmHg": 1.0, "Pa": 133.322, "kPa": 0.133322}

    @pb.autograd_function
    def vapour_over_blend(ctx, temperature, fractions, names, unit="mmHg"):
        """Partial pressure of each named material by Raoult's law."""
        A, B, C = np.array([ANTOINE[name] for name in names]).T
        above = C + temperature.item()
        pure = UNITS[unit] * 10 ** (A - B / above)
        ctx.save_for_backward(pure, fractions, np.log(10) * B / above**2)
        return pb.asarray(pure * fractions.numpy())

    @vapour_over_blend.backward
    @pb.once_differentiable
    def _(ctx, g):
        pure, fractions, growth = ctx.saved_variables
        by_x = g.numpy() * pure
        return {
            "temperature": (by_x * fractions.numpy() * growth).sum(),
            "fractions": pb.asarray(by_x),
        }

    return vapour_over_blend


@BOOK.right(
    lambda rng: (
        (t(np.array([9.0, 14.0, 6.0, 20.0])), t(np.array([44.0, 9.0, 2.5, 0.3]))),
        {"hours": 9, "dt": 0.5},
    )
)
def blotter_drydown():
    @pb.autograd_function
    def blotter_drydown(ctx, amount, volatility, hours=8, dt=1.0):
        """Milligrams left on a blotter after each step: (hours, n).

        A material evaporates with its volatility (mg/h when alone) times its share of what is
        left, until nothing of it is left.
        """
        m, v = amount.numpy().copy(), volatility.numpy()
        left, shares, alive = [], [], []
        for _ in range(hours):
            total = m.sum()
            share = m / total if total > 0 else np.zeros_like(m)
            after = m - dt * v * share
            alive.append(dt * v < total)  # a material that is absent from the start may come
            shares.append((share, total))
            m = np.where(alive[-1], after, 0.0)
            left.append(m)
        ctx.shares, ctx.alive, ctx.v, ctx.dt = shares, alive, v, dt
        return pb.asarray(np.array(left).reshape(hours, v.size))

    @blotter_drydown.backward
    @pb.once_differentiable
    def _(ctx, g):
        to_m, grad_v = np.zeros_like(ctx.v), np.zeros_like(ctx.v)
        for k in reversed(range(len(ctx.shares))):
            share, total = ctx.shares[k]
            to_m = np.where(ctx.alive[k], to_m + g.numpy()[k], 0.0)
            grad_v -= ctx.dt * share * to_m
            if total > 0:
                by_share = -ctx.dt * ctx.v * to_m
                to_m = to_m + (by_share - by_share @ share) / total
        return {"amount": pb.asarray(to_m), "volatility": pb.asarray(grad_v)}

    return blotter_drydown


@BOOK.right(
    lambda rng: ((t(rng.uniform(1, 8, 4)), t(rng.uniform(-0.4, 0.3, 6))), {"method": "vector"})
)
def mixture_intensity():
    @pb.autograd_function
    def mixture_intensity(ctx, single, cosine, method="vector"):
        """Perceived intensity of a mixture from those of its materials.

        single: (n,) positive; cosine: (n (n - 1) / 2,), one for each two materials, row by row;
        method: "vector", "strongest" (cosine unused) or "additive" (cosine unused).
        """
        strength = single.numpy()
        rows, columns = np.triu_indices(strength.size, 1)
        by_cosine = np.zeros(rows.size)
        if method == "vector":
            C = np.eye(strength.size)
            C[rows, columns] = C[columns, rows] = cosine.numpy()
            out = np.sqrt(strength @ C @ strength)
            by_single, by_cosine = C @ strength / out, strength[rows] * strength[columns] / out
        elif method == "strongest":
            out, by_single = (
                strength.max(),
                (np.arange(strength.size) == strength.argmax()).astype(float),
            )
        elif method == "additive":
            out, by_single = strength.sum(), np.ones_like(strength)
        else:
            raise ValueError(f"no such method: {method}")
        ctx.save_for_backward(by_single, by_cosine)
        return pb.asarray(np.asarray(out))

    @mixture_intensity.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_single, by_cosine = ctx.saved_variables
        return {
            "single": pb.asarray(g.item() * by_single),
            "cosine": pb.asarray(g.item() * by_cosine),
        }

    return mixture_intensity


@BOOK.right(
    lambda rng: (
        (t(np.array([0.4, 2.6, 1.9, 5.0, 0.03]) * rng.uniform(0.95, 1.05, 5)),),
        {
            "names": ["oakmoss", "citral", "lilial", "iso e super", "rose oxide"],
            "dosage": 0.18,
        },
    )
)
def restricted_materials():
    LIMITS = {"oakmoss": 0.1, "citral": 0.6, "iso e super": 20.0, "lilial": 0.0}

    @pb.autograd_function
    def restricted_materials(ctx, percent, names, dosage=1.0, weight=10.0):
        """Penalty for materials above their limits in the finished product, in percent.

        percent: of the concentrate; a material without a limit may be used freely.
        """
        limit = np.array([LIMITS.get(name, np.inf) for name in names])
        over = np.maximum(percent.numpy() * dosage - limit, 0.0)
        ctx.slope = 2 * weight * dosage * over
        return pb.asarray(np.asarray(weight * (over**2).sum()))

    @restricted_materials.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"percent": pb.asarray(g.item() * ctx.slope)}

    return restricted_materials


@BOOK.right(
    lambda rng: (
        (
            t(np.array([4.9, 6.3, 9.8, 10.4, 14.9]) + rng.normal(0, 0.1, 5)),
            t(np.array([3.1, 4.2, 5.8, 8.1, 11.3, 15.9])),
            t(np.array(1.4)),
        ),
        {"carbons": np.array([8, 9, 10, 11, 12, 14])},
    )
)
def kovats_index():
    class KovatsIndex(pb.Function):
        """Retention indices from isothermal runs, or from a temperature programme."""

        @staticmethod
        def forward(ctx, times, alkanes, dead_time, carbons, programmed=False):
            raw, ladder, dead = times.numpy(), alkanes.numpy(), dead_time.item()
            k = np.searchsorted(ladder, raw, side="right") - 1
            if (k < 0).any() or (k > ladder.size - 2).any():
                raise ValueError("a peak lies outside the alkane ladder")
            if programmed:
                x, a, slope_x, slope_a = raw, ladder, np.ones_like(raw), np.ones_like(ladder)
            else:
                x, a = np.log(raw - dead), np.log(ladder - dead)
                slope_x, slope_a = 1 / (raw - dead), 1 / (ladder - dead)
            step = a[k + 1] - a[k]
            part = (x - a[k]) / step
            jump = 100.0 * np.diff(carbons)[k]
            ctx.save_for_backward(k, part, jump / step, slope_x, slope_a)
            ctx.programmed = programmed
            return pb.asarray(100.0 * carbons[k] + jump * part)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            k, part, rise, slope_x, slope_a = ctx.saved_variables
            flow = g.numpy() * rise
            by_time = flow * slope_x
            by_ladder = np.zeros_like(slope_a)
            np.add.at(by_ladder, k, flow * (part - 1))
            np.add.at(by_ladder, k + 1, -flow * part)
            by_ladder *= slope_a
            by_dead = 0.0 if ctx.programmed else -(by_time.sum() + by_ladder.sum())
            return pb.asarray(by_time), pb.asarray(by_ladder), by_dead, None, None

    return KovatsIndex.apply


@BOOK.right(lambda rng: ((t(rng.uniform(0.5, 30, 6)),), {"family": np.array([0, 3, 3, 9, 12, 4])}))
def wheel_direction():
    @pb.autograd_function
    def wheel_direction(ctx, parts, family, families=14):
        """Where a formula lies on the fragrance wheel: degrees (-180 to 180) and clarity (0 to 1).

        family: place on the wheel of each material, 0 to families - 1.
        """
        angle = 2 * np.pi * np.asarray(family) / families
        c, s = np.cos(angle), np.sin(angle)
        w = parts.numpy()
        x, y, total = w @ c, w @ s, w.sum()
        length = np.hypot(x, y)
        ctx.by_angle = np.degrees((x * s - y * c) / length**2)
        ctx.by_clarity = ((x * c + y * s) / length - length / total) / total
        return (
            pb.asarray(np.asarray(np.degrees(np.arctan2(y, x)))),
            pb.asarray(np.asarray(length / total)),
        )

    @wheel_direction.backward
    @pb.once_differentiable
    def _(ctx, g_angle, g_clarity):
        grad = g_angle.item() * ctx.by_angle + g_clarity.item() * ctx.by_clarity
        return {"parts": pb.asarray(grad)}

    return wheel_direction


@BOOK.right(
    lambda rng: (
        (t(np.array(0.35)), t(np.array(48.0)), t(np.array([24.0, 19.0, 6.0]))),
        {"days": [10, 21, 14], "start": 0.05},
    )
)
def maceration_degree():
    GAS = 8.314e-3  # kJ/mol/K

    @pb.autograd_function
    def maceration_degree(ctx, rate, energy, temperature, days, start=0.0):
        """Part of a tincture's extract in solution after each stage of a maceration.

        rate: per day at 20 degrees; energy: kJ/mol; temperature: degrees Celsius of each stage.
        """
        k, E, T = rate.item(), energy.item(), temperature.numpy() + 273.15
        cold = (1 / 293.15 - 1 / T) / GAS
        speed = np.exp(E * cold)
        length = np.asarray(days, float)
        progress = np.cumsum(length * speed * k)
        left = (1 - start) * np.exp(-progress)
        ctx.save_for_backward(left=left, each=length * speed, cold=cold, T=T, k=k, E=E)
        return pb.asarray(1 - left)

    @maceration_degree.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        to_progress = np.cumsum((g.numpy() * s.left)[::-1])[::-1]
        by_each = to_progress * s.each
        return {
            "rate": by_each.sum(),
            "energy": s.k * (by_each @ s.cold),
            "temperature": pb.asarray(by_each * s.k * s.E / GAS / s.T**2),
        }

    return maceration_degree


@BOOK.right(
    lambda rng: (
        (t(np.array([80.0, 25.0, 9.0])), t(np.array([1.9, 0.35, 0.04])), t(np.array(6.0))),
        {},
    )
)
def longevity():
    @pb.autograd_function
    def longevity(ctx, strength, decay, threshold):
        """Hours until the sum of decaying notes falls to the threshold; 0 if never above it."""
        a, k, limit = strength.numpy(), decay.numpy(), threshold.item()
        if (a < 0).any() or (k <= 0).any() or limit <= 0:
            raise ValueError("strengths, decays and the threshold must be positive")
        hours, slope = 0.0, -np.inf
        if a.sum() > limit:
            late = np.log(a.sum() / limit) / k.min()
            hours = optimize.brentq(
                lambda h: a @ np.exp(-k * h) - limit, 0.0, late + 1e-9, xtol=1e-13, rtol=1e-14
            )
            slope = -(a * k) @ np.exp(-k * hours)
        ctx.save_for_backward(a, np.exp(-k * hours), hours, slope)
        return pb.asarray(np.asarray(hours))

    @longevity.backward
    @pb.once_differentiable
    def _(ctx, g):
        a, faded, hours, slope = ctx.saved_variables
        flow = -g.item() / slope
        return {
            "strength": pb.asarray(flow * faded),
            "decay": pb.asarray(-flow * hours * a * faded),
            "threshold": -flow,
        }

    return longevity


@BOOK.right(
    lambda rng: (
        (t(np.array(2.4)), t(np.array(0.06)), np.array([0.3, 0.8, 1.5])),
        {"minutes": np.array([0.5, 2.0, 10.0, 45.0])},
    )
)
def sillage():
    def forward(ctx, emission, spread, distance, minutes):
        """Concentration around a wearer who has stood in still air for some time.

        emission: mg/min; spread: turbulent diffusivity in m2/min; result: (times, distances).
        """
        D, r, m = spread.item(), np.asarray(distance), np.asarray(minutes)[:, None]
        u = r / np.sqrt(4 * D * m)
        steady = 1 / (4 * np.pi * D * r)
        unit = steady * special.erfc(u)
        ctx.save_for_backward(unit=unit, steady=steady, u=u)
        ctx.Q, ctx.D = emission.item(), D
        return pb.asarray(ctx.Q * unit)

    @pb.once_differentiable
    def backward(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_spread = s.steady * s.u * np.exp(-(s.u**2)) / np.sqrt(np.pi) - s.unit
        return (gn * s.unit).sum(), ctx.Q / ctx.D * (gn * by_spread).sum(), None, None

    return pb.autograd_function(forward, backward, name="sillage")


def panel(rng):
    scores = rng.uniform(1, 9, (5, 4))
    scores[1, 2] = scores[3, 0] = 0.0
    return (t(scores), t(rng.uniform(0.5, 1.5, 5)), scores > 0), {}


@BOOK.right(panel)
def panel_consensus():
    @pb.autograd_function
    def panel_consensus(ctx, scores, trust, present, centred=True):
        """Weighted mean score of each perfume over those judges who smelt it.

        scores: (judges, perfumes); trust: (judges,) positive; present: bool, as the scores;
        centred: each judge's own mean is taken off first. A perfume that none smelt gets 0.
        """
        y, w = np.where(present, scores.numpy(), 0.0), trust.numpy()[:, None] * present
        seen = np.maximum(present.sum(axis=1, keepdims=True), 1)
        if centred:
            y = np.where(present, y - y.sum(axis=1, keepdims=True) / seen, 0.0)
        total = w.sum(axis=0)
        share = np.divide(w, total, out=np.zeros_like(w), where=total > 0)
        mean = (share * y).sum(axis=0)
        per_trust = np.divide(y - mean, total, out=np.zeros_like(y), where=present)
        ctx.save_for_backward(share, per_trust, seen, present)
        ctx.centred = centred
        return pb.asarray(mean)

    @panel_consensus.backward
    @pb.once_differentiable
    def _(ctx, g):
        share, per_trust, seen, present = ctx.saved_variables
        by_score = share * g.numpy()
        if ctx.centred:
            by_score = by_score - present * by_score.sum(axis=1, keepdims=True) / seen
        return {"scores": pb.asarray(by_score), "trust": pb.asarray(per_trust @ g.numpy())}

    return panel_consensus


@BOOK.right(lambda rng: ((t(rng.uniform(0.1, 1, 4)), t(rng.normal(0, 0.8, 6))), {}))
def margules_activity():
    @pb.autograd_function
    def margules_activity(ctx, fractions, pairs):
        x = fractions.numpy()
        above = np.triu_indices(x.size, 1)
        A = np.zeros((x.size, x.size))
        A[above] = pairs.numpy()
        A += A.T
        Ax = A @ x
        gamma = np.exp(Ax - 0.5 * (x @ Ax))
        ctx.A, ctx.Ax, ctx.x, ctx.gamma, ctx.above = A, Ax, x, gamma, above
        return pb.asarray(gamma.copy())

    @margules_activity.backward
    @pb.once_differentiable
    def _(ctx, g):
        flow = g.numpy() * ctx.gamma
        total = flow.sum()
        by_A = np.outer(flow, ctx.x)
        by_A += by_A.T - total * np.outer(ctx.x, ctx.x)
        return {
            "fractions": pb.asarray(ctx.A @ flow - total * ctx.Ax),
            "pairs": pb.asarray(by_A[ctx.above]),
        }

    return margules_activity


@BOOK.right(lambda rng: ((t(np.array([0.4, 3.0, 18.0, 72.0])), t(rng.uniform(60, 900, 4))), {}))
def oil_purchase():
    @pb.autograd_function
    def oil_purchase(
        ctx, kilograms, list_price, steps=(1.0, 5.0, 25.0), rebates=(0.0, 0.08, 0.15, 0.22)
    ):
        """Cost of essential oils: of each kilogram the rebate of the bracket that it falls in."""
        q, price = kilograms.numpy(), list_price.numpy()
        edges = np.concatenate([[0.0], steps, [np.inf]])
        pay = 1 - np.asarray(rebates)
        within = np.clip(q[:, None] - edges[:-1], 0.0, np.diff(edges))
        marginal = pay[np.searchsorted(steps, q, side="left")]
        ctx.save_for_backward(price * marginal, within @ pay)
        return pb.asarray(price * (within @ pay))

    @oil_purchase.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_quantity, by_price = ctx.saved_variables
        return {
            "kilograms": pb.asarray(g.numpy() * by_quantity),
            "list_price": pb.asarray(g.numpy() * by_price),
        }

    return oil_purchase
