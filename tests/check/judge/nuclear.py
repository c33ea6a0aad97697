"""Nuclear engineering: decay, kinetics, criticality, shielding, counting, cross sections."""

from __future__ import annotations

import numpy as np
from scipy import linalg, special

import pullback as pb

from .entries import FACTOR, MISSING, REPEATED, TRANSPOSED, Book, at, mends, t

BOOK = Book("nuclear")


@BOOK.wrong(
    lambda rng: ((t(np.array(5.0)), t(np.array(0.31)), t(np.array(0.08))), {"days": np.arange(9)}),
    "the ratio in front depends on the daughter's constant as well: that term is missing",
    MISSING,
    r"product rule|quotient rule|denominator|prefactor|in front|chain rule",
    mends("- N / (b - a)", "N / (a - b)", "-N / (b - a)", "- s.N / (s.b - s.a)"),
)
def daughter_growth():
    @pb.autograd_function
    def daughter_growth(ctx, parent, parent_rate, daughter_rate, days):
        """Nuclei of a daughter that grows from pure parent (Bateman)."""
        a, b, N0 = parent_rate.item(), daughter_rate.item(), parent.item()
        if a == b:
            raise ValueError("the two decay constants must differ")
        ea, eb = np.exp(-a * days), np.exp(-b * days)
        ctx.save_for_backward(a=a, b=b, N0=N0, ea=ea, eb=eb, days=days)
        return pb.asarray(N0 * a / (b - a) * (ea - eb))

    @daughter_growth.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        a, b, N0, ea, eb, days = ctx.saved_variables
        gn = grad_output.numpy()
        ratio = a / (b - a)
        by_a = N0 * (b / (b - a) ** 2 * (ea - eb) - ratio * days * ea)
        by_b = N0 * ratio * days * eb
        return {
            "parent": gn @ (ea - eb) * ratio,
            "parent_rate": gn @ by_a,
            "daughter_rate": gn @ by_b,
        }

    return daughter_growth


def symmetric_core(rng):
    half = rng.uniform(0.1, 1.0, (4, 4))
    return (t(half + half.T),), {}


@BOOK.wrong(
    symmetric_core,
    "the right eigenvector stands for the left one too, as if the matrix were symmetric",
    r"symmetri",
    r"\bleft\b|adjoint|eigenvector|importance",
    TRANSPOSED,
    mends("F.T", "(w @ v)", "s.F.T", "np.outer(w, v)"),
    where="the fission matrix is not symmetric",
    shows=lambda rng: ((t(rng.uniform(0.1, 1.0, (4, 4))),), {}),
)
def multiplication_factor():
    def forward(ctx, fission_matrix, tol=1e-13, most=2000):
        """Dominant eigenvalue of a fission matrix by power iteration."""
        F = fission_matrix.numpy()
        v = np.full(len(F), 1 / np.sqrt(len(F)))
        k = 1.0
        for _ in range(most):
            new = F @ v
            k = np.linalg.norm(new)
            new /= k
            done = np.abs(new - v).max() < tol
            v = new
            if done:
                break
        else:
            raise ArithmeticError("the power iteration did not converge")
        ctx.source = v
        return pb.asarray(np.asarray(k))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        v = ctx.source
        return {"fission_matrix": pb.asarray(grad_output.item() * np.outer(v, v) / (v @ v))}

    return pb.autograd_function(forward, backward, name="multiplication_factor")


