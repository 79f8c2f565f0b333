"""Names a cell gives and takes, checked against Python itself; and which cells are pure."""

from __future__ import annotations

import pytest

from growth import lines_run
from quire.task.dataflow import Names, names
from quire.task.purity import is_pure


@pytest.mark.parametrize(
    ("source", "defines", "uses"),
    [
        ("x = 1", "x", ""),
        ("x = y", "x", "y"),
        ("x += 1", "x", "x"),
        ("x = x + 1", "x", "x"),
        ("x = 1\nx += 1\nprint(x)", "x", "print"),
        ("a, (b, *c) = d", "a b c", "d"),
        ("a = b = c", "a b", "c"),
        ("x: int = y", "x", "int y"),
        ("x: T", "", "T"),
        ("(n := f(m))", "n", "f m"),
        ("for i in xs:\n    total = i\nprint(i)", "i total", "xs i print"),
        ("for i in xs:\n    print(i)", "i", "xs print"),
        ("while go:\n    go = step(go)", "go", "go step"),
        ("with open(p) as f, lock:\n    t = f", "f t", "open p lock"),
        ("import a.b.c\nimport d as e\nfrom f import g, h as i", "a e g i", ""),
        ("if c:\n    x = 1\nprint(x)", "x", "c x print"),
        ("if c:\n    x = 1\nelse:\n    x = 2\nprint(x)", "x", "c print"),
        ("x = 1 if c else d", "x", "c d"),
        ("try:\n    import j\nexcept ImportError:\n    j = None\nj", "j", "ImportError"),
        ("try:\n    v = f()\nexcept E as e:\n    print(e)\n    raise\nv", "v", "f E print"),
        ("try:\n    v = 1\nexcept* E:\n    pass\nv", "v", "E v"),
        ("[i * k for i in xs if i]", "", "k xs"),
        ("[(i, j) for i in xs for j in i]", "", "xs"),
        ("[i for i in i]", "", "i"),
        ("{k: v for k, v in d.items()}", "", "d"),
        ("[last := i for i in xs]\nlast", "last", "xs"),
        ("sum(i for i in xs)", "", "sum xs"),
        ("f = lambda a, b=d: a + b + c", "f", "d"),
        ("sorted(xs, key=lambda a: a + c)", "", "sorted xs c"),
        ("def f(a, b=d, *c: T) -> R:\n    return a + g", "f", "d T R"),
        ("@deco\ndef f():\n    pass", "f", "deco"),
        ("class A(B, k=M):\n  x = y\n  z = x\n  def m(self):\n    return x", "A", "B M y"),
        ("class A:\n    for i in xs:\n        pass", "A", "xs"),
        ("def f():\n    global g\n    g = 1", "f g", ""),
        ("match v:\n case {'a': a, **r}:\n  a\n case n:\n  print(a)", "a r n", "v print a"),
        ("match v:\n case [b, *s] | C(b, s):\n  (b, s)", "b s", "v C"),
        ("async for i in xs:\n    await g(i)", "i", "xs g"),
        ("f'{a}{b!r:{w}}'", "", "a b w"),
        ("del x", "", "x"),
        ("x = 1\ndel x\nx", "x", "x"),
        ("print(x)\nx = 1", "x", "print x"),
        ("ok = a and (b := 1)\nb", "ok b", "a b"),
    ],
)  # fmt: skip
def test_defines_and_uses(source, defines, uses):
    found = names(source)
    assert found.defines == set(defines.split())
    assert found.uses == set(uses.split())


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ("df['a'] = 1", "df"),
        ("df.x = 2", "df"),
        ("df.loc[0, 'a'] += 1", "df"),
        ("del d['a']", "d"),
        ("items.append(1)", "items"),
        ("a.b.c.append(1)", "a"),
        ("df.head()", ""),
        ("df.dropna(inplace=True)", "df"),
        ("y = s.strip().lower()", ""),
        ("[i.close() for i in xs]", ""),
        ("import numpy as np\nnp.seed(1)", ""),
        ("del x", "x"),
        ("(a, d['k']) = 1, 2", "d"),
        ("for d['k'] in xs:\n    pass", "d"),
    ],
)
def test_changes(source, changes):
    found = names(source)
    assert found.changes == set(changes.split())
    # What is changed is used too, unless it is made here.
    assert found.changes - found.defines <= found.uses


def test_bodies_read_later():
    found = names(
        "def f(a):\n    b = a\n    def g():\n        return b + k\n"
        "    return [q + h(i) for i in b]\n"
        "class C:\n    x = now\n    def m(self, x):\n        return x + y + f(z)\n"
    )
    assert found.uses == {"now"}
    assert found.later == {"f": {"k", "q", "h"}, "C": {"y", "f", "z"}}


def test_a_function_called_in_its_own_cell_reads_now():
    assert names("def f():\n    return k\nx = f()").uses == {"k"}
    assert names("def f():\n    return g()\ndef g():\n    return k\nf()").uses == {"k"}
    assert names("def f():\n    return k\n").uses == set()


