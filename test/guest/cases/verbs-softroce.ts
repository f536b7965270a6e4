// Our verbs provider in a guest against softroce on the host: every operation in every class of
// lengths, either asking, and a file moved by samples/transfer.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { type Lab, PATH_MTUS, type PathMtu } from '../lab.js';
import type { Case } from '../suite.js';
import { connectEnds, playOperations, wishesFor } from '../verbs/operations.js';
import { RemoteEnd } from '../verbs/remote-end.js';
import { addressOf, datEnd, FAMILIES, type Family } from '../verbs/scene.js';
import { converse, sample } from './verbs-programs.js';

const PORT = 7601;
const CASE_TIMEOUT_MS = 600_000;
/** Many slots, and not a multiple of anything. */
const FILE_BYTES = 5_000_011;

type Side = 'verbs' | 'softroce';
const SIDES: readonly Side[] = ['verbs', 'softroce'];

export function verbsSoftroceCases(lab: Lab, version: string): Case[] {
  const common = { counterpart: 'softroce on the host', version };
  const operations = FAMILIES.flatMap((family) =>
    PATH_MTUS.flatMap((mtuBytes) =>
      SIDES.map((requester) => ({
        name: `verbs: operations, ${requester} asks, ${family}, MTU ${mtuBytes}`,
        row: {
          ...{ ...common, mtuBytes },
          role: requester === 'verbs' ? 'requester, client' : 'responder, server',
          transport: `rdma_cm, RC, ${family}, our verbs provider on rxe: every operation`,
        },
        // Each side asks once, each family and MTU is there once.
        full:
          (family === 'IPv6') !== (mtuBytes === 4096) ||
          (requester === 'verbs') !== (family === 'IPv6'),
        timeoutMs: CASE_TIMEOUT_MS,
        run: () => operate(lab, { requester, family, mtuBytes }),
      })),
    ),
  );
  const transfers = FAMILIES.flatMap((family) =>
    SIDES.map((receiver) => ({
      name: `verbs: transfer, ${receiver} receives, ${family}`,
      row: {
        ...{ ...common, mtuBytes: 4096 },
        role: receiver === 'verbs' ? 'receiver' : 'sender',
        transport: `rdma_cm, RC, ${family}, our verbs provider on rxe: samples/transfer`,
      },
      full: (family === 'IPv4') !== (receiver === 'verbs'),
      timeoutMs: CASE_TIMEOUT_MS,
      run: () => transfer(lab, receiver, family),
    })),
  );
  return [...operations, ...transfers];
}

interface Asking {
  readonly requester: Side;
  readonly family: Family;
  readonly mtuBytes: PathMtu;
}

async function operate(lab: Lab, { requester, family, mtuBytes }: Asking): Promise<void> {
  await lab.setPathMtu(mtuBytes);
  const guest = lab.guest(0);
  const ours = await RemoteEnd.start(guest, addressOf(guest, family));
  const softroce = await datEnd(lab, family)();
  try {
    const [asks, answers] = requester === 'verbs' ? [ours, softroce] : [softroce, ours];
    const domains = { requester: await asks.domain(), responder: await answers.domain() };
    const machine = requester === 'verbs' ? lab.host : guest;
    const to = { address: addressOf(machine, family), port: PORT };
    const [pair, theirs] = await connectEnds(asks, answers, to, wishesFor(mtuBytes), domains);
    await playOperations({
      requester: { end: asks, pair },
      responder: { end: answers, pair: theirs },
      domains,
      mtuBytes,
      fences: requester === 'softroce',
    });
    assert.equal(await asks.ended(pair), 'BROKEN', 'how it ended for the requester');
    // rxe does not tell a responder that it has refused: then the peer's DREQ is the first to.
    const ended = await answers.ended(theirs);
    const may = requester === 'verbs' ? ['BROKEN'] : ['BROKEN', 'DISCONNECTED'];
    assert.ok(may.includes(ended), `how it ended for the responder: ${ended}`);
  } finally {
    await softroce.close();
    await ours.close();
  }
}

/** The file comes from the sender's machine; the receiver's has it in the end, byte by byte. */
async function transfer(lab: Lab, receiver: Side, family: Family): Promise<void> {
  await lab.setPathMtu(4096);
  const guest = lab.guest(0);
  const folder = mkdtempSync(join(tmpdir(), 'dapl-verbs-transfer-'));
  try {
    const bytes = randomBytes(FILE_BYTES);
    const digest = createHash('sha256').update(bytes).digest('hex');
    const file = join(folder, 'sent.bin');
    writeFileSync(file, bytes);
    const [to, from] = receiver === 'verbs' ? [guest, lab.host] : [lab.host, guest];
    const other = receiver === 'verbs' ? 'softroce' : 'verbs';
    const out = join(folder, 'received');
    const addresses = [to, from].map((machine) => addressOf(machine, family));
    await converse(
      {
        machine: to,
        command:
          `mkdir -p '${out}' && ${sample('transfer')} receive --provider ${receiver} ` +
          `--listen ${addresses[0]} --out '${out}'`,
        listening: /^Listening on/m,
        passed: /^Received .*sent\.bin/m,
      },
      {
        machine: from,
        command:
          `${sample('transfer')} send '${file}' --provider ${other} ` +
          `--from ${addresses[1]} --to ${addresses[0]}`,
        passed: new RegExp(`SHA-256 ${digest} verified by the receiver`),
      },
    );
    const received = join(out, 'sent.bin');
    if (to === guest) await guest.get(received, join(folder, 'copy.bin'));
    const copy = readFileSync(to === guest ? join(folder, 'copy.bin') : received);
    assert.equal(createHash('sha256').update(copy).digest('hex'), digest, 'what was received');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
