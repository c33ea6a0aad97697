"""Elevators and cranes: sway, ropes, outriggers, trips, traffic, wind, motors, buffers, brakes."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import FACTOR, MISSING, SHIFT, SWAPPED, Book, at, mends, t

BOOK = Book("cranes")
GRAVITY = 9.80665


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(-1, 1, 8)), t(np.array(6.0)), t(np.array(0.4))), {"dt": 0.2}),
    "backward takes the swing one step late: the angle after the step, not the one before it",
    SHIFT,
    r"\blate\b|\bearly\b|after the step|before the step|(?:next|wrong|previous) (?:step|angle)",
    r"\[k \+ 1\]|k \+ 1",
    mends("s.angles[k]", "angles[k]", "angles[:-1]", "ctx.angles[k]"),
)
def trolley_sway():
    class TrolleySway(pb.Function):
        """Swing of a load over time while its trolley accelerates; start: the first angle."""

        @staticmethod
        def forward(ctx, acceleration, rope, start, dt=0.1, damping=0.05):
            a, L = acceleration.numpy(), rope.item()
            angles, rates = [start.item()], [0.0]
            for k in range(len(a)):
                q, w = angles[-1], rates[-1]
                w = w - dt * ((GRAVITY * np.sin(q) + a[k] * np.cos(q)) / L + damping * w)
                rates.append(w)
                angles.append(q + dt * w)
            ctx.save_for_backward(a=a, L=L, angles=angles)
            ctx.dt, ctx.damping = dt, damping
            return pb.asarray(np.array(angles[1:]))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            a, L, angles = ctx.saved_variables
            gn, dt = grad_output.numpy(), ctx.dt
            by_a, by_rope, to_q, to_w = np.zeros_like(gn), 0.0, 0.0, 0.0
            for k in range(len(gn) - 1, -1, -1):
                to_q += gn[k]
                to_w += dt * to_q
                q = angles[k + 1]
                by_a[k] = -dt * to_w * np.cos(q) / L
                by_rope += dt * to_w * (GRAVITY * np.sin(q) + a[k] * np.cos(q)) / L**2
                to_q -= dt * to_w * (GRAVITY * np.cos(q) - a[k] * np.sin(q)) / L
                to_w *= 1 - dt * ctx.damping
            return pb.asarray(by_a), by_rope, to_q, None, None

    return TrolleySway.apply


def sheave(rng):
    return t(rng.uniform(5, 9, 3)), t(rng.uniform(0.08, 0.12, 3)), t(rng.uniform(2.8, 3.4, 3))


@BOOK.wrong(
    lambda rng: (sheave(rng), {}),
    "the wedge factor of the groove is missing from the gradients of friction and wrap",
    at("groove"),
    FACTOR + r"|multipl|divided by",
    r"\bwedge|\bsine?\b|\bV.?shape|chain rule",
    mends("* ctx.wedge", "ctx.wedge *", "* s.wedge", "s.wedge *", "ctx.wedge"),
    where="a groove is given",
    shows=lambda rng: (sheave(rng), {"groove": np.radians(40.0)}),
)
def rope_grip():
    @pb.autograd_function
    def rope_grip(ctx, slack, friction, wrap, groove=None):
        """Greatest pull before ropes slip on a sheave; groove: angle of a V-groove, or flat."""
        wedge = 1.0 if groove is None else 1 / np.sin(groove / 2)
        pull = slack.numpy() * np.exp(wedge * friction.numpy() * wrap.numpy())
        ctx.save_for_backward(slack=slack, friction=friction, wrap=wrap, pull=pull)
        return pb.asarray(pull.copy())

    @rope_grip.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        slack, friction, wrap, pull = ctx.saved_variables
        flow = grad_output.numpy() * pull
        return {
            "slack": pb.asarray(flow / slack.numpy()),
            "friction": pb.asarray(flow * wrap.numpy()),
            "wrap": pb.asarray(flow * friction.numpy()),
        }

    return rope_grip


@BOOK.wrong(
    lambda rng: (
        (t(np.array(48.0)), t(rng.uniform(-1, 1, 5)), t(rng.uniform(-1, 1, 5))),
        {"length": 7.2, "width": 6.0},
    ),
    "the gradients along and across are swapped",
    SWAPPED,
    r"each other|\bother (?:argument|offset)|mixed up|wrong order|crossed",
    mends(
        "gn @ SIDES[0]",
        "gn @ LENGTHWISE",
        "by_ahead, by_aside",
        "SIDES[0] / length",
    ),
)
def outrigger_loads():
    SIDES = np.array([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 1.0, -1.0]])

    def forward(ctx, weight, ahead, aside, length=6.0, width=6.0):
        """Loads of four outriggers: (positions, 4), as the load's centre moves."""
        W, x, y = weight.item(), ahead.numpy() / length, aside.numpy() / width
        share = 0.25 + 0.5 * (np.outer(x, SIDES[0]) + np.outer(y, SIDES[1]))
        ctx.save_for_backward(W=W, share=share)
        ctx.length, ctx.width = length, width
        return pb.asarray(W * share)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_sides = 0.5 * s.W * gn @ SIDES.T
        by_ahead = by_sides[:, 0] / ctx.length
        by_aside = by_sides[:, 1] / ctx.width
        return np.vdot(gn, s.share), pb.asarray(by_aside), pb.asarray(by_ahead), None, None

    return pb.autograd_function(forward, backward, name="outrigger_loads")


