#!/usr/bin/env bash
# A Slurm of four nodes on this host, for tests: slurm_cluster.sh start FOLDER | stop FOLDER | fail FOLDER NODE. Everything that it
# makes is in FOLDER, its own munge key too; nothing of the machine's own Slurm is touched. Needs root, for the host names of
# the nodes: Open MPI tells nodes apart by them.
set -euo pipefail
command=$1 folder=$2
export SLURM_CONF=$folder/slurm.conf

write_configuration() {
  local port=$((20000 + $$ % 20000)) # several at once on one host
  cat >"$folder/slurm.conf" <<TEXT
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=5
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
SlurmctldPort=$port
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmdSpoolDir=$folder/spool.%n
TmpFS=$folder/tmp.%n
StateSaveLocation=$folder/state
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.%n.log
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
InactiveLimit=0
KillWait=2
MaxArraySize=${MAX_ARRAY_SIZE:-1001}
JobRequeue=1
ReturnToService=2
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=fake[0-3] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 4))] CPUs=4 RealMemory=4000 Gres=gpu:2
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
TEXT
  echo "CgroupAutomount=no" >"$folder/cgroup.conf"
  # Two GPUs a node as far as Slurm can tell: it counts and hands out their files.
  mknod "$folder/gpu0" c 1 3 && mknod "$folder/gpu1" c 1 3
  echo "Name=gpu File=$folder/gpu[0-1]" >"$folder/gres.conf"
}

# Ends it all when the test that started it is gone, such as killed by its time limit.
watch_over() {
  local test=$PPID
  [ "$(cat "/proc/$test/comm")" != sh ] || test=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$test/status")
  (
    while kill -0 "$test" 2>/dev/null || kill -0 $$ 2>/dev/null; do sleep 1; done
    stop
  ) </dev/null >/dev/null 2>&1 &
}

start() {
  for program in munged slurmctld slurmd sbatch srun; do
    command -v $program >/dev/null || { echo "slurm_cluster.sh: no $program; scripts/dependencies.sh --tests installs it" >&2; exit 2; }
  done
  mkdir -p "$folder/state"
  chmod 755 "$folder"
  (umask 077 && dd if=/dev/urandom of="$folder/munge.key" bs=128 count=1 status=none)
  munged --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" --pid-file="$folder/munged.pid" \
    --log-file="$folder/munged.log" --seed-file="$folder/munged.seed" 2>/dev/null
  write_configuration
  watch_over
  slurmctld -f "$SLURM_CONF"
  for node in 0 1 2 3; do
    mkdir -p "$folder/spool.fake$node" "$folder/tmp.fake$node"
    unshare --uts sh -c "hostname fake$node; exec slurmd -f '$SLURM_CONF' -N fake$node"
  done
  for _ in $(seq 1 100); do
    [ "$(sinfo -h -N -o %T 2>/dev/null | grep -c '^idle')" -eq 4 ] && return
    sleep 0.1
  done
  echo "slurm_cluster.sh: the nodes did not become idle" >&2
  tail -n 5 "$folder"/*.log >&2
  exit 1
}

# All processes of a node: they share its host name's namespace. None where its daemon is gone, whatever has its number now.
processes_of() {
  local daemon name_space
  daemon=$(cat "$1" 2>/dev/null) || return 0
  grep -qsxz "SLURM_CONF=$SLURM_CONF" "/proc/$daemon/environ" || return 0
  name_space=$(stat -Lc %i "/proc/$daemon/ns/uts")
  [ "$name_space" != "$(stat -Lc %i /proc/self/ns/uts)" ] || return 0
  (stat -Lc '%i %n' /proc/[0-9]*/ns/uts 2>/dev/null || true) | sed -n "s|^$name_space /proc/\([0-9]*\)/.*|\1|p"
}

# They stand still and are gone: nothing reports an end.
fail() {
  local processes
  processes=$(processes_of "$folder/slurmd.$1.pid")
  kill -STOP $processes
  scontrol update nodename="$1" state=down reason=test
  kill -KILL $processes
}

stop() {
  local file
  for file in "$folder"/slurmd.*.pid; do
    kill -KILL $(processes_of "$file") 2>/dev/null || true
  done
  for file in "$folder/slurmctld.pid" "$folder/munged.pid"; do
    [ ! -f "$file" ] || kill "$(cat "$file")" 2>/dev/null || true
  done
}

case $command in
  start) start ;;
  fail) fail "$3" ;;
  stop) stop ;;
esac
