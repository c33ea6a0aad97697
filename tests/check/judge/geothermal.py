"""Geothermal energy: wells, boreholes, geothermometers, reservoirs, flash plants, scaling."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import MISSING, SHIFT, Book, mends, t

BOOK = Book("geothermal")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(10, 60, 8)), t(np.array(2.4)), t(np.array(11.5))),
        {"step": 730.0},
    ),
    "a load acts by the step up into it only: the step back down in the month after is missing",
    MISSING,
    SHIFT,
    r"\bstep(?:s)?\b.{0,30}\b(?:down|back|next)|\bnext\b|\bdifferences?\b|np\.diff|telescop",
    mends("by_step[1:]", "np.diff(by_step", "-np.diff(", "by_step[:-1] -="),
)
def borehole_wall():
    @pb.autograd_function
    def borehole_wall(ctx, load, conductivity, undisturbed, step=1.0, radius=0.075, capacity=2.2e6):
        """Temperature at a borehole's wall by superposition of line sources.

        load: (n,) heat taken in W/m, constant over each step (hours); conductivity: W/(m K);
        undisturbed: deg C; radius: m; capacity: J/(m3 K).
        """
        lam = conductivity.item()
        if lam <= 0:
            raise ValueError("conductivity must be positive")
        q = load.numpy()
        seconds = 3600.0 * step * np.arange(1, len(q) + 1)
        u = radius**2 * capacity / (4 * lam * seconds)
        reply = special.exp1(u) / (4 * np.pi * lam)
        jumps = np.diff(q, prepend=0.0)
        by_lam = (np.exp(-u) / (4 * np.pi * lam) - reply) / lam
        ctx.save_for_backward(reply=reply, by_lam=by_lam, jumps=jumps)
        return pb.asarray(undisturbed.item() - np.convolve(jumps, reply)[: len(q)])

    @borehole_wall.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        reply, by_lam, jumps = ctx.saved_variables
        gn = grad_output.numpy()
        n = len(gn)
        by_step = np.array([-(gn[k:] @ reply[: n - k]) for k in range(n)])
        return {
            "load": pb.asarray(by_step),
            "conductivity": -(gn @ np.convolve(jumps, by_lam)[:n]),
            "undisturbed": gn.sum(),
        }

    return borehole_wall


BAR = np.array([1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 14.0])
LIQUID = np.array([417.5, 504.7, 604.7, 670.4, 720.9, 762.6, 830.1])
VAPOUR = np.array([2675.4, 2706.3, 2737.6, 2755.5, 2767.5, 2776.2, 2787.8])


def separated(rng, low, high):
    return (t(rng.uniform(low, high, 5)), t(rng.uniform(30, 90, 5)), t(np.array(6.9))), {}


@BOOK.wrong(
    lambda rng: separated(rng, 900, 1400),
    "the steam fraction is clipped at 0 in forward only: a well of liquid gets a gradient",
    r"\bclip|\bclamp|\bsaturat|\bflat\b|\bplateau|\bbounds?\b|\blimits?\b",
    r"\b(?:all|only|well of) liquid|subcooled|fraction.{0,20}(?:0|zero)|(?:no|without) steam",
    r"(?:should|must|expected|ought to)(?: be)? (?:0|zero)\b|\bnon-?zero\b",
    mends("inside * ", "* inside", "np.where(inside", "(x > 0)", "s.x > 0", "0 < s.x"),
    where="some wells bring liquid only",
    shows=lambda rng: separated(rng, 450, 1100),
)
def separator_steam():
    @pb.autograd_function
    def separator_steam(ctx, enthalpy, flow, pressure):
        """Steam in kg/s from each well's enthalpy (kJ/kg) and flow, at one pressure in bar."""
        p = pressure.item()
        if not BAR[0] <= p <= BAR[-1]:
            raise ValueError("the table of steam goes from 1 to 14 bar")
        k = min(np.searchsorted(BAR, p, side="right"), len(BAR) - 1) - 1
        slopes = [(col[k + 1] - col[k]) / (BAR[k + 1] - BAR[k]) for col in (LIQUID, VAPOUR)]
        hf, hg = np.interp(p, BAR, LIQUID), np.interp(p, BAR, VAPOUR)
        raw = (enthalpy.numpy() - hf) / (hg - hf)
        x = np.clip(raw, 0.0, 1.0)
        ctx.save_for_backward(x=x, flow=flow.numpy(), latent=hg - hf, slopes=slopes)
        return pb.asarray(x * flow.numpy())

    @separator_steam.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_enthalpy = gn * s.flow / s.latent
        of_liquid, of_vapour = s.slopes
        by_pressure = -by_enthalpy * (of_liquid + s.x * (of_vapour - of_liquid))
        return {
            "enthalpy": pb.asarray(by_enthalpy),
            "flow": pb.asarray(gn * s.x),
            "pressure": by_pressure.sum(),
        }

    return separator_steam


