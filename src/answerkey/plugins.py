"""Registries: what can be plugged in, by name. The only place that imports by string.

Every protocol has one registry that built-in parts, the caller's own and those of installed packages share:

    targets     a kind of chatbot, as in "http://…" or "cmd:PROGRAM"
    scorers     a component or metric
    engines     how many questions get asked
    stores      where runs last, by the scheme of the store's address
    importers   another tool's files as a golden set or as recorded replies
    exporters   a golden set in another tool's format
    reports     a run written to a file, by the file's ending

A package brings its own under the entry point group `answerkey.targets`, `answerkey.scorers` and so on.
"""

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from answerkey.errors import MissingExtraError, UnknownNameError, UsageError
from answerkey.text.normalise import one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from answerkey.protocols import EngineFactory, Exporter, Importer, ReportWriter, TargetFactory

_Part = TypeVar("_Part")


def load_object(reference: str, *, feature: str = "", extra: str = "") -> Any:
    """The object behind "module:name"; a missing optional dependency is named with its extra."""
    module, _, name = reference.partition(":")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if extra and not (error.name or "").startswith("answerkey"):
            raise MissingExtraError(feature or reference, extra) from None
        raise
    return getattr(found, name) if name else found


def load_python(reference: str, start: Path | None = None) -> tuple[Any, ModuleType]:
    """The user's object behind "module:name" or "path/file.py:name", and its module.

    Modules and files are looked for in the folder `start`, or else in the current one.
    """
    place, _, path = reference.rpartition(":")
    if not place or not path:
        raise UsageError(f"{reference!r} names no callable; write module:callable or file.py:callable")
    folder = str((start or Path()).resolve())
    if folder not in sys.path:
        # As `python -m` does: the user's modules are where the user is.
        sys.path.insert(0, folder)
    is_file = place.endswith(".py") or "/" in place or "\\" in place
    try:
        module = _load_file((start or Path()) / place) if is_file else importlib.import_module(place)
    except UsageError:
        raise
    except ModuleNotFoundError as error:
        if not is_file and error.name is not None and f"{place}.".startswith(f"{error.name}."):
            raise UsageError(
                f"there is no module {place!r} in {folder} or among the installed packages"
            ) from None
        raise UsageError(
            f"importing {place} failed: there is no module {error.name!r}; install it first"
        ) from None
    except (Exception, SystemExit) as error:  # the user's module may raise anything
        raise UsageError(
            one_line(f"importing {place} failed: {type(error).__name__}: {error}", 300)
        ) from error
    found: Any = module
    for name in path.split("."):
        if not hasattr(found, name):
            offered = [other for other, part in vars(module).items() if other[0] != "_" and callable(part)]
            raise UsageError(
                f"{place} has no {path!r}; "
                + (f"it has {', '.join(offered[:10])}" if offered else "it has no callable"),
            )
        found = getattr(found, name)
    return found, module


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    full = path.resolve()
    spec = importlib.util.spec_from_file_location(full.stem, full)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    if str(full.parent) not in sys.path:
        sys.path.insert(0, str(full.parent))
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickling look the module up by its name; another module of that name keeps its place.
    sys.modules.setdefault(full.stem, module)
    spec.loader.exec_module(module)
    return module


