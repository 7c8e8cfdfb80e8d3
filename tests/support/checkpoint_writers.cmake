# Writes files of small models for tests of readers; the fuzz targets make their seeds with it.
add_library(inferno_checkpoint_writers STATIC
  ${CMAKE_CURRENT_LIST_DIR}/gguf_writer.cpp
  ${CMAKE_CURRENT_LIST_DIR}/safetensors_writer.cpp)
target_include_directories(inferno_checkpoint_writers PUBLIC ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(inferno_checkpoint_writers PUBLIC inferno_fmt)
