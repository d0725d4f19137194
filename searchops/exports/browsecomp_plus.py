"""Run files of BrowseComp-Plus: one JSON file a question, as its evaluation script reads them.

Source: texttron/BrowseComp-Plus, scripts_evaluation/evaluate_with_openai.py and search_agent: files
`run_*.json` with `query_id`, `status`, `retrieved_docids`, `tool_call_counts` and `result`, whose last item is
the answer; citations in it are ids in brackets.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from searchops.errors import DataError
from searchops.exports.lines import Line, answers_of, decisions_of, names_of, safe_name, write_file
from searchops.records import Run
from searchops.splitting import Sentences

__all__ = ["write_browsecomp_plus"]

_DONE: Final = ("answered", "budget")
_SENTENCES: Final = Sentences()
_ID: Final = re.compile(r"\[([^\[\]]+)%p\d+\]")


def write_browsecomp_plus(run: Run, folder: Path) -> list[Path]:
    """Writes one run file a question, in a folder of its own for each agent.

    `retrieved_docids` are the documents whose ids or texts stood in the agent's observations, in order.

    Args:
        run: A run of agents.
        folder: Where to write.

    Raises:
        DataError: The run holds no answer of an agent, or a line of it is damaged.
    """
    names, docnos = names_of(run), _docnos(run)
    exchanges: dict[tuple[int, str], list[Line]] = {}
    for line in decisions_of(run):
        exchanges.setdefault((line.get("pipeline", int), line.get("qid", str)), []).append(line)
    files = []
    for answer in answers_of(run):
        number, qid = answer.get("pipeline", int), answer.get("qid", str)
        name = names.get(number, f"pipeline-{number}")
        told = _run_file(answer, exchanges.get((number, qid), []), name, docnos)
        file = folder / safe_name(name) / f"run_{safe_name(qid)}.json"
        files.append(write_file(file, json.dumps(told, ensure_ascii=False, indent=2) + "\n"))
    if not files:
        raise DataError("a run with answers of agents is needed", "none", where=str(run.path or run))
    return files


def _run_file(answer: Line, lines: Sequence[Line], name: str, docnos: frozenset[str]) -> dict[str, Any]:
    calls = [call for line in lines for call in line.parts("calls")]
    text = _cited(answer.get("qanswer", str).strip(), docnos)
    result = [item for line in lines for item in _items(line)]
    if text:
        result.append(_item("output_text", _formatted(text)))
    completed = bool(text) and answer.get("stop_reason", str) in _DONE
    return {
        "metadata": {
            "model": _model(lines),
            "agent": name,
            "stop_reason": answer.get("stop_reason", str),
            "error": answer.get("error", str),
        },
        "query_id": answer.get("qid", str),
        "tool_call_counts": dict(Counter(call.get("name", str) for call in calls)),
        "usage": {key: answer.data.get(key) for key in ("input_tokens", "output_tokens", "total_tokens")},
        "status": "completed" if completed else "incomplete",
        "retrieved_docids": list(dict.fromkeys(id_ for call in calls for id_ in _seen(call, docnos))),
        "result": result,
    }


def _items(line: Line) -> Iterable[dict[str, Any]]:
    """What one exchange adds: what the model thought or said beside its calls, then the calls."""
    reply = line.data.get("reply") or {}
    calls = line.parts("calls")
    if reply.get("reasoning"):
        yield _item("reasoning", [reply["reasoning"]])
    if calls and reply.get("content"):
        yield _item("reasoning", [reply["content"]])
    for call in calls:
        arguments = call.data.get("arguments")
        told = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        yield {
            **_item("tool_call", call.get("observation", str)),
            "tool_name": call.get("name", str),
            "arguments": told,
        }


def _item(kind: str, output: Any) -> dict[str, Any]:
    return {"type": kind, "tool_name": None, "arguments": None, "output": output}


def _model(lines: Sequence[Line]) -> str:
    return next((str(line.data["reply"]["model"]) for line in lines if line.data.get("reply", {}).get("model")), "")


def _docnos(run: Run) -> frozenset[str]:
    """Ids of all documents in the record: an id in an observation is one of them, or that of a passage."""
    return frozenset(run.candidate_table.column("docno").unique().to_pylist())


def _seen(call: Line, docnos: frozenset[str]) -> Iterable[str]:
    for key in call.get("referenced", list):
        yield key if key in docnos else key.rpartition("%p")[0] or key
    for part in call.get("shown", list):
        yield part[0]


def _cited(text: str, docnos: frozenset[str]) -> str:
    """The answer with documents cited in place of their passages: every number in brackets counts as an id."""
    return _ID.sub(lambda found: f"[{found[1]}]" if found[1] in docnos else found[0], text)


def _formatted(answer: str) -> str:
    """The three lines that the judge's prompt looks for; an answer that has them stays as it is."""
    if "Exact Answer:" in answer:
        return answer
    start, end = _SENTENCES.spans({"text": answer})[0]
    return f"Explanation: {answer}\nExact Answer: {answer[start:end].strip().rstrip('.')}\nConfidence: not stated"
