"""What users of PyTorch, HIPS autograd and R torch type: it works, or the error names what does."""

import importlib
import inspect
import re

import numpy as np
import pytest
from matplotlib.figure import Figure

import pullback as pb
from pullback import hints
from pullback.errors import ArgumentTypeError, GraphError
from pullback.hints.names import NAMES, for_name
from pullback.hints.rows import rows
from pullback.ops.methods import ABSENT

X = pb.tensor([[1.0, 2.0]], requires_grad=True)

ABSENT_NAMES = {
    "pb.nn.Transformer": "pb.nn.MultiheadAttention",
    "pb.nn.cross_entropy": "it is pb.nn.functional.cross_entropy",
    "pb.nn.InstanceNorm2d": "pb.nn.functional.instance_norm",
    "pb.nn.ZeroPad2d": "pb.nn.functional.pad",
    "pb.optim.NAdam": "SGD, Adam, AdamW, RMSprop, Adagrad and LBFGS are there",
    "pb.optim.clip_grad_norm_": "pb.nn.utils.clip_grad_norm_",
    "pb.lr_step": "pb.optim.lr_scheduler.StepLR",
    "pb.torch_load": "pb.load(path)",
    "pb.device": "'cuda:1'",
    "pb.compile": "nothing is compiled",
    "pb.func": "pb.vmap",
    "pb.float": "pb.float32 or pb.float64",
    "pb.autograd.gradcheck": "pb.check.gradcheck(f, args)",
    "pb.autograd.functional": "pb.jacobian(f)(x)",
    "pb.cuda.device_count": "CuPy",
    "pb.primitive": "pb.autograd_function",
    "pb.make_vjp": "pb.vjp(f, *primals)",
    "pb.make_diagonal": "pb.diag_embed",
    "pb.nnf_relu": "pb.nn.functional.relu",
    "pb.torch_tensor": "pb.tensor",
    "pb.torch_save": "np.savez",
    "pb.nn_linear": "pb.nn.Linear",
    "pb.with_no_grad": "with pb.no_grad():",
    "pb.eigh": "it is pb.linalg.eigh",
    "pb.gammaincinv": "it is pb.special.gammaincinv",
    "pb.half": "pb.float16",
    "pb.torch_float": "pb.float32 or pb.float64",
    "pb.torch_long": "pb.int64",
    "pb.one_hot": "it is pb.nn.functional.one_hot",
    "pb.nn.one_hot": "it is pb.nn.functional.one_hot",
    "pb.nn.LPPool2d": "it is pb.nn.functional.lp_pool2d",
    "pb.optim_sgd": "pb.optim.SGD",
    "pb.nn.functional.cdist": "it is pb.cdist",
    "pb.exp_": "it is a method: x.exp_(...)",
    "pb.geomspace": "it is NumPy's: np.geomspace",
    "pb.distributions": "pb.interop.scipy.stats.norm.logpdf",
    "pb.lu": "pb.linalg.solve",
    "pb.version": "pb.__version__",
    "pb.tuple": "Python's own",
    "pb.getval": "x.detach()",
    "pb.autograd.function": "pb.once_differentiable",
    "pb.cuda.manual_seed_all": "pb.manual_seed(n)",
    "pb.cuda.memory_stats": "cupy.cuda",
    "pb.optim.Muon": "SGD, Adam, AdamW",
    "X.apply_": "x.copy_(pb.stack([f(v) for v in x]))",
    "X.solve": "it is pb.linalg.solve",
    "X.astype": "x.to(dtype)",
    "X.stride": "x.detach().numpy()",
    "X.at": "x[index] = values",
}


@pytest.mark.parametrize("name", ABSENT_NAMES)
def test_a_name_of_another_library_is_an_error_that_names_what_does_its_work(name):
    with pytest.raises(AttributeError) as caught:
        eval(name, {"pb": pb, "X": X})
    assert ABSENT_NAMES[name] in str(caught.value)
    assert f"has no attribute {name.rpartition('.')[2]!r}: " in str(caught.value)


@pytest.mark.parametrize("name", ["pb.torch_nothing", "pb.nothing", "pb.nn.nothing", "X.nothing"])
def test_any_other_name_is_an_error_without_a_hint(name):
    with pytest.raises(AttributeError, match=r"has no attribute '[a-z_]*'$"):
        eval(name, {"pb": pb, "X": X})


