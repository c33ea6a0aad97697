"""Meteorology: soundings, winds, analyses of stations, advection, humidity, verification."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

import pullback as pb

from .entries import FACTOR, MISSING, REPEATED, SECOND, Book, mends, t

BOOK = Book("meteorology")
GRAVITY = 9.80665
HEIGHTS = np.array([1500.0, 2500.0, 4000.0, 5500.0, 7500.0, 10000.0])


def sounding(rng, excess):
    around = 288.0 - 0.0065 * HEIGHTS + rng.normal(0, 0.1, 6)
    return (t(around + np.array(excess) + rng.normal(0, 0.1, 6)), t(around), HEIGHTS), {}


@BOOK.wrong(
    lambda rng: sounding(rng, [0.6, 1.5, 2.8, 3.1, 2.0, 0.9]),
    "layers in which the parcel is heavier count nothing, but get a gradient all the same",
    r"negativ|\bheavier\b|\bcolder\b|\bbuoyan|\bmask|\bclip|\bclamp|\bmaximum\b|relu",
    r"(?:should|must|expected|ought to)(?: be)? (?:0|zero)\b|\bnon-?zero\b|\bbranch\b|\blayers\b",
    mends(
        "s.layer > 0",
        "s.layer >= 0",
        "(layer > 0)",
        "np.heaviside(s.layer",
        "np.sign(s.layer",
        "s.layer <= 0",
        "s.layer < 0",
    ),
    where="some layer has negative buoyancy",
    shows=lambda rng: sounding(rng, [0.6, 2.5, 3.8, -1.5, -3.0, -4.5]),
)
def convective_energy():
    @pb.autograd_function
    def convective_energy(ctx, parcel, environment, height):
        """Energy that a rising parcel gains where it is lighter than the air around it, J/kg."""
        rising = np.diff(height)
        if (rising <= 0).any():
            raise ValueError("heights must increase")
        Tp, Te = parcel.numpy(), environment.numpy()
        lift = GRAVITY * (Tp - Te) / Te
        layer = 0.5 * (lift[1:] + lift[:-1])
        ctx.save_for_backward(Tp=Tp, Te=Te, layer=layer, rising=rising)
        return pb.asarray(np.array(np.maximum(layer, 0.0) @ rising))

    @convective_energy.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        by_layer = grad_output.item() * s.rising
        by_lift = np.zeros_like(s.Tp)
        by_lift[1:] += 0.5 * by_layer
        by_lift[:-1] += 0.5 * by_layer
        by_lift *= GRAVITY
        return {
            "parcel": pb.asarray(by_lift / s.Te),
            "environment": pb.asarray(-by_lift * s.Tp / s.Te**2),
        }

    return convective_energy


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(190, 280, 6)), t(rng.uniform(2, 12, 6))), {}),
    "forward gives the mean direction in degrees, its gradient stays in radians: factor 57.3",
    FACTOR + r"|multipl|divided by",
    r"\bdegrees?\b|radian|\bunits?\b|57\.\d|180 ?/|conver(?:t|sion)|\bpi\b",
    mends(
        "np.degrees(g_direction",
        "np.rad2deg(g_direction",
        "180 / np.pi",
        "180.0 / np.pi",
        "np.degrees(to_angle",
        "np.rad2deg(to_angle",
        "np.degrees(1",
        "np.degrees(along",
        "np.deg2rad(s.total ** 2)",
        "np.deg2rad(total ** 2)",
    ),
)
def mean_wind():
    @pb.autograd_function
    def mean_wind(ctx, direction, speed):
        """Direction (degrees, whence the wind comes) and speed of the mean of wind vectors."""
        angle, f = np.deg2rad(direction.numpy()), speed.numpy()
        east, north = np.sin(angle), np.cos(angle)
        u, v = (f * east).mean(), (f * north).mean()
        total = np.hypot(u, v)
        if total == 0:
            raise ValueError("winds cancel: they have no mean direction")
        ctx.save_for_backward(f=f, east=east, north=north, u=u, v=v, total=total)
        mean_direction = np.degrees(np.arctan2(u, v)) % 360.0
        return pb.asarray(np.array(mean_direction)), pb.asarray(np.array(total))

    @mean_wind.backward
    @pb.once_differentiable
    def _(ctx, g_direction, g_total):
        s, total = ctx.saved_variables, ctx.saved_variables.total
        to_angle, to_total = g_direction.item(), g_total.item() / total
        by_u = (to_angle * s.v / total**2 + to_total * s.u) / len(s.f)
        by_v = (to_total * s.v - to_angle * s.u / total**2) / len(s.f)
        by_angle = s.f * (by_u * s.north - by_v * s.east)
        return {
            "direction": pb.asarray(np.deg2rad(by_angle)),
            "speed": pb.asarray(by_u * s.east + by_v * s.north),
        }

    return mean_wind


@BOOK.wrong(
    lambda rng: ((t(np.linspace(290, 300, 7) + rng.normal(0, 0.4, 7)),), {"spacing": 0.25}),
    "at both ends the difference is one-sided over one step, but goes back as if over two",
    r"one.sided|\bends?\b|\bboundar|\bedges?\b|first and last|\b(?:first|last) (?:level|row|elem)",
    r"\b(?:element|index|position|entry)s? \(?\[?(?:0|6|-1)\b|\bcentral\b|forward difference",
    FACTOR,
    mends(
        "2 * flow[0]",
        "flow[0] * 2",
        "flow[0] *= 2",
        "flow[[0, -1]] *= 2",
        "2 * flow[-1]",
        "flow[[0, -1]] * 2",
        "flow[-1] *= 2",
        "2.0 * flow[0]",
    ),
)
def static_stability():
    def forward(ctx, theta, spacing=0.1):
        """Square of the buoyancy frequency in 1e-3/s2; theta: (n,) in K, at steps in km."""
        th = theta.numpy()
        if len(th) < 3:
            raise ValueError("a profile needs three levels")
        N2 = GRAVITY / th * np.gradient(th, spacing)
        ctx.save_for_backward(th=th, N2=N2, spacing=spacing)
        return pb.asarray(N2.copy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        th, N2, spacing = ctx.saved_variables
        gn = grad_output.numpy()
        flow = gn * GRAVITY / th / (2 * spacing)
        grad = -gn * N2 / th
        grad[2:] += flow[1:-1]
        grad[:-2] -= flow[1:-1]
        grad[:2] += flow[0] * np.array([-1.0, 1.0])
        grad[-2:] += flow[-1] * np.array([-1.0, 1.0])
        return {"theta": pb.asarray(grad)}

    return pb.autograd_function(forward, backward, name="static_stability")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(995, 1020, 6)), t(np.array(1.3)), rng.uniform(0.2, 3.0, (4, 6))),
        {},
    ),
    "the radius changes the sum of the weights, too: the quotient's second term is missing",
    MISSING,
    r"quotient|normali[sz]|denominator|sum of (?:the )?weights|total weight|\bcentred\b",
    mends(
        "s.values - s.out",
        "s.values - ctx.saved_variables.out",
        "s.out[:, None]",
        "s.out * spread.sum",
        "- s.out *",
        "by_weight - (by_weight * s.share).sum",
    ),
)
def barnes_analysis():
    class BarnesAnalysis(pb.Function):
        """Values of stations brought to grid points by a Gaussian of their distance.

        values: (n,); radius: (); distance: (m, n), in the unit of the radius; returns (m,).
        """

        @staticmethod
        def forward(ctx, values, radius, distance, gamma=1.0):
            closeness = (distance / radius.item()) ** 2 / gamma
            weight = np.exp(closeness.min(axis=1, keepdims=True) - closeness)
            share = weight / weight.sum(axis=1, keepdims=True)
            out = share @ values.numpy()
            ctx.save_for_backward(
                values=values.numpy(),
                radius=radius.item(),
                closeness=closeness,
                share=share,
                out=out,
            )
            return pb.asarray(out.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, gn = ctx.saved_variables, grad_output.numpy()
            spread = s.share * 2 * s.closeness / s.radius
            return {
                "values": pb.asarray(gn @ s.share),
                "radius": gn @ (spread @ s.values),
            }

    return BarnesAnalysis.apply


def tracer(rng, wind):
    return (t(rng.uniform(0, 4, 8)), t(np.array(wind) + rng.uniform(-0.1, 0.1, 8))), {"dt": 1.0}


@BOOK.wrong(
    lambda rng: tracer(rng, [0.5, 0.3, 0.6, 0.4, 0.7, 0.5, 0.3, 0.6]),
    "where two parcels come from the same cell, fancy indexing keeps only the last contribution",
    REPEATED,
    r"same (?:cell|place|index|element)|fancy|np\.add\.at|bincount|accumulat|\bcollid|coincid",
    r"\bonly (?:the )?last\b|overwrit|\blost\b",
    mends("np.add.at(", "np.bincount(", "scatter_add"),
    where="departure points share a cell",
    shows=lambda rng: tracer(rng, [0.5, 1.3, 2.6, 1.4, 2.5, 0.5, 1.3, 2.6]),
)
def departure_interpolation():
    @pb.autograd_function
    def departure_interpolation(ctx, tracer, wind, dt=0.5, dx=1.0):
        """One step of semi-Lagrangian advection on a ring: linear between the cells around."""
        q, n = tracer.numpy(), len(tracer)
        whence = np.arange(n) - wind.numpy() * dt / dx
        left = np.floor(whence).astype(int)
        part = whence - left
        left %= n
        right = (left + 1) % n
        ctx.save_for_backward(q=q, left=left, right=right, part=part)
        ctx.courant = dt / dx
        return pb.asarray((1 - part) * q[left] + part * q[right])

    @departure_interpolation.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        grad_q = np.zeros_like(s.q)
        grad_q[s.left] += gn * (1 - s.part)
        grad_q[s.right] += gn * s.part
        slope = s.q[s.right] - s.q[s.left]
        return pb.asarray(grad_q), pb.asarray(-gn * ctx.courant * slope), None, None

    return departure_interpolation


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(5, 30, 5)), t(rng.uniform(-5, 15, 5))), {}),
    "the slopes are taken out of the graph as arrays, so the second derivative is lost",
    SECOND,
    r"once_differentiable|\bdetach|out of the graph|as arrays|\bconstants?\b",
    where="second derivative",
)
def vapour_pressure_deficit():
    A, B, E0 = 17.62, 243.12, 6.112

    @pb.autograd_function
    def vapour_pressure_deficit(ctx, temperature, dewpoint):
        """Deficit to saturation in hPa by Magnus' formula, of temperatures in degrees Celsius."""
        saturated = E0 * (A * temperature / (B + temperature)).exp()
        actual = E0 * (A * dewpoint / (B + dewpoint)).exp()
        ctx.save_for_backward(temperature=temperature, dewpoint=dewpoint)
        return saturated - actual

    @vapour_pressure_deficit.backward
    def _(ctx, grad_output):
        def slope(celsius):
            c = celsius.numpy()
            return pb.asarray(E0 * np.exp(A * c / (B + c)) * A * B / (B + c) ** 2)

        s = ctx.saved_variables
        return {
            "temperature": grad_output * slope(s.temperature.detach()),
            "dewpoint": -grad_output * slope(s.dewpoint.detach()),
        }

    return vapour_pressure_deficit


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(275, 305, 6)),
            t(np.array([12.0, 35.0, 60.0, 88.0, 104.0, 101.5]) + 0.2 * rng.normal(size=6)),
        ),
        {"pressure": 985.0},
    )
)
def lifting_condensation_level():
    @pb.autograd_function
    def lifting_condensation_level(ctx, temperature, humidity, pressure=1000.0, kappa=0.2854):
        """Temperature and pressure at which rising air saturates, by Bolton.

        humidity: relative, in percent; air above saturation stays where it is.
        """
        T, damp = temperature.numpy(), humidity.numpy() / 100
        if (damp <= 0).any():
            raise ValueError("humidity must be positive")
        under = damp < 1
        dryness = np.where(under, -np.log(np.minimum(damp, 1.0)), 0.0)
        inverse = 1 / (T - 55) + dryness / 2840
        level = 1 / inverse + 55
        p = pressure * (level / T) ** (1 / kappa)
        ctx.save_for_backward(T=T, damp=damp, under=under, inverse=inverse, level=level, p=p)
        ctx.kappa = kappa
        return pb.asarray(level.copy()), pb.asarray(p.copy())

    @lifting_condensation_level.backward
    @pb.once_differentiable
    def _(ctx, g_level, g_pressure):
        s = ctx.saved_variables
        by_p = g_pressure.numpy() * s.p / ctx.kappa
        by_inverse = -(g_level.numpy() + by_p / s.level) / s.inverse**2
        by_T = -by_inverse / (s.T - 55) ** 2 - by_p / s.T
        by_damp = np.where(s.under, -by_inverse / 2840 / s.damp, 0.0)
        return {"temperature": pb.asarray(by_T), "humidity": pb.asarray(by_damp / 100)}

    return lifting_condensation_level


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(10, 30, 5)), t(rng.uniform(4, 9, 5)), t(np.array(950.0))),
        {"ventilated": True},
    )
)
def wet_bulb():
    def saturation(T):
        e = 6.112 * np.exp(17.67 * T / (T + 243.5))
        return e, e * 17.67 * 243.5 / (T + 243.5) ** 2

    class WetBulb(pb.Function):
        """Temperature of a wet thermometer in degrees Celsius, by Newton.

        vapour: pressure of the vapour in hPa; pressure: () in hPa.
        """

        @staticmethod
        def forward(temperature, vapour, pressure, ventilated=False, iterations=30):
            T, e = temperature.numpy(), vapour.numpy()
            constant = (6.62e-4 if ventilated else 8.0e-4) * pressure.item()
            Tw = T.copy()
            for _ in range(iterations):
                es, slope = saturation(Tw)
                step = (es - constant * (T - Tw) - e) / (slope + constant)
                Tw -= step
                if np.abs(step).max() < 1e-13:
                    break
            return pb.asarray(Tw)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(T=inputs[0], Tw=output, pressure=inputs[2])
            ctx.rate = 6.62e-4 if len(inputs) > 3 and inputs[3] else 8.0e-4

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s = ctx.saved_variables
            T, Tw, constant = s.T.numpy(), s.Tw.numpy(), ctx.rate * s.pressure.item()
            flow = grad_output.numpy() / (saturation(Tw)[1] + constant)
            return {
                "temperature": pb.asarray(flow * constant),
                "vapour": pb.asarray(flow),
                "pressure": (flow * ctx.rate * (T - Tw)).sum(),
            }

    return WetBulb.apply


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(0.2, 0.6, 5)),
            t(np.array(0.08)),
            t(np.array([-0.05, -0.012, 0.004, 0.02, 0.07]) * rng.uniform(0.9, 1.1, 5)),
        ),
        {"height": 12.0},
    )
)
def surface_layer_wind():
    VON_KARMAN = 0.4

    def stability(zeta):
        """Return the integrated correction and its slope, for stable and for unstable air."""
        unstable = zeta < 0
        x = np.where(unstable, 1 - 16 * np.minimum(zeta, 0), 1.0) ** 0.25
        psi = 2 * np.log((1 + x) / 2) + np.log((1 + x**2) / 2) - 2 * np.arctan(x) + np.pi / 2
        slope = (1 - 1 / x) / np.where(unstable, zeta, 1.0)
        return np.where(unstable, psi, -5 * zeta), np.where(unstable, slope, -5.0)

    @pb.autograd_function
    def surface_layer_wind(ctx, friction, roughness, inverse_length, height=10.0):
        """Wind at a height by Monin and Obukhov; inverse_length: 1/L, negative if unstable."""
        z0, top = roughness.item(), height * inverse_length.numpy()
        if not 0 < z0 < height:
            raise ValueError("roughness lies between 0 and the height")
        bottom = top * z0 / height
        psi_top, slope_top = stability(top)
        psi_bottom, slope_bottom = stability(bottom)
        shear = (np.log(height / z0) - psi_top + psi_bottom) / VON_KARMAN
        ctx.save_for_backward(friction=friction.numpy(), z0=z0, shear=shear, top=top)
        ctx.slopes, ctx.height = (slope_top, slope_bottom), height
        return pb.asarray(friction.numpy() * shear)

    @surface_layer_wind.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_shear = gn * s.friction / VON_KARMAN
        slope_top, slope_bottom = ctx.slopes
        by_z0 = by_shear * (slope_bottom * s.top / ctx.height - 1 / s.z0)
        return {
            "friction": pb.asarray(gn * s.shear),
            "roughness": by_z0.sum(),
            "inverse_length": pb.asarray(by_shear * (slope_bottom * s.z0 - slope_top * ctx.height)),
        }

    return surface_layer_wind


