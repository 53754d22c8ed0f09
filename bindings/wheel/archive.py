"""Writes a wheel (PEP 427), byte for byte the same for the same content."""

import base64
import hashlib
import os
import zipfile


def write_wheel(directory, name, version, tag, files, metadata, licences, executables=()):
    """Writes DIRECTORY/NAME-VERSION-TAG.whl and returns its file name.

    Args:
      directory: where.
      name: the distribution's name.
      version: its version.
      tag: PYTHON-ABI-PLATFORM.
      files: {path in the wheel: bytes}.
      metadata: the text of METADATA.
      licences: {path under dist-info/licenses: bytes}.
      executables: the paths among `files` that are to be executable.
    """
    info = f"{name}-{version}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: {name}\nRoot-Is-Purelib: false\nTag: {tag}\n"
    content = dict(files)
    content[f"{info}/METADATA"] = metadata.encode()
    content[f"{info}/WHEEL"] = wheel.encode()
    for path, text in licences.items():
        content[f"{info}/licenses/{path}"] = text
    record = []
    for path, data in sorted(content.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(data)}\n")
    record.append(f"{info}/RECORD,,\n")

    file_name = f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(directory, file_name), "w") as archive:
        for path in [*sorted(content), f"{info}/RECORD"]:
            # The earliest date that a zip file can hold.
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if path in executables else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            data = content[path] if path in content else "".join(record).encode()
            archive.writestr(entry, data)
    return file_name
