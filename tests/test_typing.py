"""What a type checker says of programs that use pullback."""

import os
import textwrap

import pytest
from mypy import api

PROGRAM = """
    from typing import Any

    import pullback as pb


    def forward(ctx: Any, x: pb.Tensor, scale: float = 2.0) -> pb.Tensor:
        return x * scale


    def backward(ctx: Any, grad_output: pb.Tensor) -> dict[str, Any]:
        return {"x": grad_output * 2.0}


    scaled = pb.autograd_function(forward, backward)


    @pb.autograd_function
    def both(ctx: Any, x: pb.Tensor) -> tuple[pb.Tensor, pb.Tensor]:
        return x * 1, x * 2


    @pb.autograd_function
    def bare(ctx, x, n=2):  # type: ignore[no-untyped-def]
        return x * n


    class Exp(pb.Function):
        @staticmethod
        def forward(ctx: pb.Context, x: pb.Tensor, scale: float = 1.0) -> pb.Tensor:
            ctx.save_for_backward(x=x)
            ctx.scale = scale
            return x.exp() * scale

        @staticmethod
        def backward(ctx: pb.Context, g: pb.Tensor) -> dict[str, Any]:
            return {"x": g * ctx.saved_variables.x.exp()}


    class Bare(pb.Function):
        @staticmethod
        def forward(ctx, x, n=2):  # type: ignore[no-untyped-def]
            return x * n


    class Split(pb.Function):
        @staticmethod
        def forward(x: pb.Tensor, n: int = 2) -> pb.Tensor:
            return x * n

        @staticmethod
        def setup_context(ctx: pb.Context, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(n=inputs[1])


    class Pair(pb.Function):
        @staticmethod
        def forward(x: pb.Tensor, y: pb.Tensor) -> pb.Tensor:
            return x * y

        @staticmethod
        def setup_context(ctx: pb.Context, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(x=inputs[0], y=inputs[1])


    x, ctx = pb.ones(2), pb.Context()
    """

CASES = {
    "the result of an operation of one's own": ("scaled(x, 3.0)", "Tensor"),
    "several results": ("both(x)", "tuple[pullback.core.tensor.tensor.Tensor, "),
    "a written call": ("pb.mul(x, 2.0)", "Tensor"),
    "a method": ("x.sum(dim=0)", "Tensor"),
    "the result of a class": ("Exp.apply(x)", "Tensor"),
    "the result of a class with setup_context": ("Split.apply(x)", "Tensor"),
}
_NAME, _TYPE = "nexpected keyword argument", "incompatible type"
_MANY, _FEW = "Too many", "Missing positional argument"
_ABSENT = '"Context" has no attribute'
WRONG = {
    "scaled('x')": _TYPE,
    "scaled(x, sale=3.0)": _NAME,
    "scaled(x, 3.0, 4.0)": _MANY,
    "scaled()": _FEW,
    "scaled(x, scale='3')": _TYPE,
    "both(x, 2)": _MANY,
    "both(y=x)": _NAME,
    "bare(x, m=3)": _NAME,
    "bare(x, 2, 3)": _MANY,
    "bare()": _FEW,
    "Exp.apply(x, sale=3.0)": _NAME,
    "Exp.apply('x')": _TYPE,
    "Exp.apply(x, 1.0, 2.0)": _MANY,
    "Exp.apply()": _FEW,
    "Bare.apply(x, m=3)": _NAME,
    "Bare.apply(x, 2, 3)": _MANY,
    "Split.apply(x, m=3)": _NAME,
    "Split.apply(x, 'n')": _TYPE,
    "Pair.apply(x)": _FEW,
    "ctx.save_for_bakward(x)": _ABSENT,
    "ctx.need_input_grad": _ABSENT,
    "ctx.saved_tensor": _ABSENT,
    "pb.nn.ReLU(inplce=True)": _NAME,
    "pb.nn.Dropout(p='half')": _TYPE,
    "pb.mul(x, x, x)": 'Too many positional arguments for "mul"',
}
RIGHT = [
    *(
        "pb.nn.ReLU(inplace=True)",
        "scaled(x)",
        "scaled(x, 3.0)",
        "scaled(x=x, scale=3)",
        "scaled(scale=3.0, x=x)",
    ),
    *("both(x)", "both(x=x)", "bare(x)", "bare(x, n=3)", "bare(x=x, n=3)", "bare(2.0, 3)"),
    *("Exp.apply(x)", "Exp.apply(x, 2.0)", "Exp.apply(x, scale=2.0)", "Exp.apply(x=x)"),
    *("Bare.apply(x)", "Bare.apply(x, n=3)", "Split.apply(x)", "Split.apply(x, n=3)"),
    *("Pair.apply(x, x)", "Pair.apply(x, y=x)"),
    *("ctx.save_for_backward(x, n=3)", "ctx.needs_input_grad.x", "ctx.saved_tensors[0]"),
    *("pb.nn.MSELoss(reduction='sum')", "pb.nn.Dropout(0.1)", "pb.nn.Flatten(start_dim=2)"),
    *("ctx.mark_dirty(x)", "scaled.apply(x, scale=2.0)", "scaled.forward"),
]
CASES |= {text: (text, said) for text, said in WRONG.items()}
CASES |= {text: (text, "") for text in RIGHT}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What mypy says of the program and of every case, in one run."""
    path = tmp_path_factory.mktemp("typing") / "program.py"
    lines = [f"reveal_type({expression})" for expression, _ in CASES.values()]
    path.write_text(textwrap.dedent(PROGRAM) + "\n".join(lines) + "\n")
    options = ["--config-file=", "--strict", f"--cache-dir={os.devnull}"]  # it has old paths
    output, errors, _ = api.run([*options, str(path)])
    assert errors == ""
    first = len(path.read_text().splitlines()) - len(lines) + 1
    said = dict.fromkeys(range(first, first + len(lines)), "")
    for line in output.splitlines():
        number = line.removeprefix(f"{path}:").partition(":")[0]
        if number.isdecimal():
            assert int(number) in said, line
            said[int(number)] += line + "\n"
    return dict(zip(CASES, said.values(), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_a_type_checker_sees_the_signature(report, case):
    assert CASES[case][1] in report[case]
    assert ("error:" in report[case]) == (case in WRONG)
