#include "harness/worker/python_host.hpp"

#include "attention/python/bridge.hpp"
#include "core/process/descendants.hpp"
#include "core/protocol.hpp"
#include "harness/worker/worker.hpp"

namespace attnbench::worker {
namespace {

constexpr double forever = 1e6;  // seconds

ChildSetup without_limits() {
  ChildSetup setup;
  setup.limits_memory = false;  // its children have theirs
  return setup;
}

}  // namespace

PythonHost::PythonHost(const Loaded& loaded, int threads)
    : process_(without_limits(), [&](process::Channel& to_worker) {
        process::adopt_orphans();
        python::preload();
        Worker(std::move(to_worker), loaded, threads).serve();
      }) {}

std::vector<PythonPlugin> PythonHost::declarations(
    const std::vector<std::string>& words, double limit_seconds,
    const std::function<void(const std::string&)>& on_step) {
  const auto pass_on = [&](const Json& message) {
    if (protocol::type_of(message) == "loading") on_step(message.at("plugin"));
  };
  return answer({{"type", "declarations"}, {"words", words}, {"limit_seconds", limit_seconds}},
                pass_on)
      .at("plugins")
      .get<std::vector<PythonPlugin>>();
}

void PythonHost::load(const std::vector<std::string>& paths,
                      const std::vector<PythonPlugin>& in_python) {
  answer({{"type", "load"}, {"paths", paths}, {"plugins", in_python}});
}

std::vector<Forecast> PythonHost::plan(const std::vector<Cell>& cells) {
  return answer(protocol::Plan{cells}).get<protocol::PlanAnswer>().cells;
}

Json PythonHost::answer(const Json& request, const OnMessage& on_other) {
  process_.send(request);
  const std::string wanted = protocol::type_of(request);
  while (const auto message = process_.receive(forever)) {
    const std::string type = protocol::type_of(*message);
    if (type == wanted) return *message;
    if (type == "error") throw process::ChannelError(message->value("message", ""));
    if (on_other) on_other(*message);
  }
  throw process::ChannelError("the process of mechanisms in Python has ended");
}

}  // namespace attnbench::worker
