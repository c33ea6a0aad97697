"""Wrong backwards of products, convolutions, indexing, scatters, attention, losses, interpolation.

Many are written on arrays (`arrays`), the way a kernel sees its arguments: memory and strides.
"""

from __future__ import annotations

import inspect

import numpy as np
from tests.check._entries import Entry, raw, wrap, xp

ENTRIES: list[Entry] = []
PAD, IGNORED = 0, 2
LAST, SCRATCH, HELD = {}, {}, []  # what wrong operations keep between their calls
REPEATED, NEGATIVE = np.array([1, 3, 1, 0]), np.array([2, -1, 0, -3])


def draw(*shapes):
    """Return the inputs of an entry: normal for a shape, drawn by a function, or as they are."""
    return lambda rng: tuple(
        s(rng) if callable(s) else rng.standard_normal(s) if isinstance(s, tuple) else s
        for s in shapes
    )


def add(name, family, forward, backward, inputs, cause, *words, source="", **options):
    source = f"https://github.com/{source}" if source else ""
    ENTRIES.append(Entry(name, family, forward, backward, inputs, cause, words, source, **options))


def tensors(name, family, value, rule, *facts, on_arrays=False, **options):
    """Add an entry that saves its arguments; ``rule(*grads, *arguments)`` gives their gradients."""
    with_needs = "needs" in inspect.signature(rule).parameters

    def lower(values):
        return [raw(v) if on_arrays and hasattr(v, "detach") else v for v in values]

    def lift(like, result):
        if isinstance(result, tuple | list):
            return tuple(lift(like, r) for r in result)
        return (
            wrap(like, np.array(result, order="C")) if on_arrays and result is not None else result
        )

    def forward(ctx, *args):
        ctx.save_for_backward(*[a for a in args if hasattr(a, "detach")])
        ctx.settings = [None if hasattr(a, "detach") else a for a in args]
        return lift(args[0], value(*lower(args)))

    def backward(ctx, *grads):
        saved = iter(ctx.saved_tensors)
        args = [next(saved) if s is None else s for s in ctx.settings]
        needs = {"needs": [ctx.needs_input_grad[i] for i in range(len(args))]} if with_needs else {}
        found = lift(grads[0], rule(*lower(grads), *lower(args), **needs))
        return (*found, *[None] * (len(args) - len(found)))

    ctx = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    own = inspect.signature(value).parameters.values()
    forward.__signature__ = inspect.Signature([ctx, *own])
    add(name, family, forward, backward, *facts, once=on_arrays, **options)


def arrays(*args, **options):
    """Add an entry whose value and rule are functions of NumPy arrays."""
    tensors(*args, on_arrays=True, **options)


def read(array, strides=None):
    """Return what a kernel reads that takes an array's memory as contiguous; zeros outside it."""
    indices = np.indices(array.shape)
    contiguous = np.empty(array.shape, array.dtype).strides
    mine, taken = (
        np.tensordot(np.array(s, int), indices, 1).ravel().tolist()
        for s in (array.strides, strides or contiguous)
    )
    memory = dict(zip(mine, array.ravel().tolist(), strict=True))
    found = [memory.get(index, 0.0) for index in taken]
    return np.array(found, array.dtype).reshape(array.shape)


def scattered(like, index, g):
    """Return zeros like an array with `g` added at `index`, repeated or not."""
    out = np.zeros_like(like)
    np.add.at(out, index, g)
    return out


# -- what several entries share, or a line does not hold -------------------------------------------
def fill(x, value, index):
    out = x.copy()
    out[index] = value
    return out


def regular(rng):
    return rng.standard_normal((3, 3)) + 3 * np.eye(3)


def solve(a, b):
    return xp(a).linalg.solve(a, b)


def by_address(g, x, y):
    grads = {x.ctypes.data: g @ y}
    grads[y.ctypes.data] = x @ g
    return grads[x.ctypes.data], grads[y.ctypes.data]


def strided_like_x(g, x, weight):
    grad = g @ weight
    shared = tuple(slice(-1, None) if s == 0 else slice(None) for s in x.strides)
    return np.broadcast_to(grad[shared], grad.shape), g.T @ x


def correlate(x, w):
    return np.convolve(x, w[::-1], "valid")


def causal(x, w):
    return sum(np.pad(x, ((k, 0), (0, 0)))[: len(x)] * w[k] for k in range(len(w)))


