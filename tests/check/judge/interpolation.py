"""Interpolation: tables, linear and cubic pieces, splines, images and grids."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

import pullback as pb

from .entries import (
    AXIS,
    BATCH,
    FACTOR,
    MISSING,
    REPEATED,
    SECOND,
    SIGN,
    SWAPPED,
    UNSORTED,
    Book,
    at,
    t,
)

BOOK = Book("interpolation")


def knots_values_queries(rng, n=6, m=5):
    knots = np.cumsum(0.5 + rng.random(n))
    queries = np.sort(knots[0] + (knots[-1] - knots[0]) * (0.05 + 0.9 * rng.random(m)))
    return t(queries), knots, t(rng.normal(size=n))


def cell(knots, x):
    return np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)


@BOOK.wrong(
    lambda rng: (knots_values_queries(rng), {}),
    "the weights of the two neighbouring values are exchanged in backward",
    SWAPPED,
    r"neighbou?r|\bweights?\b|left and right",
)
def interp_linear():
    @pb.autograd_function
    def interp_linear(ctx, x: pb.Tensor, knots: np.ndarray, values: pb.Tensor) -> pb.Tensor:
        """Piecewise linear; x: (m,), knots: (n,) increasing, values: (n,)."""
        xn, v = x.numpy(), values.numpy()
        k = cell(knots, xn)
        width = knots[k + 1] - knots[k]
        w = (xn - knots[k]) / width
        ctx.save_for_backward(k=k, w=w, slope=(v[k + 1] - v[k]) / width, n=len(v))
        return pb.asarray((1 - w) * v[k] + w * v[k + 1])

    @interp_linear.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        grad_values = np.zeros(s.n)
        np.add.at(grad_values, s.k, s.w * g)
        np.add.at(grad_values, s.k + 1, (1 - s.w) * g)
        return {"x": pb.asarray(s.slope * g), "values": pb.asarray(grad_values)}

    return interp_linear


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(7, 3))), np.array([5, 0, 3])), {}),
    "the gradients of a repeated row are not added up",
    REPEATED,
    where="repeated indices",
    shows=lambda rng: ((t(rng.normal(size=(7, 3))), np.array([5, 0, 5])), {}),
)
def table_rows():
    def forward(ctx, table, rows):
        ctx.rows, ctx.shape = rows, table.shape
        return pb.asarray(table.numpy()[rows])

    @pb.once_differentiable
    def backward(ctx, grad):
        out = np.zeros(ctx.shape)
        out[ctx.rows] += grad.numpy()
        return {"table": pb.asarray(out)}

    return pb.autograd_function(forward, backward, name="table_rows")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(5, 6))), t(0.3 + 3.4 * rng.random((4, 2)))), {}),
    "the gradients of the row and of the column coordinate are exchanged",
    SWAPPED,
    AXIS,
    r"\bcolumns?\b",
)
def bilinear_sample():
    @pb.autograd_function
    def bilinear_sample(ctx, image, points):
        """Sample image: (h, w) at points: (m, 2), given as row and column."""
        img, p = image.numpy(), points.numpy()
        i, j = np.floor(p).astype(int).T
        a, b = (p - np.floor(p)).T
        ctx.save_for_backward(image=image, i=i, j=j, a=a, b=b)
        top = (1 - b) * img[i, j] + b * img[i, j + 1]
        low = (1 - b) * img[i + 1, j] + b * img[i + 1, j + 1]
        return pb.asarray((1 - a) * top + a * low)

    @bilinear_sample.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        i, j, a, b, img = s.i, s.j, s.a, s.b, s.image.numpy()
        grad = np.zeros_like(img)
        np.add.at(grad, (i, j), gn * (1 - a) * (1 - b))
        np.add.at(grad, (i, j + 1), gn * (1 - a) * b)
        np.add.at(grad, (i + 1, j), gn * a * (1 - b))
        np.add.at(grad, (i + 1, j + 1), gn * a * b)
        by_column = (1 - a) * (img[i, j + 1] - img[i, j]) + a * (img[i + 1, j + 1] - img[i + 1, j])
        by_row = (1 - b) * (img[i + 1, j] - img[i, j]) + b * (img[i + 1, j + 1] - img[i, j + 1])
        points = gn[:, None] * np.stack([by_column, by_row], axis=1)
        return {"image": pb.asarray(grad), "points": pb.asarray(points)}

    return bilinear_sample


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(1, 4, 5))), t(0.2 + 2.5 * rng.random((1, 6, 2)))), {}),
    "only the first image of a batch gets a gradient",
    BATCH,
    r"first (image|entry|row|sample)",
    where="batch > 1",
    shows=lambda rng: ((t(rng.normal(size=(3, 4, 5))), t(0.2 + 2.5 * rng.random((3, 6, 2)))), {}),
)
def grid_sample():
    def corners(p):
        base = np.floor(p).astype(int)
        a, b = np.moveaxis(p - base, -1, 0)
        for di in (0, 1):
            for dj in (0, 1):
                wa, wb = (a if di else 1 - a), (b if dj else 1 - b)
                signs = (1 if di else -1), (1 if dj else -1)
                yield base[..., 0] + di, base[..., 1] + dj, wa, wb, signs

    def forward(ctx, images: pb.Tensor, grid: pb.Tensor) -> pb.Tensor:
        """images: (b, h, w), grid: (b, m, 2) in pixels; returns (b, m)."""
        img, p = images.numpy(), grid.numpy()
        ctx.save_for_backward(images=images, grid=grid)
        n = np.arange(len(img))[:, None]
        return pb.asarray(sum(wa * wb * img[n, i, j] for i, j, wa, wb, _ in corners(p)))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        img, p = (v.numpy() for v in ctx.saved_tensors)
        g, n = grad_output.numpy(), np.arange(len(img))[:, None]
        grad_images, grad_grid = np.zeros_like(img), np.zeros_like(p)
        for i, j, wa, wb, (sa, sb) in corners(p):
            np.add.at(grad_images[0], (i[0], j[0]), (wa * wb * g)[0])
            grad_grid[..., 0] += g * sa * wb * img[n, i, j]
            grad_grid[..., 1] += g * sb * wa * img[n, i, j]
        return pb.asarray(grad_images), pb.asarray(grad_grid)

    return pb.autograd_function(forward, backward, name="grid_sample")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=4)), t(rng.random(5))), {}),
    "the derivative by the position lacks the factor 1 / spacing",
    FACTOR,
    where="spacing other than 1",
    shows=lambda rng: ((t(rng.normal(size=4)), t(0.6 * rng.random(5))), {"spacing": 0.25}),
)
def catmull_rom():
    @pb.autograd_function
    def catmull_rom(ctx, values, x, spacing: float = 1.0):
        """Cubic through values at 0, 1, 2, 3 times spacing, taken between its ends."""
        u = x.numpy() / spacing
        k = np.clip(np.floor(u).astype(int), 0, len(values) - 2)
        w = u - k
        basis = np.stack([-w + 2 * w**2 - w**3, 2 - 5 * w**2 + 3 * w**3, w + 4 * w**2 - 3 * w**3])
        slope = np.stack([-1 + 4 * w - 3 * w**2, -10 * w + 9 * w**2, 1 + 8 * w - 9 * w**2])
        basis = np.concatenate([basis, [w**3 - w**2]]) / 2
        slope = np.concatenate([slope, [3 * w**2 - 2 * w]]) / 2
        at = np.clip(k + np.arange(-1, 3)[:, None], 0, len(values) - 1)
        v = values.numpy()[at]
        ctx.save_for_backward(at=at, basis=basis, slope=(slope * v).sum(axis=0), n=len(values))
        return pb.asarray((basis * v).sum(axis=0))

    @catmull_rom.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        grad = np.zeros(s.n)
        np.add.at(grad, s.at, s.basis * g.numpy())
        return {"values": pb.asarray(grad), "x": g * pb.asarray(s.slope)}

    return catmull_rom


def second_derivatives(n):
    """Return the matrix from values at 0..n-1 to the natural spline's second derivatives."""
    T = np.diag(np.full(n, 4.0)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    D = 6 * (np.eye(n, k=1) - 2 * np.eye(n) + np.eye(n, k=-1))
    T[0], T[-1], D[0], D[-1] = 0, 0, 0, 0
    T[0, 0] = T[-1, -1] = 1
    return np.linalg.solve(T, D)


def spline_parts(v, M, u):
    k = np.clip(np.floor(u).astype(int), 0, len(v) - 2)
    b = u - k
    a = 1 - b
    m = M @ v
    value = a * v[k] + b * v[k + 1] + ((a**3 - a) * m[k] + (b**3 - b) * m[k + 1]) / 6
    slope = v[k + 1] - v[k] + ((1 - 3 * a**2) * m[k] + (3 * b**2 - 1) * m[k + 1]) / 6
    return k, a, b, value, slope


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=6)), t(5 * rng.random(4))), {}),
    "the term through the spline's second derivatives is missing in the gradient of the values",
    MISSING,
    r"\bterm\b",
)
def natural_spline():
    @pb.autograd_function
    def natural_spline(ctx, values, x):
        M = second_derivatives(len(values))
        k, a, b, out, slope = spline_parts(values.numpy(), M, x.numpy())
        ctx.save_for_backward(k=k, a=a, b=b, slope=slope, n=len(values))
        return pb.asarray(out)

    @natural_spline.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        grad = np.zeros(s.n)
        np.add.at(grad, s.k, s.a * gn)
        np.add.at(grad, s.k + 1, s.b * gn)
        return {"values": pb.asarray(grad), "x": pb.asarray(gn * s.slope)}

    return natural_spline


