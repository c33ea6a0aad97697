"""`pb.inspect.record`: lines, times, values and gradients of what runs inside."""

import io
import json
import threading
import time

import numpy as np
import pytest

import pullback as pb
from pullback.inspect import page

square = pb.autograd_function(
    lambda ctx, x: (ctx.save_for_backward(x=x), x * x)[1],
    lambda ctx, g: {"x": 2 * g * ctx.saved_variables.x},
    name="square",
)
NOTED = ("shape", "dtype", "line", "seconds", "min", "max", "nan_count", "inf_count")
OF_BACKWARD = ("backward_seconds", "grad_norm", "grad_nan_count", "grad_inf_count")


def leaf(*values):
    return pb.tensor(values, dtype=pb.float64, requires_grad=True)


def fields(node, names):
    return [getattr(node, name) for name in names]


def test_record_notes_lines_shapes_and_values_of_forward():
    w = leaf(1.0, -2.0, 3.0)
    with pb.inspect.record():
        loss = square(w).sum()
    first, last = pb.inspect.graph(loss).nodes
    assert (first.shape, first.dtype, first.min, first.max, first.nan_count) == (
        *((3,), "float64", 1.0, 9.0, 0),
    )
    assert first.line.startswith("test_record.py:")
    assert (last.shape, last.min) == ((), 14.0)
    assert first.seconds > 0
    assert fields(first, OF_BACKWARD) == [None] * 4


def test_record_notes_gradients_and_times_of_backward():
    w = leaf(1.0, -2.0, 3.0)
    with pb.inspect.record() as r:
        loss = (square(w) * pb.tensor([1.0, 2.0, 2.0])).sum()
        loss.backward()
    first, second, last = r.graph().nodes
    assert (first.grad_norm, second.grad_norm, last.grad_norm) == (3.0, np.sqrt(3.0), 1.0)
    assert (first.grad_nan_count, first.released) == (0, True)
    assert all(node.backward_seconds > 0 for node in (first, second, last))


def test_record_notes_nothing_outside_of_its_block_nor_in_another_thread():
    w = leaf(1.0)
    made = []
    with pb.inspect.record() as r:
        thread = threading.Thread(target=lambda: made.append(square(w).sum()))
        thread.start()
        thread.join()
    made.append(square(w).sum())
    assert r.graph().nodes == ()
    for loss in made:
        (node, _) = pb.inspect.graph(loss).nodes
        assert fields(node, (*NOTED, *OF_BACKWARD)) == [None] * 12


def test_record_counts_nan_and_gives_the_range_of_the_other_numbers():
    w = leaf(1.0, -1.0, 4.0)
    with pb.inspect.record(), np.errstate(invalid="ignore"):
        loss = (w.sqrt() * 2).sum()
        loss.backward()
    sqrt, mul, total = pb.inspect.graph(loss).nodes
    assert fields(sqrt, ("min", "max", "nan_count")) == [1.0, 2.0, 1]
    assert (mul.nan_count, total.nan_count, total.min) == (1, 1, None)
    assert (sqrt.grad_nan_count, sqrt.grad_norm) == (0, np.sqrt(12.0))


@pytest.mark.parametrize("size", [3, 64, 65, 1000])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_record_gives_the_same_numbers_for_small_arrays_and_large_ones(size, dtype):
    values = np.random.default_rng(0).normal(size=size).astype(dtype)
    values[1] = np.nan
    w = pb.tensor(values, requires_grad=True)
    with pb.inspect.record():
        y = w * 2
        (pb.real(y) if dtype == "complex128" else y).sum().backward()
    node = pb.inspect.graph(y).nodes[0]
    known = np.abs(2 * values) if dtype == "complex128" else 2 * values
    assert node.nan_count == 1
    assert node.min == pytest.approx(np.nanmin(known), rel=1e-6)
    assert node.max == pytest.approx(np.nanmax(known), rel=1e-6)
    assert node.grad_norm == pytest.approx(np.sqrt(size))


