"""Cartography: projections, distortion, labels, generalisation, terrain, grids, colours of maps."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import AXIS, FACTOR, MISSING, SHIFT, SWAPPED, Book, at, mends, t

BOOK = Book("cartography")

EARTH = 6371.0  # km


def towns(rng):
    return t(rng.uniform(-12, 28, 5)), t(rng.uniform(36, 61, 5))


@BOOK.wrong(
    lambda rng: (towns(rng), {}),
    "latitude is given in degrees, but its gradient is per radian: a factor pi / 180 is missing",
    FACTOR,
    r"degrees?|radian|pi ?/ ?180|57\.29|0\.01745|conver(?:t|sion)",
    mends("np.radians(", "np.pi / 180", "np.deg2rad(", "DEGREE"),
)
def mercator_sheet():
    @pb.autograd_function
    def mercator_sheet(ctx, longitude, latitude, centre=0.0):
        """Mercator coordinates in km of a sphere; longitude, latitude: (n,) in degrees."""
        phi = latitude.numpy() * np.pi / 180
        x = EARTH * (longitude.numpy() - centre) * np.pi / 180
        ctx.save_for_backward(phi=phi)
        return pb.asarray(x), pb.asarray(EARTH * np.arctanh(np.sin(phi)))

    @mercator_sheet.backward
    @pb.once_differentiable
    def _(ctx, g_x, g_y):
        scale = EARTH / np.cos(ctx.saved_variables.phi)
        per_degree = EARTH * 0.017453292519943295
        return {
            "longitude": pb.asarray(g_x.numpy() * per_degree),
            "latitude": pb.asarray(g_y.numpy() * scale),
        }

    return mercator_sheet


def outline(rng, n=8):
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    radius = rng.uniform(14, 22, n)
    return t(np.stack([410 + radius * np.cos(angle), 230 + radius * np.sin(angle)], axis=1))


@BOOK.wrong(
    lambda rng: ((outline(rng),), {"closed": False}),
    "in a closed line the first and the last point are neighbours: that segment is missing",
    MISSING,
    at("closed"),
    SHIFT,
    r"\b(?:first|last|closing) (?:point|segment|side|vertex|edge|row|and)|\bwrap",
    mends("if ctx.closed", "ctx.closed", "s.closed", "-unit[-1]", "grad[0] += unit[-1]"),
    where="closed is True",
    shows=lambda rng: ((outline(rng),), {"closed": True}),
)
def length_on_map():
    @pb.autograd_function
    def length_on_map(ctx, points, closed=False, scale=1.0):
        """Length of a line through points: (n, 2), times the scale."""
        x = points.numpy()
        steps = np.diff(x, axis=0)
        if closed:
            steps = np.concatenate([steps, x[:1] - x[-1:]])
        lengths = np.hypot(steps[:, 0], steps[:, 1])
        ctx.save_for_backward(unit=scale * steps / lengths[:, None])
        ctx.n = len(x)
        return pb.asarray(np.asarray(scale * lengths.sum()))

    @length_on_map.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        unit = grad_output.item() * ctx.saved_variables.unit[: ctx.n - 1]
        grad = np.zeros((ctx.n, 2))
        grad[1:] += unit
        grad[:-1] -= unit
        return {"points": pb.asarray(grad)}

    return length_on_map


def relief(rng, rows, columns):
    return (t(240 + np.cumsum(rng.normal(0, 9, (rows, columns)), axis=0)),)


@BOOK.wrong(
    lambda rng: (relief(rng, 4, 5), {"cell": (25.0, 25.0)}),
    "the sides of a cell are swapped: rows are divided by the width and columns by the height",
    SWAPPED,
    AXIS,
    at("cell"),
    FACTOR,
    r"(?:cell|width|height|spacing|side)s?.{0,30}(?:differ|not equal|unequal|square)",
    mends("by_down / height", "by_right / width", "/ (2 * height)", "/ (2 * width)"),
    where="a cell is not square",
    shows=lambda rng: (relief(rng, 4, 5), {"cell": (25.0, 40.0)}),
)
def mean_steepness():
    @pb.autograd_function
    def mean_steepness(ctx, heights, cell=(10.0, 10.0)):
        """Mean squared slope within a grid; cell: height and width of one in m."""
        z, (height, width) = heights.numpy(), cell
        down = (z[2:, 1:-1] - z[:-2, 1:-1]) / (2 * height)
        right = (z[1:-1, 2:] - z[1:-1, :-2]) / (2 * width)
        ctx.save_for_backward(down=down, right=right)
        ctx.cell, ctx.shape = cell, z.shape
        return pb.asarray(np.asarray((down**2 + right**2).mean()))

    @mean_steepness.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        (down, right), (width, height) = ctx.saved_variables, ctx.cell
        grad, top = np.zeros(ctx.shape), grad_output.item() / down.size
        grad[2:, 1:-1] += top * down / height
        grad[:-2, 1:-1] -= top * down / height
        grad[1:-1, 2:] += top * right / width
        grad[1:-1, :-2] -= top * right / width
        return {"heights": pb.asarray(grad)}

    return mean_steepness


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(-9, 30, 6)), t(rng.uniform(38, 62, 6))),
        {"parallels": (43.0, 62.0), "origin": (10.0, 52.0)},
    )
)
def conformal_conic():
    @pb.autograd_function
    def conformal_conic(ctx, longitude, latitude, parallels, origin):
        """Lambert's conformal conic map of a sphere, in km: (n, 2).

        longitude, latitude: (n,) in degrees; parallels: the two of true length (they may be the
        same); origin: longitude and latitude of the point (0, 0).
        """
        first, second, centre, base = np.radians([*parallels, *origin])
        stretch = lambda phi: np.tan(np.pi / 4 + phi / 2)  # noqa: E731
        if first == second:
            n = np.sin(first)
        else:
            n = np.log(np.cos(first) / np.cos(second))
            n /= np.log(stretch(second) / stretch(first))
        whole = EARTH * np.cos(first) * stretch(first) ** n / n
        phi = np.radians(latitude.numpy())
        rho, theta = whole / stretch(phi) ** n, n * (np.radians(longitude.numpy()) - centre)
        ctx.save_for_backward(rho=rho, theta=theta, phi=phi)
        ctx.cone = n
        y = whole / stretch(base) ** n - rho * np.cos(theta)
        return pb.asarray(np.stack([rho * np.sin(theta), y], axis=1))

    @conformal_conic.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, (gx, gy) = ctx.saved_variables, grad_output.numpy().T
        sin, cos = np.sin(s.theta), np.cos(s.theta)
        by_theta = s.rho * (gx * cos + gy * sin)
        by_rho = gx * sin - gy * cos
        return {
            "longitude": pb.asarray(np.radians(ctx.cone * by_theta)),
            "latitude": pb.asarray(np.radians(-by_rho * ctx.cone * s.rho / np.cos(s.phi))),
        }

    return conformal_conic


@BOOK.right(lambda rng: ((t(rng.uniform(-170, 170, 6)), t(rng.uniform(-80, 80, 6))), {}))
def mollweide():
    @pb.autograd_function
    def mollweide(ctx, longitude, latitude):
        """Mollweide's equal-area map of the unit sphere; latitudes within 89 degrees."""
        lon, lat = np.radians(longitude.numpy()), np.radians(latitude.numpy())
        if (np.abs(latitude.numpy()) > 89).any():
            raise ValueError("too close to a pole")
        theta = lat.copy()
        for _ in range(100):
            step = (2 * theta + np.sin(2 * theta) - np.pi * np.sin(lat)) / (4 * np.cos(theta) ** 2)
            theta -= step
            if np.abs(step).max(initial=0) < 1e-14:
                break
        ctx.save_for_backward(lon=lon, theta=theta, turn=np.pi * np.cos(lat))
        x = 2 * np.sqrt(2) / np.pi * lon * np.cos(theta)
        return pb.asarray(x), pb.asarray(np.sqrt(2) * np.sin(theta))

    @mollweide.backward
    @pb.once_differentiable
    def _(ctx, g_x, g_y):
        s = ctx.saved_variables
        gx, gy, k = g_x.numpy(), g_y.numpy(), 2 * np.sqrt(2) / np.pi
        by_theta = np.sqrt(2) * gy * np.cos(s.theta) - k * gx * s.lon * np.sin(s.theta)
        by_lat = by_theta * s.turn / (4 * np.cos(s.theta) ** 2)
        return {
            "longitude": pb.asarray(np.radians(k * gx * np.cos(s.theta))),
            "latitude": pb.asarray(np.radians(by_lat)),
        }

    return mollweide


