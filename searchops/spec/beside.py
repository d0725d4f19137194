"""Settings of a scorer that stand beside it: `rerank: {scorer: biencoder, batch_size: 16, k: 10}`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from searchops import registry
from searchops.errors import SpecError
from searchops.spec.nodes import Call, Node
from searchops.spec.signatures import Signature, signature_of

__all__ = ["DEFAULT_SCORER", "with_scorer_settings"]

DEFAULT_SCORER: Final = "lexical"
"""What is meant where a stage that must have a scorer names none."""


def with_scorer_settings(signature: Signature, call: Call) -> Call:
    """The call with what only its scorer takes moved into the scorer.

    A misspelt name goes where its nearest name is, so that the error can say which one was meant. What the
    scorer has already been given stays, and is an unknown field of the stage.

    Example:
        >>> from searchops.primitives import Rerank
        >>> from searchops.spec.nodes import Place
        >>> five = Node(5, Place("p.yaml"))
        >>> moved = with_scorer_settings(signature_of(Rerank), Call("rerank", (), {"k": five, "k1": five}))
        >>> list(moved.named), moved.named["scorer"].value.named == {"k1": five}
        (['k', 'scorer'], True)
    """
    scorer = next((p.name for p in signature.parameters.values() if "scorer" in p.shape.kinds), None)
    others = [name for name in call.named if name not in signature.names]
    if scorer is None or not others:
        return call
    node = call.named.get(scorer)
    inner = Call(DEFAULT_SCORER) if node is None else _as_call(node)
    if inner is None:
        return call
    known: list[str] = []
    with suppress(SpecError):
        known = signature_of(registry.lookup("scorer", inner.name)).names
    moved = [name for name in others
             if name not in inner.named and (name in known or get_close_matches(name[:60], known, n=1))]  # fmt: skip
    if not moved:
        return call
    place = call.named[moved[0]].place if node is None else node.place
    settings = {**inner.named, **{name: call.named[name] for name in moved}}
    keys = {**inner.keys, **{name: call.keys[name] for name in moved if name in call.keys}}
    rest = {name: given for name, given in call.named.items() if name not in moved}
    rest[scorer] = Node(Call(inner.name, inner.positional, settings, keys, within=call.name), place)
    return replace(call, named=rest)


def _as_call(node: Node) -> Call | None:
    """A scorer's node as a call; None where it is malformed, which is told elsewhere."""
    value = node.value
    if isinstance(value, Call):
        return value
    if isinstance(value, str):
        return Call(value)
    if not isinstance(value, dict) or len(value) != 1:
        return None
    ((name, given),) = value.items()
    if isinstance(given.value, dict):
        return Call(name, (), given.value, given.keys)
    return Call(name, () if given.value is None else (given,))
