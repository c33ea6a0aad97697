"""Acoustics: reverberation, arrays, room modes, decay, bands, loudness, intelligibility, ducts."""

from __future__ import annotations

import itertools

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, STATE, Book, at, mends, t

BOOK = Book("acoustics")


def hall(rng):
    return t(rng.uniform(150, 250)), t(rng.uniform(20, 60, 5)), t(rng.uniform(0.1, 0.5, 5))


@BOOK.wrong(
    lambda rng: (hall(rng), {}),
    "the volume stands in the absorption of the air as well: that term of its gradient is missing",
    MISSING,
    at("air"),
    r"\bair\b.{0,50}(?:missing|left out|ignored|forgot)|(?:ignor|forg[eo]t|omit)\w*.{0,40}\bair\b",
    r"quotient rule|denominator|\babsorption (?:of|by|in) (?:the )?air\b",
    mends(
        "4 * ctx.air * by_total",
        "by_total * 4 * ctx.air",
        "4 * by_total * ctx.air",
        "(0.161 - 4 * ctx.air",
        "0.161 / D * (1 - ",
    ),
    where="air is not 0",
    shows=lambda rng: (hall(rng), {"air": 0.02}),
)
def eyring_time():
    class EyringTime(pb.Function):
        """Reverberation time in s; volume: () in m3, areas in m2, absorption: (surfaces,)."""

        @staticmethod
        def forward(ctx, volume, areas, absorption, air=0.0):
            mean = (areas * absorption).sum() / areas.sum()
            total = 4 * air * volume - areas.sum() * (1 - mean).log()
            ctx.save_for_backward(volume=volume, areas=areas, absorption=absorption)
            ctx.air = air
            return 0.161 * volume / total

        @staticmethod
        def backward(ctx, grad_output):
            s = ctx.saved_variables
            S = s.areas.sum()
            mean = (s.areas * s.absorption).sum() / S
            D = 4 * ctx.air * s.volume - S * (1 - mean).log()
            by_total = -0.161 * s.volume / D**2 * grad_output
            by_area = (s.absorption - mean) / (1 - mean) - (1 - mean).log()
            return {
                "volume": 0.161 / D * grad_output,
                "areas": by_total * by_area,
                "absorption": by_total * s.areas / (1 - mean),
            }

    return EyringTime.apply


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=(3, 9))), t(rng.uniform([0.2, 1.2, 2.2], [0.8, 1.8, 2.8]))),
        {},
    ),
    "negative delays are rounded towards zero in the backward pass, where forward takes the floor",
    r"negative (?:delay|value|element|entr|input|number|lag)",
    r"\btrunc|\bfloor|toward|\brounds? (?:to|up|down)",
    r"delays?`? ?(?:<|<=|below|under|less than) ?(?:-|0|zero)|\bnegative delays\b",
    r"(?:elements?|entr\w+|values?|where|when|if) .{0,20}(?:<=?|below|under) ?(?:0(?![.\d])|zero)",
    mends(
        "whole = int(np.floor(",
        "whole = math.floor(",
        "whole = int(math.floor(",
        "whole, part = divmod(",
        "whole = int(delay // 1)",
        "part = delay % 1",
    ),
    where="a negative delay",
    shows=lambda rng: ((t(rng.normal(size=(3, 9))), t(np.array([-0.4, 1.3, -2.7]))), {}),
)
def delay_and_sum():
    def shifted(x, k):
        out = np.zeros_like(x)
        n = max(len(x) - abs(k), 0)
        if k >= 0:
            out[k:] = x[:n]
        else:
            out[:n] = x[-n:] if n else []
        return out

    @pb.autograd_function
    def delay_and_sum(ctx, signals, delays):
        """Beam of an array: each microphone delayed by `delays` samples (also parts of one).

        signals: (mics, samples); delays: (mics,). Silence before and after the record.
        """
        ctx.save_for_backward(signals=signals, delays=delays)
        beam = np.zeros(signals.shape[1])
        for x, d in zip(signals.numpy(), delays.numpy(), strict=True):
            k = int(np.floor(d))
            beam += (1 - (d - k)) * shifted(x, k) + (d - k) * shifted(x, k + 1)
        return pb.asarray(beam)

    @delay_and_sum.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        signals, delays = (v.numpy() for v in ctx.saved_variables)
        gn = grad_output.numpy()
        grad_x, grad_d = np.empty_like(signals), np.empty_like(delays)
        for m, (x, delay) in enumerate(zip(signals, delays, strict=True)):
            whole = int(delay)
            part = delay - whole
            grad_x[m] = (1 - part) * shifted(gn, -whole) + part * shifted(gn, -whole - 1)
            grad_d[m] = gn @ (shifted(x, whole + 1) - shifted(x, whole))
        return pb.asarray(grad_x), pb.asarray(grad_d)

    return delay_and_sum


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=9)), t(np.array(0.7))), {"delay": 5}),
    "the gain multiplies the delayed output: its gradient has the delayed input, and so lacks "
    "the echoes of echoes",
    at("delay"),
    r"echo(?:es)? of (?:the )?echo|recirculat|feedback|second (?:echo|repeat|pass)|higher echo",
    r"(?:twice|2 ?\*|two|half).{0,20}\bdelay|\bdelay\b.{0,25}(?:twice|half|short|small)",
    r"delayed (?:input|output)|\boutput.{0,30}(?:instead of|rather than|not|for) .{0,15}input",
    r"\binput.{0,30}(?:instead of|rather than|where) .{0,15}output",
    r"powers? of (?:the )?gain|does not (?:change|depend).{0,20}gain|linear in (?:the )?gain",
    mends(
        "s.wet.numpy()[: n - d]",
        "s.wet[: n - d]",
        "s.y[: n - d]",
        "y[: n - d]",
        "out[: n - d]",
        "s.y.numpy()[: n - d]",
        "s.out.numpy()[: n - d]",
        "wet[: n - d]",
    ),
    where="the record is longer than two delays",
    shows=lambda rng: ((t(rng.normal(size=9)), t(np.array(0.7))), {"delay": 2}),
)
def comb_reverb():
    def forward(ctx, dry, gain, delay=3):
        """Feedback comb filter: y[n] = x[n] + gain * y[n - delay]."""
        if delay < 1:
            raise ValueError("delay must be 1 or more samples")
        y = dry.numpy().copy()
        for n in range(delay, len(y)):
            y[n] += gain.item() * y[n - delay]
        ctx.save_for_backward(dry=dry, gain=gain, delay=delay)
        return pb.asarray(y)

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        d, n = s.delay, len(s.dry)
        adjoint = g.numpy().copy()
        for k in range(n - 1, d - 1, -1):
            adjoint[k - d] += s.gain.item() * adjoint[k]
        by_gain = adjoint[d:] @ s.dry.numpy()[: n - d] if d < n else 0.0
        return {"dry": pb.asarray(adjoint), "gain": pb.asarray(np.array(by_gain))}

    return pb.autograd_function(forward, backward, name="comb_reverb")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(2, 6, 3)), t(np.array(19.0)), np.array([[1, 0, 0], [1, 1, 0], [2, 0, 3]])),
        {},
    ),
    "the slope in a dimension lacks a division by it: the square stands where the cube belongs",
    FACTOR + r"|multipl|divided by",
    r"\bcube[ds]?\b|third power|power of (?:the )?(?:L|dimension|length)|\bexponent\b",
    r"division by (?:the |a |its )?(?:L|dim|length)",
    r"\b1 ?/ ?(?:L|dimensions?)\b|/ ?s?\.?(?:L|dimensions) (?:is )?missing",
    mends(
        "L**3",
        "L ** -3",
        "pb.pow(L, 3)",
        "dimensions / L)",
        "(n**2 / L**2 * dimensions / L)",
        "dimensions / L**3",
    ),
)
def room_modes():
    @pb.autograd_function
    def room_modes(ctx, dimensions, celsius, orders):
        """Resonances of a box with rigid walls, in Hz.

        dimensions: (3,) in m; celsius: temperature of the air; orders: (modes, 3), whole numbers.
        """
        if not orders.any(axis=1).all():
            raise ValueError("the mode 0, 0, 0 has no frequency")
        n = pb.asarray(orders.astype(float))
        speed = 331.3 * (1 + celsius / 273.15).sqrt()
        out = speed / 2 * ((n / dimensions) ** 2).sum(-1).sqrt()
        ctx.save_for_backward(dimensions=dimensions, celsius=celsius, out=out)
        ctx.orders = orders
        return out

    @room_modes.jvp
    def _(ctx, dimensions, celsius):
        s = ctx.saved_variables
        L, total = s.dimensions, s.celsius + 273.15
        change = pb.zeros_like(s.out)
        if dimensions is not None:
            squared_speed = 331.3**2 * total / 273.15
            n = pb.asarray(ctx.orders.astype(float))
            along = (n**2 / L**2 * dimensions).sum(-1)
            change = change - squared_speed / (4 * s.out) * along
        if celsius is not None:
            change = change + s.out / (2 * total) * celsius
        return change

    return room_modes


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=7) * np.exp(-0.3 * np.arange(7))),), {}),
    "the energies are kept in a buffer that the next call overwrites",
    STATE,
    r"\bbuffer|\bscratch|\bworkspace|\bshared\b|\breus|\bnext call|\blater call|\boverwrit",
    mends("np.cumsum((h**2)[::-1])[::-1]", "ctx.energy = buffer[::-1].copy()", "buffer.copy()"),
    where="second use of the operation before backward",
)
def schroeder_decay():
    spare = {}

    def forward(ctx, response):
        """Decay curve in dB by backward integration of an impulse response."""
        h = response.numpy()
        buffer = spare.setdefault(h.shape, np.empty(h.shape))  # spares an allocation per call
        np.cumsum((h**2)[::-1], out=buffer)
        ctx.energy = buffer[::-1]
        ctx.save_for_backward(response)
        return pb.asarray(10 * np.log10(ctx.energy / ctx.energy[0]))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        (response,) = ctx.saved_tensors
        gn = grad_output.numpy() * 10 / np.log(10)
        by_energy = gn / ctx.energy
        by_energy[0] -= gn.sum() / ctx.energy[0]
        return pb.asarray(2 * response.numpy() * np.cumsum(by_energy))

    return pb.autograd_function(forward, backward, name="schroeder_decay")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=10)), np.array([0, 0, 1, 1, 2, 2])), {}),
    "the inner bins are counted twice: once by their weights, once by the inverse transform",
    FACTOR,
    r"\bbins?\b|one.sided|\bDC\b|nyquist|\bdoubl(?:ed|es|y|ing)\b|negative frequenc|half.spectrum",
    r"constant (?:part|component|offset)|\bmean of the (?:gradient|signal)",
    mends("ctx.weight = 1", "by_bin = 2 * ctx.X", "/ ctx.weight", "gn[ctx.band] * ctx.X * 2 /"),
)
def band_levels():
    class BandLevels(pb.Function):
        """Level of each frequency band in dB; band: the band of each bin of rfft."""

        @staticmethod
        def forward(ctx, pressure, band, reference=1.0):
            p = pressure.numpy()
            ctx.n, ctx.X = len(p), np.fft.rfft(p)
            if len(band) != len(ctx.X):
                raise ValueError("band must name a band for each bin")
            ctx.weight = np.full(len(ctx.X), 2.0)
            ctx.weight[0] = 1.0
            if ctx.n % 2 == 0:
                ctx.weight[-1] = 1.0
            ctx.band = band
            ctx.power = np.bincount(band, weights=ctx.weight * abs(ctx.X) ** 2) / ctx.n**2
            return pb.asarray(10 * np.log10(ctx.power / reference**2))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            gn = 10 / np.log(10) * grad_output.numpy() / ctx.power
            by_bin = 2 * ctx.weight * ctx.X * gn[ctx.band] / ctx.n**2
            return {"pressure": pb.asarray(ctx.n * np.fft.irfft(by_bin, ctx.n))}

    return BandLevels.apply