ROBINSON = np.array(
    [
        *(1.0, 0.9986, 0.9954, 0.99, 0.9822, 0.973, 0.96, 0.9427, 0.9216, 0.8962),
        *(0.8679, 0.835, 0.7986, 0.7597, 0.7186, 0.6732, 0.6213, 0.5722, 0.5322),
    ]
)


@BOOK.right(lambda rng: ((t(rng.uniform(-88, 88, 7)), t(rng.uniform(-175, 175, 7))), {}))
def robinson_x():
    @pb.autograd_function
    def robinson_x(ctx, latitude, longitude):
        a = np.abs(latitude.numpy()) / 5
        k = np.minimum(a.astype(int), len(ROBINSON) - 2)
        slope = ROBINSON[k + 1] - ROBINSON[k]
        ctx.width = ROBINSON[k] + (a - k) * slope
        ctx.by_latitude = slope / 5 * np.sign(latitude.numpy())
        ctx.save_for_backward(longitude=longitude)
        return pb.asarray(0.8487 * ctx.width * np.radians(longitude.numpy()))

    @robinson_x.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = 0.8487 * np.radians(g.numpy())
        lon = ctx.saved_variables.longitude.numpy()
        return pb.asarray(gn * lon * ctx.by_latitude), pb.asarray(gn * ctx.width)

    return robinson_x


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0, 70, (6, 2))), t(rng.uniform(8, 30, 6))),
        {"height": 9.0, "anchor": rng.uniform(0, 70, (6, 2)), "pull": 0.02},
    )
)
def label_overlap():
    @pb.autograd_function
    def label_overlap(ctx, centre, width, anchor, height=8.0, pull=0.0):
        """Area in mm2 that labels hide of each other, and a spring to their anchors."""
        x, w = centre.numpy(), width.numpy()
        first, second = np.triu_indices(len(x), 1)
        apart = x[first] - x[second]
        across = (w[first] + w[second]) / 2 - np.abs(apart[:, 0])
        up = height - np.abs(apart[:, 1])
        hit = (across > 0) & (up > 0)
        ctx.pairs = first[hit], second[hit]
        ctx.sides = apart[hit], across[hit], up[hit]
        ctx.spring, ctx.n = 2 * pull * (x - anchor), len(x)
        area = (across * up)[hit].sum() + pull * ((x - anchor) ** 2).sum()
        return pb.asarray(np.asarray(area))

    @label_overlap.backward
    @pb.once_differentiable
    def _(ctx, g):
        (first, second), (apart, across, up) = ctx.pairs, ctx.sides
        push = -np.sign(apart) * np.stack([up, across], axis=1)
        by_x, by_w = ctx.spring.copy(), np.zeros(ctx.n)
        np.add.at(by_x, first, push)
        np.subtract.at(by_x, second, push)
        np.add.at(by_w, first, up / 2)
        np.add.at(by_w, second, up / 2)
        return {"centre": pb.asarray(g.item() * by_x), "width": pb.asarray(g.item() * by_w)}

    return label_overlap


