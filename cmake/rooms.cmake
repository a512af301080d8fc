# SPDX-License-Identifier: Apache-2.0
# One library a room. Each room's file list stands in the room itself.
foreach(room base gpu device report run preload vgpu)
  if(EXISTS ${CMAKE_SOURCE_DIR}/src/${room}/CMakeLists.txt)
    add_subdirectory(src/${room})
  endif()
endforeach()
if(EXISTS ${CMAKE_SOURCE_DIR}/cli/CMakeLists.txt)
  add_subdirectory(cli)
endif()
if(TONNAGE_TESTS)
  enable_testing()
  add_subdirectory(tests)
endif()
