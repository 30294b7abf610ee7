#include "harness/suite/cell.hpp"

#include <algorithm>
#include <utility>

#include "core/text/format.hpp"
#include "core/hash.hpp"
#include "harness/suite/expression.hpp"
#include "harness/suite/sizes.hpp"
#include "harness/suite/values.hpp"

namespace attnbench::suite {
namespace {

using Said = std::map<std::string, const Term*>;

class CellMaker {
 public:
  CellMaker(const Said& said, const std::string& place, Problems& problems)
      : said_(said), place_(place), problems_(problems) {}

  void declare(const std::vector<OptionSpec>& specs) {
    for (const OptionSpec& spec : specs) {
      if (spec.type != "integer" || sizes_.has(spec.name)) continue;
      const Term* term = find(spec.name);
      sizes_.add(spec.name, term == nullptr ? spec.fallback : term->value);
    }
  }

  const Term* find(const std::string& name) const {
    const auto found = said_.find(name);
    return found == said_.end() ? nullptr : found->second;
  }

  Json resolved(const OptionSpec& spec, const Term& term) {
    try {
      if (spec.type == "integer") {
        const std::int64_t size = sizes_.said(spec.name);
        const std::string complaint = range_complaint(spec, static_cast<double>(size));
        if (!complaint.empty()) file(term.place, complaint);
        return size;
      }
      if (spec.type == "window") return window(term);
    } catch (const ExpressionError& error) {
      file(term.place, error.what());
    }
    return term.value;
  }

  void check_sizes() {
    try {
      check_heads();
      check_latents();
      check_whole();
    } catch (const ExpressionError& error) {
      file(place_, error.what());
    }
  }

  bool good() const { return good_; }
  bool causal = true;

 private:
  void file(const std::string& place, const std::string& what) {
    problems_.add(place, what);
    good_ = false;
  }

  std::string place_of(const std::string& name) const {
    const Term* term = find(name);
    return term == nullptr ? place_ : term->place;
  }

  std::int64_t side(const Json& value, const Term& term) {
    if (!value.is_string()) return value.get<std::int64_t>();
    const std::int64_t keys = sizes_.evaluated(value.get<std::string>());
    if (keys < 0 || keys > longest_length) {
      file(term.place, "is a window of " + std::to_string(keys) + "; expected 0 to " +
                           std::to_string(longest_length));
    }
    return keys;
  }

  Json window(const Term& term) {
    if (term.value.is_object()) {
      return {{"left", side(term.value["left"], term)}, {"right", side(term.value["right"], term)}};
    }
    const std::int64_t keys = side(term.value, term);
    if (keys < 1)
      file(term.place, "is a window of " + std::to_string(keys) + " keys; expected 1 or more");
    return window_of(keys, causal);
  }

  void check_heads() {
    if (!sizes_.has("heads")) return;
    const std::int64_t heads = sizes_.value("heads");
    const std::int64_t width = sizes_.has("width") ? sizes_.said("width") : 0;
    const std::int64_t head_dim = sizes_.has("head_dim") ? sizes_.said("head_dim") : 0;
    const std::int64_t kv_heads = sizes_.has("kv_heads") ? sizes_.said("kv_heads") : 0;
    if (heads < 1) return;
    if (width > 0 && width % heads != 0) {
      file(place_of("width"), "the width " + std::to_string(width) + " is not divided by " +
                                  std::to_string(heads) + " heads; expected a multiple of heads");
    } else if (width > 0 && head_dim > 0 && head_dim != width / heads) {
      file(place_of("head_dim"),
           "width " + std::to_string(width) + " and head_dim " + std::to_string(head_dim) +
               " disagree with " + std::to_string(heads) +
               " heads; expected width = heads * head_dim, or one of the two");
    }
    if (kv_heads > 0 && heads % kv_heads != 0) {
      file(place_of("kv_heads"), "kv_heads " + std::to_string(kv_heads) + " does not divide " +
                                     std::to_string(heads) + " heads; expected a divisor of heads");
    }
  }

