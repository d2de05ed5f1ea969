#!/bin/bash
# The store of a container: versitygw over /data, where a folder is a bucket. Keys come by ROOT_ACCESS_KEY and ROOT_SECRET_KEY.
set -euo pipefail
mkdir -p "/data/buckets/${STORE_BUCKET:-farm}"
exec versitygw --port :7070 --health /health posix /data/buckets
