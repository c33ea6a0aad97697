"""Spectroscopy: line shapes, absorbance, smoothing, interferograms, baselines, peak areas."""

from __future__ import annotations

import numpy as np
from scipy import ndimage, signal, special

import pullback as pb

from .entries import (
    AXIS,
    BATCH,
    FACTOR,
    MISSING,
    ODD,
    REVERSED,
    SIGN,
    TRANSPOSED,
    Book,
    at,
    mends,
    t,
)

BOOK = Book("spectroscopy")


@BOOK.wrong(
    lambda rng: (
        (
            t(np.array([-1.0, 0.7]) + 0.1 * rng.normal(size=2)),
            t(rng.uniform(1, 3, 2)),
            t(rng.uniform(0.3, 0.6, 2)),
            t(rng.uniform(0.2, 0.5, 2)),
        ),
        {"grid": np.linspace(-3, 3, 31)},
    ),
    "the gaussian width also divides the profile: that term of its gradient is missing",
    MISSING,
    r"prefactor|normali[sz]|in front|product rule|divides|\bheight\b|1 ?/ ?sigma",
    r"(?:only|just|alone).{0,40}(?:through z|argument|inner|chain)",
    mends(
        "s.w.real",
        "slope + s.w",
        "s.w + s.z",
        "s.w + slope",
        "- s.shape",
        "real - s.w",
        "real + s.w",
    ),
)
def voigt_lines():
    @pb.autograd_function
    def voigt_lines(ctx, centre, area, sigma, gamma, grid):
        """Sum of Voigt lines on a grid: (n,); each parameter of the lines: (k,)."""
        width = sigma.numpy() * np.sqrt(2)
        z = (grid[:, None] - centre.numpy() + 1j * gamma.numpy()) / width
        w = special.wofz(z)
        shape = w.real / (width * np.sqrt(np.pi))
        ctx.save_for_backward(area=area.numpy(), width=width, z=z, w=w, shape=shape)
        return pb.asarray(shape @ area.numpy())

    @voigt_lines.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        slope = 2j / np.sqrt(np.pi) - 2 * s.z * s.w
        flow = gn[:, None] * s.area / (s.width * np.sqrt(np.pi))
        sigma = s.width / np.sqrt(2)
        return {
            "centre": pb.asarray(-(flow * slope.real).sum(axis=0) / s.width),
            "area": pb.asarray(gn @ s.shape),
            "sigma": pb.asarray(-(flow * (s.z * slope).real).sum(axis=0) / sigma),
            "gamma": pb.asarray(-(flow * slope.imag).sum(axis=0) / s.width),
        }

    return voigt_lines


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(0.1, 0.8, (4, 2))),
            t(rng.uniform(0.2, 1.5, (2, 6))),
            t(np.array(0.02)),
        ),
        {"path": 1.5},
    ),
    "the stray light's gradient lacks the factor 1 / ln 10 of the decimal logarithm",
    FACTOR + r"|multipl|divided by|2\.30\d|0\.434",
    r"\bln ?\( ?10|\bln 10\b|decimal|natural log|base.?10|base of the log",
    mends("/ LN10", "/ np.log(10", "* LN10", "/ (LN10", "/ math.log(10"),
)
def stray_absorbance():
    LN10 = np.log(10.0)

    @pb.autograd_function
    def stray_absorbance(ctx, concentration, absorptivity, stray, path=1.0):
        """Apparent absorbance of samples: (n, w), with a share of stray light in the beam."""
        true = path * (concentration.numpy() @ absorptivity.numpy())
        transmitted = np.exp(-LN10 * true)
        total = transmitted + stray.item()
        ctx.save_for_backward(concentration, absorptivity, transmitted, total)
        ctx.path, ctx.stray = path, stray.item()
        return pb.asarray(-np.log10(total / (1 + ctx.stray)))

    @stray_absorbance.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        concentration, absorptivity, transmitted, total = ctx.saved_variables
        gn = grad_output.numpy()
        by_true = ctx.path * gn * transmitted / total
        by_stray = (gn * (1 / (1 + ctx.stray) - 1 / total)).sum()
        return (
            pb.asarray(by_true @ absorptivity.numpy().T),
            pb.asarray(concentration.numpy().T @ by_true),
            by_stray,
            None,
        )

    return stray_absorbance


def noisy_peaks(rng):
    x = np.linspace(0, 1, 24)
    peaks = np.exp(-0.5 * ((x - 0.3) / 0.08) ** 2) + 0.6 * np.exp(-0.5 * ((x - 0.7) / 0.1) ** 2)
    return t(peaks + 0.05 * rng.normal(size=(2, 24)))


