import assert from 'node:assert/strict';
import { CompletionFlags, MemPrivileges, RemoteSegment } from '../../../core/index.js';
import { type BadInput, refuses, wrong } from '../../support/bad-input.js';
import { connected } from '../../support/fake-endpoints.js';

const REMOTE = { address: 0n, rmrContext: 0 };
const HUGE = Number.MAX_SAFE_INTEGER + 1;

/** Calls on a connected endpoint and its adapter, each with one thing wrong. */
const ROWS: readonly BadInput[] = [
  ['segments undefined', (b) => b.ep.postSend(wrong(undefined)), 'DAT_INVALID_ARG3', /undefined/],
  [
    'segment of bytes',
    (b) => b.ep.postSend(wrong([new Uint8Array(1)])),
    'DAT_INVALID_ARG3',
    /a Uint8Array/,
  ],
  [
    'too many segments',
    (b) => b.ep.postSend(Array(5).fill(b.lmr.segment())),
    'DAT_INVALID_ARG2',
    /is 5; it must be <= 4/,
  ],
  ['cookie negative', (b) => b.ep.postSend([], -1), 'DAT_INVALID_ARG4', /cookie is -1/],
  ['cookie fraction', (b) => b.ep.postRecv([], 0.5), 'DAT_INVALID_ARG4', /0\.5/],
  ['cookie bigint', (b) => b.ep.postSend([], wrong(1n)), 'DAT_INVALID_ARG4', /1n/],
  ['cookie too large', (b) => b.ep.postSend([], HUGE), 'DAT_INVALID_ARG4', /2\^53 - 1/],
  ['flags unknown', (b) => b.ep.postSend([], 0, 0x40), 'DAT_INVALID_ARG5', /flags is 64/],
  ['flags not a number', (b) => b.ep.postSend([], 0, wrong('x')), 'DAT_INVALID_ARG5', /"x"/],
  [
    'unsignalled not allowed',
    (b) => b.ep.postSend([], 0, CompletionFlags.UNSIGNALLED),
    'DAT_INVALID_ARG5',
    /of SUPPRESS\|SOLICITED_WAIT\|BARRIER_FENCE/,
  ],
  [
    'solicited write',
    (b) => b.ep.postRdmaWrite([], 0, REMOTE, CompletionFlags.SOLICITED_WAIT),
    'DAT_INVALID_ARG6',
    /flags is 2/,
  ],
  ['suppressed receive', (b) => b.ep.postRecv([], 0, 1), 'DAT_INVALID_ARG5', /DEFAULT/],
  [
    'remote missing',
    (b) => b.ep.postRdmaWrite([], 0, wrong(undefined)),
    'DAT_INVALID_ARG5',
    /remote is undefined/,
  ],
  [
    'remote address a number',
    (b) => b.ep.postRdmaRead([], 0, wrong({ address: 1, rmrContext: 1 })),
    'DAT_INVALID_ARG5',
    /bigint from 0/,
  ],
  [
    'remote address negative',
    (b) => b.ep.postRdmaRead([], 0, { address: -1n, rmrContext: 1 }),
    'DAT_INVALID_ARG5',
    /-1n/,
  ],
  [
    'remote context too large',
    (b) => b.ep.postRdmaRead([], 0, { address: 1n, rmrContext: 2 ** 32 }),
    'DAT_INVALID_ARG5',
    /4294967296/,
  ],
  [
    'remote past 2^64',
    () => new RemoteSegment({ address: 2n ** 64n - 1n, rmrContext: 1 }).seek(1),
    'DAT_INVALID_ARG1',
    /passes 2\^64/,
  ],
  ['segment outside', (b) => b.lmr.segment(4000, 97), 'DAT_INVALID_ARG2', /from 0 to 96/],
  ['segment offset', (b) => b.lmr.segment(4097), 'DAT_INVALID_ARG1', /from 0 to 4096/],
  ['segment offset text', (b) => b.lmr.segment(wrong('1')), 'DAT_INVALID_ARG1', /"1"/],
  [
    'foreign zone',
    (b) => b.ep.postSend(b.ia.allocate(8, { pz: b.ia.createPz() }).segment()),
    'DAT_PROTECTION_READ',
    /belongs to protection zone/,
  ],
  [
    'no local write',
    (b) =>
      b.ep.postRecv(b.ia.allocate(8, { pz: b.pz, privileges: MemPrivileges.LOCAL_READ }).segment()),
    'DAT_PRIVILEGES_WRITE',
    /without LOCAL_WRITE/,
  ],
  [
    'no local read',
    (b) =>
      b.ep.postSend(
        b.ia.allocate(8, { pz: b.pz, privileges: MemPrivileges.REMOTE_WRITE }).segment(),
      ),
    'DAT_PRIVILEGES_READ',
    /without LOCAL_READ/,
  ],
];

describe('bad input to posts', () => {
  for (const row of ROWS) {
    it(`is refused by name and value: ${row[0]}`, async () => {
      const bench = await connected();
      refuses(bench, row);
      // Nothing is lost: the endpoint works as before.
      assert.equal(bench.device.qp.sendRing.producer, 0);
      bench.ep.postSend(bench.lmr.segment(), 1);
      assert.equal(bench.device.qp.work[0]?.cookie, 1);
    });
  }
});
