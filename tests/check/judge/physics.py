"""Physics: bodies, springs, waves, heat, lattices, charges in a box, small quantum systems."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import (
    CONJUGATE,
    FACTOR,
    MISSING,
    SECOND,
    SIGN,
    TRANSPOSED,
    Book,
    t,
)

BOOK = Book("physics")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 3))), t(0.5 + rng.random(4))), {"softening": 0.3}),
    "a body's own acceleration counts; the terms from the other bodies of its pairs are missing",
    MISSING,
    r"\bpairs?\b|\bhalf\b|\breaction\b|\bother (?:bod(?:y|ies)|particles?|rows?)\b|third law",
)
def gravity():
    @pb.autograd_function
    def gravity(ctx, positions, masses, softening=0.0):
        """Accelerations of bodies at positions: (n, 3), with masses: (n,)."""
        x, m = positions.numpy(), masses.numpy()
        d = x[None, :, :] - x[:, None, :]
        r2 = (d**2).sum(axis=-1) + softening**2 + np.eye(len(x))
        ctx.save_for_backward(d=d, r2=r2, m=m)
        return pb.asarray(np.einsum("ijk,ij->ik", d, m / r2**1.5))

    @gravity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        along = np.einsum("ijk,ik->ij", s.d, g)
        near = s.m / s.r2**1.5
        np.fill_diagonal(near, 0)
        tidal = near[..., None] * g[:, None, :]
        tidal -= (3 * s.m * along / s.r2**2.5)[..., None] * s.d
        return {
            "positions": pb.asarray(-tidal.sum(axis=1)),
            "masses": pb.asarray((along / s.r2**1.5).sum(axis=0)),
        }

    return gravity


EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=(4, 2))), t(1 + rng.random(5)), t(0.5 + rng.random(5)), EDGES),
        {},
    ),
    "the gradient of the rest lengths has the wrong sign",
    SIGN,
)
def spring_energy():
    @pb.autograd_function
    def spring_energy(ctx, positions, stiffness, rest, edges):
        """Energy of springs between the rows of positions: (n, d) that edges: (m, 2) name."""
        x = positions.numpy()
        d = x[edges[:, 1]] - x[edges[:, 0]]
        length = np.linalg.norm(d, axis=1)
        stretch = length - rest.numpy()
        ctx.save_for_backward(k=stiffness, unit=d / length[:, None], stretch=stretch, edges=edges)
        ctx.n = len(x)
        return pb.asarray(0.5 * (stiffness.numpy() * stretch**2).sum())

    @spring_energy.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.item()
        tension = s.k.numpy() * s.stretch
        grad = np.zeros((ctx.n, s.unit.shape[1]))
        np.add.at(grad, s.edges[:, 1], tension[:, None] * s.unit)
        np.add.at(grad, s.edges[:, 0], -tension[:, None] * s.unit)
        return {
            "positions": pb.asarray(g * grad),
            "stiffness": pb.asarray(0.5 * g * s.stretch**2),
            "rest": pb.asarray(g * tension),
        }

    return spring_energy


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=9)), t(rng.normal(size=9)), t(0.5 + rng.random(9))),
        {"dt": 0.4, "dx": 0.5},
    ),
    "the factor 2 of the derivative of the squared speed is missing",
    FACTOR,
)
def wave_step():
    def curvature(u):
        padded = np.pad(u, 1)
        return padded[2:] - 2 * u + padded[:-2]

    class WaveStep(pb.Function):
        @staticmethod
        def forward(ctx, now, before, speed, dt=0.1, dx=1.0):
            """The next state of a string that is held at both ends; all of shape (n,)."""
            ctx.save_for_backward(now=now, speed=speed)
            ctx.ratio = (dt / dx) ** 2
            push = ctx.ratio * speed.numpy() ** 2 * curvature(now.numpy())
            return pb.asarray(2 * now.numpy() - before.numpy() + push)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, g = ctx.saved_variables, grad_output.numpy()
            c = s.speed.numpy()
            return {
                "now": pb.asarray(2 * g + curvature(ctx.ratio * c**2 * g)),
                "before": -grad_output,
                "speed": pb.asarray(ctx.ratio * c * curvature(s.now.numpy()) * g),
            }

    return WaveStep.apply


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=5)), t(rng.normal(size=5)), t(1 + rng.random(5))),
        {"steps": 9, "dt": 0.2, "hardening": 0.3},
    )
)
def verlet_path():
    def pull(x, k, hardening):
        return -k * x - hardening * x**3, -k - 3 * hardening * x**2

    @pb.autograd_function
    def verlet_path(ctx, x0, v0, stiffness, steps=1, dt=0.1, hardening=0.0):
        """Oscillators that stiffen; places at all steps: (steps + 1, n), and the last velocity."""
        k, v = stiffness.numpy(), v0.numpy().copy()
        path = np.empty((steps + 1, *v.shape), v.dtype)
        path[0] = x0.numpy()
        for i in range(steps):
            v += dt / 2 * pull(path[i], k, hardening)[0]
            path[i + 1] = path[i] + dt * v
            v += dt / 2 * pull(path[i + 1], k, hardening)[0]
        ctx.save_for_backward(k=k.copy(), path=path.copy(), dt=dt, hardening=hardening)
        return pb.asarray(path), pb.asarray(v)

    @verlet_path.backward
    @pb.once_differentiable
    def _(ctx, g_path, g_velocity):
        s, g = ctx.saved_variables, g_path.numpy()
        gx, gv, gk = g[-1].copy(), g_velocity.numpy().copy(), np.zeros_like(s.k)
        for i in range(len(g) - 2, -1, -1):
            gx += s.dt / 2 * pull(s.path[i + 1], s.k, s.hardening)[1] * gv
            gk -= s.dt / 2 * s.path[i + 1] * gv
            gv += s.dt * gx
            gx += s.dt / 2 * pull(s.path[i], s.k, s.hardening)[1] * gv + g[i]
            gk -= s.dt / 2 * s.path[i] * gv
        return {"x0": pb.asarray(gx), "v0": pb.asarray(gv), "stiffness": pb.asarray(gk)}

    return verlet_path


@BOOK.wrong(
    lambda rng: (
        (t(3.0 * rng.random((5, 3))), t(rng.normal(size=5))),
        {"box": 3.0, "alpha": 1.0, "k_max": 2},
    ),
    "the positions' gradient takes the structure factor itself where its conjugate belongs",
    CONJUGATE,
    r"\bimaginary\b|\bphases?\b",
)
def reciprocal_energy():
    @pb.autograd_function
    def reciprocal_energy(ctx, positions, charges, box=1.0, alpha=1.0, k_max=3):
        """Ewald's sum over waves for charges: (n,) in a periodic cube of side `box`."""
        side = np.arange(-k_max, k_max + 1)
        waves = np.stack(np.meshgrid(side, side, side), axis=-1).reshape(-1, 3)
        k = 2 * np.pi / box * waves[np.abs(waves).sum(axis=1) > 0]
        k2 = (k**2).sum(axis=1)
        phase = np.exp(1j * positions.numpy() @ k.T)
        structure = charges.numpy() @ phase
        weight = 2 * np.pi / box**3 * np.exp(-k2 / (4 * alpha**2)) / k2
        ctx.save_for_backward(charges=charges)
        ctx.parts = k, phase, structure, weight
        return pb.asarray((weight * np.abs(structure) ** 2).sum())

    @reciprocal_energy.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        k, phase, structure, weight = ctx.parts
        g, q = grad_output.item(), ctx.saved_variables.charges.numpy()
        potential = 2 * (phase * (weight * structure.conj())).real.sum(axis=1)
        force = 2 * (1j * phase * (weight * structure)).real @ k
        return {
            "positions": pb.asarray(g * q[:, None] * force),
            "charges": pb.asarray(g * potential),
        }

    return reciprocal_energy


