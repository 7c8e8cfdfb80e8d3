#include "hub/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "hub/http/scene.h"

namespace inferno::hub {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string commit(40, 'c'), oid(40, 'b'), large_oid(64, 'a');

HubSettings settings_for(const SmallServer& server, const std::string& token = "") {
  HubSettings settings;
  settings.endpoint = server.url();
  settings.token = token;
  settings.token_source = token.empty() ? "" : "HF_TOKEN";
  settings.token_file = "/home/me/.cache/huggingface/token";
  settings.time_scale = 1e-4;
  return settings;
}

// The error that a refusal of the hub becomes.
struct Refused {
  ErrorKind kind{};
  std::string what, why, next;
};

Refused refused(const std::string& reply, const std::string& token = "") {
  const SmallServer hub([&](const std::string&) { return reply; });
  HubClient client(settings_for(hub, token));
  try {
    client.info("org/name", "main");
  } catch (const Error& error) {
    return {error.kind(), error.what(), error.advice().why, error.advice().next};
  }
  return {};
}

TEST(HubClient, ReadsModelInfo) {
  const SmallServer hub([](const std::string&) {
    return answer(200, R"({"id":"org/name","sha":")" + commit + R"(","gated":"manual","private":true})");
  });
  HubClient client(settings_for(hub));
  const ModelInfo info = client.info("org/name", "refs/pr/1");
  EXPECT_EQ(info.commit, commit);
  EXPECT_EQ(info.gated, "manual");
  EXPECT_TRUE(info.is_private);
  EXPECT_THAT(hub.requests().at(0), testing::StartsWith("GET /api/models/org/name/revision/refs%2Fpr%2F1 "));
}

TEST(HubClient, ReadsAListOfFilesToItsLastPage) {
  std::string next;
  const SmallServer hub([&](const std::string& request) {
    if (request.find("cursor=2") != std::string::npos) {
      return answer(200, R"([{"type":"file","path":"w","size":1,"oid":")" + oid + R"(","lfs":{"oid":")" +
                             large_oid + R"(","size":5000,"pointerSize":1}}])");
    }
    return answer(
        200,
        R"([{"type":"directory","path":"d","oid":""},{"type":"file","path":"d/x","size":3,"oid":")" + oid +
            "\"}]",
        "Link: <" + next + "/api/models/org/name/tree/main?cursor=2>; rel=\"next\"\r\n");
  });
  next = hub.url();
  const auto files = HubClient(settings_for(hub)).tree("org/name", "main");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].etag(), oid);
  EXPECT_EQ(files[1].etag(), large_oid);
  EXPECT_EQ(files[1].size, 5000U);
}

TEST(HubClient, FollowsNoPageToAnotherHost) {
  const SmallServer hub([](const std::string&) {
    return answer(200, "[]", "Link: <https://evil.example/>; rel=\"next\"\r\n");
  });
  EXPECT_THROW(HubClient(settings_for(hub)).tree("org/name", "main"), Error);
}

