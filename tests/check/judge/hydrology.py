"""Hydrology: runoff, infiltration, routing, snow, evaporation, wells, channels, rating curves."""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

import pullback as pb

from .entries import FACTOR, MISSING, Book, at, mends, t

BOOK = Book("hydrology")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(20, 120, 6)), t(rng.uniform(60, 90, 6))), {}),
    "the initial abstraction is taken for 0.2 of the storage, whatever abstraction says",
    at("abstraction"),
    r"(?<!abstraction=)\b0\.2\b|hard.?coded|initial (?:loss|abstraction)",
    r"abstraction.{0,40}(?:ignored|not used|other than|not 0|fixed)",
    mends(
        "ctx.abstraction * by_excess",
        "by_excess * ctx.abstraction",
        "ctx.abstraction = abstraction",
        "-abstraction * by_excess",
        "s.abstraction",
    ),
    where="abstraction is not 0.2",
    shows=lambda rng: (
        (t(rng.uniform(20, 120, 6)), t(rng.uniform(60, 90, 6))),
        {"abstraction": 0.05},
    ),
)
def scs_runoff():
    @pb.autograd_function
    def scs_runoff(ctx, rain, curve_number, abstraction=0.2):
        """Runoff of a storm in mm by the curve number method."""
        P, CN = rain.numpy(), curve_number.numpy()
        if ((CN <= 0) | (CN >= 100)).any():
            raise ValueError("curve numbers lie between 0 and 100")
        storage = 25400.0 / CN - 254.0
        excess = np.maximum(P - abstraction * storage, 0.0)
        ctx.save_for_backward(CN=CN, storage=storage, excess=excess)
        return pb.asarray(excess**2 / (excess + storage))

    @scs_runoff.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        CN, S, excess = ctx.saved_variables
        total = excess + S
        by_excess = excess * (excess + 2 * S) / total**2
        by_storage = -0.2 * by_excess - (excess / total) ** 2
        gn = grad_output.numpy()
        return {
            "rain": pb.asarray(gn * by_excess),
            "curve_number": pb.asarray(gn * by_storage * -25400.0 / CN**2),
        }

    return scs_runoff


FLOOD = np.array([22.0, 35.0, 80.0, 115.0, 97.0, 64.0, 41.0, 30.0])


