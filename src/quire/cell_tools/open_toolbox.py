"""What a workspace opens to the tools of its cells: the folders, and the variables of commands."""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterable, Iterator, Mapping

from ..engine.choose_kernel import hidden
from ..errors import ConfigError, QuireError
from ..kernel.protocol import KernelSpec
from ..masking.masker import Masker, secrets_of
from ..proof import key_store
from ..workspace import Workspace
from .allowed_paths import Places
from .toolbox import Toolbox

# A shorter secret turns up in other words by chance.
_TELLING = 8  # characters
# Commands are found and find their things by these, whatever word of them is a secret elsewhere.
_NEEDED = ("HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TMPDIR", "USER")


def toolbox(workspace: Workspace, spec: KernelSpec, told: tuple[str, ...]) -> Toolbox:
    """`told`: variables whose values a person gave, for the kernel only."""
    config = workspace.config.tools
    given = spec.env if spec.commands is None else spec.commands
    return Toolbox(
        config,
        _places(workspace),
        without_secrets(given, (*hidden(workspace), *told)),
        str(workspace.root),
        workspace.world.get("umask"),
        str(spec.cwd),
    )


def without_secrets(env: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The variables in which masking would hide nothing: commands get what records may show."""
    patterns = tuple(names)
    found = secrets_of(env, patterns)
    values = {secret.value for secret in found}
    masker = Masker(secret for secret in found if len(secret.value) >= _TELLING)

    def tells(name: str, raw: str) -> bool:
        # Each by itself: of two with the same value only one is named among the secrets of all.
        if secrets_of({name: raw}, patterns):
            return True
        if name in _NEEDED:
            return False
        return raw.strip() in values or masker.safe(raw) != raw

    return {name: raw for name, raw in env.items() if not tells(name, raw)}


def _places(workspace: Workspace) -> Places:
    config = workspace.config.tools
    roots = [(str(workspace.root), True)]
    roots += [(path, False) for path in _named(workspace, config.read_roots)]
    roots += [(path, True) for path in _named(workspace, config.write_roots)]
    return Places(roots, config.protect, _closed(workspace.env))


def _closed(env: Mapping[str, str]) -> Iterator[str]:
    """Where keys are. Without a HOME that is not known to us, and to others it may be: by the home
    that the system names."""
    with contextlib.suppress(QuireError):  # there may be no home to keep keys in
        yield str(key_store.folder(env))
    with contextlib.suppress(QuireError):
        yield str(key_store.folder({**env, "HOME": home(env)}))


def _named(workspace: Workspace, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if path == "~" or path.startswith("~/"):
            path = home(workspace.env) + path[1:]
        yield os.path.join(workspace.root, path)


def home(env: Mapping[str, str]) -> str:
    """The caller's. Where no variable says it the system does: `~` is never all there is."""
    said = env.get("HOME", "")
    if not os.path.isabs(said):
        with contextlib.suppress(KeyError):  # the system does not know every user by name
            said = pwd.getpwuid(os.getuid()).pw_dir
    if not os.path.isabs(said) or os.path.normpath(said).strip("/") == "":
        raise ConfigError(
            "a folder under [tools] begins with ~, and there is no home folder",
            hint="set HOME, or write the folder in full",
        )
    return said
