"""Horticulture: greenhouses, orchards, irrigation, chill and heat, nutrient solutions, grading."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import SIGN, ZERO, Book, at, mends, t

BOOK = Book("horticulture")


def heat(rng):
    return t(np.array([6.0, 14.0, 22.0, 33.5, 37.0, 27.0]) + rng.uniform(-1, 1, 6)), t(8.0), t(31.0)


@BOOK.wrong(
    lambda rng: (heat(rng), {}),
    "above the upper threshold the intermediate cutoff falls with a negative slope; it is taken "
    "for flat, as with the horizontal cutoff",
    at("cutoff"),
    SIGN,
    ZERO,
    r"intermediate|\bflat\b|above (?:the )?upper|(?:threshold|upper).{0,40}\bslope",
    mends('ctx.cutoff == "intermediate"', "2.0 *", "2 *", "np.where(hot, -1"),
    where="cutoff is intermediate",
    shows=lambda rng: (heat(rng), {"cutoff": "intermediate"}),
)
def bloom_degree_days():
    @pb.autograd_function
    def bloom_degree_days(ctx, temperature, lower, upper, cutoff="horizontal"):
        """Degree days of each day; lower, upper: thresholds in degrees Celsius.

        cutoff: "horizontal" (as warm as upper at most) or "intermediate" (what lies above upper
        is taken off again).
        """
        T, low, high = temperature.numpy(), lower.item(), upper.item()
        if low >= high:
            raise ValueError("the lower threshold must lie below the upper one")
        if cutoff not in ("horizontal", "intermediate"):
            raise ValueError(f"unknown cutoff {cutoff!r}")
        felt = np.minimum(T, high)
        if cutoff == "intermediate":
            felt = felt - np.maximum(T - high, 0.0)
        ctx.cutoff = cutoff
        ctx.save_for_backward(hot=high < T, grows=felt > low)
        return pb.asarray(np.maximum(felt - low, 0.0))

    @bloom_degree_days.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        flow = grad_output.numpy() * s.grows
        return {
            "temperature": pb.asarray(np.where(s.hot, 0.0, flow)),
            "lower": -flow.sum(),
            "upper": flow[s.hot].sum(),
        }

    return bloom_degree_days


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(1.8, 2.6, 6)), t(rng.uniform(0.4, 0.9, 6)), t(0.3)),
        {"volume": 8.0, "start": 16.0},
    ),
    "the salt that stays is passed on to the day before without the share that drains away with it",
    r"drain(?:s|ed|age)|leach|wash(?:ed|es)? (?:out|away)|stays?\b|remain|retain|kept",
    r"carr(?:y|ied|ies)|recurren|accumulat|previous day|day before|earlier (?:day|step)",
    mends(
        "to_salt *= 1 - s.washed[k]",
        "to_salt * (1 - s.washed[k])",
        "to_salt *= (1 - s.washed[k])",
        "(1 - s.washed[k]) * to_salt",
        "to_salt *= 1.0 - s.washed[k]",
    ),
)
def slab_conductivity():
    class SlabConductivity(pb.Function):
        @staticmethod
        def forward(ctx, feed, dose, drain, volume=8.0, start=0.0):
            """Salt concentration in a substrate slab at the end of each day."""
            ec, litres, share = feed.numpy(), dose.numpy(), drain.item()
            salt, before, washed = start, [], share * litres / volume
            out = np.empty_like(ec)
            for k in range(len(ec)):
                before.append(salt + ec[k] * litres[k])
                salt = before[-1] * (1 - washed[k])
                out[k] = salt / volume
            ctx.save_for_backward(feed, dose, np.array(before), washed)
            ctx.share, ctx.volume = share, volume
            return pb.asarray(out)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            feed, dose, before, washed = ctx.saved_variables
            ec, litres, gn = feed.numpy(), dose.numpy(), grad_output.numpy()
            by_feed, by_dose, by_share, to_salt = np.zeros_like(ec), np.zeros_like(ec), 0.0, 0.0
            for k in reversed(range(len(ec))):
                to_salt += gn[k] / ctx.volume
                to_washed = -to_salt * before[k]
                to_before = to_salt * (1 - washed[k])
                by_feed[k] = to_before * litres[k]
                by_dose[k] = to_before * ec[k] + to_washed * ctx.share / ctx.volume
                by_share += to_washed * litres[k] / ctx.volume
            return pb.asarray(by_feed), pb.asarray(by_dose), by_share, None, None

    return SlabConductivity.apply


def rows_of_cabbage(rng, weeks):
    return (t(rng.uniform(0.1, 0.18, 5) * weeks), t(rng.uniform(3.5, 4.5, 5))), {}


@BOOK.wrong(
    lambda rng: rows_of_cabbage(rng, 1.0),
    "where the canopy has closed, cover stays 1, but the gradient goes on as if not clipped",
    r"clip|clamp|satur|\bcap(?:ped)?\b|\bclosed\b|\bminimum\b|plateau|\bfull\b",
    ZERO,
    r"(?:exceeds?|above|greater than|more than|reach\w*|over) 1\b|> ?=? ?1\b",
    mends("s.raw < 1", "s.raw <= 1", "s.raw > 1", "s.raw >= 1"),
    where="the canopy has closed",
    shows=lambda rng: rows_of_cabbage(rng, 2.6),
)
def canopy_cover():
    @pb.autograd_function
    def canopy_cover(ctx, radius, density):
        raw = np.pi * radius.numpy() ** 2 * density.numpy()
        ctx.save_for_backward(radius=radius, density=density, raw=raw)
        return pb.asarray(np.minimum(raw, 1.0))

    @canopy_cover.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        r = s.radius.numpy()
        return {
            "radius": pb.asarray(gn * 2 * np.pi * r * s.density.numpy()),
            "density": pb.asarray(gn * np.pi * r**2),
        }

    return canopy_cover


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(18, 27, 6)), t(rng.uniform(20, 24, 6)), t(rng.uniform(60, 98, 6))),
        {},
    )
)
def leaf_pressure_deficit():
    def magnus(T):
        e = 0.61094 * np.exp(17.625 * T / (T + 243.04))
        return e, e * 17.625 * 243.04 / (T + 243.04) ** 2

    def forward(ctx, leaf, air, humidity):
        """Vapour pressure deficit of a leaf in kPa, none where dew forms; humidity in percent."""
        inside, slope_in = magnus(leaf.numpy())
        outside, slope_out = magnus(air.numpy())
        part = humidity.numpy() / 100
        deficit = inside - part * outside
        dry = deficit > 0
        ctx.save_for_backward(
            by_leaf=dry * slope_in, by_air=dry * -part * slope_out, by_rh=dry * -outside / 100
        )
        return pb.asarray(np.where(dry, deficit, 0.0))

    @pb.once_differentiable
    def backward(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        return {
            "leaf": pb.asarray(gn * s.by_leaf),
            "air": pb.asarray(gn * s.by_air),
            "humidity": pb.asarray(gn * s.by_rh),
        }

    return pb.autograd_function(forward, backward, name="leaf_pressure_deficit")


@BOOK.right(
    lambda rng: (
        (t(np.array([-1.3, 3.1, 7.7, 10.9, 14.6, 19.8, 8.2]) + rng.uniform(-0.3, 0.3, 7)),),
        {},
    )
)
def winter_chill():
    KNOTS = np.array([-2.0, 1.4, 2.5, 9.1, 12.4, 15.9, 18.0])
    UNITS = np.array([0.0, 0.5, 1.0, 1.0, 0.5, 0.0, -1.0])

    @pb.autograd_function
    def winter_chill(ctx, temperature):
        """Chill units added up hour by hour, by a table with straight lines between its points."""
        T = temperature.numpy()
        place = np.searchsorted(KNOTS, T, side="right")
        slopes = np.concatenate([[0.0], np.diff(UNITS) / np.diff(KNOTS), [0.0]])
        ctx.slope = slopes[place]
        return pb.asarray(np.cumsum(np.interp(T, KNOTS, UNITS)))

    @winter_chill.backward
    @pb.once_differentiable
    def _(ctx, g):
        later = np.cumsum(g.numpy()[::-1])[::-1]
        return {"temperature": pb.asarray(later * ctx.slope)}

    return winter_chill


@BOOK.right(
    lambda rng: (
        (t(np.array(0.93)), t(np.array(2.6)), t(np.array(5.4)), t(np.array(2.2))),
        {"days": np.array([1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0])},
    )
)
def germination_curve():
    @pb.autograd_function
    def germination_curve(ctx, final, lag, half, shape, days):
        """Share of the seeds that have germinated, after Weibull.

        final: share in the end; lag: days before the first; half: day on which half of them have;
        shape: steepness; days: (n,) days of counting. Needs lag < half and shape above 0.
        """
        M, z, h, c = final.item(), lag.item(), half.item(), shape.item()
        if not (z < h and c > 0):
            raise ValueError("lag must come before half, and shape be positive")
        begun = days > z
        x = np.where(begun, days - z, 1.0) / (h - z)
        power = np.log(2) * x**c
        share = np.where(begun, -np.expm1(-power), 0.0)
        ctx.save_for_backward(share=share, x=x, left=begun * np.exp(-power) * power)
        ctx.M, ctx.c, ctx.gap = M, c, h - z
        return pb.asarray(M * share)

    @germination_curve.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        to_log = gn * ctx.M * s.left
        to_x = ctx.c * to_log / s.x
        return {
            "final": gn @ s.share,
            "lag": (to_x @ (s.x - 1)) / ctx.gap,
            "half": -(to_x @ s.x) / ctx.gap,
            "shape": to_log @ np.log(s.x),
        }

    return germination_curve


@BOOK.right(
    lambda rng: ((t(rng.uniform(2.5, 7.0, 9)), t(30.0), t(18.0)), {"rain": rng.gamma(0.5, 4, 9)})
)
def tensiometer_irrigation():
    @pb.autograd_function
    def tensiometer_irrigation(ctx, use, capacity, trigger, rain=None):
        """Water given by day in mm: the bed is filled up when it has dried to the trigger."""
        u, full, low = use.numpy(), capacity.item(), trigger.item()
        store, given, events = full, np.zeros_like(u), []
        for k, lost in enumerate(u):
            store = store - lost + (0.0 if rain is None else rain[k])
            event = "refilled" if store <= low else "spilled" if store > full else ""
            if event == "refilled":
                given[k] = full - store
            store = full if event else store
            events.append(event)
        ctx.events = events
        return pb.asarray(given)

    @tensiometer_irrigation.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        by_use, by_capacity, to_store = np.zeros_like(gn), 0.0, 0.0
        for k in reversed(range(len(gn))):
            if ctx.events[k]:
                by_capacity += to_store
                to_store = 0.0
            if ctx.events[k] == "refilled":
                by_capacity += gn[k]
                to_store = -gn[k]
            by_use[k] = -to_store
        by_capacity += to_store
        return {"use": pb.asarray(by_use), "capacity": by_capacity, "trigger": 0.0}

    return tensiometer_irrigation


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(4, 22, 8)), t(np.array([0.11, 0.085, 0.2])), t(np.array([2.4, 2.6, 2.1]))),
        {"cultivar": np.array([0, 1, 1, 0, 0, 1, 0, 1])},
    )
)
def orchard_biomass():
    def forward(ctx, girth, scale, power, cultivar):
        d = girth.numpy()
        if (d <= 0).any():
            raise ValueError("girths must be positive")
        mass = scale.numpy()[cultivar] * d ** power.numpy()[cultivar]
        ctx.save_for_backward(girth=girth, scale=scale, power=power, mass=mass, of=cultivar)
        return pb.asarray(np.bincount(cultivar, weights=mass, minlength=len(scale.numpy())))

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        d, a, b, of = s.girth.numpy(), s.scale.numpy(), s.power.numpy(), s.of
        flow = g.numpy()[of] * s.mass
        by_scale, by_power = np.zeros_like(a), np.zeros_like(b)
        np.add.at(by_scale, of, flow / a[of])
        np.add.at(by_power, of, flow * np.log(d))
        return {
            "girth": pb.asarray(flow * b[of] / d),
            "scale": pb.asarray(by_scale),
            "power": pb.asarray(by_power),
        }

    return pb.autograd_function(forward, backward, name="orchard_biomass")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([190.0, 45.0, 240.0])),
            t(np.array([[0.155, 0.0, 0.13], [0.0, 0.22, 0.02], [0.01, 0.28, 0.36]])),
        ),
        {"water": np.array([12.0, 0.6, 4.0])},
    )
)
def stock_solution():
    @pb.autograd_function
    def stock_solution(ctx, recipe, contents, water=None):
        """Salts to dissolve, mg/l, so that the feed has what the recipe asks for.

        recipe: (k,) mg/l of each element; contents: (k, k) share of each element (row) in each
        salt (column); water: (k,) what the raw water brings, which can be more than is asked for.
        """
        wanted = recipe.numpy() - (0.0 if water is None else water)
        lacking = np.maximum(wanted, 0.0)
        salts = np.linalg.solve(contents.numpy(), lacking)
        ctx.save_for_backward(contents=contents, salts=salts, asked=wanted > 0)
        return pb.asarray(salts.copy())

    @stock_solution.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        adjoint = np.linalg.solve(s.contents.numpy().T, g.numpy())
        return {
            "recipe": pb.asarray(adjoint * s.asked),
            "contents": pb.asarray(-np.outer(adjoint, s.salts)),
        }

    return stock_solution


@BOOK.right(
    lambda rng: (
        (t(np.array([9.0, 3.5, 14.0, 17.0, 21.0, 18.0, 20.0]) + rng.random(7)), t(5.0), t(48.0)),
        {},
    )
)
def flowering_day():
    @pb.autograd_function
    def flowering_day(ctx, temperature, base, requirement):
        """The day, with its fraction, on which the heat sum meets the requirement.

        The season's length if it never does. temperature: (n,) daily means.
        """
        warmth = np.maximum(temperature.numpy() - base.item(), 0.0)
        total, need = np.cumsum(warmth), requirement.item()
        if need <= 0:
            raise ValueError("the requirement must be positive")
        day = int(np.searchsorted(total, need))
        ctx.size, ctx.day = len(warmth), day
        if day == len(warmth):
            return pb.asarray(np.array(float(day)))
        rest = need - (total[day] - warmth[day])
        ctx.rest, ctx.warmth = rest, warmth
        return pb.asarray(np.array(day + rest / warmth[day]))

    @flowering_day.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_T, k = np.zeros(ctx.size), ctx.day
        if k == ctx.size:
            return {"temperature": pb.asarray(by_T), "base": 0.0, "requirement": 0.0}
        to_rest = g.item() / ctx.warmth[k]
        by_T[:k] = -to_rest * (ctx.warmth[:k] > 0)
        by_T[k] = -to_rest * ctx.rest / ctx.warmth[k]
        return {"temperature": pb.asarray(by_T), "base": -by_T.sum(), "requirement": to_rest}

    return flowering_day


@BOOK.right(
    lambda rng: (
        (t(np.array([64.0, 71.5, 83.0, 57.0, 77.0, 92.0])), t(np.array([0.2, 0.6, 1.1, 0.9]))),
        {"limits": (60.0, 75.0, 90.0), "density": 0.83},
    )
)
def graded_value():
    class GradedValue(pb.Function):
        """Value of a lot of apples, and how many fall in each size class."""

        @staticmethod
        def forward(ctx, diameter, price, limits=(60.0, 70.0, 80.0), density=0.85):
            d, p = diameter.numpy(), price.numpy()
            if len(p) != len(limits) + 1:
                raise ValueError("one price more than limits")
            grade = np.digitize(d, limits)
            kilos = density * np.pi / 6 * d**3 * 1e-6
            ctx.grade, ctx.kilos, ctx.density = grade, kilos, density
            ctx.save_for_backward(diameter, price)
            counts = np.bincount(grade, minlength=len(p))
            return pb.asarray(np.array(p[grade] @ kilos)), pb.asarray(counts)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_value, g_counts):
            d, p = (v.numpy() for v in ctx.saved_variables)
            by_price = np.bincount(ctx.grade, weights=ctx.kilos, minlength=len(p))
            by_diameter = p[ctx.grade] * ctx.density * np.pi / 2 * d**2 * 1e-6
            return (
                pb.asarray(g_value.item() * by_diameter),
                pb.asarray(g_value.item() * by_price),
                None,
                None,
            )

    return GradedValue.apply


@BOOK.right(
    lambda rng: (
        (t(np.array([120.0, 480, 655, 590, 520, 430, 300, 610]) + rng.random(8)), t(0.45)),
        {},
    )
)
def shade_screen():
    @pb.autograd_function
    def shade_screen(ctx, radiation, transmission, close=600.0, open=450.0):
        """Radiation below a screen that closes above one setpoint and opens below another."""
        R, tau = radiation.numpy(), transmission.item()
        shut, closed = False, np.zeros(R.shape, bool)
        for k, r in enumerate(R):
            shut = r > open if shut else r > close
            closed[k] = shut
        ctx.save_for_backward(radiation=radiation, factor=np.where(closed, tau, 1.0), closed=closed)
        return pb.asarray(R * np.where(closed, tau, 1.0))

    @shade_screen.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_tau = (gn * s.radiation.numpy())[s.closed].sum()
        return {"radiation": pb.asarray(gn * s.factor), "transmission": by_tau}

    return shade_screen


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0, 60, (5, 2))), t(rng.uniform(0, 60, (3, 2))), t(22.0)),
        {"vigour": np.array([1.0, 0.6, 1.4])},
    )
)
def fruit_set():
    @pb.autograd_function
    def fruit_set(ctx, trees, pollinisers, reach, vigour=None):
        """Share of each tree's flowers that set fruit; positions and reach in metres."""
        apart = trees.numpy()[:, None] - pollinisers.numpy()
        squares, span = (apart**2).sum(axis=-1), reach.item()
        pollen = np.exp(-squares / (2 * span**2))
        if vigour is not None:
            pollen = pollen * vigour
        barren = np.exp(-pollen.sum(axis=1))
        ctx.save_for_backward(apart, squares, pollen, barren)
        ctx.span = span
        return pb.asarray(1 - barren)

    @fruit_set.backward
    @pb.once_differentiable
    def _(ctx, g):
        apart, squares, pollen, barren = ctx.saved_variables
        to_exponent = (g.numpy() * barren)[:, None] * pollen
        pull = -to_exponent[..., None] * apart / ctx.span**2
        return {
            "trees": pb.asarray(pull.sum(axis=1)),
            "pollinisers": pb.asarray(-pull.sum(axis=0)),
            "reach": (to_exponent * squares).sum() / ctx.span**3,
        }

    return fruit_set


