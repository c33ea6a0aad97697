"""Photogrammetry: collinearity, lenses, stereo, matching, intersection, orthophotos, adjustment."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, SWAPPED, TRANSPOSED, Book, at, mends, t

BOOK = Book("photogrammetry")


def lens(rng, *coefficients):
    return (t(rng.uniform(-0.6, 0.6, (5, 2))), t(np.array(coefficients))), {}


@BOOK.wrong(
    lambda rng: lens(rng, -0.21),
    "each power in the derivative of the polynomial lacks the factor of its exponent",
    FACTOR,
    r"\bpowers?\b|exponent|polynomial|higher (?:order|term|coef)|second coefficient",
    r"more than one coefficient|several coefficients|multipl",
    mends("(i + 1) * s.k[i]", "s.k[i] * (i + 1)", "np.arange(1, len(", "* (i + 1)", "(i + 1) *"),
    where="there is more than one coefficient",
    shows=lambda rng: lens(rng, -0.21, 0.08, -0.02),
)
def brown_distortion():
    @pb.autograd_function
    def brown_distortion(ctx, points, radial):
        """Radial distortion of image points: (n, 2) in units of the focal length."""
        p, k = points.numpy(), radial.numpy()
        square = (p**2).sum(axis=1)
        stretch = 1 + sum(c * square ** (i + 1) for i, c in enumerate(k))
        ctx.save_for_backward(points=points, k=k.copy(), square=square, stretch=stretch)
        return pb.asarray(p * stretch[:, None])

    @brown_distortion.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        p = s.points.numpy()
        along = (gn * p).sum(axis=1)
        slope = np.zeros_like(s.square)
        by_k = np.zeros_like(s.k)
        for i in range(len(s.k)):
            slope += s.k[i] * s.square**i
            by_k[i] = along @ s.square ** (i + 1)
        by_points = gn * s.stretch[:, None] + 2 * p * (along * slope)[:, None]
        return {"points": pb.asarray(by_points), "radial": pb.asarray(by_k)}

    return brown_distortion


@BOOK.wrong(
    lambda rng: (
        (t(np.array([[0.02, -0.31, 0.1], [0.45, 0.05, -0.9], [-0.25, 0.84, 0.03]])),),
        {"left": rng.uniform(-0.5, 0.5, (8, 2)), "right": rng.uniform(-0.5, 0.5, (8, 2))},
    ),
    "the gradient of the fundamental matrix is transposed: the two images are exchanged",
    TRANSPOSED,
    SWAPPED,
    r"left and right|right and left|two images|other image|outer product",
    mends("s.q.T @", "np.outer(s.q", "(once * s.q - twice * s.u).T @"),
)
def sampson_error():
    def forward(ctx, fundamental, left, right):
        """Sampson's squared distances of matched points: (n, 2) each; fundamental: (3, 3)."""
        F = fundamental.numpy()
        p, q = (np.column_stack([m, np.ones(len(m))]) for m in (left, right))
        in_right, in_left = p @ F.T, q @ F
        miss = (q * in_right).sum(axis=1)
        in_right[:, 2] = in_left[:, 2] = 0.0
        below = (in_right**2).sum(axis=1) + (in_left**2).sum(axis=1)
        ctx.save_for_backward(p=p, q=q, u=in_right, v=in_left, part=miss / below)
        return pb.asarray(miss**2 / below)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s = ctx.saved_variables
        once = (2 * grad_output.numpy() * s.part)[:, None]
        twice = once * s.part[:, None]
        by_F = s.p.T @ (once * s.q - twice * s.u) - s.v.T @ (twice * s.q)
        return {"fundamental": pb.asarray(by_F)}

    return pb.autograd_function(forward, backward, name="sampson_error")


def stereo(rng):
    return t(np.array([118.0, 64.5, 33.2, 87.0]) + rng.random(4)), t(3979.9), t(0.193)


