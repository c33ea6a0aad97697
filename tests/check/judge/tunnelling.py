"""Tunnelling: settlement, ground reaction, air flow, rock ratings, boring machines, linings."""

from __future__ import annotations

import numpy as np
from scipy import optimize

import pullback as pb

from .entries import MISSING, SIGN, Book, mends, t

BOOK = Book("tunnelling")


@BOOK.wrong(
    lambda rng: (
        (t(np.array(1.2)), t(np.array(18.0) + rng.random()), t(np.array(0.45))),
        {"offsets": np.linspace(-20, 25, 7), "diameter": 9.5},
    ),
    "the width of the bell is also in the exponent: that term is missing",
    MISSING,
    r"exponent\b|\bbell\b|inflection|prefactor|chain rule|\bGauss",
    mends("(y / s.i) ** 2 - 1", "y**2 / s.i**3", "(s.offsets / s.i) ** 2", "s.offsets**2"),
)
def trough_settlement():
    @pb.autograd_function
    def trough_settlement(ctx, volume_loss, depth, trough, offsets, diameter):
        """Settlement in mm across the axis of a bored tunnel.

        volume_loss: percent; depth of the axis and offsets: m; trough: 0.25 (sand) to 0.6 (clay).
        """
        i = trough.item() * depth.item()
        if i <= 0:
            raise ValueError("depth and trough must be positive")
        area = np.pi * diameter**2 / 4
        bell = 10 * area / (np.sqrt(2 * np.pi) * i) * np.exp(-(offsets**2) / (2 * i**2))
        sag = volume_loss.item() * bell
        ctx.save_for_backward(depth=depth.item(), K=trough.item(), i=i, bell=bell, sag=sag)
        return pb.asarray(sag.copy())

    @trough_settlement.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_width = -(gn @ s.sag) / s.i
        return {
            "volume_loss": gn @ s.bell,
            "depth": by_width * s.K,
            "trough": by_width * s.depth,
        }

    return trough_settlement


def opening(low, high):
    def given(rng):
        pressure = np.linspace(low, high, 6) + rng.uniform(-5, 5, 6)
        return (t(pressure), t(np.array(900.0)), t(np.array(400.0))), {"shear": 6e4}

    return given


@BOOK.wrong(
    opening(580, 840),
    "where the ground yields, the gradient of cohesion takes the plastic radius for fixed",
    r"\byield|\bplastic|\bexponent|\bbranch\b|radius (?:is|was|held|taken|grows|depends)",
    MISSING,
    r"(?:low|small|less|below).{0,30}(?:pressure|support)",
    mends("1 - s.relief / s.c", "s.relief / s.c**2", "(s.c - s.relief)", "s.relief / s.c"),
    where="the ground yields",
    shows=opening(60, 380),
)
def ground_reaction():
    @pb.autograd_function
    def ground_reaction(ctx, pressure, in_situ, cohesion, shear, radius=4700.0):
        """Closure of the wall in mm under support pressures in kPa, in undrained clay."""
        p, c = pressure.numpy(), cohesion.item()
        relief = in_situ.item() - p
        if c <= 0 or (relief < 0).any():
            raise ValueError("cohesion must be positive, the support below the stress in situ")
        yields = relief > c
        stress = np.where(yields, c * np.exp(np.maximum(relief / c, 1.0) - 1), relief)
        ctx.save_for_backward(relief=relief, yields=yields, stress=stress, c=c)
        ctx.per_stress = radius / (2 * shear)
        return pb.asarray(ctx.per_stress * stress)

    @ground_reaction.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy() * ctx.per_stress
        by_relief = gn * np.where(s.yields, s.stress / s.c, 1.0)
        by_cohesion = gn * np.where(s.yields, s.stress / s.c, 0.0)
        return {
            "pressure": pb.asarray(-by_relief),
            "in_situ": by_relief.sum(),
            "cohesion": by_cohesion.sum(),
        }

    return ground_reaction


