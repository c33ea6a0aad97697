"""Ceramics: glazes, kilns, cones, sintering, slips, drying, strength of fired bodies."""

from __future__ import annotations

import numpy as np
from scipy import linalg, optimize

import pullback as pb

from .entries import MISSING, Book, at, mends, t

BOOK = Book("ceramics")

# Molar masses in g/mol and coefficients of expansion (Appen's, in 1e-7 per K and mol part).
OXIDES = {
    "SiO2": (60.08, 38.0),
    "Al2O3": (101.96, -30.0),
    "B2O3": (69.62, -20.0),
    "CaO": (56.08, 130.0),
    "MgO": (40.30, 60.0),
    "K2O": (94.20, 465.0),
    "Na2O": (61.98, 395.0),
    "ZnO": (81.38, 50.0),
}
FLUXES = ("CaO", "MgO", "K2O", "Na2O", "ZnO")


@BOOK.wrong(
    lambda rng: (
        (t(np.array([62.0, 14.0, 11.5, 4.0, 3.5]) * rng.uniform(0.9, 1.1, (3, 5))),),
        {"oxides": ("SiO2", "Al2O3", "CaO", "K2O", "Na2O")},
    ),
    "the sum of the fluxes by which all is divided is taken for a constant: its part is missing",
    MISSING,
    r"normali[sz]|denominator|quotient|\bdivisor\b|divided by|flux(?:es)\b.{0,40}constant",
    r"(?:sum|total) .{0,30}(?:constant|depends|not differentiated)",
    mends("* s.flux", "s.flux *", "[..., s.flux] -=", "np.where(s.flux"),
)
def unity_formula():
    @pb.autograd_function
    def unity_formula(ctx, percent, oxides):
        """Seger formula of glazes: moles of each oxide for one mole of fluxes.

        percent: (..., oxides) by weight; oxides: their names, in order.
        """
        mass = np.array([OXIDES[name][0] for name in oxides])
        flux = np.array([name in FLUXES for name in oxides])
        moles = percent.numpy() / mass
        total = moles[..., flux].sum(axis=-1, keepdims=True)
        if (total <= 0).any():
            raise ValueError("a glaze without fluxes has no unity formula")
        ctx.save_for_backward(mass=mass, flux=flux, total=total, formula=moles / total)
        return pb.asarray(moles / total)

    @unity_formula.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        by_moles = grad_output.numpy() / s.total
        return {"percent": pb.asarray(by_moles / s.mass)}

    return unity_formula


def firing(hours):
    return lambda rng: (
        (t(np.array([600.0, 900.0, 1120.0, 1230.0, 1250.0, 1180.0]) + rng.uniform(-9, 9, 6)),),
        {"hours": np.array(hours)},
    )


@BOOK.wrong(
    firing([0.0, 1.5, 3.0, 4.5, 6.0, 7.5]),
    "backward takes the first interval for all of them, as if the readings were evenly spaced",
    r"\b(?:un)?even(?:ly)?\b|\b(?:non.?)?uniform(?:ly)?\b|spac(?:ed|ing)|irregular|equidistant",
    r"\b(?:first|each|every) (?:interval|step)|trapez|\bintervals?\b|\bweights?\b",
    mends("np.diff(ctx.hours)", "ctx.weights", "weights[:-1] +=", "np.append(step"),
    where="the readings are not evenly spaced",
    shows=firing([0.0, 2.5, 4.0, 4.75, 5.0, 7.0]),
)
def heat_work():
    R = 8.314e-3

    @pb.autograd_function
    def heat_work(ctx, celsius, hours, energy=420.0, reference=1200.0):
        """Hours at the reference temperature that a firing is worth; energy in kJ/mol."""
        kelvin = celsius.numpy() + 273.15
        rate = np.exp(-energy / R * (1 / kelvin - 1 / (reference + 273.15)))
        ctx.kelvin, ctx.rate, ctx.hours, ctx.energy = kelvin, rate, hours, energy
        return pb.asarray(np.asarray(np.trapezoid(rate, hours)))

    @heat_work.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        step = ctx.hours[1] - ctx.hours[0]
        by_rate = np.full(len(ctx.rate), step)
        by_rate[[0, -1]] /= 2
        by_kelvin = by_rate * ctx.rate * ctx.energy / R / ctx.kelvin**2
        return {"celsius": pb.asarray(grad_output.item() * by_kelvin)}

    return heat_work


