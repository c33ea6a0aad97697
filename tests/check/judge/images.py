"""Images: filters, warps, resampling, colours, pyramids, variation and soft morphology."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import pullback as pb

from .entries import (
    CHANGED,
    FACTOR,
    MISSING,
    ODD,
    REVERSED,
    SHIFT,
    SWAPPED,
    Book,
    at,
    t,
)

BOOK = Book("images")


@BOOK.wrong(
    lambda rng: (
        (t(rng.random((6, 7))), t(0.8), np.array([0.1, 0.25, 0.3, 0.25, 0.1])),
        {},
    ),
    "what the border's copies get is cut off instead of added to the pixels at the border",
    r"\bborders?\b|\bcorners?\b|\bpadd|\bedges?\b|\bboundar"
    r"|\b(?:first|last|outer) (?:two )?(?:rows?|columns?|elements?|places?)",
)
def unsharp_mask():
    def blurred(image, kernel, mode):
        r = len(kernel) // 2
        for axis in (0, 1):
            width = [(r, r) if k == axis else (0, 0) for k in (0, 1)]
            image = sliding_window_view(np.pad(image, width, mode), len(kernel), axis) @ kernel
        return image

    @pb.autograd_function
    def unsharp_mask(ctx, image, amount, kernel):
        """Add `amount` times what a blur takes away; the border's pixels are repeated."""
        xn = image.numpy()
        detail = xn - blurred(xn, kernel, "edge")
        ctx.save_for_backward(detail=detail, amount=amount, kernel=kernel)
        return pb.asarray(xn + amount.item() * detail)

    @unsharp_mask.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        back = g - blurred(g, s.kernel[::-1], "constant")
        return {
            "image": pb.asarray(g + s.amount.item() * back),
            "amount": pb.asarray((g * s.detail).sum()),
        }

    return unsharp_mask


def near_identity(rng):
    theta = np.eye(2, 3) + np.array([[0.0, 0.1, 0.33], [-0.15, 0.0, 0.41]])
    return (t(rng.random((5, 5))), t(theta + 0.02 * rng.normal(size=(2, 3)))), {}


@BOOK.wrong(
    near_identity,
    "the derivatives by the row and by the column are exchanged in the gradient of theta",
    SWAPPED,
    r"\border of (?:x and y|the rows)|\brows? of\b",
)
def affine_warp():
    def taps(r, c, shape):
        r0, c0 = np.floor(r).astype(int), np.floor(c).astype(int)
        for i, wr, dr in ((r0, 1 - (r - r0), -1), (r0 + 1, r - r0, 1)):
            for j, wc, dc in ((c0, 1 - (c - c0), -1), (c0 + 1, c - c0, 1)):
                inside = (i >= 0) & (i < shape[0]) & (j >= 0) & (j < shape[1])
                place = np.clip(i, 0, shape[0] - 1), np.clip(j, 0, shape[1] - 1)
                yield place, inside * wr * wc, inside * dr * wc, inside * wr * dc

    @pb.autograd_function
    def affine_warp(ctx, image, theta):
        """Sample image: (h, w) bilinearly at theta @ (row, column, 1); 0 outside."""
        rows, cols = np.indices(image.shape)
        grid = np.stack([rows, cols, np.ones(image.shape)])
        r, c = np.tensordot(theta.numpy(), grid, axes=1)
        ctx.save_for_backward(image=image, grid=grid, r=r, c=c)
        return pb.asarray(sum(w * image.numpy()[p] for p, w, _, _ in taps(r, c, image.shape)))

    @affine_warp.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        grad, by_row, by_col = np.zeros(g.shape), np.zeros(g.shape), np.zeros(g.shape)
        for place, w, dr, dc in taps(s.r, s.c, g.shape):
            np.add.at(grad, place, g * w)
            by_row += dr * s.image.numpy()[place]
            by_col += dc * s.image.numpy()[place]
        theta = [(g * d * s.grid).sum(axis=(1, 2)) for d in (by_col, by_row)]
        return {"image": pb.asarray(grad), "theta": pb.asarray(np.stack(theta))}

    return affine_warp


