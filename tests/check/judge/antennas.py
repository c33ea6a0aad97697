"""Antennas: array factors, dipoles, links, matching, tapers, patterns, adaptive beams, patches."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import CONJUGATE, FACTOR, MISSING, STATE, Book, at, mends, t

BOOK = Book("antennas")


def like(x, grad):
    """Return a real argument's gradient as a real array."""
    return pb.asarray(grad if x.is_complex() else np.ascontiguousarray(grad.real))


def complex_normal(rng, *shape):
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


@BOOK.wrong(
    lambda rng: ((t(complex_normal(rng, 5)), t(0.5 * np.arange(5)), rng.uniform(-1, 1, 4)), {}),
    "the steering phases are not conjugated in the gradient of the excitation",
    CONJUGATE,
    r"exp\(-1?j|(?:wrong|opposite|other) sign (?:of|in) the (?:phase|exponent)|adjoint|hermitian",
    r"sign of the (?:phase|exponent|imaginary part)|imaginary part",
    mends(
        "steering.conj().T @ gn",
        "steering.T.conj() @ gn",
        "gn @ steering.conj()",
        "np.conj(steering).T @ gn",
        "np.conj(steering.T) @ gn",
        "np.conj(gn.conj() @ steering)",
        "(steering.conj()).T @ gn",
    ),
)
def array_factor():
    @pb.autograd_function
    def array_factor(ctx, excitation, positions, angles):
        """Array factor of a line of elements; positions in wavelengths, angles from broadside."""
        steering = np.exp(2j * np.pi * np.sin(angles)[:, None] * positions.numpy())
        ctx.save_for_backward(excitation=excitation, steering=steering, sines=np.sin(angles))
        return pb.asarray(steering @ excitation.numpy())

    @array_factor.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        steering = s.steering
        turned = 2j * np.pi * s.sines[:, None] * steering * s.excitation.numpy()
        return {
            "excitation": pb.asarray(steering.T @ gn),
            "positions": pb.asarray((gn[:, None].conj() * turned).real.sum(axis=0)),
        }

    return array_factor


def dipole(rng):
    return (t(rng.uniform(0.3, 2.8, 6)), t(rng.uniform(0.3, 0.8))), {}


@BOOK.wrong(
    dipole,
    "the broadside value by which the pattern is divided is taken for constant in the length",
    at("normalise"),
    MISSING,
    r"(?:broadside|peak|divisor|denominator|normali[sz]\w+).{0,60}(?:constant|depend|differentiat)",
    r"quotient rule|normalisation.{0,30}(?:missing|left out|ignored|forgot)",
    mends(
        "by_length -= pattern * np.pi * np.sin(half) / peak",
        "by_length - pattern * np.pi * np.sin(half)",
        "- pattern * np.pi * np.sin(half)",
        "np.pi * np.sin(half) * pattern",
        "- pattern * (np.pi * np.sin(half)",
    ),
    where="normalise=True",
    shows=lambda rng: (dipole(rng)[0], {"normalise": True}),
)
def dipole_pattern():
    def forward(ctx, theta, length, normalise=False):
        """Far field of a thin dipole, theta from its axis, length in wavelengths."""
        half, th = np.pi * length.numpy(), theta.numpy()
        if (np.abs(np.sin(th)) < 1e-9).any():
            raise ValueError("the pattern is not evaluated along the axis")
        pattern = (np.cos(half * np.cos(th)) - np.cos(half)) / np.sin(th)
        peak = 1 - np.cos(half) if normalise else 1.0
        ctx.save_for_backward(theta=theta, length=length, pattern=pattern / peak, peak=peak)
        return pb.asarray(pattern / peak)

    @pb.once_differentiable
    def backward(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        half, th = np.pi * s.length.numpy(), s.theta.numpy()
        pattern, peak = s.pattern, s.peak
        inner = half * np.cos(th)
        by_theta = half * np.sin(inner) / peak - pattern / np.tan(th)
        by_length = np.pi * (np.sin(half) - np.cos(th) * np.sin(inner)) / np.sin(th) / peak
        return {
            "theta": pb.asarray(gn * by_theta),
            "length": pb.asarray(np.array((gn * by_length).sum())),
        }

    return pb.autograd_function(forward, backward, name="dipole_pattern")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(5, 90, 5)), t(rng.normal(10, 2, 5))), {}),
    "beyond the breakpoint the slope of free space is used",
    at("breakpoint"),
    FACTOR + r"|multipl|divided by",
    r"(?:beyond|past|above|>|far) .{0,25}\bbreakpoint|free.space|\bexponent\b",
    r"(?:>=?|above|beyond|over) ?100\b",
    mends(
        "np.where(d > s.breakpoint, 40, 20)",
        "np.where(d > s.breakpoint, 40.0, 20.0)",
        "np.where(d <= s.breakpoint, 20, 40)",
        "np.where(d <= s.breakpoint, 20.0, 40.0)",
        "np.where(far, 40",
        "* (1 + (d > s.breakpoint))",
    ),
    where="a distance beyond the breakpoint",
    shows=lambda rng: ((t(rng.uniform(80, 300, 5)), t(rng.normal(10, 2, 5))), {}),
)
def link_budget():
    @pb.autograd_function
    def link_budget(ctx, distance, gain_db, wavelength=0.125, breakpoint=100.0):
        """Received level in dB: free space up to the breakpoint, fourth power beyond it."""
        d = distance.numpy()
        if (d <= 0).any():
            raise ValueError("distances must be positive")
        near = 20 * np.log10(4 * np.pi * np.minimum(d, breakpoint) / wavelength)
        far = 40 * np.log10(np.maximum(d / breakpoint, 1.0))
        ctx.save_for_backward(distance=distance, breakpoint=breakpoint)
        return pb.asarray(gain_db.numpy() - near - far)

    @link_budget.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        d = s.distance.numpy()
        slope = 20 / (np.log(10) * d)
        return {"distance": pb.asarray(-grad_output.numpy() * slope), "gain_db": grad_output}

    return link_budget


