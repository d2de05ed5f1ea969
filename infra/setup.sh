#!/usr/bin/env bash
# Sets this machine up for Rollout Farm: packages, the Docker engine, the sandbox's base image and the runner.
# Idempotent, one line on stderr a step, silent where nothing is missing; two at once wait for each other.
# Needs Debian or Ubuntu as root or with sudo; elsewhere it names what to install. Exit 3: something cannot be had here.
# An engine is never started where DOCKER_HOST is set: then that one has to answer.
# usage: setup.sh [tests [runsc]]      `tests`: also what only the test suite needs; `runsc`: also gVisor, for `npm run test:runtimes`.
set -euo pipefail
tests=${1:-} runsc=${2:-}
infra=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" LC_ALL=C
say() { printf 'setup: %s\n' "$1" >&2; }
fail() { printf 'setup: %s\n' "$1" >&2; exit 3; }

answers() { timeout 10 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }
runner_tag="rollout-farm/runner:$("$infra/runner/build.sh" --hash)"
has_image() { [ "$(docker image inspect --format '{{index .Config.Labels "rollout-farm.recipe"}}' "$1" 2>/dev/null)" = "$2" ]; }
has_base() { has_image rollout-farm/python:latest "$("$infra/sandbox/image.sh" --hash)"; }
has_runner() { docker image inspect "$runner_tag" >/dev/null 2>&1; }
has_redis() { { [ -n "${REDIS_URL:-}" ] && [ -z "$tests" ]; } || command -v redis-server >/dev/null; }
has_musl() { [ -z "$tests" ] || command -v musl-gcc >/dev/null; }
has_python() { [ -z "$tests" ] || [ -x /usr/bin/python3 ]; }
# What `bench chaos` needs for clocks that jump and cables that are cut.
has_faults() { [ -z "$tests" ] || { ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 && command -v ip >/dev/null; }; }
# Two S3 servers for the store's contract.
has_certificates() { [ -z "$tests" ] || command -v openssl >/dev/null; }
has_s3() { [ -z "$tests" ] || "$infra/s3/build.sh" --has; }
# Brings up docker-compose.yml.
has_compose() { [ -z "$tests" ] || command -v docker-compose >/dev/null; }
has_runsc() { [ -z "$runsc" ] || command -v runsc >/dev/null; }
done_already() { command -v docker >/dev/null && has_redis && has_python && has_musl && has_faults && has_compose && has_certificates && has_s3 && has_runsc && answers && has_base && has_runner; }

# What the user has named is the user's to start.
no_engine_of_the_users() {
  [ -z "${DOCKER_HOST:-}" ] || fail "the Docker engine at DOCKER_HOST ($DOCKER_HOST) does not answer: start it, or unset DOCKER_HOST to use the machine's own"
}

done_already && exit 0
if command -v docker >/dev/null && ! answers; then no_engine_of_the_users; fi

if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || fail 'something is missing and only root can install it: run this as root, or install sudo'
  say 'continues as root (sudo)'
  exec sudo ${DOCKER_HOST:+DOCKER_HOST="$DOCKER_HOST"} ${REDIS_URL:+REDIS_URL="$REDIS_URL"} "$infra/setup.sh" $tests $runsc
fi

lock=/var/lock/rollout-farm-setup.lock
exec 9>"$lock"
flock -n 9 || { say 'waits for another set-up on this machine'; flock -w 1200 9 || fail 'another set-up has not ended in 20 minutes'; }

# --- packages -------------------------------------------------------------------------------------------------
packages=() names=()
need() { # command, package, what to call it elsewhere
  command -v "$1" >/dev/null || { packages+=("$2"); names+=("$3"); }
}
need docker docker.io 'Docker (the command and an engine)'
[ -n "${DOCKER_HOST:-}" ] || answers || need dockerd docker.io 'the Docker engine (dockerd)'
has_redis || { packages+=(redis-server); names+=('redis-server 7.0 or newer'); }
has_python || { packages+=(python3); names+=('python3'); }
has_certificates || { packages+=(openssl); names+=('openssl'); }
has_faults || { packages+=(libfaketime iproute2); names+=('libfaketime and iproute2'); }
has_s3 || python3 -c 'import ensurepip, venv' 2>/dev/null || { packages+=(python3-venv); names+=('python3-venv'); }
has_compose || need docker-compose docker-compose 'docker-compose 1.29 or Compose v2'
has_musl || need musl-gcc musl-tools 'musl-gcc (musl-tools)'
has_runsc || need runsc runsc 'runsc (gVisor: https://gvisor.dev/docs/user_guide/install)'
if command -v docker >/dev/null && answers; then
  has_base || need mmdebstrap mmdebstrap mmdebstrap
  has_runner || need musl-gcc musl-tools 'musl-gcc (musl-tools)'
