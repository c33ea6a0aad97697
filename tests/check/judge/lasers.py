"""Lasers: resonators, rate equations, amplifiers, nonlinear crystals, pulses, lines, modes."""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

import pullback as pb

from .entries import CONJUGATE, FLOAT32, MAGNITUDE, SHIFT, UNSORTED, ZERO, Book, at, mends, t

BOOK = Book("lasers")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.1, 0.35, 3)), t(rng.uniform(0.5, 0.9, 3))), {}),
    "matrices before and after an element are in the wrong order in its gradient: left for right",
    UNSORTED,
    r"\b(?:prefix|suffix|left|right|earlier|later)\b|commut|\bswap|exchang",
    r"\border (?:of|in)\b|matrix product",
    mends(
        "after[k].T @ outer @ before[k].T",
        "s.after[k].T @ G @ s.before[k].T",
        "after.T @ G @ before.T",
        "s.after[k].T @ G",
        "G @ s.before[k].T",
    ),
)
def resonator_mode():
    @pb.autograd_function
    def resonator_mode(ctx, gaps, focal, wavelength=1.064):
        """Stability and squared spot size of a ring of lenses, seen before the first gap.

        gaps, focal: (n,) in m, each gap before its lens; wavelength in um; spot in mm2.
        """
        steps = [
            np.array([[1.0, d], [-1 / f, 1 - d / f]])
            for d, f in zip(gaps.numpy(), focal.numpy(), strict=True)
        ]
        before = [np.eye(2)]
        for step in steps:
            before.append(step @ before[-1])
        after = [np.eye(2)]
        for step in reversed(steps[1:]):
            after.insert(0, after[0] @ step)
        M = before[-1]
        m = 0.5 * np.trace(M)
        if abs(m) >= 1:
            raise ValueError("the resonator is not stable")
        spot = wavelength / np.pi * abs(M[0, 1]) / np.sqrt(1 - m**2)
        ctx.save_for_backward(gaps=gaps, focal=focal, before=before, after=after, M=M, m=m)
        ctx.wavelength = wavelength
        return pb.asarray(np.array(m)), pb.asarray(np.array(spot))

    @resonator_mode.backward
    @pb.once_differentiable
    def _(ctx, g_stability, g_spot):
        s, scale = ctx.saved_variables, ctx.wavelength / np.pi * g_spot.item()
        rest, B = 1 - s.m**2, s.M[0, 1]
        to_m = g_stability.item() + scale * abs(B) * s.m / rest**1.5
        G = 0.5 * to_m * np.eye(2)
        G[0, 1] += scale * np.sign(B) / np.sqrt(rest)
        grad_gaps, grad_focal = np.zeros(len(s.gaps)), np.zeros(len(s.focal))
        for k, (d, f) in enumerate(zip(s.gaps.numpy(), s.focal.numpy(), strict=True)):
            inner = s.before[k].T @ G @ s.after[k].T
            grad_gaps[k] = inner[0, 1] - inner[1, 1] / f
            grad_focal[k] = (inner[1, 0] + inner[1, 1] * d) / f**2
        return {"gaps": pb.asarray(grad_gaps), "focal": pb.asarray(grad_focal)}

    return resonator_mode


