"""Dosimetry: films, chambers, counters, badges, internal doses, plans, brachytherapy, effects."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import FACTOR, MISSING, Book, at, mends, t

BOOK = Book("dosimetry")


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(18e3, 39e3, (2, 4))),
            t(np.array(42e3)),
            t(np.array([780.0, 3200.0])),
        ),
        {"exponent": 2.5},
    ),
    "the density is a logarithm to base 10: its gradient lacks the factor 1 / ln 10",
    FACTOR,
    r"log10|\bbase\b|\bln ?\(?10|2\.302|0\.434|natural log",
    mends("np.log(10)", "LN10", "/ 2.302", "0.434"),
)
def film_dose():
    @pb.autograd_function
    def film_dose(ctx, pixels, blank, fit, exponent=2.5):
        """Dose in cGy from the scan of a film.

        pixels: any shape, 16 bit values of the exposed film; blank: a number, that of unexposed
        film; fit: (2,), the factors of the net optical density and of its power.
        """
        x, x0, (a, b) = pixels.numpy(), blank.item(), fit.numpy()
        if (x <= 0).any() or x0 < x.max():
            raise ValueError("pixels lie between 0 and the blank film's")
        net = np.log10(x0 / x)
        ctx.save_for_backward(x=x, x0=x0, a=a, b=b, net=net, n=exponent)
        return pb.asarray(a * net + b * net**exponent)

    @film_dose.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_net = gn * (s.a + s.b * s.n * s.net ** (s.n - 1))
        return {
            "pixels": pb.asarray(-by_net / s.x),
            "blank": by_net.sum() / s.x0,
            "fit": pb.asarray(np.array([(gn * s.net).sum(), (gn * s.net**s.n).sum()])),
        }

    return film_dose


def schedule(rng, days):
    return (
        t(np.array([2.0, 2.75, 3.1]) * rng.uniform(0.95, 1.05, 3)),
        t(np.array(days) + rng.random(3)),
        t(np.array(10.0)),
    ), {"fractions": np.array([35, 20, 16])}


@BOOK.wrong(
    lambda rng: schedule(rng, [46.0, 37.0, 31.0]),
    "a day more costs dose even before repopulation has begun, where it should cost nothing",
    r"repopulat|\bshort\b|kick.?off|\bonset\b|\bearl(?:y|ier)\b|\bbefore\b|\bclip|\bclamp|maximum",
    r"(should|must|ought to)( be)? (0|zero)\b|\bbranch\b|piecewise|\bkink|\bzero(?:ed)?\b|plateau",
    at("begins"),
    mends("> s.begins", "s.late", "> ctx.begins", "> begins", ">= s.begins", "< s.begins"),
    where="a course ends before repopulation begins",
    shows=lambda rng: schedule(rng, [46.0, 24.0, 11.0]),
)
def effective_dose_with_time():
    @pb.autograd_function
    def effective_dose_with_time(ctx, dose, days, ratio, fractions, begins=28.0, daily=0.6):
        """Biologically effective dose in Gy; dose per fraction, ratio: alpha over beta in Gy."""
        d, ab = dose.numpy(), ratio.item()
        lost = daily * np.maximum(days.numpy() - begins, 0.0)
        ctx.save_for_backward(d=d, ab=ab, n=fractions, daily=daily)
        return pb.asarray(fractions * d * (1 + d / ab) - lost)

    @effective_dose_with_time.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        return {
            "dose": pb.asarray(gn * s.n * (1 + 2 * s.d / s.ab)),
            "days": pb.asarray(-gn * s.daily),
            "ratio": -(gn * s.n * s.d**2).sum() / s.ab**2,
        }

    return effective_dose_with_time


def histogram(rng):
    return t(rng.uniform(12, 68, 7)), t(rng.uniform(2, 20, 7))


@BOOK.wrong(
    lambda rng: (histogram(rng), {"a": 4.0}),
    "relative: the volumes' sum, by which each is divided, is taken for a constant",
    at("relative"),
    r"\bnormali[sz]|\bquotient|\btotal\b|\bsum of (?:the )?volumes|\bdivi(?:ded|sor|sion)|constant",
    MISSING,
    mends("- 1 / s.total", "- 1 / total", "(s.powers / s.mean - 1)", "s.powers - s.mean", "- 1.0"),
    where="relative is on",
    shows=lambda rng: (histogram(rng), {"a": 4.0, "relative": True}),
)
def equivalent_uniform_dose():
    @pb.autograd_function
    def equivalent_uniform_dose(ctx, dose, volume, a=1.0, relative=False):
        """Niemierko's dose of a histogram; relative: volumes in cm3, not in parts of the organ."""
        d, v = dose.numpy(), volume.numpy()
        total = v.sum() if relative else 1.0
        powers = d**a
        mean = v @ powers / total
        ctx.save_for_backward(d=d, v=v, a=a, total=total, powers=powers, mean=mean)
        return pb.asarray(np.asarray(mean ** (1 / a)))

    @equivalent_uniform_dose.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_mean = g.item() * s.mean ** (1 / s.a - 1) / (s.a * s.total)
        return {
            "dose": pb.asarray(by_mean * s.a * s.v * s.d ** (s.a - 1)),
            "volume": pb.asarray(by_mean * s.powers),
        }

    return equivalent_uniform_dose


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(40, 400, 3)),
            t(rng.uniform(5, 25, 3)),
            t(np.array(0.11)),
            t(np.array([1.2, 0.4, 2.5])),
        ),
        {},
    ),
    "build-up rises with the coefficient, too: that part of its gradient is missing",
    MISSING,
    r"build.?up|\battenuation (?:only|alone)|scatter|through (?:the )?`?B\b|\bproduct rule|second",
    mends("s.slope / s.build", "s.slope * s.x / s.build", "s.x * s.slope", "s.slope * s.x"),
)
def shielded_rate():
    # GAMMA in uSv m2 / (h GBq), for Cs-137
    GAMMA = 92.0

    def forward(ctx, activity, thickness, mu, distance, slope=1.1):
        A, x, m, r = activity.numpy(), thickness.numpy(), mu.item(), distance.numpy()
        build = 1 + slope * m * x
        rate = GAMMA * A * build * np.exp(-m * x) / r**2
        ctx.save_for_backward(A=A, x=x, m=m, r=r, slope=slope, build=build, rate=rate)
        return pb.asarray(rate.copy())

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        flow = g.numpy() * s.rate
        return {
            "activity": pb.asarray(flow / s.A),
            "thickness": pb.asarray(flow * s.m * (s.slope / s.build - 1)),
            "mu": -(flow * s.x).sum(),
            "distance": pb.asarray(-2 * flow / s.r),
        }

    return pb.autograd_function(forward, backward, name="shielded_rate")


