"""pb.nn.Module: what is found in it, its state, its modes, how it prints."""

import copy
import dataclasses
import pickle
from collections import namedtuple

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, ArgumentTypeError
from pullback.nn import Module, Parameter


def leaf(*shape):
    return pb.ones(shape, requires_grad=True)


def names(obj):
    return [name for name, _ in pb.nn.named_parameters(obj)]


class Net(Module):
    def __init__(self):
        self.layers = [pb.nn.Linear(2, 3), pb.nn.BatchNorm1d(3)]
        self.scale = Parameter(pb.ones(1))

    def forward(self, x):
        return self.layers[1](self.layers[0](x)) * self.scale


# -- named_parameters of any object ----------------------------------------------------------------
def test_named_parameters_goes_through_containers_and_objects():
    @dataclasses.dataclass
    class Layer:
        weight: object
        name: str = "layer"

    class Plain:
        def __init__(self):
            self.bias = leaf(2)
            self.count = 3

    Pair = namedtuple("Pair", "first second")
    tree = {"a": [leaf(1), (leaf(1),)], "b": Layer(leaf(2)), "c": Plain(), "d": Pair(leaf(1), 2)}
    assert names(tree) == ["a.0", "a.1.0", "b.weight", "c.bias", "d.first"]


def test_named_parameters_finds_attributes_in_slots():
    class Slotted:
        __slots__ = ("bias", "weight")

        def __init__(self):
            self.weight, self.bias = leaf(1), leaf(1)

    assert sorted(names(Slotted())) == ["bias", "weight"]


def test_named_parameters_leaves_out_what_is_no_leaf_or_requires_no_grad():
    w = leaf(2)
    assert names({"w": w, "result": w * 2, "constant": pb.ones(2), "array": np.ones(2)}) == ["w"]


def test_parameters_gives_a_tied_weight_once_and_survives_cycles():
    w = leaf(2)
    tree = {"first": w, "second": [w]}
    tree["itself"] = tree
    assert names(tree) == ["first"]
    assert [p is w for p in pb.nn.parameters(tree)] == [True]


def test_named_parameters_of_ten_thousand_objects_in_a_row():
    head = None
    for _ in range(10_000):
        head = {"next": head, "w": leaf(1)}
    assert len(names(head)) == 10_000


@pytest.mark.parametrize("value", [3, "text", None, Net])
def test_named_parameters_of_what_holds_nothing_is_an_error(value):
    with pytest.raises(ArgumentTypeError, match="a container or an object with attributes"):
        pb.nn.named_parameters(value)


# -- attributes ------------------------------------------------------------------------------------
def test_module_named_parameters_and_state_dict_have_pytorchs_order():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == [
        *("scale", "layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"),
    ]
    running = ("running_mean", "running_var", "num_batches_tracked")
    assert [*net.state_dict()][-3:] == [f"layers.1.{n}" for n in running]
    assert [n for n, _ in net.named_buffers()] == [f"layers.1.{n}" for n in running]


def test_module_keeps_a_frozen_parameter_in_its_state_and_among_its_parameters():
    net = Net()
    net.layers[0].weight.requires_grad_(False)
    net.fixed = Parameter(pb.zeros(2), requires_grad=False)
    assert "layers.0.weight" in net.state_dict()
    assert "fixed" in dict(net.named_parameters())
    assert "fixed" not in names(net)
    assert type(net.fixed) is pb.Tensor


def test_a_tensor_attribute_without_grad_is_no_part_of_the_state():
    net = Net()
    net.mask = pb.ones(3)
    assert "mask" not in net.state_dict()


def test_parameter_is_an_instance_check_of_leaves_that_require_grad():
    w = leaf(1)
    assert isinstance(w, Parameter)
    assert isinstance(Parameter(pb.zeros(1), requires_grad=False), Parameter)
    assert not isinstance(w * 2, Parameter)
    assert not isinstance(pb.ones(1), Parameter)


def test_parameter_shares_the_memory_of_its_data():
    values = np.zeros(2)
    Parameter(values).data[0] = 5.0
    assert values.tolist() == [5.0, 0.0]


def test_register_buffer_is_in_the_state_unless_it_is_not_persistent():
    net = Module()
    net.register_buffer("mean", pb.zeros(2))
    net.register_buffer("cache", pb.zeros(2), persistent=False)
    net.mean = pb.ones(2)
    assert [*net.state_dict()] == ["mean"]
    assert [n for n, _ in net.named_buffers()] == ["mean", "cache"]
    del net.mean
    assert [*net.state_dict()] == []
    with pytest.raises(ArgumentTypeError, match="register_buffer: a Tensor or None required, got"):
        net.register_buffer("mean", [1.0])


