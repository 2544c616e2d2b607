"""The run of a training job: its members, processes that run one action together.

The members get the variables that torch.distributed reads. What they print becomes the log of the run, each line after the
number of its member: `[0] step 1`.
"""

import json
import math
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "member.py")

LOOK_S = 0.1
REPORT_S = 1.0
# From SIGTERM to SIGKILL for members whose run has failed, and how long output is read after the end of a member.
TERM_S = 5.0
DRAIN_S = 1.0
READ_BYTES = 65536
MAX_LINE_BYTES = 65536
MAX_RESULT_BYTES = 64 * 1024 * 1024
MAX_REASON = 500


class Lines:
    """Splits what comes from a pipe into lines, and cuts those that are too long."""

    def __init__(self, take):
        self.take = take
        self.rest = b""

    def push(self, data):
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.take(line)
        if len(self.rest) > MAX_LINE_BYTES:
            self.finish()

    def finish(self):
        rest, self.rest = self.rest, b""
        if rest:
            self.take(rest)


class Member:
    """One process of the job, with the pipes that it writes to."""

    def __init__(self, rank):
        self.rank = rank
        self.process = None
        self.pipes = {}  # By file descriptor, what takes the bytes.
        self.joined = False
        self.steps = 0
        self.rate = None
        self.stalled = False
        self.last_error = ""
        self.result = b""

    def start(self, command, given, folder, environment):
        readers, writers = [], []
        try:
            for _ in range(4):
                reader, writer = os.pipe()
                readers.append(reader)
                writers.append(writer)
                os.set_blocking(reader, False)
            out, error, report, result = readers
            own = {"GPUWHISK_MEMBER_REPORT": str(writers[2]), "GPUWHISK_MEMBER_RESULT": str(writers[3])}
            self.process = subprocess.Popen(
                command,
                stdin=given,
                stdout=writers[0],
                stderr=writers[1],
                pass_fds=writers[2:],
                cwd=folder,
                env={**environment, **own},
            )
        except BaseException:
            for reader in readers:
                os.close(reader)
            raise
        finally:
            for writer in writers:
                os.close(writer)
        lines = {out: Lines(self.print_to(sys.stdout)), error: Lines(self.take_error), report: Lines(self.take_report)}
        self.pipes = {fd: (split.push, split.finish) for fd, split in lines.items()}
        self.pipes[result] = (self.take_result, lambda: None)

    def print_to(self, stream):
        prefix = b"[%d] " % self.rank

        def show(line):
            stream.buffer.write(prefix + line + b"\n")
            stream.buffer.flush()

        return show

    def take_error(self, line):
        if line.strip():
            self.last_error = line.decode("utf-8", "replace").strip()[:MAX_REASON]
        self.print_to(sys.stderr)(line)

    def take_report(self, line):
        try:
            told = json.loads(line)
            steps, rate = float(told.get("steps", 0)), float(told.get("rate", self.rate or 0))
            if not (math.isfinite(steps) and math.isfinite(rate)):
                return
            self.joined = self.joined or told.get("joined") is True
            self.steps = max(self.steps, steps)
            self.rate = rate if "rate" in told else self.rate
            self.stalled = told.get("stalled") is True
        except (AttributeError, TypeError, ValueError):
            pass  # The code of the job wrote there.

    def take_result(self, data):
        if len(self.result) < MAX_RESULT_BYTES:
            self.result += data

    def read(self, fd):
        """Reads once; false at the end of the pipe."""
        try:
            data = os.read(fd, READ_BYTES)
        except BlockingIOError:
            return True
        push, finish = self.pipes[fd]
        if data:
            push(data)
            return True
        finish()
        return False

    def send(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)

    def failure(self):
        """Why the member failed; None if it has not, or runs."""
        code = self.process.poll()
        if code is None:
            return None
        if code < 0:
            return "Member %d was ended by %s." % (self.rank, signal_name(-code))
        told = self.told()
        if code == 0 and "result" in told:
            return None
        reason = told.get("failed") or self.last_error or "it gave no result"
        return "Member %d ended with exit code %d: %s" % (self.rank, code, reason)

    def told(self):
        try:
            told = json.loads(self.result)
        except ValueError:
            return {}
        return told if isinstance(told, dict) else {}


def signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Members:
    """The members of one run, by the variables GPUWHISK_JOB_* of the container."""

    def __init__(self, folders, imports):
        self.folders = folders
        self.imports = imports
        self.count = int(os.environ["GPUWHISK_JOB_MEMBERS"])
        self.rendezvous_s = int(os.environ["GPUWHISK_JOB_RENDEZVOUS_MS"]) / 1000
        self.code = None
        self.members = []
        self.asked_to_stop = threading.Event()

    def load(self, init):
        """Keeps the code, which each member loads itself."""
        self.code = {name: init[name] for name in ("code", "binary", "main", "entry") if name in init}
        if isinstance(init["code"], bytes):
            import binascii

            self.code["code"] = binascii.b2a_base64(init["code"], newline=False).decode()

    def stop(self):
        """Asks the members to end. The caller ends the container if they take too long."""
        self.asked_to_stop.set()

    def run(self, value, report):
        """Runs the members to their end. Returns the result as bytes of JSON; calls `report` with the progress."""
        try:
            self.start(value)
            end, reason = self.watch(report)
        except Exception:
            self.end_all()
            raise
        report({**self.progress(), **({"end": end} if end else {})})
        if reason is not None:
            return json.dumps({"error": reason}).encode()
        # A member that was asked to stop may have ended without a result.
        return json.dumps(self.members[0].told().get("result", {})).encode()

    def start(self, value):
        command = [sys.executable, "-I", "-S", "-B", "-X", "utf8", PROGRAM, *self.folders]
        port = free_port()
        with tempfile.TemporaryFile(dir=os.getcwd()) as given:
            given.write(json.dumps({"init": self.code, "value": {} if value is None else value}).encode())
            given.flush()
            for rank in range(self.count):
                folder = os.path.join(os.getcwd(), "member%d" % rank)
                os.makedirs(folder, exist_ok=True)
                member = Member(rank)
                member.start(command, given, folder, self.environment(rank, port))
                self.members.append(member)

    def environment(self, rank, port):
        own = {
            "RANK": rank,
            "LOCAL_RANK": rank,
            "WORLD_SIZE": self.count,
            "LOCAL_WORLD_SIZE": self.count,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
        }
        imports = {"GPUWHISK_IMPORTS": self.imports} if self.imports else {}
        return {**os.environ, **{name: str(one) for name, one in own.items()}, **imports}

    def watch(self, report):
        """Waits for the end of all members. Returns how the run ended, None for its own end, and why it failed, None if not."""
        begun = time.monotonic()
        reported = 0.0
        asked = False
        with selectors.DefaultSelector() as selector:
            for member in self.members:
                for fd in member.pipes:
                    selector.register(fd, selectors.EVENT_READ, member)
            while True:
                self.read(selector)
                failed = None if asked else self.failed()
                if failed is not None:
                    # What is still in its pipes may be its result, or tells why it has failed.
                    self.drain(selector)
                    failed = self.failed()
                if failed is not None:
                    self.end_all(selector)
                    return "died", failed
                if all(member.process.poll() is not None for member in self.members):
                    self.drain(selector)
                    return ("stopped", self.failed(excused=(0, -signal.SIGTERM))) if asked else (None, None)
                now = time.monotonic()
                missing = [member.rank for member in self.members if not member.joined]
                if self.count > 1 and 0 < self.rendezvous_s < now - begun and missing and not asked:
                    self.end_all(selector)
                    return "rendezvous", missed(missing, self.rendezvous_s)
                if self.asked_to_stop.is_set() and not asked:
                    asked = True
                    for member in self.members:
                        member.send(signal.SIGTERM)
                if now - reported >= REPORT_S:
                    reported = now
                    report(self.progress())

    def read(self, selector):
        if not selector.get_map():
            time.sleep(LOOK_S)
            return
        for key, _ in selector.select(LOOK_S):
            if not key.data.read(key.fd):
                selector.unregister(key.fd)
                os.close(key.fd)

    def drain(self, selector):
        """Reads what ended members have left in their pipes. Processes that they started may hold the pipes open."""
        until = time.monotonic() + DRAIN_S
        ended = lambda: [key for key in selector.get_map().values() if key.data.process.poll() is not None]
        while time.monotonic() < until and ended():
            self.read(selector)

    def failed(self, excused=()):
        """Why a member has failed; one that a signal ended comes first, as others fail by its end. None: none has.

        `excused`: exit codes that are no failures, as of members that were asked to end.
        """
        ended = [(member.process.poll(), member) for member in self.members]
        reasons = [(code, member.failure()) for code, member in ended if code not in excused]
        failed = sorted((code >= 0, reason) for code, reason in reasons if reason is not None)
        return failed[0][1] if failed else None

    def end_all(self, selector=None):
        until = time.monotonic() + TERM_S
        for member in self.members:
            member.send(signal.SIGTERM)
        while time.monotonic() < until and any(member.process.poll() is None for member in self.members):
            if selector:
                self.read(selector)
            else:
                time.sleep(LOOK_S)
        for member in self.members:
            member.send(signal.SIGKILL)
            member.process.wait()
        if selector:
            self.drain(selector)

    def progress(self):
        """The progress of the job: that of member 0, and how many members have met."""
        first = self.members[0]
        told = {"joined": sum(member.joined for member in self.members), "steps": first.steps, "stalled": first.stalled}
        return told if first.rate is None else {**told, "rate": first.rate}


def missed(missing, seconds):
    names = "Member %d was" % missing[0] if len(missing) == 1 else "Members %s were" % ", ".join(map(str, missing))
    return "%s not at the rendezvous within %g s (gpuwhisk_training.joined or step)." % (names, seconds)
