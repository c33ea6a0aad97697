"""Microscopy: spots, point-spread functions, deconvolution, stitching, cameras, unmixing."""

from __future__ import annotations

import numpy as np
from scipy import ndimage, optimize, special

import pullback as pb

from .entries import CONJUGATE, FACTOR, REVERSED, SHIFT, STATE, TRANSPOSED, Book, at, mends, t

BOOK = Book("microscopy")


@BOOK.wrong(
    lambda rng: ((t(np.array([2.2, 2.7, 1.1, 400.0, 5.0])),), {"shape": (5, 6)}),
    "the width acts along x and along y, but its gradient has the part along x alone",
    r"\b(?:along|in|of) (?:the )?`?(?:x|y|rows?|columns?)\b|\bboth (?:axes|directions|dimensions)",
    r"(?:missing|left out|lacks?|omits?|forg\w+).{0,40}\b(?:y|rows?|part|half|term)\b",
    r"(?:wide|width|sigma|spot\[2\]).{0,50}(?:missing|half|term|\by\b|factor|times)",
    mends("wide_y", "(ey @ g @ wide_x +", "ctx.along[0][2]"),
)
def pixel_spot():
    def profile(n, centre, sigma):
        """Share of the light in each pixel, and its slopes in the centre and in sigma."""
        edge = (np.arange(n + 1) - 0.5 - centre) / sigma
        density = np.exp(-(edge**2) / 2) / np.sqrt(2 * np.pi) / sigma
        return np.diff(special.ndtr(edge)), -np.diff(density), -np.diff(edge * density)

    @pb.autograd_function
    def pixel_spot(ctx, spot, shape):
        """Expected counts of a molecule; spot: x, y, sigma (pixels), photons, background."""
        x, y, sigma, photons, background = spot.numpy()
        if sigma <= 0:
            raise ValueError("sigma must be positive")
        ctx.along = profile(shape[0], y, sigma), profile(shape[1], x, sigma)
        ctx.photons = photons
        return pb.asarray(photons * np.outer(ctx.along[0][0], ctx.along[1][0]) + background)

    @pixel_spot.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        g = grad_output.numpy()
        (ey, move_y, _), (ex, move_x, wide_x) = ctx.along
        total = [
            ctx.photons * ey @ g @ move_x,
            ctx.photons * move_y @ g @ ex,
            ctx.photons * ey @ g @ wide_x,
            ey @ g @ ex,
            g.sum(),
        ]
        return pb.asarray(np.array(total))

    return pixel_spot


