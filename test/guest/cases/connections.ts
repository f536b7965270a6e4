// Many connections, at once and one after the other; the memory of our process stays what it was.
import assert from 'node:assert/strict';

import type { RunResult } from '../command.js';
import type { Lab } from '../lab.js';
import type { Case } from '../suite.js';
import { CM_ATTRIBUTE } from '../tshark.js';
import { captured, transcript } from './captured.js';
import { assertWholeLives, type Family, meet, type Role } from './cm-corners.js';

const AT_ONCE = [
  { count: 500, full: false },
  { count: 10_000, full: true },
] as const;
const IN_SEQUENCE = [
  { count: 200, full: false },
  { count: 10_000, full: true },
] as const;
/** One connection leaves nothing behind; the collector of garbage and the JIT leave this. */
const HEAP_GROWTH_BYTES = 4 << 20;
/** Per connection, of a machine that has other things to do; what is not counted has a minute. */
const CONNECTION_MS = 200;
const MINUTE_MS = 60_000;
/** The kernel's bound of what a listener may have waiting (rdma_ucm). */
const LONG_BACKLOG = 'echo 16384 > /proc/sys/net/rdma_ucm/max_backlog';

export function connectionCases(lab: Lab, version: string): Case[] {
  const of = (role: Role, what: string, count: number, full: boolean, atOnce: boolean): Case => {
    const family: Family = role === 'client' ? 'ipv4' : 'ipv6';
    return {
      name: `connections: ${count} ${what}, our ${role}`,
      full,
      timeoutMs: 2 * MINUTE_MS + count * CONNECTION_MS,
      row: {
        counterpart: 'cm-peer (librdmacm)',
        version,
        role,
        transport: `rdma_cm, RC, ${family === 'ipv4' ? 'IPv4' : 'IPv6'}, ${count} ${what}`,
        mtuBytes: 4096,
      },
      run: () => many(lab, { role, family, count, atOnce }),
    };
  };
  return (['client', 'server'] as const).flatMap((role) => [
    ...AT_ONCE.map(({ count, full }) => of(role, 'at once', count, full, true)),
    ...IN_SEQUENCE.map(({ count, full }) => of(role, 'in sequence', count, full, false)),
  ]);
}

interface Many {
  readonly role: Role;
  readonly family: Family;
  readonly count: number;
  readonly atOnce: boolean;
}

async function many(lab: Lab, { role, family, count, atOnce }: Many): Promise<void> {
  await lab.setPathMtu(4096);
  const guest = lab.guest(0);
  await guest.run(LONG_BACKLOG);
  const timeoutMs = MINUTE_MS + count * CONNECTION_MS;
  const name = `${count}-${atOnce ? 'at-once' : 'in-sequence'}-${role}`;
  const packets = await captured(lab, guest, name, async () => {
    if (atOnce) {
      const ourVerb = role === 'client' ? 'connect-all' : 'hold';
      const ends = { role, family, count, ourVerb, ourArgs: `${count} 0`, timeoutMs };
      assertWholeLives(await meet(lab, { ...ends, kernelHow: 'stay' }), count);
      return;
    }
    const ourVerb = role === 'client' ? 'connect-in-sequence' : 'accept-in-sequence';
    const kernelHow = role === 'client' ? 'stay' : 'sequence';
    const ends = { role, family, count, ourVerb, ourArgs: String(count), timeoutMs };
    const { ours, kernels } = await meet(lab, { ...ends, kernelHow });
    assert.deepEqual([ours.code, kernels.code], [0, 0], transcript(ours) + transcript(kernels));
    assertFlat(ours);
  });
  const requests = packets.filter(({ cmAttribute }) => cmAttribute === CM_ATTRIBUTE.REQ);
  const ids = new Set(requests.map(({ cm }) => cm.reqCommId));
  assert.equal(ids.size, count, `${ids.size} different connections`);
}

function assertFlat(result: RunResult): void {
  const grown = /^heap grew by (-?\d+) bytes/m.exec(result.stdout)?.[1];
  assert.ok(grown !== undefined, transcript(result));
  assert.ok(Number(grown) < HEAP_GROWTH_BYTES, `the heap grew by ${grown} bytes`);
}
