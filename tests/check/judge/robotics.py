"""Robotics: kinematics, calibration, odometry, costs of planning, models of sensors."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import MASK, MISSING, SECOND, SHIFT, Book, at, t

BOOK = Book("robotics")


def turned(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(-1, 1, 4)), t(0.5 + rng.random(4))), {}),
    "a joint's angle counts its own link only: the terms of the links after it are missing",
    MISSING,
    r"\bonly\b.{0,40}\b(part|own|one|link|term|element)|\blater\b|\bafter (it|each)|cumulat|cumsum",
    r"\bonly (the )?diagonal",
)
def arm_tip():
    @pb.autograd_function
    def arm_tip(ctx, angles, lengths):
        """Tip of a planar arm; angles: (n,) between links, lengths: (n,); returns (2,)."""
        heading = np.cumsum(angles.numpy())
        along = np.stack([np.cos(heading), np.sin(heading)])
        ctx.save_for_backward(lengths=lengths, along=along)
        return pb.asarray(along @ lengths.numpy())

    @arm_tip.backward
    @pb.once_differentiable
    def _(ctx, g):
        along, gn = ctx.saved_variables.along, g.numpy()
        across = np.stack([-along[1], along[0]])
        by_heading = (gn @ across) * ctx.saved_variables.lengths.numpy()
        return {"angles": pb.asarray(by_heading), "lengths": pb.asarray(gn @ along)}

    return arm_tip


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=(7, 2))), t(rng.normal(size=2)), t(0.8)),
        {"target": rng.normal(size=(7, 2)), "stiffness": 0.5},
    ),
    "the yaw's gradient takes the points before their rotation, as if yaw were zero",
    r"\brotat|\byaw`? ?(were|is|was|of|at|=+) ?(0|zero)",
    r"(another|other|wrong|old|different|fixed) (value|point|angle)|evaluated at",
)
def extrinsic_cost():
    @pb.autograd_function
    def extrinsic_cost(ctx, points, offset, yaw, target, stiffness=0.0):
        """Squared misfit of turned and moved points: (n, 2); a spring holds the offset at 0."""
        R = turned(yaw.item())
        misfit = points.numpy() @ R.T + offset.numpy() - target
        ctx.save_for_backward(points, offset, R, misfit, stiffness)
        cost = 0.5 * (misfit**2).sum() + 0.5 * stiffness * (offset.numpy() ** 2).sum()
        return pb.asarray(np.asarray(cost))

    @extrinsic_cost.backward
    @pb.once_differentiable
    def _(ctx, g):
        points, offset, R, misfit, stiffness = ctx.saved_variables
        p, scale = points.numpy(), g.item()
        by_yaw = (misfit[:, 1] * p[:, 0] - misfit[:, 0] * p[:, 1]).sum()
        by_offset = misfit.sum(axis=0) + stiffness * offset.numpy()
        return {
            "points": pb.asarray(scale * misfit @ R),
            "offset": pb.asarray(scale * by_offset),
            "yaw": scale * by_yaw,
        }

    return extrinsic_cost


def obstacles(**settings):
    def given(rng):
        path = np.stack([np.linspace(0, 3, 7), rng.normal(0, 0.2, 7)], axis=1)
        centres = np.array([[0.8, 0.3], [2.1, -0.4]])
        return (t(path), t(centres), t(np.array([0.5, 0.6]))), settings

    return given


@BOOK.wrong(
    obstacles(),
    "backward measures the depth without the margin",
    at("margin"),
    r"\bmargin\b.{0,30}(ignor|not used|no (effect|influence)|without|left out)|without the margin",
    where="margin other than 0",
    shows=obstacles(margin=0.35),
)
def obstacle_cost():
    @pb.autograd_function
    def obstacle_cost(ctx, path, centres, radii, margin=0.0):
        """Sum of squared depths of path: (n, 2) in discs; centres: (m, 2), radii: (m,)."""
        apart = path.numpy()[:, None] - centres.numpy()
        distance = np.sqrt((apart**2).sum(axis=-1))
        depth = np.maximum(radii.numpy() + margin - distance, 0)
        ctx.radii = radii
        ctx.apart, ctx.distance = apart, distance
        return pb.asarray(np.asarray((depth**2).sum()))

    @obstacle_cost.backward
    @pb.once_differentiable
    def _(ctx, g):
        depth = np.maximum(ctx.radii.numpy() - ctx.distance, 0)
        by_radius = 2 * g.item() * depth
        by_apart = -(by_radius / ctx.distance)[..., None] * ctx.apart
        return {
            "path": pb.asarray(by_apart.sum(axis=1)),
            "centres": pb.asarray(-by_apart.sum(axis=0)),
            "radii": pb.asarray(by_radius.sum(axis=0)),
        }

    return obstacle_cost


@BOOK.wrong(
    lambda rng: (
        (t(0.5 + rng.random(6)), t(rng.normal(size=6)), t(rng.normal(size=3))),
        {"dt": 0.2},
    ),
    "a turn's gradient is off by one step: it moves the step in which it is made, too",
    SHIFT,
    r"\b(previous|next|preceding|following|earlier|too (early|late))\b|\b(in|ex)clusive",
    r"\bextra\b|\badditional\b|too (much|many)",
)
def dead_reckoning():
    @pb.autograd_function
    def dead_reckoning(ctx, speed, turn, start, dt=0.1):
        """Poses: (n, 3) of x, y, heading after each step; start: (3,)."""
        v, w, pose = speed.numpy(), turn.numpy(), start.numpy()
        heading = pose[2] + dt * np.concatenate([[0], np.cumsum(w)])
        before = heading[:-1]
        steps = dt * v[:, None] * np.stack([np.cos(before), np.sin(before)], axis=1)
        ctx.save_for_backward(steps=steps, before=before, dt=dt)
        places = pose[:2] + np.cumsum(steps, axis=0)
        return pb.asarray(np.column_stack([places, heading[1:]]))

    @dead_reckoning.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, later = ctx.saved_variables, np.cumsum(g.numpy()[::-1], axis=0)[::-1]
        along = np.stack([np.cos(s.before), np.sin(s.before)], axis=1)
        by_heading = later[:, 1] * s.steps[:, 0] - later[:, 0] * s.steps[:, 1]
        turned_by = np.cumsum(by_heading[::-1])[::-1]
        by_turn = s.dt * (later[:, 2] + turned_by)
        by_start = np.array([later[0, 0], later[0, 1], later[0, 2] + turned_by[0]])
        return {
            "speed": pb.asarray(s.dt * (later[:, :2] * along).sum(axis=1)),
            "turn": pb.asarray(by_turn),
            "start": pb.asarray(by_start),
        }

    return dead_reckoning


def scan(rng):
    ranges = 2 + rng.random(9)
    valid = np.array([1, 1, 0, 1, 0, 1, 1, 1, 0], bool)
    return (t(ranges), t(ranges + rng.normal(size=9)), t(0.7)), {"valid": valid, "delta": 0.6}


@BOOK.wrong(
    scan,
    "beams that are not valid get a gradient, as if nothing masked them",
    MASK,
    at("valid"),
    r"(should|must|expected|ought to)( be)? (0|zero)\b|\bpadd|invalid|not valid|\bnon-?zero\b",
    r"\bvalid\b.{0,30}(ignor|not (used|applied)|forgot)|(ignor\w+|forg[eo]t\w*) .{0,20}\bvalid\b",
)
def scan_misfit():
    class ScanMisfit(pb.Function):
        @staticmethod
        def forward(ctx, measured, predicted, noise, valid=None, delta=1.0):
            """Mean Huber loss of the valid beams' residuals in units of the noise."""
            m, p, s = measured.numpy(), predicted.numpy(), noise.item()
            used = np.ones(m.shape, bool) if valid is None else valid
            r = (m - p) / s
            inside = np.abs(r) <= delta
            loss = np.where(inside, 0.5 * r**2, delta * (np.abs(r) - 0.5 * delta))
            slope = np.where(inside, r, delta * np.sign(r))
            ctx.noise, ctx.count = s, used.sum()
            ctx.r, ctx.slope, ctx.used = r, slope, used
            return pb.asarray(np.asarray(loss[used].sum() / ctx.count))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            by_r = g.item() * ctx.slope / ctx.count
            by_measured = by_r / ctx.noise
            by_noise = -(by_r * ctx.r)[ctx.used].sum() / ctx.noise
            return pb.asarray(by_measured), pb.asarray(-by_measured), by_noise, None, None

    return ScanMisfit.apply


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(-1, 1, 5)), t(-1.5 - rng.random(5)), t(1.5 + rng.random(5))),
        {},
    ),
    "backward detaches the distances to the limits, so the second derivative is zero",
    SECOND,
    where="second derivative",
)
def limit_barrier():
    @pb.autograd_function
    def limit_barrier(ctx, joints, low, high):
        """Logarithmic barrier of joints: (n,) between low: (n,) and high: (n,)."""
        ctx.save_for_backward(joints=joints, low=low, high=high)
        return -((joints - low).log() + (high - joints).log())

    @limit_barrier.backward
    def _(ctx, grad_output):
        s = ctx.saved_variables
        from_low = grad_output / (s.joints - s.low).detach()
        from_high = grad_output / (s.high - s.joints).detach()
        return {"joints": from_high - from_low, "low": from_low, "high": -from_high}

    return limit_barrier


