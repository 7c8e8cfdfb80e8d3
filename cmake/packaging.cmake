# Installation and packages: `cmake --install`, and `cpack` for .deb and .tar.xz (packaging/release makes everything that is
# published). Components: inferno is the program with its service, balancer what a machine in front of several needs, library
# and dev (src/library/install.cmake) are libinferno.
include(GNUInstallDirs)
# The program and the library are all that is installed: tests and benchmarks need not be built for it.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(deploy ${CMAKE_SOURCE_DIR}/deploy)
set(debian ${CMAKE_SOURCE_DIR}/packaging/debian)
set(made ${CMAKE_BINARY_DIR}/packaging)  # by packaging/generate
set(doc ${CMAKE_INSTALL_DATADIR}/doc)
set(units lib/systemd/system)
get_target_property(abi inferno_shared SOVERSION)

# What Debian expects of each package. CPack installs components in the order of their names, so each makes what it needs.
function(install_debian_documents package component)
  install(CODE "execute_process(COMMAND ${CMAKE_SOURCE_DIR}/packaging/changelog ${PROJECT_VERSION} ${CMAKE_BINARY_DIR}/changelog.gz
                                COMMAND_ERROR_IS_FATAL ANY)" COMPONENT ${component})
  install(FILES ${debian}/copyright ${CMAKE_BINARY_DIR}/changelog.gz DESTINATION ${doc}/${package} COMPONENT ${component})
endfunction()
install_debian_documents(inferno inferno)
install_debian_documents(inferno-balancer balancer)
install_debian_documents(libinferno${abi} library)
install_debian_documents(libinferno-dev dev)

install(CODE "execute_process(COMMAND ${CMAKE_SOURCE_DIR}/packaging/generate ${CMAKE_BINARY_DIR}/inferno ${PROJECT_VERSION} ${made}
                              COMMAND_ERROR_IS_FATAL ANY)" COMPONENT inferno)
install(TARGETS inferno RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT inferno)
install(DIRECTORY ${made}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT inferno)
install(FILES ${made}/completions/inferno DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT inferno)
install(FILES ${made}/completions/_inferno DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT inferno)
install(FILES ${made}/completions/inferno.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT inferno)
install(FILES ${deploy}/systemd/inferno@.service ${deploy}/systemd/inferno@.socket ${deploy}/systemd/inferno-member@.service
        DESTINATION ${units} COMPONENT inferno)
install(FILES ${deploy}/systemd/inferno.sysusers DESTINATION lib/sysusers.d RENAME inferno.conf COMPONENT inferno)
install(FILES ${deploy}/systemd/inferno.tmpfiles DESTINATION lib/tmpfiles.d RENAME inferno.conf COMPONENT inferno)
install(FILES ${made}/sbom.cdx.json DESTINATION ${doc}/inferno COMPONENT inferno)
install(FILES ${deploy}/serf.json ${deploy}/nginx.conf ${deploy}/alerts.yml ${deploy}/grafana-dashboard.json
        DESTINATION ${doc}/inferno/examples COMPONENT inferno)

install(PROGRAMS ${deploy}/inferno-members DESTINATION lib/inferno COMPONENT balancer)
install(FILES ${deploy}/systemd/inferno-balancer.service ${deploy}/systemd/inferno-balancer-members.service
        DESTINATION ${units} COMPONENT balancer)
install(FILES ${deploy}/haproxy.cfg DESTINATION ${CMAKE_INSTALL_DATADIR}/inferno COMPONENT balancer)

# The program prints the licences of what is linked into it; a library cannot.
set(linked fmt nlohmann-json rapidjson pcre2 utf8proc libstdc++)
if(INFERNO_HAS_CUDA)
  list(APPEND linked cuda)
endif()
list(TRANSFORM linked REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/packaging/licenses/\\1.txt")
install(FILES ${linked} DESTINATION ${doc}/libinferno${abi}/third-party COMPONENT library)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples DESTINATION ${doc}/libinferno-dev COMPONENT dev)

set(INFERNO_MAINTAINER "Inferno developers <inferno@example.org>" CACHE STRING "Whom packages name as their maintainer")
set(CPACK_GENERATOR DEB TXZ)
set(CPACK_PACKAGE_NAME inferno)
set(CPACK_PACKAGE_VENDOR Inferno)
set(CPACK_PACKAGE_CONTACT ${INFERNO_MAINTAINER})
set(CPACK_PACKAGE_FILE_NAME inferno-${PROJECT_VERSION}-linux-x86_64)
set(CPACK_COMPONENTS_ALL inferno balancer library dev)
set(CPACK_STRIP_FILES ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/cmake/packaging_deb.cmake)
set(CPACK_THREADS 1)  # the number of threads would show in the result

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
set(CPACK_DEBIAN_INFERNO_PACKAGE_NAME inferno)
set(CPACK_DEBIAN_INFERNO_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_INFERNO_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_INFERNO_PACKAGE_RECOMMENDS "libcurl4, ca-certificates")
set(CPACK_DEBIAN_INFERNO_PACKAGE_SUGGESTS "serf, inferno-balancer")
set(CPACK_DEBIAN_INFERNO_PACKAGE_CONTROL_EXTRA "${debian}/postinst;${debian}/prerm;${debian}/postrm")
set(CPACK_DEBIAN_INFERNO_DESCRIPTION "run open language models on this machine
Inferno answers with open language models (safetensors, GGUF) on the CPU or an
NVIDIA GPU, in the terminal and as a server with the APIs of OpenAI and
Anthropic. A small model is built in.")
set(CPACK_DEBIAN_BALANCER_PACKAGE_NAME inferno-balancer)
set(CPACK_DEBIAN_BALANCER_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_BALANCER_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_BALANCER_PACKAGE_DEPENDS "haproxy (>= 2.6), serf, python3")
set(CPACK_DEBIAN_BALANCER_DESCRIPTION "one address for several Inferno servers
HAProxy with health checks, retries and prefix affinity in front of several
machines that run Inferno. Serf tells it which machines there are.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libinferno${abi})
set(CPACK_DEBIAN_LIBRARY_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
# CPack makes no trigger for ldconfig, which Debian demands.
file(WRITE ${CMAKE_BINARY_DIR}/library-control/shlibs "libinferno ${abi} libinferno${abi} (>= ${PROJECT_VERSION})\n")
file(WRITE ${CMAKE_BINARY_DIR}/library-control/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${CMAKE_BINARY_DIR}/library-control/shlibs;${CMAKE_BINARY_DIR}/library-control/triggers")
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "run open language models inside a program (library)
libinferno is the engine of the inferno command with a C interface. This
package has the shared library.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libinferno-dev)
set(CPACK_DEBIAN_DEV_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
# The other two are what a static program is linked with.
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libinferno${abi} (= ${PROJECT_VERSION}), libpcre2-dev, libutf8proc-dev")
set(CPACK_DEBIAN_DEV_DESCRIPTION "run open language models inside a program (development files)
libinferno is the engine of the inferno command with a C interface. This
package has the headers for C and C++, the static library, files for
pkg-config and CMake, examples in six languages and a small model to try them
with.")
# dpkg wants these names, so each component has a folder of its own.
foreach(script postinst prerm postrm)
  configure_file(${debian}/balancer.${script} ${CMAKE_BINARY_DIR}/balancer-scripts/${script} COPYONLY)
  list(APPEND CPACK_DEBIAN_BALANCER_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/balancer-scripts/${script})
endforeach()
include(CPack)
