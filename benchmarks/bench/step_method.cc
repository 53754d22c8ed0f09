#include "benchmarks/bench/step_method.h"

#include <algorithm>
#include <cstring>

#include "bindings/c/allring.h"

namespace allring::bench {

namespace {

Status last_error(int code) { return {static_cast<StatusCode>(code), allring_last_error()}; }

class RuntimeStep final : public StepMethod {
 public:
  explicit RuntimeStep(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      names_.push_back("step." + std::to_string(tensors_.size() - 1 - i));
    handles_.resize(tensors_.size());
  }
  const char* impl() const override { return "allring"; }
  std::string mode() const override { return "runtime"; }

  Status run() override {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const auto count = static_cast<std::int64_t>(tensors_[i].count);
      if (int code = allring_allreduce_async(names_[i].c_str(), tensors_[i].data, tensors_[i].data,
                                             1, &count, ALLRING_FLOAT32, ALLRING_SUM, 1, 1,
                                             ALLRING_GLOBAL_PROCESS_SET, &handles_[i]))
        return last_error(code);
    }
    Status status;
    for (const allring_handle handle : handles_) {
      const int code = allring_wait(handle, -1);
      if (code != ALLRING_OK && status.ok()) status = last_error(code);
      allring_release(handle);
    }
    return status;
  }

 private:
  std::vector<Tensor> tensors_;
  std::vector<std::string> names_;
  std::vector<allring_handle> handles_;
};

Status sum_in_place(const MpiCollectives& mpi, float* data, std::size_t count) {
  return mpi.run(ALLRING_KIND_ALLREDUCE, data, data, count, ALLRING_FLOAT32, ALLRING_SUM, 0);
}

class MpiStep final : public StepMethod {
 public:
  MpiStep(const MpiCollectives& mpi, std::vector<Tensor> tensors)
      : mpi_(mpi), tensors_(std::move(tensors)) {}
  const char* impl() const override { return "openmpi"; }
  std::string mode() const override { return "tensor by tensor"; }

  Status run() override {
    for (const Tensor& tensor : tensors_)
      ALLRING_RETURN_IF_ERROR(sum_in_place(mpi_, tensor.data, tensor.count));
    return {};
  }

 private:
  const MpiCollectives& mpi_;
  std::vector<Tensor> tensors_;
};

class MpiBucketStep final : public StepMethod {
 public:
  MpiBucketStep(const MpiCollectives& mpi, std::vector<Tensor> tensors, std::size_t bucket_bytes)
      : mpi_(mpi),
        tensors_(std::move(tensors)),
        bucket_bytes_(bucket_bytes),
        buckets_(fill_buckets(tensors_, bucket_bytes)),
        memory_(bucket_bytes / sizeof(float)) {}
  const char* impl() const override { return "openmpi"; }
  std::string mode() const override {
    return "buckets of " + std::to_string(bucket_bytes_ >> 20) + " MiB";
  }

  Status run() override {
    for (const Bucket& bucket : buckets_) {
      const auto inside = std::span(tensors_).subspan(bucket.first, bucket.last - bucket.first);
      if (inside.size() == 1) {
        ALLRING_RETURN_IF_ERROR(sum_in_place(mpi_, inside[0].data, inside[0].count));
        continue;
      }
      float* place = memory_.data();
      for (const Tensor& tensor : inside) {
        std::memcpy(place, tensor.data, tensor.bytes());
        place += tensor.count;
      }
      ALLRING_RETURN_IF_ERROR(sum_in_place(mpi_, memory_.data(), bucket.count));
      place = memory_.data();
      for (const Tensor& tensor : inside) {
        std::memcpy(tensor.data, place, tensor.bytes());
        place += tensor.count;
      }
    }
    return {};
  }

 private:
  const MpiCollectives& mpi_;
  std::vector<Tensor> tensors_;
  std::size_t bucket_bytes_;
  std::vector<Bucket> buckets_;
  std::vector<float> memory_;
};

std::vector<Tensor> backwards(std::vector<Tensor> tensors) {
  std::reverse(tensors.begin(), tensors.end());
  return tensors;
}

}  // namespace

std::vector<Bucket> fill_buckets(std::span<const Tensor> tensors, std::size_t bucket_bytes) {
  std::vector<Bucket> buckets;
  Bucket open{0, 0, 0};
  const auto close = [&] {
    if (open.last > open.first) buckets.push_back(open);
    open = {open.last, open.last, 0};
  };
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (open.count * sizeof(float) + tensors[i].bytes() > bucket_bytes) close();
    open.last = i + 1;
    open.count += tensors[i].count;
    if (open.count * sizeof(float) >= bucket_bytes) close();
  }
  close();
  return buckets;
}

std::unique_ptr<StepMethod> runtime_step(std::vector<Tensor> tensors) {
  return std::make_unique<RuntimeStep>(backwards(std::move(tensors)));
}

std::unique_ptr<StepMethod> mpi_step(const MpiCollectives& mpi, std::vector<Tensor> tensors) {
  return std::make_unique<MpiStep>(mpi, backwards(std::move(tensors)));
}

std::unique_ptr<StepMethod> mpi_bucket_step(const MpiCollectives& mpi, std::vector<Tensor> tensors,
                                            std::size_t bucket_bytes) {
  return std::make_unique<MpiBucketStep>(mpi, backwards(std::move(tensors)), bucket_bytes);
}

}  // namespace allring::bench
