"""Soils: retention, heat, erosion, carbon, sorption, water, acidity, depth profiles, frost."""

from __future__ import annotations

import numpy as np
from scipy import linalg

import pullback as pb

from .entries import CHANGED, MISSING, SHIFT, TRANSPOSED, Book, at, mends, t

BOOK = Book("soils")


@BOOK.wrong(
    lambda rng: (
        (
            t(np.array([-2.0, 5.0, 30.0, 120.0, 800.0]) * rng.uniform(0.8, 1.2, 5)),
            t(np.array(0.06)),
            t(np.array(0.43)),
            t(np.array(0.036)),
            t(np.array(1.56)),
        ),
        {},
    ),
    "m = 1 - 1/n depends on n as well: that term of the gradient of n is missing",
    MISSING,
    r"\bm\b.{0,30}(?:constant|fixed|depends|function of)|(?:through|via|of) `?m\b|dm ?/ ?dn",
    r"chain rule|1 ?/ ?n ?(?:\^|\*\*) ?2|log1p",
    mends("np.log1p(", "np.log(1 + s.x", "np.log(s.below", "/ s.n**2", "np.log(1.0 + s.x"),
)
def retention_curve():
    @pb.autograd_function
    def retention_curve(ctx, suction, residual, saturated, alpha, n):
        """Water content by van Genuchten with m = 1 - 1/n; suction: (k,) in cm, wet if <= 0."""
        h, power = suction.numpy(), n.item()
        m = 1 - 1 / power
        dry = h > 0
        ah = alpha.item() * np.where(dry, h, 1.0)
        x = np.where(dry, ah**power, 0.0)
        below = 1 + x
        fill = below**-m
        span = saturated.item() - residual.item()
        ctx.save_for_backward(x=x, below=below, fill=fill, log_ah=np.log(ah), h=h, m=m, span=span)
        ctx.dry, ctx.alpha, ctx.n = dry, alpha.item(), power
        return pb.asarray(residual.item() + span * fill)

    @retention_curve.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_log_x = -gn * s.span * s.fill * s.m * s.x / s.below
        safe = np.where(ctx.dry, s.h, 1.0)
        return {
            "suction": pb.asarray(by_log_x * ctx.n / safe),
            "residual": (gn * (1 - s.fill)).sum(),
            "saturated": (gn * s.fill).sum(),
            "alpha": by_log_x.sum() * ctx.n / ctx.alpha,
            "n": (by_log_x * s.log_ah).sum(),
        }

    return retention_curve


def ground(**settings):
    def given(rng):
        conductivity = np.array([0.6, 0.9, 1.4, 1.2, 1.6])
        args = (t(rng.uniform(4, 14, 5)), t(np.array(25.0)))
        return args, {"conductivity": conductivity, **settings}

    return given


@BOOK.wrong(
    ground(),
    "backward solves with the matrix, not with its transpose; it is not symmetric",
    TRANSPOSED,
    r"symmetric|\badjoint\b",
    at("thickness"),
    mends(
        "ctx.system.T", "ctx.system.transpose(", "np.transpose(ctx.system", "ctx.system.swapaxes"
    ),
    where="layers of different thickness",
    shows=ground(thickness=np.array([0.05, 0.1, 0.2, 0.3, 0.6])),
)
def ground_temperature():
    @pb.autograd_function
    def ground_temperature(
        ctx, temperature, flux, conductivity, thickness=None, capacity=2.2e6, dt=3600.0
    ):
        """One implicit step of heat conduction in layers: (n,); flux in W/m2 into the top."""
        T = temperature.numpy()
        dz = np.full(len(T), 0.1) if thickness is None else thickness
        resistance = 0.5 * dz / conductivity
        between = 1 / (resistance[:-1] + resistance[1:])
        D = np.diff(np.eye(len(T)), axis=0)
        store = capacity * dz
        system = np.eye(len(T)) + dt / store[:, None] * (D.T @ (between[:, None] * D))
        right = T.copy()
        right[0] += dt * flux.item() / store[0]
        ctx.system, ctx.warming = system, dt / store[0]
        return pb.asarray(np.linalg.solve(system, right))

    @ground_temperature.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        by_right = np.linalg.solve(ctx.system, grad_output.numpy())
        return {"temperature": pb.asarray(by_right), "flux": by_right[0] * ctx.warming}

    return ground_temperature