@BOOK.right(
    lambda rng: ((t(rng.normal(size=(3, 2, 4))), t(rng.normal(size=(3, 2)))), {"damping": 0.3})
)
def damped_step():
    @pb.autograd_function
    def damped_step(ctx, J, error, damping=0.1):
        """Joint steps J' (J J' + damping^2)^-1 error; J: (b, m, n), error: (b, m)."""
        Jn, e = J.numpy(), error.numpy()
        A = Jn @ Jn.swapaxes(1, 2) + damping**2 * np.eye(Jn.shape[1])
        y = np.linalg.solve(A, e[..., None])[..., 0]
        ctx.save_for_backward(J=J, A=A, y=y)
        return pb.asarray(np.einsum("bmn,bm->bn", Jn, y))

    @damped_step.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        J = s.J.numpy()
        z = np.linalg.solve(s.A, (J @ gn[..., None]))[..., 0]
        both = z[:, :, None] * s.y[:, None]
        both = both + both.swapaxes(1, 2)
        by_J = s.y[:, :, None] * gn[:, None] - both @ J
        return {"J": pb.asarray(by_J), "error": pb.asarray(z)}

    return damped_step


@BOOK.right(
    lambda rng: (
        (t(np.array([0.2, 1.0, 5.0, 0.9, 7.0])), t(1.5 + 0.1 * rng.random(5)), t(2.0)),
        {"settle": 0.1},
    )
)
def move_durations():
    @pb.autograd_function
    def move_durations(ctx, distance, top_speed, acceleration, *, settle=0.0):
        """Times of moves from rest to rest; the short ones never reach the top speed."""
        d, v, a = distance.numpy(), top_speed.numpy(), acceleration.item()
        short = d < v**2 / a
        ctx.save_for_backward(distance=distance, top_speed=top_speed, a=a, short=short)
        return pb.asarray(np.where(short, 2 * np.sqrt(d / a), d / v + v / a) + settle)

    @move_durations.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        d, v = s.distance.numpy(), s.top_speed.numpy()
        by_d = np.where(s.short, 1 / np.sqrt(d * s.a), 1 / v)
        by_v = np.where(s.short, 0.0, 1 / s.a - d / v**2)
        by_a = np.where(s.short, -np.sqrt(d / s.a**3), -v / s.a**2)
        return {
            "distance": pb.asarray(gn * by_d),
            "top_speed": pb.asarray(gn * by_v),
            "acceleration": (gn * by_a).sum(),
        }

    return move_durations


