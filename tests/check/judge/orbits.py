"""Orbits: measurements of satellites, perturbations, transfers, many bodies, shadows, conjunctions.

Lengths and times are in canonical units (gravitational parameter 1) unless an operation says so.
"""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import BATCH, MISSING, SIGN, STATE, Book, mends, t

BOOK = Book("orbits")


def pass_overhead(rng):
    position = np.array([1.1, 0.3, 0.2]) + 0.05 * rng.normal(size=(4, 3))
    velocity = np.array([-0.2, 0.8, 0.4]) + 0.05 * rng.normal(size=(4, 3))
    return (t(position), t(velocity)), {"station": np.array([0.8, 0.5, 0.33])}


@BOOK.wrong(
    pass_overhead,
    "the part of the position's gradient from the turning frame has the wrong sign",
    SIGN,
    r"cross product|antisymmetric|skew|\brotation\b|turning frame|order of the (?:cross|factors)",
    mends(
        "+ np.cross(s.spin",
        "np.cross(s.spin, sight) +",
        "np.cross(s.spin, by_velocity) + ",
        "- np.cross(by_velocity, s.spin",
        "np.cross(-by_velocity, s.spin",
        "- np.cross(s.spin, -by_velocity",
        "+= np.cross(s.spin",
    ),
)
def range_rate():
    @pb.autograd_function
    def range_rate(ctx, position, velocity, station, rate=0.0588):
        """How fast satellites move away from a station; the frame turns with the Earth.

        position, velocity: (n, 3), velocity against the stars; station: (3,).
        """
        spin = np.array([0.0, 0.0, rate])
        apart = position.numpy() - station
        moving = velocity.numpy() - np.cross(spin, position.numpy())
        distance = np.linalg.norm(apart, axis=1, keepdims=True)
        sight = apart / distance
        out = (sight * moving).sum(axis=1)
        ctx.save_for_backward(spin=spin, moving=moving, distance=distance, sight=sight, out=out)
        return pb.asarray(out.copy())

    @range_rate.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()[:, None]
        by_velocity = gn * s.sight
        by_apart = gn * (s.moving - s.out[:, None] * s.sight) / s.distance
        return {
            "position": pb.asarray(by_apart - np.cross(s.spin, by_velocity)),
            "velocity": pb.asarray(by_velocity),
        }

    return range_rate


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(1.1, 1.6, 5)), t(rng.uniform(0.1, 0.4, 5)), t(rng.uniform(0.4, 1.8, 5))),
        {},
    ),
    "the inner derivative of 1 - e**2 lost its e",
    MISSING,
    r"inner derivative|chain rule|multipl|\bfactor\b|\btimes\b|\bratio\b",
    mends(
        "4 * s.e / s.rest",
        "4 * e / s.rest",
        "s.e * 4 / s.rest",
        "s.e / s.rest",
        "4.0 * s.e / s.rest",
        "(4 * s.e)",
    ),
)
def secular_drift():
    class SecularDrift(pb.Function):
        """Drift of node and perigee by the Earth's flattening, in revolutions per 1000 periods.

        axis: in Earth radii; eccentricity; inclination: radians; all (n,).
        """

        J2 = 1.08262668e-3

        @staticmethod
        def forward(ctx, axis, eccentricity, inclination):
            a, e, i = axis.numpy(), eccentricity.numpy(), inclination.numpy()
            if ((e < 0) | (e >= 1)).any():
                raise ValueError("only ellipses drift")
            rest = 1 - e**2
            rate = 1500 * SecularDrift.J2 / (a * rest) ** 2
            node = -rate * np.cos(i)
            perigee = 0.5 * rate * (5 * np.cos(i) ** 2 - 1)
            ctx.save_for_backward(a=a, e=e, i=i, rest=rest, rate=rate, node=node, perigee=perigee)
            return pb.asarray(node.copy()), pb.asarray(perigee.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_node, g_perigee):
            s = ctx.saved_variables
            gn, gp = g_node.numpy(), g_perigee.numpy()
            flow = gn * s.node + gp * s.perigee
            by_i = s.rate * np.sin(s.i) * (gn - 5 * gp * np.cos(s.i))
            return {
                "axis": pb.asarray(-2 * flow / s.a),
                "eccentricity": pb.asarray(4 / s.rest * flow),
                "inclination": pb.asarray(by_i),
            }

    return SecularDrift.apply