def fields_of(low, high):
    def given(rng):
        return (
            t(rng.uniform(low, high, 5)),
            t(rng.uniform(20, 120, 5)),
            t(rng.uniform(0.05, 0.5, 5)),
        ), {"erosivity": 85.0, "erodibility": 0.32}

    return given


@BOOK.wrong(
    fields_of(0.032, 0.085),
    "for steep fields backward takes the slope of the formula for gentle ones",
    r"\bbranch|\bsteep(?:er)?\b|\bgentle\b|\bpiecewise\b|\bregime\b|\b0\.09\b",
    r"(?:slope|gradient|steepness)`?s? .{0,30}(?:above|below|at least|beyond|over|exceed|larger)",
    r"\bthreshold\b|\b9 ?%|\bnine per ?cent|\b16\.8 (?:instead|rather|times)",
    mends("16.8 * s.", "s.steep", "16.8, 10.8", "10.8, 16.8", "s.rise", "16.8 if"),
    where="a slope of 9 % or more",
    shows=fields_of(0.1, 0.19),
)
def soil_loss():
    @pb.autograd_function
    def soil_loss(ctx, slope, length, cover, erosivity, erodibility):
        """Yearly loss of soil from fields by the revised equation; slope: rise over run."""
        grade, L = slope.numpy(), length.numpy()
        exponent = np.select([grade < 0.03, grade < 0.05], [0.3, 0.4], 0.5)
        sine = grade / np.hypot(1.0, grade)
        steepness = np.where(grade < 0.09, 10.8 * sine + 0.03, 16.8 * sine - 0.5)
        long = (L / 22.13) ** exponent
        rate = erosivity * erodibility * long * cover.numpy()
        ctx.save_for_backward(grade, L, cover.numpy(), exponent, steepness, rate)
        return pb.asarray(rate * steepness)

    @soil_loss.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        grade, L, cover, exponent, steepness, rate = ctx.saved_variables
        flow = grad_output.numpy() * rate
        by_sine = 10.8 * flow
        return (
            pb.asarray(by_sine * (1 + grade**2) ** -1.5),
            pb.asarray(flow * steepness * exponent / L),
            pb.asarray(flow * steepness / cover),
            None,
            None,
        )

    return soil_loss


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(0.1, 0.4, 7)), t(np.array([0.3, 0.05])), t(np.array(0.25))),
        {"climate": rng.uniform(0.5, 1.4, 7)},
    ),
    "the rates' gradient takes the pools after the step instead of before it: shifted by one",
    SHIFT,
    r"\b(?:after|before|previous|next|old|new|updated|later|earlier)\b.{0,25}(?:step|pools?|state)",
    r"(?:pools?|state).{0,25}\b(?:after|before|previous|old|updated)\b",
    mends("s.pools[k] ", "s.pools[k]\n", "= s.pools[k]", "s.pools[k])", "s.pools[:-1]"),
)
def carbon_pools():
    @pb.autograd_function
    def carbon_pools(ctx, litter, rates, humified, climate, start=(1.0, 8.0)):
        """Soil carbon by year: (n,), a fast and a slow pool that decay at rates: (2,).

        A part of what leaves the fast pool goes to the slow one; climate speeds up decay.
        """
        pools = np.empty((len(climate) + 1, 2))
        pools[0] = start
        for k, factor in enumerate(climate):
            lost = factor * rates.numpy() * pools[k]
            pools[k + 1] = pools[k] - lost
            pools[k + 1, 0] += litter.numpy()[k]
            pools[k + 1, 1] += humified.item() * lost[0]
        ctx.save_for_backward(
            pools=pools, rates=rates.numpy(), humified=humified.item(), climate=climate
        )
        return pb.asarray(pools[1:].sum(axis=1))

    @carbon_pools.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        to_pools, by_rates, by_humified = np.zeros(2), np.zeros(2), 0.0
        by_litter = np.empty_like(gn)
        for k in reversed(range(len(gn))):
            to_pools = to_pools + gn[k]
            by_litter[k] = to_pools[0]
            to_lost = -to_pools
            to_lost[0] += s.humified * to_pools[1]
            by_humified += to_pools[1] * s.climate[k] * s.rates[0] * s.pools[k, 0]
            by_rates += s.climate[k] * to_lost * s.pools[k + 1]
            to_pools = to_pools + s.climate[k] * s.rates * to_lost
        return {
            "litter": pb.asarray(by_litter),
            "rates": pb.asarray(by_rates),
            "humified": by_humified,
        }

    return carbon_pools


