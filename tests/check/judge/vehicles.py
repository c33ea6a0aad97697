"""Vehicles: tyres, steering, road load, engine maps, suspension, gears, following, dampers."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import CONJUGATE, FLOAT32, SIGN, SWAPPED, Book, at, mends, t

BOOK = Book("vehicles")


def sliding(**settings):
    def given(rng):
        return (t(rng.uniform(-0.3, 0.3, 7)), t(np.array(9.5)), t(np.array(3.2))), settings

    return given


@BOOK.wrong(
    sliding(),
    "backward leaves out the curvature: the inner slope is 1 only where curvature is 0",
    at("curvature"),
    r"\bcurvature\b.{0,40}(?:ignored|not used|left out|other than|not 0|zero|missing)",
    r"chain rule|inner (?:slope|derivative|function)|\bE\b.{0,20}(?:term|ignored|missing)",
    mends(
        "1 - ctx.curvature",
        "ctx.curvature * (1 -",
        "ctx.curvature * s.x",
        "1 / (1 + s.x**2)",
        "ctx.curvature / (1",
        "(1 + s.x**2)",
        "bent_slope",
    ),
    where="curvature is not 0",
    shows=sliding(curvature=-0.8, shape=1.5),
)
def magic_formula():
    @pb.autograd_function
    def magic_formula(ctx, slip, stiffness, peak, shape=1.65, curvature=0.0):
        """Force of a tyre at slip: (n,), by Pacejka's formula without shifts."""
        x = stiffness.item() * slip.numpy()
        bent = x - curvature * (x - np.arctan(x))
        angle = shape * np.arctan(bent)
        ctx.save_for_backward(slip=slip, x=x, bent=bent, angle=angle)
        ctx.stiffness, ctx.peak = stiffness.item(), peak.item()
        ctx.shape = shape
        ctx.curvature = curvature
        return pb.asarray(peak.item() * np.sin(angle))

    @magic_formula.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_x = gn * ctx.peak * np.cos(s.angle) * ctx.shape / (1 + s.bent**2)
        return {
            "slip": pb.asarray(by_x * ctx.stiffness),
            "stiffness": by_x @ s.slip.numpy(),
            "peak": gn @ np.sin(s.angle),
        }

    return magic_formula


@BOOK.wrong(
    lambda rng: (
        (t(0.05 * np.sin(np.arange(8)) + 0.01 * rng.normal(size=8)), t(60.0), t(75.0)),
        {"speed": 22.0},
    ),
    "the rear stiffness keeps one step's gradient, which is overwritten instead of accumulated",
    r"accumul|overwr|\bassign|\bonly (?:the |one |a )?(?:last|first|one|single)|one step's",
    r"(?:all|every|other|earlier|later|remaining) (?:the )?(?:time )?steps|\bsum(?:med)? over",
    mends("by_rear +=", "by_rear = by_rear +", "by_rear = by_rear -", "by_rear -="),
)
def yaw_response():
    @pb.autograd_function
    def yaw_response(ctx, steer, front, rear, speed=20.0, turning=0.1, dt=0.02):
        """Yaw rate of a single track model, steered by steer: (n,); stiffness in kN/rad.

        turning: yaw rate at the start.
        """
        mass, inertia, a, b = 1.4, 2.1, 1.2, 1.5
        v, r = 0.0, turning
        slips, rate = [], np.empty(len(steer))
        for k, angle in enumerate(steer.numpy()):
            ahead, behind = angle - (v + a * r) / speed, -(v - b * r) / speed
            slips.append((ahead, behind))
            Ff, Fr = front.item() * ahead, rear.item() * behind
            v = v + dt * ((Ff + Fr) / mass - speed * r)
            r = r + dt * (a * Ff - b * Fr) / inertia
            rate[k] = r
        ctx.slips, ctx.speed, ctx.dt = slips, speed, dt
        ctx.car = mass, inertia, a, b
        ctx.front, ctx.rear = front.item(), rear.item()
        return pb.asarray(rate)

    @yaw_response.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        mass, inertia, a, b = ctx.car
        gn, grad_steer = grad_output.numpy(), np.zeros(len(ctx.slips))
        to_v = to_r = by_front = by_rear = 0.0
        for k in reversed(range(len(gn))):
            ahead, behind = ctx.slips[k]
            to_r += gn[k]
            to_Ff = ctx.dt * (to_v / mass + a * to_r / inertia)
            to_Fr = ctx.dt * (to_v / mass - b * to_r / inertia)
            by_front += to_Ff * ahead
            by_rear = to_Fr * behind
            grad_steer[k] = to_Ff * ctx.front
            through = to_Fr * ctx.rear
            to_r += -ctx.dt * ctx.speed * to_v - (a * grad_steer[k] - b * through) / ctx.speed
            to_v -= (grad_steer[k] + through) / ctx.speed
        return {"steer": pb.asarray(grad_steer), "front": by_front, "rear": by_rear}

    return yaw_response


