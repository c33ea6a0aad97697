"""Beekeeping: colonies, mites, forage, honey, hive scales, wintering, feeding."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, REPEATED, Book, mends, t

BOOK = Book("beekeeping")


def hives(site):
    return lambda rng: (
        (t(rng.uniform(0.5, 4.0, 5)), t(rng.uniform(0.4, 1.3, len(site)))),
        {"site": np.array(site)},
    )


@BOOK.wrong(
    hives([3, 0, 4, 1]),
    "of hives that share a site only the last counts: the same index more than once is not added",
    REPEATED,
    r"add\.at|bincount|accumulat|scatter|shar(?:e|ing)\b|overwrit|\blast\b",
    mends("np.add.at(", "np.bincount(", "for i, k in enumerate(ctx.site)"),
    where="two hives stand at one site",
    shows=hives([3, 0, 3, 1, 3]),
)
def nectar_at_hives():
    @pb.autograd_function
    def nectar_at_hives(ctx, flow, strength, site):
        """Nectar in kg a day by hive; flow: (sites,), strength: (hives,), site: (hives,) whole."""
        ctx.save_for_backward(flow=flow, strength=strength)
        ctx.site = site
        return pb.asarray(flow.numpy()[site] * strength.numpy())

    @nectar_at_hives.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        grad_flow = np.zeros(s.flow.shape)
        grad_flow[ctx.site] += gn * s.strength.numpy()
        return {
            "flow": pb.asarray(grad_flow),
            "strength": pb.asarray(gn * s.flow.numpy()[ctx.site]),
        }

    return nectar_at_hives


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(1200, 1900)), t(rng.uniform(160, 185))),
        {"days": np.array([40.0, 95.0, 130.0, 171.0, 240.0, 300.0])},
    ),
    "the gradient of the day of the peak lacks the factor 2 pi / year",
    FACTOR + r"|multipl|divided by",
    r"2 ?\*? ?pi|\b365\b|\byear\b|angular|chain rule|\bradians\b",
    mends("* 2 * np.pi / YEAR", "2 * np.pi / YEAR *", "ctx.pace"),
)
def eggs_of_season():
    YEAR = 365.25

    @pb.autograd_function
    def eggs_of_season(ctx, most, peak, days, rest=0.1):
        phase = 2 * np.pi * (days - peak.item()) / YEAR
        share = (1 + np.cos(phase)) / 2
        ctx.most, ctx.phase, ctx.rest, ctx.share = most.item(), phase, rest, share
        return pb.asarray(most.item() * (rest + (1 - rest) * share))

    @eggs_of_season.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        by_peak = ctx.most * (1 - ctx.rest) * np.sin(ctx.phase) / 2
        return {"most": gn @ (ctx.rest + (1 - ctx.rest) * ctx.share), "peak": gn @ by_peak}

    return eggs_of_season


def clusters(low, high):
    return lambda rng: (
        (t(rng.uniform(6e3, 2e4, 4)), t(rng.uniform(low, high, 4))),
        {"core": 30.0},
    )


@BOOK.wrong(
    clusters(15.5, 19.0),
    "in the cold the cluster contracts; that part of the gradient of outside is missing",
    MISSING,
    r"contract|dens(?:e|er|ity)|tighten|pack(?:ed|ing)|\bradius\b|\bcold\b|\bshrink|threshold",
    r"\bbelow\b|\bbranch\b|through the area|\bsurface\b|chain rule|\bonly\b",
    mends("/ s.dense", "* s.cold", "s.cold *", "np.where(s.cold"),
    where="colder than the temperature at which bees draw together",
    shows=clusters(-12.0, 8.0),
)
def cluster_heat_loss():
    @pb.autograd_function
    def cluster_heat_loss(ctx, bees, outside, core=32.0, gather=14.0, per_degree=0.05):
        """Heat in W that a winter cluster loses; below gather (in deg C) it contracts."""
        n, T = bees.numpy(), outside.numpy()
        if n.shape != T.shape or (n <= 0).any():
            raise ValueError("bees must be positive, one number for each temperature")
        cold = gather > T
        dense = 1.6e6 * (1 + per_degree * np.maximum(gather - T, 0.0))
        radius = np.cbrt(3 * n / (4 * np.pi * dense))
        area = 4 * np.pi * radius**2
        ctx.save_for_backward(n=n, T=T, area=area, dense=dense, cold=cold)
        ctx.core = core
        return pb.asarray(2.5 * area * (core - T))

    @cluster_heat_loss.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_area = gn * 2.5 * (ctx.core - s.T)
        return {
            "bees": pb.asarray(by_area * s.area * 2 / 3 / s.n),
            "outside": pb.asarray(-gn * 2.5 * s.area),
        }

    return cluster_heat_loss


@BOOK.right(
    lambda rng: (
        (t(np.array(180.0)), t(rng.uniform(0.005, 0.03, 20)), t(np.array(0.86))),
        {"treated": [4, 11]},
    )
)
def mite_load():
    @pb.autograd_function
    def mite_load(ctx, mites, growth, efficacy, treated=()):
        """Varroa mites in a colony at the end of each day.

        mites: scalar, at the start; growth: (days,), relative growth on each day; efficacy: the
        part killed on a day of treatment; treated: the days (from 0) of treatment.
        """
        r, eff, count = growth.numpy(), efficacy.item(), mites.item()
        path = [count]
        for k in range(len(r)):
            count *= 1 + r[k]
            if k in treated:
                count *= 1 - eff
            path.append(count)
        ctx.r, ctx.eff, ctx.path, ctx.treated = r.copy(), eff, path, frozenset(treated)
        return pb.asarray(np.array(path[1:]))

    @mite_load.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, grad_growth = grad_output.numpy(), np.zeros(len(ctx.r))
        grad_eff = to_mites = 0.0
        for k in reversed(range(len(gn))):
            to_mites += gn[k]
            if k in ctx.treated:
                grad_eff -= to_mites * ctx.path[k] * (1 + ctx.r[k])
                to_mites *= 1 - ctx.eff
            grad_growth[k] = to_mites * ctx.path[k]
            to_mites *= 1 + ctx.r[k]
        return {"mites": to_mites, "growth": pb.asarray(grad_growth), "efficacy": grad_eff}

    return mite_load


@BOOK.right(
    lambda rng: (
        (
            t(np.array([16000.0, 5000.0]) * rng.uniform(0.8, 1.2, 2)),
            t(np.array(1900.0)),
            t(np.array(0.14)),
        ),
        {"steps": 12, "dt": 0.5},
    )
)
def colony_of_two_castes():
    RECRUIT, RETURN, HALF = 0.25, 0.75, 27000.0

    def forward(ctx, bees, laying, loss, steps=30, dt=1.0):
        """Hive bees and foragers after some steps (Khoury's model); bees: (2,), both positive."""
        H, F = bees.numpy()
        L, m, path = laying.item(), loss.item(), []
        for _ in range(steps):
            N = H + F
            if N <= 0:
                raise ValueError("the colony has died out")
            path.append((H, F))
            born, recruits = L * N / (HALF + N), RECRUIT * H - RETURN * F * H / N
            H, F = H + dt * (born - recruits), F + dt * (recruits - m * F)
        ctx.L, ctx.m, ctx.dt, ctx.path = L, m, dt, path
        return pb.asarray(np.array([H, F]))

    @pb.once_differentiable
    def backward(ctx, g):
        (to_H, to_F), dt = g.numpy(), ctx.dt
        grad_L = grad_m = 0.0
        for H, F in reversed(ctx.path):
            N = H + F
            grad_L += dt * to_H * N / (HALF + N)
            grad_m -= dt * to_F * F
            born = dt * to_H * ctx.L * HALF / (HALF + N) ** 2
            moved = dt * (to_F - to_H)
            by_H = moved * (RECRUIT - RETURN * (F / N) ** 2)
            by_F = -moved * RETURN * (H / N) ** 2
            to_H, to_F = to_H + born + by_H, to_F + born + by_F - dt * ctx.m * to_F
        return {"bees": pb.asarray(np.array([to_H, to_F])), "laying": grad_L, "loss": grad_m}

    return pb.autograd_function(forward, backward, name="colony_of_two_castes")


@BOOK.right(
    lambda rng: (
        (t(np.array([1.4961, 1.4877, 1.5092, 1.4917]) + rng.uniform(0, 4e-4, 4)),),
        {"temperature": np.array([23.0, 18.5, 20.0, 26.0])},
    )
)
def refractometer_moisture():
    INDEX = np.array([1.4740, 1.4789, 1.4840, 1.4890, 1.4940, 1.4992, 1.5044])
    WATER = np.array([25.0, 23.0, 21.0, 19.0, 17.0, 15.0, 13.0])

    @pb.autograd_function
    def refractometer_moisture(ctx, index, temperature=20.0):
        """Moisture of honey in percent by its refractive index; the table's ends hold beyond it."""
        at20 = index.numpy() + 0.00023 * (temperature - 20.0)
        if at20.shape != index.shape:
            raise ValueError("one temperature, or one for each reading")
        ctx.at20 = at20
        return pb.asarray(np.asarray(np.interp(at20, INDEX, WATER)))

    @refractometer_moisture.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        slopes = np.concatenate([[0.0], np.diff(WATER) / np.diff(INDEX), [0.0]])
        return pb.asarray(grad_output.numpy() * slopes[np.searchsorted(INDEX, ctx.at20)]), None

    return refractometer_moisture


@BOOK.right(
    lambda rng: (
        (t(38 + np.cumsum(rng.normal(0.1, 0.3, 12))),),
        {
            "day": np.array([0, 0, 0, 0, 1, 1, 1, 3, 3, 3, 3, 3]),
            "valid": np.array([0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0], bool),
            "added": {1: 4.2},
        },
    )
)
def daily_gain():
    @pb.autograd_function
    def daily_gain(ctx, weight, day, valid=None, added=None):
        w = weight.numpy()
        used = np.ones(len(w), bool) if valid is None else valid
        gain, ends = np.zeros(day.max() + 1), {}
        for d in range(len(gain)):
            where = np.flatnonzero(used & (day == d))
            if len(where):
                ends[d] = where[0], where[-1]
                gain[d] = w[where[-1]] - w[where[0]]
            if added:
                gain[d] -= added.get(d, 0.0)
        ctx.ends, ctx.n = ends, len(w)
        return pb.asarray(gain)

    @daily_gain.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        grad = np.zeros(ctx.n)
        for d, (first, last) in ctx.ends.items():
            grad[last] += grad_output.numpy()[d]
            grad[first] -= grad_output.numpy()[d]
        return {"weight": pb.asarray(grad)}

    return daily_gain


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(8e3, 4e4, 5)), t(np.array(0.9))),
        {"places": np.cumsum(rng.uniform(0.6, 3.0, (5, 2)), axis=0)},
    )
)
def drifting_bees():
    @pb.autograd_function
    def drifting_bees(ctx, bees, steepness, places):
        """Bees by hive after drifting.

        bees: (n,), numbers; steepness: per metre, how fast drifting falls off with distance;
        places: (n, 2), the hives' coordinates in metres.
        """
        apart = np.linalg.norm(places[:, None] - places, axis=-1)
        score = -steepness.item() * apart
        share = np.exp(score - score.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        ctx.save_for_backward(bees=bees.numpy(), apart=apart, share=share)
        return pb.asarray(bees.numpy() @ share)

    @drifting_bees.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        kept = s.share @ gn
        mean = (s.share * s.apart).sum(axis=1)
        by_steepness = kept * mean - (s.share * s.apart) @ gn
        return {"bees": pb.asarray(kept), "steepness": s.bees @ by_steepness}

    return drifting_bees


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(-170, 170, 6)), t(rng.uniform(0.4, 5.0, 6)), t(np.array(1020.0))),
        {"azimuth": rng.uniform(100, 250, 6)},
    )
)
def waggle_dances():
    class WaggleDances(pb.Function):
        @staticmethod
        def forward(ctx, angle, duration, metres_per_second, azimuth=180.0):
            """East and north in m of danced places: (n, 2); angles in degrees off the vertical."""
            if angle.shape != duration.shape:
                raise ValueError("an angle and a duration for each dance")
            heading = np.deg2rad(angle.numpy() + azimuth)
            towards = np.stack([np.sin(heading), np.cos(heading)], axis=-1)
            ctx.save_for_backward(towards, duration.numpy(), metres_per_second.item())
            return pb.asarray(towards * (duration.numpy() * metres_per_second.item())[..., None])

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            towards, seconds, pace = ctx.saved_variables
            gn = grad_output.numpy()
            along = (gn * towards).sum(axis=-1)
            across = gn[..., 0] * towards[..., 1] - gn[..., 1] * towards[..., 0]
            return (
                pb.asarray(np.deg2rad(across * seconds * pace)),
                pb.asarray(along * pace),
                (along * seconds).sum(),
                None,
            )

    return WaggleDances.apply