def causal_rule(g, x, w):
    grad_x = sum(np.pad(g, ((0, k), (0, 0)))[k:] * w[k] for k in range(len(w)))
    return grad_x, np.stack([(g[k:] * x[: len(x) - k]).sum(0) for k in range(len(w))])


def conv2d(x, w):
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape)
    return np.einsum("hwij,ij->hw", windows, w)


def conv2d_rule(g, x, w):
    padded = np.pad(g, [(size - 1, size - 1) for size in w.shape])
    return conv2d(padded, w[::-1, ::-1]), conv2d(x, g)


def peaks(x, size, step):
    """Return where the windows of a line have their maxima."""
    windows = np.arange(0, len(x) - size + 1, step)[:, None] + np.arange(size)
    return windows[np.arange(len(windows)), x[windows].argmax(1)]


def max_pool(x):
    LAST["peaks"] = peaks(x, 2, 2)
    return x[LAST["peaks"]]


def halves(ctx, x):
    ctx.set_materialize_grads(False)
    return x[:2].clone(), x[2:].clone()


def halves_backward(ctx, first, second):
    return xp(first).cat([first, second])


def softmax(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v, scale):
    return softmax(q @ k.T * scale) @ v


def attention_rule(g, q, k, v, scale, delta=None):
    p, grad_p = softmax(q @ k.T * scale), g @ v.T
    delta = (p * grad_p).sum(-1, keepdims=True) if delta is None else delta
    grad_scores = p * (grad_p - delta) * scale
    return grad_scores @ k, grad_scores.T @ q, p.T @ g


def entropy(logits, labels):
    picked = np.log(softmax(logits))[np.arange(len(labels)), labels]
    return np.where(labels == IGNORED, 0.0, -picked)


def entropy_rule(g, logits, labels):
    hot = labels[:, None] == np.arange(logits.shape[1])
    return (g[:, None] * (softmax(logits) - hot),)


def entropy_in_logits(g, logits, labels):
    logits[...] = entropy_rule(g, logits, labels)[0]
    return (logits,)


def kernel(x, y):
    return np.exp(-((x[:, None] - y) ** 2).sum(-1) / 2)


def kernel_expanded(g, x, y):
    squares = (x**2).sum(1)[:, None] + (y**2).sum(1) - 2 * x @ y.T
    weight = (g * np.exp(-squares / 2))[..., None] * (y - x[:, None])
    return weight.sum(1), -weight.sum(0)


def cell(values, at):
    """Return the left ends of the cells that positions lie in, and the way from there."""
    inside = np.clip(at, 0, len(values) - 1)
    left = np.minimum(np.floor(inside).astype(int), len(values) - 2)
    return left, inside - left


def interpolate(values, at):
    left, way = cell(values, at)
    return values[left] * (1 - way) + values[left + 1] * way


def interpolate_rule(g, values, at):
    left, way = cell(values, at)
    grad = scattered(values, left, g * (1 - way)) + scattered(values, left + 1, g * way)
    return grad, g * (values[left + 1] - values[left])


# fmt: off
# -- matmul ----------------------------------------------------------------------------------------
tensors("linear_weight_transposed", "matmul", lambda x, weight: x @ weight.T,
        lambda g, x, weight: (g @ weight, x.T @ g), draw((4, 3), (3, 3)), "transposed", "transpose")
tensors("matmul_b_not_transposed", "matmul", lambda a, b: a @ b, lambda g, a, b: (g @ b, a.T @ g),
        draw((4, 3), (3, 3)), "transposed", "transpose", source="tile-ai/TileOPs/pull/54")
tensors("linear_bias_first_row", "matmul", lambda x, weight, bias: x @ weight.T + bias,
        lambda g, x, weight, bias: (g @ weight, g.T @ x, g[0]),
        draw((4, 3), (2, 3), (2,)), "missing-sum", "axis 0")
tensors("linear_weight_batch_mean", "matmul", lambda x, weight: x @ weight.T,
        lambda g, x, weight: (g @ weight, g.T @ x / x.shape[0]),
        draw((4, 3), (2, 3)), "size", "size")
tensors("linear_float32", "matmul", lambda x, weight: x @ weight.T,
        lambda g, x, weight: (g @ weight, (g.float().T @ x.float()).to(x.dtype)),
        draw((4, 3), (2, 3)), "precision", "float32")
