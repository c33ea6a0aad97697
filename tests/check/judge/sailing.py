"""Sailing: wind and instruments, polars, sails, stability, tides, moorings, races."""

from __future__ import annotations

import numpy as np
from scipy import optimize

import pullback as pb

from .entries import FACTOR, MISSING, REPEATED, SIGN, Book, mends, t

BOOK = Book("sailing")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(6, 22, 5)), t(rng.uniform(30, 150, 5)), t(rng.uniform(4, 8, 5))),
        {},
    ),
    "the angle comes in degrees, and its gradient lacks the factor pi/180",
    FACTOR,
    r"\bdegrees?\b|\bradians?\b|pi ?/ ?180|57\.|0\.0174",
    mends("* np.pi / 180", "np.pi / 180 *", "np.deg2rad(-", "np.radians(-"),
)
def apparent_wind_speed():
    @pb.autograd_function
    def apparent_wind_speed(ctx, true_speed, true_angle, boat_speed):
        """Apparent wind in knots, of the true wind's speed and angle off the bow."""
        w, v = true_speed.numpy(), boat_speed.numpy()
        a = np.radians(true_angle.numpy())
        apparent = np.sqrt(w**2 + v**2 + 2 * w * v * np.cos(a))
        ctx.save_for_backward(w=w, v=v, a=a, apparent=apparent)
        return pb.asarray(apparent.copy())

    @apparent_wind_speed.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        flow = g.numpy() / s.apparent
        return {
            "true_speed": pb.asarray(flow * (s.w + s.v * np.cos(s.a))),
            "true_angle": pb.asarray(-flow * s.w * s.v * np.sin(s.a)),
            "boat_speed": pb.asarray(flow * (s.v + s.w * np.cos(s.a))),
        }

    return apparent_wind_speed


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(5, 8, 4)), t(rng.uniform(0.5, 2.5, 4))),
        {"course": rng.uniform(0, 360, 4), "set_": rng.uniform(0, 360, 4)},
    ),
    "a faster boat also crabs less: the term by which the crab angle follows boat is missing",
    MISSING,
    r"\bcrab|through the (?:angle|arcsine)|chain rule|\btan\b|1 ?/ ?cos",
    mends("/ s.ahead", "/ ctx.ahead", "s.boat / ", "ctx.boat / "),
)
def speed_over_ground():
    @pb.autograd_function
    def speed_over_ground(ctx, boat, stream, course, set_):
        angle = np.radians(set_ - course)
        along, across = np.cos(angle), np.sin(angle)
        drift = stream.numpy() * across
        if (np.abs(drift) >= boat.numpy()).any():
            raise ValueError("the stream is too strong to hold the course")
        ahead = np.sqrt(boat.numpy() ** 2 - drift**2)
        ctx.boat, ctx.ahead, ctx.drift, ctx.along, ctx.across = boat, ahead, drift, along, across
        return pb.asarray(ahead + stream.numpy() * along)

    @speed_over_ground.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        cos_crab = np.sqrt(1 - (ctx.drift / ctx.boat.numpy()) ** 2)
        by_drift = -gn * ctx.drift / ctx.ahead
        return {
            "boat": pb.asarray(gn * cos_crab),
            "stream": pb.asarray(gn * ctx.along + by_drift * ctx.across),
        }

    return speed_over_ground


POLAR = np.array(
    [
        [0.0, 0.0, 0.0, 0.0],
        [3.9, 5.2, 5.9, 6.1],
        [5.0, 6.3, 6.9, 7.2],
        [5.3, 6.8, 7.4, 8.1],
        [4.1, 5.7, 6.8, 7.9],
        [3.2, 4.8, 6.0, 6.9],
    ]
)


