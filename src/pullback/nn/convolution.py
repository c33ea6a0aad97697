"""Convolutions of one, two and three dimensions, and their windows: unfold and fold."""

from __future__ import annotations

import math
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.nn.dimensions import axes_of, in_dimensions
from pullback.ops.declare import needs_tensor, wrapper_of
from pullback.ops.primitives.convolution import convolution_input_p, convolution_p, fold_p, unfold_p
from pullback.ops.primitives.shape import reshape_p
from pullback.ops.samples import sample
from pullback.ops.windows import Geometry, Ints, counts, exact, needs_rank, per_axis


def _read(
    op: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[Ints, Geometry]:
    sizes = per_axis(op, "kernel_size", kernel_size, 2)
    pads = tuple((p, p) for p in per_axis(op, "padding", padding, 2, least=0))
    step, d = per_axis(op, "stride", stride, 2), per_axis(op, "dilation", dilation, 2)
    return sizes, Geometry(step, d, pads)


# -- unfold and fold -------------------------------------------------------------------------------
@wrapper_of(unfold_p)
def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Return the windows of images as columns: what a convolution multiplies by its weight.

    Parameters
    ----------
    input : Tensor of shape (N, C, H, W) or (C, H, W)
    kernel_size, dilation, padding, stride : int or tuple of two int
        The size of a window, the distance of its elements, the zeros added on each side, the
        distance of windows.

    Returns
    -------
    Tensor of shape (N, C * kernel height * kernel width, number of windows)

    Raises
    ------
    ShapeError
        If the input has another rank, or no window fits.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]])
    >>> pb.nn.functional.unfold(x, kernel_size=2)
    tensor([[1., 2.],
            [2., 3.],
            [4., 5.],
            [5., 6.]])
    """
    needs_rank("unfold", input, ("N", "C", "H", "W"))
    sizes, geometry = _read("unfold", kernel_size, dilation, padding, stride)
    return unfold_p.public(input, sizes=sizes, geometry=exact("unfold", input, sizes, geometry))


@wrapper_of(fold_p)
def fold(
    input: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Add columns, as `unfold` returns them, up to images: overlapping windows sum.

    Parameters
    ----------
    input : Tensor of shape (N, C * kernel height * kernel width, number of windows)
        The batch may be left away.
    output_size : int or tuple of two int
        Height and width of the images.
    kernel_size, dilation, padding, stride : int or tuple of two int
        As for `unfold`.

    Raises
    ------
    ShapeError
        If the input has another rank, or its shape is not that of the windows of such images.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.fold(pb.ones((4, 4)), output_size=3, kernel_size=2)
    tensor([[[1., 2., 1.],
             [2., 4., 2.],
             [1., 2., 1.]]])
    """
    needs_rank("fold", input, ("N", "C * kernel", "windows"))
    sizes, geometry = _read("fold", kernel_size, dilation, padding, stride)
    lengths = per_axis("fold", "output_size", output_size, 2)
    rows, count = math.prod(sizes), math.prod(max(0, n) for n in counts(lengths, sizes, geometry))
    if not count or input.shape[-1] != count or input.shape[-2] % rows:
        required = f"a multiple of {rows} rows and {count} columns, one a window, required"
        raise ShapeError(compose("fold", required, str(input.shape[-2:]), ("input", input)))
    return fold_p.public(input, lengths=lengths, sizes=sizes, geometry=geometry)


# -- what the public functions share ---------------------------------------------------------------
def _checked(
    op: str, n: int, input: Any, weight: Any, bias: Any, groups: Any, into: int
) -> tuple[Tensor, int]:
    """Return the input with a batch, and the groups, after looking at all shapes.

    `into`: the axis of the weight whose length belongs to the channels of the input.
    """
    needs_rank(op, input, axes_of(n))
    needs_tensor(op, weight, "weight")
    named = (("input", input), ("weight", weight))
    if len(weight.shape) != n + 2:
        lengths = ", ".join(axes_of(n)[2:])
        required = f"a weight of {n + 2} dimensions, two channels and {lengths}, required"
        raise ShapeError(compose(op, required, str(len(weight.shape)), *named))
    channels, outs = input.shape[-n - 1], weight.shape[0]
    (groups,) = per_axis(op, "groups", groups, 1)
    if outs % groups or channels % groups:
        required = f"channels that {groups} groups divide required"
        raise ShapeError(compose(op, required, f"{channels} and {outs}", *named))
    wanted = weight.shape[1] * groups if into else outs
    if channels != wanted:
        required = f"an input of {wanted} channels, as the weight has, required"
        raise ShapeError(compose(op, required, str(channels), *named))
    if bias is not None:
        needs_tensor(op, bias, "bias")
        wanted = outs if into else weight.shape[1] * groups
        if tuple(bias.shape) != (wanted,):
            required = f"a bias of shape ({wanted},), one number an output channel, required"
            raise ShapeError(compose(op, required, str(tuple(bias.shape)), *named, ("bias", bias)))
    batched = len(input.shape) == n + 2
    return input if batched else reshape_p.public(input, shape=(1, *input.shape)), groups


