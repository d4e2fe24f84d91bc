#!/usr/bin/env bash
# A stand-in for a server: it needs its configuration and its directory, and runs until SIGTERM.
set -euo pipefail
role=$1
directory="{{{JOURNAL_DIRECTORY}}}"
[[ -d $directory ]] || { echo "no directory $directory" >&2; exit 1; }
grep -q '<name>address</name><value>..*</value>' conf/site.xml
trap 'echo stopped > state; exit 0' SIGTERM
touch "$directory/started"
echo "up as $role" | tee state
while :; do sleep 0.2; done
