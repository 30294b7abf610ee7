// Descendants: processes started by processes that this one started, and how to end them all.
//
// A process that detaches itself (fork, setsid) leaves its process group, so that killing the group
// does not reach it. But it becomes a child of the nearest ancestor that adopts orphans, which can
// end it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

namespace attnbench::process {

/// Makes descendants whose parent dies from now on children of this process.
void adopt_orphans();
bool adopts_orphans();

/// A process as /proc shows it.
struct Process {
  pid_t pid = -1;
  pid_t parent = -1;
  pid_t group = -1;
};

/// All processes, without those that end meanwhile.
std::vector<Process> all_processes();

/// The processes that descend from `ancestor`, without `ancestor` itself.
std::vector<pid_t> descendants_of(pid_t ancestor);

/// Kills and reaps every child of this process for which `ours` is false, and those that become its
/// children thereby. Gives up after two seconds. Does nothing in a process that does not adopt
/// orphans: all its children are its own.
void end_orphans(const std::function<bool(const Process& child)>& ours);

/// Whether the child `pid` of this process has ended; does not reap it.
bool has_ended(pid_t pid);

}  // namespace attnbench::process
