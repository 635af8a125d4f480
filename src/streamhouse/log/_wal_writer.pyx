"""The WAL's writer thread, compiled: it gathers, writes and syncs without ever taking the GIL.

`wal_writer_twin.py` is the same in Python and says what each call means. The two pass one behaviour suite."""

from libc.errno cimport EINTR, EIO, errno
from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from posix.unistd cimport write

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_t:
        pass
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass
    int pthread_create(pthread_t*, void*, void* (*)(void*) noexcept nogil, void*)
    int pthread_join(pthread_t, void**)
    int pthread_mutex_init(pthread_mutex_t*, void*)
    int pthread_mutex_lock(pthread_mutex_t*)
    int pthread_mutex_unlock(pthread_mutex_t*)
    int pthread_mutex_destroy(pthread_mutex_t*)
    int pthread_cond_init(pthread_cond_t*, void*)
    int pthread_cond_wait(pthread_cond_t*, pthread_mutex_t*)
    int pthread_cond_signal(pthread_cond_t*)
    int pthread_cond_destroy(pthread_cond_t*)

cdef extern from "<sys/uio.h>" nogil:
    struct iovec:
        void* iov_base
        size_t iov_len
    ssize_t pwritev(int, const iovec*, int, int64_t)

cdef extern from "<unistd.h>" nogil:
    int fdatasync(int)
    ssize_t pwrite(int, const void*, size_t, int64_t)

cdef extern from "crc32c.h" nogil:
    uint32_t streamhouse_crc32c(uint32_t crc, const void* data, size_t size)

DEF PREFIX_BYTES = 21
DEF HEADER_BYTES = 16
DEF MARK_BYTES = 24
DEF PROTECTED_BATCH_BYTES = 21
DEF FILE_HEADER_BYTES = 32
DEF COPY_BELOW_BYTES = 16384
DEF MAX_IOVECS = 1000

cdef enum ItemKind:
    BATCH = 1
    SWITCH = 2

cdef struct Item:
    ItemKind kind
    uint8_t prefix[PREFIX_BYTES]
    const uint8_t* batch
    size_t batch_bytes
    int fd
    uint64_t first_position
    bint recovers

cdef struct Queue:
    Item* items
    size_t count
    size_t capacity

cdef struct Completion:
    size_t entries
    int error

cdef struct Shared:
    pthread_mutex_t mutex
    pthread_cond_t wake
    bint waiting
    bint closing
    Queue incoming
    Completion* completions
    size_t completion_count
    size_t completion_capacity
    int notify_fd
    # below: the thread's own
    int fd
    uint64_t file_first_position
    uint64_t position
    int failed_with
    uint8_t* staging
    size_t staging_bytes
    size_t staging_capacity
    iovec* vectors


cdef void put_u32(uint8_t* target, uint32_t value) noexcept nogil:
    target[0] = <uint8_t>(value >> 24)
    target[1] = <uint8_t>(value >> 16)
    target[2] = <uint8_t>(value >> 8)
    target[3] = <uint8_t>value


cdef void put_u64(uint8_t* target, uint64_t value) noexcept nogil:
    put_u32(target, <uint32_t>(value >> 32))
    put_u32(target + 4, <uint32_t>value)


cdef void put_mark(uint8_t* target, uint64_t position) noexcept nogil:
    put_u64(target, position)
    put_u32(target + 8, MARK_BYTES - HEADER_BYTES)
    target[HEADER_BYTES] = 0
    memcpy(target + HEADER_BYTES + 1, b"SHMARK1", 7)
    cdef uint32_t crc = streamhouse_crc32c(0, target, 12)
    put_u32(target + 12, streamhouse_crc32c(crc, target + HEADER_BYTES, MARK_BYTES - HEADER_BYTES))


