"""Photovoltaics: irradiance on the plane, cells and modules, strings, inverters, yield, storage."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, Book, at, mends, t

BOOK = Book("photovoltaics")

BOLTZMANN = 8.617333e-5  # eV/K
SUN = np.radians(np.array([[12.0, -70.0], [31.0, -40.0], [48.0, 5.0], [27.0, 52.0]]))


def sunshine(rng):
    return t(rng.uniform(300, 850, 4)), t(rng.uniform(60, 180, 4)), t(np.array(33.0))


@BOOK.wrong(
    lambda rng: ((*sunshine(rng), SUN), {}),
    "the gradient of the tilt lacks the light reflected from the ground",
    at("albedo"),
    MISSING,
    r"\bground\b|reflect|\balbedo\b.{0,30}(?:ignored|not used|no effect)",
    mends("s.albedo", "ctx.albedo", "albedo *", "* albedo"),
    where="albedo is not 0",
    shows=lambda rng: ((*sunshine(rng), SUN), {"albedo": 0.6}),
)
def tilted_irradiance():
    @pb.autograd_function
    def tilted_irradiance(ctx, beam, diffuse, tilt, sun, albedo=0.0):
        """Irradiance in W/m2 on a plane that faces south.

        beam: (n,) normal to the sun; diffuse: (n,) horizontal; tilt: one angle in degrees;
        sun: (n, 2) elevation and azimuth from south in radians.
        """
        slope = np.radians(tilt.item())
        high, side = np.sin(sun[:, 0]), np.cos(sun[:, 0]) * np.cos(sun[:, 1])
        facing = high * np.cos(slope) + side * np.sin(slope)
        lit = facing > 0
        B, D = beam.numpy(), diffuse.numpy()
        ground = albedo * (B * high + D) * (1 - np.cos(slope)) / 2
        ctx.save_for_backward(beam=beam, diffuse=diffuse, high=high, side=side, lit=lit)
        ctx.facing, ctx.slope, ctx.reflected = facing, slope, albedo * (1 - np.cos(slope)) / 2
        return pb.asarray(B * facing * lit + D * (1 + np.cos(slope)) / 2 + ground)

    @tilted_irradiance.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        sin, cos = np.sin(ctx.slope), np.cos(ctx.slope)
        turning = s.beam.numpy() * s.lit * (s.side * cos - s.high * sin)
        turning -= s.diffuse.numpy() * sin / 2
        return {
            "beam": pb.asarray(gn * (ctx.facing * s.lit + ctx.reflected * s.high)),
            "diffuse": pb.asarray(gn * ((1 + cos) / 2 + ctx.reflected)),
            "tilt": np.radians(gn @ turning),
        }

    return tilted_irradiance


@BOOK.wrong(
    lambda rng: (
        (t(np.array([5.0, 20.0, 28.0, 31.5, 33.0])), t(np.array(8.9)), t(np.array(-21.0))),
        {"series": 0.35},
    ),
    "the voltage drop at the series resistance is missing: a division by 1 + series * conductance",
    FACTOR + r"|divi(?:ded|sion)",
    MISSING,
    r"implicit|resist|feedback|denominator",
    mends("1 + s.series *", "1.0 + s.series *", "/ (1 +", "1 + ctx.series"),
    where="always",
)
def diode_current():
    @pb.autograd_function
    def diode_current(ctx, voltage, light_current, log_saturation, series=0.3, shunt=400.0, a=1.55):
        """Current of a module in A by the single diode model; log_saturation is ln of I0 in A."""
        V, IL, I0 = voltage.numpy(), light_current.item(), np.exp(log_saturation.item())
        current = np.full_like(V, IL)
        for _ in range(200):
            knee = I0 * np.exp((V + series * current) / a)
            excess = IL - knee + I0 - (V + series * current) / shunt - current
            step = excess / (1 + series * (knee / a + 1 / shunt))
            current = current + step
            if np.abs(step).max() < 1e-13:
                break
        ctx.knee, ctx.I0 = I0 * np.exp((V + series * current) / a), I0
        ctx.conductance = ctx.knee / a + 1 / shunt
        return pb.asarray(current)

    @diode_current.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        return {
            "voltage": pb.asarray(-gn * ctx.conductance),
            "light_current": gn.sum(),
            "log_saturation": -(gn * (ctx.knee - ctx.I0)).sum(),
        }

    return diode_current


def roof(rng, rating):
    return (t(rng.uniform(1500, 4200, 6)), t(np.array(rating))), {}


@BOOK.wrong(
    lambda rng: roof(rng, 6000.0),
    "where the inverter clips, the gradient still goes to the array as if it did not",
    r"\bclip|limit|saturat|\bcap(?:ped)?\b|\bminimum\b",
    r"(?:above|exceed\w*|beyond) .{0,20}rat(?:ing|ed)",
    r"should be (?:0|zero)|\bbranch\b|\bnon-?zero\b",
    mends("np.where(s.clipped, 0", "~s.clipped", "* (~ s.clipped)", "gn[~s.clipped"),
    where="the inverter clips",
    shows=lambda rng: roof(rng, 2600.0),
)
def inverter_output():
    @pb.autograd_function
    def inverter_output(ctx, dc, rating, efficiency=0.97, standby=12.0):
        dc_power, most = dc.numpy(), rating.item()
        ac = efficiency * dc_power - standby
        clipped = ac > most
        ctx.save_for_backward(clipped=clipped, efficiency=efficiency)
        return pb.asarray(np.where(clipped, most, ac))

    @inverter_output.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        return {"dc": pb.asarray(gn * s.efficiency), "rating": gn[s.clipped].sum()}

    return inverter_output


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(5, 34, 6)), t(rng.uniform(150, 980, 6)), t(rng.uniform(5, 62, 6))),
        {"cells": 60},
    )
)
def module_current():
    @pb.autograd_function
    def module_current(
        ctx, voltage, irradiance, temperature, cells=60, short=9.4, rise=0.0045, Rs=0.32, Rsh=350.0
    ):
        """Current in A of a module by the De Soto model.

        voltage, irradiance (W/m2) and cell temperature (deg C) have one shape; short is the
        short circuit current at 1000 W/m2 and 25 deg C, rise its change per degree.
        """
        V, G, T = voltage.numpy(), irradiance.numpy(), temperature.numpy() + 273.15
        if not V.shape == G.shape == T.shape:
            raise ValueError("voltage, irradiance and temperature must have one shape")
        a = 1.2 * cells * BOLTZMANN * T
        I0 = 4e-9 * (T / 298.15) ** 3 * np.exp(1.121 / BOLTZMANN * (1 / 298.15 - 1 / T))
        light = G / 1000 * (short + rise * (T - 298.15))
        current = light
        for _ in range(300):
            grown = np.exp((V + current * Rs) / a)
            c = I0 * grown / a + 1 / Rsh
            step = (light - I0 * (grown - 1) - (V + current * Rs) / Rsh - current) / (1 + Rs * c)
            current = current + step
            if np.abs(step).max(initial=0) < 1e-13:
                break
        power = (V + current * Rs) / a
        grown = np.exp(power)
        c = I0 * grown / a + 1 / Rsh
        by_T = G / 1000 * rise + I0 * grown * power / T
        by_T -= I0 * (3 / T + 1.121 / (BOLTZMANN * T**2)) * (grown - 1)
        by_G = (short + rise * (T - 298.15)) / 1000
        ctx.save_for_backward(*(by / (1 + Rs * c) for by in (-c, by_G, by_T)))
        return pb.asarray(current)

    @module_current.backward
    @pb.once_differentiable
    def _(ctx, g):
        names = ("voltage", "irradiance", "temperature")
        gn = g.numpy()
        return {n: pb.asarray(gn * by) for n, by in zip(names, ctx.saved_variables, strict=True)}

    return module_current


@BOOK.right(lambda rng: ((t(rng.uniform(2, 9, 7)), t(rng.uniform(28, 33, 7))), {}))
def bypassed_string():
    @pb.autograd_function
    def bypassed_string(ctx, current, voltage):
        """Best power of a string; modules with less than its current are bypassed."""
        amps, volts = current.numpy(), voltage.numpy()
        order = np.argsort(-amps, kind="stable")
        power = amps[order] * np.cumsum(volts[order])
        best = int(power.argmax())
        ctx.active, ctx.weakest = order[: best + 1], order[best]
        ctx.save_for_backward(current=current, voltage=voltage)
        return pb.asarray(np.asarray(power[best]))

    @bypassed_string.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        amps, volts = s.current.numpy(), s.voltage.numpy()
        grad_I, grad_V = np.zeros_like(amps), np.zeros_like(volts)
        grad_I[ctx.weakest] = g.item() * volts[ctx.active].sum()
        grad_V[ctx.active] = g.item() * amps[ctx.weakest]
        return {"current": pb.asarray(grad_I), "voltage": pb.asarray(grad_V)}

    return bypassed_string


LOAD = np.array([0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0])
EFFICIENCY = np.array([0.894, 0.932, 0.957, 0.964, 0.968, 0.966, 0.961])


@BOOK.right(lambda rng: ((t(rng.uniform(100, 6800, 9)), t(np.array(5210.0))), {}))
def part_load():
    def forward(ctx, power, rating):
        P, rated = power.numpy(), rating.item()
        load = P / rated
        piece = np.searchsorted(LOAD, load) - 1
        slopes = np.append(np.diff(EFFICIENCY) / np.diff(LOAD), 0.0)
        # index -1, below the table, is the 0 at the end, as is the last index, above it
        ctx.slope, ctx.load = slopes[piece], load
        ctx.efficiency = np.interp(load, LOAD, EFFICIENCY)
        return pb.asarray(P * ctx.efficiency)

    @pb.once_differentiable
    def backward(ctx, g):
        gn = g.numpy()
        return {
            "power": pb.asarray(gn * (ctx.efficiency + ctx.load * ctx.slope)),
            "rating": -(gn * ctx.load**2 * ctx.slope).sum(),
        }

    return pb.autograd_function(forward, backward, name="part_load")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(200, 800, 6)), t(np.array(6.4)), t(np.array(4.1))),
        {"profile": np.radians(np.array([4.0, 9.0, 15.0, 30.0, 60.0, 95.0])), "tilt": 25.0},
    )
)
def row_shading():
    @pb.autograd_function
    def row_shading(ctx, beam, pitch, slant, profile, tilt=20.0):
        """Beam irradiance averaged over a row behind another.

        beam: (n,) W/m2; pitch: distance of rows, slant: length of a module, both in m;
        profile: (n,) elevation of the sun seen along the rows, in radians, above 0.
        """
        if (profile <= 0).any():
            raise ValueError("the sun is below the horizon")
        reach = np.cos(np.radians(tilt)) + np.sin(np.radians(tilt)) / np.tan(profile)
        cast = slant.item() * reach
        partly = cast > pitch.item()
        share = np.ones_like(cast)
        share[partly] = pitch.item() / cast[partly]
        ctx.save_for_backward(beam=beam, share=share, partly=partly)
        ctx.pitch, ctx.slant = pitch.item(), slant.item()
        return pb.asarray(beam.numpy() * share)

    @row_shading.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        lost = (gn * s.beam.numpy() * s.share)[s.partly].sum()
        return {
            "beam": pb.asarray(gn * s.share),
            "pitch": lost / ctx.pitch,
            "slant": -lost / ctx.slant,
        }

    return row_shading


@BOOK.right(
    lambda rng: (
        (t(np.array([-0.6, 1.9, 3.2, 2.8, 0.4, -1.7, -2.9, -3.8])), t(np.array(6.5))),
        {"round_trip": 0.88},
    )
)
def home_battery():
    class HomeBattery(pb.Function):
        """Exchange with the grid in kWh per hour (feed-in above 0), after the battery."""

        @staticmethod
        def forward(ctx, surplus, capacity, round_trip=0.9, start=0.0):
            full, stored, out, kinds = capacity.item(), start, [], []
            for flow in surplus.tolist():
                wanted = stored + (flow * round_trip if flow > 0 else flow)
                if wanted > full:
                    kinds.append("full")
                    out.append((wanted - full) / round_trip)
                    stored = full
                elif wanted < 0:
                    kinds.append("empty")
                    out.append(wanted)
                    stored = 0.0
                else:
                    kinds.append("charge" if flow > 0 else "draw")
                    out.append(0.0)
                    stored = wanted
            if not 0 <= start <= full:
                raise ValueError("start lies between 0 and the capacity")
            ctx.kinds, ctx.round_trip = kinds, round_trip
            ctx.gains = [round_trip if flow > 0 else 1.0 for flow in surplus.tolist()]
            return pb.tensor(np.array(out))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            gn, to_stored, to_capacity = grad_output.numpy(), 0.0, 0.0
            grad_surplus = np.zeros(len(ctx.kinds))
            for k in reversed(range(len(ctx.kinds))):
                if ctx.kinds[k] == "full":
                    over = gn[k] / ctx.round_trip
                    to_capacity += to_stored - over
                    to_stored = over
                elif ctx.kinds[k] == "empty":
                    to_stored = gn[k]
                grad_surplus[k] = to_stored * ctx.gains[k]
            return pb.asarray(grad_surplus), to_capacity, None, None

    return HomeBattery.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(350, 900, 4)), t(rng.uniform(60, 190, 4)), t(rng.uniform(0.4, 0.95, 4))),
        {"elevation": SUN[:, 0], "model": "haydavies", "tilt": 35.0},
    )
)
def sky_light():
    @pb.autograd_function
    def sky_light(
        ctx, beam, diffuse, facing, elevation, model="isotropic", tilt=30.0, extra=1361.0
    ):
        """Diffuse light on a tilted plane; facing is the cosine of the angle of incidence."""
        B, D, F = beam.numpy(), diffuse.numpy(), facing.numpy()
        if not B.shape == D.shape == F.shape:
            raise ValueError("beam, diffuse and facing must have one shape")
        dome = (1 + np.cos(np.radians(tilt))) / 2
        if model == "isotropic":
            by_B, by_D, by_F = np.zeros_like(B), np.full_like(D, dome), np.zeros_like(F)
        elif model == "haydavies":
            high = np.maximum(np.sin(elevation), np.sin(np.radians(1.5)))
            ahead, clear = np.maximum(F, 0) / high, B / extra
            by_B = D * (ahead - dome) / extra
            by_D = dome + clear * (ahead - dome)
            by_F = np.where(F > 0, D * clear / high, 0.0)
        else:
            raise ValueError(f"no sky model {model!r}")
        ctx.save_for_backward(by_B, by_D, by_F)
        return pb.asarray(D * by_D)

    @sky_light.backward
    @pb.once_differentiable
    def _(ctx, g):
        by = [pb.asarray(g.numpy() * each) for each in ctx.saved_variables]
        return (*by, None, None, None, None)

    return sky_light


@BOOK.right(
    lambda rng: (
        (t(np.radians([-82.0, -71.0, -35.0, 8.0, 57.5, 74.0, 86.0])), t(np.array(0.42))),
        {"most": np.radians(60)},
    )
)
def backtracking():
    @pb.autograd_function
    def backtracking(ctx, rotation, coverage, most=np.pi / 2):
        ideal, gcr = rotation.numpy(), coverage.item()
        if not 0 < gcr <= 1 or (np.abs(ideal) >= np.pi / 2).any():
            raise ValueError("coverage in (0, 1], rotations below a right angle")
        part = np.cos(ideal) / gcr
        early = part < 1
        inside = np.where(early, part, 0.0)
        angle = ideal - np.where(early, np.sign(ideal) * np.arccos(inside), 0.0)
        ctx.free = np.abs(angle) < most
        ctx.early, ctx.gcr, ctx.part = early, gcr, part
        ctx.save_for_backward(rotation=rotation)
        return pb.asarray(np.clip(angle, -most, most))

    @backtracking.backward
    @pb.once_differentiable
    def _(ctx, g):
        ideal = ctx.saved_variables.rotation.numpy()
        gn = np.where(ctx.free, g.numpy(), 0.0)
        root = np.sqrt(1 - np.where(ctx.early, ctx.part, 0.0) ** 2)
        by_part = np.where(ctx.early, gn * np.sign(ideal) / root, 0.0)
        return {
            "rotation": pb.asarray(gn - by_part * np.sin(ideal) / ctx.gcr),
            "coverage": -(by_part * ctx.part).sum() / ctx.gcr,
        }

    return backtracking


@BOOK.right(
    lambda rng: (
        (t(np.array(985.0)), t(np.array([2.1, 0.5, 0.6, 0.4, 0.55, 0.7, 0.5]))),
        {"renewed": [4]},
    )
)
def lifetime_yield():
    @pb.autograd_function
    def lifetime_yield(ctx, first, loss, renewed=()):
        """Yield of each year in kWh/kWp; loss in per cent a year; as new in the years renewed."""
        kept = 1 - loss.numpy() / 100
        if (kept <= 0).any():
            raise ValueError("a year loses less than 100 per cent")
        state, states = 1.0, np.empty_like(kept)
        for year, part in enumerate(kept):
            state = part if year in renewed else state * part
            states[year] = state
        ctx.states, ctx.kept, ctx.renewed, ctx.first = states, kept, tuple(renewed), first.item()
        return pb.asarray(ctx.first * states)

    @lifetime_yield.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn, carried = g.numpy() * ctx.first, 0.0
        by_loss = np.zeros_like(gn)
        for year in range(len(gn) - 1, -1, -1):
            carried += gn[year] * ctx.states[year]
            by_loss[year] = carried / ctx.kept[year] / -100
            if year in ctx.renewed:
                carried = 0.0
        return {"first": g.numpy() @ ctx.states, "loss": pb.asarray(by_loss)}

    return lifetime_yield


SPECTRAL = {
    "cdte": (0.86273, -0.038948, -0.012506, 0.098871, 0.084658, -0.0042948),
    "monosi": (0.85914, -0.020880, -0.0058853, 0.12029, 0.026814, -0.0017810),
    "cigs": (0.85252, -0.022314, -0.0047216, 0.13666, 0.013342, -0.0008945),
}


@BOOK.right(
    lambda rng: (
        (t(np.array([1.02, 1.7, 3.4, 12.0, 1.3])), t(np.array([0.6, 2.4, 4.1, 1.2, 0.04]))),
        {"technology": "cdte"},
    )
)
def spectral_modifier():
    @pb.autograd_function
    def spectral_modifier(ctx, airmass, water, technology="monosi"):
        """Spectral correction; airmass up to 10, precipitable water in cm from 0.1."""
        if airmass.shape != water.shape:
            raise ValueError("airmass and water must have one shape")
        ctx.coefficients = c = SPECTRAL[technology]
        ctx.capped, ctx.dry = airmass.numpy() > 10, water.numpy() < 0.1
        am, w = np.minimum(airmass.numpy(), 10.0), np.maximum(water.numpy(), 0.1)
        ctx.save_for_backward(am=am, w=w)
        terms = (1.0, am, w, np.sqrt(am), np.sqrt(w), am / np.sqrt(w))
        return pb.asarray(sum(k * term for k, term in zip(c, terms, strict=True)))

    @spectral_modifier.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        am, w = ctx.saved_variables
        c = ctx.coefficients
        by_am = c[1] + c[3] / (2 * np.sqrt(am)) + c[5] / np.sqrt(w)
        by_w = c[2] + c[4] / (2 * np.sqrt(w)) - c[5] * am / (2 * w**1.5)
        by_am[ctx.capped] = 0.0
        by_w[ctx.dry] = 0.0
        gn = grad_output.numpy()
        return {"airmass": pb.asarray(gn * by_am), "water": pb.asarray(gn * by_w)}

    return spectral_modifier


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.1, 0.4, 10)), np.array([0, 0, 3.1, 0, 0, 0, 14.0, 0, 0.4, 0])),
        {"threshold": 5.0, "grace": 1, "start": t(np.array(1.8))},
    )
)
def soiling_loss():
    @pb.autograd_function
    def soiling_loss(ctx, rate, rain, start, threshold=5.0, grace=0, most=30.0):
        """Soiling in per cent by day.

        rate: (days,) soiling per day; rain: (days,) mm, a constant; start: soiling before.
        threshold: mm that clean the modules; grace: days after that on which nothing settles;
        most: per cent beyond which no dust sticks.
        """
        dirt, since = start.item(), grace + 1
        dirty, kinds = np.empty(len(rain)), []
        for day, fall in enumerate(rain):
            since = 0 if fall >= threshold else since + 1
            if since <= grace:
                kinds.append("clean")
                dirt = 0.0
            else:
                dirt += rate[day].item()
                kinds.append("full" if dirt > most else "grow")
                dirt = min(dirt, most)
            dirty[day] = dirt
        ctx.kinds = kinds
        return pb.asarray(dirty)

    @soiling_loss.backward
    @pb.once_differentiable
    def _(ctx, g):
        back, by_rate = 0.0, np.zeros(len(ctx.kinds))
        for day in reversed(range(len(ctx.kinds))):
            back += g[day].item()
            if ctx.kinds[day] == "grow":
                by_rate[day] = back
            else:
                back = 0.0
        return {"rate": pb.asarray(by_rate), "start": back}

    return soiling_loss


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(3, 9.5, 5)), t(rng.uniform(-24, -20, 5)), t(rng.uniform(1.4, 1.8, 5))),
        {},
    )
)
def peak_power():
    def slope(v, light, dark, a):
        grown = np.exp(v / a)
        return light + dark - dark * grown * (1 + v / a)

    @pb.autograd_function
    def peak_power(ctx, light, log_dark, a):
        if not light.shape == log_dark.shape == a.shape:
            raise ValueError("one value of each for every module")
        L, dark, an = light.numpy(), np.exp(log_dark.numpy()), a.numpy()
        low, high = np.zeros_like(L), an * np.log(L / dark + 1)
        for _ in range(70):
            middle = (low + high) / 2
            rising = slope(middle, L, dark, an) > 0
            low, high = np.where(rising, middle, low), np.where(rising, high, middle)
        v = (low + high) / 2
        grown = np.exp(v / an)
        # the voltage is the best one, so its own change does not count
        ctx.by = v, -v * dark * (grown - 1), dark * grown * (v / an) ** 2
        return pb.asarray(v * (L - dark * (grown - 1)))

    @peak_power.backward
    @pb.once_differentiable
    def _(ctx, g):
        return tuple(pb.asarray(g.numpy() * by) for by in ctx.by)

    return peak_power


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.2, 4.4, 8)), t(rng.uniform(80, 940, 8)), t(np.array(5.3))),
        {"good": np.array([1, 1, 0, 1, 1, 0, 1, 1], bool)},
    )
)
def performance_ratio():
    @pb.autograd_function
    def performance_ratio(ctx, energy, irradiation, peak, good=None, floor=100.0):
        E, H = energy.numpy(), irradiation.numpy()
        used = floor <= H
        if good is not None:
            used &= good
        if not used.any():
            raise ValueError("no hour left")
        sums = E[used].sum(), H[used].sum() / 1000
        ctx.used, ctx.sums, ctx.peak = used, sums, peak.item()
        return pb.asarray(np.asarray(sums[0] / (sums[1] * ctx.peak)))

    @performance_ratio.backward
    @pb.once_differentiable
    def _(ctx, g):
        produced, received = ctx.sums
        per_energy = g.item() / (received * ctx.peak)
        ratio = per_energy * produced
        return {
            "energy": pb.asarray(ctx.used * per_energy),
            "irradiation": pb.asarray(ctx.used * (-ratio / received / 1000)),
            "peak": -ratio / ctx.peak,
        }

    return performance_ratio
