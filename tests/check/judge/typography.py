"""Typography: outlines, variable fonts, hinting, kerning, line breaking, leading, contrast."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, SHIFT, SIGN, SWAPPED, Book, mends, t

BOOK = Book("typography")

LETTER_D = np.array(
    [[80.0, 0], [330, 0], [560, 120], [640, 350], [560, 590], [330, 700], [80, 700], [60, 350]]
)


@BOOK.wrong(
    lambda rng: ((t(LETTER_D + rng.normal(0, 8, (8, 2))),), {}),
    "in the gradient of y the next and the previous point are swapped, so it has the wrong sign",
    SIGN,
    SWAPPED,
    r"\b(?:next|previous|preceding|following)\b|\bcolumn 1\b|\[\.\.\., 1\]|\by\b.{0,20}coordinate",
    mends("before[:, 0] - after[:, 0]", "-0.5 * g.item() * (after[:, 0]"),
)
def glyph_area():
    @pb.autograd_function
    def glyph_area(ctx, points):
        """Signed area of a closed contour of straight segments; points: (n, 2) in font units."""
        p = points.numpy()
        after = np.roll(p, -1, axis=0)
        ctx.save_for_backward(after=after, before=np.roll(p, 1, axis=0))
        return pb.asarray(np.asarray(0.5 * (p[:, 0] * after[:, 1] - after[:, 0] * p[:, 1]).sum()))

    @glyph_area.backward
    @pb.once_differentiable
    def _(ctx, g):
        after, before = ctx.saved_variables
        by_x = 0.5 * g.item() * (after[:, 1] - before[:, 1])
        by_y = 0.5 * g.item() * (after[:, 0] - before[:, 0])
        return {"points": pb.asarray(np.stack([by_x, by_y], axis=1))}

    return glyph_area


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(220, 780, 7)), t(35.0), t(10.5)), {}),
    "tracking comes between glyphs, once less than there are: its gradient is off by one",
    SHIFT,
    FACTOR,
    r"\bgaps?\b|\bbetween\b|n ?- ?1|once less|one (?:less|fewer)",
    mends("(s.count - 1)", "s.gaps", "ctx.gaps", "(len(s.advances) - 1)"),
)
def tracked_width():
    @pb.autograd_function
    def tracked_width(ctx, advances, tracking, size, units=1000):
        # tracking in thousandths of an em, size in points
        a = advances.numpy()
        ems = a.sum() / units + 1e-3 * tracking.item() * (len(a) - 1)
        ctx.save_for_backward(ems=ems, size=size.item(), count=len(a), units=units)
        return pb.asarray(np.asarray(size.item() * ems))

    @tracked_width.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_ems = g.item() * s.size
        return {
            "advances": pb.asarray(np.full(s.count, by_ems / s.units)),
            "tracking": 1e-3 * by_ems * s.count,
            "size": g.item() * s.ems,
        }

    return tracked_width


def text_lines(rng, low, high):
    return (
        (
            t(rng.uniform(low, high, 6)),
            t(rng.uniform(14, 30, 6)),
            t(rng.uniform(8, 16, 6)),
            t(312.0),
        ),
        {},
    )


@BOOK.wrong(
    lambda rng: text_lines(rng, 290.0, 311.0),
    "a line that must shrink gets worse as it gets longer, but its gradient has the sign of a "
    "line that stretches",
    SIGN,
    r"shrink(?:ing|s)? (?:line|side|case|branch)|too long|overfull|absolute|longer than|negative r",
    mends("np.sign(s.ratio)", "np.abs(s.ratio)", "s.ratio * np.abs"),
    where="a line is longer than the measure",
    shows=lambda rng: text_lines(rng, 295.0, 324.0),
)
def line_badness():
    @pb.autograd_function
    def line_badness(ctx, natural, stretch, shrink, measure):
        """Badness of lines set to the measure, all in points: 100 |ratio|^3 as in TeX."""
        missing = measure.item() - natural.numpy()
        loose = missing >= 0
        flex = np.where(loose, stretch.numpy(), shrink.numpy())
        ratio = missing / flex
        ctx.save_for_backward(ratio=ratio, flex=flex, loose=loose)
        return pb.asarray(100 * np.abs(ratio) ** 3)

    @line_badness.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_missing = 300 * gn * s.ratio**2 / s.flex
        by_flex = -300 * gn * np.abs(s.ratio) ** 3 / s.flex
        return {
            "natural": pb.asarray(-by_missing),
            "stretch": pb.asarray(np.where(s.loose, by_flex, 0.0)),
            "shrink": pb.asarray(np.where(s.loose, 0.0, by_flex)),
            "measure": by_missing.sum(),
        }

    return line_badness


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(420, 880, 5)), t([100.0, 400.0, 900.0])), {}),
    "weights below the regular one are divided by the upper span, not by the lower one",
    r"\bbelow\b|\blower\b|\bupper\b|other (?:side|span|half)|\blight",
    FACTOR,
    r"\bspan|\bpiecewise\b|\bbranch\b|\bsegments?\b",
    mends("/ s.span", "/ ctx.span", "np.where(s.above,", "s.regular - s.lowest"),
    where="a value below the regular weight",
    shows=lambda rng: ((t(rng.uniform(120, 880, 5)), t([100.0, 400.0, 900.0])), {}),
)
def normalized_axis():
    class NormalizedAxis(pb.Function):
        """Values of a font's axis, from -1 at its lowest over 0 at the regular one to 1.

        value: (n,), within the limits; limits: (3,), lowest, regular and highest value.
        """

        @staticmethod
        def forward(ctx, value, limits):
            v, (lowest, regular, highest) = value.numpy(), limits.numpy()
            if not lowest < regular < highest:
                raise ValueError("limits must increase")
            above = v >= regular
            out = (v - regular) / np.where(above, highest - regular, regular - lowest)
            ctx.save_for_backward(regular, highest, above, out)
            return pb.asarray(out.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            regular, highest, above, out = ctx.saved_variables
            by_value = g.numpy() / (highest - regular)
            up, down = (by_value * out)[above].sum(), (by_value * out)[~above].sum()
            by_limits = np.array([down, up - down - by_value.sum(), -up])
            return pb.asarray(by_value), pb.asarray(by_limits)

    return NormalizedAxis.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(230, 760, 6)), t(np.round(rng.normal(0, 25, (6, 6)))), t(11.0)),
        {"text": [3, 0, 0, 5, 1, 3, 0, 2]},
    )
)
def kerned_positions():
    @pb.autograd_function
    def kerned_positions(ctx, advance, kerning, size, text, units=1000):
        """Pen positions in points before each glyph of a text, and the one after the last.

        advance: (glyphs,); kerning: (glyphs, glyphs), of a left and a right glyph; text: list of
        indices into both.
        """
        ids = np.asarray(text, dtype=int)
        steps = advance.numpy()[ids]
        steps[:-1] += kerning.numpy()[ids[:-1], ids[1:]]
        ems = np.append(0.0, np.cumsum(steps)) / units
        ctx.ids, ctx.ems, ctx.units = ids, ems, units
        ctx.size, ctx.glyphs = size.item(), len(advance)
        return pb.asarray(size.item() * ems)

    @kerned_positions.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn, ids = g.numpy(), ctx.ids
        by_step = np.cumsum(gn[:0:-1])[::-1] * ctx.size / ctx.units
        by_advance = np.bincount(ids, by_step, minlength=ctx.glyphs)
        by_kerning = np.zeros((ctx.glyphs, ctx.glyphs))
        np.add.at(by_kerning, (ids[:-1], ids[1:]), by_step[:-1])
        return {
            "advance": pb.asarray(by_advance),
            "kerning": pb.asarray(by_kerning),
            "size": gn @ ctx.ems,
        }

    return kerned_positions


@BOOK.right(lambda rng: ((t(rng.uniform(0, 700, (3, 4, 2))),), {"order": 24}))
def cubic_length():
    @pb.autograd_function
    def cubic_length(ctx, control, order=16):
        """Lengths of cubic segments; control: (n, 4, 2) in font units."""
        nodes, weights = np.polynomial.legendre.leggauss(order)
        u = 0.5 * (nodes + 1)
        second = np.stack([(1 - u) ** 2, 2 * u * (1 - u), u**2], axis=1)
        ctx.basis = 3 * second @ np.diff(np.eye(4), axis=0)
        ctx.velocity = np.einsum("qi,nic->nqc", ctx.basis, control.numpy())
        ctx.speed = np.sqrt((ctx.velocity**2).sum(axis=-1))
        ctx.weights = 0.5 * weights
        return pb.asarray(ctx.speed @ ctx.weights)

    @cubic_length.backward
    @pb.once_differentiable
    def _(ctx, g):
        # a collapsed segment has no direction in which to grow
        scale = ctx.weights * g.numpy()[:, None] / np.where(ctx.speed > 0, ctx.speed, np.inf)
        by_control = np.einsum("qi,nqc->nic", ctx.basis, scale[..., None] * ctx.velocity)
        return {"control": pb.asarray(by_control)}

    return cubic_length


@BOOK.right(
    lambda rng: (
        (
            t(np.array([2.0, 35.0, 140.0, 12000.0, 18.0])),
            t(np.array([0.0, 50.0, -20.0, 50.0, -12000.0])),
        ),
        {"hyphenated": np.array([0, 1, 1, 1, 0], bool)},
    )
)
def line_demerits():
    @pb.autograd_function
    def line_demerits(ctx, badness, penalty, hyphenated, line_penalty=10.0, double_hyphen=10000.0):
        b, p = np.minimum(badness.numpy(), 10000.0), penalty.numpy()
        if (p >= 10000).any():
            raise ValueError("no line can end there")
        demerits = (line_penalty + b) ** 2
        forced = p <= -10000
        demerits += np.where(forced, 0.0, p * np.abs(p))
        demerits[1:] += double_hyphen * (hyphenated[1:] & hyphenated[:-1])
        ctx.by_badness = 2 * (line_penalty + b) * (badness.numpy() < 10000)
        ctx.by_penalty = np.where(forced, 0.0, 2 * np.abs(p))
        return pb.asarray(demerits)

    @line_demerits.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {
            "badness": pb.asarray(g.numpy() * ctx.by_badness),
            "penalty": pb.asarray(g.numpy() * ctx.by_penalty),
        }

    return line_demerits


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(3.2, 3.5, 7)),
            t(rng.uniform(1.4, 1.8, 7)),
            t(rng.uniform(0.9, 1.2, 7)),
            t(rng.choice([16.0, 21.5, 31.0])),
        ),
        {},
    )
)
def justified_spaces():
    @pb.autograd_function
    def justified_spaces(ctx, natural, stretch, shrink, room):
        """Widths of a line's spaces such that they fill the room; they shrink no further than
        by shrink, but stretch without limit.

        natural, stretch, shrink: (n,), not negative; room: all of it in points.
        """
        lacks = room.item() - natural.numpy().sum()
        flex = stretch.numpy() if lacks >= 0 else -shrink.numpy()
        total = np.abs(flex.sum())
        ratio = np.abs(lacks) / total if total > 0 else 0.0
        ctx.fixed = total == 0 or (lacks < 0 and ratio > 1)
        ratio = min(ratio, 1.0) if lacks < 0 else ratio
        ctx.save_for_backward(flex=flex, ratio=ratio, total=total)
        ctx.stretched = lacks >= 0
        return pb.asarray(natural.numpy() + ratio * flex)

    @justified_spaces.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        sign = 1.0 if ctx.stretched else -1.0
        by_flex, by_room = sign * s.ratio * gn, 0.0
        if not ctx.fixed:
            by_ratio = gn @ s.flex
            by_room = sign * by_ratio / s.total
            by_flex = by_flex - by_ratio * s.ratio / s.total
        none = np.zeros_like(gn)
        return {
            "natural": pb.asarray(gn - by_room),
            "stretch": pb.asarray(by_flex if ctx.stretched else none),
            "shrink": pb.asarray(none if ctx.stretched else by_flex),
            "room": by_room,
        }

    return justified_spaces


@BOOK.right(lambda rng: ((t(rng.uniform(0, 255, (4, 3))), t(np.array([[250.0, 248.0, 6.0]]))), {}))
def contrast_ratio():
    WEIGHTS = np.array([0.2126, 0.7152, 0.0722])

    def linear(channels):
        c = channels / 255.0
        dark = c <= 0.04045
        power = (np.where(dark, 1.0, c + 0.055) / 1.055) ** 1.4
        light = np.where(dark, c / 12.92, power * (c + 0.055) / 1.055)
        return light, np.where(dark, 1 / 12.92, 2.4 / 1.055 * power) / 255.0

    @pb.autograd_function
    def contrast_ratio(ctx, ink, paper):
        """Contrast of text by WCAG; ink: (n, 3) and paper: (1, 3), sRGB from 0 to 255."""
        if paper.shape != (1, 3):
            raise ValueError("the paper has one colour")
        (i, ctx.by_ink), (p, ctx.by_paper) = linear(ink.numpy()), linear(paper.numpy())
        a, b = i @ WEIGHTS + 0.05, p @ WEIGHTS + 0.05
        ctx.a, ctx.b, ctx.brighter = a, b, a >= b
        return pb.asarray(np.maximum(a, b) / np.minimum(a, b))

    @contrast_ratio.backward
    @pb.once_differentiable
    def _(ctx, g):
        a, b = ctx.a, ctx.b
        by_a = g.numpy() * np.where(ctx.brighter, 1 / b, -b / a**2)
        by_b = g.numpy() * np.where(ctx.brighter, -a / b**2, 1 / a)
        return {
            "ink": pb.asarray(by_a[:, None] * WEIGHTS * ctx.by_ink),
            "paper": pb.asarray(by_b.sum() * WEIGHTS * ctx.by_paper),
        }

    return contrast_ratio


@BOOK.right(lambda rng: ((t(np.array([31.0, 88.0, 12.5, 140.0])), t(13.2)), {"space_after": 0.5}))
def snapped_blocks():
    @pb.autograd_function
    def snapped_blocks(ctx, heights, leading, space_after=0.0):
        # every block takes whole lines of the baseline grid
        h, line = heights.numpy(), leading.item()
        ctx.lines = np.ceil(h / line - 1e-9) + space_after
        return pb.asarray(ctx.lines * line)

    @snapped_blocks.backward
    @pb.once_differentiable
    def _(ctx, g):
        # within a line the height of the block does not matter
        return {"heights": pb.zeros_like(g), "leading": g.numpy() @ ctx.lines}

    return snapped_blocks


@BOOK.right(lambda rng: ((t(rng.uniform(9, 48, 18)), t(3.1), t(120.0)), {"power": 3}))
def optimal_breaks():
    @pb.autograd_function
    def optimal_breaks(ctx, widths, space, measure, power=2):
        """Least sum of powers of what lines lack, but for the last line; and where they begin.

        widths: (n,) of the words in points, none wider than the measure; power: 1 or more.
        """
        w, gap, full = widths.numpy(), space.item(), measure.item()
        if (w > full).any():
            raise ValueError("a word is wider than the measure")
        n = len(w)
        cost, start = np.full(n + 1, np.inf), np.zeros(n + 1, int)
        cost[0] = 0.0
        lacks = np.zeros(n + 1)
        for j in range(1, n + 1):
            for i in range(j - 1, -1, -1):
                length = w[i:j].sum() + gap * (j - i - 1)
                if length > full:
                    break
                price = cost[i] + (0.0 if j == n else (full - length) ** power)
                if price < cost[j]:
                    cost[j], start[j], lacks[j] = price, i, full - length
        lines, j = [], start[n]
        while j > 0:
            lines.append((start[j], j, lacks[j]))
            j = start[j]
        ctx.lines, ctx.n, ctx.power = lines, n, power
        begins = np.array([line[0] for line in reversed(lines)] + [start[n]])
        return pb.asarray(np.asarray(cost[n])), pb.asarray(begins)

    @optimal_breaks.backward
    @pb.once_differentiable
    def _(ctx, g_cost, g_begins):
        by_widths, by_space, by_measure = np.zeros(ctx.n), 0.0, 0.0
        for first, end, lack in ctx.lines:
            by_lack = g_cost.item() * ctx.power * lack ** (ctx.power - 1)
            by_widths[first:end] = -by_lack
            by_space -= by_lack * (end - first - 1)
            by_measure += by_lack
        return {"widths": pb.asarray(by_widths), "space": by_space, "measure": by_measure}

    return optimal_breaks


@BOOK.right(
    lambda rng: (
        (t(np.array([-11.0, 3.0, 212.0, 489.0, 512.0, 640.0, 707.0])), t([0.0, 500.0, 700.0])),
        {"zones": [(-14, 5), (486, 514), (695, 714)], "scale": 0.018},
    )
)
def aligned_heights():
    @pb.autograd_function
    def aligned_heights(ctx, heights, flats, zones, scale=1.0, grid_fit=False):
        y, flat = heights.numpy(), flats.numpy()
        ctx.zone = np.full(len(y), -1)
        for z, (low, high) in enumerate(zones):
            ctx.zone[(low <= y) & (y <= high)] = z
        fitted = np.round(scale * flat) if grid_fit else scale * flat
        ctx.scale, ctx.to_flat, ctx.n = scale, 0.0 if grid_fit else scale, len(flat)
        return pb.asarray(np.where(ctx.zone < 0, scale * y, fitted[ctx.zone]))

    @aligned_heights.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn, free = g.numpy(), ctx.zone < 0
        by_flat = np.zeros(ctx.n)  # bincount of nothing would count in integers
        np.add.at(by_flat, ctx.zone[~free], ctx.to_flat * gn[~free])
        return {
            "heights": pb.asarray(np.where(free, ctx.scale * gn, 0.0)),
            "flats": pb.asarray(by_flat),
        }

    return aligned_heights


@BOOK.right(
    lambda rng: ((t(10.5), t(rng.uniform(1.1, 1.6))), {"steps": np.array([-2, 0, 1, 3, 5])})
)
def modular_scale():
    @pb.autograd_function
    def modular_scale(ctx, base, ratio, steps):
        """Sizes of type in points, so many steps of the ratio above the base size."""
        ctx.save_for_backward(base=base, ratio=ratio, steps=steps)
        return base * (ratio.log() * pb.asarray(np.asarray(steps, float))).exp()

    @modular_scale.backward
    def _(ctx, g):
        s = ctx.saved_variables
        steps = pb.asarray(np.asarray(s.steps, float))
        powers = (s.ratio.log() * steps).exp()
        by_ratio = (g * steps * powers).sum() * s.base / s.ratio
        return {"base": (g * powers).sum(), "ratio": by_ratio}

    return modular_scale


REGIONS = np.array(
    [
        [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]],
        [[-1.0, -1.0, 0.0], [0.0, 0.0, 0.0]],
        [[0.0, 0.0, 0.0], [0.0, 0.6, 1.0]],
        [[0.0, 1.0, 1.0], [0.0, 0.6, 1.0]],
    ]
)


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(0, 700, (5, 2))),
            t(rng.normal(0, 30, (4, 5, 2))),
            t(np.array([rng.choice([-0.4, 0.55]), rng.choice([0.35, 0.8])])),
        ),
        {"regions": REGIONS},
    )
)
def varied_outline():
    def tent(x, start, peak, end):
        if peak == 0:
            return 1.0, 0.0
        if x != peak and (x <= start or x >= end):
            return 0.0, 0.0
        # at the peak, which often is an end of the axis, the slope on the side of the default
        if x < peak or (x == peak and peak > max(start, 0)):
            return (x - start) / (peak - start), 1 / (peak - start)
        return (end - x) / (end - peak), -1 / (end - peak)

    @pb.autograd_function
    def varied_outline(ctx, outline, deltas, location, regions):
        """Outline of an instance of a variable font, as the table gvar has it.

        outline: (n, 2); deltas: (regions, n, 2); location: (axes,), normalised to -1 to 1;
        regions: (regions, axes, 3), the start, peak and end of each on each axis.
        """
        tents = [
            [tent(x, *limits) for x, limits in zip(location.numpy(), region, strict=True)]
            for region in regions
        ]
        value, slope = np.moveaxis(np.array(tents), -1, 0)
        by_location = np.empty_like(value)
        for axis in range(value.shape[1]):
            by_location[:, axis] = slope[:, axis] * np.delete(value, axis, axis=1).prod(axis=1)
        scalars = value.prod(axis=1)
        ctx.scalars, ctx.by_location, ctx.deltas = scalars, by_location, deltas
        return pb.asarray(outline.numpy() + np.tensordot(scalars, deltas.numpy(), axes=1))

    @varied_outline.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_scalars = np.tensordot(ctx.deltas.numpy(), g.numpy(), axes=2)
        return {
            "outline": g,
            "deltas": pb.asarray(ctx.scalars[:, None, None] * g.numpy()),
            "location": pb.asarray(by_scalars @ ctx.by_location),
        }

    return varied_outline


@BOOK.right(
    lambda rng: (
        (t(np.array([1.3, 0.45, 2.2, -1.6])), t(np.array([4.7, 6.2, 2.9, 8.4]))),
        {"columns": 7},
    )
)
def span_coverage():
    class SpanCoverage(pb.Function):
        @staticmethod
        def forward(ctx, left, right, columns=8):
            """Part of each pixel that the black span of its row covers; what lies outside of
            the bitmap is cut off."""
            pixel = np.arange(columns)
            x0, x1 = left.numpy()[:, None], right.numpy()[:, None]
            begin, end = np.maximum(x0, pixel), np.minimum(x1, pixel + 1)
            ctx.from_left = (end > begin) & (x0 >= pixel)
            ctx.from_right = (end > begin) & (x1 <= pixel + 1)
            return pb.asarray(np.maximum(end - begin, 0.0))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            by_left = -(g.numpy() * ctx.from_left).sum(axis=1)
            return pb.asarray(by_left), pb.asarray((g.numpy() * ctx.from_right).sum(axis=1)), None

    return SpanCoverage.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(7, 15, 9)), t(rng.uniform(2, 5, 9)), t(14.0)),
        {"line": np.array([0, 0, 0, 1, 1, 2, 3, 3, 3])},
    )
)
def baseline_positions():
    def forward(ctx, ascent, descent, minimum, line):
        # ascents and descents of runs of text, and the number of the line that each is in
        a, d = ascent.numpy(), descent.numpy()
        ctx.n, ctx.tallest, ctx.deepest = len(a), [], []
        ctx.padded = np.zeros(line.max() + 1, bool)
        baselines, y = np.zeros(line.max() + 1), 0.0
        for k in range(len(baselines)):
            runs = np.flatnonzero(line == k)
            ctx.tallest.append(runs[a[runs].argmax()])
            ctx.deepest.append(runs[d[runs].argmax()])
            up, down = a[ctx.tallest[-1]], d[ctx.deepest[-1]]
            baselines[k] = y + up
            ctx.padded[k] = up + down < minimum.item()
            y += max(up + down, minimum.item())
        return pb.asarray(baselines), pb.asarray(np.asarray(y))

    @pb.once_differentiable
    def backward(ctx, g_baselines, g_height):
        by_ascent, by_descent, by_minimum = np.zeros(ctx.n), np.zeros(ctx.n), 0.0
        to_y = g_height.item()
        for k in reversed(range(len(ctx.padded))):
            if ctx.padded[k]:
                by_minimum += to_y
            else:
                by_ascent[ctx.tallest[k]] += to_y
                by_descent[ctx.deepest[k]] += to_y
            by_ascent[ctx.tallest[k]] += g_baselines.numpy()[k]
            to_y += g_baselines.numpy()[k]
        return {
            "ascent": pb.asarray(by_ascent),
            "descent": pb.asarray(by_descent),
            "minimum": by_minimum,
        }

    return pb.autograd_function(forward, backward, name="baseline_positions")
