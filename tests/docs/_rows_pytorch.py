"""The rows of docs/from-pytorch.md: PyTorch's program, ours, and what both give."""

import numpy as np
from tests.docs.coming_from import A, X, on_both

PYTORCH = {
    "`torch.autograd.Function`": on_both(
        "torch",
        """
class Scaled($0):
    @staticmethod
    def forward(ctx, a, b, c):
        pass
        return a * c
    @staticmethod
    def backward(ctx, grad):
        return 5 * grad, None, None
a, b = (torch.tensor(z, requires_grad=True) for z in (2.0, 3.0))
Scaled.apply(a, b, 4.0).backward()
result = a.grad
""",
        5.0,
    ),
    "`ctx.save_for_backward(a, b)`, `ctx.saved_tensors`": (
        """
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, c):
        $0
        return a * c
    @staticmethod
    def backward(ctx, grad):
        first, second = $1
        return grad * first * second, None, None
a, b = (torch.tensor(z, requires_grad=True) for z in (2.0, 3.0))
Scaled.apply(a, b, 4.0).backward()
result = a.grad
""",
        """
class Scaled(pb.Function):
    @staticmethod
    def forward(ctx, a, b, c):
        $0
        return a * c
    @staticmethod
    def backward(ctx, grad):
        return grad * $1 * ctx.saved_variables.b, None, None
a, b = (pb.tensor(z, requires_grad=True) for z in (2.0, 3.0))
Scaled.apply(a, b, 4.0).backward()
result = a.grad
""",
        6.0,
    ),
    "`return grad_a, None, grad_c`": (
        """
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, c):
        pass
        return a * c
    @staticmethod
    def backward(ctx, grad):
        grad_a, grad_c = 5 * grad, None
        $0
a, b = (torch.tensor(z, requires_grad=True) for z in (2.0, 3.0))
Scaled.apply(a, b, 4.0).backward()
result = a.grad
""",
        """
class Scaled(pb.Function):
    @staticmethod
    def forward(ctx, a, b, c):
        pass
        return a * c
    @staticmethod
    def backward(ctx, grad):
        grad_a, grad_c = 5 * grad, None
        $0
a, b = (pb.tensor(z, requires_grad=True) for z in (2.0, 3.0))
Scaled.apply(a, b, 4.0).backward()
result = a.grad
""",
        5.0,
    ),
    "`ctx.needs_input_grad[0]`": (
        """
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, c):
        pass
        return a * c
    @staticmethod
    def backward(ctx, grad):
        return grad * (5 if $0 else 1), None, None
a, b = (torch.tensor(z, requires_grad=True) for z in (2.0, 3.0))
Scaled.apply(a, b, 4.0).backward()
result = a.grad
""",
        """
class Scaled(pb.Function):
    @staticmethod
    def forward(ctx, a, b, c):
        pass
        return a * c
    @staticmethod
    def backward(ctx, grad):
        return grad * (5 if $0 else 1), None, None
a, b = (pb.tensor(z, requires_grad=True) for z in (2.0, 3.0))
Scaled.apply(a, b, 4.0).backward()
result = a.grad
""",
        5.0,
    ),
    "`torch.autograd.grad(s(x), x)[0]`": on_both(
        "torch",
        """
x = torch.ones(3, requires_grad=True)
result = $0
""",
        3 * np.ones(3),
    ),
    "`torch.autograd.backward(s(x))`": on_both(
        "torch",
        """
x = torch.ones(3, requires_grad=True)
$0
result = x.grad
""",
        3 * np.ones(3),
    ),
    "`torch.func.grad(s)(x)`": on_both("torch", "result = $0", 3 * X**2),
    "`torch.func.grad(s, argnums=0, has_aux=False)(x)`": on_both("torch", "result = $0", 3 * X**2),
    "`torch.func.vjp(f, x)[1](v)[0]`": on_both("torch", "result = $0", 2 * X),
    "`torch.func.jvp(f, (x,), (v,))[1]`": on_both("torch", "result = $0", 2 * X),
    "`torch.func.linearize(f, x)[1](v)`": on_both("torch", "result = $0", 2 * X),
    "`torch.func.jacrev(f)(x)`, `torch.func.jacfwd(f)(x)`": on_both(
        "torch", "result = $0, $1", (np.diag(2 * X), np.diag(2 * X))
    ),
    "`torch.func.hessian(s)(x)`": on_both("torch", "result = $0", np.diag(6 * X)),
    "`torch.func.vmap(s, in_dims=1)(a)`": on_both("torch", "result = $0", (A**3).sum(0)),
    "`torch.autograd.functional.jacobian(f, x)`": on_both("torch", "result = $0", np.diag(2 * X)),
    "`torch.autograd.functional.hvp(s, x, v)[1]`": on_both("torch", "result = $0", 6 * X),
    "`torch.no_grad()`": on_both(
        "torch",
        """
x = torch.ones(3, requires_grad=True)
with $0:
    y = x * 2
result = y.requires_grad
""",
        False,
    ),
    "`torch.enable_grad()`": on_both(
        "torch",
        """
x = torch.ones(3, requires_grad=True)
with torch.no_grad(), $0:
    y = x * 2
result = y.requires_grad
""",
        True,
    ),
    "`torch.inference_mode()`": on_both(
        "torch",
        """
x = torch.ones(3, requires_grad=True)
with $0:
    y = x * 2
result = y.requires_grad
""",
        False,
    ),
    "`torch.autograd.detect_anomaly()`": on_both(
        "torch",
        """
import warnings
with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    context = $0
x = torch.ones(3, requires_grad=True)
with context:
    s(x).backward()
result = x.grad
""",
        3 * np.ones(3),
    ),
    "`torch.autograd.graph.save_on_cpu()`": on_both(
        "torch",
        """
x = torch.ones(3, requires_grad=True)
with $0:
    s(x).backward()
result = x.grad
""",
        3 * np.ones(3),
    ),
    "`torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 1)`": on_both(
        "torch",
        """
x = torch.ones(3, requires_grad=True)
with $0:
    s(x).backward()
result = x.grad
""",
        3 * np.ones(3),
    ),
    "`torch.autograd.graph.register_multi_grad_hook([x], hook)`": on_both(
        "torch",
        """
seen = []
def hook(grads):
    seen.append(grads[0])
x = torch.ones(3, requires_grad=True)
$0
s(x).backward()
result = seen[0]
""",
        3 * np.ones(3),
    ),
    "`torch.autograd.graph.increment_version(x)`": on_both(
        "torch",
        """
$0
result = x._version
""",
        1,
    ),
    "`torch.autograd.function.once_differentiable`": (
        """
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, c):
        pass
        return a * c
    @staticmethod
    @$0
    def backward(ctx, grad):
        return 5 * grad, None, None
a, b = (torch.tensor(z, requires_grad=True) for z in (2.0, 3.0))
Scaled.apply(a, b, 4.0).backward()
result = a.grad
""",
        """
class Scaled(pb.Function):
    @staticmethod
    def forward(ctx, a, b, c):
        pass
        return a * c
    @staticmethod
    @$0
    def backward(ctx, grad):
        return 5 * grad, None, None
a, b = (pb.tensor(z, requires_grad=True) for z in (2.0, 3.0))
Scaled.apply(a, b, 4.0).backward()
result = a.grad
""",
        5.0,
    ),
    "`torch.utils.checkpoint.checkpoint(s, x, use_reentrant=False)`": (
        """
import torch.utils.checkpoint
result = $0
""",
        "result = $0",
        9.0,
    ),
    "`torch.tensor([1.0, 2.0])`": on_both("torch", "result = $0", np.array([1.0, 2.0])),
    "`torch.from_numpy(n)`": on_both(
        "torch",
        """
n = np.ones(2)
result = $0
""",
        np.ones(2),
    ),
    "`torch.sum(a, dim=0, keepdim=True)`": (
        "result = $0",
        """
result = $0
assert (result == $1).all()
""",
        A.sum(0, keepdims=True),
    ),
    "`torch.permute(a, (1, 0))`": (
        "result = $0",
        """
result = $0
assert (result == $1).all()
""",
        A.T,
    ),
    "`torch.cat([a, a])`": on_both("torch", "result = $0", np.concatenate([A, A])),
    "`torch.unsqueeze(a, 0)`": on_both("torch", "result = $0", A[None]),
    "`torch.nn.functional.conv2d(image, kernel)`": on_both(
        "torch",
        """
image, kernel = torch.ones((1, 1, 3, 3)), torch.ones((1, 1, 2, 2))
result = $0
""",
        np.full((1, 1, 2, 2), 4.0),
    ),
    "`torch.special.erf(v)`": on_both("torch", "result = $0", np.full(3, 0.8427007929497149)),
    '`torch.device("cuda:1")`': (
        "result = str($0)",
        "result = $0",
        "cuda:1",
    ),
    "`torch.float64`": on_both(
        "torch", "result = str(torch.ones(2, dtype=$0).numpy().dtype)", "float64"
    ),
    "`torch.nn.Module`": on_both(
        "torch",
        """
class Net($0):
    def forward(self, x):
        return 2 * x
result = Net()(v)
""",
        2 * np.ones(3),
    ),
    "`torch.nn.Linear(3, 2)`": on_both("torch", "result = tuple($0.weight.shape)", (2, 3)),
    "`torch.nn.init.ones_(t)`": on_both(
        "torch",
        """
t = torch.zeros(2)
result = $0
""",
        np.ones(2),
    ),
    "`torch.nn.utils.clip_grad_norm_([x], 1.0)`": on_both(
        "torch",
        """
x = torch.ones(3, requires_grad=True)
s(x).backward()
result = $0
""",
        np.sqrt(27),
    ),
    "`torch.optim.AdamW([x], lr=0.1)`": on_both(
        "torch",
        """
x = torch.ones(3, requires_grad=True)
optimizer = $0
s(x).backward()
optimizer.step()
result = x
""",
        np.full(3, 0.899),
    ),
    "`torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)`": on_both(
        "torch",
        """
p = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([p], lr=0.1)
scheduler = $0
optimizer.step()
scheduler.step()
result = optimizer.param_groups[0]['lr']
""",
        0.01,
    ),
    "`DataLoader(TensorDataset(a), batch_size=1, shuffle=True)`": (
        """
from torch.utils.data import DataLoader, TensorDataset
result = sorted(batch[0].sum().item() for batch in $0)
""",
        "result = sorted(float(np.sum(batch)) for batch in $0)",
        (3.0, 12.0),
    ),
    "`torch.save(model.state_dict(), path)`, `torch.load(path)`": (
        """
import io
path, model = io.BytesIO(), torch.nn.Linear(3, 2)
$0
path.seek(0)
result = bool((($1)['weight'] == model.weight).all())
""",
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
    "`torch.get_rng_state()`, `torch.set_rng_state(state)`": on_both(
        "torch",
        """
state = $0
first = torch.randn(3)
$1
result = bool((first == torch.randn(3)).all())
""",
        True,
    ),
    "`type(y.grad_fn).__name__`: `MulBackward0`": on_both(
        "torch",
        """
y = torch.ones(3, requires_grad=True) * 2
result = $0 == '$1'
""",
        True,
    ),
}
