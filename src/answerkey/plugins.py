"""Registries of pluggable parts, by name. The only module that imports by string.

Each protocol has one registry, shared by built-in parts, registered objects and installed packages:

    targets     kind of chatbot, e.g. "http://…" or "cmd:PROGRAM"
    scorers     component or metric
    engines     how questions are asked
    stores      where runs are stored, by URL scheme
    importers   files of other tools → golden set or recorded replies
    exporters   golden set → format of another tool
    reports     run → file, by file extension

Packages register parts under the entry point groups `answerkey.targets`, `answerkey.scorers` and so on. Parts that a
configuration names are in a `RegistryLayer` of that configuration (`Settings.scorer_registry`), not in the process.
"""

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from answerkey.errors import MissingExtraError, UnknownNameError, UsageError, nearest_name
from answerkey.text.normalise import one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from answerkey.protocols import EngineFactory, Exporter, Importer, ReportWriter, TargetFactory

_Part = TypeVar("_Part")

# The user's modules and the parts of other packages that this process has loaded.
foreign_code: set[str] = set()


def load_object(reference: str) -> Any:
    """The object at "module:name"."""
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


def load_python(reference: str, start: Path | None = None) -> tuple[Any, ModuleType]:
    """The user's object at "module:name" or "path/file.py:name", and its module.

    Modules and files are searched in the folder `start`, by default the current one.
    """
    source, _, path = reference.rpartition(":")
    if not source or not path:
        raise UsageError(f"{reference!r} names no callable; write module:callable or file.py:callable")
    foreign_code.add(source)
    folder = (start or Path()).resolve()
    is_file = source.endswith(".py") or "/" in source or "\\" in source
    try:
        with _searched_first(folder):
            module = _load_file((start or Path()) / source) if is_file else _load_module(source, folder)
    except UsageError:
        raise
    except ModuleNotFoundError as error:
        if not is_file and error.name is not None and f"{source}.".startswith(f"{error.name}."):
            raise UsageError(
                f"there is no module {source!r} in {folder} or among the installed packages"
            ) from None
        raise UsageError(
            f"importing {source} failed: there is no module {error.name!r}; install it first"
        ) from None
    except (Exception, SystemExit) as error:  # the user's module may raise anything
        raise UsageError(
            one_line(f"importing {source} failed: {type(error).__name__}: {error}", 300)
        ) from error
    value: Any = module
    for name in path.split("."):
        if not hasattr(value, name):
            callables = [other for other, part in vars(module).items() if other[0] != "_" and callable(part)]
            raise UsageError(
                f"{source} has no {path!r}; "
                + (f"it has {', '.join(callables[:10])}" if callables else "it has no callable"),
            )
        value = getattr(value, name)
    return value, module


@contextmanager
def _searched_first(folder: Path) -> Iterator[None]:
    """Search a folder first while the user's code is imported, like `python -m`.

    Afterwards it is searched last: a file in it, e.g. rich.py, must not replace a package that answerkey imports later.
    """
    added = str(folder)
    if added in sys.path:
        yield
        return
    sys.path.insert(0, added)
    try:
        yield
    finally:
        sys.path.remove(added)
        sys.path.append(added)


def _load_module(name: str, folder: Path) -> ModuleType:
    """A module by name; where another project's module of that name is loaded already, the folder's own file."""
    file = folder / f"{name}.py"
    loaded = sys.modules.get(name)
    if loaded is not None and file.is_file() and getattr(loaded, "__file__", None) != str(file):
        return _load_file(file)
    return importlib.import_module(name)


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    full = path.resolve()
    spec = importlib.util.spec_from_file_location(full.stem, full)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickling look modules up by name. A loaded module of the same name is not replaced.
    sys.modules.setdefault(full.stem, module)
    with _searched_first(full.parent):
        spec.loader.exec_module(module)
    return module


