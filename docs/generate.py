"""Write the pages of the site that are not written by hand.

    python docs/generate.py [FOLDER]

FOLDER (default: docs) gets `operations`, one page a theme with an entry for each public operation:
what autodoc makes of its signature and docstring, and from its declaration the gradient rule of
each input as it stands in the source, the rows of edge-values.md that name the operation, the
array libraries it runs on, and an example with the output of a real run if the docstring has none;
`project`, the documents of the repository that lie elsewhere; and `example-sources`, what
the gallery of examples is made of.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import inspect
import itertools
import operator
import re
import sys
import textwrap
from pathlib import Path

import numpy as np

import pullback as pb
from pullback.ops.declare import ELEMENTWISE, REGISTRY, Composition, Sample

ROOT = Path(__file__).parents[1]
# The documents that lie outside of docs/, by the name of their page.
PROJECT = {
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "bench/README.md": "project/benchmarks.md",
    "tests/core/cases.md": "project/cases.md",
}
PACKAGES = ("pullback.ops.", "pullback.nn.")
SPACES = ("pb", "pb.linalg", "pb.fft", "pb.special", "pb.nn.functional")
LARGEST = 12  # elements of an example's input


@functools.cache
def spaces():
    """Return the namespaces of functions that users reach, by the prefix they write."""
    found = {"pb": pb}
    for prefix in SPACES[1:]:
        with contextlib.suppress(AttributeError):
            found[prefix] = operator.attrgetter(prefix.removeprefix("pb."))(pb)
    return found


def names_in(space):
    """Return the names that a namespace exports."""
    return getattr(space, "__all__", None) or [n for n in vars(space) if n[0] != "_"]


def where_found(function):
    """Return the spellings under which users reach a function: modules first, then methods."""
    names = [
        f"{prefix}.{name}"
        for prefix, space in spaces().items()
        for name in names_in(space)
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


# -- the rules, as the source has them ------------------------------------------------------------
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
                return f"``{ast.unparse(node.body)}``"
            body = [s for s in node.body if not is_text(s)]
            if len(body) == 1 and isinstance(body[0], ast.Return):
                return f"``{ast.unparse(body[0].value)}``"
    summary = (inspect.getdoc(rule) or "").split("\n")[0]
    return re.sub(r"([*|\\])", r"\\\1", summary) or f"``{rule.__name__.strip('_')}``, in steps"


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
    lines = ["**Gradient**, with ``g`` the gradient of the result ``out``:", ""]
    for name in op.inputs:
        if name not in op.declared:
            lines.append(f"* ``{name}``: no rule; asking for it is an error")
        elif op.declared[name] is None:
            lines.append(f"* ``{name}``: none")
        else:
            lines.append(f"* ``{name}``: {source_of(op.declared[name])}")
    return lines


# -- edge values ----------------------------------------------------------------------------------
@functools.cache
def edge_rows():
    """Return the rows of edge-values.md, with the reason that "likewise" stands for."""
    text = (ROOT / "docs" / "edge-values.md").read_text()
    rows, reason = [], ""
    for line in text.splitlines():
        if line.startswith("| `"):
            row, why = line.removesuffix(" |").rsplit(" | ", 1)
            reason = why.replace("likewise", reason.partition(";")[0])
            rows.append(f"{row} | {reason} |")
    return rows


def edges_of(names):
    """Return the table of edge values of a function known by these names."""
    short = {name.rpartition(".")[2] for name in names}
    called = re.compile(
        r"\b(?:pb|x|fft|linalg|functional)\.(?:" + "|".join(map(re.escape, short)) + r")_?\("
    )
    rows = [row for row in edge_rows() if called.search(row.split("|")[1])]
    if not rows:
        return []
    table = ["edge | at | value | gradient | why", *(row.strip("| ") for row in rows)]
    cells = [re.sub("`+", "``", cell) for row in table for cell in row.split(" | ")]
    lines = [f"{'     - ' if i % 5 else '   * - '}{cell}" for i, cell in enumerate(cells)]
    return ["", ".. list-table::", "   :header-rows: 1", "", *lines]


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
    """Return the lines of one function's entry, and of its other names."""
    names, methods = where_found(function)
    first, *others = map(full, names)
    lines = [f".. autofunction:: {first}", ""]
    if methods:
        lines += [f"   As methods: {', '.join(f'``{method}``' for method in methods)}.", ""]
    declaration = REGISTRY.get(getattr(getattr(function, "primitive", None), "name", ""))
    if declaration is not None:
        facts = [*gradient_lines(declaration.primitive), *edges_of([*names, *methods]), ""]
        facts += [libraries(declaration), ""]
        if ">>>" not in (inspect.getdoc(function) or ""):
            facts += [*example_of(function, names[0], declaration), ""]
        lines += [f"   {line}".rstrip() for line in facts]
    for other in others:
        lines += [f".. py:function:: {other}{signature_of(function)}", "   :no-contents-entry:", ""]
        lines += [f"   :py:obj:`{first}` under another name.", ""]
    return lines


def libraries(declaration):
    """Say which array libraries run an operation."""
    forward = getattr(declaration.primitive, "forward", declaration.public)
    names = {*forward.__code__.co_names, *forward.__code__.co_freevars}
    if "special" in names:
        return "Runs on NumPy (with SciPy), CuPy and every library that follows the Array API."
    return "Runs on NumPy, CuPy and every library that follows the Array API."


@functools.cache
def functions():
    """Return the public functions of the operations, and those that make tensors, each once."""
    every = {
        id(function): function
        for space in spaces().values()
        for function in map(functools.partial(getattr, space), names_in(space))
        if id(function) in declared_in() and not inspect.isclass(function)
    }
    return list(every.values())


