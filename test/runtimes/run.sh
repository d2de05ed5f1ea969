#!/usr/bin/env bash
# Boxes on engines that are set up otherwise (docs/sandbox.md): with gVisor, and with remapped users. Each engine is this command's own, in
# processes, mounts, network, /etc and /run apart from the machine's. The tests run in there with it, because some of them look at a box
# from outside; the machine's engine only gives its images, and all of it ends with the command.
# usage: run.sh [gvisor|userns] [arguments of vitest]      without a name: one after the other
# Exit 3: something cannot be had here.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
say() { printf 'runtimes: %s\n' "$1" >&2; }
fail() { say "$1"; exit 3; }

# In the engine's namespaces, as their first process: whatever is left when it ends is killed.
inside() {
  local work=$1 kind=$2 daemon tests=0
  shift 2
  # An engine finds all of another's below /run; one that remaps users writes them into /etc.
  mount -t tmpfs tmpfs /run
  mkdir -p /run/lock /run/etc/{upper,work}
  mount -t overlay -o lowerdir=/etc,upperdir=/run/etc/upper,workdir=/run/etc/work overlay /etc
  ip link set lo up
  unset "${!DOCKER_@}"
  setsid dockerd --config-file "$work/daemon.json" --data-root "$work/data" >"$work/log" 2>&1 &
  daemon=$!
  timeout 120 bash -c "until docker version >/dev/null 2>&1; do kill -0 $daemon || exit; sleep 0.2; done" 2>/dev/null || {
    tail -5 "$work/log" >&2
    fail 'the engine does not start: see above'
  }
  docker load --quiet --input "$work/images.tar" >/dev/null
  npx vitest run --config vitest.runtimes.config.ts --project "$kind" "$@" || tests=$?
  kill "$daemon"
  timeout 30 tail --pid "$daemon" -f /dev/null || say 'the engine does not end, and is killed'
  exit "$tests"
}

# The engine of this kind and the tests in it; their status.
prove() {
  local kind=$1 config status=0
  shift
  case $kind in
    # without a network of its own it also starts beside kernels that are newer than it
    gvisor) config="\"runtimes\": {\"runsc\": {\"path\": \"$(command -v runsc)\", \"runtimeArgs\": [\"--network=none\"]}}" ;;
    userns) config='"userns-remap": "default"' ;;
  esac
  mkdir "$work/$kind"
  ln "$work/images.tar" "$work/$kind/"
  echo "{\"exec-opts\": [\"native.cgroupdriver=cgroupfs\"], \"cgroup-parent\": \"/$group\", $config}" >"$work/$kind/daemon.json"
  unshare --net --mount --pid --fork --mount-proc --kill-child "$0" --inside "$work/$kind" "$kind" "$@" &
  apart=$!
  wait "$apart" || status=$?
  apart=
  clear
  return "$status"
}

# Nothing is left, whatever ended it: not even the cgroups, which outlive what was killed in them by a moment.
clear() {
  kill -KILL "$apart" 2>/dev/null && wait "$apart" 2>/dev/null
  for _ in {1..100}; do
    find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} + 2>/dev/null && break
    sleep 0.1
  done
  rm -rf --one-file-system "$work"/{gvisor,userns}
}

if [ "${1:-}" = --inside ]; then
  shift
  inside "$@"
fi
kinds=(gvisor userns)
case ${1:-} in gvisor | userns) kinds=("$1") && shift ;; esac
[ "$(id -u)" = 0 ] || fail 'only root can start an engine: run this as root'
infra/setup.sh tests $([[ ${kinds[*]} != *gvisor* ]] || echo runsc)

apart='' group=farm-runtimes-$$
work=$(mktemp -d "/var/tmp/$group.XXXXXX")
chmod 711 "$work" # remapped users go through it
trap 'clear || true; rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM
docker save --output "$work/images.tar" rollout-farm/python:latest "rollout-farm/runner:$(infra/runner/build.sh --hash)"
ended=0
for kind in "${kinds[@]}"; do
  prove "$kind" "$@" || ended=$?
done
exit "$ended"
