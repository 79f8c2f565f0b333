"""Which kernel runs a plan: the native one for Python, Jupyter's for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .native import NativeKernels
from .protocol import Kernel, KernelSpec


class Kernels:
    """Every kernel of this process comes from here."""

    def __init__(self, *, spare: bool = False) -> None:
        self.native = NativeKernels(spare=spare)

    def start(self, spec: KernelSpec, context: Mapping[str, Any] | None = None) -> Kernel:
        if not spec.name:
            return self.native.start(spec, context)
        from .jupyter import JupyterKernel

        return JupyterKernel.start(spec, context)

    def close(self) -> None:
        self.native.close()
