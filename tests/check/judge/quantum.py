"""Quantum mechanics: gates, energies, evolution, channels, reduced states, orbitals, tomography."""

from __future__ import annotations

import numpy as np
from scipy import linalg

import pullback as pb

from .entries import CONJUGATE, MISSING, TRANSPOSED, Book, at, mends, t

BOOK = Book("quantum")


def normal_complex(rng, *shape):
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


@BOOK.wrong(
    lambda rng: ((t(normal_complex(rng, 2, 2)), t(rng.normal(size=8) + 0j)), {"qubit": 1}),
    "the state is not conjugated in the gradient of the gate",
    CONJUGATE,
    r"\bdagger\b|\badjoint\b|\bhermitian\b|\bimaginary\b|complex (?:state|amplitude|number)",
    r"(?:right|correct|exact) .{0,30}\breal\b",
    mends("psi.conj().T", "psi.T.conj()", "np.conj(psi", "np.conjugate(psi", "psi.conj()"),
    where="a state with imaginary parts",
    shows=lambda rng: (
        (t(normal_complex(rng, 2, 2)), t(normal_complex(rng, 8))),
        {"qubit": 1},
    ),
)
def apply_gate():
    def split(state, qubit):
        """Return the state as a matrix, the qubit in front."""
        n = int(state.size).bit_length() - 1
        return np.moveaxis(state.reshape((2,) * n), qubit, 0).reshape(2, -1)

    def join(rows, qubit):
        n = int(rows.size).bit_length() - 1
        return np.moveaxis(rows.reshape((2,) * n), 0, qubit).reshape(-1).copy()

    @pb.autograd_function
    def apply_gate(ctx, gate, state, qubit=0):
        """Apply a gate (2, 2) to one qubit of a register; state: (2**n,) amplitudes."""
        if state.numel() < 2 or state.numel() & (state.numel() - 1):
            raise ValueError("the number of amplitudes must be a power of 2")
        ctx.save_for_backward(gate=gate, state=state)
        ctx.qubit = qubit
        return pb.asarray(join(gate.numpy() @ split(state.numpy(), qubit), qubit))

    @apply_gate.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        U, psi = (saved.numpy() for saved in ctx.saved_tensors)
        gn, psi = (split(x, ctx.qubit) for x in (grad_output.numpy(), psi))
        return {
            "gate": pb.asarray(gn @ psi.T),
            "state": pb.asarray(join(U.conj().T @ gn, ctx.qubit)),
        }

    return apply_gate


@BOOK.wrong(
    lambda rng: ((t(normal_complex(rng, 4)), t(normal_complex(rng, 4, 4))), {}),
    "the energy is divided by the norm, and that the norm depends on the state is left out",
    MISSING,
    r"\bnorm(?:ali[sz]\w+|s)?\b|\bquotient|\b(?:2 ?\* ?)?(?:ctx\.|s\.)?energy ?\* ?(?:psi|state)",
    r"divi\w+ by .{0,30}(?:constant|square|depends)|(?:component|part) along (?:psi|the state)",
    r"orthogonal|\bproject(?:ion|ed)|should vanish|homogen",
    mends(
        "- 2 * s.energy * psi",
        "- 2 * energy * psi",
        "- s.energy * psi",
        "- energy * psi",
        "2 * s.energy * psi",
        "psi * s.energy",
        "s.energy * 2 * psi",
    ),
)
def mean_energy():
    class MeanEnergy(pb.Function):
        """Expectation <psi|H|psi> / <psi|psi> of the hermitian part of H."""

        @staticmethod
        def forward(ctx, state, hamiltonian):
            psi, H = state.numpy(), hamiltonian.numpy()
            H = (H + H.conj().T) / 2
            size = np.vdot(psi, psi).real
            if size == 0:
                raise ValueError("the state is zero")
            energy = np.vdot(psi, H @ psi).real / size
            ctx.save_for_backward(state=state, H=H, size=size, energy=energy)
            return pb.asarray(np.array(energy))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s, psi = ctx.saved_variables, ctx.saved_variables.state.numpy()
            up = g.item() / s.size
            return {
                "state": pb.asarray(2 * up * (s.H @ psi)),
                "hamiltonian": pb.asarray(up * np.outer(psi, psi.conj())),
            }

    return MeanEnergy.apply


