// What the interpreter makes of a mechanism: Bridge and Instance of attention/python/bridge.hpp.
#include "attention/python/bridge.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "attention/python/bridge/interpreter.hpp"

namespace attnbench::python {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point moment) {
  return std::chrono::duration<double>(Clock::now() - moment).count();
}

// ---- values for Python

py::dict dictionary_of(const Problem& problem) {
  py::dict sizes;
  sizes["batch"] = problem.batch;
  sizes["heads"] = problem.heads;
  sizes["kv_heads"] = problem.kv_heads;
  sizes["length"] = problem.length;
  sizes["key_length"] = problem.key_length;
  sizes["head_dim"] = problem.head_dim;
  sizes["value_dim"] = problem.value_dim;
  sizes["pattern"] = to_string(problem.pattern);
  sizes["causal"] = problem.pattern == Pattern::causal;
  sizes["dtype"] = to_string(problem.dtype);
  sizes["device"] = problem.device;
  return sizes;
}

py::dict dictionary_of(const Options& options) {
  py::dict out;
  for (const auto& [name, value] : options.values()) {
    std::visit(
        [&, key = name](const auto& held) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(held)>, Window>) {
            out[py::str(key)] = py::cast(held);
          }
        },
        value);
  }
  return out;
}

py::object wrapped(const at::Tensor& tensor) {
  return py::reinterpret_steal<py::object>(THPVariable_Wrap(tensor));
}

const at::Tensor& unwrapped(py::handle tensor) { return THPVariable_Unpack(tensor.ptr()); }

std::string form_text(at::IntArrayRef shape, const at::TensorOptions& tensor) {
  std::string text = "[";
  for (const std::int64_t size : shape) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  }
  return text + "] " + c10::toString(c10::typeMetaToScalarType(tensor.dtype())) + " on " +
         tensor.device().str();
}

std::string form_of(const at::Tensor& tensor) {
  return form_text(tensor.sizes(), tensor.options());
}

// ---- calls

/// A callable with the values of its parameters: some are known, the others are of each call.
class Callable {
 public:
  Callable(py::object function, const py::list& plan) : function_(std::move(function)) {
    py::list names;
    for (const py::handle item : plan) {
      const auto [name, wants, constant] =
          item.cast<std::tuple<std::string, std::string, py::object>>();
      names.append(name);
      slots_.push_back({name, wants, constant});
    }
    names_ = py::tuple(names);
  }

  const py::object& function() const { return function_; }

  py::object operator()(const Inputs& inputs, const py::object& state,
                        std::int64_t position) const {
    std::vector<py::object> held(slots_.size());
    std::vector<PyObject*> arguments(slots_.size() + 1);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      held[i] = value_of(slots_[i], inputs, state, position);
      arguments[i + 1] = held[i].ptr();
    }
    PyObject* const result = PyObject_Vectorcall(function_.ptr(), arguments.data() + 1,
                                                 PY_VECTORCALL_ARGUMENTS_OFFSET, names_.ptr());
    if (result == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(result);
  }

 private:
  struct Slot {
    std::string name;
    std::string wants;
    py::object constant;
  };

  static py::object value_of(const Slot& slot, const Inputs& inputs, const py::object& state,
                             std::int64_t position) {
    if (slot.wants == "role") return wrapped(inputs[slot.name]);
    if (slot.wants == "state") return state;
    if (slot.wants == "position") return py::int_(position);
    if (slot.wants != "key_mask") return slot.constant;
    return inputs.key_mask.defined() ? wrapped(inputs.key_mask) : py::none();
  }

  py::object function_;
  std::vector<Slot> slots_;
  py::tuple names_;
};

class MadeInPython;
/// The one that was called last; null where it is gone.
MadeInPython* last_called = nullptr;
/// What the first call of each took beyond its usual one.
std::vector<double> compiles;

class MadeInPython final : public Instance {
 public:
  MadeInPython(const std::string& word, Which which, const Options& options, const Problem& problem)
      : problem_(problem), timed_(which == Which::mechanism) {
    const Surroundings before(true);
    guarded([&] {
      py::object made = glue("Made")(word, which == Which::mechanism ? "mechanism" : "reference",
                                     dictionary_of(problem), dictionary_of(options));
      place_ =
          made.attr("place").cast<std::string>() + ": " + made.attr("name").cast<std::string>();
      query_ = made.attr("query").cast<std::string>();
      std::optional<Callable> step;
      if (!made.attr("step").is_none()) step.emplace(made.attr("step"), made.attr("step_plan"));
      call_.emplace(made.attr("call"), made.attr("call_plan"));
      step_ = std::move(step);
      made_ = std::move(made);  // nothing throws from here on: it is freed with the lock held
    });
    before.restore();
  }