@BOOK.right(
    lambda rng: (
        (t(np.array([1.1, 0.4]) + 0.1 * rng.normal(size=2)), t(np.array([0.9, 0.8]))),
        {"guess": (0.3, 0.7)},
    )
)
def reach():
    def joint_matrix(q, links):
        tips = links * np.stack([np.cos(np.cumsum(q)), np.sin(np.cumsum(q))])
        slopes = np.stack([-tips[1], tips[0]])
        return tips, np.cumsum(slopes[:, ::-1], axis=1)[:, ::-1]

    @pb.autograd_function
    def reach(ctx, target, links, guess=(0.1, 0.1), tol=1e-13):
        """Angles: (2,) with which an arm of two links reaches the target: (2,), by Newton."""
        q, L = np.array(guess, float), links.numpy()
        for _ in range(60):
            tips, J = joint_matrix(q, L)
            step = np.linalg.solve(J, target.numpy() - tips.sum(axis=1))
            q = q + step / max(1.0, np.abs(step).max() / 0.5)
            if np.abs(step).max() < tol:
                break
        else:
            raise ArithmeticError("reach: the target is out of reach")
        ctx.J, ctx.along = joint_matrix(q, L)[1], tips / L
        return pb.asarray(q)

    @reach.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_target = np.linalg.solve(ctx.J.T, g.numpy())
        return {"target": pb.asarray(by_target), "links": pb.asarray(-by_target @ ctx.along)}

    return reach


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(8, 2))), t(rng.normal(size=2)), t(0.4)),
        {"cloud": 1.5 * rng.normal(size=(12, 2)), "keep": 0.7},
    )
)
def trimmed_match():
    @pb.autograd_function
    def trimmed_match(ctx, points, offset, yaw, cloud, keep=0.8):
        """Mean squared distance of the best matches, and the match of each point."""
        spun = points.numpy() @ turned(yaw.item()).T
        apart = (spun + offset.numpy())[:, None] - cloud
        squares = (apart**2).sum(axis=-1)
        match = squares.argmin(axis=1)
        rows = np.arange(len(spun))
        kept = np.argsort(squares[rows, match])[: max(1, int(keep * len(rows)))]
        residual = np.zeros_like(spun)
        residual[kept] = apart[kept, match[kept]]
        ctx.save_for_backward(yaw=yaw, spun=spun, residual=residual, n=len(kept))
        return pb.asarray(np.asarray((residual**2).sum() / len(kept))), pb.asarray(match)

    @trimmed_match.backward
    @pb.once_differentiable
    def _(ctx, g_cost, g_match):
        s = ctx.saved_variables
        by_moved = 2 * g_cost.item() / s.n * s.residual
        by_yaw = (by_moved[:, 1] * s.spun[:, 0] - by_moved[:, 0] * s.spun[:, 1]).sum()
        return {
            "points": pb.asarray(by_moved @ turned(s.yaw.item())),
            "offset": pb.asarray(by_moved.sum(axis=0)),
            "yaw": by_yaw,
        }

    return trimmed_match


