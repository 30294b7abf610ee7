// save_script METHODS OUT.pt: what torch.jit.script and save do in Python, for a class whose
// methods stand in the file METHODS.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "attention/torch/torch.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ifstream stream(argv[1]);
  const std::string methods{std::istreambuf_iterator<char>(stream), {}};
  try {
    torch::jit::Module module("Scripted");
    module.define(methods);
    module.save(argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
