"""Glaciers: flow law, mass balance, firn, temperature, sliding, calving, melt, profiles."""

from __future__ import annotations

import numpy as np
from scipy import linalg, special

import pullback as pb

from .entries import MISSING, SHIFT, SIGN, STATE, Book, at, mends, t

BOOK = Book("glaciers")
ICE, WATER, GRAVITY = 917.0, 1028.0, 9.81


@BOOK.wrong(
    lambda rng: ((*(t(rng.normal(0, 0.1, 5)) for _ in range(3)), t(np.array(2.4))), {}),
    "the product of the two normal strain rates is left out of their gradients",
    MISSING,
    r"\bproduct\b|cross term|mixed term|other normal|invariant|incompressib",
    mends("2 * xx + yy", "yy + 2 * xx", "2 * yy + xx", "xx + 2 * yy", "+ yy)", "+ xx)"),
)
def ice_viscosity():
    @pb.autograd_function
    def ice_viscosity(ctx, exx, eyy, exy, softness, n=3.0, floor=1e-3):
        """Effective viscosity by Glen's law of plane strain rates: (points,)."""
        xx, yy, xy, A = exx.numpy(), eyy.numpy(), exy.numpy(), softness.item()
        square = xx**2 + yy**2 + xx * yy + xy**2 + floor**2
        eta = 0.5 * A ** (-1 / n) * square ** ((1 - n) / (2 * n))
        ctx.save_for_backward(xx=xx, yy=yy, xy=xy, A=A, square=square, eta=eta)
        ctx.n = n
        return pb.asarray(eta.copy())

    @ice_viscosity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        xx, yy, xy, A, square, eta = ctx.saved_variables
        flow = grad_output.numpy() * eta
        by_square = flow * (1 - ctx.n) / (2 * ctx.n) / square
        return {
            "exx": pb.asarray(by_square * 2 * xx),
            "eyy": pb.asarray(by_square * 2 * yy),
            "exy": pb.asarray(by_square * 2 * xy),
            "softness": -flow.sum() / (ctx.n * A),
        }

    return ice_viscosity


def flowline(rng):
    surface = np.linspace(3.0, 1.0, 7) + rng.uniform(-0.1, 0.1, 7)
    return t(rng.uniform(0.5, 1.5, 7)), t(surface), t(np.array(0.8))


@BOOK.wrong(
    lambda rng: (flowline(rng), {}),
    "the powers in backward are those of an exponent of 3, whatever exponent says",
    at("exponent"),
    r"hard.?coded|\b(?:for|of|as if|always) (?:an? )?(?:exponent )?3\b|power rule",
    r"exponent.{0,40}(?:ignored|not used|other than|not 3|fixed)",
    mends("(ctx.n + 2)", "ctx.n * ", "(s.n + 2)", "ctx.n + 2", "* ctx.n"),
    where="exponent is not 3",
    shows=lambda rng: (flowline(rng), {"exponent": 2.0}),
)
def shallow_ice_flux():
    @pb.autograd_function
    def shallow_ice_flux(ctx, thickness, surface, rate, exponent=3.0, dx=0.5):
        """Flux between the points of a flow line; thickness, surface: (points,)."""
        n = exponent
        H = 0.5 * (thickness.numpy()[1:] + thickness.numpy()[:-1])
        slope = np.diff(surface.numpy()) / dx
        flux = -2 * rate.item() / (n + 2) * H ** (n + 2) * np.abs(slope) ** (n - 1) * slope
        ctx.save_for_backward(H=H, slope=slope, flux=flux, rate=rate.item())
        ctx.dx = dx
        return pb.asarray(flux.copy())

    @shallow_ice_flux.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        H, slope, flux, rate = ctx.saved_variables
        flow = grad_output.numpy() * flux
        by_H = flow * 5 / H
        by_slope = flow * 3 / slope / ctx.dx
        grad_H = np.zeros(len(H) + 1)
        grad_H[1:] += 0.5 * by_H
        grad_H[:-1] += 0.5 * by_H
        return {
            "thickness": pb.asarray(grad_H),
            "surface": pb.asarray(-np.diff(by_slope, prepend=0.0, append=0.0)),
            "rate": flow.sum() / rate,
        }

    return shallow_ice_flux


