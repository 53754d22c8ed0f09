// A rank that meets the others through the store that hvdrun serves: puts its number, waits for
// everybody's, and prints their sum.
//
// Usage: store_probe [BYTES_OF_EACH_VALUE [SECONDS]]

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "runtime/rendezvous/store_client.h"

namespace {

int fail(const allring::Status& status) {
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return 1;
}

int probe(std::size_t bytes, int patience) {
  const int rank = std::atoi(std::getenv("ALLRING_RANK"));
  const int size = std::atoi(std::getenv("ALLRING_SIZE"));
  std::ifstream file(std::getenv("ALLRING_SECRET_FILE"), std::ios::binary);
  allring::StoreClient::Settings settings;
  settings.candidates = {std::getenv("ALLRING_STORE")};
  settings.secret.assign(std::istreambuf_iterator<char>(file), {});
  settings.rank = rank;
  const allring::Deadline deadline = allring::deadline_after(allring::seconds(patience));
  auto store = allring::StoreClient::connect(settings, deadline);
  if (!store.ok()) return fail(store.status());

  std::string value = std::to_string(rank);
  value.resize(std::max(value.size(), bytes), ' ');
  if (auto status = (*store)->put("probe/" + std::to_string(rank), value); !status.ok())
    return fail(status);
  int sum = 0;
  for (int other = 0; other < size; ++other) {
    auto found = (*store)->wait("probe/" + std::to_string(other), deadline);
    if (!found.ok()) return fail(found.status());
    if (found->size() < bytes) return 3;
    sum += std::atoi(found->c_str());
  }
  if (auto status = (*store)->remove("probe/never"); !status.ok()) return fail(status);
  std::printf("%d\n", sum);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return probe(argc > 1 ? static_cast<std::size_t>(std::atoll(argv[1])) : 0,
               argc > 2 ? std::atoi(argv[2]) : 30);
}