@BOOK.wrong(
    lambda rng: ((noisy_peaks(rng),), {"window": 5}),
    "backward convolves with the kernel as it is, not reversed; a derivative's kernel is odd",
    REVERSED,
    ODD,
    SIGN,
    TRANSPOSED + r"|adjoint|correlat|anti.?symmetric",
    at("deriv"),
    mends("ndimage.correlate1d", "kernel[::-1]", "np.flip(", "(-1) ** ctx.deriv", "np.correlate("),
    where="deriv is odd",
    shows=lambda rng: ((noisy_peaks(rng),), {"window": 7, "deriv": 1}),
)
def savgol_filtered():
    class SavgolFiltered(pb.Function):
        """Smooth spectra: (b, n), or differentiate them, by local polynomials; zero outside."""

        @staticmethod
        def forward(ctx, spectra, window=7, polyorder=2, deriv=0, delta=1.0):
            if window % 2 == 0 or window <= polyorder:
                raise ValueError("the window does not fit the polynomial")
            kernel = signal.savgol_coeffs(window, polyorder, deriv=deriv, delta=delta)
            ctx.kernel = kernel
            return pb.asarray(ndimage.convolve1d(spectra.numpy(), kernel, mode="constant"))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            by_spectra = ndimage.convolve1d(grad_output.numpy(), ctx.kernel, mode="constant")
            return pb.asarray(by_spectra), None, None, None, None

    return SavgolFiltered.apply


def scans(count):
    def given(rng):
        spectra = rng.uniform(0.2, 1.5, (count, 9)) + rng.normal(size=(count, 1))
        return (t(spectra), t(rng.uniform(0.5, 1.5, 9))), {}

    return given


@BOOK.wrong(
    scans(1),
    "the mean of the gradient is taken over the whole batch instead of each spectrum",
    BATCH,
    AXIS,
    r"\b(?:per|each|every|own|one) (?:row|spectrum|sample)|across (?:rows|spectra|samples)",
    r"mean over (?:everything|all|the whole)|several (?:rows|spectra|samples)|\brows\b",
    mends(
        "flow.mean(axis=1, keepdims=True)",
        "flow.mean(axis=-1, keepdims=True)",
        "flow.mean(1, keepdims=True)",
        "flow.mean(axis=1)",
        "flow.mean(axis=-1)",
        "flow.sum(axis=1",
        "np.mean(flow, axis",
    ),
    where="more than one spectrum",
    shows=scans(3),
)
def standard_normal_variate():
    @pb.autograd_function
    def standard_normal_variate(ctx, spectra, gain):
        """Centre and scale each of the spectra: (b, n), then weight the channels: (n,)."""
        x = spectra.numpy()
        spread = x.std(axis=1, ddof=1, keepdims=True)
        scores = (x - x.mean(axis=1, keepdims=True)) / spread
        ctx.save_for_backward(scores=scores, spread=spread, gain=gain.numpy())
        return pb.asarray(scores * gain.numpy())

    @standard_normal_variate.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        flow = gn * s.gain
        along = (flow * s.scores).sum(axis=1, keepdims=True) / (flow.shape[1] - 1)
        return {
            "spectra": pb.asarray((flow - flow.mean() - s.scores * along) / s.spread),
            "gain": pb.asarray((gn * s.scores).sum(axis=0)),
        }

    return standard_normal_variate


def interferogram(n):
    return lambda rng: ((t(np.exp(-0.2 * np.arange(n)) + 0.3 * rng.normal(size=n)),), {})


@BOOK.wrong(
    interferogram(16),
    "with an odd number of points there is no Nyquist bin: the last bin is to be halved as well",
    ODD,
    r"nyquist|last (?:bin|frequency|element|coefficient|entry)",
    r"\bbin\b|number of points|\blengths?\b",
    mends("[1 : (n + 1) // 2]", "(n + 1) // 2", "(n - 1) // 2", "n % 2", "len(half) - 1 + n % 2"),
    where="odd number of points",
    shows=interferogram(17),
)
def single_beam():
    def forward(ctx, interferogram):
        """Magnitude spectrum of an interferogram from zero path difference on, apodised."""
        n = len(interferogram)
        apodisation = 0.54 + 0.46 * np.cos(np.pi * np.arange(n) / n)
        bins = np.fft.rfft(interferogram.numpy() * apodisation)
        magnitude = np.abs(bins)
        ctx.save_for_backward(apodisation=apodisation, phase=bins / magnitude)
        return pb.asarray(magnitude)

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        n = len(s.apodisation)
        spread = g.numpy() * s.phase
        # irfft counts the bins between the ends twice
        spread[1:-1] /= 2
        return {"interferogram": pb.asarray(n * np.fft.irfft(spread, n) * s.apodisation)}

    return pb.autograd_function(forward, backward, name="single_beam")


