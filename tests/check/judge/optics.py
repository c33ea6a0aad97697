"""Optics: rays, lenses, complex fields, diffraction, polarisation, thin films, radiometry."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import (
    CHANGED,
    CONJUGATE,
    FACTOR,
    MISSING,
    STATE,
    Book,
    at,
    t,
)

BOOK = Book("optics")


def field(rng, *shape):
    return t(rng.normal(size=shape) + 1j * rng.normal(size=shape))


@BOOK.wrong(
    lambda rng: ((field(rng, 12), t(3.0)), {"wavelength": 0.8, "spacing": 0.5}),
    "the field is propagated forwards in backward: the transfer function is not conjugated",
    CONJUGATE,
    r"\bback(wards)?.?propagat|propagat\w* (forwards|the wrong way)",
)
def angular_spectrum():
    def transfer(n, distance, wavelength, spacing):
        f = np.fft.fftfreq(n, spacing)
        kz = 2 * np.pi * np.sqrt(np.maximum(1 / wavelength**2 - f**2, 0))
        return kz, np.exp(1j * kz * distance)

    @pb.autograd_function
    def angular_spectrum(ctx, wave, distance, wavelength=1.0, spacing=1.0):
        """Propagate a complex wave: (n,) sampled at `spacing` over a distance."""
        kz, H = transfer(len(wave), distance.item(), wavelength, spacing)
        spectrum = np.fft.fft(wave.numpy()) * H
        ctx.save_for_backward(spectrum=spectrum, kz=kz, H=H)
        return pb.asarray(np.fft.ifft(spectrum))

    @angular_spectrum.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        change = np.fft.ifft(1j * s.kz * s.spectrum)
        return {
            "wave": pb.asarray(np.fft.ifft(np.fft.fft(gn) * s.H)),
            "distance": (gn.conj() * change).real.sum(),
        }

    return angular_spectrum


@BOOK.wrong(
    lambda rng: ((field(rng, 5, 2), t(0.6), t(1.1)), {}),
    "the product rule is left half done: the rotation back also depends on the angle, and its "
    "term is missing",
    MISSING,
    r"product rule|\bboth rotations|\brotat\w+ back|(one|first|second|other) rotation|\bterm\b",
)
def retarder():
    def turn(angle):
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, s], [-s, c]]), np.array([[-s, c], [-c, -s]])

    @pb.autograd_function
    def retarder(ctx, jones, angle, retardance):
        """A wave plate at an angle acts on Jones vectors: (n, 2)."""
        R, dR = turn(angle.item())
        D = np.diag([1, np.exp(1j * retardance.item())])
        ctx.save_for_backward(jones=jones, R=R, dR=dR, D=D)
        return pb.asarray(jones.numpy() @ (R.T @ D @ R).T)

    @retarder.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        x = s.jones.numpy()
        by_angle = s.R.T @ s.D @ s.dR
        by_retardance = s.R.T @ np.diag([0, 1j * s.D[1, 1]]) @ s.R
        return {
            "jones": pb.asarray(gn @ (s.R.T @ s.D @ s.R).conj()),
            "angle": (gn.conj() * (x @ by_angle.T)).real.sum(),
            "retardance": (gn.conj() * (x @ by_retardance.T)).real.sum(),
        }

    return retarder


@BOOK.wrong(
    lambda rng: (
        (t(2 + rng.random((3, 4, 5))), t(0.1 * rng.random((4, 5))), t(1 + rng.random((4, 5)))),
        {},
    ),
    "what the subtraction sends to the dark frame is averaged over the frames, not summed",
    r"\bmean\b|\baverag|number of (frames|exposures)",
    r"\bsum(med)? over\b.{0,20}(frames|axis 0|first axis)",
)
def flat_field():
    @pb.autograd_function
    def flat_field(ctx, raw, dark, flat):
        """(raw - dark) / (flat - dark), times the mean of flat - dark; raw: (frames, h, w)."""
        span = flat.numpy() - dark.numpy()
        signal = raw.numpy() - dark.numpy()
        ctx.save_for_backward(signal=signal, span=span)
        return pb.asarray(signal * (span.mean() / span))

    @flat_field.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_signal = gn * (s.span.mean() / s.span)
        by_gain = (gn * s.signal).sum(axis=0)
        by_span = (by_gain / s.span).mean() - by_gain * s.span.mean() / s.span**2
        return {
            "raw": pb.asarray(by_signal),
            "dark": pb.asarray(-by_signal.mean(axis=0) - by_span),
            "flat": pb.asarray(by_span),
        }

    return flat_field


@BOOK.wrong(
    lambda rng: (
        (t(0.3 * rng.normal(size=(4, 2))), t(0.5 + rng.random(3)), t(1 + rng.random(3))),
        {},
    ),
    "all saved rays are one array, which every later step changes in place",
    CHANGED,
    r"\b(last|final|outgoing) rays?|same array|\balias|\bcopy\b|\bcopied\b",
    r"\brays? (at|after) the (end|last)",
)
def lens_train():
    @pb.autograd_function
    def lens_train(ctx, rays, gaps, focal):
        """Rays (height, angle): (n, 2) cross each gap and then its thin lens."""
        work, before = rays.numpy().copy(), []
        for gap, f in zip(gaps.numpy(), focal.numpy(), strict=True):
            before.append(work)
            work[:, 0] += gap * work[:, 1]
            work[:, 1] -= work[:, 0] / f
        ctx.before = before
        ctx.save_for_backward(gaps=gaps, focal=focal)
        return pb.asarray(work)

    @lens_train.backward
    @pb.once_differentiable
    def _(ctx, g):
        gaps, focal = (v.numpy() for v in ctx.saved_tensors)
        by_height, by_angle = g.numpy().T.copy()
        by_gaps, by_focal = np.zeros_like(gaps), np.zeros_like(focal)
        for i in range(len(gaps) - 1, -1, -1):
            height, angle = ctx.before[i].T
            by_focal[i] = by_angle @ (height + gaps[i] * angle) / focal[i] ** 2
            by_height = by_height - by_angle / focal[i]
            by_gaps[i] = by_height @ angle
            by_angle = by_angle + gaps[i] * by_height
        return {
            "rays": pb.asarray(np.stack([by_height, by_angle], axis=1)),
            "gaps": pb.asarray(by_gaps),
            "focal": pb.asarray(by_focal),
        }

    return lens_train


def beam(**settings):
    return lambda rng: ((t(0.4), t(2 * rng.normal(size=6))), {"wavelength": 0.5, **settings})


@BOOK.wrong(
    beam(),
    "the factor quality is forgotten in the Rayleigh range that backward computes",
    FACTOR,
    at("quality"),
    r"Rayleigh",
    where="quality other than 1",
    shows=beam(quality=1.7),
)
def beam_radius():
    @pb.autograd_function
    def beam_radius(ctx, waist, distance, wavelength: float = 1.0, quality: float = 1.0):
        """Radius of a Gaussian beam with beam quality M^2 at distances from its waist."""
        w, z = waist.item(), distance.numpy()
        rayleigh = np.pi * w**2 / (wavelength * quality)
        radius = w * np.sqrt(1 + (z / rayleigh) ** 2)
        ctx.save_for_backward(waist=waist, distance=distance, radius=radius, wave=wavelength)
        return pb.asarray(radius.copy())

    @beam_radius.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        w, z, flow = s.waist.item(), s.distance.numpy(), g.numpy() / s.radius
        rayleigh = np.pi * w**2 / s.wave
        return {
            "waist": (flow * w * (1 - (z / rayleigh) ** 2)).sum(),
            "distance": pb.asarray(flow * z * (w / rayleigh) ** 2),
        }

    return beam_radius


@BOOK.wrong(
    lambda rng: ((t(rng.random((4, 6))), t(rng.random((4, 6)) / 24)), {}),
    "the spectra are kept in a cache by shape, so backward uses those of the latest call",
    STATE,
    where="second use",
)
def blur_image():
    spectra = {}

    @pb.autograd_function
    def blur_image(ctx, image: pb.Tensor, psf: pb.Tensor) -> pb.Tensor:
        """Circular convolution of an image: (h, w) with a point spread function: (h, w)."""
        both = np.fft.rfft2(image.numpy()), np.fft.rfft2(psf.numpy())
        spectra[image.shape] = both
        ctx.shape = image.shape
        return pb.asarray(np.fft.irfft2(both[0] * both[1], image.shape))

    @blur_image.backward
    @pb.once_differentiable
    def _(ctx, g):
        of_image, of_psf = spectra[ctx.shape]
        G = np.fft.rfft2(g.numpy())
        return {
            "image": pb.asarray(np.fft.irfft2(G * of_psf.conj(), ctx.shape)),
            "psf": pb.asarray(np.fft.irfft2(G * of_image.conj(), ctx.shape)),
        }

    return blur_image


def layer_matrices(n, d, wavelengths):
    """Each layer's matrix and its derivatives by phase and by index: (layers, m, 2, 2)."""
    phase = 2 * np.pi * (n * d)[:, None] / wavelengths
    c, s, n = np.cos(phase), 1j * np.sin(phase), n[:, None] + 0 * phase
    ic = 1j * c
    rows = [
        (c, s / n, n * s, c),
        (1j * s, ic / n, n * ic, 1j * s),
        (0 * s, -s / n**2, s, 0 * s),
    ]
    return [np.stack(row, axis=-1).reshape(*phase.shape, 2, 2) for row in rows]


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1.3, 2.3, 4)), t(rng.uniform(60, 140, 4))),
        {"wavelengths": np.linspace(420.0, 680.0, 7), "substrate": 1.52},
    )
)
def film_reflectance():
    @pb.autograd_function
    def film_reflectance(ctx, index, thickness, *, wavelengths, substrate=1.5, outside=1.0):
        """Reflectance of a stack of layers at normal incidence, for each wavelength."""
        M, by_phase, by_index = layer_matrices(index.numpy(), thickness.numpy(), wavelengths)
        after = [np.tile([[1.0 + 0j], [substrate]], (len(wavelengths), 1, 1))]
        for layer in M[::-1]:
            after.append(layer @ after[-1])
        B, C = after[-1][:, 0, 0], after[-1][:, 1, 0]
        r = (outside * B - C) / (outside * B + C)
        row = np.stack([outside * (1 - r), -(1 + r)], axis=-1) / (outside * B + C)[:, None]
        ctx.save_for_backward(index=index, thickness=thickness)
        ctx.row, ctx.after = (r.conj()[:, None] * row)[:, None], after[-2::-1]
        ctx.M, ctx.by_phase, ctx.by_index, ctx.waves = M, by_phase, by_index, wavelengths
        return pb.asarray(np.abs(r) ** 2)

    @film_reflectance.backward
    @pb.once_differentiable
    def _(ctx, g):
        n, d = (v.numpy() for v in ctx.saved_tensors)
        by_n, by_d, row = np.zeros_like(n), np.zeros_like(d), ctx.row
        flow = 2 * g.numpy()
        for j, after in enumerate(ctx.after):
            phase = flow * (row @ ctx.by_phase[j] @ after).real[:, 0, 0] * 2 * np.pi / ctx.waves
            by_d[j] = n[j] * phase.sum()
            by_n[j] = d[j] * phase.sum() + flow @ (row @ ctx.by_index[j] @ after).real[:, 0, 0]
            row = row @ ctx.M[j]
        return {"index": pb.asarray(by_n), "thickness": pb.asarray(by_d)}

    return film_reflectance


