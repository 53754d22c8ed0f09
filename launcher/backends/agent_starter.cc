#include "launcher/backends/agent_starter.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "launcher/child_process.h"

namespace allring {

namespace {

Result<std::string> own_path() {
  std::string path(4096, '\0');
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) return Status::from_errno("/proc/self/exe", errno);
  path.resize(static_cast<std::size_t>(size));
  return path;
}

/// For a POSIX shell, and for csh and fish where there is no backslash or ! in the text.
std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// The line that says most: the last that is not empty.
std::string last_line(const std::string& words) {
  const std::size_t end = words.find_last_not_of(" \r\n");
  if (end == std::string::npos) return "";
  const std::size_t begin = words.find_last_of('\n', end);
  std::string line = words.substr(begin + 1, end - begin);
  line.erase(std::remove(line.begin(), line.end(), '\r'), line.end());
  return line;
}

}  // namespace

Result<AgentStarter> local_starter() {
  ALLRING_ASSIGN_OR_RETURN(const std::string path, own_path());
  return AgentStarter{"/proc/self/exe", {path, "--agent"}, ""};
}

Result<AgentStarter> ssh_starter(const Host& host, const SshOptions& options,
                                 const std::string& search_path) {
  Result<std::string> ssh = find_program("ssh", search_path, "");
  if (!ssh.ok())
    return Status::invalid_argument("host " + host.name +
                                    " needs ssh, which is not on PATH; install openssh-client");
  AgentStarter starter{*ssh, {"ssh"}, ssh_by_hand(host, options)};
  auto add = [&starter](std::string word) { starter.argv.push_back(std::move(word)); };
  for (const std::string& word : options.arguments) add(word);
  if (options.port != 0) {
    add("-p");
    add(std::to_string(options.port));
  }
  if (!options.identity_file.empty()) {
    add("-i");
    add(options.identity_file);
  }
  add("-T");
  add("-x");
  for (const char* setting : {"BatchMode=yes", "StrictHostKeyChecking=accept-new",
                              "ServerAliveInterval=10", "ServerAliveCountMax=3"}) {
    add("-o");
    add(setting);
  }
  if (!host.user.empty()) {
    add("-l");
    add(host.user);
  }
  add(host.name);
  std::string path = options.remote_hvdrun;
  if (path.empty()) {
    ALLRING_ASSIGN_OR_RETURN(path, own_path());
  }
  add(remote_agent_command(path, options.remote_hvdrun.empty()));
  return starter;
}

std::string remote_agent_command(const std::string& path, bool fall_back_to_path) {
  const std::string script =
      "p=" + shell_quoted(path) + "; " +
      (fall_back_to_path ? "[ -x \"$p\" ] || p=$(command -v hvdrun); " : "") +
      "[ -x \"$p\" ] || { printf \"\\nallring-agent-missing\\n\"; exit 127; }; "
      "exec \"$p\" --agent";
  return "exec /bin/sh -c " + shell_quoted(script);
}

std::string ssh_by_hand(const Host& host, const SshOptions& options) {
  std::string text = "ssh ";
  for (const std::string& word : options.arguments) text += word + " ";
  if (options.port != 0) text += "-p " + std::to_string(options.port) + " ";
  if (!options.identity_file.empty()) text += "-i " + options.identity_file + " ";
  return text + (host.user.empty() ? "" : host.user + "@") + host.name;
}

Status explain_failed_start(const Host& host, const std::string& by_hand, const std::string& words,
                            int wait_status) {
  const std::string said = last_line(words);
  const std::string ending = host.local
                                 ? "the agent ended with " + describe_wait_status(wait_status)
                                 : "ssh ended with " + describe_wait_status(wait_status);
  const std::string line = "host " + host.name + ": " + (said.empty() ? ending : said);
  auto contains = [&words](const char* text) { return words.find(text) != std::string::npos; };
  if (contains("Could not resolve hostname"))
    return Status::invalid_argument(line + "; correct the name, or give it to DNS or /etc/hosts");
  const std::string try_it = by_hand.empty() ? "" : "; try: " + by_hand;
  if (contains("Permission denied"))
    return Status::aborted(line + "; hvdrun needs a key that works without a password (-i FILE)" +
                           try_it);
  if (contains("Host key verification failed") || contains("HOST IDENTIFICATION HAS CHANGED"))
    return Status::aborted(line + "; the host's key is not the known one" + try_it);
  return Status::aborted(line + try_it);
}

Status explain_missing_hvdrun(const Host& host, const std::string& remote_hvdrun) {
  if (!remote_hvdrun.empty())
    return Status::invalid_argument("host " + host.name + ": there is no program " + remote_hvdrun +
                                    "; correct --remote-hvdrun, or install allring there");
  Result<std::string> path = own_path();
  return Status::invalid_argument("host " + host.name + ": hvdrun is neither " +
                                  (path.ok() ? *path : "where it is here") +
                                  " nor on PATH there; install allring there, or say where it is "
                                  "with --remote-hvdrun PATH");
}

}  // namespace allring
