"""Fire safety: design fires, plumes and smoke, toxic dose, structures, sprinklers, escape."""

from __future__ import annotations

import numpy as np
from scipy import optimize

import pullback as pb

from .entries import FACTOR, MISSING, Book, mends, t

BOOK = Book("fire_safety")
BOLTZMANN = 5.670374e-8


@BOOK.wrong(
    lambda rng: (
        (t(90.0 + 12.0 * np.arange(9) + rng.uniform(0, 9, 9)), t(rng.uniform(40, 110))),
        {"velocity": 1.8},
    ),
    "from one step to the one before the gradient lacks the factor by which the link forgets",
    FACTOR,
    r"\bforget|\bdecay|\bdamp|1 ?- ?(?:rate|ctx\.rate)|recursion|recurren|carr(?:y|ied) over",
    mends("(1 - ctx.rate)", "(1 - rate)", "(1.0 - ctx.rate)", "1 - ctx.rate"),
)
def link_temperature():
    @pb.autograd_function
    def link_temperature(ctx, gas, rti, velocity=1.0, start=20.0, dt=2.0):
        """Temperature of a sprinkler's link in a hot jet; rti in (m s)^0.5, gas: (n,) in C."""
        rate = dt * np.sqrt(velocity) / rti.item()
        link, lags, out = start, [], []
        for hot in gas.numpy():
            lags.append(hot - link)
            link += rate * lags[-1]
            out.append(link)
        ctx.rate, ctx.lags, ctx.rti = rate, np.array(lags), rti.item()
        return pb.asarray(np.array(out))

    @link_temperature.backward
    @pb.once_differentiable
    def _(ctx, g):
        to_link = np.cumsum(g.numpy()[::-1])[::-1]
        return {
            "gas": pb.asarray(ctx.rate * to_link),
            "rti": -ctx.rate / ctx.rti * (to_link @ ctx.lags),
        }

    return link_temperature


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(60, 140, 4)),
            t(rng.uniform(1.0, 1.8, 4)),
            t(np.array([12.0, 95.0, 20.0, 120.0])),
            t(rng.uniform(0.9, 1.2)),
        ),
        {},
    ),
    "only the longer of queueing and walking counts, but both get a gradient",
    r"\bmax(?:imum)?\b|\blonger\b|\bboth\b|\bbranch\b|\bwhere\b|\bselect",
    r"(?:should|must|expected|ought to)(?: be)? (?:0|zero)\b|\bnon-?zero\b",
    r"\bpiecewise\b|\bdominat",
    mends("s.queue >", "s.queue >=", "s.walk >", "s.walk <", "s.queue <", "ctx.queues"),
)
def exit_time():
    @pb.autograd_function
    def exit_time(ctx, people, width, distance, speed, warning=60.0):
        # people and clear width of each door in m, distance to it in m, speed in m/s
        clear = width.numpy() - 0.3
        if (clear <= 0).any():
            raise ValueError("a door is too narrow")
        queue, walk = people.numpy() / (1.3 * clear), distance.numpy() / speed.item()
        ctx.save_for_backward(queue=queue, walk=walk, clear=clear, speed=speed.item())
        return pb.asarray(warning + np.maximum(queue, walk))

    @exit_time.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        return {
            "people": pb.asarray(gn / (1.3 * s.clear)),
            "width": pb.asarray(-gn * s.queue / s.clear),
            "distance": pb.asarray(gn / s.speed),
            "speed": -(gn @ s.walk) / s.speed,
        }

    return exit_time


def under_ceiling(rng, radii):
    return (t(rng.uniform(400, 3000, 4)), t(rng.uniform(3.5, 6.0, 4)), t(np.array(radii))), {}