def driving(wind):
    def given(rng):
        args = (t(rng.uniform(2, 12, 6)), t(np.array(1300.0)), t(np.array(0.66)))
        return args, {"grade": rng.uniform(-0.04, 0.06, 6), "wind": wind}

    return given


@BOOK.wrong(
    driving(3.0),
    "where the wind from behind is faster than the vehicle, the drag's slope has the wrong sign",
    SIGN,
    r"tail.?wind|from behind|\babs(?:olute)?\b|\bnegative\b|head.?wind|below (?:zero|0)|\babs\(",
    at("wind"),
    mends("np.abs(s.air)", "abs(s.air)", "np.fabs(s.air)", "np.sign(s.air)"),
    where="air speed below zero",
    shows=driving(-16.0),
)
def road_load():
    @pb.autograd_function
    def road_load(ctx, speed, mass, drag_area, grade, wind=0.0, rolling=0.011, density=1.2):
        """Power in W to hold a speed: (n,) on a grade: (n,); wind > 0 blows from ahead."""
        v, air = speed.numpy(), speed.numpy() + wind
        slope = np.arctan(grade)
        weight = 9.81 * (np.sin(slope) + rolling * np.cos(slope))
        pressure = 0.5 * density * air * np.abs(air)
        force = mass.item() * weight + drag_area.item() * pressure
        ctx.save_for_backward(v=v, air=air, weight=weight, pressure=pressure, force=force)
        ctx.density, ctx.drag_area = density, drag_area.item()
        return pb.asarray(force * v)

    @road_load.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_force = gn * s.v
        stiffer = ctx.density * ctx.drag_area * s.air
        return {
            "speed": pb.asarray(gn * s.force + by_force * stiffer),
            "mass": by_force @ s.weight,
            "drag_area": by_force @ s.pressure,
        }

    return road_load