def altitudes(rng, top):
    z = np.array([1500.0, 1900.0, 2200.0, 2600.0, top]) + rng.uniform(-20, 20, 5)
    return (t(z), t(np.array(2300.0)), t(np.array(0.007))), {"most": 3.0, "areas": np.arange(1, 6)}


@BOOK.wrong(
    lambda rng: altitudes(rng, 2650.0),
    "above the height where the balance is capped the gradient goes on as below it",
    r"\bcap(?:ped)?\b|\bclip|limit|saturat|constant (?:above|beyond|there)|\bupper\b|np\.minimum",
    at("most"),
    r"\bbranch|should be (?:zero|0)|must be (?:zero|0)|expected (?:zero|0)\b|maximum",
    mends("< ctx.most", "<= ctx.most", "ctx.free", "s.free", "np.where(ctx.", "np.where(s."),
    where="the balance reaches most",
    shows=lambda rng: altitudes(rng, 3100.0),
)
def elevation_balance():
    class ElevationBalance(pb.Function):
        """Specific balance in m of water by altitude, and the glacier's mean balance."""

        @staticmethod
        def forward(ctx, altitude, line, rise, most=2.0, areas=None):
            above = altitude.numpy() - line.item()
            balance = np.minimum(rise.item() * above, most)
            weights = np.ones_like(balance) if areas is None else np.asarray(areas, float)
            weights = weights / weights.sum()
            ctx.save_for_backward(above=above, rise=rise.item(), weights=weights)
            return pb.asarray(balance), pb.asarray(np.asarray(weights @ balance))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_balance, g_mean):
            above, rise, weights = ctx.saved_variables
            flow = g_balance.numpy() + g_mean.item() * weights
            by_altitude = flow * rise
            return pb.asarray(by_altitude), -by_altitude.sum(), flow @ above, None, None

    return ElevationBalance.apply


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(80, 200, 8)), t(rng.uniform(20, 60, 8)), t(rng.normal(size=8))),
        {"dt": 0.1, "dx": 50.0},
    ),
    "what flows into a cell goes back to the cell itself and not to the neighbour upstream",
    SHIFT,
    r"upstream|upwind|\binflow\b|previous (?:cell|point|element)|wrong (?:cell|element)",
    mends("gn[1:] - gn[:-1]", "gn[:-1] - gn[1:]", "back[:-1]", "np.diff(gn)", "np.roll(gn, -1)"),
)
def thickness_step():
    def forward(ctx, thickness, velocity, balance, dt=0.05, dx=100.0):
        """Thickness after an upwind step; nothing flows into the first cell."""
        H, u = thickness.numpy(), velocity.numpy()
        flux = u * H
        inflow = np.concatenate([[0.0], flux[:-1]])
        ctx.save_for_backward(H=H, u=u)
        ctx.dt, ctx.courant = dt, dt / dx
        return pb.asarray(H + ctx.courant * (inflow - flux) + dt * balance.numpy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        H, u = ctx.saved_variables
        gn = grad_output.numpy()
        by_flux = -ctx.courant * gn
        by_flux[1:] += ctx.courant * gn[1:]
        return {
            "thickness": pb.asarray(gn + by_flux * u),
            "velocity": pb.asarray(by_flux * H),
            "balance": pb.asarray(ctx.dt * gn),
        }

    return pb.autograd_function(forward, backward, name="thickness_step")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(-20, -2, 6)), t(rng.uniform(0.5, 1.5, 6))), {}),
    "the matrix of a later call stands in for that of the call that is differentiated: stale state",
    STATE,
    r"closure|\bbuffer|shared between|later call|another call|called (?:before|later)",
    where="second use before backward",
)
def ice_temperatures():
    bands = np.zeros((3, 6))

    @pb.autograd_function
    def ice_temperatures(ctx, temperature, diffusivity):
        """Temperatures in a column of six layers after an implicit step."""
        K = diffusivity.numpy()
        bands[:] = 0.0
        link = 0.5 * (K[1:] + K[:-1])
        bands[0, 1:], bands[2, :-1] = -link, -link
        bands[1] = 1.0
        bands[1, 1:] += link
        bands[1, :-1] += link
        new = linalg.solve_banded((1, 1), bands, temperature.numpy())
        ctx.save_for_backward(new=new)
        return pb.asarray(new.copy())

    @ice_temperatures.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        new = ctx.saved_variables.new
        adjoint = linalg.solve_banded((1, 1), bands, grad_output.numpy())
        by_link = -np.diff(adjoint) * np.diff(new)
        by_K = np.zeros_like(new)
        by_K[1:] += 0.5 * by_link
        by_K[:-1] += 0.5 * by_link
        return {"temperature": pb.asarray(adjoint), "diffusivity": pb.asarray(by_K)}

    return ice_temperatures


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(20, 300, 5)), t(rng.uniform(0.2, 2, 5)), t(np.array(100.0))),
        {"friction": 0.4},
    ),
    "the drag falls when the threshold speed grows: that gradient has the wrong sign",
    SIGN,
    mends("-(flow", "-flow.sum()", "-(flow / (s.u + s.u0)).sum()"),
)
def coulomb_drag():
    @pb.autograd_function
    def coulomb_drag(ctx, speed, pressure, threshold, friction=0.5, m=3.0):
        """Basal drag by the regularised Coulomb law; pressure: effective, in MPa."""
        u, N, u0 = speed.numpy(), pressure.numpy(), threshold.item()
        if (u < 0).any() or u0 <= 0:
            raise ValueError("speeds must not be negative")
        part = u / (u + u0)
        ctx.save_for_backward(u=u, N=N, u0=u0, drag=friction * N * part ** (1 / m))
        ctx.m = m
        return pb.asarray(friction * N * part ** (1 / m))

    @coulomb_drag.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        gn = grad_output.numpy()
        flow = gn * s.drag / ctx.m
        return (
            pb.asarray(flow * s.u0 / (s.u * (s.u + s.u0))),
            pb.asarray(gn * s.drag / s.N),
            (flow / (s.u + s.u0)).sum(),
            None,
            None,
        )

    return coulomb_drag