@BOOK.right(
    lambda rng: (
        (t(np.array(5e4)), t(np.array(1.08)), t(np.array(27.0))),
        {"temperature": np.linspace(350.0, 520.0, 18), "heating": 4.0},
    )
)
def glow_curve():
    BOLTZMANN = 8.617e-5

    @pb.autograd_function
    def glow_curve(ctx, filled, depth, log_frequency, temperature, heating=5.0):
        """Light of a thermoluminescent crystal by step of a linear heating, first order kinetics.

        filled: traps at the start; depth: of a trap in eV; log_frequency: ln of the escape
        frequency in 1/s. temperature: (n,) rising, K; heating: K/s. Returns (n - 1,) counts.
        """
        n, E = filled.item(), depth.item()
        middle = 0.5 * (temperature[1:] + temperature[:-1])
        span = np.diff(temperature) / heating
        escaped = span * np.exp(log_frequency.item() - E / (BOLTZMANN * middle))
        before = np.concatenate([[0.0], np.cumsum(escaped)])
        left = np.exp(-before)
        ctx.save_for_backward(n=n, middle=middle, escaped=escaped, left=left)
        # expm1: early steps give next to nothing, a difference of two near-equal numbers
        ctx.part = -left[:-1] * np.expm1(-escaped)
        return pb.asarray(n * ctx.part)

    @glow_curve.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        later = np.cumsum((gn * ctx.part)[::-1])[::-1] - gn * ctx.part
        by_escaped = s.n * (gn * s.left[1:] - later)
        flow = by_escaped * s.escaped
        return {
            "filled": gn @ ctx.part,
            "depth": -(flow / (BOLTZMANN * s.middle)).sum(),
            "log_frequency": flow.sum(),
        }

    return glow_curve


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(20, 900, 4)), t(np.array([3.0, 60.0, 900.0, 24.0]) + rng.random(4))),
        {"physical": np.array([6.01, 192.5, np.inf, 1.83]), "hours": 8.0},
    )
)
def cumulated_activity():
    @pb.autograd_function
    def cumulated_activity(ctx, activity, biological, physical, hours=None):
        """Decays in MBq h up to some hours (None: until all has gone); half-lives in hours."""
        half = biological.numpy()
        rate = np.log(2) * (1 / half + 1 / physical)
        if hours is None:
            mean, by_rate = 1 / rate, -1 / rate**2
        else:
            u = rate * hours
            mean = -np.expm1(-u) / rate
            small = u < 1e-3
            safe = np.where(small, 1.0, u)
            exact = ((1 + safe) * np.exp(-safe) - 1) / safe**2
            by_rate = hours**2 * np.where(small, -0.5 + u / 3 - u**2 / 8, exact)
        ctx.save_for_backward(activity=activity, half=half, mean=mean, by_rate=by_rate)
        return pb.asarray(activity.numpy() * mean)

    @cumulated_activity.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_half = s.by_rate * -np.log(2) / s.half**2
        return {
            "activity": pb.asarray(gn * s.mean),
            "biological": pb.asarray(gn * s.activity.numpy() * by_half),
        }

    return cumulated_activity


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(0.1, 4, 6)),
            t(np.array([0.025, 0.4, 1.6, 14.0, 49.0, 120.0]) * rng.uniform(0.9, 1.01, 6)),
        ),
        {},
    )
)
def neutron_equivalent_dose():
    # ICRP 103: from, base, height, centre of the logarithm
    PIECES = np.array([[0.0, 2.5, 18.2, 1.0], [1.0, 5.0, 17.0, 2.0], [50.0, 2.5, 3.25, 0.04]])

    @pb.autograd_function
    def neutron_equivalent_dose(ctx, dose, energy):
        E = energy.numpy()
        if (E <= 0).any():
            raise ValueError("energies must be positive")
        piece = (E >= 1.0).astype(int) + (E > 50.0)
        _, base, height, stretch = np.moveaxis(PIECES[piece], -1, 0)
        log = np.log(stretch * E)
        bell = height * np.exp(-(log**2) / 6)
        ctx.weight, ctx.steep, ctx.dose = base + bell, -bell * log / (3 * E), dose
        return pb.asarray(dose.numpy() * ctx.weight)

    @neutron_equivalent_dose.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        return pb.asarray(gn * ctx.weight), pb.asarray(gn * ctx.steep * ctx.dose.numpy())

    return neutron_equivalent_dose


