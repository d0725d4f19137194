"""Cells: what runs, what persists, what is shown, and what an error says."""

import os
import signal
import threading

import pytest

from searchops.cells import CellFunction, CellRunner, Limits, checking
from searchops.cells.checking import Checker, checker_for
from searchops.cells.gate import examine
from searchops.cells.operations import check_plain
from searchops.cells.prelude import Fields
from searchops.cells.session import LimitTripped, Refused, Session
from searchops.errors import BudgetExceeded, SpecError, ToolError
from searchops.primitives import Rerank
from searchops.recorder import record
from searchops.scorers.lexical import Lexical
from searchops.substrate import Substrate
from searchops.workspace import Workspace

FIRST = """
a = retrieve("deepest lake Siberia", 20)
b = retrieve("seal living in Lake Baikal", 20)
evidence_pool = dedupe(a, b, key="passage_id")
{"pool_size": len(evidence_pool)}
"""
SECOND = """
focus = filter(evidence_pool, lambda c: "Lake" in c.title)
ranked = rerank(focus)
grounded = extract(ranked, "which lake is the deepest")
result = {"ids": [r["passage_id"] for r in grounded],
          "notes": [r["note"][:1600] for r in grounded[:3]]}
result # Return this view to the agent; retain workspace objects.
"""


def runner_over(index, *, limits=None, functions=()):
    return CellRunner(Substrate(Workspace("1", "Which lake?"), index, Lexical()), limits, functions)


@pytest.fixture
def runner(tiny_index):
    with runner_over(tiny_index) as made:
        yield made


def ok(runner, code, decision=-1):
    result = runner.run(code, decision)
    assert result.ok, result.observation
    return result


# -- the two cells of the post --------------------------------------------------------------------


def test_a_pool_of_one_cell_is_reprocessed_by_the_next_without_retrieval(runner):
    first = ok(runner, FIRST, 0)
    size = len({row["docno"] for row in runner.workspace.rows})
    assert first.observation == f"pool_size: {size}"
    assert first.costs.retrieval_requests == 2
    second = ok(runner, SECOND, 1)
    assert second.costs.retrieval_requests == 0
    assert second.costs.extract_calls == 1
    assert second.observation.startswith("ids: ['")
    assert "It is the deepest lake on Earth." in second.observation
    assert list(second.variables) == ["focus", "ranked", "grounded", "result"]
    assert {e.passage_id for e in runner.workspace.evidence} == {e for e in second.shown if "%p" in e}
    assert set(second.shown) < set(second.retained)


def test_a_cells_primitives_give_what_the_stages_give(runner, tiny_index):
    ok(runner, FIRST)
    shown = ok(runner, "import json\njson.dumps([[c.docno, c.score, c.rank] for c in rerank(evidence_pool, 5)])")
    pool = runner.substrate.dedupe(
        runner.substrate.retrieve("deepest lake Siberia"), runner.substrate.retrieve("seal living in Lake Baikal")
    )
    expected = Rerank(Lexical(tiny_index), k=5).transform_iter(pool.rows)
    assert eval(shown.observation) == [[r["docno"], r["score"], r["rank"]] for r in expected]


def test_calls_of_a_cell_are_events_of_its_decision_and_know_their_parents(runner):
    with record() as run:
        ok(runner, FIRST, 3)
        ok(runner, SECOND, 4)
    events = run.run().events
    assert events["kind"].tolist() == ["retrieve", "retrieve", "dedupe", "filter", "rerank", "extract"]
    assert list(zip(events["decision"], events["call"], strict=True)) == [
        (3, 0),
        (3, 1),
        (3, 2),
        (4, 0),
        (4, 1),
        (4, 2),
    ]
    assert events["parent"].tolist() == [-1, -1, -1, 2, 3, 4]
    assert events["name"].tolist()[3] == "Filter(<cell predicate>)"


# -- state ----------------------------------------------------------------------------------------


def test_variables_functions_and_imports_persist(runner):
    ok(runner, "import math\nx = [1, 2]\ndef twice(n):\n    return [2 * i for i in n]\nhalf = lambda n: n / 2")
    assert ok(runner, "x.append(3)\nmath.floor(half(sum(twice(x))))").observation == "6"
    assert runner.workspace.variables["x"].size == 3


