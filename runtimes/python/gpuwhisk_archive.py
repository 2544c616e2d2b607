"""Opens the archives that Python actions come in: a zip or tar.gz with `__main__.py` at its root."""

import io
import os
import stat
import sys


class Broken(Exception):
    """The archive is not an action; the text says why."""


def open_action(data, folder):
    """Extracts the archive into `folder`, activates its virtualenv, and returns the source of `__main__.py`."""
    extract(data, folder)
    virtualenv = os.path.join(folder, "virtualenv")
    if os.path.isdir(virtualenv):
        activate(virtualenv)
    try:
        with open(os.path.join(folder, "__main__.py"), "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise Broken("Zip file does not include __main__.py")


def extract(data, folder):
    if data[:2] == b"PK":
        extract_zip(data, folder)
    else:
        extract_tar(data, folder)


def extract_zip(data, folder):
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist():
                mode = entry.external_attr >> 16
                if stat.S_ISLNK(mode):
                    extract_link(archive, entry, folder)
                    continue
                path = archive.extract(entry, folder)
                if mode & 0o111 and not entry.is_dir():
                    os.chmod(path, mode & 0o777 | 0o600)
    except (zipfile.BadZipFile, EOFError) as error:
        raise Broken("Zip file cannot be read: %s" % error)


def extract_link(archive, entry, folder):
    """A virtualenv holds symbolic links, which zipfile would write as files."""
    path = os.path.normpath(os.path.join(folder, entry.filename))
    if not path.startswith(folder + os.sep):
        raise Broken("Zip file has a link outside: %s" % entry.filename)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(archive.read(entry).decode(), path)


def extract_tar(data, folder):
    import tarfile

    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            if hasattr(tarfile, "tar_filter"):
                archive.extractall(folder, filter="tar")
            else:
                archive.extractall(folder)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise Broken("Archive cannot be read: %s" % error)


def activate(virtualenv):
    for scripts in ("bin", "Scripts"):
        path = os.path.join(virtualenv, scripts, "activate_this.py")
        if os.path.isfile(path):
            with open(path, "rb") as file:
                exec(compile(file.read(), path, "exec"), {"__file__": path, "__name__": "activate_this"})
            return
    # One made by `python -m venv` has no activate_this.py; its packages are all that is needed.
    for library in sorted(os.listdir(virtualenv)):
        found = find_site_packages(os.path.join(virtualenv, library))
        if found:
            sys.path.insert(1, found)
            return
    raise Broken("Invalid virtualenv. Zip file does not include 'activate_this.py'.")


def find_site_packages(library):
    if not os.path.isdir(library):
        return None
    for folder in ["."] + sorted(os.listdir(library)):
        found = os.path.join(library, folder, "site-packages")
        if os.path.isdir(found):
            return os.path.normpath(found)
    return None
