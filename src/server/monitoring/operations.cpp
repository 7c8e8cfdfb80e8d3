// What a balancer, an orchestrator or a monitoring system asks: /health, /livez, /readyz, /version, /metrics.
// These run on the threads of the HTTP server, so that they answer however long the queue is.
#include "chat/json.h"
#include "server/doors.h"
#include "server/shared.h"

namespace inferno::server {
namespace {

// An empty problem is health. The body of a failure is llama-server's, which clients wait for.
void respond_with(Call& call, const std::string& problem) {
  if (problem.empty()) return call.respond(200, {{"status", "ok"}});
  call.respond(503, {{"error", {{"code", 503}, {"message", problem}, {"type", "unavailable_error"}}}});
}

}  // namespace

void health(SharedCall call) {
  respond_with(*call, call->shared().problem());
}

// A server that loads or drains is alive: restarting it would help no one.
void live(SharedCall call) {
  respond_with(*call, call->shared().engine_problem());
}

void ready(SharedCall call) {
  respond_with(*call, call->shared().problem());
}

void version(SharedCall call) {
  call->respond(200, {{"version", call->shared().settings().version}});
}

void metrics(SharedCall call) {
  Shared& shared = call->shared();
  MetricsState state;
  state.model_name = shared.settings().names.front();
  state.version = shared.settings().version;
  state.connections = shared.open_connections();
  state.is_ready = shared.problem().empty();
  state.started = shared.started();
  if (const auto model = shared.model_if_loaded()) {
    const Engine& engine = model->engine();
    state.engine = engine.stats();
    state.heartbeat_age = engine.heartbeat_age();
    state.context = engine.context();
  }
  call->respond({.status = 200,
                 .headers = {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
                 .body = shared.metrics().text(state)});
}

}  // namespace inferno::server