TEST(HubClient, RefusesInvalidFileLists) {
  for (const std::string body :
       {"", "{}", "null", "[{\"path\":\"x\",\"oid\":\"y\"}]", "[{\"size\":1}]", "<html>"}) {
    const SmallServer hub([&](const std::string&) { return answer(200, body); });
    EXPECT_THROW(HubClient(settings_for(hub)).tree("org/name", "main"), Error) << body;
  }
  const SmallServer deep([](const std::string&) { return answer(200, std::string(100'000, '[')); });
  EXPECT_THROW(HubClient(settings_for(deep)).tree("org/name", "main"), Error);
}

TEST(HubClient, TakesTheSizeAndHashOfALargeFileFromTheHubAndNotFromItsRedirect) {
  const SmallServer hub([](const std::string&) {
    return answer(
        302, "",
        "X-Repo-Commit: " + commit + "\r\nX-Linked-Etag: \"" + large_oid +
            "\"\r\nX-Linked-Size: 5000\r\nETag: W/\"x\"\r\nLocation: https://cdn.example/x?sig\r\n");
  });
  const RemoteFile file = HubClient(settings_for(hub)).head("org/name", "main", "a b/w");
  EXPECT_EQ(file.etag, large_oid);
  EXPECT_EQ(file.size, 5000U);
  EXPECT_EQ(file.url, "https://cdn.example/x?sig");
  EXPECT_THAT(hub.requests().at(0), testing::StartsWith("HEAD /org/name/resolve/main/a%20b/w "));
}

TEST(HubClient, RefusesAPageThatIsNotAHub) {
  const SmallServer portal(
      [](const std::string&) { return answer(200, "<html>please log in</html>", "ETag: \"x\"\r\n"); });
  EXPECT_THROW(HubClient(settings_for(portal)).head("org/name", "main", "w"), Error);
}

TEST(HubClient, SaysWhatToDoAboutAMissingModel) {
  const Refused error = refused(answer(401, "", "X-Error-Code: RepoNotFound\r\nX-Request-Id: Root=1\r\n"));
  EXPECT_EQ(error.kind, ErrorKind::not_found);
  EXPECT_THAT(error.what, HasSubstr("401 RepoNotFound, request Root=1"));
  EXPECT_THAT(error.why, HasSubstr("none in HF_TOKEN or /home/me/.cache/huggingface/token"));
  EXPECT_THAT(error.next, HasSubstr("export HF_TOKEN="));
}

TEST(HubClient, SaysWhereToAcceptALicense) {
  const Refused error = refused(answer(403, "", "X-Error-Code: GatedRepo\r\n"), "hf_mine");
  EXPECT_EQ(error.kind, ErrorKind::network);
  EXPECT_THAT(error.next, HasSubstr("/org/name"));
  EXPECT_THAT(error.why, HasSubstr("the token from HF_TOKEN"));
  EXPECT_THAT(error.what + error.why + error.next, Not(HasSubstr("hf_mine")));
}

TEST(HubClient, SaysWhereABadTokenCameFrom) {
  const Refused error =
      refused(answer(401, "", "X-Error-Message: Invalid credentials in Authorization header\r\n"), "hf_mine");
  EXPECT_THAT(error.why, HasSubstr("the token from HF_TOKEN"));
  EXPECT_THAT(error.next, HasSubstr("/settings/tokens"));
}

TEST(HubClient, ListsTheExistingRevisions) {
  const SmallServer hub([](const std::string& request) {
    return request.starts_with("GET /api/models/org/name/refs ")
               ? answer(200, R"({"branches":[{"name":"main"}],"tags":[{"name":"v1"}]})")
               : answer(404, "", "X-Error-Code: RevisionNotFound\r\n");
  });
  try {
    HubClient(settings_for(hub)).info("org/name", "nope");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_THAT(error.advice().next, HasSubstr("main, v1"));
  }
}

TEST(HubClient, SendsNoRequestWhenOffline) {
  const SmallServer hub([](const std::string&) { return answer(200, "{}"); });
  HubSettings settings = settings_for(hub);
  settings.offline_reason = "HF_HUB_OFFLINE=1";
  EXPECT_THROW(HubClient(settings).info("org/name"), Error);
  EXPECT_THROW(HubClient(settings).search({}), Error);
  EXPECT_TRUE(hub.requests().empty());
}

TEST(HubClient, ReadsAPartOfAFileFromAServerThatIgnoresRanges) {
  const SmallServer hub([](const std::string&) { return answer(200, "0123456789", "X-Repo-Commit: x\r\n"); });
  HubClient client(settings_for(hub));
  EXPECT_EQ(client.read("org/name", "main", "w", 3, 4), "3456");
  EXPECT_EQ(client.read("org/name", "main", "w", 8, 10), "89");
}

TEST(HubClient, ReadsBlobNamesFromTags) {
  EXPECT_EQ(blob_name("W/\"" + oid + "\""), oid);
  EXPECT_EQ(blob_name("\"" + large_oid + "\""), large_oid);
  for (const char* text : {"", "\"", "\"../../x\"", "d41d8cd98f00b204e9800998ecf8427e"})
    EXPECT_EQ(blob_name(text), "") << text;
}

}  // namespace
}  // namespace inferno::hub