  /// Sizes that are each within bounds may make a cell together that is not.
  void check_whole() {
    double numbers = 1;
    for (const auto& pair :
         {std::pair{"batch", "batch"}, std::pair{"heads", "heads"},
          std::pair{"length", "key_length"}, std::pair{"head_dim", "value_dim"}}) {
      double greater = 1;
      for (const char* name : {pair.first, pair.second}) {
        if (sizes_.has(name)) greater = std::max(greater, static_cast<double>(sizes_.value(name)));
      }
      numbers *= greater;
    }
    if (numbers > static_cast<double>(most_numbers)) {
      file(place_, "batch, heads, length and width make " + result::human_count(numbers) +
                       " numbers of one input; expected at most " +
                       result::human_count(static_cast<double>(most_numbers)) +
                       ": choose smaller sizes");
    }
  }

  void check_latents() {
    if (!sizes_.has("latents_total") || !sizes_.has("heads")) return;
    const std::int64_t heads = sizes_.value("heads");
    const std::int64_t total = sizes_.said("latents_total");
    const std::int64_t each = sizes_.has("latents_per_head") ? sizes_.said("latents_per_head") : 0;
    if (heads < 1 || total < 1) return;
    if (total % heads != 0) {
      file(place_of("latents_total"), "latents_total " + std::to_string(total) +
                                          " is not divided by " + std::to_string(heads) +
                                          " heads; expected a multiple of heads");
    } else if (each > 0 && each != total / heads) {
      file(place_of("latents_per_head"), "latents_total " + std::to_string(total) +
                                             " and latents_per_head " + std::to_string(each) +
                                             " disagree with " + std::to_string(heads) +
                                             " heads; expected one of the two");
    }
  }

  const Said& said_;
  const std::string& place_;
  Problems& problems_;
  Sizes sizes_;
  bool good_ = true;
};

Json differing(const Json& values, const std::vector<OptionSpec>& specs) {
  Json kept = Json::object();
  for (const OptionSpec& spec : specs) {
    if (values.contains(spec.name) && values[spec.name] != spec.fallback) {
      kept[spec.name] = values[spec.name];
    }
  }
  return kept;
}

}  // namespace

std::optional<Json> make_cell(const Group& group, const Entry& entry, const Said& said,
                              const std::string& device, const std::string& place,
                              Problems& problems) {
  CellMaker maker(said, place, problems);
  maker.declare(group.task->settings);
  maker.declare(entry.mechanism->options);
  Json settings = Json::object(), options = Json::object();
  for (const OptionSpec& spec : group.task->settings) {
    const Term* term = maker.find(spec.name);
    settings[spec.name] = term == nullptr ? spec.fallback : maker.resolved(spec, *term);
  }
  maker.causal = settings.value("pattern", "causal") == "causal";
  for (const OptionSpec& spec : entry.mechanism->options) {
    const Term* term = maker.find(spec.name);
    if (term != nullptr && !settings.contains(spec.name)) {
      options[spec.name] = maker.resolved(spec, *term);
    }
  }
  maker.check_sizes();
  if (!maker.good()) return std::nullopt;
  const Term* implementation = maker.find("implementation");
  const Term* own_device = maker.find("device");
  return Json{{"label", entry.label},
              {"task", group.task->name},
              {"task_label", group.label},
              {"mechanism", entry.mechanism->name},
              {"implementation",
               implementation == nullptr ? Json(entry.implementation) : implementation->value},
              {"options", options},
              {"settings", settings},
              {"device", own_device == nullptr ? Json(device) : own_device->value}};
}

Json identity(const Json& cell, const Group& group, const Entry& entry) {
  return {{"task", cell["task"]},
          {"mechanism", cell["mechanism"]},
          {"implementation", cell["implementation"]},
          {"device", cell["device"]},
          {"settings", differing(cell["settings"], group.task->settings)},
          {"options", differing(cell["options"], entry.mechanism->options)}};
}

std::string cell_id(const Json& identity) {
  constexpr std::size_t digits = 12;
  return result::hash_text(identity.dump()).substr(0, digits);
}

}  // namespace attnbench::suite