@BOOK.right(lambda rng: ((t(rng.uniform(0.3, 2.8, 10)),), {"count": 4, "leave": 0.2}))
def frames_to_extract():
    @pb.autograd_function
    def frames_to_extract(ctx, honey, count=8, leave=0.0):
        """Honey from the heaviest frames, and which they are; each keeps `leave` kg."""
        order = np.argsort(-honey.numpy(), kind="stable")[:count]
        taken = np.maximum(honey.numpy()[order] - leave, 0.0)
        ctx.n, ctx.order = len(honey), order[taken > 0]
        return pb.asarray(np.asarray(taken.sum())), pb.asarray(order)

    @frames_to_extract.backward
    @pb.once_differentiable
    def _(ctx, g_total, g_order):
        grad = np.zeros(ctx.n)
        grad[ctx.order] = g_total.item()
        return {"honey": pb.asarray(grad)}

    return frames_to_extract


@BOOK.right(
    lambda rng: (
        (t(np.array([6.5, -2.0, 11.0, 3.2]) + rng.uniform(0, 1, 4)), t(np.array(0.18))),
        {"kind": "light"},
    )
)
def syrup_to_feed():
    SUGAR = {"light": 0.615, "heavy": 0.885, "fondant": 1.12}

    @pb.autograd_function
    def syrup_to_feed(ctx, deficit, loss, kind="heavy"):
        if not loss.item() < 1:
            raise ValueError("not all can be lost")
        kept = 1 - loss.item()
        litres = np.maximum(deficit.numpy(), 0.0) / (SUGAR[kind] * kept)
        ctx.litres, ctx.kept, ctx.sugar = litres, kept, SUGAR[kind]
        return pb.asarray(litres.copy())

    @syrup_to_feed.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        short = ctx.litres > 0
        return {
            "deficit": pb.asarray(np.where(short, gn / (ctx.sugar * ctx.kept), 0.0)),
            "loss": (gn * ctx.litres).sum() / ctx.kept,
        }

    return syrup_to_feed


