"""A node's directory: one process at a time, and a name that stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamhouse.log.data_directory import DataDirectory
from streamhouse.model.errors import InvalidConfig, StorageUnavailable
from streamhouse.model.names import check_agent_id


def test_a_directory_is_made_with_all_that_leads_to_it(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "a" / "b")

    assert directory.wal.is_dir()
    directory.close()


def test_two_at_a_time_are_refused_and_one_after_the_other_is_not(tmp_path: Path) -> None:
    first = DataDirectory(tmp_path)
    with pytest.raises(InvalidConfig, match="another process"):
        DataDirectory(tmp_path)
    first.close()

    DataDirectory(tmp_path).close()


def test_the_agents_name_is_made_once_and_kept(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    name = directory.agent_id()
    directory.close()

    again = DataDirectory(tmp_path)
    assert again.agent_id() == name == check_agent_id(name)
    again.close()


def test_two_directories_have_two_names(tmp_path: Path) -> None:
    names = set()
    for number in range(2):
        directory = DataDirectory(tmp_path / str(number))
        names.add(directory.agent_id())
        directory.close()

    assert len(names) == 2


def test_a_name_that_a_kill_left_unwritten_is_made_again(tmp_path: Path) -> None:
    """The file was made but nothing was in it yet: the node must not be lost for that."""
    (tmp_path / "agent-id").touch()
    directory = DataDirectory(tmp_path)

    assert check_agent_id(directory.agent_id())
    directory.close()


def test_a_place_that_cannot_be_a_directory_is_a_storage_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StorageUnavailable, match="--data-dir"):
        DataDirectory(tmp_path / "file")


def test_a_directory_keeps_the_name_it_was_given_and_takes_no_other(tmp_path: Path) -> None:
    first = DataDirectory(tmp_path)
    assert first.agent_id("a1") == "a1"
    first.close()

    again = DataDirectory(tmp_path)
    assert again.agent_id() == again.agent_id("a1") == "a1"
    with pytest.raises(InvalidConfig, match="of agent 'a1', not of 'a2'"):
        again.agent_id("a2")
    again.close()
