"""Rendering: shading, tone mapping, rays, textures, splats, fog, sphere tracing, irradiance."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, SHIFT, SIGN, SQUARE, SWAPPED, Book, mends, t

BOOK = Book("rendering")
FORWARD = np.array([0.0, 0.0, 1.0])


def unit(v):
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def facing(rng):
    normals = unit(rng.normal(0, 0.3, (5, 3)) + FORWARD)
    return (t(normals), t(rng.uniform(0.2, 0.9, (5, 3))), np.array([0.3, 0.2, 1.0])), {}


def turned_away(rng):
    (normals, albedo, light), _ = facing(rng)
    some = np.where(np.arange(5) % 2, 1.0, -1.0)[:, None]
    return (t(normals.detach().numpy() * some), albedo, light), {}


@BOOK.wrong(
    facing,
    "a surface turned away from the light is black, but its normal gets the slope of a lit one",
    r"\baway\b|\bback.?fac|\blit\b|\bunlit\b|\bshad(?:ow|e)\b|\bclamp|\bclip",
    r"(?:dot|cosine|cos|lambert|n.l).{0,25}(?:negative|below|< ?0|<= ?0|is 0|less than)",
    r"negative (?:cosine|dot|inner product)|(?:behind|hemisphere|horizon)",
    r"(?:must|should|expected|is|are) (?:be )?(?:zero|0)\b.{0,50}(?:row|element|normal|where)",
    r"(?:rows?|elements?|normals?|where).{0,50}(?:must|should|expected) (?:to )?(?:be )?(?:zero|0)",
    mends("(cosine > 0)", "(s.cosine > 0)", "cosine > 0", "cosine >= 0", "np.heaviside("),
    where="a normal turned away from the light",
    shows=turned_away,
)
def lambert_shading():
    @pb.autograd_function
    def lambert_shading(ctx, normals, albedo, light, ambient=0.1):
        """Shade of surfaces; normals: (n, 3) of length 1, albedo: (n, 3), light: (3,) direction."""
        toward = light / np.linalg.norm(light)
        cosine = normals.numpy() @ toward
        lit = ambient + np.maximum(cosine, 0.0)
        ctx.save_for_backward(albedo=albedo, cosine=cosine, lit=lit)
        ctx.toward = toward
        return pb.asarray(albedo.numpy() * lit[:, None])

    @lambert_shading.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_cosine = (gn * s.albedo.numpy()).sum(axis=1)
        return {
            "normals": pb.asarray(np.outer(by_cosine, ctx.toward)),
            "albedo": pb.asarray(gn * s.lit[:, None]),
        }

    return lambert_shading


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.2, 4, (3, 4, 3))),), {"white": 3.0}),
    "the luminance is taken for a constant: the term that goes back through it is missing",
    MISSING,
    r"lumina|\bbrightness\b|\bgain\b.{0,30}(?:constant|fixed|depend)|product rule",
    r"(?:between|other|across|all|mixes) (?:the )?channels",
    r"\bchannels?\b.{0,30}(?:coupl|mix|depend|alone|own|independent)|\belement.?wise\b|\bdiagonal\b",
    r"treated as (?:a )?constant|\bdetached\b",
    mends(
        "* WEIGHTS",
        "WEIGHTS *",
        "by_luminance",
        "by_gain",
        "grad_luminance",
        "(gn * s.x).sum(",
        "np.multiply.outer(",
    ),
)
def reinhard_tone_mapping():
    WEIGHTS = np.array([0.2126, 0.7152, 0.0722])

    class ReinhardToneMapping(pb.Function):
        """Compress an image (..., 3) by its luminance L: a factor (1 + L / white**2) / (1 + L)."""

        @staticmethod
        def forward(ctx, image, white=4.0):
            x = image.numpy()
            L = x @ WEIGHTS
            gain = (1 + L / white**2) / (1 + L)
            ctx.save_for_backward(x=x, L=L, gain=gain)
            ctx.white = white
            return pb.asarray(x * gain[..., None])

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            return pb.asarray(grad_output.numpy() * ctx.saved_variables.gain[..., None])

    return ReinhardToneMapping.apply


def rays(rng, origins):
    return (
        t(origins + rng.uniform(-0.3, 0.3, (4, 3))),
        t(rng.normal(0, 0.05, (4, 3)) + 1.5 * FORWARD),
        t(np.array([0.1, -0.2, 6.0])),
        t(np.array(2.0)),
    ), {}


@BOOK.wrong(
    lambda rng: rays(rng, np.zeros(3)),
    "from inside the sphere the far root is hit, where the slope has the opposite sign",
    SIGN,
    r"\binside\b|\bfar(?:ther)?\b|(?:second|other|larger|near) (?:root|hit|intersection|solution)",
    r"\bexit|\bleav(?:e|ing)\b|(?:sphere|ball) (?:contains|around)|within the",
    mends(
        "np.where(inside, root, -root)",
        "np.where(near > 0, -root, root)",
        "s.side * s.root",
        "(n * d).sum(axis=1)",
        "(normal * d).sum(axis=1)",
        "(n * s.directions.numpy()).sum(",
        'np.einsum("ij,ij->i", n, ',
    ),
    where="the origin lies inside the sphere",
    shows=lambda rng: rays(rng, np.array([0.1, 0.0, 5.5])),
)
def sphere_hit():
    @pb.autograd_function
    def sphere_hit(ctx, origins, directions, centre, radius):
        """Distance, in lengths of the direction, to the first hit in front; rays: (n, 3)."""
        o, d, r = origins.numpy() - centre.numpy(), directions.numpy(), radius.item()
        a, b = (d * d).sum(axis=1), (o * d).sum(axis=1)
        inner = b**2 - a * ((o * o).sum(axis=1) - r**2)
        if (inner <= 0).any():
            raise ValueError("sphere_hit: a ray misses the sphere")
        root = np.sqrt(inner)
        near, far = (-b - root) / a, (-b + root) / a
        if (far <= 0).any():
            raise ValueError("sphere_hit: the sphere lies behind a ray")
        hit = np.where(near > 0, near, far)
        ctx.save_for_backward(directions=directions, radius=radius, o=o, root=root, hit=hit)
        return pb.asarray(hit.copy())

    @sphere_hit.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        n = s.o + s.hit[:, None] * s.directions.numpy()
        flow = (g.numpy() / -s.root)[:, None]
        return {
            "origins": pb.asarray(-flow * n),
            "directions": pb.asarray(-flow * n * s.hit[:, None]),
            "centre": pb.asarray((flow * n).sum(axis=0)),
            "radius": pb.asarray(np.array(flow.sum() * s.radius.item())),
        }

    return sphere_hit


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(size=(4, 4, 3))), t(rng.uniform(0.15, 0.85, (6, 2)))), {}),
    "the slopes in u and v have the texture's height and width exchanged",
    SWAPPED,
    SQUARE,
    FACTOR + r"|multipl|divided by",
    r"\bheight\b|\bwidth\b|\baspect\b|rectang|\bn == m\b|shapes?\[[01]\]",
    mends(
        "width * across", "height * down", "np.stack([width", "[width, height]", "(width, height)"
    ),
    where="the texture is not square",
    shows=lambda rng: ((t(rng.uniform(size=(3, 6, 3))), t(rng.uniform(0.2, 0.8, (6, 2)))), {}),
)
def texture_lookup():
    @pb.autograd_function
    def texture_lookup(ctx, texture, uv):
        """Colours at uv by bilinear filtering, edges repeated; texture: (h, w, c), uv: (n, 2)."""
        height, width = texture.shape[:2]
        x, y = uv.numpy()[:, 0] * width - 0.5, uv.numpy()[:, 1] * height - 0.5
        i, j = np.floor(y).astype(int), np.floor(x).astype(int)
        ctx.rows = [np.clip(i + k, 0, height - 1) for k in (0, 1)]
        ctx.columns = [np.clip(j + k, 0, width - 1) for k in (0, 1)]
        ctx.p, ctx.q = (y - i)[:, None], (x - j)[:, None]
        ctx.texels = [[texture.numpy()[a, b] for b in ctx.columns] for a in ctx.rows]
        ctx.shape = texture.shape
        (a, b), (c, d) = ctx.texels
        return pb.asarray(
            (1 - ctx.p) * ((1 - ctx.q) * a + ctx.q * b) + ctx.p * ((1 - ctx.q) * c + ctx.q * d)
        )

    @texture_lookup.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, p, q = grad_output.numpy(), ctx.p, ctx.q
        grad, (height, width) = np.zeros(ctx.shape), ctx.shape[:2]
        for rows, by_row in zip(ctx.rows, (1 - p, p), strict=True):
            for columns, by_column in zip(ctx.columns, (1 - q, q), strict=True):
                np.add.at(grad, (rows, columns), by_row * by_column * gn)
        (a, b), (c, d) = ctx.texels
        across = (gn * ((1 - p) * (b - a) + p * (d - c))).sum(axis=1)
        down = (gn * ((1 - q) * (c - a) + q * (d - b))).sum(axis=1)
        grad_uv = np.stack([height * across, width * down], axis=1)
        return {"texture": pb.asarray(grad), "uv": pb.asarray(grad_uv)}

    return texture_lookup


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(0.5, 3.5, (5, 2))),
            t(rng.uniform(0.3, 0.9, 5)),
            t(rng.uniform(size=(5, 3))),
            np.array([2.0, 2.0]),
        ),
        {},
    ),
    "what a splat adds is seen through what lies before it, but its opacity's gradient takes the "
    "light that is left after it",
    FACTOR,
    SHIFT,
    r"(?:before|after|behind|in front of|past) (?:it|the|each|this|that|an?|update)\b",
    r"\btransmitt|\bthrough\b.{0,30}(?:before|after)|\b(?:next|previous) (?:value|step)",
    r"(?:before|after) (?:being )?(?:updat|multipl|attenuat)|(?:saved|wrong) value",
    mends(
        "colour * s.through[k] -",
        "(s.through[k] * colour -",
        "colour * s.through[k] * gn",
        "s.through[k] * (colour",
        "colour @ gn * s.through[k]",
        "s.through[k] * (gn @ colour",
        "gn @ colour * s.through[k]",
    ),
)
def splat_pixel():
    def forward(ctx, places, opacity, colours, pixel, spread=1.0):
        """Colour of a pixel under Gaussian splats, nearest first, on black.

        places: (n, 2), opacity: (n,), colours: (n, 3), pixel: (2,).
        """
        away = pixel - places.numpy()
        falloff = np.exp(-(away**2).sum(axis=1) / (2 * spread**2))
        alpha = opacity.numpy() * falloff
        through = np.cumprod(np.concatenate([[1.0], 1 - alpha]))
        ctx.save_for_backward(opacity=opacity, colours=colours, falloff=falloff, through=through)
        ctx.away, ctx.spread, ctx.alpha = away, spread, alpha
        return pb.asarray((alpha * through[:-1]) @ colours.numpy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn, n = ctx.saved_variables, grad_output.numpy(), len(ctx.alpha)
        grad_colours, by_alpha, behind = np.zeros((n, 3)), np.zeros(n), np.zeros(3)
        for k in reversed(range(n)):
            colour = s.colours.numpy()[k]
            grad_colours[k] = ctx.alpha[k] * s.through[k] * gn
            by_alpha[k] = gn @ (colour * s.through[k + 1] - behind / (1 - ctx.alpha[k]))
            behind += ctx.alpha[k] * s.through[k] * colour
        by_place = by_alpha * ctx.alpha / ctx.spread**2
        return {
            "places": pb.asarray(by_place[:, None] * ctx.away),
            "opacity": pb.asarray(by_alpha * s.falloff),
            "colours": pb.asarray(grad_colours),
        }

    return pb.autograd_function(forward, backward, name="splat_pixel")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(0.2, 0.9, 6)), t(rng.uniform(0.6, 0.98, 6)), t(np.array(0.04))),
        {"cos_view": rng.uniform(0.2, 0.9, 6)},
    ),
    "the width of the lobe is the roughness squared: the factor 2 * roughness is missing",
    FACTOR + r"|multipl|divided by",
    r"chain rule|roughness.{0,20}squared?\b|square of the roughness|\bsquared roughness",
    r"(?:missing|left out|lacks?|without|forgot\w*).{0,20}roughness|2 ?\* ?roughness\b",
    r"right only .{0,25}(?:1/2|0\.5)|where roughness (?:is|=+) ?0\.5",
    mends(
        "2 * r * by_width", "by_width * 2 * r", "2 * by_width * r", "by_width * r * 2", "2 * r *"
    ),
)
def ggx_highlight():
    @pb.autograd_function
    def ggx_highlight(ctx, roughness, cos_half, reflectance, cos_view):
        """GGX lobe times Schlick's Fresnel term; all (n,) but the scalar reflectance."""
        width, c = roughness.numpy() ** 2, cos_half.numpy()
        if (width <= 0).any():
            raise ValueError("ggx_highlight: the roughness must be positive")
        q = c**2 * (width**2 - 1) + 1
        lobe = width**2 / (np.pi * q**2)
        grazing = (1 - cos_view) ** 5
        fresnel = reflectance.item() + (1 - reflectance.item()) * grazing
        ctx.save_for_backward(width=width, c=c, q=q, lobe=lobe, roughness=roughness)
        ctx.grazing, ctx.fresnel = grazing, fresnel
        return pb.asarray(lobe * fresnel)

    @ggx_highlight.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_lobe = g.numpy() * ctx.fresnel
        by_q = -2 * by_lobe * s.lobe / s.q
        by_width = 2 * by_lobe * s.lobe / s.width + by_q * s.c**2 * 2 * s.width
        return {
            "roughness": pb.asarray(by_width),
            "cos_half": pb.asarray(by_q * 2 * s.c * (s.width**2 - 1)),
            "reflectance": pb.asarray(np.array((g.numpy() * s.lobe) @ (1 - ctx.grazing))),
        }

    return ggx_highlight


