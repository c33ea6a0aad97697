"""A cubic fitted to a sine: tensors alone, the gradients written out."""

import math

import torch

x = torch.linspace(-math.pi, math.pi, 500, dtype=torch.float64)
y = torch.sin(x)
a, b, c, d = 0.1, -0.2, 0.3, 0.05
rate = 1e-6

for step in range(400):
    prediction = a + b * x + c * x**2 + d * x**3
    loss = (prediction - y).pow(2).sum().item()
    if step % 100 == 99:
        print(step, loss)
    slope = 2.0 * (prediction - y)
    a -= rate * slope.sum().item()
    b -= rate * (slope * x).sum().item()
    c -= rate * (slope * x**2).sum().item()
    d -= rate * (slope * x**3).sum().item()

print(f"y = {a} + {b} x + {c} x^2 + {d} x^3")