SPEEDS = np.array([800.0, 1500.0, 2500.0, 4000.0])
TORQUES = np.array([0.0, 60.0, 140.0])


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(900, 3900, 6)),
            t(rng.uniform(5, 135, 6)),
            t(1 + SPEEDS[:, None] / 1e3 + TORQUES / 20 + rng.random((4, 3))),
        ),
        {},
    ),
    "the slopes along speed and along torque are swapped",
    SWAPPED + r"|mixed up|the other's|confus",
    r"along (?:the )?(?:speed|torque|wrong)|rows? (?:and|for) columns?|wrong (?:axis|direction)",
    mends('"speed": pb.asarray(gn * along_rows', '"torque": pb.asarray(gn * along_columns'),
)
def fuel_rate():
    def cell(grid, x):
        i = np.clip(np.searchsorted(grid, x) - 1, 0, len(grid) - 2)
        step = grid[i + 1] - grid[i]
        return i, (x - grid[i]) / step, step

    @pb.autograd_function
    def fuel_rate(ctx, speed, torque, table):
        """Fuel in g/s at engine speeds and torques, bilinear in a table: (speeds, torques)."""
        i, u, du = cell(SPEEDS, speed.numpy())
        j, w, dw = cell(TORQUES, torque.numpy())
        T = table.numpy()
        low = T[i, j] + w * (T[i, j + 1] - T[i, j])
        high = T[i + 1, j] + w * (T[i + 1, j + 1] - T[i + 1, j])
        ctx.save_for_backward(table=T, i=i, j=j, u=u, w=w, du=du, dw=dw)
        return pb.asarray(low + u * (high - low))

    @fuel_rate.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        T, i, j, u, w, du, dw = ctx.saved_variables
        gn, by_table = grad_output.numpy(), np.zeros_like(T)
        down = (T[i + 1, j] - T[i, j], T[i + 1, j + 1] - T[i, j + 1])
        right = (T[i, j + 1] - T[i, j], T[i + 1, j + 1] - T[i + 1, j])
        along_rows = ((1 - w) * down[0] + w * down[1]) / du
        along_columns = ((1 - u) * right[0] + u * right[1]) / dw
        for di, dj in ((0, 0), (0, 1), (1, 0), (1, 1)):
            share = (u if di else 1 - u) * (w if dj else 1 - w)
            np.add.at(by_table, (i + di, j + dj), gn * share)
        return {
            "speed": pb.asarray(gn * along_columns),
            "torque": pb.asarray(gn * along_rows),
            "table": pb.asarray(by_table),
        }

    return fuel_rate


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(18, 24)), t(rng.uniform(1.2, 1.8)), t(rng.uniform(150, 200))),
        {"frequency": np.array([0.6, 1.2, 2.5, 6.0, 11.0])},
    ),
    "the adjoint system is solved with the transpose, which lacks the conjugate",
    CONJUGATE,
    r"hermitian|\badjoint\b",
    mends(".conj()", "np.conj(", "np.conjugate(", ".conjugate()"),
)
def ride_transmissibility():
    @pb.autograd_function
    def ride_transmissibility(ctx, spring, damper, tyre, frequency, body=0.32, wheel=0.04):
        """Motion of the body by motion of the road, of a quarter car; kN/m, kNs/m, t, Hz."""
        omega = 2 * np.pi * frequency
        link = spring.item() + 1j * omega * damper.item()
        Z = np.empty((len(omega), 2, 2), complex)
        Z[:, 0, 0] = link - omega**2 * body
        Z[:, 1, 1] = link + tyre.item() - omega**2 * wheel
        Z[:, 0, 1] = Z[:, 1, 0] = -link
        road = np.array([0.0, tyre.item()])
        x = np.linalg.solve(Z, np.broadcast_to(road[:, None], (len(omega), 2, 1)))[..., 0]
        ctx.save_for_backward(omega=omega, Z=Z, x=x)
        return pb.asarray(np.abs(x[:, 0]))

    @ride_transmissibility.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        omega, Z, x = ctx.saved_variables
        seed = np.zeros((len(omega), 2, 1), complex)
        seed[:, 0, 0] = grad_output.numpy() * x[:, 0] / np.abs(x[:, 0])
        y = np.linalg.solve(Z.swapaxes(1, 2), seed)[..., 0]
        by_link = -(y[:, 0] - y[:, 1]) * (x[:, 0] - x[:, 1])
        return {
            "spring": by_link.real.sum(),
            "damper": (1j * omega * by_link).real.sum(),
            "tyre": (y[:, 1] * (1 - x[:, 1])).real.sum(),
        }

    return ride_transmissibility


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(20, 60, 5)),
            t(rng.uniform(15, 25, 5)),
            t(np.array([2.0, 0.3, 1e-2, 2e-3, 5e-4])),
        ),
        {},
    ),
    "backward subtracts nearly equal numbers at small acceleration: no digit is left in float32",
    FLOAT32,
    r"cancel|round.?off|rounding|nearly equal|single|numerically (?:un)?stable|\bdigits?\b",
    mends("root + v", "(v + root", "** 2 / root"),
    where="float32",
)
def driving_time():
    @pb.autograd_function
    def driving_time(ctx, distance, speed, acceleration):
        """Time to cover a distance at constant acceleration, from a speed: each (n,)."""
        d, v, a = distance.numpy(), speed.numpy(), acceleration.numpy()
        final = np.sqrt(v**2 + 2 * a * d)
        ctx.save_for_backward(d, v, a, final)
        return pb.asarray(2 * d / (v + final))

    @driving_time.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        d, v, a, final = ctx.saved_variables
        gn = grad_output.numpy()
        return (
            pb.asarray(gn / final),
            pb.asarray(gn * (v / final - 1) / a),
            pb.asarray(gn * (d / (a * final) - (final - v) / a**2)),
        )

    return driving_time


GEARS = np.array([12.6, 7.4, 4.9, 3.6, 2.9])