@BOOK.right(
    lambda rng: (
        (t(np.array(0.34)), t(np.array(0.25))),
        {"depth": np.array([0.0, 3.0, 8.0, 20.0, 35.0, 60.0]), "temperature": 250.0},
    )
)
def firn_density():
    @pb.autograd_function
    def firn_density(ctx, fresh, accumulation, depth, temperature=245.0, critical=0.55, ice=0.917):
        """Density by depth (Herron and Langway), in two stages that meet at the critical one."""
        rho0, acc = fresh.item(), accumulation.item()
        k0 = 11 * np.exp(-10160 / (8.314 * temperature))
        k1 = 575 * np.exp(-21400 / (8.314 * temperature))
        start, middle = np.log(rho0 / (ice - rho0)), np.log(critical / (ice - critical))
        turn = (middle - start) / (ice * k0)
        upper = depth < turn
        slow = ice * k1 / np.sqrt(acc)
        odds = np.where(upper, start + ice * k0 * depth, middle + slow * (depth - turn))
        part = special.expit(odds)
        by_start = np.where(upper, 1.0, slow / (ice * k0))
        by_acc = np.where(upper, 0.0, -0.5 * slow / acc * (depth - turn))
        ctx.save_for_backward(part=part, by_start=by_start, by_acc=by_acc)
        ctx.ice, ctx.by_fresh = ice, ice / (rho0 * (ice - rho0))
        return pb.asarray(ice * part)

    @firn_density.backward
    @pb.once_differentiable
    def _(ctx, g):
        part, by_start, by_acc = ctx.saved_variables
        flow = g.numpy() * ctx.ice * part * (1 - part)
        return {"fresh": flow @ by_start * ctx.by_fresh, "accumulation": flow @ by_acc}

    return firn_density


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.3, 40, 6)), t(np.array(0.034)), t(np.array(1.375))),
        {"region": np.array([0, 2, 0, 1, 0, 2])},
    )
)
def regional_volume():
    @pb.autograd_function
    def regional_volume(ctx, area, scale, power, region):
        """Ice in km3 by region from glaciers' areas in km2, by volume-area scaling."""
        a, c, gamma = area.numpy(), scale.item(), power.item()
        volume = c * a**gamma
        ctx.save_for_backward(a=a, c=c, gamma=gamma, volume=volume)
        ctx.region = region
        return pb.asarray(np.bincount(region, weights=volume, minlength=region.max() + 1))

    @regional_volume.backward
    @pb.once_differentiable
    def _(ctx, g):
        a, c, gamma, volume = ctx.saved_variables
        flow = g.numpy()[ctx.region] * volume
        return {
            "area": pb.asarray(flow * gamma / a),
            "scale": flow.sum() / c,
            "power": flow @ np.log(a),
        }

    return regional_volume


