"""Radar: matched filters, ambiguity, beam patterns, Doppler spectra, detection, tracking."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import CONJUGATE, FACTOR, MISSING, SHIFT, SWAPPED, ZERO, Book, at, mends, t

BOOK = Book("radar")


def noise(rng, *shape):
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


@BOOK.wrong(
    lambda rng: ((t(noise(rng, 12)), t(noise(rng, 4))), {}),
    "the gradient of the pulse is the conjugate of what it should be",
    CONJUGATE,
    r"imag(?:inary)?\b.{0,40}(?:sign|negat|wrong|opposite)",
    r"\bcomplex.valued\b|right (?:if|for) real",
    mends(
        "np.correlate(echo, gn, ",
        "np.conj(np.correlate(np.conj(echo)",
        "echo, gn, 'valid'",
    ),
)
def matched_filter():
    @pb.autograd_function
    def matched_filter(ctx, echo, pulse):
        """Correlate an echo (n,) with the pulse sent (m,); complex baseband, n - m + 1 ranges."""
        if len(pulse) > len(echo):
            raise ValueError("the pulse is longer than the echo")
        ctx.save_for_backward(echo=echo, pulse=pulse)
        return pb.asarray(np.correlate(echo.numpy(), pulse.numpy(), "valid"))

    @matched_filter.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, echo = grad_output.numpy(), ctx.saved_variables.echo.numpy()
        return {
            "echo": pb.asarray(np.convolve(gn, ctx.saved_variables.pulse.numpy())),
            "pulse": pb.asarray(np.correlate(np.conj(echo), np.conj(gn), "valid")),
        }

    return matched_filter


def burst(rng):
    return (t(noise(rng, 6, 3)), t(rng.uniform(0.5, 1, 6))), {}


@BOOK.wrong(
    burst,
    "the inverse transform is scaled with the number of pulses in place of the length n_fft",
    FACTOR + r"|multipl|divided by",
    at("n_fft"),
    r"zero.?pad|padd|(?:number of|len\w* of).{0,20}\bpulses\b|n_fft ?(?:/|!=|>|differs)",
    mends(
        "ctx.n_fft * np.fft.ifft", "axis=0) * ctx.n_fft", "ctx.n_fft * s.window", 'norm="forward"'
    ),
    where="n_fft is not the number of pulses",
    shows=lambda rng: (burst(rng)[0], {"n_fft": 16}),
)
def range_doppler_power():
    class RangeDoppler(pb.Function):
        """Power by Doppler bin and range of a burst; data: (pulses, ranges), window: (pulses,)."""

        @staticmethod
        def forward(ctx, data, window, n_fft=None):
            ctx.n_fft = n_fft or len(window)
            if ctx.n_fft < len(window):
                raise ValueError("n_fft is smaller than the number of pulses")
            tapered = data.numpy() * window.numpy()[:, None]
            spectrum = np.fft.fft(tapered, n=ctx.n_fft, axis=0)
            ctx.save_for_backward(data=data, window=window, spectrum=spectrum)
            return pb.asarray(np.abs(spectrum) ** 2)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s = ctx.saved_variables
            pulses = len(s.window)
            g_spectrum = 2 * grad_output.numpy() * s.spectrum
            g_tapered = pulses * np.fft.ifft(g_spectrum, axis=0)[:pulses]
            return {
                "data": pb.asarray(g_tapered * s.window.numpy()[:, None]),
                "window": pb.asarray((g_tapered.conj() * s.data.numpy()).real.sum(axis=1)),
            }

    return RangeDoppler.apply


def array(rng):
    return (t(noise(rng, 5)), t(rng.uniform(-1, 1, 7)), t(np.arange(5) * 0.5)), {}


@BOOK.wrong(
    array,
    "with normalise the gradient leaves out that the peak itself changes",
    MISSING,
    at("normalise"),
    r"\bpeak\b|\bmax(?:imum)?\b|quotient|denominator|largest",
    mends(
        "gn[peak] -=",
        "gn[top] -=",
        "gn[s.power.argmax()]",
        "gn[np.argmax(s.power)]",
        "[s.power.argmax()] -=",
        "[np.argmax(s.power)] -=",
    ),
    where="normalise=True",
    shows=lambda rng: (array(rng)[0], {"normalise": True}),
)
def beam_pattern():
    @pb.autograd_function
    def beam_pattern(ctx, weights, angles, positions, normalise=False):
        """Power received from each angle (rad); positions of the elements in wavelengths.

        normalise: give it in relation to the peak.
        """
        steering = np.exp(2j * np.pi * np.outer(np.sin(angles.numpy()), positions.numpy()))
        field = steering @ weights.numpy().conj()
        power = np.abs(field) ** 2
        ctx.save_for_backward(weights=weights, angles=angles, positions=positions, power=power)
        ctx.steering, ctx.field, ctx.normalise = steering, field, normalise
        return pb.asarray(power / power.max() if normalise else power.copy())

    @beam_pattern.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy().copy()
        if ctx.normalise:
            gn /= s.power.max()
        g_field = 2 * gn * ctx.field
        w, phi = s.weights.numpy(), s.angles.numpy()
        g_phase = (g_field.conj()[:, None] * 2j * np.pi * ctx.steering * w.conj()).real
        return {
            "weights": pb.asarray(ctx.steering.T @ g_field.conj()),
            "angles": pb.asarray(np.cos(phi) * (g_phase @ s.positions.numpy())),
            "positions": pb.asarray(np.sin(phi) @ g_phase),
        }

    return beam_pattern


PLOTS = np.array([10.0, 12.1, 13.8, 16.2, 18.1, 19.7, 22.0])


@BOOK.wrong(
    lambda rng: ((t(PLOTS + rng.normal(0, 0.1, 7)), t(0.6), t(0.2)), {}),
    "a plot outside the gate does not correct the track, but the gradient takes it as if it did",
    r"\bgat(?:ed|ing)\b|(?:outside|beyond|inside|within|in) .{0,12}\bgate|outlier|\breject",
    r"\bmissed\b|\bskipp|\bcoast|\bdiscard|\bignored (?:plot|measurement)",
    at("gate"),
    ZERO,
    r"innovation.{0,40}(?:large|exceed|beyond|more than|above|>)",
    mends("if s.used[k]", "if not s.used[k]", "s.used[k] *", "* s.used[k]", "gn * s.used"),
    where="a plot outside the gate",
    shows=lambda rng: ((t(PLOTS + np.array([0, 0, 0, 30.0, 0, 0, 0])), t(0.6), t(0.2)), {}),
)
def alpha_beta_track():
    @pb.autograd_function
    def alpha_beta_track(ctx, plots, alpha, beta, dt=1.0, gate=8.0):
        """Smoothed ranges of an alpha-beta tracker, which coasts over plots outside its gate."""
        z, a, b = plots.numpy(), alpha.item(), beta.item()
        x, v = z[0], (z[1] - z[0]) / dt
        out, residuals, used = [x], np.zeros(len(z)), np.zeros(len(z), dtype=bool)
        for k in range(1, len(z)):
            x = x + dt * v
            residuals[k] = z[k] - x
            used[k] = abs(residuals[k]) < gate
            if used[k]:
                x, v = x + a * residuals[k], v + b / dt * residuals[k]
            out.append(x)
        ctx.save_for_backward(alpha=alpha, beta=beta, residuals=residuals, used=used, dt=dt)
        return pb.asarray(np.array(out))

    @alpha_beta_track.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        a, b, dt = s.alpha.item(), s.beta.item(), s.dt
        grad_z, grad_a, grad_b = np.zeros_like(gn), 0.0, 0.0
        to_x = to_v = 0.0
        for k in reversed(range(1, len(gn))):
            to_x += gn[k]
            grad_a += to_x * s.residuals[k]
            grad_b += to_v * s.residuals[k] / dt
            grad_z[k] = a * to_x + b / dt * to_v
            to_x -= grad_z[k]
            to_v += dt * to_x
        grad_z[0] = gn[0] + to_x - to_v / dt
        grad_z[1] += to_v / dt
        return (*map(pb.asarray, (grad_z, np.array(grad_a), np.array(grad_b))), None, None)

    return alpha_beta_track


@BOOK.wrong(
    lambda rng: ((t(rng.exponential(size=11)),), {"train": 2, "guard": 1}),
    "towards the ends the gradient divides by the number of cells around the cell that receives "
    "it, where the number around the cell under test counts",
    r"\b(?:ends?|edges?|border|boundar\w+)\b|(?:first|last) (?:\w+ )?(?:cells?|elements?|entries)",
    r"\bcounts?\b|number of (?:training )?cells|divid|normalis",
    FACTOR + "|" + r"transpos|adjoint",
    mends("neighbours @ (gn / counts)", "(gn / counts)", "(gn / s.counts)", "gn[k] / counts[k]"),
)
def cfar_margin():
    def cells(n, train, guard):
        away = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        return ((away > guard) & (away <= guard + train)).astype(float)

    def forward(ctx, power, train=4, guard=2, level=3.0):
        """Power of each cell less its threshold: level times the mean of the cells around it."""
        neighbours = cells(len(power), train, guard)
        counts = neighbours.sum(axis=1)
        if (counts == 0).any():
            raise ValueError("a cell has no training cells")
        ctx.neighbours, ctx.counts, ctx.level = neighbours, counts, level
        p = power.numpy()
        return pb.asarray(p - level * (neighbours @ p) / counts)

    @pb.once_differentiable
    def backward(ctx, g):
        gn, neighbours, counts = g.numpy(), ctx.neighbours, ctx.counts
        return pb.asarray(gn - ctx.level * (neighbours @ gn) / counts)

    return pb.autograd_function(forward, backward, name="cfar_margin")


def chirp(rng):
    return (t(noise(rng, 8)), t(rng.uniform(-0.3, 0.3, 5))), {}


@BOOK.wrong(
    lambda rng: (chirp(rng)[0], {"delay": 2}),
    "for a negative delay the two parts of the signal are swapped in the gradient",
    SWAPPED,
    SHIFT,
    at("delay"),
    r"negative (?:delay|lag)|delay`? ?(?:<|is negative|below 0)|\babs\(|absolute|\bsign of",
    mends("overlap(n, ctx.delay)", "overlap(len(x), ctx.delay)", "n, ctx.delay)"),
    where="a negative delay",
    shows=lambda rng: (chirp(rng)[0], {"delay": -3}),
)
def ambiguity_cut():
    def overlap(n, delay):
        late, early = (
            slice(max(delay, 0), n + min(delay, 0)),
            slice(max(-delay, 0), n - max(delay, 0)),
        )
        return late, early

    @pb.autograd_function
    def ambiguity_cut(ctx, signal, doppler, delay=0):
        """sum_n x[n] conj(x[n - delay]) exp(2i pi f n) for each Doppler f, in cycles a sample."""
        n, x = len(signal), signal.numpy()
        late, early = overlap(n, delay)
        ctx.phases = np.exp(2j * np.pi * np.outer(doppler.numpy(), np.arange(n)[late]))
        ctx.save_for_backward(signal=signal)
        ctx.delay = delay
        return pb.asarray(ctx.phases @ (x[late] * x[early].conj()))

    @ambiguity_cut.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        x, gn = ctx.saved_variables.signal.numpy(), grad_output.numpy()
        n = len(x)
        late, early = overlap(n, abs(ctx.delay))
        product = x[late] * x[early].conj()
        grad_x, g_product = np.zeros_like(x), ctx.phases.conj().T @ gn
        grad_x[late] += g_product * x[early]
        grad_x[early] += g_product.conj() * x[late]
        turn = 2j * np.pi * np.arange(n)[late]
        slope = (gn.conj() * (ctx.phases @ (turn * product))).real
        return {"signal": pb.asarray(grad_x), "doppler": pb.asarray(slope)}

    return ambiguity_cut


@BOOK.right(lambda rng: ((t(noise(rng, 2, 9)), t(noise(rng, 4))), {"n_fft": 16}))
def pulse_compression():
    @pb.autograd_function
    def pulse_compression(ctx, echoes, replica, n_fft=None):
        """Fast-time compression; echoes: (..., n), replica: (m,); n_fft is for speed only."""
        n, m = echoes.shape[-1], len(replica)
        size = n_fft or n + m - 1
        if size < n + m - 1:
            raise ValueError(f"n_fft must be {n + m - 1} or more")
        E, R = np.fft.fft(echoes.numpy(), size), np.fft.fft(replica.numpy(), size)
        ctx.save_for_backward(E=E, R=R, lengths=(n, m))
        return pb.asarray(np.fft.ifft(E * R.conj())[..., :n].copy())

    @pulse_compression.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        n, m = s.lengths
        G = np.fft.fft(g.numpy(), len(s.R))
        by_replica = np.fft.ifft(G.conj() * s.E).reshape(-1, len(s.R)).sum(axis=0)
        return {
            "echoes": pb.asarray(np.fft.ifft(G * s.R)[..., :n].copy()),
            "replica": pb.asarray(by_replica[:m].copy()),
        }

    return pulse_compression


@BOOK.right(lambda rng: ((t(noise(rng, 6)), t(noise(rng, 6) + 3)), {"slope": 1.6}))
def monopulse_angle():
    def forward(ctx, difference, total, slope=1.0):
        """Angle off boresight from the difference and sum channels; slope of the monopulse."""
        if (total.abs() == 0).any():
            raise ValueError("no signal in the sum channel")
        ctx.save_for_backward(difference, total)
        ctx.slope = slope
        return pb.asarray((difference.numpy() / total.numpy()).real / slope)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        d, s = (x.numpy() for x in ctx.saved_tensors)
        gn = grad_output.numpy() / ctx.slope
        return pb.asarray(gn / s.conj()), pb.asarray(-gn * (d / s**2).conj()), None

    return pb.autograd_function(forward, backward, name="monopulse_angle")


def track(rng):
    half = rng.normal(size=(3, 3))
    return (t(rng.normal(size=3)), t(half @ half.T + np.eye(3)), t(1.7), t(0.4)), {
        "row": np.array([1.0, 0.5, 0.0])
    }


@BOOK.right(track)
def kalman_update():
    class KalmanUpdate(pb.Function):
        """State after one scalar measurement, and its innovation; covariance: (n, n)."""

        @staticmethod
        def forward(ctx, state, covariance, measured, variance, row):
            p = covariance.numpy() @ row
            total, innovation = row @ p + variance.item(), measured.item() - row @ state.numpy()
            if total <= 0:
                raise ValueError("the variance of the innovation must be positive")
            ctx.p, ctx.total, ctx.innovation, ctx.row = p, total, innovation, row
            new = state.numpy() + p * innovation / total
            return pb.asarray(new), pb.asarray(np.array(innovation))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_new, g_innovation):
            gn, h, v = g_new.numpy(), ctx.row, ctx.innovation / ctx.total
            along = gn @ ctx.p / ctx.total
            to_v = along + g_innovation.item()
            g_p = gn * v - along * v * h
            return (
                pb.asarray(gn - to_v * h),
                pb.asarray(np.outer(g_p, h)),
                pb.asarray(np.array(to_v)),
                pb.asarray(np.array(-along * v)),
                None,
            )

    return KalmanUpdate.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1e3, 4e3, 5)), t(np.array(31.0)), t(rng.uniform(0.5, 20, 5))),
        {"losses": 4.0, "horizon": 60.0},
    )
)
def detection_range():
    @pb.autograd_function
    def detection_range(ctx, power, gain, section, wavelength=0.1, losses=0.0, horizon=400.0):
        """Range in km at which a target is seen: power in W, gain and losses in dB, section m2."""
        decibels = 2 * gain.item() - losses
        level = power.numpy() * 10 ** (decibels / 10) * wavelength**2 * section.numpy()
        far = (level / ((4 * np.pi) ** 3 * 1e-13)) ** 0.25 / 1000
        ctx.save_for_backward(power=power, section=section, far=far)
        ctx.horizon = horizon
        return pb.asarray(np.minimum(far, horizon))

    @detection_range.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        slope = g.numpy() * np.where(s.far < ctx.horizon, s.far, 0.0) / 4
        return {
            "power": pb.asarray(slope / s.power.numpy()),
            "gain": pb.asarray(np.array(slope.sum() * np.log(10) / 5)),
            "section": pb.asarray(slope / s.section.numpy()),
        }

    return detection_range


@BOOK.right(lambda rng: ((t(rng.normal(0, 40, (3, 4))), t(np.array([11.0, 13.0, 17.5]))), {}))
def folded_velocity():
    @pb.autograd_function
    def folded_velocity(ctx, velocity, nyquist):
        """Velocity as a pulse radar shows it, within its Nyquist interval; nyquist: (sweeps,)."""
        limit = nyquist.numpy()[:, None]
        if (limit <= 0).any():
            raise ValueError("nyquist must be positive")
        ctx.folds = np.floor((velocity.numpy() + limit) / (2 * limit))
        return pb.asarray(velocity.numpy() - 2 * limit * ctx.folds)

    @folded_velocity.backward
    def _(ctx, g):
        return {"velocity": g, "nyquist": (g * pb.asarray(-2 * ctx.folds)).sum(1)}

    return folded_velocity
