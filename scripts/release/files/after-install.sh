#!/bin/sh
# Debian: `configure OLD`; RPM: 1 for an installation, 2 for an upgrade. Makes the installed release the one that runs, and restarts
# the service. A release runs from a folder of its own, with hard links to the package's files: the release before serves until then.
set -e
base=/usr/lib/gpuwhisk

fail() {
  rm -rf "$run.unfinished"
  echo "gpuwhisk: $1" >&2
  exit 1
}

case "$1 $2" in
  'configure ' | '1 ') is_new=1 ;;
  configure\ * | '2 ') is_new= ;;
  *) exit 0 ;;
esac

id=$(cat $base/release/build-id)
run=$base/run/$id
before=$(readlink $base/current || true)

"$base/release/bin/gpuwhisk" serve --check-data --config /etc/gpuwhisk/gpuwhisk.json --data /var/lib/gpuwhisk ||
  fail "This release is not started; the release before, if one ran, still runs."
if [ ! -d "$run" ]; then
  mkdir -p $base/run
  rm -rf "$run.unfinished"
  { cp -al $base/release "$run.unfinished" && mv "$run.unfinished" "$run"; } ||
    fail "The release could not be laid out in $run: free 100 MB there, and run 'dpkg --configure gpuwhisk', or reinstall the rpm. The release before still runs."
fi

use() {
  ln -sfn "$1" $base/current.new
  mv -T $base/current.new $base/current
}
use "run/$id"

if [ ! -d /run/systemd/system ]; then
  echo "gpuwhisk: systemd does not run here; start the platform with 'gpuwhisk serve'."
  exit 0
fi
systemctl daemon-reload
if [ -n "$is_new" ]; then
  systemctl --quiet enable gpuwhisk.socket gpuwhisk.service
  systemctl start gpuwhisk.socket
  action=restart
else
  action=try-restart
fi
if ! systemctl $action gpuwhisk.service; then
  journalctl --no-pager --quiet --output=cat --lines=3 --unit=gpuwhisk.service >&2 || true
  [ -n "$before" ] || fail "The service does not start; its last lines are above."
  use "$before"
  systemctl restart gpuwhisk.service || true
  fail "The release does not start, and the one before runs again; the last lines of the former are above."
fi
for folder in $base/run/*; do
  [ "$folder" = "$run" ] || rm -rf "$folder"
done