def weighings(**settings):
    return lambda rng: (
        (
            t(rng.uniform(41, 46, 4)),
            t(rng.uniform(47, 49, 4)),
            t(rng.uniform(25, 27, 4)),
        ),
        settings,
    )


@BOOK.wrong(
    weighings(),
    "of the apparent density the gradient of dry lacks the term of the denominator",
    MISSING,
    at("kind"),
    r"denominator|quotient|\bapparent\b",
    mends("(ctx.liquid - ctx.out)", "-ctx.out / below", "- ctx.out / below"),
    where='kind is "apparent"',
    shows=weighings(kind="apparent"),
)
def archimedes_density():
    @pb.autograd_function
    def archimedes_density(ctx, dry, soaked, suspended, kind="bulk", liquid=0.998):
        d, w, s = dry.numpy(), soaked.numpy(), suspended.numpy()
        if not d.shape == w.shape == s.shape or kind not in ("bulk", "apparent"):
            raise ValueError("three weighings of each piece; bulk or apparent density")
        ctx.below = w - s if kind == "bulk" else d - s
        ctx.out = liquid * d / ctx.below
        ctx.kind, ctx.liquid = kind, liquid
        return pb.asarray(ctx.out.copy())

    @archimedes_density.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        flow = grad_output.numpy() / ctx.below
        bulk = ctx.kind == "bulk"
        return {
            "dry": pb.asarray(flow * ctx.liquid),
            "soaked": pb.asarray(-flow * ctx.out * bulk),
            "suspended": pb.asarray(flow * ctx.out),
        }

    return archimedes_density


@BOOK.right(
    lambda rng: (
        (t(np.array([60.0, 12.0, 6.0, 10.0, 5.0]) * rng.uniform(0.9, 1.1, (2, 5))),),
        {"oxides": ("SiO2", "Al2O3", "B2O3", "CaO", "Na2O")},
    )
)
def glaze_expansion():
    @pb.autograd_function
    def glaze_expansion(ctx, percent, oxides):
        """Expansion of glazes in 1e-7 per K; percent: (..., oxides) by weight, of any sum."""
        mass, factor = np.array([OXIDES[name] for name in oxides]).T
        moles = percent.numpy() / mass
        total = moles.sum(axis=-1, keepdims=True)
        if (total <= 0).any():
            raise ValueError("an empty glaze")
        mean = (moles * factor).sum(axis=-1, keepdims=True) / total
        ctx.slopes = (factor - mean) / (total * mass)
        return pb.asarray(np.asarray(mean[..., 0]))

    @glaze_expansion.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return pb.asarray(grad_output.numpy()[..., None] * ctx.slopes), None

    return glaze_expansion


@BOOK.right(
    lambda rng: (
        (t(np.array([90.0, 160.0, 70.0, 110.0])), t(np.array([580.0, 1120.0, 1235.0, 760.0]))),
        {
            "hours": np.array([-0.5, 2.1, 6.6, 8.3, 10.9, 13.0, 15.8, 30.0]),
            "holds": (0.5, 0.0, 0.75, 0.0),
        },
    )
)
def kiln_programme():
    @pb.autograd_function
    def kiln_programme(ctx, rates, targets, hours, holds=None, room=20.0):
        """Temperatures of a kiln that follows its programme.

        rates: (segments,) in deg C per hour, positive, also for cooling; targets: (segments,);
        holds: hours at each target; hours: (n,), when the temperature is wanted.
        """
        r, T = rates.numpy(), targets.numpy()
        if r.shape != T.shape or (r <= 0).any():
            raise ValueError("a positive rate for each target")
        before = np.concatenate([[room], T[:-1]])
        climb, way = np.abs(T - before), np.sign(T - before)
        whole = climb / r + (np.zeros(len(r)) if holds is None else np.asarray(holds))
        starts = np.concatenate([[0.0], np.cumsum(whole)[:-1]])
        k = np.maximum(np.searchsorted(starts, hours, side="right") - 1, 0)
        into = np.maximum(hours - starts[k], 0.0)
        ramp = (into < climb[k] / r[k]) & (hours > 0)
        out = np.where(ramp, before[k] + way[k] * r[k] * into, T[k])
        ctx.save_for_backward(r=r, climb=climb, way=way, k=k, into=into, ramp=ramp)
        ctx.early = hours <= 0
        return pb.asarray(np.where(ctx.early, room, out))

    @kiln_programme.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        by_r, by_T = np.zeros_like(s.r), np.zeros_like(s.r)
        for g, k, into, ramp, early in zip(
            grad_output.numpy(), s.k, s.into, s.ramp, ctx.early, strict=True
        ):
            if early:
                continue
            if not ramp:
                by_T[k] += g
                continue
            by_r[k] += g * s.way[k] * into
            to_start = -g * s.way[k] * s.r[k]
            by_r[:k] -= to_start * (s.climb / s.r**2)[:k]
            by_T[:k] += to_start * (s.way / s.r)[:k]
            if k:
                by_T[k - 1] += g
                by_T[: k - 1] -= to_start * (s.way / s.r)[1:k]
        return {"rates": pb.asarray(by_r), "targets": pb.asarray(by_T)}

    return kiln_programme


