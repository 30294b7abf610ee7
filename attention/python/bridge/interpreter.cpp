#include "attention/python/bridge/interpreter.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>

#include "core/errors.hpp"

namespace attnbench::python {

extern const char* const glue_text;

namespace {

namespace fs = std::filesystem;

/// Lives until the process ends: there is no time after Python.
PyObject* glue_dictionary = nullptr;
bool forked = false;

constexpr const char* built = "this worker was built with Python " ATTNBENCH_PYTHON_VERSION
                              " and PyTorch " ATTNBENCH_PYTHON_TORCH;

/// The first number after `key` in a file of such lines; empty where there is none.
std::string value_in(const fs::path& file, const std::string& key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const std::size_t begin = line.find_first_of("0123456789", key.size());
    if (begin == std::string::npos) continue;
    return line.substr(begin, line.find_first_of(" '\"\r", begin) - begin);
  }
  return {};
}

std::string first_two(const std::string& version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

/// The PyTorch in a virtual environment of another Python, without starting that.
std::string torch_in(const fs::path& environment) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(environment / "lib", none)) {
    const std::string found =
        value_in(entry.path() / "site-packages/torch/version.py", "__version__");
    if (!found.empty()) return "PyTorch " + found;
  }
  return "no PyTorch of its own";
}

/// The python whose packages are used: of the active virtual environment, or the one it was built
/// with.
std::string program() {
  const char* const active = std::getenv("VIRTUAL_ENV");
  if (active == nullptr || *active == '\0') return ATTNBENCH_PYTHON_PROGRAM;
  const fs::path environment = active;
  const fs::path found = environment / "bin/python3";
  std::error_code none;
  if (!fs::exists(found, none)) return ATTNBENCH_PYTHON_PROGRAM;
  const std::string version = value_in(environment / "pyvenv.cfg", "version");
  if (!version.empty() && first_two(version) != first_two(ATTNBENCH_PYTHON_VERSION)) {
    throw UnsupportedError(
        "the active virtual environment " + environment.string() + " has Python " + version +
        " and " + torch_in(environment) + ", and " + built +
        ": leave it (deactivate), or build for it with ATTNBENCH_TORCH=" + environment.string() +
        "/lib/python" + first_two(version) + "/site-packages/torch");
  }
  return found;
}

void require_ok(const PyStatus& status) {
  if (PyStatus_Exception(status) == 0) return;
  throw UnsupportedError("Python " ATTNBENCH_PYTHON_VERSION " does not start (" +
                         std::string(status.err_msg != nullptr ? status.err_msg : "no reason") +
                         "): check PYTHONHOME and PYTHONPATH, or install it again");
}

void initialize(const std::string& python) {
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  config.install_signal_handlers = 0;  // the worker's child has its own
  config.parse_argv = 0;
  config.buffered_stdio = 0;  // the process ends without Python's own end
  config.faulthandler = 1;    // a crash writes the lines of Python that it was at into the log
  PyStatus status = PyConfig_SetBytesString(&config, &config.program_name, python.c_str());
  if (PyStatus_Exception(status) == 0) status = Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  require_ok(status);
}

/// LibTorch's library in this process.
std::string loaded_torch() {
  Dl_info found{};
  dladdr(reinterpret_cast<const void*>(&at::get_num_threads), &found);
  return found.dli_fname != nullptr ? found.dli_fname : "";
}

void load_glue() {
  const py::object builtins = py::module_::import("builtins");
  py::dict space;
  space["__name__"] = "attnbench_glue";
  space["__file__"] = "attnbench/glue.py";
  space["__builtins__"] = builtins;
  const py::object code = builtins.attr("compile")(glue_text, "attnbench/glue.py", "exec");
  builtins.attr("exec")(code, space);
  glue_dictionary = space.release().ptr();
}

constexpr int max_signals = 32;

struct Handlers {
  std::array<struct sigaction, max_signals> actions{};
  int folder = -1;
};

/// The handlers that each call must leave in place: the worker's, and faulthandler's for crashes.
Handlers& handlers() {
  static Handlers all;
  return all;
}

void remember_handlers() {
  for (int number = 1; number < max_signals; ++number) {
    sigaction(number, nullptr, &handlers().actions[static_cast<std::size_t>(number)]);
  }
  handlers().folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

}  // namespace

py::object glue(const char* function) {
  return py::reinterpret_borrow<py::object>(PyDict_GetItemString(glue_dictionary, function));
}

