"""Events as a run could have them, drawn at random, for the properties every journal must keep."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from quire.record.events import (
    CellError,
    CellFinished,
    CellStarted,
    Event,
    KernelDied,
    OutputAdded,
    OutputCut,
    OutputsCleared,
    OutputUpdated,
    ResultGlued,
    RunFinished,
    RunStarted,
    ToolCalled,
    Warned,
)

# Lone surrogates included: a cell can print what it read with surrogateescape.
texts = st.text(st.characters(), max_size=20)
names = st.sampled_from(["stdout", "stderr"])
times = st.datetimes().map(lambda at: f"{at.isoformat()}+00:00")
seconds = st.floats(0, 1e6)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
mappings = st.dictionaries(texts, json_values, max_size=3)
bundles = st.fixed_dictionaries(
    {"text/plain": texts}, optional={"application/json": json_values, "image/png": st.just("aGk=")}
)
errors = st.builds(CellError, texts, texts, st.lists(texts, max_size=3).map(tuple))
display_ids = st.none() | st.sampled_from(["a", "b"])


def streams() -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda name, text: {"output_type": "stream", "name": name, "text": text}, names, texts
    )


def displays() -> st.SearchStrategy[dict[str, Any]]:
    shown = st.builds(
        lambda data, metadata: {"output_type": "display_data", "data": data, "metadata": metadata},
        bundles,
        mappings,
    )
    result = st.builds(
        lambda data, count: {
            "output_type": "execute_result",
            "data": data,
            "metadata": {},
            "execution_count": count,
        },
        bundles,
        st.integers(1, 9),
    )
    raised = st.builds(
        lambda error: {
            "output_type": "error",
            "ename": error.name,
            "evalue": error.value,
            "traceback": list(error.traceback),
        },
        errors,
    )
    return shown | result | raised


def within(cell: str) -> st.SearchStrategy[Event]:
    """What may happen while a cell runs."""
    here = st.just(cell)
    return st.one_of(
        st.builds(OutputAdded, here, streams()),
        st.builds(OutputAdded, here, displays(), display_ids),
        st.builds(OutputUpdated, here, st.sampled_from(["a", "b"]), bundles, mappings),
        st.builds(OutputsCleared, here, st.booleans()),
        st.builds(OutputCut, here, names | st.just("display"), st.integers(1), texts, texts),
        st.builds(ResultGlued, here, texts, st.sampled_from(["json", "table"]), json_values),
        st.builds(ToolCalled, here, st.just("run"), mappings, st.booleans(), seconds, mappings),
        st.builds(Warned, here, texts),
    )


kinds = st.sampled_from(["code", "code", "code", "markdown", "raw"])


@st.composite
def specs(draw: st.DrawFn) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "id": f"c{n}",
            "kind": kind,
            "source": draw(texts),
            "title": draw(texts),
            "tags": draw(st.lists(st.from_regex("[a-z]+", fullmatch=True), max_size=3)),
            "metadata": draw(mappings),
        }
        for n, kind in enumerate(draw(st.lists(kinds, max_size=5)))
    )


plans = st.fixed_dictionaries(
    {}, optional={"parameters": mappings, "defaults": mappings, "language": st.just("python")}
)


@st.composite
def journals(draw: st.DrawFn) -> list[Event]:
    """A whole run: cells in order, one of them perhaps the last that ran."""
    cells = draw(specs())
    parent = draw(st.none() | texts)
    events: list[Event] = [
        RunStarted("run-1", "u", draw(times), draw(texts), draw(texts), cells, draw(plans), parent)
    ]
    outcome: Any = "ok"
    for cell in (spec["id"] for spec in cells if spec["kind"] == "code"):
        if draw(st.integers(0, 9)) == 0:
            events.append(CellFinished(cell, "skipped", draw(times)))
            continue
        events.append(CellStarted(cell, draw(times)))
        events += draw(st.lists(within(cell), max_size=4))
        status: Any = draw(
            st.sampled_from(["ok", "ok", "ok", "failed", "timed_out", "cancelled", "died"])
        )
        error = draw(errors) if status == "failed" else None
        if status == "died":
            events.append(KernelDied(cell, draw(texts), 9, None, {"max_rss": 1}))
        count = draw(st.none() | st.integers(1, 9))
        events.append(CellFinished(cell, status, draw(times), draw(seconds), count, error))
        if status != "ok":
            outcome = status
            break
    events.append(RunFinished(outcome, draw(times), draw(seconds), draw(texts)))
    return events


single_events = journals().filter(bool).flatmap(st.sampled_from)
