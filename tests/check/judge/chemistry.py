"""Chemistry: force fields, angles and torsions, kinetics, equilibria, spectra, charges."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import (
    FACTOR,
    MISSING,
    SIGN,
    Book,
    at,
    t,
)

BOOK = Book("chemistry")

PAIRS = np.array([[0, 1], [0, 2], [1, 3], [2, 4], [3, 5], [4, 5], [0, 5]])
CORNERS = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)], float)


def atoms(rng, n=6, distance=1.2):
    return t(distance * CORNERS[:n] + 0.1 * rng.normal(size=(n, 3)))


@BOOK.wrong(
    lambda rng: ((atoms(rng), PAIRS, t(0.8), t(1.1)), {}),
    "the force acts on the first atom of each pair only; the reaction on the second is missing",
    MISSING,
    r"\breaction\b|second (atom|of each pair|index)|other atom|pairs?\[:, 1\]",
    r"\bsymmetric|both atoms|Newton",
)
def lennard_jones():
    @pb.autograd_function
    def lennard_jones(ctx, positions, pairs, epsilon, sigma):
        """Sum of 4 epsilon (s^12 - s^6) over pairs, s = sigma / r."""
        x = positions.numpy()
        d = x[pairs[:, 0]] - x[pairs[:, 1]]
        r2 = (d * d).sum(axis=1)
        s6 = (sigma.item() ** 2 / r2) ** 3
        ctx.save_for_backward(
            positions=positions, epsilon=epsilon, sigma=sigma, d=d, r2=r2, s6=s6, pairs=pairs
        )
        return pb.asarray(np.asarray(4 * epsilon.item() * (s6 * s6 - s6).sum()))

    @lennard_jones.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.item()
        eps = s.epsilon.item()
        slope = 4 * eps * (6 * s.s6 - 12 * s.s6**2)
        by_x = np.zeros(s.positions.shape)
        np.add.at(by_x, s.pairs[:, 0], gn * (slope / s.r2)[:, None] * s.d)
        return {
            "positions": pb.asarray(by_x),
            "epsilon": gn * 4 * (s.s6**2 - s.s6).sum(),
            "sigma": -gn * slope.sum() / s.sigma.item(),
        }

    return lennard_jones


TRIPLES = np.array([[0, 1, 3], [1, 3, 2], [4, 5, 1], [0, 4, 5]])


@BOOK.wrong(
    lambda rng: ((atoms(rng), TRIPLES, t(1 + rng.random(4)), t(np.full(4, 1.9))), {}),
    "the central atom gets the sum of the outer atoms' gradients, which has the opposite sign",
    SIGN,
)
def angle_bending():
    @pb.autograd_function
    def angle_bending(ctx, positions, triples, stiffness, rest):
        """Sum of k/2 (theta - rest)^2; the second of each triple is the centre."""
        x = positions.numpy()
        a, c = x[triples[:, 0]] - x[triples[:, 1]], x[triples[:, 2]] - x[triples[:, 1]]
        la, lc = (np.linalg.norm(v, axis=1, keepdims=True) for v in (a, c))
        ua, uc = a / la, c / lc
        cos = (ua * uc).sum(axis=1, keepdims=True)
        theta = np.arccos(cos[:, 0])
        off = theta - rest.numpy()
        sin = np.sqrt(1 - cos * cos)
        ctx.by_a, ctx.by_c = -(uc - cos * ua) / (la * sin), -(ua - cos * uc) / (lc * sin)
        ctx.off, ctx.triples, ctx.n = off, triples, len(x)
        ctx.save_for_backward(stiffness=stiffness)
        return pb.asarray(np.asarray(0.5 * (stiffness.numpy() * off**2).sum()))

    @angle_bending.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn, tension = g.item(), ctx.saved_variables.stiffness.numpy() * ctx.off
        ga, gc = (gn * tension[:, None] * by for by in (ctx.by_a, ctx.by_c))
        grad = np.zeros((ctx.n, 3))
        for column, part in enumerate((ga, ga + gc, gc)):
            np.add.at(grad, ctx.triples[:, column], part)
        return {
            "positions": pb.asarray(grad),
            "stiffness": pb.asarray(0.5 * gn * ctx.off**2),
            "rest": pb.asarray(-gn * tension),
        }

    return angle_bending


@BOOK.wrong(
    lambda rng: ((t(1 + rng.random(3)), t(0.2 + rng.random((5, 3)))), {}),
    "competition is left out: each coverage is differentiated by its own species only",
    MISSING,
    r"\bdiagonal\b|other species|cross.?(term|effect)|denominator|competit|normalis",
    r"mixes?\b|couples?\b|coupling",
)
def gas_coverages():
    @pb.autograd_function
    def gas_coverages(ctx, affinity, pressure):
        """Langmuir coverages of several gases; affinity: (s,), pressure: (b, s)."""
        load = affinity.numpy() * pressure.numpy()
        total = 1 + load.sum(axis=1, keepdims=True)
        ctx.save_for_backward(affinity=affinity, pressure=pressure, total=total)
        return pb.asarray(load / total)

    @gas_coverages.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        K, p = s.affinity.numpy(), s.pressure.numpy()
        coverage = K * p / s.total
        by_load = g.numpy() * (1 - coverage) / s.total
        return {
            "affinity": pb.asarray((by_load * p).sum(axis=0)),
            "pressure": pb.asarray(by_load * K),
        }

    return gas_coverages


def dihedrals(**settings):
    return lambda rng: ((t(rng.uniform(-3, 3, 6)), t(1 + rng.random(6))), settings)


@BOOK.wrong(
    dihedrals(phase=0.4),
    "the angle's gradient lacks the factor periodicity",
    FACTOR,
    at("periodicity"),
    where="periodicity other than 1",
    shows=dihedrals(periodicity=3, phase=0.4),
)
def torsion_energy():
    @pb.autograd_function
    def torsion_energy(ctx, phi, barrier, periodicity: int = 1, phase: float = 0.0):
        """V/2 (1 + cos(n phi - phase)) for each torsion."""
        angle = periodicity * phi.numpy() - phase
        ctx.save_for_backward(barrier=barrier, angle=angle)
        return pb.asarray(0.5 * barrier.numpy() * (1 + np.cos(angle)))

    @torsion_energy.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        return {
            "phi": pb.asarray(-0.5 * gn * s.barrier.numpy() * np.sin(s.angle)),
            "barrier": pb.asarray(0.5 * gn * (1 + np.cos(s.angle))),
        }

    return torsion_energy


def peaks(rng):
    centres = np.sort(rng.uniform(400, 600, 4))
    return t(rng.random(4) + 0.2), t(centres), t(rng.uniform(15, 30, 4))


@BOOK.wrong(
    lambda rng: ((*peaks(rng), np.linspace(380, 620, 25)), {}),
    "the width is given as full width at half maximum; its gradient is that of sigma, "
    "without the factor of the conversion",
    FACTOR,
    r"\bconver",
)
def stick_spectrum():
    to_sigma = 1 / (2 * np.sqrt(2 * np.log(2)))

    @pb.autograd_function
    def stick_spectrum(ctx, strengths, centres, widths, grid):
        """Gaussian bands of area `strengths` and full width `widths` at half maximum."""
        sigma = widths.numpy() * to_sigma
        z = (grid[:, None] - centres.numpy()) / sigma
        shape = np.exp(-0.5 * z * z) / (sigma * np.sqrt(2 * np.pi))
        ctx.save_for_backward(strengths=strengths, z=z, shape=shape, sigma=sigma)
        return pb.asarray(shape @ strengths.numpy())

    @stick_spectrum.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        band = s.shape * s.strengths.numpy() / s.sigma
        return {
            "strengths": pb.asarray(gn @ s.shape),
            "centres": pb.asarray(gn @ (band * s.z)),
            "widths": pb.asarray(gn @ (band * (s.z**2 - 1))),
        }

    return stick_spectrum


def ions(spread):
    def given(rng):
        charges = np.array([1.0, -1, 1, -1, 0.5]) + 0.1 * rng.normal(size=5)
        return (t(spread * rng.random((5, 3))), t(charges)), {"box": 8.0}

    return given


@BOOK.wrong(
    ions(3.5),
    "backward uses displacements that are not wrapped to the nearest image in the periodic box",
    at("box"),
    r"\bwrap|nearest image|minimum.image|\bperiodic|boundar",
    r"\b(?:far|distant) apart|large distance|half the box",
    where="pairs across the boundary",
    shows=ions(8.0),
)
def screened_coulomb():
    def apart(x, box=None):
        i, j = np.triu_indices(len(x), 1)
        d = x[i] - x[j]
        return i, j, d if box is None else d - box * np.round(d / box)

    @pb.autograd_function
    def screened_coulomb(ctx, positions, charges, box: float, kappa: float = 0.5):
        i, j, d = apart(positions.numpy(), box)
        r = np.linalg.norm(d, axis=1)
        q = charges.numpy()
        ctx.save_for_backward(positions=positions, charges=charges, r=r, kappa=kappa)
        return pb.asarray(np.asarray((q[i] * q[j] * np.exp(-kappa * r) / r).sum()))

    @screened_coulomb.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        x, q, gn = s.positions.numpy(), s.charges.numpy(), g.item()
        i, j, d = apart(x)
        value = np.exp(-s.kappa * s.r) / s.r
        pull = -gn * (q[i] * q[j] * value * (s.kappa + 1 / s.r) / s.r)[:, None] * d
        by_x, by_q = np.zeros_like(x), np.zeros_like(q)
        np.add.at(by_x, i, pull)
        np.add.at(by_x, j, -pull)
        np.add.at(by_q, i, gn * q[j] * value)
        np.add.at(by_q, j, gn * q[i] * value)
        return {"positions": pb.asarray(by_x), "charges": pb.asarray(by_q)}

    return screened_coulomb


@BOOK.right(lambda rng: ((atoms(rng), PAIRS, t(1 + rng.random(7)), t(1 + 0.5 * rng.random(7))), {}))
def spring_forces():
    @pb.autograd_function
    def spring_forces(ctx, positions, bonds, stiffness, rest):
        """Forces of harmonic bonds on atoms: (n, 3); a bond is a pair of atoms."""
        x = positions.numpy()
        d = x[bonds[:, 1]] - x[bonds[:, 0]]
        r = np.linalg.norm(d, axis=1)
        tension = stiffness.numpy() * (r - rest.numpy())
        forces = np.zeros_like(x)
        np.add.at(forces, bonds[:, 0], tension[:, None] * d / r[:, None])
        np.add.at(forces, bonds[:, 1], -tension[:, None] * d / r[:, None])
        ctx.save_for_backward(stiffness=stiffness, rest=rest, unit=d / r[:, None], r=r, bonds=bonds)
        return pb.asarray(forces)

    @spring_forces.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        k, rest = s.stiffness.numpy(), s.rest.numpy()
        gf = gn[s.bonds[:, 0]] - gn[s.bonds[:, 1]]
        along = (gf * s.unit).sum(axis=1)
        across = gf - along[:, None] * s.unit
        by_d = k[:, None] * (along[:, None] * s.unit + (1 - rest / s.r)[:, None] * across)
        by_x = np.zeros_like(gn)
        np.add.at(by_x, s.bonds[:, 1], by_d)
        np.subtract.at(by_x, s.bonds[:, 0], by_d)
        return {
            "positions": pb.asarray(by_x),
            "stiffness": pb.asarray(along * (s.r - rest)),
            "rest": pb.asarray(-along * k),
        }

    return spring_forces


CHAIN = np.array([[0.0, 0, 0], [1.5, 0, 0], [2.0, 1.4, 0], [3.4, 1.5, 0.5], [4.0, 2.6, 1.3]])
QUADS = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])


@BOOK.right(lambda rng: ((t(CHAIN + 0.15 * rng.normal(size=(5, 3))), QUADS), {}))
def torsion_angles():
    def dot(a, b):
        return (a * b).sum(axis=1, keepdims=True)

    class TorsionAngles(pb.Function):
        """Dihedral angles in (-pi, pi] of the quadruples of points."""

        @staticmethod
        def forward(ctx, points, quads):
            i, j, k, m = points.numpy()[quads].transpose(1, 0, 2)
            F, G, H = i - j, j - k, m - k
            A, B = np.cross(F, G), np.cross(H, G)
            length = np.sqrt(dot(G, G))
            ctx.save_for_backward(F=F, G=G, H=H, A=A, B=B, length=length)
            ctx.quads, ctx.shape = quads, points.shape
            return pb.asarray(np.arctan2(dot(np.cross(B, A), G) / length, dot(A, B))[:, 0])

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s = ctx.saved_variables
            a, b = s.A / dot(s.A, s.A), s.B / dot(s.B, s.B)
            inner = (dot(s.F, s.G) * a - dot(s.H, s.G) * b) / s.length
            end_a, end_b = s.length * a, s.length * b
            parts = -end_a, end_a + inner, -inner - end_b, end_b
            grad = np.zeros(ctx.shape)
            for column, part in enumerate(parts):
                np.add.at(grad, ctx.quads[:, column], g.numpy()[:, None] * part)
            return {"points": pb.asarray(grad)}

    return TorsionAngles.apply


@BOOK.right(
    lambda rng: (
        (t(0.01 + 0.1 * rng.random(3)), t(np.array([3.2, 4.8, 9.2]))),
        {"strong_base": 0.02},
    )
)
def acid_ph():
    ln10, water = np.log(10.0), 1e-14

    def balance(ph, c, K, base):
        """Return the charge balance and its slope by pH."""
        h = 10.0**-ph
        value = h + base - water / h - (c * K / (K + h)).sum()
        return value, -ln10 * h * (1 + water / h**2 + (c * K / (K + h) ** 2).sum())

    @pb.autograd_function
    def acid_ph(ctx, concentrations, pka, strong_base=0.0):
        """The pH of a mixture of monoprotic acids: (n,)."""
        c, K = concentrations.numpy(), 10.0 ** -pka.numpy()
        low, high = 0.0, 14.0
        for _ in range(50):
            middle = (low + high) / 2
            above = balance(middle, c, K, strong_base)[0] > 0
            low, high = (middle, high) if above else (low, middle)
        ph = (low + high) / 2
        for _ in range(3):
            value, slope = balance(ph, c, K, strong_base)
            ph -= value / slope
        ctx.h, ctx.slope = 10.0**-ph, balance(ph, c, K, strong_base)[1]
        ctx.save_for_backward(concentrations=concentrations, K=K)
        return pb.asarray(np.asarray(ph))

    @acid_ph.backward
    @pb.once_differentiable
    def _(ctx, g):
        c, K = ctx.saved_variables.concentrations.numpy(), ctx.saved_variables.K
        scale = g.item() / ctx.slope
        by_pka = -ln10 * c * K * ctx.h / (K + ctx.h) ** 2
        return {
            "concentrations": pb.asarray(scale * K / (K + ctx.h)),
            "pka": pb.asarray(scale * by_pka),
        }

    return acid_ph


ORDERS = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [2, 0, 0, 1]])
CHANGES = np.array([[-1, -1, 1, 0], [1, 1, -1, 0], [-2, 0, 0, 1]])


@BOOK.right(
    lambda rng: (
        (t(np.append(0.2 + rng.random(3), 0.0)), t(0.5 + rng.random(3)), ORDERS, CHANGES),
        {},
    )
)
def mass_action():
    def powers(c, orders):
        return c ** orders.astype(float)

    @pb.autograd_function
    def mass_action(ctx, conc: pb.Tensor, rate: pb.Tensor, orders, changes):
        """Change of conc: (s,) with time, and the flow of each reaction: (r,).

        orders, changes: (r, s) integers; a species may be absent.
        """
        ctx.save_for_backward(conc=conc, rate=rate)
        ctx.orders, ctx.changes = orders, changes
        flow = rate.numpy() * powers(conc.numpy(), orders).prod(axis=1)
        return pb.asarray(changes.T @ flow), pb.asarray(flow)

    @mass_action.backward
    @pb.once_differentiable
    def _(ctx, g_change, g_flow):
        c, k = (v.numpy() for v in ctx.saved_tensors)
        by_flow = ctx.changes @ g_change.numpy() + g_flow.numpy()
        parts = powers(c, ctx.orders)
        by_c = np.zeros_like(c)
        for i in range(len(c)):
            n = ctx.orders[:, i]
            others = np.delete(parts, i, axis=1).prod(axis=1)
            by_c[i] = (by_flow * k * others * n * c[i] ** np.maximum(n - 1, 0)).sum()
        return {"conc": pb.asarray(by_c), "rate": pb.asarray(by_flow * parts.prod(axis=1))}

    return mass_action


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=5)), t(3 + rng.random(5)), t(0.5)),
        {"sites": CORNERS[:5] * 1.5 + 0.1 * rng.random((5, 3))},
    )
)
def charge_equilibration():
    @pb.autograd_function
    def charge_equilibration(ctx, electronegativity, hardness, total, *, sites):
        """Charges that level the potential at fixed total charge; also that potential."""
        n = len(sites)
        apart = np.linalg.norm(sites[:, None] - sites, axis=-1)
        J = np.zeros((n + 1, n + 1))
        J[:n, :n] = 1 / np.sqrt(1 + apart**2)
        J[np.arange(n), np.arange(n)] = hardness.numpy()
        J[:n, n] = J[n, :n] = 1
        answer = np.linalg.solve(J, np.append(-electronegativity.numpy(), total.item()))
        ctx.save_for_backward(J=J, charges=answer[:n].copy())
        return {"charges": pb.asarray(answer[:n].copy()), "potential": pb.asarray(answer[n])}

    @charge_equilibration.backward
    @pb.once_differentiable
    def _(ctx, g_charges, g_potential):
        s = ctx.saved_variables
        back = np.linalg.solve(s.J, np.append(g_charges.numpy(), g_potential.item()))
        return {
            "electronegativity": pb.asarray(-back[:-1]),
            "hardness": pb.asarray(-back[:-1] * s.charges),
            "total": back[-1],
        }

    return charge_equilibration
