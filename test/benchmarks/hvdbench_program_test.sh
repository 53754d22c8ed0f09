#!/bin/sh
# Bazel runs hvdbench_program_test.py so: hvdbench_program_test.sh HVDBENCH MPI_PLUGIN
exec /usr/bin/python3 -W ignore test/benchmarks/hvdbench_program_test.py "$@"
