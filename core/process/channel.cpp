#include "core/process/channel.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

namespace attnbench::process {

std::pair<Channel, Channel> Channel::pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw ChannelError(std::string("cannot make a socket pair: ") + std::strerror(errno));
  }
  return {Channel(ends[0]), Channel(ends[1])};
}

void Channel::swap(Channel& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(limit_, other.limit_);
  std::swap(seal_, other.seal_);
  std::swap(buffer_, other.buffer_);
  std::swap(searched_, other.searched_);
}

void Channel::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

int Channel::release() { return std::exchange(descriptor_, -1); }

void Channel::send(const Json& message) {
  std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (!seal_.empty()) line.insert(1, "\"seal\":\"" + seal_ + (message.empty() ? "\"" : "\","));
  std::size_t sent = 0;
  while (sent < line.size()) {
    // MSG_NOSIGNAL: a dead reader is an error to report, not a signal to die of.
    const ssize_t count = ::send(descriptor_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw ChannelError(std::string("cannot send: ") + std::strerror(errno));
    sent += static_cast<std::size_t>(count);
  }
}

bool Channel::fill() {
  std::array<char, 1 << 16> block;
  const ssize_t count = ::recv(descriptor_, block.data(), block.size(), 0);
  if (count < 0) {
    if (errno == EINTR || errno == EAGAIN) return true;
    return false;  // a reset connection is an end like any other
  }
  if (count == 0) return false;
  buffer_.append(block.data(), static_cast<std::size_t>(count));
  if (buffer_.size() > limit_ && buffer_.find('\n') == std::string::npos) {
    throw ChannelError("a message longer than " + std::to_string(limit_) + " bytes");
  }
  return true;
}

bool Channel::pending() const {
  pollfd waiting{descriptor_, POLLIN, 0};
  return poll(&waiting, 1, 0) > 0;
}

std::optional<Json> Channel::next() {
  const std::size_t end = buffer_.find('\n', searched_);
  if (end == std::string::npos) {
    searched_ = buffer_.size();
    return std::nullopt;
  }
  const std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  searched_ = 0;
  Json message = Json::parse(line, nullptr, false);
  if (!message.is_object()) {
    throw ChannelError("not a message: \"" + line.substr(0, 120) + "\"");
  }
  if (seal_.empty()) return message;
  const auto seal = message.find("seal");
  if (seal == message.end() || *seal != seal_) {
    throw ChannelError("a message that its work did not write: \"" + line.substr(0, 120) + "\"");
  }
  message.erase(seal);
  return message;
}

std::optional<Json> Channel::receive(double seconds) {
  if (auto message = next()) return message;
  pollfd waiting{descriptor_, POLLIN, 0};
  const int milliseconds =
      seconds < 0 ? 0 : static_cast<int>(std::ceil(std::min(seconds, 1e6) * 1e3));
  if (poll(&waiting, 1, milliseconds) <= 0) return std::nullopt;
  if (!fill()) throw ChannelError("the other end closed the connection");
  return next();
}

}  // namespace attnbench::process
