"""Write docs/reference/, one entry an operation, from the declarations.

    python docs/generate.py [--check]

An entry is what is declared: the signature, the formula, the rule of each input in the words of
the code, the rows of edge-values.md that name it, where it runs, and an example that was run to
get what it prints. `--check` writes nothing and fails where a page is not what it would be.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import inspect
import re
import sys
import textwrap
from pathlib import Path

import numpy as np

import pullback as pb
from pullback.ops.declare import REGISTRY, Composition
from pullback.ops.samples import ELEMENTWISE, Sample

HERE = Path(__file__).parent
PAGES = HERE / "reference"
LARGEST = 12  # elements of an example's input


SPACES = {"pb": pb, "pb.nn.functional": pb.nn.functional, "pb.linalg": pb.linalg, "pb.fft": pb.fft}


def themes():
    """Return the functions of each theme, the file that they are in, by their names."""
    found = {}
    for space in SPACES.values():
        for node in ast.walk(ast.parse(Path(space.__file__).read_text())):
            if isinstance(node, ast.ImportFrom) and re.match(r"pullback\.(ops|nn)\.", node.module):
                names = {a.name: getattr(space, a.name) for a in node.names if a.asname is None}
                functions = {n: f for n, f in names.items() if not inspect.ismodule(f)}
                found.setdefault(node.module.rpartition(".")[2], {}).update(functions)
    return dict(sorted(found.items()))


def heading(theme):
    """Return the first line of a theme's file: of the functions, or else of the primitives."""
    for package in ("ops.functions", "nn", "ops.primitives"):
        module = sys.modules.get(f"pullback.{package}.{theme}")
        if module is not None:
            return inspect.getdoc(module).split("\n\n")[0].replace("\n", " ")
    raise LookupError(theme)


def where_found(function):
    """Return the spellings under which users reach a function, its own name first; and methods."""
    names = [
        f"{prefix}.{name}"
        for prefix, space in SPACES.items()
        for name in space.__all__
        if getattr(space, name) is function
    ]
    names.sort(key=lambda name: name.rpartition(".")[2] != function.__name__)  # its own comes first
    short = {name.rpartition(".")[2] for name in names}
    methods = [
        f"x.{n}"
        for n, f in vars(pb.Tensor).items()
        if n[0] != "_" and (f is function or n.removesuffix("_") in short)
    ]
    return names, sorted(methods)


# -- the rules, in the words of the code ----------------------------------------------------------
@functools.cache
def functions_of(path):
    """Return the functions and lambdas of a source file by the line they begin on."""
    found = {}
    for node in ast.walk(ast.parse(Path(path).read_text())):
        if isinstance(node, (ast.Lambda, ast.FunctionDef)):
            found.setdefault(node.lineno, []).append(node)
    return found


def source_of(rule):
    """Return what a rule returns, as code, or what its docstring says where it takes steps."""
    code = rule.__code__
    nodes = functions_of(code.co_filename).get(code.co_firstlineno, [])
    names = list(code.co_varnames[: code.co_argcount])
    for node in nodes:
        if [a.arg for a in node.args.args] == names:
            if isinstance(node, ast.Lambda):
                return f"`{ast.unparse(node.body)}`"
            body = [s for s in node.body if not is_text(s)]
            if len(body) == 1 and isinstance(body[0], ast.Return):
                return f"`{ast.unparse(body[0].value)}`"
    summary = (inspect.getdoc(rule) or "").split("\n")[0]
    return summary or f"`{rule.__name__.strip('_')}`, in steps"


