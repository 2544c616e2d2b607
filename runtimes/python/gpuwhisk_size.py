"""The module `gpuwhisk` of actions: what the platform offers to them."""

import os
import sys

SIZE = 15


def offer(fd):
    """Makes `import gpuwhisk` work in actions. Sizes are reported to `fd`; None: nowhere, as where runs overlap."""
    module = type(sys)("gpuwhisk", "What the platform offers to an action.")

    def size(n):
        """Reports the size of the present run's input, by which its time is compared with that of other runs.

        A number of at least 0, of any unit. The last one of a run counts. To be called in the thread that calls the action.
        Does nothing for other values, and where runs overlap. Never raises.
        """
        try:
            n = float(n)
            if fd is None or not 0 <= n < float("inf"):
                return
            payload = b'{"size":%.17g}' % n
            os.write(fd, len(payload).to_bytes(4, "little") + bytes((SIZE, 0, 0, 0, 0)) + payload)
        except Exception:
            pass  # The run matters more than its size.

    module.size = size
    module.__all__ = ["size"]
    sys.modules["gpuwhisk"] = module
