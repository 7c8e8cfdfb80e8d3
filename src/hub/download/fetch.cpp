#include "hub/download/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"
#include "hub/client.h"
#include "hub/download/partial_file.h"
#include "hub/http/url.h"

namespace inferno::hub {
namespace {

constexpr int max_without_progress = 5;
constexpr int max_new_addresses = 3;

struct ContentRange {
  std::uint64_t first = 0, last = 0;
  std::optional<std::uint64_t> total;
};

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "bytes 0-99/1234" or "bytes 0-99/*"
std::optional<ContentRange> content_range(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const std::size_t dash = text.find('-'), slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || dash > slash) return std::nullopt;
  const auto first = number(text.substr(0, dash));
  const auto last = number(text.substr(dash + 1, slash - dash - 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return ContentRange{*first, *last, number(text.substr(slash + 1))};
}

bool has_body(const Response& response) {
  return response.status == 200 || response.status == 206;
}

[[noreturn]] void fail_altered(const HubFile& file, const std::string& finding) {
  fail(ErrorKind::network, fmt::format("{}: {}", file.path, finding),
       {.why = "the hub, a mirror or a proxy altered the response",
        .next = "check HF_ENDPOINT and the proxy, then run the same command again"});
}

class Fetch {
 public:
  Fetch(HttpClient& http, const DownloadSource& source, FetchedFile& file, PartialFile& partial, Claim& claim)
      : http_(http),
        source_(source),
        file_(file),
        partial_(partial),
        claim_(claim),
        furthest_(claim.position) {}

  double run() {
    const auto home = parse_url(http_.settings().endpoint);
    double first_byte_seconds = 0;
    while (!claim_.is_finished() && !is_cancelled()) {
      const Outcome outcome = http_.attempt(next_request());
      first_byte_seconds = outcome.first_byte_seconds;
      const auto last = parse_url(outcome.response.url);
      if (has_body(outcome.response) && last && home && last->origin() != home->origin()) {
        const std::lock_guard lock(file_.mutex);
        file_.signed_url = last->text;
      }
      if (claim_.is_finished()) break;
      const Then then = judge(outcome);
      if (then == Then::give_up_claim) break;
      const bool server_set_wait = outcome.trouble == Trouble::none &&
                                   requested_wait(outcome.response.headers, std::chrono::system_clock::now());
      const int failures = std::max(without_progress_, refusals_);
      if (then != Then::wait) continue;
      const Pause pause = {.reason = reason_to_wait(outcome, http_.settings().endpoint),
                           .next_try = failures + 1,
                           .tries = refusals_ > 0 ? max_tries : max_without_progress};
      if (server_set_wait) {
        if (last) http_.gate().explain(last->origin(), pause);
      } else if (!http_.gate().sleep(backoff(failures), pause, http_.is_cancelled())) {
        break;
      }
    }
    if (!claim_.is_finished()) partial_.release(claim_);
    return first_byte_seconds;
  }

 private:
  enum class Then { go_on, wait, give_up_claim };

  bool is_cancelled() const { return http_.is_cancelled() && http_.is_cancelled()(); }
  bool is_whole_file() const { return claim_.position == 0 && claim_.end == partial_.size(); }

  Request next_request() {
    Request request;
    {
      const std::lock_guard lock(file_.mutex);
      request.url = file_.signed_url;
    }
    used_signed_url_ = !request.url.empty();
    if (!used_signed_url_)
      request.url = resolve_address(http_.settings(), source_.id, source_.commit, file_.file.path);
    request.headers = {"Accept-Encoding: identity"};
    if (!is_whole_file())
      request.headers.push_back(fmt::format("Range: bytes={}-{}", claim_.position, claim_.end - 1));
    request.sink = [this](const Response& head, std::span<const std::byte> bytes) {
      return take(head, bytes);
    };
    has_begun_ = false;
    finding_.clear();
    return request;
  }

  // Checks the response headers before the first byte is written.
  void begin(const Response& head) {
    const HubFile& wanted = file_.file;
    has_begun_ = true;
    const std::string& encoding = head.headers["content-encoding"];
    if (!encoding.empty() && encoding != "identity")
      fail_altered(wanted, fmt::format("unexpected Content-Encoding {}", quote(encoding)));
    if (!used_signed_url_ && !head.hub_headers.has("x-repo-commit") && !head.headers.has("x-repo-commit"))
      fail_altered(wanted, "the response has no X-Repo-Commit header, which every hub sends");
    if (head.status == 206) {
      const auto range = content_range(head.headers["content-range"]);
      if (!range || range->first != claim_.position || range->last >= claim_.end) {
        finding_ =
            fmt::format("received another range than requested ({})", quote(head.headers["content-range"]));
      } else if (range->total && *range->total != wanted.size) {
        fail_altered(wanted, fmt::format("expected {} bytes, the server has {}", wanted.size, *range->total));
      }
      return;
    }
    const auto length = number(head.headers["content-length"]);
    if (length && *length != wanted.size)
      fail_altered(wanted, fmt::format("expected {} bytes, received {}", wanted.size, *length));
    if (is_whole_file()) return;
    // The server ignored the range and sends the file from its first byte.
    file_.takes_ranges = false;
    claim_ = partial_.restart();
  }

  bool take(const Response& head, std::span<const std::byte> bytes) {
    if (!has_begun_) begin(head);
    if (!finding_.empty()) return false;
    const std::uint64_t before = claim_.position;
    const Written written = partial_.write(claim_, bytes);
    file_.fetched += claim_.position - before;
    is_stale_ = written == Written::stale;
    if (written == Written::too_many && claim_.end == file_.file.size && head.status == 200)
      fail_altered(file_.file, fmt::format("expected {} bytes, received more", file_.file.size));
    return written == Written::ok;
  }

  [[noreturn]] void fail_without_progress(const Outcome& outcome) const {
    if (!finding_.empty()) fail_altered(file_.file, finding_);
    if (outcome.trouble != Trouble::none)
      fail_for(outcome, http_.settings(), outcome.response.url, file_.file.path);
    fail(ErrorKind::network,
         fmt::format("{}: the connection closed before the file was complete", file_.file.path),
         {.why = fmt::format("{} attempts in a row made no progress", without_progress_),
          .next = "run the same command again: it resumes where it stopped"});
  }

  // A response without a body of the file: a URL that expired, a server that asks for a pause, a
  // refusal.
  Then judge_refusal(const Response& response) {
    const bool expired =
        used_signed_url_ && (response.status == 401 || response.status == 403 || response.status == 404);
    if (response.status == 416 || expired) {
      {
        const std::lock_guard lock(file_.mutex);
        file_.signed_url.clear();
      }
      if (++new_addresses_ <= max_new_addresses) {
        if (response.status == 416) claim_ = partial_.restart();
        return Then::go_on;
      }
    }
    if (is_retryable(response.status)) {
      apply_requested_wait(response, http_.gate());
      if (++refusals_ < max_tries) return Then::wait;
    }
    if (response.headers["x-error-code"] == "EntryNotFound" && source_.on_absent)
      source_.on_absent(file_.file.path);
    fail_for_status(response, http_.settings(),
                    {.id = source_.id, .revision = source_.commit, .path = file_.file.path});
  }

  Then judge(const Outcome& outcome) {
    const Response& response = outcome.response;
    if (outcome.trouble == Trouble::cancelled || is_stale_) return Then::give_up_claim;
    if (outcome.trouble == Trouble::none && !has_body(response)) return judge_refusal(response);
    if (outcome.trouble != Trouble::none && outcome.trouble != Trouble::stopped && !is_temporary(outcome)) {
      fail_for(outcome, http_.settings(), response.url.empty() ? http_.settings().endpoint : response.url,
               file_.file.path);
    }
    const bool moved = claim_.position > furthest_;
    furthest_ = std::max(furthest_, claim_.position);
    refusals_ = 0;
    if (moved) {
      without_progress_ = new_addresses_ = 0;
      return Then::go_on;
    }
    if (++without_progress_ >= max_without_progress) fail_without_progress(outcome);
    return Then::wait;
  }

  HttpClient& http_;
  const DownloadSource& source_;
  FetchedFile& file_;
  PartialFile& partial_;
  Claim& claim_;

  std::uint64_t furthest_;    // position that any attempt reached
  int without_progress_ = 0;  // attempts in a row
  int refusals_ = 0;          // responses in a row that ask to try later
  int new_addresses_ = 0;     // signed URLs in a row that were refused
  bool has_begun_ = false;    // the current attempt has received its first bytes
  bool used_signed_url_ = false;
  bool is_stale_ = false;  // the file was restarted during the transfer
  std::string finding_;    // a problem that another attempt may not have
};

}  // namespace

double fetch(HttpClient& http, const DownloadSource& source, FetchedFile& file, PartialFile& partial,
             Claim& claim) {
  return Fetch(http, source, file, partial, claim).run();
}

}  // namespace inferno::hub