def test_a_failed_cell_leaves_nothing_but_its_costs(runner):
    ok(runner, "pool = retrieve('lake', 3)\nx = [1]")
    before = runner.workspace.describe()
    failed = runner.run("x.append(2)\ny = 1\nmore = retrieve('river', 4)\nextract(more, 'x')\n1 / 0")
    assert failed.status == "error"
    assert failed.costs.retrieval_requests == 1
    assert "the same retrieve costs nothing" in failed.observation
    assert runner.workspace.describe() == before
    repaired = ok(runner, "more = retrieve('river', 4)\nx.append(len(more))\nlen(x)")
    assert (repaired.observation, repaired.costs.retrieval_requests) == ("2", 0)
    assert list(runner.workspace.variables) == ["pool", "x", "more"]


def test_a_function_may_make_a_name_of_the_workspace(runner):
    ok(runner, "def count():\n    global found\n    found = 5\ncount()")
    assert runner.workspace.variables["found"].kind == "int"
    assert ok(runner, "found").observation == "5"


def test_a_name_bound_on_a_branch_not_taken_is_no_variable(runner):
    result = ok(runner, "if 1 > 2:\n    x = 1\nelse:\n    y = 1\ny")
    assert list(result.variables) == ["y"]


def test_a_closed_runner_goes_on_where_it_was(runner):
    ok(runner, "pool = retrieve('lake', 3)")
    runner.close()
    assert ok(runner, "len(rerank(pool))").observation == "3"


def test_questions_in_threads_do_not_meet(tiny_index):
    shown = {}

    def work(name):
        with runner_over(tiny_index) as runner:
            for n in range(5):
                ok(runner, f"x{n} = ['{name}'] * {n}\npool = retrieve('lake {name}', 3)")
            shown[name] = (ok(runner, "x4").observation, list(runner.workspace.variables))

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = ["x0", "x1", "x2", "x3", "pool", "x4"]
    assert {name: seen[0] for name, seen in shown.items()} == {f"t{n}": str([f"t{n}"] * 4) for n in range(6)}
    assert all(set(seen[1]) == set(names) for seen in shown.values())


# -- what is shown --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("'text as it is\\nin two lines'", "text as it is\nin two lines"),
        ("[1, 'a', None, 2.5, True]", "[1, 'a', None, 2.5, True]"),
        ("{'n': 1, 'in': {'b': []}}", "n: 1\nin:\n  b: []"),
        ("[{'a': 1, 'b': 'x'}, {'a': 2}]", "- a: 1\n  b: x\n- a: 2"),
        ("[\"it's\", 'one']", "- it's\n- one"),
        ("{'q': ['x' * 100]}", "q:\n  - " + "x" * 100),
        ("{'t': 'two\\nlines'}", "t: two\n  lines"),
        ("1; 2", "2"),
        ("(3,\n 4)", "[3, 4]"),
        ("é = 'ü'; {'ö': é}", "ö: ü"),
        ("[]", "[]"),
        ("(n := 7)", "7"),
    ],
)
def test_the_final_expression_is_the_observation(runner, code, shown):
    result = ok(runner, code)
    assert (result.observation, result.hint) == (shown, "")


def test_what_is_printed_stands_before_the_value(runner):
    result = ok(runner, "print('one')\nprint('two')\n3")
    assert (result.observation, result.printed) == ("one\ntwo\n3", "one\ntwo")
    assert ok(runner, "print('only')").observation == "only"


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("x = 1", "ends with an assignment"),
        ("x: int = 1", "ends with an assignment"),
        ("for x in [1]:\n    x", "ends with a statement"),
        ("None", "is None"),
        ("[].append(1)", "is None"),
    ],
)
def test_a_cell_that_shows_nothing_gets_a_hint(runner, code, hint):
    result = ok(runner, code)
    assert hint in result.hint
    assert result.observation == result.hint


def test_a_candidate_is_shown_with_what_it_has(runner):
    text = ok(runner, "a = retrieve('Baikal seal', 1)\na").observation
    assert text.startswith("- docno: seals\n  title: Baikal seal\n  year: 2016\n")
    assert text.endswith("text: The Baikal seal lives only in Lake Baikal. It is a small seal.")
    passage = ok(runner, "extract(a, 'where')[0]").observation
    assert passage.startswith("docno: seals\npassage_id: seals%p0\n")
    assert passage.endswith("note: The Baikal seal lives only in Lake Baikal.")


def test_a_capped_request_says_so_once(runner):
    result = ok(runner, "x = retrieve('lake', 50) + retrieve('river', 50)\nlen(rerank(x, 5))")
    assert result.observation.splitlines() == ["5", "retrieve gives at most 20; k was larger and is capped"]