@BOOK.right(
    lambda rng: (
        (t(np.stack([np.linspace(0, 900, 12), rng.normal(300, 60, 12)], axis=1)),),
        {"tolerance": 55.0},
    )
)
def simplification_error():
    def distances(x, a, b):
        chord = x[b] - x[a]
        offset = x[a : b + 1] - x[a]
        return (chord[0] * offset[:, 1] - chord[1] * offset[:, 0]) / np.hypot(*chord)

    def split(x, a, b, tolerance):
        far = np.abs(distances(x, a, b))
        worst = a + int(far.argmax())
        if far.max() <= tolerance or b - a < 2:
            return [(a, b)]
        return split(x, a, worst, tolerance) + split(x, worst, b, tolerance)

    @pb.autograd_function
    def simplification_error(ctx, line, tolerance):
        """Squared distances in m2 of points: (n, 2) to what Douglas and Peucker leave of the line.

        No two points may be the same.
        """
        x = line.numpy()
        ctx.parts = split(x, 0, len(x) - 1, tolerance)
        ctx.save_for_backward(line=line)
        total = sum((distances(x, a, b) ** 2).sum() for a, b in ctx.parts)
        return pb.asarray(np.asarray(total)), pb.asarray(np.array([a for a, _ in ctx.parts]))

    @simplification_error.backward
    @pb.once_differentiable
    def _(ctx, g, g_kept):
        x = ctx.saved_variables.line.numpy()
        grad = np.zeros_like(x)
        for a, b in ctx.parts:
            d, chord, offset = distances(x, a, b), x[b] - x[a], x[a : b + 1] - x[a]
            length = np.hypot(*chord)
            normal = np.array([-chord[1], chord[0]]) / length
            weight = 2 * g.item() * d
            by_offset = weight[:, None] * normal
            turned = np.stack([offset[:, 1], -offset[:, 0]], axis=1) / length
            by_chord = weight @ turned - (weight @ d) * chord / length**2
            grad[a : b + 1] += by_offset
            grad[a] -= by_offset.sum(axis=0) + by_chord
            grad[b] += by_chord
        return {"line": pb.asarray(grad)}

    return simplification_error