def hoistway(distances):
    return (t(np.array(distances)), t(np.array(2.5)), t(np.array(1.1))), {"jerk": 1.4}


@BOOK.wrong(
    lambda rng: hoistway([12.0, 30.0, 18.0]),
    "a short trip never reaches the rated speed, yet gets the gradient of a long one",
    r"\bshort|\bbranch|full speed|(?:rated|top|never|not) (?:reach|speed)|does not reach",
    r"\btriangular\b|threshold|other formula|\bpiece",
    mends("np.where(s.long", "np.where(ctx.long", "s.short", "ctx.short", "[~s.long]", "ctx.long"),
    where="a trip is too short for the rated speed",
    shows=lambda rng: hoistway([12.0, 4.0, 5.0]),
)
def lift_trip_times():
    @pb.autograd_function
    def lift_trip_times(ctx, distance, rated, acceleration, jerk=1.5):
        """Times of a lift's trips with limits of speed, acceleration and jerk."""
        d, v, a = distance.numpy(), rated.item(), acceleration.item()
        if (d < 2 * a**3 / jerk**2).any():
            raise ValueError("a trip is too short for the acceleration")
        long = d >= v**2 / a + a * v / jerk
        half = a / (2 * jerk)
        peaked = 2 * half + 2 * np.sqrt(half**2 + d / a)
        ctx.save_for_backward(d=d, v=v, a=a)
        ctx.jerk = jerk
        return pb.asarray(np.where(long, d / v + v / a + a / jerk, peaked))

    @lift_trip_times.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        d, v, a = ctx.saved_variables
        gn = grad_output.numpy()
        return {
            "distance": pb.asarray(gn / v),
            "rated": (gn * (1 / a - d / v**2)).sum(),
            "acceleration": (gn * (1 / ctx.jerk - v / a**2)).sum(),
        }

    return lift_trip_times


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(20, 80, 5)), t(np.array(9.0))), {"interfloor": 3.6}),
    "the stops depend on the number of riders too, but only the highest floor's part is there",
    MISSING,
    r"\bstops?\b.{0,40}(?:depend|part|term|riders)|\bincomplete\b|second term|other term",
    r"chain rule|\blog(?:arithm)?\b",
    mends("np.log(1 - s.p)", "np.log1p(-s.p)", "np.log1p(-p)", "np.log(1 - p)", "s.missed *"),
)
def round_trip_time():
    @pb.autograd_function
    def round_trip_time(ctx, people, riders, interfloor=3.3, speed=2.5, stop=7.0):
        """Round trip of a lift at the morning peak; people: living on each floor."""
        n, P = people.numpy(), riders.item()
        p = n / n.sum()
        missed = (1 - p) ** P
        below = np.cumsum(p)[:-1]
        stops, top = len(n) - missed.sum(), len(n) - (below**P).sum()
        ctx.save_for_backward(p=p, P=P, missed=missed, below=below, total=n.sum())
        ctx.flight, ctx.stop = 2 * interfloor / speed, stop
        return pb.asarray(np.asarray(ctx.flight * top + stop * (stops + 1) + 2.0 * P))

    @round_trip_time.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        p, P, missed, below, total = ctx.saved_variables
        g = grad_output.item()
        by_p = ctx.stop * P * missed / (1 - p)
        by_below = -ctx.flight * P * below ** (P - 1)
        by_p[:-1] += np.cumsum(by_below[::-1])[::-1]
        by_riders = 2.0 - ctx.flight * (below**P) @ np.log(below)
        return {"people": pb.asarray(g * (by_p - by_p @ p) / total), "riders": g * by_riders}

    return round_trip_time


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(2, 14, 4)), t(rng.uniform(5, 20, 3))), {}),
    "the size of the wind is lost: its gradient is negated for negative speeds",
    r"negative|\bsigns?\b|absolute|\babs\b|magnitude|direction|\bsize\b|np\.sign",
    mends(
        "ctx.drag * np.abs(v)",
        "drag * abs(v)",
        "np.abs(s.v)",
        "np.sign(v) * v",
        "v * np.sign(v)",
        "np.abs(wind",
    ),
    where="a wind blows from the front (negative speed)",
    shows=lambda rng: (
        (t(np.array([-6.0, 4.0, -11.0, 8.0])), t(rng.uniform(5, 20, 3))),
        {},
    ),
)
def jib_wind_moment():
    @pb.autograd_function
    def jib_wind_moment(ctx, wind, area, arm=None, drag=1.3):
        """Moments: (winds,) of gusts on a jib's parts; negative: from the front."""
        v, A = wind.numpy(), area.numpy()
        lever = np.arange(1.0, len(A) + 1) * 8 if arm is None else arm
        pressure = 0.5 * 1.25 * drag * v * np.abs(v) / 1e3
        ctx.save_for_backward(v=v, A=A, lever=lever, pressure=pressure)
        ctx.drag = drag
        return pb.asarray(pressure * (A @ lever))

    @jib_wind_moment.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        v, A, lever, pressure = ctx.saved_variables
        gn = grad_output.numpy()
        by_wind = gn * 1.25 * ctx.drag * v / 1e3 * (A @ lever)
        return pb.asarray(by_wind), pb.asarray((gn @ pressure) * lever), None, None

    return jib_wind_moment


