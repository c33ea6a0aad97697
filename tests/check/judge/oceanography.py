"""Oceanography: waves from deep water to the beach, tides, mixing, drift and tracers."""

from __future__ import annotations

import numpy as np
from scipy import integrate, linalg

import pullback as pb

from .entries import SWAPPED, Book, at, mends, t

BOOK = Book("oceanography")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(4, 7, 6)), t(rng.uniform(120, 300, 6))), {}),
    "the slope of the dispersion relation leaves out that tanh(k h) changes with k",
    r"\bshallow|deep water|(?:large|small|low) (?:depth|k ?\*? ?h|kh)",
    r"(?:where|when|if|for|at|below|under).{0,30}depth.{0,40}(?:small|below|under|less|<|large)",
    r"cosh|\bsech|tanh.{0,50}(?:deriv|depend|constant|missing|left out|chain|chang)",
    r"(?:missing|left out|lacks?|without|term).{0,60}1 ?- ?\S*tanh|\bproduct rule",
    mends("by_k = GRAVITY * (tanh +", "GRAVITY * tanh +", "h * by_h", "by_h * h", "np.cosh("),
    where="shallow water",
    shows=lambda rng: ((t(rng.uniform(5, 12, 6)), t(rng.uniform(2, 10, 6))), {}),
)
def wave_number():
    GRAVITY = 9.81

    @pb.autograd_function
    def wave_number(ctx, period, depth):
        """Wave number k of linear waves: (2 pi / period)^2 = g k tanh(k depth)."""
        T, h = period.numpy(), depth.numpy()
        if (T <= 0).any() or (h <= 0).any():
            raise ValueError("period and depth must be positive")
        omega = 2 * np.pi / T
        k = omega**2 / GRAVITY / np.sqrt(np.tanh(omega**2 * h / GRAVITY))
        for _ in range(30):
            tanh = np.tanh(k * h)
            residual = GRAVITY * k * tanh - omega**2
            k = k - residual / (GRAVITY * (tanh + k * h * (1 - tanh**2)))
        ctx.save_for_backward(omega=omega, depth=h, k=k)
        return pb.asarray(k.copy())

    @wave_number.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        omega, h, k = ctx.saved_variables
        tanh = np.tanh(k * h)
        by_k = GRAVITY * tanh
        by_h = GRAVITY * k**2 * (1 - tanh**2)
        to_residual = -grad_output.numpy() / by_k
        to_omega = to_residual * -2 * omega
        return {
            "period": pb.asarray(-to_omega * omega**2 / (2 * np.pi)),
            "depth": pb.asarray(to_residual * by_h),
        }

    return wave_number


def tide(rng, **settings):
    n = 3
    speed = np.array([0.5059, 0.5236, 0.2625])
    return (
        t(rng.uniform(0.2, 1.5, (2, n))),
        t(rng.uniform(0, 6, (2, n))),
        t(speed),
        np.sort(rng.uniform(0, 30, 8)),
    ), settings


