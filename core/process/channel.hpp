// Channel: JSON lines over a socket, one message a line. Either end may be slow or die.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace attnbench::process {

using Json = nlohmann::json;

/// Thrown where the other end is gone, or sent something that is not a message.
class ChannelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Channel {
 public:
  /// A longer line is an error: a broken peer must not exhaust our memory.
  static constexpr std::size_t longest_line = std::size_t{256} << 20;

  Channel() = default;
  /// Takes ownership of a connected stream socket.
  explicit Channel(int descriptor, std::size_t limit = longest_line)
      : descriptor_(descriptor), limit_(limit) {}
  ~Channel() { close(); }
  Channel(Channel&& other) noexcept { swap(other); }
  Channel& operator=(Channel&& other) noexcept {
    swap(other);
    return *this;
  }

  /// Two ends of one connection, both closed on exec.
  static std::pair<Channel, Channel> pair();

  /// Makes each message sent from now on carry `seal`, and each received one without it an error: a
  /// process that does not know the seal cannot send for the other end. Call it at both ends.
  void seal(std::string seal) { seal_ = std::move(seal); }

  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  void close();
  /// Gives the descriptor to the caller, and closes the channel.
  int release();

  /// Blocks until the kernel has the whole message. Invalid UTF-8, which comes from logs, is
  /// replaced. Throws ChannelError if the other end is closed.
  void send(const Json& message);

  /// Reads what is there, waiting if there is nothing; false at the end of the stream. A signal
  /// counts as nothing read. Throws ChannelError where a line grows too long.
  bool fill();
  /// Whether `fill` would not wait.
  bool pending() const;
  /// The next whole message among what was read. Throws ChannelError if a line is not a JSON
  /// object, or lacks the seal.
  std::optional<Json> next();
  /// The next message, as `next` returns it, waiting up to `seconds` for it; nothing if none came
  /// or a signal did. Throws ChannelError at the end of the stream.
  std::optional<Json> receive(double seconds);

 private:
  void swap(Channel& other) noexcept;

  int descriptor_ = -1;
  std::size_t limit_ = longest_line;
  std::string seal_;
  std::string buffer_;
  std::size_t searched_ = 0;  ///< no line end before this offset of the buffer
};

}  // namespace attnbench::process
