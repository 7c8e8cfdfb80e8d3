# Read by CPack once for each generator: a .deb installs below /usr, a tarball has bin/, lib/ and share/ at its top.
if(CPACK_GENERATOR STREQUAL DEB)
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
endif()
# libinferno is not part of the tarball.
if(CPACK_GENERATOR STREQUAL "TXZ")
  set(CPACK_COMPONENTS_ALL inferno balancer)
  set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