def test_no_name_of_the_tables_is_there():
    adam = pb.optim.Adam([pb.ones(1, requires_grad=True)])
    objects = {
        "Tensor": X,
        "Module": pb.nn.Linear(2, 3),
        "Optimizer": adam,
        "Schedule": pb.optim.lr_scheduler.StepLR(adam, 1),
        "Generator": pb.Generator(),
        "Operation": pb.autograd_function(lambda ctx, x: x),
    }
    for place, text in NAMES.items():
        module = f"pullback.{place}".rstrip(".")
        space = objects[place] if place in objects else importlib.import_module(module)
        names = [name for names, _ in rows(text) for name in names]
        assert [name for name in names if hasattr(space, name)] == []
    assert [name for name in ABSENT if not for_name("Tensor", name)] == []


def test_absent_names_hide_no_method_of_tensors_with_numpys_methods():
    assert pb.grad(lambda x: x.astype(float).copy().sum())(np.ones(2)).tolist() == [1.0, 1.0]
    assert not hasattr(pb.Tensor, "astype")


def test_asarray_makes_a_leaf_that_shares_memory():
    a = np.ones(2)
    leaf = pb.asarray(a, requires_grad=True)
    a[0] = 3.0
    (leaf * leaf).sum().backward()
    assert leaf.grad.tolist() == [6.0, 2.0]
    plain = pb.ones(2)
    assert pb.asarray(plain, requires_grad=True).requires_grad
    assert not plain.requires_grad


def test_asarray_leaves_a_tracked_tensor_in_its_graph():
    y = X * 2
    assert pb.asarray(y, requires_grad=True) is y


def test_apply_of_an_operation_is_the_operation():
    @pb.autograd_function
    def double(ctx, x):
        return x * 2

    @double.backward
    def _(ctx, g):
        return {"x": g * 2}

    x = pb.tensor([3.0], requires_grad=True)
    double.apply(x).backward()
    assert x.grad.tolist() == [2.0]


# -- rules and forwards with wrong parameters ------------------------------------------------------
def several(ctx, x):
    return x * 1, x * 2, x * 3, x * 4


def backward_of(forward, rule):
    x = pb.tensor([1.0], requires_grad=True)
    outs = pb.autograd_function(forward, rule)(x)
    (sum(outs) if isinstance(outs, tuple) else outs).backward()


def test_backward_with_too_few_parameters_is_named_with_its_line_and_the_outputs():
    def rule(ctx, a, b):
        return {"x": a}

    with pytest.raises(TypeError) as caught:
        backward_of(several, rule)
    message = str(caught.value)
    assert isinstance(caught.value, pb.AutogradError)
    assert message.startswith("several: backward with ctx and one parameter for each of 4 outputs")
    assert f"got rule(ctx, a, b), line {rule.__code__.co_firstlineno} of " in message
    assert "write def rule(ctx, grad_output_0, grad_output_1, grad_output_2" in message


def test_backward_with_too_many_parameters_is_named():
    def one(ctx, x):
        return x * 2

    with pytest.raises(TypeError, match=r"one parameter for each of 1 output required, got rule\("):
        backward_of(one, lambda_named_rule())


def lambda_named_rule():
    def rule(ctx, a, b):
        return {"x": a}

    return rule


def test_a_type_error_of_a_rules_own_stays_as_it_is():
    def one(ctx, x):
        return x * 2

    def rule(ctx, g):
        return len(3)

    with pytest.raises(TypeError, match=r"^object of type 'int' has no len\(\)$"):
        backward_of(one, rule)


def test_a_forgotten_ctx_is_named():
    op = pb.autograd_function(lambda x: x * 2, lambda ctx, g: g)
    text = "forward takes ctx first, and so its 'x' is ctx; "
    with pytest.raises(TypeError, match=re.escape(text)):
        op(X)


def test_a_wrong_call_with_a_ctx_is_pythons_own_error():
    with pytest.raises(TypeError, match=r"^several\(\) takes 1 positional argument but 2 were giv"):
        pb.autograd_function(several, lambda ctx, *g: None)(X, X)


# -- methods and operands --------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["expand_as", "view_as", "reshape_as"])
def test_a_method_that_takes_another_tensors_shape_is_named(name):
    with pytest.raises(
        ValueError, match=rf"^{name}: .*\n  (x|input): shape \(1, 2\).*\n  other: shape"
    ):
        getattr(X, name)(pb.ones(3))


def test_type_without_a_dtype_names_dtype():
    with pytest.raises(TypeError, match=r"hint: x\.dtype tells what it has"):
        X.type()


class Foreign:
    """An array of a library that is not supported."""

    __array_priority__ = 1000

    def __dlpack__(self, **settings):
        raise NotImplementedError

    def __mul__(self, other):
        return NotImplemented

    __rmul__ = __mul__


@pytest.mark.parametrize("product", [lambda a, b: a * b, lambda a, b: b * a])
def test_an_array_of_an_unsupported_library_is_told_from_a_tensor(product):
    with pytest.raises(TypeError, match=r"got tests\.errors\.test_habits\.Foreign\.\n"):
        product(X, Foreign())