@BOOK.right(lambda rng: ((t(rng.uniform(-1, 1, (4, 3))), t(rng.normal(size=(4, 3)))), {}))
def body_to_world():
    def spin(angles, axis):
        c, s = angles.cos(), angles.sin()
        one, none = pb.ones_like(c), pb.zeros_like(c)
        rows = {
            0: (one, none, none, none, c, -s, none, s, c),
            1: (c, none, s, none, one, none, -s, none, c),
            2: (c, -s, none, s, c, none, none, none, one),
        }[axis]
        return pb.stack(rows, axis=-1).reshape(-1, 3, 3)

    @pb.autograd_function
    def body_to_world(ctx, euler, vectors):
        """Rotate vectors: (n, 3) by roll, pitch and yaw: (n, 3); may be differentiated twice."""
        ctx.save_for_backward(euler=euler, vectors=vectors)
        roll, pitch, yaw = (spin(euler[:, i], i) for i in range(3))
        return (yaw @ (pitch @ (roll @ vectors.unsqueeze(-1)))).squeeze(-1)

    @body_to_world.backward
    def _(ctx, grad_output):
        euler, vectors = ctx.saved_variables
        roll, pitch, yaw = (spin(euler[:, i], i) for i in range(3))
        first = roll @ vectors.unsqueeze(-1)
        second = pitch @ first
        third = yaw @ second
        g3 = grad_output.unsqueeze(-1)
        g2 = yaw.transpose(1, 2) @ g3
        g1 = pitch.transpose(1, 2) @ g2
        by_angle = []
        for i, (v, g) in enumerate(((first, g1), (second, g2), (third, g3))):
            a, b = (i + 1) % 3, (i + 2) % 3
            by_angle.append(v[:, a, 0] * g[:, b, 0] - v[:, b, 0] * g[:, a, 0])
        by_vectors = (roll.transpose(1, 2) @ g1).squeeze(-1)
        return {"euler": pb.stack(by_angle, axis=1), "vectors": by_vectors}

    return body_to_world
