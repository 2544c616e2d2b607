"""Byte-compiles a folder of packages for the platform, never for a function. No code of the packages is run.

python -I -S compile_packages.py FOLDER MARK [COMMAND...]

COMMAND, if any, fills the folder before. Compiled files are never compared with their sources again, which are read-only to
functions. The last line of the output is a JSON object: `sources` and `compiled` count files, `refused` those that are no
code for this interpreter, `failed` those that could not be written; `named` has some of the latter two. The file MARK is
made in the folder unless a file failed.
"""

import importlib.util
import json
import os
import py_compile
import resource
import signal
import subprocess
import sys

MOST_PROCESSES = 4
MOST_NAMED = 5
# Bounds of one process, for sources that are hard to compile: seconds for a file, and bytes of memory.
FILE_SECONDS = 30
MEMORY_BYTES = 512 << 20
REFUSED, FAILED = 3, 4
# How compiled files are told to be out of date, and the flags of their headers. Functions cannot change packages.
UNCHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH
CHECKED = py_compile.PycInvalidationMode.CHECKED_HASH
FLAGS = {UNCHECKED: 1, CHECKED: 3}


def sources_of(folder):
    """The modules in the folder. Names with a dot at the front cannot be imported."""
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] != "." and name != "__pycache__"]
        paths = (os.path.join(parent, name) for name in names if name.endswith(".py"))
        found.extend(path for path in paths if os.path.isfile(path) and not os.path.islink(path))
    return sorted(found)


def compile_file(source, mode):
    """Returns 0, REFUSED or FAILED."""
    try:
        py_compile.compile(source, doraise=True, invalidation_mode=mode)
        return 0
    except (py_compile.PyCompileError, ValueError, RecursionError, MemoryError):
        return REFUSED
    except OSError:
        return FAILED


def start(sources, mode):
    """A process that compiles the sources; its status tells of the last of them."""
    process = os.fork()
    if process != 0:
        return process
    status = FAILED
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for source in sources:
            signal.alarm(FILE_SECONDS)
            status = compile_file(source, mode)
    finally:
        os._exit(status)


def wait(process):
    """The status with which the process has ended; None if a signal has ended it."""
    status = os.waitpid(process, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None


def is_compiled(source, mode):
    """Whether the compiled file is there and has been made of this source."""
    try:
        with open(importlib.util.cache_from_source(source), "rb") as file:
            header = file.read(16)
        with open(source, "rb") as file:
            digest = importlib.util.source_hash(file.read())
    except OSError:
        return False
    return header == importlib.util.MAGIC_NUMBER + FLAGS[mode].to_bytes(4, "little") + digest


def compile_folder(folder, mode=UNCHECKED):
    """Compiles all modules below the folder. Returns the report, which is made by looking at each file."""
    sources = sources_of(folder)
    count = min(MOST_PROCESSES, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)
    for process in [start(sources[at::count], mode) for at in range(count)]:
        wait(process)
    refused, failed = [], []
    # A source that ends its process, such as one that nests too deeply for the compiler, takes no other one with it.
    for source in [source for source in sources if not is_compiled(source, mode)]:
        status = wait(start([source], mode))
        if not is_compiled(source, mode):
            (failed if status in (0, FAILED) else refused).append(os.path.relpath(source, folder))
    return {
        "sources": len(sources),
        "compiled": len(sources) - len(refused) - len(failed),
        "refused": len(refused),
        "failed": len(failed),
        "named": [name[:200] for name in (failed + refused)[:MOST_NAMED]],
    }


def make_mark(path):
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))


def main():
    folder, mark, *command = sys.argv[1:]
    os.umask(0o022)
    if command:
        status = subprocess.call(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
        if status != 0:
            sys.exit(1)
    report = compile_folder(folder)
    if report["failed"] == 0:
        make_mark(os.path.join(folder, mark))
    print(json.dumps(report))


if __name__ == "__main__":
    main()
