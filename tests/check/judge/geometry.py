"""Geometry: rotations, quaternions, distances, areas, rigid motions, rays and planes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import pullback as pb

from .entries import (
    CHANGED,
    FACTOR,
    MAGNITUDE,
    MISSING,
    NONE,
    SECOND,
    SIGN,
    SUMMED,
    SWAPPED,
    TRANSPOSED,
    ZERO,
    Book,
    at,
    t,
)

BOOK = Book("geometry")


def hat(v):
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def random_rotation(rng):
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return Q * np.sign(np.linalg.det(Q))


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.normal(size=(4, 3)))), {}),
    "the gradient of a has the wrong sign: the factors of its cross product are exchanged",
    SIGN,
)
def cross3():
    @pb.autograd_function
    def cross3(ctx, a, b):
        ctx.save_for_backward(a=a, b=b)
        return pb.linalg.cross(a, b)

    @cross3.backward
    def _(ctx, g):
        s = ctx.saved_variables
        return {"a": pb.linalg.cross(g, s.b), "b": pb.linalg.cross(g, s.a)}

    return cross3


@BOOK.right(lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.normal(size=3))), {}))
def cross_broadcast():
    def forward(ctx, points: pb.Tensor, axis_vector: pb.Tensor) -> pb.Tensor:
        """points: (n, 3), axis_vector: (3,)."""
        ctx.save_for_backward(points=points, v=axis_vector)
        return pb.asarray(np.cross(points.numpy(), axis_vector.numpy()))

    @pb.once_differentiable
    def backward(ctx, g):
        p, v = (x.numpy() for x in ctx.saved_tensors)
        by_axis = np.cross(g.numpy(), p).sum(axis=0)
        return {"points": pb.asarray(np.cross(v, g.numpy())), "axis_vector": pb.asarray(by_axis)}

    return pb.autograd_function(forward, backward, name="cross_broadcast")


@BOOK.wrong(
    lambda rng: ((t(np.eye(2) * np.array([1.0, -1])), t(rng.normal(size=(5, 2)))), {}),
    "the points' gradient is turned by the rotation where its transpose is needed",
    TRANSPOSED,
    r"symmetric|inverse",
    where="matrix not symmetric",
    shows=lambda rng: ((t(rng.normal(size=(2, 2))), t(rng.normal(size=(5, 2)))), {}),
)
def rotate_points():
    @pb.autograd_function
    def rotate_points(ctx, matrix, points):
        """Turn points: (n, d) by matrix: (d, d)."""
        ctx.save_for_backward(matrix=matrix, points=points)
        return points @ matrix.t()

    @rotate_points.backward
    def _(ctx, grad_output):
        s = ctx.saved_variables
        return {"matrix": grad_output.t() @ s.points, "points": grad_output @ s.matrix.t()}

    return rotate_points


def rodrigues(w):
    """Return the rotation by |w| about w and its derivative by each component of w."""
    a = np.linalg.norm(w)
    if a < 1e-6:
        s, c, ds, dc = 1 - a**2 / 6, 0.5 - a**2 / 24, -1 / 3, -1 / 12
    else:
        s, c = np.sin(a) / a, (1 - np.cos(a)) / a**2
        ds = (np.cos(a) - s) / a**2
        dc = (np.sin(a) / a - 2 * c) / a**2
    K = hat(w)
    E = [hat(e) for e in np.eye(3)]
    D = [ds * w[i] * K + s * E[i] + dc * w[i] * K @ K + c * (E[i] @ K + K @ E[i]) for i in range(3)]
    return np.eye(3) + s * K + c * K @ K, np.array(D)


@BOOK.right(lambda rng: ((t(rng.normal(size=3)),), {}))
def exp_so3():
    @pb.autograd_function
    def exp_so3(ctx, omega):
        R, ctx.D = rodrigues(omega.numpy())
        return pb.asarray(R)

    @exp_so3.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"omega": pb.asarray(np.einsum("kij,ij->k", ctx.D, g.numpy()))}

    return exp_so3


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=3)), t(rng.normal(size=3))), {}),
    "for a small angle the gradient of the rotation vector is zero",
    MAGNITUDE,
    ZERO,
    where="angle near 0",
    shows=lambda rng: ((t(np.zeros(3)), t(rng.normal(size=3))), {}),
)
def rotate_by():
    class RotateBy(pb.Function):
        """Turn point: (3,) by the rotation vector omega: (3,)."""

        @staticmethod
        def forward(ctx, omega, point):
            R, D = rodrigues(omega.numpy())
            if np.linalg.norm(omega.numpy()) < 1e-6:
                D = np.zeros((3, 3, 3))
            ctx.save_for_backward(R=R, by_omega=D @ point.numpy())
            return pb.asarray(R @ point.numpy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s = ctx.saved_variables
            return pb.asarray(s.by_omega @ g.numpy()), pb.asarray(s.R.T @ g.numpy())

    return RotateBy.apply


def quat_mul(p, q):
    pv, qv = p[..., 1:], q[..., 1:]
    w = p[..., :1] * q[..., :1] - (pv * qv).sum(axis=-1, keepdims=True)
    v = p[..., :1] * qv + q[..., :1] * pv + np.cross(pv, qv)
    return np.concatenate([w, v], axis=-1)


CONJ = np.array([1.0, -1, -1, -1])


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 4))), t(rng.normal(size=(3, 4)))), {}),
    "the gradient of q multiplies from the wrong side",
    r"(?:wrong|other) order\b|\bsides?\b|left and right|commut",
    SWAPPED,
)
def quaternion_product():
    @pb.autograd_function
    def quaternion_product(ctx, p: pb.Tensor, q: pb.Tensor) -> pb.Tensor:
        """Hamilton's product; p and q: (n, 4), real part first."""
        ctx.save_for_backward(p=p, q=q)
        return pb.asarray(quat_mul(p.numpy(), q.numpy()))

    @quaternion_product.backward
    @pb.once_differentiable
    def _(ctx, grad):
        p, q = (v.numpy() for v in ctx.saved_tensors)
        g = grad.numpy()
        by_q = quat_mul(g, p * CONJ)
        return {"p": pb.asarray(quat_mul(g, q * CONJ)), "q": pb.asarray(by_q)}

    return quaternion_product