@functools.cache
def declared_in():
    """Return the name of the module that binds each function of the operations, by its id."""
    modules = {n: m for n, m in sorted(sys.modules.items()) if n.startswith(PACKAGES)}
    return {
        id(getattr(module, name)): path
        for path, module in modules.items()
        for name in bound_by(module)
        if callable(getattr(module, name, None))
    }


def bound_by(module):
    """Return the names that a module defines, in contrast to those that it imports."""
    names = set()
    for statement in ast.parse(inspect.getsource(module)).body:
        if isinstance(statement, ast.FunctionDef):
            names.add(statement.name)
        elif not isinstance(statement, ast.ClassDef):
            stored = [n for n in ast.walk(statement) if isinstance(n, ast.Name)]
            names |= {n.id for n in stored if isinstance(n.ctx, ast.Store)}
    return names


def themes():
    """Return the functions that each page describes, and the modules that declare them."""
    found = {}
    for function in functions():
        module = declared_in()[id(function)]
        modules, described = found.setdefault(module.rpartition(".")[2].strip("_"), ({}, []))
        modules[module] = sys.modules[module]
        described.append(function)
    return dict(sorted(found.items()))


@functools.cache
def headings():
    """Return the heading of each theme: those of the package's table of contents, in its order."""
    found, title = {}, ""
    for line in Path(pb.__file__).read_text().splitlines():
        if line.startswith("# "):
            title = line[2:].partition(":")[0].capitalize()
        elif line.startswith("from pullback."):
            found.setdefault(line.split()[1].rpartition(".")[2], title)
    elsewhere = {
        "pb.linalg": found["linear_algebra"],
        "pb.fft": found["spectral"],
        "pb.special": found["special"],
        "pb.nn.functional": found["convolution"],
    }
    for theme, (_, described) in themes().items():
        space = where_found(described[0])[0][0].rpartition(".")[0]
        if theme not in found:
            found[theme] = elsewhere[space]
    order = list(dict.fromkeys(found.values()))
    return {theme: found[theme] for theme in sorted(themes(), key=lambda t: order.index(found[t]))}


def pages():
    """Return the text of each page of the operations by its file name."""
    texts, index = {}, heading("Operations")
    for title, members in itertools.groupby(headings(), headings().get):
        members = list(members)
        index += [".. toctree::", "   :hidden:", f"   :caption: {title}", ""]
        index += [*(f"   {theme}" for theme in members), "", title, "-" * len(title), ""]
        for theme in members:
            described = sorted(themes()[theme][1], key=lambda f: where_found(f)[0][0].lower())
            texts[f"{theme}.rst"] = page(theme, described)
            names = [where_found(f)[0][0] for f in described]
            links = [f":py:func:`{name} <{full(name)}>`" for name in names]
            index += [f":doc:`{theme}`: {', '.join(links)}", ""]
    texts["index.rst"] = "\n".join(index)
    return texts


def page(theme, described):
    """Return the text of the page of one theme."""
    lines = heading(theme.replace("_", " ").capitalize())
    for _, module in sorted(themes()[theme][0].items()):
        lines += [inspect.getdoc(module).split("\n\n")[0].replace("\n", " "), ""]
    lines += itertools.chain.from_iterable(map(entry, described))
    return "\n".join(lines).rstrip() + "\n"


def full(name):
    """Return the full name of a function, of the name that users write."""
    return name.replace("pb.", "pullback.", 1)


def heading(title):
    return [title, "=" * len(title), ""]


def linked(text, folder):
    """Return a document with links as the site has them, of a document in a folder of ROOT."""

    def link(match):
        if match[1] is None:  # code
            return match[0]
        path, anchor = match[1], match[2] or ""
        target = (ROOT / folder / path).resolve().relative_to(ROOT).as_posix()
        if target in PROJECT:
            return f"](/{PROJECT[target]}{anchor})"
        for folder_of_programs, page in {
            "docs/gallery/": "figures",
            "examples/": "examples",
        }.items():
            if target.startswith(folder_of_programs):
                return f"](/{page}/{Path(target).stem}.rst)"
        if target.startswith("docs/"):
            return f"](/{target.removeprefix('docs/')}{anchor})"
        return match[0]

    return re.sub(r"`[^`\n]+`|\]\((?!\w+:|/)([^)#\s]+)(#[^)]*)?\)", link, text)


def example(path):
    """Return an example as the gallery reads it: with a heading, and the output on record."""
    text = path.read_text()
    doc = ast.get_docstring(ast.parse(text))
    title = re.split(r"[:.](?:\s|$)", doc, maxsplit=1)[0]
    head = [*heading(title), re.sub(r"\n\n    ", "\n\n.. code-block:: sh\n\n    ", doc)]
    record = ROOT / "docs" / "recorded" / f"{path.stem}.txt"
    if record.exists():
        head += ["", "A run printed:", "", ".. code-block:: text", ""]
        head += [f"    {line}" for line in record.read_text().splitlines()]
    body = text.split('"""', 2)[2]
    return "\n".join(['r"""', *head, '"""', body])


def write(folder):
    """Write all pages into a folder, those alone that have changed, and return their paths."""
    texts = {f"operations/{name}": text for name, text in pages().items()}
    for path, page in PROJECT.items():
        texts[page] = linked((ROOT / path).read_text(), Path(path).parent)
    for path in sorted((ROOT / "examples").glob("*.py")):
        texts[f"example-sources/{path.name}"] = example(path)
    about = "The programs under `examples`. Those that take seconds run while the site is built."
    texts["example-sources/GALLERY_HEADER.rst"] = "\n".join([*heading("Examples"), about, ""])
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    return list(texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs")
    folder = parser.parse_args().folder
    print(f"{len(write(folder))} pages in {folder}")


if __name__ == "__main__":
    main()