@BOOK.right(lambda rng: ((t(rng.normal(size=6)), t(5 * rng.random(4))), {}))
def cubic_spline():
    def forward(ctx, values: pb.Tensor, x: pb.Tensor) -> pb.Tensor:
        """Natural cubic spline through values: (n,) at 0, 1, ..., n - 1, taken at x: (m,)."""
        M = second_derivatives(len(values))
        k, a, b, out, slope = spline_parts(values.numpy(), M, x.numpy())
        ctx.save_for_backward(k=k, a=a, b=b, slope=slope, M=M)
        return pb.asarray(out)

    @pb.once_differentiable
    def backward(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        grad, curve = np.zeros(len(s.M)), np.zeros(len(s.M))
        np.add.at(grad, s.k, s.a * gn)
        np.add.at(grad, s.k + 1, s.b * gn)
        np.add.at(curve, s.k, (s.a**3 - s.a) / 6 * gn)
        np.add.at(curve, s.k + 1, (s.b**3 - s.b) / 6 * gn)
        return {"values": pb.asarray(grad + s.M.T @ curve), "x": pb.asarray(gn * s.slope)}

    return pb.autograd_function(forward, backward, name="cubic_spline")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=8)), t(4 * rng.random(5))), {}),
    "the second derivative is wrong: the basis is computed from detached arrays",
    SECOND,
    where="second derivative",
)
def bspline_curve():
    @pb.autograd_function
    def bspline_curve(ctx, control, u):
        """Uniform cubic B-spline with control: (n,), taken at u: (m,) in [0, n - 3]."""
        at, B, _ = pieces(u.numpy(), len(control))
        ctx.save_for_backward(control=control, u=u)
        return pb.asarray((B * control.numpy()[at]).sum(axis=0))

    def pieces(u, n):
        k = np.clip(np.floor(u).astype(int), 0, n - 4)
        w = u - k
        third = -3 * w**3 + 3 * w**2 + 3 * w + 1
        B = np.stack([(1 - w) ** 3, 3 * w**3 - 6 * w**2 + 4, third, w**3]) / 6
        slope = np.stack([-((1 - w) ** 2), 3 * w**2 - 4 * w, -3 * w**2 + 2 * w + 1, w**2]) / 2
        return k + np.arange(4)[:, None], B, slope

    @bspline_curve.backward
    def _(ctx, g):
        control = ctx.saved_variables.control
        at, B, slope = pieces(ctx.saved_variables.u.detach().numpy(), len(control))
        onehot = (at[..., None] == np.arange(len(control))).astype(float)
        weights = pb.asarray(B[..., None] * onehot)
        slopes = pb.asarray(slope[..., None] * onehot)
        return {
            "control": (weights * g[None, :, None]).sum(dim=(0, 1)),
            "u": g * (slopes * control).sum(dim=(0, 2)),
        }

    return bspline_curve