@BOOK.right(lambda rng: ((t(rng.normal(size=(3, 4))), t(rng.normal(size=(3, 4)))), {}))
def hamilton():
    def forward(ctx, left, right):
        ctx.save_for_backward(left=left, right=right)
        return pb.asarray(quat_mul(left.numpy(), right.numpy()))

    @pb.once_differentiable
    def backward(ctx, g):
        left, right = (v.numpy() for v in ctx.saved_tensors)
        by_left = quat_mul(g.numpy(), right * CONJ)
        return pb.asarray(by_left), pb.asarray(quat_mul(left * CONJ, g.numpy()))

    return pb.autograd_function(forward, backward, name="hamilton")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 4))),), {}),
    "the term that projects out the part along the quaternion is missing",
    MISSING,
    r"project|\bterm\b|tangent",
)
def normalise_quaternion():
    @pb.autograd_function
    def normalise_quaternion(ctx, q):
        norm = pb.sqrt((q * q).sum(dim=-1, keepdim=True))
        out = q / norm
        ctx.save_for_backward(q=q)
        return out

    @normalise_quaternion.backward
    def _(ctx, g):
        q = ctx.saved_variables.q
        return {"q": g / pb.sqrt((q * q).sum(dim=-1, keepdim=True))}

    return normalise_quaternion


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.normal(size=(5, 3)))), {}),
    "the gradient of y has the sign of that of x",
    SIGN,
)
def pairwise_distance():
    @pb.autograd_function
    def pairwise_distance(ctx, x, y):
        """Distances between x: (m, d) and y: (n, d)."""
        diff = x.numpy()[:, None] - y.numpy()[None]
        dist = np.sqrt((diff**2).sum(axis=-1))
        ctx.save_for_backward(unit=diff / dist[..., None])
        return pb.asarray(dist)

    @pairwise_distance.backward
    @pb.once_differentiable
    def _(ctx, g):
        flow = ctx.saved_variables.unit * g.numpy()[..., None]
        return {"x": pb.asarray(flow.sum(axis=1)), "y": pb.asarray(flow.sum(axis=0))}

    return pairwise_distance


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(5, 3))),), {}),
    "the transposed half is missing, though forward counts each pair from both ends",
    FACTOR,
    MISSING,
    TRANSPOSED,
)
def gram_distances():
    def forward(ctx, points):
        """Squared distances between all points: (n, d)."""
        x = points.numpy()
        ctx.save_for_backward(points=points)
        return pb.asarray(((x[:, None] - x[None]) ** 2).sum(axis=-1))

    @pb.once_differentiable
    def backward(ctx, g):
        x, gn = ctx.saved_variables.points.numpy(), g.numpy()
        return {"points": pb.asarray(2 * (gn.sum(axis=1)[:, None] * x - gn @ x))}

    return pb.autograd_function(forward, backward, name="gram_distances")


