"""`pb.inspect.graph`: nodes, leaves, edges, names and texts of a recorded graph."""

import gc
import json
import weakref

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentTypeError

square = pb.autograd_function(
    lambda ctx, x: (ctx.save_for_backward(x=x), x * x)[1],
    lambda ctx, g: {"x": 2 * g * ctx.saved_variables.x},
    name="square",
)


def leaf(*values):
    return pb.tensor(values, dtype=pb.float64, requires_grad=True)


def names_of(g):
    return [node.name for node in g.nodes]


def test_graph_has_nodes_in_the_order_of_creation_and_leaves_apart():
    w, b = leaf(1.0, 2.0), leaf(0.5, 0.5)
    h = w * 3
    loss = (h + b).sum()
    g = pb.inspect.graph(loss)
    assert names_of(g) == ["MulBackward", "AddBackward", "SumBackward"]
    assert [x.name for x in g.leaves] == ["w", "b"]
    assert [x.shape for x in g.leaves] == [(2,), (2,)]
    assert [x.bytes for x in g.leaves] == [16, 16]
    ids = [node.id for node in g.nodes]
    assert ids == sorted(ids)
    assert g.outputs == (("loss", ids[-1]),)


def test_graph_has_an_edge_for_each_use_of_a_result_repeats_included():
    w = leaf(1.0, 2.0)
    h = w.exp()
    g = pb.inspect.graph((h * h).sum())
    (exp, mul, total), (w_leaf,) = g.nodes, g.leaves
    assert [(e.source, e.target) for e in g.edges] == [
        *((w_leaf.id, exp.id), (exp.id, mul.id), (exp.id, mul.id), (mul.id, total.id))
    ]
    assert mul.inputs == (exp.id, exp.id)
    assert exp.consumers == (mul.id, mul.id)
    assert total.consumers == ()


def test_graph_has_the_output_number_of_a_node_with_several():
    low, high = leaf(3.0, 1.0, 2.0).split([1, 2])
    g = pb.inspect.graph(low.sum() + high.sum())
    sources = {node.id: node.name for node in g.nodes}
    parts = [e.output for e in g.edges if sources.get(e.source, "").startswith("Split")]
    assert parts == [0, 1]


def test_graph_has_the_users_operation_and_none_for_the_librarys():
    g = pb.inspect.graph(square(leaf(2.0)).sum())
    assert [node.op for node in g.nodes] == [square, None]
    assert names_of(g) == ["squareBackward", "SumBackward"]


def test_graph_says_what_was_released_by_backward():
    loss = square(leaf(2.0)).exp().sum()
    assert [node.released for node in pb.inspect.graph(loss).nodes] == [False] * 3
    assert pb.inspect.graph(loss).nodes[0].saved_bytes == 8
    loss.backward()
    assert [node.released for node in pb.inspect.graph(loss).nodes] == [True] * 3
    assert [node.saved_bytes for node in pb.inspect.graph(loss).nodes] == [0] * 3


def test_graph_of_gradients_with_create_graph_is_one_graph_with_the_first():
    w = leaf(1.0, 2.0)
    loss = (w**3).sum()
    (first,) = pb.autograd.grad(loss, w, create_graph=True)
    g, before = pb.inspect.graph(first), pb.inspect.graph(loss)
    both = pb.inspect.graph(loss, first)
    assert {n.id for n in both.nodes} == {n.id for n in g.nodes} | {n.id for n in before.nodes}
    assert [x.id for x in both.leaves] == [x.id for x in before.leaves]


def test_graph_of_a_leaf_has_the_leaf_alone():
    w = leaf(1.0)
    g = pb.inspect.graph(w)
    assert (g.nodes, [x.name for x in g.leaves]) == ((), ["w"])
    assert pb.inspect.graph(pb.ones(2)).leaves == ()


def test_graph_names_leaves_by_a_module_a_dict_or_the_callers_variables():
    net = pb.nn.Sequential(pb.nn.Linear(2, 2), pb.nn.Linear(2, 1))
    loss = net(pb.ones((3, 2))).sum()
    own = ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert sorted(x.name for x in pb.inspect.graph(loss, names=net).leaves) == sorted(own)
    assert {x.name for x in pb.inspect.graph(loss).leaves} == {f"net.{name}" for name in own}
    named = dict.fromkeys(["first"], net[0].weight)
    assert [x.name for x in pb.inspect.graph(loss, names=named).leaves if x.name] == ["first"]


def test_graph_of_a_leaf_that_is_gone_has_neither_name_nor_shape():
    loss = leaf(1.0, 2.0).exp().sum()
    gc.collect()
    (gone,) = pb.inspect.graph(loss).leaves
    assert (gone.name, gone.shape, gone.bytes) == ("", None, 0)


def test_graph_keeps_nothing_alive():
    w = leaf(1.0, 2.0)
    loss = (w * 2).sum()
    node = weakref.ref(loss.grad_fn)
    with pb.inspect.record() as r:
        inside = (w * 3).sum()
        inside.backward()
    noted = weakref.ref(inside.grad_fn)
    g, table, other = pb.inspect.graph(loss), pb.inspect.saved(loss), r.graph()
    del loss, inside
    assert (node(), noted()) == (None, None)
    assert (len(g.nodes), len(table), len(other.nodes)) == (2, 0, 2)
    assert r.graph().nodes == ()