RING = -np.eye(4)[[1, 2, 3, 0]] - np.eye(4)[[3, 0, 1, 2]]


@BOOK.wrong(
    lambda rng: (
        (t(RING + np.diag([0.1, 0.5, -0.3, 0.9])), t(normal_complex(rng, 4)), t(rng.uniform(1, 2))),
        {},
    ),
    "for two equal energies the quotient of differences is 0, where it is the derivative",
    r"degenera|(?:equal|same|repeated|coincid\w+|identical|close) (?:energ|eigen|level)",
    r"(?:energ\w+|eigenvalues?|levels?) (?:are|is|that are) (?:\w+ )?(?:equal|the same|repeated)",
    r"\b(?:gap|spacing|difference)s? (?:is|are|of|=|==) ?(?:0|zero)|multiplicit|symmetr\w+ ring",
    mends(
        "np.where(equal, slope",
        "np.where(equal, -1j",
        "np.where(gap == 0, slope",
        "quotient[equal] =",
        "np.sinc(",
        "np.where(equal, mean",
        "np.where(equal, 0.5",
        "np.where(equal, (slope",
    ),
    where="equal energies",
    shows=lambda rng: ((t(RING.copy()), t(normal_complex(rng, 4)), t(rng.uniform(1, 2))), {}),
)
def propagate():
    @pb.autograd_function
    def propagate(ctx, hamiltonian, state, time, hbar=1.0):
        """State after a time under a real symmetric Hamiltonian (n, n)."""
        H = hamiltonian.numpy()
        if np.abs(H - H.T).max() > 1e-9:
            raise ValueError("the Hamiltonian must be symmetric")
        energy, V = np.linalg.eigh(H)
        phase = np.exp(-1j * energy * time.item() / hbar)
        out = V @ (phase * (V.T @ state.numpy()))
        ctx.save_for_backward(state=state, energy=energy, V=V, phase=phase, out=out)
        ctx.t, ctx.hbar = time.item(), hbar
        return pb.asarray(out.copy())

    @propagate.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        V, energy = s.V, s.energy
        gap = energy[:, None] - energy
        equal = np.abs(gap) < 1e-9
        slope = -1j * ctx.t / ctx.hbar * s.phase
        quotient = (s.phase[:, None] - s.phase) / np.where(equal, 1.0, gap)
        quotient = np.where(equal, 0.0, quotient) + np.diag(slope)
        left, right = V.T @ gn, V.T @ s.state.numpy()
        by_H = V @ (left[:, None].conj() * quotient * right).real @ V.T
        moved = -1j / ctx.hbar * (V @ (energy * (V.T @ s.out)))
        return {
            "hamiltonian": pb.asarray((by_H + by_H.T) / 2),
            "state": pb.asarray(V @ (s.phase.conj() * left)),
            "time": pb.asarray(np.array(np.vdot(gn, moved).real)),
        }

    return propagate