@BOOK.wrong(
    lambda rng: (
        (t(POLAR), np.array([17.0, 101.0, 152.0]), np.array([7.5, 18.3, 9.1])),
        {},
    ),
    "log entries that fall in the same cell overwrite each other: += counts repeated nodes once",
    REPEATED,
    r"same cell|overwr|np\.add\.at|accumulat|\bcollid|\bcollision",
    mends("np.add.at", "np.bincount", "add.at(", "for k in"),
    where="two log entries share a node of the table",
    shows=lambda rng: (
        (t(POLAR), np.array([47.0, 58.0, 101.0, 52.0]), np.array([13.5, 12.3, 9.1, 14.7])),
        {},
    ),
)
def polar_speed():
    TWA = np.array([0.0, 45.0, 75.0, 110.0, 150.0, 180.0])
    TWS = np.array([6.0, 10.0, 16.0, 25.0])

    @pb.autograd_function
    def polar_speed(ctx, table, angle, wind):
        """Boat speeds from a polar table: (6, 4) for the log's wind angles and speeds: (n,)."""
        i = np.clip(np.searchsorted(TWA, angle) - 1, 0, len(TWA) - 2)
        j = np.clip(np.searchsorted(TWS, wind) - 1, 0, len(TWS) - 2)
        u = np.clip((angle - TWA[i]) / (TWA[i + 1] - TWA[i]), 0, 1)
        v = np.clip((wind - TWS[j]) / (TWS[j + 1] - TWS[j]), 0, 1)
        ctx.corners = [
            (i, j, (1 - u) * (1 - v)),
            (i + 1, j, u * (1 - v)),
            (i, j + 1, (1 - u) * v),
            (i + 1, j + 1, u * v),
        ]
        return pb.asarray(sum(w * table.numpy()[a, b] for a, b, w in ctx.corners))

    @polar_speed.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_table = np.zeros((len(TWA), len(TWS)))
        for a, b, w in ctx.corners:
            by_table[a, b] += w * g.numpy()
        return {"table": pb.asarray(by_table)}

    return polar_speed


@BOOK.wrong(
    lambda rng: ((t(np.array([4.0, 17.0, 33.0, 52.0])), t(rng.uniform(5.5, 6.5))), {}),
    "the lever is odd and its slope even, but the slope of heel has the sign of the tack as well",
    SIGN,
    r"\bodd\b|\beven\b|port|negative (?:heel|angle)|\btack\b|symmetr",
    mends("s.slope * np.abs(", "ctx.tack * ctx.tack", "ctx.tack**2", "np.abs(ctx.tack)"),
    where="heel to the other side",
    shows=lambda rng: ((t(np.array([-21.0, 17.0, -38.0, 52.0])), t(rng.uniform(5.5, 6.5))), {}),
)
def righting_moment():
    HEEL = np.array([0.0, 10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 150.0, 180.0])
    LEVER = np.array([0.0, 0.18, 0.35, 0.49, 0.63, 0.66, 0.47, 0.09, -0.21, 0.0])

    @pb.autograd_function
    def righting_moment(ctx, heel, displacement):
        """Righting moment in kN m; heel in degrees, positive to starboard; displacement in t."""
        size, ctx.tack = np.abs(heel.numpy()), np.sign(heel.numpy())
        k = np.clip(np.searchsorted(HEEL, size, side="right") - 1, 0, len(HEEL) - 2)
        ctx.slope = np.diff(LEVER)[k] / np.diff(HEEL)[k]
        ctx.lever = ctx.tack * (LEVER[k] + ctx.slope * (size - HEEL[k]))
        ctx.weight = 9.81 * displacement.item()
        return pb.asarray(ctx.weight * ctx.lever)

    @righting_moment.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        return {
            "heel": pb.asarray(gn * ctx.weight * ctx.tack * ctx.slope),
            "displacement": 9.81 * (gn @ ctx.lever),
        }

    return righting_moment


SPEEDS = np.array([3.1, 4.6, 5.5, 6.05, 6.35, 6.5, 6.62, 6.7])