@BOOK.right(
    lambda rng: (
        (t(rng.gamma(1.0, 4.0, (6, 8))), rng.random((6, 8)) < 0.3),
        {"threshold": 5.0, "window": 3},
    )
)
def fractions_skill():
    @pb.autograd_function
    def fractions_skill(ctx, forecast, observed, threshold=1.0, width=0.8, window=5):
        """Skill of a rain forecast by fractions of neighbourhoods; observed: bool, of events.

        width: of the soft threshold; window: odd number of cells along each side.
        """
        if window % 2 == 0:
            raise ValueError("window must be odd")
        event = 1 / (1 + np.exp((threshold - forecast.numpy()) / width))
        guess = ndimage.uniform_filter(event, window, mode="constant")
        truth = ndimage.uniform_filter(observed.astype(float), window, mode="constant")
        apart, worst = ((guess - truth) ** 2).sum(), (guess**2).sum() + (truth**2).sum()
        ctx.event, ctx.guess, ctx.truth, ctx.width, ctx.window = event, guess, truth, width, window
        ctx.apart, ctx.worst = apart, worst
        return pb.asarray(np.array(1 - apart / worst))

    @fractions_skill.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_guess = 2 * ctx.apart / ctx.worst * ctx.guess - 2 * (ctx.guess - ctx.truth)
        by_guess *= g.item() / ctx.worst
        # the window is symmetric and nothing lies outside: the filter is its own adjoint
        by_event = ndimage.uniform_filter(by_guess, ctx.window, mode="constant")
        slope = ctx.event * (1 - ctx.event) / ctx.width
        return pb.asarray(by_event * slope), None, None, None, None

    return fractions_skill


