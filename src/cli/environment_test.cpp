#include "cli/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace inferno {
namespace {

using testing::ElementsAre;

std::string cache_of(Environment::Values values, std::optional<std::string> home = std::nullopt) {
  const auto cache = Environment(std::move(values), std::move(home)).hub_cache();
  return cache ? cache->path.string() + " by " + cache->said_by : "none";
}

TEST(Environment, FindsTheCacheWhereHuggingFaceDoes) {
  EXPECT_EQ(cache_of({{"HOME", "/h"}}), "/h/.cache/huggingface/hub by default");
  EXPECT_EQ(cache_of({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}), "/x/huggingface/hub by XDG_CACHE_HOME");
  EXPECT_EQ(cache_of({{"XDG_CACHE_HOME", "/x"}, {"HF_HOME", "/f"}}), "/f/hub by HF_HOME");
  EXPECT_EQ(cache_of({{"HF_HOME", "/f"}, {"HUGGINGFACE_HUB_CACHE", "/o"}}), "/o by HUGGINGFACE_HUB_CACHE");
  EXPECT_EQ(cache_of({{"HUGGINGFACE_HUB_CACHE", "/o"}, {"HF_HUB_CACHE", "/c"}}), "/c by HF_HUB_CACHE");
}

TEST(Environment, AsksTheUserDatabaseWhenHomeIsNotSet) {
  EXPECT_EQ(cache_of({}, "/d"), "/d/.cache/huggingface/hub by default");
  EXPECT_EQ(cache_of({{"HOME", "/h"}}, "/d"), "/h/.cache/huggingface/hub by default");
  EXPECT_EQ(cache_of({{"HOME", "relative"}}, "/d"), "/d/.cache/huggingface/hub by default");
  EXPECT_EQ(cache_of({}), "none");
}

TEST(Environment, TreatsEmptyAsNotSet) {
  EXPECT_EQ(cache_of({{"HF_HOME", ""}, {"HOME", "/h"}}), "/h/.cache/huggingface/hub by default");
  EXPECT_EQ(Environment({{"A", ""}}, {}).get("A"), std::nullopt);
}

TEST(Environment, SplitsTheFoldersOfModels) {
  const Environment environment({{"HOME", "/h"}, {"INFERNO_MODELS", ":/a:~/b::"}}, {});
  EXPECT_EQ(environment.model_folders(), (std::vector<std::filesystem::path>{"/a", "/h/b"}));
  EXPECT_TRUE(Environment({}, {}).model_folders().empty());
}

TEST(Environment, KeepsStateWhereTheDesktopStandardSays) {
  EXPECT_EQ(Environment({{"HOME", "/h"}}, {}).state_folder(), "/h/.local/state/inferno");
  EXPECT_EQ(Environment({{"HOME", "/h"}, {"XDG_STATE_HOME", "/s"}}, {}).state_folder(), "/s/inferno");
  EXPECT_EQ(Environment({}, {}).state_folder(), std::nullopt);
}

TEST(Environment, DecidesAboutColours) {
  EXPECT_TRUE(Environment({}, {}).allows_colour(true));
  EXPECT_FALSE(Environment({}, {}).allows_colour(false));
  EXPECT_FALSE(Environment({{"NO_COLOR", "1"}, {"CLICOLOR_FORCE", "1"}}, {}).allows_colour(true));
  EXPECT_TRUE(Environment({{"CLICOLOR_FORCE", "1"}}, {}).allows_colour(false));
  EXPECT_FALSE(Environment({{"TERM", "dumb"}}, {}).allows_colour(true));
}

TEST(Environment, KnowsWhereALineMayBeDrawnOver) {
  EXPECT_TRUE(Environment({{"TERM", "xterm"}, {"NO_COLOR", "1"}}, {}).allows_redrawing(true));
  EXPECT_FALSE(Environment({{"TERM", "xterm"}}, {}).allows_redrawing(false));
  EXPECT_FALSE(Environment({{"TERM", "dumb"}, {"CLICOLOR_FORCE", "1"}}, {}).allows_redrawing(true));
}

TEST(Environment, ShowsAsciiInThePosixLocale) {
  EXPECT_TRUE(Environment({}, {}).allows_unicode());
  EXPECT_TRUE(Environment({{"LANG", "C.UTF-8"}}, {}).allows_unicode());
  EXPECT_FALSE(Environment({{"LC_ALL", "C"}, {"LANG", "en_US.UTF-8"}}, {}).allows_unicode());
  EXPECT_FALSE(Environment({{"LC_CTYPE", "POSIX"}}, {}).allows_unicode());
}

TEST(Environment, ExpandsTheTildeAndVariablesOfAPath) {
  const Environment environment({{"HOME", "/h"}, {"DISK", "/disk"}, {"EMPTY", ""}}, {});
  EXPECT_EQ(environment.expanded("~/models"), "/h/models");
  EXPECT_EQ(environment.expanded("~"), "/h");
  EXPECT_EQ(environment.expanded("~else/models"), "~else/models");
  EXPECT_EQ(environment.expanded("$DISK/a/${DISK}b"), "/disk/a//diskb");
  EXPECT_EQ(environment.expanded("a$EMPTY/b"), "a/b");
  EXPECT_EQ(environment.expanded("$NOBODY/${NOBODY}"), "$NOBODY/${NOBODY}");
  EXPECT_EQ(environment.expanded("a$"), "a$");
  EXPECT_EQ(environment.expanded("a${DISK"), "a${DISK");
  EXPECT_EQ(environment.expanded("${}"), "${}");
}

TEST(Environment, SaysWhereModelsAre) {
  const CatalogueSettings settings = catalogue_settings(Environment(
      {{"HOME", "/h"}, {"INFERNO_MODELS", "/m"}, {"LLAMA_CACHE", "~/l"}, {"OLLAMA_MODELS", "/o"}}, {}));
  EXPECT_THAT(settings.places.folders, ElementsAre("/m", "/h/l"));
  EXPECT_THAT(settings.places.hub_caches, ElementsAre("/h/.cache/huggingface/hub", "/h/l"));
  EXPECT_THAT(settings.places.lm_studio, ElementsAre("/h/.lmstudio/models", "/h/.cache/lm-studio/models"));
  EXPECT_THAT(settings.places.ollama, ElementsAre("/o"));
  EXPECT_EQ(settings.unpack_folders.front(), "/h/.cache/inferno");
  EXPECT_EQ(settings.hub_endpoint(), "https://huggingface.co");
}

TEST(Environment, UnpacksTheBuiltInModelInACacheOrATemporaryFolder) {
  const auto folders_for = [](const std::string& temporary) {
    return catalogue_settings(Environment({{"XDG_CACHE_HOME", "/x"}, {"TMPDIR", temporary}}, {}))
        .unpack_folders;
  };
  const auto folders = folders_for("/usr");
  ASSERT_EQ(folders.size(), 2u);
  EXPECT_EQ(folders[0], "/x/inferno");
  EXPECT_EQ(folders[1].parent_path(), "/usr");
  EXPECT_EQ(folders_for("/no/such/folder").size(), 1u);
}

TEST(Environment, SaysWhereTemporaryFilesGo) {
  EXPECT_EQ(Environment({{"TMPDIR", "/large/disk"}}, {}).temporary_folder(), "/large/disk");
  EXPECT_EQ(Environment({{"TMPDIR", ""}}, {}).temporary_folder(), "/tmp");
}

TEST(Environment, ReadsTheProcess) {
  setenv("INFERNO_ENVIRONMENT_TEST", "a=b", 1);
  EXPECT_EQ(Environment::of_process().get("INFERNO_ENVIRONMENT_TEST"), "a=b");
  unsetenv("INFERNO_ENVIRONMENT_TEST");
  EXPECT_EQ(Environment::of_process().get("INFERNO_ENVIRONMENT_TEST"), std::nullopt);
}

TEST(Environment, FindsTheConfiguration) {
  const auto path = [](Environment::Values values) {
    return Environment(std::move(values), "/home/of-database").config_path();
  };
  EXPECT_EQ(path({{"HOME", "/home/me"}})->path, "/home/me/.config/inferno/config.toml");
  EXPECT_EQ(path({})->path, "/home/of-database/.config/inferno/config.toml");
  EXPECT_EQ(path({{"XDG_CONFIG_HOME", "/etc/me"}})->path, "/etc/me/inferno/config.toml");
  EXPECT_FALSE(path({{"XDG_CONFIG_HOME", "/etc/me"}})->is_chosen);
  EXPECT_EQ(path({{"INFERNO_CONFIG", "~/x.toml"}, {"HOME", "/home/me"}})->path, "/home/me/x.toml");
  EXPECT_TRUE(path({{"INFERNO_CONFIG", "x.toml"}})->is_chosen);
  EXPECT_FALSE(path({{"INFERNO_CONFIG", ""}, {"HOME", "/home/me"}}));
  EXPECT_FALSE(Environment({}, std::nullopt).config_path());
}

}  // namespace
}  // namespace inferno