@pytest.mark.parametrize("size", [4, 64, 65, 1000])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_record_counts_infinities_of_values_and_gradients(size, dtype):
    values = np.random.default_rng(0).uniform(1, 2, size=size).astype(dtype)
    values[:3] = 0.0, np.nan, np.inf
    w = pb.tensor(values, requires_grad=True)
    with pb.inspect.record(), np.errstate(all="ignore"):
        log, root = w.log(), (w * 1.0).sqrt()
        (log + root).sum().backward()
    g = pb.inspect.graph(log, root)
    log, mul, root = g.nodes
    assert fields(log, ("min", "max", "nan_count", "inf_count")) == [-np.inf, np.inf, 1, 2]
    assert fields(root, ("min", "nan_count", "inf_count", "grad_inf_count")) == [0.0, 1, 1, 0]
    assert fields(mul, ("inf_count", "grad_nan_count", "grad_inf_count")) == [1, 1, 1]


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_record_takes_a_gradient_of_extreme_numbers_for_no_infinity(factor):
    w = pb.tensor(np.full(100, 1.0), requires_grad=True)
    with pb.inspect.record():
        y = w * 1.0
        (y * factor).sum().backward()
    node = pb.inspect.graph(y).nodes[0]
    assert fields(node, ("grad_nan_count", "grad_inf_count")) == [0, 0]
    assert node.grad_norm == pytest.approx(10 * factor)


def overflowing():
    w = leaf(1.0, 800.0)
    with pb.inspect.record(), np.errstate(all="ignore"):
        high = w.exp() * 2.0
        loss = ((high - high) * 3.0).sum() + (w * 0.0).sqrt().sum()
        loss.backward()
    return pb.inspect.graph(loss)


def test_faults_of_a_graph_say_where_infinities_and_nan_begin_and_pass():
    g = overflowing()
    names = {node.id: node.name.removesuffix("Backward") for node in g.nodes}
    stages = {
        kind: [(names[k], stage) for k, stage in found.items()] for kind, found in g.faults.items()
    }
    assert stages["infinity"] == [
        ("Exp", "begins here"),
        ("Mul", "passes"),
        ("Mul", "in gradient"),
        ("Sqrt", "begins here"),
    ]
    assert stages["NaN"][0] == ("Sub", "begins here")
    assert {stage for name, stage in stages["NaN"][1:]} == {"passes"}


def test_text_json_rich_and_page_say_the_same_faults():
    rich = pytest.importorskip("rich.console")
    g = overflowing()
    console = rich.Console(width=200, record=True, file=io.StringIO())
    console.print(g)
    for text in (str(g), console.export_text()):
        for name, fault in (
            ("ExpBackward", "infinity begins here"),
            ("SubBackward", "NaN begins here"),
            ("SqrtBackward", "infinity begins here"),
        ):
            (line,) = [line for line in text.splitlines() if name in line]
            assert line.endswith(f"✗ {fault}")
    faults = json.loads(g.to_json())["faults"]
    columns = page._packed(g)["nodes"]
    for kind, found in g.faults.items():
        assert faults[kind] == {str(k): stage for k, stage in found.items()}
        known, numbers = columns[kind]
        assert [known[k] for k in numbers] == [found.get(node.id) for node in g.nodes]


def test_record_holds_what_small_arrays_had_when_they_were_computed():
    w = leaf(1.0, 2.0)
    with pb.inspect.record() as r:
        y = w * 2
        with pb.no_grad():
            y += 100
    assert r.graph(y).nodes[0].max == 4.0


def test_record_notes_all_results_of_an_operation_with_several():
    w = leaf(1.0, 5.0, 3.0)
    with pb.inspect.record() as r:
        low, high = w.split([1, 2])
        (low.sum() + 2 * high.sum()).backward()
    split = next(node for node in r.graph().nodes if node.name.startswith("Split"))
    assert (split.min, split.max, split.grad_norm) == (1.0, 5.0, 3.0)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_record_within_anomaly_detection_leaves_both_at_work():
    with pb.detect_anomaly(), pb.inspect.record() as r:
        y = leaf(-1.0) * 2
        with pytest.raises(pb.errors.AnomalyError), np.errstate(invalid="ignore"):
            y.sqrt()
    assert [node.max for node in r.graph().nodes] == [-2.0]


