"""Convolutional layers of one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.hints import hinted
from pullback.nn import functional as F  # noqa: N812
from pullback.nn.layers.linear import fill_by_fan_in, new_parameter
from pullback.nn.module import Module
from pullback.ops.functions.padding import pad
from pullback.ops.windows import per_axis

_PADDINGS = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """What all convolutional layers share; a subclass has the function and the dimensions."""

    _function: ClassVar[Callable[..., Any]]
    _dimensions: ClassVar[int]

    def _prepare(self, channels: tuple[int, int], kernel_size: Any, groups: int) -> None:
        name = type(self).__name__
        self.in_channels, self.out_channels = channels
        self.kernel_size = per_axis(name, "kernel_size", kernel_size, self._dimensions)
        if any(c % groups for c in channels):
            required = f"channels that {groups} groups divide required"
            raise ArgumentError(compose(name, required, f"{channels[0]} and {channels[1]}"))
        self.groups = groups

    def _add_parameters(self, first: int, second: int, bias: bool, of: dict[str, Any]) -> None:
        self.weight = new_parameter(first, second // self.groups, *self.kernel_size, **of)
        self.bias = new_parameter(self.out_channels, **of) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        fill_by_fan_in(self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the settings."""
        sizes = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        return f"{sizes}, stride={self.stride}, padding={self.padding}"

    stride: Any
    padding: Any


class _Forward(_Convolution):
    @hinted
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self._prepare((in_channels, out_channels), kernel_size, groups)
        if padding_mode not in _PADDINGS:
            required = f"a padding_mode of {', '.join(_PADDINGS)} required"
            raise ArgumentError(compose(type(self).__name__, required, repr(padding_mode)))
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.padding_mode = padding_mode
        self._add_parameters(out_channels, in_channels, bias, {"dtype": dtype, "device": device})

    def forward(self, input: Any) -> Tensor:
        """Return the convolution of the input."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = pad(input, self._borders(), mode=self.padding_mode), 0
        settings = (self.stride, padding, self.dilation, self.groups)
        result: Tensor = self._function(input, self.weight, self.bias, *settings)
        return result

    def _borders(self) -> list[int]:
        """Return what is added before and after each axis, the last axis first, as `pad` has it."""
        n, name = self._dimensions, type(self).__name__
        if self.padding == "valid":
            return [0] * (2 * n)
        if self.padding != "same":
            sizes = per_axis(name, "padding", self.padding, n, least=0)
            return [size for p in reversed(sizes) for size in (p, p)]
        steps = per_axis(name, "dilation", self.dilation, n)
        totals = [d * (k - 1) for d, k in zip(steps, self.kernel_size, strict=True)]
        return [size for t in reversed(totals) for size in (t // 2, t - t // 2)]


class _Transposed(_Convolution):
    @hinted
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self._prepare((in_channels, out_channels), kernel_size, groups)
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.output_padding = output_padding
        self._add_parameters(in_channels, out_channels, bias, {"dtype": dtype, "device": device})

    def forward(self, input: Any) -> Tensor:
        """Return the transposed convolution of the input."""
        settings = (self.stride, self.padding, self.output_padding, self.groups, self.dilation)
        result: Tensor = self._function(input, self.weight, self.bias, *settings)
        return result


_DOC = """{what} of {things}; see `pullback.nn.functional.{function}`.

    Parameters
    ----------
    in_channels, out_channels : int
        The lengths of the axis of channels before and after.
    kernel_size, stride, padding, {more}dilation : int or tuple of int
    groups : int
    bias : bool
        Whether there is a bias, a number an output channel.
    {last}device, dtype : optional
        Of the parameters, which are uniform up to 1 / sqrt(fan_in) at first.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.{name}(2, 4, 3)(pb.ones((1, 2{lengths}))).shape
    {result}
    """


_PADDING_MODE = """padding_mode : str
        ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
    """


def _layer(base: type[_Convolution], n: int) -> Any:
    turned = base is _Transposed
    name = f"Conv{'Transpose' if turned else ''}{n}d"
    function = getattr(F, f"conv_transpose{n}d" if turned else f"conv{n}d")
    doc = _DOC.format(
        what="The transposed convolution" if turned else "The convolution",
        things=("sequences", "images", "volumes")[n - 1],
        function=function.__name__,
        more="output_padding, " if turned else "",
        last="" if turned else _PADDING_MODE,
        name=name,
        lengths=", 5" * n,
        result=(1, 4, *((7 if turned else 3,) * n)),
    )
    members = {
        "__doc__": doc,
        "__module__": __name__,
        "_function": staticmethod(function),
        "_dimensions": n,
    }
    return type(name, (base,), members)


Conv1d, Conv2d, Conv3d = (_layer(_Forward, n) for n in (1, 2, 3))
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = (_layer(_Transposed, n) for n in (1, 2, 3))