@BOOK.wrong(
    lambda rng: ((t(rng.random((6, 5))),), {"eps": 1e-2}),
    "each pixel counts in its own differences only; the terms from its two neighbours are missing",
    MISSING,
    SHIFT,
    r"\bhalf\b|\bdifferences\b",
)
def smoothed_variation():
    @pb.autograd_function
    def smoothed_variation(ctx, image: pb.Tensor, eps: float = 1e-3) -> pb.Tensor:
        """Sum of the lengths of the forward differences of image: (h, w)."""
        x = image.numpy()
        down, right = np.zeros_like(x), np.zeros_like(x)
        down[:-1] = np.diff(x, axis=0)
        right[:, :-1] = np.diff(x, axis=1)
        length = np.sqrt(down**2 + right**2 + eps)
        ctx.save_for_backward(down=down, right=right, length=length)
        return pb.asarray(length.sum())

    @smoothed_variation.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        grad = -(s.down + s.right) / s.length
        return {"image": grad_output * pb.asarray(grad)}

    return smoothed_variation


@BOOK.right(
    lambda rng: ((t(0.15 + 0.8 * rng.random((3, 4, 3))),), {}),
)
def srgb_to_lab():
    to_xyz = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    to_lab = np.array([[0, 116, 0], [500, -500, 0], [0, 200, -200]])
    relative = to_xyz / np.array([[0.95047], [1.0], [1.08883]])
    small = 6 / 29

    @pb.autograd_function
    def srgb_to_lab(ctx, image: pb.Tensor) -> pb.Tensor:
        """Convert image: (h, w, 3) with values from 0 to 1 to CIE L*a*b* under D65."""
        c = image.numpy()
        light = np.where(c <= 0.04045, c / 12.92, ((np.abs(c) + 0.055) / 1.055) ** 2.4)
        xyz = light @ relative.T
        root = np.where(xyz > small**3, np.cbrt(xyz), xyz / (3 * small**2) + 4 / 29)
        ctx.save_for_backward(image=image, xyz=xyz)
        lab = root @ to_lab.T - np.array([16, 0, 0])
        return pb.asarray(lab.astype(c.dtype))

    @srgb_to_lab.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        c, xyz = ctx.saved_variables.image.numpy(), ctx.saved_variables.xyz
        bend = np.cbrt(np.maximum(xyz, small**3)) ** -2 / 3
        slope = 2.4 / 1.055 * ((np.abs(c) + 0.055) / 1.055) ** 1.4
        light = (grad_output.numpy() @ to_lab * bend) @ relative
        return {"image": pb.asarray(light * np.where(c <= 0.04045, 1 / 12.92, slope))}

    return srgb_to_lab


@BOOK.wrong(
    lambda rng: ((t(rng.random((3, 4, 5))),), {"eps": 1e-3}),
    "the centred pixels that were saved are divided in place afterwards: the saved ones changed",
    CHANGED,
    FACTOR,
    r"\bstandard deviation\b|\bstd\b|\bdivided twice|\btwice divided",
)
def standardise_contrast():
    @pb.autograd_function
    def standardise_contrast(ctx, images, eps=1e-3):
        """Give each of images: (n, h, w) mean 0 and deviation 1."""
        centred = images.numpy() - images.numpy().mean(axis=(1, 2), keepdims=True)
        std = np.sqrt((centred**2).mean(axis=(1, 2), keepdims=True) + eps)
        ctx.save_for_backward(centred=centred, std=std)
        centred /= std
        return pb.asarray(centred)

    @standardise_contrast.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        hat = s.centred / s.std
        along = (g * hat).mean(axis=(1, 2), keepdims=True)
        return {
            "images": pb.asarray((g - g.mean(axis=(1, 2), keepdims=True) - hat * along) / s.std)
        }

    return standardise_contrast


@BOOK.wrong(
    lambda rng: ((t(rng.random((2, 4, 5))),), {"size": (6, 8)}),
    "backward computes the places for align_corners=False, whatever the setting says",
    at("align_corners"),
    SHIFT,
    where="align_corners=True",
    shows=lambda rng: ((t(rng.random((2, 4, 5))),), {"size": (6, 8), "align_corners": True}),
)
def upsample():
    def taps(n, m, align_corners=False):
        if align_corners:
            place = np.arange(m) * ((n - 1) / max(m - 1, 1))
        else:
            place = np.clip((np.arange(m) + 0.5) * n / m - 0.5, 0, n - 1)
        low = np.minimum(place.astype(int), max(n - 2, 0))
        weights = np.zeros((m, n))
        weights[np.arange(m), low] = 1 - (place - low)
        weights[np.arange(m), np.minimum(low + 1, n - 1)] += place - low
        return weights

    @pb.autograd_function
    def upsample(ctx, images, size, align_corners: bool = False):
        """Resize images: (n, h, w) to `size` bilinearly."""
        h, w = images.shape[1:]
        rows, cols = taps(h, size[0], align_corners), taps(w, size[1], align_corners)
        ctx.save_for_backward(shape=(h, w), size=size)
        return pb.asarray(rows @ images.numpy() @ cols.T)

    @upsample.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        (h, w), size = ctx.saved_variables
        rows, cols = taps(h, size[0]), taps(w, size[1])
        return {"images": pb.asarray(rows.T @ grad_output.numpy() @ cols)}

    return upsample


