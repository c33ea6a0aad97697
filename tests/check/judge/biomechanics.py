"""Biomechanics: muscles and tendons, joints, gait, force plates, contact of the foot."""

from __future__ import annotations

import numpy as np
from scipy import optimize, signal

import pullback as pb

from .entries import CHANGED, MISSING, REVERSED, SWAPPED, Book, at, mends, t

BOOK = Book("biomechanics")


def contraction(rng, low, high):
    return (
        t(rng.uniform(0.2, 0.9, 5)),
        t(rng.uniform(0.75, 1.35, 5)),
        t(np.linspace(low, high, 5) + rng.uniform(-0.02, 0.02, 5)),
    ), {}


@BOOK.wrong(
    lambda rng: contraction(rng, -0.8, -0.05),
    "a lengthening muscle has another curve, but gets the slope of the shortening one",
    r"lengthen|eccentric|\bbranch\b|positive veloc|\bvelocity.{0,25}(?:> ?0|positive|above)",
    r"\b(?:other|another|wrong|same) (?:curve|branch|slope|formula|case)|concentric",
    r"\bpositive\b|\bsign of\b",
    mends(
        "s.v > 0",
        "s.v >= 0",
        "s.v < 0",
        "s.v <= 0",
        "s.lengthens",
        "s.yielding",
        "(v > 0)",
    ),
    where="the muscle lengthens",
    shows=lambda rng: contraction(rng, -0.5, 0.7),
)
def hill_muscle():
    SHAPE, EXCESS, GIVING = 0.25, 0.5, 0.12

    @pb.autograd_function
    def hill_muscle(ctx, activation, length, velocity, strongest=1.0, width=0.45):
        """Force of muscles after Hill; length and velocity as parts of the optimal ones.

        velocity: negative where the muscle shortens, -1 at most.
        """
        a, x, v = activation.numpy(), length.numpy(), velocity.numpy()
        if (v < -1).any():
            raise ValueError("a muscle shortens with velocity 1 at most")
        overlap = np.exp(-(((x - 1) / width) ** 2))
        stretch = np.maximum(x - 1, 0)
        passive = np.expm1(4 * stretch / 0.6) / np.expm1(4.0)
        shortening = (1 + v) / (1 - np.minimum(v, 0) / SHAPE)
        speed = np.where(v > 0, 1 + EXCESS * v / (np.abs(v) + GIVING), shortening)
        ctx.save_for_backward(a=a, x=x, v=v, overlap=overlap, stretch=stretch, speed=speed)
        ctx.strongest, ctx.width = strongest, width
        return pb.asarray(strongest * (a * overlap * speed + passive))

    @hill_muscle.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        gn = ctx.strongest * grad_output.numpy()
        by_overlap = -2 * (s.x - 1) / ctx.width**2 * s.overlap
        by_stretch = 4 / 0.6 * np.exp(4 * s.stretch / 0.6) / np.expm1(4.0) * (s.stretch > 0)
        by_speed = (1 + 1 / SHAPE) / (1 - s.v / SHAPE) ** 2
        return {
            "activation": pb.asarray(gn * s.overlap * s.speed),
            "length": pb.asarray(gn * (s.a * s.speed * by_overlap + by_stretch)),
            "velocity": pb.asarray(gn * s.a * s.overlap * by_speed),
        }

    return hill_muscle


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=(4, 2))), t(rng.normal(size=4)), t(rng.normal(0, 0.3, (4, 2)))),
        {"mass": np.array([9.0, 3.8, 1.1, 0.4]), "inertia": np.array([0.2, 0.06, 0.01, 0.002])},
    ),
    "moments add up towards the body and must be taken apart the other way: the sum is reversed",
    REVERSED,
    r"cumulat|cumsum|proximal|distal|other (?:way|direction|end)|running sum|earlier|\blater\b",
    r"\b(?:prefix|suffix)\b|triang|\bfrom the (?:first|last|end|start)\b",
    mends(
        "np.cumsum(gn)",
        "np.add.accumulate(gn)",
        "gn.cumsum()",
        "np.cumsum(grad_output.numpy())",
        "np.tril(",
        "np.cumsum(gn, axis=0)",
    ),
)
def joint_moments():
    DOWN = np.array([0.0, -9.81])

    def across(lever):
        return np.stack([-lever[:, 1], lever[:, 0]], axis=1)

    @pb.autograd_function
    def joint_moments(ctx, acceleration, angular, lever, mass, inertia):
        """Moments at the joints of a limb in the plane, from its end inwards.

        Segment 0 is next to the trunk. acceleration: (n, 2) of the centres, angular: (n,);
        lever: (n, 2) from the joint of a segment to its far end, the centre lies half-way.
        """
        load = mass[:, None] * (acceleration.numpy() - DOWN)
        beyond = np.zeros_like(load)
        beyond[:-1] = np.cumsum(load[::-1], axis=0)[::-1][1:]
        own = inertia * angular.numpy()
        own += (across(lever.numpy()) * (0.5 * load + beyond)).sum(axis=1)
        ctx.save_for_backward(lever=lever, load=load, beyond=beyond)
        ctx.mass, ctx.inertia = mass, inertia
        return pb.asarray(np.cumsum(own[::-1])[::-1].copy())

    @joint_moments.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        to_own = np.cumsum(gn[::-1])[::-1]
        to_force = to_own[:, None] * across(s.lever.numpy())
        to_load = 0.5 * to_force
        to_load[1:] += np.cumsum(to_force, axis=0)[:-1]
        by_lever = -to_own[:, None] * across(0.5 * s.load + s.beyond)
        return {
            "acceleration": pb.asarray(ctx.mass[:, None] * to_load),
            "angular": pb.asarray(ctx.inertia * to_own),
            "lever": pb.asarray(by_lever),
        }

    return joint_moments


