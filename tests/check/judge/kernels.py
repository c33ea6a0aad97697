"""Numerical kernels written as loops: scans, stencils, recursive filters, dynamic programming."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import (
    AXIS,
    FACTOR,
    IGNORED,
    MAGNITUDE,
    MISSING,
    NONE,
    REVERSED,
    SECOND,
    SHAPE,
    SHIFT,
    SIGN,
    SQUARE,
    SUMMED,
    TIES,
    TRANSPOSED,
    ZERO,
    Book,
    at,
    spd,
    t,
)

BOOK = Book("kernels")


def vector(n=7):
    return lambda rng: ((t(rng.normal(size=n)),), {})


@BOOK.wrong(
    vector(),
    "the gradient is summed from the front; it must be summed from the back",
    REVERSED,
    r"from the (back|end)",
)
def prefix_sum():
    def scan(x):
        out, total = np.empty_like(x), 0.0
        for i in range(len(x)):
            total += x[i]
            out[i] = total
        return out

    @pb.autograd_function
    def prefix_sum(ctx, x: pb.Tensor) -> pb.Tensor:
        """Running sums of x: (n,)."""
        return pb.asarray(scan(x.numpy()))

    @prefix_sum.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return {"x": pb.asarray(scan(grad_output.numpy()))}

    return prefix_sum


@BOOK.wrong(
    lambda rng: ((t(1 + rng.random(6)),), {}),
    "the product is divided by x, so the gradient is set to zero where x is 0",
    ZERO,
    MAGNITUDE,
    where="x contains 0",
    shows=lambda rng: ((t(np.array([1.0, 2.0, 0.0, 1.5])),), {}),
)
def prefix_product():
    @pb.autograd_function
    def prefix_product(ctx, x):
        out = np.cumprod(x.numpy())
        ctx.save_for_backward(x=x, out=out)
        return pb.asarray(out)

    @prefix_product.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        x, flow = s.x.numpy(), g.numpy() * s.out
        grad = np.zeros_like(x)
        for i in range(len(x)):
            if x[i] != 0:
                grad[i] = flow[i:].sum() / x[i]
        return {"x": pb.asarray(grad)}

    return prefix_product


@BOOK.right(lambda rng: ((t(np.array([1.0, 2.0, 0.0, 1.5, -0.3])),), {}))
def running_product():
    def forward(ctx, x):
        out = np.cumprod(x.numpy())
        ctx.save_for_backward(x=x)
        return pb.asarray(out)

    @pb.once_differentiable
    def backward(ctx, g):
        x, gn = ctx.saved_variables.x.numpy(), g.numpy()
        grad, before = np.zeros_like(x), 1.0
        for i in range(len(x)):
            tail = 1.0
            for k in range(i, len(x)):
                tail *= x[k] if k > i else 1.0
                grad[i] += gn[k] * before * tail
            before *= x[i]
        return {"x": pb.asarray(grad)}

    return pb.autograd_function(forward, backward, name="running_product")


def recursive(x, a):
    y, last = np.empty_like(x), 0.0
    for i in range(len(x)):
        last = x[i] + a * last
        y[i] = last
    return y


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=8)), t(0.6)), {}),
    "off by one: the coefficient's gradient uses the output of the same step",
    SHIFT,
)
def iir_filter():
    @pb.autograd_function
    def iir_filter(ctx, x, a):
        """y[i] = x[i] + a y[i - 1]."""
        y = recursive(x.numpy(), a.item())
        ctx.save_for_backward(y=y, a=a)
        return pb.asarray(y)

    @iir_filter.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        u = recursive(g.numpy()[::-1], s.a.item())[::-1]
        return {"x": pb.asarray(u.copy()), "a": pb.asarray((u * s.y).sum())}

    return iir_filter


@BOOK.right(lambda rng: ((t(rng.normal(size=8)), t(0.6)), {}))
def leaky_integrator():
    @pb.autograd_function
    def leaky_integrator(ctx, drive, leak, initial=0.0):
        y = recursive(drive.numpy() + np.eye(len(drive))[0] * leak.item() * initial, leak.item())
        out = pb.asarray(y)
        ctx.save_for_backward(out=out, leak=leak, initial=initial)
        return out

    @leaky_integrator.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        u = recursive(g.numpy()[::-1], s.leak.item())[::-1].copy()
        before = np.r_[s.initial, s.out.numpy()[:-1]]
        return {"drive": pb.asarray(u), "leak": pb.asarray(u @ before)}

    return leaky_integrator


def biquad(b, a, x):
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = sum(b[k] * x[i - k] for k in range(len(b)) if i >= k)
        y[i] -= sum(a[k] * y[i - k - 1] for k in range(len(a)) if i >= k + 1)
    return y


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=3)), t(0.3 * rng.normal(size=2)), t(rng.normal(size=9))), {}),
    "the feedback coefficients' gradient has the wrong sign",
    SIGN,
)
def biquad_filter():
    @pb.autograd_function
    def biquad_filter(ctx, b, a, x):
        y = biquad(b.numpy(), a.numpy(), x.numpy())
        ctx.save_for_backward(b=b, a=a, x=x, y=y)
        return pb.asarray(y)

    @biquad_filter.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        b, a, x, n = s.b.numpy(), s.a.numpy(), s.x.numpy(), len(s.x)
        u = biquad(np.ones(1), a, g.numpy()[::-1])[::-1]
        by_b = np.array([u[k:] @ x[: n - k] for k in range(len(b))])
        by_a = np.array([u[k + 1 :] @ s.y[: n - k - 1] for k in range(len(a))])
        by_x = np.array(
            [sum(b[k] * u[i + k] for k in range(len(b)) if i + k < n) for i in range(n)]
        )
        return tuple(map(pb.asarray, (by_b, by_a, by_x)))

    return biquad_filter


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(6, 6))), t(0.1)), {}),
    "the boundary's rows are left out of the field's gradient",
    MISSING,
    ZERO,
    r"boundar|\bedges?\b|\bborder",
)
def heat_step():
    @pb.autograd_function
    def heat_step(ctx, u: pb.Tensor, rate: pb.Tensor) -> pb.Tensor:
        """One explicit step of heat flow in u: (n, m); the boundary stays as it is."""
        un = u.numpy()
        lap = np.zeros_like(un)
        inner = un[2:, 1:-1] + un[:-2, 1:-1] + un[1:-1, 2:] + un[1:-1, :-2] - 4 * un[1:-1, 1:-1]
        lap[1:-1, 1:-1] = inner
        ctx.save_for_backward(lap=lap, rate=rate)
        return pb.asarray(un + rate.numpy() * lap)

    @heat_step.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        inner = np.zeros_like(gn)
        inner[1:-1, 1:-1] = gn[1:-1, 1:-1]
        flow = -4 * inner
        flow[1:-1, 1:-1] += inner[2:, 1:-1] + inner[:-2, 1:-1] + inner[1:-1, 2:] + inner[1:-1, :-2]
        by_u = gn + s.rate.numpy() * flow
        return {"u": pb.asarray(by_u), "rate": pb.asarray((gn * s.lap).sum())}

    return heat_step


@BOOK.right(lambda rng: ((t(rng.normal(size=(64, 64))), t(0.1)), {"steps": 2}))
def diffuse():
    def laplace(u):
        out = -4 * u
        for axis in (0, 1):
            out = out + np.roll(u, 1, axis) + np.roll(u, -1, axis)
        return out

    class Diffuse(pb.Function):
        """Periodic heat flow on a grid u: (n, m) for some steps."""

        @staticmethod
        def forward(ctx, u, rate, steps=1):
            r, fields = rate.item(), [u.numpy()]
            for _ in range(steps):
                fields.append(fields[-1] + r * laplace(fields[-1]))
            ctx.save_for_backward(rate=rate)
            ctx.laplacians = [laplace(f) for f in fields[:-1]]
            return pb.asarray(fields[-1].copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            r, flow, by_rate = ctx.saved_variables.rate.item(), g.numpy(), 0.0
            for lap in reversed(ctx.laplacians):
                by_rate += (flow * lap).sum()
                flow = flow + r * laplace(flow)
            return {"u": pb.asarray(flow), "rate": pb.asarray(np.float64(by_rate))}

    return Diffuse.apply


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(5, 5))), t(rng.normal(size=(2, 2)))), {}),
    "the loop over columns runs over the rows, which is wrong for an image that is not square",
    SQUARE,
    SHAPE,
    MISSING,
    where="image not square",
    shows=lambda rng: ((t(rng.normal(size=(4, 7))), t(rng.normal(size=(2, 2)))), {}),
)
def correlate2d():
    @pb.autograd_function
    def correlate2d(ctx, image, kernel):
        """Valid correlation of image: (h, w) with kernel: (k, l)."""
        img, ker = image.numpy(), kernel.numpy()
        h, w = img.shape[0] - ker.shape[0] + 1, img.shape[1] - ker.shape[1] + 1
        out = np.zeros((h, w))
        for i in range(h):
            for j in range(w):
                out[i, j] = (img[i : i + ker.shape[0], j : j + ker.shape[1]] * ker).sum()
        ctx.save_for_backward(image=image, kernel=kernel)
        return pb.asarray(out)

    @correlate2d.backward
    @pb.once_differentiable
    def _(ctx, g):
        img, ker = (v.numpy() for v in ctx.saved_tensors)
        k, m = ker.shape
        by_image, by_kernel, gn = np.zeros_like(img), np.zeros_like(ker), g.numpy()
        for i in range(gn.shape[0]):
            for j in range(min(gn.shape[0], gn.shape[1])):
                by_image[i : i + k, j : j + m] += gn[i, j] * ker
                by_kernel += gn[i, j] * img[i : i + k, j : j + m]
        return pb.asarray(by_image), pb.asarray(by_kernel)

    return correlate2d


@BOOK.right(
    lambda rng: ((t(rng.normal(size=(2, 4, 7))), t(rng.normal(size=(3, 2, 2)))), {"stride": 2})
)
def strided_correlation():
    @pb.autograd_function
    def strided_correlation(ctx, images: pb.Tensor, kernels: pb.Tensor, stride: int = 1):
        """images: (b, h, w), kernels: (c, k, l); returns (b, c, rows, columns)."""
        k, m = kernels.shape[1:]
        windows = np.lib.stride_tricks.sliding_window_view(images.numpy(), (k, m), axis=(1, 2))
        windows = windows[:, ::stride, ::stride].copy()
        ctx.save_for_backward(images=images, kernels=kernels, windows=windows, stride=stride)
        return pb.asarray(np.einsum("bijkl,ckl->bcij", windows, kernels.numpy()))

    @strided_correlation.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        k, m = s.kernels.shape[1:]
        cells = np.einsum("bcij,ckl->bijkl", gn, s.kernels.numpy())
        grad = np.zeros(s.images.shape)
        for i in range(gn.shape[2]):
            for j in range(gn.shape[3]):
                a, b = i * s.stride, j * s.stride
                grad[:, a : a + k, b : b + m] += cells[:, i, j]
        by_kernels = np.einsum("bijkl,bcij->ckl", s.windows, gn)
        return {"images": pb.asarray(grad), "kernels": pb.asarray(by_kernels)}

    return strided_correlation


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 5))),), {}),
    "at a tie both ways get the whole gradient",
    TIES,
    r"\bpaths?\b",
    where="ties",
    shows=lambda rng: ((t(np.array([[0.0, 1.0, 1.0], [1.0, 5.0, 1.0], [1.0, 1.0, 1.0]])),), {}),
)
def cheapest_path():
    def table(c):
        D = np.full((c.shape[0] + 1, c.shape[1] + 1), np.inf)
        D[1, 0] = 0.0
        for i in range(c.shape[0]):
            for j in range(c.shape[1]):
                D[i + 1, j + 1] = c[i, j] + min(D[i, j + 1], D[i + 1, j])
        return D

    @pb.autograd_function
    def cheapest_path(ctx, cost):
        """Cost of the cheapest path down and right through cost: (n, m)."""
        D = table(cost.numpy())
        ctx.D = D
        return pb.asarray(D[-1, -1])

    @cheapest_path.backward
    @pb.once_differentiable
    def _(ctx, g):
        D, E = ctx.D, np.zeros(ctx.D.shape)
        E[-1, -1] = g.item()
        for i in range(D.shape[0] - 1, 0, -1):
            for j in range(D.shape[1] - 1, 0, -1):
                E[i - 1, j] += E[i, j] * (D[i - 1, j] <= D[i, j - 1])
                E[i, j - 1] += E[i, j] * (D[i, j - 1] <= D[i - 1, j])
        return {"cost": pb.asarray(E[1:, 1:].copy())}

    return cheapest_path


@BOOK.right(lambda rng: ((t(rng.normal(size=(6, 3))), t(rng.normal(size=(3, 3)))), {}))
def viterbi_score():
    def forward(ctx, unary: pb.Tensor, pairwise: pb.Tensor):
        """Score and states of the best path; unary: (t, k), pairwise: (k, k)."""
        u, p = unary.numpy(), pairwise.numpy()
        score, back = u[0], []
        for row in u[1:]:
            both = score[:, None] + p
            back.append(both.argmax(axis=0))
            score = both.max(axis=0) + row
        path = [int(score.argmax())]
        for choice in back[::-1]:
            path.append(int(choice[path[-1]]))
        ctx.path, ctx.shapes = np.array(path[::-1]), (u.shape, p.shape)
        return pb.asarray(score.max()), pb.asarray(ctx.path.copy())

    @pb.once_differentiable
    def backward(ctx, g, g_path):
        by_unary, by_pairwise = (np.zeros(shape) for shape in ctx.shapes)
        by_unary[np.arange(len(ctx.path)), ctx.path] = g.item()
        np.add.at(by_pairwise, (ctx.path[:-1], ctx.path[1:]), g.item())
        return {"unary": pb.asarray(by_unary), "pairwise": pb.asarray(by_pairwise)}

    return pb.autograd_function(forward, backward, name="viterbi_score")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=6)),), {}),
    "for a single element the gradient is zero",
    SHAPE,
    ZERO,
    r"single|one element|length.1",
    where="length 1",
    shows=vector(1),
)
def total_variation():
    @pb.autograd_function
    def total_variation(ctx, x: pb.Tensor, weight: float = 0.5) -> pb.Tensor:
        """Sum of |x[i + 1] - x[i]|, plus weight x[0]; x: (n,)."""
        xn = x.numpy()
        ctx.save_for_backward(x=x, weight=weight)
        return pb.asarray(np.abs(np.diff(xn)).sum() + weight * xn[0])

    @total_variation.backward
    @pb.once_differentiable
    def _(ctx, g):
        x, grad = ctx.saved_variables.x.numpy(), np.zeros(len(ctx.saved_variables.x))
        if len(x) > 1:
            sign = np.sign(np.diff(x))
            grad[1:] += sign
            grad[:-1] -= sign
            grad[0] += ctx.saved_variables.weight
        return {"x": pb.asarray(g.item() * grad)}

    return total_variation


@BOOK.right(lambda rng: ((t(np.array([0.0, 1.0, 1.0, -2.0, 0.5])),), {}))
def relu_energy():
    @pb.autograd_function
    def relu_energy(ctx, x):
        """max(x, 0) with the derivative 0 at 0, as everywhere in deep learning."""
        ctx.save_for_backward(x=x)
        return x.clamp(min=0)

    @relu_energy.backward
    def _(ctx, g):
        return {"x": g * (ctx.saved_variables.x > 0)}

    return relu_energy


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=6)),), {}),
    "at whole numbers backward takes the phase for a step and gives 0",
    ZERO,
    r"integer|whole number",
    where="values at integers",
    shows=lambda rng: ((t(np.array([-1.0, 0.0, 2.0, 3.0])),), {}),
)
def smooth_phase():
    @pb.autograd_function
    def smooth_phase(ctx, x):
        """sin(pi x)**2 + x, from the fractional part of x."""
        frac = x.numpy() - np.floor(x.numpy())
        ctx.frac = frac
        return pb.asarray(np.sin(np.pi * frac) ** 2 + x.numpy())

    @smooth_phase.backward
    @pb.once_differentiable
    def _(ctx, g):
        slope = np.pi * np.sin(2 * np.pi * ctx.frac) + 1
        return {"x": pb.asarray(g.numpy() * np.where(ctx.frac == 0, 0.0, slope))}

    return smooth_phase


@BOOK.wrong(
    lambda rng: ((t(0.5 + rng.random(5)), t(2.0)), {}),
    "the exponent gets no gradient, as if it were an integer",
    NONE,
    ZERO,
    r"\binteger\b|\bconstant\b",
)
def power_law():
    @pb.autograd_function
    def power_law(ctx, x, exponent):
        """x ** exponent; x: (n,) positive, exponent: ()."""
        ctx.save_for_backward(x=x, exponent=exponent)
        return x**exponent

    @power_law.backward
    @pb.once_differentiable
    def _(ctx, g):
        x, k = ctx.saved_tensors
        return {"x": g * k * x ** (k - 1), "exponent": pb.zeros_like(k)}

    return power_law


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=5)),), {}),
    "the formula for the input is applied to the output",
    r"saved (?:output|result)|(?:output|result) (?:in place of|instead of|is used)",
    r"to the (?:output|result)",
    FACTOR,
)
def softplus():
    def forward(ctx, x):
        y = pb.asarray(np.logaddexp(0, x.numpy()))
        ctx.save_for_backward(y)
        return y

    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return (g / (1 + pb.exp(-y)),)

    return pb.autograd_function(forward, backward, name="softplus")


@BOOK.right(lambda rng: ((t(40 * rng.normal(size=6)),), {"beta": 2.0}))
def softplus_stable():
    @pb.autograd_function
    def softplus_stable(ctx, x, beta=1.0):
        ctx.save_for_backward(x=x, beta=beta)
        return pb.logaddexp(beta * x, pb.zeros_like(x)) / beta

    @softplus_stable.backward
    def _(ctx, g):
        s = ctx.saved_variables
        return {"x": g * pb.sigmoid(s.beta * s.x)}

    return softplus_stable


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 4))), t(rng.normal(size=(4, 2)))), {}),
    "the incoming gradient is taken for ones",
    IGNORED,
)
def loop_matmul():
    @pb.autograd_function
    def loop_matmul(ctx, a: pb.Tensor, b: pb.Tensor) -> pb.Tensor:
        """a: (n, k), b: (k, m)."""
        an, bn = a.numpy(), b.numpy()
        out = np.zeros((an.shape[0], bn.shape[1]))
        for k in range(an.shape[1]):
            out += an[:, k : k + 1] * bn[k]
        ctx.save_for_backward(a=a, b=b)
        return pb.asarray(out)

    @loop_matmul.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        a, b = (v.numpy() for v in ctx.saved_tensors)
        ones = np.ones(grad_output.shape)
        return {"a": pb.asarray(ones @ b.T), "b": pb.asarray(a.T @ ones)}

    return loop_matmul


@BOOK.wrong(
    lambda rng: ((t(spd(rng, 4)), t(rng.normal(size=4))), {}),
    "both terms of the sum use A; one of them needs the transpose of A",
    TRANSPOSED,
    r"symmetric|\bterm\b",
    where="matrix not symmetric",
    shows=lambda rng: ((t(rng.normal(size=(4, 4))), t(rng.normal(size=4))), {}),
)
def quadratic_form():
    @pb.autograd_function
    def quadratic_form(ctx, A, x):
        """x' A x."""
        ctx.save_for_backward(A=A, x=x)
        return (x * (A @ x)).sum()

    @quadratic_form.backward
    def _(ctx, g):
        A, x = ctx.saved_tensors
        return {"A": g * pb.outer(x, x), "x": g * (A @ x + A @ x)}

    return quadratic_form


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 8))),), {}),
    "the window's length is divided out along the wrong axis",
    AXIS,
    FACTOR,
    at("width"),
    where="width other than 3",
    shows=lambda rng: ((t(rng.normal(size=(3, 8))),), {"width": 5}),
)
def moving_average():
    @pb.autograd_function
    def moving_average(ctx, x, width=3):
        """Average over `width` places of the rows of x: (b, n)."""
        xn = x.numpy()
        m = xn.shape[1] - width + 1
        out = np.zeros((xn.shape[0], m))
        for k in range(width):
            out += xn[:, k : k + m]
        ctx.width, ctx.shape = width, xn.shape
        return pb.asarray(out / width)

    @moving_average.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad, m = np.zeros(ctx.shape), g.shape[1]
        for k in range(ctx.width):
            grad[:, k : k + m] += g.numpy()
        return {"x": pb.asarray(grad / ctx.shape[0])}

    return moving_average


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=5)), t(1.5)), {}),
    "the gain's number is taken out of the tensor, so the second derivative misses it",
    SECOND,
    where="second derivative",
)
def tanh_gain():
    @pb.autograd_function
    def tanh_gain(ctx, x, gain):
        """tanh(gain x); x: (n,), gain: ()."""
        ctx.save_for_backward(x=x, gain=gain, number=gain.item())
        return pb.tanh(gain * x)

    @tanh_gain.backward
    def _(ctx, g):
        s = ctx.saved_variables
        y = pb.tanh(s.number * s.x)
        flow = g * (1 - y * y)
        return {"x": s.number * flow, "gain": (flow * s.x).sum()}

    return tanh_gain


