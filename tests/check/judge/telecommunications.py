"""Telecommunications: links, modulation, codes, equalisers, power control, traffic, fibres."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import CONJUGATE, SHAPE, SQUARE, UNSORTED, Book, at, mends, t

BOOK = Book("telecommunications")


def received(rng):
    pilots = (rng.choice([-1, 1], 6) + 1j * rng.choice([-1, 1], 6)) * rng.uniform(0.6, 1.4, 6)
    channel = rng.normal(size=6) + 1j * rng.normal(size=6)
    return (t(channel * pilots), t(pilots)), {"leakage": 0.05}


@BOOK.wrong(
    received,
    "the gradient of the received samples is divided by the pilots without their conjugate",
    CONJUGATE,
    mends("np.conj(s.below)", "s.below.conj()", "s.below.conjugate()", "s.slope.conj()"),
)
def pilot_estimate():
    @pb.autograd_function
    def pilot_estimate(ctx, samples, pilots, leakage=0.0):
        """Channel at the pilots' subcarriers, each reduced by what its neighbours leak."""
        x = pilots.numpy()
        if (x == 0).any():
            raise ValueError("a pilot must not be zero")
        raw = samples.numpy() / x
        out = raw - leakage * (np.roll(raw, 1) + np.roll(raw, -1))
        ctx.save_for_backward(raw=raw, below=x)
        ctx.leakage = leakage
        return pb.asarray(out)

    @pilot_estimate.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_raw = gn - ctx.leakage * (np.roll(gn, 1) + np.roll(gn, -1))
        return {
            "samples": pb.asarray(by_raw / s.below),
            "pilots": pb.asarray(-by_raw * np.conj(s.raw / s.below)),
        }

    return pilot_estimate


def subchannels(rng, spread, power):
    return (t(1.0 + spread * np.sort(rng.random(6))), t(np.array(power))), {}


@BOOK.wrong(
    lambda rng: subchannels(rng, 0.5, 8.0),
    "the level is the mean over the active subchannels, but backward averages over all of them",
    r"\bactive\b|\binactive|\bdry\b|switched off|\bunused\b|\ball (?:of|n|the)\b",
    r"\b(?:power|allocat\w+) .{0,20}(?:0|zero)\b|\bcount|\bnumber of\b|\blen\b|\bmean\b|\baverag",
    mends("active.sum()", "np.count_nonzero", "gn[active].mean", "gn[s.active].mean", "s.used"),
    where="some subchannels get no power",
    shows=lambda rng: subchannels(rng, 6.0, 3.0),
)
def water_filling():
    @pb.autograd_function
    def water_filling(ctx, noise, power):
        """Power of each subchannel that together carry the most.

        noise: (n,) positive, relative to the gain; power: the total, positive.
        """
        n, total = noise.numpy(), power.item()
        if (n <= 0).any() or total <= 0:
            raise ValueError("noise and power must be positive")
        ordered = np.sort(n)
        levels = (total + np.cumsum(ordered)) / np.arange(1, len(n) + 1)
        level = levels[np.flatnonzero(levels > ordered)[-1]]
        share = np.maximum(level - n, 0.0)
        ctx.active = share > 0
        return pb.asarray(share)

    @water_filling.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = np.where(ctx.active, grad_output.numpy(), 0.0)
        by_level = gn.mean()
        return {"noise": pb.asarray(ctx.active * by_level - gn), "power": by_level}

    return water_filling


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=9)), t(np.array(0.8))), {"rows": 3}),
    "backward permutes as forward does, which undoes it only where the block is square",
    SHAPE,
    SQUARE,
    UNSORTED,
    at("rows"),
    r"\binterleav|\bpermut|\bundo|\bcolumns\b|\btranspos",
    mends("ctx.rows).T", "(-1, ctx.rows)", "np.argsort(", "reshape(-1, ctx.rows)"),
    where="rows is not the square root of the length",
    shows=lambda rng: ((t(rng.normal(size=12)), t(np.array(0.8))), {"rows": 3}),
)
def block_interleave():
    @pb.autograd_function
    def block_interleave(ctx, symbols, amplitude, rows=4):
        x, a = symbols.numpy(), amplitude.item()
        if len(x) % rows:
            raise ValueError("the block must fill its rows")
        mixed = x.reshape(rows, -1).T.ravel()
        ctx.save_for_backward(mixed=mixed.copy(), a=a)
        ctx.rows = rows
        return pb.asarray(a * mixed)

    @block_interleave.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        mixed, a = ctx.saved_variables
        gn = grad_output.numpy()
        back = gn.reshape(ctx.rows, -1).T.ravel()
        return {"symbols": pb.asarray(a * back), "amplitude": gn @ mixed}

    return block_interleave


