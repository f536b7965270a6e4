// What needs queue pairs of our own making: violations, late receives, UC and UD, either asking.
import assert from 'node:assert/strict';

import { type Lab, PATH_MTUS, type PathMtu } from '../lab.js';
import { hexOf, isNak, isRnr, OPCODE, type RocePacket, rocePackets } from '../roce.js';
import type { Case } from '../suite.js';
import { ACK_TIMEOUT_US, type Ends, openEnds } from '../verbs/manual-pair.js';
import { type PlayedWait, playNotReady } from '../verbs/not-ready.js';
import { rnrWaits } from '../verbs/rnr-waits.js';
import {
  addressOf,
  deviceEnd,
  FAMILIES,
  type Family,
  kernelEnd,
  type Requester,
  REQUESTERS,
  withEnds,
} from '../verbs/scene.js';
import { playUc, playUd, UC_PREFIX } from '../verbs/unreliable.js';
import { playViolations } from '../verbs/violations.js';
import { capturedFile } from './captured.js';
import { assertOpcodes } from './packet-checks.js';

interface Scene {
  readonly ends: Ends;
  readonly mtuBytes: PathMtu;
}

interface Play {
  readonly name: string;
  readonly transport: string;
  /** Returns the check of what was on the wire. */
  readonly play: (scene: Scene) => Promise<(packets: Wire) => void>;
}

/** What each side has sent. */
interface Wire {
  readonly requests: readonly RocePacket[];
  readonly responses: readonly RocePacket[];
}

const PLAYS: readonly Play[] = [
  { name: 'violations', transport: 'RC', play: violations },
  { name: 'late receives', transport: 'RC', play: notReady },
  { name: 'UC', transport: 'UC', play: unreliable },
  { name: 'UD', transport: 'UD', play: datagrams },
];

/** In the quick run each play has each role, family and MTU once. */
const isQuick = (family: Family, mtuBytes: PathMtu, requester: Requester): boolean =>
  (family === 'IPv4') === (mtuBytes === 1024) && (family === 'IPv4') === (requester === 'softroce');

export function verbsCases(lab: Lab, version: string): Case[] {
  return PLAYS.flatMap((play) =>
    FAMILIES.flatMap((family) =>
      PATH_MTUS.flatMap((mtuBytes) =>
        REQUESTERS.map((requester) => ({
          name: `${play.name}: ${requester} asks, ${family}, MTU ${mtuBytes}`,
          ...(!isQuick(family, mtuBytes, requester) && { full: true }),
          row: {
            counterpart: 'verbs-peer (libibverbs)',
            version,
            role: requester === 'softroce' ? 'requester' : 'responder',
            transport: `queue pairs by hand, ${play.transport}, ${family}, ${play.name}`,
            mtuBytes,
          },
          run: () => run(lab, play, { family, mtuBytes, requester }),
        })),
      ),
    ),
  );
}

async function run(
  lab: Lab,
  { name, play }: Play,
  how: { family: Family; mtuBytes: PathMtu; requester: Requester },
): Promise<void> {
  const { family, mtuBytes, requester } = how;
  await lab.setPathMtu(mtuBytes);
  const guest = lab.guest(0);
  let check: ((packets: Wire) => void) | undefined;
  const label = `${name.replaceAll(' ', '-')}-${requester}-${family}-${mtuBytes}`;
  const file = await capturedFile(lab, guest, label, () =>
    withEnds(deviceEnd(lab, family), kernelEnd(guest, family), async (ours, kernel) => {
      const ends = await (requester === 'softroce'
        ? openEnds(ours, kernel)
        : openEnds(kernel, ours));
      check = await play({ ends, mtuBytes });
    }),
  );
  const packets = rocePackets(file);
  const from = hexOf(addressOf(requester === 'softroce' ? lab.host : guest, family));
  const requests = packets.filter(({ source }) => source === from);
  check?.({ requests, responses: packets.filter(({ source }) => source !== from) });
}

async function violations({ ends, mtuBytes }: Scene) {
  const played = await playViolations(ends, mtuBytes);
  return ({ responses }: Wire): void => {
    for (const { name, nak, requesterQpn } of played) {
      const naks = responses
        .filter((packet) => packet.destinationQpn === requesterQpn && isNak(packet.syndrome))
        .map(({ syndrome }) => syndrome);
      assert.deepEqual(naks, nak === undefined ? [] : [nak], `NAKs to ${name}`);
    }
  };
}

async function notReady({ ends, mtuBytes }: Scene) {
  const waits = await playNotReady(ends, mtuBytes);
  return (wire: Wire): void => waits.forEach((wait) => assertWaits(wire, wait));
}

/** The timer is what was asked for, and nobody comes back sooner. */
function assertWaits(wire: Wire, { name, naks: bounds, qpns, timer }: PlayedWait): void {
  const of = (packets: readonly RocePacket[], qpn: number): RocePacket[] =>
    packets.filter(({ destinationQpn }) => destinationQpn === qpn);
  const requests = of(wire.requests, qpns.responder);
  const responses = of(wire.responses, qpns.requester);
  const { broken, crossings } = rnrWaits({ requests, responses, ackTimeoutUs: ACK_TIMEOUT_US });
  assert.deepEqual(broken, [], name);
  const naks = responses.filter(({ syndrome }) => isRnr(syndrome));
  const isRight = naks.length >= bounds.least && naks.length <= bounds.most + crossings;
  assert.ok(isRight, `${name}: ${naks.length} RNR NAKs, ${crossings} crossed`);
  const timers = new Set(naks.map(({ syndrome = 0 }) => syndrome & 0x1f));
  assert.deepEqual([...timers], [timer], `${name}: timers`);
}

async function unreliable({ ends, mtuBytes }: Scene) {
  const expected = await playUc(ends, mtuBytes);
  return ({ requests, responses }: Wire): void => {
    const opcodes = expected.requests.map((opcode) => UC_PREFIX | opcode);
    assertOpcodes('the requester', requests, opcodes);
    assert.equal(responses.length, 0, 'UC has no responses');
  };
}

async function datagrams({ ends, mtuBytes }: Scene) {
  await playUd(ends, mtuBytes);
  return ({ requests, responses }: Wire): void => {
    const { UD_SEND_ONLY, UD_SEND_ONLY_WITH_IMMEDIATE } = OPCODE;
    assertOpcodes('the requester', requests, [UD_SEND_ONLY, UD_SEND_ONLY_WITH_IMMEDIATE]);
    assert.equal(responses.length, 0, 'datagrams have no responses');
  };
}
