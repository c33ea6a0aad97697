"""A variational autoencoder of handwritten digits: two numbers stand for an image.

The encoder gives a normal distribution for each image, from which a code is drawn; the decoder
gives the image back. Kingma and Welling, "Auto-encoding variational Bayes" (2014). Exits with
status 1 above a loss of 24.5 nats an image.

    python examples/autoencoder.py
"""

import argparse
import sys
import time

from sklearn.datasets import load_digits

import pullback as pb
from pullback import nn

REQUIRED_LOSS = 24.5


class Autoencoder(nn.Module):
    def __init__(self, codes=8, width=64):
        self.encoder = nn.Sequential(nn.Linear(64, width), nn.Tanh(), nn.Linear(width, 2 * codes))
        self.decoder = nn.Sequential(nn.Linear(codes, width), nn.Tanh(), nn.Linear(width, 64))

    def forward(self, x):
        mean, log_var = self.encoder(x).chunk(2, -1)
        code = mean + (log_var / 2).exp() * pb.randn_like(mean)
        return self.decoder(code), mean, log_var


def loss_of(logits, x, mean, log_var):
    """Return the negative evidence lower bound of an image, in nats, on average."""
    error = nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * (1 + log_var - mean**2 - log_var.exp()).sum()
    return (error + divergence) / len(x)


def main(epochs: int = 60, seed: int = 0) -> float:
    pb.manual_seed(seed)
    images, _ = load_digits(return_X_y=True)
    batches = pb.data.batches(images.astype("float32") / 16, size=64, seed=seed)
    model = Autoencoder()
    optimizer = pb.optim.Adam(model.parameters(), lr=3e-3)
    history = []
    start = time.perf_counter()
    for _ in range(epochs):
        total = 0.0
        for (x,) in batches:
            x = pb.asarray(x)
            logits, mean, log_var = model(x)
            loss = loss_of(logits, x, mean, log_var)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        history.append(total / len(images))
    seconds = time.perf_counter() - start
    print(f"{epochs} epochs in {seconds:.1f} s, last loss {history[-1]:.2f} nats an image")
    return history[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a variational autoencoder of digits.")
    parser.add_argument("--epochs", type=int, default=60)
    sys.exit(main(parser.parse_args().epochs) > REQUIRED_LOSS)