DECAY = np.array([0.0127, 0.115, 1.4])


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(-2e-3, 3e-3, 6)), t(np.array([2.4e-4, 3.1e-3, 1.6e-3]))),
        {"decay": DECAY, "dt": 0.05, "generation": 1e-2},
    ),
    "the adjoint steps are solved with the matrix itself and not with its transpose",
    TRANSPOSED,
    r"\.T\b|adjoint",
    mends("M.T", "M.transpose()", "np.linalg.solve(M.T, adj)", "adj @ np.linalg.inv(M)"),
)
def point_kinetics():
    def step_matrix(rho, beta, decay, dt, generation):
        A = np.diag(np.append(0.0, -decay))
        A[0, 0] = (rho - beta.sum()) / generation
        A[0, 1:] = decay
        A[1:, 0] = beta / generation
        return np.eye(len(A)) - dt * A

    class PointKinetics(pb.Function):
        """Power over time after equilibrium at power 1, by implicit Euler steps."""

        @staticmethod
        def forward(ctx, reactivity, fractions, decay, dt=0.1, generation=1e-4):
            beta = fractions.numpy()
            state = np.append(1.0, beta / (decay * generation))
            ctx.matrices, ctx.states = [], [state]
            for rho in reactivity.numpy():
                M = step_matrix(rho, beta, decay, dt, generation)
                ctx.matrices.append(M)
                ctx.states.append(np.linalg.solve(M, ctx.states[-1]))
            ctx.decay, ctx.rate, ctx.generation = decay, dt / generation, generation
            return pb.asarray(np.array([s[0] for s in ctx.states[1:]]))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            gn = grad_output.numpy()
            grad_rho, grad_beta = np.zeros_like(gn), np.zeros(len(ctx.decay))
            adj = np.zeros(len(ctx.decay) + 1)
            for k in range(len(gn) - 1, -1, -1):
                M, power = ctx.matrices[k], ctx.states[k + 1][0]
                adj[0] += gn[k]
                adj = np.linalg.solve(M, adj)
                grad_rho[k] = adj[0] * power * ctx.rate
                grad_beta += (adj[1:] - adj[0]) * power * ctx.rate
            grad_beta += adj[1:] / (ctx.decay * ctx.generation)
            return pb.asarray(grad_rho), pb.asarray(grad_beta), None, None, None

    return PointKinetics.apply


def counter(rng):
    return t(rng.uniform(1, 200, 5)), t(np.array(2e-3))


