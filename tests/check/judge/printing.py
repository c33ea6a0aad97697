"""Printing: ink mixing, dot gain, density, separations, registration, webs, drying, screens."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import AXIS, MISSING, REVERSED, SIGN, SUMMED, Book, at, mends, t

BOOK = Book("printing")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.1, 0.9, (4, 3))), t(rng.uniform(0.05, 0.9, (8, 3)))), {}),
    "primaries without an ink lose area as its coverage grows: their terms have the wrong sign",
    SIGN,
    mends(
        "np.where(has, 1.0, -1.0)",
        "2 * has - 1",
        "-1.0",
        "else -",
        "np.where(has, others, -others)",
    ),
)
def neugebauer_reflectance():
    @pb.autograd_function
    def neugebauer_reflectance(ctx, coverage, primaries):
        """Reflectances of halftones: (patches, bands); primaries: (8, bands), white first."""
        c, R = coverage.numpy(), primaries.numpy()
        has = (np.arange(8)[:, None] >> np.arange(3)) & 1
        parts = np.where(has, c[:, None], 1 - c[:, None])
        ctx.save_for_backward(parts=parts, R=R, has=has)
        return pb.asarray(parts.prod(axis=-1) @ R)

    @neugebauer_reflectance.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        parts, R, _ = ctx.saved_variables
        gn = grad_output.numpy()
        by_area = gn @ R.T
        by_coverage = np.empty((len(gn), 3))
        for ink in range(3):
            others = np.delete(parts, ink, axis=-1).prod(axis=-1)
            by_coverage[:, ink] = (by_area * others).sum(axis=1)
        return {
            "coverage": pb.asarray(by_coverage),
            "primaries": pb.asarray(parts.prod(axis=-1).T @ gn),
        }

    return neugebauer_reflectance


def halftone(rng):
    return t(rng.uniform(0.1, 0.9, 5)), t(np.array(0.86)), t(np.array(0.07))


@BOOK.wrong(
    lambda rng: (halftone(rng), {}),
    "the paper and the solid get gradients without the powers that n puts on them",
    at("n"),
    r"\bpowers?\b|exponent|chain rule|(?:paper|solid).{0,40}linear|Murray",
    mends("** (1 / n - 1)", "** (1 / ctx.n - 1)", "** (1 / s.n - 1)"),
    where="n is not 1",
    shows=lambda rng: (halftone(rng), {"n": 1.8}),
)
def yule_nielsen():
    @pb.autograd_function
    def yule_nielsen(ctx, area, paper, solid, n=1.0):
        """Reflectance of a halftone whose light spreads in the paper (n = 1: not at all)."""
        a, P, S = area.numpy(), paper.item(), solid.item()
        root = (1 - a) * P ** (1 / n) + a * S ** (1 / n)
        ctx.save_for_backward(a=a, P=P, S=S, root=root)
        ctx.n = n
        return pb.asarray(root**n)

    @yule_nielsen.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        a, P, S, root = ctx.saved_variables
        outer = grad_output.numpy() * ctx.n * root ** (ctx.n - 1)
        by_area = outer * (S ** (1 / ctx.n) - P ** (1 / ctx.n))
        inner = outer / ctx.n
        return {
            "area": pb.asarray(by_area),
            "paper": (inner * (1 - a)).sum(),
            "solid": (inner * a).sum(),
        }

    return yule_nielsen


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.05, 0.6, (2, 4))), t(np.array([0.12, 0.2]))), {}),
    "dots that have grown together are solid and stay so, but backward goes on as if they grew",
    r"\bclip|\bclamp|saturat|\bsolid\b|full (?:tone|area)|np\.minimum|\blimit",
    r"should be (?:zero|0)|must be (?:zero|0)|expected (?:zero|0)\b|\bbranch|reach(?:es)? 1",
    mends("s.open", "ctx.open", "< 1", "<= 1", "np.where(s.", "np.where(ctx."),
    where="the printed tone reaches 1",
    shows=lambda rng: (
        (t(np.array([[0.3, 0.93, 0.95, 0.5], [0.2, 0.94, 0.7, 0.96]])), t(np.array([0.6, 0.7]))),
        {},
    ),
)
def printed_tone():
    class PrintedTone(pb.Function):
        """Tone in print, by dot gain: (inks,) at the middle of the scale; tone: (inks, steps)."""

        @staticmethod
        def forward(ctx, tone, gain):
            a, d = tone.numpy(), gain.numpy()[:, None]
            if ((a < 0) | (a > 1)).any():
                raise ValueError("tones lie between 0 and 1")
            printed = np.minimum(a + 4 * d * a * (1 - a), 1.0)
            ctx.save_for_backward(a=a, d=d)
            return pb.asarray(printed)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            a, d = ctx.saved_variables
            gn = grad_output.numpy()
            by_tone = gn * (1 + 4 * d * (1 - 2 * a))
            by_gain = (gn * 4 * a * (1 - a)).sum(axis=1)
            return pb.asarray(by_tone), pb.asarray(by_gain)

    return PrintedTone.apply


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(0.4, 2.0, (4, 4))), t(rng.uniform(1.4, 2.0, 4)), t(np.array(0.9))),
        {},
    ),
    "the gradient of the limits is summed over the last axis, the zones, and not over the sheets",
    AXIS + r"|\brows?\b|\bcolumns?\b|over (?:the )?(?:sheets|zones)",
    SUMMED,
    r"transpos",
    mends(".sum(axis=0)", "sum(0)", "np.sum(gn * s.filled, axis=0)"),
)
def film_density():
    def forward(ctx, film, limit, smooth):
        """Density of ink films in um: (sheets, zones), by Tollenaar; limit: (zones,)."""
        w, m = film.numpy(), smooth.item()
        left = np.exp(-m * w)
        ctx.save_for_backward(w=w, m=m, left=left, top=limit.numpy())
        return pb.asarray(limit.numpy() * (1 - left))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        w, m, left, top = ctx.saved_variables
        gn = grad_output.numpy()
        flow = gn * top * left
        return {
            "film": pb.asarray(flow * m),
            "limit": pb.asarray((gn * (1 - left)).sum(axis=1)),
            "smooth": (flow * w).sum(),
        }

    return pb.autograd_function(forward, backward, name="film_density")


@BOOK.wrong(
    lambda rng: ((t(rng.random(9)), t(np.array([0.2, 0.6, 0.2]))), {}),
    "the gradient of the plate is blurred with the kernel itself and not with it reversed",
    REVERSED,
    r"\[::-1\]|correlat|convol|symmetr|adjoint|transpos",
    where="the smear is not symmetric",
    shows=lambda rng: ((t(rng.random(9)), t(np.array([0.1, 0.5, 0.4]))), {}),
)
def smeared_line():
    @pb.autograd_function
    def smeared_line(ctx, plate, smear):
        """Ink along a line that slurs; smear: an odd number of weights, the middle one in place."""
        p, w = plate.numpy(), smear.numpy()
        if len(w) % 2 == 0:
            raise ValueError("smear must have a middle")
        ctx.save_for_backward(p=p, w=w)
        return pb.asarray(np.convolve(p, w, mode="same"))

    @smeared_line.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        p, w = ctx.saved_variables
        gn, half = grad_output.numpy(), len(w) // 2
        padded = np.pad(p, half)
        by_smear = [padded[2 * half - k : 2 * half - k + len(p)] @ gn for k in range(len(w))]
        return {
            "plate": pb.asarray(np.convolve(gn, w, mode="same")),
            "smear": pb.asarray(np.array(by_smear)),
        }

    return smeared_line


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform([30, 5, 5], [80, 40, 40], (4, 3))), t(rng.uniform(10, 60, (4, 3)))),
        {},
    ),
    "the weights depend on the reference's chroma as well: that term of its gradient is missing",
    MISSING,
    r"weights? (?:depend|are|were|as)|\bSC\b|\bSH\b|treated as (?:a )?constant|product rule",
    r"chain rule|through (?:the )?(?:weights|chroma)|\bC1\b",
    mends("2 * 0.045", "2 * 0.015", "0.09 *", "0.03 *", "by_C1", "by_weight", "by_chroma", "by_SC"),
)
def colour_difference():
    @pb.autograd_function
    def colour_difference(ctx, reference, sample):
        """Squared CIE94 differences of Lab colours: (n, 3), with the reference's weights."""
        lab1, lab2 = reference.numpy(), sample.numpy()
        C1, C2 = np.hypot(*lab1[:, 1:].T), np.hypot(*lab2[:, 1:].T)
        dL, dC = lab1[:, 0] - lab2[:, 0], C1 - C2
        dH2 = ((lab1 - lab2)[:, 1:] ** 2).sum(axis=1) - dC**2
        SC, SH = 1 + 0.045 * C1, 1 + 0.015 * C1
        ctx.save_for_backward(lab1=lab1, lab2=lab2, C1=C1, C2=C2, SC=SC, SH=SH)
        return pb.asarray(dL**2 + (dC / SC) ** 2 + dH2 / SH**2)

    @colour_difference.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        lab1, lab2, C1, C2, SC, SH = ctx.saved_variables
        gn = grad_output.numpy()[:, None]
        apart = 2 * (lab1 - lab2)
        apart[:, 1:] /= (SH**2)[:, None]
        by_dC = (2 * (C1 - C2) * (1 / SC**2 - 1 / SH**2))[:, None]
        first, second = apart.copy(), -apart
        first[:, 1:] += by_dC * lab1[:, 1:] / C1[:, None]
        second[:, 1:] -= by_dC * lab2[:, 1:] / C2[:, None]
        return pb.asarray(gn * first), pb.asarray(gn * second)

    return colour_difference


