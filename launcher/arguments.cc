#include "launcher/arguments.h"

#include <CLI/CLI.hpp>
#include <cctype>
#include <memory>

#include "allring_version.h"
#include "launcher/command_line.h"

namespace allring {

namespace {

/// Options whose meaning here is what we do anyway. They say nothing and do no harm.
struct Accepted {
  bool flag = false;
  std::string binding;
  std::string mapping;
  std::vector<std::string> mca;
};

struct Parsed {
  Arguments arguments;
  Accepted accepted;
  bool version = false;
  int num_proc = 0;
  std::string ssh_args;
  std::vector<std::string> environment;
};

constexpr char kPlacement[] = "Where ranks run";
constexpr char kReach[] = "Other hosts";
constexpr char kRanks[] = "Ranks";
constexpr char kOutput[] = "Output";
constexpr char kOther[] = "Other";
constexpr char kCompatible[] = "Accepted from other launchers, without effect";

/// The name that an option has in the environment; empty for those that have none.
std::string variable_of(const CLI::Option& option) {
  if (option.get_lnames().empty() || option.get_group() == kCompatible ||
      option.check_lname("version") || option.check_lname("help"))
    return "";
  std::string name = "HVDRUN_" + option.get_lnames().front();
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

/// A check that says nothing in --help.
template <typename T>
CLI::Validator number(T minimum, T maximum) {
  return CLI::Range(minimum, maximum).description("");
}

void add_options(CLI::App* app, Parsed* parsed) {
  Arguments& a = parsed->arguments;
  app->add_option("-n,--num-proc,--np", parsed->num_proc,
                  "Number of ranks (-np 4); without it, all slots of the hosts")
      ->type_name("N")
      ->check(number(1, 1 << 20))
      ->group(kPlacement);
  app->add_option("-H,--hosts,--host", a.hosts,
                  "Hosts with their slots: h1:2,h2:2, user@h, [IPv6]:2; may be repeated")
      ->type_name("LIST")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(kPlacement);
  app->add_option("--hostfile,--machinefile", a.hostfiles,
                  "File with a host per line: h1 slots=2 max_slots=4; may be repeated")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(kPlacement);
  app->add_flag("--oversubscribe", a.oversubscribe, "Let hosts take more ranks than slots")
      ->group(kPlacement);
  app->add_option("--wdir,--wd", a.working_directory, "Folder that ranks start in")
      ->type_name("DIR")
      ->group(kPlacement);
  app->add_option("--network-interfaces,--network-interface,--nics", a.network_interfaces,
                  "Interfaces that ranks of different hosts speak over: eth0,eth1")
      ->type_name("LIST")
      ->group(kPlacement);

  app->add_option("-p,--ssh-port", a.ssh_port, "Port of the hosts' ssh servers")
      ->type_name("PORT")
      ->check(number(1, 65535))
      ->group(kReach);
  app->add_option("-i,--ssh-identity-file", a.ssh_identity_file, "Private key for ssh")
      ->type_name("FILE")
      ->group(kReach);
  app->add_option("--ssh-args", parsed->ssh_args, "More arguments for ssh, before ours")
      ->type_name("WORDS")
      ->group(kReach);
  app->add_option("--remote-hvdrun", a.remote_hvdrun,
                  "Path of hvdrun on the other hosts; without it the same as here, then PATH")
      ->type_name("PATH")
      ->group(kReach);

  app->add_option(
         "-x", parsed->environment,
         "Environment variable for the ranks, as it is here or with a value; may be repeated")
      ->type_name("NAME[=VALUE]")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(kRanks);
  app->add_option("--start-timeout", a.start_timeout_seconds,
                  "Seconds in which all hosts, and then all ranks, must have met (default 30)")
      ->type_name("SECONDS")
      ->check(number(0.1, 1e6))
      ->group(kRanks);
  app->add_option("--grace-secs", a.grace_seconds,
                  "Seconds between asking ranks to end and killing them (default 5)")
      ->type_name("SECONDS")
      ->check(number(0.0, 1e6))
      ->group(kRanks);

  app->add_option("--output-filename", a.output_directory,
                  "Also write each rank's output to DIR/rank.N/stdout and stderr")
      ->type_name("DIR")
      ->group(kOutput);
  app->add_flag("--timestamp,--prefix-timestamp,--timestamp-output", a.timestamps,
                "Begin each line with the time at which the rank's host read it")
      ->group(kOutput);
  app->add_flag("-v,--verbose", a.verbose, "Say what is being done")->group(kOutput);

  app->add_flag("--dry-run", a.dry_run, "Print which rank would run where, and the command")
      ->group(kOther);
  app->add_flag("--version", parsed->version, "Print the version")->group(kOther);

  Accepted& accepted = parsed->accepted;
  app->add_flag("--allow-run-as-root,--gloo,--mpi,--use-gloo,--use-mpi,--tag-output", accepted.flag,
                "What hvdrun does anyway")
      ->group(kCompatible);
  app->add_option("--bind-to", accepted.binding,
                  "What hvdrun does anyway; nothing else is accepted")
      ->type_name("none")
      ->group(kCompatible);
  app->add_option("--map-by", accepted.mapping, "What hvdrun does anyway; nothing else is accepted")
      ->type_name("slot")
      ->group(kCompatible);
  app->add_option("--mca", accepted.mca, "For Open MPI, which hvdrun does not use")
      ->type_name("NAME VALUE")
      ->type_size(2)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(kCompatible);
}

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: hvdrun [OPTIONS] [--] COMMAND [ARGUMENTS]\n\n";
  }
};

std::unique_ptr<CLI::App> make_app(Parsed* parsed) {
  auto app = std::make_unique<CLI::App>(
      "hvdrun starts a program on several ranks, here and on other hosts, and ends with the exit\n"
      "code of the rank that failed first.\n\n"
      "  hvdrun -np 4 python train.py --epochs 3\n"
      "  hvdrun -np 4 -H host1:2,host2:2 python train.py\n\n"
      "Everything from the command on is the command's. Each option is also an environment\n"
      "variable, HVDRUN_NUM_PROC for --num-proc; the command line wins.",
      "hvdrun");
  app->formatter(std::make_shared<HelpFormatter>());
  app->get_help_ptr()->group(kOther);
  add_options(app.get(), parsed);
  return app;
}

/// "--num-proc: Value 0 not in range ..." etc., in one line.
std::string one_line(std::string text) {
  for (char& c : text) c = c == '\n' ? ' ' : c;
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

Status check_compatible(const Accepted& accepted) {
  if (!accepted.binding.empty() && accepted.binding != "none")
    return Status::invalid_argument("--bind-to " + accepted.binding +
                                    ": hvdrun does not bind ranks to cores; leave it out or say "
                                    "--bind-to none");
  if (!accepted.mapping.empty() && accepted.mapping != "slot")
    return Status::invalid_argument("--map-by " + accepted.mapping +
                                    ": hvdrun fills one host after the other; leave it out or say "
                                    "--map-by slot");
  return {};
}

Status resolve_environment(const std::vector<std::string>& given, const Environment& environment,
                           Arguments* arguments) {
  for (const std::string& entry : given) {
    const std::size_t equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    if (name.empty())
      return Status::invalid_argument("-x " + entry + ": expected NAME or NAME=VALUE");
    if (equals != std::string::npos) {
      arguments->environment.push_back(entry);
    } else if (auto value = environment.find(name)) {
      arguments->environment.push_back(name + "=" + *value);
    } else {
      arguments->warnings.push_back("-x " + name + " is not set here, so the ranks do not get it");
    }
  }
  return {};
}

}  // namespace

Result<ParsedArguments> parse_arguments(const std::vector<std::string>& words,
                                        const Environment& environment) {
  Parsed parsed;
  const std::unique_ptr<CLI::App> app = make_app(&parsed);
  ALLRING_ASSIGN_OR_RETURN(SplitCommandLine split, split_command_line(*app, words));

  for (const CLI::Option* option : app->get_options()) {
    const std::string variable = variable_of(*option);
    if (variable.empty() || split.given.contains(option)) continue;
    const std::string value = environment.find(variable).value_or("");
    if (!value.empty()) split.options.push_back("--" + option->get_lnames().front() + "=" + value);
  }
  try {
    app->parse(std::vector<std::string>(split.options.rbegin(), split.options.rend()));
  } catch (const CLI::CallForHelp&) {
    return ParsedArguments{{}, PrintAndExit{app->help()}};
  } catch (const CLI::ParseError& error) {
    return Status::invalid_argument(one_line(error.what()) + "; hvdrun --help lists the options");
  }
  if (parsed.version)
    return ParsedArguments{{}, PrintAndExit{std::string("hvdrun ") + kVersion + "\n"}};

  Arguments& arguments = parsed.arguments;
  arguments.command = std::move(split.command);
  if (arguments.command.empty())
    return Status::invalid_argument(
        "no command was given; for example: hvdrun -np 2 python train.py");
  if (parsed.num_proc != 0) arguments.num_proc = parsed.num_proc;
  arguments.start_timeout_given = app->get_option("--start-timeout")->count() > 0;
  ALLRING_RETURN_IF_ERROR(check_compatible(parsed.accepted));
  ALLRING_RETURN_IF_ERROR(resolve_environment(parsed.environment, environment, &arguments));
  Result<std::vector<std::string>> ssh_args = split_words(parsed.ssh_args);
  if (!ssh_args.ok()) return ssh_args.status().with_prefix("--ssh-args: ");
  arguments.ssh_args = *ssh_args;
  return ParsedArguments{std::move(arguments), std::nullopt};
}

std::string options_table() {
  Parsed parsed;
  const std::unique_ptr<CLI::App> app = make_app(&parsed);
  std::string text = "| option | variable | |\n|---|---|---|\n";
  for (const CLI::Option* option : app->get_options()) {
    if (option == app->get_help_ptr()) continue;
    std::string names = option->get_name(false, true);
    for (std::size_t comma; (comma = names.find(',')) != std::string::npos;)
      names.replace(comma, 1, "` `");
    const std::string variable = variable_of(*option);
    text += "| `" + names + "`";
    if (option->get_items_expected_min() != 0) text += " " + option->get_type_name();
    text += " | " + (variable.empty() ? "" : "`" + variable + "`") + " | " +
            option->get_description() + " |\n";
  }
  return text;
}

}  // namespace allring