@BOOK.right(lambda rng: (relief(rng, 5, 6), {"azimuth": 315.0, "exaggeration": 2.0}))
def hill_shading():
    @pb.autograd_function
    def hill_shading(ctx, heights, cell=25.0, azimuth=315.0, altitude=45.0, exaggeration=1.0):
        """Brightness, 0 to 1, of the cells of a terrain: (rows, columns), north up.

        Slopes are those of Horn; the outermost cells see themselves beyond the edge.
        """
        z = np.pad(heights.numpy(), 1, mode="edge")
        smooth = lambda a, axis: (  # noqa: E731
            np.take(a, range(a.shape[axis] - 2), axis)
            + 2 * np.take(a, range(1, a.shape[axis] - 1), axis)
            + np.take(a, range(2, a.shape[axis]), axis)
        )
        k = exaggeration / (8 * cell)
        east, south = k * smooth(z[:, 2:] - z[:, :-2], 0), k * smooth(z[2:] - z[:-2], 1)
        turn, up = np.radians(azimuth), np.radians(altitude)
        light = np.array([np.sin(turn) * np.cos(up), np.cos(turn) * np.cos(up), np.sin(up)])
        norm = np.sqrt(1 + east**2 + south**2)
        shade = (light[2] - light[0] * east + light[1] * south) / norm
        ctx.save_for_backward(east=east, south=south, norm=norm, shade=shade)
        ctx.light, ctx.k = light, k
        return pb.asarray(np.maximum(shade, 0.0))

    @hill_shading.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, light = ctx.saved_variables, ctx.light
        gn = np.where(s.shade > 0, g.numpy(), 0.0) * ctx.k
        by_east = gn * (-light[0] / s.norm - s.shade * s.east / s.norm**2)
        by_south = gn * (light[1] / s.norm - s.shade * s.south / s.norm**2)
        rows, columns = gn.shape
        by_z = np.zeros((rows + 2, columns + 2))
        for i, w in enumerate((1, 2, 1)):
            by_z[i : i + rows, 2:] += w * by_east
            by_z[i : i + rows, :-2] -= w * by_east
            by_z[2:, i : i + columns] += w * by_south
            by_z[:-2, i : i + columns] -= w * by_south
        # what went to the border goes to the cell that was copied there
        by_z[1] += by_z[0]
        by_z[-2] += by_z[-1]
        by_z[:, 1] += by_z[:, 0]
        by_z[:, -2] += by_z[:, -1]
        return {"heights": pb.asarray(by_z[1:-1, 1:-1].copy())}

    return hill_shading


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0, 2e6, 9)),),
        {"breaks": [2e4, 1e5, 5e5, 1e6], "ramp": rng.uniform(0, 255, (4, 3))},
    )
)
def choropleth_ramp():
    @pb.autograd_function
    def choropleth_ramp(ctx, values, breaks, ramp):
        """Colours: (n, 3) between those at the breaks; the end colours beyond them."""
        edges, v = np.asarray(breaks), values.numpy()
        k = np.clip(np.searchsorted(edges, v, side="right") - 1, 0, len(edges) - 2)
        part = (v - edges[k]) / (edges[k + 1] - edges[k])
        rise = ramp[k + 1] - ramp[k]
        inside = (part > 0) & (part < 1)
        ctx.slope = np.where(inside, 1.0, 0.0)[:, None] * rise / (edges[k + 1] - edges[k])[:, None]
        return pb.asarray(ramp[k] + np.clip(part, 0, 1)[:, None] * rise)

    @choropleth_ramp.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"values": pb.asarray((g.numpy() * ctx.slope).sum(axis=1))}

    return choropleth_ramp


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(2.4e3, 9.8e3, (5, 2))), t(rng.uniform(0, 800, (5, 2)))),
        {"weights": np.array([1.0, 2.0, 1.0, 0.5, 1.0])},
    )
)
def map_fit():
    @pb.autograd_function
    def map_fit(ctx, scanned, true, weights=None):
        """Residuals of the best similarity from scanned to true points, both (n, 2).

        weights: (n,) above 0; residuals are not weighted.
        """
        w = np.ones(len(scanned)) if weights is None else weights
        x, y = scanned.numpy(), true.numpy()
        share = w / w.sum()
        u, v = x - share @ x, y - share @ y
        spread = share @ (u**2).sum(axis=1)
        turned = np.stack([-u[:, 1], u[:, 0]], axis=1)
        a, b = share @ (u * v).sum(axis=1) / spread, share @ (turned * v).sum(axis=1) / spread
        ctx.parts, ctx.share, ctx.spread, ctx.ab = (u, v, turned), share, spread, (a, b)
        return pb.asarray(v - a * u - b * turned)

    @map_fit.backward
    @pb.once_differentiable
    def _(ctx, g):
        (u, v, turned), (a, b), share = ctx.parts, ctx.ab, ctx.share[:, None]
        gn = g.numpy()
        to_a, to_b = -(gn * u).sum() / ctx.spread, -(gn * turned).sum() / ctx.spread
        back = lambda m: np.stack([m[:, 1], -m[:, 0]], axis=1)  # noqa: E731
        by_v = gn + share * (to_a * u + to_b * turned)
        by_u = -a * gn - b * back(gn) + share * (to_a * v + to_b * back(v))
        by_u -= 2 * share * u * (to_a * a + to_b * b)
        return {
            "scanned": pb.asarray(by_u - share * by_u.sum(axis=0)),
            "true": pb.asarray(by_v - share * by_v.sum(axis=0)),
        }

    return map_fit


