"""Pharmacology: absorption, infusions, combinations, saturable elimination, exposure, binding."""

from __future__ import annotations

import numpy as np
from scipy import linalg, optimize, special

import pullback as pb

from .entries import AXIS, MISSING, SHAPE, SQUARE, TIES, TRANSPOSED, Book, at, mends, t

BOOK = Book("pharmacology")

HOURS = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 12.0])


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.8, 1.5)), t(rng.uniform(0.1, 0.3)), t(20.0), HOURS), {}),
    "where ka equals ke, the whole slope goes to ka and none to ke; each has its own",
    TIES,
    r"\bka\b.{0,15}(?:==?|equals?|close to|near|same as|is) .{0,6}\bke\b|flip.flop|degenerate",
    r"\bke\b.{0,15}(?:==?|equals?|close to|near|same as|is) .{0,6}\bka\b|\bcoincid|rates are equal",
    r"\blimit(?:ing)?\b|\bbranch\b|ka and ke (?:are|being)|\b(?:share|split)",
    r"\bke`? (?:is|was|gets|stays|has) (?:zero|0(?![.\d])|none)|zero .{0,25}\bke\b",
    mends(
        "(1 - ka * t / 2)",
        "(1 - k * t / 2)",
        "t - k * t**2 / 2",
        "t - ka * t**2 / 2",
        "-k * t**2 / 2",
        "-ka * t**2 / 2",
        "t**2 * flat / 2",
        "0.5 * k",
        "0.5 * ka",
    ),
    where="ka equals ke",
    shows=lambda rng: ((t(0.25), t(0.25), t(20.0), HOURS), {}),
)
def oral_concentration():
    def parts(ka, ke, t):
        """Return concentration per dose and volume, and its slopes in ka and ke."""
        if abs(ka - ke) < 1e-8 * ke:
            flat = np.exp(-ka * t)
            return ka * t * flat, (1 - ka * t) * t * flat, 0 * t
        slow, fast, gap = np.exp(-ke * t), np.exp(-ka * t), ka - ke
        value = -ka / gap * slow * np.expm1(-gap * t)
        return (
            value,
            value / ka - value / gap + ka / gap * t * fast,
            value / gap - ka / gap * t * slow,
        )

    @pb.autograd_function
    def oral_concentration(ctx, ka, ke, volume, times, dose=100.0):
        """Plasma concentration after a tablet, first-order absorption and elimination."""
        ctx.save_for_backward(ka=ka, ke=ke, volume=volume, times=times)
        ctx.dose = dose
        return pb.asarray(dose / volume.item() * parts(ka.item(), ke.item(), times)[0])

    @oral_concentration.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        V = s.volume.item()
        value, by_ka, by_ke = parts(s.ka.item(), s.ke.item(), s.times)
        flow = gn * ctx.dose / V
        return {
            "ka": pb.asarray(np.array(flow @ by_ka)),
            "ke": pb.asarray(np.array(flow @ by_ke)),
            "volume": pb.asarray(np.array(-flow @ value / V)),
        }

    return oral_concentration


def drip(rng):
    return t(rng.uniform(8, 15)), t(rng.uniform(1, 3)), t(50.0), HOURS