@BOOK.right(lambda rng: ((t(rng.uniform(5, 40, 4)),), {"channels": 30}))
def blocked_calls():
    @pb.autograd_function
    def blocked_calls(ctx, offered, channels=1):
        """Erlang's B: the part of the offered traffic (erlang) that finds all channels busy."""
        a = offered.numpy()
        if (a < 0).any() or channels < 0:
            raise ValueError("traffic and channels must not be negative")
        blocked, by_a = np.ones_like(a), np.zeros_like(a)
        for n in range(1, channels + 1):
            below = n + a * blocked
            by_a = n * (blocked + a * by_a) / below**2
            blocked = a * blocked / below
        ctx.save_for_backward(by_a=by_a)
        return pb.asarray(blocked)

    @blocked_calls.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return {"offered": pb.asarray(grad_output.numpy() * ctx.saved_variables.by_a)}

    return blocked_calls


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.3, 12.0, 90.0, 260.0, 800.0]) * rng.uniform(0.9, 1.1, 5)),
            t(np.array(2.1)),
            t(np.array(3.7)),
            t(np.array(150.0)),
        ),
        {"carrier": 3.5, "shadow": rng.normal(0, 6, 5)},
    )
)
def dual_slope_loss():
    def forward(ctx, distance, near, far, corner, carrier=2.0, nearest=1.0, shadow=None):
        """Path loss in dB; the slope changes at the corner (m). carrier: GHz; nearest: m.

        Closer than `nearest`, the loss is that at `nearest`. shadow: (n,) dB, None for none.
        """
        d, bend = np.maximum(distance.numpy(), nearest), corner.item()
        if bend <= 0 or nearest <= 0:
            raise ValueError("distances must be positive")
        log_near = np.log10(np.minimum(d, bend))
        log_far = np.log10(np.maximum(d / bend, 1.0))
        loss = 32.4 + 20 * np.log10(carrier) + 10 * (near.item() * log_near + far.item() * log_far)
        ctx.save_for_backward(distance=distance, near=near, far=far)
        ctx.logs, ctx.corner, ctx.nearest = (log_near, log_far), bend, nearest
        return pb.asarray(loss if shadow is None else loss + shadow)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s = ctx.saved_variables
        g10 = 10 * grad_output.numpy()
        d, beyond = s.distance.numpy(), s.distance.numpy() > ctx.corner
        beyond = beyond | (ctx.nearest > ctx.corner)
        slope = np.where(beyond, s.far.item(), s.near.item()) / np.log(10)
        moves = d > ctx.nearest
        by_corner = (g10 * beyond).sum() * (s.near.item() - s.far.item())
        return {
            "distance": pb.asarray(g10 * slope * moves / np.where(moves, d, 1.0)),
            "near": g10 @ ctx.logs[0],
            "far": g10 @ ctx.logs[1],
            "corner": by_corner / ctx.corner / np.log(10),
        }

    return pb.autograd_function(forward, backward, name="dual_slope_loss")


