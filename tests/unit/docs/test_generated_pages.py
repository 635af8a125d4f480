"""Pages that are written from the code say what the code says."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from streamhouse.cli.settings import SettingsFile, flag_name, load_settings, variable_name
from streamhouse.model.settings import Settings
from streamhouse.model.topic import CONFIG_KEYS
from streamhouse.server.kafka.handlers import fetch
from streamhouse.wire.kafka.registry import APIS

REPOSITORY = Path(__file__).parents[3]
sys.path.insert(0, str(REPOSITORY / "tools"))

import write_configuration  # noqa: E402
import write_kafka_compatibility  # noqa: E402


@pytest.mark.parametrize("tool", ["write_configuration.py", "write_kafka_compatibility.py"])
def test_a_generated_page_is_up_to_date(tool: str) -> None:
    command = [sys.executable, str(REPOSITORY / "tools" / tool), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_every_setting_is_on_the_page_with_its_flag_and_variable() -> None:
    page = write_configuration.PAGE.read_text("utf-8")
    for item in fields(Settings):
        (row,) = (line for line in page.splitlines() if line.startswith(f"| `{item.name}` |"))
        assert f"`{flag_name(item.name)}`" in row
        assert f"`{variable_name(item.name)}`" in row
        assert item.metadata["help"] in row
    for name in CONFIG_KEYS:
        assert f"| `{name}` |" in page


def test_a_changed_table_is_noticed() -> None:
    page = write_configuration.PAGE.read_text("utf-8")
    drifted = page.replace("| `1MiB` |", "| `2MiB` |", 1)
    assert drifted != page
    assert write_configuration.render(drifted) == page


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks the markers"):
        write_configuration.render("# Configuration\n")


def test_the_example_of_a_settings_file_is_accepted() -> None:
    page = write_configuration.PAGE.read_text("utf-8")
    (example,) = (block.partition("```")[0] for block in page.split("```toml\n")[1:])
    file = SettingsFile(name="streamhouse.toml", values=tomllib.loads(example))
    settings = load_settings(flags={}, environ={}, file=file).settings
    assert settings.segment_bytes == 8 * 2**20
    assert settings.retention_ms == 3 * 86_400_000
    assert not settings.auto_create_topics


def test_every_api_that_is_served_and_every_one_that_is_not_is_on_the_page() -> None:
    page = write_kafka_compatibility.PAGE.read_text("utf-8")
    served = {item.api.name for item in write_kafka_compatibility.served_apis()}
    not_served = " ".join(page.partition("## Not served yet")[2].split())
    for api in APIS.values():
        assert (f"| {api.key} | {api.name} |" in page) == (api.name in served)
        assert (f"{api.name} ({api.key})" in not_served) == (api.name not in served)


@pytest.mark.parametrize(
    ("docstring", "complaint"),
    [
        ("Fetch (1), versions 4 to 17: reads.", "not 4 to 17"),
        ("Fetch (2), versions 4 to 18: reads.", "calls itself"),
        ("Fetching, versions 4 to 18: reads.", "does not open"),
    ],
)
def test_a_handler_whose_docstring_disagrees_with_the_registry_is_refused(docstring: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        write_kafka_compatibility.describe(fetch.API, docstring)


def test_a_docstring_is_a_summary_and_details() -> None:
    described = write_kafka_compatibility.describe(
        fetch.API, "Fetch (1), versions 4 to 18: reads\nall.\n\nGaps:\nnone."
    )
    assert (described.summary, described.details) == ("reads all.", "Gaps: none.")
