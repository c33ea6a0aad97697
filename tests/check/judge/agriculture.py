"""Crops and soils: warmth, water, light, retention, evaporation, weeds, rations, milk, yields."""

from __future__ import annotations

import numpy as np
from scipy import optimize

import pullback as pb

from .entries import FACTOR, MISSING, REVERSED, TRANSPOSED, Book, at, mends, t

BOOK = Book("agriculture")

DAYS = np.array([[18.0, 11], [24, 13], [33, 16], [21, 12.5], [27, 15]])
SPRING = np.array([[8.0, 2], [14, 6], [35, 17], [13, 9], [16, 11]])


def spring(days):
    return lambda rng: (
        (t(days[:, 0] + rng.uniform(0, 0.5, 5)), t(days[:, 1].copy()), t(np.array(10.0))),
        {"upper": 30.0},
    )


@BOOK.wrong(
    spring(DAYS),
    "every growing day takes one from the gradient of the base, where nights colder than the base "
    "raise the mean by a half: it is minus one half there",
    r"\bnights?\b|\bcold|\b(?:minimum|tmin|low)`?s?\b.{0,40}(?:below|<|under|clip|colder|less)",
    r"(?:clipp?ed|raised|limited|bounded|clamped|max(?:imum)?\().{0,30}\b(?:base|tmin)",
    r"\bbase\b.{0,30}(?:above|>|exceeds|larger than|is more than).{0,10}\btmin|\bclip",
    FACTOR,
    mends(
        "(low <= ",
        "(s.low < ",
        "s.low <= ",
        "s.tmin.numpy() < ",
        "tmin < base",
        "low < base",
        "low == ",
        "1 - 0.5 *",
        "0.5 * ",
    ),
    where="a night colder than the base",
    shows=spring(SPRING),
)
def growing_degree_days():
    @pb.autograd_function
    def growing_degree_days(ctx, tmax, tmin, base, upper=None):
        """Sum of daily means above the base, both extremes first brought to base and upper."""
        floor, roof = base.item(), np.inf if upper is None else upper
        if floor >= roof:
            raise ValueError("base must be below upper")
        high = np.clip(tmax.numpy(), floor, roof)
        low = np.clip(tmin.numpy(), floor, roof)
        ctx.save_for_backward(tmax=tmax, tmin=tmin, floor=floor, roof=roof, growing=high > floor)
        return pb.asarray(np.array(((high + low) / 2 - floor).sum()))

    @growing_degree_days.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.item()
        grads = {"base": np.array(-g * s.growing.sum())}
        for name in ("tmax", "tmin"):
            x = s[name].numpy()
            grads[name] = g / 2 * ((x > s.floor) & (x < s.roof))
        return {name: pb.asarray(grad) for name, grad in grads.items()}

    return growing_degree_days


def season(rain):
    return lambda rng: (
        (t(np.array(rain) * rng.uniform(0.95, 1.05, 8)), t(rng.uniform(2, 4, 8)), t(50.0)),
        {"start": 30.0},
    )