class Registry(Generic[_Part]):
    """The parts of one kind, by name. A part is imported when it is looked up."""

    def __init__(
        self, kind: str, built_in: Mapping[str, str], extras: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        self.kind = kind
        # Name → "module:object".
        self._built_in = dict(built_in)
        # Name → the extra that must be installed for it, and the package that it brings.
        self._extras = dict(extras or {})
        # Parts registered as objects in this process.
        self._objects: dict[str, _Part] = {}

    def add(self, name: str, part: _Part) -> None:
        """Register an object.

        A name that is in use is refused, unless the part has the same module and name: a notebook cell or a file
        that was executed again. While a configuration's file is imported, its parts belong to that configuration.
        """
        layer = _importing.get()
        if layer is not None and layer.base is self:
            layer.add(name, part)
            return
        known = self._objects.get(name, part)
        made_again = known is part or _origin(known) == _origin(part) is not None
        self.refuse_taken(name, is_taken=not made_again)
        self._objects[name] = part

    def layer(self, references: Mapping[str, str], folder: Path) -> "RegistryLayer[_Part]":
        """This registry with the parts that a configuration names: name → "file.py:object" in the folder."""
        return RegistryLayer(self, references, folder)

    def refuse_taken(self, name: str, *, is_taken: bool = False) -> None:
        """Raise UsageError if a built-in part or an installed package has this name."""
        if is_taken or name in self._built_in or any(self._installed(name)):
            raise UsageError(f"there is already a {self.kind} {name!r}; rename yours")

    def get(self, name: str) -> _Part:
        """The part with this name; raises UnknownNameError that lists the known names."""
        part = self.find(name)
        if part is not None:
            return part
        known = self.names()
        close = nearest_name(name, known)
        hint = f"did you mean {close!r}?" if close else f"known: {', '.join(known)}"
        raise UnknownNameError(f"unknown {self.kind} {name!r}; {hint}")

    def find(self, name: str) -> _Part | None:
        """The part with this name, if there is one."""
        part: Any = None
        if name in self._objects:
            part = self._objects[name]
        elif name in self._built_in:
            extra, package = self._extras.get(name, ("", ""))
            if package and importlib.util.find_spec(package) is None:
                raise MissingExtraError(f"the {self.kind} {name!r}", extra)
            part = load_object(self._built_in[name])
        else:
            for point in islice(self._installed(name), 1):
                part = _load(self.kind, point)
        return cast("_Part | None", part)

    def names(self) -> list[str]:
        """All names: built in, registered as objects, and from installed packages."""
        return sorted({*self._built_in, *self._objects, *(point.name for point in self._installed())})

    def built_in(self) -> list[str]:
        """Names that come with answerkey, in the order of registration."""
        return list(self._built_in)

    def __contains__(self, name: str) -> bool:
        """Whether there is a part with this name; imports nothing."""
        return name in self._objects or name in self._built_in or any(self._installed(name))

    def added(self) -> list[str]:
        """Names that are not built in."""
        return [name for name in self.names() if name not in self._built_in]

    def live(self) -> list[str]:
        """Names of parts that were registered as objects, which no other process can load."""
        return list(self._objects)

    def _installed(self, name: str | None = None) -> "Iterator[EntryPoint]":
        for point in _entry_points(f"answerkey.{self.kind}s", tuple(sys.path)):
            if name is None or point.name == name:
                yield point


class RegistryLayer(Registry[_Part]):
    """A registry with the parts of one configuration in front; other configurations do not see them."""

    def __init__(self, base: Registry[_Part], references: Mapping[str, str], folder: Path) -> None:
        """`references` are name → "file.py:object", with paths relative to the folder."""
        for name in references:
            base.refuse_taken(name)
        # Its objects are what the configuration's files registered by a decorator while they were imported.
        super().__init__(base.kind, {})
        self.base = base
        self._references = dict(references)
        self._folder = folder

    def add(self, name: str, part: _Part) -> None:
        """Register an object for this configuration only."""
        self.base.refuse_taken(name)
        self._objects[name] = part

    def find(self, name: str) -> _Part | None:
        """The part with this name, if there is one."""
        if name not in self._references:
            return self._objects[name] if name in self._objects else self.base.find(name)
        token = _importing.set(self)
        try:
            return cast("_Part", load_python(self._references[name], self._folder)[0])
        finally:
            _importing.reset(token)

    def names(self) -> list[str]:
        """All names: the configuration's, then those of the base."""
        return sorted({*self._references, *self._objects, *self.base.names()})

    def live(self) -> list[str]:
        """Names of parts that were registered as objects, which no other process can load."""
        return [name for name in self.base.live() if name not in self._references]


# The layer whose configuration's file is being imported.
_importing: ContextVar[RegistryLayer[Any] | None] = ContextVar("importing", default=None)


@lru_cache(maxsize=64)
def _entry_points(group: str, path: tuple[str, ...]) -> "tuple[EntryPoint, ...]":
    """Entry points of the packages on the path. Cached, since the lookup takes tens of milliseconds."""
    from importlib.metadata import entry_points  # slow to load, and seldom needed

    return tuple(entry_points(group=group))


def _origin(part: Any) -> tuple[str, str] | None:
    """Module and name of a part: equal for a cell or file that was executed again."""
    name = getattr(part, "__qualname__", None)
    return None if name is None else (part.__module__, name)


def _load(kind: str, point: "EntryPoint") -> Any:
    foreign_code.add(point.value)
    try:
        return point.load()
    except Exception as error:  # whatever a package raises while it is imported is its own fault, to be named
        package = point.dist.name if point.dist is not None else point.value
        raise UsageError(
            f"the {kind} {point.name!r} of the package {package} cannot be loaded: {type(error).__name__}: {error}"
        ) from error


# Scorers of the process, or of a configuration.
ScorerRegistry = Registry[Any]

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
        "replay": "answerkey.targets.resolve:make_replay_target",
        "demo": "answerkey.targets.resolve:make_demo_target",
    },
)
scorers: Registry[Any] = Registry(
    "scorer",
    {
        "abstention": "answerkey.scorers.components:Abstention",
        "checks": "answerkey.scorers.user_scorers:Checks",
        "error_handling": "answerkey.scorers.components:ErrorHandling",
        "groundedness": "answerkey.scorers.evidence:Groundedness",
        "links": "answerkey.scorers.evidence:LinksIntoEvidence",
        "response_quality": "answerkey.scorers.components:ResponseQuality",
        "retrieval": "answerkey.scorers.evidence:RetrievalQuality",
        "source_hygiene": "answerkey.scorers.evidence:SourceHygiene",
        "tool_usage": "answerkey.scorers.components:ToolUsage",
    },
)
engines: Registry["EngineFactory"] = Registry(
    "engine",
    {"local": "answerkey.engine:LocalEngine", "ray": "answerkey.engine:RayEngine"},
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
        "beir": "answerkey.datasets.evals_and_trec:import_beir",
        "bfcl": "answerkey.datasets.table_formats:import_bfcl",
        "deepeval": "answerkey.datasets.table_formats:import_deepeval",
        "hf": "answerkey.datasets.table_formats:import_hf",
        "inspect": "answerkey.datasets.table_formats:import_inspect",
        "langfuse": "answerkey.datasets.table_formats:import_langfuse",
        "langsmith": "answerkey.datasets.table_formats:import_langsmith",
        "list": "answerkey.datasets.table_formats:import_list",
        "openai-evals": "answerkey.datasets.evals_and_trec:import_openai_evals",
        "promptfoo": "answerkey.datasets.promptfoo:import_promptfoo",
        "ragas": "answerkey.datasets.table_formats:import_ragas",
        "tau2": "answerkey.datasets.table_formats:import_tau2",
        "trec": "answerkey.datasets.evals_and_trec:import_trec",
    },
)
exporters: Registry["Exporter"] = Registry(
    "exporter",
    {
        "beir": "answerkey.datasets.evals_and_trec:export_beir",
        "bfcl": "answerkey.datasets.table_formats:export_bfcl",
        "csv": "answerkey.datasets.table_formats:export_csv",
        "deepeval": "answerkey.datasets.table_formats:export_deepeval",
        "hf": "answerkey.datasets.table_formats:export_hf",
        "inspect": "answerkey.datasets.table_formats:export_inspect",
        "jsonl": "answerkey.datasets.table_formats:export_jsonl",
        "langfuse": "answerkey.datasets.table_formats:export_langfuse",
        "langsmith": "answerkey.datasets.table_formats:export_langsmith",
        "openai-evals": "answerkey.datasets.table_formats:export_openai_evals",
        "promptfoo": "answerkey.datasets.promptfoo:export_promptfoo",
        "ragas": "answerkey.datasets.table_formats:export_ragas",
        "tau2": "answerkey.datasets.table_formats:export_tau2",
        "trec": "answerkey.datasets.evals_and_trec:export_trec",
    },
)
reports: Registry["ReportWriter"] = Registry(
    "report",
    {
        ".html": "answerkey.report.documents:write_html",
        ".md": "answerkey.report.documents:write_markdown",
        ".comment.md": "answerkey.report.documents:write_comment",
        ".json": "answerkey.model.run_document:write_json",
        ".jsonl": "answerkey.model.run_document:write_jsonl",
        ".csv": "answerkey.report.result_files:write_csv",
        ".parquet": "answerkey.report.table_files:write_parquet",
        ".xlsx": "answerkey.report.table_files:write_excel",
        ".junit.xml": "answerkey.report.result_files:write_junit",
        ".otlp.json": "answerkey.report.result_files:write_otlp",
        ".langfuse.json": "answerkey.report.result_files:write_langfuse",
        ".mlflow.json": "answerkey.report.result_files:write_mlflow",
    },
    extras={".parquet": ("parquet", "pyarrow"), ".xlsx": ("excel", "xlsxwriter")},
)
