"""The command line, in this process and in one of its own."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.check._programs import RIGHT, UNGUESSED, WRONG

import pullback as pb
from pullback.check import PARTS, deadline
from pullback.cli import main

TITLES = [title for _, title, *_ in PARTS]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with operations to check, and an environment that asks for no colours."""
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "ops.py").write_text(RIGHT + WRONG + UNGUESSED)
    (tmp_path / "unguessed.py").write_text(RIGHT + UNGUESSED)
    (tmp_path / "empty.py").write_text("from pullback import Function\n")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "broken.py").write_text("import not_there\n")
    (tmp_path / "files" / "right.py").write_text(RIGHT)
    return tmp_path


def check(*args):
    return main(["check", "--fast", *args])


def of_json(capsys, *args):
    code = check("--json", *args)
    return code, json.loads(capsys.readouterr().out)


# ---------------------------------------------------------------------- what is printed


def test_each_operation_has_a_line_for_each_part(capsys):
    assert check("right.py") == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines[0].startswith("right.py:square  right  ")
    of_parts = lines[1 : 1 + len(TITLES)]
    for title, line in zip(TITLES, of_parts, strict=True):
        assert line.startswith(f"  {title} ")
    assert any(line.split() == ["first", "derivatives", "passed"] for line in of_parts)
    assert lines[-2:] == ["1 operation: 1 right, seed 0", ""]


def test_failures_and_notes_are_printed_in_words(capsys):
    assert check("ops.py:Cube", "--inputs", "x: (n, d)") == 1
    out = capsys.readouterr().out
    assert out.startswith("ops.py:Cube  wrong  ")
    assert "\n  - `x` is off by the factor 2" in out
    assert "\n        argument  worst element  expected  got\n" in out
    assert "\n  note: inputs: x (" in out
    assert out.endswith("\n1 operation: 1 wrong, seed 0\n")


def test_what_could_not_be_guessed_is_printed_with_what_to_write(capsys):
    check("ops.py")
    out = capsys.readouterr().out
    assert 'hint: write CHECK_INPUTS = {"blocks": "x: ' in out
    assert out.endswith("\n3 operations: 1 right, 1 wrong, 1 not checked, seed 0\n")


def test_what_could_not_be_imported_is_printed(capsys):
    assert check("files") == 2
    out = capsys.readouterr().out
    assert "\nfiles/broken.py: not imported: ModuleNotFoundError: No module named" in out


def test_output_that_is_no_terminal_is_plain_and_not_wrapped(capsys):
    check("ops.py")
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\r" not in out
    assert max(map(len, out.split("\n"))) > 60
    assert not [line for line in out.split("\n") if line != line.rstrip()]


CODES = r"\x1b\[[0-9;]*m"  # of colours


class Screen:
    """What a terminal is to Rich."""

    encoding = "utf-8"

    def __init__(self):
        self.written = ""

    def write(self, text):
        self.written += text
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return True


@pytest.fixture
def on_screen(monkeypatch):
    """Return what a check writes to a terminal."""

    def on_screen(*args):
        screen = Screen()
        with monkeypatch.context() as context:
            context.setattr(sys, "stdout", screen)
            context.setenv("COLUMNS", "120")
            check(*args)
        return screen.written

    return on_screen


def test_a_terminal_gets_colours_and_a_progress_bar(on_screen):
    written = on_screen("ops.py")
    assert "\x1b[1;32mright\x1b[0m" in written
    assert "\x1b[1;31mfailed\x1b[0m" in written
    assert "2/3 ops.py:blocks" in re.sub(CODES, "", written)  # the bar counts
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")  # the cursor is back


def test_the_bar_names_the_part_that_takes_long(on_screen, monkeypatch):
    monkeypatch.setattr(deadline, "_SOON", 0.0)
    monkeypatch.setattr(deadline, "_PAUSE", 0.0)
    written = re.sub(CODES, "", on_screen("right.py"))
    assert "0/1 square: first derivatives (3 of 16)" in written


def test_no_color_keeps_the_bar_and_drops_the_colours(on_screen):
    written = on_screen("--no-color", "ops.py")
    assert "2/3 ops.py:blocks" in written
    assert not re.findall(CODES, written)
    assert "ops.py:square  right" in written


def test_json_is_plain_on_a_terminal_too(on_screen):
    assert json.loads(on_screen("--json", "right.py"))["ok"]


