"""Solvers: linear systems, fixed points, roots, steps of ODEs, matrix equations."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import (
    FACTOR,
    MISSING,
    SIGN,
    STATE,
    SWAPPED,
    TRANSPOSED,
    Book,
    at,
    spd,
    t,
)

BOOK = Book("solvers")


def general(rng, n=4):
    return rng.normal(size=(n, n)) + n * np.eye(n)


@BOOK.wrong(
    lambda rng: ((t(general(rng)), t(rng.normal(size=4))), {}),
    "the gradient of the matrix is transposed",
    TRANSPOSED,
)
def linear_solve():
    @pb.autograd_function
    def linear_solve(ctx, matrix: pb.Tensor, rhs: pb.Tensor) -> pb.Tensor:
        """Solve matrix @ x = rhs; matrix: (n, n), rhs: (n,)."""
        x = np.linalg.solve(matrix.numpy(), rhs.numpy())
        ctx.save_for_backward(matrix=matrix, x=x)
        return pb.asarray(x)

    @linear_solve.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        u = np.linalg.solve(s.matrix.numpy().T, grad_output.numpy())
        return {"matrix": pb.asarray(-np.outer(s.x, u)), "rhs": pb.asarray(u)}

    return linear_solve


@BOOK.wrong(
    lambda rng: ((t(spd(rng, 4)), t(rng.normal(size=(4, 3)))), {}),
    "backward solves with A where it needs the transpose of A",
    TRANSPOSED,
    r"symmetric",
    where="A not symmetric",
    shows=lambda rng: ((t(general(rng)), t(rng.normal(size=(4, 3)))), {}),
)
def solve_columns():
    @pb.autograd_function
    def solve_columns(ctx, A, B):
        X = pb.asarray(np.linalg.solve(A.numpy(), B.numpy()))
        ctx.save_for_backward(A=A, X=X)
        return X

    @solve_columns.backward
    @pb.once_differentiable
    def _(ctx, g):
        A, X = (v.numpy() for v in ctx.saved_tensors)
        U = np.linalg.solve(A, g.numpy())
        return pb.asarray(-U @ X.T), pb.asarray(U)

    return solve_columns


def thomas(lower, diag, upper, rhs):
    """Solve a tridiagonal system; lower and upper have one entry fewer than diag."""
    n = len(diag)
    c, d = np.zeros(n), np.zeros(n)
    c[0], d[0] = (upper[0] if n > 1 else 0.0) / diag[0], rhs[0] / diag[0]
    for i in range(1, n):
        m = diag[i] - lower[i - 1] * c[i - 1]
        c[i] = upper[i] / m if i < n - 1 else 0.0
        d[i] = (rhs[i] - lower[i - 1] * d[i - 1]) / m
    for i in range(n - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return d


def bands(rng, n=6):
    parts = (rng.normal(size=n - 1), 4 + rng.random(n), rng.normal(size=n - 1), rng.normal(size=n))
    return tuple(t(p) for p in parts), {}


@BOOK.wrong(
    bands,
    "the gradients of the lower and the upper band are exchanged",
    SWAPPED,
)
def tridiagonal_solve():
    def forward(ctx, lower, diag, upper, rhs):
        bands = [v.numpy() for v in (lower, diag, upper)]
        x = thomas(*bands, rhs.numpy())
        ctx.save_for_backward(bands=bands, x=x)
        return pb.asarray(x)

    @pb.once_differentiable
    def backward(ctx, grad):
        (lower, diag, upper), x = ctx.saved_variables.bands, ctx.saved_variables.x
        u = thomas(upper, diag, lower, grad.numpy())
        return {
            "lower": pb.asarray(-u[:-1] * x[1:]),
            "diag": pb.asarray(-u * x),
            "upper": pb.asarray(-u[1:] * x[:-1]),
            "rhs": pb.asarray(u),
        }

    return pb.autograd_function(forward, backward, name="tridiagonal_solve")


@BOOK.right(bands)
def band_solve():
    class BandSolve(pb.Function):
        """Solve a tridiagonal system by Thomas' algorithm."""

        @staticmethod
        def forward(ctx, sub: pb.Tensor, main: pb.Tensor, sup: pb.Tensor, rhs: pb.Tensor):
            if sub.shape[0] != main.shape[0] - 1 or sup.shape != sub.shape:
                raise ValueError("band_solve: sub and sup must have one entry fewer than main")
            x = pb.asarray(thomas(sub.numpy(), main.numpy(), sup.numpy(), rhs.numpy()))
            ctx.save_for_backward(sub=sub, main=main, sup=sup, x=x)
            return x

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            sub, main, sup, x = (v.numpy() for v in ctx.saved_tensors)
            u = thomas(sup, main, sub, grad_output.numpy())
            return tuple(map(pb.asarray, (-u[1:] * x[:-1], -u * x, -u[:-1] * x[1:], u)))

    return BandSolve.apply


