# The bridge to Python: libattnbench-python.so, which a child of the worker loads where a mechanism is
# written in Python. It needs the Python that LibTorch belongs to, its headers and library, PyTorch's
# libtorch_python and pybind11. Without them ATTNBENCH_PYTHON_REFUSAL says what is missing, and
# everything else is built.

set(ATTNBENCH_PYTHON_REFUSAL "")
set(attnbench_python_hints "")

if(ATTNBENCH_WHEEL)
  set(attnbench_python_program ${Python_EXECUTABLE})
  set(attnbench_python_hints PATHS ${ATTNBENCH_TORCH}/lib NO_DEFAULT_PATH)
elseif(ATTNBENCH_TORCH)
  # PREFIX/lib/python3.X/site-packages/torch
  get_filename_component(attnbench_python_prefix ${ATTNBENCH_TORCH}/../../../.. ABSOLUTE)
  set(attnbench_python_program ${attnbench_python_prefix}/bin/python3)
  set(attnbench_python_hints PATHS ${ATTNBENCH_TORCH}/lib NO_DEFAULT_PATH)
else()
  set(attnbench_python_program /usr/bin/python3)  # LibTorch is the system's, too
endif()

if(NOT EXISTS ${attnbench_python_program})
  set(ATTNBENCH_PYTHON_REFUSAL "there is no ${attnbench_python_program}")
else()
  execute_process(
    COMMAND ${attnbench_python_program} -c
      "import sys, sysconfig, importlib.util as u; f = u.find_spec('torch'); v = sysconfig.get_config_var
print(sys.version.split()[0]); print(sysconfig.get_path('include')); print(v('LIBDIR') or ''); print('python' + v('LDVERSION'))
print(list(f.submodule_search_locations)[0] if f and f.submodule_search_locations else '')"
    OUTPUT_VARIABLE facts ERROR_QUIET RESULT_VARIABLE status)
  string(REPLACE "\n" ";" facts "${facts}")
  list(LENGTH facts count)
  if(NOT status EQUAL 0 OR count LESS 5)
    set(ATTNBENCH_PYTHON_REFUSAL "${attnbench_python_program} does not start")
  endif()
endif()

if(NOT ATTNBENCH_PYTHON_REFUSAL)
  list(GET facts 0 attnbench_python_version)
  list(GET facts 1 python_include)
  list(GET facts 2 python_libraries)
  list(GET facts 3 python_name)
  list(GET facts 4 python_torch)
  if(CMAKE_CROSSCOMPILING)  # the same release of Debian has the same Python there
    string(PREPEND python_include ${CMAKE_SYSROOT})
    string(PREPEND python_torch ${CMAKE_SYSROOT})
  endif()
  find_library(attnbench_libpython ${python_name} HINTS ${python_libraries})
  find_library(attnbench_torch_python torch_python ${attnbench_python_hints})
  find_path(attnbench_pybind11 pybind11/pybind11.h HINTS ${ATTNBENCH_TORCH}/include)
  if(NOT python_torch)
    set(ATTNBENCH_PYTHON_REFUSAL "${attnbench_python_program} has no PyTorch (python3-torch)")
  elseif(NOT EXISTS ${python_include}/Python.h OR NOT (attnbench_libpython OR ATTNBENCH_WHEEL))
    set(ATTNBENCH_PYTHON_REFUSAL "the headers or the library of Python ${attnbench_python_version} are missing (libpython3-dev)")
  elseif(NOT attnbench_torch_python)
    set(ATTNBENCH_PYTHON_REFUSAL "PyTorch's libtorch_python is missing (python3-torch)")
  elseif(NOT attnbench_pybind11)
    set(ATTNBENCH_PYTHON_REFUSAL "the headers of pybind11 are missing (pybind11-dev)")
  endif()
endif()

set(bridge_sources attention/python/bridge/interpreter.cpp attention/python/bridge/bridge.cpp)
if(ATTNBENCH_PYTHON_REFUSAL)
  message(STATUS "Mechanisms in Python: no, since ${ATTNBENCH_PYTHON_REFUSAL}")
else()
  # As its own text: version.py has it in quotes.
  file(STRINGS ${python_torch}/version.py torch_line REGEX "^__version__")
  string(REGEX REPLACE ".*['\"](.*)['\"].*" "\\1" python_torch_version "${torch_line}")
  attnbench_embed(${PROJECT_BINARY_DIR}/generated/python_glue.cpp attnbench::python
                  glue_text ${PROJECT_SOURCE_DIR}/attention/python/bridge/glue.py)
  add_library(attnbench_python MODULE ${bridge_sources} ${PROJECT_BINARY_DIR}/generated/python_glue.cpp)
  target_link_libraries(attnbench_python PRIVATE attnbench_attention ${attnbench_torch_python})
  if(NOT ATTNBENCH_WHEEL)  # there the Python that runs the worker has all of it
    target_link_libraries(attnbench_python PRIVATE ${attnbench_libpython})
  endif()
  target_include_directories(attnbench_python SYSTEM PRIVATE ${python_include} ${attnbench_pybind11})
  target_compile_definitions(attnbench_python PRIVATE
    ATTNBENCH_PYTHON_PROGRAM="${attnbench_python_program}"
    ATTNBENCH_PYTHON_VERSION="${attnbench_python_version}"
    ATTNBENCH_PYTHON_TORCH="${python_torch_version}")
  # pybind11 asks for hidden symbols; its entry point says that it is shown.
  set_target_properties(attnbench_python PROPERTIES OUTPUT_NAME attnbench-python PREFIX lib
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON UNITY_BUILD ON
    INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)
  target_link_options(attnbench_python PRIVATE -Wl,--allow-shlib-undefined)
  attnbench_compile_lightly(attnbench_python)
  if(NOT ATTNBENCH_WHEEL)
    install(TARGETS attnbench_python LIBRARY DESTINATION lib)
  endif()
endif()
set_property(SOURCE attention/python/bridge.cpp APPEND PROPERTY COMPILE_DEFINITIONS
             "ATTNBENCH_PYTHON_REFUSAL=\"${ATTNBENCH_PYTHON_REFUSAL}\"")