cdef void put_entry_header(uint8_t* target, uint64_t position, Item* item) noexcept nogil:
    """Header and prefix of a batch entry; the CRC covers what the batch's own does not."""
    put_u64(target, position)
    put_u32(target + 8, <uint32_t>(PREFIX_BYTES + item.batch_bytes))
    memcpy(target + HEADER_BYTES, item.prefix, PREFIX_BYTES)
    cdef uint32_t crc = streamhouse_crc32c(0, target, 12)
    crc = streamhouse_crc32c(crc, item.prefix, PREFIX_BYTES)
    put_u32(target + 12, streamhouse_crc32c(crc, item.batch, PROTECTED_BATCH_BYTES))


cdef int write_all(int fd, iovec* vectors, int count, int64_t at) noexcept nogil:
    cdef ssize_t written
    while count > 0:
        written = pwritev(fd, vectors, count, at)
        if written < 0:
            if errno == EINTR:
                continue
            return errno
        if written == 0:
            return EIO
        at += written
        while count > 0 and <size_t>written >= vectors[0].iov_len:
            written -= vectors[0].iov_len
            vectors += 1
            count -= 1
        if count > 0:
            vectors[0].iov_base = <uint8_t*>vectors[0].iov_base + written
            vectors[0].iov_len -= written
    return 0


cdef int reserve_staging(Shared* shared, size_t more) noexcept nogil:
    """Room for a whole group's small parts at once: vectors point into it, so it must not move while they do."""
    cdef uint8_t* grown
    if more <= shared.staging_capacity:
        return 0
    grown = <uint8_t*>realloc(shared.staging, more)
    if grown == NULL:
        return 12  # ENOMEM
    shared.staging = grown
    shared.staging_capacity = more
    return 0


cdef int write_group(Shared* shared, Item* items, size_t count) noexcept nogil:
    """A mark and then the entries, one sync. On success the position is behind them."""
    cdef uint64_t position = shared.position
    cdef int64_t at = <int64_t>(shared.position - shared.file_first_position)
    cdef size_t index, needed = MARK_BYTES
    cdef int vector_count = 0, error
    cdef uint8_t* target
    cdef uint8_t* run_start
    cdef Item* item
    for index in range(count):
        needed += HEADER_BYTES + PREFIX_BYTES
        if items[index].batch_bytes < COPY_BELOW_BYTES:
            needed += items[index].batch_bytes
    error = reserve_staging(shared, needed)
    if error:
        return error
    target = shared.staging
    run_start = target
    put_mark(target, position)
    target += MARK_BYTES
    position += MARK_BYTES
    for index in range(count):
        item = &items[index]
        put_entry_header(target, position, item)
        target += HEADER_BYTES + PREFIX_BYTES
        position += HEADER_BYTES + PREFIX_BYTES + item.batch_bytes
        if item.batch_bytes < COPY_BELOW_BYTES:
            memcpy(target, item.batch, item.batch_bytes)
            target += item.batch_bytes
            continue
        shared.vectors[vector_count].iov_base = run_start
        shared.vectors[vector_count].iov_len = target - run_start
        shared.vectors[vector_count + 1].iov_base = <void*>item.batch
        shared.vectors[vector_count + 1].iov_len = item.batch_bytes
        vector_count += 2
        run_start = target
        if vector_count + 2 > MAX_IOVECS:
            error = write_all(shared.fd, shared.vectors, vector_count, at)
            if error:
                return error
            at = <int64_t>(position - shared.file_first_position)
            vector_count = 0
    if target > run_start:
        shared.vectors[vector_count].iov_base = run_start
        shared.vectors[vector_count].iov_len = target - run_start
        vector_count += 1
    error = write_all(shared.fd, shared.vectors, vector_count, at)
    if error:
        return error
    if fdatasync(shared.fd) != 0:
        return errno
    shared.position = position
    return 0


cdef void mark_synced(Shared* shared) noexcept nogil:
    """Say on disk that all before here is synced. Not synced itself: if it is lost, nothing is. The next group
    overwrites it."""
    cdef uint8_t mark[MARK_BYTES]
    put_mark(mark, shared.position)
    pwrite(shared.fd, mark, MARK_BYTES, <int64_t>(shared.position - shared.file_first_position))