@BOOK.wrong(
    lambda rng: (drip(rng), {}),
    "after the end of the infusion, the slope in the rate of elimination is that during it",
    at("duration"),
    r"after (?:the |an )?(?:end|infusion|stop)|\bstop(?:s|ped)?\b|end of (?:the )?infusion|\bdecay",
    r"(?:times?|hours?|t|elements?)`? ?(?:>=?|above|beyond|after|later than|greater than|exceed)",
    r"during (?:the )?infusion|still running|wash.?out|\bbranch\b",
    r"(?:last|later) (?:times|elements|concentrations)",
    mends(
        "- since",
        "-since",
        "since *",
        "s.infused *",
        "infused * (-k * infused).exp()",
        "infused * (-k * times).exp()",
        "pb.exp(-k * since)",
        "(-k * since).exp() * (infused",
    ),
    where="times after the infusion",
    shows=lambda rng: (drip(rng), {"duration": 3.0}),
)
def infusion_level():
    class InfusionLevel(pb.Function):
        """Concentration during an infusion at constant rate, and after it has been stopped."""

        @staticmethod
        def forward(ctx, volume, clearance, rate, times, duration=24.0):
            k = clearance / volume
            infused = pb.asarray(np.minimum(times, duration))
            waited = pb.asarray(np.maximum(times - duration, 0.0))
            shape = (1 - (-k * infused).exp()) * (-k * waited).exp()
            ctx.save_for_backward(volume, clearance, rate, shape, pb.asarray(times))
            return rate / clearance * shape

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            volume, clearance, rate, shape, times = ctx.saved_tensors
            k = clearance / volume
            steady = rate / clearance
            by_k = (g * steady * times * (-k * times).exp()).sum()
            by_steady = (g * shape).sum()
            return (
                -by_k * k / volume,
                by_k / volume - by_steady * steady / clearance,
                by_steady / clearance,
                None,
                None,
            )

    return InfusionLevel.apply


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.1, 0.6, 4)), t(rng.uniform(0.2, 0.8, 4)), t(np.array(0.3))), {}),
    "the gradient of the first drug is summed over the wrong axis, over its own doses",
    AXIS,
    TRANSPOSED,
    SQUARE,
    SHAPE,
    r"(?:sum|add)\w* over (?:the )?(?:rows|columns|doses|wrong|first|second)|axis ?= ?\d",
    mends(
        "sum(axis=1)\n", '"first": flow.sum(axis=1)', "(s.second))).sum(-1)", ".sum(1)", ".sum(-1)"
    ),
)
def combined_effect():
    @pb.autograd_function
    def combined_effect(ctx, first, second, synergy):
        """Effects of a plate of two drugs, independent action and an excess of synergy.

        first, second: (doses,) effects alone; a plate has as many doses of one as of the other.
        """
        a, b = first.reshape(-1, 1), second.reshape(1, -1)
        if len(first) != len(second):
            raise ValueError("a plate has as many rows as columns")
        ctx.save_for_backward(first=first, second=second, synergy=synergy)
        return a + b - a * b + synergy * a * b * (1 - a) * (1 - b)

    @combined_effect.backward
    def _(ctx, grad_output):
        s = ctx.saved_variables
        a, b = s.first.reshape(-1, 1), s.second.reshape(1, -1)
        to_first = grad_output * (1 - b + s.synergy * (1 - 2 * a) * b * (1 - b))
        to_second = grad_output * (1 - a + s.synergy * (1 - 2 * b) * a * (1 - a))
        return {
            "first": to_first.sum(axis=0),
            "second": to_second.sum(axis=0),
            "synergy": (grad_output * a * b * (1 - a) * (1 - b)).sum(),
        }

    return combined_effect


def patients(rng):
    return t(rng.uniform(5, 20, 3)), t(rng.uniform(2, 4, 3)), t(np.array(6.0))


