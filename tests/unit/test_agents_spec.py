"""The keys `agent`, `model`, `budget` and `funnel` of files."""

from __future__ import annotations

import subprocess
import sys

import jsonschema
import pytest
from ruamel.yaml import YAML

from searchops.agents import Budget, Funnel, ProgramAgent, QueryAgent, ToolAgent
from searchops.agents.keyword import KeywordPolicy
from searchops.cells import Limits
from searchops.errors import SpecError
from searchops.models import OpenAIModel
from searchops.primitives import Retrieve
from searchops.scorers.lexical import Lexical
from searchops.spec import dump, json_schema, read_spec


def spec(*lines):
    return read_spec("\n".join(["version: 1", *lines]), source="a.yaml")


def built(index, *lines):
    return spec(*lines).build(lambda wanted: index)


def test_the_agents_of_a_file_share_its_model_budget_and_funnel(tiny_index):
    agents = built(
        tiny_index,
        "agent: [query, tool, program]",
        "model: {openai: {model: m, base_url: 'http://127.0.0.1:1/v1'}}",
        "budget: {decisions: 9, repairs: 0}",
        "funnel: {retrieve: 5}",
    )
    assert [type(agent) for agent in agents.values()] == [QueryAgent, ToolAgent, ProgramAgent]
    assert list(agents) == ["query", "tool", "program"]
    for agent in agents.values():
        assert isinstance(agent.model, OpenAIModel)
        assert agent.budget == Budget(decisions=9, repairs=0)
        assert agent.funnel == Funnel(retrieve=5)
        assert agent.index is tiny_index


def test_an_agent_s_own_settings_stand_before_the_shared_ones(tiny_index):
    agents = built(
        tiny_index,
        "agent:",
        "  - query: {budget: {decisions: 2}, where: year > 2012, scorer: {lexical: {k1: 1.2}}}",
        "  - program: {limits: {calls: 3}, n_parallel: 2, splitter: {sentences: 2}, model: {openai: other}}",
        "names: [short, cells]",
        "model: {openai: one}",
        "budget: {decisions: 9}",
    )
    assert agents["short"].budget.decisions == 2
    assert str(agents["short"].where) == "year > 2012"
    assert agents["short"].scorer.k1 == 1.2
    assert agents["cells"].budget.decisions == 9
    assert agents["cells"].limits == Limits(calls=3)
    assert agents["cells"].model.model == "other"


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (["agent: query"], "a.yaml:2:8: a model is needed; found none"),
        (["agent: qeury", "model: {openai: m}"], "a.yaml:2:8: unknown agent 'qeury'; did you mean 'query'"),
        (["agent: query", "model: opnai"], "a.yaml:3:8: unknown model 'opnai'; did you mean 'openai'"),
        (["agent: query", "model: {openai: m}", "pipeline: [retrieve]"], "either agent or pipeline is needed"),
        (["agent: [query, query]", "model: {openai: m}"], "2 different names are needed"),
        (["agent: []", "model: {openai: m}"], "an agent is needed; found an empty list"),
        (["agent: query", "model: {openai: m}", "budget: {decisions: 0}"], "decisions must be a whole number"),
        (["agent: query", "model: {openai: m}", "budget: {decision: 5}"], "did you mean 'decisions'"),
        (["agent: query", "model: {openai: m}", "budget: 5"], "budget must be a budget's settings"),
        (["agent: query", "model: {openai: m}", "funnel: {rerank: many}"], "rerank must be a whole number"),
        (["agent: {query: {limits: {calls: 3}}}", "model: {openai: m}"], "unknown field 'limits'"),
        (["agent: {query: {prompt: none.md}}", "model: {openai: m}"], "a prompt file that can be read is needed"),
        (["pipeline: [retrieve]", "budget: {decisions: 5}"], "budget is an agent's; an agent is needed"),
        (["agent: 5", "model: {openai: m}"], "an agent is needed"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(lines, error):
    with pytest.raises(SpecError) as caught:
        spec(*lines)
    assert error in str(caught.value)


def test_a_secret_of_the_environment_cannot_come_into_a_record(monkeypatch, tiny_index):
    monkeypatch.setenv("SO_SECRET", "sk-not-to-be-told")
    (agent,) = built(tiny_index, "agent: query", "model: {openai: '${env.SO_SECRET}'}").values()
    assert agent.model.model == "sk-not-to-be-told"
    assert "sk-" not in repr(agent)
    assert "${env.SO_SECRET}" in agent.record_name


@pytest.mark.parametrize("n_parallel", [1, 3])
def test_a_dump_of_agents_reads_back_as_the_same(n_parallel, tiny_index):
    model = OpenAIModel("m", "http://127.0.0.1:1/v1", api_key_env=None)
    agents = {
        "one": QueryAgent(model, tiny_index, where="year > 2012", budget=Budget(decisions=3)),
        "two": ProgramAgent(model, tiny_index, limits=Limits(calls=3), n_parallel=n_parallel),
        "three": ToolAgent(model, tiny_index, funnel=Funnel(retrieve=3), extract_scorer=Lexical(k1=1.2)),
    }
    read = read_spec(dump(agents, indexes={"main": tiny_index}, collection="pydocs"))
    assert read.build(lambda wanted: tiny_index) == agents
    assert read_spec(dump(agents["one"], indexes={"main": tiny_index})).build(lambda wanted: tiny_index) == {
        "query": agents["one"]
    }
    with pytest.raises(SpecError, match="agents alone, or pipelines alone"):
        dump({**agents, "four": Retrieve(tiny_index)})


def test_the_one_value_of_an_agent_is_its_model(tiny_index):
    agents = built(tiny_index, "agent: [query, {tool: keyword}]", "model: {openai: m}")
    assert isinstance(agents["query"].model, OpenAIModel)
    assert agents["tool"].model == KeywordPolicy()


@pytest.mark.parametrize(
    ("lines", "fits"),
    [
        ("agent: query\nmodel: keyword", True),
        ("agent: [query, {program: {limits: {calls: 3}, n_parallel: 4}}]\nmodel: {openai: {model: m}}", True),
        ("agent: query\nmodel: {openai: m}\nbudget: {decisions: 5}\nfunnel: {retrieve: 5}", True),
        ("agent: query\npipeline: [retrieve]", False),
        ("agent: other", False),
        ("agent: query\nbudget: {decisions: five}", False),
        ("agent: {query: {limits: {calls: 3}}}", False),
    ],
)
def test_the_schema_knows_agents(lines, fits):
    document = YAML(typ="safe", pure=True).load(f"version: 1\n{lines}")
    assert jsonschema.Draft202012Validator(json_schema()).is_valid(document) is fits


def test_a_file_without_agents_loads_no_sandbox():
    code = (
        "import sys; from searchops.spec import read_spec; read_spec('version: 1\\npipeline: [retrieve]');"
        "print([m for m in sys.modules if m.startswith(('searchops.agents', 'searchops.cells', 'pydantic_monty'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"