@BOOK.right(lambda rng: (knots_values_queries(rng), {}))
def interp():
    @pb.autograd_function
    def interp(ctx, x, knots, values):
        """As numpy.interp: linear between knots, constant outside; knots must increase."""
        if len(knots) < 2 or np.any(np.diff(knots) <= 0):
            raise ValueError("interp: knots must increase, and be at least two")
        xn, v = x.numpy(), values.numpy()
        k = cell(knots, xn)
        width = knots[k + 1] - knots[k]
        inside = (xn >= knots[0]) & (xn <= knots[-1])
        w = np.clip((xn - knots[k]) / width, 0.0, 1.0)
        ctx.save_for_backward(k=k, w=w, slope=inside * (v[k + 1] - v[k]) / width, n=len(v))
        return pb.asarray((1 - w) * v[k] + w * v[k + 1])

    @interp.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, g = ctx.saved_variables, g.numpy()
        grad = np.zeros(s.n)
        np.add.at(grad, s.k, (1 - s.w) * g)
        np.add.at(grad, s.k + 1, s.w * g)
        return {"x": pb.asarray(s.slope * g), "values": pb.asarray(grad)}

    return interp


def unsorted_queries(rng):
    x, knots, values = knots_values_queries(rng)
    return (t(x.detach().numpy()[[3, 0, 4, 1, 2]]), knots, values), {}