@BOOK.wrong(
    lambda rng: (stereo(rng), {}),
    "the gradient of disparity leaves out doffs, as if the principal points fell together",
    at("doffs"),
    r"principal point|\boffset\b|\bshifted\b",
    r"\bdoffs\b.{0,30}(?:ignor|left out|missing|not (?:used|added|in))",
    r"(?:leaves? out|ignor\w+|omit\w*|without|lack\w*|add(?:ing)?) \W?doffs\b",
    mends("s.shifted[s.valid] ** 2", "/ s.shifted", "ctx.depth[s.valid] ** 2", "+ ctx.doffs"),
    where="doffs is not 0",
    shows=lambda rng: (stereo(rng), {"doffs": 124.3}),
)
def stereo_depth():
    @pb.autograd_function
    def stereo_depth(ctx, disparity, focal, baseline, doffs=0.0):
        """Depth of pixels, 0 where there is no match; doffs: x-difference of principal points."""
        shifted = disparity.numpy() + doffs
        valid = shifted > 0
        inverse = np.zeros_like(shifted)
        inverse[valid] = 1 / shifted[valid]
        ctx.save_for_backward(disparity=disparity, inverse=inverse, valid=valid)
        ctx.f, ctx.b = focal.item(), baseline.item()
        return pb.asarray(ctx.f * ctx.b * inverse)

    @stereo_depth.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_d = np.zeros_like(gn)
        by_d[s.valid] = -ctx.f * ctx.b * gn[s.valid] / s.disparity.numpy()[s.valid] ** 2
        total = (gn * s.inverse).sum()
        return {"disparity": pb.asarray(by_d), "focal": total * ctx.b, "baseline": total * ctx.f}

    return stereo_depth


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(-300, 300, (5, 3)) + np.array([2400.0, 1800.0, 400.0])),
            t(np.array([2380.0, 1830.0, 1650.0])),
            t(np.radians([1.3, -2.1, 84.0])),
            t(0.153),
        ),
        {},
    )
)
def collinear_photo():
    def turn(angle, axis, derived=False):
        c, s = (-np.sin(angle), np.cos(angle)) if derived else (np.cos(angle), np.sin(angle))
        R = np.zeros((3, 3))
        R[axis, axis] = 0.0 if derived else 1.0
        a, b = (axis + 1) % 3, (axis + 2) % 3
        R[a, a], R[b, b], R[a, b], R[b, a] = c, c, -s, s
        return R

    @pb.autograd_function
    def collinear_photo(ctx, ground, station, angles, focal):
        """Image: (n, 2) of ground: (n, 3) from station: (3,); angles: omega, phi and kappa."""
        Rx, Ry, Rz = (turn(a, i) for i, a in enumerate(angles.numpy()))
        R, apart = Rx @ Ry @ Rz, ground.numpy() - station.numpy()
        q = apart @ R
        if (q[:, 2] >= 0).any():
            raise ValueError("a point does not lie in front of the camera")
        ctx.save_for_backward(angles=angles, apart=apart, q=q, R=R, f=focal.item())
        return pb.asarray(-focal.item() * q[:, :2] / q[:, 2:])

    @collinear_photo.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        ratio = s.q[:, :2] / s.q[:, 2:]
        by_q = np.column_stack([gn, -(gn * ratio).sum(axis=1)]) * (-s.f / s.q[:, 2:])
        by_ground, by_R = by_q @ s.R.T, s.apart.T @ by_q
        by_angles = np.zeros(3)
        for i in range(3):
            Rx, Ry, Rz = (turn(a, j, derived=i == j) for j, a in enumerate(s.angles.numpy()))
            by_angles[i] = (by_R * (Rx @ Ry @ Rz)).sum()
        return {
            "ground": pb.asarray(by_ground),
            "station": pb.asarray(-by_ground.sum(axis=0)),
            "angles": pb.asarray(by_angles),
            "focal": -(gn * ratio).sum(),
        }

    return collinear_photo


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(-80, 80, (6, 2))), t(rng.uniform(-900, 900, (6, 2)))),
        {},
    )
)
def helmert_adjustment():
    def design(points):
        A = np.zeros((2 * len(points), 4))
        A[0::2, 0], A[0::2, 1], A[0::2, 2] = points[:, 0], -points[:, 1], 1
        A[1::2, 0], A[1::2, 1], A[1::2, 3] = points[:, 1], points[:, 0], 1
        return A

    @pb.autograd_function
    def helmert_adjustment(ctx, source, target):
        """Least-squares a, b, x and y of a plane similarity between points: (n, 2), n > 1."""
        A, b = design(source.numpy()), target.numpy().ravel()
        Q, R = np.linalg.qr(A)
        p = np.linalg.solve(R, Q.T @ b)
        ctx.save_for_backward(A=A, R=R, p=p, residual=b - A @ p)
        return pb.asarray(p.copy())

    @helmert_adjustment.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        z = np.linalg.solve(s.R, np.linalg.solve(s.R.T, g.numpy()))
        by_b = s.A @ z
        by_A = np.outer(s.residual, z) - np.outer(by_b, s.p)
        by_x = by_A[0::2, 0] + by_A[1::2, 1]
        by_y = by_A[1::2, 0] - by_A[0::2, 1]
        return {
            "source": pb.asarray(np.column_stack([by_x, by_y])),
            "target": pb.asarray(by_b.reshape(-1, 2)),
        }

    return helmert_adjustment


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(310, 390, (4, 5))),
            t(np.array([1002.1, 1013.7, 1024.0, 990.0, 1018.8])),
            t(np.array([508.2, 501.4, 513.6, 504.4, 530.0])),
        ),
        {"cell": 5.0, "corner": (1000.0, 500.0)},
    )
)
def terrain_height():
    def places(x, start, cell, size):
        raw = (x - start) / cell
        kept = np.clip(raw, 0, size - 1)
        low = np.minimum(kept.astype(int), size - 2)
        return low, kept - low, (raw > 0) & (raw < size - 1)

    def forward(ctx, terrain, x, y, cell=1.0, corner=(0.0, 0.0)):
        """Heights between the posts of a terrain grid; beyond its edges that of the edge.

        terrain: (rows, columns), two of each at least; x runs along the columns, y along the rows.
        """
        z = terrain.numpy()
        if min(z.shape) < 2:
            raise ValueError("the grid needs two rows and two columns")
        i, v, y_free = places(y.numpy(), corner[1], cell, z.shape[0])
        j, u, x_free = places(x.numpy(), corner[0], cell, z.shape[1])
        near = z[i, j], z[i, j + 1], z[i + 1, j], z[i + 1, j + 1]
        weights = (1 - v) * (1 - u), (1 - v) * u, v * (1 - u), v * u
        ctx.by_x = x_free * ((1 - v) * (near[1] - near[0]) + v * (near[3] - near[2])) / cell
        ctx.by_y = y_free * ((1 - u) * (near[2] - near[0]) + u * (near[3] - near[1])) / cell
        ctx.shape, ctx.i, ctx.j, ctx.weights = z.shape, i, j, weights
        return pb.asarray(sum(w * h for w, h in zip(weights, near, strict=True)))

    @pb.once_differentiable
    def backward(ctx, g):
        gn, by_z = g.numpy(), np.zeros(ctx.shape)
        for k, w in enumerate(ctx.weights):
            np.add.at(by_z, (ctx.i + k // 2, ctx.j + k % 2), gn * w)
        by_x, by_y = gn * ctx.by_x, gn * ctx.by_y
        return {"terrain": pb.asarray(by_z), "x": pb.asarray(by_x), "y": pb.asarray(by_y)}

    return pb.autograd_function(forward, backward, name="terrain_height")


@BOOK.right(lambda rng: ((t(rng.uniform(30, 220, (3, 2))), t(rng.uniform(30, 220, (6, 5)))), {}))
def patch_correlation():
    @pb.autograd_function
    def patch_correlation(ctx, patch, image):
        """Normalised cross-correlation of a patch at all its places in an image, 0 where flat."""
        p, size = patch.numpy(), patch.shape
        windows = np.lib.stride_tricks.sliding_window_view(image.numpy(), size)
        centred = windows - windows.mean(axis=(2, 3), keepdims=True)
        norm = np.sqrt((centred**2).sum(axis=(2, 3), keepdims=True))
        flat = norm <= 1e-9 * np.abs(windows).max(axis=(2, 3), keepdims=True)
        inverse = np.where(flat, 0.0, 1 / np.where(flat, 1.0, norm))
        p = p - p.mean()
        if np.abs(p).max() <= 1e-9 * np.abs(patch.numpy()).max():
            raise ValueError("the patch has no texture")
        length = np.sqrt((p**2).sum())
        unit, units = p / length, centred * inverse
        out = (unit * units).sum(axis=(2, 3))
        ctx.save_for_backward(unit, units, inverse, out.copy())
        ctx.length, ctx.shape = length, image.shape
        return pb.asarray(out)

    @patch_correlation.backward
    @pb.once_differentiable
    def _(ctx, g):
        unit, units, inverse, out = ctx.saved_variables
        gn, r = g.numpy()[:, :, None, None], out[:, :, None, None]
        textured = inverse > 0
        by_patch = (gn * textured * (units - r * unit)).sum(axis=(0, 1)) / ctx.length
        by_windows = gn * inverse * (unit - r * units)
        by_image, (rows, columns) = np.zeros(ctx.shape), out.shape
        for i, j in np.ndindex(*unit.shape):
            by_image[i : i + rows, j : j + columns] += by_windows[:, :, i, j]
        return {"patch": pb.asarray(by_patch), "image": pb.asarray(by_image)}

    return patch_correlation


@BOOK.right(
    lambda rng: (
        (
            t(np.array([[0.0, 0, 900], [240, 10, 910], [480, -5, 895]]) + rng.normal(size=(3, 3))),
            t(np.array([[0.31, 0.2, -1], [0.05, 0.19, -1], [-0.4, 0.42, -2]])),
        ),
        {"weights": np.array([1.0, 1.0, 0.4])},
    )
)
def rays_meet():
    @pb.autograd_function
    def rays_meet(ctx, centres, directions, weights=None):
        c, d = centres.numpy(), directions.numpy()
        w = np.ones(len(c)) if weights is None else weights
        length = np.linalg.norm(d, axis=1, keepdims=True)
        u = d / length
        across = w[:, None, None] * (np.eye(3) - u[:, :, None] * u[:, None])
        S = across.sum(axis=0)
        point = np.linalg.solve(S, np.einsum("nij,nj->i", across, c))
        ctx.save_for_backward(u, length, across, S, c - point)
        ctx.w = w
        return pb.asarray(point)

    @rays_meet.backward
    @pb.once_differentiable
    def _(ctx, g):
        u, length, across, S, apart = ctx.saved_variables
        z = np.linalg.solve(S, g.numpy())
        inner = (apart * u).sum(axis=1, keepdims=True)
        by_u = -ctx.w[:, None] * (inner * z + (u @ z)[:, None] * apart)
        by_d = (by_u - u * (u * by_u).sum(axis=1, keepdims=True)) / length
        return {"centres": pb.asarray(across @ z), "directions": pb.asarray(by_d)}

    return rays_meet


@BOOK.right(
    lambda rng: ((t(np.array([412.1, 412.4, 411.8, 412.2, 419.7, 408.3, 412.3])), t(0.35)), {})
)
def robust_level():
    def forward(ctx, heights, scale, most=2000):
        """Height of a plateau by reweighting; what is off by more than scale counts little."""
        z, s = heights.numpy(), scale.item()
        if s <= 0:
            raise ValueError("scale must be positive")
        level = np.median(z)
        for _ in range(most):
            weight = 1 / np.sqrt(1 + ((z - level) / s) ** 2)
            step = weight @ (z - level) / weight.sum()
            level = level + step
            if abs(step) <= 1e-12 * max(s, abs(level) * 1e-3):
                break
        else:
            raise ArithmeticError("robust_level: the weights have not settled")
        r = (z - level) / s
        ctx.r, ctx.bend = r, (1 + r**2) ** -1.5
        return pb.asarray(np.array(level))

    @pb.once_differentiable
    def backward(ctx, g):
        share = g.item() * ctx.bend / ctx.bend.sum()
        return {"heights": pb.asarray(share), "scale": -(share @ ctx.r)}

    return pb.autograd_function(forward, backward, name="robust_level")


@BOOK.right(
    lambda rng: (
        (t(np.array([3.2, 1.9, -0.4, 0.8, -1.7])), t(rng.uniform(2, 35, 5)), t(1.45)),
        {},
    )
)
def through_water():
    @pb.autograd_function
    def through_water(ctx, apparent, incidence, level, index=1.34):
        """Heights of a river bed, put right for refraction; incidence in degrees off the nadir."""
        theta = np.radians(incidence.numpy())
        if (np.abs(theta) >= np.pi / 2).any() or index < 1:
            raise ValueError("a ray does not come down, or the index is below 1")
        s, c = np.sin(theta), np.cos(theta)
        q = np.sqrt(index**2 - s**2)
        shallow = np.maximum(level.item() - apparent.numpy(), 0.0)
        wet = shallow > 0
        ctx.factor = np.where(wet, q / c, 1.0)
        ctx.by_theta = -shallow * s * (q / c**2 - 1 / q)
        return pb.asarray(np.where(wet, level.item() - shallow * q / c, apparent.numpy()))

    @through_water.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        return {
            "apparent": pb.asarray(gn * ctx.factor),
            "incidence": pb.asarray(np.radians(gn * ctx.by_theta)),
            "level": (gn * (1 - ctx.factor)).sum(),
        }

    return through_water


@BOOK.right(
    lambda rng: (
        (
            t(np.array([31.0, 120.0, 244.0, 250.0, 9.0, 88.0])),
            t(np.array([1.12, 0.94, 1.0])),
            t(np.array([-3.0, 6.5, 0.0])),
        ),
        {"photo": np.array([0, 1, 0, 1, 1, 0])},
    )
)
def strip_balance():
    @pb.autograd_function
    def strip_balance(ctx, grey, gain, offset, photo, bits=8):
        """Grey values after each photo's own gain and offset; photo: whole numbers, (n,)."""
        x, top = grey.numpy(), 2.0**bits - 1
        raw = x * gain.numpy()[photo] + offset.numpy()[photo]
        ctx.save_for_backward(grey=grey, gain=gain, seen=(raw > 0) & (raw < top))
        ctx.photo = photo.copy()
        return pb.asarray(raw.clip(0, top))

    @strip_balance.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        x, a = s.grey.numpy(), s.gain.numpy()
        flow = np.where(s.seen, g.numpy(), 0.0)
        return {
            "grey": pb.asarray(flow * a[ctx.photo]),
            "gain": pb.asarray(np.bincount(ctx.photo, flow * x, len(a))),
            "offset": pb.asarray(np.bincount(ctx.photo, flow, len(a))),
        }

    return strip_balance


@BOOK.right(
    lambda rng: ((t(np.array([1.4, 6.2, 11.9, 17.5]) + rng.random(4)), t([-6.1e-3, 3.3e-4])), {})
)
def undistorted_radius():
    class UndistortedRadius(pb.Function):
        """Radii in mm that the lens distorts into those measured.

        It makes r (1 + k1 x^2 + k2 x^4 and so on) of r, where x is r over the unit.
        """

        @staticmethod
        def forward(ctx, measured, coefficients, unit=10.0):
            target, k = measured.numpy() / unit, coefficients.numpy()
            powers = 2 * np.arange(len(k)) + 3
            r = target.copy()
            for _ in range(50):
                slope = 1 + (k * powers * r[:, None] ** (powers - 1)).sum(axis=1)
                if (slope <= 0).any():
                    raise ArithmeticError("the lens folds the image")
                step = (r + (k * r[:, None] ** powers).sum(axis=1) - target) / slope
                r = r - step
                if np.abs(step).max() <= 1e-12 * np.abs(target).max():
                    break
            else:
                raise ArithmeticError("no convergence")
            slope = 1 + (k * powers * r[:, None] ** (powers - 1)).sum(axis=1)
            ctx.save_for_backward(slope=slope, terms=unit * r[:, None] ** powers)
            return pb.asarray(unit * r)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s = ctx.saved_variables
            share = g.numpy() / s.slope
            return pb.asarray(share), pb.asarray(-share @ s.terms), None

    return UndistortedRadius.apply


@BOOK.right(lambda rng: ((t(rng.uniform(200, 260, 4)), t(rng.uniform(300, 4000, 4)), t(0.13)), {}))
def curvature_refraction():
    @pb.autograd_function
    def curvature_refraction(ctx, height, distance, coefficient, radius=6_371_000.0):
        ctx.save_for_backward(distance=distance, coefficient=coefficient)
        ctx.radius = radius
        return height + (1 - coefficient) * distance**2 / (2 * radius)

    @curvature_refraction.backward
    def _(ctx, g):
        s = ctx.saved_variables
        return {
            "height": g,
            "distance": g * (1 - s.coefficient) * s.distance / ctx.radius,
            "coefficient": -(g * s.distance**2).sum() / (2 * ctx.radius),
        }

    return curvature_refraction


@BOOK.right(lambda rng: ((t(rng.uniform(0, 60, (6, 5))), t(7.0), t(23.0)), {}))
def path_costs():
    @pb.autograd_function
    def path_costs(ctx, costs, small, large):
        """Costs of disparities gathered along a path of pixels, as in semi-global matching.

        costs: (pixels, disparities); small: penalty of a step by one, large: of any other step.
        """
        C, P1, P2 = costs.numpy(), small.item(), large.item()
        L, choices, bests = C.copy(), [], []
        for k in range(1, len(C)):
            before = np.pad(L[k - 1], 1, constant_values=np.inf)
            best = int(L[k - 1].argmin())
            top = np.full(C.shape[1], L[k - 1, best] + P2)
            options = np.stack([before[1:-1], before[:-2] + P1, before[2:] + P1, top])
            choices.append(options.argmin(axis=0))
            bests.append(best)
            L[k] += options.min(axis=0) - L[k - 1, best]
        ctx.choices, ctx.bests = choices, bests
        return pb.asarray(L)

    @path_costs.backward
    @pb.once_differentiable
    def _(ctx, g):
        to_L = g.numpy().copy()
        by_small = by_large = 0.0
        for k in range(len(to_L) - 1, 0, -1):
            flow, choice, best = to_L[k], ctx.choices[k - 1], ctx.bests[k - 1]
            came = np.arange(len(flow)) + np.array([0, -1, 1, 0])[choice]
            came[choice == 3] = best
            np.add.at(to_L[k - 1], came, flow)
            to_L[k - 1, best] -= flow.sum()
            by_small += flow[(choice == 1) | (choice == 2)].sum()
            by_large += flow[choice == 3].sum()
        return {"costs": pb.asarray(to_L), "small": by_small, "large": by_large}

    return path_costs


@BOOK.right(
    lambda rng: (
        (t(np.array([620.0, 700.0, 810.0, 2600.0])), t(rng.uniform(1400, 1900, 4)), t(0.153)),
        {"terrain": np.array([310.0, 355.0, 420.0, 300.0])},
    )
)
def forward_overlap():
    def forward(ctx, base, altitude, focal, terrain=0.0, side=0.23):
        """Overlap of successive photos as a part of their side, 0 where they do not meet."""
        b, above, f = base.numpy(), altitude.numpy() - terrain, focal.item()
        if (above <= 0).any():
            raise ValueError("the aircraft is below the terrain")
        gap = b * f / (side * above)
        ctx.save_for_backward(gap=gap, rate=f / (side * above), above=above, meet=gap < 1)
        ctx.f = f
        return pb.asarray(np.maximum(1 - gap, 0.0))

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        flow = g.numpy() * s.meet
        return {
            "base": pb.asarray(-flow * s.rate),
            "altitude": pb.asarray(flow * s.gap / s.above),
            "focal": -(flow @ s.gap) / ctx.f,
        }

    return pb.autograd_function(forward, backward, name="forward_overlap")
