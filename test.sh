#!/usr/bin/env bash
# Builds and tests everything: release and ASan+UBSan; with --full also ThreadSanitizer, clang and the long tests.
# One ctest runs the tests of all builds, and its summary is the last thing printed.
# usage: ./test.sh [--full]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/steps.sh
. scripts/steps.sh

builds=(debug release)
# Compiling tests is most of the time: without --full the release build has those in which optimised code is at stake, and
# the debug build has all.
release_tests='kernels;runtime;cli;mpi'
needs=(--tests)
filter=(--label-exclude '^full$')
case ${1-} in
  '') ;;
  --full)
    builds+=(tsan clang)
    release_tests=all
    needs+=(--full)
    filter=()
    ;;
  *)
    echo "test.sh: unknown argument '$1'; valid: --full" >&2
    exit 2
    ;;
esac
jobs=$(nproc)
[ "$jobs" -ge 2 ] || jobs=2

build() {
  local folders=all
  [ "$1" != release ] || folders=$release_tests
  cmake --preset "$1" -DMILLRACE_BUILD_TESTS=ON "-DMILLRACE_TEST_FOLDERS=$folders" --log-level=WARNING &&
    cmake --build "build/$1" --parallel "$jobs"
}

# not_run WHY LABEL: says why the tests with this label do not run here, and which they are.
not_run() {
  local names
  names=$(ctest --test-dir build/all -N -L "^$2\$" | sed -n 's/^ *Test *#[0-9]*: /  /p')
  printf '%s\n%s\n' "$1" "${names:-  (there are none yet)}"
}

step "packages" scripts/dependencies.sh "${needs[@]}"
for preset in "${builds[@]}"; do
  step "build $preset" build "$preset"
done

# A folder for ctest that holds the tests of all builds; those of a sanitizer build carry its name (base_test@address).
mkdir -p build/all
printf 'subdirs("../%s")\n' "${builds[@]}" >build/all/CTestTestfile.cmake

printf '\n==> not run here, and why\n'
if [ ${#filter[@]} -gt 0 ]; then
  not_run "too long for every change; ./test.sh --full runs them, and the ThreadSanitizer and clang builds:" full
fi
if ! ls /dev/nvidia[0-9]* >/dev/null 2>&1; then
  not_run "no NVIDIA GPU on this machine, so these skip themselves:" gpu
fi

printf '\n==> tests (builds and packages took %d s)\n' "$SECONDS"
exec ctest --test-dir build/all --parallel "$jobs" --output-on-failure --no-tests=error ${filter[@]+"${filter[@]}"}
