"""`pytest --pullback-check` in a project: its pyproject.toml, JUnit files and CI annotations."""

import xml.etree.ElementTree as ET

import pytest
from tests.check._programs import RIGHT, WRONG

import pullback_pytest as pytest_plugin

pytest_plugins = ["pytester"]
ENTRY = '[tool.pullback]\ncheck = ["ops.py"]\n'


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest on a project with operations, with the plugin whether or not it is installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    pytester.makepyfile(ops=RIGHT + WRONG, test_other="def test_it():\n    pass\n")

    def run(entry, *args):
        pytester.makepyprojecttoml(f"[tool.pytest.ini_options]\n{entry}")
        more = ("-p", "no:cacheprovider", "-W", "error", "--pullback-check-fast")
        return pytester.runpytest(*args, *more, plugins=[pytest_plugin])

    return run


def test_a_whole_test_run_checks_what_pyproject_names(run):
    run(ENTRY).assert_outcomes(passed=2, failed=1)


def test_a_run_of_some_tests_checks_nothing_that_pyproject_names(run):
    run(ENTRY, "test_other.py").assert_outcomes(passed=1)


def test_the_option_comes_before_what_pyproject_names(run):
    run(ENTRY, "--pullback-check=ops.py:square").assert_outcomes(passed=2)


def test_a_wrong_entry_of_pyproject_is_an_error_of_usage(run):
    result = run("[tool.pullback]\ncheck = 3\n")
    assert result.ret != pytest.ExitCode.OK
    result.stderr.fnmatch_lines(["*a list of modules, files or folders for `check`*got 3*"])


def test_a_junit_file_says_where_the_rule_is_and_what_is_wrong(run, pytester):
    run(ENTRY, "--junitxml=junit.xml")
    cases = ET.parse(pytester.path / "junit.xml").findall(".//testcase")
    told = [{p.get("name"): p.get("value") for p in case.findall(".//property")} for case in cases]
    (wrong,) = [properties for properties in told if properties]
    assert wrong["pullback-rule"].startswith("ops.py:")
    assert wrong["pullback-seed"] == "0"
    assert wrong["pullback-cause"] == "factor: `x` is off by the factor 2.000 everywhere"


def test_github_annotates_the_rule_that_is_wrong(run, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = run(ENTRY)
    result.stdout.fnmatch_lines(["::error file=ops.py,line=*::factor: `x` is off by the factor *"])
