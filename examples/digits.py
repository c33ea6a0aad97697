"""Classify handwritten digits with three operations of our own: linear, my_relu, cross_entropy.

Trains a two-layer network on the 1797 images of 8 x 8 pixels that scikit-learn ships and prints
its accuracy on the fifth of them that it was not trained on. Exits with status 1 below 96 %.

    python examples/digits.py
"""

import argparse
import sys
import time

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import trange

import pullback as pb

REQUIRED_ACCURACY = 0.96


def linear(ctx, input, weight, bias=None):
    ctx.save_for_backward(input=input, weight=weight)
    output = input.mm(weight.t())
    return output if bias is None else output + bias


def linear_backward(ctx, grad_output):
    s, needs = ctx.saved_variables, ctx.needs_input_grad
    return {
        "input": grad_output.mm(s.weight) if needs.input else None,
        "weight": grad_output.t().mm(s.input) if needs.weight else None,
        "bias": grad_output.sum(dim=0) if needs.bias else None,
    }


linear = pb.autograd_function(linear, linear_backward)


@pb.autograd_function
def my_relu(ctx, input):
    ctx.save_for_backward(input=input)
    return input.clamp(min=0)


@my_relu.backward
def _(ctx, grad_output):
    return {"input": grad_output * (ctx.saved_variables.input > 0)}


class CrossEntropy(pb.Function):
    """Mean over the rows of -log softmax(logits)[target], the softmax and the logarithm fused."""

    @staticmethod
    def forward(ctx, logits, target):
        # Without its largest entry no row overflows, and the logarithm never sees a zero.
        shifted = logits - pb.max(logits, axis=1, keepdims=True)
        log_p = shifted - shifted.exp().sum(dim=1, keepdim=True).log()
        rows = pb.arange(len(target), device=logits.device)
        ctx.save_for_backward(log_p=log_p, target=target, rows=rows)
        return -log_p[rows, target].mean()

    @staticmethod
    @pb.once_differentiable
    def backward(ctx, grad_output):
        s = ctx.saved_variables
        grad = s.log_p.exp()
        grad[s.rows, s.target] -= 1
        return {"logits": grad_output * grad / len(s.target)}


def load(device):
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(
        images.astype("float32") / 16, labels, test_size=0.2, random_state=0, stratify=labels
    )
    return [pb.tensor(part, device=device) for part in parts]


def initial_weights(device):
    def layer(n_in, n_out):
        weight = pb.randn(n_out, n_in, device=device) * (2 / n_in) ** 0.5
        return weight.requires_grad_(), pb.zeros(n_out, device=device, requires_grad=True)

    return [*layer(64, 100), *layer(100, 10)]


def network(x, w1, b1, w2, b2):
    return linear(my_relu(linear(x, w1, b1)), w2, b2)


def main(epochs: int = 30, seed: int = 0) -> float:
    device = "cuda" if pb.cuda.is_available() else "cpu"
    pb.manual_seed(seed)
    x_train, x_test, y_train, y_test = load(device)
    weights = initial_weights(device)
    optimizer = pb.optim.Adam(weights, lr=3e-3)

    start = time.perf_counter()
    progress = trange(epochs, unit="epoch", disable=not sys.stderr.isatty())
    for _ in progress:
        order = pb.randperm(len(x_train), device=device)
        for batch in order.split(64):
            loss = CrossEntropy.apply(network(x_train[batch], *weights), y_train[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        progress.set_postfix(loss=f"{loss.item():.4f}")

    with pb.no_grad():
        guesses = network(x_test, *weights).argmax(dim=1)
    accuracy = (guesses == y_test).to(pb.float32).mean().item()
    seconds = time.perf_counter() - start
    print(
        f"{epochs} epochs in {seconds:.1f} s, last loss {loss.item():.4f}, "
        f"accuracy on {len(x_test)} held-out digits: {100 * accuracy:.2f} %"
    )
    return accuracy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Classify scikit-learn's handwritten digits.")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sys.exit(main(options.epochs, options.seed) < REQUIRED_ACCURACY)
