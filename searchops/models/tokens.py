"""Token counts for replies whose provider gives none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from searchops.errors import SpecError
from searchops.models.protocol import Message, Reply, Request, Usage, UsageSource

__all__ = ["TokenCount", "count_tokens", "estimated_usage"]


class TokenCount(NamedTuple):
    """How many tokens, and who counted."""

    n: int
    source: UsageSource


def count_tokens(content: str | Sequence[Message], tokenizer: Any = None) -> TokenCount:
    """Tokens of a text or a conversation.

    Args:
        content: A text, or messages (their text, the names and the arguments of their tool calls).
        tokenizer: A Hugging Face tokenizer, or its name, folder or `tokenizer.json`. None counts
            characters / 4, rounded up.

    Raises:
        SpecError: No tokenizer can be loaded by that name.

    Example:
        >>> count_tokens("seven c")
        TokenCount(n=2, source='characters/4')
        >>> count_tokens([Message("user", "1234"), Message("assistant", "5")]).n
        2
    """
    texts = [content] if isinstance(content, str) else [part for m in content for part in _parts(m)]
    if tokenizer is None:
        return TokenCount(-(-sum(map(len, texts)) // 4), "characters/4")
    encoder = _load(tokenizer) if isinstance(tokenizer, str) else tokenizer
    return TokenCount(sum(_encoded(encoder, text) for text in texts), "tokenizer")


def estimated_usage(request: Request, reply: Reply, tokenizer: Any = None) -> Usage:
    """What a call used, counted here: the messages and tools in, the reply and its reasoning out."""
    tools = [Message("user", json.dumps(tool.to_dict(), ensure_ascii=False)) for tool in request.tools]
    read = count_tokens([*request.messages, *tools], tokenizer)
    thought = count_tokens(reply.reasoning or "", tokenizer).n
    written = count_tokens([reply.message()], tokenizer).n
    return Usage(read.n, written + thought, reasoning_tokens=thought, source=read.source)


def _parts(message: Message) -> list[str]:
    calls = [text for call in message.tool_calls for text in (call.name, call.arguments)]
    return [message.content or "", *calls]


def _encoded(encoder: Any, text: str) -> int:
    encoded = encoder.encode(text, add_special_tokens=False)
    # `tokenizers` gives an Encoding, `transformers` a list of ids.
    return len(getattr(encoded, "ids", encoded))


@lru_cache(maxsize=8)
def _load(name: str) -> Any:
    from tokenizers import Tokenizer

    file = Path(name) / "tokenizer.json" if Path(name).is_dir() else Path(name)
    try:
        return Tokenizer.from_file(str(file)) if file.is_file() else Tokenizer.from_pretrained(name)
    except Exception as error:
        # The package raises plain Exceptions for files, and errors of its own for names.
        found = f"{type(error).__name__}: {error}"
        raise SpecError("a tokenizer that loads is needed", found, where=f"tokenizer {name!r}") from error
