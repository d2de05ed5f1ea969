#!/usr/bin/env bash
# The sandbox's base image, rollout-farm/python:latest: the host's own release, essential packages and the full
# Python 3 (json, sqlite3, ctypes, resource), made from the host's apt sources without any registry.
# No compiler, no apt, no documentation. Its label carries this recipe's hash, so that it is made anew only when the recipe changes.
#   image.sh --hash   the recipe's hash
#   image.sh          builds, tags (root; the engine has to answer)
set -euo pipefail
. /etc/os-release
hash=$({ cat "${BASH_SOURCE[0]}"; printf '%s' "${VERSION_CODENAME:-}"; } | sha256sum | cut -c1-12)
if [ "${1:-}" = --hash ]; then
  printf '%s\n' "$hash"
  exit 0
fi

work=$(mktemp -d /var/tmp/rollout-farm-image.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT

# In an essential-only system apt's and dpkg's own files are of no use to a box, nor are texts nobody reads there.
mmdebstrap --quiet --mode=root --variant=essential --include=python3 \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
  --dpkgopt='path-exclude=/usr/share/i18n/*' --dpkgopt='path-exclude=/usr/lib/python3/dist-packages/lib2to3*' \
  --customize-hook='rm -rf "$1"/var/lib/apt "$1"/var/cache/* "$1"/var/log/* "$1"/usr/share/perl* "$1"/usr/lib/*-linux-gnu/perl "$1"/usr/lib/*-linux-gnu/libperl*' \
  --customize-hook='find "$1" -xdev -type f -perm /6000 -exec chmod a-s {} +' \
  --customize-hook='mkdir -p "$1"/work && ln -sf python3 "$1"/usr/bin/python' \
  --customize-hook='chroot "$1" python3 -c "import json, sqlite3, ctypes, resource, hashlib, zlib, bz2, lzma, ssl, decimal, unittest"' \
  "${VERSION_CODENAME:?this release has no code name}" "$work/root.tar" </dev/null >&2

old=$(docker image inspect --format '{{.Id}}' rollout-farm/python:latest 2>/dev/null || true)
docker import --change "LABEL rollout-farm.recipe=$hash" --change 'ENV LANG=C.UTF-8' --change 'CMD ["python3"]' \
  --message 'rollout-farm sandbox base' "$work/root.tar" rollout-farm/python:latest >/dev/null

# What was derived from the former one is of no use any more, unless a farm is at work with it.
if [ -n "$old" ] && [ -z "$(docker ps -aq --filter label=rollout-farm.farm)" ]; then
  short=${old#sha256:}
  docker images --format '{{.Repository}}:{{.Tag}}' --filter "reference=rollout-farm/box:${short:0:12}-*" | xargs -r docker rmi >/dev/null 2>&1 || true
  docker rmi "$old" >/dev/null 2>&1 || true
fi
