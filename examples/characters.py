"""A recurrent model of characters: an LSTM learns to continue a text, letter by letter.

Trains on a text that is small enough to be learnt by heart and prints the loss and what the model
writes. Exits with status 1 above a loss of 0.2.

    python examples/characters.py
"""

import argparse
import sys
import time

import numpy as np

import pullback as pb
from pullback import nn

TEXT = (
    "the gradient of a sum is the sum of the gradients; the gradient of a product is a sum of "
    "products; the gradient of a chain is a product, read from its end to its beginning. "
)
REQUIRED_LOSS = 0.2


class CharacterModel(nn.Module):
    def __init__(self, characters, width=64):
        self.embedding = nn.Embedding(characters, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, characters)

    def forward(self, x, state=None):
        h, state = self.lstm(self.embedding(x), state)
        return self.head(h), state


def windows(text, alphabet, length, count, rng):
    """Return parts of the text as numbers, and the same one character later."""
    numbers = np.array([alphabet.index(c) for c in text * 2])
    begins = rng.integers(0, len(text), count)
    rows = numbers[begins[:, None] + np.arange(length + 1)]
    return pb.asarray(rows[:, :-1]), pb.asarray(rows[:, 1:])


def write(model, alphabet, start, length):
    """Return what the model thinks is most likely to follow."""
    text, state = start, None
    x = pb.tensor([[alphabet.index(c) for c in start]])
    with pb.no_grad():
        for _ in range(length):
            logits, state = model(x, state)
            best = int(logits[0, -1].argmax())
            text += alphabet[best]
            x = pb.tensor([[best]])
    return text


def main(steps: int = 250, seed: int = 0) -> float:
    pb.manual_seed(seed)
    rng = np.random.default_rng(seed)
    alphabet = sorted(set(TEXT))
    model = CharacterModel(len(alphabet))
    optimizer = pb.optim.Adam(model.parameters(), lr=1e-2)
    schedule = pb.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
    start = time.perf_counter()
    for _ in range(steps):
        x, y = windows(TEXT, alphabet, 40, 16, rng)
        logits, _ = model(x)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    seconds = time.perf_counter() - start
    print(f"{steps} steps in {seconds:.1f} s, last loss {loss.item():.4f}")
    print(write(model, alphabet, "the gradient of a p", 60))
    return loss.item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a recurrent model of characters.")
    parser.add_argument("--steps", type=int, default=250)
    sys.exit(main(parser.parse_args().steps) > REQUIRED_LOSS)