@BOOK.wrong(
    lambda rng: (knots_values_queries(rng), {}),
    "queries are sorted in forward; their gradients come back in the sorted order",
    UNSORTED,
    where="queries not sorted",
    shows=unsorted_queries,
)
def interp_sorted():
    @pb.autograd_function
    def interp_sorted(ctx, points, knots, values):
        order = np.argsort(points.numpy())
        x, v = points.numpy()[order], values.numpy()
        k = np.array([min(max(bisect_right(knots, p) - 1, 0), len(v) - 2) for p in x])
        width = knots[k + 1] - knots[k]
        w = (x - knots[k]) / width
        out = np.empty_like(x)
        out[order] = (1 - w) * v[k] + w * v[k + 1]
        slope = (v[k + 1] - v[k]) / width
        ctx.save_for_backward(order=order, k=k, w=w, slope=slope, n=len(v))
        return pb.asarray(out)

    @interp_sorted.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        gs = g.numpy()[s.order]
        grad = np.zeros(s.n)
        np.add.at(grad, s.k, (1 - s.w) * gs)
        np.add.at(grad, s.k + 1, s.w * gs)
        return {"points": pb.asarray(gs * s.slope), "values": pb.asarray(grad)}

    return interp_sorted


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 8))), 4), {}),
    "backward resamples along the last axis whatever `axis` is",
    AXIS,
    at("axis"),
    where="axis other than -1",
    shows=lambda rng: ((t(rng.normal(size=(6, 6))), 6), {"axis": 0}),
)
def resize_linear():
    def weights(n, m):
        at = np.linspace(0, n - 1, m) * 0.9
        k = np.minimum(at.astype(int), n - 2)
        W = np.zeros((m, n))
        W[np.arange(m), k], W[np.arange(m), k + 1] = 1 - (at - k), at - k
        return W

    def forward(ctx, signal, size, axis=-1):
        x = signal.numpy()
        W = weights(x.shape[axis], size)
        ctx.W = W
        return pb.asarray(np.moveaxis(np.moveaxis(x, axis, -1) @ W.T, -1, axis))

    @pb.once_differentiable
    def backward(ctx, grad):
        return {"signal": pb.asarray(grad.numpy() @ ctx.W)}

    return pb.autograd_function(forward, backward, name="resize_linear")


@BOOK.right(lambda rng: ((t(rng.normal(size=(4, 5))), t(0.2 + 2.5 * rng.random((6, 2)))), {}))
def image_sample():
    class Bilinear(pb.Function):
        @staticmethod
        def forward(ctx, image, points, padding: str = "edge"):
            """image: (h, w), points: (m, 2); padding: edge or zeros."""
            if padding not in ("edge", "zeros"):
                raise ValueError("padding must be edge or zeros")
            mode = "edge" if padding == "edge" else "constant"
            img, p = np.pad(image.numpy(), 1, mode=mode), points.numpy() + 1
            i, j = np.floor(p).astype(int).T
            if (
                i.min() < 0
                or j.min() < 0
                or (i > len(img) - 2).any()
                or (j > img.shape[1] - 2).any()
            ):
                raise IndexError("a point lies outside the image")
            a, b = (p - np.floor(p)).T
            ctx.save_for_backward(img=img, i=i, j=j, a=a, b=b, padding=padding)
            top = (1 - b) * img[i, j] + b * img[i, j + 1]
            return pb.asarray((1 - a) * top + a * ((1 - b) * img[i + 1, j] + b * img[i + 1, j + 1]))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s, gn = ctx.saved_variables, g.numpy()
            img, i, j, a, b = s.img, s.i, s.j, s.a, s.b
            full = np.zeros_like(img)
            for di, wa in ((0, 1 - a), (1, a)):
                for dj, wb in ((0, 1 - b), (1, b)):
                    np.add.at(full, (i + di, j + dj), gn * wa * wb)
            if s.padding == "edge":
                full[1] += full[0]
                full[-2] += full[-1]
                full[:, 1] += full[:, 0]
                full[:, -2] += full[:, -1]
            row = (1 - b) * (img[i + 1, j] - img[i, j]) + b * (img[i + 1, j + 1] - img[i, j + 1])
            col = (1 - a) * (img[i, j + 1] - img[i, j]) + a * (img[i + 1, j + 1] - img[i + 1, j])
            points = gn[:, None] * np.stack([row, col], axis=1)
            return {"image": pb.asarray(full[1:-1, 1:-1].copy()), "points": pb.asarray(points)}

    return Bilinear.apply