ORGANS = ("liver", "kidneys", "spleen", "marrow")
S_VALUES = np.array(
    [
        [32.0, 1.1, 0.3, 0.45],
        [1.1, 150.0, 2.4, 0.6],
        [0.3, 2.4, 280.0, 0.5],
        [0.45, 0.6, 0.5, 26.0],
    ]
)
TISSUE = {"liver": 0.04, "marrow": 0.12}


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 9, 3)), t(np.array([1.7, 0.14, 1.3]) * rng.uniform(0.9, 1.1, 3))),
        {"sources": ["kidneys", "liver", "spleen"], "targets": ["liver", "spleen", "marrow"]},
    )
)
def organ_doses():
    REFERENCE = {"liver": 1.8, "kidneys": 0.31, "spleen": 0.15, "marrow": 1.17}

    @pb.autograd_function
    def organ_doses(ctx, decays, mass, sources, targets, weighted=False):
        """Doses of target organs from the decays in source organs, by S values.

        decays: (sources,) in GBq h; mass: (targets,) in kg. An organ's dose to itself goes with
        the inverse of its mass, the other S values are the reference person's.
        weighted: sum the doses, times the tissues' weights.
        """
        rows = [ORGANS.index(name) for name in targets]
        columns = [ORGANS.index(name) for name in sources]
        S = S_VALUES[np.ix_(rows, columns)]
        itself = np.equal.outer(rows, columns)
        ratio = np.array([REFERENCE[name] for name in targets]) / mass.numpy()
        S = np.where(itself, S * ratio[:, None], S)
        weight = np.array([TISSUE.get(name, 0.01) for name in targets]) if weighted else None
        ctx.save_for_backward(S=S, own=(S * itself) @ decays.numpy(), mass=mass, weight=weight)
        dose = S @ decays.numpy()
        return pb.asarray(dose if weight is None else np.asarray(weight @ dose))

    @organ_doses.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_dose = g.numpy() if s.weight is None else g.item() * s.weight
        return {
            "decays": pb.asarray(by_dose @ s.S),
            "mass": pb.asarray(-by_dose * s.own / s.mass.numpy()),
        }

    return organ_doses


