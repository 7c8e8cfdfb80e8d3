# Warnings, sanitizers, hardening and linking, the same for every target.
set(warnings -Wall -Wextra -Wconversion -Wshadow -Wswitch-enum)
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${warnings};-Wpedantic;-Werror>")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC 12 sees overflows in strings and vectors that are not there when it optimizes (its bugs 105329, 105651).
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-array-bounds>"
                      "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>")
  # GCC collects garbage from 128 MiB on; most sources here need between that and 512 MiB, and compile faster without.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  # g++'s -Wconversion leaves signs alone in C++; without this the fuzzing build would judge by another law.
  # With libstdc++ 12, std::stable_sort calls a function that the same library marks deprecated.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wno-sign-conversion;-Wno-deprecated-declarations>")
endif()
include_directories(${CMAKE_SOURCE_DIR}/src)

# The same on every processor: on ARM, char has no sign unless asked.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fsigned-char>")
endif()

# Kernels ask for -O3 themselves (src/backend); for the rest it would only lengthen the build.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# Of sanitizers and fuzzing: more would lengthen the build, not the list of what they find.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1 -DNDEBUG")

set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CheckPIESupported)
check_pie_supported()

if(INFERNO_SANITIZE)
  # GCC warns of what its own instrumentation adds; the other presets judge the code.
  add_compile_options(-Wno-error)
  add_compile_options(-fsanitize=${INFERNO_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${INFERNO_SANITIZE})
endif()

if(INFERNO_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
  # RapidJSON 1.1 assigns to a constant in a template that is never instantiated, which newer clangs refuse to parse. With a
  # precompiled header clang then misreads <random>, so the preset uses none.
  add_compile_options(-fdelayed-template-parsing -Wno-delayed-template-parsing-in-cxx20
                      -fsanitize-ignorelist=${CMAKE_SOURCE_DIR}/tests/fuzz/ignored.txt)
endif()

# What a shipped program should survive or stop at; tools/check_hardened.py looks for it in the result.
# -U first, because some compilers predefine the macro.
if(INFERNO_HARDENED)
  set(branch_protection -fcf-protection=full)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    set(branch_protection -mbranch-protection=standard)
  endif()
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3;-D_GLIBCXX_ASSERTIONS>"
                      "$<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong;-fstack-clash-protection;${branch_protection}>")
  add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
  # Two builds in two folders are the same, and messages name files as this repository does.
  # ccache hands the compiler paths that are relative to the build folder. It knows that the folders in these options do not
  # matter, but not after -Xcompiler: there they would keep clones from sharing what is cached.
  file(RELATIVE_PATH to_source ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
  set(own_paths -ffile-prefix-map=${CMAKE_SOURCE_DIR}/= -ffile-prefix-map=${CMAKE_BINARY_DIR}/=build/
      -ffile-prefix-map=${to_source}=)
  set(cuda_path ${CMAKE_SOURCE_DIR}/)
  if(CCACHE AND NOT INFERNO_REPRODUCIBLE)
    set(cuda_path ${to_source})
  endif()
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${own_paths}>"
                      "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffile-prefix-map=${cuda_path}=>")
endif()

# libgcc stays shared: its static form needs _dl_find_object of glibc 2.35. Every system has libgcc_s.
if(INFERNO_PORTABLE)
  add_link_options(-static-libstdc++)
endif()