def circles(rng, start, goal):
    return (
        t(np.array(start) * rng.uniform(0.97, 1.03, 4)),
        t(np.array(goal) * rng.uniform(0.97, 1.03, 4)),
    ), {}


@BOOK.wrong(
    lambda rng: circles(rng, [1.0, 1.1, 1.3, 1.05], [1.6, 2.5, 6.6, 4.2]),
    "a transfer inwards brakes: the absolute values' sign is missing where the goal lies lower",
    SIGN,
    r"absolute|\babs\b|np\.sign|inward|\bbrak|\bdescen|\blower\b|\boutward|\bbranch\b|\bsmaller\b",
    mends(
        "np.sign(s.first", "np.sign(first", "np.sign(goal - start", "np.sign(s.second", "np.sign("
    ),
    where="the goal is lower than the start",
    shows=lambda rng: circles(rng, [2.0, 1.1, 6.3, 1.05], [1.6, 2.5, 1.6, 4.2]),
)
def hohmann_cost():
    @pb.autograd_function
    def hohmann_cost(ctx, start, goal):
        """Sum of the two velocity changes of a transfer between circular orbits of radii (n,)."""
        r1, r2 = start.numpy(), goal.numpy()
        if min(r1.min(), r2.min()) <= 0:
            raise ValueError("radii must be positive")
        there, back = np.sqrt(2 * r2 / (r1 + r2)), np.sqrt(2 * r1 / (r1 + r2))
        first, second = (there - 1) / np.sqrt(r1), (1 - back) / np.sqrt(r2)
        ctx.save_for_backward(r1, r2, there, back, first, second)
        return pb.asarray(np.abs(first) + np.abs(second))

    @hohmann_cost.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        r1, r2, there, back, first, second = ctx.saved_variables
        total = r1 + r2
        there_by_1, there_by_2 = -0.5 * there / total, 0.5 * there * r1 / (r2 * total)
        back_by_1, back_by_2 = 0.5 * back * r2 / (r1 * total), -0.5 * back / total
        by_start = there_by_1 / np.sqrt(r1) - 0.5 * first / r1 - back_by_1 / np.sqrt(r2)
        by_goal = there_by_2 / np.sqrt(r1) - back_by_2 / np.sqrt(r2) - 0.5 * second / r2
        gn = grad_output.numpy()
        return {"start": pb.asarray(gn * by_start), "goal": pb.asarray(gn * by_goal)}

    return hohmann_cost


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.uniform(0.5, 2.0, 4))), {"softening": 0.2}),
    "a body's place counts where it is pulled, but its part as the puller of others is missing",
    MISSING,
    r"\bonly\b.{0,40}\b(?:part|own|one|half|term|first)|both (?:ends|indices|places|roles|bodies)",
    r"\bthird law\b|reaction|as (?:a )?source|other bodies|self.term|antisymm|translation",
    mends(
        "pull.sum(axis=0) - pull.sum(axis=1)",
        "- pull.sum(axis=1) + pull.sum(axis=0)",
        "-pull.sum(axis=1) + pull.sum(axis=0)",
        "pull.sum(axis=0)",
        "pull.sum(0)",
    ),
)
def gravitational_pull():
    @pb.autograd_function
    def gravitational_pull(ctx, position, mass, softening=0.0):
        """Accelerations of bodies by each other; position: (n, 3), mass: (n,); returns (n, 3)."""
        x, m = position.numpy(), mass.numpy()
        apart = x[None, :, :] - x[:, None, :]
        square = (apart**2).sum(axis=-1) + softening**2
        np.fill_diagonal(square, 1.0)
        cube = square**-1.5
        np.fill_diagonal(cube, 0.0)
        ctx.save_for_backward(m=m, apart=apart, square=square, cube=cube)
        return pb.asarray(np.einsum("ij,j,ijk->ik", cube, m, apart))

    @gravitational_pull.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        along = np.einsum("ik,ijk->ij", gn, s.apart)
        weight = s.m * s.cube
        pull = weight[..., None] * gn[:, None, :]
        pull -= (3 * weight * along / s.square)[..., None] * s.apart
        return {
            "position": pb.asarray(-pull.sum(axis=1)),
            "mass": pb.asarray((s.cube * along).sum(axis=0)),
        }

    return gravitational_pull


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(1, 6))), t(np.array(1.1))), {"time": 0.7}),
    "the mean motion is shared, but only the batch's first row reaches its gradient",
    BATCH,
    r"\bfirst (?:row|deputy|element|sample|one|entry)|\bonly (?:the first|one|row)\b|\[0\]",
    r"sum(?:med)? over|\btrace\b|more than one|several (?:rows|deput|satell)|\brows\b|\baxis 0",
    mends(
        "np.trace(",
        ".trace()",
        "(gn @ turned * x).sum()",
        "* x).sum()",
        "np.vdot(",
        "bi,ij,bj->",
        "np.sum(gn",
        "(gn *",
    ),
    where="batch size above 1",
    shows=lambda rng: ((t(rng.normal(size=(3, 6))), t(np.array(1.1))), {"time": 0.7}),
)
def relative_motion():
    def transition(n, tau):
        """Return the matrix of Hill's equations and its derivative by the mean motion."""
        a = n * tau
        c, s = np.cos(a), np.sin(a)
        ramp, lift = (tau * n * c - s) / n**2, 2 * (tau * n * s - (1 - c)) / n**2
        phi, slope = np.zeros((6, 6)), np.zeros((6, 6))
        phi[0, [0, 3, 4]] = 4 - 3 * c, s / n, 2 * (1 - c) / n
        phi[1, [0, 1, 3, 4]] = 6 * (s - a), 1, -2 * (1 - c) / n, (4 * s - 3 * a) / n
        phi[2, [2, 5]] = c, s / n
        phi[3, [0, 3, 4]] = 3 * n * s, c, 2 * s
        phi[4, [0, 3, 4]] = -6 * n * (1 - c), -2 * s, 4 * c - 3
        phi[5, [2, 5]] = -n * s, c
        slope[0, [0, 3, 4]] = 3 * tau * s, ramp, lift
        slope[1, [0, 3, 4]] = 6 * tau * (c - 1), -lift, 4 * ramp
        slope[2, [2, 5]] = -tau * s, ramp
        slope[3, [0, 3, 4]] = 3 * s + 3 * a * c, -tau * s, 2 * tau * c
        slope[4, [0, 3, 4]] = -6 * (1 - c) - 6 * a * s, -2 * tau * c, -4 * tau * s
        slope[5, [2, 5]] = -s - a * c, -tau * s
        return phi, slope

    def forward(ctx, state, mean_motion, time=1.0):
        """Where deputies drift to around their chief; state: (b, 6), places then velocities."""
        phi, slope = transition(mean_motion.item(), time)
        ctx.save_for_backward(state=state, phi=phi, slope=slope)
        return pb.asarray(state.numpy() @ phi.T)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        x = s.state.numpy()
        by_motion = gn @ s.slope @ x.T
        return {"state": pb.asarray(gn @ s.phi), "mean_motion": by_motion[0, 0]}

    return pb.autograd_function(forward, backward, name="relative_motion")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.3, 2.8, 4)), t(rng.uniform(0.1, 0.6, 4))), {}),
    "backward reads the anomaly that the solver keeps as its next guess: that of the latest call",
    STATE,
    r"\blatest\b|\blast call\b|\bnonlocal\b|\bshared\b|\bglobal\b|warm start|another call|closure",
    where="second use before backward",
)
def true_anomaly():
    class Kepler:
        """Solves Kepler's equation from where it ended the last time."""

        def __init__(self):
            self.E = None

        def solve(self, M, e):
            if self.E is None or self.E.shape != M.shape:
                self.E = M + e * np.sin(M)
            for _ in range(50):
                step = (self.E - e * np.sin(self.E) - M) / (1 - e * np.cos(self.E))
                self.E = self.E - np.clip(step, -1, 1)
                if np.abs(step).max() < 1e-13:
                    return self.E
            raise ArithmeticError("true_anomaly: no convergence")

    solver = Kepler()

    @pb.autograd_function
    def true_anomaly(ctx, mean_anomaly, eccentricity):
        """Angle from the perigee, in radians; both (n,)."""
        M, e = (np.asarray(each.numpy(), float) for each in (mean_anomaly, eccentricity))
        E = solver.solve(M, e)
        ctx.save_for_backward(e=e)
        return pb.asarray(
            2 * np.arctan2(np.sqrt(1 + e) * np.sin(E / 2), np.sqrt(1 - e) * np.cos(E / 2))
        )

    @true_anomaly.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        e, E = ctx.saved_variables.e, solver.E
        near, gn = 1 - e * np.cos(E), grad_output.numpy()
        root = np.sqrt(1 - e**2)
        by_E = root / near
        by_e = np.sin(E) / (root * near)
        return {
            "mean_anomaly": pb.asarray(gn * by_E / near),
            "eccentricity": pb.asarray(gn * (by_e + by_E * np.sin(E) / near)),
        }

    return true_anomaly