def load_shared(rng, **settings):
    args = t(np.array(38.0)), t(rng.uniform(0.02, 0.06, 4)), t(rng.uniform(5, 30, 4))
    return args, settings


@BOOK.wrong(
    load_shared,
    "the exponents of arms and areas are those of squared stresses, whatever power says",
    at("power"),
    r"\bpower.{0,40}(?:ignored|not used|other than|not 2|fixed|hard)|squared|hard.?coded|quadratic",
    r"\bexponents?\b|p ?/ ?\(p ?- ?1\)",
    mends(
        "ctx.power - 1",
        "s.power - 1",
        "s.power / (",
        "ctx.power / (",
        "power / (power - 1) * by_log",
    ),
    where="power is not 2",
    shows=lambda rng: load_shared(rng, power=3.0),
)
def muscle_sharing():
    def forward(ctx, moment, arms, areas, power=2.0):
        """Forces that balance a joint's moment with the least sum of stresses to a power.

        moment: () in Nm; arms: (n,) in m, of muscles that all turn the joint the same way.
        """
        r, A = arms.numpy(), areas.numpy()
        if power <= 1 or (r <= 0).any():
            raise ValueError("power must exceed 1 and arms be positive")
        share = (r * A**power) ** (1 / (power - 1))
        share /= r @ share
        ctx.save_for_backward(r=r, A=A, share=share, moment=moment.item())
        return pb.asarray(moment.item() * share)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        common = gn @ s.share
        by_log = s.moment * s.share * (gn - common * s.r)
        return {
            "moment": common,
            "arms": pb.asarray(by_log / s.r - s.moment * common * s.share),
            "areas": pb.asarray(2 * by_log / s.A),
        }

    return pb.autograd_function(forward, backward, name="muscle_sharing")


def leg(rng):
    hip = rng.normal(0, 0.02, (3, 3)) + np.array([0.0, 0.0, 0.9])
    knee = rng.normal(0, 0.02, (3, 3)) + np.array([0.08, 0.0, 0.48])
    ankle = rng.normal(0, 0.02, (3, 3)) + np.array([-0.02, 0.03, 0.24])
    return (t(hip), t(knee), t(ankle)), {}


