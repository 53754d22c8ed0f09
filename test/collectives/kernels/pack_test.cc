#include "collectives/kernels/pack.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "collectives/kernels/reduce.h"
#include "test/collectives/kernels/reference.h"

namespace allring {
namespace {

// Packs pieces of awkward sizes, unpacks them again, and compares both with scale() on the whole.
void check(DataType dtype, double into, double back) {
  const std::size_t counts[] = {0, 1, 63, 64, 1003, 3};
  const std::size_t size = element_bytes(dtype);
  std::vector<std::vector<std::byte>> tensors;
  std::vector<PackPiece> pieces;
  std::vector<std::byte> whole;
  for (const std::size_t count : counts) {
    tensors.push_back(test::random_elements(dtype, count, count));
    whole.insert(whole.end(), tensors.back().begin(), tensors.back().end());
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    pieces.push_back({tensors[i].data(), counts[i]});
  }
  const std::size_t total = whole.size() / size;

  std::vector<std::byte> batch(whole.size() + 1, std::byte{0xa5});
  pack(batch.data(), pieces, dtype, into);
  std::vector<std::byte> expected(whole.size());
  scale(expected.data(), whole.data(), total, dtype, into);
  CAPTURE(data_type_name(dtype), into, back);
  REQUIRE(std::memcmp(batch.data(), expected.data(), expected.size()) == 0);
  REQUIRE(batch.back() == std::byte{0xa5});

  std::vector<UnpackPiece> places;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    places.push_back({tensors[i].data(), counts[i]});
  }
  unpack(places, batch.data(), dtype, back);
  scale(expected.data(), batch.data(), total, dtype, back);
  std::vector<std::byte> joined;
  for (const auto& tensor : tensors) joined.insert(joined.end(), tensor.begin(), tensor.end());
  REQUIRE(joined == expected);
}

TEST_CASE("packing and unpacking move every element, scaled") {
  for (int dtype = 0; dtype < kDataTypeCount; ++dtype) {
    for (const std::string& simd : test::available_simd()) {
      const test::SimdGuard guard(simd);
      check(static_cast<DataType>(dtype), 1.0, 1.0);
      check(static_cast<DataType>(dtype), 0.5, 1.0);
      check(static_cast<DataType>(dtype), 1.0, 3.0);
    }
  }
}

TEST_CASE("nothing packs into nothing") {
  pack(nullptr, {}, DataType::kFloat32, 1.0);
  unpack({}, nullptr, DataType::kFloat32, 2.0);
  const PackPiece empty[] = {{nullptr, 0}};
  pack(nullptr, empty, DataType::kFloat32, 2.0);
  SUCCEED();
}

}  // namespace
}  // namespace allring