@BOOK.wrong(
    lambda rng: ((t(FLOOD * rng.uniform(0.9, 1.1, 8)), t(np.array(2.1)), t(np.array(0.2))), {}),
    "the first outflow is the first inflow, and its part of the gradient of inflow[0] is missing",
    r"\bfirst (?:\w+ )?(?:inflow|outflow|element|value|entry|step|row)|inflow\[0\]|\binitial\b",
    r"\b(?:element|index|position|entry|row|step) \(?0\b|steady start",
    mends(
        "grad_inflow[0] +=",
        "grad_inflow[0] = ",
        "to_outflow + gn[0]",
        "gn[0] + to_outflow",
        "to_outflow += gn[0]",
    ),
)
def muskingum_routing():
    class Muskingum(pb.Function):
        """Route a flood through a reach; steady before the first step.

        inflow: (n,); storage_time: hours; weight: 0 (reservoir) to 0.5 (pure translation).
        """

        @staticmethod
        def forward(ctx, inflow, storage_time, weight, dt=1.0):
            x, K, X = inflow.numpy(), storage_time.item(), weight.item()
            D = 2 * K * (1 - X) + dt
            c = np.array([dt - 2 * K * X, dt + 2 * K * X, 2 * K * (1 - X) - dt]) / D
            out = np.empty_like(x)
            out[0] = x[0]
            for k in range(1, len(x)):
                out[k] = c @ (x[k], x[k - 1], out[k - 1])
            ctx.save_for_backward(x=x, K=K, X=X, D=D, c=c, out=out)
            return pb.asarray(out.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            x, K, X, D, c, out = ctx.saved_variables
            gn = grad_output.numpy()
            grad_inflow, grad_c, to_outflow = np.zeros_like(x), np.zeros(3), 0.0
            for k in range(len(x) - 1, 0, -1):
                to_outflow += gn[k]
                grad_inflow[k] += c[0] * to_outflow
                grad_inflow[k - 1] += c[1] * to_outflow
                grad_c += to_outflow * np.array([x[k], x[k - 1], out[k - 1]])
                to_outflow *= c[2]
            by_K = (np.array([-2 * X, 2 * X, 2 * (1 - X)]) - 2 * (1 - X) * c) / D
            by_X = 2 * K * (np.array([-1.0, 1.0, -1.0]) + c) / D
            return (*map(pb.asarray, (grad_inflow, grad_c @ by_K, grad_c @ by_X)), None)

    return Muskingum.apply


@BOOK.wrong(
    lambda rng: (
        (t(np.array(120.0)), t(np.array(3e-4)), t(rng.uniform(300, 900, 3))),
        {"distance": np.array([40.0, 95.0, 150.0]), "time": np.array([0.1, 0.5, 1.0, 3.0])},
    ),
    "the well function depends on the transmissivity as well: that term is missing",
    MISSING,
    r"well function|exponential integral|through u\b|\bE1\b|\bW\(u\)|chain rule",
    r"(?:only|just|alone).{0,40}(?:prefactor|1 ?/ ?T|factor in front|outer)|du ?/ ?dT",
    mends(
        "np.exp(-s.u) - special.exp1(s.u)",
        "np.exp(-s.u) - s.well",
        "np.exp(-s.u) / T",
        "(s.well - np.exp(-s.u))",
        "special.exp1(s.u) - np.exp(-s.u)",
    ),
)
def theis_drawdown():
    def forward(ctx, transmissivity, storativity, rate, distance, time):
        """Drawdown at a point over time, of wells at given distances; rate: (wells,) in m3/day."""
        T, S = transmissivity.item(), storativity.item()
        if T <= 0 or S <= 0 or (time <= 0).any():
            raise ValueError("transmissivity, storativity and times must be positive")
        u = distance**2 * S / (4 * T * time[:, None])
        well = special.exp1(u)
        ctx.save_for_backward(T=T, S=S, rate=rate.numpy(), u=u, well=well)
        return pb.asarray(well @ rate.numpy() / (4 * np.pi * T))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        T, around = s.T, 4 * np.pi * s.T
        share = gn @ s.well / around
        return {
            "transmissivity": -(share @ s.rate) / T,
            "storativity": -(gn @ np.exp(-s.u)) @ s.rate / around / s.S,
            "rate": pb.asarray(share),
        }

    return pb.autograd_function(forward, backward, name="theis_drawdown")


WINTER = np.array([-6.0, -3.0, -8.0, 1.5, 3.0, -1.0, 4.0, 2.5])


def winter(rng, fall):
    precipitation = np.where(WINTER <= 0, fall, 2.0) * rng.uniform(0.8, 1.2, 8)
    return (t(precipitation), t(WINTER + rng.uniform(-0.3, 0.3, 8)), t(np.array(2.4))), {}


@BOOK.wrong(
    lambda rng: winter(rng, 30.0),
    "when the snow runs out, melt is what was left, but its gradient is that of the melt rate",
    r"runs? out|no snow|(?:all|rest of) the snow|limited|depleted|exhausted",
    r"\b(?:is|was|were) left\b|\bempty\b|\bgone\b",
    r"\bminimum\b|\bbranch\b|snow ?pack|melted away|(?:less|more) .{0,20}\bpotential",
    mends(
        "< s.pack[k]",
        "<= s.pack[k]",
        "> s.pack[k]",
        ">= s.pack[k]",
        "s.pack[k] <",
        "s.pack[k] >",
        "limited = ",
    ),
    where="all snow melts",
    shows=lambda rng: winter(rng, 3.0),
)
def degree_day_melt():
    @pb.autograd_function
    def degree_day_melt(ctx, precipitation, temperature, melt_rate, base=0.0, snow=0.0):
        """Water from rain and melting snow by day in mm; melt_rate in mm per degree and day."""
        P, T, rate = precipitation.numpy(), temperature.numpy(), melt_rate.item()
        water, pack = np.zeros_like(P), np.zeros_like(P)
        for k in range(len(P)):
            cold = T[k] <= base
            pack[k] = snow + P[k] * cold
            melt = min(rate * max(T[k] - base, 0.0), pack[k])
            snow = pack[k] - melt
            water[k] = melt + P[k] * (not cold)
        ctx.save_for_backward(warmth=T - base, rate=rate, pack=pack)
        return pb.asarray(water)

    @degree_day_melt.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        grad_P, grad_T = np.zeros_like(gn), np.zeros_like(gn)
        grad_rate = to_snow = 0.0
        for k in reversed(range(len(gn))):
            to_melt = gn[k] - to_snow
            if s.warmth[k] > 0:
                grad_P[k] = gn[k]
                grad_T[k] = to_melt * s.rate
                grad_rate += to_melt * s.warmth[k]
            else:
                grad_P[k] = to_snow
        return {
            "precipitation": pb.asarray(grad_P),
            "temperature": pb.asarray(grad_T),
            "melt_rate": grad_rate,
        }

    return degree_day_melt


def weather(rng):
    return (
        t(rng.uniform(8, 18, 5)),
        t(rng.uniform(1, 5, 5)),
        t(rng.uniform(0.8, 1.5, 5)),
        rng.uniform(15, 28, 5),
    )


@BOOK.wrong(
    lambda rng: (weather(rng), {}),
    "the gradient of the wind lacks the factor by which wind is brought down to 2 m",
    FACTOR + r"|multipl|divided by",
    at("height"),
    r"conver(?:t|sion)|logarithmic|\b2 ?m\b|chain rule|anemometer|\bprofile\b",
    mends("* ctx.down", "ctx.down *", "by_wind * ctx.down", "ctx.down)"),
    where="height is not 2",
    shows=lambda rng: (weather(rng), {"height": 10.0}),
)
def reference_evaporation():
    GAMMA = 0.066

    @pb.autograd_function
    def reference_evaporation(ctx, radiation, wind, vapour, temperature, height=2.0):
        """Reference evaporation (FAO 56) in mm a day; the wind is measured at the height given."""
        down = 1.0 if height == 2.0 else 4.87 / np.log(67.8 * height - 5.42)
        u2 = wind.numpy() * down
        saturated = 0.6108 * np.exp(17.27 * temperature / (temperature + 237.3))
        slope = 4098 * saturated / (temperature + 237.3) ** 2
        drying = GAMMA * 900 / (temperature + 273)
        deficit = saturated - vapour.numpy()
        below = slope + GAMMA * (1 + 0.34 * u2)
        out = (0.408 * slope * radiation.numpy() + drying * u2 * deficit) / below
        ctx.save_for_backward(slope, drying, deficit, u2, below, out)
        ctx.down = down
        return pb.asarray(out.copy())

    @reference_evaporation.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        slope, drying, deficit, u2, below, out = ctx.saved_variables
        flow = grad_output.numpy() / below
        by_wind = drying * deficit - 0.34 * GAMMA * out
        return (
            pb.asarray(flow * 0.408 * slope),
            pb.asarray(flow * by_wind),
            pb.asarray(-flow * drying * u2),
            None,
            None,
        )

    return reference_evaporation


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(0.5, 2.5, 4)), t(rng.uniform(3, 8, 4)), t(rng.uniform(0.02, 0.05, 4))),
        {"slope": 1e-3, "side": 1.5},
    ),
    "the wetted perimeter grows on both banks: the factor 2 is missing",
    FACTOR + r"|multipl|divided by",
    r"both (?:banks|sides)|two (?:banks|sides)|perimeter|hydraulic radius|doubl",
    mends("2 * s.bank", "s.bank * 2", "4 / 3 * s.bank", "s.bank * 4 / 3", "2.0 * s.bank"),
)
def channel_discharge():
    @pb.autograd_function
    def channel_discharge(ctx, depth, width, roughness, slope, side=0.0):
        """Discharge of a trapezoidal channel by Manning's formula; side: run per rise."""
        y, b, bank = depth.numpy(), width.numpy(), np.hypot(1.0, side)
        area, wetted = (b + side * y) * y, b + 2 * y * bank
        Q = np.sqrt(slope) / roughness.numpy() * area ** (5 / 3) * wetted ** (-2 / 3)
        ctx.save_for_backward(y=y, b=b, n=roughness, area=area, wetted=wetted, Q=Q, bank=bank)
        ctx.side = side
        return pb.asarray(Q.copy())

    @channel_discharge.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        flow = g.numpy() * s.Q
        top = s.b + 2 * ctx.side * s.y
        return {
            "depth": pb.asarray(flow * (5 / 3 * top / s.area - 2 / 3 * s.bank / s.wetted)),
            "width": pb.asarray(flow * (5 / 3 * s.y / s.area - 2 / 3 / s.wetted)),
            "roughness": pb.asarray(-flow / s.n.numpy()),
        }

    return channel_discharge


