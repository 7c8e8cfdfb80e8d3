#include "hub/http/curl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <string>

#include "base/error.h"

namespace inferno::hub {
namespace {

constexpr std::array names = {"libcurl.so.4", "libcurl-gnutls.so.4"};

[[noreturn]] void refuse(const std::string& why) {
  fail(ErrorKind::unsupported, "libcurl: required to reach the hub, but it cannot be loaded",
       {.why = why,
        .next = "install it (Debian and Ubuntu: apt install libcurl4) and run again; models on this machine "
                "need no libcurl"});
}

template <class Function>
void find(Function& function, void* library, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr)
    refuse(fmt::format("this libcurl has no {}; version 7.66 or newer is required", name));
}

void* opened() {
  std::string why;
  for (const char* name : names) {
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    const char* problem = ::dlerror();
    if (why.empty() && problem != nullptr) why = problem;
  }
  refuse(why);
}

CurlLibrary load() {
  void* library = opened();
  CurlLibrary curl{};
  find(curl.easy_init, library, "curl_easy_init");
  find(curl.setopt, library, "curl_easy_setopt");
  find(curl.getinfo, library, "curl_easy_getinfo");
  find(curl.easy_reset, library, "curl_easy_reset");
  find(curl.easy_cleanup, library, "curl_easy_cleanup");
  find(curl.strerror, library, "curl_easy_strerror");
  find(curl.multi_init, library, "curl_multi_init");
  find(curl.multi_add_handle, library, "curl_multi_add_handle");
  find(curl.multi_remove_handle, library, "curl_multi_remove_handle");
  find(curl.multi_perform, library, "curl_multi_perform");
  find(curl.multi_poll, library, "curl_multi_poll");
  find(curl.multi_info_read, library, "curl_multi_info_read");
  find(curl.multi_cleanup, library, "curl_multi_cleanup");
  find(curl.slist_append, library, "curl_slist_append");
  find(curl.slist_free_all, library, "curl_slist_free_all");
  find(curl.url, library, "curl_url");
  find(curl.url_set, library, "curl_url_set");
  find(curl.url_get, library, "curl_url_get");
  find(curl.url_cleanup, library, "curl_url_cleanup");
  find(curl.free, library, "curl_free");
  find(curl.getdate, library, "curl_getdate");
  decltype(&curl_global_init) global_init = nullptr;
  find(global_init, library, "curl_global_init");
  if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) refuse("curl_global_init failed");
  return curl;
}

}  // namespace

const CurlLibrary& curl() {
  static const CurlLibrary library = load();
  return library;
}

}  // namespace inferno::hub
