// The functions of inferno.h about the library, models and tokens.
#include <inferno/inferno.h>

#include <fmt/format.h>

#include <limits>
#include <span>
#include <vector>

#include "catalogue/catalogue.h"
#include "checkpoint/open_checkpoint.h"
#include "library/border.h"
#include "library/handles.h"
#include "library/load_options.h"
#include "library/model.h"
#include "library/request.h"
#include "service/loading/plan_model.h"
#include "service/self_check.h"

namespace inferno::library {
namespace {

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string name_at(const char* name) {
  std::string text = text_at(name, "name");
  if (text.empty()) fail(ErrorKind::invalid_request, "expected a model, found an empty name");
  return text;
}

inferno_description description_of(const TextModel& model, const Model::Facts& facts) {
  inferno_description found = {};
  copy_cut(found.name, model.name());
  copy_cut(found.family, model.architecture());
  copy_cut(found.chat_format, model.chat() != nullptr ? model.chat()->name() : "");
  copy_cut(found.device, facts.device.name);
  copy_cut(found.kernels, facts.device.kernels);
  const RequestLimits limits = model.engine().limits();
  const EngineStats stats = model.engine().stats();
  found.context = limits.context;
  found.model_context = limits.model_context;
  found.vocabulary = limits.vocab;
  found.parallel = stats.max_sequences;
  found.shows_tools = model.shows_tools() ? 1 : 0;
  found.parameters = facts.weights.parameters;
  found.weight_bytes = facts.weights.bytes;
  found.cache_bytes = stats.cache_bytes;
  found.load_seconds = model.load_seconds();
  copy_cut(found.cache_type, name_of(stats.cache_types));
  found.cache_token_bytes = stats.cache_token_bytes;
  return found;
}

inferno_statistics statistics_of(const Engine& engine) {
  const EngineStats stats = engine.stats();
  inferno_statistics found = {};
  found.healthy = engine.healthy() ? 1 : 0;
  found.running = stats.running;
  found.waiting = stats.waiting;
  found.blocks = stats.blocks;
  found.free_blocks = stats.free_blocks;
  found.block_tokens = stats.block_size;
  found.requests = stats.requests;
  found.steps = stats.steps;
  found.prompt_tokens = stats.prompt_tokens;
  found.cached_tokens = stats.cached_tokens;
  found.generated_tokens = stats.generated_tokens;
  found.heartbeat_seconds = engine.heartbeat_age();
  return found;
}

inferno_plan_result plan_of(const Footprint& footprint, const DeviceInfo& device) {
  inferno_plan_result found = {};
  copy_cut(found.device, device.name);
  found.parameters = footprint.weights.parameters;
  found.weight_bytes = footprint.weights.bytes;
  found.cache_bytes = footprint.cache;
  found.workspace_bytes = footprint.workspace;
  found.total_bytes = footprint.total();
  found.available_bytes = footprint.available;
  found.context = footprint.context;
  found.parallel = footprint.sequences;
  found.model_context = footprint.model_context;
  found.max_context = footprint.max_context;
  found.fits = footprint.fits() ? 1 : 0;
  copy_cut(found.cache_type, name_of(footprint.cache_types));
  found.cache_token_bytes = footprint.cache_token_bytes();
  return found;
}

Json json_of(const FoundModel& model) {
  return {{"name", model.name},
          {"path", model.path().string()},
          {"bytes", model.bytes},
          {"place", model.place},
          {"complete", model.is_complete()}};
}

void check_flags(std::uint32_t flags, std::uint32_t known) {
  if ((flags & ~known) == 0) return;
  fail(ErrorKind::invalid_request, fmt::format("flags {}: expected a sum of flags of this function", flags));
}

std::vector<TokenId> tokens_at(const std::int32_t* tokens, std::size_t count) {
  if (count > 0) require(tokens, "tokens");
  constexpr auto max_count = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
  if (count > max_count) {
    fail(ErrorKind::invalid_request, fmt::format("count {}: expected at most {}", count, max_count));
  }
  return {tokens, tokens + count};
}

std::vector<TokenId> encoded(const Tokenizer& tokenizer, const std::string& text, std::uint32_t flags) {
  std::vector<TokenId> tokens =
      (flags & INFERNO_PARSE_SPECIAL) != 0 ? tokenizer.encode_prompt(text) : tokenizer.encode(text);
  return (flags & INFERNO_ADD_SPECIAL) != 0 ? tokenizer.add_special(std::move(tokens)) : tokens;
}

std::string prompt_of(const TextModel& model, const TextRequest& request) {
  if (request.prompt) return *request.prompt;
  if (request.prompt_tokens) return model.tokenizer().decode(*request.prompt_tokens);
  return model.render(request, /*max_tokens=*/0).text;
}

}  // namespace
}  // namespace inferno::library

using namespace inferno;
using namespace inferno::library;

const char* inferno_version() {
  return INFERNO_VERSION;
}

int32_t inferno_abi() {
  return INFERNO_ABI;
}

const char* inferno_status_name(inferno_status status) {
  constexpr const char* names[] = {"ok",      "invalid_request", "not_found", "unsupported",
                                   "corrupt", "overloaded",      "io",        "network",
                                   "device",  "internal",        "cancelled", "too_small"};
  const auto index = static_cast<std::size_t>(status);
  return index < std::size(names) ? names[index] : "unknown";
}

inferno_status inferno_model_load(const char* name, const inferno_load_options* options, inferno_model* model,
                                  inferno_error* error) {
  return guarded_making(model, "model", error, [&] {
    refuse_in_callback("inferno_model_load");
    *model = new_handle(Model::load(name_at(name), read_load_options(options)));
  });
}

