"""Documents cut into passages that keep their offsets: every character is in at least one passage."""

from searchops.splitting.splitters import (
    Given,
    Sentences,
    Splitter,
    Words,
    parse_passage_id,
    passages,
)

__all__ = ["Given", "Sentences", "Splitter", "Words", "parse_passage_id", "passages"]