@BOOK.right(
    lambda rng: (
        (
            t(rng.dirichlet(np.ones(3))),
            t(rng.uniform(0.05, 2, (3, 4))),
            t(rng.uniform(0.3, 1, (3, 4))),
        ),
        {},
    )
)
def kubelka_munk():
    @pb.autograd_function
    def kubelka_munk(ctx, amounts, absorption, scattering):
        """Reflectance by band of an opaque mix of inks."""
        c = amounts.numpy()
        K, S = c @ absorption.numpy(), c @ scattering.numpy()
        q = K / S
        R = 1 + q - np.sqrt(q**2 + 2 * q)
        ctx.save_for_backward(c=c, Ki=absorption.numpy(), Si=scattering.numpy(), S=S, q=q, R=R)
        return pb.asarray(R.copy())

    @kubelka_munk.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_q = g.numpy() * (1 - (1 + s.q) / np.sqrt(s.q**2 + 2 * s.q))
        by_K, by_S = by_q / s.S, -by_q * s.q / s.S
        return (
            pb.asarray(s.Ki @ by_K + s.Si @ by_S),
            pb.asarray(np.outer(s.c, by_K)),
            pb.asarray(np.outer(s.c, by_S)),
        )

    return kubelka_munk


@BOOK.right(
    lambda rng: (
        (t(np.array([[0.9, 0.7, 0.6], [0.2, 0.4, 0.3], [0.8, 0.85, 0.95]])),),
        {"start": 0.35, "amount": 0.8},
    )
)
def grey_replacement():
    class GreyReplacement(pb.Function):
        """Put black for the grey part of cyan, magenta and yellow: (n, 3); gives (n, 4)."""

        @staticmethod
        def forward(ctx, cmy, start=0.3, amount=1.0):
            ink = cmy.numpy()
            least = ink.argmin(axis=1)
            grey = ink[np.arange(len(ink)), least]
            black = amount * np.maximum(grey - start, 0) / (1 - start)
            ctx.least = least
            ctx.slope = np.where(grey > start, amount / (1 - start), 0.0)
            return pb.asarray(np.column_stack([ink - black[:, None], black]))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            gn = g.numpy()
            by_ink = gn[:, :3].copy()
            by_black = gn[:, 3] - by_ink.sum(axis=1)
            by_ink[np.arange(len(gn)), ctx.least] += by_black * ctx.slope
            return {"cmy": pb.asarray(by_ink)}

    return GreyReplacement.apply