@BOOK.right(
    lambda rng: (
        (
            t(np.append(0.4, rng.uniform(5, 70, 6))),
            t(np.array(45.0)),
            t(np.array(0.17)),
            t(np.array(0.4)),
        ),
        {"volume": np.array([12.0, 30.0, 25.0, 14.0, 9.0, 6.0, 4.0])},
    )
)
def complication_probability():
    def forward(ctx, dose, td50, m, n, volume):
        """Lyman's model; n is 1 for a parallel organ and goes to 0 for a serial one."""
        d, mid, width, n = dose.numpy(), td50.item(), m.item(), n.item()
        top = d.max()
        if not (0 < n <= 1 and mid > 0 and width > 0 and top > 0 and d.min() >= 0):
            raise ValueError("complication_probability: parameters out of range")
        v, x = volume / volume.sum(), d / top
        powers = x ** (1 / n)
        share = v @ powers
        uniform = top * share**n
        z = (uniform - mid) / (width * mid)
        ctx.save_for_backward(x=x, v=v, n=n, powers=powers, share=share, uniform=uniform)
        ctx.fit, ctx.top = (mid, width, z), top
        return pb.asarray(np.asarray(special.ndtr(z)))

    @pb.once_differentiable
    def backward(ctx, g):
        s, (mid, width, z) = ctx.saved_variables, ctx.fit
        by_z = g.item() * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        by_uniform = by_z / (width * mid)
        by_dose = s.v * s.x ** (1 / s.n - 1) / s.share * s.uniform / ctx.top
        logs = np.log(np.where(s.x > 0, s.x, 1.0))
        mean_log = s.v * s.powers @ logs / s.share
        return {
            "dose": pb.asarray(by_uniform * by_dose),
            "td50": -by_z * s.uniform / (width * mid**2),
            "m": -by_z * z / width,
            "n": by_uniform * s.uniform * (np.log(s.share) - mean_log / s.n),
        }

    return pb.autograd_function(forward, backward, name="complication_probability")


def profiles(rng):
    place = np.linspace(-30.0, 30.0, 13)
    beam = 200 * special.ndtr((18 - np.abs(place)) / 4) + 5
    return t(beam * rng.uniform(0.96, 1.04, 13)), t(beam * rng.uniform(0.99, 1.01, 13))


