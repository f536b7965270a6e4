// Every operation of RC in every class of lengths: DAT against the kernel's verbs, either asking.
import assert from 'node:assert/strict';

import { type Lab, NETDEV_MTU_BYTES, PATH_MTUS, type PathMtu } from '../lab.js';
import { hexOf, isNak, isReadResponse, OPCODE, type RocePacket, rocePackets } from '../roce.js';
import type { Case } from '../suite.js';
import { NAK } from '../verbs/violations.js';
import { connectEnds, playOperations, wishesFor } from '../verbs/operations.js';
import type { ExpectedPackets } from '../verbs/round.js';
import {
  addressOf,
  datEnd,
  FAMILIES,
  type Family,
  kernelEnd,
  type Requester,
  REQUESTERS,
  withEnds,
} from '../verbs/scene.js';
import { capturedFile } from './captured.js';
import { assertOpcodes } from './packet-checks.js';

const PORT = 7600;

/** Each family once and each MTU once, for the quick run. */
const isQuick = (family: Family, mtuBytes: PathMtu): boolean =>
  (family === 'IPv4') === (mtuBytes === 1024);

export function operationsCases(lab: Lab, version: string): Case[] {
  return FAMILIES.flatMap((family) =>
    PATH_MTUS.flatMap((mtuBytes) =>
      REQUESTERS.map((requester) => ({
        name: `operations: ${requester} asks, ${family}, MTU ${mtuBytes}`,
        ...(!isQuick(family, mtuBytes) && { full: true }),
        row: {
          counterpart: 'verbs-peer (libibverbs, librdmacm)',
          version,
          role: requester === 'softroce' ? 'requester, client' : 'responder, server',
          transport: `rdma_cm, RC, ${family}, every operation, 0 B to 1 MiB+3`,
          mtuBytes,
        },
        run: () => run(lab, family, mtuBytes, requester),
      })),
    ),
  );
}

async function run(
  lab: Lab,
  family: Family,
  mtuBytes: PathMtu,
  requester: Requester,
): Promise<void> {
  await lab.setPathMtu(mtuBytes);
  const guest = lab.guest(0);
  const name = `operations-${requester}-${family}-${NETDEV_MTU_BYTES[mtuBytes]}`;
  let expected: ExpectedPackets | undefined;
  const file = await capturedFile(lab, guest, name, () =>
    withEnds(datEnd(lab, family), kernelEnd(guest, family), async (ours, kernel) => {
      const [asks, answers] = requester === 'softroce' ? [ours, kernel] : [kernel, ours];
      const domains = { requester: await asks.domain(), responder: await answers.domain() };
      const machine = requester === 'softroce' ? guest : lab.host;
      const to = { address: addressOf(machine, family), port: PORT };
      const wishes = wishesFor(mtuBytes);
      const [pair, theirs] = await connectEnds(asks, answers, to, wishes, domains);
      expected = await playOperations({
        requester: { end: asks, pair },
        responder: { end: answers, pair: theirs },
        domains,
        mtuBytes,
        fences: requester === 'softroce',
      });
      assert.equal(await ours.ended(asks === ours ? pair : theirs), 'BROKEN');
    }),
  );
  assert.ok(expected);
  const from = hexOf(addressOf(requester === 'softroce' ? lab.host : guest, family));
  assertPackets(rocePackets(file), from, expected);
}

function assertPackets(packets: readonly RocePacket[], from: string, expected: ExpectedPackets) {
  const requests = packets.filter(({ source }) => source === from);
  const responses = packets.filter(({ source }) => source !== from);
  assertOpcodes('the requester', requests, expected.requests);
  // A requester may read in pieces, which changes what is first, middle and last.
  const packetsOfReads = responses.filter(({ opcode }) => isReadResponse(opcode)).length;
  const atLeast = expected.responses.filter(isReadResponse).length;
  assert.ok(packetsOfReads >= atLeast, `${packetsOfReads} packets of reads, not ${atLeast}`);
  const answers = new Set([...expected.responses, OPCODE.ACKNOWLEDGE]);
  assertOpcodes('the responder', responses, [...answers]);
  const solicited = requests.filter(({ isSolicited }) => isSolicited).length;
  assert.ok(solicited >= expected.solicited, `${solicited} packets solicit an event`);
  const naks = responses.map(({ syndrome }) => syndrome).filter(isNak);
  // The guest's network card drops what comes while its ring is full; that is asked for again.
  const refusals = naks.filter((syndrome) => syndrome !== NAK.PSN_SEQUENCE);
  assert.deepEqual(refusals, [NAK.REMOTE_ACCESS], 'NAKs');
}