  ~MadeInPython() override {
    if (last_called == this) last_called = nullptr;
    const py::gil_scoped_acquire lock;
    call_.reset();
    step_.reset();
    made_ = py::object();
  }

  std::map<std::string, at::Tensor> tensors(bool parameters) const override {
    return guarded([&] {
      std::map<std::string, at::Tensor> found;
      const auto both = made_.attr("tensors")().cast<py::tuple>();
      for (const py::handle item : both[parameters ? 0 : 1]) {
        const auto pair = item.cast<py::tuple>();
        found[pair[0].cast<std::string>()] = unwrapped(pair[1]);
      }
      return found;
    });
  }

  at::Tensor call(const Inputs& inputs) override {
    return checked(inputs, [&] { return output_of((*call_)(inputs, {}, 0), inputs); });
  }

  at::Tensor step(const Inputs& inputs, State& state) override {
    return checked(inputs, [&] {
      py::dict tensors;
      for (const auto& [name, tensor] : state.tensors) tensors[py::str(name)] = wrapped(tensor);
      const py::object both = (*step_)(inputs, tensors, state.position);
      if (!py::isinstance<py::tuple>(both) || py::len(both) != 2 ||
          !py::isinstance<py::dict>(both.cast<py::tuple>()[1])) {
        throw std::runtime_error(place_ + ".step returned " + type_of(both) +
                                 "; expected the output and the state, a dictionary");
      }
      const auto pair = both.cast<py::tuple>();
      for (auto& [name, tensor] : state.tensors) {
        advance(name, tensor, pair[1].cast<py::dict>());
      }
      return output_of(pair[0], inputs);
    });
  }

  std::map<std::string, at::Tensor> empty_state(std::int64_t batch, std::int64_t capacity,
                                                const at::TensorOptions& tensor) override {
    return guarded([&] {
      std::string dtype = "float32";
      for (const Dtype one : {Dtype::float64, Dtype::bfloat16, Dtype::float16}) {
        if (scalar_type(one) == c10::typeMetaToScalarType(tensor.dtype())) dtype = to_string(one);
      }
      const py::dict made =
          made_.attr("empty_state")(batch, capacity, dtype, tensor.device().str());
      std::map<std::string, at::Tensor> state;
      for (const auto& [name, one] : made) {
        state[name.cast<std::string>()] = unwrapped(one).to(tensor.device());
      }
      return state;
    });
  }

  void draw(std::uint64_t seed) override {
    const Surroundings before(true);
    guarded([&] { made_.attr("draw")(seed); });
    before.restore();
  }

  /// Seconds of a call like this one's of a function that does nothing.
  double empty_call_seconds() {
    return guarded([&] {
      const py::list plan = made_.attr("call_plan");
      const Callable empty(glue("empty_call")(plan), plan);
      Inputs inputs;
      for (const py::handle item : plan) {
        const auto slot = item.cast<py::tuple>();
        if (slot[1].cast<std::string>() != "role") continue;
        inputs.tensors[slot[0].cast<std::string>()] = at::empty({1, 1, 1, 1});
      }
      constexpr int calls = 100;
      std::array<double, 15> seconds{};
      for (double& one : seconds) {
        const auto begin = Clock::now();
        for (int i = 0; i < calls; ++i) {
          const py::gil_scoped_release free;
          const py::gil_scoped_acquire lock;
          const Surroundings before;
          unwrapped(empty(inputs, {}, 0));
          before.changes();
        }
        one = since(begin) / calls;
      }
      std::sort(seconds.begin(), seconds.end());
      return seconds[seconds.size() / 2];
    });
  }

 private:
  static std::string type_of(py::handle value) {
    return py::str(py::type::of(value).attr("__name__")).cast<std::string>();
  }

  /// Runs a call, times the first ones, and looks at what it left behind.
  template <class Call>
  at::Tensor checked(const Inputs& inputs, const Call& call) {
    const Surroundings before;
    std::vector<bool> wanted_gradients;
    for (const auto& [role, tensor] : inputs.tensors) {
      wanted_gradients.push_back(tensor.requires_grad());
    }
    const auto begin = Clock::now();
    at::Tensor output = guarded(call);
    end_if_forked();
    if (timed_) note_time(since(begin));
    if (const std::string changed = before.changes(); !changed.empty()) {
      before.restore();
      throw std::runtime_error(place_ + " changed " + changed +
                               ": a call has to leave that as it was");
    }
    std::size_t i = 0;
    for (const auto& [role, tensor] : inputs.tensors) {
      if (tensor.requires_grad() == wanted_gradients[i++]) continue;
      throw std::runtime_error(place_ + " changed requires_grad of its input " + role);
    }
    if (output.requires_grad() && !at::GradMode::is_enabled()) {
      throw std::runtime_error(place_ +
                               " returned an output with a graph for gradients, and gradients "
                               "are off: it must not turn them on");
    }
    return output;
  }

