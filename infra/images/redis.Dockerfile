# Debian's Redis (7.0 in bookworm), under the uid that the official image has: their data folders are interchangeable.
ARG BASE=rollout-farm/debian:latest
FROM ${BASE}
RUN groupadd --system --gid 999 redis && useradd --system --uid 999 --gid 999 --home-dir /data --shell /usr/sbin/nologin redis \
  && apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends redis-server \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /etc/redis && mkdir /data && chown 999:999 /data
WORKDIR /data
USER 999:999
CMD ["redis-server"]
