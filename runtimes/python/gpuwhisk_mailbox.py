"""What a pre-warmer shares with its proxy, as native/prewarmer/mailbox.h and prewarmer.h define it."""

import ctypes
import os

LOAD, CALL, RESET_DEVICE, SERVE = 1, 2, 4, 8
RUNS_FD = 500
DONE, NOT_LOADED, REFUSED, NOT_RESET = 0, 1, 4, 5
MAX_CALLS, ARGUMENTS_BYTES, ENTRY_BYTES, MESSAGE_BYTES = 1000, 8 << 20, 256, 2048


class Mailbox(ctypes.Structure):
    _fields_ = [
        ("calls", ctypes.c_uint64 * 8 * MAX_CALLS),
        ("request", ctypes.c_uint32),
        ("status", ctypes.c_uint32),
        ("running", ctypes.c_uint32),
        ("yields", ctypes.c_uint32),
        ("result", ctypes.c_char_p),
        ("result_length", ctypes.c_uint64),
        ("environment_length", ctypes.c_uint64),
        ("code", ctypes.c_int64),
        ("entry", ctypes.c_char * ENTRY_BYTES),
        ("message", ctypes.c_char * MESSAGE_BYTES),
        ("arguments", ctypes.c_char * ARGUMENTS_BYTES),
    ]


class Channel(ctypes.Structure):
    _fields_ = [
        ("writable_state", ctypes.c_void_p),
        ("state", ctypes.c_void_p),
        ("mailbox", ctypes.POINTER(Mailbox)),
    ]


class Hello(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32),
        ("worker", ctypes.c_int32),
        ("landlock", ctypes.c_int32),
        ("traces_mappings", ctypes.c_int32),
        ("userfault_error", ctypes.c_int32),
        ("cuda", ctypes.c_int32),
        ("checkpoint", ctypes.c_int32),
        ("stands", ctypes.c_int32),
        ("park_return", ctypes.c_uint64),
        ("enter", ctypes.c_uint64),
        ("script", ctypes.c_uint64),
        ("enter_end", ctypes.c_uint64),
        ("script_end", ctypes.c_uint64),
        ("guest", ctypes.c_uint64),
        ("mailbox", ctypes.c_uint64),
        ("read_return", ctypes.c_uint64),
        ("stand_return", ctypes.c_uint64),
        ("writable_state", ctypes.c_uint64),
    ]


# The proxy has the parked thread call one of these. Not a pointer of ctypes that would drop the interpreter's lock.
Guest = ctypes.PYFUNCTYPE(None)


def open_library(path):
    """The resident code. PyDLL keeps the interpreter's lock: nothing else of this process moves while it waits."""
    library = ctypes.PyDLL(path)
    for name in ("gw_fail", "gw_open_channel", "gw_install_filter", "gw_say_hello", "gw_raise_ready", "gw_park", "gw_stand"):
        getattr(library, name).restype = None
    library.gw_park.argtypes = [ctypes.c_void_p]
    return library


def address_of(library, name):
    return ctypes.addressof(ctypes.c_char.in_dll(library, name))


def paths(values):
    return (ctypes.c_char_p * (len(values) + 1))(*[os.fsencode(value) for value in values], None)


def put_texts(mailbox, values):
    data = b"".join(os.fsencode(value) + b"\0" for value in values)
    ctypes.memmove(ctypes.addressof(mailbox) + Mailbox.arguments.offset, data, len(data))
    mailbox.environment_length = len(data)


def environment_and_argument(mailbox):
    """(list of "NAME=value", the argument) of a request, as bytes."""
    start = ctypes.addressof(mailbox) + Mailbox.arguments.offset
    length = mailbox.environment_length
    return ctypes.string_at(start, length).split(b"\0")[:-1], ctypes.string_at(start + length)


def read_code(fd):
    """The whole of the sealed file."""
    try:
        return os.pread(fd, os.lseek(fd, 0, os.SEEK_END), 0)
    finally:
        os.close(fd)
