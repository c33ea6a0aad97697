"""Finite elements: bars, shape functions, quadrature, beams, contact, stresses, assembly."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, REPEATED, Book, at, mends, t

BOOK = Book("finite_elements")

BARS = np.array([[0, 1], [1, 2], [2, 3], [0, 2], [1, 3]])
JOINTS = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1.2]])


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 2))), t(rng.uniform(1, 3, 5)), JOINTS, BARS), {}),
    "a joint keeps the force of its last bar only: those of bars that share it are not added",
    REPEATED,
    MISSING,
    r"accumulat|np\.add\.at|overwrit|\blast (?:bar|one|write|assign)",
    r"share[ds]? (?:by|a|an|it)",
    r"(?:not|never|to be|are|instead of) (?:added|summed|adding)",
    r"several (?:bars|elements)|bincount",
    mends("np.add.at(", "np.subtract.at(", "np.bincount(", "for (i, j)", "for i, j in", "for e,"),
)
def bar_forces():
    @pb.autograd_function
    def bar_forces(ctx, displacements, stiffness, joints, bars):
        """Axial force in each bar of a truss; stiffness: EA of each, bars: (n, 2) joints."""
        span = joints[bars[:, 1]] - joints[bars[:, 0]]
        lengths = np.linalg.norm(span, axis=1)
        if (lengths == 0).any():
            raise ValueError("a bar has no length")
        u = displacements.numpy()
        ctx.directions = span / lengths[:, None]
        ctx.strain = ((u[bars[:, 1]] - u[bars[:, 0]]) * ctx.directions).sum(axis=1) / lengths
        ctx.save_for_backward(stiffness=stiffness)
        ctx.bars, ctx.lengths, ctx.shape = bars, lengths, u.shape
        return pb.asarray(stiffness.numpy() * ctx.strain)

    @bar_forces.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, EA = grad_output.numpy(), ctx.saved_variables.stiffness.numpy()
        pull = (gn * EA / ctx.lengths)[:, None] * ctx.directions
        grad_u = np.zeros(ctx.shape)
        grad_u[ctx.bars[:, 1]] += pull
        grad_u[ctx.bars[:, 0]] -= pull
        return {"displacements": pb.asarray(grad_u), "stiffness": pb.asarray(gn * ctx.strain)}

    return bar_forces


def quad(rng):
    corners = np.array([[0.0, 0], [2, 0.2], [1.9, 1.5], [-0.1, 1.1]])
    return (t(corners + rng.uniform(-0.1, 0.1, (4, 2))), t(rng.uniform(1, 3, 4))), {}


@BOOK.wrong(
    quad,
    "the weights of the quadrature are left out in the gradient, where they are 1 only for order 2",
    MISSING,
    FACTOR,
    at("order"),
    r"\b(?:quadrature |gauss |integration )?weights? .{0,40}(?:missing|left out|ignored|unused)",
    r"(?:missing|left out|ignor\w+|forgot\w*|without) .{0,20}weights?|\bweights? (?:is|are) 1",
    mends(
        "weight * gn", "gn * weight", "weight * (gn", "* weight\n", "weight * inner", "weight * p"
    ),
    where="order is not 2",
    shows=lambda rng: (quad(rng)[0], {"order": 3}),
)
def pressure_load():
    SIGNS = np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])

    def gauss(order):
        points, weights = np.polynomial.legendre.leggauss(order)
        for xi, a in zip(points, weights, strict=True):
            for eta, b in zip(points, weights, strict=True):
                factors = 1 + SIGNS * [xi, eta]
                shape = factors.prod(axis=1) / 4
                yield shape, SIGNS * factors[:, ::-1] / 4, a * b

    def cofactor(J):
        return np.array([[J[1, 1], -J[1, 0]], [-J[0, 1], J[0, 0]]])

    def forward(ctx, corners, pressure, order=2):
        """Nodal loads of a bilinear quadrilateral; corners: (4, 2), pressure at the corners."""
        x, p, loads = corners.numpy(), pressure.numpy(), np.zeros(4)
        for shape, slopes, weight in gauss(order):
            area = np.linalg.det(slopes.T @ x)
            if area <= 0:
                raise ValueError("the element is turned inside out")
            loads += weight * area * (shape @ p) * shape
        ctx.save_for_backward(corners=corners, pressure=pressure)
        ctx.order = order
        return pb.asarray(loads)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        x, p = (each.numpy() for each in ctx.saved_tensors)
        gn, grad_x, grad_p = grad_output.numpy(), np.zeros((4, 2)), np.zeros(4)
        for shape, slopes, _ in gauss(ctx.order):
            jacobian = slopes.T @ x
            received = gn @ shape
            grad_p += received * np.linalg.det(jacobian) * shape
            grad_x += received * (shape @ p) * slopes @ cofactor(jacobian)
        return pb.asarray(grad_x), pb.asarray(grad_p), None

    return pb.autograd_function(forward, backward, name="pressure_load")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=4)), t(5.0), t(1.4)), {}),
    "the slope in the length takes the whole matrix for one over the cube: that its entries for "
    "rotations have powers of the length is left out",
    MISSING,
    r"\bpowers?\b|\bentries\b|\brotation|12 ?\*? ?L|8 ?\*? ?L",
    r"\b(?:matrix|K|shape|table) (?:itself )?(?:also |too )?(?:depends|changes|contains|holds)",
    r"product rule|depend\w* (?:of|on) .{0,40}\b(?:L|length)\b",
    mends("12 * L", "6, 0,", "8 * L", "2 * 4 * L", "slope_of", "by_L", "dK", "dk"),
)
def beam_end_forces():
    def matrix(L):
        return np.array(
            [
                [12, 6 * L, -12, 6 * L],
                [6 * L, 4 * L**2, -6 * L, 2 * L**2],
                [-12, -6 * L, 12, -6 * L],
                [6 * L, 2 * L**2, -6 * L, 4 * L**2],
            ]
        )

    @pb.autograd_function
    def beam_end_forces(ctx, motion: pb.Tensor, rigidity: pb.Tensor, length: pb.Tensor):
        """Forces and moments at the ends of a beam; motion: (w1, turn1, w2, turn2)."""
        L = length.item()
        if L <= 0:
            raise ValueError("length must be positive")
        ctx.save_for_backward(motion=motion, rigidity=rigidity, length=length)
        return pb.asarray(rigidity.item() / L**3 * matrix(L) @ motion.numpy())

    @beam_end_forces.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        L, EI = s.length.item(), s.rigidity.item()
        K = matrix(L) / L**3
        work = gn @ K @ s.motion.numpy()
        return {
            "motion": pb.asarray(EI * K @ gn),
            "rigidity": pb.asarray(np.array(work)),
            "length": pb.asarray(np.array(-3 * EI * work / L)),
        }

    return beam_end_forces


def touching(rng):
    depth = np.array([-0.02, -0.05, 0.3, -0.01, -0.04])
    return (t(depth), t(rng.uniform(-0.002, 0.002, 5))), {}


@BOOK.wrong(
    touching,
    "where the contact slips its friction follows the normal force, but that part is left out",
    MISSING,
    r"\bslip(?:s|ping)\b|\bsliding\b|coulomb",
    r"(?:where|when|if|at) .{0,30}\bslip\b|\bstick(?:s|ing)?\b|\bsaturat",
    r"friction .{0,40}(?:depends|missing|limit|follows)|(?:normal|mu).{0,30}(?:missing|left out)",
    at("(?:mu|friction)"),
    mends("ctx.mu *", "* ctx.mu", "s.mu *", "mu * np.sign", "mu * sign", "ctx.mu = ", ", ctx.mu"),
    where="a contact that slips",
    shows=lambda rng: (
        (t(np.array([-0.02, -0.05, 0.3, -0.01])), t(np.array([0.1, -0.2, 0.1, 0.001]))),
        {},
    ),
)
def contact_forces():
    @pb.autograd_function
    def contact_forces(ctx, gap, slip, penalty=1e2, tangential=50.0, mu=0.3):
        """Normal and friction forces at nodes that touch (gap < 0); friction at most mu N."""
        depth = np.maximum(-gap.numpy(), 0)
        normal = penalty * depth
        trial = tangential * slip.numpy()
        ctx.touching = depth > 0
        ctx.sticking = ctx.touching & (np.abs(trial) <= mu * normal)
        ctx.penalty, ctx.tangential = penalty, tangential
        limited = np.clip(trial, -mu * normal, mu * normal)
        return pb.asarray(normal), pb.asarray(-limited)

    @contact_forces.backward
    @pb.once_differentiable
    def _(ctx, g_normal, g_friction):
        grad_gap = -ctx.penalty * g_normal.numpy() * ctx.touching
        grad_slip = -ctx.tangential * g_friction.numpy() * ctx.sticking
        return {"gap": pb.asarray(grad_gap), "slip": pb.asarray(grad_slip)}

    return contact_forces


def strained(rng):
    return (t(rng.normal(size=(5, 3)) * 1e-1), t(np.array(0.28))), {"modulus": 10.0}


@BOOK.wrong(
    strained,
    "in plane strain the stress across the plane changes too: its part of the gradient is left out",
    MISSING,
    r"sigma_?z+|\bacross\b|out.of.plane|third stress|\bs_?zz?\b|(?:normal|zz) to the plane",
    at("(?:kind|plane.?strain)"),
    mends("g_across", "by_across", "g_sz", "by_sz", "g_szz", "nu * (2 *", "2 * across", "(2 * sz"),
    where="kind is plane strain",
    shows=lambda rng: (strained(rng)[0], {"modulus": 10.0, "kind": "strain"}),
)
def von_mises():
    def elasticity(E, nu, kind):
        """Return D and its slope in nu; for plane strain in terms of the plane-stress constants."""
        if kind == "stress":
            top, slope = E / (1 - nu**2), 2 * E * nu / (1 - nu**2) ** 2
            D = top * np.array([[1, nu, 0], [nu, 1, 0], [0, 0, (1 - nu) / 2]])
            inner = np.array([[0, 1, 0], [1, 0, 0], [0, 0, -0.5]])
        else:
            below = (1 + nu) * (1 - 2 * nu)
            top, slope = E / below, E * (1 + 4 * nu) / below**2
            D = top * np.array([[1 - nu, nu, 0], [nu, 1 - nu, 0], [0, 0, 0.5 - nu]])
            inner = np.array([[-1, 1, 0], [1, -1, 0], [0, 0, -1]])
        return D, slope / top * D + top * inner

    @pb.autograd_function
    def von_mises(ctx, strain, poisson, modulus=1.0, kind="stress"):
        """Equivalent stress in plane elasticity; strain: (n, 3), with the engineering shear.

        kind: "stress" or "strain", what vanishes across the plane.
        """
        nu = poisson.item()
        D, slope = elasticity(modulus, nu, kind)
        x, y, xy = D @ strain.numpy().T
        across = nu * (x + y) if kind == "strain" else 0 * x
        equivalent = np.sqrt(((x - y) ** 2 + (y - across) ** 2 + (across - x) ** 2) / 2 + 3 * xy**2)
        ctx.save_for_backward(strain=strain, D=D, slope=slope, equivalent=equivalent)
        ctx.stress, ctx.across = (x, y, xy), across
        return pb.asarray(equivalent.copy())

    @von_mises.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, (x, y, xy) = ctx.saved_variables, ctx.stress
        gn = grad_output.numpy() / (2 * s.equivalent)
        g_stress = gn * np.stack([2 * x - y - ctx.across, 2 * y - x - ctx.across, 6 * xy])
        by_nu = (g_stress * (s.slope @ s.strain.numpy().T)).sum()
        return {"strain": pb.asarray(g_stress.T @ s.D), "poisson": pb.asarray(np.array(by_nu))}

    return von_mises


SPRINGS = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [0, 2], [1, 4]])


def frame(rng):
    return (t(rng.uniform(1, 4, 6)), t(rng.normal(size=5)), SPRINGS), {"fixed": np.array([0, 4])}


@BOOK.wrong(
    frame,
    "the displacements saved for the slope in the stiffness are those before the settlement of the "
    "supports is filled in",
    at("settlement"),
    r"(?:before|without|lack\w*|miss\w*|ignor\w+|left out|forgot\w*|omit\w*) .{0,40}settlement",
    r"settlement.{0,40}(?:missing|ignored|left out|forgot|unused|omitted)|prescribed|supports?\b",
    r"fixed (?:nodes?|displacements?|degrees).{0,40}\b(?:zeros?|wrong|missing)",
    mends(
        "settled",
        "u=u + ",
        "u=(u +",
        "u = u + held",
        "u += held",
        "ctx.held",
        "held=held",
        "u=result",
        "ctx.settlement",
        "u = held.copy()",
        "u[fixed] = settlement",
    ),
    where="settlement is not 0",
    shows=lambda rng: (frame(rng)[0], {"fixed": np.array([0, 4]), "settlement": [0.3, -0.2]}),
)
def spring_displacements():
    @pb.autograd_function
    def spring_displacements(ctx, stiffness, loads, springs, fixed, settlement=0.0):
        """Displacements of nodes joined by springs (n, 2), held at the fixed nodes."""
        n, k = len(loads), stiffness.numpy()
        matrix = np.zeros((n, n))
        for value, (i, j) in zip(k, springs, strict=True):
            matrix[[i, j], [i, j]] += value
            matrix[[i, j], [j, i]] -= value
        free = np.setdiff1d(np.arange(n), fixed)
        held = np.zeros(n)
        held[fixed] = settlement
        u = np.zeros(n)
        u[free] = np.linalg.solve(matrix[np.ix_(free, free)], (loads.numpy() - matrix @ held)[free])
        ctx.save_for_backward(u=u, matrix=matrix)
        ctx.springs, ctx.free = springs, free
        return pb.asarray(u + held)

    @spring_displacements.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, free = ctx.saved_variables, ctx.free
        adjoint = np.zeros(len(s.u))
        part = s.matrix[np.ix_(free, free)]
        adjoint[free] = np.linalg.solve(part, grad_output.numpy()[free])
        i, j = ctx.springs.T
        return {
            "stiffness": pb.asarray(-(adjoint[i] - adjoint[j]) * (s.u[i] - s.u[j])),
            "loads": pb.asarray(adjoint),
        }

    return spring_displacements


CORNERS = np.array([[0.0, 0], [1.2, 0.1], [0.3, 0.9]])


@BOOK.right(
    lambda rng: ((t(CORNERS + rng.uniform(-0.1, 0.1, (3, 2))), t(rng.normal(size=(3, 2)))), {})
)
def green_strain():
    def edges(x):
        return (x[1:] - x[0]).T

    @pb.autograd_function
    def green_strain(ctx, corners, displacements):
        """Green-Lagrange strain (2, 2) in a linear triangle."""
        spread = edges(corners.numpy())
        if np.linalg.det(spread) <= 0:
            raise ValueError("the corners must run counterclockwise")
        inverse = np.linalg.inv(spread)
        H = edges(displacements.numpy()) @ inverse
        ctx.save_for_backward(inverse=inverse, H=H)
        return pb.asarray((H + H.T + H.T @ H) / 2)

    @green_strain.backward
    @pb.once_differentiable
    def _(ctx, g):
        inverse, H = ctx.saved_variables
        both = (g.numpy() + g.numpy().T) / 2
        g_H = (both + H @ both) @ inverse.T
        moved = [-H.T @ g_H, g_H]
        grads = [np.vstack([-m.sum(axis=1), m.T]) for m in moved]
        return {"corners": pb.asarray(grads[0]), "displacements": pb.asarray(grads[1])}

    return green_strain


@BOOK.right(lambda rng: ((t(rng.normal(size=7)), t(rng.uniform(0, 3, 9))), {"elements": 3}))
def quadratic_interpolation():
    def shapes(xi):
        return (
            np.stack([xi * (xi - 1) / 2, 1 - xi**2, xi * (xi + 1) / 2], axis=1),
            np.stack([xi - 0.5, -2 * xi, xi + 0.5], axis=1),
        )

    @pb.autograd_function
    def quadratic_interpolation(ctx, nodal, x, elements=1):
        """Values at x of a field on `elements` quadratic elements, each of length 1."""
        if len(nodal) != 2 * elements + 1:
            raise ValueError("there must be 2 elements + 1 nodal values")
        if (x.numpy() < 0).any() or (x.numpy() > elements).any():
            raise ValueError("x is outside the mesh")
        element = np.minimum(x.numpy().astype(int), elements - 1)
        ctx.nodes = 2 * element[:, None] + np.arange(3)
        values, slopes = shapes(2 * (x.numpy() - element) - 1)
        ctx.values, ctx.n = values, len(nodal)
        ctx.slope = 2 * (slopes * nodal.numpy()[ctx.nodes]).sum(axis=1)
        return pb.asarray((values * nodal.numpy()[ctx.nodes]).sum(axis=1))

    @quadratic_interpolation.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        weights = (gn[:, None] * ctx.values).ravel()
        by_node = np.bincount(ctx.nodes.ravel(), weights=weights, minlength=ctx.n)
        return {"nodal": pb.asarray(by_node), "x": pb.asarray(gn * ctx.slope)}

    return quadratic_interpolation


TETS = np.array([[0, 1, 2, 3], [4, 2, 1, 3]])
VERTICES = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])


@BOOK.right(
    lambda rng: (
        (t(VERTICES + rng.uniform(-0.1, 0.1, (5, 3))), t(rng.uniform(1, 2, 2)), TETS),
        {},
    )
)
def lumped_mass():
    def volumes(x, tets):
        a, b, c = (x[tets[:, k]] - x[tets[:, 0]] for k in (1, 2, 3))
        faces = np.cross(b, c), np.cross(c, a), np.cross(a, b)
        return (a * faces[0]).sum(axis=1) / 6, faces

    @pb.autograd_function
    def lumped_mass(ctx, vertices, density, tetrahedra):
        """Mass at each vertex, a quarter of each tetrahedron there; density: by tetrahedron."""
        volume, faces = volumes(vertices.numpy(), tetrahedra)
        if (volume <= 0).any():
            raise ValueError(f"tetrahedron {volume.argmin()} is inverted")
        ctx.save_for_backward(vertices=vertices, density=density, volume=volume, faces=faces)
        ctx.tets = tetrahedra
        share = np.repeat(density.numpy() * volume / 4, 4)
        n = len(vertices)
        return pb.asarray(np.bincount(tetrahedra.ravel(), weights=share, minlength=n))

    @lumped_mass.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        received = grad_output.numpy()[ctx.tets].sum(axis=1) / 4
        scale, grad = (received * s.density.numpy() / 6)[:, None], np.zeros(s.vertices.shape)
        for corner, face in zip((1, 2, 3), s.faces, strict=True):
            np.add.at(grad, ctx.tets[:, corner], scale * face)
            np.add.at(grad, ctx.tets[:, 0], -scale * face)
        return {"vertices": pb.asarray(grad), "density": pb.asarray(received * s.volume)}

    return lumped_mass


@BOOK.right(
    lambda rng: ((t(rng.normal(size=6) * 4), t(rng.uniform(1, 3, 6)), t(rng.uniform(0, 1, 6))), {})
)
def hardening_spring():
    def forward(ctx, load, stiffness, hardening, tolerance=1e-12, start=0.0):
        """Displacement u with stiffness u + hardening u^3 = load, by Newton's method."""
        f, k, c = load.numpy(), stiffness.numpy(), hardening.numpy()
        if (k <= 0).any() or (c < 0).any():
            raise ValueError("the spring must be stable")
        u = np.full_like(f, start)
        for _ in range(200):
            step = (k * u + c * u**3 - f) / (k + 3 * c * u**2)
            u = u - step
            if np.abs(step).max() < tolerance * (1 + np.abs(u).max()):
                break
        ctx.save_for_backward(u=u, tangent=k + 3 * c * u**2)
        return pb.asarray(u.copy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        u, tangent = ctx.saved_variables
        flow = grad_output.numpy() / tangent
        grads = {"load": flow, "stiffness": -flow * u, "hardening": -flow * u**3}
        return {name: pb.asarray(grad) for name, grad in grads.items()}

    return pb.autograd_function(forward, backward, name="hardening_spring")


@BOOK.right(
    lambda rng: ((t(rng.normal(size=(2, 2))), t(rng.normal(size=(2, 2)) + np.diag([2, 0]))), {})
)
def edge_traction():
    MASS = np.array([[2.0, 1], [1, 2]]) / 6

    class EdgeTraction(pb.Function):
        """Nodal forces of a traction that is linear along an edge; ends: (2, 2).

        order: points of the Gauss rule; two are exact, more make no difference.
        """

        @staticmethod
        def forward(ctx, traction, ends, order=2):
            if order < 2:
                raise ValueError("order must be 2 or more")
            span = ends.numpy()[1] - ends.numpy()[0]
            length = np.hypot(*span)
            points, weights = np.polynomial.legendre.leggauss(order)
            shapes = np.stack([1 - points, 1 + points]) / 2
            forces = (shapes * weights) @ (shapes.T @ traction.numpy()) * length / 2
            ctx.save_for_backward(traction=traction, span=span, length=length)
            return pb.asarray(forces)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s = ctx.saved_variables
            received = MASS @ grad_output.numpy()
            along = (received * s.traction.numpy()).sum() * s.span / s.length
            return pb.asarray(received * s.length), pb.asarray(np.stack([-along, along])), None

    return EdgeTraction.apply
