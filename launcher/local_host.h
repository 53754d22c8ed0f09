#pragma once

#include <string>

#include "launcher/hosts.h"

namespace allring {

/// The name that this host gives itself.
std::string own_hostname();

/// Whether `host` is the one that we run on, as the user we are: its name is localhost, a loopback
/// address or our own name, or it has an address that one of our interfaces has. May ask the name
/// service and block as long as that takes; a name that it does not know is not local (ssh may know
/// it from its own configuration).
bool is_local_host(const Host& host);

/// The address of ours from which `remote` would be spoken to; empty if there is no way to it.
std::string own_address_towards(const std::string& remote);

}  // namespace allring