@BOOK.wrong(
    lambda rng: (counter(rng), {}),
    "backward takes every detector for one that is not paralysable",
    at("paralysable"),
    r"paralysable.{0,40}(?:ignored|not used|branch|is True)|exponential|\bbranch",
    mends("ctx.paralysable", "np.exp(-n * tau)", "np.exp(-s.n * s.tau)", "(1 - n * tau)"),
    where="paralysable is True",
    shows=lambda rng: (counter(rng), {"paralysable": True}),
)
def dead_time_counts():
    @pb.autograd_function
    def dead_time_counts(ctx, rate, dead_time, paralysable=False):
        """Counts that a detector records in 1 ms at the true rates given."""
        n, tau = rate.numpy(), dead_time.item()
        if tau < 0 or (n < 0).any():
            raise ValueError("rates and the dead time must not be negative")
        ctx.save_for_backward(n=n, tau=tau)
        if paralysable:
            return pb.asarray(n * np.exp(-n * tau))
        return pb.asarray(n / (1 + n * tau))

    @dead_time_counts.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        n, tau = ctx.saved_variables
        live = 1 / (1 + n * tau)
        gn = grad_output.numpy() * live**2
        return {"rate": pb.asarray(gn), "dead_time": -(gn @ n**2)}

    return dead_time_counts


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(1, 4, 4)), t(rng.uniform(0.3, 0.9, 4)), t(rng.uniform(0.5, 3, 4))),
        {"strength": 3.7},
    ),
    "the flux falls with the square of the distance: the factor 2 is missing",
    FACTOR + r"|multipl|divided by|doubl",
    r"inverse square|\bsquared?\b|power rule|exponent",
    mends("-2 * gn", "2 * gn", "-2.0 * gn", "2 / s.r", "2 / r"),
)
def shielded_dose():
    @pb.autograd_function
    def shielded_dose(ctx, distance, attenuation, thickness, strength=1.0, coefficient=0.9):
        """Dose rate of a point source behind a slab, with linear build-up."""
        r, mu, x = distance.numpy(), attenuation.numpy(), thickness.numpy()
        depth = mu * x
        uncollided = strength * np.exp(-depth) / (4 * np.pi * r**2)
        buildup = 1 + coefficient * depth
        ctx.save_for_backward(r=r, mu=mu, x=x, uncollided=uncollided, buildup=buildup)
        ctx.coefficient = coefficient
        return pb.asarray(uncollided * buildup)

    @shielded_dose.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        r, mu, x, uncollided, buildup = ctx.saved_variables
        gn = grad_output.numpy() * uncollided
        by_depth = gn * (ctx.coefficient - buildup)
        return (
            pb.asarray(-gn * buildup / r),
            pb.asarray(by_depth * x),
            pb.asarray(by_depth * mu),
            None,
            None,
        )

    return shielded_dose


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(1, 9, 4)), t(rng.uniform(0.02, 0.4, 4))),
        {"nuclide": np.array([2, 0, 3]), "cooling": np.array([1.0, 4.0, 2.5])},
    ),
    "a nuclide that is listed more than once gets the gradient of its last sample alone",
    REPEATED,
    r"np\.add\.at|accumulat|bincount|several (?:samples|times)|overwrit|last (?:one|sample|entry)",
    where="nuclide holds a number twice",
    shows=lambda rng: (
        (t(rng.uniform(1, 9, 4)), t(rng.uniform(0.02, 0.4, 4))),
        {"nuclide": np.array([2, 0, 2, 3]), "cooling": np.array([1.0, 4.0, 2.5, 0.3])},
    ),
)
def sample_activity():
    @pb.autograd_function
    def sample_activity(ctx, nuclei, decay_constant, nuclide, cooling):
        """Activity of samples; nuclide: what each is made of, cooling: its age."""
        lam = decay_constant.numpy()[nuclide]
        N = nuclei.numpy()[nuclide]
        left = np.exp(-lam * cooling)
        ctx.save_for_backward(lam, N, left)
        ctx.nuclide, ctx.cooling, ctx.count = nuclide, cooling, len(nuclei)
        return pb.asarray(lam * N * left)

    @sample_activity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        lam, N, left = ctx.saved_variables
        gn = grad_output.numpy() * left
        grad_N, grad_lam = np.zeros(ctx.count), np.zeros(ctx.count)
        grad_N[ctx.nuclide] += gn * lam
        grad_lam[ctx.nuclide] += gn * N * (1 - lam * ctx.cooling)
        return {"nuclei": pb.asarray(grad_N), "decay_constant": pb.asarray(grad_lam)}

    return sample_activity


