"""Elevators: flight times, traffic, traction, ropes and rails, drives, doors, waiting."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, Book, mends, t

BOOK = Book("elevators")
G = 9.81


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(40, 120, 8)), t(np.array(11.0))), {}),
    "every floor is in the total too, by which the shares are divided: that term is missing",
    MISSING,
    r"\btotal\b|normali[sz]|denominator|quotient|\bshares?\b",
    mends("(by_share - by_share @ s.share)", "by_share - (by_share @ s.share)", "- s.share @"),
)
def expected_stops():
    def forward(ctx, population, passengers):
        """Expected number of stops above the lobby.

        population: (n,) persons on each floor; passengers: persons in the car, not always whole.
        """
        people, P = population.numpy(), passengers.item()
        share = people / people.sum()
        passed = (1 - share) ** P
        ctx.save_for_backward(share=share, passed=passed, total=people.sum())
        ctx.P = P
        return pb.asarray(np.array(len(people) - passed.sum()))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, flow = ctx.saved_variables, grad_output.item()
        by_share = flow * ctx.P * s.passed / (1 - s.share)
        by_P = -flow * (s.passed @ np.log1p(-s.share))
        return {"population": pb.asarray(by_share / s.total), "passengers": by_P}

    return pb.autograd_function(forward, backward, name="expected_stops")


def trip(rng, distance):
    return (t(distance * rng.uniform(0.9, 1.1, 4)), t(2.5), t(1.0), t(1.2)), {}


@BOOK.wrong(
    lambda rng: trip(rng, np.array([3.4, 6.8, 13.6, 41.0])),
    "on a short hop time grows with the cube root of distance, but its gradient has the factor "
    "1/2 of a square root",
    FACTOR,
    r"cube.root|cubic|\bexponent\b|1 ?/ ?3|third",
    r"short(?:est)? (?:hop|trip|run|flight|distance)|\bhops?\b|small distance|\bbranch",
    mends("s.time / (3 * d)", "s.time / 3 / d", "s.time / (3.0 * d)", "s.time / d / 3"),
    where="the car does not reach its acceleration",
    shows=lambda rng: trip(rng, np.array([0.3, 0.8, 1.1, 6.8])),
)
def flight_time():
    @pb.autograd_function
    def flight_time(ctx, distance, speed, acceleration, jerk):
        """Times of flights from rest to rest with limited speed, acceleration and jerk."""
        d, v, a, j = distance.numpy(), speed.item(), acceleration.item(), jerk.item()
        if a * a > v * j or (d <= 0).any():
            raise ValueError("the acceleration is never reached, or a distance is not positive")
        root = np.sqrt(4 * d / a + (a / j) ** 2)
        kind = [d >= v * v / a + v * a / j, d >= 2 * a**3 / j**2]
        time = np.select(kind, [d / v + v / a + a / j, a / j + root], np.cbrt(32 * d / j))
        ctx.save_for_backward(d=distance, root=root, time=time.copy())
        ctx.kind, ctx.limits = kind, (v, a, j)
        return pb.asarray(time)

    @flight_time.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, (v, a, j), gn = ctx.saved_variables, ctx.limits, g.numpy()
        d, root = s.d.numpy(), s.root
        by_d = np.select(ctx.kind, [1 / v, 2 / (a * root)], s.time / (2 * d))
        by_v = np.select(ctx.kind, [1 / a - d / v**2, 0.0], 0.0)
        by_a = [1 / j - v / a**2, 1 / j + (a / j**2 - 2 * d / a**2) / root]
        by_j = np.select(ctx.kind, [-a / j**2, -a / j**2 * (1 + a / j / root)], -s.time / (3 * j))
        return {
            "distance": pb.asarray(gn * by_d),
            "speed": gn @ by_v,
            "acceleration": gn @ np.select(ctx.kind, by_a, 0.0),
            "jerk": gn @ by_j,
        }

    return flight_time


def sheave(rng, load):
    return (t(1150.0), t(load * rng.uniform(0.9, 1.1, 3)), t(1650.0), t(0.21)), {}


@BOOK.wrong(
    lambda rng: sheave(rng, np.array([750.0, 900.0, 1000.0])),
    "with an empty car the ratio is turned over, but the gradient is still that of the loaded car",
    r"heavier|lighter|\bempty\b|which side|turned over|invert|reciprocal|upside|other side",
    r"\bbranch|max(?:imum)?\b|min(?:imum)?\b|\bsides?\b",
    mends("s.car_side > s.other", "s.car_side >= s.other", "s.car_side < s.other", "np.where("),
    where="the car is the lighter side",
    shows=lambda rng: sheave(rng, np.array([60.0, 130.0, 0.0])),
)
def traction_margin():
    @pb.autograd_function
    def traction_margin(ctx, car, load, counterweight, friction, wrap=np.pi, acceleration=0.5):
        side = (car.item() + load.numpy()) * (G + acceleration)
        other = counterweight.item() * (G - acceleration)
        ratio = np.maximum(side, other) / np.minimum(side, other)
        grip = np.exp(friction.item() * wrap)
        ctx.save_for_backward(car_side=side, other=other)
        ctx.wrap, ctx.grip, ctx.acceleration = wrap, grip, acceleration
        return pb.asarray(grip - ratio)

    @traction_margin.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_side = -gn / s.other
        by_other = gn * s.car_side / s.other**2
        by_load = by_side * (G + ctx.acceleration)
        return {
            "car": by_load.sum(),
            "load": pb.asarray(by_load),
            "counterweight": by_other.sum() * (G - ctx.acceleration),
            "friction": gn.sum() * ctx.wrap * ctx.grip,
        }

    return traction_margin


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(600, 2100, 4)), t(rng.uniform(4, 70, 4)), t(np.array(7.1e10))),
        {"ropes": 5},
    )
)
def rope_stretch():
    @pb.autograd_function
    def rope_stretch(ctx, mass, length, modulus, ropes=6, diameter=0.01, weight=0.35):
        """Elongation in metres of the ropes that carry a car, and their own weight besides.

        mass: (n,) kg; length: (n,) m between sheave and car; modulus: Pa;
        diameter: m; weight: kg per metre of one rope.
        """
        L, E = length.numpy(), modulus.item()
        section = ropes * 0.45 * np.pi / 4 * diameter**2
        pull = G * (mass.numpy() + weight * ropes * L / 2)
        ctx.save_for_backward(pull, length)
        ctx.E, ctx.section, ctx.own = E, section, G * weight * ropes / 2
        return pb.asarray(pull * L / (section * E))

    @rope_stretch.backward
    @pb.once_differentiable
    def _(ctx, g):
        pull, length = ctx.saved_variables
        L = length.numpy()
        soft = g.numpy() / (ctx.section * ctx.E)
        return {
            "mass": pb.asarray(soft * G * L),
            "length": pb.asarray(soft * (pull + ctx.own * L)),
            "modulus": -(soft * pull * L).sum() / ctx.E,
        }

    return rope_stretch


@BOOK.right(
    lambda rng: ((t(np.repeat([0.9, 0.0, -0.9], 4) + 0.05 * rng.normal(size=12)), 0.25), {})
)
def ride_position():
    class RidePosition(pb.Function):
        """Speed and height of a car from its accelerometer, after it has stood at `start`."""

        @staticmethod
        def forward(ctx, acceleration, dt, start=0.0):
            speed = np.cumsum(acceleration.numpy()) * dt
            before = np.concatenate([[0.0], speed[:-1]])
            ctx.dt = dt
            return pb.asarray(speed), pb.asarray(start + np.cumsum(before + speed) * dt / 2)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_speed, g_height):
            later = np.cumsum(g_height.numpy()[::-1])[::-1] * ctx.dt / 2
            to_speed = g_speed.numpy() + later
            to_speed[:-1] += later[1:]
            return pb.asarray(np.cumsum(to_speed[::-1])[::-1] * ctx.dt), None, None

    return RidePosition.apply


@BOOK.right(
    lambda rng: (
        (t(np.array([14.0, 3.0, 2.0, 19.0, 16.0, 1.0]) + rng.random(6)), t(10.4)),
        {"waiting": 2.0},
    )
)
def lobby_queue():
    def forward(ctx, arrivals, capacity, waiting=0.0):
        """Persons left behind in the lobby by each departing car."""
        behind, full = [], []
        for new in arrivals.numpy():
            over = waiting + new - capacity.item()
            full.append(over > 0)
            waiting = max(over, 0.0)
            behind.append(waiting)
        ctx.full = full
        return pb.asarray(np.array(behind))

    @pb.once_differentiable
    def backward(ctx, g):
        by_arrivals, to_queue = np.zeros(len(ctx.full)), 0.0
        for k in range(len(ctx.full) - 1, -1, -1):
            to_queue = ctx.full[k] * (to_queue + g.numpy()[k])
            by_arrivals[k] = to_queue
        return {"arrivals": pb.asarray(by_arrivals), "capacity": -by_arrivals.sum()}

    return pb.autograd_function(forward, backward, name="lobby_queue")


@BOOK.right(
    lambda rng: (
        (t(np.array([1.0, 22.4, 48.7])), t(np.array([1.6, 1.6, 2.5])), t(8.5)),
        {"calls": np.array([0, 3, 9, 12, 15]), "stops": np.array([0, 2, 1])},
    )
)
def nearest_car():
    @pb.autograd_function
    def nearest_car(ctx, height, speed, stop_time, calls, stops=None, storey=3.3):
        """Seconds until the first car answers each call, and which car that is.

        height, speed: (cars,); calls: floors, whole numbers; stops: each car's stops on the way.
        """
        x, v = height.numpy(), speed.numpy()
        halts = np.zeros(len(x)) if stops is None else np.asarray(stops)
        way = x[:, None] - storey * np.asarray(calls)
        seconds = np.abs(way) / v[:, None] + (halts * stop_time.item())[:, None]
        car = seconds.argmin(axis=0)
        ctx.car, ctx.halts = car, halts
        ctx.way = way[car, np.arange(way.shape[1])]
        ctx.save_for_backward(speed=speed)
        return pb.asarray(seconds.min(axis=0)), pb.asarray(car)

    @nearest_car.backward
    @pb.once_differentiable
    def _(ctx, g_seconds, g_car):
        gn, v = g_seconds.numpy(), ctx.saved_variables.speed.numpy()
        by_height, by_speed = np.zeros_like(v), np.zeros_like(v)
        np.add.at(by_height, ctx.car, gn * np.sign(ctx.way) / v[ctx.car])
        np.add.at(by_speed, ctx.car, -gn * np.abs(ctx.way) / v[ctx.car] ** 2)
        return {
            "height": pb.asarray(by_height),
            "speed": pb.asarray(by_speed),
            "stop_time": gn @ ctx.halts[ctx.car],
        }

    return nearest_car


@BOOK.right(
    lambda rng: (
        (
            t(np.array([310.0, 180, -95, -240, 60, -130]) + rng.normal(size=6)),
            t(rng.uniform(4, 17, 6)),
            t(0.82),
        ),
        {"mode": "regenerative", "dt": 2.0},
    )
)
def drive_energy():
    @pb.autograd_function
    def drive_energy(ctx, torque, omega, efficiency, mode="resistor", dt=1.0):
        """Energy from the mains in kJ; mode "resistor" burns what the machine brakes."""
        if mode not in ("resistor", "regenerative"):
            raise ValueError(f"unknown mode {mode!r}")
        eta = efficiency.item()
        power = torque.numpy() * omega.numpy()
        back = eta if mode == "regenerative" else 0.0
        factor = np.where(power > 0, 1 / eta, back)
        by_eta = np.where(power > 0, -1 / eta**2, float(mode == "regenerative"))
        ctx.save_for_backward(torque=torque, omega=omega, factor=factor * dt / 1000)
        ctx.by_eta = by_eta @ power * dt / 1000
        return pb.asarray(np.array(factor @ power * dt / 1000))

    @drive_energy.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, flow = ctx.saved_variables, g.item()
        return {
            "torque": pb.asarray(flow * s.factor * s.omega.numpy()),
            "omega": pb.asarray(flow * s.factor * s.torque.numpy()),
            "efficiency": flow * ctx.by_eta,
        }

    return drive_energy


@BOOK.right(
    lambda rng: (
        (t(2.7), t(np.array([900.0, 5200, 9800, 12500]) * rng.uniform(0.95, 1.05, 4)), t(3400.0)),
        {"dt": 0.2},
    )
)
def emergency_stop():
    @pb.autograd_function
    def emergency_stop(ctx, speed, brake, mass, dt=0.1):
        """Way of the car until it stands; the brake's last force in N is held until then."""
        forces, v, m, way = brake.numpy(), speed.item(), mass.item(), 0.0
        if (forces <= 0).any() or m <= 0 or v < 0:
            raise ValueError("forces and mass must be positive, the speed not negative")
        steps = []
        for k, force in enumerate(forces):
            a = force / m
            steps.append((v, a))
            if v <= a * dt or k == len(forces) - 1:
                way += v * v / (2 * a)
                break
            way += v * dt - a * dt * dt / 2
            v -= a * dt
        ctx.save_for_backward(brake=brake, m=m)
        ctx.steps, ctx.dt = steps, dt
        return pb.asarray(np.array(way))

    @emergency_stop.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, dt, flow = ctx.saved_variables, ctx.dt, g.item()
        forces = s.brake.numpy()
        *earlier, (v, a) = ctx.steps
        by_a = np.zeros_like(forces)
        by_a[len(earlier)], to_v = -flow * v * v / (2 * a * a), flow * v / a
        for k in reversed(range(len(earlier))):
            by_a[k] = -to_v * dt - flow * dt * dt / 2
            to_v += flow * dt
        return {"speed": to_v, "brake": pb.asarray(by_a / s.m), "mass": -by_a @ forces / s.m**2}

    return emergency_stop


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(300, 1400, 5)), t(np.array([0.4, 3.1, 8.9, 17.2, 30.6])), t(2.5), t(1.9e5)),
        {},
    )
)
def guide_rail_bending():
    def forward(ctx, force, height, spacing, stiffness):
        F, h, s, EI = force.numpy(), height.numpy(), spacing.item(), stiffness.item()
        bay = np.floor(h / s)
        below = h - bay * s
        above = s - below
        shape = (below * above) ** 2 / (3 * s)
        ctx.save_for_backward(force=force, bay=bay, below=below, above=above, shape=shape)
        ctx.s, ctx.EI = s, EI
        return pb.asarray(F * shape / EI)

    @pb.once_differentiable
    def backward(ctx, g):
        v, s = ctx.saved_variables, ctx.s
        F = v.force.numpy()
        flow = g.numpy() * F / ctx.EI
        # a longer bay lifts all brackets below as well
        by_below = 2 * v.below * v.above**2 / (3 * s)
        by_above = 2 * v.above * v.below**2 / (3 * s)
        by_spacing = (1 + v.bay) * by_above - v.bay * by_below - v.shape / s
        return {
            "force": pb.asarray(g.numpy() * v.shape / ctx.EI),
            "height": pb.asarray(flow * (by_below - by_above)),
            "spacing": flow @ by_spacing,
            "stiffness": -(flow @ v.shape) / ctx.EI,
        }

    return pb.autograd_function(forward, backward, name="guide_rail_bending")


