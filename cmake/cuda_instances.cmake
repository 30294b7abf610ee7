# The CUDA kernels of each type: a generated file for each, so that they compile side by side.
# attnbench_cuda_instances(VAR): writes them below the build folder and puts their paths into VAR.
function(attnbench_cuda_instances variable)
  set(files "")
  # instance(NAME HEADER MACRO…)
  macro(instance name header)
    string(REPLACE ";" "\n" lines "${ARGN}")
    set(file ${PROJECT_BINARY_DIR}/generated/cuda/${name}.cu)
    file(CONFIGURE OUTPUT ${file} @ONLY CONTENT
"#include \"attention/kernels/cuda/${header}\"

namespace attnbench::kernels::cuda {
${lines}
}  // namespace attnbench::kernels::cuda
")
    list(APPEND files ${file})
  endmacro()
  foreach(type BFloat16 Half float)
    instance(lavo_${type} lavo/launch.cuh "ATTNBENCH_LAVO(${type})")
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()
