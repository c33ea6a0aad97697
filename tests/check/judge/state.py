"""State and randomness: running statistics, masks of dropout, buffers, caches, changes in place."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import (
    BATCH,
    CHANGED,
    FACTOR,
    IGNORED,
    MASK,
    MISSING,
    NONE,
    SIGN,
    STATE,
    SUMMED,
    Book,
    at,
    t,
)

BOOK = Book("state")


def batch(n=6, d=3):
    def given(rng):
        return (t(rng.normal(size=(n, d))), t(1 + rng.random(d)), t(rng.normal(size=d))), {}

    return given


@BOOK.wrong(
    batch(),
    "each statistic of the batch is taken for a constant",
    MISSING,
    r"\bconstant\b|statistic|\bterm\b",
)
def batch_norm():
    @pb.autograd_function
    def batch_norm(ctx, x, weight, bias, eps=1e-5):
        xn = x.numpy()
        std = np.sqrt(xn.var(axis=0) + eps)
        hat = (xn - xn.mean(axis=0)) / std
        ctx.save_for_backward(hat=hat, std=std, weight=weight)
        return pb.asarray(hat * weight.numpy() + bias.numpy())

    @batch_norm.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        return {
            "x": pb.asarray(gn * s.weight.numpy() / s.std),
            "weight": pb.asarray((gn * s.hat).sum(axis=0)),
            "bias": pb.asarray(gn.sum(axis=0)),
        }

    return batch_norm


@BOOK.wrong(
    batch(),
    "with training=False backward still goes through the batch's statistics",
    at("training"),
    where="training=False",
    shows=lambda rng: (batch()(rng)[0], {"training": False}),
)
def batch_norm_modes():
    running = {}

    @pb.autograd_function
    def batch_norm_modes(ctx, x, weight, bias, training: bool = True):
        """Batch norm with statistics that this operation keeps; x: (n, d)."""
        xn = x.numpy()
        mean, var = running.setdefault("both", (np.zeros(xn.shape[1]), np.ones(xn.shape[1])))
        if training:
            mean, var = xn.mean(axis=0), xn.var(axis=0)
            old = running["both"]
            running["both"] = 0.9 * old[0] + 0.1 * mean, 0.9 * old[1] + 0.1 * var
        std = np.sqrt(var + 1e-5)
        ctx.save_for_backward(hat=(xn - mean) / std, std=std, weight=weight)
        return pb.asarray((xn - mean) / std * weight.numpy() + bias.numpy())

    @batch_norm_modes.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        gh = gn * s.weight.numpy()
        gx = (gh - gh.mean(axis=0) - s.hat * (gh * s.hat).mean(axis=0)) / s.std
        parts = gx, (gn * s.hat).sum(axis=0), gn.sum(axis=0)
        return (*map(pb.asarray, parts), None)

    return batch_norm_modes


@BOOK.right(lambda rng: (batch()(rng)[0], {"running_mean": np.zeros(3), "running_var": np.ones(3)}))
def batch_norm_running():
    @pb.autograd_function
    def batch_norm_running(
        ctx, x: pb.Tensor, weight: pb.Tensor, bias: pb.Tensor, *, running_mean, running_var
    ):
        """Normalise by the batch; the running arrays: (d,) are updated for later use only."""
        xn = x.numpy()
        mean, var = xn.mean(axis=0), xn.var(axis=0)
        running_mean += 0.1 * (mean - running_mean)
        running_var += 0.1 * (var - running_var)
        std = np.sqrt(var + 1e-5)
        hat = (xn - mean) / std
        ctx.save_for_backward(hat=hat, std=std, weight=weight)
        return pb.asarray(hat * weight.numpy() + bias.numpy())

    @batch_norm_running.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        gh = gn * s.weight.numpy()
        gx = (gh - gh.mean(axis=0) - s.hat * (gh * s.hat).mean(axis=0)) / s.std
        return {
            "x": pb.asarray(gx),
            "weight": pb.asarray((gn * s.hat).sum(axis=0)),
            "bias": pb.asarray(gn.sum(axis=0)),
        }

    return batch_norm_running


@BOOK.right(lambda rng: ((t(rng.normal(size=(4, 6))), t(1 + rng.random(6))), {"count": [0]}))
def layer_norm():
    def forward(ctx, x, weight, count=None):
        if count is not None:
            count[0] += 1
        hat, _ = normalise(x)
        ctx.save_for_backward(x=x, weight=weight)
        return hat * weight

    def normalise(x):
        centred = x - x.mean(dim=-1, keepdim=True)
        std = pb.sqrt((centred * centred).mean(dim=-1, keepdim=True) + 1e-5)
        return centred / std, std

    def backward(ctx, g):
        s = ctx.saved_variables
        hat, std = normalise(s.x)
        gh = g * s.weight
        mean = gh.mean(dim=-1, keepdim=True)
        gx = (gh - mean - hat * (gh * hat).mean(dim=-1, keepdim=True)) / std
        return {"x": gx, "weight": (g * hat).sum(dim=0)}

    return pb.autograd_function(forward, backward, name="layer_norm")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 5))), rng.random((4, 5)) > 0.3), {}),
    "the factor 1 / (1 - p) is forgotten in backward",
    FACTOR,
    at("p"),
    where="p other than 0",
    shows=lambda rng: ((t(rng.normal(size=(4, 5))), rng.random((4, 5)) > 0.3), {"p": 0.3}),
)
def dropout_masked():
    @pb.autograd_function
    def dropout_masked(ctx, x, keep, p=0.0):
        """Drop where keep is false, divide the rest by 1 - p."""
        ctx.keep = keep
        return pb.asarray(x.numpy() * keep / (1 - p))

    @dropout_masked.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"x": pb.asarray(g.numpy() * ctx.keep)}

    return dropout_masked


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(6, 5))),), {"seed": 3}),
    "backward draws a mask of its own with another seed",
    MASK,
    r"random|\bdraws?\b|another (?:mask|seed|draw)",
)
def dropout_seeded():
    @pb.autograd_function
    def dropout_seeded(ctx, x: pb.Tensor, p: float = 0.5, seed: int = 0) -> pb.Tensor:
        """Dropout of x: (n, d), repeatable by its seed."""
        mask = np.random.default_rng(seed).random(x.shape) >= p
        ctx.save_for_backward(p=p, seed=seed + 1, shape=x.shape)
        return pb.asarray(x.numpy() * mask / (1 - p))

    @dropout_seeded.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        mask = np.random.default_rng(s.seed).random(s.shape) >= s.p
        return {"x": pb.asarray(g.numpy() * mask / (1 - s.p))}

    return dropout_seeded


@BOOK.right(lambda rng: ((t(rng.normal(size=(6, 5))),), {"p": 0.4, "seed": 11}))
def dropout():
    class Dropout(pb.Function):
        """Dropout that a seed makes repeatable; also returns the mask."""

        @staticmethod
        def forward(ctx, x, p=0.5, seed=0):
            if not 0 <= p < 1:
                raise ValueError("Dropout: p must lie in [0, 1)")
            mask = np.random.default_rng(seed).random(x.shape) >= p
            ctx.scale = mask / (1 - p)
            return pb.asarray(x.numpy() * ctx.scale), pb.asarray(mask)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g, g_mask):
            return pb.asarray(g.numpy() * ctx.scale), None, None

    return Dropout.apply


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=5)), t(rng.normal(size=5))), {"beta": t(0.9)}),
    "the gradient of beta uses the updated buffer in place of the old one",
    CHANGED,
    r"updated|\bold\b",
)
def momentum_update():
    @pb.autograd_function
    def momentum_update(ctx, buffer, step, beta):
        """Return beta buffer + (1 - beta) step."""
        work = buffer.numpy().copy()
        ctx.save_for_backward(step=step, beta=beta, buffer=work)
        work *= beta.numpy()
        work += (1 - beta.numpy()) * step.numpy()
        return pb.asarray(work.copy())

    @momentum_update.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_beta = (g.numpy() * (s.buffer - s.step.numpy())).sum()
        return {"buffer": g * s.beta, "step": g * (1 - s.beta), "beta": pb.asarray(by_beta)}

    return momentum_update


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.normal(size=(2, 3)))), {}),
    "the input of the last call is kept outside ctx, so an earlier call uses the later one's",
    STATE,
    where="second use",
)
def linear_layer():
    kept = {}

    @pb.autograd_function
    def linear_layer(ctx, x: pb.Tensor, weight: pb.Tensor) -> pb.Tensor:
        """x: (n, d), weight: (m, d); returns (n, m)."""
        kept["x"], kept["w"] = x.numpy().copy(), weight.numpy().copy()
        return pb.asarray(kept["x"] @ kept["w"].T)

    @linear_layer.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        return {"x": pb.asarray(gn @ kept["w"]), "weight": pb.asarray(gn.T @ kept["x"])}

    return linear_layer


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=6)),), {}),
    "the slope is cached by shape, so every later call uses that of the first",
    STATE,
    where="second use",
)
def tanh_reusing():
    first = {}

    def forward(ctx, x):
        out = np.tanh(x.numpy())
        ctx.key = out.shape
        slope = first.get(out.shape)
        if slope is None:
            slope = first[out.shape] = 1 - out**2
        ctx.slope = slope
        return pb.asarray(out)

    @pb.once_differentiable
    def backward(ctx, g):
        return {"x": pb.asarray(g.numpy() * ctx.slope)}

    return pb.autograd_function(forward, backward, name="tanh_reusing")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=5)),), {}),
    "forward changes x in place, and backward uses the changed value in place of the old one",
    CHANGED,
    r"\bold\b|before",
)
def square_():
    @pb.autograd_function
    def square_(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(x.clone())
        ctx.value = x.numpy().copy()
        return x

    @square_.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"x": pb.asarray(2 * ctx.value * g.numpy())}

    return square_


@BOOK.right(lambda rng: ((t(rng.normal(size=5)), 0.3), {}))
def leaky_():
    @pb.autograd_function
    def leaky_(ctx, x, slope=0.01):
        """Leaky ReLU in place."""
        ctx.scale = np.where(x.numpy() > 0, 1.0, slope)
        ctx.mark_dirty(x)
        return x.mul_(pb.asarray(ctx.scale))

    @leaky_.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"x": pb.asarray(g.numpy() * ctx.scale)}

    return leaky_


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 4))), t(rng.normal(size=(3, 4)))), {}),
    "grad_output is scaled in place for the first argument and then used for the second",
    CHANGED,
    FACTOR,
    IGNORED,
)
def gated_product():
    @pb.autograd_function
    def gated_product(ctx, value, gate):
        ctx.save_for_backward(value=value, gate=gate)
        return value * gate

    @gated_product.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        by_value = grad_output.mul_(s.gate)
        return {"value": by_value.clone(), "gate": grad_output * s.value}

    return gated_product


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 4))), t(rng.normal(size=4))), {}),
    "backward subtracts the mean from the caller's x in place",
    CHANGED,
    where="input changed",
)
def centred_scale():
    @pb.autograd_function
    def centred_scale(ctx, x, scale):
        """(x - mean) * scale; x: (n, d), scale: (d,)."""
        ctx.raw = [x.numpy()]
        ctx.scale = scale.numpy().copy()
        return pb.asarray((x.numpy() - x.numpy().mean(axis=0)) * ctx.scale)

    @centred_scale.backward
    @pb.once_differentiable
    def _(ctx, g):
        x, gn = ctx.raw[0], g.numpy()
        x -= x.mean(axis=0)
        by_x = (gn - gn.mean(axis=0)) * ctx.scale
        return {"x": pb.asarray(by_x), "scale": pb.asarray((gn * x).sum(axis=0))}

    return centred_scale


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=(4, 3))), t(rng.normal(size=(2, 3))), t(rng.normal(size=2))),
        {},
    ),
    "when x needs no gradient the weight gets none either",
    NONE,
    r"needs_input_grad|requires? grad|needs no gradient",
    where="x needs no gradient",
    shows=lambda rng: (
        (pb.asarray(rng.normal(size=(4, 3))), t(rng.normal(size=(2, 3))), t(np.ones(2))),
        {},
    ),
)
def dense():
    @pb.autograd_function
    def dense(ctx, x, weight, bias):
        """x: (n, d), weight: (m, d), bias: (m,)."""
        ctx.save_for_backward(x=x, weight=weight)
        return x @ weight.t() + bias

    @dense.backward
    def _(ctx, g):
        s, needs = ctx.saved_variables, ctx.needs_input_grad
        x_grad, w_grad = (g @ s.weight, g.t() @ s.x) if needs.x else (None, None)
        return {"x": x_grad, "weight": w_grad, "bias": g.sum(dim=0)}

    return dense


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(4, 3))), t(rng.normal(size=(2, 3))), t(rng.normal(size=2))),
        {},
    )
)
def affine():
    @pb.autograd_function
    def affine(ctx, x, weight, bias):
        ctx.save_for_backward(x=x, weight=weight)
        return x @ weight.t() + bias

    @affine.backward
    def _(ctx, g):
        s, needs = ctx.saved_variables, ctx.needs_input_grad
        return {
            "x": g @ s.weight if needs.x else None,
            "weight": g.t() @ s.x if needs.weight else None,
            "bias": g.sum(dim=0) if needs.bias else None,
        }

    return affine


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(5, 3))),), {}),
    "the gradient of the variance output is left out; only that of the mean is used",
    MISSING,
    r"(?:second|other|one) (?:output|result)|\bvariance|outputs?.? ?\[?1\b",
    r"output is (?:not used|left out|ignored)",
)
def moments():
    @pb.autograd_function
    def moments(ctx, x):
        """Mean and variance of each column of x: (n, d)."""
        ctx.save_for_backward(x=x)
        mean = x.mean(dim=0)
        return mean, ((x - mean) * (x - mean)).mean(dim=0)

    @moments.backward
    def _(ctx, g_mean, g_var):
        x = ctx.saved_variables.x
        return {"x": pb.zeros_like(x) + g_mean / x.shape[0]}

    return moments


@BOOK.right(lambda rng: ((t(rng.normal(size=(5, 3))),), {}))
def mean_and_count():
    @pb.autograd_function
    def mean_and_count(ctx, x, threshold=0.0):
        """Mean of each column and, beside it, how many entries exceed the threshold."""
        ctx.save_for_backward(x=x)
        count = (x.numpy() > threshold).sum(axis=0).astype(float)
        over = pb.asarray(count)
        ctx.mark_non_differentiable(over)
        return x.mean(dim=0), over

    @mean_and_count.backward
    def _(ctx, g_mean, g_over):
        x = ctx.saved_variables.x
        return {"x": pb.zeros_like(x) + g_mean / x.shape[0]}

    return mean_and_count


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(1, 4))), t(rng.normal(size=4))), {}),
    "the bias is not summed over the batch",
    BATCH,
    SUMMED,
    where="batch > 1",
    shows=lambda rng: ((t(rng.normal(size=(3, 4))), t(rng.normal(size=4))), {}),
)
def add_bias():
    def forward(ctx, x: pb.Tensor, bias: pb.Tensor) -> pb.Tensor:
        """x: (n, d), bias: (d,)."""
        return x + bias

    def backward(ctx, g):
        return {"x": g, "bias": g[0]}

    return pb.autograd_function(forward, backward, name="add_bias")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=6)), rng.normal(size=6), t(0.5)), {}),
    "the decay's gradient has the wrong sign",
    SIGN,
)
def ema_step():
    class Ema(pb.Function):
        """decay shadow + (1 - decay) x."""

        @staticmethod
        def forward(ctx, x, shadow, decay):
            ctx.save_for_backward(x=x, decay=decay)
            ctx.shadow = shadow.copy()
            return decay * pb.asarray(shadow) + (1 - decay) * x

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s = ctx.saved_variables
            by_decay = (g * (s.x - pb.asarray(ctx.shadow))).sum()
            return {"x": (1 - s.decay) * g, "decay": by_decay}

    return Ema.apply


@BOOK.right(lambda rng: ((t(rng.normal(size=(3, 4))),), {"scale": t(2.0)}))
def fake_quantise():
    @pb.autograd_function
    def fake_quantise(ctx, x, scale):
        """Scale x; also the rounded codes, which are constant between steps, and their number."""
        codes = np.clip(np.round(x.numpy() * scale.numpy()), -8, 7).astype(int)
        ctx.save_for_backward(x=x, scale=scale)
        return {"scaled": x * scale, "codes": pb.asarray(codes), "used": len(np.unique(codes))}

    @fake_quantise.backward
    def _(ctx, g_scaled, *others):
        s = ctx.saved_variables
        return {"x": g_scaled * s.scale, "scale": (g_scaled * s.x).sum()}

    return fake_quantise


@BOOK.right(lambda rng: ((t(rng.normal(size=(4, 4))),), {}))
def cached_eigh():
    cache = {}

    @pb.autograd_function
    def cached_eigh(ctx, matrix):
        """Eigenvalues of the symmetric part of matrix: (n, n), decomposed once per content."""
        S = (matrix.numpy() + matrix.numpy().T) / 2
        key = S.tobytes()
        if key not in cache:
            cache.clear()
            cache[key] = np.linalg.eigh(S)
        w, V = cache[key]
        ctx.V = V
        return pb.asarray(w.copy())

    @cached_eigh.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"matrix": pb.asarray(ctx.V * g.numpy() @ ctx.V.T)}

    return cached_eigh
