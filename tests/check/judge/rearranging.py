"""Rearranging and reducing arrays: axes, padding, joining, layouts in memory, moments."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import (
    AXIS,
    BATCH,
    FACTOR,
    FLOAT32,
    MAGNITUDE,
    MEMORY,
    MISSING,
    NONE,
    ODD,
    SECOND,
    SHAPE,
    SQUARE,
    SWAPPED,
    TIES,
    TRANSPOSED,
    ZERO,
    Book,
    at,
    t,
)

BOOK = Book("rearranging")


def fortran(array):
    """Return a tensor over memory in Fortran's order, which requires grad."""
    return pb.asarray(np.asfortranarray(array)).requires_grad_(True)


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(2, 2, 2))),), {}),
    "backward permutes the axes the same way again where the inverse permutation is needed",
    AXIS,
    r"permut|inverse",
    where="an order that is not its own inverse",
    shows=lambda rng: ((t(rng.normal(size=(2, 2, 2))),), {"order": (1, 2, 0)}),
)
def rearrange():
    @pb.autograd_function
    def rearrange(ctx, x, order=(2, 1, 0)):
        ctx.order = order
        return pb.asarray(np.ascontiguousarray(x.numpy().transpose(order)))

    @rearrange.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"x": pb.asarray(np.ascontiguousarray(g.numpy().transpose(ctx.order)))}

    return rearrange


@BOOK.right(lambda rng: ((t(rng.normal(size=(2, 3, 4))),), {"axes": (1, 2, 0)}))
def reorder_axes():
    def forward(ctx, x: pb.Tensor, axes: tuple[int, ...]) -> pb.Tensor:
        if sorted(a % x.ndim for a in axes) != list(range(x.ndim)):
            raise ValueError(f"reorder_axes: axes must name every axis once, got {axes}")
        ctx.inverse = tuple(int(k) for k in np.argsort([a % x.ndim for a in axes]))
        return pb.permute_dims(x, axes)

    def backward(ctx, g):
        return {"x": pb.permute_dims(g, ctx.inverse)}

    return pb.autograd_function(forward, backward, name="reorder_axes")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=6)),), {}),
    "backward shifts by the same half again, which is not the inverse for an odd length",
    ODD,
    where="odd length",
    shows=lambda rng: ((t(rng.normal(size=7)),), {}),
)
def centre_spectrum():
    @pb.autograd_function
    def centre_spectrum(ctx, spectrum):
        """Move the zero frequency to the middle; spectrum: (n,)."""
        return pb.asarray(np.fft.fftshift(spectrum.numpy()))

    @centre_spectrum.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"spectrum": pb.asarray(np.fft.fftshift(g.numpy()))}

    return centre_spectrum


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 4))),), {}),
    "the padding's reflected entries are cut off and not added to where they came from",
    at("mode"),
    MISSING,
    r"reflect",
    where='mode="reflect"',
    shows=lambda rng: ((t(rng.normal(size=(3, 4))),), {"mode": "reflect"}),
)
def pad_columns():
    @pb.autograd_function
    def pad_columns(ctx, image: pb.Tensor, width: int = 1, mode: str = "constant") -> pb.Tensor:
        """Pad the columns of image: (h, w) as numpy.pad does."""
        ctx.width = width
        return pb.asarray(np.pad(image.numpy(), ((0, 0), (width, width)), mode=mode))

    @pad_columns.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"image": pb.asarray(g.numpy()[:, ctx.width : -ctx.width].copy())}

    return pad_columns


@BOOK.right(lambda rng: ((t(rng.normal(size=(3, 4))),), {"width": 2, "mode": "reflect"}))
def pad_rows():
    @pb.autograd_function
    def pad_rows(ctx, image, width=1, mode="edge"):
        source = np.pad(np.arange(image.shape[0]), width, mode=mode)
        ctx.source, ctx.shape = source, image.shape
        return pb.asarray(image.numpy()[source])

    @pad_rows.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad = np.zeros(ctx.shape)
        np.add.at(grad, ctx.source, g.numpy())
        return pb.asarray(grad), None, None

    return pad_rows


