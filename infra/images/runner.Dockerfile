# The runner, compiled in an image of its own. Context: infra/runner.
ARG BASE=debian:bookworm-slim
FROM ${BASE} AS build
RUN apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends musl-tools
COPY . /runner/
RUN bash /runner/build.sh --out /.rollout-farm-runner && chmod 555 /.rollout-farm-runner
FROM scratch
COPY --from=build /.rollout-farm-runner /.rollout-farm-runner
ENTRYPOINT ["/.rollout-farm-runner"]