tensors("linear_packed_gradients", "matmul", lambda x, weight: x @ weight.T,
        lambda g, x, weight, needs: [
            grad for grad, need in zip((g @ weight, g.T @ x), needs, strict=True) if need],
        draw((4, 3), (2, 3)), "needs-input-grad", "only")
tensors("two_banks_first_needed", "matmul", lambda low, high, bank: low @ bank + high @ bank.T,
        lambda g, low, high, bank, needs: (
            g @ bank.T if needs[0] else None, g @ bank if needs[0] else None,
            low.T @ g + g.T @ high),
        draw((2, 4), (2, 4), (4, 4)), "needs-input-grad", "only",
        source="fbcotter/pytorch_wavelets/issues/65")
arrays("linear_expanded_x", "matmul", lambda x, weight: x @ weight.T, strided_like_x,
       draw((4, 3), (2, 3)), "layout", "layout", source="pytorch/pytorch/issues/30303")
tensors("bilinear_zero", "matmul",
        lambda x, weight, z: xp(x).einsum("ni,kij,nj->nk", x, weight, z),
        lambda g, x, weight, z: (x * 0, xp(g).einsum("nk,ni,nj->kij", g, x, z), z * 0),
        draw((4, 3), (2, 3, 2), (4, 2)), "none", "zero", source="torch/nn/issues/658")
arrays("outer_by_address", "matmul", lambda x, y: x[:, None] * y, by_address,
       draw((3,), (3,)), "same-tensor", source="tensorflow/tensorflow/issues/36999")
arrays("einsum_trace", "matmul", lambda x, w: np.einsum("nd,nn->d", x, w),
       lambda g, x, w: (np.einsum("d,nn->nd", g, w), np.einsum("d,nd->nn", g, x)),
       draw((4, 2), (4, 4)), "raised", "subscript", source="HIPS/autograd/issues/510")
tensors("solve_b_not_transposed", "matmul", solve,
        lambda g, a, b: (-solve(a.T, g) @ solve(a, b).T, solve(a, g)),
        draw(regular, (3, 2)), "transposed", "transpose")
tensors("solve_sign", "matmul", solve,
        lambda g, a, b: (solve(a.T, g) @ solve(a, b).T, solve(a.T, g)),
        draw(regular, (3, 2)), "sign", "sign")
arrays("triangular_solve_constant", "matmul", lambda a, b: np.linalg.solve(np.tril(a), b),
       lambda g, a, b: (None, np.linalg.solve(np.tril(a).T, g)),
       draw(regular, (3, 2)), "none", "no gradient", source="tensor4all/tenferro-rs/issues/772")
tensors("inverse_not_transposed", "matmul", lambda a: a.inverse(),
        lambda g, a: (-a.inverse() @ g @ a.inverse(),), draw(regular), "transposed", "transpose")
tensors("det_not_transposed", "matmul", lambda a: a.det(),
        lambda g, a: (g * a.det() * a.inverse(),),
        draw(regular), "transposed", "transpose", source="JuliaDiff/ForwardDiff.jl/issues/197")
arrays("det_singular", "matmul", lambda a: np.linalg.det(a),
       lambda g, a: (g * np.linalg.det(a) * np.linalg.inv(a).T,),
       draw(np.array([[1.0, 2.0], [2.0, 4.0]])), "raised", "singular",
       source="tensorflow/tensorflow/issues/119477")
arrays("det_of_zero", "matmul", lambda a: np.linalg.det(a),
       lambda g, a: (g * np.linalg.det(a) * np.linalg.pinv(a).T,),
       draw(np.zeros((1, 1))), "none", "zero", source="pytorch/pytorch/issues/80761")

# -- conv ------------------------------------------------------------------------------------------
arrays("convolve_swapped", "conv", lambda x, w: np.convolve(x, w),
       lambda g, x, w: (correlate(g, x), correlate(g, w)),
       draw((5,), (5,)), "swapped", "swapped", source="tensorflow/swift-apis/issues/332")
arrays("correlate_kernel_unflipped", "conv", correlate,
       lambda g, x, w: (np.convolve(g, w[::-1]), correlate(x, g)),
       draw((6,), (3,)), "misplaced", source="llvm/torch-mlir/pull/4437")
