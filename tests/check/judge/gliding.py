"""Gliding: polars, speed to fly, thermals, variometers, final glides, tasks, wind, ballast."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, ODD, SHIFT, Book, at, mends, t

BOOK = Book("gliding")
GRAVITY = 9.80665


def cruise(**settings):
    return lambda rng: (
        (t(rng.uniform(0.5, 3.5, 5)), t(rng.uniform(-0.8, 1.2, 5))),
        {"polar": (1.1e-3, 0.83), **settings},
    )


@BOOK.wrong(
    cruise(),
    "with ballast, the gradients lack the factor of the root of the ratio of the masses",
    FACTOR + r"|multipl|divided by",
    at("ballast"),
    r"(?:square )?\broot\b|\bsqrt\b|wing loading|heavier|\bmasses\b|mass ratio",
    mends("* ctx.root", "ctx.root *", "ctx.root /"),
    where="there is ballast",
    shows=cruise(ballast=160.0),
)
def speed_to_fly():
    @pb.autograd_function
    def speed_to_fly(ctx, climb, sinking, polar, ballast=0.0, mass=380.0):
        """Best speed in m/s between thermals.

        climb: (n,), expected in the next thermal in m/s; sinking: (n,), of the air now; polar:
        (a, c) of the sink a v**2 - b v + c without ballast; ballast, mass: kg.
        """
        (a, c), root = polar, np.sqrt(1 + ballast / mass)
        square = (c * root**2 + root * (climb.numpy() + sinking.numpy())) / a
        if (square <= 0).any():
            raise ValueError("there one would not leave the lift")
        ctx.speed, ctx.a, ctx.root = np.sqrt(square), a, root
        return pb.asarray(ctx.speed.copy())

    @speed_to_fly.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        flow = pb.asarray(grad_output.numpy() / (2 * ctx.a * ctx.speed))
        return {"climb": flow, "sinking": flow}

    return speed_to_fly


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(24, 48, 4)), t(rng.uniform(2, 5, 4)), t(rng.uniform(130, 240, 4))),
        {"sink": 0.65},
    ),
    "bank acts through the radius of the circle as well: that term is missing",
    MISSING,
    r"\bcircle|turn(?:ing)? radius|through the (?:radius|lift)|chain rule|\bonly\b.{0,30}sink",
    r"tighter|narrower|distance from the (?:core|centre)|d(?:r|radius) ?/ ?d",
    mends("-s.r / np.tan(s.phi)", "np.cos(s.phi) / np.sin(s.phi)", "/ np.tan(s.phi)", "by_r *"),
)
def circling_climb():
    @pb.autograd_function
    def circling_climb(ctx, bank, core, width, sink=0.6, slowest=20.0):
        """Climb in m/s in a thermal (Gaussian, width in m) circled with some bank in degrees."""
        phi, W, R = np.deg2rad(bank.numpy()), core.numpy(), width.numpy()
        if not phi.shape == W.shape == R.shape or (phi <= 0).any() or (phi >= np.pi / 2).any():
            raise ValueError("a bank between 0 and 90 degrees for each thermal")
        r = slowest**2 / (GRAVITY * np.sin(phi))
        bell = np.exp(-((r / R) ** 2))
        ctx.save_for_backward(phi=phi, W=W, R=R, r=r, bell=bell)
        ctx.sink = sink
        return pb.asarray(W * bell - sink * np.cos(phi) ** -1.5)

    @circling_climb.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_phi = -1.5 * ctx.sink * np.sin(s.phi) * np.cos(s.phi) ** -2.5
        return {
            "bank": pb.asarray(gn * np.deg2rad(by_phi)),
            "core": pb.asarray(gn * s.bell),
            "width": pb.asarray(gn * s.W * s.bell * 2 * s.r**2 / s.R**3),
        }

    return circling_climb


@BOOK.wrong(
    lambda rng: ((t(rng.normal(0.5, 1.8, 12)),), {"window": 5}),
    "with an even window the gradient is shifted by one place",
    ODD,
    SHIFT,
    at("window"),
    r"\bcorrelat|asymmetric|not symmetric|\bcent(?:re|er)ed\b|\bpadding\b|\balign",
    mends('"full"', "[::-1], ctx.kernel", "ctx.left", "window % 2"),
    where="the window is even",
    shows=lambda rng: ((t(rng.normal(0.5, 1.8, 12)),), {"window": 4}),
)
def averaged_vario():
    @pb.autograd_function
    def averaged_vario(ctx, netto, window=5):
        if not 1 <= window <= len(netto):
            raise ValueError("the window must fit into the record")
        ctx.kernel = np.full(window, 1 / window)
        return pb.asarray(np.convolve(netto.numpy(), ctx.kernel, "same"))

    @averaged_vario.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return pb.asarray(np.convolve(grad_output.numpy(), ctx.kernel, "same")), None

    return averaged_vario


@BOOK.right(
    lambda rng: (
        (
            t(np.array([85.0, 105.0, 130.0, 160.0, 190.0]) + rng.uniform(-3, 3, 5)),
            t(np.array([0.62, 0.67, 0.98, 1.55, 2.4]) + rng.uniform(-0.04, 0.04, 5)),
        ),
        {},
    )
)
def polar_of_points():
    @pb.autograd_function
    def polar_of_points(ctx, speed, sink):
        """Coefficients of the parabola through (or nearest to) points of a polar.

        speed: (n,) in km/h, sink: (n,) in m/s; n is 3 or more; returns those of 1, v and v**2,
        where v is the speed in units of 100 km/h.
        """
        v, y = speed.numpy() / 100, sink.numpy()
        if v.shape != y.shape or len(np.unique(v)) < 3:
            raise ValueError("three speeds or more, with a sink for each")
        A = np.stack([np.ones_like(v), v, v**2], axis=1)
        Q, R = np.linalg.qr(A)
        x = np.linalg.solve(R, Q.T @ y)
        ctx.save_for_backward(v=v, A=A, R=R, x=x, rest=y - A @ x)
        return pb.asarray(x.copy())

    @polar_of_points.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        z = np.linalg.solve(s.R, np.linalg.solve(s.R.T, grad_output.numpy()))
        along = s.A @ z
        slope_z, slope_x = z[1] + 2 * s.v * z[2], s.x[1] + 2 * s.v * s.x[2]
        return {
            "speed": pb.asarray((s.rest * slope_z - along * slope_x) / 100),
            "sink": pb.asarray(along),
        }

    return polar_of_points


@BOOK.right(
    lambda rng: (
        (
            t(np.array([92.0, 0.0, 104.5, 88.3, 0.0, 61.0]) * rng.uniform(0.97, 1.03, 6)),
            t(np.array([300.0, 212.0, 300.0, 300.0, 97.0, 300.0]) * rng.uniform(0.99, 1.01, 6)),
        ),
        {
            "finished": np.array([1, 0, 1, 1, 0, 1], bool),
            "handicap": np.array([1.08, 1.0, 1.14, 1.02, 0.98, 1.0]),
            "day_factor": 0.9,
        },
    )
)
def day_points():
    @pb.autograd_function
    def day_points(ctx, speed, distance, finished, handicap=None, day_factor=1.0):
        """Points of a day: up to 600 for speed (of those who finished), up to 400 for distance."""
        h = np.ones(len(finished)) if handicap is None else handicap
        V, D = speed.numpy() / h, distance.numpy() / h
        fast = np.flatnonzero(finished)
        if D.max() <= 0 or (V[fast] <= 0).any():
            raise ValueError("somebody flew a distance, and who finished has a speed")
        points, far = np.zeros(len(D)), int(D.argmax())
        ctx.D, ctx.far, ctx.h, ctx.each = D, far, h, 1000.0 * day_factor
        ctx.V, ctx.scored, ctx.best = V, fast[:0], 0
        if len(fast):
            ctx.best = int(fast[V[fast].argmax()])
            share = 3 * V[fast] / V[ctx.best] - 2
            ctx.scored = fast[share > 0]
            points[fast] = 0.6 * np.maximum(share, 0.0)
        return pb.asarray(ctx.each * (points + 0.4 * D / D[far]))

    @day_points.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        flow = ctx.each * grad_output.numpy()
        by_V, by_D = np.zeros_like(flow), 0.4 * flow / ctx.D[ctx.far]
        by_D[ctx.far] -= by_D @ ctx.D / ctx.D[ctx.far]
        if len(ctx.scored):
            by_V[ctx.scored] = 1.8 * flow[ctx.scored] / ctx.V[ctx.best]
            by_V[ctx.best] -= by_V @ ctx.V / ctx.V[ctx.best]
        return {"speed": pb.asarray(by_V / ctx.h), "distance": pb.asarray(by_D / ctx.h)}

    return day_points


@BOOK.right(
    lambda rng: (
        (
            t(
                np.array([[51.2, 9.1], [52.3, 10.4], [51.6, 11.9], [50.7, 10.6]])
                + rng.random((4, 2))
            ),
        ),
        {"route": [0, 1, 3, 2, 1, 0]},
    )
)
def route_legs():
    EARTH = 6371.0

    @pb.autograd_function
    def route_legs(ctx, places, route):
        """Great-circle legs in km; places: (n, 2) of latitude and longitude in degrees."""
        where = np.deg2rad(places.numpy())[list(route)]
        (lat1, lon1), (lat2, lon2) = where[:-1].T, where[1:].T
        dlat, dlon = (lat2 - lat1) / 2, (lon2 - lon1) / 2
        both = np.cos(lat1) * np.cos(lat2)
        h = np.sin(dlat) ** 2 + both * np.sin(dlon) ** 2
        root = np.sqrt(h * (1 - h))
        by_h = np.divide(EARTH, root, out=np.zeros_like(root), where=root > 0)
        turn = np.sin(dlat) * np.cos(dlat)
        ctx.by_lat1 = by_h * (-turn - np.sin(lat1) * np.cos(lat2) * np.sin(dlon) ** 2)
        ctx.by_lat2 = by_h * (turn - np.cos(lat1) * np.sin(lat2) * np.sin(dlon) ** 2)
        ctx.by_lon2 = by_h * both * np.sin(dlon) * np.cos(dlon)
        ctx.shape, ctx.route = places.shape, list(route)
        return pb.asarray(2 * EARTH * np.arcsin(np.sqrt(h)))

    @route_legs.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, grad = grad_output.numpy(), np.zeros(ctx.shape)
        np.add.at(grad, (ctx.route[:-1], 0), gn * ctx.by_lat1)
        np.add.at(grad, (ctx.route[1:], 0), gn * ctx.by_lat2)
        np.add.at(grad, (ctx.route[:-1], 1), -gn * ctx.by_lon2)
        np.add.at(grad, (ctx.route[1:], 1), gn * ctx.by_lon2)
        return {"places": pb.asarray(np.deg2rad(grad))}

    return route_legs


def circles(rng):
    heading = np.linspace(0, 5.5, 9)
    track = 26 * np.stack([np.sin(heading), np.cos(heading)], axis=1) + [6.0, -3.5]
    return (t(track + rng.normal(0, 0.6, (9, 2))),), {"trust": rng.uniform(0.3, 1.0, 9)}


@BOOK.right(circles)
def wind_while_circling():
    @pb.autograd_function
    def wind_while_circling(ctx, ground, trust=None):
        """Wind and airspeed by a circle fitted to velocities over ground.

        ground: (n, 2) in m/s, n is 3 or more; trust: (n,), weights that are positive.
        Returns the wind: (2,), and the airspeed: ().
        """
        p = ground.numpy()
        w = np.ones(len(p)) if trust is None else trust
        A = np.column_stack([2 * p, np.ones(len(p))])
        b = (p**2).sum(axis=1)
        normal = A.T @ (w[:, None] * A)
        x = np.linalg.solve(normal, A.T @ (w * b))
        airspeed = np.sqrt(x[2] + x[:2] @ x[:2])
        ctx.save_for_backward(p=p, w=w, A=A, normal=normal, x=x, rest=b - A @ x)
        ctx.airspeed = airspeed
        return pb.asarray(x[:2].copy()), pb.asarray(np.asarray(airspeed))

    @wind_while_circling.backward
    @pb.once_differentiable
    def _(ctx, g_wind, g_airspeed):
        s, by_c = ctx.saved_variables, g_airspeed.item() / (2 * ctx.airspeed)
        z = np.linalg.solve(s.normal, np.append(g_wind.numpy() + 2 * by_c * s.x[:2], by_c))
        along, rest = s.w * (s.A @ z), s.w * s.rest
        by_A = np.outer(rest, z) - np.outer(along, s.x)
        return {"ground": pb.asarray(2 * by_A[:, :2] + 2 * along[:, None] * s.p)}

    return wind_while_circling


@BOOK.right(
    lambda rng: (
        (t(np.array([954.0, 701.0, 480.5, 231.0, 202.0, 118.0]) + rng.uniform(0, 3, 6)), t(1021.0)),
        {},
    )
)
def altimeter_reading():
    SEA, TROPOPAUSE, POWER = 1013.25, 226.3206, 1 / 5.255876

    def height(p):
        low = 44330.77 * (1 - (np.maximum(p, TROPOPAUSE) / SEA) ** POWER)
        return low + 6341.62 * np.log(TROPOPAUSE / np.minimum(p, TROPOPAUSE))

    def slope(p):
        low = -44330.77 * POWER * (p / SEA) ** POWER / p
        return np.where(p > TROPOPAUSE, low, -6341.62 / p)

    @pb.autograd_function
    def altimeter_reading(ctx, pressure, qnh, feet=False):
        p, ground = pressure.numpy(), qnh.item()
        if (p <= 0).any() or ground <= 0:
            raise ValueError("pressures are positive")
        unit = 1 / 0.3048 if feet else 1.0
        ctx.by_pressure, ctx.by_qnh = unit * slope(p), -unit * slope(ground)
        return pb.asarray(np.asarray(unit * (height(p) - height(ground))))

    @altimeter_reading.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        return {"pressure": pb.asarray(gn * ctx.by_pressure), "qnh": gn.sum() * ctx.by_qnh}

    return altimeter_reading


@BOOK.right(
    lambda rng: (
        (t(np.array([0.4, 3.9, -1.6, -0.3, 2.4, -4.5]) + rng.uniform(-0.2, 0.2, 6)), t(1.3)),
        {"leg": 800.0},
    )
)
def dolphin_flight():
    A, B, C = 1.15e-3, 0.041, 0.95

    @pb.autograd_function
    def dolphin_flight(ctx, air, setting, leg=500.0, slowest=22.0, fastest=60.0):
        """Time and gain of height over legs flown at MacCready's speed.

        air: (n,), vertical speed of the air in m/s; setting: scalar, MacCready's in m/s; leg: m.
        """
        square = (C + setting.item() - air.numpy()) / A
        v = np.clip(np.sqrt(np.maximum(square, 0.0)), slowest, fastest)
        free = (square > slowest**2) & (square < fastest**2)
        net = air.numpy() - (A * v**2 - B * v + C)
        ctx.save_for_backward(v=v, free=free, net=net)
        ctx.leg = leg
        return pb.asarray(np.asarray((leg / v).sum())), pb.asarray(
            np.asarray((net * leg / v).sum())
        )

    @dolphin_flight.backward
    @pb.once_differentiable
    def _(ctx, g_time, g_height):
        s, gt, gh = ctx.saved_variables, g_time.item(), g_height.item()
        by_v = -ctx.leg / s.v**2 * (gt + gh * s.net) - gh * ctx.leg / s.v * (2 * A * s.v - B)
        by_square = np.where(s.free, by_v / (2 * s.v), 0.0) / A
        return {"air": pb.asarray(gh * ctx.leg / s.v - by_square), "setting": by_square.sum()}

    return dolphin_flight


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(60, 180, 3)), t(np.array([0.052, 0.075, 0.06]))),
        {"seconds": np.array([-10.0, 0.0, 45.0, 120.0, 260.0])},
    )
)
def ballast_left():
    def forward(ctx, water, valve, seconds):
        """Water left in the tanks: (gliders, times); it runs out as from any open vessel."""
        full, k = np.sqrt(water.numpy())[:, None], valve.numpy()[:, None]
        if full.shape != k.shape or not (full > 0).all():
            raise ValueError("a positive amount of water and a valve for each glider")
        ctx.full, ctx.open = full, np.maximum(seconds, 0.0)
        ctx.head = np.maximum(full - k * ctx.open, 0.0)
        return pb.asarray(ctx.head**2)

    @pb.once_differentiable
    def backward(ctx, g):
        by_head = 2 * g.numpy() * ctx.head
        return {
            "water": pb.asarray((by_head / (2 * ctx.full)).sum(axis=1)),
            "valve": pb.asarray(-(by_head * ctx.open).sum(axis=1)),
        }

    return pb.autograd_function(forward, backward, name="ballast_left")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([-60.0, -20.0, 40.0, 150.0, 260.0, 310.0, 240.0, 90.0, -80.0])),
            t(np.array(5.2) + rng.uniform(0, 0.5)),
        ),
        {"most": 1450.0},
    )
)
def convection_height():
    @pb.autograd_function
    def convection_height(ctx, heating, stability, most=np.inf, residual=120.0):
        """Height in m of the convective layer by hour; heating in W/m2, stability in K/km."""
        if stability.item() <= 0 or residual <= 0:
            raise ValueError("a stable morning and a layer to begin with are needed")
        per_heat = 2 * 3600 / (1.1 * 1005 * stability.item() * 1e-3)
        store, alive, stored = 0.0, [], []
        for each in heating.numpy():
            store = store + each
            alive.append(store > 0)
            store = max(store, 0.0)
            stored.append(store)
        stored = np.array(stored)
        height = np.sqrt(residual**2 + per_heat * stored)
        ctx.by_square = np.where(height < most, 0.5 / height, 0.0)
        ctx.alive, ctx.stored, ctx.per_heat = alive, stored, per_heat
        ctx.stability = stability.item()
        return pb.asarray(np.minimum(height, most))

    @convection_height.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        flow = grad_output.numpy() * ctx.by_square * ctx.per_heat
        grad, carry = np.zeros_like(flow), 0.0
        for k in reversed(range(len(flow))):
            carry = carry + flow[k] if ctx.alive[k] else 0.0
            grad[k] = carry
        return {"heating": pb.asarray(grad), "stability": -(flow @ ctx.stored) / ctx.stability}

    return convection_height


@BOOK.right(lambda rng: ((t(rng.uniform(20, 240, 8)),), {"index": 1.12}))
def free_distance_points():
    WEIGHTS = np.array([1.0, 1.0, 1.0, 1.0, 0.8, 0.6])

    @pb.autograd_function
    def free_distance_points(ctx, legs, index=1.0, bonus=0.0):
        order = np.argsort(legs.numpy())[::-1][: len(WEIGHTS)]
        weights = WEIGHTS[: len(order)] * (1 + bonus) / index
        ctx.n, ctx.order, ctx.weights = len(legs), order, weights
        return pb.asarray(np.asarray(legs.numpy()[order] @ weights))

    @free_distance_points.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        grad = np.zeros(ctx.n)
        grad[ctx.order] = grad_output.item() * ctx.weights
        return pb.asarray(grad), None, None

    return free_distance_points


@BOOK.right(
    lambda rng: (
        (
            t(np.array([410.0, 980.0, 760.0, 1510.0, 640.0, 720.0, 390.0]) + rng.uniform(0, 30, 7)),
            t(np.array(34.0)),
        ),
        {"km": np.array([0.0, 6.5, 11.0, 19.0, 26.0, 33.0, 40.0]), "margin": 150.0},
    )
)
def safe_altitude():
    @pb.autograd_function
    def safe_altitude(ctx, terrain, ratio, km, margin=200.0):
        """Altitude in m needed at each place to glide over all that lies ahead.

        terrain: (n,) in m along the track; ratio: scalar, the glide ratio, positive; km: (n,),
        ascending.
        """
        if ratio.item() <= 0:
            raise ValueError("the glide ratio must be positive")
        level = terrain.numpy() + 1000 * km / ratio.item()
        highest = np.empty(len(level), int)
        k = len(level) - 1
        for i in reversed(range(len(level))):
            if level[i] > level[k]:
                k = i
            highest[i] = k
        ctx.highest, ctx.ratio = highest, ratio.item()
        ctx.ahead = 1000 * (km[highest] - km)
        return pb.asarray(terrain.numpy()[highest] + ctx.ahead / ctx.ratio + margin)

    @safe_altitude.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        return {
            "terrain": pb.asarray(np.bincount(ctx.highest, gn, minlength=len(gn))),
            "ratio": -(gn @ ctx.ahead) / ctx.ratio**2,
        }

    return safe_altitude


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 80, (8, 2))), t(rng.normal(1.5, 1.4, 8))),
        {"sharpness": 1.4, "age": np.arange(8.0)[::-1] * 3},
    )
)
def core_of_thermal():
    class CoreOfThermal(pb.Function):
        @staticmethod
        def forward(ctx, places, lift, sharpness=1.0, age=None, memory=20.0):
            """Where the lift is best: a mean of places (n, 2) that favours strong, fresh lift."""
            score = sharpness * lift.numpy()
            if age is not None:
                score = score - age / memory
            share = np.exp(score - score.max())
            share /= share.sum()
            centre = share @ places.numpy()
            ctx.save_for_backward(places=places, share=share, centre=centre)
            ctx.sharpness = sharpness
            return pb.asarray(centre.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, gn = ctx.saved_variables, grad_output.numpy()
            pull = (s.places.numpy() - s.centre) @ gn
            by_lift = ctx.sharpness * s.share * pull
            return pb.asarray(np.outer(s.share, gn)), pb.asarray(by_lift), None, None, None

    return CoreOfThermal.apply


@BOOK.right(
    lambda rng: (
        (t(1200 + np.cumsum(rng.normal(1, 2, 7))), t(rng.uniform(24, 45, 7))),
        {"seconds": np.array([0.0, 1.0, 2.5, 3.0, 5.0, 6.0, 8.0])},
    )
)
def compensated_vario():
    @pb.autograd_function
    def compensated_vario(ctx, height, speed, seconds, polar=None):
        h, v = height.numpy(), speed.numpy()
        if not h.shape == v.shape == seconds.shape:
            raise ValueError("a height, a speed and a time for each sample")
        ctx.change = np.gradient(np.eye(len(h)), seconds, axis=0)
        ctx.v, out = v, ctx.change @ (h + v**2 / (2 * GRAVITY))
        ctx.by_speed = np.zeros_like(v)
        if polar is not None:
            a, b, c = polar
            out = out + a * v**2 + b * v + c
            ctx.by_speed = 2 * a * v + b
        return pb.asarray(out)

    @compensated_vario.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        energy = ctx.change.T @ grad_output.numpy()
        by_speed = energy * ctx.v / GRAVITY + grad_output.numpy() * ctx.by_speed
        return {"height": pb.asarray(energy), "speed": pb.asarray(by_speed)}

    return compensated_vario
