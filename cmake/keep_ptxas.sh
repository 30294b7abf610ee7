#!/bin/sh
# keep_ptxas.sh COMPILER ARGUMENT…: compiles, and keeps what ptxas says of registers, spills and
# shared memory as OBJECT.ptxas, out of the build's output. What else is said is passed on, numbered
# advice of ptxas included.
object= previous=
for argument; do
  [ "$previous" = -o ] && object=$argument
  previous=$argument
done
case $object in
  *.o) ;;
  *) exec "$@" ;;
esac
"$@" 2>"$object.said"
status=$?
report='^ptxas info|bytes stack frame'
grep -E "$report" "$object.said" >"$object.ptxas"
grep -v -E "$report" "$object.said" >&2
grep -E '\(C[0-9]+\)' "$object.ptxas" >&2
rm -f "$object.said"
exit $status