@BOOK.wrong(
    lambda rng: (
        (t(np.array(2.5)), t(np.array(0.6)), t(np.array([1.3, 0.2]) + 0.05 * rng.normal(size=2))),
        {"steps": 6, "dt": 0.15},
    ),
    "each step's slopes are taken at the state after the step, not before: off by one",
    SHIFT,
    r"\bafter\b|\bbefore\b|\bprevious\b|\bnext\b|\bfollowing\b|\bpreceding\b|\btoo late\b",
    r"(?:another|other|wrong|different) (?:state|point|value|place|step|time)|evaluated at",
    mends(
        "s.path[k]",
        "s.path[:-1]",
        "s.path[k - 1]",
        "range(len(s.path) - 2, -1, -1)",
    ),
)
def relaxation_oscillation():
    class RelaxationOscillation(pb.Function):
        """Photon numbers of a laser after switching on, by Euler's steps of the rate equations.

        pump: (), 1 at threshold; coupling: (), the upper level's rate; start: (2,), inversion
        and photons; times are in lifetimes of the cavity.
        """

        @staticmethod
        def forward(ctx, pump, coupling, start, steps=20, dt=0.1, spontaneous=1e-3):
            path = np.empty((steps + 1, 2))
            path[0] = start.numpy()
            P, c = pump.item(), coupling.item()
            for k in range(steps):
                N, S = path[k]
                path[k + 1, 0] = N + dt * c * (P - N - N * S)
                path[k + 1, 1] = S + dt * ((N - 1) * S + spontaneous * N)
            ctx.save_for_backward(path=path, P=P, c=c, dt=dt, spontaneous=spontaneous)
            return pb.asarray(path[1:, 1].copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, gn = ctx.saved_variables, grad_output.numpy()
            grad_P = grad_c = to_N = to_S = 0.0
            for k in reversed(range(len(gn))):
                N, S = s.path[k + 1]
                to_S += gn[k]
                grad_P += to_N * s.dt * s.c
                grad_c += to_N * s.dt * (s.P - N - N * S)
                to_N, to_S = (
                    to_N * (1 - s.dt * s.c * (1 + S)) + to_S * s.dt * (S + s.spontaneous),
                    to_S * (1 + s.dt * (N - 1)) - to_N * s.dt * s.c * N,
                )
            return {
                "pump": grad_P,
                "coupling": grad_c,
                "start": pb.asarray(np.array([to_N, to_S])),
            }

    return RelaxationOscillation.apply


def seed_pulses(rng, **settings):
    args = t(rng.uniform(0.05, 0.6, 4)), t(rng.uniform(1.5, 4.0, 4)), t(np.array(1.1))
    return args, settings


@BOOK.wrong(
    seed_pulses,
    "backward goes through one pass of the amplifier, however many passes there were",
    at("passes"),
    r"\bpass(?:es)?\b.{0,40}(?:ignored|not used|above 1|more than|other than|only|one|single)",
    r"(?:single|one|first|last|only) pass\b|\bloop\b|chain rule",
    mends(
        "for fluence, gain in reversed",
        "reversed(s.history",
        "reversed(list(s.history",
        "s.history[::-1]",
        "in reversed(range(len(s.history",
        "reversed(ctx.history",
        "for k in reversed",
    ),
    where="passes above 1",
    shows=lambda rng: seed_pulses(rng, passes=3),
)
def multipass_amplifier():
    @pb.autograd_function
    def multipass_amplifier(ctx, fluence, gain, saturation, passes=1):
        """Fluence of pulses after an amplifier that they deplete (Frantz and Nodvik).

        fluence, gain: (n,), the gain is that of a weak pulse; saturation: () in J/cm2.
        """
        F, G, full = fluence.numpy(), gain.numpy(), saturation.item()
        if (G < 1).any() or passes < 1:
            raise ValueError("a gain is 1 at least, and so is the number of passes")
        history = []
        for _ in range(passes):
            history.append((F, G))
            grown = full * np.log1p(G * np.expm1(F / full))
            G = G * np.exp((F - grown) / full)
            F = grown
        ctx.history, ctx.full = history, full
        return pb.asarray(F)

    @multipass_amplifier.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, full = grad_output.numpy(), ctx.full
        F, G = ctx.history[0]
        rise = np.expm1(F / full)
        total = 1 + G * rise
        by_F = G * (rise + 1) / total
        by_full = np.log(total) - by_F * F / full
        return {
            "fluence": pb.asarray(gn * by_F),
            "gain": pb.asarray(gn * full * rise / total),
            "saturation": gn @ by_full,
        }

    return multipass_amplifier


def crystal(rng, mismatch):
    return (
        t(rng.uniform(0.5, 3.0, 4)),
        t(np.array(mismatch) * rng.uniform(0.9, 1.1, 4)),
        t(np.array(1.5)),
    ), {"efficiency": 0.08}


@BOOK.wrong(
    lambda rng: crystal(rng, [-2.0, 0.6, 1.9, 3.1]),
    "at zero mismatch the slope of sinc**2 is 0/0, and the gradient is NaN",
    ZERO,
    MAGNITUDE,
    r"0 ?/ ?0|division by|divides? by|removable|singular|phase.match(?:ed|ing)|perfect",
    mends(
        "np.where(s.half == 0",
        "np.where(half == 0",
        "s.half != 0",
        "np.where(s.half != 0",
        "np.where(np.abs(s.half)",
        "where=s.half",
        "np.nan_to_num(",
    ),
    where="a mismatch of zero",
    shows=lambda rng: crystal(rng, [-2.0, 0.0, 1.9, 0.0]),
)
def second_harmonic():
    def forward(ctx, power, mismatch, length, efficiency=0.05):
        """Power at twice the frequency, without depletion; power in kW, the result in W.

        mismatch: (n,) of the wave vectors in 1/cm; length: () of the crystal in cm.
        """
        P, L = power.numpy(), length.item()
        half = 0.5 * mismatch.numpy() * L
        wave = np.sinc(half / np.pi)
        ctx.save_for_backward(P=P, L=L, half=half, wave=wave, strength=1e3 * efficiency)
        return pb.asarray(1e3 * efficiency * (P * L * wave) ** 2)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s = ctx.saved_variables
        with np.errstate(invalid="ignore"):
            slope = (np.cos(s.half) - s.wave) / s.half
        flow = 2 * s.strength * grad_output.numpy() * s.P * s.L * s.wave
        by_half = flow * s.P * s.L * slope
        return {
            "power": pb.asarray(flow * s.L * s.wave),
            "mismatch": pb.asarray(0.5 * s.L * by_half),
            "length": (flow * s.P * s.wave + by_half * s.half / s.L).sum(),
        }

    return pb.autograd_function(forward, backward, name="second_harmonic")


def short_pulse(rng):
    time = np.linspace(-3, 3, 12)
    field = np.exp(-(time**2) / 2) * np.exp(0.3j * time**2)
    return field + 0.02 * (rng.normal(size=12) + 1j * rng.normal(size=12))


@BOOK.wrong(
    lambda rng: ((t(short_pulse(rng)), t(np.array(0.35)), t(np.array(0.8))), {"step": 0.5}),
    "the phases of dispersion go back without being conjugated: as if forwards again",
    CONJUGATE,
    r"adjoint|\bphase.{0,30}(?:sign|opposite|invers|revers|undo|back)|hermit|complex.{0,20}sign",
    mends(
        "s.phases.conj()",
        "np.conj(s.phases)",
        "np.conjugate(s.phases)",
        "/ s.phases",
        "s.phases.conjugate()",
    ),
)
def split_step():
    class SplitStep(pb.Function):
        """One step of a pulse along a fibre: dispersion, then the Kerr effect.

        field: (n,) complex; dispersion, kerr: () in units of the step's length and power.
        """

        @staticmethod
        def forward(ctx, field, dispersion, kerr, step=0.1, spacing=0.5):
            omega = 2 * np.pi * np.fft.fftfreq(len(field), spacing)
            chirp = 0.5 * omega**2 * step
            phases = np.exp(1j * chirp * dispersion.item())
            spectrum = np.fft.fft(field.numpy()) * phases
            spread = np.fft.ifft(spectrum)
            power = np.abs(spread) ** 2
            out = spread * np.exp(1j * kerr.item() * step * power)
            ctx.save_for_backward(chirp=chirp, phases=phases, spectrum=spectrum, spread=spread)
            ctx.out, ctx.power, ctx.kerr, ctx.step = out, power, kerr.item(), step
            return pb.asarray(out.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, gn = ctx.saved_variables, grad_output.numpy()
            turned = (gn * ctx.out.conj()).imag
            to_spread = gn * np.exp(-1j * ctx.kerr * ctx.step * ctx.power)
            to_spread += 2 * ctx.kerr * ctx.step * turned * s.spread
            to_spectrum = np.fft.fft(to_spread)
            by_dispersion = (to_spectrum * s.spectrum.conj()).imag @ s.chirp / len(gn)
            return {
                "field": pb.asarray(np.fft.ifft(to_spectrum * s.phases)),
                "dispersion": by_dispersion,
                "kerr": ctx.step * turned @ ctx.power,
            }

    return SplitStep.apply


@BOOK.wrong(
    lambda rng: (
        (
            t(2.0 * rng.normal(size=5)),
            t(np.array([3.1, 4.7, 5.3, 2.3, 7.7]) * rng.uniform(0.9, 1.1, 5)),
        ),
        {},
    ),
    "the loss is found again as 1 - (1 - loss): that cancels, and float32 keeps few digits of it",
    FLOAT32,
    r"cancel|round(?:ing|ed|-?off)|\bdigits\b|catastroph|subtract|accura",
    where="float32",
)
def cavity_transmission():
    @pb.autograd_function
    def cavity_transmission(ctx, phase, loss):
        """Transmission of cavities of equal mirrors near resonance.

        phase: half the round trip's, in microradians from resonance; loss: what a mirror does not
        reflect, in parts per million.
        """
        shake, A = np.sin(1e-6 * phase.numpy()), 1e-6 * loss.numpy()
        finesse = 4 * (1 - A) / A**2
        out = 1 / (1 + finesse * shake**2)
        ctx.save_for_backward(phase=phase, loss=loss, out=out)
        return pb.asarray(out.copy())

    @cavity_transmission.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        reflected = 1 - 1e-6 * s.loss.numpy()
        finesse = 4 * reflected / (1 - reflected) ** 2
        by_finesse = 4 * (1 + reflected) / (1 - reflected) ** 3
        wave = 1e-6 * s.phase.numpy()
        flow = -1e-6 * grad_output.numpy() * s.out**2
        return {
            "phase": pb.asarray(flow * finesse * np.sin(2 * wave)),
            "loss": pb.asarray(-flow * by_finesse * np.sin(wave) ** 2),
        }

    return cavity_transmission


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 1.5, 7)), t(np.array(0.7)), t(np.array(0.4)), t(np.array(0.15))),
        {"strength": 2.5},
    )
)
def voigt_absorption():
    @pb.autograd_function
    def voigt_absorption(ctx, detuning, doppler, natural, shift, strength=1.0):
        """Absorption of a line broadened by motion and by collisions.

        detuning: (n,); doppler: standard deviation; natural: half width; all in GHz.
        """
        width, gamma = doppler.item(), natural.item()
        if width <= 0 or gamma < 0:
            raise ValueError("widths must be positive")
        z = (detuning.numpy() - shift.item() + 1j * gamma) / (np.sqrt(2) * width)
        w = special.wofz(z)
        height = strength / (np.sqrt(2 * np.pi) * width)
        ctx.save_for_backward(z=z, w=w, width=width, height=height)
        return pb.asarray(height * w.real)

    @voigt_absorption.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        z, w, width, height = ctx.saved_variables
        gn = height * grad_output.numpy()
        slope = -2 * z * w + 2j / np.sqrt(np.pi)
        by_x = gn * slope.real / (np.sqrt(2) * width)
        by_gamma = -gn * slope.imag / (np.sqrt(2) * width)
        by_width = -gn * (w.real + (z * slope).real) / width
        return {
            "detuning": pb.asarray(by_x),
            "doppler": by_width.sum(),
            "natural": by_gamma.sum(),
            "shift": -by_x.sum(),
        }

    return voigt_absorption