@BOOK.wrong(
    lambda rng: (patients(rng), {"duration": 2.0}),
    "the last step may be shorter, but the backward pass takes it as long as the others",
    r"(?:last|final|partial|short\w*|incomplete) (?:time )?step|\bremainder\b|\bmultiple\b|divisib",
    at("duration"),
    at("dt"),
    r"(?:its|own|each|actual|different|wrong) (?:step )?length",
    r"\bdt\b.{0,30}(?:divid|instead)|whole (?:number|steps)",
    mends(
        "ctx.steps",
        "s.steps",
        "h = min(ctx.dt",
        "ctx.duration",
        "for c, h in",
        "for h, c in",
        "lengths",
    ),
    where="duration is no multiple of dt",
    shows=lambda rng: (patients(rng), {"duration": 2.1}),
)
def saturable_elimination():
    def flow(c, vmax, km):
        return -vmax * c / (km + c)

    def forward(ctx, start, vmax, km, duration=1.0, dt=0.25):
        """Concentration after `duration` hours of Michaelis-Menten elimination, by Heun's steps."""
        c, v, m = start.numpy(), vmax.numpy(), km.item()
        path, time = [], 0.0
        while duration - time > 1e-9:
            h = min(dt, duration - time)
            path.append(c)
            first = flow(c, v, m)
            c = c + h / 2 * (first + flow(c + h * first, v, m))
            time += h
        ctx.save_for_backward(start=start, vmax=vmax, km=km)
        ctx.path, ctx.dt = path, dt
        return pb.asarray(c.copy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        v, m, h = ctx.saved_variables.vmax.numpy(), ctx.saved_variables.km.item(), ctx.dt
        adjoint, by_v, by_m = grad_output.numpy(), 0.0, 0.0
        for c in reversed(ctx.path):
            trial = c + h * flow(c, v, m)
            to_second = adjoint * h / 2
            to_trial = -to_second * v * m / (m + trial) ** 2
            to_first = adjoint * h / 2 + to_trial * h
            for x, to in ((trial, to_second), (c, to_first)):
                by_v = by_v - to * x / (m + x)
                by_m = by_m + (to * v * x / (m + x) ** 2).sum()
            adjoint = adjoint + to_trial - to_first * v * m / (m + c) ** 2
        return {
            "start": pb.asarray(adjoint),
            "vmax": pb.asarray(by_v),
            "km": pb.asarray(np.array(by_m)),
        }

    return pb.autograd_function(forward, backward, name="saturable_elimination")


@BOOK.wrong(
    lambda rng: ((t(20 * np.exp(-0.2 * HOURS) * rng.uniform(0.9, 1.1, 6)),), {"times": HOURS}),
    "the terminal slope depends on the last concentrations too: that part of the tail is missing",
    MISSING,
    r"terminal|extrapolat|\btail\b|\bregress|\blambda|half.?life",
    r"(?:slope|rate|fit) .{0,40}(?:constant|depend|fixed|last|differentiat)",
    r"\blast (?:3|three|points?|concentrations|elements|values)",
    r"\bpoints ?= ?[^3]|(?:with|for|when|other) points\b",
    mends(
        "tail / ctx.rate",
        "by_rate",
        "ctx.rate**2",
        "rate**2",
        "ctx.last / ctx.rate**2",
        "ctx.centred",
        "by_slope",
    ),
)
def exposure():
    class Exposure(pb.Function):
        """Area under the curve to infinity: trapezoids, then the last point / terminal slope.

        points: how many of the last concentrations make the terminal slope.
        """

        @staticmethod
        def forward(ctx, concentration, times, points=3):
            c = concentration.numpy()
            x = times[-points:] - times[-points:].mean()
            rate = -(x @ np.log(c[-points:])) / (x @ x)
            if rate <= 0:
                raise ValueError("the concentration does not fall")
            ctx.save_for_backward(concentration=concentration, times=times, rate=rate)
            return pb.asarray(np.array((c[1:] + c[:-1]) @ np.diff(times) / 2 + c[-1] / rate))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s = ctx.saved_variables
            width = np.diff(s.times)
            grad = np.zeros(len(s.times))
            grad[:-1] += width / 2
            grad[1:] += width / 2
            grad[-1] += 1 / s.rate
            return {"concentration": pb.asarray(grad_output.item() * grad)}

    return Exposure.apply


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(20, 40, 3)), t(rng.uniform(2, 5, 3))), {"dose": 250.0}),
    "what the half-life passes on to the volume is missing",
    MISSING,
    r"half.?life|third output|outputs?\[?.?2\b|output number 3|\blast output",
    r"(?:log\(2\)|ln ?2|0\.693)",
    mends(
        "+ np.log(2) / CL * g_half", "np.log(2) * g_half / CL,", "g_half.numpy() * np.log(2) / CL"
    ),
)
def bolus_summary():
    @pb.autograd_function
    def bolus_summary(ctx, volume, clearance, dose=100.0):
        """Peak, exposure and half-life of each patient after an injection."""
        V, CL = volume.numpy(), clearance.numpy()
        ctx.save_for_backward(volume, clearance)
        ctx.dose = dose
        return {
            "peak": pb.asarray(dose / V),
            "exposure": pb.asarray(dose / CL),
            "half_life": pb.asarray(np.log(2) * V / CL),
        }

    @bolus_summary.backward
    @pb.once_differentiable
    def _(ctx, g_peak, g_exposure, g_half):
        V, CL = (x.numpy() for x in ctx.saved_tensors)
        grad_V = -ctx.dose / V**2 * g_peak.numpy()
        grad_CL = -(ctx.dose * g_exposure.numpy() + np.log(2) * V * g_half.numpy()) / CL**2
        return pb.asarray(grad_V), pb.asarray(grad_CL), None

    return bolus_summary


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(8, 12)), t(rng.uniform(20, 40)), t(rng.uniform(2, 4)), t(rng.uniform(4, 9))),
        {"times": HOURS},
    )
)
def two_compartments():
    @pb.autograd_function
    def two_compartments(ctx, central, peripheral, clearance, exchange, times, dose=100.0):
        """Concentration in the central compartment after an injection; volumes, then flows."""
        V1, V2, CL, Q = (x.item() for x in (central, peripheral, clearance, exchange))
        if min(V1, V2) <= 0 or min(CL, Q, *times) < 0:
            raise ValueError("volumes must be positive, flows and times not negative")
        K = np.array([[-(CL + Q) / V1, Q / V2], [Q / V1, -Q / V2]])
        left = np.array([linalg.expm(K * time)[0, 0] for time in times])
        ctx.save_for_backward(central, peripheral, clearance, exchange)
        ctx.K, ctx.left, ctx.times, ctx.dose = K, left, times, dose
        return pb.asarray(dose / V1 * left)

    @two_compartments.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        V1, V2, CL, Q = (x.item() for x in ctx.saved_tensors)
        gn = grad_output.numpy() * ctx.dose / V1
        corner = np.diag([1.0, 0.0])
        G = np.zeros((2, 2))
        for time, g in zip(ctx.times, gn, strict=True):
            A, E = ctx.K.T * time, g * time * corner
            G += linalg.expm_frechet(A, E, compute_expm=False)
        outflow = G[1, 0] - G[0, 0]
        inflow = G[0, 1] - G[1, 1]
        grads = {
            "central": -(outflow * Q - G[0, 0] * CL) / V1**2 - gn @ ctx.left / V1,
            "peripheral": -inflow * Q / V2**2,
            "clearance": -G[0, 0] / V1,
            "exchange": outflow / V1 + inflow / V2,
        }
        return {name: pb.asarray(np.array(value)) for name, value in grads.items()}

    return two_compartments


