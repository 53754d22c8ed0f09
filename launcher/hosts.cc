#include "launcher/hosts.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace allring {

namespace {

constexpr int kMostSlots = 1 << 20;

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

Result<int> parse_slots(std::string_view text, std::string_view entry) {
  int slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error != std::errc() || end != text.data() + text.size() || slots < 1 || slots > kMostSlots)
    return Status::invalid_argument("bad slot count " + quoted(text) + " in " + quoted(entry) +
                                    ": expected a whole number from 1 on, as in host:4");
  return slots;
}

bool is_ipv6(const std::string& text) {
  in6_addr address;
  const std::string bare = text.substr(0, text.find('%'));  // fe80::1%eth0
  return ::inet_pton(AF_INET6, bare.c_str(), &address) == 1;
}

/// Names go to ssh as an argument: a leading dash would be an option.
Status check_name(std::string_view name, std::string_view entry) {
  const bool good =
      !name.empty() && name[0] != '-' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == ':' || c == '%' ||
               c >= 0x80;
      });
  if (good) return {};
  return Status::invalid_argument("bad host " + quoted(entry) +
                                  ": expected host, host:slots, user@host:slots or [IPv6]:slots");
}

/// "user@host:slots" and its parts.
Result<Host> parse_entry(std::string_view entry) {
  Host host;
  std::string_view rest = entry;
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    host.user = rest.substr(0, at);
    rest.remove_prefix(at + 1);
    ALLRING_RETURN_IF_ERROR(check_name(host.user, entry));
  }
  std::optional<std::string_view> slots;
  if (!rest.empty() && rest[0] == '[') {
    const std::size_t close = rest.find(']');
    if (close == std::string_view::npos || !is_ipv6(std::string(rest.substr(1, close - 1))) ||
        (close + 1 < rest.size() && rest[close + 1] != ':'))
      return Status::invalid_argument("bad host " + quoted(entry) + ": expected [IPv6]:slots");
    host.name = rest.substr(1, close - 1);
    if (close + 1 < rest.size()) slots = rest.substr(close + 2);
  } else if (is_ipv6(std::string(rest))) {
    host.name = rest;
  } else {
    const std::size_t colon = rest.rfind(':');
    host.name = rest.substr(0, colon);
    if (colon != std::string_view::npos) slots = rest.substr(colon + 1);
    if (host.name.find(':') != std::string::npos) host.name.clear();  // two colons, no address
  }
  ALLRING_RETURN_IF_ERROR(check_name(host.name, entry));
  if (slots) {
    ALLRING_ASSIGN_OR_RETURN(host.slots, parse_slots(*slots, entry));
  }
  return host;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos) return parts;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

Result<Host> parse_hostfile_line(const std::vector<std::string_view>& words) {
  ALLRING_ASSIGN_OR_RETURN(Host host, parse_entry(words[0]));
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string_view key = words[i].substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? "" : words[i].substr(equals + 1);
    if (key == "slots") {
      ALLRING_ASSIGN_OR_RETURN(host.slots, parse_slots(value, words[i]));
    } else if (key == "max_slots" || key == "max-slots") {
      ALLRING_ASSIGN_OR_RETURN(host.max_slots, parse_slots(value, words[i]));
    } else {
      return Status::invalid_argument("unknown word " + quoted(words[i]) +
                                      ": expected slots=N or max_slots=N after the host");
    }
  }
  if (host.max_slots != 0 && host.max_slots < host.slots)
    return Status::invalid_argument("max_slots=" + std::to_string(host.max_slots) +
                                    " is less than slots=" + std::to_string(host.slots));
  return host;
}

}  // namespace

Result<std::vector<Host>> parse_host_list(std::string_view text) {
  std::vector<Host> hosts;
  for (std::string_view entry : split(text, ", \t")) {
    ALLRING_ASSIGN_OR_RETURN(Host host, parse_entry(entry));
    hosts.push_back(std::move(host));
  }
  if (hosts.empty())
    return Status::invalid_argument("no host in " + quoted(text) + ": expected host1:2,host2:2");
  return hosts;
}

Result<std::vector<Host>> parse_hostfile(std::string_view text, const std::string& file) {
  std::vector<Host> hosts;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto words = split(line.substr(0, line.find('#')), " \t\r\f\v");
    if (words.empty()) continue;
    Result<Host> host = parse_hostfile_line(words);
    if (!host.ok()) return host.status().with_prefix(file + ":" + std::to_string(number) + ": ");
    hosts.push_back(std::move(host).value());
  }
  if (hosts.empty()) return Status::invalid_argument(file + ": names no host");
  return hosts;
}

Result<std::vector<Host>> merge_hosts(const std::vector<Host>& hosts,
                                      const std::function<bool(const Host&)>& is_local) {
  std::vector<Host> merged;
  for (Host host : hosts) {
    host.local = is_local(host);
    auto same = std::find_if(merged.begin(), merged.end(), [&host](const Host& other) {
      return (host.local && other.local) || host.name == other.name;
    });
    if (same == merged.end()) {
      merged.push_back(std::move(host));
      continue;
    }
    if (!host.local && same->user != host.user)
      return Status::invalid_argument("host " + host.name + " is named with two users: " +
                                      quoted(same->user) + " and " + quoted(host.user));
    same->max_slots =
        same->max_slots == 0 || host.max_slots == 0 ? 0 : same->max_slots + host.max_slots;
    same->slots += host.slots;
  }
  return merged;
}

}  // namespace allring