def lanes(*speeds):
    def given(rng):
        speed = np.array(speeds) * rng.uniform(0.95, 1.05, len(speeds))
        return (t(speed), t(rng.uniform(0.1, 0.2, len(speeds))), t(np.array(6.5))), {"wind": 4.0}

    return given


@BOOK.wrong(
    lanes(22.0, 25.0, 19.0),
    "the slope of x|x| is taken for 2x, so its sign is wrong for traffic the other way",
    SIGN,
    r"\babs(?:olute)?\b|modulus|counter|oncoming|the other way|relative|\bopposing|direction",
    mends("np.abs(s.relative)", "abs(s.relative)"),
    where="traffic in both directions",
    shows=lanes(22.0, -17.0, 20.0),
)
def piston_airflow():
    @pb.autograd_function
    def piston_airflow(ctx, speed, drag, loss, wind=0.0):
        u, d, L = speed.numpy(), drag.numpy(), loss.item()

        def surplus(v):
            return wind + d @ ((u - v) * np.abs(u - v)) - L * v * abs(v)

        most = np.abs(u).max() + np.sqrt(abs(wind) / L) + 1.0
        v = optimize.brentq(surplus, -most, most, xtol=1e-14, rtol=1e-14)
        ctx.save_for_backward(relative=u - v, d=d, L=L, v=v)
        return pb.asarray(np.array(v))

    @piston_airflow.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        push = 2 * s.d * s.relative
        scale = g.item() / (push.sum() + 2 * s.L * abs(s.v))
        return {
            "speed": pb.asarray(scale * push),
            "drag": pb.asarray(scale * s.relative * np.abs(s.relative)),
            "loss": -scale * s.v * abs(s.v),
        }

    return piston_airflow


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(10, 220, 6)), t(rng.uniform(15, 98, 6)), t(rng.uniform(0.05, 1.8, 6))),
        {"water": np.array([0, 2, 1, 4, 3, 0])},
    )
)
def rock_mass_rating():
    STRENGTH = np.array([[0, 5, 25, 50, 100, 250.0], [0, 1, 3, 6, 10, 15]])
    QUALITY = np.array([[0, 25, 50, 75, 90, 100.0], [3, 4, 9, 14, 18, 20]])
    SPACING = np.array([[0, 0.06, 0.2, 0.6, 2.0], [5, 6, 9, 13, 20]])
    WATER = np.array([15.0, 10.0, 7.0, 4.0, 0.0])

    def slope(x, table):
        knots, values = table
        k = np.searchsorted(knots, x, side="right")
        steep = np.concatenate([[0.0], np.diff(values) / np.diff(knots), [0.0]])
        return steep[k]

    @pb.autograd_function
    def rock_mass_rating(ctx, strength, rqd, spacing, water, joints=20.0):
        """Rating (Bieniawski) of n stretches of rock.

        strength: MPa; rqd: percent; spacing of the joints: m, all (n,); water: classes 0 (dry) to
        4 (flowing), integers; joints: points for the condition of the joints. Beyond the ends of
        the tables a rating stays what it is there.
        """
        given = (strength.numpy(), rqd.numpy(), spacing.numpy())
        total = joints + WATER[water]
        for x, table in zip(given, (STRENGTH, QUALITY, SPACING), strict=True):
            total = total + np.interp(x, *table)
        ctx.given = given
        return pb.asarray(total)

    @rock_mass_rating.backward
    @pb.once_differentiable
    def _(ctx, g):
        tables = zip(ctx.given, (STRENGTH, QUALITY, SPACING), strict=True)
        by = [pb.asarray(g.numpy() * slope(x, table)) for x, table in tables]
        return (*by, None, None)

    return rock_mass_rating


