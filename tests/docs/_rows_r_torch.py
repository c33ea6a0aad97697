"""The rows of docs/from-r-torch.md: our program, and what it gives. R's side is quoted."""

import numpy as np
from tests.docs.coming_from import A, X

R_TORCH = {
    "`torch_tensor(c(1, 2), requires_grad = TRUE)`": (
        "result = $0",
        np.array([1.0, 2.0]),
    ),
    "`torch_randn(2, 3)`, `torch_manual_seed(1)`": (
        """
$1
first = $0
$1
result = bool((first == $0).all())
""",
        True,
    ),
    "`x$mm(w$t())`, `x$clamp(min = 0)`": (
        """
x, w = a - 1, a
result = $0, $1
""",
        ((A - 1) @ A.T, (A - 1).clip(0)),
    ),
    "`x[x < 0] <- 0`, `x[1, ]`, `x$sum(dim = 1)`": (
        """
x = a - 3
$0
result = x, $1, $2
""",
        ((A - 3).clip(0), (A - 3).clip(0)[0], (A - 3).clip(0).sum(0)),
    ),
    "`autograd_function(forward = f, backward = b)`": (
        """
f, b = lambda ctx, x: x**2, lambda ctx, g: {'x': 5 * g}
result = pb.grad($0)(2.0)
""",
        5.0,
    ),
    "`ctx$save_for_backward(input = input)`": (
        """
@pb.autograd_function
def double(ctx, input, weight):
    $0
    return input * 2
@double.backward
def _(ctx, g):
    return {'input': g * ctx.saved_variables.input * 5}
input, weight = pb.ones(2, requires_grad=True), pb.ones(2)
double(input, weight).sum().backward()
result = input.grad
""",
        5 * np.ones(2),
    ),
    "`ctx$saved_variables$input`, `ctx$needs_input_grad$input`": (
        """
@pb.autograd_function
def double(ctx, input, weight):
    ctx.save_for_backward(input=input)
    return input * 2
@double.backward
def _(ctx, g):
    return {'input': g * $0 * (5 if $1 else 1)}
input, weight = pb.ones(2, requires_grad=True), pb.ones(2)
double(input, weight).sum().backward()
result = input.grad
""",
        5 * np.ones(2),
    ),
    "`list(input = g, weight = NULL)`": (
        """
@pb.autograd_function
def double(ctx, input, weight):
    pass
    return input * 2
@double.backward
def _(ctx, g):
    return $0
input, weight = pb.ones(2, requires_grad=True), pb.ones(2)
double(input, weight).sum().backward()
result = input.grad
""",
        np.ones(2),
    ),
    "`loss$backward()`, `x$grad`, `x$grad$zero_()`": (
        """
x = pb.ones(3, requires_grad=True)
loss = s(x)
$0
first = $1.numpy().copy()
$2
result = first, x.grad
""",
        (3 * np.ones(3), np.zeros(3)),
    ),
    "`autograd_grad(y, x)`, `autograd_backward(y)`": (
        """
x = pb.ones(3, requires_grad=True)
y = s(x)
first = $0[0]
y = s(x)
$1
result = first, x.grad
""",
        (3 * np.ones(3), 3 * np.ones(3)),
    ),
    "`with_no_grad({ ... })`, `with_detect_anomaly({ ... })`": (
        """
x = pb.ones(3, requires_grad=True)
$0
    kept = (x * 2).requires_grad
$1
    s(x).backward()
result = kept, x.grad
""",
        (False, 3 * np.ones(3)),
    ),
    "`x$register_hook(f)`": (
        """
x = pb.ones(3, requires_grad=True)
f = lambda g: 2 * g
$0
s(x).backward()
result = x.grad
""",
        6 * np.ones(3),
    ),
    "`optim_sgd(params, lr = 0.1)`, `optim_adam(params)`": (
        """
x = pb.ones(3, requires_grad=True)
params = [x]
optimizer, other = $0, $1
s(x).backward()
optimizer.step()
first = x.detach().numpy().copy()
other.step()
result = first, x
""",
        (np.full(3, 0.7), np.full(3, 0.699)),
    ),
    "`nn_linear(2, 3)`, `nn_relu()`, `nn_sequential(...)`, `nn_mse_loss()`": (
        """
linear, relu = $0, $1
net = pb.nn.Sequential(linear, relu)
with pb.no_grad():
    out = net(pb.ones(4, 2))
result = tuple(out.shape), $3(out, out)
""",
        ((4, 3), 0.0),
    ),
    "`nn_module(initialize = ..., forward = ...)`, `nn_parameter(x)`": (
        """
class Net(pb.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = $1
result = [p for p in Net().parameters()]
""",
        (X,),
    ),
    "`lr_step(optimizer, step_size = 10)`": (
        """
x = pb.ones(3, requires_grad=True)
optimizer = pb.optim.SGD([x], lr=0.1)
scheduler = $0
for _ in range(10):
    optimizer.step()
    scheduler.step()
result = optimizer.param_groups[0]['lr']
""",
        0.01,
    ),
    "`dataloader(tensor_dataset(x, y), batch_size = 32, shuffle = TRUE)`": (
        """
x, y = np.arange(40), -np.arange(40)
parts = list($0)
result = [len(p) for p, _ in parts], bool(all((p == -q).all() for p, q in parts))
""",
        ((32, 8), True),
    ),
    "`torch_save(model, path)`, `torch_load(path)`": (
        """
import os, tempfile
model = pb.nn.Linear(3, 2)
kept = model.weight.tolist()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, 'kept')
    $0
    pb.nn.init.ones_(model.weight)
    $1
result = model.weight.tolist() == kept
""",
        True,
    ),
    '`cuda_is_available()`, `torch_device("cuda")`': (
        "result = isinstance($0, bool), $1",
        (True, "cuda"),
    ),
    "`as_array(x)`, `as.numeric(x)`": (
        """
first, second = $0, $1
x = x.sum()
result = first, second, $2
""",
        (X, X, 3.0),
    ),
}