void rethrow(const py::error_already_set& error) {
  std::string reason;
  std::string trace;
  std::string kind;
  try {
    const py::object trace_or_none = error.trace() ? error.trace() : py::none();
    const auto explained = glue("explain")(error.value(), trace_or_none).cast<py::tuple>();
    reason = explained[0].cast<std::string>();
    trace = explained[1].cast<std::string>();
    kind = explained[2].cast<std::string>();
  } catch (const std::exception&) {
    throw std::runtime_error("an exception of Python that cannot be shown");
  }
  if (!trace.empty()) std::fprintf(stderr, "%s", trace.c_str());
  std::fflush(stderr);
  if (kind == "unsupported") throw UnsupportedError(reason);
  if (kind == "memory") throw std::bad_alloc();
  throw std::runtime_error(trace.empty() ? reason : reason + "\n" + trace);
}

Surroundings::Surroundings(bool generator)
    : threads_(at::get_num_threads()),
      dtype_(c10::get_default_dtype_as_scalartype()),
      gradients_(at::GradMode::is_enabled()),
      deterministic_(at::globalContext().deterministicAlgorithms()),
      warns_only_(at::globalContext().deterministicAlgorithmsWarnOnly()),
      cudnn_deterministic_(at::globalContext().deterministicCuDNN()),
      cudnn_benchmark_(at::globalContext().benchmarkCuDNN()),
      precision_(at::globalContext().float32MatmulPrecision()),
      modes_(c10::impl::tls_local_dispatch_key_set()) {
  if (generator) generator_ = at::detail::getDefaultCPUGenerator().get_state();
}

std::string Surroundings::changes() const {
  if (at::get_num_threads() != threads_) {
    return "PyTorch's threads from " + std::to_string(threads_) + " to " +
           std::to_string(at::get_num_threads());
  }
  if (c10::get_default_dtype_as_scalartype() != dtype_) return "the default dtype";
  if (at::GradMode::is_enabled() != gradients_) return "whether gradients are computed";
  const at::Context& context = at::globalContext();
  if (context.deterministicAlgorithms() != deterministic_ ||
      context.deterministicAlgorithmsWarnOnly() != warns_only_ ||
      context.deterministicCuDNN() != cudnn_deterministic_ ||
      context.benchmarkCuDNN() != cudnn_benchmark_) {
    return "whether PyTorch takes deterministic algorithms";
  }
  if (context.float32MatmulPrecision() != precision_) return "the precision of matrix products";
  const c10::impl::LocalDispatchKeySet modes = c10::impl::tls_local_dispatch_key_set();
  if (!(modes.included_ == modes_.included_) || !(modes.excluded_ == modes_.excluded_)) {
    return "a mode of PyTorch, such as autocast or inference";
  }
  return {};
}

void Surroundings::restore() const {
  if (at::get_num_threads() != threads_) at::set_num_threads(threads_);
  if (c10::get_default_dtype_as_scalartype() != dtype_) {
    c10::set_default_dtype(c10::scalarTypeToTypeMeta(dtype_));
  }
  at::GradMode::set_enabled(gradients_);
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(deterministic_, warns_only_);
  context.setDeterministicCuDNN(cudnn_deterministic_);
  context.setBenchmarkCuDNN(cudnn_benchmark_);
  context.setFloat32MatmulPrecision(precision_ == at::Float32MatmulPrecision::HIGHEST ? "highest"
                                    : precision_ == at::Float32MatmulPrecision::HIGH  ? "high"
                                                                                      : "medium");
  c10::impl::_force_tls_local_dispatch_key_set(modes_);
  if (generator_.defined()) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    generator.set_state(generator_);
  }
  for (int number = 1; number < max_signals; ++number) {
    sigaction(number, &handlers().actions[static_cast<std::size_t>(number)], nullptr);
  }
  if (handlers().folder >= 0 && fchdir(handlers().folder) != 0) {
    throw std::runtime_error("the working folder is gone");
  }
}

void preload_interpreter() {
  const Surroundings before(true);
  if (Py_IsInitialized() != 0) {
    PyOS_AfterFork_Child();  // a Python hosts the worker, and this process is a copy of it
  } else {
    initialize(program());
  }
  remember_handlers();
  try {
    load_glue();
    glue("start")(loaded_torch(), ATTNBENCH_PYTHON_VERSION, ATTNBENCH_PYTHON_TORCH);
  } catch (const py::error_already_set& error) {
    rethrow(error);
  }
  before.restore();
}

void start_interpreter() {
  if (glue_dictionary == nullptr) {
    preload_interpreter();
  } else {
    PyOS_AfterFork_Child();  // this process is a copy of one that has preloaded it
    try {
      glue("seed")();
    } catch (const py::error_already_set& error) {
      rethrow(error);
    }
  }
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
  // The autograd engine must not be entered with the lock; each call takes it anew.
  PyEval_SaveThread();
}

void end_if_forked() {
  if (forked) _exit(0);
}

}  // namespace attnbench::python
