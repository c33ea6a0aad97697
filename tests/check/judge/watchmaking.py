"""Watchmaking: balances, springs, barrels, trains, regulation, pendulums, quartz, displays."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import FACTOR, Book, at, mends, t

BOOK = Book("watchmaking")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(6.5, 8.5, 6)), t(np.array(52.0))), {}),
    "backward has 28800 beats an hour, whatever the setting says",
    at("beats"),
    FACTOR,
    r"(?<!beats=)28800|\b4\.0\b|hard.?coded|\bfrequency\b|4 ?Hz",
    mends("s.hertz", "np.pi * ctx.hertz", "ctx.beats", "beats / 7200e3 *", "s.beats"),
    where="beats is not 28800",
    shows=lambda rng: (
        (t(rng.uniform(8.5, 11.0, 6)), t(np.array(52.0))),
        {"beats": 21600},
    ),
)
def timegrapher_amplitude():
    @pb.autograd_function
    def timegrapher_amplitude(ctx, noise_time, lift_angle, beats=28800):
        """Amplitude in degrees from the times in ms between unlocking and drop; beats an hour."""
        phase = np.pi * beats / 7200 * noise_time.numpy() / 1000
        if ((phase <= 0) | (phase >= np.pi / 2)).any():
            raise ValueError("the noises of one beat lie less than half a beat apart")
        amplitude = lift_angle.item() / 2 / np.sin(phase)
        ctx.save_for_backward(phase=phase, amplitude=amplitude, lift=lift_angle.item())
        return pb.asarray(amplitude.copy())

    @timegrapher_amplitude.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        flow = grad_output.numpy() * s.amplitude
        return {
            "noise_time": pb.asarray(-flow / np.tan(s.phase) * np.pi * 4.0 / 1000),
            "lift_angle": flow.sum() / s.lift,
        }

    return timegrapher_amplitude


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(28, 33, 4)),
            t(rng.uniform(90, 110, 4)),
            t(rng.uniform(110, 130, 4)),
            t(rng.uniform(9, 12, 4)),
        ),
        {},
    ),
    "stiffness goes with the cube of the thickness: the factor 3 is missing",
    FACTOR + r"|multipl|divided by",
    r"\bcub|third power|power of|three times",
    mends("1.5 *", "3 * half", "half * 3", "* 1.5", "3 * s.pace"),
)
def hairspring_rate():
    @pb.autograd_function
    def hairspring_rate(ctx, thickness, height, length, inertia, young=200.0, period=1 / 3):
        """Daily rate in seconds of a balance with a flat hairspring.

        thickness, height of the strip: micrometres; length: mm; inertia: mg cm^2, all (n,);
        young: GPa; period: s, at which the movement would keep time.
        """
        h, w, L, inert = (x.numpy() for x in (thickness, height, length, inertia))
        stiffness = young * 1e9 * (w * 1e-6) * (h * 1e-6) ** 3 / (12 * L * 1e-3)
        pace = 86400 * period / (2 * np.pi) * np.sqrt(stiffness / (inert * 1e-10))
        ctx.save_for_backward(thickness, height, length, inertia, pace)
        return pb.asarray(pace - 86400)

    @hairspring_rate.backward
    @pb.once_differentiable
    def _(ctx, g):
        *strip, pace = ctx.saved_variables
        h, w, L, inert = (x.numpy() for x in strip)
        half = g.numpy() * pace / 2
        return {
            "thickness": pb.asarray(half / h),
            "height": pb.asarray(half / w),
            "length": pb.asarray(-half / L),
            "inertia": pb.asarray(-half / inert),
        }

    return hairspring_rate


def day_of_wear(turns):
    def given(rng):
        wound = rng.uniform(0.3, 0.9, 8) * turns
        return (t(wound), t(np.array(2.5)), t(np.array(0.31))), {"full": 7.5}

    return given


@BOOK.wrong(
    day_of_wear(1.0),
    "where the bridle slips, the state is the full barrel, yet the gradient passes through",
    r"\bslip|\bfull(?:y)? (?:barrel|wound)|\bclip|\bclamp|satur|\bcapped\b|\blimit",
    r"\bminimum\b|\bbranch\b|(?:should|must|expected|ought to)(?: be)? (?:0|zero)\b|passes through",
    mends("if ctx.slips[k]", "* (not ", "not s.slips", "~s.slips", "s.slips[k]", "< full"),
    where="the bridle slips",
    shows=day_of_wear(3.0),
)
def rotor_winding():
    @pb.autograd_function
    def rotor_winding(ctx, wound, start, used, full=8.0):
        state, out = start.item(), np.zeros(len(wound))
        for k, turns in enumerate(wound.numpy()):
            state = min(state + turns, full) - used.item()
            out[k] = state
        return pb.asarray(out)

    @rotor_winding.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        later = np.cumsum(grad_output.numpy()[::-1])[::-1]
        return {
            "wound": pb.asarray(later.copy()),
            "start": later[0],
            "used": -later.sum(),
        }

    return rotor_winding


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(6, 11, 5)), t(rng.uniform(0.85, 0.97, 4))),
        {"wheels": (78, 80, 75, 84), "pinions": (12, 10, 10, 7)},
    )
)
def escape_wheel_torque():
    @pb.autograd_function
    def escape_wheel_torque(ctx, barrel, efficiency, wheels, pinions):
        """Torque that a train leaves of the barrel's.

        barrel: (n,) in N mm; efficiency: (m,) of each mesh; wheels and pinions: m numbers of teeth,
        from the barrel on. The result is in N mm, too.
        """
        if not len(wheels) == len(pinions) == len(efficiency):
            raise ValueError("as many wheels and pinions as efficiencies")
        eta = efficiency.numpy()
        gear = np.prod(np.array(pinions) / np.array(wheels))
        before = np.concatenate([[1.0], np.cumprod(eta)[:-1]])
        after = np.concatenate([np.cumprod(eta[::-1])[::-1][1:], [1.0]])
        ctx.save_for_backward(barrel=barrel, others=gear * before * after, passed=gear * eta.prod())
        return pb.asarray(barrel.numpy() * gear * eta.prod())

    @escape_wheel_torque.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_product = gn @ s.barrel.numpy()
        return {
            "barrel": pb.asarray(gn * s.passed),
            "efficiency": pb.asarray(by_product * s.others),
        }

    return escape_wheel_torque


@BOOK.right(lambda rng: ((t(rng.normal(1.0, 3.0, (5, 2))),), {"vertical": (0, 1, 2)}))
def chronometer_criteria():
    @pb.autograd_function
    def chronometer_criteria(ctx, rates, vertical=(0, 1, 2)):
        """Criteria after ISO 3159 from daily rates: (positions, 2 days), s/day.

        Returns (4,): mean rate, mean variation, greatest variation, vertical less horizontal.
        """
        r = rates.numpy()
        if r.ndim != 2 or r.shape[1] != 2:
            raise ValueError("rates of two days in each position")
        upright = np.zeros(len(r), bool)
        upright[list(vertical)] = True
        if upright.all() or not upright.any():
            raise ValueError("both vertical and horizontal positions are needed")
        change = r[:, 1] - r[:, 0]
        ctx.most = int(np.abs(change).argmax())
        ctx.sign, ctx.upright = np.sign(change), upright
        differs = r[upright].mean() - r[~upright].mean()
        size = np.abs(change)
        return pb.asarray(np.array([r.mean(), size.mean(), size.max(), differs]))

    @chronometer_criteria.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        mean, variation, greatest, differs = grad_output.tolist()
        n, up = len(ctx.sign), ctx.upright
        by_change = variation / n * ctx.sign
        by_change[ctx.most] += greatest * ctx.sign[ctx.most]
        level = mean / (2 * n) + np.where(
            up, differs / (2 * up.sum()), -differs / (2 * (~up).sum())
        )
        return {"rates": pb.asarray(np.stack([level - by_change, level + by_change], axis=1))}

    return chronometer_criteria


@BOOK.right(lambda rng: ((t(rng.uniform(240, 1010, 4)), t(rng.uniform(0.5, 9, 4))), {}))
def pendulum_period():
    @pb.autograd_function
    def pendulum_period(ctx, length, amplitude, g=9.80665):
        """Period in s with the circular error; length in mm, amplitude in degrees (below 180)."""
        L, half = length.numpy() / 1000, np.radians(amplitude.numpy()) / 2
        m = np.sin(half) ** 2
        K = special.ellipk(m)
        some = np.where(m > 1e-9, m, 0.5)
        steep = (special.ellipe(some) / (1 - some) - special.ellipk(some)) / (2 * some)
        by_m = np.where(m > 1e-9, steep, np.pi / 8)
        small = 4 * np.sqrt(L / g)
        ctx.save_for_backward(by_length=small * K / (2 * length.numpy()), small=small)
        ctx.by_amplitude = small * by_m * np.sin(2 * half) * np.pi / 360
        return pb.asarray(small * K)

    @pendulum_period.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        by_length = pb.asarray(gn * ctx.saved_variables.by_length)
        return by_length, pb.asarray(gn * ctx.by_amplitude), None

    return pendulum_period


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(2, 36, 6)), t(np.array(26.0)), t(np.array(4.3))),
        {"hours": np.array([8.0, 1.0, 6.0, 2.5, 5.0, 1.5])},
    )
)
def quartz_drift():
    STEP = 1 / 32768 / 10 * 1e6

    def forward(ctx, temperature, turnover, offset, hours, curvature=0.035, trimmed=True):
        """Seconds gained after each spell of hours at a temperature in degrees C.

        offset: of the crystal at its turnover temperature, parts in a million; where trimmed, whole
        pulses are suppressed every ten seconds to bring it to the nearest they can.
        """
        away = temperature.numpy() - turnover.item()
        left = offset.item() - (STEP * np.floor(offset.item() / STEP + 0.5) if trimmed else 0.0)
        ppm = left - curvature * away**2
        ctx.save_for_backward(away=away, spell=hours * 3600e-6, curvature=curvature)
        return pb.asarray(np.cumsum(ppm * hours * 3600e-6))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s = ctx.saved_variables
        by_ppm = s.spell * np.cumsum(grad_output.numpy()[::-1])[::-1]
        by_away = -2 * s.curvature * s.away * by_ppm
        return {
            "temperature": pb.asarray(by_away),
            "turnover": -by_away.sum(),
            "offset": by_ppm.sum(),
        }

    return pb.autograd_function(forward, backward, name="quartz_drift")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(-0.5, 8.5, 6)), t(np.sort(rng.uniform(5, 11, 5)))),
        {"knots": np.array([0.0, 1.0, 2.5, 5.0, 7.5])},
    )
)
def barrel_torque():
    @pb.autograd_function
    def barrel_torque(ctx, turns, torque, knots):
        x = np.clip(turns.numpy(), knots[0], knots[-1])
        left = np.minimum(np.searchsorted(knots, x, side="right") - 1, len(knots) - 2)
        gap = knots[left + 1] - knots[left]
        part = (x - knots[left]) / gap
        y = torque.numpy()
        rise = (y[left + 1] - y[left]) / gap
        inside = (turns.numpy() > knots[0]) & (turns.numpy() < knots[-1])
        ctx.save_for_backward(left=left, part=part, slope=np.where(inside, rise, 0.0), size=len(y))
        return pb.asarray(y[left] + part * (y[left + 1] - y[left]))

    @barrel_torque.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_torque = np.zeros(s.size)
        np.add.at(by_torque, s.left, gn * (1 - s.part))
        np.add.at(by_torque, s.left + 1, gn * s.part)
        return {"turns": pb.asarray(gn * s.slope), "torque": pb.asarray(by_torque)}

    return barrel_torque


@BOOK.right(lambda rng: ((t(np.array(420.0)), t(np.array(38.0)), t(np.array(21.0))), {}))
def fusee_radii():
    @pb.autograd_function
    def fusee_radii(ctx, torque, stiffness, set_up, barrel=15.0, turns=6, per_turn=8):
        """Radii in mm of a fusee that evens the pull, step by step as the chain unwinds."""
        M, k, x0 = torque.item(), stiffness.item(), set_up.item()
        step = 2 * np.pi / per_turn
        pull, radii, pulls = x0 * k / barrel, [], []
        for _ in range(turns * per_turn):
            pulls.append(pull)
            radii.append(M / pull)
            pull = pull + k * radii[-1] * step / barrel**2
        ctx.save_for_backward(M=M, k=k, x0=x0, radii=np.array(radii), pulls=np.array(pulls))
        ctx.barrel, ctx.step = barrel, step
        return pb.asarray(np.array(radii))

    @fusee_radii.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, per = ctx.saved_variables, ctx.step / ctx.barrel**2
        by_pull = by_k = by_M = 0.0
        for g, r, pull in zip(
            grad_output.tolist()[::-1], s.radii[::-1], s.pulls[::-1], strict=True
        ):
            by_k += by_pull * r * per
            by_r = g + by_pull * s.k * per
            by_M += by_r / pull
            by_pull -= by_r * r / pull
        return {
            "torque": by_M,
            "stiffness": by_k + by_pull * s.x0 / ctx.barrel,
            "set_up": by_pull * s.k / ctx.barrel,
        }

    return fusee_radii


@BOOK.right(
    lambda rng: (
        (t(np.array([12.0, 95.0, 170.0, 305.0]) + 5 * rng.random(4)),),
        {"eccentricity": 0.0167},
    )
)
def equation_of_time():
    YEAR, PERIHELION, LONGITUDE = 365.2422, 3.0, np.radians(283.0)

    @pb.autograd_function
    def equation_of_time(ctx, day, eccentricity=0.0167, obliquity=23.44):
        """Minutes by which a sundial is ahead of the clock, for the cam of the display."""
        M = 2 * np.pi * (day.numpy() - PERIHELION) / YEAR
        e, tilt = eccentricity, np.cos(np.radians(obliquity))
        E = M + e * np.sin(M)
        for _ in range(30):
            E = E - (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
        true = 2 * np.arctan2(np.sqrt(1 + e) * np.sin(E / 2), np.sqrt(1 - e) * np.cos(E / 2))
        along = true + LONGITUDE
        ascension = np.arctan2(tilt * np.sin(along), np.cos(along))
        ahead = np.remainder(M + LONGITUDE - ascension + np.pi, 2 * np.pi) - np.pi
        by_M = np.sqrt(1 - e**2) / (1 - e * np.cos(E)) ** 2
        by_along = tilt / (np.cos(along) ** 2 + (tilt * np.sin(along)) ** 2)
        ctx.slope = 1440 / YEAR * (1 - by_along * by_M)
        return pb.asarray(720 / np.pi * ahead)

    @equation_of_time.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"day": pb.asarray(g.numpy() * ctx.slope)}

    return equation_of_time


@BOOK.right(lambda rng: ((t(np.array(285.0)), t(np.array(0.11)), t(np.array(9.0))), {"swings": 14}))
def free_decay():
    @pb.autograd_function
    def free_decay(ctx, amplitude, damping, friction, swings=40):
        """Amplitudes in degrees of a balance left to itself; friction may bring it to rest."""
        keep, A, out = 1 - damping.item(), amplitude.item(), []
        for _ in range(swings):
            A = max(keep * A - friction.item(), 0.0)
            out.append(A)
        ctx.keep, ctx.before, ctx.out = keep, [amplitude.item(), *out[:-1]], out
        return pb.asarray(np.array(out))

    @free_decay.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        to_A = by_keep = by_friction = 0.0
        for g, before, after in zip(
            reversed(grad_output.tolist()), reversed(ctx.before), reversed(ctx.out), strict=True
        ):
            moving = (to_A + g) if after > 0 else 0.0
            by_keep += moving * before
            by_friction -= moving
            to_A = moving * ctx.keep
        return {"amplitude": to_A, "damping": -by_keep, "friction": by_friction}

    return free_decay


def ticks(rng):
    n = 11
    times = 125.0 * np.arange(n) + 0.9 * (np.arange(n) % 2) + rng.normal(0, 0.1, n)
    return (t(times),), {}


@BOOK.right(ticks)
def beat_trace():
    @pb.autograd_function
    def beat_trace(ctx, times, beats=28800):
        """Rate in s/day and beat error in ms, from the times of noises in ms."""
        n = len(times)
        if n < 4:
            raise ValueError("a trace has four noises or more")
        number = np.arange(n) - (n - 1) / 2
        line = number / (number @ number)
        weights = np.where(np.arange(n - 1) % 2, -1.0 / ((n - 1) // 2), 1.0 / (n // 2)) / 2
        nominal = 3.6e6 / beats
        beat = line @ times.numpy()
        uneven = weights @ np.diff(times.numpy())
        ctx.line = -86400 * nominal / beat**2 * line
        ctx.uneven = np.sign(uneven) * (np.append(0.0, weights) - np.append(weights, 0.0))
        return pb.asarray(np.array(86400 * (nominal / beat - 1))), pb.asarray(np.array(abs(uneven)))

    @beat_trace.backward
    @pb.once_differentiable
    def _(ctx, g_rate, g_error):
        return {"times": pb.asarray(g_rate.item() * ctx.line + g_error.item() * ctx.uneven)}

    return beat_trace


@BOOK.right(
    lambda rng: (
        (t(4 + 6 * np.cos(np.radians(np.arange(0, 360, 45) - 70)) + rng.normal(0, 0.5, 8)),),
        {"angles": np.arange(0, 360, 45.0)},
    )
)
def heavy_spot():
    @pb.autograd_function
    def heavy_spot(ctx, rates, angles):
        a = np.radians(angles)
        design = np.stack([np.ones_like(a), np.cos(a), np.sin(a)], axis=1)
        fit = np.linalg.pinv(design)
        mean, x, y = fit @ rates.numpy()
        size = np.hypot(x, y)
        if size == 0:
            raise ValueError("the balance is poised: no direction is heavy")
        ctx.save_for_backward(fit=fit, x=x, y=y, size=size)
        out = (mean, size, np.degrees(np.arctan2(y, x)))
        return tuple(pb.asarray(np.array(value)) for value in out)

    @heavy_spot.backward
    @pb.once_differentiable
    def _(ctx, g_mean, g_size, g_angle):
        fit, x, y, size = ctx.saved_variables
        turn = np.degrees(g_angle.item()) / size**2
        along = g_size.item() / size
        by_fit = np.array([g_mean.item(), along * x - turn * y, along * y + turn * x])
        return {"rates": pb.asarray(by_fit @ fit)}

    return heavy_spot


@BOOK.right(
    lambda rng: (
        (t(np.array(3.2)), t(np.array(0.7)), t(rng.uniform(0, 0.9, 6))),
        {},
    )
)
def tooth_flank():
    @pb.autograd_function
    def tooth_flank(ctx, pitch_radius, rolling_radius, roll):
        """Points (n, 2) of an epicycloidal flank, in mm; can be differentiated twice."""
        ctx.save_for_backward(pitch_radius, rolling_radius, roll)
        centre = pitch_radius + rolling_radius
        spin = centre / rolling_radius * roll
        x = centre * roll.cos() - rolling_radius * spin.cos()
        y = centre * roll.sin() - rolling_radius * spin.sin()
        return pb.stack([x, y], dim=1)

    @tooth_flank.backward
    def _(ctx, g):
        R, r, roll = ctx.saved_variables
        gx, gy = g[:, 0], g[:, 1]
        spin = (R + r) / r * roll
        by_centre = (gx * roll.cos() + gy * roll.sin()).sum()
        by_spin = r * (gx * spin.sin() - gy * spin.cos())
        by_roll = (R + r) * (gy * roll.cos() - gx * roll.sin())
        direct = -(gx * spin.cos() + gy * spin.sin()).sum()
        return {
            "pitch_radius": by_centre + (by_spin * roll).sum() / r,
            "rolling_radius": by_centre + direct - (by_spin * roll).sum() * R / r**2,
            "roll": by_roll + by_spin * (R + r) / r,
        }

    return tooth_flank


POSITIONS = ("dial up", "crown left", "crown down", "dial down", "crown up")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(40, 60, 2)), t(rng.uniform(35, 50, 2)), t(np.array(0.12))),
        {"positions": POSITIONS},
    )
)
def pivot_friction():
    SHARE = {"dial": 3 * np.pi / 16, "crown": 1.0}

    @pb.autograd_function
    def pivot_friction(ctx, load, radius, coefficient, positions=("dial up", "crown down")):
        """Friction torque in nN m of the balance's two pivots in each position.

        load: (2,) of the upper and the lower pivot when the watch hangs, in micronewtons; radius:
        (2,), in micrometres. Lying, the watch rests on the tip of the pivot below alone.
        """
        P, r, mu = load.numpy(), radius.numpy(), coefficient.item()
        arms = np.zeros((len(positions), 2, 2))
        for k, position in enumerate(positions):
            side, _, end = position.partition(" ")
            if side == "crown":
                arms[k] = np.eye(2)
            elif side == "dial":
                arms[k, :, int(end == "up")] = SHARE[side] / 2
            else:
                raise ValueError(f"no such position: {position!r}")
        torque = mu * np.einsum("kij,i,j->k", arms, P, r) * 1e-3
        ctx.save_for_backward(P=P, r=r, mu=mu, arms=arms * 1e-3)
        return pb.asarray(torque)

    @pivot_friction.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        P, r, mu, arms = ctx.saved_variables
        table = np.tensordot(grad_output.numpy(), arms, axes=1)
        return {
            "load": pb.asarray(mu * table @ r),
            "radius": pb.asarray(mu * P @ table),
            "coefficient": P @ table @ r,
        }

    return pivot_friction