@BOOK.right(
    lambda rng: (
        (t(np.exp(-((np.arange(11.0) - 4.7) ** 2) / 7.3) + 0.01 * rng.random(11)),),
        {"spacing": 2.0},
    )
)
def pulse_duration():
    @pb.autograd_function
    def pulse_duration(ctx, intensity, spacing=1.0, level=0.5):
        """Full width at half of the highest sample, the sides found by straight lines between."""
        x = intensity.numpy()
        peak = int(np.argmax(x))
        below = x < level * x[peak]
        if not below[:peak].any() or not below[peak:].any():
            raise ValueError("the pulse does not fall off on both sides")
        left = int(np.flatnonzero(below[:peak])[-1])
        right = peak + int(np.flatnonzero(below[peak:])[0])
        sides = []
        for low, high in ((left, left + 1), (right, right - 1)):
            rise = x[high] - x[low]
            sides.append((low, high, rise, (level * x[peak] - x[low]) / rise))
        width = (right - sides[1][3]) - (left + sides[0][3])
        ctx.sides, ctx.peak, ctx.shape = sides, peak, x.shape
        ctx.spacing, ctx.level = spacing, level
        return pb.asarray(np.array(width * spacing))

    @pulse_duration.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad, scale = np.zeros(ctx.shape), -ctx.spacing * g.item()
        for low, high, rise, part in ctx.sides:
            grad[low] += scale * (part - 1) / rise
            grad[high] -= scale * part / rise
            grad[ctx.peak] += scale * ctx.level / rise
        return {"intensity": pb.asarray(grad)}

    return pulse_duration


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.3, 1.1, 2.0, 6.0, 14.0]) * rng.uniform(0.95, 1.05, 5)),
            t(np.array(0.03)),
            t(np.array(0.08)),
        ),
        {"rollover": 12.0},
    )
)
def output_power():
    def forward(ctx, pump, loss, mirror, slope=0.6, saturation=20.0, rollover=None):
        """Power of a laser over its pump: none below threshold, bent down above the rollover.

        pump: (n,) in W; loss, mirror: of a round trip, by scattering and by the output mirror.
        """
        P, L, T = pump.numpy(), loss.item(), mirror.item()
        coupled = T / (T + L)
        above = P - saturation * (L + T) / 2
        lasing = above > 0
        power = slope * coupled * np.where(lasing, above, 0.0)
        hot = None if rollover is None else np.exp(-np.maximum(P - rollover, 0) / rollover)
        ctx.save_for_backward(P=P, L=L, T=T, above=above, lasing=lasing, power=power)
        ctx.hot, ctx.steep, ctx.saturation = hot, slope * coupled, saturation
        ctx.rollover = rollover
        return pb.asarray(power if hot is None else power * hot)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_pump = np.zeros_like(gn)
        if ctx.hot is not None:
            by_pump -= gn * ctx.hot * s.power * (ctx.rollover < s.P) / ctx.rollover
            gn = gn * ctx.hot
        by_above = gn * ctx.steep * s.lasing
        to_threshold = -0.5 * ctx.saturation * by_above.sum()
        to_share = gn @ s.power / (s.T + s.L)
        return {
            "pump": pb.asarray(by_pump + by_above),
            "loss": to_threshold - to_share,
            "mirror": to_threshold + to_share * s.L / s.T,
        }

    return pb.autograd_function(forward, backward, name="output_power")


