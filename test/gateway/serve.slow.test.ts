import net, { type AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Simulator, startSimulator } from '../../src/simulator/server.ts';
import { type Command, TestFarm } from '../support/farm.ts';
import { call, completion, post } from '../support/gateway-fixture.ts';
import { freePort } from '../support/port.ts';
import { TIMED } from '../support/timed.ts';
import { until } from '../support/until.ts';

let simulator: Simulator;
let farm: TestFarm;

beforeEach(async () => {
  simulator = await startSimulator();
  farm = new TestFarm({ AMBERTRACE_API_KEY: 'at_serve_test', AMBERTRACE_BASE_URL: simulator.baseUrl });
});
afterEach(async () => {
  await farm.close();
  await simulator.close();
});

const yaml = () => farm.file('grants.yaml', 'domain:\n  platform_id: 1\n');
const ready = (command: Command): Promise<string> =>
  until('the gateway says where it is', () => /^http:\S+/.exec(command.stdout)?.[0]);
const body = { prompts: ['p'], completions: [completion(30)] };

describe('farm serve', () => {
  test('says where it is, scores, and ends with 143 when it is asked to, what is under way included', async () => {
    const command = farm.start(
      'serve',
      '--port',
      '0',
      '--config',
      `grants=${yaml()}`,
      '--config',
      yaml().replace('grants', './grants'),
    );
    expect((await command.ended).stderr).toContain('the name grants is given twice');
    const second = farm.file('other.yaml', 'domain:\n  platform_id: 1\nverifier: {floor: -0.25}\n');
    const serve = farm.start('serve', '--port', '0', '--config', yaml(), '--config', `strict=${second}`);
    const url = await ready(serve);
    const reply = await post(`${url}/v1/score`, body);
    expect(reply.json.outcomes[0]).toMatchObject({ status: 'completed', report: { proof_checked: true } });
    const strict = await post(`${url}/v1/score`, { ...body, completions: ['nothing'], config: 'strict' });
    expect(strict.json.rewards).toEqual([-0.25]);
    serve.process.kill('SIGTERM');
    const { code, stdout } = await serve.ended;
    expect([code, stdout]).toEqual([143, `${url}\n`]);
    await farm.gone();
  });

  test('what cannot be served is said before anything is bound', async () => {
    const taken = net.createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const port = String((taken.address() as AddressInfo).port);
    const [open, broken, none, busy] = await Promise.all([
      farm.run('serve', '--host', '0.0.0.0', '--port', '0'),
      farm.run('serve', '--port', '0', '--config', farm.file('broken.yaml', 'domain: {platform_id: x}\n')),
      farm.run('serve', '--port', '0', '--config', 'x=/nowhere.yaml'),
      farm.run('serve', '--port', port),
    ]);
    expect([open.code, broken.code, none.code, busy.code]).toEqual([2, 2, 2, 3]);
    expect(open.stderr).toContain('FARM_API_KEY');
    expect(broken.stderr).toContain('platform_id');
    expect(busy.stderr).toContain('--port');
    taken.close();
  });

  test('a gateway that was killed is back on its port as soon as it is started again', TIMED, async () => {
    const start = performance.now();
    const first = farm.start('serve', '--port', String(await freePort()), '--config', yaml());
    const url = await ready(first);
    const usual = performance.now() - start;
    await post(`${url}/v1/score`, body);
    first.process.kill('SIGKILL');
    await first.ended;
    const began = performance.now();
    farm.start('serve', '--port', new URL(url).port, '--config', yaml());
    await until('it answers', () =>
      call(`${url}/healthz`).then(
        (reply) => reply.status === 200,
        () => false,
      ),
    );
    // On a quick machine within a second (OpenRLHF gives up a connection after five); it waits for no word of the dead
    // one's to grow old (15 s).
    expect(performance.now() - began).toBeLessThan(usual + 10_000);
    expect((await post(`${url}/v1/score`, body)).json.outcomes[0].status).toBe('completed');
  });
});

describe('farm up', () => {
  test('brings the gateway along, starts it again when it dies, and takes it down at the end', async () => {
    const port = await freePort();
    const up = farm.start('up', '--port', String(port), '--config', yaml());
    const url = `http://127.0.0.1:${port}`;
    const answers = () =>
      post(`${url}/v1/score`, body).then(
        (reply) => reply.status === 200,
        () => false,
      );
    await until('the gateway answers', answers);
    const spec = {
      name: 'over-http',
      group_size: 2,
      tasks: [{ id: 't', env: 'guess', config: { low: 1, high: 1 } }],
      policy: { kind: 'scripted', actions: [1] },
    };
    await until('the workers are there', async () => (await post(`${url}/v1/runs?run_id=up-run`, spec)).status === 201);
    await until('the run is over', async () => (await call(`${url}/v1/runs/up-run`)).json.state === 'done');
    const gateway = farm.processes.find((one) => one.command.includes(' serve '));
    expect(gateway).toBeDefined();
    process.kill(gateway?.pid as number, 'SIGKILL');
    await until('it is gone', async () => !(await answers()));
    await until('another one answers', answers);
    up.signalGroup('SIGINT');
    expect((await up.ended).code).toBe(130);
    await farm.gone({ withinMs: 60_000 });
  });

  test('a port that was asked for and is taken is exit 3', async () => {
    const taken = net.createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { code, stderr } = await farm.run('up', '--port', String((taken.address() as AddressInfo).port));
    expect(code).toBe(3);
    expect(stderr).toContain('cannot listen');
    taken.close();
    await farm.gone();
  });
});
