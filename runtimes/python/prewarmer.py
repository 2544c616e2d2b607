"""The Python pre-warmer: does ahead what functions of its kind share, and parks at a safe point of its eval loop.

Start: python -I -S -B -X utf8 prewarmer.py LIBRARY FOLDER [OPTION PATH]...; LIBRARY holds the resident code
(native/prewarmer), functions work in FOLDER, and the options are --package (a folder that comes last on sys.path), --read
and --write (what the process may see besides the system's folders), and --channel (native/python, by which functions serve
runs without the proxy). The modules to import come in the environment, as for runtime.py.

A proxy traces the process and has the parked thread call `serve_request`. Functions are loaded and called by
runtime.py, so that they are answered as there.
"""

import ctypes
import faulthandler
import gc
import importlib
import io
import json
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import gpuwhisk_archive  # noqa: F401 (so that an archive need not look for it)
import gpuwhisk_code
import gpuwhisk_mailbox
import runtime
from gpuwhisk_imports import ImportObserver
from gpuwhisk_interpreter import prepare_interpreter, run_environment
from gpuwhisk_process import flush_output
from gpuwhisk_size import offer

sys.path.remove(HERE)

SYSTEM_FOLDERS = ["/usr", "/lib", "/lib32", "/lib64", "/bin", "/etc", "/opt", "/proc", "/sys"]
DEVICES = ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"]

# Read by the C library when this process started.
ALLOCATOR_VARIABLES = ["MALLOC_TOP_PAD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_ARENA_MAX"]

# Not for the function: the name of its function that readies it (annotation `warm`), how many requests a run is of.
ENTRY_VARIABLE = b"GPUWHISK_ENTRY"
BATCH_VARIABLE = b"__OW_BATCH"

# What short functions import most; asyncio is what an `async def` runs on.
USUAL_IMPORTS = (
    "asyncio base64 collections copy datetime functools hashlib io itertools json logging math os random re string"
    " sys threading time traceback typing urllib.parse uuid"
).split()

# Where a function writes. The copies of a template find them empty.
SCRATCH = [".", "/tmp", "/dev/shm"]

REHEARSALS = 20
REHEARSAL = b'''
import json
async def soon(value):
    return value
def main(args):
    print(f"{args!r:.10}")
    if args.get("fail"):
        raise ValueError("rehearsed")
    return soon({"sorted": sorted(args), "text": json.dumps(args)})
'''

parse = json.JSONDecoder().decode