@BOOK.wrong(
    lambda rng: under_ceiling(rng, [0.1, 0.3, 0.45, 0.6]),
    "far from the axis the rise falls as 1 / height, but its gradient has the exponent of the "
    "region above the fire",
    r"\bfar\b|\bexponent|\bpower\b.{0,30}(?:wrong|5 ?/ ?3|region)|\bregion\b|turning|\bregime",
    r"\bpiecewise\b|\bbranch\b",
    FACTOR,
    mends("np.where(s.near, 5 / 3", "np.where(s.near, -5 / 3", "np.where(near, -5 / 3"),
    where="a radius of more than 0.18 of the height",
    shows=lambda rng: under_ceiling(rng, [0.2, 1.5, 3.0, 5.5]),
)
def ceiling_jet_rise():
    class CeilingJetRise(pb.Function):
        @staticmethod
        def forward(ctx, power, height, radius):
            """Alpert's rise of temperature under a ceiling; power in kW, the rest in m."""
            Q, H, r = power.numpy(), height.numpy(), radius.numpy()
            near = r <= 0.18 * H
            beside = np.where(near, H, r)
            rise = np.where(
                near, 16.9 * Q ** (2 / 3) / H ** (5 / 3), 5.38 * (Q / beside) ** (2 / 3) / H
            )
            ctx.save_for_backward(Q=Q, H=H, r=r, near=near, rise=rise)
            return pb.asarray(rise.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            Q, H, r, near, rise = ctx.saved_variables
            carried = g.numpy() * rise
            by_radius = np.zeros_like(r)
            by_radius[~near] = -2 / 3 * carried[~near] / r[~near]
            return (
                pb.asarray(2 / 3 * carried / Q),
                pb.asarray(-5 / 3 * carried / H),
                pb.asarray(by_radius),
            )

    return CeilingJetRise.apply


def pool_fire(rng):
    return t(rng.uniform(4000, 30000, 5)), t(rng.uniform(12, 60, 5))


@BOOK.wrong(
    lambda rng: (pool_fire(rng), {}),
    "in humid air the part that gets through depends on the distance: that term is missing",
    MISSING,
    r"\bhumid|transmi|-?0\.09|2\.09|\babsorb|\battenuat|chain rule",
    mends("-2.09", "2 + 0.09", "-0.09", "0.09 *", "- 0.09", "ctx.humid"),
    where="a vapour pressure is given",
    shows=lambda rng: (pool_fire(rng), {"vapour": 1400.0}),
)
def received_radiation():
    def forward(ctx, power, distance, fraction=0.3, vapour=None):
        """Radiation in kW/m2 from a point source; vapour: pressure of water in Pa, dry if None."""
        Q, x = power.numpy(), distance.numpy()
        passed = np.ones_like(x) if vapour is None else 2.02 * (vapour * x) ** -0.09
        received = passed * fraction * Q / (4 * np.pi * x**2)
        ctx.save_for_backward(Q=Q, x=x, received=received)
        return pb.asarray(received.copy())

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        carried = g.numpy() * s.received
        return {"power": pb.asarray(carried / s.Q), "distance": pb.asarray(-2 * carried / s.x)}

    return pb.autograd_function(forward, backward, name="received_radiation")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([40.0, 130.0, 290.0, 410.0, 590.0, 700.0, 1100.0])),
            t(rng.uniform(0.04, 0.06)),
            t(rng.uniform(2800, 3200)),
            t(rng.uniform(1450, 1550)),
        ),
        {},
    )
)
def design_fire():
    @pb.autograd_function
    def design_fire(ctx, seconds, growth, peak, load):
        """Heat release in kW of a fire that grows, burns steadily, and decays.

        seconds: (n,), since ignition; growth: in kW/s2; peak: in kW; load: all of the energy in
        MJ, of which 70 % burn before the decay.
        """
        x, a, P, E = seconds.numpy(), growth.item(), peak.item(), 1e3 * load.item()
        grown = np.sqrt(P / a)
        decays = 0.7 * E / P + 2 / 3 * grown
        if decays < grown:
            raise ValueError("the load burns out before the fire reaches its peak")
        phase = np.searchsorted([0.0, grown, decays, decays + 0.6 * E / P], x)
        falling = P - P**2 * (x - decays) / (0.6 * E)
        out = np.choose(phase, [0 * x, a * x**2, 0 * x + P, falling, 0 * x])
        ctx.save_for_backward(x=x, a=a, P=P, E=E, grown=grown, phase=phase, out=out)
        return pb.asarray(out.copy())

    @design_fire.backward
    @pb.once_differentiable
    def _(ctx, g):
        x, a, P, E, grown, phase, out = ctx.saved_variables
        gn, unit = g.numpy(), 1 / (0.6 * E)
        grows, steady, falls = (gn * (phase == k) for k in (1, 2, 3))
        by_P = 1 - unit * (2 * P * x - 0.7 * E - 5 / 3 * P * grown)
        by_E = 0.7 * P * unit + (P - out) / E
        return {
            "seconds": pb.asarray(grows * 2 * a * x - falls * unit * P**2),
            "growth": grows @ x**2 - falls.sum() * unit * P**2 * grown / (3 * a),
            "peak": steady.sum() + falls @ by_P,
            "load": 1e3 * (falls @ by_E),
        }

    return design_fire


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(900, 4200, 12)), t(rng.uniform(2, 7, 12))),
        {"dt": 0.5, "limit": 0.3},
    )
)
def incapacitation_time():
    @pb.autograd_function
    def incapacitation_time(ctx, monoxide, dioxide, dt=1.0, limit=0.3):
        # carbon monoxide in ppm, dioxide in percent; minutes until the dose reaches the limit
        rate = np.exp(dioxide.numpy() / 5) / 35000.0
        doses = dt * monoxide.numpy() * rate
        total = np.cumsum(doses)
        reached = total >= limit
        ctx.rate, ctx.doses, ctx.dt, ctx.step = rate, doses, dt, None
        if not reached.any():
            return pb.asarray(np.asarray(dt * len(doses))), pb.asarray(np.asarray(total[-1]))
        k = reached.argmax()
        ctx.step, ctx.part = k, (limit - total[k] + doses[k]) / doses[k]
        return pb.asarray(np.asarray(dt * (k + ctx.part))), pb.asarray(np.asarray(total[-1]))

    @incapacitation_time.backward
    @pb.once_differentiable
    def _(ctx, g_time, g_total):
        by_dose = np.full_like(ctx.doses, g_total.item())
        if ctx.step is not None:
            later = g_time.item() * ctx.dt / ctx.doses[ctx.step]
            by_dose[: ctx.step] -= later
            by_dose[ctx.step] -= later * ctx.part
        return {
            "monoxide": pb.asarray(ctx.dt * by_dose * ctx.rate),
            "dioxide": pb.asarray(by_dose * ctx.doses / 5),
        }

    return incapacitation_time


