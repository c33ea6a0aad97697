"""Refrigeration: compressors, heat exchangers, valves, cold rooms, frost, freezing of food."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import MISSING, Book, at, mends, t

BOOK = Book("refrigeration")


def streams(rng):
    return (
        t(rng.uniform(34, 38, 4)),
        t(rng.uniform(24, 27, 4)),
        t(rng.uniform(2, 5, 4)),
        t(rng.uniform(12, 18, 4)),
        t(np.array(1.8)),
    )


@BOOK.wrong(
    lambda rng: (streams(rng), {}),
    "with parallel flow, the ends of the cold stream get each other's gradient (counterflow's)",
    at("flow"),
    r"parallel|co-?current|each other's|\bswap|exchang",
    mends('ctx.flow == "parallel"', 'ctx.flow == "counter"', "flow=flow", "s.flow"),
    where="flow is parallel",
    shows=lambda rng: (streams(rng), {"flow": "parallel"}),
)
def lmtd_duty():
    @pb.autograd_function
    def lmtd_duty(ctx, hot_in, hot_out, cold_in, cold_out, ua, flow="counter"):
        """Duty of heat exchangers in kW by the logarithmic mean temperature difference.

        Temperatures: (n,) in degrees; ua: () in kW/K; flow: "counter" or "parallel".
        """
        hi, ho, ci, co = (x.numpy() for x in (hot_in, hot_out, cold_in, cold_out))
        if flow not in ("counter", "parallel"):
            raise ValueError(f"unknown flow {flow!r}")
        a, b = (hi - co, ho - ci) if flow == "counter" else (hi - ci, ho - co)
        if (a <= 0).any() or (b <= 0).any():
            raise ValueError("the hot stream must be warmer at both ends")
        r = np.log(a / b)
        near = np.abs(r) < 1e-6
        r = np.where(near, 1.0, r)
        mean = np.where(near, (a + b) / 2, (a - b) / r)
        ctx.save_for_backward(a=a, b=b, r=r, near=near, mean=mean, ua=ua.item())
        return pb.asarray(ua.item() * mean)

    @lmtd_duty.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_a = gn * s.ua * np.where(s.near, 0.5, (1 - s.mean / s.a) / s.r)
        by_b = gn * s.ua * np.where(s.near, 0.5, (s.mean / s.b - 1) / s.r)
        return {
            "hot_in": pb.asarray(by_a),
            "hot_out": pb.asarray(by_b),
            "cold_in": pb.asarray(-by_b),
            "cold_out": pb.asarray(-by_a),
            "ua": float(gn @ s.mean),
        }

    return lmtd_duty


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(2.2e5, 3.4e5, 5)),
            t(rng.uniform(9e5, 1.5e6, 5)),
            t(rng.uniform(268, 285, 5)),
        ),
        {"displacement": 8e-3},
    ),
    "the suction pressure sets the density of the gas as well: that term is missing",
    MISSING,
    r"\bdensity\b|\brho\b|ideal gas|product rule|only through|volumetric efficiency",
    mends("s.flow / s.low", "s.flow / s.suction", "+ s.swept * s.efficiency", "s.efficiency /"),
)
def compressor_flow():
    GAS = 81.5  # J/(kg K), R134a

    def forward(ctx, suction, discharge, temperature, displacement, clearance=0.04, index=1.1):
        """Mass flow in kg/s of a reciprocating compressor with a clearance volume."""
        low, high, T = suction.numpy(), discharge.numpy(), temperature.numpy()
        density = low / (GAS * T)
        expanded = clearance * (high / low) ** (1 / index)
        efficiency = 1 + clearance - expanded
        flow = displacement * density * efficiency
        ctx.save_for_backward(low=low, high=high, T=T, expanded=expanded, flow=flow)
        ctx.rate = displacement * density / index
        return pb.asarray(flow.copy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_ratio = gn * ctx.rate * s.expanded
        return {
            "suction": pb.asarray(by_ratio / s.low),
            "discharge": pb.asarray(-by_ratio / s.high),
            "temperature": pb.asarray(-gn * s.flow / s.T),
        }

    return pb.autograd_function(forward, backward, name="compressor_flow")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.2, 0.5, 8)), t(np.array(0.11)), t(np.array(0.3))), {}),
    "a defrost clears the coil, but the gradient is carried back through it to the frost before",
    r"defrost|\bclear(?:s|ed)?\b|\breset|carried|threshold",
    r"melted|set to (?:0|zero)|(?:should|must|ought to) (?:be|stop)|\bbranch\b",
    mends("s.cleared[k]", "cleared[k]", "ctx.cleared", "~s.cleared", "not s.cleared"),
    where="the coil defrosts",
    shows=lambda rng: (
        (t(rng.uniform(1.2, 2.0, 8)), t(np.array(0.11)), t(np.array(0.3))),
        {"trigger": 3.5},
    ),
)
def frosted_capacity():
    @pb.autograd_function
    def frosted_capacity(ctx, moisture, loss, start, trigger=6.0, settling=0.97):
        # moisture: kg of water that reach the coil by hour; loss: part of the capacity per kg
        frost, held, cleared = start.item(), [], []
        for water in moisture.numpy():
            frost = settling * frost + water
            held.append(frost)
            cleared.append(frost > trigger)
            if cleared[-1]:
                frost = 0.0
        ctx.held, ctx.cleared = np.array(held), np.array(cleared)
        ctx.loss, ctx.settling = loss.item(), settling
        return pb.asarray(1 - ctx.loss * ctx.held), pb.asarray(ctx.cleared.copy())

    @frosted_capacity.backward
    @pb.once_differentiable
    def _(ctx, grad_capacity, grad_cleared):
        gn = grad_capacity.numpy()
        by_moisture = np.empty_like(gn)
        to_frost = 0.0
        for k in reversed(range(len(gn))):
            to_frost -= ctx.loss * gn[k]
            by_moisture[k] = to_frost
            to_frost *= ctx.settling
        return {
            "moisture": pb.asarray(by_moisture),
            "loss": float(-gn @ ctx.held),
            "start": to_frost,
        }

    return frosted_capacity


POWERS = np.array(
    [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2), (0, 3)]
).T
CATALOGUE = np.array([9.8e3, 340.0, -41.0, 4.2, -1.3, -0.21, 0.02, -0.012, -0.004, 3e-4])


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(-25, 5, 6)),
            t(rng.uniform(30, 55, 6)),
            t(CATALOGUE * rng.uniform(0.9, 1.1, 10)),
        ),
        {},
    )
)
def compressor_polynomial():
    """Ten coefficients as in AHRI 540."""
    by_low, by_high = POWERS

    @pb.autograd_function
    def compressor_polynomial(ctx, evaporating, condensing, coefficients):
        low, high = evaporating.numpy()[..., None], condensing.numpy()[..., None]
        ctx.save_for_backward(low=low, high=high, c=coefficients.numpy())
        return pb.asarray((low**by_low * high**by_high) @ coefficients.numpy())

    @compressor_polynomial.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        low, high, c = ctx.saved_variables
        gn = grad_output.numpy()
        one_less, one_less_high = np.maximum(by_low - 1, 0), np.maximum(by_high - 1, 0)
        slope_low = (by_low * low**one_less * high**by_high) @ c
        slope_high = (by_high * low**by_low * high**one_less_high) @ c
        terms = (low**by_low * high**by_high) * gn[..., None]
        return {
            "evaporating": pb.asarray(gn * slope_low),
            "condensing": pb.asarray(gn * slope_high),
            "coefficients": pb.asarray(terms.reshape(-1, len(c)).sum(axis=0)),
        }

    return compressor_polynomial


ANTOINE = {
    "R717": (4.86886, 1113.928, -10.409),
    "R290": (4.53678, 1149.36, 24.906),
    "R600a": (4.3281, 1132.108, 0.918),
}
UNITS = {"bar": 1.0, "kPa": 100.0, "Pa": 1e5}


@BOOK.right(lambda rng: ((t(rng.uniform(245, 330, (2, 3))),), {"refrigerant": "R290"}))
def saturation_pressure():
    @pb.autograd_function
    def saturation_pressure(ctx, temperature, refrigerant="R717", unit="kPa"):
        """Antoine's equation; temperature in K, any shape."""
        A, B, C = ANTOINE[refrigerant]
        ctx.save_for_backward(temperature=temperature)
        ctx.constants, ctx.unit = (A, B, C), UNITS[unit]
        return UNITS[unit] * ((A - B / (temperature + C)) * np.log(10)).exp()

    @saturation_pressure.backward
    def _(ctx, grad_output):
        A, B, C = ctx.constants
        above = ctx.saved_variables.temperature + C
        pressure = ctx.unit * ((A - B / above) * np.log(10)).exp()
        return {"temperature": grad_output * pressure * (np.log(10) * B) / above**2}

    return saturation_pressure


