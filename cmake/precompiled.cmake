# Headers that most sources include, parsed once for each set of compile flags: a source here spends more time in the
# headers of the standard library than in its own lines. Sources still include what they use: the asan preset builds without
# precompiled headers, so that a missing include is an error there.
set(standard_headers <algorithm> <array> <chrono> <cmath> <cstdint> <filesystem> <fstream> <functional> <map> <memory>
    <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
set(thread_headers <condition_variable> <stop_token> <thread>)

set(kernel_options $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O3>)
# Layers whose work is done once a request or once a command, not once a token: -O1 compiles them a quarter faster.
set(command_options $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
# Tests are compiled more often than they run. Unit tests, and those of text, chat and hostile files, only call what they
# test; the others compute what they compare with.
set(test_options $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
set(unit_test_options "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O0;-U_FORTIFY_SOURCE>")

# The compiler refuses a precompiled header that was made with other flags, so each set of flags has a target of its own
# that makes one; the others reuse it. Sources with flags of their own set SKIP_PRECOMPILE_HEADERS.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/empty.cpp CONTENT "")  # written once, not each time
function(inferno_precompiled_header name)
  cmake_parse_arguments(ARG "" "" "HEADERS;OPTIONS;LINKS" ${ARGN})
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/empty.cpp)
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

# nlohmann/json.hpp ends with two literal operators, which are not used here. They are no templates, so GCC instantiates the
# parser for them in each source that has the precompiled header: a quarter of a second. What is precompiled is a copy without
# them; sources that include the header find its include guard defined.
set(json_folder ${CMAKE_BINARY_DIR}/precompiled)
file(READ ${INFERNO_JSON_INCLUDE}/nlohmann/json.hpp json_header)
string(REGEX REPLACE "inline namespace literals\n.*\n}  // namespace literals\n" "" json_header "${json_header}")
string(REPLACE "#if JSON_USE_GLOBAL_UDLS\n" "#if 0\n" json_header "${json_header}")
set(json_before "")
if(EXISTS ${json_folder}/nlohmann/json.hpp)
  file(READ ${json_folder}/nlohmann/json.hpp json_before)
endif()
if(NOT json_header STREQUAL json_before)  # a newer file would recompile everything
  file(WRITE ${json_folder}/nlohmann/json.hpp "${json_header}")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${INFERNO_JSON_INCLUDE}/nlohmann/json.hpp)

inferno_precompiled_header(inferno_precompiled HEADERS ${standard_headers} LINKS inferno_fmt)
inferno_precompiled_header(inferno_precompiled_kernels HEADERS ${standard_headers} OPTIONS ${kernel_options} LINKS inferno_fmt)
# Most sources of these layers, and most unit tests, read or write JSON.
inferno_precompiled_header(inferno_precompiled_commands HEADERS ${standard_headers} ${thread_headers} <nlohmann/json.hpp>
                           OPTIONS ${command_options} LINKS inferno_fmt)
target_include_directories(inferno_precompiled_commands SYSTEM BEFORE PRIVATE ${json_folder})
# Programs are compiled with -fPIE, libraries with -fPIC; objects of test programs must be like the former.
function(inferno_compile_for_program target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIE)
endfunction()

if(BUILD_TESTING)
  set(test_headers ${standard_headers} <gmock/gmock.h> <gtest/gtest.h>)
  set(unit_test_headers ${test_headers} ${thread_headers} <nlohmann/json.hpp>)
  foreach(kind test unit_test)
    inferno_precompiled_header(inferno_precompiled_${kind}s HEADERS ${${kind}_headers} OPTIONS "${${kind}_options}" LINKS inferno_fmt GTest::gmock)
    inferno_compile_for_program(inferno_precompiled_${kind}s)
  endforeach()
  target_include_directories(inferno_precompiled_unit_tests SYSTEM BEFORE PRIVATE ${json_folder})
endif()
