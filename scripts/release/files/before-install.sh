#!/bin/sh
# Debian: `install` or `upgrade OLD`. Refuses a release that does not fit on the disk beside the running one: dpkg would stop in the middle
# of it without a remedy. RPM looks by itself.
set -e
case "$1" in
  install | upgrade) ;;
  *) exit 0 ;;
esac
base=/usr/lib/gpuwhisk
[ -d $base ] || base=/usr/lib
size=$(sed -n 's/^Installed-Size: //p' "${0%/*}/control")
# A fifth more: files take whole blocks, and dpkg keeps lists.
need=$((size / 1024 * 6 / 5 + 1))
free=$(($(df --output=avail -k $base | tail -n 1) / 1024))
if [ "$free" -lt "$need" ]; then
  echo "gpuwhisk: $base has $free MB free, and this release takes $need MB: free $((need - free)) MB there, and install it again. The release before, if one ran, still runs." >&2
  exit 1
fi
