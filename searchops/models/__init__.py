"""Chat models: one protocol, and models that are an endpoint, a script or a record.

Only `compatible` touches the network, and only it reads the key, from the environment.
"""

from searchops.models.compatible import OpenAIModel
from searchops.models.pricing import Prices
from searchops.models.protocol import ChatModel, Exchange, Message, Reply, Request, Tool, ToolCall, Usage
from searchops.models.replay import ReplayModel, read_exchanges
from searchops.models.scripted import ScriptedModel
from searchops.models.tokens import TokenCount, count_tokens

__all__ = [
    "ChatModel",
    "Exchange",
    "Message",
    "OpenAIModel",
    "Prices",
    "ReplayModel",
    "Reply",
    "Request",
    "ScriptedModel",
    "TokenCount",
    "Tool",
    "ToolCall",
    "Usage",
    "count_tokens",
    "read_exchanges",
]
