"""What is left of a jvp, jacfwd or vmap that has returned: no operation takes it for its own."""

import threading

import numpy as np
import pytest

import pullback as pb
from pullback.errors import GraphError

RETURNED = "one of a call that has returned"
TWO, OTHER = np.array([1.0, 2.0]), np.array([10.0, 20.0])


def of_jvp(value, function=lambda x: x * 1):
    kept = []
    pb.jvp(lambda x: (kept.append(function(x)), x)[1], (value,), (np.ones_like(value),))
    return kept[0]


def of_vmap(values):
    kept = []
    pb.vmap(lambda x: (kept.append(x), x)[1])(values)
    return kept[0]


@pytest.mark.parametrize("length", [2, 3])
@pytest.mark.parametrize(
    "use",
    [
        lambda dead, y: dead * 2,
        lambda dead, y: dead * dead,
        lambda dead, y: np.sin(dead),
        lambda dead, y: dead[:1],
        lambda dead, y: dead[np.array([0, 1])],
        lambda dead, y: dead.sum(),
        lambda dead, y: dead.reshape(-1, 1).mT,
        lambda dead, y: dead @ dead,
        lambda dead, y: pb.concat([dead, dead]),
        lambda dead, y: dead.to("float32"),
        lambda dead, y: pb.checkpoint(np.sin)(dead),
        lambda dead, y: pb.zeros(dead.shape).copy_(dead),
        lambda dead, y: y * dead.sum(),
        lambda dead, y: pb.where(y > 0, y, dead.sum()),
        lambda dead, y: dead,
    ],
)
def test_no_operation_in_jvp_takes_what_another_jvp_left(use, length):
    dead = of_jvp(np.arange(1.0, length + 1))
    with pytest.raises(GraphError, match=RETURNED):
        pb.jvp(lambda y: (y, use(dead, y)), (OTHER,), (TWO,))


@pytest.mark.parametrize("length", [2, 3])
@pytest.mark.parametrize(
    "use",
    [
        lambda dead, y: dead * 2,
        lambda dead, y: dead.sum(),
        lambda dead, y: dead.reshape(-1, 1).mT,
        lambda dead, y: pb.where(y > 0, y, dead.sum()),
        lambda dead, y: pb.arange(5.0)[dead.to("int64")],
        lambda dead, y: y * dead.sum(),
        lambda dead, y: dead,
    ],
)
def test_no_operation_in_vmap_takes_what_another_vmap_left(use, length):
    dead = of_vmap(np.ones((length, 3)))
    with pytest.raises(GraphError, match=RETURNED):
        pb.vmap(lambda y: (y, use(dead, y)))(OTHER)


def test_an_operation_outside_of_jvp_and_vmap_refuses_what_they_left():
    for dead in (of_jvp(TWO), of_vmap(np.ones((2, 2)))):
        for use in (np.sin, np.sum, lambda x: x * x, lambda x: x[0], lambda x: x * OTHER):
            with pytest.raises(GraphError, match=RETURNED):
                use(dead)


def test_what_an_inner_jvp_left_is_refused_as_a_result_of_the_outer():
    with pytest.raises(GraphError, match=RETURNED):
        pb.jvp(lambda y: of_jvp(3.0), (2.0,), (1.0,))
    with pytest.raises(GraphError, match=RETURNED):
        pb.vmap(lambda y: of_jvp(3.0))(TWO)


def test_what_jvp_left_as_a_constant_is_one_to_the_next():
    constant = of_jvp(2.0, lambda x: x.detach() * 1)
    assert pb.jvp(lambda y: y * constant, (3.0,), (1.0,)) == (6.0, 2.0)


def test_jacfwd_refuses_what_the_function_kept_of_another_evaluation():
    cache = {}

    def cached(x):
        return cache.setdefault("tanh", np.tanh(x)) * x

    with pytest.raises(GraphError, match=RETURNED):
        pb.jacfwd(cached)(TWO)


def test_vmap_refuses_what_the_function_kept_of_another_chunk():
    kept = []
    with pytest.raises(GraphError, match=RETURNED):
        pb.vmap(lambda y: y * (kept.append(y) or kept[0]), chunk_size=1)(TWO)


def test_what_is_left_of_a_jvp_that_raised_is_refused():
    kept = []

    def broken(x):
        kept.append(x * 1)
        raise KeyError

    with pytest.raises(KeyError):
        pb.jvp(broken, (2.0,), (1.0,))
    with pytest.raises(GraphError, match=RETURNED):
        pb.jvp(lambda y: y * kept[0], (2.0,), (1.0,))


def test_a_generator_of_one_jvp_is_refused_in_another():
    generators = []

    def numbers(x):
        while True:
            x = x * 2
            yield x

    pb.jvp(lambda x: generators.append(numbers(x)) or next(generators[0]), (2.0,), (1.0,))
    with pytest.raises(GraphError, match=RETURNED):
        pb.jvp(lambda y: y * next(generators[0]), (2.0,), (1.0,))


def test_jvp_in_one_thread_refuses_what_one_in_another_computes():
    kept, raised, ready, done = [], [], threading.Event(), threading.Event()

    def first():
        pb.jvp(lambda x: (kept.append(x), ready.set(), done.wait(60), x)[-1], (2.0,), (1.0,))

    def second():
        ready.wait(60)
        try:
            pb.jvp(lambda y: y * kept[0], (3.0,), (1.0,))
        except GraphError as error:
            raised.append(str(error))
        done.set()

    threads = [threading.Thread(target=f) for f in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert RETURNED in raised[0]
