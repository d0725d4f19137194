"""The agents of a file: `agent`, with the `model`, `budget` and `funnel` that its agents share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from searchops.spec.build import Building
from searchops.spec.nodes import Node

__all__ = ["SHARED", "agent_nodes", "build_agent"]

SHARED: Final = ("model", "budget", "funnel")
"""Keys of a file that every agent in it is given, unless it has its own."""


def agent_nodes(building: Building, node: Node, names: tuple[str, ...]) -> dict[str, Node]:
    """The agents under `agent` by name: one, alone or with settings, or a list of them.

    Args:
        building: Notes what is wrong.
        node: What stands under `agent`.
        names: The names that the file gives them, or ().

    Example:
        >>> from searchops.spec.nodes import as_node
        >>> from searchops.spec.problems import Problems
        >>> list(agent_nodes(Building(Problems(), {}), as_node(["query", {"tool": {"n_parallel": 2}}]), ()))
        ['query', 'tool']
    """
    items = node.value if isinstance(node.value, list) else [node]
    if not items:
        building.problems.add(node.place, "an agent is needed", "an empty list")
    calls = [building.call(item, "agent") for item in items]
    given = names or tuple(call.name if call is not None else f"agent {n}" for n, call in enumerate(calls, start=1))
    if len(given) != len(items) or len(set(given)) != len(given):
        building.problems.add(node.place, f"{len(items)} different names are needed", ", ".join(given)[:100],
                              "Give them under names.")  # fmt: skip
        return {}
    return dict(zip(given, items, strict=True))


def build_agent(building: Building, node: Node, shared: Mapping[str, Node]) -> Any:
    """One agent of a file; None behind noted problems.

    Args:
        building: Has the indexes, and notes what is wrong.
        node: The agent's name, alone or with settings.
        shared: The file's `model`, `budget` and `funnel`.
    """
    call = building.call(node, "agent")
    if call is None:
        return None
    own = dict(call.named)
    if call.positional:  # such as `query: keyword`: the model it is given
        shared = {name: value for name, value in shared.items() if name != "model"}
    given = {name: value for name, value in shared.items() if name not in own and value.value is not None}
    call = replace(call, named={**given, **own})
    if "model" not in call.named and not call.positional:
        building.problems.add(node.place, "a model is needed", "none",
                              "Write model: keyword, or model: {openai: {model: NAME}}.")  # fmt: skip
        return None
    return building.made("agent", call, node.place)