BLOCKS = np.array([[0.2, 0.3, 1e-9, 0.4, 0.004, 0.1], [0.1, 0.5, 1e-9, 0.2, 0.002, 0.3]])


@BOOK.right(lambda rng: ((t(BLOCKS * rng.uniform(0.8, 1.2, (2, 6))), t(np.array([1.0, 1.41]))), {}))
def gated_loudness():
    def level(z):
        return -0.691 + 10 * np.log10(np.maximum(z, 1e-30))

    @pb.autograd_function
    def gated_loudness(ctx, power, weights, floor=-70.0, gate=-10.0):
        """Integrated loudness in LUFS; power: (channels, blocks) mean squares.

        Blocks below `floor` do not count, then those more than `gate` below what is left.
        """
        blocks = weights.numpy() @ power.numpy()
        heard = level(blocks) > floor
        if not heard.any():
            raise ValueError("silence has no loudness")
        heard &= level(blocks) > level(blocks[heard].mean()) + gate
        if not heard.any():
            raise ValueError("no block is above the gate")
        ctx.save_for_backward(power=power, weights=weights)
        ctx.heard, ctx.total = heard, blocks[heard].sum()
        return pb.asarray(np.array(level(blocks[heard].mean())))

    @gated_loudness.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        slope = grad_output.item() * 10 / np.log(10) / ctx.total
        return {
            "power": pb.asarray(slope * np.outer(s.weights.numpy(), ctx.heard)),
            "weights": pb.asarray(slope * s.power.numpy()[:, ctx.heard].sum(axis=1)),
        }

    return gated_loudness


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1, 2, 2)), t(rng.uniform(2, 3, 2)), t(np.array([5.0, 4.0])), t(0.8)),
        {"order": 1},
    )
)
def shoebox_echoes():
    @pb.autograd_function
    def shoebox_echoes(ctx, source, listener, room, reflection, order=2):
        """Direct sound and sum of the echoes in a rectangle, by images.

        source, listener, room: (2,) in m; each image sounds with reflection ** walls / distance.
        """
        if (room.numpy() <= 0).any() or reflection.item() < 0:
            raise ValueError("sizes must be positive, the reflection not negative")
        if any(
            (x.numpy() < 0).any() or (x.numpy() > room.numpy()).any() for x in (source, listener)
        ):
            raise ValueError("source and listener must be inside")
        cells = itertools.product(range(-order, order + 1), (0, 1), repeat=2)
        nx, px, ny, py = np.array(list(cells)).T
        ctx.n, ctx.p = np.stack([nx, ny], 1), np.stack([px, py], 1)
        ctx.walls = (abs(ctx.n - ctx.p) + abs(ctx.n)).sum(axis=1)
        gap = (1 - 2 * ctx.p) * source.numpy() + 2 * ctx.n * room.numpy() - listener.numpy()
        distance = np.sqrt((gap**2).sum(axis=1))
        if not distance.all():
            raise ValueError("source and listener are at one place")
        ctx.save_for_backward(reflection=reflection, gap=gap, distance=distance)
        sound = reflection.item() ** ctx.walls / distance
        echoes = sound[ctx.walls > 0].sum()
        return pb.asarray(np.array(sound[ctx.walls == 0].sum())), pb.asarray(np.array(echoes))

    @shoebox_echoes.backward
    @pb.once_differentiable
    def _(ctx, g_direct, g_echoes):
        s, k = ctx.saved_variables, ctx.walls
        beta = s.reflection.item()
        g = np.where(k == 0, g_direct.item(), g_echoes.item())
        to_gap = -(g * beta**k / s.distance**3)[:, None] * s.gap
        by_beta = k * beta ** np.maximum(k - 1, 0) / s.distance
        return {
            "source": pb.asarray((to_gap * (1 - 2 * ctx.p)).sum(axis=0)),
            "listener": pb.asarray(-to_gap.sum(axis=0)),
            "room": pb.asarray((to_gap * 2 * ctx.n).sum(axis=0)),
            "reflection": pb.asarray(np.array(g @ by_beta)),
        }

    return shoebox_echoes