@BOOK.right(lambda rng: ((t(rng.normal(size=(2, 3))), t(rng.normal(size=(2, 1)))), {"axis": -1}))
def join():
    @pb.autograd_function
    def join(ctx, *parts, axis=0):
        """Join arrays along an axis."""
        ctx.sizes, ctx.axis = [p.shape[axis] for p in parts], axis
        return pb.concat(list(parts), axis=axis)

    @join.backward
    def _(ctx, g):
        grads, start = [], 0
        g = pb.moveaxis(g, ctx.axis, 0)
        for size in ctx.sizes:
            grads.append(pb.moveaxis(g[start : start + size], 0, ctx.axis))
            start += size
        return {"parts": tuple(grads)}

    return join


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 4))),), {}),
    "the number of rows is used for the number of columns, so only a square matrix is right",
    SQUARE,
    SHAPE,
    FACTOR,
    where="matrix not square",
    shows=lambda rng: ((t(rng.normal(size=(6, 3))),), {}),
)
def row_means():
    @pb.autograd_function
    def row_means(ctx, x: pb.Tensor) -> pb.Tensor:
        """Mean of each row of x: (n, m)."""
        ctx.save_for_backward(x=x)
        return x.mean(dim=1)

    @row_means.backward
    def _(ctx, g):
        x = ctx.saved_variables.x
        return {"x": pb.zeros_like(x) + g[:, None] / x.shape[0]}

    return row_means


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=6)),), {}),
    "backward divides by n where forward divides by n - ddof",
    FACTOR,
    at("ddof"),
    where="ddof other than 0",
    shows=lambda rng: ((t(rng.normal(size=6)),), {"ddof": 1}),
)
def variance():
    @pb.autograd_function
    def variance(ctx, sample, ddof=0):
        """Variance of sample: (n,)."""
        ctx.save_for_backward(sample=sample)
        return pb.asarray(sample.numpy().var(ddof=ddof))

    @variance.backward
    @pb.once_differentiable
    def _(ctx, g):
        x = ctx.saved_variables.sample
        return {"sample": 2 * g * (x - x.mean()) / len(x)}

    return variance


@BOOK.right(lambda rng: ((t(100 + rng.normal(size=(5, 3))),), {"ddof": 1}))
def covariance():
    @pb.autograd_function
    def covariance(ctx, data: pb.Tensor, ddof: int = 0) -> pb.Tensor:
        """Covariance of the columns of data: (n, d)."""
        n = data.shape[0]
        if n <= ddof:
            raise ValueError("covariance: more rows than ddof are needed")
        centred = data - data.mean(dim=0)
        ctx.save_for_backward(data=data)
        ctx.n = n - ddof
        return centred.t() @ centred / (n - ddof)

    @covariance.backward
    def _(ctx, g):
        data = ctx.saved_variables.data
        return {"data": (data - data.mean(dim=0)) @ (g + g.t()) / ctx.n}

    return covariance


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 4))),), {}),
    "the place of the maximum is counted in the order of memory, not of the array's layout",
    MEMORY,
    where="non-contiguous memory",
    shows=lambda rng: ((fortran(rng.normal(size=(3, 4))),), {}),
)
def peak():
    @pb.autograd_function
    def peak(ctx, image):
        """The largest entry of image: (h, w)."""
        flat = image.numpy().ravel(order="K")
        ctx.at, ctx.shape = int(flat.argmax()), image.shape
        return pb.asarray(flat.max())

    @peak.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad = np.zeros(ctx.shape)
        grad.reshape(-1)[ctx.at] = g.item()
        return {"image": pb.asarray(grad)}

    return peak


