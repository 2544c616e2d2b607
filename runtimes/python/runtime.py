"""The Python runtime: speaks the framed protocol on file descriptor 3 and runs one action.

Start: python -I -S -B -X utf8 start.py [--channel LIBRARY] [folder...]; LIBRARY is native/python, by which frames are
read and written, and the folders come last on sys.path. It starts without `site`, whose .pth files cost more than the
interpreter itself, so the folders are the ones that `site` found.
"""

import os
import sys
from time import monotonic_ns

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from gpuwhisk_code import Refusal, after_restore, load_source, not_started, print_error, source_of, text_of
from gpuwhisk_imports import ImportObserver
from gpuwhisk_interpreter import prepare_interpreter, run_environment
from gpuwhisk_process import end, exit_code, flush_output, violate, watch_peer
from gpuwhisk_size import offer

sys.path.remove(HERE)

FD = 3
HEADER_BYTES = 9
MAX_PAYLOAD_BYTES = 64 * 1024 * 1024
HELLO, INIT, RUN, RESULT, ERROR, LOG, CANCEL, BYE = range(1, 9)
STOP, PROGRESS, CODE = 12, 13, 14

# The library of the channel, which reads and writes usual JSON. The module json, which loads `re`, takes as long as the start
# of the interpreter: it is loaded when something else is to be read or written.
channel = None
encoder = None


def encode(value):
    """The value as JSON text. Raises what json.JSONEncoder does."""
    global encoder
    if encoder is None:
        import json

        encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return encoder.encode(value)


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


def frame(kind, request, payload):
    return len(payload).to_bytes(4, "little") + bytes((kind,)) + request.to_bytes(4, "little") + payload


