// The main of every test program. Each case has the name of its file as a tag: test_attention "[#latte]".
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

int main(int argc, char** argv) {
  Catch::Session session;
  session.configData().filenamesAsTags = true;
  return session.run(argc, argv);
}
