/** Deliberate bugs: the search must find each of them. */
import { AddressHandles, GsiPort } from '../../../../plugins/mad/gsi-port.js';
import { Agent } from '../../../../plugins/mad/agent.js';
import { MethodTable } from '../../../../plugins/mad/method-table.js';
import { RMPP_SEND_TABLE } from '../../../../plugins/mad/rmpp-send-states.js';
import { SEND_TABLE, type SendRow } from '../../../../plugins/mad/send-states.js';
import { SingleMad } from '../../../../plugins/mad/transmission.js';
import type { Posted, Scenario } from './scenario.js';

interface Plant {
  readonly name: string;
  readonly scenario: Pick<Scenario, 'posted' | 'options'>;
  /** Puts the bug in; returns what takes it out. */
  readonly plant: () => () => void;
  readonly finds: RegExp;
}

type Rows = Record<string, Record<string, unknown>>;

/** Replaces a row of a table, or takes it out. */
function spoilRow(table: object, state: string, event: string, row?: unknown): () => void {
  const rows = (table as Rows)[state] ?? {};
  const whole = rows[event];
  if (row === undefined) delete rows[event];
  else rows[event] = row;
  return () => void (rows[event] = whole);
}

function spoilMethod<T extends object>(owner: T, name: keyof T, method: T[keyof T]): () => void {
  const whole = owner[name];
  owner[name] = method;
  return () => void (owner[name] = whole);
}

const row = (next: SendRow['next'], ...actions: SendRow['actions']): SendRow => ({ next, actions });
const tell: Posted = { name: 'told', agent: 'a', kind: 'tell' };
const ask: Posted = { name: 'question', agent: 'a', kind: 'ask' };
const transfer: Posted = { name: 'transfer', agent: 'a', kind: 'ask in segments' };

export const PLANTS: readonly Plant[] = [
  {
    name: 'an agent that unregisters still gets requests',
    scenario: { posted: [tell], options: ['unregister a', 'request comes in'] },
    plant: () =>
      spoilMethod(MethodTable.prototype, 'remove', () => {
        // Its methods stay its own.
      }),
    finds: /receive handler of a after unregister/,
  },
  {
    name: 'a send that has been reported keeps its address handle',
    scenario: { posted: [tell], options: ['unregister a'] },
    plant: () =>
      spoilMethod(AddressHandles.prototype, 'release', () => {
        // It is held for ever.
      }),
    finds: /address handles are held/,
  },
  {
    name: 'a cancelled send is forgotten when it completes',
    scenario: { posted: [tell], options: ['unregister a'] },
    plant: () => spoilRow(SEND_TABLE, 'CANCELLED', 'sent'),
    finds: /told is not reported/,
  },
  {
    name: 'a send is reported inside unregister',
    scenario: { posted: [ask], options: ['unregister a'] },
    plant: () =>
      spoilRow(
        SEND_TABLE,
        'WAITING',
        'cancel',
        row('DONE', 'stopTimer', 'statusFlushed', 'report'),
      ),
    finds: /inside a call of the consumer's/,
  },
  {
    name: 'a timer outlives its send',
    scenario: { posted: [ask], options: ['respond'] },
    plant: () =>
      spoilRow(
        SEND_TABLE,
        'WAITING',
        'response',
        row('DONE', 'statusSuccess', 'deliver', 'report'),
      ),
    finds: /a timer is left/,
  },
  {
    name: 'a repeated response is delivered again',
    scenario: { posted: [ask], options: ['respond'] },
    plant: () =>
      spoilRow(SEND_TABLE, 'ASKING', 'response', row('ASKING', 'statusSuccess', 'deliver')),
    finds: /was answered/,
  },
  {
    name: 'unregistering does not wait for work requests',
    scenario: { posted: [tell], options: ['unregister a'] },
    plant: () =>
      spoilMethod(Agent.prototype, 'retain', () => {
        // Nobody is referred to.
      }),
    finds: /after unregister has resolved|does not end|is given back once/,
  },
  {
    name: 'followers are posted again although their agent leaves',
    scenario: { posted: [tell, { ...tell, name: 'follower' }], options: ['fail', 'unregister a'] },
    plant: () => spoilMethod(SingleMad.prototype, 'mayRepost', () => true),
    finds: /is posted after unregister/,
  },
  {
    name: 'a lost port keeps what was posted on it',
    scenario: { posted: [tell], options: ['removal is silent'] },
    plant: () =>
      spoilMethod(GsiPort.prototype, 'tear', () => {
        // The device tells in vain.
      }),
    finds: /is not reported/,
  },
  {
    name: 'a transfer that the peer aborts goes on',
    scenario: { posted: [transfer], options: ['peer aborts', 'unregister a'] },
    plant: () => spoilRow(RMPP_SEND_TABLE, 'ENDING', 'drained'),
    finds: /transfer is not reported/,
  },
];
