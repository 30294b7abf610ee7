// Ragged batches: sequences of several lengths in one batch, padded to the longest and with the
// padding masked, as every mechanism takes it. What a call has to do is the sequences' own work;
// what it executes is the padded batch.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attention/mechanism.hpp"
#include "core/json_object.hpp"

namespace attnbench::tasks {

/// The setting `lengths`: a text as core/sequence_lengths.hpp reads it; empty = all are `length`.
Option lengths_setting();

/// The tokens of each sequence of `problem`; none where the setting is empty. Throws UsageError for
/// another text, where their number is not the batch or the longest is not the length, and for the
/// pattern cross, whose keys are of other sequences.
std::vector<std::int64_t> lengths_from(const Options& settings, const Problem& problem);

/// Where padding stands: after a sequence that is read as a whole, before one that is continued, so
/// that its last token is beside the next one.
enum class Padding { after, before };

/// [B, tokens] bool on `device`, true where a token is real, and from the longest length on.
/// Undefined where no sequence is padded.
at::Tensor real_tokens(const std::vector<std::int64_t>& lengths, std::int64_t tokens,
                       Padding padding, const std::string& device);

/// The cost of a batch of these lengths, padded to `problem`; `of` tells that of any problem. Where
/// `lengths` is empty, that of the problem itself. Else model_flops, minimal_bytes and exponentials
/// are those of each sequence alone, where what does not grow with the batch (parameters) counts
/// once; all else is of the padded batch.
Cost ragged_cost(const Problem& problem, const std::vector<std::int64_t>& lengths,
                 const std::function<Cost(const Problem&)>& of);

/// The record's metrics: {real_tokens, executed_tokens}, the second with padding. Empty where
/// `lengths` is.
Values padding_metrics(const std::vector<std::int64_t>& lengths);

}  // namespace attnbench::tasks