@BOOK.right(lambda rng: ((t(np.array([52.0, 37.5, 69.8, -33.0, 71.0])), 172), {}))
def day_length():
    def forward(ctx, latitude, day, twilight=0.0):
        """Hours of daylight at latitudes in degrees; day of the year; sun below the horizon by
        twilight degrees at most. There are days without a night and nights without a day.
        """
        tilt = np.radians(-23.44) * np.cos(2 * np.pi * (day + 10) / 365)
        phi, low = np.radians(latitude.numpy()), np.sin(np.radians(-twilight))
        top = low - np.sin(phi) * np.sin(tilt)
        below = np.cos(phi) * np.cos(tilt)
        ratio = top / below
        usual = np.abs(ratio) < 1
        d_ratio = (
            -np.cos(phi) * np.sin(tilt) * below + top * np.sin(phi) * np.cos(tilt)
        ) / below**2
        bend = np.sqrt(1 - np.where(usual, ratio, 0.0) ** 2)
        ctx.slope = np.where(usual, -24 / np.pi * d_ratio / bend, 0.0) * np.pi / 180
        return pb.asarray(24 / np.pi * np.arccos(np.clip(ratio, -1, 1)))

    @pb.once_differentiable
    def backward(ctx, g):
        return {"latitude": pb.asarray(g.numpy() * ctx.slope)}

    return pb.autograd_function(forward, backward, name="day_length")


@BOOK.right(
    lambda rng: ((t(rng.uniform(300, 1500, (3, 4))), t(rng.uniform(0.5, 4, 3)), t(0.7)), {})
)
def canopy_light_use():
    @pb.autograd_function
    def canopy_light_use(ctx, light, leaf_area, extinction):
        ctx.save_for_backward(light=light, leaf_area=leaf_area, extinction=extinction)
        return light * (1 - (-extinction * leaf_area).exp()).unsqueeze(1)

    @canopy_light_use.backward
    def _(ctx, g):
        s = ctx.saved_variables
        passed = (-s.extinction * s.leaf_area).exp()
        to_depth = (g * s.light).sum(dim=1) * passed
        return {
            "light": g * (1 - passed).unsqueeze(1),
            "leaf_area": to_depth * s.extinction,
            "extinction": (to_depth * s.leaf_area).sum(),
        }

    return canopy_light_use