ROUND = np.array([[1.0, 2, 1], [2, 6, 2], [1, 2, 1]]) / 18
COMA = np.array([[0.0, 1, 3], [1, 6, 4], [0, 1, 2]]) / 18


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(1, 5, (4, 5))), t(rng.uniform(1, 5, (4, 5))), ROUND), {}),
    "the gradient goes back through the blur with the psf itself, not with the mirrored one",
    REVERSED,
    r"(?:\bby|should|must|needs?|instead) .{0,20}correlat|\badjoint",
    r"\bsymmetric|asymmetric|rotated|180 ?deg",
    mends("ndimage.correlate(to_blurred", "psf[::-1, ::-1]", "np.flip(", "[::-1, ::-1]"),
    where="a psf without symmetry",
    shows=lambda rng: ((t(rng.uniform(1, 5, (4, 5))), t(rng.uniform(1, 5, (4, 5))), COMA), {}),
)
def sharpen_once():
    def forward(ctx, estimate, image, psf):
        """One step of Richardson and Lucy's deconvolution, dark outside of the image."""
        x = estimate.numpy()
        blurred = ndimage.convolve(x, psf, mode="constant")
        ratio = image.numpy() / blurred
        update = ndimage.correlate(ratio, psf, mode="constant")
        ctx.save_for_backward(x=x, blurred=blurred, ratio=ratio, update=update, psf=psf)
        return pb.asarray(x * update)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        to_ratio = ndimage.convolve(g * s.x, s.psf, mode="constant")
        to_blurred = -to_ratio * s.ratio / s.blurred
        through = ndimage.convolve(to_blurred, s.psf, mode="constant")
        return {
            "estimate": pb.asarray(g * s.update + through),
            "image": pb.asarray(to_ratio / s.blurred),
        }

    return pb.autograd_function(forward, backward, name="sharpen_once")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(5, 5))), t(rng.normal(size=(5, 5)))), {"overlap": 2}),
    "along the other axis the gradients of the tiles are transposed: they are not moved back",
    TRANSPOSED,
    at("axis"),
    r"\baxis ?=? ?-?1\b|moved? back|\bother axis\b|rows and columns",
    mends(
        "np.moveaxis(grad_first, 0, ctx.axis)",
        "np.moveaxis(a, 0, ctx.axis)",
        "np.swapaxes(",
        "0, ctx.axis)",
    ),
    where="axis is 1",
    shows=lambda rng: (
        (t(rng.normal(size=(5, 5))), t(rng.normal(size=(5, 5)))),
        {"overlap": 2, "axis": 1},
    ),
)
def join_tiles():
    class JoinTiles(pb.Function):
        """Two square tiles side by side along `axis`, blended linearly where they overlap."""

        @staticmethod
        def forward(ctx, first, second, overlap, axis=0):
            a, b = np.moveaxis(first.numpy(), axis, 0), np.moveaxis(second.numpy(), axis, 0)
            if not 1 <= overlap <= min(len(a), len(b)):
                raise ValueError("the tiles must overlap, by their length at most")
            ctx.ramp = ((np.arange(overlap) + 0.5) / overlap)[:, None]
            ctx.axis, ctx.sizes = axis, (len(a), len(b))
            blend = (1 - ctx.ramp) * a[len(a) - overlap :] + ctx.ramp * b[:overlap]
            joined = np.concatenate([a[: len(a) - overlap], blend, b[overlap:]])
            return pb.asarray(np.moveaxis(joined, 0, axis))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            g, (n, m) = np.moveaxis(grad_output.numpy(), ctx.axis, 0), ctx.sizes
            grad_first, grad_second = g[:n].copy(), g[-m:].copy()
            grad_first[n - len(ctx.ramp) :] *= 1 - ctx.ramp
            grad_second[: len(ctx.ramp)] *= ctx.ramp
            return {"first": pb.asarray(grad_first), "second": pb.asarray(grad_second)}

    return JoinTiles.apply


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 5))), t(np.array([0.4, -1.3]))), {}),
    "the conjugate is missing: the gradient of the image is shifted on, not back",
    CONJUGATE,
    SHIFT,
    r"(?:wrong|opposite|same|other) (?:direction|way|sign)|\btwice\b|\badjoint|\binverse\b",
    mends("np.conj(", ".conj()", "ramp(-", "/ s.phase"),
)
def correct_drift():
    @pb.autograd_function
    def correct_drift(ctx, image, drift):
        """Image moved by drift = (rows, columns), also by parts of pixels, with Fourier's help."""
        frequency = np.meshgrid(*map(np.fft.fftfreq, image.shape), indexing="ij")
        turn = np.tensordot(drift.numpy(), frequency, 1)
        phase = np.exp(-2j * np.pi * turn)
        spectrum = np.fft.fft2(image.numpy()) * phase
        ctx.save_for_backward(phase=phase, spectrum=spectrum, frequency=frequency)
        return pb.asarray(np.fft.ifft2(spectrum).real.copy())

    @correct_drift.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        grad = np.fft.ifft2(np.fft.fft2(g) * s.phase).real
        slopes = [np.fft.ifft2(-2j * np.pi * f * s.spectrum).real for f in s.frequency]
        by_drift = np.array([(g * slope).sum() for slope in slopes])
        return pb.asarray(grad.copy()), pb.asarray(by_drift)

    return correct_drift


