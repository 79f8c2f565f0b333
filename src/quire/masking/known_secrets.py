"""The secrets of every environment that one process has met, and the maskers that hide them.

A kernel may come to see what another caller of its host has. So each masker hides what anybody had
so far, and those of runs under way learn of what comes later.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from weakref import WeakSet

from .masker import Masker
from .secrets import Secret, secrets_of

MOST = 512  # secrets of others; those that nobody had for longest are forgotten first

ENVIRONMENTS = 16  # whose secrets are remembered, so that they are not searched for again


class Known:
    """Safe to share between threads."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}  # value: the variable it came from
        # What the last few environments told: each run of a host has that of the last one.
        self._met: dict[tuple[frozenset[tuple[str, str]], tuple[str, ...]], tuple[Secret, ...]] = {}
        self._maskers: WeakSet[Masker] = WeakSet()

    def meet(self, env: Mapping[str, str], names: Iterable[str] = ()) -> tuple[Secret, ...]:
        """The secrets of an environment, which are hidden from now on. `names` are hidden whatever
        they look like."""
        key = frozenset(env.items()), tuple(names)
        found = self._met.get(key)
        if found is None:
            found = secrets_of(env, key[1])
        with self._lock:
            self._met.pop(key, None)
            self._met[key] = found
            for old in list(self._met)[:-ENVIRONMENTS]:
                del self._met[old]
            new = [one for one in found if one.value not in self._names]
            for one in found:
                self._names[one.value] = self._names.pop(one.value, one.name)
            for value in list(self._names)[: -self._most]:
                del self._names[value]
            if new:
                for masker in list(self._maskers):
                    masker.learn(new)
        return found

    def masker(self, own: Iterable[Secret]) -> Masker:
        """One that hides these, and all that is known now or later."""
        own = tuple(own)
        with self._lock:
            mine = {one.value for one in own}
            others = [Secret(name, v) for v, name in self._names.items() if v not in mine]
            made = Masker((*own, *others))
            self._maskers.add(made)
        return made
