#!/bin/sh
# A stand-in for nvidia-smi with the calls that the playbooks make, for one A100. A folder holds its settings.
state=/var/lib/nvidia-smi-test
mkdir -p $state
mode() { cat $state/mig 2> /dev/null || echo Disabled; }
slices() { cat $state/slices 2> /dev/null; }
case "$*" in
  --query-gpu=index,uuid,driver_version,persistence_mode,mig.mode.current\ *)
    echo "0, GPU-11111111-2222-3333-4444-555555555555, 550.54.15, $(cat $state/pm 2> /dev/null || echo Disabled), $(mode)" ;;
  -L)
    echo "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-11111111-2222-3333-4444-555555555555)"
    slices | while read -r slice; do echo "  MIG $slice     Device  0: (UUID: MIG-$slice)"; done ;;
  "-i 0 -pm 1") echo Enabled > $state/pm ;;
  "-i 0 -mig 1") echo Enabled > $state/mig ;;
  "-i 0 -mig 0") echo Disabled > $state/mig ;;
  "mig -i 0 -dci") ;;
  "mig -i 0 -dgi") : > $state/slices ;;
  "mig -i 0 -cgi "*" -C") echo "$5" | tr , '\n' > $state/slices ;;
  *) echo "unknown: $*" >&2; exit 2 ;;
esac
