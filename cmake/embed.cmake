# inferno_embed(OUT DIRECTORY): writes OUT, a source file that holds every file of DIRECTORY and defines
# inferno::builtin_files(). The assembler copies the bytes, so that twelve megabytes cost neither compile time
# nor start-up time: the system loads only the pages that are read.
function(inferno_embed out directory)
  file(GLOB files CONFIGURE_DEPENDS LIST_DIRECTORIES false ${directory}/*)
  set(blobs "")
  set(symbols "")
  set(rows "")
  set(index 0)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    if(name STREQUAL "README.md")
      continue()
    endif()
    set(symbol inferno_builtin_${index})
    string(APPEND blobs "  .balign 64\n  .globl ${symbol}\n  .hidden ${symbol}\n${symbol}:\n"
           "  .incbin \"${file}\"\n  .globl ${symbol}_end\n  .hidden ${symbol}_end\n${symbol}_end:\n")
    string(APPEND symbols "extern const char ${symbol}[], ${symbol}_end[];\n")
    string(APPEND rows "    {\"${name}\", {${symbol}, ${symbol}_end}},\n")
    math(EXPR index "${index} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT [[
// Written by cmake/embed.cmake.
#include "catalogue/builtin_model.h"

asm(R"asm(
  .section .rodata
@blobs@
  .byte 0
  .text
)asm");

extern "C" {
@symbols@}

namespace inferno {

std::span<const EmbeddedFile> builtin_files() {
  static const EmbeddedFile files[] = {
@rows@  };
  return files;
}

}  // namespace inferno
]])
  set_source_files_properties(${out} PROPERTIES OBJECT_DEPENDS "${files}")
endfunction()
