"""`dir` of a module, of an operation and of `pb` itself: public names alone."""

import importlib

import pytest

import pullback as pb

MODULES = [
    *("", ".autograd", ".check", ".compat", ".cuda", ".data", ".errors", ".fft", ".implicit"),
    *(".inspect", ".interop", ".interop.scipy", ".linalg", ".nn", ".nn.functional", ".nn.init"),
    *(".nn.utils", ".optim", ".optim.lr_scheduler", ".optimize", ".plot", ".saving", ".special"),
]


@pytest.mark.parametrize("name", MODULES)
def test_dir_of_a_module_lists_its_public_names(name):
    module = importlib.import_module(f"pullback{name}")
    assert dir(module) == sorted(module.__all__)
    assert len(set(module.__all__)) == len(module.__all__) > 0
    for each in module.__all__:
        assert hasattr(module, each)
        assert each[0] != "_" or each.endswith("__")


def test_dir_of_an_operation_lists_what_users_call():
    op = pb.autograd_function(lambda ctx, x: x, lambda ctx, g: {"x": g}, name="op")
    public = [name for name in dir(op) if name[0] != "_"]
    assert public == [
        "apply",
        "backward",
        "forward",
        "jvp",
        "name",
        "surrogate",
        "traverse",
        "vmap",
    ]
    for name in public:
        assert hasattr(op, name)


def test_show_versions_names_python_and_the_libraries_that_are_there(capsys):
    pb.show_versions()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Python 3.")
    assert f"pullback {pb.__version__}" in lines
    assert any(line.startswith("numpy ") for line in lines)
    assert not any(line.startswith("mkdocs") for line in lines)


def test_ctx_suggests_the_method_that_was_meant():
    op = pb.autograd_function(lambda ctx, x: ctx.save_for_bakward(x), lambda ctx, g: {"x": g})
    with pytest.raises(pb.errors.NameNotFoundError, match=r"did you mean ctx\.save_for_backward\?"):
        op(pb.ones(2, requires_grad=True))
