"""The end of the process that a Python action runs in."""

import os
import sys


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


def exit_code(leaving):
    code = leaving.code
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    sys.stderr.write("%s\n" % (code,))
    return 1


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
