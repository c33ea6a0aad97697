"""Volcanology: ash, lava flows, magma chambers, deformation, gas, forecasts of eruptions."""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

import pullback as pb

from .entries import FACTOR, MISSING, SHIFT, Book, at, mends, t

BOOK = Book("volcanology")
GRAVITY = 9.81


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(-6, 6, 7)), t(rng.uniform(-6, 6, 7)), t(4.2), t(0.012)),
        {"poisson": 0.27},
    ),
    "the distance to the source depends on the depth as well: that term is missing",
    MISSING,
    r"distance to the source|depends on .{0,20}depth|chain rule|through (?:R|the distance)",
    r"R ?\*\* ?5|(?:only|just|alone).{0,40}(?:numerator|prefactor|in front)|dR ?/ ?d",
    mends("1 - 3 *", "- 3 * s.depth", "3 * s.depth**2", "s.R**5", "s.R**2"),
)
def mogi_uplift():
    @pb.autograd_function
    def mogi_uplift(ctx, east, north, depth, volume, poisson=0.25):
        """Uplift in m at stations east and north of a point source.

        east, north: (n,) in km; depth: in km, positive; volume: its change in km3.
        """
        x, y, d = east.numpy(), north.numpy(), depth.item()
        if d <= 0:
            raise ValueError("the source lies below the surface")
        R = np.sqrt(x**2 + y**2 + d**2)
        strength = 1e3 * (1 - poisson) / np.pi
        ctx.save_for_backward(x=x, y=y, depth=d, R=R, volume=volume.item())
        ctx.strength = strength
        return pb.asarray(strength * volume.item() * d / R**3)

    @mogi_uplift.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, ctx.strength * g.numpy()
        by_R = -3 * gn * s.volume * s.depth / s.R**4
        return {
            "east": pb.asarray(by_R * s.x / s.R),
            "north": pb.asarray(by_R * s.y / s.R),
            "depth": (gn * s.volume / s.R**3).sum(),
            "volume": (gn * s.depth / s.R**3).sum(),
        }

    return mogi_uplift


def plume(rng):
    along = np.cumsum(rng.uniform(0.1, 0.6, 9))
    return (t(rng.gamma(2.0, 0.8, 9)), t(rng.uniform(6, 11))), {"along": along, "bearing": 20.0}


@BOOK.wrong(
    plume,
    "each column counts with the way to the next one, not with half of the way to either neighbour",
    r"trapez|\bhalf\b|\bhalves\b|\brectangle|\bboth (?:sides|neighbou?rs|intervals)",
    SHIFT,
    FACTOR,
    r"\bweights?\b",
    mends("0.5 *", "/ 2", "by_column[:-1]", "by_column[1:]"),
)
def so2_flux():
    def forward(ctx, column, wind, along, bearing=0.0):
        # column in g/m2, along in km, wind in m/s; bearing from the normal of the traverse
        c = column.numpy()
        across = np.cos(np.radians(bearing))
        burden = 0.5 * ((c[1:] + c[:-1]) * np.diff(along)).sum()
        ctx.save_for_backward(burden=burden, wind=wind.item(), along=along, across=across)
        return pb.asarray(np.asarray(burden * wind.item() * across))

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        carried = g.item() * s.across
        step = np.append(np.diff(s.along), 0.0)
        return {"column": pb.asarray(carried * s.wind * step), "wind": carried * s.burden}

    return pb.autograd_function(forward, backward, name="so2_flux")


def lava(rng):
    return (
        t(rng.uniform(0.8, 6.0, 5)),
        t(rng.uniform(3, 25, 5)),
        t(rng.uniform(800, 6000, 5)),
    )


