# What a plugin sees of attnbench: ATTNBENCH_INTERFACE_HEADERS, which are installed, and
# ATTNBENCH_INTERFACE, a hash of those whose classes cross between the two, for the stamp.
set(ATTNBENCH_CROSSING_HEADERS
    attention/errors.hpp attention/mechanism.hpp attention/options.hpp attention/plugin.hpp
    attention/plugin_stamp.hpp attention/problem.hpp attention/registry.hpp
    attention/reference/reference.hpp tasks/plugin.hpp tasks/task.hpp)
set(ATTNBENCH_INTERFACE_HEADERS
    ${ATTNBENCH_CROSSING_HEADERS} attention/conformance.hpp attention/cuda_stream.hpp
    attention/draw.hpp attention/entry_parts.hpp attention/kernels/team.hpp attention/team.hpp attention/tolerance.hpp
    attention/torch.hpp attention/torch_version.hpp)
set(interface_text "")
foreach(header IN LISTS ATTNBENCH_CROSSING_HEADERS)
  file(READ ${PROJECT_SOURCE_DIR}/${header} header_text)
  string(APPEND interface_text "${header}\n${header_text}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
endforeach()
string(SHA256 ATTNBENCH_INTERFACE "${interface_text}")
string(SUBSTRING ${ATTNBENCH_INTERFACE} 0 16 ATTNBENCH_INTERFACE)
