"""The command line: ``pullback check module_or_file``, ``source name``, ``view script.py:name``.

Owns arguments, what is printed and the exit code; knows nothing of how gradients are checked, nor
of how graphs are read. Rich draws the output of ``check``, and is loaded only for that: ``--json``
does not need it.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
import operator
import os
import runpy
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pullback
from pullback import __version__
from pullback.check.api import validated
from pullback.check.deadline import DISPLAY
from pullback.check.discovery import (
    Discovery,
    Operation,
    Problem,
    check_operation,
    discover,
    first_on_path,
    split,
)
from pullback.check.report import RIGHT, UNCHECKED, WRONG, Options, Report, Status, indented
from pullback.core.custom.source import source
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, AutogradError, MissingExtraError, compose
from pullback.inspect.memory import roots_of
from pullback.inspect.reading import graph_of, names_in, record

REFUSED = "inputs refused"
ALL_RIGHT, SOMETHING_WRONG, INCOMPLETE = 0, 1, 2

_STYLES = {
    Status.PASSED: "green",
    Status.FAILED: "bold red",
    Status.NOT_RUN: "yellow",
    Status.IGNORED: "yellow",
    Status.NOT_COMPARED: "yellow",
    RIGHT: "bold green",
    WRONG: "bold red",
    UNCHECKED: "bold yellow",
    REFUSED: "bold red",
}
_EXIT_CODES = (
    "exit code: 0 if all gradients are right, else 1 if one is wrong, else 2 if something could "
    "not be checked"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        The exit code.

    Examples
    --------
    >>> main(["check", "pullback:sin", "--inputs", "x: (n,)", "--fast"])  # doctest: +ELLIPSIS
    pullback:sin  right  ...
    1 operation: 1 right, seed 0
    0
    """
    options = _parser().parse_args(argv)
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has seen enough; at exit there is another flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ALL_RIGHT
    except AutogradError as error:
        print(error, file=sys.stderr)
        return INCOMPLETE
    except KeyboardInterrupt:
        return 130  # as shells say it


# ---- arguments -----------------------------------------------------------------------------------
def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pullback", description="Gradients through your own operations."
    )
    parser.add_argument("--version", action="version", version=f"pullback {__version__}")
    commands = parser.add_subparsers(metavar="command", required=True)
    _add_check(
        commands.add_parser(
            "check",
            help="check the gradients of operations, and say what is wrong",
            description="Check the gradients of the autograd functions that a module, package, "
            "file or folder defines, and say what is wrong with them.",
            epilog=_EXIT_CODES,
        )
    )
    add = commands.add_parser(
        "source",
        help="show the source that is written for an operation",
        description="Show the Python source that is written for an operation, its call and its "
        "backward; of a function composed of others, its own.",
    )
    text = "a name in pullback, such as mul or linalg.det, or ops.py:name, package.module:name"
    add.add_argument("name", help=text)
    add.set_defaults(run=_source)
    _add_view(
        commands.add_parser(
            "view",
            help="run a script and show the graph of one of its variables",
            description="Run a script, noting lines, times and values, and open the graph of one "
            "of its variables in a browser.",
        )
    )
    return parser


def _add_view(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_view)
    parser.add_argument("target", help="script.py:name, where name is a tensor of the script")
    text = "write the page to a file, and open no browser"
    parser.add_argument("-o", "--output", metavar="FILE", help=text)


def _view(options: argparse.Namespace) -> int:
    """Run a script, and show the graph of one of its variables."""
    path, name = split(options.target)
    if not name or not Path(path).is_file():
        hint = "pullback view train.py:loss"
        raise ArgumentError(compose("view", "script.py:name required", options.target, hint=hint))
    arguments = sys.argv
    try:  # as Python runs a script
        sys.argv = [path]
        with first_on_path(Path(path).resolve().parent), record():
            variables = runpy.run_path(path, run_name="__main__")
    finally:
        sys.argv = arguments
    if not isinstance(variables.get(name), Tensor):
        tensors = [key for key, value in variables.items() if isinstance(value, Tensor)]
        came = f"{name}; the tensors are: {', '.join(tensors) or 'none'}"
        raise ArgumentError(compose("view", f"a tensor of {path} required", came))
    tensor = variables[name]
    found = graph_of(roots_of("view", [tensor]), [tensor], dict(names_in(variables)))
    print(found)
    if options.output:
        found.save(options.output)
    else:
        found.show()
    return 0


