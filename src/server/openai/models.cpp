// GET /v1/models and /v1/models/{id}: the name of the model and its aliases.
#include "chat/json.h"
#include "server/doors.h"
#include "server/shared.h"

namespace inferno::server {
namespace {

Json model_json(const Shared& shared, const TextModel& model, const std::string& id) {
  return {{"id", id},
          {"object", "model"},
          {"created", shared.started()},
          {"owned_by", "inferno"},
          {"root", shared.settings().names.front()},
          {"max_model_len", model.engine().context()},
          {"meta", {{"n_ctx", model.engine().context()}, {"n_vocab", model.tokenizer().size()}}}};
}

}  // namespace

void list_models(SharedCall call) {
  const Shared& shared = call->shared();
  const auto model = shared.model();
  Json data = Json::array();
  for (const std::string& name : shared.settings().names) {
    if (name != "*") data.push_back(model_json(shared, *model, name));
  }
  call->respond(200, {{"object", "list"}, {"data", std::move(data)}});
}

void show_model(SharedCall call) {
  const Shared& shared = call->shared();
  const auto model = shared.model();
  const Json wanted = call->path_argument();
  call->respond(200, model_json(shared, *model, shared.served_name(&wanted)));
}

}  // namespace inferno::server
