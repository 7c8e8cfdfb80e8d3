// F14: any bytes as the body of a request to each door. A door answers with 200 or with a 4xx whose body is
// an error of its API; everything that a request says is read and checked, up to the prompt in tokens and the
// constraint. The engine does not run: what a door gives it is answered at once.
#include <array>

#include "fuzz/guard.h"
#include "server/doors.h"
#include "server/exchange_scene.h"
#include "server/generation.h"
#include "server/model_scene.h"

namespace inferno::server {

// In place of generation.cpp, which is not linked.
void start_generation(std::shared_ptr<Call> call, std::shared_ptr<const TextModel>, GenerationPlan plan) {
  if (plan.prompts.empty() || plan.writer == nullptr) std::abort();
  for (const PreparedRequest& prompt : plan.prompts) {
    if (prompt.generation.prompt.empty() || prompt.generation.choices < 1) std::abort();
  }
  call->respond(200, {{"prompts", plan.prompts.size()}});
}

}  // namespace inferno::server

namespace {

using namespace inferno;
using namespace inferno::server;

struct Door {
  void (*answer)(SharedCall call);
  Dialect dialect = Dialect::openai;
};
constexpr std::array doors = {Door{chat_completions},
                              Door{count_chat_tokens},
                              Door{completions},
                              Door{responses},
                              Door{count_response_tokens},
                              Door{messages, Dialect::anthropic},
                              Door{count_tokens, Dialect::anthropic},
                              Door{tokenize},
                              Door{detokenize},
                              Door{apply_template}};

void require(bool claim) {
  if (!claim) std::abort();
}

ServerScene& scene() {
  static ServerScene made(tiny_model(tools_template));
  return made;
}

}  // namespace

// The first byte chooses the door: '0' is the first one.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Door& door = doors[(data[0] + doors.size() - '0' % doors.size()) % doors.size()];
  CallOrigin origin;
  origin.route = "/fuzzed";
  origin.dialect = door.dialect;
  const Reply reply =
      scene().send(door.answer, std::string(fuzz::text(data + 1, size - 1)), std::move(origin));
  const Json body = reply.json();
  require(body.is_object());
  if (reply.status == 200) return 0;
  require(reply.status >= 400 && reply.status < 500);
  const Json& error = body.at("error");
  require(error.at("message").is_string() && !error.at("message").get_ref<const std::string&>().empty());
  require(error.at("type").is_string());
  return 0;
}