@BOOK.right(lambda rng: ((t(rng.uniform(0, 3, (3, 3, 3))), t(np.array(1.5))), {"gamma": 2.2}))
def filmic_curve():
    @pb.autograd_function
    def filmic_curve(ctx, image, exposure, gamma=None):
        """Narkowicz's fit of the ACES film curve, cut at white; exposure in stops."""
        x = image * 2**exposure
        ctx.save_for_backward(image=image, exposure=exposure)
        ctx.gamma = gamma
        y = curve(x)[0].clamp(0, 1)
        return y if gamma is None else y ** (1 / gamma)

    def curve(x):
        top, bottom = x * (2.51 * x + 0.03), x * (2.43 * x + 0.59) + 0.14
        return top / bottom, ((5.02 * x + 0.03) * bottom - top * (4.86 * x + 0.59)) / bottom**2

    @filmic_curve.backward
    def _(ctx, g):
        image, exposure = ctx.saved_tensors
        x = image * 2**exposure
        y, slope = curve(x)
        inside = (y > 0) & (y < 1)
        safe = pb.where(inside, y, pb.ones_like(y))
        if ctx.gamma is not None:
            slope = slope * safe ** (1 / ctx.gamma - 1) / ctx.gamma
        by_x = pb.where(inside, g * slope, pb.zeros_like(g))
        return {"image": by_x * 2**exposure, "exposure": (by_x * x).sum() * float(np.log(2))}

    return filmic_curve


