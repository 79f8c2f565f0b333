"""What both kernels do alike: streams, displays, magics, libraries."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from kernel_cells import Sheet, failed, ok, run

from quire.kernel.protocol import Kernel
from quire.record.events import CellFinished, OutputAdded, OutputsCleared, OutputUpdated

Start = Callable[..., Kernel]
PNG = b"\x89PNG\r\n\x1a\n"


# State


def test_state_persists_between_cells(kernel: Kernel) -> None:
    ok(kernel, "kept = [1]")
    ok(kernel, "kept.append(2)")
    assert ok(kernel, "print(kept)").stdout == "[1, 2]\n"


def test_execution_count_rises_by_one(kernel: Kernel) -> None:
    first, second = ok(kernel, "1").end, ok(kernel, "2").end
    assert isinstance(first, CellFinished)
    assert isinstance(second, CellFinished)
    assert first.execution_count is not None
    assert second.execution_count == first.execution_count + 1


def test_history_of_results(kernel: Kernel) -> None:
    ok(kernel, "6 * 7")
    ran = ok(kernel, "print(_, _ + 1, Out[max(Out)], In[-2])")
    assert ran.stdout == "42 43 42 6 * 7\n"


def test_it_looks_like_a_notebook(kernel: Kernel) -> None:
    code = "print(type(get_ipython()).__name__, __name__, 'quire' in globals())"
    assert ok(kernel, code).stdout == "ZMQInteractiveShell __main__ False\n"


def test_classes_of_a_cell_can_be_pickled(kernel: Kernel) -> None:
    ok(kernel, "import pickle\nclass Point:\n    def __init__(self, x): self.x = x")
    assert ok(kernel, "print(pickle.loads(pickle.dumps(Point(3))).x)").stdout == "3\n"


def test_cwd_and_environment_are_as_given(
    start: Start, tmp_path: Path, environment: dict[str, str]
) -> None:
    kernel = start(cwd=tmp_path, env={**environment, "QUIRE_TEST_WORD": "zwölf 🎻"})
    code = (
        "import os; print(os.getcwd()); print(os.environ['QUIRE_TEST_WORD'], 'SHELL' in os.environ)"
    )
    assert ok(kernel, code).stdout == f"{tmp_path}\nzwölf 🎻 False\n"
    assert ok(kernel, "!pwd").stdout.strip() == str(tmp_path)
    assert "PYTEST_CURRENT_TEST" in os.environ
    assert ok(kernel, "print('PYTEST_CURRENT_TEST' in os.environ)").stdout == "False\n"


def test_two_kernels_have_their_own_seeds_and_modules(start: Start) -> None:
    code = "import random, numpy; print(random.random(), numpy.random.rand())"
    first, second = (ok(start(), code).stdout.split() for _ in range(2))
    assert len(first) == len(second) == 2
    assert first[0] != second[0]
    assert first[1] != second[1]


# Streams


def test_streams_are_exact(kernel: Kernel) -> None:
    code = (
        "import sys\nprint('a'); sys.stdout.write('b\\t c'); print('é')\n"
        "print('x', file=sys.stderr)"
    )
    ran = ok(kernel, code)
    assert ran.stdout == "a\nb\t cé\n"
    assert ran.stderr == "x\n"


def test_flushed_streams_keep_their_order(kernel: Kernel) -> None:
    ran = ok(
        kernel,
        "import sys\nfor i in range(3):\n"
        "    print('o', i, flush=True)\n    print('e', i, file=sys.stderr, flush=True)",
    )
    shown = [(o["name"], o["text"]) for o in ran.outputs]
    assert shown == [
        pair for i in range(3) for pair in (("stdout", f"o {i}\n"), ("stderr", f"e {i}\n"))
    ]


def test_a_display_comes_after_what_was_printed_before_it(kernel: Kernel) -> None:
    ran = ok(kernel, "print('before'); display(1); print('after')")
    assert [o["output_type"] for o in ran.outputs] == ["stream", "display_data", "stream"]


@pytest.mark.parametrize(
    ("code", "stdout", "stderr"),
    [
        ("import os; done = os.system('echo out; echo err >&2')", "out\n", "err\n"),
        ("import subprocess; done = subprocess.run(['echo', 'sub'])", "sub\n", ""),
        ("import os; done = os.write(1, b'one'); done = os.write(2, b'two')", "one", "two"),
        (
            "import ctypes; c = ctypes.CDLL(None); c.puts(b'from C'); done = c.fflush(None)",
            "from C\n",
            "",
        ),
        ("import subprocess; done = subprocess.run('echo 🎻 ünï', shell=True)", "🎻 ünï\n", ""),
    ],
    ids=["os.system", "subprocess", "os.write", "libc", "utf-8"],
)
def test_descriptors_one_and_two_are_captured(
    kernel: Kernel, code: str, stdout: str, stderr: str
) -> None:
    # More than once, since what arrives late in one cell would show up in the next.
    for _ in range(5):
        ran = ok(kernel, code)
        assert (ran.stdout, ran.stderr) == (stdout, stderr)


def test_large_output_of_a_child_process_is_complete(kernel: Kernel) -> None:
    ran = ok(kernel, "import os; done = os.system('seq 1 100000')")
    assert ran.stdout.split() == [str(i) for i in range(1, 100001)]


def test_binary_garbage_is_replaced_not_fatal(kernel: Kernel) -> None:
    ran = ok(kernel, "import os; done = os.write(1, b'<' + bytes(range(128, 256)) + b'>')")
    assert ran.stdout.startswith("<")
    assert ran.stdout.endswith(">")
    assert "\ufffd" in ran.stdout
    assert ok(kernel, "print('alive')").stdout == "alive\n"


@pytest.mark.parametrize(
    "text", ["naïve Ω ж 漢字", "🎻👩‍👩‍👧", "a\0b", "\x1b[31mred\x1b[0m", "tab\tcr\rbell\a"]
)
def test_unicode_arrives_as_it_was_printed(kernel: Kernel, text: str) -> None:
    assert ok(kernel, f"print({text!r})").stdout == text + "\n"


def test_lone_surrogates_do_not_lose_the_rest(kernel: Kernel) -> None:
    ran = ok(kernel, "print('a\\ud800b')")
    assert ran.stdout.startswith("a")
    assert ran.stdout.endswith("b\n")
    assert ran.stderr == ""


def test_warnings_and_logging_go_to_stderr(kernel: Kernel) -> None:
    ran = ok(
        kernel,
        "import warnings, logging\nwarnings.warn('careful')\n"
        "logging.getLogger('task').warning('logged %d', 1)",
    )
    assert "UserWarning: careful" in ran.stderr
    assert "logged 1" in ran.stderr
    assert ran.stdout == ""


def test_sixty_thousand_flushed_prints(kernel: Kernel) -> None:
    ran = ok(kernel, "for i in range(60_000): print(i, flush=True)")
    assert ran.stdout == "".join(f"{i}\n" for i in range(60_000))


def test_five_megabytes(kernel: Kernel) -> None:
    ran = ok(kernel, "for i in range(5): print(str(i) * 1_000_000)")
    assert ran.stdout == "".join(str(i) * 1_000_000 + "\n" for i in range(5))


def test_a_child_made_by_fork_prints(kernel: Kernel) -> None:
    sheet = Sheet()
    run(
        kernel,
        "import multiprocessing\n"
        "def work(): print('in the child', flush=True)\n"
        "p = multiprocessing.get_context('fork').Process(target=work); p.start(); p.join()",
        "first",
        sheet,
    )
    # It may reach the kernel's publisher after the end of the cell, still as the cell's own.
    run(kernel, "print(p.exitcode, flush=True)", "second", sheet)
    everything = [o["text"] for outputs in sheet.cells.values() for o in outputs]
    assert sorted("".join(everything).splitlines()) == ["0", "in the child"]


def test_a_thread_prints_during_its_cell(kernel: Kernel) -> None:
    code = (
        "import threading\nt = threading.Thread(target=print, args=('thread',))\n"
        "t.start(); t.join()"
    )
    assert ok(kernel, code).stdout == "thread\n"


def test_a_thread_that_prints_after_its_cell_disturbs_nothing(kernel: Kernel) -> None:
    sheet = Sheet()
    run(
        kernel,
        "import threading\ngo = threading.Event()\n"
        "def late():\n    go.wait()\n    print('late')\n"
        "t = threading.Thread(target=late); t.start()",
        "first",
        sheet,
    )
    second = run(kernel, "go.set(); t.join(); print('second', flush=True)", "second", sheet)
    assert isinstance(second.end, CellFinished)
    assert second.end.status == "ok"
    assert "second\n" in second.stdout
    # Which of the two cells shows it is the kernel's choice; nothing is lost.
    everything = [o["text"] for outputs in sheet.cells.values() for o in outputs]
    assert sorted("".join(everything).split()) == ["late", "second"]


# Displays


def test_execute_result(kernel: Kernel) -> None:
    ran = ok(kernel, "{'a': 1}")
    (output,) = ran.outputs
    assert isinstance(ran.end, CellFinished)
    assert output == {
        "output_type": "execute_result",
        "data": {"text/plain": "{'a': 1}"},
        "metadata": {},
        "execution_count": ran.end.execution_count,
    }


def test_a_semicolon_hides_the_result(kernel: Kernel) -> None:
    assert ok(kernel, "42;").outputs == []


def test_display_html(kernel: Kernel) -> None:
    (output,) = ok(kernel, "from IPython.display import HTML; display(HTML('<b>x</b>'))").outputs
    assert output["output_type"] == "display_data"
    assert output["data"]["text/html"] == "<b>x</b>"


def test_update_display(kernel: Kernel) -> None:
    ok(kernel, "handle = display('one', display_id='spot')")
    ran = ok(kernel, "handle.update('two')")
    (update,) = [e for e in ran.events if isinstance(e, OutputUpdated)]
    assert update.display_id == "spot"
    assert update.data["text/plain"] == "'two'"
    assert ran.outputs == []


def test_a_display_carries_its_id(kernel: Kernel) -> None:
    ran = ok(kernel, "display(1, display_id='here'); display(2)")
    ids = [e.display_id for e in ran.events if isinstance(e, OutputAdded)]
    assert ids == ["here", None]


@pytest.mark.parametrize("wait", [True, False])
def test_clear_output(kernel: Kernel, wait: bool) -> None:
    code = (
        "from IPython.display import clear_output\n"
        f"print('a'); clear_output(wait={wait}); print('b')"
    )
    ran = ok(kernel, code)
    assert [e.wait for e in ran.events if isinstance(e, OutputsCleared)] == [wait]
    assert ran.stdout == "b\n"


def test_png_bytes(kernel: Kernel) -> None:
    code = (
        "import base64\nfrom IPython.display import Image\n"
        f"display(Image(data={PNG + b'rest'!r}, format='png'))"
    )
    (data,) = ok(kernel, code).data()
    assert base64.b64decode(data["image/png"]) == PNG + b"rest"
    assert ok(kernel, "b'raw'").data() == [{"text/plain": "b'raw'"}]


def test_a_repr_that_raises_fails_the_cell_but_shows_the_rest(kernel: Kernel) -> None:
    ran = failed(
        kernel,
        "class Bad:\n"
        "    def _repr_html_(self): raise ValueError('no html')\n"
        "    def __repr__(self): return 'plain'\n"
        "Bad()",
    )
    assert ran.data("execute_result") == [{"text/plain": "plain"}]
    assert ran.error == "ValueError"


# Libraries that look for a notebook


def test_pandas_gives_html(kernel: Kernel) -> None:
    (data,) = ok(kernel, "import pandas as pd; pd.DataFrame({'a': [1, 2]})").data("execute_result")
    assert "<table" in data["text/html"]
    assert "text/plain" in data


def test_matplotlib_is_inline_without_asking(own: Kernel) -> None:
    ran = ok(own, "import matplotlib.pyplot as plt\ndone = plt.plot([1, 2, 3])")
    (data,) = ran.data("display_data")
    assert base64.b64decode(data["image/png"]).startswith(PNG)
    # The figure is closed with its cell: the next one does not show it again.
    assert ok(own, "1").data("display_data") == []


def test_matplotlib_inline_by_magic(kernel: Kernel) -> None:
    ran = ok(
        kernel, "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1]); plt.show()"
    )
    assert ["image/png" in data for data in ran.data("display_data")] == [True]


@pytest.mark.parametrize(
    ("code", "mime"),
    [
        ("from rich import print as rprint; rprint('[bold]bold[/bold]')", "text/html"),
        ("from rich.table import Table; t = Table('x'); t.add_row('1'); t", "text/html"),
        (
            "from tqdm.auto import tqdm\nfor _ in tqdm(range(3)): pass",
            "application/vnd.jupyter.widget-view+json",
        ),
        (
            "import ipywidgets; ipywidgets.IntSlider(value=3)",
            "application/vnd.jupyter.widget-view+json",
        ),
        (
            "import plotly.graph_objects as go; go.Figure(go.Scatter(y=[1, 2]))",
            "application/vnd.plotly.v1+json",
        ),
    ],
    ids=["rich", "rich table", "tqdm", "ipywidgets", "plotly"],
)
def test_library_gives_notebook_output(kernel: Kernel, code: str, mime: str) -> None:
    assert any(mime in data for data in ok(kernel, code).data())


# Magics and shell


def test_shell_escape(kernel: Kernel) -> None:
    assert ok(kernel, "!echo one; echo two").stdout.replace("\r\n", "\n") == "one\ntwo\n"
    assert ok(kernel, "lines = !printf 'a\\nb\\n'\nprint(list(lines))").stdout == "['a', 'b']\n"


def test_bash_cell(kernel: Kernel) -> None:
    ran = ok(kernel, "%%bash\nfor i in 1 2; do echo $i; done; echo err >&2")
    assert (ran.stdout, ran.stderr) == ("1\n2\n", "err\n")


def test_failing_bash_cell_is_an_error(kernel: Kernel) -> None:
    assert failed(kernel, "%%bash\nexit 3").error == "CalledProcessError"


def test_capture(kernel: Kernel) -> None:
    ran = ok(
        kernel,
        "%%capture caught\nimport sys\nprint('in'); print('err', file=sys.stderr); display(5)",
    )
    assert ran.outputs == []
    code = "print(repr(caught.stdout), repr(caught.stderr), len(caught.outputs))"
    assert ok(kernel, code).stdout == "'in\\n' 'err\\n' 1\n"


def test_files_and_directories(own: Kernel) -> None:
    ok(own, "%%writefile written.py\nvalue = 40 + 2")
    ok(own, "%run written.py")
    assert ok(own, "value").data() == [{"text/plain": "42"}]
    ok(own, "%mkdir -p below\n%cd -q below")
    assert ok(own, "import os; print(os.path.basename(os.getcwd()))").stdout == "below\n"


def test_help_is_not_lost(kernel: Kernel) -> None:
    assert "Help on built-in function len" in ok(kernel, "help(len)").stdout


def test_a_page_of_help_is_an_output(kernel: Kernel) -> None:
    (data,) = ok(kernel, "len?").data("display_data")
    assert "number of items" in data["text/plain"]


# Async


def test_top_level_await(kernel: Kernel) -> None:
    code = (
        "import asyncio\nawait asyncio.sleep(0)\n"
        "await asyncio.gather(*[asyncio.sleep(0, i) for i in (1, 2)])"
    )
    assert ok(kernel, code).data() == [{"text/plain": "[1, 2]"}]


def test_a_task_goes_on_in_later_cells(kernel: Kernel) -> None:
    ok(
        kernel,
        "import asyncio\nsteps = []\ngate = asyncio.Event()\n"
        "async def work():\n    await gate.wait()\n    steps.append('done')\n"
        "task = asyncio.create_task(work())",
    )
    assert ok(kernel, "print(steps, task.done())").stdout == "[] False\n"
    assert ok(kernel, "gate.set()\nawait task\nprint(steps)").stdout == "['done']\n"


def test_there_is_a_running_loop_in_a_plain_cell(kernel: Kernel) -> None:
    assert (
        ok(kernel, "import asyncio; print(asyncio.get_running_loop().is_running())").stdout
        == "True\n"
    )


def test_async_for_and_with(kernel: Kernel) -> None:
    ran = ok(
        kernel,
        "import contextlib\n"
        "async def numbers():\n    for i in range(3): yield i\n"
        "@contextlib.asynccontextmanager\nasync def opened():\n    yield 'open'\n"
        "async with opened() as state:\n    print(state, [i async for i in numbers()])",
    )
    assert ran.stdout == "open [0, 1, 2]\n"


def test_an_output_widget_clears_only_itself(kernel: Kernel) -> None:
    ran = ok(
        kernel,
        "import ipywidgets\nfrom IPython.display import clear_output\n"
        "print('kept')\narea = ipywidgets.Output()\n"
        "with area:\n    print('first')\n    clear_output()\n    print('second')\n"
        "print('end')",
    )
    areas = [(e.output["text"], bool(e.area)) for e in ran.events if isinstance(e, OutputAdded)]
    assert ("first\n", True) in areas
    assert ("second\n", True) in areas
    assert {text for text, inside in areas if not inside} == {"kept\n", "end\n"}
    (cleared,) = [e for e in ran.events if isinstance(e, OutputsCleared)]
    assert cleared.area


def test_a_failed_cell_tells_what_it_worked_with(kernel: Kernel) -> None:
    ok(kernel, "def share(part, whole=0):\n    return part / whole\nrows = {'a': [1, 2]}")
    end = failed(kernel, "%time 1\nshare(len(rows))").end
    assert isinstance(end, CellFinished)
    told = [(one["name"], one["type"], one["value"], one.get("scope")) for one in end.variables]
    assert told == [
        ("rows", "dict", "{'a': [1, 2]}", None),
        ("part", "int", "1", "share"),
        ("whole", "int", "0", "share"),
    ]
    # It leaves nothing behind, and takes no number.
    after = ok(kernel, "print('d' in globals(), 'last' in globals())").end
    assert isinstance(after, CellFinished)
    assert after.execution_count == (end.execution_count or 0) + 1
    assert after.variables == ()


def test_what_is_kept_aside_by_its_name_does_not_break_a_failing_cell(kernel: Kernel) -> None:
    end = failed(kernel, "get_ipython = json = 1\n1 / 0").end
    assert isinstance(end, CellFinished)
    assert end.error is not None
    assert end.error.name == "ZeroDivisionError"
    ok(kernel, "del get_ipython, json\nfrom IPython import get_ipython")
