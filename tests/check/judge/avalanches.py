"""Avalanches: slabs, weak layers, drifting snow, friction and run-out, dams, risk, rescue."""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

import pullback as pb

from .entries import MISSING, REPEATED, REVERSED, Book, at, mends, t

BOOK = Book("avalanches")

G = 9.81


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(1.2, 3.0, 5)), t(rng.uniform(0.3, 0.9, 5)), t(rng.uniform(150, 260, 5))),
        {"slope": 38.0},
    ),
    "the skier's stress falls with the depth of the slab: with skier that term is missing",
    at("skier"),
    MISSING,
    r"skier.{0,40}(?:depth|thick|stress|term|part)|(?:load|stress) of the skier",
    mends("- s.added / s.D", "s.added / s.D", "s.own - s.added", "by_depth - "),
    where="a skier stands on the slab",
    shows=lambda rng: (
        (t(rng.uniform(1.2, 3.0, 5)), t(rng.uniform(0.3, 0.9, 5)), t(rng.uniform(150, 260, 5))),
        {"slope": 38.0, "skier": True},
    ),
)
def slab_stability():
    @pb.autograd_function
    def slab_stability(ctx, strength, thickness, density, slope=38.0, skier=False):
        """Strength of the weak layer over the shear stress in it.

        strength: kPa; thickness of the slab: m; density: kg/m^3, all (n,); slope: degrees;
        skier: whether a skier (0.155 kN/m over the thickness) loads the slab as well.
        """
        D, c = thickness.numpy(), strength.numpy()
        own = density.numpy() * G / 1000 * D * np.sin(np.radians(slope))
        added = 0.155 / D if skier else np.zeros_like(D)
        stress = own + added
        ctx.save_for_backward(c=c, D=D, rho=density.numpy(), own=own, added=added, stress=stress)
        return pb.asarray(c / stress)

    @slab_stability.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_stress = -gn * s.c / s.stress**2
        return {
            "strength": pb.asarray(gn / s.stress),
            "thickness": pb.asarray(by_stress * s.own / s.D),
            "density": pb.asarray(by_stress * s.own / s.rho),
        }

    return slab_stability


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(0.15, 0.35, 9)), t(rng.uniform(20, 60, 5))),
        {"cells": np.array([1, 3, 4, 6, 8]), "slope": np.array([34, 30, 26, 21, 15.0])},
    ),
    "of two steps in the same cell one is lost: repeated cells are overwritten",
    REPEATED,
    r"add\.at|bincount|accumulat|overwrit|scatter|fancy ind|\bunique\b|twice in",
    mends("np.add.at", "np.bincount"),
    where="the path stays in a cell for more than one step",
    shows=lambda rng: (
        (t(rng.uniform(0.15, 0.35, 9)), t(rng.uniform(20, 60, 5))),
        {"cells": np.array([1, 3, 3, 6, 6]), "slope": np.array([34, 30, 26, 21, 15.0])},
    ),
)
def energy_along_path():
    @pb.autograd_function
    def energy_along_path(ctx, friction, lengths, cells, slope):
        """Energy per kg after each step of a path over a map of friction; cells: where it is."""
        angle = np.radians(slope)
        slide = np.sin(angle) - friction.numpy()[cells] * np.cos(angle)
        ctx.save_for_backward(lengths=lengths.numpy(), cells=cells, slide=slide, down=np.cos(angle))
        ctx.size = len(friction)
        return pb.asarray(np.cumsum(G * slide * lengths.numpy()))

    @energy_along_path.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        flow = G * np.cumsum(grad_output.numpy()[::-1])[::-1]
        by_friction = np.zeros(ctx.size)
        by_friction[s.cells] -= flow * s.lengths * s.down
        return {"friction": pb.asarray(by_friction), "lengths": pb.asarray(flow * s.slide)}

    return energy_along_path


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(80, 380, 6)), t(rng.uniform(0.05, 0.4, 6))), {}),
    "a layer loads those below it: the cumulative sum is not reversed in backward",
    REVERSED,
    r"cumulative|cumsum|\bbelow\b|\babove\b|\bfrom the (?:top|bottom|end|other)",
    r"\b(?:later|following|lower|subsequent)\b|(?:wrong|opposite) (?:order|direction|end)",
    mends("[::-1]", "np.flip", "gn.sum() - "),
)
def overburden():
    @pb.autograd_function
    def overburden(ctx, density, thickness):
        rho, h = density.numpy(), thickness.numpy()
        weight = G * rho * h
        ctx.save_for_backward(rho=rho, h=h)
        return pb.asarray(np.cumsum(weight) - weight / 2)

    @overburden.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        flow = G * (np.cumsum(gn) - gn / 2)
        return {"density": pb.asarray(flow * s.h), "thickness": pb.asarray(flow * s.rho)}

    return overburden