@BOOK.wrong(
    lambda rng: ((t(normal_complex(rng, 2, 2)), t(rng.uniform(0.2, 0.7))), {}),
    "the gradient is sent through the channel itself, not through its adjoint: K is not transposed",
    TRANSPOSED,
    r"\badjoint\b|\bdagger\b|Heisenberg|\bdual\b|\bK\^?(?:H\b|\u2020)|wrong (?:side|way)",
    r"\bforward (?:channel|map)|(?:decay|population)s? .{0,30}(?:excit|wrong direction)",
    r"(?:elements?|entr\w+) (?:\[?0, ?0|\[?1, ?1).{0,60}(?:exchang|swap|instead)",
    mends(
        "K.conj().T @ gn @ K",
        "K.T @ gn @ K",
        "K.T.conj() @ gn @ K",
        "np.conj(K).T @ gn",
        "K.conj().T @ (gn",
    ),
)
def damping_channel():
    def operators(gamma):
        stay = np.array([[1, 0], [0, np.sqrt(1 - gamma)]])
        return stay, np.array([[0, np.sqrt(gamma)], [0, 0]])

    def forward(ctx, density, gamma):
        """Amplitude damping of a qubit; density: (2, 2), gamma: chance of a decay."""
        rho, p = density.numpy(), gamma.item()
        if not 0 < p < 1:
            raise ValueError("gamma must lie between 0 and 1")
        ctx.save_for_backward(density=density, gamma=gamma)
        return pb.asarray(sum(K @ rho @ K.conj().T for K in operators(p)))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        rho, p = ctx.saved_variables.density.numpy(), ctx.saved_variables.gamma.item()
        gn = grad_output.numpy()
        by_density = sum(K @ gn @ K.conj().T for K in operators(p))
        slow = -0.5 / np.sqrt(1 - p)
        change = np.array([[rho[1, 1], slow * rho[0, 1]], [slow * rho[1, 0], -rho[1, 1]]])
        return pb.asarray(by_density), pb.asarray(np.array(np.vdot(gn, change).real))

    return pb.autograd_function(forward, backward, name="damping_channel")


@BOOK.wrong(
    lambda rng: ((t(normal_complex(rng, 2, 3)),), {}),
    "when the second part is kept, the gradient of its density is used without being transposed",
    TRANSPOSED,
    CONJUGATE,
    at("keep"),
    r"second (?:part|system|subsystem|factor)|\bkeep ?(?:=|is|==) ?1",
    mends(
        "psi @ both.T",
        "psi @ (gn + gn.conj().T).T",
        "psi @ both.conj()",
        "psi @ np.conj(both",
        "psi @ (gn.T + gn.conj())",
        "psi @ (gn.conj() + gn.T)",
        "psi @ np.transpose(both",
        "(both @ psi.T).T",
    ),
    where="keep=1",
    shows=lambda rng: ((t(normal_complex(rng, 2, 3)),), {"keep": 1}),
)
def reduced_state():
    @pb.autograd_function
    def reduced_state(ctx, amplitudes, keep=0):
        """Density matrix of a part of a pure state; amplitudes: (first part, second part)."""
        if keep not in (0, 1):
            raise ValueError(f"keep must be 0 or 1, got {keep!r}")
        psi = amplitudes.numpy()
        ctx.save_for_backward(amplitudes=amplitudes)
        ctx.keep = keep
        return pb.asarray(psi @ psi.conj().T if keep == 0 else psi.T @ psi.conj())

    @reduced_state.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        psi, gn = ctx.saved_variables.amplitudes.numpy(), grad_output.numpy()
        both = gn + gn.conj().T
        return pb.asarray(both @ psi if ctx.keep == 0 else psi @ both)

    return reduced_state


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=(4, 2))), t(rng.normal(size=(4, 4))), rng.normal(size=(5, 4, 4))),
        {},
    ),
    "the repulsion is quadratic in the density: a factor 2 is missing in that part of the gradient",
    r"factor (?:of )?(?:2|1/2|two)\b|\btwice\b|\bhalf\b|quadratic|mean.?field|self.consist",
    r"repulsion|two.electron|\bcoulomb\b|\bexchange\b|product.rule",
    r"\bfock\b.{0,50}(?:itself|depends|alone|constant|instead|is missing)|\bF\b.{0,20}depends on",
    r"(?:missing|lacks).{0,40}repulsion|one.electron.{0,40}(?:subtract|too much|instead)",
    mends(
        "4 * g.item() * s.fock @ C",
        "4 * g.item() * (s.fock @ C",
        "2 * (2 * s.fock)",
        "(s.core + s.fock + s.repulsion)",
        "(s.core + 2 * s.repulsion",
        "2 * s.fock @",
        "4 * s.fock",
        "2 * s.fock",
        "4 * up * s.fock",
        "s.fock + s.fock",
    ),
)
def hartree_fock_energy():
    @pb.autograd_function
    def hartree_fock_energy(ctx, orbitals, core, factors):
        """Electronic energy of doubly occupied orbitals (basis, occupied).

        core: one-electron integrals, their symmetric part counts;
        factors: (m, basis, basis) of the two-electron integrals (pq|rs) = sum_m L[pq] L[rs].
        """
        C, h = orbitals.numpy(), core.numpy()
        h, L = (h + h.T) / 2, (factors + factors.transpose(0, 2, 1)) / 2
        density = 2 * C @ C.T
        coulomb = np.tensordot(np.tensordot(L, density, 2), L, 1)
        fock = h + coulomb - (L @ density @ L).sum(axis=0) / 2
        ctx.save_for_backward(orbitals=orbitals, core=h, fock=fock, density=density)
        return pb.asarray(np.array(((h + fock) * density).sum() / 2))

    @hartree_fock_energy.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_density = g.item() / 2 * (s.core + s.fock)
        return {
            "orbitals": pb.asarray(4 * by_density @ s.orbitals.numpy()),
            "core": pb.asarray(g.item() * s.density),
        }

    return hartree_fock_energy