@BOOK.wrong(
    season([0.0, 12, 3, 60, 0, 5, 2, 0]),
    "the gradient of the capacity is overwritten on each day on which the soil overflows, so that "
    "only the first such day counts",
    r"\boverwr|accumulat|\+=|\badd(?:ed|s)? up\b|\bonly (?:one|the (?:first|last|earliest))\b",
    r"(?:second|two|several|more|later|last|other|earlier|first|each|every) .{0,20}"
    r"(?:overflow|runoff|day|spill|drain)",
    r"(?:overflow|runoff|drain|spill)\w*.{0,40}(?:more than once|twice|repeated|again|several)",
    r"\brain`? ?(?:>|is (?:large|above))",
    mends("by_capacity += ", "by_capacity = by_capacity", "by_capacity -= "),
    where="the soil overflows more than once",
    shows=season([0.0, 42, 3, 60, 0, 25, 2, 9]),
)
def soil_water():
    @pb.autograd_function
    def soil_water(ctx, rain, demand, capacity, start=0.0, stress=0.5):
        """Water left in the soil after each day, and what has run off in all; in mm.

        A crop takes what it demands, less where the store is below `stress` times the capacity.
        """
        W, top, store, lost = start, capacity.item(), [], 0.0
        ctx.days = []
        for water, want in zip(rain.tolist(), demand.tolist(), strict=True):
            taken = want * min(W / (stress * top), 1.0)
            filled = W - taken + water
            ctx.days.append((W, want, filled > top))
            lost += max(filled - top, 0.0)
            W = min(filled, top)
            store.append(W)
        ctx.top, ctx.stress = top, stress
        return pb.asarray(np.array(store)), pb.asarray(np.array(lost))

    @soil_water.backward
    @pb.once_differentiable
    def _(ctx, g_store, g_lost):
        g_W, by_capacity, by_dryness = 0.0, 0.0, 0.0
        g_rain, g_demand = np.zeros(len(ctx.days)), np.zeros(len(ctx.days))
        for day, (W, want, full) in reversed([*enumerate(ctx.days)]):
            g_W += g_store.numpy()[day]
            g_filled = g_lost.item() if full else g_W
            if full:
                by_capacity = g_W - g_lost.item()
            share = W / (ctx.stress * ctx.top)
            g_rain[day] = g_filled
            g_demand[day] = -g_filled * min(share, 1.0)
            g_W = g_filled
            if share < 1:
                g_W -= g_filled * want / (ctx.stress * ctx.top)
                by_dryness += g_filled * want * share / ctx.top
        return {
            "rain": pb.asarray(g_rain),
            "demand": pb.asarray(g_demand),
            "capacity": pb.asarray(np.array(by_capacity + by_dryness)),
        }

    return soil_water


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.2, 0.9, 5)), t(rng.uniform(0.4, 0.7, 5))), {"above": 400.0}),
    "a leaf shades the layers below it, but the gradient sums over the layers above it",
    REVERSED,
    TRANSPOSED,
    r"layers?`? (?:above|below|under|over|beyond|before|after)",
    r"(?:lower|upper|higher|deeper) layers?",
    r"cum(?:ulative )?.?sum.{0,40}(?:direction|wrong|end|order|from)|\bdirection\b",
    r"from the (?:top|bottom|end|other)",
    r"\b(?:earlier|previous|preceding|later|following|subsequent)\b.{0,60}(?:layer|element|instead)",
    r"\btriang",
    mends("[::-1]", "pb.flip(", ".flip(", "flow.sum() - ", "total - ", "np.flip"),
)
def canopy_light():
    def below(x):
        """Return the sum over the layers beyond each."""
        return x.cumsum(0) - x

    @pb.autograd_function
    def canopy_light(ctx, leaf_area, extinction, above=1000.0):
        """Light that each layer of a canopy absorbs, from the top down (Beer's law)."""
        depth = leaf_area * extinction
        through = above * (-below(depth)).exp()
        ctx.save_for_backward(leaf_area=leaf_area, extinction=extinction)
        ctx.above = above
        return through * (1 - (-depth).exp())

    @canopy_light.backward
    def _(ctx, g):
        L, k = ctx.saved_tensors
        depth = L * k
        light = g * ctx.above * (-below(depth)).exp()
        g_depth = light * (-depth).exp() - below(light * (1 - (-depth).exp()))
        return {"leaf_area": g_depth * k, "extinction": g_depth * L}

    return canopy_light


SOIL = (0.43, 0.07, 0.036, 1.56)


def suction(rng):
    head = rng.uniform(10, 300, 5)
    return (t(head), *(t(p * rng.uniform(0.97, 1.03)) for p in SOIL)), {}