CORNERS = np.array([[0, 1, 2], [1, 3, 2], [0, 1, 2], [0, 3, 1]])


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(4, 2))), t(rng.uniform(1, 5, 4))),
        {"corners": CORNERS, "barycentric": rng.dirichlet(np.ones(3), 4)},
    )
)
def perspective_interpolation():
    @pb.autograd_function
    def perspective_interpolation(ctx, attributes, depth, corners, barycentric):
        """Attributes of pixels; corners: (k, 3) vertices of the triangle that each lies in."""
        z = depth.numpy()[corners]
        if (z <= 0).any():
            raise ValueError("a vertex lies behind the camera")
        share = barycentric / z
        total = share.sum(axis=1, keepdims=True)
        weight = share / total
        values = attributes.numpy()[corners]
        ctx.save_for_backward(values=values, z=z, weight=weight)
        ctx.corners, ctx.shape = corners, attributes.shape
        return pb.asarray(np.einsum("kc,kcd->kd", weight, values))

    @perspective_interpolation.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        mean = np.einsum("kc,kcd->kd", s.weight, s.values)
        by_share = np.einsum("kd,kcd->kc", gn, s.values - mean[:, None])
        grad_values, grad_z = np.zeros(ctx.shape), np.zeros(ctx.shape[0])
        np.add.at(grad_values, ctx.corners, s.weight[..., None] * gn[:, None])
        np.add.at(grad_z, ctx.corners, -by_share * s.weight / s.z)
        return {"attributes": pb.asarray(grad_values), "depth": pb.asarray(grad_z)}

    return perspective_interpolation


