# Memory against throughput, from the CSV of a sweep: gnuplot -e "cells='results/partitioners.csv'" docs/plots/memory.gp
# Writes memory.svg.
set datafile separator ","
set terminal svg size 800,500
set output "memory.svg"
set xlabel "peak memory of the fullest rank in GiB"
set ylabel "samples/s"
set logscale xy
plot cells using (column("peak_memory_bytes")/2**30):(column("throughput_samples_per_s")) with points pt 7 ps 0.5 notitle