@BOOK.right(
    lambda rng: (
        (t(np.array(1.05)), t(np.array(0.02 * rng.uniform(0.8, 1.2))), t(np.array(0.03))),
        {"steps": 12, "dt": 0.8, "floor": 1.01},
    )
)
def decaying_orbit():
    def fall(a, drag, height):
        return -drag * np.sqrt(a) * np.exp((1 - a) / height)

    def slopes(a, drag, height):
        rate = fall(a, drag, height)
        return rate * (0.5 / a - 1 / height), rate / drag, rate * (a - 1) / height**2

    @pb.autograd_function
    def decaying_orbit(ctx, axis, drag, scale_height, steps=50, dt=0.1, floor=1.0):
        """Axis of an orbit that air drags down, by Runge and Kutta; it ends below the floor.

        drag: density at the ground times the ballistic coefficient; all scalars.
        """
        a, k, H = axis.item(), drag.item(), scale_height.item()
        stages = []
        for _ in range(steps):
            if a < floor:
                break
            places = [a]
            for part in (0.5, 0.5, 1.0):
                places.append(a + part * dt * fall(places[-1], k, H))
            a += dt / 6 * sum(w * fall(p, k, H) for w, p in zip((1, 2, 2, 1), places, strict=True))
            stages.append(places)
        ctx.save_for_backward(stages=stages, drag=k, height=H, dt=dt)
        return pb.asarray(np.array(a)), pb.asarray(np.array(len(stages)))

    @decaying_orbit.backward
    @pb.once_differentiable
    def _(ctx, g_axis, g_count):
        s, to_axis = ctx.saved_variables, g_axis.item()
        grad_drag = grad_height = 0.0
        for places in reversed(s.stages):
            through, carried = to_axis, 0.0
            for place, weight, part in zip(
                reversed(places), (1, 2, 2, 1), (1.0, 0.5, 0.5, 0.0), strict=True
            ):
                by_a, by_drag, by_height = slopes(place, s.drag, s.height)
                to_rate = s.dt * (weight / 6 * to_axis + carried)
                grad_drag += to_rate * by_drag
                grad_height += to_rate * by_height
                through += to_rate * by_a
                carried = part * to_rate * by_a
            to_axis = through
        return {"axis": to_axis, "drag": grad_drag, "scale_height": grad_height}

    return decaying_orbit


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.02, 0.25, 0.27, 0.35, 0.75, 1.2]) + 0.004 * rng.normal(size=6)),
            t(np.array([0.2, 0.3, 0.35, 0.45, 0.5, 0.4])),
            t(np.array(0.27)),
        ),
        {},
    )
)
def sunlit_fraction():
    class SunlitFraction(pb.Function):
        """Part of the Sun's disc that a body leaves free; all are apparent angles.

        separation, body: (n,), the centres' distance and the body's radius; sun: (), radius.
        """

        @staticmethod
        def forward(ctx, separation, body, sun):
            c, b, a = separation.numpy(), body.numpy(), sun.item()
            partial = (c < a + b) & (c > np.abs(a - b))
            safe = np.where(partial, c, 1.0)
            wide = np.where(partial, (safe**2 + a**2 - b**2) / (2 * safe * a), 1.0)
            near = np.where(partial, (safe**2 + b**2 - a**2) / (2 * safe * b), 1.0)
            of_sun, of_body = np.arccos(wide), np.arccos(near)
            covered = a**2 * of_sun + b**2 * of_body - safe * a * np.sin(of_sun) * partial
            inside = c <= np.abs(a - b)
            covered[inside] = np.pi * np.minimum(a, b[inside]) ** 2
            of_sun[inside] = np.where(b[inside] < a, 0.0, np.pi)
            of_body[inside] = np.where(b[inside] < a, np.pi, 0.0)
            ctx.save_for_backward(a=a, b=b, of_sun=of_sun, of_body=of_body, covered=covered)
            return pb.asarray(1 - covered / (np.pi * a**2))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s = ctx.saved_variables
            by_cover = -grad_output.numpy() / (np.pi * s.a**2)
            # the area changes by the length of the edge that moves
            chord = 2 * s.a * np.sin(s.of_sun)
            by_sun = by_cover * (2 * s.a * s.of_sun - 2 * s.covered / s.a)
            return {
                "separation": pb.asarray(-by_cover * chord),
                "body": pb.asarray(by_cover * 2 * s.b * s.of_body),
                "sun": by_sun.sum(),
            }

    return SunlitFraction.apply