@BOOK.wrong(
    lambda rng: (
        (
            t(np.array(296.0)),
            t(np.array([0.0, 120.0, 260.0, 410.0]) + rng.normal(0, 3, 4)),
            t(rng.uniform(0.5, 2.0, 5)),
        ),
        {"lower": np.array([0, 1, 1, 2, 3]), "degeneracy": np.array([1.0, 3.0, 5.0, 7.0])},
    ),
    "the temperature's gradient has the opposite sign: lines from high levels grow with it",
    SIGN,
    r"wrong direction|\bgrows?\b|\breversed\b|mean energy (?:minus|less)",
    mends(
        "s.energy[s.lower] - s.boltzmann",
        "s.energy[s.lower] - mean",
        "-(flow @ (mean",
        "-(mean - s.energy",
        "- flow @",
        "energy[s.lower] -",
    ),
)
def line_intensities():
    # the second radiation constant in cm K
    C2 = 1.438777

    @pb.autograd_function
    def line_intensities(ctx, temperature, energy, strength, lower, degeneracy):
        """Intensities of absorption lines; energy: (levels,) in 1/cm, lower: level by line."""
        T, E = temperature.item(), energy.numpy()
        populations = degeneracy * np.exp(-C2 * (E - E.min()) / T)
        fraction = populations / populations.sum()
        relative = (fraction / degeneracy)[lower]
        out = strength.numpy() * relative
        ctx.save_for_backward(
            T=T, energy=E, lower=lower, fraction=fraction, relative=relative, out=out
        )
        return pb.asarray(out.copy())

    @line_intensities.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        flow = gn * s.out
        mean = s.fraction @ s.energy
        by_temperature = C2 / s.T**2 * (flow @ (mean - s.energy[s.lower]))
        by_energy = s.fraction * flow.sum()
        by_energy -= np.bincount(s.lower, flow, minlength=len(s.energy))
        return {
            "temperature": by_temperature,
            "energy": pb.asarray(C2 / s.T * by_energy),
            "strength": pb.asarray(gn * s.relative),
        }

    return line_intensities


@BOOK.right(
    lambda rng: (
        (
            t(
                2.0
                + 0.03 * np.arange(25)
                + 3.0 * np.exp(-0.5 * ((np.arange(25) - 11) / 2.0) ** 2)
                + 0.1 * rng.normal(size=25)
            ),
            t(np.array(3.0)),
        ),
        {"asymmetry": 0.1},
    )
)
def asymmetric_baseline():
    @pb.autograd_function
    def asymmetric_baseline(ctx, spectrum, smoothness, asymmetry=0.01, iterations=30):
        """Baseline by asymmetric least squares: points above it count less than those below."""
        y = spectrum.numpy()
        D = np.diff(np.eye(len(y)), 2, axis=0)
        rough = D.T @ D
        weights = np.ones_like(y)
        for _ in range(iterations):
            system = np.diag(weights) + smoothness.item() * rough
            baseline = np.linalg.solve(system, weights * y)
            update = np.where(y > baseline, asymmetry, 1 - asymmetry)
            if (update == weights).all():
                break
            weights, used = update, weights
        else:
            weights = used
        ctx.save_for_backward(weights=weights, system=system, rough=rough, baseline=baseline.copy())
        return pb.asarray(baseline)

    @asymmetric_baseline.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        # the weights jump, and are constant between the jumps
        pulled = np.linalg.solve(s.system, g.numpy())
        return {
            "spectrum": pb.asarray(s.weights * pulled),
            "smoothness": -pulled @ s.rough @ s.baseline,
        }

    return asymmetric_baseline


@BOOK.right(
    lambda rng: (
        (t(0.6 + 0.2 * np.sin(np.linspace(0, 3, 12)) - 0.3 * rng.random(12)),),
        {"wavelength": np.sort(rng.uniform(400, 900, 12))},
    )
)
def continuum_removed():
    def upper_hull(x, y):
        chain = []
        for i in range(len(x)):
            while len(chain) > 1:
                a, b = chain[-2:]
                if (y[b] - y[a]) * (x[i] - x[a]) > (y[i] - y[a]) * (x[b] - x[a]):
                    break
                chain.pop()
            chain.append(i)
        return np.array(chain)

    @pb.autograd_function
    def continuum_removed(ctx, reflectance, wavelength):
        """Reflectance divided by its upper convex hull over the wavelengths, which ascend."""
        y = reflectance.numpy()
        hull = upper_hull(wavelength, y)
        continuum = np.interp(wavelength, wavelength[hull], y[hull])
        ctx.save_for_backward(y=y, hull=hull, x=wavelength, continuum=continuum)
        return pb.asarray(y / continuum)

    @continuum_removed.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        grad = gn / s.continuum
        by_continuum = -gn * s.y / s.continuum**2
        knots = s.x[s.hull]
        left = np.clip(np.searchsorted(knots, s.x, side="right") - 1, 0, len(knots) - 2)
        share = (s.x - knots[left]) / (knots[left + 1] - knots[left])
        np.add.at(grad, s.hull[left], (1 - share) * by_continuum)
        np.add.at(grad, s.hull[left + 1], share * by_continuum)
        return {"reflectance": pb.asarray(grad)}

    return continuum_removed