@BOOK.wrong(
    lambda rng: (lava(rng), {}),
    "the gradient of the viscosity has the divisor of a wide flow, whatever channel says",
    at("channel"),
    r"\bwide (?:flow|channel)|half.?pipe|hard.?coded",
    r"(?<![\w.])3(?:\.0)?\b.{0,30}(?:hard|fixed|always)",
    FACTOR,
    mends("DIVISOR[ctx.channel]", "ctx.divisor", "s.divisor", "-s.speed / s.eta", "ctx.channel"),
    where="the channel is not wide",
    shows=lambda rng: (lava(rng), {"channel": "half_pipe"}),
)
def jeffreys_speed():
    DIVISOR = {"wide": 3.0, "half_pipe": 8.0, "narrow": 4.0}

    @pb.autograd_function
    def jeffreys_speed(ctx, thickness, slope, viscosity, channel="wide", density=2600.0):
        """Mean speed of a lava flow in m/s by Jeffreys' equation; slope in degrees."""
        h, eta = thickness.numpy(), viscosity.numpy()
        drive = density * GRAVITY * np.sin(np.radians(slope.numpy()))
        speed = drive * h**2 / (DIVISOR[channel] * eta)
        ctx.save_for_backward(h=h, slope=slope, eta=eta, drive=drive, speed=speed)
        return pb.asarray(speed.copy())

    @jeffreys_speed.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_slope = s.speed / np.tan(np.radians(s.slope.numpy())) * np.pi / 180
        return {
            "thickness": pb.asarray(gn * 2 * s.speed / s.h),
            "slope": pb.asarray(gn * by_slope),
            "viscosity": pb.asarray(-gn * s.drive * s.h**2 / (3.0 * s.eta**2)),
        }

    return jeffreys_speed


def outcrops(rng, farthest):
    distance = np.sort(rng.uniform(2, farthest, 6))
    return (t(distance), t(140.0), t(0.16), t(0.05)), {"kink": 12.0}


