// inferno.hpp against libinferno.so, as a program in C++ uses it:  library_wrapper MODEL
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <inferno/inferno.hpp>
#include <limits>
#include <mutex>
#include <ranges>
#include <thread>

static_assert(std::ranges::input_range<inferno::Answer>);

namespace {

int failures = 0;

void expect(bool condition, const char* claim) {
  if (condition) return;
  std::fprintf(stderr, "not true: %s\n", claim);
  ++failures;
}

// The status of the error that `body` throws, INFERNO_OK if it throws none.
template <class Body>
inferno_status status_of(const Body& body) {
  try {
    body();
    return INFERNO_OK;
  } catch (const inferno::Error& error) {
    return error.status();
  }
}

inferno::Request endless() {
  inferno::Request request;
  request.set("prompt", "Once upon a time").set("ignore_eos", true);
  return request;
}

void wait_for(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void ask_in_every_way(const inferno::Model& model) {
  inferno::Request request;
  request.set("prompt", "Once upon a time")
      .set("max_tokens", 8)
      .set("temperature", 0.0)
      .set("ignore_eos", true);
  inferno::Answer answer = model.ask(request);
  std::string text;
  for (const inferno::Part& part : answer) text += part.text;
  expect(!text.empty() && answer.text() == text, "parts are the text");
  expect(answer.usage().completion_tokens == 8, "usage is complete");
  expect(answer.json().find("\"seed\"") != std::string::npos, "the answer as JSON");
  expect(answer.tool_calls() == "[]", "no tool calls");

  std::string heard;
  inferno::Answer called = model.ask(request.copy(), [&](const inferno_part& part) {
    heard.append(part.text, part.length);
    return true;
  });
  expect(called.wait() && heard == text, "the callback hears the same");

  std::stop_source stop;
  inferno::Answer endless = model.ask(request.copy().set_json("max_tokens", "null"));
  const auto cancel = endless.cancel_with(stop.get_token());
  expect(endless.next().has_value(), "the first part of an answer");
  stop.request_stop();
  expect(endless.wait() && endless.usage().finish != INFERNO_FINISH_NONE, "a stop token ends an answer");
}

void convert_tokens(const inferno::Model& model) {
  const auto tokens = model.tokenize("Once upon a time");
  expect(model.detokenize(tokens) == "Once upon a time", "tokens there and back");
  const auto vocabulary = static_cast<std::size_t>(model.describe().vocabulary);
  expect(model.logits(tokens, 2).size() == 2 * vocabulary, "logits have two rows");
  const auto request = inferno::Request::from_json(R"({"messages": [{"role": "user", "content": "Hi"}]})");
  expect(model.prompt_text(request).find("Hi") != std::string::npos, "a prompt as text");
  expect(!model.prompt_tokens(request).empty(), "a prompt as tokens");
  expect(!model.chat_template().empty(), "the chat template");
}

// Long enough to be on the heap, so that the address sanitizer sees a callback that runs after its end.
const std::string captured(100, 'x');

void assign_while_the_callback_runs(const inferno::Model& model) {
  inferno::Answer answer;
  for (int i = 0; i < 5; ++i) {
    std::atomic<bool> is_running = false, is_whole = false;
    answer = model.ask(endless(), [&, text = captured](const inferno_part&) {
      is_running = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      is_whole = text == captured;
      return true;
    });
    wait_for(is_running);
    answer = model.ask(endless());  // waits for the callback, whose references end here
    expect(is_whole, "a callback is not destroyed while it runs");
  }
  expect(answer.next().has_value(), "the answer that was assigned goes on");
  inferno::Answer taken = std::move(answer);
  expect(taken.next().has_value(), "an answer that was moved goes on");
}

void destroy_in_its_own_callback(const inferno::Model& model) {
  for (int i = 0; i < 20; ++i) {
    std::mutex mutex;
    std::optional<inferno::Answer> answer;
    std::atomic<bool> is_destroyed = false, is_called_again = false;
    inferno::Answer begun = model.ask(endless(), [&, text = captured](const inferno_part&) {
      if (is_destroyed) is_called_again = true;
      const std::lock_guard lock(mutex);
      if (!answer) return true;
      answer.reset();
      is_destroyed = text == captured;
      return true;
    });
    {
      const std::lock_guard lock(mutex);
      answer = std::move(begun);
    }
    wait_for(is_destroyed);
    while (model.statistics().running > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    expect(!is_called_again, "an answer that was destroyed calls no more");
  }
}

void throw_in_callbacks(const std::string& name, const inferno::Model& model) {
  int calls = 0;
  inferno::Answer answer = model.ask(endless(), [&](const inferno_part&) -> bool {
    ++calls;
    throw std::logic_error("of the caller");
  });
  std::string heard;
  try {
    answer.wait();
  } catch (const std::logic_error& error) {
    heard = error.what();
  }
  expect(heard == "of the caller", "wait() throws what the callback has thrown");
  expect(calls == 1 && answer.usage().finish == INFERNO_FINISH_CANCELLED, "an exception cancels the answer");

  inferno::LoadOptions options;
  options.values.home = "";
  options.log = [](inferno_log_level, std::string_view) { throw std::logic_error("of the log"); };
  const inferno::Model logging(name, options);
  options.progress = [](std::uint64_t, std::uint64_t) -> bool { throw std::logic_error("of progress"); };
  heard.clear();
  try {
    const inferno::Model refused(name, options);
  } catch (const std::logic_error& error) {
    heard = error.what();
  }
  expect(heard == "of progress", "loading throws what the progress callback has thrown");
}

void read_in_two_threads(const inferno::Model& model) {
  inferno::Answer answer = model.ask(endless());
  std::atomic<bool> is_over = false;
  std::thread reader([&] {
    for (const inferno::Part& part : answer) static_cast<void>(part);
    is_over = true;
  });
  const inferno_status status = status_of([&] {
    while (!is_over) answer.text();
  });
  reader.join();
  expect(status == INFERNO_OK && answer.text().size() > 256, "text() while another thread reads");
}

void give_values_that_c_cannot(const inferno::Model& model) {
  const std::string with_nul("a\0b", 3);
  inferno::Request request;
  expect(status_of([&] { request.set("prompt", with_nul); }) == INFERNO_INVALID_REQUEST, "NUL in a field");
  expect(status_of([&] { request.add_message("user", with_nul); }) == INFERNO_INVALID_REQUEST,
         "NUL in a message");
  expect(status_of([&] { model.tokenize(with_nul); }) == INFERNO_INVALID_REQUEST, "NUL in a text");
  request.set_json("prompt", R"("a\u0000b")");
  expect(model.prompt_text(request) == with_nul, "NUL as JSON");
  const char* nothing = nullptr;
  expect(status_of([&] { request.set("prompt", nothing); }) == INFERNO_INVALID_REQUEST, "no text");
  // As a signed number it would be -1, a random seed.
  const auto largest = std::numeric_limits<std::uint64_t>::max();
  expect(status_of([&] { request.set("seed", largest); }) == INFERNO_INVALID_REQUEST, "no such seed");
  request.set("seed", largest / 2);
  expect(request.json().find("\"seed\":9223372036854775807") != std::string::npos, "the largest seed");
}

void choose_types(const std::string& name, inferno::LoadOptions options) {
  const inferno_plan_result whole = inferno::plan(name, options);
  options.values.cache_type = "q8_0,f16";
  options.values.quantize = "q8_0";
  const inferno_plan_result small = inferno::plan(name, options);
  const inferno::Model model(name, options);
  const inferno_description loaded = model.describe();
  expect(std::string(loaded.cache_type) == "q8_0,f16", "the cache has the type that was chosen");
  expect(loaded.cache_token_bytes == small.cache_token_bytes, "the cache is as large as planned");
  expect(small.cache_token_bytes < whole.cache_token_bytes, "smaller types make the cache smaller");
  expect(loaded.weight_bytes == small.weight_bytes, "the weights are as large as planned");
  expect(small.weight_bytes < whole.weight_bytes, "weights are rounded while loading");
  options.values.quantize = "q3_k";
  expect(status_of([&] { inferno::Model(name, options); }) == INFERNO_INVALID_REQUEST, "no such type");
}

void unload_in_a_callback(inferno::Model& model) {
  std::atomic<inferno_status> status = INFERNO_OK;
  inferno::Answer answer = model.ask(endless().set("max_tokens", 1), [&](const inferno_part&) {
    status = status_of([&] { model.unload(); });
    return true;
  });
  answer.wait();
  expect(status == INFERNO_INVALID_REQUEST, "a callback cannot unload its model");
  expect(model.describe().vocabulary > 0, "a model that could not be unloaded is still there");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int reports = 0, messages = 0;
  inferno::LoadOptions options;
  options.values.device = "cpu";
  options.values.home = "";
  options.progress = [&](std::uint64_t, std::uint64_t) { return ++reports > 0; };
  options.log = [&](inferno_log_level, std::string_view) { ++messages; };
  expect(inferno::version() == inferno_version() && inferno::abi() == INFERNO_ABI, "version and interface");
  // The library may be without the built-in model, which is in this folder.
  const std::string folders = std::filesystem::path(argv[1]).parent_path().string();
  options.values.model_folders = folders.c_str();
  expect(!inferno::self_test(options).empty(), "the self-test");
  expect(inferno::plan(argv[1], options).fits != 0, "the model fits");
  expect(inferno::list_models(options).find("builtin") != std::string::npos, "models on this machine");
  inferno::Model model(argv[1], options);
  expect(reports > 1 && messages > 0, "callbacks while loading");
  ask_in_every_way(model);
  convert_tokens(model);
  expect(model.statistics().requests == 3, "statistics count requests");
  assign_while_the_callback_runs(model);
  destroy_in_its_own_callback(model);
  throw_in_callbacks(argv[1], model);
  read_in_two_threads(model);
  give_values_that_c_cannot(model);
  choose_types(argv[1], options);
  unload_in_a_callback(model);
  const inferno_model old = model.handle();
  model = inferno::Model(argv[1], options);
  expect(model.describe().vocabulary > 0, "the model that was assigned");
  expect(inferno_model_unload(old, nullptr) == INFERNO_INVALID_REQUEST, "the old model was unloaded");
  model.unload();
  try {
    model.describe();
    expect(false, "a model that was unloaded throws");
  } catch (const inferno::Error& error) {
    expect(error.status() == INFERNO_INVALID_REQUEST && !error.why().empty(), "the error says why");
  }
  return failures;
}
