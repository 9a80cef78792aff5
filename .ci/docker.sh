#!/usr/bin/env bash
# Start a Docker Engine when root can install and run one; leave a running one alone.
set -euo pipefail
if docker info >/dev/null 2>&1; then exit 0; fi
if [ "$(id -u)" != 0 ]; then echo "not root"; exit 1; fi
if ! command -v dockerd >/dev/null || ! command -v mmdebstrap >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq docker.io mmdebstrap >/dev/null
fi
log=$(mktemp)
nohup dockerd --iptables=false --ip6tables=false --bridge=none >"$log" 2>&1 &
for _ in $(seq 60); do
  if docker info >/dev/null 2>&1; then exit 0; fi
  sleep 1
done
tail -n 5 "$log"
exit 1
