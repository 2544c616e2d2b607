"""The Python runtime: speaks the framed protocol on file descriptor 3 and runs one action.

Start: python -I -S -B -X utf8 runtime.py [folder...]; the folders come last on sys.path. It starts without
`site`, whose .pth files cost more than the interpreter itself, so the folders are the ones that `site` found.
"""

import json
import os
import sys
from time import monotonic_ns

FD = 3
HEADER_BYTES = 9
MAX_PAYLOAD_BYTES = 64 * 1024 * 1024
HELLO, INIT, RUN, RESULT, ERROR, LOG, CANCEL, BYE = range(1, 9)

FAILED_TO_BUILD = "The action failed to generate or locate a binary. See logs for details."
FAILED_TO_START = "Cannot start action. Check logs for details."

encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class Refusal(Exception):
    """An answer of type error, with its text."""


def read_frames(fd):
    """Yields (type, id, payload) for every frame until the peer is gone."""
    data = b""
    while True:
        needed = HEADER_BYTES
        if len(data) >= needed:
            payload_bytes = int.from_bytes(data[:4], "little")
            if payload_bytes > MAX_PAYLOAD_BYTES:
                violate("a frame of %d bytes is longer than %d" % (payload_bytes, MAX_PAYLOAD_BYTES))
            needed += payload_bytes
            if len(data) >= needed:
                yield data[4], int.from_bytes(data[5:HEADER_BYTES], "little"), data[HEADER_BYTES:needed]
                data = data[needed:]
                continue
        parts = [data]
        missing = needed - len(data)
        while missing > 0:
            part = os.read(fd, max(65536, missing))
            if not part:
                return
            parts.append(part)
            missing -= len(part)
        data = b"".join(parts)


def violate(message):
    sys.stderr.write("Protocol violation: %s.\n" % message)
    end(70)


def end(code):
    """Leaves at once: threads of the action must not hold the container up."""
    flush_output()
    os._exit(code)


def flush_output():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, ValueError, OSError):
            continue  # The action closed or replaced it: what it printed there is its own matter.


def frame(kind, request, payload):
    return len(payload).to_bytes(4, "little") + bytes((kind,)) + request.to_bytes(4, "little") + payload


class ActionSource:
    """The source of the action. A file costs more than all else of a start, and it is needed only for the lines that
    tracebacks quote and by processes that import the action: it is written then. `traceback` and `inspect` ask here.
    """

    def __init__(self):
        self.path = self.source = None

    def hold(self, path, source):
        self.path, self.source = path, source

    def get_source(self, name):
        import importlib.util

        return importlib.util.decode_source(self.source)

    def write(self):
        if self.path is None or os.path.exists(self.path):
            return
        try:
            with open(self.path, "wb") as file:
                file.write(self.source)
        except OSError as error:
            sys.stderr.write("The source of the action cannot be written: %s\n" % error)


action_source = ActionSource()


def print_error(error):
    """Prints a traceback without the frame that called into the action. The interpreter's own hook needs no imports."""
    action_source.write()
    trace = error.__traceback__
    error = error.with_traceback(trace.tb_next if trace else None)
    sys.__excepthook__(type(error), error, error.__traceback__)