def test_the_safety_limits_announce_themselves(tiny_index):
    with runner_over(tiny_index, limits=Limits(observation_chars=50, printed_chars=20)) as runner:
        text = ok(runner, "print('p' * 90)\n['x' * 30] * 9").observation
    assert "[print cut here by the safety limit of 20 characters; 71 not shown]" in text
    assert "[cut here by the safety limit of 50 characters;" in text
    assert text.count("p" * 20) == 1


# -- candidates -----------------------------------------------------------------------------------


def test_candidates_answer_by_attribute_and_by_key(runner):
    code = """
c = retrieve("Baikal seal", 1)[0]
[c.docno == c["docno"], c.text == c["text"], c.get("year"), c.get("no", 5), "title" in c, c.passage_id,
 c.source_query, c.keys()[:3], c.rank]
"""
    shown = ok(runner, code).observation
    assert shown == "- True\n- True\n- 2016\n- 5\n- True\n- None\n- Baikal seal\n- ['docno', 'title', 'text']\n- 0"


@pytest.mark.parametrize(
    "predicate",
    ["lambda c: c.year >= 2013", "'year >= 2013'", "late", "lambda c: c['year'] // 2013"],
)
def test_predicates_are_lambdas_functions_or_text(runner, predicate):
    ok(runner, "pool = retrieve('lake river Siberia', 20)\ndef late(c):\n    return c.year >= 2013")
    shown = ok(runner, f"[c.year for c in filter(pool, {predicate})]").observation
    years = [row["year"] for row in runner.substrate.retrieve("lake river Siberia", 20).rows]
    assert shown == str([year for year in years if year >= 2013])
    assert any(year < 2013 for year in years)


def test_the_same_candidate_twice_stays_twice_until_deduplicated(runner):
    ok(runner, "a = retrieve('lake', 3)\nb = a + a")
    assert (
        ok(runner, "[len(filter(b, 'year > 0')), len(filter(b, lambda c: True)), len(dedupe(b))]").observation
        == "[6, 6, 3]"
    )


def test_fields_that_are_no_names_are_left_out_of_candidates():
    fields = Fields.over(["docno", "text", "a b", "class", "_x", "get", "lang"])
    assert [name for name in fields.names if name not in Fields.over([]).names] == ["lang"]


def test_values_of_a_row_cross_as_plain_ones():
    import numpy as np
    import pandas as pd

    fields = Fields.over(["when", "n", "tags", "odd"])
    row = {"docno": "d", "when": pd.Timestamp("2020-01-31"), "n": np.int64(3), "tags": ("a", np.float64(2)), "odd": 1j}
    crossed = dict(zip(fields.names, fields.values({**row, "score": float("nan")}, 7), strict=False))
    assert [crossed[name] for name in ("when", "n", "tags", "odd", "score")] == [
        "2020-01-31",
        3,
        ["a", 2.0],
        "1j",
        None,
    ]


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("x = 1\ny = [\nunknown]", ["line 3", "`unknown`", "Variables: pool;", "Nothing was run"]),
        ("pool[0].titel", ["line 1", "Did you mean 'title'?", "A candidate has: docno, title, text, year"]),
        ("[c['yaer'] for c in pool]", ["line 1", "Did you mean 'year'?", "A candidate has"]),
        ("import numpy", ["line 1", "'numpy'", "json", "math"]),
        ("x = 1\n\nx.foo()", ["line 3 (x.foo()):", "AttributeError"]),
        ("def f(c):\n    return c.year / 0\nfilter(pool, f)", ["line 2 (return c.year / 0)", "ZeroDivisionError"]),
        ("filter(pool, 'yaer > 3')", ["line 1", "'yaer'", "Did you mean 'year'?"]),
        ("if pool:\n    print(1", ["line 2", "never closed"]),
        ("pool[0].note[:5]", ["NoneType", "filled by extract"]),
        ("x = pool[99]", ["line 1 (x = pool[99])", "IndexError"]),
    ],
)
def test_an_error_names_the_line_and_what_there_is_instead(runner, code, parts):
    ok(runner, "pool = retrieve('lake', 3)")
    result = runner.run(code)
    assert not result.ok
    for part in parts:
        assert part in result.observation
    assert "_so_" not in result.observation


def test_what_the_type_check_only_doubts_is_left_to_the_run(runner):
    code = "d = {}\nx = d.get('a')\nif len(d) > 5:\n    x.foo\npools = []\nif x:\n    pools = None\nlen(dedupe(pools))"
    assert ok(runner, code).observation == "0"


def test_a_cell_may_catch_what_a_primitive_refuses(runner):
    code = "try:\n    retrieve('')\nexcept ValueError as e:\n    x = str(e)\nx"
    assert "a query that is text is needed" in ok(runner, code).observation


