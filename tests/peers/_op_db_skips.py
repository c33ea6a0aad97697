"""Where torch's samples of an operation are left out, and why; what is spelled otherwise."""

from collections.abc import Callable
from typing import Any

ARGUMENT = "an argument that pullback does not take"
OVERLAP = "the windows overlap: torch gives a value that another overwrites its gradient, too"
NEGATIVE = "a negative eps is refused: the root of less than nothing"
SOLVED = "only one axis makes a vector, by the standard; torch has stacks of them"

# Operations of torch that pullback has under another name: a dotted path.
SPELLINGS: dict[str, str] = {
    "__rdiv__": "Tensor.__rtruediv__",
    "bitwise_not": "bitwise_invert",
    "clamp_max": "Tensor.clamp",
    "clamp_min": "Tensor.clamp",
    "max.binary": "maximum",
    "min.binary": "minimum",
    "rsub": "Tensor.__rsub__",
    "stack": "stack",  # the method takes self as the first of them
    "true_divide": "divide",
}

# What torch calls the arguments after the first, of functions that take them by keyword only.
POSITIONAL: dict[str, tuple[str, ...]] = {
    "diff": ("n", "dim", "prepend", "append"),
    "stack": ("dim",),
}

# Calls whose arguments are in another order, or under another name: f is pullback's function.
CALLS: dict[str, Callable[..., Any]] = {
    "cdist": lambda f, x, y, p, mode: f(x, y, p),
    "clamp_max": lambda f, x, bound: f(x, max=bound),
    "clamp_min": lambda f, x, bound: f(x, min=bound),
    "einsum": lambda f, tensors, equation: f(equation, *tensors),
    "linalg.matrix_norm": lambda f, x, ord, dim, keepdim: f(
        x.movedim(dim, (-2, -1)), ord=ord, keepdims=keepdim
    ),
    "linalg.lstsq.grad_oriented": lambda f, a, b, driver: f(a, b)[:2],
    "linalg.pinv.singular": lambda f, a, b: f(a @ b.mT),
    "meshgrid.list_of_tensors": lambda f, tensors, **rest: f(*tensors, **rest),
    "nn.functional.embedding": lambda f, weight, index, **rest: f(index, weight, **rest),
    "searchsorted": lambda f, x, values, out_int32=False, right=False, side="left", sorter=None: f(
        x, values, side="right" if right else side, sorter=sorter
    ),
    "special.polygamma.special_polygamma_n_0": lambda f, x, n: f(n, x),
}

# Arguments that pullback does not have and that change nothing here: their values, () for any.
IGNORED: dict[str, tuple[Any, ...]] = {
    "UPLO": (),  # the samples are symmetric
    "atol": (None,),
    "hermitian": (),  # likewise
    "memory_format": (),  # the array library's business
    "output_size": (),  # what it must come to
}

# Operations of which only shape and dtype can agree, and why.
UNDETERMINED: dict[str, str] = {
    "empty": "not initialised",
    "empty_like": "not initialised",
    "new_empty": "not initialised",
    **dict.fromkeys(
        (
            *("bernoulli", "multinomial", "normal", "rand_like", "randint"),
            *("randint_like", "randn", "randn_like", "nn.functional.alpha_dropout"),
            *("nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d"),
        ),
        "random numbers",
    ),
}

# "operation": why none of its samples are run.
# "operation: text" or "operation: text & text": why samples are not run whose description has
# those texts in it; they must be samples that fail.
SKIPS: dict[str, str] = {
    "addbmm: [1], & in place": "broadcasting cannot enlarge a tensor in place",
    "addbmm: [], & in place": "broadcasting cannot enlarge a tensor in place",
    "cat: [0], & dim=1": "an empty vector does not go with every shape; in torch it does",
    "cholesky_inverse": "torch prepares the samples with functions of its own",
    "cov: aweights=float32": "torch sums the weights in float32",
    "gather: [], 0, int64[1]": "an index has as many dimensions as the input",
    "gather: uint8[2,0]": "an index has as many dimensions as the input, empty or not",
    "linalg.diagonal: dim1=": ARGUMENT,
    "linalg.lstsq": "torch leaves out what a driver does not compute",
    "linalg.matrix_norm: [2,3,2] & tuple(-1, 0), True": "matrices are in the last two axes",
    "linalg.matrix_rank: atol=1.0": ARGUMENT,
    "linalg.matrix_rank: atol=float": ARGUMENT,
    "linalg.solve: ,0])": SOLVED,
    "linalg.solve: ,5])": SOLVED,
    "nn.functional.batch_norm.without_cudnn": "torch has integer samples only and refuses them",
    "nn.functional.batch_norm: [0], ": "an input has an axis of channels, empty or not",
    "nn.functional.group_norm: eps=-0.5": NEGATIVE,
    "nn.functional.hardsigmoid": "torch's sixth has seven digits",
    "nn.functional.layer_norm: eps=-0.5": NEGATIVE,
    "nn.functional.max_unpool1d": OVERLAP,
    "nn.functional.max_unpool2d": OVERLAP,
    "nn.functional.max_unpool3d": OVERLAP,
    "nn.functional.rms_norm: eps=-0.5": NEGATIVE,
    "nn.functional.rrelu: training=True": "random numbers",
    "nn.functional.scaled_dot_product_attention: dropout_p=0.5": "random numbers",
    "nn.functional.triplet_margin_with_distance_loss": "the distances are torch's",
    "nonzero: [], as": "a number has no axes to count along: an error by the standard",
    "rsub: alpha=": ARGUMENT,
    "normal.number_mean": "layout= is not taken",
    "normal.in_place": "torch's function of three; here normal_ is a method",
    "searchsorted: out_int32=True": ARGUMENT,
    "tensordot: [1,1,1]": "an axis of length 1 is not broadcast",
    "zero_": "in place on a leaf, as only torch's tests may; see the in-place test",
}
