"""Control: regulators, saturation, Kalman filters, Lyapunov and Riccati equations."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, SIGN, TRANSPOSED, Book, at, spd, t

BOOK = Book("control")

PLANT = np.array([[1.0, 0.1, 0.0], [0.0, 0.9, 0.2], [-0.1, 0.0, 0.8]])
INPUT = np.array([[0.0, 0.1], [0.3, 0.0], [0.1, 1.0]])


def regulator(symmetric):
    def given(rng):
        Q = spd(rng, 3) if symmetric else rng.normal(size=(3, 3))
        x0, K = t(rng.normal(size=3)), t(0.3 * rng.normal(size=(2, 3)))
        return (K, x0, t(Q)), {"A": PLANT, "B": INPUT, "R": np.eye(2), "horizon": 6}

    return given


@BOOK.wrong(
    regulator(symmetric=True),
    "the state's cost is differentiated as 2 Q x, which holds for a symmetric Q only",
    r"symmetric",
    TRANSPOSED,
    where="Q not symmetric",
    shows=regulator(symmetric=False),
)
def feedback_cost():
    @pb.autograd_function
    def feedback_cost(ctx, K, x0, Q, A, B, R, horizon=10):
        """Quadratic cost of u = -K x from x0: (n,); K: (m, n), Q: (n, n)."""
        states, weight, cost = [x0.numpy().copy()], Q.numpy(), 0.0
        for _ in range(horizon):
            x = states[-1]
            u = -K.numpy() @ x
            cost += x @ weight @ x + u @ R @ u
            states.append(A @ x + B @ u)
        cost += states[-1] @ weight @ states[-1]
        ctx.save_for_backward(K=K, Q=Q, A=A, B=B, R=R, states=states)
        return pb.asarray(np.asarray(cost))

    @feedback_cost.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        K, Q = s.K.numpy(), s.Q.numpy()
        costate = 2 * Q @ s.states[-1]
        by_K, by_Q = np.zeros_like(K), np.outer(s.states[-1], s.states[-1])
        for x in reversed(s.states[:-1]):
            by_u = -(s.R + s.R.T) @ K @ x + s.B.T @ costate
            by_K -= np.outer(by_u, x)
            by_Q += np.outer(x, x)
            costate = 2 * Q @ x + s.A.T @ costate - K.T @ by_u
        scale = g.item()
        return {
            "K": pb.asarray(scale * by_K),
            "x0": pb.asarray(scale * costate),
            "Q": pb.asarray(scale * by_Q),
        }

    return feedback_cost


def pid_inputs(limit):
    return lambda rng: ((t(rng.normal(size=8)), t(np.array([1.2, 0.4, 0.3]))), {"limit": limit})


@BOOK.wrong(
    pid_inputs(None),
    "a saturated output passes the gradient on as if it had not been clipped by the limit",
    at("limit"),
    r"satura|\bclip|\bclamp",
    where="limit reached",
    shows=pid_inputs(0.5),
)
def pid_response():
    class PID(pb.Function):
        @staticmethod
        def forward(ctx, error, gains, dt=0.1, limit=None):
            e = error.numpy()
            terms = np.stack([e, np.cumsum(e) * dt, np.diff(e, prepend=e[0]) / dt])
            u = gains.numpy() @ terms
            ctx.save_for_backward(terms=terms, gains=gains, dt=dt)
            return pb.asarray(u if limit is None else np.clip(u, -limit, limit))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, g = ctx.saved_variables, grad_output.numpy()
            kp, ki, kd = s.gains.numpy()
            by_error = kp * g + ki * s.dt * np.cumsum(g[::-1])[::-1]
            by_error[1:] += kd / s.dt * g[1:]
            by_error[:-1] -= kd / s.dt * g[1:]
            return {"error": pb.asarray(by_error), "gains": pb.asarray(s.terms @ g)}

    return PID.apply


@BOOK.right(
    lambda rng: ((t(2 * rng.normal(size=9)), t(1.1), t(0.8), t(0.05)), {"bounds": (-1, 1.5)})
)
def saturating_pid():
    @pb.autograd_function
    def saturating_pid(ctx, error, kp, ki, kd, dt=0.1, bounds=(-np.inf, np.inf)):
        """PID whose integral stands still while the output is at a bound; also returns where."""
        e, (low, high) = error.numpy(), bounds
        gains = np.array([kp.item(), ki.item(), kd.item()])
        terms, raw, total = np.zeros((len(e), 3)), np.zeros(len(e)), 0.0
        for i in range(len(e)):
            slope = (e[i] - e[i - 1]) / dt if i else 0.0
            terms[i] = e[i], total + e[i] * dt, slope
            raw[i] = terms[i] @ gains
            if low < raw[i] < high:
                total = terms[i, 1]
        free = (raw > low) & (raw < high)
        ctx.gains, ctx.terms, ctx.free, ctx.dt = gains, terms, free, dt
        return pb.asarray(np.clip(raw, low, high)), pb.asarray(~free)

    @saturating_pid.backward
    @pb.once_differentiable
    def _(ctx, g_output, g_saturated):
        g = g_output.numpy() * ctx.free
        kp, ki, kd = ctx.gains
        by_gain = ctx.terms.T @ g
        by_error = kp * g
        by_error[1:] += kd / ctx.dt * g[1:]
        by_error[:-1] -= kd / ctx.dt * g[1:]
        by_error += ctx.free * ctx.dt * ki * np.cumsum(g[::-1])[::-1]
        return {
            "error": pb.asarray(by_error),
            **dict(zip(("kp", "ki", "kd"), by_gain, strict=True)),
        }

    return saturating_pid


def measured(rng):
    H = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, -0.3]])
    x, P, z, R = rng.normal(size=3), spd(rng, 3), rng.normal(size=2), spd(rng, 2)
    return (t(x), t(P), t(z)), {"H": H, "R": R}


@BOOK.wrong(
    measured,
    "the innovation's covariance is taken for a constant: its part in P's gradient is missing",
    MISSING,
    r"\bconstant\b|innovation|\bgain\b",
)
def kalman_correct():
    @pb.autograd_function
    def kalman_correct(ctx, x, P, z, H, R):
        """Mean after a measurement; x: (n,), P: (n, n), z: (m,), H: (m, n), R: (m, m)."""
        Pn = P.numpy()
        S = H @ Pn @ H.T + R
        gain = Pn @ H.T @ np.linalg.inv(S)
        v = z.numpy() - H @ x.numpy()
        ctx.save_for_backward(gain=gain, H=H, w=np.linalg.solve(S, v))
        return pb.asarray(x.numpy() + gain @ v)

    @kalman_correct.backward
    @pb.once_differentiable
    def _(ctx, grad_mean):
        s, g = ctx.saved_variables, grad_mean.numpy()
        by_z = s.gain.T @ g
        return {
            "x": pb.asarray(g - s.H.T @ by_z),
            "P": pb.asarray(np.outer(g, s.H.T @ s.w)),
            "z": pb.asarray(by_z),
        }

    return kalman_correct


@BOOK.right(lambda rng: ((t(rng.normal(size=7).cumsum()), t(0.3), t(0.5), t(0.1), t(2.0)), {}))
def local_level_filter():
    def forward(ctx, z, level_var, noise_var, mean0, var0):
        """Filtered means of a random walk seen in noise, and the log-likelihood."""
        q, r, m, p = (v.item() for v in (level_var, noise_var, mean0, var0))
        if min(q, r, p) <= 0:
            raise ValueError("local_level_filter: variances must be positive")
        means, steps, loglik = np.zeros(len(z)), [], 0.0
        for i, value in enumerate(z.numpy()):
            prior, v = p + q, value - m
            s = prior + r
            steps.append((prior, s, v))
            loglik -= 0.5 * (np.log(2 * np.pi * s) + v * v / s)
            m, p = m + prior / s * v, prior * r / s
            means[i] = m
        ctx.steps = steps
        return pb.asarray(means), pb.asarray(np.asarray(loglik))

    @pb.once_differentiable
    def backward(ctx, g_means, g_loglik):
        gl, gm, gp = g_loglik.item(), 0.0, 0.0
        by_z, by_q, by_r = np.zeros(len(ctx.steps)), 0.0, 0.0
        for i in range(len(ctx.steps) - 1, -1, -1):
            prior, s, v = ctx.steps[i]
            k = prior / s
            gm += g_means.numpy()[i]
            gk = gm * v - gp * prior
            gs = -0.5 * gl * (1 / s - (v / s) ** 2) - gk * k / s
            by_z[i] = gm * k - gl * v / s
            gp = gp * (1 - k) + gk / s + gs
            gm -= by_z[i]
            by_q, by_r = by_q + gp, by_r + gs
        return pb.asarray(by_z), by_q, by_r, gm, gp

    return pb.autograd_function(forward, backward, name="local_level_filter")


def imu(**settings):
    return lambda rng: ((t(rng.normal(size=8)), t(rng.normal(size=8)), t(0.9)), settings)


@BOOK.wrong(
    imu(),
    "the rate's gradient lacks the factor dt",
    FACTOR,
    at("dt"),
    r"\bdt\b.{0,20}\b(missing|lack|left)",
    where="dt other than 1",
    shows=imu(dt=0.05),
)
def complementary_filter():
    @pb.autograd_function
    def complementary_filter(ctx, rate, tilt, blend, dt=1.0):
        a, w, tn = blend.item(), rate.numpy(), tilt.numpy()
        angle, last = np.empty_like(w), tn[0]
        moved = np.empty_like(w)
        for i in range(len(w)):
            moved[i] = last + w[i] * dt
            angle[i] = last = a * moved[i] + (1 - a) * tn[i]
        ctx.save_for_backward(blend=blend, difference=moved - tn)
        return pb.asarray(angle)

    @complementary_filter.backward
    @pb.once_differentiable
    def _(ctx, g):
        a, gn = ctx.saved_variables.blend.item(), g.numpy()
        h, carry = np.empty_like(gn), 0.0
        for i in range(len(gn) - 1, -1, -1):
            h[i] = gn[i] + carry
            carry = a * h[i]
        by_tilt = (1 - a) * h
        by_tilt[0] += carry
        return {
            "rate": pb.asarray(a * h),
            "tilt": pb.asarray(by_tilt),
            "blend": pb.asarray(h @ ctx.saved_variables.difference),
        }

    return complementary_filter


@BOOK.wrong(
    lambda rng: ((t(np.array([0.0, 2.0, 2.3, -1.0, -1.5, 0.4]) + 0.1 * rng.random(6)), t(0.6)), {}),
    "the limit counts with the wrong sign where the command falls",
    SIGN,
    r"\bfall",
)
def slew_limit():
    @pb.autograd_function
    def slew_limit(ctx, command: pb.Tensor, rate: pb.Tensor) -> pb.Tensor:
        """Follow command: (n,) by at most rate a step."""
        c, r = command.numpy(), rate.item()
        out, side = c.copy(), np.zeros(len(c), int)
        for i in range(1, len(c)):
            step = c[i] - out[i - 1]
            if abs(step) > r:
                side[i] = np.sign(step)
                out[i] = out[i - 1] + side[i] * r
        ctx.side = side
        return pb.asarray(out)

    @slew_limit.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_command, by_rate, carry = np.zeros(len(g)), 0.0, 0.0
        for i in range(len(g) - 1, -1, -1):
            carry += g.numpy()[i]
            if ctx.side[i]:
                by_rate += carry
            else:
                by_command[i], carry = carry, 0.0
        return {"command": pb.asarray(by_command), "rate": by_rate}

    return slew_limit


def stable(rng, n=3):
    A = rng.normal(size=(n, n))
    return 0.7 * A / np.linalg.norm(A, 2)


@BOOK.wrong(
    lambda rng: ((t(stable(rng)), t(spd(rng, 3))), {}),
    "the adjoint equation is solved with A where it needs A transposed",
    TRANSPOSED,
)
def stationary_covariance():
    def solve(A, Q):
        n = len(A)
        return np.linalg.solve(np.eye(n * n) - np.kron(A, A), Q.ravel()).reshape(n, n)

    @pb.autograd_function
    def stationary_covariance(ctx, A, Q):
        """X = A X A' + Q for a stable A."""
        X = solve(A.numpy(), Q.numpy())
        ctx.save_for_backward(A=A, X=X.copy())
        return pb.asarray(X)

    @stationary_covariance.backward
    @pb.once_differentiable
    def _(ctx, g):
        A, X = ctx.saved_variables.A.numpy(), ctx.saved_variables.X
        S = solve(A, g.numpy())
        return {"A": pb.asarray(S @ A @ X.T + S.T @ A @ X), "Q": pb.asarray(S)}

    return stationary_covariance


