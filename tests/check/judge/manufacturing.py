"""Manufacturing: capability, control charts, tolerances, machining, scheduling, process control."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, SECOND, SIGN, Book, at, mends, t

BOOK = Book("manufacturing")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(10.02, 0.03, 7)),), {"lower": 9.9, "upper": 10.1}),
    "the standard deviation of forward divides by n - 1, that of the gradient by n",
    r"\bn ?- ?1\b|\bddof\b.{0,30}(?:0|missing|forgot|ignored|not)",
    r"\bbessel|degrees? of freedom|standard deviation.{0,40}\b(?:sample|popul)",
    r"(?:len\(\w+\)|\bsize|\bnumber of \w+|\bcount) ?- ?1\b|\b6 ?/ ?7\b|\b7 ?/ ?6\b",
    FACTOR,
    mends("(n - 1)", "(len(x) - 1)", "(x.size - 1)", "(len(ctx.x) - 1)"),
)
def capability_index():
    @pb.autograd_function
    def capability_index(ctx, x, lower, upper):
        """Cpk of a sample between two specification limits."""
        ctx.x, ctx.limits = x.numpy(), (lower, upper)
        mean, spread = ctx.x.mean(), ctx.x.std(ddof=1)
        return pb.asarray(np.array(min(upper - mean, mean - lower) / (3 * spread)))

    @capability_index.backward
    @pb.once_differentiable
    def _(ctx, g):
        x, (lower, upper) = ctx.x, ctx.limits
        n, mean, spread = len(x), x.mean(), x.std(ddof=1)
        nearer = -1.0 if upper - mean < mean - lower else 1.0
        by_mean = nearer / (3 * spread)
        by_spread = -min(upper - mean, mean - lower) / (3 * spread**2)
        return pb.asarray(g.item() * (by_mean / n + by_spread * (x - mean) / (n * spread)))

    return capability_index


@BOOK.wrong(
    lambda rng: ((t(np.array([0.9, 1.1, -2.0, 0.8, 0.7, 0.9])), t(np.array(0.0))), {"limit": 5.0}),
    "after an alarm the sum starts anew, but the gradient passes to what is before the alarm",
    r"\balarms?\b|\brestart|\breset|starts? (?:anew|again|from|over)",
    r"(?:above|exceed\w*|over|beyond|past|reach\w*|>=?|cross\w*) ?(?:the )?`?limit",
    at("limit"),
    mends(
        "if ctx.path[k] > ctx.limit:",
        "if path[k] > ctx.limit:",
        "path[k] > ctx.limit",
        "ctx.path[k] <= ctx.limit",
        "ctx.alarm",
    ),
    where="an alarm",
    shows=lambda rng: (
        (t(np.array([0.9, 1.1, 1.4, 0.8, 1.5, 0.9])), t(np.array(0.0))),
        {"limit": 2.0},
    ),
)
def cusum_chart():
    @pb.autograd_function
    def cusum_chart(ctx, x, target, slack=0.25, limit=4.0):
        """Upper cumulative sums of x - target - slack. One above the limit starts a new sum."""
        path, total = [], 0.0
        for value in x.tolist():
            total = max(0.0, total + value - target.item() - slack)
            path.append(total)
            if total > limit:
                total = 0.0
        ctx.path, ctx.limit = np.array(path), limit
        return pb.asarray(np.array(path))

    @cusum_chart.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        flow, grad = 0.0, np.zeros_like(ctx.path)
        for k in range(len(grad) - 1, -1, -1):
            flow += grad_output[k].item()
            if ctx.path[k] == 0:
                flow = 0.0
            grad[k] = flow
        return {"x": pb.asarray(grad), "target": pb.asarray(np.array(-grad.sum()))}

    return cusum_chart


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(1.5, 4, 5)), t(rng.uniform(4, 7))), {}),
    "backward detaches the speed: its second derivatives are wrong, the first ones are right",
    SECOND,
    r"\bdetach|loses (?:its|the) graph|cut off|not recorded",
    mends("speed, constant = ctx.saved_tensors"),
    where="second derivative",
)
def machining_cost():
    def forward(ctx, speed, constant, exponent=0.25, handling=3.0, change=8.0):
        """Cost of a cut: machine time, and tools that last (constant / speed)^(1 / exponent)."""
        ctx.save_for_backward(speed, constant)
        ctx.power, ctx.handling, ctx.change = 1 / exponent, handling, change
        return handling / speed * (1 + change * (speed / constant) ** (1 / exponent))

    def backward(ctx, grad_output):
        speed, constant = (x.detach() for x in ctx.saved_tensors)
        worn = ctx.change * (speed / constant) ** ctx.power
        unit = grad_output * ctx.handling / speed
        return {
            "speed": unit * ((ctx.power - 1) * worn - 1) / speed,
            "constant": -(unit * ctx.power * worn / constant).sum(),
        }

    return pb.autograd_function(forward, backward, name="machining_cost")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(0.5, 1.5, 5)), t(rng.uniform(0.01, 0.1, 5))),
        {"method": "worst"},
    ),
    "a negative sensitivity gets its gradient in the worst case with the wrong sign",
    SIGN,
    r"negative (?:sensitivit|value|element|entr|input)|sensitivit\w+`? ?(?:<|is neg|below)",
    r"abs\w*\b.{0,40}(?:missing|forgot|left out|deriv|slope|kink)",
    mends("np.sign(", "np.where(s < 0", "np.copysign("),
    where="a negative sensitivity",
    shows=lambda rng: (
        (t(np.array([1.0, -0.7, 0.4, -1.2])), t(rng.uniform(0.01, 0.1, 4))),
        {"method": "worst"},
    ),
)
def stack_up():
    class StackUp(pb.Function):
        @staticmethod
        def forward(ctx, sensitivity, tolerance, method="rss"):
            s, tol = sensitivity.numpy(), tolerance.numpy()
            if (tol < 0).any():
                raise ValueError("tolerances must not be negative")
            total = np.abs(s) @ tol if method == "worst" else np.sqrt(((s * tol) ** 2).sum())
            ctx.save_for_backward(sensitivity, tolerance)
            ctx.method, ctx.total = method, total
            return pb.asarray(np.array(total))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, tol = (x.numpy() for x in ctx.saved_tensors)
            by_s, by_tol = tol, np.abs(s)
            if ctx.method == "rss":
                by_s, by_tol = s * tol**2 / ctx.total, s**2 * tol / ctx.total
            g = grad_output.item()
            return pb.asarray(g * by_s), pb.asarray(g * by_tol), None

    return StackUp.apply


@BOOK.wrong(
    lambda rng: (
        (t(np.array([1.5, 0.8, 0.3])), t(np.array([1.2, 2.0])), np.array([1, 1, 1, 0.5, 0.5, 2.0])),
        {"dt": 0.4},
    ),
    "an error also acts on the next step, as the earlier one of the derivative term: this is "
    "left out",
    r"derivative (?:term|part|action|gain)|\bk_?d\b|gains\[2\]|gains\[-1\]",
    r"(?:earlier|previous|last|next|preceding|later) (?:error|step|sample)|e\[k ?[-+] ?1\]",
    r"e(?:rror)?_?prev|difference of (?:the )?errors",
    mends("- kd / ctx.dt * ", "to_before", "to_previous", "-to_u * kd / ctx.dt", "carry -="),
)
def controlled_process():
    @pb.autograd_function
    def controlled_process(ctx, gains, plant, setpoint, dt=0.1):
        """Response of a first-order process under a PID controller, from rest.

        gains: (3,) proportional, integral and derivative, plant: (2,) gain and time constant
        """
        kp, ki, kd = gains.numpy()
        gain, tau = plant.numpy()
        y = summed = 0.0
        before, log, out = setpoint[0], [], []
        for r in setpoint:
            error = r - y
            summed += error * dt
            terms = np.array([error, summed, (error - before) / dt])
            u = terms @ (kp, ki, kd)
            log.append((y, u, terms))
            y, before = y + dt * (gain * u - y) / tau, error
            out.append(y)
        ctx.gains, ctx.plant, ctx.log, ctx.dt = (kp, ki, kd), (gain, tau), log, dt
        return pb.asarray(np.array(out))

    @controlled_process.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        (kp, ki, kd), (gain, tau), dt = ctx.gains, ctx.plant, ctx.dt
        to_y = to_sum = 0.0
        by_gains, by_plant = np.zeros(3), np.zeros(2)
        for (y, u, terms), g in reversed([*zip(ctx.log, grad_output.tolist(), strict=True)]):
            to_y += g
            to_u = to_y * dt * gain / tau
            by_plant += to_y * dt / tau * np.array([u, -(gain * u - y) / tau])
            by_gains += to_u * terms
            to_sum += to_u * ki
            to_error = to_u * (kp + kd / dt) + to_sum * dt
            to_y = to_y * (1 - dt / tau) - to_error
        return {"gains": pb.asarray(by_gains), "plant": pb.asarray(by_plant)}

    return controlled_process


@BOOK.wrong(
    lambda rng: ((t(rng.normal(50, 2, (4, 5))),), {}),
    "each subgroup's largest and smallest column is used in all rows, not in its own alone",
    r"\b(?:all|every|each|own|other|wrong|same) (?:the )?(?:rows?|subgroups?|groups?)\b",
    r"fancy|np\.arange|row ind|paired|\brows?\b.{0,50}(?:own|alone|only)",
    r"(?:outside|other than|not) (?:at )?the (?:largest|smallest|extremes?|max|min)",
    mends("grad[rows, ", "np.put_along_axis", "grad[np.arange(", "grad[range("),
)
def chart_limits():
    @pb.autograd_function
    def chart_limits(ctx, subgroups, a2=0.577):
        """Lower and upper limits of a chart of means, with ranges; subgroups: (m, n)."""
        x = subgroups.numpy()
        high, low = x.argmax(axis=1), x.argmin(axis=1)
        reach = a2 * (x.max(axis=1) - x.min(axis=1)).mean()
        ctx.save_for_backward(high=high, low=low, shape=x.shape, a2=a2)
        return pb.asarray(np.array(x.mean() - reach)), pb.asarray(np.array(x.mean() + reach))

    @chart_limits.backward
    @pb.once_differentiable
    def _(ctx, g_lower, g_upper):
        s = ctx.saved_variables
        m, n = s.shape
        grad = np.full(s.shape, (g_lower.item() + g_upper.item()) / (m * n))
        share = s.a2 * (g_upper.item() - g_lower.item()) / m
        grad[:, s.high] += share
        grad[:, s.low] -= share
        return {"subgroups": pb.asarray(grad)}

    return chart_limits


@BOOK.right(lambda rng: ((t(rng.uniform(0.05, 0.4, 5)), t(rng.uniform(0.3, 1.2, 5))), {}))
def turned_roughness():
    @pb.autograd_function
    def turned_roughness(ctx, feed, nose):
        """Height of the ridges that a round nose leaves, in the unit of feed and nose radius."""
        if feed.shape != nose.shape:
            raise ValueError("one radius for each feed")
        if bool((feed <= 0).any()) or bool((feed >= 2 * nose).any()):
            raise ValueError("feed must be positive and less than twice the radius")
        ctx.save_for_backward(feed=feed, nose=nose)
        return nose - (nose**2 - feed**2 / 4).sqrt()

    @turned_roughness.backward
    def _(ctx, g):
        feed, nose = ctx.saved_variables
        centre = (nose**2 - feed**2 / 4).sqrt()
        return g * feed / (4 * centre), g * (1 - nose / centre)

    return turned_roughness


def measured(rng):
    angle = np.linspace(0, 5.5, 8)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return (t(ring * rng.uniform(4.9, 5.1, (8, 1)) + np.array([2.0, -1.0])),), {}


@BOOK.right(measured)
def fitted_circle():
    @pb.autograd_function
    def fitted_circle(ctx, points):
        """Centre and radius of the circle fitted by Kasa's method, and the roundness around it."""
        p = points.numpy()
        if p.ndim != 2 or p.shape[1] != 2:
            raise ValueError("points must be (n, 2)")
        design = np.column_stack([2 * p, np.ones(len(p))])
        if np.linalg.matrix_rank(design) < 3:
            raise ValueError("the points lie on a line")
        square = (p**2).sum(axis=1)
        normal = np.linalg.inv(design.T @ design)
        solution = normal @ design.T @ square
        centre, radius = solution[:2], np.sqrt(solution[2] + solution[:2] @ solution[:2])
        distance = np.hypot(*(p - centre).T)
        if not distance.all():
            raise ValueError("a point lies in the centre")
        ctx.save_for_backward(p=p, design=design, normal=normal, solution=solution)
        ctx.rest, ctx.radius, ctx.distance = square - design @ solution, radius, distance
        return {
            "centre": pb.asarray(centre.copy()),
            "radius": pb.asarray(np.array(radius)),
            "roundness": pb.asarray(np.array(np.ptp(distance))),
        }

    @fitted_circle.backward
    @pb.once_differentiable
    def _(ctx, g_centre, g_radius, g_roundness):
        s, centre = ctx.saved_variables, ctx.saved_variables.solution[:2]
        to_distance = np.zeros(len(s.p))
        to_distance[ctx.distance.argmax()] += g_roundness.item()
        to_distance[ctx.distance.argmin()] -= g_roundness.item()
        grad = (to_distance / ctx.distance)[:, None] * (s.p - centre)
        to_solution = np.zeros(3)
        to_solution[:2] = g_centre.numpy() + g_radius.item() * centre / ctx.radius - grad.sum(0)
        to_solution[2] = g_radius.item() / (2 * ctx.radius)
        lam = s.normal @ to_solution
        grad += 2 * s.p * (s.design @ lam)[:, None]
        grad += 2 * (np.outer(ctx.rest, lam) - np.outer(s.design @ lam, s.solution))[:, :2]
        return {"points": pb.asarray(grad)}

    return fitted_circle