def _finished(y: Tensor, bias: Any, n: int, batched: bool) -> Tensor:
    """Return the result with its bias, and without the batch that was added."""
    if bias is not None:
        y = y + reshape_p.public(bias, shape=(bias.shape[0], *(1,) * n))
    return y if batched else reshape_p.public(y, shape=y.shape[1:])


def _paddings(op: str, padding: Any, sizes: Ints, stride: Ints, dilation: Ints) -> Any:
    """Return the padding of each axis, from numbers or words."""
    if not isinstance(padding, str):
        return tuple((p, p) for p in per_axis(op, "padding", padding, len(sizes), least=0))
    if padding not in ("valid", "same"):
        required = "'padding' must be integers, 'same' or 'valid'"
        raise ArgumentError(compose(op, required, repr(padding)))
    if padding == "valid":
        return ((0, 0),) * len(sizes)
    if any(s != 1 for s in stride):
        raise ArgumentError(compose(op, "a stride of 1 for padding='same' required", str(stride)))
    totals = [d * (k - 1) for k, d in zip(sizes, dilation, strict=True)]
    return tuple((total // 2, total - total // 2) for total in totals)


# -- convolutions ----------------------------------------------------------------------------------
@in_dimensions(
    (
        sample((1, 2, 4), (2, 2, 2), (2,), padding=1),
        sample((2, 4), (2, 1, 3), (2,), padding="same", groups=2),
        sample((2, 2, 3), (0, 2, 2), (0,)),
    ),
    (
        sample((1, 2, 3, 3), (1, 2, 2, 2), (1,)),
        sample((1, 3, 4), (2, 1, 2, 3), (2,), stride=(1, 2), padding=(0, 1)),
        sample((1, 2, 2, 3), (2, 1, 2, 2), (2,), padding="same", groups=2),
        sample((1, 1, 4, 4), (1, 1, 2, 2), (1,), dilation=2, padding=1, stride=2),
    ),
    (sample((1, 1, 2, 2, 3), (1, 1, 1, 2, 2), (1,), padding=(0, 0, 1), stride=(1, 1, 2)),),
    examples=(
        """
>>> x = pb.tensor([[1.0, 2.0, 4.0, 8.0]])
>>> pb.conv1d(x, pb.tensor([[[-1.0, 1.0]]]))
tensor([[1., 2., 4.]])
""",
        """
>>> x = pb.tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]])
>>> pb.conv2d(x, pb.ones((1, 1, 2, 2)))
tensor([[[12., 16.],
         [24., 28.]]])
""",
        """
>>> pb.conv3d(pb.ones((1, 2, 2, 2)), pb.ones((1, 1, 2, 2, 2)))
tensor([[[[8.]]]])
""",
    ),
    scalars=False,
)
def conv(
    n: int,
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of {things}, out[n, o] = bias[o] + sum_c input[n, c] * weight[o, c].

    The ``*`` is a cross-correlation, of images out[i, j] = sum_kl x[i + k, j + l] w[k, l]: the
    weight is not turned around.

    Parameters
    ----------
    input : Tensor of shape (N, C, {axes}) or (C, {axes})
    weight : Tensor of shape (outputs, C / groups, {kernel})
    bias : Tensor of shape (outputs,), optional
    stride, dilation : {ints}
        The distance of windows, and of the elements of a window.
    padding : {ints}, or ``"valid"`` or ``"same"``
        The zeros added on each side; "same" adds as many as keep the lengths, of an odd number one
        more behind, and needs a stride of 1.
    groups : int
        The channels fall into so many groups; outputs see the inputs of their own group alone.

    Raises
    ------
    ShapeError
        If ranks or channels do not fit, or the kernel is larger than the padded input.
    ArgumentError
        If a setting is out of range, or a word is unknown.

    Examples
    --------
    >>> import pullback as pb
    {example}
    """
    op = f"conv{n}d"
    x, groups = _checked(op, n, input, weight, bias, groups, into=1)
    sizes = weight.shape[2:]
    step, d = per_axis(op, "stride", stride, n), per_axis(op, "dilation", dilation, n)
    geometry = Geometry(step, d, _paddings(op, padding, sizes, step, d))
    geometry = exact(op, x, sizes, geometry)
    y = convolution_p.public(x, weight, geometry=geometry, groups=groups)
    return _finished(y, bias, n, x is input)


conv1d, conv2d, conv3d = conv


# -- transposed convolutions -----------------------------------------------------------------------
@in_dimensions(
    (
        sample((1, 2, 3), (2, 1, 2), (1,), stride=2, output_padding=1),
        sample((2, 2), (2, 1, 3), (2,), padding=1, groups=2),
    ),
    (
        sample((1, 2, 2, 2), (2, 1, 2, 2), (1,)),
        sample((2, 2, 1), (2, 1, 2, 3), (2,), stride=(2, 1), padding=(0, 1), groups=2),
        sample((1, 1, 2, 2), (1, 1, 2, 1), (1,), dilation=3, output_padding=(2, 0), stride=(2, 1)),
    ),
    (sample((1, 1, 1, 2, 1), (1, 1, 2, 1, 2), (1,), stride=2),),
    examples=(
        """
>>> pb.conv_transpose1d(pb.tensor([[1.0, 2.0]]), pb.tensor([[[1.0, 10.0]]]))
tensor([[ 1., 12., 20.]])
""",
        """
>>> pb.conv_transpose2d(pb.ones((1, 2, 2)), pb.ones((1, 1, 2, 2)))
tensor([[[1., 2., 1.],
         [2., 4., 2.],
         [1., 2., 1.]]])
""",
        """
>>> pb.conv_transpose3d(pb.ones((1, 1, 1, 1)), pb.ones((1, 1, 2, 1, 1))).shape
(1, 2, 1, 1)
""",
    ),
    scalars=False,
)
def conv_transpose(
    n: int,
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Return the transposed convolution of {things}: the gradient of `conv{n}d` in its input.

    Each element of the input adds the weight, times itself, to a window of the output.

    Parameters
    ----------
    input : Tensor of shape (N, C, {axes}) or (C, {axes})
    weight : Tensor of shape (C, outputs / groups, {kernel})
    bias : Tensor of shape (outputs,), optional
    stride, dilation : {ints}
        The distance of windows, and of the elements of a window.
    padding, output_padding : {ints}
        What is cut off on each side, and what is added behind thereafter.
    groups : int
        As for `conv{n}d`.

    Raises
    ------
    ShapeError
        If ranks or channels do not fit, or nothing is left of the output.
    ArgumentError
        If a setting is out of range.

    Examples
    --------
    >>> import pullback as pb
    {example}
    """
    op = f"conv_transpose{n}d"
    x, groups = _checked(op, n, input, weight, bias, groups, into=0)
    step, d = per_axis(op, "stride", stride, n), per_axis(op, "dilation", dilation, n)
    cut = per_axis(op, "padding", padding, n, least=0)
    extra = per_axis(op, "output_padding", output_padding, n, least=0)
    if any(e >= max(s, k) for e, s, k in zip(extra, step, d, strict=True)):
        required = "an output_padding below the stride or the dilation required"
        raise ArgumentError(compose(op, required, str(extra), ("input", input)))
    geometry = Geometry(step, d, tuple((p, p - e) for p, e in zip(cut, extra, strict=True)))
    axes = zip(x.shape[2:], weight.shape[2:], *geometry, strict=True)
    lengths = [(m - 1) * s + d * (k - 1) + 1 - sum(pads) for m, k, s, d, pads in axes]
    if min(lengths) < 1:
        required = "an output of at least 1 element along each axis required"
        named = (("input", input), ("weight", weight))
        raise ShapeError(compose(op, required, str(lengths), *named, hint="take less padding"))
    y = convolution_input_p.public(x, weight, geometry=geometry, groups=groups)
    return _finished(y, bias, n, x is input)


conv_transpose1d, conv_transpose2d, conv_transpose3d = conv_transpose
