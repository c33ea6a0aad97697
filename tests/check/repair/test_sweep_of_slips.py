"""Right rules, each broken by one edit of its syntax tree, and what the search makes of them.

A change is found for 93 of 99; the others lack a factor that is computed nowhere.
"""

import ast
import copy
import itertools
import re

import numpy as np
import pytest
from tests.check._repair import defined, first_report

import pullback as pb

# The arguments, what forward returns, and what backward does.
OPERATIONS = {
    "sine": ("x", "pb.sin(x)", "g * pb.cos(x)"),
    "cosine": ("x", "pb.cos(x)", "-g * pb.sin(x)"),
    "exponential": ("x", "pb.exp(2 * x)", "2 * g * pb.exp(2 * x)"),
    "logarithm": ("x", "pb.log(x)", "g / x"),
    "square": ("x", "x * x", "2 * g * x"),
    "cube": ("x", "x**3", "3 * g * x**2"),
    "reciprocal": ("x", "1 / x", "-g / x**2"),
    "tangent": ("x", "pb.tanh(x)", "g * (1 - pb.tanh(x) ** 2)"),
    "logistic": ("x", "1 / (1 + pb.exp(-x))", "g * pb.exp(-x) / (1 + pb.exp(-x)) ** 2"),
    "root": ("x", "pb.sqrt(x)", "g / (2 * pb.sqrt(x))"),
    "gaussian": ("x", "pb.exp(-x * x)", "-2 * g * x * pb.exp(-x * x)"),
    "polynomial": ("x", "x**3 - 4 * x", "g * (3 * x**2 - 4)"),
    "entropy": ("x", "x * pb.log(x)", "g * (pb.log(x) + 1)"),
    "damped": ("x", "x * pb.cos(x)", "g * (pb.cos(x) - x * pb.sin(x))"),
    "product": ("x, y", "x * y", "{'x': g * y, 'y': g * x}"),
    "quotient": ("x, y", "x / y", "{'x': g / y, 'y': -g * x / y**2}"),
    "difference": ("x, y", "3 * x - y * y", "{'x': 3 * g, 'y': -2 * g * y}"),
    "distance": ("x, y", "(x - y) ** 2", "{'x': 2 * g * (x - y), 'y': 2 * g * (y - x)}"),
    "hypotenuse": (
        "x, y",
        "pb.sqrt(x * x + y * y)",
        "{'x': g * x / pb.sqrt(x * x + y * y), 'y': g * y / pb.sqrt(x * x + y * y)}",
    ),
    "power": ("x, y", "x**y", "{'x': g * y * x ** (y - 1), 'y': g * x**y * pb.log(x)}"),
    "wave": ("x, y", "x * pb.sin(y)", "{'x': g * pb.sin(y), 'y': g * x * pb.cos(y)}"),
    "matrix_product": ("a, b", "a @ b", "{'a': g @ b.T, 'b': a.T @ g}"),
    "transposed": ("a, b", "a.T @ b", "{'a': b @ g.T, 'b': a @ g}"),
    "gram": ("a", "a @ a.T", "(g + g.T) @ a"),
    "scaled_product": ("a, b", "2 * (a @ b)", "{'a': 2 * (g @ b.T), 'b': 2 * (a.T @ g)}"),
}
OTHER_OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
}  # fmt: skip
SIBLINGS = {"sin": "cos", "cos": "sin"}
OTHER_NAMES = {"x": "y", "y": "x", "a": "b", "b": "a"}


def texts(name):
    args, value, rule = OPERATIONS[name]
    names = args.split(", ")
    kept = ", ".join(f"{each}={each}" for each in names)
    lines = "".join(f"    {each} = ctx.saved_variables.{each}\n" for each in names)
    rules = (
        f"def forward(ctx, {args}):\n    ctx.save_for_backward({kept})\n    return {value}\n",
        f"def backward(ctx, g):\n{lines}    return {rule}\n",
    )
    return tuple(ast.unparse(ast.parse(each)) + "\n" for each in rules)


COUNT = itertools.count()


def operation(forward, backward):
    head = "import pullback as pb\n"
    file = f"<slip {next(COUNT)}>"
    return pb.autograd_function(
        defined(head + forward, "forward", file + "f"), defined(head + backward, "backward", file)
    )


def inputs(name, rng):
    args = OPERATIONS[name][0].split(", ")
    return [rng.uniform(0.4, 1.6, (3, 3) if each in "ab" else 4) for each in args]