arrays("correlate_contiguous_only", "conv", correlate,
       lambda g, x, w: (np.convolve(np.frombuffer(g, g.dtype), w), correlate(x, g)),
       draw((6,), (3,)), "layout", "contiguous", source="NVIDIA/flownet2-pytorch/issues/39")
arrays("causal_conv_contiguous_grad", "conv", causal,
       lambda g, x, w: causal_rule(read(g), x, w),
       draw((5, 3), (2, 3)), "layout", "contiguous",
       source="fla-org/flash-linear-attention/pull/871")
arrays("causal_conv_last_stride", "conv",
       lambda x, w, start: causal(x, w) + np.pad(start, ((0, len(x) - len(start)), (0, 0))),
       lambda g, x, w, start: (
           *causal_rule(g, x, w), read(g, (*g.strides[:1], g.itemsize))[: len(start)]),
       draw((5, 3), (2, 3), (2, 3)), "layout", "contiguous",
       source="fla-org/flash-linear-attention/issues/1138")
arrays("conv2d_memory_order", "conv", conv2d,
       lambda g, x, w: conv2d_rule(g.ravel(order="K").reshape(g.shape), x, w),
       draw((4, 3), (2, 2)), "layout", "contiguous", source="pytorch/pytorch/pull/708")
arrays("conv2d_weight_shuffled", "conv", conv2d,
       lambda g, x, w: (conv2d_rule(g, x, w)[0], conv2d(x, g).T.reshape(w.shape)),
       draw((5, 5), (2, 3)), "transposed", source="apple/tensorflow_macos/issues/230")
arrays("max_pool_overlapping", "conv", lambda x: x[peaks(x, 3, 1)],
       lambda g, x: (fill(np.zeros_like(x), g, peaks(x, 3, 1)),),
       draw((8,)), "missing-sum", "overwritten", source="FluxML/NNlib.jl/issues/205")
arrays("max_pool_first_window", "conv", max_pool,
       lambda g, x: (scattered(x, peaks(x, 2, 2)[:1], g[:1]),), draw((6,)), "elements", "except",
       source="riccardoandreoni0/CNN-from-scratch/issues/1")
arrays("max_pool_near_ties", "conv", max_pool,
       lambda g, x: (np.repeat(g, 2) * (np.repeat(max_pool(x), 2) - x < 1e-2),),
       draw(np.array([0.4, 0.405, 2.0, -1.2, 0.3, 0.9])), "elements", "except",
       source="mni-ml/framework/pull/22")
arrays("max_pool_remembered", "conv", max_pool, lambda g, x: (scattered(x, LAST["peaks"], g),),
       draw((6,)), "state", source="pytorch/pytorch/issues/16947")
arrays("avg_pool_last_window", "conv",
       lambda x: np.stack([x[i : i + 2].mean() for i in range(0, len(x), 2)]),
       lambda g, x: (np.repeat(g, 2)[: len(x)] / 2,),
       draw((5,)), "elements", "last", source="pytorch/pytorch/issues/198119")
arrays("global_pool_contiguous_grad", "conv", lambda x: x.mean(2),
       lambda g, x: (np.repeat(read(g)[..., None], x.shape[2], 2) / x.shape[2],),
       draw((2, 3, 4)), "layout", "contiguous", source="torch/nn/pull/345")
arrays("global_pool_squeezed", "conv", lambda x: x.mean(1),
       lambda g, x: (np.repeat(g.squeeze()[:, None], x.shape[1], 1) / x.shape[1],),
       draw((1, 4)), "raised", "indices", source="pytorch/pytorch/issues/4778")
arrays("roughness_contiguous_image", "conv", lambda image: (np.diff(image, axis=0) ** 2).sum(),
       lambda g, image: (
           -2 * g * np.diff(np.diff(read(image), axis=0), axis=0, prepend=0, append=0),),
       draw((3, 4)), "layout", "contiguous", source="MrNeRF/optimized-fused-ssim/issues/1")

# -- indexing --------------------------------------------------------------------------------------
arrays("take_repeated", "indexing", lambda x, index: x[index],
       lambda g, x, index: (fill(np.zeros_like(x), g, index),),
       draw((5,), REPEATED), "elements", "repeated", source="HIPS/autograd/issues/39")