def sorbing(**settings):
    return lambda rng: ((t(rng.uniform(0.5, 6.0, 5)), t(np.array(0.7))), settings)


@BOOK.wrong(
    sorbing(),
    "the slope of the isotherm is taken for its coefficient, as if the isotherm were linear",
    at("exponent"),
    r"\blinear\b|isotherm|\bfreundlich\b|\bderivative of the (?:power|sorbed)|non.?linear",
    r"exponent.{0,40}(?:ignored|not used|other than|not 1|fixed)|power (?:rule|law)|retardation",
    mends("ctx.exponent * ", "* ctx.exponent", "s.c ** (ctx.exponent", "(ctx.exponent - 1)"),
    where="exponent is not 1",
    shows=sorbing(exponent=0.8),
)
def dissolved_concentration():
    def forward(ctx, total, sorption, exponent=1.0, moisture=0.3, density=1.4):
        """Concentration in soil water, of the total amount by volume: (n,), by Newton's method.

        What is sorbed is density * sorption * concentration**exponent.
        """
        M, k = total.numpy(), density * sorption.item()
        c = M / (moisture + k)
        for _ in range(60):
            excess = moisture * c + k * c**exponent - M
            step = excess / (moisture + k * exponent * c ** (exponent - 1))
            c = np.maximum(c - step, 0.1 * c)
            if np.abs(step).max() < 1e-14:
                break
        ctx.save_for_backward(c=c, sorbed=density * c**exponent, k=k)
        ctx.moisture, ctx.exponent = moisture, exponent
        return pb.asarray(c.copy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s = ctx.saved_variables
        by_total = grad_output.numpy() / (ctx.moisture + s.k)
        return {"total": pb.asarray(by_total), "sorption": -by_total @ s.sorbed}

    return pb.autograd_function(forward, backward, name="dissolved_concentration")


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(0.2, 0.3, 5)),
            t(rng.uniform(0.08, 0.15, 5)),
            t(rng.uniform(0.32, 0.4, 5)),
        ),
        {},
    ),
    "forward works in the caller's array: the water contents are changed in place",
    CHANGED,
    r"\bcopy\b|caller|\bshares?\b.{0,20}(?:memory|data|buffer)|\balias",
    mends("content.numpy().copy()", "content.numpy() - wilting", "np.array(content"),
    where="input changed",
)
def available_water():
    class AvailableWater(pb.Function):
        """Part of the plant-available water that is there, by layer; roots thin out downwards."""

        @staticmethod
        def forward(ctx, content, wilting, capacity, decay=0.6):
            filled = content.numpy()
            dry, span = wilting.numpy(), capacity.numpy() - wilting.numpy()
            if (span <= 0).any():
                raise ValueError("the capacity must be above the wilting point")
            filled -= dry
            filled /= span
            roots = decay ** np.arange(len(filled))
            roots /= roots.sum()
            part = np.clip(filled, 0.0, 1.0)
            ctx.save_for_backward(part=part, span=span, roots=roots)
            return pb.asarray(np.asarray(roots @ part))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s = ctx.saved_variables
            flow = grad_output.item() * s.roots / s.span * ((s.part > 0) & (s.part < 1))
            return (
                pb.asarray(flow),
                pb.asarray(flow * (s.part - 1)),
                pb.asarray(-flow * s.part),
                None,
            )

    return AvailableWater.apply


