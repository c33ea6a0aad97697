"""Traffic: car following, travel times, route choice, assignment, signals, demand, queues."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import AXIS, FACTOR, MISSING, SHIFT, Book, mends, t

BOOK = Book("traffic")


def links(rng, flow):
    return t(flow), t(rng.uniform(5, 15, len(flow))), t(rng.uniform(800, 1500, len(flow)))


@BOOK.wrong(
    lambda rng: (links(rng, rng.uniform(300, 1600, 5)), {}),
    "a link without flow gets slope zero, which is not so where beta is 1",
    r"(?:zero|no|without|empty|where|when) (?:link |links |the )?`?flows?`?",
    r"flow`? ?(?:is|==?|of) ?0",
    r"unused|empty (?:link|road)|divi\w+ by (?:zero|flow|0)|flow\[\d\] ?=+ ?0",
    r"beta.{0,12}\b(?:is|=|of|==) ?1\b|linear (?:case|delay|travel|in)",
    r"(?:is|are|as|be|given|gives?|gradient|slope|got|elements?) (?:of )?zero",
    mends(
        "(V / c) ** (ctx.beta - 1)",
        "(V / c) ** (beta - 1)",
        "ratio ** (ctx.beta - 1)",
        "ratio ** (beta - 1)",
        "if ctx.beta == 1",
        "ctx.beta == 1",
        "** (ctx.beta - 1",
    ),
    where="a link without flow and beta of 1",
    shows=lambda rng: (links(rng, np.array([700.0, 0.0, 1200.0, 0.0])), {"beta": 1.0}),
)
def link_travel_times():
    @pb.autograd_function
    def link_travel_times(ctx, flow, free_time, capacity, alpha=0.15, beta=4.0):
        """Travel times of links by the formula of the Bureau of Public Roads."""
        V, t0, c = flow.numpy(), free_time.numpy(), capacity.numpy()
        if (c <= 0).any() or beta < 1:
            raise ValueError("capacities must be positive and beta at least 1")
        delay = alpha * t0 * (V / c) ** beta
        ctx.save_for_backward(flow=flow, free_time=free_time, capacity=capacity)
        ctx.delay, ctx.beta = delay, beta
        return pb.asarray(t0 + delay)

    @link_travel_times.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        V, t0, c = (x.numpy() for x in ctx.saved_tensors)
        gn = grad_output.numpy()
        used = V > 0
        by_flow = np.where(used, ctx.beta * ctx.delay / np.where(used, V, 1.0), 0.0)
        return {
            "flow": pb.asarray(gn * by_flow),
            "free_time": pb.asarray(gn * (1 + ctx.delay / t0)),
            "capacity": pb.asarray(-gn * ctx.beta * ctx.delay / c),
        }

    return link_travel_times


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(18, 28, 5)),
            t(rng.uniform(20, 45, 5)),
            t(rng.uniform(15, 25, 5)),
            t(np.array(1.4)),
        ),
        {},
    ),
    "speed stands twice in speed * closing: one of the two terms of the product rule is missing",
    MISSING,
    r"product rule|(?:both|two|one|first|second|another|other) (?:\w+ )?terms?|speed \* closing",
    r"\b2 ?\* ?(?:speed|v)\b|speed / \(2|closing (?:also )?(?:depends|contains)",
    mends("2 * s.v - s.lead", "s.v + s.closing", "s.closing + s.v", "2 * s.closing + s.lead"),
)
def follow_leader():
    class FollowLeader(pb.Function):
        """Acceleration of cars by the intelligent driver model, in m/s2.

        speed, gap and lead_speed: (cars,); headway: seconds.
        """

        @staticmethod
        def forward(ctx, speed, gap, lead_speed, headway, desired=33.0, pull=1.2, brake=1.8):
            v, distance, closing = speed.numpy(), gap.numpy(), speed.numpy() - lead_speed.numpy()
            if (distance <= 0).any():
                raise ValueError("gaps must be positive")
            wish = v * headway.item() + v * closing / (2 * np.sqrt(pull * brake))
            star = 2.0 + np.maximum(wish, 0.0)
            ctx.save_for_backward(v=v, lead=lead_speed.numpy(), closing=closing, gap=distance)
            ctx.star, ctx.near, ctx.headway = star, wish > 0, headway.item()
            ctx.desired, ctx.pull, ctx.root = desired, pull, 2 * np.sqrt(pull * brake)
            return pb.asarray(pull * (1 - (v / desired) ** 4 - (star / distance) ** 2))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, gn = ctx.saved_variables, grad_output.numpy()
            to_star = -2 * ctx.pull * gn * ctx.star / s.gap**2
            to_wish = to_star * ctx.near
            by_speed = ctx.headway + s.closing / ctx.root
            free = -4 * ctx.pull * s.v**3 / ctx.desired**4
            return {
                "speed": pb.asarray(gn * free + to_wish * by_speed),
                "gap": pb.asarray(-to_star * ctx.star / s.gap),
                "lead_speed": pb.asarray(-to_wish * s.v / ctx.root),
                "headway": (to_wish * s.v).sum(),
            }

    return FollowLeader.apply


ROUTES = np.array(
    [[1, 0, 0, 1, 0], [0, 1, 0, 0, 1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 0, 1]]
)


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(3, 9, 5)), t(np.array([900.0])), ROUTES, np.zeros(5, dtype=int)),
        {},
    ),
    "shares are centred over all routes, where the mean over those of the same pair belongs",
    r"\bpairs?\b.{0,60}(?:several|more|two|each|other|separate|one|single|only|own|within|mean)",
    r"(?:per|each|same|own|every|one|single|several|by|within an?) (?:OD )?pairs?\b",
    r"\borigins?\b|\bOD\b|\bsegment|\bgroup",
    mends(
        "np.bincount(pair, p * to_p",
        "np.bincount(s.pair, p * to_p",
        "np.bincount(s.pair, weights=p * to_p",
        "np.bincount(s.pair, to_p * p",
        "mean[s.pair]",
        "mean[pair]",
        "np.add.at(mean",
        "[s.pair])",
    ),
    where="more than one pair of origin and destination",
    shows=lambda rng: (
        (t(rng.uniform(3, 9, 5)), t(np.array([900.0, 400.0])), ROUTES, np.array([0, 0, 1, 1, 1])),
        {},
    ),
)
def stochastic_loading():
    def forward(ctx, link_cost, demand, routes, pair, theta=0.5):
        """Flows on links when travellers choose routes by a logit.

        routes: (links, routes) of 0 and 1; pair: (routes,), each route's place in demand.
        """
        utility = -theta * (link_cost.numpy() @ routes)
        top = np.full(len(demand), -np.inf)
        np.maximum.at(top, pair, utility)
        weight = np.exp(utility - top[pair])
        p = weight / np.bincount(pair, weight)[pair]
        ctx.save_for_backward(p=p, routes=routes, pair=pair, demand=demand.numpy(), theta=theta)
        return pb.asarray(routes @ (demand.numpy()[pair] * p))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, p = ctx.saved_variables, ctx.saved_variables.p
        to_route = grad_output.numpy() @ s.routes
        to_p = to_route * s.demand[s.pair]
        mean = (p * to_p).sum()
        return {
            "link_cost": pb.asarray(-s.theta * (s.routes @ (p * (to_p - mean)))),
            "demand": pb.asarray(np.bincount(s.pair, to_route * p, minlength=len(s.demand))),
        }

    return pb.autograd_function(forward, backward, name="stochastic_loading")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(250, 600, 4)), t(rng.uniform(38, 50, 4))), {}),
    "in the slope of the random delay the flow is an hourly one: the factor 3600 is missing",
    FACTOR + r"|multipl|divided by",
    r"\b3600\b|\bhourly\b|per (?:hour|second)|\bunits?\b|random (?:delay|part|term)",
    mends(
        "3600 * x",
        "1800 * x",
        "flow / 3600",
        "per_second * (1 - x)",
        "arrivals * (1 - x)",
        "flow * (1 - x) ** 2) * 3600",
        "s.per_second",
    ),
)
def signal_delay():
    @pb.autograd_function
    def signal_delay(ctx, flow, green, cycle=90.0, saturation=1800.0):
        """Mean delay at a signal by Webster, in seconds; flows an hour, greens in seconds."""
        share = green.numpy() / cycle
        load = flow.numpy() / (saturation * share)
        if (load >= 1).any():
            raise ValueError("more traffic than the signal lets through")
        uniform = cycle * (1 - share) ** 2 / (2 * (1 - flow.numpy() / saturation))
        random = load**2 / (2 * (flow.numpy() / 3600.0) * (1 - load))
        ctx.save_for_backward(flow=flow.numpy(), share=share, load=load, random=random)
        ctx.uniform, ctx.cycle, ctx.saturation = uniform, cycle, saturation
        return pb.asarray(uniform + random)

    @signal_delay.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        flow, share, x, random = ctx.saved_variables
        gn = grad_output.numpy()
        slack = 1 - flow / ctx.saturation
        by_load = x * (2 - x) / (2 * flow * (1 - x) ** 2)
        by_flow = ctx.uniform / (slack * ctx.saturation) + (by_load * x - random) / flow
        by_share = -ctx.cycle * (1 - share) / slack - by_load * x / share
        return pb.asarray(gn * by_flow), pb.asarray(gn * by_share / ctx.cycle), None, None

    return signal_delay


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(8, 18, 6)), t(np.array(100.0))), {"inflow": 1500.0}),
    "in a jam the flow depends on the next cell, but its gradient goes to the cell that it leaves",
    SHIFT,
    r"\bjam|congest|queue|downstream|\bsupply\b|\bdense\b|critical density",
    r"(?:next|following|wrong|other) cell|density.{0,20}(?:>|above|over|beyond|greater|high)",
    mends(
        "to_receiving[1:] +=",
        "to_receiving[1:] =",
        "[0.0], inner * ~free",
        "to_receiving[k + 1] +=",
        "to_receiving[1:]",
    ),
    where="a jam",
    shows=lambda rng: (
        (t(np.array([12.0, 17.0, 60.0, 95.0, 80.0, 15.0])), t(np.array(100.0))),
        {"inflow": 1500.0},
    ),
)
def cell_transmission():
    @pb.autograd_function
    def cell_transmission(ctx, density, speed, inflow=0.0, most=2000.0, wave=20.0, full=150.0):
        """Densities of the cells of a road one step (0.004 h, 0.5 km) later.

        Cells send what they can, and receive no more than they have room for.
        """
        k, v, step = density.numpy(), speed.item(), 0.004 / 0.5
        sending, receiving = np.minimum(v * k, most), np.minimum(wave * (full - k), most)
        across = np.minimum(sending[:-1], receiving[1:])
        moved = np.concatenate([[min(inflow, receiving[0])], across, sending[-1:]])
        ctx.save_for_backward(k=k, v=v, sending=sending, receiving=receiving)
        ctx.wave, ctx.most, ctx.step, ctx.held = wave, most, step, inflow > receiving[0]
        return pb.asarray(k + step * (moved[:-1] - moved[1:]))

    @cell_transmission.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, ctx.step * grad_output.numpy()
        free = s.sending[:-1] <= s.receiving[1:]
        inner = gn[1:] - gn[:-1]
        to_sending, to_receiving = np.zeros_like(gn), np.zeros_like(gn)
        to_sending[:-1] += inner * free
        to_sending[-1] -= gn[-1]
        to_receiving[:-1] += inner * ~free
        to_receiving[0] += gn[0] * ctx.held
        to_sending *= s.sending < ctx.most
        to_receiving *= s.receiving < ctx.most
        grad = grad_output.numpy() + s.v * to_sending - ctx.wave * to_receiving
        return {"density": pb.asarray(grad), "speed": (to_sending * s.k).sum()}

    return cell_transmission


def zones(rng):
    return (
        t(rng.uniform(200, 900, 4)),
        t(rng.uniform(1, 6, 4)),
        t(rng.uniform(2, 12, (4, 4))),
        t(np.array(0.2)),
    )


@BOOK.wrong(
    lambda rng: (zones(rng), {}),
    "the mean is taken over the origins (axis 0), where that over the destinations belongs",
    AXIS,
    r"over (?:the |all )?(?:origins|destinations|rows|columns|zones)|row.?wise|column.?wise",
    r"(?:each|per|every|of the same|by|wrong) (?:origin|destination|row|column)",
    mends(
        "(p * gn).sum(axis=1)[:, None]",
        "keepdims",
        "grad_origins[:, None]",
        "shared[:, None]",
        "mean[:, None]",
        "sum(axis=-1)[:, None]",
    ),
)
def trip_distribution():
    @pb.autograd_function
    def trip_distribution(ctx, origins, attractions, cost, decay):
        """Trips between zones by a gravity model that keeps the trips that start in each.

        origins: (n,), attractions: (m,), cost: (n, m).
        """
        pull = attractions.numpy() * np.exp(-decay.item() * cost.numpy())
        p = pull / pull.sum(axis=1)[:, None]
        ctx.save_for_backward(origins=origins, attractions=attractions, cost=cost, decay=decay)
        ctx.p = p
        return pb.asarray(origins.numpy()[:, None] * p)

    @trip_distribution.backward
    @pb.once_differentiable
    def _(ctx, g):
        trips, D, cost, decay = (x.numpy() for x in ctx.saved_tensors)
        gn, p = g.numpy(), ctx.p
        to_log = trips[:, None] * p * (gn - (p * gn).sum(axis=0))
        return {
            "origins": pb.asarray((p * gn).sum(axis=1)),
            "attractions": pb.asarray(to_log.sum(axis=0) / D),
            "cost": pb.asarray(-decay * to_log),
            "decay": -(to_log * cost).sum(),
        }

    return trip_distribution


@BOOK.right(
    lambda rng: (
        (
            t(np.array([10.0, 12.0, 15.0, 40.0]) * rng.uniform(0.95, 1.05, 4)),
            t(rng.uniform(500, 900, 4)),
            t(np.array(2500.0)),
        ),
        {},
    )
)
def user_equilibrium():
    def flows(time, free, capacity, alpha, beta):
        return capacity * (np.maximum(time / free - 1, 0.0) / alpha) ** (1 / beta)

    @pb.autograd_function
    def user_equilibrium(ctx, free_time, capacity, demand, alpha=0.15, beta=4.0):
        """Flows on parallel roads of which all that are used take the same time; and that time."""
        t0, c, total = free_time.numpy(), capacity.numpy(), demand.item()
        if total <= 0 or t0.shape != c.shape:
            raise ValueError("needs a positive demand, and a capacity for each road")
        low, high = t0.min(), t0.max() * (1 + alpha * (total / c.min()) ** beta)
        for _ in range(200):
            middle = (low + high) / 2
            enough = flows(middle, t0, c, alpha, beta).sum() > total
            low, high = (low, middle) if enough else (middle, high)
        ctx.save_for_backward(t0=t0, c=c, time=middle, flow=flows(middle, t0, c, alpha, beta))
        ctx.beta = beta
        return pb.asarray(ctx.saved_variables.flow.copy()), pb.asarray(np.array(middle))

    @user_equilibrium.backward
    @pb.once_differentiable
    def _(ctx, g_flow, g_time):
        s = ctx.saved_variables
        used = s.flow > 0
        delay = np.where(used, s.time - s.t0, 1.0)
        ease = np.where(used, s.flow / (ctx.beta * delay), 0.0)  # of flow in time
        shared = (g_time.item() + (g_flow.numpy() * ease).sum()) / ease.sum()
        to_time = (shared - g_flow.numpy()) * ease
        return {
            "free_time": pb.asarray(to_time * s.time / s.t0),
            "capacity": pb.asarray(-to_time * ctx.beta * delay / s.c),
            "demand": shared,
        }

    return user_equilibrium


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1.5, 2.6, 5)), t(rng.uniform(0.6, 1.2, 5)), t(np.array(1.1))),
        {"steps": 12},
    )
)
def ring_road():
    SAFE = 2.0

    class RingRoad(pb.Function):
        """Headways and speeds of cars on a ring after some steps (optimal velocity model)."""

        @staticmethod
        def forward(ctx, headway, speed, sensitivity, steps=10, dt=0.1):
            h, v, kappa = headway.numpy(), speed.numpy(), sensitivity.item()
            if h.shape != v.shape:
                raise ValueError("each car needs a headway and a speed")
            path = []
            for _ in range(steps):
                wish = np.tanh(h - SAFE) + np.tanh(SAFE)
                path.append((wish - v, 1 - np.tanh(h - SAFE) ** 2))
                h, v = h + dt * (np.roll(v, -1) - v), v + dt * kappa * (wish - v)
            ctx.path, ctx.kappa, ctx.dt = path, kappa, dt
            return pb.asarray(h.copy()), pb.asarray(v.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grads):
            g_h, g_v = (g.numpy() for g in grads)
            rate, grad_kappa = ctx.dt * ctx.kappa, 0.0
            for short, slope in reversed(ctx.path):
                grad_kappa += ctx.dt * (g_v @ short)
                g_h, g_v = (
                    g_h + rate * slope * g_v,
                    g_v * (1 - rate) + ctx.dt * (np.roll(g_h, 1) - g_h),
                )
            return pb.asarray(g_h), pb.asarray(g_v), grad_kappa, None, None

    return RingRoad.apply


@BOOK.right(
    lambda rng: ((t(rng.uniform(5, 22, 8)), t(np.array(30.0))), {"start": 4.0, "cycle": 80.0})
)
def cycle_queue():
    @pb.autograd_function
    def cycle_queue(ctx, arrivals, green, saturation=0.5, start=0.0, cycle=90.0):
        """Delay of all cars at a signal, and the queue after the last cycle.

        arrivals: cars by cycle; green: seconds, one for all cycles or one each.
        """
        if (green.numpy() > cycle).any():
            raise ValueError("green lasts longer than the cycle")
        served = np.broadcast_to(saturation * green.numpy(), arrivals.shape)
        queue = [start]
        for a, most in zip(arrivals.numpy(), served, strict=True):
            queue.append(max(queue[-1] + a - most, 0.0))
        ctx.queue, ctx.saturation, ctx.cycle, ctx.shape = queue, saturation, cycle, green.shape
        delay = cycle * (sum(queue) - (queue[0] + queue[-1]) / 2)
        return pb.asarray(np.array(delay)), pb.asarray(np.array(queue[-1]))

    @cycle_queue.backward
    @pb.once_differentiable
    def _(ctx, g_delay, g_queue):
        waiting = ctx.cycle * g_delay.item()
        grad = np.zeros(len(ctx.queue) - 1)
        carried = g_queue.item() - waiting / 2
        for k in reversed(range(len(grad))):
            carried = carried + waiting if ctx.queue[k + 1] > 0 else 0.0
            grad[k] = carried
        by_green = pb.asarray(-ctx.saturation * grad)
        return {"arrivals": pb.asarray(grad), "green": pb.sum_to_size(by_green, ctx.shape)}

    return cycle_queue


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=6)), t(rng.uniform(0.3, 0.9, 3)), np.array([2, 0, 0, 1, 2, 2])),
        {},
    )
)
def nested_mode_choice():
    def forward(ctx, utility, scale, nest):
        """Shares of modes in a nested logit, and the expected utility of the choice.

        utility: (modes,); scale: (nests,), above 0 and up to 1; nest: (modes,), that of each mode.
        """
        V, lam = utility.numpy(), scale.numpy()
        if (lam <= 0).any() or (lam > 1).any() or len(np.unique(nest)) < len(lam):
            raise ValueError("each nest needs a mode, and a scale above 0 and up to 1")
        inclusive = np.log(np.bincount(nest, np.exp(V / lam[nest])))
        total = np.log(np.exp(lam * inclusive).sum())
        within = np.exp(V / lam[nest] - inclusive[nest])
        outer = np.exp(lam * inclusive - total)
        ctx.save_for_backward(V, lam, nest, inclusive, within, outer)
        return {"share": pb.asarray(within * outer[nest]), "worth": pb.asarray(np.array(total))}

    @pb.once_differentiable
    def backward(ctx, g_share, g_worth):
        V, lam, nest, inclusive, within, outer = ctx.saved_variables
        to_log = g_share.numpy() * within * outer[nest]
        of_nest = np.bincount(nest, to_log)
        to_outer = of_nest + outer * (g_worth.item() - of_nest.sum())
        to_scaled = to_log + within * (lam * to_outer - of_nest)[nest]
        by_scale = to_outer * inclusive - np.bincount(nest, to_scaled * V) / lam**2
        return {"utility": pb.asarray(to_scaled / lam[nest]), "scale": pb.asarray(by_scale)}

    return pb.autograd_function(forward, backward, name="nested_mode_choice")


@BOOK.right(
    lambda rng: (
        (t(np.array([0.2, 300.0, 700.0, 1100.0])), t(rng.uniform(4, 5)), t(rng.uniform(2.5, 3))),
        {},
    )
)
def roundabout_capacity():
    @pb.autograd_function
    def roundabout_capacity(ctx, circulating, critical_gap, follow_up):
        """Cars an hour that can enter between those that circulate (an hour); gaps in seconds."""
        q, t_c, t_f = circulating.numpy() / 3600, critical_gap.item(), follow_up.item()
        if t_f <= 0 or t_c < t_f:
            raise ValueError("the critical gap must be no shorter than the follow-up time")
        flowing = q != 0
        rate = np.where(flowing, q, 1.0) / -np.expm1(-np.where(flowing, q, 1.0) * t_f)
        rate = np.where(flowing, rate, 1 / t_f)
        ctx.save_for_backward(q=q, t_c=t_c, t_f=t_f, rate=rate)
        return pb.asarray(3600 * rate * np.exp(-q * t_c))

    @roundabout_capacity.backward
    @pb.once_differentiable
    def _(ctx, g):
        q, t_c, t_f, rate = ctx.saved_variables
        gn = 3600 * g.numpy() * np.exp(-q * t_c)
        few = np.abs(q) * t_f < 3e-4
        safe = np.where(few, 1.0, q)
        by_q = np.where(few, 0.5 + q * t_f / 6, rate / safe * (1 - t_f * rate * np.exp(-q * t_f)))
        return {
            "circulating": pb.asarray(gn * (by_q - t_c * rate) / 3600),
            "critical_gap": -(gn * q * rate).sum(),
            "follow_up": -(gn * rate**2 * np.exp(-q * t_f)).sum(),
        }

    return roundabout_capacity