@BOOK.right(
    lambda rng: (
        (t(0.047 * (10.0 * np.arange(1, 15)) ** 2 * rng.uniform(0.9, 1.1, 14)), t(220.0), t(4.5)),
        {"dt": 10.0},
    )
)
def smoke_layer():
    @pb.autograd_function
    def smoke_layer(ctx, power, floor, ceiling, dt=5.0):
        """Height of the smoke layer in m after each step, by Zukoski's plume.

        power: (n,) in kW, positive; floor: area in m2; ceiling: height in m.
        """
        if (power.numpy() <= 0).any():
            raise ValueError("power must be positive")
        fill = dt * 0.076 * np.cbrt(power.numpy()) / (1.2 * floor.item())
        clear = np.empty(len(fill) + 1)
        clear[0] = ceiling.item()
        for k, f in enumerate(fill):
            clear[k + 1] = max(clear[k] - f * clear[k] ** (5 / 3), 0.0)
        ctx.save_for_backward(power=power, fill=fill, clear=clear)
        ctx.floor = floor.item()
        return pb.asarray(clear[1:].copy())

    @smoke_layer.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_fill, to_clear = np.zeros_like(gn), 0.0
        for k in reversed(range(len(gn))):
            to_clear = (to_clear + gn[k]) * (s.clear[k + 1] > 0)
            by_fill[k] = -to_clear * s.clear[k] ** (5 / 3)
            to_clear *= 1 - 5 / 3 * s.fill[k] * s.clear[k] ** (2 / 3)
        return {
            "power": pb.asarray(by_fill * s.fill / (3 * s.power.numpy())),
            "floor": -(by_fill @ s.fill) / ctx.floor,
            "ceiling": to_clear,
        }

    return smoke_layer


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(300, 1500, 5)),
            t(np.array([0.8, 2.0, 4.5, 11.0, 24.0])),
            t(np.array([[0.9, 2.0], [1.6, 1.1]])),
        ),
        {"surface": 62.0},
    )
)
def preflashover_temperature():
    # conductivity in kW/m K, density in kg/m3, heat capacity in kJ/kg K, thickness in m
    LININGS = {
        "plaster": (0.00048, 1440.0, 0.84, 0.016),
        "concrete": (0.0016, 2400.0, 0.75, 0.15),
        "brick": (0.0008, 2600.0, 0.8, 0.1),
    }

    @pb.autograd_function
    def preflashover_temperature(ctx, power, minutes, openings, surface, lining="plaster"):
        """Temperature of a room by McCaffrey, Quintiere and Harkleroad; widths and heights."""
        k, rho, c, thick = LININGS[lining]
        Q, x, (w, h) = power.numpy(), 60 * minutes.numpy(), openings.numpy().T
        early = x < thick**2 * rho * c / (4 * k)
        loss = np.where(early, np.sqrt(k * rho * c / x), k / thick)
        vent = (w * h**1.5).sum()
        rise = 6.85 * np.cbrt(Q**2 / (vent * loss * surface))
        ctx.save_for_backward(Q=Q, minutes=minutes, w=w, h=h, rise=rise, early=early, vent=vent)
        return pb.asarray(20.0 + rise)

    @preflashover_temperature.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        carried = g.numpy() * s.rise
        by_vent = -carried.sum() / (3 * s.vent)
        by_openings = by_vent * np.stack([s.h**1.5, 1.5 * s.w * np.sqrt(s.h)], axis=1)
        return {
            "power": pb.asarray(2 / 3 * carried / s.Q),
            "minutes": pb.asarray(carried * s.early / (6 * s.minutes.numpy())),
            "openings": pb.asarray(by_openings),
        }

    return preflashover_temperature