@BOOK.right(
    lambda rng: (
        (t(np.array([3.0, 9.0, 14.0, 21.0, 30.0]) + rng.uniform(-0.5, 0.5, 5)), t(GEARS.copy())),
        {"redline": 640.0},
    )
)
def best_gear():
    @pb.autograd_function
    def best_gear(ctx, speed, ratios, wheel=0.31, redline=600.0):
        """Largest pull in kN at each speed, and the gear for it; none may pass the redline.

        The torque is a parabola of the engine's speed in rad/s.
        """
        v, n = speed.numpy()[:, None], ratios.numpy() / wheel
        turning = v * n
        torque = 0.21 - 1.1e-6 * (turning - 380.0) ** 2
        if (turning.min(axis=1) > redline).any():
            raise ValueError("too fast for every gear")
        pull = np.where(turning <= redline, torque * n, -np.inf)
        gear = pull.argmax(axis=1)
        rows = np.arange(len(v))
        ctx.save_for_backward(v=v[:, 0], n=n[gear], turning=turning[rows, gear], gear=gear)
        ctx.wheel, ctx.gears = wheel, len(n)
        return pb.asarray(pull[rows, gear]), pb.asarray(gear)

    @best_gear.backward
    @pb.once_differentiable
    def _(ctx, g_pull, g_gear):
        s, gn = ctx.saved_variables, g_pull.numpy()
        away = s.turning - 380.0
        by_turning = -gn * s.n * 2.2e-6 * away
        by_n = gn * (0.21 - 1.1e-6 * away**2) + by_turning * s.v
        by_ratio = np.bincount(s.gear, by_n / ctx.wheel, minlength=ctx.gears)
        return {"speed": pb.asarray(by_turning * s.n), "ratios": pb.asarray(by_ratio)}

    return best_gear


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.0, 1e-4, -0.02, 0.15, 2e-3])),
            t(rng.uniform(1, 8, 5)),
        ),
        {},
    )
)
def arc_end():
    def shares(u):
        """Return sin(u)/u, (1 - cos u)/u and their slopes; by series near 0."""
        near = np.abs(u) < 0.03
        w, q = np.where(near, 1.0, u), u * u
        s = np.where(near, 1 - q / 6 * (1 - q / 20 * (1 - q / 42)), np.sin(w) / w)
        c = np.where(near, u / 2 * (1 - q / 12 * (1 - q / 30)), (1 - np.cos(w)) / w)
        ds = np.where(near, -u / 3 * (1 - q / 10 * (1 - q / 28)), (np.cos(w) - s) / w)
        dc = np.where(near, 0.5 - q / 8 * (1 - q / 18 * (1 - q / 40)), (np.sin(w) - c) / w)
        return s, c, ds, dc

    @pb.autograd_function
    def arc_end(ctx, curvature, distance):
        """Where a car ends that drives arcs from the origin: (n,) ahead and (n,) to the left."""
        k, d = curvature.numpy(), distance.numpy()
        s, c, ds, dc = shares(k * d)
        ctx.save_for_backward(k * d, d, s, c, ds, dc)
        return pb.asarray(d * s), pb.asarray(d * c)

    @arc_end.backward
    @pb.once_differentiable
    def _(ctx, g_ahead, g_left):
        u, d, s, c, ds, dc = ctx.saved_variables
        gx, gy = g_ahead.numpy(), g_left.numpy()
        bent = gx * ds + gy * dc
        return pb.asarray(d**2 * bent), pb.asarray(gx * s + gy * c + u * bent)

    return arc_end


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(8, 16, 5)), t(rng.uniform(9, 40, 5)), t(np.array(20.0))),
        {"headway": 1.2},
    )
)
def intelligent_driver():
    class IntelligentDriver(pb.Function):
        """Accelerations of cars on a ring, each of which follows the one before it."""

        @staticmethod
        def forward(ctx, speed, gap, desired, headway=1.5, most=1.4, comfort=2.0, jam=2.0):
            v, s, top = speed.numpy(), gap.numpy(), desired.item()
            closing = v - np.roll(v, 1)
            soft = 2 * np.sqrt(most * comfort)
            dynamic = v * headway + v * closing / soft
            wish = jam + np.maximum(dynamic, 0.0)
            ctx.save_for_backward(v=v, s=s, closing=closing, wish=wish, active=dynamic > 0)
            ctx.top, ctx.headway, ctx.most, ctx.soft = top, headway, most, soft
            return pb.asarray(most * (1 - (v / top) ** 4 - (wish / s) ** 2))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s = ctx.saved_variables
            flow = -ctx.most * grad_output.numpy()
            by_wish = 2 * flow * s.wish / s.s**2 * s.active
            by_closing = by_wish * s.v / ctx.soft
            by_v = flow * 4 * s.v**3 / ctx.top**4 + by_wish * (ctx.headway + s.closing / ctx.soft)
            by_v += by_closing - np.roll(by_closing, -1)
            by_gap = -2 * flow * s.wish**2 / s.s**3
            by_top = -4 * (flow * s.v**4).sum() / ctx.top**5
            return pb.asarray(by_v), pb.asarray(by_gap), by_top, None, None, None, None

    return IntelligentDriver.apply


