"""A file that is removed, or replaced by another of its name, is missed."""

from __future__ import annotations

import errno
from pathlib import Path
from unittest.mock import patch

import pytest

from streamhouse.runtime.anchor import Anchor


@pytest.fixture(params=["file", "directory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    place = tmp_path / "above" / "place"
    place.parent.mkdir()
    make(place, request.param)
    return place


def make(place: Path, kind: str) -> None:
    place.mkdir() if kind == "directory" else place.touch()


def test_it_is_there_until_it_is_moved_and_again_when_it_is_back(place: Path) -> None:
    anchor = Anchor(place)
    assert anchor.is_there

    moved = place.rename(place.with_name("elsewhere"))
    assert not anchor.is_there
    moved.rename(place)
    assert anchor.is_there


def test_another_of_the_same_name_is_not_it(place: Path) -> None:
    anchor = Anchor(place)
    kind = "directory" if place.is_dir() else "file"
    place.rename(place.with_name("elsewhere"))
    make(place, kind)

    assert not anchor.is_there


def test_what_is_above_it_may_go_too(place: Path) -> None:
    anchor = Anchor(place)
    above = place.parent.rename(place.parent.with_name("elsewhere"))
    assert not anchor.is_there

    above.with_name("above").touch()
    assert not anchor.is_there


@pytest.mark.parametrize(
    ("problem", "is_there"),
    [(errno.EIO, True), (errno.EACCES, True), (errno.ESTALE, False)],
    ids=["a disk that fails", "a directory that is closed to us", "a file server that does not know it any more"],
)
def test_what_cannot_be_looked_at_is_not_gone_for_that(place: Path, problem: int, is_there: bool) -> None:
    anchor = Anchor(place)
    with patch("os.stat", side_effect=OSError(problem, "")):
        assert anchor.is_there is is_there


def test_nothing_cannot_be_missed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Anchor(tmp_path / "nothing")
