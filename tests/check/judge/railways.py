"""Railways: resistance, braking, traction, alignment, track quality, wear, timetables, loads."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import MISSING, SIGN, Book, mends, t

BOOK = Book("railways")

GRAVITY = 9.81


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(5, 45, 6)), t(np.array(412.0)), t(np.array([6.4, 0.14, 0.0105]))),
        {"gradient": rng.uniform(-8, 12, 6)},
    ),
    "the term linear in the speed is left out of the gradient of the speed",
    MISSING,
    r"linear|second coefficient|\bB\b|coefficients?\[1\]|davis\[1\]",
    mends("b + 2 * c * v", "2 * c * v + b", "s.b +", "davis[1] +", "+ davis[1]"),
)
def train_resistance():
    @pb.autograd_function
    def train_resistance(ctx, speed, mass, davis, gradient=None):
        """Resistance in kN after Davis, with that of the gradient in per mille.

        speed: (n,) in m/s; mass in t; davis: (3,) in kN, kN per m/s and kN per m2/s2.
        """
        v, (a, b, c) = speed.numpy(), davis.numpy()
        slope = np.zeros_like(v) if gradient is None else gradient
        ctx.save_for_backward(speed=speed, davis=davis)
        ctx.slope = slope
        return pb.asarray(a + b * v + c * v**2 + mass.item() * GRAVITY * slope / 1000)

    @train_resistance.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        v, c = s.speed.numpy(), s.davis.numpy()[2]
        return {
            "speed": pb.asarray(gn * 2 * c * v),
            "mass": gn @ ctx.slope * GRAVITY / 1000,
            "davis": pb.asarray(np.array([gn.sum(), gn @ v, gn @ v**2])),
        }

    return train_resistance


def curves(rng):
    return t(rng.uniform(18, 60, 5)), t(rng.uniform(350, 3000, 5))


@BOOK.wrong(
    lambda rng: (curves(rng), {}),
    "in a left-hand curve, of negative radius, the sign of the gradient of the radius is wrong",
    SIGN,
    r"negative|left.?hand|\babs(?:olute)?\b|direction of the curve",
    mends("np.sign(R)", "np.sign(s.radius", "np.abs(R)", "R * abs(R)", "R * np.abs"),
    where="a radius is negative",
    shows=lambda rng: (
        (curves(rng)[0], t(np.array([-420.0, 900.0, -1750.0, -610.0, 2300.0]))),
        {},
    ),
)
def cant_deficiency():
    def forward(ctx, speed, radius, cant=0.0, gauge=1500.0):
        """Cant in mm that is lacking for balance; radius in m, left-hand curves below 0."""
        v, R = speed.numpy(), radius.numpy()
        needed = gauge * v**2 / (GRAVITY * np.abs(R))
        ctx.save_for_backward(speed=speed, radius=radius, needed=needed)
        return pb.asarray(needed - cant)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s = ctx.saved_variables
        flow = grad_output.numpy() * s.needed
        return {
            "speed": pb.asarray(2 * flow / s.speed.numpy()),
            "radius": pb.asarray(-flow / np.abs(s.radius.numpy())),
        }

    return pb.autograd_function(forward, backward, name="cant_deficiency")


def timetable(rng):
    return (
        (t(np.array([0.0, 4.0, 7.5, 1.0, 0.0])), t(rng.uniform(1.0, 2.5, 5))),
        {"delay": t(np.array(9.0))},
    )


@BOOK.wrong(
    timetable,
    "a delay that was used up in the buffers is carried on all the same",
    r"used up|absorbed|on time|recover|clip|\bmaximum\b|early|should be (?:0|zero)|\bbranch\b",
    r"buffers?\b.{0,30}(?:exceed|larger|more)|\bnon-?zero\b",
    mends("> 0)", "late[k] > 0", "s.late", "if ctx.late", "* (s.", "ctx.late[k]"),
    where="a buffer is larger than the delay",
    shows=lambda rng: (
        (t(np.array([0.0, 1.0, 0.4, 6.0, 0.0])), t(rng.uniform(3.0, 6.0, 5))),
        {"delay": t(np.array(8.0))},
    ),
)
def delays_down_the_line():
    @pb.autograd_function
    def delays_down_the_line(ctx, disturbance, buffer, delay):
        """Minutes late at each stop: those before and new ones, less the buffer, not below 0."""
        late, out = delay.item(), []
        for new, spare in zip(disturbance.tolist(), buffer.tolist(), strict=True):
            late = max(late + new - spare, 0.0)
            out.append(late)
        return pb.asarray(np.array(out))

    @delays_down_the_line.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        after = np.cumsum(grad_output.numpy()[::-1])[::-1]
        return {
            "disturbance": pb.asarray(after.copy()),
            "buffer": pb.asarray(-after),
            "delay": after[0],
        }

    return delays_down_the_line


@BOOK.right(
    lambda rng: (
        (t(np.array([11.0, 28.0, 39.0, 22.0])), t(np.array(0.92))),
        {"slope": np.array([0.0, -6.0, 4.0, 11.0]), "reaction": 1.8},
    )
)
def braking_distance():
    @pb.autograd_function
    def braking_distance(ctx, speed, deceleration, slope, reaction=0.0, rotating=0.06):
        """Distance in m to a stop.

        speed: (n,) in m/s; deceleration on the level in m/s2; slope: (n,) in per mille, rising
        above 0; reaction: seconds at full speed; rotating: mass that turns, a part of the mass.
        """
        v = speed.numpy()
        net = deceleration.item() + GRAVITY * slope / 1000 / (1 + rotating)
        if (net <= 0).any():
            raise ValueError("the brakes do not hold the train on this slope")
        ctx.save_for_backward(speed=speed, net=net)
        ctx.reaction = reaction
        return pb.asarray(v * reaction + v**2 / (2 * net))

    @braking_distance.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        v = s.speed.numpy()
        return {
            "speed": pb.asarray(gn * (ctx.reaction + v / s.net)),
            "deceleration": -(gn * v**2 / (2 * s.net**2)).sum(),
        }

    return braking_distance


@BOOK.right(
    lambda rng: (
        (t(np.array([0.5, 6.0, 12.0, 26.0, 41.0, 58.0])), t(np.array(5600.0))),
        {"adhesive_mass": 84.0, "start": t(np.array(290.0))},
    )
)
def tractive_effort():
    @pb.autograd_function
    def tractive_effort(ctx, speed, power, start, adhesive_mass, wet=False):
        """Effort in kN: the least of what start, power (kW) and adhesion allow."""
        v = np.maximum(speed.numpy(), 0.1)
        kmh = 3.6 * v
        grip = (7.5 / (kmh + 44) + 0.161) * (0.7 if wet else 1.0)
        limits = np.stack(
            [np.full_like(v, start.item()), power.item() / v, grip * adhesive_mass * GRAVITY]
        )
        ctx.which = limits.argmin(axis=0)
        by_speed = np.zeros_like(limits)
        by_speed[1] = -power.item() / v**2
        by_speed[2] = -7.5 * 3.6 / (kmh + 44) ** 2 * adhesive_mass * GRAVITY * (0.7 if wet else 1)
        by_speed[:, speed.numpy() < 0.1] = 0.0
        ctx.save_for_backward(v=v, by_speed=by_speed)
        return pb.asarray(limits.min(axis=0))

    @tractive_effort.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        chosen = np.take_along_axis(s.by_speed, ctx.which[None], axis=0)[0]
        return {
            "speed": pb.asarray(gn * chosen),
            "power": (gn / s.v)[ctx.which == 1].sum(),
            "start": gn[ctx.which == 0].sum(),
        }

    return tractive_effort


@BOOK.right(
    lambda rng: (
        (t(np.array([50.0, 310.0])), t(np.array([90.0, 200.0])), t(np.array([600.0, -850.0]))),
        {"at": np.arange(0.0, 560, 27)},
    )
)
def curvature_of_line():
    def ramp(s, begin, length):
        return np.clip((s - begin) / length, 0, 1)

    @pb.autograd_function
    def curvature_of_line(ctx, begin, arc, radius, at, transition=60.0):
        """Curvature in 1/m at places on a line with curves between clothoids.

        begin, arc, radius: (curves,) begin of the first clothoid, length of the arc, signed
        radius, in m; at: (n,) in m; transition: length of each clothoid.
        """
        b, a, R = begin.numpy()[:, None], arc.numpy()[:, None], radius.numpy()[:, None]
        rising, falling = ramp(at, b, transition), ramp(at, b + transition + a, transition)
        ctx.rises = (rising > 0) & (rising < 1)
        ctx.falls = (falling > 0) & (falling < 1)
        ctx.shape, ctx.radius, ctx.transition = rising - falling, R, transition
        return pb.asarray((ctx.shape / R).sum(axis=0))

    @curvature_of_line.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        step = 1 / (ctx.transition * ctx.radius[:, 0])
        up, down = ctx.rises @ gn * step, ctx.falls @ gn * step
        return {
            "begin": pb.asarray(down - up),
            "arc": pb.asarray(down),
            "radius": pb.asarray(-(ctx.shape @ gn) / ctx.radius[:, 0] ** 2),
        }

    return curvature_of_line


@BOOK.right(lambda rng: ((t(np.cumsum(rng.normal(0, 0.8, 14))),), {"window": 5, "chord": 2}))
def track_quality():
    @pb.autograd_function
    def track_quality(ctx, level, window=7, chord=1):
        """Standard deviation in mm, in each window, of versines over chords of 2 * chord."""
        z = level.numpy()
        versine = z[chord:-chord] - (z[: -2 * chord] + z[2 * chord :]) / 2
        if len(versine) < window:
            raise ValueError("the record is shorter than a window")
        views = np.lib.stride_tricks.sliding_window_view(versine, window)
        apart = views - views.mean(axis=1, keepdims=True)
        ctx.spread = np.sqrt((apart**2).sum(axis=1) / (window - 1))
        ctx.apart, ctx.chord, ctx.window = apart, chord, window
        return pb.asarray(ctx.spread.copy())

    @track_quality.backward
    @pb.once_differentiable
    def _(ctx, g):
        c, w = ctx.chord, ctx.window
        # a window without any change has no direction in which it would get worse
        safe = np.where(ctx.spread > 0, ctx.spread, 1.0)
        by_view = (g.numpy() / safe / (w - 1))[:, None] * ctx.apart
        by_versine = np.zeros(len(by_view) + w - 1)
        for k in range(w):
            by_versine[k : k + len(by_view)] += by_view[:, k]
        grad = np.zeros(len(by_versine) + 2 * c)
        grad[c:-c] += by_versine
        grad[: -2 * c] -= by_versine / 2
        grad[2 * c :] -= by_versine / 2
        return {"level": pb.asarray(grad)}

    return track_quality


@BOOK.right(
    lambda rng: (
        (t(np.array([0.5, 2.5, 7.0, 1.1, 12.0, 6.2])), t(np.array([8e-3, 0.06]))),
        {"hardness": "r350ht"},
    )
)
def rail_wear():
    LIMITS = {"r260": (3.2, 9.0), "r350ht": (4.0, 10.0)}

    @pb.autograd_function
    def rail_wear(ctx, energy, rates, hardness="r260"):
        low, high = LIMITS[hardness]
        E, (mild, severe) = energy.numpy(), rates.numpy()
        first, second = np.minimum(E, low), np.clip(E - low, 0, high - low)
        third = np.maximum(E - high, 0.0)
        # catastrophic wear goes at ten times the severe rate
        ctx.slope = np.select([third > 0, second > 0], [10 * severe, severe], mild)
        ctx.by_mild, ctx.by_severe = first, second + 10 * third
        return pb.asarray(mild * ctx.by_mild + severe * ctx.by_severe)

    @rail_wear.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        by_rates = np.array([(gn * ctx.by_mild).sum(), (gn * ctx.by_severe).sum()])
        return {"energy": pb.asarray(gn * ctx.slope), "rates": pb.asarray(by_rates)}

    return rail_wear


TRIPS = [(0, 1, 30.0), (1, 2, 42.0), (0, 3, 75.0), (2, 3, 18.0), (3, 4, 25.0), (2, 4, 51.0)]


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0, 6, 6)), t(np.array(5.0))),
        {"edges": TRIPS, "events": 5, "planned": np.array([0, 30, 77, 97, 130.0])},
    )
)
def event_times():
    @pb.autograd_function
    def event_times(ctx, late, first, edges, events, planned=None):
        """Times of events that wait for those before them.

        late: (edges,) minutes more than planned; first: time of event 0; edges: (from, to,
        minutes) with from < to; planned: (events,) before which no event takes place.
        """
        extra, time = late.numpy(), np.full(events, -np.inf)
        time[0] = first.item()
        cause = [-1] * events
        into = {}
        for number, (_, end, _) in enumerate(edges):
            into.setdefault(end, []).append(number)
        for event in range(events):
            for number in into.get(event, ()):
                start, _, minutes = edges[number]
                ready = time[start] + minutes + extra[number]
                if ready > time[event]:
                    time[event], cause[event] = ready, number
            if planned is not None and planned[event] > time[event]:
                time[event], cause[event] = planned[event], None
        if not np.isfinite(time).all():
            raise ValueError("an event has neither a cause nor a plan")
        ctx.cause, ctx.edges = cause, list(edges)
        return pb.asarray(time)

    @event_times.backward
    @pb.once_differentiable
    def _(ctx, g):
        back, by_late = g.numpy().copy(), np.zeros(len(ctx.edges))
        for event in range(len(back) - 1, 0, -1):
            number = ctx.cause[event]
            if number is not None:
                by_late[number] += back[event]
                back[ctx.edges[number][0]] += back[event]
        first = 0.0 if ctx.cause[0] is None else back[0]
        return {"late": pb.asarray(by_late), "first": first}

    return event_times


@BOOK.right(
    lambda rng: (
        (t(np.array([80.0, 112.0, 96.0, 180.0])), t(np.array([0.0, 2.4, 9.1, 11.6]))),
        {"stiffness": t(np.array(38.0)), "at": np.linspace(-2, 13, 7)},
    )
)
def rail_deflection():
    EI = 6.4e3  # kN m2

    @pb.autograd_function
    def rail_deflection(ctx, load, place, stiffness, at):
        """Deflection in mm of a rail on an elastic bed; loads in kN, bed in MN/m2."""
        k = 1000 * stiffness.item()
        lam = (k / (4 * EI)) ** 0.25
        apart = at[:, None] - place.numpy()
        x = lam * np.abs(apart)
        fade = np.exp(-x)
        shape = fade * (np.cos(x) + np.sin(x))
        unit = 1000 * lam / (2 * k)
        ctx.save_for_backward(load=load, apart=apart, x=x, fade=fade, shape=shape)
        ctx.lam, ctx.unit, ctx.bed = lam, unit, stiffness.item()
        return pb.asarray(unit * shape @ load.numpy())

    @rail_deflection.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        P = s.load.numpy()
        by_x = -2 * s.fade * np.sin(s.x)
        by_place = ctx.unit * P * -ctx.lam * (gn @ (by_x * np.sign(s.apart)))
        # lambda goes with the fourth root of the bed: lambda / bed with its power -3/4
        by_bed = ctx.unit / ctx.bed * (gn @ ((s.x * by_x / 4 - 0.75 * s.shape) @ P))
        return {
            "load": pb.asarray(ctx.unit * (gn @ s.shape)),
            "place": pb.asarray(by_place),
            "stiffness": by_bed,
        }

    return rail_deflection


@BOOK.right(
    lambda rng: (
        (t(np.array([900.0, 2600.0, 400.0, 3100.0])), t(np.array(0.55)), t(np.array(33.0))),
        {"braking": 0.8},
    )
)
def running_time():
    @pb.autograd_function
    def running_time(ctx, distance, acceleration, top, braking=0.9, dwell=30.0):
        """Seconds from stop to stop, and dwelling; short hops never get to the top speed."""
        d, a, v = distance.numpy(), acceleration.item(), top.item()
        inverse = 1 / a + 1 / braking
        peak = np.sqrt(2 * d / inverse)
        hop = peak < v
        ctx.save_for_backward(distance=distance, hop=hop, peak=peak)
        ctx.values = a, v, inverse
        cruise = d / v + v * inverse / 2
        return pb.asarray(np.where(hop, peak * inverse, cruise) + dwell)

    @running_time.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        a, v, inverse = ctx.values
        by_d = gn / np.where(s.hop, s.peak, v)
        by_inverse = gn * np.where(s.hop, s.peak, v) / 2
        by_v = gn * np.where(s.hop, 0.0, inverse / 2 - s.distance.numpy() / v**2)
        return {
            "distance": pb.asarray(by_d),
            "acceleration": -by_inverse.sum() / a**2,
            "top": by_v.sum(),
        }

    return running_time


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(10, 220, (4, 5))), t(rng.uniform(0.2, 0.9, 5))),
        {"order": np.array([2, 0, 3, 1])},
    )
)
def seats_taken():
    @pb.autograd_function
    def seats_taken(ctx, boarding, alighting, order=None, seats=None):
        """Passengers in a train after each stop.

        boarding: (trains, stops); alighting: (stops,) part of those on board who get off before
        the others get on; order: rows as they run, the order of the result; seats: most that
        fit in, those who do not wait for no other train.
        """
        on = boarding.numpy() if order is None else boarding.numpy()[order]
        stay = 1 - alighting.numpy()
        load, loads, full = np.zeros(len(on)), np.empty_like(on), np.zeros(on.shape, bool)
        for k, new in enumerate(on.T):
            load = load * stay[k] + new
            if seats is not None:
                full[:, k] = load > seats
                load = np.minimum(load, seats)
            loads[:, k] = load
        ctx.save_for_backward(loads=loads, stay=stay, full=full)
        ctx.order = None if order is None else order.copy()
        return pb.asarray(loads.copy())

    @seats_taken.backward
    @pb.once_differentiable
    def _(ctx, g):
        (loads, stay, full), gn = ctx.saved_variables, g.numpy()
        by_on, by_off, back = np.empty_like(gn), np.zeros(len(stay)), np.zeros(len(gn))
        for k in range(len(stay) - 1, -1, -1):
            back = np.where(full[:, k], 0.0, back + gn[:, k])
            by_on[:, k] = back
            if k:
                by_off[k] = -(back @ loads[:, k - 1])
            back = back * stay[k]
        if ctx.order is not None:
            by_on = by_on[np.argsort(ctx.order)]
        return {"boarding": pb.asarray(by_on), "alighting": pb.asarray(by_off)}

    return seats_taken


@BOOK.right(
    lambda rng: (
        (t(np.array([1.2, 0.4, 2.6, 0.9])), t(np.array([1600.0, 900.0, 2200.0, 300.0]))),
        {"voltage": 1500.0, "track": 0.012},
    )
)
def line_voltage():
    @pb.autograd_function
    def line_voltage(ctx, spacing, power, voltage=1500.0, track=0.015, wire=0.03, tol=1e-12):
        """Voltages at trains on a line fed from one end.

        spacing: (n,) km from the substation or the train before; power: (n,) kW that each draws.
        """
        d, watts, ohm = spacing.numpy(), 1000 * power.numpy(), track + wire
        places = np.cumsum(d)
        shared = ohm * np.minimum.outer(places, places)
        V = np.full_like(d, voltage)
        for _ in range(60):
            J = np.eye(len(d)) - shared * (watts / V**2)
            step = np.linalg.solve(J, V - voltage + shared @ (watts / V))
            V = V - step
            if np.abs(step).max() < tol * voltage:
                break
        else:
            raise ArithmeticError("the line cannot supply these trains")
        ctx.J = np.eye(len(d)) - shared * (watts / V**2)
        ctx.V, ctx.shared, ctx.current, ctx.ohm = V, shared, watts / V, ohm
        return pb.asarray(V.copy())

    @line_voltage.backward
    @pb.once_differentiable
    def _(ctx, g):
        y = np.linalg.solve(ctx.J.T, g.numpy())
        by_power = -(ctx.shared @ y) / ctx.V * 1000
        # all current for this train and those behind it flows through the length before it
        behind = np.cumsum(ctx.current[::-1])[::-1]
        pull = np.cumsum(y[::-1])[::-1]
        return {
            "spacing": pb.asarray(-ctx.ohm * behind * pull),
            "power": pb.asarray(by_power),
        }

    return line_voltage


@BOOK.right(lambda rng: ((t(rng.uniform(40, 190, 11)),), {"exponent": 3}))
def equivalent_axle_load():
    @pb.autograd_function
    def equivalent_axle_load(ctx, axles, exponent=3, weights=None):
        P = axles.numpy()
        w = np.full(len(P), 1 / len(P)) if weights is None else weights / weights.sum()
        mean = (w * P**exponent).sum()
        ctx.save_for_backward(axles=axles, w=w)
        ctx.mean, ctx.exponent = mean, exponent
        return pb.asarray(np.asarray(mean ** (1 / exponent)))

    @equivalent_axle_load.backward
    @pb.once_differentiable
    def _(ctx, g):
        P, w = ctx.saved_variables.axles.numpy(), ctx.saved_variables.w
        m = ctx.exponent
        grad = g.item() * ctx.mean ** (1 / m - 1) * w * P ** (m - 1)
        return {"axles": pb.asarray(grad)}

    return equivalent_axle_load


@BOOK.right(
    lambda rng: (
        (t(np.array([3200.0, 1400.0, 35.0, -900.0, -4100.0, -650.0])), t(np.array(0.87))),
        {"receptive": np.array([1, 1, 1, 1, 1, 0], bool), "limit": 2500.0},
    )
)
def traction_energy():
    @pb.autograd_function
    def traction_energy(ctx, wheel, efficiency, receptive=None, limit=None, seconds=10, idle=120.0):
        """Energy in kWh from the line; wheel: (n,) power in kW, below 0 when braking.

        What is braked comes back through the same drive, up to the limit in kW at the wheel and
        only while the line is receptive; the rest goes to the resistors.
        """
        P, eta = wheel.numpy(), efficiency.item()
        driving, braking = P >= 0, P < 0
        returned = np.where(braking, -P, 0.0)
        below = braking.copy()
        if limit is not None:
            below &= returned < limit
            returned = np.minimum(returned, limit)
        if receptive is not None:
            below &= receptive
            returned = returned * receptive
        drawn = np.where(driving, P, 0.0)
        ctx.masks, ctx.sums = (driving, below), (drawn.sum(), returned.sum())
        ctx.eta, ctx.hours = eta, seconds / 3600
        total = ctx.hours * (drawn.sum() / eta - returned.sum() * eta + idle * len(P))
        return pb.asarray(np.asarray(total))

    @traction_energy.backward
    @pb.once_differentiable
    def _(ctx, g):
        (driving, below), (drawn, returned) = ctx.masks, ctx.sums
        top = g.item() * ctx.hours
        return {
            "wheel": pb.asarray(top * (driving / ctx.eta + below * ctx.eta)),
            "efficiency": -top * (drawn / ctx.eta**2 + returned),
        }

    return traction_energy
