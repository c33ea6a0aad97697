"""Climate: energy balance, albedo, anomalies, humidity, carbon, insolation, evaporation, fluxes."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, SHIFT, ZERO, Book, at, mends, t

BOOK = Book("climate")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0, 4, 8)), t(np.array(1.2)), t(np.array(0.7))), {}),
    "the slope in the uptake takes the temperatures after the step, where those before it count",
    SHIFT,
    r"(?:after|before|end of|previous|next|later|wrong) (?:the |each |that |a )?(?:step|time)",
    r"(?:next|previous|wrong|later) (?:year|temperature|state|value)|\bindex\b.{0,20}\bwrong",
    mends(
        "(path[k, 0] - path[k, 1])",
        "(path[k][0] - path[k][1])",
        "gap = path[k, 0] - path[k, 1]",
        "-np.diff(path[k])",
    ),
)
def two_layer_warming():
    @pb.autograd_function
    def two_layer_warming(ctx, forcing, feedback, uptake, capacity=8.0, deep=100.0):
        """Surface warming, a year a step, over a deep ocean; forcing: (years,) in W/m2."""
        path = np.zeros((len(forcing) + 1, 2))
        for k, f in enumerate(forcing.numpy()):
            upper, lower = path[k]
            flow = uptake.item() * (upper - lower)
            path[k + 1, 0] = upper + (f - feedback.item() * upper - flow) / capacity
            path[k + 1, 1] = lower + flow / deep
        ctx.save_for_backward(feedback=feedback, uptake=uptake, path=path)
        ctx.capacity, ctx.deep = capacity, deep
        return pb.asarray(path[1:, 0].copy())

    @two_layer_warming.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        path, grad_forcing = s.path, np.zeros_like(gn)
        to_upper = to_lower = by_feedback = by_uptake = 0.0
        for k in reversed(range(len(gn))):
            to_upper += gn[k]
            heat = to_upper / ctx.capacity
            to_flow = to_lower / ctx.deep - heat
            grad_forcing[k] = heat
            by_feedback -= heat * path[k, 0]
            by_uptake += to_flow * (path[k + 1, 0] - path[k + 1, 1])
            to_upper += s.uptake.item() * to_flow - s.feedback.item() * heat
            to_lower -= s.uptake.item() * to_flow
        return {
            "forcing": pb.asarray(grad_forcing),
            "feedback": pb.asarray(np.array(by_feedback)),
            "uptake": pb.asarray(np.array(by_uptake)),
        }

    return two_layer_warming


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(-9, 1, 6)), t(rng.uniform(100, 300, 6))), {}),
    "outside the ramp the albedo is constant, but the gradient of the temperature has its slope",
    ZERO,
    r"\bramp\b|clipp|saturat|\bconstant\b|\boutside\b|beyond the|plateau|\bclip\(",
    r"(?:below|above|outside|beyond|<=?|>=?).{0,20}(?:cold|warm|-10|\b2\b|interval|range)",
    at("(?:cold|warm)"),
    mends(
        "> cold",
        "cold <",
        "< warm",
        ">= cold",
        "slope * inside",
        "np.where(inside, slope",
        "inside = ",
    ),
    where="a temperature outside the ramp",
    shows=lambda rng: ((t(np.array([-25.0, -4.0, 9.0, -1.0])), t(rng.uniform(100, 300, 4))), {}),
)
def absorbed_sunlight():
    ICE, OCEAN = 0.62, 0.28

    @pb.autograd_function
    def absorbed_sunlight(ctx, temperature, insolation, cold=-10.0, warm=2.0):
        """Sunlight absorbed; the albedo falls from that of ice to that of water in between."""
        ramp = np.clip((temperature.numpy() - cold) / (warm - cold), 0, 1)
        albedo = ICE + (OCEAN - ICE) * ramp
        ctx.save_for_backward(temperature=temperature, insolation=insolation, albedo=albedo)
        ctx.ends = cold, warm
        return pb.asarray(insolation.numpy() * (1 - albedo))

    @absorbed_sunlight.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        cold, warm = ctx.ends
        slope = (OCEAN - ICE) / (warm - cold)
        return {
            "temperature": pb.asarray(-gn * s.insolation.numpy() * slope),
            "insolation": pb.asarray(gn * (1 - s.albedo)),
        }

    return absorbed_sunlight


@BOOK.wrong(
    lambda rng: ((t(rng.normal(10, 3, (7, 4))),), {}),
    "the gradient takes every year for one of the baseline",
    at("baseline"),
    r"\b(?:in|of|to|outside|inside|only|other) the (?:baseline|reference)|all (?:the )?years",
    r"baseline years",
    r"(?:rows?|years|elements|index|axis 0).{0,40}(?:outside|not in|before|after).{0,20}\bwrong",
    mends(
        "ctx.inside[:, None] * shared",
        "np.where(ctx.inside[:, None], shared, 0",
        "/ ctx.inside.sum()",
        "n = ctx.inside.sum()",
        "shared[~ctx.inside] = 0",
        "grad[ctx.inside] -= ",
        "shared * ctx.inside[:, None]",
    ),
    where="baseline is a part of the years",
    shows=lambda rng: ((t(rng.normal(10, 3, (7, 4))),), {"baseline": (1, 5)}),
)
def standardised_anomalies():
    @pb.autograd_function
    def standardised_anomalies(ctx, values, baseline=None):
        """Anomalies by month, in standard deviations; values: (years, months).

        baseline: first year and the one after the last from which mean and spread are taken.
        """
        x = values.numpy()
        ctx.inside = np.zeros(len(x), dtype=bool)
        ctx.inside[slice(*baseline) if baseline else slice(None)] = True
        mean, ctx.spread = x[ctx.inside].mean(axis=0), x[ctx.inside].std(axis=0)
        ctx.z = (x - mean) / ctx.spread
        return pb.asarray(ctx.z.copy())

    @standardised_anomalies.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn, z, n = g.numpy(), ctx.z, len(ctx.z)
        shared = (gn.sum(axis=0) + z * (gn * z).sum(axis=0)) / n
        return {"values": pb.asarray((gn - shared) / ctx.spread)}

    return standardised_anomalies


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(12, 30, 5)), t(rng.uniform(2, 9, 5))), {}),
    "below freezing the slope has the constants for water, although forward takes those for ice",
    r"\bice\b|fr(?:eez|ost)|below (?:0|zero)|\bnegative (?:temp|value|element|dew|input)|sub.?zero",
    r"(?:temperature|dewpoint|x|celsius|elements?)`? ?(?:<=?|is below|under) ?(?:0|zero)",
    r"\bbranch\b|(?:17\.62|22\.46|243\.12|272\.62)",
    mends(
        "a, b = constants(celsius)",
        "a, b = np.where(celsius",
        "np.where(celsius < 0,",
        "np.where(celsius >= 0, WATER",
    ),
    where="below 0 degrees",
    shows=lambda rng: ((t(rng.uniform(2, 9, 5)), t(rng.uniform(-30, -5, 5))), {}),
)
def vapour_deficit():
    WATER, ICE = (17.62, 243.12), (22.46, 272.62)

    def constants(celsius):
        return (np.where(celsius >= 0, w, i) for w, i in zip(WATER, ICE, strict=True))

    def saturated(celsius):
        rise, offset = constants(celsius)
        return 6.112 * np.exp(rise * celsius / (offset + celsius))

    def slope(celsius):
        a, b = WATER
        return saturated(celsius) * a * b / (b + celsius) ** 2

    def forward(ctx, temperature, dewpoint):
        """Vapour pressure deficit in hPa, 0 in saturated air; temperatures in Celsius."""
        ctx.save_for_backward(temperature=temperature, dewpoint=dewpoint)
        deficit = saturated(temperature.numpy()) - saturated(dewpoint.numpy())
        return pb.asarray(np.maximum(deficit, 0.0))

    @pb.once_differentiable
    def backward(ctx, g):
        air, dew = (x.numpy() for x in ctx.saved_tensors)
        gn = g.numpy() * (saturated(air) > saturated(dew))
        return pb.asarray(gn * slope(air)), pb.asarray(-gn * slope(dew))

    return pb.autograd_function(forward, backward, name="vapour_deficit")


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(15, 5, (2, 4, 3))), t(np.array([-60.0, -10, 25, 70]))),
        {"land": rng.uniform(size=(4, 3)) < 0.6},
    ),
    "latitudes are in degrees: the factor pi / 180 is missing from their gradient",
    FACTOR + r"|multipl|divided by",
    r"\bdegrees?\b|\bradians?\b|(?:pi|\u03c0) ?/ ?180|180 ?/ ?(?:np\.)?pi|0\.0174|57\.[23]",
    mends("np.pi / 180", "np.deg2rad(1", "np.radians(1", "np.deg2rad(by_", "np.deg2rad(gn"),
)
def land_mean():
    class LandMean(pb.Function):
        """Mean over land by area; field: (time, lat, lon), latitude: (lat,), land: (lat, lon)."""

        @staticmethod
        def forward(ctx, field, latitude, land=None):
            x, phi = field.numpy(), np.deg2rad(latitude.numpy())
            land = np.ones(x.shape[1:], dtype=bool) if land is None else land
            weights = np.cos(phi)[:, None] * land
            mean = (weights * x).sum(axis=(1, 2)) / weights.sum()
            ctx.save_for_backward(x=x, phi=phi, land=land, weights=weights, mean=mean)
            return pb.asarray(mean.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, gn = ctx.saved_variables, grad_output.numpy()
            share = s.weights / s.weights.sum()
            away = gn @ ((s.x - s.mean[:, None, None]) * s.land).sum(axis=2)
            return {
                "field": pb.asarray(gn[:, None, None] * share),
                "latitude": pb.asarray(-np.sin(s.phi) * away / s.weights.sum()),
            }

    return LandMean.apply


def pools(rng):
    lifetimes = np.array([400.0, 40.0, 9.0])
    return (t(rng.uniform(5, 10, 6)), t(rng.dirichlet(np.ones(3))), t(lifetimes)), {}


@BOOK.wrong(
    pools,
    "the slope of the decay in the lifetimes lacks the factor dt",
    FACTOR + r"|multipl|divided by",
    at("dt"),
    r"(?:missing|left out|lacks?|forgot\w*|without|\btimes|multipl\w+ by).{0,25}\bdt\b",
    r"\bdt\b.{0,30}(?:missing|left out|forgot|ignored)|\btime.?step\b",
    mends(
        "ctx.dt * s.decay / tau**2",
        "s.decay * ctx.dt / tau**2",
        "s.decay / tau**2 * ctx.dt",
        "grad_decay * ctx.dt",
        "ctx.dt / tau**2",
        "ctx.dt * grad_decay",
    ),
    where="dt is not 1",
    shows=lambda rng: (pools(rng)[0], {"dt": 0.25}),
)
def carbon_content():
    @pb.autograd_function
    def carbon_content(ctx, emissions, shares, lifetimes, dt=1.0):
        """Carbon in the air, in pools that decay; emissions: (n,) a year, in steps of dt years."""
        E, tau = emissions.numpy(), lifetimes.numpy()
        decay = np.exp(-dt / tau)
        content = np.zeros((len(E) + 1, len(tau)))
        for k in range(len(E)):
            content[k + 1] = content[k] * decay + shares.numpy() * E[k] * dt
        ctx.save_for_backward(emissions=E, shares=shares, tau=tau, decay=decay, content=content)
        ctx.dt = dt
        return pb.asarray(content[1:].sum(axis=1))

    @carbon_content.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        E, tau, w = s.emissions, s.tau, s.shares.numpy()
        adjoint, grad_decay, grad_w = np.zeros_like(w), np.zeros_like(w), np.zeros_like(w)
        grad_E = np.zeros_like(E)
        for k in reversed(range(len(E))):
            adjoint = adjoint * s.decay + gn[k]
            grad_E[k] = ctx.dt * (adjoint @ w)
            grad_w += ctx.dt * adjoint * E[k]
            grad_decay += adjoint * s.content[k]
        grad_tau = grad_decay * s.decay / tau**2
        return (*map(pb.asarray, (grad_E, grad_w, grad_tau)), None)

    return carbon_content


@BOOK.right(lambda rng: ((t(rng.uniform(1300, 1400)), t(rng.uniform(0.58, 0.64))), {}))
def planet_temperature():
    SIGMA = 5.670374e-8

    def albedo(T):
        bend = np.tanh((T - 265.0) / 10.0)
        return 0.5 - 0.2 * bend, -0.02 * (1 - bend**2)

    @pb.autograd_function
    def planet_temperature(ctx, sunlight, emissivity, start=300.0):
        """Temperature in kelvin at which a planet emits what it absorbs, the one near start."""
        S, eps, T = sunlight.item(), emissivity.item(), start
        for _ in range(100):
            a, slope = albedo(T)
            imbalance = S / 4 * (1 - a) - eps * SIGMA * T**4
            T, before = T - imbalance / (-S / 4 * slope - 4 * eps * SIGMA * T**3), T
            if abs(T - before) < 1e-12 * T:
                break
        else:
            raise ValueError("no balance found")
        ctx.save_for_backward(sunlight=sunlight, emissivity=emissivity, T=T)
        return pb.asarray(np.array(T))

    @planet_temperature.backward
    @pb.once_differentiable
    def _(ctx, g):
        S, eps, T = (float(x) for x in ctx.saved_variables)
        a, slope = albedo(T)
        scale = g.item() / (S / 4 * slope + 4 * eps * SIGMA * T**3)
        return {
            "sunlight": pb.asarray(np.array(scale * (1 - a) / 4)),
            "emissivity": pb.asarray(np.array(-scale * SIGMA * T**4)),
        }

    return planet_temperature


RAIN = np.array([3.0, 0.2, 0.5, 0.1, 4.0, 0.3, 0.4, 2.0])


@BOOK.right(lambda rng: ((t(RAIN * rng.uniform(0.9, 1.1, 8)),), {"threshold": 1.0}))
def longest_dry_spell():
    @pb.autograd_function
    def longest_dry_spell(ctx, rain, threshold=1.0):
        """Water short of the threshold in the longest dry spell (the first), and its days."""
        short = threshold - rain.numpy()
        best, start = (0, 0), 0
        for day, dry in enumerate(short > 0):
            start = start if dry else day + 1
            if day + 1 - start > best[1] - best[0]:
                best = (start, day + 1)
        ctx.spell, ctx.n = slice(*best), len(short)
        days = pb.asarray(np.array(best[1] - best[0]))
        return pb.asarray(np.array(short[ctx.spell].sum())), days

    @longest_dry_spell.backward
    @pb.once_differentiable
    def _(ctx, g_short, g_days):
        grad = np.zeros(ctx.n)
        grad[ctx.spell] = -g_short.item()
        return {"rain": pb.asarray(grad)}

    return longest_dry_spell


@BOOK.right(
    lambda rng: (
        (t(np.array([-6.0, -2, 3, 8, 14, 18, 20, 19, 14, 9, 3, -4]) + rng.uniform(-1, 1, 12)),),
        {"daylight": rng.uniform(9, 15, 12)},
    )
)
def thornthwaite():
    def exponent(i):
        value = 6.75e-7 * i**3 - 7.71e-5 * i**2 + 1.792e-2 * i + 0.49239
        return value, 3 * 6.75e-7 * i**2 - 2 * 7.71e-5 * i + 1.792e-2

    @pb.autograd_function
    def thornthwaite(ctx, temperature, daylight=12.0):
        """Potential evaporation by month in mm, none in months of frost."""
        warm = temperature.numpy() > 0
        T = np.where(warm, temperature.numpy(), 1.0)
        index = np.where(warm, (T / 5) ** 1.514, 0.0).sum()
        if index == 0:
            raise ValueError("every month is below freezing")
        a = exponent(index)[0]
        out = np.where(warm, 16 * np.asarray(daylight) / 12 * (10 * T / index) ** a, 0.0)
        ctx.T, ctx.warm, ctx.index, ctx.out = T, warm, index, out
        return pb.asarray(out.copy())

    @thornthwaite.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        a, slope = exponent(ctx.index)
        flow = grad_output.numpy() * ctx.out
        to_index = (flow * (slope * np.log(10 * ctx.T / ctx.index) - a / ctx.index)).sum()
        by_index = 1.514 / 5 * (ctx.T / 5) ** 0.514
        grad = np.where(ctx.warm, flow * a / ctx.T + to_index * by_index, 0.0)
        return {"temperature": pb.asarray(grad)}

    return thornthwaite


@BOOK.right(
    lambda rng: ((t(np.array([280.0, 255, 225])), t(rng.uniform(0.1, 1.2, 3)), t(288.0)), {})
)
def outgoing_longwave():
    SIGMA = 5.670374e-8

    @pb.autograd_function
    def outgoing_longwave(ctx, temperature, depth, surface):
        """Flux to space through grey layers from the ground up; temperatures in kelvin."""
        ctx.save_for_backward(temperature=temperature, depth=depth, surface=surface)
        return fluxes(temperature, depth, surface)[-1]

    def fluxes(temperature, depth, surface):
        flux = [SIGMA * surface**4]
        for T, tau in zip(temperature, depth, strict=True):
            flux.append(flux[-1] * (-tau).exp() - SIGMA * T**4 * (-tau).expm1())
        return flux

    @outgoing_longwave.backward
    def _(ctx, g):
        T, tau, surface = ctx.saved_tensors
        flux = fluxes(T, tau, surface)
        through = g * (tau.cumsum(0) - tau.sum()).exp()
        return {
            "temperature": -4 * SIGMA * T**3 * (-tau).expm1() * through,
            "depth": (SIGMA * T**4 - pb.stack(flux[:-1])) * (-tau).exp() * through,
            "surface": g * 4 * SIGMA * surface**3 * (-tau.sum()).exp(),
        }

    return outgoing_longwave


@BOOK.right(lambda rng: ((t(np.deg2rad([-80.0, -30, 5, 60, 85])), t(rng.uniform(0.3, 0.4))), {}))
def daily_insolation():
    @pb.autograd_function
    def daily_insolation(ctx, latitude, declination, solar_constant=1361.0):
        """Mean insolation of a day in W/m2, also in polar day and night; angles in radians."""
        phi, delta = latitude.numpy(), declination.numpy()
        if delta.ndim:
            raise ValueError("one declination at a time")
        half_day = np.arccos(np.clip(-np.tan(phi) * np.tan(delta), -1.0, 1.0))
        ctx.save_for_backward(latitude=latitude, declination=declination, half_day=half_day)
        ctx.scale = solar_constant / np.pi
        high, low = np.sin(phi) * np.sin(delta), np.cos(phi) * np.cos(delta)
        return pb.asarray(ctx.scale * (half_day * high + low * np.sin(half_day)))

    @daily_insolation.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy() * ctx.scale
        phi, delta, h = s.latitude.numpy(), s.declination.numpy(), s.half_day
        by_phi = h * np.cos(phi) * np.sin(delta) - np.sin(phi) * np.cos(delta) * np.sin(h)
        by_delta = h * np.sin(phi) * np.cos(delta) - np.cos(phi) * np.sin(delta) * np.sin(h)
        return {
            "latitude": pb.asarray(gn * by_phi),
            "declination": pb.asarray(np.array((gn * by_delta).sum())),
        }

    return daily_insolation
