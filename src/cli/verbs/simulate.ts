// `farm simulate`: the AmberTrace stand-in, until it is stopped. The base URL on stdout means that it is ready.

import { EXIT } from '../../shared/errors.ts';
import { startSimulator } from '../../simulator/server.ts';

export async function simulate(args: {
  host: string;
  port: number;
  rulebooks: string[];
  misbehave?: string;
}): Promise<number> {
  const simulator = await startSimulator(args);
  const stopped = new Promise<void>((resolve) => {
    process.once('SIGTERM', resolve);
    process.once('SIGINT', resolve);
  });
  process.stdout.write(`${simulator.baseUrl}\n`);
  process.stderr.write('AmberTrace stand-in: it speaks the wire and certifies nothing\n');
  await stopped;
  await simulator.close();
  return EXIT.ok;
}