@BOOK.right(lambda rng: ((t(rng.normal(size=(64, 3))),), {"squared": True}))
def self_distances():
    @pb.autograd_function
    def self_distances(ctx, cloud: pb.Tensor, squared: bool = False) -> pb.Tensor:
        """Distances between all points of cloud: (n, d); 0 has derivative 0."""
        x = cloud.numpy()
        diff = x[:, None] - x[None]
        d2 = (diff**2).sum(axis=-1)
        dist = d2 if squared else np.sqrt(d2)
        slope = np.full_like(d2, 2.0) if squared else 1 / np.where(dist > 0, dist, np.inf)
        ctx.save_for_backward(flow=slope[..., None] * diff)
        return pb.asarray(dist)

    @self_distances.backward
    @pb.once_differentiable
    def _(ctx, g):
        both = g.numpy() + g.numpy().T
        return {"cloud": pb.asarray((both[..., None] * ctx.saved_variables.flow).sum(axis=1))}

    return self_distances


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 2))),), {}),
    "the sign is wrong where the corners go round clockwise",
    SIGN,
    r"orientation|clockwise",
    where="corners clockwise",
    shows=lambda rng: ((t(np.array([[0.0, 0.0], [0.2, 1.0], [1.0, 0.1]])),), {}),
)
def triangle_area():
    @pb.autograd_function
    def triangle_area(ctx, corners):
        """Area of the triangle with corners: (3, 2)."""
        ctx.save_for_backward(corners=corners)
        (x0, y0), (x1, y1), (x2, y2) = corners.numpy()
        return pb.asarray(0.5 * abs((x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)))

    @triangle_area.backward
    @pb.once_differentiable
    def _(ctx, g):
        c = ctx.saved_variables.corners.numpy()
        edge = np.roll(c, -1, axis=0) - np.roll(c, 1, axis=0)
        return {"corners": pb.asarray(0.5 * g.item() * np.stack([edge[:, 1], -edge[:, 0]], axis=1))}

    return triangle_area


