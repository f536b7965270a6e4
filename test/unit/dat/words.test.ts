/** What errors say, word for word: what the consumer calls it, and what to do. */
import assert from 'node:assert/strict';
import { createRegistry, datStrError, openIa, parseDatConf } from '../../../core/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import { softroce } from '../../../providers/softroce/index.js';
import { wrong } from '../../support/bad-input.js';
import { type Bench, connected, unconnected } from '../../support/fake-endpoints.js';

const END_FIRST = 'end it first: ep.disconnect(), then ep.reset()';

/** The call on an endpoint that is unconnected, and its whole message. */
const UNCONNECTED: readonly (readonly [(bench: Bench) => unknown, (bench: Bench) => string])[] = [
  [
    ({ ia }) => ia.createEndpoint({ pz: wrong(undefined) }),
    () =>
      'ia.createEndpoint: pz is undefined; it must be a Pz ' +
      '(ia.createPz() makes them) [DAT_INVALID_HANDLE_PZ]',
  ],
  [
    ({ ia, pz }) => ia.createEndpoint({ pz, recvEvd: wrong(7) }),
    () =>
      'ia.createEndpoint: recvEvd is 7; it must be an Evd ' +
      '(ia.createEvd() makes them) [DAT_INVALID_HANDLE_EVD_RECV]',
  ],
  [
    ({ ep }) => ep.postSend([]),
    ({ ep }) =>
      `ep.postSend: endpoint ${ep.id} is UNCONNECTED ` +
      '(connect it first: ep.connect(), or cr.accept(ep)) [DAT_INVALID_STATE_EP_UNCONNECTED]',
  ],
  [
    ({ ep }) => ep.disconnect(),
    ({ ep }) =>
      `ep.disconnect: endpoint ${ep.id} is UNCONNECTED [DAT_INVALID_STATE_EP_UNCONNECTED]`,
  ],
  [
    ({ ia }) => ia.createPsp({ connQual: 70_000 }),
    () =>
      'ia.createPsp: connQual is 70000; it must be an integer from 1 to 65535 [DAT_INVALID_ARG2]',
  ],
  [
    ({ ia, cm }) => {
      Object.assign(cm, { listen: undefined });
      ia.createPsp({ connQual: 7000 });
    },
    () =>
      'ia.createPsp: cm.listen is not a function ' +
      '(a mistake in a provider, a module or dapl: `cause` has its stack) [DAT_INTERNAL_ERROR]',
  ],
];

const messageOf = (call: () => unknown): string => {
  try {
    call();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('nothing was thrown');
};

/** More than a line, and what a terminal would act upon. */
const HOSTILE = `a\r\n\x1b[2J\u202e\x9b${'x'.repeat(100_000)}`;
const HostileClass = Object.defineProperty(class {}, 'name', { value: HOSTILE });

const ECHOES: readonly ((bench: Bench) => unknown)[] = [
  ({ ia }) => ia.createEvd({ qlen: wrong(HOSTILE) }),
  ({ ia }) => ia.createEvd(wrong({ qlen: 1, [HOSTILE]: 1 })),
  ({ ia }) => ia.createEvd({ qlen: 1, polling: wrong(HOSTILE) }),
  ({ ia }) => ia.createPsp({ connQual: wrong(BigInt(`1${'0'.repeat(10_000)}`)) }),
  ({ ia }) => ia.createEndpoint({ pz: wrong(new HostileClass()) }),
  ({ ia }) => ia.mad.registerAgent({ managementClass: wrong(HOSTILE) }),
  ({ ep }) => ep.connect({ address: HOSTILE, connQual: 7 }),
  ({ ep }) => ep.connect({ address: '192.0.2.2', connQual: 7, qos: wrong(HOSTILE) }),
  ({ ep }) => ep.disconnect(wrong(HOSTILE)),
  () => datStrError(wrong(HOSTILE)),
  () => softroce({ addresses: ['127.0.0.1'], port: wrong(HOSTILE) }),
];

const OPENINGS: readonly (() => Promise<unknown>)[] = [
  async () => createRegistry().openIa(HOSTILE),
  async () => openIa(softroce({ addresses: [HOSTILE] })),
  async () => openIa(mock({ fabric: new Fabric(), address: HOSTILE })),
  async () => (await unconnected()).ia.openXrcDomain({ key: wrong(Symbol(HOSTILE)) }),
];

describe('the words of an error', () => {
  for (const [call, message] of UNCONNECTED) {
    it(`are: ${message({ ep: { id: 0 } } as Bench)}`.slice(0, 70), async () => {
      const bench = await unconnected();
      assert.equal(
        messageOf(() => call(bench)),
        message(bench),
      );
    });
  }

  it('say what ends a connection first', async () => {
    const { ep } = await connected();
    for (const call of [() => ep.reset(), () => ep.connect({ address: '::1', connQual: 1 })]) {
      assert.ok(messageOf(call).includes(`is CONNECTED (${END_FIRST})`), messageOf(call));
    }
  });

  it('name the port that something listens on, as the consumer wrote it', async () => {
    const ia = await openIa(mock({ fabric: new Fabric({ seed: 1 }), address: '192.0.2.1' }));
    ia.createPsp({ connQual: 7000 });
    assert.equal(
      messageOf(() => ia.createPsp({ connQual: 7000 })),
      'ia.createPsp: port 7000 (service id 0x1061b58) has a listener already (take another ' +
        'connection qualifier, or free what listens on it) [DAT_CONN_QUAL_IN_USE]',
    );
    await ia.close();
  });

  it('say which address the adapter lacks', async () => {
    const ia = await openIa(mock({ fabric: new Fabric({ seed: 1 }), address: '192.0.2.1' }));
    const ep = ia.createEndpoint({ pz: ia.createPz() });
    assert.equal(
      messageOf(() => ep.connect({ address: '::1', connQual: 7 })),
      'ep.connect: the device has no IPv6 address to connect from ' +
        '(open it with an IPv6 address too) [DAT_INVALID_ADDRESS_UNREACHABLE]',
    );
    const agent = ia.mad.registerAgent({ managementClass: 0x30, oui: 5 });
    await assert.rejects(agent.request({ address: '::1', attributeId: 1 }), {
      message:
        'agent.request: the adapter has no IPv6 address to reach ::1 from (open it with an IPv6 ' +
        'address too, or name an IPv4 address) [DAT_INVALID_ADDRESS_UNREACHABLE]',
    });
    await ia.close();
  });

  it('are of one line, and short, whatever the caller has passed', async () => {
    const bench = await unconnected();
    const messages = ECHOES.map((call) => messageOf(() => call(bench)));
    for (const open of OPENINGS) {
      const { message } = await open().then(
        () => new Error('it was opened'),
        (error: unknown) => error as Error,
      );
      messages.push(message);
    }
    const line = `${HOSTILE.replaceAll(/[\r\n]/g, '')} u2.0 nonthreadsafe default x y "" ""`;
    messages.push(...parseDatConf(line).errors.map(({ message }) => message));
    assert.equal(messages.length, ECHOES.length + OPENINGS.length + 1);
    for (const message of messages) {
      assert.doesNotMatch(message, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      assert.ok(message.length < 500, message);
    }
  });
});
