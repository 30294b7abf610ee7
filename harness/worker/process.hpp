// The process of the worker, from its start to its end.
#pragma once

namespace attnbench::worker {

/// `attnbench-worker --socket FD`: serves the program at the other end of the socket until it hangs
/// up, and ends the process. Returns 2 where it was started by hand.
int run_process(int argc, char** argv);

}  // namespace attnbench::worker
