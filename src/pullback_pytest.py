"""The checker in pytest: ``pytest --pullback-check TARGET``, and the fixture `check_op`.

Owns options, test items and how failures are printed. Imports only pytest: the checker is loaded
when it is first needed, so that a test run without it pays nothing.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import pathlib
import shlex
import sys
import tomllib
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

# A name, not an import: most test runs use neither the option nor the fixture.
_CHECK = "pullback.check"
_NAME = "pullback-check"  # the beginning of the items' ids
_SEED = "pullback_check_seed"
_FAST, _IGNORE = "--pullback-check-fast", "--pullback-check-ignore"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("pullback", "gradients of autograd functions")
    group.addoption(
        "--pullback-check",
        action="append",
        default=[],
        metavar="TARGET",
        help="check the gradients of the autograd functions of a module, package, file or folder, "
        "or of one as in package.module:op; may be repeated",
    )
    group.addoption(
        _FAST,
        action="store_true",
        help="check along random directions only, and leave out what takes long",
    )
    group.addoption(
        _IGNORE,
        action="append",
        default=[],
        metavar="PART=WHY",
        help="a part of the checks that may find something wrong, and why; may be repeated",
    )
    parser.addini(_SEED, "the seed of the gradient checks", default="0")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse options that are wrong."""
    _options(config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Collect the targets in addition to the paths of the test run."""
    report = yield
    targets = _targets(collector.config) if isinstance(collector, pytest.Session) else []
    if targets:
        checks = Checks.from_parent(collector, name=_NAME, nodeid=_NAME, targets=targets)
        report.result = [*(report.result or []), checks]
    return report


def _targets(config: pytest.Config) -> list[str]:
    """Return what is to be checked: as asked for, or as pyproject.toml says of a whole test run.

    There as in ``[tool.pullback]`` with ``check = ["mypackage.ops"]``.
    """
    asked: list[str] = config.getoption("--pullback-check")
    path = config.rootpath / "pyproject.toml"
    if asked or config.args_source is pytest.Config.ArgsSource.ARGS or not path.is_file():
        return asked
    found = tomllib.loads(path.read_text("utf-8")).get("tool", {}).get("pullback", {})
    targets = found.get("check", [])
    if not isinstance(targets, list) or not all(isinstance(each, str) for each in targets):
        required = "a list of modules, files or folders for `check` in [tool.pullback]"
        raise pytest.UsageError(f"pyproject.toml: {required} is required, got {targets!r}.")
    return targets


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a test that failed on a gradient where its rule is, and how to repeat it."""
    report = yield
    errors = sys.modules.get("pullback.errors")
    error = None if call.excinfo is None else call.excinfo.value
    found = error.report if errors and isinstance(error, errors.GradcheckError) else None
    if found is not None:
        report.user_properties += _properties(found)
        node = f"{os.path.relpath(item.path)}::{item.nodeid.partition('::')[2]}"
        words = ["pytest", node, "-o", f"{_SEED}={found.seed}", *_flags(item.config)]
        report.sections.append(("pullback", _how_to_repeat(found, words)))
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Annotate the rules that are wrong, where a service shows annotations in the source."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    for report in terminalreporter.stats.get("failed", []):
        told = dict(report.user_properties)
        file, _, line = told.get("pullback-rule", "").rpartition(":")
        if file:
            text = told["pullback-cause"].replace("%", "%25").replace("\n", "%0A")
            terminalreporter.write_line(f"::error file={file},line={line}::{text}")


def _properties(report: Any) -> list[tuple[str, object]]:
    """Return what JUnit files say of a gradient that is wrong."""
    found = [("pullback-seed", report.seed), ("pullback-rule", report.rule)]
    causes = [f"{failure.cause.name}: {failure.text}" for failure in report.failures[:1]]
    return [*found, *(("pullback-cause", text) for text in causes)]


@pytest.fixture(scope="session")
def check_op(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`pullback.check.check_op` with the seed and the speed that this test run chose."""
    check = importlib.import_module(f"{_CHECK}.api").check_op
    return functools.partial(check, **_options(request.config))


def _options(config: pytest.Config) -> dict[str, Any]:
    value = config.getini(_SEED)
    try:
        seed = int(value)
    except ValueError:
        seed = -1
    if seed < 0:
        raise pytest.UsageError(f"{_SEED}: a whole number from 0 on is required, got {value!r}.")
    options: dict[str, Any] = {"seed": seed, "fast": config.getoption(_FAST)}
    if texts := config.getoption(_IGNORE):
        options["ignore"] = {name: why for name, _, why in (t.partition("=") for t in texts)}
    return options


def _flags(config: pytest.Config, prefix: str = "--pullback-check-") -> list[str]:
    """Return the options of a test run other than the seed."""
    flags = [f"{prefix}fast"] if config.getoption(_FAST) else []
    return flags + [f"{prefix}ignore={text}" for text in config.getoption(_IGNORE)]


def _how_to_repeat(report: Any, command: list[str]) -> str:
    """Return where the rule is, and the command that repeats its check."""
    place = f"backward: {report.rule}\n" if report.rule else ""
    return f"{place}repeat: {shlex.join(command)}"


class Checks(pytest.Collector):
    """The operations of all targets."""

    def __init__(self, *, targets: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.targets = targets

    def collect(self) -> list[pytest.Item]:
        """Return an item for each operation, and one for each module that cannot be imported."""
        return list({item.nodeid: item for t in self.targets for item in self.found(t)}.values())

    def found(self, target: str) -> Iterator[pytest.Item]:
        """Yield the items of one target."""
        discovery = importlib.import_module(f"{_CHECK}.discovery")
        try:
            found = discovery.discover(target)
        except discovery.ArgumentError as error:
            raise self.CollectError(str(error)) from None
        for problem in found.problems:
            yield Unchecked.from_parent(self, name=problem.source, text=problem.text)
        for operation in found.operations:
            yield Check.from_parent(self, name=operation.id, operation=operation)


class _CheckError(Exception):
    """A failure whose message is all that is printed."""


class _Item(pytest.Item):
    """An item whose failures are texts, not tracebacks."""

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the text that is printed for a failure."""
        if isinstance(excinfo.value, _CheckError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[pathlib.Path, None, str]:
        """Return its location and its name."""
        return self.path, None, f"the gradients of {self.name}"


class Unchecked(_Item):
    """A module that could not be imported."""

    def __init__(self, *, text: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.text = text

    def runtest(self) -> None:
        """Fail."""
        raise _CheckError(f"{self.name}: {self.text}")


class Check(_Item):
    """The check of one operation."""

    def __init__(self, *, operation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.operation = operation

    def runtest(self) -> None:
        """Check it; skip it where its inputs are not known."""
        discovery = importlib.import_module(f"{_CHECK}.discovery")
        try:
            report = discovery.check_operation(self.operation, **_options(self.config))
        except discovery.ArgumentError as error:  # the author's inputs do not fit
            raise _CheckError(str(error)) from None
        if report.failures:
            self.user_properties += _properties(report)
            raise _CheckError(f"{report}\n{_how_to_repeat(report, self.command())}")
        if not report.ok:
            pytest.skip(str(report))
        self.add_report_section("call", "pullback", str(report))

    def command(self) -> list[str]:
        """Return the words of the command that repeats the check in a shell."""
        source, name, *_ = self.operation
        file = getattr(sys.modules.get(source), "__file__", None)  # what any shell finds
        place = f"{os.path.relpath(file) if file else source}:{name}"
        words = ["pullback", "check", place, "--seed", str(_options(self.config)["seed"])]
        words += _flags(self.config, prefix="--")
        return words if importlib.util.find_spec("rich") else [*words, "--json"]