@BOOK.right(lambda rng: ((outline(rng, 9),), {}))
def centre_of_country():
    @pb.autograd_function
    def centre_of_country(ctx, border):
        x = border.numpy()
        origin = x.mean(axis=0)
        p = x - origin
        q = np.roll(p, -1, axis=0)
        cross = p[:, 0] * q[:, 1] - q[:, 0] * p[:, 1]
        area = cross.sum() / 2
        middle = cross @ (p + q) / (6 * area)
        ctx.save_for_backward(p=p, q=q, cross=cross, middle=middle, area=area)
        return pb.asarray(middle + origin)

    @centre_of_country.backward
    @pb.once_differentiable
    def _(ctx, g):
        p, q, cross, middle, area = ctx.saved_variables
        gn = g.numpy() / (6 * area)
        by_cross = (p + q) @ gn - 3 * middle @ gn
        by_sum = cross[:, None] * gn
        by_p = by_sum + by_cross[:, None] * np.stack([q[:, 1], -q[:, 0]], axis=1)
        by_q = by_sum + by_cross[:, None] * np.stack([-p[:, 1], p[:, 0]], axis=1)
        # the centre moves with the border, so the origin that was taken away does not count
        return {"border": pb.asarray(by_p + np.roll(by_q, 1, axis=0))}

    return centre_of_country


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(-179, 179, 5)), t(rng.uniform(-70, 70, 5))),
        {"home": (174.8, -41.3)},
    )
)
def distance_home():
    def forward(ctx, longitude, latitude, home, radius=EARTH):
        lon, lat = np.radians(longitude.numpy() - home[0]), np.radians(latitude.numpy())
        base = np.radians(home[1])
        h = np.sin((lat - base) / 2) ** 2 + np.cos(lat) * np.cos(base) * np.sin(lon / 2) ** 2
        by_lon = np.cos(lat) * np.cos(base) * np.sin(lon) / 2
        by_lat = np.sin(lat - base) / 2 - np.sin(lat) * np.cos(base) * np.sin(lon / 2) ** 2
        # 2 asin sqrt(h) has the slope 1 / sqrt(h (1 - h)); home itself and its antipode are kinks
        root = np.sqrt(h * (1 - h))
        slope = np.divide(radius, root, out=np.zeros_like(root), where=root > 0)
        ctx.save_for_backward(slope * by_lon, slope * by_lat)
        return pb.asarray(2 * radius * np.arcsin(np.sqrt(h)))

    @pb.once_differentiable
    def backward(ctx, g):
        names = "longitude", "latitude"
        by = (np.radians(g.numpy() * each) for each in ctx.saved_variables)
        return dict(zip(names, map(pb.asarray, by), strict=True))

    return pb.autograd_function(forward, backward, name="distance_home")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1, 90, 6)),),
        {"area": np.array([4.0, 9.0, 2.0, 7.0, 1.5, 5.0]), "neighbours": [(0, 1), (1, 2), (4, 5)]},
    )
)
def cartogram_strain():
    @pb.autograd_function
    def cartogram_strain(ctx, people, area, neighbours):
        """How unequally neighbours must be stretched: squares of the log ratio of densities."""
        first, second = np.array(neighbours, int).reshape(-1, 2).T
        logs = np.log(people.numpy() / area)
        apart = logs[first] - logs[second]
        ctx.save_for_backward(people=people, apart=apart)
        ctx.ends = first, second
        return pb.asarray(np.asarray((apart**2).sum()))

    @cartogram_strain.backward
    @pb.once_differentiable
    def _(ctx, g):
        people, apart = ctx.saved_variables
        flow = np.zeros(people.shape)
        for end, sign in zip(ctx.ends, (2, -2), strict=True):
            np.add.at(flow, end, sign * apart)
        return {"people": pb.asarray(g.item() * flow / people.numpy())}

    return cartogram_strain


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0, 30, (8, 2))), t(np.array(9.5))),
        {"grid": rng.uniform(0, 30, (6, 2)), "counts": rng.integers(1, 9, 8)},
    )
)
def heat_map():
    @pb.autograd_function
    def heat_map(ctx, points, bandwidth, grid, counts=None):
        """Density by the quartic kernel at places: (m, 2), of points: (n, 2) with their counts."""
        h = bandwidth.item()
        if h <= 0:
            raise ValueError("the bandwidth must be positive")
        apart = grid[:, None] - points.numpy()
        square = (apart**2).sum(axis=-1) / h**2
        inside = np.maximum(1 - square, 0.0)
        peak = 3 / (np.pi * h**2) * (1.0 if counts is None else counts)
        ctx.save_for_backward(apart=apart, square=square, inside=inside)
        ctx.h, ctx.peak = h, peak
        return pb.asarray((peak * inside**2).sum(axis=1))

    @heat_map.backward
    @pb.once_differentiable
    def _(ctx, g):
        (apart, square, inside), h = ctx.saved_variables, ctx.h
        flow = g.numpy()[:, None] * ctx.peak * inside
        by_points = 4 / h**2 * (flow[..., None] * apart).sum(axis=0)
        by_h = (flow * (4 * square - 2 * inside)).sum() / h
        return {"points": pb.asarray(by_points), "bandwidth": by_h}

    return heat_map
