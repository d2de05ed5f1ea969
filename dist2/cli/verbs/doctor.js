// `farm doctor`: what is there, what is missing, and how to get it. Starts nothing that was not there, the embedded Redis
// aside, which goes by itself.
import { readConfig } from '../../shared/config.js';
import { EXIT, FarmError, messageOf } from '../../shared/errors.js';
import { connectRedis } from '../../shared/redis/connect.js';
import { DEFAULT_LIMITS } from '../../shared/sandbox.js';
import { openStoreAddress } from '../../shared/store/open.js';
import { engineReport } from '../engine-report.js';
import { requireSandbox } from '../needs.js';
import { redisReport } from '../redis-report.js';
export async function doctor(args) {
    const config = readConfig();
    const findings = [
        node(),
        await part('sandbox', () => sandbox(config)),
        await part('redis', () => redis(config)),
        await part('store', () => store(config)),
        ambertrace(config),
    ];
    if (args.json)
        process.stdout.write(`${JSON.stringify(findings)}\n`);
    else
        for (const f of findings) {
            process.stdout.write(`${f.ok ? 'ok     ' : 'MISSING'} ${f.part.padEnd(10)} ${f.found}\n`);
            if (f.hint)
                process.stdout.write(`                   ${f.hint}\n`);
        }
    return findings.every((f) => f.ok) ? EXIT.ok : EXIT.missing;
}
async function part(name, look) {
    try {
        const seen = await look();
        return { part: name, ok: true, ...(typeof seen === 'string' ? { found: seen } : seen) };
    }
    catch (error) {
        const hint = error instanceof FarmError ? error.hint : undefined;
        return { part: name, ok: false, found: messageOf(error), ...(hint === undefined ? {} : { hint }) };
    }
}
function node() {
    return { part: 'node', ok: true, found: process.version };
}
async function sandbox(config) {
    await requireSandbox(config, DEFAULT_LIMITS.image);
    return engineReport();
}
async function redis(config) {
    const connected = await connectRedis(config);
    try {
        const { warnings } = connected;
        return { found: await redisReport(connected), ...(warnings.length === 0 ? {} : { hint: warnings.join('; ') }) };
    }
    finally {
        connected.redis.disconnect();
    }
}
async function store(config) {
    const opened = await openStoreAddress(config.store);
    await opened.probe();
    await opened.close();
    return `${opened.address} can be written`;
}
function ambertrace(config) {
    const where = config.ambertraceBaseUrl ?? 'https://app.ambertrace.ai (default)';
    return {
        part: 'ambertrace',
        ok: true,
        found: config.ambertraceApiKey === null
            ? `no AMBERTRACE_API_KEY: verified tasks need one (${where})`
            : `a key is set, for ${where}; not asked`,
    };
}