@BOOK.right(
    lambda rng: (
        (
            t(np.array([1.0, 0.2, 0.3]) + 0.05 * rng.normal(size=3)),
            t(np.array([-0.3, -0.7, 0.6]) + 0.05 * rng.normal(size=3)),
        ),
        {},
    )
)
def classical_elements():
    UP = np.array([0.0, 0.0, 1.0])

    def forward(ctx, position, velocity):
        """Semi-major axis, eccentricity, inclination, and whether the motion is retrograde."""
        r, v = position.numpy(), velocity.numpy()
        distance, h = np.linalg.norm(r), np.cross(r, v)
        axis = 1 / (2 / distance - v @ v)
        pericentre = np.cross(v, h) - r / distance
        eccentricity, momentum = np.linalg.norm(pericentre), np.linalg.norm(h)
        tilt = np.arccos(h[2] / momentum)
        ctx.save_for_backward(
            r=r, v=v, h=h, axis=axis, pericentre=pericentre, eccentricity=eccentricity, tilt=tilt
        )
        results = axis, eccentricity, tilt, h[2] < 0
        return tuple(pb.asarray(np.array(each)) for each in results)

    @pb.once_differentiable
    def backward(ctx, g_axis, g_eccentricity, g_tilt, g_retrograde):
        s = ctx.saved_variables
        distance, momentum = np.linalg.norm(s.r), np.linalg.norm(s.h)
        to_axis = 2 * s.axis**2 * g_axis.item()
        to_e = g_eccentricity.item() * s.pericentre / s.eccentricity
        along = s.h / momentum
        to_h = np.cross(to_e, s.v)
        to_h -= g_tilt.item() * (UP - np.cos(s.tilt) * along) / (np.sin(s.tilt) * momentum)
        ray = s.r / distance
        by_r = to_axis * ray / distance**2 - (to_e - ray * (ray @ to_e)) / distance
        by_v = to_axis * s.v + np.cross(s.h, to_e)
        return {
            "position": pb.asarray(by_r + np.cross(s.v, to_h)),
            "velocity": pb.asarray(by_v + np.cross(to_h, s.r)),
        }

    return pb.autograd_function(forward, backward, name="classical_elements")


