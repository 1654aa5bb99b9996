#!/usr/bin/env bash
# From a bare Debian 12 machine to a network trained on four MPI ranks: installs, builds, converts the data, trains.
# Safe to run again: each step does only what is still to do, and the last one trains anew.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/steps.sh
. scripts/steps.sh
# shellcheck source=scripts/mpi_environment.sh
. scripts/mpi_environment.sh

readonly binary=build/release/bin/millrace
readonly data=data/fashion-mnist.h5
readonly experiment=experiments/quickstart.yaml
readonly ranks=4

build() {
  # Only the product: its tests are test.sh's, and building them here would double the wait. An existing build folder
  # keeps its setting, so that running this after test.sh compiles nothing twice.
  local tests=OFF
  [ -f build/release/CMakeCache.txt ] && tests=$(sed -n 's/^MILLRACE_BUILD_TESTS:BOOL=//p' build/release/CMakeCache.txt)
  cmake --preset release -DMILLRACE_BUILD_TESTS="${tests:-OFF}" --log-level=WARNING &&
    cmake --build build/release --target millrace --parallel "$(nproc)"
}

convert() {
  if [ -f "$data" ]; then
    echo "$data is there already"
    return
  fi
  # Written beside its place and moved when whole: an interrupted conversion leaves nothing that looks finished.
  rm -f "$data.part.h5" && "$binary" data /usr/share/datasets/fashion-mnist -o "$data.part.h5" && mv "$data.part.h5" "$data"
}

train() {
  mpirun --bind-to none -n "$ranks" "$binary" run "$experiment" --overwrite
}

step "1/4 packages" scripts/dependencies.sh
step "2/4 build" build
step "3/4 data: Fashion-MNIST, 70,000 images" convert
step "4/4 train $experiment on $ranks ranks" train

name=$(sed -n 's/^name:[[:space:]]*\([^[:space:]#]*\).*/\1/p' "$experiment")
cat <<END

Done in $SECONDS s. Results: results/$name.h5 (h5dump -n results/$name.h5 lists what is in it).
Next: . scripts/mpi_environment.sh; mpirun -n 4 $binary run YOUR.yaml; $binary --help; docs/README.md.
END
