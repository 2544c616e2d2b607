"""How the interpreter of a Python action is readied, and the environment that its runs see."""

import os
import sys
from time import monotonic_ns

from gpuwhisk_code import action_source
from gpuwhisk_imports import import_learned


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
        os.register_at_fork(before=self.write)
        for name in ("system", "execv", "posix_spawn", "posix_spawnp"):
            setattr(os, name, self.writes_first(getattr(os, name)))
        load_lazily("_posixsubprocess", self.watch_fork_exec)

    def watch_fork_exec(self, module):
        module.fork_exec = self.writes_first(module.fork_exec)

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


def load_lazily(name, prepare):
    """Loads a module, and calls `prepare` with it, when something of it is asked for: to look for it takes a millisecond."""
    if name in sys.modules:
        prepare(sys.modules[name])
        return
    promised = type(sys)(name)
    # importlib.util.find_spec refuses a module without one.
    promised.__spec__ = type(sys.__spec__)(name, None)

    def load(attribute):
        # A loop over sys.modules that asks each for its __file__ must not see sys.modules change.
        if attribute.startswith("__"):
            raise AttributeError("module '%s' has no attribute '%s'" % (name, attribute))
        module = sys.modules.get(name)
        if module is None or module is promised:
            sys.modules.pop(name, None)
            module = __import__(name)
            prepare(module)
        return getattr(module, attribute)

    promised.__getattr__ = load
    sys.modules[name] = promised


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
    """Loads what the action is known to need (annotation `warm`, or learned imports), before its code comes.

    Returns how long that took, in microseconds; None without modules to load.
    """
    names = os.environ.pop("GPUWHISK_IMPORTS", "").split()
    learned = os.environ.pop("GPUWHISK_LEARNED", None)
    if not names:
        return None
    import importlib

    started_ns = monotonic_ns()
    if learned:
        import_learned(names)
        names = []
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:
            sys.stderr.write("Module '%s' of annotation 'warm' was not loaded: %s\n" % (name, error))
    return (monotonic_ns() - started_ns) // 1000