@BOOK.right(
    lambda rng: (
        (
            t(np.array([[0.3, 0.1, 5.0], [-0.6, 0.4, 5.5], [0.2, -0.7, 6.0]])),
            t(rng.uniform(0.8, 1.1, 3)),
            np.array([0.02, 0.01, 1.0]),
        ),
        {"blend": 0.15},
    )
)
def sphere_tracing():
    @pb.autograd_function
    def sphere_tracing(ctx, centres, radii, direction, blend=0.1, steps=500):
        """Depth at which a ray from the origin meets spheres blended by a soft minimum."""
        d = direction / np.linalg.norm(direction)
        c, r, depth = centres.numpy(), radii.numpy(), 0.0
        for _ in range(steps):
            gap = np.linalg.norm(depth * d - c, axis=1) - r
            nearest = gap.min()
            distance = nearest - blend * np.log(np.exp((nearest - gap) / blend).sum())
            depth += distance
            if abs(distance) < 1e-13:
                break
        else:
            raise ValueError("sphere_tracing: the ray meets nothing")
        weights = np.exp((nearest - gap) / blend)
        ctx.weights, ctx.away = weights / weights.sum(), unit(depth * d - c)
        ctx.d = d
        return pb.asarray(np.array(depth))

    @sphere_tracing.backward
    @pb.once_differentiable
    def _(ctx, g):
        along = ctx.weights @ (ctx.away @ ctx.d)
        scaled = g.item() * ctx.weights / along
        return {"centres": pb.asarray(scaled[:, None] * ctx.away), "radii": pb.asarray(scaled)}

    return sphere_tracing


