# An S3-compatible store on a disk: versitygw, one Go binary. Context: a folder with versitygw, store.sh and store-health.sh
# (build.sh makes it; with a registry the binary is `CGO_ENABLED=0 go install github.com/versity/versitygw/cmd/versitygw@v1.8.0` in golang:1.26).
ARG BASE=rollout-farm/debian:latest
FROM ${BASE}
RUN groupadd --gid 990 farm && useradd --uid 990 --gid 990 --no-create-home --shell /usr/sbin/nologin farm && mkdir /data && chown 990:990 /data
COPY versitygw /usr/local/bin/versitygw
COPY store.sh /usr/local/bin/store
COPY store-health.sh /usr/local/bin/store-health
RUN chmod 755 /usr/local/bin/versitygw /usr/local/bin/store /usr/local/bin/store-health
WORKDIR /data
USER 990:990
CMD ["/usr/local/bin/store"]
