# Warnings, sanitizers and linking, the same for every target.
add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wswitch-enum -Werror)
include_directories(${CMAKE_SOURCE_DIR}/src)

if(INFERNO_SANITIZE)
  add_compile_options(-fsanitize=${INFERNO_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${INFERNO_SANITIZE})
endif()

if(INFERNO_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(INFERNO_PORTABLE)
  add_link_options(-static-libstdc++ -static-libgcc)
endif()