@BOOK.right(
    lambda rng: (profiles(rng), {"place": np.linspace(-30.0, 30.0, 13), "criteria": (2.0, 3.0)})
)
def gamma_index():
    @pb.autograd_function
    def gamma_index(ctx, measured, planned, place, criteria=(3.0, 2.0), local=False, cap=2.0):
        """Gamma of a measured profile; criteria in % (of the plan's maximum, or local) and mm.

        Values above the cap are set to it.
        """
        m, p = measured.numpy(), planned.numpy()
        percent, mm = criteria
        allowed = percent / 100 * (p if local else np.full(p.shape, p.max()))
        off = (m[:, None] - p) / allowed
        squares = off**2 + ((place[:, None] - place) / mm) ** 2
        match = squares.argmin(axis=1)
        rows = np.arange(len(m))
        gamma = np.sqrt(squares[rows, match])
        counts = (gamma > 0) & (gamma < cap)
        ctx.save_for_backward(match=match, off=off[rows, match], allowed=allowed[match])
        ctx.gamma, ctx.counts, ctx.n = np.where(counts, gamma, 1.0), counts, len(p)
        ctx.fraction, ctx.peak = percent / 100, None if local else p.argmax()
        return pb.asarray(np.minimum(gamma, cap))

    @gamma_index.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_off = g.numpy() * ctx.counts * s.off / ctx.gamma
        by_allowed = -by_off * s.off / s.allowed * ctx.fraction
        planned = np.bincount(s.match, -by_off / s.allowed, minlength=ctx.n)
        if ctx.peak is None:
            planned += np.bincount(s.match, by_allowed, minlength=ctx.n)
        else:
            planned[ctx.peak] += by_allowed.sum()
        return {"measured": pb.asarray(by_off / s.allowed), "planned": pb.asarray(planned)}

    return gamma_index


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(2, 9, 5)),
            t(np.array(0.25)),
            t(np.array(0.028)),
            t(np.array(0.46)),
        ),
        {"hours": np.array([0.0, 0.01, 0.25, 6.0, 48.0])},
    )
)
def protracted_survival():
    @pb.autograd_function
    def protracted_survival(ctx, dose, alpha, beta, repair, hours):
        """Cells that survive doses given at a steady rate over some hours (Lea and Catcheside)."""
        D, u = dose.numpy(), repair.item() * hours
        if (D < 0).any() or repair.item() <= 0:
            raise ValueError("doses must not be negative, and repair must be positive")
        small = u < 1e-2
        w = np.where(small, 1.0, u)
        G = np.where(small, 1 - u / 3 + u**2 / 12 - u**3 / 60, 2 * (np.expm1(-w) + w) / w**2)
        long = -2 * np.expm1(-w) / w**2 - 4 * (np.expm1(-w) + w) / w**3
        steep = hours * np.where(small, -1 / 3 + u / 6 - u**2 / 20 + u**3 / 90, long)
        ctx.a, ctx.b = alpha.item(), beta.item()
        survival = np.exp(-ctx.a * D - ctx.b * G * D**2)
        ctx.save_for_backward(D=D, G=G, steep=steep, survival=survival)
        return pb.asarray(survival.copy())

    @protracted_survival.backward
    @pb.once_differentiable
    def _(ctx, g):
        D, G, steep, survival = ctx.saved_variables
        flow = -g.numpy() * survival
        return {
            "dose": pb.asarray(flow * (ctx.a + 2 * ctx.b * G * D)),
            "alpha": flow @ D,
            "beta": flow @ (G * D**2),
            "repair": ctx.b * flow @ (steep * D**2),
        }

    return protracted_survival


