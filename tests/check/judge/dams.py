"""Dams: spillways, stability, uplift, routing, storage, seepage, slopes, silt, waves, movement."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, Book, at, mends, t

BOOK = Book("dams")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.6, 3.2, 5)), t(rng.uniform(-4, -0.5, 5))), {"length": 42.0}),
    "when the tailwater drowns the crest, the part of head through the drowning is missing",
    MISSING,
    r"drown|submerg|tail ?water|positive tail|\btail`? ?(?:>|is (?:above|positive|over))",
    r"above (?:0|zero|the crest)|chain rule|through\b|1\.5\b.{0,20}\bonly",
    mends("+ drag *", "drag * s.ratio", "- drag * -", "s.ratio * drag"),
    where="tail is above the crest",
    shows=lambda rng: (
        (t(rng.uniform(1.6, 3.2, 5)), t(rng.uniform(0.4, 1.3, 5))),
        {"length": 42.0},
    ),
)
def crest_discharge():
    @pb.autograd_function
    def crest_discharge(ctx, head, tail, length, coefficient=2.1):
        """Discharge in m3/s over an ogee crest; drowned by Villemonte's formula.

        head and tail: (n,) levels in m above the crest, the tail below the head.
        """
        h, low = np.maximum(head.numpy(), 0.0), np.maximum(tail.numpy(), 0.0)
        wet = h > 0
        ratio = np.divide(low, h, out=np.zeros_like(h), where=wet)
        if (ratio >= 1).any():
            raise ValueError("the tailwater stands above the headwater")
        free = coefficient * length * h**1.5
        kept = (1 - ratio**1.5) ** 0.385
        ctx.save_for_backward(h=h, ratio=ratio, free=free, kept=kept, wet=wet)
        return pb.asarray(free * kept)

    @crest_discharge.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        per_head = np.divide(gn, s.h, out=np.zeros_like(gn), where=s.wet)
        drag = per_head * s.free * s.kept * 0.5775 * s.ratio**0.5 / (1 - s.ratio**1.5)
        return {
            "head": pb.asarray(per_head * s.free * s.kept * 1.5),
            "tail": pb.asarray(-drag),
        }

    return crest_discharge


@BOOK.wrong(
    lambda rng: (
        (t(np.array(38.5)), t(np.array(46.0)), t(np.array(520.0))),
        {"weight": 14_800.0, "uplift": 4_100.0, "base": 31.0},
    ),
    "the friction angle is in degrees: its gradient lacks the factor pi / 180",
    FACTOR,
    r"degrees?\b|radians?\b|pi ?/ ?180|57\.|0\.0174",
    mends("np.pi / 180", "np.radians(", "np.deg2rad(", "/ 180"),
)
def sliding_safety():
    GAMMA = 9.81

    def forward(ctx, depth, friction, cohesion, weight, uplift=0.0, base=1.0):
        """Safety of a gravity dam against sliding, per metre of length; kN, kPa and degrees."""
        h, phi = depth.item(), np.deg2rad(friction.item())
        push = 0.5 * GAMMA * h**2
        safety = (cohesion.item() * base + (weight - uplift) * np.tan(phi)) / push
        ctx.save_for_backward(h=h, cos=np.cos(phi), push=push, safety=safety)
        ctx.down, ctx.base = weight - uplift, base
        return pb.asarray(np.asarray(safety))

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        by_friction = ctx.down / s.cos**2 / s.push
        return {
            "depth": -2 * g.item() * s.safety / s.h,
            "friction": g.item() * by_friction,
            "cohesion": g.item() * ctx.base / s.push,
        }

    return pb.autograd_function(forward, backward, name="sliding_safety")


def next_temperatures(T, outside, rise, ratio, base):
    new = np.empty_like(T)
    new[1:-1] = T[1:-1] + ratio * (T[2:] - 2 * T[1:-1] + T[:-2]) + rise
    new[0] = T[0] if base == "rock" else T[0] + 2 * ratio * (T[1] - T[0]) + rise
    new[-1] = outside
    return new


def lift(**settings):
    def given(rng):
        placed = t(np.array([9.0, 21.0, 24.0, 25.0, 24.0]) + rng.normal(0, 0.5, 5))
        return (placed, t(rng.uniform(8, 19, 6)), t(np.linspace(2.5, 0.3, 6))), settings

    return given


@BOOK.wrong(
    lift(base="rock"),
    'base "insulated" mirrors the second node, which counts twice: the factor 2 is missing',
    at("base"),
    r"insulated|mirror|\btwice\b|double|\b2 ?\* ?(?:s\.|ctx\.)?(?:r|ratio)\b|second node",
    mends("back[1] += 2 *", "back[1] += ratio * 2", "back[1] = 2 *"),
    where="base is insulated",
    shows=lift(base="insulated", ratio=0.3),
)
def lift_temperatures():
    def before(flow, ratio, base):
        back = np.zeros_like(flow)
        back[1:-1] += (1 - 2 * ratio) * flow[1:-1]
        back[2:] += ratio * flow[1:-1]
        back[:-2] += ratio * flow[1:-1]
        if base == "rock":
            back[0] += flow[0]
        else:
            back[0] += (1 - 2 * ratio) * flow[0]
            back[1] += ratio * flow[0]
        return back

    @pb.autograd_function
    def lift_temperatures(ctx, placed, air, heating, ratio=0.25, base="rock"):
        """Temperatures of a concrete lift by Schmidt's method.

        placed: (n,) from the base to the surface; air and heating: (steps,); ratio: at most 0.5;
        base: "rock" keeps the temperature of the first node, "insulated" lets no heat through.
        """
        if base not in ("rock", "insulated"):
            raise ValueError(f"no such base: {base}")
        T = placed.numpy().copy()
        for outside, rise in zip(air.numpy(), heating.numpy(), strict=True):
            T = next_temperatures(T, outside, rise, ratio, base)
        ctx.steps, ctx.ratio, ctx.base = air.shape[0], ratio, base
        return pb.asarray(T)

    @lift_temperatures.backward
    @pb.once_differentiable
    def _(ctx, g):
        flow = g.numpy().copy()
        by_air, by_heating = np.zeros(ctx.steps), np.zeros(ctx.steps)
        for k in reversed(range(ctx.steps)):
            by_air[k] = flow[-1]
            by_heating[k] = flow[1:-1].sum()
            if ctx.base == "insulated":
                by_heating[k] += flow[0]
            flow = before(flow, ctx.ratio, ctx.base)
        return {
            "placed": pb.asarray(flow),
            "air": pb.asarray(by_air),
            "heating": pb.asarray(by_heating),
        }

    return lift_temperatures


def pool(h, area, spread, C):
    """Return storage and outflow at a level, each with its slope."""
    top = max(h, 0.0)
    S = area * h + 0.5 * spread * h**2
    return S, area + spread * h, C * top**1.5, 1.5 * C * top**0.5


FLOOD = np.array([20.0, 85.0, 240.0, 410.0, 360.0, 210.0, 120.0, 60.0])


@BOOK.right(
    lambda rng: (
        (t(FLOOD * rng.uniform(0.9, 1.1, 8)), t(np.array(95.0)), t(np.array(-0.2))),
        {"area": 1.1e6, "spread": 9e4},
    )
)
def level_pool():
    @pb.autograd_function
    def level_pool(ctx, inflow, coefficient, level, area, spread=0.0, dt=3600.0):
        """Outflow over the crest (m3/s) and level (m above the crest) after each step of a flood.

        Storage is area * h + spread * h^2 / 2; outflow is coefficient * h^1.5 above the crest.
        """
        I, C, h = inflow.numpy(), coefficient.item(), level.item()  # noqa: E741
        levels = [h]

        for k in range(1, I.size):
            S, _, Q, _ = pool(h, area, spread, C)
            aim = S - 0.5 * dt * Q + 0.5 * dt * (I[k - 1] + I[k])
            for _ in range(80):
                S, dS, Q, dQ = pool(h, area, spread, C)
                step = (S + 0.5 * dt * Q - aim) / (dS + 0.5 * dt * dQ)
                h -= step
                if abs(step) < 1e-14 * max(1.0, abs(h)):
                    break
            levels.append(h)
        ctx.states, ctx.dt, ctx.C = [pool(h, area, spread, C) for h in levels], dt, C
        return pb.asarray(np.array([s[2] for s in ctx.states])), pb.asarray(np.array(levels))

    @level_pool.backward
    @pb.once_differentiable
    def _(ctx, g_outflow, g_level):
        half, n = 0.5 * ctx.dt, len(ctx.states)
        by_inflow, by_C, to_aim = np.zeros(n), 0.0, 0.0
        for k in reversed(range(n)):
            _, dS, Q, dQ = ctx.states[k]
            # what follows depends on this level through storage less outflow
            by_Q = g_outflow.numpy()[k] - half * to_aim
            by_h = g_level.numpy()[k] + to_aim * dS + by_Q * dQ
            by_C += by_Q * Q / ctx.C
            if k == 0:
                break
            to_aim = by_h / (dS + half * dQ)
            by_C -= to_aim * half * Q / ctx.C
            by_inflow[k - 1 : k + 1] += half * to_aim
        return {"inflow": pb.asarray(by_inflow), "coefficient": by_C, "level": by_h}

    return level_pool


@BOOK.right(
    lambda rng: (
        (
            t(np.array([402.0, 411.7, 438.2, 455.1, 463.0])),
            t(np.array([0.0, 1.3, 7.8, 21.4, 47.0]) + rng.uniform(0, 0.5, 5)),
        ),
        {"levels": np.array([405.0, 415.0, 430.0, 445.0, 460.0]), "above": "extend"},
    )
)
def storage_at():
    @pb.autograd_function
    def storage_at(ctx, level, volumes, levels, above="hold"):
        """Storage in hm3 at levels of the water, from the table of the reservoir.

        Below the table it is that of the first row; above, that of the last ("hold") or on the
        straight line through the last two ("extend").
        """
        z, v = level.numpy(), volumes.numpy()
        k = np.clip(np.searchsorted(levels, z, side="right") - 1, 0, len(levels) - 2)
        step = levels[k + 1] - levels[k]
        part = (z - levels[k]) / step
        moves = (part >= 0) & ((part <= 1) | (above == "extend"))
        part = np.clip(part, 0.0, np.inf if above == "extend" else 1.0)
        ctx.save_for_backward(k, part, moves * (v[k + 1] - v[k]) / step)
        ctx.rows = len(levels)
        return pb.asarray(v[k] + part * (v[k + 1] - v[k]))

    @storage_at.backward
    @pb.once_differentiable
    def _(ctx, g):
        k, part, area = ctx.saved_variables
        gn = g.numpy()
        by_volume = np.bincount(k.ravel(), (gn * (1 - part)).ravel(), ctx.rows)
        by_volume += np.bincount(k.ravel() + 1, (gn * part).ravel(), ctx.rows)
        return {"level": pb.asarray(gn * area), "volumes": pb.asarray(by_volume)}

    return storage_at


YEAR = np.array([80.0, 65, 22, 9, 6, 4, 11, 30, 55, 70, 90, 85])


@BOOK.right(
    lambda rng: (
        (t(YEAR * rng.uniform(0.9, 1.1, 12)), t(np.array(38.0))),
        {},
    )
)
def required_storage():
    @pb.autograd_function
    def required_storage(ctx, inflow, demand, pattern=None, rounds=2):
        """Storage that a steady supply needs, by the sequent peak method.

        inflow: (n,); demand: scalar, mean supply per step; pattern: (n,) factors of the demand.
        """
        flow = inflow.numpy()
        share = np.ones(flow.size) if pattern is None else np.asarray(pattern, float)
        lack = demand.item() * share - flow
        worst, span, deficit, first = 0.0, (0, 0), 0.0, 0
        for step in range(rounds * flow.size):
            deficit += lack[step % flow.size]
            if deficit <= 0:
                deficit, first = 0.0, step + 1
            elif deficit > worst:
                worst, span = deficit, (first, step + 1)
        ctx.times = np.bincount(np.arange(*span) % flow.size, minlength=flow.size)
        ctx.share = share
        return pb.asarray(np.asarray(worst))

    @required_storage.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {
            "inflow": pb.asarray(-g.item() * ctx.times),
            "demand": g.item() * (ctx.times @ ctx.share),
        }

    return required_storage


@BOOK.right(
    lambda rng: (
        (t(np.array(61.3)), t(np.array(0.22))),
        {"nodes": np.array([[0.0, 8.0, 20.0], [35.0, 52.0, 66.0]]), "foundation": -2.0},
    )
)
def westergaard_pressure():
    GAMMA = 9.81

    class Westergaard(pb.Function):
        @staticmethod
        def forward(ctx, level, acceleration, nodes, foundation=0.0):
            """Dynamic water pressure in kPa on the nodes (heights) of an upstream face."""
            whole = level.item() - foundation
            if whole <= 0:
                raise ValueError("the reservoir is empty")
            below = level.item() - np.asarray(nodes, float)
            wet = below > 0
            y = np.where(wet, below, 1.0)
            unit = np.where(wet, 7 / 8 * GAMMA * np.sqrt(whole * y), 0.0)
            ctx.a = acceleration.item()
            ctx.save_for_backward(unit, 0.5 * unit * (1 / whole + 1 / y))
            return pb.asarray(ctx.a * unit)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            unit, by_level = ctx.saved_variables
            gn = g.numpy()
            return ctx.a * (gn * by_level).sum(), (gn * unit).sum(), None, None

    return Westergaard.apply


@BOOK.right(
    lambda rng: (
        (
            t(np.array([220.0, 560.0, 740.0, 690.0, 480.0, 190.0]) * rng.uniform(0.95, 1.05, 6)),
            t(rng.uniform(8, 20, 6)),
            t(np.array(27.0)),
        ),
        {
            "tilt": np.array([-12.0, 2.0, 14.0, 27.0, 39.0, 52.0]),
            "width": np.full(6, 4.0),
            "pore": 0.25,
        },
    )
)
def bishop_safety():
    @pb.autograd_function
    def bishop_safety(ctx, weight, cohesion, friction, tilt, width, pore=0.0, tol=1e-14):
        """Safety of an embankment along a circle by Bishop's simplified method.

        weight (kN/m), cohesion (kPa), tilt (degrees) and width (m) of each slice;
        friction: angle in degrees; pore: ratio of the pore pressure to the overburden.
        """
        W, c, tan = weight.numpy(), cohesion.numpy(), np.tan(np.radians(friction.item()))
        sin, cos = np.sin(np.radians(tilt)), np.cos(np.radians(tilt))
        driving = W @ sin
        if driving <= 0:
            raise ValueError("the slices do not drive a slide")
        held, F = c * width + W * (1 - pore) * tan, 1.0
        for _ in range(500):
            m = cos + sin * tan / F
            before, F = F, (held / m).sum() / driving
            if abs(F - before) <= tol * F:
                break
        m = cos + sin * tan / F
        inner = 1 - (held / m**2) @ sin * tan / F**2 / driving
        ctx.save_for_backward(sin=sin, m=m, held=held, width=width, W=W, tan=tan)
        ctx.F, ctx.pore, ctx.scale = F, pore, driving * inner
        return pb.asarray(np.asarray(F))

    @bishop_safety.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, F, flow = ctx.saved_variables, ctx.F, g.item() / ctx.scale
        by_tan = (s.W * (1 - ctx.pore) / s.m - s.held / s.m**2 * s.sin / F).sum()
        return {
            "weight": pb.asarray(flow * ((1 - ctx.pore) * s.tan / s.m - F * s.sin)),
            "cohesion": pb.asarray(flow * s.width / s.m),
            "friction": flow * by_tan * np.pi / 180 * (1 + s.tan**2),
        }

    return bishop_safety


@BOOK.right(
    lambda rng: (
        (t(np.array([48.0, 55.5])), t(np.array([3.0, 7.5])), t(np.array([0.4, 0.65]))),
        {"base": 40.0, "drain": 6.0},
    )
)
def uplift_force():
    @pb.autograd_function
    def uplift_force(ctx, heel, toe, efficiency, base, drain=None, unit=9.81):
        """Uplift in kN per metre and its moment about the toe; drain: metres from the heel."""
        up, down, e = heel.numpy(), toe.numpy(), efficiency.numpy()
        x = 0.0 if drain is None else drain
        rest = base - x
        over = rest / base * (up - down)  # above the toe's head, at the drain without drainage
        e_used = e if drain is not None else np.zeros_like(e)
        mid = down + (1 - e_used) * over
        # three heads on two trapezia, and what each adds to force and moment
        force = unit * np.array([x / 2, base / 2, rest / 2])
        moment = unit * np.array(
            [x * (rest + 2 / 3 * x) / 2, x * (rest + x / 3) / 2 + rest**2 / 3, rest**2 / 6]
        )
        ctx.by_head, ctx.share = np.stack([force, moment]), rest / base
        ctx.e, ctx.over, ctx.drained = e_used, over, drain is not None
        heads = np.stack([up, mid, down])
        return pb.asarray(np.tensordot(force, heads, 1)), pb.asarray(np.tensordot(moment, heads, 1))

    @uplift_force.backward
    @pb.once_differentiable
    def _(ctx, g_force, g_moment):
        g = np.stack([g_force.numpy(), g_moment.numpy()])
        up, mid, down = np.tensordot(ctx.by_head.T, g, 1)
        passed = mid * (1 - ctx.e) * ctx.share
        return {
            "heel": pb.asarray(up + passed),
            "toe": pb.asarray(down + mid - passed),
            "efficiency": pb.asarray(-mid * ctx.over * ctx.drained),
        }

    return uplift_force


@BOOK.right(lambda rng: ((t(rng.uniform(0.5, 6.0, 7)), t(np.array(21.0))), {"inflow": 310.0}))
def silting_reservoir():
    SILT = {"fine": 0.046, "medium": 0.1, "coarse": 1.0}

    @pb.autograd_function
    def silting_reservoir(ctx, sediment, capacity, inflow, grain="medium", flush=0.0):
        K = 1000 * SILT[grain] / inflow
        C, left, passed = capacity.item(), [], []
        for load in sediment.numpy():
            trap = K * C / (1 + K * C)
            after = C - (trap - flush) * load if trap > flush else C
            slope = 1 - load * K / (1 + K * C) ** 2 if trap > flush else 1.0
            passed.append((max(trap - flush, 0.0) * (after > 0), slope * (after > 0)))
            C = max(after, 0.0)
            left.append(C)
        ctx.passed = passed
        return pb.asarray(np.array(left))

    @silting_reservoir.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad, to_C = np.zeros(len(ctx.passed)), 0.0
        for year, (kept, slope) in reversed(list(enumerate(ctx.passed))):
            to_C += g.numpy()[year]
            grad[year] = -kept * to_C
            to_C *= slope
        return {"sediment": pb.asarray(grad), "capacity": to_C}

    return silting_reservoir


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.4, 1.0, 9)), t(rng.normal(0, 4, 9))),
        {"day": np.array([3, 40, 77, 130, 181, 222, 275, 318, 362])},
    )
)
def pendulum_model():
    @pb.autograd_function
    def pendulum_model(ctx, filling, weights, day, start=0, order=4):
        """Movement of a crest in mm by level, season and age.

        filling: (n,) level as a part of the full height; weights: (order + 5,) of 1, the powers
        of the filling, sine and cosine of the year, sine of the half year, and years since start.
        """
        z, w, d = filling.numpy(), weights.numpy(), np.asarray(day)
        if w.size != order + 5:
            raise ValueError("weights does not fit the order")
        powers = np.vander(z, order + 1, increasing=True)
        turn = 2 * np.pi * d / 365.25
        season = [np.sin(turn), np.cos(turn), np.sin(2 * turn), (d - start) / 365.25]
        X = np.column_stack([powers, *season])
        slope = powers[:, :order] @ (np.arange(1, order + 1) * w[1 : order + 1])
        ctx.save_for_backward(X=X, slope=slope)
        return pb.asarray(X @ w)

    @pendulum_model.backward
    @pb.once_differentiable
    def _(ctx, g):
        X, slope = ctx.saved_variables
        return {"filling": pb.asarray(g.numpy() * slope), "weights": pb.asarray(g.numpy() @ X)}

    return pendulum_model


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(9, 14, 4)),
            t(rng.uniform(46, 60, 4)),
            t(rng.uniform(22, 28, 4)),
            t(rng.uniform(0.004, 0.09, 4)),
        ),
        {},
    )
)
def casagrande_seepage():
    def forward(ctx, head, distance, slope, conductivity):
        """Seepage through a homogeneous earth dam (m3 per day and metre), and its exit length.

        slope: of the downstream face in degrees, below 30.
        """
        alpha, k = np.deg2rad(slope.numpy()), conductivity.numpy()
        sin, cos = np.sin(alpha), np.cos(alpha)
        u, v = distance.numpy() / cos, head.numpy() / sin
        if (u <= v).any():
            raise ValueError("the line of seepage does not reach the downstream face")
        w = np.sqrt(u**2 - v**2)
        a = u - w
        ctx.save_for_backward(u=u, v=v, w=w, a=a.copy(), sin=sin, cos=cos, k=k)
        return pb.asarray(k * a * sin**2), pb.asarray(a)

    @pb.once_differentiable
    def backward(ctx, g_flow, g_exit):
        s = ctx.saved_variables
        q = g_flow.numpy()
        by_a = q * s.k * s.sin**2 + g_exit.numpy()
        by_u, by_v = by_a * (1 - s.u / s.w), by_a * s.v / s.w
        by_alpha = by_u * s.u * s.sin / s.cos - by_v * s.v * s.cos / s.sin
        by_alpha += 2 * q * s.k * s.a * s.sin * s.cos
        return {
            "head": pb.asarray(by_v / s.sin),
            "distance": pb.asarray(by_u / s.cos),
            "slope": pb.asarray(np.deg2rad(by_alpha)),
            "conductivity": pb.asarray(q * s.a * s.sin**2),
        }

    return pb.autograd_function(forward, backward, name="casagrande_seepage")


@BOOK.right(
    lambda rng: (
        (t(np.array([9200.0, 8700, 8100, 9900])), t(np.array([9e3, 61e3, -55e3, -2e4]))),
        {"base": t(np.array(30.0))},
    )
)
def base_stresses():
    @pb.autograd_function
    def base_stresses(ctx, normal, moment, base):
        """Stresses at heel and toe: (n, 2) in kPa; where there would be tension, the base cracks.

        moment: about the middle, positive where it presses on the toe.
        """
        N, M, B = normal.numpy(), np.abs(moment.numpy()), base.item()
        x = B / 2 - M / N  # from the resultant to the nearer edge
        if (N <= 0).any() or (x <= 0).any():
            raise ValueError("the resultant lies outside the base")
        cracked = x < B / 3
        more = np.where(cracked, 2 * N / (3 * x), N / B + 6 * M / B**2)
        less = np.where(cracked, 0.0, N / B - 6 * M / B**2)
        turned = moment.numpy() < 0
        ctx.save_for_backward(N, M, B, x, cracked, turned)
        heel_toe = np.stack([less, more], axis=1)
        heel_toe[turned] = heel_toe[turned, ::-1]
        return pb.asarray(heel_toe)

    @base_stresses.backward
    @pb.once_differentiable
    def _(ctx, g):
        N, M, B, x, cracked, turned = ctx.saved_variables
        gn = g.numpy().copy()
        gn[turned] = gn[turned, ::-1]
        less, more = gn.T
        both, apart = less + more, more - less
        by_N = np.where(cracked, more * 2 / (3 * x) * (1 - M / N / x), both / B)
        by_M = np.where(cracked, more * 2 / (3 * x**2), apart * 6 / B**2)
        whole = -both * N / B**2 - 12 * apart * M / B**3
        by_B = np.where(cracked, -more * N / (3 * x**2), whole)
        return {
            "normal": pb.asarray(by_N),
            "moment": pb.asarray(np.where(turned, -by_M, by_M)),
            "base": by_B.sum(),
        }

    return base_stresses


@BOOK.right(
    lambda rng: (
        (
            t(np.array([64.0, 70, 41, 8, 3, 2, 5, 18, 47]) * rng.uniform(0.9, 1.1, 9)),
            t(np.array([21.0, 20, 24, 33, 40, 39, 30, 22, 20])),
            t(np.array(96.0)),
        ),
        {"start": 60.0, "dead": 12.0},
    )
)
def monthly_operation():
    def month(water, want, dead):
        """Return the supply, the water left, and how it came about."""
        if water - dead >= want:
            return want, water - want, "meet"
        if water > dead:
            return water - dead, dead, "short"
        return 0.0, water, "empty"

    @pb.autograd_function
    def monthly_operation(ctx, inflow, demand, capacity, start=0.0, dead=0.0):
        """Supply of each month, water spilt in all and storage left, all in hm3."""
        full = capacity.item()
        if not 0 <= dead < full:
            raise ValueError("the dead storage must be less than the capacity")
        S, spilt, supply, ways = start, 0.0, [], []
        for q, want in zip(inflow.numpy(), demand.numpy(), strict=True):
            given, S, way = month(S + q, want, dead)
            if full < S:
                spilt, S, way = spilt + S - full, full, "spill"
            supply.append(given)
            ways.append(way)
        ctx.ways = ways
        return tuple(pb.asarray(np.asarray(v)) for v in (supply, spilt, S))

    @monthly_operation.backward
    @pb.once_differentiable
    def _(ctx, g_supply, g_spilt, g_left):
        gn, spilt, to_S = g_supply.numpy(), g_spilt.item(), g_left.item()
        by_inflow, by_demand, by_full = np.zeros_like(gn), np.zeros_like(gn), 0.0
        for k, way in reversed(list(enumerate(ctx.ways))):
            if way == "spill":
                by_full += to_S - spilt
                to_S = spilt
            if way == "short":
                to_S = gn[k]
            elif way != "empty":
                by_demand[k] = gn[k] - to_S
            by_inflow[k] = to_S
        return {
            "inflow": pb.asarray(by_inflow),
            "demand": pb.asarray(by_demand),
            "capacity": by_full,
        }

    return monthly_operation


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(900, 5200, 7)), t(np.array(26.0))),
        {"bearing": np.arange(-18.0, 19.0, 6.0), "face": "riprap"},
    )
)
def wave_runup():
    FACE = {"riprap": 1.0, "grass": 1.6, "concrete": 1.9}
    G = 9.81

    @pb.autograd_function
    def wave_runup(ctx, fetch, wind, bearing, face="riprap"):
        cos = np.cos(np.deg2rad(bearing))
        part = cos**2 / cos.sum()
        U, F = wind.item(), part @ fetch.numpy()
        power = 0.0125 * (G * F / U**2) ** 0.42
        size, tanh = FACE[face] * 0.283 * U**2 / G, np.tanh(power)
        sech = size * (1 - tanh**2) * power * 0.42
        ctx.save_for_backward(part * sech / F, 2 / U * (size * tanh - sech))
        return pb.asarray(np.asarray(size * tanh))

    @wave_runup.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_fetch, by_wind = ctx.saved_variables
        return {"fetch": pb.asarray(g.item() * by_fetch), "wind": g.item() * by_wind}

    return wave_runup
