"""Questions answered side by side: what fails alone, and what ends all of them."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from searchops.errors import SpecError

__all__ = ["answer_all"]

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Work = Callable[[Item, Callable[[], bool]], Answer]


def answer_all(work: Work[Item, Answer], items: Sequence[Item], n_parallel: int) -> list[Answer | Exception]:
    """Runs `work` on every item, at most `n_parallel` at a time; the results stand in the items' order.

    The context variables of the caller hold in every thread. An exception is the item's result and the
    others go on, but for a SpecError (nothing can succeed) and an interrupt: they end the others before
    their next decision and are raised.

    Args:
        work: Takes an item and a function that says whether it should stop.
        items: The questions.
        n_parallel: Threads; 1 runs in the caller's.

    Raises:
        SpecError: One item raised it.
        KeyboardInterrupt: The caller was interrupted.

    Example:
        >>> answer_all(lambda item, stopped: item + 1, [1, 2], 2)
        [2, 3]
    """
    if n_parallel == 1 or len(items) < 2:
        return [_one(work, item, lambda: False) for item in items]
    stop = threading.Event()
    with ThreadPoolExecutor(min(n_parallel, len(items)), thread_name_prefix="question") as pool:
        futures = [pool.submit(contextvars.copy_context().run, _one, work, item, stop.is_set) for item in items]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            _raise_first(futures)
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return [future.result() for future in futures]


def _one(work: Work[Item, Answer], item: Item, stopped: Callable[[], bool]) -> Answer | Exception:
    try:
        return work(item, stopped)
    except SpecError:
        raise
    except Exception as error:
        return error


def _raise_first(futures: Sequence[Future[Answer | Exception]]) -> None:
    for future in futures:
        if future.done():
            future.result()