@BOOK.right(
    lambda rng: ((t(rng.normal(size=(6, 3))), np.array([[0, 1, 2], [1, 2, 5], [3, 4, 0]])), {})
)
def mesh_areas():
    class MeshAreas(pb.Function):
        """Areas of faces: (f, 3) over vertices: (v, 3)."""

        @staticmethod
        def forward(ctx, vertices, faces):
            a, b, c = vertices.numpy()[faces].transpose(1, 0, 2)
            n = np.cross(b - a, c - a)
            length = np.linalg.norm(n, axis=1, keepdims=True)
            unit = n / np.maximum(length, 1e-300)
            ctx.save_for_backward(parts=(a, b, c, unit), faces=faces, shape=vertices.shape)
            return pb.asarray(length[:, 0] / 2)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            a, b, c, unit = ctx.saved_variables.parts
            faces, half = ctx.saved_variables.faces, g.numpy()[:, None] / 2
            grad = np.zeros(ctx.saved_variables.shape)
            np.add.at(grad, faces[:, 0], half * np.cross(unit, c - b))
            np.add.at(grad, faces[:, 1], half * np.cross(unit, a - c))
            np.add.at(grad, faces[:, 2], half * np.cross(unit, b - a))
            return {"vertices": pb.asarray(grad)}

    return MeshAreas.apply


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(5, 3)) + np.array([0, 0, 6])), t(2.0)), {}),
    "the dependence on the depth is missing: z gets no gradient",
    MISSING,
    ZERO,
    r"depth|component",
)
def pinhole_project():
    @pb.autograd_function
    def pinhole_project(ctx, points, focal):
        """Project points: (n, 3) in front of the camera to (n, 2)."""
        ctx.save_for_backward(points=points, focal=focal)
        return focal * points[:, :2] / points[:, 2:]

    @pinhole_project.backward
    def _(ctx, g):
        p, focal = ctx.saved_tensors
        xy = focal * g / p[:, 2:]
        z = pb.zeros(p.shape[0], 1, dtype=p.dtype)
        by_focal = (g * p[:, :2] / p[:, 2:]).sum()
        return {"points": pb.concat([xy, z], axis=1), "focal": by_focal}

    return pinhole_project


class Pose(NamedTuple):
    rotation: pb.Tensor
    translation: pb.Tensor


@BOOK.right(
    lambda rng: (
        (
            t(random_rotation(rng)),
            t(rng.normal(size=3)),
            t(random_rotation(rng)),
            t(rng.normal(size=3)),
        ),
        {},
    )
)
def compose_poses():
    @pb.autograd_function
    def compose_poses(ctx, R1, t1, R2, t2):
        """Compose two rigid motions (R: (3, 3) rotation, t: (3,))."""
        for R in (R1, R2):
            if not np.allclose(R.numpy() @ R.numpy().T, np.eye(3), atol=1e-6):
                raise ValueError("compose_poses: R must be a rotation")
        ctx.save_for_backward(R1=R1, R2=R2, t2=t2)
        return Pose(R1 @ R2, R1 @ t2 + t1)

    @compose_poses.backward
    def _(ctx, gR, gt):
        s = ctx.saved_variables
        return {
            "R1": gR @ s.R2.t() + pb.outer(gt, s.t2),
            "t1": gt,
            "R2": s.R1.t() @ gR,
            "t2": s.R1.t() @ gt,
        }

    return compose_poses


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=3)), t(rng.normal(size=3)), t(rng.normal(size=(4, 3)))), {}),
    "the translation's gradient is that of the last point; the sum over the points is missing",
    SUMMED,
    MISSING,
)
def rigid_transform():
    @pb.autograd_function
    def rigid_transform(ctx, omega: pb.Tensor, shift: pb.Tensor, points: pb.Tensor) -> pb.Tensor:
        """Turn points: (n, 3) by omega: (3,), then move them by shift: (3,)."""
        R, D = rodrigues(omega.numpy())
        ctx.save_for_backward(R=R, D=D, points=points)
        return pb.asarray(points.numpy() @ R.T + shift.numpy())

    @rigid_transform.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_omega = np.einsum("kij,nj,ni->k", s.D, s.points.numpy(), gn)
        return tuple(map(pb.asarray, (by_omega, gn[-1].copy(), gn @ s.R)))

    return rigid_transform


def ray(rng):
    origin, direction = rng.normal(size=3), np.array([0.1, 0.2, 1.0]) + 0.1 * rng.random(3)
    return (t(origin), t(direction), t(np.array([0.2, -0.1, 1.0])), t(5.0)), {}


