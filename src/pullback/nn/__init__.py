"""Neural networks: modules and layers under PyTorch's names, and their functions.

A `Module` is a convenience: `parameters` finds what can be trained in any object. The functions of
the layers are in `pullback.nn.functional`, what fills parameters at first is in `pullback.nn.init`.
"""

from types import ModuleType as _ModuleType
from typing import Never as _Never

from pullback.hints import absent as _absent
from pullback.nn import functional as functional, init as init, utils as utils
from pullback.nn.containers import (
    ModuleDict as ModuleDict,
    ModuleList as ModuleList,
    Sequential as Sequential,
)
from pullback.nn.layers.attention import (
    MultiheadAttention as MultiheadAttention,
)
from pullback.nn.layers.convolution import (
    Conv1d as Conv1d,
    Conv2d as Conv2d,
    Conv3d as Conv3d,
    ConvTranspose1d as ConvTranspose1d,
    ConvTranspose2d as ConvTranspose2d,
    ConvTranspose3d as ConvTranspose3d,
)
from pullback.nn.layers.declared import (
    Flatten as Flatten,
    Identity as Identity,
)
from pullback.nn.layers.functions import (
    CELU as CELU,
    ELU as ELU,
    GELU as GELU,
    GLU as GLU,
    SELU as SELU,
    AdaptiveAvgPool1d as AdaptiveAvgPool1d,
    AdaptiveAvgPool2d as AdaptiveAvgPool2d,
    AdaptiveMaxPool1d as AdaptiveMaxPool1d,
    AdaptiveMaxPool2d as AdaptiveMaxPool2d,
    AlphaDropout as AlphaDropout,
    AvgPool1d as AvgPool1d,
    AvgPool2d as AvgPool2d,
    AvgPool3d as AvgPool3d,
    BCELoss as BCELoss,
    BCEWithLogitsLoss as BCEWithLogitsLoss,
    ChannelShuffle as ChannelShuffle,
    CosineEmbeddingLoss as CosineEmbeddingLoss,
    CosineSimilarity as CosineSimilarity,
    CrossEntropyLoss as CrossEntropyLoss,
    Dropout as Dropout,
    Dropout1d as Dropout1d,
    Dropout2d as Dropout2d,
    Dropout3d as Dropout3d,
    Fold as Fold,
    GaussianNLLLoss as GaussianNLLLoss,
    Hardshrink as Hardshrink,
    Hardsigmoid as Hardsigmoid,
    Hardswish as Hardswish,
    Hardtanh as Hardtanh,
    HingeEmbeddingLoss as HingeEmbeddingLoss,
    HuberLoss as HuberLoss,
    KLDivLoss as KLDivLoss,
    L1Loss as L1Loss,
    LeakyReLU as LeakyReLU,
    LocalResponseNorm as LocalResponseNorm,
    LogSigmoid as LogSigmoid,
    LogSoftmax as LogSoftmax,
    MarginRankingLoss as MarginRankingLoss,
    MaxPool1d as MaxPool1d,
    MaxPool2d as MaxPool2d,
    MaxPool3d as MaxPool3d,
    Mish as Mish,
    MSELoss as MSELoss,
    MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss,
    MultiMarginLoss as MultiMarginLoss,
    NLLLoss as NLLLoss,
    PairwiseDistance as PairwiseDistance,
    PixelShuffle as PixelShuffle,
    PixelUnshuffle as PixelUnshuffle,
    PoissonNLLLoss as PoissonNLLLoss,
    ReLU as ReLU,
    ReLU6 as ReLU6,
    RReLU as RReLU,
    Sigmoid as Sigmoid,
    SiLU as SiLU,
    SmoothL1Loss as SmoothL1Loss,
    SoftMarginLoss as SoftMarginLoss,
    Softmax as Softmax,
    Softmin as Softmin,
    Softplus as Softplus,
    Softshrink as Softshrink,
    Softsign as Softsign,
    Tanh as Tanh,
    Tanhshrink as Tanhshrink,
    Threshold as Threshold,
    TripletMarginLoss as TripletMarginLoss,
    Unfold as Unfold,
    Upsample as Upsample,
)
from pullback.nn.layers.linear import (
    Bilinear as Bilinear,
    Embedding as Embedding,
    Linear as Linear,
    PReLU as PReLU,
)
from pullback.nn.layers.normalization import (
    BatchNorm1d as BatchNorm1d,
    BatchNorm2d as BatchNorm2d,
    BatchNorm3d as BatchNorm3d,
    GroupNorm as GroupNorm,
    LayerNorm as LayerNorm,
    RMSNorm as RMSNorm,
)
from pullback.nn.layers.recurrent import (
    GRU as GRU,
    LSTM as LSTM,
    RNN as RNN,
    GRUCell as GRUCell,
    LSTMCell as LSTMCell,
    RNNCell as RNNCell,
)
from pullback.nn.module import Module as Module
from pullback.nn.parameter import Parameter as Parameter
from pullback.nn.stateless import functional_call as functional_call
from pullback.nn.walking import (
    named_parameters as named_parameters,
    parameters as parameters,
)
from pullback.public_names import listed as _listed

_MODULES = {functional, init, utils}
__all__ = sorted(
    name
    for name, value in globals().items()
    if name[0].isalpha() and (not isinstance(value, _ModuleType) or value in _MODULES)
)
__dir__ = _listed(__name__)


def __getattr__(name: str) -> _Never:
    raise _absent(__name__, name)