LEVELS = np.array([-3.0, -1.0, 1.0, 3.0]) / np.sqrt(5.0)
LABELS = np.array([[0, 0], [0, 1], [1, 1], [1, 0]], bool)


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 1.2, 7)), t(rng.uniform(0.5, 1.5, 7)), t(np.array(0.12))),
        {"limit": 40.0},
    )
)
def bit_metrics():
    @pb.autograd_function
    def bit_metrics(ctx, samples, gain, noise, limit=None):
        """Max-log metrics of the two bits of 4-PAM.

        samples, gain: (n,) after and of the channel; noise: variance, positive;
        limit: metrics are cut to what the decoder's word length holds. Returns (n, 2).
        """
        y, h, variance = samples.numpy(), gain.numpy(), noise.item()
        if variance <= 0:
            raise ValueError("noise must be positive")
        error = y[:, None] - h[:, None] * LEVELS
        away = error[:, None, :] ** 2
        ones = np.where(LABELS.T, away, np.inf).argmin(axis=-1)
        zeros = np.where(LABELS.T, np.inf, away).argmin(axis=-1)
        rows = np.arange(len(y))[:, None]
        to_one, to_zero = error[rows, ones], error[rows, zeros]
        metric = (to_zero**2 - to_one**2) / variance
        inside = np.ones(metric.shape, bool) if limit is None else np.abs(metric) < limit
        ctx.save_for_backward(metric, inside, to_one, to_zero, LEVELS[ones], LEVELS[zeros])
        ctx.noise = variance
        return pb.asarray(metric if limit is None else np.clip(metric, -limit, limit))

    @bit_metrics.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        metric, inside, to_one, to_zero, one, zero = ctx.saved_variables
        gn = grad_output.numpy() * inside / ctx.noise
        return {
            "samples": pb.asarray((2 * gn * (to_zero - to_one)).sum(axis=1)),
            "gain": pb.asarray((2 * gn * (to_one * one - to_zero * zero)).sum(axis=1)),
            "noise": -(gn * metric).sum(),
        }

    return bit_metrics


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 4, 7)), t(np.array(0.75))),
        {"checks": ((0, 1, 2, 4), (0, 1, 3, 5), (0, 2, 3, 6))},
    )
)
def min_sum_pass():
    @pb.autograd_function
    def min_sum_pass(ctx, llr, damping, checks):
        value = llr.numpy()
        signs, size = np.where(value < 0, -1.0, 1.0), np.abs(value)
        total, edges = value.copy(), []
        for members in checks:
            if len(members) < 2:
                raise ValueError("a check needs two bits at least")
            idx = np.array(members)
            first, second = idx[np.argsort(size[idx], kind="stable")[:2]]
            for i in members:
                source = second if i == first else first
                sign = np.prod(signs[idx]) * signs[i]
                total[i] += damping.item() * sign * size[source]
                edges.append((i, source, sign))
        ctx.edges, ctx.signs, ctx.size, ctx.damping = edges, signs, size, damping.item()
        return pb.asarray(total)

    @min_sum_pass.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        by_llr, by_damping = gn.copy(), 0.0
        for i, source, sign in ctx.edges:
            by_llr[source] += ctx.damping * sign * ctx.signs[source] * gn[i]
            by_damping += sign * ctx.size[source] * gn[i]
        return {"llr": pb.asarray(by_llr), "damping": by_damping}

    return min_sum_pass


