"""Wrong backwards of elementwise, reduction, softmax, norm, scan, complex and in-place operations.

A rule is ``rule(grad, output, *arguments)`` and gives the gradients of the first arguments; `wrong`
makes a backward of it, over saved arguments and outputs. `put` takes a whole backward.
"""

from __future__ import annotations

import inspect
from functools import partial

import numpy as np
from tests.check._entries import Entry, raw, wrap, xp

ENTRIES: list[Entry] = []


def put(family, name, forward, backward, inputs, cause, *words, source="", **more):
    """Add an entry; `source` is what follows the host in the address of the report."""
    source = source and "https://github.com/" + source
    ENTRIES.append(Entry(name, family, forward, backward, inputs, cause, words, source, **more))


def wrong(family, name, fn, rule, inputs, cause, *words, dirty=False, **more):
    put(family, name, saving(fn, dirty), ruled(rule), inputs, cause, *words, **more)


def saving(fn, dirty=False):
    """Return fn as a forward that saves its arguments (not one it overwrites) and its outputs."""

    def forward(ctx, *args):
        result = fn(*args)
        if dirty:
            ctx.mark_dirty(args[0])
        outputs = result if isinstance(result, tuple) else (result,)
        ctx.slots = [None if hasattr(a, "requires_grad") else (a,) for a in args[dirty:]]
        tensors = [a for a in args[dirty:] if hasattr(a, "requires_grad")]
        ctx.save_for_backward(*tensors, *outputs)
        ctx.count = len(outputs)
        return result

    ctx = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    forward.__signature__ = inspect.Signature([ctx, *inspect.signature(fn).parameters.values()])
    return forward


def ruled(rule):
    """Return rule as a backward over what `saving` has saved."""

    def backward(ctx, *grads):
        tensors = list(ctx.saved_tensors)
        outputs = tensors[len(tensors) - ctx.count :]
        args = [tensors.pop(0) if slot is None else slot[0] for slot in ctx.slots]
        g, y = (grads[0], outputs[0]) if ctx.count == 1 else (grads, outputs)
        with np.errstate(all="ignore"):
            result = rule(g, y, *args)
        result = result if isinstance(result, tuple) else (result,)
        return result + (None,) * (len(ctx.needs_input_grad) - len(result))

    return backward


def draw(*arguments):
    """Inputs: a function of rng, one with the shape behind it in a tuple, or the value itself."""

    def inputs(rng):
        kinds = [a if isinstance(a, tuple) else (a,) for a in arguments]
        return tuple(kind(rng, *shape) if callable(kind) else kind for kind, *shape in kinds)

    return inputs


def normal(rng, *shape):
    return rng.normal(size=shape or (4, 3))


def cnormal(rng, *shape):
    return normal(rng, *shape) + 1j * normal(rng, *shape)


def positive(rng, *shape):
    return rng.uniform(0.5, 2.0, shape or (4, 3))


def away(rng, *shape):
    """Away from zero, of both signs."""
    return positive(rng, *shape) * np.resize([-1, 1, 1, -1, 1], shape or (4, 3))


def holes(rng, value=0):
    """Away from zero but for two elements, in rows of their own."""
    array = away(rng)
    array[1, 1] = array[3, 2] = value
    return array


def ties(rng):
    a, b = normal(rng), away(rng)
    return a, np.where(holes(rng) == 0, a, a + b)


def masked(rng):
    mask = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 1, 1]], bool)
    return np.where(mask, normal(rng), 900.0), mask


def where(condition, x, y):
    return xp(condition).where(condition, x, y)


def ones(x):
    return xp(x).ones_like(x)


def safe(x):
    """x with its zeros replaced."""
    return where(x == 0, ones(x), x)


def row(g, x):
    """The gradient of a result of one number a row, for each element of x."""
    return g.unsqueeze(1).expand_as(x).clone()


def mean(x, axis=1):
    return x.mean(axis).unsqueeze(axis)


def total(x):
    return x.sum(1).unsqueeze(1)


def elu(x, alpha):
    return where(x > 0, x, alpha * (x.clamp(max=0.0).exp() - 1))


def elu_single(g, y, x, alpha):
    slope = np.exp(np.minimum(raw(x), 0).astype(np.float32))
    return wrap(g, raw(g) * np.where(raw(x) > 0, 1, alpha * slope).astype(raw(g).dtype))