@BOOK.right(
    lambda rng: (
        (
            t(rng.normal(size=(4, 5)) + 1j * rng.normal(size=(4, 5))),
            t(rng.normal(size=(4, 5)) + 1j * rng.normal(size=(4, 5))),
        ),
        {"area": rng.uniform(0.5, 1.5, (4, 5))},
    )
)
def mode_matching():
    class ModeMatching(pb.Function):
        """Part of a beam's power that goes into a mode; both are complex fields on a grid.

        area: of each cell of the grid, all 1 if not given.
        """

        @staticmethod
        def forward(ctx, beam, mode, area=None):
            u, v = beam.numpy(), mode.numpy()
            cell = np.ones(u.shape) if area is None else area
            overlap = (cell * u.conj() * v).sum()
            powers = (cell * np.abs(u) ** 2).sum(), (cell * np.abs(v) ** 2).sum()
            share = np.abs(overlap) ** 2 / (powers[0] * powers[1])
            ctx.save_for_backward(u=u, v=v, cell=cell, overlap=overlap, powers=powers, share=share)
            return pb.asarray(np.array(share))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s = ctx.saved_variables
            scale = 2 * g.item() * s.cell
            through = scale / (s.powers[0] * s.powers[1])
            by_u = through * s.overlap.conj() * s.v - scale * s.share / s.powers[0] * s.u
            by_v = through * s.overlap * s.u - scale * s.share / s.powers[1] * s.v
            return pb.asarray(by_u), pb.asarray(by_v), None

    return ModeMatching.apply


