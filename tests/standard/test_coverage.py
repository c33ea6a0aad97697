"""Every public function is a declared operation, and every declaration says what has a gradient.

What is not declared, and what has no rule, is listed here with the reason; nothing else is.
"""

import inspect
import operator

import pytest

import pullback as pb
from pullback.core.function.namespace import TENSOR_XP
from pullback.ops.declare import REGISTRY

MAKES = "makes tensors of numbers or shapes, and has no tensor to differentiate by"
WRAPS = "puts an array of a library into a tensor, which is then a leaf"
DTYPES = "is about dtypes"
SHAPES = "is about shapes"
RANDOM = "draws numbers, which depend on no tensor"
HISTORY = "manages the history, and computes nothing"
DERIVES = "takes a function and returns one; its derivatives are those of what the function calls"
MODE = "switches how operations are recorded"
TYPE = "is a class"
ANSWERS = "answers a question with a bool or a number of Python's"

# The public names that are callable and no declared operation, with the reason.
NO_OPERATIONS = {
    "DType": TYPE,
    "Function": TYPE,
    "Context": TYPE,
    "Generator": TYPE,
    "Tensor": TYPE,
    "AutogradError": TYPE,
    "UntrackedTensorWarning": TYPE,
    "__array_namespace_info__": "tells of the namespace",
    "allclose": ANSWERS,
    "arange": MAKES,
    "as_tensor": WRAPS,
    "bartlett_window": MAKES,
    "blackman_window": MAKES,
    "hamming_window": MAKES,
    "hann_window": MAKES,
    "kaiser_window": MAKES,
    "detach": HISTORY,
    "logspace": MAKES,
    "asarray": WRAPS,
    "bernoulli": RANDOM,
    "autograd_function": "makes an operation of a user's functions",
    "source": "shows what is written for an operation",
    "show_versions": "prints what is installed",
    "save": "writes a file",
    "load": "reads a file",
    "get_rng_state": "tells of a generator",
    "set_rng_state": "sets a generator",
    "broadcast_shapes": SHAPES,
    "can_cast": DTYPES,
    "detect_anomaly": MODE,
    "elementwise_grad": DERIVES,
    "empty": MAKES,
    "empty_like": MAKES,
    "enable_grad": MODE,
    "eye": MAKES,
    "fft.fftfreq": MAKES,
    "fft.rfftfreq": MAKES,
    "finfo": DTYPES,
    "from_dlpack": WRAPS,
    "from_numpy": WRAPS,
    "full": MAKES,
    "full_like": MAKES,
    "get_default_dtype": DTYPES,
    "grad": DERIVES,
    "iinfo": DTYPES,
    "inference_mode": MODE,
    "is_grad_enabled": MODE,
    "is_inference_mode_enabled": MODE,
    "isdtype": DTYPES,
    "linalg.EigResult": TYPE,
    "linalg.EighResult": TYPE,
    "linalg.LstsqResult": TYPE,
    "linalg.QRResult": TYPE,
    "linalg.SVDResult": TYPE,
    "linalg.SlogdetResult": TYPE,
    "linspace": MAKES,
    **dict.fromkeys(
        ("is_complex", "is_floating_point", "is_nonzero", "is_same_size", "is_signed"), ANSWERS
    ),
    "is_tensor": ANSWERS,
    "numel": ANSWERS,
    "promote_types": DTYPES,
    "manual_seed": RANDOM,
    "set_num_threads": "sets the threads of BLAS",
    "multinomial": RANDOM,
    "no_grad": MODE,
    "normal": RANDOM,
    "once_differentiable": HISTORY,
    "ones": MAKES,
    "ones_like": MAKES,
    "rand": RANDOM,
    "rand_like": RANDOM,
    "randint": RANDOM,
    "randint_like": RANDOM,
    "randn": RANDOM,
    "randn_like": RANDOM,
    "randperm": RANDOM,
    "register_multi_grad_hook": HISTORY,
    "result_type": DTYPES,
    "saved_tensors_hooks": HISTORY,
    "set_default_dtype": DTYPES,
    "set_detect_anomaly": MODE,
    "set_grad_enabled": MODE,
    "tensor": "copies numbers into a new leaf",
    "tril_indices": MAKES,
    "triu_indices": MAKES,
    "value_and_grad": DERIVES,
    **dict.fromkeys(("checkpoint", "save_as", "save_on_cpu"), HISTORY),
    **dict.fromkeys(("hessian", "hessian_vector_product", "hvp", "vhp"), DERIVES),
    **dict.fromkeys(("jacfwd", "jacobian", "jacrev", "jvp", "linearize", "vjp"), DERIVES),
    "vmap": DERIVES,
    "zeros": MAKES,
    "zeros_like": MAKES,
}

