// main() of every C++ test: Catch2's console output, plus what Bazel and whoever replays a failure
// need. Bazel names a file in XML_OUTPUT_FILE; the results go there as JUnit XML, one <testcase>
// per test case, which is how tools/test counts them.

#define CATCH_CONFIG_RUNNER
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace {

struct CaseResult {
  std::string name;
  std::string failures;  // empty: passed
  double seconds = 0;
};

std::string escape_xml(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Other control characters are not allowed in XML at all.
        const bool printable = static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t';
        out += printable ? c : '?';
    }
  }
  return out;
}

// A listener and not a reporter: Catch2 v2 has one reporter, and that one is the console.
class JunitListener : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    TestEventListenerBase::testCaseStarting(info);
    results_.push_back({info.name, "", 0});
    timer_.start();
  }

  bool assertionEnded(const Catch::AssertionStats& stats) override {
    const Catch::AssertionResult& result = stats.assertionResult;
    if (!result.isOk()) {
      std::string& failures = results_.back().failures;
      failures += std::string(result.getSourceInfo().file) + ":" +
                  std::to_string(result.getSourceInfo().line) + ": " +
                  result.getExpressionInMacro();
      if (result.hasExpandedExpression()) failures += "\n  is: " + result.getExpandedExpression();
      if (result.hasMessage()) failures += "\n  " + std::string(result.getMessage());
      for (const Catch::MessageInfo& info : stats.infoMessages) failures += "\n  " + info.message;
      failures += "\n";
    }
    return true;
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    TestEventListenerBase::testCaseEnded(stats);
    CaseResult& result = results_.back();
    result.seconds = timer_.getElapsedSeconds();
    if (!stats.totals.testCases.allOk() && result.failures.empty()) {
      result.failures = "failed without a failed assertion";
    }
  }

  // Catch2 also calls this on its way out of a fatal signal.
  void testRunEnded(const Catch::TestRunStats&) override {
    const char* path = std::getenv("XML_OUTPUT_FILE");
    if (path == nullptr || *path == '\0') return;
    int failed = 0;
    for (const CaseResult& result : results_) failed += result.failures.empty() ? 0 : 1;
    const char* target = std::getenv("TEST_TARGET");
    const std::string suite = escape_xml(target == nullptr ? "catch2" : target);
    std::ofstream xml(path);
    xml << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"" << suite
        << "\" tests=\"" << results_.size() << "\" failures=\"" << failed << "\" errors=\"0\">\n";
    for (const CaseResult& result : results_) {
      xml << "<testcase classname=\"" << suite << "\" name=\"" << escape_xml(result.name)
          << "\" time=\"" << result.seconds << "\">";
      if (!result.failures.empty()) {
        xml << "<failure message=\"failed\">" << escape_xml(result.failures) << "</failure>";
      }
      xml << "</testcase>\n";
    }
    xml << "</testsuite>\n</testsuites>\n";
    if (!xml.flush()) std::cerr << "cannot write " << path << "\n";
  }

 private:
  std::vector<CaseResult> results_;
  Catch::Timer timer_;
};

CATCH_REGISTER_LISTENER(JunitListener)

// A test that calls exit() would otherwise pass without the cases after it.
pid_t test_process = 0;
bool finished = false;

void refuse_early_exit() {
  if (finished || getpid() != test_process) return;
  std::fprintf(stderr, "exit() was called before the tests were through\n");
  std::_Exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  Catch::Session session;
  // Bazel counts this up under --runs_per_test, so that repeated runs try different seeds.
  const char* bazel_seed = std::getenv("TEST_RANDOM_SEED");
  session.configData().rngSeed =
      bazel_seed == nullptr ? 1u : static_cast<unsigned>(std::strtoul(bazel_seed, nullptr, 10));
  if (const int error = session.applyCommandLine(argc, argv); error != 0) return error;
  const unsigned seed = session.configData().rngSeed;
  std::printf("seed %u; replay with --rng-seed %u\n", seed, seed);
  std::fflush(stdout);
  test_process = getpid();
  std::atexit(refuse_early_exit);
  const int failed = session.run();
  finished = true;
  return failed;
}