@BOOK.right(lambda rng: ((t(rng.normal(size=(5, 3))), t(rng.normal(size=(9, 3)))), {}))
def irradiance():
    def basis(n):
        x, y, z = n.T
        one, zero = np.ones_like(x), np.zeros_like(x)
        values = [0.886227 * one, 1.023328 * y, 1.023328 * z, 1.023328 * x, 0.858086 * x * y]
        values += [0.858086 * y * z, 0.743125 * z**2 - 0.247708 * one, 0.858086 * x * z]
        values += [0.429043 * (x**2 - y**2)]
        slopes = [(zero, zero, zero), (zero, 1.023328 * one, zero), (zero, zero, 1.023328 * one)]
        slopes += [(1.023328 * one, zero, zero), (0.858086 * y, 0.858086 * x, zero)]
        slopes += [(zero, 0.858086 * z, 0.858086 * y), (zero, zero, 1.48625 * z)]
        slopes += [(0.858086 * z, zero, 0.858086 * x), (0.858086 * x, -0.858086 * y, zero)]
        return np.stack(values, axis=1), np.array(slopes).transpose(2, 0, 1)

    class Irradiance(pb.Function):
        """Light that a surface gets from spherical harmonics; normals: (n, 3) of any length."""

        @staticmethod
        def forward(ctx, normals, coefficients):
            lengths = np.linalg.norm(normals.numpy(), axis=1, keepdims=True)
            if (lengths == 0).any():
                raise ValueError("irradiance: a normal has no length")
            ctx.n, ctx.lengths = normals.numpy() / lengths, lengths
            ctx.save_for_backward(coefficients=coefficients)
            return pb.asarray(basis(ctx.n)[0] @ coefficients.numpy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            gn, (values, slopes) = grad_output.numpy(), basis(ctx.n)
            by_value = gn @ ctx.saved_variables.coefficients.numpy().T
            by_n = np.einsum("nb,nbi->ni", by_value, slopes)
            across = by_n - ctx.n * (by_n * ctx.n).sum(axis=1, keepdims=True)
            return pb.asarray(across / ctx.lengths), pb.asarray(values.T @ gn)

    return Irradiance.apply


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.002, 0.03, 0.4, 0.009, 0.05])),
            t(np.array([0.001, 0.07, 0.2, 0.02, 0.011])),
        ),
        {"size": 128, "levels": 5},
    )
)
def mip_level():
    @pb.autograd_function
    def mip_level(ctx, across, down, size=256, levels=8, bias=0.0):
        """Level of detail of pixels whose footprint in uv has these sides, 0 to levels - 1."""
        side = pb.maximum(across.abs(), down.abs()) * size
        ctx.save_for_backward(across=across, down=down)
        ctx.size, ctx.top, ctx.bias = size, levels - 1, bias
        return (side.clamp(min=1e-9).log2() + bias).clamp(0, levels - 1)

    @mip_level.backward
    def _(ctx, g):
        a, d = ctx.saved_tensors
        side = pb.maximum(a.abs(), d.abs())
        level = (side * ctx.size).clamp(min=1e-9).log2() + ctx.bias
        inside = (level > 0) & (level < ctx.top)
        slope = pb.where(inside, g / (side * float(np.log(2))), pb.zeros_like(g))
        wider = (a.abs() >= d.abs()).to(g.dtype)
        return {"across": slope * wider * a.sign(), "down": slope * (1 - wider) * d.sign()}

    return mip_level
