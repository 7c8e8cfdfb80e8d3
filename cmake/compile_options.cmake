# Warnings, sanitizers, hardening and linking, the same for every target.
set(warnings -Wall -Wextra -Wconversion -Wshadow -Wswitch-enum)
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${warnings};-Wpedantic;-Werror>")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC 12 sees overflows in vector::insert that are not there (its bug 105329 and kin), at -O3 only.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-array-bounds>")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  # g++'s -Wconversion leaves signs alone in C++; without this the fuzzing build would judge by another law.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-sign-conversion>)
endif()
include_directories(${CMAKE_SOURCE_DIR}/src)

set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CheckPIESupported)
check_pie_supported()

if(INFERNO_SANITIZE)
  add_compile_options(-fsanitize=${INFERNO_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${INFERNO_SANITIZE})
endif()

if(INFERNO_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# What a shipped program should survive or stop at; tools/check_hardened.py looks for it in the result.
# -U first, because some compilers predefine the macro.
if(INFERNO_HARDENED)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3;-D_GLIBCXX_ASSERTIONS>"
                      "$<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong;-fstack-clash-protection;-fcf-protection=full>")
  add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
endif()

if(INFERNO_PORTABLE)
  add_link_options(-static-libstdc++ -static-libgcc)
endif()