@BOOK.right(
    lambda rng: (
        (t(np.array([420.0, 260.0, -130.0, 0.0])), t(np.array([1.2, 9.5, 1.4, 12.0]))),
        {},
    )
)
def rms_torque():
    @pb.autograd_function
    def rms_torque(ctx, torque, duration):
        if not np.asarray(torque.detach().numpy()).any():
            raise ValueError("no torque in the whole cycle")
        ctx.save_for_backward(torque=torque, duration=duration)
        return ((torque**2 * duration).sum() / duration.sum()).sqrt()

    @rms_torque.backward
    def _(ctx, g):
        s = ctx.saved_variables
        cycle = s.duration.sum()
        square = (s.torque**2 * s.duration).sum() / cycle
        flow = g / (cycle * square.sqrt())
        return {
            "torque": flow * s.torque * s.duration,
            "duration": flow * (s.torque**2 - square) / 2,
        }

    return rms_torque


@BOOK.right(
    lambda rng: ((t(rng.uniform(30, 90, 5)), t(np.array([0.45, 0.35, 0.2]))), {"demand": 62.0})
)
def trip_table():
    @pb.autograd_function
    def trip_table(ctx, population, mix, demand=1.0):
        """Trips from floor (row) to floor (column); floor 0 is the lobby.

        population: (n,) on the floors above, at least two; mix: (3,) incoming, outgoing and
        interfloor parts of the demand.
        """
        people, (into, out, inter) = population.numpy(), mix.numpy()
        if len(people) < 2:
            raise ValueError("there is no traffic between fewer than two floors")
        w = people / people.sum()
        between = np.outer(w, w)
        np.fill_diagonal(between, 0.0)
        trips = np.zeros((len(w) + 1,) * 2)
        trips[0, 1:], trips[1:, 0] = into * w, out * w
        trips[1:, 1:] = inter * between / between.sum()
        ctx.save_for_backward(mix=mix, w=w, between=between, people=people.sum())
        ctx.demand = demand
        return pb.asarray(demand * trips)

    @trip_table.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, ctx.demand * g.numpy()
        (into, out, inter), w, Q = s.mix.numpy(), s.w, s.between.sum()
        mean = (gn[1:, 1:] * s.between).sum() / Q
        off = (gn[1:, 1:] - mean) * (1 - np.eye(len(w)))
        by_w = into * gn[0, 1:] + out * gn[1:, 0] + inter / Q * ((off + off.T) @ w)
        return {
            "population": pb.asarray((by_w - by_w @ w) / s.people),
            "mix": pb.asarray(np.array([gn[0, 1:] @ w, gn[1:, 0] @ w, mean])),
        }

    return trip_table


