#include "harness/measure/recording.hpp"

namespace attnbench::measure {
namespace {

bool is_short(Stopwatch& stopwatch, const PairedBody& body) {
  double seconds = 0;
  for (int call = 0; call < 3; ++call) {  // the first ones also load what they need
    if (body.before) body.before();
    seconds = stopwatch.time(body.call);
  }
  return seconds <= recorded_below_seconds;
}

}  // namespace

Recording record_if_short(Stopwatch& stopwatch, const PairedBody& body, bool recordable,
                          const Recorder& recorder) {
  Recording recording;
  if (!recordable) {
    if (!is_short(stopwatch, body)) return recording;
    if (body.before) {
      recording.why = "what comes before each call cannot be recorded with it";
      return recording;
    }
  }
  recording.play = recorder(body, recording.why);
  if (!recording.play && recording.why.empty()) recording.why = "no reason given";
  return recording;
}

}  // namespace attnbench::measure
