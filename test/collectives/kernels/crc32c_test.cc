#include "collectives/kernels/crc32c.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace allring {
namespace {

using Crc = std::uint32_t (*)(std::uint32_t, const void*, std::size_t);
constexpr Crc kBoth[] = {crc32c, crc32c_portable};

// One bit at a time.
std::uint32_t reference(const std::vector<unsigned char>& data) {
  std::uint32_t crc = 0xffffffffu;
  for (const unsigned char byte : data) {
    crc ^= byte;
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

TEST_CASE("the known answers of RFC 3720, appendix B.4") {
  for (const Crc crc : kBoth) {
    std::vector<unsigned char> data(32, 0);
    REQUIRE(crc(0, data.data(), data.size()) == 0x8a9136aau);
    data.assign(32, 0xff);
    REQUIRE(crc(0, data.data(), data.size()) == 0x62a8ab43u);
    for (int i = 0; i < 32; ++i) data[i] = static_cast<unsigned char>(i);
    REQUIRE(crc(0, data.data(), data.size()) == 0x46dd794eu);
    for (int i = 0; i < 32; ++i) data[i] = static_cast<unsigned char>(31 - i);
    REQUIRE(crc(0, data.data(), data.size()) == 0x113fdb5cu);
    REQUIRE(crc(0, "123456789", 9) == 0xe3069283u);
    REQUIRE(crc(0, nullptr, 0) == 0);
  }
}

TEST_CASE("every length, at every alignment, in one piece or two") {
  const std::uint64_t seed = Catch::rngSeed();
  std::mt19937_64 random(seed);
  for (const std::size_t size : {0,   1,   7,    8,    9,    63,   383,  384,   385,   391,
                                 767, 768, 1159, 6143, 6144, 6145, 6535, 12288, 20000, 65537}) {
    std::vector<unsigned char> data(size);
    for (unsigned char& byte : data) byte = static_cast<unsigned char>(random());
    const std::uint32_t expected = reference(data);
    std::vector<unsigned char> place(size + 8);
    for (std::size_t shift = 0; shift < 8; ++shift) {
      std::copy(data.begin(), data.end(), place.begin() + static_cast<std::ptrdiff_t>(shift));
      const std::size_t cut = size == 0 ? 0 : random() % size;
      for (const Crc crc : kBoth) {
        CAPTURE(size, shift, cut);
        const unsigned char* start = place.data() + shift;
        REQUIRE(crc(0, start, size) == expected);
        REQUIRE(crc(crc(0, start, cut), start + cut, size - cut) == expected);
      }
    }
  }
}

TEST_CASE("a flipped bit changes the checksum") {
  std::vector<unsigned char> data(10000, 0x5a);
  const std::uint32_t before = crc32c(0, data.data(), data.size());
  for (std::size_t bit = 0; bit < data.size() * 8; bit += 997) {
    data[bit / 8] ^= static_cast<unsigned char>(1 << (bit % 8));
    REQUIRE(crc32c(0, data.data(), data.size()) != before);
    data[bit / 8] ^= static_cast<unsigned char>(1 << (bit % 8));
  }
}

}  // namespace
}  // namespace allring