@BOOK.wrong(
    lambda rng: ((t(rng.normal(0, 0.5, 4)),), {}),
    "the wave in the pupil is kept by the plan, not by ctx: a later call overwrites it",
    STATE,
    r"\blater call|another call|\blast call|\bclosure|\bshared\b|\bsave.{0,20}\bctx\b",
    mends("ctx.wave", "wave=wave", "save_for_backward(wave", "s.wave"),
    where="second use",
)
def aberrated_psf():
    class Plan:
        """Pupil and Zernike modes on a grid: tilts, defocus and astigmatism."""

        def __init__(self, n=8):
            y, x = np.mgrid[-1 : 1 : n * 1j, -1 : 1 : n * 1j]
            self.inside = x**2 + y**2 <= 1
            modes = np.array([x, y, 2 * (x**2 + y**2) - 1, x**2 - y**2])
            self.modes = modes * self.inside
            self.n = n

        def forward(self, ctx, coefficients):
            """Intensity in the focal plane; coefficients: (4,) in radians."""
            phase = np.tensordot(coefficients.numpy(), self.modes, 1)
            self.wave = self.inside * np.exp(1j * phase)
            focus = np.fft.fft2(self.wave) / self.inside.sum()
            return pb.asarray(np.abs(focus) ** 2)

        def backward(self, ctx, grad_output):
            focus = np.fft.fft2(self.wave) / self.inside.sum()
            flow = np.fft.ifft2(grad_output.numpy() * focus) * self.n**2 / self.inside.sum()
            to_phase = -2 * (self.wave * flow.conj()).imag
            return {"coefficients": pb.asarray((self.modes * to_phase).sum(axis=(1, 2)))}

    plan = Plan()
    return pb.autograd_function(
        plan.forward, pb.once_differentiable(plan.backward), name="aberrated_psf"
    )


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(5, 30, (3, 2, 4))),
            t(rng.uniform(1.8, 2.4, (2, 4))),
            rng.uniform(110, 170, (3, 2, 4)),
        ),
        {"variance": rng.uniform(1, 4, (2, 4))},
    ),
    "the gradient of the gain is a mean over the frames where it has to be their sum",
    FACTOR + r"|multipl|divided by",
    r"\bmean\b|\baverage|sum(?:med)? over|(?:number of|all|across|of the|the) frames",
    mends("(-to_counts * counts / s.gain).sum(axis=0)", ".sum(axis=0)", ".sum(0)", "* len("),
)
def camera_nll():
    @pb.autograd_function
    def camera_nll(ctx, expected, gain, frames, offset=100.0, variance=0.0):
        """Loss of expected photons for an sCMOS camera (Huang 2013), each pixel with its gain.

        expected, frames: (k, h, w); gain: (h, w) in counts a photon; variance: in photons.
        """
        counts = (frames - offset) / gain.numpy()
        rate = expected.numpy() + variance
        if (rate <= 0).any():
            raise ValueError("expected photons and variance must be positive")
        ctx.save_for_backward(gain=gain, counts=counts + variance, rate=rate, bare=counts)
        return pb.asarray(np.array((rate - (counts + variance) * np.log(rate)).sum()))

    @camera_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        to_counts = -g.item() * np.log(s.rate)
        return {
            "expected": pb.asarray(g.item() * (1 - s.counts / s.rate)),
            "gain": pb.asarray((-to_counts * s.bare / s.gain.numpy()).mean(axis=0)),
        }

    return camera_nll