@pytest.fixture
def ax():
    """The axes of a figure that nothing shows."""
    return Figure().subplots()


W = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
PLOTS = {
    "plot of a leaf": lambda ax: ax.plot(W),
    "plot of a result": lambda ax: ax.plot(W * 2),
    "plot of x and y": lambda ax: ax.plot(W * 2, W * W),
    "plot of y": lambda ax: ax.plot([1, 2, 3], W * W),
    "scatter": lambda ax: ax.scatter(W, W * 2),
    "hist": lambda ax: ax.hist(W * 2),
    "imshow": lambda ax: ax.imshow(W.reshape(1, 3) * 2),
    "bar": lambda ax: ax.bar([1, 2, 3], W),
}


@pytest.mark.parametrize("name", PLOTS)
def test_a_tensor_that_is_plotted_names_detach(ax, name):
    with pytest.raises(pb.AutogradError) as caught:
        PLOTS[name](ax)
    assert "it shows values alone: give it t.detach().numpy()" in str(caught.value)
    assert "pickle" not in str(caught.value)


def test_values_are_plotted(ax):
    (line,) = ax.plot(W.detach(), (W * 2).detach().numpy())
    assert line.get_ydata().tolist() == [2.0, 4.0, 6.0]


def test_a_name_that_python_asks_for_reads_no_table():
    assert str(hints.absent("pullback", "__wrapped__")) == (
        "module 'pullback' has no attribute '__wrapped__'"
    )


# -- settings by position --------------------------------------------------------------------------
REDUCTIONS = [
    *("all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var"),
    *("sort", "flip"),
]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_setting_by_position_is_an_error_that_names_the_keyword_and_the_method(name):
    with pytest.raises(TypeError) as caught:
        getattr(pb, name)(X, 1)
    assert isinstance(caught.value, pb.AutogradError)
    assert f"hint: pb.{name}(x, axis=1), or x.{name}(dim=1)" in str(caught.value)
    assert "more" not in str(inspect.signature(getattr(pb, name)))


def test_several_settings_by_position_are_named_in_their_order():
    with pytest.raises(TypeError, match=re.escape("pb.mean(x, axis=1, keepdims=True), or x.mean(")):
        pb.mean(X, 1, True)
    with pytest.raises(TypeError, match=re.escape("pb.stack(arrays, axis=1)")):
        pb.stack([X, X], 1)


@pytest.mark.parametrize("name", ["argsort", "tril", "triu", "diagonal", "unstack"])
def test_a_setting_by_position_of_a_function_that_looks_first_is_named(name):
    with pytest.raises(TypeError, match=rf"hint: pb\.{name}\(x, (axis|k|offset)=0\)"):
        getattr(pb, name)(X, 0)


WITH_AXES = [*REDUCTIONS, "argsort", "roll", "take", "diff", "unstack", "cumulative_sum"]


@pytest.mark.parametrize("name", WITH_AXES)
def test_dim_is_taken_for_axis(name):
    function, more = getattr(pb, name), (1,) if name in ("roll", "take") else ()
    if name == "take":
        more = (pb.tensor([0]),)
    expected = function(X, *more, axis=0)
    found = function(X, *more, dim=0)
    assert [t.tolist() for t in found] == [t.tolist() for t in expected]


@pytest.mark.parametrize("name", ["max", "mean", "prod", "std", "sum"])
def test_keepdim_is_taken_for_keepdims(name):
    assert getattr(pb, name)(X, dim=0, keepdim=True).shape == (1, X.shape[1])


@pytest.mark.parametrize("name", ["mean", "prod", "sum"])
def test_keepdim_and_keepdims_keep_axes_if_either_says_so(name):
    assert getattr(pb, name)(X, keepdims=True, keepdim=False).shape == (1,) * X.ndim
    assert getattr(pb, name)(X, keepdims=False, keepdim=True).shape == (1,) * X.ndim


def test_dims_and_dim_are_taken_where_axes_are_several():
    assert pb.flip(X, dims=(0, 1)).tolist() == pb.flip(X, axis=(0, 1)).tolist()
    assert pb.permute(X, dims=(1, 0)).shape == X.shape[::-1]
    assert pb.fft.fftn(X, dim=(0,)).tolist() == pb.fft.fftn(X, axes=(0,)).tolist()
    assert pb.linalg.vector_norm(X, dim=1, keepdim=True).shape == (X.shape[0], 1)
    assert pb.squeeze(X[None], dim=0).shape == X.shape


@pytest.mark.parametrize("name", ["mean", "sum", "sort", "argsort"])
def test_dim_beside_axis_is_an_error(name):
    with pytest.raises(pb.errors.ArgumentError, match=f"^{name}: give dim or axis, not both"):
        getattr(pb, name)(X, dim=0, axis=0)