def test_scopes_of_a_body():
    source = """
def f(a, *args, b=1, **kw):
    import m
    from n import o as p
    try:
        pass
    except E as e:
        e
    with w as t:
        t
    match a:
        case [x, *y]: (x, y)
        case {"k": v, **z}: (v, z)
    class K(Base):
        attr = 1
        def method(self): return attr
        other = attr
    nonlocal_ = lambda q: q + r
    def inner():
        nonlocal nonlocal_
        nonlocal_ = s
    [u := i for i in args]
    return a, args, b, kw, m, p, K, nonlocal_, inner, u
"""
    assert names(source).later["f"] == {"E", "w", "Base", "attr", "r", "s"}


@pytest.mark.parametrize(
    ("source", "defines", "uses"),
    [
        ("%matplotlib inline\nx = 1", "x", ""),
        ("%time x = f(y)", "x", "f y"),
        ("%timeit -n 10 -r 3 f(y)", "", "f y"),
        ("%timeit -n 3 \\\n    f(y)", "", "f y"),
        ("%%time\nx = y", "x", "y"),
        ("%%capture out\nprint(y)", "out", "print y"),
        ("%%bash\nx=1\necho $x", "", ""),
        ("%%bash --out text\nls", "text", ""),
        ("%%R -i df -o res\nres <- df", "res", "df"),
        ("files = !ls {folder}\nn = len(files)", "files n", "folder len"),
        ("!echo $name \\\n  more", "", "name"),
        ("x = %pwd", "x", ""),
        ("y = (a\n  % b)\n%pwd", "y", "a b"),
        ("if a:\n    !ls\n    b = 1", "b", "a"),
        ("s = '''\n%time\n'''\n!ls", "s", ""),
        ("df?\nx = 1", "x", ""),
        ("pip install pandas\nx = 1", "x", ""),
        ("  x = 1\n  y = x", "x y", ""),
        ("", "", ""),
        ("# only a comment", "", ""),
        ("await f(x)", "", "f x"),
    ],
)
def test_magics_are_tolerated(source, defines, uses):
    found = names(source)
    assert found.defines == set(defines.split())
    assert found.uses == set(uses.split())


def test_what_cannot_be_known():
    assert names("x = = 1") == Names()
    assert names("from m import *").star
    assert names("%run other.py").star
    assert not names("x = 1").star
    assert names("(" * 5000 + ")" * 5000) == Names()
    deep = "def f():\n    return " + "-" * 2_000 + "x"
    assert names(deep).uses == set()


PURE = [
    "", "# nothing", "x = 1", "x = y = 2", "a, b = 1, c", "x = [1, {'a': (y, -1)}, {2}]",
    "x = y + 1 * z / 2 - 3 // 4 % 5", "x = 'a' if b > 1 else not c", "x: int = 1",
    "print('a', x, sep='')", "print(f'{x} and {y!r:>10}')", "pass", "'''doc'''\nx = 1",
    "def f(a, b=1, *c: int) -> str:\n    return open(a).read()", "f = lambda a: g(a)",
    "async def f():\n    await g()", "class A:\n    '''doc'''\n    x = 1\n    def m(self): g()",
    "class E(ValueError):\n    pass", "x = 1\ny = x + 1\nprint(y)", "x = None; y = True",
]  # fmt: skip
IMPURE = [
    "import os", "from a import b", "x = f()", "x = y.z", "x = y[0]", "x += 1", "x = x + 1",
    "del x", "await f()", "x = [i for i in y]", "for i in y:\n    pass", "with a:\n    pass",
    "try:\n    x = 1\nexcept E:\n    pass", "if a:\n    x = 1", "while a:\n    pass", "x", "1",
    "'shown'", "x.y = 1", "x[0] = 1", "a, b = c", "[a] = b", "x = [*y]", "x = {**y}", "x = 1 in y",
    "@d\ndef f():\n    pass", "def f(a=g()):\n    pass", "def f(a: g()):\n    pass",
    "class A(metaclass=M):\n    pass", "class A(B):\n    pass", "class A:\n    x = f()",
    "class A:\n    x = y", "@d\nclass A:\n    pass", "print(f())", "print(x, file=y)",
    "print(*x)", "print(**x)", "print = 1", "print(x.y)", "print(f'{x()}')", "f'{x.y}'",
    "x = yield", "global x\nx = 1", "%time x = 1", "!ls", "x = !ls", "x = 10 ** y", "x = 1 << y",
    "(x := 1)", "x = (y := 1)", "assert x", "raise x", "x = y @ z", "f = lambda a=g(): a",
    "x =", "_ = 1", "def f(a=x):\n    pass\nx = 1", "print(x)\nx = 1", "x = f'{y:{z()}}'",
    "class A:\n    def m(self, a=g()): pass", "nonlocal x", "return 1", "x: f() = 1", "x: y.z = 1",
]  # fmt: skip


@pytest.mark.parametrize("source", PURE)
def test_pure(source):
    assert is_pure(source)


@pytest.mark.parametrize("source", IMPURE)
def test_not_pure(source):
    assert not is_pure(source)


def test_purity_costs_little_for_a_small_cell():
    source = "x{0} = {0}\ny{0} = [x{0}, 'a']\nprint(y{0})\n"
    assert is_pure(source.format(0))  # what is done once is done now
    assert lines_run(lambda: is_pure(source.format(1))) < 1_000