@BOOK.wrong(
    tide,
    "the slope in the speeds counts the hours from 0, forward counts them from the epoch",
    at("epoch"),
    r"epoch.{0,40}(?:missing|ignored|forgot|left out|subtract)|(?:without|lacks?).{0,15}epoch",
    r"\borigin\b|\bfrom (?:0|zero)\b|(?:minus|subtract\w*) (?:the )?epoch|shifted? (?:in )?time",
    mends("(ctx.time - ctx.epoch)", "(time - epoch)", "(ctx.hours - ctx.epoch)", "t - ctx.epoch"),
    where="epoch is not 0",
    shows=lambda rng: tide(rng, epoch=-12.0),
)
def tide_height():
    class TideHeight(pb.Function):
        """Height of the tide; amplitude and lag (radians): (stations, n), speed: (n,) an hour.

        time: (hours,), nodal: factor of each constituent. Result: (stations, hours).
        """

        @staticmethod
        def arguments(lag, speed, hours):
            return speed * pb.asarray(hours).unsqueeze(-1) - lag.unsqueeze(-2)

        @staticmethod
        def forward(ctx, amplitude, lag, speed, time, epoch=0.0, nodal=None):
            ctx.save_for_backward(amplitude, lag, speed)
            ctx.time, ctx.epoch = time, epoch
            ctx.nodal = np.ones(len(speed)) if nodal is None else np.asarray(nodal)
            tides = TideHeight.arguments(lag, speed, time - epoch).cos()
            return (tides * (amplitude * pb.asarray(ctx.nodal)).unsqueeze(-2)).sum(dim=-1)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            amplitude, lag, speed = ctx.saved_tensors
            nodal, hours = pb.asarray(ctx.nodal), pb.asarray(ctx.time).unsqueeze(-1)
            angle = TideHeight.arguments(lag, speed, ctx.time - ctx.epoch)
            g = g.unsqueeze(-1)
            to_angle = -g * angle.sin() * (amplitude * nodal).unsqueeze(-2)
            return {
                "amplitude": (g * angle.cos()).sum(dim=-2) * nodal,
                "lag": -to_angle.sum(dim=-2),
                "speed": (to_angle * hours).sum(dim=(0, 1)),
            }

    return TideHeight.apply


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(5, 20, (6, 2))),
            t(10 ** rng.uniform(-3, -1, 5)),
            t(rng.normal(0, 1e-3, 2)),
        ),
        {"thickness": np.array([5.0, 5, 10, 20, 40, 80])},
    ),
    "the slope in the diffusivity takes the profile before the step, implicit steps use that after",
    r"(?:before|after|old|new|start|end of|previous|initial|updated) (?:the |each |a )?"
    r"(?:step|profile|value|state|concentration|tracer|time|solution)",
    r"\bresult\b|\boutput of forward|solution of|wrong saved|explicit",
    mends(
        "np.diff(s.after", "np.diff(after", "diff(ctx.after", "np.diff(s.new", "np.diff(s.result"
    ),
)
def mix_column():
    def banded(thickness, link):
        bands = np.zeros((3, len(thickness)))
        bands[1] = thickness
        bands[1, :-1] += link
        bands[1, 1:] += link
        bands[0, 1:] = bands[2, :-1] = -link
        return bands

    def forward(ctx, tracer, diffusivity, surface_flux, thickness, dt=3600.0):
        """One implicit step of vertical mixing; tracer: (levels, kinds), from the surface down.

        diffusivity: (levels - 1,) at the interfaces, in m2/s; surface_flux: (kinds,) downwards.
        """
        distance = (thickness[1:] + thickness[:-1]) / 2
        bands = banded(thickness, dt * diffusivity.numpy() / distance)
        before = tracer.numpy()
        rhs = thickness[:, None] * before
        rhs[0] += dt * surface_flux.numpy()
        after = linalg.solve_banded((1, 1), bands, rhs)
        ctx.save_for_backward(tracer=before, bands=bands, thickness=thickness)
        ctx.scale, ctx.dt = dt / distance, dt
        return pb.asarray(after)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s = ctx.saved_variables
        lam = linalg.solve_banded((1, 1), s.bands, grad_output.numpy())
        across = np.diff(lam, axis=0) * np.diff(s.tracer, axis=0)
        return {
            "tracer": pb.asarray(s.thickness[:, None] * lam),
            "diffusivity": pb.asarray(-ctx.scale * across.sum(axis=1)),
            "surface_flux": pb.asarray(ctx.dt * lam[0]),
        }

    return pb.autograd_function(forward, backward, name="mix_column")