class Guest:
    """Serves the requests in the mailbox: loads one function, calls it."""

    def __init__(self, mailbox, receive_code, reset_device):
        self.mailbox = mailbox
        self.receive_code = receive_code
        self.reset_device = reset_device
        self.runtime = runtime.Runtime(lambda data: runtime.write_all(gpuwhisk_mailbox.RUNS_FD, data))
        self.read = None  # The address of the function that waits for runs.
        self.runtime.concurrent = False  # The proxy has one request under way.
        self.observer = ImportObserver()
        self.reseeds = False
        self.loaded = False  # With the function of a template.

    def serve_request(self):
        mailbox = self.mailbox
        if mailbox.request == gpuwhisk_mailbox.SERVE:
            self.serve_runs()
            return
        if mailbox.request == gpuwhisk_mailbox.RESET_DEVICE:
            mailbox.status = gpuwhisk_mailbox.NOT_RESET if self.reset_device() else gpuwhisk_mailbox.DONE
            return
        mailbox.status = gpuwhisk_mailbox.NOT_LOADED
        try:
            environment, argument = gpuwhisk_mailbox.environment_and_argument(mailbox)
            entry = batch = None
            for assignment in environment:
                name, _, value = assignment.partition(b"=")
                if name == ENTRY_VARIABLE:
                    entry = value.decode()
                elif name == BATCH_VARIABLE:
                    batch = value
                else:
                    os.environb[name] = value
            if mailbox.request & gpuwhisk_mailbox.LOAD:
                if self.loaded:
                    self.go_on(self.receive_code())
                else:
                    self.load(mailbox.entry.decode() or "main", entry)
            mailbox.status = gpuwhisk_mailbox.REFUSED
            if mailbox.request & gpuwhisk_mailbox.CALL:
                self.call(argument, batch)
            mailbox.status = gpuwhisk_mailbox.DONE
        except gpuwhisk_code.Refusal as refusal:
            mailbox.message = str(refusal).encode()[: gpuwhisk_mailbox.MESSAGE_BYTES - 1]
        flush_output()

    def load(self, name, entry):
        # An archive is not kept beside what it extracts to.
        source = gpuwhisk_code.unpack(self.receive_code())
        self.runtime.name = name
        if self.reseeds:
            reseed()
        with self.observer:
            self.runtime.action = gpuwhisk_code.load_source(source, name)
        restores = b',"restores":true' if gpuwhisk_code.after_restore() else b""
        if self.observer.costs_us or restores:
            self.give(b'{"ok":true,"imports":%s%s}' % (self.observer.report().encode(), restores))
        if entry:
            self.runtime.call_entry(entry)

    def load_ahead(self, payload):
        """Loads the function of an init, JSON, before a template is made. Why a copy would not do goes to the proxy."""
        message = json.loads(payload)
        os.environ.update(message["env"])
        self.runtime.name = message["main"]
        try:
            source = gpuwhisk_code.source_of(message)
            files = files_in(SCRATCH)
            self.runtime.action = gpuwhisk_code.load_source(source, self.runtime.name)
            if "entry" in message:
                self.runtime.call_entry(message["entry"])
            changed = sorted(set(files.items()) ^ set(files_in(SCRATCH).items()))
            problem = "It has written the file %s." % changed[0][0] if changed else ""
        except gpuwhisk_code.Refusal as refusal:
            cause = refusal.__cause__
            problem = "Its code cannot be loaded ahead: %s" % (
                refusal if cause is None else "%s: %s" % (type(cause).__name__, cause)
            )
        flush_output()
        self.loaded = True
        self.mailbox.message = problem.encode(errors="replace")[: gpuwhisk_mailbox.MESSAGE_BYTES - 1]

    def go_on(self, code):
        """Readies the function that was loaded before this process became a copy. Raises Refusal."""
        self.loaded = False
        try:
            if gpuwhisk_code.is_archive(code):
                gpuwhisk_archive.extract(code, os.getcwd())
            function = gpuwhisk_code.after_restore()
            if function:
                self.runtime.call_at_start(function)
        except Exception as error:
            gpuwhisk_code.print_error(error)
            raise gpuwhisk_code.Refusal("The action's function after_restore failed: %s" % error)

    def serve_runs(self):
        """Answers runs that come by the socket, until the proxy asks for something. A result that cannot be sent is its."""
        mailbox = self.mailbox
        mailbox.status = gpuwhisk_mailbox.DONE
        try:
            self.runtime.call_directly()
            running = ctypes.addressof(mailbox) + gpuwhisk_mailbox.Mailbox.running.offset
            left = self.runtime.channel.serve(gpuwhisk_mailbox.RUNS_FD, self.runtime, self.read, running)
        except OSError as error:
            mailbox.status = gpuwhisk_mailbox.REFUSED
            mailbox.message = ("The result could not be sent: %s" % error).encode()[: gpuwhisk_mailbox.MESSAGE_BYTES - 1]
        else:
            if isinstance(left, bytes):
                self.give(left)

    def call(self, argument, batch):
        result = self.runtime.serve(parse(argument.decode("utf-8", "surrogatepass")), bool(batch))
        self.give(result)

    def give(self, result):
        self.mailbox.result = result  # Which keeps it until the proxy has read it.
        self.mailbox.result_length = len(result)


def reseed():
    """Otherwise each function of this process would draw the same numbers: the generators' states are put back, too."""
    sys.modules["random"].seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def warm_up():
    for name in USUAL_IMPORTS:
        importlib.import_module(name)
    if "numpy" in sys.modules:
        use_numpy(sys.modules["numpy"])


def use_numpy(numpy):
    """The first product makes BLAS take its buffers, the first generator seeds itself."""
    square = numpy.random.default_rng(1).random((64, 64), dtype=numpy.float32)
    numpy.linalg.norm(square @ square)
    json.dumps(numpy.zeros(4).tolist())


def rehearse():
    """Serves functions, failing ones too, so that the first real one pays for no first use.

    Often enough for the interpreter to have specialised the code on the way: what it still writes for later
    functions are pages that have to be put back.
    """
    output = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = io.StringIO()
    mailbox = gpuwhisk_mailbox.Mailbox(request=gpuwhisk_mailbox.LOAD | gpuwhisk_mailbox.CALL, entry=b"main")
    try:
        for value in ({"a": [1, "x", None, 0.5]}, {"fail": True}) * REHEARSALS:
            guest = Guest(mailbox, lambda: REHEARSAL, None)
            argument = b"__OW_REHEARSAL=1\0" + json.dumps(value).encode() + b"\0"
            mailbox.environment_length = argument.index(b"\0") + 1
            ctypes.memmove(ctypes.addressof(mailbox) + gpuwhisk_mailbox.Mailbox.arguments.offset, argument, len(argument))
            guest.serve_request()
            if guest.runtime.event_loop:
                guest.runtime.event_loop.close()
    finally:
        sys.stdout, sys.stderr = output
    sys.modules["asyncio"].set_event_loop(None)
    del sys.modules["main__"]
    del os.environ["__OW_REHEARSAL"]
    gpuwhisk_code.action_source.hold(None, None)
    os.remove("main__.py")  # A rehearsed error had it written.


