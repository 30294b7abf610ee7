# The interface for plugins: ATTNBENCH_INTERFACE_HEADERS are installed, and ATTNBENCH_INTERFACE, part of
# the stamp, is a hash of those headers whose classes plugins and attnbench exchange.
set(ATTNBENCH_CROSSING_HEADERS
    core/errors.hpp attention/mechanism.hpp core/claims.hpp core/option.hpp core/process_rank.hpp
    attention/plugin/plugin.hpp
    attention/plugin/plugin_stamp.hpp core/problem.hpp attention/registry.hpp
    attention/reference/reference.hpp tasks/plugin.hpp tasks/task.hpp)
set(ATTNBENCH_INTERFACE_HEADERS
    ${ATTNBENCH_CROSSING_HEADERS} attention/conformance/conformance.hpp
    core/tolerance.hpp attention/entry_parts.hpp attention/kernels/team.hpp
    attention/torch/draw.hpp attention/torch/execution.hpp attention/torch/torch.hpp)
set(interface_text "")
foreach(header IN LISTS ATTNBENCH_CROSSING_HEADERS)
  file(READ ${PROJECT_SOURCE_DIR}/${header} header_text)
  string(APPEND interface_text "${header}\n${header_text}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
endforeach()
string(SHA256 ATTNBENCH_INTERFACE "${interface_text}")
string(SUBSTRING ${ATTNBENCH_INTERFACE} 0 16 ATTNBENCH_INTERFACE)