def test_a_tripped_limit_is_an_observation_and_the_next_cell_works(tiny_index):
    with runner_over(
        tiny_index, limits=Limits(seconds=0.2, memory_mb=32, calls=3, recursion=50, variables=5)
    ) as runner:
        ok(runner, "x = 1")
        for code, text in [
            ("while True:\n    pass", "computed longer than 0.2 s"),
            ("'a' * 10**9", "more than 32 MB"),
            ("def f():\n    f()\nf()", "more than 50 deep"),
            ("[retrieve(f'q{n}') for n in range(9)]", "3 calls"),
            ("a = b = c = d = e = 1", "5 variables and would hold 6"),
        ]:
            result = runner.run(code)
            assert result.status == "limit"
            assert text in result.error
            assert ok(runner, "x").observation == "1"


def test_limits_that_allow_nothing_are_refused():
    for wrong in ({"seconds": 0}, {"calls": -1}, {"memory_mb": True}, {"chars": "9"}):
        with pytest.raises(SpecError, match="above 0"):
            Limits(**wrong)


# -- functions of the host ------------------------------------------------------------------------


def grep(pattern, context=3):
    if not pattern:
        raise ToolError("a pattern is needed", where="grep")
    if pattern == "budget":
        raise BudgetExceeded("no budget is left")
    if pattern == "bug":
        raise KeyError("a mistake of the host")
    return [f"{pattern} {context}"]


@pytest.fixture
def exploring(tiny_index):
    stub = "def grep(pattern: str, context: int = 3) -> list[str]: ..."
    with runner_over(tiny_index, functions=[CellFunction("grep", grep, stub)], limits=Limits(calls=2)) as made:
        yield made


def test_further_functions_can_be_given_to_cells(exploring):
    assert ok(exploring, "grep('x', context=5)").observation == "['x 5']"
    assert "grep: a pattern is needed" in exploring.run("grep('')").error
    assert exploring.run("grep = 3").status == "rejected"
    assert "2 calls" in exploring.run("[grep('x') for _ in range(3)]").error


@pytest.mark.parametrize(("pattern", "error"), [("budget", BudgetExceeded), ("bug", KeyError)])
def test_a_used_up_budget_and_a_bug_end_the_run_and_leave_the_workspace(exploring, pattern, error):
    ok(exploring, "x = [1]")
    with pytest.raises(error):
        exploring.run(f"x.append(2)\ny = 1\ngrep('{pattern}')")
    assert list(exploring.workspace.variables) == ["x"]
    assert ok(exploring, "x").observation == "[1]"


# -- the gate and the session -----------------------------------------------------------------------


def test_the_final_expression_is_bound_in_its_own_line():
    program = examine("a = 1\r\nb = 'é'; a + \\\n 1\n# end\n", Limits())
    assert program.runnable == "a = 1\nb = 'é'; _so_output = a + \\\n 1\n# end\n"
    assert (program.ends_in, program.bound) == ("expression", ("a", "b"))


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (7, "text of a Python program"),
        ("", "empty"),
        ("x = 1\n" * 9_999, "at most 20,000 characters"),
        ("x = (", "line 1: a Python program is needed"),
        ("x\0", "a Python program is needed"),
        ("-" * 500 + "1", "nested at most 60 deep"),
        ("1" + "+1" * 9_000, "nested at most 60 deep"),
        ("1" + "+1" * 100, "nested at most 60 deep"),
        ("x = 1\nclass A:\n    pass", "line 2: classes are not available"),
        ("x.y = 1", "read-only"),
        ("x.__class__", "__class__ are not available"),
        ("f(__class__=1)", "__class__ are not available"),
        ("def f(_so_x):\n    pass", "_so_x are not available"),
        ("_so_x = 1", "_so_x are not available"),
        ("import json as _so_x", "_so_x are not available"),
        ("eval", "eval() is not available"),
        ("filter = 1", "filter is a name of the runtime"),
        ("import os.path", "'os.path' does not import here; these do: base64"),
        ("from os import path", "'os' does not import here"),
        ("from json import *", "one by one"),
        ("from . import a", "one by one"),
        ("from json import __doc__", "__doc__ are not available"),
        ("match 1:\n    case int(__class__=x):\n        pass", "__class__ are not available"),
    ],
)
def test_the_gate_says_why_a_program_cannot_run(program, reason):
    with pytest.raises(ToolError) as caught:
        examine(program, Limits())
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (10**30, "too large"),
        ([[10**30]], "too large"),
        ({"a": {1}}, "other things"),
        ([0] * 100_001, "at most 100,000"),
    ],
)
def test_only_plain_values_of_a_cell_reach_the_host(value, reason):
    with pytest.raises(Refused) as caught:
        check_plain(value)
    assert reason in str(caught.value)
    check_plain({"a": [1, 2.5, None, "x", True, (3,)]})