@BOOK.right(
    lambda rng: (
        (t(np.array(-28.0)), t(np.array(0.055)), t(np.array(0.2))),
        {"height": np.linspace(0, 1500, 6), "thickness": 1500.0},
    )
)
def robin_profile():
    def forward(ctx, surface, heat_flux, accumulation, height, thickness=1000.0):
        """Temperatures of cold ice above its bed, steady (Robin); heat_flux in W/m2."""
        q = np.sqrt(accumulation.item() / 31557600 / (2 * 1.1e-6 * thickness))
        spread = special.erf(q * thickness) - special.erf(q * height)
        warm = 0.5 * np.sqrt(np.pi) / 2.1 / q
        slope = (
            thickness * np.exp(-((q * thickness) ** 2)) - height * np.exp(-((q * height) ** 2))
        ) * (2 / np.sqrt(np.pi))
        ctx.by_heat = warm * spread
        ctx.by_acc = heat_flux.item() * warm * (slope - spread / q) * q / (2 * accumulation.item())
        return pb.asarray(surface.item() + heat_flux.item() * warm * spread)

    @pb.once_differentiable
    def backward(ctx, g):
        gn = g.numpy()
        return gn.sum(), gn @ ctx.by_heat, gn @ ctx.by_acc, None, None

    return pb.autograd_function(forward, backward, name="robin_profile")


@BOOK.right(lambda rng: ((t(rng.uniform(-9, 6, (2, 5))), t(rng.uniform(2, 5, 2))), {"days": 30}))
def positive_degree_days():
    @pb.autograd_function
    def positive_degree_days(ctx, temperature, spread, days=30):
        """Degree days of months whose days scatter normally; temperature: (places, months)."""
        T, s = temperature.numpy(), spread.numpy()[:, None]
        z = T / s
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        ctx.save_for_backward(chance=special.ndtr(z), density=density)
        ctx.days = days
        return pb.asarray(days * (s * density + T * special.ndtr(z)))

    @positive_degree_days.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, ctx.days * g.numpy()
        return {
            "temperature": pb.asarray(gn * s.chance),
            "spread": pb.asarray((gn * s.density).sum(axis=1)),
        }

    return positive_degree_days


