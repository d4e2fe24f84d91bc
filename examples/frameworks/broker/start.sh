#!/usr/bin/env bash
# The program's own start script, as archives bring it along.
set -e
export HEAP_MB=$((2 * 8))
./bootstrap
trap 'exit 0' SIGTERM
echo "{{TASK_NAME}} serves at $MESOS_CONTAINER_IP:$REGISTRY_PORT"
while :; do sleep 0.2; done