def test_a_keyword_of_no_meaning_is_an_error_beside_dim():
    with pytest.raises(TypeError, match="unexpected keyword argument 'dimm'"):
        pb.sort(X, dimm=0)


def test_the_larger_of_two_tensors_names_maximum_and_prints_none():
    with pytest.raises(TypeError, match=r"hint: pb\.maximum\(x, y\) of two tensors$") as caught:
        pb.max(X, X)
    assert "[[" not in str(caught.value)
    with pytest.raises(TypeError, match=r"pb\.argsort\(x, axis=\.\.\.\)"):
        pb.argsort(X, pb.ones(2000))


def test_as_tensor_makes_a_leaf():
    assert pb.as_tensor([1.0], requires_grad=True).is_leaf
    assert pb.as_tensor(np.ones(2), requires_grad=True).requires_grad


def test_a_decorated_forward_without_ctx_that_has_a_default_names_ctx():
    @pb.autograd_function
    def scale(x, k=2.0):
        return k * x

    with pytest.raises(ArgumentTypeError, match=r"got Context\.\n.*\nhint: forward takes ctx"):
        scale(pb.ones(2))


@pytest.mark.parametrize("transform", ["vmap", "jvp", "grad"])
def test_an_array_times_a_list_in_a_transform_names_stack(transform):
    def f(x):
        return np.sum(np.ones(2) * [x[0], x[1]])

    call = {
        "vmap": lambda: pb.vmap(f)(np.ones((2, 2))),
        "jvp": lambda: pb.jvp(f, (np.ones(2),), (np.ones(2),)),
        "grad": lambda: pb.grad(f)(np.ones(2)),
    }[transform]
    with pytest.raises(GraphError, match=r"np\.stack\(\[...\]\) or pb\.asarray"):
        call()


@pytest.mark.parametrize(
    "f",
    [
        lambda w: np.sum(np.ones(2) * w),
        lambda w: np.sum((w - np.ones(2)) ** 2),
        lambda w: w.sum(),
        lambda w: np.exp(w).sum(),
    ],
)
def test_a_list_as_argument_of_a_transform_names_np_array(f):
    with pytest.raises((GraphError, TypeError, AttributeError)) as caught:
        pb.grad(f)([1.0, 2.0])
    assert "sizes" not in str(caught.value)
    note = "argument 0 of <lambda> is a list of numbers: write np.array([1.0, 2.0]) for a vector"
    assert caught.value.__notes__ == [f"hint: {note}"]


def test_dir_of_a_tensor_lists_no_name_that_is_absent():
    assert not {*ABSENT} & {*dir(pb.tensor([1.0]))}
    assert {"shape", "backward", "clamp"} < {*dir(pb.tensor([1.0]))}
    seen = []
    pb.grad(lambda x: seen.append(dir(x)) or x)(2.0)
    assert "astype" in seen[0]  # of NumPy's methods, which such tensors have
    assert "storage" not in seen[0]


UNFIT_CALLS = {
    "zeros with size=": (lambda: pb.zeros(size=(2,)), "pb.zeros((2, 3))"),
    "full with size=": (lambda: pb.full(size=(2,), fill_value=0), "pb.full((2, 3), 1.0)"),
    "randn with size=": (lambda: pb.randn(size=(2,)), "pb.randn((2, 3))"),
    "rand with shape=": (lambda: pb.rand(shape=(2,)), "pb.rand((2, 3))"),
    "linspace with n=": (lambda: pb.linspace(0, 1, n=3), "pb.linspace(start, stop, /, num"),
    "eye with n=": (lambda: pb.eye(n=3), "pb.eye(n_rows, n_cols=None"),
    "ones of nothing": (lambda: pb.ones(), "pb.ones(shape, *more"),
}


@pytest.mark.parametrize("name", UNFIT_CALLS)
def test_a_call_of_zeros_and_its_kin_that_does_not_fit_says_how_it_is_called(name):
    call, way = UNFIT_CALLS[name]
    with pytest.raises(TypeError) as caught:
        call()
    (note,) = caught.value.__notes__
    assert note.startswith("hint: ")
    assert way in note


def test_an_error_from_within_zeros_has_no_hint_of_the_call():
    with pytest.raises(ArgumentTypeError) as caught:
        pb.zeros(2, dtype=3)
    assert not hasattr(caught.value, "__notes__")


def test_zeros_with_a_dtype_by_position_names_the_keyword():
    with pytest.raises(ArgumentTypeError, match=r"hint: .* pb\.zeros\(\(2,\), dtype=\.\.\.\)"):
        pb.zeros((2,), float)