@BOOK.right(lambda rng: ((fortran(rng.normal(size=(3, 4))),), {}))
def peak_and_place():
    @pb.autograd_function
    def peak_and_place(ctx, image):
        flat = image.numpy().reshape(-1)
        ctx.at, ctx.shape = int(flat.argmax()), image.shape
        return pb.asarray(flat[ctx.at]), pb.asarray(np.array(np.unravel_index(ctx.at, ctx.shape)))

    @peak_and_place.backward
    @pb.once_differentiable
    def _(ctx, g, g_place):
        grad = np.zeros(ctx.shape)
        grad.reshape(-1)[ctx.at] = g.item()
        return {"image": pb.asarray(grad)}

    return peak_and_place


@BOOK.wrong(
    lambda rng: ((t(0.5 + rng.random(5)),), {}),
    "backward computes the power by exp and log, which is not a number for a negative base",
    MAGNITUDE,
    r"negative",
    where="x negative",
    shows=lambda rng: ((t(-0.5 - rng.random(5)),), {}),
)
def integer_power():
    @pb.autograd_function
    def integer_power(ctx, x, n: int = 3):
        """x ** n for a whole number n."""
        ctx.save_for_backward(x=x, n=n)
        return x**n

    @integer_power.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        with np.errstate(invalid="ignore"):
            slope = s.n * np.exp((s.n - 1) * np.log(s.x.numpy()))
        return pb.asarray(g.numpy() * slope), None

    return integer_power


@BOOK.wrong(
    lambda rng: ((t(1 + rng.random(5)),), {}),
    "1 - exp(-x) cancels in float32 for small x; forward uses expm1, backward does not",
    FLOAT32,
    r"cancel|\bsmall\b",
    where="float32, small x",
    shows=lambda rng: (
        (pb.tensor((1e-7 * (1 + rng.random(5))).astype("f4"), requires_grad=True),),
        {},
    ),
)
def log_one_minus_exp():
    @pb.autograd_function
    def log_one_minus_exp(ctx, x):
        """log(1 - exp(-x)); x: (n,) positive."""
        if (x.numpy() <= 0).any():
            raise ValueError("log_one_minus_exp: x must be positive")
        ctx.save_for_backward(x=x)
        return pb.log(-pb.expm1(-x))

    @log_one_minus_exp.backward
    @pb.once_differentiable
    def _(ctx, g):
        e = np.exp(-ctx.saved_variables.x.numpy())
        return {"x": pb.asarray(g.numpy() * e / np.maximum(1 - e, np.finfo(e.dtype).tiny))}

    return log_one_minus_exp


@BOOK.right(lambda rng: ((t(np.array([1e-9, 1e-3, 1.0, 30.0])),), {}))
def log1mexp():
    @pb.autograd_function
    def log1mexp(ctx, x):
        if (x.numpy() <= 0).any():
            raise ValueError("log1mexp: x must be positive")
        ctx.save_for_backward(x=x)
        return pb.log(-pb.expm1(-x))

    @log1mexp.backward
    def _(ctx, g):
        x = ctx.saved_variables.x
        return {"x": -g * pb.exp(-x) / pb.expm1(-x)}

    return log1mexp


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 3))),), {}),
    "given a bias, the operation returns None for it",
    NONE,
    at("bias"),
    where="bias given",
    shows=lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.normal(size=3))), {}),
)
def optional_bias():
    @pb.autograd_function
    def optional_bias(ctx, x, bias=None):
        """sin(x + bias)."""
        z = x if bias is None else x + bias
        ctx.save_for_backward(slope=z.numpy().copy())
        return pb.sin(z)

    @optional_bias.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"x": g * pb.asarray(np.cos(ctx.saved_variables.slope)), "bias": None}

    return optional_bias


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(1, 4, 3))), t(rng.normal(size=(1, 3, 2)))), {}),
    "of a batch the right factor's gradient is the mean over the batch of the left factors",
    BATCH,
    where="batch > 1",
    shows=lambda rng: ((t(rng.normal(size=(3, 4, 3))), t(rng.normal(size=(3, 3, 2)))), {}),
)
def stacked_matmul():
    def forward(ctx, a: pb.Tensor, b: pb.Tensor) -> pb.Tensor:
        """a: (n, i, j), b: (n, j, k)."""
        ctx.save_for_backward(a=a, b=b)
        return a @ b

    @pb.once_differentiable
    def backward(ctx, g):
        a, b, gn = ctx.saved_variables.a.numpy(), ctx.saved_variables.b.numpy(), g.numpy()
        by_b = a.mean(axis=0).T @ gn
        return {"a": pb.asarray(gn @ b.transpose(0, 2, 1)), "b": pb.asarray(by_b)}

    return pb.autograd_function(forward, backward, name="stacked_matmul")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=5)),), {"low": -10.0, "high": 10.0}),
    "values below the lower bound still get a gradient",
    ZERO,
    r"\bbelow\b|\bbound|\bclip|\bclamp",
    where="x below low",
    shows=lambda rng: ((t(-3 + 0.1 * rng.normal(size=5)),), {"low": -1.0, "high": 1.0}),
)
def limit_values():
    @pb.autograd_function
    def limit_values(ctx, x, low, high):
        ctx.save_for_backward(x=x, high=high)
        return x.clamp(min=low, max=high)

    @limit_values.backward
    def _(ctx, g):
        return {"x": g * (ctx.saved_variables.x < ctx.saved_variables.high)}

    return limit_values