def sinc(x):
    return where(x == 0, ones(x), x.sin() / safe(x))


def sinc_slope(x):
    return (x * x.cos() - x.sin()) / (x * x)


def dropout(x, rng):
    rng = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
    return x * wrap(x, 2.0 * (rng.random(x.shape) < 0.5)).to(x.dtype)


def softmax(x):
    return (x - x.logsumexp(1).unsqueeze(1)).exp()


def softmax_rule(g, y):
    return y * (g - total(g * y))


def scale_of(x, axis=1):
    centred = x - mean(x, axis)
    return 1 / (mean(centred * centred, axis) + 1e-5).sqrt()


def standard(x, axis=1):
    return (x - mean(x, axis)) * scale_of(x, axis)


def one_pass(g, y, x):
    scale = 1 / ((mean(x * x) - mean(x) * mean(x)).abs() + 1e-5).sqrt()
    unit = (x - mean(x)) * scale
    return scale * (g - mean(g) - unit * mean(g * unit))


def norm(x):
    return (x * x).sum(1).sqrt().unsqueeze(1)


def rms_scale(x):
    return 1 / (mean(x * x) + 1e-5).sqrt()


def rms_norm(x, weight):
    return x * rms_scale(x) * weight


def rms_rule(g, x, weight):
    scale = rms_scale(x)
    return scale * (g * weight - x * scale * mean(g * weight * x * scale))


def reverse_cumsum(x):
    return x.flip((1,)).cumsum(1).flip((1,))


def decay_matrix(x):
    """Of y[:, t] = x[:, t] + y[:, t - 1] / 2."""
    steps = np.arange(x.shape[1])
    return wrap(x, np.triu(0.5 ** np.abs(steps - steps[:, None]))).to(x.dtype)


LAST = {}
NOISE = np.random.default_rng(0)
RUNNING = {"scale": 1.0}


def by_pointer(array, strides):
    """What a kernel reads that takes strides for granted; the array where that would leave it."""
    spans = [np.subtract(array.shape, 1) @ steps for steps in (strides, array.strides)]
    if min(array.strides, default=0) <= 0 or spans[0] > spans[1]:
        return array
    return np.lib.stride_tricks.as_strided(array, array.shape, strides)


def log_softmax_dense(g, y, x):
    grad = by_pointer(raw(g), np.empty(g.shape, raw(g).dtype).strides)
    return wrap(g, grad - np.exp(raw(y)) * grad.sum(1, keepdims=True))


def nll_dense(g, y, x):
    grad = np.array(raw(g))
    if raw(g).strides[0] == 0:  # the rest lies past the end of what was allocated
        grad[1:] = 0
    return wrap(g, grad[:, None] * (raw(softmax(x)) - np.eye(1, x.shape[1], dtype=grad.dtype)))


def rms_row_stride(g, y, x):
    rows = by_pointer(raw(x), (raw(x).strides[0], raw(x).itemsize))
    return rms_rule(g, wrap(x, rows), 1)


def intermediate(ctx, x):
    ctx.doubled = x * 2
    return ctx.doubled * ctx.doubled


def remember(ctx, x):
    LAST["x"] = raw(x).copy()
    return x * x


def gate_in_place(g, y, a, b):
    raw(a)[...], raw(b)[...] = raw(g) * raw(b), raw(g) * raw(a)
    return a, b


def rms_of_changed_input(ctx, x):
    ctx.save_for_backward(x.clone())
    raw(x)[...] *= raw(rms_scale(x))
    return x * 1


def batch_norm_stale(g, y, x, center, std):
    RUNNING["scale"] = 3 - RUNNING["scale"]
    return g / std * RUNNING["scale"]


def affine_rule(ctx, g):
    x, weight, *_ = ctx.saved_tensors
    if ctx.needs_input_grad[1]:
        return g * weight, (g * x).sum(0), g.sum(0)
    return g * weight, None, None


def product_rule(ctx, g):
    a, b, _ = ctx.saved_tensors
    if ctx.needs_input_grad[0]:
        grad_a = b * 1
    if ctx.needs_input_grad[1]:
        grad_b = a * 1
    return grad_a * g, grad_b * g


def sincos(ctx, x):
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x)
    return x.sin(), x.cos()


def sincos_rule(ctx, grad_sin, grad_cos):
    (x,) = ctx.saved_tensors
    return grad_sin * x.cos() - grad_cos * x.sin()


