// `farm simulate`: the AmberTrace stand-in, until it is stopped. The base URL on stdout means that it is ready.
import { EXIT } from '../../shared/errors.js';
import { startSimulator } from '../../simulator/server.js';
export async function simulate(args) {
    const simulator = await startSimulator(args);
    const stopped = new Promise((resolve) => {
        process.once('SIGTERM', resolve);
        process.once('SIGINT', resolve);
    });
    process.stdout.write(`${simulator.baseUrl}\n`);
    process.stderr.write('AmberTrace stand-in: it speaks the wire and certifies nothing\n');
    await stopped;
    await simulator.close();
    return EXIT.ok;
}
