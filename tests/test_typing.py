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


    x = pb.ones(2)
    """

CASES = {
    "the result of an operation of one's own": ("scaled(x, 3.0)", "Tensor"),
    "several results": ("both(x)", "tuple[pullback.core.tensor.tensor.Tensor, "),
    "a written call": ("pb.mul(x, 2.0)", "Tensor"),
    "a method": ("x.sum(dim=0)", "Tensor"),
    "a wrong type": ("scaled('x')", 'incompatible type "str"; expected "Tensor"'),
    "a misspelt name": ("scaled(x, sale=3.0)", 'Unexpected keyword argument "sale"'),
    "too many arguments": ("pb.mul(x, x, x)", 'Too many positional arguments for "mul"'),
}


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