@BOOK.right(lambda rng: ((t(rng.uniform(22, 38, 5)), t(rng.uniform(300, 1100, 5))), {"sigmas": 1}))
def alpha_beta_reach():
    @pb.autograd_function
    def alpha_beta_reach(ctx, beta, drop, sigmas=0, spread=2.3):
        """Horizontal reach in m by the alpha-beta model.

        beta: degrees, from where the path is at 10 degrees up to its top; drop: m, both (n,);
        sigmas: how many standard deviations farther than usual.
        """
        alpha = 0.96 * beta.numpy() - 1.4 - sigmas * spread
        if (alpha <= 0).any() or (alpha >= 90).any():
            raise ValueError("the path is too flat, or too steep")
        tangent = np.tan(np.radians(alpha))
        ctx.save_for_backward(drop=drop.numpy(), tangent=tangent)
        return pb.asarray(drop.numpy() / tangent)

    @alpha_beta_reach.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        (drop, tangent), gn = ctx.saved_variables, grad_output.numpy()
        per_alpha = -drop * (1 + tangent**-2.0)
        return {
            "beta": pb.asarray(gn * per_alpha * np.radians(0.96)),
            "drop": pb.asarray(gn / tangent),
        }

    return alpha_beta_reach


@BOOK.right(
    lambda rng: (
        (t(np.array(0.22)), t(np.array(1500.0) + 50 * rng.random()), t(np.array(1.8))),
        {
            "slope": np.array([36, 33, 28, 22, 12, 6, 2, -8, 3.0]),
            "length": np.array([90, 120, 110, 150, 130, 100, 140, 160, 120.0]),
        },
    )
)
def voellmy_speeds():
    @pb.autograd_function
    def voellmy_speeds(ctx, mu, xi, depth, slope, length, start=0.0):
        """Speeds in m/s at the end of each piece of a path; 0 where the snow came to rest."""
        angle = np.radians(slope)
        push = G * (np.sin(angle) - mu.item() * np.cos(angle))
        drag = G / (xi.item() * depth.item())
        keep = np.exp(-2 * drag * length)
        squares = np.zeros(len(slope) + 1)
        squares[0] = start**2
        for k in range(len(slope)):
            squares[k + 1] = max(keep[k] * squares[k] + push[k] / drag * (1 - keep[k]), 0.0)
        ctx.save_for_backward(push=push, drag=drag, keep=keep, squares=squares)
        ctx.down, ctx.length, ctx.xi, ctx.depth = np.cos(angle), length, xi.item(), depth.item()
        return pb.asarray(np.sqrt(squares[1:]))

    @voellmy_speeds.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        push, drag, keep, squares = ctx.saved_variables
        to_square = by_mu = by_drag = 0.0
        for k in reversed(range(len(push))):
            if squares[k + 1] <= 0:
                to_square = 0.0
                continue
            to_square += grad_output[k].item() / (2 * np.sqrt(squares[k + 1]))
            lost = (1 - keep[k]) / drag
            by_mu -= to_square * lost * G * ctx.down[k]
            steep = 2 * ctx.length[k] * keep[k]
            by_drag += to_square * (push[k] / drag * (steep - lost) - steep * squares[k])
            to_square *= keep[k]
        return {"mu": by_mu, "xi": -by_drag * drag / ctx.xi, "depth": -by_drag * drag / ctx.depth}

    return voellmy_speeds