@BOOK.right(lambda rng: ((t(2 * rng.normal(size=6)), t(rng.normal(size=6))), {}))
def elementwise_max():
    @pb.autograd_function
    def elementwise_max(ctx, a, b):
        """max(a, b); at ties half of the gradient goes to each."""
        ctx.save_for_backward(a=a, b=b)
        return pb.maximum(a, b)

    @elementwise_max.backward
    def _(ctx, g):
        a, b = ctx.saved_tensors
        share = 0.5 * (1 + pb.sign(a - b))
        return {"a": g * share, "b": g * (1 - share)}

    return elementwise_max


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=6)), t(rng.normal(size=6))), {}),
    "at ties both arguments get the whole gradient",
    TIES,
    FACTOR,
    where="ties",
    shows=lambda rng: ((t(np.array([1.0, 2.0, 3.0])), t(np.array([1.0, 2.0, 3.0]))), {}),
)
def larger():
    @pb.autograd_function
    def larger(ctx, a, b):
        """The larger of a and b, (n,) each."""
        ctx.save_for_backward(a=a, b=b)
        return pb.maximum(a, b)

    @larger.backward
    def _(ctx, g):
        a, b = ctx.saved_tensors
        return {"a": g * (a >= b), "b": g * (b >= a)}

    return larger


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 4))),), {}),
    "the softmax is a list of numbers in backward, so the second derivative is wrong",
    SECOND,
    where="second derivative",
)
def soft_maximum():
    @pb.autograd_function
    def soft_maximum(ctx, x: pb.Tensor) -> pb.Tensor:
        """log(sum(exp(x))) of each row of x: (n, k)."""
        ctx.save_for_backward(x=x)
        return pb.logsumexp(x, axis=1)

    @soft_maximum.backward
    def _(ctx, g):
        z = np.array(ctx.saved_variables.x.tolist())
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return {"x": g[:, None] * pb.asarray(p / p.sum(axis=1, keepdims=True))}

    return soft_maximum


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 3))), t(rng.normal(size=(3, 3)))), {}),
    "the gradients of the two sides of the outer sum are exchanged",
    SWAPPED,
    TRANSPOSED,
    where="always",
)
def symmetric_product():
    @pb.autograd_function
    def symmetric_product(ctx, a, b):
        """a b' + b a'; a and b: (n, k)."""
        ctx.save_for_backward(a=a, b=b)
        return a @ b.t() + b @ a.t()

    @symmetric_product.backward
    @pb.once_differentiable
    def _(ctx, g):
        a, b = ctx.saved_tensors
        both = g + g.t()
        return {"a": both @ a, "b": both @ b}

    return symmetric_product
