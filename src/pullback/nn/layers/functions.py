"""Layers that are a function and its settings: activations, pooling, dropout, losses.

Each stands in a table, with the settings in the order in which its class takes them; what they mean
and their defaults are those of the function in `pullback.nn.functional`. A type checker reads
functions.pyi, which `make stubs` writes.
"""

from __future__ import annotations

from pullback.nn import functional as F  # noqa: N812  (as everyone calls it)
from pullback.nn.layers.declared import layer

# -- activations -----------------------------------------------------------------------------------
CELU = layer("CELU", F.celu, "alpha inplace")
ELU = layer("ELU", F.elu, "alpha inplace")
GELU = layer("GELU", F.gelu, "approximate")
GLU = layer("GLU", F.glu, "dim")
Hardshrink = layer("Hardshrink", F.hardshrink, "lambd")
Hardsigmoid = layer("Hardsigmoid", F.hardsigmoid, "inplace")
Hardswish = layer("Hardswish", F.hardswish, "inplace")
Hardtanh = layer("Hardtanh", F.hardtanh, "min_val max_val inplace")
LeakyReLU = layer("LeakyReLU", F.leaky_relu, "negative_slope inplace")
LogSigmoid = layer("LogSigmoid", F.logsigmoid)
LogSoftmax = layer("LogSoftmax", F.log_softmax, "dim")
Mish = layer("Mish", F.mish, "inplace")
ReLU = layer("ReLU", F.relu, "inplace")
ReLU6 = layer("ReLU6", F.relu6, "inplace")
RReLU = layer("RReLU", F.rrelu, "lower upper inplace", training=True)
SELU = layer("SELU", F.selu, "inplace")
SiLU = layer("SiLU", F.silu, "inplace")
Sigmoid = layer("Sigmoid", F.sigmoid)
Softmax = layer("Softmax", F.softmax, "dim")
Softmin = layer("Softmin", F.softmin, "dim")
Softplus = layer("Softplus", F.softplus, "beta threshold")
Softshrink = layer("Softshrink", F.softshrink, "lambd")
Softsign = layer("Softsign", F.softsign)
Tanh = layer("Tanh", F.tanh)
Tanhshrink = layer("Tanhshrink", F.tanhshrink)
Threshold = layer("Threshold", F.threshold, "threshold value inplace")

# -- dropout ---------------------------------------------------------------------------------------
AlphaDropout = layer("AlphaDropout", F.alpha_dropout, "p inplace", training=True)
Dropout = layer("Dropout", F.dropout, "p inplace", training=True)
Dropout1d = layer("Dropout1d", F.dropout1d, "p inplace", training=True)
Dropout2d = layer("Dropout2d", F.dropout2d, "p inplace", training=True)
Dropout3d = layer("Dropout3d", F.dropout3d, "p inplace", training=True)

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
