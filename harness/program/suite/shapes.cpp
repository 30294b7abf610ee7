#include "harness/program/suite/shapes.hpp"

#include <algorithm>

#include "core/failure.hpp"
#include "core/sizes.hpp"
#include "core/text/format.hpp"
#include "core/text/spelling.hpp"
#include "harness/program/suite/known_suites.hpp"
#include "harness/program/suite/schema_check.hpp"

namespace attnbench::suite {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr const char* file_of_shapes = "shapes.json";

const Json& shapes_schema() {
  static const Json parsed = Json::parse(shapes_schema_text);
  return parsed;
}

ModelShape shape_from(const std::string& name, const Ordered& json) {
  ModelShape shape{name, json["title"], json["source"], json.value("notes", ""), Ordered::object()};
  for (const auto& [key, value] : json.items()) {
    if (key != "title" && key != "source" && key != "notes") shape.sizes[key] = value;
  }
  return shape;
}

/// What the schema cannot say.
void check_sizes(const ModelShape& shape, const std::string& pointer, const Document& document,
                 Problems& problems) {
  Sizes sizes;
  for (const auto& [key, value] : shape.sizes.items()) {
    if (value.is_number_integer()) sizes.add(key, value.get<std::int64_t>());
  }
  for (const SizeFault& fault : sizes.contradictions()) {
    problems.add(document.place(child_pointer(pointer, fault.size)), fault.reason);
  }
  const bool crosses = shape.sizes["pattern"] == "cross";
  if (crosses == shape.sizes.contains("key_length")) return;
  problems.add(document.place(pointer), crosses
                                            ? "the pattern cross needs key_length, its key tokens"
                                            : "key_length stands without the pattern cross");
}

}  // namespace

std::string ModelShape::sizes_text() const {
  std::string text;
  for (const auto& [key, value] : sizes.items()) {
    text.append(text.empty() ? "" : " ").append(key).append("=");
    if (!value.is_array()) {
      text += text::human_value(Json(value));
      continue;
    }
    for (std::size_t i = 0; i < value.size(); ++i) {
      text.append(i == 0 ? "" : ",").append(text::human_value(Json(value[i])));
    }
  }
  return text;
}

void to_json(nlohmann::json& json, const ModelShape& shape) {
  json = Json(shape.sizes);
  json.update({{"name", shape.name}, {"title", shape.title}, {"source", shape.source}});
  if (!shape.notes.empty()) json["notes"] = shape.notes;
}

Shapes Shapes::read(const std::filesystem::path& file) {
  const Document document = read_document(file);
  Problems problems;
  check_schema(
      shapes_schema(), document.value, [&](const std::string& at) { return document.place(at); },
      problems);
  problems.throw_if_any();
  Shapes shapes;
  for (const auto& [name, json] : document.value.items()) {
    shapes.all_.push_back(shape_from(name, json));
    check_sizes(shapes.all_.back(), child_pointer("", name), document, problems);
  }
  problems.throw_if_any();
  return shapes;
}

Shapes Shapes::known() {
  const std::filesystem::path folder = suites_folder();
  if (folder.empty()) {
    throw UsageFailure(
        "there are no shapes: no folder of suites is here or above the program; say the sizes "
        "themselves");
  }
  return read(folder / file_of_shapes);
}

Shapes Shapes::known_or_none() {
  std::error_code ignored;
  const std::filesystem::path folder = suites_folder();
  const std::filesystem::path file = folder / file_of_shapes;
  return !folder.empty() && std::filesystem::exists(file, ignored) ? read(file) : Shapes();
}

std::vector<std::string> Shapes::names() const {
  std::vector<std::string> names;
  for (const ModelShape& shape : all_) names.push_back(shape.name);
  return names;
}

const ModelShape* Shapes::find(const std::string& name) const {
  const auto found = std::find_if(all_.begin(), all_.end(),
                                  [&](const ModelShape& one) { return one.name == name; });
  return found == all_.end() ? nullptr : &*found;
}

bool holds_shapes(const std::filesystem::path& file) { return file.filename() == file_of_shapes; }

void ShapeUse::add(const std::string& size, Of of, const std::string& task,
                   const std::string& mechanism) {
  Seen& seen = seen_[size];
  Places& places = of == Of::taken      ? seen.taken
                   : of == Of::same     ? seen.same
                   : of == Of::replaced ? seen.replaced
                                        : seen.missing;
  places.emplace(task, mechanism);
}

bool ShapeUse::is_idle() const {
  return !seen_.empty() && std::all_of(seen_.begin(), seen_.end(),
                                       [](const auto& one) { return one.second.taken.empty(); });
}

Ordered ShapeUse::taken() const {
  Ordered sizes = Ordered::object();
  for (const auto& [key, value] : shape_.sizes.items()) {
    const auto found = seen_.find(key);
    if (found == seen_.end()) continue;
    const Seen& seen = found->second;
    const bool same = !seen.same.empty() && seen.replaced.empty();
    if (!seen.taken.empty() || same) sizes[key] = value;
  }
  return sizes;
}

std::vector<std::string> ShapeUse::replaced() const {
  std::vector<std::string> sizes;
  for (const auto& [key, seen] : seen_) {
    if (!seen.replaced.empty()) sizes.push_back(key);
  }
  return sizes;
}

std::vector<std::string> ShapeUse::not_taken() const {
  std::vector<std::string> all;
  for (const auto& [key, seen] : seen_) {
    if (seen.missing.empty()) continue;
    std::set<std::string> tasks, mechanisms;  // that have it
    for (const Places* places : {&seen.taken, &seen.same, &seen.replaced}) {
      for (const auto& [task, mechanism] : *places) {
        tasks.insert(task);
        mechanisms.insert(mechanism);
      }
    }
    if (tasks.empty()) {
      all.push_back(key);
      continue;
    }
    std::set<std::string> without;
    for (const auto& [task, mechanism] : seen.missing) {
      without.insert(tasks.contains(task) ? mechanism : task);
    }
    constexpr std::size_t most = 6;
    all.push_back(key +
                  (without.size() <= most
                       ? " by " + text::listed({without.begin(), without.end()})
                       : " except by " + text::listed({mechanisms.begin(), mechanisms.end()})));
  }
  return all;
}

std::string ShapeUse::text() const {
  const ModelShape used{shape_.name, "", "", "", taken()};
  std::string text = "shape " + shape_.name + " (" + shape_.title + "): " + used.sizes_text();
  if (!replaced().empty()) text += "; said otherwise: " + text::listed(replaced());
  std::string separator = "; not taken: ";
  for (const std::string& one : not_taken()) {
    text += separator + one;
    separator = "; ";
  }
  return text;
}

Json ShapeUse::json() const {
  Json json{{"name", shape_.name},    {"title", shape_.title},  {"source", shape_.source},
            {"sizes", Json(taken())}, {"replaced", replaced()}, {"not_taken", not_taken()}};
  if (!shape_.notes.empty()) json["notes"] = shape_.notes;
  return json;
}

}  // namespace attnbench::suite
