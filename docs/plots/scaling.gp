# Throughput against devices, from the CSV of a sweep: gnuplot -e "cells='results/hippie_scaling.csv'" docs/plots/scaling.gp
# Writes scaling.svg.
set datafile separator ","
set terminal svg size 800,500
set output "scaling.svg"
set xlabel "devices"
set ylabel "samples/s"
set logscale xy 2
set key top left
models = system("tail -n +2 '".cells."' | cut -d, -f4 | sort -u")
plot for [m in models] cells using (column("devices")):(strcol(4) eq m ? column("throughput_samples_per_s") : NaN) \
  with linespoints title m