@BOOK.right(
    lambda rng: (
        (t(np.array([8.0, 26.0, 47.0, 95.0])), t(120.0), t(260.0), t(rng.uniform(0.6, 0.8))),
        {"sides": 3},
    )
)
def charred_modulus():
    @pb.autograd_function
    def charred_modulus(ctx, minutes, width, depth, rate, sides=4, layer=7.0):
        x, faces = minutes.numpy(), {3: 1, 4: 2}[sides]
        lost = rate.item() * x + layer * np.minimum(x / 20.0, 1.0)
        b = np.maximum(width.item() - 2 * lost, 0.0)
        h = np.maximum(depth.item() - faces * lost, 0.0)
        ctx.save_for_backward(x=x, b=b, h=h, rate=rate.item(), faces=faces, layer=layer)
        return pb.asarray(1e-3 * b * h**2 / 6)

    @charred_modulus.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, 1e-3 * g.numpy() / 6
        left = (s.b > 0) & (s.h > 0)
        by_b, by_h = gn * left * s.h**2, gn * left * 2 * s.b * s.h
        by_lost = -2 * by_b - s.faces * by_h
        return {
            "minutes": pb.asarray(by_lost * (s.rate + np.where(s.x < 20, s.layer / 20, 0.0))),
            "width": by_b.sum(),
            "depth": by_h.sum(),
            "rate": by_lost @ s.x,
        }

    return charred_modulus


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(760, 980, 30)), t(rng.uniform(120, 260)), t(0.7)),
        {"start": rng.choice([20.0, 560.0])},
    )
)
def steel_temperature():
    def heat_capacity(T):
        """Heat capacity of steel in J/kg K by EN 1993-1-2, and its slope."""
        if T < 600:
            value = 425 + 0.773 * T - 1.69e-3 * T**2 + 2.22e-6 * T**3
            return value, 0.773 - 3.38e-3 * T + 6.66e-6 * T**2
        if T < 735:
            return 666 + 13002 / (738 - T), 13002 / (738 - T) ** 2
        if T < 900:
            return 545 + 17820 / (T - 731), -17820 / (T - 731) ** 2
        return 650.0, 0.0

    @pb.autograd_function
    def steel_temperature(ctx, gas, factor, emissivity, start=20.0, dt=5.0, convection=25.0):
        """Temperatures of an unprotected member in C; gas: (n,), factor: in 1/m, up to 400."""
        F, e = factor.item(), emissivity.item()
        T, steps, out = start, [], []
        for hot in gas.numpy():
            kelvin, flame = T + 273.15, hot + 273.15
            shone = BOLTZMANN * (flame**4 - kelvin**4)
            flux = convection * (hot - T) + e * shone
            by_hot = convection + 4 * e * BOLTZMANN * flame**3
            by_T = -convection - 4 * e * BOLTZMANN * kelvin**3
            c, bend = heat_capacity(T)
            unit = dt / 7850.0 / c
            steps.append(
                (unit * flux, unit * shone, unit * by_hot, unit * (by_T - flux * bend / c))
            )
            T = T + F * unit * flux
            out.append(T)
        ctx.steps, ctx.factor = steps, F
        return pb.asarray(np.array(out))

    @steel_temperature.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn, F = g.numpy(), ctx.factor
        by_gas, by_factor, by_emissivity, to_T = np.zeros_like(gn), 0.0, 0.0, 0.0
        for k in reversed(range(len(gn))):
            heated, shone, by_hot, by_T = ctx.steps[k]
            to_T += gn[k]
            by_gas[k] = to_T * F * by_hot
            by_factor += to_T * heated
            by_emissivity += to_T * F * shone
            to_T += to_T * F * by_T
        return {"gas": pb.asarray(by_gas), "factor": by_factor, "emissivity": by_emissivity}

    return steel_temperature


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(0.6, 1.1)),
            t(np.array([80.0, 80.0, 80.0, 115.0]) * rng.uniform(0.95, 1.05, 4)),
            t(rng.uniform(2.5, 4.0, 4)),
            t(np.array([27.3, 27.3, 35.9, 41.9])),
        ),
        {},
    )
)
def sprinkler_branch():
    @pb.autograd_function
    def sprinkler_branch(ctx, pressure, orifice, length, diameter, roughness=120.0):
        """Flow in l/min into a branch and pressure in bar at its beginning.

        pressure: at the farthest head, positive; orifice: (n,), the K-factors from the farthest
        head to the nearest; length: (n,) in m and diameter: (n,) in mm of the pipe behind each.
        """
        K, L, d = orifice.numpy(), length.numpy(), diameter.numpy()
        if pressure.item() <= 0:
            raise ValueError("the farthest head needs pressure")
        p, flow, trail = pressure.item(), 0.0, []
        for k in range(len(K)):
            flow += K[k] * np.sqrt(p)
            per_metre = 6.05e5 * flow**1.85 / (roughness**1.85 * d[k] ** 4.87)
            trail.append((p, flow, per_metre))
            p += per_metre * L[k]
        ctx.save_for_backward(K=K, L=L, d=d)
        ctx.trail = trail
        return pb.asarray(np.asarray(flow)), pb.asarray(np.asarray(p))

    @sprinkler_branch.backward
    @pb.once_differentiable
    def _(ctx, g_flow, g_pressure):
        s, to_flow, to_p = ctx.saved_variables, g_flow.item(), g_pressure.item()
        by_K, by_L, by_d = (np.zeros_like(s.K) for _ in range(3))
        for k in reversed(range(len(s.K))):
            p, flow, per_metre = ctx.trail[k]
            loss = to_p * per_metre * s.L[k]
            by_L[k], by_d[k] = to_p * per_metre, -4.87 * loss / s.d[k]
            to_flow += 1.85 * loss / flow
            by_K[k] = to_flow * np.sqrt(p)
            to_p += to_flow * s.K[k] / (2 * np.sqrt(p))
        return {
            "pressure": to_p,
            "orifice": pb.asarray(by_K),
            "length": pb.asarray(by_L),
            "diameter": pb.asarray(by_d),
        }

    return sprinkler_branch