@BOOK.right(lambda rng: ((t(rng.random((7, 10))),), {"levels": 3}))
def gaussian_pyramid():
    def halving(n, dtype):
        out = np.zeros((-(-n // 2), n))
        for k, weight in zip(range(-2, 3), (1, 4, 6, 4, 1), strict=True):
            near = np.abs(np.arange(0, n, 2) + k)
            near = (n - 1) - np.abs((n - 1) - near)
            np.add.at(out, (np.arange(len(out)), near), weight / 16)
        return pb.asarray(out).to(dtype)

    @pb.autograd_function
    def gaussian_pyramid(ctx, image, levels=2):
        """Return the image: (h, w) and its blurred halves, `levels` in all; h and w at least 5."""
        if min(image.shape) >> (levels - 2) < 2:
            raise ValueError(f"gaussian_pyramid: {image.shape} has no {levels} levels")
        ctx.shapes, pyramid = [], [image]
        for _ in range(levels - 1):
            h, w = pyramid[-1].shape
            ctx.shapes.append((h, w))
            pyramid.append(halving(h, image.dtype) @ pyramid[-1] @ halving(w, image.dtype).t())
        return pyramid

    @gaussian_pyramid.backward
    def _(ctx, *grads):
        carry = grads[-1]
        for (h, w), g in zip(ctx.shapes[::-1], grads[-2::-1], strict=True):
            carry = halving(h, g.dtype).t() @ carry @ halving(w, g.dtype) + g
        return {"image": carry}

    return gaussian_pyramid


@BOOK.right(lambda rng: ((t(rng.random((5, 6))), t(0.4)), {"sigma_space": 1.2, "radius": 2}))
def bilateral_filter():
    def closeness(shape, sigma, radius):
        r, c = np.indices(shape).reshape(2, -1)
        dr, dc = r[:, None] - r, c[:, None] - c
        near = np.maximum(np.abs(dr), np.abs(dc)) <= radius
        return near * np.exp(-(dr**2 + dc**2) / (2 * sigma**2))

    @pb.autograd_function
    def bilateral_filter(ctx, image, sigma_range, sigma_space=1.0, radius=1):
        """Mean of the neighbours of image: (h, w) that are near in place and in value."""
        x, width = image.numpy().ravel(), sigma_range.item()
        gap = x[:, None] - x
        p = closeness(image.shape, sigma_space, radius) * np.exp(-((gap / width) ** 2) / 2)
        p /= p.sum(axis=1, keepdims=True)
        y = p @ x
        ctx.save_for_backward(gap=gap, p=p, rest=x - y[:, None], width=width)
        return pb.asarray(y.reshape(image.shape).astype(image.numpy().dtype))

    @bilateral_filter.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        by_weight = g.ravel()[:, None] * s.p * s.rest
        by_gap = -by_weight * s.gap / s.width**2
        grad = s.p.T @ g.ravel() + by_gap.sum(axis=1) - by_gap.sum(axis=0)
        return {
            "image": pb.asarray(grad.reshape(g.shape)),
            "sigma_range": pb.asarray((by_weight * s.gap**2).sum() / s.width**3),
        }

    return bilateral_filter


@BOOK.wrong(
    lambda rng: ((t(rng.random((5, 6))),), {"size": 3, "sharpness": 4.0}),
    "backward uses the same box sum as forward, which for an even size reaches further to one side",
    ODD,
    SHIFT,
    REVERSED,
    at("size"),
    where="even size",
    shows=lambda rng: ((t(rng.random((5, 6))),), {"size": 2, "sharpness": 4.0}),
)
def soft_dilation():
    def box_sum(x, size):
        before = size // 2
        padded = np.pad(x, (before, size - 1 - before))
        return sliding_window_view(padded, (size, size)).sum(axis=(2, 3))

    @pb.autograd_function
    def soft_dilation(ctx, image, size=3, sharpness=1.0):
        """Soft maximum over size x size windows of image: (h, w)."""
        xn = image.numpy()
        top = xn.max()
        e = np.exp(sharpness * (xn - top))
        total = box_sum(e, size)
        ctx.save_for_backward(e=e, total=total, size=size)
        return pb.asarray(top + np.log(total) / sharpness)

    @soft_dilation.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        return {"image": pb.asarray(s.e * box_sum(grad_output.numpy() / s.total, s.size))}

    return soft_dilation


@BOOK.right(lambda rng: ((t(rng.random((5, 6))), t(rng.random((5, 6)))), {"window": 3}))
def structural_similarity():
    c1, c2 = 0.01**2, 0.03**2

    def forward(ctx, left, right, window=3):
        """SSIM of two images: (h, w) in each window, and its mean."""
        a, b = (sliding_window_view(v.numpy(), (window, window)) for v in (left, right))
        ma, mb = (v.mean(axis=(2, 3), keepdims=True) for v in (a, b))
        both = ((a - ma) * (b - mb)).mean(axis=(2, 3), keepdims=True)
        spread = ((a - ma) ** 2 + (b - mb) ** 2).mean(axis=(2, 3), keepdims=True)
        levels = (2 * ma * mb + c1, ma**2 + mb**2 + c1)
        ssim = levels[0] / levels[1] * (2 * both + c2) / (spread + c2)
        ctx.save_for_backward(left=left, right=right, window=window)
        ctx.parts = (ma, mb, levels, both, spread, ssim)
        return pb.asarray(ssim.mean()), pb.asarray(ssim[..., 0, 0].copy())

    def by(x, mx, y, my, parts, g):
        levels, both, spread, ssim = parts
        through_mean = 2 * ssim * (my / levels[0] - mx / levels[1])
        through_both = 2 * ssim / (2 * both + c2) * (y - my)
        through_spread = 2 * ssim / (spread + c2) * (x - mx)
        return g * (through_mean + through_both - through_spread)

    @pb.once_differentiable
    def backward(ctx, g_mean, g_map):
        s = ctx.saved_variables
        a, b = (sliding_window_view(v.numpy(), (s.window,) * 2) for v in (s.left, s.right))
        g = (g_map.numpy() + g_mean.item() / g_map.numpy().size) / s.window**2
        ma, mb, *rest = ctx.parts
        grads = []
        for x, mx, y, my in ((a, ma, b, mb), (b, mb, a, ma)):
            pieces = by(x, mx, y, my, rest, g[..., None, None])
            grad = np.zeros(s.left.shape, pieces.dtype)
            for i, j in np.ndindex(s.window, s.window):
                grad[i : i + g.shape[0], j : j + g.shape[1]] += pieces[..., i, j]
            grads.append(pb.asarray(grad))
        return dict(zip(("left", "right"), grads, strict=True))

    return pb.autograd_function(forward, backward, name="structural_similarity")


class Layer(NamedTuple):
    colour: pb.Tensor
    alpha: pb.Tensor


def two_layers(rng):
    front, back = (t(rng.random((3, 4, 3))) for _ in range(2))
    alphas = [t(0.2 + 0.7 * rng.random((3, 4))) for _ in range(2)]
    return (front, alphas[0], back, alphas[1]), {}


@BOOK.right(two_layers)
def composite_over():
    def blend(front, fa, back, ba):
        alpha = fa + ba * (1 - fa)
        shown = front * fa.unsqueeze(-1) + back * (ba * (1 - fa)).unsqueeze(-1)
        return shown / alpha.unsqueeze(-1), alpha

    @pb.autograd_function
    def composite_over(ctx, front, front_alpha, back, back_alpha) -> Layer:
        """Put one layer over another; colours: (h, w, 3), alphas: (h, w), above 0."""
        arguments = (front, front_alpha, back, back_alpha)
        ctx.save_for_backward(*arguments)
        return Layer(*blend(*arguments))

    @composite_over.backward
    def _(ctx, g_colour, g_alpha):
        front, fa, back, ba = ctx.saved_tensors
        colour, alpha = blend(front, fa, back, ba)
        g = g_colour / alpha.unsqueeze(-1)
        through = g_alpha - (g * colour).sum(dim=-1)
        by_front = (g * (front - back * ba.unsqueeze(-1))).sum(dim=-1)
        return {
            "front": g * fa.unsqueeze(-1),
            "back": g * (ba * (1 - fa)).unsqueeze(-1),
            "front_alpha": by_front + through * (1 - ba),
            "back_alpha": ((g * back).sum(dim=-1) + through) * (1 - fa),
        }

    return composite_over