def double_unmarked(ctx, x):
    raw(x)[...] *= 2
    return x * 1


def exp_into_output(g, y):
    raw(y)[...] *= raw(g)
    return y


# fmt: off
add = partial(wrong, "elementwise")
add("cosh", lambda x: x.cosh(), lambda g, y, x: -g * x.sinh(), draw(away), "sign", "sign",
    source="casadi/casadi/issues/2585")
add("subtract", lambda a, b: a - b, lambda g, y, a, b: (g, g.clone()), draw(away, away), "sign",
    "`b`", "sign", source="KhawajaAbaid/micrograd_c/issues/1")
add("sqrt", lambda x: x.sqrt(), lambda g, y, x: g / y, draw(positive), "factor", "2.000",
    source="groops-devs/groops/issues/246")
add("scale_twice", lambda x, scale: x * scale, lambda g, y, x, scale: g * scale * scale,
    draw(normal, 2.5), "factor", "2.500")
add("reciprocal", lambda x: 1 / x, lambda g, y, x: -g * y, draw(away), "extra-factor")
add("atan2", lambda a, b: a.atan2(b),
    lambda g, y, a, b: (-g * a / (a * a + b * b), g * b / (a * a + b * b)), draw(away, away),
    "swapped", "swapped", source="getkeops/keops/pull/155")
add("add_fills", lambda a, b: a + b, lambda g, y, a, b: (ones(g), ones(g)), draw(away, away),
    "not-multiplied", "not multiplied", source="pytorch/tutorials/issues/216")
add("relu_overwrites", lambda x: x * (x > 0), lambda g, y, x: where(x > 0, ones(g), 0 * g),
    draw(away), "not-multiplied", "not multiplied", source="haifengl/smile/issues/528")
add("clip_squares", lambda x: x.clamp(-1.5, 1.5), lambda g, y, x: g * g * (x.abs() < 1.5),
    draw(away), "nonlinear", "not linear", source="elixir-nx/nx/pull/1779")
add("tanh_parentheses", lambda x: x.tanh(), lambda g, y, x: g - y * y, draw(away), "nonlinear",
    "not linear", source="apache/tvm/pull/7340")
add("elu_negative_alpha", elu, lambda g, y, x, alpha: g * where(y > 0, ones(y), y + alpha),
    draw(away, -2.0), "elements", "x < 0", source="pytorch/pytorch/issues/47671")
add("clip_upper_forgotten", lambda x, high: x.clamp(0.0, high), lambda g, y, x, high: g * (x > 0),
    lambda r: (r.permuted([[-0.7, 0.4, 1.6]] * 4, axis=1), 1.0), "elements", "right except")
add("masked_square", lambda x, mask: where(mask, x * x, x), lambda g, y, x, mask: 2 * x * g,
    lambda r: (away(r), np.arange(12).reshape(4, 3) % 5 < 2), "elements", "mask")
add("alternate", lambda x: x * wrap(x, np.resize([1.0, -1], 6)).to(x.dtype),
    lambda g, y, x: g.clone(), draw((normal, 4, 6)), "elements", "right except")
add("expm1_over_x", lambda x: where(x == 0, ones(x), x.expm1() / safe(x)),
    lambda g, y, x: g * where(x == 0, 0 * x, (x.exp() - y) / safe(x)), draw(holes), "elements",
    "x == 0")
add("maximum_at_ties", lambda a, b: xp(a).maximum(a, b),
    lambda g, y, a, b: (g * (a >= b), g * (b >= a)), draw((normal, 4, 6), (normal, 4, 6)), "ties",
    "equal")
add("clip_tensors", lambda x, low, high: xp(x).minimum(xp(x).maximum(x, low), high),
    lambda g, y, x, low, high: g * ((x > low) & (x < high)),
    lambda r: (2 * away(r), -positive(r), positive(r)), "none", "`low`",
    source="Theano/Theano/pull/1010")
add("abs_power", lambda x, p: x.abs() ** p,
    lambda g, y, x, p: (g * p * x.abs() ** (p - 1) * x.sign(), g * y * x.abs().log()),
    lambda r: (holes(r), 1.5 + positive(r)), "nan", "x == 0", once=True,
    source="pytorch/pytorch/issues/27134")
add("sinc_at_zero", sinc, lambda g, y, x: g * sinc_slope(x), draw(holes), "nan", "x == 0",
    once=True, source="pytorch/pytorch/issues/56760")
