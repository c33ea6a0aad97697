"""Structures: beams, trusses, buckling, sections, laminates, drifts, columns, cables, fatigue."""

from __future__ import annotations

import numpy as np
from scipy import linalg, optimize

import pullback as pb

from .entries import MISSING, REPEATED, TRANSPOSED, Book, mends, spd, t

BOOK = Book("structures")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(1, 3, 4)), t(rng.uniform(0.5, 2, 4))),
        {"lengths": np.array([1.0, 2, 1.5, 1]), "supported": (0, 1, 8)},
    ),
    "a load also turns the ends of its element: those moments are missing from its gradient",
    MISSING,
    r"\bmoments?\b|\brotations?\b|\bturns? (?:the|its|an)\b",
    r"(?:end|nodal) forces? (?:alone|only)|consistent load",
    r"(?:L|length)s? ?(?:\*\*|\^) ?2|\bsquared? (?:of the )?length|\b1 ?/ ?12\b|2 ?/ ?12\b",
    mends(
        "lam[2 * e + 1]",
        "load_shape(L) @ ",
        "@ load_shape(L)",
        "np.dot(load_shape(L)",
        "lam[dofs] @",
        "lam[2 * e : 2 * e + 4] @",
        "lam[2 * e + 3]",
    ),
)
def beam_deflections():
    def element(L):
        return np.array(
            [
                [12, 6 * L, -12, 6 * L],
                [6 * L, 4 * L * L, -6 * L, 2 * L * L],
                [-12, -6 * L, 12, -6 * L],
                [6 * L, 2 * L * L, -6 * L, 4 * L * L],
            ]
        ) / (L**3)

    def load_shape(L):
        return np.array([L / 2, L * L / 12, L / 2, -L * L / 12])

    @pb.autograd_function
    def beam_deflections(ctx, stiffness, load, lengths, supported=(0, 1)):
        """Deflections at the nodes of a beam; stiffness, load, lengths: (elements,).

        supported: unknowns that are held; 2 i is the deflection of node i, 2 i + 1 its rotation.
        """
        n = 2 * len(lengths) + 2
        K, f = np.zeros((n, n)), np.zeros(n)
        for e, L in enumerate(lengths):
            dofs = slice(2 * e, 2 * e + 4)
            K[dofs, dofs] += stiffness.numpy()[e] * element(L)
            f[dofs] += load.numpy()[e] * load_shape(L)
        free = np.setdiff1d(np.arange(n), supported)
        u = np.zeros(n)
        u[free] = np.linalg.solve(K[np.ix_(free, free)], f[free])
        ctx.K, ctx.u, ctx.free, ctx.lengths = K, u, free, lengths
        return pb.asarray(u[::2].copy())

    @beam_deflections.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        seed, lam = np.zeros(len(ctx.u)), np.zeros(len(ctx.u))
        seed[::2] = grad_output.numpy()
        lam[ctx.free] = np.linalg.solve(ctx.K[np.ix_(ctx.free, ctx.free)], seed[ctx.free])
        by_stiffness, by_load = [], []
        for e, L in enumerate(ctx.lengths):
            each = slice(2 * e, 2 * e + 4)
            by_stiffness.append(-lam[each] @ element(L) @ ctx.u[each])
            by_load.append(L / 2 * (lam[2 * e] + lam[2 * e + 2]))
        return {
            "stiffness": pb.asarray(np.array(by_stiffness)),
            "load": pb.asarray(np.array(by_load)),
        }

    return beam_deflections


CORNERS = np.array([[0.0, 0], [1, 0], [1, 1], [2, 1]])


def truss(rng, bars):
    moved = t(0.1 * rng.normal(size=(4, 2)))
    return (moved, t(rng.uniform(1, 2, 3)), CORNERS, np.array(bars)), {"modulus": 2.0}