@BOOK.right(
    lambda rng: (
        (t(np.array([1071.0, 1209.0, 1301.5, 990.0]) + rng.uniform(0, 3, 4)), t(np.array(96.0))),
        {},
    )
)
def cone_of_temperature():
    CONES = np.array([-4.0, -3.0, -2.0, -1.0, 1.0, 3.0, 5.0, 6.0, 8.0, 9.0, 10.0])
    SLOW = np.array([1063, 1086, 1102, 1119, 1137, 1152, 1186, 1222, 1249, 1260, 1285.0])
    FAST = np.array([1070, 1101, 1120, 1137, 1154, 1168, 1207, 1243, 1271, 1280, 1305.0])

    @pb.autograd_function
    def cone_of_temperature(ctx, celsius, rate):
        """Cone (04 is -4) that bends at a temperature, and the nearest listed one (an index)."""
        T, r = celsius.numpy(), rate.item()
        if r <= 0:
            raise ValueError("the rate of heating, in deg C per hour, must be positive")
        part = np.log(r / 60) / np.log(150 / 60)
        w = min(max(part, 0.0), 1.0)
        bends = SLOW + w * (FAST - SLOW)
        cone = np.asarray(np.interp(T, bends, CONES))
        k = np.clip(np.searchsorted(bends, T) - 1, 0, len(CONES) - 2)
        inside = (bends[0] < T) & (bends[-1] > T)
        step = bends[k + 1] - bends[k]
        f, slope = (T - bends[k]) / step, np.where(inside, (CONES[k + 1] - CONES[k]) / step, 0)
        later = (1 - f) * (FAST - SLOW)[k] + f * (FAST - SLOW)[k + 1]
        by_log = later / np.log(150 / 60) if 0 < part < 1 else 0.0
        ctx.slope, ctx.by_rate = slope, -slope * by_log / r
        return pb.asarray(cone), pb.asarray(np.abs(cone[..., None] - CONES).argmin(axis=-1))

    @cone_of_temperature.backward
    @pb.once_differentiable
    def _(ctx, g_cone, g_nearest):
        gn = g_cone.numpy()
        return {"celsius": pb.asarray(gn * ctx.slope), "rate": (gn * ctx.by_rate).sum()}

    return cone_of_temperature


@BOOK.right(
    lambda rng: (
        (
            t(np.array(0.58)),
            t(np.linspace(1250.0, 1560.0, 10) + rng.uniform(-10, 10, 10)),
            t(np.array(310.0)),
        ),
        {"minutes": 8.0},
    )
)
def sintered_density():
    @pb.autograd_function
    def sintered_density(ctx, green, celsius, energy, minutes=10.0, speed=0.08, power=1.5):
        d, Q, K = green.item(), energy.item(), celsius.numpy() + 273.15
        if not 0 < d < 1 or power < 1:
            raise ValueError("green density lies between 0 and 1, the power is 1 or more")
        rate = minutes * speed * np.exp(-Q / 8.314e-3 * (1 / K - 1 / 1773.15))
        path = [d]
        for each in rate:
            d = min(d + each * (1 - d) ** power, 1.0)
            path.append(d)
        ctx.path, ctx.rate, ctx.K, ctx.Q, ctx.power = path, rate, K, Q, power
        return pb.asarray(np.array(path[1:]))

    @sintered_density.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        carry, by_rate = 0.0, np.zeros_like(ctx.rate)
        for k in reversed(range(len(by_rate))):
            carry += grad_output.numpy()[k]
            if ctx.path[k + 1] >= 1.0:
                carry = 0.0
                continue
            pores = 1 - ctx.path[k]
            by_rate[k] = carry * pores**ctx.power
            carry *= 1 - ctx.rate[k] * ctx.power * pores ** (ctx.power - 1)
        flow = by_rate * ctx.rate / 8.314e-3
        return {
            "green": carry,
            "celsius": pb.asarray(flow * ctx.Q / ctx.K**2),
            "energy": -(flow * (1 / ctx.K - 1 / 1773.15)).sum(),
        }

    return sintered_density


