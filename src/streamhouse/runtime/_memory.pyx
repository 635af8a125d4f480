"""Memory without the zeros."""

from cpython.bytearray cimport PyByteArray_FromStringAndSize


def unfilled(Py_ssize_t size_bytes):
    if size_bytes < 0:
        raise ValueError("memory cannot have less than no bytes")
    return PyByteArray_FromStringAndSize(NULL, size_bytes)
