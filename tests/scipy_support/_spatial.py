"""Calls of `scipy.spatial.transform`."""

from scipy.spatial.transform import RigidTransform, Rotation, Slerp
from tests.scipy_support._calls import beside, call, space, table


def turn(x):
    """Return a rotation by a vector, made of that vector."""
    return Rotation.from_rotvec(x)


def motion(x):
    """Return a motion, by six numbers."""
    return RigidTransform.from_exp_coords(x)


def orthogonal(x):
    """Return the rotation matrix next to a matrix: the polar factor, by its singular vectors."""
    xp = space(x)
    u, _, v = xp.linalg.svd(x, full_matrices=False)
    flip = xp.linalg.det(xp.matmul(u, v))
    return xp.matmul(u, v) * flip


def rotation(read, *shapes, **more):
    """Return a call that reads a rotation made of a vector."""
    return call(*(shapes or ((3,),)), run=lambda f, *x: read(turn(x[0]), *x[1:]), **more)


def rigid(read, *shapes, **more):
    """Return a call that reads a motion made of six numbers."""
    return call(*(shapes or ((6,),)), run=lambda f, *x: read(motion(x[0]), *x[1:]), **more)


def quat(r):
    return r.as_quat()


def matrix(m):
    return m.as_matrix()


def assigned(whole, part, index):
    whole[index] = part
    return whole


ROTATIONS = {
    "from_quat": call((4,), run=lambda f, x: matrix(Rotation.from_quat(x))),
    "from_rotvec": [
        call((3,), run=lambda f, x: quat(Rotation.from_rotvec(x))),
        call((2, 3), run=lambda f, x: matrix(Rotation.from_rotvec(x, degrees=True))),
    ],
    "from_matrix": call((3, 3), run=lambda f, x: quat(Rotation.from_matrix(orthogonal(x)))),
    "from_euler": [
        call((3,), run=lambda f, x: quat(Rotation.from_euler("xyz", x))),
        call((), run=lambda f, x: quat(Rotation.from_euler("Z", x))),
    ],
    "from_davenport": call(
        (2,),
        run=lambda f, x: quat(
            Rotation.from_davenport(beside(x, [[1.0, 0, 0], [0, 1.0, 0]]), "extrinsic", x)
        ),
    ),
    "from_mrp": call((3,), run=lambda f, x: quat(Rotation.from_mrp(x))),
    "as_quat": [rotation(quat), rotation(lambda r: r.as_quat(canonical=True, scalar_first=True))],
    "as_rotvec": [rotation(lambda r: r.as_rotvec()), rotation(lambda r: r.as_rotvec(), (2, 3))],
    "as_matrix": rotation(matrix),
    "as_mrp": rotation(lambda r: r.as_mrp()),
    "as_euler": [rotation(lambda r: r.as_euler("xyz")), rotation(lambda r: r.as_euler("ZXZ"))],
    "as_davenport": call(
        (3,),
        run=lambda f, x: turn(x).as_davenport(
            beside(x, [[1.0, 0, 0], [0, 1.0, 0], [1.0, 0, 0]]), "extrinsic"
        ),
    ),
    "apply": [
        rotation(lambda r, v: r.apply(v), (3,), (2, 3)),
        rotation(lambda r, v: r.apply(v, inverse=True), (2, 3), (3,)),
    ],
    "inv": rotation(lambda r: quat(r.inv())),
    "magnitude": rotation(lambda r: r.magnitude(), (2, 3)),
    "mean": rotation(lambda r: quat(r.mean()), (4, 3)),
    "reduce": rotation(lambda r: quat(r.reduce())),
    "concatenate": call(
        (3,), (3,), run=lambda f, x, y: quat(Rotation.concatenate([turn(x), turn(y)]))
    ),
    "approx_equal": call((3,), (3,), run=lambda f, x, y: [bool(turn(x).approx_equal(turn(y)))]),
    "align_vectors": call(
        (4, 3),
        (4, 3),
        run=lambda f, x, y: [(quat(r), d) for r, d in [Rotation.align_vectors(x, y)]],
    ),
    "__mul__": call((3,), (3,), run=lambda f, x, y: quat(turn(x) * turn(y))),
    "__pow__": rotation(lambda r: quat(r**0.7)),
    "__getitem__": rotation(lambda r: quat(r[1]), (2, 3)),
    "__setitem__": call((2, 3), (3,), run=lambda f, x, y: quat(assigned(turn(x), turn(y), 1))),
    "__iter__": rotation(lambda r: [quat(each) for each in r], (2, 3)),
    "__repr__": rotation(repr),
}

SLERP = call((3, 3), (2,), run=lambda f, x, t: quat(Slerp(beside(x, [0.0, 1.0, 3.0]), turn(x))(t)))

MOTIONS = {
    "from_matrix": call(
        (3,),
        run=lambda f, x: matrix(
            RigidTransform.from_matrix(matrix(RigidTransform.from_translation(x)))
        ),
    ),
    "from_rotation": call((3,), run=lambda f, x: matrix(RigidTransform.from_rotation(turn(x)))),
    "from_translation": call((3,), run=lambda f, x: matrix(RigidTransform.from_translation(x))),
    "from_components": call(
        (3,), (3,), run=lambda f, x, y: matrix(RigidTransform.from_components(x, turn(y)))
    ),
    "from_exp_coords": rigid(matrix),
    "from_dual_quat": call((8,), run=lambda f, x: matrix(RigidTransform.from_dual_quat(x))),
    "identity": call(run=lambda f, xp: matrix(RigidTransform.identity())),
    "concatenate": call(
        (6,), (6,), run=lambda f, x, y: matrix(RigidTransform.concatenate([motion(x), motion(y)]))
    ),
    "mean": rigid(lambda m: matrix(m.mean()), (3, 6)),
    "as_matrix": rigid(matrix, (2, 6)),
    "as_components": rigid(lambda m: [(t, quat(r)) for t, r in [m.as_components()]]),
    "as_exp_coords": rigid(lambda m: m.as_exp_coords()),
    "as_dual_quat": rigid(lambda m: m.as_dual_quat()),
    "inv": rigid(lambda m: matrix(m.inv())),
    "apply": rigid(lambda m, v: m.apply(v), (6,), (2, 3)),
    "__mul__": rigid(lambda m, y: matrix(m * motion(y)), (6,), (6,)),
    # SciPy computes this less precisely on NumPy arrays.
    "__pow__": rigid(lambda m: matrix(m**0.7), rtol=1e-6),
    "__getitem__": rigid(lambda m: matrix(m[1]), (2, 6)),
    "__setitem__": rigid(lambda m, y: matrix(assigned(m, motion(y), 1)), (2, 6), (6,)),
    "__iter__": rigid(lambda m: [matrix(each) for each in m], (2, 6)),
}

CALLS = {
    **table("spatial.transform.Rotation", ROTATIONS),
    **table("spatial.transform.Slerp", {"__init__ __call__": SLERP}),
    **table("spatial.transform.RigidTransform", MOTIONS),
}
