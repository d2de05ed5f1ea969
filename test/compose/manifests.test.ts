// Compose files, Kubernetes manifests, scrape config and dashboard against each other and against the product: names, ports, keys,
// arguments and metrics that are written in two places are the same in both. No engine and no cluster is asked.

import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { farmSamples } from '../../src/gateway/figures.ts';
import { GatewayMetrics } from '../../src/gateway/metrics.ts';
import type { UpstreamState } from '../../src/workers/verify/fleet/upstream.ts';
import { ensureBuilt, MAIN, ROOT } from '../support/built.ts';

interface Probe {
  httpGet?: { path: string; port: string };
  exec?: { command: string[] };
}
interface Container {
  name: string;
  image: string;
  command?: string[];
  args?: string[];
  restartPolicy?: string;
  env?: { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string; key: string } } }[];
  envFrom?: { configMapRef: { name: string } }[];
  ports?: { name: string; containerPort: number }[];
  securityContext?: {
    privileged?: boolean;
    readOnlyRootFilesystem?: boolean;
    allowPrivilegeEscalation?: boolean;
    capabilities?: { drop: string[] };
  };
  resources?: { requests?: object; limits?: { memory?: string } };
  startupProbe?: Probe;
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  volumeMounts?: { name: string; mountPath: string }[];
}
interface Pod {
  terminationGracePeriodSeconds?: number;
  automountServiceAccountToken?: boolean;
  securityContext?: { runAsNonRoot?: boolean; runAsUser?: number };
  containers: Container[];
  initContainers?: Container[];
  volumes?: { name: string; configMap?: { name: string } }[];
}
interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string };
  data?: Record<string, string>;
  stringData?: Record<string, string>;
  spec?: {
    selector?: { matchLabels?: Record<string, string> } & Record<string, unknown>;
    podSelector?: { matchLabels?: Record<string, string>; matchExpressions?: { values: string[] }[] };
    ports?: { name: string; port: number; targetPort: string }[];
    ingress?: { ports?: { port: string }[] }[];
    template?: { metadata: { labels: Record<string, string> }; spec: Pod };
    volumeClaimTemplates?: { metadata: { name: string } }[];
    scaleTargetRef?: { name: string };
    minReplicaCount?: number;
    triggers?: { metadata: Record<string, string>; authenticationRef: { name: string } }[];
    secretTargetRef?: { name: string; key: string }[];
  };
}
interface Service {
  image?: string;
  command?: string | string[];
  environment?: Record<string, string>;
  volumes?: string[];
  ports?: string[];
  networks?: string[];
  depends_on?: object;
  stop_grace_period?: string;
  mem_limit?: string;
  profiles?: string[];
  healthcheck?: { test: string[] };
  cap_drop?: string[];
  read_only?: boolean;
}
interface ComposeFile {
  services: Record<string, Service>;
  networks?: Record<string, { internal?: boolean }>;
  volumes?: object;
}

const file = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8');
const K8S = readdirSync(path.join(ROOT, 'infra/k8s')).filter((name) => name.endsWith('.yaml'));
const documents = (name: string): Manifest[] =>
  parseAllDocuments(file(`infra/k8s/${name}`)).map((one) => one.toJS() as Manifest);
const kustomization = parse(file('infra/k8s/kustomization.yaml')) as {
  resources: string[];
  images: { name: string }[];
};
const manifests = kustomization.resources.flatMap(documents);
const secret = documents('secret.example.yaml')[0] as Manifest;
const of = (kind: string): Manifest[] => manifests.filter((one) => one.kind === kind);
const workloads = manifests.filter((one) => one.spec?.template !== undefined);
const podOf = (one: Manifest): Pod => one.spec?.template?.spec as Pod;
const containersOf = (one: Manifest): Container[] => [...(podOf(one).initContainers ?? []), ...podOf(one).containers];
const compose = (name: string): ComposeFile => parse(file(name), { merge: true }) as ComposeFile;
const main = compose('docker-compose.yml');
const COMPOSES = ['docker-compose.yml', 'infra/compose/workers.yml', 'infra/compose/open.yml'];

/** Names of every metric that the gateway can say. */
const metrics = (): string[] => {
  const upstream = {
    baseUrl: 'x',
    platformId: 1,
    keyFingerprint: 'x',
    breaker: 'closed',
    refused: null,
    rateLimitedForMs: 0,
    waiting: 0,
    inFlight: 0,
    counters: {},
  } as unknown as UpstreamState;
  const farm = farmSamples({
    runs: [],
    workers: [],
    engines: [],
    workerSeconds: null,
    queues: {},
    upstreams: [upstream],
    missing: null,
  });
  const names = [...farm, ...new GatewayMetrics().list()].flatMap(({ name, kind }) =>
    kind === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  );
  return names;
};

