// A throwaway authority, made by openssl for one test: a server's certificate, a client's, and an authority that nobody knows.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface Signed {
  cert: string;
  key: string;
}

export class TestAuthority {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'farm-test-ca-'));
  readonly ca = path.join(this.folder, 'ca.pem');
  private readonly key = path.join(this.folder, 'ca.key');

  constructor() {
    this.openssl('req', '-x509', ...this.fresh(this.key), '-out', this.ca, '-subj', '/CN=test authority', '-days', '2');
  }

  private fresh(key: string): string[] {
    return ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key];
  }

  private openssl(...args: string[]): void {
    execFileSync('openssl', args, { cwd: this.folder, stdio: 'ignore' });
  }

  /** `names`: as in `IP:127.0.0.1` and `DNS:redis.test`. */
  sign(name: string, names: string): Signed {
    const [cert, key, request, extra] = ['pem', 'key', 'csr', 'ext'].map((end) =>
      path.join(this.folder, `${name}.${end}`),
    ) as [string, string, string, string];
    writeFileSync(extra, `subjectAltName=${names}\n`);
    this.openssl('req', ...this.fresh(key), '-out', request, '-subj', `/CN=${name}`);
    const by = ['-CA', this.ca, '-CAkey', this.key, '-CAcreateserial'];
    this.openssl('x509', '-req', '-in', request, ...by, '-out', cert, '-days', '2', '-extfile', extra);
    return { cert, key };
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