add("softplus_overflow", lambda x: x.clamp(min=0.0) + (-x.abs()).exp().log1p(),
    lambda g, y, x: g * x.exp() / (1 + x.exp()), draw((holes, 800)), "nan", once=True,
    source="tracel-ai/burn/issues/5373")
add("distance_ties", lambda a, b: (a - b).abs() ** 1.5,
    lambda g, y, a, b: (1.5 * g * y / (a - b), -1.5 * g * y / (a - b)), ties, "nan", "a == b",
    once=True)
add("elu_in_float32", elu, elu_single, draw(away, 1.5), "precision", "float32", once=True,
    source="pytorch/extension-cpp/issues/42")
add("exp_by_differences", lambda x: x.exp(),
    lambda g, y, x: g * ((x + 1e-2).exp() - (x - 1e-2).exp()) / 2e-2, draw(normal), "precision")
add("sinc_near_zero", sinc, lambda g, y, x: g * sinc_slope(x),
    lambda r: (r.uniform(5e-4, 2e-3, (4, 3)),), "cancellation", "float32", once=True,
    source="jax-ml/jax/issues/34139")
put("elementwise", "square_of_intermediate", intermediate, lambda ctx, g: 4 * ctx.doubled * g,
    draw(away), "second-order", "second", source="pytorch/pytorch/issues/58509",
    options={"only": ["first", "second_order"]})
add("cube_detached", lambda x: x * x * x, lambda g, y, x: 3 * (x * x).detach() * g, draw(away),
    "second-order", "second")
add("sinc_constant_at_zero", sinc, lambda g, y, x: g * where(x == 0, 0 * x, sinc_slope(safe(x))),
    draw(holes), "second-order", "second", source="pytorch/pytorch/pull/187803")
put("elementwise", "square_of_last_call", remember, lambda ctx, g: 2 * g * wrap(g, LAST["x"]),
    draw(away), "state", "call", once=True)
add("dropout_new_mask", dropout, lambda g, y, x, rng: dropout(g, NOISE), draw(away, 3), "state",
    "differ", once=True)
add("gate_in_saved", lambda a, b: a * b, gate_in_place, draw(away, away), "mutation", "in place",
    once=True, source="linkedin/Liger-Kernel/issues/254")
put("elementwise", "affine_bias_with_weight", saving(lambda x, weight, bias: x * weight + bias),
    affine_rule, draw(normal, (away, 3), (normal, 3)), "needs-input-grad", "`bias`")
put("elementwise", "product_unbound", saving(lambda a, b: a * b), product_rule, draw(away, away),
    "needs-input-grad", source="mgmalek/efficient_cross_entropy/issues/1")
put("elementwise", "sincos_of_none", sincos, sincos_rule, draw(normal), "zero-grad",
    source="pytorch/pytorch/issues/3241")
add("sincos_exchanged", lambda x: (x.sin(), x.cos()), lambda g, y, x: g[1] * y[1] - g[0] * y[0],
    draw(away), "output-ignored", "exchanged")
add("reverse", lambda x: x.flip((1,)), lambda g, y, x: g.clone(), draw(normal), "misplaced",
    "axis 1", source="deeplearning4j/deeplearning4j/issues/8874")

add = partial(wrong, "reduction")
add("mean", lambda x: x.mean(1), lambda g, y, x: row(g, x), draw(normal), "size", "axis 1",
    source="kakaobrain/trident/pull/66")
add("mean_over_batch_twice", lambda x: (x * x).sum(1).mean(0),
    lambda g, y, x: 2 * g * x / x.shape[0] ** 2, draw(away), "size", "axis 0")
add("variance_uncentred", lambda x: ((x - mean(x)) ** 2).mean(1),
    lambda g, y, x: 2 * row(g, x) * x / x.shape[1], lambda r: (1 + away(r),), "missing-term",
    "axis 1")
add("square_norm", lambda x: (x * x).sum(1), lambda g, y, x: 2 * row(g, x) * norm(x) * x / norm(x),
    lambda r: (away(r) * [[1], [1], [0], [1]],), "nan", "== 0", once=True,
    source="HIPS/autograd/issues/617")
add("prod", lambda x: x.prod(1), lambda g, y, x: row(g * y, x) / x, draw(holes), "nan", "x == 0",
    once=True, source="apache/mxnet/issues/17864")