def density(rng, n=3):
    root = normal_complex(rng, n, n)
    rho = root @ root.conj().T + np.eye(n)
    return t(rho / np.trace(rho).real)


@BOOK.right(lambda rng: ((density(rng),), {"base": 2.0}))
def von_neumann_entropy():
    @pb.autograd_function
    def von_neumann_entropy(ctx, rho, base=np.e):
        """Entropy of the hermitian part of a density matrix, which must have full rank."""
        p, V = np.linalg.eigh((rho.numpy() + rho.numpy().conj().T) / 2)
        if p.min() <= 1e-12:
            raise ValueError("the density matrix must be positive definite")
        ctx.by_rho = -(V * (np.log(p) + 1)) @ V.conj().T / np.log(base)
        return pb.asarray(np.array(-(p * np.log(p)).sum() / np.log(base)))

    @von_neumann_entropy.backward
    @pb.once_differentiable
    def _(ctx, g):
        return pb.asarray(g.item() * ctx.by_rho)

    return von_neumann_entropy


@BOOK.right(lambda rng: ((t(normal_complex(rng, 4)), t(normal_complex(rng, 4))), {}))
def overlap_fidelity():
    class Fidelity(pb.Function):
        """Squared overlap of two pure states, which need not be normalised."""

        @staticmethod
        def forward(ctx, psi, phi):
            ctx.save_for_backward(psi, phi)
            overlap, m, n = parts(psi, phi)
            if m.item() == 0 or n.item() == 0:
                raise ValueError("a state is zero")
            return square(overlap) / (m * n)

        @staticmethod
        def backward(ctx, g):
            psi, phi = ctx.saved_tensors
            overlap, m, n = parts(psi, phi)
            value = square(overlap) / (m * n)
            return {
                "psi": 2 * g * (overlap.conj() * phi / (m * n) - value * psi / m),
                "phi": 2 * g * (overlap * psi / (m * n) - value * phi / n),
            }

    def square(z):
        return (z.conj() * z).real

    def parts(psi, phi):
        return (psi.conj() * phi).sum(), square(psi).sum(), square(phi).sum()

    return Fidelity.apply


