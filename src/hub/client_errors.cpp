// What a hub's refusals mean, by its own code rather than by the status, and what to do about each.
#include <fmt/format.h>

#include "base/error.h"
#include "hub/client.h"
#include "hub/http/url.h"

namespace inferno::hub {
namespace {

constexpr std::size_t longest_quote = 300;

struct Refusal {
  const Response& response;
  const HubSettings& settings;
  const Subject& subject;
  std::string code, message;

  std::string named() const {
    if (!subject.path.empty()) return fmt::format("{}/{}", subject.id, subject.path);
    return subject.id;
  }

  // "(403 GatedRepo, request Root=1-6a…)"
  std::string facts() const {
    std::string text = std::to_string(response.status);
    if (!code.empty()) text += " " + code;
    const std::string& request = response.headers["x-request-id"];
    if (!request.empty()) text += ", request " + request.substr(0, longest_quote);
    return "(" + text + ")";
  }

  std::string quoted() const {
    return message.empty() ? std::string()
                           : fmt::format("the hub says: {}", message.substr(0, longest_quote));
  }

  std::string where_token_came_from() const {
    if (!settings.token.empty()) return fmt::format("the token of {} was sent", settings.token_said_by);
    if (settings.token_file.empty()) return "no token was sent (HF_TOKEN is not set)";
    return fmt::format("no token was sent (none in HF_TOKEN or {})", settings.token_file.string());
  }

  std::string page() const { return settings.endpoint + "/" + percent_encoded(subject.id, Slash::kept); }
};

[[noreturn]] void fail_unknown_repository(const Refusal& refusal) {
  fail(ErrorKind::not_found,
       fmt::format("{}: no such model on {} {}", refusal.subject.id, refusal.settings.endpoint,
                   refusal.facts()),
       {.why = fmt::format("it does not exist, or it is private or gated and {}",
                           refusal.where_token_came_from()),
        .next =
            "check the name (inferno search); if it is private or gated: export HF_TOKEN=... and run again"});
}

[[noreturn]] void fail_gated(const Refusal& refusal) {
  const bool with_token = !refusal.settings.token.empty();
  fail(ErrorKind::network, fmt::format("{} is gated {}", refusal.subject.id, refusal.facts()),
       {.why = with_token
                   ? fmt::format("{}, and its account has not accepted the licence or is not on the list",
                                 refusal.where_token_came_from())
                   : refusal.where_token_came_from(),
        .next = with_token ? fmt::format("accept at {} and run again", refusal.page())
                           : fmt::format("accept at {}, then export HF_TOKEN=hf_... and run again",
                                         refusal.page())});
}

[[noreturn]] void fail_bad_token(const Refusal& refusal) {
  fail(ErrorKind::network,
       fmt::format("{}: the hub does not know this token {}", refusal.subject.id, refusal.facts()),
       {.why = fmt::format("{}; {}", refusal.where_token_came_from(), refusal.quoted()),
        .next = fmt::format("make a new one at {}/settings/tokens, or remove it: public models need none",
                            refusal.settings.endpoint)});
}

[[noreturn]] void fail_for_other_status(const Refusal& refusal) {
  const int status = refusal.response.status;
  if (status == 429) {
    fail(ErrorKind::network, fmt::format("{}: too many requests {}", refusal.named(), refusal.facts()),
         {.why = refusal.quoted(),
          .next = refusal.settings.token.empty()
                      ? "wait five minutes; with a token the limits are higher: export HF_TOKEN=..."
                      : "wait five minutes and run again"});
  }
  if (status >= 500) {
    fail(ErrorKind::network,
         fmt::format("{}: {} is in trouble {}", refusal.named(), refusal.settings.endpoint, refusal.facts()),
         {.why = refusal.quoted(),
          .next = "run the same command again later; models on this machine work meanwhile"});
  }
  if (status == 404) {
    fail(ErrorKind::not_found,
         fmt::format("{}: not found on {} {}", refusal.named(), refusal.settings.endpoint, refusal.facts()),
         {.why = refusal.quoted(), .next = "check the name, and that HF_ENDPOINT is a hub"});
  }
  fail(ErrorKind::network,
       fmt::format("{}: {} does not answer as a hub does {}", refusal.named(), refusal.settings.endpoint,
                   refusal.facts()),
       {.why = refusal.quoted(), .next = "check HF_ENDPOINT and the proxy, then run again"});
}

}  // namespace

void fail_for_status(const Response& response, const HubSettings& settings, const Subject& subject) {
  const Refusal refusal = {.response = response,
                           .settings = settings,
                           .subject = subject,
                           .code = response.headers["x-error-code"],
                           .message = response.headers["x-error-message"]};
  if (refusal.message.starts_with("Invalid credentials")) fail_bad_token(refusal);
  if (refusal.message.starts_with("Access to this resource is disabled")) {
    fail(ErrorKind::network,
         fmt::format("{}: the hub has disabled this model {}", subject.id, refusal.facts()),
         {.why = refusal.quoted(), .next = {}});
  }
  if (refusal.code == "GatedRepo") fail_gated(refusal);
  if (refusal.code == "RevisionNotFound") {
    fail(ErrorKind::not_found,
         fmt::format("{}: no revision {} {}", subject.id, subject.revision, refusal.facts()),
         {.why = refusal.quoted(), .next = fmt::format("see the revisions at {}/tree/main", refusal.page())});
  }
  if (refusal.code == "EntryNotFound") {
    fail(
        ErrorKind::not_found,
        fmt::format("{}: no such file in revision {} {}", refusal.named(), subject.revision, refusal.facts()),
        {.why = refusal.quoted(), .next = fmt::format("see the files at {}/tree/main", refusal.page())});
  }
  if (refusal.code == "RepoNotFound" || response.status == 401) fail_unknown_repository(refusal);
  fail_for_other_status(refusal);
}

}  // namespace inferno::hub
