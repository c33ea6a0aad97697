"""A network of two layers: by hand for some steps, by autograd for others; both agree."""

import numpy as np
import torch

rs = np.random.RandomState(0)
x = torch.tensor(rs.randn(32, 50))
y = torch.tensor(rs.randn(32, 5))
w1 = torch.tensor(rs.randn(50, 20) * 0.1, requires_grad=True)
w2 = torch.tensor(rs.randn(20, 5) * 0.1, requires_grad=True)
rate = 1e-3

for step in range(200):
    hidden = x.mm(w1)
    active = hidden.clamp(min=0)
    prediction = active.mm(w2)
    loss = (prediction - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        slope = 2.0 * (prediction - y)
        by_hand = active.t().mm(slope)
        slope = slope.mm(w2.t()).clone()
        slope[hidden < 0] = 0
        assert torch.allclose(by_hand, w2.grad)
        assert torch.allclose(x.t().mm(slope), w1.grad)
        w1 -= rate * w1.grad
        w2 -= rate * w2.grad
        w1.grad.zero_()
        w2.grad.zero_()
    if step % 50 == 49:
        print(step, loss.item())