ASSAY = np.array([6.1, 4.4, 2.5, 0.0, 1.3, 0.0])


@BOOK.right(
    lambda rng: (
        (t(np.array([6, 4, 2.8, 0.9, 1.2, 0.6]) * rng.uniform(0.9, 1.1, 6)), t(0.2), t(0.15)),
        {"observed": ASSAY, "limit": 1.0},
    )
)
def censored_assay_nll():
    @pb.autograd_function
    def censored_assay_nll(ctx, predicted, additive, proportional, observed, limit=0.0):
        """Loss of assays, those below the limit of quantification through their probability."""
        f = predicted.numpy()
        sd = np.hypot(additive.item(), proportional.item() * f)
        if (sd == 0).any():
            raise ValueError("an assay without error")
        seen = observed >= limit
        z = (np.where(seen, observed, limit) - f) / sd
        loss = np.where(seen, z**2 / 2 + np.log(sd) + np.log(2 * np.pi) / 2, -special.log_ndtr(z))
        ctx.save_for_backward(predicted, additive, proportional)
        ctx.z, ctx.sd, ctx.seen = z, sd, seen
        return pb.asarray(np.array(loss.sum()))

    @censored_assay_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        f, a, b = (x.numpy() for x in ctx.saved_tensors)
        z, sd, seen = ctx.z, ctx.sd, ctx.seen
        log_ratio = -(z**2) / 2 - np.log(2 * np.pi) / 2 - special.log_ndtr(z)
        by_z = np.where(seen, z, -np.exp(np.where(seen, 0.0, log_ratio)))
        by_sd = seen / sd - by_z * z / sd
        by_f = -by_z / sd + by_sd * b**2 * f / sd
        grads = by_f, (by_sd * a / sd).sum(), (by_sd * b * f**2 / sd).sum()
        return {
            name: pb.asarray(np.array(g.item() * grad))
            for name, grad in zip(("predicted", "additive", "proportional"), grads, strict=True)
        }

    return censored_assay_nll


