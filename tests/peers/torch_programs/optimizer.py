"""A training loop with an optimizer and the losses of nn.functional, without modules."""

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  (as PyTorch's programs have it)

rs = np.random.RandomState(0)
centres = rs.randn(3, 4) * 2
labels = rs.randint(0, 3, 120)
inputs = torch.tensor(centres[labels] + rs.randn(120, 4))
targets = torch.tensor(labels)
weight1 = torch.tensor(rs.randn(16, 4) * 0.3, requires_grad=True)
bias1 = torch.zeros(16, dtype=torch.float64, requires_grad=True)
weight2 = torch.tensor(rs.randn(3, 16) * 0.3, requires_grad=True)
bias2 = torch.zeros(3, dtype=torch.float64, requires_grad=True)
parameters = [weight1, bias1, weight2, bias2]
optimizer = torch.optim.Adam(parameters, lr=1e-2)

for epoch in range(15):
    total = 0.0
    for start in range(0, 120, 30):
        batch, wanted = inputs[start : start + 30], targets[start : start + 30]
        optimizer.zero_grad()
        hidden = F.relu(F.linear(batch, weight1, bias1))
        loss = F.cross_entropy(F.linear(hidden, weight2, bias2), wanted)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total)

with torch.no_grad():
    hidden = torch.relu(inputs @ weight1.t() + bias1)
    found = (hidden @ weight2.t() + bias2).argmax(dim=1)
    print((found == targets).double().mean().item())
