#!/bin/sh
# The README's gallery: runs every suite in its quick profile, mqar_smoke in full, and keeps the
# pictures that it shows.
#
#   reports/gallery.sh [SUITE…]     all of them (about half an hour), or those that are named
#
# ATTNBENCH names another program than the launcher, RUNS another folder than build/gallery.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
program=${ATTNBENCH:-$root/attnbench}
runs=${RUNS:-$root/build/gallery}
pictures=$root/reports/pictures

# suite, figure of its report, picture
gallery='
quickstart                  forward_time         quickstart_time
latte_v1_table_1            in_T_slopes          latte_v1_table_1_time
latte_v1_table_1            in_T_memory_slopes   latte_v1_table_1_memory
latte_v1_figure_2           kernel_time          latte_v1_figure_2
latte_v1_figure_4           kernel_time          latte_v1_figure_4
latte_v2_figure_7           400M_time            latte_v2_figure_7
linear_transformer_figure_1 kernel_time          linear_transformer_figure_1_time
linear_transformer_figure_1 kernel_peak_memory   linear_transformer_figure_1_memory
lavo_table_2_cost           kernel_speedup       lavo_table_2_speedup
lavo_table_2_cost           kernel_peak_memory   lavo_table_2_memory
lavo_table_10               decode_generation_speedup lavo_table_10
decode                      decode_step_time     decode_step_time
crossover_map               crossover_crossover  crossover_map
equal_state                 recall_accuracy_over_state   equal_state
equal_state                 recall_accuracy_over_time    equal_state_time
mqar_smoke                  mqar_accuracy_over_state     mqar_smoke_state
mqar_smoke                  mqar_accuracy_by_look_back   mqar_smoke_look_back
'

wanted() {
  case " $suites " in *" $1 "*) return 0 ;; *) return 1 ;; esac
}

suites=${*:-$(printf '%s\n' "$gallery" | awk 'NF { print $1 }' | sort -u | tr '\n' ' ')}
for suite in $suites; do
  [ -e "$root/suites/$suite.json" ] || { echo "gallery: there is no suites/$suite.json" >&2; exit 2; }
  rm -rf "${runs:?}/$suite"
  profile='--profile quick'
  [ "$suite" = mqar_smoke ] && profile=  # what it shows comes from training to the end
  # shellcheck disable=SC2086
  "$program" run "$root/suites/$suite.json" $profile --out "$runs/$suite" --progress plain
done
mkdir -p "$pictures"
printf '%s\n' "$gallery" | while read -r suite figure picture; do
  [ -n "$suite" ] && wanted "$suite" || continue
  cp "$runs/$suite/figures/$figure.svg" "$pictures/$picture.svg"
done