@BOOK.right(
    lambda rng: (
        (t(np.clip(rng.uniform(0.0, 1.0, (4, 5)), 0.05, 0.99)),),
        {"share": np.array([0.2, 0.3, 0.35, 0.3]), "redundancy": np.array([0.05, 0.06, 0.04])},
    )
)
def speech_transmission():
    @pb.autograd_function
    def speech_transmission(ctx, modulation, share, redundancy):
        """Speech transmission index; modulation: (bands, rates), the depth that is left."""
        m = modulation.numpy()
        if (m <= 0).any() or (m >= 1).any():
            raise ValueError("modulation must be between 0 and 1")
        snr = 10 * np.log10(m / (1 - m))
        index = ((np.clip(snr, -15, 15) + 15) / 30).mean(axis=1)
        if (index == 0).any():
            raise ValueError("a band without any transmission")
        ctx.save_for_backward(modulation=modulation)
        ctx.inside, ctx.index = abs(snr) < 15, index
        ctx.share, ctx.redundancy = share, redundancy
        overlap = np.sqrt(index[:-1] * index[1:])
        return pb.asarray(np.array(share @ index - redundancy @ overlap))

    @speech_transmission.backward
    @pb.once_differentiable
    def _(ctx, g):
        m, index = ctx.saved_variables.modulation.numpy(), ctx.index
        half = 0.5 * ctx.redundancy * np.sqrt(index[:-1] * index[1:])
        by_index = ctx.share.astype(float)
        by_index[:-1] -= half / index[:-1]
        by_index[1:] -= half / index[1:]
        by_snr = ctx.inside * by_index[:, None] / (30 * m.shape[1])
        return {"modulation": pb.asarray(g.item() * by_snr * 10 / np.log(10) / (m * (1 - m)))}

    return speech_transmission