@BOOK.right(
    lambda rng: ((pb.tensor(rng.normal(size=(3, 5)).astype("f4"), requires_grad=True),), {})
)
def float32_scan():
    @pb.autograd_function
    def float32_scan(ctx, x):
        """Discounted sums in float32 only, as the kernel is compiled for it; x: (b, n)."""
        if x.numpy().dtype != np.float32:
            raise TypeError("float32_scan: x must be float32")
        out = x.numpy().copy()
        for i in range(1, out.shape[1]):
            out[:, i] += np.float32(0.5) * out[:, i - 1]
        return pb.asarray(out)

    @float32_scan.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad = g.numpy().copy()
        for i in range(grad.shape[1] - 2, -1, -1):
            grad[:, i] += np.float32(0.5) * grad[:, i + 1]
        return {"x": pb.asarray(grad)}

    return float32_scan


@BOOK.right(lambda rng: ((t(rng.normal(size=(2, 6))),), {"boundary": "reflect"}))
def gradient_energy():
    @pb.autograd_function
    def gradient_energy(ctx, field, boundary: str = "periodic"):
        """Half the squared differences along the rows of field: (b, n); returns (b,)."""
        if boundary not in ("periodic", "reflect"):
            raise ValueError("boundary must be periodic or reflect")
        ctx.save_for_backward(field=field, boundary=boundary)
        d = pb.roll(field, -1, axis=1) - field
        keep = np.ones(field.shape[1])
        keep[-1] = boundary == "periodic"
        return 0.5 * (d * d * pb.asarray(keep)).sum(dim=1)

    @gradient_energy.backward
    def _(ctx, g):
        u, keep = ctx.saved_variables.field, np.ones(ctx.saved_variables.field.shape[1])
        keep[-1] = ctx.saved_variables.boundary == "periodic"
        d = (pb.roll(u, -1, axis=1) - u) * pb.asarray(keep) * g[:, None]
        return {"field": pb.roll(d, 1, axis=1) - d}

    return gradient_energy


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.normal(size=(1, 3)))), {}),
    "the row is broadcast, but its gradient is that of the first row of x alone",
    SUMMED,
    MISSING,
)
def weighted_rows():
    def forward(ctx, x, row):
        ctx.save_for_backward(x=x, row=row)
        return x * row

    def backward(ctx, g):
        x, row = ctx.saved_tensors
        return g * row, (g * x)[:1]

    return pb.autograd_function(forward, backward, name="weighted_rows")