class Runtime:
    """One action: `send` is given the frames that answer."""

    def __init__(self, send):
        self.send = send
        self.action = None
        self.name = "main"
        self.initialized = False
        self.concurrent = os.environ.get("__OW_ALLOW_CONCURRENT", "").lower() == "true"
        self.event_loop = None
        self.lock = None
        self.marks = None  # What tells kernel tokens where a launch cycle begins and ends.

    def handle(self, kind, request, payload):
        if kind == RUN:
            if self.concurrent:
                self.start_thread(self.run, request, payload)
            else:
                self.run(request, payload)
        elif kind == INIT:
            self.init(request, payload)
        elif kind == BYE:
            end(0)
        elif kind != CANCEL:  # A cancelled run goes on; whoever cancelled it drops the answer.
            violate("a frame of type %d" % kind)

    def start_thread(self, target, *args):
        import threading

        if self.lock is None:
            self.lock = threading.Lock()
        threading.Thread(target=target, args=args, daemon=True).start()

    def write(self, data):
        if self.lock:
            with self.lock:
                self.send(data)
        else:
            self.send(data)

    def answer(self, kind, request, payload, log=b"{}"):
        flush_output()
        if len(payload) > MAX_PAYLOAD_BYTES:
            kind = ERROR
            payload = error_payload("The action produced a response that is longer than %d bytes." % MAX_PAYLOAD_BYTES)
        self.write(frame(kind, request, payload) + frame(LOG, request, log))

    def init(self, request, payload):
        message = parse(payload)
        try:
            if self.initialized:
                raise Refusal("Cannot initialize the action more than once.")
            if not message.get("code"):
                raise Refusal("Missing main/no code to execute.")
            os.environ.update(message.get("env") or {})
            self.name = message.get("main") or "main"
            self.action = load_action(message, self.name)
            if message.get("entry"):
                self.call_entry(message["entry"])
            self.initialized = True
        except Refusal as refusal:
            self.answer(ERROR, request, error_payload(str(refusal)))
        else:
            self.answer(RESULT, request, b'{"ok":true}')

    def call_entry(self, name):
        """Calls the function that readies the action (annotation `warm`). Raises Refusal; why is printed on stderr."""
        try:
            entry = getattr(sys.modules["main__"], name)
            result = entry()
            if hasattr(result, "__await__"):
                self.wait_for(result)
        except Exception as error:
            print_error(error)
            raise Refusal(FAILED_TO_START)
        except SystemExit as leaving:
            end(exit_code(leaving))

    def run(self, request, payload):
        message = parse(payload)
        try:
            if self.action is None:
                raise Refusal("no action defined yet")
            is_batch = message.pop("batch", None) is not None
            run_environment.set(message)
            value = message.get("value")
            started_ns = monotonic_ns()
            result = self.serve(value, is_batch)
        except Refusal as refusal:
            self.answer(ERROR, request, error_payload(str(refusal)))
        else:
            took_us = (monotonic_ns() - started_ns) // 1000
            self.answer(RESULT, request, result, b'{"us":%d}' % took_us)

    def serve(self, value, is_batch):
        """The result of a run, or those of a batch's requests, as JSON: one launch cycle for kernel tokens."""
        if self.marks:
            begin, finish = self.marks
            begin(len(value) if is_batch else 1)
        try:
            if is_batch:
                return self.call_batch(value)
            return to_json(self.call({} if value is None else value))
        finally:
            if self.marks:
                finish()

    def call_batch(self, values):
        """The results of several requests, as a JSON array; a text stands for a request whose result is none.

        The function whose name is the action's with `_batch` gets them all at once; without one they run one by one.
        """
        together = getattr(sys.modules["main__"], self.name + "_batch", None)
        results = self.call(values, together) if callable(together) else [self.call(value) for value in values]
        if isinstance(results, dict) and set(results) == {"error"}:
            results = [results] * len(values)  # It raised.
        if not isinstance(results, (list, tuple)) or len(results) != len(values):
            raise Refusal("The action was given %d requests and returned no list of as many results." % len(values))
        return b"[%s]" % b",".join(map(to_entry, results))

    def call(self, value, action=None):
        try:
            result = (action or self.action)(value)
            if hasattr(result, "__await__"):
                result = self.wait_for(result)
            return result
        except Exception as error:
            print_error(error)
            return {"error": str(error)}
        except SystemExit as leaving:
            end(exit_code(leaving))
        except BaseException as error:
            print_error(error)
            end(1)

    def wait_for(self, awaitable):
        """Runs an async action on one event loop, so that what it keeps between runs stays usable."""
        import asyncio

        async def finish():
            return await awaitable

        if self.event_loop is None:
            self.event_loop = asyncio.new_event_loop()
            if self.concurrent:
                self.start_thread(self.event_loop.run_forever)
            else:
                asyncio.set_event_loop(self.event_loop)
        if self.concurrent:
            return asyncio.run_coroutine_threadsafe(finish(), self.event_loop).result()
        return self.event_loop.run_until_complete(finish())


def launch_marks():
    """The functions (begin, end) of native/tokens, or None where its library is not loaded."""
    if "GPUWHISK_TOKENS_SOCKET" not in os.environ:
        return None
    import ctypes

    library = ctypes.CDLL(None)
    if not hasattr(library, "gpuwhisk_tokens_cycle_begin"):
        return None
    return library.gpuwhisk_tokens_cycle_begin, library.gpuwhisk_tokens_cycle_end


def hello():
    return frame(HELLO, 0, b'{"version":1,"kind":"python:%d.%d","pid":%d,"batch":true}' % (*sys.version_info[:2], os.getpid()))


def serve(fd):
    write_all(fd, hello())
    prepare_interpreter(sys.argv[1:])
    watch_peer(fd)
    runtime = Runtime(lambda data: write_all(fd, data))
    if not runtime.concurrent:  # Cycles that overlap would say nothing.
        runtime.marks = launch_marks()
    for kind, request, payload in read_frames(fd):
        runtime.handle(kind, request, payload)
    end(0)


