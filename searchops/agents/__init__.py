"""Search agents: one loop and three interfaces over the same substrate.

`QueryAgent` has one `search` tool with a fixed funnel, `ToolAgent` has the five primitives as tools, and
`ProgramAgent` writes program cells. Each is a transformer from questions to answers. Source: PSA, 3 and 4.1.

For models that are no language models: an interface's tools are in `schemas`, results are written and read
by `observations` (`items_of` reads what `search` and `extract` showed), a cell's observation is what its
last expression is, and a reply with text and no tool call finishes the question.
"""

from searchops.agents.budget import Budget
from searchops.agents.program import ProgramAgent
from searchops.agents.query import QueryAgent
from searchops.agents.tool import ToolAgent
from searchops.substrate import Funnel

__all__ = ["Budget", "Funnel", "ProgramAgent", "QueryAgent", "ToolAgent"]