def grid_2d(rng):
    x = 1.1 * np.stack(np.meshgrid(np.arange(3), np.arange(3)), axis=-1).reshape(-1, 2)
    return (t(x + 0.05 * rng.uniform(-1, 1, size=(9, 2))), t(3.3)), {"cutoff": 1.35}


@BOOK.right(grid_2d)
def lennard_jones_periodic():
    def near_pairs(x, box, cutoff):
        i, j = np.triu_indices(len(x), 1)
        images = np.round((x[i] - x[j]) / box)
        d = x[i] - x[j] - box * images
        near = (d**2).sum(axis=1) < cutoff**2
        return i[near], j[near], images[near], d[near]

    @pb.autograd_function
    def lennard_jones_periodic(ctx, positions, box, cutoff):
        """Energy of positions: (n, d) in a periodic cube; the nearest image counts, to the cutoff.

        The cutoff is less than half the box. The energy is shifted to be 0 there.
        """
        i, j, images, d = near_pairs(positions.numpy(), box.item(), cutoff)
        r6 = (d**2).sum(axis=1) ** -3
        ctx.save_for_backward(shape=positions.shape, pairs=(i, j), images=images, d=d, r6=r6)
        energy = 4 * (r6**2 - r6 - (cutoff**-12 - cutoff**-6)).sum()
        return pb.asarray(np.asarray(energy, positions.numpy().dtype))

    @lennard_jones_periodic.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.item()
        r2 = (s.d**2).sum(axis=1)
        slope = (24 * g * (s.r6 - 2 * s.r6**2) / r2)[:, None] * s.d
        grad = np.zeros(s.shape, s.d.dtype)
        np.add.at(grad, s.pairs[0], slope)
        np.subtract.at(grad, s.pairs[1], slope)
        return {"positions": pb.asarray(grad), "box": pb.asarray(-(slope * s.images).sum())}

    return lennard_jones_periodic