@BOOK.right(
    lambda rng: (
        (t(np.array([300.0, 120.0, 90.0, 500.0])), t(np.array([-200.0, -180.0, 20.0, -400.0]))),
        {"level": 0.0},
    )
)
def ice_surface():
    class IceSurface(pb.Function):
        """Surface of ice that floats where it is thin, and its height above flotation."""

        @staticmethod
        def forward(ctx, thickness, bed, level=0.0):
            H, b = thickness.numpy(), bed.numpy()
            grounded, floating = b + H, level + (1 - ICE / WATER) * H
            depth = np.maximum(level - b, 0.0)
            above = np.maximum(H - WATER / ICE * depth, 0.0)
            ctx.on_ground, ctx.wet = grounded > floating, b < level
            ctx.loaded = above > 0
            return pb.asarray(np.maximum(grounded, floating)), pb.asarray(above)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_surface, g_above):
            gs, ga = g_surface.numpy(), g_above.numpy() * ctx.loaded
            by_H = np.where(ctx.on_ground, gs, (1 - ICE / WATER) * gs) + ga
            by_bed = gs * ctx.on_ground + WATER / ICE * ga * ctx.wet
            return pb.asarray(by_H), pb.asarray(by_bed), None

    return IceSurface.apply


@BOOK.right(lambda rng: ((t(np.array(1.6)), t(np.array(0.3)), t(np.array(2.2))), {"points": 6}))
def vialov_profile():
    @pb.autograd_function
    def vialov_profile(ctx, span, accumulation, softness, points=10, n=3):
        """Thickness of a steady ice sheet from its divide to just before its margin."""
        x = np.arange(points) / points
        core = 1 - x ** ((n + 1) / n)
        top = (
            2 ** (n / (2 * n + 2))
            * (accumulation.item() * (n + 2) / (2 * softness.item())) ** (1 / (2 * n + 2))
            * span.item() ** 0.5
        )
        H = top * core ** (n / (2 * n + 2))
        ctx.save_for_backward(L=span.item(), a=accumulation.item(), A=softness.item(), H=H)
        ctx.root = 2 * n + 2
        return pb.asarray(H.copy())

    @vialov_profile.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        flow = g.numpy() @ s.H
        return 0.5 * flow / s.L, flow / ctx.root / s.a, -flow / ctx.root / s.A, None, None

    return vialov_profile


@BOOK.right(
    lambda rng: (
        (t(np.array(0.85)), t(np.array(0.5)), t(np.array(6.0))),
        {"snowfall": np.array([0, 0, 12, 0, 0, 0, 3, 20, 0, 0])},
    )
)
def ageing_albedo():
    @pb.autograd_function
    def ageing_albedo(ctx, fresh, old, days, snowfall, enough=5):
        """Albedo by day; a fall of enough mm makes the surface fresh again."""
        age, ages = 0, []
        for fall in snowfall:
            age = 0 if fall >= enough else age + 1
            ages.append(age)
        ctx.ages = np.array(ages, float)
        ctx.young = np.exp(-ctx.ages / days.item())
        ctx.contrast, ctx.tau = fresh.item() - old.item(), days.item()
        return pb.asarray(old.item() + ctx.contrast * ctx.young)

    @ageing_albedo.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        by_days = ctx.contrast * gn @ (ctx.young * ctx.ages) / ctx.tau**2
        return {"fresh": gn @ ctx.young, "old": gn @ (1 - ctx.young), "days": by_days}

    return ageing_albedo


@BOOK.right(lambda rng: ((t(rng.uniform(50, 400, 5)), t(rng.uniform(0.05, 0.3, 5))), {}))
def driving_stress():
    @pb.autograd_function
    def driving_stress(ctx, thickness, slope, shape=0.8):
        """Driving stress in kPa of a valley glacier; slope as an angle."""
        ctx.save_for_backward(thickness=thickness, slope=slope)
        ctx.weight = shape * ICE * GRAVITY / 1e3
        return ctx.weight * thickness * slope.sin()

    @driving_stress.backward
    def _(ctx, grad_output):
        thickness, slope = ctx.saved_variables
        flow = ctx.weight * grad_output
        return {"thickness": flow * slope.sin(), "slope": flow * thickness * slope.cos()}

    return driving_stress
