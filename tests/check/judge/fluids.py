"""Fluids: limited advection, friction, lattice Boltzmann, walls, projection, channels, settling."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import MISSING, REVERSED, SIGN, Book, at, mends, t

BOOK = Book("fluids")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0, 2, 9)), t(rng.uniform(0.2, 0.8))), {}),
    "for a flow to the left the cells are reversed in forward, and the gradient not turned back",
    REVERSED,
    r"\bcourant\b`?.{0,20}(?:<|negative|below|is -|= ?-)|negative (?:courant|speed|velocity|flow)",
    r"(?:flow|wind|advect\w*|moving|moves|velocity) (?:is )?(?:to the left|left)|\bleftward",
    r"\[::-1\].{0,30}(?:missing|forgot)|(?:missing|without|forgot\w*).{0,30}\[::-1\]",
    mends(
        "if ctx.left: grad = grad[::-1]",
        "grad[::-1] if ctx.left",
        "grad = grad[::-1]",
        "np.flip(grad",
        "asarray(grad[::-1]",
        "grad[::-1].copy()",
    ),
    where="a negative Courant number",
    shows=lambda rng: ((t(rng.uniform(0, 2, 9)), t(-rng.uniform(0.2, 0.8))), {}),
)
def limited_advection():
    def minmod(a, b):
        return np.where(a * b > 0, np.where(np.abs(a) < np.abs(b), a, b), 0.0)

    @pb.autograd_function
    def limited_advection(ctx, cells, courant):
        """One step of second-order advection in a periodic domain, with the minmod limiter."""
        u, c = cells.numpy(), courant.item()
        if abs(c) > 1:
            raise ValueError("the step is unstable: the Courant number exceeds 1")
        ctx.left = c < 0
        u, c = (u[::-1], -c) if ctx.left else (u, c)
        ctx.behind, ctx.ahead = u - np.roll(u, 1), np.roll(u, -1) - u
        ctx.slope = minmod(ctx.behind, ctx.ahead)
        ctx.face, ctx.c = u + (1 - c) / 2 * ctx.slope, c
        out = u - c * (ctx.face - np.roll(ctx.face, 1))
        return pb.asarray(out[::-1].copy() if ctx.left else out)

    @limited_advection.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, c = grad_output.numpy(), ctx.c
        gn = gn[::-1] if ctx.left else gn
        to_face = -c * (gn - np.roll(gn, -1))
        to_slope = to_face * (1 - c) / 2
        by_behind = np.where(ctx.slope == ctx.behind, to_slope, 0.0)
        by_ahead = np.where((ctx.slope == ctx.ahead) & (by_behind == 0), to_slope, 0.0)
        grad = gn + to_face + by_behind - np.roll(by_behind, -1)
        grad += np.roll(by_ahead, 1) - by_ahead
        by_c = -gn @ (ctx.face - np.roll(ctx.face, 1)) - to_face @ ctx.slope / 2
        return pb.asarray(grad), pb.asarray(np.array(-by_c if ctx.left else by_c))

    return limited_advection


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(5e3, 9e4, 4)), t(rng.uniform(0.005, 0.03, 4))), {}),
    "laminar flow does not feel the roughness, but its gradient is not set to zero there",
    r"\blaminar (?:flow|regime|branch|case|range)|\bturbulent\b",
    r"(?:below|under|<=?|above|>) ?(?:2300|crit)",
    r"reynolds`? ?(?:<|is below|below|is under|under|is small)|(?:small|low) reynolds",
    r"(?:should|must) be (?:0|zero)|not zero|nonzero|instead of (?:0|zero)\b(?!\.[1-9])",
    mends(
        "np.where(ctx.laminar, 0.0, by_roughness",
        "np.where(ctx.laminar, 0, by_roughness",
        "np.where(ctx.laminar, 0.0, gn",
        "np.where(ctx.laminar, 0, gn",
        "* ~ctx.laminar",
        "* (~ctx.laminar)",
        "np.where(~ctx.laminar",
        "by_roughness[ctx.laminar] = 0",
    ),
    where="laminar flow",
    shows=lambda rng: (
        (t(np.array([800.0, 5e4, 1500.0, 2e4])), t(rng.uniform(0.005, 0.03, 4))),
        {},
    ),
)
def friction_factor():
    @pb.autograd_function
    def friction_factor(ctx, reynolds, roughness, critical=2300.0):
        """Darcy friction factor: 64 / Re if laminar, otherwise by Colebrook and White.

        roughness: relative to the diameter.
        """
        Re, k = reynolds.numpy(), roughness.numpy()
        if (Re <= 0).any() or (k < 0).any():
            raise ValueError("friction_factor: Re must be positive, the roughness not negative")
        x = np.full(np.broadcast_shapes(Re.shape, k.shape), 7.0)
        for _ in range(60):
            x = -2 * np.log10(k / 3.7 + 2.51 * x / Re)
        ctx.save_for_backward(reynolds=reynolds, roughness=roughness, x=x)
        ctx.laminar = critical > Re
        return pb.asarray(np.where(ctx.laminar, 64 / Re, x**-2))

    @friction_factor.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        Re, x = s.reynolds.numpy(), s.x
        scale = 2 / np.log(10) / (s.roughness.numpy() / 3.7 + 2.51 * x / Re)
        chain = 2 * x**-3 * scale / (1 + scale * 2.51 / Re)
        by_reynolds = np.where(ctx.laminar, -64 / Re**2, -chain * 2.51 * x / Re**2)
        by_roughness = chain / 3.7
        return {
            "reynolds": pb.sum_to_size(pb.asarray(gn * by_reynolds), s.reynolds.shape),
            "roughness": pb.sum_to_size(pb.asarray(gn * by_roughness), s.roughness.shape),
        }

    return friction_factor


DIRECTIONS = np.array(
    [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)], dtype=float
)
WEIGHTS = np.array([4 / 9] + 4 * [1 / 9] + 4 * [1 / 36])


@BOOK.wrong(
    lambda rng: (
        (t(WEIGHTS[:, None, None] * rng.uniform(0.6, 1.4, (9, 3, 2))), t(rng.uniform(0.7, 1.2))),
        {},
    ),
    "the velocity is momentum by density, and that it changes with the density is left out",
    MISSING,
    r"\bdensity\b|\bquotient\b|\bmomentum\b|(?:divi\w+ by|depend\w* on|through) rho\b",
    r"(?:velocity|\bu\b).{0,40}(?:depend|chang|var|constant|held|fixed)",
    mends(
        "by_rho -= (by_u * u).sum(axis=0) / rho",
        "- (by_u * u).sum(axis=0) / rho",
        "- (u * by_u).sum(axis=0) / rho",
        "-= (u * by_u).sum(axis=0) / rho",
        "(DIRECTIONS[:, :, None, None] - u)",
    ),
)
def bgk_collision():
    def equilibrium(f):
        rho = f.sum(axis=0)
        u = np.tensordot(DIRECTIONS.T, f, 1) / rho
        along = np.tensordot(DIRECTIONS, u, 1)
        shape = 1 + 3 * along + 4.5 * along**2 - 1.5 * (u * u).sum(axis=0)
        return rho, u, along, WEIGHTS[:, None, None] * rho * shape

    class Collision(pb.Function):
        """Relax populations of a D2Q9 lattice to equilibrium; f: (9, nx, ny), tau: scalar."""

        @staticmethod
        def forward(f, tau):
            return f + (pb.asarray(equilibrium(f.numpy())[-1]) - f) / tau

        @staticmethod
        def setup_context(ctx, inputs, output):
            if inputs[1].item() <= 0.5:
                raise ValueError("tau must exceed 1/2 for a positive viscosity")
            ctx.save_for_backward(f=inputs[0], tau=inputs[1])

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            f, tau, gn = ctx.saved_variables.f.numpy(), ctx.saved_variables.tau.item(), grad_output
            gn = gn.numpy()
            rho, u, along, rest = equilibrium(f)
            by_rest = gn / tau
            weighted = by_rest * WEIGHTS[:, None, None] * rho
            by_rho = (by_rest * rest).sum(axis=0) / rho
            by_u = np.tensordot(DIRECTIONS.T, weighted * (3 + 9 * along), 1)
            by_u -= 3 * u * weighted.sum(axis=0)
            by_f = gn * (1 - 1 / tau) + by_rho + np.tensordot(DIRECTIONS, by_u / rho, 1)
            return {
                "f": pb.asarray(by_f),
                "tau": pb.asarray(np.array((gn * (f - rest)).sum() / tau**2)),
            }

    return Collision.apply


@BOOK.wrong(
    lambda rng: ((t(rng.normal(0, 1, 8)), t(rng.uniform(0.05, 0.2))), {}),
    "beyond a wall the velocity has the opposite sign; the gradient of that is added at the ends",
    SIGN,
    at("boundary"),
    r"\bwalls?\b|\bghost|no.slip|\bboundary\b.{0,30}(?:cells?|values?|elements?|condition)",
    r"\bboundary ?(?:=|is) ?.?wall",
    r"\b(?:ends?|edges?)\b|first and (?:the )?last|elements? (?:0|\[0\]) and",
    mends(
        "grad[0] -= to_left[0]",
        "grad[-1] -= to_right[-1]",
        "grad[0] += -to_left[0]",
        "grad[[0, -1]] -=",
    ),
    where="boundary='wall'",
    shows=lambda rng: (
        (t(rng.normal(0, 1, 8)), t(rng.uniform(0.05, 0.2))),
        {"boundary": "wall"},
    ),
)
def burgers_step():
    def beside(u, boundary):
        if boundary == "periodic":
            return np.roll(u, 1), np.roll(u, -1)
        if boundary != "wall":
            raise ValueError(f"boundary must be 'periodic' or 'wall', got {boundary!r}")
        return np.concatenate([-u[:1], u[:-1]]), np.concatenate([u[1:], -u[-1:]])

    def forward(ctx, velocity, viscosity, boundary="periodic", dx=0.5, dt=0.1):
        """One explicit step of Burgers' equation; at a wall the fluid does not slip."""
        u, nu = velocity.numpy(), viscosity.item()
        left, right = beside(u, boundary)
        ctx.save_for_backward(velocity=velocity, viscosity=viscosity)
        ctx.options = boundary, dx, dt
        bend = (left - 2 * u + right) / dx**2
        return pb.asarray(u + dt * (nu * bend - u * (right - left) / (2 * dx)))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        boundary, dx, dt = ctx.options
        u, nu = (saved.numpy() for saved in ctx.saved_tensors)
        gn, (left, right) = dt * grad_output.numpy(), beside(u, boundary)
        grad = gn / dt - gn * (2 * nu / dx**2 + (right - left) / (2 * dx))
        to_right, to_left = (gn * (nu / dx**2 + s * u / (2 * dx)) for s in (-1, 1))
        if boundary == "periodic":
            grad += np.roll(to_right, 1) + np.roll(to_left, -1)
        else:
            grad[1:] += to_right[:-1]
            grad[:-1] += to_left[1:]
            grad[0] += to_left[0]
            grad[-1] += to_right[-1]
        by_nu = gn @ (left - 2 * u + right) / dx**2
        return {"velocity": pb.asarray(grad), "viscosity": pb.asarray(np.array(by_nu))}

    return pb.autograd_function(forward, backward, name="burgers_step")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(2, 5, 7))),), {"spacing": (0.5, 0.25)}),
    "the adjoint of the divergence is minus the gradient: what comes from the pressure has the "
    "wrong sign",
    SIGN,
    r"\bpressure\b.{0,60}(?:wrong|minus|subtract|added)|(?:second|other) output",
    r"(?:output|out\[) ?1\b|adjoint of (?:the )?div",
    mends(
        "- pressure_part",
        "(by_velocity - extra",
        "- gradient(solve(by_pressure",
        "(divergence(by_velocity) + by_pressure)",
        "(by_pressure + divergence(by_velocity))",
    ),
)
def project_velocity():
    def operators(shape, spacing):
        waves = [2j * np.pi * np.fft.fftfreq(n, d) for n, d in zip(shape, spacing, strict=True)]
        k = np.stack(np.meshgrid(*waves, indexing="ij"))
        square = (k * k).sum(axis=0)
        square[0, 0] = 1.0
        return k, np.where(np.arange(square.size).reshape(shape) == 0, 0, 1 / square)

    def divergence(v, k):
        return np.fft.ifft2((k * np.fft.fft2(v)).sum(axis=0)).real

    def gradient(p, k):
        return np.fft.ifft2(k * np.fft.fft2(p)).real

    def solve(rhs, inverse):
        return np.fft.ifft2(inverse * np.fft.fft2(rhs)).real

    @pb.autograd_function
    def project_velocity(ctx, velocity, spacing=(1.0, 1.0)):
        """Make a periodic flow free of divergence; velocity: (2, nx, ny) with nx and ny odd.

        Returns the velocity and the pressure whose gradient was taken away.
        """
        v = velocity.numpy()
        if v.shape[0] != 2 or v.shape[1] % 2 == 0 or v.shape[2] % 2 == 0:
            raise ValueError("velocity must have the shape (2, odd, odd)")
        ctx.k, ctx.inverse = operators(v.shape[1:], spacing)
        p = solve(divergence(v, ctx.k), ctx.inverse)
        return pb.asarray(v - gradient(p, ctx.k)), pb.asarray(p)

    @project_velocity.backward
    @pb.once_differentiable
    def _(ctx, grad_velocity, grad_pressure):
        k, inverse = ctx.k, ctx.inverse
        by_velocity, by_pressure = grad_velocity.numpy(), grad_pressure.numpy()
        rhs = divergence(by_velocity, k) - by_pressure
        return {"velocity": pb.asarray(by_velocity - gradient(solve(rhs, inverse), k))}

    return project_velocity


