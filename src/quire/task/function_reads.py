"""What the body of a function reads from the outside, by Python's scope rules."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Callable = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True)
class Function:
    reads: frozenset[str]
    # What it sets by `global`.
    writes: frozenset[str]


def free_names(node: Callable) -> Function:
    scope = _Scope()
    args = node.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    scope.bound.update(arg.arg for arg in every if arg is not None)
    scope.run([node.body] if isinstance(node, ast.Lambda) else node.body)
    return scope.function()


def target_names(node: ast.AST) -> Iterator[str]:
    """The names a target binds: of a loop, an assignment, a `with`."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Tuple | ast.List):
        for item in node.elts:
            yield from target_names(item)
    elif isinstance(node, ast.Starred):
        yield from target_names(node.value)


class _Scope(ast.NodeVisitor):
    """One function body, or one class body or comprehension in it."""

    def __init__(self, function: _Scope | None = None) -> None:
        # Where a walrus in a comprehension binds.
        self.home = function or self
        self.bound: set[str] = set()
        self.reads: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.writes: set[str] = set()
        # Reads of nested scopes; a class body hides nothing from them.
        self.inner: set[str] = set()

    def function(self) -> Function:
        local = self.bound - self.globals - self.nonlocals
        writes = self.writes | (self.bound & self.globals)
        return Function(frozenset((self.reads | self.inner) - local), frozenset(writes))

    def run(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def _nested(self, found: Function) -> None:
        self.inner |= found.reads
        self.writes |= found.writes

    def visit_Name(self, node: ast.Name) -> None:
        (self.reads if isinstance(node.ctx, ast.Load) else self.bound).add(node.id)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.home.bound.add(node.target.id)

    def visit_Global(self, node: ast.Global) -> None:
        self.globals.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.nonlocals.update(node.names)

    def visit_Import(self, node: ast.Import) -> None:
        self.bound.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.bound.update(alias.asname or alias.name for alias in node.names)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.generic_visit(node)
        if node.name:
            self.bound.add(node.name)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self.generic_visit(node)
        if node.name:
            self.bound.add(node.name)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.bound.add(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self.generic_visit(node)
        if node.rest:
            self.bound.add(node.rest)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.run(node.decorator_list)
        self.visit(node.args)
        if node.returns is not None:
            self.visit(node.returns)
        self.bound.add(node.name)
        self._nested(free_names(node))

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        self._nested(free_names(node))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.run((*node.decorator_list, *node.bases, *node.keywords))
        body = _Scope()
        body.run(node.body)
        own = body.bound - body.globals - body.nonlocals
        # Its methods do not see what it binds.
        self.inner |= (body.reads - own) | body.inner
        self.writes |= body.writes | (body.bound & body.globals)
        self.bound.add(node.name)

    def _comprehension(
        self, generators: list[ast.comprehension], results: Iterable[ast.AST]
    ) -> None:
        self.visit(generators[0].iter)
        inside = _Scope(self.home)
        for at, generator in enumerate(generators):
            inside.bound.update(target_names(generator.target))
            inside.run([generator.iter] if at else [])
            inside.run(generator.ifs)
        inside.run(results)
        self._nested(inside.function())

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> None:
        self._comprehension(node.generators, [node.elt])

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self.visit_ListComp(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self.visit_ListComp(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node.generators, [node.key, node.value])
