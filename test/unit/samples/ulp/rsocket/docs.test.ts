import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SESSION_TRANSITIONS } from '../../../../../samples/ulp/rsocket/session/index.js';
import { runExample } from '../../../../support/printed-program.js';

const page = readFileSync(join(import.meta.dirname, '../../../../../../docs/rsocket.md'), 'utf8');

describe('docs/rsocket.md', () => {
  it('has a web server over RDMA that runs', async () => {
    assert.equal((await runExample('rsocket')).stdout, '200 over RDMA\n');
  });

  it('has the states of a session as they are', () => {
    const inputs = ['shutdown', 'close', 'peer SHUTDOWN', 'peer DISCONNECT'] as const;
    for (const [state, row] of Object.entries(SESSION_TRANSITIONS)) {
      const cells = inputs.map((input) => {
        const { next, send } = row[input];
        if (next === state) return '';
        return send === undefined ? next : `${send} is sent: ${next}`;
      });
      const line = [state, ...cells].map((cell) => (cell === '' ? ' ' : ` ${cell} `)).join('|');
      assert.ok(page.includes(`|${line}|`), line);
    }
  });
});