@BOOK.right(
    lambda rng: (
        (t(np.array([1.0, 0.45, -0.2]) + 0.1 * rng.normal(size=3)), t(np.array(0.05))),
        {"taps": 5, "delay": 3},
    )
)
def mmse_equaliser():
    @pb.autograd_function
    def mmse_equaliser(ctx, channel, noise, taps=7, delay=None):
        """Taps of a linear equaliser; delay: of the symbol decided, the middle where None."""
        h, variance = channel.numpy(), noise.item()
        if variance <= 0:
            raise ValueError("noise must be positive")
        span = len(h) + taps - 1
        H = np.zeros((span, taps))
        for j in range(taps):
            H[j : j + len(h), j] = h
        at_symbol = span // 2 if delay is None else delay
        A = H.T @ H + variance * np.eye(taps)
        w = np.linalg.solve(A, H[at_symbol])
        ctx.save_for_backward(H=H, A=A, w=w)
        ctx.symbol, ctx.length = at_symbol, len(h)
        return pb.asarray(w.copy())

    @mmse_equaliser.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        H, A, w = ctx.saved_variables
        z = np.linalg.solve(A, grad_output.numpy())
        by_H = -H @ (np.outer(z, w) + np.outer(w, z))
        by_H[ctx.symbol] += z
        by_channel = sum(by_H[j : j + ctx.length, j] for j in range(len(w)))
        return {"channel": pb.asarray(by_channel), "noise": -(z @ w)}

    return mmse_equaliser


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 0.3, 10)), t(np.array(1.5))),
        {"speed": 0.4, "highest": 2.0},
    )
)
def gain_control():
    @pb.autograd_function
    def gain_control(ctx, signal, start, target=0.7, speed=0.1, lowest=0.05, highest=50.0):
        """Automatic gain: it follows the modulus of the output within its range."""
        gain, gains, free = start.item(), [], []
        for x in signal.numpy():
            gains.append(gain)
            gain += speed * (target - abs(gain * x))
            free.append(lowest < gain < highest)
            gain = min(max(gain, lowest), highest)
        ctx.save_for_backward(signal=signal)
        ctx.gains, ctx.free, ctx.speed = np.array(gains), free, speed
        return pb.asarray(ctx.gains * signal.numpy())

    @gain_control.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        x, gn = ctx.saved_variables.signal.numpy(), grad_output.numpy()
        by_x, to_gain = np.zeros_like(x), 0.0
        for k in reversed(range(len(x))):
            to_step = to_gain if ctx.free[k] else 0.0
            by_out = gn[k] - ctx.speed * to_step * np.sign(ctx.gains[k] * x[k])
            by_x[k] = by_out * ctx.gains[k]
            to_gain = to_step + by_out * x[k]
        return {"signal": pb.asarray(by_x), "start": to_gain}

    return gain_control


EFFICIENCY = np.array([0.15, 0.6, 1.5, 2.4, 3.9, 5.5])
NEEDED = np.array([-6.5, -1.0, 5.0, 9.5, 14.0, 19.0])


@BOOK.right(lambda rng: ((t(rng.uniform(-9, 25, 7)), t(np.array(18.0))), {"steepness": 1.3}))
def adapted_rate():
    @pb.autograd_function
    def adapted_rate(ctx, snr, bandwidth, steepness=1.5, allowed=None):
        """Rate in Mbit/s with the best scheme for each SNR in dB, and that scheme's number."""
        arrives = special.expit(steepness * (snr.numpy()[..., None] - NEEDED))
        goodput = EFFICIENCY * arrives
        if allowed is not None:
            if not np.isin(allowed, np.arange(len(NEEDED))).any():
                raise ValueError("no scheme is allowed")
            goodput[..., ~np.isin(np.arange(len(NEEDED)), allowed)] = -1.0
        best = goodput.argmax(axis=-1)
        rate = np.take_along_axis(goodput, best[..., None], -1)[..., 0]
        lost = 1 - np.take_along_axis(arrives, best[..., None], -1)[..., 0]
        ctx.save_for_backward(bandwidth=bandwidth)
        ctx.rate, ctx.slope = rate, steepness * rate * lost
        return pb.asarray(bandwidth.item() * rate), pb.asarray(best)

    @adapted_rate.backward
    @pb.once_differentiable
    def _(ctx, g_rate, g_best):
        gn, width = g_rate.numpy(), ctx.saved_variables.bandwidth.item()
        return {"snr": pb.asarray(gn * width * ctx.slope), "bandwidth": (gn * ctx.rate).sum()}

    return adapted_rate


