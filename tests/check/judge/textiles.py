"""Textiles: counts, covers, weaves, fibre lengths, evenness, bundles, dyeing, winding."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, SWAPPED, UNSORTED, Book, at, mends, t

BOOK = Book("textiles")


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(22, 40, 3)),
            t(rng.uniform(12, 20, 3)),
            t(rng.uniform(14, 40, 3)),
            t(rng.uniform(14, 40, 3)),
        ),
        {},
    ),
    "the cross term's slopes are swapped: the warp's cover is multiplied by itself, as the weft's",
    SWAPPED,
    r"\bcross.?term|\bby itself|\bproduct\b|wrong (?:cover|thread|factor)|\bother (?:cover|thread)",
    mends("by_warp = gn * (1 - s.k2", "by_weft = gn * (1 - s.k1", "- s.k2 * gn / 28"),
)
def fabric_cover():
    @pb.autograd_function
    def fabric_cover(ctx, ends, picks, warp, weft):
        """Peirce's cover of a fabric, 28 at most.

        ends, picks: (n,) threads per cm. warp, weft: (n,) counts of the yarns in tex.
        """
        k1 = ends.numpy() * np.sqrt(warp.numpy()) / 10
        k2 = picks.numpy() * np.sqrt(weft.numpy()) / 10
        ctx.save_for_backward(k1=k1, k2=k2, ends=ends, picks=picks, warp=warp, weft=weft)
        return pb.asarray(k1 + k2 - k1 * k2 / 28)

    @fabric_cover.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_warp = gn * (1 - s.k1 / 28)
        by_weft = gn * (1 - s.k2 / 28)
        return {
            "ends": pb.asarray(by_warp * np.sqrt(s.warp.numpy()) / 10),
            "picks": pb.asarray(by_weft * np.sqrt(s.weft.numpy()) / 10),
            "warp": pb.asarray(by_warp * s.k1 / (2 * s.warp.numpy())),
            "weft": pb.asarray(by_weft * s.k2 / (2 * s.weft.numpy())),
        }

    return fabric_cover


@BOOK.wrong(
    lambda rng: (
        (
            t(np.array(4.0)),
            t(np.array([90.0, 45.0, 180.0, 30.0]) * rng.uniform(0.9, 1.1, 4)),
            t(np.array(0.27)),
            t(rng.uniform(0.5, 3, 4)),
        ),
        {},
    ),
    "angles and friction take the tension before a guide: the guide's own growth factor is missing",
    FACTOR,
    r"\btension\b.{0,30}(?:before|after|into|out of|behind)|\bown\b|\bgrowth|exponential|\bexp\b",
    r"\b(?:previous|next|preceding|following)\b|off.by.one|\bmultipl",
    mends("s.grown[k] * s.before[k]", "s.before[k] * s.grown[k]", "flow * s.grown[k] *"),
)
def creel_tension():
    @pb.autograd_function
    def creel_tension(ctx, start, wrap, friction, disc):
        """Tension in cN behind each guide: yarn wraps it by an angle in degrees, a disc adds."""
        mu, angle, T = friction.item(), np.radians(wrap.numpy()), start.item()
        grown, added = np.exp(mu * angle), disc.numpy()
        before, after = np.empty_like(grown), np.empty_like(grown)
        for k in range(len(grown)):
            before[k] = T
            T = after[k] = T * grown[k] + added[k]
        ctx.save_for_backward(before=before, grown=grown, mu=mu, angle=angle)
        return pb.asarray(after)

    @creel_tension.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_wrap, by_disc = np.zeros_like(gn), np.zeros_like(gn)
        flow = by_friction = 0.0
        for k in reversed(range(len(gn))):
            flow += gn[k]
            by_disc[k] = flow
            by_exponent = flow * s.before[k]
            by_wrap[k] = by_exponent * s.mu
            by_friction += by_exponent * s.angle[k]
            flow *= s.grown[k]
        return {
            "start": flow,
            "wrap": pb.asarray(np.radians(by_wrap)),
            "friction": by_friction,
            "disc": pb.asarray(by_disc),
        }

    return creel_tension


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.05, 6, (2, 5))),), {}),
    "the surface's correction is a quotient: the factor 1 / (1 - inner R) should stand squared",
    at("inner"),
    FACTOR,
    r"\bsquared?\b|\bquotient|\bdenominator|internal reflect|Saunderson",
    mends("ctx.below**2", "s.below**2", "(1 - ctx.inner * R) ** 2", "(1 - s.inner * s.R) ** 2"),
    where="inner is not 0",
    shows=lambda rng: ((t(rng.uniform(0.05, 6, (2, 5))),), {"outer": 0.04, "inner": 0.4}),
)
def measured_reflectance():
    def forward(ctx, ks, outer=0.0, inner=0.0):
        """Reflectance of cloth of a ratio of absorption to scatter, as an instrument sees it."""
        a = ks.numpy()
        root = np.sqrt(a * (a + 2))
        R = 1 / (1 + a + root)
        ctx.save_for_backward(R=R, root=root)
        ctx.through, ctx.below = (1 - outer) * (1 - inner), 1 - inner * R
        return pb.asarray(outer + ctx.through * R / ctx.below)

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        by_R = g.numpy() * ctx.through / ctx.below
        return {"ks": pb.asarray(-by_R * s.R / s.root)}

    return pb.autograd_function(forward, backward, name="measured_reflectance")


LENGTHS = np.array([34.0, 31.5, 29.0, 27.5, 24.0, 19.0, 12.5, 7.0])


@BOOK.wrong(
    lambda rng: ((t(LENGTHS + rng.random(8)), t(rng.uniform(3, 20, 8))), {}),
    "the gradient is in order of length, as sorted in forward, and is not put back in place",
    UNSORTED,
    r"\bput back\b|\bscatter|\border of\b|original (?:order|place)|\bargsort",
    mends("[s.order] =", "[ctx.order] =", "argsort(s.order)", "argsort(order)", "s.back"),
    where="lengths are not sorted",
    shows=lambda rng: (
        (t(rng.permutation(LENGTHS) + rng.random(8)), t(rng.uniform(3, 20, 8))),
        {},
    ),
)
def upper_half_mean():
    @pb.autograd_function
    def upper_half_mean(ctx, length, weight, part=0.5):
        order = np.argsort(-length.numpy(), kind="stable")
        L, w = length.numpy()[order], weight.numpy()[order]
        wanted = part * w.sum()
        used = np.clip(wanted - (np.cumsum(w) - w), 0, w)
        mean = used @ L / wanted
        cut = int(np.flatnonzero(used > 0)[-1])
        ctx.save_for_backward(order=order, L=L, used=used, wanted=wanted, mean=mean, cut=cut)
        ctx.part = part
        return pb.asarray(np.asarray(mean))

    @upper_half_mean.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, scale = ctx.saved_variables, g.item() / ctx.saved_variables.wanted
        by_weight = ctx.part * (s.L[s.cut] - s.mean) * np.ones_like(s.L)
        by_weight[: s.cut] += s.L[: s.cut] - s.L[s.cut]
        return {
            "length": pb.asarray(scale * s.used),
            "weight": pb.asarray(scale * by_weight),
        }

    return upper_half_mean


@BOOK.right(
    lambda rng: (
        (t(np.array([20.0, 30.0, 76.0, 150.0, 48.0]) + rng.random(5)),),
        {"systems": ["tex", "Ne", "dtex", "den", "Nm"], "plies": [1, 2, 1, 3, 2]},
    )
)
def resultant_tex():
    DIRECT = {"tex": 1.0, "dtex": 0.1, "den": 1 / 9}
    INDIRECT = {"Ne": 590.54, "Nm": 1000.0, "lea": 1653.5}

    @pb.autograd_function
    def resultant_tex(ctx, count, systems, plies=None, contraction=0.0):
        """Tex of folded yarns from counts in direct and indirect systems."""
        slopes = np.empty(len(count))
        tex = np.empty(len(count))
        for k, (value, system) in enumerate(zip(count.numpy(), systems, strict=True)):
            folds = (1 if plies is None else plies[k]) / (1 - contraction)
            if system in DIRECT:
                slopes[k] = folds * DIRECT[system]
                tex[k] = slopes[k] * value
            else:
                tex[k] = folds * INDIRECT[system] / value
                slopes[k] = -tex[k] / value
        ctx.slopes = slopes
        return pb.asarray(tex)

    @resultant_tex.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"count": pb.asarray(g.numpy() * ctx.slopes)}

    return resultant_tex


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.35, 0.6, 4)), t(rng.uniform(0.04, 0.15, 4)), t(rng.uniform(0.15, 0.3, 4))),
        {},
    )
)
def plain_weave_geometry():
    @pb.autograd_function
    def plain_weave_geometry(ctx, spacing, crimp, diameter):
        """Weave angle in radians and height of the crimp in mm, by Peirce's geometry.

        spacing: (n,) of the crossing threads in mm; crimp: (n,), positive, 0.05 for 5 %;
        diameter: (n,) sum of both threads' in mm, less than the spacing.
        """
        p, c, D = spacing.numpy(), crimp.numpy(), diameter.numpy()
        if (c <= 0).any() or (D <= 0).any() or (p - D <= 0).any():
            raise ValueError("crimp must be positive, and the diameter less than the spacing")
        length = p * (1 + c)
        low, high = np.zeros_like(p), np.minimum(np.pi / 2, length / D)
        for _ in range(60):
            a = 0.5 * (low + high)
            over = (length - D * a) * np.cos(a) + D * np.sin(a) > p
            low, high = np.where(over, a, low), np.where(over, high, a)
        a = 0.5 * (low + high)
        free = length - D * a
        ctx.save_for_backward(p=p, c=c, a=a, free=free)
        return pb.asarray(a.copy()), pb.asarray(free * np.sin(a) + D * (1 - np.cos(a)))

    @plain_weave_geometry.backward
    @pb.once_differentiable
    def _(ctx, g_angle, g_height):
        p, c, a, free = ctx.saved_variables
        cos, sin, gh = np.cos(a), np.sin(a), g_height.numpy()
        # the residual's slope by the angle is -free * sin
        back = (g_angle.numpy() + gh * free * cos) / (free * sin)
        by_length = back * cos + gh * sin
        by_diameter = back * (sin - a * cos) + gh * (1 - cos - a * sin)
        return {
            "spacing": pb.asarray(by_length * (1 + c) - back),
            "crimp": pb.asarray(by_length * p),
            "diameter": pb.asarray(by_diameter),
        }

    return plain_weave_geometry


TWILL = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1], [1, 1, 0, 1]])


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.15, 0.25, 4)), t(rng.uniform(0.2, 0.3, 5)), t(np.array(0.48))),
        {"weave": TWILL},
    )
)
def warp_crimps():
    @pb.autograd_function
    def warp_crimps(ctx, ends, picks, spacing, weave):
        """Crimp of each end in a weave: (picks, ends), 1 where the end is on top.

        ends and picks: diameters in mm; spacing: of the picks in mm. The weave repeats.
        """
        crosses = weave != np.roll(weave, -1, axis=0)
        s, d = spacing.item(), picks.numpy()
        rise = ends.numpy() + 0.5 * (d + np.roll(d, -1))[:, None]
        slant = np.hypot(s, rise)
        length = np.where(crosses, slant, s)
        ctx.save_for_backward(s=s, up=crosses * rise / slant, length=length)
        return pb.asarray(length.sum(axis=0) / (len(d) * s) - 1)

    @warp_crimps.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, up, length = ctx.saved_variables
        share = g.numpy() / (len(up) * s)
        rise = share * up
        # a straight piece is as long as the spacing, so s / length is its slope as well
        by_spacing = (share * (s / length - length / s)).sum()
        return {
            "ends": pb.asarray(rise.sum(axis=0)),
            "picks": pb.asarray(0.5 * (rise + np.roll(rise, 1, axis=0)).sum(axis=1)),
            "spacing": by_spacing,
        }

    return warp_crimps


@BOOK.right(
    lambda rng: (
        (t(rng.permutation(LENGTHS) + rng.random(8)), t(rng.uniform(3, 20, 8))),
        {"spans": (0.025, 0.5, 0.66)},
    )
)
def span_lengths():
    @pb.autograd_function
    def span_lengths(ctx, length, weight, spans=(0.025, 0.5)):
        """Lengths that the given parts of a fibrogram reach; length in mm, weight of its class."""
        L, w = length.numpy(), weight.numpy()
        if (L <= 0).any() or (w < 0).any() or not all(0 < q <= 1 for q in spans):
            raise ValueError("span_lengths: out of range")
        total, out, longer = w @ L, [], []
        order = np.argsort(-L)
        sums, moments = np.cumsum(w[order]), np.cumsum((w * L)[order])
        # above a length x, the beard is moments - x * sums of the fibres longer than x
        beard = moments - L[order] * sums
        for q in spans:
            k = int(np.searchsorted(beard, q * total)) - 1
            out.append((moments[k] - q * total) / sums[k])
            longer.append(np.isin(np.arange(len(L)), order[: k + 1]))
        ctx.save_for_backward(L=L, w=w, spans=spans, longer=longer, out=out)
        return pb.asarray(np.array(out))

    @span_lengths.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_length, by_weight = np.zeros_like(s.L), np.zeros_like(s.w)
        for gk, q, longer, x in zip(g.numpy(), s.spans, s.longer, s.out, strict=True):
            scale = gk / s.w[longer].sum()
            by_length += scale * s.w * (longer - q)
            by_weight += scale * (longer * (s.L - x) - q * s.L)
        return {"length": pb.asarray(by_length), "weight": pb.asarray(by_weight)}

    return span_lengths


@BOOK.right(lambda rng: ((t(20 + 3 * rng.normal(size=30)),), {"cuts": (1, 4, 10)}))
def cut_length_variation():
    @pb.autograd_function
    def cut_length_variation(ctx, mass, cuts=(1, 10)):
        x = mass.numpy()
        if len(x) <= max(cuts):
            raise ValueError("the yarn is shorter than the longest cut")
        total = np.concatenate([[0.0], np.cumsum(x)])
        slopes, out = [], []
        for cut in cuts:
            pieces = (total[cut:] - total[:-cut]) / cut
            mean, n = pieces.mean(), len(pieces)
            spread = pieces.std(ddof=1)
            by_piece = np.full(n, -spread / mean**2 / n)
            if spread > 0:
                by_piece += (pieces - mean) / (spread * (n - 1) * mean)
            slopes.append(np.convolve(by_piece, np.full(cut, 100 / cut)))
            out.append(100 * spread / mean)
        ctx.slopes = np.array(slopes)
        return pb.asarray(np.array(out))

    @cut_length_variation.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"mass": pb.asarray(g.numpy() @ ctx.slopes)}

    return cut_length_variation


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(0.0, 2.0, 12)),
            t(rng.uniform(0.6, 1.4, 12)),
            t(rng.uniform(4.0, 8.0, 12)),
        ),
        {"strain": np.linspace(0, 12, 61)},
    )
)
def bundle_strength():
    @pb.autograd_function
    def bundle_strength(ctx, slack, stiffness, breaking, strain):
        """Largest force in cN of a bundle as it is drawn, and the strain in % at which it is.

        slack: (n,) in %, taken up before a fibre bears load; stiffness: (n,) in cN per %;
        breaking: (n,) in cN, beyond which a fibre bears no more.
        """
        drawn = np.maximum(strain[:, None] - slack.numpy(), 0.0)
        force = drawn * stiffness.numpy()
        whole = force < breaking.numpy()
        total = (force * whole).sum(axis=1)
        peak = int(total.argmax())
        bears = whole[peak] & (drawn[peak] > 0)
        ctx.save_for_backward(drawn=drawn[peak] * bears, stiff=stiffness.numpy() * bears)
        return pb.asarray(np.asarray(total[peak])), pb.asarray(np.asarray(strain[peak]))

    @bundle_strength.backward
    @pb.once_differentiable
    def _(ctx, g_force, g_strain):
        # the strain is one of those given, whatever the fibres
        drawn, stiff = ctx.saved_variables
        scale = g_force.item()
        return {
            "slack": pb.asarray(-scale * stiff),
            "stiffness": pb.asarray(scale * drawn),
            "breaking": pb.asarray(np.zeros_like(drawn)),
        }

    return bundle_strength


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.2, 0.9, 2.4, 6.0]) + 0.1 * rng.random(4)),
            t(np.array(4.5)),
            t(np.array(32.0)),
            t(rng.uniform(8, 20, 4)),
        ),
        {},
    )
)
def dye_on_fibre():
    def forward(ctx, dosed, affinity, sites, liquor):
        """Dye in g/kg on the fibre at equilibrium (Langmuir); liquor in L/kg, the bath in g/L."""
        C0, K, S, r = dosed.numpy(), affinity.item(), sites.item(), liquor.numpy()
        b = 1 + K * (S / r - C0)
        root = np.sqrt(b**2 + 4 * K * C0)
        bath = np.where(b > 0, 2 * C0 / (np.abs(b) + root), (np.abs(b) + root) / (2 * K))
        taken = K * bath / (1 + K * bath)
        ctx.save_for_backward(bath=bath, taken=taken, K=K, S=S, r=r)
        return pb.asarray(S * taken)

    @pb.once_differentiable
    def backward(ctx, g):
        bath, taken, K, S, r = ctx.saved_variables
        flow = g.numpy()
        by_bath, by_K = K / (1 + K * bath) ** 2, bath / (1 + K * bath) ** 2
        # what the fibre takes, the bath loses
        to_bath = flow * S * by_bath / (1 + S / r * by_bath)
        return {
            "dosed": pb.asarray(to_bath),
            "affinity": S * ((flow - to_bath / r) @ by_K),
            "sites": (flow - to_bath / r) @ taken,
            "liquor": pb.asarray(to_bath * S * taken / r**2),
        }

    return pb.autograd_function(forward, backward, name="dye_on_fibre")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(6, 16, 4)), t(np.array([41.5, 20.0, 63.0, 88.0]) + rng.random(4))),
        {"weight": np.array([120.0, 310.0, 95.0, 210.0])},
    )
)
def bending_stiffness():
    @pb.autograd_function
    def bending_stiffness(ctx, overhang, angle, weight=None):
        """Bending length in cm, or with a weight in g/m2 the rigidity in mg cm, of a cantilever.

        overhang: (n,) in cm; angle: (n,) by which the strip droops, between 0 and 90 degrees.
        """
        a = np.radians(angle.numpy())
        if (a <= 0).any() or (a >= np.pi / 2).any():
            raise ValueError("angles lie between 0 and 90 degrees")
        cubed = overhang.numpy() ** 3 * np.cos(a / 2) / (8 * np.tan(a))
        out = np.cbrt(cubed) if weight is None else 0.1 * weight * cubed
        power = 1 / 3 if weight is None else 1.0
        ctx.save_for_backward(overhang=overhang, a=a, flow=power * out)
        return pb.asarray(out)

    @bending_stiffness.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        flow = g.numpy() * s.flow
        by_angle = -flow * (0.5 * np.tan(s.a / 2) + 2 / np.sin(2 * s.a))
        return {
            "overhang": pb.asarray(3 * flow / s.overhang.numpy()),
            "angle": pb.asarray(np.radians(by_angle)),
        }

    return bending_stiffness


@BOOK.right(
    lambda rng: (
        (
            t(np.linspace(45, 98, 9) + rng.random(9)),
            t(np.array(-3.2)),
            t(np.array(58.0)),
            t(np.array(0.92)),
        ),
        {"minutes": 6.0},
    )
)
def exhaustion_curve():
    @pb.autograd_function
    def exhaustion_curve(ctx, temperature, log_rate, energy, final, minutes=5.0, at_degrees=60.0):
        """Dye taken up after each step; energy in kJ/mol, log_rate: ln (1/min) at at_degrees."""
        inverse = 1 / (temperature.numpy() + 273.15)
        colder = (1 / (at_degrees + 273.15) - inverse) / 8.314e-3
        step = minutes * np.exp(log_rate.item() + energy.item() * colder)
        done = np.cumsum(step)
        ctx.save_for_backward(inverse, colder, step, done, energy.item(), final.item())
        return pb.asarray(-final.item() * np.expm1(-done))

    @exhaustion_curve.backward
    @pb.once_differentiable
    def _(ctx, g):
        inverse, colder, step, done, energy, final = ctx.saved_variables
        gn = g.numpy()
        by_done = gn * final * np.exp(-done)
        by_log = step * (by_done.sum() - np.cumsum(by_done) + by_done)
        return {
            "temperature": pb.asarray(by_log * energy * inverse**2 / 8.314e-3),
            "log_rate": by_log.sum(),
            "energy": by_log @ colder,
            "final": -gn @ np.expm1(-done),
        }

    return exhaustion_curve


@BOOK.right(
    lambda rng: (
        (
            t(5.0 + np.array([0.1, 0.9, 1.2, 0.4, -0.2, -1.1, -0.8, 0.3, 1.4, 1.5, 1.6, 1.2])),
            t(np.array(4.93)),
            t(np.array(0.55)),
        ),
        {"band": 0.02, "limit": 0.25, "delay": 2},
    )
)
def autoleveller():
    @pb.autograd_function
    def autoleveller(ctx, sliver, target, gain, band=0.0, limit=0.3, delay=1):
        """Sliver in g/m behind a drafting zone that corrects what it measured some steps ago.

        band: relative deviation up to which nothing is corrected; limit: of the correction.
        """
        x, aim, k = sliver.numpy(), target.item(), gain.item()
        n = len(x)
        c, out, off, free = np.zeros(n + 1), np.zeros(n), np.zeros(n), np.zeros(n, bool)
        for i in range(n):
            out[i] = x[i] / (1 + c[i])
            if i >= delay:
                e = out[i - delay] / aim - 1
                off[i] = np.sign(e) * max(abs(e) - band, 0.0)
            wanted = c[i] + k * off[i]
            free[i] = abs(wanted) < limit
            c[i + 1] = min(max(wanted, -limit), limit)
        ctx.save_for_backward(c=c, out=out, off=off, free=free, aim=aim, gain=k, delay=delay)
        return pb.asarray(out.copy())

    @autoleveller.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        to_out, by_sliver = g.numpy().copy(), np.zeros(len(s.out))
        to_c = by_aim = by_gain = 0.0
        for i in reversed(range(len(s.out))):
            to_c *= s.free[i]
            by_gain += to_c * s.off[i]
            if s.off[i] != 0:
                j = i - s.delay
                to_out[j] += to_c * s.gain / s.aim
                by_aim -= to_c * s.gain * s.out[j] / s.aim**2
            by_sliver[i] = to_out[i] / (1 + s.c[i])
            to_c -= by_sliver[i] * s.out[i]
        return {"sliver": pb.asarray(by_sliver), "target": by_aim, "gain": by_gain}

    return autoleveller


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(0.1, 2.5, (2, 3))),
            t(rng.uniform(0.02, 6, (3, 4))),
            t(rng.uniform(0.01, 0.08, 4)),
        ),
        {},
    )
)
def recipe_reflectance():
    @pb.autograd_function
    def recipe_reflectance(ctx, recipes, unit, substrate):
        """Reflectance of dyeings by Kubelka and Munk.

        recipes: (recipes, dyes) in % of the cloth's mass; unit: (dyes, wavelengths), K/S for 1 %;
        substrate: (wavelengths,), K/S of the undyed cloth, positive.
        """
        ctx.save_for_backward(recipes=recipes, unit=unit, substrate=substrate)
        ks = recipes @ unit + substrate
        return 1 / (1 + ks + (ks * (ks + 2)).sqrt())

    @recipe_reflectance.backward
    def _(ctx, grad_output):
        s = ctx.saved_variables
        ks = s.recipes @ s.unit + s.substrate
        root = (ks * (ks + 2)).sqrt()
        by_ks = -grad_output / (root * (1 + ks + root))
        return {
            "recipes": by_ks @ s.unit.t(),
            "unit": s.recipes.t() @ by_ks,
            "substrate": by_ks.sum(dim=0),
        }

    return recipe_reflectance


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(180, 230, 5)),
            t(np.array([28.5, 4.2, 81.0, 31.0]) * rng.uniform(0.9, 1.1, (5, 4))),
        ),
        {"kinds": ("mean", "harmonic", "mean", "spread")},
    )
)
def bale_mix():
    @pb.autograd_function
    def bale_mix(ctx, mass, values, kinds):
        m, V = mass.numpy(), values.numpy()
        share = m / m.sum()
        out = np.empty(V.shape[1])
        by_share, by_values = np.zeros_like(V), np.zeros_like(V)
        for j, kind in enumerate(kinds):
            v = V[:, j]
            if kind == "harmonic":  # micronaire: a length over a mass
                out[j] = 1 / (share @ (1 / v))
                by_share[:, j] = -(out[j] ** 2) / v
                by_values[:, j] = share * (out[j] / v) ** 2
            elif kind == "spread":  # variance between the bales
                apart = v - share @ v
                out[j] = share @ apart**2
                by_share[:, j], by_values[:, j] = apart**2, 2 * share * apart
            else:
                out[j], by_share[:, j], by_values[:, j] = share @ v, v, share
        ctx.save_for_backward(share=share, total=m.sum(), by_share=by_share, by_values=by_values)
        return pb.asarray(out)

    @bale_mix.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        to_share = s.by_share @ g.numpy()
        return {
            "mass": pb.asarray((to_share - s.share @ to_share) / s.total),
            "values": pb.asarray(g.numpy() * s.by_values),
        }

    return bale_mix