def sylvester(A, B, C):
    m, n = C.shape
    K = np.kron(A, np.eye(n)) + np.kron(np.eye(m), B.T)
    return np.linalg.solve(K, C.ravel()).reshape(m, n)


def sylvester_given(rng, m=3, n=3):
    return (t(general(rng, m)), t(general(rng, n)), t(rng.normal(size=(m, n)))), {}


@BOOK.wrong(
    sylvester_given,
    "the factors of B's gradient stand in the wrong order: it is transposed",
    TRANSPOSED,
    r"\border of\b|left and right|\bsides?\b",
)
def sylvester_solve():
    @pb.autograd_function
    def sylvester_solve(ctx, A, B, C):
        """Solve A X + X B = C."""
        X = sylvester(A.numpy(), B.numpy(), C.numpy())
        ctx.save_for_backward(A=A, B=B, X=X)
        return pb.asarray(X)

    @sylvester_solve.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        L = sylvester(s.A.numpy().T, s.B.numpy().T, g.numpy())
        grads = {"A": -L @ s.X.T, "B": -L @ s.X.T, "C": L}
        return {name: pb.asarray(v) for name, v in grads.items()}

    return sylvester_solve


@BOOK.right(lambda rng: sylvester_given(rng, 4, 2))
def lyapunov_like():
    def forward(ctx, left: pb.Tensor, right: pb.Tensor, rhs: pb.Tensor) -> pb.Tensor:
        """left: (m, m), right: (n, n), rhs: (m, n)."""
        X = pb.asarray(sylvester(left.numpy(), right.numpy(), rhs.numpy()))
        ctx.save_for_backward(left=left, right=right, X=X)
        return X

    @pb.once_differentiable
    def backward(ctx, g):
        left, right, X = (v.numpy() for v in ctx.saved_tensors)
        L = sylvester(left.T, right.T, g.numpy())
        return {
            "left": pb.asarray(-L @ X.T),
            "right": pb.asarray(-X.T @ L),
            "rhs": pb.asarray(L),
        }

    return pb.autograd_function(forward, backward, name="lyapunov_like")


def fixed_point(W, b, tol):
    x = np.zeros_like(b)
    for _ in range(1000):
        new = np.tanh(W @ x + b)
        if np.linalg.norm(new - x) <= tol * np.linalg.norm(new):
            return new
        x = new
    raise RuntimeError("no fixed point found")


@BOOK.wrong(
    lambda rng: ((t(0.3 * rng.normal(size=(5, 5))), t(rng.normal(size=5))), {}),
    "the gradient goes through one step only; the solution is taken for a constant",
    MISSING,
    r"implicit|fixed point|\bconstant\b",
)
def equilibrium_layer():
    @pb.autograd_function
    def equilibrium_layer(ctx, weight, bias, tol=1e-12):
        z = fixed_point(weight.numpy(), bias.numpy(), tol)
        ctx.save_for_backward(weight=weight, z=z)
        return pb.asarray(z)

    @equilibrium_layer.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        z = ctx.saved_variables.z
        v = grad_output.numpy() * (1 - z**2)
        return {"weight": pb.asarray(np.outer(v, z)), "bias": pb.asarray(v)}

    return equilibrium_layer


