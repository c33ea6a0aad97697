"""Neuroscience: rate networks, synapses, plasticity, cables, spike trains, tuning, decoding."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, REVERSED, SHIFT, TRANSPOSED, Book, at, mends, t

BOOK = Book("neuroscience")


def recurrent(rng):
    W = rng.normal(0, 0.5, (4, 4))
    return (t(W), t(rng.normal(0, 0.7, (6, 4))), t(rng.uniform(-0.5, 0.5, 4))), {}


@BOOK.wrong(
    recurrent,
    "the slope of tanh is computed from the rates after the leak is mixed in, not from tanh itself",
    at("alpha"),
    r"(?:after|before|with|without) the (?:leak|mix|averag|low.?pass|update)|\bleaky?\b",
    r"(?:slope|derivative) of (?:the )?(?:tanh|nonlinear|activation|transfer)",
    r"alpha.{0,30}(?:not|other than|!=|<|different from) ?1|saved (?:value|rate)s?.{0,30}wrong",
    mends(
        "1 - phi**2",
        "1 - np.tanh(",
        "1 - s.phi",
        "1 - s.active",
        "1 - active",
        "(1 - ctx.alpha) * r[k]) / ctx.alpha",
    ),
    where="alpha is not 1",
    shows=lambda rng: (recurrent(rng)[0], {"alpha": 0.25}),
)
def rate_network():
    @pb.autograd_function
    def rate_network(ctx, weights, inputs, start, alpha=1.0):
        """Rates r <- (1 - alpha) * r + alpha * tanh(W @ r + input); inputs: (steps, neurons)."""
        W, rates = weights.numpy(), [start.numpy()]
        for drive in inputs.numpy():
            rates.append((1 - alpha) * rates[-1] + alpha * np.tanh(W @ rates[-1] + drive))
        ctx.save_for_backward(weights=weights, rates=np.array(rates))
        ctx.alpha = alpha
        return pb.asarray(np.array(rates[1:]))

    @rate_network.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        W, r = ctx.saved_variables.weights.numpy(), ctx.saved_variables.rates
        gn = grad_output.numpy()
        adjoint, grad_W, grad_inputs = np.zeros(len(W)), np.zeros_like(W), np.zeros_like(gn)
        for k in reversed(range(len(gn))):
            adjoint = adjoint + gn[k]
            local = ctx.alpha * adjoint * (1 - r[k + 1] ** 2)
            grad_inputs[k] = local
            grad_W += np.outer(local, r[k])
            adjoint = (1 - ctx.alpha) * adjoint + W.T @ local
        return {
            "weights": pb.asarray(grad_W),
            "inputs": pb.asarray(grad_inputs),
            "start": pb.asarray(adjoint),
        }

    return rate_network


def barrage(rng):
    spikes, times = np.sort(rng.uniform(0, 40, 5)), np.arange(0.0, 60.0, 4.0)
    return (t(rng.uniform(0.5, 2, 5)), t(np.array(6.0)), spikes, times), {}


@BOOK.wrong(
    barrage,
    "tau's gradient lacks the term of the rising factor lag / tau: only the exponential is derived",
    MISSING,
    r"product rule|\bonly the exponential|\brising\b|\brise\b|\bu - 1\b",
    r"\bterm\b.{0,40}(?:lag|tau|\bu\b)|(?:lag|tau|\bu\b).{0,40}\bterm\b",
    r"(?:first|linear|other) factor|right only (?:if|where|when) .{0,20}(?:lag|\bu\b|times)",
    mends(
        "(u - 1)",
        "(s.u - 1)",
        "* (1 - u)",
        "(1 - u) *",
        "(1 - s.u)",
        "(u * u - u)",
        "(u**2 - u)",
        "shape * u - shape",
        "s.shape - s.shape * u",
        "(u - 1.0)",
    ),
)
def synaptic_current():
    class SynapticCurrent(pb.Function):
        """Current at `times` of alpha synapses: w * lag / tau * exp(1 - lag / tau) a spike."""

        @staticmethod
        def forward(ctx, weights, tau, spikes, times):
            u = np.maximum(times[:, None] - spikes, 0.0) / tau.item()
            shape = u * np.exp(1 - u)
            ctx.save_for_backward(weights=weights, tau=tau, u=u, shape=shape)
            return pb.asarray(shape @ weights.numpy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, gn = ctx.saved_variables, grad_output.numpy()
            by_tau = s.shape * s.u / s.tau.item()
            grad_tau = gn @ by_tau @ s.weights.numpy()
            return {"weights": pb.asarray(s.shape.T @ gn), "tau": pb.asarray(np.array(grad_tau))}

    return SynapticCurrent.apply


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0, 60, 4)), t(rng.uniform(0, 60, 5))), {}),
    "pairs with the post spike first decay with tau_minus, but their slope is divided by tau_plus",
    at("tau_minus"),
    at("tau_plus"),
    FACTOR + r"|multipl|divided by",
    r"\bdepress|\bLTD\b|post.{0,20}(?:before|first|<=?|earlier).{0,10}pre|negative (?:gap|lag)",
    r"gap.{0,12}(?:<=? ?0|negative)|tau_(?:plus|minus).{0,30}(?:instead|should|where|missing)",
    mends(
        "-w / tau_plus, w / tau_minus",
        "w / ctx.tau_minus",
        "w / tau_minus",
        "np.where(s.gap > 0, -1 / tau_plus, 1 / tau_minus",
        "1 / tau_minus",
    ),
    where="tau_minus is not tau_plus",
    shows=lambda rng: (
        (t(rng.uniform(0, 60, 4)), t(rng.uniform(0, 60, 5))),
        {"tau_plus": 17.0, "tau_minus": 34.0},
    ),
)
def stdp_change():
    @pb.autograd_function
    def stdp_change(ctx, pre, post, up=1.0, down=1.05, tau_plus=20.0, tau_minus=20.0):
        """Change of a weight, all pairs of spikes taken; pre: (n,), post: (m,) times in ms."""
        gap = post.numpy() - pre.numpy()[:, None]
        tau = np.where(gap > 0, tau_plus, tau_minus)
        w = np.where(gap > 0, up, -down) * np.exp(-np.abs(gap) / tau)
        ctx.save_for_backward(gap=gap, w=w)
        ctx.time_constants = tau_plus, tau_minus
        return pb.asarray(np.array(w.sum()))

    @stdp_change.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        tau_plus, _ = ctx.time_constants
        by_gap = g.item() * np.where(s.gap > 0, -s.w, s.w) / tau_plus
        return {"pre": pb.asarray(-by_gap.sum(axis=1)), "post": pb.asarray(by_gap.sum(axis=0))}

    return stdp_change


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(1, 3, 5)), t(rng.uniform(0.2, 0.6, 6)), t(rng.uniform(0, 2, 6))),
        {},
    ),
    "an axial conductance joins two compartments: the part of the right one is left out",
    MISSING,
    SHIFT,
    r"(?:two|both|next|second|right|other) (?:compartments?|ends?|nodes?|sides?)|\bone.sided\b",
    r"(?:adjoint|lam)\[1:\]|\bdifference of (?:the )?adjoint|only (?:the )?(?:left|first|one)",
    mends(
        "adjoint[:-1] - adjoint[1:]",
        "adjoint[1:] - adjoint[:-1]",
        "np.diff(adjoint)",
        "adjoint[1:] *",
    ),
)
def cable_potential():
    def matrix(axial, leak):
        system = np.diag(leak)
        for k, a in enumerate(axial):
            system[k : k + 2, k : k + 2] += a * np.array([[1.0, -1.0], [-1.0, 1.0]])
        return system

    def forward(ctx, axial, leak, current):
        """Steady potential along a passive cable with sealed ends.

        axial: (n - 1,) conductances between neighbours, leak: (n,), current: (n,) injected.
        """
        if len(axial) != len(leak) - 1:
            raise ValueError("there is an axial conductance between each two neighbours")
        V = np.linalg.solve(matrix(axial.numpy(), leak.numpy()), current.numpy())
        ctx.save_for_backward(axial=axial, leak=leak, V=V)
        return pb.asarray(V)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s = ctx.saved_variables
        adjoint = np.linalg.solve(matrix(s.axial.numpy(), s.leak.numpy()), grad_output.numpy())
        drop = s.V[:-1] - s.V[1:]
        return (
            pb.asarray(-adjoint[:-1] * drop),
            pb.asarray(-adjoint * s.V),
            pb.asarray(adjoint),
        )

    return pb.autograd_function(forward, backward, name="cable_potential")


SPIKES = np.array([0, 1, 0, 0, 2, 1, 0, 1, 0, 0, 1, 3], dtype=float)


@BOOK.wrong(
    lambda rng: ((t(rng.normal(-0.5, 0.5, 12)), t(np.array([-0.8, 0.3, 0.1])), SPIKES), {}),
    "the gradient of the history filter comes in reverse order: the longest lag first",
    REVERSED,
    r"(?:order|longest|oldest|newest|shortest) (?:of (?:the )?)?(?:lags?|first)",
    r"\blags?\b.{0,30}order|(?:first|last) (?:element|entry|lag).{0,30}(?:last|first)",
    mends(
        "(windows.T @ by_eta)[::-1]",
        "windows[:, ::-1].T @ by_eta",
        "(by_eta @ windows)[::-1]",
        "by_eta @ windows[:, ::-1]",
        "np.flip(windows",
    ),
)
def spike_history_nll():
    def history(spikes, lags):
        padded = np.concatenate([np.zeros(lags), spikes[:-1]])
        return np.lib.stride_tricks.sliding_window_view(padded, lags)

    @pb.autograd_function
    def spike_history_nll(ctx, drive, filter, spikes, dt=1.0):
        """Poisson loss of spike counts; rate = exp(drive + sum_j filter[j] * spikes[k - 1 - j])."""
        windows = history(spikes, len(filter))
        eta = drive.numpy() + windows @ filter.numpy()[::-1]
        ctx.save_for_backward(eta=eta)
        ctx.spikes, ctx.lags, ctx.dt = spikes, len(filter), dt
        return pb.asarray(np.array((np.exp(eta) * dt - spikes * eta).sum()))

    @spike_history_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        windows = history(ctx.spikes, ctx.lags)
        by_eta = g.item() * (np.exp(ctx.saved_variables.eta) * ctx.dt - ctx.spikes)
        return {"drive": pb.asarray(by_eta), "filter": pb.asarray(windows.T @ by_eta)}

    return spike_history_nll


PLACES = np.arange(5.0)
SURROUND = np.exp(-((PLACES - PLACES[:, None]) ** 2) / 8)


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.5, 3, 5)), SURROUND), {"exponent": 2.0}),
    "the suppression goes back through the pool's weights themselves, not through their transpose",
    TRANSPOSED,
    r"\bsymmetr|\basymmetr|\bweights\.T\b|\bpool\.T\b|\b[wW]\.T\b",
    r"(?:rows?|columns?).{0,30}(?:columns?|rows?)|\bdirection of the (?:weights|connections)",
    mends("ctx.pool.T @", ") @ ctx.pool", "np.dot(ctx.pool.T", "pool.T @", ") @ pool"),
    where="the pool's weights are not symmetric",
    shows=lambda rng: ((t(rng.uniform(0.5, 3, 5)), rng.uniform(0, 1, (5, 5))), {}),
)
def divisive_normalisation():
    @pb.autograd_function
    def divisive_normalisation(ctx, drive, pool, exponent=2.0, sigma=1.0):
        """Responses drive**n / (sigma**n + pool @ drive**n) of a population; pool: (n, n) array."""
        if (drive.numpy() < 0).any():
            raise ValueError("divisive_normalisation: the drive must not be negative")
        driven = drive.numpy() ** exponent
        total = sigma**exponent + pool @ driven
        ctx.save_for_backward(drive=drive, driven=driven, total=total)
        ctx.pool, ctx.exponent = pool, exponent
        return pb.asarray(driven / total)

    @divisive_normalisation.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        suppression = ctx.pool @ (gn * s.driven / s.total**2)
        slope = ctx.exponent * s.drive.numpy() ** (ctx.exponent - 1)
        return {"drive": pb.asarray(slope * (gn / s.total - suppression))}

    return divisive_normalisation


@BOOK.right(
    lambda rng: ((t(np.array([0.4, 1.3, 0.9, 2.0, 3.5])), t(rng.uniform(8, 20, 5)), 2.0), {})
)
def firing_rate():
    @pb.autograd_function
    def firing_rate(ctx, current, tau, refractory, threshold=1.0):
        """Rate in Hz of leaky integrate-and-fire neurons, 0 up to the threshold; times in ms."""
        current_, tau_ = current.numpy(), tau.numpy()
        if (tau_ <= 0).any() or refractory <= 0:
            raise ValueError("time constants must be positive")
        fires = current_ > threshold
        safe = np.where(fires, current_, 2 * threshold)
        climb = np.log(safe / (safe - threshold))
        rate = np.where(fires, 1000 / (refractory + tau_ * climb), 0.0)
        ctx.save_for_backward(tau=tau, climb=climb, rate=rate, safe=safe)
        ctx.threshold = threshold
        return pb.asarray(rate.copy())

    @firing_rate.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_interval = -g.numpy() * s.rate**2 / 1000
        by_climb = by_interval * s.tau.numpy()
        return {
            "current": pb.asarray(-by_climb * ctx.threshold / (s.safe * (s.safe - ctx.threshold))),
            "tau": pb.asarray(by_interval * s.climb),
        }

    return firing_rate


@BOOK.right(lambda rng: ((t(np.append(rng.uniform(-80, 20, 5), -40.0)),), {}))
def sodium_gate():
    def opening(voltage):
        u = (voltage + 40) / 10
        near = np.abs(u) < 1e-4
        v = np.where(near, 1.0, u)
        closed = -np.expm1(-v)
        rate = np.where(near, 1 + u / 2, v / closed)
        slope = np.where(near, 0.5 + u / 6, (closed - v * np.exp(-v)) / closed**2)
        return rate, slope / 10

    @pb.autograd_function
    def sodium_gate(ctx, voltage):
        """Hodgkin and Huxley's m: share open at rest and time constant in ms; voltage in mV."""
        a, b = opening(voltage.numpy())[0], 4 * np.exp(-(voltage.numpy() + 65) / 18)
        ctx.save_for_backward(voltage=voltage, a=a, b=b)
        return {"share": pb.asarray(a / (a + b)), "tau": pb.asarray(1 / (a + b))}

    @sodium_gate.backward
    @pb.once_differentiable
    def _(ctx, g_share, g_tau):
        s = ctx.saved_variables
        slope_a, slope_b = opening(s.voltage.numpy())[1], -s.b / 18
        by_a = (g_share.numpy() * s.b - g_tau.numpy()) / (s.a + s.b) ** 2
        by_b = (-g_share.numpy() * s.a - g_tau.numpy()) / (s.a + s.b) ** 2
        return {"voltage": pb.asarray(by_a * slope_a + by_b * slope_b)}

    return sodium_gate


