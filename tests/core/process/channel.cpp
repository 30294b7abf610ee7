#include "core/process/channel.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/catch.hpp"

using attnbench::process::Channel;
using attnbench::process::ChannelError;
using attnbench::process::Json;

namespace {

void write_raw(const Channel& channel, const std::string& text) {
  REQUIRE(::send(channel.descriptor(), text.data(), text.size(), 0) ==
          static_cast<ssize_t>(text.size()));
}

}  // namespace

TEST_CASE("a message arrives whole, however it is cut", "[channel]") {
  auto [here, there] = Channel::pair();
  write_raw(there, "{\"type\":\"he");
  CHECK_FALSE(here.receive(0.01).has_value());
  write_raw(there, "llo\"}\n{\"a\":1}\n{\"b\"");
  CHECK(here.receive(1)->at("type") == "hello");
  CHECK(here.receive(0)->at("a") == 1);
  CHECK_FALSE(here.receive(0.01).has_value());
  write_raw(there, ":2}\n");
  CHECK(here.receive(1)->at("b") == 2);
}

TEST_CASE("a message larger than the socket's buffer gets through", "[channel]") {
  auto [here, there] = Channel::pair();
  const std::string large(3 << 20, 'x');
  std::thread sender([&, &from = there] { from.send({{"text", large}}); });
  std::optional<Json> message;
  while (!message) message = here.receive(1);
  sender.join();
  CHECK(message->at("text").get<std::string>() == large);
}

TEST_CASE("a line that is no message is an error that shows it", "[channel]") {
  for (const char* text : {"nonsense\n", "[1,2]\n", "3\n", "{\"a\":}\n", "\n"}) {
    auto [here, there] = Channel::pair();
    write_raw(there, text);
    CHECK_THROWS_AS(here.receive(1), ChannelError);
  }
}

TEST_CASE("a line beyond the limit ends the conversation", "[channel]") {
  auto [first, there] = Channel::pair();
  Channel here(first.release(), 1000);
  write_raw(there, std::string(2000, 'x'));
  CHECK_THROWS_AS(here.receive(1), ChannelError);
}

TEST_CASE("a peer that is gone is an error on both ways, never a signal", "[channel]") {
  auto [here, there] = Channel::pair();
  there.send({{"last", true}});
  there.close();
  CHECK(here.receive(1)->at("last") == true);
  CHECK_THROWS_AS(here.receive(1), ChannelError);
  CHECK_THROWS_AS(here.send({{"a", 1}}), ChannelError);
}

TEST_CASE("text that is not UTF-8 is sent mended", "[channel]") {
  auto [here, there] = Channel::pair();
  there.send({{"log", "bad \xff byte"}});
  CHECK(here.receive(1)->at("log").get<std::string>().find("byte") != std::string::npos);
}

TEST_CASE("a message without the seal is refused", "[channel]") {
  auto [here, there] = Channel::pair();
  here.seal("secret");
  there.seal("secret");
  there.send({{"type", "done"}, {"text", "a \"line\"\n"}});
  there.send(Json::object());
  CHECK(*here.receive(1) == Json{{"type", "done"}, {"text", "a \"line\"\n"}});
  CHECK(*here.receive(1) == Json::object());
  for (const char* forged :
       {"{\"type\":\"done\"}\n", "{\"type\":\"done\",\"seal\":\"guess\"}\n", "{\"seal\":[]}\n"}) {
    auto [ours, theirs] = Channel::pair();
    ours.seal("secret");
    write_raw(theirs, forged);
    CHECK_THROWS_AS(ours.receive(1), ChannelError);
  }
}
