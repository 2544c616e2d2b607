"""Runs the code of a Python action from its own files, outside of the platform, for a debugger (debugpy).

Takes a run as a line of JSON on standard input, and answers with a line of JSON on descriptor 3.
"""

import json
import os
import runpy
import sys
import time
import traceback

import debugpy

RUNTIME = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python")
sys.path.insert(1, RUNTIME)
from gpuwhisk_size import offer

sys.path.remove(RUNTIME)


def tell(message):
    os.write(3, (json.dumps(message) + "\n").encode())


def load(source, is_folder, name):
    """The function that the code defines, from its present contents."""
    folder = source if is_folder else os.path.dirname(source)
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None) or ""
        if path.startswith(folder + os.sep) and "site-packages" not in path:
            del sys.modules[module.__name__]
    sys.path[0] = folder
    found = runpy.run_path(os.path.join(source, "__main__.py") if is_folder else source, run_name="main__").get(name)
    if not callable(found):
        raise TypeError("There is no function '%s'." % name)
    return found


def run(request):
    os.environ.update(request["env"])
    try:
        action = load(request["source"], request["isFolder"], request["main"])
        if not debugpy.is_client_connected():
            tell({"waiting": True})
            debugpy.wait_for_client()
        started = time.monotonic()
        result = action(request["value"])
        if hasattr(result, "__await__"):
            import asyncio

            async def awaited():
                return await result

            result = asyncio.run(awaited())
        taken = (time.monotonic() - started) * 1000
        is_error = isinstance(result, dict) and "error" in result
        tell({"ok": not is_error, "result": result, "runMs": taken})
    except BaseException:
        tell({"ok": False, "error": traceback.format_exc()})
    sys.stdout.flush()
    sys.stderr.flush()


offer(None)  # `import gpuwhisk` works as in the platform; no size is told.
host, port = debugpy.listen(("127.0.0.1", 0))
tell({"url": "%s:%d" % (host, port)})
for line in sys.stdin:
    run(json.loads(line))
