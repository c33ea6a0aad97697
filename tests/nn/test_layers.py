"""Layers: derivatives by differences, what they print, what they refuse."""

import copy
import inspect
import operator

import numpy as np
import pytest
from tests.nn.layer_cases import CASES

import pullback as pb
from pullback.errors import ArgumentError, GradcheckError, GradientError, ShapeError
from pullback.nn import init


def built(name, args, settings):
    pb.manual_seed(0)
    return getattr(pb.nn, name)(*args, **settings).double()


def ids(case):
    return case[0] if isinstance(case, tuple) else None


def first_of(result):
    while isinstance(result, tuple):
        result = result[0]
    return result


def as_function(layer, count):
    """Return a layer as a function of its inputs, so many, and of its parameters by position."""
    names = [name for name, _ in layer.named_parameters()]

    def call(*tensors):
        own = copy.deepcopy(layer)  # the check calls it from several threads
        for name, tensor in zip(names, tensors[count:], strict=True):
            path, _, last = name.rpartition(".")
            setattr(operator.attrgetter(path)(own) if path else own, last, tensor)
        return first_of(own(*tensors[:count]))

    return call


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_check_op_finds_the_gradients_of_a_layer_right(case):
    name, args, settings, inputs = case
    layer = built(name, args, settings).eval()
    tensors = [pb.tensor(x, requires_grad=x.dtype.kind == "f") for x in inputs]
    assert repr(layer).startswith(f"{name}(")
    assert pb.check.check_op(as_function(layer, len(tensors)), *tensors, *layer.parameters())


# Containers of any modules, and the layer that ignores what it is given, as in PyTorch.
WITHOUT_SETTINGS = {"Module", "Sequential", "Identity", "Parameter"}
LAYERS = sorted(
    name
    for name in pb.nn.__all__
    if isinstance(getattr(pb.nn, name), type) and name not in WITHOUT_SETTINGS
)


@pytest.mark.parametrize("name", LAYERS)
def test_the_signature_of_a_layer_has_its_settings_by_name_with_types(name):
    layer = getattr(pb.nn, name)
    for signature in (inspect.signature(layer), inspect.signature(layer.__init__)):
        for p in signature.parameters.values():
            assert p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY), p
            assert p.name == "self" or p.annotation is not p.empty, p
        assert signature.return_annotation in (None, "None")


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_the_signature_of_a_layer_is_how_it_is_made(case):
    name, args, settings, _ = case
    layer = getattr(pb.nn, name)
    bound = inspect.signature(layer).bind(*args, **settings)
    made = layer(**bound.arguments)
    assert repr(made) == repr(layer(*args, **settings))


def test_the_signature_of_a_subclass_of_a_layer_is_its_own():
    class Scaled(pb.nn.MSELoss):
        def __init__(self, scale: float):
            super().__init__(reduction="sum")
            self.scale = scale

    assert str(inspect.signature(Scaled)) == "(scale: float)"
    assert Scaled(2.0)(pb.ones(3), pb.zeros(3)) == 3.0


def test_check_op_sees_a_parameter_of_a_layer_without_its_gradient():
    class Detached(pb.nn.Linear):
        def forward(self, input):
            return pb.nn.functional.linear(input, self.weight.detach(), self.bias)

    layer = Detached(3, 2).double()
    with pytest.raises(GradcheckError, match="gets no gradient"):
        pb.check.check_op(as_function(layer, 1), X.double(), *layer.parameters())


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_a_layer_in_training_gives_a_finite_result(case):
    name, args, settings, inputs = case
    result = first_of(built(name, args, settings)(*map(pb.tensor, inputs)))
    assert bool(result.isfinite().all())


def test_dropout_drops_in_training_alone():
    layer = pb.nn.Dropout(0.5)
    pb.manual_seed(0)
    assert set(layer(pb.ones(100)).tolist()) == {0.0, 2.0}
    assert layer.eval()(pb.ones(2)).tolist() == [1.0, 1.0]


