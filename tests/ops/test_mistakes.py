"""The wrong calls of mistakes/: what the error says of the operation, its inputs, and the way out.

A file begins with what its calls use. Then, as in a doctest, each call is followed by its error,
with `...` where words are left out; they come in this order.
"""

import re
from pathlib import Path

import array_api_strict
import numpy as np
import pytest

import pullback as pb

NAMES = {
    "pb": pb,
    "np": np,
    "array_api_strict": array_api_strict,
    "INF": np.inf,
    "NAN": np.nan,
    "functional": pb.nn.functional,
    "linalg": pb.linalg,
}


def mistakes():
    """Return what each call uses, the call, the class of its error and the words of it."""
    for path in sorted(Path(__file__).with_name("mistakes").glob("*.txt")):
        used, *rows = path.read_text(encoding="utf-8").split("\n>>> ")
        for row in rows:
            call, _, error = row.partition("\n")
            kind, _, words = " ".join(error.split()).partition(": ")
            yield pytest.param(used, call, kind, words, id=f"{path.stem}: {call}")


def all_words(text):
    """Return a pattern for words in this order, with more of them in the place of `...`."""
    return ".*".join(re.escape(part.strip()) for part in text.split(" ..."))


@pytest.mark.parametrize(("used", "call", "kind", "words"), list(mistakes()))
def test_a_wrong_call_says_what_is_wrong(used, call, kind, words):
    names = dict(NAMES)
    exec(used, names)
    with np.errstate(all="ignore"), pytest.raises(pb.AutogradError) as caught:
        exec(call, names)
    kinds = {cls.__name__ for cls in caught.type.__mro__}
    assert kind in kinds
    message = " ".join(str(caught.value).split())
    assert re.search(all_words(words), message), message
