"""A flag for every setting of a node, made from the settings themselves so that none can be forgotten."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

import click

from streamhouse.cli.completing import complete_directories, complete_files
from streamhouse.cli.settings import (
    FILE_SUFFIX,
    FROM_FILES,
    EffectiveSettings,
    flag_name,
    load_settings,
    read_settings_file,
    show_setting,
    variable_name,
)
from streamhouse.cli.usage import refusing_as_usage
from streamhouse.model.names import check_agent_id
from streamhouse.model.settings import Kind, Settings

_METAVARS = {
    Kind.TEXT: "TEXT",
    Kind.SECRET: "SECRET",
    Kind.INTEGER: "NUMBER",
    Kind.DURATION: "DURATION",
    Kind.SIZE: "SIZE",
}


def settings_options(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a click function with --config and one option for each setting, or for each one named."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for item in reversed(fields(Settings)):
            if not names or item.name in names:
                command = _option(item)(command)
        return click.option(
            "--config",
            "config_file",
            envvar="STREAMHOUSE_CONFIG",
            metavar="FILE",
            shell_complete=complete_files,
            help='TOML file with a line for each setting, such as segment_bytes = "8MiB".  [STREAMHOUSE_CONFIG]',
        )(command)

    return decorate


def effective_settings(config_file: str | None, given: Mapping[str, str | bool | None]) -> EffectiveSettings:
    """What is wrong with them is wrong usage, wherever they come from: nothing was begun."""
    flags = {name: value for name, value in given.items() if value is not None}
    with refusing_as_usage():
        file = read_settings_file(config_file) if config_file else None
        effective = load_settings(flags=flags, environ=os.environ, file=file)
        _check_places(effective.settings, given)
        _check_names(effective, given)
    return effective


def _check_places(settings: Settings, options: Mapping[str, str | bool | None]) -> None:
    """URLs that a command takes, and that are set: they name something that could be there."""
    if settings.objects and "objects" in options:
        from streamhouse.app.options import s3_options
        from streamhouse.objects.open import check_store_url

        check_store_url(settings.objects, s3_options(settings))
    if settings.metadata and "metadata" in options:
        from streamhouse.metadata.open import check_metadata_url

        check_metadata_url(settings.metadata)


def _check_names(effective: EffectiveSettings, options: Mapping[str, str | bool | None]) -> None:
    """Names of a node that a command takes, and that are set: what a node would refuse after it has made its files."""
    from streamhouse.client.address import parse_advertised

    checks: dict[str, Callable[[str], object]] = {
        "agent_id": check_agent_id,
        "advertise": parse_advertised,
        "advertise_http": parse_advertised,
    }
    for setting, check in checks.items():
        name = getattr(effective.settings, setting)
        if name and setting in options:
            with refusing_as_usage(effective.sources[setting]):
                check(name)


def _option(item: Field[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    kind: Kind = item.metadata["kind"]
    flag = flag_name(item.name)
    assert item.default is not MISSING
    shown = show_setting(item.name, item.default)
    help_text = f"{item.metadata['help']}  [{variable_name(item.name)}{f'; {shown}' if shown else ''}]"
    if kind is Kind.FLAG:
        return click.option(f"{flag}/--no-{flag[2:]}", item.name, default=None, help=help_text)
    paths = complete_directories if item.name == "data_dir" else None
    option = click.option(flag, item.name, default=None, metavar=_METAVARS[kind], shell_complete=paths, help=help_text)
    return option if item.name not in FROM_FILES else lambda command: option(_file_option(item.name)(command))


def _file_option(setting: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    name = setting + FILE_SUFFIX
    help_text = f"file with the value of {flag_name(setting)}, which others may not read  [{variable_name(name)}]"
    return click.option(
        flag_name(name), name, default=None, metavar="FILE", shell_complete=complete_files, help=help_text
    )