@BOOK.right(
    lambda rng: (
        (t(310 * rng.weibull(9.0, 8)), t(np.array(10.5)), t(np.array(320.0))),
        {"broken": np.array([1, 1, 0, 1, 1, 1, 0, 1], bool)},
    )
)
def strength_likelihood():
    @pb.autograd_function
    def strength_likelihood(ctx, stress, modulus, scale, broken=None):
        """Log-likelihood of bending tests (Weibull); bars that did not break held that stress."""
        x, m, s0 = stress.numpy(), modulus.item(), scale.item()
        if min(x.min(), m, s0) <= 0:
            raise ValueError("stresses, modulus and scale must be positive")
        fell = np.ones(len(x), bool) if broken is None else broken
        ratio = np.log(x / s0)
        hazard = np.exp(m * ratio)
        ctx.save_for_backward(x=x, fell=fell, ratio=ratio, hazard=hazard)
        ctx.m, ctx.s0 = m, s0
        value = (np.log(m / x) + m * ratio)[fell].sum() - hazard.sum()
        return pb.asarray(np.asarray(value))

    @strength_likelihood.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.item()
        excess = s.fell - s.hazard
        by_modulus = s.fell.sum() / ctx.m + (excess * s.ratio).sum()
        return {
            "stress": pb.asarray(g * (ctx.m * excess - s.fell) / s.x),
            "modulus": g * by_modulus,
            "scale": -g * ctx.m / ctx.s0 * excess.sum(),
        }

    return strength_likelihood