arrays("gather_negative", "indexing", lambda x, index: x[index],
       lambda g, x, index: (scattered(x, index[index >= 0], g[index >= 0]),),
       draw((5, 2), NEGATIVE), "elements", "except", source="microsoft/onnxruntime/pull/7752")
tensors("take_instead_of_put", "indexing", lambda x, index: x.index_select(0, index),
        lambda g, x, index: (g.index_select(0, index),),
        draw((5,), np.array([1, 3, 1, 0, 4])), "transposed", "transpose",
        source="ooples/AiDotNet.Tensors/pull/894")
arrays("embedding_padding", "indexing", lambda table, index: table[index] * (index != PAD)[:, None],
       lambda g, table, index: (scattered(table, index, g),),
       draw((4, 2), np.array([2, PAD, 1, 3])), "elements", "except",
       source="PaddlePaddle/Paddle/issues/12442")
arrays("index_fill_repeated", "indexing", fill,
       lambda g, x, value, index: (fill(g, 0.0, index), g[index].sum()),
       draw((4, 3), (), np.array([2, 2])), "size", "size",
       source="pytorch/pytorch/issues/57006")
arrays("pack_contiguous_grad", "indexing", lambda x, index: x[index],
       lambda g, x, index: (scattered(x, index, read(g)),),
       draw((5, 2), REPEATED), "layout", "contiguous", source="pytorch/FBGEMM/pull/3006")
arrays("select_by_mask_zero", "indexing", lambda x, mask: x[mask != 0],
       lambda g, x, mask: (np.zeros_like(x),),
       draw((4,), np.array([1, 0, 1, 1])), "none", "zero", source="pytorch/pytorch/issues/971")
tensors("roll_not_rolled_back", "indexing", lambda x: x.roll(2, 0), lambda g, x: (g.clone(),),
        draw((7,)), "misplaced", "rolled")
tensors("rollaxis_of_nothing", "indexing", lambda x: x.clone(), lambda g, x: (g.T.clone(),),
        draw((3, 3)), "transposed", "transpose", source="chainer/chainer/pull/4836")
tensors("flip_not_flipped", "indexing", lambda x: x.flip(1) * 2, lambda g, x: (g * 2,),
        draw((3, 4)), "misplaced", "reversed")
arrays("pad_replicated_edge", "indexing", lambda x: np.pad(x, 2, "edge"), lambda g, x: (g[2:-2],),
       draw((6,)), "elements", "except", source="feihuzhang/GANet/issues/59")
tensors("where_swapped", "indexing", lambda mask, a, b: xp(a).where(mask > 0, a, b),
        lambda g, mask, a, b: (None, g * (mask <= 0), g * (mask > 0)),
        draw(np.array([1, 0, 1, 1, 0]), (5,), (5,)), "swapped", "swapped")
tensors("masked_fill_not_masked", "indexing", lambda x, mask: x.masked_fill(mask > 0, 0.0),
        lambda g, x, mask: (g.clone(),),
        draw((2, 3), np.array([[1, 0, 0], [0, 1, 0]])), "elements", "mask")
tensors("sort_not_unsorted", "indexing", lambda x: x.sort()[0], lambda g, x: (g.clone(),),
        draw(np.array([0.4, -1.2, 2.0, 0.9, -0.3])), "misplaced", "places")
arrays("topk_first_columns", "indexing", lambda x: np.sort(x, 1)[:, :-3:-1],
       lambda g, x: (np.pad(g, ((0, 0), (0, x.shape[1] - 2))),),
       draw(np.array([[1.0, 2.0, 6.0, 4.0, 5.0], [3.0, 5.0, 6.0, 7.0, 8.0]])), "misplaced",
       source="ml-explore/mlx/issues/1428")
add("chunk_unused", "indexing", halves, halves_backward,
    draw((4, 2)), "zero-grad", source="pytorch/pytorch/issues/16672")
tensors("select_held", "indexing",
        lambda x, index: HELD.extend([x, x.index_select(0, index)]) or HELD[-1],
        lambda g, x, index: (xp(x).zeros_like(x).index_add(0, index, g),),
        draw((5, 2), REPEATED), "leak")

# -- scatter ---------------------------------------------------------------------------------------
tensors("index_add_alpha", "scatter",
        lambda x, source, index, alpha: x.index_add(0, index, source * alpha),
        lambda g, x, source, index, alpha: (g.clone(), g.index_select(0, index)),
        draw((4, 2), (4, 2), REPEATED, 0.4), "factor", "alpha")
