"""Cells from programs that nobody trusts: each leaves host and workspace intact and says what it was refused.

All attacks run in one child process, which the kernel ends after a limit of processor seconds; the worker
processes that Monty starts are its children. After every attack the child runs the same check cell in the
same workspace: candidates, variables, primitives and evidence must be what they were.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS, MEMORY_MB = 0.5, 64

REFUSED = {
    # Ways to Python's inside: class, base, subclasses, globals, code, frames.
    "class of a value": "().__class__",
    "bases": "().__class__.__base__.__subclasses__()",
    "mro": "str.__mro__",
    "subclasses of object": "object.__subclasses__()",
    "globals of a function": "retrieve.__globals__",
    "code of a function": "retrieve.__code__.co_consts",
    "closure": "(lambda: 0).__closure__",
    "builtins of a function": "(lambda: 0).__builtins__",
    "builtins by name": "__builtins__",
    "loader": "__loader__",
    "name of the module": "__name__",
    "spec": "__spec__",
    "import function": "__import__('os').system('id')",
    "import function in a lambda": "(lambda: __import__('os'))()",
    "dict of a candidate": "pool[0].__dict__",
    "init called again": "pool[0].__init__('forged')",
    "reduce": "pool[0].__reduce_ex__(2)",
    "setattr of object": "object.__setattr__(pool[0], 'text', 'forged')",
    "class by a wide letter": "().__ｃlass__",
    "class pattern": "match pool[0]:\n    case Candidate(__class__=k):\n        pass\nk",
    "dunder keyword": "dict(__class__=1)",
    "dunder argument": "def f(__class__):\n    return __class__\nf(1)",
    "globals": "globals()",
    "locals": "locals()",
    "vars": "vars()",
    "dir": "dir()",
    "super": "super()",
    "eval": "eval('1 + 1')",
    "exec": "exec('x = 1')",
    "compile": "compile('1', '', 'eval')",
    "eval by another name": "e = eval\ne('1')",
    "eval by a wide letter": "ｅval('1')",
    # The prelude's own names.
    "the call to the host": "_so_call('retrieve', 'lake', 5)",
    "the row of a candidate": "pool[0]._so_row",
    "prelude function replaced": "def _so_rows(who, candidates):\n    return [0]\n1",
    "prelude name by import": "import re as _so_call",
    "prelude name from import": "from re import findall as _so_call",
    "prelude name in except": "try:\n    1 / 0\nexcept ZeroDivisionError as _so_call:\n    pass",
    "output name": "_so_output = 'forged'",
    # Primitives taken over.
    "retrieve assigned": "retrieve = lambda q, k=20: pool",
    "filter defined": "def filter(c, p):\n    return c",
    "rerank unpacked": "rerank, x = 1, 2",
    "extract in a loop": "for extract in [1]:\n    pass",
    "dedupe by walrus": "(dedupe := 3)",
    "retrieve global": "def f():\n    global retrieve\n    retrieve = 3\nf()",
    "filter by import": "import re as filter",
    "rerank captured": "match 3:\n    case rerank:\n        pass",
    "extract starred": "match [1]:\n    case [*extract]:\n        pass",
    "dedupe in a mapping pattern": "match {'a': 1}:\n    case {**dedupe}:\n        pass",
    "candidate class replaced": "Candidate = dict",
    "getattr replaced": "getattr = lambda a, b: 1",
    # Candidates changed.
    "text set": "pool[0].text = 'forged'",
    "text added to": "pool[0].text += 'forged'",
    "attribute of the class": "Candidate.text = 'forged'",
    "attribute of the type": "type(pool[0]).get = lambda s, n: 'forged'",
    "text as a loop target": "for pool[0].text in ['forged']:\n    pass",
    "text unpacked": "pool[0].text, x = 'forged', 1",
    "text deleted": "del pool[0].text",
    "attribute of a primitive": "retrieve.calls = 0",
    # Modules, files, network, processes, threads.
    "os": "import os\nos.environ",
    "sys": "import sys\nsys.modules",
    "subprocess": "import subprocess\nsubprocess.run(['id'])",
    "socket": "import socket\nsocket.create_connection(('127.0.0.1', 80))",
    "urllib": "import urllib.request",
    "threading": "import threading",
    "multiprocessing": "import multiprocessing",
    "ctypes": "import ctypes",
    "pickle": "import pickle",
    "importlib": "import importlib",
    "pathlib": "from pathlib import Path\nPath('/etc/passwd').read_text()",
    "asyncio": "import asyncio",
    "gc": "import gc\ngc.get_objects()",
    "inspect": "import inspect",
    "searchops": "import searchops",
    "star import": "from re import *",
    "relative import": "from . import x",
    "open": "open('/etc/passwd').read()",
    "open for writing": "open('/tmp/searchops_hostile', 'w').write('x')",
    "input": "input()",
    "breakpoint": "breakpoint()",
    "exit": "exit()",
    # Syntax that is not there.
    "class": "class A:\n    pass",
    "metaclass": "class A(type):\n    pass",
    "generator": "def f():\n    yield 1\nlist(f())",
    "coroutine": "async def f():\n    await f()\nf()",
    "with": "with pool as p:\n    pass",
    "del": "del pool",
    # Programs that are none, or too much of one.
    "empty": "",
    "comment only": "# nothing",
    "syntax error": "def (:",
    "open string": "x = '''",
    "null byte": "x = 1\0",
    "lone surrogate": "x = \udc80",
    "too long": "x = 1\n" * 10_000,
    "deep parentheses": "(" * 9_000 + ")" * 9_000,
    "deep lists": "[" * 150 + "]" * 150,
    "deep minus": "-" * 19_000 + "1",
    "deep not": "not " * 4_500 + "1",
    "deep lambda": "lambda: " * 2_000 + "1",
    "long sum": "1" + "+1" * 9_000,
    "long attribute chain": "a" + ".b" * 9_000,
    "deep calls": "f(" * 90 + ")" * 90,
    "deep blocks": "".join("    " * n + "if 1:\n" for n in range(70)) + "    " * 70 + "x = 1",
    "deep comprehension": "[" * 70 + "1" + " for x in [1]]" * 70,
    "bad indentation": "if 1:\npass",
    "a number": 42,
    "bytes": "b",  # sent as bytes by the child
    # Found by the type check, before anything is spent.
    "unknown name after a retrieval": "x = retrieve('lake')\nunknown_name",
    "unknown field": "retrieve('lake')[0].docnr",
    "query that is a number": "retrieve(5)",
    "k that is text": "retrieve('lake', k='5')",
    "too many arguments": "retrieve('lake', 5, 6)",
    "unknown argument": "rerank(pool, limit=5)",
    "missing argument": "filter(pool)",
}

# A parameter without a type, so that the type check has no doubt and the call is made.
UNSEEN = "def unseen(f, *args, **more):\n    return f(*args, **more)\n"

FAILED = {
    # Attributes by text.
    "getattr class": ("getattr(pool[0], '__cl' + 'ass__')", "not available"),
    "getattr setattr": ("getattr(Candidate, '__set' + 'attr__')", "not available"),
    "getattr row": ("getattr(pool[0], '_so_row')", "not available"),
    "getattr with a default": ("getattr(retrieve, '__globals__', 1)", "not available"),
    "getattr mapped": ("[x for x in map(getattr, pool, ['__class__'])]", "not available"),
    "setattr text": ("setattr(pool[0], 'text', 'forged')", "read-only"),
    "row by key": ("pool[0]['_so_row']", "A candidate has"),
    "class by key": ("pool[0]['__class__']", "A candidate has"),
    "item set": ("pool[0]['text'] = 'forged'", "item assignment"),
    "format of globals": ("'{0.__globals__}'.format(retrieve)", "no attribute"),
    "format of globals below a class": ("'{0.__class__.__init__.__globals__}'.format(pool[0])", "no attribute"),
    # Forged candidates.
    "forged list": (UNSEEN + "unseen(rerank, [{'docno': 'lakes/1', 'text': 'forged'}])", "dict"),
    "forged class row": ("rerank([Candidate(*([None] * FIELDS), 10**6)])", "found row 1000000"),
    "forged negative row": ("rerank([Candidate(*([None] * FIELDS), -1)])", "found row -1"),
    "forged true row": ("rerank([Candidate(*([None] * FIELDS), True)])", "found bool"),
    "forged text row": ("rerank([Candidate(*([None] * FIELDS), '0')])", "found str"),
    "forged huge row": ("rerank([Candidate(*([None] * FIELDS), 10**5000)])", "too large"),
    "million values": (UNSEEN + "unseen(dedupe, *[pool[:1]] * 30_000, key=['k'] * 90_000)", "at most 100,000"),
    "a function as a key": (UNSEEN + "unseen(dedupe, pool, key=[len])", "other things cannot"),
    "a candidate as a list": (UNSEEN + "unseen(rerank, pool[0])", "list of candidates"),
    "text as candidates": (UNSEEN + "unseen(rerank, 'pool')", "list of candidates"),
    "none as candidates": (UNSEEN + "unseen(rerank, None)", "list of candidates"),
    "millions of candidates": ("extract(pool * 5_000)", "at most 10,000"),
    # Arguments.
    "zero k": ("retrieve('lake', 0)", "at least 1"),
    "negative k": ("rerank(pool, -5)", "at least 1"),
    "true k": ("retrieve('lake', True)", "at least 1"),
    "huge k text": ("retrieve('lake', int('9' * 5_000))", "ValueError"),
    "empty query": ("retrieve('   ')", "query that is text"),
    "long query": ("retrieve('lake ' * 1_000)", "at most 2,000 characters"),
    "broken filter text": ("filter(pool, 'year >')", "filter"),
    "regex bomb in a filter text": (
        "filter(pool, \"text matches '(a|a)+(b|b)+(a|a|b)+$'\" + ' or year ' * 9)",
        "filter",
    ),
    "too many conditions": ("filter(pool, ' or '.join(['year > 1'] * 9))", "at most 8 conditions"),
    "too deep a filter": ("filter(pool, 'not (year > 1 and (year > 2 or not (year > 3 and year > 4)))')", "depth"),
    "unknown column": ("filter(pool, 'yeer > 3')", "'yeer'"),
    "predicate that is a number": (UNSEEN + "unseen(filter, pool, 5)", "predicate is a lambda"),
    "predicate that raises": ("filter(pool, lambda c: 1 / 0)", "ZeroDivisionError"),
    "unknown dedupe key": ("dedupe(pool, key='title')", "docno or passage_id"),
    "schema to a scorer that writes no notes": ("extract(pool, 'x', schema={'a': 1})", "schema"),
    # Errors that end a cell.
    "raise": ("raise ValueError('x' * 100_000)", "ValueError"),
    "system exit": ("raise SystemExit", "SystemExit"),
    "keyboard interrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "unhashable": ("{[]: 1}", "TypeError"),
    "wrong unpacking": ("a, b = [1]", "ValueError"),
    "none subscripted": ("pool[0].note[:10]", "filled by extract"),
    "big number shown": ("10 ** 5_000", "final expression cannot be shown"),
    "state changed, then an error": ("pool.clear()\nnew = 1\n1 / 0", "ZeroDivisionError"),
    "state changed in a function, then an error": ("def f():\n    pool.append(1)\n    [][1]\nf()", "IndexError"),
    "retrieved, then an error": ("more = retrieve('seal', 7)\nextract(more)\n1 / 0", "costs nothing"),
}

SWALLOW = "while True:\n    try:\n        {}\n    except BaseException:\n        pass"

LIMITED = {
    "endless loop": "while True:\n    pass",
    "endless loop that swallows": SWALLOW.format("while True:\n            pass"),
    "endless loop in finally": "try:\n    while True:\n        pass\nfinally:\n    while True:\n        pass",
    "endless comprehension": "[0 for x in range(10**12) if x < 0]",
    "endless sum": "sum(range(10**11))",
    "endless predicate": "filter(pool, lambda c: [0 for x in range(10**12) if x < 0])",
    "endless sort key": "sorted(range(10**9), key=lambda x: -x)",
    "endless itertools": "import itertools\nfor x in itertools.count():\n    pass",
    "power of integers": "10 ** 10 ** 10",
    "shifted integer": "1 << 10 ** 12",
    "factorial": "import math\nmath.factorial(10**8)",
    "product of integers": "x = 3\nwhile True:\n    x = x * x",
    "large text": "'a' * 10 ** 10",
    "large list": "[0] * 10 ** 10",
    "large list swallowed": "while True:\n    try:\n        x = [0] * 10 ** 10\n    except MemoryError:\n        pass",
    "growing list": "x = []\nwhile True:\n    x.append('a' * 1000)",
    "growing list of itself": "x = [1]\nwhile True:\n    x.extend(x)",
    "growing dict": "x = {}\nn = 0\nwhile True:\n    n += 1\n    x[n] = [n] * 100",
    "doubled text": "x = 'ab'\nwhile True:\n    x += x",
    "format width": "f'{1:>10000000000}'",
    "percent width": "'%10000000000d' % 1",
    "justified": "'a'.ljust(10 ** 10)",
    "replaced": "('a' * 10_000).replace('a', 'b' * 100_000)",
    "joined": "('a' * 10_000).join(['b'] * 100_000)",
    "shared list written out": "x = [1] * 10\nfor _ in range(40):\n    x = [x, x]\nrepr(x)",
    "product of iterators": "import itertools\nlist(itertools.product(range(1000), repeat=3))",
    "permutations": "import itertools\nlen(list(itertools.permutations(range(15))))",
    "recursion": "def f(n):\n    return f(n + 1)\nf(0)",
    "mutual recursion": "def f(n):\n    return g(n)\ndef g(n):\n    return f(n)\nf(0)",
    "recursion by a lambda": "f = lambda n: f(n)\nf(0)",
    "recursion by sort": "def f(n):\n    return sorted([1, 2], key=f)\nf(0)",
    "calls in a loop": "for n in range(10_000):\n    retrieve(f'lake {n}')",
    "calls that swallow": SWALLOW.format("retrieve('lake')"),
    "refused calls that swallow": SWALLOW.format("retrieve('')"),
    "print flood": "while True:\n    print('x' * 1000)",
    "too many variables": "\n".join(f"v{n} = 1" for n in range(600)),
    "unknown names that swallow": SWALLOW.format("anything_at_all"),
    "names bound too late that swallow": SWALLOW.format("late") + "\nlate = 1",
}  # fmt: skip

HARMLESS = {
    "format of a class": ("'{0.__class__}'.format(pool[0])", "Candidate"),
    "shared list shown": ("x = [1] * 10\nfor _ in range(40):\n    x = [x, x]\nx", "nested deeper than 12"),
    "list in itself": ("x = []\nx.append(x)\nx", "nested deeper than 12"),
    "dict in itself": ("x = {}\nx['x'] = x\nx", "nested deeper than 12"),
    "recursion caught": ("def f(n):\n    return f(n + 1)\ntry:\n    f(0)\nexcept RecursionError:\n    x = 1\nx", "1"),
    "regex bomb": ("import re\nre.match('(a+)+$', 'a' * 40 + 'b') is None", ""),
    "print of much": ("for n in range(500):\n    print('x' * 1000)\n'end'", "print cut here by the safety limit"),
    "much shown": ("'x' * 1_000_000", "cut here by the safety limit"),
    "much in lists shown": ("[['x' * 1000] * 1000]", "cut here by the safety limit"),
    "terminal codes": ("'\\x1b[2J'", ""),
    "surrogate shown": ("'\\ud800'", ""),
    "builtins shadowed": ("len = str = list = dict = isinstance = type = repr = enumerate = print = 3\nlen", "3"),
    "a list taken for candidates": ("x = pool[:2]\nx.append('seal')\nlen(x)", "3"),
    "same candidate many times": ("len(rerank([pool[0]] * 100))", ""),
    "sleep": ("[1]", "1"),
    "candidates in a set": ("len({c for c in pool})", ""),
    "filter that keeps everything by objects": ("len(filter(pool, lambda c: [0])) == len(pool)", "True"),
    "error caught": (
        "try:\n    retrieve('')\nexcept ValueError as error:\n    x = str(error)\nx",
        "query that is text",
    ),
}

CHECK = """
again = retrieve("lake", 5)
state = [[c.docno, c.text, c.score] for c in pool]
import json
json.dumps([state, [c.docno for c in rerank(pool, 3)], [c.quote for c in extract(pool, "deep", 3)],
            len(filter(pool, "year >= 2000")), len(dedupe(pool, again)), len(again), total(2)])