@BOOK.right(
    lambda rng: (
        (
            t(np.array([4.0, 35.0, 72.0, 90.0]) + rng.random(4)),
            t(rng.uniform(3, 15, 4)),
            t(rng.uniform(1, 3, 4)),
            t(rng.uniform(1, 4, 4)),
        ),
        {"water": 0.66},
    )
)
def roof_support_pressure():
    class RoofPressure(pb.Function):
        """Roof pressure in kPa by Barton's Q; the quality counts as 10 where it is less."""

        @staticmethod
        def forward(ctx, rqd, sets, roughness, alteration, water=1.0, stress=1.0):
            quality, Jn = np.maximum(rqd.numpy(), 10.0), sets.numpy()
            Jr, Ja = roughness.numpy(), alteration.numpy()
            Q = quality / Jn * Jr / Ja * water / stress
            P = 200 / Jr * Q ** (-1 / 3)
            ctx.save_for_backward(rqd=rqd.numpy(), Jn=Jn, Jr=Jr, Ja=Ja, P=P)
            return pb.asarray(P.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            rqd, Jn, Jr, Ja, P = ctx.saved_variables
            third = grad_output.numpy() * P / 3
            return {
                "rqd": pb.asarray(np.where(rqd > 10, -third / np.maximum(rqd, 10.0), 0.0)),
                "sets": pb.asarray(third / Jn),
                "roughness": pb.asarray(-4 * third / Jr),
                "alteration": pb.asarray(third / Ja),
            }

    return RoofPressure.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(8000, 12000, 7)), t(np.array(3000.0)), t(np.array(0.6))),
        {"build": 35.0},
    )
)
def ring_times():
    @pb.autograd_function
    def ring_times(ctx, thrust, threshold, learning, build=30.0, rpm=2.0, width=1500.0):
        excess = thrust.numpy() - threshold.item()
        if (excess <= 0).any():
            raise ValueError("the machine does not bore below the threshold")
        boring = width * 900.0 / (excess * rpm)
        number = np.arange(1, len(excess) + 1)
        building = build * (1 + number ** -learning.item())
        ctx.save_for_backward(excess=excess, boring=boring, number=number)
        ctx.build, ctx.learning = build, learning.item()
        return pb.asarray(np.cumsum(boring + building))

    @ring_times.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        later = np.cumsum(g.numpy()[::-1])[::-1]
        by_thrust = -later * s.boring / s.excess
        slower = ctx.build * s.number**-ctx.learning * np.log(s.number)
        return {
            "thrust": pb.asarray(by_thrust),
            "threshold": -by_thrust.sum(),
            "learning": -(later @ slower),
        }

    return ring_times


@BOOK.right(lambda rng: ((t(rng.uniform(30, 70, 9)), t(np.array(0.11))), {"worn": 4.0}))
def cutter_wear():
    @pb.autograd_function
    def cutter_wear(ctx, rolled, rate, worn=0.0, limit=20.0):
        """Wear in mm of a disc after each ring; one past its limit is changed. Also counts them."""
        km, wear, changed = rolled.numpy(), worn, []
        out = np.empty(len(km))
        for k, distance in enumerate(km):
            changed.append(wear > limit)
            if changed[-1]:
                wear = 0.0
            wear += rate.item() * distance
            out[k] = wear
        ctx.save_for_backward(km=km, rate=rate.item(), changed=changed)
        return pb.asarray(out), pb.asarray(np.array(sum(changed)))

    @cutter_wear.backward
    @pb.once_differentiable
    def _(ctx, g_wear, g_changes):
        km, rate, changed = ctx.saved_variables
        carried, by_rate, by_km = 0.0, 0.0, np.zeros_like(km)
        for k in reversed(range(len(km))):
            carried += g_wear.numpy()[k]
            by_km[k] = carried * rate
            by_rate += carried * km[k]
            if changed[k]:
                carried = 0.0
        return {"rolled": pb.asarray(by_km), "rate": by_rate}

    return cutter_wear


def ring_ratios(E, radius, thickness, segments, nu):
    inertia = thickness**3 / 12
    if segments is not None and segments > 4:
        inertia *= (4 / segments) ** 2
    relative = E * radius * (1 - 0.2**2) / (34e3 * (1 - nu**2))
    return relative / thickness, relative * radius**2 / inertia


