#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/error.h"
#include "server/http/scene.h"
#include "support/temporary_directory.h"

namespace inferno::server {
namespace {

using testing::HasSubstr;

class HttpTls : public testing::Test {
 protected:
  // Writes NAME.crt and NAME.key.
  HttpOptions with_certificate(const std::string& name) {
    HttpOptions options = any_port();
    options.certificate_file = (folder_.path() / (name + ".crt")).string();
    options.key_file = (folder_.path() / (name + ".key")).string();
    const std::string command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj "
        "/CN=localhost -keyout " +
        options.key_file + " -out " + options.certificate_file + " 2>/dev/null";
    if (std::system(command.c_str()) != 0) skips_ = true;
    return options;
  }
  std::string error_of(const HttpOptions& options) {
    try {
      HttpServer server(options, handler(echo));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TemporaryDirectory folder_;
  bool skips_ = false;  // there is no openssl command
};

class TlsClient {
 public:
  explicit TlsClient(const RunningServer& server, int max_version = TLS1_3_VERSION) : client_(server) {
    SSL_CTX_set_max_proto_version(context_.get(), max_version);
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
    SSL_CTX_set_security_level(context_.get(), 0);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), client_.socket());
    is_connected_ = SSL_connect(ssl_.get()) == 1;
  }
  bool is_connected() const { return is_connected_; }
  void send(const std::string& text) { SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())); }
  std::string receive_until(const std::string& end) {
    std::string text;
    char buffer[4096];
    while (text.find(end) == std::string::npos) {
      const int count = SSL_read(ssl_.get(), buffer, sizeof buffer);
      if (count <= 0) break;
      text.append(buffer, static_cast<std::size_t>(count));
    }
    return text;
  }
  void shut_down() { SSL_shutdown(ssl_.get()); }
  Client& socket() { return client_; }

 private:
  Client client_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_{SSL_CTX_new(TLS_client_method()), SSL_CTX_free};
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_{nullptr, SSL_free};
  bool is_connected_ = false;
};

TEST_F(HttpTls, AnswersAndKeepsTheConnection) {
  const HttpOptions options = with_certificate("a");
  if (skips_) GTEST_SKIP() << "no openssl command";
  RunningServer server(echo, options);
  TlsClient client(server);
  ASSERT_TRUE(client.is_connected());
  for (int i = 0; i < 3; ++i) {
    client.send(post("hello"));
    EXPECT_THAT(client.receive_until("POST /echo hello"), HasSubstr("HTTP/1.1 200 OK"));
  }
  const std::string large(1 << 20, 'x');
  client.send(post(large));
  EXPECT_THAT(client.receive_until(large), HasSubstr(large));
  client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.receive_until("never"), HasSubstr("GET / "));  // until the end
}

TEST_F(HttpTls, StreamsAndNoticesAClientThatCloses) {
  const HttpOptions options = with_certificate("a");
  if (skips_) GTEST_SKIP() << "no openssl command";
  for (const bool is_polite : {true, false}) {
    Event gone;
    std::shared_ptr<Exchange> kept;
    RunningServer server(
        [&](const HttpRequest&, std::shared_ptr<Exchange> exchange) {
          exchange->on_disconnect([&] { gone.set(); });
          exchange->begin({}, ": ping\n\n");
          exchange->write("data: 1\n\n");
          kept = std::move(exchange);
        },
        options);
    TlsClient client(server);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_THAT(client.receive_until("data: 1\n\n"), HasSubstr("data: 1"));
    if (is_polite) client.shut_down();
    client.socket().close();
    EXPECT_TRUE(gone.wait());
  }
}

TEST_F(HttpTls, ServesTls12AndNothingOlder) {
  const HttpOptions options = with_certificate("a");
  if (skips_) GTEST_SKIP() << "no openssl command";
  RunningServer server(echo, options);
  EXPECT_TRUE(TlsClient(server, TLS1_2_VERSION).is_connected());
  EXPECT_FALSE(TlsClient(server, TLS1_1_VERSION).is_connected());
}

TEST_F(HttpTls, ClosesAHandshakeThatDoesNotProceed) {
  HttpOptions options = with_certificate("a");
  if (skips_) GTEST_SKIP() << "no openssl command";
  options.head_timeout = milliseconds(100);
  RunningServer server(echo, options);
  Client silent(server), plain(server);
  plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(plain.sees_close());
  EXPECT_TRUE(silent.sees_close());
}

TEST_F(HttpTls, NamesTheFileThatIsWrong) {
  const HttpOptions good = with_certificate("a"), other = with_certificate("b");
  if (skips_) GTEST_SKIP() << "no openssl command";
  HttpOptions missing = good;
  missing.certificate_file = (folder_.path() / "none.crt").string();
  EXPECT_THAT(error_of(missing), HasSubstr("none.crt: No such file or directory"));
  HttpOptions without_key = good;
  without_key.key_file = "";
  EXPECT_THAT(error_of(without_key), HasSubstr("TLS key"));
  HttpOptions mixed = good;
  mixed.key_file = other.key_file;
  EXPECT_THAT(error_of(mixed), HasSubstr("does not belong to the certificate"));
  HttpOptions swapped = good;
  std::swap(swapped.certificate_file, swapped.key_file);
  EXPECT_THAT(error_of(swapped), HasSubstr("not a PEM certificate"));
  EXPECT_EQ(error_of(good), "");
}

}  // namespace
}  // namespace inferno::server
