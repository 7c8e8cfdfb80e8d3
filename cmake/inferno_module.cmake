# inferno_module(engine SOURCES a.cpp b.cpp TESTS a_test.cpp USES model backend LINKS inferno_fmt)
# declares the library of one layer and, beside it, the program of its unit tests. PRECOMPILED names the precompiled header
# of sources whose flags differ from other layers' (cmake/precompiled.cmake).
include(GoogleTest)

function(inferno_module name)
  cmake_parse_arguments(ARG "" "PRECOMPILED" "SOURCES;TESTS;USES;LINKS" ${ARGN})
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED inferno_precompiled)
  endif()
  list(TRANSFORM ARG_USES PREPEND inferno_)
  if(ARG_SOURCES)
    add_library(inferno_${name} STATIC ${ARG_SOURCES})
    target_link_libraries(inferno_${name} PUBLIC ${ARG_USES} ${ARG_LINKS})
    target_precompile_headers(inferno_${name} REUSE_FROM ${ARG_PRECOMPILED})
  else()
    add_library(inferno_${name} INTERFACE)
    target_link_libraries(inferno_${name} INTERFACE ${ARG_USES} ${ARG_LINKS})
  endif()
  if(BUILD_TESTING AND ARG_TESTS)
    inferno_test(${name}_test LABEL unit SOURCES ${ARG_TESTS} USES ${name})
  endif()
endfunction()

# inferno_test_objects(engine_tests_common SOURCES x.cpp USES model): sources that several test programs contain, compiled
# once. A program takes them with LINKS.
function(inferno_test_objects name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LINKS" ${ARGN})
  add_library(${name} OBJECT ${ARG_SOURCES})
  inferno_compile_for_program(${name})
  inferno_compile_as_test(${name} "${ARG_USES}" "${ARG_LINKS}")
endfunction()

function(inferno_compile_as_test target uses links)
  list(TRANSFORM uses PREPEND inferno_)
  target_compile_options(${target} PRIVATE ${test_options})
  target_link_libraries(${target} PUBLIC ${uses} ${links} GTest::gmock)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(${target} PRIVATE INFERNO_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data"
                                               INFERNO_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_precompile_headers(${target} REUSE_FROM inferno_precompiled_tests)
endfunction()

# inferno_test(golden_test LABEL golden SOURCES x.cpp USES model backend): one GoogleTest program. The target
# <label>_tests builds all programs of a label, so that a sanitizer run need not build the others. PREFIX: of the
# names of tests that another program has too.
function(inferno_test name)
  cmake_parse_arguments(ARG "" "LABEL;PREFIX" "SOURCES;USES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  inferno_compile_as_test(${name} "${ARG_USES}" "${ARG_LINKS}")
  target_link_libraries(${name} PUBLIC GTest::gtest_main)
  if(NOT TARGET ${ARG_LABEL}_tests)
    add_custom_target(${ARG_LABEL}_tests)
  endif()
  add_dependencies(${ARG_LABEL}_tests ${name})
  gtest_discover_tests(${name} TEST_PREFIX "${ARG_PREFIX}" NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 300
                       SKIP_RETURN_CODE 77)
endfunction()
