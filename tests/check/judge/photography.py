"""Photography: tone, mosaics, lenses, exposures, sharpening, colour, focus, levels, filters."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

import pullback as pb

from .entries import FACTOR, STATE, SUMMED, SWAPPED, TRANSPOSED, Book, at, mends, t

BOOK = Book("photography")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.1, 3, (3, 4))), t(0.18)), {}),
    "the slope of the logarithm is one over the luminance, without the delta that is added to it",
    at("delta"),
    r"\bdelta\b`? ?(?:is|was)?.{0,20}(?:missing|left out|ignored|forgotten|not)",
    r"without (?:the )?delta",
    r"\bdark|\bblack\b|\bshadows?\b|(?:small|low) .{0,15}(?:luminance|values)|near zero",
    r"(?:luminance|where|elements?)`? .{0,25}(?:<|small|near (?:0|zero))",
    r"(?:missing|left out|add\w*).{0,20}\bdelta|\b(?:luminance|L) ?\+ ?(?:ctx\.|s\.)?delta",
    mends("(L + ctx.delta)", "(ctx.delta + L)", "+ ctx.delta", "ctx.delta +", "ctx.shifted"),
    where="delta is not small beside the luminance",
    shows=lambda rng: (
        (t(np.array([[0.002, 1.4, 0.9], [0.3, 0.01, 0.05]])), t(0.18)),
        {"delta": 0.02},
    ),
)
def photographic_tone():
    class PhotographicTone(pb.Function):
        """Global operator of Reinhard: luminance of any range to display values below 1.

        luminance: (height, width), key: brightness to which the mean is brought.
        """

        @staticmethod
        def forward(ctx, luminance, key, delta=1e-7):
            L = luminance.numpy()
            mean = np.exp(np.log(L + delta).mean())
            ctx.L, ctx.mean, ctx.key, ctx.delta = L, mean, key.item(), delta
            scaled = ctx.key / mean * L
            return pb.asarray(scaled / (1 + scaled))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            L, scaled = ctx.L, ctx.key / ctx.mean * ctx.L
            flow = grad_output.numpy() / (1 + scaled) ** 2
            total = (flow * scaled).sum()
            by_mean = -total / ctx.mean
            spread = by_mean * ctx.mean / L.size / L
            return {
                "luminance": pb.asarray(flow * ctx.key / ctx.mean + spread),
                "key": pb.asarray(np.array(total / ctx.key)),
            }

    return PhotographicTone.apply


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(size=(4, 6))), t(rng.uniform(1, 2, 3))), {}),
    "rows and columns of the cells are swapped in the gradient, so that it goes to the wrong "
    "photosites unless the pattern is symmetric",
    at("pattern"),
    SWAPPED,
    TRANSPOSED,
    r"\bpattern\b.{0,40}(?:ignored|symmetric|wrong|not|other)|\brows?\b.{0,20}\bcolumns?\b|divmod",
    r"GRBG|GBRG|(?:red|R) .{0,15}(?:blue|B)\b",
    r"(?:wrong|other|neighbou?ring) (?:photo)?(?:site|pixel|cell)",
    mends("y, x = divmod", "divmod(k, 2)[", "grad[k // 2", "grad[x::2, y::2]", "grad[x :: 2"),
    where="a pattern such as GRBG",
    shows=lambda rng: (
        (t(rng.uniform(size=(4, 6))), t(rng.uniform(1, 2, 3))),
        {"pattern": "GRBG"},
    ),
)
def develop_half_size():
    @pb.autograd_function
    def develop_half_size(ctx, raw, gains, pattern="RGGB"):
        """Colour image of half the size, a pixel for each cell of 2 x 2 photosites.

        raw: (height, width), gains: (3,) white balance, pattern: colours of a cell by rows.
        """
        if sorted(pattern) != ["B", "G", "G", "R"]:
            raise ValueError(f"no Bayer pattern: {pattern}")
        mosaic = raw.numpy()
        image = np.zeros((mosaic.shape[0] // 2, mosaic.shape[1] // 2, 3))
        for k, colour in enumerate(pattern):
            part = mosaic[k // 2 :: 2, k % 2 :: 2]
            image[..., "RGB".index(colour)] += part / pattern.count(colour)
        ctx.pattern, ctx.image, ctx.gains, ctx.size = pattern, image, gains.numpy(), mosaic.shape
        return pb.asarray(image * ctx.gains)

    @develop_half_size.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn, grad = g.numpy(), np.zeros(ctx.size)
        for k, colour in enumerate(ctx.pattern):
            x, y = divmod(k, 2)
            c = "RGB".index(colour)
            grad[y::2, x::2] = gn[..., c] * ctx.gains[c] / ctx.pattern.count(colour)
        return {
            "raw": pb.asarray(grad),
            "gains": pb.asarray((gn * ctx.image).sum(axis=(0, 1))),
        }

    return develop_half_size


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(size=(5, 6))), t(rng.uniform(-0.3, 0.3, 3))), {}),
    "the gain is kept in a cache by the size of the image: a later call with other coefficients "
    "overwrites it before backward has read it",
    STATE,
    r"\boverwr|\bshared\b|between calls|(?:later|second|another|other|last|next|most recent) call",
    r"\bctx\b.{0,40}(?:instead|rather|kept|stored|saved)|\bmemo",
    mends("ctx.gain", "s.gain", "gain=gain", "ctx.save_for_backward(image=image, gain=gain"),
    where="second use before backward",
)
def correct_vignetting():
    grids, gains = {}, {}

    def radius(shape):
        """Squared distances from the centre, 1 in the corners."""
        if shape not in grids:
            y, x = (np.linspace(-1, 1, n) for n in shape)
            grids[shape] = (y[:, None] ** 2 + x**2) / 2
        return grids[shape]

    @pb.autograd_function
    def correct_vignetting(ctx, image, falloff):
        """Divide by the falloff 1 + a r**2 + b r**4 + c r**6 of a lens."""
        r2 = radius(image.shape)
        gains[image.shape] = 1 / (
            1 + sum(a * r2 ** (i + 1) for i, a in enumerate(falloff.tolist()))
        )
        ctx.save_for_backward(image=image, falloff=falloff)
        return pb.asarray(image.numpy() * gains[image.shape])

    @correct_vignetting.backward
    @pb.once_differentiable
    def _(ctx, g):
        image, falloff = (x.numpy() for x in ctx.saved_tensors)
        gain, r2 = gains[image.shape], radius(image.shape)
        to_gain = -g.numpy() * image * gain**2
        return {
            "image": g * pb.asarray(gain),
            "falloff": pb.asarray(
                np.array([(to_gain * r2 ** (i + 1)).sum() for i in range(len(falloff))])
            ),
        }

    return correct_vignetting


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.1, 0.9, (3, 8))), t(np.array([0.01, 0.04, 0.16]))), {}),
    "an exposure time acts on all pixels: their parts are averaged where they have to be summed",
    SUMMED,
    FACTOR,
    r"\bmean\b|\baverag|number of pixels|divided by|\bpixels\b.{0,30}\bsum",
    mends(
        ").sum(axis=1) / times",
        ").sum(axis=1) / ctx",
        "share.sum(",
        ".sum(axis=1) / s.",
        "sum(axis=-1) / ",
    ),
)
def merge_exposures():
    @pb.autograd_function
    def merge_exposures(ctx, values, times, width=0.25):
        """Logarithm of the radiance from a series of exposures, mid greys weighted most.

        values: (exposures, pixels), linear, between 0 and 1; times: (exposures,) in seconds.
        """
        z, seconds = values.numpy(), times.numpy()
        if (z <= 0).any() or (seconds <= 0).any():
            raise ValueError("values and times must be positive")
        weight = np.exp(-(((z - 0.5) / width) ** 2))
        logs = np.log(z) - np.log(seconds)[:, None]
        share = weight / weight.sum(axis=0)
        radiance = (share * logs).sum(axis=0)
        ctx.save_for_backward(values, times, share, logs - radiance)
        ctx.width = width
        return pb.asarray(radiance)

    @merge_exposures.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        values, times, share, apart = ctx.saved_variables
        z, flow = values.numpy(), grad_output.numpy() * share
        by_weight = -2 * (z - 0.5) / ctx.width**2 * apart
        return {
            "values": pb.asarray(flow * (1 / z + by_weight)),
            "times": pb.asarray(-flow.mean(axis=1) / times.numpy()),
        }

    return merge_exposures


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(size=(6, 7))), t(np.array(0.8))), {"radius": 1.5}),
    "the blur repeats the pixels of the border and is not its own adjoint there",
    r"\bborder|\bedges?\b|\bboundar|\bcorner|\bmargin|\bframe\b|\brim\b",
    r"\badjoint|\bnearest\b|\bpadd|\breplicat|symmetric",
    r"first and last|outer(?:most)? (?:rows|columns|pixels|elements)|\binterior\b|\binside\b",
    TRANSPOSED,
    mends("ndimage.gaussian_filter1d(np.eye", "K.T", "blur_adjoint", "kernel.T", ".T @", "np.pad("),
)
def sharpen_details():
    def blur(x, radius):
        return ndimage.gaussian_filter(x, radius, mode="nearest")

    def forward(ctx, image, amount, radius=1.0):
        """Sharpen a grey image by the difference from its blur."""
        detail = image.numpy() - blur(image.numpy(), radius)
        ctx.save_for_backward(amount=amount, detail=detail)
        ctx.radius = radius
        return image + amount * pb.asarray(detail)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        amount, detail = ctx.saved_variables
        g = grad_output.numpy()
        return {
            "image": pb.asarray(g + amount.item() * (g - blur(g, ctx.radius))),
            "amount": pb.asarray(np.array((g * detail).sum())),
        }

    return pb.autograd_function(forward, backward, name="sharpen_details")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.001, 1, (6, 3)) * np.array([0.9, 1, 1])),), {}),
    "the colours are divided by those of white, but their gradient is not: the factor is missing",
    FACTOR + r"|divided by|multipl",
    r"\bwhite\b.{0,60}(?:missing|left out|forgot|ignored|divi|lacks)",
    r"0\.918|1\.0521|divi\w+ by .{0,10}(?:0\.950|1\.088)",
    r"(?:missing|left out|forgot\w*|ignor\w+|divi\w+|lacks).{0,30}\bwhite\b",
    r"\bX and (?:of )?Z\b|columns? 0 and 2",
    r"\[:?,? ?[02]\] .{0,20}(?:wrong|only)|(?:except|but) (?:for )?Y",
    at("white"),
    mends("/ ctx.white", "/ s.white", "/ white)", "g_f @ FROM_LMS.T / ", "slope(ratio) / "),
)
def xyz_to_lab():
    EDGE = 6 / 29
    MIX = np.array([[0.0, 116, 0], [500, -500, 0], [0, 200, -200]])

    def slope(x):
        return np.where(x > EDGE**3, np.cbrt(x) / (3 * x), 1 / (3 * EDGE**2))

    @pb.autograd_function
    def xyz_to_lab(ctx, xyz, white=(0.95047, 1.0, 1.08883)):
        """CIE L*a*b* of colours; xyz: (n, 3), not negative."""
        ratio = xyz.numpy() / np.array(white)
        if (ratio < 0).any():
            raise ValueError("xyz must not be negative")
        ratio = np.maximum(ratio, 1e-12)
        f = np.where(ratio > EDGE**3, np.cbrt(ratio), ratio / (3 * EDGE**2) + 4 / 29)
        ctx.ratio = ratio
        return pb.asarray(f @ MIX.T - np.array([16.0, 0, 0]))

    @xyz_to_lab.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return {"xyz": pb.asarray(grad_output.numpy() @ MIX * slope(ctx.ratio))}

    return xyz_to_lab


@BOOK.right(
    lambda rng: ((t(rng.uniform(-0.1, 1.1, (5, 3))), t(rng.uniform(size=(3, 3, 3, 3)))), {})
)
def apply_lut():
    CORNERS = [(i, j, k) for i in (0, 1) for j in (0, 1) for k in (0, 1)]

    @pb.autograd_function
    def apply_lut(ctx, pixels, lut):
        """Colours through a table, trilinear; pixels: (n, 3), lut: (size, size, size, 3)."""
        top = lut.shape[0] - 1
        if top < 1:
            raise ValueError("a table needs two levels or more")
        x = np.clip(pixels.numpy(), 0, 1) * top
        cell = np.minimum(x.astype(int), top - 1)
        ctx.save_for_backward(pixels=pixels, lut=lut, cell=cell, part=x - cell)
        out = np.zeros(pixels.shape)
        for corner, weight, _ in corners(cell, x - cell):
            out += weight[:, None] * lut.numpy()[corner]
        return pb.asarray(out)

    def corners(cell, part):
        for offset in CORNERS:
            sides = np.where(offset, part, 1 - part)
            signs = np.where(offset, 1.0, -1.0)
            rest = np.stack([sides[:, [1, 2]], sides[:, [0, 2]], sides[:, [0, 1]]], axis=1)
            yield tuple((cell + offset).T), sides.prod(axis=1), signs * rest.prod(axis=2)

    @apply_lut.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        table, x = s.lut.numpy(), s.pixels.numpy()
        to_table, to_pixels = np.zeros_like(table), np.zeros_like(x)
        for corner, weight, slopes in corners(s.cell, s.part):
            np.add.at(to_table, corner, weight[:, None] * gn)
            to_pixels += slopes * (gn * table[corner]).sum(axis=1, keepdims=True)
        to_pixels *= (table.shape[0] - 1) * ((x > 0) & (x < 1))
        return {"pixels": pb.asarray(to_pixels), "lut": pb.asarray(to_table)}

    return apply_lut


@BOOK.right(lambda rng: ((t(rng.uniform(size=(4, 5))), t(np.array(0.3))), {"radius": 1}))
def smooth_keeping_edges():
    def neighbours(shape, radius):
        for dy in range(-radius, radius + 1):
            for dx in range(-radius, radius + 1):
                here = tuple(
                    slice(max(0, -d), n - max(0, d)) for d, n in zip((dy, dx), shape, strict=True)
                )
                there = tuple(
                    slice(max(0, d), n - max(0, -d)) for d, n in zip((dy, dx), shape, strict=True)
                )
                yield here, there, np.exp(-(dy * dy + dx * dx) / 2 / max(radius, 1) ** 2)

    class Smooth(pb.Function):
        @staticmethod
        def forward(ctx, image, contrast, radius=2):
            """Smooth an image but not its edges, of more than the contrast."""
            if min(image.shape) <= radius:
                raise ValueError("the image is smaller than the window")
            x, sigma = image.numpy(), contrast.item()
            total, weights = np.zeros_like(x), np.zeros_like(x)
            for here, there, near in neighbours(x.shape, radius):
                w = near * np.exp(-0.5 * ((x[there] - x[here]) / sigma) ** 2)
                total[here] += w * x[there]
                weights[here] += w
            ctx.x, ctx.sigma, ctx.radius = x, sigma, radius
            ctx.weights, ctx.out = weights, total / weights
            return pb.asarray(ctx.out.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            x, sigma, out = ctx.x, ctx.sigma, ctx.out
            flow = grad_output.numpy() / ctx.weights
            grad, by_sigma = np.zeros_like(x), 0.0
            for here, there, near in neighbours(x.shape, ctx.radius):
                gap = x[there] - x[here]
                w = near * np.exp(-0.5 * (gap / sigma) ** 2)
                to_log = flow[here] * w * (x[there] - out[here])
                by_sigma += (to_log * gap**2).sum() / sigma**3
                grad[there] += flow[here] * w - to_log * gap / sigma**2
                grad[here] += to_log * gap / sigma**2
            return pb.asarray(grad), pb.asarray(np.array(by_sigma)), None

    return Smooth.apply


@BOOK.right(
    lambda rng: ((), {"focal": t(50.0), "stop": t(rng.uniform(4, 9)), "distance": t(3000.0)})
)
def depth_of_field():
    @pb.autograd_function
    def depth_of_field(ctx, *, focal, stop, distance, confusion=0.03):
        """Nearest and farthest distance in focus; all lengths in mm."""
        hyperfocal = focal**2 / (stop * confusion) + focal
        if distance.item() >= hyperfocal.item() or distance.item() <= focal.item():
            raise ValueError("the subject must be nearer than the hyperfocal distance")
        ctx.save_for_backward(focal=focal, stop=stop, distance=distance)
        ctx.confusion = confusion
        reach = hyperfocal - focal
        near = distance * reach / (hyperfocal + distance - 2 * focal)
        return {"near": near, "far": distance * reach / (hyperfocal - distance)}

    @depth_of_field.backward
    def _(ctx, g_near, g_far):
        f, N, d = ctx.saved_tensors
        reach = f**2 / (N * ctx.confusion)
        low, high = reach + d - f, reach + f - d
        # near = d * reach / low, far = d * reach / high
        by_reach = g_near * d * (d - f) / low**2 + g_far * d * (f - d) / high**2
        by_focal = g_near * d * reach / low**2 - g_far * d * reach / high**2
        return {
            "focal": by_focal + by_reach * 2 * reach / f,
            "stop": -by_reach * reach / N,
            "distance": g_near * reach * (reach - f) / low**2
            + g_far * reach * (reach + f) / high**2,
        }

    return depth_of_field


@BOOK.right(lambda rng: ((t(rng.uniform(20, 200, (4, 5))),), {"percent": (7.0, 90.0)}))
def auto_levels():
    def knots(n, percent):
        """Places in sorted order between which a percentile lies, and the share of the second."""
        place = percent / 100 * (n - 1)
        low = min(int(place), max(n - 2, 0))
        return low, min(low + 1, n - 1), place - low

    @pb.autograd_function
    def auto_levels(ctx, image, percent=(1.0, 99.0)):
        """Stretch an image so that these percentiles become black and white, 0 and 1."""
        x = image.numpy()
        black, white = np.percentile(x, percent)
        if not black < white:
            raise ValueError("an image without contrast")
        out = (x - black) / (white - black)
        ctx.order, ctx.percent = x.argsort(axis=None), percent
        ctx.inside, ctx.out, ctx.range = (out > 0) & (out < 1), out, white - black
        return pb.asarray(np.clip(out, 0, 1))

    @auto_levels.backward
    @pb.once_differentiable
    def _(ctx, g):
        flow = g.numpy() * ctx.inside / ctx.range
        ends = -(flow * (1 - ctx.out)).sum(), -(flow * ctx.out).sum()
        grad = flow.ravel()
        for percent, end in zip(ctx.percent, ends, strict=True):
            low, high, share = knots(grad.size, percent)
            grad[ctx.order[low]] += (1 - share) * end
            grad[ctx.order[high]] += share * end
        return pb.asarray(grad.reshape(flow.shape))

    return auto_levels


@BOOK.right(lambda rng: ((t(rng.uniform(size=(2, 3, 3))), t(np.array(1.4))), {}))
def saturate_():
    LUMA = np.array([0.2126, 0.7152, 0.0722])

    @pb.autograd_function
    def saturate_(ctx, image, amount):
        """Change the saturation of an image in place; image: (..., 3)."""
        luma = pb.asarray((image.numpy() @ LUMA)[..., None])
        ctx.save_for_backward(amount=amount, colour=image.numpy() - luma.numpy())
        ctx.mark_dirty(image)
        return image.sub_(luma).mul_(amount).add_(luma)

    @saturate_.backward
    @pb.once_differentiable
    def _(ctx, g):
        amount, colour = ctx.saved_variables
        gn, factor = g.numpy(), amount.item()
        grey = (1 - factor) * gn.sum(axis=-1, keepdims=True) * LUMA
        return {
            "image": pb.asarray(factor * gn + grey),
            "amount": pb.asarray(np.array((gn * colour).sum())),
        }

    return saturate_
