"""Colour: appearance spaces, differences, adaptation, palettes, pigments, gamuts, tables."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, IGNORED, SECOND, TIES, TRANSPOSED, Book, mends, t

BOOK = Book("colour")
D65 = np.array([0.9505, 1.0, 1.089])


def stimuli(low, high):
    return lambda rng: ((t(rng.uniform(low, high, (5, 3))), t(D65.copy())), {})


@BOOK.wrong(
    stimuli(0.05, 0.9),
    "dark colours lie on the straight part of the curve, but get the slope of the cube root",
    r"\blinear (?:part|branch|segment|piece)|\bstraight\b|\bbranch|\bpiecewise\b|\bregime\b",
    r"\bdark|\bsmall\b|\bblack\b|\b0\.008\d*|\bbelow\b|\bthreshold\b|near zero",
    mends(
        "np.where(s.ratio >",
        "np.where(s.ratio <",
        "s.ratio > DELTA",
        "s.ratio > TOE",
        "s.ratio <= TOE",
        "s.bright",
        "s.dark",
        "/ (3 * DELTA**2)",
        "np.where(s.root",
    ),
    where="ratios to the white below 0.0089",
    shows=stimuli(0.0005, 0.02),
)
def stimulus_to_lab():
    DELTA = 6 / 29
    TOE = DELTA**3

    @pb.autograd_function
    def stimulus_to_lab(ctx, xyz, white):
        """CIE L*a*b* of tristimulus values: (n, 3), relative to a white: (3,)."""
        ratio = xyz.numpy() / white.numpy()
        f = np.where(ratio > TOE, np.cbrt(ratio), ratio / (3 * DELTA * DELTA) + 4 / 29)
        fx, fy, fz = f.T
        ctx.save_for_backward(ratio=ratio, root=np.cbrt(ratio), white=white.numpy())
        return pb.asarray(np.stack([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)], axis=1))

    @stimulus_to_lab.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        gL, ga, gb = grad_output.numpy().T
        by_f = np.stack([500 * ga, 116 * gL - 500 * ga + 200 * gb, -200 * gb], axis=1)
        by_ratio = by_f / (3 * s.root**2)
        return {
            "xyz": pb.asarray(by_ratio / s.white),
            "white": pb.asarray(-(by_ratio * s.ratio).sum(axis=0) / s.white),
        }

    return stimulus_to_lab


@BOOK.wrong(
    lambda rng: ((t(np.array([60.0, 0, 0]) + 20 * rng.normal(size=(6, 3))),), {}),
    "the hue is in degrees: its gradient lacks the factor 180 / pi",
    FACTOR + r"|multipl|divided by|\b57\.\d",
    r"\bdegrees?\b|\bradians?\b|rad2deg|\b180\b|\bunits?\b",
    mends("180 / np.pi", "np.degrees(", "np.rad2deg(", "180.0 / np.pi", "180 * "),
)
def lab_to_lch():
    class LabToLch(pb.Function):
        """Lightness, chroma and hue in degrees (0 to 360) of L*a*b* colours: (..., 3)."""

        @staticmethod
        def forward(ctx, lab):
            L, a, b = np.moveaxis(lab.numpy(), -1, 0)
            hue = np.arctan2(b, a) * 57.29577951308232 % 360.0
            chroma = np.hypot(a, b)
            ctx.save_for_backward(a=a, b=b, chroma=chroma)
            return pb.asarray(np.stack([L, chroma, hue], axis=-1))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            a, b, chroma = ctx.saved_variables
            gL, gC, gh = np.moveaxis(grad_output.numpy(), -1, 0)
            safe = np.maximum(chroma, 1e-9)
            ca, sb = a / safe, b / safe
            grad = np.stack([gL, gC * ca - gh * sb / safe, gC * sb + gh * ca / safe], axis=-1)
            return pb.asarray(grad)

    return LabToLch.apply


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(0.1, 0.9, (5, 3))),
            t(D65 * rng.uniform(0.9, 1.1, 3)),
            t(np.array([1.0985, 1.0, 0.3558])),
        ),
        {"degree": 0.85},
    ),
    "the source white's gradient goes through the matrix instead of its transpose",
    TRANSPOSED,
    r"\badjoint\b|wrong side|order of the product",
    mends(
        "(by_gain * s.gain / s.cone_source) @ BRADFORD",
        "by_source @ BRADFORD",
        "BRADFORD.T @ by_source",
        "BRADFORD.T @ (",
        "s.to) @ BRADFORD",
        "** 2) @ BRADFORD",
    ),
)
def chromatic_adaptation():
    BRADFORD = np.array(
        [[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]]
    )
    BACK = np.linalg.inv(BRADFORD)

    @pb.autograd_function
    def chromatic_adaptation(ctx, xyz, source, target, degree=1.0):
        """Colours: (n, 3) as they look under another white; degree 0 leaves them as they are."""
        cone = xyz.numpy() @ BRADFORD.T
        at_source, at_target = BRADFORD @ source.numpy(), BRADFORD @ target.numpy()
        gain = degree * at_target / at_source + 1 - degree
        ctx.save_for_backward(cone=cone, gain=gain, at_source=at_source, at_target=at_target)
        ctx.degree = degree
        return pb.asarray((cone * gain) @ BACK.T)

    @chromatic_adaptation.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        by_adapted = grad_output.numpy() @ BACK
        by_gain = ctx.degree * (by_adapted * s.cone).sum(axis=0)
        by_source = -by_gain * s.at_target / s.at_source**2
        return {
            "xyz": pb.asarray((by_adapted * s.gain) @ BRADFORD),
            "source": pb.asarray(BRADFORD @ by_source),
            "target": pb.asarray((by_gain / s.at_source) @ BRADFORD),
        }

    return chromatic_adaptation


@BOOK.wrong(
    lambda rng: ((t(rng.random((7, 3))), t(rng.random((4, 3)))), {"temperature": 0.2}),
    "the incoming gradient is ignored, as if the loss were always the last step",
    IGNORED,
    r"(?:chain rule|upstream|grad_output|`?g`?).{0,50}(?:not used|unused|ignored|missing|left out)",
    r"(?:does not|doesn't|never|not) (?:use|used|multipl\w+ by|scaled? (?:by|with))",
    mends("g.item()", "float(g)", "g.numpy()", "g *", "* g"),
)
def soft_palette_loss():
    def forward(ctx, pixels, palette, temperature=0.1):
        """Mean soft minimum of the squared distances from pixels: (n, 3) to a palette: (k, 3)."""
        apart = pixels.numpy()[:, None] - palette.numpy()
        scores = -(apart**2).sum(axis=-1) / temperature
        top = scores.max(axis=1, keepdims=True)
        weights = np.exp(scores - top)
        total = weights.sum(axis=1, keepdims=True)
        ctx.save_for_backward(apart=apart, weights=weights / total)
        loss = -temperature * (np.log(total) + top)
        return pb.asarray(np.asarray(loss.mean()))

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        pull = 2 * s.weights[..., None] * s.apart / len(s.apart)
        return {"pixels": pb.asarray(pull.sum(axis=1)), "palette": pb.asarray(-pull.sum(axis=0))}

    return pb.autograd_function(forward, backward, name="soft_palette_loss")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.1, 0.9, (5, 3))),), {}),
    "tied channels each get the whole gradient of the largest or smallest one",
    TIES,
    r"\bequal (?:channels|elements|entries)|\bshar(?:e|ed)\b|\bsplit\b|each (?:of them )?gets?",
    r"more than one (?:channel|element|maximum|minimum)|twice|argmax|argmin|double",
    mends(
        "highest.sum(axis=-1, keepdims=True)",
        "highest / highest.sum",
        "lowest / lowest.sum",
        "argmax(",
        "argmin(",
        "np.count_nonzero(",
    ),
    where="two channels tie",
    shows=lambda rng: (
        (t(np.array([[0.8, 0.8, 0.3], [0.2, 0.6, 0.2], [0.1, 0.5, 0.9]])),),
        {},
    ),
)
def saturation_and_value():
    @pb.autograd_function
    def saturation_and_value(ctx, rgb):
        """Saturation and value (of HSV) of colours: (..., 3), each (...)."""
        x = rgb.numpy()
        most, least = x.max(axis=-1), x.min(axis=-1)
        ctx.save_for_backward(x=x, most=most, least=least)
        return pb.asarray((most - least) / most), pb.asarray(most.copy())

    @saturation_and_value.backward
    @pb.once_differentiable
    def _(ctx, g_saturation, g_value):
        x, most, least = ctx.saved_variables
        gs = g_saturation.numpy()
        highest, lowest = x == most[..., None], x == least[..., None]
        by_most = g_value.numpy() + gs * least / most**2
        by_least = -gs / most
        return {"rgb": pb.asarray(highest * by_most[..., None] + lowest * by_least[..., None])}

    return saturation_and_value


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.2, 1, 3)), t(rng.uniform(0.1, 3, (3, 5)))), {}),
    "the slope is computed without recording: a constant for the second derivative",
    SECOND,
    r"no_grad|once_differentiable|\bdetach|\bconstant\b|(?:not|un)\W?(?:recorded|tracked)",
    where="second derivative",
)
def pigment_mixture():
    @pb.autograd_function
    def pigment_mixture(ctx, amounts, absorption):
        """Reflectance of mixed paints by Kubelka and Munk.

        amounts: (k,); absorption: (k, wavelengths), over scattering, of each pigment.
        """
        q = (amounts / amounts.sum()) @ absorption
        ctx.save_for_backward(amounts=amounts, absorption=absorption)
        return 1 + q - (q**2 + 2 * q).sqrt()

    @pigment_mixture.backward
    def _(ctx, grad_output):
        s = ctx.saved_variables
        total = s.amounts.sum()
        part = s.amounts / total
        with pb.no_grad():
            q = part @ s.absorption
            slope = 1 - (q + 1) / (q**2 + 2 * q).sqrt()
        flow = grad_output * slope
        by_part = s.absorption @ flow
        return {
            "amounts": (by_part - (by_part * part).sum()) / total,
            "absorption": part.unsqueeze(1) * flow,
        }

    return pigment_mixture


def lab_pairs(rng):
    first = np.array([55.0, 5, 10]) + rng.normal(0, 15, (5, 3))
    second = first + rng.normal(0, 4, (5, 3))
    second[2] = first[2]
    return (t(first), t(second)), {}


@BOOK.right(lab_pairs)
def delta_e_94():
    @pb.autograd_function
    def delta_e_94(ctx, standard, sample, textiles=False):
        """CIE94 difference of L*a*b* colours: (n, 3); 0 between equal colours."""
        K1, K2, kL = (0.048, 0.014, 2.0) if textiles else (0.045, 0.015, 1.0)
        x, d = standard.numpy(), standard.numpy() - sample.numpy()
        C1, C2 = np.hypot(*x[:, 1:].T), np.hypot(*sample.numpy()[:, 1:].T)
        SC, SH = 1 + K1 * C1, 1 + K2 * C1
        dC = C1 - C2
        dH2 = np.maximum(d[:, 1] ** 2 + d[:, 2] ** 2 - dC**2, 0.0)
        E = np.sqrt((d[:, 0] / kL) ** 2 + (dC / SC) ** 2 + dH2 / SH**2)
        by_C1 = -(dC**2) / SC**3 * K1 - dH2 / SH**3 * K2
        by_dC = dC / SC**2 - dC / SH**2
        C1, C2 = np.maximum(C1, 1e-12), np.maximum(C2, 1e-12)
        ctx.save_for_backward(x, sample.numpy(), d, C1, C2, SH, E, by_C1, by_dC)
        ctx.kL = kL
        return pb.asarray(E.copy())

    @delta_e_94.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        x, y, d, C1, C2, SH, E, by_C1, by_dC = ctx.saved_variables
        far = E > 0
        flow = np.where(far, grad_output.numpy(), 0.0) / np.where(far, E, 1.0)
        by_d = flow[:, None] * d / np.stack([0 * SH + ctx.kL, SH, SH], axis=1) ** 2
        by_x, by_y = by_d, -by_d
        by_x[:, 1:] += (flow * (by_C1 + by_dC) / C1)[:, None] * x[:, 1:]
        by_y[:, 1:] -= (flow * by_dC / C2)[:, None] * y[:, 1:]
        return pb.asarray(by_x), pb.asarray(by_y), None

    return delta_e_94


@BOOK.right(
    lambda rng: (
        (
            t(
                np.array(
                    [[0.3, 0.5, 0.7], [1.4, 0.2, 0.1], [0.5, -0.4, 0.6], [0.9, 1.3, 0.8], [0.6] * 3]
                )
                + rng.uniform(0, 0.02, (5, 3))
            ),
        ),
        {},
    )
)
def gamut_mapped():
    @pb.autograd_function
    def gamut_mapped(ctx, rgb, luma=(0.2126, 0.7152, 0.0722)):
        """Pull colours: (n, 3) to their own grey, as far as they need to be within 0 and 1."""
        x, w = rgb.numpy(), np.asarray(luma)
        grey = (x @ w)[:, None]
        d = x - grey
        bound = (d > 0).astype(x.dtype)
        room = np.where(d == 0, np.inf, (bound - grey) / np.where(d == 0, 1.0, d))
        worst = room.argmin(axis=1)
        scale = np.minimum(room[np.arange(len(x)), worst], 1.0)[:, None]
        ctx.save_for_backward(d=d, worst=worst, scale=scale, w=w)
        return pb.asarray(grey + scale * d)

    @gamut_mapped.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        rows = np.arange(len(gn))
        tight = np.where(s.scale[:, 0] < 1, (gn * s.d).sum(axis=1), 0.0)
        tight = tight / np.where(s.scale[:, 0] < 1, s.d[rows, s.worst], 1.0)
        by_d = gn * s.scale
        by_d[rows, s.worst] -= tight * s.scale[:, 0]
        by_grey = gn.sum(axis=1) - tight - by_d.sum(axis=1)
        return {"rgb": pb.asarray(by_d + by_grey[:, None] * s.w)}

    return gamut_mapped


def graded(rng):
    axis = np.linspace(0, 1, 3)
    cube = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    rgb = rng.random((6, 3))
    rgb[1, 0], rgb[3, 2] = 1.2, -0.1
    return (t(rgb), t(cube**1.2 + 0.05 * rng.normal(size=cube.shape))), {}


@BOOK.right(graded)
def lut_graded():
    class LutGraded(pb.Function):
        """Colours: (n, 3) through a table: (m, m, m, 3), trilinear; clipped to the table."""

        @staticmethod
        def corners(place, size):
            low = np.clip(np.floor(place).astype(int), 0, size - 2)
            share = place - low
            for corner in np.ndindex(2, 2, 2):
                up = np.array(corner)
                parts = np.where(up == 1, share, 1 - share)
                yield tuple((low + up).T), up, parts

        @staticmethod
        def forward(ctx, rgb, table):
            cells = table.shape[0] - 1
            place = np.clip(rgb.numpy(), 0, 1) * cells
            out = np.zeros_like(place)
            for where, _, parts in LutGraded.corners(place, cells + 1):
                out += parts.prod(axis=1)[:, None] * table.numpy()[where]
            ctx.save_for_backward(rgb=rgb.numpy(), place=place, table=table.numpy())
            return pb.asarray(out)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, gn = ctx.saved_variables, grad_output.numpy()
            cells = len(s.table) - 1
            by_table, by_place = np.zeros_like(s.table), np.zeros_like(s.place)
            for where, up, parts in LutGraded.corners(s.place, cells + 1):
                np.add.at(by_table, where, parts.prod(axis=1)[:, None] * gn)
                value = (gn * s.table[where]).sum(axis=1)
                for k in range(3):
                    others = np.delete(parts, k, axis=1).prod(axis=1)
                    by_place[:, k] += (1 if up[k] else -1) * others * value
            inside = (s.rgb > 0) & (s.rgb < 1)
            return pb.asarray(by_place * cells * inside), pb.asarray(by_table)

    return LutGraded.apply


def observer(wavelength):
    def lobe(peak, left, right):
        return np.exp(-0.5 * ((wavelength - peak) / np.where(wavelength < peak, left, right)) ** 2)

    x = 1.056 * lobe(599.8, 37.9, 31.0) + 0.362 * lobe(442.0, 16.0, 26.7)
    return np.stack([x, lobe(568.8, 46.9, 40.5), 1.217 * lobe(437.0, 11.8, 36.0)], axis=1)


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.1, 0.9, (3, 9))), t(rng.uniform(0.5, 1.5, 9))),
        {"matching": observer(np.linspace(400, 700, 9)), "step": 37.5},
    )
)
def spectra_to_xyz():
    def forward(ctx, reflectance, illuminant, matching, step=10.0):
        """Tristimulus values: (n, 3) of samples: (n, w) in a light: (w,); Y of white is 100."""
        light = illuminant.numpy()[:, None] * matching * step
        white = light[:, 1].sum()
        xyz = 100 / white * (reflectance.numpy() @ light)
        ctx.save_for_backward(reflectance.numpy(), light, xyz, white)
        ctx.matching = matching * step
        return pb.asarray(xyz.copy())

    @pb.once_differentiable
    def backward(ctx, g):
        reflectance, light, xyz, white = ctx.saved_variables
        flow = 100 / white * g.numpy()
        by_light = reflectance.T @ flow
        by_white = -(g.numpy() * xyz).sum() / white
        by_illuminant = (by_light * ctx.matching).sum(axis=1) + by_white * ctx.matching[:, 1]
        return {
            "reflectance": pb.asarray(flow @ light.T),
            "illuminant": pb.asarray(by_illuminant),
        }

    return pb.autograd_function(forward, backward, name="spectra_to_xyz")


@BOOK.right(lambda rng: ((t(rng.normal(size=(3, 4))), t(rng.random(7))), {}))
def histogram_matched():
    @pb.autograd_function
    def histogram_matched(ctx, channel, target):
        """Give the pixels of a channel: (h, w) the values of a target: (m,), in their own order.

        Only the order of the pixels counts, so they get no gradient but zero.
        """
        if len(target) < 2:
            raise ValueError("the target must have two values or more")
        order = np.argsort(target.numpy(), kind="stable")
        ranks = np.argsort(np.argsort(channel.numpy(), axis=None, kind="stable"))
        place = ranks * (len(order) - 1) / max(len(ranks) - 1, 1)
        low = np.minimum(place.astype(int), len(order) - 2)
        share = place - low
        values = target.numpy()[order]
        out = (1 - share) * values[low] + share * values[low + 1]
        ctx.save_for_backward(order=order, low=low, share=share)
        return pb.asarray(out.reshape(channel.shape))

    @histogram_matched.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        order, low, share = ctx.saved_variables
        flow, n = grad_output.numpy().ravel(), len(order)
        by_value = np.bincount(low, flow * (1 - share), minlength=n)
        by_value += np.bincount(low + 1, flow * share, minlength=n)
        by_target = np.empty(n)
        by_target[order] = by_value
        return {
            "channel": pb.asarray(np.zeros(grad_output.shape)),
            "target": pb.asarray(by_target),
        }

    return histogram_matched