@BOOK.wrong(
    lambda rng: ((t(np.array(0.9)), t(np.array(0.35)), t(rng.uniform(2.5, 8, 6))), {}),
    "a broken wave is gamma times the depth high, but its gradient in the depth is zero",
    r"\bbr(?:eak|oke)|\bsurf\b|\blimit(?:ed)?\b|saturat|\bcapped\b|\bcap\b",
    r"gamma ?(?:times|\*)|(?:missing|left out|lacks?|should be|without).{0,30}\bgamma\b",
    r"\bis (?:zero|0)\b|\bzeros?\b (?:where|when|for|in)|\bvanish",
    r"(?:where|when|if|for|at|below|under).{0,30}depth.{0,40}(?:small|below|under|less|<|shallow)",
    r"\bshallow",
    mends("ctx.gamma)", "g * ctx.gamma", "ctx.gamma * g", "pb.full_like(depth, ctx.gamma"),
    where="a broken wave",
    shows=lambda rng: (
        (t(np.array(1.4)), t(np.array(0.35)), t(np.array([0.5, 1.2, 2.6, 6, 0.9]))),
        {},
    ),
)
def surf_height():
    @pb.autograd_function
    def surf_height(ctx, height, angle, depth, offshore=10.0, gamma=0.78):
        """Heights of waves at some depths; they shoal, refract (parallel contours) and break.

        height and angle (radians): those at the depth `offshore`, all in shallow water.
        """
        sine2 = angle.sin() ** 2 * depth / offshore
        shoaled = height * (offshore / depth) ** 0.25
        shoaled = shoaled * (angle.cos() ** 2 / (1 - sine2)) ** 0.25
        ctx.broken = (shoaled > gamma * depth).numpy()
        ctx.save_for_backward(height=height, angle=angle, depth=depth, shoaled=shoaled)
        ctx.offshore, ctx.gamma = offshore, gamma
        return pb.minimum(shoaled, gamma * depth)

    @surf_height.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        height, angle, depth, shoaled = ctx.saved_tensors
        relative = depth / ctx.offshore
        turned = 1 - angle.sin() ** 2 * relative
        flow = grad_output * shoaled * pb.asarray(~ctx.broken)
        by_depth = (angle.sin() ** 2 / ctx.offshore / turned - 1 / depth) / 4
        by_angle = angle.sin() * angle.cos() * relative / turned / 2 - angle.tan() / 2
        return {
            "height": flow.sum() / height,
            "angle": (flow * by_angle).sum(),
            "depth": flow * by_depth,
        }

    return surf_height


FREQUENCY = np.array([0.04, 0.06, 0.07, 0.085, 0.11, 0.15, 0.25])


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.5, 6, (2, 7))), FREQUENCY), {}),
    "the first and the last frequency have the weight of a whole interval, not of half of one",
    r"\b(?:first|last|end|edge|outer|boundary|lowest|highest) (?:frequenc|bin|column|point|elem)",
    r"\b(?:ends?|edges?|bound\w+|borders?)\b|trapez|trapz",
    r"(?:columns?|index|indices|elements?|positions?|axis -?1) .{0,15}(?:\b0\b|-1|\b6\b)",
    r"\bhalf\b|\btwice\b|factor (?:of )?(?:2|0\.5|1/2)",
    mends("weight[[0, -1]] /= 2", "weight[[0, -1]] *= 0.5", "weight[0] /= 2", "np.diff(frequency)"),
)
def sea_state():
    @pb.autograd_function
    def sea_state(ctx, spectrum, frequency):
        """Significant height and mean zero-crossing period of wave spectra (..., n) in m2/Hz."""
        S = spectrum.numpy()
        m0 = integrate.trapezoid(S, frequency)
        m2 = integrate.trapezoid(S * frequency**2, frequency)
        ctx.moments, ctx.frequency = (m0, m2), frequency
        return pb.asarray(4 * np.sqrt(m0)), pb.asarray(np.sqrt(m0 / m2))

    @sea_state.backward
    @pb.once_differentiable
    def _(ctx, grads):
        g_height, g_period = (g.numpy() for g in grads)
        m0, m2 = ctx.moments
        weight = np.gradient(ctx.frequency, edge_order=1) * np.ones_like(ctx.frequency)
        period = np.sqrt(m0 / m2)
        to_m0 = g_height * 2 / np.sqrt(m0) + g_period * period / (2 * m0)
        to_m2 = -g_period * period / (2 * m2)
        both = to_m0[..., None] + to_m2[..., None] * ctx.frequency**2
        return {"spectrum": pb.asarray(both * weight)}

    return sea_state