@BOOK.right(
    lambda rng: (
        (t(np.array(6.67)), t(np.array(0.023)), t(np.array(1.5e-3))),
        {"energy": np.array([6.3, 6.6, 6.66, 6.67, 6.69, 7.0]), "peak": 2.4e4},
    )
)
def breit_wigner_capture():
    @pb.autograd_function
    def breit_wigner_capture(ctx, resonance, gamma_width, neutron_width, energy, peak=1e4):
        """Capture cross section in barn near one resonance; widths in eV."""
        E0, gg, gn = resonance.item(), gamma_width.item(), neutron_width.item()
        total = gg + gn
        x = 2 * (energy - E0) / total
        shape = np.sqrt(E0 / energy) / (1 + x**2)
        sigma = peak * gg / total * shape
        ctx.save_for_backward(E0, gg, total, x, sigma)
        return pb.asarray(sigma.copy())

    @breit_wigner_capture.backward
    @pb.once_differentiable
    def _(ctx, g):
        E0, gg, total, x, sigma = ctx.saved_variables
        flow = g.numpy() * sigma
        by_x = -2 * x / (1 + x**2)
        by_total = -(flow @ (1 + x * by_x)) / total
        by_E0 = flow.sum() / (2 * E0) + flow @ by_x * -2 / total
        return by_E0, flow.sum() / gg + by_total, by_total, None, None

    return breit_wigner_capture


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 4.0, 7)), t(np.array(0.6))),
        {"counts": np.array([0, 3, 1, 0, 7, 2, 2]), "live": np.array([1, 1, 1, 1, 0, 1, 1], bool)},
    )
)
def counting_deviance():
    def forward(ctx, signal, background, counts, live=None):
        """Poisson deviance of counts in the live channels; a channel may have none."""
        model = signal.numpy() + background.item()
        used = np.ones(len(model), bool) if live is None else live
        terms = model - counts + special.xlogy(counts, counts / model)
        ctx.slope = np.where(used, 2 * (1 - counts / model), 0.0)
        return pb.asarray(np.asarray(2 * terms[used].sum()))

    @pb.once_differentiable
    def backward(ctx, g):
        by_model = g.item() * ctx.slope
        return {"signal": pb.asarray(by_model), "background": by_model.sum()}

    return pb.autograd_function(forward, backward, name="counting_deviance")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.8, 1.4, 6)), t(rng.uniform(0.05, 0.2, 6)), t(rng.uniform(0, 2, 6))),
        {"width": 1.5},
    )
)
def slab_flux():
    class SlabFlux(pb.Function):
        """One-group diffusion in a slab of equal cells with zero flux beyond both faces."""

        @staticmethod
        def forward(ctx, diffusion, absorption, source, width=1.0):
            D, n = diffusion.numpy(), len(diffusion)
            padded = np.concatenate([D[:1], D, D[-1:]])
            face = 2 * padded[1:] * padded[:-1] / (padded[1:] + padded[:-1]) / width**2
            bands = np.zeros((3, n))
            bands[0, 1:], bands[2, :-1] = -face[1:-1], -face[1:-1]
            bands[1] = absorption.numpy() + face[1:] + face[:-1]
            flux = linalg.solve_banded((1, 1), bands, source.numpy())
            ctx.save_for_backward(D=D, bands=bands, flux=flux)
            ctx.width = width
            return pb.asarray(flux.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            D, bands, flux = ctx.saved_variables
            adjoint = linalg.solve_banded((1, 1), bands, g.numpy())
            drop = np.diff(flux, prepend=0, append=0) * np.diff(adjoint, prepend=0, append=0)
            by_face = -drop / ctx.width**2
            inner = 2 * by_face[1:-1] / (D[1:] + D[:-1]) ** 2
            grad_D = np.zeros_like(D)
            grad_D[:-1] += inner * D[1:] ** 2
            grad_D[1:] += inner * D[:-1] ** 2
            grad_D[0] += by_face[0]
            grad_D[-1] += by_face[-1]
            return pb.asarray(grad_D), pb.asarray(-adjoint * flux), pb.asarray(adjoint), None

    return SlabFlux.apply


@BOOK.right(
    lambda rng: (
        (t(np.array([15.8, 18.3, 0.714, 23.2, 12.0]) * rng.uniform(0.95, 1.05, 5)),),
        {"Z": np.array([26, 92, 8, 7, 47]), "A": np.array([56, 235, 16, 14, 107])},
    )
)
def binding_energy():
    @pb.autograd_function
    def binding_energy(ctx, coefficients, Z, A):
        """Binding energy a nucleon (Weizsaecker) in MeV; Z and A are whole numbers."""
        N = A - Z
        pairing = np.where((Z % 2 == 0) & (N % 2 == 0), 1, np.where((Z % 2) & (N % 2), -1, 0))
        columns = [
            A,
            -(np.cbrt(A) ** 2),
            -Z * (Z - 1) / np.cbrt(A),
            -((A - 2 * Z) ** 2) / A,
            pairing / np.sqrt(A),
        ]
        ctx.design = np.stack(columns, axis=1) / A[:, None]
        return pb.asarray(ctx.design @ coefficients.numpy())

    @binding_energy.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"coefficients": pb.asarray(ctx.design.T @ g.numpy())}

    return binding_energy