@BOOK.wrong(
    leg,
    "the two bones' lengths are swapped in the gradient: each is divided by the other's",
    SWAPPED,
    r"\blengths?\b.{0,30}\b(?:other|wrong|own)\b|(?:wrong|other) (?:length|norm|denominator|bone)",
    r"normali[sz]|\bfactor\b|\bratio\b|\bscaled?\b|divided by|\bnorm\b",
    mends(
        "(s.cosine * s.thigh - s.shank) / s.thigh_length",
        "/ (s.thigh_length * sine)",
        "/ (sine * s.thigh_length)",
        "sine / s.thigh_length",
        "/ s.thigh_length",
        "/ s.shank_length",
        "(s.shank_length * sine)",
    ),
)
def knee_flexion():
    class KneeFlexion(pb.Function):
        """Angle by which the knee is bent, in radians, from markers: (n, 3) each."""

        @staticmethod
        def forward(ctx, hip, knee, ankle):
            thigh, shank = knee.numpy() - hip.numpy(), ankle.numpy() - knee.numpy()
            lengths = [np.linalg.norm(bone, axis=1, keepdims=True) for bone in (thigh, shank)]
            if min(length.min() for length in lengths) == 0:
                raise ValueError("markers of a bone coincide")
            thigh, shank = thigh / lengths[0], shank / lengths[1]
            cosine = np.clip((thigh * shank).sum(axis=1, keepdims=True), -1, 1)
            ctx.save_for_backward(thigh=thigh, shank=shank, cosine=cosine)
            ctx.lengths = lengths
            return pb.asarray(np.arccos(cosine[:, 0]))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s = ctx.saved_variables
            thigh_length, shank_length = ctx.lengths
            flow = -grad_output.numpy()[:, None] / np.sqrt(1 - s.cosine**2)
            by_thigh = flow * (s.shank - s.cosine * s.thigh) / shank_length
            by_shank = flow * (s.thigh - s.cosine * s.shank) / thigh_length
            return {
                "hip": pb.asarray(-by_thigh),
                "knee": pb.asarray(by_thigh - by_shank),
                "ankle": pb.asarray(by_shank),
            }

    return KneeFlexion.apply


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(200, 900, 6)), t(rng.uniform(-40, 60, 6))), {}),
    "backward divides the saved moment in place, and so overwrites the caller's array",
    CHANGED,
    r"\bcop(?:y|ies|ied)\b|\bcaller|\balias|\bview\b|/=",
    where="input changed by backward",
)
def centre_of_pressure():
    @pb.autograd_function
    def centre_of_pressure(ctx, vertical, moment, plate=0.04, threshold=20.0):
        """Where a foot presses on a force plate, in m; 0 while it hardly does.

        vertical: (n,) in N; moment: (n,) in Nm about the sensors, which lie `plate` deep.
        """
        force = vertical.numpy()
        contact = force > threshold
        ctx.save_for_backward(vertical=vertical, moment=moment)
        ctx.contact, ctx.lever = contact, plate * 9.81
        safe = np.where(contact, force, 1.0)
        return pb.asarray(np.where(contact, (ctx.lever - moment.numpy()) / safe, 0.0))

    @centre_of_pressure.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        gn = grad_output.numpy() * ctx.contact
        safe = np.where(ctx.contact, s.vertical.numpy(), 1.0)
        slope = s.moment.numpy()
        slope -= ctx.lever
        slope /= safe**2
        return {"vertical": pb.asarray(gn * slope), "moment": pb.asarray(-gn / safe)}

    return centre_of_pressure