class Registry(Generic[_Part]):
    """The parts of one kind, by name; nothing is imported before it is asked for."""

    def __init__(
        self, kind: str, built_in: Mapping[str, str], extras: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        # Name → "module:object".
        self._built_in = dict(built_in)
        # Name → the extra that must be installed for it.
        self._extras = dict(extras or {})
        self._own: dict[str, _Part] = {}
        # Name → "file.py:name" and the folder that it starts from, as a configuration file says.
        self._references: dict[str, tuple[str, Path]] = {}

    def add(self, name: str, part: _Part) -> None:
        """Register a part of the caller's own; a name that is taken is refused, unless by the same part made again."""
        known = self._own.get(name, part)
        made_again = known is part or _origin(known) == _origin(part) is not None
        self._refuse_taken(name, taken=not made_again)
        self._own[name] = part

    def refer(self, name: str, reference: str, folder: Path) -> None:
        """Register what "file.py:name" in a folder holds; it is loaded when it is asked for."""
        self._refuse_taken(name)
        self._references[name] = (reference, folder)

    def _refuse_taken(self, name: str, *, taken: bool = False) -> None:
        if taken or name in self._built_in or any(self._installed(name)):
            raise UsageError(f"there is a {self.kind} {name!r} already; give yours another name")

    def get(self, name: str) -> _Part:
        """The part with this name; an unknown one is refused with those that there are."""
        found = self.find(name)
        if found is not None:
            return found
        known = self.names()
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
        raise UnknownNameError(f"unknown {self.kind} {name!r}; {hint}")

    def find(self, name: str) -> _Part | None:
        """The part with this name, if there is one."""
        found: Any = None
        if name in self._references:
            found, _ = load_python(*self._references[name])
        elif name in self._own:
            found = self._own[name]
        elif name in self._built_in:
            extra = self._extras.get(name, "")
            found = load_object(self._built_in[name], feature=f"the {self.kind} {name!r}", extra=extra)
        else:
            for point in islice(self._installed(name), 1):
                found = _load(self.kind, point)
        return cast("_Part | None", found)

    def names(self) -> list[str]:
        """Every name there is: built in, the caller's own, and those that installed packages bring."""
        own = {*self._own, *self._references}
        return sorted({*self._built_in, *own, *(point.name for point in self._installed())})

    def built_in(self) -> list[str]:
        """Names that come with answerkey, in the order of their registration."""
        return list(self._built_in)

    def __contains__(self, name: str) -> bool:
        """Whether there is a part with this name; nothing is imported for it."""
        return name in {**self._own, **self._references, **self._built_in} or any(self._installed(name))

    def added(self) -> list[str]:
        """Names that are not built in."""
        return [name for name in self.names() if name not in self._built_in]

    def live(self) -> list[str]:
        """Names of parts that were registered as objects, which no other process can load."""
        return [name for name in self._own if name not in self._references]

    def _installed(self, name: str | None = None) -> "Iterator[EntryPoint]":
        for point in _entry_points(f"answerkey.{self.kind}s", tuple(sys.path)):
            if name is None or point.name == name:
                yield point


@lru_cache(maxsize=64)
def _entry_points(group: str, path: tuple[str, ...]) -> "tuple[EntryPoint, ...]":
    """What installed packages on the path bring; looking takes tens of milliseconds, so once for each path."""
    from importlib.metadata import entry_points  # slow to load, and seldom needed

    return tuple(entry_points(group=group))


def _origin(part: Any) -> tuple[str, str] | None:
    """Where a part was written: a cell that is run again, or a file that is loaded again, makes the same part anew."""
    name = getattr(part, "__qualname__", None)
    return None if name is None else (part.__module__, name)


def _load(kind: str, point: "EntryPoint") -> Any:
    try:
        return point.load()
    except Exception as error:  # whatever a package raises while it is imported is its own fault, to be named
        package = point.dist.name if point.dist is not None else point.value
        raise UsageError(
            f"the {kind} {point.name!r} of the package {package} cannot be loaded: {type(error).__name__}: {error}"
        ) from error


targets: Registry["TargetFactory"] = Registry(
    "target",
    {
        # Also what begins with http:// or https://.
        "url": "answerkey.targets.http_target:make_http_target",
        "python": "answerkey.targets.isolated_target:make_isolated_target",
        "cmd": "answerkey.targets.command_target:make_command_target",
        "openai": "answerkey.targets.model_target:make_model_target",
        "openai-responses": "answerkey.targets.model_target:make_model_target",
        "anthropic": "answerkey.targets.model_target:make_model_target",
        "gemini": "answerkey.targets.model_target:make_model_target",
        "ollama": "answerkey.targets.model_target:make_model_target",
        "replay": "answerkey.targets.replay_target:make_replay_target",
        "demo": "answerkey.targets.resolve:make_demo_target",
    },
)
scorers: Registry[Any] = Registry(
    "scorer",
    {
        "checks": "answerkey.scorers.checks:Checks",
        "error_handling": "answerkey.scorers.error_handling:ErrorHandling",
        "groundedness": "answerkey.scorers.groundedness:Groundedness",
        "links": "answerkey.scorers.groundedness:LinksIntoEvidence",
        "response_quality": "answerkey.scorers.response_quality:ResponseQuality",
        "retrieval": "answerkey.scorers.retrieval:RetrievalQuality",
        "source_hygiene": "answerkey.scorers.retrieval:SourceHygiene",
        "tool_usage": "answerkey.scorers.tool_usage:ToolUsage",
    },
)
engines: Registry["EngineFactory"] = Registry(
    "engine",
    {"local": "answerkey.engine.local_engine:LocalEngine", "ray": "answerkey.engine.ray_engine:RayEngine"},
)
stores: Registry[Any] = Registry(
    "store",
    {
        "sqlite": "answerkey.store.sqlite:open_sqlite",
        "postgresql": "answerkey.store.postgresql:open_postgresql",
    },
)
importers: Registry["Importer"] = Registry(
    "importer",
    {
        "beir": "answerkey.datasets.import_benchmarks:import_beir",
        "bfcl": "answerkey.datasets.import_benchmarks:import_bfcl",
        "deepeval": "answerkey.datasets.import_tables:import_deepeval",
        "hf": "answerkey.datasets.import_tables:import_hf",
        "inspect": "answerkey.datasets.import_tables:import_inspect",
        "langfuse": "answerkey.datasets.import_tables:import_langfuse",
        "langsmith": "answerkey.datasets.import_tables:import_langsmith",
        "openai-evals": "answerkey.datasets.import_tables:import_openai_evals",
        "promptfoo": "answerkey.datasets.import_promptfoo:import_promptfoo",
        "ragas": "answerkey.datasets.import_tables:import_ragas",
        "tau2": "answerkey.datasets.import_benchmarks:import_tau2",
        "trec": "answerkey.datasets.import_benchmarks:import_trec",
    },
)
exporters: Registry["Exporter"] = Registry(
    "exporter",
    {
        "beir": "answerkey.datasets.exporters:export_beir",
        "bfcl": "answerkey.datasets.exporters:export_bfcl",
        "csv": "answerkey.datasets.exporters:export_csv",
        "deepeval": "answerkey.datasets.exporters:export_deepeval",
        "hf": "answerkey.datasets.exporters:export_hf",
        "inspect": "answerkey.datasets.exporters:export_inspect",
        "jsonl": "answerkey.datasets.exporters:export_jsonl",
        "langfuse": "answerkey.datasets.exporters:export_langfuse",
        "langsmith": "answerkey.datasets.exporters:export_langsmith",
        "openai-evals": "answerkey.datasets.exporters:export_openai_evals",
        "promptfoo": "answerkey.datasets.exporters:export_promptfoo",
        "ragas": "answerkey.datasets.exporters:export_ragas",
        "tau2": "answerkey.datasets.exporters:export_tau2",
        "trec": "answerkey.datasets.exporters:export_trec",
    },
)
reports: Registry["ReportWriter"] = Registry(
    "report",
    {
        ".html": "answerkey.report.html_file:write_html",
        ".md": "answerkey.report.markdown_file:write_markdown",
        ".comment.md": "answerkey.report.markdown_file:write_comment",
        ".json": "answerkey.report.row_files:write_json",
        ".jsonl": "answerkey.report.row_files:write_jsonl",
        ".csv": "answerkey.report.row_files:write_csv",
        ".parquet": "answerkey.report.parquet_file:write_parquet",
        ".xlsx": "answerkey.report.excel:write_excel",
        ".junit.xml": "answerkey.report.row_files:write_junit",
    },
    extras={".parquet": "parquet", ".xlsx": "excel"},
)