inferno_status inferno_model_unload(inferno_model model, inferno_error* error) {
  return guarded(error, [&] {
    refuse_in_callback("inferno_model_unload");
    remove_handle(model)->unload();
  });
}

inferno_status inferno_model_describe(inferno_model model, inferno_description* description,
                                      inferno_error* error) {
  return guarded(error, [&] {
    check_result(description, "inferno_description");
    const auto object = object_of(model);
    write_result(description, description_of(*object->use(), object->facts()));
  });
}

inferno_status inferno_model_template(inferno_model model, char* text, size_t capacity, size_t* length,
                                      inferno_error* error) {
  return guarded(error, [&] { give_text(object_of(model)->use()->chat_template(), text, capacity, length); });
}

inferno_status inferno_model_statistics(inferno_model model, inferno_statistics* statistics,
                                        inferno_error* error) {
  return guarded(error, [&] {
    check_result(statistics, "inferno_statistics");
    write_result(statistics, statistics_of(object_of(model)->use()->engine()));
  });
}

inferno_status inferno_plan(const char* name, const inferno_load_options* options, inferno_plan_result* plan,
                            inferno_error* error) {
  return guarded(error, [&] {
    check_result(plan, "inferno_plan_result");
    const LoadSettings settings = read_load_options(options);
    const ResolvedModel model = Catalogue(settings.catalogue).resolve(name_at(name));
    const auto backend = open_device(settings.model.device);
    const Footprint footprint = plan_model(*open_checkpoint(model.path), *backend,
                                           {.context = settings.model.context,
                                            .sequences = settings.model.parallel,
                                            .quantize = parse_quantize(settings.model.device.quantize),
                                            .cache = settings.model.device.cache});
    write_result(plan, plan_of(footprint, backend->info()));
  });
}

inferno_status inferno_self_test(const inferno_load_options* options, char* text, size_t capacity,
                                 size_t* length, inferno_error* error) {
  return guarded(error, [&] {
    refuse_in_callback("inferno_self_test");
    const LoadSettings settings = read_load_options(options);
    const SelfTest result =
        run_self_test(Catalogue(settings.catalogue).builtin().path, settings.model.device);
    if (!result.has_passed()) fail(ErrorKind::device, result.summary());
    give_text(result.summary(), text, capacity, length);
  });
}

inferno_status inferno_list_models(const inferno_load_options* options, char* json, size_t capacity,
                                   size_t* length, inferno_error* error) {
  return guarded(error, [&] {
    Json all = Json::array();
    const Catalogue catalogue(read_load_options(options).catalogue);
    for (const FoundModel& model : catalogue.inventory().models) all.push_back(library::json_of(model));
    give_text(dumped(all), json, capacity, length);
  });
}

inferno_status inferno_tokenize(inferno_model model, const char* text, uint32_t flags, int32_t* tokens,
                                size_t capacity, size_t* count, inferno_error* error) {
  return guarded(error, [&] {
    check_flags(flags, INFERNO_ADD_SPECIAL | INFERNO_PARSE_SPECIAL);
    const auto found = encoded(object_of(model)->use()->tokenizer(), text_at(text, "text"), flags);
    give_numbers(std::span<const TokenId>(found), tokens, capacity, count);
  });
}

inferno_status inferno_detokenize(inferno_model model, const int32_t* tokens, size_t count, uint32_t flags,
                                  char* text, size_t capacity, size_t* length, inferno_error* error) {
  return guarded(error, [&] {
    check_flags(flags, INFERNO_SKIP_SPECIAL);
    const auto special = (flags & INFERNO_SKIP_SPECIAL) != 0 ? SpecialTokens::skip : SpecialTokens::keep;
    give_text(object_of(model)->use()->tokenizer().decode(tokens_at(tokens, count), special), text, capacity,
              length);
  });
}

inferno_status inferno_prompt_text(inferno_model model, inferno_request request, char* text, size_t capacity,
                                   size_t* length, inferno_error* error) {
  return guarded(error, [&] {
    give_text(prompt_of(*object_of(model)->use(), object_of(request)->read()), text, capacity, length);
  });
}

inferno_status inferno_prompt_tokens(inferno_model model, inferno_request request, int32_t* tokens,
                                     size_t capacity, size_t* count, inferno_error* error) {
  return guarded(error, [&] {
    const PreparedRequest prepared = object_of(model)->use()->prepare(object_of(request)->read());
    give_numbers(std::span<const TokenId>(prepared.generation.prompt), tokens, capacity, count);
  });
}

inferno_status inferno_logits(inferno_model model, const int32_t* tokens, size_t count, size_t rows,
                              float* logits, size_t capacity, size_t* length, inferno_error* error) {
  return guarded(error, [&] {
    refuse_in_callback("inferno_logits");
    const Model::Use use = object_of(model)->use();
    if (const auto context = static_cast<std::size_t>(use->engine().context()); count > context) {
      fail(ErrorKind::invalid_request,
           fmt::format("{} tokens: expected at most {}, the context of the model", count, context));
    }
    const std::vector<TokenId> given = tokens_at(tokens, count);
    if (rows < 1 || rows > count) {
      fail(ErrorKind::invalid_request,
           fmt::format("rows {}: expected 1 to {}, the number of tokens", rows, count));
    }
    const std::size_t needed = rows * static_cast<std::size_t>(use->engine().limits().vocab);
    if (length != nullptr) *length = needed;
    if (capacity == 0) return;
    if (capacity < needed) throw TooSmall{capacity, needed};
    const std::vector<float> found = use->logits(given, static_cast<int>(rows));
    give_numbers(std::span<const float>(found), logits, capacity, length);
  });
}