def is_text(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def gradient_lines(op):
    """Say what the gradient of an operation is."""
    if not op.differentiable:
        return ["**Gradient**: none; the result never requires grad."]
    if isinstance(op, Composition):
        return ["**Gradient**: that of the operations it is made of."]
    if not op.declared:
        return ["**Gradient**: one rule for all inputs together."]
    lines = ["**Gradient**, with `g` the gradient of the result `out`:", ""]
    for name in op.inputs:
        if name not in op.declared:
            lines.append(f"* `{name}`: no rule; asking for it is an error")
        elif op.declared[name] is None:
            lines.append(f"* `{name}`: none")
        else:
            lines.append(f"* `{name}`: {source_of(op.declared[name])}")
    return lines


# -- edge values ----------------------------------------------------------------------------------
@functools.cache
def edge_rows():
    """Return the rows of edge-values.md that are about an expression."""
    text = (HERE / "edge-values.md").read_text()
    return [line for line in text.splitlines() if line.startswith("| `")]


def edges_of(names):
    """Return the table of edge values of a function known by these names."""
    short = {name.rpartition(".")[2] for name in names}
    called = re.compile(
        r"\b(?:pb|x|fft|linalg|functional)\.(?:" + "|".join(map(re.escape, short)) + r")_?\("
    )
    rows = [row for row in edge_rows() if called.search(row.split("|")[1])]
    if not rows:
        return []
    return ["", "| edge | at | value | gradient | why |", "|---|---|---|---|---|", *rows]


# -- examples -------------------------------------------------------------------------------------
def example_of(function, name, declaration):
    """Return an example with what it prints: the docstring's, or a call on drawn numbers."""
    doc = inspect.getdoc(function) or ""
    if ">>>" in doc:
        block = doc[doc.index(">>>") :]
        return textwrap.dedent(block).strip().splitlines()
    samples = declaration.samples if declaration.call is declaration.public else ()
    if samples and samples == ELEMENTWISE.get(len(samples[0].shapes)):
        samples = (Sample(((3,),) * len(samples[0].shapes), {}),)
    for sample in samples:
        with contextlib.suppress(Exception), np.errstate(all="ignore"):
            return called_example(name, declaration, sample)
    return []


def called_example(name, declaration, sample):
    """Return the lines of a call on one sample."""
    sizes = [int(np.prod(shape)) for shape in sample.shapes]
    if not sizes or 0 in sizes or max(sizes) > LARGEST:
        raise ValueError("nothing to show")
    rng = np.random.default_rng(0)
    space = {"pb": pb}
    lines = [">>> import pullback as pb"]
    for letter, size, shape in zip(declaration.primitive.inputs, sizes, sample.shapes, strict=True):
        domain = declaration.domain[letter]
        values = rng.uniform(domain.low, domain.high, size).round(2)
        if domain.within is not None or domain.kind not in "fib" or domain.step:
            raise ValueError("not drawn here")
        kind = {"b": bool, "i": int, "f": float}[domain.kind]
        values = (values > values.mean()) if kind is bool else values.astype(kind)
        wanted = declaration.primitive.differentiable and kind is float
        grad = ", requires_grad=True" if wanted else ""
        line = f"{letter} = pb.tensor({values.reshape(shape).tolist()}{grad})"
        exec(line, space)
        lines.append(f">>> {line}")
    inputs = declaration.primitive.inputs
    settings = [f"{key}={value!r}" for key, value in sample.settings.items()]
    call = f"{name}({', '.join([*inputs, *settings])})"
    lines += shown(call, space)
    tracked = [letter for letter in inputs if space[letter].requires_grad]
    if tracked:
        lines.append(f">>> {call}.sum().backward()")
        exec(f"{call}.sum().backward()", space)
        lines += [line for letter in tracked for line in shown(f"{letter}.grad", space)]
    if len(call) > 90 or any("nan" in line for line in lines):
        raise ValueError("nothing to show")
    return lines


def shown(expression, space):
    """Return an expression and what it prints."""
    return [f">>> {expression}", *repr(eval(expression, space)).splitlines()]


# -- pages ----------------------------------------------------------------------------------------
def signature_of(function):
    """Return the parameters of a function without the annotations."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def entry(function):
    """Return the lines of one function's entry."""
    names, methods = where_found(function)
    name = names[0]
    doc = inspect.getdoc(function) or ""
    lines = [f"## `{name}`", "", "```text", f"{name}{signature_of(function)}", "```", ""]
    prose = re.split(r"\n\n\w+\n-{3,}", doc)[0]  # what stands before the first section
    lines += [prose, ""]
    others = [*names[1:], *methods]
    if others:
        lines += [f"Also {', '.join(f'`{other}`' for other in others)}.", ""]
    declaration = REGISTRY.get(getattr(getattr(function, "primitive", None), "name", ""))
    if declaration is None:
        example = doc[doc.index(">>>") :].splitlines() if ">>>" in doc else []
    else:
        lines += [*gradient_lines(declaration.primitive), *edges_of([*names, *methods]), ""]
        lines += [libraries(declaration), ""]
        example = example_of(function, name, declaration)
    # A blank line before the fence ends what the last example prints.
    return [*lines, "```pycon", *example, "", "```", ""] if example else lines


def libraries(declaration):
    """Say which array libraries run an operation."""
    forward = getattr(declaration.primitive, "forward", declaration.public)
    names = {*forward.__code__.co_names, *forward.__code__.co_freevars}
    if "special" in names:
        return "Runs on NumPy (with SciPy), CuPy and every library that follows the Array API."
    return "Runs on NumPy, CuPy and every library that follows the Array API."


def pages():
    """Return the text of each page by its name."""
    made, index, seen = {}, [], set()
    for theme, functions in themes().items():
        lines = [f"# {theme}", "", heading(theme), ""]
        for _, function in sorted(functions.items(), key=lambda item: item[0].lower()):
            if not callable(function) or inspect.isclass(function) or id(function) in seen:
                continue
            seen.add(id(function))
            spelled = where_found(function)[0]
            if spelled:
                lines += entry(function)
                index.append((spelled[0], theme, kind_of(function)))
        made[f"{theme}.md"] = "\n".join(lines).rstrip() + "\n"
    made["index.md"] = index_page(index)
    return made


def kind_of(function):
    """Say in a word where a function's gradient comes from."""
    op = getattr(function, "primitive", None)
    if op is None:
        return "makes or describes tensors"
    if not op.differentiable:
        return "none"
    return "of its parts" if isinstance(op, Composition) else "a rule"


def index_page(index):
    rows = [
        f"| [`{name}`]({theme}.md#{re.sub('[^a-z0-9_]', '', name.lower())}) | {theme} | {kind} |"
        for name, theme, kind in sorted(index, key=lambda row: row[0].lower())
    ]
    head = [
        *("# Every operation", ""),
        "Made from the declarations by `docs/generate.py`; each example is run by the tests.",
        *("", "| function | theme | gradient |", "|---|---|---|"),
    ]
    return "\n".join([*head, *rows]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail if out of date")
    check = parser.parse_args().check
    made = pages()
    stale = [n for n, text in made.items() if not same(PAGES / n, text)]
    left = [p for p in PAGES.glob("*.md") if p.name not in made]
    if not check:
        PAGES.mkdir(exist_ok=True)
        for name in stale:
            (PAGES / name).write_text(made[name])
        for path in left:
            path.unlink()
    print(f"{len(made)} pages, {len(stale)} of them changed, {len(left)} left over")
    sys.exit(int(check and bool(stale or left)))


def same(path, text):
    return path.exists() and path.read_text() == text


if __name__ == "__main__":
    main()