@BOOK.right(lambda rng: ((t(rng.uniform(-2, 2, 5)), "xzyxy"), {"shots_variance": True}))
def rotation_circuit():
    PAULI = {
        "x": np.array([[0, 1], [1, 0]]),
        "y": np.array([[0, -1j], [1j, 0]]),
        "z": np.diag([1, -1]),
    }

    def measured(angles, axes):
        psi = np.array([1.0, 0.0], dtype=complex)
        for angle, axis in zip(angles, axes, strict=True):
            psi = np.cos(angle / 2) * psi - 1j * np.sin(angle / 2) * (PAULI[axis] @ psi)
        return abs(psi[0]) ** 2 - abs(psi[1]) ** 2

    @pb.autograd_function
    def rotation_circuit(ctx, angles, axes, shots_variance=False):
        """Mean of Z after rotations of a qubit about x, y or z; and the variance of one shot."""
        if set(axes) - set(PAULI) or len(axes) != len(angles):
            raise ValueError("each angle needs an axis x, y or z")
        ctx.save_for_backward(angles=angles)
        ctx.axes, ctx.mean = axes, measured(angles.numpy(), axes)
        mean = pb.asarray(np.array(ctx.mean))
        return (mean, 1 - mean * mean) if shots_variance else (mean, None)

    @rotation_circuit.backward
    @pb.once_differentiable
    def _(ctx, grads):
        # the parameter-shift rule
        up = grads[0].item() - (0 if grads[1] is None else 2 * ctx.mean * grads[1].item())
        angles = ctx.saved_variables.angles.numpy()
        shifts = np.pi / 2 * np.eye(len(angles))
        slopes = [measured(angles + s, ctx.axes) - measured(angles - s, ctx.axes) for s in shifts]
        return {"angles": pb.asarray(up * np.array(slopes) / 2)}

    return rotation_circuit


def overlaps(rng):
    return np.eye(4) + 0.1 * (RING != 0) + rng.uniform(0, 0.02, (4, 4))


@BOOK.right(
    lambda rng: (
        (t(RING + np.diag(rng.uniform(-1, 1, 4))), t(overlaps(rng))),
        {"electrons": 5},
    )
)
def orbital_energy():
    def forward(ctx, fock: pb.Tensor, overlap: pb.Tensor, electrons: int = 2) -> pb.Tensor:
        """Energy of electrons in the lowest orbitals, F c = e S c; an odd one stands alone."""
        F, S = ((x + x.T) / 2 for x in (fock.numpy(), overlap.numpy()))
        occupation = np.clip(electrons - 2 * np.arange(len(F)), 0, 2)
        if occupation.sum() != electrons:
            raise ValueError("there are more electrons than places")
        if np.linalg.eigvalsh(S)[0] <= 0:
            raise ValueError("the overlap must be positive definite")
        energy, C = linalg.eigh(F, S)
        if (np.diff(energy)[np.diff(occupation) != 0] < 1e-6).any():
            raise ValueError("the highest occupied level is degenerate")
        ctx.density, ctx.weighted = (C * occupation) @ C.T, (C * (occupation * energy)) @ C.T
        return pb.asarray(np.array(occupation @ energy))

    @pb.once_differentiable
    def backward(ctx, g):
        return {
            "fock": pb.asarray(g.item() * ctx.density),
            "overlap": pb.asarray(-g.item() * ctx.weighted),
        }

    return pb.autograd_function(forward, backward, name="orbital_energy")


PLUS = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
KETS = np.concatenate([np.eye(2), PLUS, PLUS * np.array([1, 1j])])


@BOOK.right(
    lambda rng: (
        (t(normal_complex(rng, 2, 2)), KETS, np.array([40, 13, 22, 30, 17, 35])),
        {"dark": 0.02},
    )
)
def tomography_nll():
    @pb.autograd_function
    def tomography_nll(ctx, factor, kets, counts, dark=0.0):
        """Loss of counted outcomes for the density T T^H / trace, T the lower triangle of factor.

        kets: (outcomes, n); dark: background added to each probability.
        """
        T = np.tril(factor.numpy())
        trace = (abs(T) ** 2).sum()
        if trace == 0:
            raise ValueError("the factor is zero")
        seen = kets.conj() @ T
        p = (abs(seen) ** 2).sum(axis=1) / trace
        ctx.save_for_backward(T=T, kets=kets, seen=seen, p=p, trace=trace)
        ctx.by_p = -counts / (p + dark)
        return pb.asarray(np.array(-(counts * np.log(p + dark)).sum()))

    @tomography_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, up = ctx.saved_variables, g.item() * ctx.by_p
        grad = s.kets.T @ (up[:, None] * s.seen) - (up @ s.p) * s.T
        return {"factor": pb.asarray(2 * np.tril(grad) / s.trace)}

    return tomography_nll