@BOOK.right(
    lambda rng: (
        (t(np.array(420.0)), t(np.array(0.6)), t(np.array(85.0))),
        {"angles": rng.uniform(0, 2 * np.pi, 5), "segments": 7},
    )
)
def lining_forces():
    @pb.autograd_function
    def lining_forces(
        ctx, stress, ratio, modulus, angles, radius=4.4, thickness=0.35, segments=None, nu=0.35
    ):
        """Thrust (kN/m) and moment (kNm/m) in a lining that may slip (Einstein and Schwartz).

        stress: vertical, kPa; ratio: of the horizontal stress to it; modulus of the ground: MPa;
        angles: from the springline; segments: of the ring, None for one cast in place.
        """
        p, k, E = stress.item(), ratio.item(), modulus.item()
        C, F = ring_ratios(E, radius, thickness, segments, nu)
        both, below = C * F * (1 - nu), 2 * F * (1 - nu) + 6 * (5 - 6 * nu)
        total = C + F + both
        round_part = 1 - both / total
        oval_part = 1 - 2 * (F + 6) * (1 - nu) / below
        wave = np.cos(2 * angles)
        ctx.save_for_backward(p=p, k=k, round_part=round_part, oval_part=oval_part, wave=wave)
        ctx.by_E = (
            -both * (C + F) / (E * total**2),
            -2 * (1 - nu) * (below - 2 * (F + 6) * (1 - nu)) / below**2 * F / E,
        )
        ctx.radius = radius
        oval = (1 - k) * oval_part * wave
        half = p * radius / 2
        return pb.asarray(half * ((1 + k) * round_part + oval)), pb.asarray(half * radius * oval)

    @lining_forces.backward
    @pb.once_differentiable
    def _(ctx, g_thrust, g_moment):
        s = ctx.saved_variables
        half = ctx.radius / 2
        by_round = half * g_thrust.numpy().sum()
        by_oval = half * (g_thrust.numpy() + ctx.radius * g_moment.numpy()) @ s.wave
        up, across = 1 + s.k, 1 - s.k
        round_E, oval_E = ctx.by_E
        return {
            "stress": by_round * up * s.round_part + by_oval * across * s.oval_part,
            "ratio": s.p * (by_round * s.round_part - by_oval * s.oval_part),
            "modulus": s.p * (by_round * up * round_E + by_oval * across * oval_E),
        }

    return lining_forces


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(25, 45, 8)), t(rng.normal(0, 2, 2))),
        {"keys": rng.integers(0, 16, 8)},
    )
)
def universal_rings():
    @pb.autograd_function
    def universal_rings(ctx, taper, start, keys, positions=16, width=1500.0, diameter=9000.0):
        """Axis (n, 2) in mm behind tapered rings; keys: where each ring's key lies, an integer."""
        angle = 2 * np.pi * np.asarray(keys) / positions
        turn = np.stack([np.cos(angle), np.sin(angle)], axis=1) / diameter
        heading = start.numpy() / 1000 + np.cumsum(taper.numpy()[:, None] * turn, axis=0)
        ctx.turn, ctx.width = turn, width
        return pb.asarray(width * np.cumsum(heading, axis=0))

    @universal_rings.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_heading = ctx.width * np.cumsum(g.numpy()[::-1], axis=0)[::-1]
        by_turn = np.cumsum(by_heading[::-1], axis=0)[::-1]
        return (
            pb.asarray((by_turn * ctx.turn).sum(axis=1)),
            pb.asarray(by_heading.sum(axis=0) / 1000),
            None,
            None,
            None,
            None,
        )

    return universal_rings


