"""Compiles the archives of Python actions, in a sandbox of the platform: no code of the action is run.

Speaks the framed protocol: an init brings an archive, a run answers `{"program", "report"}`: the archive in base64 with
compiled files added (empty if there are none), and the report of compile_packages. All files of the archive stay as they
are. An action may change its own files: the compiled ones are compared with their sources, by digest.
"""

import binascii
import gzip
import io
import json
import os
import posixpath
import sys
import tarfile
import zipfile
from importlib.util import cache_from_source

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compile_packages
import runtime

# Folders of modules that no action imports, such as those that each virtual environment has: an archive is extracted at each
# start, compiled files included.
LEFT_OUT = {"pip", "setuptools", "wheel", "pkg_resources", "_distutils_hack", "tests"}


def is_module(name):
    parts = name.split("/")
    return name.endswith(".py") and name != "__main__.py" and "__pycache__" not in parts and LEFT_OUT.isdisjoint(parts)


def compiled_name(name):
    return posixpath.join(posixpath.dirname(name), cache_from_source(posixpath.basename(name)))


def add_to_zip(data, folder, compile_folder):
    """The archive with the compiled files."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [entry.filename for entry in archive.infolist() if is_module(entry.filename) and not is_link(entry)]
        paths = {name: archive.extract(name, folder) for name in names}
    compile_folder()
    whole = io.BytesIO(data)
    with zipfile.ZipFile(whole, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, path in paths.items():
            compiled = cache_from_source(path)
            if os.path.exists(compiled):
                archive.write(compiled, compiled_name(name))
    return whole.getvalue()


def is_link(entry):
    return (entry.external_attr >> 28) == 0o12


def add_to_tar(data, folder, compile_folder):
    """The archive with the compiled files."""
    whole = io.BytesIO(gzip.decompress(data))
    paths = {}
    with tarfile.open(fileobj=whole) as archive:
        for entry in archive:
            name = posixpath.normpath(entry.name)
            if not entry.isfile() or not is_module(name) or name.startswith(("/", "../")):
                continue
            paths[name] = path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(archive.extractfile(entry).read())
    compile_folder()
    whole.seek(0)
    with tarfile.open(fileobj=whole, mode="a") as archive:
        for name, path in paths.items():
            compiled = cache_from_source(path)
            if os.path.exists(compiled):
                archive.add(compiled, compiled_name(name), filter=owned_by_none)
    return gzip.compress(whole.getvalue(), compresslevel=1)


def owned_by_none(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


class Compiler(runtime.Runtime):
    """Answers an init with whether the archive could be compiled, and runs with the result."""

    def init(self, request, message):
        report = {}

        def compile_folder():
            report.update(compile_packages.compile_folder(folder, compile_packages.CHECKED))

        folder = os.path.join(os.getcwd(), "archive")
        os.mkdir(folder)
        code = message["code"]
        data = code if isinstance(code, bytes) else binascii.a2b_base64(code)
        try:
            whole = (add_to_zip if data[:2] == b"PK" else add_to_tar)(data, folder, compile_folder)
        except Exception as error:  # The modules that read archives raise many, also for damaged data.
            self.answer(runtime.ERROR, request, runtime.error_payload("The archive cannot be read: %s" % error))
            return
        program = binascii.b2a_base64(whole, newline=False).decode() if report["compiled"] else ""
        self.result = json.dumps({"program": program, "report": report}).encode()
        self.answer(runtime.RESULT, request, b'{"ok":true}')

    def run(self, request, payload):
        self.answer(runtime.RESULT, request, self.result, b'{"us":0}')


def main():
    os.set_blocking(runtime.FD, True)
    runtime.write_all(runtime.FD, runtime.hello())
    compiler = Compiler(lambda data: runtime.write_all(runtime.FD, data))
    for kind, request, payload in runtime.read_frames(runtime.FD):
        compiler.handle(kind, request, payload)


if __name__ == "__main__":
    main()