let help: Record<string, string> = {};
beforeAll(async () => {
  ensureBuilt();
  const verbs = ['worker', 'serve', 'engine-gate'];
  const texts = await Promise.all(verbs.map((verb) => promisify(execFile)(process.execPath, [MAIN, verb, '--help'])));
  help = Object.fromEntries(verbs.map((verb, i) => [verb, texts[i]?.stdout ?? '']));
});

/** Whether the command line takes these arguments: verb, role and every option. */
function refusedArguments([verb = '', ...rest]: readonly string[]): string[] {
  const text = help[verb];
  if (text === undefined) return [`no verb ${verb}`];
  const options = rest.filter((one) => one.startsWith('--') && !text.includes(`${one} <`));
  const role =
    verb === 'worker' && !['rollout', 'verify', 'collect'].includes(rest[0] ?? '') ? [`no role ${rest[0]}`] : [];
  return [...options, ...role];
}

describe('the Kubernetes manifests', () => {
  it('are all applied but the secret, and nothing is said twice', () => {
    expect([...kustomization.resources, 'kustomization.yaml', 'secret.example.yaml'].sort()).toEqual([...K8S].sort());
    const names = manifests.map((one) => `${one.kind} ${one.metadata.name}`);
    expect(names).toEqual([...new Set(names)]);
  });

  it('name secrets, settings, volumes and ports that are there', () => {
    const keys = Object.keys(secret.stringData ?? {});
    expect(Object.values(secret.stringData ?? {}).every((value) => value === '')).toBe(true);
    const maps = of('ConfigMap').map((one) => one.metadata.name);
    for (const one of workloads) {
      const volumes = [
        ...(podOf(one).volumes ?? []).map((volume) => volume.name),
        ...(one.spec?.volumeClaimTemplates ?? []).map((claim) => claim.metadata.name),
      ];
      for (const volume of podOf(one).volumes ?? [])
        if (volume.configMap) expect(maps).toContain(volume.configMap.name);
      for (const container of containersOf(one)) {
        const where = `${one.metadata.name}/${container.name}`;
        for (const { valueFrom } of container.env ?? [])
          if (valueFrom)
            expect(
              [secret.metadata.name, valueFrom.secretKeyRef.name, keys.includes(valueFrom.secretKeyRef.key)],
              where,
            ).toEqual(['farm', 'farm', true]);
        for (const { configMapRef } of container.envFrom ?? []) expect(maps, where).toContain(configMapRef.name);
        for (const { name } of container.volumeMounts ?? []) expect(volumes, where).toContain(name);
        const ports = (container.ports ?? []).map((port) => port.name);
        for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe])
          if (probe?.httpGet) expect(ports, where).toContain(probe.httpGet.port);
        expect(
          kustomization.images.map((image) => image.name),
          where,
        ).toContain(container.image);
      }
    }
  });

  it('lead services, budgets and policies to pods that exist', () => {
    const apps = workloads.map((one) => one.spec?.template?.metadata.labels.app);
    for (const one of workloads)
      expect(one.spec?.selector?.matchLabels).toEqual({ app: one.spec?.template?.metadata.labels.app });
    const portsOf = (app: unknown): string[] =>
      workloads
        .filter((one) => one.spec?.template?.metadata.labels.app === app)
        .flatMap((one) => containersOf(one).flatMap((c) => (c.ports ?? []).map((p) => p.name)));
    for (const one of of('Service')) {
      expect(apps).toContain(one.spec?.selector?.app);
      for (const port of one.spec?.ports ?? []) expect(portsOf(one.spec?.selector?.app)).toContain(port.targetPort);
    }
    expect(
      of('PodDisruptionBudget')
        .map((one) => one.spec?.selector?.matchLabels?.app)
        .sort(),
    ).toEqual([...apps].sort());
    for (const one of of('NetworkPolicy')) {
      const app = one.spec?.podSelector?.matchLabels?.app;
      if (app !== undefined) expect(apps).toContain(app);
      for (const value of (one.spec?.podSelector?.matchExpressions ?? []).flatMap((each) => each.values))
        expect(apps).toContain(value);
      for (const port of (one.spec?.ingress ?? []).flatMap((each) => each.ports ?? []))
        expect(portsOf(app)).toContain(port.port);
    }
  });

  it('start roles with arguments that the command line takes, for as long as their work lasts', () => {
    for (const one of workloads)
      for (const container of containersOf(one))
        if (
          container.args &&
          /^rollout-farm\/(farm|engine-gate)$/.test(container.image) &&
          container.command === undefined
        )
          expect(refusedArguments(container.args), `${one.metadata.name}/${container.name}`).toEqual([]);
    const grace = Object.fromEntries(
      workloads.map((one) => [one.metadata.name, podOf(one).terminationGracePeriodSeconds]),
    );
    // A group's deadline is 600 s, the gateway's word 180 s.
    expect(grace['rollout-worker']).toBeGreaterThan(600);
    expect(grace['verify-worker']).toBeGreaterThan(600);
    expect(grace.gateway).toBeGreaterThan(180);
  });

  it('give no container more than it needs: one is privileged, the engine of boxes', () => {
    const privileged = workloads.flatMap((one) =>
      containersOf(one)
        .filter((c) => c.securityContext?.privileged)
        .map((c) => c.name),
    );
    expect(privileged).toEqual(['engine']);
    // By its image's entrypoint, which reaps: bare it keeps a zombie for every box.
    for (const engine of workloads.flatMap(containersOf).filter((c) => c.name === 'engine'))
      expect([engine.command, engine.args?.[0]]).toEqual([undefined, 'dockerd']);
    for (const one of workloads) {
      expect(podOf(one).automountServiceAccountToken, one.metadata.name).toBe(false);
      expect(podOf(one).securityContext?.runAsNonRoot, one.metadata.name).toBe(true);
      for (const container of containersOf(one)) {
        const where = `${one.metadata.name}/${container.name}`;
        expect(container.resources?.limits?.memory, where).toBeDefined();
        expect(container.startupProbe, where).toBeDefined();
        if (container.name === 'engine') continue;
        expect(container.securityContext, where).toMatchObject({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
      }
    }
    // Who has the engine's socket: the engine and the gate, and both outlive the worker.
    const [worker] = workloads.filter((one) => one.metadata.name === 'rollout-worker');
    const withSocket = containersOf(worker as Manifest).filter((c) =>
      c.volumeMounts?.some((mount) => mount.name === 'engine'),
    );
    expect(withSocket.map((c) => [c.name, c.restartPolicy])).toEqual([
      ['engine', 'Always'],
      ['gate', 'Always'],
    ]);
  });

  it('scale by a metric that the gateway has, from one worker on, with a key of the secret', () => {
    const [scaled] = of('ScaledObject');
    expect(workloads.map((one) => one.metadata.name)).toContain(scaled?.spec?.scaleTargetRef?.name);
    expect(scaled?.spec?.minReplicaCount).toBe(1);
    const [trigger] = scaled?.spec?.triggers ?? [];
    expect(metrics()).toContain(trigger?.metadata.valueLocation);
    const url = new URL(trigger?.metadata.url ?? '');
    const service = of('Service').find((one) => url.hostname.startsWith(`${one.metadata.name}.`));
    expect(service?.spec?.ports?.map((port) => String(port.port))).toContain(url.port);
    const [auth] = of('TriggerAuthentication');
    expect(trigger?.authenticationRef.name).toBe(auth?.metadata.name);
    for (const ref of auth?.spec?.secretTargetRef ?? [])
      expect(Object.keys(secret.stringData ?? {})).toContain(ref.key);
  });

  it('run the Redis that everybody runs', () => {
    const conf = of('ConfigMap').find((one) => one.metadata.name === 'redis')?.data?.['redis.conf'];
    expect(conf).toBe(file('infra/redis.conf'));
  });
});