else
  need mmdebstrap mmdebstrap mmdebstrap
  need musl-gcc musl-tools 'musl-gcc (musl-tools)'
fi

# Debian starts a daemon that it installs: a system-wide Redis nobody asked for, an engine with our environment.
install() {
  local policy=/usr/sbin/policy-rc.d ours=''
  if [ ! -e "$policy" ]; then
    ours=yes
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    trap "rm -f $policy" EXIT
  fi
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -y -q --no-install-recommends install "$@" >/tmp/rollout-farm-apt.$$ 2>&1 || {
    tail -5 "/tmp/rollout-farm-apt.$$" >&2
    rm -f "/tmp/rollout-farm-apt.$$"
    return 1
  }
  rm -f "/tmp/rollout-farm-apt.$$"
  if [ -n "$ours" ]; then rm -f "$policy"; trap - EXIT; fi
  if [ -d /run/systemd/system ] && [[ " $* " == *' redis-server '* ]]; then systemctl disable -q redis-server || true; fi
}

if [ ${#packages[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || fail "missing here: $(printf '%s; ' "${names[@]}")install them and try again (on Debian and Ubuntu this is done for you)"
  mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
  known() { apt-cache show "$1" 2>/dev/null | grep -q '^Package:'; }
  for package in "${packages[@]}"; do
    known "$package" || { say 'apt-get update'; apt-get -o DPkg::Lock::Timeout=300 -q update >/dev/null 2>&1 || true; break; }
  done
  # From Debian 13 on the docker command is a package of its own.
  [[ " ${packages[*]} " == *' docker.io '* ]] && known docker-cli && packages+=(docker-cli)
  say "installs ${packages[*]}"
  install "${packages[@]}" || {
    say 'apt-get update, and once more'
    apt-get -o DPkg::Lock::Timeout=300 -q update >/dev/null || true
    install "${packages[@]}" || fail "could not install ${packages[*]}: see above; install them by hand and try again"
  }
fi

# --- the engine -----------------------------------------------------------------------------------------------
# A service of the machine: nothing of the farm's environment, folder, terminal or descriptors goes into it.
clean() {
  env -i -C / PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin setsid bash -c '
    for fd in /proc/self/fd/*; do fd=${fd##*/}; [ "$fd" -le 2 ] || [ "$fd" = 255 ] || eval "exec $fd>&-"; done
    exec "$@"' bash "$@" </dev/null >/dev/null 2>&1 9>&-
}
wait_for_engine() {
  local end=$((SECONDS + $1))
  until answers; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.2
  done
}
if ! answers; then
  no_engine_of_the_users
  started=''
  if pgrep -x dockerd >/dev/null 2>&1; then
    say 'waits for the Docker engine, which is running but does not answer'
    wait_for_engine 60 && started=yes
  else
    say 'starts the Docker engine'
    if [ -d /run/systemd/system ]; then
      systemctl start docker >/dev/null 2>&1 && wait_for_engine 60 && started=yes
    elif [ -x /etc/init.d/docker ]; then
      clean service docker start && wait_for_engine 45 && started=yes
    fi
    # no service manager, or one whose script cannot work here (it insists on limits that a container may not raise)
    if [ -z "$started" ] && ! pgrep -x dockerd >/dev/null 2>&1; then
      clean bash -c 'dockerd >>/var/log/rollout-farm-dockerd.log 2>&1 &'
      wait_for_engine 60 && started=yes
    fi
  fi
  [ -n "$started" ] || fail 'the Docker engine does not start or answer: see /var/log/rollout-farm-dockerd.log, /var/log/docker.log or journalctl -u docker'
fi

# --- images ---------------------------------------------------------------------------------------------------
if ! has_base; then
  say 'builds the image rollout-farm/python (a minute)'
  "$infra/sandbox/image.sh" 9>&- || fail 'could not build the image rollout-farm/python: see above'
fi
if ! has_runner; then
  say "compiles the runner and packs it as $runner_tag"
  "$infra/runner/build.sh" "$runner_tag" 9>&- || fail 'could not build the runner: see above'
fi
if ! has_s3; then
  say 'builds the S3 servers of the tests (two minutes)'
  "$infra/s3/build.sh" 9>&- || fail 'could not build the S3 servers: see above'
fi
say 'all there'