add("max_off_by_one", lambda x: x.amax(1),
    lambda g, y, x: row(g, x) * (x == y.unsqueeze(1)).roll(1, 1), draw(normal), "misplaced",
    "rolled by 1")
add("logsumexp_masked", lambda x, mask: where(mask, x, -1e4 * ones(x)).logsumexp(1),
    lambda g, y, x, mask: row(g, x) * (x - y.unsqueeze(1)).exp() * mask, masked, "nan", "mask",
    once=True, source="jax-ml/jax/issues/23842")
add("l1_norm", lambda x: x.abs().sum(1), lambda g, y, x: row(g, x), draw(away), "elements", "x < 0",
    source="bashardudin/Epita-SCIA-OCVX/issues/1")
add("l2_norm", lambda x: (x * x).sum(1).sqrt(), lambda g, y, x: row(g, x) * x, draw(away),
    "extra-factor")
add("trapezoid", lambda x: (x[:, 1:] + x[:, :-1]).sum(1) / 2, lambda g, y, x: row(g, x),
    draw((normal, 4, 6)), "elements", "right except")
add("bias_mean", lambda x, bias: x + bias, lambda g, y, x, bias: (g, g.mean(0)),
    draw(normal, (normal, 3)), "missing-sum", "mean", source="kvfrans/notes/issues/5")
add("bias_other_axis", lambda x, bias: x + bias, lambda g, y, x, bias: (g, g.sum(1)),
    draw((normal, 4, 4), (normal, 4)), "missing-sum", "axis 1")

add = partial(wrong, "softmax")
add("softmax_diagonal", softmax, lambda g, y, x: g * y * (1 - y), draw(normal), "diagonal",
    "couple", source="deeplearning4j/libnd4j/issues/440")
add("softmax_without_sum", softmax, lambda g, y, x: g * y, draw(normal), "missing-term",
    source="HomericIntelligence/Odyssey/issues/2134")
add("softmax_twice", softmax, lambda g, y, x: 2 * softmax_rule(g, y), draw(normal), "factor",
    "2.000", source="markroxor/fromscratchtoml/issues/65")
add("softmax_and_lse", lambda x: (softmax(x), x.logsumexp(1)),
    lambda g, y, x: softmax_rule(g[0], y[0]), draw(normal), "output-ignored", "output 1",
    source="Dao-AILab/flash-attention/issues/141")
add("log_softmax_dense", lambda x: x - x.logsumexp(1).unsqueeze(1), log_softmax_dense, draw(normal),
    "layout", "contiguous", once=True, source="torch/nn/issues/832")
add("nll_dense", lambda x: x.logsumexp(1) - x[:, 0], nll_dense, draw(normal), "layout",
    "contiguous", once=True, source="ROCm/TransformerEngine/pull/623")

add = partial(wrong, "norm")
add("layer_norm_mean_term", lambda x: standard(x),
    lambda g, y, x: scale_of(x) * (g - y * mean(g * y)), draw(normal), "missing-term", "axis 1")
add("layer_norm_variance_term", lambda x: standard(x), lambda g, y, x: scale_of(x) * (g - mean(g)),
    draw((normal, 3, 5)), "missing-term")
add("layer_norm_one_pass", lambda x: standard(x), one_pass, lambda r: (1000 + 2 * normal(r, 3, 5),),
    "cancellation", "float32", once=True, source="tracel-ai/burn/issues/5607")
add("batch_norm_constant_statistics", lambda x: standard(x, 0), lambda g, y, x: g * scale_of(x, 0),
    draw((normal, 5, 3)), "missing-term", source="facebookresearch/CrypTen/pull/143")
add("batch_norm_stale", lambda x, center, std: (x - center) / std, batch_norm_stale,
    draw(normal, 0.5, 2.0), "state", "differ", source="pytorch/pytorch/issues/586")
add("rms_norm_constant_scale", rms_norm,
    lambda g, y, x, weight: (g * weight * rms_scale(x), (g * x * rms_scale(x)).sum(0)),
    draw(away, (away, 3)), "missing-term", "`x`", source="ooples/AiDotNet/pull/695")
add("rms_norm_no_weight_grad", rms_norm, lambda g, y, x, weight: rms_rule(g, x, weight),
    draw(away, (away, 3)), "none", "`weight`", source="unslothai/unsloth/pull/4550")