@BOOK.right(
    lambda rng: (
        (t(rng.gamma(0.6, 12, 10)), t(rng.uniform(2, 6, 10)), t(np.array(18.0))),
        {"start": 0.4},
    )
)
def spilling_bucket():
    @pb.autograd_function
    def spilling_bucket(ctx, rain, evaporation, capacity, start=0.0):
        """Runoff of a soil that spills when full; also the water left.

        start: water in the soil before the first day, a part of the capacity.
        """
        most = capacity.item()
        if most <= 0:
            raise ValueError("capacity must be positive")
        soil, filled, runoff = start * most, [], []
        for r, e in zip(rain.numpy(), evaporation.numpy(), strict=True):
            filled.append(soil + r - e)
            runoff.append(max(filled[-1] - most, 0.0))
            soil = min(max(filled[-1], 0.0), most)
        ctx.filled, ctx.most, ctx.start = filled, most, start
        return pb.asarray(np.array(runoff)), pb.asarray(np.array(soil))

    @spilling_bucket.backward
    @pb.once_differentiable
    def _(ctx, g_runoff, g_soil):
        to_soil, to_capacity = g_soil.item(), 0.0
        grad_rain = np.zeros(len(ctx.filled))
        for k in reversed(range(len(ctx.filled))):
            if ctx.filled[k] > ctx.most:
                spilled = g_runoff.numpy()[k]
                to_capacity += to_soil - spilled
                to_soil = spilled
            elif ctx.filled[k] < 0:
                to_soil = 0.0
            grad_rain[k] = to_soil
        return {
            "rain": pb.asarray(grad_rain),
            "evaporation": pb.asarray(-grad_rain),
            "capacity": to_capacity + ctx.start * to_soil,
        }

    return spilling_bucket


