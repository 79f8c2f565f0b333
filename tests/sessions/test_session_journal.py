"""What a session's journal says."""

from __future__ import annotations

from quire.record.events import (
    CellError,
    CellFinished,
    CellStatus,
    CellSubmitted,
    Event,
    KernelDied,
    KernelReplaced,
    ResultGlued,
    Rewound,
    SessionClosed,
    SessionOpened,
)
from quire.sessions.session_journal import SessionState, fold_session

OPENED = SessionOpened("s", "t0", "/t.py", {"kernel": "", "parameters": {"a": 1}})

LOST = KernelReplaced(2, "its host ended", "t")
BACK = KernelReplaced(3, "its host ended", "t", "restored")


def ran(order: int, status: CellStatus | None = "ok", error: str = "") -> list[Event]:
    events: list[Event] = [CellSubmitted(f"c{order}", order, order - 1, "", f"n = {order}", "t")]
    if status == "died":
        events.append(KernelDied(f"c{order}", "killed"))
    if status is not None:
        ended = CellError(error, "") if error else None
        events.append(CellFinished(f"c{order}", status, error=ended))
    return events


def folded(*parts: Event | list[Event]) -> SessionState:
    events: list[Event] = [OPENED]
    for part in parts:
        events += part if isinstance(part, list) else [part]
    return fold_session(events)


def orders(state: SessionState) -> list[int]:
    return [one.cell.order for one in state.effective]


def test_what_was_opened() -> None:
    state = folded()
    assert (state.name, state.task, state.opened, state.epoch) == ("s", "/t.py", "t0", 1)
    assert state.plan["parameters"] == {"a": 1}
    assert not state.closed
    assert orders(state) == []
    assert folded(SessionClosed("t")).closed
    assert fold_session([]).name == ""


def test_what_ran_in_order() -> None:
    state = folded(ran(1), ran(2, "failed", "ValueError"), ran(3))
    assert orders(state) == [1, 2, 3]
    assert [one.status for one in state.ran] == ["ok", "failed", "ok"]


def test_a_rewind_undoes_what_came_after() -> None:
    state = folded(ran(1), ran(2), ran(3), Rewound(2, "t"), ran(2), Rewound(2, "t"))
    assert orders(state) == [1]
    assert orders(folded(ran(1), Rewound(1, "t"))) == []


def test_what_was_cut_short_does_not_count() -> None:
    parts = (
        ran(1),
        ran(2, "cancelled", "KeyboardInterrupt"),
        ran(3, "timed_out", "KeyboardInterrupt"),
        ran(4, "failed", "KeyboardInterrupt"),
        ran(5, "failed", "ValueError"),
        ran(6, None),
    )
    assert orders(folded(*parts)) == [1, 5]


def test_a_death_is_an_epoch_and_its_cell_does_not_count() -> None:
    state = folded(ran(1), ran(2, "died"))
    assert (state.epoch, orders(state)) == (2, [1])
    state = folded(ran(1), ran(2, "died"), Rewound(2, "t"), ran(2))
    assert (state.epoch, orders(state)) == (2, [1, 2])


def test_what_the_kernel_before_had_run_is_remembered() -> None:
    assert orders(folded(ran(1), ran(2), LOST)) == [1, 2]
    # What only failed for want of that state is left out; what ran well since is not.
    assert orders(folded(ran(1), ran(2), LOST, ran(3, "failed", "NameError"))) == [1, 2]
    assert orders(folded(ran(1), ran(2), LOST, ran(3))) == [1, 2, 3]
    # A loss may be written down twice, by who noticed it and by who had a new kernel made.
    assert orders(folded(ran(1), ran(2), LOST, LOST, ran(3))) == [1, 2, 3]


def test_who_goes_on_without_the_lost_state_and_loses_that_too_has_given_it_up() -> None:
    assert orders(folded(ran(1), ran(2), LOST, ran(3), LOST)) == [3]
    assert orders(folded(ran(1), ran(2), LOST, ran(3), LOST, ran(4))) == [3, 4]
    assert orders(folded(ran(1), LOST, ran(3, "failed", "NameError"), LOST)) == [1]


def test_a_restart_is_for_good_once_something_ran_well() -> None:
    again = KernelReplaced(3, "it was restarted", "t", "restarted")
    state = folded(ran(1), ran(2), LOST, ran(3, "failed", "NameError"), again)
    assert (state.epoch, orders(state)) == (3, [1, 2])
    assert orders(folded(ran(1), ran(2), LOST, again, ran(3), again)) == [3]
    assert orders(folded(ran(1), again, ran(2), LOST)) == [2]


def test_what_was_brought_back_counts_once() -> None:
    whole = (ran(1), ran(2), LOST, ran(3), BACK, ran(1), ran(2), ran(3))
    assert orders(folded(*whole)) == [1, 2, 3]
    assert orders(folded(*whole, ran(4, "failed", "ValueError"))) == [1, 2, 3, 4]
    assert orders(folded(*whole, LOST)) == [1, 2, 3]
    assert orders(folded(*whole, Rewound(2, "t"))) == [1]


def test_what_was_brought_back_only_in_part_is_still_there_to_be() -> None:
    begun = (ran(1), ran(2), ran(3), LOST, BACK, ran(1))
    assert orders(folded(*begun)) == [1, 2, 3]
    assert orders(folded(*begun, LOST)) == [1, 2, 3]
    assert orders(folded(*begun, ran(2, "failed", "OSError"), ran(5))) == [1, 2, 3, 5]


def test_a_kernel_in_which_nothing_ever_ran_well() -> None:
    assert orders(folded(ran(1, "failed", "ValueError"))) == [1]


def test_what_a_lost_kernel_gave_is_remembered_with_its_errors() -> None:
    glued = [ran(1)[0], ResultGlued("c1", "n", "json", 2), *ran(1)[1:]]
    state = folded(glued, ran(2, "failed", "ValueError"), LOST)
    assert [one.results for one in state.lost] == [{"n": 2}, {}]
    assert [one.error and one.error.name for one in state.lost] == [None, "ValueError"]
    # A fresh kernel that somebody asked for was wanted without it.
    assert folded(glued, LOST, KernelReplaced(3, "", "t", "restarted")).lost == []


def test_a_rewind_may_lead_back_into_a_kernel_that_was_lost() -> None:
    lost = (ran(1), ran(2), ran(3, "died"), LOST, ran(4), ran(5))
    assert orders(folded(*lost, Rewound(5, "t"))) == [1, 2, 4]
    assert orders(folded(*lost, Rewound(4, "t"))) == [1, 2]
    assert orders(folded(*lost, Rewound(4, "t"), Rewound(3, "t"))) == [1, 2]
    back = folded(*lost, Rewound(2, "t"))
    assert (orders(back), back.lost, back.replaced) == ([1], [], None)
    assert orders(folded(*lost, Rewound(2, "t"), ran(2), ran(3))) == [1, 2, 3]
    # The numbers of the next host begin anew: they are its own.
    assert orders(folded(*lost, LOST, ran(1), ran(2), Rewound(2, "t"))) == [4, 5, 1]