def cells(rng):
    gains = rng.uniform(0.02, 0.25, (4, 4))
    gains[np.diag_indices(4)] = rng.uniform(0.7, 1.3, 4)
    return (t(gains), t(rng.uniform(0.05, 0.15, 4)), t(np.array(1.2))), {"most": 0.45}


@BOOK.right(cells)
def controlled_power():
    class ControlledPower(pb.Function):
        """Powers at which each user just has the wanted SINR, or the most it may send.

        gains: (n, n), of sender j at receiver i; noise: (n,); wanted: SINR. All are positive.
        """

        @staticmethod
        def forward(ctx, gains, noise, wanted, most=1.0):
            G, n, target = gains.numpy(), noise.numpy(), wanted.item()
            if (G <= 0).any() or (n <= 0).any() or target <= 0:
                raise ValueError("gains, noise and SINR must be positive")
            own = np.diag(G)
            M = target * (G / own[:, None] - np.eye(len(G)))
            p = np.zeros(len(G))
            for _ in range(20000):
                want = M @ p + target * n / own
                new = np.minimum(want, most)
                moved, p = np.abs(new - p).max(), new
                if moved <= 1e-15 * most:
                    break
            ctx.free, ctx.M, ctx.p, ctx.own = want < most, M, p, own
            ctx.target, ctx.by_noise = target, target / own
            return pb.asarray(p.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            n = len(ctx.p)
            system = np.eye(n) - ctx.M * ctx.free[:, None]
            z = np.linalg.solve(system.T, grad_output.numpy()) * ctx.free
            by_gains = np.outer(z * ctx.by_noise, ctx.p)
            by_gains[np.diag_indices(n)] = -z * ctx.p / ctx.own
            by_wanted = z @ ctx.p / ctx.target
            return pb.asarray(by_gains), pb.asarray(z * ctx.by_noise), by_wanted, None

    return ControlledPower.apply


@BOOK.right(
    lambda rng: (
        (t(np.array(1.0)), t(rng.uniform(16, 22, 5)), t(rng.uniform(16, 24, 5))),
        {"saturated": 3.0, "figure": 5.5},
    )
)
def fibre_osnr():
    @pb.autograd_function
    def fibre_osnr(ctx, launch, loss, gain, saturated=20.0, figure=5.0):
        """OSNR in dB after a chain of spans and amplifiers.

        launch: dBm; loss, gain: (spans,) dB; saturated: what an amplifier can give, dBm;
        figure: noise figure, dB.
        """
        P, linear, arrived = launch.item(), [], []
        for lost, gained in zip(loss.numpy(), gain.numpy(), strict=True):
            P -= lost
            arrived.append(10 ** (-(58.0 + P - figure) / 10))
            linear.append(P + gained < saturated)
            P = min(P + gained, saturated)
        ctx.noise, ctx.linear = np.array(arrived), linear
        return pb.asarray(np.array(-10 * np.log10(ctx.noise.sum())))

    @fibre_osnr.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        share = grad_output.item() * ctx.noise / ctx.noise.sum()
        by_loss, by_gain, to_P = np.zeros_like(share), np.zeros_like(share), 0.0
        for k in reversed(range(len(share))):
            to_P = to_P * ctx.linear[k]
            by_gain[k] = to_P
            to_P += share[k]
            by_loss[k] = -to_P
        return {"launch": to_P, "loss": pb.asarray(by_loss), "gain": pb.asarray(by_gain)}

    return fibre_osnr


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(200, 1500, 9)), t(np.array(0.6)), t(np.array(2500.0))),
        {"gaps": rng.choice([100.0, 900.0, 4000.0], 9)},
    )
)
def token_bucket():
    @pb.autograd_function
    def token_bucket(ctx, sizes, rate, burst, gaps):
        """Bytes of each packet that conform. rate: bytes per microsecond; gaps: before each."""
        depth, tokens = burst.item(), burst.item()
        passed, full, short = [], [], []
        for size, gap in zip(sizes.numpy(), gaps, strict=True):
            tokens += rate.item() * gap
            full.append(tokens > depth)
            tokens = min(tokens, depth)
            short.append(size > tokens)
            passed.append(min(size, tokens))
            tokens -= passed[-1]
        ctx.full, ctx.short, ctx.gaps = full, short, gaps
        return pb.asarray(np.array(passed))

    @token_bucket.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        by_size = np.zeros(len(ctx.full))
        to_tokens = by_rate = by_burst = 0.0
        for k in reversed(range(len(ctx.full))):
            to_passed = grad_output.numpy()[k] - to_tokens
            if ctx.short[k]:
                to_tokens += to_passed
            else:
                by_size[k] = to_passed
            if ctx.full[k]:
                by_burst += to_tokens
                to_tokens = 0.0
            by_rate += to_tokens * ctx.gaps[k]
        return {"sizes": pb.asarray(by_size), "rate": by_rate, "burst": by_burst + to_tokens}

    return token_bucket


