"""``pytest --pullback-check`` and the fixture `check_op`, in test runs of their own."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.check._programs import RIGHT, UNGUESSED, WRONG

import pullback_pytest as pytest_plugin

# Discovery too: what a test run in this process is the first to import is forgotten after it.
from pullback.check import discovery as _  # noqa: F401

pytest_plugins = ["pytester"]

EMPTY = "from pullback import Function\n"


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest in an empty folder, with the plugin whether or not it is installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(*args):
        more = ("-p", "no:cacheprovider", "-W", "error")
        return pytester.runpytest(*args, *more, plugins=[pytest_plugin])

    return run


def checking(*targets):
    return [f"--pullback-check={target}" for target in targets] + ["--pullback-check-fast"]


def test_each_operation_is_a_test_and_a_failure_the_report_without_a_traceback(run, pytester):
    pytester.makepyfile(
        ops=RIGHT + WRONG, test_other="def test_it():\n    pass\n", test_more="1 / 0"
    )
    pytester.makeini("[pytest]\npullback_check_seed = 7\n")
    result = run(*checking("ops.py"), "test_other.py", "-v")
    result.assert_outcomes(passed=2, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines_random(
        [
            "pullback-check::ops.py:square PASSED*",
            "pullback-check::ops.py:Cube FAILED*",
            "*_ the gradients of ops.py:Cube _*",
            "Cube: 1 failure (seed 7)",
            "  - `x` is off by the factor 2*",
            "*first derivatives * failed",
        ]
    )
    result.stdout.no_fnmatch_line("*Error*")
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


def command_of(result):
    """Return the words of the command at the end of a failure.

    Where `CI` is set, pytest repeats the failure in its summary.
    """
    (line,) = {line for line in result.outlines if line.startswith("repeat: ")}
    return shlex.split(line.removeprefix("repeat: "))


def test_a_failure_ends_with_the_place_of_the_rule_and_a_command_that_repeats_it(run, pytester):
    pytester.makepyfile(**{"package/__init__": "", "package/ops": WRONG})
    result = run(*checking("package"), "--pullback-check-ignore=masks=a b")
    result.stdout.fnmatch_lines(["backward: *ops.py:9", "repeat: pullback check *"])
    program, *words = command_of(result)
    place = str(Path("package") / "ops.py")
    assert words[:4] == ["check", f"{place}:Cube", "--seed", "0"]
    assert words[4:6] == ["--fast", "--ignore=masks=a b"]
    again = pytester.run(sys.executable, "-m", program, *words)
    assert again.ret == 1
    again.stdout.fnmatch_lines(["*`x` is off by the factor 2*"])


def test_a_test_that_fails_on_a_gradient_tells_how_to_repeat_it(run, pytester):
    pytester.makepyfile(test_cube=WRONG + "def test_it(check_op):\n    check_op(Cube)\n")
    result = run("-o", "pullback_check_seed=5")
    result.stdout.fnmatch_lines(["backward: *test_cube.py:9", "repeat: pytest *"])
    result.stdout.no_fnmatch_line("*def check_op*")  # of the checker no line is shown
    words = command_of(result)[1:]
    assert words == ["test_cube.py::test_it", "-o", "pullback_check_seed=5"]
    run(*words).assert_outcomes(failed=1)


def test_an_operation_without_guessable_inputs_is_skipped_with_what_to_write(run, pytester):
    pytester.makepyfile(ops=UNGUESSED)
    result = run(*checking("ops.py"), "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(['*hint: write CHECK_INPUTS = {"blocks": "x: *, layout: *"}*'])


def test_inputs_of_the_author_are_used_and_refused_where_they_do_not_fit(run, pytester):
    pytester.makepyfile(
        ops=UNGUESSED + "import numpy as np\nblocks.check_inputs = (np.ones(60), {'rows': 6})\n",
        bad=UNGUESSED + "blocks.check_inputs = 'x: (60,'\n",
    )
    result = run(*checking("ops.py", "bad.py"))
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*_ the gradients of bad.py:blocks _*", "check_op: *'x: (60,'*"])


def test_what_cannot_be_imported_fails_and_the_rest_is_checked(run, pytester):
    pytester.makepyfile(
        **{"package/__init__": "", "package/ops": RIGHT, "package/broken": "import not_there"}
    )
    result = run(*checking("package"))
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["package.broken: not imported: ModuleNotFoundError: * 'not_there'*"]
    )


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nothing.py", "*can be imported is required, got nothing.py (not imported: *"),
        ("empty.py", "*with a forward and a backward are required, got none that empty*"),
    ],
)
def test_a_target_that_holds_nothing_stops_the_run(run, pytester, target, message):
    pytester.makepyfile(empty=EMPTY)
    result = run(*checking(target))
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*ERROR collecting pullback-check*", message])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_the_fixture_is_check_op_with_the_seed_and_speed_of_the_run(run, pytester):
    pytester.makepyfile(
        RIGHT
        + """
def test_right(check_op):
    assert check_op(square, "x: (3, 2)").seed == 7
    assert check_op(square, seed=8).seed == 8
    assert check_op.keywords == {"seed": 7, "fast": True}
"""
    )
    run("-o", "pullback_check_seed=7", "--pullback-check-fast").assert_outcomes(passed=1)
    result = run("-o", "pullback_check_seed=-1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*check_seed: a whole number from 0 on is required, got*"])


def test_a_run_of_its_own_process_needs_nothing_but_the_option(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(ops=RIGHT)
    strict = ["--strict-config", "--strict-markers", "--import-mode=importlib", "--doctest-modules"]
    result = pytester.runpytest_subprocess(
        "-p", pytest_plugin.__name__, "-W", "error", *checking("ops.py"), *strict
    )
    result.assert_outcomes(passed=1)


def test_the_plugin_itself_imports_pytest_alone():
    path = Path(pytest_plugin.__file__).parent
    program = (
        f"import sys; sys.path.insert(0, {str(path)!r}); import pullback_pytest\n"
        "print([m for m in ('pullback', 'numpy') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