@BOOK.right(
    lambda rng: (
        (t(np.array(0.65)), t(np.array(16.7)), t(rng.uniform(0.2, 0.4))),
        {"hours": np.array([0.1, 0.5, 2.0, 8.0, 24.0])},
    )
)
def ponded_infiltration():
    @pb.autograd_function
    def ponded_infiltration(ctx, conductivity, suction, deficit, hours):
        """Water that has entered ponded soil by each of the hours, in cm."""
        K, head = conductivity.item(), suction.item() * deficit.item()
        if min(K, head) <= 0 or (hours <= 0).any():
            raise ValueError("the soil's constants and the hours must be positive")
        F = K * hours + np.sqrt(2 * head * K * hours)
        for _ in range(100):
            step = (F - head * np.log1p(F / head) - K * hours) * (head + F) / F
            F = F - step
            if np.abs(step).max() < 1e-13 * F.max():
                break
        ctx.save_for_backward(F=F, head=head, hours=hours)
        ctx.suction, ctx.deficit = suction.item(), deficit.item()
        return pb.asarray(F.copy())

    @ponded_infiltration.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        ratio = s.F / (s.head + s.F)
        flow = g.numpy() / ratio
        by_head = flow @ (np.log1p(s.F / s.head) - ratio)
        return {
            "conductivity": flow @ s.hours,
            "suction": by_head * ctx.deficit,
            "deficit": by_head * ctx.suction,
        }

    return ponded_infiltration


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(4, 8, (3, 4))), t(rng.uniform(0.1, 0.4, (3, 4)))),
        {"present": np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 1, 1, 0]], bool)},
    )
)
def mean_acidity():
    @pb.autograd_function
    def mean_acidity(ctx, ph, thickness, present=None):
        """Mean pH of profiles: (n, horizons), of the ions and not of the pH; some are missing."""
        weight = thickness.numpy() * (1.0 if present is None else present)
        lowest = ph.numpy().min(axis=1, keepdims=True)
        ions = 10.0 ** (lowest - ph.numpy())
        total, acid = weight.sum(axis=1), (weight * ions).sum(axis=1)
        ctx.save_for_backward(weight, ions, total, acid)
        ctx.present = present
        return pb.asarray(lowest[:, 0] - np.log10(acid / total))

    @mean_acidity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        weight, ions, total, acid = ctx.saved_variables
        flow = grad_output.numpy()[:, None] / acid[:, None]
        by_thickness = (acid / total)[:, None] - ions
        if ctx.present is not None:
            by_thickness = by_thickness * ctx.present
        return {
            "ph": pb.asarray(flow * weight * ions),
            "thickness": pb.asarray(flow * by_thickness / np.log(10)),
        }

    return mean_acidity


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(5, 80, 5)), t(rng.uniform(0.2, 0.4, 5)), t(np.array(1.05))),
        {},
    )
)
def conductivity_to_depth():
    class ConductivityToDepth(pb.Function):
        """Vertical conductivity of the layers down to the water table, which cuts one of them."""

        @staticmethod
        def forward(ctx, conductivity, thickness, table):
            k, d, L = conductivity.numpy(), thickness.numpy(), table.item()
            if L <= 0 or (d <= 0).any():
                raise ValueError("depths must be positive")
            top = np.cumsum(d) - d
            through = np.clip(L - top, 0.0, d)
            resistance = (through / k).sum()
            last = int(np.flatnonzero(through > 0)[-1])
            ctx.save_for_backward(k=k, through=through, resistance=resistance, L=L)
            ctx.last, ctx.cut = last, through[last] < d[last]
            return pb.asarray(np.asarray(through.sum() / resistance))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s, last = ctx.saved_variables, ctx.last
            depth = s.through.sum()
            by_through = g.item() * (1 / s.resistance - depth / s.resistance**2 / s.k)
            by_k = g.item() * depth / s.resistance**2 * s.through / s.k**2
            by_d = np.where(np.arange(len(s.k)) <= last, by_through, 0.0)
            by_table = 0.0
            if ctx.cut:
                # the water table ends the last layer, wherever that layer begins
                by_table = by_through[last]
                by_d[:last] -= by_table
                by_d[last] = 0.0
            return pb.asarray(by_k), pb.asarray(by_d), by_table

    return ConductivityToDepth.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1, 4, 4)), t(np.array(0.8))),
        {"bounds": [0, 2, 3, 6, 9], "wanted": [0, 1, 3, 6, 9]},
    )
)
def harmonised_profile():
    def means(bounds):
        M = np.zeros((len(bounds) - 1, bounds[-1]))
        for row, start, stop in zip(M, bounds[:-1], bounds[1:], strict=True):
            row[start:stop] = 1 / (stop - start)
        return M

    @pb.autograd_function
    def harmonised_profile(ctx, horizons, smoothness, bounds, wanted):
        """Means over other depths, of a smooth profile that fits the horizons' means.

        bounds, wanted: depths in whole steps at which the given and the wanted horizons end.
        """
        M, W = means(bounds), means(wanted)
        D = np.diff(np.eye(bounds[-1]), axis=0)
        rough = D.T @ D
        solver = linalg.cho_factor(M.T @ M + smoothness.item() * rough)
        profile = linalg.cho_solve(solver, M.T @ horizons.numpy())
        ctx.save_for_backward(M=M, W=W, rough=rough, profile=profile)
        ctx.solver = solver
        return pb.asarray(W @ profile)

    @harmonised_profile.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        pulled = linalg.cho_solve(ctx.solver, grad_output.numpy() @ s.W)
        return {
            "horizons": pb.asarray(s.M @ pulled),
            "smoothness": -pulled @ s.rough @ s.profile,
        }

    return harmonised_profile