describe('the Compose files', () => {
  it('take from the environment what .env.example has, and put no secret down', () => {
    const known = [...file('.env.example').matchAll(/^#?([A-Z][A-Z0-9_]+)=/gm)].map((m) => m[1] as string);
    const used = [...file('docker-compose.yml').matchAll(/(?<!\$)\$\{([A-Z][A-Z0-9_]+)/g)].map((m) => m[1] as string);
    const required = [...file('docker-compose.yml').matchAll(/\$\{([A-Z][A-Z0-9_]+):\?/g)].map((m) => m[1] as string);
    const filledIn = [...file('.env.example').matchAll(/^([A-Z][A-Z0-9_]+)=$/gm)].map((m) => m[1] as string);
    expect([...new Set(required)].sort()).toEqual([...filledIn].sort());
    // Images, ports and memory may be named too; what .env.example has is used.
    expect(known.filter((name) => !used.includes(name))).toEqual([]);
    const secretive = Object.values(main.services)
      .flatMap((service) => Object.entries(service.environment ?? {}))
      .filter(([name]) => /KEY|PASSWORD/.test(name));
    expect(secretive.length).toBeGreaterThan(5);
    for (const [name, value] of secretive) expect(value, name).toMatch(/^\$\{/);
  });

  it('start roles with arguments that the command line takes', () => {
    for (const name of COMPOSES)
      for (const [service, { image, command }] of Object.entries(compose(name).services))
        if (/rollout-farm\/(farm|engine-gate)\}/.test(image ?? '') && Array.isArray(command))
          expect(refusedArguments(command), `${name} ${service}`).toEqual([]);
    expect(help.serve).toContain('--config <');
  });

  it('bound every service, publish on loopback only, and keep Redis and the store from the world', () => {
    for (const [name, service] of Object.entries(main.services)) {
      expect(service.mem_limit, name).toBeDefined();
      for (const port of service.ports ?? []) expect(port, name).toMatch(/^\$\{FARM_BIND:-127\.0\.0\.1\}:/);
      if (service.profiles === undefined) {
        expect(service.healthcheck, name).toBeDefined();
        expect(service.stop_grace_period, name).toBeDefined();
        expect([service.read_only, service.cap_drop], name).toEqual([true, ['ALL']]);
      }
    }
    expect(main.networks?.data?.internal).toBe(true);
    for (const name of ['redis', 'store'])
      expect([main.services[name]?.networks, main.services[name]?.ports]).toEqual([['data'], undefined]);
  });

  it('mount files that exist, and give the engine’s socket to the gate alone', () => {
    for (const name of COMPOSES)
      for (const [service, { volumes = [] }] of Object.entries(compose(name).services))
        for (const volume of volumes) {
          const source = volume.replace(/^\$\{[A-Z_]+:-([^}]*)\}/, '$1').split(':')[0] as string;
          if (source.startsWith('./')) expect(existsSync(path.join(ROOT, source)), `${service} ${source}`).toBe(true);
          if (/docker\.sock/.test(volume)) expect(service, name).toBe('engine-gate');
        }
  });

  it('on a further machine have the same roles as on the first', () => {
    const further = compose('infra/compose/workers.yml').services;
    for (const [name, service] of Object.entries(further)) {
      const { networks: _networks, environment, depends_on: _waits, ...rest } = service;
      const { networks: _n, environment: there, depends_on: _w, ...first } = main.services[name] as Service;
      const withoutMessages = (value: unknown): unknown =>
        JSON.parse(JSON.stringify(value).replace(/:\?[^}]*\}/g, ':?}'));
      expect(withoutMessages(rest), name).toEqual(withoutMessages(first));
      expect(Object.keys(environment ?? {}).sort(), name).toEqual(Object.keys(there ?? {}).sort());
    }
  });
});

describe('what is drawn and scraped', () => {
  it('is something that the gateway says', () => {
    const dashboard = JSON.parse(file('infra/compose/grafana/dashboards/farm.json')) as {
      panels: { title: string; targets: { expr: string }[] }[];
    };
    const known = metrics();
    const asked = dashboard.panels.flatMap((panel) =>
      panel.targets.flatMap(({ expr }) => expr.match(/farm_[a-z_]+/g) ?? []),
    );
    expect(asked.length).toBeGreaterThan(12);
    expect(asked.filter((name) => !known.includes(name))).toEqual([]);
  });

  it('is found where Compose puts it', () => {
    const scrape = parse(file('infra/compose/prometheus.yml')) as {
      scrape_configs: {
        dns_sd_configs: { names: string[]; port: number }[];
        authorization: { credentials_file: string };
      }[];
    };
    const [job] = scrape.scrape_configs;
    expect(main.services[job?.dns_sd_configs[0]?.names[0] ?? '']?.ports?.[0]).toMatch(
      new RegExp(`:${job?.dns_sd_configs[0]?.port}$`),
    );
    expect(String(main.services.prometheus?.command)).toContain(job?.authorization.credentials_file);
    const source = parse(file('infra/compose/grafana/datasources/prometheus.yaml')) as {
      datasources: { uid: string; url: string }[];
    };
    expect(source.datasources[0]?.url).toBe('http://prometheus:9090');
    expect(file('infra/compose/grafana/dashboards/farm.json')).toContain(`"uid": "${source.datasources[0]?.uid}"`);
  });
});
