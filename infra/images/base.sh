#!/usr/bin/env bash
# The base of our images where no registry is reached: rollout-farm/debian, the host's own release with apt,
# certificates and an init, made from Debian's packages by mmdebstrap. Where a registry is there, BASE=node:20-slim (or debian:bookworm-slim)
# in the environment of build.sh takes its place.
#   base.sh --hash   the recipe's hash: its label, so that it is made anew only when the recipe changes
#   base.sh          builds and tags (root; the engine has to answer)
set -euo pipefail
. /etc/os-release
hash=$({ cat "${BASH_SOURCE[0]}"; printf '%s' "${VERSION_CODENAME:-}"; } | sha256sum | cut -c1-12)
if [ "${1:-}" = --hash ]; then
  printf '%s\n' "$hash"
  exit 0
fi
work=$(mktemp -d /var/tmp/rollout-farm-base.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
# Ubuntu has the init in universe.
components=main
[ "${ID:-}" = ubuntu ] && components=main,universe
# A package that brings a daemon must not start it in a build.
mmdebstrap --quiet --mode=root --variant=apt --components=$components --include=ca-certificates,tini \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
  --customize-hook='printf "#!/bin/sh\nexit 101\n" >"$1"/usr/sbin/policy-rc.d && chmod 755 "$1"/usr/sbin/policy-rc.d' \
  --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/* "$1"/var/log/*' \
  --customize-hook='find "$1" -xdev -type f -perm /6000 -exec chmod a-s {} +' \
  "${VERSION_CODENAME:?this release has no code name}" "$work/root.tar" </dev/null >&2
docker import --change "LABEL rollout-farm.recipe=$hash" --change 'ENV LANG=C.UTF-8' --change 'CMD ["/bin/bash"]' \
  --message 'rollout-farm image base' "$work/root.tar" rollout-farm/debian:latest >/dev/null
