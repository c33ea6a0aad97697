"""A call without recording, and calls in several threads at once."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from pullback.check.comparison import differs, rounding_floors
from pullback.check.exceptions import BackwardError, ForwardError, first_line
from pullback.check.properties.reporting import report_if_different
from pullback.check.report import Cause
from pullback.check.session import Session, gradients
from pullback.check.subject import Run
from pullback.check.values import Array, copies
from pullback.core.graph.modes import no_grad

_THREADS = 4
_HINT = "keep no buffer or setting outside of ctx, nor in a threading.local"


def check_modes(session: Session) -> None:
    """Check that no_grad changes no value, and that calls in several threads are independent."""
    _check_no_grad(session)
    if not session.options.fast:
        _check_threads(session)


def _check_no_grad(session: Session) -> None:
    recorded = session.subject.run(copies(session.arrays)).values()
    with no_grad():
        run = session.subject.run(copies(session.arrays))
    limits = rounding_floors(session, recorded, [])
    for k, (got, expected, floor) in enumerate(zip(run.values(), recorded, limits, strict=True)):
        wrong = differs(got, expected, session.rtol, floor)
        if wrong.any():
            text = f"under no_grad the value of output {k} is different"
            session.fail(
                Cause("state", text, "compute the result in one way, recorded or not"),
                expected=expected,
                got=got,
                wrong=wrong,
            )
            return
    if any(out.grad_fn is not None for out in run.outputs):
        session.note(f"{session.subject.name} records under no_grad")


def _check_threads(session: Session) -> None:
    """Run forward in several threads at once, and each backward in another thread."""
    seeds = [session.seeds(f"thread {k}") for k in range(_THREADS)]
    serial = session.subject.run(copies(session.arrays))
    expected = [gradients(serial, g, session.arrays) for g in seeds]
    try:
        got = _in_threads(session, seeds)
    except (BackwardError, ForwardError) as error:
        reason = first_line(error)
        text = f"it depends on other threads: in {_THREADS} at once there is an error, {reason}"
        session.fail(Cause("state", text, _HINT))
        return
    for k in range(_THREADS):
        text = "depends on other threads that run at the same time"
        if report_if_different(session, "state", text, got[k], expected[k], seeds[k], _HINT):
            return


def _in_threads(session: Session, seeds: list[list[Array]]) -> list[list[Array]]:
    """Return the gradients for each of `seeds`, computed by one thread each."""
    runs: dict[int, Run] = {}
    barrier = threading.Barrier(_THREADS)

    def work(k: int) -> list[Array]:
        try:
            barrier.wait()
            runs[k] = session.subject.run(copies(session.arrays))
            barrier.wait()
            return gradients(runs[(k + 1) % _THREADS], seeds[k], session.arrays)
        except Exception:
            barrier.abort()  # no thread may wait for this one
            raise

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that threads interleave inside an operation
    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            futures = [pool.submit(work, k) for k in range(_THREADS)]
            errors = [future.exception() for future in futures]
    finally:
        sys.setswitchinterval(interval)
    for error in errors:
        if error is not None and not isinstance(error, threading.BrokenBarrierError):
            raise error
    return [future.result() for future in futures]
