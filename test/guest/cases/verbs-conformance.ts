// The conformance suite over the verbs provider in a guest, on its rxe0.
import assert from 'node:assert/strict';
import { join } from 'node:path';

import type { Lab } from '../lab.js';
import { repositoryRoot } from '../paths.js';
import type { Case } from '../suite.js';
import { transcript } from './captured.js';

/** Connections, and every kind of transfer. */
const QUICK = 'Connecting|Transferring|Atomics|Datagrams';
const WHOLE_TIMEOUT_MS = 3_600_000;
const QUICK_TIMEOUT_MS = 600_000;
/** Fewer say that the suite, or the filter, has lost its groups. */
const LEAST = { quick: 50, whole: 300 } as const;

export function verbsConformanceCases(lab: Lab, version: string): Case[] {
  const sizes = [
    { size: 'quick', what: 'groups of the conformance suite', filter: QUICK },
    { size: 'whole', what: 'the conformance suite', filter: '' },
  ] as const;
  return sizes.map(({ size, what, filter }) => ({
    name: `verbs: ${what} over rxe`,
    row: {
      counterpart: 'rdma_rxe (libibverbs, librdmacm)',
      version,
      role: 'our verbs provider, both ends',
      transport: `rdma_cm, RC, UD, IPv4: ${what}`,
      mtuBytes: 4096,
    },
    full: size === 'whole',
    timeoutMs: size === 'whole' ? WHOLE_TIMEOUT_MS : QUICK_TIMEOUT_MS,
    run: () => conformance(lab, filter, LEAST[size]),
  }));
}

async function conformance(lab: Lab, filter: string, least: number): Promise<void> {
  await lab.setPathMtu(4096);
  const guest = lab.guest(0);
  const mocha = join(repositoryRoot, 'node_modules', 'mocha', 'bin', 'mocha.js');
  const suite = join(repositoryRoot, 'dist', 'test', 'guest', 'conformance', 'rxe.js');
  const options = `--no-config --no-package --timeout 60000 --reporter dot --grep '${filter}'`;
  const result = await guest.run(`exec '${process.execPath}' '${mocha}' ${options} '${suite}'`, {
    cwd: repositoryRoot,
    env: { RXE_PASSIVE: guest.ipv4 },
    timeoutMs: WHOLE_TIMEOUT_MS,
  });
  assert.equal(result.code, 0, transcript(result));
  const passing = Number(/(\d+) passing/.exec(result.stdout)?.[1]);
  assert.ok(passing >= least, `${passing} passing`);
}
