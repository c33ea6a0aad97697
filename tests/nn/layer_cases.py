"""Calls of layers: name, arguments, settings and inputs, for tests with and without torch."""

import numpy as np


def draw(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


CLASSES = np.array([0, 2, 1, 1])
CHANCES = np.random.default_rng(0).random((4, 3))
# Name, arguments, settings, inputs.
CASES = [
    ("Linear", (3, 4), {}, [draw(5, 3)]),
    ("Linear", (3, 4), {"bias": False}, [draw(3)]),
    ("Bilinear", (3, 4, 2), {}, [draw(5, 3), draw(5, 4)]),
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, [draw(2, 4, 9)]),
    ("Conv2d", (4, 6, 3), {"padding": "same", "dilation": 2}, [draw(2, 4, 7, 7)]),
    ("Conv2d", (4, 6, 3), {"padding": 1, "padding_mode": "reflect"}, [draw(2, 4, 7, 7)]),
    ("Conv2d", (4, 6, (3, 2)), {"padding": (1, 2), "padding_mode": "circular"}, [draw(2, 4, 7, 7)]),
    ("Conv3d", (2, 3, 2), {}, [draw(1, 2, 3, 3, 3)]),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "output_padding": 1}, [draw(2, 4, 5)]),
    ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "groups": 2}, [draw(2, 4, 5, 5)]),
    ("LayerNorm", (4,), {}, [draw(3, 4)]),
    ("LayerNorm", ((2, 4),), {"bias": False}, [draw(3, 2, 4)]),
    ("RMSNorm", (4,), {}, [draw(3, 4)]),
    ("GroupNorm", (2, 4), {}, [draw(3, 4, 5)]),
    ("BatchNorm1d", (4,), {}, [draw(5, 4)]),
    ("BatchNorm1d", (4,), {"momentum": None}, [draw(5, 4, 3)]),
    ("BatchNorm2d", (4,), {"affine": False}, [draw(5, 4, 3, 3)]),
    ("BatchNorm2d", (4,), {"track_running_stats": False}, [draw(5, 4, 3, 3)]),
    ("LSTMCell", (3, 4), {}, [draw(5, 3)]),
    ("GRUCell", (3, 4), {}, [draw(5, 3)]),
    ("RNNCell", (3, 4), {"nonlinearity": "relu"}, [draw(5, 3)]),
    ("LSTM", (3, 4), {}, [draw(6, 5, 3)]),
    (
        "LSTM",
        (3, 4),
        {"num_layers": 2, "bidirectional": True, "batch_first": True},
        [draw(5, 6, 3)],
    ),
    ("LSTM", (3, 4), {"bias": False}, [draw(6, 3)]),
    ("GRU", (3, 4), {"num_layers": 2, "bidirectional": True}, [draw(6, 5, 3)]),
    ("GRU", (3, 4), {"bias": False}, [draw(6, 5, 3)]),
    ("GRU", (3, 4), {"batch_first": True}, [draw(5, 6, 3), draw(1, 5, 4)]),
    ("RNN", (3, 4), {"bidirectional": True}, [draw(6, 5, 3)]),
    ("MultiheadAttention", (8, 2), {}, [draw(5, 3, 8), draw(6, 3, 8), draw(6, 3, 8)]),
    (
        "MultiheadAttention",
        (8, 2),
        {"kdim": 4, "vdim": 6, "batch_first": True, "bias": False},
        [draw(3, 5, 8), draw(3, 6, 4), draw(3, 6, 6)],
    ),
    ("MultiheadAttention", (8, 4), {}, [draw(5, 8), draw(5, 8), draw(5, 8)]),
    ("MaxPool2d", (2,), {"stride": 1}, [draw(2, 3, 5, 5)]),
    ("AvgPool2d", (2, 1), {"padding": 1}, [draw(2, 3, 5, 5)]),
    ("Flatten", (), {}, [draw(2, 3, 4)]),
    ("Identity", (), {}, [draw(2, 3)]),
    ("PReLU", (3,), {}, [draw(2, 3, 4)]),
    ("Softmax", (1,), {}, [draw(2, 3)]),
    ("GELU", ("tanh",), {}, [draw(2, 3)]),
    ("LeakyReLU", (0.2,), {}, [draw(2, 3)]),
    ("Hardtanh", (-0.5, 0.7), {}, [draw(2, 3)]),
    ("CrossEntropyLoss", (), {"label_smoothing": 0.1}, [draw(4, 3), CLASSES]),
    ("MSELoss", (), {}, [draw(4, 3), draw(4, 3)]),
    ("SmoothL1Loss", (), {"beta": 0.5}, [draw(4, 3), draw(4, 3)]),
    ("BCEWithLogitsLoss", (), {}, [draw(4), CHANCES[:, 0]]),
    ("NLLLoss", (), {}, [draw(4, 3), CLASSES]),
    ("KLDivLoss", (), {"reduction": "batchmean"}, [draw(4, 3), CHANCES]),
    ("HuberLoss", (), {"delta": 0.5}, [draw(4, 3), draw(4, 3)]),
    ("TripletMarginLoss", (), {"swap": True}, [draw(4, 3), draw(4, 3), draw(4, 3)]),
    ("Upsample", (), {"scale_factor": 2, "mode": "bilinear"}, [draw(1, 2, 3, 3)]),
    ("PixelShuffle", (2,), {}, [draw(1, 4, 2, 2)]),
]