def encounter(rng):
    root = np.array([[1.2, 0.0], [0.4, 0.7]]) + 0.05 * rng.normal(size=(2, 2))
    return (t(rng.uniform(0.3, 1.2, 2)), t(root @ root.T), t(np.array(0.6))), {"rings": 12}


@BOOK.right(encounter)
def collision_probability():
    @pb.autograd_function
    def collision_probability(ctx, miss, covariance, radius, rings=16, spokes=24):
        """Chance that two objects meet: a Gaussian over a disc of the radius, by quadrature.

        miss: (2,) and covariance: (2, 2), symmetric positive definite, in the encounter's plane.
        """
        C, R = covariance.numpy(), radius.item()
        if not np.allclose(C, C.T, rtol=0, atol=1e-12) or np.linalg.eigvalsh(C)[0] <= 0:
            raise ValueError("covariance must be symmetric positive definite")
        nodes, weights = np.polynomial.legendre.leggauss(rings)
        u, angle = 0.5 * (nodes + 1), 2 * np.pi * np.arange(spokes) / spokes
        ray = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        apart = R * u[:, None, None] * ray - miss.numpy()
        inverse = np.linalg.inv(C)
        shape = np.exp(-0.5 * np.einsum("rsi,ij,rsj->rs", apart, inverse, apart))
        mass = shape * (0.5 * weights * u * R**2 / spokes)[:, None] / np.sqrt(np.linalg.det(C))
        ctx.inverse, ctx.R, ctx.u, ctx.ray = inverse, R, u, ray
        ctx.apart, ctx.mass = apart, mass
        return pb.asarray(np.array(mass.sum()))

    @collision_probability.backward
    @pb.once_differentiable
    def _(ctx, g):
        mass = g.item() * ctx.mass
        steep = ctx.apart @ ctx.inverse
        outward = np.einsum("r,si,rsi->rs", ctx.u, ctx.ray, steep)
        spread = np.einsum("rs,rsi,rsj->ij", mass, steep, steep)
        return {
            "miss": pb.asarray(np.einsum("rs,rsi->i", mass, steep)),
            "covariance": pb.asarray(0.5 * (spread - mass.sum() * ctx.inverse)),
            "radius": (mass * (2 / ctx.R - outward)).sum(),
        }

    return collision_probability


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1.0, 1.4, 5)), t(np.array([0.2, 1.7, -2.6, 3.0, -0.4]))),
        {"elapsed": np.array([0.0, 4.0, 11.5, -7.0, 30.0])},
    )
)
def propagated_phase():
    @pb.autograd_function
    def propagated_phase(ctx, axis, phase, elapsed=1.0, *, modulo=2 * np.pi):
        """Mean anomaly after a time, in [-pi, pi), and the whole revolutions made till then."""
        motion = axis.numpy() ** -1.5
        total = phase.numpy() + motion * elapsed
        turns = np.floor(total / modulo + 0.5)
        ctx.save_for_backward(axis=axis, motion=motion)
        ctx.elapsed = elapsed
        return pb.asarray(total - modulo * turns), pb.asarray(turns.astype(np.int64))

    @propagated_phase.backward
    @pb.once_differentiable
    def _(ctx, g_phase, g_turns):
        axis, motion = ctx.saved_variables
        slope = -1.5 * motion / axis.numpy() * ctx.elapsed
        return {"axis": pb.asarray(g_phase.numpy() * slope), "phase": g_phase.clone()}

    return propagated_phase