def bernoulli(x):
    """Return x / (exp(x) - 1) and its slope; a series near 0."""
    near = np.abs(x) < 1e-3
    safe = np.where(near, 1.0, np.minimum(x, 500.0))
    m = np.expm1(safe)
    value = np.where(near, 1 - x / 2 + x**2 / 12, safe / m)
    slope = np.where(near, -0.5 + x / 6 - x**3 / 180, (m - safe * (m + 1)) / m**2)
    return value, slope


@BOOK.right(
    lambda rng: (
        (
            t(np.array([1.2, 2.5, 0.8, 1.7])),
            t(np.array([2.0, 1.1, 0.8, 1.7004])),
            t(rng.uniform(1.0, 4.0, 4)),
            t(rng.uniform(15, 40, 4)),
        ),
        {},
    )
)
def counterflow_duty():
    class CounterflowDuty(pb.Function):
        """Heat in kW that two streams exchange in counterflow, by effectiveness and NTU.

        hot, cold: (n,) capacity rates in kW/K; ua: (n,) in kW/K; difference: (n,) of the inlets
        in K. The duty is smooth where the capacity rates are equal.
        """

        @staticmethod
        def forward(ctx, hot, cold, ua, difference):
            h, c = hot.numpy(), cold.numpy()
            if (h <= 0).any() or (c <= 0).any() or (ua.numpy() <= 0).any():
                raise ValueError("capacity rates and ua must be positive")
            least, most = np.minimum(h, c), np.maximum(h, c)
            x = ua.numpy() * (1 / least - 1 / most)
            value, slope = bernoulli(x)
            resistance = 1 / least + value / ua.numpy()
            ctx.first = h <= c
            ctx.save_for_backward(least, most, ua.numpy(), difference.numpy(), value, slope)
            ctx.resistance = resistance
            return pb.asarray(difference.numpy() / resistance)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            least, most, ua, difference, value, slope = ctx.saved_variables
            gn, first = grad_output.numpy(), ctx.first
            by_resistance = -gn * difference / ctx.resistance**2
            by_least = -by_resistance * (1 + slope) / least**2
            by_most = by_resistance * slope / most**2
            x = ua * (1 / least - 1 / most)
            by_ua = by_resistance * (slope * x - value) / ua**2
            return (
                pb.asarray(np.where(first, by_least, by_most)),
                pb.asarray(np.where(first, by_most, by_least)),
                pb.asarray(by_ua),
                pb.asarray(gn / ctx.resistance),
            )

    return CounterflowDuty.apply


