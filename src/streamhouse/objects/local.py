"""Objects as files of a directory, durable by itself: synced before they get their name, names synced before we answer.

A new object is written to a hidden upload file, synced, and then linked to its name: so it appears whole or not at
all, and a name that is taken is never written over. What a crash leaves behind is an upload file without a writer."""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import AlreadyExists, CorruptData, InvalidInput, NotFound, StorageUnavailable
from streamhouse.objects.checks import check_key, check_prefix, check_range, check_suffix
from streamhouse.objects.store import ObjectInfo
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.entropy import new_uuid
from streamhouse.runtime.privacy import DIRECTORY_MODE, FILE_MODE, warn_if_open_to_others

T = TypeVar("T")

# Hidden, and so never the first part of a key.
_UPLOADS = ".uploads"
_LIST_BATCH = 1000
# Separate threads, so that a read never waits behind somebody's fsync.
_WRITER_THREADS = 4
_READER_THREADS = 4


class LocalStore:
    """The file system's blocking calls run on the store's own threads."""

    def __init__(self, directory: Path | str, clock: Clock) -> None:
        self._root = Path(os.path.abspath(directory))
        self._uploads = self._root / _UPLOADS
        self._clock = clock
        # Directories whose own entry in their parent is known to be on disk. What was there before us is taken to be.
        self._durable_directories = {next(path for path in self._uploads.parents if path.is_dir())}
        with _storage_errors(f"cannot use the object directory {self._root}"):
            self._make_durable_directory(self._uploads)
            warn_if_open_to_others(self._root)
            self._remove_leftovers()
        self._writers = ThreadPoolExecutor(_WRITER_THREADS, thread_name_prefix="objects-write")
        self._readers = ThreadPoolExecutor(_READER_THREADS, thread_name_prefix="objects-read")

    async def create(self, key: str, parts: Sequence[Buffer]) -> None:
        path = self._path(key)
        await self._run(self._writers, partial(self._create, key, path, parts))

    async def get(self, key: str) -> bytes:
        return await self._read(key, lambda file, size: _pread_all(file, 0, size))

    async def get_range(self, key: str, start: int, end: int) -> bytes:
        check_range(start, end)

        def read(file: int, size: int) -> bytes:
            content = _pread_all(file, start, end) if end <= size else b""
            if len(content) != end - start or end > size:
                raise CorruptData(f"object {key!r} has {size} bytes, not the range [{start}, {end})")
            return content

        return await self._read(key, read)

    async def get_suffix(self, key: str, size_bytes: int) -> tuple[bytes, int]:
        check_suffix(size_bytes)
        return await self._read(key, lambda file, size: (_pread_all(file, max(size - size_bytes, 0), size), size))

    async def head(self, key: str) -> ObjectInfo:
        def read(file: int, size: int) -> ObjectInfo:
            return ObjectInfo(key=key, size_bytes=size, modified_at_ms=os.fstat(file).st_mtime_ns // 1_000_000)

        return await self._read(key, read)

    async def list(self, prefix: str) -> AsyncIterator[ObjectInfo]:
        start = check_prefix(prefix)
        found = self._walk(self._root / start, start)
        while batch := await self._run(self._readers, lambda: tuple(islice(found, _LIST_BATCH))):
            for info in batch:
                yield info

    async def delete(self, keys: Sequence[str]) -> None:
        paths = [self._path(key) for key in keys]
        await self._run(self._writers, partial(self._delete, paths))

    async def close(self) -> None:
        for pool in (self._writers, self._readers):
            await asyncio.to_thread(pool.shutdown)

    def _path(self, key: str) -> Path:
        return self._root / check_key(key)

    @staticmethod
    async def _run(pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, work)

    async def _read(self, key: str, read: Callable[[int, int], T]) -> T:
        path = self._path(key)

        def work() -> T:
            with _storage_errors(f"cannot read object {key!r}"):
                try:
                    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                except (FileNotFoundError, NotADirectoryError):
                    raise NotFound(f"no object {key!r}") from None
                try:
                    facts = os.fstat(file)
                    if not stat.S_ISREG(facts.st_mode):
                        raise NotFound(f"no object {key!r}")
                    return read(file, facts.st_size)
                finally:
                    os.close(file)

        return await self._run(self._readers, work)

    def _create(self, key: str, path: Path, parts: Sequence[Buffer]) -> None:
        upload = self._uploads / new_uuid().hex
        with _storage_errors(f"cannot store object {key!r}"):
            file = os.open(upload, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
            try:
                # The lock tells another process that opens this directory that the upload has a writer.
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for part in parts:
                    _write_all(file, part)
                now_ns = self._clock.now_ms() * 1_000_000
                os.utime(file, ns=(now_ns, now_ns))
                os.fdatasync(file)
                while not self._give_name_in_directory(upload, path, key):
                    self._forget_directories(path.parent)
            finally:
                os.close(file)
                with suppress(FileNotFoundError):
                    os.unlink(upload)

    def _give_name_in_directory(self, upload: Path, path: Path, key: str) -> bool:
        """False if somebody has removed a directory that was empty until now."""
        try:
            self._make_durable_directory(path.parent)
            self._give_name(upload, path, key)
        except FileNotFoundError:
            if not upload.exists() or not self._root.exists():
                raise
            return False
        except (FileExistsError, NotADirectoryError):
            # Either an object is in the way, or a directory that came and went while it was looked at.
            if any(directory.is_file() for directory in path.parents):
                raise InvalidInput(f"a part of the key {key!r} is itself an object") from None
            return False
        return True

    @staticmethod
    def _give_name(upload: Path, path: Path, key: str) -> None:
        try:
            os.link(upload, path)
        except FileExistsError:
            # Perhaps our own earlier try, which died before this sync: the caller will rely on what it finds.
            _sync_directory(path.parent)
            raise AlreadyExists(f"object {key!r} exists") from None
        try:
            _sync_directory(path.parent)
        except OSError:
            # Whether the name is on disk is unknown and a second sync would not tell: the next try makes it anew.
            with suppress(OSError):
                os.unlink(path)
            raise

    def _make_durable_directory(self, directory: Path) -> None:
        """Also where another process or thread made it a moment ago and has perhaps not synced its entry yet."""
        if directory in self._durable_directories:
            return
        self._make_durable_directory(directory.parent)
        directory.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        _sync_directory(directory.parent)
        self._durable_directories.add(directory)

    def _forget_directories(self, directory: Path) -> None:
        while directory != self._root:
            self._durable_directories.discard(directory)
            directory = directory.parent

    def _delete(self, paths: Sequence[Path]) -> None:
        with _storage_errors("cannot delete objects"):
            for path in paths:
                with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                    os.unlink(path)
            for directory in {path.parent for path in paths}:
                with suppress(FileNotFoundError, NotADirectoryError):
                    _sync_directory(directory)
                self._remove_empty(directory)

    def _remove_empty(self, directory: Path) -> None:
        """Keys come and go, and would leave more and more directories behind."""
        while directory != self._root:
            try:
                directory.rmdir()
            except OSError:  # mostly because there is something in it
                return
            self._durable_directories.discard(directory)
            directory = directory.parent

    def _walk(self, directory: Path, prefix: str) -> Iterator[ObjectInfo]:
        with _storage_errors(f"cannot list {prefix!r}"):
            try:
                entries = [*os.scandir(directory)]
            except (FileNotFoundError, NotADirectoryError):
                return
        # A directory sorts with its slash, as the keys below it do.
        for entry in sorted(entries, key=lambda entry: entry.name + "/" * entry.is_dir()):
            key = prefix + entry.name
            if entry.is_dir():
                if key != _UPLOADS:
                    yield from self._walk(directory / entry.name, f"{key}/")
            else:
                with suppress(FileNotFoundError):  # deleted since
                    facts = entry.stat()
                    modified_at_ms = facts.st_mtime_ns // 1_000_000
                    yield ObjectInfo(key=key, size_bytes=facts.st_size, modified_at_ms=modified_at_ms)

    def _remove_leftovers(self) -> None:
        for entry in os.scandir(self._uploads):
            with suppress(FileNotFoundError):
                file = os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(entry.path)
                except BlockingIOError:
                    pass  # another process is writing it
                finally:
                    os.close(file)


@contextmanager
def _storage_errors(problem: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageUnavailable(
            f"{problem}: {error.strerror or error}", hint="check the disk's space, health and permissions"
        ) from error


def _write_all(file: int, part: Buffer) -> None:
    rest = memoryview(part).cast("B")
    while rest:
        rest = rest[os.write(file, rest) :]


def _pread_all(file: int, start: int, end: int) -> bytes:
    """Fewer only at the end of the file. The kernel may answer a large read in parts."""
    content = os.pread(file, end - start, start)
    if len(content) == end - start or not content:
        return content
    return content + _pread_all(file, start + len(content), end)


def _sync_directory(directory: Path) -> None:
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