def waters(rng, sodium, potassium, calcium):
    return tuple(t(c * rng.uniform(0.95, 1.05, 4)) for c in (sodium, potassium, calcium)), {}


@BOOK.wrong(
    lambda rng: waters(rng, 300.0, 9.0, 50.0),
    "backward keeps beta at 4/3 where forward has turned to 1/3, for hot waters",
    r"\b4 ?/ ?3\b|\b1 ?/ ?3\b|1\.333|0\.333|\bbeta\b",
    r"\bbranch|\bswitch|\bhot\b|\b100\b|above|\bpiecewise",
    mends("s.beta", "ctx.beta", "beta=beta"),
    where="water above 100 degrees",
    shows=lambda rng: waters(rng, 1000.0, 150.0, 20.0),
)
def na_k_ca_temperature():
    def forward(ctx, sodium, potassium, calcium):
        na, k, ca = sodium.numpy(), potassium.numpy(), calcium.numpy()
        if min(na.min(), k.min(), ca.min()) <= 0:
            raise ValueError("concentrations must be positive")
        ratio, lime = np.log10(na / k) + 2.47, np.log10(np.sqrt(ca) / na) + 2.06
        cold = 1647.0 / (ratio + 4 / 3 * lime) - 273.15
        beta = np.where(cold <= 100.0, 4 / 3, 1 / 3)
        total = ratio + beta * lime
        ctx.save_for_backward(sodium=na, potassium=k, calcium=ca, total=total)
        return pb.asarray(1647.0 / total - 273.15)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        na, k, ca, total = ctx.saved_variables
        by_total = -1647.0 * grad_output.numpy() / total**2 / np.log(10.0)
        return {
            "sodium": pb.asarray(by_total * (1 - 4 / 3) / na),
            "potassium": pb.asarray(-by_total / k),
            "calcium": pb.asarray(by_total * (4 / 3) / 2 / ca),
        }

    return pb.autograd_function(forward, backward, name="na_k_ca_temperature")


@BOOK.right(
    lambda rng: (
        (t(np.array(165.0)), t(np.array(60.0)), t(np.array(2400.0) * rng.uniform(0.9, 1.1))),
        {"time": np.linspace(0.0, 15000.0, 7)},
    )
)
def doublet_breakthrough():
    @pb.autograd_function
    def doublet_breakthrough(ctx, reservoir, injected, flow, time, spacing=500.0, thickness=50.0):
        """Temperature of a doublet's producer over time (days).

        It is the reservoir's until the cold front comes, then falls as an error function.
        reservoir, injected: deg C; flow: m3 a day, positive; spacing, thickness: m.
        """
        q, hot, cold = flow.item(), reservoir.item(), injected.item()
        if q <= 0:
            raise ValueError("flow must be positive")
        arrival = np.pi * spacing**2 * thickness / 3 * 0.65 / q
        late = time > arrival
        since = np.where(late, time - arrival, 1.0)
        z = 0.169 * spacing**2 / q / np.sqrt(since)
        kept = np.where(late, special.erf(z), 1.0)
        slope = np.where(late, 2 / np.sqrt(np.pi) * np.exp(-(z**2)), 0.0)
        by_flow = -slope * z / q * (1 + arrival / (2 * since)) * (hot - cold)
        ctx.save_for_backward(kept=kept, by_flow=by_flow)
        return pb.asarray(cold + (hot - cold) * kept)

    @doublet_breakthrough.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        kept, by_flow = ctx.saved_variables
        gn = grad_output.numpy()
        return {"reservoir": gn @ kept, "injected": gn @ (1 - kept), "flow": gn @ by_flow}

    return doublet_breakthrough