@BOOK.wrong(
    lambda rng: outcrops(rng, 11.0),
    "beyond the kink the thickness still depends on the near rate: that part is missing",
    MISSING,
    r"beyond|far (?:side|part|segment)|continu(?:ous|ity)|second segment|distal",
    r"\bpiecewise\b|\bbranch\b|\bsegments?\b",
    mends("np.minimum(", "ctx.kink)", "ctx.kink,", "s.near", "-s.first", "s.first *"),
    where="a distance beyond the kink",
    shows=lambda rng: outcrops(rng, 45.0),
)
def tephra_thinning():
    class TephraThinning(pb.Function):
        @staticmethod
        def forward(ctx, distance, at_vent, near_rate, far_rate, kink=15.0):
            """Thickness in cm of a fall deposit at distances in km; two exponential segments."""
            x = distance.numpy()
            far = np.maximum(x - kink, 0.0)
            exponent = near_rate.item() * (x - far) + far_rate.item() * far
            thick = at_vent.item() * np.exp(-exponent)
            ctx.save_for_backward(x=x, far=far, thick=thick)
            ctx.rates = near_rate.item(), far_rate.item()
            ctx.top = at_vent.item()
            return pb.asarray(thick.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            x, far, thick = ctx.saved_variables
            carried = grad_output.numpy() * thick
            beyond = far > 0
            rate = np.where(beyond, ctx.rates[1], ctx.rates[0])
            by_near = -(carried * x)[~beyond].sum()
            return (
                pb.asarray(-carried * rate),
                carried.sum() / ctx.top,
                by_near,
                -(carried * far).sum(),
                None,
            )

    return TephraThinning.apply


@BOOK.right(
    lambda rng: (
        (t(np.array([0.02, 0.06, 0.4, 1.5, 12.0, 60.0])), t(rng.uniform(900, 2500, 6))),
        {"height": 6.0},
    )
)
def ash_settling():
    AIR = 1.8e-5
    POWERS = np.array([[2.0, 1.0], [1.0, 2 / 3], [0.5, 0.5]])

    @pb.autograd_function
    def ash_settling(ctx, diameter, density, height=0.0):
        """Terminal velocity of particles in m/s, by the law of their own regime.

        diameter: (n,) in mm; density: (n,) in kg/m3; height: of the air, in km.
        """
        d, rho = 1e-3 * diameter.numpy(), density.numpy()
        air = 1.225 * np.exp(-height / 8.2)
        laws = np.stack(
            [
                GRAVITY * d**2 * rho / (18 * AIR),
                d * np.cbrt(4 * (GRAVITY * rho) ** 2 / (225 * AIR * air)),
                np.sqrt(3.1 * GRAVITY * rho * d / air),
            ]
        )
        reynolds = air * laws * d / AIR
        regime = np.select([reynolds[0] < 6, reynolds[1] < 500], [0, 1], 2)
        velocity = np.take_along_axis(laws, regime[None], axis=0)[0]
        ctx.save_for_backward(diameter, density, velocity, regime)
        return pb.asarray(velocity.copy()), pb.asarray(regime)

    @ash_settling.backward
    @pb.once_differentiable
    def _(ctx, g_velocity, g_regime):
        diameter, density, velocity, regime = ctx.saved_variables
        carried = (g_velocity.numpy() * velocity)[:, None] * POWERS[regime]
        return (
            pb.asarray(carried[:, 0] / diameter.numpy()),
            pb.asarray(carried[:, 1] / density.numpy()),
            None,
        )

    return ash_settling


BASALT = np.array([50.5, 1.8, 14.9, 10.4, 7.6, 11.3, 2.7, 0.3])


@BOOK.right(
    lambda rng: ((t(BASALT * rng.uniform(0.9, 1.1, (3, 8))), t(rng.uniform(1080, 1220, 3))), {})
)
def melt_density():
    # SiO2, TiO2, Al2O3, FeO, MgO, CaO, Na2O, K2O: molar mass, volume at 1400 C, its slope
    MASS = np.array([60.08, 79.88, 101.96, 71.85, 40.30, 56.08, 61.98, 94.20])
    VOLUME = np.array([26.92, 23.91, 37.37, 13.97, 11.73, 16.85, 29.51, 47.07])
    SLOPE = 1e-3 * np.array([0.0, 7.24, 2.62, 2.92, 3.27, 3.74, 7.68, 12.08])

    @pb.autograd_function
    def melt_density(ctx, oxides, celsius):
        """Density in g/cm3 of melts of oxides: (n, 8) in any unit of mass, at celsius: (n,)."""
        w = oxides.numpy()
        specific = (VOLUME + SLOPE * (celsius.numpy()[:, None] - 1400.0)) / MASS
        volume = (w * specific).sum(axis=1)
        rho = w.sum(axis=1) / volume
        ctx.save_for_backward(w=w, specific=specific, volume=volume, rho=rho)
        return pb.asarray(rho.copy())

    @melt_density.backward
    @pb.once_differentiable
    def _(ctx, g):
        w, specific, volume, rho = ctx.saved_variables
        per_volume = g.numpy() / volume
        by_w = per_volume[:, None] * (1 - rho[:, None] * specific)
        by_T = -per_volume * rho * (w @ (SLOPE / MASS))
        return {"oxides": pb.asarray(by_w), "celsius": pb.asarray(by_T)}

    return melt_density


@BOOK.right(lambda rng: ((t(rng.uniform(0.5, 400, 6)), t(1140.0), t(25.0)), {"latent": 3.5e5}))
def crust_thickness():
    def neumann(x, stefan):
        return x * np.exp(x**2) * special.erf(x) - stefan

    @pb.autograd_function
    def crust_thickness(ctx, hours, melting, surface, latent=4.0e5, heat=1200.0, spread=5e-7):
        age = hours.numpy()
        unit = heat / (latent * np.sqrt(np.pi))
        stefan = unit * (melting.item() - surface.item())
        if stefan <= 0:
            raise ValueError("the surface must be cooler than the melt")
        x = optimize.brentq(neumann, 0.0, 5.0, args=(stefan,), xtol=1e-15, rtol=1e-14)
        thick = 2 * x * np.sqrt(spread * 3600 * age)
        ctx.save_for_backward(age=age, thick=thick, x=x, unit=unit)
        return pb.asarray(thick.copy())

    @crust_thickness.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        steep = np.exp(s.x**2) * special.erf(s.x) * (1 + 2 * s.x**2) + 2 * s.x / np.sqrt(np.pi)
        by_melting = (gn @ s.thick) / s.x / steep * s.unit
        return {
            "hours": pb.asarray(0.5 * gn * s.thick / s.age),
            "melting": by_melting,
            "surface": -by_melting,
        }

    return crust_thickness


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 2.5, 14)), t(2.3), t(11.0), t(8.0)),
        {"start": 3.0},
    )
)
def chamber_cycle():
    @pb.autograd_function
    def chamber_cycle(ctx, recharge, stiffness, strength, drop, start=0.0):
        """Volumes erupted by step, and the overpressure in the end.

        recharge: (n,) in 1e6 m3 a step; stiffness: in MPa per 1e6 m3; strength: in MPa, at which
        the roof fails; drop: in MPa, from strength to the overpressure after an eruption.
        """
        k, top, fall = stiffness.item(), strength.item(), drop.item()
        pressure, erupted = start, np.zeros(len(recharge))
        failed = np.zeros(len(recharge), bool)
        for i, q in enumerate(recharge.numpy()):
            pressure += k * q
            if pressure > top:
                failed[i] = True
                erupted[i] = (pressure - top + fall) / k
                pressure = top - fall
        ctx.save_for_backward(recharge=recharge, erupted=erupted, failed=failed)
        ctx.k = k
        return pb.asarray(erupted.copy()), pb.asarray(np.asarray(pressure))

    @chamber_cycle.backward
    @pb.once_differentiable
    def _(ctx, g_erupted, g_pressure):
        q, k = ctx.saved_variables.recharge.numpy(), ctx.k
        _, erupted, failed = ctx.saved_variables
        gn, to_pressure = g_erupted.numpy(), g_pressure.item()
        by_q, by_k, by_top, by_drop = np.zeros_like(q), 0.0, 0.0, 0.0
        for i in reversed(range(len(q))):
            if failed[i]:
                by_top += to_pressure - gn[i] / k
                by_drop += gn[i] / k - to_pressure
                by_k -= gn[i] * erupted[i] / k
                to_pressure = gn[i] / k
            by_q[i] = k * to_pressure
            by_k += q[i] * to_pressure
        return {
            "recharge": pb.asarray(by_q),
            "stiffness": by_k,
            "strength": by_top,
            "drop": by_drop,
        }

    return chamber_cycle