def test_record_can_be_entered_again_and_decorates():
    w = leaf(2.0)
    r = pb.inspect.record()
    with r:
        first = w * 2
    with r:
        second = w * 3
    assert [node.max for node in r.graph().nodes] == [4.0, 6.0]
    assert (first + second).item() == 10.0


def test_record_restores_the_mode_after_an_error():
    from pullback.core.graph.modes import RECORD, STATE

    with pytest.raises(ZeroDivisionError), pb.inspect.record():
        raise ZeroDivisionError
    assert STATE.get() is RECORD


def slow(x, seconds=0.05):
    time.sleep(seconds)
    return x * 2


def test_record_times_an_operation_apart_from_those_within_it():
    def forward(ctx, x):
        with pytest.raises(pb.errors.ShapeError):
            x @ pb.ones((7, 7))
        return slow(x).exp()

    op = pb.autograd_function(forward, lambda ctx, g: {"x": 2 * g}, name="outer")
    with pb.inspect.record() as r:
        y = op(leaf(1.0, 2.0)).sum()
    outer, total = r.graph(y).nodes
    assert outer.seconds > 0.05 > total.seconds


def test_record_gives_no_operation_the_time_of_another():
    x = leaf(1.0, 2.0)
    with pb.inspect.record() as r:
        y = pb.checkpoint(lambda t: slow(t.sin()))(x)
    (node,) = [n for n in r.graph(y).nodes if n.name.startswith("Checkpoint")]
    assert node.seconds is None


def test_record_times_a_rule_that_runs_a_backward_of_its_own():
    def backward(ctx, g):
        time.sleep(0.05)
        with pb.enable_grad():
            inner = leaf(1.0)
            (inner * 2).sum().backward()
        return {"x": g}

    op = pb.autograd_function(lambda ctx, x: x * 1, backward, name="outer")
    with pb.inspect.record() as r:
        y = op(leaf(1.0)).sum()
        y.backward()
    assert r.graph(y).nodes[0].backward_seconds > 0.05


def test_record_decorates_a_function():
    r = pb.inspect.record()

    @r
    def program(w):
        return w * 3

    first, second = program(leaf(2.0)), program(leaf(5.0))
    assert [node.max for node in r.graph().nodes] == [6.0, 15.0]
    assert (first + second).item() == 21.0
    assert len(r.graph().nodes) == 2


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_record_goes_on_within_anomaly_detection_and_after_it():
    with pb.inspect.record() as r:
        with pb.detect_anomaly():
            first = leaf(1.0) * 2
            with pytest.raises(pb.errors.AnomalyError), np.errstate(divide="ignore"):
                leaf(0.0).log()
        with pb.autograd.set_detect_anomaly(True):
            second = leaf(1.0) * 3
        with pb.autograd.set_detect_anomaly(False), np.errstate(divide="ignore"):
            third = leaf(0.0).log()
    found = [r.graph(each).nodes[0].max for each in (first, second)]
    assert found == [2.0, 3.0]
    assert r.graph(third).nodes[0].line.startswith("test_record.py:")


@pytest.mark.parametrize(
    ("dtype", "value", "count", "norm"),
    [
        ("float16", 300, 4, 600),
        ("float16", 1, 99_856, 316),
        ("float32", 1e25, 100, 1e26),
        ("float32", 1e-25, 100, 1e-24),
        ("float64", 1e200, 100, 1e201),
    ],
)
def test_record_gives_norms_that_are_out_of_the_range_of_squares(dtype, value, count, norm):
    w = pb.tensor(np.zeros(count, dtype), requires_grad=True)
    with pb.inspect.record():
        y = w * 1
        y.backward(pb.tensor(np.full(count, value, dtype)))
    assert pb.inspect.graph(y).nodes[0].grad_norm == pytest.approx(norm, rel=1e-3)


def test_record_forgets_nodes_that_are_gone():
    with pb.inspect.record() as r:
        for _ in range(3000):
            leaf(1.0) * 2
    assert len(r._recorder.nodes) <= 2001
