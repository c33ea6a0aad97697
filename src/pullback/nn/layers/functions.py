"""Layers that are a function and its settings: activations, pooling, dropout, losses.

Each stands in a table, with the settings in the order in which its class takes them; what they mean
and their defaults are those of the function in `pullback.nn.functional`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentTypeError, compose, nearest
from pullback.hints import option_of
from pullback.nn import functional as F  # noqa: N812  (as everyone calls it)
from pullback.nn.module import Module
from pullback.ops.functions.manipulation import flatten


class FunctionLayer(Module):
    """A layer without parameters; a subclass has the function and the names of its settings."""

    _function: ClassVar[Callable[..., Any]]
    _settings: ClassVar[tuple[str, ...]] = ()
    _signature: ClassVar[inspect.Signature]
    _uses_training: ClassVar[bool] = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        bound = self._bound(args, kwargs)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if isinstance(value, Tensor):  # the weight of classes moves with the module
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def _bound(self, args: Any, kwargs: Any) -> inspect.BoundArguments:
        """Return the settings by name; an error shows what the layer takes."""
        try:
            return self._signature.bind(*args, **kwargs)
        except TypeError as error:
            name, known = type(self).__name__, self._signature.parameters
            unknown = next((key for key in kwargs if key not in known), "")
            near = nearest(unknown, known)
            hint = option_of(unknown) or (f"did you mean {near!r}?" if near else None)
            came = repr(unknown) if unknown else f"a call with an error: {error}"
            required = f"{name}{self._signature} required"
            raise ArgumentTypeError(compose(name, required, came, hint=hint)) from None

    def forward(self, *inputs: Any) -> Any:
        """Return the function of the inputs, with the layer's settings."""
        settings = {name: getattr(self, name) for name in self._settings}
        if self._uses_training:
            settings["training"] = self.training
        return self._function(*inputs, **settings)

    def extra_repr(self) -> str:
        """Return the settings."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._settings)


_DOC = """The layer of `pullback.nn.functional.{function}`, which describes its settings.

    ``{name}{signature}(x)`` is ``{function}(x{settings})``.

    Examples
    --------
    >>> import pullback as pb
    >>> type(pb.nn.{name}({needed})).__name__
    '{name}'
    """


def layer(
    name: str, function: Callable[..., Any], settings: str = "", *, training: bool = False
) -> type[FunctionLayer]:
    """Return the layer of a function.

    Parameters
    ----------
    name : str
    function : callable
        ``function(*inputs, **settings)``.
    settings : str
        The names of the settings in the order in which the layer takes them; those before a ``*``
        may be given by position.
    training : bool
        Whether the function also takes whether the layer is in training.
    """
    given = inspect.signature(function).parameters
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters: list[inspect.Parameter] = []
    for word in settings.split():
        if word == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
        else:
            parameters.append(inspect.Parameter(word, kind, default=given[word].default))
    signature = inspect.Signature(parameters)
    needed = [p.name for p in parameters if p.default is inspect.Parameter.empty]
    doc = _DOC.format(
        name=name,
        function=function.__name__,
        signature=signature,
        settings="".join(f", {p.name}={p.name}" for p in parameters),
        needed=", ".join(f"{n}=2" for n in needed),
    )
    members = {
        "__doc__": doc,
        "__module__": __name__,
        "__signature__": signature,
        "_function": staticmethod(function),
        "_settings": tuple(p.name for p in parameters),
        "_signature": signature,
        "_uses_training": training,
    }
    return type(name, (FunctionLayer,), members)


# -- activations -----------------------------------------------------------------------------------
CELU = layer("CELU", F.celu, "alpha")
ELU = layer("ELU", F.elu, "alpha")
GELU = layer("GELU", F.gelu, "approximate")
GLU = layer("GLU", F.glu, "dim")
Hardshrink = layer("Hardshrink", F.hardshrink, "lambd")
Hardsigmoid = layer("Hardsigmoid", F.hardsigmoid)
Hardswish = layer("Hardswish", F.hardswish)
Hardtanh = layer("Hardtanh", F.hardtanh, "min_val max_val")
LeakyReLU = layer("LeakyReLU", F.leaky_relu, "negative_slope")
LogSigmoid = layer("LogSigmoid", F.logsigmoid)
LogSoftmax = layer("LogSoftmax", F.log_softmax, "dim")
Mish = layer("Mish", F.mish)
ReLU = layer("ReLU", F.relu)
ReLU6 = layer("ReLU6", F.relu6)
RReLU = layer("RReLU", F.rrelu, "lower upper", training=True)
SELU = layer("SELU", F.selu)
SiLU = layer("SiLU", F.silu)
Sigmoid = layer("Sigmoid", F.sigmoid)
Softmax = layer("Softmax", F.softmax, "dim")
Softmin = layer("Softmin", F.softmin, "dim")
Softplus = layer("Softplus", F.softplus, "beta threshold")
Softshrink = layer("Softshrink", F.softshrink, "lambd")
Softsign = layer("Softsign", F.softsign)
Tanh = layer("Tanh", F.tanh)
Tanhshrink = layer("Tanhshrink", F.tanhshrink)
Threshold = layer("Threshold", F.threshold, "threshold value")

# -- dropout ---------------------------------------------------------------------------------------
AlphaDropout = layer("AlphaDropout", F.alpha_dropout, "p", training=True)
Dropout = layer("Dropout", F.dropout, "p inplace", training=True)
Dropout1d = layer("Dropout1d", F.dropout1d, "p", training=True)
Dropout2d = layer("Dropout2d", F.dropout2d, "p", training=True)
Dropout3d = layer("Dropout3d", F.dropout3d, "p", training=True)

# -- windows and shapes ----------------------------------------------------------------------------
_MAX = "kernel_size stride padding dilation return_indices ceil_mode"
_MEAN = "kernel_size stride padding ceil_mode count_include_pad divisor_override"
AdaptiveAvgPool1d = layer("AdaptiveAvgPool1d", F.adaptive_avg_pool1d, "output_size")
AdaptiveAvgPool2d = layer("AdaptiveAvgPool2d", F.adaptive_avg_pool2d, "output_size")
AdaptiveMaxPool1d = layer("AdaptiveMaxPool1d", F.adaptive_max_pool1d, "output_size return_indices")
AdaptiveMaxPool2d = layer("AdaptiveMaxPool2d", F.adaptive_max_pool2d, "output_size return_indices")
AvgPool1d = layer("AvgPool1d", F.avg_pool1d, _MEAN.removesuffix(" divisor_override"))
AvgPool2d = layer("AvgPool2d", F.avg_pool2d, _MEAN)
AvgPool3d = layer("AvgPool3d", F.avg_pool3d, _MEAN)
MaxPool1d = layer("MaxPool1d", F.max_pool1d, _MAX)
MaxPool2d = layer("MaxPool2d", F.max_pool2d, _MAX)
MaxPool3d = layer("MaxPool3d", F.max_pool3d, _MAX)
ChannelShuffle = layer("ChannelShuffle", F.channel_shuffle, "groups")
PixelShuffle = layer("PixelShuffle", F.pixel_shuffle, "upscale_factor")
PixelUnshuffle = layer("PixelUnshuffle", F.pixel_unshuffle, "downscale_factor")
Fold = layer("Fold", F.fold, "output_size kernel_size dilation padding stride")
Unfold = layer("Unfold", F.unfold, "kernel_size dilation padding stride")
Upsample = layer("Upsample", F.interpolate, "size scale_factor mode align_corners")
CosineSimilarity = layer("CosineSimilarity", F.cosine_similarity, "dim eps")
PairwiseDistance = layer("PairwiseDistance", F.pairwise_distance, "p eps keepdim")
LocalResponseNorm = layer("LocalResponseNorm", F.local_response_norm, "size alpha beta k")

# -- losses ----------------------------------------------------------------------------------------
BCELoss = layer("BCELoss", F.binary_cross_entropy, "weight * reduction")
BCEWithLogitsLoss = layer(
    "BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, "weight * reduction pos_weight"
)
CosineEmbeddingLoss = layer("CosineEmbeddingLoss", F.cosine_embedding_loss, "margin * reduction")
CrossEntropyLoss = layer(
    "CrossEntropyLoss", F.cross_entropy, "weight * ignore_index reduction label_smoothing"
)
GaussianNLLLoss = layer("GaussianNLLLoss", F.gaussian_nll_loss, "* full eps reduction")
HingeEmbeddingLoss = layer("HingeEmbeddingLoss", F.hinge_embedding_loss, "margin * reduction")
HuberLoss = layer("HuberLoss", F.huber_loss, "reduction delta")
KLDivLoss = layer("KLDivLoss", F.kl_div, "* reduction log_target")
L1Loss = layer("L1Loss", F.l1_loss, "* reduction")
MSELoss = layer("MSELoss", F.mse_loss, "* reduction")
MarginRankingLoss = layer("MarginRankingLoss", F.margin_ranking_loss, "margin * reduction")
MultiLabelSoftMarginLoss = layer(
    "MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss, "weight * reduction"
)
MultiMarginLoss = layer("MultiMarginLoss", F.multi_margin_loss, "p margin weight * reduction")
NLLLoss = layer("NLLLoss", F.nll_loss, "weight * ignore_index reduction")
PoissonNLLLoss = layer("PoissonNLLLoss", F.poisson_nll_loss, "log_input full * eps reduction")
SmoothL1Loss = layer("SmoothL1Loss", F.smooth_l1_loss, "* reduction beta")
SoftMarginLoss = layer("SoftMarginLoss", F.soft_margin_loss, "* reduction")
TripletMarginLoss = layer(
    "TripletMarginLoss", F.triplet_margin_loss, "margin p eps swap * reduction"
)


# -- others ----------------------------------------------------------------------------------------
class Identity(Module):
    """The layer that returns its input; arguments are ignored.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.Identity()(pb.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take any arguments, so that it can stand for another layer."""

    def forward(self, input: Any) -> Any:
        """Return the input."""
        return input


class Flatten(Module):
    """The layer of `pullback.flatten`; by default it keeps the batch.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.Flatten()(pb.ones((4, 2, 3))).shape
    (4, 6)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Tensor:
        """Return the input with these axes as one."""
        return flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
