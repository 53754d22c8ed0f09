"""The licence texts of what is linked into the binaries, as the system's packages carry them."""

import glob
import os

# What is inside -> the Debian package whose copyright file covers it. Of a pattern, the newest.
_LINKED = {
    "abseil": "libabsl-dev",
    "c-ares": "libc-ares-dev",
    "cli11": "libcli11-dev",
    "fmt": "libfmt-dev",
    "gcc-runtime": "gcc-[0-9]*-base",  # libstdc++ and libgcc, with the runtime library exception
    "grpc": "libgrpc++-dev",  # with upb and address_sorting
    "openssl": "libssl-dev",
    "protobuf": "libprotobuf-dev",
    "re2": "libre2-dev",
    "spdlog": "libspdlog-dev",
    "zlib": "zlib1g-dev",
}


def _version(path):
    return [
        int(part) for part in os.path.basename(os.path.dirname(path)).split("-") if part.isdigit()
    ]


def linked_licences(documentation="/usr/share/doc"):
    """{file name: text} of the licence of each library that is linked statically.

    Raises:
      FileNotFoundError: a package's copyright file is missing, so the wheel may not be given away.
    """
    texts = {}
    for name, package in _LINKED.items():
        found = sorted(glob.glob(f"{documentation}/{package}/copyright"), key=_version)
        if not found:
            raise FileNotFoundError(
                f"no licence text of {name}: {documentation}/{package}/copyright is missing; "
                f"apt-get install --reinstall {package}"
            )
        with open(found[-1], "rb") as file:
            texts[f"{name}.txt"] = file.read()
    return texts
