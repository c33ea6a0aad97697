"""Ballistics: drag, trajectories, wind, stability, dispersion, propellants, penetration."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import FACTOR, MISSING, Book, at, mends, t

BOOK = Book("ballistics")
G = 9.80665

MACH = np.array([0.0, 0.7, 0.9, 0.95, 1.0, 1.05, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0])
G7 = np.array([0.12, 0.12, 0.146, 0.21, 0.38, 0.404, 0.388, 0.344, 0.298, 0.27, 0.242, 0.196])


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(760, 900, 4)), t(rng.uniform(2.2e-3, 3.4e-3, 4))), {"steps": 12}),
    "drag depends on the Mach number: the term with the slope of the table is missing",
    MISSING,
    r"\btable\b|\binterpolat|\bmach\b|product rule|chain rule|\bslope\b|drag coefficient",
    mends("s.slopes[k] *", "* s.slopes[k]", "slopes[k]", "np.diff(G7)", "steep[k]"),
)
def downrange_speed():
    @pb.autograd_function
    def downrange_speed(ctx, muzzle, retardation, steps=20, dx=25.0, sound=340.3):
        """Speed at each step along a flat line of fire; drag from the G7 table.

        muzzle: (shots,) in m/s; retardation: (shots,) in 1/m, of a drag coefficient of 1;
        returns (steps, shots).
        """
        v, c = muzzle.numpy().copy(), retardation.numpy()
        speeds, drags = [v], []
        for _ in range(steps):
            drags.append(np.interp(speeds[-1] / sound, MACH, G7))
            speeds.append(speeds[-1] * (1 - dx * c * drags[-1]))
        ctx.save_for_backward(c=c)
        ctx.speeds, ctx.drags, ctx.dx = speeds, drags, dx
        return pb.asarray(np.array(speeds[1:]).reshape(steps, len(v)))

    @downrange_speed.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, c = grad_output.numpy(), ctx.saved_variables.c
        to_speed, by_c = np.zeros_like(c), np.zeros_like(c)
        for k in reversed(range(len(gn))):
            to_speed = to_speed + gn[k]
            by_c -= to_speed * ctx.dx * ctx.drags[k] * ctx.speeds[k]
            to_speed = to_speed * (1 - ctx.dx * c * ctx.drags[k])
        return {"muzzle": pb.asarray(to_speed), "retardation": pb.asarray(by_c)}

    return downrange_speed


def shots(rng):
    return t(rng.uniform(220, 260, 4)), t(rng.uniform(2500, 4300, 4)), t(rng.uniform(-80, 120, 4))


@BOOK.wrong(
    lambda rng: (shots(rng), {}),
    "the high arc takes the other root, but backward has the sign of the low arc's",
    at("high"),
    r"\bsigns?\b|\broots?\b|\barc\b|\bbranch\b|plus.minus|lofted|steep|negat|opposite",
    mends("ctx.sign", "s.sign", "sign * by_root", "by_root * sign"),
    where="high is True",
    shows=lambda rng: (shots(rng), {"high": True}),
)
def launch_angle():
    @pb.autograd_function
    def launch_angle(ctx, speed, distance, height, high=False):
        """Elevation in rad with which a shot in vacuum hits a target; high: by the upper arc."""
        v2, x, y = speed.numpy() ** 2, distance.numpy(), height.numpy()
        inner = v2**2 - G * (G * x**2 + 2 * y * v2)
        if (inner <= 0).any():
            raise ValueError("the target is out of range")
        root = np.sqrt(inner)
        tangent = (v2 + root if high else v2 - root) / (G * x)
        ctx.save_for_backward(speed=speed, x=x, y=y, root=root, tangent=tangent)
        return pb.asarray(np.arctan(tangent))

    @launch_angle.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        v, x = s.speed.numpy(), s.x
        flow = grad_output.numpy() / (1 + s.tangent**2) / (G * x)
        by_root = -flow / s.root
        return {
            "speed": pb.asarray(2 * v * flow + by_root * 2 * v * (v**2 - G * s.y)),
            "distance": pb.asarray(-flow * G * s.tangent - by_root * G**2 * x),
            "height": pb.asarray(-by_root * G * v**2),
        }

    return launch_angle


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(140, 185, 3)),
            t(rng.uniform(0.27, 0.31, 3)),
            t(rng.uniform(1.2, 1.5, 3)),
            t(np.array([7.0, 8.0, 10.0])),
            t(rng.uniform(2500, 3100, 3)),
        ),
        {},
    ),
    "the correction for the speed is its cube root: the factor 1/3 is missing",
    FACTOR + r"|multipl|divided by",
    r"cube root|\bexponent\b|\bpower\b|1 ?/ ?3|\bthree\b|\b3(?:\.0+)?\b|third",
    mends("s.stability / 3", "/ (3 * ", "/ 3", "flow / (3 *", "1 / 3 *"),
)
def miller_stability():
    @pb.autograd_function
    def miller_stability(ctx, grains, calibre, length, twist, speed=None):
        d, L = calibre.numpy(), length.numpy()
        stability = 30 * grains.numpy() / (twist.numpy() ** 2 * L * (1 + (L / d) ** 2))
        if speed is not None:
            stability = stability * np.cbrt(speed.numpy() / 2800.0)
        ctx.save_for_backward(grains, twist, speed)
        ctx.d, ctx.L, ctx.stability = d, L, stability
        return pb.asarray(stability.copy())

    @miller_stability.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        grains, twist, speed = ctx.saved_variables
        flow = grad_output.numpy() * ctx.stability
        d, L = ctx.d, ctx.L
        slender = 2 * (L / d) ** 2 / (1 + (L / d) ** 2)
        return {
            "grains": pb.asarray(flow / grains.numpy()),
            "calibre": pb.asarray(flow * slender / d),
            "length": pb.asarray(-flow * (1 + slender) / L),
            "twist": pb.asarray(-2 * flow / twist.numpy()),
            "speed": None if speed is None else pb.asarray(flow / speed.numpy()),
        }

    return miller_stability


@BOOK.right(
    lambda rng: (
        (t(np.array([310.0, 240.0])), t(rng.uniform(-8, 8, 2)), t(np.array(6.5e-4))),
        {"steps": 30, "dt": 0.05},
    )
)
def point_mass_path():
    def forward(ctx, velocity, wind, drag, steps=100, dt=0.01):
        """Places: (steps, 2) of a shot from the origin, by semi-implicit Euler steps.

        velocity, wind: (2,) in m/s, the second component upwards; drag: () in 1/m.
        """
        v, w, k = velocity.numpy().copy(), wind.numpy(), drag.item()
        place, places, relative = np.zeros(2), np.empty((steps, 2)), np.empty((steps, 2))
        for i in range(steps):
            relative[i] = v - w
            v = v - dt * (k * np.hypot(*relative[i]) * relative[i] + np.array([0.0, G]))
            place = place + dt * v
            places[i] = place
        ctx.relative, ctx.k, ctx.dt = relative, k, dt
        return pb.asarray(places)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        gn, dt = grad_output.numpy(), ctx.dt
        to_place, to_speed, by_wind, by_drag = np.zeros(2), np.zeros(2), np.zeros(2), 0.0
        for i in reversed(range(len(gn))):
            to_place = to_place + gn[i]
            to_speed = to_speed + dt * to_place
            u = ctx.relative[i]
            size = np.hypot(*u)
            along = u * (u @ to_speed) / size if size > 0 else np.zeros(2)
            slowed = dt * ctx.k * (size * to_speed + along)
            by_drag -= dt * size * (u @ to_speed)
            by_wind += slowed
            to_speed = to_speed - slowed
        return {"velocity": pb.asarray(to_speed), "wind": pb.asarray(by_wind), "drag": by_drag}

    return pb.autograd_function(forward, backward, name="point_mass_path")


@BOOK.right(
    lambda rng: (
        (t(np.array([0.62, 2.21, 0.97, 4.6, 1.34, 1.02])), t(G7 * rng.uniform(0.9, 1.1, 12))),
        {},
    )
)
def drag_lookup():
    @pb.autograd_function
    def drag_lookup(ctx, mach, coefficients, knots=MACH):
        """Drag coefficients, linear between the knots and constant beyond them."""
        m, c = mach.numpy(), coefficients.numpy()
        cell = np.clip(np.searchsorted(knots, m, side="right") - 1, 0, len(knots) - 2)
        width = knots[cell + 1] - knots[cell]
        part = np.clip((m - knots[cell]) / width, 0.0, 1.0)
        ctx.inside = (m >= knots[0]) & (m < knots[-1])
        ctx.save_for_backward(cell=cell, part=part, slope=(c[cell + 1] - c[cell]) / width)
        ctx.coefficients = len(c)
        return pb.asarray((1 - part) * c[cell] + part * c[cell + 1])

    @drag_lookup.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_knot = np.zeros(ctx.coefficients)
        np.add.at(by_knot, s.cell, gn * (1 - s.part))
        np.add.at(by_knot, s.cell + 1, gn * s.part)
        return {
            "mach": pb.asarray(np.where(ctx.inside, gn * s.slope, 0.0)),
            "coefficients": pb.asarray(by_knot),
        }

    return drag_lookup


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(100, 900, 5)),
            t(rng.uniform(700, 950, 5)),
            t(np.array([8e-4, 1.1e-3, 2e-8, 0.0, 6e-4])),
        ),
        {},
    )
)
def flat_fire_time():
    def growth(z):
        near = np.abs(z) < 1e-4
        safe = np.where(near, 1.0, z)
        value = np.where(near, 1 + z / 2 + z**2 / 6, np.expm1(safe) / safe)
        exact = (safe * np.exp(safe) - np.expm1(safe)) / safe**2
        return value, np.where(near, 0.5 + z / 3 + z**2 / 8, exact)

    @pb.autograd_function
    def flat_fire_time(ctx, distance, speed, drag):
        """Time of flight where the speed falls exponentially; drag may be 0."""
        x, v, k = distance.numpy(), speed.numpy(), drag.numpy()
        value, slope = growth(k * x)
        ctx.save_for_backward(x=x, v=v, k=k, value=value, slope=slope)
        return pb.asarray(x / v * value)

    @flat_fire_time.backward
    @pb.once_differentiable
    def _(ctx, g):
        x, v, k, value, slope = ctx.saved_variables
        gn = g.numpy()
        return {
            # the slowness where the shot arrives
            "distance": pb.asarray(gn * (value + k * x * slope) / v),
            "speed": pb.asarray(-gn * x * value / v**2),
            "drag": pb.asarray(gn * x**2 * slope / v),
        }

    return flat_fire_time


@BOOK.right(
    lambda rng: (
        (t(np.array([3.0, -1.5, 4.2, 0.0])), t(np.array(840.0))),
        {"zones": [100.0, 150.0, 250.0, 300.0], "drag": 9e-4},
    )
)
def zoned_wind():
    @pb.autograd_function
    def zoned_wind(ctx, crosswind, speed, zones, drag=8e-4):
        """Deflection in m behind zones of known wind.

        crosswind: (zones,) in m/s; zones: their lengths in m, from the muzzle on; speed: ().
        """
        if drag <= 0:
            raise ValueError("drag must be positive")
        v, sideways, total = speed.item(), 0.0, 0.0
        ctx.zones, ctx.k, ctx.v = list(zones), drag, v
        for w, length in zip(crosswind.numpy(), zones, strict=True):
            total += (w * np.expm1(drag * length) / drag + (sideways - w) * length) / v
            sideways = w + (sideways - w) * np.exp(-drag * length)
            v *= np.exp(-drag * length)
        ctx.total, ctx.last = total, v
        return pb.asarray(np.asarray(total))

    @zoned_wind.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        g, k, v = grad_output.item(), ctx.k, ctx.last
        by_wind, to_sideways = np.zeros(len(ctx.zones)), 0.0
        for i in reversed(range(len(ctx.zones))):
            length = ctx.zones[i]
            kept = np.exp(-k * length)
            v /= kept
            by_wind[i] = to_sideways * (1 - kept) + g * (np.expm1(k * length) / k - length) / v
            to_sideways = to_sideways * kept + g * length / v
        return {"crosswind": pb.asarray(by_wind), "speed": -g * ctx.total / ctx.v}

    return zoned_wind


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 0.2, (4, 2))), t(np.array([0.14, 0.22]))),
        {"size": (0.45, 0.7)},
    )
)
def hit_probability():
    class HitProbability(pb.Function):
        @staticmethod
        def forward(ctx, aim, spread, size=(0.5, 0.5)):
            """Chance of hitting a plate of the given width and height at the origin.

            aim: (shots, 2) in m; spread: (2,) standard deviations in m.
            """
            s, half = spread.numpy(), np.asarray(size) / 2
            upper, lower = (half - aim.numpy()) / s, (-half - aim.numpy()) / s
            chance = special.ndtr(upper) - special.ndtr(lower)
            ctx.save_for_backward(upper=upper, lower=lower, chance=chance, s=s)
            return pb.asarray(chance.prod(axis=-1))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            upper, lower, chance, s = ctx.saved_variables
            bell = [np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) for z in (upper, lower)]
            flow = grad_output.numpy()[:, None] * chance[:, ::-1]
            by_aim = flow * (bell[1] - bell[0]) / s
            by_spread = flow * (lower * bell[1] - upper * bell[0]) / s
            return pb.asarray(by_aim), pb.asarray(by_spread.sum(axis=0)), None

    return HitProbability.apply


@BOOK.right(lambda rng: ((t(rng.normal(0, 12, (6, 2))),), {}))
def extreme_spread():
    @pb.autograd_function
    def extreme_spread(ctx, hits):
        # also the numbers of the two shots that lie farthest apart
        apart = hits.numpy()[:, None] - hits.numpy()
        distance = np.hypot(apart[..., 0], apart[..., 1])
        pair = np.unravel_index(distance.argmax(), distance.shape)
        ctx.pair, ctx.apart, ctx.spread = pair, apart[pair], distance[pair]
        ctx.n = len(distance)
        return pb.asarray(np.asarray(ctx.spread)), pb.asarray(np.array(pair))

    @extreme_spread.backward
    @pb.once_differentiable
    def _(ctx, g_spread, g_pair):
        by_hits = np.zeros((ctx.n, 2))
        if ctx.spread > 0:
            pull = g_spread.item() * ctx.apart / ctx.spread
            by_hits[ctx.pair[0]] += pull
            by_hits[ctx.pair[1]] -= pull
        return {"hits": pb.asarray(by_hits)}

    return extreme_spread


@BOOK.right(
    lambda rng: (
        (
            t(np.array(0.021 * rng.uniform(0.9, 1.1))),
            t(np.array(0.86)),
            t(np.array(290.0)),
        ),
        {"steps": 34, "dt": 0.1},
    )
)
def closed_bomb():
    def forward(ctx, rate, exponent, force, igniter=8.0, steps=50, dt=0.05):
        """Pressure in MPa by time step, of powder that burns in a closed vessel (Vieille's law).

        Parameters
        ----------
        rate, exponent : the burnt part grows by rate * pressure**exponent per ms, up to 1
        force : pressure in MPa that the whole charge adds
        igniter : pressure in MPa at the start
        """
        a, n, f = rate.item(), exponent.item(), force.item()
        burnt, pressure, grown, limited = 0.0, [igniter], [], []
        for _ in range(steps):
            grown.append(dt * a * pressure[-1] ** n)
            limited.append(burnt + grown[-1] >= 1)
            burnt = min(burnt + grown[-1], 1.0)
            pressure.append(igniter + f * burnt)
        ctx.pressure, ctx.grown, ctx.limited = pressure, grown, limited
        ctx.law, ctx.igniter = (a, n, f), igniter
        return pb.asarray(np.array(pressure[1:]))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        (a, n, f), gn = ctx.law, grad_output.numpy()
        by_a = by_n = by_f = to_burnt = 0.0
        for k in reversed(range(len(gn))):
            to_burnt += gn[k] * f
            by_f += gn[k] * (ctx.pressure[k + 1] - ctx.igniter) / f
            if ctx.limited[k]:
                to_burnt = 0.0
                continue
            p, step = ctx.pressure[k], ctx.grown[k]
            by_a += to_burnt * step / a
            by_n += to_burnt * step * np.log(p)
            by_pressure = to_burnt * step * n / p
            by_f += by_pressure * (p - ctx.igniter) / f
            to_burnt += by_pressure * f
        return {"rate": by_a, "exponent": by_n, "force": by_f}

    return pb.autograd_function(forward, backward, name="closed_bomb")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([820.0, 640.0, 905.0, 300.0, 710.0])),
            t(np.array([540.0, 655.0, 610.0, 480.0, 690.0])),
            t(np.array(2.2)),
        ),
        {"share": 0.92},
    )
)
def residual_speed():
    @pb.autograd_function
    def residual_speed(ctx, speed, limit, exponent, share=1.0):
        """Speed behind a plate (Lambert and Jonas); 0 below the ballistic limit."""
        v, low, p = speed.numpy(), limit.numpy(), exponent.item()
        if (low <= 0).any():
            raise ValueError("limits must be positive")
        through = v > low
        v = np.where(through, v, 2 * low)
        left = v**p - low**p
        out = np.where(through, share * left ** (1 / p), 0.0)
        ctx.save_for_backward(v=v, low=low, left=left, out=out)
        ctx.p = p
        return pb.asarray(out.copy())

    @residual_speed.backward
    @pb.once_differentiable
    def _(ctx, g):
        v, low, left, out = ctx.saved_variables
        p, flow = ctx.p, g.numpy() * out
        growth = (v**p * np.log(v) - low**p * np.log(low)) / left
        return {
            "speed": pb.asarray(flow * v ** (p - 1) / left),
            "limit": pb.asarray(-flow * low ** (p - 1) / left),
            "exponent": float((flow * (growth / p - np.log(left) / p**2)).sum()),
        }

    return residual_speed


@BOOK.right(
    lambda rng: ((t(np.array([0.0, 850.0, 4300.0, 12500.0, 10950.0])), t(np.array(14.0))), {})
)
def standard_air():
    GAS, LAPSE, TOP = 287.053, 0.0065, 11000.0

    @pb.autograd_function
    def standard_air(ctx, altitude, warmer):
        """Density in kg/m3 and speed of sound in m/s of an ICAO day, on which it is `warmer` K
        warmer than the standard at every altitude (at the standard's pressure); up to 20 km."""
        h = altitude.numpy()
        if (h > 20000).any():
            raise ValueError("the isothermal layer ends at 20 km")
        standard = 288.15 - LAPSE * np.minimum(h, TOP)
        pressure = 101325.0 * (standard / 288.15) ** (G / GAS / LAPSE)
        pressure *= np.exp(-G * np.maximum(h - TOP, 0) / (GAS * standard))
        real = standard + warmer.item()
        density, sound = pressure / (GAS * real), np.sqrt(1.4 * GAS * real)
        ctx.save_for_backward(h, standard, real, density, sound)
        return pb.asarray(density.copy()), pb.asarray(sound.copy())

    @standard_air.backward
    @pb.once_differentiable
    def _(ctx, g_density, g_sound):
        h, standard, real, density, sound = ctx.saved_variables
        gd, gs = g_density.numpy() * density, g_sound.numpy() * sound
        by_real = gs / (2 * real) - gd / real
        by_altitude = -gd * G / (GAS * standard) - by_real * LAPSE * (h < TOP)
        return pb.asarray(by_altitude), float(by_real.sum())

    return standard_air


@BOOK.right(
    lambda rng: (
        (t(790 + rng.normal(0, 4, 9)), t(rng.uniform(0.5, 2.0, 9))),
        {"temperature": np.repeat([-15.0, 10.0, 35.0], 3)},
    )
)
def powder_sensitivity():
    @pb.autograd_function
    def powder_sensitivity(ctx, speeds, weights, temperature, reference=15.0):
        """Weighted line through the speeds: speed at the reference, and m/s per degree: (2,)."""
        X = np.column_stack([np.ones(len(temperature)), temperature - reference])
        w, v = weights.numpy(), speeds.numpy()
        normal = X.T @ (w[:, None] * X)
        line = np.linalg.solve(normal, X.T @ (w * v))
        ctx.save_for_backward(X=X, w=w, normal=normal, rest=v - X @ line)
        return pb.asarray(line)

    @powder_sensitivity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        X, w, normal, rest = ctx.saved_variables
        pull = X @ np.linalg.solve(normal, grad_output.numpy())
        return {"speeds": pb.asarray(w * pull), "weights": pb.asarray(pull * rest)}

    return powder_sensitivity


@BOOK.right(
    lambda rng: (
        (t(np.array([0.314, 1.436, 4.07, 11.8])), t(np.array([200.0, 400.0, 600.0, 1000.0]))),
        {"travel": 90},
    )
)
def turret_clicks():
    @pb.autograd_function
    def turret_clicks(ctx, drop, distance, click=0.1, travel=None):
        # mrad to hold over when the turret has done what whole clicks can do; and the clicks
        y, x = drop.numpy(), distance.numpy()
        clicks = np.rint(1000 * np.arctan2(y, x) / click).astype(int)
        if travel is not None:
            clicks = np.clip(clicks, -travel, travel)
        ctx.save_for_backward(y=y, x=x)
        return pb.asarray(1000 * np.arctan2(y, x) - clicks * click), pb.asarray(clicks)

    @turret_clicks.backward
    @pb.once_differentiable
    def _(ctx, g_hold, g_clicks):
        y, x = ctx.saved_variables
        flow = 1000 * g_hold.numpy() / (x**2 + y**2)
        return {"drop": pb.asarray(flow * x), "distance": pb.asarray(-flow * y)}

    return turret_clicks


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(760, 900, 3)),
            t(np.array([100.0, 300.0, 550.0])),
            t(np.array(0.045)),
        ),
        {"drag": 1e-3},
    )
)
def zero_elevation():
    def fall(x, v, k):
        """Return how far a level shot falls, and the slope of its path (downwards)."""
        drop = G / (4 * k**2 * v**2) * (np.expm1(2 * k * x) - 2 * k * x)
        return drop, G / (2 * k * v**2) * np.expm1(2 * k * x)

    @pb.autograd_function
    def zero_elevation(ctx, speed, distance, sight, drag=8e-4):
        """Elevation of the bore in rad which brings shots onto the line of sight.

        speed, distance: (n,) in m/s and m; sight: () its height over the bore in m.
        """
        if drag <= 0:
            raise ValueError("drag must be positive")
        v, x = speed.numpy(), distance.numpy()
        drop, steep = fall(x, v, drag)
        tangent = (sight.item() + drop) / x
        for _ in range(50):
            miss = x * tangent - drop * (1 + tangent**2) - sight.item()
            lever = x - 2 * drop * tangent
            if (lever <= 0).any():
                raise ValueError("the target is out of range")
            step = miss / lever
            tangent = tangent - step
            if np.abs(step).max() < 1e-15:
                break
        ctx.save_for_backward(v, drop, steep, tangent, x - 2 * drop * tangent)
        return pb.asarray(np.arctan(tangent))

    @zero_elevation.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        v, drop, steep, tangent, lever = ctx.saved_variables
        longer = 1 + tangent**2
        flow = grad_output.numpy() / longer / lever
        return {
            "speed": pb.asarray(-2 * flow * longer * drop / v),
            "distance": pb.asarray(flow * (longer * steep - tangent)),
            "sight": float(flow.sum()),
        }

    return zero_elevation