@BOOK.right(
    lambda rng: (
        (
            t(np.array([2600, 2240, 1900, 1640, 1420, 1300, 1290, 1260.0]) + rng.normal(0, 15, 8)),
            t(180.0),
            t(0.31),
        ),
        {"spacing": 600.0},
    )
)
def energy_cone_runout():
    @pb.autograd_function
    def energy_cone_runout(ctx, terrain, collapse, friction, spacing=100.0):
        """Distance at which the energy line of a density current meets the terrain."""
        z = terrain.numpy()
        x = spacing * np.arange(len(z))
        above = z[0] + collapse.item() - friction.item() * x - z
        hit = np.flatnonzero(above <= 0)
        ctx.x, ctx.above, ctx.hit = x, above, hit[0] if len(hit) else None
        if ctx.hit is None:
            return pb.asarray(np.asarray(x[-1]))
        if ctx.hit == 0:
            raise ValueError("the collapse must be higher than the vent")
        last, first = above[hit[0] - 1], above[hit[0]]
        return pb.asarray(np.asarray(x[hit[0] - 1] + spacing * last / (last - first)))

    @energy_cone_runout.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_above = np.zeros_like(ctx.above)
        if ctx.hit is not None:
            i = ctx.hit
            last, first = ctx.above[i - 1], ctx.above[i]
            step = g.item() * (ctx.x[i] - ctx.x[i - 1]) / (last - first) ** 2
            by_above[i - 1], by_above[i] = -step * first, step * last
        by_terrain = -by_above
        by_terrain[0] += by_above.sum()
        return {
            "terrain": pb.asarray(by_terrain),
            "collapse": by_above.sum(),
            "friction": -(by_above @ ctx.x),
        }

    return energy_cone_runout


DAYS = np.array([0.0, 1.0, 2.0, 3.5, 4.0, 5.0, 6.0, 6.5, 7.0])


@BOOK.right(
    lambda rng: (
        (t(240.0 / (9.5 - DAYS) * rng.uniform(0.93, 1.07, 9)),),
        {"days": DAYS, "window": 6},
    )
)
def failure_forecast():
    @pb.autograd_function
    def failure_forecast(ctx, rate, days, window=None):
        # inverse rate of earthquakes, extrapolated along a straight line to zero
        used = slice(0 if window is None else -window, None)
        inverse, since = 1.0 / rate.numpy()[used], days[used]
        centred = since - since.mean()
        slope = centred @ inverse / (centred @ centred)
        if slope >= 0:
            raise ArithmeticError("the unrest does not accelerate")
        ctx.used, ctx.inverse, ctx.centred = used, inverse, centred
        ctx.slope, ctx.n = slope, len(days)
        return pb.asarray(np.asarray(since.mean() - inverse.mean() / slope))

    @failure_forecast.backward
    @pb.once_differentiable
    def _(ctx, g):
        lever = ctx.inverse.mean() / ctx.slope**2 / (ctx.centred @ ctx.centred)
        by_inverse = lever * ctx.centred - 1 / (len(ctx.inverse) * ctx.slope)
        by_rate = np.zeros(ctx.n)
        by_rate[ctx.used] = -g.item() * by_inverse * ctx.inverse**2
        return {"rate": pb.asarray(by_rate)}

    return failure_forecast