@BOOK.wrong(
    suction,
    "n is followed through m = 1 - 1 / n, although m was given and does not depend on n",
    at("m"),
    r"\bm\b`? ?(?:is|was|were|=|not|given|set|fixed|passed|explicit|None)",
    r"(?:given|fixed|explicit) m\b",
    r"1 ?- ?1 ?/ ?n|1 ?/ ?n ?(?:\*\*|\^) ?2|Mualem|n(?:\*\*|\^)2|depend\w* on n\b",
    mends(
        "if ctx.tied",
        "ctx.tied",
        "ctx.m is None",
        "if ctx.given",
        "ctx.free",
        "if ctx.default",
    ),
    where="m is given",
    shows=lambda rng: (suction(rng)[0], {"m": 0.5}),
)
def van_genuchten():
    class VanGenuchten(pb.Function):
        """Water content at a suction head in cm, by the curve of van Genuchten.

        saturated, residual, alpha and n are numbers; m is 1 - 1 / n if it is not given.
        """

        @staticmethod
        def forward(ctx, head, saturated, residual, alpha, n, m=None):
            h, (hi, lo, a, p) = head.numpy(), (x.item() for x in (saturated, residual, alpha, n))
            if p <= 1 or a <= 0 or (h <= 0).any():
                raise ValueError("n must be above 1, alpha and heads positive")
            ctx.m = 1 - 1 / p if m is None else m
            wet = (1 + (a * h) ** p) ** -ctx.m
            ctx.h, ctx.a, ctx.p, ctx.range, ctx.wet = h, a, p, hi - lo, wet
            return pb.asarray(lo + (hi - lo) * wet)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            g, m, p, wet = grad_output.numpy(), ctx.m, ctx.p, ctx.wet
            scaled = ctx.a * ctx.h
            base = 1 + scaled**p
            flow = g * ctx.range * wet
            by_power = -m * flow * scaled**p / base
            by_m = -(flow * np.log(base)).sum()
            grads = {
                "head": by_power * p / ctx.h,
                "saturated": g @ wet,
                "residual": g @ (1 - wet),
                "alpha": by_power.sum() * p / ctx.a,
                "n": by_power @ np.log(scaled) + by_m / p**2,
            }
            return {name: pb.asarray(np.array(grad)) for name, grad in grads.items()}

    return VanGenuchten.apply


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(12, 30, 4)),
            t(rng.uniform(8, 18, 4)),
            t(rng.uniform(1, 4, 4)),
            t(rng.uniform(0.6, 1.8, 4)),
        ),
        {},
    ),
    "the wind also stands below the fraction bar: the part of its gradient with the denominator "
    "is missing",
    MISSING,
    r"denominator|fraction bar|quotient|0\.34|surface resistance",
    r"\bwind\b.{0,40}(?:twice|second|other (?:place|part)|both)",
    mends(
        "- 0.34 * gamma * ctx.out",
        "0.34 * gamma * s.out",
        "* 0.34",
        "gamma * 0.34",
        "0.34 * GAMMA",
        "0.34 * et",
        "0.34 * out",
    ),
)
def fao56_evaporation():
    GAMMA = 0.0665

    def saturation(T):
        return 0.6108 * np.exp(17.27 * T / (T + 237.3))

    @pb.autograd_function
    def fao56_evaporation(ctx, temperature, radiation, wind, vapour):
        """Evaporation of the reference crop in mm a day, after FAO 56.

        temperature in Celsius, net radiation in MJ/m2, wind in m/s at 2 m, vapour pressure in kPa.
        """
        T, R, u, e = (x.numpy() for x in (temperature, radiation, wind, vapour))
        es = saturation(T)
        delta = 4098 * es / (T + 237.3) ** 2
        bottom = delta + GAMMA * (1 + 0.34 * u)
        out = (0.408 * delta * R + GAMMA * 900 / (T + 273) * u * (es - e)) / bottom
        ctx.save_for_backward(T=T, R=R, u=u, e=e, es=es, delta=delta, bottom=bottom, out=out)
        return pb.asarray(out.copy())

    @fao56_evaporation.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        flow = g.numpy() / s.bottom
        dry = GAMMA * 900 / (s.T + 273)
        by_delta = flow * (0.408 * s.R - s.out)
        by_es = flow * dry * s.u + by_delta * s.delta / s.es
        by_T = by_es * s.delta - 2 * by_delta * s.delta / (s.T + 237.3)
        by_T -= flow * dry * s.u * (s.es - s.e) / (s.T + 273)
        return {
            "temperature": pb.asarray(by_T),
            "radiation": pb.asarray(flow * 0.408 * s.delta),
            "wind": pb.asarray(flow * dry * (s.es - s.e)),
            "vapour": pb.asarray(-flow * dry * s.u),
        }

    return fao56_evaporation


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0, 20, (3, 4))), t(rng.uniform(0.01, 0.1, 4))), {"most": 0.8}),
    "each weed is derived as if it grew alone: what it takes from the loss by the others, through "
    "the sum that all share, is missing",
    MISSING,
    r"\balone\b|\bother (?:weeds?|species|columns?|elements?)\b|\boff.?diagonal|\bdiagonal\b|"
    r"cross.?(?:terms?|species)|\bshared?\b|\bcoupl",
    r"(?:right|correct) (?:only )?(?:if|when|where|for) .{0,25}(?:one|single|1) "
    r"(?:weed|species|column)",
    r"right (?:only )?(?:if|when|where|for) .{0,30}(?:== ?1\b|\bone\b|single)",
    r"\btotal\b|(?:sum|summed) over (?:the )?(?:weeds|species|last|axis (?:1|-1))",
    r"element.?wise|elements? separately",
    mends(
        "ctx.total",
        "s.total",
        "grad_output * pressure",
        "pressure * grad_output",
        "(1 + total / ",
        ".sum(axis=-1)",
        ".sum(axis=1)",
    ),
)
def weed_loss():
    @pb.autograd_function
    def weed_loss(ctx, density, harm, most=0.6):
        """Share of the yield lost to each weed; density: (plots, weeds), harm: (weeds,).

        A hyperbola: harm is the loss by the first plant, most the loss by very many of all.
        """
        ctx.save_for_backward(density, harm)
        ctx.most = most
        pressure = density * harm
        return pressure / (1 + pressure.sum(dim=-1, keepdim=True) / most)

    @weed_loss.backward
    def _(ctx, grad_output):
        density, harm = ctx.saved_tensors
        pressure = density * harm
        crowd = 1 + pressure.sum(dim=-1, keepdim=True) / ctx.most
        flow = grad_output * (1 / crowd - pressure / ctx.most / crowd**2)
        return {"density": flow * harm, "harm": (flow * density).sum(dim=0)}

    return weed_loss


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 2, 4)), t(rng.uniform(5, 20)), t(rng.uniform(0.1, 0.3))),
        {"hours": 3.0},
    )
)
def green_ampt():
    @pb.autograd_function
    def green_ampt(ctx, conductivity, suction, deficit, hours=1.0):
        """Water that has soaked into ponded soil after some hours, in cm (Green and Ampt)."""
        wetting = suction.item() * deficit.item()
        Kt = conductivity.numpy() * hours
        if wetting <= 0 or (Kt <= 0).any():
            raise ValueError("conductivity, suction, deficit and hours must be positive")
        F = Kt + np.sqrt(2 * wetting * Kt)
        for _ in range(50):
            F = F - (F - wetting * np.log1p(F / wetting) - Kt) * (F + wetting) / F
        ctx.save_for_backward(conductivity, suction, deficit, F)
        ctx.hours = hours
        return pb.asarray(F)

    @green_ampt.backward
    @pb.once_differentiable
    def _(ctx, g):
        _, suction, deficit, F = ctx.saved_variables
        w = suction.item() * deficit.item()
        flow = g.numpy() * (F + w) / F
        by_wetting = flow @ (np.log1p(F / w) - F / (F + w))
        return {
            "conductivity": pb.asarray(flow * ctx.hours),
            "suction": pb.asarray(np.array(by_wetting * deficit.item())),
            "deficit": pb.asarray(np.array(by_wetting * suction.item())),
        }

    return green_ampt


