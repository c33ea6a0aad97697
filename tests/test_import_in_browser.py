"""What a browser lacks is not needed: the import, a gradient and the checker do without it.

Python in a browser (Pyodide) starts no process and no thread, has no clock of a thread's own, and
lacks the modules that are named here. A process in which they are missing stands for it.
"""

import subprocess
import sys

LACKS = """
import os, subprocess, sys, threading, time

MISSING = set(
    "_multiprocessing _posixshmem curses dbm ensurepip fcntl grp idlelib lib2to3 pwd readline "
    "resource syslog termios tkinter venv".split()
)


class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def no_thread(*args, **kwargs):
    raise RuntimeError("can't start new thread")


def no_process(*args, **kwargs):
    raise OSError("no processes here")


for name in MISSING:  # what subprocess itself had
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Refusing())
threading.Thread.start = no_thread
subprocess.Popen = os.system = no_process
if hasattr(os, "fork"):
    os.fork = no_process
del time.thread_time
"""


def run_in_browser(program):
    """Run a program where all that is missing, and return what it prints."""
    command = [sys.executable, "-W", "error", "-c", LACKS + program]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_importing_pullback_needs_no_module_that_a_browser_lacks():
    program = """
import pullback as pb
import pullback.check, pullback.data, pullback.inspect, pullback.transforms

x = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
(x**2).sum().backward()
print(x.grad.tolist())
print(sorted(MISSING & sys.modules.keys()))
"""
    assert run_in_browser(program) == ["[2.0, 4.0, 6.0]", "[]"]


def test_check_op_needs_no_thread():
    program = """
import pullback as pb


def forward(ctx, x):
    ctx.save_for_backward(x=x)
    return x * x


def rule(factor):
    return lambda ctx, g: {"x": factor * ctx.saved_variables.x * g}


right, wrong = (pb.autograd_function(forward, rule(factor), name="square") for factor in (2, 3))
x = pb.tensor([1.0, 2.0, 3.0], dtype=pb.float64)
print(pb.check.check_op(right, x))
print(pb.check.check_op(right).ok)  # with inputs that it has to find itself
print(*pb.check.check_op(wrong, x, raise_exception=False).failures)
"""
    headline, *table = run_in_browser(program)
    assert headline == "square: the gradients are right (seed 0)"
    assert not [line for line in table if line.startswith("  note")]
    assert "  no_grad and threads      passed: in one thread: no other can be started here" in table
    assert "True" in table
    assert "`x` is off by the factor 1.500 everywhere" in table


def test_passes_within_passes_need_no_thread():
    program = """
import pullback as pb


def nested(depth):
    x = pb.tensor(1.0, requires_grad=True)
    if depth:
        x.register_hook(lambda g: g * nested(depth - 1))
    with pb.enable_grad():
        (2 * x).backward()
    return x.grad


print(nested(30).item() == 2.0**31)
"""
    assert run_in_browser(program) == ["True"]
