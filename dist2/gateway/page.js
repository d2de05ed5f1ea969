// The page at `/`: runs, how fast they go and what is waited for, without script or anything from elsewhere. It loads
// itself again. Whatever comes from a run is text, never markup.
import { nameOf } from './figures.js';
const STYLE = `
:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}
body{max-width:72rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.3rem .7rem .3rem 0;border-bottom:1px solid #8884;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}
.bad{color:#c33}.dim{opacity:.7}
progress{width:8rem}`;
export function pageOf(figures, missing) {
    const open = figures.runs.filter((run) => run.state !== 'done' && run.state !== 'cancelled');
    const over = figures.runs.filter((run) => !open.includes(run));
    const waits = open.flatMap((run) => run.waiting_for.map((one) => ({ run: run.run, ...one })));
    return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Rollout Farm</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><meta http-equiv="refresh" content="5"><style>${STYLE}</style></head><body>
<h1>Rollout Farm</h1>
<p>${missing.length === 0 ? 'Ready.' : `<span class="bad">Not ready: ${missing.map(text).join('; ')}</span>`}${figures.missing === null ? '' : ` <span class="bad">${text(figures.missing)}</span>`}</p>
<p class="dim">Workers: ${workersOf(figures)}. Queues: ${countsOf(figures.queues)}.</p>
<h2>Runs</h2>${tableOf(open, 'No run is open.')}
<h2>Waited for</h2>${waits.length === 0
        ? '<p class="dim">Nothing.</p>'
        : `<table><tr><th>run</th><th>member</th><th>phase</th><th>since</th><th>group closes in</th></tr>${waits
            .map((w) => `<tr><td>${text(w.run)}</td><td>${text(w.member)}</td><td>${text(w.phase)}</td><td class="n">${w.since_s} s</td><td class="n">${w.deadline_s === null ? '' : `${w.deadline_s} s`}</td></tr>`)
            .join('')}</table>`}
<h2>Verifiers</h2>${figures.upstreams.length === 0
        ? '<p class="dim">None was asked yet.</p>'
        : `<table><tr><th>upstream</th><th>breaker</th><th>waiting</th><th>under way</th></tr>${figures.upstreams
            .map((u) => `<tr><td>${text(nameOf(u))}</td><td${u.breaker === 'closed' && u.refused === null ? '' : ' class="bad"'}>${u.refused === null ? text(u.breaker) : `refused: ${text(u.refused)}`}</td><td class="n">${u.waiting}</td><td class="n">${u.inFlight}</td></tr>`)
            .join('')}</table>`}
<h2>Over</h2>${tableOf(over.slice(-20).reverse(), 'None yet.')}
</body></html>
`;
}
function tableOf(runs, none) {
    if (runs.length === 0)
        return `<p class="dim">${none}</p>`;
    const rows = runs.map((run) => {
        const { members, groups } = run;
        const causes = Object.entries(members.by_cause).map(([cause, n]) => `${n} ${cause}`);
        return `<tr><td>${text(run.run)}</td><td>${text(run.state)}${run.reason ? `<br><span class="dim">${text(run.reason)}</span>` : ''}</td>
<td><progress max="${Math.max(1, members.planned)}" value="${members.accepted}"></progress> ${members.accepted} of ${members.planned}</td>
<td class="n">${groups.closed}/${groups.planned}</td><td class="n">${run.rate_per_s === null ? '' : `${run.rate_per_s.toFixed(1)}/s`}</td><td class="n">${run.eta_s === null ? '' : `${run.eta_s} s`}</td><td>${members.no_result === 0 ? '' : text(causes.join(', '))}</td></tr>`;
    });
    return `<table><tr><th>run</th><th>state</th><th>members</th><th>groups</th><th>rate</th><th>to go</th><th>without result</th></tr>${rows.join('')}</table>`;
}
function workersOf({ workers }) {
    const counts = {};
    for (const { role } of workers)
        counts[role] = (counts[role] ?? 0) + 1;
    return countsOf(counts);
}
function countsOf(counts) {
    const parts = Object.entries(counts).map(([name, n]) => `${n} ${text(name)}`);
    return parts.length === 0 ? 'none' : parts.join(', ');
}
function text(raw) {
    return raw.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}
