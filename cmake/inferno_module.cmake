# inferno_module(engine SOURCES a.cpp b.cpp TESTS a_test.cpp USES model backend LINKS inferno_fmt)
# declares the library of one layer and, beside it, the program of its unit tests. COMPILED_AS kernels or commands: with the
# options and the precompiled header of that name (cmake/precompiled.cmake).
include(GoogleTest)
configure_file(${CMAKE_SOURCE_DIR}/tests/support/source_dir.h.in ${CMAKE_BINARY_DIR}/tests/include/support/source_dir.h @ONLY)

function(inferno_module name)
  cmake_parse_arguments(ARG "" "COMPILED_AS" "SOURCES;TESTS;USES;LINKS" ${ARGN})
  list(TRANSFORM ARG_USES PREPEND inferno_)
  if(ARG_SOURCES)
    add_library(inferno_${name} STATIC ${ARG_SOURCES})
    target_link_libraries(inferno_${name} PUBLIC ${ARG_USES} ${ARG_LINKS})
    if(ARG_COMPILED_AS STREQUAL kernels)
      target_compile_options(inferno_${name} PRIVATE ${kernel_options})
      target_precompile_headers(inferno_${name} REUSE_FROM inferno_precompiled_kernels)
    elseif(ARG_COMPILED_AS STREQUAL commands)
      target_compile_options(inferno_${name} PRIVATE ${command_options})
      target_precompile_headers(inferno_${name} REUSE_FROM inferno_precompiled_commands)
    else()
      target_precompile_headers(inferno_${name} REUSE_FROM inferno_precompiled)
    endif()
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
  inferno_compile_as_test(${name} test "${ARG_USES}" "${ARG_LINKS}")
endfunction()

# `kind` is test or unit_test (cmake/precompiled.cmake).
function(inferno_compile_as_test target kind uses links)
  list(TRANSFORM uses PREPEND inferno_)
  target_compile_options(${target} PRIVATE "${${kind}_options}")
  target_link_libraries(${target} PUBLIC ${uses} ${links} GTest::gmock)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_BINARY_DIR}/tests/include)
  target_precompile_headers(${target} REUSE_FROM inferno_precompiled_${kind}s)
endfunction()

# inferno_test(golden_test LABEL golden SOURCES x.cpp USES model backend): one GoogleTest program. The target
# <label>_tests builds all programs of a label, so that a sanitizer run need not build the others. PREFIX: of the
# names of tests that another program has too.
function(inferno_test name)
  cmake_parse_arguments(ARG "" "LABEL;PREFIX" "SOURCES;USES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set(kind test)
  if(ARG_LABEL MATCHES "^(unit|text|chat|hostile)$")
    set(kind unit_test)
  endif()
  inferno_compile_as_test(${name} ${kind} "${ARG_USES}" "${ARG_LINKS}")
  target_link_libraries(${name} PUBLIC GTest::gtest_main)
  if(NOT TARGET ${ARG_LABEL}_tests)
    add_custom_target(${ARG_LABEL}_tests)
  endif()
  add_dependencies(${ARG_LABEL}_tests ${name})
  gtest_discover_tests(${name} TEST_PREFIX "${ARG_PREFIX}" NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 300
                       SKIP_RETURN_CODE 77)
endfunction()