add("rms_norm_no_residual_grad", lambda x, residual: rms_norm(x + residual, 1),
    lambda g, y, x, residual: rms_rule(g, x + residual, 1), draw(away, normal), "none",
    "`residual`", source="Dao-AILab/quack/pull/52")
put("norm", "rms_norm_into_input", rms_of_changed_input,
    lambda ctx, g: rms_rule(g, *ctx.saved_tensors, 1), draw(away), "mutation", "`x`", once=True,
    source="GeeeekExplorer/nano-vllm/issues/170")
add("rms_norm_row_stride", lambda x: rms_norm(x, 1), rms_row_stride, draw(away), "layout",
    "contiguous", once=True, source="ByteDance-Seed/VeOmni/pull/958")
add("normalize_eps", lambda x: x / (norm(x) + 1e-4),
    lambda g, y, x: (g - y * total(g * y)) / (norm(x) + 1e-4), draw(away), "precision",
    source="chainer/chainer/pull/4190")

add = partial(wrong, "scan")
add("cumsum_forwards", lambda x: x.cumsum(1), lambda g, y, x: g.cumsum(1), draw((normal, 3, 5)),
    "transposed", "transpose")
add("cumprod_divides", lambda x: x.cumprod(1), lambda g, y, x: reverse_cumsum(g * y) / x,
    draw(holes), "nan", "x == 0", once=True, source="tracel-ai/burn/pull/5141")
add("cumprod_zero", lambda x: x.cumprod(1),
    lambda g, y, x: where(x == 0, 0 * x, reverse_cumsum(g * y) / safe(x)), draw(holes), "elements",
    "x == 0", once=True, source="tensorflow/tensorflow/issues/119430")
add("cummax_own_place", lambda x: x.cummax(1)[0], lambda g, y, x: g * (x == y),
    draw((normal, 3, 5)), "diagonal", "couple", source="pytorch/pytorch/pull/26637")
add("recurrence_shifted", lambda x: x @ decay_matrix(x),
    lambda g, y, x: (g @ decay_matrix(x).mT).roll(1, 1), draw((normal, 3, 5)), "misplaced",
    "rolled by 1", source="pymc-devs/pytensor/pull/2217")

add = partial(wrong, "complex")
add("complex_exp", lambda z: z.exp(), lambda g, y, z: g * y, draw(cnormal), "conjugated",
    "conjugated", source="EnzymeAD/Enzyme-JAX/issues/2105")
add("complex_matmul", lambda a, b: a @ b, lambda g, y, a, b: (g @ b.mT, a.mT @ g),
    draw((cnormal, 3, 2), (cnormal, 2, 4)), "conjugated", "conjugated",
    source="tensorflow/tensorflow/issues/4859")
add("complex_multiply", lambda a, b: a * b, lambda g, y, a, b: (g * b, g * a),
    draw(cnormal, cnormal), "conjugated", "conjugated", source="PaddlePaddle/Paddle/pull/29757")
add("complex_abs", lambda z: z.abs(), lambda g, y, z: g * z.conj() / y, draw(cnormal),
    "conjugated", "conjugated")
add("complex_create", lambda re, im: xp(re).complex(re, im), lambda g, y, re, im: (g.real, -g.imag),
    draw(normal, normal), "sign", "`im`", "sign", source="EnzymeAD/Enzyme/issues/2900")
add("complex_angle", lambda z: z.angle(), lambda g, y, z: g * z / z.abs() ** 2, draw(cnormal),
    "factor")
add("complex_real", lambda z: z.real * 1, lambda g, y, z: 0.5 * g + 0 * z, draw(cnormal), "factor",
    "0.500")

add = partial(wrong, "inplace")
add("leaky_relu_", lambda x, slope: x.mul_(where(x > 0, ones(x), slope * ones(x))),
    lambda g, y, slope: g * where(y > 0, ones(y), slope * ones(y)), draw(away, -2.0), "elements",
    "x < 0", dirty=True, source="pytorch/pytorch/issues/31938")
add("square_", lambda x: x.mul_(x.clone()), lambda g, y: 2 * y * g, draw(away), "other-value",
    "`x`", dirty=True)
put("inplace", "double_unmarked", double_unmarked, lambda ctx, g: 2 * g, draw(normal), "mutation",
    "`x`", source="pytorch/pytorch/issues/30454")
add("exp_", lambda x: x.exp_(), exp_into_output, draw(normal), "mutation", "in place", dirty=True,
    once=True)