@BOOK.right(lambda rng: ((t(rng.random((4, 4))), t(np.array(12.0))), {"period": 3}))
def soft_screen():
    def forward(ctx, image, hardness, period=4):
        """Halftone of an image by a round-dot screen with soft edges."""
        y, x = np.indices(image.shape) * (2 * np.pi / period)
        threshold = 0.5 + 0.25 * (np.cos(x) + np.cos(y))
        margin = image.numpy() - threshold
        ctx.h, ctx.margin = hardness.item(), margin
        ctx.dot = special.expit(ctx.h * margin)
        return pb.asarray(ctx.dot.copy())

    @pb.once_differentiable
    def backward(ctx, g):
        flow = g.numpy() * ctx.dot * (1 - ctx.dot)
        return {"image": pb.asarray(flow * ctx.h), "hardness": np.vdot(flow, ctx.margin)}

    return pb.autograd_function(forward, backward, name="soft_screen")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.99, 1.01, 6)), t(np.array(300.0)), t(np.array(0.002))),
        {"dt": 0.1, "spans": 3.0},
    )
)
def web_tension():
    @pb.autograd_function
    def web_tension(ctx, draw, stiffness, inflow, dt=0.05, spans=2.0, speed=10.0):
        """Tension of a web over time behind a roll whose draw changes; inflow: strain before."""
        rate, strain, strains = speed * dt / spans, inflow.item(), []
        for ratio in draw.numpy():
            strain = strain + rate * (inflow.item() + ratio - 1 - ratio * strain)
            strains.append(strain)
        ctx.save_for_backward(draw=draw.numpy(), strains=np.array([inflow.item(), *strains]))
        ctx.rate, ctx.stiffness = rate, stiffness.item()
        return pb.asarray(ctx.stiffness * np.array(strains))

    @web_tension.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_draw, by_inflow, back = np.zeros_like(gn), 0.0, 0.0
        for k in reversed(range(len(gn))):
            back += ctx.stiffness * gn[k]
            by_draw[k] = back * ctx.rate * (1 - s.strains[k])
            by_inflow += back * ctx.rate
            back *= 1 - ctx.rate * s.draw[k]
        return {
            "draw": pb.asarray(by_draw),
            "stiffness": gn @ s.strains[1:],
            "inflow": by_inflow + back,
        }

    return web_tension


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.1, 0.8, 5)), t(np.array(0.06)), t(np.array(1.5))),
        {},
    )
)
def dot_area():
    @pb.autograd_function
    def dot_area(ctx, density, paper, solid):
        """Dot areas from densities (Murray-Davies), kept between 0 and 1."""
        D, P, S = density.numpy(), paper.item(), solid.item()
        full = 1 - 10.0 ** (P - S)
        area = (1 - 10.0 ** (P - D)) / full
        ctx.inside = (area > 0) & (area < 1)
        ctx.save_for_backward(area=area, full=full, tone=10.0 ** (P - D), dark=10.0 ** (P - S))
        return pb.asarray(np.clip(area, 0, 1))

    @dot_area.backward
    @pb.once_differentiable
    def _(ctx, g):
        area, full, tone, dark = ctx.saved_variables
        flow = np.log(10) * g.numpy() * ctx.inside / full
        return {
            "density": pb.asarray(flow * tone),
            "paper": (flow * (area * dark - tone)).sum(),
            "solid": -(flow * area * dark).sum(),
        }

    return dot_area