@BOOK.wrong(
    lambda rng: truss(rng, [[0, 1], [1, 2], [2, 3]]),
    "where several bars start or end at a node, only the last one's force reaches its gradient",
    REPEATED,
    r"(?:two|several|many|more|other|share\w*|common|each|first|last) .{0,25}(?:bar|member|node)",
    r"accumulat|overwr|np\.add\.at|bincount|fancy|buffered|scatter|\bnodes? (?:that|with|where)",
    mends(
        "np.add.at(", "np.subtract.at(", "np.bincount(", "for k, (i, j)", "for (i, j)", "index_add"
    ),
    where="two bars start at one node",
    shows=lambda rng: truss(rng, [[0, 1], [0, 2], [2, 3]]),
)
def truss_energy():
    def stretch(moved, nodes, bars):
        now = (nodes + moved)[bars[:, 1]] - (nodes + moved)[bars[:, 0]]
        before = ((nodes[bars[:, 1]] - nodes[bars[:, 0]]) ** 2).sum(axis=1)
        return now, before, ((now**2).sum(axis=1) - before) / (2 * before)

    def forward(ctx, displacement, areas, nodes, bars, modulus=1.0):
        """Strain energy of a truss, large displacements; displacement, nodes: (n, 2)."""
        _, before, strain = stretch(displacement.numpy(), nodes, bars)
        ctx.save_for_backward(displacement=displacement, areas=areas)
        ctx.nodes, ctx.bars, ctx.modulus = nodes, bars, modulus
        energy = modulus * areas.numpy() * np.sqrt(before) * strain**2 / 2
        return pb.asarray(np.array(energy.sum()))

    @pb.once_differentiable
    def backward(ctx, g):
        moved, areas = (v.numpy() for v in ctx.saved_variables)
        now, before, strain = stretch(moved, ctx.nodes, ctx.bars)
        scale = g.item() * ctx.modulus * np.sqrt(before)
        pull = (scale * areas * strain / before)[:, None] * now
        grad = np.zeros_like(moved)
        grad[ctx.bars[:, 1]] += pull
        grad[ctx.bars[:, 0]] -= pull
        return {"displacement": pb.asarray(grad), "areas": pb.asarray(scale * strain**2 / 2)}

    return pb.autograd_function(forward, backward, name="truss_energy")


def prestressed(rng, *curvatures):
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return (t(spd(rng, 3)), t(turn @ np.diag(curvatures) @ turn.T)), {}


@BOOK.wrong(
    lambda rng: prestressed(rng, 1.0, 0.4, 0.2),
    "the mode is that of the factor of smallest magnitude, which may be a negative one",
    r"negative (?:factor|eigenvalue|load|root|value|mode)|indefinite|(?:reverse|opposite)d? load",
    r"(?:wrong|another|other|different|not the) (?:eigen)?(?:vector|mode|shape|pair|buckling)",
    r"(?:in|by|smallest|least) magnitude|absolute value",
    r"\babs\(|smallest (?:in|factor|positive|eig)",
    r"\btension|positive (?:factor|eigenvalue|definite)",
    r"geometric`? (?:is|has|must|with).{0,30}(?:definite|negative|positive)",
    mends(
        "np.where(factors > 0, factors, np.inf)",
        "np.argmax(inverse)",
        "np.argmax(ctx.inverse)",
        "inverse.argmax()",
        "ctx.inverse[-1]",
        "[:, -1]",
        "vectors[:, -1]",
        "modes[:, -1]",
        "ctx.which",
        "factors == ctx.factor",
        "abs(factors - ",
    ),
    where="a negative factor is the smallest in magnitude",
    shows=lambda rng: prestressed(rng, 1.0, -6.0, 0.2),
)
def buckling_factor():
    def symmetric(matrix):
        return (matrix.numpy() + matrix.numpy().T) / 2

    class BucklingFactor(pb.Function):
        """Smallest positive factor of the loads at which (K - factor G) is singular."""

        @staticmethod
        def forward(ctx, stiffness, geometric):
            inverse, modes = linalg.eigh(symmetric(geometric), symmetric(stiffness))
            if inverse[-1] <= 0:
                raise ValueError("the structure does not buckle under these loads")
            ctx.save_for_backward(geometric=geometric)
            ctx.inverse, ctx.modes = inverse, modes
            return pb.asarray(np.array(1 / inverse[-1]))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            factors = 1 / ctx.inverse
            critical = np.argmin(abs(factors))
            shape, factor = ctx.modes[:, critical], factors[critical]
            work = shape @ symmetric(ctx.saved_variables.geometric) @ shape
            slope = grad_output.item() * np.outer(shape, shape) / work
            return pb.asarray(slope), pb.asarray(-factor * slope)

    return BucklingFactor.apply