@BOOK.right(
    lambda rng: (
        (
            t(np.array([2.0, 5.5, 7.1, 12.0, 6.2])),
            t(rng.uniform(9e5, 1.3e6, 5)),
            t(np.array([2.5e5, 3.1e5, 2.8e5, 3.3e5, 1.6e6])),
            t(np.array(1.4e-6)),
        ),
        {"static": 4.0},
    )
)
def expansion_valve():
    @pb.autograd_function
    def expansion_valve(ctx, superheat, before, after, area, static=4.0, span=5.0, density=1150.0):
        """Flow in kg/s through a thermostatic valve; nothing flows back."""
        lift = (superheat.numpy() - static) / span
        drop = before.numpy() - after.numpy()
        opening = np.clip(lift, 0.0, 1.0)
        speed = np.sqrt(2 * density * np.maximum(drop, 0.0))
        ctx.moving = (lift > 0) & (lift < 1)
        ctx.save_for_backward(opening=opening, speed=speed, area=area.item())
        ctx.span, ctx.density = span, density
        return pb.asarray(area.item() * opening * speed)

    @expansion_valve.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_superheat = np.where(ctx.moving, gn * s.area * s.speed / ctx.span, 0.0)
        flowing = s.speed > 0
        by_drop = np.zeros_like(gn)
        by_drop[flowing] = (gn * s.area * s.opening)[flowing] * ctx.density / s.speed[flowing]
        return {
            "superheat": pb.asarray(by_superheat),
            "before": pb.asarray(by_drop),
            "after": pb.asarray(-by_drop),
            "area": float((gn * s.opening * s.speed).sum()),
        }

    return expansion_valve


