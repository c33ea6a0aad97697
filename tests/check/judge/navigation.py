"""Navigation: attitude, roads, compass, sensors at rest, local frames, dead steps, rhumb lines."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import CHANGED, FACTOR, MISSING, SIGN, Book, at, mends, t

BOOK = Book("navigation")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(-1, 1, (4, 3))), t(np.array([0.8, 0.1, -0.5, 0.3]))), {"dt": 0.5}),
    "a quaternion product does not commute: the gradient of the left factor has them in the wrong "
    "order",
    r"commut|(?:wrong|reverse\w*|swapped|opposite|other|correct) order",
    r"(?:wrong|other|left|right) (?:side|factor)",
    r"\bswap|exchang|(?:left|right|pre|post).?multipl|from the (?:left|right)",
    mends(
        "product(adjoint, conjugate(turn))",
        "product(adjoint, turn * FLIP)",
        "product(adjoint, conjugate(",
        "product(adjoint, ",
    ),
)
def attitude_track():
    FLIP = np.array([1.0, -1, -1, -1])

    def product(p, q):
        vector = p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:])
        return np.concatenate([[p[0] * q[0] - p[1:] @ q[1:]], vector])

    def turns(half):
        n = np.sqrt((half**2).sum(axis=1, keepdims=True))
        return n, np.hstack([np.cos(n), np.sinc(n / np.pi) * half])

    @pb.autograd_function
    def attitude_track(ctx, rates, start, dt=0.01):
        """Attitude after the turns that a gyroscope on the body reports; rates: (n, 3) in rad/s.

        start: (4,), real part first; it need not be of length one, nor is the result then.
        """
        ctx.path = [start.numpy().copy()]
        for turn in turns(rates.numpy() * dt / 2)[1]:
            ctx.path.append(product(ctx.path[-1], turn))
        ctx.save_for_backward(rates=rates)
        ctx.dt = dt
        return pb.asarray(ctx.path[-1].copy())

    @attitude_track.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        half = ctx.saved_variables.rates.numpy() * ctx.dt / 2
        n, each = turns(half)
        safe = np.where(n > 1e-3, n, 1.0)
        bend = np.where(n > 1e-3, (np.cos(n) - np.sinc(n / np.pi)) / safe**2, -1 / 3 + n**2 / 30)
        adjoint, grad = grad_output.numpy(), np.empty_like(half)
        for k in reversed(range(len(half))):
            turn, h, sinc = each[k], half[k], np.sinc(n[k] / np.pi)
            real, *imaginary = product(ctx.path[k] * FLIP, adjoint)
            v = np.array(imaginary)
            grad[k] = sinc * (v - real * h) + bend[k] * (v @ h) * h
            adjoint = product(turn * FLIP, adjoint)
        return {"rates": pb.asarray(grad * ctx.dt / 2), "start": pb.asarray(adjoint)}

    return attitude_track


ROAD = np.array([[0.0, 0], [4, 0], [7, 3], [7, 8]])


@BOOK.wrong(
    lambda rng: (
        (t(np.array([[2.0, 0.4], [5.6, 1.2], [6.4, 5]]) + rng.uniform(-0.2, 0.2, (3, 2))), t(ROAD)),
        {},
    ),
    "beyond the ends of a road and outside its bends the place is clamped, its gradient is not",
    r"\bclamp|\bclip|(?:beyond|past) (?:the|a|an|its|either)\b(?! tol)",
    r"\boverhang|before the (?:start|first)|\bsaturat",
    r"(?:end|start|vertex|vertices|corner|bend)s? of (?:the|a|its) (?:road|segment|line|polyline)",
    r"(?:nearest|closest|projects?|projection).{0,30}(?:vertex|vertices|corner|end|outside)",
    r"outside (?:the |a |its )?(?:road|segment|bend|corner|end|interval|\[0)",
    r"(?:should be|expected) (?:zero|0(?![.\d]))|\bbends?\b|\bcorners?\b",
    mends("inside", "0 < ", "< 1", "> 0", "free =", "clamped", "ctx.part"),
    where="a point beyond the end of the road",
    shows=lambda rng: ((t(np.array([[2.0, 0.4], [7.3, 9.1], [-1, 0.5]])), t(ROAD)), {}),
)
def place_on_road():
    def segments(points, road):
        step = np.diff(road, axis=0)
        length = np.sqrt((step**2).sum(axis=1))
        arm = points[:, None] - road[:-1]
        part = np.clip((arm * step).sum(axis=2) / length**2, 0.0, 1.0)
        gap = arm - part[:, :, None] * step
        return step / length[:, None], length, part, (gap**2).sum(axis=2).argmin(axis=1)

    def forward(ctx, points, road):
        """Distance along a road at which each point is nearest to it; points, road: (n, 2)."""
        _, length, part, k = segments(points.numpy(), road.numpy())
        ctx.save_for_backward(points=points, road=road)
        before = np.cumsum(length) - length
        return pb.asarray(before[k] + part[np.arange(len(k)), k] * length[k])

    @pb.once_differentiable
    def backward(ctx, grad_output):
        points, road = (v.numpy() for v in ctx.saved_variables)
        along, length, _, k = segments(points, road)
        gn, u = grad_output.numpy()[:, None], along[k]
        by_road = np.zeros_like(road)
        for each, seed in zip(k, gn, strict=True):
            by_road[1 : each + 1] += seed * along[:each]
            by_road[:each] -= seed * along[:each]
        arm = points - road[k]
        across = (arm - (arm * u).sum(axis=1, keepdims=True) * u) / length[k][:, None]
        np.add.at(by_road, k, -gn * (u + across))
        np.add.at(by_road, k + 1, gn * across)
        return pb.asarray(gn * u), pb.asarray(by_road)

    return pb.autograd_function(forward, backward, name="place_on_road")


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.normal([20, 5, 40], 3, (4, 3))),
            t(rng.uniform(-0.4, 0.4, 4)),
            t(rng.normal(0, 0.2, 4)),
        ),
        {"declination": 0.05},
    ),
    "in the slope of the level y field in roll, the vertical field has the wrong sign",
    SIGN,
    r"\bz\b.{0,40}(?:wrong|flip|plus|revers)|(?:vertical|third|down\w*) (?:field|component|column)",
    r"(?:2|two|twice|double).{0,30}\bz\b",
    mends(
        "-y * sin_roll - z * cos_roll",
        "-(y * sin_roll + z * cos_roll)",
        "-z * cos_roll - y * sin_roll",
        "- z * cos_roll",
        "-(z * cos_roll",
    ),
)
def compass_heading():
    class CompassHeading(pb.Function):
        """Heading from a magnetometer that is tilted; field: (n, 3), angles in radians, (n,)."""

        @staticmethod
        def forward(ctx, field, roll, pitch, declination=0.0):
            x, y, z = field[:, 0], field[:, 1], field[:, 2]
            level_x = x * pitch.cos() + (y * roll.sin() + z * roll.cos()) * pitch.sin()
            level_y = y * roll.cos() - z * roll.sin()
            ctx.save_for_backward(field=field, roll=roll, pitch=pitch)
            return pb.atan2(-level_y, level_x) + declination

        @staticmethod
        def backward(ctx, grad_output):
            s = ctx.saved_variables
            x, y, z = s.field[:, 0], s.field[:, 1], s.field[:, 2]
            sin_roll, cos_roll = s.roll.sin(), s.roll.cos()
            sin_pitch, cos_pitch = s.pitch.sin(), s.pitch.cos()
            tilted = y * sin_roll + z * cos_roll
            level_x = x * cos_pitch + tilted * sin_pitch
            level_y = y * cos_roll - z * sin_roll
            g = grad_output / (level_x**2 + level_y**2)
            to_x, to_y = g * level_y, -g * level_x
            to_field = (
                to_x * cos_pitch,
                to_x * sin_roll * sin_pitch + to_y * cos_roll,
                to_x * cos_roll * sin_pitch - to_y * sin_roll,
            )
            by_roll = to_x * level_y * sin_pitch + to_y * (-y * sin_roll + z * cos_roll)
            return {
                "field": pb.stack(to_field, axis=1),
                "roll": by_roll,
                "pitch": to_x * (tilted * cos_pitch - x * sin_pitch),
            }

    return CompassHeading.apply


@BOOK.wrong(
    lambda rng: ((t(rng.normal(0.2, 1, (6, 3))),), {}),
    "backward takes the mean from the caller's rates in place",
    CHANGED,
    r"\b(?:caller|user)'?s\b|\binput (?:array|itself|tensor)|\bcopied\b|\bcopy\b",
    r"side.effect|\balias|after backward",
    mends("rates = rates - ", "rates.copy()", ".numpy().copy()", "- rates.mean("),
    where="input changed by backward",
)
def rest_noise():
    @pb.autograd_function
    def rest_noise(ctx, rates, ddof=1):
        """Noise of each axis of a gyroscope that rests; rates: (samples, axes)."""
        noise = rates.numpy().std(axis=0, ddof=ddof)
        if (noise == 0).any():
            raise ValueError("an axis without noise is broken")
        ctx.save_for_backward(rates=rates, noise=noise)
        ctx.freedom = len(rates) - ddof
        return pb.asarray(noise.copy())

    @rest_noise.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        rates, noise = ctx.saved_variables.rates.numpy(), ctx.saved_variables.noise
        rates -= rates.mean(axis=0)
        return {"rates": pb.asarray(grad_output.numpy() * rates / (ctx.freedom * noise))}

    return rest_noise


@BOOK.wrong(
    lambda rng: ((t(rng.normal([0.8, 0.2], 0.01, (1, 2))), t(np.array([0.8, 0.2]))), {}),
    "the origin's gradient is the mean over the points, where it must be their sum",
    FACTOR,
    r"\b(?:the|a|is|takes?|as) mean\b|\bmean (?:over|instead|rather|of)|\.mean\(",
    r"\baverage|number of (?:points|rows)|several points|more than one|\b1 ?/ ?n\b",
    r"\bone (?:point|row)|single (?:point|row)|divid\w+ by|too small by|multipl\w+ by",
    mends('"origin": to_origin.sum(', "to_origin.sum(axis=0)", ".sum(0)", "sum(axis=0)", ".sum("),
    where="several points",
    shows=lambda rng: ((t(rng.normal([0.8, 0.2], 0.01, (4, 2))), t(np.array([0.8, 0.2]))), {}),
)
def local_metres():
    RADIUS = 6_371_000.0

    @pb.autograd_function
    def local_metres(ctx, places, origin, unit=1000.0):
        """East and north of an origin; places: (n, 2) as latitude and longitude in radians."""
        north, around = (places - origin).mT
        ctx.save_for_backward(places=places, origin=origin)
        ctx.scale = RADIUS / unit
        return pb.stack([around * origin[0].cos(), north], axis=1) * ctx.scale

    @local_metres.backward
    def _(ctx, grad_output):
        s = ctx.saved_variables
        east, north = (grad_output * ctx.scale).mT
        latitude, around = s.origin[0], s.places[:, 1] - s.origin[1]
        to_places = pb.stack([north, east * latitude.cos()], axis=1)
        turned = pb.stack([east * around * latitude.sin(), pb.zeros_like(east)], axis=1)
        return {"places": to_places, "origin": -(to_places + turned).mean(axis=0)}

    return local_metres


WARMING = np.array([18.0, 24, 31, 37])


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.normal(size=(4, 3))),
            t(np.eye(3) + 0.1 * rng.normal(size=(3, 3))),
            t(0.1 * rng.normal(size=3)),
            t(0.01 * rng.normal(size=3)),
        ),
        {"temperature": WARMING},
    ),
    "the drift counts from the reference temperature, its gradient from 0: the reference is not "
    "subtracted",
    at("reference"),
    r"(?:subtract|minus|offset|shift|relative|above|from|less)\w*.{0,25}(?:(?<![\d.])25\b|reference)",
    r"reference.{0,40}(?:subtract|missing|left out|forgot|ignor)|\bexcess\b|temperature - ",
    r"(?:ignor|forg[eo]t|omit|missing|lacks)\w*.{0,40}reference",
    MISSING,
    mends(
        "ctx.temperature - ctx.reference",
        "(ctx.temperature - ",
        "ctx.warmth",
        "s.warmth",
        "- ctx.reference",
        "ctx.excess",
    ),
)
def calibrated_rates():
    def forward(ctx, raw, matrix, bias, drift, temperature, reference=25.0):
        """Rates of a gyroscope: matrix (raw - bias - drift (temperature - reference)).

        raw: (n, 3); matrix: (3, 3); bias, drift: (3,); temperature: (n,) in Celsius.
        """
        true = raw.numpy() - bias.numpy() - np.outer(temperature - reference, drift.numpy())
        ctx.save_for_backward(matrix=matrix, true=true)
        ctx.temperature, ctx.reference = temperature, reference
        return pb.asarray(true @ matrix.numpy().T)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        to_true = gn @ s.matrix.numpy()
        return {
            "raw": pb.asarray(to_true),
            "matrix": pb.asarray(gn.T @ s.true),
            "bias": pb.asarray(-to_true.sum(axis=0)),
            "drift": pb.asarray(-ctx.temperature @ to_true),
        }

    return pb.autograd_function(forward, backward, name="calibrated_rates")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1, 20, (4, 3))), t(rng.uniform(50, 90, (3, 3, 3))), t(8.0), t(5.0)),
        {"moved": np.array([60.0, 75, 66])},
    )
)
def matched_route_cost():
    @pb.autograd_function
    def matched_route_cost(ctx, offsets, routes, sigma, beta, moved):
        """Cost of the best chain of road candidates for fixes, and the candidates (Viterbi).

        offsets: (fixes, roads) from fix to road; routes: (fixes - 1, roads, roads) driven between;
        moved: (fixes - 1,) straight between fixes; sigma, beta: spread of either.
        """
        if sigma.item() <= 0 or beta.item() <= 0:
            raise ValueError("sigma and beta must be positive")
        near = offsets.numpy() ** 2 / (2 * sigma.item() ** 2)
        detour = routes.numpy() - np.asarray(moved)[:, None, None]
        cost, back = near[0], []
        for k in range(len(detour)):
            total = cost[:, None] + abs(detour[k]) / beta.item()
            back.append(total.argmin(axis=0))
            cost = total.min(axis=0) + near[k + 1]
        path = [int(cost.argmin())]
        for each in reversed(back):
            path.insert(0, int(each[path[0]]))
        ctx.save_for_backward(offsets=offsets, sigma=sigma, beta=beta)
        ctx.path, ctx.detour = np.array(path), detour
        best = pb.asarray(np.array(cost.min() + len(near) * np.log(sigma.item())))
        return best + len(detour) * float(np.log(beta.item())), pb.asarray(ctx.path.copy())

    @matched_route_cost.backward
    @pb.once_differentiable
    def _(ctx, g_cost, g_path):
        s, g, path = ctx.saved_variables, g_cost.item(), ctx.path
        sigma, beta = s.sigma.item(), s.beta.item()
        n, steps = np.arange(len(path)), np.arange(len(path) - 1)
        by_offset, by_route = np.zeros(s.offsets.shape), np.zeros(ctx.detour.shape)
        offset, detour = s.offsets.numpy()[n, path], ctx.detour[steps, path[:-1], path[1:]]
        by_offset[n, path] = g * offset / sigma**2
        by_route[steps, path[:-1], path[1:]] = g * np.sign(detour) / beta
        by_sigma = g * (len(n) / sigma - (offset**2).sum() / sigma**3)
        by_beta = g * (len(steps) / beta - abs(detour).sum() / beta**2)
        scalars = {"sigma": np.array(by_sigma), "beta": np.array(by_beta)}
        grads = {"offsets": by_offset, "routes": by_route, **scalars}
        return {name: pb.asarray(grad) for name, grad in grads.items()}

    return matched_route_cost


STRIDE = np.array([[0.05, 0], [2, 1], [3, 0.5], [-2.5, -1], [0.1, -0.1], [0.04, 0.02], [2, 0.3]])


@BOOK.right(lambda rng: ((t(STRIDE * rng.uniform(0.9, 1.1, (7, 2))),), {"dt": 0.2}))
def zero_velocity_path():
    def forward(ctx, acceleration, dt=0.01, still=0.3, window=1):
        """Path of a foot from its acceleration (n, 2); where it stands, its velocity is 0.

        It stands where the acceleration is below `still` in `window` samples before and after too.
        """
        a = acceleration.numpy()
        quiet = np.pad(np.hypot(*a.T) < still, window, constant_values=True)
        ctx.moves = ~np.lib.stride_tricks.sliding_window_view(quiet, 2 * window + 1).all(axis=1)
        ctx.dt = dt
        velocity, path = np.zeros(2), np.zeros_like(a)
        place = np.zeros(2)
        for k, moving in enumerate(ctx.moves):
            step = dt * velocity + dt**2 / 2 * a[k] if moving else 0.0
            velocity = velocity + dt * a[k] if moving else np.zeros(2)
            place = place + step
            path[k] = place
        return pb.asarray(path)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        later = np.cumsum(grad_output.numpy()[::-1], axis=0)[::-1]
        grad, to_velocity = np.zeros_like(later), np.zeros(2)
        for k in reversed(np.flatnonzero(ctx.moves)):
            if k + 1 < len(later) and not ctx.moves[k + 1]:
                to_velocity = np.zeros(2)
            grad[k] = ctx.dt * to_velocity + ctx.dt**2 / 2 * later[k]
            to_velocity = to_velocity + ctx.dt * later[k]
        return {"acceleration": pb.asarray(grad)}

    return pb.autograd_function(forward, backward, name="zero_velocity_path")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([[0.5, 3.0], [0.7, 0.1], [-0.3, 0.4]]) + rng.uniform(0, 0.05, (3, 2))),
            t(np.array([[0.9, -2.9], [0.1, 0.9], [0.2, -0.5]]) + rng.uniform(0, 0.05, (3, 2))),
        ),
        {"radius": 6371.0},
    )
)
def rhumb_distance():
    def legs(start, end):
        (a, from_), (b, to) = start.T, end.T
        north, around = b - a, np.remainder(to - from_ + np.pi, 2 * np.pi) - np.pi
        stretched = np.arcsinh(np.tan(b)) - np.arcsinh(np.tan(a))
        level, middle = abs(north) < 1e-3, (a + b) / 2
        safe = np.where(level, 1.0, stretched)
        bend = 2 / np.cos(middle) - np.cos(middle)
        q = np.where(level, np.cos(middle) - north**2 / 24 * bend, north / safe)
        half = (2 * np.tan(middle) / np.cos(middle) + np.sin(middle)) * north**2 / 24
        half = -(np.sin(middle) + half) / 2
        by_a = np.where(level, half + north / 12 * bend, (q / np.cos(a) - 1) / safe)
        by_b = np.where(level, half - north / 12 * bend, (1 - q / np.cos(b)) / safe)
        return north, around, q, by_a, by_b

    @pb.autograd_function
    def rhumb_distance(ctx, start, end, radius=1.0):
        """Length of the courses of constant bearing; start, end: (n, 2) as lat, lon in radians."""
        x, y = start.numpy(), end.numpy()
        if max(abs(x[:, 0]).max(), abs(y[:, 0]).max()) >= 1.57:
            raise ValueError("no course of constant bearing over a pole")
        north, around, q, *_ = legs(x, y)
        angle = np.hypot(north, q * around)
        if (angle == 0).any():
            raise ValueError("start and end are the same place")
        ctx.save_for_backward(start=start, end=end)
        ctx.radius = radius
        return pb.asarray(radius * angle)

    @rhumb_distance.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        north, around, q, by_a, by_b = legs(*(v.numpy() for v in ctx.saved_variables))
        g = grad_output.numpy() * ctx.radius / np.hypot(north, q * around)
        to_q = g * q * around**2
        east = g * q**2 * around
        return {
            "start": pb.asarray(np.stack([to_q * by_a - g * north, -east], axis=1)),
            "end": pb.asarray(np.stack([to_q * by_b + g * north, east], axis=1)),
        }

    return rhumb_distance


@BOOK.right(lambda rng: ((t(rng.normal(size=4)), t(rng.normal(size=4)), t(rng.uniform(0, 1))), {}))
def slerp_attitude():
    def unit(q):
        return q / (q * q).sum().sqrt()

    @pb.autograd_function
    def slerp_attitude(ctx, before, after, share):
        """Attitude between two, on the shorter way; quaternions (4,) of any length, share: ()."""
        u, v = unit(before), unit(after)
        ctx.sign = -1.0 if bool((u * v).sum() < 0) else 1.0
        cosine = ctx.sign * (u * v).sum()
        if not bool(cosine < 1 - 1e-6):
            raise ValueError("the attitudes are the same, or no attitudes")
        ctx.save_for_backward(before=before, after=after, share=share)
        angle = cosine.acos()
        first, second = ((1 - share) * angle).sin(), (share * angle).sin()
        return (first * u + ctx.sign * second * v) / angle.sin()

    @slerp_attitude.jvp
    def _(ctx, before, after, share):
        s = ctx.saved_variables
        u, v, w = unit(s.before), ctx.sign * unit(s.after), s.share
        angle = (u * v).sum().acos()
        sine = angle.sin()
        first, second = ((1 - w) * angle).sin() / sine, (w * angle).sin() / sine
        near, far = ((1 - w) * angle).cos(), (w * angle).cos()
        by_angle = ((1 - w) * near - first * angle.cos()) * u + (w * far - second * angle.cos()) * v
        change = pb.zeros_like(u)
        if before is not None:
            du = (before - (u * before).sum() * u) / (s.before**2).sum().sqrt()
            change = change + first * du - (du * v).sum() / sine**2 * by_angle
        if after is not None:
            dv = (after - (v * after).sum() * v) * ctx.sign / (s.after**2).sum().sqrt()
            change = change + second * dv - (dv * u).sum() / sine**2 * by_angle
        if share is not None:
            change = change + share * angle / sine * (far * v - near * u)
        return change

    return slerp_attitude


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=6)), t(rng.uniform(0.5, 2, 6)), rng.normal(size=(6, 3))),
        {"healthy": np.array([True, True, False, True, True, True])},
    )
)
def doppler_velocity():
    class DopplerVelocity(pb.Function):
        """Velocity, clock drift, and weighted squares of what is left, from range rates.

        rates, deviation: (satellites,); towards: (satellites, 3) directions of any length.
        """

        @staticmethod
        def forward(ctx, rates, deviation, towards, healthy=None):
            used = np.ones(len(towards), bool) if healthy is None else np.asarray(healthy, bool)
            if used.sum() < 4 or (deviation.numpy() <= 0).any():
                raise ValueError("four satellites and positive deviations required")
            line = towards / np.sqrt((towards**2).sum(axis=1, keepdims=True))
            H = np.hstack([-line, np.ones((len(line), 1))])
            W = used / deviation.numpy() ** 2
            ctx.cover = np.linalg.inv(H.T * W @ H)
            x = ctx.cover @ (H.T @ (W * rates.numpy()))
            ctx.save_for_backward(deviation=deviation)
            ctx.H, ctx.W, ctx.left = H, W, rates.numpy() - H @ x
            ctx.set_materialize_grads(False)
            return pb.asarray(x[:3].copy()), pb.asarray(x[3]), pb.asarray(ctx.W @ ctx.left**2)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_velocity, g_drift, g_left):
            g = np.zeros(4)
            if g_velocity is not None:
                g[:3] = g_velocity.numpy()
            if g_drift is not None:
                g[3] = g_drift.item()
            extra = 0.0 if g_left is None else g_left.item()
            pulled = ctx.H @ (ctx.cover @ g)
            by_weight = pulled * ctx.left + extra * ctx.left**2
            return {
                "rates": pb.asarray(ctx.W * (pulled + 2 * extra * ctx.left)),
                "deviation": pb.asarray(
                    -2 * ctx.W * by_weight / ctx.saved_variables.deviation.numpy()
                ),
            }

    return DopplerVelocity.apply