@BOOK.right(
    lambda rng: (
        (t(np.array([[0.9, 0.8, 0.9, 0.7], [0.2, 0.5, 0.1, 0.0], [1.0, 0.6, 0.7, 0.9]])),),
        {"limit": 2.8},
    )
)
def limited_coverage():
    @pb.autograd_function
    def limited_coverage(ctx, cmyk, limit=3.0):
        """Scale cyan, magenta and yellow down where all four inks exceed a total."""
        ink = cmyk.numpy()
        colour, black = ink[:, :3].sum(axis=1), ink[:, 3]
        over = colour + black > limit
        scale = np.where(over, (limit - black) / np.where(over, colour, 1.0), 1.0)
        ctx.save_for_backward(ink=ink, colour=colour, scale=scale, over=over)
        return pb.asarray(np.column_stack([ink[:, :3] * scale[:, None], black]))

    @limited_coverage.backward
    @pb.once_differentiable
    def _(ctx, g):
        ink, colour, scale, over = ctx.saved_variables
        by_ink = g.numpy().copy()
        by_scale = (by_ink[:, :3] * ink[:, :3]).sum(axis=1)
        by_ink[:, :3] *= scale[:, None]
        by_scale = by_scale[over] / colour[over]
        by_ink[over, :3] -= (by_scale * scale[over])[:, None]
        by_ink[over, 3] -= by_scale
        return {"cmyk": pb.asarray(by_ink)}

    return limited_coverage