@BOOK.right(lambda rng: ((t(0.3 * rng.normal(size=(5, 5))), t(rng.normal(size=5))), {}))
def deep_equilibrium():
    class DeepEquilibrium(pb.Function):
        """z = tanh(weight z + bias), iterated to a relative change of 1e-5 only."""

        @staticmethod
        def forward(ctx, weight, bias, tol=1e-5):
            z = pb.asarray(fixed_point(weight.numpy(), bias.numpy(), tol))
            ctx.save_for_backward(weight=weight, z=z)
            return z

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            W, z = (v.numpy() for v in ctx.saved_tensors)
            D = 1 - z**2
            v = D * np.linalg.solve((np.eye(len(z)) - D[:, None] * W).T, g.numpy())
            return pb.asarray(np.outer(v, z)), pb.asarray(v), None

    return DeepEquilibrium.apply


def cubic_root(a, c):
    x = np.cbrt(c)
    for _ in range(60):
        x = x - (x**3 + a * x - c) / (3 * x**2 + a)
    return x


@BOOK.wrong(
    lambda rng: ((t(1 + rng.random(5)), t(rng.normal(size=5))), {}),
    "the gradient of a has the wrong sign",
    SIGN,
)
def newton_cubic():
    @pb.autograd_function
    def newton_cubic(ctx, a, c):
        """Return the real root of x**3 + a x = c; a: (n,) positive, c: (n,)."""
        x = pb.asarray(cubic_root(a.numpy(), c.numpy()))
        ctx.save_for_backward(a=a, x=x)
        return x

    @newton_cubic.backward
    def _(ctx, g):
        a, x = ctx.saved_variables.a, ctx.saved_variables.x
        slope = 3 * x**2 + a
        return {"a": g * x / slope, "c": g / slope}

    return newton_cubic


@BOOK.right(
    lambda rng: (
        (lambda x, p: x + p * np.sin(x), lambda x, p: 1 + p * np.cos(x), t(0.8 * rng.random(4))),
        {"level": t(rng.normal(size=4))},
    )
)
def newton_root():
    @pb.autograd_function
    def newton_root(ctx, f, slope, p, level, maxiter=200):
        """Solve f(x, p) = level for f(x, p) = x + p sin(x), elementwise."""
        pn, target = p.numpy(), level.numpy()
        x = target.copy()
        for _ in range(maxiter):
            step = (f(x, pn) - target) / slope(x, pn)
            x = x - np.clip(step, -1, 1)
            if np.all(np.abs(step) < 1e-13):
                break
        else:
            raise RuntimeError(f"newton_root: no root found in {maxiter} steps")
        ctx.save_for_backward(x=x, slope=slope(x, pn))
        return pb.asarray(x)

    @newton_root.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        v = g.numpy() / s.slope
        return {"p": pb.asarray(-v * np.sin(s.x)), "level": pb.asarray(v)}

    return newton_root


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 3))), t(rng.normal(size=3)), t(0.1)), {}),
    "with several steps backward goes through the last one only",
    at("steps"),
    where="steps > 1",
    shows=lambda rng: ((t(rng.normal(size=(3, 3))), t(rng.normal(size=3)), t(0.1)), {"steps": 4}),
)
def euler_steps():
    @pb.autograd_function
    def euler_steps(ctx, A, y, dt, steps: int = 1):
        """Make explicit Euler steps of y' = A y."""
        for _ in range(steps):
            last, y = y, y + dt * (A @ y)
        ctx.save_for_backward(A=A, last=last.numpy().copy(), dt=dt)
        return y

    @euler_steps.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        last = pb.asarray(s.last)
        return {
            "A": s.dt * pb.outer(g, last),
            "y": g + s.dt * (s.A.t() @ g),
            "dt": (g * (s.A @ last)).sum(),
        }

    return euler_steps