FEED = np.array([[9.0, 12.8, 13.5, 10.4], [90, 110, 440, 160]])  # MJ and g of protein in a kg


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.10, 0.21, 0.42, 0.16]) * rng.uniform(0.97, 1.03, 4)),
            t(np.array([95.0, 1500])),
        ),
        {"content": FEED, "intake": 11.0},
    )
)
def ration_cost():
    @pb.autograd_function
    def ration_cost(ctx, price, need, *, content, intake):
        """Cost of the cheapest ration with enough of all nutrients in at most `intake` kg."""
        rows = np.vstack([-content, np.ones(content.shape[1])])
        limits = np.append(-need.numpy(), intake)
        best = optimize.linprog(price.numpy(), A_ub=rows, b_ub=limits, method="highs")
        if best.status != 0:
            raise ValueError(f"no ration: {best.message}")
        ctx.kilos, ctx.dual = best.x, best.ineqlin.marginals
        return pb.asarray(np.array(best.fun))

    @ration_cost.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"price": g * pb.asarray(ctx.kilos), "need": g * pb.asarray(-ctx.dual[:-1])}

    return ration_cost


@BOOK.right(
    lambda rng: (
        (t(np.array([0.3, 1.15, 0.5]) * rng.uniform(0.9, 1.1, 3)),),
        {"day": np.arange(0, 120, 11)},
    )
)
def crop_coefficient():
    @pb.autograd_function
    def crop_coefficient(ctx, levels, day, stages=(20, 30, 40, 25)):
        """Crop coefficient of some days after sowing, level in the first and third stage."""
        ends = np.cumsum(stages)
        if np.any(np.asarray(day) < 0) or np.any(np.asarray(day) > ends[-1]):
            raise ValueError("a day outside the season")
        knots = np.array([0, *ends])
        # each of the three hat functions has one column
        hats = np.eye(3)[[0, 0, 1, 1, 2]]
        ctx.weights = np.stack([np.interp(day, knots, hat) for hat in hats.T], axis=-1)
        return pb.asarray(ctx.weights @ levels.numpy())

    @crop_coefficient.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return pb.asarray(np.tensordot(grad_output.numpy(), ctx.weights, grad_output.ndim))

    return crop_coefficient


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(15, 20)), t(rng.uniform(0.1, 0.2)), t(rng.uniform(0.2, 0.4))),
        {},
    )
)
def lactation_peak():
    def forward(ctx, level, rise, decline):
        """Day of the highest yield on Wood's curve, that yield, and the milk of 305 days.

        decline: in 100 days.
        """
        if not (level.item() > 0 and rise.item() > 0 and decline.item() > 0):
            raise ValueError("level, rise and decline must be positive")
        ctx.save_for_backward(level=level, rise=rise, decline=decline)
        day = 100 * rise / decline
        days = pb.asarray(np.arange(1.0, 306.0))
        curve = level * (rise * days.log() - decline * days / 100).exp()
        return [day, level * (rise * day.log() - rise).exp(), curve.sum()]

    def backward(ctx, grads):
        g_day, g_peak, g_total = grads
        a, b, c = ctx.saved_tensors
        days = pb.asarray(np.arange(1.0, 306.0))
        shape = (b * days.log() - c * days / 100).exp()
        day = 100 * b / c
        peak = (b * day.log() - b).exp()
        return {
            "level": g_peak * peak + g_total * shape.sum(),
            "rise": g_day * 100 / c
            + g_peak * a * peak * day.log()
            + g_total * a * (shape * days.log()).sum(),
            "decline": -g_day * day / c
            - g_peak * a * peak * b / c
            - g_total * a * (shape * days).sum() / 100,
        }

    return pb.autograd_function(forward, backward, name="lactation_peak")


@BOOK.right(
    lambda rng: (
        (np.array([0.0, 0.4, 0.8, 1.2, 1.6, 2.0]),),
        {"intercept": t(rng.uniform(2, 3)), "slope": t(rng.uniform(4, 6)), "bend": t(-2.1)},
    )
)
def quadratic_plateau():
    def forward(ctx, nitrogen, *, intercept, slope, bend, hectares=1.0):
        """Yield at some rates of nitrogen: a parabola up to its top, level beyond it."""
        if intercept.ndim or slope.ndim or bend.ndim:
            raise ValueError("one crop at a time")
        if bend.item() >= 0:
            raise ValueError("bend must be negative")
        top = -slope.item() / (2 * bend.item())
        ctx.x, ctx.hectares = pb.asarray(np.minimum(nitrogen, top)), hectares
        return hectares * (intercept + slope * ctx.x + bend * ctx.x**2)

    @pb.once_differentiable
    def backward(ctx, g):
        # at its top the parabola is level, so that moving the top changes nothing
        g = g * ctx.hectares
        return {"intercept": g.sum(), "slope": (g * ctx.x).sum(), "bend": (g * ctx.x**2).sum()}

    return pb.autograd_function(forward, backward, name="quadratic_plateau")