"""


def attacks() -> list[str]:
    """All names, in the order in which they run."""
    return [*REFUSED, *FAILED, *LIMITED, *HARMLESS]


def run_all(index: str) -> None:
    """The child: one line of JSON an attack."""
    import resource
    import time

    from searchops.cells import CellRunner, Limits
    from searchops.engines.lucene import LuceneIndex
    from searchops.scorers.lexical import Lexical
    from searchops.substrate import Substrate
    from searchops.workspace import Workspace

    resource.setrlimit(resource.RLIMIT_CPU, (400, 400))
    workspace = Workspace("1", "deepest lake?")
    limits = Limits(seconds=SECONDS, memory_mb=MEMORY_MB)

    def fresh() -> CellRunner:
        runner = CellRunner(Substrate(workspace, LuceneIndex(index), Lexical()), limits)
        runner.run("pool = retrieve('lake river', 10)\ndef total(x):\n    return x + len(pool)\n1")
        return runner

    runner = fresh()
    first = runner.run(CHECK).observation
    sources = {**REFUSED, **{k: v[0] for k, v in (FAILED | HARMLESS).items()}, **LIMITED}
    for name, code in sources.items():
        if isinstance(code, str):
            code = code.replace("FIELDS", str(len(runner.fields.names)))
        before = world(workspace)
        start = time.perf_counter()
        result = runner.run(b"1" if name == "bytes" else code, 1)
        seconds = time.perf_counter() - start
        kept = world(workspace) == before
        if result.ok:  # what it changed of its own is allowed; the check cell needs its names back
            runner.close()
            workspace.variables = {}
            runner = fresh()
        after = runner.run(CHECK).observation
        told = {
            "name": name,
            "status": result.status,
            "error": result.error,
            "observation": shortened(result.observation),
        }
        more = {"kept": kept, "same": after == first, "after": after[:300], "seconds": seconds}
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        requests = result.costs.retrieval_requests
        print(json.dumps({**told, **more, "memory_mb": memory, "requests": requests}), flush=True)


def shortened(text: str) -> str:
    """Both ends of a long text."""
    return text if len(text) <= 6_000 else text[:3_000] + " … " + text[-3_000:]


def world(workspace) -> list[object]:
    """All of the workspace but its costs, and what of the process an attack could have changed."""
    import threading

    return [
        [(c.id, dict(c.record), list(c.queries)) for c in workspace.candidates.values()],
        list(workspace.evidence),
        dict(workspace.variables),
        len(workspace.rows),
        sorted(os.environ.items()),
        sorted(Path.cwd().iterdir()),
        threading.active_count(),
        Path("/tmp/searchops_hostile").exists(),
    ]


@pytest.fixture(scope="module")
def outcomes(tiny_index, tmp_path_factory):
    """What came of every attack, by name."""
    done = subprocess.run(
        [sys.executable, __file__, str(tiny_index.path)],
        cwd=tmp_path_factory.mktemp("hostile"),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    found = {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}
    missing = [name for name in attacks() if name not in found]
    assert not missing, f"ended at {missing[0]!r}: {done.stderr[-2000:]}"
    return found


def test_there_are_at_least_a_hundred_attacks():
    assert len(set(attacks())) == len(attacks()) >= 100


@pytest.mark.parametrize("name", attacks())
def test_host_and_workspace_are_intact(outcomes, name):
    found = outcomes[name]
    assert found["same"], found
    assert found["kept"] or found["status"] == "ok", found
    # A second of grace for a worker that has to be killed, and room for a busy machine.
    assert found["seconds"] < 15 * (SECONDS + 1), found
    assert found["memory_mb"] < 2_000, found


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_before_anything_is_spent(outcomes, name):
    found = outcomes[name]
    assert (found["status"], found["requests"]) == ("rejected", 0), found
    assert len(found["error"]) > 20, found
    assert "_so_call" not in found["error"] or "not available" in found["error"], found


@pytest.mark.parametrize("name", FAILED)
def test_the_error_says_what_is_wrong(outcomes, name):
    found = outcomes[name]
    assert found["status"] == "error", found
    assert FAILED[name][1] in found["observation"], found
    assert "Traceback" not in found["observation"], found
    assert len(found["error"]) < 1_500, found


@pytest.mark.parametrize("name", LIMITED)
def test_the_limit_is_an_observation(outcomes, name):
    found = outcomes[name]
    assert found["status"] in ("limit", "rejected"), found
    assert len(found["error"]) > 20, found
    assert "Variables are as they were" in found["observation"], found


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_harmless_runs(outcomes, name):
    found = outcomes[name]
    assert found["status"] == "ok", found
    assert HARMLESS[name][1] in found["observation"], found


if __name__ == "__main__":
    run_all(sys.argv[1])