@BOOK.right(lambda rng: ((t(rng.uniform(5, 80, 6)), t(0.45), t(60.0)), {}))
def synaptic_depression():
    def forward(ctx, intervals, use, recovery):
        """Size of each response in a train of n + 1 spikes; intervals: (n,), in ms."""
        U, tau = use.item(), recovery.item()
        if not 0 < U < 1 or tau <= 0:
            raise ValueError("use must lie between 0 and 1, recovery must be positive")
        kept, store = np.exp(-intervals.numpy() / tau), [1.0]
        for k in kept:
            store.append(1 - (1 - store[-1] * (1 - U)) * k)
        ctx.save_for_backward(intervals=intervals, use=use, recovery=recovery)
        ctx.store, ctx.kept = np.array(store), kept
        return pb.asarray(U * ctx.store)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn, x = ctx.saved_variables, grad_output.numpy(), ctx.store
        U, tau, gaps = s.use.item(), s.recovery.item(), s.intervals.numpy()
        grad_U, by_kept, adjoint = gn @ x, np.zeros_like(gaps), U * gn[-1]
        for k in reversed(range(len(gaps))):
            by_kept[k] = -adjoint * (1 - x[k] * (1 - U))
            grad_U -= adjoint * x[k] * ctx.kept[k]
            adjoint = adjoint * (1 - U) * ctx.kept[k] + U * gn[k]
        flow = by_kept * ctx.kept / tau
        return {
            "intervals": pb.asarray(-flow),
            "use": pb.asarray(np.array(grad_U)),
            "recovery": pb.asarray(np.array(flow @ gaps / tau)),
        }

    return pb.autograd_function(forward, backward, name="synaptic_depression")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([3.0, 11, 18, 32, 41]) + rng.uniform(-1, 1, 5)),
            t(np.array([4.5, 21, 33, 57]) + rng.uniform(-1, 1, 4)),
        ),
        {"cost": 0.2},
    )
)
def spike_train_distance():
    @pb.autograd_function
    def spike_train_distance(ctx, first, second, cost=1.0):
        """Victor and Purpura's distance: cost per ms moved, 1 for a spike added or deleted."""
        a, b = first.numpy(), second.numpy()
        if (np.diff(a) <= 0).any() or (np.diff(b) <= 0).any():
            raise ValueError("spike times must increase")
        D = np.add.outer(np.arange(len(a) + 1.0), np.arange(len(b) + 1.0))
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                moved = D[i, j] + cost * abs(x - y)
                D[i + 1, j + 1] = min(moved, D[i, j + 1] + 1, D[i + 1, j] + 1)
        ctx.save_for_backward(a=a, b=b, D=D)
        ctx.cost = cost
        return pb.asarray(np.array(D[-1, -1]))

    @spike_train_distance.backward
    @pb.once_differentiable
    def _(ctx, g):
        a, b, D = ctx.saved_variables
        grad_a, grad_b, i, j = np.zeros_like(a), np.zeros_like(b), len(a), len(b)
        while i and j:
            if D[i, j] == D[i - 1, j] + 1:
                i -= 1
            elif D[i, j] == D[i, j - 1] + 1:
                j -= 1
            else:
                i, j = i - 1, j - 1
                grad_a[i] = g.item() * ctx.cost * np.sign(a[i] - b[j])
                grad_b[j] = -grad_a[i]
        return {"first": pb.asarray(grad_a), "second": pb.asarray(grad_b)}

    return spike_train_distance


@BOOK.right(
    lambda rng: ((t(rng.uniform(2, 20, (3, 8))), np.arange(8) * np.pi / 4), {"baseline": 1.5})
)
def population_vector():
    @pb.autograd_function
    def population_vector(ctx, rates, preferred, baseline=0.0):
        """Direction that a population codes and the vector's length; rates: (..., neurons)."""
        above = (rates - baseline).numpy()
        x, y = above @ np.cos(preferred), above @ np.sin(preferred)
        length = np.hypot(x, y)
        if (length < 1e-9).any():
            raise ValueError("no direction: the vectors cancel")
        direction = pb.asarray(np.arctan2(y, x))
        ctx.save_for_backward(direction=direction, length=length)
        ctx.preferred = preferred
        return direction, pb.asarray(length.copy())

    @population_vector.backward
    @pb.once_differentiable
    def _(ctx, g_direction, g_length):
        s = ctx.saved_variables
        away = ctx.preferred - s.direction.numpy()[..., None]
        turn = (g_direction.numpy() / s.length)[..., None] * np.sin(away)
        return {"rates": pb.asarray(turn + g_length.numpy()[..., None] * np.cos(away))}

    return population_vector
