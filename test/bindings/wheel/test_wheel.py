"""The wheel, as a user gets it: built, looked into, installed into an empty environment, run."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bindings" / "wheel"))
import archive  # noqa: E402
import licences  # noqa: E402
import platform_tag  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # the first build compiles everything
    pytest.mark.skipif(sys.version_info < (3, 11), reason="building wants Python 3.11"),
]


def run(*command, **options):
    result = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=options.pop("timeout", 120),
        **options,
    )
    assert result.returncode == 0, f"{command} said:\n{result.stdout}"
    return result.stdout


def make_wheel(directory):
    program = "import build_backend, sys; build_backend.build_wheel(sys.argv[1])"
    run(
        sys.executable, "-c", program, directory,
        cwd=ROOT / "bindings" / "wheel", timeout=800,
    )  # fmt: skip
    (wheel,) = directory.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return make_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    directory = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(directory)
    return directory


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A Python environment that holds the wheel and nothing else."""
    environment = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", environment)
    python = environment / "bin" / "python"
    # numpy, the one dependency, is not what is tested here.
    run(python, "-m", "pip", "install", "--no-index", "--no-deps", wheel)
    return environment


def libraries(unpacked):
    return sorted((unpacked / "allring" / "lib").glob("*.so"))


def programs(unpacked):
    return [next(unpacked.glob(f"*.data/scripts/{name}")) for name in ("hvdrun", "hvdbench")]


def test_it_holds_the_package_the_libraries_and_the_programs(wheel):
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    version = (ROOT / "VERSION").read_text().strip()
    for expected in (
        "allring/__init__.py",
        "allring/torch/__init__.py",
        "allring/lib/liballring.so",
        "allring/lib/liballring_mpi.so",
        f"allring-{version}.data/scripts/hvdrun",
        f"allring-{version}.data/scripts/hvdbench",
        f"allring-{version}.dist-info/licenses/LICENSE",
        f"allring-{version}.dist-info/RECORD",
    ):
        assert expected in names
    assert not [name for name in names if "__pycache__" in name or "test" in name]


def test_the_same_sources_give_the_same_bytes(wheel, tmp_path):
    assert make_wheel(tmp_path).read_bytes() == wheel.read_bytes()


def test_its_tag_is_the_glibc_that_the_binaries_need(wheel, unpacked):
    """Reads the symbols themselves: another way than the one by which the tag was made."""
    newest = (0, 0)
    for binary in [*libraries(unpacked), *programs(unpacked)]:
        symbols = run("objdump", "-T", binary)
        for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols):
            newest = max(newest, (int(major), int(minor)))
    tagged = re.search(r"manylinux_(\d+)_(\d+)_", wheel.name)
    tagged = (int(tagged[1]), int(tagged[2]))
    # Packed relocations want 2.36 without any symbol of it.
    assert tagged in (newest, (2, 36))
    assert tagged >= newest