@BOOK.right(
    lambda rng: (
        (
            t(np.array([[0.5, 0.4, 0.3], [0.02, 0.01, 0.03]]) * rng.uniform(0.9, 1.1, (2, 3))),
            t(rng.uniform(0.5, 3.0, 3)),
            t(np.array([0.2, 0.25])),
        ),
        {},
    )
)
def ring_intensity():
    @pb.autograd_function
    def ring_intensity(ctx, gains, saturations, losses, most=1e4):
        """Intensity at which the saturated gain of several media equals the loss, or 0.

        gains: (lasers, media), of a round trip; saturations: (media,); losses: (lasers,).
        """
        g, sat, loss = gains.numpy(), saturations.numpy(), losses.numpy()
        if (loss <= 0).any():
            raise ValueError("losses must be positive")
        out = np.zeros(len(loss))
        for k in np.flatnonzero(g.sum(axis=1) > loss):
            out[k] = optimize.brentq(
                lambda x, k=k: (g[k] / (1 + x / sat)).sum() - loss[k],
                0.0,
                most,
                xtol=1e-13,
                rtol=1e-14,
            )
        ctx.save_for_backward(g=g, sat=sat, out=out)
        return pb.asarray(out.copy())

    @ring_intensity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        inside = s.out[:, None]
        share = 1 / (1 + inside / s.sat)
        steep = (s.g * share**2 / s.sat).sum(axis=1)
        flow = np.where(s.out > 0, grad_output.numpy() / np.where(s.out > 0, steep, 1.0), 0.0)
        by_sat = flow[:, None] * s.g * share**2 * inside / s.sat**2
        return {
            "gains": pb.asarray(flow[:, None] * share),
            "saturations": pb.asarray(by_sat.sum(axis=0)),
            "losses": pb.asarray(-flow),
        }

    return ring_intensity