def stand(library, channel, hello, readable, writable):
    """Stands while a template is made. Returns in each copy, which is to that process as a forked one is."""
    places = [text for path in readable for text in ("--read", path)]
    places += [text for path in writable for text in ("--write", path)]
    gpuwhisk_mailbox.put_texts(channel.mailbox.contents, places)
    seed_again()  # Its first use takes milliseconds, and memory that copies would not share.
    ctypes.pythonapi.PyOS_BeforeFork()
    library.gw_stand(ctypes.byref(hello), ctypes.byref(channel))
    ctypes.pythonapi.PyOS_AfterFork_Child()  # `random` seeds itself again, as everything does that asked for that.
    seed_again()


def seed_again():
    """For generators of random numbers that do not do so after a fork."""
    numpy = sys.modules.get("numpy")
    if numpy:
        numpy.random.seed()
    ssl = sys.modules.get("_ssl")
    if ssl:
        ssl.RAND_add(os.urandom(32), 32.0)
    tempfile = sys.modules.get("tempfile")
    if tempfile:
        tempfile._name_sequence = None


def files_in(folders):
    """Size and time of change of each file below the folders, by its path; without the source, which is written again."""
    found = {}
    for top in folders:
        for folder, _, names in os.walk(os.path.abspath(top)):
            for name in names:
                path = os.path.join(folder, name)
                status = os.lstat(path)
                if path != gpuwhisk_code.action_source.path:
                    found[path] = status.st_size, status.st_mtime_ns
    return found


def read_file(path):
    if path is None:
        return None
    with open(path, "rb") as file:
        return file.read()


def has_descriptor(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def main():
    library = gpuwhisk_mailbox.open_library(sys.argv[1])
    os.chdir(sys.argv[2])
    options = {"--package": [], "--read": [], "--write": [], "--channel": []}
    for name, path in zip(sys.argv[3::2], sys.argv[4::2]):
        options[name].append(path)
    loading = read_file(os.environ.pop("GPUWHISK_LOAD", None))
    channel = gpuwhisk_mailbox.Channel()
    library.gw_open_channel(ctypes.byref(channel))
    readable = [*SYSTEM_FOLDERS, *options["--read"]]
    writable = [*DEVICES, ".", *options["--write"]]
    # Before an import can start a thread.
    landlock = library.gw_enter_landlock(gpuwhisk_mailbox.paths(readable), gpuwhisk_mailbox.paths(writable))

    cuda = library.gw_make_cuda_context()  # Before the imports, which may look for it.
    channel_library = runtime.open_channel(options["--channel"][0]) if options["--channel"] else None
    learned = "GPUWHISK_LEARNED" in os.environ
    prepare_interpreter(options["--package"])
    offer(gpuwhisk_mailbox.RUNS_FD)
    for name in ALLOCATOR_VARIABLES:
        os.environ.pop(name, None)  # Processes that a function starts have their own needs.
    warm_up()
    rehearse()
    guest = Guest(
        channel.mailbox.contents,
        lambda: gpuwhisk_mailbox.read_code(channel.mailbox.contents.code),
        library.gw_reset_device,
    )
    guest.reseeds = learned
    guest.runtime.marks = runtime.launch_marks()
    entry = gpuwhisk_mailbox.Guest(guest.serve_request)
    hello = gpuwhisk_mailbox.Hello(
        worker=threading.get_native_id(),
        landlock=landlock,
        traces_mappings=1,
        cuda=cuda,
        guest=ctypes.cast(entry, ctypes.c_void_p).value,
    )
    stands = os.environ.pop("GPUWHISK_TEMPLATE", None)
    if loading:
        guest.load_ahead(loading)
    gc.collect()
    gc.freeze()  # A collection for a function does not touch, so dirty, what was here before.
    if stands:
        stand(library, channel, hello, readable, writable)
    if channel_library and has_descriptor(gpuwhisk_mailbox.RUNS_FD):
        run_environment.read_lazily(channel_library.take_body)
        guest.runtime.channel = channel_library
        guest.read = gpuwhisk_mailbox.address_of(library, "gw_read")
        hello.read_return = gpuwhisk_mailbox.address_of(library, "gw_read_return")
    library.gw_say_hello(ctypes.byref(hello), ctypes.byref(channel))
    faulthandler.enable()  # A crash leaves its traceback on stderr before the proxy takes over.
    library.gw_install_filter(1)
    library.gw_raise_ready(ctypes.byref(channel))
    library.gw_park(channel.state)


if __name__ == "__main__":
    main()
