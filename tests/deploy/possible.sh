#!/bin/sh
# Whether this machine lets root make what the tests of deployment need: namespaces, a bridge, cgroups v2 alone and a container.
# Prints what is missing and fails if something is.
set -e
lacks() { echo "$1"; exit 1; }
unshare --net --mount --pid --fork --kill-child --mount-proc \
  sh -c 'mount -t tmpfs none /run && ip link add br0 type bridge && ip link set br0 up' >/dev/null 2>&1 || lacks "network namespaces and a bridge"
unshare --mount sh -c 'mount --make-rprivate / && umount -R /sys/fs/cgroup 2>/dev/null; mount -t cgroup2 none /sys/fs/cgroup &&
  exec systemd-nspawn --quiet --register=no --keep-unit --private-network --volatile=yes --directory=/ --machine=inferno-probe true' \
  </dev/null >/dev/null 2>&1 || lacks "containers of systemd-nspawn"