@BOOK.right(
    lambda rng: (
        (t(np.array(182.0)), t(np.linspace(170, 25, 9) + rng.normal(0, 2, 9)), t(np.array(22.0))),
        {"length": 250.0},
    )
)
def wellhead_temperature():
    @pb.autograd_function
    def wellhead_temperature(ctx, bottom, rock, flow, length=100.0, loss=12.0):
        """Temperature along a producing well, from the deepest section to the head."""
        m = flow.item()
        if m <= 0:
            raise ValueError("the well does not flow")
        kept = np.exp(-loss * length / (m * 4180.0))
        before, out, T = [], [], bottom.item()
        for around in rock.numpy():
            before.append(T - around)
            T = around + (T - around) * kept
            out.append(T)
        ctx.before, ctx.kept = np.array(before), kept
        ctx.by_flow = kept * loss * length / (m**2 * 4180.0)
        return pb.asarray(np.array(out))

    @wellhead_temperature.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        by_rock, carried, by_kept = np.zeros_like(gn), 0.0, 0.0
        for i in range(len(gn) - 1, -1, -1):
            carried += gn[i]
            by_kept += carried * ctx.before[i]
            by_rock[i] = carried * (1 - ctx.kept)
            carried *= ctx.kept
        return {"bottom": carried, "rock": pb.asarray(by_rock), "flow": by_kept * ctx.by_flow}

    return wellhead_temperature


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(60, 240, (3, 4))),
            t(rng.uniform(0.02, 0.2, (3, 4))),
            t(rng.uniform(100, 600, 4)),
        ),
        {"area": 1e6, "reference": 90.0, "inside": np.array([True, True, False, True])},
    )
)
def heat_in_place():
    @pb.autograd_function
    def heat_in_place(ctx, temperature, porosity, thickness, area, reference=15.0, inside=None):
        """Heat in PJ above the reference of a stack of layers; colder cells count for nothing.

        temperature, porosity: (layers, columns); thickness: (columns,) of each layer there;
        inside: (columns,) which columns belong to the field, None for all.
        """
        T, phi, h = temperature.numpy(), porosity.numpy(), thickness.numpy()
        cell = np.full(T.shape, area * 1e-15)
        if inside is not None:
            cell[:, ~inside] = 0.0
        content = 2.3e6 * (1 - phi) + 4.1e6 * phi
        above = np.maximum(T - reference, 0.0)
        ctx.save_for_backward(cell, content, above, h)
        return pb.asarray(np.array((cell * h * content * above).sum()))

    @heat_in_place.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        cell, content, above, h = ctx.saved_variables
        weight = grad_output.item() * cell
        return {
            "temperature": pb.asarray(weight * h * content * (above > 0)),
            "porosity": pb.asarray(weight * h * above * (4.1e6 - 2.3e6)),
            "thickness": pb.asarray((weight * content * above).sum(axis=0)),
        }

    return heat_in_place


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.1, 0.6, 5)), t(rng.uniform(140, 190, 5)), t(np.array(48.0))),
        {},
    )
)
def fracture_mix():
    class FractureMix(pb.Function):
        @staticmethod
        def forward(ctx, aperture, temperature, flow):
            w, T = aperture.numpy(), temperature.numpy()
            share = w**3
            total = share.sum()
            if not total > 0:
                raise ValueError("no fracture is open")
            share = share / total
            mixed = share @ T
            ctx.cubic = 3 * w**2 / total
            ctx.share, ctx.flow, ctx.apart = share, flow.item(), T - mixed
            return pb.asarray(flow.item() * share), pb.asarray(np.array(mixed))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_flows, g_mixed):
            g, gm = g_flows.numpy(), g_mixed.item()
            along = g @ ctx.share
            by_share = ctx.flow * (g - along) + gm * ctx.apart
            return pb.asarray(ctx.cubic * by_share), pb.asarray(gm * ctx.share), along

    return FractureMix.apply


