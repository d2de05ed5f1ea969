# The image of boxes where a registry is there and mmdebstrap is not: otherwise infra/sandbox/image.sh makes a smaller one.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
RUN apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends python3 \
  && rm -rf /var/lib/apt /var/cache/* /var/log/* && find / -xdev -type f -perm /6000 -exec chmod a-s {} + \
  && mkdir -p /work && ln -sf python3 /usr/bin/python
CMD ["python3"]