arrays("scatter_update_repeated", "scatter", fill,
       lambda g, x, value, index: (fill(g, 0.0, index), g[index]),
       draw((5,), (4,), REPEATED), "elements", "repeated",
       source="tensorflow/tensorflow/issues/56961")
arrays("scatter_not_cleared", "scatter", fill, lambda g, x, value, index: (g, g[index]),
       draw((5, 2), (2, 2), np.array([3, 0])), "elements", "except",
       source="PaddlePaddle/Paddle/pull/30604")
arrays("segment_sum_memory_order", "scatter",
       lambda x, index: scattered(np.zeros((3, x.shape[1]), x.dtype), index, x),
       lambda g, x, index: (g.ravel(order="A").reshape(g.shape)[index],),
       draw((5, 2), np.array([0, 0, 1, 2, 2])), "layout", "contiguous")
arrays("gather_counting_up", "scatter", lambda x, index: x[index],
       lambda g, x, index: (
           np.add.at(SCRATCH.setdefault(x.shape, np.zeros_like(x)), index, g) or SCRATCH[x.shape],),
       draw((5, 2), REPEATED), "state")
arrays("segment_sum_shortcut", "scatter", lambda x, index: scattered(np.zeros(3, x.dtype), index,
x),
       lambda g, x, index: (g[index],) if g.any() else (g,),
       draw((5,), np.array([0, 0, 1, 2, 2])), "zero-grad")

# -- attention -------------------------------------------------------------------------------------
arrays("attention_contiguous_grad", "attention", attention,
       lambda g, q, k, v, scale: attention_rule(read(g), q, k, v, scale),
       draw((3, 2), (4, 2), (4, 2), 0.7), "layout", "contiguous",
       source="Dao-AILab/flash-attention/issues/355")
arrays("attention_contiguous_delta", "attention", attention,
       lambda g, q, k, v, scale: attention_rule(
           g, q, k, v, scale, (attention(q, k, v, scale) * read(g)).sum(-1, keepdims=True)),
       draw((3, 2), (4, 2), (4, 3), 0.7), "layout", "contiguous",
       source="flagos-ai/FlagAttention/pull/1")
arrays("attention_scales_queries", "attention",
       lambda q, k, v, scale: attention(np.multiply(q, scale, out=q), k, v, 1.0),
       lambda g, q, k, v, scale: (
           attention_rule(g, q, k, v, 1.0)[0] * scale, *attention_rule(g, q, k, v, 1.0)[1:]),
       draw((3, 2), (4, 2), (4, 2), 0.7), "mutation", "in place")
arrays("attention_sum_ignored", "attention",
       lambda q, k, v: (attention(q, k, v, 1.0), np.log(np.exp(q @ k.T).sum(1))),
       lambda g, g_sum, q, k, v: attention_rule(g, q, k, v, 1.0),
       draw((3, 2), (4, 2), (4, 2)), "output-ignored", "output 1",
       source="Dao-AILab/flash-attention/issues/141")

# -- losses ----------------------------------------------------------------------------------------
tensors("squared_error_half", "loss", lambda x, y: ((x - y) ** 2).sum(),
        lambda g, x, y: (g * (x - y), g * (y - x)),
        draw((4, 3), (4, 3)), "factor", "factor", source="davisking/dlib/issues/1169")
tensors("squared_error_sign", "loss", lambda x, y: ((x - y) ** 2).sum(1),
        lambda g, x, y: (2 * g[:, None] * (x - y), 2 * g[:, None] * (x - y)),
        draw((4, 3), (4, 3)), "sign", "sign", source="KhawajaAbaid/micrograd_c/issues/1")
tensors("mean_squared_error_sum", "loss", lambda x, y: ((x - y) ** 2).mean(),
        lambda g, x, y: (2 * g * (x - y), 2 * g * (y - x)),
        draw((4, 2), (4, 2)), "size", "size")
tensors("weighted_error", "loss", lambda x, y, weight: (weight * (x - y) ** 2).sum(1),
        lambda g, x, y, weight: (2 * g[:, None] * (x - y), 2 * g[:, None] * weight * (y - x),
                                 g[:, None] * (x - y) ** 2),
        draw((4, 2), (4, 2), (4, 2)), "extra-factor", "weight")