@BOOK.right(
    lambda rng: (
        (t(np.array(310.0)), t(np.array(0.06) * rng.uniform(0.8, 1.2))),
        {"years": np.arange(0.0, 25.0, 4.0), "kind": "hyperbolic", "b": 0.4},
    )
)
def steam_decline():
    @pb.autograd_function
    def steam_decline(ctx, initial, rate, years, kind="exponential", b=0.5):
        """Arps decline of steam (t/h); kind: exponential, harmonic, or hyperbolic with b > 0."""
        if kind not in ("exponential", "harmonic", "hyperbolic"):
            raise ValueError(f"no decline of kind {kind!r}")
        q, d = initial.item(), rate.item()
        if d < 0:
            raise ValueError("the rate of decline must not be negative")
        if kind == "exponential":
            left = np.exp(-d * years)
            slope = -years * left
        else:
            power = 1.0 if kind == "harmonic" else b
            if power <= 0:
                raise ValueError("b must be positive")
            base = 1 + power * d * years
            left = base ** (-1 / power)
            slope = -years * left / base
        ctx.save_for_backward(left=left, by_rate=q * slope)
        return pb.asarray(q * left)

    @steam_decline.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        gn = grad_output.numpy()
        return {"initial": gn @ s.left, "rate": gn @ s.by_rate}

    return steam_decline


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(95, 180, 6)), t(rng.uniform(20, 80, 6)), t(rng.uniform(150, 700, 6))),
        {},
    )
)
def binary_power():
    @pb.autograd_function
    def binary_power(ctx, brine, flow, silica, coldest=60.0):
        """Net power in kW; brine is cooled until the plant's limit or until silica falls out."""
        T, m, c = brine.numpy(), flow.numpy(), silica.numpy()
        if (c <= 0).any() or (c >= 10**4.5).any():
            raise ValueError("silica must lie between 0 and 30000 mg/kg")
        span = 4.52 - np.log10(c)
        falls = 731.0 / span - 273.15
        outlet = np.maximum(falls, coldest)
        drop = np.maximum(T - outlet, 0.0)
        share = np.maximum(0.0935 * T - 2.3266, 0.0) / 100.0
        ctx.m, ctx.drop, ctx.share = m, drop, share
        ctx.by_silica = np.where(falls > coldest, 731.0 / span**2 / (c * np.log(10)), 0.0)
        return pb.asarray(4.18 * m * drop * share)

    @binary_power.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        heat = 4.18 * grad_output.numpy()
        by_drop = heat * ctx.m * ctx.share * (ctx.drop > 0)
        by_share = heat * ctx.m * ctx.drop * (ctx.share > 0)
        return {
            "brine": pb.asarray(by_drop + 0.0935 / 100.0 * by_share),
            "flow": pb.asarray(heat * ctx.drop * ctx.share),
            "silica": pb.asarray(-by_drop * ctx.by_silica),
        }

    return binary_power


