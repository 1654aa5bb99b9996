# What both templates do, in the batch shell: train, make a checkpoint before the time limit, go on when requeued.
# Slurm sends USR1 to this shell before the limit (--signal); SIGTERM to the ranks makes them write a checkpoint at the end of
# their iteration and leave with 143, and the job is then put back into the queue. scancel alone does not requeue.
export OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"
export OMPI_MCA_mpi_yield_when_idle=1 # srun, unlike mpirun, does not see to it where ranks share cores

again=()
if [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then
  again=(--overwrite-lock) # that of the node on which this job ran before
fi

at_limit=0
trap 'at_limit=1; scancel --signal=TERM "$SLURM_JOB_ID"' USR1

srun --mpi=pmix --kill-on-bad-exit=1 "${bind[@]}" "$millrace" run "$@" --resume "${again[@]}" &
step=$!
code=0
wait "$step" || code=$?
while kill -0 "$step" 2>/dev/null; do # a signal ends the wait, not the step
  code=0
  wait "$step" || code=$?
done
if [ "$at_limit" -eq 1 ] && [ "$code" -eq 143 ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
