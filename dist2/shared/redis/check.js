// What a Redis must be before the farm trusts it with a ledger: there, ours to enter, new enough, written to, keeping what
// it has; and of Sentinels and clusters, what their name promises. Asked once, by connections that wait for nothing.
import { Cluster, Redis } from 'ioredis';
import { messageOf, missingError } from '../errors.js';
import { infoField } from './nodes.js';
import { redisRefusal, tlsRefusal, tooOld } from './refusal.js';
import { tlsObjection } from './tls.js';
const ASK_MS = 5_000;
const ONCE = {
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    connectTimeout: ASK_MS,
    commandTimeout: ASK_MS,
};
/** Throws FarmError (exit 3) with what is wrong and how to mend it. */
export async function checkRedis(place) {
    if (place.cluster !== undefined)
        return await checkCluster(place, place.cluster);
    if (place.options.sentinels)
        return await checkSentinels(place);
    return await asked(place, place.options, async (redis) => {
        const info = await redis.info();
        if (infoField(info, 'cluster_enabled') === '1')
            throw missingError('redis_is_cluster', `Redis at ${place.address} is a node of a cluster`, 'REDIS_URL=redis+cluster://HOST:PORT,… names a cluster by some of its nodes');
        await checkDatabase(redis, place);
        return await checkServers(place, [{ redis, where: place.address, info }], 'one server');
    });
}
/** Connects, asks, and goes; whatever fails is named. */
async function asked(place, to, ask) {
    const redis = new Redis({ ...to, ...ONCE });
    let fault = null;
    redis.on('error', (error) => {
        fault ??= error;
    });
    try {
        await redis.connect();
        return await ask(redis);
    }
    catch (error) {
        const refusal = redisRefusal(place.address, fault ?? error);
        const { host, port, tls } = to;
        if (refusal.code !== 'redis_unreachable' || tls === undefined || host === undefined || port === undefined)
            throw refusal;
        const objection = await tlsObjection({ host, port }, tls);
        throw objection === null ? refusal : tlsRefusal(place.address, objection);
    }
    finally {
        redis.disconnect();
    }
}
async function checkServers(place, servers, shape) {
    for (const { where, info } of servers)
        checkServer(where, info);
    const first = servers[0];
    const replicas = servers.reduce((sum, { info }) => sum + Number(infoField(info, 'connected_slaves') || 0), 0);
    const appendOnly = servers.every(({ info }) => infoField(info, 'aof_enabled') === '1');
    return {
        version: infoField(first.info, 'redis_version'),
        shape: replicas === 0 ? shape : `${shape}, ${replicas} replica${replicas === 1 ? '' : 's'}`,
        appendOnly,
        evicts: infoField(first.info, 'maxmemory_policy'),
        warnings: await warningsOf(place, servers, appendOnly, replicas),
    };
}
function checkServer(where, info) {
    const field = (name) => infoField(info, name);
    if (Number.parseInt(field('redis_version'), 10) < 7)
        throw tooOld(where, field('redis_version'));
    const policy = field('maxmemory_policy');
    if (policy !== '' && policy !== 'noeviction')
        throw missingError('redis_policy', `Redis at ${where} may evict keys (maxmemory-policy ${policy}): the ledger would lose members`, 'set maxmemory-policy noeviction');
    if (field('role') === 'slave')
        throw missingError('redis_replica', `Redis at ${where} is a replica and cannot be written`, 'point REDIS_URL at the primary');
}
async function warningsOf({ address, embedded }, servers, appendOnly, replicas) {
    const warnings = [];
    if (!appendOnly)
        warnings.push(`Redis at ${address} keeps no append-only file: if it ends, its runs are begun anew from their shards`);
    else if ((await Promise.all(servers.map(({ redis }) => fsyncOf(redis)))).some((fsync) => fsync !== 'always'))
        warnings.push(`Redis at ${address} does not run appendfsync always: a crash may lose what was acknowledged`);
    // INFO has the field only where the setting is on.
    const guarded = servers.every(({ info }) => infoField(info, 'min_slaves_good_slaves') !== '');
    if (!embedded && replicas > 0 && !guarded)
        warnings.push(`Redis at ${address} has replicas and no min-replicas-to-write: a master that is cut off goes on acknowledging what a failover then loses`);
    return warnings;
}
/** A database that the server does not have is silently the first one, where another farm may be. */
async function checkDatabase(redis, place) {
    const wanted = place.options.db ?? 0;
    if (wanted === 0)
        return;
    try {
        await redis.select(wanted);
    }
    catch (error) {
        throw missingError('redis_database', `Redis at ${place.address} has no database ${wanted}: ${messageOf(error)}`, 'name one that it has, /0 for the first', error);
    }
}
/** Managed servers refuse CONFIG: then it is not known, and nothing is said. */
async function fsyncOf(redis) {
    try {
        const answer = (await redis.call('CONFIG', 'GET', 'appendfsync'));
        return String(answer.flat()[1] ?? 'always');
    }
    catch {
        return 'always';
    }
}
/** Any of the Sentinels may know the master; that none does has its reason in what the last one said. */
async function checkSentinels(place) {
    const { sentinels = [], name = '', sentinelUsername, sentinelPassword, sentinelTLS, db, tls, family } = place.options;
    const { username, password } = place.options;
    const login = {
        ...(sentinelUsername ? { username: sentinelUsername } : {}),
        ...(sentinelPassword ? { password: sentinelPassword } : {}),
    };
    let refusal = null;
    for (const { host = '127.0.0.1', port = 26_379 } of sentinels) {
        const at = { ...place, address: `${place.address} (Sentinel ${host}:${port})` };
        const to = { host, port, ...login, ...(sentinelTLS ? { tls: sentinelTLS } : {}), family, enableReadyCheck: false };
        try {
            const { master, others, quorum } = await asked(at, to, (redis) => askSentinel(redis, at, name));
            const server = { ...master, username, password, db, tls, family };
            const shape = `master ${name} of ${others + 1} Sentinel${others === 0 ? '' : 's'} (quorum ${quorum})`;
            const reached = { ...place, address: `${master.host}:${master.port}, which is ${name} of ${place.address}` };
            const only = others === 0 ? [`only one Sentinel watches ${name}: nobody agrees with it on a failover`] : [];
            return await asked(reached, server, async (redis) => {
                const info = await redis.info();
                await checkDatabase(redis, { ...reached, options: server });
                const checked = await checkServers(reached, [{ redis, where: reached.address, info }], shape);
                return { ...checked, warnings: [...only, ...checked.warnings] };
            });
        }
        catch (error) {
            refusal = error;
        }
    }
    throw refusal ?? missingError('redis_url', 'REDIS_URL names no Sentinel');
}
async function askSentinel(redis, place, name) {
    const info = await redis.info('server');
    if (infoField(info, 'redis_mode') !== 'sentinel')
        throw missingError('redis_not_sentinel', `Redis at ${place.address} is no Sentinel`, 'redis+sentinel:// names the Sentinels, by their own port (26379), not the servers');
    const address = (await redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name));
    if (address === null) {
        const known = (await redis.call('SENTINEL', 'MASTERS'));
        const names = known.map((master) => fieldsOf(master).name).filter(Boolean);
        throw missingError('redis_sentinel_name', `the Sentinels at ${place.address} know no master ${name}`, `they know ${names.join(', ') || 'none'}`);
    }
    const fields = fieldsOf(await redis.call('SENTINEL', 'MASTER', name));
    return {
        master: { host: address[0], port: Number(address[1]) },
        others: Number(fields['num-other-sentinels'] ?? 0),
        quorum: Number(fields.quorum ?? 0),
    };
}
/** A map, as either protocol gives it. */
function fieldsOf(answer) {
    const flat = (Array.isArray(answer) ? answer : Object.entries(answer ?? {})).flat().map(String);
    const fields = {};
    for (let i = 0; i + 1 < flat.length; i += 2)
        fields[flat[i]] = flat[i + 1];
    return fields;
}
/** Any of the nodes may be away; that the cluster serves every slot is for one that answers to say. */
async function checkCluster(place, nodes) {
    let refusal = null;
    for (const { host, port } of nodes) {
        const at = { ...place, address: `${place.address} (node ${host}:${port})` };
        try {
            await asked(at, { ...place.options, host, port }, (redis) => askNode(redis, at));
            refusal = null;
            break;
        }
        catch (error) {
            refusal = error;
        }
    }
    if (refusal !== null)
        throw refusal;
    const { lazyConnect, retryStrategy: _, ...options } = ONCE;
    const cluster = new Cluster([...nodes], {
        lazyConnect,
        clusterRetryStrategy: () => null,
        slotsRefreshTimeout: ASK_MS,
        ...(place.options.tls ? { dnsLookup: (name, answer) => answer(null, name) } : {}),
        redisOptions: { ...place.options, ...options },
    });
    cluster.on('error', () => { });
    try {
        await cluster.connect();
        const servers = await Promise.all(cluster.nodes('master').map(async (redis) => {
            const where = `${redis.options.host}:${redis.options.port}, a node of ${place.address}`;
            return { redis, where, info: await redis.info() };
        }));
        return await checkServers(place, servers, `a cluster of ${servers.length} masters`);
    }
    catch (error) {
        const cause = error instanceof Error && 'lastNodeError' in error ? error.lastNodeError : error;
        throw redisRefusal(place.address, cause ?? error);
    }
    finally {
        cluster.disconnect();
    }
}
async function askNode(redis, place) {
    if (infoField(await redis.info('cluster'), 'cluster_enabled') !== '1')
        throw missingError('redis_not_cluster', `Redis at ${place.address} is not a node of a cluster`, 'a single server is redis://HOST:PORT');
    const state = String(await redis.call('CLUSTER', 'INFO'));
    if (infoField(state, 'cluster_state') === 'ok')
        return;
    throw missingError('redis_cluster_down', `the cluster at ${place.address} does not serve: ${infoField(state, 'cluster_slots_ok') || 0} of 16384 slots have a master that answers`, 'redis-cli --cluster check HOST:PORT tells what it lacks');
}
