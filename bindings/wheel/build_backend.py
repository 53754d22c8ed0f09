"""PEP 517 and PEP 660 backend: `pip install .` runs Bazel. Needs no Python package.

The wheel holds the Python package with lib/liballring.so and lib/liballring_mpi.so in it, and the
programs hvdrun and hvdbench as scripts, so that pip puts the binaries themselves on PATH: nothing
stands between the shell and hvdrun that could touch its arguments or its environment.

An editable installation points at bindings/python, into which the libraries are copied.

ALLRING_BAZEL_FLAGS adds flags for Bazel, as in tools/build.
"""

import io
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import archive  # noqa: E402
import licences  # noqa: E402
import platform_tag  # noqa: E402

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_PACKAGE = os.path.join(_ROOT, "bindings", "python", "allring")

# Target -> where its output lies under bazel-bin and in a wheel.
_LIBRARIES = {
    "//bindings/c:liballring.so": "bindings/c/liballring.so",
    "//bindings/mpi:liballring_mpi.so": "bindings/mpi/liballring_mpi.so",
}
_PROGRAMS = {
    "//launcher:hvdrun": "launcher/hvdrun",
    "//benchmarks:hvdbench": "benchmarks/hvdbench",
}
# liballring_mpi.so is opened only in jobs that MPI started or that ask for MPI.
_MAY_NEED = [r"libmpi\.so\.\d+"]


def _project():
    if sys.version_info < (3, 11):
        raise SystemExit("building allring needs Python 3.11 or newer; its wheel installs on 3.9")
    import tomllib

    with open(os.path.join(_ROOT, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)["project"]
    with open(os.path.join(_ROOT, "VERSION"), encoding="utf-8") as file:
        project["version"] = file.read().strip()
    return project


def _metadata(project, licence_files):
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License: {project['license']}",
        *(f"License-File: {path}" for path in sorted(licence_files)),
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {requirement}" for requirement in project["dependencies"]),
        "Description-Content-Type: text/markdown",
    ]
    for extra, requirements in project.get("optional-dependencies", {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {r}; extra == '{extra}'" for r in requirements]
    with open(os.path.join(_ROOT, project["readme"]), encoding="utf-8") as file:
        return "\n".join(lines) + "\n\n" + file.read()


class _Bazel:
    """Builds in the release configuration; from a source distribution it leaves nothing behind."""

    def __init__(self):
        self._bazel = shutil.which("bazel")
        if self._bazel is None:
            raise SystemExit(
                "building allring needs Bazel and some libraries; run tools/setup as root, or "
                "apt-get install the packages that tools/packages.txt lists"
            )
        self._flags = ["--config=opt", *shlex.split(os.environ.get("ALLRING_BAZEL_FLAGS", ""))]
        # Without .git the tree is an unpacked source distribution, in a folder that pip deletes.
        self._temporary = not os.path.exists(os.path.join(_ROOT, ".git"))
        if self._temporary:
            self._flags.append("--disk_cache=")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._temporary:
            subprocess.run([self._bazel, "clean", "--expunge"], cwd=_ROOT, check=False)

    def build(self, targets):
        """{target: path of its output}, for {target: path under bazel-bin}."""
        subprocess.run([self._bazel, "build", *self._flags, *targets], cwd=_ROOT, check=True)
        info = subprocess.run(
            [self._bazel, "info", *self._flags, "bazel-bin"],
            cwd=_ROOT,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        bin_directory = info.stdout.strip()
        return {target: os.path.join(bin_directory, path) for target, path in targets.items()}


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def _stripped(path):
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "stripped")
        subprocess.run(["strip", "--strip-unneeded", "-o", out, path], check=True)
        return _read(out)


def _python_files():
    files = {}
    for directory, subdirectories, names in os.walk(_PACKAGE):
        # lib holds what an editable installation copied there.
        subdirectories[:] = [d for d in subdirectories if d not in ("__pycache__", "lib")]
        for name in names:
            if name.endswith((".py", ".pyi")) or name == "py.typed":
                path = os.path.join(directory, name)
                inside = os.path.relpath(path, os.path.dirname(_PACKAGE))
                files[inside] = _read(path)
    return files


def _licence_files():
    linked = licences.linked_licences()
    return {
        "LICENSE": _read(os.path.join(_ROOT, "LICENSE")),
        **{f"linked/{name}": text for name, text in linked.items()},
    }


def _write(directory, project, files, programs, tag, licence_files):
    """Writes a wheel that holds `files`, and `programs` {target: path} as scripts."""
    scripts = f"{project['name']}-{project['version']}.data/scripts"
    files = dict(files)
    executables = []
    for path in programs.values():
        inside = f"{scripts}/{os.path.basename(path)}"
        files[inside] = _stripped(path)
        executables.append(inside)
    executables += [path for path in files if path.endswith(".so")]
    return archive.write_wheel(
        directory,
        project["name"],
        project["version"],
        tag,
        files,
        _metadata(project, licence_files),
        licence_files,
        executables,
    )


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = _project()
    with _Bazel() as bazel:
        built = bazel.build({**_LIBRARIES, **_PROGRAMS})
        tag = "py3-none-" + platform_tag.platform_tag(built.values(), _MAY_NEED)
        files = _python_files()
        for target in _LIBRARIES:
            files[f"allring/lib/{os.path.basename(built[target])}"] = _stripped(built[target])
        programs = {target: built[target] for target in _PROGRAMS}
        return _write(wheel_directory, project, files, programs, tag, _licence_files())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    project = _project()
    with _Bazel() as bazel:
        built = bazel.build({**_LIBRARIES, **_PROGRAMS})
        lib = os.path.join(_PACKAGE, "lib")
        os.makedirs(lib, exist_ok=True)
        for target in _LIBRARIES:
            path = os.path.join(lib, os.path.basename(built[target]))
            # In one step, so that a running job keeps the file that it has.
            shutil.copyfile(built[target], path + ".new")
            os.chmod(path + ".new", 0o755)
            os.replace(path + ".new", path)
        tag = "py3-none-" + platform_tag.platform_tag(built.values(), _MAY_NEED)
        files = {"allring.pth": (os.path.dirname(_PACKAGE) + "\n").encode()}
        programs = {target: built[target] for target in _PROGRAMS}
        # Only this machine uses it, which has the libraries' licences.
        return _write(wheel_directory, project, files, programs, tag, {})


def build_sdist(sdist_directory, config_settings=None):
    project = _project()
    listed = subprocess.run(
        ["git", "ls-files", "-z"],
        cwd=_ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    stem = f"{project['name']}-{project['version']}"

    def anonymous(entry):
        entry.mtime = 0
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(os.path.join(sdist_directory, stem + ".tar.gz"), "w:gz") as sdist:
        for path in filter(None, listed.split("\0")):
            sdist.add(
                os.path.join(_ROOT, path), f"{stem}/{path}", recursive=False, filter=anonymous
            )
        text = _metadata(project, ["LICENSE"]).encode()
        entry = tarfile.TarInfo(f"{stem}/PKG-INFO")
        entry.size = len(text)
        sdist.addfile(entry, io.BytesIO(text))
    return stem + ".tar.gz"
