"""The functions of `torch.nn.functional`: layers, activations, losses, pooling, distances."""

from typing import Never as _Never

from pullback.hints import absent as _absent
from pullback.nn.activations import (
    celu as celu,
    elu as elu,
    gelu as gelu,
    glu as glu,
    hardsigmoid as hardsigmoid,
    hardswish as hardswish,
    hardtanh as hardtanh,
    leaky_relu as leaky_relu,
    mish as mish,
    relu as relu,
    relu6 as relu6,
    selu as selu,
    silu as silu,
    softmin as softmin,
    softplus as softplus,
    softshrink as softshrink,
    softsign as softsign,
    tanhshrink as tanhshrink,
    threshold as threshold,
)
from pullback.nn.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from pullback.nn.convolution import (
    conv1d as conv1d,
    conv2d as conv2d,
    conv3d as conv3d,
    conv_transpose1d as conv_transpose1d,
    conv_transpose2d as conv_transpose2d,
    conv_transpose3d as conv_transpose3d,
    fold as fold,
    unfold as unfold,
)
from pullback.nn.distances import (
    cosine_similarity as cosine_similarity,
    normalize as normalize,
    pairwise_distance as pairwise_distance,
    pdist as pdist,
)
from pullback.nn.dropout import (
    alpha_dropout as alpha_dropout,
    dropout as dropout,
    dropout1d as dropout1d,
    dropout2d as dropout2d,
    dropout3d as dropout3d,
    gumbel_softmax as gumbel_softmax,
    rrelu as rrelu,
)
from pullback.nn.embedding import (
    embedding as embedding,
    one_hot as one_hot,
)
from pullback.nn.linear import (
    bilinear as bilinear,
    linear as linear,
)
from pullback.nn.losses import (
    bce_with_logits as bce_with_logits,
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cross_entropy as cross_entropy,
    huber_loss as huber_loss,
    kl_div as kl_div,
    l1_loss as l1_loss,
    mse_loss as mse_loss,
    nll_loss as nll_loss,
    smooth_l1_loss as smooth_l1_loss,
)
from pullback.nn.margin_losses import (
    cosine_embedding_loss as cosine_embedding_loss,
    gaussian_nll_loss as gaussian_nll_loss,
    hinge_embedding_loss as hinge_embedding_loss,
    margin_ranking_loss as margin_ranking_loss,
    multi_margin_loss as multi_margin_loss,
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
    poisson_nll_loss as poisson_nll_loss,
    soft_margin_loss as soft_margin_loss,
    triplet_margin_loss as triplet_margin_loss,
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from pullback.nn.normalization import (
    batch_norm as batch_norm,
    group_norm as group_norm,
    instance_norm as instance_norm,
    layer_norm as layer_norm,
    local_response_norm as local_response_norm,
    rms_norm as rms_norm,
)
from pullback.nn.pooling import (
    adaptive_avg_pool1d as adaptive_avg_pool1d,
    adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d,
    adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool2d as adaptive_max_pool2d,
    adaptive_max_pool3d as adaptive_max_pool3d,
    avg_pool1d as avg_pool1d,
    avg_pool2d as avg_pool2d,
    avg_pool3d as avg_pool3d,
    lp_pool1d as lp_pool1d,
    lp_pool2d as lp_pool2d,
    lp_pool3d as lp_pool3d,
    max_pool1d as max_pool1d,
    max_pool2d as max_pool2d,
    max_pool3d as max_pool3d,
    max_unpool1d as max_unpool1d,
    max_unpool2d as max_unpool2d,
    max_unpool3d as max_unpool3d,
)
from pullback.nn.vision import (
    affine_grid as affine_grid,
    channel_shuffle as channel_shuffle,
    grid_sample as grid_sample,
    interpolate as interpolate,
    pixel_shuffle as pixel_shuffle,
    pixel_unshuffle as pixel_unshuffle,
)
from pullback.ops.functions.padding import (
    pad as pad,
)
from pullback.ops.functions.pointwise import (
    hardshrink as hardshrink,
    prelu as prelu,
)
from pullback.ops.functions.reductions import (
    log_softmax as log_softmax,
    softmax as softmax,
)
from pullback.ops.primitives.activations import (
    logsigmoid as logsigmoid,
    sigmoid as sigmoid,
)
from pullback.ops.primitives.trigonometric import (
    tanh as tanh,
)
from pullback.public_names import listed as _listed

__all__ = sorted(name for name in globals() if name[0].isalpha())
__dir__ = _listed(__name__)


def __getattr__(name: str) -> _Never:
    raise _absent(__name__, name)