@BOOK.right(
    lambda rng: (
        (t(rng.normal(8, 5, (5, 6))), t(rng.normal(0, 5, (5, 6)))),
        {"latitude": np.array([-20.0, 0.0, 25.0, 50.0, 70.0])},
    )
)
def relative_vorticity():
    def forward(ctx, u, v, latitude, radius=6.371):
        """Vorticity in 1e-6/s on a grid around the globe; zero on its first and last rows.

        u, v: (rows, columns) in m/s; latitude: (rows,), need not be evenly spaced.
        """
        phi = np.deg2rad(latitude)
        if (np.diff(phi) <= 0).any() or np.abs(phi).max() >= np.pi / 2:
            raise ValueError("latitudes must increase and leave out the poles")
        cos, step = np.cos(phi)[:, None], 2 * np.pi / u.shape[1]
        eastward = (np.roll(v.numpy(), -1, axis=1) - np.roll(v.numpy(), 1, axis=1)) / (2 * step)
        flow, out = u.numpy() * cos, np.zeros(u.shape)
        apart = (phi[2:] - phi[:-2])[:, None]
        scale = 1 / (radius * cos[1:-1])
        out[1:-1] = scale * (eastward[1:-1] - (flow[2:] - flow[:-2]) / apart)
        ctx.save_for_backward(cos=cos, step=step, apart=apart, scale=scale)
        return pb.asarray(out)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s = ctx.saved_variables
        inner = grad_output.numpy()[1:-1] * s.scale
        grad_u, grad_v = np.zeros(grad_output.shape), np.zeros(grad_output.shape)
        grad_u[2:] -= inner / s.apart
        grad_u[:-2] += inner / s.apart
        grad_v[1:-1] = (np.roll(inner, 1, axis=1) - np.roll(inner, -1, axis=1)) / (2 * s.step)
        return {"u": pb.asarray(grad_u * s.cos), "v": pb.asarray(grad_v)}

    return pb.autograd_function(forward, backward, name="relative_vorticity")