# The inputs that have no rule though the operation is differentiable: asking raises.
NO_CLOSED_FORM = "the derivative has no closed form in known functions; PyTorch has none either"
NO_RULE = {
    ("fdtrc", "dfd"): NO_CLOSED_FORM,
    ("fdtrc", "dfn"): NO_CLOSED_FORM,
    ("zeta", "s"): NO_CLOSED_FORM,
    **{(name, "v"): NO_CLOSED_FORM for name in ("iv", "ive", "jv", "kv", "kve", "yv")},
}


def callables(module, prefix=""):
    """Return the public callables of a module by name, without modules and dtypes."""
    found = {name: getattr(module, name) for name in module.__all__}
    return {
        f"{prefix}{name}": value
        for name, value in found.items()
        if callable(value) and not inspect.ismodule(value)
    }


PUBLIC = callables(pb) | callables(pb.linalg, "linalg.") | callables(pb.fft, "fft.")


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_function_is_declared_or_listed_with_the_reason_why_not(name):
    op = getattr(PUBLIC[name], "primitive", None)
    declared = op is not None and REGISTRY[op.name].primitive is op
    assert declared != (name in NO_OPERATIONS)


def test_the_list_names_public_callables_alone():
    assert set(NO_OPERATIONS) <= set(PUBLIC)


@pytest.mark.parametrize("name", REGISTRY)
def test_a_declaration_says_of_every_input_whether_it_has_a_gradient(name):
    op = REGISTRY[name].primitive
    missing = set(op.inputs) - set(op.declared)
    if not op.differentiable:
        assert op.declared == {}
        assert op.vjp_all is None
    elif op.vjp_all is None:
        assert {i for of, i in NO_RULE if of == name} == missing
    elif not op.variadic:
        assert not op.declared


@pytest.mark.parametrize(("name", "given"), NO_RULE)
def test_a_gradient_without_a_rule_is_an_error_that_names_the_operation_and_the_input(name, given):
    op = REGISTRY[name].primitive
    tensors = [pb.tensor([1.5, 2.5]) for _ in op.inputs]
    tensors[op.inputs.index(given)].requires_grad_()
    result = op.public(*tensors)
    with pytest.raises(NotImplementedError, match=f"{name}: .* for the argument '{given}'"):
        result.sum().backward()


OPERATIONS = [
    name
    for name, function in PUBLIC.items()
    if name not in NO_OPERATIONS and name.split(".")[-1] == function.__name__  # no second name
]


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_rule_finds_an_operation_under_its_public_name(name):
    found = operator.attrgetter(name)(TENSOR_XP)
    assert found.primitive is PUBLIC[name].primitive


# -- a gradient that does not exist ---------------------------------------------------------------
def test_a_result_without_gradient_is_a_leaf_and_backward_from_it_is_an_error():
    x = pb.tensor([1.0, 3.0, 2.0], requires_grad=True)
    for result in (x.argmax(), x > 2, pb.isnan(x), pb.floor(x) == x):
        assert (result.requires_grad, result.grad_fn, result.is_leaf) == (False, None, True)
        with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
            result.sum().backward()