@BOOK.right(
    lambda rng: ((t(rng.uniform(5, 6)), t(rng.uniform(2.5, 4)), t(rng.uniform(250, 900, 4))), {})
)
def hydrant_flow():
    def forward(ctx, static, residual, nozzle, tested=1500.0, climb=0.4):
        # static pressure and that of the test flow in bar, K-factors of nozzles; flows in l/min
        P, R = static.item(), residual.item()
        if min(P - R, P - climb) <= 0:
            raise ValueError("the static pressure must be the highest")

        def spare(Q, K):
            return P - (P - R) * (Q / tested) ** 1.85 - climb - (Q / K) ** 2

        flows = []
        for K in nozzle.numpy():
            most = 1.01 * K * np.sqrt(P - climb)
            flows.append(optimize.brentq(spare, 0.0, most, args=(K,), xtol=1e-10, rtol=1e-14))
        ctx.save_for_backward(P=P, R=R, nozzle=nozzle, flows=np.array(flows))
        ctx.tested = tested
        return pb.asarray(np.array(flows))

    @pb.once_differentiable
    def backward(ctx, g):
        s, K = ctx.saved_variables, ctx.saved_variables.nozzle.numpy()
        Q, drawn = s.flows, (s.flows / ctx.tested) ** 1.85
        scale = g.numpy() / (1.85 * (s.P - s.R) * drawn / Q + 2 * Q / K**2)
        return {
            "static": scale @ (1 - drawn),
            "residual": scale @ drawn,
            "nozzle": pb.asarray(scale * 2 * Q**2 / K**3),
        }

    return pb.autograd_function(forward, backward, name="hydrant_flow")