@BOOK.right(lambda rng: ((t(SPEEDS + rng.normal(0, 0.02, 8)),), {"first": 28.0, "step": 5.0}))
def tack_optimum():
    @pb.autograd_function
    def tack_optimum(ctx, speed, first=30.0, step=5.0, downwind=False):
        """Best speed made good and its wind angle, by a parabola through the best three.

        speed: (n,) in knots at the angles first, first + step, ... in degrees; n is 1 or more.
        """
        project = np.cos(np.radians(first + step * np.arange(len(speed))))
        project = -project if downwind else project
        made_good = speed.numpy() * project
        best = made_good.argmax()
        weights = np.zeros((2, len(speed)))
        weights[0, best] = 1.0
        peak, shift = made_good[best], 0.0
        if 0 < best < len(speed) - 1:
            low, top, high = made_good[best - 1 : best + 2]
            bend, rise = low - 2 * top + high, (high - low) / 2
            if bend < 0:
                shift = -rise / bend
                peak = top + rise * shift / 2
                by_bend = np.array([shift**2 / 2, rise / bend**2])
                by_rise = np.array([shift, -1 / bend])
                weights[:, best - 1] += by_bend - by_rise / 2
                weights[:, best] -= 2 * by_bend
                weights[:, best + 1] += by_bend + by_rise / 2
        weights[1] *= step
        ctx.weights = weights * project
        angle = first + step * (best + shift)
        return pb.asarray(np.asarray(peak)), pb.asarray(np.asarray(angle))

    @tack_optimum.backward
    @pb.once_differentiable
    def _(ctx, g_peak, g_angle):
        return {"speed": pb.asarray(np.array([g_peak.item(), g_angle.item()]) @ ctx.weights)}

    return tack_optimum