def load(rng):
    return (t(np.array(30.0 + 45j)), t(rng.uniform(0.1, 0.4, 3))), {"attenuation": 0.2}


@BOOK.wrong(
    load,
    "the way back along the line is forgotten: the slope in the length lacks the factor 2",
    FACTOR + r"|multipl|divided by",
    r"\bround.trip\b|there and back|way back|twice the",
    mends(
        "-2 * s.gamma * s.inside",
        "-2.0 * s.gamma * s.inside",
        "-2 * (s.gamma * s.inside)",
        "s.gamma * s.inside * -2",
        "-s.gamma * s.inside * 2",
        "2 * -s.gamma * s.inside",
        "-s.gamma * 2 * s.inside",
    ),
)
def line_reflection():
    @pb.autograd_function
    def line_reflection(ctx, load, length, impedance=50.0, attenuation=0.0):
        """Reflection seen at the start of a line (length in wavelengths) that ends in load."""
        at_load = (load.numpy() - impedance) / (load.numpy() + impedance)
        gamma = attenuation + 2j * np.pi
        inside = at_load * np.exp(-2 * gamma * length.numpy())
        ctx.save_for_backward(load=load, length=length, inside=inside, gamma=gamma)
        ctx.impedance = impedance
        return pb.asarray(inside)

    @line_reflection.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_load = 2 * ctx.impedance / (s.load.numpy() + ctx.impedance) ** 2
        travelled = np.exp(-2 * s.gamma * s.length.numpy())
        slope = -s.gamma * s.inside
        return {
            "load": pb.asarray(np.array((gn * np.conj(by_load * travelled)).sum())),
            "length": pb.asarray((gn.conj() * slope).real),
        }

    return line_reflection


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.3, 1, 6)),), {}),
    "the sum of the weights is conjugated in the gradient, which is the same for real weights only",
    CONJUGATE,
    r"\bcomplex\b.{0,40}(?:weights|wrong|input|value|dtype)|(?:real|imaginary) (?:weights|part)",
    r"\bright (?:if|when|where|for|with) .{0,25}\breal\b|imaginary part",
    mends(
        "total / (n * power)",
        "2 * total /",
        "total / (len(w) * power)",
        "total * 2 /",
        "total - np.abs(total) ** 2 * w / power",
    ),
    where="complex weights",
    shows=lambda rng: ((t(complex_normal(rng, 6)),), {}),
)
def taper_efficiency():
    class TaperEfficiency(pb.Function):
        """Aperture efficiency of real or complex weights: |sum w|^2 / (n sum |w|^2)."""

        @staticmethod
        def forward(ctx, weights):
            w = weights.numpy()
            power = (np.abs(w) ** 2).sum()
            ctx.save_for_backward(weights)
            return pb.asarray(np.array(np.abs(w.sum()) ** 2 / (w.size * power)))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            w = ctx.saved_tensors[0].numpy()
            n, total = w.size, w.sum()
            power = (np.abs(w) ** 2).sum()
            efficiency = np.abs(total) ** 2 / (n * power)
            grad = 2 * total.conj() / (n * power) - 2 * efficiency * w / power
            return pb.asarray(g.item() * grad)

    return TaperEfficiency.apply


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.2, 2, (5, 8))),), {}),
    "the radiated power is kept outside the call: backward takes that of the latest pattern",
    STATE,
    r"most recent|\blatest (?:call|pattern)|\blast (?:call|pattern|forward)|other call|\bshared\b",
    mends("ctx.power = ", "power=power", "ctx.save_for_backward(field=field, power", "/ s.power"),
    where="second use before backward",
)
def directivity():
    latest = {}

    def weights(n_theta, n_phi):
        theta = (np.arange(n_theta) + 0.5) * np.pi / n_theta
        cell = np.pi / n_theta * 2 * np.pi / n_phi
        return np.sin(theta)[:, None] * cell

    @pb.autograd_function
    def directivity(ctx, field):
        """Directivity of a pattern |field|^2 on a (theta, phi) grid of cell centres, in dB."""
        intensity = field.numpy() ** 2
        latest["power"] = (intensity * weights(*intensity.shape)).sum()
        ctx.save_for_backward(field=field)
        return pb.asarray(10 * np.log10(4 * np.pi * intensity / latest["power"]))

    @directivity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        f = ctx.saved_variables.field.numpy()
        g = grad_output.numpy() * 10 / np.log(10)
        grad = 2 * g / f - g.sum() * 2 * f * weights(*f.shape) / latest["power"]
        return {"field": pb.asarray(grad)}

    return directivity


