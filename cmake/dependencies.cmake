# The only file that finds third-party libraries. nlohmann-json, RapidJSON and CLI11 are headers; so is fmt, but compiled
# once, because as headers alone it would double the time of the whole build.
find_package(Threads REQUIRED)
find_path(INFERNO_FMT_INCLUDE NAMES fmt/format.h REQUIRED)
add_library(inferno_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt.cpp)
find_package(nlohmann_json REQUIRED)
find_path(INFERNO_JSON_INCLUDE NAMES nlohmann/json.hpp REQUIRED)

# For another processor than this machine's: its libraries need not be installed, GoogleTest is compiled from Debian's sources.
if(INFERNO_KERNELS_ONLY)
  add_subdirectory(/usr/src/googletest googletest EXCLUDE_FROM_ALL)
  foreach(target gtest gtest_main gmock)
    target_compile_options(${target} PRIVATE -w)
  endforeach()
  return()
endif()

find_package(CLI11 REQUIRED)
if(BUILD_TESTING)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
endif()

# inferno_library(pcre2 NAME pcre2-8 HEADER pcre2.h) wraps a C library as target inferno_pcre2, from its static
# archive when the binary must be portable.
function(inferno_library name)
  cmake_parse_arguments(ARG "" "NAME;HEADER" "" ${ARGN})
  set(file ${ARG_NAME})
  if(INFERNO_PORTABLE)
    set(file ${CMAKE_STATIC_LIBRARY_PREFIX}${ARG_NAME}${CMAKE_STATIC_LIBRARY_SUFFIX})
  endif()
  find_library(INFERNO_${name}_LIBRARY NAMES ${file} REQUIRED)
  find_path(INFERNO_${name}_INCLUDE NAMES ${ARG_HEADER} REQUIRED)
  # Imported, so that CMake knows which of them needs which when it orders static archives.
  add_library(inferno_${name} UNKNOWN IMPORTED)
  set_target_properties(inferno_${name} PROPERTIES IMPORTED_LOCATION ${INFERNO_${name}_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${INFERNO_${name}_INCLUDE})
endfunction()
inferno_library(pcre2 NAME pcre2-8 HEADER pcre2.h)
target_compile_definitions(inferno_pcre2 INTERFACE PCRE2_CODE_UNIT_WIDTH=8)
inferno_library(utf8proc NAME utf8proc HEADER utf8proc.h)
find_path(INFERNO_RAPIDJSON_INCLUDE NAMES rapidjson/document.h REQUIRED)

# libcurl's headers alone: the library itself is opened when the hub is asked for something (src/hub/http/curl_library.h).
find_path(INFERNO_CURL_INCLUDE NAMES curl/curl.h REQUIRED)
add_library(inferno_curl INTERFACE)
target_include_directories(inferno_curl SYSTEM INTERFACE ${INFERNO_CURL_INCLUDE})
target_link_libraries(inferno_curl INTERFACE ${CMAKE_DL_LIBS})
inferno_library(crypto NAME crypto HEADER openssl/evp.h)
inferno_library(ssl NAME ssl HEADER openssl/ssl.h)
set_target_properties(inferno_ssl PROPERTIES INTERFACE_LINK_LIBRARIES inferno_crypto)
# Asio, and Beast, with which the fuzz targets of the server compare, are headers alone.
find_path(INFERNO_BOOST_INCLUDE NAMES boost/beast/version.hpp REQUIRED)
