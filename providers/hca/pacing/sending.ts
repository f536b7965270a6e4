/** Order and time of requests and responses. */
import { compile } from './table.js';

export const DOORBELL = compile({
  question: 'A doorbell has rung: do its requests leave at once?',
  facts: ['MOVING', 'LONE_MESSAGE', 'ENOUGH'],
  rows: [
    {
      name: 'never in the middle of it',
      when: ['MOVING'],
      then: 'LEAVE',
      reason: 'packets are being taken in or put out; the pump sends what is left',
    },
    {
      name: 'the answer to a lone message leaves at its doorbell',
      when: ['LONE_MESSAGE'],
      then: 'ANSWER',
      reason: 'the peer waits for it; what may come behind it is its own train',
    },
    {
      name: 'requests that leave eagerly',
      when: ['ENOUGH'],
      then: 'SEND',
      reason: 'the peer works on them while the consumer posts the next',
      limits: ['EAGER_REQUESTS'],
    },
    {
      name: 'the rest waits for the end of the task',
      then: 'LEAVE',
      reason: 'what a task posts goes out in one burst',
    },
  ],
});

export const ORDER = compile({
  question: 'Requests wait: do responses leave before them?',
  facts: ['AHEAD', 'FIRST'],
  rows: [
    {
      name: 'a NAK before everything',
      when: ['FIRST'],
      then: 'RESPONSES',
      reason: 'a peer hears a NAK, and what has arrived, before it hears of the end (a DREQ)',
    },
    {
      name: 'ACK before reply toward foreign peers',
      when: ['AHEAD'],
      then: 'ACKS_AHEAD',
      reason: 'they may retire what they sent by the answer to it (perftest does)',
      limits: ['PACKETS_AHEAD'],
    },
    {
      name: 'ACK behind reply between ours',
      then: 'REQUESTS',
      reason: 'it leaves in the datagram of the short SEND that answers, or the next time',
    },
  ],
});

export const BEHIND = compile({
  question: 'Requests have gone before: do responses follow in the same system call?',
  facts: ['LONE_PAIR', 'RETURNS', 'AHEAD', 'ACK_WAITED'],
  rows: [
    {
      name: 'the answer goes alone',
      when: ['LONE_PAIR', 'RETURNS'],
      unless: ['AHEAD', 'ACK_WAITED'],
      then: 'WAIT',
      reason:
        'a datagram of two takes 5.1 us and 0.9 more, and the peer waits for the message; ' +
        'the port is looked at again at once',
    },
    {
      name: 'responses behind requests',
      then: 'SEND',
      reason: 'an ACK waits once at most',
    },
  ],
});

export const BURST = compile({
  question: 'A burst of packets has been taken in: do responses wait for the handlers?',
  facts: ['SEVERAL', 'MANY', 'OWED_AHEAD'],
  rows: [
    {
      name: 'a long burst is answered at once',
      when: ['MANY'],
      then: 'SEND',
      reason: "its sender's window waits for it",
      limits: ['PATIENT_PACKETS'],
    },
    {
      name: 'foreign peers do not wait for a second answer',
      when: ['SEVERAL', 'OWED_AHEAD'],
      then: 'SEND',
      reason: 'a handler can answer a lone message in the system call of its ACK, and no other',
      limits: ['PATIENT_PACKETS_AHEAD'],
    },
    {
      name: 'ACK and answer leave together',
      then: 'WAIT',
      reason: 'the message that the handlers answer with takes the ACK along',
    },
  ],
});