@BOOK.right(lambda rng: ((t(complex_normal(rng, 4, 12)), np.array([-0.3, 0.1, 0.7])), {}))
def capon_power():
    @pb.autograd_function
    def capon_power(ctx, snapshots, angles, loading=0.1):
        """Minimum variance spectrum of a half-wave line array; snapshots: (elements, times)."""
        X = snapshots.numpy()
        n, times = X.shape
        R = X @ X.conj().T / times + loading * np.eye(n)
        A = np.exp(1j * np.pi * np.arange(n)[:, None] * np.sin(angles))
        U = np.linalg.solve(R, A)
        power = 1 / (A.conj() * U).sum(axis=0).real
        ctx.save_for_backward(snapshots=snapshots, U=U, power=power)
        return pb.asarray(power)

    @capon_power.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        X = s.snapshots.numpy()
        grad_R = s.U * (g.numpy() * s.power**2) @ s.U.conj().T
        return {"snapshots": like(s.snapshots, 2 * grad_R @ X / X.shape[1])}

    return capon_power


@BOOK.right(
    lambda rng: ((t(rng.uniform(0.5, 1, 8)), np.linspace(-1.4, 1.4, 41)), {"main_lobe": 0.35})
)
def sidelobe_level():
    @pb.autograd_function
    def sidelobe_level(ctx, amplitudes, angles, main_lobe=0.3):
        """Highest lobe outside the main one, in dB below broadside, and the angle's index.

        amplitudes: (n,), angles: (m,).
        """
        n = len(amplitudes)
        phase = np.pi * (np.arange(n) - (n - 1) / 2) * np.sin(angles)[:, None]
        outside = np.abs(angles) > main_lobe
        if not outside.any():
            raise ValueError("no angle lies outside the main lobe")
        level = np.abs(np.exp(1j * phase) @ amplitudes.numpy())
        k = int(np.argmax(np.where(outside, level, -np.inf)))
        ctx.save_for_backward(amplitudes=amplitudes, row=np.exp(1j * phase[k]))
        total = np.abs(amplitudes.numpy().sum())
        return pb.asarray(np.array(20 * np.log10(level[k] / total))), pb.asarray(np.array(k))

    @sidelobe_level.backward
    @pb.once_differentiable
    def _(ctx, g_level, g_index):
        s = ctx.saved_variables
        a = s.amplitudes.numpy()
        value = s.row @ a
        by_lobe = s.row.conj() * value / np.abs(value) ** 2
        grad = 20 / np.log(10) * (by_lobe - 1 / a.sum().conj())
        return {"amplitudes": like(s.amplitudes, g_level.item() * grad)}

    return sidelobe_level


