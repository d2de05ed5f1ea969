#!/bin/sh
# The gateway of a container: every NAME.yaml in /configs is a config of that name, the first of them the default one.
set -eu
for file in /configs/*.yaml; do
  [ -e "$file" ] || continue
  name=${file##*/}
  set -- "$@" --config "${name%.yaml}=$file"
done
exec node /opt/farm/dist/cli/main.js serve --host 0.0.0.0 --port 8787 "$@"