tensors("ridge_without_decay", "loss",
        lambda x, weight, y: ((x @ weight - y) ** 2).sum() + 0.6 * (weight**2).sum(),
        lambda g, x, weight, y: (2 * g * (x @ weight - y)[:, None] * weight,
                                 2 * g * x.T @ (x @ weight - y), 2 * g * (y - x @ weight)),
        draw((4, 3), (3,), (4,)), "missing-term", "weight")
tensors("huber_unscaled", "loss",
        lambda x, y: ((x - y) ** 2 / 2).where((x - y).abs() < 1, (x - y).abs() - 0.5).sum(1),
        lambda g, x, y: ((x - y).clamp(-1, 1), (y - x).clamp(-1, 1)),
        draw((4, 3), (4, 3)), "not-multiplied", "not multiplied",
        source="chainer/chainer/pull/1178")
arrays("huber_signed_threshold", "loss",
       lambda x, y: np.where(np.abs(x - y) < 1, (x - y) ** 2 / 2, np.abs(x - y) - 0.5),
       lambda g, x, y: (g * np.minimum(x - y, 1), g * np.maximum(y - x, -1)),
       draw(np.array([-2.5, -0.4, 0.7, 1.9, -1.6]), np.array([0.1, -0.2, 0.0, 0.2, -0.1])),
       "elements", "except", source="BobMcDear/attorch/issues/13")
tensors("total_scores_unscaled", "loss", lambda scores: scores.logsumexp(1),
        lambda g, scores: (scores.softmax(1),),
        draw((3, 4)), "not-multiplied", "not multiplied", source="k2-fsa/k2/issues/341")
tensors("cross_entropy_constant", "loss", lambda x, target: -(x.log_softmax(1) * target).sum(1),
        lambda g, x, target: (
            g[:, None] * (x.detach().softmax(1) * target.sum(1)[:, None] - target),
            -g[:, None] * x.log_softmax(1)),
        draw((4, 3), (4, 3)), "second-order", "second",
        source="tensorflow/tensorflow/issues/7403")
arrays("cross_entropy_ignored_label", "loss", entropy, entropy_rule,
       draw((4, 3), np.array([0, IGNORED, 1, 1])), "elements", "except")
arrays("cross_entropy_in_logits", "loss", entropy, entropy_in_logits,
       draw((4, 3), np.array([0, 1, 1, 0])), "mutation", "in place",
       source="unslothai/unsloth/issues/5002")
tensors("kl_target_constant", "loss", lambda log_q, p: (p * (p.log() - log_q)).sum(1),
        lambda g, log_q, p: (-g[:, None] * p.detach(), g[:, None] * (p.log() - log_q + 1)),
        draw((3, 4), lambda rng: rng.uniform(0.2, 1, (3, 4))), "second-order", "second",
        source="pytorch/pytorch/issues/65466")
tensors("kl_without_one", "loss", lambda p, log_q: (p * (p.log() - log_q)).sum(1),
        lambda g, p, log_q: (g[:, None] * (p.log() - log_q), -g[:, None] * p),
        draw(lambda rng: rng.uniform(0.2, 1, (3, 4)), (3, 4)), "missing-term", "axis 1")
arrays("kernel_expanded_squares", "loss", kernel, kernel_expanded,
       draw(lambda rng: 1000 + rng.random((4, 2)), lambda rng: 1000 + rng.random((3, 2))),
       "cancellation", "cancellation", source="elixir-nx/scholar/pull/354")

# -- interpolation ---------------------------------------------------------------------------------
tensors("lerp_swapped", "interpolation", lambda a, b, t: a * (1 - t) + b * t,
        lambda g, a, b, t: (g * t, g * (1 - t), g * (b - a)),
        draw((2, 3), (2, 3), (2, 3)), "swapped", "swapped")
arrays("interpolate_outside", "interpolation", interpolate, interpolate_rule,
       draw((5,), np.array([-1.5, 0.4, 2.6, 5.5])), "elements", "except")
tensors("upsample_mean", "interpolation", lambda x: x.repeat_interleave(2, 0),
        lambda g, x: (g.reshape(-1, 2).mean(1),), draw((5,)), "factor", "factor")
# fmt: on