@BOOK.right(lambda rng: ((t(rng.uniform(1, 6, (5, 3))), t(rng.uniform(0, 9, 5))), {}))
def finishing_times():
    def forward(ctx, duration, release):
        """When each job leaves a line of machines; no machine takes a job before the one ahead.

        duration: (jobs, machines), release: (jobs,) when a job may start.
        """
        p = duration.numpy()
        if p.ndim != 2 or release.shape != p.shape[:1]:
            raise ValueError("one release for each job")
        free = np.full(p.shape[1], -np.inf)
        waited = np.zeros(p.shape, dtype=bool)
        leaves = np.zeros(len(p))
        for job, ready in enumerate(release.tolist()):
            for machine in range(p.shape[1]):
                waited[job, machine] = free[machine] > ready
                ready = max(free[machine], ready) + p[job, machine]
                free[machine] = ready
            leaves[job] = ready
        ctx.waited = waited
        return pb.asarray(leaves)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        jobs, machines = ctx.waited.shape
        grad, release = np.zeros((jobs, machines)), np.zeros(jobs)
        to_free = np.zeros(machines)
        for job in range(jobs - 1, -1, -1):
            flow = grad_output[job].item()
            for machine in range(machines - 1, -1, -1):
                flow, to_free[machine] = flow + to_free[machine], 0.0
                grad[job, machine] = flow
                if ctx.waited[job, machine]:
                    flow, to_free[machine] = 0.0, flow
            release[job] = flow
        return pb.asarray(grad), pb.asarray(release)

    return pb.autograd_function(forward, backward, name="finishing_times")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.05, 0.2)), t(rng.uniform(1500, 2200)), t(rng.uniform(0.15, 0.3))),
        {"turn": np.linspace(0.1, 6.0, 7), "teeth": 3, "width": 4.0},
    )
)
def milling_force():
    def chips(feed, turn, teeth, start, stop):
        angle = np.add.outer(np.asarray(turn), 2 * np.pi * np.arange(teeth) / teeth) % (2 * np.pi)
        cuts = (angle > start) & (angle < stop) & (np.sin(angle) > 0)
        return np.where(cuts, feed * np.sin(angle), 1.0), cuts

    @pb.autograd_function
    def milling_force(ctx, feed, kc, mc, turn, teeth=2, width=1.0, start=0.0, stop=np.pi):
        """Tangential force of all teeth after Kienzle, at angles of the cutter; feed: a tooth."""
        if feed.ndim or kc.ndim or mc.ndim or feed.item() <= 0:
            raise ValueError("one positive feed, and one kc and mc")
        chip, cuts = chips(feed.item(), turn, teeth, start, stop)
        power = cuts * width * chip ** (1 - mc.item())
        ctx.save_for_backward(feed=feed, kc=kc, mc=mc, chip=chip, power=power)
        return pb.asarray(np.array(kc.item() * power.sum(axis=-1)))

    @milling_force.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        total = (g.numpy()[..., None] * s.power).sum()
        by_log = (g.numpy()[..., None] * s.power * np.log(s.chip)).sum()
        return {
            "feed": s.kc * (1 - s.mc) * total / s.feed,
            "kc": pb.asarray(np.array(total)),
            "mc": -s.kc * by_log,
        }

    return milling_force