@BOOK.right(
    lambda rng: (
        (
            t(np.array(6.3)),
            t(rng.uniform(24, 26, 14)),
            t(np.array(0.21)),
            t(np.array(9.0)),
        ),
        {"upper": 4.0, "lower": 2.0},
    )
)
def thermostat_room():
    def forward(ctx, start, outside, conductance, cooling, upper=4.0, lower=2.0, heat=900.0):
        """Temperatures of a cold room by step of ten minutes; the compressor is on or off.

        start: (), outside: (n,) in degrees; conductance: () in kW/K; cooling: () in kW.
        upper, lower: where the compressor starts and stops; heat: kJ/K of room and goods.
        """
        if lower >= upper:
            raise ValueError("lower must be below upper")
        room, on, rooms, states = start.item(), False, [], []
        for air in outside.numpy():
            on = room > upper or (on and room > lower)
            rooms.append(room)
            states.append(on)
            room += 600.0 / heat * (conductance.item() * (air - room) - on * cooling.item())
        ctx.rooms, ctx.on = np.array(rooms), np.array(states)
        ctx.air, ctx.k, ctx.rate = outside.numpy(), conductance.item(), 600.0 / heat
        return pb.asarray(np.append(ctx.rooms[1:], room)[: len(rooms)])

    @pb.once_differentiable
    def backward(ctx, grad_output):
        gn = grad_output.numpy()
        after = np.empty_like(gn)
        carried = 0.0
        for k in reversed(range(len(gn))):
            after[k] = carried + gn[k]
            carried = after[k] * (1 - ctx.rate * ctx.k)
        return {
            "start": carried,
            "outside": pb.asarray(ctx.rate * ctx.k * after),
            "conductance": float(ctx.rate * after @ (ctx.air - ctx.rooms)),
            "cooling": float(-ctx.rate * after[ctx.on].sum()),
        }

    return pb.autograd_function(forward, backward, name="thermostat_room")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(55, 62, 7)), t(np.linspace(2, -2, 9)), t(np.array(0.31))),
        {"biot": 0.4},
    )
)
def slab_cooling():
    def exchange(n, biot):
        rows = -2 * np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1)
        rows[0, 1] = rows[-1, -2] = 2
        rows[0, 0] -= 2 * biot
        rows[-1, -1] -= 2 * biot
        air = np.zeros(n)
        air[[0, -1]] = 2 * biot
        return rows, air

    @pb.autograd_function
    def slab_cooling(ctx, profile, medium, fourier, biot=1.0):
        """Explicit conduction in a slab cooled on both faces.

        profile: (n,) temperatures from face to face, n > 1; medium: (steps,) temperatures of the
        air; fourier: () of a step; biot: of a node's width. Returns the final profile (n,).
        """
        fo = fourier.item()
        if not 0 < fo * (1 + biot) <= 0.5:
            raise ValueError("unstable: fourier * (1 + biot) may be 0.5 at most")
        rows, air = exchange(len(profile), biot)
        nodes, changes = profile.numpy().copy(), []
        for outside in medium.numpy():
            changes.append(rows @ nodes + air * outside)
            nodes += fo * changes[-1]
        ctx.rows, ctx.air, ctx.fo, ctx.changes = rows, air, fo, changes
        return pb.asarray(nodes)

    @slab_cooling.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        adjoint, by_fo = grad_output.numpy().copy(), 0.0
        by_medium = np.zeros(len(ctx.changes))
        for k in reversed(range(len(ctx.changes))):
            by_fo += float(adjoint @ ctx.changes[k])
            by_medium[k] = ctx.fo * (adjoint @ ctx.air)
            adjoint += ctx.fo * (ctx.rows.T @ adjoint)
        return {
            "profile": pb.asarray(adjoint),
            "medium": pb.asarray(by_medium),
            "fourier": by_fo,
        }

    return slab_cooling