@BOOK.right(lambda rng: ((t(stable(rng, 4)), t(rng.normal(size=(4, 4)))), {"tol": 1e-14}))
def gramian_by_doubling():
    def double(A, Q, tol):
        """Sum of A^k Q A'^k; each step doubles the number of terms."""
        for _ in range(60):
            step = A @ Q @ A.T
            Q, A = Q + step, A @ A
            if np.abs(step).max() <= tol * np.abs(Q).max():
                return Q
        raise ArithmeticError("gramian_by_doubling: A is not stable")

    @pb.autograd_function
    def gramian_by_doubling(ctx, A, Q, tol=1e-13):
        X = double(A.numpy(), Q.numpy(), tol)
        ctx.save_for_backward(A=A, X=X.copy(), tol=tol)
        return pb.asarray(X)

    @gramian_by_doubling.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        A = s.A.numpy()
        S = double(A.T, g.numpy(), s.tol)
        return {"A": pb.asarray(S @ A @ s.X.T + S.T @ A @ s.X), "Q": pb.asarray(S)}

    return gramian_by_doubling


@BOOK.right(
    lambda rng: (
        (t(PLANT + 0.05 * rng.normal(size=(3, 3))), t(INPUT), t(spd(rng, 3)), t(spd(rng, 2))),
        {},
    )
)
def riccati_cost():
    def gain(A, B, R, P):
        return np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)

    class Riccati(pb.Function):
        """P = A'PA - A'PB (R + B'PB)^-1 B'PA + Q, for symmetric Q and R, by iterating."""

        @staticmethod
        def forward(ctx, A, B, Q, R):
            A, B, Q, R = (v.numpy() for v in (A, B, Q, R))
            for name, M in (("Q", Q), ("R", R)):
                if not np.allclose(M, M.T, rtol=1e-12, atol=1e-12):
                    raise ValueError(f"riccati_cost: {name} must be symmetric")
            P = Q
            for _ in range(2000):
                after = Q + A.T @ P @ (A - B @ gain(A, B, R, P))
                done = np.abs(after - P).max() <= 1e-13 * np.abs(after).max()
                P = (after + after.T) / 2
                if done:
                    K = gain(A, B, R, P)
                    ctx.save_for_backward(K=K, F=A - B @ K, P=P.copy())
                    return pb.asarray(P)
            raise ArithmeticError("riccati_cost: no convergence; is (A, B) stabilisable?")

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            K, F, P = ctx.saved_variables
            n = len(P)
            G = (g.numpy() + g.numpy().T) / 2
            S = np.linalg.solve(np.eye(n * n) - np.kron(F, F), G.ravel()).reshape(n, n)
            by_A = 2 * P @ F @ S
            return dict(
                zip("ABQR", map(pb.asarray, (by_A, -by_A @ K.T, S, K @ S @ K.T)), strict=True)
            )

    return Riccati.apply


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(2, 5))), t(0.9)),
        {"done": np.array([[0, 0, 1, 0, 0], [0, 0, 0, 0, 1]], bool)},
    )
)
def episode_returns():
    @pb.autograd_function
    def episode_returns(ctx, rewards, discount, done=None):
        """Discounted returns; rewards and done: (b, T), an episode ends where done is set."""
        r = rewards.numpy()
        goes_on = np.ones_like(r) if done is None else 1.0 - done
        out, after = np.zeros_like(r), np.zeros((len(r), r.shape[1] + 1))
        for i in range(r.shape[1] - 1, -1, -1):
            out[:, i] = r[:, i] + discount.item() * goes_on[:, i] * after[:, i + 1]
            after[:, i] = out[:, i]
        ctx.save_for_backward(discount=discount, goes_on=goes_on, after=after[:, 1:])
        return pb.asarray(out)

    @episode_returns.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, h = ctx.saved_variables, g.numpy().copy()
        for i in range(1, h.shape[1]):
            h[:, i] += s.discount.item() * s.goes_on[:, i - 1] * h[:, i - 1]
        return {"rewards": pb.asarray(h), "discount": (h * s.goes_on * s.after).sum()}

    return episode_returns
