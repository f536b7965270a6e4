// Whose turn it is to send: MADs do not wait for the data of connections.
import assert from 'node:assert/strict';
import { parametersOf } from '../../../providers/hca/common/parameters.js';
import { Pacer } from '../../../providers/hca/pacing/index.js';
import {
  type Sender,
  SendScheduler,
  type SchedulerHost,
} from '../../../providers/hca/sending/send-scheduler.js';

/** A port that takes so many turns at a time, and who has sent. */
class Scene {
  readonly sent: string[] = [];
  room = Infinity;
  readonly turns: SendScheduler;

  constructor() {
    const hasRoom = (): boolean => this.sent.length < this.room;
    const tx = { waiting: 0, hasRoom, hasRoomForResponse: true };
    const host = {
      tx,
      pacer: new Pacer(),
      parameters: parametersOf({}),
      requestPump: () => undefined,
    };
    this.turns = new SendScheduler(host as unknown as SchedulerHost);
  }

  sender(name: string, isManagement: boolean, bursts: number): Sender {
    const send = (): boolean => {
      this.sent.push(name);
      return --bursts > 0;
    };
    return {
      ...{ destroyed: false, isManagement },
      ...{ responsesScheduled: false, requestsScheduled: false },
      transmitResponses: send,
      transmitRequests: send,
    };
  }
}

describe('Turns to send', () => {
  it('give QP1 the first one of all requesters, behind responses that come first', () => {
    const scene = new Scene();
    const { turns, sent } = scene;
    turns.scheduleFirst(scene.sender('response', false, 1));
    for (let i = 0; i < 100; i++) turns.scheduleRequests(scene.sender('data', false, 3));
    turns.scheduleRequests(scene.sender('MAD', true, 1));
    assert.equal(turns.waiting, 102);
    turns.fill(false);
    assert.deepEqual(sent.slice(0, 3), ['response', 'MAD', 'data']);
    assert.equal(sent.length, 302);
  });

  it('keep a MAD for later where the port takes no more', () => {
    const scene = new Scene();
    const { turns, sent } = scene;
    scene.room = 0;
    turns.scheduleRequests(scene.sender('data', false, 1));
    turns.scheduleRequests(scene.sender('MAD', true, 1));
    assert.equal(turns.fill(false), true);
    assert.deepEqual(sent, []);
    scene.room = Infinity;
    assert.equal(turns.fill(false), false);
    assert.deepEqual(sent, ['MAD', 'data']);
  });
});