@BOOK.right(
    lambda rng: (
        (
            t(np.array([-45.0, -8.0, 60.0, 190.0, 251.0, 330.0])),
            t(np.array(-1.1)),
            t(np.array(228.0)),
        ),
        {},
    )
)
def food_temperature():
    @pb.autograd_function
    def food_temperature(ctx, enthalpy, freezing, latent, frozen=1.9, thawed=3.6):
        """Temperature from the enthalpy in kJ/kg, which is 0 where everything has just frozen."""
        H, L = enthalpy.numpy(), latent.item()
        ctx.solid, ctx.liquid = H < 0, H > L
        ctx.heats = frozen, thawed
        rise = np.where(ctx.solid, H / frozen, np.where(ctx.liquid, (H - L) / thawed, 0.0))
        return pb.asarray(freezing.item() + rise)

    @food_temperature.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        frozen, thawed = ctx.heats
        return {
            "enthalpy": pb.asarray(gn * (ctx.solid / frozen + ctx.liquid / thawed)),
            "freezing": float(gn.sum()),
            "latent": -float(gn[ctx.liquid].sum()) / thawed,
        }

    return food_temperature


SHAPES = {"slab": (1 / 2, 1 / 8), "cylinder": (1 / 4, 1 / 16), "sphere": (1 / 6, 1 / 24)}
FOODS = {
    "beef": (1050.0, 2.4e5, -1.7),
    "peas": (1035.0, 2.6e5, -0.6),
    "fish": (1070.0, 2.7e5, -2.2),
}


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(0.02, 0.12, 4)),
            t(rng.uniform(12, 45, 4)),
            t(rng.uniform(1.1, 1.7, 4)),
            t(rng.uniform(-38, -25, 4)),
        ),
        {"food": "fish", "shape": "cylinder"},
    )
)
def plank_time():
    class PlankTime(pb.Function):
        @staticmethod
        def forward(ctx, thickness, film, conductivity, air, food="beef", shape="slab"):
            """Seconds to freeze, by Plank's equation."""
            P, R = SHAPES[shape]
            density, latent, point = FOODS[food]
            a, h, k = thickness.numpy(), film.numpy(), conductivity.numpy()
            below = point - air.numpy()
            if (below <= 0).any():
                raise ValueError("the air is not below the freezing point")
            ctx.PR, ctx.heat = (P, R), density * latent
            ctx.save_for_backward(a=a, h=h, k=k, below=below)
            return pb.asarray(ctx.heat / below * (P * a / h + R * a**2 / k))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            a, h, k, below = ctx.saved_variables
            P, R = ctx.PR
            gn = g.numpy() * ctx.heat / below
            return {
                "thickness": pb.asarray(gn * (P / h + 2 * R * a / k)),
                "film": pb.asarray(-gn * P * a / h**2),
                "conductivity": pb.asarray(-gn * R * a**2 / k**2),
                "air": pb.asarray(gn * (P * a / h + R * a**2 / k) / below),
            }

    return PlankTime.apply


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(24, 32, 5)),
            t(np.array([0.012, 0.0035, 0.0145, 0.0048, 0.009])),
            t(rng.uniform(7, 11, 5)),
            t(rng.uniform(0.05, 0.25, 5)),
        ),
        {"pressure": 98000.0},
    )
)
def cooling_coil():
    @pb.autograd_function
    def cooling_coil(ctx, temperature, humidity, surface, bypass, pressure=101325.0):
        """Air behind a coil: temperature and kg of water per kg of dry air; water condenses
        where the coil is below the dew point only."""
        T, w, c, b = (x.numpy() for x in (temperature, humidity, surface, bypass))
        vapour = 610.94 * np.exp(17.625 * c / (c + 243.04))
        saturated = 0.622 * vapour / (pressure - vapour)
        steep = vapour * 17.625 * 243.04 / (c + 243.04) ** 2
        slope = 0.622 * pressure * steep / (pressure - vapour) ** 2
        surplus = np.maximum(w - saturated, 0.0)
        ctx.save_for_backward(b=b, apart=T - c, surplus=surplus, slope=slope)
        return pb.asarray(T - (1 - b) * (T - c)), pb.asarray(w - (1 - b) * surplus)

    @cooling_coil.backward
    @pb.once_differentiable
    def _(ctx, g_temperature, g_humidity):
        b, apart, surplus, slope = ctx.saved_variables
        gt, gw = g_temperature.numpy(), g_humidity.numpy()
        wet = surplus > 0
        return {
            "temperature": pb.asarray(gt * b),
            "humidity": pb.asarray(np.where(wet, gw * b, gw)),
            "surface": pb.asarray((1 - b) * (gt + wet * gw * slope)),
            "bypass": pb.asarray(gt * apart + gw * surplus),
        }

    return cooling_coil


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(18, 36, 3)),
            t(rng.uniform(1.5, 2.4, 3)),
            t(np.array([22.0, 0.18])),
            t(np.array([3.1, 0.05, 6e-4])),
        ),
        {},
    )
)
def condensing_temperature():
    @pb.autograd_function
    def condensing_temperature(ctx, air, ua, capacity, power):
        # ua * (t - air) = capacity[0] - capacity[1] * t + power[0] + power[1] * t + power[2] * t^2
        a, k, q, w = (x.numpy() for x in (air, ua, capacity, power))
        warm = a + 10.0
        for _ in range(100):
            excess = k * (warm - a) - (q[0] - q[1] * warm) - np.polyval(w[::-1], warm)
            slope = k + q[1] - w[1] - 2 * w[2] * warm
            if (slope <= 0).any():
                raise ArithmeticError("no balance: the condenser is too small")
            step = excess / slope
            warm = warm - step
            if (np.abs(step) <= 1e-12 * np.abs(warm)).all():
                break
        slope = k + q[1] - w[1] - 2 * w[2] * warm
        ctx.save_for_backward(warm=warm, slope=slope, a=a, k=k)
        return pb.asarray(warm.copy())

    @condensing_temperature.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        share = g.numpy() / s.slope
        total, first, second = share.sum(), share @ s.warm, share @ s.warm**2
        return (
            pb.asarray(share * s.k),
            pb.asarray(share * (s.a - s.warm)),
            pb.asarray(np.array([total, -first])),
            pb.asarray(np.array([total, first, second])),
        )

    return condensing_temperature


