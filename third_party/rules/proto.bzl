"""cc_proto: a cc_library of one .proto file's messages and services, by the system's protoc."""

load("@rules_cc//cc:defs.bzl", "cc_library")

_ProtoSources = provider(
    doc = "The .proto files that a target and its dependencies hold.",
    fields = {"files": "depset of File"},
)

def _proto_sources_impl(ctx):
    files = depset(
        [ctx.file.src],
        transitive = [dep[_ProtoSources].files for dep in ctx.attr.deps],
    )
    out_dir = ctx.bin_dir.path
    args = ctx.actions.args()
    args.add("--proto_path=.")
    args.add("--cpp_out=" + out_dir)
    tools = []
    if ctx.attr.grpc:
        args.add(ctx.executable._grpc_plugin, format = "--plugin=protoc-gen-grpc=%s")
        args.add("--grpc_out=" + out_dir)
        tools.append(ctx.executable._grpc_plugin)
    args.add(ctx.file.src)
    ctx.actions.run(
        executable = ctx.executable._protoc,
        arguments = [args],
        inputs = files,
        tools = tools,
        outputs = ctx.outputs.outs,
        mnemonic = "Protoc",
        progress_message = "Generating C++ from " + ctx.file.src.short_path,
    )
    return [DefaultInfo(files = depset(ctx.outputs.outs)), _ProtoSources(files = files)]

_proto_sources = rule(
    implementation = _proto_sources_impl,
    attrs = {
        "deps": attr.label_list(providers = [_ProtoSources]),
        "grpc": attr.bool(),
        "outs": attr.output_list(mandatory = True),
        "src": attr.label(allow_single_file = [".proto"], mandatory = True),
        "_grpc_plugin": attr.label(
            default = "@system_grpc//:bin/grpc_cpp_plugin",
            allow_single_file = True,
            cfg = "exec",
            executable = True,
        ),
        "_protoc": attr.label(
            default = "@system_protobuf//:bin/protoc",
            allow_single_file = True,
            cfg = "exec",
            executable = True,
        ),
    },
)

def cc_proto(name, src, deps = [], grpc = False, **kwargs):
    """A cc_library of the C++ that protoc makes from one .proto.

    Include it as "path/from/the/root/file.pb.h", and "file.grpc.pb.h" with grpc.

    Args:
      name: the cc_library.
      src: the .proto, in this package; its imports are written from the workspace's root.
      deps: cc_proto targets of the files it imports.
      grpc: generate the services too, and depend on gRPC.
      **kwargs: passed on to the cc_library.
    """
    stem = src[:-len(".proto")]
    hdrs = [stem + ".pb.h"] + ([stem + ".grpc.pb.h"] if grpc else [])
    srcs = [stem + ".pb.cc"] + ([stem + ".grpc.pb.cc"] if grpc else [])
    _proto_sources(
        name = name + "_sources",
        src = src,
        outs = hdrs + srcs,
        grpc = grpc,
        testonly = kwargs.get("testonly", False),
        visibility = kwargs.get("visibility"),
        deps = [dep + "_sources" for dep in deps],
    )
    cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        deps = deps + (["@system_grpc//:grpc++"] if grpc else ["@system_protobuf//:protobuf"]),
        **kwargs
    )
