"""A model whose graph changes from step to step: Python's loops and weights used several times."""

import math
import random

import torch

random.seed(0)
x = torch.linspace(-math.pi, math.pi, 300, dtype=torch.float64)
y = torch.sin(x)
a, b, c, d, e = (
    torch.tensor(value, dtype=torch.float64, requires_grad=True)
    for value in (0.1, 0.5, -0.1, -0.05, 0.0)
)


def model(x):
    result = a + b * x + c * x**2 + d * x**3
    for exponent in range(4, random.randint(4, 6)):
        result = result + e * x**exponent
    return result


optimizer = torch.optim.SGD([a, b, c, d, e], lr=1e-8, momentum=0.9)
for step in range(300):
    loss = torch.nn.functional.mse_loss(model(x), y, reduction="sum")
    if step % 100 == 99:
        print(step, loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

print(a.item(), b.item(), c.item(), d.item(), e.item())
