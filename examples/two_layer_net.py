"""A two-layer network trained with an operation of our own: `my_relu`.

The program of R torch's tutorial "Defining new autograd functions" (after Justin Johnson), in
Python:

    python examples/two_layer_net.py
"""

import argparse

import pullback as pb


# The forward pass receives the input and returns the output. ctx is a context object in which
# forward saves what backward will need, by name.
def my_relu(ctx, input):
    ctx.save_for_backward(input=input)
    return input.clamp(min=0)


# The backward pass receives the gradient of the loss with respect to the output and returns the
# gradient of the loss with respect to each input, by name.
def my_relu_backward(ctx, grad_output):
    v = ctx.saved_variables
    grad_input = grad_output.clone()
    grad_input[v.input < 0] = 0
    return {"input": grad_input}


my_relu = pb.autograd_function(my_relu, my_relu_backward)


def main(steps: int = 500) -> list[float]:
    device = "cuda" if pb.cuda.is_available() else "cpu"
    pb.manual_seed(0)

    # N is batch size; D_in is input dimension; H is hidden dimension; D_out is output dimension.
    N, D_in, H, D_out = 64, 1000, 100, 10

    # Random input and output data: no gradients are needed for these.
    x = pb.randn(N, D_in, device=device)
    y = pb.randn(N, D_out, device=device)

    # Random weights: gradients are needed for these.
    w1 = pb.randn(D_in, H, device=device, requires_grad=True)
    w2 = pb.randn(H, D_out, device=device, requires_grad=True)

    learning_rate = 1e-6
    losses = []
    for t in range(1, steps + 1):
        # Forward pass: compute predicted y.
        y_pred = my_relu(x.mm(w1)).mm(w2)

        # Compute and print the loss.
        loss = (y_pred - y).pow(2).sum()
        losses.append(loss.item())
        if t % 100 == 0 or t == 1:
            print("Step:", t, ":", loss.item())

        # After this call w1.grad and w2.grad hold the gradients of the loss.
        loss.backward()

        # Update the weights by gradient descent. The weights require gradients, but their update
        # must not be recorded, hence no_grad. An operation whose name ends in _ works in place.
        with pb.no_grad():
            w1.sub_(learning_rate * w1.grad)
            w2.sub_(learning_rate * w2.grad)

            # Zero the gradients after updating the weights.
            w1.grad.zero_()
            w2.grad.zero_()
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train the tutorial's two-layer network.")
    parser.add_argument("--steps", type=int, default=500)
    main(parser.parse_args().steps)