def slips(node, args):
    """Yield what may stand in the place of an expression by mistake."""
    if isinstance(node, ast.BinOp):
        if type(node.op) in OTHER_OPERATORS:
            yield ast.BinOp(node.left, OTHER_OPERATORS[type(node.op)](), node.right)
        if isinstance(node.op, (ast.Sub, ast.Div, ast.MatMult)):
            yield ast.BinOp(node.right, node.op, node.left)
        yield ast.UnaryOp(ast.USub(), node)
        if isinstance(node.op, ast.Mult):
            yield from (node.left, node.right)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Attribute) and node.attr == "T":
        yield node.value
    elif isinstance(node, ast.Attribute) and node.attr in SIBLINGS:
        yield ast.Attribute(node.value, SIBLINGS[node.attr], ast.Load())
    elif isinstance(node, ast.Name) and OTHER_NAMES.get(node.id, "-") in args:
        yield ast.Name(OTHER_NAMES[node.id], ast.Load())
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)


def broken(backward, args):
    """Return the texts of a rule with one slip each."""
    found = []
    tree = ast.parse(backward)
    count = len(list(ast.walk(tree)))
    for k in range(count):
        for j in itertools.count():
            changed = copy.deepcopy(tree)
            value = changed.body[0].body[-1].value
            node = list(ast.walk(changed))[k]
            if node not in ast.walk(value):
                break
            options = list(slips(node, args))
            if j >= len(options):
                break
            found.append(ast.unparse(Replacing(node, options[j]).visit(changed)) + "\n")
    return found


class Replacing(ast.NodeTransformer):
    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else self.generic_visit(node)


def is_right(op, arrays):
    """Return whether gradients agree with central differences."""
    rng = np.random.default_rng(3)
    tensors = [pb.tensor(x, requires_grad=True) for x in arrays]
    result = op(*tensors)
    weights = rng.standard_normal(result.shape)
    try:
        (result * pb.asarray(weights)).sum().backward()
    except Exception:  # a gradient of another shape
        return False
    for i, x in enumerate(arrays):
        slopes = np.zeros(x.shape)
        for index in np.ndindex(x.shape):
            step = np.zeros(x.shape)
            step[index] = 1e-6
            ends = [np.asarray(op(*arrays[:i], x + s * step, *arrays[i + 1 :])) for s in (1, -1)]
            slopes[index] = ((ends[0] - ends[1]) * weights).sum() / 2e-6
        if not np.allclose(tensors[i].grad.numpy(), slopes, 1e-5, 1e-6):
            return False
    return True


REPORTED = re.compile(
    r"line (\d+) of (backward|forward): with `(.*?)`( \(.*?\))? instead of `(.*?)` the gradient"
)


def mended(pair, report):
    """Return the operation with the reported changes applied to its text."""
    found = {"forward": pair[0].split("\n"), "backward": pair[1].split("\n")}
    for failure in report.failures:
        for line in filter(REPORTED.search, failure.repair.split("\n")):
            number, role, after, borrowed, before = REPORTED.search(line).groups()
            for name in re.findall(r"`(\w+)`", borrowed or ""):  # all arguments are saved
                after = re.sub(rf"(?<![\w.]){name}(?= |$|\))", f"ctx.saved_variables.{name}", after)
                after = re.sub(rf"^ctx.saved_variables.{name} = ", f"{name} = ", after)
            lines, k = found[role], int(number) - 2  # after the import, from 0
            for old, new in zip(before.split("; "), after.split("; "), strict=True):
                k = next(k for k in range(k, len(lines)) if old in lines[k])
                assert len(re.findall(rf"(?<!\w){re.escape(old)}(?!\w)", lines[k])) == 1, line
                lines[k] = re.sub(
                    rf"(?<!\w){re.escape(old)}(?!\w)", lambda _, new=new: new, lines[k]
                )
    return operation("\n".join(found["forward"]), "\n".join(found["backward"]))


def sampled(name):
    forward, backward = texts(name)
    rng = np.random.default_rng(len(name))
    found = broken(backward, OPERATIONS[name][0])
    chosen = rng.permutation(len(found))[:4]
    arrays = inputs(name, rng)
    made = [found[k] for k in sorted(chosen)]
    return [(forward, each) for each in made if not is_right(operation(forward, each), arrays)]


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_rules_are_right(name):
    assert is_right(operation(*texts(name)), inputs(name, np.random.default_rng(0)))


@pytest.mark.stress
def test_most_slips_are_found_and_what_is_found_is_right_at_other_inputs():
    tried = 0
    missed, spoilt = [], []
    for name in OPERATIONS:
        for pair in sampled(name):
            tried += 1
            report = first_report(operation(*pair), *inputs(name, np.random.default_rng(1)))
            assert report.failures
            if "instead of" not in report.failures[0].repair:
                missed.append(pair[1])
            elif not is_right(mended(pair, report), inputs(name, np.random.default_rng(2))):
                spoilt.append((pair[1], str(report)))
    assert tried > 60
    assert not spoilt
    assert len(missed) <= 0.15 * tried