def channel(rng):
    return t(rng.uniform(2, 9)), t(rng.uniform(0.001, 0.004)), t(rng.uniform(2, 5))


@BOOK.wrong(
    lambda rng: (channel(rng), {}),
    "the slope of the wetted perimeter is 2, as for vertical banks, whatever the setting side is",
    at("side"),
    r"wetted|perimeter.{0,40}(?:slope|derivative|grows|changes)|of the perimeter",
    r"\btrapez|\brectangular",
    r"\b1 ?\+ ?(?:ctx\.|s\.)?side\b|1 ?\+ ?z|hypot\(1.{0,20} missing|sqrt\(1 ?\+",
    r"\bside\b.{0,40}(?:ignored|missing)|(?:ignor\w+|without|missing).{0,30}\bside\b",
    r"right (?:only )?(?:if|when|where|for) .{0,12}\bside`? ?(?:=|is|==) ?(?:0|zero)",
    mends(
        "2 * np.hypot(1, ctx.side)",
        "2 * np.sqrt(1 + ctx.side**2)",
        "2 * math.sqrt(1 + ctx.side**2)",
        "np.sqrt(1 + ctx.side",
        "np.hypot(1.0, ctx.side)",
        "ctx.bank",
    ),
    where="side is not 0",
    shows=lambda rng: (channel(rng), {"side": 1.5}),
)
def normal_depth():
    def section(depth, width, side):
        return depth * (width + side * depth), width + 2 * depth * np.hypot(1, side)

    @pb.autograd_function
    def normal_depth(ctx, discharge, slope, width, side=0.0, n=0.03):
        """Depth of uniform flow in a channel (Manning); side: run of the banks to their rise."""
        Q, S, b = (x.item() for x in (discharge, slope, width))
        if min(Q, S, b) <= 0:
            raise ValueError("discharge, slope and width must be positive")
        low, high = 0.0, 1e4
        for _ in range(200):
            depth = (low + high) / 2
            area, perimeter = section(depth, b, side)
            flow = np.sqrt(S) / n * area ** (5 / 3) / perimeter ** (2 / 3)
            low, high = (depth, high) if flow < Q else (low, depth)
        ctx.save_for_backward(discharge=discharge, slope=slope, width=width, depth=depth)
        ctx.side = side
        return pb.asarray(np.array(depth))

    @normal_depth.backward
    @pb.once_differentiable
    def _(ctx, g):
        Q, S, b, y = (float(x) for x in ctx.saved_variables)
        area, perimeter = section(y, b, ctx.side)
        # relative change of the flow
        by_depth = 5 / 3 * (b + 2 * ctx.side * y) / area - 2 / 3 * 2 / perimeter
        by_width = 5 / 3 * y / area - 2 / 3 / perimeter
        scale = g.item() / by_depth
        return {
            "discharge": pb.asarray(np.array(scale / Q)),
            "slope": pb.asarray(np.array(-scale / (2 * S))),
            "width": pb.asarray(np.array(-scale * by_width)),
        }

    return normal_depth