@BOOK.right(
    lambda rng: (
        (
            t(np.array([22.0, -31.0, 64.0, -118.0, 171.0])),
            t(rng.uniform(8, 24, 5)),
            t(np.array([0.0, 1.1, 1.5, 1.35, 0.9, 0.1])),
            t(np.array([0.04, 0.06, 0.16, 0.5, 0.95, 1.2])),
        ),
        {"area": 38.0},
    )
)
def sail_drive():
    NODES = np.array([5.0, 27.0, 50.0, 90.0, 130.0, 165.0])

    @pb.autograd_function
    def sail_drive(ctx, angle, wind, lift, drag, area=30.0):
        """Driving force in N; angle off the bow in degrees (negative: port), wind in m/s."""
        size = np.abs(angle.numpy())
        ctx.k = np.clip(np.searchsorted(NODES, size) - 1, 0, len(NODES) - 2)
        ctx.gap = np.diff(NODES)[ctx.k]
        ctx.share = np.clip((size - NODES[ctx.k]) / ctx.gap, 0, 1)
        ctx.inside = (size > NODES[0]) & (size < NODES[-1])
        cl, cd = (
            (1 - ctx.share) * table.numpy()[ctx.k] + ctx.share * table.numpy()[ctx.k + 1]
            for table in (lift, drag)
        )
        ctx.save_for_backward(angle=angle, wind=wind, lift=lift, drag=drag)
        ctx.cl, ctx.cd, ctx.area = cl, cd, area
        c, s = np.cos(np.radians(size)), np.sin(np.radians(size))
        return pb.asarray(0.5 * 1.225 * area * wind.numpy() ** 2 * (cl * s - cd * c))

    @sail_drive.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        angle, wind = s.angle.numpy(), s.wind.numpy()
        size = np.radians(np.abs(angle))
        along, across = np.cos(size), np.sin(size)
        push = 0.5 * 1.225 * ctx.area * gn * wind**2
        by_size = push * (ctx.cl * along + ctx.cd * across) * np.pi / 180
        grads = {}
        for name, table, factor in (("lift", s.lift, across), ("drag", s.drag, -along)):
            values, carried = table.numpy(), push * factor
            slope = (values[ctx.k + 1] - values[ctx.k]) / ctx.gap
            by_size = by_size + carried * slope * ctx.inside
            by_table = np.zeros_like(values)
            np.add.at(by_table, ctx.k, carried * (1 - ctx.share))
            np.add.at(by_table, ctx.k + 1, carried * ctx.share)
            grads[name] = pb.asarray(by_table)
        force = ctx.cl * across - ctx.cd * along
        grads["angle"] = pb.asarray(np.sign(angle) * by_size)
        grads["wind"] = pb.asarray(1.225 * ctx.area * gn * wind * force)
        return grads

    return sail_drive


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(3, 18, 4)), t(rng.uniform(8, 22, 4)), t(14.0)),
        {"carried": 40.0, "bow": 1.3},
    )
)
def chain_shortfall():
    @pb.autograd_function
    def chain_shortfall(ctx, depth, wind, windage, carried=50.0, bow=1.0, weight=20.0):
        """Metres of chain that lack, where its catenary is to lie flat at the anchor.

        depth: (n,) in m; wind: (n,) in m/s; windage: one number, in m2; weight: in N/m.
        """
        ctx.save_for_backward(depth=depth, wind=wind, windage=windage)
        ctx.settings = carried, bow, weight
        height = depth + bow
        pull = 0.5 * 1.225 * windage * wind * wind
        return ((height * height + 2 / weight * height * pull).sqrt() - carried).clamp(min=0)

    @chain_shortfall.backward
    def _(ctx, g):
        s = ctx.saved_variables
        carried, bow, weight = ctx.settings
        height = s.depth + bow
        unit = 1.225 / weight
        needed = (height * height + unit * height * s.windage * s.wind * s.wind).sqrt()
        flow = g * (needed > carried) / (2 * needed)
        return {
            "depth": flow * (2 * height + unit * s.windage * s.wind * s.wind),
            "wind": flow * 2 * unit * height * s.windage * s.wind,
            "windage": (flow * unit * height * s.wind * s.wind).sum(),
        }

    return chain_shortfall


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(5200, 7400, 6)), t(rng.uniform(60, 190, 6))),
        {
            "system": "time_on_time",
            "finished": np.array([1, 1, 0, 1, 0, 1], bool),
        },
    )
)
def corrected_times():
    @pb.autograd_function
    def corrected_times(ctx, elapsed, rating, system="time_on_distance", miles=8.0, finished=None):
        """Corrected times in s, and places; rating in s a mile.

        Who has not finished gets the slowest finisher's time and 10 % of it.
        """
        e, r = elapsed.numpy(), rating.numpy()
        done = np.ones(len(e), bool) if finished is None else finished
        if not done.any():
            raise ValueError("nobody has finished")
        if system == "time_on_distance":
            by_e, by_r, times = np.ones_like(e), np.full_like(r, -miles), e - miles * r
        elif system == "time_on_time":
            by_e = 650.0 / (550.0 + r)
            times, by_r = e * by_e, -e * by_e / (550.0 + r)
        else:
            raise ValueError(f"unknown system {system!r}")
        last = np.flatnonzero(done)[times[done].argmax()]
        times[~done] = 1.1 * times[last]
        ctx.by_e, ctx.by_r, ctx.done, ctx.last = by_e, by_r, done, last
        place = times.argsort(kind="stable").argsort() + 1
        return pb.asarray(times), pb.asarray(place)

    @corrected_times.backward
    @pb.once_differentiable
    def _(ctx, g_times, g_place):
        gn = np.where(ctx.done, g_times.numpy(), 0.0)
        gn[ctx.last] += 1.1 * g_times.numpy()[~ctx.done].sum()
        return {"elapsed": pb.asarray(gn * ctx.by_e), "rating": pb.asarray(gn * ctx.by_r)}

    return corrected_times