@BOOK.right(lambda rng: ((t(rng.uniform(-2, 40, (3, 4))), t(np.array(1.7))), {"read": 1.2}))
def stabilised_counts():
    @pb.autograd_function
    def stabilised_counts(ctx, image, gain, read=0.0, offset=0.0):
        """Generalised Anscombe transform: Poisson counts with Gaussian noise to unit variance."""
        if gain.ndim or gain.item() <= 0 or read < 0:
            raise ValueError("one positive gain, and read noise must not be negative")
        under = gain * (image - offset) + 0.375 * gain**2 + read**2
        ctx.save_for_backward(image=image, gain=gain)
        ctx.noise = read, offset
        return 2 / gain * under.clamp(min=0.0).sqrt()

    @stabilised_counts.backward
    @pb.once_differentiable
    def _(ctx, g):
        (image, gain), (read, offset) = ctx.saved_tensors, ctx.noise
        under = gain * (image - offset) + 0.375 * gain**2 + read**2
        lit = under > 0
        root = pb.where(lit, under, 1.0).sqrt()
        by_image = pb.where(lit, g / root, 0.0)
        by_gain = (image - offset + 0.75 * gain) * by_image / gain
        by_gain = by_gain - pb.where(lit, 2 * g * root, 0.0) / gain**2
        return {"image": by_image, "gain": by_gain.sum()}

    return stabilised_counts


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(5, 9, (4, 3, 3)) * np.array([1, 0.8, 0.7, 0.5])[:, None, None]),),
        {"cell": np.array([[True, True, False], [True, True, True], [False, False, True]])},
    )
)
def bleach_corrected():
    def forward(ctx, stack, cell=None, reference=0):
        """Frames (k, h, w) scaled so that the cell is as bright, in each, as in a reference."""
        if stack.ndim != 3 or (cell is not None and np.shape(cell) != stack.shape[1:]):
            raise ValueError("stack must be (k, h, w), and cell (h, w)")
        share = np.ones(stack.shape[1:]) if cell is None else np.asarray(cell, dtype=float)
        ctx.save_for_backward(stack=stack, cell=cell, reference=reference)
        if not share.sum() > 0:
            raise ValueError("the cell must have a pixel")
        mean = (stack * pb.asarray(share / share.sum())).sum(dim=(1, 2))
        if not bool((mean > 0).all()):
            raise ValueError("the cell must be bright in every frame")
        return stack * (mean[reference] / mean).reshape(-1, 1, 1)

    @pb.once_differentiable
    def backward(ctx, g):
        stack, cell, reference = ctx.saved_variables
        x, gn = stack.numpy(), g.numpy()
        share = np.ones(x.shape[1:]) if cell is None else np.asarray(cell, dtype=float)
        share = share / share.sum()
        mean = (x * share).sum(axis=(1, 2))
        scale = mean[reference] / mean
        to_scale = (gn * x).sum(axis=(1, 2))
        to_mean = -to_scale * scale / mean
        to_mean[reference] += (to_scale / mean).sum()
        grad = gn * scale[:, None, None] + to_mean[:, None, None] * share
        return {"stack": pb.asarray(grad)}

    return pb.autograd_function(forward, backward, name="bleach_corrected")


@BOOK.right(lambda rng: ((t(rng.permutation(60).reshape(5, 3, 4) * rng.uniform(0.9, 1)),), {}))
def focus_map():
    @pb.autograd_function
    def focus_map(ctx, stack, step=1.0):
        """Brightest value over the depth (axis 0), and the depth of a parabola's top around it.

        In the first and the last plane the depth is that of the plane.
        """
        x = stack.numpy()
        top = x.argmax(axis=0)[None]
        inside = (top > 0) & (top < len(x) - 1)
        near = [np.take_along_axis(x, np.clip(top + k, 0, len(x) - 1), 0) for k in (-1, 0, 1)]
        before, peak, after = near
        bend = np.where(inside, before - 2 * peak + after, 1.0)
        part = np.where(inside, (before - after) / 2, 0.0) / bend
        ctx.top, ctx.inside, ctx.bend, ctx.part = top, inside, bend, part
        ctx.step, ctx.shape = step, x.shape
        return pb.asarray(peak[0]), pb.asarray(step * (top + part)[0])

    @focus_map.backward
    @pb.once_differentiable
    def _(ctx, g_peak, g_depth):
        flow = np.where(ctx.inside, ctx.step * g_depth.numpy() / ctx.bend, 0.0)
        grad = np.zeros(ctx.shape)
        for k, part in (
            (0, g_peak.numpy()[None] + 2 * flow * ctx.part),
            (-1, flow * (0.5 - ctx.part)),
            (1, flow * (-0.5 - ctx.part)),
        ):
            where = np.clip(ctx.top + k, 0, ctx.shape[0] - 1)
            np.put_along_axis(grad, where, np.take_along_axis(grad, where, 0) + part, 0)
        return {"stack": pb.asarray(grad)}

    return focus_map


