// The protocol between supervisor and worker: versioned JSON lines on a socketpair, never stdout.
// A message is an object whose "type" is the name in front here; each request gets one answer, of
// its own name (record for run) or error; heartbeat and progress come in between.
//
// Supervisor to worker
//   hello      {protocol, plugins: [PluginName…], threads, device}   device: loaded beforehand
//   catalogue  {}
//   plan       {cells: [cell…]}
//   probe      {device, threads?, product?}                  ceilings and the torch part of the
//                                                            machine card; product: that alone
//   run        {cell, round, seed, threads, pinned?,
//              limits: {seconds, memory_bytes, device_bytes?},
//              measure: {…}, log, checkpoint, binary, seat?}  binary: fingerprint, seat: see
//                                                            harness/run/supervise/process_rank.hpp
//   check      {mechanism, implementation, pattern, dtypes, device?, limits, log}
//   apply      {mechanism, implementation, pattern, options, roles: {ROLE: FILE}, parameters:
//              {NAME: FILE}, mask?: FILE, gradient?: FILE | ones, seed, check_rows, allow_nan,
//              out: FOLDER, limits, log}                     arrays travel as .npy files
//   data       {task, settings, seed, out: FOLDER, log}      what the task learns from, as files
//   cancel     {}                                            ends the child at work
//   bye        {}
// Worker to supervisor
//   hello      {protocol, pid, stamp, plugins: [{path, status: ok | refused | crashed, reason}]}
//   catalogue  {mechanisms, tasks, plugins, stamp}           see harness/suite/catalogue.hpp
//   plan       {cells: [{id, supported, reason, implementation, implementation_reason, cost,
//   growth,
//                peak_bytes, options, problem, once?, status?, refused?}]}
//                                                            once: in one round, whatever the
//                                                            run's; status: it failed; refused:
//                                                            because the cell makes no sense
//   probe      {ceilings, machine} or {product, machine}     product: {flops_per_second}
//   heartbeat  {cell, elapsed_seconds}                       once a second while a child is at work
//   progress   {cell, done, total, what}
//   record     {cell, round, status, reason, detail, started_at, wall_seconds, measured}
//              measured: {timing, memory, check, metrics, chosen, calibration_seconds}
//   check      {mechanism, implementation, pattern, status, reason,
//               properties: [{name, status: held | broken | not_applicable, reason, error,
//               tolerance}]}
//   apply      {status, reason?, refused?, implementation, implementation_reason, options, problem,
//              roles, parameters, check, files, stamp}       refused: the request made no sense
//   data       {status, reason?, files: [{file, examples}], …}
//   error      {message}                                     the request could not be understood or
//                                                            done
//   bye        {}
//
// Children of the worker speak with it alone, over sockets of their own: progress, done or failed,
// each with the seal that it was given (Channel::seal). Answers are held to their form
// (core/schema/round_check.hpp) by the worker, and records again before they are appended.
//
// A cell, as the suite's expansion makes it and everybody after it passes it on:
//   {id, label, task, task_label, mechanism, implementation, options, settings, device}
//   options: the mechanism's, those that were said, sizes evaluated; settings: the task's, all of
//   them.
#pragma once

namespace attnbench::run {

constexpr int protocol_version = 1;

}  // namespace attnbench::run