cdef int switch_file(Shared* shared, Item* item) noexcept nogil:
    cdef uint8_t header[FILE_HEADER_BYTES]
    cdef iovec vector
    cdef int error
    shared.fd = item.fd
    if item.first_position > shared.position:
        shared.position = item.first_position
    shared.file_first_position = shared.position
    memset(header, 0, FILE_HEADER_BYTES)
    memcpy(header, b"SHWAL\0\0\1", 8)
    put_u64(header + 8, shared.file_first_position)
    put_u32(header + FILE_HEADER_BYTES - 4, streamhouse_crc32c(0, header, FILE_HEADER_BYTES - 4))
    vector.iov_base = header
    vector.iov_len = FILE_HEADER_BYTES
    error = write_all(shared.fd, &vector, 1, 0)
    if error == 0:
        shared.position += FILE_HEADER_BYTES
    return error


cdef void complete(Shared* shared, size_t entries, int error) noexcept nogil:
    cdef uint64_t one = 1
    cdef size_t capacity
    pthread_mutex_lock(&shared.mutex)
    if shared.completion_count == shared.completion_capacity:
        capacity = shared.completion_capacity * 2
        shared.completions = <Completion*>realloc(shared.completions, capacity * sizeof(Completion))
        shared.completion_capacity = capacity
    shared.completions[shared.completion_count].entries = entries
    shared.completions[shared.completion_count].error = error
    shared.completion_count += 1
    pthread_mutex_unlock(&shared.mutex)
    write(shared.notify_fd, &one, 8)


cdef void process(Shared* shared, Item* items, size_t count) noexcept nogil:
    """Cut what was gathered at file switches; each piece is one group."""
    cdef size_t start = 0, end
    while start < count:
        if items[start].kind == SWITCH:
            if shared.failed_with == 0 or items[start].recovers:
                shared.failed_with = switch_file(shared, &items[start])
            complete(shared, 1, shared.failed_with)
            start += 1
            continue
        end = start
        while end < count and items[end].kind == BATCH:
            end += 1
        if shared.failed_with == 0:
            shared.failed_with = write_group(shared, items + start, end - start)
        complete(shared, end - start, shared.failed_with)
        start = end


cdef void* run(void* argument) noexcept nogil:
    cdef Shared* shared = <Shared*>argument
    cdef Queue gathered
    gathered.items = NULL
    gathered.count = 0
    gathered.capacity = 0
    pthread_mutex_lock(&shared.mutex)
    while True:
        if shared.incoming.count == 0 and gathered.count and shared.failed_with == 0:
            pthread_mutex_unlock(&shared.mutex)
            mark_synced(shared)
            gathered.count = 0
            pthread_mutex_lock(&shared.mutex)
        while shared.incoming.count == 0 and not shared.closing:
            shared.waiting = True
            pthread_cond_wait(&shared.wake, &shared.mutex)
            shared.waiting = False
        if shared.incoming.count == 0:
            break
        gathered, shared.incoming = shared.incoming, gathered
        shared.incoming.count = 0
        pthread_mutex_unlock(&shared.mutex)
        process(shared, gathered.items, gathered.count)
        pthread_mutex_lock(&shared.mutex)
    pthread_mutex_unlock(&shared.mutex)
    free(gathered.items)
    return NULL