@BOOK.right(
    lambda rng: (
        (
            t(np.array([14.0, 13, 5, 12, 15, 15, 7, 4, 13]) + rng.uniform(-0.4, 0.4, 9)),
            t(np.array(1.9)),
            t(np.array(3.1)),
        ),
        {"spacing": 10.0},
    )
)
def speed_profile():
    @pb.autograd_function
    def speed_profile(ctx, limits, drive, brake, spacing=5.0):
        """Fastest speeds along a track: within limits: (n,), as engine and brakes allow."""
        square = limits.numpy() ** 2
        driven, braked = np.zeros(len(square)), np.zeros(len(square))
        for k in range(1, len(square)):
            reach = square[k - 1] + 2 * spacing * drive.item()
            if reach < square[k]:
                square[k], driven[k] = reach, 1.0
        for k in reversed(range(len(square) - 1)):
            reach = square[k + 1] + 2 * spacing * brake.item()
            if reach < square[k]:
                square[k], braked[k] = reach, 1.0
        ctx.save_for_backward(limits=limits.numpy(), driven=driven, braked=braked, square=square)
        ctx.spacing = spacing
        return pb.asarray(np.sqrt(square))

    @speed_profile.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        flow = grad_output.numpy() / (2 * np.sqrt(s.square))
        by_drive = by_brake = 0.0
        for k in range(len(flow) - 1):
            if s.braked[k]:
                by_brake += flow[k]
                flow[k + 1] += flow[k]
                flow[k] = 0.0
        for k in reversed(range(1, len(flow))):
            if s.driven[k]:
                by_drive += flow[k]
                flow[k - 1] += flow[k]
                flow[k] = 0.0
        return {
            "limits": pb.asarray(2 * s.limits * flow),
            "drive": 2 * ctx.spacing * by_drive,
            "brake": 2 * ctx.spacing * by_brake,
        }

    return speed_profile


@BOOK.right(
    lambda rng: (
        (
            t(np.array([-1.9, -0.4, -0.05, 0.02, 0.3, 0.35, 1.7]) + 0.01 * rng.random(7)),
            t(np.array([-1.3, -0.6, 0.0, 1.1, 2.0]) + 0.1 * rng.random(5)),
        ),
        {"knots": (-1.0, -0.2, 0.0, 0.2, 1.0)},
    )
)
def damper_force():
    def forward(ctx, velocity, forces, knots):
        """Force of a damper by its measured curve; straight on beyond the ends."""
        grid, F, v = np.asarray(knots), forces.numpy(), velocity.numpy()
        k = np.searchsorted(grid, v, side="right").clip(1, len(grid) - 1) - 1
        width = np.diff(grid)[k]
        share = (v - grid[k]) / width
        ctx.slope, ctx.k, ctx.share, ctx.n = np.diff(F)[k] / width, k, share, len(F)
        return pb.asarray(F[k] + share * np.diff(F)[k])

    @pb.once_differentiable
    def backward(ctx, grad_output):
        gn, by_forces = grad_output.numpy(), np.zeros(ctx.n)
        np.add.at(by_forces, ctx.k, gn * (1 - ctx.share))
        np.add.at(by_forces, ctx.k + 1, gn * ctx.share)
        return {"velocity": pb.asarray(gn * ctx.slope), "forces": pb.asarray(by_forces)}

    return pb.autograd_function(forward, backward, name="damper_force")
