// Foreign records: what another program measured of the same cells, set beside ours.
//
// A foreign file is JSON:
//   schema     1
//   program    {name, version, …}    whatever else is known of it (its BLAS, its threads' library)
//   threads    how many it used
//   command    the command line that wrote the file
//   records    [{beside, label, implementation?, status?, reason?, seconds?, memory?}…]
//     beside          id of the cell of ours whose problem it solved
//     label           of its line in figures; the program's name and version are added
//     implementation  as that program calls it
//     status, reason  a status other than ok, and why; then no seconds are needed, but for one that
//                     was disturbed, whose times are kept and count for nothing
//     seconds         {WHAT: [[sample…]…]}: samples of each fresh process, WHAT as in the cell's
//                     timing, each above zero
//     memory          {peak_bytes, …} as in records of ours
// A record is not checked against the reference, and what it executes is not known: it has neither
// `check` nor executed FLOPs. Everything else about it is as in record.hpp, with `foreign` = the
// program's object, threads and command.
#pragma once

#include <string>

#include "core/result/document.hpp"

namespace attnbench::run {

/// The result `ours` with the records of `foreign` behind its cells. Throws UsageFailure naming
/// `file`, the JSON pointer and what was expected there: a missing or unknown key, a cell that
/// `ours` lacks, samples that are not positive numbers, a label that is taken.
result::Result with_foreign(result::Result ours, const Json& foreign, const std::string& file);

/// The threads that the programs of a foreign file used.
int threads_of_foreign(const Json& foreign, const std::string& file);

}  // namespace attnbench::run
