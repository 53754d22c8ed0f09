#!/usr/bin/env python3
"""Counts test cases for tools/test.

test_results.py --bazel EVENTS STATUS    a file of --build_event_json_file, and bazel's exit status
test_results.py --pytest RESULTS STATUS  a file of --junit-xml, and pytest's exit status

Prints one line per suite and a last line "PASSED FAILED". What crashed, ran out of time or did not
build counts as one failed case, and so does a run that stopped for another reason.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


def count_cases(path):
    """(passed, failed, skipped) of one JUnit file."""
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def report(name, passed, failed, note=""):
    print(f"  {name}: {passed} passed, {failed} failed{note}")


def read_events(path):
    """The tests that bazel was to run, and what became of them: {label: result or None}."""
    tests = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            event = json.loads(line)
            identity = event["id"]
            if "targetConfigured" in identity:
                if event.get("configured", {}).get("targetKind", "").endswith("_test rule"):
                    tests.setdefault(identity["targetConfigured"]["label"], None)
            elif event.get("aborted", {}).get("reason") == "SKIPPED":
                tests.pop(identity.get("targetCompleted", {}).get("label"), None)
            elif "testResult" in identity:
                # Of several attempts the last one counts.
                tests[identity["testResult"]["label"]] = event["testResult"]
    return tests


def count_bazel(path, status):
    total_passed = total_failed = 0
    try:
        tests = read_events(path)
    except (OSError, ValueError) as error:
        print(f"  bazel left no results: {error}")
        return 0, 1
    for label, result in sorted(tests.items()):
        passed, failed, note = 0, 1, " (did not build)"
        if result is not None:
            verdict = result.get("status", "NO_STATUS")
            note = "" if verdict == "PASSED" else f" ({verdict.lower()})"
            outputs = {o["name"]: o.get("uri", "") for o in result.get("testActionOutput", [])}
            try:
                file = urllib.parse.unquote(urllib.parse.urlparse(outputs["test.xml"]).path)
                passed, failed, _ = count_cases(file)
            except (KeyError, OSError, ElementTree.ParseError):
                passed, failed = (1, 0) if verdict == "PASSED" else (0, 1)
            if verdict != "PASSED":
                failed = max(failed, 1)
        report(label, passed, failed, note)
        total_passed += passed
        total_failed += failed
    # 3: tests failed, which the cases above tell. 4: there are none.
    if status not in (0, 3) and total_failed == 0:
        report("bazel", 0, 1, f" (exit status {status})")
        total_failed += 1
    return total_passed, total_failed


def count_pytest(path, status):
    try:
        passed, failed, skipped = count_cases(path)
    except (OSError, ElementTree.ParseError) as error:
        print(f"  pytest left no results: {error}")
        return 0, 1
    if status != 0 and failed == 0:
        failed = 1
    note = f", {skipped} skipped" if skipped else ""
    report("pytest", passed, failed, note + (f" (exit status {status})" if status > 1 else ""))
    return passed, failed


def main():
    kind, path, status = sys.argv[1:]
    counters = {"--bazel": count_bazel, "--pytest": count_pytest}
    passed, failed = counters[kind](path, int(status))
    print(passed, failed)


if __name__ == "__main__":
    main()