@BOOK.right(lambda rng: ((t(rng.uniform(0, 1, 6)), t(np.array(0.2))), {"coverage": rng.random(6)}))
def ink_key_films():
    @pb.autograd_function
    def ink_key_films(ctx, keys, spread, coverage):
        """Films behind ink keys whose ink the rollers spread to the keys beside them."""
        n, s = len(keys), spread.item()
        link = np.diag(np.ones(n - 1), 1)
        spreading = link + link.T - np.diag((link + link.T).sum(axis=1))
        A = np.eye(n) * (0.3 + coverage) - s * spreading
        film = np.linalg.solve(A, keys.numpy())
        ctx.save_for_backward(A=A, spreading=spreading, film=film)
        return pb.asarray(film.copy())

    @ink_key_films.backward
    @pb.once_differentiable
    def _(ctx, g):
        A, spreading, film = ctx.saved_variables
        adjoint = np.linalg.solve(A, g.numpy())  # A is symmetric
        return pb.asarray(adjoint), adjoint @ spreading @ film, None

    return ink_key_films


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(320, 360, 4)), t(rng.uniform(2, 6, 4)), t(np.array(48.0))),
        {"speed": 2.5},
    )
)
def solvent_left():
    @pb.autograd_function
    def solvent_left(ctx, temperature, length, activation, speed=2.0, reference=330.0):
        """Part of the solvent left after dryers in a row, as it falls from one to the next."""
        seconds = length / speed
        inverse = 1 / temperature - 1 / reference
        rate = (-activation / 8.314e-3 * inverse).exp()
        left = (-(rate * seconds).cumsum(0)).exp()
        ctx.save_for_backward(T=temperature, A=activation, rate=rate, left=left, inverse=inverse)
        ctx.seconds, ctx.speed = seconds, speed
        return left

    @solvent_left.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        to_exposure = -(grad_output.numpy() * s.left.numpy())
        flow = np.cumsum(to_exposure[::-1])[::-1]
        by_rate = flow * (ctx.seconds * s.rate).numpy()
        by_T = by_rate * s.A.item() / 8.314e-3 / s.T.numpy() ** 2
        return {
            "temperature": pb.asarray(by_T),
            "length": pb.asarray(flow * s.rate.numpy() / ctx.speed),
            "activation": -(by_rate @ s.inverse.numpy()) / 8.314e-3,
        }

    return solvent_left