@BOOK.wrong(
    lambda rng: ((t(0.3 * rng.normal(size=(4, 4))), t(rng.normal(size=4))), {}),
    "the gradient of A lacks the factor h",
    FACTOR,
    at("h"),
    where="h other than 1",
    shows=lambda rng: ((t(rng.normal(size=(4, 4))), t(rng.normal(size=4))), {"h": 0.1}),
)
def implicit_euler():
    def forward(ctx, A, state, h=1.0):
        M = np.eye(A.shape[0]) - h * A.numpy()
        new = np.linalg.solve(M, state.numpy())
        ctx.save_for_backward(M=M, new=new)
        return pb.asarray(new)

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        u = np.linalg.solve(s.M.T, g.numpy())
        return {"A": pb.asarray(np.outer(u, s.new)), "state": pb.asarray(u)}

    return pb.autograd_function(forward, backward, name="implicit_euler")


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(4, 4))), t(rng.normal(size=4))),
        {"h": 0.2, "method": "trapezoid"},
    )
)
def implicit_step():
    @pb.autograd_function
    def implicit_step(ctx, A: pb.Tensor, state: pb.Tensor, h: float = 0.1, method: str = "euler"):
        """One implicit step of y' = A y."""
        if method not in ("euler", "trapezoid"):
            raise ValueError(f"method must be euler or trapezoid, got {method!r}")
        An, y = A.numpy(), state.numpy()
        theta = 1.0 if method == "euler" else 0.5
        eye = np.eye(len(y))
        M, N = eye - theta * h * An, eye + (1 - theta) * h * An
        new = np.linalg.solve(M, N @ y)
        ctx.save_for_backward(M=M, N=N, y=y.copy(), new=new, weights=(theta * h, (1 - theta) * h))
        return pb.asarray(new)

    @implicit_step.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        u = np.linalg.solve(s.M.T, g.numpy())
        grad_A = s.weights[0] * np.outer(u, s.new) + s.weights[1] * np.outer(u, s.y)
        return {"A": pb.asarray(grad_A), "state": pb.asarray(s.N.T @ u)}

    return implicit_step


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(6, 3))), t(rng.normal(size=6))), {"damping": t(0.5)}),
    "the gradient of the design matrix lacks the term of the residual",
    MISSING,
    r"residual|\bterm\b",
)
def ridge_regression():
    @pb.autograd_function
    def ridge_regression(ctx, design, target, damping):
        """Minimise |design x - target|**2 + damping |x|**2; design: (m, n), target: (m,)."""
        D, y = design.numpy(), target.numpy()
        H = D.T @ D + damping.numpy() * np.eye(D.shape[1])
        x = np.linalg.solve(H, D.T @ y)
        ctx.save_for_backward(design=design, target=target, x=x, H=H)
        return pb.asarray(x)

    @ridge_regression.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        D = s.design.numpy()
        u = np.linalg.solve(s.H, g.numpy())
        return {
            "design": pb.asarray(-np.outer(D @ u, s.x)),
            "target": pb.asarray(D @ u),
            "damping": pb.asarray(-(u @ s.x)),
        }

    return ridge_regression


@BOOK.wrong(
    lambda rng: ((t(np.linalg.cholesky(spd(rng, 4))), t(rng.normal(size=4))), {}),
    "with lower=False backward still assumes a lower triangle",
    at("lower"),
    TRANSPOSED,
    where="lower=False",
    shows=lambda rng: (
        (t(np.linalg.cholesky(spd(rng, 4)).T.copy()), t(rng.normal(size=4))),
        {"lower": False},
    ),
)
def cho_solve():
    @pb.autograd_function
    def cho_solve(ctx, factor: pb.Tensor, rhs: pb.Tensor, *, lower: bool = True) -> pb.Tensor:
        """Solve with a Cholesky factor: (L L') x = rhs, or (U' U) x = rhs."""
        F = np.tril(factor.numpy()) if lower else np.triu(factor.numpy())
        K = F @ F.T if lower else F.T @ F
        x = np.linalg.solve(K, rhs.numpy())
        ctx.save_for_backward(F=F, K=K, x=x)
        return pb.asarray(x)

    @cho_solve.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        u = np.linalg.solve(s.K, g.numpy())
        grad_factor = -(np.outer(u, s.x) + np.outer(s.x, u)) @ s.F
        keep = np.tril if np.allclose(s.F, np.tril(s.F)) else np.triu
        return {"factor": pb.asarray(keep(grad_factor)), "rhs": pb.asarray(u)}

    return cho_solve


@BOOK.wrong(
    lambda rng: ((t(general(rng)), t(rng.normal(size=4))), {}),
    "the inverse is cached by shape, so a second matrix gets the inverse of the first",
    STATE,
    where="second use",
)
def solve_cached():
    inverses = {}

    @pb.autograd_function
    def solve_cached(ctx, K, f):
        x = np.linalg.solve(K.numpy(), f.numpy())
        if K.shape not in inverses:
            inverses[K.shape] = np.linalg.inv(K.numpy())
        ctx.save_for_backward(shape=K.shape, x=x)
        return pb.asarray(x)

    @solve_cached.backward
    @pb.once_differentiable
    def _(ctx, g):
        u = inverses[ctx.saved_variables.shape].T @ g.numpy()
        return pb.asarray(-np.outer(u, ctx.saved_variables.x)), pb.asarray(u)

    return solve_cached