# ---------------------------------------------------------------------- exit codes


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["right.py"], 0),
        (["ops.py"], 1),
        (["ops.py:square"], 0),
        (["ops.py:Cube"], 1),
        (["unguessed.py"], 2),
        (["unguessed.py", "--allow-unchecked"], 0),
        (["unguessed.py:blocks"], 2),
        (["ops.py", "--allow-unchecked"], 1),
        (["files"], 2),
        (["files", "--allow-unchecked"], 0),
        (["right.py", "--time-limit", "1e-9"], 2),
        (["files/broken.py"], 2),
        (["empty.py"], 2),
        (["nothing.py"], 2),
        (["nothing"], 2),
        (["right.py:squares"], 2),
        (["right.py", "--only", "frist"], 2),
        (["right.py", "--ignore", "first="], 2),
        (["ops.py:Cube", "--ignore", "first=known", "--skip", "masks"], 0),
        (["right.py", "--order", "2"], 0),
        (["right.py", "--inputs", "x: (n,"], 2),
        (["right.py", "--inputs", "y: (n,)"], 2),
        (["ops.py", "--inputs", "x: (n,)"], 2),
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_exit_code_says_what_came_out(capsys, args, code, form):
    assert check(*args, *form) == code


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ([], "the following arguments are required: command"),
        (["check"], "the following arguments are required: target"),
        (["check", "right.py", "--seed", "a"], "invalid int value: 'a'"),
        (["check", "right.py", "--fasst"], "unrecognized arguments: --fasst"),
        (["check", "right.py", "--ignore", "first"], "a part, = and a reason are required"),
        (["check", "right.py", "--order", "3"], "invalid choice"),
        (["prove", "right.py"], "invalid choice: 'prove'"),
    ],
)
def test_a_wrong_command_line_exits_with_2_and_says_why(capsys, args, told):
    with pytest.raises(SystemExit) as caught:
        main(args)
    assert caught.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["nothing.py"], "can be imported is required, got nothing.py (not imported: FileNotFound"),
        (["empty.py"], "a forward and a backward are required, got none that empty.py defines."),
        (["files/broken.py"], "got files/broken.py (not imported: ModuleNotFoundError: No mod"),
        (["right.py", "--seed", "-1"], "seed must be a whole number from 0 on, got -1"),
        (["right.py", "--time-limit", "-1"], "time_limit must be a number from 0 on, got -1.0"),
        (["right.py", "--only", "frist"], "parts of the check, got 'frist'; the parts are: "),
        (["ops.py", "--inputs", "x: (n,)"], "one operation is required for --inputs, got 3.\nhint"),
    ],
)
def test_an_error_is_a_text_on_the_error_stream(capsys, args, told):
    check(*args)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert told in captured.err
    assert "Traceback" not in captured.err


def test_a_folder_where_nothing_could_be_imported_says_what_stood_in_the_way(capsys, folder):
    (folder / "files" / "right.py").unlink()
    assert check("files") == 2
    assert "files/broken.py: not imported: ModuleNotFoundError" in capsys.readouterr().out


# ---------------------------------------------------------------------- options


def test_json_is_one_document_with_everything(capsys):
    code, document = of_json(capsys, "ops.py", "--seed", "3")
    assert code == 1
    assert set(document) == {"target", "seed", "ok", "error", "operations", "problems"}
    assert (document["target"], document["seed"], document["ok"]) == ("ops.py", 3, False)
    square, cube, blocks = document["operations"]
    assert (square["id"], square["status"]) == ("ops.py:square", "right")
    assert square["report"]["ok"] is True
    assert [part["title"] for part in square["report"]["parts"]] == TITLES
    assert (cube["status"], cube["report"]["failures"][0]["cause"]) == ("wrong", "factor")
    assert cube["report"]["seed"] == 3
    assert (blocks["status"], blocks["report"]["parts"]) == ("not checked", [])


def test_json_holds_errors_and_problems_too(capsys):
    code, document = of_json(capsys, "nothing.py")
    assert (code, document["ok"], document["operations"]) == (2, False, [])
    assert document["error"].startswith("pullback check: a module, file or folder that can be")
    _, document = of_json(capsys, "files")
    assert [problem["place"] for problem in document["problems"]] == ["files/broken.py"]


def test_json_is_all_that_is_printed(capsys, folder):
    (folder / "loud.py").write_text("print('imported')\n" + RIGHT)
    code = check("--json", "loud.py")
    captured = capsys.readouterr()
    assert (code, json.loads(captured.out)["ok"]) == (0, True)
    assert "imported" in captured.err


def test_parts_are_chosen_by_only_and_skip(capsys):
    _, document = of_json(capsys, "right.py", "--skip", "first")
    parts = document["operations"][0]["report"]["parts"]
    assert [part["status"] for part in parts if part["name"] == "first"] == ["skipped"]
    _, document = of_json(capsys, "right.py", "--only", "first")
    parts = document["operations"][0]["report"]["parts"]
    assert {part["name"] for part in parts if part["status"] != "skipped"} == {"first"}


def test_no_change_of_the_source_is_sought_without_repair(capsys):
    for options, sought in (([], True), (["--no-repair"], False)):
        main(["check", "--json", "ops.py:Cube", *options])
        (found,) = json.loads(capsys.readouterr().out)["operations"]
        assert bool(found["report"]["failures"][0]["repair"]) is sought


