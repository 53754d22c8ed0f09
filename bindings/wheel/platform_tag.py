"""The platform tag that built binaries deserve: it says which glibc they need."""

import re
import subprocess

# What every glibc system has. Whatever else a binary asks for must be inside it.
_GLIBC = re.compile(
    r"(libc|libm|libpthread|librt|libdl)\.so\.\d+|ld-linux(-x86-64|-aarch64)?\.so\.\d+"
)
_MACHINES = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}


class NotPortable(Exception):
    """A binary needs a library that other machines may lack."""


def _readelf(path):
    return subprocess.run(
        ["readelf", "--wide", "--file-header", "--dynamic", "--version-info", path],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    ).stdout


def needed_libraries(path):
    """The sonames that `path` asks the loader for."""
    return re.findall(r"\(NEEDED\)\s+Shared library: \[(.+?)\]", _readelf(path))


def needed_glibc(path):
    """The newest glibc version (major, minor) of which `path` wants a symbol."""
    text = _readelf(path)
    versions = [(int(a), int(b)) for a, b in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", text)]
    # The loader's promise to read packed relative relocations came with 2.36.
    if "GLIBC_ABI_DT_RELR" in text:
        versions.append((2, 36))
    return max(versions, default=(2, 17))


def platform_tag(binaries, may_need=()):
    """manylinux_MAJOR_MINOR_MACHINE for a set of ELF files.

    Args:
      binaries: paths.
      may_need: patterns of sonames that are allowed besides glibc's, for a part that is only opened
        where that library is.

    Raises:
      NotPortable: a binary needs another library, or the binaries are for several machines.
    """
    allowed = [_GLIBC, *map(re.compile, may_need)]
    machines = set()
    glibc = (2, 17)
    for path in binaries:
        for library in needed_libraries(path):
            if not any(pattern.fullmatch(library) for pattern in allowed):
                raise NotPortable(f"{path} needs {library}, which only some machines have")
        machines.add(re.search(r"Machine:\s+(.+)", _readelf(path)).group(1).strip())
        glibc = max(glibc, needed_glibc(path))
    if len(machines) != 1 or not machines <= _MACHINES.keys():
        raise NotPortable(f"the binaries are for {sorted(machines)}; expected one of {_MACHINES}")
    return f"manylinux_{glibc[0]}_{glibc[1]}_{_MACHINES[machines.pop()]}"