@BOOK.right(
    lambda rng: (
        (
            t(
                rng.permuted(np.tile(np.arange(1.0, 8), (5, 1)), axis=1)
                + rng.uniform(0, 0.4, (5, 7))
            ),
        ),
        {"discards": 2},
    )
)
def series_points():
    @pb.autograd_function
    def series_points(ctx, scores, discards=1):
        values = scores.numpy()
        races = values.shape[1]
        if not 0 <= discards < races:
            raise ValueError("at least one race must count")
        order = np.argsort(values, axis=1, kind="stable")
        counts = np.zeros(values.shape)
        np.put_along_axis(counts, order[:, : races - discards], 1.0, axis=1)
        ctx.save_for_backward(counts=counts)
        return pb.asarray((values * counts).sum(axis=1))

    @series_points.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"scores": pb.asarray(g.numpy()[:, None] * ctx.saved_variables.counts)}

    return series_points


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.7, 2.2, 3.9, 5.6, 6.8, 8.4, 9.9])),
            t(np.array([2.0, 8.3])),
            t(np.array([1.1, 4.6])),
        ),
        {},
    )
)
def twelfths_tide():
    PARTS = np.array([0, 1, 3, 6, 9, 11, 12]) / 12

    @pb.autograd_function
    def twelfths_tide(ctx, hours, turns, heights):
        """Height of tide by the rule of twelfths, level before and after.

        hours: (n,); turns, heights: (2,), the times and heights of low and high water.
        """
        (start, end), (first, second) = turns.numpy(), heights.numpy()
        if end <= start:
            raise ValueError("the second turn must come later")
        phase = 6 * (hours.numpy() - start) / (end - start)
        k = np.clip(np.floor(phase), 0, 5).astype(int)
        slope = np.where((phase < 0) | (phase > 6), 0.0, np.diff(PARTS)[k])
        part = np.clip(PARTS[k] + np.diff(PARTS)[k] * (phase - k), 0.0, 1.0)
        ctx.save_for_backward(phase=phase, slope=slope, part=part)
        ctx.lasting, ctx.range = end - start, second - first
        return pb.asarray(first + ctx.range * part)

    @twelfths_tide.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_hours = gn * ctx.range * s.slope * 6 / ctx.lasting
        late = s.phase / 6
        by_turns = -np.array([by_hours @ (1 - late), by_hours @ late])
        return {
            "hours": pb.asarray(by_hours),
            "turns": pb.asarray(by_turns),
            "heights": pb.asarray(np.array([gn @ (1 - s.part), gn @ s.part])),
        }

    return twelfths_tide


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(4, 14, 6)),
            t(rng.uniform(4.5, 6.5, 6)),
            t(np.array([-0.4, 0.9, 1.8, 1.1, -0.3, -1.4, -1.7])),
        ),
        {"depart": 0.4},
    )
)
def passage_plan():
    class PassagePlan(pb.Function):
        @staticmethod
        def forward(ctx, distance, speed, stream, depart=0.0, interval=1.0):
            # hours of arrival at each waypoint; the stream is that at the beginning of a leg
            c, now, legs = stream.numpy(), depart, []
            for d, v in zip(distance.numpy(), speed.numpy(), strict=True):
                place = min(max(now / interval, 0.0), len(c) - 1.0)
                k = min(int(place), len(c) - 2)
                slope = (c[k + 1] - c[k]) / interval
                if now < 0 or now > (len(c) - 1) * interval:
                    slope = 0.0
                ground = v + c[k] + (place - k) * (c[k + 1] - c[k])
                if ground <= 0:
                    raise ValueError("the stream sets the boat back")
                now += d / ground
                legs.append((d, ground, k, place - k, slope, now))
            ctx.legs, ctx.points = legs, len(c)
            return pb.asarray(np.array([leg[-1] for leg in legs]))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            gn, later = g.numpy(), 0.0
            by_distance, by_speed = np.zeros_like(gn), np.zeros_like(gn)
            by_stream = np.zeros(ctx.points)
            for i in reversed(range(len(gn))):
                d, ground, k, share, slope, _ = ctx.legs[i]
                later += gn[i]
                by_distance[i] = later / ground
                by_speed[i] = -later * d / ground**2
                by_stream[k] += (1 - share) * by_speed[i]
                by_stream[k + 1] += share * by_speed[i]
                later += by_speed[i] * slope
            return (*map(pb.asarray, (by_distance, by_speed, by_stream)), None, None)

    return PassagePlan.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(8, 30, 5)), t(np.array([0.9, 0.15, 0.4, 0.05, 2.5])), t(17.0)),
        {},
    )
)
def mooring_surge():
    @pb.autograd_function
    def mooring_surge(ctx, stiffness, slack, load):
        """How far a steady load in kN moves a berthed yacht, and the tension of each warp.

        stiffness: (n,) in kN/m, positive; slack: (n,) in m, of each warp before it holds.
        """
        k, s, F = stiffness.numpy(), slack.numpy(), load.item()
        if F <= 0:
            raise ValueError("load must be positive")
        order = np.argsort(s)
        moved = (F + np.cumsum((k * s)[order])) / np.cumsum(k[order])
        # the first number of warps with which the next one still hangs loose
        enough = np.append(moved[:-1] <= s[order][1:], True).argmax()
        x = moved[enough]
        ctx.stretch = np.maximum(x - s, 0.0)
        ctx.held = np.where(x > s, k, 0.0)
        return pb.asarray(np.asarray(x)), pb.asarray(k * ctx.stretch)

    @mooring_surge.backward
    @pb.once_differentiable
    def _(ctx, g_moved, g_tension):
        gn = g_tension.numpy()
        by_load = (g_moved.item() + gn @ ctx.held) / ctx.held.sum()
        return {
            "stiffness": pb.asarray((gn - by_load) * ctx.stretch),
            "slack": pb.asarray((by_load - gn) * ctx.held),
            "load": by_load,
        }

    return mooring_surge


