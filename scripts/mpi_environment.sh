# shellcheck shell=bash
# Sourced before mpirun on one machine: lets Open MPI run as root and with more ranks than cores. The tests read the
# same lines (cmake/MillraceTest.cmake), so each line is exactly "export NAME=VALUE".

# Without these two Open MPI refuses to start as root (containers, build machines).
export OMPI_ALLOW_RUN_AS_ROOT=1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# More ranks than cores: allowed, and a waiting rank gives its core to one that computes (4 to 70 times faster).
export OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1
# Shared memory and TCP only: no search for fabrics that this machine does not have.
export OMPI_MCA_pml=ob1
export OMPI_MCA_btl=self,vader,tcp
export OMPI_MCA_mtl=^ofi,psm,psm2
# Containers often forbid reading another process's memory.
export OMPI_MCA_btl_vader_single_copy_mechanism=none
