"""`streamhouse config`: the settings that `serve` would run with, and where each came from."""

from __future__ import annotations

import dataclasses

import click

from streamhouse.cli.console import print_json, print_line, print_table
from streamhouse.cli.options import json_option
from streamhouse.cli.settings import DEFAULT_SOURCE, EffectiveSettings, show_setting
from streamhouse.cli.settings_options import effective_settings, settings_options
from streamhouse.model.settings import Kind, setting_kinds


@click.command(short_help="Show the effective settings and where each came from.")
@click.option("--changed", is_flag=True, help="Only what differs from the defaults.")
@json_option
@settings_options()
def config(config_file: str | None, changed: bool, as_json: bool, **given: str | bool | None) -> None:
    """Show the settings that `streamhouse serve` would run with; it takes the same flags.

    \b
    Examples:
      streamhouse config
      STREAMHOUSE_SEGMENT_AGE=30s streamhouse config --config streamhouse.toml --changed
      streamhouse config --json
    """
    effective = effective_settings(config_file, given)
    names = [name for name, source in effective.sources.items() if not changed or source != DEFAULT_SOURCE]
    names.sort(key=list(setting_kinds()).index)
    if as_json:
        print_json({name: _as_json(effective, name) for name in names})
    elif not names:
        print_line("every setting has its default")
    else:
        shown = {name: show_setting(name, getattr(effective.settings, name)) for name in names}
        print_table(("setting", "value", "source"), [(name, shown[name], effective.sources[name]) for name in names])


def _as_json(effective: EffectiveSettings, name: str) -> dict[str, object]:
    value = dataclasses.asdict(effective.settings)[name]
    if setting_kinds()[name] in (Kind.SECRET, Kind.TEXT):
        value = show_setting(name, value)
    return {"value": value, "source": effective.sources[name]}
