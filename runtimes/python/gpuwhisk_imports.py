"""Which modules of shared sets an action imports while its code is loaded: a process that is made ahead can have them.

Shared sets are the folders of sys.path but the first: packages of the image, those of `requirements`, and the
interpreter's library. The first one is the action's own.
"""

import os
import sys
from _thread import get_ident
from time import monotonic_ns

import _frozen_importlib as bootstrap
import _locale
import _warnings

from gpuwhisk_process import end, flush_output

MAX_MODULES = 64
MAX_NAME_LENGTH = 200
LEAST_US = 1000  # Faster imports are not worth a report.


def process_state():
    """What an import may depend on besides files; two equal ones may be taken for each other."""
    environment = getattr(os.environ, "_data", None)
    if environment is not None:
        environment = {name: value for name, value in environment.items() if not name.startswith(b"__OW_")}
    return (
        environment,
        list(sys.path),
        list(sys.meta_path),
        list(sys.path_hooks),
        os.getcwd(),
        list(_warnings.filters),
        _locale.setlocale(_locale.LC_ALL),
    )


def written_bytes():
    """How many bytes this process has written so far. Raises OSError where the kernel does not count them."""
    flush_output()
    counts = os.open("/proc/self/io", os.O_RDONLY)
    try:
        return int(os.read(counts, 512).split(b"wchar: ", 1)[1].split(b"\n", 1)[0])
    finally:
        os.close(counts)


class EnvironmentWatch:
    """Tells whether something asked os.environ for a variable of the platform (`__OW_*`), or for all names."""

    def __init__(self):
        self.asked = False

    def begin(self):
        self.asked = False
        self.environment, self.kind = os.environ, type(os.environ)
        self.environment.__class__ = self.watching(self.kind)

    def end(self):
        self.environment.__class__ = self.kind

    def watching(self, kind):
        watch = self

        class _Environ(kind):
            def __getitem__(self, key):
                if isinstance(key, str) and key.startswith("__OW_"):
                    watch.asked = True
                return kind.__getitem__(self, key)

            def __iter__(self):
                watch.asked = True
                return kind.__iter__(self)

        # In tracebacks they are those of `os`.
        for method in (_Environ.__getitem__, _Environ.__iter__):
            method.__code__ = method.__code__.replace(co_filename="<frozen os>")
        _Environ.__qualname__, _Environ.__module__ = kind.__qualname__, kind.__module__
        return _Environ


class ImportObserver:
    """Notes the imports of a load that a process made ahead could have made in its place.

    To be made when the process is ready for code. An import counts if its modules are all of shared sets, if the state of
    the process was that of the ready one, but for changes by counted imports, if it asked for no variable of the platform,
    and if nothing was written meanwhile.
    """

    def __init__(self):
        self.state = process_state()
        self.folder = sys.path[0]
        self.shared = tuple(folder.rstrip("/") + "/" for folder in sys.path[1:])
        self.costs_us = {}
        self.thread = None
        self.environment = EnvironmentWatch()
        self.original = bootstrap._find_and_load
        self.watched = self.watch(self.original)

    def __enter__(self):
        self.thread = get_ident()
        bootstrap._find_and_load = self.watched

    def __exit__(self, *raised):
        bootstrap._find_and_load = self.original

    def watch(self, find_and_load):
        """The importer's function for modules that are not loaded, with a look at the outermost import of the thread."""
        inside = False

        def _find_and_load(name, import_):
            nonlocal inside
            if inside or get_ident() != self.thread or self.is_own(name):
                return find_and_load(name, import_)
            before = self.begin()
            inside = True
            try:
                module = find_and_load(name, import_)
            finally:
                inside = False
                if before is not None:
                    self.environment.end()
            self.finish(name, before)
            return module

        # Tracebacks leave out frames of this name, as those of the importer itself.
        _find_and_load.__code__ = _find_and_load.__code__.replace(co_filename="<frozen importlib._bootstrap>")
        return _find_and_load

    def is_own(self, name):
        path = "%s/%s" % (self.folder, name.partition(".")[0])
        return os.path.exists(path) or os.path.exists(path + ".py")

    def begin(self):
        """What `finish` compares with; None where the import does not count."""
        try:
            if process_state() != self.state:
                return None
            before = set(sys.modules), written_bytes(), monotonic_ns()
            self.environment.begin()
            return before
        except Exception:
            return None  # The action has replaced or closed something that is asked here, or the kernel does not tell.

    def finish(self, name, before):
        if before is None or self.environment.asked:
            return
        took_us = (monotonic_ns() - before[2]) // 1000
        try:
            if written_bytes() != before[1] or not all(map(self.is_shared, set(sys.modules) - before[0])):
                return
            self.state = process_state()
        except Exception:
            return  # As in begin.
        self.costs_us[name] = took_us

    def is_shared(self, name):
        module = sys.modules[name]
        origin = getattr(getattr(module, "__spec__", None), "origin", None) or getattr(module, "__file__", None)
        return origin is None or origin in ("built-in", "frozen") or origin.startswith(self.shared)

    def report(self):
        """The imports of the load that took longest, in their order: a JSON array of [name, microseconds]."""
        costs = [(name, us) for name, us in self.costs_us.items() if us >= LEAST_US and is_module_name(name)]
        longest = sorted(costs, key=lambda cost: -cost[1])[:MAX_MODULES]
        return "[%s]" % ",".join('["%s",%d]' % cost for cost in costs if cost in longest)


def is_module_name(name):
    return len(name) <= MAX_NAME_LENGTH and name.isascii() and all(part.isidentifier() for part in name.split("."))


def import_learned(names):
    """Imports what functions of a namespace have imported. Ends the process if a rollback could not keep the modules."""
    import importlib

    for name in names:
        threads, sockets = thread_count(), open_sockets()
        try:
            importlib.import_module(name)
        except BaseException as error:
            refuse(name, "%s: %s" % (type(error).__name__, error))
        if thread_count() != threads:
            refuse(name, "it started a thread")
        if open_sockets() != sockets:
            refuse(name, "it opened a socket")


def refuse(name, reason):
    sys.stderr.write("Module '%s' cannot be loaded ahead of functions: %s\n" % (name, reason))
    end(1)


def thread_count():
    return len(os.listdir("/proc/self/task"))


def open_sockets():
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink("/proc/self/fd/" + number)
        except FileNotFoundError:
            continue  # It was that of the list itself.
        if target.startswith("socket:"):
            found.add(target)
    return found
