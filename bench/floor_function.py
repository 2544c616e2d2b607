# A function's process of floor.mjs: each frame on descriptor 3 is a length, 4 bytes, and JSON; so is each answer.
import json
import os

CHANNEL = 3
HEADER_BYTES = 4


def main(args):
    return {}


def serve():
    data = b''
    while True:
        chunk = os.read(CHANNEL, 65536)
        if not chunk:
            return
        data += chunk
        if len(data) < HEADER_BYTES or len(data) < HEADER_BYTES + int.from_bytes(data[:HEADER_BYTES], 'little'):
            continue
        parameters = json.loads(data[HEADER_BYTES:])
        data = b''
        result = json.dumps(main(parameters)).encode()
        os.write(CHANNEL, len(result).to_bytes(HEADER_BYTES, 'little') + result)


serve()
