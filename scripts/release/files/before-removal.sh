#!/bin/sh
# Debian: `remove`; RPM: 0. An upgrade leaves the service running.
set -e
case "$1" in
  remove | 0) ;;
  *) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
  systemctl stop gpuwhisk.service gpuwhisk.socket
  systemctl --quiet disable gpuwhisk.service gpuwhisk.socket
fi