@BOOK.right(lambda rng: ((t(rng.normal(size=(4, 5))), t(-0.7), t(0.4)), {}))
def lattice_action():
    def force(field, mass, coupling):
        around = sum(field.roll(k, dim) for k in (1, -1) for dim in (0, 1))
        return (4 + mass) * field - around + coupling * field**3

    @pb.autograd_function
    def lattice_action(ctx, field: pb.Tensor, mass_squared: pb.Tensor, coupling: pb.Tensor):
        """Euclidean action of a phi^4 field: (n, m) on a periodic lattice; both numbers 0-d."""
        ctx.save_for_backward(field=field, mass=mass_squared, coupling=coupling)
        steps = sum((field.roll(-1, dim) - field) ** 2 for dim in (0, 1))
        local = mass_squared * field**2 / 2 + coupling * field**4 / 4
        return (steps / 2 + local).sum()

    @lattice_action.backward
    def _(ctx, g):
        s = ctx.saved_variables
        return {
            "field": g * force(s.field, s.mass, s.coupling),
            "mass_squared": g * (s.field**2).sum() / 2,
            "coupling": g * (s.field**4).sum() / 4,
        }

    return lattice_action


def hermitian(rng, n=4):
    root = rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))
    return (root + root.conj().T) / 2


def ket(rng, n=4):
    psi = rng.normal(size=n) + 1j * rng.normal(size=n)
    return t(psi / np.linalg.norm(psi))


@BOOK.wrong(
    lambda rng: ((ket(rng), hermitian(rng).real.copy(), t(0.7)), {}),
    "backward conjugates the propagator without transposing it; only symmetric ones allow that",
    TRANSPOSED,
    CONJUGATE,
    r"\bsymmetric|\badjoint\b|\bhermit|\binverse\b|\bcomplex",
    where="the Hamiltonian complex, not symmetric",
    shows=lambda rng: ((ket(rng), hermitian(rng), t(0.7)), {}),
)
def evolve_state():
    @pb.autograd_function
    def evolve_state(ctx, psi, hamiltonian, time):
        """exp(-i H t) psi for psi: (n,) complex and H: (n, n) a Hermitian array."""
        levels, basis = np.linalg.eigh(hamiltonian)
        U = (basis * np.exp(-1j * levels * time.item())) @ basis.conj().T
        later = U @ psi.numpy()
        ctx.save_for_backward(U=U, later=later, H=hamiltonian)
        return pb.asarray(later)

    @evolve_state.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        rate = -1j * (s.H @ s.later)
        return {"psi": pb.asarray(s.U.conj() @ g), "time": pb.asarray(np.vdot(g, rate).real)}

    return evolve_state


