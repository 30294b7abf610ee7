#include "harness/program/run/supervise/process_rank.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "core/process/limits.hpp"
#include "core/protocol.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;

namespace {

using Variables = std::map<std::string, std::string>;

ProcessRank rank_of(const Variables& variables) {
  return run::process_rank_from([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

}  // namespace

TEST_CASE("a program that was started by itself is alone", "[process_rank]") {
  CHECK(rank_of({}).alone());
  CHECK(rank_of({{"WORLD_SIZE", "1"}}).alone());
  CHECK(rank_of({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}).alone());
  // A batch script of several tasks is itself one process.
  CHECK(rank_of({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}).alone());
}

TEST_CASE("torchrun and srun say who meets where", "[process_rank]") {
  Variables torchrun{
      {"WORLD_SIZE", "4"}, {"RANK", "2"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
  ProcessRank process = rank_of(torchrun);
  CHECK((process.rank == 2 && process.size == 4 && process.address == "node1" &&
         process.port == 29500));
  CHECK_FALSE(process.alone());
  torchrun["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  CHECK(rank_of(torchrun).port == 29501);
  CHECK(nlohmann::json(process) ==
        nlohmann::json{{"rank", 2}, {"size", 4}, {"address", "node1"}, {"port", 29500}});
  Variables srun{
      {"SLURM_STEP_NUM_TASKS", "2"},
      {"SLURM_PROCID", "1"},
      {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.5"},  // perhaps a login node, where no process listens
      {"SLURM_STEP_NODELIST", "node[03-05,9],other"},
      {"SLURM_JOB_ID", "12345"}};
  process = rank_of(srun);
  CHECK((process.rank == 1 && process.size == 2 && process.address == "node03" &&
         process.port == 29945));
  for (const auto& [list, first] : std::map<std::string, std::string>{
           {"vm", "vm"}, {"a,b", "a"}, {"n[7]", "n7"}, {"n[7,9-11]", "n7"}, {"n-1,n-2", "n-1"}}) {
    srun["SLURM_STEP_NODELIST"] = list;
    CHECK(rank_of(srun).address == first);
  }
  srun["MASTER_ADDR"] = "node7";
  srun["MASTER_PORT"] = "4000";
  CHECK((rank_of(srun).address == "node7" && rank_of(srun).port == 4000));
}

TEST_CASE("processes that share a machine share its cores", "[process_rank]") {
  Variables torchrun{{"WORLD_SIZE", "4"}, {"RANK", "2"}, {"MASTER_PORT", "29500"}};
  CHECK(rank_of(torchrun).on_this_machine == 1);
  torchrun["LOCAL_WORLD_SIZE"] = "2";
  CHECK(rank_of(torchrun).on_this_machine == 2);
  Variables srun{{"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_PROCID", "5"}};
  CHECK(rank_of(srun).on_this_machine == 1);
  srun["SLURM_STEP_TASKS_PER_NODE"] = "2(x3),1,1";
  for (const auto& [node, tasks] :
       std::map<std::string, int>{{"0", 2}, {"2", 2}, {"3", 1}, {"4", 1}, {"9", 1}}) {
    srun["SLURM_NODEID"] = node;
    CHECK(rank_of(srun).on_this_machine == tasks);
  }
  srun["SLURM_STEP_TASKS_PER_NODE"] = "8";
  srun["SLURM_NODEID"] = "0";
  CHECK(rank_of(srun).on_this_machine == 8);
  ProcessRank crowded;
  crowded.on_this_machine = 1000;
  CHECK(run::threads_for(crowded) >= 1);
  CHECK(run::threads_for(crowded) <= run::threads_for(ProcessRank{}));
  CHECK(run::threads_for(ProcessRank{}) == process::usable_cores());
}

TEST_CASE("variables that make no sense are refused by name", "[process_rank]") {
  const auto refused = [](const Variables& variables, const char* why) {
    INFO(why);
    CHECK_THROWS_AS(rank_of(variables), UsageFailure);
    CHECK_THROWS_WITH(rank_of(variables), Contains(why));
  };
  refused({{"WORLD_SIZE", "many"}}, "WORLD_SIZE=many");
  refused({{"WORLD_SIZE", "0"}}, "WORLD_SIZE=0");
  refused({{"WORLD_SIZE", "2"}}, "RANK is not set");
  refused({{"WORLD_SIZE", "2"}, {"RANK", "2"}}, "RANK=2");
  refused({{"WORLD_SIZE", "2"}, {"RANK", "-1"}}, "RANK=-1");
  refused({{"WORLD_SIZE", "2"}, {"RANK", "1x"}}, "RANK=1x");
  refused({{"WORLD_SIZE", "2"}, {"RANK", "1"}}, "MASTER_PORT is not set");
  refused({{"WORLD_SIZE", "2"}, {"RANK", "1"}, {"MASTER_PORT", "70000"}}, "MASTER_PORT=70000");
  refused({{"WORLD_SIZE", "2"}, {"RANK", "1"}, {"MASTER_PORT", "7"}, {"LOCAL_WORLD_SIZE", "3"}},
          "LOCAL_WORLD_SIZE=3");
  for (const char* address : {"", "a b", "http://node1", "\x1b[31m", "node1;reboot"}) {
    refused({{"WORLD_SIZE", "2"}, {"RANK", "1"}, {"MASTER_ADDR", address}, {"MASTER_PORT", "7"}},
            "MASTER_ADDR=");
  }
  refused({{"SLURM_STEP_NUM_TASKS", "2"}}, "SLURM_PROCID is not set");
  refused({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "5"}}, "SLURM_PROCID=5");
}