@pytest.mark.parametrize(
    ("given", "came"), [((), "none"), ((1.0,), "float"), ((pb.ones(1), "loss"), "str")]
)
def test_graph_of_what_is_no_tensor_is_refused(given, came):
    with pytest.raises(ArgumentTypeError, match=f"inspect.graph: tensors required, got {came}"):
        pb.inspect.graph(*given)
    with pytest.raises(ArgumentTypeError, match=f"inspect.saved: tensors required, got {came}"):
        pb.inspect.saved(*given)


def test_graph_marks_the_nodes_of_a_checked_operation():
    wrong = pb.autograd_function(
        lambda ctx, x: (ctx.save_for_backward(x=x), x * x)[1],
        lambda ctx, g: {"x": g * ctx.saved_variables.x},
        name="halved",
    )
    x = np.array([1.0, 2.0])
    reports = [pb.check.check_op(op, x, raise_exception=False, fast=True) for op in (square, wrong)]
    g = pb.inspect.graph(square(wrong(leaf(1.0, 2.0))).sum(), reports=reports)
    assert [node.verdict for node in g.nodes] == ["wrong: factor", "right", None]


def test_graph_as_json_is_strict_and_complete():
    w = leaf(1.0, -1.0)
    with pb.inspect.record() as r, np.errstate(all="ignore"):
        loss = square(w / 0).sum()
    found = json.loads(r.graph(loss).to_json(), parse_constant=lambda text: pytest.fail(text))
    assert set(found) == {
        *("nodes", "leaves", "edges", "outputs", "blocks", "faults", "bytes_alone"),
        "bytes_shared",
    }
    assert [node["max"] for node in found["nodes"]] == [None, None, None]
    assert [node["op"] for node in found["nodes"]] == [None, "square", None]
    assert found["nodes"][1]["inputs"] == [found["nodes"][0]["id"]]
    assert found["leaves"][0]["name"] == "w"


def test_graph_as_text_mermaid_and_dot_names_what_it_has():
    w = leaf(1.0, 2.0)
    y = w
    for _ in range(5):
        y = square(y) * w
    g = pb.inspect.graph(y.sum())
    lines = str(g).splitlines()
    assert lines[0].startswith("graph of 11 nodes and 1 leaf: ")
    assert lines[1] == "  leaves: w (2,)"
    assert [line.split("  ")[1] for line in lines[2:3]] == ["5 x squareBackward, MulBackward"]
    assert repr(g) == "<Graph of 11 nodes and 1 leaf>"
    mermaid, dot = g.to_mermaid().splitlines(), g.to_dot().splitlines()
    assert mermaid[0] == "flowchart TD"
    assert sum("-->" in line for line in mermaid) == 2
    assert dot[0] == "digraph {"
    assert sum("->" in line for line in dot) == 2


def test_graph_prints_as_a_rich_tree():
    rich = pytest.importorskip("rich.console")
    console = rich.Console(width=100, file=__import__("io").StringIO())
    console.print(pb.inspect.graph(square(leaf(2.0)).sum()))
    assert "SumBackward" in console.file.getvalue()


def test_graph_of_a_view_is_brought_up_to_date_with_its_base():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    v = y[:2]
    y.mul_(x.detach())
    assert names_of(pb.inspect.graph(v)) == ["MulBackward", "MulBackward", "GetitemBackward"]


def test_graph_leaves_a_dict_of_the_callers_variables_as_it_is():
    w = leaf(1.0)
    mine = locals()
    pb.inspect.graph(w * 2)
    assert mine["w"] is w


def test_graph_survives_what_callers_may_hold_and_looks_at_a_part_of_it():
    class Odd(dict):
        def items(self):
            raise OSError

    gone = weakref.proxy(Odd())
    large, odd, kept = list(range(3_000_000)), Odd(a=1), {"inner": [leaf(1.0), leaf(2.0)]}
    g = pb.inspect.graph(kept["inner"][1] * 2)
    assert [x.name for x in g.leaves] == ["kept['inner'][1]"]
    assert (len(large), len(odd)) == (3_000_000, 1)
    del gone


def test_graph_prefers_a_public_name_to_one_with_an_underscore():
    w = leaf(1.0)
    _, _5 = w, w
    assert pb.inspect.graph(w * 2).leaves[0].name == "w"


def test_graph_leaves_the_users_metadata_alone():
    y = leaf(1.0) * 2
    y.grad_fn.metadata["record"] = "mine"
    assert pb.inspect.graph(y).nodes[0].line is None
    assert y.grad_fn.metadata == {"record": "mine"}


def test_graph_refuses_what_is_no_report():
    y = leaf(1.0) * 2
    with pytest.raises(
        ArgumentTypeError, match=r"reports of pb\.check\.check_op required, got str"
    ):
        pb.inspect.graph(y, reports=["right"])


def test_graph_as_text_takes_names_for_no_markup_of_another_language():
    rich = pytest.importorskip("rich.console")
    strange = '[/b] <i> "q" #1'
    op = pb.autograd_function(lambda ctx, x: x * 1, lambda ctx, g: {"x": g}, name=strange)
    g = pb.inspect.graph(op(leaf(1.0)))
    console = rich.Console(width=100, file=__import__("io").StringIO())
    console.print(g)
    assert strange in console.file.getvalue()
    assert "[/b] #lt;i#gt; #quot;q#quot; #35;1" in g.to_mermaid()
    assert r"[/b] <i> \"q\" #1" in g.to_dot()
