"""Finding the operations of modules, packages, files and folders, and the inputs written there."""

import sys
import textwrap

import numpy as np
import pytest
from tests.check._programs import RIGHT, UNGUESSED, WRONG

from pullback.check.discovery import check_operation, discover, split
from pullback.errors import ArgumentError, ArgumentTypeError

CUBE = WRONG.replace("6 *", "3 *")


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file into the current, empty folder; what tests import is forgotten again."""
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), dict(sys.modules)

    def write(name, *sources):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(textwrap.dedent(source) for source in sources))

    yield write
    assert sys.path == path
    for name in sys.modules.keys() - modules.keys():
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


def ids(target):
    return [operation.id for operation in discover(target).operations]


# -- what is found ---------------------------------------------------------------------------------


def test_operations_among_the_attributes_of_classes_are_found_each_once(write):
    write(
        "ops.py",
        RIGHT,
        """
        class Solver:
            step = staticmethod(pb.autograd_function(lambda ctx, x: x, lambda ctx, g: {"x": g}))
            again = step

            class Inner:
                other = pb.autograd_function(lambda ctx, x: -x, lambda ctx, g: {"x": -g})

        class Parent:
            class Child:
                pass

        Parent.Child.parent = Parent.itself = Parent
        Parent.Child.square = also_square = square
        del square
        """,
    )
    names = ["Solver.step", "Solver.Inner.other", "Parent.Child.square"]
    assert ids("ops.py") == [f"ops.py:{name}" for name in names]
    assert ids("ops.py:Solver") == ["ops.py:Solver.step", "ops.py:Solver.Inner.other"]
    assert ids("ops.py:Solver.step") == ["ops.py:Solver.step"]


def test_what_has_no_backward_or_is_no_operation_is_left_out(write):
    write(
        "ops.py",
        """
        import pullback as pb
        from pullback import Function

        forward_only = pb.autograd_function(lambda ctx, x: x)
        plain = lambda x: x

        class Base(pb.Function):
            @staticmethod
            def forward(ctx, x):
                return x
        """,
    )
    with pytest.raises(ArgumentError, match="got none that ops"):
        discover("ops.py")


def test_an_operation_made_of_the_forward_of_another_module_belongs_where_it_was_made(write):
    write("formulas.py", "def forward(ctx, x):\n    return 2 * x\n")
    write(
        "ops.py",
        """
        import functools
        import pullback as pb
        import formulas

        rule = lambda ctx, g: {"x": 2 * g}
        double = pb.autograd_function(formulas.forward, rule)
        twice = pb.autograd_function(functools.partial(formulas.forward), rule, name="twice")
        """,
    )
    assert ids("ops.py") == ["ops.py:double", "ops.py:twice"]


def test_imported_operations_are_found_where_they_are_defined(write):
    write("package/__init__.py", RIGHT, "from .inner.cubes import Cube\n")
    write("package/inner/__init__.py")
    write("package/inner/cubes.py", CUBE, "from package import square\n")
    write("package/inner/__main__.py", "raise SystemExit('ran')\n")
    found = discover("package")
    assert [op.id for op in found.operations] == ["package:square", "package.inner.cubes:Cube"]
    assert found.problems == []
    assert ids("package.inner.cubes") == ["package.inner.cubes:Cube"]


def test_a_folder_is_searched_for_files_packages_and_folders(write):
    write("src/ops.py", RIGHT)
    write("src/more/cubes.py", CUBE)
    write("src/package/__init__.py")
    write("src/package/blocks.py", "from . import formulas\n", UNGUESSED)
    write("src/package/formulas.py")
    for name in ("src/setup.py", "src/.hidden/ops.py", "src/env/ops.py", "src/conftest.py"):
        write(name, "raise SystemExit('ran')\n")
    write("src/env/pyvenv.cfg")
    found = discover("src")
    assert [op.id for op in found.operations] == [
        "src/more/cubes.py:Cube",
        "src/ops.py:square",
        "package.blocks:blocks",
    ]
    assert found.problems == []


# -- what is named ---------------------------------------------------------------------------------


def test_a_name_behind_a_colon_chooses_one_operation(write):
    write("ops.py", RIGHT, CUBE)
    assert ids("ops.py") == ["ops.py:square", "ops.py:Cube"]
    assert ids("ops.py:Cube") == ids("ops.py::Cube") == ["ops.py:Cube"]
    assert split("a.b:c.d") == ("a.b", "c.d")
    assert split(r"C:\folder\ops.py") == (r"C:\folder\ops.py", "")
    assert split(r"C:\folder\ops.py:op") == (r"C:\folder\ops.py", "op")
    assert split("ops.py") == ("ops.py", "")


def test_a_named_operation_may_be_imported_or_any_function(write):
    write("squares.py", RIGHT, 'CHECK_INPUTS = {"square": "x: (2,)"}\n')
    write("ops.py", "from squares import square\ndef plain(x):\n    return x * x\n")
    (square,) = discover("ops:square").operations
    assert (square.id, square.inputs) == ("ops:square", "x: (2,)")
    assert check_operation(*discover("ops.py:plain").operations, fast=True).ok


# -- importing -------------------------------------------------------------------------------------


def test_a_file_may_import_its_neighbours_and_share_its_name_with_a_library(write):
    write("folder/helping.py", "factor = 2\n")
    write("folder/numpy.py", "import helping\n", RIGHT)
    assert ids("folder/numpy.py") == ["folder/numpy.py:square"]
    assert sys.modules["numpy"] is np


def test_a_file_of_a_package_is_imported_as_a_part_of_it(write):
    write("package/__init__.py")
    write("package/formulas.py", "factor = 2\n")
    write("package/ops.py", "from .formulas import factor\n", RIGHT)
    assert ids("package/ops.py") == ["package/ops.py:square"]
    assert "package.ops" in sys.modules
    write("textwrap/__init__.py")  # which another module of that name hides
    with pytest.raises(ArgumentError, match="ImportError: textwrap is imported from"):
        discover("textwrap/__init__.py")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import not_there\n", "ModuleNotFoundError: No module named 'not_there' (broken.py:1)"),
        ("x = 1\n1 / 0\n", "ZeroDivisionError: division by zero (broken.py:2)"),
        ("raise SystemExit(3)\n", "SystemExit: 3 (broken.py:1)"),
        ("def f(:\n", "SyntaxError: invalid syntax (broken.py, line 1)"),
    ],
)
def test_a_submodule_that_cannot_be_imported_is_reported_and_the_others_are_found(
    write, source, message
):
    write("package/__init__.py")
    write("package/broken.py", source)
    write("package/ops.py", RIGHT)
    found = discover("package")
    assert [op.id for op in found.operations] == ["package.ops:square"]
    assert [(p.source, p.text) for p in found.problems] == [
        ("package.broken", f"not imported: {message}")
    ]
    write("files/broken.py", source)
    (problem,) = discover("files").problems
    assert problem.source == "files/broken.py"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nothing.py", "can be imported is required, got nothing.py (not imported: FileNotFound"),
        ("nothing", "got nothing (not imported: ModuleNotFoundError: No module"),
        ("ops.py:squared", "a name that is defined in ops.py is required, got squared"),
        ("ops.py:square.root", "a name that is defined in ops.py is required, got square.root"),
        ("ops.py:number", "an operation or a function is required, got number, of type int"),
        ("", "got  (not imported: ValueError: Empty module name"),
    ],
)
def test_a_target_that_is_not_there_is_an_error_that_names_it(write, target, message):
    write("ops.py", RIGHT, "number = 1\n")
    with pytest.raises(ArgumentError) as caught:
        discover(target)
    assert message in str(caught.value)
    assert "\nhint: name a module as package.module" in str(caught.value)


# -- inputs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "inputs",
    [
        '(np.ones(60), {"rows": 6})',
        '{"x": np.ones(60), "layout": {"rows": 6}}',
        'lambda rng: (rng.standard_normal(60), {"rows": 6})',
    ],
    ids=["a tuple", "a dict by name", "a function"],
)
def test_inputs_are_read_from_a_table_by_name(write, inputs):
    write("ops.py", "import numpy as np\n", UNGUESSED, f"CHECK_INPUTS = {{'blocks': {inputs}}}\n")
    report = check_operation(*discover("ops.py").operations, fast=True)
    assert report.ok
    assert {part.status for part in report.parts if part.name == "first"} == {"passed"}


def test_inputs_are_read_from_an_attribute_of_the_operation_or_class(write):
    of_ops = "import numpy as np\nsquare.check_inputs = np.ones(7)\n"
    write("ops.py", RIGHT, of_ops, CUBE, "Cube.check_inputs = 'x: (7,)'\n")
    square, cube = discover("ops.py").operations
    assert cube.inputs == discover("ops.py:Cube").operations[0].inputs == "x: (7,)"
    assert check_operation(square, fast=True).ok
    assert "inputs: x (7,)" in check_operation(cube, fast=True).notes
    report = check_operation(cube, "x: (3, 2)", fast=True)  # what is asked for comes first
    assert "inputs: x (3, 2)" in report.notes


def test_a_function_of_inputs_gets_the_seed_s_generator(write):
    source = "drawn = []\ndef draw(rng):\n    drawn.append(rng.random())\n    return (drawn[-1],)\n"
    write("ops.py", RIGHT, source, "square.check_inputs = draw\n")
    (operation,) = discover("ops.py").operations
    for seed in (1, 1, 2):
        with pytest.raises(ArgumentError):  # a number is nothing to differentiate
            check_operation(operation, fast=True, seed=seed)
    first, again, other = operation.inputs.__globals__["drawn"]
    assert first == again != other


def test_inputs_that_cannot_be_guessed_are_asked_for_with_a_text_to_begin_from(write):
    write("ops.py", UNGUESSED)
    (unchecked,) = check_operation(*discover("ops.py").operations, fast=True).unchecked
    assert unchecked.hint.startswith('write CHECK_INPUTS = {"blocks": "x: ')
    assert unchecked.hint.endswith('"} beside it, and mend the shapes')


def test_a_function_of_inputs_that_raises_is_reported_with_its_line(write):
    write("ops.py", "def draw(rng):\n    return 1 / 0\n", RIGHT, "square.check_inputs = draw\n")
    with pytest.raises(ArgumentTypeError) as caught:
        check_operation(*discover("ops.py").operations)
    assert "got ZeroDivisionError: division by zero (ops.py:2)" in str(caught.value)