@BOOK.wrong(
    lambda rng: (
        (
            t(np.array([0.8, 0.9, 0.7, 0.1, 0.05, 0.6, 0.2]) + rng.uniform(-0.03, 0.03, 7)),
            t(np.array(0.03)),
            t(np.array(0.07)),
        ),
        {"start": 0.2},
    ),
    "the time constant depends on the activation, too: that term is missing",
    MISSING,
    r"time constant|\brate\b.{0,30}depend|\btau\b|product rule|through (?:the )?(?:pace|rate)",
    r"\b(?:pace|rate)\b.{0,30}(?:constant|fixed|frozen|depends)|treated as|chain rule",
    mends(
        "1.5 * s.gap",
        "s.gap[k] * 1.5",
        "1.5 * gap",
        "gap * 1.5",
        "1.5 / s.scale",
        "1.5 * (s.u",
        "/ s.scale[k]",
        "/ (0.5 + 1.5 *",
        "1.5 * s.a[k]",
        "1.5 * moved",
        "moved * 1.5",
    ),
)
def activation_dynamics():
    class Activation(pb.Function):
        """Activation that follows the excitation, faster upwards than downwards (Thelen).

        excitation: (n,) between 0 and 1; rise, fall: time constants in s; returns (n,).
        """

        @staticmethod
        def forward(ctx, excitation, rise, fall, start=0.05, dt=0.005):
            u, a = excitation.numpy(), np.empty(len(excitation) + 1)
            a[0], pace = start, np.empty(len(u))
            for k in range(len(u)):
                scale = 0.5 + 1.5 * a[k]
                up = u[k] > a[k]
                pace[k] = 1 / (rise.item() * scale) if up else scale / fall.item()
                a[k + 1] = a[k] + dt * pace[k] * (u[k] - a[k])
            ctx.save_for_backward(u=u, a=a, pace=pace, rise=rise.item(), fall=fall.item(), dt=dt)
            return pb.asarray(a[1:].copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, gn = ctx.saved_variables, grad_output.numpy()
            grad_u, grad_rise, grad_fall, carried = np.zeros_like(gn), 0.0, 0.0, 0.0
            for k in reversed(range(len(gn))):
                carried += gn[k]
                grad_u[k] = carried * s.dt * s.pace[k]
                moved = carried * s.dt * s.pace[k] * (s.u[k] - s.a[k])
                if s.u[k] > s.a[k]:
                    grad_rise -= moved / s.rise
                else:
                    grad_fall -= moved / s.fall
                carried *= 1 - s.dt * s.pace[k]
            return {"excitation": pb.asarray(grad_u), "rise": grad_rise, "fall": grad_fall}

    return Activation.apply


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(0.1, 0.9, 5)),
            t(rng.uniform(1.95, 2.25, 5)),
            t(np.array(1.02)),
        ),
        {"strain": 0.05},
    )
)
def fibre_length():
    WIDTH = 0.45

    def curves(x):
        overlap = np.exp(-(((x - 1) / WIDTH) ** 2))
        stretch = np.maximum(x - 1, 0)
        return overlap, -2 * (x - 1) / WIDTH**2 * overlap, 2 * stretch**2, 4 * stretch

    def tendon(strained, strain):
        return 0.1 * np.expm1(25 * strained) * strain / 0.033

    def excess(x, a, total, slack, strain):
        overlap, _, passive, _ = curves(x)
        return a * overlap + passive - tendon((total - x) / slack - 1, strain)

    @pb.autograd_function
    def fibre_length(ctx, activation, total, slack, strain=0.033):
        """Length of the fibres at which muscle and tendon pull alike, found by bracketing.

        activation, total: (n,), total: of muscle with tendon; slack: (), the tendon's at rest.
        """
        pairs = zip(activation.numpy(), total.numpy(), strict=True)
        lengths = [
            optimize.brentq(
                excess, 0.3, T - 0.5, args=(a, T, slack.item(), strain), xtol=1e-14, rtol=1e-14
            )
            for a, T in pairs
        ]
        ctx.lengths = np.array(lengths)
        ctx.save_for_backward(activation=activation, total=total, slack=slack)
        ctx.strain = strain
        return pb.asarray(np.array(lengths))

    @fibre_length.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        a, total, slack = (each.numpy() for each in ctx.saved_tensors)
        x = ctx.lengths
        overlap, by_overlap, _, by_passive = curves(x)
        ratio = (total - x) / slack
        stiffness = 2.5 * np.exp(25 * (ratio - 1)) * ctx.strain / 0.033 / slack
        flow = -grad_output.numpy() / (a * by_overlap + by_passive + stiffness)
        return {
            "activation": pb.asarray(flow * overlap),
            "total": pb.asarray(-flow * stiffness),
            "slack": (flow * stiffness * ratio).sum(),
        }

    return fibre_length


