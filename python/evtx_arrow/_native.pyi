"""The native part. Internal to the package."""

from collections.abc import Sequence
from typing import Any

__version__: str

class EvtxError(ValueError):
    """A file is not an EVTX log, or is damaged and ``on_error`` is ``"fail"``. The text names the file."""

_Piece = (
    tuple[str, bool, int, tuple[int, int] | None] | tuple[str, list[tuple[str, bool]]] | tuple[str, str]
)
_Condition = tuple[str, str | None, str, list[Any]]
_Field = tuple[str, str, str | None, str, bool]

class NativeScan:
    """A scan with its files, columns and conditions."""

    @property
    def columns(self) -> list[str]: ...
    @property
    def paths(self) -> list[str]: ...
    @property
    def types(self) -> str: ...
    @property
    def fields(self) -> list[_Field]: ...
    def narrow(self, columns: Sequence[str] | None, conditions: Sequence[_Condition]) -> NativeScan: ...
    def schema_capsule(self) -> object: ...
    def stream_capsule(self) -> object: ...
    def partitions(self, target: int) -> list[list[_Piece]]: ...

class NativeMatches:
    """The matches of events."""

    def schema_capsule(self) -> object: ...
    def stream_capsule(self) -> object: ...

class NativeRules:
    """The rules of a call."""

    @property
    def correlates(self) -> bool: ...
    def matches(self, events: object, types: str) -> NativeMatches: ...

def scan_arguments() -> list[tuple[str, str, str | None, str]]: ...
def load_rules(values: dict[str, Any]) -> NativeRules: ...
def open(
    files: Sequence[str],
    tasks: Sequence[_Piece],
    values: dict[str, Any],
    columns: Sequence[str] | None,
    conditions: Sequence[_Condition],
    types: str,
    threads: int,
    filesystem: object | None,
    fields: Sequence[_Field] | None,
) -> NativeScan: ...
def look_up(lookup: str, table: str, code: str) -> list[str] | None: ...
