# inferno_embed(OUT DIRECTORY FUNCTION inferno::builtin_files HEADER catalogue/builtin_model.h [FILES FILE...]): writes OUT, a
# source file that holds every file of DIRECTORY, and FILES, and defines FUNCTION, which HEADER declares. The assembler copies
# the bytes, so that twelve megabytes cost neither compile time nor start-up time: the system loads only the pages that are read.
function(inferno_embed out directory)
  cmake_parse_arguments(ARG "" "FUNCTION;HEADER" "FILES" ${ARGN})
  string(REGEX MATCH "^(.*)::([a-z_]+)$" matched ${ARG_FUNCTION})
  set(namespace ${CMAKE_MATCH_1})
  set(function ${CMAKE_MATCH_2})
  set(header ${ARG_HEADER})
  file(GLOB files CONFIGURE_DEPENDS LIST_DIRECTORIES false ${directory}/*)
  list(APPEND files ${ARG_FILES})
  set(blobs "")
  set(symbols "")
  set(rows "")
  set(index 0)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    if(name STREQUAL "README.md")
      continue()
    endif()
    set(symbol inferno_${function}_${index})
    string(APPEND blobs "  .balign 64\n  .globl ${symbol}\n  .hidden ${symbol}\n${symbol}:\n"
           "  .incbin \"${file}\"\n  .globl ${symbol}_end\n  .hidden ${symbol}_end\n${symbol}_end:\n")
    string(APPEND symbols "extern const char ${symbol}[], ${symbol}_end[];\n")
    string(APPEND rows "    {\"${name}\", {${symbol}, ${symbol}_end}},\n")
    math(EXPR index "${index} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT [[
// Written by cmake/embed.cmake.
#include "@header@"

asm(R"asm(
  .section .rodata
@blobs@
  .byte 0
  .text
)asm");

extern "C" {
@symbols@}

namespace @namespace@ {

std::span<const EmbeddedFile> @function@() {
  static const EmbeddedFile files[] = {
@rows@  };
  return files;
}

}  // namespace @namespace@
]])
  set_source_files_properties(${out} PROPERTIES OBJECT_DEPENDS "${files}")
endfunction()
