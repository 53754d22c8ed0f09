"""Offline stand-ins for the repositories that Bazel 4.2.3 would download.

Any C++ target makes it fetch @rules_cc and @rules_java, any test @remote_coverage_tools. A
repository that WORKSPACE defines wins over the built-in one, so nothing is downloaded. @rules_shell
lets BUILD files load sh_test the way that later versions of Bazel demand.
"""

_CC_RULES = ["cc_binary", "cc_import", "cc_library", "cc_test", "cc_toolchain", "cc_toolchain_suite"]
_JAVA_RULES = ["java_binary", "java_import", "java_library", "java_runtime", "java_test", "java_toolchain"]
_SHELL_RULES = ["sh_binary", "sh_library", "sh_test"]

def _reexport(rules):
    return "".join(["%s = native.%s\n" % (rule, rule) for rule in rules])

def _written_repository_impl(rctx):
    for path, content in rctx.attr.files.items():
        rctx.file(path, content, executable = path.endswith(".sh"))

_written_repository = repository_rule(
    implementation = _written_repository_impl,
    attrs = {"files": attr.string_dict(doc = "path -> content")},
)

def stand_in_repositories():
    """Defines the four repositories; call it before any rule of theirs is loaded."""
    _written_repository(
        name = "rules_cc",
        files = {"cc/BUILD": "", "cc/defs.bzl": _reexport(_CC_RULES)},
    )
    _written_repository(
        name = "rules_java",
        files = {"java/BUILD": "", "java/defs.bzl": _reexport(_JAVA_RULES)},
    )
    _written_repository(
        name = "rules_shell",
        files = dict(
            [("shell/BUILD", "")] +
            [("shell/%s.bzl" % rule, _reexport([rule])) for rule in _SHELL_RULES],
        ),
    )

    # Named by every test's hidden attributes, run only by `bazel coverage`, which cannot work here.
    _written_repository(
        name = "remote_coverage_tools",
        files = {
            "BUILD": """
sh_binary(
    name = "coverage_report_generator",
    srcs = ["unavailable.sh"],
    visibility = ["//visibility:public"],
)

alias(
    name = "lcov_merger",
    actual = ":coverage_report_generator",
    visibility = ["//visibility:public"],
)
""",
            "unavailable.sh": "#!/bin/sh\necho 'bazel coverage needs a newer Bazel' >&2\nexit 1\n",
        },
    )