@BOOK.right(lambda rng: ((t(1.8), t(0.9), t(9.0), np.array([0, 1, 4, 12, 7, 9])), {}))
def door_dwell():
    class DoorDwell(pb.Function):
        @staticmethod
        def forward(ctx, base, each, longest, moves, shortest=2.5):
            """How long the door stays open for so many persons in and out."""
            wish = base.item() + each.item() * moves
            held = np.maximum(wish, shortest)
            ctx.cut = held > longest.item()
            ctx.free = (wish > shortest) & ~ctx.cut
            ctx.moves = moves
            return pb.asarray(np.where(ctx.cut, longest.item(), held))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            gn = g.numpy()
            free = gn[ctx.free]
            return free.sum(), free @ ctx.moves[ctx.free], gn[ctx.cut].sum(), None, None

    return DoorDwell.apply


@BOOK.right(lambda rng: ((t(rng.gamma(1.5, 14, 11)),), {"percents": (50, 90, 95), "grace": 5.0}))
def wait_percentiles():
    @pb.autograd_function
    def wait_percentiles(ctx, waits, percents=(50, 90), grace=0.0):
        """Percentiles of the waiting times in seconds, less a time of grace that is not counted."""
        w = np.maximum(waits.numpy() - grace, 0.0)
        order = np.argsort(w, kind="stable")
        place = (len(w) - 1) * np.asarray(percents) / 100
        low = np.floor(place).astype(int)
        high = np.minimum(low + 1, len(w) - 1)
        part = place - low
        ctx.ends = [(order[low], 1 - part), (order[high], part)]
        ctx.counted = waits.numpy() > grace
        ranked = w[order]
        return pb.asarray(ranked[low] * (1 - part) + ranked[high] * part)

    @wait_percentiles.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad = np.zeros(len(ctx.counted))
        for index, weight in ctx.ends:
            np.add.at(grad, index, g.numpy() * weight)
        return {"waits": pb.asarray(grad * ctx.counted)}

    return wait_percentiles


