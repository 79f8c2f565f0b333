"""Staleness: a clean run leaves none; what changes later says who and why."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from growth import lines_run
from quire.task.document import Cell, identified
from quire.task.stale import CHANGED, Ran, never_ran, stale

CHAIN = ["x = 1", "y = x + 1", "z = y + 1", "w = 5"]


def doc(*sources: str) -> tuple[Cell, ...]:
    """Cells; `title: source` gives one a title."""
    made = []
    for source in sources:
        title, found, rest = source.partition(": ")
        title = title if found and title.isidentifier() else ""
        made.append(Cell("code", rest if title else source, title=title))
    return identified(made)


def ran(cells: tuple[Cell, ...], *order: int, start: int = 1) -> list[Ran]:
    return [
        Ran(cells[at].id, cells[at].source, when, at, cells[at].title)
        for when, at in enumerate(order, start)
    ]


def by_index(cells: tuple[Cell, ...], history: list[Ran]) -> dict[int, str]:
    found = stale(cells, history)
    return {at: found[cell.id] for at, cell in enumerate(cells) if cell.id in found}


def test_a_clean_run_leaves_nothing_stale():
    cells = doc(
        "def f():\n    return late", "x = 1", "print(x)", "x = 2", "items = []", "items.append(x)",
        "print(items)", "items.append(3)", "late = 1", "f()", "late = 2", "%matplotlib inline",
    )  # fmt: skip
    assert by_index(cells, ran(cells, *range(len(cells)))) == {}
    assert never_ran(cells, ran(cells, *range(len(cells)))) == ()


def test_never_ran_is_told_apart():
    cells = doc(*CHAIN)
    assert never_ran(cells, []) == tuple(cell.id for cell in cells)
    assert stale(cells, []) == {}
    assert never_ran(cells, ran(cells, 0, 1)) == (cells[2].id, cells[3].id)


def test_what_it_uses_ran_again():
    cells = doc("load: x = 1", *CHAIN[1:])
    assert by_index(cells, ran(cells, 0, 1, 2, 3, 0)) == {
        1: "uses x, which cell 0 (load) defined again later",
        2: "uses y, which cell 1 defines, and that is stale itself",
    }
    assert by_index(cells, ran(cells, 0, 1, 2, 3, 0, 1)) == {
        2: "uses y, which cell 1 defined again later"
    }
    assert by_index(cells, ran(cells, 0, 1, 2, 3, 0, 1, 2)) == {}


def test_run_in_the_wrong_order():
    cells = doc(*CHAIN)
    assert by_index(cells, ran(cells, 1, 0)) == {1: "uses x, which cell 0 defined later"}


def test_an_edited_cell_and_those_below_it():
    cells = doc(*CHAIN)
    history = ran(cells, 0, 1, 2, 3)
    after = doc("x = 7", *CHAIN[1:])
    assert by_index(after, history) == {
        0: CHANGED,
        1: "uses x, which cell 0 defines, and that changed since it ran",
        2: "uses y, which cell 1 defines, and that is stale itself",
    }
    again = history + ran(after, 0, 1, 2, start=5)
    assert by_index(after, again) == {}


def test_a_changed_cell_is_known_by_title_place_or_first_line():
    titled = ran(doc("load: x = 1", "y = 2"), 0, 1)
    assert by_index(doc("new = 1", "y = 2", "load: x = 5"), titled) == {2: CHANGED}
    placed = ran(doc("a = 1", "b = 2", "c = 3"), 0, 1, 2)
    # One was put above: the places below have moved with it.
    moved = doc("new = 1", "a = 1", "b = 5", "c = 3")
    assert by_index(moved, placed) == {2: CHANGED}
    assert never_ran(moved, placed) == (moved[0].id,)
    plain = [Ran(r.cell_id, r.source, r.order) for r in placed]
    assert by_index(doc("a = 1", "b = 9", "c = 3"), plain) == {1: CHANGED}


def test_an_edit_that_was_taken_back():
    old, new = doc("x = 1", "print(x)"), doc("x = 2", "print(x)")
    history = ran(old, 0, 1) + ran(new, 0, 1, start=3)
    assert by_index(old, history) == {
        0: "it ran with another text since",
        1: "uses x, which cell 0 defines, and that is stale itself",
    }


def test_a_new_cell_in_between():
    history = ran(doc("x = 1", "print(x)"), 0, 1)
    cells = doc("x = 1", "x = 5", "print(x)")
    assert by_index(cells, history) == {2: "uses x, which cell 1 defines, and that has not run"}


def test_a_cell_that_is_gone():
    history = ran(doc("x = 1", "print(x)", "y = 1"), 0, 1, 2)
    assert by_index(doc("print(x)", "y = 1"), history) == {
        0: "uses x, which no cell above it defines any more"
    }


def test_changes_in_place():
    cells = doc("d = {}", "fill: d['a'] = 1", "print(d)", "import m", "m.go()", "m.stop()")
    history = ran(cells, *range(6), 1)
    assert by_index(cells, history) == {2: "uses d, which cell 1 (fill) changed again later"}
    # Calling a function of a module does not change the module.
    assert by_index(cells, ran(cells, *range(6), 4)) == {}


def test_through_functions():
    cells = doc("k = 1", "def g():\n    return k", "def f():\n    return g()", "r = f()", "f")
    history = ran(cells, *range(5), 0)
    found = by_index(cells, history)
    assert found[3] == "uses k through f, which cell 0 defined again later"
    assert set(found) == {3, 4}
    cycle = doc("k = 1", "def a():\n    return b()", "def b():\n    return a() + k", "a()")
    assert set(by_index(cycle, ran(cycle, *range(4), 0))) == {3}
    edited = doc("k = 2", *(cell.source for cell in cells[1:]))
    assert by_index(edited, ran(cells, *range(5)))[3] == (
        "uses k through f, which cell 0 defines, and that changed since it ran"
    )


def test_code_outside_the_task():
    cells = doc(*CHAIN)
    history = [*ran(cells, 0, 1, 2, 3), Ran("", "x = 9", 5)]
    assert by_index(cells, history)[1] == "uses x, which code outside the task defined later"
    assert by_index(cells, [*history, *ran(cells, 1, 2, start=6)]) == {}
    assert by_index(doc("print(q)"), [Ran("", "q = 1", 1), *ran(doc("print(q)"), 0, start=2)]) == {}


def test_a_call_on_a_module_outside_the_task_changes_nothing():
    cells = doc("import math, time", "from lib import np", "print(math.pi, time, np)")
    history = ran(cells, 0, 1, 2)
    for code in ("math.sqrt(2)", "time.sleep(0)", "import math\nmath.go()", "from lib import np"):
        assert by_index(cells, [*history, Ran("", code, 4)]) == {}, code
    for code in ("import other as math", "math = 1", "math.pi = 3", "del math"):
        found = by_index(cells, [*history, Ran("", code, 4)])
        assert found == {2: "uses math, which code outside the task defined later"}, code
    assert by_index(cells, [*history, Ran("", "from other import np", 4)]) != {}
    # One that code outside the task has imported neither, whoever calls it.
    cells = doc("m.stop()", "print(m)")
    history = [Ran("", "import m", 1), *ran(cells, 0, 1, start=2)]
    assert by_index(cells, [*history, Ran("", "m.go()", 4), *ran(cells, 0, start=5)]) == {}
    # A variable may be changed by any call of its methods, in a cell as well as outside.
    cells = doc("d = load()", "print(d)")
    assert set(by_index(cells, [*ran(cells, 0, 1), Ran("", "d.plot()", 3)])) == {1}


def test_star_imports_and_broken_cells():
    cells = doc("from m import *", "print(thing)", "x = = 1", "print(x)")
    assert by_index(cells, ran(cells, 0, 1, 2, 3)) == {}
    assert set(by_index(cells, ran(cells, 0, 1, 2, 3, 0))) == {1, 3}


def test_text_cells_are_never_stale():
    cells = identified([Cell("markdown", "# A"), Cell("code", "x = 1")])
    assert never_ran(cells, []) == (cells[1].id,)


def test_long_tasks_take_no_long_time():
    def cost(count: int) -> int:
        cells = doc(
            *(
                f"def f{n}(a):\n    return f{max(n - 1, 0)}(a) + x0\n"
                f"x{n} = f{max(n - 1, 0)}(x{max(n - 1, 0)})\ndf['a{n}'] = x{n}"
                for n in range(count)
            )
        )
        history = ran(cells, *range(count), 0)
        stale(cells, history)  # the names are read once
        found: list[int] = []
        lines = lines_run(lambda: found.append(len(stale(cells, history))))
        assert found == [count - 1]
        return lines

    assert cost(800) < 8 * 1.2 * cost(100)


_statements = st.sampled_from(
    ["{a} = 1", "{a} = {b}", "{a} = {b} + {c}", "{a} += 1", "print({b})", "{a}.append({b})",
     "def {a}():\n    return {b}", "{a}['k'] = {c}", "del {a}", "if {b}:\n    {a} = {c}"]
)  # fmt: skip


@st.composite
def tasks(draw: st.DrawFn) -> tuple[Cell, ...]:
    name = st.sampled_from("uvwxyz")
    sources = draw(st.lists(_statements, min_size=1, max_size=10))
    return identified(
        # Numbered, because equal cells change their ids with their number.
        Cell("code", f"# {n}\n" + text.format(a=draw(name), b=draw(name), c=draw(name)))
        for n, text in enumerate(sources)
    )


@settings(max_examples=200)
@given(tasks(), st.data())
def test_running_what_is_stale_from_top_to_bottom_leaves_nothing_stale(cells, data):
    count = len(cells)
    order = data.draw(st.lists(st.integers(0, count - 1), max_size=20))
    history = ran(cells, *order)
    todo = set(stale(cells, history)) | set(never_ran(cells, history))
    places = [at for at, cell in enumerate(cells) if cell.id in todo]
    after = history + ran(cells, *places, start=len(order) + 1)
    assert never_ran(cells, after) == ()
    assert stale(cells, after) == {}


@settings(max_examples=100)
@given(tasks(), tasks(), st.data())
def test_an_edit_makes_only_itself_and_what_follows_stale(cells, others, data):
    at = data.draw(st.integers(0, len(cells) - 1))
    history = ran(cells, *range(len(cells)))
    edited = identified(
        [*cells[:at], Cell("code", others[0].source + "  # edited"), *cells[at + 1 :]]
    )
    found = by_index(edited, history)
    assert found[at] == CHANGED
    assert all(place >= at for place in found)
