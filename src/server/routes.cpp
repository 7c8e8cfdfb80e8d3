#include "server/routes.h"

namespace inferno::server {
namespace {

constexpr bool open = false, keyed = true;

constexpr Route table[] = {
    {"POST", "/v1/chat/completions", chat_completions, keyed, Work::answering},
    {"POST", "/chat/completions", chat_completions, keyed, Work::answering},
    {"POST", "/v1/chat/completions/input_tokens", count_chat_tokens},
    {"POST", "/chat/completions/input_tokens", count_chat_tokens},
    {"POST", "/v1/completions", completions, keyed, Work::answering},
    {"POST", "/completions", completions, keyed, Work::answering},
    {"POST", "/v1/responses", responses, keyed, Work::answering},
    {"POST", "/responses", responses, keyed, Work::answering},
    {"POST", "/v1/responses/input_tokens", count_response_tokens},
    {"POST", "/responses/input_tokens", count_response_tokens},
    {"GET", "/v1/models", list_models},
    {"GET", "/models", list_models},
    {"GET", "/v1/models/{id}", show_model},
    {"GET", "/models/{id}", show_model},
    {"POST", "/v1/messages", messages, keyed, Work::answering, Dialect::anthropic},
    {"POST", "/v1/messages/count_tokens", count_tokens, keyed, Work::reading, Dialect::anthropic},
    {"POST", "/tokenize", tokenize},
    {"POST", "/detokenize", detokenize},
    {"POST", "/apply-template", apply_template},
    {"GET", "/props", show_properties},
    {"GET", "/health", health, open, Work::quick},
    {"GET", "/v1/health", health, keyed, Work::quick},
    {"GET", "/ping", health, keyed, Work::quick},
    {"POST", "/ping", health, keyed, Work::quick},
    {"GET", "/livez", live, open, Work::quick},
    {"GET", "/readyz", ready, open, Work::quick},
    {"GET", "/version", version, keyed, Work::quick},
    {"GET", "/metrics", metrics, keyed, Work::quick},
    {"GET", "/", page, open, Work::quick},
};

// Routes of other servers, without /v1: a path that is one of these, or continues one after a slash.
struct OtherRoute {
  std::string_view path, advice;
};
constexpr std::string_view ollama = "Ollama's API is not available: use POST /v1/chat/completions";
constexpr std::string_view batch_file = "use inferno generate --batch FILE";
constexpr std::string_view text_only = "this server generates text and does nothing else";
constexpr std::string_view stores_nothing = "this server stores nothing: send the whole conversation";
constexpr OtherRoute other_routes[] = {
    {"/api/generate", ollama},
    {"/api/chat", ollama},
    {"/api/tags", ollama},
    {"/api/show", ollama},
    {"/api/ps", ollama},
    {"/api/pull", ollama},
    {"/api/push", ollama},
    {"/api/create", ollama},
    {"/api/copy", ollama},
    {"/api/delete", ollama},
    {"/api/blobs", ollama},
    {"/api/embed", ollama},
    {"/api/embeddings", ollama},
    {"/api/version", ollama},
    {"/completion", "use POST /v1/completions"},
    {"/infill", "the model continues a text and does not fill gaps: use POST /v1/completions"},
    {"/slots", "GET /metrics and GET /props tell what runs"},
    {"/lora-adapters", "adapters are not available: serve the merged model"},
    {"/embed", text_only},
    {"/embedding", text_only},
    {"/embeddings", text_only},
    {"/rerank", text_only},
    {"/reranking", text_only},
    {"/score", text_only},
    {"/pooling", text_only},
    {"/classify", text_only},
    {"/audio", text_only},
    {"/images", text_only},
    {"/moderations", text_only},
    {"/batches", batch_file},
    {"/messages/batches", batch_file},
    {"/files", stores_nothing},
    {"/responses", stores_nothing},
    {"/conversations", stores_nothing},
    {"/chat/completions", stores_nothing},
    {"/assistants", stores_nothing},
    {"/threads", stores_nothing},
};

bool matches(std::string_view pattern, std::string_view path) {
  const std::size_t at = pattern.find("{id}");
  if (at == std::string_view::npos) return pattern == path;
  return path.size() > at && path.starts_with(pattern.substr(0, at));
}

}  // namespace

std::span<const Route> routes() {
  return table;
}

RouteMatch find_route(std::string_view method, std::string_view path) {
  RouteMatch match;
  // Clients of an API read the errors of routes that are not here, too.
  if (path.starts_with("/v1/messages/")) match.dialect = Dialect::anthropic;
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const Route& route : table) {
    if (!matches(route.path, path)) continue;
    match.dialect = route.dialect;
    if (!match.allowed_methods.empty()) match.allowed_methods += ", ";
    match.allowed_methods += route.method == "GET" ? "GET, HEAD" : std::string(route.method);
    if (route.method == wanted && match.route == nullptr) match.route = &route;
  }
  return match;
}

std::string_view advice_for(std::string_view path) {
  if (path.starts_with("/v1/")) path.remove_prefix(3);
  for (const OtherRoute& other : other_routes) {
    const bool begins = path.starts_with(other.path);
    if (begins && (path.size() == other.path.size() || path[other.path.size()] == '/')) return other.advice;
  }
  return "docs/server.md lists them; the API is under /v1";
}

}  // namespace inferno::server
