#include "hub/http/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <exception>
#include <memory>

#include "base/error.h"

namespace inferno::hub {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t max_header_bytes = 64 << 10;
constexpr std::size_t max_error_body = 64 << 10;
constexpr std::chrono::milliseconds drip_window{60'000};
constexpr double drip_bytes_per_second = 1024;
constexpr int poll_milliseconds = 100;
constexpr long receive_buffer = 512 << 10;

// Timeouts shrink less than waits: even a test server on a busy machine needs a moment to respond.
std::chrono::milliseconds scaled(std::chrono::milliseconds time, const HubSettings& settings, double least) {
  const double scale = std::max(settings.time_scale, least);
  return std::chrono::milliseconds(static_cast<long>(static_cast<double>(time.count()) * scale) + 1);
}

// Detects a transfer that has stopped or is very slow.
class StallWatch {
 public:
  explicit StallWatch(const HubSettings& settings)
      : silence_(scaled(settings.stall_timeout, settings, 0.01)),
        window_(scaled(drip_window, settings, 0.01)),
        last_(Clock::now()),
        window_start_(last_) {}

  void received(std::size_t bytes) {
    bytes_ += bytes;
    last_ = Clock::now();
  }

  // Empty if the transfer makes progress.
  std::string finding() {
    const auto now = Clock::now();
    if (now - last_ > silence_) {
      return fmt::format("no data for {:.3g} s", std::chrono::duration<double>(silence_).count());
    }
    if (now - window_start_ < window_) return {};
    const double seconds = std::chrono::duration<double>(now - window_start_).count();
    const bool drips = static_cast<double>(bytes_) < drip_bytes_per_second * seconds;
    if (drips) return fmt::format("only {} bytes in {:.3g} s", bytes_, seconds);
    window_start_ = now;
    bytes_ = 0;
    return {};
  }

 private:
  std::chrono::milliseconds silence_, window_;
  Clock::time_point last_, window_start_;
  std::size_t bytes_ = 0;
};

// The status of "HTTP/1.1 200 OK\r\n"; 0 if there is none.
int status_in(std::string_view line) {
  int status = 0;
  const std::size_t space = line.find(' ');
  if (space != std::string_view::npos)
    std::from_chars(line.data() + space + 1, line.data() + line.size(), status);
  return status;
}

// State of libcurl's callbacks. Exceptions must not pass through libcurl, so they are stored here.
struct State {
  explicit State(const TransferOptions& chosen) : options(chosen), watch(*chosen.settings) {
    outcome.response.hub_headers = chosen.hub_headers;
    outcome.response.url = chosen.url;
  }

  const TransferOptions& options;
  StallWatch watch;
  Outcome outcome;
  std::size_t header_bytes = 0;
  std::exception_ptr thrown;
  std::array<char, CURL_ERROR_SIZE> message{};  // libcurl's error message

  void end(Trouble trouble, std::string detail) {
    outcome.trouble = trouble;
    outcome.detail = std::move(detail);
  }

  bool take_header(std::string_view line) {
    watch.received(line.size());
    header_bytes += line.size();
    if (header_bytes > max_header_bytes) {
      end(Trouble::too_large, fmt::format("more than {} bytes of headers", max_header_bytes));
      return false;
    }
    // A final response may follow "HTTP/1.1 100 Continue".
    if (line.starts_with("HTTP/")) {
      outcome.response.headers.clear();
      outcome.response.status = status_in(line);
    } else {
      outcome.response.headers.add(line);
    }
    return true;
  }

  bool take_body(std::span<const std::byte> bytes) {
    watch.received(bytes.size());
    Response& response = outcome.response;
    const bool wanted = response.status == 200 || response.status == 206;
    if (wanted && *options.sink) {
      if ((*options.sink)(response, bytes)) {
        watch.received(0);  // the time of writing to disk does not count
        return true;
      }
      end(Trouble::stopped, {});
      return false;
    }
    const std::size_t limit = wanted ? options.body_limit : std::min(options.body_limit, max_error_body);
    if (bytes.size() > limit - response.body.size()) {
      if (!wanted) return false;  // enough of an error page
      end(Trouble::too_large, fmt::format("a response of more than {} bytes", limit));
      return false;
    }
    response.body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return true;
  }
};

template <class Action>
std::size_t guarded(State& state, std::size_t bytes, Action action) {
  try {
    return action() ? bytes : bytes + 1;  // returning a different count ends the transfer
  } catch (...) {
    state.thrown = std::current_exception();
    return bytes + 1;
  }
}

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
  auto& state = *static_cast<State*>(user);
  return guarded(state, size * count, [&] { return state.take_header({data, size * count}); });
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
  auto& state = *static_cast<State*>(user);
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  return guarded(state, size * count, [&] { return state.take_body({bytes, size * count}); });
}

struct FreeList {
  void operator()(curl_slist* list) const { curl().slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

HeaderList header_list(const std::vector<std::string>& headers) {
  HeaderList list;
  for (const std::string& header : headers) {
    curl_slist* longer = curl().slist_append(list.get(), header.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    (void)list.release();
    list.reset(longer);
  }
  return list;
}

void configure(CURL* easy, const TransferOptions& options, State& state, const curl_slist* headers) {
  const CurlLibrary& lib = curl();
  const HubSettings& settings = *options.settings;
  lib.easy_reset(easy);
  lib.setopt(easy, CURLOPT_URL, options.url.c_str());
  lib.setopt(easy, CURLOPT_NOBODY, options.method == Method::head ? 1L : 0L);
  lib.setopt(easy, CURLOPT_HTTPHEADER, headers);
  lib.setopt(easy, CURLOPT_USERAGENT, settings.user_agent.c_str());
  lib.setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  lib.setopt(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  lib.setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  lib.setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  lib.setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L);
  lib.setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  lib.setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  lib.setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
  if (!settings.ca_file.empty()) lib.setopt(easy, CURLOPT_CAINFO, settings.ca_file.c_str());
  if (!settings.ca_folder.empty()) lib.setopt(easy, CURLOPT_CAPATH, settings.ca_folder.c_str());
  const auto connect = scaled(settings.connect_timeout, settings, 0.1);
  lib.setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(connect.count()));
  lib.setopt(easy, CURLOPT_NOSIGNAL, 1L);
  lib.setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  lib.setopt(easy, CURLOPT_BUFFERSIZE, receive_buffer);
  lib.setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  lib.setopt(easy, CURLOPT_ERRORBUFFER, state.message.data());
  lib.setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
  lib.setopt(easy, CURLOPT_HEADERDATA, &state);
  lib.setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
  lib.setopt(easy, CURLOPT_WRITEDATA, &state);
}

Trouble trouble_of(CURLcode code) {
  constexpr std::array untrusted = {
      CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,   CURLE_SSL_CIPHER,
      CURLE_SSL_CERTPROBLEM,          CURLE_SSL_CRL_BADFILE,      CURLE_SSL_ISSUER_ERROR,
      CURLE_SSL_CONNECT_ERROR,        CURLE_SSL_INVALIDCERTSTATUS};
  for (const CURLcode one : untrusted) {
    if (one == code) return Trouble::untrusted;
  }
  if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY) return Trouble::unknown_host;
  if (code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT) return Trouble::unreachable;
  return Trouble::broken;
}

// Keeps the transfer in its multi handle until destruction.
class Running {
 public:
  explicit Running(TransferHandles& handles) : handles_(handles) {
    expects(curl().multi_add_handle(handles.multi(), handles.easy()) == CURLM_OK, "libcurl takes a transfer");
  }
  ~Running() { curl().multi_remove_handle(handles_.multi(), handles_.easy()); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  TransferHandles& handles_;
};

void perform(TransferHandles& handles, State& state) {
  const Running running(handles);
  int active = 1;
  while (true) {
    if (curl().multi_perform(handles.multi(), &active) != CURLM_OK)
      return state.end(Trouble::broken, "libcurl failed");
    if (active == 0) break;
    if (*state.options.is_cancelled && (*state.options.is_cancelled)())
      return state.end(Trouble::cancelled, {});
    if (std::string finding = state.watch.finding(); !finding.empty()) {
      return state.end(Trouble::stalled, std::move(finding));
    }
    curl().multi_poll(handles.multi(), nullptr, 0, poll_milliseconds, nullptr);
  }
  int left = 0;
  const CURLMsg* message = curl().multi_info_read(handles.multi(), &left);
  const CURLcode code = message == nullptr ? CURLE_OK : message->data.result;
  curl().getinfo(handles.easy(), CURLINFO_STARTTRANSFER_TIME, &state.outcome.first_byte_seconds);
  if (state.thrown || state.outcome.trouble != Trouble::none || code == CURLE_OK) return;
  const int status = state.outcome.response.status;
  const bool cut_short = code == CURLE_WRITE_ERROR && status >= 300;  // a long error page
  const char* words = state.message[0] != '\0' ? state.message.data() : curl().strerror(code);
  if (!cut_short) state.end(trouble_of(code), words);
}

}  // namespace

TransferHandles::TransferHandles() : easy_(curl().easy_init()), multi_(curl().multi_init()) {
  if (easy_ == nullptr || multi_ == nullptr) throw std::bad_alloc();
}

TransferHandles::~TransferHandles() {
  curl().easy_cleanup(easy_);
  curl().multi_cleanup(multi_);
}

Outcome transfer(TransferHandles& handles, const TransferOptions& options) {
  State state(options);
  const HeaderList headers = header_list(options.headers);
  configure(handles.easy(), options, state, headers.get());
  perform(handles, state);
  if (state.thrown) std::rethrow_exception(state.thrown);
  return std::move(state.outcome);
}

}  // namespace inferno::hub
