"""Reports the progress of a training loop to gpuwhisk, which protects the training from functions on its GPU.

    import gpuwhisk_training

    for batch in batches:
        train(batch)
        gpuwhisk_training.step()

`wsk gpu workload run` sets the environment that this needs, and PYTHONPATH. Without that environment `step` does nothing.
"""

import os
import threading
import time

__all__ = ["step"]

# Shortest time between two reports, and longest of one, seconds.
_REPORT_EVERY = 1.0
_REPORT_TIMEOUT = 5.0


class _Meter:
    """The rate of steps between the ends of steps, so that it does not depend on when it is read."""

    def __init__(self):
        self._lock = threading.Lock()
        self._count = 0
        # The newest end of a step, and its number of steps.
        self._last_at = None
        self._last_count = 0
        # The end of a step up to which the rate was read.
        self._read_count = 0
        self._read_at = None
        self._rate = None

    def add(self, count):
        now = time.monotonic()
        with self._lock:
            self._count += count
            self._last_at = now
            self._last_count = count
            if self._read_at is None:
                # The time before the end of the first step includes the start of the training.
                self._read_at = now
                self._read_count = self._count

    def rate(self):
        """Steps per second since the last call, or since the first step, and whether the training stalls.

        None before the second step. Without a step since the last call it is the last rate. If the present step takes
        more than twice as long as the last ones, the training stalls, and it is the rate that this step can still reach.
        """
        with self._lock:
            if self._read_at is None:
                return None
            seconds = self._last_at - self._read_at
            if seconds > 0:
                self._rate = (self._count - self._read_count) / seconds
                self._read_at = self._last_at
                self._read_count = self._count
            if self._rate is None:
                return None
            silent = time.monotonic() - self._last_at
            if silent * self._rate > 2 * self._last_count:
                return self._last_count / silent, True
            return self._rate, False


class _Reporter:
    def __init__(self, url, auth, insecure):
        self._url = url
        self._auth = auth
        self._insecure = insecure
        self._pid = os.getpid()
        self._meter = _Meter()
        self._start = threading.Lock()
        self._thread = None

    def step(self, n):
        # A process that this one has forked, such as a loader of data, does not train.
        if os.getpid() != self._pid:
            return
        n = float(n)
        if not 0 < n < float("inf"):
            return
        self._meter.add(n)
        with self._start:
            if self._thread is not None:
                return
            self._thread = threading.Thread(target=self._run, name="gpuwhisk_training", daemon=True)
        self._thread.start()

    def _run(self):
        try:
            send = self._sender()
            goes_on = True
            while goes_on:
                time.sleep(_REPORT_EVERY)
                measured = self._meter.rate()
                if measured is not None:
                    goes_on = send(*measured)
        except Exception:
            pass  # The training matters more than its reports.

    def _sender(self):
        """A function that reports a rate and returns whether a later report may be accepted."""
        # Imported here: imports of some 50 ms that the training does not wait for.
        import base64
        import json
        import ssl
        import urllib.error
        import urllib.request

        context = ssl._create_unverified_context() if self._insecure else None
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        headers = {
            "Authorization": "Basic " + base64.b64encode(self._auth.encode()).decode(),
            "Content-Type": "application/json",
        }

        def send(rate, stalls):
            body = json.dumps({"rate": rate, "stalled": True} if stalls else {"rate": rate}).encode()
            request = urllib.request.Request(self._url, data=body, headers=headers, method="PUT")
            try:
                opener.open(request, timeout=_REPORT_TIMEOUT).close()
            except urllib.error.HTTPError as error:
                error.close()
                # The key is no longer valid, or the workload is not registered any more.
                return error.code not in (401, 403, 404)
            except Exception:
                pass  # The server may be reachable again later.
            return True

        return send


def _reporter():
    environ = os.environ
    workload, api = environ.get("GPUWHISK_WORKLOAD"), environ.get("GPUWHISK_WORKLOAD_API")
    # Of the processes of a distributed training one reports: all make the same steps.
    if not workload or not api or environ.get("RANK", "0") != "0":
        return None
    url = "%s/gpu/workloads/%s" % (api, workload)
    return _Reporter(url, environ.get("GPUWHISK_WORKLOAD_AUTH", ""), environ.get("GPUWHISK_WORKLOAD_INSECURE") == "1")


try:
    _active = _reporter()
except Exception:
    _active = None


def step(n=1):
    """Counts `n` finished steps, or samples, of the training. Never raises, and never waits for the network."""
    try:
        if _active is not None:
            _active.step(n)
    except Exception:
        pass