  void note_time(double seconds) {
    constexpr std::size_t enough = 16;
    last_called = this;
    if (call_seconds_.size() == enough) return;
    call_seconds_.push_back(seconds);
    if (call_seconds_.size() == 1) return;
    std::vector<double> later(call_seconds_.begin() + 1, call_seconds_.end());
    // The lower median: the second call may compile, too, and the third be the last.
    const auto middle = later.begin() + static_cast<std::ptrdiff_t>((later.size() - 1) / 2);
    std::nth_element(later.begin(), middle, later.end());
    if (!compile_) {
      compile_ = compiles.size();
      compiles.push_back(0);
    }
    compiles[*compile_] = std::max(0.0, call_seconds_.front() - *middle);
  }

  at::Tensor output_of(py::handle value, const Inputs& inputs) const {
    const at::Tensor& query = inputs[query_];
    const std::vector<std::int64_t> shape{query.size(0), problem_.heads, query.size(2),
                                          problem_.value_dim};
    const bool is_tensor = THPVariable_Check(value.ptr());
    if (is_tensor) {
      const at::Tensor& output = unwrapped(value);
      if (output.sizes() == shape && output.scalar_type() == query.scalar_type() &&
          output.device() == query.device()) {
        return output;
      }
    }
    const std::string found = is_tensor ? form_of(unwrapped(value)) : type_of(value);
    throw std::runtime_error(place_ + " returned " + found + "; expected " +
                             form_text(shape, query.options()));
  }

  void advance(const std::string& name, at::Tensor& mine, const py::dict& returned) const {
    const bool there = returned.contains(name.c_str());
    const py::object value = there ? py::object(returned[name.c_str()]) : py::none();
    if (!there || !THPVariable_Check(value.ptr())) {
      throw std::runtime_error(place_ + ".step returned a state without the tensor " + name);
    }
    const at::Tensor& next = unwrapped(value);
    if (next.is_same(mine)) return;
    if (next.sizes() != mine.sizes()) {
      throw std::runtime_error(place_ + ".step returned the state " + name + " as " +
                               form_of(next) + ", which was " + form_of(mine) +
                               ": its shape must stay");
    }
    mine.copy_(next);
  }

  const Problem problem_;
  const bool timed_;
  py::object made_;
  std::string place_;
  std::string query_;
  std::optional<Callable> call_;
  std::optional<Callable> step_;
  std::vector<double> call_seconds_;    ///< of the first calls
  std::optional<std::size_t> compile_;  ///< place in compiles
};

class PythonBridge final : public Bridge {
 public:
  std::string describe(const std::string& word) override {
    const Surroundings before(true);
    const std::string text = guarded([&] { return glue("describe")(word).cast<std::string>(); });
    end_if_forked();
    before.restore();
    return text;
  }

  std::unique_ptr<Instance> make(const std::string& word, Which which, const Options& options,
                                 const Problem& problem) override {
    return std::make_unique<MadeInPython>(word, which, options, problem);
  }

  std::map<std::string, double> cost(const std::string& word, const Problem& problem) override {
    return guarded([&] {
      std::map<std::string, double> found;
      const py::dict numbers = glue("numbers_of_cost")(word, dictionary_of(problem));
      for (const auto& [name, number] : numbers) {
        found[name.cast<std::string>()] = number.cast<double>();
      }
      return found;
    });
  }

  Observed observed() override {
    Observed seen;
    if (last_called != nullptr) seen.call_seconds = last_called->empty_call_seconds();
    if (!compiles.empty()) {
      seen.compile_seconds = *std::max_element(compiles.begin(), compiles.end());
    }
    guarded([&] {
      seen.files = glue("imported_files")().cast<std::vector<std::string>>();
      const auto runtimes = glue("openmp_runtimes")().cast<std::vector<std::string>>();
      if (runtimes.size() < 2) return;
      std::string list;
      for (const std::string& one : runtimes) list += (list.empty() ? "" : ", ") + one;
      seen.notes.push_back(
          "more than one OpenMP runtime is in the process, whose threads compete: " + list);
    });
    return seen;
  }
};

}  // namespace
}  // namespace attnbench::python

/// Starts Python once: a failed start is not tried again, but said again, in the processes that are
/// forked later, too. The bridge lives as long as the process; there is none where Python is only
/// preloaded.
extern "C" __attribute__((visibility("default"))) attnbench::python::Bridge* attnbench_start_python(
    bool preload) {
  static std::string failure;
  if (!failure.empty()) throw attnbench::UnsupportedError(failure);
  try {
    if (preload) {
      attnbench::python::preload_interpreter();
      return nullptr;
    }
    attnbench::python::start_interpreter();
  } catch (const std::exception& error) {
    failure = error.what();
    throw;
  }
  return new attnbench::python::PythonBridge;
}