@BOOK.right(
    lambda rng: (
        (t(np.array([5.0, 20.0, 60.0, 150.0]) + rng.random(4)), t(rng.uniform(5, 8, 4))),
        {"grade": 3.5},
    )
)
def smoke_critical_velocity():
    def forward(ctx, heat, height, grade=0.0):
        Q, H = heat.numpy(), height.numpy()
        if (Q <= 0).any() or (H <= 0).any():
            raise ValueError("heat and height must be positive")
        star = 1000 * Q / (1.2 * 1.005 * 293 * np.sqrt(9.81) * H**2.5)
        small = star <= 0.2
        downhill = 1 + 0.0374 * max(grade, 0.0) ** 0.8
        v = downhill * 0.4 * np.sqrt(9.81 * H) * np.where(small, np.cbrt(star / 0.2), 1.0)
        ctx.save_for_backward(Q=Q, H=H, small=small, v=v)
        return pb.asarray(v.copy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        Q, H, small, v = ctx.saved_variables
        flow = grad_output.numpy() * v
        by_heat = np.where(small, flow / (3 * Q), 0.0)
        by_height = flow / H * np.where(small, 0.5 - 2.5 / 3, 0.5)
        return {"heat": pb.asarray(by_heat), "height": pb.asarray(by_height)}

    return pb.autograd_function(forward, backward, name="smoke_critical_velocity")


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 800, 14)), t(np.array(0.85))),
        {"length": 500.0, "dt": 0.7},
    )
)
def portal_echoes():
    @pb.autograd_function
    def portal_echoes(ctx, pressure, reflection, length=1000.0, dt=0.1, sound=340.0):
        """Pressure in Pa with the echoes that come back from the portals, the sign reversed."""
        r, y = reflection.item(), pressure.numpy().copy()
        delay = max(1, round(2 * length / sound / dt))
        for k in range(delay, len(y)):
            y[k] -= r * y[k - delay]
        ctx.save_for_backward(r=r, y=y, delay=delay)
        return pb.asarray(y.copy())

    @portal_echoes.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        r, y, delay = ctx.saved_variables
        flow, by_r = grad_output.numpy().copy(), 0.0
        for k in range(len(y) - 1, delay - 1, -1):
            by_r -= flow[k] * y[k - delay]
            flow[k - delay] -= r * flow[k]
        return {"pressure": pb.asarray(flow), "reflection": by_r}

    return portal_echoes


@BOOK.right(lambda rng: ((t(rng.uniform(4, 9, 9)), t(rng.uniform(5, 8, 9))), {}))
def grout_backlog():
    @pb.autograd_function
    def grout_backlog(ctx, demand, capacity):
        injected, backlog, short = np.zeros(len(demand)), 0.0, []
        for k, (need, most) in enumerate(zip(demand.numpy(), capacity.numpy(), strict=True)):
            waiting = backlog + need
            short.append(waiting > most)
            injected[k] = most if short[-1] else waiting
            backlog = waiting - injected[k]
        ctx.short = short
        return pb.asarray(injected), pb.asarray(np.array(backlog))

    @grout_backlog.backward
    @pb.once_differentiable
    def _(ctx, g_injected, g_backlog):
        gn, carried = g_injected.numpy(), g_backlog.item()
        by_demand, by_capacity = np.zeros_like(gn), np.zeros_like(gn)
        for k in reversed(range(len(gn))):
            if ctx.short[k]:
                by_capacity[k] = gn[k] - carried
            else:
                carried = gn[k]
            by_demand[k] = carried
        return {"demand": pb.asarray(by_demand), "capacity": pb.asarray(by_capacity)}

    return grout_backlog


OFFSETS = np.array([-16.0, -9.0, -4.0, 0.5, 5.0, 11.0, 17.0])