SPECTRA = np.array([[0.9, 0.1, 0.0], [0.5, 0.6, 0.1], [0.1, 0.8, 0.4], [0.0, 0.2, 0.9]])


@BOOK.right(
    lambda rng: (
        (
            t(np.array([[3.0, 2.1, 1.0, 0.5], [0.2, 1.5, 2.0, 0.1]]) + rng.uniform(0, 0.1, (2, 4))),
            t(SPECTRA + rng.uniform(0, 0.05, (4, 3))),
        ),
        {},
    )
)
def unmixed():
    @pb.autograd_function
    def unmixed(ctx, pixels, spectra):
        """Amounts of dyes, none negative, of least squares; (n, channels) and (channels, dyes)."""
        S = spectra.numpy()
        if pixels.ndim != 2 or S.ndim != 2 or np.linalg.matrix_rank(S) < S.shape[1]:
            raise ValueError("the spectra must be independent")
        amounts = np.array([optimize.nnls(S, y)[0] for y in pixels.numpy()])
        ctx.save_for_backward(pixels=pixels, spectra=spectra, amounts=amounts)
        return pb.asarray(amounts.reshape(len(pixels), S.shape[1]).copy())

    @unmixed.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, S = ctx.saved_variables, ctx.saved_variables.spectra.numpy()
        by_pixels, by_spectra = np.zeros(s.pixels.shape), np.zeros_like(S)
        for i, (y, x) in enumerate(zip(s.pixels.numpy(), s.amounts, strict=True)):
            used = x > 0
            if not used.any():
                continue
            A = S[:, used]
            lam = np.linalg.solve(A.T @ A, grad_output.numpy()[i, used])
            by_pixels[i] = A @ lam
            by_spectra[:, used] += np.outer(y - S @ x, lam) - np.outer(A @ lam, x[used])
        return {"pixels": pb.asarray(by_pixels), "spectra": pb.asarray(by_spectra)}

    return unmixed


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(150, 900, (2, 3, 3))),
            t(rng.uniform(400, 600, (3, 3))),
            t(rng.uniform(90, 110, (3, 3))),
        ),
        {},
    )
)
def lamp_corrected():
    class LampCorrected(pb.Function):
        """(raw - dark) / (flat - dark) times the mean of flat - dark; raw: (..., h, w)."""

        @staticmethod
        def forward(raw, flat, dark):
            if not raw.shape[-2:] == flat.shape == dark.shape or flat.ndim != 2:
                raise ValueError("flat and dark must be of the camera's shape")
            lamp = flat - dark
            if not bool((lamp > 0).all()):
                raise ValueError("flat must be brighter than dark")
            return (raw - dark) / lamp * lamp.mean()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            raw, flat, dark = ctx.saved_tensors
            lamp = flat - dark
            signal = raw - dark
            to_signal = g * lamp.mean() / lamp
            to_lamp = (g * signal / lamp).sum() / flat.numel() - pb.sum_to_size(
                to_signal * signal / lamp, flat.shape
            )
            by_dark = -pb.sum_to_size(to_signal, flat.shape) - to_lamp
            return {"raw": to_signal, "flat": to_lamp, "dark": by_dark}

    return LampCorrected.apply