@BOOK.right(
    lambda rng: ((t(rng.gamma(0.6, 9, 9)), t(np.array(2.3)), t(np.array(1.4))), {"memory": 6})
)
def gamma_unit_hydrograph():
    def forward(ctx, excess, stages, delay, memory=12):
        """Excess rain through a cascade of reservoirs; stages need not be whole.

        memory: steps after which nothing comes any more (the ordinates sum to 1 up to there).
        """
        n, tau = stages.item(), delay.item()
        if n <= 0 or tau <= 0 or memory < 1:
            raise ValueError("stages, delay and memory must be positive")
        time = np.arange(min(memory, len(excess))) + 0.5
        density = time ** (n - 1) * np.exp(-time / tau)
        ordinates = density / density.sum()
        ctx.save_for_backward(rain=excess.numpy(), time=time, tau=tau, ordinates=ordinates)
        return pb.asarray(np.convolve(excess.numpy(), ordinates)[: len(excess)])

    @pb.once_differentiable
    def backward(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        n, lags = len(gn), range(len(s.time))
        grad_w = np.array([gn[k:] @ s.rain[: n - k] for k in lags])
        centred = s.ordinates * (grad_w - grad_w @ s.ordinates)
        grad_rain = np.zeros_like(gn)
        for k in lags:
            grad_rain[: n - k] += s.ordinates[k] * gn[k:]
        return {
            "excess": pb.asarray(grad_rain),
            "stages": centred @ np.log(s.time),
            "delay": centred @ s.time / s.tau**2,
        }

    return pb.autograd_function(forward, backward, name="gamma_unit_hydrograph")


@BOOK.right(lambda rng: ((t(rng.uniform(5, 40, 4)), t(rng.uniform(2, 6, 4))), {"side": 1.0}))
def critical_depth():
    GRAVITY = 9.80665

    def energy(y, Q, b, side):
        return Q**2 * (b + 2 * side * y) - GRAVITY * ((b + side * y) * y) ** 3

    class CriticalDepth(pb.Function):
        """Depth at which the flow in a trapezoidal channel is critical, found by bracketing."""

        @staticmethod
        def forward(discharge, width, side=0.0):
            if (discharge.numpy() <= 0).any():
                raise ValueError("discharge must be positive")
            pairs = zip(discharge.numpy(), width.numpy(), strict=True)
            depths = [
                optimize.brentq(energy, 1e-6, 1e3, args=(Q, b, side), xtol=1e-13, rtol=1e-14)
                for Q, b in pairs
            ]
            return pb.asarray(np.array(depths))

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(discharge=inputs[0], width=inputs[1], depth=output)
            ctx.side = inputs[2] if len(inputs) > 2 else 0.0

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            Q, b, y = (x.numpy() for x in ctx.saved_tensors)
            z = ctx.side
            area = (b + z * y) * y
            by_y = 2 * z * Q**2 - 3 * GRAVITY * area**2 * (b + 2 * z * y)
            by_Q, by_b = 2 * Q * (b + 2 * z * y), Q**2 - 3 * GRAVITY * area**2 * y
            scale = -grad_output.numpy() / by_y
            return {"discharge": pb.asarray(scale * by_Q), "width": pb.asarray(scale * by_b)}

    return CriticalDepth.apply


OBSERVED = np.array([3.1, -999.0, 7.4, 12.9, 8.8, -999.0, 4.0, 2.6])


@BOOK.right(lambda rng: ((t(rng.uniform(2, 12, 8)), OBSERVED), {"power": 0.5}))
def nash_sutcliffe():
    @pb.autograd_function
    def nash_sutcliffe(ctx, simulated, observed, power=1.0):
        """Efficiency of a simulation, 1 at best; a negative observation is a gap.

        power: of the flows that are compared, 0 for their logarithms.
        """
        flow, seen = simulated.numpy(), observed >= 0
        if (flow <= 0).any() and power != 1:
            raise ValueError("flows must be positive")
        bend = np.log if power == 0 else lambda x: x**power
        target = bend(observed[seen])
        spread = ((target - target.mean()) ** 2).sum()
        if not spread > 0:
            raise ValueError("observations do not vary")
        residual = np.zeros_like(flow)
        residual[seen] = bend(flow[seen]) - target
        ctx.flow, ctx.residual, ctx.spread, ctx.power = flow, residual, spread, power
        return pb.asarray(np.array(1 - (residual**2).sum() / spread))

    @nash_sutcliffe.backward
    @pb.once_differentiable
    def _(ctx, g):
        slope = 1.0 if ctx.power == 1 else (ctx.power or 1.0) * ctx.flow ** (ctx.power - 1)
        return {"simulated": pb.asarray(-2 * g.item() / ctx.spread * ctx.residual * slope)}

    return nash_sutcliffe


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(0.1, 4.0, 9)),
            t(np.array([0.4, 0.2, -0.5])),
            t(rng.uniform(3, 9, 3)),
            t(rng.uniform(1.4, 2.2, 3)),
        ),
        {"breaks": np.array([1.0, 2.5])},
    )
)
def rating_curve():
    @pb.autograd_function
    def rating_curve(ctx, stage, zero, coefficient, exponent, breaks):
        """Discharge from the water level, by one power law for each part between the breaks.

        stage: (n,); zero, coefficient, exponent: (parts,); breaks: (parts - 1,), increasing.
        """
        if (np.diff(breaks) <= 0).any():
            raise ValueError("breaks must increase")
        if {len(x) for x in (zero, coefficient, exponent)} != {len(breaks) + 1}:
            raise ValueError("each part needs its zero, coefficient and exponent")
        part = np.searchsorted(breaks, stage.numpy(), side="right")
        head = stage.numpy() - zero.numpy()[part]
        wet = head > 0
        head = np.where(wet, head, 1.0)
        flow = wet * coefficient.numpy()[part] * head ** exponent.numpy()[part]
        ctx.save_for_backward(coefficient=coefficient, exponent=exponent)
        ctx.part, ctx.head, ctx.flow = part, head, flow
        return pb.asarray(flow.copy())

    @rating_curve.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, part = ctx.saved_variables, ctx.part
        carried = grad_output.numpy() * ctx.flow
        by_stage = carried * s.exponent.numpy()[part] / ctx.head

        def per_part(values):
            return pb.asarray(np.bincount(part, values, minlength=len(s.exponent)))

        return {
            "stage": pb.asarray(by_stage),
            "zero": per_part(-by_stage),
            "coefficient": per_part(carried / s.coefficient.numpy()[part]),
            "exponent": per_part(carried * np.log(ctx.head)),
        }

    return rating_curve
