"""The code of a Python action: from what an init brings to the function that is called."""

import os
import sys

from gpuwhisk_process import end, exit_code

HERE = os.path.dirname(os.path.abspath(__file__))
FAILED_TO_BUILD = "The action failed to generate or locate a binary. See logs for details."
FAILED_TO_START = "Cannot start action. Check logs for details."


def own_text_of(error):
    try:
        return str(error)
    except Exception:
        return ""  # The action's own error, which cannot say what it is.


def text_of(error):
    """The error's text, as OpenWhisk's runtime tells it: with the type only where the text alone says too little."""
    text = own_text_of(error)
    return text if text and not isinstance(error, KeyError) else typed_text_of(error)


def typed_text_of(error):
    """Type and text of an error, as the last line of a traceback has them."""
    text = own_text_of(error)
    return "%s: %s" % (type(error).__name__, text) if text else type(error).__name__


class Refusal(Exception):
    """An answer of type error, with its text."""


def not_started(error):
    """The refusal of an action that raised while it was loaded: OpenWhisk's text, and the error's."""
    return Refusal("%s %s" % (FAILED_TO_START, typed_text_of(error)[:1000]))


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
    """Prints a traceback without the frames that called into the action. The interpreter's own hook needs no imports."""
    action_source.write()
    trace = after = error.__traceback__
    while trace:
        own = trace.tb_frame.f_code.co_filename.startswith(HERE + os.sep)
        trace = trace.tb_next
        if own:
            after = trace
    error = error.with_traceback(after)
    sys.__excepthook__(type(error), error, error.__traceback__)
    if isinstance(error, ModuleNotFoundError):
        sys.stderr.write(missing_module(error))


def missing_module(error):
    """A line with the remedy for a module that is not there; empty for one that requirements could not bring."""
    name = error.name
    if not isinstance(name, str) or not name or "." in name or name in getattr(sys, "stdlib_module_names", ()):
        return ""
    line = """If the package of '%s' has the same name, add -a requirements '["%s"]' to wsk action create or update.\n"""
    return line % (name, name)


def source_of(message):
    """The source in the code of an init, whose archive, as bytes or base64, is unpacked. Raises Refusal."""
    code = message.pop("code")
    if not message.get("binary"):
        return code.encode("utf-8", "surrogatepass")
    if isinstance(code, bytes):
        return unpack(code)
    import binascii

    try:
        data = binascii.a2b_base64(code)
    except binascii.Error as error:
        raise Refusal("cannot decode the request: %s" % error)
    return unpack(data)


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
        raise not_started(error) from error
    except SystemExit as leaving:
        end(exit_code(leaving))


def after_restore():
    """The function of that name in the action's module, which is called in each copy of its loaded code; None without one."""
    function = getattr(sys.modules.get("main__"), "after_restore", None)
    return function if callable(function) else None


def is_archive(data):
    return data[:4] == b"PK\x03\x04" or data[:2] == b"\x1f\x8b"


def unpack(data):
    """Extracts an archive, activates its virtualenv, and returns the source of its `__main__.py`."""
    if not is_archive(data):
        return data  # OpenWhisk's runtime takes what is no archive for a source file.
    sys.path.insert(0, HERE)
    import gpuwhisk_archive

    sys.path.remove(HERE)
    try:
        return gpuwhisk_archive.open_action(data, os.getcwd())
    except gpuwhisk_archive.Broken as broken:
        sys.stderr.write("%s\n" % broken)
    except Exception as error:
        print_error(error)
    raise Refusal(FAILED_TO_BUILD)