@BOOK.wrong(
    lambda rng: (
        (
            t(np.sort(rng.uniform(1022, 1027, 6))),
            t(rng.normal(0, 0.4, 6)),
            t(rng.normal(0, 0.4, 6)),
        ),
        {"depth": np.array([0.0, 8, 20, 35, 60, 90])},
    ),
    "the gradient of v is made with the shear of u",
    SWAPPED,
    r"(?:equals?|equal to|same as|instead of|uses?|takes?|with|that of|copy of|shear of) "
    r"(?:the )?(?:\w+ (?:of|in) )?`?d?u\b|\bcop(?:y|ied)\b",
    mends("across(to_shear * dv)", "across(dv * to_shear)", "* dv)", "2 * dv"),
)
def richardson_viscosity():
    RHO0, GRAVITY = 1025.0, 9.81

    def gradients(depth, *profiles):
        down = pb.asarray(np.diff(depth))
        return [(p[1:] - p[:-1]) / down for p in profiles]

    @pb.autograd_function
    def richardson_viscosity(ctx, rho, u, v, depth, nu0=1e-2, alpha=5.0, background=1e-4):
        """Viscosity between the levels after Pacanowski and Philander (1981), times 1000."""
        drho, du, dv = gradients(depth, rho, u, v)
        shear = du**2 + dv**2 + 1e-8
        richardson = (GRAVITY / RHO0 * drho / shear).clamp(min=0.0)
        ctx.save_for_backward(rho=rho, u=u, v=v)
        ctx.depth, ctx.nu0, ctx.alpha = depth, nu0, alpha
        return 1000 * (nu0 / (1 + alpha * richardson) ** 2 + background)

    @richardson_viscosity.backward
    def _(ctx, g):
        drho, du, dv = gradients(ctx.depth, *ctx.saved_tensors)
        down = pb.asarray(np.diff(ctx.depth))

        def across(flow):
            edge = pb.zeros_like(flow[:1])
            flow = flow / down
            return pb.cat([edge, flow]) - pb.cat([flow, edge])

        shear = du**2 + dv**2 + 1e-8
        richardson = GRAVITY / RHO0 * drho / shear
        steep = -2000 * ctx.nu0 * ctx.alpha / (1 + ctx.alpha * richardson.clamp(min=0.0)) ** 3
        to_richardson = g * pb.where(richardson > 0, steep, 0.0)
        to_shear = -2 * to_richardson * richardson / shear
        return {
            "rho": across(to_richardson * GRAVITY / RHO0 / shear),
            "u": across(to_shear * du),
            "v": across(to_shear * du),
        }

    return richardson_viscosity