def rays(rng):
    d = rng.normal(size=(6, 3)) * [1, 1, 0.4]
    d[:, 2] = -np.abs(d[:, 2]) - 0.2
    normals = np.array([0.0, 0, 1]) + 0.1 * rng.normal(size=(6, 3))
    unit = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in (d, normals)]
    return (t(unit[0]), t(unit[1]), t(1.45)), {}


@BOOK.right(rays)
def refract():
    def inner(a, b):
        return (a * b).sum(axis=1, keepdims=True)

    class Refract(pb.Function):
        """Refracted directions, totally reflected ones where there are none, and which those are.

        directions, normals: (n, 3) unit vectors that face each other; ratio: of the indices.
        """

        @staticmethod
        def forward(ctx, directions, normals, ratio):
            d, n, e = directions.numpy(), normals.numpy(), ratio.item()
            c = -inner(d, n)
            k = 1 - e**2 * (1 - c**2)
            total = k <= 0
            root = np.sqrt(np.where(total, 1, k))
            ctx.save_for_backward(directions=directions, normals=normals, ratio=ratio)
            ctx.parts = c, root, total
            out = np.where(total, d + 2 * c * n, e * d + (e * c - root) * n)
            return pb.asarray(out), pb.asarray(total[:, 0])

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g, _):
            d, n, e = (v.numpy() for v in ctx.saved_tensors)
            (c, root, total), gn = ctx.parts, g.numpy()
            along = inner(gn, n)
            by_c = along * np.where(total, 2, e - e**2 * c / root)
            by_ratio = np.where(total, 0, inner(gn, d) + along * (c + e * (1 - c**2) / root))
            return {
                "directions": pb.asarray(gn * np.where(total, 1, e) - by_c * n),
                "normals": pb.asarray(gn * np.where(total, 2 * c, e * c - root) - by_c * d),
                "ratio": by_ratio.sum(),
            }

    return Refract.apply


