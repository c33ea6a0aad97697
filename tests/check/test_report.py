"""Reports: as a line, a text, HTML, JSON and a plot; what raises them; what is ignored in them."""

import copy
import json
import pickle
import re

import numpy as np
import pytest
from tests.check._programs import double, dropped, tripled

import pullback as pb
from pullback.check import check_op, gradcheck
from pullback.check.report import Cause, Failure, Report, Status
from pullback.errors import ArgumentError, ArgumentTypeError, GradcheckError

X = np.array([[1.0, -2.0, 0.5]])


def wrong(**options):
    return gradcheck(tripled, X, raise_exception=False, **options)


# -- in words --------------------------------------------------------------------------------------
def test_a_report_is_one_line_with_the_cause():
    assert repr(gradcheck(pb.sin, X)) == "<Report sin: the gradients are right (seed 0)>"
    text = "`x` is off by the factor 1.500 everywhere"
    assert repr(wrong()) == f"<Report tripled: 1 failure (seed 0), factor: {text}>"
    assert repr(wrong().failures) == f"[<Failure first, factor: {text}>]"
    long = Failure("first", "x", Cause("formula", "a line\nand " + 50 * "more "))
    long = Report("op", 0, failures=[long])
    assert len(repr(long)) < 120
    assert "\n" not in repr(long)


def test_a_text_names_argument_cause_worst_element_and_parts():
    (failure,) = wrong().failures
    index, expected, got = failure.worst
    assert got == pytest.approx(1.5 * expected)
    assert f"    x         {list(index)} " in str(failure)
    lines = str(wrong()).split("\n")
    assert lines[0] == "tripled: 1 failure (seed 0)"
    assert lines[1] == "  - `x` is off by the factor 1.500 everywhere"
    assert "  first derivatives   failed" in lines
    assert lines[-1].startswith("  not run (first derivatives failed): subsets of the inputs, ")
    report = gradcheck(pb.sin, X, skip=["first"])
    assert "nothing wrong found, derivatives not compared" in str(report)


def test_the_file_and_line_of_backward_are_known():
    place, _, line = wrong().rule.rpartition(":")
    assert place.endswith("_programs.py")
    with open(place) as file:
        assert "3.0 * grad_output" in file.readlines()[int(line) - 1]
    assert gradcheck(lambda x: x * 2, X).rule.startswith("tests/check/test_report.py:")
    assert gradcheck(pb.sin, X, only=["first"]).rule == gradcheck(abs, X, only=["first"]).rule == ""


def test_a_notebook_gets_the_text_and_html_without_scripts():
    report = wrong()
    report.notes.append("a < b")
    shown = report._repr_mimebundle_(include=None, exclude=None)
    assert shown["text/plain"] == str(report)
    tags = set(re.findall(r"<(\w+)", shown["text/html"]))
    assert tags == {"div", "b", "pre", "table", "tr", "td"}
    assert "a &lt; b" in shown["text/html"]
    assert "worst element" in shown["text/html"]


def test_json_holds_plain_objects():
    found = json.loads(json.dumps(wrong().as_dict()))
    assert (found["ok"], found["outcome"], found["ignored"]) == (False, "wrong", [])
    (failure,) = found["failures"]
    assert (failure["cause"], failure["argument"]) == ("factor", "x")
    assert "2.0 * grad_output" in failure["repair"]


# -- errors ----------------------------------------------------------------------------------------
def test_the_text_of_an_error_is_written_when_it_is_first_read():
    sought = []
    failure = Failure("first", "x", Cause("sign", "wrong"))
    failure.find_repair = lambda: sought.append(1) or "write -g"
    report = Report("op", 0, failures=[failure])
    error = GradcheckError(report)
    assert "wrong" in repr(error)
    assert not sought
    assert "write -g" in str(error)
    assert str(error) == str(report)
    assert sought == [1]
    assert GradcheckError("in words").report is None


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_reports_and_errors_are_copied_with_their_repairs(copied):
    with pytest.raises(GradcheckError) as caught:
        gradcheck(tripled, X)
    other = copied(caught.value)
    assert type(other) is GradcheckError
    assert str(other) == str(caught.value)
    assert "with `2.0 * grad_output`" in other.report.repair


# -- what is ignored, what is asked for ------------------------------------------------------------
def test_what_a_part_finds_is_ignored_with_the_reason():
    assert gradcheck(dropped, X, raise_exception=False).outcome == "wrong"
    report = gradcheck(dropped, X, ignore={"second_order": "used once"})
    assert report.outcome == "right"
    assert [failure.part for failure in report.ignored] == ["second_order"]
    assert "  ignored: the gradient of `x` is wrong where it is differentiated again" in str(report)
    assert "  second derivatives       ignored: used once" in str(report)
    assert check_op(dropped, ignore={"second_order": "used once"}).ok
    assert gradcheck(double, X, ignore={"second_order": "in vain"}).ignored == []


def test_parts_run_after_an_essential_one_that_is_ignored():
    report = gradcheck(tripled, X, ignore={"first": "a trial"})
    assert {part.name: part.status for part in report.parts}["linear"] == Status.PASSED
    assert report.ignored[0].cause.name == "factor"
    assert "derivatives not compared" in str(report)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"ignore": {"thirst": "why"}}, ArgumentError, "ignore must name parts .* got 'thirst'"),
        ({"ignore": {"first": " "}}, ArgumentError, "ignore must say why `first` may be wrong"),
        ({"ignore": {"first": None}}, ArgumentError, "ignore must say why `first` may be wrong"),
        ({"ignore": ["first"]}, ArgumentTypeError, "ignore must be a dict of reasons"),
        ({"order": 3}, ArgumentTypeError, "order must be 1 or 2, got 3"),
        ({"seed": "a"}, ArgumentTypeError, "seed must be a whole number from 0 on"),
        ({"seed": -1}, ArgumentTypeError, "seed must be a whole number from 0 on"),
        ({"rtol": -1}, ArgumentTypeError, "rtol must be a number from 0 on"),
        ({"atol": np.nan}, ArgumentTypeError, "atol must be a number from 0 on"),
        ({"time_limit": "60"}, ArgumentTypeError, "time_limit must be a number from 0 on"),
        ({"only": ["frist"]}, ArgumentError, "only must name parts .* got 'frist'; the parts are"),
        ({"skip": "first"}, ArgumentTypeError, "skip must be a sequence of names"),
    ],
    ids=str,
)
@pytest.mark.parametrize("check", [gradcheck, check_op])
def test_options_are_looked_at_first(check, options, error, text):
    with pytest.raises(error, match=f"{check.__name__}: {text}"):
        check(pb.sin, X, **options)


# -- the plot --------------------------------------------------------------------------------------
def test_the_plot_has_a_row_for_each_wrong_gradient_and_a_notebook_shows_it():
    pytest.importorskip("matplotlib")
    figure = wrong().plot()
    assert "factor 1.500" in figure.axes[0].get_title()
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert pickle.loads(pickle.dumps(figure)).axes
    assert "no gradient to show" in gradcheck(pb.sin, X).plot().get_suptitle()