@BOOK.right(
    lambda rng: (
        (t(rng.permutation(np.array([61.0, 58.5, 63.2, 47.0, 60.1, 59.4, 52.8, 64.9]))),),
        {"percents": (2, 50, 95, 99), "volume": rng.uniform(0.5, 3, 8)},
    )
)
def dose_at_volumes():
    @pb.autograd_function
    def dose_at_volumes(ctx, dose, percents, volume=None):
        """Dose that each percentage of the organ gets at least; between voxels, straight lines."""
        order = np.argsort(-dose.numpy(), kind="stable")
        hottest = dose.numpy()[order]
        v = np.ones(len(hottest)) if volume is None else volume[order]
        covered = 100 * (np.cumsum(v) - v / 2) / v.sum()
        x = np.clip(np.array(percents, float), covered[0], covered[-1])
        k = np.clip(np.searchsorted(covered, x) - 1, 0, max(len(v) - 2, 0))
        after = np.minimum(k + 1, len(v) - 1)
        gap = np.where(after > k, covered[after] - covered[k], 1.0)
        part = (x - covered[k]) / gap
        ctx.save_for_backward(order[k], order[after], part, len(v))
        return pb.asarray((1 - part) * hottest[k] + part * hottest[after])

    @dose_at_volumes.backward
    @pb.once_differentiable
    def _(ctx, g):
        here, after, part, n = ctx.saved_variables
        out = np.zeros(n)
        np.add.at(out, here, g.numpy() * (1 - part))
        np.add.at(out, after, g.numpy() * part)
        return {"dose": pb.asarray(out)}

    return dose_at_volumes


@BOOK.right(
    lambda rng: (
        (t(np.array([120.0, 4e3, 2.2e4, 6.1e4]) * rng.uniform(0.9, 1, 4)), t(np.array(4.2))),
        {"model": "paralysable"},
    )
)
def true_rate():
    @pb.autograd_function
    def true_rate(ctx, observed, dead, model="non-paralysable"):
        """Counts per second without the losses of a dead time in microseconds."""
        m, tau = observed.numpy(), dead.item() * 1e-6
        if model == "non-paralysable":
            if (m * tau >= 1).any():
                raise ValueError("more counts than the dead time allows")
            n = m / (1 - m * tau)
            by_observed, by_tau = 1 / (1 - m * tau) ** 2, n**2
        elif model == "paralysable":
            if (m * tau * np.e >= 1).any():
                raise ValueError("more counts than the dead time allows")
            busy = -special.lambertw(-m * tau).real
            n = m * np.exp(busy)
            by_observed, by_tau = np.exp(busy) / (1 - busy), n**2 / (1 - busy)
        else:
            raise ValueError(f"unknown model {model!r}")
        ctx.slopes = by_observed, by_tau
        return pb.asarray(n)

    @true_rate.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_observed, by_tau = ctx.slopes
        return pb.asarray(g.numpy() * by_observed), 1e-6 * (g.numpy() * by_tau).sum(), None

    return true_rate


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(18, 22, 4)),
            t(rng.uniform(17.6, 17.9, 4)),
            t(np.array(21.4)),
            t(np.array(99.2)),
        ),
        {"voltages": (300, 100)},
    )
)
def chamber_dose():
    # pulsed beams, by the ratio of the voltages (TRS-398)
    PULSED = {2.0: (2.337, -3.636, 2.299), 3.0: (1.198, -0.875, 0.677), 4.0: (1.022, -0.363, 0.341)}

    @pb.autograd_function
    def chamber_dose(ctx, charge, reduced, temperature, pressure, voltages, beam="pulsed", Nw=5.4):
        M, M2 = charge.numpy(), reduced.numpy()
        T, P = temperature.item(), pressure.item()
        r, ratio = M / M2, voltages[0] / voltages[1]
        if beam == "pulsed":
            a0, a1, a2 = PULSED[ratio]
            ks, by_r = a0 + r * (a1 + r * a2), a1 + 2 * a2 * r
        else:
            ks = (ratio**2 - 1) / (ratio**2 - r)
            by_r = ks / (ratio**2 - r)
        air = (273.15 + T) / 293.15 * 101.325 / P
        ctx.save_for_backward(M=M, M2=M2, r=r, ks=ks, by_r=by_r)
        ctx.T, ctx.P, ctx.air = T, P, Nw * air
        return pb.asarray(ctx.air * ks * M)

    @chamber_dose.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy() * ctx.air
        dose = gn @ (s.ks * s.M)
        return {
            "charge": pb.asarray(gn * (s.ks + s.by_r * s.r)),
            "reduced": pb.asarray(-gn * s.by_r * s.r**2),
            "temperature": dose / (273.15 + ctx.T),
            "pressure": -dose / ctx.P,
        }

    return chamber_dose