@BOOK.right(
    lambda rng: (
        (
            t(np.column_stack([rng.uniform(0, 60, 4), rng.uniform(-15, 2, 4)])),
            t(np.array([0.05, 0.08])),
            t(np.array([-1.4, 0.6, 2.1, 3.9])),
        ),
        {},
    )
)
def danger_levels():
    @pb.autograd_function
    def danger_levels(ctx, weather, weights, cuts):
        """Probabilities of the danger levels by an ordinal regression.

        weather: (n, d), such as new snow in cm and temperatures; weights: (d,);
        cuts: (levels - 1,), in ascending order; returns (n, levels).
        """
        c, x, w = cuts.numpy(), weather.numpy(), weights.numpy()
        if (np.diff(c) <= 0).any():
            raise ValueError("cuts must ascend")
        below = special.expit(c - (x @ w)[:, None])
        ctx.save_for_backward(weather=weather, weights=weights, steep=below * (1 - below))
        return pb.asarray(np.diff(below, axis=1, prepend=0.0, append=1.0))

    @danger_levels.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        flow = -np.diff(grad_output.numpy(), axis=1) * s.steep
        by_score = -flow.sum(axis=1)
        return {
            "weather": pb.asarray(np.outer(by_score, s.weights.numpy())),
            "weights": pb.asarray(by_score @ s.weather.numpy()),
            "cuts": pb.asarray(flow.sum(axis=0)),
        }

    return danger_levels


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(80, 220, 5)), t(rng.uniform(0, 1800, 5)), t(np.array(0.021))),
        {"hours": 36},
    )
)
def settling_snow():
    @pb.autograd_function
    def settling_snow(ctx, density, load, stiffening, hours=24, viscosity=6e6):
        rho, sigma, k = density.numpy(), load.numpy(), stiffening.item()
        trail = []
        for _ in range(hours):
            fluid = 3600.0 / viscosity * np.exp(-k * rho)
            trail.append((rho, fluid))
            rho = rho * (1 + sigma * fluid)
        ctx.trail, ctx.sigma, ctx.k = trail, sigma, k
        return pb.asarray(rho.copy())

    @settling_snow.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        flow = grad_output.numpy()
        by_load, by_k = np.zeros_like(flow), 0.0
        for rho, fluid in reversed(ctx.trail):
            rate = ctx.sigma * fluid
            by_load += flow * rho * fluid
            by_k -= flow @ (rho**2 * rate)
            flow = flow * (1 + rate - ctx.k * rho * rate)
        return {"density": pb.asarray(flow), "load": pb.asarray(by_load), "stiffening": by_k}

    return settling_snow


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.06, 0.5, 5)), t(rng.uniform(0.08, 0.5, 5)), t(np.array(-14.0))),
        {},
    )
)
def snow_temperatures():
    def matrix(G):
        n = len(G) - 1
        A = np.diag(G[:-1] + G[1:])
        rows = np.arange(n - 1)
        A[rows, rows + 1] = A[rows + 1, rows] = -G[1:-1]
        return A

    @pb.autograd_function
    def snow_temperatures(ctx, conductivity, thickness, surface, ground=0.0):
        """Steady temperatures between layers, from the top down; the surface is not among them."""
        G = conductivity.numpy() / thickness.numpy()
        if len(G) < 2:
            raise ValueError("two layers or more")
        right = np.zeros(len(G) - 1)
        right[0] += G[0] * surface.item()
        right[-1] += G[-1] * ground
        A = matrix(G)
        T = np.linalg.solve(A, right)
        ctx.save_for_backward(
            A=A, G=G, h=thickness.numpy(), T=np.array([surface.item(), *T, ground])
        )
        return pb.asarray(T)

    @snow_temperatures.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        A, G, h, T = ctx.saved_variables
        adjoint = np.concatenate([[0.0], np.linalg.solve(A, grad_output.numpy()), [0.0]])
        by_G = -np.diff(adjoint) * np.diff(T)
        return {
            "conductivity": pb.asarray(by_G / h),
            "thickness": pb.asarray(-by_G * G / h),
            "surface": G[0] * adjoint[1],
        }

    return snow_temperatures


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 2, 4)), t(rng.uniform(1, 3, 4)), t(np.array([18.0, 31.0, 25.0, 14.0]))),
        {"kinds": ["dry", "dry", "wet", "wet"], "angle": 40.0},
    )
)
def dam_height():
    LOSS = {"dry": 1.5, "wet": 2.5}

    @pb.autograd_function
    def dam_height(ctx, snow, flow, speed, kinds, angle=90.0, freeboard=0.5):
        """Height in m of a dam for the worst of some avalanches; angle at which they meet it."""
        loss = np.array([LOSS[kind] for kind in kinds])
        across = speed.numpy() * np.sin(np.radians(angle))
        heights = snow.numpy() + flow.numpy() + across**2 / (2 * G * loss)
        k = int(heights.argmax())
        ctx.pick = np.arange(len(heights)) == k
        ctx.by_speed = np.where(ctx.pick, across * np.sin(np.radians(angle)) / (G * loss), 0.0)
        return pb.asarray(np.array(heights[k] + freeboard))

    @dam_height.backward
    @pb.once_differentiable
    def _(ctx, g):
        straight = g.item() * ctx.pick
        return {
            "snow": pb.asarray(straight),
            "flow": pb.asarray(straight.copy()),
            "speed": pb.asarray(g.item() * ctx.by_speed),
        }

    return dam_height