def outline(rng, x, y):
    half = np.array([[2.0, -1], [2.2, 0.8], [0.5, 1.5]]) + rng.uniform(-0.1, 0.1, (3, 2))
    return (t(np.vstack([half, -half]) + np.array([x, y])),), {}


@BOOK.wrong(
    lambda rng: outline(rng, 0.0, 0.0),
    "what moving a corner does to the centroid is left out; it counts away from the origin",
    MISSING,
    r"centroid|parallel.axis|steiner|(?:first|static) moment|\borigin\b",
    r"(?:not|off).?cent|centre of|cent(?:re|er)?ed (?:at|on|sec|pol)",
    r"\bS ?(?:\*\*|\^) ?2|\bshift(?:ed|ing)? (?:section|corners|outline|polygon)|translat",
    mends(
        "first / area *",
        "first**2 / area**2",
        "(first / area) ** 2",
        "2 * first / area",
        "2 * first * ",
        "g_inertia * first",
        "by_first",
        "to_first",
        "corners - ",
    ),
    where="a section off the origin",
    shows=lambda rng: outline(rng, 0.5, 3.0),
)
def section_inertia():
    def turned(corners):
        x, y = corners[:, 0], corners[:, 1]
        return x, y, pb.roll(x, -1, axis=0), pb.roll(y, -1, axis=0)

    @pb.autograd_function
    def section_inertia(ctx, corners):
        """Area, and second moment of area about the horizontal axis through the centroid.

        corners: (n, 2), anticlockwise.
        """
        ctx.save_for_backward(corners=corners)
        x, y, x1, y1 = turned(corners)
        cross = x * y1 - x1 * y
        area = cross.sum() / 2
        first = ((y + y1) * cross).sum() / 6
        about_axis = ((y * y + y * y1 + y1 * y1) * cross).sum() / 12
        return area, about_axis - first**2 / area

    @section_inertia.backward
    def _(ctx, g_area, g_inertia):
        x, y, x1, y1 = turned(ctx.saved_variables.corners)
        cross = x * y1 - x1 * y
        to_cross = g_area / 2 + g_inertia * (y * y + y * y1 + y1 * y1) / 12
        to_y = g_inertia * (2 * y + y1) * cross / 12 - to_cross * x1
        to_y1 = g_inertia * (y + 2 * y1) * cross / 12 + to_cross * x
        to_x, to_x1 = to_cross * y1, -to_cross * y
        own, following = pb.stack([to_x, to_y], axis=1), pb.stack([to_x1, to_y1], axis=1)
        return {"corners": own + pb.roll(following, 1, axis=0)}

    return section_inertia


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.uniform(-1.4, 1.4, 4))), {}),
    "strains are turned back by the opposite angle; with engineering shear that is not the "
    "transpose",
    TRANSPOSED,
    r"engineering|\binverse\b|orthogonal|opposite angle|turned? back|rotat\w+ back|-angles?\b",
    r"\bshear\b.{0,50}(?:factor|twice|half|2|doubl)|(?:factor|twice|half|doubl).{0,50}\bshear",
    mends(
        'einsum("pji,pj->pi"',
        'einsum("pij,pi->pj"',
        ".swapaxes(1, 2)",
        ".swapaxes(-1, -2)",
        ".transpose(0, 2, 1)",
        ".mT",
    ),
)
def ply_strains():
    def turning(angle):
        c, s = np.cos(angle), np.sin(angle)
        rows = [
            [c * c, s * s, s * c],
            [s * s, c * c, -s * c],
            [-2 * s * c, 2 * s * c, c * c - s * s],
        ]
        return np.moveaxis(np.array(rows), 2, 0)

    def turning_slope(angle):
        c, s = np.cos(2 * angle), np.sin(2 * angle)
        rows = [[-s, s, c], [s, -s, -c], [-2 * c, 2 * c, -2 * s]]
        return np.moveaxis(np.array(rows), 2, 0)

    @pb.autograd_function
    def ply_strains(ctx, strains, angles):
        """Strains along and across the fibres of each ply; strains: (plies, 3) as xx, yy, 2 xy."""
        ctx.save_for_backward(strains=strains, angles=angles)
        T = turning(angles.numpy())
        return pb.asarray((T @ strains.numpy()[:, :, None])[:, :, 0])

    @ply_strains.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        angles = s.angles.numpy()
        back = turning(-angles) @ gn[:, :, None]
        by_angle = np.einsum("pi,pij,pj->p", gn, turning_slope(angles), s.strains.numpy())
        return pb.asarray(back[:, :, 0]), pb.asarray(by_angle)

    return ply_strains


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(5, 4))),), {"heights": np.array([4.0, 3.2, 3.2, 3.0])}),
    "the roof has no floor above, but its gradient wraps round to the lowest storey",
    r"\broof\b|top (?:floor|storey|story)|\bwrap|\broll|circular|cyclic|periodic|\bboundary\b",
    r"(?:last|final|top) (?:floor|stor\w+|elements?|column|entr\w+|index)|\[(?:\.{3}|:), -1",
    r"(?:ground|lowest|first) (?:floor|stor\w+|column)",
    mends(
        "above[:, -1] = 0",
        "above[..., -1] = 0",
        "np.pad(",
        "pb.cat([flow[:, 1:]",
        "flow[:, :-1] -",
        "flow[:, 1:]",
        "append=0",
        "np.diff(flow",
    ),
)
def storey_drifts():
    def forward(ctx, displacement, heights):
        """Drift ratio of each storey and of the building; displacement: (times, floors)."""
        u = displacement.numpy()
        ctx.heights = heights
        drift = np.diff(u, axis=1, prepend=0.0) / heights
        return pb.asarray(drift), pb.asarray(u[:, -1] / heights.sum())

    @pb.once_differentiable
    def backward(ctx, g_drift, g_building):
        flow = g_drift.numpy() / ctx.heights
        above = np.roll(flow, -1, axis=1)
        grad = flow - above
        grad[:, -1] += g_building.numpy() / ctx.heights.sum()
        return {"displacement": pb.asarray(grad)}

    return pb.autograd_function(forward, backward, name="storey_drifts")


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(30, 60, 4)),
            t(rng.uniform(800, 3000, 4)),
            t(np.array([40.0, 300, 500, 700])),
        ),
        {"strength": 35.5},
    )
)
def column_capacity():
    def slenderness(area, inertia, length, strength, modulus):
        return length / np.pi * np.sqrt(area * strength / (modulus * inertia))

    def buckled(slender, imperfection):
        phi = 0.5 * (1 + imperfection * (slender - 0.2) + slender**2)
        return phi, phi + np.sqrt(phi**2 - slender**2)

    @pb.autograd_function
    def column_capacity(ctx, area, inertia, length, strength=23.5, modulus=21000.0, curve=0.34):
        """Capacity of columns with an imperfection (Perry-Robertson); cm, kN, kN/cm2."""
        if not 0.05 < curve < 1 or min(strength, modulus) <= 0:
            raise ValueError("curve must be that of a table, stiffness and strength positive")
        A, J, L = area.numpy(), inertia.numpy(), length.numpy()
        if min(A.min(), J.min(), L.min()) <= 0:
            raise ValueError("dimensions must be positive")
        ctx.save_for_backward(area=area, inertia=inertia, length=length)
        ctx.settings = strength, modulus, curve
        slender = slenderness(A, J, L, strength, modulus)
        _, q = buckled(np.maximum(slender, 0.2), curve)
        return pb.asarray(A * strength / q)

    @column_capacity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        A, J, L = (x.numpy() for x in ctx.saved_variables)
        strength, modulus, curve = ctx.settings
        slender = slenderness(A, J, L, strength, modulus)
        bent = np.maximum(slender, 0.2)
        phi, q = buckled(bent, curve)
        by_bent = (q * (curve / 2 + bent) - bent) / (q - phi)
        by_log = -grad_output.numpy() * A * strength / q**2 * by_bent * slender * (slender > 0.2)
        return {
            "area": pb.asarray(grad_output.numpy() * strength / q + by_log / (2 * A)),
            "inertia": pb.asarray(-by_log / (2 * J)),
            "length": pb.asarray(by_log / L),
        }

    return column_capacity


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(1, 2)),
            t(rng.uniform(0.1, 0.4)),
            t(rng.uniform(8, 20)),
            t(rng.normal(size=9)),
        ),
        {"dt": 0.1},
    )
)
def newmark_response():
    class NewmarkResponse(pb.Function):
        """Displacement of one mass on a shaken base, by constant average acceleration.

        mass, damping, stiffness: (); ground: (steps,) accelerations.
        """

        @staticmethod
        def forward(ctx, mass, damping, stiffness, ground, dt=0.02):
            m, c, k, shaken = (x.numpy() for x in (mass, damping, stiffness, ground))
            if m <= 0 or c < 0 or k < 0 or dt <= 0:
                raise ValueError("mass and dt must be positive, damping and stiffness not negative")
            path = np.zeros((len(shaken), 3))
            path[0, 2] = -shaken[0]
            for i in range(1, len(shaken)):
                u, v, a = path[i - 1]
                pushed = m * (4 / dt**2 * u + 4 / dt * v + a - shaken[i]) + c * (2 / dt * u + v)
                new = pushed / (k + 2 * c / dt + 4 * m / dt**2)
                step = new - u
                path[i] = new, 2 / dt * step - v, 4 / dt**2 * step - 4 / dt * v - a
            ctx.save_for_backward(mass, damping, stiffness, ground)
            ctx.path, ctx.dt = path, dt
            return pb.asarray(path[:, 0].copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            m, c, k, shaken = (x.numpy() for x in ctx.saved_tensors)
            gn, dt = grad_output.numpy(), ctx.dt
            firm = k + 2 * c / dt + 4 * m / dt**2
            wu = wv = wa = by_m = by_c = by_k = 0.0
            by_ground = np.zeros_like(shaken)
            for i in range(len(gn) - 1, 0, -1):
                u, v, a = ctx.path[i - 1]
                new = ctx.path[i, 0]
                passed = 2 / dt * wv + 4 / dt**2 * wa
                y = (gn[i] + wu + passed) / firm
                by_m += y * (4 / dt**2 * (u - new) + 4 / dt * v + a - shaken[i])
                by_c += y * (2 / dt * (u - new) + v)
                by_k -= y * new
                by_ground[i] = -m * y
                wu = y * (4 * m / dt**2 + 2 * c / dt) - passed
                wv, wa = y * (4 * m / dt + c) - wv - 4 / dt * wa, y * m - wa
            if len(gn):
                by_ground[0] -= wa
            scalars = (pb.asarray(np.array(x)) for x in (by_m, by_c, by_k))
            return (*scalars, pb.asarray(by_ground), None)

    return NewmarkResponse.apply


@BOOK.right(
    lambda rng: ((t(rng.uniform(1, 2)), t(rng.uniform(30, 35)), t(rng.uniform(36, 45))), {})
)
def cable_thrust():
    @pb.autograd_function
    def cable_thrust(ctx, weight, span, length):
        """Horizontal force and sag of a catenary between supports of one height."""
        w, L, S = weight.item(), span.item(), length.item()
        if not 0 < L < S or S > 20 * L or w <= 0:
            raise ValueError("the cable must be longer than the span, up to 20 times")
        z = optimize.brentq(lambda z: np.sinh(z) / z - S / L, 1e-9, 20.0, xtol=1e-15, rtol=1e-14)
        ctx.save_for_backward(weight=weight, span=span, length=length)
        ctx.z = z
        return pb.asarray(np.array(w * L / (2 * z))), pb.asarray(np.array(S * np.tanh(z / 2) / 2))

    @cable_thrust.backward
    @pb.once_differentiable
    def _(ctx, g_force, g_sag):
        w, L, S = (x.item() for x in ctx.saved_variables)
        z, gf, gs = ctx.z, g_force.item(), g_sag.item()
        by_z = -gf * w * L / (2 * z**2) + gs * S / (4 * np.cosh(z / 2) ** 2)
        by_ratio = by_z * z / (np.cosh(z) - np.sinh(z) / z)
        grads = {
            "weight": gf * L / (2 * z),
            "span": gf * w / (2 * z) - by_ratio * S / L**2,
            "length": gs * np.tanh(z / 2) / 2 + by_ratio / L,
        }
        return {name: pb.asarray(np.array(grad)) for name, grad in grads.items()}

    return cable_thrust


@BOOK.right(lambda rng: ((t(spd(rng, 5)),), {"kept": np.array([3, 0])}))
def condensed_stiffness():
    def forward(ctx, stiffness, kept):
        """Stiffness of the unknowns `kept` where nothing acts on the others (Guyan)."""
        K = stiffness.numpy()
        others = np.setdiff1d(np.arange(len(K)), kept)
        if len(others) + len(kept) != len(K):
            raise ValueError("kept must be different indices of unknowns, from 0")
        inner = K[np.ix_(others, others)]
        ctx.order = np.concatenate([kept, others]).astype(int)
        ctx.right = np.vstack([np.eye(len(kept)), -np.linalg.solve(inner, K[np.ix_(others, kept)])])
        ctx.left = np.hstack(
            [np.eye(len(kept)), -np.linalg.solve(inner.T, K[np.ix_(kept, others)].T).T]
        )
        return pb.asarray(K[np.ix_(kept, ctx.order)] @ ctx.right)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        grad = np.zeros((len(ctx.order),) * 2)
        grad[np.ix_(ctx.order, ctx.order)] = ctx.left.T @ grad_output.numpy() @ ctx.right.T
        return {"stiffness": pb.asarray(grad)}

    return pb.autograd_function(forward, backward, name="condensed_stiffness")


@BOOK.right(
    lambda rng: (
        (t(np.array([160.0, 110, 64, 55, 20]) * rng.uniform(0.97, 1.03, 5)), t(12.0)),
        {"cycles": np.array([1e4, 5e4, 4e5, 1e6, 1e7])},
    )
)
def fatigue_damage():
    KNEE, CUT = 5e6, 1e8

    @pb.autograd_function
    def fatigue_damage(ctx, ranges, log_a, cycles, steep=3.0, flat=5.0):
        """Miner's sum; log10 N = log_a - steep log10 S, flatter from 5e6 cycles, none from 1e8."""
        stress = ranges.numpy()
        if (stress <= 0).any() or min(steep, flat) <= 0:
            raise ValueError("stress ranges and exponents must be positive")
        knee = (10 ** log_a.item() / KNEE) ** (1 / steep)
        ctx.power = np.where(stress >= knee, steep, flat)
        each = np.where(stress >= knee * (KNEE / CUT) ** (1 / flat), cycles / KNEE, 0.0)
        each = each * (stress / knee) ** ctx.power
        ctx.save_for_backward(ranges=ranges)
        ctx.each, ctx.steep = each, steep
        return pb.asarray(np.array(each.sum()))

    @fatigue_damage.backward
    @pb.once_differentiable
    def _(ctx, g):
        flow = g.item() * ctx.power * ctx.each
        return {
            "log_a": pb.asarray(np.array(-flow.sum() * np.log(10) / ctx.steep)),
            "ranges": pb.asarray(flow / ctx.saved_variables.ranges.numpy()),
        }

    return fatigue_damage
