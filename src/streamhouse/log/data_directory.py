"""A node's own directory, for its user alone: locked while it runs, so that two processes never share a WAL."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from streamhouse.model.errors import InvalidConfig, StorageUnavailable
from streamhouse.model.names import check_agent_id
from streamhouse.runtime.entropy import new_uuid
from streamhouse.runtime.privacy import FILE_MODE, make_private_directory, make_private_file, warn_if_open_to_others


class DataDirectory:
    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            make_private_directory(path)
            make_private_directory(self.wal)
            warn_if_open_to_others(path)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        except OSError as problem:
            raise StorageUnavailable(
                f"cannot use the data directory {path}: {problem.strerror}", hint="choose another with --data-dir"
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise InvalidConfig(
                f"another process is using the data directory {path}",
                hint="stop it first, or give this one a directory of its own with --data-dir",
            ) from None

    @property
    def wal(self) -> Path:
        return self.path / "wal"

    @property
    def places(self) -> list[Path]:
        """What a running agent stands on."""
        return [self.path, self.path / "lock", self.wal]

    def agent_id(self, wanted: str = "") -> str:
        """The name of the agent whose directory this is: the one wanted, else one made here; kept from then on.

        InvalidConfig if it is another's: that one's WAL would be taken for this one's."""
        file = self.path / "agent-id"
        if file.exists() and (name := file.read_text().strip()):
            if wanted and wanted != name:
                raise InvalidConfig(
                    f"the data directory {self.path} is of agent {name!r}, not of {wanted!r}",
                    hint="give each agent a directory of its own with --data-dir",
                )
            return check_agent_id(name)
        name = check_agent_id(wanted) if wanted else f"agent-{new_uuid().hex[:8]}"
        # Renamed into place, so that it is there whole or not at all.
        draft = self.path / "agent-id.new"
        make_private_file(draft)
        draft.write_text(name + "\n")
        draft.rename(file)
        return name

    def close(self) -> None:
        os.close(self._lock)