@BOOK.right(lambda rng: ((field(rng, 3, 6), field(rng, 6)), {"gain": 0.7}))
def hologram():
    @pb.autograd_function
    def hologram(ctx, wave, reference, gain=1.0):
        """Intensity where waves: (b, n) meet one reference wave: (n,)."""
        ctx.save_for_backward(wave=wave, reference=reference)
        ctx.gain = gain
        both = wave + reference
        return gain * pb.real(both * pb.conj(both))

    @hologram.backward
    def _(ctx, g):
        wave, reference = ctx.saved_tensors
        by_wave = 2 * ctx.gain * g * (wave + reference)
        return {"wave": by_wave, "reference": by_wave.sum(dim=0)}

    return hologram


@BOOK.right(lambda rng: ((t(0.2 + rng.random((4, 6))), t(rng.normal(size=(4, 6)))), {"pad": 2}))
def far_field():
    @pb.autograd_function
    def far_field(ctx, amplitude, phase, pad=1):
        """Share of the power in each direction behind an aperture, padded to `pad` its size."""
        size = tuple(pad * n for n in amplitude.shape)
        unit = np.exp(1j * phase.numpy())
        F = np.fft.fftshift(np.fft.fft2(amplitude.numpy() * unit, size))
        power = np.abs(F) ** 2
        share = power / power.sum()
        ctx.save_for_backward(amplitude=amplitude, unit=unit, F=F, total=power.sum())
        ctx.share = share.copy()
        return pb.asarray(share)

    @far_field.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_power = (gn - (gn * ctx.share).sum()) / s.total
        back = np.fft.ifft2(np.fft.ifftshift(2 * by_power * s.F)) * gn.size
        h, w = s.amplitude.shape
        turned = back[:h, :w].conj() * s.unit
        return {
            "amplitude": pb.asarray(turned.real.copy()),
            "phase": pb.asarray(-turned.imag * s.amplitude.numpy()),
        }

    return far_field


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(2, 14, 5)), t(rng.uniform(250, 900, (3, 1)))),
        {"emissivity": t(rng.uniform(0.5, 1, 5))},
    )
)
def planck_radiance():
    first, second = 1.191043e8, 14387.77

    @pb.autograd_function
    def planck_radiance(ctx, wavelength, temperature, emissivity=None):
        """Spectral radiance for wavelengths in micrometres and kelvins; the shapes broadcast."""
        w, T = wavelength.numpy(), temperature.numpy()
        x = second / (w * T)
        black = first / w**5 * np.exp(-x) / -np.expm1(-x)
        ctx.save_for_backward(wavelength=wavelength, temperature=temperature, emissivity=emissivity)
        ctx.black, ctx.slope = black, x / -np.expm1(-x)
        return pb.asarray(black.copy() if emissivity is None else black * emissivity.numpy())

    @planck_radiance.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        flow = g * pb.asarray(ctx.black)
        seen = flow if s.emissivity is None else flow * s.emissivity
        slope = pb.asarray(ctx.slope)
        grads = {
            "wavelength": pb.sum_to_size(seen * (slope - 5) / s.wavelength, s.wavelength.shape),
            "temperature": pb.sum_to_size(seen * slope / s.temperature, s.temperature.shape),
        }
        if s.emissivity is not None:
            grads["emissivity"] = pb.sum_to_size(flow, s.emissivity.shape)
        return grads

    return planck_radiance