class RunEnvironment:
    """The environment variables of a run.

    The C library never frees a value that it replaces, which would cost a warm container some 300 bytes a run: its
    environment gets them only when a process is about to be started, which inherits it.
    """

    def __init__(self):
        self.names = {}
        self.pending = {}

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


def write_all(fd, data):
    sent = os.write(fd, data)
    while sent < len(data):
        data = memoryview(data)[sent:]
        sent = os.write(fd, data)


def parse(payload):
    try:
        message = json.loads(payload)
    except ValueError as error:
        violate(str(error))
    if not isinstance(message, dict):
        violate("a payload that is no JSON object")
    return message


def error_payload(message):
    return json.dumps({"error": message}).encode()


def to_json(result):
    try:
        text = encode(result)
    except (TypeError, ValueError, RecursionError) as error:
        print_error(error)
        raise Refusal("The action's result cannot be written as JSON: %s" % error)
    if text == "null":
        raise Refusal("The action did not produce a valid JSON or JSON Array response: null")
    if text[0] not in "{[":
        raise Refusal("The action did not return a dictionary or array.")
    try:
        return text.encode()
    except UnicodeEncodeError:  # Half a surrogate pair, which only an escape can carry.
        return json.dumps(result).encode()


def to_entry(result):
    try:
        return to_json(result)
    except Refusal as refusal:
        return json.dumps(str(refusal)).encode()


def exit_code(leaving):
    code = leaving.code
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    sys.stderr.write("%s\n" % (code,))
    return 1


def load_action(message, name):
    """The function that the code of an init defines. Raises Refusal."""
    code = message["code"]
    if not message.get("binary"):
        return load_source(code.encode("utf-8", "surrogatepass"), name)
    import binascii

    try:
        data = binascii.a2b_base64(code)
    except binascii.Error as error:
        raise Refusal("cannot decode the request: %s" % error)
    return load_source(unpack(data), name)


def load_source(source, name):
    """The function that the source defines. Raises Refusal; why is printed on stderr, as OpenWhisk's runtime does."""
    path = os.path.join(os.getcwd(), "main__.py")
    action_source.hold(path, source)
    try:
        compiled = compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        print_error(error)
        raise Refusal(FAILED_TO_BUILD)
    module = type(sys)("main__")
    module.__file__ = path
    module.__loader__ = action_source
    sys.modules["main__"] = module
    try:
        exec(compiled, module.__dict__)
        action = getattr(module, name)
        if not callable(action):
            raise TypeError("'%s' is not a function" % name)
        return action
    except Exception as error:
        print_error(error)
    except SystemExit as leaving:
        end(exit_code(leaving))
    raise Refusal(FAILED_TO_START)


def unpack(data):
    """Extracts an archive, activates its virtualenv, and returns the source of its `__main__.py`."""
    if data[:4] != b"PK\x03\x04" and data[:2] != b"\x1f\x8b":
        return data  # OpenWhisk's runtime takes what is no archive for a source file.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    import gpuwhisk_archive

    sys.path.remove(here)
    try:
        return gpuwhisk_archive.open_action(data, os.getcwd())
    except gpuwhisk_archive.Broken as broken:
        sys.stderr.write("%s\n" % broken)
    except Exception as error:
        print_error(error)
    raise Refusal(FAILED_TO_BUILD)


def prepare_interpreter(folders):
    """Makes up for starting without `site`."""
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
    load_imports()


def load_imports():
    """Loads what the action is known to need (annotation `warm`), before its code comes."""
    names = os.environ.pop("GPUWHISK_IMPORTS", "").split()
    if not names:
        return
    import importlib

    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:
            sys.stderr.write("Module '%s' of annotation 'warm' was not loaded: %s\n" % (name, error))


def watch_peer(fd):
    """Starts a thread that ends the process when the peer closes, also in the middle of a run."""
    import _thread

    _thread.start_new_thread(wait_for_hang_up, (fd,))


def wait_for_hang_up(fd):
    """Waits without waking for data."""
    import select

    hang_up = getattr(select, "POLLRDHUP", None)
    if hang_up is None:
        return
    poll = select.poll()
    poll.register(fd, hang_up)
    poll.poll()
    os._exit(0)


if __name__ == "__main__":
    os.set_blocking(FD, True)
    os.set_inheritable(FD, False)
    serve(FD)