@BOOK.right(
    lambda rng: (
        (t(np.array([0.02, 0.15, 0.4, 0.9]) * rng.uniform(0.9, 1.1, 4)), t(np.array(0.0326))),
        {"length": 240.0, "roughness": 7e-6},
    )
)
def loop_pressure_drop():
    def friction(Re, relative):
        x = 8.0  # 1 / sqrt(f)
        for _ in range(50):
            inner = relative / 3.7 + 2.51 * x / Re
            slope = 1 + 2 * 2.51 / Re / inner / np.log(10)
            step = (x + 2 * np.log10(inner)) / slope
            x -= step
            if abs(step) < 1e-14 * abs(x):
                break
        scale = -2 / np.log(10) / inner / slope
        return x, scale * -2.51 * x / Re**2, scale / 3.7

    def forward(ctx, flow, diameter, length, roughness=1.5e-6, viscosity=1.3e-6):
        """Pressure drop in Pa of water (l/s) in a pipe; laminar below Re = 2300."""
        Q, D = flow.numpy() / 1000, diameter.item()
        if (Q <= 0).any() or D <= 0:
            raise ValueError("flow and diameter must be positive")
        Re = 4 * Q / (np.pi * D * viscosity)
        f, by_re, by_relative = 64 / Re, -64 / Re**2, np.zeros_like(Re)
        for i in np.flatnonzero(Re >= 2300):
            x, x_by_re, x_by_relative = friction(Re[i], roughness / D)
            f[i], by_re[i] = x**-2, -2 * x**-3 * x_by_re
            by_relative[i] = -2 * x**-3 * x_by_relative
        head = 1000.0 * length / D * 8 * Q**2 / (np.pi**2 * D**4)
        by_flow = head * (by_re * Re + 2 * f) / flow.numpy()
        by_diameter = -head * (by_re * Re + by_relative * roughness / D + 5 * f) / D
        ctx.save_for_backward(by_flow=by_flow, by_diameter=by_diameter)
        return pb.asarray(f * head)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        return {"flow": pb.asarray(gn * s.by_flow), "diameter": gn @ s.by_diameter}

    return pb.autograd_function(forward, backward, name="loop_pressure_drop")


DAYS = np.array([0.0, 3.0, 7.0, 10.0, 20.0, 45.0, 60.0, 90.0])


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(2, 40, 8)), DAYS),
        {"decay": 0.03},
    )
)
def tracer_residence():
    @pb.autograd_function
    def tracer_residence(ctx, concentration, days, decay=None):
        """Mean residence time of a tracer in days.

        concentration: (n,) in ppb at the days (n,), increasing; decay: rate per day of the
        exponential tail after the last sample, None where the tail is not to count.
        """
        if len(days) < 2 or (np.diff(days) <= 0).any():
            raise ValueError("days must increase")
        gaps = np.diff(days) / 2
        weight = np.zeros(len(days))
        weight[:-1] += gaps
        weight[1:] += gaps
        moment = weight * days
        if decay is not None:
            if decay <= 0:
                raise ValueError("the tail must decay")
            weight[-1] += 1 / decay
            moment[-1] += days[-1] / decay + 1 / decay**2
        amount = weight @ concentration.numpy()
        if not amount > 0:
            raise ValueError("no tracer came back")
        mean = moment @ concentration.numpy() / amount
        ctx.slope = (moment - mean * weight) / amount
        return pb.asarray(np.array(mean))

    @tracer_residence.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return {"concentration": pb.asarray(grad_output.item() * ctx.slope)}

    return tracer_residence