@BOOK.right(
    lambda rng: (
        (t(np.linspace(80.0, 1150.0, 7) + rng.uniform(-9, 9, 7)), t(np.array(4.6))),
        {"cells": 6, "thickness": 0.115, "minutes": 30.0},
    )
)
def kiln_wall():
    @pb.autograd_function
    def kiln_wall(
        ctx, hot_face, diffusivity, cells=12, thickness=0.23, minutes=10.0, room=20.0, start=None
    ):
        """Temperatures in a wall after a firing, implicit in time.

        hot_face: (steps,) in deg C; diffusivity: in 1e-7 m2/s, positive; start: (cells,), or the
        room's temperature throughout.
        """
        if cells < 2 or diffusivity.item() <= 0:
            raise ValueError("two cells or more, and a positive diffusivity")
        ctx.unit = 1e-7 * minutes * 60 * ((cells + 1) / thickness) ** 2
        r = diffusivity.item() * ctx.unit
        bands = np.full((3, cells), -r)
        bands[1] = 1 + 2 * r
        T, path = np.full(cells, room) if start is None else start.numpy().copy(), []
        for face in hot_face.numpy():
            T[0] += r * face
            T[-1] += r * room
            T = linalg.solve_banded((1, 1), bands, T)
            path.append(T.copy())
        ctx.r, ctx.bands, ctx.path, ctx.room, ctx.given = r, bands, path, room, start is not None
        ctx.faces = hot_face.numpy().copy()
        return pb.asarray(T)

    @kiln_wall.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        carry, by_face, by_r = grad_output.numpy(), np.zeros(len(ctx.faces)), 0.0
        for k in reversed(range(len(ctx.path))):
            carry = linalg.solve_banded((1, 1), ctx.bands, carry)
            around = np.concatenate([[ctx.faces[k]], ctx.path[k], [ctx.room]])
            by_face[k] = ctx.r * carry[0]
            by_r += carry @ np.diff(around, 2)
        grads = {"hot_face": pb.asarray(by_face), "diffusivity": by_r * ctx.unit}
        return {**grads, "start": pb.asarray(carry)} if ctx.given else grads

    return kiln_wall


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.4, 3.0, 22.0, 140.0, 900.0, 2600.0]) * rng.uniform(0.8, 1.2, 6)),
            t(np.array(0.9)),
            t(np.array(1800.0)),
        ),
        {"q": 0.0},
    )
)
def andreasen_packing():
    @pb.autograd_function
    def andreasen_packing(ctx, size, finest, coarsest, q=0.37):
        """Part finer than each size (in um) for dense packing; q = 0 is the logarithmic law."""
        D, ends = size.numpy(), np.array([finest.item(), coarsest.item()])
        if not 0 < ends[0] < ends[1] or (D <= 0).any():
            raise ValueError("sizes are positive, and the finest is below the coarsest")

        def measure(x):
            return np.log(x) if q == 0 else np.expm1(q * np.log(x)) / q

        low, high = measure(ends)
        part = (measure(D) - low) / (high - low)
        inside = (part > 0) & (part < 1)
        ctx.save_for_backward(part=part, inside=inside)
        ctx.by_size = D ** (q - 1) / (high - low)
        ctx.by_ends = ends ** (q - 1) / (high - low)
        return pb.asarray(np.clip(part, 0.0, 1.0))

    @andreasen_packing.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        gn = np.where(s.inside, grad_output.numpy(), 0.0)
        return {
            "size": pb.asarray(gn * ctx.by_size),
            "finest": -(gn * (1 - s.part)).sum() * ctx.by_ends[0],
            "coarsest": -(gn * s.part).sum() * ctx.by_ends[1],
        }

    return andreasen_packing


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.2, 0.45, 3)), t(np.array([6.5, 4.0, 8.0]))),
        {"minutes": np.array([0.0, 5.0, 15.0, 40.0])},
    )
)
def cast_thickness():
    def forward(ctx, filtration, capacity, minutes):
        k, most = filtration.numpy()[:, None], capacity.numpy()[:, None]
        if k.shape != most.shape or (k <= 0).any():
            raise ValueError("a positive filtration constant and a capacity for each mould")
        grown = np.sqrt(2 * k * minutes)
        ctx.save_for_backward(k=k, grown=grown, free=grown < most)
        return pb.asarray(np.minimum(grown, most))

    @pb.once_differentiable
    def backward(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_k = np.where(s.free, gn * s.grown / (2 * s.k), 0.0).sum(axis=1)
        by_capacity = np.where(s.free, 0.0, gn).sum(axis=1)
        return {"filtration": pb.asarray(by_k), "capacity": pb.asarray(by_capacity)}

    return pb.autograd_function(forward, backward, name="cast_thickness")


# Parts of SiO2, Al2O3, CaO, K2O + Na2O in feldspar, kaolin, whiting, quartz and nepheline.
ANALYSES = np.array(
    [
        [0.66, 0.465, 0.0, 0.99, 0.60],
        [0.185, 0.395, 0.0, 0.002, 0.235],
        [0.004, 0.001, 0.56, 0.001, 0.007],
        [0.145, 0.002, 0.0, 0.001, 0.15],
    ]
)


@BOOK.right(
    lambda rng: (
        (
            t(ANALYSES * rng.uniform(0.98, 1.02, ANALYSES.shape)),
            t(np.array([64.0, 13.0, 9.0, 4.0]) + rng.uniform(0, 1, 4)),
        ),
        {},
    )
)
def recipe_of_analysis():
    @pb.autograd_function
    def recipe_of_analysis(ctx, analyses, target):
        """Amounts of materials, none negative, that come nearest to a target analysis.

        analyses: (oxides, materials), target: (oxides,); returns (materials,).
        """
        A, b = analyses.numpy(), target.numpy()
        x, _ = optimize.nnls(A, b)
        used = x > 0
        ctx.save_for_backward(A=A[:, used], x=x[used], rest=A @ x - b, used=used)
        return pb.asarray(x)

    @recipe_of_analysis.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        z = np.linalg.solve(s.A.T @ s.A, grad_output.numpy()[s.used])
        along = s.A @ z
        by_analyses = np.zeros((len(along), len(s.used)))
        by_analyses[:, s.used] = -np.outer(s.rest, z) - np.outer(along, s.x)
        return {"analyses": pb.asarray(by_analyses), "target": pb.asarray(along)}

    return recipe_of_analysis


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(-2.2, -1.2, 3)),
            t(rng.uniform(4200, 5600, 3)),
            t(rng.uniform(180, 300, 3)),
        ),
        {"point": "softening"},
    )
)
def viscosity_point():
    POINTS = {"working": 3.0, "softening": 6.6, "annealing": 12.0}

    @pb.autograd_function
    def viscosity_point(ctx, A, B, T0, point="working"):
        """Temperature at which a glass has a viscosity: log10(Pa s) = A + B / (T - T0)."""
        if not A.shape == B.shape == T0.shape:
            raise ValueError("A, B and T0 are of one shape")
        above = POINTS[point] - A.numpy()
        if (above <= 0).any():
            raise ValueError("the glass never gets as stiff as that")
        ctx.above, ctx.B = above, B.numpy()
        return pb.asarray(T0.numpy() + B.numpy() / above)

    @viscosity_point.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        by_B = grad_output.numpy() / ctx.above
        return pb.asarray(by_B * ctx.B / ctx.above), pb.asarray(by_B), grad_output, None

    return viscosity_point


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(5.0, 6.5, 6)),
            t(np.array([6.2, 6.4, 6.9, 8.0, 7.0, 6.9])),
            t(np.array(545.0)),
        ),
        {"celsius": np.array([20.0, 200.0, 400.0, 500.0, 600.0, 700.0]), "young": 70e3},
    )
)
def glaze_stress():
    @pb.autograd_function
    def glaze_stress(ctx, glaze, body, set_point, celsius, young=65e3, poisson=0.22):
        g, b, step = glaze.numpy(), body.numpy(), np.diff(celsius)
        if g.shape != b.shape or g.shape != celsius.shape or (step <= 0).any():
            raise ValueError("expansions by temperature, which ascends")
        f = np.clip((set_point.item() - celsius[:-1]) / step, 0.0, 1.0)
        weight = np.zeros(len(celsius))
        weight[:-1] += step * (f - f**2 / 2)
        weight[1:] += step * f**2 / 2
        stiff = 1e-6 * young / (1 - poisson)
        cell = (celsius[:-1] <= set_point.item()) & (set_point.item() < celsius[1:])
        at_set = ((b - g)[:-1] * (1 - f) + (b - g)[1:] * f)[cell].sum()
        ctx.weight, ctx.by_set = stiff * weight, stiff * at_set
        return pb.asarray(np.asarray(ctx.weight @ (g - b)))

    @glaze_stress.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        flow = grad_output.item() * ctx.weight
        return {
            "glaze": pb.asarray(flow),
            "body": pb.asarray(-flow),
            "set_point": -grad_output.item() * ctx.by_set,
        }

    return glaze_stress


