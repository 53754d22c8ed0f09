#!/bin/sh
# Bazel runs hvdrun_test.py so: hvdrun_test.sh HVDRUN STORE_PROBE [unittest arguments].
exec /usr/bin/python3 -W ignore test/launcher/hvdrun_test.py "$@"