@BOOK.right(lambda rng: ((t(np.array([212.0, 145.0, 60.0, 31.0, 4.0])),), {"order": 1}))
def pollen_diversity():
    @pb.autograd_function
    def pollen_diversity(ctx, grains, order=2):
        """Effective number of plants in a pollen load (Hill number).

        grains: (plants,), positive weights or counts; order: 1 is the exponential of Shannon's
        entropy, 2 the inverse of Simpson's index, 0 the number of plants.
        """
        c = grains.numpy()
        if (c <= 0).any():
            raise ValueError("leave out the plants that are not there")
        total = c.sum()
        p = c / total
        if order == 1:
            number = np.exp(-(p * np.log(p)).sum())
            by_p = -number * (np.log(p) + 1)
        else:
            power = (p**order).sum()
            number = power ** (1 / (1 - order))
            by_p = number * order * p ** (order - 1.0) / ((1 - order) * power)
        ctx.by_grains = (by_p - by_p @ p) / total
        return pb.asarray(np.asarray(number))

    @pollen_diversity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return {"grains": pb.asarray(grad_output.item() * ctx.by_grains)}

    return pollen_diversity


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(8e3, 3e4, 4)), t(rng.uniform(-8, 22, 4)), t(rng.uniform(0.6, 1.6, 4))),
        {},
    )
)
def hive_temperature():
    @pb.autograd_function
    def hive_temperature(ctx, bees, ambient, conductance, watts=1e-3, slack=0.12, brood=34.5):
        n, outside, U = bees.numpy(), ambient.numpy(), conductance.numpy()
        if not n.shape == outside.shape == U.shape or min(n.min(), U.min()) <= 0:
            raise ValueError("bees and conductance must be positive, one of each by hive")
        T = outside.copy()
        for _ in range(200):
            heat = n * watts * np.exp(-slack * (T - brood))
            step = (heat - U * (T - outside)) / (slack * heat + U)
            T += step
            if np.abs(step).max() < 1e-10:
                break
        else:
            raise ArithmeticError("no balance of heat was found")
        heat = n * watts * np.exp(-slack * (T - brood))
        ctx.save_for_backward(n=n, U=U, T=T, outside=outside, heat=heat)
        ctx.slack = slack
        return pb.asarray(T.copy())

    @hive_temperature.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        flow = grad_output.numpy() / (ctx.slack * s.heat + s.U)
        return {
            "bees": pb.asarray(flow * s.heat / s.n),
            "ambient": pb.asarray(flow * s.U),
            "conductance": pb.asarray(-flow * (s.T - s.outside)),
        }

    return hive_temperature


