#include "collectives/transport/spin_budget.h"

#include <catch2/catch.hpp>

namespace allring {
namespace {

TEST_CASE("spinning that pays goes on in full") {
  SpinBudget budget(1000);
  for (int i = 0; i < 100; ++i) {
    CHECK(budget.begin() == 1000);
    budget.caught();
  }
}

TEST_CASE("spinning in vain is soon given up, tried again now and then, and learned anew") {
  SpinBudget budget(1000);
  int spun = 0;
  for (int i = 0; i < 320; ++i) {
    spun += budget.begin();
    budget.missed();
  }
  CHECK(spun / 320 < 120);
  CHECK(spun / 320 > 32);
  for (int i = 0; i < 40; ++i) {
    budget.begin();
    budget.caught();
  }
  CHECK(budget.begin() == 1000);
}

TEST_CASE("a budget is never more than it was made with") {
  for (const int most : {0, 1, 10}) {
    SpinBudget budget(most);
    for (int i = 0; i < 100; ++i) {
      CHECK(budget.begin() <= most);
      i % 3 == 0 ? budget.caught() : budget.missed();
    }
  }
  SpinBudget for_ever(1 << 30);
  CHECK(for_ever.begin() == 1 << 30);
  for_ever.caught();
  CHECK(for_ever.begin() == 1 << 30);
}

}  // namespace
}  // namespace allring
