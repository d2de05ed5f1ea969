# Every role of the farm: Node, the compiled sources and their npm packages, as a user without any right. Context: the checkout.
# BASE may be node:20-slim, debian:bookworm-slim, or what base.sh makes where no registry is reached.
ARG BASE=rollout-farm/debian:latest

FROM ${BASE} AS node
# .ca.pem: the machine's certificates, where build.sh has found some of its own; never in the last image.
COPY infra/images/node.sh infra/images/.ca.pe[m] /opt/fetch/
RUN sh /opt/fetch/node.sh

FROM node AS build
RUN sh /opt/fetch/node.sh npm
ENV NODE_EXTRA_CA_CERTS=/opt/fetch/.ca.pem
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src src
RUN npm run build && npm prune --omit=dev --no-audit --no-fund --ignore-scripts && chmod 755 dist/cli/main.js

FROM ${BASE}
# The first process: of a signal that Node does not yet listen for the kernel spares whoever is first.
RUN command -v tini || { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends tini \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/*; }
# Far from 10,000 to 59,999, which are the uids of code in boxes.
RUN groupadd --gid 990 farm && useradd --uid 990 --gid 990 --home-dir /var/lib/farm --create-home --shell /usr/sbin/nologin farm \
  && mkdir /run/farm /configs && chown 990:990 /run/farm && chmod 750 /run/farm
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=build /src/node_modules /opt/farm/node_modules
COPY package.json /opt/farm/
COPY infra/harness /opt/farm/infra/harness
COPY infra/runner /opt/farm/infra/runner
COPY infra/seccomp.json infra/redis.conf /opt/farm/infra/
COPY infra/images/health.mjs infra/images/serve.sh /opt/farm/infra/images/
COPY examples /opt/farm/examples
COPY --from=build /src/dist /opt/farm/dist
RUN ln -s /opt/farm/dist/cli/main.js /usr/local/bin/farm
ENV NODE_ENV=production FARM_DATA=/var/lib/farm/data
WORKDIR /var/lib/farm
USER 990:990
ENTRYPOINT ["/usr/bin/tini", "--", "node", "/opt/farm/dist/cli/main.js"]
CMD ["--help"]
