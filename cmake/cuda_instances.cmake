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
    # What launch.cuh and backward_launch.cuh of a family call in each other's files.
    set(pool_parts "")
    set(product_parts "")
    if(NOT type STREQUAL float)
      set(pool_parts "ATTNBENCH_RECURRENT_STATES(PoolFamily, ${type})")
      set(product_parts "ATTNBENCH_RECURRENT_BORDERS(ProductFamily, ${type})")
    endif()
    if(type STREQUAL BFloat16)
      list(APPEND pool_parts "ATTNBENCH_RECURRENT_BORDERS(PoolFamily, ${type})")
    endif()
    instance(recurrent_pool_${type} recurrent/launch.cuh
             "ATTNBENCH_RECURRENT_FORWARD(PoolFamily, ${type})" ${pool_parts})
    instance(recurrent_product_${type} recurrent/launch.cuh
             "ATTNBENCH_RECURRENT_FORWARD(ProductFamily, ${type})" ${product_parts})
    foreach(family Pool Product)
      instance(recurrent_${family}_backward_${type} recurrent/backward_launch.cuh
               "ATTNBENCH_RECURRENT_BACKWARD(${family}Family, ${type})")
    endforeach()
    instance(lavo_${type} lavo/launch.cuh "ATTNBENCH_LAVO(${type})")
  endforeach()
  instance(recurrent_decaying_product_backward_float recurrent/backward_launch.cuh
           "ATTNBENCH_RECURRENT_BACKWARD(DecayingProductFamily, float)")
  instance(recurrent_decaying_product_float recurrent/launch.cuh
           "ATTNBENCH_RECURRENT_FORWARD(DecayingProductFamily, float)")
  set(${variable} ${files} PARENT_SCOPE)
endfunction()
