// libcurl, opened when the first request is made: the program starts on machines without it, and says what is
// missing when it is needed. Debian's build also brings Kerberos and LDAP, which nobody wants inside a
// binary.
#pragma once

#include <curl/curl.h>

namespace inferno::hub {

// The functions that are used, under their names without curl_ (and easy_).
struct CurlLibrary {
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_setopt) setopt;
  decltype(&curl_easy_getinfo) getinfo;
  decltype(&curl_easy_reset) easy_reset;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&curl_easy_strerror) strerror;
  decltype(&curl_multi_init) multi_init;
  decltype(&curl_multi_add_handle) multi_add_handle;
  decltype(&curl_multi_remove_handle) multi_remove_handle;
  decltype(&curl_multi_perform) multi_perform;
  decltype(&curl_multi_poll) multi_poll;
  decltype(&curl_multi_info_read) multi_info_read;
  decltype(&curl_multi_cleanup) multi_cleanup;
  decltype(&curl_slist_append) slist_append;
  decltype(&curl_slist_free_all) slist_free_all;
  decltype(&::curl_url) url;
  decltype(&curl_url_set) url_set;
  decltype(&curl_url_get) url_get;
  decltype(&curl_url_cleanup) url_cleanup;
  decltype(&curl_free) free;
  decltype(&curl_getdate) getdate;
};

// Error{unsupported} with the package to install when there is no libcurl, or one that is too old. Any
// thread.
const CurlLibrary& curl();

}  // namespace inferno::hub