@BOOK.right(
    lambda rng: (
        (t(14 * np.exp(-(OFFSETS**2) / 180) * rng.uniform(0.85, 1.15, 7)),),
        {"offsets": OFFSETS},
    )
)
def trough_fit():
    @pb.autograd_function
    def trough_fit(ctx, settlement, offsets, power=2.0):
        """Largest settlement and width of the Gaussian curve that fits settlements: (n,) in mm.

        The logarithms are fitted by least squares; a reading weighs as its given power (0: all
        alike). Raises ValueError where the readings do not fall off to the sides.
        """
        s = settlement.numpy()
        if (s <= 0).any():
            raise ValueError("settlements must be positive")
        X = np.stack([np.ones_like(offsets), offsets**2], axis=1)
        w = s**power
        normal = X.T @ (w[:, None] * X)
        top, fall = beta = np.linalg.solve(normal, X.T @ (w * np.log(s)))
        if fall >= 0:
            raise ValueError("the readings do not fall off to the sides")
        most, width = np.exp(top), (-2 * fall) ** -0.5
        by_log = w / s + power * w / s * (np.log(s) - X @ beta)
        ctx.save_for_backward(X=X, normal=normal, by_log=by_log, most=most, width=width)
        return pb.asarray(np.array(most)), pb.asarray(np.array(width))

    @trough_fit.backward
    @pb.once_differentiable
    def _(ctx, g_most, g_width):
        s = ctx.saved_variables
        by_beta = np.array([g_most.item() * s.most, g_width.item() * s.width**3])
        return {"settlement": pb.asarray(s.X @ np.linalg.solve(s.normal, by_beta) * s.by_log)}

    return trough_fit


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(0.8, 2.5, 8)),
            t(rng.uniform(40, 150, 3)),
            t(np.array(700.0)),
            t(np.array(1.6)),
        ),
        {"delays": np.array([0, 1, 1, 2, 3, 3, 3, 5])},
    )
)
def blast_vibration():
    @pb.autograd_function
    def blast_vibration(ctx, charges, distance, site, decay, delays):
        """Peak velocities in mm/s; charges in kg of one delay number count at once."""
        fired = np.bincount(delays, weights=charges.numpy())
        worst = int(fired.argmax())
        scaled = distance.numpy() / np.sqrt(fired[worst])
        peak = site.item() * scaled ** -decay.item()
        ctx.save_for_backward(distance=distance, scaled=scaled, peak=peak)
        ctx.site, ctx.decay = site.item(), decay.item()
        ctx.share = (np.asarray(delays) == worst) / fired[worst]
        return pb.asarray(peak.copy())

    @blast_vibration.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        flow = g.numpy() * s.peak
        return {
            "charges": pb.asarray(flow.sum() * ctx.decay / 2 * ctx.share),
            "distance": pb.asarray(-ctx.decay * flow / s.distance.numpy()),
            "site": (g.numpy() * s.scaled**-ctx.decay).sum(),
            "decay": -(flow @ np.log(s.scaled)),
        }

    return blast_vibration


@BOOK.right(lambda rng: ((t(np.array(19.5)), t(np.array(6.0)), t(np.array(27.0))), {}))
def face_support():
    @pb.autograd_function
    def face_support(ctx, weight, cohesion, friction, height=9.5, steps=77):
        """Force per m of width that holds the face: the worst of the wedges of 46 to 84 degrees."""
        phi = np.radians(friction.item())
        if not 0 <= friction.item() < 45:
            raise ValueError("friction must be from 0 to 45 degrees")
        theta = np.radians(np.linspace(46, 84, steps))
        heavy = height**2 / 2 / np.tan(theta)
        held = height * np.cos(phi) / (np.sin(theta) * np.cos(theta - phi))
        force = weight.item() * heavy * np.tan(theta - phi) - cohesion.item() * held
        k = force.argmax()
        across = np.cos(theta[k] - phi) ** -2
        by_phi = (cohesion.item() * height - weight.item() * heavy[k]) * across
        slopes = np.array([heavy[k] * np.tan(theta[k] - phi), -held[k], np.radians(by_phi)])
        ctx.slopes = slopes if force[k] > 0 else np.zeros(3)
        return pb.asarray(np.array(max(force[k], 0.0)))

    @face_support.backward
    @pb.once_differentiable
    def _(ctx, g):
        return dict(zip(("weight", "cohesion", "friction"), g.item() * ctx.slopes, strict=True))

    return face_support
