# attnbench_settings: the include root, the warnings and the sanitizers of every target of ours.
add_library(attnbench_settings INTERFACE)
target_include_directories(attnbench_settings INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(attnbench_settings INTERFACE
                       $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra>)
# What one file has at its top is not what a function of the file after it hides.
set(united $<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>)
target_compile_options(attnbench_settings INTERFACE
                       "$<$<COMPILE_LANGUAGE:CXX>:$<IF:${united},-Wshadow=local,-Wshadow>>")
if(NOT ATTNBENCH_SANITIZE)  # instrumented code brings GCC's own false alarms
  target_compile_options(attnbench_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms where strings are joined or compared (GCC's PR 105329 and 105651), which come and
  # go with the length of a path.
  target_compile_options(attnbench_settings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread>)
endif()
if(ATTNBENCH_SANITIZE)
  target_compile_options(attnbench_settings INTERFACE -fsanitize=${ATTNBENCH_SANITIZE}
                                                      -fno-omit-frame-pointer)
  target_link_options(attnbench_settings INTERFACE -fsanitize=${ATTNBENCH_SANITIZE})
  # A check of every reference doubles the time that code full of templates takes to build, and a
  # null one ends in a fault that the address sanitizer reports anyway.
  target_compile_options(attnbench_settings INTERFACE -fno-sanitize=null,alignment,vptr,object-size)
  # Code full of templates takes half of the time to compile unoptimised; loops of kernels would run
  # for long.
  set(ATTNBENCH_SANITIZED_LOOPS -O1)
endif()

# ccache reads a precompiled header's content only when told that this is safe.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()

# The compiler's ABI as the plugin stamp names it.
set(ATTNBENCH_COMPILER_ABI "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} C++20")

# attnbench_compile_lightly(TARGET): -O1 where nothing is timed or repeated often: it takes a fourth to
# a third less time to compile than -O2.
function(attnbench_compile_lightly target)
  set_target_properties(${target} PROPERTIES attnbench_light ON)
  target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
endfunction()

# attnbench_reuse_header(TARGET FROM): TARGET is compiled with the precompiled header of the library
# FROM. A program is compiled as position-independent as a library, and as lightly: GCC crashes over a
# header of another level.
function(attnbench_reuse_header target from)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  target_precompile_headers(${target} REUSE_FROM ${from})
  get_target_property(light ${from} attnbench_light)
  if(light)
    attnbench_compile_lightly(${target})
  endif()
endfunction()

# attnbench_unite(TARGET): with ATTNBENCH_UNITY its files are compiled eight at a time, since an empty
# file with LibTorch's headers costs 2.8 CPU seconds, and one of tests what it repeats of Catch's and
# JSON's templates. Files of one target must not define the same name
# in an anonymous namespace.
function(attnbench_unite target)
  if(ATTNBENCH_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()
