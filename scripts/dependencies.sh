#!/usr/bin/env bash
# Installs the Debian packages that millrace needs and that are missing; touches nothing when all are there.
# usage: scripts/dependencies.sh [--tests] [--full]
set -euo pipefail

packages=(
  build-essential cmake ninja-build pkg-config ccache                     # build
  openmpi-bin libopenmpi-dev                                              # processes
  libdnnl-dev ocl-icd-opencl-dev                                          # kernels; oneDNN's CMake file asks for OpenCL
  libhdf5-dev hdf5-tools zlib1g-dev                                       # results and data
  libyaml-cpp-dev libcli11-dev libfmt-dev libspdlog-dev nlohmann-json3-dev  # text
  librandom123-dev libxxhash-dev                                          # random numbers, hashes
  libmetis-dev libscotch-dev                                              # graph partitioners to compare with
  dataset-fashion-mnist                                                   # the images of the quickstart
)
for argument in "$@"; do
  case $argument in
    --tests) packages+=(libgtest-dev libgmock-dev python3-h5py librsvg2-bin chromium python3-pandas slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge) ;;
    --full) packages+=(libgtest-dev libgmock-dev python3-h5py librsvg2-bin chromium python3-pandas slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge clang libomp-dev) ;;
    *)
      echo "dependencies.sh: unknown argument '$argument'; valid: --tests, --full" >&2
      exit 2
      ;;
  esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "dependencies.sh: this machine has no apt; install the counterparts of these Debian packages by hand:" >&2
  printf '  %s\n' "${packages[@]}" >&2
  echo "then build as CONTRIBUTING.md says: cmake --preset release && cmake --build --preset release" >&2
  exit 2
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "dependencies.sh: ${#missing[@]} packages are missing, and this is neither root nor is there sudo; run as root:" >&2
    echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 2
  fi
  as_root=(sudo)
fi

apt_get() {
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 -qq "$@"
}

echo "installing ${#missing[@]} packages: ${missing[*]}"
# The list on the machine may name versions that the mirror no longer has, so it is read afresh first.
apt_get update
apt_get install -y --no-install-recommends "${missing[@]}" >/dev/null
echo "installed"