@BOOK.right(lambda rng: ((t(0.21), t(43.0), t(8.8)), {"floors": 12, "cars": 4}))
def handled_passengers():
    @pb.autograd_function
    def handled_passengers(ctx, rate, fixed, stop_time, floors=10, cars=3, transfer=2.0):
        """Passengers in each car with which the cars just carry away those who arrive.

        rate: arrivals per second; fixed: seconds of a round trip without its stops; stop_time:
        seconds per stop; transfer: seconds per passenger for getting in and out.
        """
        share, N = rate.item() / cars, floors
        if N < 2 or share <= 0 or share * transfer >= 1:
            raise ValueError("the cars cannot carry so many, or there are too few floors")
        if fixed.item() < 0 or stop_time.item() < 0:
            raise ValueError("times must not be negative")
        stay = 1 - 1 / N
        # from above: the excess is convex, so that Newton's method comes down to the root
        P = share * (fixed.item() + stop_time.item() * (N + 1)) / (1 - share * transfer)
        for _ in range(100):
            stops = N * (1 - stay**P)
            trip = fixed.item() + stop_time.item() * (stops + 1) + transfer * P
            slope = 1 - share * (transfer - stop_time.item() * N * np.log(stay) * stay**P)
            step = (P - share * trip) / slope
            P -= step
            if abs(step) <= 1e-14 * P:
                break
        ctx.by = (P / rate.item() / slope, share / slope, share * (stops + 1) / slope)
        return pb.asarray(np.array(P))

    @handled_passengers.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_rate, by_fixed, by_stop_time = (g.item() * value for value in ctx.by)
        return {"rate": by_rate, "fixed": by_fixed, "stop_time": by_stop_time}

    return handled_passengers
