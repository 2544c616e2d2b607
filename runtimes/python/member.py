"""One member of a training job: loads the action and calls it once.

Start: python -I -S -B -X utf8 member.py [folder...], as gpuwhisk_members does. Standard input is a file with the action
and its argument; the result goes to the descriptor that GPUWHISK_MEMBER_RESULT names.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from gpuwhisk_code import Refusal, load_source, print_error, source_of
from gpuwhisk_interpreter import prepare_interpreter
from gpuwhisk_process import end
from gpuwhisk_size import offer

sys.path.remove(HERE)

CHUNK_BYTES = 1024 * 1024


def read_given():
    """The file of standard input, which all members share, so that its position must not be moved."""
    parts = []
    at = 0
    while True:
        part = os.pread(0, CHUNK_BYTES, at)
        if not part:
            break
        parts.append(part)
        at += len(part)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return json.loads(b"".join(parts))


def awaited(result):
    if not hasattr(result, "__await__"):
        return result
    import asyncio

    async def finish():
        return await result

    return asyncio.run(finish())


def call(init, value):
    """The result of the action, or a dictionary with the reason why it failed."""
    name = init.get("main") or "main"
    try:
        action = load_source(source_of(init), name)
    except Refusal as refusal:
        return {"failed": str(refusal)}
    try:
        if init.get("entry"):
            awaited(getattr(sys.modules["main__"], init["entry"])())
        return {"result": awaited(action(value))}
    except Exception as error:
        print_error(error)
        return {"failed": "%s: %s" % (type(error).__name__, error)}


def main():
    fd = int(os.environ.pop("GPUWHISK_MEMBER_RESULT"))
    os.set_inheritable(fd, False)
    os.set_inheritable(int(os.environ["GPUWHISK_MEMBER_REPORT"]), False)
    given = read_given()
    prepare_interpreter(sys.argv[1:])
    offer(None)
    told = call(given["init"], given["value"])
    if "gpuwhisk_training" in sys.modules:
        sys.modules["gpuwhisk_training"]._flush()
    if "result" in told and not isinstance(told["result"], (dict, list)):
        told = {"failed": "The action did not return a dictionary or array."}
    try:
        data = json.dumps(told, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        told = {"failed": "The action's result cannot be written as JSON: %s" % error}
        data = json.dumps(told).encode()
    while data:
        data = data[os.write(fd, data) :]
    end(1 if "failed" in told else 0)


main()
