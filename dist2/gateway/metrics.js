// What the gateway counts, in Prometheus' text form (prometheus.io/docs/instrumenting/exposition_formats). Few labels,
// all of them from closed lists, so that no caller can make them grow.
export function prometheusText(samples) {
    const lines = [];
    for (const { name, help, kind, values } of samples) {
        if (values.length === 0)
            continue;
        lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`);
        for (const { suffix, labels, value } of values) {
            if (!Number.isFinite(value))
                continue;
            const pairs = Object.entries(labels ?? {}).map(([key, text]) => `${key}="${escaped(text)}"`);
            lines.push(`${name}${suffix ?? ''}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}`);
        }
    }
    return `${lines.join('\n')}\n`;
}
function escaped(text) {
    return text.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n');
}
const BUCKETS_S = [0.005, 0.025, 0.1, 0.25, 1, 2.5, 10, 60, 170];
/** Counts by labels. */
export class Counter {
    counts = new Map();
    add(labels, by = 1) {
        const key = JSON.stringify(labels);
        const entry = this.counts.get(key);
        if (entry)
            entry.value += by;
        else
            this.counts.set(key, { labels, value: by });
    }
    get values() {
        return [...this.counts.values()];
    }
}
class Times {
    counts = BUCKETS_S.map(() => 0);
    sum = 0;
    all = 0;
    add(seconds) {
        this.all++;
        this.sum += seconds;
        for (const [i, bound] of BUCKETS_S.entries())
            if (seconds <= bound)
                this.counts[i] = (this.counts[i] ?? 0) + 1;
    }
    values(labels) {
        return [
            ...BUCKETS_S.map((le, i) => ({
                suffix: '_bucket',
                labels: { ...labels, le: String(le) },
                value: this.counts[i] ?? 0,
            })),
            { suffix: '_bucket', labels: { ...labels, le: '+Inf' }, value: this.all },
            { suffix: '_sum', labels, value: this.sum },
            { suffix: '_count', labels, value: this.all },
        ];
    }
}
/** The gateway's own figures since its start. */
export class GatewayMetrics {
    requests = new Counter();
    samples = new Counter();
    noResult = new Counter();
    times = new Map();
    answered(call, status, seconds) {
        this.requests.add({ call, status: String(status) });
        const times = this.times.get(call) ?? new Times();
        this.times.set(call, times);
        times.add(seconds);
    }
    list() {
        return [
            {
                name: 'farm_gateway_requests_total',
                help: 'Requests answered, by call and status.',
                kind: 'counter',
                values: this.requests.values,
            },
            {
                name: 'farm_gateway_request_seconds',
                help: 'From the first byte to the answer.',
                kind: 'histogram',
                values: [...this.times].flatMap(([call, times]) => times.values({ call })),
            },
            {
                name: 'farm_gateway_samples_total',
                help: 'Samples scored, by call and status.',
                kind: 'counter',
                values: this.samples.values,
            },
            {
                name: 'farm_gateway_no_result_total',
                help: 'Samples without a result, by call and cause.',
                kind: 'counter',
                values: this.noResult.values,
            },
        ];
    }
}