def test_modules_and_children():
    net = pb.nn.Sequential(pb.nn.Linear(1, 1), pb.nn.Sequential(pb.nn.ReLU()))
    assert [n for n, _ in net.named_modules()] == ["", "0", "1", "1.0"]
    assert [n for n, _ in net.named_children()] == ["0", "1"]
    seen = []
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen[-1] == "Sequential"


# -- modes and conversions -------------------------------------------------------------------------
def test_train_and_eval_reach_all_modules():
    net = Net()
    assert net.eval() is net
    assert not net.layers[1].training
    assert net.train().layers[1].training


def test_to_converts_parameters_and_buffers_of_floating_point_in_place():
    net = Net()
    weight = net.layers[0].weight
    net(pb.ones((4, 2))).sum().backward()
    assert net.double() is net
    assert net.layers[0].weight is weight
    assert weight.dtype is pb.float64
    assert weight.grad.dtype is pb.float64
    assert net.layers[1].running_mean.dtype is pb.float64
    assert net.layers[1].num_batches_tracked.dtype is pb.int64


def test_zero_grad_and_requires_grad_():
    net = Net()
    net(pb.ones((4, 2))).sum().backward()
    net.zero_grad(set_to_none=False)
    assert float(net.scale.grad.sum()) == 0.0
    net.zero_grad()
    assert net.scale.grad is None
    net.requires_grad_(False)
    assert names(net) == []
    net.requires_grad_()
    assert len(names(net)) == 5


# -- state -----------------------------------------------------------------------------------------
def test_load_state_dict_copies_in_place_and_casts_to_the_parameters_dtype():
    layer = pb.nn.Linear(2, 1)
    weight = layer.weight
    state = {"weight": np.array([[1.0, 2.0]]), "bias": pb.tensor([3.0], dtype="float64")}
    layer.load_state_dict(state)
    assert layer.weight is weight
    assert (weight.dtype, weight.tolist(), layer.bias.tolist()) == (pb.float32, [[1, 2]], [3])
    state["weight"][0, 0] = 9.0
    assert weight.tolist() == [[1, 2]]


def test_load_state_dict_lists_all_differences_and_loads_nothing():
    layer = pb.nn.Linear(2, 1)
    before = layer.state_dict()["bias"].tolist()
    with pytest.raises(ArgumentError) as caught:
        layer.load_state_dict({"weight": pb.ones((1, 3)), "bais": pb.zeros(1)})
    assert str(caught.value).splitlines() == [
        "Linear.load_state_dict: the state of this module required, got one that differs:",
        "  weight: shape (1, 2) required, got (1, 3)",
        "  bias: missing",
        "  bais: unexpected, 'bias' meant?",
    ]
    assert layer.bias.tolist() == before


def test_load_state_dict_that_is_not_strict_returns_the_names():
    layer = pb.nn.Linear(2, 1)
    result = layer.load_state_dict({"weight": pb.ones((1, 2)), "more": pb.zeros(1)}, strict=False)
    assert result.missing_keys == ["bias"]
    assert result.unexpected_keys == ["more"]
    assert layer.weight.tolist() == [[1.0, 1.0]]


def test_state_dict_has_a_tied_weight_under_both_names():
    net = Module()
    net.encoder = pb.nn.Linear(2, 2, bias=False)
    net.decoder = pb.nn.Linear(2, 2, bias=False)
    net.decoder.weight = net.encoder.weight
    assert [*net.state_dict()] == ["encoder.weight", "decoder.weight"]
    assert len([*net.parameters()]) == 1


def test_a_module_is_copied_and_pickled_with_its_values_and_ties():
    net = Net()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other.scale is not net.scale
        assert [*other.state_dict()] == [*net.state_dict()]
        assert names(other) == names(net)
        other.layers[0].weight.data.fill_(0.0)
    assert float(abs(net.layers[0].weight).sum()) > 0


# -- others ----------------------------------------------------------------------------------------
def test_a_module_without_forward_says_so():
    with pytest.raises(NotImplementedError, match="Module: a method forward required"):
        Module()(1)


def test_repr_shows_shapes_and_counts():
    assert repr(Net()) == (
        "Net(  # scale (1,), 16 parameters\n"
        "  (layers.0): Linear(in_features=2, out_features=3, bias=True)"
        "  # weight (3, 2), bias (3,)\n"
        "  (layers.1): BatchNorm1d(3, eps=1e-05, momentum=0.1)  # weight (3,), bias (3,)\n"
        ")"
    )


def test_sequential_and_lists_are_indexed_and_grow():
    net = pb.nn.Sequential(pb.nn.ReLU(), pb.nn.Tanh())
    assert type(net[-1]) is pb.nn.Tanh
    assert len(net[:1]) == 1
    net[0] = pb.nn.Sigmoid()
    assert [type(m) for m in net] == [pb.nn.Sigmoid, pb.nn.Tanh]
    layers = pb.nn.ModuleList()
    layers.append(pb.nn.Linear(1, 1)).extend([pb.nn.Linear(1, 1)])
    assert [*layers.state_dict()] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    with pytest.raises(ArgumentTypeError, match="ModuleList: modules required, got int"):
        layers.append(3)


