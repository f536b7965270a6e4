/** Rules of the event loop: microtask, turn or sleep; and when a spin loop rests. */
import { compile } from './table.js';

export const REQUEST = compile({
  question: 'A task has rung a doorbell, or deferred something: when does the device pump?',
  facts: ['SPENT', 'TOLD_SEVERAL'],
  rows: [
    {
      name: 'bounded pumps of a turn',
      when: ['SPENT'],
      then: 'TURN',
      reason: 'timers and sockets of the application have their turn, whatever comes',
      limits: ['MAX_PUMPS_A_TURN'],
    },
    {
      name: 'one burst for the answers to a burst',
      when: ['TOLD_SEVERAL'],
      then: 'LAST_MICROTASK',
      reason: 'several messages were told, and are answered one by one, each behind an await',
      limits: ['TOLD_OF_ONE_MESSAGE'],
    },
    {
      name: 'one burst for what a task posts',
      then: 'MICROTASK',
      reason: 'it leaves in the microtask behind the task',
    },
  ],
});

export const HANDLER = compile({
  question: 'A handler is due: does it start in this turn of the event loop?',
  facts: ['LATE'],
  rows: [
    {
      name: 'bounded time of handlers',
      when: ['LATE'],
      then: 'TURN',
      reason: 'timers and sockets of the application wait no longer, whatever a handler takes',
      limits: ['HANDLERS_US', 'SHORT_HANDLERS_US', 'SHORT_HANDLERS'],
    },
    {
      name: 'handlers follow one another',
      then: 'START',
      reason: 'by time, and in virtual time by count alone: of pumps, rounds and tasks',
    },
  ],
});

export const REST = compile({
  question: 'A pump has ended: what does the device wait for?',
  facts: ['BUSY', 'POLLED', 'PAYS'],
  rows: [
    {
      name: 'more to do at once',
      when: ['BUSY'],
      then: 'TURN',
      reason: 'the event loop turns, and the device pumps again',
    },
    {
      name: 'the port is polled',
      when: ['POLLED', 'PAYS'],
      then: 'TURN',
      reason:
        '`adaptive`: a while after each packet, where completions come faster so. READ ' +
        'responders look for the next READ of bulk: ' +
        'it comes sooner than the system wakes a process that sleeps',
      limits: [
        'ADAPTIVE_POLL_US',
        'ADAPTIVE_WAIT_US',
        'POLL_TRIAL_US',
        'POLL_TRIAL_COMPLETIONS',
        'LEAST_POLL_TRIAL',
        'MOST_POLL_TRIAL',
        'LEAST_POLL_PERIOD',
        'MOST_POLL_PERIOD',
        'POLL_GAIN_PERCENT',
        'POLL_FORGET_PERCENT',
        'BULK_BYTES',
        'BULK_GAP_US',
      ],
    },
    {
      name: 'sleep until the deadline',
      then: 'SLEEP',
      reason: 'a doorbell, the port or the deadline wakes the device',
    },
  ],
});

export const CONVERSATION = compile({
  question: 'A pump has ended: does the consumer get the next message without a turn?',
  facts: ['IN_SLICE', 'ANSWERED', 'IN_TURN', 'CAME'],
  rows: [
    {
      name: 'bounded slices',
      unless: ['IN_SLICE'],
      then: 'END',
      reason: 'the slice of the polling is over, or ACKs wait for the answer of the consumer',
      limits: ['POLL_SLICE_US', 'IDLE_SLICE_US'],
    },
    {
      name: 'a handler has answered',
      when: ['ANSWERED', 'IN_TURN'],
      then: 'LOOK',
      reason: 'a turn would cost it as much as five looks at the port',
    },
    {
      name: 'a microtask has answered',
      when: ['ANSWERED'],
      then: 'MICROTASK',
      reason: 'the port is looked at when all microtasks have run',
    },
    {
      name: 'the consumer may answer in microtasks',
      when: ['IN_TURN', 'CAME'],
      then: 'MICROTASK',
      reason: 'what has come woke something that goes on there',
    },
    {
      name: 'no answer',
      then: 'END',
      reason: 'the next turn of the event loop looks',
    },
  ],
});

export const SPIN = compile({
  question: 'A consumer that spins has looked: does it keep its core?',
  facts: ['BUSY', 'IN_A_ROW', 'IN_VAIN_LONG'],
  rows: [
    {
      name: 'something moves',
      when: ['BUSY'],
      then: 'LOOK',
      reason: 'something has come, or the port has yet to take what is sent',
    },
    {
      name: 'looks between other work',
      unless: ['IN_A_ROW'],
      then: 'LOOK',
      reason: 'what the consumer does between its looks is not to wait',
      limits: ['IDLE_SLICE_US'],
    },
    {
      name: 'a core with nothing to do is given up',
      when: ['IN_VAIN_LONG'],
      then: 'REST',
      reason:
        'until a packet comes, which takes the core back at once, or for a while; then it is ' +
        'looked as long again',
      limits: ['SPIN_US', 'REST_US'],
    },
    {
      name: 'the next message may come at once',
      then: 'LOOK',
      reason: 'to be woken takes several times half a round trip',
    },
  ],
});