@BOOK.right(
    lambda rng: ((t(0.83 + rng.exponential(0.35, 25)),), {"complete": 1.0, "bin_width": 0.1})
)
def swarm_b_value():
    class SwarmBValue(pb.Function):
        """Aki's b-value of the events at or above the completeness, and their number."""

        @staticmethod
        def forward(ctx, magnitude, complete=0.0, bin_width=0.0):
            m = magnitude.numpy()
            ctx.used = m >= complete
            n = np.count_nonzero(ctx.used)
            if n < 2:
                raise ValueError("too few events")
            excess = m[ctx.used].mean() - (complete - bin_width / 2)
            ctx.slope = -np.log10(np.e) / excess**2 / n
            return pb.asarray(np.asarray(np.log10(np.e) / excess)), pb.asarray(np.asarray(n))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_b, g_n):
            return pb.asarray(g_b.item() * ctx.slope * ctx.used), None, None

    return SwarmBValue.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.02, 0.5, 6)), t(rng.uniform(950, 1250, 6)), t([-4.55, 5600.0, 610.0])),
        {"packing": 0.64},
    )
)
def slurry_viscosity():
    @pb.autograd_function
    def slurry_viscosity(ctx, crystals, celsius, vft, packing=0.6):
        """log10 of the viscosity in Pa s of a melt with crystals (fractions below packing).

        crystals, celsius: (n,); vft: (3,), the A, B, C of A + B / (T - C) in kelvin.
        """
        ctx.save_for_backward(crystals=crystals, celsius=celsius, vft=vft)
        ctx.packing = packing
        kelvin = celsius + 273.15
        melt = vft[0] + vft[1] / (kelvin - vft[2])
        return melt - 2.5 * packing * (1 - crystals / packing).log() / np.log(10.0)

    @slurry_viscosity.backward
    def _(ctx, g):
        s = ctx.saved_variables
        over = s.celsius + 273.15 - s.vft[2]
        by_over = -g * s.vft[1] / (over * over)
        by_vft = pb.stack([g.sum(), (g / over).sum(), -by_over.sum()])
        by_crystals = g * 2.5 / np.log(10.0) / (1 - s.crystals / ctx.packing)
        return {"crystals": by_crystals, "celsius": by_over, "vft": by_vft}

    return slurry_viscosity


@BOOK.right(
    lambda rng: (
        (t(np.array([0.4, 3.0, 20.0, 70.0, 160.0, 240.0])), t(4.5), t(rng.uniform(850, 1000))),
        {"melt": 2350.0},
    )
)
def bubbly_magma_density():
    GAS = 461.5

    def forward(ctx, pressure, water, celsius, melt=2400.0, solubility=4.11):
        # pressure in MPa, water in weight percent, solubility in 1e-6 Pa^-1/2
        P, kelvin = 1e6 * pressure.numpy(), celsius.item() + 273.15
        dissolved = 1e-6 * solubility * np.sqrt(P)
        gas = np.maximum(0.01 * water.item() - dissolved, 0.0)
        rho = 1 / (gas * GAS * kelvin / P + (1 - gas) / melt)
        ctx.save_for_backward(P=P, kelvin=kelvin, dissolved=dissolved, gas=gas, rho=rho)
        ctx.melt = melt
        return pb.asarray(rho.copy())

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        by_specific = -g.numpy() * s.rho**2
        by_gas = by_specific * (GAS * s.kelvin / s.P - 1 / ctx.melt) * (s.gas > 0)
        by_P = -by_specific * s.gas * GAS * s.kelvin / s.P**2 - by_gas * 0.5 * s.dissolved / s.P
        return {
            "pressure": pb.asarray(1e6 * by_P),
            "water": 0.01 * by_gas.sum(),
            "celsius": (by_specific * s.gas * GAS / s.P).sum(),
        }

    return pb.autograd_function(forward, backward, name="bubbly_magma_density")


