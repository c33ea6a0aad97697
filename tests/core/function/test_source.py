"""`pb.source` and `pullback source`: the call and the backward that are written for an operation.

The files in golden/ hold them for six operations; `python -m tests.core.function.test_source`
writes these anew, and the difference is read before it is committed.
"""

from pathlib import Path

import pytest

import pullback as pb
from pullback.cli import main
from pullback.errors import ArgumentTypeError

GOLDEN = Path(__file__).parent / "golden"


def scale_forward(ctx, x, weight, power=2):
    ctx.save_for_backward(x=x, weight=weight)
    ctx.power = power
    return x**power * weight


def scale_backward(ctx, grad_output):
    x, weight = ctx.saved_tensors
    slope = ctx.power * x ** (ctx.power - 1) * weight
    return {"x": grad_output * slope, "weight": grad_output * x**ctx.power}


def polar_forward(ctx, x, y):
    ctx.save_for_backward(x=x, y=y)
    return pb.hypot(x, y), pb.atan2(y, x)


def polar_backward(ctx, grad_radius, grad_angle):
    x, y = ctx.saved_tensors
    square = x * x + y * y
    radius = square.sqrt()
    return {
        "x": grad_radius * x / radius - grad_angle * y / square,
        "y": grad_radius * y / radius + grad_angle * x / square,
    }


def total_forward(ctx, tensors):
    return sum(tensors.values())


def total_backward(ctx, grad_output):
    return {"tensors": {"a": grad_output, "b": grad_output}}


def called(op, *args):
    """Return an operation after calls, which tell what forward saves."""
    for _ in range(2):  # after a transform, the first call is left to `Call`
        op(*args)
    return op


def operations():
    x, y = (pb.tensor([1.0, 2.0], dtype=pb.float64, requires_grad=True) for _ in "xy")
    scale = pb.autograd_function(scale_forward, scale_backward, name="scale")
    polar = pb.autograd_function(polar_forward, polar_backward, name="polar")
    total = pb.autograd_function(total_forward, total_backward, name="total", traverse=True)
    return {
        "mul": pb.mul,
        "sum": pb.sum,
        "permute": pb.permute,
        "scale": called(scale, x, y),
        "polar": called(polar, x, y),
        "total": called(total, {"a": x, "b": y}),
    }


@pytest.mark.parametrize("name", ["mul", "sum", "permute", "scale", "polar", "total"])
def test_the_source_of_an_operation_is_what_the_golden_file_holds(name):
    assert pb.source(operations()[name]) == (GOLDEN / f"{name}.txt").read_text()


def test_the_source_is_shown_as_it_is_by_the_prompt():
    text = pb.source(pb.exp)
    assert repr(text) == str(text)
    assert text.startswith("def exp(x, /, *, out=None):\n")


def test_the_source_of_a_function_class_is_that_of_its_operation():
    class Twice(pb.Function):
        @staticmethod
        def forward(ctx, value):
            return value * 2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2

    assert pb.source(Twice).startswith("def call(value):\n")
    assert "\ndef backward(node, g, wanted, recorded):\n" in pb.source(Twice)


def test_the_source_of_a_rule_that_is_not_written_is_that_of_the_call_alone():
    op = pb.autograd_function(lambda ctx, *xs: xs[0], lambda ctx, g: (g,), name="first")
    assert pb.source(op).startswith("def call(*xs):\n")
    assert "def backward" not in pb.source(op)


def test_source_refuses_what_is_no_operation():
    with pytest.raises(ArgumentTypeError, match="source: an operation or a function required"):
        pb.source(3)


OPS = """
import pullback as pb

@pb.autograd_function
def square(ctx, value):
    ctx.save_for_backward(value=value)
    return value * value

@square.backward
def _(ctx, grad_output):
    return {"value": 2 * ctx.saved_variables.value * grad_output}
"""


def test_the_command_source_takes_an_operation_of_a_file(tmp_path, monkeypatch, capsys):
    (tmp_path / "ops_of_mine.py").write_text(OPS)
    monkeypatch.chdir(tmp_path)
    assert main(["source", "ops_of_mine.py:square"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("def call(value):\n")
    assert "\ndef backward(node, g, wanted, recorded):\n" in text


if __name__ == "__main__":
    for each, op in operations().items():
        (GOLDEN / f"{each}.txt").write_text(pb.source(op))