# GHz, then k and alpha of ITU-R P.838 for each polarisation
RAIN = {
    "frequency": np.array([10.0, 20.0, 30.0, 40.0]),
    "H": np.array([[0.0122, 0.0916, 0.2403, 0.4431], [1.2571, 1.0568, 0.9485, 0.8673]]),
    "V": np.array([[0.0113, 0.0961, 0.2291, 0.4274], [1.2156, 0.9847, 0.9129, 0.8421]]),
}


@BOOK.right(
    lambda rng: (
        (t(np.array([4.0, 22.0, 60.0, 130.0]) * rng.uniform(0.9, 1.1, 4)), t(np.array(8.5))),
        {"frequency": 23.0, "polarisation": "H"},
    )
)
def rain_fade():
    @pb.autograd_function
    def rain_fade(ctx, rate, length, frequency=18.0, polarisation="V"):
        R, d = rate.numpy(), length.item()
        if (R <= 0).any() or d <= 0:
            raise ValueError("rain and length must be positive")
        k, alpha = (
            np.interp(np.log(frequency), np.log(RAIN["frequency"]), row)
            for row in RAIN[polarisation]
        )
        cell = 35.0 * np.exp(-0.015 * np.minimum(R, 100.0))
        fade = k * R**alpha * d / (1 + d / cell)
        shrink = np.where(R < 100.0, 0.015 * d / (cell + d), 0.0)
        ctx.save_for_backward(by_rate=fade * (alpha / R - shrink), by_length=fade / (1 + d / cell))
        ctx.length = d
        return pb.asarray(fade)

    @rain_fade.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        return {"rate": pb.asarray(gn * s.by_rate), "length": gn @ s.by_length / ctx.length}

    return rain_fade


@BOOK.right(lambda rng: ((t(rng.normal(0, 0.4, (2, 6))), t(np.array(1.8))), {"mu": 100.0}))
def companded():
    @pb.autograd_function
    def companded(ctx, speech, gain, mu=255.0):
        x = speech.numpy() * gain.item()
        size = np.minimum(np.abs(x), 1.0)
        slope = np.where(np.abs(x) < 1.0, mu / (1 + mu * size) / np.log1p(mu), 0.0)
        ctx.save_for_backward(speech=speech, gain=gain, slope=slope)
        return pb.asarray(np.sign(x) * np.log1p(mu * size) / np.log1p(mu))

    @companded.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        speech, gain, slope = ctx.saved_variables
        by_x = grad_output.numpy() * slope
        return pb.asarray(by_x * gain.item()), (by_x * speech.numpy()).sum(), None

    return companded