@BOOK.right(
    lambda rng: (
        (t(complex_normal(rng, 4, 4) + 4 * np.eye(4)), t(complex_normal(rng, 4))),
        {"source_impedance": 2.0},
    )
)
def element_currents():
    @pb.autograd_function
    def element_currents(ctx, coupling, voltages, source_impedance=50.0):
        """Currents (n,) at the feeds of coupled elements; coupling: (n, n), voltages: (n,)."""
        if voltages.ndim != 1:
            raise ValueError("one set of voltages at a time")
        Z = coupling + source_impedance * pb.eye(len(voltages)).to(coupling.dtype)
        currents = pb.linalg.solve(Z, voltages)
        ctx.save_for_backward(coupling=coupling, currents=currents)
        ctx.source_impedance = source_impedance
        return currents

    @element_currents.backward
    def _(ctx, g):
        s = ctx.saved_variables
        Z = s.coupling + ctx.source_impedance * pb.eye(len(g)).to(g.dtype)
        adjoint = pb.linalg.solve(Z.conj().t(), g)
        return {"coupling": -pb.outer(adjoint, s.currents.conj()), "voltages": adjoint}

    return element_currents


@BOOK.right(lambda rng: ((t(rng.uniform(0.5, 2, 6)), t(rng.uniform(-3, 3, 6))), {"bits": 3}))
def quantised_excitation():
    @pb.autograd_function
    def quantised_excitation(ctx, amplitude, phase, bits=4, steer=0.0):
        """Complex feed of elements whose phase shifters have 2**bits states."""
        if amplitude.ndim != 1 or amplitude.shape != phase.shape:
            raise ValueError("amplitude and phase must be lists of the same length")
        step = 2 * np.pi / 2**bits
        wanted = phase.numpy() + np.pi * steer * np.arange(len(phase))
        ctx.feed = np.exp(1j * step * np.round(wanted / step))
        ctx.save_for_backward(amplitude=amplitude)
        return pb.asarray(amplitude.numpy() * ctx.feed)

    @quantised_excitation.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad = g.numpy() * ctx.feed.conj()
        amplitude = like(ctx.saved_variables.amplitude, grad)
        return {"amplitude": amplitude, "phase": pb.zeros(len(ctx.feed))}

    return quantised_excitation


@BOOK.right(lambda rng: ((t(rng.uniform(20, 40)), t(rng.uniform(30, 50)), t(1.57)), {}))
def patch_resonance():
    c = 299_792_458.0

    @pb.autograd_function
    def patch_resonance(ctx, length, width, height, permittivity=4.4):
        """Resonance in Hz of a rectangular patch; sizes in millimetres, width above height."""
        L, W, h = (x.item() for x in (length, width, height))
        if min(L, h) <= 0 or h >= W:
            raise ValueError("sizes must be positive, and the width above the height")
        root = (1 + 12 * h / W) ** -0.5
        eps = (permittivity + 1) / 2 + (permittivity - 1) / 2 * root
        r = W / h
        ratio = (eps + 0.3) * (r + 0.264) / ((eps - 0.258) * (r + 0.8))
        total = (L + 2 * 0.412 * h * ratio) * 1e-3
        frequency = c / (2 * total * eps**0.5)
        ctx.save = (L, W, h, eps, root, r, ratio, total, frequency, permittivity)
        return pb.asarray(np.array(frequency))

    @patch_resonance.backward
    @pb.once_differentiable
    def _(ctx, g):
        _L, W, h, eps, root, r, ratio, total, frequency, permittivity = ctx.save
        eps_r = (permittivity - 1) / 2 * 6 * root**3 / r**2
        ratio_r = ratio * (1 / (r + 0.264) - 1 / (r + 0.8))
        ratio_r += ratio * eps_r * (1 / (eps + 0.3) - 1 / (eps - 0.258))
        to_total = -frequency / total * 1e-3
        to_r = -frequency / (2 * eps) * eps_r + to_total * 0.824 * h * ratio_r
        scale = g.item()
        return (
            pb.asarray(np.array(scale * to_total)),
            pb.asarray(np.array(scale * to_r / h)),
            pb.asarray(np.array(scale * (to_total * 0.824 * ratio - to_r * W / h**2))),
            None,
        )

    return patch_resonance