@BOOK.right(lambda rng: ((t(rng.normal(20, 1, 8)), t(np.array(0.3))), {"base": 3, "sigma": 0.9}))
def ewma_chart():
    class EwmaChart(pb.Function):
        """Moving averages that start at the mean of the first `base` values, and the signals."""

        @staticmethod
        def forward(ctx, x, weight, base=1, sigma=1.0, limit=2.7):
            values, lam = x.numpy(), weight.item()
            if not 0 < lam <= 1 or weight.ndim or not 1 <= base <= len(values) or sigma <= 0:
                raise ValueError("weight must be in (0, 1], base within the values, sigma positive")
            centre = z = values[:base].mean()
            path, signals = [z], []
            for k, value in enumerate(values, 1):
                z = z + lam * (value - z)
                spread = sigma * np.sqrt(lam / (2 - lam) * (1 - (1 - lam) ** (2 * k)))
                signals.append(abs(z - centre) > limit * spread)
                path.append(z)
            ctx.save_for_backward(x=values, path=np.array(path), lam=lam, base=base)
            return pb.asarray(np.array(path[1:])), pb.asarray(np.array(signals))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g, _):
            s, flow = ctx.saved_variables, 0.0
            grad, by_weight = np.zeros_like(s.x), 0.0
            for k in reversed(range(len(grad))):
                flow += g[k].item()
                grad[k] = s.lam * flow
                by_weight += flow * (s.x[k] - s.path[k])
                flow *= 1 - s.lam
            grad[: s.base] += flow / s.base
            return {"x": pb.asarray(grad), "weight": pb.asarray(np.array(by_weight))}

    return EwmaChart.apply
