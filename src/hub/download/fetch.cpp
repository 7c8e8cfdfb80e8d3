// One connection at work on one claim: requests until its bytes are there, whatever comes between.
#include <fmt/format.h>

#include <charconv>

#include "base/error.h"
#include "base/utf8.h"
#include "hub/download/work.h"
#include "hub/http/url.h"
#include "hub/names/safe_path.h"

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

[[noreturn]] void fail_lying(const HubFile& file, const std::string& finding) {
  fail(ErrorKind::network, fmt::format("{}: {}", file.path, finding),
       {.why = "the hub, a mirror or a proxy changes or contradicts what it serves",
        .next = "check HF_ENDPOINT and the proxy, then run the same command again"});
}

}  // namespace

struct Download::Work::Attempt {
  Task& task;
  std::uint64_t best = 0;    // the furthest position that any attempt reached
  int without_progress = 0;  // attempts in a row
  int refusals = 0;          // "later" in a row
  int new_addresses = 0;     // signed addresses that were refused, in a row
  bool has_begun = false;    // this attempt has got its first bytes
  bool used_signed = false;
  bool is_stale = false;
  std::string finding = {};  // what is wrong with an answer that may be better next time

  Claim& claim() { return task.claim; }
  bool is_whole_file() const { return task.claim.position == 0 && task.claim.end == task.partial->size(); }
};

Request Download::Work::request_for(const FileWork& file, Attempt& attempt) {
  Request request;
  {
    const std::lock_guard lock(mutex_);
    request.url = file.signed_url;
  }
  attempt.used_signed = !request.url.empty();
  if (!attempt.used_signed)
    request.url = resolve_address(settings_, source_.id, source_.commit, file.item.file.path);
  request.headers = {"Accept-Encoding: identity"};
  if (!attempt.is_whole_file()) {
    request.headers.push_back(
        fmt::format("Range: bytes={}-{}", attempt.claim().position, attempt.claim().end - 1));
  }
  attempt.has_begun = false;
  attempt.finding.clear();
  return request;
}

// Looks at the answer before its first byte is written.
void Download::Work::begin(FileWork& file, Attempt& attempt, const Response& head) {
  const HubFile& wanted = file.item.file;
  attempt.has_begun = true;
  const std::string& encoding = head.headers["content-encoding"];
  if (!encoding.empty() && encoding != "identity")
    fail_lying(wanted, fmt::format("comes packed as {}, unasked", quote(encoding)));
  if (!attempt.used_signed && !head.hub_headers.has("x-repo-commit") && !head.headers.has("x-repo-commit")) {
    fail_lying(wanted, "an answer without X-Repo-Commit, which every hub sends");
  }
  if (head.status == 206) {
    const auto range = content_range(head.headers["content-range"]);
    if (!range || range->first != attempt.claim().position || range->last >= attempt.claim().end) {
      attempt.finding =
          fmt::format("other bytes than were asked for ({})", quote(head.headers["content-range"]));
      return;
    }
    if (range->total && *range->total != wanted.size) {
      fail_lying(wanted, fmt::format("is said to have {} bytes, and to have {}", wanted.size, *range->total));
    }
    return;
  }
  const auto length = number(head.headers["content-length"]);
  if (length && *length != wanted.size) {
    fail_lying(wanted, fmt::format("is said to have {} bytes, and {} are sent", wanted.size, *length));
  }
  if (attempt.is_whole_file()) return;
  // The range was ignored: these are the bytes from the beginning.
  {
    const std::lock_guard lock(mutex_);
    file.takes_ranges = false;
    file.had = 0;
  }
  attempt.claim() = attempt.task.partial->restart();
}

bool Download::Work::take(FileWork& file, Attempt& attempt, const Response& head,
                          std::span<const std::byte> bytes) {
  if (!attempt.has_begun) begin(file, attempt, head);
  if (!attempt.finding.empty()) return false;
  const std::uint64_t before = attempt.claim().position;
  const Written written = attempt.task.partial->write(attempt.claim(), bytes);
  file.fetched += attempt.claim().position - before;
  attempt.is_stale = written == Written::stale;
  if (written == Written::too_many && attempt.claim().end == file.item.file.size && head.status == 200) {
    fail_lying(file.item.file,
               fmt::format("is said to have {} bytes, and more are sent", file.item.file.size));
  }
  return written == Written::ok;
}