@BOOK.wrong(
    ray,
    "the gradient of the direction lacks the dependence of the distance on the direction",
    MISSING,
    r"\bterm\b",
)
def ray_plane():
    @pb.autograd_function
    def ray_plane(ctx, origin, direction, normal, offset):
        """Where the ray meets the plane normal . x = offset."""
        s = (offset - (normal * origin).sum()) / (normal * direction).sum()
        ctx.save_for_backward(origin=origin, direction=direction, normal=normal, offset=offset)
        return origin + s * direction

    @ray_plane.backward
    def _(ctx, g):
        o, d, n, c = ctx.saved_tensors
        nd = (n * d).sum()
        s = (c - (n * o).sum()) / nd
        gd = (g * d).sum()
        return {
            "origin": g - gd / nd * n,
            "direction": s * g,
            "normal": -gd / nd * (o + s * d),
            "offset": gd / nd,
        }

    return ray_plane


@BOOK.right(ray)
def ray_hit():
    def forward(ctx, origin, direction, normal, offset, clip=True):
        nd = (normal * direction).sum()
        if abs(nd.item()) < 1e-9:
            raise ValueError("ray_hit: the ray is parallel to the plane")
        ctx.save_for_backward(origin=origin, direction=direction, normal=normal, offset=offset)
        return origin + (offset - (normal * origin).sum()) / nd * direction, bool(nd.item() > 0)

    def backward(ctx, g, g_front=None):
        o, d, n, c = ctx.saved_tensors
        nd = (n * d).sum()
        s = (c - (n * o).sum()) / nd
        gd = (g * d).sum() / nd
        return g - gd * n, s * (g - gd * n), -gd * (o + s * d), gd, None

    return pb.autograd_function(forward, backward, name="ray_hit")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 2))),), {}),
    "forward normalises the points of the caller in place",
    CHANGED,
    where="input changed",
)
def polar_angles():
    @pb.autograd_function
    def polar_angles(ctx, points):
        p = points.numpy()
        length = np.linalg.norm(p, axis=1, keepdims=True)
        ctx.save_for_backward(length=length[:, 0].copy())
        p /= length
        ctx.unit = p.copy()
        return pb.asarray(np.arctan2(p[:, 1], p[:, 0]))

    @polar_angles.backward
    @pb.once_differentiable
    def _(ctx, g):
        u, scale = ctx.unit, g.numpy() / ctx.saved_variables.length
        return {"points": pb.asarray(np.stack([-u[:, 1] * scale, u[:, 0] * scale], axis=1))}

    return polar_angles


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.normal(size=(4, 3)))), {}),
    "the norm is saved as plain numbers, so the second derivative takes it for a constant",
    SECOND,
    where="second derivative",
)
def cosine_similarity():
    @pb.autograd_function
    def cosine_similarity(ctx, u, v):
        """Cosine of the angle between the rows of u and v, both (n, d)."""
        ctx.save_for_backward(u=u, v=v)
        return (u * v).sum(dim=1) / (norm(u) * norm(v))

    def norm(x):
        return pb.asarray(np.linalg.norm(x.detach().numpy(), axis=1))

    @cosine_similarity.backward
    def _(ctx, g):
        u, v = ctx.saved_tensors
        nu, nv = norm(u)[:, None], norm(v)[:, None]
        c = ((u * v).sum(dim=1)[:, None]) / (nu * nv)
        g = g[:, None]
        return {"u": g * (v / nv - c * u / nu) / nu, "v": g * (u / nu - c * v / nv) / nv}

    return cosine_similarity


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.normal(size=3))), {}),
    "with a radius the centre gets None",
    NONE,
    at("radius"),
    where="radius given",
    shows=lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.normal(size=3))), {"radius": 2.0}),
)
def sphere_offsets():
    @pb.autograd_function
    def sphere_offsets(ctx, points, center, radius=None):
        """Distances of points: (n, 3) from center: (3,), less the radius if there is one."""
        ctx.save_for_backward(points=points, center=center)
        ctx.radius = radius
        diff = points - center
        dist = pb.sqrt((diff * diff).sum(dim=1))
        return dist if radius is None else dist - radius

    @sphere_offsets.backward
    def _(ctx, g):
        points, center = ctx.saved_tensors
        diff = points - center
        flow = g[:, None] * diff / pb.sqrt((diff * diff).sum(dim=1, keepdim=True))
        return {"points": flow, "center": -flow.sum(dim=0) if ctx.radius is None else None}

    return sphere_offsets