@BOOK.right(
    lambda rng: (
        (
            t(np.array([12.0, 55.0, 31.0, 140.0, 78.0])),
            t(np.array([25.0, 25.0, 40.0])),
            t(np.array([0.31, 0.34, 0.29])),
        ),
        {},
    )
)
def staged_rack():
    def demand(load, sizes):
        return load[:, None] - (np.cumsum(sizes) - sizes)

    @pb.autograd_function
    def staged_rack(ctx, load, sizes, rates):
        """Power of compressors that start one after the other.

        load: (hours,) in kW; sizes: (m,) in kW of cooling; rates: (m,) kW of power per kW.
        Load beyond the sum of the sizes is not met.
        """
        ctx.save_for_backward(load, sizes, rates)
        run = np.clip(demand(load.numpy(), sizes.numpy()), 0.0, sizes.numpy())
        return pb.asarray(run @ rates.numpy())

    @staged_rack.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        load, sizes, rates = (x.numpy() for x in ctx.saved_variables)
        gn = grad_output.numpy()
        wanted = demand(load, sizes)
        full = wanted >= sizes
        partial = (wanted > 0) & ~full
        by_rest = gn[:, None] * rates * partial
        # a larger compressor leaves less to those that come after it
        later = by_rest.sum(axis=1, keepdims=True) - np.cumsum(by_rest, axis=1)
        by_size = (gn[:, None] * rates * full - later).sum(axis=0)
        return (
            pb.asarray(by_rest.sum(axis=1)),
            pb.asarray(by_size),
            pb.asarray(gn @ np.clip(wanted, 0.0, sizes)),
        )

    return staged_rack


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.05, 0.95, 7)), t(rng.uniform(1e-4, 9e-4, 7))),
        {"circuit": np.array([0, 0, 2, 1, 2, 2, 0]), "circuits": 4},
    )
)
def refrigerant_charge():
    @pb.autograd_function
    def refrigerant_charge(ctx, quality, volume, circuit, circuits, vapour=14.0, liquid=1290.0):
        """Charge of each circuit in kg, with Zivi's void fraction."""
        x, V = quality.numpy(), volume.numpy()
        slip = (vapour / liquid) ** (2 / 3)
        below = x + (1 - x) * slip
        density = liquid + x / below * (vapour - liquid)
        ctx.save_for_backward(V=V, density=density, slope=(vapour - liquid) * slip / below**2)
        ctx.circuit = circuit
        charge = np.zeros(circuits)
        np.add.at(charge, circuit, V * density)
        return pb.asarray(charge)

    @refrigerant_charge.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        V, density, slope = ctx.saved_variables
        gn = grad_output.numpy()[ctx.circuit]
        return {"quality": pb.asarray(gn * V * slope), "volume": pb.asarray(gn * density)}

    return refrigerant_charge
