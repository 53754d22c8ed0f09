"""A string build setting."""

def _string_flag_impl(ctx):
    value = ctx.build_setting_value
    if value not in ctx.attr.values:
        fail("%s is %r; it must be one of %s" % (ctx.label, value, ctx.attr.values))
    return []

string_flag = rule(
    implementation = _string_flag_impl,
    build_setting = config.string(flag = True),
    attrs = {"values": attr.string_list(doc = "what it may be")},
)
