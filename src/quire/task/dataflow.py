"""Which names a code cell reads from other cells and which it gives them."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from .plain_python import parsed

# Methods of common types that leave their object alone. Any other call may change it.
_METHODS = """
    abs agg aggregate all any apply argmax argmin argsort as_posix assign astype capitalize
    casefold copy corr count cov cummax cummin cumprod cumsum decode describe diff difference
    dot drop_duplicates dropna duplicated encode endswith eq exists expandtabs expanduser
    explode filter find findall finditer first flatten format fullmatch get get_group groupby
    gt head hist idxmax idxmin index info intersection is_dir is_file isalpha isdigit isin isna
    isnull issubset issuperset items iterrows itertuples join keys kurt last ljust lower lstrip
    lt map mask match max mean median melt merge min mode nlargest notna notnull nsmallest
    nunique partition pct_change pipe pivot pivot_table prod quantile query rank read_bytes
    read_text reindex rename_axis replace resolve rfind rindex rjust rolling round rpartition
    rsplit rstrip sample select_dtypes shift show size skew split splitlines squeeze stack
    startswith std strftime strip sub sum swapcase symmetric_difference tail title to_csv
    to_dict to_frame to_html to_json to_list to_markdown to_numpy to_parquet to_string tolist
    total_seconds transform translate transpose union unique unstack upper value_counts values
    var where with_suffix zfill
"""
_READING = frozenset(_METHODS.split())


@dataclass(frozen=True, slots=True)
class Names:
    """What a cell has to do with the names of the kernel.

    `later` holds, for each function or class defined here, what its body will read when it is
    called. `star` means that it may define anything: a star import, `%run`. A cell that cannot be
    parsed has no names.
    """

    defines: frozenset[str] = frozenset()
    # Objects that are changed in place, for certain or maybe: `df["a"] = 1`, `items.append(2)`.
    changes: frozenset[str] = frozenset()
    # Of these, and of what was imported here, those that are set or deleted: no call that may.
    sets: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    later: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # What was imported under a name, where nothing else was given it since.
    imports: Mapping[str, str] = field(default_factory=dict)
    star: bool = False


@lru_cache(maxsize=8192)
def names(source: str) -> Names:
    found = parsed(source)
    reader = _Reader()
    try:
        reader.run(found.tree.body if found.tree is not None else ())
    except RecursionError:
        return Names()
    return reader.result(found.reads)


_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True)
class _Body:
    """What the body of a function reads from outside of it, and what it sets by `global`."""

    reads: frozenset[str]
    writes: frozenset[str]


def _body(node: _Function) -> _Body:
    """By Python's own scope rules, without defaults, decorators and annotations."""
    body: list[ast.stmt] = [ast.Return(node.body)] if isinstance(node, ast.Lambda) else node.body
    arguments = ", ".join(arg.arg for arg in _arguments(node.args))
    lines = ast.unparse(ast.Module(body, [])).split("\n")
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    text = "\n ".join([f"{kind} f({arguments}):", *lines])
    try:
        (table,) = symtable.symtable(text, "cell", "exec").get_children()
    except SyntaxError:  # such as a wrong `nonlocal`: the cell will not run
        return _Body(frozenset(), frozenset())
    found = [one for inner in _tables(table) for one in inner.get_symbols() if one.is_global()]
    return _Body(
        frozenset(one.get_name() for one in found if one.is_referenced()),
        frozenset(one.get_name() for one in found if one.is_assigned()),
    )


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for inner in table.get_children():
        yield from _tables(inner)


def _arguments(args: ast.arguments) -> Iterator[ast.arg]:
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return (arg for arg in every if arg is not None)


