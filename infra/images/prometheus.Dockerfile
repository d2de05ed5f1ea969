# Debian's Prometheus, for where prom/prometheus cannot be pulled.
ARG BASE=rollout-farm/debian:latest
FROM ${BASE}
RUN apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends prometheus \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/* && mkdir /prometheus && chown 65534:65534 /prometheus
WORKDIR /prometheus
USER 65534:65534
CMD ["prometheus"]
