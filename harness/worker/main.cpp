// attnbench-worker: the program that loads LibTorch and plugins. Started by attnbench only.
#include "harness/worker/process.hpp"

int main(int argc, char** argv) { return attnbench::worker::run_process(argc, argv); }
