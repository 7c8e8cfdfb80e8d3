# inferno_module(engine SOURCES a.cpp b.cpp TESTS a_test.cpp USES model backend LINKS inferno_fmt)
# declares the library of one layer and, beside it, the program of its unit tests.
include(GoogleTest)

function(inferno_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS;USES;LINKS" ${ARGN})
  list(TRANSFORM ARG_USES PREPEND inferno_)
  if(ARG_SOURCES)
    add_library(inferno_${name} STATIC ${ARG_SOURCES})
    target_link_libraries(inferno_${name} PUBLIC ${ARG_USES} ${ARG_LINKS})
  else()
    add_library(inferno_${name} INTERFACE)
    target_link_libraries(inferno_${name} INTERFACE ${ARG_USES} ${ARG_LINKS})
  endif()
  if(BUILD_TESTING AND ARG_TESTS)
    inferno_test(${name}_test LABEL unit SOURCES ${ARG_TESTS} USES ${name})
  endif()
endfunction()

# inferno_test(golden_test LABEL golden SOURCES x.cpp USES model backend): one GoogleTest program. The target
# <label>_tests builds all programs of a label, so that a sanitizer run need not build the others. PREFIX: of the
# names of tests that another program has too.
function(inferno_test name)
  cmake_parse_arguments(ARG "" "LABEL;PREFIX" "SOURCES;USES;LINKS" ${ARGN})
  list(TRANSFORM ARG_USES PREPEND inferno_)
  add_executable(${name} ${ARG_SOURCES})
  # Tests are compiled more often than they run.
  target_compile_options(${name} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
  target_link_libraries(${name} PRIVATE ${ARG_USES} ${ARG_LINKS} GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE INFERNO_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data"
                                             INFERNO_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  if(NOT TARGET ${ARG_LABEL}_tests)
    add_custom_target(${ARG_LABEL}_tests)
  endif()
  add_dependencies(${ARG_LABEL}_tests ${name})
  gtest_discover_tests(${name} TEST_PREFIX "${ARG_PREFIX}" NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 300
                       SKIP_RETURN_CODE 77)
endfunction()
