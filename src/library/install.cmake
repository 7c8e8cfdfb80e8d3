# What `cmake --install` copies: component `library` for programs that run, `dev` for those that are compiled.
include(CMakePackageConfigHelpers)

# What a static libinferno needs besides itself.
set(private_libraries -lpcre2-8 -lutf8proc -lstdc++ -lm -ldl -pthread)
if(INFERNO_HAS_CUDA)
  list(PREPEND private_libraries "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt")
endif()
list(JOIN private_libraries " " INFERNO_PRIVATE_LIBRARIES)
file(RELATIVE_PATH up_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" up_to_prefix "${up_to_prefix}")
configure_file(inferno.pc.in inferno.pc @ONLY)
configure_package_config_file(inferno-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/inferno-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/inferno PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_DATADIR)
# Before version 1.0 a minor version may raise the number of the interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/inferno-config-version.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS inferno_shared EXPORT inferno-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev)
install(EXPORT inferno-targets NAMESPACE inferno:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/inferno COMPONENT dev)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/inferno-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/inferno-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/inferno COMPONENT dev)
install(FILES ${CMAKE_BINARY_DIR}/libinferno.a DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/inferno.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
# To try the examples: the library itself is without it.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/models/builtin DESTINATION ${CMAKE_INSTALL_DATADIR}/inferno/models COMPONENT dev)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/inferno DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
