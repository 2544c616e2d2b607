#!/bin/sh
# Debian: `configure OLD`; RPM: 1 for an installation, 2 for an upgrade. Makes the installed release the one that runs, and restarts
# the service. A release runs from a folder of its own, with hard links to the package's files: the release before serves until then.
set -e
base=/usr/lib/gpuwhisk
# MB that must be free where programs and data are.
need=100
remedy="run 'dpkg --configure gpuwhisk', or reinstall the rpm"

fail() {
  rm -rf "$run.unfinished"
  echo "gpuwhisk: $1" >&2
  exit 1
}

show_log() {
  journalctl --no-pager --quiet --output=cat --lines=3 --unit=gpuwhisk.service >&2 || true
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
    fail "The release could not be laid out in $run: free $need MB there, and $remedy. The release before still runs."
fi

use() {
  ln -sfn "$1" $base/current.new && mv -T $base/current.new $base/current
}
# A server that runs goes on without space, but one that ended does not start again.
for folder in $base /var/lib/gpuwhisk; do
  [ -d $folder ] || continue
  free=$(($(df --output=avail -k $folder | tail -n 1) / 1024))
  [ "$free" -ge $need ] ||
    fail "$folder has $free MB free, and the start of a release takes $need MB: free $((need - free)) MB there, and $remedy. The release before, if one ran, still runs."
done
use "run/$id" || fail "The release could not be put into use: free $need MB in $base, and $remedy. The release before, if one ran, still runs."

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
  show_log
  [ -n "$before" ] || fail "The service does not start; its last lines are above."
  use "$before" || fail "The release does not start, and the one before could not be put back: free $need MB in $base, and run 'ln -sfn $before $base/current'."
  if ! systemctl restart gpuwhisk.service; then
    show_log
    fail "Neither the release nor the one before starts; their last lines are above. The one before is tried every 5 s; once it serves, $remedy."
  fi
  fail "The release does not start, and the one before runs again; the last lines of the former are above."
fi
for folder in $base/run/*; do
  [ "$folder" = "$run" ] || rm -rf "$folder"
done