@BOOK.right(
    lambda rng: (
        (t(41 + rng.normal(0, 0.8, 9)), t(np.array(0.3))),
        {"start": t(np.array(40.2))},
    )
)
def smoothed_scale():
    @pb.autograd_function
    def smoothed_scale(ctx, reading, gain, start=None):
        """Readings of a hive scale, smoothed; without a start the first reading is taken."""
        x, a = reading.numpy(), gain.item()
        level = x[0] if start is None else start.item()
        errors, levels = np.empty(len(x)), np.empty(len(x))
        for k, value in enumerate(x):
            errors[k] = value - level
            level = level + a * errors[k]
            levels[k] = level
        ctx.a, ctx.errors, ctx.given = a, errors, start is not None
        return pb.asarray(levels)

    @smoothed_scale.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, grad = grad_output.numpy(), np.empty(len(ctx.errors))
        carry = by_gain = 0.0
        for k in reversed(range(len(grad))):
            carry += gn[k]
            by_gain += carry * ctx.errors[k]
            grad[k] = ctx.a * carry
            carry *= 1 - ctx.a
        if not ctx.given:
            grad[0] += carry
        return {
            "reading": pb.asarray(grad),
            "gain": by_gain,
            "start": carry if ctx.given else None,
        }

    return smoothed_scale


