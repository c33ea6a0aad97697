"""Arguments described by a text or a docstring, and the values drawn for them."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.check.inputs.arguments import draw, draw_sizes
from pullback.check.inputs.shape_text import documented, parse
from pullback.errors import ArgumentError


@pytest.mark.parametrize(
    "text",
    [
        "x: ()",
        "x: (2, n)",
        "x: (n, 2*n + 1)",
        "x: (n,) int in [0, n)",
        "x: (n,) in (0, 1]",
        "x: (n, n) spd",
        "x: (n,) float32 positive",
        "x: (n,) complex",
        "x: (n,) bool",
        "x: 0.5",
        "x: 'mean, of all'",
        "x: [1, 2]",
        "x=(0, 1)",
        "x: callable",
        "x: (n,) int distinct",
    ],
)
def test_a_description_prints_as_it_is_written(text):
    (described,) = parse("here", text)
    assert str(described) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "an argument as `name: shape`"),
        ("(n, d)", "an argument as `name: shape`"),
        ("x: (n d)", "a size for each axis of `x`"),
        ("x: (n, d), w: (m, d) positiv", "got 'positiv'"),
        ("x: (n, d), v: (m, d)", "the name of an argument is required, got 'v'"),
        ("x: (n, d", "a shape such as (n, d) or a literal"),
        ("x: tensor", "a shape such as (n, d) or a literal"),
        ("x: (n, d) spd", "a square shape for spd"),
        ("x: (n,), w: k", "a size, callable or seed for `w` is required, got 'k'"),
        ("x: (n,) int in [0, k)", "a symbol of one of the shapes is required, got 'k'"),
        ("x: (n,) in [0, )", "an interval of numbers is required, got 'in [0, )'"),
    ],
)
def test_an_error_in_a_text_says_where(text, words):
    with pytest.raises(ArgumentError) as error:
        parse("check_op", text, ["x", "w"])
    message = str(error.value)
    assert message.startswith("check_op: ")
    assert "The arguments are: x, w." in message
    assert "hint: describe each argument by a shape or a value" in message
    assert words in message
    assert f" in {text!r}." in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("q : Tensor of shape (n, 3)", {"q": "q: (n, 3)"}),
        ("q : int array of shape (n,), in metres", {"q": "q: (n,) int"}),
        ("q: (n,) int sorted in [0, 3), further", {"q": "q: (n,) int sorted in [0, 3)"}),
        ("q, r: (levels,), best first", {"q": "q: (levels,)", "r": "r: (levels,)"}),
        ("The value of q (see below), and q(n,); here: q * (2 * n)", {}),
    ],
)
def test_documented_reads_shapes_and_words_of_descriptions(text, expected):
    def forward(ctx):
        """To be replaced."""

    forward.__doc__ = text
    found = documented(forward, ["q", "r"])
    assert {name: str(d) for name, d in found.items()} == expected


def test_sizes_are_small_and_all_different():
    found = parse("here", "x: (a, b), y: (c, d)")
    drawn = [tuple(draw_sizes(found, np.random.default_rng(s)).values()) for s in range(20)]
    assert {tuple(sorted(sizes)) for sizes in drawn} == {(2, 3, 4, 5)}
    assert len(set(drawn)) > 3


def test_too_few_integers_to_be_distinct_are_refused():
    (described,) = parse("here", "i: (4,) int distinct in [0, 3)")
    with pytest.raises(ArgumentError, match=r"at least 4 integers for `i` .* got 3"):
        draw(described, {}, np.random.default_rng(0))