@BOOK.right(
    lambda rng: (
        (t(np.array([[4.0, 3.5], [11.5, 4.2], [5.1, 11.0]]) + rng.uniform(-0.5, 0.5, (3, 2))),),
        {"places": rng.uniform(0, 15, (9, 2)), "wired": bool(rng.integers(2))},
    )
)
def detector_distance():
    @pb.autograd_function
    def detector_distance(ctx, detectors, places, wired=False):
        """Distance from each place to the nearest detector, and its index; wired: along walls."""
        apart = detectors.numpy() - places[:, None]
        if wired:
            distance = np.abs(apart).sum(axis=-1)
            toward = np.sign(apart)
        else:
            distance = np.sqrt((apart**2).sum(axis=-1))
            toward = apart / np.where(distance > 0, distance, 1.0)[..., None]
        nearest = distance.argmin(axis=1)
        rows = np.arange(len(places))
        ctx.nearest, ctx.toward, ctx.n = nearest, toward[rows, nearest], len(detectors)
        return pb.asarray(distance[rows, nearest]), pb.asarray(nearest)

    @detector_distance.backward
    @pb.once_differentiable
    def _(ctx, g_distance, g_nearest):
        by_detectors = np.zeros((ctx.n, ctx.toward.shape[1]))
        np.add.at(by_detectors, ctx.nearest, g_distance.numpy()[:, None] * ctx.toward)
        return {"detectors": pb.asarray(by_detectors)}

    return detector_distance