def conjugate_gradients(A, b, tol=1e-8):
    x, r = np.zeros_like(b), b.copy()
    p, rr = r.copy(), r @ r
    for _ in range(10 * len(b)):
        if np.sqrt(rr) <= tol * np.linalg.norm(b):
            break
        Ap = A @ p
        alpha = rr / (p @ Ap)
        x, r = x + alpha * p, r - alpha * Ap
        p, rr = r + (r @ r) / rr * p, r @ r
    return x


@BOOK.right(lambda rng: ((t(spd(rng, 6)), t(rng.normal(size=6))), {}))
def cg_solve():
    @pb.autograd_function
    def cg_solve(ctx, A: pb.Tensor, b: pb.Tensor, tol: float = 1e-8) -> pb.Tensor:
        """Conjugate gradients; A: (n, n) symmetric positive definite, b: (n,)."""
        An = A.numpy()
        if not np.allclose(An, An.T) or np.linalg.eigvalsh(An)[0] <= 0:
            raise ValueError("cg_solve: A must be symmetric positive definite")
        x = conjugate_gradients(An, b.numpy(), tol)
        ctx.save_for_backward(A=A, x=x, tol=tol)
        return pb.asarray(x)

    @cg_solve.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        u = conjugate_gradients(s.A.numpy(), g.numpy(), s.tol)
        return {"A": pb.asarray(-np.outer(u, s.x)), "b": pb.asarray(u)}

    return cg_solve


def ill_conditioned(rng):
    U, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    V, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    return (t(U * np.logspace(0, -5, 5) @ V.T), t(rng.normal(size=5))), {}


@BOOK.right(ill_conditioned)
def stiff_solve():
    @pb.autograd_function
    def stiff_solve(ctx, system, load):
        x = pb.linalg.solve(system, load)
        ctx.save_for_backward(system=system, x=x)
        return x

    @stiff_solve.backward
    def _(ctx, g):
        s = ctx.saved_variables
        u = stiff_solve(s.system.t(), g)
        return {"system": -pb.outer(u, s.x), "load": u}

    return stiff_solve


@BOOK.right(lambda rng: ((t(spd(rng, 4)),), {}))
def matrix_sqrt():
    @pb.autograd_function
    def matrix_sqrt(ctx, covariance):
        """Return the symmetric root; covariance: (n, n) symmetric positive definite."""
        C = covariance.numpy()
        if not np.allclose(C, C.T, atol=1e-10):
            raise ValueError("matrix_sqrt: covariance must be symmetric")
        w, V = np.linalg.eigh(C)
        if w[0] <= 0:
            raise ValueError("matrix_sqrt: covariance must be positive definite")
        ctx.save_for_backward(w=w, V=V)
        return pb.asarray(V * np.sqrt(w) @ V.T)

    @matrix_sqrt.backward
    @pb.once_differentiable
    def _(ctx, g):
        w, V = ctx.saved_variables.w, ctx.saved_variables.V
        root = np.sqrt(w)
        inner = V.T @ g.numpy() @ V / (root[:, None] + root[None, :])
        return {"covariance": pb.asarray(V @ inner @ V.T)}

    return matrix_sqrt


@BOOK.right(lambda rng: ((t(general(rng, 64) + 8 * np.eye(64)), t(rng.normal(size=(64, 2)))), {}))
def big_solve():
    class BigSolve(pb.Function):
        @staticmethod
        def forward(ctx, K, F):
            X = pb.asarray(np.linalg.solve(K.numpy(), F.numpy()))
            ctx.save_for_backward(K=K, X=X)
            return X

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            K, X = (v.numpy() for v in ctx.saved_tensors)
            U = np.linalg.solve(K.T, g.numpy())
            return pb.asarray(-U @ X.T), pb.asarray(U)

    return BigSolve.apply
