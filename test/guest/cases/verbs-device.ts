// The verbs device without anything above it: every operation between two queue pairs of one
// process, over the guest's rxe0 (test/guest/peer/verbs-loop.ts); and with all that may be wrapped
// around a provider (verbs-wrapped.ts).
import assert from 'node:assert/strict';
import { join } from 'node:path';

import type { Lab } from '../lab.js';
import { repositoryRoot } from '../paths.js';
import type { Case } from '../suite.js';
import { transcript } from './captured.js';

const PROGRAMS = join(repositoryRoot, 'dist/test/guest/peer');
/** Under emulation, Node alone takes seconds to start. */
const TIMEOUT_MS = 120_000;

export function verbsDeviceCases(lab: Lab, version: string): Case[] {
  return [
    {
      name: 'verbs: every operation between two queue pairs of one process',
      row: {
        counterpart: 'itself, through the kernel',
        version,
        role: 'verbs device',
        transport: 'RC, UC, UD, SRQ and windows by hand, IPv4, our verbs provider on rxe',
        mtuBytes: 1024,
      },
      timeoutMs: TIMEOUT_MS,
      run: () => passes(lab, 'verbs-loop.js rxe0'),
    },
    {
      name: 'verbs: strict, observe, trace, metrics and faults around the provider',
      row: {
        counterpart: 'itself, through the kernel',
        version,
        role: 'verbs provider, wrapped',
        transport: 'rdma_cm, RC, IPv4: strict, observe, trace, metrics, faults of sends',
        mtuBytes: 1024,
      },
      timeoutMs: TIMEOUT_MS,
      run: () => passes(lab, `verbs-wrapped.js ${lab.guest(0).ipv4} rxe0`),
    },
    {
      name: 'verbs: one byte more than the longest message, by DAT, flow and rsockets',
      row: {
        counterpart: 'itself, through the kernel',
        version,
        role: 'verbs provider, both ends',
        transport: 'rdma_cm, RC, IPv4: 8 MiB + 1 refused with the limit, or split',
        mtuBytes: 4096,
      },
      timeoutMs: TIMEOUT_MS,
      run: async () => {
        await lab.setPathMtu(4096);
        await passes(lab, `verbs-limits.js ${lab.guest(0).ipv4} rxe0`);
      },
    },
  ];
}

async function passes(lab: Lab, words: string): Promise<void> {
  const program = `'${process.execPath}' --enable-source-maps ${PROGRAMS}/${words}`;
  const result = await lab.guest(0).run(program, { timeoutMs: TIMEOUT_MS });
  assert.equal(result.code, 0, transcript(result));
  assert.match(result.stdout, /all checks passed/);
}
