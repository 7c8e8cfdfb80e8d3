// F12: bytes as a client sends them, in pieces of any size. The requests that the handler sees and the
// statuses that are sent do not depend on the pieces, nothing is answered after a refusal, and Beast reads a
// head that is accepted in the same way.
#include <algorithm>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <deque>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "fuzz/guard.h"
#include "server/http/request_head.h"
#include "server/http/session.h"

namespace {

using namespace inferno;
using namespace inferno::server;

void require(bool claim) {
  if (!claim) std::abort();
}

HttpOptions options() {
  HttpOptions result;
  result.max_body = 1024;
  result.max_head = 2048;
  result.max_headers = 20;
  result.max_target = 256;
  return result;
}

struct Seen {
  std::vector<HttpRequest> requests;
  std::string sent;
  bool is_closed = false;
};

// A connection without a network: what the session wants to do is remembered and done by run().
class Wire final : public Transport {
 public:
  explicit Wire(Seen& seen) : seen_(seen) {}
  void read() override { wants_read_ = true; }
  void write(std::string_view bytes) override { writing_ = bytes; }
  void finish_sending() override {}
  void close() override { seen_.is_closed = true; }
  PeerState peer_state() override { return PeerState::half_closed; }
  std::function<void()> waker() override {
    return [this] { is_awake_ = true; };
  }

  void run(Session& session, std::string_view input, std::size_t step) {
    session.start();
    while (!seen_.is_closed) {
      if (std::exchange(is_awake_, false)) {
        session.listen();
      } else if (!writing_.empty()) {
        const std::size_t count = std::min(step, writing_.size());
        seen_.sent += std::exchange(writing_, {}).substr(0, count);
        session.on_written(count);
      } else if (std::exchange(wants_read_, false)) {
        const std::size_t count = std::min(step, input.size());
        if (count == 0) {
          session.on_end();
        } else {
          session.on_read(input.substr(0, count));
          input.remove_prefix(count);
        }
      } else {
        std::abort();  // nothing would ever happen again
      }
    }
  }

 private:
  Seen& seen_;
  bool wants_read_ = false, is_awake_ = false;
  std::string_view writing_;
};

Seen serve(std::string_view input, std::size_t step) {
  Seen seen;
  SessionHost host(options(), {.admit = {},
                               .handle =
                                   [&](HttpRequest request, std::shared_ptr<Exchange> exchange) {
                                     seen.requests.push_back(std::move(request));
                                     exchange->respond({.status = 299, .headers = {}, .body = "x"});
                                   },
                               .refuse =
                                   [](const HttpRequest*, int status, const std::string&) {
                                     return HttpResponse{.status = status, .headers = {}, .body = {}};
                                   }});
  Wire wire(seen);
  Session session(host, wire, "peer");
  wire.run(session, input, step);
  return seen;
}

std::vector<std::string> statuses(const std::string& sent) {
  std::vector<std::string> found;
  for (std::size_t at = sent.find("HTTP/1.1 "); at != std::string::npos;
       at = sent.find("HTTP/1.1 ", at + 1)) {
    const std::string status = sent.substr(at + 9, 3);
    if (status != "100") found.push_back(status);
  }
  return found;
}

bool same(const HttpRequest& a, const HttpRequest& b) {
  return a.method == b.method && a.path == b.path && a.query == b.query && a.headers == b.headers &&
         a.body == b.body;
}

void compare_with_beast(std::string_view input) {
  namespace http = boost::beast::http;
  RequestHead head;
  std::size_t size = 0;
  try {
    HeadScanner scanner({.max_head = 2048, .max_headers = 20, .max_target = 256});
    const auto end = scanner.find_end(input);
    if (!end || *end == 2) return;
    size = *end;
    head = parse_head(input.substr(0, size), {.max_head = 2048, .max_headers = 20, .max_target = 256});
  } catch (const BadRequest& problem) {
    require(problem.status >= 400 && problem.status < 600 && !problem.message.empty());
    return;
  }
  const bool is_later = !head.is_http10 && input.substr(0, input.find('\r')).ends_with("HTTP/1.1") == false;
  if (is_later) return;  // HTTP/1.2 and so on are read as HTTP/1.1
  http::request_parser<http::empty_body> parser;
  parser.header_limit(1 << 20);
  parser.body_limit(boost::none);  // the session has a limit of its own
  boost::system::error_code error;
  parser.put(boost::asio::buffer(input.substr(0, size)), error);
  if (error == http::error::bad_value && !head.request.header("connection").empty())
    return;  // no list of tokens
  require(!error || error == http::error::need_more);
  require(parser.is_header_done());
  const auto& theirs = parser.get();
  require(theirs.method_string() == head.request.method);
  require((theirs.version() == 10) == head.is_http10);
  require(parser.chunked() == head.is_chunked);
  if (!head.is_chunked && parser.content_length()) require(*parser.content_length() == head.content_length);
  require(parser.keep_alive() == head.keep_alive);
  if (theirs.target().starts_with('/')) {
    const std::string& query = head.request.query;
    require(theirs.target().starts_with(head.request.path) && theirs.target().ends_with(query));
    Headers their_headers, mine = head.request.headers;
    for (const auto& field : theirs) {
      their_headers.emplace_back(lower_case(field.name_string()), std::string(field.value()));
    }
    std::sort(mine.begin(), mine.end());
    std::sort(their_headers.begin(), their_headers.end());
    require(mine == their_headers);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view input = fuzz::text(data + 1, size - 1);
  const Seen whole = serve(input, std::max<std::size_t>(input.size(), 1));
  for (const std::size_t step : {std::size_t{1}, std::size_t{data[0]} % 64 + 1}) {
    const Seen pieces = serve(input, step);
    require(pieces.requests.size() == whole.requests.size());
    for (std::size_t i = 0; i < whole.requests.size(); ++i)
      require(same(pieces.requests[i], whole.requests[i]));
    require(statuses(pieces.sent) == statuses(whole.sent));
  }
  const auto sent = statuses(whole.sent);
  for (std::size_t i = 0; i < sent.size(); ++i) require(sent[i] == "299" || i + 1 == sent.size());
  compare_with_beast(input);
  return 0;
}
