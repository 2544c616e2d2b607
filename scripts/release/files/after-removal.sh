#!/bin/sh
# Debian: `remove`, then `purge`, which removes data; RPM: 0, which keeps data.
set -e
case "$1" in
  remove | 0)
    rm -rf /usr/lib/gpuwhisk /var/cache/gpuwhisk
    if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
    ;;
  purge) rm -rf /var/lib/gpuwhisk /etc/gpuwhisk ;;
esac
