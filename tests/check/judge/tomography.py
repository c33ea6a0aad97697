"""Tomography: projections, attenuation, back projection, blur, counts, regularisation, updates."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

import pullback as pb

from .entries import FACTOR, MISSING, TRANSPOSED, ZERO, Book, at, mends, t

BOOK = Book("tomography")


def slice_and_angles(rng):
    return (t(rng.uniform(0, 1, (4, 5))), t(rng.uniform(0, np.pi, 3))), {"bins": 11}


@BOOK.wrong(
    slice_and_angles,
    "the slope in the angles lacks the division by the spacing of the detector",
    FACTOR + r"|multipl|divided by",
    at("spacing"),
    r"spacing.{0,40}(?:missing|ignored|unused|left out|forgot)",
    r"(?:missing|lacks?|without|divi\w+ by).{0,30}spacing",
    r"(?:bin|detector) (?:width|size|pitch)|\bunits?\b",
    mends("/ ctx.spacing", "/ s.spacing", "/ spacing * ", "1 / ctx.spacing", "gn / ctx.spacing"),
    where="spacing is not 1",
    shows=lambda rng: (slice_and_angles(rng)[0], {"bins": 13, "spacing": 0.7}),
)
def parallel_projection():
    def places(shape, angles, bins, spacing):
        """Return pixel offsets along the detector, in bins from its first: (angles, pixels)."""
        y, x = np.indices(shape).reshape(2, -1) - (np.array(shape)[:, None] - 1) / 2
        along = np.outer(np.cos(angles), x) + np.outer(np.sin(angles), y)
        turned = np.outer(np.cos(angles), y) - np.outer(np.sin(angles), x)
        return along / spacing + (bins - 1) / 2, turned

    @pb.autograd_function
    def parallel_projection(ctx, image, angles, bins, spacing=1.0):
        """Sinogram (angles, bins): each pixel is shared out between the two bins nearest to it."""
        place, turned = places(image.shape, angles.numpy(), bins, spacing)
        low = np.floor(place).astype(int)
        if low.min() < 0 or low.max() > bins - 2:
            raise ValueError("the detector is too short")
        ctx.low, ctx.part, ctx.turned, ctx.shape = low, place - low, turned, image.shape
        values, sinogram = image.numpy().ravel(), np.zeros((len(angles), bins))
        for row, k, part in zip(sinogram, low, ctx.part, strict=True):
            np.add.at(row, k, (1 - part) * values)
            np.add.at(row, k + 1, part * values)
        ctx.save_for_backward(image=image)
        return pb.asarray(sinogram)

    @parallel_projection.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, values = grad_output.numpy(), ctx.saved_variables.image.numpy().ravel()
        below = np.take_along_axis(gn, ctx.low, axis=1)
        above = np.take_along_axis(gn, ctx.low + 1, axis=1)
        back = ((1 - ctx.part) * below + ctx.part * above).sum(axis=0)
        by_angle = ((above - below) * ctx.turned * values).sum(axis=1)
        return {"image": pb.asarray(back.reshape(ctx.shape)), "angles": pb.asarray(by_angle)}

    return parallel_projection


COUNTED = np.array([310, 250, 180, 95, 60, 240])


def scan(rng):
    return (t(rng.uniform(0.1, 1.5, 6)), t(np.array(400.0)), COUNTED), {}


@BOOK.wrong(
    scan,
    "the ratio of counts to their expectation leaves out the background",
    MISSING,
    at("background"),
    r"background.{0,50}(?:missing|ignored|unused|left out|forgot)|\bscatter\b|\bdark\b|\brandoms\b",
    r"(?:missing|left out|ignor\w+|forgot\w*|without|lacks?).{0,40}background",
    r"right (?:only )?(?:if|when|where|for) .{0,20}background",
    mends("+ ctx.background", "ctx.expected", "s.expected", "expected=expected", "+ s.background"),
    where="background is not 0",
    shows=lambda rng: (scan(rng)[0], {"background": 40.0}),
)
def transmission_nll():
    class TransmissionNLL(pb.Function):
        """Negative Poisson log-likelihood, less its constant, of the counts behind an object.

        integrals: attenuation along each ray, blank: counts without an object.
        """

        @staticmethod
        def forward(ctx, integrals, blank, counts, background=0.0):
            passed = blank.item() * np.exp(-integrals.numpy())
            expected = passed + background
            if (expected <= 0).any() or (counts < 0).any():
                raise ValueError("counts must be positive")
            ctx.save_for_backward(blank=blank, passed=passed)
            ctx.counts, ctx.background = counts, background
            return pb.asarray(np.array((expected - counts * np.log(expected)).sum()))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            blank, passed = ctx.saved_variables
            slope = grad_output.item() * (1 - ctx.counts / passed) * passed
            return {
                "integrals": pb.asarray(-slope),
                "blank": pb.asarray(np.array(slope.sum() / blank.item())),
            }

    return TransmissionNLL.apply


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0, 1, (5, 4))),), {}),
    "in the gradient the differences wrap around at the border, where forward takes them for zero",
    r"\bwrap|\bperiodic|roll wraps|circular|\bcyclic|\bborder|\bboundar|\bedges?\b",
    r"(?:first|last) (?:row|column|line)s?\b|\brow 0\b|\bcolumn 0\b|\[0, ?:\]|\[:, ?0\]|\bcorner",
    mends(
        "[1:] -=",
        "[1:] +=",
        "np.diff(",
        "[:-1] -=",
        "np.pad(",
        "divergence[0]",
        "[-1] = 0",
        "prepend=0",
    ),
)
def isotropic_variation():
    @pb.autograd_function
    def isotropic_variation(ctx, image, smoothing=1e-3):
        """Isotropic total variation of an image (rows, columns), smoothed at zero."""
        x = image.numpy()
        down = np.append(x[1:], x[-1:], axis=0) - x
        right = np.append(x[:, 1:], x[:, -1:], axis=1) - x
        norm = np.sqrt(down**2 + right**2 + smoothing**2)
        ctx.x, ctx.norm = x.copy(), norm
        return pb.asarray(np.array((norm - smoothing).sum()))

    @isotropic_variation.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        x = ctx.x
        down = (np.roll(x, -1, axis=0) - x) / ctx.norm
        right = (np.roll(x, -1, axis=1) - x) / ctx.norm
        divergence = down - np.roll(down, 1, axis=0) + right - np.roll(right, 1, axis=1)
        return {"image": pb.asarray(-grad_output.item() * divergence)}

    return isotropic_variation


def sinogram(rng):
    return (t(rng.uniform(0, 3, (3, 9))), t(rng.uniform(0.8, 1.2, 9))), {"sigma": 1.1}


@BOOK.wrong(
    sinogram,
    "the blur is taken for its own adjoint, which it is only with the default treatment of borders",
    TRANSPOSED,
    at("mode"),
    r"\badjoint\b|symmetric|\bborder|\bboundar|\bends?\b|\bedges?\b|\bpadd",
    r"(?:first|last|outer\w*) (?:\w+ )?(?:bins?|columns?|elements?)|nearest",
    mends("matrix.T", "np.eye(", "blur_matrix", "np.add.at(", "adjoint(", "kernel.T", "gn @ "),
    where="mode is nearest",
    shows=lambda rng: (sinogram(rng)[0], {"sigma": 1.1, "mode": "nearest"}),
)
def detector_blur():
    def forward(ctx, sinogram, gain, sigma=0.8, mode="reflect"):
        """Sinogram (angles, bins) as a detector sees it that spreads light over bins.

        mode: as in scipy.ndimage, what is assumed beyond the ends.
        """
        if sigma <= 0:
            raise ValueError("sigma must be positive")
        blurred = ndimage.gaussian_filter1d(sinogram.numpy(), sigma, axis=1, mode=mode)
        ctx.save_for_backward(gain=gain, blurred=blurred)
        ctx.sigma, ctx.mode = sigma, mode
        return pb.asarray(blurred * gain.numpy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        received = gn * s.gain.numpy()
        return {
            "sinogram": pb.asarray(
                ndimage.gaussian_filter1d(received, ctx.sigma, axis=1, mode=ctx.mode)
            ),
            "gain": pb.asarray((gn * s.blurred).sum(axis=0)),
        }

    return pb.autograd_function(forward, backward, name="detector_blur")


def emission(rng):
    system = rng.uniform(0, 1, (7, 4))
    return (t(rng.uniform(1, 3, 4)), t(rng.uniform(3, 9, 7)), system), {}


@BOOK.wrong(
    emission,
    "that the projection in the denominator changes with the image is left out",
    MISSING,
    r"denominator|quotient|\bratio\b.{0,50}(?:depend|constant|chang|also)|expected counts",
    r"(?:through|via|by way of|of) (?:the )?(?:ratio|projection|expected|forward projection)",
    r"product rule|homogene|invarian|\bsecond (?:part|term)|\b(?:diagonal|direct)\b",
    mends(
        "- system.T @",
        "- A.T @",
        "g_ratio",
        "by_ratio",
        "by_expected",
        "g_expected",
        "-= system.T @",
    ),
)
def mlem_update():
    @pb.autograd_function
    def mlem_update(ctx, image, counts, system):
        """One step of maximum-likelihood EM; image: (pixels,), system: (rays, pixels)."""
        x, y = image.numpy(), counts.numpy()
        sensitivity, expected = system.sum(axis=0), system @ x
        if (expected <= 0).any() or (sensitivity <= 0).any():
            raise ValueError("a ray or a pixel is not seen")
        ctx.step = system.T @ (y / expected) / sensitivity
        ctx.save_for_backward(image=image, sensitivity=sensitivity, expected=expected)
        ctx.system = system
        return pb.asarray(x * ctx.step)

    @mlem_update.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, system = ctx.saved_variables, ctx.system
        gn = grad_output.numpy()
        spread = system @ (gn * s.image.numpy() / s.sensitivity)
        return {"image": pb.asarray(gn * ctx.step), "counts": pb.asarray(spread / s.expected)}

    return mlem_update


def tube(rng):
    return (t(rng.uniform(0.2, 2, 5)), t(rng.dirichlet(np.ones(3))), np.array([0.9, 0.5, 0.3])), {}


@BOOK.wrong(
    tube,
    "the gradient takes no notice of the limit below which the detector sees nothing",
    ZERO,
    at("floor"),
    r"\bclip|\bclamp|\bsaturat|\bstarv|\blimit\b|(?:below|above|under|at|beyond) (?:the|its) floor",
    r"\bthicker\b|thick (?:ray|object|part)|\bbranch\b|constant (?:there|below|where|in forward)",
    r"\bfloor (?:is|was)\b|\bopaque",
    mends(
        "* seen", "seen *", "ctx.seen", "np.where(", "> ctx.floor", "* (passed >", ">= ctx.floor"
    ),
    where="a ray that is weaker than the floor",
    shows=lambda rng: ((t(np.array([0.5, 9.0, 30.0, 1.2])), *tube(rng)[0][1:]), {"floor": 1e-2}),
)
def polychromatic_projection():
    @pb.autograd_function
    def polychromatic_projection(ctx, thickness, spectrum, absorption, floor=1e-5):
        """-log of the part of a spectrum that passes; spectrum, absorption: by energy.

        floor: the weakest intensity that the detector tells from nothing.
        """
        rays = np.exp(-np.outer(thickness.numpy(), absorption))
        passed = rays @ spectrum.numpy()
        ctx.save_for_backward(spectrum=spectrum, rays=rays, passed=passed)
        ctx.absorption = absorption
        return pb.asarray(-np.log(np.maximum(passed, floor)))

    @polychromatic_projection.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        slope = -grad_output.numpy() / s.passed
        return {
            "thickness": pb.asarray(-slope * (s.rays @ (ctx.absorption * s.spectrum.numpy()))),
            "spectrum": pb.asarray(slope @ s.rays),
        }

    return polychromatic_projection


ANGLES = np.linspace(0, np.pi, 5, endpoint=False)


@BOOK.right(lambda rng: ((t(rng.uniform(0, 2, (5, 9))), ANGLES), {"size": 6}))
def filtered_back_projection():
    def ramp(rows, cut):
        frequency = np.fft.rfftfreq(rows.shape[1])
        response = np.where(frequency <= cut, 2 * frequency, 0.0)
        return np.fft.irfft(np.fft.rfft(rows, axis=1) * response, n=rows.shape[1], axis=1)

    def bins_of(angles, size, bins):
        y, x = np.indices((size, size)) - (size - 1) / 2
        along = np.multiply.outer(np.cos(angles), x) + np.multiply.outer(np.sin(angles), y)
        nearest = np.rint(along + (bins - 1) / 2).astype(int)
        return np.clip(nearest, 0, bins - 1)

    @pb.autograd_function
    def filtered_back_projection(ctx, sinogram, angles, size, cut=0.5):
        """Image (size, size) from a sinogram (angles, bins); cut: highest frequency kept."""
        if len(angles) != len(sinogram):
            raise ValueError("there must be an angle for each row")
        ctx.index = bins_of(angles, size, sinogram.shape[1])
        ctx.cut, ctx.shape = cut, sinogram.shape
        rows = ramp(sinogram.numpy(), cut)
        image = sum(row[index] for row, index in zip(rows, ctx.index, strict=True))
        return pb.asarray(np.pi / len(angles) * image)

    @filtered_back_projection.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        n, bins = ctx.shape
        g = grad_output.numpy().ravel()
        rows = [np.bincount(index.ravel(), weights=g, minlength=bins) for index in ctx.index]
        return {"sinogram": pb.asarray(np.pi / n * ramp(np.array(rows), ctx.cut))}

    return filtered_back_projection


RAYS = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 4])
PIXELS = np.array([0, 1, 1, 3, 2, 0, 2, 4, 5, 5])


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0, 2, 6)), t(rng.uniform(0.1, 1.4, 10))),
        {"rays": RAYS, "n_rays": 5},
    )
)
def ray_transmission():
    def forward(ctx, image, lengths, rays, pixels=PIXELS, n_rays=None):
        """Part of each ray that passes; ray rays[k] runs lengths[k] through pixel pixels[k]."""
        if (lengths.numpy() < 0).any():
            raise ValueError("lengths must not be negative")
        n = int(rays.max()) + 1 if n_rays is None else n_rays
        depth = np.bincount(rays, weights=lengths.numpy() * image.numpy()[pixels], minlength=n)
        ctx.save_for_backward(image=image, lengths=lengths, passed=np.exp(-depth))
        ctx.rays, ctx.pixels = rays, pixels
        return pb.asarray(np.exp(-depth))

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        flow = -(g.numpy() * s.passed)[ctx.rays]
        by_image = np.zeros(len(s.image))
        np.add.at(by_image, ctx.pixels, flow * s.lengths.numpy())
        return {
            "image": pb.asarray(by_image),
            "lengths": pb.asarray(flow * s.image.numpy()[ctx.pixels]),
        }

    return pb.autograd_function(forward, backward, name="ray_transmission")


@BOOK.right(
    lambda rng: (
        (t(rng.normal(1, 1, 6)), t(0.08), rng.uniform(0, 1, (6, 4))),
        {"steps": 15, "start": np.full(4, 0.3)},
    )
)
def landweber():
    @pb.autograd_function
    def landweber(ctx, measured, relaxation, system, steps=10, start=0.0):
        """Image after projected Landweber steps, never negative; system: (rays, pixels)."""
        y, tau = measured.numpy(), relaxation.item()
        x = np.zeros(system.shape[1]) + start
        ctx.residuals, ctx.active = [], []
        for _ in range(steps):
            ctx.residuals.append(y - system @ x)
            moved = x + tau * system.T @ ctx.residuals[-1]
            ctx.active.append(moved > 0)
            x = np.maximum(moved, 0)
        ctx.tau, ctx.system = tau, system
        return pb.asarray(x)

    @landweber.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        A, adjoint = ctx.system, grad_output.numpy().copy()
        by_measured, by_relaxation = np.zeros(len(A)), 0.0
        for residual, active in zip(ctx.residuals[::-1], ctx.active[::-1], strict=True):
            adjoint = adjoint * active
            projected = A @ adjoint
            by_relaxation += projected @ residual
            by_measured += ctx.tau * projected
            adjoint = adjoint - ctx.tau * A.T @ projected
        return {
            "measured": pb.asarray(by_measured),
            "relaxation": pb.asarray(np.array(by_relaxation)),
        }

    return landweber


@BOOK.right(lambda rng: ((t(rng.uniform(0, 2, (4, 5))),), {"delta": 0.4, "weights": (1.0, 0.7)}))
def huber_roughness():
    class HuberRoughness(pb.Function):
        """Huber penalty of the differences between neighbours, by weights (down, right)."""

        @staticmethod
        def forward(ctx, image, delta=0.1, weights=(1.0, 1.0)):
            if delta <= 0:
                raise ValueError("delta must be positive")
            ctx.save_for_backward(image=image)
            ctx.delta, ctx.weights = delta, weights
            total = 0.0
            for axis, weight in enumerate(weights):
                size = np.abs(np.diff(image.numpy(), axis=axis))
                costs = np.where(size <= delta, size**2 / 2, delta * (size - delta / 2))
                total += weight * costs.sum()
            return pb.asarray(np.array(total))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            x = ctx.saved_tensors[0].numpy()
            grad = np.zeros_like(x)
            for axis, weight in enumerate(ctx.weights):
                pull = weight * np.clip(np.diff(x, axis=axis), -ctx.delta, ctx.delta)
                grad -= np.diff(pull, axis=axis, prepend=0, append=0)
            return {"image": pb.asarray(grad_output.item() * grad)}

    return HuberRoughness.apply


@BOOK.right(
    lambda rng: ((t(rng.uniform(1, 4, (3, 6))), t(rng.uniform(0, 0.8, (3, 6)))), {"step": 0.5})
)
def attenuated_projection():
    @pb.autograd_function
    def attenuated_projection(ctx, activity, attenuation, step=1.0):
        """Counts along rows; half of the pixel itself and all before it attenuate."""
        ctx.save_for_backward(activity=activity, attenuation=attenuation)
        ctx.step = step
        return step * (activity * survival(attenuation, step)).sum(1)

    def survival(attenuation, step):
        return (-step * (attenuation.cumsum(1) - attenuation / 2)).exp()

    @attenuated_projection.backward
    def _(ctx, g):
        s, step = ctx.saved_variables, ctx.step
        share = step * g[:, None] * survival(s.attenuation, step)
        flow = share * s.activity
        behind = flow.sum(1, keepdim=True) - flow.cumsum(1) + flow / 2
        return {"activity": share, "attenuation": -step * behind}

    return attenuated_projection
