// Words that name a mechanism in Python, as far as the program needs to know them that never starts
// Python: python:FILE.py:NAME with an absolute path, or python:PACKAGE.MODULE:NAME. All functions
// take them as PluginName does, too: NAME=python:… for one whose mechanism is to be called NAME.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace attnbench::process {

bool is_python(const std::string& word);

/// The mechanism's name: the one before the =, else the file's (or the package's) and the object's
/// in lower case, of which one is left out where both are the same: near.py:Near is near,
/// peers/fla.py:GatedDelta is fla_gated_delta, fla.ops.gla:chunk_gla is fla_chunk_gla. Always a
/// valid name.
std::string mechanism_of(const std::string& python_word);

/// Longer names for a mechanism whose name is taken, the shortest first: with the folders that the
/// file is in (a/near.py:Near is a_near), or with the whole name of the module
/// (fla_ops_gla_chunk_gla).
std::vector<std::string> longer_names_of(const std::string& python_word);

/// The word in a form that survives a move of the whole tree: with its file relative to `folder` or
/// else to the working folder, where it is below one of them.
std::string portable(const std::string& python_word, const std::filesystem::path& folder);

/// What is loaded for a word: FILE.py or PACKAGE.MODULE.
std::string home_of(const std::string& python_word);

/// The file of a word; empty for a module that is imported.
std::filesystem::path file_of(const std::string& python_word);

/// The file in which the worker keeps what a word declares, between runs; empty where there is no
/// such folder. What is found under a name depends on the working folder and on the environment of
/// Python.
std::filesystem::path declaration_file(const std::string& python_word);

/// The files on which what the word declares depends, by the last declaration; the word's own file
/// at least.
std::vector<std::filesystem::path> files_of_python(const std::string& python_word);

}  // namespace attnbench::process