def test_a_loss_has_its_weight_in_its_state():
    loss = pb.nn.CrossEntropyLoss(weight=pb.tensor([1.0, 2.0]))
    assert [*loss.state_dict()] == ["weight"]
    assert repr(pb.nn.MSELoss()) == "MSELoss(reduction='mean')"
    with pytest.raises(TypeError, match="reduktion"):
        pb.nn.MSELoss(reduktion="sum")


def test_batch_norm_tracks_and_resets_its_statistics():
    layer = pb.nn.BatchNorm1d(2)
    layer(pb.tensor([[0.0, 2.0], [2.0, 4.0]]))
    assert [round(m, 4) for m in layer.running_mean.tolist()] == [0.1, 0.3]
    assert layer.num_batches_tracked.item() == 1
    layer.reset_running_stats()
    assert (layer.running_mean.tolist(), layer.running_var.tolist()) == ([0, 0], [1, 1])
    pb.nn.BatchNorm1d(2, track_running_stats=False).reset_running_stats()


def test_embedding_has_a_padding_vector_of_zeros_without_a_gradient():
    layer = pb.nn.Embedding(4, 2, padding_idx=1)
    layer(pb.tensor([1, 2, 1])).sum().backward()
    assert layer.weight[1].tolist() == [0.0, 0.0]
    assert layer.weight.grad.tolist() == [[0, 0], [0, 0], [1, 1], [0, 0]]


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_recurrent_layer_of_no_batch_is_that_of_a_batch_of_one(batch_first, name):
    layer = built(name, (3, 4), {"batch_first": batch_first, "num_layers": 2, "dropout": 0.3})
    layer.eval()
    x = pb.tensor(np.random.default_rng(0).standard_normal((5, 3)))
    h0 = pb.ones((2, 4), dtype="float64")
    batch = h0.unsqueeze(1)
    one, several = ((h0, h0), (batch, batch)) if name == "LSTM" else (h0, batch)
    output, last = layer(x, one)
    many, lasts = layer(x.unsqueeze(0 if batch_first else 1), several)
    assert output.shape == (5, 4)
    np.testing.assert_allclose(output.tolist(), many.squeeze(0 if batch_first else 1).tolist())
    states = zip(last, lasts, strict=True) if name == "LSTM" else [(last, lasts)]
    for state, of_batch in states:
        np.testing.assert_allclose(state.tolist(), of_batch[:, 0].tolist())


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_recurrent_layer_of_many_steps_has_the_gradients_of_its_cell(name, monkeypatch):
    monkeypatch.setattr("pullback.ops.primitives.recurrent._AT_ONCE", 5000)  # of seven steps
    layer, cell = built(name, (3, 40), {}), built(f"{name}Cell", (3, 40), {})
    cell.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
    x = pb.tensor(np.random.default_rng(0).standard_normal((30, 4, 3)), requires_grad=True)
    state, outputs = None, []
    for each in x:
        state = cell(each, state)
        outputs.append(state[0] if name == "LSTM" else state)
    output, _ = layer(x)
    np.testing.assert_allclose(output.detach(), pb.stack(outputs).detach(), rtol=1e-9)
    weights = pb.linspace(-1, 1, output.size, dtype="float64").reshape(output.shape)
    of_cell = pb.autograd.grad((pb.stack(outputs) * weights).sum(), [x, *cell.parameters()])
    of_layer = pb.autograd.grad((output * weights).sum(), [x, *layer.parameters()])
    for a, b in zip(of_layer, of_cell, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("bias", [False, True])
def test_multihead_attention_of_one_tensor_is_that_of_three_equal_ones(bias):
    layer = built("MultiheadAttention", (6, 2), {"bias": bias})
    leaves = (pb.tensor(np.random.default_rng(0).standard_normal((4, 2, 6)), requires_grad=True),)
    leaves += tuple(layer.parameters())
    one, weights = layer(*leaves[:1] * 3)
    three, of_three = layer(leaves[0], leaves[0] + 0, leaves[0] + 0)
    np.testing.assert_allclose(one.tolist(), three.tolist())
    np.testing.assert_allclose(weights.tolist(), of_three.tolist())
    call = as_function(layer, 3)
    assert pb.check.check_op(lambda x, *weights: call(x, x, x, *weights), *leaves)


X = pb.ones((2, 3))
WRONG = {
    "Conv1d: channels that 2 groups divide required, got 3 and 4": lambda: pb.nn.Conv1d(
        3, 4, 1, groups=2
    ),
    "Conv2d: a padding_mode of zeros, reflect, replicate, circular required, got 'wrap'": (
        lambda: pb.nn.Conv2d(1, 1, 3, padding_mode="wrap")
    ),
    "BatchNorm2d: an input of 4 dimensions required, got 2": lambda: pb.nn.BatchNorm2d(3)(X),
    "RNN: a nonlinearity of 'tanh' or 'relu' required, got 'sin'": lambda: pb.nn.RNN(
        1, 1, nonlinearity="sin"
    ),
    "LSTM: a tuple of 2 states, h and c, required as hx, got Tensor": lambda: pb.nn.LSTM(3, 4)(
        X, X
    ),
    r"GRU: states of shape \(1, 4\) required, got \(2, 3\)": lambda: pb.nn.GRU(3, 4)(X, X),
    "GRU: an input of 2 or 3 dimensions, the last of 5, required": lambda: pb.nn.GRU(5, 4)(X),
    "LSTM: a sequence of at least 1 step required, got 0": lambda: pb.nn.LSTM(3, 4)(X[:0]),
    "MultiheadAttention: an embed_dim that num_heads divides required, got 5 and 2": (
        lambda: pb.nn.MultiheadAttention(5, 2)
    ),
    "MultiheadAttention: query, key and value of 3 dimensions": lambda: pb.nn.MultiheadAttention(
        3, 1
    )(X, X.unsqueeze(0), X),
    "calculate_gain: one of linear, .* required, got 'sine'": lambda: init.calculate_gain("sine"),
    "kaiming_uniform_: a mode of fan_in, fan_out required, got 'fan'": lambda: (
        init.kaiming_uniform_(pb.ones((2, 2)), mode="fan")
    ),
    "xavier_normal_: a tensor of at least 2 dimensions required, got 1": lambda: (
        init.xavier_normal_(pb.ones(2))
    ),
    "eye_: a tensor of 2 dimensions required, got 1": lambda: init.eye_(pb.ones(2)),
    "orthogonal_: a tensor of at least 2 dimensions required, got 1": lambda: init.orthogonal_(
        pb.ones(2)
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_a_layer_refuses(text):
    with pytest.raises((ArgumentError, ShapeError), match=text):
        WRONG[text]()


def test_init_fills_in_place_and_records_nothing():
    pb.manual_seed(0)
    w = pb.empty((6, 4), requires_grad=True)
    for fill in (init.xavier_uniform_, init.xavier_normal_, init.kaiming_normal_, init.ones_):
        assert fill(w) is w
    assert w.is_leaf
    assert float(abs(init.kaiming_uniform_(w, 1, "fan_out", "leaky_relu")).max().detach()) <= 1
    assert float(abs(init.trunc_normal_(w, std=3.0)).max().detach()) <= 2
    tall = init.orthogonal_(pb.empty((6, 4), dtype="float64"), gain=2.0)
    np.testing.assert_allclose((tall.mT @ tall).numpy(), 4 * np.eye(4), atol=1e-12)
    assert init.calculate_gain("leaky_relu", 1.0) == pytest.approx(1.0)
    assert init.calculate_gain("leaky_relu") == pytest.approx((2 / 1.0001) ** 0.5)


def test_clip_grad_norm_of_nothing_is_zero_and_of_nan_can_raise():
    w = pb.ones(2, requires_grad=True)
    assert pb.nn.utils.clip_grad_norm_([w], 1.0).item() == 0.0
    w.grad = pb.tensor([float("nan"), 0.0])
    with pytest.raises(GradientError, match="a finite norm of the gradients was required, got nan"):
        pb.nn.utils.clip_grad_norm_(w, 1.0, error_if_nonfinite=True)
