"""Reports the progress of a training loop to gpuwhisk: of a workload beside functions, or of a training job.

    import gpuwhisk_training

    gpuwhisk_training.joined()  # A job of several members: after its rendezvous.
    for batch in batches:
        train(batch)
        gpuwhisk_training.step()
        if gpuwhisk_training.stopping():
            break  # After a checkpoint.

`wsk gpu workload run` sets the environment that this needs, and PYTHONPATH. Members of a training job have both. Without
that environment the functions do nothing.
"""

import os
import threading
import time

__all__ = ["joined", "step", "stopping"]

# Shortest time between two reports, and longest of one, seconds.
_REPORT_EVERY = 1.0
_REPORT_TIMEOUT = 5.0
# Shortest step that can stall the training, seconds: pauses between short steps, as for a checkpoint, are usual.
_STALLS_AFTER = 1.0
# Shortest time without a step after which a job is told to stall, seconds, and so many usual steps, and longest pauses until then.
_HANGS_AFTER, _HANGS_STEPS, _HANGS_PAUSES = 60.0, 10, 2


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
        self._longest_pause = 0.0

    @property
    def count(self):
        with self._lock:
            return self._count

    def add(self, count):
        now = time.monotonic()
        with self._lock:
            self._count += count
            if self._last_at is not None:
                self._longest_pause = max(self._longest_pause, now - self._last_at)
            self._last_at = now
            self._last_count = count
            if self._read_at is None:
                # The time before the end of the first step includes the start of the training.
                self._read_at = now
                self._read_count = self._count

    def rate(self):
        """Steps per second since the last call, or since the first step, and whether the training stalls.

        None before the second step. Without a step since the last call it is the last rate. If the present step takes
        more than twice as long as the last ones, and more than a second, the training stalls, and it is the rate that this step can still reach.
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
            if silent > _STALLS_AFTER and silent * self._rate > 2 * self._last_count:
                return self._last_count / silent, True
            return self._rate, False


    def hangs(self):
        """Whether the training may hang: it makes no step for far longer than its steps, and its pauses between them, have taken.

        A job that is looked at now and then must not look ill while it evaluates or writes a checkpoint.
        """
        with self._lock:
            if self._last_at is None or self._rate is None:
                return False
            usual = self._last_count / self._rate
            silent = time.monotonic() - self._last_at
            return silent > max(_HANGS_AFTER, _HANGS_STEPS * usual, _HANGS_PAUSES * self._longest_pause)


class _Reporter:
    """Counts steps, and reports them in a thread by the function that `make_sender` returns.

    That function gets the number of steps and what `_Meter.rate` returns, and returns whether a later report may be accepted.
    """

    def __init__(self, make_sender):
        self._make_sender = make_sender
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
            send = self._make_sender()
            goes_on = True
            while goes_on:
                time.sleep(_REPORT_EVERY)
                goes_on = send(self._meter.count, self._meter.rate())
        except Exception:
            pass  # The training matters more than its reports.


class _MemberReporter(_Reporter):
    """Reports to the process that watches the members of a training job, through a pipe."""

    def __init__(self, fd):
        super().__init__(lambda: self._send)
        self._fd = fd
        self._has_joined = False
        os.set_blocking(fd, False)

    def joined(self):
        if not self._has_joined and os.getpid() == self._pid:
            self._has_joined = True
            self._write(b'{"joined":true}\n')

    def step(self, n):
        self.joined()
        super().step(n)

    def flush(self):
        if self._meter.count > 0 and os.getpid() == self._pid:
            self._send(self._meter.count, self._meter.rate())

    def _send(self, count, measured):
        rate = b"" if measured is None else b',"rate":%.17g' % measured[0]
        stalled = b',"stalled":true' if self._meter.hangs() else b""
        self._write(b'{"joined":true,"steps":%.17g%s%s}\n' % (count, rate, stalled))
        return True

    def _write(self, line):
        try:
            os.write(self._fd, line)
        except BlockingIOError:
            pass  # The reader is late; the next report has all that this one has.


def _api_sender(url, auth, insecure):
    """A function that reports a workload's rate to the API."""
    # Imported here: imports of some 50 ms that the training does not wait for.
    import base64
    import json
    import ssl
    import urllib.error
    import urllib.request

    context = ssl._create_unverified_context() if insecure else None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    headers = {
        "Authorization": "Basic " + base64.b64encode(auth.encode()).decode(),
        "Content-Type": "application/json",
    }

    def send(_, measured):
        if measured is None:
            return True
        rate, stalls = measured
        body = json.dumps({"rate": rate, "stalled": True} if stalls else {"rate": rate}).encode()
        request = urllib.request.Request(url, data=body, headers=headers, method="PUT")
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
    if "GPUWHISK_MEMBER_REPORT" in environ:
        return _MemberReporter(int(environ["GPUWHISK_MEMBER_REPORT"]))
    workload, api = environ.get("GPUWHISK_WORKLOAD"), environ.get("GPUWHISK_WORKLOAD_API")
    # Of the processes of a distributed training one reports: all make the same steps.
    if not workload or not api or environ.get("RANK", "0") != "0":
        return None
    url = "%s/gpu/workloads/%s" % (api, workload)
    auth, insecure = environ.get("GPUWHISK_WORKLOAD_AUTH", ""), environ.get("GPUWHISK_WORKLOAD_INSECURE") == "1"
    return _Reporter(lambda: _api_sender(url, auth, insecure))


try:
    _active = _reporter()
except Exception:
    _active = None

# Set once the platform has asked the job to stop; None before the first question.
_asked = None


def step(n=1):
    """Counts `n` finished steps, or samples, of the training. Never raises, and never waits for the network."""
    try:
        if _active is not None:
            _active.step(n)
    except Exception:
        pass


def joined():
    """Tells that this member of a training job has met the others. The first step tells so, too. Never raises."""
    try:
        if isinstance(_active, _MemberReporter):
            _active.joined()
    except Exception:
        pass


def _flush():
    """Reports the last steps of a member that ends."""
    if isinstance(_active, _MemberReporter):
        _active.flush()


def stopping():
    """Whether the platform has asked the job to stop: time for a checkpoint and an end.

    From the first call on SIGTERM does not end the process any more. To be called in the main thread. Never raises.
    """
    global _asked
    try:
        if _asked is None and isinstance(_active, _MemberReporter):
            import signal

            _asked = threading.Event()
            signal.signal(signal.SIGTERM, lambda *_: _asked.set())
        return _asked is not None and _asked.is_set()
    except Exception:
        return False
