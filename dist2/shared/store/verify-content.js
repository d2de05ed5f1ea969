// What records say of the contents that they claim, kept until a shard's contents are read, then compared: the
// trajectory's total, steps and environment, and what its group was planned with; a report's verdict. Each content is
// parsed once, whatever number of members claim it. Contents above the account's bound are hashed and not compared.
import { messageOf } from '../errors.js';
import { parseJson } from '../json/json.js';
import { isMap } from '../json/value.js';
import { FORMAT_VERSION, integrityMismatches, parseTrajectory } from '../trajectory.js';
import { valueSha256 } from './planned-tasks.js';
/** A report puts a few levels around a platform's answer. */
const REPORT_DEPTH = 1_000;
export class ClaimedContents {
    account;
    tasks;
    trajectories = new Map();
    reports = new Map();
    constructor(account, tasks) {
        this.account = account;
        this.tasks = tasks;
    }
    expect(group, member, whose) {
        const claimant = { group, member, whose };
        add(this.trajectories, member.trajectory.sha256, claimant);
        if (member.report !== undefined)
            add(this.reports, member.report.sha256, claimant);
    }
    /** The content with this hash. Never throws. */
    inspect(digest, content) {
        const trajectories = this.trajectories.get(digest);
        if (trajectories !== undefined)
            this.trajectory(digest, content, trajectories);
        const reports = this.reports.get(digest);
        if (reports !== undefined)
            this.report(digest, content, reports);
    }
    trajectory(digest, content, claimants) {
        let trajectory;
        let configSha256;
        let actionSha256;
        try {
            trajectory = parseTrajectory(content, `claim sha256/${digest}`);
            configSha256 = valueSha256(trajectory.envConfig ?? null);
            actionSha256 = valueSha256(trajectory.transitions[0]?.action ?? null);
            for (const mismatch of integrityMismatches(trajectory))
                this.account.fault(`claim sha256/${digest}: ${mismatch}`);
            if (trajectory.version !== FORMAT_VERSION || trajectory.finalObservation === undefined)
                this.account.fault(`claim sha256/${digest}: is no trajectory of format ${FORMAT_VERSION}`);
        }
        catch (error) {
            this.account.fault(messageOf(error));
            return;
        }
        const { envId, seed, transitions } = trajectory;
        const total = Number(trajectory.totalReward);
        for (const { group, member, whose } of claimants) {
            const fault = (text) => this.account.fault(`${whose}: ${text} (sha256/${digest})`);
            if (transitions.length !== member.steps)
                fault(`has ${member.steps} steps, its trajectory ${transitions.length}`);
            if (envId !== member.certificate.env)
                fault(`its certificate names ${member.certificate.env}, not its trajectory's environment`);
            // A text earns nothing by itself: its reward is the verifier's alone.
            const earned = member.certificate.env === 'text' ? 0 : member.components.env;
            if (total !== earned)
                fault(`its trajectory's total is ${total}, its component env ${earned}`);
            if (this.tasks && !this.tasks.fitsSetting(group, { env: envId, seed, configSha256 }))
                fault('its trajectory was played in another environment, seed or config than was planned');
            if (this.tasks && !this.tasks.fitsAction(group, member.member, actionSha256))
                fault('its trajectory begins with another action than was planned');
        }
    }
    report(digest, content, claimants) {
        let certified;
        try {
            const report = parseJson(content.toString('utf8'), { duplicates: 'error', maxDepth: REPORT_DEPTH });
            certified = isMap(report) ? report.get('proof_checked') : undefined;
        }
        catch {
            // no JSON: no verdict either
        }
        if (typeof certified !== 'boolean') {
            this.account.fault(`claim sha256/${digest}: is no report of a verifier`);
            return;
        }
        for (const { member, whose } of claimants) {
            const said = member.components.certified;
            if (said !== undefined && said !== Number(certified))
                this.account.fault(`${whose}: its component certified is ${said}, its report says ${certified} (sha256/${digest})`);
        }
    }
}
function add(map, digest, claimant) {
    const list = map.get(digest);
    if (list)
        list.push(claimant);
    else
        map.set(digest, [claimant]);
}