void Download::Work::fail_without_progress(const FileWork& file, const Attempt& attempt,
                                           const Outcome& outcome) {
  if (!attempt.finding.empty()) fail_lying(file.item.file, attempt.finding);
  if (outcome.trouble != Trouble::none)
    fail_for(outcome, settings_, outcome.response.url, file.item.file.path);
  fail(ErrorKind::network,
       fmt::format("{}: the connection ends before all bytes have come", file.item.file.path),
       {.why = fmt::format("{} attempts in a row brought nothing", attempt.without_progress),
        .next = "run the same command again: it goes on where it stopped"});
}

Download::Work::Then Download::Work::judge(FileWork& file, Attempt& attempt, const Outcome& outcome) {
  const Response& response = outcome.response;
  const bool is_body = response.status == 200 || response.status == 206;
  if (outcome.trouble == Trouble::cancelled) return Then::give_up_claim;
  if (attempt.is_stale) return Then::give_up_claim;
  if (outcome.trouble == Trouble::none && !is_body) {
    const bool expired =
        attempt.used_signed && (response.status == 401 || response.status == 403 || response.status == 404);
    if (response.status == 416 || expired) {
      const std::lock_guard lock(mutex_);
      file.signed_url.clear();
      if (++attempt.new_addresses <= max_new_addresses) {
        if (response.status == 416) attempt.claim() = attempt.task.partial->restart();
        return Then::go_on;
      }
    }
    if (is_worth_another_try(response.status)) {
      heed(response, *gate_);
      if (++attempt.refusals < max_tries) return Then::wait;
    }
    if (response.headers["x-error-code"] == "EntryNotFound" && source_.on_absent)
      source_.on_absent(file.item.file.path);
    fail_for_status(response, settings_,
                    {.id = source_.id, .revision = source_.commit, .path = file.item.file.path});
  }
  if (outcome.trouble != Trouble::none && outcome.trouble != Trouble::stopped && !is_temporary(outcome)) {
    fail_for(outcome, settings_, response.url.empty() ? settings_.endpoint : response.url,
             file.item.file.path);
  }
  const bool moved = attempt.claim().position > attempt.best;
  attempt.best = std::max(attempt.best, attempt.claim().position);
  attempt.refusals = 0;
  if (moved) {
    attempt.without_progress = attempt.new_addresses = 0;
    return Then::go_on;
  }
  if (++attempt.without_progress >= max_without_progress) fail_without_progress(file, attempt, outcome);
  return Then::wait;
}

void Download::Work::fetch(HttpClient& http, Task& task) {
  FileWork& file = *task.file;
  Attempt attempt = {.task = task, .best = task.claim.position};
  const auto home = parse_url(settings_.endpoint);
  while (!task.claim.is_finished() && !is_over()) {
    Request request = request_for(file, attempt);
    request.sink = [&](const Response& head, std::span<const std::byte> bytes) {
      return take(file, attempt, head, bytes);
    };
    const Outcome outcome = http.attempt(request);
    task.first_byte_seconds = outcome.first_byte_seconds;
    const auto last = parse_url(outcome.response.url);
    const bool is_body = outcome.response.status == 200 || outcome.response.status == 206;
    if (is_body && last && home && last->origin() != home->origin()) {
      const std::lock_guard lock(mutex_);
      file.signed_url = last->text;
    }
    if (task.claim.is_finished()) break;
    const Then then = judge(file, attempt, outcome);
    if (then == Then::give_up_claim) break;
    const bool was_asked = outcome.trouble == Trouble::none &&
                           asked_wait(outcome.response.headers, std::chrono::system_clock::now());
    const int failures = std::max(attempt.without_progress, attempt.refusals);
    if (then == Then::wait && !was_asked && !gate_->sleep(backoff(failures), http.is_cancelled())) break;
  }
  if (!task.claim.is_finished()) task.partial->release(task.claim);
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

}  // namespace inferno::hub
