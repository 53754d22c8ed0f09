#!/bin/sh
# Bazel's way to run hvdrun_test.py: hvdrun_test.sh HVDRUN [unittest arguments].
exec /usr/bin/python3 -W ignore test/launcher/hvdrun_test.py "$@"