@BOOK.right(lambda rng: ((t(rng.uniform(0.1, 8, 5)), t(rng.uniform(1500, 3000))), {}))
def settling_velocity():
    def drag(Re):
        """Return the coefficient of Schiller and Naumann, and its slope."""
        slow = Re < 1000
        coefficient = np.where(slow, 24 / Re + 3.6 * Re**-0.313, 0.44)
        return coefficient, np.where(slow, -24 / Re**2 - 3.6 * 0.313 * Re**-1.313, 0.0)

    @pb.autograd_function
    def settling_velocity(ctx, diameter, density, fluid=1000.0, viscosity=1.0e-3):
        """Velocity in m/s at which spheres settle; diameter: (n,) in mm, density: in kg/m3."""
        d, excess = diameter.numpy() / 1000, density.item() / fluid - 1
        if excess <= 0 or (d <= 0).any():
            raise ValueError("only spheres heavier than the fluid settle")
        drive, per = 4 / 3 * 9.81 * excess * d, fluid * d / viscosity
        low, high = np.zeros_like(d), np.sqrt(drive / 0.4)
        for _ in range(100):
            v = (low + high) / 2
            slower = drag(per * v)[0] * v**2 < drive
            low, high = np.where(slower, v, low), np.where(slower, high, v)
        ctx.save_for_backward(d=d, v=v, drive=drive, per=per)
        ctx.excess, ctx.fluid = excess, fluid
        return pb.asarray(v)

    @settling_velocity.backward
    @pb.once_differentiable
    def _(ctx, g):
        d, v, drive, per = ctx.saved_variables
        coefficient, slope = drag(per * v)
        scaled = g.numpy() / (2 * v * coefficient + v**2 * slope * per)
        by_d = scaled * (drive / d - v**2 * slope * per * v / d)
        by_density = scaled @ drive / (ctx.excess * ctx.fluid)
        return {"diameter": pb.asarray(by_d / 1000), "density": pb.asarray(np.array(by_density))}

    return settling_velocity


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0, 3, 6)), t(rng.normal(0, 0.4, 7))),
        {"inflow": (1.0, 0.5), "dt": 0.3},
    )
)
def upwind_transport():
    def forward(ctx, tracer, wind, inflow=(0.0, 0.0), dt=1.0, steps=3):
        """Carry a tracer through n cells with the wind at their n + 1 faces, upwind."""
        v = wind.numpy()
        if dt * np.abs(v).max() > 1:
            raise ValueError("the wind crosses more than one cell in a step")
        q, ctx.padded = tracer.numpy(), []
        for _ in range(steps):
            padded = np.concatenate([inflow[:1], q, inflow[1:]])
            ctx.padded.append(padded)
            q = q - dt * np.diff(np.maximum(v, 0) * padded[:-1] + np.minimum(v, 0) * padded[1:])
        ctx.save_for_backward(wind=wind)
        ctx.dt = dt
        return pb.asarray(q if steps else q.copy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        v, carried = ctx.saved_variables.wind.numpy(), grad_output.numpy()
        by_wind = np.zeros_like(v)
        for padded in reversed(ctx.padded):
            by_flux = ctx.dt * np.diff(carried, prepend=0.0, append=0.0)
            by_wind += by_flux * np.where(v > 0, padded[:-1], padded[1:])
            to_left, to_right = by_flux * np.maximum(v, 0), by_flux * np.minimum(v, 0)
            carried = carried + to_left[1:] + to_right[:-1]
        return {"tracer": pb.asarray(carried), "wind": pb.asarray(by_wind)}

    return pb.autograd_function(forward, backward, name="upwind_transport")


@BOOK.right(lambda rng: ((t(rng.normal(size=(2, 5, 4))),), {"constant": 0.2, "dx": 0.5}))
def eddy_viscosity():
    class EddyViscosity(pb.Function):
        """Smagorinsky's eddy viscosity of a periodic flow; velocity: (2, nx, ny)."""

        @staticmethod
        def forward(ctx, velocity, constant=0.17, dx=1.0):
            u, v = velocity.numpy()
            slopes = [[slope(w, i, dx) for i in (0, 1)] for w in (u, v)]
            shear = (slopes[0][1] + slopes[1][0]) / 2
            rate = np.sqrt(2 * (slopes[0][0] ** 2 + slopes[1][1] ** 2 + 2 * shear**2))
            ctx.save_for_backward(xx=slopes[0][0], yy=slopes[1][1], xy=shear, rate=rate)
            ctx.constant, ctx.dx = constant, dx
            return pb.asarray((constant * dx) ** 2 * rate)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, length = ctx.saved_variables, ctx.constant * ctx.dx
            moving = s.rate > 0
            scale = 2 * length**2 * grad_output.numpy() / np.where(moving, s.rate, 1.0) * moving
            # a central difference is minus its own adjoint
            by_u = slope(scale * s.xx, 0, ctx.dx) + slope(scale * s.xy, 1, ctx.dx)
            by_v = slope(scale * s.yy, 1, ctx.dx) + slope(scale * s.xy, 0, ctx.dx)
            return pb.asarray(-np.stack([by_u, by_v]))

    def slope(w, axis, dx):
        return (np.roll(w, -1, axis) - np.roll(w, 1, axis)) / (2 * dx)

    return EddyViscosity.apply


@BOOK.right(lambda rng: ((t(rng.normal(size=(4, 5))),), {"sweeps": 6, "weight": 0.8}))
def jacobi_pressure():
    def relax(rhs, sweeps, weight, h):
        p = np.zeros_like(rhs)
        for _ in range(sweeps):
            padded = np.pad(p, 1)
            around = padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2]
            p = (1 - weight) * p + weight * (around - h * h * rhs) / 4
        return p

    @pb.autograd_function
    def jacobi_pressure(ctx, rhs, sweeps=20, weight=1.0, h=1.0):
        """Approximate pressure after some weighted Jacobi sweeps from zero; zero at the rim."""
        ctx.options = sweeps, weight, h
        return pb.asarray(relax(rhs.numpy(), *ctx.options))

    @jacobi_pressure.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        # a polynomial of a symmetric matrix: its own adjoint
        return pb.asarray(relax(grad_output.numpy(), *ctx.options))

    return jacobi_pressure