def _targets(node: ast.AST) -> Iterator[str]:
    """The names that a target binds, of a loop or an assignment."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id


class _Reader(ast.NodeVisitor):
    """Walks a cell in the order it runs. A name counts as used if it may be read before it is set
    here; what only one branch sets may not be set."""

    def __init__(self) -> None:
        self.bound: set[str] = set()
        self.defines: set[str] = set()
        self.changes: set[str] = set()
        self.sets: set[str] = set()
        self.uses: set[str] = set()
        self.later: dict[str, set[str]] = {}
        self.imports: dict[str, str] = {}
        self.star = False
        # Own names that were read, and names of comprehensions and class bodies around this point.
        self.touched: set[str] = set()
        self.hidden: list[set[str]] = []
        self.owner: str | None = None

    def result(self, reads: frozenset[str]) -> Names:
        # A function that is also called here reads its names now, not later.
        todo, seen = list(self.touched), set(self.touched)
        while todo:
            fresh = self.later.get(todo.pop(), set()) - seen
            seen |= fresh
            todo += fresh
            self.uses |= fresh - self.defines
        later = {name: frozenset(body - {name}) for name, body in self.later.items() if body}
        return Names(
            frozenset(self.defines),
            frozenset(self.changes - self.imports.keys()),
            frozenset(self.sets),
            frozenset(self.uses | reads),
            later,
            self.imports,
            self.star,
        )

    def run(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def _read(self, name: str) -> None:
        if any(name in names for names in self.hidden):
            return
        if name in self.bound:
            self.touched.add(name)
        else:
            self.uses.add(name)

    def _bind(self, *names: str) -> None:
        if self.owner is not None:
            self.hidden[-1].update(names)
            return
        self.bound.update(names)
        self.defines.update(names)
        for name in names:
            self.imports.pop(name, None)

    def _change(self, node: ast.AST, *also: set[str]) -> None:
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        if isinstance(node, ast.Name) and not any(node.id in names for names in self.hidden):
            for found in (self.changes, *also):
                found.add(node.id)

    # expressions

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._read(node.id)
        elif isinstance(node.ctx, ast.Store):
            self._bind(node.id)
        elif self.owner is None:
            self._read(node.id)
            self.changes.add(node.id)
            self.sets.add(node.id)
            self.bound.discard(node.id)

    def visit_Attribute(self, node: ast.Attribute | ast.Subscript) -> None:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            self._change(node, self.sets)

    visit_Subscript = visit_Attribute

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and (
            node.func.attr not in _READING or any(k.arg == "inplace" for k in node.keywords)
        ):
            self._change(node.func)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        # Also inside a comprehension it binds outside of it.
        self.bound.add(node.target.id)
        self.defines.add(node.target.id)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._defaults(node.args)
        for name in _body(node).reads:
            self._read(name)

    def visit_ListComp(self, node: _Comprehension) -> None:
        first, *others = node.generators
        self.visit(first.iter)
        owner, self.owner = self.owner, None
        self.hidden.append({name for one in node.generators for name in _targets(one.target)})
        self.run(one.iter for one in others)
        self.run(test for one in node.generators for test in one.ifs)
        self.run([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        self.hidden.pop()
        self.owner = owner

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    # statements that bind

    def visit_Assign(self, node: ast.Assign) -> None:
        single = node.targets[0] if len(node.targets) == 1 else None
        if isinstance(node.value, ast.Lambda) and isinstance(single, ast.Name):
            self._defaults(node.value.args)
            self._define(single.id, _body(node.value))
            return
        self.visit(node.value)
        self.run(node.targets)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._read(node.target.id)
        self.run((node.value, node.target))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is not None:
            self.run((node.value, node.target))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self._import(alias.asname or top, alias.name if alias.asname else top)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.star = self.star or any(alias.name == "*" for alias in node.names)
        for alias in node.names:
            if alias.name != "*":
                origin = f"{'.' * node.level}{node.module or ''} {alias.name}"
                self._import(alias.asname or alias.name, origin)

    def _import(self, name: str, origin: str) -> None:
        self._bind(name)
        if self.owner is None:
            self.imports[name] = origin

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.run(node.decorator_list)
        self._defaults(node.args)
        if node.returns is not None:
            self.visit(node.returns)
        self._define(node.name, _body(node))

    visit_AsyncFunctionDef = visit_FunctionDef

    def _define(self, name: str, body: _Body) -> None:
        self._bind(name)
        owner = name if self.owner is None else self.owner
        if self.owner is None:
            self.later[owner] = set()
        self.later.setdefault(owner, set()).update(body.reads)
        # Set when it is called; this cell stands for all callers.
        self.defines.update(body.writes)

    def _defaults(self, args: ast.arguments) -> None:
        annotations = [arg.annotation for arg in _arguments(args)]
        every = [*args.defaults, *args.kw_defaults, *annotations]
        self.run(node for node in every if node is not None)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.run((*node.decorator_list, *node.bases, *node.keywords))
        outer = self.owner
        if outer is None:
            self.later[node.name] = set()
        self.owner = outer or node.name
        self.hidden.append(set())
        self.run(node.body)
        self.hidden.pop()
        self.owner = outer
        self._bind(node.name)

    # statements that may not run

    def _branches(self, *branches: Iterable[ast.AST]) -> None:
        """Bound afterwards is what every branch binds."""
        before, ends = set(self.bound), []
        for branch in branches:
            self.bound = set(before)
            nodes = list(branch)
            self.run(nodes)
            if not _leaves(nodes):
                ends.append(self.bound)
        self.bound = set.intersection(*ends) if ends else before

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._branches(node.body, node.orelse)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        self._branches([node.body], [node.orelse])

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.visit(node.values[0])
        for value in node.values[1:]:
            self._branches([value], [])

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._branches([node.target, *node.body], [])
        self.run(node.orelse)

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._branches(node.body, [])
        self.run(node.orelse)

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        self._branches([*node.body, *node.orelse], *([handler] for handler in node.handlers))
        self.run(node.finalbody)

    visit_TryStar = visit_Try

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.type is not None:
            self.visit(node.type)
        if node.name:
            self.bound.add(node.name)
        self.run(node.body)
        if node.name:
            # Python deletes it at the end of the handler.
            self.bound.discard(node.name)

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        self._branches(*([case] for case in node.cases), [])

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        self.generic_visit(node)
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            self._bind(name)

    visit_MatchStar = visit_MatchMapping = visit_MatchAs


def _leaves(nodes: list[ast.AST]) -> bool:
    """Whether what comes after these never runs."""
    last = nodes[-1] if nodes else None
    if isinstance(last, ast.ExceptHandler):
        last = last.body[-1]
    return isinstance(last, ast.Raise)