@BOOK.right(lambda rng: ((t(rng.uniform(150, 2600, 5)), t(62.0), t(0.21)), {}))
def motoring_speed():
    @pb.autograd_function
    def motoring_speed(ctx, thrust, friction, waves):
        T, a, b = thrust.numpy(), friction.item(), waves.item()
        if (T <= 0).any() or a <= 0 or b < 0:
            raise ValueError("thrust and friction must be positive")
        # from above the root of a convex function Newton's method cannot overshoot
        v = np.sqrt(T / a)
        for _ in range(100):
            step = (a * v**2 + b * v**6 - T) / (2 * a * v + 6 * b * v**5)
            v = v - step
            if np.abs(step).max() < 1e-13 * v.max():
                break
        ctx.save_for_backward(v=v, steep=2 * a * v + 6 * b * v**5)
        return pb.asarray(v.copy())

    @motoring_speed.backward
    @pb.once_differentiable
    def _(ctx, g):
        v, steep = ctx.saved_variables
        flow = g.numpy() / steep
        return {"thrust": pb.asarray(flow), "friction": -(flow @ v**2), "waves": -(flow @ v**6)}

    return motoring_speed


@BOOK.right(
    lambda rng: ((t(rng.uniform(-45, 90, 4)), t(rng.uniform(0.9, 1.4)), t(rng.uniform(2, 3))), {})
)
def steady_heel():
    def forward(ctx, moment, metacentric, form, displacement=6.0):
        """Heel in degrees under wind moments in kN m, by the wall-sided formula."""
        weight = 9.81 * displacement
        gm, bm = metacentric.item(), form.item()

        def excess(heel, wind):
            lever = np.sin(heel) * (gm + 0.5 * bm * np.tan(heel) ** 2)
            return weight * lever - wind * np.cos(heel) ** 2

        heel = np.array(
            [
                optimize.brentq(excess, -1.55, 1.55, args=(M,), xtol=1e-14, rtol=1e-13)
                for M in moment.numpy()
            ]
        )
        ctx.save_for_backward(moment=moment, heel=heel)
        ctx.gm, ctx.bm, ctx.weight = gm, bm, weight
        return pb.asarray(np.degrees(heel))

    @pb.once_differentiable
    def backward(ctx, g):
        heel, M = ctx.saved_variables.heel, ctx.saved_variables.moment.numpy()
        s, c, tan = np.sin(heel), np.cos(heel), np.tan(heel)
        by_heel = ctx.weight * (c * (ctx.gm + 0.5 * ctx.bm * tan**2) + ctx.bm * s * tan / c**2)
        flow = -np.degrees(g.numpy()) / (by_heel + 2 * M * s * c)
        return {
            "moment": pb.asarray(-flow * c**2),
            "metacentric": ctx.weight * (flow @ s),
            "form": 0.5 * ctx.weight * (flow @ (s * tan**2)),
        }

    return pb.autograd_function(forward, backward, name="steady_heel")