@BOOK.right(
    lambda rng: (
        (t(np.array(0.065)), t(rng.uniform(1.8, 3.6, 5)), t(rng.uniform(0.5e-6, 3e-6, 5))),
        {"thickness": np.array([400.0, 900.0, 300.0, 1500.0, 2000.0])},
    )
)
def geotherm():
    @pb.autograd_function
    def geotherm(ctx, heat_flow, conductivity, production=None, thickness=500.0, surface=10.0):
        lam = conductivity.numpy()
        dz = np.broadcast_to(np.asarray(thickness, float), lam.shape)
        made = np.zeros_like(lam) if production is None else production.numpy()
        top = heat_flow.item() - np.concatenate([[0.0], np.cumsum(made * dz)[:-1]])
        rise = (top - made * dz / 2) * dz / lam
        ctx.save_for_backward(lam=lam, dz=dz, rise=rise)
        ctx.produces = production is not None
        return pb.asarray(surface + np.cumsum(rise))

    @geotherm.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        lam, dz, rise = ctx.saved_variables
        by_rise = np.cumsum(grad_output.numpy()[::-1])[::-1]
        by_top = by_rise * dz / lam
        below = by_top.sum() - np.cumsum(by_top)
        grads = {
            "heat_flow": by_top.sum(),
            "conductivity": pb.asarray(-by_rise * rise / lam),
        }
        if ctx.produces:
            grads["production"] = pb.asarray(-dz * (below + by_top / 2))
        return grads

    return geotherm


@BOOK.right(
    lambda rng: (
        (t(np.array(720.0)), t(np.linspace(160, 70, 8) + rng.normal(0, 3, 8)), t(np.array(4e-4))),
        {"dt": 2.0},
    )
)
def silica_in_line():
    @pb.autograd_function
    def silica_in_line(ctx, silica, temperature, rate, dt=1.0):
        """Dissolved silica (mg/kg) along a line; only what is above saturation polymerises."""
        c, excess = silica.item(), []
        saturated = 10 ** (4.52 - 731.0 / (temperature.numpy() + 273.15))
        out = np.empty_like(saturated)
        for i, limit in enumerate(saturated):
            excess.append(max(c - limit, 0.0))
            c = c - dt * rate.item() * excess[-1] ** 2
            out[i] = c
        by_T = saturated * np.log(10) * 731.0 / (temperature.numpy() + 273.15) ** 2
        ctx.excess, ctx.by_T, ctx.rate, ctx.dt = excess, by_T, rate.item(), dt
        return pb.asarray(out)

    @silica_in_line.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        to_c = to_rate = 0.0
        by_limit = np.zeros(len(ctx.excess))
        for i in reversed(range(len(ctx.excess))):
            to_c += grad_output.numpy()[i]
            to_rate -= to_c * ctx.dt * ctx.excess[i] ** 2
            taken = to_c * 2 * ctx.dt * ctx.rate * ctx.excess[i]
            by_limit[i] = taken
            to_c -= taken
        return {"silica": to_c, "temperature": pb.asarray(by_limit * ctx.by_T), "rate": to_rate}

    return silica_in_line


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(800, 1500, 6)), t(rng.uniform(20, 70, 6)), t(np.array(130.0))),
        {"off": [2]},
    )
)
def best_wells():
    @pb.autograd_function
    def best_wells(ctx, enthalpy, flow, capacity, off=()):
        """Heat of a plant that takes the hottest wells first, up to its capacity in kg/s."""
        h, m, room = enthalpy.numpy(), flow.numpy(), capacity.item()
        if (m < 0).any() or room < 0:
            raise ValueError("flows and capacity must not be negative")
        taken, last = np.zeros_like(m), None
        for i in np.argsort(-h, kind="stable"):
            if i in off:
                continue
            if m[i] > room:
                taken[i], last = room, i
                break
            taken[i] = m[i]
            room -= m[i]
        ctx.h, ctx.taken, ctx.last = h, taken, last
        ctx.whole = np.array([i not in off for i in range(len(m))]) & (taken == m)
        return pb.asarray(np.array(h @ taken))

    @best_wells.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        g = grad_output.item()
        spare = 0.0 if ctx.last is None else ctx.h[ctx.last]
        whole = ctx.whole & ((ctx.h >= spare) | (ctx.last is None))
        return {
            "enthalpy": pb.asarray(g * ctx.taken),
            "flow": pb.asarray(g * np.where(whole, ctx.h - spare, 0.0)),
            "capacity": g * spare,
        }

    return best_wells
