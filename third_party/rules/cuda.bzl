"""cuda_library: .cu files, compiled by nvcc into a cc_library of position independent code."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("@system_cuda//:found.bzl", "CUDA_HOME")

# Machine code for these, and portable code of the last one for whatever comes later.
_ARCHITECTURES = ["80", "90"]

def if_cuda(yes, no = []):
    """A list that depends on whether CUDA targets are built."""
    return select({"//third_party:with_cuda": yes, "//conditions:default": no})

def requires_cuda():
    """For target_compatible_with: without CUDA, `bazel build //...` skips the target."""
    return if_cuda([], ["//third_party:unavailable"])

def requires_nccl():
    """The same for a target that needs NCCL's header besides CUDA."""
    return select({"//third_party:with_nccl": [], "//conditions:default": ["//third_party:unavailable"]})

def _nvcc_archive_impl(ctx):
    contexts = [dep[CcInfo].compilation_context for dep in ctx.attr.deps]
    headers = depset(ctx.files.hdrs, transitive = [c.headers for c in contexts])
    flags = ["-std=c++20", "-Xcompiler=-fPIC,-fvisibility=hidden,-Wall"]
    flags += ["-O3"] if ctx.var["COMPILATION_MODE"] == "opt" else ["-O1", "-g"]
    flags += ["-gencode=arch=compute_%s,code=sm_%s" % (a, a) for a in _ARCHITECTURES]
    flags.append("-gencode=arch=compute_%s,code=compute_%s" % (_ARCHITECTURES[-1], _ARCHITECTURES[-1]))
    flags += ["-I.", "-I" + ctx.bin_dir.path]
    for context in contexts:
        flags += ["-I" + path for path in context.includes.to_list() + context.quote_includes.to_list()]
        flags += ["-isystem=" + path for path in context.system_includes.to_list()]
        flags += ["-D" + define for define in context.defines.to_list()]
    objects = []
    for src in ctx.files.srcs:
        object = ctx.actions.declare_file("_nvcc/%s/%s.o" % (ctx.label.name, src.basename))
        args = ctx.actions.args()
        args.add_all(flags + ctx.attr.copts)
        args.add_all(["-c", src, "-o", object])
        ctx.actions.run(
            executable = CUDA_HOME + "/bin/nvcc",
            arguments = [args],
            inputs = depset([src], transitive = [headers]),
            outputs = [object],
            env = {"PATH": "/usr/bin:/bin"},
            mnemonic = "Nvcc",
            progress_message = "Compiling for CUDA " + src.short_path,
        )
        objects.append(object)
    args = ctx.actions.args()
    args.add("rcsD", ctx.outputs.archive)
    args.add_all(objects)
    ctx.actions.run(
        executable = "/usr/bin/ar",
        arguments = [args],
        inputs = objects,
        outputs = [ctx.outputs.archive],
        mnemonic = "NvccArchive",
    )
    return [DefaultInfo(files = depset([ctx.outputs.archive]))]

_nvcc_archive = rule(
    implementation = _nvcc_archive_impl,
    attrs = {
        "archive": attr.output(mandatory = True),
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "hdrs": attr.label_list(allow_files = True),
        "srcs": attr.label_list(allow_files = [".cu"]),
    },
)

def cuda_library(name, srcs, hdrs = [], deps = [], copts = [], testonly = False, **kwargs):
    """A cc_library of .cu files. Skipped on machines without CUDA.

    Args:
      name: the cc_library.
      srcs: .cu files.
      hdrs: headers that they and their users include.
      deps: cc_library targets; the CUDA runtime is added.
      copts: further flags for nvcc.
      testonly: as everywhere.
      **kwargs: passed on to the cc_library.
    """
    deps = deps + ["@system_cuda//:cudart"]
    archive = "lib%s_nvcc.pic.a" % name
    _nvcc_archive(
        name = name + "_nvcc",
        srcs = srcs,
        hdrs = hdrs,
        archive = archive,
        copts = copts,
        target_compatible_with = requires_cuda(),
        testonly = testonly,
        deps = deps,
    )
    cc_library(
        name = name,
        srcs = [archive],
        hdrs = hdrs,
        target_compatible_with = requires_cuda(),
        testonly = testonly,
        deps = deps,
        **kwargs
    )