@BOOK.right(
    lambda rng: (
        (
            t(
                np.array([[-3.0, 1.0], [-2.5, -0.5], [-2.0, 2.6], [-3.2, 0.2]])
                + 0.05 * rng.random()
            ),
            t(np.array([[2.6, 0.4], [2.0, -1.5], [2.4, 2.2], [1.1, 2.9]]) + 0.05 * rng.random()),
            t(np.array(1.2)),
        ),
        {},
    )
)
def wrapped_muscle():
    @pb.autograd_function
    def wrapped_muscle(ctx, origin, insertion, radius):
        """Length of muscles that wrap around a cylinder at 0 if it is in their way.

        origin, insertion: (n, 2), outside the cylinder; radius: ().
        """
        P, Q, R = origin.numpy(), insertion.numpy(), radius.item()
        p, q = np.linalg.norm(P, axis=1), np.linalg.norm(Q, axis=1)
        if min(p.min(), q.min()) <= R:
            raise ValueError("muscles are fixed outside the cylinder")
        turn = P[:, 0] * Q[:, 1] - P[:, 1] * Q[:, 0]
        between = np.arctan2(turn, (P * Q).sum(axis=1))
        arc = np.abs(between) - np.arccos(R / p) - np.arccos(R / q)
        wraps = arc > 0
        straight = np.linalg.norm(P - Q, axis=1)
        bent = np.sqrt(p**2 - R**2) + np.sqrt(q**2 - R**2) + R * arc
        ctx.save_for_backward(P=P, Q=Q, R=R, sense=np.sign(between), arc=arc, straight=straight)
        return pb.asarray(np.where(wraps, bent, straight))

    @wrapped_muscle.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        wraps = (s.arc > 0)[:, None]

        def pull(place, other, sense):
            """Return the unit vector along which the muscle leaves the place, outwards."""
            far = np.linalg.norm(place, axis=1, keepdims=True)
            side = np.stack([place[:, 1], -place[:, 0]], axis=1) * sense[:, None]
            tangent = np.sqrt(far**2 - s.R**2) * place + s.R * side
            return np.where(wraps, tangent / far**2, (place - other) / s.straight[:, None])

        return {
            "origin": pb.asarray(gn[:, None] * pull(s.P, s.Q, s.sense)),
            "insertion": pb.asarray(gn[:, None] * pull(s.Q, s.P, -s.sense)),
            "radius": gn @ np.maximum(s.arc, 0),
        }

    return wrapped_muscle


@BOOK.right(lambda rng: ((t(rng.normal(size=(20, 2)).cumsum(axis=0)),), {"cutoff": 9.0}))
def zero_lag_filter():
    def there_and_back(x, cutoff, rate):
        b, a = signal.butter(2, cutoff / (rate / 2))
        once = signal.lfilter(b, a, x, axis=0)
        return signal.lfilter(b, a, once[::-1], axis=0)[::-1].copy()

    @pb.autograd_function
    def zero_lag_filter(ctx, markers, cutoff=6.0, rate=100.0):
        """Low-pass filter run forwards and backwards over time, the first axis; rest before."""
        if not 0 < cutoff < rate / 2:
            raise ValueError("cutoff lies between 0 and half the rate")
        ctx.settings = cutoff, rate
        return pb.asarray(there_and_back(markers.detach().numpy(), cutoff, rate))

    @zero_lag_filter.backward
    def _(ctx, grad_output):
        # to filter backwards is the adjoint of forwards, so that the whole is symmetric
        return {"markers": zero_lag_filter(grad_output, *ctx.settings)}

    return zero_lag_filter


