"""The trainings that models.py times: the examples' models, the same in PyTorch, and their steps.

pullback's models, sizes and data are those of the examples; PyTorch's are written as its users
write them and begin with pullback's initial values. The loop is one text for both. Nothing here
measures but the marks that a step sets between its parts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _timing import clock
from sklearn.datasets import load_digits
from torch import nn

import pullback as pb

sys.path.append(str(Path(__file__).parent.parent / "examples"))
import autoencoder
import characters
import transformer

SEED = 0


@dataclass(frozen=True)
class Training:
    """One training: the models, the data of each step, and the loss and settings of a step."""

    name: str
    required_loss: float
    steps: int
    models: Callable[[], dict[Any, Any]]  # by library, of the same initial values
    data: Callable[[], Iterator[tuple[np.ndarray, ...]]]
    loss: Callable[..., Any]  # of the library, the model and the data of a step, as its tensors
    optimizer: str
    lr: float
    max_norm: float | None = None  # of the gradients
    one_cycle: bool = True  # whether the learning rate follows a schedule
    averaged: int = 1  # the losses of so many last steps are the loss of the training
    tolerance: float = 1e-4  # how far the first losses may be apart


def stepper(training: Training, lib: Any, model: Any) -> Callable[[], tuple[float, list[float]]]:
    """Return a step of a training, which says its loss and when each part of it ended."""
    optimizer = getattr(lib.optim, training.optimizer)(model.parameters(), lr=training.lr)
    cycle = lib.optim.lr_scheduler.OneCycleLR
    schedule = training.one_cycle and cycle(optimizer, training.lr, total_steps=training.steps)
    data = training.data()

    def step() -> tuple[float, list[float]]:
        arrays = next(data)
        marks = [clock()]
        loss = training.loss(lib, model, *map(lib.asarray, arrays))
        marks.append(clock())
        optimizer.zero_grad()
        loss.backward()
        marks.append(clock())
        if training.max_norm is not None:
            lib.nn.utils.clip_grad_norm_(model.parameters(), training.max_norm)
        optimizer.step()
        if schedule:
            schedule.step()
        value = loss.item()
        marks.append(clock())
        return value, marks

    return step


def of_same_values(ours: Any, theirs: Any) -> dict[Any, Any]:
    state = {name: torch.tensor(t.numpy()) for name, t in ours.state_dict().items()}
    theirs.load_state_dict(state)
    return {pb: ours, torch: theirs}


# -- characters ------------------------------------------------------------------------------------


class CharacterModel(nn.Module):
    def __init__(self, characters: int, width: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, characters)

    def forward(self, x, state=None):
        h, state = self.lstm(self.embedding(x), state)
        return self.head(h), state


ALPHABET = sorted(set(characters.TEXT))


def character_models() -> dict[Any, Any]:
    n = len(ALPHABET)
    return of_same_values(characters.CharacterModel(n), CharacterModel(n))


def character_data() -> Iterator[tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(SEED)
    while True:
        yield tuple(t.numpy() for t in characters.windows(characters.TEXT, ALPHABET, 40, 16, rng))


def character_loss(lib: Any, model: Any, x: Any, y: Any) -> Any:
    logits, _ = model(x)
    return lib.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())


# -- transformer -----------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        h = self.norms[0](x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norms[1](x))


class Sorter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        kinds, width = transformer.KINDS, transformer.WIDTH
        self.tokens = nn.Embedding(kinds, width)
        self.places = nn.Parameter(torch.randn(transformer.LENGTH, width) * 0.02)
        self.blocks = nn.ModuleList([Block(width, 4) for _ in range(2)])
        self.head = nn.Linear(width, kinds)

    def forward(self, x):
        x = self.tokens(x) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def sorters() -> dict[Any, Any]:
    return of_same_values(transformer.Sorter(), Sorter())


def sequences() -> Iterator[tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(SEED)
    while True:
        x = rng.integers(0, transformer.KINDS, (32, transformer.LENGTH))
        yield x, np.sort(x, axis=1)


def sorting_loss(lib: Any, model: Any, x: Any, y: Any) -> Any:
    return lib.nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


# -- autoencoder -----------------------------------------------------------------------------------


class Autoencoder(nn.Module):
    def __init__(self, codes: int = 8, width: int = 64) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, width), nn.Tanh(), nn.Linear(width, 2 * codes))
        self.decoder = nn.Sequential(nn.Linear(codes, width), nn.Tanh(), nn.Linear(width, 64))

    def forward(self, x):
        mean, log_var = self.encoder(x).chunk(2, -1)
        code = mean + (log_var / 2).exp() * torch.randn_like(mean)
        return self.decoder(code), mean, log_var


def autoencoders() -> dict[Any, Any]:
    return of_same_values(autoencoder.Autoencoder(), Autoencoder())


def digits() -> Iterator[tuple[np.ndarray, ...]]:
    images, _ = load_digits(return_X_y=True)
    batches = pb.data.batches(images.astype("float32") / 16, size=64, seed=SEED)
    while True:
        yield from batches


def evidence(lib: Any, model: Any, x: Any) -> Any:
    """Return the negative evidence lower bound of an image, as the example does."""
    logits, mean, log_var = model(x)
    error = lib.nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * (1 + log_var - mean**2 - log_var.exp()).sum()
    return (error + divergence) / len(x)


# -- all of them -----------------------------------------------------------------------------------

BATCHES_OF_DIGITS = 29
TRAININGS = [
    Training(
        "characters",
        characters.REQUIRED_LOSS,
        250,
        character_models,
        character_data,
        character_loss,
        optimizer="Adam",
        lr=1e-2,
        max_norm=1.0,
    ),
    Training(
        "transformer",
        transformer.REQUIRED_LOSS,
        400,
        sorters,
        sequences,
        sorting_loss,
        optimizer="AdamW",
        lr=3e-3,
    ),
    Training(
        "autoencoder",
        autoencoder.REQUIRED_LOSS,
        60 * BATCHES_OF_DIGITS,
        autoencoders,
        digits,
        evidence,
        optimizer="Adam",
        lr=3e-3,
        one_cycle=False,
        averaged=BATCHES_OF_DIGITS,
        tolerance=0.05,  # each library draws codes of its own
    ),
]