@BOOK.right(
    lambda rng: ((t(rng.uniform(0.1, 1, (4, 6))), t(rng.uniform(0.1, 1, (3, 6)))), {"floor": 1e-9})
)
def spectral_angles():
    class SpectralAngles(pb.Function):
        """Angles between pixels: (n, b) and reference spectra: (m, b), and the best reference."""

        @staticmethod
        def forward(ctx, pixels, references, floor=1e-12):
            p, r = pixels.numpy(), references.numpy()
            np_, nr = np.linalg.norm(p, axis=1), np.linalg.norm(r, axis=1)
            up, ur = p / np_[:, None], r / nr[:, None]
            cosine = np.clip(up @ ur.T, -1.0, 1.0)
            ctx.save_for_backward(up=up, ur=ur, np_=np_, nr=nr, cosine=cosine)
            ctx.floor = floor
            angle = np.arccos(cosine)
            return pb.asarray(angle), pb.asarray(angle.argmin(axis=1))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_angle, g_best):
            s = ctx.saved_variables
            sine = np.sqrt(np.maximum(1 - s.cosine**2, ctx.floor))
            flow = -g_angle.numpy() / sine
            turned = flow * s.cosine
            by_p = (flow @ s.ur - turned.sum(axis=1)[:, None] * s.up) / s.np_[:, None]
            by_r = (flow.T @ s.up - turned.sum(axis=0)[:, None] * s.ur) / s.nr[:, None]
            return pb.asarray(by_p), pb.asarray(by_r), None

    return SpectralAngles.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1, 4, 15)),),
        {"energy": np.cumsum(rng.uniform(0.5, 1.5, 15)), "windows": [(1, 6), (4, 9), (9, 15)]},
    )
)
def peak_areas():
    @pb.autograd_function
    def peak_areas(ctx, counts, energy, windows, net=True):
        """Areas of counts over windows (start, stop) of channels, above a line if net."""
        y, areas, weights = counts.numpy(), [], []
        for start, stop in windows:
            x = energy[start:stop]
            w = np.zeros(stop - start)
            w[:-1] += np.diff(x) / 2
            w[1:] += np.diff(x) / 2
            if net:
                w[[0, -1]] -= (x[-1] - x[0]) / 2
            areas.append(w @ y[start:stop])
            weights.append(w)
        ctx.windows, ctx.weights, ctx.channels = windows, weights, len(y)
        return pb.asarray(np.array(areas))

    @peak_areas.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad = np.zeros(ctx.channels)
        for (start, stop), w, each in zip(ctx.windows, ctx.weights, g.numpy(), strict=True):
            grad[start:stop] += each * w
        return {"counts": pb.asarray(grad)}

    return peak_areas


@BOOK.right(
    lambda rng: (
        (t(np.array(1.2)), t(np.array(0.7)), t(np.array(-1.6)), t(rng.uniform(1, 2, 8))),
        {"energy": np.linspace(0, 3, 8)},
    )
)
def fano_resonance():
    @pb.autograd_function
    def fano_resonance(ctx, centre, width, q, background, energy):
        """Cross-section near a resonance that interferes with its background: (n,)."""
        ctx.save_for_backward(centre=centre, width=width, q=q, background=background)
        ctx.energy = pb.asarray(energy)
        reduced = 2 * (ctx.energy - centre) / width
        return background * (q + reduced) ** 2 / (1 + reduced**2)

    @fano_resonance.backward
    def _(ctx, grad_output):
        s = ctx.saved_variables
        reduced = 2 * (ctx.energy - s.centre) / s.width
        around, bent = 1 + reduced**2, s.q + reduced
        flow = grad_output * s.background
        by_q = flow * 2 * bent / around
        by_reduced = by_q - flow * 2 * reduced * (bent / around) ** 2
        return {
            "centre": -2 * (by_reduced / s.width).sum(),
            "width": -(by_reduced * reduced / s.width).sum(),
            "q": by_q.sum(),
            "background": grad_output * bent**2 / around,
        }

    return fano_resonance