@BOOK.right(
    lambda rng: (
        (t(np.array([4.0, -3.0, 6.0, -5.0, 0.5])), t(np.array(1.6)), t(np.array(0.82))),
        {"seconds": np.array([10.0, 8, 12, 9, 20])},
    )
)
def hoist_energy():
    def forward(ctx, load, speed, efficiency, seconds, recovered=0.6):
        """Energy of a hoist over its duty; lowering (negative loads) gives a part back."""
        F, v, eta = load.numpy(), speed.item(), efficiency.item()
        lifting = F > 0
        gain = np.where(lifting, 1 / eta, recovered * eta)
        slope = np.where(lifting, -1 / eta**2, recovered)
        work = F * seconds
        ctx.save_for_backward(work=work, gain=gain, slope=slope, seconds=seconds)
        ctx.v = v
        return pb.asarray(np.asarray(v * (work @ gain)))

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        flow = g.item() * ctx.v
        return {
            "load": pb.asarray(flow * s.seconds * s.gain),
            "speed": g.item() * (s.work @ s.gain),
            "efficiency": flow * (s.work @ s.slope),
        }

    return pb.autograd_function(forward, backward, name="hoist_energy")


@BOOK.right(
    lambda rng: (
        (t(np.array([4.0, 11.3, 17.2, 26.0, 40.0])), t(np.array([20.0, 14.0, 8.5, 5.2, 3.0]))),
        {"radii": np.array([5.0, 10.0, 15.0, 20.0, 30.0])},
    )
)
def rated_capacity():
    @pb.autograd_function
    def rated_capacity(ctx, radius, chart, radii):
        """Capacity by radius from a load chart; beyond its ends, that of the end."""
        r = np.clip(radius.numpy(), radii[0], radii[-1])
        cell = np.clip(np.searchsorted(radii, r, side="right") - 1, 0, len(radii) - 2)
        part = (r - radii[cell]) / np.diff(radii)[cell]
        c = chart.numpy()
        slope = np.diff(c)[cell] / np.diff(radii)[cell]
        ctx.slope = np.where(r == radius.numpy(), slope, 0.0)
        ctx.cell, ctx.part, ctx.count = cell, part, len(c)
        return pb.asarray((1 - part) * c[cell] + part * c[cell + 1])

    @rated_capacity.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn, by_chart = g.numpy(), np.zeros(ctx.count)
        np.add.at(by_chart, ctx.cell, (1 - ctx.part) * gn)
        np.add.at(by_chart, ctx.cell + 1, ctx.part * gn)
        return {"radius": pb.asarray(gn * ctx.slope), "chart": pb.asarray(by_chart)}

    return rated_capacity


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(200, 900, 4)), t(rng.uniform(0.2, 0.9, 4)), t(np.array(0.45))),
        {"empty": 1200.0, "rated": 1000.0},
    )
)
def traction_imbalance():
    @pb.autograd_function
    def traction_imbalance(ctx, load, height, balance, empty=1000.0, rated=800.0, rope=2.5):
        """Difference of the forces on both sides of a sheave; height: part of the travel."""
        ctx.save_for_backward(load, height)
        ctx.rated, ctx.ropes = rated, 60.0 * rope
        counterweight = empty + balance * rated
        car = empty + load
        return GRAVITY * (car - counterweight + ctx.ropes * (1 - 2 * height))

    @traction_imbalance.backward
    def _(ctx, grad_output):
        flow = GRAVITY * grad_output
        return flow, -2 * ctx.ropes * flow, -ctx.rated * flow.sum(), None, None, None

    return traction_imbalance


