#include "tasks/call/subject.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "tasks/call/memory.hpp"
#include "tasks/check.hpp"
#include "tasks/forecast.hpp"

namespace attnbench::tasks::call {
namespace {

Settings on_device(Settings settings, const std::string& device) {
  settings.problem.device = device;
  return settings;
}

}  // namespace

Subject::Subject(const Registry& registry, Cell cell, Forecast forecast, Settings settings)
    : registry_(registry),
      cell_(std::move(cell)),
      forecast_(std::move(forecast)),
      settings_(on_device(std::move(settings), cell_.device)),
      implementation_(chosen(registry, cell_, forecast_)) {}

void Subject::prepare(std::uint64_t seed) {
  seed_ = seed;
  at::manual_seed(seed);
  called_ = make_called([this] { return make_mechanism(registry_, cell_, forecast_); },
                        implementation_, settings_, seed);
  leaves_ = called_->leaves();
  if (!settings_.has_backward()) return;
  upstream_ = seeded_normal(called_->output_shape(), seed + 1, 1,
                            scalar_type(settings_.problem.dtype), settings_.problem.device);
}

Body Subject::body() {
  make_fresh();
  Body body;
  body.refresh = [this] {
    // Freed first, so that the next output lies where this one lay. Not on a device: what was
    // recorded there writes its output where it did when it was recorded.
    if (settings_.problem.device == "cpu") output_.reset();
    if (fresh_) fresh_->renew();
  };
  if (settings_.pass == Pass::forward) {
    body.call = [this] {
      const at::NoGradGuard no_grad;
      output_ = forward();
    };
  } else if (settings_.pass == Pass::forward_backward) {
    body.call = [this] {
      const at::AutoGradMode with_grad(true);
      output_ = forward();
      output_.backward(upstream_);
    };
    body.before = [this] { clear_gradients(); };
  } else {
    body.call = [this] { output_.backward(upstream_); };
    body.before = [this] {
      const at::AutoGradMode with_grad(true);
      clear_gradients();
      output_ = forward();
    };
  }
  return body;
}

void Subject::make_fresh() {
  if (fresh_) return;
  std::vector<Given> given = called_->given();
  if (upstream_.defined()) {
    given.push_back({"output's gradient", upstream_, upstream_.dim() - 2});
  }
  try {
    fresh_.emplace(std::move(given), seed_);
  } catch (const std::bad_alloc&) {
  } catch (const c10::OutOfMemoryError&) {
  }
}

Json Subject::check(std::uint64_t seed) {
  Json section;
  for (std::size_t i = 0; i < called_->mixes(); ++i) {
    const InnerMix inner = called_->mix(i);
    Json one =
        check_mix({registry_.entry(cell_.mechanism), implementation_,
                   registry_.reference(cell_.mechanism), inner.mechanism, inner.inputs, seed},
                  settings_.has_backward());
    section = section.is_null() ? std::move(one) : worse_of(std::move(section), std::move(one));
  }
  section["mixes"] = called_->mixes();
  return section;
}

Json Subject::metered(MemoryMeter& meter) {
  std::int64_t input_bytes = 0;
  for (const at::Tensor& leaf : leaves_) input_bytes += static_cast<std::int64_t>(leaf.nbytes());
  return call::metered({settings_.pass, [this] { return forward(); }, upstream_,
                        [this] { clear_gradients(); }, input_bytes},
                       meter);
}

at::Tensor Subject::forward() { return called_->forward(); }

void Subject::clear_gradients() {
  for (at::Tensor& leaf : leaves_) leaf.mutable_grad().reset();
}

}  // namespace attnbench::tasks::call