def test_the_library_exports_the_c_interface_and_nothing_else(unpacked):
    library = unpacked / "allring" / "lib" / "liballring.so"
    table = run("nm", "-D", "--defined-only", library)
    exported = {line.split()[2].split("@")[0] for line in table.splitlines()}
    header = (ROOT / "bindings" / "c" / "allring.h").read_text()
    declared = set(re.findall(r"\b(allring_\w+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.S)))
    versions = {name for name in exported if re.fullmatch(r"ALLRING_\d+(\.\d+)*", name)}
    assert exported - versions == declared


def test_the_library_and_the_programs_need_nothing_but_libc(unpacked):
    allowed = re.compile(r"linux-vdso|lib(c|m|dl|rt|pthread)\.so|/lib.*/ld-linux")
    binaries = [unpacked / "allring" / "lib" / "liballring.so", *programs(unpacked)]
    for binary in binaries:
        for line in run("ldd", binary).splitlines():
            assert allowed.match(line.strip()), f"{binary.name} needs {line.strip()}"


def test_the_mpi_plugin_needs_mpi_and_nothing_else_besides_libc(unpacked):
    needed = platform_tag.needed_libraries(unpacked / "allring" / "lib" / "liballring_mpi.so")
    foreign = [n for n in needed if not re.match(r"lib(c|m|dl|rt|pthread)\.so|ld-linux", n)]
    assert all(name.startswith("libmpi.so") for name in foreign), foreign


def test_a_binary_that_needs_more_is_refused(tmp_path):
    source = tmp_path / "needy.cc"
    source.write_text("#include <string>\nstd::string f() { return std::string(9, 'x'); }\n")
    library = tmp_path / "needy.so"
    run("g++", "-shared", "-fPIC", source, "-o", library)
    with pytest.raises(platform_tag.NotPortable, match=r"needy.so needs libstdc\+\+.so.6"):
        platform_tag.platform_tag([library])


def test_it_carries_the_licences_of_what_it_links(unpacked):
    directory = next(unpacked.glob("*.dist-info")) / "licenses" / "linked"
    texts = {path.stem: path.read_text(errors="replace") for path in directory.iterdir()}
    expected = {
        "grpc": "Apache", "openssl": "OpenSSL", "protobuf": "Google", "spdlog": "Gabi Melman",
        "gcc-runtime": "Runtime Library Exception", "abseil": "Apache", "re2": "RE2",
        "c-ares": "c-ares", "zlib": "Mark Adler", "fmt": "Zverovich", "cli11": "Cincinnati",
    }  # fmt: skip
    assert texts.keys() == expected.keys()
    for name, words in expected.items():
        assert words.lower() in texts[name].lower(), name


def test_a_missing_licence_stops_the_wheel(tmp_path):
    with pytest.raises(FileNotFoundError, match="apt-get install --reinstall"):
        licences.linked_licences(str(tmp_path))


def test_its_programs_run_from_path_once_installed(installed):
    version = (ROOT / "VERSION").read_text().strip()
    environment = {"PATH": f"{installed / 'bin'}:/usr/bin:/bin", "HOME": "/nonexistent"}
    for program in ("hvdrun", "hvdbench"):
        assert version in run(program, "--version", env=environment)


def test_its_library_loads_where_nothing_else_is_installed(installed):
    program = (
        "import ctypes, importlib.util as u, pathlib;"
        "p = pathlib.Path(u.find_spec('allring').origin).parent / 'lib' / 'liballring.so';"
        "l = ctypes.CDLL(str(p)); l.allring_version.restype = ctypes.c_char_p;"
        "print(l.allring_version().decode())"
    )
    out = run(installed / "bin" / "python", "-I", "-c", program)
    assert (ROOT / "VERSION").read_text().strip() in out


def test_installing_again_changes_nothing_and_removing_leaves_nothing(wheel, tmp_path):
    run(sys.executable, "-m", "venv", tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    before = set((tmp_path / "env").rglob("*"))
    for _ in range(2):
        run(python, "-m", "pip", "install", "--no-index", "--no-deps", "--force-reinstall", wheel)
    run(python, "-m", "pip", "uninstall", "--yes", "allring")
    left = set((tmp_path / "env").rglob("*")) - before
    left = {path for path in left if "__pycache__" not in str(path)}
    assert not left


def test_an_archive_lists_what_it_holds(tmp_path):
    name = archive.write_wheel(
        tmp_path, "x", "1", "py3-none-any", {"x/a.py": b"1\n", "x/b.so": b"2"}, "Name: x\n",
        {"LICENSE": b"none"}, executables=["x/b.so"],
    )  # fmt: skip
    assert name == "x-1-py3-none-any.whl"
    with zipfile.ZipFile(tmp_path / name) as file:
        record = file.read("x-1.dist-info/RECORD").decode().splitlines()
        assert {line.split(",")[0] for line in record} == set(file.namelist())
        assert file.getinfo("x/b.so").external_attr >> 16 == 0o100755


def test_an_editable_installation_finds_the_sources(tmp_path):
    run(sys.executable, "-m", "venv", tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    run(
        python, "-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation",
        "-e", ROOT, timeout=800,
    )  # fmt: skip
    program = "import importlib.util as u; print(u.find_spec('allring').origin)"
    out = run(python, "-c", program, cwd=tmp_path)
    assert out.strip() == str(ROOT / "bindings" / "python" / "allring" / "__init__.py")
    assert os.access(tmp_path / "env" / "bin" / "hvdrun", os.X_OK)


def test_a_source_distribution_builds_the_same_files(tmp_path, wheel):
    """Only its list of files: building it again would compile everything a second time."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    program = "import build_backend, sys; build_backend.build_sdist(sys.argv[1])"
    run(sys.executable, "-c", program, tmp_path, cwd=ROOT / "bindings" / "wheel")
    (sdist,) = tmp_path.glob("*.tar.gz")
    listed = run("tar", "tzf", sdist).splitlines()
    stem = sdist.name[: -len(".tar.gz")]
    for path in ("PKG-INFO", "WORKSPACE", "pyproject.toml", "bindings/wheel/build_backend.py"):
        assert f"{stem}/{path}" in listed