@BOOK.right(
    lambda rng: (
        (t(np.r_[0, 0.01, 1, rng.normal(size=9) * np.exp(-0.2 * np.arange(9))]),),
        {"rate": 100, "early": 0.04},
    )
)
def clarity_index():
    def halves(response, rate, early, onset):
        h = response.detach().numpy()
        start = int(np.argmax(abs(h) >= onset * abs(h).max()))
        split = start + round(early * rate)
        if not (start < split < len(h) and h[split:].any()):
            raise ValueError("the response needs an early and a late part")
        n = np.arange(len(h))
        return ((start <= n) & (n < split)) * 1.0, (n >= split) * 1.0

    class ClarityIndex(pb.Function):
        """Early to late energy in dB, counted from the direct sound."""

        @staticmethod
        def forward(response, rate, early=0.05, onset=0.5):
            before, after = map(pb.asarray, halves(response, rate, early, onset))
            return 10 * ((response**2 * before).sum() / (response**2 * after).sum()).log10()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(response=inputs[0])
            ctx.settings = inputs[1:]

        @staticmethod
        def backward(ctx, grad_output):
            h = ctx.saved_variables.response
            before, after = map(pb.asarray, halves(h, *ctx.settings))
            early, late = (h**2 * before).sum(), (h**2 * after).sum()
            return 20 / np.log(10) * grad_output * h * (before / early - after / late)

    return ClarityIndex.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.1, 0.5, 3)), t(rng.uniform(1, 6, 3))),
        {"frequencies": np.array([63.0, 125.0, 250.0, 500.0])},
    )
)
def muffler_loss():
    def sections(k, lengths, areas):
        c, s = np.cos(k * lengths), np.sin(k * lengths)
        return np.moveaxis(np.array([[c, 1j * s / areas], [1j * s * areas, c]]), 2, 0)

    def slopes(k, lengths, areas):
        c, s, zero = np.cos(k * lengths), np.sin(k * lengths), np.zeros(len(areas))
        along = np.moveaxis(k * np.array([[-s, 1j * c / areas], [1j * c * areas, -s]]), 2, 0)
        return along, np.moveaxis(np.array([[zero, -1j * s / areas**2], [1j * s, zero]]), 2, 0)

    def chain(matrices):
        return list(itertools.accumulate(matrices, np.matmul, initial=np.eye(2, dtype=complex)))

    @pb.autograd_function
    def muffler_loss(ctx, lengths, areas, frequencies, speed=343.0):
        """Transmission loss in dB of a row of tubes; areas relative to that of the pipe."""
        if (areas.numpy() <= 0).any():
            raise ValueError("areas must be positive")
        waves = 2 * np.pi * np.asarray(frequencies, float) / speed
        sums = [chain(sections(k, lengths.numpy(), areas.numpy()))[-1].sum() for k in waves]
        ctx.save_for_backward(lengths=lengths, areas=areas, waves=waves)
        return pb.asarray(20 * np.log10(abs(np.array(sums)) / 2))

    @muffler_loss.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        L, S = s.lengths.numpy(), s.areas.numpy()
        grads = np.zeros((2, len(L)))
        for k, g in zip(s.waves, grad_output.numpy(), strict=True):
            T = sections(k, L, S)
            left = chain(T)
            right = [m.T for m in chain(T[::-1].transpose(0, 2, 1))[::-1]]
            for i, each in enumerate(zip(*slopes(k, L, S), strict=True)):
                ends = [(left[i] @ d @ right[i + 1]).sum() for d in each]
                grads[:, i] += g * 20 / np.log(10) * np.real(np.array(ends) / left[-1].sum())
        return {"lengths": pb.asarray(grads[0].copy()), "areas": pb.asarray(grads[1].copy())}

    return muffler_loss
