"""The wrong calls of mistakes/: what the error says of the operation, inputs and the way out."""

import re
from pathlib import Path

import array_api_strict
import numpy as np
import pytest
from tests.mistakes import mistakes

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
ROWS = mistakes(Path(__file__).with_name("mistakes"))


@pytest.mark.parametrize(("used", "call", "kind", "words"), ROWS)
def test_a_wrong_call_says_what_is_wrong(used, call, kind, words):
    names = dict(NAMES)
    exec(used, names)
    with np.errstate(all="ignore"), pytest.raises(pb.AutogradError) as caught:
        exec(call, names)
    assert kind in {cls.__name__ for cls in caught.type.__mro__}
    message = " ".join(str(caught.value).split())
    assert re.search(".*".join(map(re.escape, words)), message), message  # in this order
