"""Repositories for libraries that are installed on the system.

Each links only the headers, archives and programs it names. So they are declared inputs (an upgrade
of the package rebuilds what uses it), /usr/include does not get onto the include path a second time,
and a missing package stops the build with the line that installs it. Nothing is touched until a
target asks for it.
"""

load("//third_party:cuda_repository.bzl", "cuda_repository")

_LIB = "/usr/lib/x86_64-linux-gnu"
_LIB_ARM = "/usr/lib/aarch64-linux-gnu"

def _missing(rctx, what, packages):
    fail("@%s: %s not found. Install it: apt-get install %s" % (rctx.name, what, packages))

def _run(rctx, argv):
    result = rctx.execute(argv)
    if result.return_code != 0:
        _missing(rctx, "what `%s` needs" % " ".join(argv), rctx.attr.packages)
    return [word for word in result.stdout.replace("\n", " ").split(" ") if word]

def _link_paths(rctx):
    for target, candidates in rctx.attr.paths.items():
        found = [c for c in candidates if rctx.path(c).exists]
        if not found:
            _missing(rctx, " or ".join(candidates), rctx.attr.packages)
        rctx.symlink(found[0], target)

def _system_library_impl(rctx):
    _link_paths(rctx)
    substitutions = {}
    if rctx.attr.pkg_config:
        pkg_config = rctx.which("pkg-config")
        if not pkg_config:
            _missing(rctx, "pkg-config", "pkg-config")
        words = _run(rctx, [str(pkg_config), "--static", "--libs"] + rctx.attr.pkg_config)

        # glibc's own stay dynamic. The rest are linked as one group, so each is named once.
        glibc = ["-ldl", "-lrt", "-lpthread", "-latomic", "-lm"]
        keep = [w for w in words if w.startswith("-l") and w not in glibc]
        substitutions["[\"%{STATIC_LIBRARIES}\"]"] = repr({w: None for w in keep}.keys())
    rctx.template("BUILD.bazel", rctx.attr.build_file, substitutions)

_system_library = repository_rule(
    implementation = _system_library_impl,
    attrs = {
        "build_file": attr.label(mandatory = True, allow_single_file = True),
        "packages": attr.string(doc = "Debian packages that bring it"),
        "paths": attr.string_list_dict(doc = "path here -> candidates on the system"),
        "pkg_config": attr.string_list(doc = "modules whose static libraries fill %{STATIC_LIBRARIES}"),
    },
    environ = ["PATH"],
    local = True,
)

def _openmpi_impl(rctx):
    mpicc = rctx.os.environ.get("MPICC") or rctx.which("mpicc")
    if not mpicc:
        _missing(rctx, "mpicc", rctx.attr.packages)
    for i, path in enumerate(_run(rctx, [str(mpicc), "--showme:incdirs"])):
        rctx.symlink(path, "include%d" % i)
    linkopts = ["-L" + path for path in _run(rctx, [str(mpicc), "--showme:libdirs"])]
    linkopts += ["-l" + lib for lib in _run(rctx, [str(mpicc), "--showme:libs"])]
    rctx.template("BUILD.bazel", rctx.attr.build_file, {"[\"%{LINKOPTS}\"]": repr(linkopts)})

_openmpi_repository = repository_rule(
    implementation = _openmpi_impl,
    attrs = {
        "build_file": attr.label(mandatory = True, allow_single_file = True),
        "packages": attr.string(),
    },
    environ = ["MPICC", "PATH"],
    local = True,
)

def system_repositories():
    """Defines every @system_* repository."""
    _system_library(
        name = "system_benchmark",
        build_file = "//third_party:benchmark.BUILD",
        packages = "libbenchmark-dev",
        paths = {"include/benchmark": ["/usr/include/benchmark"]},
    )
    _system_library(
        name = "system_catch2",
        build_file = "//third_party:catch2.BUILD",
        packages = "catch2",
        paths = {"include/catch2": ["/usr/include/catch2"]},
    )
    _system_library(
        name = "system_cli11",
        build_file = "//third_party:cli11.BUILD",
        packages = "libcli11-dev",
        paths = {"include/CLI": ["/usr/include/CLI"]},
    )
    _system_library(
        name = "system_json",
        build_file = "//third_party:json.BUILD",
        packages = "nlohmann-json3-dev",
        paths = {"include/nlohmann": ["/usr/include/nlohmann"]},
    )
    _system_library(
        name = "system_fmt",
        build_file = "//third_party:fmt.BUILD",
        packages = "libfmt-dev",
        paths = {"include/fmt": ["/usr/include/fmt"]},
    )
    _system_library(
        name = "system_grpc",
        build_file = "//third_party:grpc.BUILD",
        packages = "libgrpc++-dev protobuf-compiler-grpc",
        paths = {
            "bin/grpc_cpp_plugin": ["/usr/bin/grpc_cpp_plugin"],
            "include/grpc": ["/usr/include/grpc"],
            "include/grpc++": ["/usr/include/grpc++"],
            "include/grpcpp": ["/usr/include/grpcpp"],
        },
        pkg_config = [
            "grpc++",
            "protobuf",
        ],
    )
    _openmpi_repository(
        name = "system_openmpi",
        build_file = "//third_party:openmpi.BUILD",
        packages = "libopenmpi-dev openmpi-bin",
    )
    _system_library(
        name = "system_openssl",
        build_file = "//third_party:openssl.BUILD",
        packages = "libssl-dev",
        paths = {
            "include/openssl": ["/usr/include/openssl"],
            # Debian keeps the two headers that depend on the architecture apart.
            "arch_include/openssl": [
                "/usr/include/x86_64-linux-gnu/openssl",
                "/usr/include/aarch64-linux-gnu/openssl",
            ],
            "lib/libcrypto.a": [
                _LIB + "/libcrypto.a",
                _LIB_ARM + "/libcrypto.a",
            ],
        },
    )
    _system_library(
        name = "system_protobuf",
        build_file = "//third_party:protobuf.BUILD",
        packages = "libprotobuf-dev protobuf-compiler",
        paths = {
            "bin/protoc": ["/usr/bin/protoc"],
            "include/google/protobuf": ["/usr/include/google/protobuf"],
        },
        pkg_config = ["protobuf"],
    )
    _system_library(
        name = "system_spdlog",
        build_file = "//third_party:spdlog.BUILD",
        packages = "libspdlog-dev",
        paths = {"include/spdlog": ["/usr/include/spdlog"]},
    )
    cuda_repository(
        name = "system_cuda",
        build_file = "//third_party:cuda.BUILD",
        absent_build_file = "//third_party:cuda_absent.BUILD",
    )
