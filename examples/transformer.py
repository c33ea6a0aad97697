"""A small transformer learns to sort: ten numbers in, the same numbers in order out.

Two layers of attention of width 64. Prints the loss and the part of sequences that are sorted
without a mistake. Exits with status 1 above a loss of 0.1.

    python examples/transformer.py
"""

import argparse
import sys
import time

import numpy as np

import pullback as pb
from pullback import nn

REQUIRED_LOSS = 0.1
LENGTH, KINDS, WIDTH = 10, 16, 64


class Block(nn.Module):
    def __init__(self, width, heads):
        self.norms = [nn.LayerNorm(width), nn.LayerNorm(width)]
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        h = self.norms[0](x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norms[1](x))


class Sorter(nn.Module):
    def __init__(self):
        self.tokens = nn.Embedding(KINDS, WIDTH)
        self.places = nn.Parameter(pb.randn(LENGTH, WIDTH) * 0.02)
        self.blocks = [Block(WIDTH, 4) for _ in range(2)]
        self.head = nn.Linear(WIDTH, KINDS)

    def forward(self, x):
        x = self.tokens(x) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main(steps: int = 400, seed: int = 0) -> float:
    pb.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = Sorter()
    optimizer = pb.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = pb.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    start = time.perf_counter()
    for _ in range(steps):
        x = rng.integers(0, KINDS, (32, LENGTH))
        y = np.sort(x, axis=1)
        logits = model(pb.asarray(x))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), pb.asarray(y).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    seconds = time.perf_counter() - start
    x = rng.integers(0, KINDS, (200, LENGTH))
    with pb.no_grad():
        guesses = model(pb.asarray(x)).argmax(dim=-1).numpy()
    right = (guesses == np.sort(x, axis=1)).all(axis=1).mean()
    print(
        f"{steps} steps in {seconds:.1f} s, last loss {loss.item():.4f}, "
        f"{100 * right:.0f} % of 200 new sequences sorted"
    )
    return loss.item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a transformer that sorts.")
    parser.add_argument("--steps", type=int, default=400)
    sys.exit(main(parser.parse_args().steps) > REQUIRED_LOSS)