@BOOK.right(
    lambda rng: (
        (t(np.array([352.0, 8.0, 341.0, 15.0, 3.0])), t(rng.uniform(5, 20, 5))),
        {},
    )
)
def wind_mean_direction():
    @pb.autograd_function
    def wind_mean_direction(ctx, direction, speed=None):
        """Mean direction in degrees, weighted by speed if given, and steadiness (0 to 1)."""
        a = np.radians(direction.numpy())
        w = np.ones_like(a) if speed is None else speed.numpy()
        x, y = w @ np.cos(a), w @ np.sin(a)
        length, mean = np.hypot(x, y), np.arctan2(y, x)
        if length == 0:
            raise ArithmeticError("the wind has no mean direction")
        ctx.save_for_backward(a=a, w=w, length=length, mean=mean)
        ctx.weighted = speed is not None
        steadiness = np.asarray(length / w.sum())
        return pb.asarray(np.asarray(np.degrees(mean) % 360)), pb.asarray(steadiness)

    @wind_mean_direction.backward
    @pb.once_differentiable
    def _(ctx, g_mean, g_steady):
        a, w, length, mean = ctx.saved_variables
        along, across = np.cos(a - mean), np.sin(a - mean)
        to_mean, to_length = np.degrees(g_mean.item()) / length, g_steady.item() / w.sum()
        grads = {"direction": pb.asarray(np.radians(w * (to_mean * along - to_length * across)))}
        if ctx.weighted:
            spread = along - length / w.sum()
            grads["speed"] = pb.asarray(to_mean * across + to_length * spread)
        return grads

    return wind_mean_direction


@BOOK.right(
    lambda rng: (
        (t((20.0 * rng.normal(size=12) + np.linspace(330, 390, 12)) % 360), t(0.35)),
        {"start": 335.0},
    )
)
def damped_direction():
    @pb.autograd_function
    def damped_direction(ctx, readings, gain, start=0.0):
        damped = np.empty(len(readings))
        turns = np.empty(len(readings))
        shown = start
        for i, reading in enumerate(readings.numpy()):
            turns[i] = (reading - shown + 180.0) % 360.0 - 180.0
            shown = (shown + gain.item() * turns[i]) % 360.0
            damped[i] = shown
        ctx.turns, ctx.gain = turns, gain.item()
        return pb.asarray(damped)

    @damped_direction.backward
    @pb.once_differentiable
    def _(ctx, g):
        to_shown = g.numpy().copy()
        for i in range(len(to_shown) - 1, 0, -1):
            to_shown[i - 1] += (1 - ctx.gain) * to_shown[i]
        return {"readings": pb.asarray(ctx.gain * to_shown), "gain": to_shown @ ctx.turns}

    return damped_direction
