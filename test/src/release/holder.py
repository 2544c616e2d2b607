# Does what systemd does for a service with a socket unit: holds listening sockets, and starts programs that get them.
# Reads JSON lines: {"start": [word, ...], "output": file} is answered with the process's number, {"wait": number} with its status.
import fcntl
import json
import os
import socket
import sys

first_passed = 3
sockets = []
for _ in range(int(sys.argv[1])):
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    made.listen(4096)
    sockets.append((fcntl.fcntl(made, fcntl.F_DUPFD, 100), made.getsockname()[1]))
    made.close()
print(json.dumps([port for _, port in sockets]), flush=True)


def start(words, output):
    child = os.fork()
    if child != 0:
        return child
    os.setsid()
    log = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for index, (descriptor, _) in enumerate(sockets):
        os.dup2(descriptor, first_passed + index)
    os.environ["LISTEN_PID"] = str(os.getpid())
    os.environ["LISTEN_FDS"] = str(len(sockets))
    os.execvp(words[0], words)


for line in sys.stdin:
    asked = json.loads(line)
    if "start" in asked:
        print(start(asked["start"], asked["output"]), flush=True)
    else:
        print(os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1]), flush=True)
