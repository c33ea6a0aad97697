"""The two-layer network of the tutorial with pullback.nn and an optimizer: its third form.

The operation of our own stays; the weights, the gradient step and the zeroing are `nn` and
`optim`'s:

    python examples/two_layer_net_nn.py
"""

import argparse

from two_layer_net import my_relu

import pullback as pb


def main(steps: int = 500) -> list[float]:
    pb.manual_seed(0)
    N, D_in, H, D_out = 64, 1000, 100, 10
    x, y = pb.randn(N, D_in), pb.randn(N, D_out)

    # A layer has its weights, and any function may stand beside layers.
    model = pb.nn.Sequential(pb.nn.Linear(D_in, H), my_relu, pb.nn.Linear(H, D_out))
    loss_fn = pb.nn.MSELoss(reduction="sum")
    optimizer = pb.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for t in range(1, steps + 1):
        loss = loss_fn(model(x), y)
        losses.append(loss.item())
        if t % 100 == 0 or t == 1:
            print("Step:", t, ":", loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train the tutorial's network with pullback.nn.")
    parser.add_argument("--steps", type=int, default=500)
    main(parser.parse_args().steps)
