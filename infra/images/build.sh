#!/usr/bin/env bash
# Builds every image that docker-compose.yml and infra/k8s use, and writes .env with random secrets where there is none. Each
# image has its recipe's hash as a label: what is there already is left, so that a second call takes a second or two.
#   build.sh            all but Prometheus
#   build.sh metrics    Prometheus too (Debian's; Grafana is not in Debian)
#   build.sh --tag      prints the tag of this checkout's farm and gate; builds nothing
# BASE=node:20-slim build.sh builds on a registry's image. Without BASE nothing is pulled: the base is made from Debian's
# packages (root, Debian or Ubuntu). Needs npm's registry, apt's mirrors and, for the store, Go or PyPI. Exit 3: something cannot be had.
set -euo pipefail
images=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
root=$(cd "$images/../.." && pwd)
export LC_ALL=C
say() { printf 'images: %s\n' "$1" >&2; }
fail() { printf 'images: %s\n' "$1" >&2; exit 3; }
# Over names and contents, 12 digits.
hash_of() { (cd "$root" && find "$@" -type f | sort | while read -r file; do printf '%s ' "$file"; sha256sum <"$file"; done | sha256sum | cut -c1-12); }

base=${BASE:-rollout-farm/debian:latest}
base_recipe=${BASE:-$("$images/base.sh" --hash)}
farm_recipe=$({
  printf '%s\n' "$base_recipe"
  hash_of src examples infra/harness infra/runner infra/seccomp.json infra/redis.conf infra/images/{farm,engine-gate}.Dockerfile \
    infra/images/{node,serve}.sh infra/images/health.mjs package.json package-lock.json tsconfig.json tsconfig.build.json
} | sha256sum | cut -c1-12)
runner_hash=$("$root/infra/runner/build.sh" --hash)
if [ "${1:-}" = --tag ]; then
  printf '%s\n' "$farm_recipe"
  exit 0
fi

command -v docker >/dev/null || fail 'the docker command is not installed'
docker version --format '{{.Server.Version}}' >/dev/null 2>&1 || fail 'the Docker engine does not answer: start it, or set DOCKER_HOST'
exec 9>"${TMPDIR:-/tmp}/rollout-farm-images.lock"
flock -n 9 || { say 'waits for another build'; flock -w 1200 9 || fail 'another build has not ended in 20 minutes'; }
work=$(mktemp -d /var/tmp/rollout-farm-build.XXXXXX)
trap 'rm -rf --one-file-system "$work" "$images/.ca.pem"' EXIT

has() { [ "$(docker image inspect --format '{{index .Config.Labels "rollout-farm.recipe"}}' "$1" 2>/dev/null)" = "$2" ]; }
build() { # name:tag, recipe, Dockerfile, context, build arguments …
  local name=$1 recipe=$2 file=$3 context=$4
  shift 4
  has "$name" "$recipe" && return 0
  say "builds $name"
  docker build --quiet --tag "$name" --label "rollout-farm.recipe=$recipe" --file "$images/$file" --build-arg "BASE=$base" "$@" "$context" >"$work/log" 2>&1 9>&- || {
    tail -30 "$work/log" >&2
    fail "could not build $name: see above"
  }
}

