"""@system_cuda: the CUDA Toolkit and NCCL's header, if this machine has them.

Three states: neither, CUDA alone, CUDA with NCCL. In none of them does loading fail, so that
`bazel build //...` works everywhere; a CUDA target that is forced on without the toolkit fails when
it is built, with a line that says why. NCCL is never linked: it is opened by name at run time, so
its header is all that a build wants.
"""

def _toolkit(rctx):
    """CUDA_HOME, or the toolkit of the nvcc on PATH, or the usual prefix; None without."""
    candidates = []
    if rctx.os.environ.get("CUDA_HOME"):
        candidates.append(rctx.os.environ["CUDA_HOME"])
    else:
        nvcc = rctx.which("nvcc")
        if nvcc:
            # nvcc may be a wrapper script; it knows where it lives itself.
            result = rctx.execute([str(nvcc), "--dryrun", "-x", "cu", "-c", "/dev/null", "-o", "/dev/null"])
            for line in result.stderr.split("\n"):
                if line.startswith("#$ _HERE_="):
                    candidates.append(line[len("#$ _HERE_="):].rstrip("/") + "/..")
        candidates.append("/usr/local/cuda")
    for candidate in candidates:
        if (rctx.path(candidate + "/bin/nvcc").exists and
            rctx.path(candidate + "/include/cuda_runtime.h").exists):
            return str(rctx.path(candidate).realpath)
    return None

def _nccl_header(rctx, toolkit):
    """NCCL_HOME, beside CUDA, the system's, or that of a Python environment; None without."""
    candidates = []
    if rctx.os.environ.get("NCCL_HOME"):
        candidates.append(rctx.os.environ["NCCL_HOME"] + "/include/nccl.h")
    else:
        candidates += [toolkit + "/include/nccl.h", "/usr/include/nccl.h"]
        python = rctx.which("python3")
        if python:
            found = rctx.execute([
                str(python),
                "-c",
                "import nvidia.nccl as n; print(list(n.__path__)[0] + '/include/nccl.h')",
            ])
            if found.return_code == 0:
                candidates.append(found.stdout.strip())
    for candidate in candidates:
        if rctx.path(candidate).exists:
            return candidate
    return None

def _cuda_repository_impl(rctx):
    toolkit = _toolkit(rctx)
    nccl = _nccl_header(rctx, toolkit) if toolkit else None
    rctx.file(
        "found.bzl",
        "CUDA_FOUND = %r\nCUDA_HOME = %r\nNCCL_FOUND = %r\n" % (bool(toolkit), toolkit or "", bool(nccl)),
    )
    if not toolkit:
        rctx.template("BUILD.bazel", rctx.attr.absent_build_file)
        return
    rctx.template("BUILD.bazel", rctx.attr.build_file)
    rctx.symlink(toolkit + "/include", "include")
    lib = toolkit + ("/lib64" if rctx.path(toolkit + "/lib64").exists else "/lib")
    rctx.symlink(lib + "/libcudart_static.a", "lib/libcudart_static.a")
    if nccl:
        rctx.symlink(nccl, "nccl/nccl.h")

        # NCCL 2.28 and later include further headers from a folder beside it.
        device = rctx.path(nccl).dirname.get_child("nccl_device")
        if device.exists:
            rctx.symlink(device, "nccl/nccl_device")

cuda_repository = repository_rule(
    implementation = _cuda_repository_impl,
    attrs = {
        "absent_build_file": attr.label(mandatory = True, allow_single_file = True),
        "build_file": attr.label(mandatory = True, allow_single_file = True),
    },
    environ = ["CUDA_HOME", "NCCL_HOME", "PATH"],
    local = True,
)
