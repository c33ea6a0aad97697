"""backward() and grad() in several threads at once."""

import threading

import pytest
from tests.tensors import leaf


def in_threads(count, work):
    """Run `work(index)` in `count` threads at once; return results and errors by index."""
    barrier = threading.Barrier(count)
    results, errors = [None] * count, [None] * count

    def run(index):
        barrier.wait()
        try:
            results[index] = work(index)
        except Exception as error:
            errors[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    return results, errors


def function(x):
    """Return a function whose derivative is x + 3.5."""
    return (x + 3) * (x + 4) * 0.5


VALUES = [[0.5, 1.0], [2.0, -4.0]]


DERIVATIVE = [[4.0, 4.5], [5.5, -0.5]]


NOTHING = [None] * 10


@pytest.mark.case("MT1")
def test_backward_in_threads_of_private_leaves():
    def work(index):
        x = leaf(VALUES)
        function(x).sum().backward()
        return x.grad.tolist()

    results, errors = in_threads(10, work)
    assert errors == NOTHING
    assert results == [DERIVATIVE] * 10


@pytest.mark.case("MT1")
def test_backward_in_threads_loses_no_contribution_to_a_shared_leaf():
    for _ in range(20):
        x = leaf(VALUES)

        def work(index, x=x):
            function(x).sum().backward()

        _, errors = in_threads(10, work)
        assert errors == NOTHING
        assert x.grad.tolist() == [[10 * value for value in row] for row in DERIVATIVE]


@pytest.mark.case("MT1")
def test_backward_in_threads_many_times_over_a_shared_leaf():
    x = leaf([1.0])

    def work(index):
        for _ in range(200):
            (x * 1).backward()

    _, errors = in_threads(10, work)
    assert errors == NOTHING
    assert x.grad.tolist() == [2000.0]


@pytest.mark.case("MT2")
def test_retain_graph_lets_threads_share_a_part_of_the_graph():
    x = leaf([1.0])
    y = x + x**2

    def work(index):
        z = y + y**2
        z.backward(retain_graph=True)

    _, errors = in_threads(5, work)
    assert errors == [None] * 5
    assert x.grad.tolist() == [75.0]  # 5 (4x^3 + 6x^2 + 4x + 1)


@pytest.mark.case("MT2")
def test_without_retain_graph_one_thread_at_least_succeeds():
    x = leaf([1.0])
    y = x + x**2

    def work(index):
        z = y + y**2
        z.backward()
        return True

    results, errors = in_threads(5, work)
    failures = [error for error in errors if error is not None]
    assert results.count(True) >= 1
    assert results.count(True) + len(failures) == 5
    for error in failures:
        assert isinstance(error, RuntimeError)
        assert "retain_graph=True" in str(error)
        assert "backward through the graph a second time" in str(error)
