"""A node's settings from everywhere they may be given: flag over variable over file over AWS variable over default."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from streamhouse.model.errors import InvalidConfig, NotFound
from streamhouse.model.setting_values import did_you_mean, parse_setting, parse_text
from streamhouse.model.settings import Kind, Settings, setting_kinds
from streamhouse.model.units import show_duration, show_size

VARIABLE_PREFIX = "STREAMHOUSE_"
DEFAULT_SOURCE = "default"
MASK = "********"

# The variables that every AWS tool reads, in the order in which they count.
AWS_VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "s3_endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
        "s3_region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
        "s3_access_key_id": ("AWS_ACCESS_KEY_ID",),
        "s3_secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
        "s3_session_token": ("AWS_SESSION_TOKEN",),
    }
)

FILE_SUFFIX = "_file"
FROM_FILES = ("metadata", "s3_access_key_id", "s3_secret_access_key", "s3_session_token")
"""Settings that are or may hold secrets: what has the suffix behind its name tells the file that the value is in."""
_MOST_FILE_BYTES = 64 * 1024

# Greedy on purpose: a password with an unescaped '@' or '/' must not leave its tail unmasked.
_URL_PASSWORD = re.compile(r"(?<=://)([^/@:]*):.*@|([?&][a-z]*password)=[^&]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """A parsed TOML file and the name by which messages call it."""

    name: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSettings:
    """The settings a node would run with, and for each of them who said so."""

    settings: Settings
    sources: Mapping[str, str]

    @property
    def given(self) -> frozenset[str]:
        """Those that a flag or a variable of our own has set."""
        return frozenset(
            name for name, source in self.sources.items() if source in (flag_name(name), variable_name(name))
        )


def flag_name(setting: str) -> str:
    return "--" + setting.replace("_", "-")


def variable_name(setting: str) -> str:
    return VARIABLE_PREFIX + setting.upper()


def read_settings_file(path: str) -> SettingsFile:
    try:
        with open(path, "rb") as file:
            return SettingsFile(name=path, values=tomllib.load(file))
    except FileNotFoundError:
        raise NotFound(f"there is no settings file {path!r}", hint="check --config and STREAMHOUSE_CONFIG") from None
    except OSError as problem:
        raise InvalidConfig(f"cannot read the settings file {path!r}: {problem.strerror}") from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InvalidConfig(f"{path!r} is not TOML: {problem}") from problem


def load_settings(
    *, flags: Mapping[str, str | bool], environ: Mapping[str, str], file: SettingsFile | None = None
) -> EffectiveSettings:
    """Decides every setting; an empty variable counts as not set, as compose files write it."""
    if file is not None:
        _refuse_unknown_keys(file)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, kind in setting_kinds().items():
        given = _given(name, flags, environ, file)
        if given is not None:
            raw, sources[name] = given
            values[name] = parse_setting(raw, kind, sources[name])
    _take_aws_variables(values, sources, environ)
    for item in fields(Settings):
        sources.setdefault(item.name, DEFAULT_SOURCE)
    return EffectiveSettings(settings=Settings(**values), sources=sources)


def show_setting(name: str, value: object) -> str:
    """A value as people write it, with what must not be read over a shoulder masked."""
    match setting_kinds()[name]:
        case Kind.SECRET:
            return MASK if value else ""
        case Kind.DURATION if isinstance(value, int):
            return show_duration(value)
        case Kind.SIZE if isinstance(value, int):
            return show_size(value)
        case Kind.FLAG:
            return "true" if value else "false"
        case _:
            return _URL_PASSWORD.sub(_mask_password, str(value))


def _mask_password(match: re.Match[str]) -> str:
    return f"{match[2]}={MASK}" if match[2] else f"{match[1]}:{MASK}@"


def _given(
    name: str, flags: Mapping[str, str | bool], environ: Mapping[str, str], file: SettingsFile | None
) -> tuple[object, str] | None:
    keys = (name, name + FILE_SUFFIX) if name in FROM_FILES else (name,)
    levels: list[tuple[Mapping[str, object], Callable[[str], str]]] = [
        (flags, flag_name),
        ({key: environ[variable_name(key)] for key in keys if environ.get(variable_name(key))}, variable_name),
    ]
    if file is not None:
        levels.append((file.values, lambda key: f"{file.name}: {key}"))
    for values, source_of in levels:
        there = [key for key in keys if key in values]
        if len(there) > 1:
            raise InvalidConfig(f"both {source_of(there[0])} and {source_of(there[1])} are given", hint="give one")
        for key in there:
            return (values[key] if key == name else _content_of(values[key], source_of(key))), source_of(key)
    return None


def _content_of(path: object, source: str) -> str:
    """Of a file with a secret in it, as Docker and Kubernetes hand them out: without the end of its line."""
    try:
        with open(parse_text(path), encoding="utf-8") as file:
            content = file.read(_MOST_FILE_BYTES).strip()
    except (OSError, UnicodeDecodeError) as problem:
        said = problem.strerror if isinstance(problem, OSError) else "it is not text"
        raise InvalidConfig(f"{source}: cannot read {str(path)!r}: {said}") from None
    if not content:
        raise InvalidConfig(f"{source}: {str(path)!r} is empty")
    return content


def _take_aws_variables(values: dict[str, Any], sources: dict[str, str], environ: Mapping[str, str]) -> None:
    for name, variables in AWS_VARIABLES.items():
        if name in sources:
            continue
        # A session token belongs to the key pair that it was issued with, never to somebody else's.
        if name == "s3_session_token" and sources.get("s3_access_key_id") != "AWS_ACCESS_KEY_ID":
            continue
        variable = next((candidate for candidate in variables if environ.get(candidate)), None)
        if variable is not None:
            values[name], sources[name] = environ[variable], variable


def _refuse_unknown_keys(file: SettingsFile) -> None:
    known = [*setting_kinds(), *(name + FILE_SUFFIX for name in FROM_FILES)]
    for key in file.values:
        if key not in known:
            hint = did_you_mean(key.replace("-", "_"), known, "`streamhouse config` lists the settings")
            raise InvalidConfig(f"{file.name}: unknown setting {key!r}", hint=hint)
