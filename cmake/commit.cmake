# cmake -DSOURCES=FOLDER -DFILE=FILE -P commit.cmake: writes the commit of the sources into FILE, with "+"
# where they are changed; removes it where they are no checkout, though a folder above may be one of
# something else. Runs at every build.
set(commit)
find_program(git NAMES git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCES} rev-parse --show-prefix
                  OUTPUT_VARIABLE below ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT below)
    execute_process(COMMAND ${git} -C ${SOURCES} rev-parse --verify --quiet HEAD
                    OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  execute_process(COMMAND ${git} -C ${SOURCES} status --porcelain --untracked-files=no
                  OUTPUT_VARIABLE changes ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT commit)
  file(REMOVE ${FILE})
elseif(changes)
  file(CONFIGURE OUTPUT ${FILE} CONTENT "${commit}+\n")
else()
  file(CONFIGURE OUTPUT ${FILE} CONTENT "${commit}\n")
endif()