# --- what boxes are made of -----------------------------------------------------------------------------------------
if [ -z "${BASE:-}" ]; then
  # Redis runs in a container here: setup.sh need not install one.
  REDIS_URL=${REDIS_URL:-redis://redis} "$root/infra/setup.sh" 9>&-
  if ! has rollout-farm/debian:latest "$base_recipe"; then
    say 'makes the base rollout-farm/debian from packages (half a minute)'
    "$images/base.sh" 9>&- || fail 'could not make the base: see above'
  fi
else
  docker image inspect rollout-farm/python:latest >/dev/null 2>&1 ||
    build rollout-farm/python:latest "$BASE" sandbox.Dockerfile "$root/infra/sandbox" --build-arg "BASE=${SANDBOX_BASE:-debian:bookworm-slim}"
  docker image inspect "rollout-farm/runner:$runner_hash" >/dev/null 2>&1 ||
    build "rollout-farm/runner:$runner_hash" "$BASE" runner.Dockerfile "$root/infra/runner" --build-arg "BASE=${SANDBOX_BASE:-debian:bookworm-slim}"
fi

# --- the farm, and the gate with the images for boxes ----------------------------------------------------------------
# A machine behind a proxy that speaks for others has its own certificates: builds need them to reach npm's registry.
rm -f "$images/.ca.pem"
[ ! -r "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" ] || cp "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$images/.ca.pem"
build "rollout-farm/farm:$farm_recipe" "$farm_recipe" farm.Dockerfile "$root"

gate_recipe=$(printf '%s %s' "$farm_recipe" "$(docker image inspect --format '{{.Id}}' rollout-farm/python:latest "rollout-farm/runner:$runner_hash" | tr '\n' ' ')" | sha256sum | cut -c1-12)
if ! has "rollout-farm/engine-gate:$farm_recipe" "$gate_recipe"; then
  mkdir "$work/gate"
  list=''
  for name in rollout-farm/python:latest "rollout-farm/runner:$runner_hash"; do
    file=$(printf '%s' "$name" | tr '/:' '--').tar.gz
    docker save "$name" | gzip -1 >"$work/gate/$file"
    list="$list${list:+, }{\"file\": \"$file\", \"name\": \"$name\", \"id\": \"$(docker image inspect --format '{{.Id}}' "$name")\"}"
  done
  printf '[%s]\n' "$list" >"$work/gate/images.json"
  chmod -R a+rX "$work/gate"
  build "rollout-farm/engine-gate:$farm_recipe" "$gate_recipe" engine-gate.Dockerfile "$work/gate" --build-arg "FARM=rollout-farm/farm:$farm_recipe"
fi
for name in farm engine-gate; do docker tag "rollout-farm/$name:$farm_recipe" "rollout-farm/$name:latest"; done
# Of former builds the last two are kept, for a fleet that is being moved from one to the next.
for name in farm engine-gate; do
  docker images --format '{{.CreatedAt}}\t{{.Repository}}:{{.Tag}}' "rollout-farm/$name" | sort -r | cut -f2 | grep -v -e ":$farm_recipe\$" -e ':latest$' | tail -n +3 |
    xargs -r timeout 30 docker rmi >/dev/null 2>&1 || true
done

# --- Redis, store, Prometheus ------------------------------------------------------------------------------------------
recipe_of() { printf '%s %s' "$base_recipe" "$(cd "$images" && cat "$@" | sha256sum)" | sha256sum | cut -c1-12; }
mkdir "$work/empty"
build rollout-farm/redis:latest "$(recipe_of redis.Dockerfile)" redis.Dockerfile "$work/empty"
[ "${1:-}" != metrics ] || build rollout-farm/prometheus:latest "$(recipe_of prometheus.Dockerfile)" prometheus.Dockerfile "$work/empty"
store_recipe=$(recipe_of store.Dockerfile store.sh store-health.sh ../s3/build.sh)
if ! has rollout-farm/store:latest "$store_recipe"; then
  mkdir "$work/store"
  "$root/infra/s3/build.sh" --out "$work/store/versitygw" 9>&- || fail 'could not build versitygw, the store: see above'
  cp "$images"/store{,-health}.sh "$work/store/"
  build rollout-farm/store:latest "$store_recipe" store.Dockerfile "$work/store"
fi

# --- secrets -----------------------------------------------------------------------------------------------------------
if [ ! -e "$root/.env" ] && [ -z "${NO_ENV_FILE:-}" ]; then
  random() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }
  socket=${DOCKER_HOST:-unix:///var/run/docker.sock}
  gid=$(stat -L -c %g "${socket#unix://}" 2>/dev/null || printf 0)
  (
    umask 077
    sed -e "s/^REDIS_PASSWORD=.*/&$(random 24)/" -e "s/^FARM_API_KEY=.*/&$(random 24)/" -e "s/^AWS_ACCESS_KEY_ID=.*/&FARM$(random 8)/" \
      -e "s/^AWS_SECRET_ACCESS_KEY=.*/&$(random 24)/" -e "s/^DOCKER_GID=.*/&$gid/" "$root/.env.example" >"$root/.env"
  )
  say 'wrote .env with random secrets (only its owner reads it)'
fi
say "all there: rollout-farm/farm:$farm_recipe"