@BOOK.right(
    lambda rng: (
        (
            t(np.sort(rng.uniform(0, 45, (3, 4)), axis=1)),
            t(rng.uniform(200, 900, 3)),
            t(np.array(3.0)),
            t(np.array(30.0)),
        ),
        {"periods": (10, 30, 100, 300)},
    )
)
def annual_loss():
    class AnnualLoss(pb.Function):
        """Expected loss a year of each building.

        pressure: (buildings, scenarios) in kPa; value: (buildings,) in thousands; no harm below
        the pressure `low`, a total loss above `high`; periods: return periods in years, ascending.
        """

        @staticmethod
        def forward(ctx, pressure, value, low, high, periods=(30, 100, 300)):
            lo, gap = low.item(), high.item() - low.item()
            if gap <= 0:
                raise ValueError("low must be less than high")
            often = -np.diff(1 / np.array(periods, float), append=0.0)
            raw = (pressure.numpy() - lo) / gap
            harm = np.clip(raw, 0, 1)
            ctx.save_for_backward(raw=raw, harm=harm, often=often, value=value.numpy(), gap=gap)
            return pb.asarray(value.numpy() * (harm @ often))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, gn = ctx.saved_variables, grad_output.numpy()
            partial = (s.raw > 0) & (s.raw < 1)
            by_raw = np.where(partial, np.outer(gn * s.value, s.often), 0.0) / s.gap
            by_high = -(by_raw * s.raw).sum()
            by_low = -by_raw.sum() - by_high
            return pb.asarray(by_raw), pb.asarray(gn * (s.harm @ s.often)), by_low, by_high, None

    return AnnualLoss.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(3, 19, 10)), t(np.array(6.5)), t(np.array(0.004))),
        {"direction": rng.uniform(180, 340, 10), "available": 0.9},
    )
)
def drifted_snow():
    @pb.autograd_function
    def drifted_snow(ctx, wind, threshold, rate, direction, aspect=80.0, available=np.inf):
        excess = np.maximum(wind.numpy() - threshold.item(), 0.0)
        onto = np.maximum(-np.cos(np.radians(direction - aspect)), 0.0)
        moved = np.cumsum(excess**2 * onto)
        drifted = rate.item() * moved
        ctx.save_for_backward(excess=excess, onto=onto, moved=moved, rate=rate.item())
        ctx.more = drifted < available
        return pb.asarray(np.minimum(drifted, available))

    @drifted_snow.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        excess, onto, moved, rate = ctx.saved_variables
        flow = np.where(ctx.more, grad_output.numpy(), 0.0)
        by_wind = 2 * rate * np.cumsum(flow[::-1])[::-1] * onto * excess
        return {
            "wind": pb.asarray(by_wind),
            "threshold": -by_wind.sum(),
            "rate": (flow * moved).sum(),
        }

    return drifted_snow


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.4, 1.9, 4)), t(rng.uniform(2, 6, 4)), t(np.array(3.5))),
        {"order": (2, 0, 3, 1)},
    )
)
def companion_rescue():
    MINUTES = np.array([0.0, 10.0, 18.0, 35.0, 90.0, 130.0, 180.0])
    ALIVE = np.array([1.0, 0.93, 0.88, 0.34, 0.25, 0.1, 0.07])

    @pb.autograd_function
    def companion_rescue(ctx, depth, search, delay, order=None, digging=11.0):
        """Chances of the buried, dug out one after another; minutes, and metres of depth."""
        order = np.arange(len(depth)) if order is None else np.array(order)
        spent = search.numpy() + digging * depth.numpy()
        out = delay.item() + np.cumsum(spent[order])
        slopes = np.append(0.0, np.append(np.diff(ALIVE) / np.diff(MINUTES), 0.0))
        ctx.slope = slopes[np.searchsorted(MINUTES, out, side="right")]
        ctx.order, ctx.digging = order, digging
        chance = np.empty(len(order))
        chance[order] = np.interp(out, MINUTES, ALIVE)
        return pb.asarray(chance)

    @companion_rescue.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_out = g.numpy()[ctx.order] * ctx.slope
        by_spent = np.empty_like(by_out)
        by_spent[ctx.order] = np.cumsum(by_out[::-1])[::-1]
        return {
            "depth": pb.asarray(ctx.digging * by_spent),
            "search": pb.asarray(by_spent),
            "delay": by_out.sum(),
        }

    return companion_rescue