@BOOK.right(
    lambda rng: ((t(rng.uniform(90, 180)), t(rng.uniform(40, 70)), t(0.0021)), {"steps": 40})
)
def volcanic_bomb():
    @pb.autograd_function
    def volcanic_bomb(ctx, speed, elevation, drag, steps=50, dt=0.25):
        """Track: (steps, 2) in m of a ballistic block; elevation in degrees, drag in 1/m."""
        angle, k = np.radians(elevation.item()), drag.item()
        aim = np.array([np.cos(angle), np.sin(angle)])
        v, place = speed.item() * aim, np.zeros(2)
        velocities, track = [v], []
        for _ in range(steps):
            v = v + dt * (np.array([0.0, -GRAVITY]) - k * np.hypot(*v) * v)
            place = place + dt * v
            velocities.append(v)
            track.append(place)
        ctx.velocities, ctx.aim, ctx.dt = velocities, aim, dt
        ctx.speed, ctx.k = speed.item(), k
        return pb.asarray(np.array(track).reshape(-1, 2))

    @volcanic_bomb.backward
    @pb.once_differentiable
    def _(ctx, g):
        to_v, to_place, by_drag = np.zeros(2), np.zeros(2), 0.0
        for row, v in zip(g.numpy()[::-1], ctx.velocities[-2::-1], strict=True):
            to_place = to_place + row
            to_v = to_v + ctx.dt * to_place
            fast = np.hypot(*v)
            by_drag -= ctx.dt * fast * (to_v @ v)
            to_v = to_v - ctx.dt * ctx.k * (fast * to_v + (to_v @ v) / max(fast, 1e-300) * v)
        across = np.array([-ctx.aim[1], ctx.aim[0]])
        return {
            "speed": to_v @ ctx.aim,
            "elevation": ctx.speed * (to_v @ across) * np.pi / 180,
            "drag": by_drag,
        }

    return volcanic_bomb


@BOOK.right(
    lambda rng: (
        (t(rng.dirichlet(np.ones(4))), t(rng.uniform(4, 22, 3)), t(3.5)),
        {"layers": np.array([2.0, 4.0, 5.0]), "stations": np.array([5.0, 15.0, 40.0, 90.0])},
    )
)
def ash_load():
    FALL = np.array([8.0, 3.0, 1.1, 0.7])

    @pb.autograd_function
    def ash_load(ctx, fractions, wind, spread, layers, stations, mass=50.0):
        offset = (stations - ((layers @ wind.numpy()) / FALL)[:, None]) / spread.item()
        bell = mass / np.sqrt(2 * np.pi) / spread.item() * np.exp(-0.5 * offset**2)
        ctx.save_for_backward(fractions=fractions, spread=spread)
        ctx.offset, ctx.bell, ctx.layers = offset, bell, layers
        return pb.asarray(fractions.numpy() @ bell)

    @ash_load.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        width = s.spread.item()
        weighted = s.fractions.numpy()[:, None] * ctx.bell * gn
        by_drift = (weighted * ctx.offset).sum(axis=1) / width
        return {
            "fractions": pb.asarray(ctx.bell @ gn),
            "wind": pb.asarray((by_drift / FALL).sum() * ctx.layers),
            "spread": (weighted * (ctx.offset**2 - 1)).sum() / width,
        }

    return ash_load


@BOOK.right(
    lambda rng: (
        (
            t(np.array([4.0, 18.0, 60.0, 210.0, 600.0]) * rng.uniform(0.8, 1.2, 5)),
            t(np.array([100.0, 60.0, 30.0, 10.0, 3.0])),
        ),
        {},
    )
)
def isopach_volume():
    @pb.autograd_function
    def isopach_volume(ctx, area, thickness, weights=None):
        """Volume in km3 of a fall deposit that thins exponentially with the root of the area.

        area: (n,) in km2, enclosed by the isopachs; thickness: (n,) in cm; weights: (n,) of the
        isopachs in the straight line fitted to the logarithms, all alike if None.
        """
        x, y = np.sqrt(area.numpy()), np.log(thickness.numpy())
        w = np.full(len(x), 1 / len(x)) if weights is None else weights / weights.sum()
        dx, dy = x - w @ x, y - w @ y
        scatter = (w * dx) @ dx
        k = -(w * dx) @ dy / scatter
        if k <= 0:
            raise ValueError("the deposit must thin outwards")
        volume = 2e-5 * np.exp(w @ y + k * (w @ x)) / k**2
        ctx.save_for_backward(x=x, w=w, dx=dx, dy=dy, scatter=scatter, k=k, volume=volume)
        ctx.thickness = thickness
        return pb.asarray(np.asarray(volume))

    @isopach_volume.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        carried = g.item() * s.volume
        by_k = carried * (s.w @ s.x - 2 / s.k)
        by_y = s.w * (carried - by_k * s.dx / s.scatter)
        by_x = s.w * (carried * s.k - by_k * (s.dy + 2 * s.k * s.dx) / s.scatter)
        return {
            "area": pb.asarray(by_x / (2 * s.x)),
            "thickness": pb.asarray(by_y / ctx.thickness.numpy()),
        }

    return isopach_volume
