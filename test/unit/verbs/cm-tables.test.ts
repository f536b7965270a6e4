// The state tables of connections over librdmacm, searched to a fixpoint.

import assert from 'node:assert/strict';
import {
  ACTIVE_TABLE,
  type CmAction,
  type CmInput,
  type CmState,
  PASSIVE_TABLE,
} from '../../../providers/verbs/cm/states.js';
import { RESOLUTION_TABLE } from '../../../providers/verbs/cm/resolution-states.js';

const TABLES = { active: ACTIVE_TABLE, passive: PASSIVE_TABLE } as const;
const INITIAL = { active: 'IDLE', passive: 'REQ_RCVD' } as const;
/** What the kernel can say, and the consumer can do, at any time. */
const ALWAYS: readonly CmInput[] = ['DEVICE_REMOVAL', 'disconnect', 'abandon', 'close'];
/** Within one call: nothing comes in between. */
const PASSED_THROUGH: readonly CmState[] = ['REP_RCVD'];
const REPORTS_END: readonly CmAction[] = [
  'reportRejected',
  'reportUnreachable',
  'reportTimedOut',
  'reportAcceptFailed',
  'reportDisconnected',
  'reportDisconnectedByPeer',
  'reportLost',
];

type Row = readonly [from: CmState, input: CmInput, to: CmState, actions: readonly CmAction[]];

function rowsOf(role: keyof typeof TABLES): Row[] {
  return Object.entries(TABLES[role]).flatMap(([from, inputs]) =>
    Object.entries(inputs).map(([input, { next, actions }]): Row => {
      return [from as CmState, input as CmInput, next, actions];
    }),
  );
}

for (const role of ['active', 'passive'] as const) {
  describe(`verbs: table of the ${role} side`, () => {
    const rows = rowsOf(role);

    it('every state can be reached, and IDLE from every state', () => {
      const reached = new Set<CmState>([INITIAL[role]]);
      for (let size = 0; size !== reached.size;) {
        size = reached.size;
        for (const [from, , to] of rows) if (reached.has(from)) reached.add(to);
      }
      for (const state of Object.keys(TABLES[role]))
        assert.ok(reached.has(state as CmState), state);
      for (const from of reached) {
        const ends = new Set<CmState>([from]);
        for (let size = 0; size !== ends.size;) {
          size = ends.size;
          for (const [at, , to] of rows) if (ends.has(at)) ends.add(to);
        }
        assert.ok(ends.has('IDLE'), from);
      }
    });

    it('the end of a device, of the module and of interest is expected in every state', () => {
      for (const state of Object.keys(TABLES[role]) as CmState[]) {
        if (state === 'IDLE' || PASSED_THROUGH.includes(state)) continue;
        for (const input of ALWAYS) {
          // Before it is answered, the kernel says nothing of a request, and the consumer answers.
          if (state === 'REQ_RCVD' && input !== 'close') continue;
          assert.ok(TABLES[role][state]?.[input], `${input} in ${state}`);
        }
      }
    });

    it('what goes to IDLE gives the identifier back, and leaves no timer', () => {
      for (const [from, input, to, actions] of rows) {
        if (to !== 'IDLE') continue;
        assert.ok(actions.includes('destroyId'), `${input} in ${from}`);
        const mayRun = role === 'active' ? from !== 'ESTABLISHED' : from === 'TIMEWAIT';
        if (!mayRun || from === 'DREQ_SENT') continue;
        assert.ok(actions.includes('stopTimers'), `${input} in ${from}`);
      }
    });

    it('an end is told unless nobody wants to hear of it', () => {
      for (const [from, input, to, actions] of rows) {
        if (from === 'TIMEWAIT' || from === 'REQ_RCVD') continue;
        if (to !== 'IDLE' && to !== 'TIMEWAIT') continue;
        const told = actions.some((action) => REPORTS_END.includes(action));
        assert.ok(told || actions.includes('mute'), `${input} in ${from}`);
      }
    });

    it('the peer is told at once of what only this side has heard', () => {
      for (const input of ['UNREACHABLE', 'CONNECT_ERROR'] as const) {
        const { next, actions } = TABLES[role].ESTABLISHED?.[input] ?? {};
        assert.deepEqual([next, actions], ['DREQ_SENT', ['failQp', 'reportLost', 'sendDreq']]);
      }
    });

    it('a queue pair that was up is flushed before the peer is told', () => {
      for (const [from, input, , actions] of rows) {
        const tells = actions.findIndex((action) => action === 'sendDreq' || action === 'sendDrep');
        if (tells < 0 || from === 'DREQ_SENT') continue;
        const flushes = actions.indexOf('failQp');
        assert.ok(flushes >= 0 && flushes < tells, `${input} in ${from}`);
      }
    });
  });
}

describe('verbs: table of a question for a datagram service', () => {
  const states = ['ADDR_QUERY', 'ROUTE_QUERY', 'SIDR_REQ_SENT'] as const;

  it('goes on by one event in each state, to the answer', () => {
    const ways = states.map((state) =>
      Object.entries(RESOLUTION_TABLE[state] ?? {})
        .filter(([, { next, actions }]) => next !== 'IDLE' || actions.includes('reportAnswer'))
        .map(([input, { next }]) => `${input} to ${next}`)
        .join(),
    );
    assert.deepEqual(ways, [
      'ADDR_RESOLVED to ROUTE_QUERY',
      'ROUTE_RESOLVED to SIDR_REQ_SENT',
      'ESTABLISHED to IDLE',
    ]);
  });

  it('gives the identifier back before it tells anything, and has nothing to say when idle', () => {
    for (const state of states) {
      for (const [input, { next, actions }] of Object.entries(RESOLUTION_TABLE[state] ?? {})) {
        assert.equal(actions.includes('letGo'), next === 'IDLE', `${input} in ${state}`);
        if (next === 'IDLE') assert.equal(actions[0], 'letGo', `${input} in ${state}`);
        assert.equal(actions.length > 1, next === 'IDLE' && input !== 'close', `${input}: told`);
      }
    }
    assert.equal(RESOLUTION_TABLE.IDLE, undefined);
  });

  it('ends for the consumer, its time limit and the device in every state', () => {
    for (const state of states) {
      for (const input of ['close', 'deadline', 'callFailed', 'DEVICE_REMOVAL'] as const) {
        assert.equal(RESOLUTION_TABLE[state]?.[input]?.next, 'IDLE', `${input} in ${state}`);
      }
    }
  });
});