def test_sequential_of_a_dict_has_its_names():
    net = pb.nn.Sequential({"linear": pb.nn.Linear(2, 1), "act": pb.nn.ReLU()})
    assert [*net.state_dict()] == ["linear.weight", "linear.bias"]
    assert net(pb.ones((3, 2))).shape == (3, 1)


def test_module_dict_is_a_dict():
    heads = pb.nn.ModuleDict({"a": pb.nn.ReLU()})
    heads["b"] = pb.nn.Tanh()
    assert (len(heads), [*heads], "b" in heads) == (2, ["a", "b"], True)
    del heads["a"]
    assert [name for name, _ in heads.items()] == ["b"]
    assert [type(m) for m in heads.values()] == [pb.nn.Tanh]


# -- PyTorch's other arguments ---------------------------------------------------------------------
def test_named_parameters_without_recurse_are_the_modules_own():
    net = Net()
    assert [name for name, _ in net.named_parameters(recurse=False)] == ["scale"]
    assert [*net.parameters(recurse=False)] == [net.scale]
    assert [*net.named_buffers(recurse=False)] == []
    norm = net.layers[1]
    assert len([*norm.buffers(recurse=False)]) == len([*norm.buffers()]) == 3


def test_named_parameters_and_modules_with_duplicates():
    net, shared = Module(), pb.nn.Linear(2, 2)
    net.a, net.b = shared, shared
    both = ["n.a.weight", "n.a.bias", "n.b.weight", "n.b.bias"]
    assert [name for name, _ in net.named_parameters("n", True, False)] == both
    assert [name for name, _ in net.named_parameters("n")] == both[:2]
    modules = [name for name, _ in net.named_modules(remove_duplicate=False)]
    assert modules == ["", "a", "b"]


def test_state_dict_with_prefix_destination_and_keep_vars():
    layer, found = pb.nn.Linear(2, 3), {"first": pb.ones(1)}
    state = layer.state_dict(destination=found, prefix="net.", keep_vars=True)
    assert state is found
    assert [*state] == ["first", "net.weight", "net.bias"]
    assert state["net.weight"] is layer.weight
    assert not layer.state_dict()["weight"].requires_grad


def test_load_state_dict_with_assign_keeps_parameters_and_takes_dtype_and_memory():
    layer = pb.nn.Linear(2, 1)
    weight, optimizer = layer.weight, pb.optim.SGD(layer.parameters(), lr=1.0)
    state = {"weight": np.full((1, 2), 2.0), "bias": np.zeros(1)}
    layer.load_state_dict(state, assign=True)
    assert layer.weight is weight
    assert weight.requires_grad
    assert weight.dtype == pb.float64
    layer(pb.ones((1, 2), dtype=pb.float64)).sum().backward()
    optimizer.step()
    assert state["weight"].tolist() == [[1.0, 1.0]]


def test_load_state_dict_of_a_path_says_what_reads_it():
    with pytest.raises(ArgumentTypeError, match=r"(?s)got str\nhint: pb.load\(path, model=model\)"):
        pb.nn.Linear(1, 1).load_state_dict("model.safetensors")


def test_containers_of_modules_say_how_they_are_called():
    with pytest.raises(ArgumentTypeError, match=r"write Sequential\(\*modules\)"):
        pb.nn.Sequential([pb.nn.ReLU()])
    with pytest.raises(ArgumentTypeError, match=r"(?s)got ReLU\n.*write ModuleList\(\[\.\.\.\]\)"):
        pb.nn.ModuleList(pb.nn.ReLU())


def test_module_list_takes_modules_in_and_out_at_an_index():
    a, b, c = (pb.nn.Linear(n, 1) for n in (1, 2, 3))
    modules = pb.nn.ModuleList([a, c])
    modules.insert(1, b)
    assert [*modules] == [a, b, c]
    assert modules.pop() is c
    del modules[0]
    assert [*modules.state_dict()] == ["0.weight", "0.bias"]
    assert modules[0] is b


def test_embedding_from_pretrained_shares_the_memory_and_is_frozen():
    vectors = np.eye(2, dtype=np.float32)
    table = pb.nn.Embedding.from_pretrained(vectors)
    vectors[1] = 5.0
    assert table(pb.tensor([1])).tolist() == [[5.0, 5.0]]
    assert [*table.state_dict()] == ["weight"]
    assert not table.weight.requires_grad
    assert pb.nn.Embedding.from_pretrained(vectors, freeze=False).weight.requires_grad