@BOOK.right(
    lambda rng: ((t(rng.uniform(0.1, 0.6, 3)), t(rng.uniform(1, 5, 4))), {"flux": 0.7, "time": 2.0})
)
def burnup_chain():
    def rates(lam, flux):
        n = len(lam) + 1
        A = np.zeros((n, n))
        for i, value in enumerate(lam):
            A[i, i] -= value
            A[i + 1, i] += value
        A[0, 0] -= 0.1 * flux
        return A

    @pb.autograd_function
    def burnup_chain(ctx, constants, inventory, flux=0.0, time=1.0):
        """Inventory of a chain of nuclides after a time in a flux, by matrix exponential."""
        A = rates(constants.numpy(), flux) * time
        E = linalg.expm(A)
        ctx.save_for_backward(A=A, E=E, N=inventory.numpy(), time=time)
        return pb.asarray(E @ inventory.numpy())

    @burnup_chain.backward
    @pb.once_differentiable
    def _(ctx, g):
        A, E, N, time = ctx.saved_variables
        gn = g.numpy()
        by_A = linalg.expm_frechet(A.T, np.outer(gn, N), compute_expm=False) * time
        i = np.arange(len(A) - 1)
        by_constants = by_A[i + 1, i] - by_A[i, i]
        return {"constants": pb.asarray(by_constants), "inventory": pb.asarray(E.T @ gn)}

    return burnup_chain


@BOOK.right(lambda rng: ((t(rng.uniform(0.1, 2, 5)), t(rng.uniform(-1, 1, 5))), {}))
def compton_photon():
    @pb.autograd_function
    def compton_photon(ctx, energy, cosine):
        """Energy of a scattered photon in MeV, and what the electron takes."""
        ctx.save_for_backward(energy=energy, cosine=cosine)
        scattered = energy / (1 + energy / 0.51099895 * (1 - cosine))
        return scattered, energy - scattered

    @compton_photon.backward
    def _(ctx, g_photon, g_electron):
        energy, cosine = ctx.saved_variables
        below = 1 + energy / 0.51099895 * (1 - cosine)
        g = g_photon - g_electron
        return {
            "energy": g / below**2 + g_electron,
            "cosine": g * energy**2 / 0.51099895 / below**2,
        }

    return compton_photon


@BOOK.right(
    lambda rng: ((t(np.array(0.988)), t(np.array(2.249))), {"edges": np.linspace(0.1, 8, 12)})
)
def watt_spectrum():
    @pb.autograd_function
    def watt_spectrum(ctx, a, b, edges):
        """Parts of the fission neutrons by energy group (Watt, at the groups' middles)."""
        E = 0.5 * (edges[1:] + edges[:-1])
        root = np.sqrt(b.item() * E)
        weight = np.exp(-E / a.item()) * np.sinh(root) * np.diff(edges)
        p = weight / weight.sum()
        ctx.save_for_backward(p, E / a.item() ** 2, 0.5 * E / root / np.tanh(root))
        return pb.asarray(p)

    @watt_spectrum.backward
    @pb.once_differentiable
    def _(ctx, g):
        p, score_a, score_b = ctx.saved_variables
        centred = p * (g.numpy() - g.numpy() @ p)
        return centred @ score_a, centred @ score_b, None

    return watt_spectrum


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(20, 60, 3)), t(rng.uniform(50, 150, 3)), t(rng.uniform(4, 9, 3))),
        {"k_inf": 1.35},
    )
)
def bare_cylinder():
    J01 = special.jn_zeros(0, 1)[0]

    def forward(ctx, radius, height, migration, k_inf=1.3, reflector=None):
        """Multiplication of bare cylinders; migration: length in cm, reflector: its savings."""
        saved = 0.0 if reflector is None else reflector
        R, H = radius.numpy() + saved, height.numpy() + 2 * saved
        M = migration.numpy()
        B2 = (J01 / R) ** 2 + (np.pi / H) ** 2
        k = k_inf / (1 + M**2 * B2)
        ctx.save_for_backward(R=R, H=H, M=M, B2=B2, slope=-(k**2) / k_inf)
        return pb.asarray(k)

    @pb.once_differentiable
    def backward(ctx, g):
        R, H, M, B2, slope = ctx.saved_variables
        flow = g.numpy() * slope
        return {
            "radius": pb.asarray(flow * M**2 * -2 * J01**2 / R**3),
            "height": pb.asarray(flow * M**2 * -2 * np.pi**2 / H**3),
            "migration": pb.asarray(2 * flow * M * B2),
        }

    return pb.autograd_function(forward, backward, name="bare_cylinder")
