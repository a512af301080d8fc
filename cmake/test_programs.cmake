# SPDX-License-Identifier: Apache-2.0
# Programs that tests of Python start, in any build, by name only (tools/run_tests.py): what the house needs is built once.
function(tn_test_program name source)
  add_executable(${name} EXCLUDE_FROM_ALL tests/${source})
  target_link_libraries(${name} PRIVATE ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()

# The reader against real pickles (tests/snapshot), and what puts a page and its data together (tests/page).
tn_test_program(snapshot_dump snapshot/dump.c tn_trace tn_pickle tn_base)
tn_test_program(snapshot_moment snapshot/moment.c tn_analyze)
tn_test_program(page_build page/build.c tn_report)