def _source(options: argparse.Namespace) -> int:
    """Print the source that is written for operations."""
    if ":" in options.name:
        result = discover(options.name)
        print("\n".join(source(each.op) for each in result.operations))
        return 0
    try:
        function = operator.attrgetter(options.name)(pullback)
    except AttributeError as error:
        raise ArgumentError(
            compose("source", "a name in pullback required", options.name, hint=str(error))
        ) from None
    print(source(function))
    return 0


def _add_check(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    parser.set_defaults(run=_check)
    add("target", help="package.module, ops.py or a folder; with :name one operation of it")
    text = 'the inputs of one operation, such as "x: (n, d), w: (m, d)"'
    add("--inputs", metavar="TEXT", help=text)
    add("--seed", type=int, default=0, help="the seed of all random numbers (default: 0)")
    _add_choices(parser)
    text = "do not exit with 2 because something could not be checked"
    add("--allow-unchecked", action="store_true", help=text)
    text = "how long the check of one operation may take (default: 60)"
    add("--time-limit", type=float, default=60.0, metavar="SECONDS", help=text)
    add("--json", action="store_true", help="print one JSON document")
    add("--no-color", action="store_true", help="print without colours")


def _add_choices(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is checked."""
    add = parser.add_argument
    add("--fast", action="store_true", help="random directions only; leave out the slow parts")
    text = "the parts to run, such as first,masks"
    add("--only", type=_names, default=[], metavar="PARTS", help=text)
    add("--skip", type=_names, default=[], metavar="PARTS", help="the parts not to run")
    text = "a part that may find something wrong, and why; may be repeated"
    add("--ignore", type=_reason, action="append", default=[], metavar="PART=WHY", help=text)
    text = "2: second derivatives have to be available (default: 1)"
    add("--order", type=int, choices=(1, 2), default=1, help=text)
    text = "seek no change of the source that makes a wrong gradient right"
    add("--no-repair", dest="repair", action="store_false", help=text)


def _reason(text: str) -> tuple[str, str]:
    name, equals, why = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"a part, = and a reason are required, got {text!r}")
    return name.strip(), why.strip()


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


# ---- checking ------------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class Result:
    """The outcome for one operation; `text` says why it has no report."""

    operation: Operation
    status: str
    seconds: float
    report: Report | None = None
    text: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain objects, for JSON."""
        return {
            "id": self.operation.id,
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "report": None if self.report is None else self.report.as_dict(),
            "text": self.text,
        }


def _check(options: argparse.Namespace) -> int:
    """Run ``pullback check``."""
    if options.json:
        return _check_as_json(options)
    terminal = Terminal(options.no_color)
    result = _found(options)
    results = []
    with terminal.progress(len(result.operations)) as begin:
        for operation in result.operations:
            begin(operation.id)
            results.append(_result(operation, options))
            terminal.show(results[-1])
    terminal.end(result.problems, results, options.seed)
    return _exit_code(result, results, options.allow_unchecked)


def _check_as_json(options: argparse.Namespace) -> int:
    document: dict[str, Any] = {"target": options.target, "seed": options.seed}
    try:
        # The output of the operations is not part of the document.
        with contextlib.redirect_stdout(sys.stderr):
            discovery = _found(options)
            results = [_result(operation, options) for operation in discovery.operations]
    except AutogradError as error:
        code = INCOMPLETE
        document |= {"ok": False, "error": str(error), "operations": [], "problems": []}
    else:
        code = _exit_code(discovery, results, options.allow_unchecked)
        document |= {
            "ok": code == ALL_RIGHT,
            "error": None,
            "operations": [result.as_dict() for result in results],
            "problems": [{"place": p.source, "text": p.text} for p in discovery.problems],
        }
    print(json.dumps(document, indent=2))
    return code


def _found(options: argparse.Namespace) -> Discovery:
    """Find the operations, once the options are known to be right."""
    named = {"only": options.only, "skip": options.skip, "ignore": dict(options.ignore)}
    settings = Options(seed=options.seed, time_limit=options.time_limit, **named)
    validated("pullback check", settings)
    result = discover(options.target)
    count = len(result.operations)
    if options.inputs is not None and count > 1:
        raise ArgumentError(
            f"pullback check: one operation is required for --inputs, got {count}.\nhint: name it: "
            f"{result.operations[0].id}"
        )
    return result


def _result(operation: Operation, options: argparse.Namespace) -> Result:
    """Check one operation."""
    start = time.perf_counter()

    def result(status: str, **more: Any) -> Result:
        return Result(operation, status, time.perf_counter() - start, **more)

    try:
        report = check_operation(
            operation,
            options.inputs,
            seed=options.seed,
            fast=options.fast,
            only=options.only or None,
            skip=options.skip,
            time_limit=options.time_limit,
            order=options.order,
            ignore=dict(options.ignore),
            repair=options.repair,
        )
    except AutogradError as error:
        return result(REFUSED, text=str(error))
    return result(report.outcome, report=report)


def _exit_code(discovery: Discovery, results: Sequence[Result], allow_unchecked: bool) -> int:
    statuses = {result.status for result in results}
    if WRONG in statuses:
        return SOMETHING_WRONG
    incomplete = UNCHECKED in statuses or bool(discovery.problems)
    if REFUSED in statuses or (incomplete and not allow_unchecked):
        return INCOMPLETE
    return ALL_RIGHT


# ---- drawing -------------------------------------------------------------------------------------
class Terminal:
    """Prints results; in colours and with a progress bar where the output is a terminal."""

    def __init__(self, no_color: bool) -> None:
        try:
            from rich.console import Console
        except ImportError:
            raise MissingExtraError(
                "pullback check: Rich is required to print what is found, got no such library.\n"
                "hint: pip install 'pullback[cli]', or use --json"
            ) from None
        self.console = Console(color_system=None if no_color else "auto")

    @contextlib.contextmanager
    def progress(self, total: int) -> Iterator[Callable[[str], None]]:
        """Show a bar with what is checked; yields a function to call with each operation."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
        bar = Progress(
            *columns, console=self.console, transient=True, disable=not self.console.is_terminal
        )
        with bar:
            task = bar.add_task("", total=total)
            begun = itertools.count()

            def begin(name: str) -> None:
                bar.update(task, description=name, completed=next(begun), refresh=True)

            def show(text: str) -> None:
                bar.update(task, description=text, refresh=True)

            token = DISPLAY.set(show)
            try:
                yield begin
            finally:
                DISPLAY.reset(token)

    def show(self, result: Result) -> None:
        """Print one operation: one line for each part, then failures and notes."""
        time = f"{result.seconds:.2f} s"
        self._line(
            (result.operation.id, "bold"), "  ", _styled(result.status), (f"  {time}", "dim")
        )
        if result.report is None:
            self._line(indented(result.text))
            return
        width = max((len(part.title) for part in result.report.parts), default=0)
        for part in result.report.parts:
            reason = f": {part.reason}" if part.reason else ""
            self._line(f"  {part.title.ljust(width)}  ", _styled(part.status), (reason, "dim"))
        for finding in result.report.findings:
            self._line(indented(finding))

    def end(self, problems: Sequence[Problem], results: Sequence[Result], seed: int) -> None:
        """Print the problems of the search, and the counts."""
        for problem in problems:
            self._line((f"{problem.source}: {problem.text}", "yellow"))
        counts = Counter(result.status for result in results)
        pieces = [_styled(status, f" {count} {status},") for status, count in counts.items()]
        plural = "" if len(results) == 1 else "s"
        self._line((f"{len(results)} operation{plural}:", "bold"), *pieces, f" seed {seed}")

    def _line(self, *pieces: str | tuple[str, str]) -> None:
        """Print pieces, some of them with a style."""
        from rich.text import Text

        self.console.print(Text.assemble(*pieces), soft_wrap=True)


def _styled(status: str, text: str = "") -> tuple[str, str]:
    return text or status, _STYLES.get(status, "dim")