@BOOK.right(lambda rng: ((t(4.9 * rng.random(6)), t(rng.normal(size=5))), {}))
def nearest_lookup():
    @pb.autograd_function
    def nearest_lookup(ctx, position, table):
        """Take the entry of table: (n,) below each position; constant between integers."""
        k = np.floor(position.numpy()).astype(int)
        if k.min() < 0 or k.max() >= len(table):
            raise IndexError("nearest_lookup: a position is outside the table")
        ctx.save_for_backward(k=k, n=len(table))
        return pb.asarray(table.numpy()[k]), pb.asarray(k)

    @nearest_lookup.backward
    @pb.once_differentiable
    def _(ctx, g_value, g_index):
        s = ctx.saved_variables
        grad = np.bincount(s.k, weights=g_value.numpy(), minlength=s.n)
        return {"position": pb.zeros(len(s.k)), "table": pb.asarray(grad)}

    return nearest_lookup


@BOOK.right(lambda rng: ((t(rng.normal(size=(6, 2))), t(np.sort(rng.random(4)))), {}))
def bezier():
    @pb.autograd_function
    def bezier(ctx, points, s):
        """De Casteljau's curve of points: (n, d) at s: (m,)."""
        if points.shape[0] < 2:
            raise ValueError("bezier: at least two points are required")
        ctx.save_for_backward(points=points, s=s)
        return casteljau(points, s)

    def casteljau(points, s):
        level = points[None, :, :] + pb.zeros(s.shape[0], 1, 1, dtype=points.dtype)
        w = s[:, None, None]
        while level.shape[1] > 1:
            level = (1 - w) * level[:, :-1] + w * level[:, 1:]
        return level[:, 0]

    @bezier.backward
    def _(ctx, g):
        points, s = ctx.saved_variables.points, ctx.saved_variables.s
        n = points.shape[0]
        slope = (n - 1) * casteljau(points[1:] - points[:-1], s)
        basis = casteljau(pb.asarray(np.eye(n)), s)
        return {"points": basis.t() @ g, "s": (g * slope).sum(dim=1)}

    return bezier


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=4)), t(rng.normal(size=4)), t(rng.random(5))), {}),
    "the gradient of the slopes has the wrong sign at the right end",
    SIGN,
)
def hermite():
    @pb.autograd_function
    def hermite(ctx, values, slopes, u):
        """Cubic Hermite between values[0] and values[1] and so on; u: (m,) in [0, 1]."""
        ctx.save_for_backward(values=values, slopes=slopes, u=u)
        h = parts(u)
        return h[0] * values[:-1] + h[1] * values[1:] + h[2] * slopes[:-1] + h[3] * slopes[1:]

    def parts(u):
        u = u[:, None]
        return (
            2 * u**3 - 3 * u**2 + 1,
            3 * u**2 - 2 * u**3,
            u**3 - 2 * u**2 + u,
            u**3 - u**2,
        )

    @hermite.backward
    def _(ctx, g):
        v, m, u = ctx.saved_tensors
        h = [(g * p).sum(dim=0) for p in parts(u)]
        w = u[:, None]
        slope = (6 * w**2 - 6 * w) * (v[:-1] - v[1:])
        slope = slope + (3 * w**2 - 4 * w + 1) * m[:-1] + (3 * w**2 - 2 * w) * m[1:]
        none = pb.zeros(1, dtype=g.dtype)
        return {
            "values": pb.concat([h[0], none]) + pb.concat([none, h[1]]),
            "slopes": pb.concat([h[2], none]) - pb.concat([none, h[3]]),
            "u": (g * slope).sum(dim=1),
        }

    return hermite