@BOOK.right(
    lambda rng: ((t(rng.choice([-1, 1]) * rng.uniform(1, 3)), t(rng.uniform(0.5, 4, 3))), {})
)
def parallel_pipes():
    @pb.autograd_function
    def parallel_pipes(ctx, total, resistance, exponent=1.852):
        """Flow in each of some parallel pipes, and the loss of head r * |q|**exponent in all.

        total: scalar, negative for a flow from the end to the start; resistance: (n,).
        """
        if (resistance <= 0).any():
            raise ValueError("resistances must be positive")
        if total.item() == 0:
            raise ValueError("nothing flows")
        ctx.save_for_backward(total=total, resistance=resistance)
        ctx.exponent = exponent
        share, loss = solution(total, resistance, exponent)
        return {"flow": total * share, "loss": loss}

    def solution(total, resistance, exponent):
        opening = resistance ** (-1 / exponent)
        whole = opening.sum()
        return opening / whole, total.sign() * (total.abs() / whole) ** exponent

    @parallel_pipes.backward
    def _(ctx, grad_flow, grad_loss):
        (total, r), n = ctx.saved_tensors, ctx.exponent
        share, loss = solution(total, r, n)
        mean = (grad_flow * share).sum()
        by_log_opening = total * share * (grad_flow - mean) - n * grad_loss * loss * share
        return {
            "total": mean + n * grad_loss * loss / total,
            "resistance": -by_log_opening / (n * r),
        }

    return parallel_pipes