@BOOK.right(
    lambda rng: (
        (t(np.array([0.0, 14, 30, 42, 25, 11, 3, 1, 0, 6]) + rng.uniform(0.1, 2, 10)), t(21.5)),
        {"waiting": 4.0},
    )
)
def stairway_queue():
    class StairwayQueue(pb.Function):
        @staticmethod
        def forward(ctx, arrivals, capacity, waiting=0.0):
            most, queue = capacity.item(), waiting
            passed = np.empty(len(arrivals))
            ctx.jammed = np.zeros(len(arrivals), bool)
            for k, come in enumerate(arrivals.numpy()):
                queue += come
                passed[k] = min(queue, most)
                ctx.jammed[k] = queue > most
                queue -= passed[k]
            return pb.asarray(passed), pb.asarray(np.asarray(queue))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_passed, g_queue):
            gn, to_queue, by_capacity = g_passed.numpy(), g_queue.item(), 0.0
            by_arrivals = np.zeros_like(gn)
            for k in reversed(range(len(gn))):
                if ctx.jammed[k]:
                    by_capacity += gn[k] - to_queue
                else:
                    to_queue = gn[k]
                by_arrivals[k] = to_queue
            return pb.asarray(by_arrivals), by_capacity, None

    return StairwayQueue.apply


@BOOK.right(
    lambda rng: (
        (t(np.array([[0.05], [0.3], [0.9], [1.6]]) * rng.uniform(0.8, 1.2, (4, 5))),),
        {"sign": "reflecting", "lengths": np.array([2.0, 2.0, 4.0, 4.0, 3.0])},
    )
)
def sign_visibility():
    CONTRAST = {"reflecting": 3.0, "lit": 8.0}

    @pb.autograd_function
    def sign_visibility(ctx, extinction, sign="lit", lengths=None, cap=30.0):
        """Visibility in m of signs through smoke; extinction: (paths, parts) in 1/m."""
        k = extinction.numpy()
        weights = np.ones(k.shape[1]) if lengths is None else lengths
        ctx.weights = weights / weights.sum()
        mean = k @ ctx.weights
        clear = CONTRAST[sign] >= cap * mean
        seen = np.where(clear, cap, CONTRAST[sign] / np.where(clear, 1.0, mean))
        ctx.slope = np.where(clear, 0.0, -seen / np.where(clear, 1.0, mean))
        return pb.asarray(seen)

    @sign_visibility.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"extinction": pb.asarray((g.numpy() * ctx.slope)[:, None] * ctx.weights)}

    return sign_visibility


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(2, 9)), t(rng.uniform(2, 4)), t(rng.uniform(2, 14, 4)), t(880.0)),
        {"emissivity": 0.9},
    )
)
def facade_radiation():
    def half(x, y):
        """One of the two terms of the configuration factor."""
        s = (1 + x * x).sqrt()
        return x / s * (y / s).atan()

    def slope(x, y):
        square = 1 + x * x
        s = square.sqrt()
        return (y / s).atan() / (square * s) + y / (square * (square + y * y))

    @pb.autograd_function
    def facade_radiation(ctx, width, height, distance, celsius, emissivity=1.0):
        """Radiation in kW/m2 opposite the middle of a burning facade's opening.

        width, height: in m; distance: (n,) in m, positive; celsius: of the fire.
        """
        ctx.save_for_backward(width=width, height=height, distance=distance, celsius=celsius)
        ctx.emitted = 1e-3 * emissivity * BOLTZMANN
        x, y = width / (2 * distance), height / (2 * distance)
        kelvin = celsius + 273.15
        return ctx.emitted * kelvin**4 * (half(x, y) + half(y, x)) * (2 / np.pi)

    @facade_radiation.backward
    def _(ctx, g):
        s = ctx.saved_variables
        d, kelvin = s.distance, s.celsius + 273.15
        x, y = s.width / (2 * d), s.height / (2 * d)
        unit = 2 / np.pi * ctx.emitted * kelvin**3
        by_x, by_y = g * unit * kelvin * slope(x, y), g * unit * kelvin * slope(y, x)
        return {
            "width": (by_x / (2 * d)).sum(),
            "height": (by_y / (2 * d)).sum(),
            "distance": -(by_x * x + by_y * y) / d,
            "celsius": (4 * g * unit * (half(x, y) + half(y, x))).sum(),
        }

    return facade_radiation