cdef class WalWriter:
    cdef Shared* _shared
    cdef pthread_t _thread
    cdef Queue _pending
    cdef bint _joined

    def __cinit__(self, int notify_fd):
        cdef Shared* shared = <Shared*>malloc(sizeof(Shared))
        if shared == NULL:
            raise MemoryError
        pthread_mutex_init(&shared.mutex, NULL)
        pthread_cond_init(&shared.wake, NULL)
        shared.waiting = False
        shared.closing = False
        shared.incoming.items = NULL
        shared.incoming.count = 0
        shared.incoming.capacity = 0
        shared.completion_capacity = 64
        shared.completions = <Completion*>malloc(64 * sizeof(Completion))
        shared.completion_count = 0
        shared.notify_fd = notify_fd
        shared.fd = -1
        shared.file_first_position = 0
        shared.position = 0
        shared.failed_with = EIO
        shared.staging = NULL
        shared.staging_capacity = 0
        shared.vectors = <iovec*>malloc((MAX_IOVECS + 2) * sizeof(iovec))
        self._shared = shared
        self._pending.items = NULL
        self._pending.count = 0
        self._pending.capacity = 0
        self._joined = False
        if pthread_create(&self._thread, NULL, run, shared) != 0:
            self._joined = True
            raise OSError("cannot start the WAL's writer thread")

    def __dealloc__(self):
        if self._shared == NULL:
            return
        self._join()
        pthread_cond_destroy(&self._shared.wake)
        pthread_mutex_destroy(&self._shared.mutex)
        free(self._shared.incoming.items)
        free(self._shared.completions)
        free(self._shared.staging)
        free(self._shared.vectors)
        free(self._shared)
        free(self._pending.items)

    cdef Item* _add(self) except NULL:
        cdef size_t capacity
        cdef Item* grown
        if self._pending.count == self._pending.capacity:
            capacity = max(64, self._pending.capacity * 2)
            grown = <Item*>realloc(self._pending.items, capacity * sizeof(Item))
            if grown == NULL:
                raise MemoryError
            self._pending.items = grown
            self._pending.capacity = capacity
        self._pending.count += 1
        return &self._pending.items[self._pending.count - 1]

    def add(self, bytes prefix, batch):
        cdef Py_buffer view
        cdef Item* item
        if len(prefix) != PREFIX_BYTES:
            raise ValueError("a prefix has 21 bytes")
        PyObject_GetBuffer(batch, &view, PyBUF_SIMPLE)
        try:
            if view.len < PROTECTED_BATCH_BYTES:
                raise ValueError("a batch has a header")
            item = self._add()
            item.kind = BATCH
            memcpy(item.prefix, <const uint8_t*>prefix, PREFIX_BYTES)
            item.batch = <const uint8_t*>view.buf
            item.batch_bytes = view.len
        finally:
            # The caller keeps `batch` until its completion, so the memory stays where it is.
            PyBuffer_Release(&view)

    def switch(self, int fd, uint64_t first_position, bint recovers=True):
        cdef Item* item = self._add()
        item.kind = SWITCH
        item.fd = fd
        item.first_position = first_position
        item.recovers = recovers

    def kick(self):
        cdef Shared* shared = self._shared
        cdef Item* grown
        cdef size_t capacity
        if self._pending.count == 0:
            return
        pthread_mutex_lock(&shared.mutex)
        try:
            if shared.incoming.count == 0:
                shared.incoming, self._pending = self._pending, shared.incoming
            else:
                if shared.incoming.count + self._pending.count > shared.incoming.capacity:
                    capacity = 2 * (shared.incoming.count + self._pending.count)
                    grown = <Item*>realloc(shared.incoming.items, capacity * sizeof(Item))
                    if grown == NULL:
                        raise MemoryError
                    shared.incoming.items = grown
                    shared.incoming.capacity = capacity
                memcpy(
                    &shared.incoming.items[shared.incoming.count],
                    self._pending.items,
                    self._pending.count * sizeof(Item),
                )
                shared.incoming.count += self._pending.count
            self._pending.count = 0
            if shared.waiting:
                pthread_cond_signal(&shared.wake)
        finally:
            pthread_mutex_unlock(&shared.mutex)

    def completed(self):
        cdef Shared* shared = self._shared
        cdef size_t index
        pthread_mutex_lock(&shared.mutex)
        done = [(shared.completions[index].entries, shared.completions[index].error)
                for index in range(shared.completion_count)]
        shared.completion_count = 0
        pthread_mutex_unlock(&shared.mutex)
        return done

    cdef _join(self):
        if self._joined:
            return
        self._joined = True
        pthread_mutex_lock(&self._shared.mutex)
        self._shared.closing = True
        pthread_cond_signal(&self._shared.wake)
        pthread_mutex_unlock(&self._shared.mutex)
        with nogil:
            pthread_join(self._thread, NULL)

    def close(self):
        self.kick()
        self._join()
