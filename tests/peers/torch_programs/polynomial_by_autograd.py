"""The same fit with gradients by backward()."""

import math

import torch

x = torch.linspace(-math.pi, math.pi, 500, dtype=torch.float64)
y = torch.sin(x)
coefficients = [
    torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (0.1, -0.2, 0.3, 0.05)
]
rate = 2e-6

for step in range(400):
    prediction = sum(w * x**k for k, w in enumerate(coefficients))
    loss = (prediction - y).pow(2).sum()
    if step % 100 == 99:
        print(step, loss.item())
    loss.backward()
    with torch.no_grad():
        for w in coefficients:
            w -= rate * w.grad
            w.grad = None

print([w.item() for w in coefficients])
