// How an op becomes a Reduction, and how the instruction set is chosen.
#include <catch2/catch.hpp>

#include "collectives/kernels/reduce.h"

namespace allring {
namespace {

TEST_CASE("an average is a sum with a scale, or with a divisor for integers") {
  const Reduction floats =
      Reduction::resolve(DataType::kFloat32, ReduceOp::kAverage, 4, 2.0).value();
  REQUIRE(floats.op == ReduceOp::kSum);
  REQUIRE(floats.scale == 0.5);
  REQUIRE(floats.divisor == 1);
  const Reduction integers =
      Reduction::resolve(DataType::kInt64, ReduceOp::kAverage, 4, 2.0).value();
  REQUIRE(integers.op == ReduceOp::kSum);
  REQUIRE(integers.scale == 2.0);
  REQUIRE(integers.divisor == 4);
  REQUIRE(integers.finishing());
  REQUIRE_FALSE(integers.partial().finishing());
  REQUIRE(integers.partial().dtype == DataType::kInt64);
}

TEST_CASE("other ops keep their name and take the scale") {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct}) {
    const Reduction reduction = Reduction::resolve(DataType::kBfloat16, op, 3, 0.25).value();
    REQUIRE(reduction.op == op);
    REQUIRE(reduction.scale == 0.25);
    REQUIRE_FALSE(Reduction::resolve(DataType::kFloat32, op, 3, 1.0).value().finishing());
  }
  REQUIRE_FALSE(Reduction::resolve(DataType::kBool, ReduceOp::kSum, 3, 0.5).value().finishing());
}

TEST_CASE("what is no element-wise reduction is refused") {
  const Status average = Reduction::resolve(DataType::kBool, ReduceOp::kAverage, 2, 1.0).status();
  REQUIRE(average.code() == StatusCode::kInvalidArgument);
  REQUIRE(average.message().find("bool") != std::string::npos);
  const Status adasum = Reduction::resolve(DataType::kFloat32, ReduceOp::kAdasum, 2, 1.0).status();
  REQUIRE(adasum.code() == StatusCode::kInvalidArgument);
  REQUIRE(adasum.message().find("adasum") != std::string::npos);
}

TEST_CASE("the instruction set can be lowered and taken back") {
  REQUIRE(set_simd("scalar").ok());
  REQUIRE(current_simd() == Simd::kScalar);
  REQUIRE(set_simd("auto").ok());
  REQUIRE(current_simd() == best_simd());
  const Status unknown = set_simd("sse9");
  REQUIRE(unknown.code() == StatusCode::kInvalidArgument);
  REQUIRE(unknown.message().find("sse9") != std::string::npos);
  const Status avx512 = set_simd("avx512");
  REQUIRE(avx512.code() ==
          (best_simd() == Simd::kAvx512 ? StatusCode::kOk : StatusCode::kUnsupported));
  REQUIRE(set_simd("auto").ok());
}

}  // namespace
}  // namespace allring
