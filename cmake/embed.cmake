# attnbench_embed(OUT NAMESPACE SYMBOL FILE …): a source file that holds the text of each FILE as
# `const char* const SYMBOL` in NAMESPACE, so that the program needs no files beside it.
function(attnbench_embed out namespace)
  set(definitions "")
  set(rest ${ARGN})
  while(rest)
    list(POP_FRONT rest symbol file)
    file(READ ${file} text)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    string(APPEND definitions
           "extern const char* const ${symbol};\n"
           "const char* const ${symbol} = R\"EMBEDDED(${text})EMBEDDED\";\n")
  endwhile()
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT [[
// Generated from files of the tree by cmake/embed.cmake.
namespace @namespace@ {
@definitions@}  // namespace @namespace@
]])
endfunction()
