/** Next step of a pump: receive, deliver, wait for the consumer, or end. */
import { compile } from './table.js';

export const BEGIN = compile({
  question: 'A pump begins: does it look at the port?',
  facts: ['PATIENT', 'CONSUMER_DUE'],
  rows: [
    {
      name: 'consumers who poll get their turn',
      when: ['PATIENT', 'CONSUMER_DUE'],
      then: 'LEAVE_TO_CONSUMER',
      reason: 'only what waits is sent and told: the consumer has receives to post again first',
      limits: ['PATIENT_PUMPS'],
    },
    {
      name: 'the consumer has been there',
      then: 'ROUND',
      reason: 'or has not come for so long that it is not waited for',
    },
  ],
});

export const ROUND = compile({
  question: 'A round has ended and its handlers have run: what now?',
  facts: [
    'MOVED',
    'HANDLERS_RAN',
    'UNSENT',
    'RESPONSES_WAIT',
    'REQUESTS_WAIT',
    'AHEAD',
    'ACKS_LEFT',
    'UNTIL_HANDLERS',
    'CONSUMER_DUE',
    'LAST_ROUND',
  ],
  rows: [
    {
      name: 'a long transfer lets others have their turn',
      when: ['UNSENT'],
      unless: ['MOVED', 'HANDLERS_RAN'],
      then: 'TURN',
      reason: 'the port would take more, and goes on in the next turn of the event loop',
      limits: ['MAX_BURSTS'],
    },
    {
      name: 'nothing moves any more',
      unless: ['MOVED', 'HANDLERS_RAN'],
      then: 'SLEEP',
      reason: 'a doorbell, the port or the next deadline wakes the device',
    },
    {
      name: 'an ACK is left to the answer',
      when: ['HANDLERS_RAN', 'RESPONSES_WAIT'],
      unless: ['REQUESTS_WAIT', 'AHEAD', 'ACKS_LEFT'],
      then: 'LEAVE_ACKS',
      reason: 'a consumer that awaits goes on in a microtask; once for each ACK',
    },
    {
      name: 'what handlers woke comes before the next look',
      when: ['HANDLERS_RAN', 'UNTIL_HANDLERS'],
      unless: ['RESPONSES_WAIT', 'REQUESTS_WAIT'],
      then: 'TURN',
      reason: 'it goes on in a microtask, which a look at the port would keep waiting',
    },
    {
      name: 'data waits for consumers who poll',
      when: ['CONSUMER_DUE'],
      then: 'WAIT_FOR_CONSUMER',
      reason: 'it posts no receive again before it has had its turn: the peer would hear RNR NAKs',
      limits: ['PATIENT_PUMPS'],
    },
    {
      name: 'bounded turns',
      when: ['LAST_ROUND'],
      then: 'SEND_AND_TURN',
      reason: 'the event loop gets its turn under load',
      limits: ['MAX_ROUNDS', 'HANDLERS_US'],
    },
    {
      name: 'rounds go on while something moves',
      then: 'ROUND',
      reason: 'what the round led to is sent by the next one',
    },
  ],
});