@BOOK.right(
    lambda rng: (
        (t(np.array([1022.0, 1022.01, 1022.02, 1022.1, 1022.9, 1024]) + rng.uniform(0, 0.01, 6)),),
        {"depth": np.array([0.0, 10, 20, 30, 50, 80]), "reference": 1},
    )
)
def mixed_layer_depth():
    @pb.autograd_function
    def mixed_layer_depth(ctx, density, depth, reference=0, threshold=0.03):
        """Depth at which the density first exceeds that of the reference level by a threshold."""
        rho = density.numpy()
        if rho.shape != np.shape(depth) or rho.ndim != 1:
            raise ValueError("one density for each depth")
        if threshold <= 0 or (np.diff(depth) <= 0).any():
            raise ValueError("depths must increase, and the threshold be positive")
        denser = np.flatnonzero(rho[reference:] > rho[reference] + threshold)
        if len(denser) == 0:
            raise ValueError("mixed to the last depth")
        below = denser[0] + range(len(rho))[reference]
        step = rho[below] - rho[below - 1]
        part = (rho[reference] + threshold - rho[below - 1]) / step
        ctx.at = below, reference, len(rho)
        ctx.part, ctx.slope = part, (depth[below] - depth[below - 1]) / step
        return pb.asarray(np.array(depth[below - 1] + part * step * ctx.slope))

    @mixed_layer_depth.backward
    @pb.once_differentiable
    def _(ctx, g):
        below, reference, n = ctx.at
        grad, flow = np.zeros(n), g.item() * ctx.slope
        grad[reference] += flow
        grad[below - 1] -= flow * (1 - ctx.part)
        grad[below] -= flow * ctx.part
        return {"density": pb.asarray(grad)}

    return mixed_layer_depth


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 0.3, (5, 6, 2))), t(rng.uniform(1.5, 2.5, (3, 2)))),
        {"steps": 3, "dt": 0.8},
    )
)
def drift():
    class Cell:
        """Where particles are in a grid of nodes at whole numbers, as (y, x)."""

        def __init__(self, position, shape):
            if (position < 0).any() or (position > np.array(shape) - 1).any():
                raise ValueError("a particle leaves the grid")
            self.corner = np.minimum(position.astype(int), np.array(shape) - 2)
            self.part = position - self.corner

        def nodes(self):
            for di in (0, 1):
                for dj in (0, 1):
                    wi, wj = (p if d else 1 - p for d, p in zip((di, dj), self.part.T, strict=True))
                    slope = np.stack([(2 * di - 1) * wj, wi * (2 * dj - 1)], axis=1)
                    yield (self.corner[:, 0] + di, self.corner[:, 1] + dj), wi * wj, slope

        def value(self, field):
            return sum(w[:, None] * field[node] for node, w, _ in self.nodes())

        def back(self, field, flow, grad_field):
            """Add to the field's gradient, and return the position's."""
            for node, w, _ in self.nodes():
                np.add.at(grad_field, node, w[:, None] * flow)
            return sum(slope * (field[n] * flow).sum(1)[:, None] for n, _, slope in self.nodes())

    @pb.autograd_function
    def drift(ctx, velocity, start, steps=10, dt=1.0):
        """Where particles drift in a steady current; midpoint rule. velocity: (ny, nx, 2)."""
        field, position, cells = velocity.numpy(), start.numpy(), []
        if field.ndim != 3 or min(field.shape) < 2 or not field.shape[2] == position.shape[1] == 2:
            raise ValueError("two components, and two nodes or more along both axes")
        for _ in range(steps):
            first = Cell(position, field.shape[:2])
            middle = Cell(position + dt / 2 * first.value(field), field.shape[:2])
            position = position + dt * middle.value(field)
            cells.append((first, middle))
        ctx.save_for_backward(velocity=velocity, cells=cells)
        ctx.dt = dt
        return pb.asarray(position.copy())

    @drift.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        field, adjoint = ctx.saved_variables.velocity.numpy(), grad_output.numpy()
        grad_field = np.zeros_like(field)
        for first, middle in reversed(ctx.saved_variables.cells):
            to_middle = middle.back(field, ctx.dt * adjoint, grad_field)
            to_first = first.back(field, ctx.dt / 2 * to_middle, grad_field)
            adjoint = adjoint + to_middle + to_first
        return {"velocity": pb.asarray(grad_field), "start": pb.asarray(adjoint)}

    return drift


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 6, 7)), t(-rng.uniform(0.1, 15, (2, 2)))),
        {"frequency": FREQUENCY},
    )
)
def stokes_drift():
    def forward(ctx, spectrum, z, frequency):
        """Stokes drift at heights z (0 at the surface, negative below) of a sea in deep water."""
        if bool((z > 0).any()):
            raise ValueError("z must not be above the surface")
        if spectrum.shape != frequency.shape or (np.diff(frequency) <= 0).any():
            raise ValueError("a spectral density for each of the increasing frequencies")
        ctx.save_for_backward(spectrum=spectrum, z=z, frequency=frequency)
        decay, surface, _ = parts(z, frequency)
        return decay @ (surface * spectrum)

    def parts(z, frequency):
        f = np.asarray(frequency)
        width = np.zeros_like(f)
        width[1:] += np.diff(f) / 2
        width[:-1] += np.diff(f) / 2
        k2 = 8 * np.pi**2 * f**2 / 9.81
        decay = (z.unsqueeze(-1) * pb.asarray(k2)).exp()
        return decay, pb.asarray(16 * np.pi**3 * f**3 / 9.81 * width), pb.asarray(k2)

    def backward(ctx, g):
        s = ctx.saved_variables
        decay, surface, k2 = parts(s.z, s.frequency)
        seen = decay * g.unsqueeze(-1)
        return {
            "spectrum": seen.reshape(-1, len(surface)).sum(dim=0) * surface,
            "z": g * (decay @ (k2 * surface * s.spectrum)),
        }

    return pb.autograd_function(forward, backward, name="stokes_drift")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0, 3, 6)), t(np.array([0.4, 0.7, 0.2, -0.5, -0.3, 0.6]))),
        {"steps": 4, "dt": 0.6},
    )
)
def advect_ring():
    @pb.autograd_function
    def advect_ring(ctx, tracer, velocity, steps=1, dt=0.5):
        """Upwind transport around a ring of unit cells; velocity[i] is that from i - 1 into i."""
        if tracer.shape != velocity.shape or tracer.ndim != 1:
            raise ValueError("one velocity for each cell")
        if abs(velocity).max().item() * dt > 1:
            raise ValueError("more than a cell a step")
        c, path = tracer.numpy(), []
        ahead = velocity.numpy() > 0
        for _ in range(steps):
            path.append(c)
            flux = velocity.numpy() * np.where(ahead, np.roll(c, 1), c)
            c = c + dt * (flux - np.roll(flux, -1))
        ctx.save_for_backward(velocity=velocity, path=path)
        ctx.ahead, ctx.dt = ahead, dt
        return pb.asarray(c.copy())

    @advect_ring.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        u, path = ctx.saved_variables.velocity.numpy(), ctx.saved_variables.path
        adjoint, by_velocity = grad_output.numpy(), np.zeros_like(u)
        for c in path[::-1]:
            to_flux = ctx.dt * (adjoint - np.roll(adjoint, 1))
            by_velocity += to_flux * np.where(ctx.ahead, np.roll(c, 1), c)
            carried = to_flux * u
            adjoint = adjoint + np.where(ctx.ahead, 0.0, carried)
            adjoint = adjoint + np.roll(np.where(ctx.ahead, carried, 0.0), -1)
        return {"tracer": pb.asarray(adjoint), "velocity": pb.asarray(by_velocity)}

    return advect_ring


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=14)),),
        {
            "time": np.linspace(0, 26, 14),
            "speed": np.array([0.5059, 0.2625]),
            "valid": np.arange(14) != 5,
        },
    )
)
def fit_tides():
    @pb.autograd_function
    def fit_tides(ctx, height, time, speed, valid=None):
        """Least-squares amplitudes and lags (radians) of constituents, and the mean level."""
        if height.shape != np.shape(time):
            raise ValueError("one height for each time")
        valid = np.ones(len(time), dtype=bool) if valid is None else valid
        angle = np.outer(time, speed)
        design = np.hstack([np.cos(angle), np.sin(angle), np.ones((len(time), 1))])
        design = design * valid[:, None]
        if np.linalg.matrix_rank(design) < design.shape[1]:
            raise ValueError("the record is too short for these constituents")
        solver = np.linalg.pinv(design)
        *waves, mean = solver @ height.numpy()
        cosine, sine = np.array(waves).reshape(2, -1)
        amplitude = np.hypot(cosine, sine)
        if (amplitude == 0).any():
            raise ValueError("a constituent of no amplitude has no lag")
        ctx.save_for_backward(solver=solver, cosine=cosine, sine=sine, amplitude=amplitude)
        lag = np.arctan2(sine, cosine)
        return {
            "amplitude": pb.asarray(amplitude.copy()),
            "lag": pb.asarray(lag),
            "mean": pb.asarray(np.array(mean)),
        }

    @fit_tides.backward
    @pb.once_differentiable
    def _(ctx, g_amplitude, g_lag, g_mean):
        s, ga, gl = ctx.saved_variables, g_amplitude.numpy(), g_lag.numpy()
        c, n, a = s.cosine, s.sine, s.amplitude
        to_cosine = ga * c / a - gl * n / a**2
        to_sine = ga * n / a + gl * c / a**2
        return {
            "height": pb.asarray(np.concatenate([to_cosine, to_sine, [g_mean.item()]]) @ s.solver)
        }

    return fit_tides