@BOOK.right(
    lambda rng: (
        (
            t(np.array([250.0, 900.0, 2600.0, 6400.0])),
            t(np.array([0.4, 0.35, 0.3, 0.15]) + rng.uniform(0, 0.03, 4)),
        ),
        {"handling": 900.0},
    )
)
def foraging_profit():
    SPEED, LOAD, COST, ENERGY = 6.5, 40.0, 70.0, 17e3  # m/s, mg, mW, mJ/mg

    @pb.autograd_function
    def foraging_profit(ctx, distance, sugar, handling=1200.0):
        """Net energy in mW of flying to patches; nobody flies where it does not pay.

        distance: (patches,) in m, not negative; sugar: (patches,), part of the nectar by mass.
        """
        d, c = distance.numpy(), sugar.numpy()
        if d.shape != c.shape or (d < 0).any():
            raise ValueError("one distance (not negative) and one sugar content for each patch")
        time = handling + 2 * d / SPEED
        net = ENERGY * LOAD * c - COST * 2 * d / SPEED
        rate = net / time
        ctx.flown, ctx.time, ctx.rate = net > 0, time, rate
        return pb.asarray(np.where(ctx.flown, rate, 0.0))

    @foraging_profit.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        flow = np.where(ctx.flown, grad_output.numpy(), 0.0) / ctx.time
        return {
            "distance": pb.asarray(-flow * (COST + ctx.rate) * 2 / SPEED),
            "sugar": pb.asarray(flow * ENERGY * LOAD),
        }

    return foraging_profit
