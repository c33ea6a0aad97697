"""Geodesy: datums, satellite ranges, tides, tracks, projections, geoid grids, levelling, areas."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, SHIFT, SIGN, Book, at, mends, t

BOOK = Book("geodesy")


def datum(rng):
    points = np.array([[3980.0, 12.0, 4966.0], [4027.0, 307.0, 4920.0], [3656.0, 779.0, 5150.0]])
    return (
        t(points + rng.uniform(-5, 5, (3, 3))),
        t(rng.uniform(-0.4, 0.4, 3)),
        t(rng.uniform(-90, 90, 3)),
        t(rng.uniform(-20, 20)),
    )


@BOOK.wrong(
    lambda rng: (datum(rng), {}),
    "the rotations get the gradient of the position vector convention in both conventions, with "
    "the wrong sign in the other",
    SIGN,
    at("convention"),
    r"\bconvention\b.{0,40}(?:frame|ignor\w+|missing|not used|whatever)|coordinate.frame",
    r"\bturn\b.{0,30}(?:missing|left out|forgot\w*)|(?:missing|without) .{0,12}\bturn\b",
    mends(
        "ctx.turn * stretch",
        "stretch * ctx.turn",
        "turn * stretch",
        "stretch * turn *",
        "ctx.turn * np.cross(p",
        "turn * np.cross(p, gn)",
        "ctx.turn * ARCSECOND",
        "ARCSECOND * ctx.turn",
    ),
    where="convention='frame'",
    shows=lambda rng: (datum(rng), {"convention": "frame"}),
)
def helmert():
    ARCSECOND, PPM = np.pi / 648000, 1e-6
    TURNS = {"vector": 1.0, "frame": -1.0}

    class Helmert(pb.Function):
        """Transform points to another datum; points: (n, 3) and shift: (3,) in the same unit,
        rotation: (3,) in arc seconds, scaling: in parts per million.

        convention: whether the position vectors are turned, or the coordinate frame.
        """

        @staticmethod
        def forward(ctx, points, shift, rotation, scaling, convention="vector"):
            if convention not in TURNS:
                raise ValueError(f"convention must be one of {list(TURNS)}, got {convention!r}")
            ctx.turn = TURNS[convention]
            p, r = points.numpy(), ARCSECOND * rotation.numpy()
            turned = p + ctx.turn * np.cross(r, p)
            ctx.save_for_backward(points=points, r=r, turned=turned, scaling=scaling)
            return pb.asarray(shift.numpy() + (1 + PPM * scaling.item()) * turned)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, gn = ctx.saved_variables, grad_output.numpy()
            p, stretch = s.points.numpy(), 1 + PPM * s.scaling.item()
            return {
                "points": pb.asarray(stretch * (gn + ctx.turn * np.cross(gn, s.r))),
                "shift": pb.asarray(gn.sum(axis=0)),
                "rotation": pb.asarray(ARCSECOND * stretch * np.cross(p, gn).sum(axis=0)),
                "scaling": pb.asarray(np.array(PPM * (gn * s.turned).sum())),
            }

    return Helmert.apply


SATELLITES = np.array(
    [[15.6, 7.5, 20.1], [18.7, 2.7, 18.7], [17.6, 14.6, 13.4], [19.1, 0.6, 18.3], [9.0, -14, 20.9]]
)


def receivers(rng):
    base = np.array([3.98, 0.01, 4.96])
    return t(base + rng.uniform(-0.4, 0.4, 3)), t(base + rng.uniform(-0.4, 0.4, 3)), SATELLITES


@BOOK.wrong(
    lambda rng: (receivers(rng), {}),
    "the gradient takes the first satellite for the reference, whichever it is",
    at("reference"),
    r"\breference\b.{0,40}(?:ignored|always|first|not used|whichever)|(?:first|wrong) satellite",
    SHIFT + r"|position of the reference|wrong (?:place|row|satellite|index|order)",
    mends(
        "np.insert(gn, ctx.reference",
        "np.insert(gn, reference",
        "single[ctx.reference]",
        "np.arange(len(gn) + 1) != ctx.reference",
        "[ctx.reference] = -gn.sum()",
        "[ctx.reference] -= gn.sum()",
        "gn[: ctx.reference]",
    ),
    where="reference is not 0",
    shows=lambda rng: (receivers(rng), {"reference": 2}),
)
def double_differences():
    def toward(point, satellites):
        away = point - satellites
        ranges = np.linalg.norm(away, axis=1)
        return ranges, away / ranges[:, None]

    @pb.autograd_function
    def double_differences(ctx, rover, base, satellites, reference=0):
        """Differences of ranges between two receivers, and between satellites and one of them.

        rover, base: (3,); satellites: (n, 3). Returns the n - 1 of the others.
        """
        ctx.save_for_backward(rover=rover, base=base)
        ctx.satellites, ctx.reference = satellites, reference
        single = toward(rover.numpy(), satellites)[0] - toward(base.numpy(), satellites)[0]
        others = np.arange(len(satellites)) != reference
        return pb.asarray((single - single[reference])[others])

    @double_differences.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        rover, base = (x.numpy() for x in ctx.saved_tensors)
        gn = grad_output.numpy()
        by_single = np.insert(gn, 0, -gn.sum())
        return {
            "rover": pb.asarray(by_single @ toward(rover, ctx.satellites)[1]),
            "base": pb.asarray(-by_single @ toward(base, ctx.satellites)[1]),
        }

    return double_differences


SPEEDS = np.array([28.984104, 30.0, 15.041069])


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(0.3, 1.5, 3)), t(rng.uniform(0, 360, 3)), SPEEDS, np.arange(0, 24, 2.0)),
        {"mean_level": 2.0},
    ),
    "the tidal range gives its gradient to high water only, not to low water",
    r"\blow(?:est)?.?(?:water|tide|level|point|value)\b|\bmin(?:imum)?\b|\blowest\b",
    r"\bargmin\b|(?:second|other|range|1).{0,15}output.{0,60}(?:max|high|half|only)|\btrough",
    r"only .{0,30}(?:max|high)",
    mends("[ctx.low] -=", "[low] -=", "argmin()] -=", "np.argmin(", "[ctx.low] +="),
)
def tide():
    @pb.autograd_function
    def tide(ctx, amplitude, phase, speeds, hours, mean_level=0.0, nodal=1.0):
        """Height of the tide, and its range; one constituent for each amplitude.

        phase: (k,) in degrees, speeds: (k,) in degrees an hour.
        """
        angle = np.deg2rad(np.outer(hours, speeds) - phase.numpy())
        ctx.cos, ctx.sin = nodal * np.cos(angle), nodal * np.sin(angle)
        height = mean_level + ctx.cos @ amplitude.numpy()
        ctx.high, ctx.low = height.argmax(), height.argmin()
        ctx.save_for_backward(amplitude=amplitude)
        return pb.asarray(height), pb.asarray(np.array(height[ctx.high] - height[ctx.low]))

    @tide.backward
    @pb.once_differentiable
    def _(ctx, grad_height, grad_range):
        gn = grad_height.numpy().copy()
        gn[ctx.high] += grad_range.item()
        by_angle = -(gn @ ctx.sin) * ctx.saved_variables.amplitude.numpy()
        return {
            "amplitude": pb.asarray(gn @ ctx.cos),
            "phase": pb.asarray(-np.deg2rad(by_angle)),
        }

    return tide


@BOOK.wrong(
    lambda rng: (
        (t(np.cumsum(rng.uniform(-1, 2, 5)) + 40), t(np.cumsum(rng.uniform(0.5, 2, 5)) + 10)),
        {},
    ),
    "over the date line the gradient has the difference of longitudes without its wrap by 360",
    r"date.?line|anti.?meridian|\bwrap(?:s|ped|ping|.?around)?\b(?!\()|\bmodulo",
    r"(?:by|of|than|beyond|exceeds?|above|add|subtract) .{0,15}\b(?:180|360)\b|\b2 ?\* ?pi\b",
    r"(?:longitude|lon).{0,50}(?:jump|differ\w+ by more|cross)",
    r"\bcross(?:es|ing|ed)?\b",
    mends(
        "wrapped(np.diff(",
        "wrapped(np.rad2deg(",
        "ctx.east",
        "saved_variables.east",
        "% (2 * np.pi)",
    ),
    where="a track over the date line",
    shows=lambda rng: (
        (t(rng.uniform(-20, -10, 4)), t(np.array([177.0, 179.2, -179.1, -177.5]))),
        {},
    ),
)
def track_length():
    RADIUS = 6371.0

    def wrapped(angle):
        return (angle + 180) % 360 - 180

    def forward(ctx, latitude, longitude):
        """Length in km of a track with short legs; latitude, longitude: (n,) in degrees."""
        lat, lon = np.deg2rad(latitude.numpy()), longitude.numpy()
        north, apart = np.diff(lat), lon[1:] - lon[:-1]
        east = np.deg2rad(wrapped(apart))
        legs = np.hypot(north, east * np.cos((lat[1:] + lat[:-1]) / 2))
        if (legs == 0).any():
            raise ValueError("two points in a row are the same")
        ctx.save_for_backward(latitude=latitude, longitude=longitude, legs=legs)
        return pb.asarray(np.array(RADIUS * legs.sum()))

    @pb.once_differentiable
    def backward(ctx, g):
        lat, lon = (np.deg2rad(x.numpy()) for x in ctx.saved_tensors)
        legs, middle = ctx.saved_variables.legs, (lat[1:] + lat[:-1]) / 2
        north, east = np.diff(lat), np.diff(lon)
        by_north, by_east = north / legs, east * np.cos(middle) ** 2 / legs
        by_middle = -(east**2) * np.cos(middle) * np.sin(middle) / legs
        grad_lat, grad_lon = np.zeros_like(lat), np.zeros_like(lon)
        grad_lat[1:] += by_north + by_middle / 2
        grad_lat[:-1] += by_middle / 2 - by_north
        grad_lon[1:] += by_east
        grad_lon[:-1] -= by_east
        scale = np.deg2rad(RADIUS * g.item())
        return {"latitude": pb.asarray(scale * grad_lat), "longitude": pb.asarray(scale * grad_lon)}

    return pb.autograd_function(forward, backward, name="track_length")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(-65, 65, 5)), t(rng.uniform(-20, 30, 5))), {"meridian": 9.0}),
    "the slope of northing in latitude is that on a sphere: the eccentricity is missing there",
    r"\bspher(?:e|ical)\b|\beccentric|\bellips|\bflattening\b.{0,40}(?:missing|ignored|left out)",
    FACTOR + r"|multipl|divided by",
    r"(?:right|exact|correct) (?:only )?(?:if|when|where|for) .{0,20}(?:flattening|\be2?)\b",
    r"\be2\b|\b1 ?- ?(?:ctx\.)?e\b",
    at("flattening"),
    mends(
        "(1 - ctx.e**2)",
        "(1 - e**2)",
        "(1 - ctx.e * ctx.e)",
        "1 - (ctx.e * np.sin(",
        "(1 - s.e**2)",
        "1 / np.cos(phi) - ",
        "1 / np.cos(ctx.phi) - ",
    ),
)
def mercator():
    @pb.autograd_function
    def mercator(ctx, latitude, longitude, meridian=0.0, flattening=1 / 40, radius=1.0):
        """Easting and northing on the Mercator map of an ellipsoid; angles in degrees.

        The default is a planet a little rounder than Jupiter.
        """
        phi = np.deg2rad(latitude.numpy())
        if (np.abs(phi) >= np.pi / 2).any():
            raise ValueError("the poles are not on the map")
        e = np.sqrt(flattening * (2 - flattening))
        ctx.phi, ctx.e, ctx.radius = phi, e, radius
        northing = np.arctanh(np.sin(phi)) - e * np.arctanh(e * np.sin(phi))
        easting = np.deg2rad(longitude.numpy() - meridian)
        return {"easting": pb.asarray(radius * easting), "northing": pb.asarray(radius * northing)}

    @mercator.backward
    @pb.once_differentiable
    def _(ctx, grad_easting, grad_northing):
        degree = ctx.radius * np.pi / 180
        return {
            "latitude": pb.asarray(degree * grad_northing.numpy() / np.cos(ctx.phi)),
            "longitude": pb.asarray(degree * grad_easting.numpy()),
        }

    return mercator


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(0, 20, (4, 6))), t(rng.uniform(-25, 25, 5)), t(rng.uniform(10, 290, 5))),
        {},
    ),
    "east of the last column, what belongs to column 0 is added to the last column",
    r"last (?:column|cell|meridian|longitude)|(?:first|zeroth) column|column `?(?:0|-1|5)\b",
    r"\bwrap(?:s|ped|ping|.?around)?\b|\bmodulo|\bperiodic|\bcircular|\[:, ?(?:0|-1)\]|\bclip",
    r"longitude`? ?(?:>=?|is above|above|beyond|is over|over)|(?:near|before|at) (?:360|Greenwich)",
    mends(
        "down, (j + 1) % ", "ctx.j_next", "j_next)", "np.where(j + 1 == n, 0", "np.where(j == n - 1"
    ),
    where="a longitude beyond the last column",
    shows=lambda rng: (
        (
            t(rng.normal(0, 20, (4, 6))),
            t(rng.uniform(-25, 25, 4)),
            t(np.array([20.0, 333.0, 75.0, 315.0])),
        ),
        {},
    ),
)
def geoid_height():
    @pb.autograd_function
    def geoid_height(ctx, grid, latitude, longitude, south=-30.0, step=20.0):
        """Height of the geoid at points, bilinear in a grid of undulations all around the earth.

        grid: (rows from the south, columns eastwards from Greenwich); step: between rows.
        """
        N, n = grid.numpy(), grid.shape[1]
        y, x = (latitude.numpy() - south) / step, longitude.numpy() % 360 / (360 / n)
        if (y < 0).any() or (y > len(N) - 1).any():
            raise ValueError("a point lies beyond the rows of the grid")
        i, j = np.minimum(y.astype(int), len(N) - 2), x.astype(int)
        corners = N[i, j], N[i, (j + 1) % n], N[i + 1, j], N[i + 1, (j + 1) % n]
        ctx.save_for_backward(corners=corners, i=i, j=j, v=y - i, u=x - j)
        ctx.step, ctx.shape = step, N.shape
        v, u = y - i, x - j
        low, high = ((1 - u) * corners[k] + u * corners[k + 1] for k in (0, 2))
        return pb.asarray((1 - v) * low + v * high)

    @geoid_height.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        (c, i, j, v, u), gn = ctx.saved_variables, grad_output.numpy()
        grad, n = np.zeros(ctx.shape), ctx.shape[1]
        for down, weight in ((0, 1 - v), (1, v)):
            np.add.at(grad, (i + down, j), gn * weight * (1 - u))
            np.add.at(grad, (i + down, np.minimum(j + 1, n - 1)), gn * weight * u)
        by_v = (1 - u) * (c[2] - c[0]) + u * (c[3] - c[1])
        by_u = (1 - v) * (c[1] - c[0]) + v * (c[3] - c[2])
        return {
            "grid": pb.asarray(grad),
            "latitude": pb.asarray(gn * by_v / ctx.step),
            "longitude": pb.asarray(gn * by_u * n / 360),
        }

    return geoid_height


@BOOK.right(
    lambda rng: (
        (t(np.array([[3.98, 0.01, 4.97], [-2.4, 4.2, -4.1]]) + rng.uniform(-0.1, 0.1, (2, 3))),),
        {},
    )
)
def to_geodetic():
    @pb.autograd_function
    def to_geodetic(ctx, points, a=6.378137, f=1 / 298.257223563):
        """Latitude and longitude in radians and height of points (n, 3), in the unit of a."""
        x, y, z = points.numpy().T
        e2, p = f * (2 - f), np.hypot(x, y)
        if (p < 1e-9).any():
            raise ValueError("the longitude of a pole is not defined")
        lat = np.arctan2(z, p * (1 - e2))
        for _ in range(30):
            across = a / np.sqrt(1 - e2 * np.sin(lat) ** 2)
            lat = np.arctan2(z + e2 * across * np.sin(lat), p)
        across = a / np.sqrt(1 - e2 * np.sin(lat) ** 2)
        along = across**3 * (1 - e2) / a**2
        height = p * np.cos(lat) + z * np.sin(lat) - a**2 / across
        lon = np.arctan2(y, x)
        ctx.save_for_backward(lat=lat, lon=lon, north=along + height, p=p)
        return tuple(map(pb.asarray, (lat, lon, height)))

    @to_geodetic.backward
    @pb.once_differentiable
    def _(ctx, grads):
        lat, lon, north, p = ctx.saved_variables
        by_lat, by_lon, by_height = (g.numpy() for g in grads)
        by_lat, by_lon = by_lat / north, by_lon / p
        outward = by_height * np.cos(lat) - by_lat * np.sin(lat)
        x = outward * np.cos(lon) - by_lon * np.sin(lon)
        y = outward * np.sin(lon) + by_lon * np.cos(lon)
        return pb.asarray(np.stack([x, y, by_lat * np.cos(lat) + by_height * np.sin(lat)], 1))

    return to_geodetic


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(-60, 60, (3, 1))), t(rng.uniform(-170, 170, (3, 1)))),
        {"lat2": t(rng.uniform(-60, 60, 4)), "lon2": t(rng.uniform(-170, 170, 4))},
    )
)
def great_circle():
    def parts(lat1, lon1, lat2, lon2):
        turn = lon2 - lon1
        x = lat1.cos() * lat2.sin() - lat1.sin() * lat2.cos() * turn.cos()
        cos = lat1.sin() * lat2.sin() + lat1.cos() * lat2.cos() * turn.cos()
        return lat2.cos() * turn.sin(), x, cos

    @pb.autograd_function
    def great_circle(ctx, lat1, lon1, *, lat2, lon2, radius=6371.0):
        """Distance along the great circle, angles in degrees that broadcast."""
        angles = [x * (np.pi / 180) for x in (lat1, lon1, lat2, lon2)]
        ctx.save_for_backward(lat1, lon1, lat2, lon2)
        ctx.radius = radius
        y, x, cos = parts(*angles)
        return radius * pb.atan2((x * x + y * y).sqrt(), cos)

    @great_circle.backward
    def _(ctx, g):
        g = g * (ctx.radius * np.pi / 180)
        lat1, lon1, lat2, lon2 = (x * (np.pi / 180) for x in ctx.saved_tensors)
        y, x, _ = parts(lat1, lon1, lat2, lon2)
        sin = (x * x + y * y).sqrt()
        apart = sin > 0
        g = pb.where(apart, g / pb.where(apart, sin, pb.ones_like(sin)), pb.zeros_like(sin))
        by_turn = g * y * lat1.cos()
        back = lat2.cos() * lat1.sin() - lat2.sin() * lat1.cos() * (lon2 - lon1).cos()
        grads = {"lat1": -g * x, "lon1": -by_turn, "lat2": -g * back, "lon2": by_turn}
        return {
            name: pb.sum_to_size(grad, saved.shape)
            for (name, grad), saved in zip(grads.items(), ctx.saved_tensors, strict=True)
        }

    return great_circle


FROM, TO = np.array([0, 1, 2, 0, 3]), np.array([1, 2, 3, 3, 1])


@BOOK.right(
    lambda rng: ((t(rng.normal(0, 3, 5)), t(rng.uniform(0.5, 2, 5)), FROM, TO), {"benchmark": 1})
)
def levelled_heights():
    @pb.autograd_function
    def levelled_heights(ctx, rises, weights, start, end, benchmark=0, height=0.0):
        """Adjust measured rises by weighted least squares; heights of all points.

        rises, weights: (m,); start, end: (m,) points; benchmark: the point of given height.
        """
        points = 1 + max(start.max(), end.max())
        if not 0 <= benchmark < points:
            raise ValueError("there is no such point")
        A = np.eye(points)[end] - np.eye(points)[start]
        free = np.delete(A, benchmark, axis=1)
        w, rise = weights.numpy(), rises.numpy()
        if np.linalg.matrix_rank(free) < points - 1 or (w <= 0).any():
            raise ValueError("a point is not connected to the benchmark")
        normal = free.T * w @ free
        solved = np.linalg.solve(normal, free.T @ (w * rise))
        ctx.save_for_backward(w=w, free=free, normal=normal, rest=rise - free @ solved)
        ctx.benchmark = benchmark
        return pb.asarray(np.insert(height + solved, benchmark, height))

    @levelled_heights.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        w, free, normal, rest = ctx.saved_variables
        gn = np.delete(grad_output.numpy(), ctx.benchmark)
        adjoint = free @ np.linalg.solve(normal, gn)
        return {"rises": pb.asarray(w * adjoint), "weights": pb.asarray(adjoint * rest)}

    return levelled_heights


@BOOK.right(
    lambda rng: (
        (
            t(np.array([3.98, 0.01, 4.96]) + rng.uniform(-0.05, 0.05, 3)),
            t(rng.uniform(0, 0.1)),
            np.vstack([SATELLITES, [[-20.0, 3.0, -15.0]]]),
            np.array([21.0, 20.3, 21.2, 20.1, 21.9, 33.0]),
        ),
        {"cutoff": 12.0},
    )
)
def pseudorange_loss():
    class PseudorangeLoss(pb.Function):
        """Mean square misfit of pseudoranges to the satellites higher than the cutoff.

        receiver: (3,), clock: scalar in the same unit; cutoff: in degrees over the horizon.
        """

        @staticmethod
        def forward(ctx, receiver, clock, satellites, ranges, cutoff=0.0):
            p = receiver.numpy()
            line = satellites - p
            distance = np.linalg.norm(line, axis=1)
            used = line @ p > np.sin(np.deg2rad(cutoff)) * distance * np.linalg.norm(p)
            if used.sum() < 4:
                raise ValueError("fewer than four satellites are above the cutoff")
            ctx.misfit = (distance + clock.item() - ranges)[used]
            ctx.toward = (line / distance[:, None])[used]
            return pb.asarray(np.array((ctx.misfit**2).mean()))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            by_range = 2 * g.item() * ctx.misfit / len(ctx.misfit)
            by_clock = pb.asarray(np.array(by_range.sum()))
            return pb.asarray(-by_range @ ctx.toward), by_clock, None, None, None

    return PseudorangeLoss.apply


@BOOK.right(
    lambda rng: (
        (
            t(np.array([-17.0, -16, -18, -20]) + rng.uniform(-0.5, 0.5, 4)),
            t(np.array([178.0, -179, -177, 179]) + rng.uniform(-0.5, 0.5, 4)),
        ),
        {},
    )
)
def polygon_area():
    def forward(ctx, latitude, longitude, radius=6371.0):
        """Area of a polygon on the sphere, whichever way round, also over the date line."""
        sin = np.sin(np.deg2rad(latitude.numpy()))
        turn = np.deg2rad((np.roll(longitude.numpy(), -1) - longitude.numpy() + 180) % 360 - 180)
        if abs(turn.sum()) > 1:
            raise ValueError("the polygon goes around a pole")
        both = sin + np.roll(sin, -1)
        area = turn @ both * radius**2 / 2
        ctx.save_for_backward(latitude=latitude, turn=turn, both=both)
        ctx.scale = np.sign(area) * radius**2 / 2 * np.pi / 180
        return pb.asarray(np.array(abs(area)))

    @pb.once_differentiable
    def backward(ctx, g):
        latitude, turn, both = ctx.saved_variables
        scale, cos = g.item() * ctx.scale, np.cos(np.deg2rad(latitude.numpy()))
        return {
            "latitude": pb.asarray(scale * cos * (turn + np.roll(turn, 1))),
            "longitude": pb.asarray(scale * (np.roll(both, 1) - both)),
        }

    return pb.autograd_function(forward, backward, name="polygon_area")
