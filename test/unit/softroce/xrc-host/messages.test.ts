/** What openers and the host of an XRC domain say to each other. */
import assert from 'node:assert/strict';
import { BYTES_AS, withBytesAs } from '../../../support/same-bytes.js';
import {
  decode,
  encode,
  MAX_MESSAGE_BYTES,
  type Message,
} from '../../../../providers/softroce/xrc-host/messages.js';

const GID = Uint8Array.from({ length: 16 }, (_, i) => i);
const HANDED = { mad: new Uint8Array(256).fill(7), gid: GID, localGidIndex: 1, udpPort: 4791 };

const MESSAGES: readonly Message[] = [
  { op: 'open', mode: 'exclusive', id: 1 },
  {
    op: 'addRegion',
    zone: 1,
    key: 0xffffffff,
    access: 7,
    iova: 0xfedcba9876543210n,
    memoryBytes: 2 ** 40,
    offset: 4096,
    lengthBytes: 2 ** 33,
    id: 0xffffffff,
  },
  { op: 'addQueue', zone: 1, srqn: 0xffffff, maxWr: 16, maxSge: 4, id: 2 },
  {
    op: 'modify',
    qpn: 17,
    attributes: { state: 2, addressVector: { gid: Uint8Array.of(0, 1, 255) } },
    id: 3,
  },
  { op: 'createTarget', owner: 'domain', id: 4 },
  { op: 'repeat', ...HANDED, id: 5 },
  {
    op: 'accept',
    qpn: 17,
    ...HANDED,
    privateData: new Uint8Array(196),
    responderResources: 255,
    initiatorDepth: 0,
    retryCount: 7,
    rnrRetryCount: 7,
    minRnrTimer: 31,
    accessFlags: 15,
    id: 6,
  },
  { note: 'look' },
  { note: 'targetEvent', qpn: 17, event: 3 },
  {
    note: 'connectionEvent',
    qpn: 17,
    event: { type: 'established', privateData: new Uint8Array(0) },
  },
  { answer: 3, value: { state: 2 } },
  { answer: 4, code: 'EINVAL', message: 'no target 5' },
];

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('softroce: messages of XRC hosts', () => {
  it('are read as they were written', () => {
    for (const message of MESSAGES) assert.deepEqual(decode(encode(message)), message);
  });

  for (const [kind, bytesAs] of Object.entries(BYTES_AS)) {
    it(`bytes are bytes, as ${kind}`, () => {
      for (const message of MESSAGES) {
        assert.deepEqual(decode(bytesAs(encode(withBytesAs(message, bytesAs)))), message);
      }
    });
  }

  it('are refused where they are of no kind, or a field is not what the table says', () => {
    const bad: readonly [string, RegExp][] = [
      ['', /no JSON/],
      ['{"op":', /no JSON/],
      ['7', /no object/],
      ['null', /no object/],
      ['{}', /of no kind/],
      ['{"op":"constructor","id":1}', /of no kind/],
      ['{"op":{},"id":1}', /of no kind/],
      ['{"note":"shout"}', /of no kind/],
      ['{"answer":-1}', /of no kind/],
      ['{"op":"open","mode":"create"}', /id is not of kind u32/],
      ['{"op":"open","mode":"destroy","id":1}', /mode is not of kind mode/],
      ['{"op":"hold","qpn":16777216,"id":1}', /qpn is not of kind u24/],
      ['{"op":"modify","qpn":1,"attributes":7,"id":1}', /attributes is not of kind object/],
      ['{"op":"createTarget","owner":"mine","id":1}', /owner is not of kind owner/],
      ['{"op":"repeat","mad":"07","id":1}', /mad is not of kind bytes/],
      [
        '{"op":"repeat","mad":{"$bytes":"07"},"gid":{"$bytes":"07"},"id":1}',
        /gid is not of kind gid/,
      ],
      ['{"note":"targetEvent","qpn":1.5,"event":1}', /qpn is not of kind u24/],
    ];
    for (const [text, expected] of bad) assert.throws(() => decode(bytesOf(text)), expected, text);
    assert.throws(() => decode(Uint8Array.of(0xff, 0xfe)), /no JSON/);
  });

  it('are no longer than the socket takes', () => {
    const name = 'x'.repeat(MAX_MESSAGE_BYTES);
    const long = { op: 'removeRegion', key: 1, id: 1, name } as unknown as Message;
    assert.throws(() => encode(long), /a message has 4096/);
  });
});