@BOOK.right(
    lambda rng: (
        (
            t(np.array([2.0, -0.1, -1.5, 0.0, -6.0, -12.0]) + 0.02 * rng.random(6)),
            t(rng.uniform(0.3, 0.5, 6)),
            t(np.array(-0.3)),
            t(np.array(0.55)),
        ),
        {},
    )
)
def unfrozen_water():
    @pb.autograd_function
    def unfrozen_water(ctx, temperature, porosity, freezing, exponent):
        """Liquid and frozen water of saturated soil; a power law below the freezing point."""
        T, point, b = temperature.numpy(), freezing.item(), exponent.item()
        if point >= 0:
            raise ValueError("water in soil freezes below 0 degrees")
        cold = point > T
        ratio = np.where(cold, T, point) / point
        part = ratio**-b
        ctx.save_for_backward(porosity=porosity.numpy(), ratio=ratio, part=part, cold=cold)
        ctx.point, ctx.b = point, b
        liquid = porosity.numpy() * part
        return {"liquid": pb.asarray(liquid), "ice": pb.asarray(porosity.numpy() - liquid)}

    @unfrozen_water.backward
    @pb.once_differentiable
    def _(ctx, g_liquid, g_ice):
        s = ctx.saved_variables
        net = g_liquid.numpy() - g_ice.numpy()
        flow = net * s.porosity * s.part
        by_ratio = np.where(s.cold, -ctx.b * flow / s.ratio, 0.0)
        return {
            "temperature": pb.asarray(by_ratio / ctx.point),
            "porosity": pb.asarray(net * s.part + g_ice.numpy()),
            "freezing": -(by_ratio * s.ratio).sum() / ctx.point,
            "exponent": -(flow * np.log(s.ratio)).sum(),
        }

    return unfrozen_water
