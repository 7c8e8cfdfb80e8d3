#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/doors.h"
#include "server/exchange_scene.h"
#include "server/model_scene.h"

namespace inferno::server {
namespace {

using testing::HasSubstr;

class OperationsScene : public testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = tiny_model(plain_template); }
  static void TearDownTestSuite() { model_.reset(); }

  static ServerSettings settings() {
    ServerSettings settings;
    settings.names = {"tiny", "other/name", "*"};
    settings.version = "9.8";
    return settings;
  }
  static Json get(ServerScene& scene, const std::function<void(SharedCall)>& route, int status) {
    const Reply reply = scene.send(route, std::string());
    EXPECT_EQ(reply.status, status) << reply.text;
    return reply.json();
  }
  static Reply get_model(ServerScene& scene, const std::string& id) {
    HttpRequest request;
    request.method = "GET";
    request.path = "/v1/models/" + id;
    const auto exchange = std::make_shared<RecordedExchange>();
    auto call = std::make_shared<Call>(scene.shared(), CallOrigin{.route = "/v1/models/{id}", .headers = {}},
                                       std::move(request), exchange);
    try {
      show_model(call);
    } catch (const ApiError& error) {
      call->fail(error);
    }
    HttpResponse response = exchange->wait();
    return {response.status, response.headers, response.body};
  }

  static std::shared_ptr<const TextModel> model_;
};
std::shared_ptr<const TextModel> OperationsScene::model_;

TEST_F(OperationsScene, IsHealthyAndReadyOnceTheModelIsLoaded) {
  ServerScene loading(nullptr);
  const Json problem = get(loading, health, 503);
  EXPECT_EQ(problem,
            Json::parse(R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error"}})"));
  get(loading, ready, 503);
  get(loading, live, 200);
  loading.shared().model_loaded(model_);
  EXPECT_EQ(get(loading, health, 200), Json::parse(R"({"status":"ok"})"));
  get(loading, ready, 200);
}

TEST_F(OperationsScene, StaysAliveButNotReadyWhileStopping) {
  ServerScene scene(model_);
  scene.shared().announce_stop();
  get(scene, health, 503);
  get(scene, ready, 503);
  get(scene, live, 200);
}

TEST_F(OperationsScene, TellsTheVersion) {
  ServerScene scene(nullptr, settings());
  EXPECT_EQ(get(scene, version, 200), Json::parse(R"({"version":"9.8"})"));
}

TEST_F(OperationsScene, ShowsMetricsAlsoWhileLoading) {
  ServerScene scene(nullptr, settings());
  scene.shared().set_connection_counter([] { return 3; });
  Reply reply = scene.send(metrics, std::string());
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(reply.text, HasSubstr("inferno_ready{model_name=\"tiny\"} 0\n"));
  EXPECT_THAT(reply.text, HasSubstr("inferno_open_connections{model_name=\"tiny\"} 3\n"));
  EXPECT_THAT(reply.text, HasSubstr("inferno_build_info{model_name=\"tiny\",version=\"9.8\"} 1\n"));
  scene.shared().model_loaded(model_);
  reply = scene.send(metrics, std::string());
  EXPECT_THAT(reply.text, HasSubstr("inferno_ready{model_name=\"tiny\"} 1\n"));
  EXPECT_THAT(reply.text, HasSubstr("num_gpu_blocks=\"" + std::to_string(model_->engine().stats().blocks)));
}

TEST_F(OperationsScene, ListsTheNameAndItsAliases) {
  ServerScene scene(model_, settings());
  const Json list = get(scene, list_models, 200);
  EXPECT_EQ(list.at("object"), "list");
  ASSERT_EQ(list.at("data").size(), 2U) << "* is no name";
  const Json& first = list.at("data").at(0);
  EXPECT_EQ(first.at("id"), "tiny");
  EXPECT_EQ(first.at("object"), "model");
  EXPECT_EQ(first.at("owned_by"), "inferno");
  EXPECT_EQ(first.at("max_model_len"), model_->engine().context());
  EXPECT_GT(first.at("created").get<std::int64_t>(), 1'700'000'000);
  EXPECT_EQ(list.at("data").at(1).at("id"), "other/name");
}

TEST_F(OperationsScene, ShowsOneModelByName) {
  ServerSettings exact = settings();
  exact.names.pop_back();
  ServerScene scene(model_, exact);
  EXPECT_EQ(get_model(scene, "tiny").json().at("id"), "tiny");
  EXPECT_EQ(get_model(scene, "other/name").json().at("id"), "other/name");
  EXPECT_EQ(get_model(scene, "other%2Fname").json().at("id"), "other/name");
  const Reply unknown = get_model(scene, "gpt-4");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.json().at("error").at("code"), "model_not_found");
  ServerScene any(model_, settings());
  EXPECT_EQ(get_model(any, "gpt-4").json().at("id"), "gpt-4");
}

TEST_F(OperationsScene, HasNoModelsWhileLoading) {
  ServerScene scene(nullptr);
  get(scene, list_models, 503);
}

}  // namespace
}  // namespace inferno::server