@BOOK.right(
    lambda rng: (
        (
            t(np.array(9.7)),
            t(np.array([1.5, -0.3, 0.02, 4.0]) + 0.01 * rng.random(4)),
            t(np.array([0.4, 1.0, 2.5, 0.0])),
        ),
        {},
    )
)
def line_source_rate():
    RADIAL = np.array([1.001, 0.0052, -0.0061, 0.0003])

    @pb.autograd_function
    def line_source_rate(ctx, strength, along, away, length=0.36, constant=1.11):
        """Dose rate in cGy/h round a line source, without anisotropy (TG-43).

        strength: a number in U; along and away: (n,) in cm, along the axis and away from it.
        Points lie outside the sphere on which the ends of the source are.
        """
        z, p, L = along.numpy(), away.numpy(), length
        M, N = p**2 + z**2 - L**2 / 4, L * p
        if (M <= 0).any():
            raise ValueError("points must lie outside the source")
        near = np.abs(N) < 1e-3 * M
        wide = np.where(near, 1.0, N)
        by_M = np.where(near, -1 / M**2 + N**2 / M**4, -1 / (N**2 + M**2))
        far = M / (wide * (wide**2 + M**2)) - np.arctan2(wide, M) / wide**2
        by_N = np.where(near, -2 * N / (3 * M**3), far)
        G = np.where(near, 1 / M - N**2 / (3 * M**3), np.arctan2(wide, M) / wide)
        r = np.hypot(z, p)
        g, by_r = np.polyval(RADIAL[::-1], r), np.polyval(np.polyder(RADIAL[::-1]), r)
        scale = constant * L / (2 * np.arctan(L / 2))
        ctx.strength, ctx.shape = strength.item(), scale * G * g
        ctx.by_along = scale * z * (2 * g * by_M + G * by_r / r)
        ctx.by_away = scale * (p * (2 * g * by_M + G * by_r / r) + L * g * by_N)
        return pb.asarray(ctx.strength * ctx.shape)

    @line_source_rate.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        return {
            "strength": gn @ ctx.shape,
            "along": pb.asarray(gn * ctx.strength * ctx.by_along),
            "away": pb.asarray(gn * ctx.strength * ctx.by_away),
        }

    return line_source_rate


@BOOK.right(
    lambda rng: (
        (
            t(np.array([[0.21, 0.95, 0.12], [0.16, 0.13, 3.4]]) + 0.01 * rng.random((2, 3))),
            t(np.array(0.0022)),
        ),
        {"days": [28, 35, 28]},
    )
)
def recorded_dose():
    @pb.autograd_function
    def recorded_dose(ctx, reading, background, days, least=0.1):
        """Doses of badge holders (rows) over their wearing periods; what is below least is 0."""
        worn = np.asarray(days, float)
        net = reading - background * pb.asarray(worn)
        counts = net.detach().numpy() >= least
        ctx.counts, ctx.worn = pb.asarray(counts.astype(float)), pb.asarray(worn)
        return (net * ctx.counts).sum(dim=1)

    @recorded_dose.backward
    def _(ctx, grad_output):
        by_net = grad_output.unsqueeze(1) * ctx.counts
        return {"reading": by_net, "background": -(by_net * ctx.worn).sum()}

    return recorded_dose