@BOOK.right(
    lambda rng: (
        (t(np.sin(np.arange(23.0)) + 0.2 * rng.normal(size=23)),),
        {"events": np.array([1, 7, 14, 21]), "points": 9},
    )
)
def cycle_statistics():
    def forward(ctx, curve, events, points=101):
        """Mean and spread over gait cycles, each stretched to as many points.

        curve: (n,); events: increasing sample numbers at which cycles begin and the last ends.
        """
        if len(events) < 3 or (np.diff(events) < 1).any():
            raise ValueError("events must increase and bound two cycles at least")
        when = events[:-1, None] + np.diff(events)[:, None] * np.linspace(0, 1, points)
        left = np.minimum(np.floor(when).astype(int), len(curve) - 2)
        part = when - left
        x = curve.numpy()
        cycles = (1 - part) * x[left] + part * x[left + 1]
        mean, spread = cycles.mean(axis=0), cycles.std(axis=0, ddof=1)
        ctx.save_for_backward(left=left, part=part, apart=cycles - mean, spread=spread)
        ctx.n = len(x)
        return pb.asarray(mean), pb.asarray(spread.copy())

    @pb.once_differentiable
    def backward(ctx, g_mean, g_spread):
        s = ctx.saved_variables
        count = len(s.left)
        by_cycle = g_mean.numpy() / count + g_spread.numpy() * s.apart / ((count - 1) * s.spread)
        grad = np.bincount(s.left.ravel(), ((1 - s.part) * by_cycle).ravel(), minlength=ctx.n)
        grad += np.bincount(s.left.ravel() + 1, (s.part * by_cycle).ravel(), minlength=ctx.n)
        return {"curve": pb.asarray(grad)}

    return pb.autograd_function(forward, backward, name="cycle_statistics")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([-0.02, 0.006, 0.011, 0.015, 0.02]) * rng.uniform(0.9, 1.1, 5)),
            t(np.array([-0.3, -0.2, 0.15, -2.5, 0.4])),
            t(np.array([1.0, -0.4, 0.02, -0.6, 0.3])),
            t(np.array(8.0)),
        ),
        {"friction": 0.7},
    )
)
def foot_contact():
    class FootContact(pb.Function):
        """Normal and tangential force of a sole by Hunt and Crossley, in kN.

        depth, sinking, slip: (n,) in m and m/s; stiffness: () in kN per mm**1.5.
        """

        @staticmethod
        def forward(depth, sinking, slip, stiffness, damping=0.5, friction=0.8, smooth=0.1):
            deep = 1e3 * np.maximum(depth.numpy(), 0)
            grip = 1 + 1.5 * damping * sinking.numpy()
            normal = 1e-2 * stiffness.item() * deep**1.5 * np.maximum(grip, 0)
            tangential = -friction * normal * np.tanh(slip.numpy() / smooth)
            return pb.asarray(normal), pb.asarray(tangential)

        @staticmethod
        def setup_context(ctx, inputs, output):
            depth, sinking, slip, stiffness, *rest = inputs
            ctx.save_for_backward(depth, sinking, slip, stiffness)
            given = dict(zip(("damping", "friction", "smooth"), rest, strict=False))
            ctx.settings = {"damping": 0.5, "friction": 0.8, "smooth": 0.1} | given

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_normal, g_tangential):
            depth, sinking, slip, k = (each.numpy() for each in ctx.saved_tensors)
            damping, friction, smooth = ctx.settings.values()
            deep, grip = 1e3 * np.maximum(depth, 0), np.maximum(1 + 1.5 * damping * sinking, 0)
            hold = np.tanh(slip / smooth)
            flow = 1e-2 * (g_normal.numpy() - friction * hold * g_tangential.numpy())
            by_slip = -friction * 1e-2 * k * deep**1.5 * grip * (1 - hold**2) / smooth
            return {
                "depth": pb.asarray(flow * k * 1.5e3 * np.sqrt(deep) * grip),
                "sinking": pb.asarray(flow * k * deep**1.5 * 1.5 * damping * (grip > 0)),
                "slip": pb.asarray(g_tangential.numpy() * by_slip),
                "stiffness": (flow * deep**1.5 * grip).sum(),
            }

    return FootContact.apply
