#include "tasks/learning/data.hpp"

namespace attnbench::tasks::learning {

const char* to_string(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::validation:
      return "validation";
    case Split::test:
      return "test";
  }
  return "";
}

}  // namespace attnbench::tasks::learning