@BOOK.right(lambda rng: ((t(rng.uniform(0.1, 5, (2, 4))), t(rng.uniform(1, 2, 4)), t(0.5)), {}))
def tight_binding():
    def root(drug, target, kd):
        total = drug + target + kd
        return total, (total * total - 4 * drug * target).sqrt()

    def forward(ctx, drug, target, kd):
        """Complex of drug and target at equilibrium, from what there is of both (Morrison)."""
        if bool((kd <= 0).any()) or bool((drug < 0).any()) or bool((target < 0).any()):
            raise ValueError("amounts must not be negative, kd must be positive")
        total, width = root(drug, target, kd)
        ctx.save_for_backward(drug=drug, target=target, kd=kd)
        return 2 * drug * target / (total + width)

    def backward(ctx, grad_output):
        s = ctx.saved_variables
        total, width = root(s.drug, s.target, s.kd)
        bound = 2 * s.drug * s.target / (total + width)
        g = grad_output / width
        full = {"drug": g * (s.target - bound), "target": g * (s.drug - bound), "kd": -g * bound}
        return {name: pb.sum_to_size(grad, s[name].shape) for name, grad in full.items()}

    return pb.autograd_function(forward, backward, name="tight_binding")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 3, 2)), t(rng.uniform(1, 4, 2)), t(rng.uniform(0.8, 2.5, 2))),
        {"maximum": 100.0},
    )
)
def loewe_effect():
    @pb.autograd_function
    def loewe_effect(ctx, doses, ec50, hill, maximum=1.0):
        """Effect of drugs that act alike: doses over those of the same effect add up to 1."""
        d, c, h = doses.numpy(), ec50.numpy(), hill.numpy()
        if (d < 0).any() or (c <= 0).any() or (h <= 0).any() or not d.any():
            raise ValueError("parameters must be positive, and some dose")
        used = d > 0
        ends = -h[used] * np.log(d[used] / c[used])
        low, high = (ends - h[used] * np.log(2 * len(d))).min() - 0.1, ends.min() + 0.1
        u = optimize.brentq(lambda u: (d / c * np.exp(u / h)).sum() - 1, low, high, xtol=1e-14)
        ctx.save_for_backward(doses=doses, ec50=ec50, hill=hill)
        ctx.u, ctx.effect, ctx.rest = u, maximum * special.expit(-u), special.expit(u)
        return pb.asarray(np.array(ctx.effect))

    @loewe_effect.backward
    @pb.once_differentiable
    def _(ctx, g):
        d, c, h = (x.numpy() for x in ctx.saved_variables)
        potency = np.exp(ctx.u / h) / c
        flow = g.item() * ctx.effect * ctx.rest / (d * potency / h).sum()
        return {
            "hill": pb.asarray(-flow * d * potency * ctx.u / h**2),
            "ec50": pb.asarray(-flow * d * potency / c),
            "doses": pb.asarray(flow * potency),
        }

    return loewe_effect


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(50, 100, 4)), t(rng.uniform(4, 7)), np.array([0.0, 8, 16, 24])),
        {"times": np.array([2.0, 9, 15.9, 20, 30]), "missed": (2,)},
    )
)
def missed_doses():
    def forward(ctx, doses, half_life, intake, times, missed=(), threshold=40.0):
        """Amounts at `times` after doses at `intake`, some missed; how many are too low."""
        if half_life.item() <= 0:
            raise ValueError("half_life must be positive")
        age = np.subtract.outer(np.asarray(times), np.asarray(intake))
        taken = age >= 0
        taken[:, list(missed)] = False
        left = np.where(taken, 0.5 ** (np.maximum(age, 0.0) / half_life.item()), 0.0)
        amount = left @ doses.numpy()
        ctx.save_for_backward(doses=doses, half_life=half_life)
        ctx.left, ctx.age = left, age
        return pb.asarray(amount), pb.asarray(np.array((amount < threshold).sum()))

    @pb.once_differentiable
    def backward(ctx, g_amount, g_low):
        doses, h = (x.numpy() for x in ctx.saved_variables)
        gn = g_amount.numpy()
        slope = gn @ (ctx.left * ctx.age) @ doses * np.log(2) / h**2
        grads = {"half_life": pb.asarray(np.array(slope))}
        if ctx.needs_input_grad.doses:
            grads["doses"] = pb.asarray(ctx.left.T @ gn)
        return {"doses": None, **grads}

    return pb.autograd_function(forward, backward, name="missed_doses")