def test_inputs_are_given_for_one_operation(capsys):
    code, document = of_json(capsys, "ops.py:square", "--inputs", "x: (5, 3)")
    assert code == 0
    assert "inputs: x (5, 3)" in document["operations"][0]["report"]["notes"]


def test_the_seed_repeats_the_check(capsys):
    def worst(seed):
        _, document = of_json(capsys, "ops.py:Cube", "--seed", seed, "--inputs", "x: (4, 3)")
        return document["operations"][0]["report"]["failures"][0]["worst"]

    assert worst("5") == worst("5") != worst("6")


# ---------------------------------------------------------------------- around it


def test_without_rich_only_json_works(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.split(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    assert check("right.py") == 2
    assert capsys.readouterr().err == (
        "pullback check: Rich is required to print what is found, got no such library.\n"
        "hint: pip install 'pullback[cli]', or use --json\n"
    )
    code, document = of_json(capsys, "right.py")
    assert (code, document["ok"]) == (0, True)


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"pullback {pb.__version__}\n"


def test_an_interruption_is_no_traceback(monkeypatch, capsys):
    def interrupted(target):
        raise KeyboardInterrupt

    monkeypatch.setattr("pullback.cli.discover", interrupted)
    assert check("right.py") == 130
    assert capsys.readouterr() == ("", "")


def test_the_module_is_a_program():
    command = [sys.executable, "-W", "error", "-m", "pullback", "check", "--fast", "ops.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("ops.py:square  right  ")
    assert done.stdout.endswith("3 operations: 1 right, 1 wrong, 1 not checked, seed 0\n")


def test_a_reader_that_has_seen_enough_ends_the_output():
    program = "from pullback.cli import main; raise SystemExit(main(['source', 'mul']))"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        running.stdout.close()
        assert (running.wait(120), running.stderr.read()) == (0, b"")


# ---------------------------------------------------------------------- source


def test_the_source_of_an_operation_is_its_call_and_its_backward(capsys):
    assert main(["source", "mul"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("def mul(x, y, /, *, out=None):\n")
    assert "\ndef mul_backward(node, g, wanted, recorded):\n" in text


def test_the_source_of_a_function_that_prepares_its_arguments_comes_first(capsys):
    assert main(["source", "broadcast_to"]) == 0
    text = capsys.readouterr().out
    assert text.index("def broadcast_to(x: Any, /,") < text.index("\ndef broadcast_to(x, /, *")


def test_the_source_of_a_composition_is_its_own(capsys):
    assert main(["source", "nn.functional.huber_loss"]) == 0
    assert "def huber_loss(" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["foo", "linalg.foo", "float32"])
def test_what_is_no_operation_has_no_source(name, capsys):
    assert main(["source", name]) == 2
    assert capsys.readouterr().err.startswith("source: ")


# ---------------------------------------------------------------------- view
TRAIN = """
import pullback as pb
w = pb.tensor([1.0, 2.0], requires_grad=True)
loss = (w * w).sum()
if __name__ == "__main__":
    loss.backward()
"""


def test_view_runs_a_script_and_writes_the_page_of_a_variables_graph(tmp_path, capsys):
    script, page = tmp_path / "train.py", tmp_path / "g.html"
    script.write_text(TRAIN)
    assert main(["view", f"{script}:loss", "--output", str(page)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("graph of 2 nodes and 1 leaf: ")
    assert shown[1] == "  leaves: w (2,)"
    assert "Graph" in page.read_text("utf-8")


def test_view_opens_a_browser_unless_a_file_is_named(tmp_path, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    (tmp_path / "train.py").write_text(TRAIN)
    assert main(["view", f"{tmp_path / 'train.py'}:loss"]) == 0
    assert len(opened) == 1
    page = capsys.readouterr().out.splitlines()[-1].removeprefix("page: ")
    assert Path(page).as_uri() == opened[0]
    Path(page).unlink()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("train.py:los", "a tensor of train.py required, got los; the tensors are: w, loss"),
        ("train.py", "script.py:name required, got train.py"),
        ("absent.py:loss", "script.py:name required, got absent.py:loss"),
    ],
)
def test_view_says_what_a_target_has_to_be(target, said, tmp_path, monkeypatch, capsys):
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    assert main(["view", target]) == 2
    assert said in capsys.readouterr().err


def test_view_runs_a_script_as_python_does(tmp_path, capsys):
    (tmp_path / "helper_of_view.py").write_text("SCALE = 3.0\n")
    script = tmp_path / "uses.py"
    script.write_text(
        "import sys, helper_of_view, pullback as pb\n"
        "assert sys.argv == [__file__], sys.argv\n"
        "w = pb.tensor([1.0], requires_grad=True)\n"
        "loss = (w * helper_of_view.SCALE).sum()\n"
    )
    assert main(["view", f"{script}:loss", "-o", str(tmp_path / "g.html")]) == 0
    assert "<title>Graph of loss</title>" in (tmp_path / "g.html").read_text("utf-8")
    assert str(tmp_path) not in sys.path