@BOOK.right(
    lambda rng: (
        (t(np.array(24.5)), t(rng.uniform(0.8, 1.6, 14)), t(np.array(13.0))),
        {"equilibrium": 1.5},
    )
)
def drying_curve():
    class DryingCurve(pb.Function):
        @staticmethod
        def forward(ctx, moisture, rate, critical, dt=1.0, equilibrium=0.0):
            m, c = moisture.item(), critical.item() - equilibrium
            if c <= 0:
                raise ValueError("the critical moisture lies above that of equilibrium")
            speeds, path = [], []
            for r in rate.numpy():
                path.append(m - equilibrium)
                speeds.append(min(1.0, path[-1] / c))
                m = m - dt * r * speeds[-1]
            path.append(m - equilibrium)
            ctx.rate, ctx.c, ctx.dt, ctx.path, ctx.speeds = rate, c, dt, path, speeds
            return pb.asarray(np.array(path[1:]) + equilibrium)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            gn, r, dt = grad_output.numpy(), ctx.rate.numpy(), ctx.dt
            by_rate, by_critical, carry = np.zeros(len(gn)), 0.0, 0.0
            for k in reversed(range(len(gn))):
                carry += gn[k]
                by_rate[k] = -dt * carry * ctx.speeds[k]
                if ctx.speeds[k] < 1.0:
                    by_critical += carry * dt * r[k] * ctx.speeds[k] / ctx.c
                    carry *= 1 - dt * r[k] / ctx.c
            return carry, pb.asarray(by_rate), by_critical, None, None

    return DryingCurve.apply