@BOOK.right(lambda rng: ((t(3 * hermitian(rng, 5)), t(2.0)), {}))
def free_energy():
    @pb.autograd_function
    def free_energy(ctx, hamiltonian, beta):
        """-log(tr exp(-beta H)) / beta; of the matrix: (n, n) its Hermitian part counts."""
        H = hamiltonian.numpy()
        levels, basis = np.linalg.eigh((H + H.conj().T) / 2)
        weights = np.exp(-beta.item() * (levels - levels[0]))
        value = levels[0] - np.log(weights.sum()) / beta.item()
        ctx.levels, ctx.basis, ctx.p = levels, basis, weights / weights.sum()
        ctx.save_for_backward(beta=beta, value=value)
        return pb.asarray(np.asarray(value, levels.dtype))

    @free_energy.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.item()
        density = (ctx.basis * (g * ctx.p)) @ ctx.basis.conj().T
        by_beta = g * (ctx.p @ ctx.levels - s.value) / s.beta.item()
        return {"hamiltonian": pb.asarray(density), "beta": pb.asarray(by_beta)}

    return free_energy


@BOOK.wrong(
    lambda rng: ((t(0.7 + 1.5 * rng.random(6)), t(2.3), t(1.4)), {}),
    "the depth goes into backward as a plain number, so second derivatives lack its part",
    SECOND,
    where="second derivative",
)
def morse_bond():
    def forward(ctx, distance, depth, width):
        ctx.save_for_backward(distance=distance, depth=depth, width=width)
        return depth * (1 - (-width * (distance - 1)).exp()) ** 2

    def backward(ctx, grad_output):
        s = ctx.saved_variables
        e = (-s.width * (s.distance - 1)).exp()
        push = grad_output * (2 * s.depth.item()) * (1 - e) * e
        return {
            "distance": push * s.width,
            "depth": (grad_output * (1 - e) ** 2).sum(),
            "width": (push * (s.distance - 1)).sum(),
        }

    return pb.autograd_function(forward, backward, name="morse_bond")


@BOOK.right(
    lambda rng: (
        (t(rng.random((5, 6))), t(0.5 + rng.random((4, 6))), t(0.5 + rng.random((5, 5)))),
        {"held": np.arange(30).reshape(5, 6) % 11 == 0, "steps": 4, "dt": 0.1},
    )
)
def heat_plate():
    def flow(u, down, right):
        out = np.zeros_like(u)
        for k, across in ((0, down), (1, right)):
            flux = across * np.diff(u, axis=k)
            out[(slice(None),) * k + (slice(None, -1),)] += flux
            out[(slice(None),) * k + (slice(1, None),)] -= flux
        return out

    @pb.autograd_function
    def heat_plate(ctx, u, down, right, *, held=None, steps=1, dt=0.1):
        """Temperatures: (n, m) after some steps; no heat leaves, and the cells `held` stay.

        down: (n - 1, m) and right: (n, m - 1) are the conductivities between neighbours.
        """
        free = np.ones(u.shape) if held is None else 1.0 - held
        free = free.astype(u.numpy().dtype)
        path = [u.numpy().copy()]
        for _ in range(steps):
            path.append(path[-1] + dt * free * flow(path[-1], down.numpy(), right.numpy()))
        ctx.save_for_backward(down=down, right=right, path=path[:-1], free=free, dt=dt)
        return pb.asarray(path[-1])

    @heat_plate.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        grads = [np.zeros_like(s.down.numpy()), np.zeros_like(s.right.numpy())]
        for u in s.path[::-1]:
            moved = s.dt * s.free * g
            for k in (0, 1):
                grads[k] -= np.diff(u, axis=k) * np.diff(moved, axis=k)
            g = g + flow(moved, s.down.numpy(), s.right.numpy())
        return dict(zip(("u", "down", "right"), map(pb.asarray, (g, *grads)), strict=True))

    return heat_plate