@BOOK.right(
    lambda rng: (
        (
            t(np.array(1.1)),
            t(np.array(1.9) + 0.3 * rng.random()),
            t(np.array(4200.0)),
            t(np.array(0.55)),
            t(np.array(0.45)),
        ),
        {},
    )
)
def critical_cut():
    @pb.autograd_function
    def critical_cut(ctx, shear, normal, modulus, slab, toughness, touch=0.25):
        """Length in m of a cut in the weak layer from which a crack runs by itself.

        shear, normal: stress, kPa; modulus: kPa; slab: thickness, m; toughness: J/m^2;
        touch: m around the tip that the slab strains as well.
        """
        tau, sigma, E, D, tough = (x.item() for x in (shear, normal, modulus, slab, toughness))

        def parts(a):
            slide = 1000 * (tau * (a + touch)) ** 2 / (2 * E * D)
            return slide, 1500 * sigma**2 * a**4 / (E * D**3)

        if sum(parts(0.0)) >= tough:
            raise ValueError("the slab goes without a cut")
        longest = 1.0
        while sum(parts(longest)) < tough:
            longest *= 2
        a = optimize.brentq(lambda x: sum(parts(x)) - tough, 0.0, longest, xtol=1e-15, rtol=1e-14)
        slide, bend = parts(a)
        by_a = 1000 * (tau**2 * (a + touch) / (E * D) + 6 * sigma**2 * a**3 / (E * D**3))
        by_tau = 1000 * tau * (a + touch) ** 2 / (E * D)
        by_sigma = 3000 * sigma * a**4 / (E * D**3)
        energy = (by_tau, by_sigma, -(slide + bend) / E, -(slide + 3 * bend) / D, -1.0)
        ctx.slopes = [-each / by_a for each in energy]
        return pb.asarray(np.array(a))

    @critical_cut.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return (*(grad_output.item() * slope for slope in ctx.slopes), None)

    return critical_cut


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0, 900, 7)), t(rng.uniform(0.05, 0.6, 7))),
        {
            "elevation": np.array([2410, 2380, 2290, 2350, 2200, 2150, 2120.0]),
            "below": np.array([2, 3, 4, 4, 5, 6, -1]),
        },
    )
)
def deposits():
    @pb.autograd_function
    def deposits(ctx, released, held, elevation, below):
        """Mass that each cell keeps; the rest flows to the cell below (-1: it all stays)."""
        order = np.argsort(-elevation, kind="stable")
        mass, kept = released.numpy().copy(), held.numpy()
        out = np.empty_like(mass)
        for cell in order:
            to = below[cell]
            if to < 0:
                out[cell] = mass[cell]
                continue
            if elevation[to] >= elevation[cell]:
                raise ValueError("snow does not flow uphill")
            out[cell] = kept[cell] * mass[cell]
            mass[to] += mass[cell] - out[cell]
        ctx.order, ctx.below, ctx.mass, ctx.kept = order, below, mass, kept
        return pb.asarray(out)

    @deposits.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        flow, by_held = grad_output.numpy().copy(), np.zeros(len(ctx.mass))
        for cell in ctx.order[::-1]:
            to = ctx.below[cell]
            if to >= 0:
                by_held[cell] = ctx.mass[cell] * (flow[cell] - flow[to])
                flow[cell] += (1 - ctx.kept[cell]) * (flow[to] - flow[cell])
        return {"released": pb.asarray(flow), "held": pb.asarray(by_held)}

    return deposits


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(15, 40, 4)), t(np.array([1.5, 3.0, 14.0, 4.2])), t(np.array(280.0))),
        {"mast": 12.0},
    )
)
def mast_moment():
    @pb.autograd_function
    def mast_moment(ctx, speed, height, density, mast=15.0, width=0.6, drag=1.5, powder=8.0):
        """Moment in kNm at the foot of a mast, in a dense flow with a cloud of powder above."""
        v, h = speed.numpy(), np.minimum(height.numpy(), mast)
        scale = 4.0
        pressed = drag * width * v**2 / 2000
        faded = np.exp(-(mast - h) / scale)
        cloud = scale * (h + scale - (mast + scale) * faded)
        arm = density.item() * h**2 / 2 + powder * cloud
        by_h = density.item() * h + powder * (scale - (mast + scale) * faded)
        ctx.save_for_backward(pressed=pressed, arm=arm, dense=h**2 / 2)
        ctx.by_v = drag * width * v / 1000 * arm
        ctx.by_h = np.where(height.numpy() < mast, pressed * by_h, 0.0)
        return pb.asarray(pressed * arm)

    @mast_moment.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        return {
            "speed": pb.asarray(gn * ctx.by_v),
            "height": pb.asarray(gn * ctx.by_h),
            "density": (gn * s.pressed * s.dense).sum(),
        }

    return mast_moment