class Runtime:
    """One action: `send` is given the frames that answer."""

    def __init__(self, send):
        self.send = send
        self.action = None
        self.name = "main"
        self.initialized = False
        self.import_us = None  # How long the modules of annotation `warm` took.
        self.concurrent = os.environ.get("__OW_ALLOW_CONCURRENT", "").lower() == "true"
        self.event_loop = None
        self.lock = None
        self.marks = None  # What tells kernel tokens where a launch cycle begins and ends.
        self.members = None  # Those of a training job, which load and run the action in processes of their own.
        self.channel = None  # The library of the channel, which calls the action by itself where it can.
        self.observer = None  # Of the imports of the load.
        self.incoming = None  # An init whose code has yet to come: its id, its message, and the bytes so far.

    def handle(self, kind, request, payload):
        if kind == RUN:
            if self.concurrent or self.members:
                self.start_thread(self.run, request, payload)
            else:
                self.run(request, payload)
        elif kind == INIT:
            message = parse(payload)
            if message.get("codeBytes"):
                self.incoming = (request, message, bytearray())
            else:
                self.init(request, message)
        elif kind == CODE:
            self.take_code(request, payload)
        elif kind == BYE:
            end(0)
        elif kind == STOP and self.members:
            self.members.stop()
        elif kind != CANCEL:  # A cancelled run goes on; the caller that cancelled it drops the answer.
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

    def take_code(self, request, piece):
        """Takes a piece of large code, whose bytes come behind the init: as text of JSON it would be held several times."""
        of, message, code = self.incoming or (None, None, b"")
        if of != request or len(code) + len(piece) > message["codeBytes"]:
            violate("a piece of code that init %d has not announced" % request)
        code += piece
        if len(code) == message["codeBytes"]:
            self.incoming = None
            message["code"] = bytes(code) if message.get("binary") else code.decode("utf-8", "surrogatepass")
            del code
            self.init(request, message)

    def init(self, request, message):
        try:
            if self.initialized:
                raise Refusal("Cannot initialize the action more than once.")
            if not message.get("code"):
                raise Refusal("Missing main/no code to execute.")
            os.environ.update(message.get("env") or {})
            self.name = message.get("main") or "main"
            if self.members:
                self.members.load(message)
                self.action, self.initialized = self.members.run, True
                self.answer(RESULT, request, b'{"ok":true}')
                return
            if message.get("binary"):
                import json  # Before an archive can bring a module of that name.
            times_us = {} if self.import_us is None else {"importUs": self.import_us}
            started_ns = monotonic_ns()
            source = source_of(message)
            with self.observer:
                self.action = load_source(source, self.name)
            loaded_ns = monotonic_ns()
            times_us["codeUs"] = (loaded_ns - started_ns) // 1000
            if message.get("entry"):
                self.call_entry(message["entry"])
                times_us["entryUs"] = (monotonic_ns() - loaded_ns) // 1000
            self.initialized = True
            self.call_directly()
        except Refusal as refusal:
            self.answer(ERROR, request, error_payload(str(refusal)))
        else:
            times = "".join(',"%s":%d' % time_us for time_us in times_us.items())
            restores = ',"restores":true' if after_restore() else ""
            told = '{"ok":true%s,"imports":%s%s}' % (times, self.observer.report(), restores)
            self.answer(RESULT, request, told.encode())

    def call_directly(self):
        """Lets the channel call the action, where nothing else is to be done for a run."""
        if self.channel is None or self.concurrent or self.members or self.marks:
            return
        self.channel.call_directly(self.action, run_environment.environ, run_environment.apply)

    def finish(self, request, result, started_ns):
        """Answers a run whose action the channel has called, and whose result it leaves to this code."""
        try:
            payload = to_json(self.call(result, lambda result: result))
        except Refusal as refusal:
            self.answer(ERROR, request, error_payload(str(refusal)))
        else:
            self.answer(RESULT, request, payload, b'{"us":%d}' % ((monotonic_ns() - started_ns) // 1000))

    def call_entry(self, name):
        """Calls the function that readies the action (annotation `warm`). Raises Refusal; why is printed on stderr."""
        try:
            self.call_at_start(getattr(sys.modules["main__"], name))
        except Exception as error:
            print_error(error)
            raise not_started(error) from error

    def call_at_start(self, function):
        """Calls a function of the action's without a run. Raises what it raises."""
        try:
            result = function()
            if hasattr(result, "__await__"):
                self.wait_for(result)
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
            result = self.run_members(value, request) if self.members else self.serve(value, is_batch)
        except Refusal as refusal:
            self.answer(ERROR, request, error_payload(str(refusal)))
        else:
            took_us = (monotonic_ns() - started_ns) // 1000
            self.answer(RESULT, request, result, b'{"us":%d}' % took_us)

    def run_members(self, value, request):
        """The result of a training job, as JSON. Its progress is sent while it runs."""
        try:
            return self.members.run(value, lambda told: self.write(frame(PROGRESS, request, encode(told).encode())))
        except Exception as error:
            print_error(error)
            raise Refusal("The members of the job could not be run: %s" % error)

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

    def call(self, value, action=None, raised=None):
        """The result of `action` (default: the action's function); `raised`: what it raised, where it was called already."""
        try:
            if raised is not None:
                raise raised
            result = (action or self.action)(value)
            if hasattr(result, "__await__"):
                result = self.wait_for(result)
            return result
        except Exception as error:
            print_error(error)
            return {"error": text_of(error)}
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
    return frame(HELLO, 0, b'{"version":1,"kind":"python:%d.%d","pid":%d,"batch":true,"codeFrames":true}' % (*sys.version_info[:2], os.getpid()))


def members_of_job():
    """The members of the training job that the container is for; None if it is for none."""
    if "GPUWHISK_JOB" not in os.environ:
        return None
    sys.path.insert(0, HERE)
    from gpuwhisk_members import Members

    sys.path.remove(HERE)
    # The members load the modules of annotation `warm`, this process needs none.
    return Members(sys.argv[1:], os.environ.pop("GPUWHISK_IMPORTS", ""))


def serve(fd):
    global channel
    write_all(fd, hello())
    if sys.argv[1:2] == ["--channel"]:
        channel = open_channel(sys.argv[2])
        del sys.argv[1:3]
    members = members_of_job()
    import_us = prepare_interpreter(sys.argv[1:])
    (channel.watch_peer if channel else watch_peer)(fd)
    runtime = Runtime(lambda data: write_all(fd, data))
    runtime.import_us = import_us
    runtime.members = members
    offer(None if runtime.concurrent or members else fd)
    runtime.observer = ImportObserver()
    if not runtime.concurrent:  # Cycles that overlap would say nothing.
        runtime.marks = launch_marks()
    runtime.channel = channel
    if channel:
        run_environment.read_lazily(channel.take_body)
        serve_by(channel, runtime, fd)
    else:
        for kind, request, payload in read_frames(fd):
            runtime.handle(kind, request, payload)
    end(0)


def serve_by(channel, runtime, fd):
    left = channel.serve(fd, runtime, 0, 0)
    if isinstance(left, int):
        violate("a frame of %d bytes is longer than %d" % (left, MAX_PAYLOAD_BYTES))
    if left is not None:
        end(1)  # The answer could not be sent: the action has closed the socket.


def open_channel(path):
    """The library native/python, loaded without the machinery of imports; None where this interpreter cannot have it."""
    if sys.implementation.name != "cpython" or sys.abiflags:  # Objects of other builds are made otherwise.
        return None
    import _imp

    class Spec:
        name, origin = "gpuwhisk_channel", path

    try:
        return _imp.create_dynamic(Spec)
    except ImportError as error:
        sys.stderr.write("Frames go by Python code: %s\n" % error)
        return None


def write_all(fd, data):
    sent = os.write(fd, data)
    while sent < len(data):
        data = memoryview(data)[sent:]
        sent = os.write(fd, data)


def parse(payload):
    message = channel.read(payload) if channel else None
    if message is None:
        import json

        try:
            message = json.loads(payload)
        except ValueError as error:
            violate(str(error))
    if not isinstance(message, dict):
        violate("a payload that is no JSON object")
    return message


def error_payload(message):
    import json

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
        import json

        return json.dumps(result).encode()


def to_entry(result):
    try:
        return to_json(result)
    except Refusal as refusal:
        import json

        return json.dumps(str(refusal)).encode()


def main():
    os.set_blocking(FD, True)
    os.set_inheritable(FD, False)
    serve(FD)