@BOOK.right(
    lambda rng: ((t(rng.uniform(0.5, 2.2, 5)), t(np.array(18.0)), t(np.array(1.2))), {"stop": 0.1})
)
def buffer_stroke():
    class BufferStroke(pb.Function):
        """Travel of a spring buffer when a car of a mass in t hits it, past `stop` a stiffer one.

        speed: (n,) in m/s; stiffness in kN/m.
        """

        @staticmethod
        def forward(ctx, speed, stiffness, mass, stop=0.15, ratio=4.0):
            v, k, m = speed.numpy(), stiffness.item(), mass.item()
            energy = 0.5 * m * v**2
            soft = energy <= 0.5 * k * stop**2
            spare = (energy - 0.5 * k * stop**2) / (ratio * k)
            a = stop / ratio
            deep = stop - a + np.sqrt(np.where(soft, a**2, a**2 + 2 * spare))
            x = np.where(soft, np.sqrt(2 * energy / k), deep)
            force = np.where(soft, k * x, k * stop + ratio * k * (x - stop))
            beyond = np.maximum(x - stop, 0.0)
            first = x - beyond
            stored = 0.5 * first**2 + stop * beyond + 0.5 * ratio * beyond**2
            ctx.save_for_backward(v=v, m=m, force=force, stored=stored)
            return pb.asarray(x)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s = ctx.saved_variables
            flow = g.numpy() / s.force
            return {
                "speed": pb.asarray(flow * s.m * s.v),
                "stiffness": -(flow @ s.stored),
                "mass": 0.5 * flow @ s.v**2,
            }

    return BufferStroke.apply


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(4, 2))), t(rng.uniform(3, 6, 4)), t(np.array([0.2, -0.1]))),
        {"weight": 80.0},
    )
)
def sling_forces():
    @pb.autograd_function
    def sling_forces(ctx, points, lengths, centre, weight=10.0):
        """Forces in four slings on a rigid load: the balanced ones of least elastic energy."""
        P, W, c = points.numpy(), lengths.numpy(), centre.numpy()
        A = np.vstack([np.ones(4), P.T])
        b = weight * np.append(1.0, c)
        M = (A / W) @ A.T
        lam = np.linalg.solve(M, b)
        force = (A.T @ lam) / W
        ctx.save_for_backward(A=A, W=W, M=M, lam=lam, force=force)
        ctx.weight = weight
        return pb.asarray(force.copy())

    @sling_forces.backward
    @pb.once_differentiable
    def _(ctx, g):
        A, W, M, lam, force = ctx.saved_variables
        gn = g.numpy() / W
        mu = np.linalg.solve(M, A @ gn)
        rest = gn - (A.T @ mu) / W
        by_A = np.outer(lam, rest) - np.outer(mu, force)
        return {
            "points": pb.asarray(by_A[1:].T),
            "lengths": pb.asarray(-rest * force),
            "centre": pb.asarray(ctx.weight * mu[1:]),
        }

    return sling_forces