def test_names_bound_at_the_top_are_found_wherever_python_binds_them():
    code = """
import math as m, json
from re import findall as fa
a, (b, *c) = 1, (2, 3)
for d in []:
    e = 1
with_ = [f_inner for f_inner in [1] if (g := f_inner)]
try:
    h = 1
except ValueError as i:
    pass
match a:
    case [j, *k]:
        pass
    case {"x": l, **o}:
        pass
    case n:
        pass
def p(q):
    global r
    r = s = 1
t = lambda u: (v := u)
"""
    found = examine(code, Limits()).bound
    assert set(found) == set("abcdeghijklonprtm") | {"json", "fa", "with_"}


def test_a_session_that_was_never_committed_begins_again_from_its_prelude():
    session = Session(("start = 5",), Limits())
    assert session.run("start = start + 1; start", print) == 6
    session.roll_back()
    assert session.run("start", print) == 5
    session.close()


def test_a_restored_state_is_the_one_that_was_left_wherever_it_was_saved(runner):
    ok(runner, "import random, datetime\nlog = []\nstate = None")
    look = "import json\nstate = [log, random.Random(3).random(), sorted(set('state')), [c.text for c in pool]]\n"
    look += "json.dumps(state)"
    for n in range(15):
        ok(runner, f"pool = rerank(retrieve('lake {n % 4}', 5))")
        ok(runner, "log.append([random.random(), str(datetime.datetime.now()), list({'b', 'a', 'c'})])")
        caught = ok(runner, "try:\n    retrieve('')\nexcept ValueError as e:\n    log.append(str(e))\nlen(log)")
        assert caught.observation == str(2 * n + 2)
        left = ok(runner, look).observation
        assert runner.run("log.append(1)\npool.clear()\n1 / 0").status == "error"
        assert ok(runner, look).observation == left


def test_a_long_computation_is_saved_and_not_run_again():
    session = Session((), Limits(seconds=30))
    slow = "n = 0\nfor i in range(1_000_000):\n    n += i"
    session.run(slow, print)
    session.commit()
    assert session._since == []
    session.run("n = n + 1", print)
    session.commit()
    assert [ran.code for ran in session._since] == ["n = n + 1"]
    session.roll_back()
    assert session.run("n", print) == 499999500001
    session.close()


@pytest.mark.parametrize(
    "program",
    [
        "while True:\n    try:\n        unknown\n    except NameError:\n        pass",
        "while True:\n    try:\n        unknown()\n    except NameError:\n        pass",
        "while True:\n    try:\n        open('/etc/passwd')\n    except OSError:\n        pass",
        "while True:\n    try:\n        _so_call(10 ** 5000)\n    except ValueError:\n        pass",
    ],
)
def test_asking_the_host_without_end_is_stopped_though_errors_are_swallowed(program):
    def refuse(request):
        raise Refused("no")

    session = Session(("start = 5",), Limits(seconds=30))
    with pytest.raises(LimitTripped, match="10,000 times"):
        session.run(program, refuse)
    session.roll_back()
    assert session.run("start", refuse) == 5
    session.close()


def test_a_worker_that_dies_is_replaced_and_the_state_is_kept(runner):
    ok(runner, "x = [1, 2]")
    os.kill(runner._session._live.worker_pid, signal.SIGKILL)
    died = runner.run("len(x)")
    assert died.status == "limit"
    assert "process ended" in died.error
    assert ok(runner, "len(x)").observation == "2"


def test_a_type_checker_that_dies_refuses_one_cell(tiny_index):
    with runner_over(tiny_index) as runner:
        ok(runner, "x = 1")
        os.kill(checker_for(runner._stubs)._session.worker_pid, signal.SIGKILL)
        assert "type checker" in runner.run("x").error
        assert ok(runner, "x").observation == "1"


def test_a_checker_is_replaced_after_many_checks(monkeypatch):
    monkeypatch.setattr(checking, "_CHECKS_KEPT", 2)
    checker = Checker(Fields.over([]).stubs())
    program = examine("retrieve(5)", Limits())
    assert [len(checker.check(program, {})) for _ in range(5)] == [1] * 5
    checker.close()


def test_only_the_checkers_used_last_are_kept():
    first = checker_for("# 0")
    assert checker_for("# 0") is first
    for n in range(1, 6):
        checker_for(f"# {n}")
    assert checker_for("# 0") is not first
