// perftest's programs, which retire what they have sent by what comes back: against ours on the
// host, both roles, asleep (-e) and polling, and in the capture each of our answers behind its ACK.
import assert from 'node:assert/strict';

import { isLatency, type Test } from '../../../bench/verbs/workload.js';
import type { Lab } from '../lab.js';
import type { Case } from '../suite.js';
import type { Dissection } from '../tshark.js';
import { captured } from './captured.js';
import {
  converse,
  listensByCm,
  node,
  type Places,
  type Program,
  type Server,
} from './verbs-programs.js';

export type Role = 'server' | 'client';

export interface PerftestLoad {
  readonly program: Test;
  readonly bytes: number;
  readonly iterations: number;
  /** It sleeps until a completion comes (-e): ib_write_lat has no such thing. */
  readonly sleeps?: boolean;
}

const MTU_BYTES = 4096;
const CASE_TIMEOUT_MS = 300_000;
const PEER = node('test', 'guest', 'peer', 'verbs-perftest.js');
const COMPLAINT = /Failed|Unable|Couldn't|Bad wc|Unexpected/;

const LOADS: readonly PerftestLoad[] = [
  { program: 'ib_send_lat', bytes: 64, iterations: 300, sleeps: true },
  { program: 'ib_send_lat', bytes: 64, iterations: 300 },
  { program: 'ib_send_lat', bytes: 5000, iterations: 300, sleeps: true },
  { program: 'ib_write_lat', bytes: 64, iterations: 300 },
  { program: 'ib_write_lat', bytes: 5000, iterations: 300 },
];

/** BTH opcodes: the last packet of a SEND or WRITE of RC, and an ACK. */
const OPCODE = { ENDS: [0x02, 0x04, 0x08, 0x0a], ACKNOWLEDGE: 0x11 } as const;
/** PSNs that an ACK covers at most here: one message is under way. */
const COVERED = 64;
const PSN_MASK = 0xffffff;

export function perftestCases(lab: Lab, version: string): Case[] {
  return LOADS.flatMap((load, index) =>
    (['server', 'client'] as const).map((role): Case => {
      const { program, bytes, iterations, sleeps = false } = load;
      const what = `${iterations} of ${bytes} B${sleeps ? ', -e' : ''}`;
      return {
        name: `perftest: ${program}, our ${role}, ${what}`,
        row: {
          ...{ counterpart: program, version, role, mtuBytes: MTU_BYTES },
          transport: `rdma_cm, RC, IPv4: ${what}`,
        },
        full: index > 0,
        timeoutMs: CASE_TIMEOUT_MS,
        run: async () => {
          await lab.setPathMtu(MTU_BYTES);
          const guest = lab.guest(0);
          const ends = { ours: lab.host, theirs: guest };
          const at = { ...ends, ourAddress: lab.host.ipv4, theirAddress: guest.ipv4 };
          const name = `perftest-${program}-${role}-${bytes}-${String(sleeps)}`;
          const packets = await captured(lab, guest, name, () =>
            converse(...perftest(role, load, 'softroce', at)),
          );
          assertAnswersBehindAcks(packets, lab.host.ipv4);
        },
      };
    }),
  );
}

/** Nothing of ours that ends a message leaves before all that has come is acknowledged. */
function assertAnswersBehindAcks(packets: readonly Dissection[], own: string): void {
  let unacknowledged: number[] = [];
  let answers = 0;
  const seen = new Set<string>();
  for (const { frame, source, opcode = -1, psn, destinationQpn } of packets) {
    // A packet that is repeated for want of its own ACK crosses what it does not answer.
    const packet = `${source} ${destinationQpn} ${psn} ${opcode}`;
    if (opcode !== OPCODE.ACKNOWLEDGE && seen.has(packet)) continue;
    seen.add(packet);
    const ends = OPCODE.ENDS.some((known) => known === opcode);
    if (source !== own) {
      if (ends) unacknowledged.push(psn);
    } else if (opcode === OPCODE.ACKNOWLEDGE) {
      unacknowledged = unacknowledged.filter((last) => ((psn - last) & PSN_MASK) > COVERED);
    } else if (ends) {
      assert.deepEqual(unacknowledged, [], `frame ${frame} has left before an ACK`);
      answers += 1;
    }
  }
  assert.ok(answers > 0, 'the capture has no message of ours');
}

/**
 * What the client has measured has arrived as it prints it. The figure itself is not judged: on a
 * busy machine perftest may not find out how fast its clock is ("Correlation coefficient r^2"), and
 * with -F it goes on and reports 0.00.
 */
export function assertReportArrived(served: string, asked: string): void {
  const told = /^it says (\d+) of (\d+) B, on average (\S+) MiB\/s$/m.exec(served);
  const printed = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(\S+)\s+\S+\s*$/m.exec(asked);
  assert.ok(told !== null && printed !== null, `no report: ${served}; ${asked}`);
  const [, iterations, bytes, average] = told;
  assert.deepEqual([bytes, iterations, average], [printed[1], printed[2], printed[4]], asked);
}

/** perftest's -R: rdma_cm connects, and carries what the two sides tell each other. */
export function perftest(
  role: Role,
  { program, bytes, iterations, sleeps = false }: PerftestLoad,
  provider: 'verbs' | 'softroce',
  { ours, theirs, ourAddress, theirAddress }: Omit<Places, 'udapl'>,
): readonly [Server, Program] {
  const bandwidth = isLatency(program) ? '' : '-t 64 -Q 1';
  const how = `${bandwidth}${sleeps ? '-e' : ''}`;
  const letters = `-R -d rxe0 -F -m ${MTU_BYTES} -s ${bytes} -n ${iterations} ${how}`;
  const words = `${program} ${bytes} ${iterations} ${MTU_BYTES}`;
  const line = new RegExp(`^\\s*${bytes}\\s+${iterations}\\s`, 'm');
  if (role === 'server') {
    return [
      {
        machine: ours,
        command: `${PEER} ${provider} server ${ourAddress} ${words}`,
        listening: /^listening/m,
        passed: isLatency(program) ? /^done$/m : /^our memory is [^]*^done$/m,
        ...(isLatency(program) ? {} : { agrees: assertReportArrived }),
      },
      {
        machine: theirs,
        command: `${program} ${letters} ${ourAddress}`,
        ...{ passed: line, complaint: COMPLAINT },
      },
    ];
  }
  // On the host, where addresses of other cases may be; a guest has one.
  const from = provider === 'softroce' ? ourAddress : '';
  return [
    {
      machine: theirs,
      command: `stdbuf -oL ${program} ${letters} --source_ip ${theirAddress}`,
      ...{ listening: /Waiting for client/, until: listensByCm(program) },
      ...{ passed: line, complaint: COMPLAINT },
    },
    {
      machine: ours,
      command: `${PEER} ${provider} client ${theirAddress} ${words} ${from}`,
      passed: /^done$/m,
    },
  ];
}