@BOOK.right(
    lambda rng: (
        (t(np.array([0.4, 0.35, 0.25])), t(np.array([0.0, 1.7, 3.6])), t(np.array(1.9))),
        {"damping": 0.03},
    )
)
def shaper_residual():
    @pb.autograd_function
    def shaper_residual(ctx, amplitudes, times, frequency, damping=0.0):
        """Swing that is left after the impulses of an input shaper, beside one impulse."""
        A, tau, w = amplitudes.numpy(), times.numpy(), frequency.item()
        swing = -damping * w + 1j * w * np.sqrt(1 - damping**2)
        terms = A * np.exp(swing * (tau[-1] - tau))
        total = terms.sum()
        ctx.save_for_backward(A=A, tau=tau, w=w, swing=swing, terms=terms, total=total)
        return pb.asarray(np.asarray(np.abs(total)))

    @shaper_residual.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        along = g.item() * np.conj(s.total) / np.abs(s.total)
        by_terms = (along * s.terms).real
        by_tau = -(along * s.terms * s.swing).real
        by_tau[-1] -= by_tau.sum()
        by_w = (along * (s.terms * (s.tau[-1] - s.tau)).sum() * s.swing / s.w).real
        return pb.asarray(by_terms / s.A), pb.asarray(by_tau), by_w, None

    return shaper_residual


@BOOK.right(lambda rng: ((t(rng.gamma(2.0, 12.0, 11)),), {"levels": (0.5, 0.9)}))
def waiting_levels():
    @pb.autograd_function
    def waiting_levels(ctx, waits, levels=(0.5, 0.95), long=60.0):
        """Quantiles of passengers' waits, and the number of those who wait long."""
        order = np.argsort(waits.numpy(), kind="stable")
        place = np.asarray(levels) * (len(order) - 1)
        low = np.minimum(place.astype(int), len(order) - 2)
        ctx.order, ctx.low, ctx.part = order, low, place - low
        w = waits.numpy()[order]
        values = (1 - ctx.part) * w[low] + ctx.part * w[low + 1]
        return pb.asarray(values), pb.asarray(np.asarray((w > long).sum()))

    @waiting_levels.backward
    @pb.once_differentiable
    def _(ctx, g_levels, g_number):
        gn, grad = g_levels.numpy(), np.zeros(len(ctx.order))
        np.add.at(grad, ctx.order[ctx.low], (1 - ctx.part) * gn)
        np.add.at(grad, ctx.order[ctx.low + 1], ctx.part * gn)
        return {"waits": pb.asarray(grad)}

    return waiting_levels


@BOOK.right(lambda rng: ((t(rng.uniform(0.1, 0.6, 4)), t(rng.uniform(2, 5, 4))), {"capacity": 6}))
def left_behind():
    @pb.autograd_function
    def left_behind(ctx, rate, interval, capacity=8):
        """Mean number of people left behind by a lift, of Poisson arrivals in an interval."""
        mean = rate.numpy() * interval.numpy() * 3
        full = special.pdtrc(capacity - 1, mean)
        fuller = special.pdtrc(capacity, mean)
        ctx.save_for_backward(rate=rate.numpy(), interval=interval.numpy(), full=full)
        return pb.asarray(mean * full - capacity * fuller)

    @left_behind.backward
    @pb.once_differentiable
    def _(ctx, g):
        rate, interval, full = ctx.saved_variables
        flow = 3 * g.numpy() * full
        return {"rate": pb.asarray(flow * interval), "interval": pb.asarray(flow * rate)}

    return left_behind
