"""How the interpreter of a Python action is readied, and the environment that its runs see."""

import os
import sys
from time import monotonic_ns

from gpuwhisk_code import action_source


class RunEnvironment:
    """The environment variables of a run.

    The C library never frees a value that it replaces, which would cost a warm container some 300 bytes a run: its
    environment gets them only when a process is about to be started, which inherits it.
    """

    def __init__(self):
        self.names = {}
        self.pending = {}
        self.take_body = lambda: None
        self.environ = os.environ

    def watch_starts(self):
        """To be called before anything else can have got hold of these functions."""
        import _posixsubprocess

        os.register_at_fork(before=self.write)
        for module, name in (
            (_posixsubprocess, "fork_exec"),
            (os, "system"),
            (os, "execv"),
            (os, "posix_spawn"),
            (os, "posix_spawnp"),
        ):
            setattr(module, name, self.writes_first(getattr(module, name)))

    def read_lazily(self, take_body):
        """Runs are noted by the channel from now on; `take_body` gives what the last one said besides its value, as JSON."""

        class LazyEnvironment(type(os.environ)):
            @property
            def _data(self):
                run_environment.apply()
                return self.__dict__["_data"]

            @_data.setter
            def _data(self, data):
                self.__dict__["_data"] = data

        LazyEnvironment.__name__ = LazyEnvironment.__qualname__ = "_Environ"
        LazyEnvironment.__module__ = "os"
        self.take_body = take_body
        os.environ.__class__ = os.environb.__class__ = LazyEnvironment

    def apply(self):
        """Sets what the last run's body said, unless that was done."""
        body = self.take_body()
        if body is not None:
            import json

            self.set(json.loads(body))

    def set(self, message):
        """Sets `__OW_<KEY>` for every string of a run's body."""
        environment = getattr(os.environ, "_data", None)
        for key, value in message.items():
            if not isinstance(value, str) or key == "value":
                continue
            name = self.names.get(key)
            if name is None:
                name = self.names[key] = "__OW_" + key.upper()
            if environment is None or "\0" in value:
                os.environ[name] = value  # The action replaced it, or it refuses the value.
                continue
            key_bytes, value_bytes = os.fsencode(name), os.fsencode(value)
            if environment.get(key_bytes) != value_bytes:
                environment[key_bytes] = self.pending[key_bytes] = value_bytes

    def write(self):
        action_source.write()
        self.apply()
        pending, self.pending = self.pending, {}
        environment = getattr(os.environ, "_data", {})
        for name, value in pending.items():
            if environment.get(name) == value:
                os.putenv(name, value)

    def writes_first(self, start):
        def start_with_environment(*args, **options):
            self.write()
            return start(*args, **options)

        return start_with_environment


run_environment = RunEnvironment()


def prepare_interpreter(folders):
    """Makes up for starting without `site`. Returns what load_imports does."""
    import builtins

    import _sitebuiltins

    builtins.exit = _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)")
    builtins.quit = _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)")
    builtins.help = _sitebuiltins._Helper()
    sys.path.extend(folders)
    sys.path.insert(0, os.getcwd())
    sys.argv = [""]
    # A line leaves at once, so that a run that is cut off has its log.
    sys.stdout.reconfigure(line_buffering=True)
    run_environment.watch_starts()
    return load_imports()


def load_imports():
    """Loads what the action is known to need (annotation `warm`), before its code comes.

    Returns how long that took, in microseconds; None without modules to load.
    """
    names = os.environ.pop("GPUWHISK_IMPORTS", "").split()
    if not names:
        return None
    import importlib

    started_ns = monotonic_ns()

    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:
            sys.stderr.write("Module '%s' of annotation 'warm' was not loaded: %s\n" % (name, error))
    return (monotonic_ns() - started_ns) // 1000
